"""Shares of links when a flow is spread evenly over all its shortest paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from netplan.kernels.walk import UNREACHED, breadth_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Floats, Ints, Ints32


def count_shares(
    ptr: NDArray[np.int64],
    link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    from_leaf: NDArray[np.int64],
    to_leaf: NDArray[np.int64],
) -> tuple[NDArray[np.int64], int]:
    """Count the links on the shortest paths of each pair of leaves.

    Parameters
    ----------
    ptr, link
        CSR of links between switches, over all nodes.
    link_dst : (n_links,) int32
        Node at the end of each link.
    from_leaf, to_leaf : (n_pairs,) int64
        Pairs of leaves; ``to_leaf`` ascending.

    Returns
    -------
    count : (n_pairs,) int64
        Links with a share.
    lost
        A pair that no path joins, or -1.
    """
    count = np.zeros(len(from_leaf), np.int64)
    nothing = np.zeros(0)
    lost = _shares(ptr, link, link_dst, from_leaf, to_leaf, count, np.zeros(0, np.int64), nothing, np.False_)
    return count, int(lost)


def fill_shares(
    ptr: NDArray[np.int64],
    link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    from_leaf: NDArray[np.int64],
    to_leaf: NDArray[np.int64],
    pair_ptr: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the links and shares of each pair, at the places that ``pair_ptr`` gives them.

    The share of a link is the number of the pair's shortest paths that cross it over the number
    of its shortest paths; a node's shares out equal its shares in.
    """
    links, shares = np.empty(pair_ptr[-1], np.int64), np.empty(pair_ptr[-1])
    place = pair_ptr[:-1].copy()
    _shares(ptr, link, link_dst, from_leaf, to_leaf, place, links, shares, np.True_)
    return links, shares


@njit(cache=True)
def _shares(
    ptr: Ints,
    link: Ints,
    link_dst: Ints32,
    from_leaf: Ints,
    to_leaf: Ints,
    place: Ints,
    links: Ints,
    shares: Floats,
    is_filling: np.bool_,
) -> int:
    """Advance ``place`` by each pair's number of links, writing them when filling; return a lost pair."""
    n_nodes = len(ptr) - 1
    distance = np.full(n_nodes, UNREACHED, np.int32)
    queue = np.empty(n_nodes, np.int64)
    paths = np.zeros(n_nodes)
    part = np.zeros(n_nodes)
    seen = np.zeros(n_nodes, np.bool_)
    ahead = np.empty(n_nodes, np.int64)
    here = -1
    reached = 0
    for pair in range(len(from_leaf)):
        if to_leaf[pair] != here:
            for q in range(reached):
                distance[queue[q]] = UNREACHED
            here = to_leaf[pair]
            reached = breadth_first(ptr, link, link_dst, here, distance, queue)
            paths[here] = 1.0
            for q in range(1, reached):
                node = queue[q]
                paths[node] = 0.0
                for e in range(ptr[node], ptr[node + 1]):
                    other = link_dst[link[e]]
                    if distance[other] == distance[node] - 1:
                        paths[node] += paths[other]
        start = from_leaf[pair]
        if distance[start] == UNREACHED:
            return pair
        ahead[0] = start
        part[start] = 1.0
        head, tail = 0, 1
        while head < tail:
            node = ahead[head]
            head += 1
            for e in range(ptr[node], ptr[node + 1]):
                other = link_dst[link[e]]
                if distance[other] != distance[node] - 1:
                    continue
                share = part[node] * paths[other] / paths[node]
                if is_filling:
                    links[place[pair]] = link[e]
                    shares[place[pair]] = share
                place[pair] += 1
                if not seen[other]:
                    seen[other] = True
                    part[other] = 0.0
                    ahead[tail] = other
                    tail += 1
                part[other] += share
        for q in range(tail):
            seen[ahead[q]] = False
    return -1
