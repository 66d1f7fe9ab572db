"""Run a phase under a congestion control, whole or by its parts (`netplan.simulate.dynamics`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.dynamics import Flows, Network
from netplan.congestion.switch import SwitchProfile
from netplan.errors import ModelRangeError
from netplan.kernels.hashing import mix
from netplan.simulate.dynamics import (
    MOST_EVENTS,
    Control,
    Series,
    Traced,
    engine_step,
    estimate_events,
    refuse_absurd,
    round_trips,
    run_scaled,
    run_whole,
    scale_for,
    throughput,
)
from netplan.simulate.parts import Groups, Ties, find_components, find_ties, likeness
from netplan.simulate.senders import ACK_BYTES, Senders, lay_flows, lay_network, link_delays

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.congestion.line_rate import Transport
    from netplan.fabric import Fabric
    from netplan.routing import Routes
    from netplan.simulate.switches import Switches

__all__ = ["METHODS", "Scene", "Trace", "run_congested"]

#: How a phase may be run, from the fullest to the most shortened.
METHODS = ("whole", "scaled", "components", "bottlenecks")

#: Senders of a component that is run as it is; a larger one is taken apart at its bottlenecks.
MOST_SENDERS = 2048

#: Least time of a scaled run: round trips, and seconds.
SETTLED_RTTS, SETTLED_S = 200.0, 20e-3

#: Links whose queues a series has.
WATCHED = 8

#: Loads of senders that are held back elsewhere, as parts of the bottleneck, that count as alike.
_LOAD_GRAIN = 4

#: Sizes and round trips within this factor count as alike at a bottleneck.
_ALIKE = 1.25


@dataclass(frozen=True, eq=False)
class Scene:
    """Where a phase runs."""

    fabric: Fabric
    transport: Transport
    routes: Routes
    senders: Senders
    switches: Switches
    control: Control
    payload: float
    """Bytes of a full packet that are the application's."""
    stopped_by: NDArray[np.int64]
    """(n_paths,) resource that holds each path back by max-min."""
    capacity: NDArray[np.float64]
    """(n_resources,) payload bytes/s that each resource carries."""
    network: NDArray[np.float64]
    """(n_flows,) when the last byte is through by max-min, latency aside [s]."""
    lockstep: bool = False
    record: bool = False
    """Whether a series is wanted."""
    progress: Callable[[int, int], None] | None = None


@dataclass(eq=False)
class Trace:
    """What became of a phase's senders."""

    finish: NDArray[np.float64]
    """(n_senders,) when the last byte arrived [s]."""
    rate: NDArray[np.float64]
    """(n_senders,) rate while all senders of its group were there [bytes/s]."""
    peak_queue: NDArray[np.float64]
    """(n_links,) of the fabric; 0 where nothing was run."""
    mean_queue: NDArray[np.float64]
    """(n_links,)"""
    pauses: float = 0.0
    paused: float = 0.0
    """Time that links were paused, all together [s]."""
    lost: float = 0.0
    storms: float = 0.0
    """Times that the PFC watchdog took a queue."""
    marks: float = 0.0
    resent: float = 0.0
    events: int = 0
    step: float = np.inf
    """Shortest step of the engine [s]."""
    scale: float = 1.0
    """Smallest part of a group's bytes that was run."""
    groups: int = 1
    """Groups that the senders fell into."""
    kinds: int = 1
    """Groups that were run."""
    borrowed: int = 0
    """Kinds of bottlenecks that were not run and took the slowdown of the nearest."""
    method: str = "whole"
    """whole, scaled, components or bottlenecks."""
    series: Series | None = None
    watched: tuple[int, ...] = ()
    """Links of the series' queues."""
    stopped: tuple[int, ...] = ()
    """Columns of the series' pauses that are shown, and below the fabric's links of them."""
    stopped_links: tuple[int, ...] = ()
    sampled: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Senders of the series."""

    def add(self, traced: Traced, links: NDArray[np.int64], times: int) -> None:
        """Account for a run that stands for ``times`` groups; links are the fabric's."""
        np.maximum.at(self.peak_queue, links, traced.peak_queue)
        np.maximum.at(self.mean_queue, links, traced.mean_queue)
        self.pauses += times * float(traced.pauses.sum())
        self.paused += times * float(traced.paused.sum())
        self.lost += times * float(traced.lost.sum())
        self.storms += times * traced.storms
        self.marks += times * traced.marks
        self.resent += times * traced.resent
        self.events += traced.events
        self.step = min(self.step, traced.step)
        self.scale = min(self.scale, traced.scale)


