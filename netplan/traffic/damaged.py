"""How a job lives with failures: which hosts it keeps, and which NICs stand in for lost ones.

A host without any NIC port left is left out; ranks fill the other hosts in the order that they
have on the whole fabric. What happens to a host that lost some ports is a choice (`ON_DEAD`):

* ``shrink`` (default): it stays. A GPU whose port is gone uses the next one of its host. Rings
  are as many as the host with the fewest ports has; each keeps to one port number where every
  host has it, and where a host lacks that one, a spare port of the host stands in, as long as it
  reaches the rest of the ring (a job that starts again and finds fewer NICs).
* ``evict``: it is left out as well if one of its NICs has no port left, as a scheduler does that
  drains such hosts. A NIC of several ports that keeps one stays, at a part of its rate.
* ``refuse``: a job that would use such a host, or one that is cut off, is refused.

*Failover*: a NIC of p ports of which q are dead moves what the dead ones had to the others, and
the job goes on. Rings stay as many as they were; all edges between two NICs of which one lost a
port are split equally over the planes in which both have one. Those ports then carry p / (p - q)
times as much, and since all rings of a collective carry equal parts, the collective has
(p - q) / p of its bandwidth left: half with a dead port of two, where leaving out one of the job's
R rings leaves (R - 1) / R. With dual ToRs this is the default, because their ports are a bond
(Alibaba HPN, SIGCOMM 2024); for NICs with a port in each of several planes it is an option of the
workload (``failover: nic``), and the default is a job that starts again with fewer rings. The time
and the loss of the move itself are not modelled. Other traffic uses the planes that both its NICs
still have in any case (`netplan.traffic.planes`).
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class RingEdges:
    """The edges of all rings of a job, each one flow, or several where a NIC makes up for a dead port."""

    rings: int
    src: NDArray[np.int64]
    """(n,) port that sends."""
    dst: NDArray[np.int64]
    """(n,) port that receives."""
    ring: NDArray[np.int64]
    """(n,) ring that the edge is part of."""
    share: NDArray[np.float64]
    """(n,) part of the edge's bytes, 0 to 1."""
    moved: NDArray[np.int64]
    """(n,) 0: the ring's own port; from 1: place among the ports that stand in for it."""

    def empty(self) -> RingEdges:
        """Return as many rings without any edge between hosts."""
        return RingEdges(
            self.rings, self.src[:0], self.dst[:0], self.ring[:0], self.share[:0], self.moved[:0]
        )


def whole_rings(ports: NDArray[np.int64]) -> RingEdges:
    """Return the edges of rings that each use one port of a host; ``ports`` is (n_hosts, n_rings)."""
    hosts, rings = ports.shape
    src, dst = ports.ravel(), np.roll(ports, -1, axis=0).ravel()
    ring = np.tile(np.arange(rings), hosts)
    return RingEdges(rings, src, dst, ring, np.ones(len(src)), np.zeros(len(src), np.int64))


def has_failover(fabric: Fabric, wish: Literal["auto", "nic", "none"]) -> bool:
    """Tell whether the NICs of a fabric move traffic from a dead port to their others.

    By itself (``auto``) with dual ToRs only, whose ports are bonded.
    """
    if wish != "auto":
        return wish == "nic"
    sites = fabric.spec.get("sites", ()) if fabric.kind == "metro" and fabric.spec is not None else ()
    kinds = [fabric.kind, *((site.get("fabric") or {}).get("kind") for site in sites)]
    return "dual-tor" in kinds


def damaged_rings(placement: Placement, *, planes: Literal["all", "one"], failover: bool) -> RingEdges:
    """Lay the rings of a job on a damaged fabric.

    Parameters
    ----------
    placement
        The GPUs of the job.
    planes
        ``one``: only the first port of each NIC has a ring.
    failover
        Whether a NIC moves what a dead port had to its others.

    Returns
    -------
    RingEdges
        Without failover one flow for each edge.

    Raises
    ------
    TrafficError
        No ring is left whose ports reach each other.
    """
    table = _port_table(placement)
    place = _nic_places(placement, table)
    # A ring stays as long as its NIC has a port; which one, each edge decides for itself.
    has = place.any_of_nic(table >= 0) if failover else table >= 0
    if planes == "one":
        has[:, np.setdiff1d(np.arange(has.shape[1]), place.first_of_nic)] = False
    rings = int(has.sum(axis=1).min())
    # The ports that most hosts have, in their order.
    chosen = np.sort(np.argsort(-has.sum(axis=0), kind="stable")[:rings])
    laid = np.where(has[:, chosen], chosen, -1)
    for row in np.flatnonzero((laid < 0).any(axis=1)):
        spare = np.setdiff1d(np.flatnonzero(has[row]), chosen)
        missing = np.flatnonzero(laid[row] < 0)
        laid[row, missing] = spare[: len(missing)]
    is_hurt = place.any_of_nic((table < 0) & (place.nic >= 0)) & failover & (planes == "all")
    edges = _edges_over(placement.fabric, table, place, laid, is_hurt, most=1 if planes == "one" else None)
    if not edges.rings:
        raise TrafficError(
            "no ring is left: the NICs that the hosts still have do not reach each other",
            hint="on_dead evict leaves out the hosts that lost a NIC",
        )
    return edges


