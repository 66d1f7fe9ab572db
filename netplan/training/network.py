"""Communication times of a job on a fabric, all groups of an axis at once.

*Laying* (`netplan.training.laying`). Every group of an axis gets the flows of a communicator over the NICs of
its own ranks, with the same rule for all: a group whose ranks share a host uses the scale-up domain only, and
no NIC. 16,384 GPUs take milliseconds.

*Running.* One run of the engine (`netplan.simulate`) has the flows of all groups, because in a training step
all groups of an axis communicate at the same time; the slowest group decides, as the step waits for it.

*Linearity.* With fixed rates a phase takes ``max(a S, b S) + c`` for S bytes: the time on the network, that
in the scale-up domain and the latency. So each pattern is run once for a size class and scaled. Max-min with
one algorithm has one class; a protocol or the algorithm ``auto`` has one for each power of two, and is run at
its lower end.

*Together* (`netplan.training.together`). Kinds of communication that overlap in time (gradients with
pipeline, or several jobs) share links.

*Lower bound.* `FabricNetwork.bound` is the time with NIC ports as the only limits, without any latency of
switches; no routing is faster, so a search may cut with it.

What it leaves out: groups drift apart in time (all begin at once here); a group in one host that also uses
NICs; failover of NIC ports on damaged fabrics other than what `netplan.traffic` does for each group.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.line_rate import SCALE_UP_LATENCY_S, TRANSPORTS
from netplan.errors import TrafficError, did_you_mean
from netplan.routing import RoutingOptions
from netplan.routing.registry import SCHEMES
from netplan.simulate.run import simulate
from netplan.simulate.scenario import MAX_MIN, Scenario
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.training.laying import (
    EQUAL,
    Experts,
    Laid,
    NetworkOptions,
    at_fixed_rates,
    is_even,
    lay_groups,
    make_demand,
    on_rail,
    ports_of_ranks,
)
from netplan.training.together import Runner, run_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.traffic.placement import Placement
    from netplan.training.groups import RankGrid

__all__ = ["COLLECTIVES", "AxisTime", "Experts", "FabricNetwork", "NetworkOptions"]

#: What may be asked for. Sizes are those of nccl-tests: the buffer of a rank (all-reduce, send-recv), that of
#: all ranks of a group together (all-gather, reduce-scatter), or what a rank sends in all, its own part
#: included.
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "send-recv")

#: Size at which a pattern is run that is linear in its bytes [bytes].
_REFERENCE = 2**30

#: What NCCL takes a point-to-point channel to carry, at most [bytes/s].
_P2P_CHANNEL_RATE = 14e9


@dataclass(frozen=True)
class AxisTime:
    """How long a collective takes."""

    total_s: float
    """From begin to end [s]."""
    network_s: float
    """On the network, latency aside, its phases added up [s]."""
    scale_up_s: float
    """In the scale-up domain, at the same time as the network's [s]."""
    latency_s: float
    """Latency in the total [s]."""
    ideal_s: float
    """Total without contention: every NIC port at payload line rate [s]."""

    @property
    def efficiency(self) -> float:
        """Ideal over total: the bandwidth efficiency ``collective``."""
        return min(self.ideal_s / self.total_s, 1.0) if self.total_s else 1.0


@dataclass(frozen=True)
class _PhaseTime:
    """Times of one phase for a size, as the engine found them [s]."""

    network: float
    scale_up: float
    latency: float
    ideal: float
    """Network time without contention."""

    def at(self, scale: float) -> float:
        """Return the phase's time when it has ``scale`` times the bytes."""
        return max(self.network * scale, self.scale_up * scale) + self.latency


