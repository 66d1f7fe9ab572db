"""A growth plan as tables for people, and its steps as a list for those who carry it out."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from netplan.planning.growth import Beginning, Growth, Purchase

__all__ = ["choice_tables", "growth_tables", "steps_csv"]


def growth_tables(growth: Growth, bought: Sequence[Purchase], remarks: Sequence[str] = ()) -> list[Table]:
    """Return what stays, moves and is new, and what is to buy."""
    data = growth.to_dict()
    name = f"{data['before']} to {data['after']}"
    gpus, hosts = data["gpus"], data["hosts"]
    switches = [{"tier": tier, **counts} for tier, counts in data["switches"].items()]
    cables = [{"cables": kind, **counts} for kind, counts in data["cables"].items()]
    title = (
        f"{name}: {gpus['before']:,} to {gpus['after']:,} GPUs; {hosts['kept']:,} of {hosts['before']:,} "
        "hosts keep their seats"
    )
    tables = [
        Table.of(switches, title),
        Table.of(cables, f"{name}: cables", (_verdict(growth),)),
    ]
    rows = [
        {
            "part": each.part,
            "kind": each.kind,
            "length_m": None if each.length is None else f"{each.length:,g}",
            "before": each.before,
            "after": each.after,
            "buy": each.buy,
            "left over": each.left,
            "cost_usd": None if each.cost is None else round(each.cost),
        }
        for each in bought
    ]
    if rows:
        tables.append(Table.of(rows, f"{name}: parts to buy", (*_cost(bought), *remarks)))
    return tables


def _verdict(growth: Growth) -> str:
    """Return how many cables are touched, and that it could not be fewer, if it could not."""
    data = growth.to_dict()
    total = growth.before.links.n_cables
    least = data["touched_at_least"]
    said = f"{data['touched']:,} of {total:,} cables in place are touched ({data['touched_fraction']:.1%}); "
    return said + (
        "no plan between these two touches fewer."
        if data["touched"] == least
        else f"at least {least:,} are in any plan between these two."
    )


def _cost(bought: Sequence[Purchase]) -> list[str]:
    """Return what the parts to buy cost together."""
    needed = [each for each in bought if each.buy]
    unknown = list(dict.fromkeys(each.part for each in needed if each.cost is None))
    total = sum(each.cost or 0.0 for each in needed)
    said = "at least " if unknown else ""
    why = f": no price is published for {', '.join(unknown)}" if unknown else ""
    return [f"Parts to buy: {said}{total:,.0f} USD at middle prices{why}."]


def choice_tables(choices: Sequence[Beginning]) -> list[Table]:
    """Return ways to begin, the one that moves the fewest cables first."""
    after = choices[0].growth.after
    rows: list[dict[str, Any]] = []
    for each in choices:
        data = each.to_dict()
        rows.append(
            {
                "design": each.why,
                "switches by tier": " / ".join(str(count) for count in data["switches"].values()),
                "switches now": data["switches_total"],
                "switches later": data["bought_later"],
                "cables now": data["cables"],
                "touched": data["touched"],
                "at least": data["touched_at_least"],
            }
        )
    gpus = choices[0].growth.before.n_gpus
    title = f"{gpus:,} GPUs that grow into {after.name} ({after.n_gpus:,} GPUs)"
    remark = (
        "touched: cables in place that move or go when it grows; at least: in any plan between the two sizes."
    )
    return [Table.of(rows, title, (remark,))]


def steps_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return steps as comma-separated values, numbered from 1."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for number, row in enumerate(rows, 1):
        if writer is None:
            writer = csv.DictWriter(out, ["step", *row], lineterminator="\n")
            writer.writeheader()
        writer.writerow({"step": number, **row})
    return out.getvalue()
