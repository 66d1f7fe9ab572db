"""What a design costs and draws at the least, from counts alone.

Switches and NICs are counted exactly. A cable runs over the medium that the bill of materials would choose
for it (`netplan.planning.media`), per link: modules and multi-link cables are counted by the share that a
link fills, which the bill rounds up. Where a floor decides the lengths, cables are left out. So no sum here
is more than the bill's, and no part without a figure is counted more often than there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from netplan.planning.media import Link, Medium, NoMediumError, choose_medium, choose_switch
from netplan.planning.plan.design import Amount, Rejection
from netplan.spec.parts import CableSpec, FibreSpec, OpticSpec, SwitchSpec
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.catalog.parts import Catalogue
    from netplan.planning.plan.survey import CableGroup, Survey
    from netplan.spec.parts import NicSpec, PartSpec

__all__ = ["Bound", "Crowded", "bound"]


@dataclass(frozen=True)
class Bound:
    """A design before it is priced and simulated: what it is at the least, and at the best."""

    survey: Survey
    switch: str
    cost: Amount
    power: Amount

    @property
    def efficiency(self) -> float:
        """The most that any routing can give."""
        return self.survey.most_efficiency

    @property
    def stops(self) -> float:
        """Stops a month; exact."""
        return self.survey.failing.stops_per_month

    @property
    def any_to_any(self) -> bool:
        """Whether every NIC reaches every other through the network."""
        return self.survey.any_to_any

    @property
    def is_priced(self) -> bool:
        """Whether all large parts have a price."""
        return not self.cost.large

    @cached_property
    def name(self) -> str:
        """Name of the candidate with the switch."""
        return f"{self.survey.candidate.name} of {self.switch}"


@dataclass(frozen=True)
class Crowded(Rejection):
    """Refused because a switch has fewer cages than its modules need."""

    tier: str = ""
    """Tier of the switch."""


@dataclass(frozen=True)
class _Pieces:
    """Pieces of a part."""

    part: PartSpec
    count: float
    is_power_inside: bool = False
    """Whether the largest draw of the switch it is in holds it."""
    is_large: bool = False
    """As in `Amount.large`."""


def bound(survey: Survey, switch: SwitchSpec, catalogue: Catalogue, *, has_floor: bool) -> Bound | Rejection:
    """Return the least cost and draw of a surveyed candidate built of one switch.

    Parameters
    ----------
    survey
        The candidate.
    switch
        Switch of every tier.
    catalogue
        The parts.
    has_floor
        Whether a floor decides the lengths of cables.

    Returns
    -------
    Bound or Rejection
        Rejected where the switch lists too few ports, or (`Crowded`) the modules do not fit the cages of a
        tier's busiest switch.
    """
    small = _too_small(survey, switch, catalogue)
    if small is not None:
        return small
    total = sum(survey.switches.values())
    pieces = [_Pieces(switch, float(total), is_large=True)]
    nic = catalogue.nics[survey.nic] if survey.nic is not None else None
    if nic is not None:
        pieces.append(_Pieces(nic, float(survey.nic_pieces)))
    unlisted: dict[str, float] = {}
    cages: dict[str, int] = {}
    for group in () if has_floor else survey.groups:
        far: SwitchSpec | NicSpec | None = nic if group.is_to_host else switch
        try:
            medium = choose_medium(catalogue, Link(group.kind, group.speed, group.length, switch, far))
        except NoMediumError:
            name = f"unlisted-{format_rate(group.speed)}-link"
            unlisted[name] = unlisted.get(name, 0.0) + group.count
            continue
        pieces += _medium(medium, group, holds_optics=switch.power_max is not None)
        for tier, links in group.most:
            cages[tier] = cages.get(tier, 0) + ceil(links / _links_of_module(medium))
    for tier, needed in cages.items():
        if switch.cages is not None and needed > switch.cages.value.count:
            return Crowded(
                (f"{survey.candidate.name} of {switch.name}",),
                f"{tier}: the modules need {needed} cages, {switch.name} has {switch.cages.value.count}",
                "the catalogue has no module that splits a cage further; --parts FILE adds one",
                tier=tier,
            )
    return Bound(survey, switch.name, _cost(pieces, unlisted), _power(pieces, unlisted))


def _too_small(survey: Survey, switch: SwitchSpec, catalogue: Catalogue) -> Rejection | None:
    """Refuse a switch that lists too few ports of the speeds that a tier uses."""
    ports: dict[str, dict[float, int]] = {}
    for group in survey.groups:
        for tier, links in group.most:
            mine = ports.setdefault(tier, {})
            mine[group.speed] = mine.get(group.speed, 0) + links
    for tier, need in ports.items():
        if choose_switch(catalogue.with_only(switch), need, radix=0, protocol=None) is None:
            said = " and ".join(f"{count} of {format_rate(speed)}" for speed, count in need.items())
            reason = f"{tier}: {switch.name} lists too few ports for the {said} in use"
            return Rejection(
                (f"{survey.candidate.name} of {switch.name}",), reason, "--parts FILE adds figures"
            )
    return None


def _links_of_module(medium: Medium) -> int:
    """Return the most links that one cage of a switch holds over a medium."""
    if medium.cable is not None:
        return medium.cable.links
    assert medium.near is not None
    assert medium.far is not None
    return max(medium.near.ports, medium.far.ports)


def _medium(medium: Medium, group: CableGroup, *, holds_optics: bool) -> Iterator[_Pieces]:
    """Yield the parts of so many links over a medium."""
    is_large = not group.is_to_host
    if medium.cable is not None:
        yield _Pieces(medium.cable, group.count / medium.cable.links, is_large=is_large)
        return
    assert medium.near is not None
    assert medium.far is not None
    yield _Pieces(medium.near, group.count / medium.near.ports, holds_optics, is_large)
    yield _Pieces(medium.far, group.count / medium.far.ports, holds_optics and is_large, is_large)
    if medium.fibre is not None:
        yield _Pieces(medium.fibre, group.count * medium.near.fibres, is_large=is_large)


def _cost(pieces: list[_Pieces], unlisted: dict[str, float]) -> Amount:
    """Add up prices."""
    low = mid = high = 0.0
    unknown, large = dict(unlisted), set(unlisted)
    for each in pieces:
        price = each.part.price
        if price is None:
            unknown[each.part.name] = unknown.get(each.part.name, 0.0) + each.count
            large |= {each.part.name} if each.is_large else set()
        else:
            low += price.low * each.count
            mid += price.mid * each.count
            high += price.high * each.count
    return Amount(low, mid, high, unknown, tuple(sorted(large)))


def _power(pieces: list[_Pieces], unlisted: dict[str, float]) -> Amount:
    """Add up largest draws; a switch with a typical figure alone counts with it and as unknown above it."""
    total = 0.0
    unknown, large = dict(unlisted), set(unlisted)
    for each in pieces:
        part = each.part
        figure = part.power_max or part.power_typical
        is_open = figure is None or (isinstance(part, SwitchSpec) and part.power_max is None)
        if is_open and not isinstance(part, FibreSpec):
            unknown[part.name] = unknown.get(part.name, 0.0) + each.count
            large |= {part.name} if each.is_large else set()
        if figure is None or (isinstance(part, OpticSpec | CableSpec) and each.is_power_inside):
            continue
        total += figure.value * each.count
    return Amount(total, total, total, unknown, tuple(sorted(large)))
