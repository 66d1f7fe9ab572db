"""What no fixed rule of sharing gives: figures of single runs, measured and foretold.

* stretch: completion of an incast of 1 MB messages over its max-min completion. One early cut makes it
  1.1 to 2.5 under DCQCN.
* long flow: its part of its max-min rate in a parking lot; neither max-min (1) nor proportional fairness
  (2/3 over two segments) gives what protocols do.
* near flow: its share of a link with a flow from 150 µs away.
* victim: rate of a flow to an idle receiver over the rate of an incast flow on the same paused link.
* long haul: what flows get together of a link of 150 µs, in parts of max-min.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.simulate.reference.max_min import max_min_goodput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from netplan.simulate.reference.comparison import ModelRun
    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["Claim", "claim_of", "claims"]

_MEGABYTE = 1e6

#: Protocols of the runs in which a paused link is all there is.
_PFC_ONLY = ("none", "roce_ecmp", "roce_deep_ecmp")


@dataclass(frozen=True)
class Claim:
    """One figure of one run."""

    kind: str
    """stretch, long flow, near flow, victim or long haul."""
    simulator: str
    run: str
    measured: float
    """By the simulator."""
    mean: float
    """By the model, mean over seeds."""
    low: float
    """Least over seeds."""
    high: float
    """Most over seeds."""


def claim_of(run: ReferenceRun) -> str | None:
    """Return the kind of claim that a run bears on; None: none."""
    endless = run.measured.goodput is not None
    kinds = (
        (
            run.scenario == "a-incast"
            and run.protocol.startswith("dcqcn")
            and run.measured.ideal is not None
            and bool(np.all(run.demand.size == _MEGABYTE)),
            "stretch",
        ),
        (endless and run.scenario == "e-parking-lot", "long flow"),
        (
            endless
            and run.scenario == "b-two-rtt"
            and ("far150us_both" in run.name or "far150us_near_first" in run.name),
            "near flow",
        ),
        (endless and run.scenario == "e-victim" and run.protocol in _PFC_ONLY and run.lossless, "victim"),
        (endless and run.scenario == "f-longhaul" and run.n_flows > 1 and run.single_path, "long haul"),
    )
    return next((kind for applies, kind in kinds if applies), None)


def claims(
    runs: Iterable[ReferenceRun],
    answer: Callable[[ReferenceRun, int], ModelRun],
    seeds: Sequence[int] = (11, 2_000_003, 70_000_019),
) -> tuple[Claim, ...]:
    """Return the figures of all runs that bear on a claim.

    Parameters
    ----------
    runs
        Reference runs; those that bear on none are passed over.
    answer
        What the model says of a run with a seed.
    seeds
        Each run is answered once with each.
    """
    found = []
    for run in runs:
        kind = claim_of(run)
        if kind is None:
            continue
        seen = run.measured
        fair = max_min_goodput(run) if seen.goodput is not None else np.zeros(0)
        got = []
        for seed in seeds:
            model = answer(run, seed)
            end = model.times.makespan(run) if model.times is not None else None
            got.append(_figure(kind, run, fair, model.goodput, end))
        measured = _figure(kind, run, fair, seen.goodput, seen.makespan)
        mean = float(np.mean(got))
        found.append(Claim(kind, run.simulator, run.name, measured, mean, min(got), max(got)))
    return tuple(found)


def _figure(
    kind: str,
    run: ReferenceRun,
    fair: NDArray[np.float64],
    goodput: NDArray[np.float64] | None,
    makespan: float | None,
) -> float:
    """Return a run's figure by measured or foretold goodputs [bytes/s] or completion [s]."""
    if kind == "stretch":
        ideal = run.measured.ideal
        return makespan / float(ideal.max()) if makespan is not None and ideal is not None else np.nan
    if goodput is None:
        return np.nan
    if kind == "long flow":
        return float(goodput[0] / fair[0])
    if kind == "near flow":
        return float(goodput[0] / goodput.sum())
    if kind == "victim":
        return float(goodput[0] / goodput[1])
    return float(goodput.sum() / fair.sum())
