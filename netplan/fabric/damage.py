"""What a damaged fabric remembers of the whole one.

A damaged fabric (`netplan.fabric.failures.apply_failures`) is an ordinary `Fabric` with fewer
cables and endpoints: all nodes keep their ids and names, what failed has no cables any more, and
an endpoint that nothing reaches is not in the table. Cables and endpoints are therefore
renumbered; their old numbers are here, so that hashes and placements see the same addresses as
before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric.columns import Endpoints

#: Why an endpoint is not there any more, by number; 0 is there.
REASONS = ("", "the NIC, its cable or its host failed", "its leaf failed", "cut off from the larger part")

FAILED, LEAF_FAILED, CUT_OFF = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Damage:
    """What failed, and the numbers of before."""

    failures: tuple[str, ...]
    """The failures as they were written."""
    seeds: tuple[int, ...]
    """Seed of the random choices of each failure."""
    nodes: NDArray[np.int32]
    """Hosts and switches that failed, ascending."""
    cable: NDArray[np.int32]
    """(n_cables,) number that each cable had, ascending."""
    endpoint: NDArray[np.int32]
    """(n_endpoints,) number that each endpoint had, ascending."""
    n_cables: int
    """Cables of the whole fabric."""
    before: Endpoints
    """Endpoints of the whole fabric, with its cable numbers."""
    lost: NDArray[np.int8]
    """(n_endpoints of the whole fabric,) index into `REASONS`."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    @cached_property
    def failed_cables(self) -> NDArray[np.int64]:
        """Cables that are gone, by the numbers of before, ascending."""
        gone = np.ones(self.n_cables, bool)
        gone[self.cable] = False
        return np.flatnonzero(gone)

    @cached_property
    def port(self) -> NDArray[np.int64]:
        """(n_endpoints of the whole fabric,) place of each endpoint in its host."""
        host = self.before.host
        return np.arange(len(host)) - np.searchsorted(host, host, side="left")

    @cached_property
    def lost_nics(self) -> NDArray[np.int64]:
        """(n_lost,) the first port of each NIC (host and rail) that has no port left, numbers of before."""
        rails = int(self.before.rail.max(initial=0)) + 1
        nic = self.before.host.astype(np.int64) * rails + self.before.rail
        nics, first, place = np.unique(nic, return_index=True, return_inverse=True)
        has_port = np.zeros(len(nics), bool)
        has_port[place[self.endpoint]] = True
        return np.sort(first[~has_port])
