"""How throughput grows with GPUs: the linear-speed-up figure, for several placements.

The efficiency at N GPUs is ``throughput(N) / (N / N0 throughput(N0))``, where N0 is the smallest layout that
holds the model: one host where the model fits there. The batch of a GPU stays (weak scaling) unless the
caller keeps the global batch (strong scaling); what a step is, and how long it takes, the caller says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from netplan.errors import TrafficError

if TYPE_CHECKING:
    from netplan.training.job import TrainingJob
    from netplan.training.layouts import Layout

__all__ = ["ScalingPoint", "scale_training", "scaling_curve"]


@dataclass(frozen=True)
class ScalingPoint:
    """Throughput of a job of one size and placement."""

    placement: str
    gpus: int
    step_s: float
    """Time of a step [s]."""
    throughput: float
    """Work of a step over its time: tokens/s, or what the caller counts."""
    efficiency: float
    """Throughput over so many times that of the smallest size in its first placement."""


def scaling_curve(
    step: Callable[[int, str], tuple[float, float]],
    sizes: Sequence[int],
    placements: Sequence[str] = ("packed", "fragmented"),
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[ScalingPoint]:
    """Return the throughput at every size, for every placement.

    Parameters
    ----------
    step
        Time of a step [s], and work in it (tokens), for so many GPUs in a kind of placement.
    sizes
        GPUs; the smallest is what the others are held against.
    placements
        Kinds of placement; the smallest size is run in the first.
    progress
        Called with (what, done, all).

    Returns
    -------
    list of ScalingPoint
        By placement, and by size within it.

    Raises
    ------
    TrafficError
        No size, one below 1, or one given twice.

    Examples
    --------
    >>> [p.efficiency for p in scaling_curve(lambda n, kind: (1 + n / 100, n * 10), [100, 300], ["packed"])]
    [1.0, 0.5]
    """
    ordered = sorted(sizes)
    if not ordered or ordered[0] < 1:
        raise TrafficError(f"sizes = {list(sizes)}: every size is 1 GPU or more", hint="8,64,512")
    repeated = next((size for size, after in pairwise(ordered) if size == after), None)
    if repeated is not None:
        raise TrafficError(f"sizes: {repeated} is listed twice", hint="list each size once")
    base_s, base_tokens = step(ordered[0], placements[0])
    each = base_tokens / base_s / ordered[0]
    found = []
    for number, (kind, size) in enumerate((kind, size) for kind in placements for size in ordered):
        if progress is not None:
            progress("sizes", number, len(ordered) * len(placements))
        took, tokens = (base_s, base_tokens) if size == ordered[0] else step(size, kind)
        rate = tokens / took
        found.append(ScalingPoint(kind, size, took, rate, rate / (size * each)))
    return found


def scale_training(
    job: TrainingJob,
    layout: Layout,
    sizes: Sequence[int],
    placements: Sequence[str] = ("packed", "fragmented"),
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[ScalingPoint]:
    """Return the throughput of a training job at several sizes.

    Parameters
    ----------
    job
        Model, accelerator and fabric.
    layout
        Its layout: tensor, context and pipeline sizes and the batch of a replica stay; sizes are more or
        fewer data-parallel replicas.
    sizes
        GPUs; the smallest is what the others are held against.
    placements
        Kinds of placement.
    progress
        Called with (what, done, all).

    Raises
    ------
    TrafficError
        A size that is no multiple of ``tp x cp x pp``, that does not fit into memory, or onto the fabric.
    """
    from netplan.training.step import StepTimer

    model_parallel = layout.tp * layout.cp * layout.pp
    training = job.timer.training
    batch = training.global_batch // layout.dp
    for size in sizes:
        if size < 1 or size % model_parallel:
            raise TrafficError(
                f"{size:,} GPUs are no multiple of tp x cp x pp = {layout.tp} x {layout.cp} x {layout.pp} = "
                f"{model_parallel:,}",
                hint=f"{model_parallel:,}, {2 * model_parallel:,}, ...; or other sizes (--tp, --pp)",
            )

    def step(gpus: int, kind: str) -> tuple[float, float]:
        dp = gpus // model_parallel
        experts = math.gcd(layout.ep, layout.cp * dp)
        grown = replace(layout, dp=dp, ep=experts, placement=kind)
        update = {"global_batch": batch * dp}
        timer = StepTimer(job.timer.model, training.model_copy(update=update), job.timer.accelerator)
        missing = timer.missing_bytes(grown)
        if missing > 0:
            raise TrafficError(
                f"{gpus:,} GPUs: tp {layout.tp}, pp {layout.pp}, dp {dp} is {missing / 2**30:,.1f} GiB a GPU "
                "short",
                hint="begin with more GPUs, or a layout that holds the model in one replica",
            )
        return timer.step_s(grown, job.networks.network(grown)), float(timer.tokens)

    return scaling_curve(step, sizes, placements, progress=progress)
