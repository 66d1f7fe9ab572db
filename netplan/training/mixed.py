"""One job over unequal accelerators: how layers and batch are split, and what mixing costs.

*Pools.* A pool is a number of equal accelerators in model-parallel groups (`group` accelerators hold one
stage by tensor parallelism). A group computes a layer of one micro-batch, forward and back, in t seconds.

*Layers.* A pipeline of stages with speeds v (layers per second) and room for c layers takes integers l, sum
L, so that the slowest stage, max l/v, is as fast as it can be (`split_layers`).

*Batch.* Pipelines that take micro-batches in turn take integers b, sum B, so that the last to end,
max (b + p - 1) tau, is as early as it can be: tau is the slowest stage of a pipeline, p - 1 of which fill it
(`split_batch`). Both are exact: the least time for which the whole parts that fit it suffice.

*Plans* (`plan_mixed`). *By batch*: each pipeline is of one pool; every depth that holds the layers is tried
in each pool. *By layers*: each pipeline has stages of all pools; every number of pipelines, and of stages of
each pool in them, is tried. The faster plan is taken: exact within these two families.

*Step* = slowest pipeline + gradients + waiting for the slowest of all. Gradients: ring all-reduces among D
pipelines, 2 (D - 1)/D x bytes of an accelerator's layers over its NIC (between pools at most `cross_rate`);
the accelerator that takes longest sets the time, since every ring has a member in each pipeline. A share
`overlap` hides behind backward passes. Times of computation are normal about their mean with deviation
`jitter`: of D pipelines in lockstep the slowest is jitter x E[max of D normals] late.

*Loss* is against the ideal sum: each pool as a job of its own with the same model and its fair part of the
batch, at its best depth, split without rounding, no accelerator idle, its gradients over its own NICs,
waiting for its own pipelines only. `Loss` takes the causes apart: from the real step, one after another is
lifted; the differences sum to the loss.

Left out: sends of activations between stages (small, and hidden by all but the first), pools that differ in
what they compute (precision, kernels), tensor parallelism across pools (no one does it), interleaved
schedules.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "Loss",
    "MixedJob",
    "MixedPlan",
    "Pipeline",
    "Pool",
    "expected_slowest",
    "plan_mixed",
    "split_batch",
    "split_layers",
]

#: More combinations of depths than this are refused.
_MOST_PLANS = 200_000


@dataclass(frozen=True)
class Pool:
    """Equal accelerators."""

    name: str
    accelerators: int
    layer_s: float
    """A layer of one micro-batch in one group, forward and backward [s]."""
    nic: float
    """NIC rate for each accelerator [bytes/s]."""
    group: int = 8
    """Accelerators that hold a stage together (tensor parallelism)."""
    most_layers: int | None = None
    """Layers that the memory of a group has room for; None: any number."""

    def __post_init__(self) -> None:
        """Refuse a pool that cannot be.

        Raises
        ------
        ModelRangeError
            No accelerators, not in whole groups, or no speed.
        """
        where = f"pool {self.name!r}"
        if self.accelerators < 1 or self.group < 1 or self.accelerators % self.group:
            raise ModelRangeError(
                f"{where}: {self.accelerators} accelerators do not fill groups of {self.group}",
                hint="a multiple of the group, at least one group",
            )
        if not 0 < self.layer_s < math.inf or not 0 < self.nic < math.inf:
            raise ModelRangeError(
                f"{where}: layer time {self.layer_s:g} s and NIC rate {self.nic:g} B/s must be above 0"
            )
        if self.most_layers is not None and self.most_layers < 1:
            raise ModelRangeError(f"{where}: a group has room for {self.most_layers} layers: at least 1")

    @property
    def groups(self) -> int:
        """How many stages it can hold."""
        return self.accelerators // self.group


@dataclass(frozen=True)
class MixedJob:
    """What is trained."""

    layers: int
    micro_batches: int
    """Of a step, over all pipelines."""
    layer_bytes: float
    """Gradients of a layer, over a whole group [bytes]."""
    overlap: float = 0.0
    """Share of gradient exchange that hides behind computation."""
    jitter: float = 0.0
    """Standard deviation of a pipeline's time, as a share of it."""
    most_stages: int | None = None
    """Stages of a pipeline of one pool; None: as many as there are layers. It binds the ideal sum too."""
    cross_rate: float | None = None
    """Rate for each accelerator between pools [bytes/s], such as through hosts' CPUs; None: as NICs allow."""

    @property
    def deepest(self) -> int:
        """Most stages of a pipeline of one pool."""
        return min(self.layers, self.most_stages or self.layers)

    def __post_init__(self) -> None:
        """Refuse a job that cannot be.

        Raises
        ------
        ModelRangeError
            No layers or batch, or a share out of range.
        """
        if self.layers < 1 or self.micro_batches < 1:
            raise ModelRangeError(
                f"{self.layers} layers and {self.micro_batches} micro-batches: each is at least 1"
            )
        if self.most_stages is not None and self.most_stages < 1:
            raise ModelRangeError(f"pipelines of {self.most_stages} stages: at least 1")
        if not 0 <= self.layer_bytes < math.inf:
            raise ModelRangeError(f"gradients of {self.layer_bytes:g} bytes a layer are out of range")
        if self.cross_rate is not None and not 0 < self.cross_rate < math.inf:
            raise ModelRangeError(f"rate between pools {self.cross_rate:g} B/s must be above 0")
        if not 0 <= self.overlap <= 1 or not 0 <= self.jitter <= 1:
            raise ModelRangeError(f"overlap {self.overlap:g} and jitter {self.jitter:g} are shares: 0 to 1")


