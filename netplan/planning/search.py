"""Search for the parameters of a congestion control that finish a demand first.

A trial runs the demand's flows under the time-domain engine (`netplan.congestion.dynamics`) with one set of
values; its figure is the *efficiency*: the time that the busiest link needs for its bytes, over the time of
the last flow. Marks are random, so a trial is the mean over some seeds.

* `Knob` is a parameter, or ``ecn``: a factor on Kmin and Kmax of all switches. Values lie on a logarithmic
  scale around the start: what was asked for or else the protocol's default.
* The *landscape* is a square grid of trials over the first two knobs.
* From its best point the simplex of Nelder and Mead (`scipy.optimize.minimize`) moves all knobs, within their
  ranges, until the trials are used up.

The best of all trials is kept, of equal ones that with the shorter queue; a search that finds nothing better
returns the start.

Trials run on coarse trains of packets, a fifth of the shortest round trip (the engine takes 1/32 by itself);
the start and the best three are run again with the engine's own step; those figures are returned.

Valid for demands that the engine can run: flows on single paths (``ecmp``, ``rail-pinned``, ``ib-static``),
one phase (the one with the most bytes), at most `MOST_FLOWS` of them. Flows longer than `MOST_ROUND_TRIPS`
of the longest round trip at line rate are cut to it: the answer is about rates, which have settled by then or
never do. A switch has one curve: that of its port class with the largest thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, run_flows
from netplan.congestion.line_rate import DEFAULT_MTU, TRANSPORTS, latencies
from netplan.congestion.switch import EcnCurve, PfcThresholds, SwitchBuffer, SwitchProfile
from netplan.errors import ModelRangeError, did_you_mean
from netplan.fabric.columns import TIER_NAMES
from netplan.routing.routes import FlowTable, RoutingOptions, route_flows
from netplan.simulate.switches import DEFAULT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.fabric import Fabric
    from netplan.planning.tune import Tuning
    from netplan.routing.routes import Routes
    from netplan.traffic.demand import Demand

__all__ = [
    "MOST_FLOWS",
    "Knob",
    "Scene",
    "Search",
    "Trial",
    "find_knobs",
    "make_scene",
    "search",
    "tuned_profiles",
]

#: Flows that a trial may have.
MOST_FLOWS = 2048

#: Bytes of a flow, in round trips of the longest path at line rate.
MOST_ROUND_TRIPS = 100

#: A trial that has not ended by this many times the bound has failed.
_PATIENCE = 20.0

#: How far a knob may go from its start, as a factor either way.
_REACH = 16.0

#: Knobs by protocol, where none are named.
_USUAL = {
    "dcqcn": ("timer_s", "ecn", "rate_ai", "min_dec_fac"),
    "dctcp": ("rate_ai", "ecn"),
    "timely": ("rate_ai", "t_high_s"),
    "hpcc": ("rate_ai", "eta"),
}

#: Headroom of the engine's ports over rate x one-way delay: both ways, and room for trains of packets, as the
#: default of `netplan.simulate.switches` has it.
_HEADROOM_FACTOR = DEFAULT.headroom_factor

#: Best trials that are run again with the engine's own step.
_FINALISTS = 3

_ECN = "ecn"


@dataclass(frozen=True)
class Knob:
    """What is varied, on a logarithmic scale."""

    name: str
    start: float
    low: float
    high: float
    unit: str

    def at(self, place: float) -> float:
        """Return the value at a place from 0 (low) to 1 (high)."""
        return float(exp(log(self.low) + min(max(place, 0.0), 1.0) * (log(self.high) - log(self.low))))

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1."""
        return (log(value) - log(self.low)) / (log(self.high) - log(self.low))


@dataclass(frozen=True)
class Trial:
    """One set of values and what came of it; means over the seeds."""

    values: Mapping[str, float]
    efficiency: float
    """Bound over completion, 0 to 1; of a trial that did not end: delivered over wanted bytes / 20."""
    completion_s: float | None
    """Of the last flow; None when it did not end in 20 times the bound."""
    median_s: float | None
    """Of the median flow."""
    peak_queue_bytes: float
    drops: float
    pauses: float


@dataclass(frozen=True)
class Search:
    """A search and its result."""

    cc: str
    demand: str
    flows: int
    bound_s: float
    """Time that the busiest link needs for its bytes."""
    knobs: tuple[Knob, ...]
    start: Trial
    ruled: Trial | None
    """With the parameters that `netplan.planning.tune` gives by rule, where they are others."""
    best: Trial
    landscape: tuple[Trial, ...]
    """Row by row: the first knob ascends within a row, the second from row to row."""
    trials: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        data = asdict(self)
        return {**data, "landscape": [asdict(trial) for trial in self.landscape], "notes": list(self.notes)}


