"""The columns of a fabric and the one frozen value that holds them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from netplan.fabric.damage import Damage
    from netplan.fabric.direct import DirectStructure
    from netplan.fabric.fibre import FibrePath
    from netplan.fabric.structure import ClosStructure

#: Names of the tiers, by number. Metro switches join sites and stand above any site's top tier.
TIER_NAMES = ("host", "leaf", "spine", "core", "metro")

#: Kinds of cable, by number: what the two ends are. ``local``, ``global``: two switches of a direct network
#: in one group (or one row), and in two. Files store the numbers: new kinds come last.
LINK_KINDS = (
    "host_leaf",
    "leaf_spine",
    "spine_core",
    "site_metro",
    "inter_site",
    "other",
    "local",
    "global",
)


@dataclass(frozen=True, eq=False)
class NameBlock:
    """Names of consecutive nodes, made when asked for.

    A fabric of 27,000 nodes is built far more often than its names are read.
    """

    first: int
    """Node id of the first node named."""
    count: int
    """How many nodes follow, the first included."""
    template: str
    """`str.format` template with one place per entry of ``parts``."""
    parts: tuple[Sequence[Any] | NDArray[Any], ...]
    """Per place, one value for each node."""

    def name(self, node_id: int) -> str:
        """Return the name of one node of the block."""
        return self.template.format(*(part[node_id - self.first] for part in self.parts))


def freeze_arrays(table: object) -> None:
    """Make every array of a dataclass read-only: a fabric is a value."""
    for column in fields(table):  # type: ignore[arg-type]
        value = getattr(table, column.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Nodes:
    """Hosts and switches, one row each; -1 where a column does not apply."""

    tier: NDArray[np.int8]
    """0 host, 1 leaf, 2 spine, 3 core, 4 metro."""
    pod: NDArray[np.int32]
    """Repeated block under one set of spines, counted over the whole fabric."""
    plane: NDArray[np.int16]
    """Parallel fabric that never meets another inside the network."""
    rail: NDArray[np.int16]
    """NIC index that the switch serves."""
    site: NDArray[np.int16]
    """Building or campus; 0 in a fabric of one site."""
    radix: NDArray[np.int32]
    """Ports of the switch at the speed used; 0 for hosts."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.tier)


