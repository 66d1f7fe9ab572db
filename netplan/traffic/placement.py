"""Rank to GPU: which GPUs take part, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError, did_you_mean
from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.traffic import PlacementSpec

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
        """(n_ranks,) the NIC port that serves each rank (the first, if it has several)."""
        fabric = self.fabric
        first = fabric.endpoint_ptr[self.host]
        nics = fabric.endpoint_ptr[self.host + 1] - first
        gpus = fabric.gpus_per_host[self.host].astype(np.int64)
        return np.asarray(first + self.local_gpu * nics // gpus, np.int64)

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

        With more NICs than GPUs a GPU has several, and all count.
        """
        fabric, host = self.fabric, int(self.hosts[place])
        first, last = int(fabric.endpoint_ptr[host]), int(fabric.endpoint_ptr[host + 1])
        gpus, n_nics = int(fabric.gpus_per_host[host]), last - first
        start = int(self.ranks_per_host[:place].sum())
        local = self.local_gpu[start : start + int(self.ranks_per_host[place])]
        if n_nics > gpus:
            each = n_nics // gpus
            return first + (local[:, None] * each + np.arange(each)).ravel()
        return first + np.unique(local * n_nics // gpus)


def place_ranks(
    fabric: Fabric, spec: PlacementSpec, ranks: int | None, rng: np.random.Generator
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

    Returns
    -------
    Placement
        Whole hosts in the order of the kind, the last one perhaps in part.

    Raises
    ------
    TrafficError
        More ranks than GPUs, fewer than two, or a host that is not there.
    """
    order = _host_order(fabric, spec, rng)
    gpus = fabric.gpus_per_host[order].astype(np.int64)
    available = int(gpus.sum())
    wanted = available if ranks is None else ranks
    if wanted > available:
        where = "the listed hosts have" if spec.kind == "explicit" else f"fabric {fabric.name!r} has"
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
        leaf = fabric.endpoints.leaf[fabric.endpoint_ptr[:-1]]
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
