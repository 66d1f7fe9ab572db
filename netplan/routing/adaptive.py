"""Adaptive routing: what a NIC sends takes the least-loaded of its equal-cost paths.

A flow is split into flowlets, none of which is more than 1/``flowlets`` (default 1/4) of its
NIC's line rate: four for a NIC's only flow, two for each of two channels, one for the many flows
of an all-to-all. Flowlets are placed in arrival order; each takes the path whose busiest link is
least utilised, counting every flowlet already placed at the rate it would have alone. After all
have started, those on overloaded paths look again, ``reevaluations`` times (default 4).

Idealised: utilisation is known exactly, at both ends of the fabric and without delay (real
switches know their own queues and, at best, hints about the far ones), and a flow keeps its
flowlets equal. On three tiers cores are looked at above the four best spines only. Switches that
decide packet by packet split finer, and are nearer to `spray`.

``ib-adaptive`` is the same on InfiniBand packets and latencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.hashing import mix
from netplan.kernels.least_loaded import place_on_clos, place_on_graph
from netplan.kernels.walk import join_hops
from netplan.routing.clos_paths import refuse_other_domain
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import Routes, refuse_unreachable
from netplan.routing.walked import switch_links

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import ClosStructure, Fabric
    from netplan.routing.routes import FlowTable, RoutingOptions

_SUMMARY = (
    "parts of each flow take the least-loaded of its equal-cost paths, in arrival order, and look again later"
)
_LEAVES_OUT = "delayed and partial knowledge of load; moving bytes between the parts of a flow; reordering"


@routing_scheme(
    "adaptive", summary=_SUMMARY, leaves_out=_LEAVES_OUT, uses_seed=True, differs_by_structure=True
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place every flow on its least-loaded paths."""
    return _route("adaptive", fabric, flows, options)


