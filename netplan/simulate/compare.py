"""The same demand on the same hosts under several settings, against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.fabric import LINK_KINDS
from netplan.routing import SCHEMES
from netplan.routing.ib_static import is_direct
from netplan.simulate.result import unread_remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.simulate.result import Result

#: Version of the JSON that `Comparison.to_dict` makes.
SCHEMA = "netplan/comparison/1"

_NOTHING_CONTENDED = (
    "No link is offered more than it carries under any of these settings: every flow gets the line rate of "
    "its NICs, so routing changes nothing here. What differs is packet format and latency."
)

_UP_DOWN = (
    "The baseline is OpenSM's up/down on this fabric, with cables on ports in order; its result depends on "
    "port numbers. Compare with --baseline ib-random or ib-adaptive as well."
)

_MIN_HOP = (
    "The baseline is OpenSM's minhop on this direct network: balanced shortest paths, which can deadlock. "
    "Engines that cannot (lash, dfsssp, torus-2QoS) spread otherwise. Compare with --baseline ib-random or "
    "ib-adaptive as well."
)

_ONLY_NICS = (
    "Only NIC ports are contended: their cables are shared whatever the routing, so it changes nothing."
)

_HOST_LEAF = LINK_KINDS.index("host_leaf")

#: Relative difference of completion times below which two settings gave the same.
_SAME = 1e-6


@dataclass(frozen=True)
class Versus:
    """A result over the baseline's."""

    mean_flow: float
    """Ratio of the mean-flow efficiencies."""
    collective: float
    """Ratio of the collective efficiencies."""
    completion: float
    """Completion time over the baseline's: 2 takes twice as long."""


@dataclass(frozen=True, eq=False)
class Row:
    """One setting."""

    routing: str
    cc: str
    params: dict[str, Any]
    """Settings beside routing and congestion control that differ between rows."""
    result: Result
    versus_baseline: Versus


@dataclass(frozen=True)
class NotRun:
    """A setting that cannot be run."""

    routing: str
    cc: str
    params: dict[str, Any]
    """As in `Row`."""
    reason: str
    """What refused it."""
    place: int
    """Rows of the grid before it, those that were not run included."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of several settings and of the baseline they are held against."""

    baseline: Result
    rows: tuple[Row, ...]
    unread: tuple[str, ...] = ()
    """Settings that no congestion control of the rows reads."""
    not_run: tuple[NotRun, ...] = ()
    """Settings of the grid that cannot be run, in its order."""

    def in_order(self) -> list[Row | NotRun]:
        """Return all rows of the grid in its order, with those that were not run."""
        every: list[Row | NotRun] = list(self.rows)
        for one in self.not_run:
            every.insert(one.place, one)
        return every

    def remarks(self) -> list[str]:
        """Say in words which settings changed nothing, and why."""
        results = [self.baseline, *(row.result for row in self.rows)]
        if not any(result.is_contended for result in results):
            remarks = [_NOTHING_CONTENDED]
        else:
            remarks = [*self._on_contention(results), *self._on_equal_rows()]
        remarks += self._on_qps()
        scenario = self.baseline.scenario
        if (
            scenario.routing == "ib-static"
            and scenario.fabric.structure is None
            and self.baseline.is_contended
        ):
            remarks.append(_MIN_HOP if is_direct(scenario.fabric) else _UP_DOWN)
        remarks += self._on_protocols()
        remarks += [
            f"{one.routing} with {one.cc} was not run: {reason}."
            for reason, one in {one.reason: one for one in reversed(self.not_run)}.items()
        ][::-1]
        windowed = max(result.windowed for result in results)
        return [*remarks, _window_remark(windowed)] if windowed else remarks

    def _on_contention(self, results: Sequence[Result]) -> list[str]:
        """Say where contention is, when that explains the whole table."""
        if all(_only_nics(result) for result in results):
            return [] if any(result.congestion for result in results) else [_ONLY_NICS]
        if not self.baseline.is_contended:
            return [f"The baseline {self.baseline.scenario.routing} has no contended link on this demand."]
        return []

    def _on_equal_rows(self) -> list[str]:
        """Say which rows are equal because nothing is contended under them."""
        free = [row for row in self.rows if not row.result.is_contended]
        if len(free) < 2:  # noqa: PLR2004 -- two can be equal
            return []
        return [f"{_names(free)} give the same rates: under each of them no link is contended."]

    def _on_qps(self) -> list[str]:
        """Say under which routings the number of QPs changed nothing."""
        remarks = []
        for routing in dict.fromkeys(row.routing for row in self.rows if "qps" in row.params):
            rows = [row for row in self.rows if row.routing == routing]
            times = [row.result.completion_s for row in rows]
            if len(rows) > 1 and max(times) - min(times) <= _SAME * max(times):
                remarks.append(f"More QPs change nothing under {routing}: {_qp_reason(rows[0])}.")
        return remarks

    def _on_protocols(self) -> list[str]:
        """Say what of congestion controls and their parameters changed nothing, and what was supposed."""
        ccs = ", ".join(dict.fromkeys(row.cc for row in self.rows))
        remarks = [unread_remark(name, ccs) for name in self.unread]
        ran = [row for row in self.rows if row.result.congestion is not None]
        for routing in dict.fromkeys(row.routing for row in ran):
            rows = [row for row in ran if row.routing == routing]
            if not any(row.result.is_contended for row in rows):
                remarks.append(
                    f"NP242: under {routing} no link is contended: congestion control has nothing to share "
                    "out; what its rows take beyond max-min is the protocols' own margin."
                )
            remarks += _equal_parameters(routing, rows)
            remarks += _equal_protocols(routing, rows)
        for code in ("NP241", "NP243"):
            found = {text for row in ran for text in row.result.remarks() if text.startswith(code)}
            remarks += sorted(found)[:1]
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "schema": SCHEMA,
            "baseline": _entry(self.baseline),
            "rows": [_row_to_dict(row) for row in self.in_order()],
            "remarks": self.remarks(),
        }


