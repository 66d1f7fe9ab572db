"""Run a scenario, phase by phase.

A *lockstep* phase (pipelined rings) moves at its slowest flow: its network time is the largest
bytes / max-min rate with all flows active. All its flows carry equal bytes to the end, so the
most loaded link, and with it the time, is the same as if flows ended one by one. In any other
phase rates are solved anew whenever a flow starts or ends.

On top of the network's time comes latency: propagation on each cable, each switch, and the two
hosts once a message. In a ring a piece of data travels every edge in turn, ``passes`` times; in a
tree ``hops`` edges. Where NCCL's times are asked for (`netplan.traffic.nccl`), the phase takes the
longest of the network's time, the scale-up domain's, NCCL's own for the bytes, and the NICs' at the
rate that NCCL gets out of them; on top come NCCL's latency and the propagation on the cables.
A flow's window limits its rate to window / RTT, where that is less than its NIC's line rate.

Under a protocol (``cc`` other than ``max-min``) the flows run through the time-domain engine
(`netplan.simulate.congested`); max-min is solved beside it: it says which links are contended, and
what the protocol's rates are held against. A flow's rate is what it got while all flows that it
shares full links with were there: its mean until the first of them ended. A lockstep phase ends
with its last flow: all run at once, and who is ahead of its ring is not held up, so that the time
is what its fullest link takes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.efficiency import Efficiency, sender_efficiency
from netplan.congestion.line_rate import SCALE_UP_LATENCY_S, latencies
from netplan.errors import ModelRangeError
from netplan.kernels.completion import complete
from netplan.kernels.max_min import solve_max_min
from netplan.routing import FlowTable, Routes, route_flows
from netplan.simulate.congested import METHODS, Scene, Trace, run_congested
from netplan.simulate.dynamics import Control
from netplan.simulate.result import Congestion, Pfc, PhaseResult, PhaseSeries, Queues, Result
from netplan.simulate.scenario import MAX_MIN
from netplan.simulate.senders import make_senders
from netplan.simulate.switches import lay_switches

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.simulate.scenario import Scenario
    from netplan.simulate.switches import Switches
    from netplan.traffic import Phase


#: Least time that a flow is said to take [s]; what is shorter is latency.
_SHORTEST_S = 1e-12


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
    stopped_by: NDArray[np.int64]
    """(n_flows,) resource that stops the flow's slowest path."""
    path_stopped_by: NDArray[np.int64]
    """(n_paths,) resource that stops each path."""
    events: int


@dataclass(frozen=True, eq=False)
class _PhaseRun:
    """Everything a phase adds to the result."""

    result: PhaseResult
    run: _Run
    finish: NDArray[np.float64]
    """(n_flows,) last byte, latency included [s]."""
    senders: NDArray[np.float64]
    """(n_senders,) efficiency of each sending NIC."""
    load: NDArray[np.float64]
    """(n_links,) carried over payload capacity."""
    offered: NDArray[np.float64]
    """(n_links,) wanted over payload capacity."""
    crossing: NDArray[np.int64]
    """(n_links,) flows that cross each link."""
    bottleneck: NDArray[np.int64]
    """(n_flows,) link that stops the flow's slowest path, -1 for its window."""
    windowed: int
    """Flows that their window limits."""
    trace: Trace | None
    """What the engine found; None for max-min."""
    owner: NDArray[np.int64] | None
    """(n_senders,) flow of each of the engine's senders; None for max-min."""
    sent: float
    """Payload bytes of the phase."""


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
    demand = scenario.demand
    switches = None
    if scenario.cc != MAX_MIN:
        check_control(scenario)
        switches = lay_switches(scenario.fabric, scenario.transport, scenario.switch)
    rate, finish = np.zeros(len(demand)), np.zeros(len(demand))
    bottleneck = np.full(len(demand), -1, np.int64)
    parts = []
    for number, phase in enumerate(demand.phases):
        rows = demand.phase == number
        flows = _Flows(
            FlowTable(demand.src[rows], demand.dst[rows], demand.channel[rows], demand.qps),
            demand.size[rows],
            demand.start[rows],
            demand.ring[rows],
        )
        part = _run_phase(scenario, phase, flows, switches, progress)
        rate[rows], finish[rows], bottleneck[rows] = part.run.rate, part.finish, part.bottleneck
        parts.append(part)
    every = np.concatenate([part.senders for part in parts])
    completion = sum(part.result.completion_s for part in parts)
    return Result(
        scenario=scenario,
        phases=tuple(part.result for part in parts),
        efficiency=Efficiency(
            mean_flow=float(every.mean()) if len(every) else 1.0,
            # The ideal adds the longest path's latency to the last byte's time; in the engine near senders'
            # bytes fill the link meanwhile, so that without congestion the ratio may pass 1 by a latency.
            collective=min(sum(part.result.ideal_s for part in parts) / completion, 1.0),
            worst_flow=float(every.min()) if len(every) else 1.0,
        ),
        rate=rate,
        finish=finish,
        bottleneck=bottleneck,
        link_load=np.maximum.reduce([part.load for part in parts]),
        link_offered=np.maximum.reduce([part.offered for part in parts]),
        link_flows=np.maximum.reduce([part.crossing for part in parts]),
        windowed=sum(part.windowed for part in parts),
        congestion=None if switches is None else _congestion(scenario, parts, switches),
        events=sum(part.run.events for part in parts),
        wall_s=time.perf_counter() - begun,
    )


