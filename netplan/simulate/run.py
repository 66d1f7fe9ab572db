"""Run a scenario, phase by phase.

A *lockstep* phase (pipelined rings) moves at its slowest flow: its network time is the largest
bytes / max-min rate with all flows active. All its flows carry equal bytes to the end, so the
most loaded link, and with it the time, is the same as if flows ended one by one. In any other
phase rates are solved anew whenever a flow starts or ends.

On top of the network's time comes latency: propagation on each cable, each switch, and the two
hosts once a message. In a ring a piece of data travels every edge in turn, ``passes`` times.
A flow's window limits its rate to window / RTT, where that is less than its NIC's line rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.efficiency import Efficiency, sender_efficiency
from netplan.congestion.line_rate import SCALE_UP_LATENCY_S, latencies
from netplan.kernels.completion import complete
from netplan.kernels.max_min import solve_max_min
from netplan.routing import FlowTable, Routes, route_flows
from netplan.simulate.result import PhaseResult, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.simulate.scenario import Scenario


@dataclass(frozen=True, eq=False)
class _Flows:
    """The flows of one phase, cut out of the demand."""

    table: FlowTable
    size: NDArray[np.float64]
    start: NDArray[np.float64]
    ring: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Run:
    """What one phase's flows did on some routes."""

    rate: NDArray[np.float64]
    """(n_flows,) first rates [bytes/s]."""
    network: NDArray[np.float64]
    """(n_flows,) last byte, latency aside [s]."""
    path_rate: NDArray[np.float64]
    """(n_paths,) first rate of all the path's QPs together [bytes/s]."""
    events: int


def simulate(scenario: Scenario, *, progress: Callable[[str, int, int], None] | None = None) -> Result:
    """Run a scenario.

    Parameters
    ----------
    scenario
        What to run.
    progress
        Called now and then with (phase name, finished messages, all messages).

    Returns
    -------
    Result
        The same for the same scenario, but for ``wall_s``.

    Raises
    ------
    RoutingError
        No such scheme, or a flow without a path.
    ModelRangeError
        The MTU, or a demand larger than a scheme can take.
    """
    begun = time.perf_counter()
    fabric, demand = scenario.fabric, scenario.demand
    fraction = scenario.transport.payload_fraction(scenario.mtu)
    capacity = fabric.links.capacity * fraction
    line_rate = fabric.endpoint_rate * fraction
    rate, finish = np.zeros(len(demand)), np.zeros(len(demand))
    load, offered = np.zeros(len(capacity)), np.zeros(len(capacity))
    crossing = np.zeros(len(capacity), np.int64)
    phases, senders = [], []
    windowed = events = 0
    for number, phase in enumerate(demand.phases):
        rows = demand.phase == number
        flows = _Flows(
            FlowTable(demand.src[rows], demand.dst[rows], demand.channel[rows], demand.qps),
            demand.size[rows],
            demand.start[rows],
            demand.ring[rows],
        )
        routes = route_flows(fabric, flows.table, scenario.routing, scenario.options)
        delay = _flow_latency(scenario, flows, routes)
        limited, limits = _with_windows(scenario, flows, routes, delay, line_rate)
        windowed += len(limits)

        def report(done: int, name: str = phase.name, total: int = routes.n_paths) -> None:
            if progress is not None:
                progress(name, done, total)

        run = _run_flows(
            scenario,
            flows,
            limited,
            np.concatenate([routes.capacity(capacity), limits]),
            phase.lockstep,
            report,
        )
        ideal_routes = route_flows(fabric, flows.table, "ideal")
        # Latency is inside the completion time of every flow, contended or not.
        ideal = _run_flows(scenario, flows, ideal_routes, capacity, phase.lockstep, None)
        ring_latency = (
            _ring_latency(flows, delay, phase.passes, phase.scale_up_hops) if phase.lockstep else 0.0
        )
        phases.append(
            _phase_result(
                phase.name,
                run.network,
                ideal.network,
                delay,
                ring_latency,
                phase.scale_up_s,
                lockstep=phase.lockstep,
            )
        )
        rate[rows], events = run.rate, events + run.events
        finish[rows] = phases[-1].completion_s if phase.lockstep else run.network + delay
        senders.append(sender_efficiency(flows.table.src, flows.table.dst, run.rate, line_rate))
        np.maximum(load, routes.link_load(run.path_rate) / capacity, out=load)
        alone = _rate_alone(flows.table, line_rate)
        per_path = np.repeat(alone / demand.qps, np.diff(routes.flow_ptr)) * routes.weight
        np.maximum(offered, routes.link_load(per_path) / capacity, out=offered)
        np.maximum(crossing, _flows_per_link(routes), out=crossing)
    every = np.concatenate(senders)
    completion, ideal_s = sum(p.completion_s for p in phases), sum(p.ideal_s for p in phases)
    return Result(
        scenario=scenario,
        phases=tuple(phases),
        efficiency=Efficiency(
            mean_flow=float(every.mean()) if len(every) else 1.0,
            collective=ideal_s / completion,
            worst_flow=float(every.min()) if len(every) else 1.0,
        ),
        rate=rate,
        finish=finish,
        link_load=load,
        link_offered=offered,
        link_flows=crossing,
        windowed=windowed,
        events=events,
        wall_s=time.perf_counter() - begun,
    )


