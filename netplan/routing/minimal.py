"""Minimal routing: every QP takes one of its family's minimal paths, by a hash.

On direct networks minimal is what the family's authors call so (`direct_paths`): one global hop in
a dragonfly, dimension by dimension in a torus. Shortest paths by hop count (`ecmp`) can differ in a
dragonfly: a router with a global cable to the right group saves a local hop, and two global hops
can replace local-global-local. There, `minimal` spreads over all global cables between two groups
evenly, which `ecmp` does not. On any other fabric minimal paths are shortest paths, and this scheme
is `ecmp`.

Minimal paths keep the network free of load that has no need to be there: uniform traffic gets all
of the network's capacity. What they cannot do is leave a crowded cable: when all ``a p`` endpoints
of a dragonfly's group send to one other group, they share the ``b`` cables between the two, rate
``b / (a p)`` of a NIC (Kim et al., ISCA 2008: ``1 / (a h)`` of the capacity at ``b = 1``); in a
torus of even size ``k`` the tornado permutation (``k/2 - 1`` routers on) gets ``2 / (k - 2)`` of a
cable's capacity per router.

Deadlock is not modelled. A lossless network needs virtual channels (lanes in InfiniBand, priorities
in RoCE) for these paths: 2 in a dragonfly, 1 in a dragonfly-plus, 2 in a slim-fly, 2 in a torus (a
dateline in each ring), one per dimension in a hyperx. ``tests/laws/test_deadlock.py`` proves that
these are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.walk import join_hops
from netplan.routing.detours import minimal_between
from netplan.routing.ecmp import queue_pairs
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import single_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


@routing_scheme(
    "minimal",
    summary=(
        "each QP takes one of its family's minimal paths by a hash: one global hop in a dragonfly, "
        "dimension by dimension in a torus; shortest paths on other fabrics"
    ),
    leaves_out=(
        "vendor hash functions; deadlock: a lossless dragonfly, slim-fly or torus needs 2 virtual channels, "
        "a hyperx one per dimension"
    ),
    uses_qps=True,
    uses_seed=True,
    differs_by_structure=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every QP on a minimal path."""
    return queue_pair_routes("minimal", minimal_between, fabric, flows, options.seed)


def queue_pair_routes(
    scheme: str,
    between: Callable[..., tuple[NDArray[np.int64], NDArray[np.int64]]],
    fabric: Fabric,
    flows: FlowTable,
    seed: int,
) -> Routes:
    """Route every QP on the path that ``between`` gives it (`minimal_between` or `valiant_between`)."""
    src, dst, key = queue_pairs(fabric, flows, seed)
    hops, length = between(fabric, src, dst, key, seed)
    path_ptr, link = join_hops(fabric.endpoints.cable, src, dst, hops, length)
    return single_paths(scheme, fabric, len(flows), np.ones(len(src)), path_ptr, link)
