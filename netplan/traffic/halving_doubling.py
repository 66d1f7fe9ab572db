"""Recursive halving-doubling all-reduce (Rabenseifner), and its halves.

Reduce-scatter by recursive halving: in log2 n steps ranks exchange half, a quarter, ... of the
buffer with the rank whose number differs in one bit; then all-gather by recursive doubling, the same
backwards. Distances double while bytes halve, as in MPICH: the largest step stays inside the host.
``2 log2(n) a + 2 (n-1)/n S/B``.

Where n is no power of two, the 2 r first ranks (r = n - 2^floor(log2 n)) meet in pairs before, the
even one hands its buffer to the odd one, and gets the result after (MPICH does so): two more steps
of S. A reduce-scatter is the first half alone; it has no such step, and is refused.

Source: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in
MPICH, IJHPCA 19 (2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.rails import exchange
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement

_LEAVES_OUT = "ranks that run ahead: every step waits for the slowest message of the step before"


@algorithm(
    "halving-doubling",
    "all-reduce",
    summary="recursive halving, then recursive doubling: 2 log2 n steps, ring's bytes",
    leaves_out=_LEAVES_OUT,
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the steps of an all-reduce."""
    rank, before, after = fold(fabric, spec, placement, "halving-doubling")
    halving = [
        _step(fabric, placement, rank, 2**i, spec.size / 2 ** (i + 1), f"halving, distance {2**i}")
        for i in range(len(rank).bit_length() - 1)
    ]
    doubling = [
        _step(fabric, placement, rank, 2**i, spec.size / 2 ** (i + 1), f"doubling, distance {2**i}")
        for i in reversed(range(len(rank).bit_length() - 1))
    ]
    return [*before, *halving, *doubling, *after]


@algorithm(
    "recursive-halving",
    "reduce-scatter",
    summary="recursive halving: log2 n steps, ring's bytes",
    leaves_out=_LEAVES_OUT,
)
def build_half(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the steps of a reduce-scatter.

    Raises
    ------
    TrafficError
        A number of ranks that is no power of two.
    """
    n = len(placement)
    refuse_uneven(n, spec)
    return [
        _step(fabric, placement, np.arange(n), 2**i, spec.size / 2 ** (i + 1), f"halving, distance {2**i}")
        for i in range(n.bit_length() - 1)
    ]


def refuse_uneven(n: int, spec: CollectiveSpec) -> None:
    """Refuse ranks that are no power of two.

    Raises
    ------
    TrafficError
        They are none.
    """
    if n & (n - 1):
        low = 1 << (n.bit_length() - 1)
        raise TrafficError(
            f"{spec.kind} {spec.algorithm} of {n:,} ranks: it wants a power of two",
            hint=f"{low:,} or {2 * low:,} ranks; ring and pat take any number",
        )


def fold(
    fabric: Fabric, spec: CollectiveSpec, placement: Placement, name: str
) -> tuple[np.ndarray, list[PhaseTraffic], list[PhaseTraffic]]:
    """Return a power of two of ranks that go on, and the steps before and after for the others."""
    n = len(placement)
    low = 1 << (n.bit_length() - 1)
    rest = n - low
    if not rest:
        return np.arange(n), [], []
    even, odd = np.arange(0, 2 * rest, 2), np.arange(1, 2 * rest, 2)
    before = exchange(fabric, placement, even, odd, float(spec.size), f"{name}, fold")
    after = exchange(fabric, placement, odd, even, float(spec.size), f"{name}, unfold")
    return np.concatenate([odd, np.arange(2 * rest, n)]), [before], [after]


def _step(
    fabric: Fabric, placement: Placement, rank: np.ndarray, distance: int, size: float, name: str
) -> PhaseTraffic:
    """Return a step in which ranks exchange with the one at a distance."""
    partner = rank[np.arange(len(rank)) ^ distance]
    return exchange(fabric, placement, rank, partner, size, name)
