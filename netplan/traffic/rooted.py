"""Broadcast from rank 0 and reduce to it: pipelined chains over all hosts, as NCCL's rings.

One chain for each NIC port and channel, host after host in rank order; inside a host it passes all
GPUs. Every edge carries its part of S once: ``S/B`` and the latency of all edges in turn. A reduce is
the same backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.rails import chains, port_table, ranks_of_host
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import RootedSpec
    from netplan.traffic.placement import Placement

_LEAVES_OUT = "filling of the pipeline: the time until the first chunk is at the last rank, beyond latency"


@pattern(
    "reduce",
    summary="sum of all ranks' buffers at rank 0, along pipelined chains",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda _: 1.0,
)
@pattern(
    "broadcast",
    summary="rank 0's buffer to all ranks, along pipelined chains",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda _: 1.0,
)
def build(
    fabric: Fabric,
    spec: RootedSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows."""
    ports = port_table(placement, spec.planes)
    if spec.kind == "reduce":
        ports = ports[::-1]
    n, k = len(placement), len(ports)
    src, dst, size, channel, ring = chains(ports, float(spec.size), spec.channels, closed=False)
    g = ranks_of_host(placement)
    scale_up = spec.size / fabric.scale_up_rate[placement.hosts].min() if g > 1 else 0.0
    phase = Phase(
        f"{spec.kind} {spec.algorithm}", lockstep=True, scale_up_s=float(scale_up), scale_up_hops=n - k
    )
    return [PhaseTraffic(phase, src, dst, size, channel=channel, ring=ring)]