def run_congested(scene: Scene) -> Trace:
    """Run a phase's senders.

    Parameters
    ----------
    scene
        Where, what and how.

    Returns
    -------
    Trace
        Per sender and link. The same for the same scene.

    Raises
    ------
    ModelRangeError
        ``exact`` with more events than can be run, senders that never end, buffers that are too small.
    """
    senders, n_links = scene.senders, len(scene.fabric.links)
    _refuse_mixed_telemetry(scene)
    trace = Trace(np.zeros(len(senders)), senders.rate.copy(), np.zeros(n_links), np.zeros(n_links))
    every = np.arange(len(senders))
    events = _rough_events(scene)
    total = float(events.sum())
    is_whole = scene.control.exact or scene.record or scene.control.is_packets
    if is_whole and not scene.control.is_packets:
        refuse_absurd(total, "a series" if scene.record else "--exact")
    if is_whole or total <= MOST_EVENTS:
        _run_group(scene, every, 1, 1.0, trace, record=scene.record)
        return trace
    groups = _components(scene)
    n_groups = len(groups.ptr) - 1
    trace.groups, trace.method = n_groups, "scaled" if n_groups == 1 else "components"
    times = np.bincount(groups.kind)
    sizes = np.diff(groups.ptr)[groups.example]
    cost = np.add.reduceat(events[groups.order], groups.ptr[:-1])[groups.example]
    rtt = _rough_round_trips(scene)
    least = np.array([_least_scale(scene, groups.members(int(g)), rtt) for g in groups.example])
    runnable = (sizes <= MOST_SENDERS) & (cost * least <= MOST_EVENTS)
    budget = _share_budget(np.where(runnable, cost, 0.0), MOST_EVENTS)
    done, allowed = 0, MOST_EVENTS / (1 if runnable.all() else 2)
    for kind in np.argsort(-sizes * times, kind="stable").tolist():  # those of most senders first
        if not runnable[kind] or (n_groups > 1 and trace.events > allowed):
            runnable[kind] = False
            continue
        scale = max(scale_for(float(cost[kind]), float(budget[kind])), float(least[kind]))
        finish, rate = _run_group(
            scene, groups.members(int(groups.example[kind])), int(times[kind]), scale, trace
        )
        for group in np.flatnonzero(groups.kind == kind).tolist():
            trace.finish[groups.members(group)] = finish
            trace.rate[groups.members(group)] = rate
        done += 1
        if scene.progress is not None:
            scene.progress(done, len(times))
    trace.kinds = done
    apart = np.flatnonzero(~runnable)
    if len(apart):
        chosen = np.flatnonzero(np.isin(groups.kind[groups.label], apart))
        _run_bottlenecks(scene, chosen, rtt, trace)
        trace.method = "bottlenecks"
    return trace


def _refuse_mixed_telemetry(scene: Scene) -> None:
    """Refuse to compare one link's telemetry with another's.

    Raises
    ------
    ModelRangeError
        A protocol that reads telemetry hop by hop, and flows that change links from packet to packet.
    """
    routes, cc = scene.routes, scene.control.cc
    if "int" in cc.signals and (routes.n_trunks or (routes.share < 1).any()):
        raise ModelRangeError(
            f"cc {cc.name} compares what each hop told two packets, and routing {routes.scheme} sends them"
            " over different links",
            hint="a routing with one path a QP (ecmp, rail-pinned), or a protocol without telemetry",
        )


# ---- One group ---------------------------------------------------------------------------------------------


