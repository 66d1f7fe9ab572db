"""Which NIC ports a job's hosts use, place by place, and flows between ranks over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.damaged import common_ports
from netplan.traffic.demand import Phase, PhaseTraffic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.traffic.placement import Placement

__all__ = ["chains", "exchange", "port_table", "rank_ports", "ranks_of_host"]


def port_table(placement: Placement, planes: Literal["all", "one"] = "all") -> NDArray[np.int64]:
    """Return the NIC port that each place (ring, tree, rail) uses at each host.

    Parameters
    ----------
    placement
        The GPUs of the job.
    planes
        ``one``: only the first port of each NIC.

    Returns
    -------
    (n_hosts, n_places) int64
        As many places as the host with the fewest ports in the job has; on a damaged fabric those that all
        hosts still have.

    Raises
    ------
    TrafficError
        A damaged fabric, and no place is left that all hosts have.
    """
    fabric = placement.fabric
    if fabric.damage is not None:
        table = common_ports(placement)
        if not table.shape[1]:
            raise TrafficError(
                "no rail is left that all hosts of the job have a NIC port in",
                hint="on_dead evict leaves out the hosts that lost a NIC; algorithm: ring uses what is left",
            )
    else:
        table = _whole_table(placement)
    if planes == "one":
        table = table[:, np.unique(fabric.endpoint_nic[table[0]], return_index=True)[1]]
    return table


def _whole_table(placement: Placement) -> NDArray[np.int64]:
    """Return the ports of an undamaged fabric."""
    fabric, hosts = placement.fabric, placement.hosts
    counts = placement.ranks_per_host
    gpus = fabric.gpus_per_host[hosts]
    first, last = fabric.endpoint_ptr[hosts], fabric.endpoint_ptr[hosts + 1]
    whole = np.flatnonzero(counts == gpus)  # all ranks of the host: all its NICs, without a look at each
    parts = {int(place): placement.nics(int(place)) for place in np.flatnonzero(counts != gpus)}
    places = int(min([*(last - first)[whole], *(len(nics) for nics in parts.values())]))
    table = first[:, None] + np.arange(places)
    for place, nics in parts.items():
        table[place] = nics[:places]
    return np.asarray(table, np.int64)


def rank_ports(placement: Placement) -> NDArray[np.int64]:
    """Return (n_ranks, n_nics) the first port of each NIC that serves each rank.

    As many NICs a rank as the host with the fewest has for each of its GPUs; 1 where GPUs share NICs.
    """
    fabric = placement.fabric
    endpoint = placement.endpoint
    if fabric.damage is not None:
        return endpoint[:, None]
    hosts = placement.hosts
    nics = (
        fabric.endpoint_nic[fabric.endpoint_ptr[hosts + 1] - 1]
        - fabric.endpoint_nic[fabric.endpoint_ptr[hosts]]
        + 1
    )
    each = max(int((nics // fabric.gpus_per_host[hosts]).min()), 1)
    return np.asarray(fabric.nic_ptr[fabric.endpoint_nic[endpoint][:, None] + np.arange(each)], np.int64)


def ranks_of_host(placement: Placement) -> int:
    """Return the ranks of the host that has the most."""
    return int(placement.ranks_per_host.max())


def exchange(
    fabric: Fabric,
    placement: Placement,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    size: float | NDArray[np.float64],
    name: str,
) -> PhaseTraffic:
    """Return a step in which ranks send to ranks, all at once.

    Parameters
    ----------
    fabric, placement
        Where the ranks are.
    src, dst : (n,) int64
        Ranks; pairs on one host use the scale-up domain, others the receiver's rail (PXN): data that changes
        rails does so inside the sender's host.
    size
        Bytes of each message.
    name
        Name of the phase.
    """
    size = np.broadcast_to(np.asarray(size, np.float64), src.shape)
    host = placement.host
    away = (host[src] != host[dst]) & (size > 0)
    near = (host[src] == host[dst]) & (src != dst) & (size > 0)
    sent = np.bincount(src[near], size[near], minlength=len(placement))
    received = np.bincount(dst[near], size[near], minlength=len(placement))
    busy = np.maximum(sent, received) / fabric.scale_up_rate[host]
    ports = rank_ports(placement)
    each = ports.shape[1]
    a, b = ports[src[away]].ravel(), ports[dst[away]].ravel()
    a = _on_rail_of(fabric, ports, a, b)
    pair, place = np.unique(a * fabric.n_endpoints + b, return_inverse=True)
    parts = np.repeat(size[away] / each, each)
    total = np.bincount(place.ravel(), parts, minlength=len(pair)).astype(np.float64)
    phase = Phase(name, scale_up_s=float(busy.max(initial=0.0)), scale_up_hops=int(near.any()))
    return PhaseTraffic(phase, pair // fabric.n_endpoints, pair % fabric.n_endpoints, total)


def _on_rail_of(
    fabric: Fabric, ports: NDArray[np.int64], src: NDArray[np.int64], dst: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the sender's port of the receiver's rail (PXN), or its own where its host has none there."""
    used = np.unique(ports)
    rail = fabric.endpoints.rail.astype(np.int64)
    host = fabric.host_index[fabric.endpoints.host]
    rails = int(rail.max()) + 1
    table = np.full(fabric.n_hosts * rails, -1, np.int64)
    table[host[used] * rails + rail[used]] = used
    there = table[host[src] * rails + rail[dst]]
    return np.where((rail[src] == rail[dst]) | (there < 0), src, there)


def chains(
    ports: NDArray[np.int64], size: float, channels: int, *, closed: bool, first_ring: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of a ring, or of a chain, for each place and channel.

    Parameters
    ----------
    ports : (n_hosts, n_places)
        Ports in the order in which data visits the hosts.
    size
        Bytes on every edge of all places and channels together.
    channels
        Rings or chains of each place.
    closed
        Whether the last host sends to the first.
    first_ring
        Number of the first ring.

    Returns
    -------
    src, dst, size, channel, ring
        Columns of flows.
    """
    hosts, places = ports.shape
    edges = hosts if closed else hosts - 1
    src = ports[:edges].ravel()
    dst = np.roll(ports, -1, axis=0)[:edges].ravel()
    ring = np.tile(np.arange(places), edges)[:, None] * channels + np.arange(channels)
    n = len(src) * channels
    return (
        np.repeat(src, channels),
        np.repeat(dst, channels),
        np.full(n, size / (places * channels)),
        np.tile(np.arange(channels), len(src)),
        first_ring + ring.ravel(),
    )
