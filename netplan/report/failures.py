"""A study of failures as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.report.tables import Table

if TYPE_CHECKING:
    from netplan.planning.failures import ClassRow, FailureStudy


def failure_tables(study: FailureStudy) -> list[Table]:
    """Return single failures by class, their rates, and the random draws."""
    name = study.fabric["name"]
    workloads = ", ".join(f"{n} ({w['kind']}, {w['ranks']:,} ranks)" for n, w in study.workloads.items())
    tables = [
        Table.of(
            [_row(row, study) for row in study.classes],
            f"single failures of {name}: {workloads} by {study.routing}, "
            f"seed {study.seed}; failures, stops and minutes a month",
            (*study.notes, *_total_in_words(study)),
        ),
        Table.of(_rates(study), "rates"),
    ]
    if study.random:
        tables.append(Table.of(_draws(study), "random failures", ("worst seed: of the failures.",)))
    return tables


def _row(row: ClassRow, study: FailureStudy) -> dict[str, Any]:
    """Return one class as a row."""
    cells: dict[str, Any] = {
        "class": row.kind,
        "count": row.elements,
        "failed": row.failure,
        "hosts off": row.hosts_cut_off,
        "GPUs off": row.gpus_cut_off,
        "NICs off": row.nics_cut_off,
        "ports lost": row.nic_ports_lost,
    }
    for name, left in row.left.items():
        cells[f"left {name}"] = left
        if study.exhaustive:
            cells[f"worst {name}"] = row.worst[name]
    cells["failures"] = row.failures_per_month
    cells["stops"] = row.stops_per_month
    cells["degraded_min"] = row.degraded_minutes_per_month
    for name in row.left:
        cells[f"lost_min {name}"] = (row.lost_minutes_per_month or {}).get(name)
    return cells


def _rates(study: FailureStudy) -> list[dict[str, Any]]:
    """Return the rates of the kinds that occur."""
    rows = {row.kind: row.rate for row in study.classes}
    return [
        {
            "class": kind,
            "%/month": rate.percent_per_month,
            "per": "km" if rate.per_km else "element",
            "repair_h": rate.repair_h,
            "confidence": rate.confidence,
            "source": rate.source,
        }
        for kind, rate in rows.items()
    ]


def _draws(study: FailureStudy) -> list[dict[str, Any]]:
    """Return the random draws as rows."""
    rows = []
    for row in study.random:
        cells: dict[str, Any] = {"failures": row.failure, "samples": row.samples}
        for key in ("hosts_cut_off", "nics_cut_off"):
            spread = getattr(row, key)
            cells |= {f"{key} mean": spread["mean"], f"{key} worst": spread["worst"]}
        for name, left in row.left.items():
            cells |= {
                f"left {name} mean": left["mean"],
                f"left {name} worst": left["worst"],
                f"worst seed {name}": left["worst_seed"],
            }
        rows.append(cells)
    return rows


def _total_in_words(study: FailureStudy) -> list[str]:
    """Say what all classes come to in a month."""
    totals = study.totals()
    least = "at least " if totals["unknown_rates"] else ""
    lost = ", ".join(f"{minutes:.3g} ({name})" for name, minutes in totals["lost_minutes_per_month"].items())
    text = (
        f"A month has {least}{totals['failures_per_month']:.3g} failures, "
        f"{totals['stops_per_month']:.3g} stops of a job on all NICs and "
        f"{totals['degraded_minutes_per_month']:.3g} degraded minutes; of the whole fabric's bandwidth "
        f"{lost} minutes are lost."
    )
    return [text]
