"""Flows from NIC to NIC in, flows from port to port out: each part stays in its plane.

Patterns name a NIC by its first port. Where NICs have a port in each of several planes, the bytes
between two NICs are split equally over the planes in which both have a port: as many QPs as ports
in turn, or a NIC that sprays over its ports. Rings are laid port by port already.

``one`` is the known fault: a QP or GID is bound to one port, so that a connection of one QP uses
one plane and 1/p of the NIC (deepseek-ai/DeepEP issue 650; NVIDIA/nccl issue 1015).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import TrafficError
from netplan.units import format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.traffic.demand import PhaseTraffic

#: More flows than this are refused before memory is taken (about 200 bytes each, routes included).
MOST_FLOWS = 20_000_000


def over_planes(fabric: Fabric, part: PhaseTraffic, planes: Literal["all", "one"]) -> PhaseTraffic:
    """Spread the flows of a phase over the ports of their NICs.

    Parameters
    ----------
    fabric
        The fabric.
    part
        Flows whose ends are NICs, each named by its first port; rings come back as they are.
    planes
        ``all``: equal parts over all planes that both ends are in; ``one``: the first of these planes.

    Returns
    -------
    PhaseTraffic
        Flows between ports. NICs that have no plane in common keep one flow, for which there is no path.
        The same when every NIC has one port.

    Raises
    ------
    TrafficError
        More flows than `MOST_FLOWS`.
    """
    is_ring = np.asarray(part.ring).max(initial=-1) >= 0
    if len(fabric.nic_ptr) - 1 == fabric.n_endpoints or is_ring or not len(part.src):
        return part
    port = ports_by_plane(fabric)
    src, dst = port[fabric.endpoint_nic[part.src]], port[fabric.endpoint_nic[part.dst]]
    common = (src >= 0) & (dst >= 0)
    if planes == "one":
        common &= np.cumsum(common, axis=1) == 1
    apart = ~common.any(axis=1)
    src[apart, 0], dst[apart, 0], common[apart, 0] = part.src[apart], part.dst[apart], True
    flow, plane = np.nonzero(common)
    if len(flow) > MOST_FLOWS:
        raise TrafficError(
            f"{format_count(len(part.src))} flows between NICs are {format_count(len(flow))} between their "
            f"ports; netplan takes up to {format_count(MOST_FLOWS)}",
            hint="lower ranks",
        )

    return replace(
        part,
        src=src[flow, plane],
        dst=dst[flow, plane],
        size=(part.size / common.sum(axis=1))[flow],
        start=part.start[flow] if isinstance(part.start, np.ndarray) else part.start,
        channel=part.channel[flow] if isinstance(part.channel, np.ndarray) else part.channel,
    )


def ports_by_plane(fabric: Fabric) -> NDArray[np.int64]:
    """Return (n_nics, n_planes) the port that each NIC has in each plane; -1 for none."""
    plane = fabric.endpoints.plane - fabric.endpoints.plane.min()
    table = np.full((len(fabric.nic_ptr) - 1, int(plane.max()) + 1), -1, np.int64)
    table[fabric.endpoint_nic, plane] = np.arange(fabric.n_endpoints)
    return table