@dataclass(frozen=True)
class Pipeline:
    """Pipelines that are all alike."""

    count: int
    layers: tuple[int, ...]
    """Of each stage."""
    pools: tuple[int, ...]
    """Pool of each stage, by its place in the list."""
    stage_s: float
    """Slowest stage for a micro-batch [s]."""
    micro_batches: tuple[int, ...]
    """Of each pipeline."""

    @property
    def time_s(self) -> float:
        """Until the last of them is done [s]."""
        most = max(self.micro_batches, default=0)
        return (most + len(self.layers) - 1) * self.stage_s if most else 0.0


@dataclass(frozen=True)
class Loss:
    """Where throughput goes, as shares of the ideal sum; lifted one after another in this order."""

    whole_batch: float
    """Micro-batches are whole, and equal parts of the slowest pipeline's are all that count."""
    whole_layers: float
    """Layers are whole: stages are uneven."""
    idle: float
    """Groups that no pipeline uses."""
    slowest_nic: float
    """Gradients over all pools instead of each pool's own."""
    synchronisation: float
    """Waiting for the slowest of all pipelines instead of a pool's own."""
    depth: float
    """Pipelines deeper than a pool of its own has them, and their filling."""

    @property
    def total(self) -> float:
        """All."""
        return sum(
            (
                self.whole_batch,
                self.whole_layers,
                self.idle,
                self.slowest_nic,
                self.synchronisation,
                self.depth,
            )
        )


@dataclass(frozen=True)
class MixedPlan:
    """How a job is split over pools, and what that costs."""

    kind: str
    """``by-batch``, each pipeline of one pool, or ``by-layers``, each of all."""
    pools: tuple[Pool, ...]
    pipelines: tuple[Pipeline, ...]
    step_s: float
    compute_s: float
    gradients_s: float
    waiting_s: float
    ideal_s: float
    """Step of the ideal sum [s]."""
    loss: Loss

    @property
    def efficiency(self) -> float:
        """Throughput over the ideal sum."""
        return self.ideal_s / self.step_s


# ---- Exact integer splits ------------------------------------------------------------------------------


