"""What failures did as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table
from netplan.simulate.damage import losses_in_words

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.fabric.failures import Losses
    from netplan.simulate.damage import Aftermath
    from netplan.simulate.result import Result

_GB = 1e9


def damage_tables(aftermath: Aftermath | None) -> list[Table]:
    """Return a run on a damaged fabric beside the same on the undamaged one; nothing without failures."""
    if aftermath is None:
        return []
    damage = aftermath.damaged.scenario.fabric.damage
    assert damage is not None
    rows = []
    sides = zip(_figures(aftermath.whole), _figures(aftermath.damaged), strict=True)
    for (name, before), (_, after) in sides:
        ratio = after / before if before and after is not None else None
        rows.append({"figure": name, "undamaged": before, "damaged": after, "ratio": ratio})
    return [Table.of(rows, f"failures: {', '.join(damage.failures)}", aftermath.remarks())]


def _figures(result: Result) -> list[tuple[str, Any]]:
    """Return the figures that are compared."""
    busbw, e = result.busbw, result.efficiency
    return [
        ("ranks", result.scenario.demand.n_ranks),
        ("flows", len(result.rate)),
        ("completion_s", result.completion_s),
        ("busbw_gb_per_s", None if busbw is None else busbw / _GB),
        ("all flows gb_per_s", float(result.rate.sum()) / _GB),
        ("efficiency mean_flow", e.mean_flow),
        ("efficiency collective", e.collective),
        ("efficiency worst_flow", e.worst_flow),
    ]


def losses_table(damaged: Fabric, losses: Losses) -> Table:
    """Return what was lost, as remarks below what failed."""
    assert damaged.damage is not None
    remarks = [
        *losses_in_words(losses),
        "Every row, the baseline included, runs on the damaged fabric: the same hosts and demand.",
    ]
    return Table((), (), f"failures: {', '.join(damaged.damage.failures)}", tuple(remarks))
