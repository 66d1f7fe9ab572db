"""Static pinning: every NIC has its own way through the fabric, whatever it sends.

The leaf forwards by ingress port: the NIC on downlink i uses uplink ``i mod uplinks``; further
switches choose by the source's leaf, ``leaf number mod options``. With as many uplinks as
downlinks no two NICs of a leaf share an uplink. It is Meta's first remedy against hash
collisions ("path pinning", RoCE at Meta scale, SIGCOMM 2024), which worked for full racks and
failed for fragmented jobs: on the way down, flows to one leaf still collide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.walk import walk_pinned
from netplan.routing.clos_paths import Choice, clos_paths
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import refuse_unreachable, single_paths
from netplan.routing.walked import walk_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


def leaf_numbers(fabric: Fabric) -> NDArray[np.int64]:
    """Return, per endpoint, the rank of its leaf among all leaves."""
    leaves = np.flatnonzero(fabric.nodes.tier == 1)
    return np.searchsorted(leaves, fabric.endpoints.leaf).astype(np.int64)


def port_numbers(fabric: Fabric) -> NDArray[np.int64]:
    """Return, per endpoint, its rank among the endpoints of its leaf, those that failed included."""
    leaf = fabric.endpoints.leaf if fabric.damage is None else fabric.damage.before.leaf
    order = np.argsort(leaf, kind="stable")
    first = np.searchsorted(leaf[order], leaf[order], side="left")
    rank = np.empty(len(leaf), np.int64)
    rank[order] = np.arange(len(leaf)) - first
    return rank[fabric.endpoint_address]


def pinned_paths(
    fabric: Fabric, src: NDArray[np.integer], dst: NDArray[np.integer], *, walk: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one path per row; ``walk`` walks even where arithmetic would do."""
    port, leaf = port_numbers(fabric)[src], leaf_numbers(fabric)[src]
    if fabric.structure is not None and not walk:

        def by_source(choice: Choice) -> NDArray[np.int64]:
            pin = port if choice.stage == "leaf_up" else leaf
            return np.asarray(pin[choice.row] % choice.options)

        return clos_paths(fabric, fabric.structure, src, dst, by_source)
    path_ptr, link, lost = walk_pinned(
        *walk_columns(fabric),
        np.asarray(src),
        np.asarray(dst),
        port,
        leaf,
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(src[lost]), int(dst[lost]))
    return path_ptr, link


@routing_scheme(
    "rail-pinned",
    summary="each NIC is pinned to one uplink of its leaf, and its leaf to one uplink of each spine",
    leaves_out="re-pinning after failures; controllers that place flows by demand",
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every flow by its source."""
    path_ptr, link = pinned_paths(fabric, flows.src, flows.dst)
    weight = np.full(len(flows), float(flows.qps))
    return single_paths("rail-pinned", fabric, len(flows), weight, path_ptr, link)
