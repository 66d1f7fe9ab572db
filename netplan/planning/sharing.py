"""Training and inference on one cluster over a day: what it gains when training grows into idle hours.

*Load.* Inference needs peak x curve GPUs in each hour, and holds `headroom` more, in whole hosts; the curve
is given, or a cosine with that mean and peak: 1 at the peak, 2 mean - 1 twelve hours away.

*Fixed.* Inference holds what its busiest hour needs, training has the rest all day.

*Elastic.* In each hour training may have what inference does not hold, in whole units. A change of size costs
`switch` of the new size. The sizes over the day (one day like the next) that give most GPU-hours are found
exactly: in hours between two changes the best size is the least that is free in any of them, so only sizes
that are free in some hour count, and dynamic programming over 24 hours chooses among these.

*Fabric.* Load of an hour is the traffic of all busy GPUs over NIC bandwidth / oversubscription. Above 1,
communication takes that many times as long: training does 1/(1 + s (load - 1)) of its work, s being
communication's share of the step. Contention below a load of 1 is what `netplan simulate` is for.

Left out: inference that starts late because its hosts still train (headroom stands for it), efficiency that
falls with more replicas, forecasts that are wrong.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from netplan.spec.sharing import InferenceSpec, SharingSpec

__all__ = ["HourRow", "SharedDay", "best_sizes", "load_curve", "share_day"]

#: Version of the JSON that `SharedDay.to_dict` makes.
SCHEMA = "netplan/share/1"

_HOURS = 24


@dataclass(frozen=True)
class HourRow:
    """One hour."""

    hour: int
    inference_busy: float
    """GPUs that answer."""
    inference_held: int
    """GPUs that inference has under elastic use."""
    training_fixed: int
    training_elastic: int
    fabric_load_fixed: float
    fabric_load_elastic: float


@dataclass(frozen=True)
class SharedDay:
    """A day, fixed and elastic."""

    name: str
    gpus: int
    hours: tuple[HourRow, ...]
    changes: int
    """Changes of the size of training in a day."""
    training_fixed_gpu_h: float
    """Work of training in a day [GPU-hours at full speed]."""
    training_elastic_gpu_h: float
    """The same, less what changes cost."""
    switch_gpu_h: float
    """What changes cost."""
    utilisation_fixed: float
    """Busy GPU-hours, of inference and training, over all."""
    utilisation_elastic: float
    inference_mean: float
    """Mean load of inference over its peak."""

    @property
    def gain(self) -> float:
        """How much more training a day gets, as a share; infinite when fixed use leaves none."""
        fixed = self.training_fixed_gpu_h
        return self.training_elastic_gpu_h / fixed - 1 if fixed else math.inf

    def fabric_load(self, which: str) -> dict[str, float]:
        """Return mean and peak load of the fabric, ``fixed`` or ``elastic``."""
        loads = [getattr(row, f"fabric_load_{which}") for row in self.hours]
        return {"mean": float(np.mean(loads)), "peak": float(max(loads))}

    def to_dict(self) -> dict[str, Any]:
        """Return the day as plain data."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "gpus": self.gpus,
            "share": {
                "inference_mean": self.inference_mean,
                "training_fixed_gpu_h": self.training_fixed_gpu_h,
                "training_elastic_gpu_h": self.training_elastic_gpu_h,
                "switch_gpu_h": self.switch_gpu_h,
                "gain": self.gain if math.isfinite(self.gain) else None,
                "changes": self.changes,
                "utilisation_fixed": self.utilisation_fixed,
                "utilisation_elastic": self.utilisation_elastic,
                "fabric_load_fixed": self.fabric_load("fixed"),
                "fabric_load_elastic": self.fabric_load("elastic"),
            },
            "hours": [asdict(row) for row in self.hours],
        }


def load_curve(inference: InferenceSpec) -> list[float]:
    """Return the load of each hour as a share of the peak."""
    if inference.curve is not None:
        return list(inference.curve)
    mean = inference.mean
    assert mean is not None
    # The greatest hour is 1 whatever the fraction of an hour the peak is at.
    raw = [math.cos(2 * math.pi * (hour - inference.peak_hour) / _HOURS) for hour in range(_HOURS)]
    top = max(raw)
    return [mean + (1 - mean) * value / top for value in raw]


