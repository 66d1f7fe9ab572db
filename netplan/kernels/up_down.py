"""Static destination routing with up/down rules and balanced port counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from netplan.kernels.forwarding import destination_turns, follow_table
from netplan.kernels.walk import UNREACHED, whole_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Ints, Ints32


def up_down_paths(
    ptr: NDArray[np.int64],
    link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    rank: NDArray[np.int64],
    cable: NDArray[np.int32],
    leaf: NDArray[np.int32],
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Lay forwarding tables for every endpoint and follow them for every row.

    Parameters
    ----------
    ptr, link
        CSR of links between switches, over all nodes.
    link_dst : (n_links,) int32
        Node at the end of each link.
    rank : (n_nodes,) int64
        A link to a node of higher rank goes up.
    cable, leaf : (n_endpoints,) int32
        Cable and leaf of each endpoint.
    src, dst : (n,) endpoints
        The rows.

    Returns
    -------
    path_ptr, link
        CSR of links in path order.
    lost
        A row whose endpoints no legal path joins, or -1.

    Notes
    -----
    A switch that can reach the destination by going down only does so; otherwise it goes up
    towards the nearest switch that can. A packet that came down to a switch finds it able to go
    on down, so no path turns up again, whoever sent it.

    Balanced as OpenSM does it: destinations take their turns leaf by leaf, leaves with more
    endpoints first, in the order of their cables; each switch takes the shortest port that it has
    used least, and among equals the first. Links and cables by id are ports by number.
    """
    turns = destination_turns(cable, leaf, dst)
    leaves = leaf.astype(np.int64), leaf[src].astype(np.int64)

    def walk(width: int) -> tuple[Ints, Ints, int]:
        return _lay_and_follow(ptr, link, link_dst, rank, *leaves, *turns, width)

    return whole_paths(walk, cable, src, dst)


@njit(cache=True)
def _down_distances(
    ptr: Ints, link: Ints, link_dst: Ints32, rank: Ints, target: int, distance: Ints32, queue: Ints
) -> int:
    """Hops from each node to ``target`` going down only; return how many nodes have one."""
    distance[target] = 0
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for e in range(ptr[node], ptr[node + 1]):
            above = link_dst[link[e]]
            if rank[above] > rank[node] and distance[above] == UNREACHED:
                distance[above] = distance[node] + 1
                queue[tail] = above
                tail += 1
    return tail


@njit(cache=True)
def _up_distances(
    ptr: Ints, link: Ints, link_dst: Ints32, by_rank: Ints, rank: Ints, down: Ints32, total: Ints32
) -> None:
    """Hops of the shortest legal path of each node: down only, else up first.

    Taken by falling rank, so that all nodes above a node are settled before it.
    """
    for i in range(len(by_rank) - 1, -1, -1):
        node = by_rank[i]
        total[node] = down[node]
        if down[node] == UNREACHED:
            for e in range(ptr[node], ptr[node + 1]):
                above = link_dst[link[e]]
                if rank[above] > rank[node] and total[above] != UNREACHED:
                    total[node] = min(total[node], total[above] + 1)


@njit(cache=True)
def _lay_and_follow(
    ptr: Ints,
    link: Ints,
    link_dst: Ints32,
    rank: Ints,
    leaf: Ints,
    src_leaf: Ints,
    turn: Ints,
    order: Ints,
    row_ptr: Ints,
    width: int,
) -> tuple[Ints, Ints, int]:
    """Return (hops, length, lost): the links between switches of each row."""
    n_nodes = len(ptr) - 1
    n = len(src_leaf)
    hops = np.full((n, width), -1, np.int64)
    length = np.zeros(n, np.int64)
    down = np.full(n_nodes, UNREACHED, np.int32)
    total = np.full(n_nodes, UNREACHED, np.int32)
    queue = np.empty(n_nodes, np.int64)
    forward = np.full(n_nodes, -1, np.int64)
    used = np.zeros(len(link_dst), np.int64)
    by_rank = np.argsort(rank)
    here = -1
    for endpoint in turn:
        if leaf[endpoint] != here:
            down[:] = UNREACHED
            here = leaf[endpoint]
            _down_distances(ptr, link, link_dst, rank, here, down, queue)
            _up_distances(ptr, link, link_dst, by_rank, rank, down, total)
        for i in range(n_nodes):
            node = by_rank[i]
            forward[node] = -1
            if node == here or total[node] == UNREACHED:
                continue
            goes_down = down[node] != UNREACHED
            best = np.int64(1) << 62
            for e in range(ptr[node], ptr[node + 1]):
                other = link_dst[link[e]]
                if goes_down:
                    fits = rank[other] < rank[node] and down[other] == down[node] - 1
                else:
                    fits = rank[other] > rank[node] and total[other] == total[node] - 1
                if fits and used[link[e]] < best:
                    best = used[link[e]]
                    forward[node] = link[e]
            if forward[node] >= 0:
                used[forward[node]] += 1
        rows = order[row_ptr[endpoint] : row_ptr[endpoint + 1]]
        lost = follow_table(rows, src_leaf, here, forward, link_dst, hops, length)
        if lost >= 0:
            return hops, length, lost
    return hops, length, -1