@dataclass(frozen=True, eq=False)
class Scene:
    """What a trial runs."""

    network: Network
    flows: Flows
    bound_s: float
    coarse_s: float
    """Step of the trials [s]."""
    demand: str
    seeds: tuple[int, ...]
    notes: tuple[str, ...]


# ---- The scene ---------------------------------------------------------------------------------------------


def make_scene(
    fabric: Fabric, demand: Demand, tuning: Tuning, *, routing: str = "ecmp", seed: int = 0, n_seeds: int = 2
) -> Scene:
    """Lay out a demand on a fabric for the engine, with the switches as `tune` set them.

    Parameters
    ----------
    fabric, demand
        What to run.
    tuning
        ECN, PFC and buffers.
    routing
        A scheme whose flows keep to single paths.
    seed, n_seeds
        Of routes and marks; how many runs make a trial.

    Raises
    ------
    ModelRangeError
        Buffers that are unknown or too small, a scheme that spreads flows, too many flows.
    """
    if tuning.fits is not True:
        why = "do not hold the headroom" if tuning.fits is False else "are not all known"
        raise ModelRangeError(
            f"the buffers of {fabric.name} {why}: no parameter of a protocol can be searched",
            hint="--switch or --pool with enough buffer, or --lossy for the long links",
        )
    bytes_of = np.bincount(demand.phase, demand.size, minlength=len(demand.phases))
    phase = int(bytes_of.argmax())
    rows = demand.phase == phase
    notes = []
    if len(demand.phases) > 1:
        name = demand.phases[phase].name
        notes.append(f"Of {len(demand.phases)} phases the one with the most bytes is run: {name}.")
    table = FlowTable(demand.src[rows], demand.dst[rows], demand.channel[rows], demand.qps)
    routes = route_flows(fabric, table, routing, RoutingOptions(seed=seed))
    if routes.n_trunks or (routes.share < 1).any():
        raise ModelRangeError(
            f"routing {routing!r} spreads flows over many paths; the engine takes single paths",
            hint="ecmp, rail-pinned and ib-static keep to one path a QP",
        )
    if routes.n_paths > MOST_FLOWS:
        raise ModelRangeError(
            f"the demand has {routes.n_paths:,} QPs in a phase; a search takes at most {MOST_FLOWS:,}",
            hint="fewer ranks (--set traffic.ranks=...), fewer QPs, or a smaller fabric",
        )
    if not routes.n_paths:
        raise ModelRangeError(
            f"the demand {demand.name} sends nothing over the network", hint="more ranks than one host has"
        )
    network = _network(fabric, tuning)
    flows, cut = _flows(fabric, demand, rows, routes, network)
    if cut:
        notes.append(f"Flows are cut to {MOST_ROUND_TRIPS} round trips at line rate.")
    return Scene(
        network,
        flows,
        _bound(network, flows),
        _shortest_round_trip(network, flows) / 5,
        demand.name,
        tuple(range(seed, seed + n_seeds)),
        tuple(notes),
    )


def _network(fabric: Fabric, tuning: Tuning) -> Network:
    """Return the links of a fabric with a profile for each switch."""
    per_switch, per_message = latencies(fabric, TRANSPORTS["roce"])
    tier = fabric.nodes.tier
    is_switch = tier > 0
    delay = fabric.links.delay + np.where(is_switch[fabric.links.dst], per_switch, 0.0)
    # Half of what NICs and hosts add is at each end.
    at_host = ~is_switch[fabric.links.src] | ~is_switch[fabric.links.dst]
    delay += np.where(at_host, per_message / 2, 0.0)
    by_tier = {name: _profile(tuning, name) for name in TIER_NAMES[1:]}
    profiles = [by_tier[TIER_NAMES[t]] if t > 0 else None for t in tier.tolist()]
    return Network(
        rate=fabric.links.capacity.astype(np.float64),
        delay=delay,
        src=fabric.links.src.astype(np.int64),
        dst=fabric.links.dst.astype(np.int64),
        is_switch=is_switch,
        profile=profiles,
    )