def split_layers(
    layers: int, speeds: Sequence[float], most: Sequence[int | None] | None = None
) -> tuple[int, ...]:
    """Split layers over stages so that the slowest stage is as fast as it can be, each having one or more.

    One layer at a time goes to the stage that would be done first with it; no split has an earlier slowest
    stage, as the test against all splits shows (exchange argument: some stage of another split has at least
    as many layers as the stage that is last here).

    Parameters
    ----------
    layers
        Layers of the model.
    speeds
        Layers per second of each stage.
    most
        Room of each stage; None: any number.

    Raises
    ------
    ModelRangeError
        Fewer layers than stages, or not enough room.

    Examples
    --------
    >>> split_layers(10, [3.0, 1.0, 1.0])
    (6, 2, 2)
    """
    import heapq

    stages = len(speeds)
    room = [layers if cap is None else cap for cap in (most or [None] * stages)]
    if layers < stages:
        raise ModelRangeError(f"{layers} layers are fewer than {stages} stages", hint="fewer stages")
    if sum(room) < layers:
        raise ModelRangeError(
            f"{layers} layers do not fit: the stages have room for {sum(room)}",
            hint=f"{layers - sum(room)} more layers of room: more stages, or more memory",
        )
    taken = [1] * stages
    heap = [(2 / speed, place) for place, speed in enumerate(speeds) if room[place] > 1]
    heapq.heapify(heap)
    for _ in range(layers - stages):
        _, place = heapq.heappop(heap)
        taken[place] += 1
        if taken[place] < room[place]:
            heapq.heappush(heap, ((taken[place] + 1) / speeds[place], place))
    return tuple(taken)


