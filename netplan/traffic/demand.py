"""The table of flows that a fabric is offered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.fabric.columns import freeze_arrays
from netplan.traffic.placement import place_ranks
from netplan.traffic.planes import over_planes
from netplan.traffic.registry import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead
    from netplan.traffic.placement import Placement

#: Tells the demand's random draws apart from other uses of the user's seed.
_DEMAND_SEED = 0xDE3A


@dataclass(frozen=True)
class Software:
    """What the collective library adds to the network's time (`netplan.traffic.nccl`)."""

    latency_s: float
    """Fixed time, of networks as they were when its constants were measured [s]."""
    busy_s: float
    """Least time for the bytes, whatever the network does [s]."""
    nic_fraction: float
    """Part of a NIC's line rate that the library gets out of it, headers included."""


@dataclass(frozen=True, eq=False)
class LinkTrees:
    """Flows that cross given links, all of them: aggregation trees in the switches."""

    ptr: NDArray[np.int64]
    """(n_flows + 1,) CSR row pointer of `link`."""
    link: NDArray[np.int64]
    """Links of each tree, up and down, each once."""
    way_ptr: NDArray[np.int64]
    """(n_flows + 1,) CSR row pointer of `way`."""
    way: NDArray[np.int64]
    """Links that a piece of data crosses in turn: from the farthest host to the root and back."""


@dataclass(frozen=True)
class Phase:
    """What a phase has beside its flows."""

    name: str
    lockstep: bool = False
    """All flows of the phase move on together, so the slowest decides for all (pipelined rings)."""
    scale_up_s: float = 0.0
    """Time that the busiest GPU's traffic takes in the scale-up domain, beside the network's [s]."""
    passes: float = 1.0
    """How often data travels each ring's edges in turn: 2(n-1)/n for a ring all-reduce."""
    scale_up_hops: int = 0
    """Edges of a ring inside hosts: each adds a scale-up latency to every pass."""
    hops: int = 0
    """Edges that a piece of data crosses in turn, the slowest of its ring's; 0: each of them (a ring)."""
    software: Software | None = None
    """What the library adds; None: the bare network and its latencies."""
    trees: LinkTrees | None = field(default=None, compare=False)
    """Links of each flow, where no routing chooses them."""