def tuned_profiles(tuning: Tuning) -> dict[str, SwitchProfile]:
    """Return the rules of each tier's switches, by the tier's name.

    Raises
    ------
    ModelRangeError
        Buffers that are not known or too small.
    """
    if tuning.fits is not True:
        why = "do not hold the headroom" if tuning.fits is False else "are not all known"
        raise ModelRangeError(
            f"the buffers of {tuning.fabric} {why}: its switches cannot be set as tune says",
            hint="netplan tune shows which; --switch-profile auto supposes deep buffers there",
        )
    found = {name: _profile(tuning, name) for name in TIER_NAMES[1:]}
    return {name: profile for name, profile in found.items() if profile is not None}


def _profile(tuning: Tuning, tier: str) -> SwitchProfile | None:
    """Return the rules of a tier's switches; None when the fabric has none."""
    rows = [row for row in tuning.ports if row.tier == tier]
    buffers = [row for row in tuning.buffers if row.tier == tier]
    if not rows or not buffers:
        return None
    pool = min(row.pool_bytes or 0 for row in buffers)
    marking = [row for row in rows if row.kmin_bytes is not None]
    curve, rate = EcnCurve(pool, pool, 1.0), max(row.rate_gbps for row in rows) * 1e9 / 8
    if marking:
        widest = max(marking, key=lambda row: row.kmin_bytes or 0)
        curve = EcnCurve(widest.kmin_bytes or 0, widest.kmax_bytes or 0, widest.pmax or 1.0)
        rate = widest.rate_gbps * 1e9 / 8
    static = tuning.static_xoff_bytes
    pfc = (
        PfcThresholds("dynamic", alpha=tuning.alpha)
        if static is None
        else PfcThresholds("static", xoff_bytes=static, alpha=tuning.alpha)
    )
    lossless = all(row.headroom_bytes is not None for row in rows)
    return SwitchProfile(
        f"tune, {tier}",
        curve,
        pfc,
        SwitchBuffer(pool, lossless=lossless),
        reference_rate=rate,
        headroom_factor=_HEADROOM_FACTOR if lossless else 0.0,
        source="netplan tune",
    )


def _flows(
    fabric: Fabric, demand: Demand, rows: NDArray[np.bool_], routes: Routes, network: Network
) -> tuple[Flows, bool]:
    """Return a flow for every QP, and whether any was cut."""
    n = routes.n_paths
    owner = np.repeat(np.arange(len(routes.flow_ptr) - 1), np.diff(routes.flow_ptr))
    size = demand.size[rows][owner] * routes.weight / demand.qps
    hops = np.diff(routes.path_ptr)
    # The way back is the other direction of each cable, last cable first.
    ends = np.repeat(routes.path_ptr[1:], hops)
    place = np.arange(len(routes.resource)) - np.repeat(routes.path_ptr[:-1], hops)
    back = routes.resource[ends - 1 - place] ^ 1
    there = np.add.reduceat(network.delay[routes.resource], routes.path_ptr[:-1])
    most = MOST_ROUND_TRIPS * 2 * float(there.max()) * float(fabric.endpoint_rate.max())
    flows = Flows(
        size=np.minimum(size, most),
        start=demand.start[rows][owner],
        flow_ptr=np.arange(n + 1),
        path_ptr=routes.path_ptr,
        path_link=routes.resource,
        back_ptr=routes.path_ptr,
        back_link=back,
        payload=float(DEFAULT_MTU),
        header=float(TRANSPORTS["roce"].header_bytes),
    )
    return flows, bool((size > most).any())


def _bound(network: Network, flows: Flows) -> float:
    """Return the time that the busiest link needs for its bytes, and the shortest latency over it [s]."""
    hops = np.diff(flows.path_ptr)
    wire = np.repeat(flows.size * (flows.payload + flows.header) / flows.payload, hops)
    load = np.bincount(flows.path_link, wire, minlength=len(network.rate))
    there = np.add.reduceat(network.delay[flows.path_link], flows.path_ptr[:-1])
    latency = np.full(len(network.rate), np.inf)
    np.minimum.at(latency, flows.path_link, np.repeat(there + flows.start, hops))
    used = load > 0
    return float((load[used] / network.rate[used] + latency[used]).max())


def _shortest_round_trip(network: Network, flows: Flows) -> float:
    """Return the shortest propagation there and back [s]."""
    there = np.add.reduceat(network.delay[flows.path_link], flows.path_ptr[:-1])
    back = np.add.reduceat(network.delay[flows.back_link], flows.back_ptr[:-1])
    return float((there + back).min())


# ---- Knobs and trials --------------------------------------------------------------------------------------