def _run_group(
    scene: Scene, rows: NDArray[np.int64], times: int, scale: float, trace: Trace, *, record: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run some senders on the fabric's own links; return their finish and rates."""
    some = scene.senders.take(rows)
    header = float(scene.transport.header_bytes)
    laid = lay_flows(
        some, scene.routes, scene.fabric, payload=scene.payload, header=header, seed=scene.control.seed
    )
    network, flows, links = lay_network(scene.fabric, scene.transport, scene.switches, laid)
    if scale < 1:
        traced = run_scaled(
            scene.control,
            network,
            flows,
            some.rate,
            limit=some.window,
            scale=scale,
            bottleneck=scene.stopped_by[some.path],
            by_max_min=scene.network[some.owner] - some.start,
        )
    else:
        watch = _busiest(network, flows, some.rate) if record else None
        traced = run_whole(scene.control, network, flows, some.rate, limit=some.window, watch=watch)
        if watch is not None:
            trace.series, trace.sampled = traced.series, rows
            trace.watched = tuple(int(links[k]) for k in watch)
            trace.stopped = _most_paused(traced)
            trace.stopped_links = tuple(int(links[k]) for k in trace.stopped)
    trace.add(traced, links, times)
    trace.finish[rows], trace.rate[rows] = traced.finish, traced.rate
    return traced.finish, traced.rate


def _busiest(network: Network, flows: Flows, rate: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the switch ports that most senders share, fullest first."""
    paths = np.diff(flows.flow_ptr)
    owner = np.repeat(np.arange(len(paths)), paths)
    entry = np.repeat(owner, np.diff(flows.path_ptr))
    n = len(network.rate)
    load = np.bincount(flows.path_link, (rate / paths)[entry], minlength=n) / network.rate
    users = np.bincount(flows.path_link, minlength=n)
    at_switch = np.flatnonzero(network.is_switch[network.src] & (users > 0))
    order = np.lexsort((at_switch, -users[at_switch], -np.round(load[at_switch], 6)))
    return tuple(at_switch[order][:WATCHED].tolist())


def _most_paused(traced: Traced) -> tuple[int, ...]:
    """Return the links that were paused, longest first, as many as a series has."""
    order = np.argsort(-traced.paused, kind="stable")[:WATCHED]
    return tuple(order[traced.paused[order] > 0].tolist())


# ---- Components --------------------------------------------------------------------------------------------


def _entries(scene: Scene) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sender, entry of the routes and place on the path, for every resource of every sender."""
    routes, path = scene.routes, scene.senders.path
    length = np.diff(routes.path_ptr)[path]
    ptr = np.concatenate([[0], np.cumsum(length)])
    sender = np.repeat(np.arange(len(path)), length)
    place = np.arange(ptr[-1]) - ptr[sender]
    return sender, routes.path_ptr[path][sender] + place, place


def _resource_delay(scene: Scene) -> NDArray[np.float64]:
    """Return the delay of every resource: of a trunk the mean of its links [s]."""
    delay = link_delays(scene.fabric, scene.transport)
    routes = scene.routes
    if routes.n_trunks:
        members = np.diff(routes.trunk_ptr)
        mean = np.add.reduceat(delay[routes.trunk_link], routes.trunk_ptr[:-1]) / members
        delay = np.concatenate([delay, mean])
    windows = len(scene.capacity) - len(delay)
    return np.concatenate([delay, np.zeros(windows)])


def _hash(*columns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Hash numbers to nine digits."""
    rounded = [np.asarray(np.frexp(column)[0] * 2**30).round().astype(np.int64) for column in columns]
    scales = [np.frexp(column)[1].astype(np.int64) for column in columns]
    return mix(*(word for pair in zip(rounded, scales, strict=True) for word in pair))


def _components(scene: Scene) -> Groups:
    """Find the components, and which are alike."""
    senders, routes = scene.senders, scene.routes
    sender, entry, place = _entries(scene)
    resource, share = routes.resource[entry], routes.share[entry]
    ties = find_ties(sender, resource, senders.rate[sender] * share, scene.capacity)
    label = find_components(len(senders), ties)
    delay = _resource_delay(scene)
    step = mix(_hash(scene.capacity[resource], delay[resource], share), place)
    along = np.zeros(len(senders), np.uint64)
    np.add.at(along, sender, step)
    window = np.where(np.isfinite(senders.window), senders.window, 0.0)
    own = mix(along, _hash(senders.size, senders.start, window))
    is_tie = _is_tie(ties, sender, resource, len(scene.capacity))
    return likeness(label, own, ties, step[is_tie])


def _is_tie(
    ties: Ties, sender: NDArray[np.int64], resource: NDArray[np.int64], n_resources: int
) -> NDArray[np.bool_]:
    """Return which entries are ties: they are in the same order."""
    tied = np.zeros(n_resources, bool)
    tied[ties.link] = True
    return tied[resource]


def _rough_round_trips(scene: Scene) -> NDArray[np.float64]:
    """Return each sender's round trip, there and back the same way, nothing waiting [s]."""
    sender, entry, _ = _entries(scene)
    delay = _resource_delay(scene)[scene.routes.resource[entry]] * scene.routes.share[entry]
    return np.asarray(2.0 * np.bincount(sender, delay, minlength=len(scene.senders)), np.float64)


def _rough_events(scene: Scene) -> NDArray[np.float64]:
    """Return about how many events each sender takes, from its max-min rate."""
    control, senders = scene.control, scene.senders
    packet = scene.payload + scene.transport.header_bytes
    step = engine_step(control, _rough_round_trips(scene))
    hops = np.diff(scene.routes.path_ptr)[senders.path]
    load = np.maximum(np.floor(senders.rate * step / packet + 0.5), 1.0) * scene.payload
    return np.asarray(np.ceil(senders.size / load) * (2.0 * hops + 2.0), np.float64)


def _least_scale(scene: Scene, rows: NDArray[np.int64], rtt: NDArray[np.float64]) -> float:
    """Return the least part of a group's bytes that lets its rates settle."""
    some = scene.senders.take(rows)
    lasts = float((some.size / some.rate).max())
    return min(max(SETTLED_RTTS * float(rtt[rows].max()), SETTLED_S) / lasts, 1.0)


def _share_budget(cost: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Share out events: kinds that need less than an equal share leave the rest to the others."""
    share = np.zeros(len(cost))
    left, n_left = budget, len(cost)
    for kind in np.argsort(cost, kind="stable").tolist():
        share[kind] = min(cost[kind], left / n_left)
        left, n_left = left - share[kind], n_left - 1
    return share


# ---- Bottlenecks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Bottleneck:
    """Senders at a link that holds some of them back."""

    resource: int
    own: NDArray[np.int64]
    """Senders that it holds back."""
    other: NDArray[np.int64]
    """Senders that cross it and are held back elsewhere."""


@dataclass(frozen=True, eq=False)
class _Bottlenecks:
    """All full links that hold senders back, by kind."""

    resource: NDArray[np.int64]
    """(n,)"""
    features: NDArray[np.float64]
    """(n_kinds, 6) rate, own senders, load of others, place, size and round trip of each kind."""
    example: NDArray[np.int64]
    """(n_kinds,) a bottleneck of each kind."""
    kind: NDArray[np.int64]
    """(n,) kind of each."""
    slowest: NDArray[np.float64]
    """(n_kinds,) max-min rate of the slowest own senders [bytes/s]."""
    members: NDArray[np.float64]
    """(n_kinds,) own senders of all bottlenecks of the kind."""
    ptr: NDArray[np.int64]
    """(n + 1,) CSR of the two below."""
    sender: NDArray[np.int64]
    is_own: NDArray[np.bool_]

    def at(self, place: int) -> _Bottleneck:
        """Return one."""
        part = slice(int(self.ptr[place]), int(self.ptr[place + 1]))
        inside, mine = self.sender[part], self.is_own[part]
        return _Bottleneck(int(self.resource[place]), inside[mine], inside[~mine])


def _find_bottlenecks(scene: Scene, rows: NDArray[np.int64], rtt: NDArray[np.float64]) -> _Bottlenecks:
    """Find the links that hold some senders back, and which of them are alike."""
    senders, routes, n = scene.senders, scene.routes, len(scene.capacity)
    sender, entry, _ = _entries(scene)
    chosen = np.zeros(len(senders), bool)
    chosen[rows] = True
    resource = routes.resource[entry]
    stop = scene.stopped_by[senders.path]
    held = np.where(stop >= routes.n_links + routes.n_trunks, -1, stop)  # those are held by windows
    holds = np.zeros(n, bool)
    holds[held[chosen & (held >= 0)]] = True
    at = chosen[sender] & holds[resource]
    s, r, share = sender[at], resource[at], routes.share[entry[at]]
    is_own = held[s] == r
    load = np.bincount(r, np.where(is_own, 0.0, senders.rate[s] * share), minlength=n) / scene.capacity
    n_own = np.bincount(r, is_own, minlength=n)
    links = np.flatnonzero(holds)
    means = [
        np.bincount(r, np.where(is_own, value[s], 0.0), minlength=n)[links] / n_own[links]
        for value in (senders.size, rtt)
    ]
    key = np.column_stack(
        [
            scene.capacity[links],
            n_own[links],
            np.round(load[links] * _LOAD_GRAIN),
            _first_link(scene, links),
            *(np.round(np.log(mean) / np.log(_ALIKE)) for mean in means),
        ]
    )
    features, example, kind = np.unique(key, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)  # numpy 2.0 gives it a second axis
    slowest = np.full(len(example), np.inf)
    np.minimum.at(slowest, kind, scene.capacity[links] * (1 - np.minimum(load[links], 1.0)) / n_own[links])
    order = np.argsort(r, kind="stable")
    return _Bottlenecks(
        resource=links,
        features=features,
        example=example,
        kind=kind,
        slowest=slowest,
        members=np.bincount(kind, n_own[links]).astype(np.float64),
        ptr=np.append(np.searchsorted(r[order], links), len(r)),
        sender=s[order],
        is_own=is_own[order],
    )


def _run_bottlenecks(scene: Scene, rows: NDArray[np.int64], rtt: NDArray[np.float64], trace: Trace) -> None:
    """Run a bottleneck of each kind, as many as the budget allows, and slow all senders down alike."""
    senders, found = scene.senders, _find_bottlenecks(scene, rows, rtt)
    by_max_min = scene.network[senders.owner] - senders.start
    trace.finish[rows] = (senders.start + by_max_min + rtt / 2)[rows]
    results: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    before, n_kinds = trace.events, len(found.example)
    for number in _in_turns(found.slowest, found.members):
        if trace.events - before > MOST_EVENTS / 2:
            break
        times = int((found.kind == number).sum())
        example = found.at(int(found.example[number]))
        results[number] = _run_star(scene, example, rtt, MOST_EVENTS / n_kinds, times, trace)
        if scene.progress is not None:
            scene.progress(len(results), n_kinds)
    trace.groups += len(found.resource)
    trace.kinds += len(results)
    trace.borrowed += n_kinds - len(results)
    known = np.array(sorted(results), np.int64)
    for place, number in enumerate(found.kind.tolist()):
        source = number if number in results else int(known[_nearest(found.features, number, known)])
        slow, part = results[source]
        if source != number:  # another number of senders: all get the mean, or in lockstep the worst
            slow = np.array([slow.max() if scene.lockstep else slow.mean()])
            part = np.array([part.mean()])
        mine = found.at(place).own
        trace.finish[mine] = senders.start[mine] + by_max_min[mine] * slow + rtt[mine] / 2
        trace.rate[mine] = senders.rate[mine] * part


def _in_turns(slowest: NDArray[np.float64], members: NDArray[np.float64]) -> list[int]:
    """Return all kinds: in turns the one with the slowest senders and the one with the most."""
    first, second = np.argsort(slowest, kind="stable"), np.argsort(-members, kind="stable")
    turns = np.column_stack([first, second]).reshape(-1)
    return list(dict.fromkeys(turns.tolist()))


def _nearest(features: NDArray[np.float64], number: int, known: NDArray[np.int64]) -> int:
    """Return which known kind is nearest: same rate and place before all, then senders, load and the rest."""
    far = np.abs(features[known] - features[number])
    scaled = far / np.array([max(float(features[:, 0].max()), 1.0), 1.0, 1.0, 1.0, 4.0, 4.0])
    return int(np.argmin(scaled @ np.array([1e4, 1.0, 1.0, 1e3, 1.0, 1.0])))


def _first_link(scene: Scene, resources: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 for a NIC's own link, 2 for a switch's link to a host, else 0."""
    routes, fabric = scene.routes, scene.fabric
    link = resources.copy()
    trunk = resources >= routes.n_links
    if trunk.any():
        link[trunk] = routes.trunk_link[routes.trunk_ptr[resources[trunk] - routes.n_links]]
    host = fabric.nodes.tier == 0
    return np.where(host[fabric.links.src[link]], 1.0, np.where(host[fabric.links.dst[link]], 2.0, 0.0))


def _run_star(
    scene: Scene, at: _Bottleneck, rtt: NDArray[np.float64], budget: float, times: int, trace: Trace
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run the senders of one bottleneck; return how much longer its own take, and their rates.

    Both over what max-min says, of its own senders in their order.

    ::

        sender - access link - switch - bottleneck - switch - own link - receiver
    """
    senders, control, routes = scene.senders, scene.control, scene.routes
    link = at.resource
    if link >= routes.n_links:
        link = int(routes.trunk_link[routes.trunk_ptr[link - routes.n_links]])
    own, other = senders.take(at.own), senders.take(at.other)
    n_own, n = len(own), len(own) + len(other)
    packet = scene.payload + scene.transport.header_bytes
    wire = packet / scene.payload
    lasts = float((own.size / own.rate).max())
    size = np.concatenate([own.size, np.maximum(other.rate * lasts, scene.payload)])
    rate = np.concatenate([own.rate, other.rate])
    network, flows = _star(scene, link, at, rate * wire, size, rtt)
    events = float(estimate_events(control, network, flows, rate).sum())
    trips = round_trips(network, flows)
    least = min(max(SETTLED_RTTS * float(trips.max()), SETTLED_S) / lasts, 1.0)
    scale = max(scale_for(events, budget), least)
    limit = np.concatenate([own.window, other.window])
    traced = run_scaled(
        control,
        network,
        flows,
        rate,
        limit=limit,
        scale=scale,
        bottleneck=np.where(np.arange(n) < n_own, 0, 1 + np.arange(n)),
        by_max_min=size / rate,
    )
    at_link = np.where(np.arange(len(network.rate)) == 0, link, 0)
    real = traced.peak_queue[0], traced.mean_queue[0]
    trace.peak_queue[link] = max(trace.peak_queue[link], real[0])
    trace.mean_queue[link] = max(trace.mean_queue[link], real[1])
    before = trace.peak_queue.copy(), trace.mean_queue.copy()
    trace.add(traced, at_link, times)
    trace.peak_queue[:], trace.mean_queue[:] = before
    took = traced.finish[:n_own] - flows.start[:n_own] - trips[:n_own] / 2
    slow = np.maximum(took / (own.size / own.rate), 1e-9)
    part = traced.rate[:n_own] / own.rate
    # What others leave here because this bottleneck slows them down, too, max-min has not given to its own.
    part /= max(float(traced.rate[:n_own].sum() / own.rate.sum()), 1.0)
    if scene.lockstep:  # rings wait for each other: who is ahead gives way
        slow = np.full(
            n_own, max(float(slow.mean()), float(own.rate.sum()) / throughput(traced, np.arange(n_own)))
        )
    assert len(flows.size) == n
    return slow, part


def _star(
    scene: Scene,
    link: int,
    at: _Bottleneck,
    wire_rate: NDArray[np.float64],
    size: NDArray[np.float64],
    rtt: NDArray[np.float64],
) -> tuple[Network, Flows]:
    """Lay one bottleneck, link 0, with own links for every sender."""
    fabric, n_own = scene.fabric, len(at.own)
    n = n_own + len(at.other)
    capacity = fabric.links.capacity
    is_host = fabric.nodes.tier == 0
    from_nic, to_host = bool(is_host[fabric.links.src[link]]), bool(is_host[fabric.links.dst[link]])
    delay = link_delays(fabric, scene.transport)
    trips = rtt[np.concatenate([at.own, at.other])] / 2
    rest = np.maximum(trips - delay[link], 2e-9)
    first = scene.routes.path_ptr[scene.senders.path]
    last = scene.routes.path_ptr[scene.senders.path + 1] - 1
    both = np.concatenate([at.own, at.other])
    nic, port = scene.routes.resource[first[both]], scene.routes.resource[last[both]]
    access = np.where(np.arange(n) < n_own, capacity[nic], np.minimum(wire_rate, capacity[nic]))
    exits = np.maximum(capacity[port], capacity[link])
    # Nodes: 0 and 1 are the bottleneck's ends; then a host for each sender, and one for each receiver.
    pieces = [(np.array([0]), np.array([1]), capacity[[link]], delay[[link]])]
    paths: list[NDArray[np.int64]] = []
    cable = 1
    column = np.zeros(n, np.int64)
    if not from_nic:
        part = rest if to_host else rest / 2
        pieces.append((2 + np.arange(n), np.zeros(n, np.int64), access, part))
        paths.append(2 * (cable + np.arange(n)))
        cable += n
    paths.append(column)
    if not to_host:
        part = rest if from_nic else rest / 2
        pieces.append((np.ones(n, np.int64), 2 + n + np.arange(n), exits, part))
        paths.append(2 * (cable + np.arange(n)))
    src, dst, rate, late = (np.concatenate([piece[k] for piece in pieces]) for k in range(4))
    n_links = 2 * len(src)
    ends = np.empty((2, n_links), np.int64)
    ends[0, 0::2], ends[0, 1::2], ends[1, 0::2], ends[1, 1::2] = src, dst, dst, src
    path = np.column_stack(paths)
    switch = np.zeros(2 + 2 * n, bool)
    switch[:2] = not from_nic, not to_host
    rate2, late2 = np.repeat(rate, 2), np.repeat(late, 2)
    network = Network(
        rate2, late2, ends[0], ends[1], switch, _star_profiles(scene, link, ends[1], rate2, late2, switch)
    )
    hops = path.shape[1]
    ptr = np.arange(n + 1) * hops
    start = np.zeros(n)
    header = float(scene.transport.header_bytes)
    flows = Flows(
        size=size,
        start=start,
        flow_ptr=np.arange(n + 1),
        path_ptr=ptr,
        path_link=path.reshape(-1),
        back_ptr=ptr,
        back_link=path[:, ::-1].reshape(-1) ^ 1,
        payload=scene.payload,
        header=header,
        ack_bytes=header + ACK_BYTES,
    )
    return network, flows


def _star_profiles(
    scene: Scene,
    link: int,
    into: NDArray[np.int64],
    rate: NDArray[np.float64],
    delay: NDArray[np.float64],
    switch: NDArray[np.bool_],
) -> list[SwitchProfile | None]:
    """Return the rules of a bottleneck's ends, with the shared buffer that the real switches have."""
    from dataclasses import replace

    fabric, switches = scene.fabric, scene.switches
    found: list[SwitchProfile | None] = [None] * len(switch)
    for place, node in enumerate((int(fabric.links.src[link]), int(fabric.links.dst[link]))):
        base = int(switches.base_of[node])
        if not switch[place] or base < 0:
            continue
        profile = switches.base[base]
        here = np.flatnonzero(into == place)
        room = len(here) * profile.buffer.reserved_bytes
        if profile.buffer.lossless:
            room += sum(profile.headroom_of(float(rate[k]), float(delay[k])) for k in here)
        kept = float(switches.room[fabric.links.dst == node].sum())
        pool = float(switches.total[node]) - kept
        found[place] = replace(profile, buffer=replace(profile.buffer, total_bytes=pool + room))
    return found
