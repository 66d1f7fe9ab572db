"""Paths found by walking next hops: for fabrics without a structure to compute with.

Only switches forward. A path leaves the source host on its cable, goes from switch to switch on
links that shorten the distance to the destination's leaf, and ends on the destination's cable.
Flows are taken by destination leaf, with one breadth-first search per leaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from netplan.kernels.hashing import choose_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.kernels.arrays import Ints, Ints32, Words

#: Distance of a node that no path reaches: more than any that is reached.
UNREACHED = np.int32(1 << 30)


def walk_hashed(
    tier: NDArray[np.int8],
    out_ptr: NDArray[np.int64],
    out_link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    link_src: NDArray[np.int32],
    cable: NDArray[np.int32],
    leaf: NDArray[np.int32],
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    key: NDArray[np.uint64],
    node_seed: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Walk one path per row, every switch hashing ``key`` with its seed over its shortest-path links.

    Returns
    -------
    path_ptr, link
        CSR of links in path order.
    lost
        A row whose endpoints no path joins, or -1.
    """
    zeros = np.zeros(len(src), np.int64)
    return _walk(
        (tier, out_ptr, out_link, link_dst, link_src),
        cable,
        leaf,
        src,
        dst,
        (0, key, node_seed, zeros, zeros),
    )


def walk_pinned(
    tier: NDArray[np.int8],
    out_ptr: NDArray[np.int64],
    out_link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    link_src: NDArray[np.int32],
    cable: NDArray[np.int32],
    leaf: NDArray[np.int32],
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    first_pin: NDArray[np.int64],
    pin: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Walk one path per row: the first switch takes link ``first_pin`` modulo its options, others ``pin``.

    Returns
    -------
    path_ptr, link, lost
        As `walk_hashed`.
    """
    key = np.zeros(len(src), np.uint64)
    seed = np.zeros(len(tier), np.uint64)
    return _walk(
        (tier, out_ptr, out_link, link_dst, link_src), cable, leaf, src, dst, (1, key, seed, first_pin, pin)
    )


def switch_graph(
    tier: NDArray[np.int8],
    out_ptr: NDArray[np.int64],
    out_link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    link_src: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the CSR of links between switches: row pointer over all nodes, and link ids."""
    between = (tier[link_src[out_link]] > 0) & (tier[link_dst[out_link]] > 0)
    counts = np.concatenate([[0], np.cumsum(between)])
    return counts[out_ptr].astype(np.int64), out_link[between].astype(np.int64)


def _walk(
    graph: tuple[NDArray[np.int8], Ints, Ints, Ints32, Ints32],
    cable: Ints32,
    leaf: Ints32,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    rule: tuple[int, Words, Words, Ints, Ints],
) -> tuple[Ints, Ints, int]:
    """Walk all rows; the paths are as long as they need to be."""
    tier, out_ptr, out_link, link_dst, link_src = graph
    ptr, link = switch_graph(tier, out_ptr, out_link, link_dst, link_src)
    order = np.argsort(leaf[dst], kind="stable")
    src_leaf, dst_leaf = leaf[src].astype(np.int64), leaf[dst].astype(np.int64)

    def walk(width: int) -> tuple[Ints, Ints, int]:
        return _walk_rows(ptr, link, link_dst, src_leaf, dst_leaf, order, *rule, width)

    return whole_paths(walk, cable, src, dst)


def whole_paths(
    walk: Callable[[int], tuple[Ints, Ints, int]],
    cable: NDArray[np.int32],
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
) -> tuple[Ints, Ints, int]:
    """Walk with tables that are wide enough, and put the cables of the endpoints around.

    Parameters
    ----------
    walk
        Given a width, returns (hops, length, lost): the first links between switches of each row, how many
        it has in all, and a row without a path or -1.
    cable : (n_endpoints,) int32
        Cable of each endpoint.
    src, dst : (n,) endpoints
        The rows.

    Returns
    -------
    path_ptr, link
        CSR of links in path order.
    lost
        A row whose endpoints no path joins, or -1.
    """
    width = 8
    while True:
        hops, length, lost = walk(width)
        if lost >= 0:
            return np.zeros(1, np.int64), np.zeros(0, np.int64), int(lost)
        if length.max(initial=0) <= width:
            return *join_hops(cable, src, dst, hops, length), -1
        width = int(length.max())


def join_hops(
    cable: NDArray[np.int32],
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    hops: NDArray[np.int64],
    length: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put each row's links between switches between the cables of its two endpoints, as CSR.

    Parameters
    ----------
    cable : (n_endpoints,) int32
        Cable of each endpoint.
    src, dst : (n,) endpoints
        The rows.
    hops : (n, width) int64
        Links between switches, the first ``length`` of each row.
    length : (n,) int64
        How many there are.
    """
    path_ptr = np.concatenate([[0], np.cumsum(length + 2)])
    first, last = path_ptr[:-1], path_ptr[1:] - 1
    links = np.empty(path_ptr[-1], np.int64)
    links[first], links[last] = 2 * cable[src].astype(np.int64), 2 * cable[dst].astype(np.int64) + 1
    inner = np.ones(path_ptr[-1], bool)
    inner[first] = inner[last] = False
    links[inner] = hops[np.arange(hops.shape[1]) < length[:, None]]
    return path_ptr, links


@njit(cache=True)
def breadth_first(ptr: Ints, link: Ints, link_dst: Ints32, target: int, distance: Ints32, queue: Ints) -> int:
    """Fill ``distance`` (all `UNREACHED` before) with hops to ``target``.

    Returns how many nodes were reached; ``queue`` then lists them by distance. Links are
    traversed backwards: link ``l ^ 1`` is the other direction of ``l``.
    """
    distance[target] = 0
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for e in range(ptr[node], ptr[node + 1]):
            other = link_dst[link[e]]
            if distance[other] == UNREACHED:
                distance[other] = distance[node] + 1
                queue[tail] = other
                tail += 1
    return tail


@njit(cache=True)
def _walk_rows(
    ptr: Ints,
    link: Ints,
    link_dst: Ints32,
    src_leaf: Ints,
    dst_leaf: Ints,
    order: Ints,
    mode: int,
    key: Words,
    node_seed: Words,
    first_pin: Ints,
    pin: Ints,
    width: int,
) -> tuple[Ints, Ints, int]:
    """Return (hops, length, lost): the links between switches of each row."""
    n_nodes = len(ptr) - 1
    n = len(src_leaf)
    hops = np.full((n, width), -1, np.int64)
    length = np.zeros(n, np.int64)
    distance = np.full(n_nodes, UNREACHED, np.int32)
    queue = np.empty(n_nodes, np.int64)
    reached = 0
    here = -1
    for row in order:
        if dst_leaf[row] != here:
            for q in range(reached):
                distance[queue[q]] = UNREACHED
            here = dst_leaf[row]
            reached = breadth_first(ptr, link, link_dst, here, distance, queue)
        node = src_leaf[row]
        if distance[node] == UNREACHED:
            return hops, length, row
        length[row] = distance[node]
        if distance[node] > width:
            continue
        step = 0
        while node != here:
            options = 0
            for e in range(ptr[node], ptr[node + 1]):
                if distance[link_dst[link[e]]] == distance[node] - 1:
                    options += 1
            if mode == 0:
                index = choose_one(key[row], node_seed[node], options)
            elif step == 0:
                index = first_pin[row] % options
            else:
                index = pin[row] % options
            for e in range(ptr[node], ptr[node + 1]):
                if distance[link_dst[link[e]]] == distance[node] - 1:
                    if index == 0:
                        hops[row, step] = link[e]
                        node = link_dst[link[e]]
                        step += 1
                        break
                    index -= 1
    return hops, length, -1
