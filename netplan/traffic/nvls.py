"""NVLS and NVLS-tree: the switches of the scale-up domain reduce and multicast.

Inside a host each GPU sends its whole buffer into the scale-up domain once (the switches add the
parts up as they are read) and its g-th part of the result once (the switches copy it): S (1 + 1/g)
bytes out and as many in, instead of 2 (g-1)/g S. ``nvls`` is for ranks in one scale-up domain;
``nvls-tree`` joins several by NCCL's double binary trees (`netplan.traffic.tree`), pipelined with
it. An all-gather is the multicast alone, a reduce-scatter the reduction alone: S bytes.

Source: NVIDIA/nccl src/transport/nvls.cc, src/graph/tuning.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.rails import ranks_of_host
from netplan.traffic.registry import algorithm
from netplan.traffic.tree import tree_phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.placement import Placement


@algorithm(
    "nvls",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    summary="the switches of one scale-up domain reduce and multicast",
    leaves_out="what keeps GPUs from the full scale-up rate (protocol: auto has NCCL's efficiencies)",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the phase of a collective in one scale-up domain: no flows.

    Raises
    ------
    TrafficError
        Ranks on several hosts.
    """
    k = len(placement.hosts)
    if k > 1:
        raise TrafficError(
            f"algorithm nvls stays in one scale-up domain, and the ranks are on {k:,} hosts",
            hint="nvls-tree or in-network" if spec.kind == "all-reduce" else "ring or hierarchical",
        )
    g = len(placement)
    factor = 1 + 1 / g if spec.kind == "all-reduce" else 1.0
    none = np.zeros(0, np.int64)
    phase = Phase(
        f"{spec.kind} nvls",
        lockstep=True,
        scale_up_s=_time(fabric, placement, factor * spec.size),
        scale_up_hops=2 if spec.kind == "all-reduce" else 1,
    )
    return [PhaseTraffic(phase, none, none, np.zeros(0))]


@algorithm(
    "nvls-tree",
    "all-reduce",
    summary="NVLS inside scale-up domains, double binary trees between them",
    leaves_out="filling and draining of the pipeline",
)
def build_tree(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of an all-reduce.

    Raises
    ------
    TrafficError
        Ranks on one host: there is no tree.
    """
    if len(placement.hosts) == 1:
        raise TrafficError(
            "algorithm nvls-tree joins scale-up domains, and the ranks are on one host", hint="nvls"
        )
    g = ranks_of_host(placement)
    scale_up = _time(fabric, placement, (1 + 1 / g) * spec.size if g > 1 else 0.0)
    return [tree_phase(spec, placement, "all-reduce nvls-tree", scale_up, 2)]


def _time(fabric: Fabric, placement: Placement, size: float) -> float:
    """Return the time of some bytes of each GPU in the slowest scale-up domain [s]."""
    return float(size / fabric.scale_up_rate[placement.hosts].min())
