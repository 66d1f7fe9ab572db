"""Valiant routing: every QP goes by an intermediate that is drawn without regard to its destination.

Valiant, "A scheme for fast parallel communication", SIAM J. Comput. 11(2), 1982. Whatever the
traffic, each half of the way looks like uniform traffic, so no pattern is worse than another. The
price is paid always: each byte crosses the network twice, which halves the throughput of a network
that uniform traffic can fill. In a dragonfly the intermediate is a group (Kim et al., ISCA 2008,
"VAL"), elsewhere a router; what is drawn for each family, and for other fabrics, stands in
`netplan.routing.direct_paths` and `netplan.routing.detours`.

The draw is by QP and fixed: with few QPs the load is uneven as with any hash. `ugal` takes such
paths only where a minimal one is crowded.

Deadlock is not modelled. A lossless network needs virtual channels for these paths: 3 in a
dragonfly, 2 in a dragonfly-plus, 4 in a slim-fly (one a hop), 4 in a torus (two for each half), two
per dimension in a hyperx (``tests/laws/test_deadlock.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.routing.detours import valiant_between
from netplan.routing.minimal import queue_pair_routes
from netplan.routing.registry import routing_scheme

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions


@routing_scheme(
    "valiant",
    summary="each QP goes by an intermediate group or router drawn by a hash, minimal to it and from it",
    leaves_out=(
        "a draw for every packet; deadlock: a lossless dragonfly needs 3 virtual channels, a slim-fly or "
        "torus 4, a hyperx two per dimension"
    ),
    uses_qps=True,
    uses_seed=True,
    differs_by_structure=True,
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every QP by an intermediate."""
    return queue_pair_routes("valiant", valiant_between, fabric, flows, options.seed)