def find_knobs(
    cc: CongestionControl, names: Sequence[str] = (), start: Mapping[str, float] | None = None
) -> tuple[Knob, ...]:
    """Return the knobs of a protocol.

    Parameters
    ----------
    cc
        The protocol.
    names
        Parameters, and ``ecn`` for a factor on the thresholds; the usual ones without any.
    start
        Values to start from, where they are not the defaults.

    Raises
    ------
    ModelRangeError
        A name that the protocol does not have, one given twice, or one that starts at 0.
    """
    start = start or {}
    by_name = {each.name: each for each in cc.parameters}
    reads_ecn = "ecn" in cc.signals
    if not names:
        usual = _USUAL.get(cc.name.split("-")[0], tuple(by_name)[:3])
        names = [name for name in usual if (name == _ECN and reads_ecn) or name in by_name]
        names = [name for name in names if name == _ECN or start.get(name, by_name[name].default) > 0]
    known = [*by_name, *([_ECN] if reads_ecn else [])]
    knobs = []
    for place, name in enumerate(names):
        if name not in known:
            raise ModelRangeError(
                f"{cc.name} has nothing called {name!r} to search over: {', '.join(known) or 'no parameter'}",
                hint=did_you_mean(name, known),
            )
        if name in names[:place]:
            raise ModelRangeError(f"{name!r} is named twice to search over")
        if name == _ECN:
            knobs.append(Knob(_ECN, 1.0, 1 / _REACH, _REACH, "1"))
            continue
        each = by_name[name]
        value = start.get(name, each.default)
        if value <= 0:
            raise ModelRangeError(
                f"{cc.name}.{name} starts at 0 and cannot be searched on a logarithmic scale",
                hint=f"give a start: --param {name}=...",
            )
        low, high = max(value / _REACH, each.low), min(value * _REACH, each.high)
        knobs.append(Knob(name, value, low or value / _REACH, high, each.unit))
    if not knobs:
        raise ModelRangeError(f"{cc.name} has no parameter to search over")
    return tuple(knobs)


def run_trial(
    scene: Scene,
    cc: CongestionControl,
    fixed: Mapping[str, float],
    values: Mapping[str, float],
    *,
    coarse: bool = True,
) -> Trial:
    """Run a scene with one set of values, once for each seed."""
    network = scene.network
    if _ECN in values:
        profiles = network.profile if isinstance(network.profile, Sequence) else [network.profile]
        known = {id(p): replace(p, ecn=p.ecn.scaled(values[_ECN])) for p in profiles if p is not None}
        network = replace(network, profile=[None if p is None else known[id(p)] for p in profiles])
    parameters = {**fixed, **{name: value for name, value in values.items() if name != _ECN}}
    end = _PATIENCE * scene.bound_s
    step = scene.coarse_s if coarse else None
    outcomes = [
        run_flows(network, scene.flows, cc, parameters, Options(seed=seed, end=end, step=step))
        for seed in scene.seeds
    ]
    ended = all(np.isfinite(out.received).all() for out in outcomes)
    wanted = float(scene.flows.size.sum())
    if ended:
        completion = float(np.mean([out.received.max() for out in outcomes]))
        efficiency = scene.bound_s / completion
    else:
        completion = None
        efficiency = float(np.mean([out.delivered.sum() / wanted for out in outcomes])) / _PATIENCE
    return Trial(
        dict(values),
        efficiency,
        completion,
        float(np.mean([np.median(out.received) for out in outcomes])) if ended else None,
        float(np.max([out.peak_queue.max() for out in outcomes])),
        float(np.mean([out.drops.sum() for out in outcomes])),
        float(np.mean([out.pauses.sum() for out in outcomes])),
    )


