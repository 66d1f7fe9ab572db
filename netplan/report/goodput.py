"""Training goodput as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table
from netplan.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.planning.goodput import Goodput, TargetRow
    from netplan.planning.goodput_events import EventsMean

_HOURS = 3600


def goodput_tables(
    goodput: Goodput,
    played: EventsMean | None = None,
    targets: Sequence[TargetRow] = (),
    target: float = 0.99,
) -> list[Table]:
    """Return where the time goes, the causes, and what was played or asked of recovery."""
    tables = [_shares(goodput, played), _causes(goodput)]
    if targets:
        tables.append(_targets(targets, target))
    return tables


def _time(seconds: float) -> str:
    """Return a time in four digits."""
    return "never" if math.isinf(seconds) else format_time(float(f"{seconds:.3g}"))


def _shares(goodput: Goodput, played: EventsMean | None) -> Table:
    rows: list[dict[str, Any]] = [
        {"of the time": name, "share": f"{value:.2%}"}
        for name, value in (
            ("effective training", goodput.effective_time),
            ("detection", goodput.detection),
            ("restart", goodput.restart),
            ("work done again", goodput.lost_work),
            ("checkpoints", goodput.checkpoints),
            ("waiting for a host", goodput.waiting),
            ("slower network", goodput.degraded),
        )
    ]
    recovery = goodput.recovery
    spares = "given" if recovery.spares is not None else "the fewest with hardly any wait"
    interval = "given" if recovery.interval_s is not None else f"rule: {recovery.rule}"
    remarks = [
        (
            f"Interrupted every {_time(goodput.mtbf_s)}, {goodput.interruptions(1):.3g} times a day; "
            f"recovery takes {_time(recovery.recovery_s)}."
        ),
        (
            f"A checkpoint every {_time(goodput.interval_s)} ({interval}) stops the job for "
            f"{_time(recovery.write_s)}."
        ),
        f"{goodput.spares} spare hosts ({spares}); a host is back after {_time(recovery.repair_s)}.",
    ]
    effect = goodput.network
    if effect is not None:
        remarks.append(
            f"Network: a failure every {_time(_every(effect.failures_per_hour))}; one that stops the job "
            f"every {_time(_every(effect.stops_per_hour))}, the others degrade it, with "
            f"{effect.communication_share:.0%} of the step communication ({effect.workload})."
        )
        if effect.unknown:
            remarks.append(f"Rate of {', '.join(effect.unknown)} is not known: left out.")
    if played is not None:
        remarks.append(
            f"Played {played.runs} times over {played.days:g} days: {played.effective_time:.2%} +- "
            f"{played.standard_error:.2%} effective ({played.worst:.2%} to {played.best:.2%}), "
            f"{played.interruptions:.1f} interruptions."
        )
    title = f"goodput of a job on {goodput.gpus:,} GPUs in {goodput.hosts:,} hosts"
    return Table.of(rows, title, remarks)


def _every(per_hour: float) -> float:
    return _HOURS / per_hour if per_hour else math.inf


def _causes(goodput: Goodput) -> Table:
    rows = [
        {
            "cause": row.cause,
            "per day": row.per_hour * 24,
            "share": f"{row.share:.1%}",
            "takes a host": row.takes_host,
            "source": row.source,
        }
        for row in goodput.causes
    ]
    return Table.of(rows, "interruptions by cause")


def _targets(targets: Sequence[TargetRow], target: float) -> Table:
    writes = sorted({row.write_s for row in targets})
    by = {(row.gpus, row.write_s): row for row in targets}
    rows = []
    for gpus in dict.fromkeys(row.gpus for row in targets):
        cells: dict[str, Any] = {"GPUs": gpus, "interrupted every": _time(by[gpus, writes[0]].mtbf_s)}
        for write in writes:
            longest = by[gpus, write].recovery_s
            name = f"write {_time(write)}" if write else "write 0 s"
            cells[name] = "none does" if longest is None else _time(longest)
        rows.append(cells)
    remark = (
        "The best interval between checkpoints; spares never lack. None does: checkpoints alone take more."
    )
    return Table.of(
        rows, f"longest recovery for {target:.4g} of the time, by checkpoint write time", (remark,)
    )
