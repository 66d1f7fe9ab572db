"""The table of flows that a fabric is offered."""

from __future__ import annotations

from dataclasses import dataclass
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
    parts = [over_planes(fabric, part, spec.planes) for part in found.build(fabric, spec, placement, rng)]
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
        qps=spec.qps,
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
        spec=spec.model_dump(mode="json"),
        on_dead=on_dead,
    )


def _ranks_taking_part(spec: TrafficSpec, placement: Placement) -> int:
    """Return how many ranks send or receive."""
    if spec.kind == "incast":
        return spec.senders + 1
    if spec.kind == "point-to-point":
        return 2
    if spec.kind == "flows":
        return len({rank for flow in spec.flows for rank in (flow.src, flow.dst)})
    return len(placement)
