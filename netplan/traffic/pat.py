"""PAT: all-gather and reduce-scatter along binomial trees, one rooted at every rank, all in parallel.

All-gather of n ranks: in the step at distance d = 2^j, from the largest down, rank r sends to rank
r + d (modulo n) the parts that it has and r + d lacks: first one part far away, last about n/2 parts
to the neighbour. Any number of ranks; ceil(log2 n) steps and (n-1)/n S bytes a rank:
``ceil(log2 n) a + (n-1)/n S/B``. A reduce-scatter is the same backwards.

NCCL takes it by itself only with one GPU a host. Its aggregation is limited by the buffer, so that
large messages run several rounds: NCCL's model (protocol: auto) has a term linear in n for that.

Source: S. Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations at scale, arXiv
2506.20252; NVIDIA/nccl src/graph/tuning.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.rails import exchange
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement


@algorithm(
    "pat",
    "all-gather",
    "reduce-scatter",
    summary="binomial trees from all ranks at once: far with few bytes first, near with many last",
    leaves_out="rounds of large messages; pipelining of steps",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the steps."""
    n = len(placement)
    rank = np.arange(n)
    steps = []
    for distance, parts in pat_steps(n):
        size = parts * spec.size / n
        to = (rank + distance) % n
        src, dst = (rank, to) if spec.kind == "all-gather" else (to, rank)
        steps.append(exchange(fabric, placement, src, dst, size, f"PAT, distance {distance}"))
    return steps if spec.kind == "all-gather" else steps[::-1]


def pat_steps(n: int) -> list[tuple[int, int]]:
    """Return (distance, parts sent) of each step of an all-gather of n ranks.

    Examples
    --------
    >>> pat_steps(8)
    [(4, 1), (2, 2), (1, 4)]
    >>> pat_steps(6)
    [(4, 1), (2, 1), (1, 3)]
    """
    steps, held = [], np.zeros(1, np.int64)  # which ranks before it a rank has the parts of
    for j in reversed(range((n - 1).bit_length())):
        moved = held + 2**j
        moved = moved[moved < n]
        steps.append((2**j, len(moved)))
        held = np.concatenate([held, moved])
    return steps
