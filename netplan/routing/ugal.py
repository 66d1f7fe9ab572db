"""UGAL: what a NIC sends goes minimally, or over an intermediate where minimal paths are crowded.

Universal globally-adaptive load-balanced routing (Singh, "Load-Balanced Routing in Interconnection
Networks", Stanford 2005); UGAL-G of Kim et al., ISCA 2008. A flow is split into flowlets as in
`adaptive` (none more than 1/``flowlets`` of its NIC's line rate). For each, ``minimal_candidates``
minimal paths (`minimal`) and ``valiant_candidates`` paths over an intermediate (`valiant`) are
drawn, two of each by default: four in all, as many as Slingshot's switches weigh (De Sensi et al.,
SC 2020). Flowlets choose in arrival order, knowing the loads of all links that those before them
made:

* a path fits when its busiest link, with the flowlet on it, carries no more than its capacity.
  Among paths that fit the shortest is taken, then the least utilised;
* when none fits, the one with the least product of its busiest link's utilisation and its hops:
  UGAL's estimate of delay, queue length x hops, for flows (queues are empty below capacity).

After all have been placed, those on overloaded paths draw new candidates and look again,
``reevaluations`` times; their old path is a candidate too.

Idealised: the loads of all links are known at once ("G" for global knowledge); real switches see
their own queues and, at best, hints about the far ones, and choose wrong where the crowded link is a
hop away (Jiang, Kim, Dally, *Indirect Adaptive Routing on Large Scale Interconnection Networks*,
ISCA 2009). A flow keeps its flowlets equal.

Deadlock is not modelled; as many virtual channels as for `valiant` are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import ModelRangeError
from netplan.kernels.candidates import SAME, place_on_candidates
from netplan.kernels.hashing import mix
from netplan.kernels.walk import join_hops
from netplan.routing.adaptive import routes_of_flowlets, split_flows
from netplan.routing.detours import minimal_between, valiant_between
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import Routes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.adaptive import Flowlets
    from netplan.routing.routes import FlowTable, RoutingOptions

#: Flowlets whose candidates are drawn at a time, so that long paths of many flows fit into memory.
_BLOCK = 1 << 17

#: Tells the draws of candidates apart from other uses of a flowlet's key.
_MINIMAL, _VALIANT = 0x317, 0x7A1


@routing_scheme(
    "ugal",
    summary=(
        "parts of each flow take a minimal path while it fits, else the least of (utilisation x hops) among "
        "minimal and Valiant paths, in arrival order, and look again later"
    ),
    leaves_out=(
        "delayed and partial knowledge of load; moving bytes between the parts of a flow; deadlock: as many "
        "virtual channels as valiant"
    ),
    uses_seed=True,
    differs_by_structure=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place every flowlet on the best of its candidates.

    Raises
    ------
    ModelRangeError
        No candidates, or a negative number of them.
    """
    numbers = options.minimal_candidates, options.valiant_candidates
    if min(numbers) < 0 or sum(numbers) == 0:
        raise ModelRangeError(
            f"ugal weighs minimal_candidates = {numbers[0]} minimal paths and valiant_candidates = "
            f"{numbers[1]} over an intermediate; neither may be negative, one has to be above 0",
            hint="2 of each, the default, are what Slingshot's switches weigh",
        )
    flowlets, owner = split_flows(fabric, flows, options)
    path_ptr, link = placed_on_candidates(fabric, flowlets, options)
    return routes_of_flowlets("ugal", fabric, flows, owner, path_ptr, link)


def placed_on_candidates(
    fabric: Fabric, flows: Flowlets, options: RoutingOptions
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place all flowlets; return paths as CSR."""
    n = len(flows.src)
    per_capacity = 1.0 / fabric.links.capacity
    load = np.zeros(len(fabric.links))
    path = np.full((n, 1), -1, np.int32)
    rows = np.arange(n)
    for look in range(options.reevaluations + 1):
        changed = 0
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            candidate = draw_candidates(fabric, flows, block, look, options)
            grown = candidate.shape[2] - path.shape[1]
            path = np.pad(path, ((0, 0), (0, max(grown, 0))), constant_values=-1)
            changed += place_on_candidates(block, candidate, flows.rate, per_capacity, load, path)
        overloaded = np.concatenate([load, [0.0]]) > 1.0 + SAME  # the last stands for "no link": -1
        rows = np.flatnonzero(overloaded[path].any(axis=1))
        if not changed or not len(rows):
            break
    length = (path >= 0).sum(axis=1)
    return join_hops(fabric.endpoints.cable, flows.src, flows.dst, path.astype(np.int64), length)


def draw_candidates(
    fabric: Fabric, flows: Flowlets, rows: NDArray[np.int64], look: int, options: RoutingOptions
) -> NDArray[np.int32]:
    """Draw the candidates of some flowlets for one look: (n, candidates, width) links, minimal ones first."""
    src, dst, key = flows.src[rows], flows.dst[rows], flows.key[rows]
    found = [
        between(fabric, src, dst, mix(key, word, look, number), options.seed)[0]
        for between, word, count in (
            (minimal_between, _MINIMAL, options.minimal_candidates),
            (valiant_between, _VALIANT, options.valiant_candidates),
        )
        for number in range(count)
    ]
    width = max([1, *(hops.shape[1] for hops in found)])
    candidate = np.full((len(rows), len(found), width), -1, np.int32)
    for c, hops in enumerate(found):
        candidate[:, c, : hops.shape[1]] = hops
    return candidate
