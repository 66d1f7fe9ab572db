"""Phases that run at the same time, of one job or several: how they share links.

Rates are max-min fair for the flows of all phases that are under way, routed together, until the first of the
phases ends. In a phase all flows move with the slowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.line_rate import SCALE_UP_LATENCY_S, TRANSPORTS, latencies
from netplan.errors import TrafficError
from netplan.kernels.max_min import solve_max_min
from netplan.routing import FlowTable, Routes, RoutingOptions, route_flows
from netplan.routing.registry import SCHEMES
from netplan.training.laying import EQUAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.traffic.demand import Phase, PhaseTraffic
    from netplan.training.laying import Laid, NetworkOptions

__all__ = ["Lines", "Runner", "run_together", "slowdown"]

#: Least round trip that a window is held against [s].
_SHORTEST_S = 1e-12


# ---- several kinds at once ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lines:
    """Flows of phases that run at the same time, routed together."""

    phases: tuple[Phase, ...]
    ptr: NDArray[np.int64]
    """(n_phases + 1,) flows ``ptr[k]:ptr[k + 1]`` belong to phase ``k``."""
    routes: Routes
    size: NDArray[np.float64]
    delay: NDArray[np.float64]
    """(n_flows,) one-way latency [s]; of the cables alone where the library's times have the rest."""
    most: NDArray[np.float64]
    """(n_flows,) what the window lets through where that is less than the NIC's rate, else inf [bytes/s]."""
    ring: NDArray[np.int64]

    def of(self, number: int) -> slice:
        """Return the flows of a phase."""
        return slice(int(self.ptr[number]), int(self.ptr[number + 1]))

    def latency(self, number: int) -> float:
        """Return the latency of a phase [s]."""
        mine, phase = self.of(number), self.phases[number]
        delay, ring = self.delay[mine], self.ring[mine]
        around = 0.0
        if len(delay) and phase.hops:
            order = np.lexsort((-delay, ring))
            nth = np.arange(len(ring)) - np.searchsorted(ring[order], ring[order])
            around = float(np.bincount(ring[order], np.where(nth < phase.hops, delay[order], 0.0)).max())
        elif len(delay):
            around = float(np.bincount(ring, delay).max())
        if phase.software is not None:
            return phase.software.latency_s + phase.passes * around
        return phase.passes * (around + phase.scale_up_hops * SCALE_UP_LATENCY_S)

    def floor(self, number: int) -> float:
        """Return the least time of a phase, whatever the network does [s]."""
        phase = self.phases[number]
        return max(phase.scale_up_s, 0.0 if phase.software is None else phase.software.busy_s)


class Runner:
    """Finds how long phases take that run at the same time."""

    def __init__(self, fabric: Fabric, options: NetworkOptions) -> None:
        self.fabric = fabric
        self.options = options
        self.transport = TRANSPORTS[SCHEMES.find(options.routing).transport]
        self.fraction = self.transport.payload_fraction(options.mtu)

    def lines(self, parts: Sequence[tuple[PhaseTraffic, int | None]]) -> Lines:
        """Route the flows of phases, each with the window of its channels."""
        fabric = self.fabric
        if any(part.phase.trees is not None for part, _ in parts):
            raise TrafficError(
                "aggregation trees in switches cannot share links with other traffic here",
                hint="algorithm: ring, tree or hierarchical",
            )
        counts = [len(part.src) for part, _ in parts]
        n = sum(counts)

        def column(values: Sequence[object], dtype: type) -> NDArray[Any]:
            blocks = [
                np.broadcast_to(np.asarray(value), (k,)) for value, k in zip(values, counts, strict=True)
            ]
            return np.concatenate(blocks).astype(dtype)

        src, dst = column([part.src for part, _ in parts], int), column([part.dst for part, _ in parts], int)
        channel = column([part.channel for part, _ in parts], np.int32)
        table = FlowTable(src.astype(np.int32), dst.astype(np.int32), channel, self.options.qps)
        routes = route_flows(fabric, table, self.options.routing, RoutingOptions(seed=self.options.seed))
        delay = cable_delay = np.zeros(n)
        if n:
            switch, endpoint = latencies(fabric, self.transport)
            hops = routes.path_sum(np.ones(routes.n_links)) - 1
            cables = routes.path_sum(fabric.links.delay)
            path = cables + hops * switch + endpoint
            delay = np.maximum.reduceat(path, routes.flow_ptr[:-1])
            cable_delay = np.maximum.reduceat(cables, routes.flow_ptr[:-1])
        window = column([np.inf if window is None else window for _, window in parts], np.float64)
        most = window / np.maximum(2 * delay, _SHORTEST_S)
        line = np.minimum(fabric.endpoint_rate[src], fabric.endpoint_rate[dst]) * self.fraction
        by_library = column([part.phase.software is not None for part, _ in parts], np.bool_)
        return Lines(
            phases=tuple(part.phase for part, _ in parts),
            ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            routes=routes,
            size=column([part.size for part, _ in parts], np.float64),
            delay=np.where(by_library, cable_delay, delay),
            most=np.where(most < line, most, np.inf),
            ring=np.concatenate([_rings(part) for part, _ in parts]),
        )

    def fullest(self, lines: Lines) -> float:
        """Return the time that the fullest link needs for the bytes of all flows [s]."""
        routes = lines.routes
        if not len(lines.size):
            return 0.0
        owner = np.repeat(np.arange(len(lines.size)), np.diff(routes.flow_ptr))
        sent = lines.size[owner] / self.options.qps * routes.weight
        room = routes.capacity(self.fabric.links.capacity * self.fraction)
        load = np.bincount(
            routes.resource, np.repeat(sent, np.diff(routes.path_ptr)) * routes.share, minlength=len(room)
        )
        return float(max((load / room).max(), (lines.size / lines.most).max()))

    def solve(self, lines: Lines) -> NDArray[np.float64]:
        """Return the time that each flow takes if all rates stay as they are [s]."""
        routes, n = lines.routes, len(lines.size)
        owner = np.repeat(np.arange(n), np.diff(routes.flow_ptr))
        room = routes.capacity(self.fabric.links.capacity * self.fraction)
        coefficient = np.repeat(routes.weight, np.diff(routes.path_ptr)) * routes.share
        pointer, resource = routes.path_ptr, routes.resource
        limited = np.flatnonzero(np.isfinite(lines.most))
        if len(limited):  # a resource of its own for each flow that its window limits
            place = np.full(n, -1, np.int64)
            place[limited] = len(room) + np.arange(len(limited))
            paths = np.flatnonzero(place[owner] >= 0)
            at = pointer[paths + 1]
            resource = np.insert(resource, at, place[owner[paths]])
            coefficient = np.insert(coefficient, at, routes.weight[paths])
            added = np.zeros(len(pointer), np.int64)
            added[paths + 1] = 1
            pointer = pointer + np.cumsum(added)
            room = np.concatenate([room, lines.most[limited]])
        rate = solve_max_min(room, pointer, resource, coefficient).rate
        took = np.zeros(n)
        np.maximum.at(took, owner, lines.size[owner] / self.options.qps / rate)
        return took


