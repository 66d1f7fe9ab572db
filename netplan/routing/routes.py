"""What goes into routing and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import RoutingError
from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric


@dataclass(frozen=True, eq=False)
class FlowTable:
    """The flows to be routed, in arrival order."""

    src: NDArray[np.int32]
    """(n_flows,) endpoint that sends."""
    dst: NDArray[np.int32]
    """(n_flows,) endpoint that receives, on another host."""
    channel: NDArray[np.int32]
    """(n_flows,) number that tells flows between one pair of endpoints apart."""
    qps: int = 1
    """Queue pairs of each flow: each has its own UDP source port."""

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.src)

    def lone_rates(self, line_rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rate of each flow if only its two NIC ports limited it, shared equally.

        Parameters
        ----------
        line_rate : (n_endpoints,) float64
            What each NIC port carries [bytes/s].
        """
        received = np.bincount(self.dst, minlength=len(line_rate))
        return np.minimum(self.offered_rates(line_rate), line_rate[self.dst] / received[self.dst])

    def offered_rates(self, line_rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rate at which each flow would be sent if nothing slowed its sender down.

        Parameters
        ----------
        line_rate : (n_endpoints,) float64
            What each NIC port carries [bytes/s]; its flows share it equally.
        """
        sent = np.bincount(self.src, minlength=len(line_rate))
        return np.minimum(line_rate[self.src] / sent[self.src], line_rate[self.dst])


@dataclass(frozen=True)
class RoutingOptions:
    """What a scheme may be told; each scheme uses what concerns it."""

    seed: int = 0
    """Seeds the switches' hash functions and random forwarding tables."""
    polarized: bool = False
    """All switches share one hash seed: the paths chosen at successive tiers are correlated."""
    flowlets: int = 4
    """``adaptive``, ``ugal``: no part of a flow placed as a whole is over 1/flowlets of its NIC's rate."""
    reevaluations: int = 4
    """``adaptive``, ``ugal``: how often a part on an overloaded path looks for a better one."""
    minimal_candidates: int = 2
    """``ugal``: minimal paths drawn for each look of a part."""
    valiant_candidates: int = 2
    """``ugal``: paths over an intermediate drawn for each look of a part."""


@dataclass(frozen=True, eq=False)
class Routes:
    """Which links each flow takes, and with which share of it.

    A *path* is what one QP, or several QPs that go the same way, takes through the fabric; it
    crosses *resources*: links, or *trunks* of equal links over which it is spread evenly.
    Resource ``r < n_links`` is link ``r``; resource ``n_links + t`` is trunk ``t``.
    """

    scheme: str
    n_links: int
    flow_ptr: NDArray[np.int64]
    """(n_flows + 1,) flow ``f`` owns the paths ``flow_ptr[f]:flow_ptr[f + 1]``."""
    weight: NDArray[np.float64]
    """(n_paths,) QPs that the path stands for; they sum to the QPs of the flow."""
    path_ptr: NDArray[np.int64]
    """(n_paths + 1,) CSR row pointer of the two columns below."""
    resource: NDArray[np.int64]
    """(nnz,) resources of each path, each at most once a path."""
    share: NDArray[np.float64]
    """(nnz,) share of the path's bytes that crosses the resource (all links of a trunk together)."""
    trunk_ptr: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    """(n_trunks + 1,) CSR row pointer of `trunk_link`."""
    trunk_link: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Member links of each trunk, of equal capacity."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __repr__(self) -> str:
        """Say in one line what it is."""
        return (
            f"<Routes {self.scheme}: {len(self.flow_ptr) - 1:,} flows on {self.n_paths:,} paths, "
            f"{len(self.resource):,} hops>"
        )

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        return len(self.weight)

    @property
    def n_trunks(self) -> int:
        """Number of trunks."""
        return len(self.trunk_ptr) - 1

    def capacity(self, link_capacity: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the capacity of every resource [bytes/s], given that of the links."""
        if not self.n_trunks:
            return link_capacity
        trunk = np.add.reduceat(link_capacity[self.trunk_link], self.trunk_ptr[:-1])
        return np.concatenate([link_capacity, trunk])

    def link_load(self, path_load: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what every link carries when path ``p`` carries ``path_load[p]`` in all."""
        per_entry = np.repeat(path_load, np.diff(self.path_ptr)) * self.share
        load = np.bincount(self.resource, per_entry, minlength=self.n_links + self.n_trunks)
        links: NDArray[np.float64] = load[: self.n_links].astype(np.float64)
        if self.n_trunks:
            members = np.diff(self.trunk_ptr)
            each = np.repeat(load[self.n_links :] / members, members)
            links += np.bincount(self.trunk_link, each, minlength=self.n_links)
        return links

    def path_sum(self, link_value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, per path, the sum of a value over its links, weighted by share (a delay, a hop)."""
        value = link_value
        if self.n_trunks:
            members = np.diff(self.trunk_ptr)
            mean = np.add.reduceat(link_value[self.trunk_link], self.trunk_ptr[:-1]) / members
            value = np.concatenate([link_value, mean])
        return np.add.reduceat(value[self.resource] * self.share, self.path_ptr[:-1])


def single_paths(
    scheme: str,
    fabric: Fabric,
    n_flows: int,
    weight: NDArray[np.float64],
    path_ptr: NDArray[np.int64],
    link: NDArray[np.int64],
) -> Routes:
    """Return routes of paths that each take single links, the same number of paths per flow."""
    per_flow = len(weight) // n_flows if n_flows else 1
    return Routes(
        scheme=scheme,
        n_links=len(fabric.links),
        flow_ptr=np.arange(n_flows + 1, dtype=np.int64) * per_flow,
        weight=weight,
        path_ptr=path_ptr,
        resource=link,
        share=np.ones(len(link)),
    )


def route_flows(
    fabric: Fabric, flows: FlowTable, scheme: str, options: RoutingOptions | None = None
) -> Routes:
    """Route flows by a scheme's name.

    Parameters
    ----------
    fabric
        The fabric.
    flows
        Flows between endpoints of different hosts.
    scheme
        Name of a registered scheme (``netplan list routing``).
    options
        Seed and scheme options.

    Returns
    -------
    Routes
        A path or more for every flow.

    Raises
    ------
    RoutingError
        No such scheme, or two endpoints that no path joins.
    """
    from netplan.routing.registry import SCHEMES
    from netplan.routing.remember import recall

    options = options or RoutingOptions()
    return recall(fabric, flows, scheme, options, SCHEMES.find(scheme).route)


def refuse_unreachable(fabric: Fabric, src: int, dst: int) -> None:
    """Say that no path joins two endpoints.

    Raises
    ------
    RoutingError
        Always.
    """

    def name(endpoint: int) -> str:
        host = fabric.node_name(int(fabric.endpoints.host[endpoint]))
        return f"{host} NIC {int(fabric.endpoints.rail[endpoint])}"

    raise RoutingError(
        f"fabric {fabric.name!r}: no path inside the network joins {name(src)} and {name(dst)}",
        hint="their rails or planes meet only inside hosts: stay in the rail (PXN), or add a core tier",
    )
