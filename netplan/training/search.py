"""Search for the best of many layouts by branch and bound.

Every candidate has lower bounds of its step time, each dearer to find and nearer to the truth than the one
before; the last one is the step time itself:

1. compute alone: communication takes no time;
2. communication at line rate: NIC ports and scale-up domains are the only limits, no link is contended
   (`FabricNetwork.bound`);
3. the step time, with all groups on the fabric.

Candidates wait in order of the best bound that is known of them. The first is taken out; if its bound is not
yet its step time, the next one is found and it goes back. The first candidate to come out with its step time
is the best: the bounds of all others are already above it. So the answer is that of trying everything, as
long as no bound is above the step time, which holds when a step takes no less time with slower communication.

A limit on runs of the third kind ends the search early; then the best so far is returned, with the bound
below which no candidate is left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from netplan.errors import TrafficError

__all__ = ["Found", "branch_and_bound"]

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Found(Generic[T]):
    """What a search found."""

    ranking: tuple[tuple[T, float], ...]
    """Candidates with their step times [s] as far as they were found, best first."""
    candidates: int
    """How many there were."""
    evaluated: tuple[int, ...]
    """How many times each bound was found, the step time last."""
    bound_s: float
    """No candidate is faster than this [s]; the best's step time when the search ended by itself."""

    @property
    def best(self) -> T:
        """The best candidate."""
        return self.ranking[0][0]

    @property
    def best_s(self) -> float:
        """Its step time [s]."""
        return self.ranking[0][1]

    @property
    def is_proven(self) -> bool:
        """Whether no other candidate can be better."""
        return self.bound_s >= self.best_s


def branch_and_bound(
    candidates: Iterable[T],
    stages: Sequence[Callable[[T], float]],
    *,
    keep: int = 1,
    most: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Found[T]:
    """Return the candidates with the least value of the last stage.

    Parameters
    ----------
    candidates
        What there is to choose from, without repetition.
    stages
        Lower bounds of a candidate's value, cheapest first; the last is its value. ``inf`` for what cannot
        be.
    keep
        How many of the best are wanted, in order.
    most
        Most evaluations of the last stage; None for as many as needed.
    progress
        Called with (what, done, all); a candidate that is cut off counts as done at the end.

    Returns
    -------
    Found
        Ties are decided by the order of the candidates.

    Raises
    ------
    TrafficError
        There is no candidate, or none that can be.
    """
    report = progress or (lambda _what, _done, _all: None)
    pool = list(candidates)
    counts = [len(pool)] + [0] * (len(stages) - 1)
    heap: list[tuple[float, int, int]] = []  # bound, candidate, stage
    for number, candidate in enumerate(pool):
        value = stages[0](candidate)
        report("bounds", number + 1, len(pool))
        if math.isfinite(value):
            heap.append((value, number, 0))
    heapq.heapify(heap)
    last = len(stages) - 1
    values: dict[int, float] = {}  # of the candidates that went through all stages
    closed = 0  # candidates that came out with their value: the best ones, in order
    bound = math.inf
    while heap and closed < keep:
        value, number, stage = heapq.heappop(heap)
        if stage == last:
            closed += 1
            bound = min(bound, value)
            continue
        if stage + 1 == last and most is not None and counts[last] >= most:
            bound = min(bound, value)
            break
        value = max(stages[stage + 1](pool[number]), value)
        counts[stage + 1] += 1
        if stage + 1 == last:
            values[number] = value
            report("layouts on the fabric", counts[last], counts[last] + len(heap))
        if math.isfinite(value):
            heapq.heappush(heap, (value, number, stage + 1))
    ranked = sorted((value, number) for number, value in values.items() if math.isfinite(value))
    if not ranked:
        raise TrafficError(
            f"none of {len(pool):,} layouts is feasible" if pool else "there is no layout to choose from",
            hint="more GPUs, a smaller micro-batch, full recomputation, or ZeRO 3",
        )
    return Found(
        ranking=tuple((pool[number], value) for value, number in ranked),
        candidates=len(pool),
        evaluated=tuple(counts),
        bound_s=min(bound, ranked[0][0]),
    )
