"""Trees with all NICs of a host on one leaf: leaf-spine, clos, fat-tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.planning.plan.families.registry import Candidate, generator, ratio_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.planning.plan.boxes import Box
    from netplan.planning.plan.families.registry import Ground

TWO, THREE = 2, 3


def leaf_of(box: Box, ratio: float) -> dict[str, Any]:
    """Return the ``leaf`` of a spec, empty when it says nothing that is not the default."""
    leaf: dict[str, Any] = {}
    if box.breakout > 1:
        leaf["breakout"] = box.breakout
    if ratio != 1:
        leaf["oversubscription"] = ratio
    return {"leaf": leaf} if leaf else {}


def port_label(box: Box) -> str:
    """Return a part of a name: ``r64``, or ``r64x2`` where ports are split in two."""
    return f"r{box.radix}" + (f"x{box.breakout}" if box.breakout > 1 else "")


def squeezed(box: Box, tiers: int, ratios: tuple[float, ...]) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Yield where a tree can be oversubscribed: in its leaves, and of three tiers in its spines instead.

    Yields
    ------
    label, ratio, spec
        End of a name, the oversubscription, and what the spec says of leaf and spine.
    """
    for ratio in ratios:
        yield ratio_label(ratio), ratio, leaf_of(box, ratio)
        if tiers == THREE and ratio != 1:
            spine = {"spine": {"oversubscription": ratio}}
            yield f"{ratio_label(ratio)}-at-spines", ratio, leaf_of(box, 1) | spine


@generator("leaf-spine")
def leaf_spine(ground: Ground) -> Iterator[Candidate]:
    """Propose two tiers."""
    if TWO in ground.request.tiers and 1 in ground.request.plane_counts:
        yield from _tree(ground, "leaf-spine", TWO)


@generator("clos")
def clos(ground: Ground) -> Iterator[Candidate]:
    """Propose three tiers."""
    if THREE in ground.request.tiers and 1 in ground.request.plane_counts:
        yield from _tree(ground, "clos", THREE)


def _tree(ground: Ground, kind: str, tiers: int) -> Iterator[Candidate]:
    """Propose a tree of each switch and ratio."""
    for box in ground.boxes(1):
        for label, ratio, more in squeezed(box, tiers, ground.request.ratios):
            name = f"{kind}-{port_label(box)}{label}"
            spec = {"name": name, "kind": kind, "hosts": ground.hosts, "radix": box.radix, **more}
            yield Candidate(name, kind, spec, box.parts, oversubscription=ratio)


@generator("fat-tree")
def fat_tree(ground: Ground) -> Iterator[Candidate]:
    """Propose the full k-ary fat-tree where it holds exactly the hosts; kind clos has those partly filled."""
    if THREE not in ground.request.tiers or 1 not in ground.request.plane_counts:
        return
    nics = ground.n_hosts * ground.request.nics
    hosts = {key: value for key, value in ground.hosts.items() if key != "count"}
    for box in ground.boxes(1):
        if box.breakout == 1 and box.radix % 2 == 0 and box.radix**3 // 4 == nics:
            name = f"fat-tree-k{box.radix}"
            spec = {"name": name, "kind": "fat-tree", "k": box.radix, "hosts": hosts}
            yield Candidate(name, "fat-tree", spec, box.parts)
