"""Flows of every group of an axis, laid as communicators and moved to their hosts.

Every group is a communicator of its own: its ranks in order, hosts in the order of their first rank. It
gets the flows that a communicator of that size gets from `netplan.traffic`. Groups that look alike (as many
ranks of the same GPUs on each of as many hosts) are laid once and moved to each other's hosts, which is equal
to laying each of them; only aggregation trees in switches are laid one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.line_rate import DEFAULT_MTU
from netplan.simulate.scenario import MAX_MIN
from netplan.traffic.demand import (
    Demand,
    LinkTrees,
    PhaseTraffic,
    Software,
    resolve_software,
)
from netplan.traffic.placement import Placement
from netplan.traffic.planes import over_planes
from netplan.traffic.registry import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric

__all__ = [
    "Experts",
    "Laid",
    "NetworkOptions",
    "at_fixed_rates",
    "is_even",
    "lay_groups",
    "make_demand",
    "on_rail",
    "ports_of_ranks",
]

#: Flows of one phase that are run by events where they are not equal; more are taken to move at fixed rates.
_MOST_BY_EVENTS = 50_000

#: Flows of unequal bytes within this are equal.
EQUAL = 1e-9


@dataclass(frozen=True)
class Experts:
    """How tokens go to experts, where they do not go to all ranks alike (DeepSeek-V3, section 2.1.2)."""

    top_k: int
    """Experts of a token."""
    most_hosts: int
    """Hosts that a token may go to: it is sent once to each, and on to its experts by the scale-up domain."""


@dataclass(frozen=True)
class NetworkOptions:
    """How communicators are laid and run."""

    routing: str = "ecmp"
    """Name of a routing scheme."""
    cc: str = MAX_MIN
    """``max-min``, or a protocol of `netplan.congestion.cc`."""
    seed: int = 0
    """Seed of hashes and random tables."""
    algorithm: str = "ring"
    """Algorithm of all-reduce, as traffic specs name them; ``auto``: NCCL's choice, for all collectives."""
    protocol: str = "none"
    """NCCL's protocol, whose times are counted; ``none``: the bare network (``auto`` with algorithm auto)."""
    channels: int = 2
    """NCCL channels of each NIC."""
    qps: int = 1
    """Queue pairs of each connection."""
    mtu: int = DEFAULT_MTU
    """Payload of a full packet [bytes]."""
    window: int | None = 4 * 2**20
    """Bytes that one channel of a ring may have outstanding."""
    p2p_window: int | None = 2**20
    """The same of point-to-point and all-to-all flows."""
    pxn: bool = True
    """Data changes rails inside hosts, not in the network."""
    p2p_channels: int | None = None
    """Channels of a NIC for each message of send-recv; None: as NCCL, 2 or more of 14 GB/s each."""
    experts: Experts | None = None
    """Node-limited routing of tokens; None: every rank gets an equal part of all-to-all."""


@dataclass(frozen=True, eq=False)
class Laid:
    """Flows of all groups of an axis."""

    phases: tuple[PhaseTraffic, ...]
    """One after another; all groups begin a phase together."""
    bytes: float
    """Size for which they were laid."""
    window: int | None
    """Bytes that a channel may have outstanding."""

    @property
    def flows(self) -> int:
        """Flows between hosts."""
        return sum(len(part.src) for part in self.phases)


def make_demand(laid: Laid, kind: str, n_ranks: int, qps: int) -> Demand:
    """Return laid flows as a demand that `netplan.simulate` runs."""
    counts = [len(part.src) for part in laid.phases]

    def column(name: str, dtype: type) -> NDArray[Any]:
        blocks = [
            np.broadcast_to(getattr(part, name), (n,)) for part, n in zip(laid.phases, counts, strict=True)
        ]
        return np.concatenate(blocks).astype(dtype)

    return Demand(
        name="groups",
        kind=kind,
        n_ranks=n_ranks,
        size_bytes=round(laid.bytes),
        busbw_factor=None,
        qps=qps,
        work_conserving=False,
        phases=tuple(part.phase for part in laid.phases),
        phase=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        src=column("src", np.int32),
        dst=column("dst", np.int32),
        size=column("size", np.float64),
        start=column("start", np.float64),
        channel=column("channel", np.int32),
        ring=column("ring", np.int32),
        window_bytes=laid.window,
    )


# ---- groups that look alike --------------------------------------------------------------------


