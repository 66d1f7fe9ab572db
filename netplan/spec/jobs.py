"""Jobs that share a fabric: what a jobs file may say.

A job is its GPUs, parallel sizes and placement, with a model (`netplan.training.step`) or with what its step
computes and communicates, as a profile has them: times and sizes.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Gt
from pydantic import Field, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Duration, Name, Size
from netplan.spec.traffic import PlacementSpec

__all__ = ["ExchangeSpec", "GridSpec", "JobsSpec", "SharedJobSpec"]


class GridSpec(SpecModel):
    """Parallel sizes of a job."""

    tp: Count = 1
    """Tensor parallel ranks."""
    cp: Count = 1
    """Context parallel ranks."""
    pp: Count = 1
    """Pipeline stages."""
    dp: Count | None = None
    """Data parallel ranks; what is left of the GPUs when omitted."""
    ep: Count = 1
    """Expert parallel ranks, in the place of context and data ranks."""
    order: Literal["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"] = "tp-cp-ep-dp-pp"
    """Order of ranks, fastest coordinate first."""


class ExchangeSpec(SpecModel):
    """A kind of communication of a step."""

    axis: Literal["tp", "cp", "dp", "pp", "ep", "edp", "dp-cp"]
    """Whose groups communicate."""
    collective: Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "send-recv"]
    """What they do."""
    size: Annotated[Size, Gt(0)]
    """Bytes as nccl-tests counts them."""
    count: Count = 1
    """How often in a step, one after another."""
    hidden: Duration = 0.0
    """How much of its time in a step computation hides, at most."""


class SharedJobSpec(SpecModel):
    """One of several jobs."""

    name: Name
    """Name of the job."""
    gpus: Count
    """Its GPUs."""
    parallelism: GridSpec = GridSpec()
    """Its parallel sizes."""
    placement: PlacementSpec = PlacementSpec()
    """Its hosts, among those that jobs before it leave."""
    model: str | None = None
    """Model that it trains: a shipped name or file; instead of ``compute`` and ``exchanges``."""
    accelerator: Name | None = None
    """With a model: its GPUs; by default those that the fabric's scale-up bandwidth stands for."""
    global_batch: Count | None = None
    """With a model: sequences of a step; by default 4 Mi tokens or more."""
    micro_batch: Count = 1
    """With a model: sequences of a micro-batch."""
    compute: Duration | None = None
    """Time of a step without communication."""
    exchanges: Annotated[tuple[ExchangeSpec, ...], Field(min_length=1)] | None = None
    """What its step communicates."""

    @model_validator(mode="after")
    def _a_model_or_a_profile(self) -> Self:
        """Refuse a job with neither a model nor a profile, or with both."""
        profile = {"compute": self.compute, "exchanges": self.exchanges}
        for name, value in profile.items():
            if self.model is None and value is None:
                raise Refusal(
                    "is missing: a job has a model, or compute and exchanges",
                    path=name,
                    hint="model: llama3-8b",
                )
            if self.model is not None and value is not None:
                raise Refusal("is not used with a model", path=name, hint="leave it out")
        return self

    @model_validator(mode="after")
    def _sizes_multiply(self) -> Self:
        """Refuse sizes that do not multiply to the GPUs."""
        sizes = self.parallelism
        model = sizes.tp * sizes.cp * sizes.pp
        dp = max(self.gpus // model, 1) if sizes.dp is None else sizes.dp
        if dp * model != self.gpus:
            what = "tp x cp x pp" if sizes.dp is None else "tp x cp x pp x dp"
            whole = model if sizes.dp is None else model * dp
            raise Refusal(
                f"{what} = {whole:,} does not make {self.gpus:,} GPUs",
                path="parallelism",
                hint=f"gpus: {dp * model}, or other sizes",
            )
        if sizes.cp * dp % sizes.ep:
            raise Refusal(
                f"does not divide cp x dp = {sizes.cp * dp}",
                path="parallelism.ep",
                hint="experts take the place of context and data ranks",
            )
        return self


class JobsSpec(SpecModel):
    """Jobs that run on one fabric at the same time."""

    name: Name = "jobs"
    """Name of the mixture."""
    description: str = ""
    """What it is, in a sentence."""
    source: str = ""
    """Where its numbers come from."""
    jobs: Annotated[tuple[SharedJobSpec, ...], Field(min_length=1, max_length=1000)]
    """The jobs, in the order in which they are placed."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        """Refuse two jobs of one name."""
        names = [job.name for job in self.jobs]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise Refusal(f"names {name!r} twice", path=f"jobs[{place}].name", hint="one name each")
        return self
