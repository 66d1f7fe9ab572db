"""A training job's failures, checkpoints, repairs and waits, played event by event.

The process of `netplan.planning.goodput`, without its formulas: interruptions after exponential times, a
share of which send a host to repair; recovery, segments of work and checkpoints until the next one; a wait
when no spare is left. It is the slow, obvious reference of the closed form, and shows how far one run of so
many days may be from the mean.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.planning.goodput import Goodput

__all__ = ["Events", "EventsMean", "play_goodput"]

#: More interruptions than this in all runs are refused.
MOST_EVENTS = 20_000_000


@dataclass(frozen=True)
class Events:
    """What happened in one run, in seconds."""

    useful_s: float
    recovery_s: float
    lost_s: float
    checkpoints_s: float
    waiting_s: float
    interruptions: int
    """Failures that interrupted."""


@dataclass(frozen=True)
class EventsMean:
    """Shares of time over several runs."""

    days: float
    runs: int
    effective_time: float
    standard_error: float
    """Of `effective_time`, from the spread of the runs."""
    worst: float
    best: float
    recovery: float
    lost_work: float
    checkpoints: float
    waiting: float
    interruptions: float
    """In a run, on average."""


def play_goodput(
    goodput: Goodput,
    *,
    days: float = 54.0,
    runs: int = 20,
    seed: int = 0,
    repair: Literal["exponential", "fixed"] = "exponential",
    progress: Callable[[str, int, int], None] | None = None,
) -> EventsMean:
    """Play a job several times.

    Parameters
    ----------
    goodput
        What the closed form found; its rates, times, interval and spares are played.
    days
        Length of a run.
    runs
        How many.
    seed
        Of the draws.
    repair
        Distribution of the time to repair.
    progress
        Called with (what, done, all).

    Returns
    -------
    EventsMean
        The same for the same arguments. Degraded time is taken from the closed form: in expectation exact,
        without spread.

    Raises
    ------
    ModelRangeError
        Days or runs out of range, or too many events.
    """
    if not 0 < days <= 36_525 or not 1 <= runs <= 100_000:  # noqa: PLR2004 -- a century
        raise ModelRangeError(
            f"{runs} run(s) of {days:g} days are out of range", hint="1 to 100,000 runs of at most a century"
        )
    expected = runs * goodput.interruptions(days)
    if expected > MOST_EVENTS:
        raise ModelRangeError(
            f"this plays {expected:,.0f} interruptions; at most {MOST_EVENTS:,}", hint="fewer runs or days"
        )
    rng = np.random.default_rng(seed)
    horizon = days * 86400
    played = []
    for run in range(runs):
        if progress is not None:
            progress("runs", run, runs)
        played.append(_play(goodput, horizon, rng, fixed=repair == "fixed"))
    keep = 1 - goodput.degraded / (goodput.effective_time + goodput.degraded) if goodput.degraded else 1.0
    useful = np.array([each.useful_s for each in played]) / horizon * keep

    def mean(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in played])) / horizon

    return EventsMean(
        days=days,
        runs=runs,
        effective_time=float(useful.mean()),
        standard_error=float(useful.std(ddof=1) / math.sqrt(runs)) if runs > 1 else math.nan,
        worst=float(useful.min()),
        best=float(useful.max()),
        recovery=mean("recovery_s"),
        lost_work=mean("lost_s"),
        checkpoints=mean("checkpoints_s"),
        waiting=mean("waiting_s"),
        interruptions=mean("interruptions") * horizon,
    )


def _play(goodput: Goodput, horizon: float, rng: np.random.Generator, *, fixed: bool) -> Events:
    """Play one run; the job starts computing at time 0 with all spares there."""
    recovery, interval = goodput.recovery, goodput.interval_s
    period = interval + recovery.write_s
    takes = sum(row.share for row in goodput.causes if row.takes_host)
    repairs: list[float] = []
    now = useful = recovering = lost = checkpoints = waiting = 0.0
    interruptions, due = 0, 0.0
    while now < horizon:
        until = now + float(rng.exponential(goodput.mtbf_s)) if math.isfinite(goodput.mtbf_s) else math.inf
        end = min(until, horizon)
        recovered = min(due, end - now)
        recovering += recovered
        worked = end - now - recovered
        if period == 0 or math.isinf(period):  # checkpoints all the time for nothing, or nothing to fear
            segments, rest = 0, 0.0
            useful += worked
        else:
            segments = math.floor(worked / period)
            rest = worked - segments * period
            useful += segments * interval
            checkpoints += segments * recovery.write_s
        if until >= horizon:  # the run ends, but nothing of it is lost
            useful += min(rest, interval)
            checkpoints += max(0.0, rest - interval)
        else:
            lost += rest
        now = end
        if until >= horizon:
            break
        interruptions += 1
        due = recovery.recovery_s
        while repairs and repairs[0] <= now:
            heapq.heappop(repairs)
        if rng.random() < takes:
            duration = recovery.repair_s if fixed else float(rng.exponential(recovery.repair_s))
            heapq.heappush(repairs, now + duration)
            if len(repairs) > goodput.spares:
                back = min(heapq.heappop(repairs), horizon)
                waiting += back - now
                now = back
    return Events(useful, recovering, lost, checkpoints, waiting, interruptions)
