"""Fabrics of rails: rail-optimized, where rails meet in the spines or cores, and rail-only, where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.planning.plan.families.registry import Candidate, generator
from netplan.planning.plan.families.trees import THREE, TWO, leaf_of, port_label, squeezed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.planning.plan.families.registry import Ground


@generator("rail-optimized")
def rail_optimized(ground: Ground) -> Iterator[Candidate]:
    """Propose two tiers, and three with pods by block, by rail, and by rail with cores in two domains."""
    request = ground.request
    if 1 not in request.plane_counts:
        return
    for tiers in sorted({TWO, THREE} & set(request.tiers)):
        for box in ground.boxes(1):
            for pods, above in _pods(tiers, request.nics):
                for label, ratio, more in squeezed(box, tiers, request.ratios):
                    name = f"rail-optimized-{tiers}t{pods}-{port_label(box)}{label}"
                    spec: dict[str, Any] = {"name": name, "kind": "rail-optimized"}
                    spec |= {"tiers": tiers} if tiers == THREE else {}
                    spec |= {"hosts": ground.hosts, "radix": box.radix, **above, **more}
                    yield Candidate(name, "rail-optimized", spec, box.parts, oversubscription=ratio)


def _pods(tiers: int, rails: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield how leaves are grouped: part of a name, and what the spec says of it."""
    if tiers == TWO:
        yield "", {}
        return
    yield "-by-block", {}
    yield "-by-rail", {"pod": {"by": "rail"}}
    if rails % 2 == 0:
        yield "-2-domains", {"pod": {"by": "rail"}, "core": {"domains": 2}}


@generator("rail-only")
def rail_only(ground: Ground) -> Iterator[Candidate]:
    """Propose a leaf for each rail, and a leaf-spine network for each rail.

    The latter is the same fabric as a plane for each NIC, and left to multi-plane where that is tried too.
    """
    request = ground.request
    if 1 not in request.plane_counts:
        return
    is_plane = "multi-plane" in request.kinds and request.nics in request.plane_counts
    for tiers in sorted(({1} if is_plane else {1, TWO}) & set(request.tiers)):
        for box in ground.boxes(1):
            options = squeezed(box, TWO, request.ratios) if tiers == TWO else [("", 1.0, leaf_of(box, 1))]
            for label, ratio, more in options:
                name = f"rail-only-{tiers}t-{port_label(box)}{label}"
                spec: dict[str, Any] = {"name": name, "kind": "rail-only"}
                spec |= {"tiers": TWO} if tiers == TWO else {}
                spec |= {"hosts": ground.hosts, "radix": box.radix, **more}
                yield Candidate(name, "rail-only", spec, box.parts, oversubscription=ratio)
