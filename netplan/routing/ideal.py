"""The network without a network: every endpoint at its line rate, nothing else contended.

The upper bound that efficiencies are measured against: only the NICs' own cables limit a flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.routing.registry import routing_scheme
from netplan.routing.routes import single_paths

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


@routing_scheme(
    "ideal",
    summary="no contention inside the network: only the NIC ports limit a flow",
    leaves_out="the whole network but its NIC ports",
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every flow over its two NIC cables alone."""
    n = len(flows)
    link = np.empty(2 * n, np.int64)
    link[0::2] = 2 * fabric.endpoints.cable[flows.src].astype(np.int64)
    link[1::2] = 2 * fabric.endpoints.cable[flows.dst].astype(np.int64) + 1
    weight = np.full(n, float(flows.qps))
    return single_paths("ideal", fabric, n, weight, np.arange(n + 1, dtype=np.int64) * 2, link)