def best_sizes(free: list[int], switch_h: float) -> list[int]:
    """Return the size of training in each hour that gives most GPU-hours, day after day.

    Parameters
    ----------
    free
        GPUs that training may have in each hour.
    switch_h
        Hours of the new size that a change costs.

    Examples
    --------
    An hour of little is waited out at a small size; a short rise is not worth two changes:

    >>> best_sizes([10, 12, 10, 10], switch_h=0.2)
    [10, 10, 10, 10]
    >>> best_sizes([10, 20, 20, 10], switch_h=0.2)
    [10, 20, 20, 10]
    """
    sizes = sorted({0, *free})  # 0: to wait an hour costs nothing, to come back does
    best, plan = -math.inf, list(free)
    for first in sizes:
        if first > free[0]:
            continue
        values, back = {first: float(first)}, []
        for room in free[1:]:
            step: dict[int, tuple[float, int]] = {}
            for size in sizes:
                if size > room:
                    continue
                step[size] = max(
                    (value + size - (switch_h * size if size != before else 0.0), -before)
                    for before, value in values.items()
                )
            back.append({size: -before for size, (_, before) in step.items()})
            values = {size: value for size, (value, _) in step.items()}
        total, last = max(
            (value - (switch_h * first if size != first else 0.0), -size) for size, value in values.items()
        )
        if total > best + 1e-9:
            best, way = total, [-last]
            for before in reversed(back):
                way.append(before[way[-1]])
            plan = way[::-1]
    return plan


def share_day(spec: SharingSpec) -> SharedDay:
    """Return what a day is like, fixed and elastic.

    Parameters
    ----------
    spec
        The cluster, the load and the job.

    Raises
    ------
    ModelRangeError
        The busiest hour leaves training less than it needs.
    """
    inference, training = spec.inference, spec.training
    curve = load_curve(inference)
    busy = [inference.peak_gpus * share for share in curve]
    held = [
        math.ceil(each * (1 + inference.headroom) / spec.gpus_per_host - 1e-9) * spec.gpus_per_host
        for each in busy
    ]
    unit = training.unit_gpus
    free = [(spec.gpus - each) // unit * unit for each in held]
    if min(free) < training.least_gpus:
        raise ModelRangeError(
            f"{spec.name}: the busiest hour holds {max(held):,} of {spec.gpus:,} GPUs for inference and "
            f"leaves {max(min(free), 0):,}; training needs {training.least_gpus:,}",
            hint=f"{max(held) + -(-training.least_gpus // unit) * unit:,} GPUs would do, or less headroom",
        )
    fixed = [min(free)] * _HOURS
    switch_h = training.switch / 3600
    elastic = best_sizes(free, switch_h)
    capacity = spec.gpus * spec.nic / spec.oversubscription

    def loads(sizes: list[int]) -> list[float]:
        return [
            (size * training.bandwidth + each * inference.bandwidth) / capacity
            for size, each in zip(sizes, busy, strict=True)
        ]

    def work(sizes: list[int]) -> float:
        slow = [1 + training.communication_share * max(0.0, load - 1) for load in loads(sizes)]
        return sum(size / each for size, each in zip(sizes, slow, strict=True))

    changed = [elastic[hour] for hour in range(_HOURS) if elastic[hour] != elastic[hour - 1]]
    lost = sum(changed) * switch_h
    trained, total = work(elastic) - lost, spec.gpus * _HOURS
    return SharedDay(
        name=spec.name,
        gpus=spec.gpus,
        hours=tuple(
            HourRow(*row)
            for row in zip(
                range(_HOURS), busy, held, fixed, elastic, loads(fixed), loads(elastic), strict=True
            )
        ),
        changes=len(changed),
        training_fixed_gpu_h=work(fixed),
        training_elastic_gpu_h=trained,
        switch_gpu_h=lost,
        utilisation_fixed=(sum(busy) + work(fixed)) / total,
        utilisation_elastic=(sum(busy) + trained) / total,
        inference_mean=float(np.mean(curve)),
    )