def search(
    scene: Scene,
    cc: str,
    *,
    over: Sequence[str] = (),
    parameters: Mapping[str, float] | None = None,
    ruled: Mapping[str, float] | None = None,
    grid: int = 5,
    most_trials: int = 60,
    progress: Callable[[str, int, int], None] | None = None,
) -> Search:
    """Search for the values with which a scene ends first.

    Parameters
    ----------
    scene
        As `make_scene` returns it.
    cc
        Protocol.
    over
        Knobs; the usual ones of the protocol without any.
    parameters
        Values to start from, and those of what is not varied.
    ruled
        All parameters as a rule gives them, to be run beside the start and the best.
    grid
        Points of the landscape along each of the first two knobs, >= 2.
    most_trials
        Trials in all, at least those of the start and the landscape.
    progress
        Called with (phase, trials done, all trials).

    Raises
    ------
    ModelRangeError
        No such protocol or knob, or fewer trials than the landscape takes.

    Notes
    -----
    The same for the same arguments: every trial has the same seeds.
    """
    # Imported here: scipy.optimize takes a third of a second.
    from scipy.optimize import minimize

    protocol = PROTOCOLS.find(cc)
    fixed = dict(parameters or {})
    protocol.values(fixed)
    knobs = find_knobs(protocol, over, fixed)
    points = _grid(knobs, grid)
    if grid < 2 or most_trials < len(points) + 1:  # noqa: PLR2004 - a landscape has two points
        raise ModelRangeError(
            f"{most_trials} trials are fewer than the start and a landscape of {len(points)} points take",
            hint="more trials, or a smaller grid (2 or more)",
        )
    done: list[Trial] = []

    def attempt(places: Sequence[float]) -> Trial:
        values = {knob.name: knob.at(place) for knob, place in zip(knobs, places, strict=True)}
        done.append(run_trial(scene, protocol, fixed, values))
        if progress is not None:
            progress("search", len(done), most_trials)
        return done[-1]

    at_start = [knob.place(knob.start) for knob in knobs]
    start = attempt(at_start)
    landscape = [attempt(point) for point in points]
    top = max(range(len(done)), key=lambda i: done[i].efficiency)
    places = [at_start, *points][top]
    if most_trials > len(done):
        minimize(
            lambda x: -attempt(x).efficiency,
            np.asarray(places),
            method="Nelder-Mead",
            bounds=[(0.0, 1.0)] * len(knobs),
            options={
                "maxfev": most_trials - len(done),
                "initial_simplex": _simplex(places),
                "xatol": 0.01,
                "fatol": 1e-3,
            },
        )
    finalists = sorted(done[1:], key=_rank)[:_FINALISTS]
    start, *exact = (
        run_trial(scene, protocol, fixed, trial.values, coarse=False) for trial in (done[0], *finalists)
    )
    best = min(exact, key=_rank)
    notes = [*scene.notes]
    if best.efficiency < start.efficiency:
        notes.append("With the engine's own step the start is the better one, and is kept.")
        best = start
    by_rule = None
    if ruled is not None and (protocol.values(ruled) != protocol.values(fixed)).any():
        shown = {knob.name: 1.0 if knob.name == _ECN else ruled[knob.name] for knob in knobs}
        by_rule = replace(run_trial(scene, protocol, ruled, {}, coarse=False), values=shown)
    notes += _verdict(start, best, landscape)
    return Search(
        cc,
        scene.demand,
        len(scene.flows.size),
        scene.bound_s,
        knobs,
        start,
        by_rule,
        best,
        tuple(landscape),
        len(done),
        tuple(notes),
    )


def _rank(trial: Trial) -> tuple[float, float]:
    """Return the order of trials, best first: of equal efficiencies the shorter queue."""
    return -round(trial.efficiency, 3), trial.peak_queue_bytes


def _grid(knobs: tuple[Knob, ...], grid: int) -> list[list[float]]:
    """Return the places of the landscape: the first knob fastest, knobs after the second at their start."""
    rest = [knob.place(knob.start) for knob in knobs[2:]]
    axis = np.linspace(0.0, 1.0, max(grid, 1)).tolist()
    if len(knobs) == 1:
        return [[x] for x in axis]
    return [[x, y, *rest] for y in axis for x in axis]


def _simplex(places: Sequence[float]) -> NDArray[np.float64]:
    """Return a first simplex: a step of an eighth along each knob, away from the border."""
    simplex = np.tile(np.asarray(places, np.float64), (len(places) + 1, 1))
    for i in range(len(places)):
        simplex[i + 1, i] += 0.125 if places[i] < 0.5 else -0.125  # noqa: PLR2004 - the middle
    return simplex


def _verdict(start: Trial, best: Trial, landscape: Sequence[Trial]) -> list[str]:
    """Say in words what the search brought."""
    worst, top = (choose(trial.efficiency for trial in landscape) for choose in (min, max))
    if top - worst < 1e-3:  # noqa: PLR2004 - nothing that anyone could measure
        return [f"The knobs change nothing here: efficiencies of the landscape are {worst:.4f} to {top:.4f}."]
    text = (
        f"Efficiency {start.efficiency:.3f} at the start, {best.efficiency:.3f} at best; "
        f"the landscape goes from {worst:.3f} to {top:.3f}."
    )
    return [text]
