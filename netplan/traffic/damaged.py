"""How a job lives with failures: which hosts it keeps, and which NICs stand in for lost ones.

A host without any NIC port left is left out; ranks fill the other hosts in the order that they
have on the whole fabric. What happens to a host that lost some ports is a choice (`ON_DEAD`):

* ``shrink`` (default): it stays. A GPU whose port is gone uses the next one of its host. Rings
  are as many as the host with the fewest ports has; each keeps to one port number where every
  host has it, and where a host lacks that one, a spare port of the host stands in, as long as it
  reaches the rest of the ring.
* ``evict``: it is left out as well if one of its NICs has no port left, as a scheduler does that
  drains such hosts. A NIC of several ports that keeps one stays, at a part of its rate.
* ``refuse``: a job that would use such a host, or one that is cut off, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from netplan.errors import TrafficError
from netplan.fabric.checks import components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.traffic.placement import Placement

OnDead = Literal["shrink", "evict", "refuse"]

#: What a job does with hosts that lost some of their NIC ports.
ON_DEAD: tuple[OnDead, ...] = get_args(OnDead)


def hosts_left(
    fabric: Fabric, order: NDArray[np.int64], ranks: int | None, on_dead: OnDead
) -> NDArray[np.int64]:
    """Return the hosts of ``order`` that a job may use on a damaged fabric.

    Raises
    ------
    TrafficError
        ``refuse``, and one of the hosts that the job would have used lost a port.
    """
    assert fabric.damage is not None
    ends = fabric.damage.before
    before = np.bincount(fabric.host_index[ends.host], minlength=fabric.n_hosts)[order]
    after = np.diff(fabric.endpoint_ptr)[order]
    if on_dead == "refuse":
        first_gpu = np.concatenate([[0], np.cumsum(fabric.gpus_per_host[order])[:-1]])
        wanted = np.ones(len(order), bool) if ranks is None else first_gpu < ranks
        for place in np.flatnonzero(wanted & (after < before))[:1]:
            name = fabric.node_name(int(fabric.host_ids[order[place]]))
            raise TrafficError(
                f"{name} lost {before[place] - after[place]} of its {before[place]} NIC ports, and the job "
                "would use it",
                hint="on_dead shrink runs with what is left, evict without such hosts",
            )
    keeps = after > 0
    if on_dead == "evict":
        keeps &= ~np.isin(fabric.host_ids[order], ends.host[fabric.damage.lost_nics])
    left: NDArray[np.int64] = order[keeps]
    return left


def first_leaf(fabric: Fabric) -> NDArray[np.int32]:
    """(n_hosts,) leaf of each host's first endpoint, on the whole fabric."""
    ends = fabric.endpoints if fabric.damage is None else fabric.damage.before
    return ends.leaf[np.searchsorted(ends.host, fabric.host_ids)]


def endpoints_of_ranks(
    fabric: Fabric, host: NDArray[np.int64], local_gpu: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(n_ranks,) the port that serves each rank: its own, else the next one left of its host."""
    assert fabric.damage is not None
    ends, left = fabric.damage.before, fabric.damage.endpoint
    node = fabric.host_ids[host]
    first, end = np.searchsorted(ends.host, node), np.searchsorted(ends.host, node, side="right")
    own = first + local_gpu * (end - first) // fabric.gpus_per_host[host]
    place = np.searchsorted(left, own)
    is_there = left[np.minimum(place, len(left) - 1)] < end
    is_there &= place < len(left)
    return np.where(is_there, place, np.searchsorted(left, first)).astype(np.int64)


def ports_of_ranks(
    fabric: Fabric, host: int, local_gpu: NDArray[np.int64], endpoint: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the ports that serve some GPUs of a host, ascending; ``endpoint`` is the first of each GPU."""
    assert fabric.damage is not None
    node = fabric.host_ids[host]
    first, end = np.searchsorted(fabric.damage.before.host, [node, node + 1])
    each = (end - first) // int(fabric.gpus_per_host[host])
    if each <= 1:
        return np.unique(endpoint)
    wanted = (first + local_gpu[:, None] * each + np.arange(each)).ravel()
    own = np.flatnonzero(np.isin(fabric.damage.endpoint, wanted))
    return own if len(own) else np.unique(endpoint)


def ring_ports(placement: Placement) -> NDArray[np.int64]:
    """(n_hosts, n_rings) the port that each ring uses at each host.

    Raises
    ------
    TrafficError
        No ring is left whose ports reach each other.
    """
    fabric, hosts = placement.fabric, placement.hosts
    damage = fabric.damage
    assert damage is not None
    port = damage.port[damage.endpoint]
    table = np.full((len(hosts), int(damage.port.max()) + 1), -1, np.int64)
    place_of = np.full(fabric.n_hosts, -1)
    place_of[hosts] = np.arange(len(hosts))
    place = place_of[fabric.host_index[fabric.endpoints.host]]
    used = place >= 0
    table[place[used], port[used]] = np.flatnonzero(used)
    for part in np.flatnonzero(placement.ranks_per_host != fabric.gpus_per_host[hosts]):
        table[part, ~np.isin(table[part], placement.nics(int(part)))] = -1
    has = table >= 0
    rings = int(has.sum(axis=1).min())
    # The ports that most hosts have, in their order.
    chosen = np.sort(np.argsort(-has.sum(axis=0), kind="stable")[:rings])
    laid = table[:, chosen]
    short = np.flatnonzero((laid < 0).any(axis=1))
    if not len(short):
        return laid
    for row in short:
        spare = np.setdiff1d(np.flatnonzero(has[row]), chosen)
        missing = np.flatnonzero(laid[row] < 0)
        laid[row, missing] = table[row, spare[: len(missing)]]
    group = components(fabric, through_hosts=False)[fabric.endpoints.leaf[laid]]
    whole = (group == group[:1]).all(axis=0)
    if not whole.any():
        raise TrafficError(
            "no ring is left: the NICs that the hosts still have do not reach each other",
            hint="on_dead evict leaves out the hosts that lost a NIC",
        )
    return laid[:, whole]
