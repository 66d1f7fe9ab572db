"""Which limit of a request a design breaks, and what to say when every design does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from netplan.errors import ExitStatus, FabricError
from netplan.planning.plan.design import Design, Plan, Rejection
from netplan.planning.plan.pareto import compared_efficiency
from netplan.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from netplan.planning.plan.bounds import Bound
    from netplan.planning.plan.request import Request

__all__ = ["NoDesignError", "broken_limit", "nothing_left", "put_together"]

_UNITS = {"cost": " USD", "power": " W", "stops": " a month"}

_OPTIONS = {
    "cost": "max-cost",
    "power": "max-power",
    "efficiency": "min-efficiency",
    "stops": "max-stops",
    "any_to_any": "any-to-any",
}

#: Refusals that are quoted when nothing can be built.
_QUOTED = 3


class NoDesignError(FabricError):
    """Nothing fits the request; ``plan`` lists why."""

    exit_status = ExitStatus.TARGET_NOT_MET

    def __init__(self, message: str, plan: Plan, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.plan = plan


def broken_limit(each: Bound | Design, request: Request) -> Rejection | None:
    """Return the first limit that a design breaks, None when it keeps to all.

    Parameters
    ----------
    each
        A design; or bounds, which break a limit only if the design would whatever routing and rounding.
    request
        Whose limits.

    Notes
    -----
    A design with a large part without a price (or draw) cannot be shown to keep to a limit of cost (or
    power), so it is refused.
    """
    limits, is_best = request.limits, not isinstance(each, Design)
    name = (each.name,)
    if limits.any_to_any and not each.any_to_any:
        reason = "NICs of different rails or planes do not reach each other through the network"
        return Rejection(name, reason, limit="any_to_any")
    least = "at least " if is_best else ""
    for limit, value, most, unit, said in (
        ("cost", each.cost.mid, limits.cost, "USD", least),
        ("power", each.power.mid, limits.power, "W", least),
        ("stops", each.stops, limits.stops, "a month", ""),
    ):
        if most is not None and value > most:
            reason = f"{limit} {said}{_number(value)} {unit} is above the limit of {_number(most)} {unit}"
            return Rejection(name, reason, limit=limit, value=value)
    for limit, amount, most, figure in (
        ("cost", each.cost, limits.cost, "price"),
        ("power", each.power, limits.power, "largest draw"),
    ):
        if most is not None and amount.large:
            reason = f"its {limit} is not known: no {figure} of {', '.join(amount.large)}"
            return Rejection(name, reason, "--parts FILE adds figures", limit=limit)
    if limits.efficiency is not None and compared_efficiency(each.efficiency) < limits.efficiency:
        at_most = "at most " if is_best else ""
        reason = f"efficiency {at_most}{each.efficiency:.3f} is below the limit of {limits.efficiency:g}"
        return Rejection(name, reason, limit="efficiency", value=each.efficiency)
    return None


def put_together(rejected: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """Return rejections with those for one reason put together, in the order of the first of each."""
    found: dict[tuple[str, str | None], list[Rejection]] = {}
    for each in rejected:
        found.setdefault((each.reason, each.hint), []).append(each)
    return tuple(
        replace(group[0], designs=tuple(name for each in group for name in each.designs))
        for group in found.values()
    )


def nothing_left(plan: Plan) -> NoDesignError:
    """Return the error that says which limits bind and what is the best to be had, or why nothing fits."""
    head = f"no design for {format_count(plan.request.gpus)} GPUs"
    broken: dict[str, list[Rejection]] = {}
    for each in plan.rejected:
        if each.limit is not None:
            broken.setdefault(each.limit, []).append(each)
    if not broken:
        reasons = "; ".join(f"{each.designs[0]}: {each.reason}" for each in plan.rejected[:_QUOTED])
        hint = next((each.hint for each in plan.rejected if each.hint), None)
        return NoDesignError(
            f"{head} can be built: {reasons or 'no family has a proposal'}",
            plan,
            hint=hint or "allow more tiers, planes, switches or families",
        )
    words = "; ".join(_binding(limit, group, plan.request) for limit, group in broken.items())
    return NoDesignError(
        f"{head} keeps to the limits: {words}",
        plan,
        hint="relax the limit that binds, or allow more: --max-oversubscription, --planes, --tiers, --switch",
    )


def _binding(limit: str, group: list[Rejection], request: Request) -> str:
    """Say how many designs a limit refuses, and how near the nearest comes."""
    count = sum(len(each.designs) for each in group)
    values = [each.value for each in group if each.value is not None]
    if limit == "any_to_any":
        return f"--{_OPTIONS[limit]} refuses {count}"
    unit = _UNITS.get(limit, "")
    asked = f"--{_OPTIONS[limit]} {_number(getattr(request.limits, limit))}{unit} refuses {count}"
    if not values:
        return f"{asked}, all of unknown {limit}"
    best = max(values) if limit == "efficiency" else min(values)
    return f"{asked}, of which the nearest has {_number(best)}{unit}"


def _number(value: float) -> str:
    """Return a number for people: whole from 1,000 on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 -- four digits