@dataclass(frozen=True)
class _NicPlaces:
    """Which NIC and plane each place of a port in its host belongs to; (n_hosts, n_places), -1 for none."""

    nic: NDArray[np.int64]
    plane: NDArray[np.int64]

    @property
    def first_of_nic(self) -> NDArray[np.int64]:
        """Places of the first port of each NIC of the first host."""
        return np.unique(self.nic[0], return_index=True)[1]

    def any_of_nic(self, holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(n_hosts, n_places) whether something holds at any place of the same NIC."""
        rows = np.arange(len(holds))[:, None]
        found = np.zeros((len(holds), int(self.nic.max(initial=0)) + 2), bool)
        np.logical_or.at(found, (np.broadcast_to(rows, holds.shape), self.nic), holds)
        found[:, -1] = False  # places that a host does not have
        return found[rows, self.nic]


def common_ports(placement: Placement) -> NDArray[np.int64]:
    """(n_hosts, n_places) ports of a damaged fabric at the places that all hosts of a job still have."""
    table = _port_table(placement)
    return table[:, (table >= 0).all(axis=0)]


def _port_table(placement: Placement) -> NDArray[np.int64]:
    """(n_hosts, n_places) the port at each place of the job's hosts, as the whole host had it; -1: gone."""
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
    return table


def _nic_places(placement: Placement, table: NDArray[np.int64]) -> _NicPlaces:
    """Return the NIC and the plane of each place, as they were on the whole fabric."""
    fabric, hosts = placement.fabric, placement.hosts
    assert fabric.damage is not None
    before, port = fabric.damage.before, fabric.damage.port
    place_of = np.full(fabric.n_hosts, -1)
    place_of[hosts] = np.arange(len(hosts))
    row = place_of[fabric.host_index[before.host]]
    used = row >= 0
    nic, plane = np.full(table.shape, -1, np.int64), np.full(table.shape, -1, np.int64)
    nic[row[used], port[used]] = before.rail[used]
    plane[row[used], port[used]] = before.plane[used]
    return _NicPlaces(nic, plane)


def _edges_over(
    fabric: Fabric,
    table: NDArray[np.int64],
    place: _NicPlaces,
    laid: NDArray[np.int64],
    is_hurt: NDArray[np.bool_],
    most: int | None,
) -> RingEdges:
    """Return the edges of rings laid by places; rings with an edge that cannot be are left out.

    Edges at a hurt place, and those whose port is gone, are split over ``most`` of the ports that their NICs
    have in one plane (all when None).
    """
    n_hosts = len(laid)
    group = components(fabric, through_hosts=False)[fabric.endpoints.leaf]
    rows = np.arange(n_hosts)[:, None]
    next_host, next_place = np.roll(np.arange(n_hosts), -1), np.roll(laid, -1, axis=0)
    src, dst = table[rows, laid], table[next_host[:, None], next_place]
    # Equal places reach each other if anything does; a spare one need not.
    direct = (src >= 0) & (dst >= 0) & ((laid == next_place) | (group[src] == group[dst]))
    direct &= ~(is_hurt[rows, laid] | is_hurt[next_host[:, None], next_place])
    host, ring = np.nonzero(direct)
    found = [np.stack([host, ring, src[direct], dst[direct], np.zeros_like(host), np.ones_like(host)])]
    lost = set()
    for at, number in zip(*(axis.tolist() for axis in np.nonzero(~direct)), strict=True):
        ways = _stand_ins(
            table,
            place,
            group,
            (at, int(laid[at, number])),
            (int(next_host[at]), int(next_place[at, number])),
        )[:most]
        if not ways:
            lost.add(number)
        found += [
            np.array([[at], [number], [a], [b], [turn], [len(ways)]])
            for turn, (a, b) in enumerate(ways, start=1)
        ]
    columns = np.concatenate(found, axis=1)
    columns = columns[:, ~np.isin(columns[1], list(lost))]
    host, ring, src, dst, moved, parts = columns[:, np.lexsort((columns[4], columns[1], columns[0]))]
    left, ring = np.unique(ring, return_inverse=True)
    return RingEdges(len(left), src, dst, ring.astype(np.int64), 1 / parts, moved)


def _stand_ins(
    table: NDArray[np.int64],
    place: _NicPlaces,
    group: NDArray[np.integer],
    here: tuple[int, int],
    there: tuple[int, int],
) -> list[tuple[int, int]]:
    """Return the pairs of ports in one plane that two NICs still have; a NIC by host and place of a port."""
    ports = []
    for host, own in (here, there):
        mine = np.flatnonzero((place.nic[host] == place.nic[host, own]) & (table[host] >= 0))
        ports.append({int(place.plane[host, at]): int(table[host, at]) for at in mine})
    common = sorted(ports[0].keys() & ports[1].keys())
    return [
        (a, b) for plane in common for a, b in [(ports[0][plane], ports[1][plane])] if group[a] == group[b]
    ]