def lay_groups(placement: Placement, groups: NDArray[np.int64], spec: Any) -> list[PhaseTraffic]:  # noqa: ANN401
    """Lay a communicator for every group; those that look alike once, moved to each other's hosts."""
    fabric = placement.fabric
    host, gpu = _by_host(placement, groups)
    first = np.ones(host.shape, bool)
    first[:, 1:] = host[:, 1:] != host[:, :-1]
    segment = np.cumsum(first, axis=1) - 1
    kinds = _host_kinds(fabric)
    rows = np.concatenate([segment, gpu, kinds[host]], axis=1)
    alike: dict[bytes, list[int]] = {}
    for number, row in enumerate(rows):
        alike.setdefault(row.tobytes(), []).append(number)
    laid: list[list[PhaseTraffic]] = []
    rings = 0
    looks = list(alike.values())
    while looks:
        members = looks.pop()
        example = members[0]
        parts = _lay_one(Placement(fabric, host[example].copy(), gpu[example].copy()), spec)
        if len(members) > 1 and any(part.phase.trees is not None for part in parts):
            looks.append(members[1:])  # trees of switches are not those of other hosts: one by one
            members = members[:1]
        hosts = host[members][:, first[example]]
        laid.append([_moved(fabric, part, hosts, rings) for part in parts])
        rings += len(members) * (1 + max(int(np.asarray(part.ring).max(initial=-1)) for part in parts))
    n_phases = max(len(parts) for parts in laid)
    return [_joined([parts[k] for parts in laid if k < len(parts)]) for k in range(n_phases)]


def _lay_one(placement: Placement, spec: Any) -> list[PhaseTraffic]:  # noqa: ANN401
    """Lay one communicator, with what the collective library adds to it."""
    fabric = placement.fabric
    spec, software, wire = resolve_software(fabric, spec, placement)
    built = PATTERNS.find(spec.kind).build(fabric, spec, placement, np.random.default_rng(0))
    parts = [over_planes(fabric, part, spec.planes) for part in built]
    if software is None:
        return parts
    found = []
    for number, part in enumerate(parts):
        own = software if number == 0 else replace(software, latency_s=0.0, busy_s=0.0)
        phase = replace(part.phase, software=own, scale_up_s=part.phase.scale_up_s / wire)
        found.append(replace(part, phase=phase, size=np.asarray(part.size, np.float64) / wire))
    return found


