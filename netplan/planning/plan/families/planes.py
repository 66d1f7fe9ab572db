"""Fabrics of planes: NICs split over planes or each in one (multi-plane), and pairs of ToRs (dual-tor)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.planning.plan.families.registry import Candidate, generator
from netplan.planning.plan.families.trees import THREE, TWO, port_label, squeezed
from netplan.spec.planes import DUAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.planning.plan.families.registry import Ground


@generator("multi-plane")
def multi_plane(ground: Ground) -> Iterator[Candidate]:
    """Propose planes of two and three tiers, with and without rails, for each number of planes.

    Two planes with rails and split NICs are what dual-tor proposes, and left to it where it is tried too.
    """
    request = ground.request
    for planes in request.plane_counts:
        if planes == 1:
            continue
        for assignment, has_rails in _ways(planes, request.nics):
            if (planes, assignment, has_rails) == (DUAL, "split", True) and "dual-tor" in request.kinds:
                continue
            for tiers in sorted({TWO, THREE} & set(request.tiers)):
                yield from _planes(ground, planes, assignment, tiers, has_rails=has_rails)


def _ways(planes: int, nics: int) -> Iterator[tuple[str, bool]]:
    """Yield how NICs are assigned to planes, and whether each plane has rails."""
    yield "split", False
    if nics > 1:
        yield "split", True
    yield "per-nic", False
    if nics > planes:
        yield "per-nic", True


def _planes(
    ground: Ground, planes: int, assignment: str, tiers: int, *, has_rails: bool
) -> Iterator[Candidate]:
    """Propose so many planes of each switch and ratio."""
    request = ground.request
    ports = planes if assignment == "split" else 1
    boxes = ground.boxes(ports)
    if not boxes and request.nic_rate * 8 / 1e9 % ports:
        boxes = ground.boxes(1)[:1]  # its refusal says why
    for box in boxes:
        for label, ratio, more in squeezed(box, tiers, request.ratios):
            rails = "-rails" if has_rails else ""
            name = f"{planes}-plane-{assignment}{rails}-{tiers}t-{port_label(box)}{label}"
            spec: dict[str, Any] = {"name": name, "kind": "multi-plane", "planes": planes}
            spec |= {"assignment": assignment}
            spec |= {"rails": True} if has_rails else {}
            spec |= {"tiers": tiers} if tiers == THREE else {}
            spec |= {"hosts": ground.hosts, "radix": box.radix, **more}
            yield Candidate(name, "multi-plane", spec, box.parts, ports, planes, ratio)


@generator("dual-tor")
def dual_tor(ground: Ground) -> Iterator[Candidate]:
    """Propose pairs of ToRs under two or three tiers."""
    request = ground.request
    if DUAL not in request.plane_counts:
        return
    for tiers in sorted({TWO, THREE} & set(request.tiers)):
        for box in ground.boxes(DUAL):
            for label, ratio, more in squeezed(box, tiers, request.ratios):
                name = f"dual-tor-{tiers}t-{port_label(box)}{label}"
                spec: dict[str, Any] = {"name": name, "kind": "dual-tor"}
                spec |= {"tiers": tiers} if tiers == THREE else {}
                spec |= {"hosts": ground.hosts, "radix": box.radix, **more}
                yield Candidate(name, "dual-tor", spec, box.parts, DUAL, DUAL, ratio)
