"""Greedy choice of the least-loaded shortest path, flow by flow.

A path's load is the utilisation of its busiest link after the flow was added; ties go to the
smaller sum over the path, then by a pseudo-random order of the flow's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from netplan.kernels.hashing import choose_one
from netplan.kernels.walk import UNREACHED, breadth_first

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Floats, Ints, Ints16, Ints32, Words

#: On three tiers, cores are looked at above so many of the best spines. Trying all 32 of a 64-port tree takes
#: three times as long, and changes mean rates of random permutations by less than 0.002.
SPINES_TRIED = 4

#: Loads nearer than this are equal: the rounding of sums of rates relative to capacities.
_SAME = 1e-9


@njit(cache=True)
def _lightest(load: Floats, first: int, count: int, start: int) -> int:
    """Return the least-loaded of links ``first + 2 i``, looking from ``start`` on."""
    best = first + 2 * (start % count)
    for i in range(1, count):
        other = first + 2 * ((start + i) % count)
        if load[other] < load[best] - _SAME:
            best = other
    return best


@njit(cache=True)
def _next_spine(ends: Floats, total: Floats, spines: int) -> int:
    """Return the place of the least (ends, total); the first among equals."""
    best = 0
    for i in range(1, spines):
        if ends[i] < ends[best] - _SAME or (ends[i] < ends[best] + _SAME and total[i] < total[best] - _SAME):
            best = i
    return best


@njit(cache=True)
def place_on_clos(
    src_leaf: Ints,
    dst_leaf: Ints,
    leaf_pod: Ints,
    numbers: Ints,
    weight: Floats,
    per_capacity: Floats,
    key: Words,
    rounds: int,
) -> Ints:
    """Choose the links between switches of every flow on a folded Clos.

    Parameters
    ----------
    src_leaf, dst_leaf : (n,) int64
        Leaf numbers of each flow.
    leaf_pod : (n_leaves,) int64
        Pod of each leaf.
    numbers : (6,) int64
        uplinks, spines, spine uplinks, cores per group, first leaf cable, first spine cable.
    weight : (n,) float64
        Rate that each flow would have alone [bytes/s].
    per_capacity : (n_links,) float64
        1 / capacity of every link [s/bytes].
    key : (n,) uint64
        Order in which a flow looks at equal paths.
    rounds
        How often, after all have been placed, every flow on an overloaded path looks again.

    Returns
    -------
    (n, 4) int64
        Links leaf-spine, spine-core, core-spine, spine-leaf; -1 where there is none.
    """
    uplinks, spines, spine_uplinks, cores, leaf_cable, spine_cable = numbers
    n = len(src_leaf)
    path = np.full((n, 4), -1, np.int64)
    load = np.zeros(len(per_capacity))
    if spines == 0:
        return path
    up_link, down_link = np.empty(spines, np.int64), np.empty(spines, np.int64)
    ends, total = np.empty(spines), np.empty(spines)
    bundle = uplinks // spines
    core_bundle = spine_uplinks // cores if cores > 0 else 0
    for look in range(rounds + 1):
        for f in range(n):
            if src_leaf[f] == dst_leaf[f]:
                continue
            if look > 0:
                worst = 0.0
                for h in range(4):
                    if path[f, h] >= 0:
                        worst = max(worst, load[path[f, h]])
                if worst <= 1.0 + _SAME:
                    continue
                for h in range(4):
                    if path[f, h] >= 0:
                        load[path[f, h]] -= weight[f] * per_capacity[path[f, h]]
            src_pod, dst_pod = leaf_pod[src_leaf[f]], leaf_pod[dst_leaf[f]]
            turn = choose_one(key[f], np.uint64(look), 1 << 30)
            best_peak, best_sum = np.inf, np.inf
            near_leaf = 2 * (leaf_cable + src_leaf[f] * uplinks)
            far_leaf = 2 * (leaf_cable + dst_leaf[f] * uplinks) + 1
            for i in range(spines):
                s = (turn + i) % spines
                up_link[i] = _lightest(load, near_leaf + 2 * s * bundle, bundle, turn)
                down_link[i] = _lightest(load, far_leaf + 2 * s * bundle, bundle, turn)
                ends[i] = max(load[up_link[i]], load[down_link[i]])
                total[i] = load[up_link[i]] + load[down_link[i]]
            # Spines by (ends, total), the best first: no core, however idle, makes a path over a spine better
            # than that, so the search is over when the next one cannot win.
            for _ in range(SPINES_TRIED):
                i = _next_spine(ends, total, spines)
                if ends[i] == np.inf or ends[i] > best_peak + _SAME:
                    break
                if ends[i] > best_peak - _SAME and total[i] >= best_sum - _SAME:
                    break
                here, up, down = ends[i], up_link[i], down_link[i]
                ends[i] = np.inf  # seen
                if src_pod == dst_pod:
                    best_peak, best_sum = here, total[i]
                    path[f, 0], path[f, 1], path[f, 2], path[f, 3] = up, -1, -1, down
                    break
                s = (turn + i) % spines
                near = 2 * (spine_cable + (src_pod * spines + s) * spine_uplinks)
                far = 2 * (spine_cable + (dst_pod * spines + s) * spine_uplinks) + 1
                for j in range(cores):
                    g = (turn // spines + j) % cores
                    rise = _lightest(load, near + 2 * g * core_bundle, core_bundle, turn)
                    fall = _lightest(load, far + 2 * g * core_bundle, core_bundle, turn)
                    peak = max(here, load[rise], load[fall])
                    whole = total[i] + load[rise] + load[fall]
                    if peak < best_peak - _SAME or (peak <= best_peak + _SAME and whole < best_sum - _SAME):
                        best_peak, best_sum = peak, whole
                        path[f, 0], path[f, 1], path[f, 2], path[f, 3] = up, rise, fall, down
                        if whole <= total[i] + _SAME:  # this core is idle: there is none better
                            break
            for h in range(4):
                if path[f, h] >= 0:
                    load[path[f, h]] += weight[f] * per_capacity[path[f, h]]
    return path


def place_on_graph(
    ptr: NDArray[np.int64],
    link: NDArray[np.int64],
    link_dst: NDArray[np.int32],
    src_leaf: NDArray[np.int64],
    dst_leaf: NDArray[np.int64],
    weight: NDArray[np.float64],
    per_capacity: NDArray[np.float64],
    key: NDArray[np.uint64],
    rounds: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Choose the links between switches of every flow on any fabric.

    Parameters
    ----------
    ptr, link
        CSR of links between switches, over all nodes.
    link_dst : (n_links,) int32
        Node at the end of each link.
    src_leaf, dst_leaf : (n,) int64
        Node ids of each flow's leaves.
    weight, per_capacity, key, rounds
        As in `place_on_clos`.

    Returns
    -------
    hops : (n, width) int64
        Links in path order.
    length : (n,) int64
        How many each flow has.
    lost
        A flow whose leaves no path joins, or -1.
    """
    targets, target_of = np.unique(dst_leaf, return_inverse=True)
    distance = _distance_table(ptr, link, link_dst, targets)
    length = distance[target_of, src_leaf].astype(np.int64)
    unreached = np.flatnonzero(length >= np.iinfo(np.int16).max)
    if len(unreached):
        return np.zeros((0, 0), np.int64), length, int(unreached[0])
    width = int(length.max(initial=0))
    hops = _place(
        ptr, link, link_dst, src_leaf, target_of, distance, width, weight, per_capacity, key, rounds
    )
    return hops, length, -1


