"""A model's answer to reference runs, set against what the simulators measured.

For each run (`compare_run`): the error of every flow's completion time (model / simulator - 1, flows of
`LARGE_FLOW` bytes and more), flow by flow and rank by rank (the earliest against the earliest, and so
on: where marking is random, *which* of several like flows is cut is chance, what happens to the unlucky
one is not), of the completion of all flows, the ratio of peak and mean of the longest
recorded queue, whether PFC paused anything, and for endless runs each flow's goodput over the second
half.

`summarise` puts runs together. Marking is random, and a protocol's own spread over seeds may be wider
than a model's error: the completions of runs that differ by seed only are therefore compared by their
means, and the simulator's spread over the seeds stands beside them. Flows are pooled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from netplan.simulate.reference.max_min import FlowTimes
    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["LARGE_FLOW", "ModelRun", "RunComparison", "Summary", "compare_run", "seed_group", "summarise"]

#: Flows below this are not compared [bytes]: nothing is claimed for short messages.
LARGE_FLOW = 1e6

#: A queue whose recorded peak is below this holds some packets only; ratios of it say nothing [bytes].
SMALL_QUEUE = 20e3


class ModelRun(NamedTuple):
    """What a model says of one run; None where it says nothing."""

    times: FlowTimes | None = None
    """When flows begin and end; None for endless runs."""
    goodput: NDArray[np.float64] | None = None
    """(n_flows,) payload received per second over the second half of the run [bytes/s]."""
    queue_peak: NDArray[np.float64] | None = None
    """(n_links,) longest queue before each link [bytes]."""
    queue_mean: NDArray[np.float64] | None = None
    """(n_links,) queue before each link averaged over the run [bytes]."""
    pauses: bool | None = None
    """Whether any port was paused."""


@dataclass(frozen=True, eq=False)
class RunComparison:
    """One run: model against simulator."""

    name: str
    simulator: str
    protocol: str
    scenario: str
    flow_errors: NDArray[np.float64]
    """(n,) model / simulator - 1 of the completion time of each large flow; inf: not by the model."""
    rank_errors: NDArray[np.float64]
    """(n,) the same of the times in order of size: model's shortest / simulator's shortest - 1, and on."""
    makespan: float | None
    """Completion of all flows, by the model [s]."""
    measured_makespan: float | None
    """The same, by the simulator [s]."""
    goodput_errors: NDArray[np.float64]
    """(n,) (model - simulator) / fair part of the simulator's total, of each flow's goodput; endless runs."""
    total_goodput: float | None
    """Model / simulator of the goodput of all flows together."""
    queue_peak: float | None
    """Model / simulator of the peak of the longest queue."""
    queue_mean: float | None
    """Model / simulator of the mean of that queue."""
    pauses: tuple[bool, bool] | None
    """(model, simulator): whether PFC paused any port."""

    @property
    def makespan_error(self) -> float | None:
        """Model / simulator - 1 of the completion of all flows."""
        if self.makespan is None or self.measured_makespan is None:
            return None
        return self.makespan / self.measured_makespan - 1


@dataclass(frozen=True)
class Summary:
    """Some runs together. A figure is None where none of the runs has it."""

    simulator: str
    scenario: str
    protocol: str
    name: str
    runs: int
    flows: int
    """Large flows whose completion times are compared, each once however many seeds the model ran with."""
    flow_median: float | None
    """Median of their absolute errors."""
    flow_p90: float | None
    """90th percentile of them."""
    rank_median: float | None
    """Median of the absolute errors rank by rank."""
    rank_p90: float | None
    """90th percentile of them."""
    makespan_error: float | None
    """Completion of all flows: model / simulator - 1 of the means over seeds; of several kinds of run
    the median, by absolute value."""
    makespan_worst: float | None
    """The same error of the kind of run that is farthest off."""
    seed_spread: float | None
    """Simulator alone: (latest - earliest) / mean completion over seeds; the largest over kinds of run."""
    goodput_error: float | None
    """Endless runs: median absolute error of a flow's goodput, in parts of the fair part."""
    goodput_total: float | None
    """Endless runs: model / simulator - 1 of all flows together, mean over runs."""
    queue_peak: float | None
    """Model / simulator of the peak of the longest queue: the median over runs."""
    queue_mean: float | None
    """The same of its mean."""
    pauses_right: float | None
    """Share of the runs with PFC in which model and simulator agree whether it paused anything."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def compare_run(run: ReferenceRun, model: ModelRun) -> RunComparison:
    """Set a model's answer against one run.

    Parameters
    ----------
    run
        The run of a simulator.
    model
        What a model says of it.

    Returns
    -------
    RunComparison
        Flows that the simulator itself did not end are left out; so is the completion of all flows then.
    """
    seen = run.measured
    errors, ranks, makespan = np.zeros(0), np.zeros(0), None
    measured = seen.received if seen.received is not None else seen.acknowledged
    if model.times is not None and measured is not None:
        ours = model.times.duration(run)[seen.flow]
        use = (run.demand.size[seen.flow] >= LARGE_FLOW) & np.isfinite(measured)
        errors = ours[use] / measured[use] - 1
        ranks = np.sort(ours[use]) / np.sort(measured[use]) - 1
    if model.times is not None and seen.done == run.n_flows:
        makespan = model.times.makespan(run)
    goodput_errors, total = np.zeros(0), None
    if model.goodput is not None and seen.goodput is not None:
        goodput_errors = (model.goodput - seen.goodput) / seen.goodput.mean()
        total = float(model.goodput.sum() / seen.goodput.sum())
    peak, mean = _queues(run, model)
    return RunComparison(
        name=run.name,
        simulator=run.simulator,
        protocol=run.protocol,
        scenario=run.scenario,
        flow_errors=errors,
        rank_errors=ranks,
        makespan=makespan,
        measured_makespan=seen.makespan if makespan is not None else None,
        goodput_errors=goodput_errors,
        total_goodput=total,
        queue_peak=peak,
        queue_mean=mean,
        pauses=(model.pauses, seen.pauses > 0) if model.pauses is not None and run.lossless else None,
    )


def _queues(run: ReferenceRun, model: ModelRun) -> tuple[float | None, float | None]:
    """Return model / simulator of peak and mean of the queue that was longest in the simulator."""
    if not run.measured.queues:
        return None, None
    link, top, mean = max(run.measured.queues, key=lambda queue: queue[1])
    if top < SMALL_QUEUE:
        return None, None
    peak = float(model.queue_peak[link] / top) if model.queue_peak is not None else None
    ratio = None
    if (
        model.queue_mean is not None and mean > 0 and run.simulator != "htsim"
    ):  # htsim goes on sampling to -end
        ratio = float(model.queue_mean[link] / mean)
    return peak, ratio


def seed_group(name: str) -> str:
    """Return a run's name without its seed: what runs of one kind have in common.

    >>> seed_group("c_k4_s3_dcqcn")
    'c_k4_dcqcn'
    """
    return re.sub(r"_s\d+(?=_|$)", "", name)


def by_kind(one: RunComparison) -> tuple[str, ...]:
    """Key of `summarise`: runs that differ by seed only."""
    return one.simulator, one.scenario, one.protocol, seed_group(one.name)


def by_protocol(one: RunComparison) -> tuple[str, ...]:
    """Key of `summarise`: runs of one protocol in one scenario."""
    return one.simulator, one.scenario, one.protocol, ""


def by_simulator(one: RunComparison) -> tuple[str, ...]:
    """Key of `summarise`: runs of one protocol, whatever the scenario."""
    return one.simulator, "", one.protocol, ""


def summarise(
    comparisons: Iterable[RunComparison], key: Callable[[RunComparison], tuple[str, ...]] = by_protocol
) -> tuple[Summary, ...]:
    """Put runs together.

    Parameters
    ----------
    comparisons
        Runs, of one model.
    key
        What the runs of one summary share, as (simulator, scenario, protocol, name).

    Returns
    -------
    tuple of Summary
        In the order of the keys.
    """
    return tuple(_summary(place, part) for place, part in sorted(_grouped(comparisons, key).items()))


def _grouped(
    comparisons: Iterable[RunComparison], key: Callable[[RunComparison], tuple[str, ...]]
) -> dict[tuple[str, ...], list[RunComparison]]:
    groups: dict[tuple[str, ...], list[RunComparison]] = defaultdict(list)
    for one in comparisons:
        groups[key(one)].append(one)
    return groups


def _summary(place: tuple[str, ...], part: Sequence[RunComparison]) -> Summary:
    """Return the figures of some runs."""
    simulator, scenario, protocol, name = place
    flows = np.abs(np.concatenate([one.flow_errors for one in part]))
    ranks = np.abs(np.concatenate([one.rank_errors for one in part]))
    goodput = np.abs(np.concatenate([one.goodput_errors for one in part]))
    errors, spreads = _makespans(part)
    totals = [one.total_goodput for one in part if one.total_goodput is not None]
    peaks = [one.queue_peak for one in part if one.queue_peak is not None]
    means = [one.queue_mean for one in part if one.queue_mean is not None]
    pauses = [one.pauses[0] == one.pauses[1] for one in part if one.pauses is not None]
    runs = len({one.name for one in part})  # a model may have answered a run with several seeds
    return Summary(
        simulator=simulator,
        scenario=scenario,
        protocol=protocol,
        name=name,
        runs=runs,
        flows=len(flows) * runs // len(part),
        flow_median=float(np.median(flows)) if len(flows) else None,
        flow_p90=float(np.quantile(flows, 0.9, method="lower")) if len(flows) else None,
        rank_median=float(np.median(ranks)) if len(ranks) else None,
        rank_p90=float(np.quantile(ranks, 0.9, method="lower")) if len(ranks) else None,
        makespan_error=sorted(errors, key=abs)[len(errors) // 2] if errors else None,
        makespan_worst=max(errors, key=abs) if errors else None,
        seed_spread=max(spreads) if spreads else None,
        goodput_error=float(np.median(goodput)) if len(goodput) else None,
        goodput_total=float(np.mean(totals)) - 1 if totals else None,
        queue_peak=float(np.median(peaks)) if peaks else None,
        queue_mean=float(np.median(means)) if means else None,
        pauses_right=float(np.mean(pauses)) if pauses else None,
    )


def _makespans(part: Sequence[RunComparison]) -> tuple[list[float], list[float]]:
    """Return the error of the means over seeds for each kind of run, and the simulator's spreads."""
    errors, spreads = [], []
    for kind in _grouped(part, by_kind).values():
        pairs = [
            (one.makespan, one.measured_makespan)
            for one in kind
            if one.makespan is not None and one.measured_makespan is not None
        ]
        if not pairs:
            continue
        ours, theirs = np.array(pairs).T
        errors.append(float(ours.mean() / theirs.mean()) - 1)
        if len({one.name for one in kind if one.makespan is not None}) > 1:
            spreads.append(float(np.ptp(theirs) / theirs.mean()))
    return errors, spreads
