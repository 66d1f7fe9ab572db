"""A plan as tables, and its designs as files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from netplan.errors import OutputError
from netplan.files import write_file
from netplan.report.tables import Table
from netplan.units import format_count, format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.planning.plan import Amount, Design, Plan, Rejection, Request

__all__ = ["design_yaml", "plan_tables", "refusal_tables", "write_designs"]

#: Designs that a remark names.
_NAMED = 2

#: Rows of refusals that are printed.
_ROWS = 16

_MILLION = 1e6

_COLUMNS = (
    "design",
    "front",
    "switch",
    "switches",
    "cables",
    "usd_per_gpu",
    "cost_musd",
    "power_kw",
    "efficiency",
    "ring",
    "ring_random",
    "all_to_all",
    "stops_month",
    "score",
)

_FAILING = (
    "design",
    "any_to_any",
    "stops_month",
    "stops_month_1000_gpus",
    "lost_min_month",
    "worst_switch_cuts_off",
)


def plan_tables(plan: Plan, top: int | None = None) -> list[Table]:
    """Return the designs, and what was refused.

    Parameters
    ----------
    plan
        As `netplan.planning.plan.plan_designs` returns it.
    top
        Rows of designs at most; all when None.
    """
    shown = plan.designs[:top]
    title = (
        f"{_asked(plan.request)}: {len(plan.designs)} designs simulated of {plan.candidates} candidates, "
        f"{len(plan.front)} on the Pareto front"
    )
    remarks = (*_remarks(shown), *plan.notes)
    return [
        Table(_COLUMNS, tuple(_row(design) for design in shown), title, remarks),
        Table(_FAILING, tuple(_failing_row(design) for design in shown), "Failures"),
        *_growth_tables(shown),
        *refusal_tables(plan),
    ]


def refusal_tables(plan: Plan) -> list[Table]:
    """Return what was refused (a row for reasons that differ in numbers alone) and what was not simulated."""
    tables = []
    if plan.rejected:
        alike: dict[str, list[Rejection]] = {}
        for each in plan.rejected:
            alike.setdefault(re.sub(r"[\d,.]+", "#", each.reason), []).append(each)
        rows = [_refused_row(group) for group in list(alike.values())[:_ROWS]]
        remarks = ["All reasons, each with what would be feasible: --format json."]
        total = sum(len(each.designs) for each in plan.rejected)
        title = f"Refused: {total} designs"
        tables.append(Table(("design", "others", "why not"), tuple(rows), title, tuple(remarks)))
    if plan.skipped:
        why: dict[str, list[str]] = {}
        for skipped in plan.skipped:
            why.setdefault(skipped.reason, []).append(skipped.name)
        lines = [(names[0], len(names) - 1 or None, reason) for reason, names in why.items()]
        title = f"Not simulated: {len(plan.skipped)} designs"
        tables.append(Table(("design", "others", "why"), tuple(lines[:_ROWS]), title))
    return tables


def _growth_tables(shown: Sequence[Design]) -> list[Table]:
    """Return what growing takes, where it was asked for."""
    rows = [
        (
            design.name,
            design.growth.design or "",
            design.growth.touched,
            None if design.growth.touched_fraction is None else f"{design.growth.touched_fraction:.1%}",
            design.growth.new_cables,
            design.growth.new_switches,
            design.growth.why_not or "",
        )
        for design in shown
        if design.growth is not None
    ]
    if not rows or shown[0].growth is None:
        return []
    columns = ("design", "grows_into", "cables_touched", "of_all", "new_cables", "new_switches", "why_not")
    return [Table(columns, tuple(rows), f"Growing to {format_count(shown[0].growth.gpus)} GPUs")]


def _asked(request: Request) -> str:
    """Say what was asked for."""
    sites = ""
    if request.sites > 1:
        sites = f" on {request.sites} sites {format_length(request.span or 0.0)} apart"
    return f"{format_count(request.gpus)} GPUs with NICs of {format_rate(request.nic_rate)}{sites}"


def _row(design: Design) -> tuple[Any, ...]:
    """Return a design's figures."""
    return (
        design.name,
        "*" if design.pareto else "",
        design.switch,
        " + ".join(f"{count:,} {tier}" for tier, count in design.switches.items()),
        sum(design.cables.values()),
        _range(design.cost, design.gpus),
        _range(design.cost, _MILLION),
        _least(design.power, f"{design.power.mid / 1e3:,.0f}"),
        f"{design.efficiency:.3f}",
        *(f"{value:.3f}" for value in design.efficiencies.values()),
        f"{design.stops:.2f}",
        f"{design.score:.2f}",
    )


