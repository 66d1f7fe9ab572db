"""A bill of materials as tables for people, and as a list for purchasing."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from netplan.planning.bom import Bill, Line, Range, Totals

#: Powers from here on are shown in whole watts.
_WHOLE = 100

__all__ = ["bill_tables", "cabling_csv", "purchase_table"]


def bill_tables(bill: Bill) -> list[Table]:
    """Return the lines and the totals."""
    columns = ("part", "use", "length_m", "quantity", "spares", "unit_usd", "cost_usd", "power_w")
    rows = tuple(_row(line) for line in bill.lines)
    return [
        Table(columns, rows, f"{bill.fabric}: bill of materials"),
        Table(("total", "value"), tuple(_total_rows(bill.totals)), remarks=tuple(_remarks(bill))),
    ]


def purchase_table(bill: Bill) -> Table:
    """Return what is to be ordered: a row for each part and length, spares included."""
    orders: dict[tuple[str, str, float | None], list[Line]] = {}
    for line in bill.lines:
        orders.setdefault((line.part, line.kind, line.length), []).append(line)
    rows = []
    for (part, kind, length), lines in orders.items():
        unit = lines[0].unit_cost
        needed, spares = sum(line.quantity for line in lines), sum(line.spares for line in lines)
        costs = [None if unit is None else getattr(unit, name) for name in ("low", "mid", "high")]
        total = None if unit is None else unit.mid * (needed + spares)
        use = "; ".join(dict.fromkeys(line.use for line in lines))
        rows.append(
            (part, kind, length, needed, spares, needed + spares, *costs, total, use, lines[0].source)
        )
    columns = ("part", "kind", "length_m", "needed", "spares", "order")
    prices = ("unit_cost_low_usd", "unit_cost_mid_usd", "unit_cost_high_usd", "cost_mid_usd")
    return Table((*columns, *prices, "use", "source"), tuple(rows))


def cabling_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a cabling list as comma-separated values."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(out, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return out.getvalue()


def _row(line: Line) -> tuple[Any, ...]:
    """Return a line of the bill; unknown figures are None."""
    power = None if line.power_max is None else line.power_max * line.quantity
    if power is None and line.power_typical is not None:
        power = line.power_typical * line.quantity
    if power is not None and power >= _WHOLE:
        power = round(power)
    unit = "in the host" if line.is_included else _range(line.unit_cost)
    cost = None if line.is_included else _range(line.cost)
    return (
        line.part,
        line.use,
        None if line.length is None else f"{line.length:,g}",
        line.quantity,
        line.spares,
        unit,
        cost,
        power,
    )


def _range(cost: Range | None) -> str | None:
    """Return a range of dollars; None when unknown."""
    if cost is None:
        return None
    return f"{cost.low:,.0f}" if cost.low == cost.high else f"{cost.low:,.0f} to {cost.high:,.0f}"


def _power(totals: Totals, said: Mapping[str, str], unit: float) -> str:
    """Return the network's draw in a unit [W]."""
    typical = f"{said['power_typical']}{totals.power_typical / unit:,.1f} typical"
    return f"{typical}, {said['power_max']}{totals.power_max / unit:,.1f} largest"


def _total_rows(totals: Totals) -> list[tuple[str, Any]]:
    """Return the totals with "at least" where something is unknown."""
    said = {name: "at least " if parts else "" for name, parts in totals.unknown.items()}
    per_gpu = totals.cost.times(1 / totals.gpus)
    rows: list[tuple[str, Any]] = [
        ("switches", totals.switches),
        ("NICs", totals.nics),
        ("transceivers", totals.transceivers),
        *([("line terminals", totals.line_terminals)] if totals.line_terminals else []),
        ("cables", totals.cables),
        ("breakout cables", totals.breakout_cables),
        ("fibre pairs", totals.fibre_pairs),
        ("spare pieces", totals.spares),
        ("rack units", f"{said['rack_units']}{totals.rack_units:,}"),
        ("network cost [USD]", f"{said['cost']}{_range(totals.cost)}, middle {totals.cost.mid:,.0f}"),
        ("network cost per GPU [USD]", f"{said['cost']}{_range(per_gpu)}, middle {per_gpu.mid:,.0f}"),
        (
            "network power [kW]",
            _power(totals, said, 1e3),
        ),
        (
            "network power per GPU [W]",
            _power(totals, said, totals.gpus),
        ),
    ]
    if totals.host_power is not None:
        rows.append(("hosts' power [kW]", f"{totals.host_power / 1e3:,.1f}"))
        rows.append(("network's share of power", f"{100 * (totals.network_share or 0):.1f} %"))
    if totals.host_cost is not None:
        rows.append(("hosts' cost [USD]", _range(totals.host_cost)))
    return rows


def _remarks(bill: Bill) -> list[str]:
    """Return the remarks, and which parts have no figure."""
    words = {
        "cost": "no price is published",
        "power_typical": "no power is published",
        "power_max": "no largest power is published",
        "rack_units": "no height is published",
    }
    unknown = bill.totals.unknown
    shown = {name: parts for name, parts in unknown.items() if parts}
    if shown.get("power_max") == shown.get("power_typical"):
        shown.pop("power_max", None)
    return [
        *(f"at least: {words[name]} for {', '.join(parts)}." for name, parts in shown.items()),
        *bill.remarks,
    ]
