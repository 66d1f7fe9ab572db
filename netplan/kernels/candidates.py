"""Greedy choice among given candidate paths, flow by flow.

For each flow some paths are given, in order of preference among equals. A path *fits* when its
busiest link carries at most its capacity with the flow on it. Paths that fit come before those
that do not; among those that fit the shortest, then the one whose busiest link is least utilised;
among those that do not, the least product of utilisation and hops.

That is the rule of universal globally-adaptive load-balanced routing (UGAL) for flows: the product
of queue length and hops estimates the delay of a path, queues are short where links carry less than
they can, and grow with the excess where they are offered more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from netplan.kernels.arrays import Floats, Ints, Ints32

#: Utilisations and products nearer than this are equal: rounding of sums of rates over capacities.
SAME = 1e-9


@njit(cache=True)
def place_on_candidates(
    rows: Ints,
    candidate: Ints32,
    weight: Floats,
    per_capacity: Floats,
    load: Floats,
    path: Ints32,
) -> int:
    """Place flows in turn, each on the best of its candidates.

    Parameters
    ----------
    rows : (n,) int64
        The flows, in the order in which they are placed.
    candidate : (n, n_candidates, width) int32
        Links of each candidate in path order, -1 behind the last; a candidate without links joins
        switches that are one.
    weight : (n_flows,) float64
        Rate that each flow would have alone [bytes/s].
    per_capacity : (n_links,) float64
        1 / capacity of every link [s/bytes].
    load : (n_links,) float64
        Utilisation of every link; changed.
    path : (n_flows, >= width) int32
        Links of every flow; -1 throughout where it has not been placed yet; changed. A flow that has
        been placed is taken off first; its old path counts as a candidate before all others, and it
        stays as it is while its links carry no more than they can.

    Returns
    -------
    int
        Flows whose path has changed.
    """
    n, options, width = candidate.shape
    wide = path.shape[1]
    changed = 0
    best_path = np.empty(wide, np.int32)
    for r in range(n):
        f = rows[r]
        is_placed = path[f, 0] >= 0
        best_fits, best_cost, best_peak, best_hops = False, np.inf, np.inf, wide + 1
        if is_placed:
            worst = 0.0
            for h in range(wide):
                if path[f, h] < 0:
                    break
                worst = max(worst, load[path[f, h]])
            if worst <= 1.0 + SAME:
                continue
            for h in range(wide):
                if path[f, h] < 0:
                    break
                load[path[f, h]] -= weight[f] * per_capacity[path[f, h]]
        is_open, best = True, -1
        for c in range(-1, options):
            peak, hops = 0.0, 0
            if c < 0:
                if not is_placed:
                    continue
                for h in range(wide):
                    link = path[f, h]
                    if link < 0:
                        break
                    peak = max(peak, load[link] + weight[f] * per_capacity[link])
                    hops += 1
            else:
                for h in range(width):
                    link = candidate[r, c, h]
                    if link < 0:
                        break
                    peak = max(peak, load[link] + weight[f] * per_capacity[link])
                    hops += 1
            fits = peak <= 1.0 + SAME
            cost = float(hops) if fits else peak * hops
            better = fits and not best_fits
            if fits == best_fits:
                better = cost < best_cost - SAME or (cost <= best_cost + SAME and peak < best_peak - SAME)
            if is_open or better:
                is_open = False
                best, best_fits, best_cost, best_peak, best_hops = c, fits, cost, peak, hops
        if best >= 0:
            differs = not is_placed
            for h in range(wide):
                link = candidate[r, best, h] if h < best_hops else np.int32(-1)
                differs = differs or path[f, h] != link
                best_path[h] = link
            changed += differs
            path[f] = best_path
        for h in range(best_hops):
            load[path[f, h]] += weight[f] * per_capacity[path[f, h]]
    return changed