def _failing_row(design: Design) -> tuple[Any, ...]:
    """Return what failures do to a design."""
    failing = design.failing
    cut = f"{failing.worst_nics:,} NICs of {failing.worst_gpus:,} GPUs" if failing.worst_nics else "no NIC"
    return (
        design.name,
        design.any_to_any,
        f"{failing.stops_per_month:.2f}",
        f"{failing.stops_per_month / design.gpus * 1000:.3f}",
        f"{failing.lost_minutes_per_month:.2f}",
        cut,
    )


def _range(amount: Amount, unit: float) -> str:
    """Return middle, low and high in a unit, with a sign where a part has no figure."""
    if amount.large and not amount.high:
        return "unknown"
    low, mid, high = (_number(value / unit) for value in (amount.low, amount.mid, amount.high))
    return _least(amount, mid if low == high else f"{mid} ({low} to {high})")


def _number(value: float) -> str:
    """Return a number to four digits, whole from 1,000 on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"  # noqa: PLR2004 -- four digits


def _least(amount: Amount, text: str) -> str:
    """Return a text with ≥ where a part has no figure."""
    return f"≥ {text}" if amount.unknown else text


def _refused_row(group: Sequence[Rejection]) -> tuple[Any, ...]:
    """Return the first of like refusals, and how many others there are."""
    others = sum(len(each.designs) for each in group) - 1
    return group[0].designs[0], others or None, group[0].reason


def _remarks(shown: Sequence[Design]) -> list[str]:
    """Return what the tables' words mean, and what designs say of themselves."""
    routings = " and ".join(sorted({design.routing for design in shown}))
    front = "*: on the Pareto front of cost, power, efficiency, stops a month and reach (any_to_any)."
    lines = [f"{front} Efficiency: the least of three workloads', by {routings}, latency aside."]
    for name, said in (("cost", "price"), ("power", "largest draw")):
        parts = sorted({part for design in shown for part in getattr(design, name).unknown})
        if parts:
            lines.append(f"≥ at least: no {said} is published for {', '.join(parts)}.")
    remarks: dict[str, list[str]] = {}
    for design in shown:
        for remark in design.remarks:
            remarks.setdefault(remark, []).append(design.name)
    for remark, names in remarks.items():
        more = len(names) - _NAMED
        others = f" and {more} other{'s' if more > 1 else ''}" if more > 0 else ""
        lines.append(f"{', '.join(names[:_NAMED])}{others}: {remark}.")
    return lines


# ---- files -----------------------------------------------------------------------------------------------


def design_yaml(design: Design) -> str:
    """Return a design's spec as the text of a YAML file, which `netplan` reads back as the same fabric."""
    switches = ", ".join(f"{tier} {count}" for tier, count in design.switches.items())
    cables = ", ".join(f"{kind} {count}" for kind, count in design.cables.items())
    least = "at least " if design.cost.unknown else ""
    low, high = design.cost.low / _MILLION, design.cost.high / _MILLION
    cost = "unknown" if design.cost.large else f"{least}{low:,.2f} to {high:,.2f} M USD"
    head = (
        f"# For: {format_count(design.gpus)} GPUs; made by netplan plan.\n"
        f"# sizes: switches: {switches}; cables: {cables}\n"
        f"# switch {design.switch}, NIC {design.nic}; cost {cost}; efficiency {design.efficiency:.3f} by "
        f"{design.routing}\n"
    )
    plain = json.loads(json.dumps(dict(design.spec)))  # no anchors for what several sites share
    return head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)


def write_designs(designs: Sequence[Design], folder: str) -> list[str]:
    """Write each design's spec into a folder, which is made when it is not there.

    Returns
    -------
    list of str
        The paths.

    Raises
    ------
    OutputError
        The folder cannot be made, or a file cannot be written.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {folder!r}: {error.strerror or error}", hint="name another with --out"
        ) from None
    paths = []
    for design in designs:
        path = str(target / f"{design.name}.yaml")
        write_file(path, design_yaml(design).encode())
        paths.append(path)
    return paths
