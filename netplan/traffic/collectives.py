"""All-reduce, reduce-scatter and all-gather: each hands over to the algorithm of its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.errors import TrafficError
from netplan.traffic.registry import ALGORITHMS, pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement

_LEAVES_OUT = "what its algorithm leaves out (netplan explain ALGORITHM)"


@pattern(
    "reduce-scatter",
    summary="reduce-scatter by ring, PAT, recursive halving, hierarchy, or NCCL's choice",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
@pattern(
    "all-gather",
    summary="all-gather by ring, PAT, recursive doubling, hierarchy, or NCCL's choice",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
@pattern(
    "all-reduce",
    summary="all-reduce by ring, tree, recursive steps, hierarchy, in switches, or NCCL's choice",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: 2 * (n - 1) / n,
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of a collective by its algorithm.

    Raises
    ------
    TrafficError
        The algorithm cannot run with these ranks.
    """
    if spec.algorithm == "auto":
        from netplan.traffic.nccl import choose

        spec = spec.model_copy(update={"algorithm": choose(fabric, spec, placement).algorithm})
    found = ALGORITHMS.find(spec.algorithm)
    if spec.kind not in found.kinds:
        raise TrafficError(
            f"algorithm {spec.algorithm} is of {', '.join(found.kinds)}, not of {spec.kind}", hint="ring"
        )
    return found.build(fabric, spec, placement, rng)