@routing_scheme(
    "ib-adaptive",
    summary=f"InfiniBand adaptive routing: {_SUMMARY}",
    leaves_out=_LEAVES_OUT,
    transport="infiniband",
    uses_seed=True,
    differs_by_structure=True,
)
def route_infiniband(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place every flow on its least-loaded paths."""
    return _route("ib-adaptive", fabric, flows, options)


@dataclass(frozen=True, eq=False)
class Flowlets:
    """What is placed as a whole."""

    src: NDArray[np.int32]
    """(n,) endpoint that sends."""
    dst: NDArray[np.int32]
    """(n,) endpoint that receives."""
    rate: NDArray[np.float64]
    """(n,) rate that it would have alone [bytes/s]."""
    key: NDArray[np.uint64]
    """(n,) word that decides among equal paths."""


def split_flows(
    fabric: Fabric, flows: FlowTable, options: RoutingOptions
) -> tuple[Flowlets, NDArray[np.int64]]:
    """Split flows into the parts that are placed as a whole.

    Returns
    -------
    flowlets
        The parts, flow by flow in arrival order.
    owner : (n_flowlets,) int64
        The flow of each.
    """
    sent = np.bincount(flows.src, minlength=fabric.n_endpoints)[flows.src]
    parts = -(-options.flowlets // np.maximum(sent, 1))
    owner = np.repeat(np.arange(len(flows)), parts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    src, dst = flows.src[owner], flows.dst[owner]
    rate = (flows.lone_rates(fabric.endpoint_rate) / parts)[owner]
    address = fabric.endpoint_address
    key = mix(options.seed, address[src], address[dst], flows.channel[owner], number)
    return Flowlets(src, dst, rate, key), owner


def _route(scheme: str, fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place all flowlets, by arithmetic where the fabric has a structure, and put flows together again."""
    flowlets, owner = split_flows(fabric, flows, options)
    place = placed_on_structure if fabric.structure is not None else placed_on_graph
    path_ptr, link = place(fabric, flowlets, options.reevaluations)
    return routes_of_flowlets(scheme, fabric, flows, owner, path_ptr, link)


def routes_of_flowlets(
    scheme: str,
    fabric: Fabric,
    flows: FlowTable,
    owner: NDArray[np.int64],
    path_ptr: NDArray[np.int64],
    link: NDArray[np.int64],
) -> Routes:
    """Return the routes of flows whose flowlets take these paths; parameters as in `together`."""
    path_ptr, link, share = together(len(flows), len(fabric.links), owner, path_ptr, link)
    return Routes(
        scheme=scheme,
        n_links=len(fabric.links),
        flow_ptr=np.arange(len(flows) + 1, dtype=np.int64),
        weight=np.full(len(flows), float(flows.qps)),
        path_ptr=path_ptr,
        resource=link,
        share=share,
    )


def together(
    n_flows: int,
    n_links: int,
    owner: NDArray[np.int64],
    path_ptr: NDArray[np.int64],
    link: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Join the paths of each flow's flowlets.

    Parameters
    ----------
    n_flows, n_links
        How many there are.
    owner : (n_flowlets,) int64
        Flow of each flowlet, ascending.
    path_ptr, link
        CSR of the flowlets' links.

    Returns
    -------
    path_ptr, link, share
        CSR of one path per flow, with the share of its flowlets that crosses each link.
    """
    parts = np.bincount(owner, minlength=n_flows)
    flow = np.repeat(owner, np.diff(path_ptr))
    _, first, entry = np.unique(flow * n_links + link, return_index=True, return_inverse=True)
    share = np.bincount(entry, 1.0 / parts[flow]).astype(np.float64)
    is_last = np.zeros(len(link), bool)
    is_last[path_ptr[1:] - 1] = True
    # Flow by flow, links in the order of the first flowlet that takes them, the destination's cable last.
    order = np.lexsort((first, is_last[first], flow[first]))
    counts = np.bincount(flow[first], minlength=n_flows)
    joined = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return joined, link[first[order]], share[order]


def placed_on_structure(
    fabric: Fabric, flows: Flowlets, reevaluations: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place all flowlets on a folded Clos; return paths as CSR."""
    s = fabric.structure
    assert s is not None
    src_leaf, dst_leaf = (
        s.endpoint_leaf[flows.src].astype(np.int64),
        s.endpoint_leaf[flows.dst].astype(np.int64),
    )
    pod = s.leaf_pod.astype(np.int64)
    refuse_other_domain(fabric, s, flows.src, flows.dst, pod[src_leaf], pod[dst_leaf])
    inner = place_on_clos(
        src_leaf,
        dst_leaf,
        pod,
        _numbers(s),
        flows.rate,
        1.0 / fabric.links.capacity,
        flows.key,
        reevaluations,
    )
    used = inner >= 0
    length = used.sum(axis=1)
    hops = np.full_like(inner, -1)
    hops[np.arange(inner.shape[1]) < length[:, None]] = inner[used]
    return join_hops(fabric.endpoints.cable, flows.src, flows.dst, hops, length)


def placed_on_graph(
    fabric: Fabric, flows: Flowlets, reevaluations: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place all flowlets on any fabric; return paths as CSR."""
    links = fabric.links
    ptr, link = switch_links(fabric)
    # Switches only, numbered anew: the table of distances would have a row for each host otherwise.
    is_switch = fabric.nodes.tier > 0
    number = np.cumsum(is_switch, dtype=np.int32) - np.int32(1)
    leaf = number[fabric.endpoints.leaf].astype(np.int64)
    hops, length, lost = place_on_graph(
        np.append(ptr[:-1][is_switch], ptr[-1]),
        link,
        number[links.dst],
        leaf[flows.src],
        leaf[flows.dst],
        flows.rate,
        1.0 / links.capacity,
        flows.key,
        reevaluations,
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(flows.src[lost]), int(flows.dst[lost]))
    return join_hops(fabric.endpoints.cable, flows.src, flows.dst, hops, length)


def _numbers(s: ClosStructure) -> NDArray[np.int64]:
    """Return the structure's numbers as the kernel takes them."""
    return np.array(
        [s.uplinks, s.spines, s.spine_uplinks, s.cores_per_group, s.leaf_cable, s.spine_cable], np.int64
    )
