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
    order = _host_order(fabric, spec, rng)
    if fabric.damage is not None:
        order = hosts_left(fabric, order, ranks, on_dead)
    gpus = fabric.gpus_per_host[order].astype(np.int64)
    available = int(gpus.sum())
    wanted = available if ranks is None else ranks
    if wanted > available:
        where = "the listed hosts have" if spec.kind == "explicit" else f"fabric {fabric.name!r} has"
        where += "" if fabric.damage is None else ", after the failures,"
        raise TrafficError(
            f"ranks = {wanted:,}, but {where} {available:,} GPUs", hint=f"at most {available:,} ranks"
        )
    if wanted < LEAST_RANKS:
        raise TrafficError(
            f"ranks = {wanted}: traffic needs at least {LEAST_RANKS} ranks", hint=f"2 to {available:,} ranks"
        )
    host = np.repeat(order, gpus)[:wanted]
    first = np.cumsum(gpus) - gpus
    local = (np.arange(available) - np.repeat(first, gpus))[:wanted]
    return Placement(fabric, host, local)


def _host_order(fabric: Fabric, spec: PlacementSpec, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return hosts (places in host order) in the order in which ranks fill them."""
    everyone = np.arange(fabric.n_hosts)
    if spec.kind == "random":
        return rng.permutation(everyone)
    if spec.kind == "fragmented":
        leaf = first_leaf(fabric)
        order = np.argsort(leaf, kind="stable")
        first = np.searchsorted(leaf[order], leaf[order], side="left")
        turn = np.empty(len(leaf), np.int64)
        turn[order] = np.arange(len(leaf)) - first
        return np.lexsort((leaf, turn))
    if spec.kind == "explicit":
        return _named_hosts(fabric, spec.hosts or ())
    return everyone


def _named_hosts(fabric: Fabric, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Look hosts up by name, refusing unknown and repeated ones."""
    index = {fabric.node_name(int(node)): place for place, node in enumerate(fabric.host_ids)}
    for name in names:
        if name not in index:
            raise TrafficError(
                f"placement.hosts: {name!r} is not a host of fabric {fabric.name!r}",
                hint=did_you_mean(name, index) or f"hosts are called like {next(iter(index))}",
            )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TrafficError(f"placement.hosts: {repeated[0]!r} is listed twice", hint="list each host once")
    return np.array([index[name] for name in names], np.int64)