def _by_host(placement: Placement, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return hosts and GPUs of each group's ranks, those of a host together, hosts as they come first."""
    host, gpu = placement.host[groups], placement.local_gpu[groups]
    n, size = groups.shape
    key = host + np.arange(n)[:, None] * placement.fabric.n_hosts
    _, first, which = np.unique(key.ravel(), return_index=True, return_inverse=True)
    order = np.lexsort((np.tile(np.arange(size), n), first[which.ravel()], np.repeat(np.arange(n), size)))
    order = order.reshape(n, size)
    return host.ravel()[order], gpu.ravel()[order]


def _host_kinds(fabric: Fabric) -> NDArray[np.int64]:
    """Return a number for each host: equal ones have equal GPUs, NICs and scale-up domains.

    Hosts of a damaged fabric that lost NIC ports are each of a kind of their own.
    """
    ports = np.diff(fabric.endpoint_ptr)
    table = np.column_stack([ports, fabric.gpus_per_host, fabric.scale_up_rate])
    _, kind = np.unique(table, axis=0, return_inverse=True)
    kind = np.asarray(kind.ravel(), np.int64)
    if fabric.damage is not None:
        before = np.bincount(fabric.host_index[fabric.damage.before.host], minlength=fabric.n_hosts)
        hurt = np.flatnonzero(before != ports)
        kind[hurt] = kind.max() + 1 + np.arange(len(hurt))
    return kind


def _moved(fabric: Fabric, part: PhaseTraffic, hosts: NDArray[np.int64], rings: int) -> PhaseTraffic:
    """Move the flows of a group to the hosts of all groups that look like it.

    Parameters
    ----------
    fabric
        The fabric.
    part
        Flows of the first group.
    hosts : (n_groups, n_hosts) int64
        Hosts of each group, those of the first in its first row.
    rings
        Number of the first ring.
    """
    n = len(hosts)
    index = np.full(fabric.n_hosts, -1, np.int64)
    index[hosts[0]] = np.arange(hosts.shape[1])

    def move(ends: NDArray[np.integer]) -> NDArray[np.int64]:
        at = fabric.host_index[fabric.endpoints.host[ends]]
        offset = ends - fabric.endpoint_ptr[at]
        return np.asarray(fabric.endpoint_ptr[hosts[:, index[at]]] + offset, np.int64).ravel()

    count = len(part.src)
    ring = np.broadcast_to(np.asarray(part.ring, np.int64), (count,))
    own = int(ring.max(initial=-1)) + 1
    numbered = np.where(ring >= 0, ring + rings + own * np.arange(n)[:, None], -1).ravel()

    def repeat(values: object) -> NDArray[Any]:
        return np.tile(np.broadcast_to(np.asarray(values), (count,)), n)

    return PhaseTraffic(
        part.phase,
        move(part.src),
        move(part.dst),
        repeat(part.size).astype(np.float64),
        start=repeat(part.start),
        channel=repeat(part.channel),
        ring=numbered,
    )


def _joined(parts: list[PhaseTraffic]) -> PhaseTraffic:
    """Put the same phase of different groups together; what is not in flows is that of the slowest group."""
    with_flows = [part for part in parts if len(part.src)] or parts
    phases = [part.phase for part in parts]
    phase = replace(
        with_flows[0].phase,
        lockstep=all(part.phase.lockstep for part in with_flows),
        scale_up_s=max(phase.scale_up_s for phase in phases),
        passes=max(phase.passes for phase in phases),
        scale_up_hops=max(phase.scale_up_hops for phase in phases),
        hops=max(phase.hops for phase in phases),
        software=_slowest_software([phase.software for phase in phases]),
        trees=_joined_trees([part.phase.trees for part in with_flows]),
    )
    if len(parts) == 1:
        return replace(parts[0], phase=phase)
    counts = [len(part.src) for part in parts]

    def column(name: str) -> NDArray[Any]:
        return np.concatenate(
            [np.broadcast_to(getattr(part, name), (n,)) for part, n in zip(parts, counts, strict=True)]
        )

    return PhaseTraffic(
        phase,
        column("src"),
        column("dst"),
        column("size"),
        start=column("start"),
        channel=column("channel"),
        ring=column("ring"),
    )


def _slowest_software(each: Sequence[Software | None]) -> Software | None:
    """Return what the library adds to the slowest group."""
    known = [software for software in each if software is not None]
    if not known:
        return None
    return Software(
        latency_s=max(software.latency_s for software in known),
        busy_s=max(software.busy_s for software in known),
        nic_fraction=min(software.nic_fraction for software in known),
    )


def _joined_trees(each: Sequence[LinkTrees | None]) -> LinkTrees | None:
    """Put the trees of different groups one after another."""
    known = [trees for trees in each if trees is not None]
    if len(known) < 2:  # noqa: PLR2004 -- nothing to join
        return known[0] if known else None
    lengths = [np.concatenate([np.diff(trees.ptr) for trees in known])]
    lengths.append(np.concatenate([np.diff(trees.way_ptr) for trees in known]))
    ptr, way_ptr = (np.concatenate([[0], np.cumsum(length)]).astype(np.int64) for length in lengths)
    link = np.concatenate([trees.link for trees in known])
    return LinkTrees(ptr, link, way_ptr, np.concatenate([trees.way for trees in known]))


def at_fixed_rates(part: PhaseTraffic) -> PhaseTraffic:
    """Run flows of equal bytes that begin together at fixed rates, as rings of one edge.

    That is exact: with equal bytes the flows of the link with the most of them end last, and their rate does
    not rise before they end; no flow is ever slower.
    """
    n = len(part.src)
    if part.phase.lockstep or n == 0 or np.ptp(np.broadcast_to(part.start, (n,))) > 0:
        return part
    size = np.broadcast_to(part.size, (n,))
    if n <= _MOST_BY_EVENTS and np.ptp(size) > EQUAL * size.max():
        return part
    return replace(part, phase=replace(part.phase, lockstep=True, passes=1.0), ring=np.arange(n))


def is_even(part: PhaseTraffic) -> bool:
    """Tell whether all flows of a phase carry the same bytes at fixed rates.

    Then the slowest flow is one of the link with the most bytes for its capacity, and the phase takes as long
    as that link: rates need not be solved.
    """
    n, phase = len(part.src), part.phase
    if phase.software is not None or phase.trees is not None or phase.hops:
        return False
    size = np.broadcast_to(part.size, (n,))
    return phase.lockstep and (n == 0 or bool(np.ptp(size) <= EQUAL * size.max()))


def ports_of_ranks(placement: Placement) -> NDArray[np.int64]:
    """Return (n_ranks, most) the ports that serve each rank, padded with -1."""
    fabric = placement.fabric
    first = placement.endpoint
    nics = np.diff(fabric.endpoint_ptr)[placement.host] // fabric.gpus_per_host[placement.host]
    start = fabric.nic_ptr[fabric.endpoint_nic[first]]
    if fabric.damage is None:
        last = np.maximum(first + nics - 1, first)
        end = fabric.nic_ptr[fabric.endpoint_nic[last] + 1]
    else:
        end = fabric.nic_ptr[fabric.endpoint_nic[first] + 1]
    most = int((end - start).max())
    ports = start[:, None] + np.arange(most)
    return np.where(ports < end[:, None], ports, -1)


def on_rail(
    fabric: Fabric, src: NDArray[np.int64], dst: NDArray[np.int64], used: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the sending ports, moved to those of the same host on the receivers' rails and planes (PXN)."""
    ends = fabric.endpoints
    rails, planes = int(ends.rail.max()) + 1, int(ends.plane.max()) + 2
    table = np.full(fabric.n_hosts * rails * planes, -1, np.int64)
    host = fabric.host_index[ends.host]
    table[(host * rails + ends.rail) * planes + ends.plane + 1] = np.arange(fabric.n_endpoints)
    moved = table[(fabric.host_index[ends.host[src]] * rails + ends.rail[dst]) * planes + ends.plane[dst] + 1]
    return np.where(used & (moved >= 0), moved, src)