def _run_flows(
    scenario: Scenario,
    flows: _Flows,
    routes: Routes,
    capacity: NDArray[np.float64],
    lockstep: bool,  # noqa: FBT001 -- private
    report: Callable[[int], None] | None,
) -> _Run:
    """Find rates, and when each flow's last byte has left the network."""
    qps = scenario.demand.qps
    n = len(flows.table)
    if n == 0:
        nothing = np.zeros(0)
        return _Run(nothing, nothing, nothing, 0)
    owner = np.repeat(np.arange(n), np.diff(routes.flow_ptr))
    coefficient = np.repeat(routes.weight, np.diff(routes.path_ptr)) * routes.share
    pooled = scenario.demand.work_conserving
    if lockstep:
        found = solve_max_min(capacity, routes.path_ptr, routes.resource, coefficient)
        path_rate = found.rate * routes.weight
        if pooled:
            network = flows.size / np.bincount(owner, path_rate, minlength=n)
        else:
            network = np.zeros(n)
            np.maximum.at(network, owner, flows.size[owner] / qps / found.rate)
        events = 1
    else:
        message_ptr = routes.flow_ptr if pooled else np.arange(routes.n_paths + 1)
        size = flows.size if pooled else flows.size[owner] / qps * routes.weight
        start = flows.start if pooled else flows.start[owner]
        done = complete(
            capacity,
            routes.path_ptr,
            routes.resource,
            coefficient,
            message_ptr,
            size,
            start,
            multiplicity=routes.weight,
            progress=report,
        )
        path_rate, events = done.first_rate * routes.weight, done.events
        if pooled:
            network = done.finish
        else:
            network = np.zeros(n)
            np.maximum.at(network, owner, done.finish)
    rate = np.bincount(owner, path_rate, minlength=n).astype(np.float64)
    return _Run(rate, network, path_rate, events)


def _flow_latency(scenario: Scenario, flows: _Flows, routes: Routes) -> NDArray[np.float64]:
    """Return each flow's one-way latency: cables, switches, hosts [s]; the largest over its paths."""
    if routes.n_paths == 0:
        return np.zeros(0)
    switch, endpoint = latencies(scenario.fabric, scenario.transport)
    if routes.scheme == "ideal":  # without contention, but as far away as in the real network
        routes = route_flows(scenario.fabric, flows.table, "rail-pinned")
    hops = routes.path_sum(np.ones(routes.n_links)) - 1
    path = routes.path_sum(scenario.fabric.links.delay) + hops * switch + endpoint
    return np.maximum.reduceat(path, routes.flow_ptr[:-1])


