"""Which designs no other beats, and in which order they are shown.

A design *beats* another when it is certainly at least as good in all of cost, power, efficiency, stops a
month and reach (whether every NIC reaches every other through the network), and better in one. Costs and
powers with parts of unknown figure are compared by `Amount.is_at_most`: an unknown figure may be anything
from 0 up, so a design with a switch without a price beats only designs with as many of that switch. Figures
are compared to three digits, efficiencies to 0.01: less is within the reach of seeds and of prices.

The *score* is the weighted mean of ratios to the best: cost over the least cost, best efficiency over own and
so on; 1 is a design that is best in everything. Designs with large parts without a price (`Amount.large`)
come after all others, and their ratios are to the best among themselves.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor, inf
from typing import TYPE_CHECKING, Protocol

from netplan.planning.plan.design import Amount, Design, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Figures", "beats", "compared_efficiency", "rank"]


class Figures(Protocol):
    """What designs are compared by."""

    @property
    def cost(self) -> Amount:
        """Money [USD]."""

    @property
    def power(self) -> Amount:
        """Largest draw [W]."""

    @property
    def efficiency(self) -> float:
        """Efficiency, 0 to 1."""

    @property
    def stops(self) -> float:
        """Stops a month."""

    @property
    def any_to_any(self) -> bool:
        """Whether every NIC reaches every other through the network."""


def compared_efficiency(value: float) -> float:
    """Return an efficiency as it is compared: to 0.01, rounded to the nearest.

    Examples
    --------
    >>> compared_efficiency(0.996), compared_efficiency(0.994)
    (1.0, 0.99)
    """
    return floor(value * 100 + 0.5) / 100


def beats(one: Figures, other: Figures) -> bool:
    """Whether one is certainly as good as the other in everything and better in something."""
    return _is_as_good(one, other) and not _is_as_good(other, one)


def _is_as_good(one: Figures, other: Figures) -> bool:
    """Whether one is certainly no worse than the other in anything."""
    return (
        rounded(one.stops) <= rounded(other.stops)
        and compared_efficiency(one.efficiency) >= compared_efficiency(other.efficiency)
        and one.any_to_any >= other.any_to_any
        and one.power.is_at_most(other.power)
        and one.cost.is_at_most(other.cost)
    )


def rank(designs: Sequence[Design], weights: Mapping[str, float]) -> tuple[Design, ...]:
    """Return designs best first, with their scores and the front marked.

    Parameters
    ----------
    designs
        In any order.
    weights
        Objective to how much it counts; what is missing counts nothing.
    """
    if not designs:
        return ()
    # Sums that lack a large part are no measure for whole ones, so ratios are among designs of the same sort.
    least = {}
    for is_priced in {design.is_priced for design in designs}:
        alike = [design for design in designs if design.is_priced == is_priced]
        least[is_priced] = {name: min(_value(d, name) for d in alike) for name in ("cost", "power", "stops")}
    most = max(design.efficiency for design in designs)
    total = sum(weights.values())

    def ratio(design: Design, name: str) -> float:
        if name == "efficiency":
            return most / design.efficiency if design.efficiency else inf
        best = least[design.is_priced][name]
        return _value(design, name) / best if best else 1.0

    marked = [
        replace(
            design,
            pareto=not any(beats(other, design) for other in designs),
            score=sum(weight * ratio(design, name) for name, weight in weights.items() if weight) / total,
        )
        for design in designs
    ]
    return tuple(sorted(marked, key=_place))


def _place(design: Design) -> tuple[object, ...]:
    """Return what designs are sorted by: of equal scores those that reach all come first."""
    return not design.is_priced, round(design.score, 9), not design.any_to_any, design.name, design.switch


def _value(design: Design, name: str) -> float:
    """Return an objective as one number."""
    if name == "stops":
        return design.stops
    amount: Amount = getattr(design, name)
    return amount.mid
