"""Forwarding tables that were laid by somebody else, followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import RoutingError
from netplan.kernels.walk import join_hops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

#: Hops after which a packet is lost: InfiniBand's own limit of directed routes is 64.
MAX_HOPS = 64


def follow_tables(
    fabric: Fabric, forward: NDArray[np.integer], src: NDArray[np.integer], dst: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Follow tables for many pairs of endpoints: CSR of links, in path order.

    Parameters
    ----------
    fabric
        The fabric that the tables are of.
    forward : (n_nodes, n_endpoints)
        Link that a switch sends packets for an endpoint to; -1 for none.
    src, dst : (n,) endpoints
        The pairs.

    Raises
    ------
    RoutingError
        A table has no entry for a pair on its way, or its packets go round.
    """
    node = fabric.endpoints.leaf[src].astype(np.int64)
    goal = fabric.endpoints.leaf[dst].astype(np.int64)
    hops = np.full((len(node), MAX_HOPS), -1, np.int64)
    length = np.zeros(len(node), np.int64)
    for step in range(MAX_HOPS):
        row = np.flatnonzero(node != goal)
        if not len(row):
            return join_hops(fabric.endpoints.cable, np.asarray(src), np.asarray(dst), hops, length)
        link = np.asarray(forward[node[row], dst[row]], np.int64)
        if (link < 0).any():
            lost = int(np.flatnonzero(link < 0)[0])
            at = fabric.node_name(int(node[row[lost]]))
            raise RoutingError(
                f"fabric {fabric.name!r}: the forwarding table of {at} has no entry for "
                f"{_named(fabric, int(dst[row[lost]]))}",
                hint="the two are in subnets that never meet, or the tables are not whole",
            )
        hops[row, step] = link
        length[row] += 1
        node[row] = fabric.links.dst[link]
    pair = f"{_named(fabric, int(src[row[0]]))} to {_named(fabric, int(dst[row[0]]))}"
    raise RoutingError(f"fabric {fabric.name!r}: by the forwarding tables packets from {pair} go round")


def _named(fabric: Fabric, endpoint: int) -> str:
    host = fabric.node_name(int(fabric.endpoints.host[endpoint]))
    return f"{host} NIC {int(fabric.endpoints.rail[endpoint])}"