def _with_windows(
    scenario: Scenario,
    flows: _Flows,
    routes: Routes,
    delay: NDArray[np.float64],
    line_rate: NDArray[np.float64],
) -> tuple[Routes, NDArray[np.float64]]:
    """Give every flow that its window limits a resource of its own, of capacity window / RTT.

    Returns the routes and the capacities of the resources added, behind links and trunks.
    """
    window = scenario.demand.window_bytes
    if window is None or len(flows.table) == 0 or scenario.routing == "ideal":
        return routes, np.zeros(0)
    with np.errstate(divide="ignore"):
        most = window / (2 * delay)
    slower = np.minimum(line_rate[flows.table.src], line_rate[flows.table.dst])
    limited = np.flatnonzero(most < slower)
    if not len(limited):
        return routes, np.zeros(0)
    place = np.full(len(flows.table), -1, np.int64)
    place[limited] = routes.n_links + routes.n_trunks + np.arange(len(limited))
    owner = np.repeat(np.arange(len(flows.table)), np.diff(routes.flow_ptr))
    paths = np.flatnonzero(place[owner] >= 0)
    at = routes.path_ptr[paths + 1]
    added = np.zeros(routes.n_paths + 1, np.int64)
    added[paths + 1] = 1
    return replace(
        routes,
        path_ptr=routes.path_ptr + np.cumsum(added),
        resource=np.insert(routes.resource, at, place[owner[paths]]),
        share=np.insert(routes.share, at, 1.0),
    ), most[limited]


def _ring_latency(flows: _Flows, delay: NDArray[np.float64], passes: float, scale_up_hops: int) -> float:
    """Return the latency of a lockstep phase: the edges of the slowest ring in turn [s]."""
    around = np.bincount(flows.ring, delay).max() if len(delay) else 0.0
    return float(passes * (around + scale_up_hops * SCALE_UP_LATENCY_S))


def _phase_result(
    name: str,
    network: NDArray[np.float64],
    ideal: NDArray[np.float64],
    delay: NDArray[np.float64],
    ring_latency: float,
    scale_up_s: float,
    *,
    lockstep: bool,
) -> PhaseResult:
    """Add up a phase's times."""
    if lockstep:
        busy, best = network.max(initial=0.0), ideal.max(initial=0.0)
        completion = max(busy, scale_up_s) + ring_latency
        ideal_s = max(best, scale_up_s) + ring_latency
        latency = ring_latency
    else:
        last = (network + delay).max(initial=0.0)
        completion = max(last, scale_up_s)
        ideal_s = max((ideal + delay).max(initial=0.0), scale_up_s)
        latency = float(delay[np.argmax(network + delay)]) if len(delay) else 0.0
    return PhaseResult(
        name=name,
        flows=len(network),
        completion_s=float(completion),
        network_s=float(network.max(initial=0.0)),
        scale_up_s=scale_up_s,
        latency_s=latency,
        ideal_s=float(ideal_s),
    )


def _rate_alone(table: FlowTable, line_rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate each flow would have if only its two NIC ports limited it [bytes/s]."""
    n = len(line_rate)
    sent, received = np.bincount(table.src, minlength=n), np.bincount(table.dst, minlength=n)
    return np.minimum(line_rate[table.src] / sent[table.src], line_rate[table.dst] / received[table.dst])


def _flows_per_link(routes: Routes) -> NDArray[np.int64]:
    """Count the flows (not QPs) that cross each link."""
    n_resources = routes.n_links + routes.n_trunks
    owner = np.repeat(np.arange(len(routes.flow_ptr) - 1), np.diff(routes.flow_ptr))
    if routes.n_paths == len(routes.flow_ptr) - 1:
        count = np.bincount(routes.resource, minlength=n_resources)
    else:
        entry_owner = np.repeat(owner, np.diff(routes.path_ptr))
        once = np.unique(entry_owner * n_resources + routes.resource)
        count = np.bincount(once % n_resources, minlength=n_resources)
    links = count[: routes.n_links].copy()
    if routes.n_trunks:
        members = np.diff(routes.trunk_ptr)
        links += np.bincount(
            routes.trunk_link, np.repeat(count[routes.n_links :], members), minlength=routes.n_links
        ).astype(np.int64)
    return links
