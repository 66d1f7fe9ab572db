"""Every rank sends to the next one and receives from the one before, as nccl-tests' sendrecv.

One stage of a pipeline for all ranks at once: ``a + S/B``. Ranks of one host use the scale-up
domain; the last of each host sends to the first of the next over the rail of the receiver's NIC (PXN), split
into ``channels`` flows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.rails import exchange
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import SendRecvSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement


@pattern(
    "send-recv",
    summary="every rank sends to the next one, all at once",
    leaves_out="what PXN takes from the scale-up domain",
    busbw_factor=lambda _: 1.0,
)
def build(
    fabric: Fabric,
    spec: SendRecvSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows."""
    rank = np.arange(len(placement))
    part = exchange(fabric, placement, rank, np.roll(rank, -1), float(spec.size), "send-recv")
    c = spec.channels
    return [
        replace(
            part,
            src=np.repeat(part.src, c),
            dst=np.repeat(part.dst, c),
            size=np.repeat(part.size / c, c),
            channel=np.tile(np.arange(c), len(part.src)),
        )
    ]
