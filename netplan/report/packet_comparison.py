"""Tables of models against packet-level simulators."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.report.tables import Table
from netplan.simulate.reference.comparison import RunComparison

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netplan.simulate.reference.claims import Claim
    from netplan.simulate.reference.comparison import Summary

__all__ = ["claims_table", "comparison_from_dict", "comparison_table", "comparison_to_dict", "left_out_table"]

#: Figures closer than this over seeds are shown as one.
_SAME = 5e-4

_PER_FLOW = ("flow_errors", "rank_errors", "goodput_errors")

#: Column of the table, member of `Summary`, whether it is shown in percent.
_COLUMNS = (
    ("simulator", "simulator", False),
    ("scenario", "scenario", False),
    ("protocol", "protocol", False),
    ("run", "name", False),
    ("runs", "runs", False),
    ("flows", "flows", False),
    ("flow median %", "flow_median", True),
    ("flow p90 %", "flow_p90", True),
    ("rank median %", "rank_median", True),
    ("rank p90 %", "rank_p90", True),
    ("makespan %", "makespan_error", True),
    ("worst %", "makespan_worst", True),
    ("seed spread %", "seed_spread", True),
    ("goodput %", "goodput_error", True),
    ("total %", "goodput_total", True),
    ("queue peak ×", "queue_peak", False),
    ("queue mean ×", "queue_mean", False),
    ("PFC right", "pauses_right", False),
)


def comparison_to_dict(one: RunComparison) -> dict[str, Any]:
    """Return a comparison as JSON holds it."""
    row = asdict(one)
    for name in _PER_FLOW:
        row[name] = [round(float(value), 6) for value in row[name]]
    return row


def comparison_from_dict(row: Mapping[str, Any]) -> RunComparison:
    """Return the comparison that `comparison_to_dict` wrote."""
    members = {name: row[name] for name in RunComparison.__dataclass_fields__}
    for name in _PER_FLOW:
        members[name] = np.array(members[name], float)
    if members["pauses"] is not None:
        members["pauses"] = tuple(members["pauses"])
    return RunComparison(**members)


def comparison_table(rows: Sequence[Summary], title: str = "") -> Table:
    """Return summaries as a table; columns that are empty in every row are left out.

    Parameters
    ----------
    rows
        What `netplan.simulate.reference.comparison.summarise` made.
    title
        Line above it.
    """
    full = [
        (column, [_shown(getattr(row, member), percent=percent) for row in rows])
        for column, member, percent in _COLUMNS
        if any(getattr(row, member) not in (None, "") for row in rows)
    ]
    return Table(
        columns=tuple(column for column, _ in full),
        rows=tuple(zip(*(values for _, values in full), strict=True)) if rows else (),
        title=title,
    )


def left_out_table(left_out: Sequence[tuple[str, str]], title: str = "Left out") -> Table:
    """Return which records were left out, by reason.

    Parameters
    ----------
    left_out
        (name, reason) of each.
    title
        Line above it.
    """
    names: dict[str, list[str]] = {}
    for name, reason in left_out:
        names.setdefault(reason, []).append(name)
    rows = tuple((reason, len(found), ", ".join(found)) for reason, found in names.items())
    return Table(columns=("reason", "records", "names"), rows=rows, title=title)


def claims_table(claims: Sequence[Claim], title: str = "") -> Table:
    """Return what no fixed rule gives, run by run.

    Parameters
    ----------
    claims
        What `netplan.simulate.reference.claims.claims` made.
    title
        Line above it.
    """
    rows = tuple(
        (
            one.kind,
            one.simulator,
            one.run,
            f"{one.measured:.3f}",
            f"{one.mean:.3f}",
            f"{one.low:.3f} to {one.high:.3f}" if one.high - one.low >= _SAME else "",
        )
        for one in sorted(claims, key=lambda one: (one.kind, one.simulator, one.run))
    )
    columns = ("claim", "simulator", "run", "simulator's", "netplan, mean", "over seeds")
    return Table(columns=columns, rows=rows, title=title)


def _shown(value: object, *, percent: bool) -> object:
    """Return a figure with the digits that mean something."""
    if isinstance(value, float):
        return f"{100 * value:.1f}" if percent else f"{value:.2f}"
    return value
