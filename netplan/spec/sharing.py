"""A day of training and inference on one cluster, and jobs over unequal accelerators: what files say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Gt, Le, Len
from pydantic import model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Duration, Name, Rate, Ratio, Size

__all__ = ["InferenceSpec", "MixedJobSpec", "MixedSpec", "PoolSpec", "SharingSpec", "TrainingShareSpec"]

_Share = Annotated[Ratio, Le(1)]
_PositiveRate = Annotated[Rate, Gt(0)]
_PositiveTime = Annotated[Duration, Gt(0)]

#: Hours of a day.
_HOURS = 24


class InferenceSpec(SpecModel):
    """The load of inference over a day."""

    peak_gpus: Count
    """GPUs that are busy in the busiest hour."""
    curve: Annotated[tuple[_Share, ...], Len(_HOURS, _HOURS)] | None = None
    """Load of each hour from 0:00 as a share of the peak, 24 values with a 1 among them."""
    mean: Annotated[Ratio, Gt(0), Le(1)] | None = None
    """Mean over peak, 0.5 or more: a cosine, instead of a curve."""
    peak_hour: Annotated[Ratio, Le(_HOURS)] = 20
    """Hour of the peak of the cosine."""
    headroom: Annotated[Ratio, Le(10)] = 0.2
    """GPUs held beyond the load, as a share of it."""
    bandwidth: Rate = 0.0
    """Traffic of a busy GPU on the fabric."""

    @model_validator(mode="after")
    def _has_one_load(self) -> Self:
        """Refuse no load, two loads, and a curve without its peak."""
        if (self.curve is None) == (self.mean is None):
            message = "has neither curve nor mean" if self.curve is None else "has both curve and mean"
            raise Refusal(message, hint="write one: `mean: 0.6`, or a curve of 24 values")
        if self.curve is not None and max(self.curve) < 1:
            raise Refusal(
                f"has its largest value {max(self.curve):g} below 1", path="curve", hint="divide all by it"
            )
        if self.mean is not None and self.mean < 0.5:  # noqa: PLR2004 -- a cosine that would go below 0
            raise Refusal(
                "is below 0.5, where a cosine would go below 0", path="mean", hint="write a curve instead"
            )
        return self


class TrainingShareSpec(SpecModel):
    """The job that takes what inference leaves."""

    least_gpus: Count
    """GPUs without which it cannot run."""
    unit_gpus: Count = 8
    """It grows and shrinks by so many: those of a data-parallel replica."""
    switch: Duration = 600.0
    """What a change of size costs it: a checkpoint and a start."""
    bandwidth: Rate = 0.0
    """Mean traffic of a GPU on the fabric."""
    communication_share: _Share = 0.2
    """Share of its step that is communication nothing hides."""


class SharingSpec(SpecModel):
    """Training and inference on one cluster over a day."""

    name: Name
    """Name of the day."""
    gpus: Count
    """GPUs of the cluster."""
    gpus_per_host: Count = 8
    """Inference takes and leaves whole hosts."""
    nic: _PositiveRate = 50e9
    """NIC rate for each GPU."""
    oversubscription: Annotated[Ratio, Gt(0)] = 1.0
    """NIC bandwidth over that of the narrowest tier."""
    inference: InferenceSpec
    """The load of inference."""
    training: TrainingShareSpec
    """The training job."""


class PoolSpec(SpecModel):
    """Equal accelerators of a mixed job."""

    name: Name
    """Name of the pool."""
    accelerators: Count
    """How many."""
    layer_time: _PositiveTime
    """A layer of one micro-batch in one group, forward and backward."""
    nic: _PositiveRate
    """NIC rate for each accelerator."""
    group: Count = 8
    """Accelerators that hold a stage together."""
    most_layers: Count | None = None
    """Layers that the memory of a group has room for."""


class MixedJobSpec(SpecModel):
    """What a mixed job trains."""

    layers: Count
    """Layers of the model."""
    micro_batches: Count
    """Micro-batches of a step, over all pipelines."""
    layer_gradients: Size
    """Gradients of a layer, over a whole group."""
    overlap: _Share = 0.0
    """Share of the gradient exchange that hides behind computation."""
    jitter: _Share = 0.0
    """Standard deviation of a pipeline's time, as a share of it."""
    most_stages: Count | None = None
    """Stages of a pipeline of one pool, at most."""
    cross_rate: _PositiveRate | None = None
    """Rate for each accelerator between pools."""
    split: Literal["by-batch", "by-layers"] | None = None
    """How pools share the work; the faster of both when not set."""


class MixedSpec(SpecModel):
    """One job over unequal accelerators."""

    name: Name
    """Name of the job."""
    pools: Annotated[tuple[PoolSpec, ...], Len(1, 8)]
    """The accelerators."""
    job: MixedJobSpec
    """The job."""
