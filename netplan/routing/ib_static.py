"""InfiniBand with static forwarding tables, as OpenSM lays them.

On trees that netplan generated: d-mod-k (Zahavi, *D-Mod-K routing providing non-blocking traffic
for shift permutations on real life fat trees*, 2010; OpenSM's ``ftree``). The destination's place
decides every choice, so that each link downwards serves one destination when nothing is
oversubscribed, and every shift permutation runs without contention. With destination d on
downlink i of leaf l of its pod, b parallel cables between leaf and spine:

* leaf uplink ``j = i mod uplinks``; spine uplink ``(l b + j mod b) mod spine_uplinks``;
* downwards, among parallel cables, the same cable that the choice upwards would take.

On an imported fabric that carries the tables of its subnet manager (``netplan import --tables``): those.

On direct networks (any with ``local`` or ``global`` cables between switches: dragonfly, torus, ...):
shortest paths with balanced counters, OpenSM's default ``minhop``. For each destination in turn,
every switch takes the port on a shortest path that it has used for the fewest destinations so far.
OpenSM 3.3.23 lays the same tables, entry by entry. Nothing keeps them free of deadlock, and in a
torus or dragonfly they are not: such subnets are run with other engines (``lash``, ``dfsssp``,
``torus-2QoS``) on several virtual lanes, whose paths spread otherwise.

On any other fabric: up/down with balanced counters (OpenSM's ``updn``). A path never goes up
after it went down (node order: tier, then id); for each destination in turn, leaf by leaf, every
switch takes the shortest legal port that it has used for the fewest destinations so far, among
equals the one with the lowest number: the cables of a switch are on its ports by id. OpenSM 3.3.23
lays the same tables, entry by entry (``tests/against/test_opensm.py``). The counters of all
switches turn in step, so that what one tier spreads the next can bring together again: on three
tiers ``updn`` is far worse than ``ftree``, with port numbers that follow no plan about as good as
`ib-random`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric import LINK_KINDS
from netplan.kernels.min_hop import min_hop_paths
from netplan.kernels.up_down import up_down_paths
from netplan.routing.clos_paths import Choice, clos_paths
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import refuse_unreachable, single_paths
from netplan.routing.tables import follow_tables
from netplan.routing.walked import switch_links

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import ClosStructure, Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


@routing_scheme(
    "ib-static",
    summary=(
        "destination routing as OpenSM lays it: d-mod-k on generated trees, minhop on direct networks, "
        "balanced up/down elsewhere"
    ),
    leaves_out=(
        "LMC (several LIDs per port); ftree's own tie-breaks on irregular trees; virtual lanes: minhop can "
        "deadlock on a torus or dragonfly"
    ),
    transport="infiniband",
    differs_by_structure=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every flow by its destination."""
    if fabric.forwarding is not None:
        path_ptr, link = follow_tables(fabric, fabric.forwarding, flows.src, flows.dst)
    elif fabric.structure is not None:
        path_ptr, link = d_mod_k_paths(fabric, fabric.structure, flows.src, flows.dst)
    elif is_direct(fabric):
        path_ptr, link = balanced_min_hop_paths(fabric, flows.src, flows.dst)
    else:
        path_ptr, link = balanced_up_down_paths(fabric, flows.src, flows.dst)
    weight = np.full(len(flows), float(flows.qps))
    return single_paths("ib-static", fabric, len(flows), weight, path_ptr, link)


def is_direct(fabric: Fabric) -> bool:
    """Whether switches are joined as in a direct network, damaged ones included."""
    kinds = [LINK_KINDS.index("local"), LINK_KINDS.index("global")]
    return bool(np.isin(fabric.links.kind, kinds).any())


def d_mod_k_paths(
    fabric: Fabric, s: ClosStructure, src: NDArray[np.integer], dst: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one d-mod-k path per row, as CSR."""
    pod_first = np.searchsorted(s.leaf_pod, np.arange(s.n_pods))
    leaf = s.endpoint_leaf[dst].astype(np.int64)
    in_pod = leaf - pod_first[s.leaf_pod[leaf]]
    port = s.endpoint_port[dst].astype(np.int64)

    def by_destination(choice: Choice) -> NDArray[np.int64]:
        up: NDArray[np.int64] = port[choice.row] % s.uplinks
        if choice.stage == "leaf_up":
            return up
        parallel: NDArray[np.int64] = up % s.leaf_bundle
        if choice.stage == "spine_down":
            return parallel
        cable: NDArray[np.int64] = (in_pod[choice.row] * s.leaf_bundle + parallel) % s.spine_uplinks
        return np.asarray(cable % choice.options)

    return clos_paths(fabric, s, src, dst, by_destination)


def balanced_min_hop_paths(
    fabric: Fabric, src: NDArray[np.integer], dst: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one shortest path per row by balanced tables, as CSR.

    Raises
    ------
    RoutingError
        No path joins the endpoints of a row.
    """
    ptr, link = switch_links(fabric)
    ends = fabric.endpoints
    path_ptr, path_link, lost = min_hop_paths(
        ptr, link, fabric.links.dst, ends.cable, ends.leaf, np.asarray(src), np.asarray(dst)
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(src[lost]), int(dst[lost]))
    return path_ptr, path_link


def balanced_up_down_paths(
    fabric: Fabric, src: NDArray[np.integer], dst: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one up/down path per row on any fabric, as CSR.

    Raises
    ------
    RoutingError
        No legal path joins the endpoints of a row.
    """
    links = fabric.links
    ptr, link = switch_links(fabric)
    order = np.lexsort((np.arange(fabric.n_nodes), fabric.nodes.tier))
    rank = np.empty(fabric.n_nodes, np.int64)
    rank[order] = np.arange(fabric.n_nodes)
    path_ptr, path_link, lost = up_down_paths(
        ptr,
        link,
        links.dst,
        rank,
        fabric.endpoints.cable,
        fabric.endpoints.leaf,
        np.asarray(src),
        np.asarray(dst),
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(src[lost]), int(dst[lost]))
    return path_ptr, path_link