def split_batch(
    micro_batches: int, stage_s: Sequence[float], depths: Sequence[int], counts: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Split micro-batches over pipelines so that the last is done as early as it can be.

    Parameters
    ----------
    micro_batches
        Of all pipelines.
    stage_s, depths, counts
        For each kind of pipeline its slowest stage [s], its stages, and how many pipelines there are.

    Returns
    -------
    tuple of tuple of int
        For each kind, micro-batches of each of its pipelines; some may have none.
    """

    def whole(limit: float) -> list[int]:
        # A hair above, so that a limit computed from a pipeline's own time lets it in.
        return [
            max(0, math.floor(limit / each * (1 + 1e-12)) - depth + 1)
            for each, depth in zip(stage_s, depths, strict=True)
        ]

    def enough(limit: float) -> bool:
        return sum(n * count for n, count in zip(whole(limit), counts, strict=True)) >= micro_batches

    # The answer is the time of some pipeline with some whole number: the least of these that is enough.
    best = math.inf
    for each, depth, count in zip(stage_s, depths, counts, strict=True):
        low, high = 1, micro_batches
        del count
        if not enough((high + depth - 1) * each):
            continue
        while low < high:
            middle = (low + high) // 2
            if enough((middle + depth - 1) * each):
                high = middle
            else:
                low = middle + 1
        best = min(best, (low + depth - 1) * each)
    fits = whole(best)
    over = sum(n * count for n, count in zip(fits, counts, strict=True)) - micro_batches
    found = []
    for n, count in zip(fits, counts, strict=True):
        shares = []
        for left in range(count, 0, -1):
            less = min(n, -(-over // left)) if over > 0 else 0
            shares.append(n - less)
            over -= less
        found.append(tuple(sorted(shares, reverse=True)))
    return tuple(found)


def expected_slowest(n: float) -> float:
    """Return the mean of the largest of n standard normals.

    By numerical integration of 1 - F^n - (1 - F)^n; 0 for one, 0.564 for two.

    Examples
    --------
    >>> round(expected_slowest(2), 4)
    0.5642
    """
    from scipy.special import log_ndtr

    if n <= 1:
        return 0.0
    x = np.linspace(0, 12, 24_001)
    upper = -np.expm1(n * log_ndtr(x))
    lower = np.exp(n * log_ndtr(-x))
    return float(np.trapezoid(upper - lower, x))


# ---- Plans ---------------------------------------------------------------------------------------------


def plan_mixed(pools: Sequence[Pool], job: MixedJob, kind: str | None = None) -> MixedPlan:
    """Split a job over pools as fast as it can be.

    Parameters
    ----------
    pools
        One or more, of different names.
    job
        What is trained.
    kind
        ``by-batch`` or ``by-layers``; the faster of both when None.

    Raises
    ------
    ModelRangeError
        No pools, a name twice, an unknown kind, a model that does not fit, or too many combinations.
    """
    names = [pool.name for pool in pools]
    if not pools or len(set(names)) < len(names):
        raise ModelRangeError(f"pools {', '.join(names) or 'none'}: at least one, each with its own name")
    makers = {"by-batch": _by_batch, "by-layers": _by_layers}
    if kind is not None and kind not in makers:
        raise ModelRangeError(f"split {kind!r} is not one of {', '.join(makers)}")
    best: tuple[float, str, tuple[Pipeline, ...]] | None = None
    for name in makers if kind is None else (kind,):
        for pipelines in makers[name](pools, job):
            step = sum(_times(pools, pipelines, job))
            if best is None or step < best[0] * (1 - 1e-12):
                best = step, name, pipelines
    if best is None:
        room = max(pool.groups * (pool.most_layers or job.layers) for pool in pools)
        raise ModelRangeError(
            f"no split holds {job.layers} layers: the largest pool has room for {room}",
            hint="more accelerators, or more layers to a group",
        )
    _, name, pipelines = best
    compute, gradients, waiting = _times(pools, pipelines, job)
    ideal = _ideal(pools, job)
    step = compute + gradients + waiting
    return MixedPlan(
        kind=name,
        pools=tuple(pools),
        pipelines=pipelines,
        step_s=step,
        compute_s=compute,
        gradients_s=gradients,
        waiting_s=waiting,
        ideal_s=ideal,
        loss=_loss(pools, pipelines, job, ideal, step),
    )


def _by_batch(pools: Sequence[Pool], job: MixedJob) -> Iterator[tuple[Pipeline, ...]]:
    """Yield plans whose pipelines are each of one pool."""
    choices = []
    for pool in pools:
        room = pool.most_layers or job.layers
        depths = range(-(-job.layers // room), min(job.deepest, pool.groups) + 1)
        # Of depths with the same slowest stage the least has most pipelines and least to fill.
        least: dict[int, int] = {}
        for depth in depths:
            least.setdefault(-(-job.layers // depth), depth)
        choices.append(list(least.values()))
    if not all(choices):
        return
    if math.prod(map(len, choices)) > _MOST_PLANS:
        raise ModelRangeError(f"more than {_MOST_PLANS:,} plans for {len(pools)} pools", hint="fewer pools")
    for depths_of in itertools.product(*choices):
        layers = [split_layers(job.layers, [1.0] * depth) for depth in depths_of]
        stage = [max(each) * pool.layer_s for each, pool in zip(layers, pools, strict=True)]
        counts = [pool.groups // depth for pool, depth in zip(pools, depths_of, strict=True)]
        batches = split_batch(job.micro_batches, stage, depths_of, counts)
        yield tuple(
            Pipeline(count, each, (place,) * depth, slowest, batch)
            for place, (count, each, depth, slowest, batch) in enumerate(
                zip(counts, layers, depths_of, stage, batches, strict=True)
            )
        )


def _by_layers(pools: Sequence[Pool], job: MixedJob) -> Iterator[tuple[Pipeline, ...]]:
    """Yield plans whose pipelines have stages of all pools."""
    if len(pools) == 1:
        return
    seen: set[tuple[int, ...]] = set()
    # Of numbers of pipelines with the same depths the largest is the fastest.
    for count in range(min(pool.groups for pool in pools), 0, -1):
        depths = tuple(pool.groups // count for pool in pools)
        if sum(depths) > job.layers or (depths in seen):
            continue
        seen.add(depths)
        pool_of = tuple(place for place, depth in enumerate(depths) for _ in range(depth))
        room = [pools[place].most_layers for place in pool_of]
        if sum(job.layers if each is None else each for each in room) < job.layers:
            continue
        layers = split_layers(job.layers, [1 / pools[place].layer_s for place in pool_of], room)
        slowest = max(each * pools[place].layer_s for each, place in zip(layers, pool_of, strict=True))
        batches = split_batch(job.micro_batches, [slowest], [len(layers)], [count])
        yield (Pipeline(count, layers, pool_of, slowest, batches[0]),)


def _times(pools: Sequence[Pool], pipelines: Sequence[Pipeline], job: MixedJob) -> tuple[float, float, float]:
    """Return time of the slowest pipeline, of gradients that nothing hides, and of waiting [s]."""
    compute = max(pipeline.time_s for pipeline in pipelines)
    copies = sum(pipeline.count for pipeline in pipelines)
    each = max(
        layers * job.layer_bytes / pools[place].group / _rate(pools, place, pipelines, job)
        for pipeline in pipelines
        for layers, place in zip(pipeline.layers, pipeline.pools, strict=True)
    )
    gradients = _exposed(copies, each, job)
    return compute, gradients, compute * job.jitter * expected_slowest(copies)


def _rate(pools: Sequence[Pool], place: int, pipelines: Sequence[Pipeline], job: MixedJob) -> float:
    """Return the rate of an accelerator's gradients: they leave its pool where pipelines are of one each."""
    crosses = len(pipelines) > 1 and job.cross_rate is not None
    return min(pools[place].nic, job.cross_rate or math.inf) if crosses else pools[place].nic


def _exposed(copies: float, each_s: float, job: MixedJob) -> float:
    """Return the time of a ring all-reduce among so many that nothing hides, of `each_s` of bytes."""
    return 2 * (copies - 1) / copies * each_s * (1 - job.overlap) if copies > 1 else 0.0


# ---- The ideal sum, and what is lost of it -------------------------------------------------------------


@dataclass(frozen=True)
class _Flow:
    """Equal pipelines without rounding: a linear function of time."""

    count: float
    depth: int
    stage_s: float
    gradients_s: float
    late: float
    """How much longer the slowest takes, as a share."""

    def micro_batches(self, step_s: float) -> float:
        """Return what is done in a step."""
        done = (step_s - self.gradients_s) / (self.stage_s * (1 + self.late)) - self.depth + 1
        return self.count * max(0.0, done)


def _solve(choices: Sequence[Sequence[_Flow]], micro_batches: int) -> float:
    """Return the least step in which the best of each list together do the batch [s]."""
    from scipy.optimize import brentq

    def left(step_s: float) -> float:
        return sum(max(flow.micro_batches(step_s) for flow in each) for each in choices) - micro_batches

    high = 1e-9
    while left(high) < 0:
        high *= 2
    return float(brentq(left, high / 2, high, xtol=1e-15, rtol=1e-12))


def _ideal(pools: Sequence[Pool], job: MixedJob) -> float:
    """Return the step of the ideal sum [s]."""
    choices = []
    for pool in pools:
        least = -(-job.layers // (pool.most_layers or job.layers))
        choices.append([_alone(pool, depth, job) for depth in range(least, max(job.deepest, least) + 1)])
    return _solve(choices, job.micro_batches)


def _alone(pool: Pool, depth: int, job: MixedJob) -> _Flow:
    """Return a pool as a job of its own with pipelines of a depth, nothing rounded."""
    copies = pool.groups / depth
    share = job.layers / depth
    return _Flow(
        copies,
        depth,
        share * pool.layer_s,
        _exposed(copies, share * job.layer_bytes / pool.group / pool.nic, job),
        job.jitter * expected_slowest(max(copies, 1.0)),
    )


def _loss(
    pools: Sequence[Pool], pipelines: Sequence[Pipeline], job: MixedJob, ideal: float, step: float
) -> Loss:
    """Lift the causes one after another: see the module."""
    _, gradients, _ = _times(pools, pipelines, job)
    copies = sum(pipeline.count for pipeline in pipelines)
    late = job.jitter * expected_slowest(copies)
    whole, uneven, idle, nic, sync = [], [], [], [], []
    for pipeline in pipelines:
        used = sorted(set(pipeline.pools))
        speed = sum(1 / pools[place].layer_s for place in pipeline.pools)
        even = job.layers / speed
        full = sum(pools[place].groups / pools[place].layer_s for place in used) / speed
        depth = len(pipeline.layers)
        alone = [_alone(pools[place], max(depth // len(used), 1), job) for place in used]
        own = float(np.mean([flow.gradients_s for flow in alone]))
        own_late = float(np.mean([flow.late for flow in alone]))
        whole.append([_Flow(pipeline.count, depth, pipeline.stage_s, gradients, late)])
        uneven.append([_Flow(pipeline.count, depth, even, gradients, late)])
        idle.append([_Flow(full, depth, even, gradients, late)])
        nic.append([_Flow(full, depth, even, own, late)])
        sync.append([_Flow(full, depth, even, own, own_late)])
    times = [step, *(_solve(each, job.micro_batches) for each in (whole, uneven, idle, nic, sync)), ideal]
    # Shares of the ideal throughput: 1 - ideal/step, split as the times are.
    return Loss(*((before - after) / step for before, after in itertools.pairwise(times)))