def _run_phase(
    scenario: Scenario,
    phase: Phase,
    flows: _Flows,
    switches: Switches | None,
    progress: Callable[[str, int, int], None] | None,
) -> _PhaseRun:
    """Route a phase's flows and run them, and run them without contention."""
    fabric, qps = scenario.fabric, scenario.demand.qps
    fraction = scenario.transport.payload_fraction(scenario.mtu)
    capacity, line_rate = fabric.links.capacity * fraction, fabric.endpoint_rate * fraction
    routes = _phase_routes(scenario, phase, flows)
    delay = _flow_latency(scenario, phase, flows, routes)
    limited, limits = _with_windows(scenario, flows, routes, delay, line_rate)

    def report(done: int) -> None:
        if progress is not None:
            progress(phase.name, done, routes.n_paths)

    room = np.concatenate([routes.capacity(capacity), limits])
    run = _run_flows(scenario, flows, limited, room, phase, report)
    alone = route_flows(fabric, flows.table, "ideal")
    sends, receives = _nic_rates(fabric, flows.table, line_rate)
    whole = capacity.copy()
    whole[2 * fabric.endpoints.cable.astype(np.int64)] = sends
    whole[2 * fabric.endpoints.cable.astype(np.int64) + 1] = receives
    ideal = _run_flows(scenario, flows, alone, whole, phase)
    per_qp = np.repeat(flows.table.offered_rates(line_rate) / qps, np.diff(routes.flow_ptr))
    trace, owner, load = None, None, routes.link_load(run.path_rate) / capacity
    if switches is not None and len(flows.table):
        scene = _scene(scenario, phase, flows, routes, run, room, switches, report)
        owner = scene.senders.owner
        trace = run_congested(scene)
        run = _under_protocol(scene, flows, run, delay, trace)
        load = _carried(scene, trace) / capacity
    cables = _flow_latency(scenario, phase, flows, routes, cables_only=True)
    result = _phase_result(phase, flows, run, ideal, delay, cables, fraction)
    return _PhaseRun(
        result=result,
        run=run,
        finish=np.full(len(delay), result.completion_s) if phase.lockstep else run.network + delay,
        senders=sender_efficiency(flows.table.src, flows.table.dst, run.rate, sends, receives),
        load=load,
        offered=routes.link_load(per_qp * routes.weight) / capacity,
        crossing=_flows_per_link(routes),
        bottleneck=_link_of_resource(routes)[run.stopped_by],
        windowed=len(limits),
        trace=trace,
        owner=owner,
        sent=float(flows.size.sum()),
    )


def _phase_routes(scenario: Scenario, phase: Phase, flows: _Flows) -> Routes:
    """Route a phase's flows; those of aggregation trees cross the links that they name.

    Raises
    ------
    ModelRangeError
        Aggregation trees under a protocol.
    """
    trees = phase.trees
    if trees is None or scenario.routing == "ideal":
        return route_flows(scenario.fabric, flows.table, scenario.routing, scenario.options)
    if scenario.cc != MAX_MIN:
        raise ModelRangeError(
            f"cc {scenario.cc} does not run aggregation trees: their flow control is the switches' own",
            hint=f"--cc {MAX_MIN}",
        )
    return Routes(
        scheme="aggregation trees",
        n_links=len(scenario.fabric.links),
        flow_ptr=np.arange(len(flows.table) + 1),
        weight=np.full(len(flows.table), float(scenario.demand.qps)),
        path_ptr=trees.ptr.copy(),
        resource=trees.link.copy(),
        share=np.ones(len(trees.link)),
    )


