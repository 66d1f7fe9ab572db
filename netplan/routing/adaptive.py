"""Adaptive routing: a flow takes the least-loaded of its equal-cost paths.

Flows are placed in arrival order; each takes the path whose busiest link is least utilised,
counting every flow already placed at the rate it would have alone. After all have started, the
flows on overloaded paths look again, ``reevaluations`` times (default 8), as they do in switches
that decide per flowlet or per packet. Utilisation is known exactly, at both ends of the fabric
and without delay: real switches know their own queues and, at best, hints about the far ones. A
flow stays whole; a fabric that spreads single packets is nearer to `spray`.

``ib-adaptive`` is the same on InfiniBand packets and latencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.hashing import mix
from netplan.kernels.least_loaded import place_on_clos, place_on_graph
from netplan.kernels.walk import join_hops, switch_graph
from netplan.routing.clos_paths import refuse_other_domain
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import refuse_unreachable, single_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import ClosStructure, Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions

_SUMMARY = "each flow takes the least-loaded of its equal-cost paths, in arrival order, and looks again later"
_LEAVES_OUT = "delayed and partial knowledge of load; splitting a flow over paths (see spray); reordering"


@routing_scheme("adaptive", summary=_SUMMARY, leaves_out=_LEAVES_OUT, uses_seed=True)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place every flow on its least-loaded path."""
    return _route("adaptive", fabric, flows, options)


@routing_scheme(
    "ib-adaptive",
    summary=f"InfiniBand adaptive routing: {_SUMMARY}",
    leaves_out=_LEAVES_OUT,
    transport="infiniband",
    uses_seed=True,
)
def route_infiniband(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place every flow on its least-loaded path."""
    return _route("ib-adaptive", fabric, flows, options)


def _route(scheme: str, fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Place all flows, by arithmetic where the fabric has a structure."""
    place = placed_on_structure if fabric.structure is not None else placed_on_graph
    path_ptr, link = place(fabric, flows, options)
    weight = np.full(len(flows), float(flows.qps))
    return single_paths(scheme, fabric, len(flows), weight, path_ptr, link)


def placed_on_structure(
    fabric: Fabric, flows: FlowTable, options: RoutingOptions
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place all flows on a folded Clos; return paths as CSR."""
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
        flows.lone_rates(fabric.endpoint_rate),
        1.0 / fabric.links.capacity,
        _keys(flows, options),
        options.reevaluations,
    )
    used = inner >= 0
    length = used.sum(axis=1)
    hops = np.full_like(inner, -1)
    hops[np.arange(inner.shape[1]) < length[:, None]] = inner[used]
    return join_hops(fabric.endpoints.cable, flows.src, flows.dst, hops, length)


def placed_on_graph(
    fabric: Fabric, flows: FlowTable, options: RoutingOptions
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Place all flows on any fabric; return paths as CSR."""
    links, leaf = fabric.links, fabric.endpoints.leaf.astype(np.int64)
    ptr, link = switch_graph(fabric.nodes.tier, fabric.out_ptr, fabric.out_link, links.dst, links.src)
    hops, length, lost = place_on_graph(
        ptr,
        link,
        links.dst,
        leaf[flows.src],
        leaf[flows.dst],
        flows.lone_rates(fabric.endpoint_rate),
        1.0 / links.capacity,
        _keys(flows, options),
        options.reevaluations,
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(flows.src[lost]), int(flows.dst[lost]))
    return join_hops(fabric.endpoints.cable, flows.src, flows.dst, hops, length)


def _numbers(s: ClosStructure) -> NDArray[np.int64]:
    """Return the structure's numbers as the kernel takes them."""
    return np.array(
        [s.uplinks, s.spines, s.spine_uplinks, s.cores_per_group, s.leaf_cable, s.spine_cable], np.int64
    )


def _keys(flows: FlowTable, options: RoutingOptions) -> NDArray[np.uint64]:
    """Return the word that decides among equal paths."""
    return mix(options.seed, flows.src, flows.dst, flows.channel)