@dataclass(frozen=True, eq=False)
class PhaseTraffic:
    """The flows of one phase, as a pattern makes them."""

    phase: Phase
    src: NDArray[np.int64]
    """(n,) endpoint that sends."""
    dst: NDArray[np.int64]
    """(n,) endpoint that receives, on another host."""
    size: NDArray[np.float64]
    """(n,) bytes."""
    start: NDArray[np.float64] | float = 0.0
    """(n,) when each flow begins, counted from the phase's begin [s]."""
    channel: NDArray[np.int64] | int = 0
    """(n,) tells parallel flows between one pair of endpoints apart."""
    ring: NDArray[np.int64] | int = -1
    """(n,) ring that the flow is an edge of; -1 for none."""


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """Flows between NIC ports, phase by phase; a phase begins when the one before has ended."""

    name: str
    kind: str
    n_ranks: int
    size_bytes: int
    """Size of the operation as nccl-tests counts it; the sum of all flows where it is no collective."""
    busbw_factor: float | None
    """Bus over algorithm bandwidth; None when it is no collective."""
    qps: int
    work_conserving: bool
    phases: tuple[Phase, ...]
    phase: NDArray[np.int32]
    """(n_flows,) phase of each flow, ascending."""
    src: NDArray[np.int32]
    """(n_flows,) endpoint that sends."""
    dst: NDArray[np.int32]
    """(n_flows,) endpoint that receives, on another host."""
    size: NDArray[np.float64]
    """(n_flows,) bytes."""
    start: NDArray[np.float64]
    """(n_flows,) when the flow begins, counted from its phase's begin [s]."""
    channel: NDArray[np.int32]
    """(n_flows,) tells parallel flows between one pair of endpoints apart."""
    ring: NDArray[np.int32]
    """(n_flows,) ring that the flow is an edge of; -1 for none."""
    window_bytes: int | None = None
    """Bytes that a channel of a flow may have outstanding; None for no limit."""
    spec: Mapping[str, Any] | None = None
    """The validated spec that it was built from, as plain data."""
    on_dead: OnDead = "shrink"
    """What happened to hosts that lost NIC ports (`netplan.traffic.damaged`)."""
    algorithm: str | None = None
    """Schedule of the collective, as it was asked for or chosen; None when it has none."""
    protocol: str | None = None
    """NCCL's protocol, as it was asked for or chosen; ``none``: the bare network."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __repr__(self) -> str:
        """Say in one line what it is."""
        return (
            f"<Demand {self.name!r} {self.kind}: {self.n_ranks:,} ranks, {len(self.src):,} flows x "
            f"{self.qps} QPs in {len(self.phases)} phase(s)>"
        )

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.src)


def build_demand(fabric: Fabric, spec: TrafficSpec, *, seed: int = 0, on_dead: OnDead = "shrink") -> Demand:
    """Lay a workload on a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    spec
        Any traffic spec.
    seed
        Seed of random placements and patterns.
    on_dead
        What happens to hosts of a damaged fabric that lost NIC ports.

    Returns
    -------
    Demand
        The flows between hosts; traffic inside hosts is in the phases.

    Raises
    ------
    TrafficError
        The workload does not fit the fabric.
    """
    found = PATTERNS.find(spec.kind)
    rng = np.random.default_rng([_DEMAND_SEED, seed])
    placement = place_ranks(fabric, spec.placement, spec.ranks, rng, on_dead)
    asked = spec
    spec, software, wire = resolve_software(fabric, spec, placement)
    parts = [over_planes(fabric, part, spec.planes) for part in found.build(fabric, spec, placement, rng)]
    if software is not None:
        parts = [_with_software(part, software, wire, first=not place) for place, part in enumerate(parts)]
    counts = [len(part.src) for part in parts]

    def column(name: str) -> NDArray[Any]:
        blocks = [np.broadcast_to(getattr(part, name), (n,)) for part, n in zip(parts, counts, strict=True)]
        return np.concatenate(blocks)

    size = column("size").astype(np.float64)
    n_ranks = _ranks_taking_part(spec, placement)
    factor = found.busbw_factor(n_ranks) if found.busbw_factor else None
    return Demand(
        name=spec.name,
        kind=spec.kind,
        n_ranks=n_ranks,
        size_bytes=round(float(size.sum())) if spec.kind == "flows" or factor is None else spec.size,
        busbw_factor=factor,
        qps=_qps_in_use(spec, size),
        work_conserving=spec.work_conserving,
        phases=tuple(part.phase for part in parts),
        phase=np.repeat(np.arange(len(parts), dtype=np.int32), counts),
        src=column("src").astype(np.int32),
        dst=column("dst").astype(np.int32),
        size=size,
        start=column("start").astype(np.float64),
        channel=column("channel").astype(np.int32),
        ring=column("ring").astype(np.int32),
        window_bytes=spec.window,
        spec=asked.model_dump(mode="json"),
        on_dead=on_dead,
        algorithm=getattr(spec, "algorithm", None),
        protocol=getattr(spec, "protocol", None),
    )


def resolve_software(
    fabric: Fabric, spec: TrafficSpec, placement: Placement
) -> tuple[TrafficSpec, Software | None, float]:
    """Let NCCL's model choose what a spec leaves to it.

    Parameters
    ----------
    fabric, spec, placement
        What runs where.

    Returns
    -------
    spec
        The same with a concrete algorithm and protocol.
    software
        What NCCL adds to the network's time; None when the bare network is asked for.
    wire
        Payload of each byte that the protocol sends, 0 to 1.

    Raises
    ------
    TrafficError
        NCCL cannot run what is asked for.
    """
    protocol = getattr(spec, "protocol", "none")
    if protocol == "none" and getattr(spec, "algorithm", "") != "auto":
        return spec, None, 1.0
    from netplan.traffic.nccl import choose

    choice = choose(fabric, spec, placement)
    spec = spec.model_copy(update={"algorithm": choice.algorithm, "protocol": choice.protocol})
    return spec, choice.software, choice.wire


def _with_software(part: PhaseTraffic, software: Software, wire: float, *, first: bool) -> PhaseTraffic:
    """Return a phase with the bytes that the protocol sends, and the library's time (latency: once)."""
    phase = with_software(replace(part.phase, scale_up_s=part.phase.scale_up_s / wire), software, first=first)
    return replace(part, phase=phase, size=np.asarray(part.size, np.float64) / wire)


def with_software(phase: Phase, software: Software, *, first: bool) -> Phase:
    """Return a phase with what the library adds; latency and its own time count once, in the first."""
    return replace(phase, software=software if first else replace(software, latency_s=0.0, busy_s=0.0))


#: Chunk of NCCL's Simple protocol: an eighth of the 4 MiB buffer [bytes].
_CHUNK = 512 * 1024


def _qps_in_use(spec: TrafficSpec, size: NDArray[np.float64]) -> int:
    """Return how many QPs of a connection carry data: whole chunks in turn may be fewer than QPs."""
    if getattr(spec, "split_data_on_qps", True) or not len(size):
        return spec.qps
    return int(min(spec.qps, max(np.ceil(size.max() / _CHUNK), 1)))


def _ranks_taking_part(spec: TrafficSpec, placement: Placement) -> int:
    """Return how many ranks send or receive."""
    if spec.kind == "incast":
        return spec.senders + 1
    if spec.kind == "point-to-point":
        return 2
    if spec.kind == "flows":
        return len({rank for flow in spec.flows for rank in (flow.src, flow.dst)})
    return len(placement)