def check_control(scenario: Scenario) -> Control:
    """Return the protocol of a scenario, refusing what it cannot run on.

    Raises
    ------
    ModelRangeError
        No such protocol or parameter, a value out of range, or a routing without queues or another transport.
    """
    control = Control.of(
        scenario.cc,
        scenario.cc_params,
        seed=scenario.options.seed,
        step=scenario.step,
        exact=scenario.exact,
        engine=scenario.engine,
    )
    transport, routing = scenario.transport.name, scenario.routing
    if routing == "ideal":
        raise ModelRangeError(
            f"cc {scenario.cc} cannot run on routing ideal: it has no links inside the network, so no queues",
            hint=f"--cc {MAX_MIN} for the ideal",
        )
    is_credit = scenario.cc.startswith("ib")
    if is_credit != (transport == "infiniband"):
        raise ModelRangeError(
            f"cc {scenario.cc} does not run over {transport}, which routing {routing} stands for",
            hint=f"--cc {MAX_MIN} there, or a routing of {'infiniband' if is_credit else 'roce'}"
            " (netplan list routing)",
        )
    return control


def _congestion(scenario: Scenario, parts: list[_PhaseRun], switches: Switches) -> Congestion:
    """Put what the engine found in all phases together."""
    fabric = scenario.fabric
    ran = [(part, part.trace) for part in parts if part.trace is not None]
    traces = [trace for _, trace in ran]
    queues = None
    if traces:
        peak = np.maximum.reduce([trace.peak_queue for trace in traces])
        mean = np.maximum.reduce([trace.mean_queue for trace in traces])
        if peak.max() > 0:
            longest, fullest = int(peak.argmax()), int(mean.argmax())
            queues = Queues(
                float(peak[longest]),
                fabric.link_name(longest),
                float(mean[fullest]),
                fabric.link_name(fullest),
            )
    resent = sum(trace.resent for trace in traces)
    sent = sum(part.sent for part, _ in ran) + resent
    deep = switches.deep
    return Congestion(
        pfc=Pfc(
            sum(trace.paused for trace in traces),
            sum(trace.pauses for trace in traces),
            sum(trace.storms for trace in traces),
        ),
        queues=queues,
        loss_fraction=min(sum(trace.lost for trace in traces) / sent, 1.0) if sent else 0.0,
        marked_packets=sum(trace.marks for trace in traces),
        resent_bytes=resent,
        method=max((trace.method for trace in traces), key=METHODS.index, default=METHODS[0]),
        scale=min((trace.scale for trace in traces), default=1.0),
        groups=sum(trace.groups for trace in traces),
        kinds=sum(trace.kinds for trace in traces),
        events=sum(trace.events for trace in traces),
        step_s=min((trace.step for trace in traces), default=0.0),
        deep=(len(deep), fabric.node_name(int(deep[0]))) if len(deep) else None,
        series=tuple(
            _series(scenario, number, part) for number, part in enumerate(parts) if _has_series(part)
        ),
    )


def _has_series(part: _PhaseRun) -> bool:
    return part.trace is not None and part.trace.series is not None


def _series(scenario: Scenario, number: int, part: _PhaseRun) -> PhaseSeries:
    """Return rates, queues and pauses of a phase over time."""
    trace, owner = part.trace, part.owner
    assert trace is not None
    assert trace.series is not None
    assert owner is not None
    first = int(np.searchsorted(scenario.demand.phase, number))
    flow = owner[trace.sampled]
    qp = np.arange(len(owner)) - np.searchsorted(owner, owner)
    found = trace.series
    before = np.concatenate([[0.0], found.time[:-1]])
    received = np.diff(found.received, axis=0, prepend=0.0)
    return PhaseSeries(
        phase=part.result.name,
        flow=flow + first,
        qp=qp[trace.sampled],
        links=tuple(scenario.fabric.link_name(link) for link in trace.watched),
        time=found.time,
        rate=received / (found.time - before)[:, None],
        queue=found.queue,
        paused_links=tuple(scenario.fabric.link_name(link) for link in trace.stopped_links),
        paused=found.paused[:, list(trace.stopped)],
    )