def _row_to_dict(row: Row | NotRun) -> dict[str, Any]:
    """Return a row as plain data: its result null and the reason beside it where it was not run."""
    setting = {"routing": row.routing, "cc": row.cc, "params": row.params}
    if isinstance(row, NotRun):
        return {**setting, "result": None, "manifest": None, "versus_baseline": None, "reason": row.reason}
    return {
        **setting,
        **_entry(row.result),
        "versus_baseline": vars(row.versus_baseline),
        "reason": None,
    }


def _equal_parameters(routing: str, rows: Sequence[Row]) -> list[str]:
    """Say which parameters changed nothing."""
    remarks = []
    for name in dict.fromkeys(key for row in rows for key in row.params if "." in key):
        varied = [row for row in rows if name in row.params]
        others: dict[str, list[float]] = {}
        for row in varied:
            rest = {key: value for key, value in row.params.items() if key != name}
            others.setdefault(repr(rest), []).append(row.result.completion_s)
        if all(max(times) - min(times) <= _SAME * max(times) for times in others.values()):
            congestion = varied[0].result.congestion
            marked = congestion is not None and congestion.marked_packets > 0
            why = "" if marked or "ecn" not in _signals(varied[0].cc) else ": no packet was marked"
            remarks.append(f"NP214: {name} changes nothing under {routing}{why}.")
    return remarks


def _equal_protocols(routing: str, rows: Sequence[Row]) -> list[str]:
    """Say which protocols gave the same."""
    remarks, told = [], set[str]()
    for row in rows:
        same = [
            other.cc
            for other in rows
            if other.params == row.params
            and abs(other.result.completion_s - row.result.completion_s) <= _SAME * row.result.completion_s
        ]
        names = list(dict.fromkeys(same))
        if len(names) > 1 and row.cc not in told:
            told.update(names)
            remarks.append(
                f"NP242: {', '.join(names[:-1])} and {names[-1]} give the same completion under {routing}: "
                "none of their signals ever asked a sender to slow down."
            )
    return remarks


def _signals(cc: str) -> Sequence[str]:
    return PROTOCOLS.find(cc).signals


def compare_results(
    baseline: Result,
    settings: Sequence[tuple[str, str, dict[str, Any], Result]],
    *,
    unread: Sequence[str] = (),
    not_run: Sequence[NotRun] = (),
) -> Comparison:
    """Hold results against a baseline.

    Parameters
    ----------
    baseline
        Result of the baseline on the same hosts and demand.
    settings
        (routing, congestion control, other settings, result) of each row.
    unread
        Settings that no congestion control of the rows reads.
    not_run
        Settings that cannot be run.
    """
    rows = []
    for routing, cc, params, result in settings:
        mine, base = result.efficiency, baseline.efficiency
        versus = Versus(
            mean_flow=mine.mean_flow / base.mean_flow,
            collective=mine.collective / base.collective,
            completion=result.completion_s / baseline.completion_s,
        )
        rows.append(Row(routing, cc, params, result, versus))
    return Comparison(baseline, tuple(rows), tuple(unread), tuple(not_run))


def _entry(result: Result) -> dict[str, Any]:
    """Return a result's data with the name of its routing."""
    data = result.to_dict()
    return {"routing": result.scenario.routing, "result": data["result"], "manifest": data["manifest"]}


def _only_nics(result: Result) -> bool:
    """Whether every flow is stopped by a NIC port's cable, and some by a shared one."""
    stops = result.bottleneck
    kind = result.scenario.fabric.links.kind
    return result.is_contended and bool((stops >= 0).all()) and bool((kind[stops] == _HOST_LEAF).all())


def _names(rows: Sequence[Row]) -> str:
    """Return the rows' settings as a list in words."""
    names = [row.routing + (f" (qps {row.params['qps']})" if "qps" in row.params else "") for row in rows]
    return ", ".join(names[:-1]) + " and " + names[-1]


def _qp_reason(row: Row) -> str:
    """Say why QPs do not matter to a row."""
    if not row.result.is_contended:
        return "no link is contended"
    if not SCHEMES.find(row.routing).uses_qps:
        return "all QPs of a flow take one path"
    return "the same link stays the most loaded"


def _window_remark(count: int) -> str:
    """Say that windows limit flows."""
    return (
        f"{count:,} flows are limited by their window over the round-trip time, not by links: a larger "
        "window (NCCL_BUFFSIZE) or more channels would help, routing does not."
    )
