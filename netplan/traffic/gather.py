"""Gather at rank 0 and scatter from it: one message of S/n for each other rank, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.rails import exchange
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import GatherSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement

_LEAVES_OUT = "NCCL's rounds; what PXN takes from the scale-up domain"


@pattern(
    "scatter",
    summary="rank 0 sends every rank its part, all at once",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
@pattern(
    "gather",
    summary="every rank sends its part to rank 0, all at once",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
def build(
    fabric: Fabric,
    spec: GatherSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows."""
    others = np.arange(1, len(placement))
    root = np.zeros_like(others)
    src, dst = (others, root) if spec.kind == "gather" else (root, others)
    return [exchange(fabric, placement, src, dst, spec.size / len(placement), f"{spec.kind} direct")]