def _scene(
    scenario: Scenario,
    phase: Phase,
    flows: _Flows,
    routes: Routes,
    run: _Run,
    room: NDArray[np.float64],
    switches: Switches,
    report: Callable[[int], None],
) -> Scene:
    """Return what the engine needs of a phase."""
    demand = scenario.demand
    senders = make_senders(
        routes,
        flows.size,
        flows.start,
        run.path_rate,
        qps=demand.qps,
        window=None if demand.window_bytes is None else float(demand.window_bytes),
        pooled=demand.work_conserving,
    )

    def progress(done: int, total: int) -> None:
        report(done * routes.n_paths // max(total, 1))

    return Scene(
        fabric=scenario.fabric,
        transport=scenario.transport,
        routes=routes,
        senders=senders,
        switches=switches,
        control=check_control(scenario),
        payload=float(scenario.mtu),
        stopped_by=run.path_stopped_by,
        capacity=room,
        network=run.network,
        lockstep=phase.lockstep,
        record=scenario.record,
        progress=progress,
    )


def _under_protocol(scene: Scene, flows: _Flows, run: _Run, delay: NDArray[np.float64], trace: Trace) -> _Run:
    """Return what the phase's flows did under the protocol."""
    n, owner = len(flows.table), scene.senders.owner
    finish = np.zeros(n)
    np.maximum.at(finish, owner, trace.finish)
    rate = np.bincount(owner, trace.rate, minlength=n).astype(np.float64)
    network = np.maximum(finish - delay, _SHORTEST_S)
    return replace(run, rate=rate, network=network, events=run.events + trace.events)


def _carried(scene: Scene, trace: Trace) -> NDArray[np.float64]:
    """Return what every link carried on average until the last of its senders ended [bytes/s]."""
    routes, senders = scene.routes, scene.senders
    n_paths = routes.n_paths
    size = np.bincount(senders.path, senders.size, minlength=n_paths).astype(np.float64)
    last = np.zeros(n_paths)
    np.maximum.at(last, senders.path, trace.finish)
    bytes_of = routes.link_load(size)
    end = np.zeros(routes.n_links + routes.n_trunks + len(scene.capacity))
    np.maximum.at(end, routes.resource, np.repeat(last, np.diff(routes.path_ptr)))
    until = end[: routes.n_links].copy()
    if routes.n_trunks:
        members = np.diff(routes.trunk_ptr)
        trunk_end = np.repeat(end[routes.n_links : routes.n_links + routes.n_trunks], members)
        np.maximum.at(until, routes.trunk_link, trunk_end)
    return np.divide(bytes_of, until, out=np.zeros(routes.n_links), where=until > 0)


def _nic_rates(
    fabric: Fabric, flows: FlowTable, line_rate: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each port could send and receive if the ports of its NIC that are in use had all of it.

    The port's own line rate, but where a NIC has ports in several planes and flows on some of them only.
    """
    nic = fabric.endpoint_nic
    whole = np.bincount(nic, line_rate)

    def shared(ends: NDArray[np.int32]) -> NDArray[np.float64]:
        used = np.zeros(len(nic))
        used[ends] = 1.0
        in_use = np.bincount(nic, used)[nic]
        return np.where(in_use > 0, whole[nic] / np.maximum(in_use, 1.0), line_rate)

    return shared(flows.src), shared(flows.dst)


def _run_flows(
    scenario: Scenario,
    flows: _Flows,
    routes: Routes,
    capacity: NDArray[np.float64],
    phase: Phase,
    report: Callable[[int], None] | None = None,
) -> _Run:
    """Find rates, and when each flow's last byte has left the network."""
    qps = scenario.demand.qps
    n = len(flows.table)
    if n == 0:
        nothing = np.zeros(0)
        none = np.zeros(0, np.int64)
        return _Run(nothing, nothing, nothing, none, none, 0)
    owner = np.repeat(np.arange(n), np.diff(routes.flow_ptr))
    coefficient = np.repeat(routes.weight, np.diff(routes.path_ptr)) * routes.share
    pooled = scenario.demand.work_conserving
    if phase.lockstep:
        found = solve_max_min(capacity, routes.path_ptr, routes.resource, coefficient)
        first, stopped_by = found.rate, found.bottleneck
        if pooled:
            network = flows.size / np.bincount(owner, first * routes.weight, minlength=n)
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
        first, stopped_by, events = done.first_rate, done.first_bottleneck, done.events
        if np.ptp(flows.start) > 0:  # rates of flows that were never active together do not add up
            first, stopped_by, _ = solve_max_min(capacity, routes.path_ptr, routes.resource, coefficient)
        if pooled:
            network = done.finish
        else:
            network = np.zeros(n)
            np.maximum.at(network, owner, done.finish)
    path_rate = first * routes.weight
    rate = np.bincount(owner, path_rate, minlength=n).astype(np.float64)
    slowest = np.lexsort((first, owner))[routes.flow_ptr[:-1]]
    return _Run(rate, network, path_rate, stopped_by[slowest], stopped_by, events)


def _flow_latency(
    scenario: Scenario, phase: Phase, flows: _Flows, routes: Routes, *, cables_only: bool = False
) -> NDArray[np.float64]:
    """Return each flow's one-way latency: cables, switches, hosts [s]; the largest over its paths."""
    if routes.n_paths == 0:
        return np.zeros(0)
    switch, endpoint = (0.0, 0.0) if cables_only else latencies(scenario.fabric, scenario.transport)
    links = scenario.fabric.links
    if phase.trees is not None:  # data crosses one branch up and one down
        ptr = phase.trees.way_ptr
        return np.add.reduceat(links.delay[phase.trees.way] + switch, ptr[:-1]) - switch + endpoint
    if routes.scheme == "ideal":  # without contention, but as far away as in the real network
        routes = route_flows(scenario.fabric, flows.table, "rail-pinned")
    hops = routes.path_sum(np.ones(routes.n_links)) - 1
    path = routes.path_sum(links.delay) + hops * switch + endpoint
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


def _ring_latency(phase: Phase, flows: _Flows, delay: NDArray[np.float64]) -> float:
    """Return the latency of a lockstep phase's edges: of the slowest ring, or branch, in turn [s]."""
    around = 0.0
    if len(delay) and phase.hops:
        order = np.lexsort((-delay, flows.ring))
        ring = flows.ring[order]
        nth = np.arange(len(ring)) - np.searchsorted(ring, ring)
        around = float(np.bincount(ring, np.where(nth < phase.hops, delay[order], 0.0)).max())
    elif len(delay):
        around = float(np.bincount(flows.ring, delay).max())
    return phase.passes * around


def _scale_up_latency(phase: Phase) -> float:
    """Return the latency of a phase's hops inside hosts [s]."""
    return phase.passes * phase.scale_up_hops * SCALE_UP_LATENCY_S


def phase_time(
    phase: Phase, network: float, alone: float, scale_up: float, latency: float, fraction: float
) -> tuple[float, float, float]:
    """Return the time of a phase whose flows move together, or of one under NCCL.

    Parameters
    ----------
    phase
        What it has beside its flows.
    network, alone
        Time of the network, and of the NICs alone [s].
    scale_up
        Busy time of the scale-up domain [s].
    latency
        Of cables, switches and hosts; of cables only where the phase has NCCL's own [s].
    fraction
        Payload of a NIC's line rate: a library that gets less out of NICs has its floor under the network's
        time.

    Returns
    -------
    completion, ideal, latency
        [s].
    """
    floor = scale_up
    software = phase.software
    if software is not None:
        latency += software.latency_s
        floor = max(floor, software.busy_s, alone * fraction / software.nic_fraction)
    return max(network, floor) + latency, max(alone, floor) + latency, latency


def _phase_result(
    phase: Phase,
    flows: _Flows,
    run: _Run,
    ideal: _Run,
    delay: NDArray[np.float64],
    cables: NDArray[np.float64],
    fraction: float,
) -> PhaseResult:
    """Add up a phase's times; the ideal has the same latencies."""
    network, alone = float(run.network.max(initial=0.0)), float(ideal.network.max(initial=0.0))
    inside = 0.0 if phase.lockstep else _scale_up_latency(phase)
    far = _ring_latency(phase, flows, cables) if phase.lockstep else float(cables.max(initial=0.0))
    if phase.software is not None:  # its constants have the hops, switches and hosts of an ordinary network
        times = phase_time(phase, network, alone, phase.scale_up_s, far, fraction)
    elif phase.lockstep:
        latency = _ring_latency(phase, flows, delay) + _scale_up_latency(phase)
        times = phase_time(phase, network, alone, phase.scale_up_s, latency, fraction)
    else:
        end = run.network + delay
        times = (
            max(float(end.max(initial=0.0)), phase.scale_up_s + inside),
            max(float((ideal.network + delay).max(initial=0.0)), phase.scale_up_s + inside),
            float(delay[np.argmax(end)]) if len(end) else inside,
        )
    return PhaseResult(
        name=phase.name,
        flows=len(delay),
        completion_s=times[0],
        network_s=network,
        scale_up_s=phase.scale_up_s,
        latency_s=times[2],
        ideal_s=times[1],
        ideal_network_s=alone,
        cables_s=far,
        inside_s=inside,
    )


def _link_of_resource(routes: Routes) -> NDArray[np.int64]:
    """Return the link that stands for each resource: itself, a trunk's first, -1 for windows."""
    trunks = routes.trunk_link[routes.trunk_ptr[:-1]]
    windows = np.full(len(routes.flow_ptr) - 1, -1)  # at most one a flow, behind links and trunks
    return np.concatenate([np.arange(routes.n_links), trunks, windows])


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