@dataclass(frozen=True, eq=False)
class Links:
    """Directed links; rows ``2 * c`` and ``2 * c + 1`` are the two directions of cable ``c``."""

    src: NDArray[np.int32]
    """Node that sends."""
    dst: NDArray[np.int32]
    """Node that receives."""
    capacity: NDArray[np.float64]
    """Line rate [bytes/s], headers included."""
    delay: NDArray[np.float64]
    """One-way propagation delay [s]."""
    length: NDArray[np.float64]
    """Cable length [m]."""
    kind: NDArray[np.int8]
    """Index into `LINK_KINDS`."""
    path: NDArray[np.int16]
    """Index into `Fabric.fibre_paths`; -1 where no fibre path between sites is known."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __len__(self) -> int:
        """Return the number of directed links: two per cable."""
        return len(self.src)

    @property
    def n_cables(self) -> int:
        """Number of cables."""
        return len(self.src) // 2


@dataclass(frozen=True, eq=False)
class Endpoints:
    """NIC ports, one row each, in host order."""

    host: NDArray[np.int32]
    """Node id of the host."""
    gpu: NDArray[np.int32]
    """Local index of the first GPU that this NIC serves."""
    rail: NDArray[np.int16]
    """Local index of the NIC."""
    plane: NDArray[np.int16]
    """Plane that the port belongs to."""
    cable: NDArray[np.int32]
    """The port's cable."""
    leaf: NDArray[np.int32]
    """Node id of the switch at the cable's other end."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __len__(self) -> int:
        """Return the number of endpoints."""
        return len(self.host)


@dataclass(frozen=True, eq=False, repr=False)
class Fabric:
    """Switches, ports and links that carry one scale-out network.

    Made by `FabricBuilder.finish`, which guarantees: no switch uses more ports than it has, both
    ends of every cable are nodes, both directions of a cable have one speed, cables join
    adjacent tiers (or metro switches), every host has an endpoint and every endpoint a link, and
    the whole is connected. A damaged one (`netplan.fabric.failures`) has hosts without endpoints
    and may be in parts.
    """

    name: str
    kind: str
    nodes: Nodes
    links: Links
    endpoints: Endpoints
    names: tuple[NameBlock, ...]
    gpus_per_host: NDArray[np.int32]
    """(n_hosts,) GPUs of each host, in host order."""
    scale_up_rate: NDArray[np.float64]
    """(n_hosts,) what one GPU sends into the scale-up domain [bytes/s], per direction."""
    site_names: tuple[str, ...] = ("site",)
    structure: ClosStructure | None = None
    """How to compute paths by arithmetic; None for fabrics that have to be walked."""
    direct: DirectStructure | None = None
    """The same for direct networks (dragonfly, torus, ...); None for all others and for damaged ones."""
    spec: Mapping[str, Any] | None = None
    """The validated spec that built it, as plain data; None for a fabric made by hand."""
    switch_latency: float | None = None
    """Latency that each switch adds [s]; the transport's own when None."""
    endpoint_latency: float | None = None
    """Latency that two NICs and hosts add to a message [s]; the transport's own when None."""
    damage: Damage | None = None
    """What failed, and the numbers of before; None for a whole fabric."""
    fibre_paths: tuple[FibrePath, ...] = ()
    """Routes of the spans between sites, for families that know them."""
    forwarding: NDArray[np.int32] | None = None
    """(n_nodes, n_endpoints) link that a switch sends packets for an endpoint to, -1 for none: the tables of
    a real subnet manager, which ``ib-static`` then follows; None where there are none."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __repr__(self) -> str:
        """Say in one line what it is."""
        return (
            f"<Fabric {self.name!r} {self.kind}: {self.n_hosts:,} hosts, {self.n_gpus:,} GPUs, "
            f"{self.n_endpoints:,} endpoints, {self.n_switches:,} switches, "
            f"{self.links.n_cables:,} cables{'' if self.damage is None else ', damaged'}>"
        )

    @property
    def n_nodes(self) -> int:
        """Number of hosts and switches."""
        return len(self.nodes)

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return len(self.host_ids)

    @property
    def n_switches(self) -> int:
        """Number of switches."""
        return self.n_nodes - self.n_hosts

    @property
    def n_endpoints(self) -> int:
        """Number of NIC ports."""
        return len(self.endpoints)

    @property
    def n_gpus(self) -> int:
        """Number of GPUs."""
        return int(self.gpus_per_host.sum())

    @cached_property
    def host_ids(self) -> NDArray[np.int64]:
        """(n_hosts,) node ids of the hosts, ascending: *host order*."""
        return np.flatnonzero(self.nodes.tier == 0)

    @cached_property
    def host_index(self) -> NDArray[np.int64]:
        """(n_nodes,) place of a host in host order; -1 for switches."""
        index = np.full(self.n_nodes, -1, np.int64)
        index[self.host_ids] = np.arange(self.n_hosts)
        return index

    @cached_property
    def endpoint_ptr(self) -> NDArray[np.int64]:
        """(n_hosts + 1,) endpoints ``endpoint_ptr[h]:endpoint_ptr[h + 1]`` belong to host ``h``."""
        counts = np.bincount(self.host_index[self.endpoints.host], minlength=self.n_hosts)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def endpoint_rate(self) -> NDArray[np.float64]:
        """(n_endpoints,) line rate of each NIC port [bytes/s]."""
        return self.links.capacity[2 * self.endpoints.cable.astype(np.int64)]

    @cached_property
    def endpoint_address(self) -> NDArray[np.int64]:
        """(n_endpoints,) what stands for each endpoint in packets: its number in the whole fabric."""
        if self.damage is None:
            return np.arange(self.n_endpoints)
        return self.damage.endpoint.astype(np.int64)

    @cached_property
    def nic_ptr(self) -> NDArray[np.int64]:
        """(n_nics + 1,) ports ``nic_ptr[k]:nic_ptr[k + 1]`` belong to NIC ``k``, counted over the fabric.

        The ports of a NIC follow one another: one host, one rail, ascending planes.
        """
        e = self.endpoints
        goes_on = (np.diff(e.host) == 0) & (np.diff(e.rail) == 0) & (np.diff(e.plane) > 0)
        first = np.flatnonzero(~np.concatenate([[False], goes_on])[: len(e)])
        return np.concatenate([first, [len(e)]])

    @cached_property
    def endpoint_nic(self) -> NDArray[np.int64]:
        """(n_endpoints,) NIC that each port belongs to."""
        return np.repeat(np.arange(len(self.nic_ptr) - 1), np.diff(self.nic_ptr))

    @cached_property
    def out_ptr(self) -> NDArray[np.int64]:
        """(n_nodes + 1,) CSR row pointer of `out_link`."""
        counts = np.bincount(self.links.src, minlength=self.n_nodes)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def out_link(self) -> NDArray[np.int64]:
        """(n_links,) links that leave each node, ascending by id within a node."""
        return np.argsort(self.links.src, kind="stable")

    @cached_property
    def top_tier(self) -> NDArray[np.int8]:
        """(n_sites,) highest tier below the metro switches, per site."""
        tier = np.where(self.nodes.tier < len(TIER_NAMES) - 1, self.nodes.tier, 0)
        top = np.zeros(len(self.site_names), np.int8)
        np.maximum.at(top, self.nodes.site, tier)
        return top

    def node_name(self, node_id: int) -> str:
        """Return the name of a node.

        Raises
        ------
        IndexError
            There is no such node.
        """
        for block in self.names:
            if block.first <= node_id < block.first + block.count:
                return block.name(int(node_id))
        msg = f"node {node_id} is not one of {self.n_nodes} nodes"
        raise IndexError(msg)

    def link_name(self, link_id: int) -> str:
        """Return ``sender -> receiver``, with the place among parallel cables when there are several."""
        src, dst = int(self.links.src[link_id]), int(self.links.dst[link_id])
        out = self.out_link[self.out_ptr[src] : self.out_ptr[src + 1]]
        parallel = out[self.links.dst[out] == dst]
        place = f" #{int(np.searchsorted(parallel, link_id)) + 1}" if len(parallel) > 1 else ""
        return f"{self.node_name(src)} -> {self.node_name(dst)}{place}"

    def count_tier(self, tier: str) -> int:
        """Return how many nodes a tier has, by its name in `TIER_NAMES`."""
        return int((self.nodes.tier == TIER_NAMES.index(tier)).sum())

    def count_cables(self, kind: str) -> int:
        """Return how many cables a kind has, by its name in `LINK_KINDS`."""
        return int((self.links.kind == LINK_KINDS.index(kind)).sum()) // 2
