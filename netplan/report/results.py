"""Results and comparisons as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.report.tables import Table
from netplan.simulate.compare import NotRun
from netplan.units import format_time

if TYPE_CHECKING:
    from netplan.simulate.compare import Comparison
    from netplan.simulate.result import Congestion, Result

_GB = 1e9


def result_tables(result: Result, by: str | None = None) -> list[Table]:
    """Return a result as tables: figures, loads by tier, the worst links, and a summary if asked for."""
    data = result.to_dict()["result"]
    demand, scenario = result.scenario.demand, result.scenario
    title = (
        f"{demand.name} ({demand.kind}, {demand.n_ranks:,} ranks) on {scenario.fabric.name}: "
        f"{scenario.routing}, {_control(result)}, {scenario.transport.name}, seed {scenario.options.seed}"
    )
    figures: list[tuple[str, Any]] = [
        ("completion_s", data["completion_s"]),
        ("ideal_s", data["ideal_s"]),
        ("latency_s", data["latency_s"]),
        ("algbw_gb_per_s", data["algbw_gb_per_s"]),
        ("busbw_gb_per_s", data["busbw_gb_per_s"]),
        ("efficiency mean_flow", data["efficiency"]["mean_flow"]),
        ("efficiency collective", data["efficiency"]["collective"]),
        ("efficiency worst_flow", data["efficiency"]["worst_flow"]),
        ("flows", data["flows"]),
        ("qps per flow", data["qps"]),
        ("flows limited by their window", data["window_limited_flows"]),
    ]
    if demand.protocol not in (None, "none"):
        figures.insert(0, ("algorithm, protocol", f"{demand.algorithm}, {demand.protocol}"))
    elif demand.algorithm not in (None, "ring", "concurrent", "direct"):
        figures.insert(0, ("algorithm", demand.algorithm))
    if result.congestion is not None:
        figures += _congestion(result.congestion)
    remarks = (_in_words(result), *result.remarks())
    tables = [Table(("figure", "value"), tuple(figures), title, remarks)]
    if data["flows"]:
        tables.append(
            Table.of(data["links_by_tier"], "links (load = carried / capacity, offered = wanted / capacity)")
        )
    if data["bottlenecks"]:
        tables.append(Table.of(data["bottlenecks"], "most contended links"))
    if by is not None and by != "tier":
        tables.append(Table.of(result.by(by), f"by {by}"))
    return tables


def _control(result: Result) -> str:
    """Name the congestion control, with parameters that were given."""
    scenario = result.scenario
    if result.congestion is None:
        return "max-min rates"
    given = "".join(f", {name} {value:g}" for name, value in scenario.cc_params.items())
    return f"{scenario.cc}{given}"


def _congestion(found: Congestion) -> list[tuple[str, Any]]:
    """Return queues, pauses, marks and losses."""
    queues = found.queues
    return [
        ("peak queue bytes", 0.0 if queues is None else queues.peak_bytes),
        ("peak queue at", None if queues is None else queues.worst_link),
        ("mean queue bytes", 0.0 if queues is None else queues.mean_bytes),
        ("pauses (PFC)", found.pfc.pause_events),
        *([("PFC watchdog events", found.pfc.watchdog_events)] if found.pfc.watchdog_events else []),
        ("time links were paused, together [s]", found.pfc.pause_time_s),
        ("marked packets", found.marked_packets),
        ("loss fraction", found.loss_fraction),
    ]


def _in_words(result: Result) -> str:
    """Say what held the demand back."""
    time = f"It takes {format_time(result.completion_s)}, {format_time(result.ideal_s)} without contention"
    if not len(result.rate):
        return f"{time}: all traffic stays inside hosts."
    if result.is_contended:
        worst = result.bottlenecks(1)[0]
        return f"{time}: {worst.link} is offered {worst.offered:.2f} times what it carries."
    if result.windowed:
        limited = f"{result.windowed:,} flows are limited by their window over the round-trip time"
        return f"{time}: no link is contended, but {limited}."
    return f"{time}: no link is contended."


def flow_table(result: Result) -> Table:
    """Return one row per flow: ends, bytes, rate, finish and the link that stops it."""
    fabric, demand = result.scenario.fabric, result.scenario.demand
    ends, stops = fabric.endpoints, result.bottleneck
    used = np.unique(ends.host[np.concatenate([demand.src, demand.dst])]).tolist()
    hosts = {node: fabric.node_name(node) for node in used}
    links = {int(link): fabric.link_name(int(link)) for link in set(stops.tolist()) - {-1}} | {-1: "window"}
    columns = ("phase", "src_host", "src_nic", "dst_host", "dst_nic", "channel", "size_bytes")
    rows = zip(
        demand.phase.tolist(),
        [hosts[node] for node in ends.host[demand.src].tolist()],
        ends.rail[demand.src].tolist(),
        [hosts[node] for node in ends.host[demand.dst].tolist()],
        ends.rail[demand.dst].tolist(),
        demand.channel.tolist(),
        demand.size.tolist(),
        (result.rate / _GB).tolist(),
        result.finish.tolist(),
        [links[link] for link in stops.tolist()],
        strict=True,
    )
    return Table((*columns, "rate_gb_per_s", "finish_s", "bottleneck"), tuple(rows))


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return a comparison as one table with its remarks."""
    base = comparison.baseline
    demand = base.scenario.demand
    title = (
        f"{demand.name} ({demand.kind}, {demand.n_ranks:,} ranks) on {base.scenario.fabric.name}, "
        f"baseline {base.scenario.routing}"
    )
    every = comparison.in_order()
    entries: list[tuple[str, str, dict[str, Any], Result | None, Any]] = [
        (f"{base.scenario.routing} (baseline)", base.scenario.cc, {}, base, None)
    ]
    entries += [
        (row.routing, row.cc, row.params, None, None)
        if isinstance(row, NotRun)
        else (row.routing, row.cc, row.params, row.result, row.versus_baseline)
        for row in every
    ]
    rows: list[dict[str, Any]] = []
    has_params = any("." in name for row in every for name in row.params)
    has_queues = any(row.result.congestion is not None for row in comparison.rows)
    for routing, cc, params, result, versus in entries:
        if result is None:  # the remarks say why
            own = {"routing": f"{routing} (not run)", "cc": cc, "qps": params.get("qps")}
            rows.append(dict.fromkeys(rows[0]) | own | ({"params": _params(params)} if has_params else {}))
            continue
        e, busbw = result.efficiency, result.busbw
        rows.append(
            {
                "routing": routing,
                "cc": cc,
                "qps": params.get("qps", result.scenario.demand.qps),
                **({"params": _params(params)} if has_params else {}),
                "mean_flow": e.mean_flow,
                "collective": e.collective,
                "worst_flow": e.worst_flow,
                "completion_ms": result.completion_s * 1e3,
                "busbw_gb_per_s": None if busbw is None else busbw / _GB,
                "x mean_flow": None if versus is None else versus.mean_flow,
                "x collective": None if versus is None else versus.collective,
                "x completion": None if versus is None else versus.completion,
                **(_queue_columns(result.congestion) if has_queues else {}),
            }
        )
    remarks = ("x: over the baseline's figure.", *comparison.remarks())
    return [Table.of(rows, title, remarks)]


def _params(params: dict[str, Any]) -> str:
    """Return the parameters of a row that differ between rows, rates in bits."""
    from netplan.congestion.cc.registry import PROTOCOLS
    from netplan.units import format_rate, format_size

    texts = []
    for name, value in params.items():
        cc, dot, own = name.partition(".")
        if not dot:
            continue
        unit = next(each.unit for each in PROTOCOLS.find(cc).parameters if each.name == own)
        write = {"s": format_time, "bytes": format_size, "bytes/s": format_rate}.get(unit)
        texts.append(f"{own} {write(value) if write else f'{value:g}'}")
    return ", ".join(texts)


def _queue_columns(found: Congestion | None) -> dict[str, Any]:
    """Return queues, pauses and losses of a row; nothing for max-min."""
    if found is None:
        return {"peak_queue_kb": None, "paused_ms": None, "loss": None}
    return {
        "peak_queue_kb": 0.0 if found.queues is None else found.queues.peak_bytes / 1e3,
        "paused_ms": found.pfc.pause_time_s * 1e3,
        "loss": found.loss_fraction,
    }