@njit(cache=True)
def _distance_table(ptr: Ints, link: Ints, link_dst: Ints32, targets: Ints) -> Ints16:
    """Hops from every node to each target; the largest int16 where there is no path."""
    n_nodes = len(ptr) - 1
    table = np.full((len(targets), n_nodes), np.iinfo(np.int16).max, np.int16)
    distance = np.full(n_nodes, UNREACHED, np.int32)
    queue = np.empty(n_nodes, np.int64)
    for t in range(len(targets)):
        reached = breadth_first(ptr, link, link_dst, targets[t], distance, queue)
        for q in range(reached):
            table[t, queue[q]] = distance[queue[q]]
            distance[queue[q]] = UNREACHED
    return table


@njit(cache=True)
def _place(
    ptr: Ints,
    link: Ints,
    link_dst: Ints32,
    src_leaf: Ints,
    target_of: Ints,
    distance: Ints16,
    width: int,
    weight: Floats,
    per_capacity: Floats,
    key: Words,
    rounds: int,
) -> Ints:
    """Place every flow by a shortest-path search over (busiest link, sum of loads)."""
    n_nodes = len(ptr) - 1
    n = len(src_leaf)
    leads_to = link_dst[link]
    hops = np.full((n, width), -1, np.int64)
    load = np.zeros(len(per_capacity))
    peak = np.full(n_nodes, np.inf)
    total = np.full(n_nodes, np.inf)
    via = np.full(n_nodes, -1, np.int64)
    queue = np.empty(n_nodes, np.int64)
    for look in range(rounds + 1):
        for f in range(n):
            away = distance[target_of[f]]
            start = src_leaf[f]
            if away[start] == 0:
                continue
            if look > 0:
                worst = 0.0
                for h in range(away[start]):
                    worst = max(worst, load[hops[f, h]])
                if worst <= 1.0 + _SAME:
                    continue
                for h in range(away[start]):
                    load[hops[f, h]] -= weight[f] * per_capacity[hops[f, h]]
            peak[start], total[start] = 0.0, 0.0
            queue[0] = start
            head, tail = 0, 1
            node = start
            while head < tail:
                node = queue[head]
                head += 1
                if away[node] == 0:
                    break
                count = ptr[node + 1] - ptr[node]
                turn = choose_one(key[f], np.uint64(look), count)
                place = ptr[node] + turn - 1
                for _ in range(count):
                    place = place + 1 if place + 1 < ptr[node + 1] else ptr[node]
                    other = leads_to[place]
                    if away[other] != away[node] - 1:
                        continue
                    e = link[place]
                    new_peak, new_total = max(peak[node], load[e]), total[node] + load[e]
                    if via[other] < 0:
                        queue[tail] = other
                        tail += 1
                    elif new_peak > peak[other] + _SAME or (
                        new_peak > peak[other] - _SAME and new_total >= total[other] - _SAME
                    ):
                        continue
                    peak[other], total[other], via[other] = new_peak, new_total, e
            for h in range(away[start] - 1, -1, -1):
                e = via[node]
                hops[f, h] = e
                load[e] += weight[f] * per_capacity[e]
                node = link_dst[e ^ 1]
            for q in range(tail):
                via[queue[q]] = -1
    return hops
