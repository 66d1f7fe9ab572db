"""Recursive doubling: all-reduce in log2 n steps of the whole buffer, all-gather in log2 n growing steps.

All-reduce: ``log2(n) (a + S/B)``, the fewest steps and the most bytes: for small messages. Where n is
no power of two, ranks fold first (`netplan.traffic.halving_doubling`). All-gather: the step at
distance d carries the d parts that a rank has, ``d S/n``; ``log2(n) a + (n-1)/n S/B``; a power of
two of ranks only.

Source: Thakur, Rabenseifner, Gropp (IJHPCA 2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.halving_doubling import fold, refuse_uneven
from netplan.traffic.rails import exchange
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement


@algorithm(
    "recursive-doubling",
    "all-reduce",
    "all-gather",
    summary="log2 n exchanges with ranks at doubling distances",
    leaves_out="ranks that run ahead: every step waits for the slowest message of the step before",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the steps.

    Raises
    ------
    TrafficError
        An all-gather of ranks that are no power of two.
    """
    n = len(placement)
    if spec.kind == "all-gather":
        refuse_uneven(n, spec)
    # A power of two does not fold.
    rank, before, after = fold(fabric, spec, placement, "recursive doubling")
    steps = []
    for i in range(len(rank).bit_length() - 1):
        size = spec.size if spec.kind == "all-reduce" else 2**i * spec.size / n
        partner = rank[np.arange(len(rank)) ^ 2**i]
        steps.append(exchange(fabric, placement, rank, partner, float(size), f"doubling, distance {2**i}"))
    return [*before, *steps, *after]
