"""The roads not taken, measured beside those that were: CPU seconds in one process.

    python benchmarks/alternatives.py

1. The largest shipped fabric as columns, and the same as a networkx graph.
2. Paths of 131,064 flows on it by arithmetic on ids, and by walking next hops.
3. Max-min rates by rounds of local bottlenecks, and by textbook filling (one level a round, vectorised).
4. Finish times of flows with distinct sizes: solving anew where rates can have changed, and everywhere.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import simgrid_peer
from shapes import SHAPES, shape_fabric

from netplan import api
from netplan.fabric.convert import to_networkx
from netplan.kernels.completion import complete
from netplan.kernels.hashing import mix
from netplan.kernels.max_min import solve_max_min
from netplan.routing import FlowTable, Routes, route_flows
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.fabric import Fabric

REPEATS = 3


def cpu(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the least CPU time of some runs [s], and what the last one returned."""
    best, found = np.inf, None
    for _ in range(repeats):
        begun = time.process_time()
        found = run()
        best = min(best, time.process_time() - begun)
    return best, found


def line(what: str, ours: float, other: str, theirs: float) -> None:
    """Print one comparison."""
    print(
        f"{what:<46} {ours:>9.3f} s   {other:<42} {theirs:>9.3f} s   ratio {theirs / ours:>7.1f}", flush=True
    )


def permutation(fabric: Fabric, n: int, scheme: str) -> Routes:
    """Route the permutation that SimGrid is measured on."""
    dst, _ = simgrid_peer.traffic("permutation", n, 1, 1)
    table = FlowTable(np.arange(n, dtype=np.int32), np.array(dst, np.int32), np.zeros(n, np.int32))
    return route_flows(fabric, table, scheme)


def textbook(capacity: np.ndarray, routes: Routes) -> tuple[np.ndarray, int]:
    """Fill all flows together, one level a round; return rates and rounds."""
    n = routes.n_paths
    flow = np.repeat(np.arange(n), np.diff(routes.path_ptr))
    rate, is_open, rounds = np.zeros(n), np.ones(n, bool), 0
    room = capacity.copy()
    while is_open.any():
        rounds += 1
        growing = np.bincount(routes.resource[is_open[flow]], minlength=len(room))
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(growing > 0, room / growing, np.inf)
        step = level.min()
        rate[is_open] += step
        room -= growing * step
        full = level <= step * (1 + 1e-12)
        is_open[flow[full[routes.resource] & is_open[flow]]] = False
    return rate, rounds


def everywhere(capacity: np.ndarray, routes: Routes, size: np.ndarray) -> np.ndarray:
    """Finish times when every completion solves all running flows anew (with the fast solver)."""
    left, finish, now = size.copy(), np.full(len(size), np.inf), 0.0
    while np.isinf(finish).any():
        ids = np.flatnonzero(np.isinf(finish))
        lengths = np.diff(routes.path_ptr)[ids]
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        place = np.arange(ptr[-1]) - np.repeat(ptr[:-1], lengths) + np.repeat(routes.path_ptr[ids], lengths)
        rate = solve_max_min(capacity, ptr, routes.resource[place]).rate
        until = left[ids] / rate
        step = until.min()
        left[ids] -= rate * step
        now += step
        finish[ids[until <= step * (1 + 1e-9)]] = now
    return finish


def main() -> None:
    """Print the comparisons."""
    big = api.load_fabric("rail-131k")
    spec = FABRIC_SPEC.validate_python(dict(big.spec or {}))
    columns, _ = cpu(lambda: build_fabric(spec))
    graph, _ = cpu(lambda: to_networkx(big), 1)
    line(
        "rail-131k: build and check as columns",
        columns,
        "the same nodes and cables as a networkx graph",
        graph,
    )

    n = big.n_endpoints
    host = np.random.default_rng(1).permutation(big.n_hosts)
    src = np.arange(n)
    dst = host[src // 8] * 8 + src % 8
    away = dst // 8 != src // 8
    src, dst = src[away], dst[away]
    key, seeds = mix(src, dst), switch_seeds(big, 0)
    hashed_paths(big, src[:9], dst[:9], key[:9], seeds, walk=True)
    arithmetic, _ = cpu(lambda: hashed_paths(big, src, dst, key, seeds))
    walked, _ = cpu(lambda: hashed_paths(big, src, dst, key, seeds, walk=True), 1)
    line(f"{len(src):,} hashed paths by arithmetic", arithmetic, "by walking next hops", walked)

    for hosts in (4096, 16384):
        fabric = shape_fabric(SHAPES[hosts])
        routes = permutation(fabric, hosts, "ecmp")
        capacity = fabric.links.capacity
        solve_max_min(capacity, routes.path_ptr, routes.resource)
        local, fast = cpu(lambda c=capacity, r=routes: solve_max_min(c, r.path_ptr, r.resource))
        filled, (rate, rounds) = cpu(lambda c=capacity, r=routes: textbook(c, r), 1)
        assert np.allclose(rate, fast.rate, rtol=1e-9)
        line(
            f"{hosts:,} flows: {fast.rounds} local rounds",
            local,
            f"textbook, {rounds:,} levels, numpy",
            filled,
        )

    fabric = shape_fabric(SHAPES[1024])
    routes = permutation(fabric, 1024, "ib-static")
    capacity, ids = fabric.links.capacity, np.arange(1025)
    _, sizes = simgrid_peer.traffic("permutation-sizes", 1024, 16 * 2**20, 1)
    size, start = np.array(sizes, float), np.zeros(1024)

    def where_needed() -> np.ndarray:
        share = np.ones(len(routes.resource))
        return complete(capacity, routes.path_ptr, routes.resource, share, ids, size, start).finish

    where_needed()
    incremental, ours = cpu(where_needed)
    anew, theirs = cpu(lambda: everywhere(capacity, routes, size), 1)
    assert np.allclose(ours, theirs, rtol=1e-7)
    line("1,024 distinct ends: solved where needed", incremental, "solved everywhere at each end", anew)


if __name__ == "__main__":
    main()
