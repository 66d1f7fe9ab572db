"""Static destination routing on shortest paths with balanced port counters (OpenSM's ``minhop``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from netplan.kernels.forwarding import destination_turns, follow_table
from netplan.kernels.walk import UNREACHED, breadth_first, whole_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Ints, Ints32


def min_hop_paths(
    ptr: NDArray[np.int64],
    link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
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
    cable, leaf : (n_endpoints,) int32
        Cable and leaf of each endpoint.
    src, dst : (n,) endpoints
        The rows.

    Returns
    -------
    path_ptr, link
        CSR of links in path order.
    lost
        A row whose endpoints no path joins, or -1.

    Notes
    -----
    Destinations take their turns as in `netplan.kernels.up_down`: leaf by leaf, leaves with more
    endpoints first, in the order of their cables. For each, every switch takes the port on a
    shortest path that it has used least, and among equals the first.
    """
    turns = destination_turns(cable, leaf, dst)
    leaves = leaf.astype(np.int64), leaf[src].astype(np.int64)

    def walk(width: int) -> tuple[Ints, Ints, int]:
        return _lay_and_follow(ptr, link, link_dst, *leaves, *turns, width)

    return whole_paths(walk, cable, src, dst)


@njit(cache=True)
def _next_links(
    ptr: Ints, link: Ints, link_dst: Ints32, distance: Ints32, ahead_ptr: Ints, ahead: Ints
) -> None:
    """Fill the CSR of each node's links that shorten the distance, in the order of ``link``."""
    found = 0
    for node in range(len(ptr) - 1):
        ahead_ptr[node] = found
        if distance[node] == UNREACHED or distance[node] == 0:
            continue
        for e in range(ptr[node], ptr[node + 1]):
            if distance[link_dst[link[e]]] == distance[node] - 1:
                ahead[found] = link[e]
                found += 1
    ahead_ptr[len(ptr) - 1] = found


@njit(cache=True)
def _lay_and_follow(
    ptr: Ints,
    link: Ints,
    link_dst: Ints32,
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
    distance = np.full(n_nodes, UNREACHED, np.int32)
    queue = np.empty(n_nodes, np.int64)
    ahead_ptr = np.zeros(n_nodes + 1, np.int64)
    ahead = np.empty(len(link), np.int64)
    undecided = np.empty(n_nodes, np.int64)
    on_leaf = np.bincount(leaf, minlength=n_nodes)
    open_nodes = 0
    forward = np.full(n_nodes, -1, np.int64)
    used = np.zeros(len(link_dst), np.int64)
    reached = 0
    here = -1
    for endpoint in turn:
        if leaf[endpoint] != here:
            for q in range(reached):
                distance[queue[q]] = UNREACHED
            here = leaf[endpoint]
            reached = breadth_first(ptr, link, link_dst, here, distance, queue)
            _next_links(ptr, link, link_dst, distance, ahead_ptr, ahead)
            forward[:] = -1
            # A switch's counters are its own: where it has one way to the leaf, all its endpoints take that.
            open_nodes = 0
            for q in range(1, reached):
                node = queue[q]
                if ahead_ptr[node + 1] - ahead_ptr[node] > 1:
                    undecided[open_nodes] = node
                    open_nodes += 1
                else:
                    forward[node] = ahead[ahead_ptr[node]]
                    used[forward[node]] += on_leaf[here]
        for q in range(open_nodes):
            node = undecided[q]
            best = ahead[ahead_ptr[node]]
            for e in range(ahead_ptr[node] + 1, ahead_ptr[node + 1]):
                if used[ahead[e]] < used[best]:
                    best = ahead[e]
            forward[node] = best
            used[best] += 1
        rows = order[row_ptr[endpoint] : row_ptr[endpoint + 1]]
        lost = follow_table(rows, src_leaf, here, forward, link_dst, hops, length)
        if lost >= 0:
            return hops, length, lost
    return hops, length, -1
