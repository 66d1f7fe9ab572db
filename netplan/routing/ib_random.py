"""InfiniBand with random static forwarding tables.

Every switch sends all packets for one destination (LID) over one of its shortest-path links, the
same for every source, drawn at random once. It is what a subnet manager that balances nothing
would lay, and close to what routing with balanced counters (MINHOP, UPDN) gives on placements it
does not know; `ib-static` is the balanced one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.hashing import mix
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import single_paths

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


@routing_scheme(
    "ib-random",
    summary="destination routing by random static forwarding tables, as an unbalanced subnet manager lays",
    leaves_out="LMC (several LIDs per port); virtual lanes",
    transport="infiniband",
    uses_seed=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every flow by its destination."""
    seeds = switch_seeds(fabric, options.seed)
    key = mix(fabric.endpoint_address[flows.dst])
    path_ptr, link = hashed_paths(fabric, flows.src, flows.dst, key, seeds)
    weight = np.full(len(flows), float(flows.qps))
    return single_paths("ib-random", fabric, len(flows), weight, path_ptr, link)
