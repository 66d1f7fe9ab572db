"""Rank to GPU: which GPUs take part, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError, did_you_mean
from netplan.fabric.columns import freeze_arrays
from netplan.traffic.damaged import endpoints_of_ranks, first_leaf, hosts_left, ports_of_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.traffic import PlacementSpec
    from netplan.traffic.damaged import OnDead

#: A collective has at least this many participants.
LEAST_RANKS = 2


@dataclass(frozen=True, eq=False)
class Placement:
    """The GPUs of a job in rank order; the ranks of a host are consecutive."""

    fabric: Fabric
    host: NDArray[np.int64]
    """(n_ranks,) host of each rank, by its place in host order."""
    local_gpu: NDArray[np.int64]
    """(n_ranks,) index of the GPU in its host."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.host)

    @cached_property
    def endpoint(self) -> NDArray[np.int64]:
        """(n_ranks,) the NIC that serves each rank (the first, if it has several), by its first port."""
        fabric = self.fabric
        if fabric.damage is not None:
            return self._first_port(endpoints_of_ranks(fabric, self.host, self.local_gpu))
        first = fabric.endpoint_ptr[self.host]
        nics = fabric.endpoint_ptr[self.host + 1] - first
        gpus = fabric.gpus_per_host[self.host].astype(np.int64)
        return self._first_port(np.asarray(first + self.local_gpu * nics // gpus, np.int64))

    def _first_port(self, endpoint: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the first port of each port's NIC: itself, but where NICs have a port in several planes."""
        return np.asarray(self.fabric.nic_ptr[self.fabric.endpoint_nic[endpoint]], np.int64)

    @cached_property
    def hosts(self) -> NDArray[np.int64]:
        """(n_hosts,) the job's hosts in rank order, each once."""
        return np.asarray(self.host[np.concatenate([[True], np.diff(self.host) != 0])])

    @cached_property
    def ranks_per_host(self) -> NDArray[np.int64]:
        """(n_hosts,) ranks of each of `hosts`."""
        starts = np.flatnonzero(np.concatenate([[True], np.diff(self.host) != 0]))
        return np.diff(starts, append=len(self.host))

    def nics(self, place: int) -> NDArray[np.int64]:
        """Return the NIC ports that serve the ranks of the ``place``-th of `hosts`, ascending.

        With more NICs than GPUs a GPU has several, and all count, with all their ports.
        """
        ports = self._ports(place)
        nics = np.unique(self.fabric.endpoint_nic[ports])
        first, end = self.fabric.nic_ptr[nics], self.fabric.nic_ptr[nics + 1]
        return np.concatenate([np.arange(a, b) for a, b in zip(first, end, strict=True)])

    def _ports(self, place: int) -> NDArray[np.int64]:
        """Return a port of each NIC, or more, that serves the ranks of a host."""
        fabric, host = self.fabric, int(self.hosts[place])
        first, last = int(fabric.endpoint_ptr[host]), int(fabric.endpoint_ptr[host + 1])
        gpus, n_nics = int(fabric.gpus_per_host[host]), last - first
        start = int(self.ranks_per_host[:place].sum())
        mine = slice(start, start + int(self.ranks_per_host[place]))
        local = self.local_gpu[mine]
        if fabric.damage is not None:
            return ports_of_ranks(fabric, host, local, self.endpoint[mine])
        if n_nics > gpus:
            each = n_nics // gpus
            return first + (local[:, None] * each + np.arange(each)).ravel()
        return first + np.unique(local * n_nics // gpus)


def place_ranks(
    fabric: Fabric,
    spec: PlacementSpec,
    ranks: int | None,
    rng: np.random.Generator,
    on_dead: OnDead = "shrink",
) -> Placement:
    """Choose the GPUs of a job.

    Parameters
    ----------
    fabric
        The fabric.
    spec
        The kind of placement.
    ranks
        How many GPUs; all of the fabric (or of the listed hosts) when None.
    rng
        Draws the hosts of a random placement.
    on_dead
        What happens to hosts that lost NIC ports (`netplan.traffic.damaged`).

    Returns
    -------
    Placement
        Whole hosts in the order of the kind, the last one perhaps in part.

    Raises
    ------
    TrafficError
        More ranks than GPUs, fewer than two, a host that is not there, or one that lost NIC ports
        when ``on_dead`` is ``refuse``.
    """
    order = host_order(fabric, spec, ranks, rng)
    if fabric.damage is not None:
        order = hosts_left(fabric, order, ranks, on_dead)
    gpus = fabric.gpus_per_host[order].astype(np.int64)
    available = int(gpus.sum())
    wanted = available if ranks is None else ranks
    if wanted > available:
        where = "the listed hosts have" if spec.kind == "explicit" else f"fabric {fabric.name!r} has"
        where += "" if fabric.damage is None else ", after the failures,"
        free = " that no other job holds" if spec.kind != "explicit" and (spec.taken or spec.busy) else ""
        raise TrafficError(
            f"ranks = {wanted:,}, but {where} {available:,} GPUs{free}", hint=f"at most {available:,} ranks"
        )
    if wanted < LEAST_RANKS:
        raise TrafficError(
            f"ranks = {wanted}: traffic needs at least {LEAST_RANKS} ranks", hint=f"2 to {available:,} ranks"
        )
    host = np.repeat(order, gpus)[:wanted]
    first = np.cumsum(gpus) - gpus
    local = (np.arange(available) - np.repeat(first, gpus))[:wanted]
    return Placement(fabric, host, local)


def host_order(
    fabric: Fabric, spec: PlacementSpec, ranks: int | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the free hosts (places in host order) in the order in which ranks fill them.

    Parameters
    ----------
    fabric
        The fabric.
    spec
        The kind of placement.
    ranks
        GPUs that the job wants; None for all.
    rng
        Draws the hosts of a random placement, and those that other jobs hold.

    Raises
    ------
    TrafficError
        A host that is not there, is listed twice, or is held by another job.
    """
    if spec.kind == "explicit":
        named = named_hosts(fabric, spec.hosts or (), "placement.hosts")
        held = np.flatnonzero(np.isin(named, named_hosts(fabric, spec.taken, "placement.taken")))
        if len(held):
            name = fabric.node_name(int(fabric.host_ids[named[held[0]]]))
            raise TrafficError(
                f"placement.hosts: {name!r} is also in placement.taken: another job holds it",
                hint="take it from one of the two lists",
            )
        return named
    free = _free_hosts(fabric, spec, rng)
    if spec.kind == "random":
        return rng.permutation(free)
    if spec.kind == "fragmented":
        leaf = first_leaf(fabric)[free]
        order = np.argsort(leaf, kind="stable")
        first = np.searchsorted(leaf[order], leaf[order], side="left")
        turn = np.empty(len(leaf), np.int64)
        turn[order] = np.arange(len(leaf)) - first
        return np.asarray(free[np.lexsort((leaf, turn))], np.int64)
    if spec.kind == "rail-aware":
        return _freest_first(free, host_blocks(fabric)[0])
    if spec.kind == "topology-aware":
        blocks = [block[free] for block in host_blocks(fabric)]
        gpus = fabric.gpus_per_host[free].astype(np.int64)
        wanted = int(gpus.sum()) if ranks is None else ranks
        chosen = np.array(_best_fit(np.arange(len(free)), blocks[::-1], gpus, wanted), np.int64)
        rest = np.setdiff1d(np.arange(len(free)), chosen)
        return np.asarray(free[np.concatenate([chosen, rest])], np.int64)
    return free


def _free_hosts(fabric: Fabric, spec: PlacementSpec, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the hosts that no other job holds, in host order."""
    free = np.ones(fabric.n_hosts, bool)
    free[named_hosts(fabric, spec.taken, "placement.taken")] = False
    if spec.busy > 0:
        free[rng.permutation(fabric.n_hosts)[: round(spec.busy * fabric.n_hosts)]] = False
    return np.flatnonzero(free)


def host_blocks(fabric: Fabric) -> list[NDArray[np.int64]]:
    """Return, for leaves, pods and sites, the block that each host is in.

    Returns
    -------
    list of (n_hosts,) int64
        Equal numbers: NICs on the same leaves (in a rail-optimized fabric, of all rails); on switches of the
        same pods; in the same site. Numbered by each block's first host.
    """
    ends = fabric.endpoints if fabric.damage is None else fabric.damage.before
    host = fabric.host_index[ends.host]
    place = np.arange(len(host)) - np.searchsorted(host, host)
    leaves = np.full((fabric.n_hosts, int(place.max()) + 1), -1, np.int64)
    leaves[host, place] = ends.leaf
    pods = np.where(leaves >= 0, fabric.nodes.pod[leaves], -1)
    sites = fabric.nodes.site[fabric.host_ids][:, None]
    return [_numbered(table) for table in (leaves, pods, sites)]


def _numbered(table: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return a number for each row: equal rows have equal ones, in the order of the first of them."""
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[which.ravel()], np.int64)


def _freest_first(free: NDArray[np.int64], block: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return hosts block by block, those with the most free hosts first."""
    count = np.bincount(block[free])
    return np.asarray(free[np.lexsort((free, block[free], -count[block[free]]))], np.int64)


def _best_fit(
    hosts: NDArray[np.int64], levels: list[NDArray[np.int64]], gpus: NDArray[np.int64], wanted: int
) -> list[int]:
    """Choose hosts for some GPUs out of the fewest blocks of every level, the widest level first.

    A block that holds all is taken if there is one, the one with the least left over; else the blocks with
    the most, and for the rest again the one that fits best. The same inside each block, level by level.
    """
    if not levels or wanted <= 0:
        count = int(np.searchsorted(np.cumsum(gpus[hosts]), wanted)) + 1
        return [int(host) for host in hosts[:count]] if wanted > 0 else []
    blocks = [hosts[levels[0][hosts] == number] for number in np.unique(levels[0][hosts])]
    room = [int(gpus[block].sum()) for block in blocks]
    chosen: list[int] = []
    while wanted > 0 and blocks:
        fits = [place for place, size in enumerate(room) if size >= wanted]
        place = min(fits, key=room.__getitem__) if fits else room.index(max(room))
        chosen += _best_fit(blocks.pop(place), levels[1:], gpus, min(wanted, room[place]))
        wanted -= room.pop(place)
    return chosen


def named_hosts(fabric: Fabric, names: Sequence[str], field: str) -> NDArray[np.int64]:
    """Look hosts up by name or range, refusing unknown and repeated ones.

    Parameters
    ----------
    fabric
        The fabric.
    names
        Names, or ranges ``first..last`` in host order.
    field
        Where they stand, for messages.

    Returns
    -------
    (n,) int64
        Places in host order.

    Raises
    ------
    TrafficError
        A host that is not there or is listed twice, or a range that ends before it begins.
    """
    if not names:
        return np.zeros(0, np.int64)
    index = {fabric.node_name(int(node)): place for place, node in enumerate(fabric.host_ids)}

    def find(name: str) -> int:
        if name not in index:
            raise TrafficError(
                f"{field}: {name!r} is not a host of fabric {fabric.name!r}",
                hint=did_you_mean(name, index) or f"hosts are called like {next(iter(index))}",
            )
        return index[name]

    found: list[int] = []
    for name in names:
        first, dots, last = name.partition("..")
        if not dots:
            found.append(find(name))
            continue
        begin, end = find(first), find(last)
        if end < begin:
            raise TrafficError(f"{field}: {name!r} ends before it begins", hint=f"{last}..{first}")
        found += range(begin, end + 1)
    seen: set[int] = set()
    for place in found:
        if place in seen:
            name = fabric.node_name(int(fabric.host_ids[place]))
            raise TrafficError(f"{field}: {name!r} is listed twice", hint="list each host once")
        seen.add(place)
    return np.array(found, np.int64)