class FabricNetwork:
    """Communication times of one job on a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    placement
        GPUs of the ranks (`netplan.traffic.place_ranks`); as many as the grid has.
    grid
        Parallel sizes and rank order.
    options
        How communicators are laid and run.
    cache
        Results that several networks on the same fabric share, such as those of a search.

    Raises
    ------
    TrafficError
        The placement has another number of ranks than the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from netplan import api
    >>> from netplan.spec.traffic import PlacementSpec
    >>> from netplan.traffic import place_ranks
    >>> from netplan.training.groups import RankGrid
    >>> fabric = api.load_fabric("superpod-b200-4su")
    >>> placement = place_ranks(fabric, PlacementSpec(), 64, np.random.default_rng(0))
    >>> network = FabricNetwork(fabric, placement, RankGrid(tp=8, dp=8))
    >>> f"{network.time('dp', 'all-reduce', 1e9):.3f} s"
    '0.036 s'
    """

    def __init__(
        self,
        fabric: Fabric,
        placement: Placement,
        grid: RankGrid,
        options: NetworkOptions | None = None,
        *,
        cache: dict[Any, Any] | None = None,
    ) -> None:
        if len(placement) != grid.n_ranks:
            raise TrafficError(
                f"{len(placement):,} GPUs are placed, but tp x cp x dp x pp = "
                f"{grid.tp} x {grid.cp} x {grid.dp} x {grid.pp} = {grid.n_ranks:,}",
                hint="change dp, or the number of ranks",
            )
        self.fabric = fabric
        self.placement = placement
        self.grid = grid
        self.options = options or NetworkOptions()
        self._cache: dict[Any, Any] = {} if cache is None else cache
        self._place_key = _digest(placement.host, placement.local_gpu)
        self._group_keys: dict[str, bytes] = {}

    # ---- what callers ask ---------------------------------------------------------------------

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002 -- the protocol's name
        """Return how long a collective of every group of an axis takes, all at once.

        Parameters
        ----------
        axis
            Axis of `RankGrid.groups`: ``tp``, ``cp``, ``dp``, ``pp``, ``ep``, ``edp``, ``dp-cp``, ...
        collective
            One of `COLLECTIVES`; ``send-recv`` is from each stage to the next on ``pp``, else around a ring.
        bytes
            Size as nccl-tests counts it.

        Returns
        -------
        float
            Seconds until the slowest group has ended; 0 for groups of one rank and for nothing to send.

        Raises
        ------
        TrafficError
            No such axis or collective.
        """
        return self.times(axis, collective, bytes).total_s

    def times(
        self,
        axis: str,
        collective: str,
        bytes: float,  # noqa: A002
        *,
        slowdown: float = 1.0,
    ) -> AxisTime:
        """Return the parts of `time`; the network's is ``slowdown`` times as long (by other jobs)."""
        _check_collective(collective)
        if bytes < 0 or not math.isfinite(bytes):
            raise TrafficError(
                f"bytes = {bytes}: a size is finite, and 0 or more", hint="0 for nothing to send"
            )
        if self.grid.size(axis) == 1 or bytes == 0:
            return AxisTime(0.0, 0.0, 0.0, 0.0, 0.0)
        phases, reference = self._phase_times(axis, collective, bytes)
        scale = bytes / reference
        slow = [replace(phase, network=phase.network * slowdown) for phase in phases]
        return AxisTime(
            total_s=sum(phase.at(scale) for phase in slow),
            network_s=sum(phase.network for phase in slow) * scale,
            scale_up_s=sum(phase.scale_up for phase in phases) * scale,
            latency_s=sum(phase.latency for phase in phases),
            ideal_s=sum(replace(phase, network=phase.ideal).at(scale) for phase in phases),
        )

    def bound(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return a time that no routing can beat: only NIC ports and scale-up domains limit [s]."""
        _check_collective(collective)
        if self.grid.size(axis) == 1 or bytes <= 0:
            return 0.0
        reference = self._size_class(bytes)
        key = ("bound", *self._key(axis, collective, reference))
        if key not in self._cache:
            laid = self.lay(axis, collective, reference)
            self._cache[key] = sum(self._bound_of(part) for part in laid.phases)
        return float(self._cache[key]) * bytes / reference

    def boundary_times(self, bytes: float) -> NDArray[np.float64]:  # noqa: A002
        """Return how long each boundary between stages takes when all send at once.

        Returns
        -------
        (pp - 1,) float64
            From stage p to stage p + 1, the slowest pipeline [s].
        """
        groups = self.grid.groups("pp")
        took = np.zeros(self.grid.pp - 1)
        if not len(took) or bytes <= 0:
            return took
        part, stage = self._send_flows(groups[:, :-1], groups[:, 1:], bytes)
        host = self.placement.host[groups]
        near, at = np.nonzero(host[:, :-1] == host[:, 1:])
        np.maximum.at(took, at, bytes / self.fabric.scale_up_rate[host[near, at]] + SCALE_UP_LATENCY_S)
        if len(part.src):
            runner = Runner(self.fabric, self.options)
            lines = runner.lines([(part, self.options.p2p_window)])
            np.maximum.at(took, stage, runner.solve(lines) + lines.delay)
        return took

    def together(self, asked: Sequence[tuple[str, str, float]]) -> list[float]:
        """Return when each of several collectives ends that begin at the same time and share the links.

        Parameters
        ----------
        asked
            (axis, collective, bytes) of each, as for `time`.

        Returns
        -------
        list of float
            End of each [s].
        """
        for _, collective, _ in asked:
            _check_collective(collective)
        laid = [
            self.lay(axis, collective, size) if self.grid.size(axis) > 1 and size > 0 else None
            for axis, collective, size in asked
        ]
        return run_together(self.fabric, laid, self.options)

    # ---- laying -------------------------------------------------------------------------------

    def lay(self, axis: str, collective: str, bytes: float) -> Laid:  # noqa: A002
        """Return the flows of all groups of an axis.

        Parameters
        ----------
        axis, collective, bytes
            As for `time`.
        """
        groups = self.grid.groups(axis)
        if collective == "send-recv":
            return self._lay_send(axis, groups, bytes)
        spec = TRAFFIC_SPEC.validate_python(self._spec(collective, bytes))
        experts = self.options.experts if collective == "all-to-all" else None
        phases = lay_groups(self.placement, groups, spec)
        if experts is not None:
            phases = [self._limited(part, groups, experts, bytes) for part in phases]
        return Laid(tuple(at_fixed_rates(part) for part in phases), bytes, spec.window)

    def links_of(self, laid: Laid) -> NDArray[np.bool_]:
        """Return which links some flows use: (n_links,)."""
        runner = Runner(self.fabric, self.options)
        used = np.zeros(len(self.fabric.links), bool)
        for part in laid.phases:
            if part.phase.trees is not None:
                used[part.phase.trees.link] = True
                continue
            routes = runner.lines([(part, None)]).routes
            used |= routes.link_load(np.ones(routes.n_paths)) > 0
        return used

    def _spec(self, collective: str, size: float) -> dict[str, Any]:
        """Return the traffic spec of one communicator, as plain data."""
        options = self.options
        spec: dict[str, Any] = {
            "name": "group",
            "kind": collective,
            "size": max(round(size), 1),
            "qps": options.qps,
        }
        if collective == "all-to-all":
            return spec | {"pxn": options.pxn, "window": options.p2p_window}
        spec |= {"channels": options.channels, "window": options.window, "protocol": options.protocol}
        if collective == "all-reduce" or options.algorithm == "auto":
            spec["algorithm"] = options.algorithm
        return spec

    def _lay_send(self, axis: str, groups: NDArray[np.int64], size: float) -> Laid:
        """Lay messages from each stage to the next, or on other axes from each rank to the next around."""
        src = groups[:, :-1] if axis == "pp" else groups
        dst = groups[:, 1:] if axis == "pp" else np.roll(groups, -1, axis=1)
        return Laid((self._send_flows(src, dst, size)[0],), size, self.options.p2p_window)

    def _send_flows(
        self, src: NDArray[np.int64], dst: NDArray[np.int64], size: float
    ) -> tuple[PhaseTraffic, NDArray[np.int64]]:
        """Return messages from rank to rank, split over the NICs of the two, and the column of each flow."""
        column = np.broadcast_to(np.arange(src.shape[1]), src.shape).ravel()
        a, b = src.ravel(), dst.ravel()
        host = self.placement.host
        away = host[a] != host[b]
        near = a[~away]
        scale_up = float((size / self.fabric.scale_up_rate[host[near]]).max()) if len(near) else 0.0
        phase = Phase("send-recv", lockstep=True, scale_up_s=scale_up, scale_up_hops=1 if len(near) else 0)
        ports = ports_of_ranks(self.placement)
        source, target = ports[a[away]], ports[b[away]]
        used = (source >= 0) & (target >= 0)
        if self.options.pxn:
            source = on_rail(self.fabric, source, target, used)
        message, place = np.nonzero(used)
        share = size / used.sum(axis=1)[message]
        source, target = source[message, place], target[message, place]
        count = self._p2p_channels(source)
        n = int(count.sum())
        part = PhaseTraffic(
            phase,
            np.repeat(source, count),
            np.repeat(target, count),
            np.repeat(share / count, count),
            channel=np.arange(n) - np.repeat(np.cumsum(count) - count, count),
            ring=np.arange(n),
        )
        return part, np.repeat(column[away][message], count)

    def _p2p_channels(self, port: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the channels by which each port sends a message (NCCL, ncclTopoComputeP2pChannels)."""
        if self.options.p2p_channels is not None:
            return np.full(len(port), self.options.p2p_channels)
        rate = self.fabric.endpoint_rate[port]
        return np.maximum(np.ceil(rate / _P2P_CHANNEL_RATE), 2).astype(np.int64)

    def _limited(
        self, part: PhaseTraffic, groups: NDArray[np.int64], experts: Experts, size: float
    ) -> PhaseTraffic:
        """Limit the hosts of a token: it crosses the network once for each, not once for each expert.

        Of ``top_k`` copies of a token, spread over k hosts, ``top_k (k-1)/k`` leave the host; with at most
        M hosts, each sent once, ``min(M, k, top_k) (k-1)/k`` do; hosts pass copies on to their GPUs.
        """
        host = self.placement.host
        hosts = min(len(np.unique(host[group])) for group in (groups[0], groups[-1]))
        sent = min(experts.most_hosts, hosts, experts.top_k)
        factor = sent / experts.top_k
        n = groups.shape[1]
        passed_on = size * (n - 1) / n  # every copy reaches its GPU by the scale-up domain, but its own
        slowest = float(self.fabric.scale_up_rate[host].min())
        phase = replace(part.phase, scale_up_s=max(part.phase.scale_up_s * factor, passed_on / slowest))
        return replace(part, phase=phase, size=part.size * factor)

    # ---- running ------------------------------------------------------------------------------

    def _size_class(self, size: float) -> float:
        """Return the size at which a pattern is run, for a size asked for."""
        options = self.options
        if options.cc == MAX_MIN and options.algorithm != "auto" and options.protocol == "none":
            return float(_REFERENCE)
        return float(2 ** max(math.floor(math.log2(size)), 0))

    def _key(self, axis: str, collective: str, reference: float) -> tuple[Any, ...]:
        """Return what a pattern's time depends on."""
        if axis not in self._group_keys:
            groups = self.grid.groups(axis)
            self._group_keys[axis] = _digest(np.array(groups.shape), groups)
        chain = axis == "pp" and collective == "send-recv"
        return (self._place_key, self._group_keys[axis], chain, collective, reference, self.options)

    def _phase_times(self, axis: str, collective: str, size: float) -> tuple[list[_PhaseTime], float]:
        """Return the times of a pattern's phases, and for which size they are."""
        reference = self._size_class(size)
        key = ("time", *self._key(axis, collective, reference))
        if key not in self._cache:
            self._cache[key] = self._run(self.lay(axis, collective, reference), collective)
        return self._cache[key], reference

    def _run(self, laid: Laid, collective: str) -> list[_PhaseTime]:
        """Run all groups at once in the engine."""
        options = self.options
        ideal = [self._bound_of(part) for part in laid.phases]
        if options.cc == MAX_MIN and all(is_even(part) for part in laid.phases):
            runner = Runner(self.fabric, options)
            times = []
            for part, bound in zip(laid.phases, ideal, strict=True):
                lines = runner.lines([(part, laid.window)])
                network = runner.fullest(lines)
                times.append(
                    _PhaseTime(network, part.phase.scale_up_s, lines.latency(0), min(bound, network))
                )
            return times
        demand = make_demand(laid, collective, len(self.placement), options.qps)
        scenario = Scenario(
            self.fabric,
            demand,
            options.routing,
            RoutingOptions(seed=options.seed),
            mtu=options.mtu,
            cc=options.cc,
        )
        result = simulate(scenario)
        times = []
        for part, found, bound in zip(laid.phases, result.phases, ideal, strict=True):
            latency = found.latency_s
            if not part.phase.lockstep and part.phase.software is None:
                latency = max(found.completion_s - max(found.network_s, found.scale_up_s), 0.0)
            # What is neither network nor scale-up domain is the library's own time for the bytes.
            inside = max(found.scale_up_s, found.completion_s - latency)
            if found.completion_s - latency <= found.network_s * (1 + EQUAL):
                inside = found.scale_up_s
            times.append(_PhaseTime(found.network_s, inside, latency, min(bound, found.network_s)))
        return times

    def _bound_of(self, part: PhaseTraffic) -> float:
        """Return a phase's time if only its NIC ports and scale-up domains limit it."""
        transport = TRANSPORTS[SCHEMES.find(self.options.routing).transport]
        rate = self.fabric.endpoint_rate * transport.payload_fraction(self.options.mtu)
        n = self.fabric.n_endpoints
        size = np.broadcast_to(part.size, part.src.shape)
        sent, received = np.bincount(part.src, size, minlength=n), np.bincount(part.dst, size, minlength=n)
        return max(float((np.maximum(sent, received) / rate).max(initial=0.0)), part.phase.scale_up_s)


def _digest(*arrays: NDArray[np.int64]) -> bytes:
    """Return what stands for arrays as a key."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()


def _check_collective(collective: str) -> None:
    """Refuse what is not one of `COLLECTIVES`."""
    if collective not in COLLECTIVES:
        raise TrafficError(
            f"collective = {collective!r} is not one of {', '.join(COLLECTIVES)}",
            hint=did_you_mean(collective, COLLECTIVES) or "all-reduce",
        )