def _rings(part: PhaseTraffic) -> NDArray[np.int64]:
    """Return the ring of each flow of a phase; a flow of none is one of its own."""
    n = len(part.src)
    ring = np.broadcast_to(np.asarray(part.ring, np.int64), (n,))
    return np.where(ring >= 0, ring, np.arange(n) + int(ring.max(initial=-1)) + 1)


def slowdown(fabric: Fabric, mine: Laid, others: Sequence[Laid], options: NetworkOptions) -> float:
    """Return how much longer a pattern takes on the network while others never stop.

    Parameters
    ----------
    fabric
        The fabric.
    mine
        The pattern.
    others
        Patterns that are under way all the time; of each the phase with the most flows is taken.
    options
        Routing and transport; rates are max-min fair.

    Returns
    -------
    float
        1 or more: time of its phases with the others over that without.
    """
    runner = Runner(fabric, options)
    own = [part for part in mine.phases if len(part.src)]
    theirs = [
        (max(each.phases, key=lambda part: len(part.src)), each.window) for each in others if each.flows
    ]
    if not own or not theirs:
        return 1.0
    alone, shared = 0.0, 0.0
    for part in own:
        alone += float(runner.solve(runner.lines([(part, mine.window)])).max())
        lines = runner.lines([(part, mine.window), *theirs])
        shared += float(runner.solve(lines)[lines.of(0)].max())
    return max(shared / alone, 1.0)


def run_together(
    fabric: Fabric,
    laid: Sequence[Laid | None],
    options: NetworkOptions,
) -> list[float]:
    """Return when each of several patterns ends that begin at the same time and share the links.

    Parameters
    ----------
    fabric
        The fabric.
    laid
        Flows of each pattern; None for one with nothing to send. Patterns may belong to several jobs.
    options
        Routing and transport; rates are max-min fair.

    Returns
    -------
    list of float
        End of each pattern [s].

    Notes
    -----
    Between two ends of phases all rates stay: a solution of max-min for each, as many as there are phases.
    """
    runner = Runner(fabric, options)
    waiting = [[] if part is None else [(phase, part.window) for phase in part.phases] for part in laid]
    left, end, now = [1.0] * len(laid), [0.0] * len(laid), 0.0
    while any(waiting):
        active = [number for number, phases in enumerate(waiting) if phases]
        lines = runner.lines([waiting[number][0] for number in active])
        took = runner.solve(lines)
        needs = [
            max(float(took[lines.of(k)].max(initial=0.0)), lines.floor(k)) + lines.latency(k)
            for k in range(len(lines.phases))
        ]
        passing = min(left[number] * need for number, need in zip(active, needs, strict=True))
        now += passing
        for number, need in zip(active, needs, strict=True):
            left[number] -= passing / need if need > 0 else 1.0
            if left[number] <= EQUAL:
                left[number], end[number] = 1.0, now
                waiting[number].pop(0)
    return end
