"""Max-min fair rates of flows on links.

The inequations, for rates ``x`` [bytes/s], link capacities ``c`` and coefficients ``a`` (what one
byte of flow ``f`` puts on link ``l``: the number of equal QPs it stands for times the share of
its bytes that takes this link)::

    for every link l:   sum over flows f of a[f, l] * x[f]  <=  c[l]

The max-min fair rates are the one solution in which no rate can rise without lowering a rate
that is no larger (Bertsekas & Gallager, *Data Networks*, 6.5.2). A solution is that one exactly
when every flow has a *bottleneck*: a saturated link on which no other flow is faster.

Textbook progressive filling takes a round per distinct level, 9,125 rounds for 131k random
flows. Here a round freezes the flows of every link that is the tightest link of *all* its
flows, wherever it stands in the global order; such a link's level cannot change any more, so
the answer is the same, in 5 to 40 rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Bools, Floats, Ints

#: Relative difference below which two levels are one: far above rounding (2e-16), far below
#: any difference that a user could mean.
LEVEL_TOLERANCE = 1e-12


class MaxMin(NamedTuple):
    """Rates and what stopped them."""

    rate: NDArray[np.float64]
    """(n_flows,) max-min fair rates [bytes/s]."""
    bottleneck: NDArray[np.int64]
    """(n_flows,) the saturated link that stopped each flow."""
    rounds: int
    """Rounds of local filling that were needed."""


def solve_max_min(
    capacity: NDArray[np.float64],
    flow_ptr: NDArray[np.int64],
    flow_link: NDArray[np.int64],
    coefficient: NDArray[np.float64] | None = None,
) -> MaxMin:
    """Give every flow its max-min fair rate.

    Parameters
    ----------
    capacity : (n_links,) float64
        Usable capacity of each directed link [bytes/s], >= 0.
    flow_ptr : (n_flows + 1,) int64
        CSR row pointer: flow ``f`` crosses ``flow_link[flow_ptr[f]:flow_ptr[f + 1]]``.
    flow_link : (nnz,) int64
        Link ids, each at most once per flow.
    coefficient : (nnz,) float64, optional
        Load on the link per unit of the flow's rate, > 0; 1 when omitted.

    Returns
    -------
    MaxMin
        Rates [bytes/s] with, for each flow, the link that stopped it.

    Raises
    ------
    ValueError
        A flow that crosses no link has no finite rate.

    Notes
    -----
    Cost O(rounds x nnz). The answer is unique, so it does not depend on the order of flows or
    links. Equal to `reference.solve_max_min_slowly` (tested).
    """
    n_flows = len(flow_ptr) - 1
    if np.any(np.diff(flow_ptr) == 0):
        empty = int(np.flatnonzero(np.diff(flow_ptr) == 0)[0])
        msg = f"flow {empty} crosses no link, so its rate is unbounded"
        raise ValueError(msg)
    if coefficient is None:
        coefficient = np.ones(len(flow_link))
    n_links = len(capacity)
    rate = np.zeros(n_flows)
    bottleneck = np.full(n_flows, -1, np.int64)
    rounds = fill(
        np.arange(n_flows),
        n_flows,
        flow_ptr,
        flow_link,
        coefficient,
        capacity.astype(np.float64),
        rate,
        bottleneck,
        np.zeros(n_links),
        np.zeros(n_links, np.int64),
        np.zeros(n_links),
        np.zeros(n_links, np.bool_),
    )
    return MaxMin(rate, bottleneck, int(rounds))


@njit(cache=True)
def fill(
    flows: Ints,
    n_flows: int,
    flow_ptr: Ints,
    flow_link: Ints,
    coefficient: Floats,
    residual: Floats,
    rate: Floats,
    bottleneck: Ints,
    demand: Floats,
    n_open: Ints,
    level: Floats,
    blocked: Bools,
) -> int:
    """Fill ``flows[:n_flows]`` on ``residual``, writing ``rate`` and ``bottleneck``; return rounds.

    ``flows`` is used up as a work list and ``residual`` is lowered in place. The scratch arrays
    ``demand``, ``n_open`` (zeros), ``level`` and ``blocked`` (False) have one element per link
    and come back as they went in on the links touched, so that a caller may reuse them.
    """
    for i in range(n_flows):
        f = flows[i]
        for e in range(flow_ptr[f], flow_ptr[f + 1]):
            demand[flow_link[e]] += coefficient[e]
            n_open[flow_link[e]] += 1
    n_left = n_flows
    rounds = 0
    while n_left > 0:
        rounds += 1
        # The level at which each link would saturate if all its open flows grew together.
        for i in range(n_left):
            f = flows[i]
            for e in range(flow_ptr[f], flow_ptr[f + 1]):
                link = flow_link[e]
                level[link] = max(residual[link], 0.0) / demand[link]
                blocked[link] = False
        # A link that is not the tightest of one of its flows has to wait.
        for i in range(n_left):
            f = flows[i]
            tightest = np.inf
            for e in range(flow_ptr[f], flow_ptr[f + 1]):
                tightest = min(tightest, level[flow_link[e]])
            rate[f] = tightest
            for e in range(flow_ptr[f], flow_ptr[f + 1]):
                link = flow_link[e]
                if tightest < level[link] * (1.0 - LEVEL_TOLERANCE):
                    blocked[link] = True
        kept = 0
        for i in range(n_left):
            f = flows[i]
            stopped_by = -1
            for e in range(flow_ptr[f], flow_ptr[f + 1]):
                link = flow_link[e]
                if not blocked[link] and level[link] * (1.0 - LEVEL_TOLERANCE) <= rate[f]:
                    stopped_by = link
                    break
            if stopped_by < 0:
                flows[kept] = f
                kept += 1
                continue
            bottleneck[f] = stopped_by
            for e in range(flow_ptr[f], flow_ptr[f + 1]):
                link = flow_link[e]
                residual[link] -= coefficient[e] * rate[f]
                demand[link] -= coefficient[e]
                n_open[link] -= 1
                if n_open[link] == 0:
                    demand[link] = 0.0
        n_left = kept
    return rounds
