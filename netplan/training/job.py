"""A training job on a fabric: layout, step, scaling efficiency, what a better network would bring.

*Scaling efficiency* = tokens per second and GPU of the job over those of its smallest part that
could train alone: the same tensor, context, pipeline and expert sizes with dp = 1 (with experts, as
many replicas as a set of experts is spread over) on as many packed hosts, and as many micro-
batches. It holds what is lost by growing: reducing gradients, gathering parameters, contention with
other replicas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.catalog.accelerators import accelerators
from netplan.errors import CatalogError, TrafficError
from netplan.training.layouts import Layout, LayoutSpace
from netplan.training.planner import (
    AtLineRate,
    LayoutSearch,
    NetworkMaker,
    layout_to_dict,
    plain_layout,
    search_layouts,
    space_of,
)
from netplan.training.step import StepResult, StepTimer, check_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.fabric import Fabric

__all__ = ["JobReport", "TrainingJob", "accelerator_of", "default_batch", "fits_in"]

#: Accelerator that a scale-up bandwidth stands for [1e9 bytes/s].
_BY_SCALE_UP = {150: "v100", 200: "h800", 300: "a100", 448: "mi300x", 450: "h100", 900: "b200"}

#: Tokens of a step where nothing is said.
_TOKENS = 4 * 2**20


def accelerator_of(fabric: Fabric) -> str:
    """Return the name of the accelerator that a fabric's scale-up bandwidth stands for.

    Raises
    ------
    CatalogError
        None has this bandwidth.
    """
    rates = np.unique(fabric.scale_up_rate)
    name = _BY_SCALE_UP.get(round(float(rates[0]) / 1e9)) if len(rates) == 1 else None
    if name is None:
        shown = ", ".join(f"{rate / 1e9:g} GB/s" for rate in rates[:4].tolist())
        raise CatalogError(
            f"the scale-up bandwidth of {fabric.name} ({shown}) does not tell its accelerator",
            hint=f"--accelerator {' or '.join(list(accelerators())[:4])} ...",
        )
    return name


def default_batch(gpus: int, sequence: int) -> int:
    """Return the sequences of a step where nothing is said: 4 Mi tokens or more.

    A power of two times the odd part of the number of GPUs, so that parallel sizes divide it.

    Examples
    --------
    >>> default_batch(1024, 4096), default_batch(96, 2048)
    (1024, 3072)
    """
    odd = gpus
    while odd % 2 == 0:
        odd //= 2
    batch = odd
    while batch * sequence < _TOKENS or batch * 4 < gpus:
        batch *= 2
    return batch


@dataclass(frozen=True, eq=False)
class JobReport:
    """What a job gets."""

    layout: Layout
    step: StepResult
    scaling_efficiency: float
    baseline: StepResult
    """A replica alone."""
    on_ideal: StepResult
    """The same step with NIC ports as the only limits."""
    search: LayoutSearch | None = None

    @property
    def network_share(self) -> float:
        """Part of the step that waits for communication."""
        return self.step.exposed_comm_s / self.step.step_s

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        step = self.step
        return {
            "step_s": step.step_s,
            "compute_s": step.compute_s,
            "recompute_s": step.recompute_s,
            "bubble_s": step.bubble_s,
            "exposed_comm_s": step.exposed_comm_s,
            "exposed_by_axis_s": dict(step.exposed),
            "communication_by_axis_s": dict(step.total),
            "scaling_efficiency": self.scaling_efficiency,
            "mfu": step.mfu,
            "mfu_causal": step.mfu_causal,
            "hfu": step.hfu,
            "tokens_per_s": step.tokens_per_s,
            "tflops_per_gpu": step.flops_per_gpu / 1e12,
            "network_share": self.network_share,
            "step_on_ideal_network_s": self.on_ideal.step_s,
            "memory_gib": {
                name: getattr(step.memory, name) / 2**30
                for name in ("weights", "gradients", "optimizer", "activations", "reserve", "total")
            },
            "gpus": self.layout.n_ranks,
            "parallelism": layout_to_dict(self.layout),
        }


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """A model on so many GPUs of a fabric."""

    timer: StepTimer
    networks: NetworkMaker
    gpus: int

    @property
    def scale_up(self) -> int:
        """GPUs of the fabric's scale-up domains: those of a host."""
        return int(self.networks.fabric.gpus_per_host[self.networks.fabric.gpus_per_host > 0].min())

    def space(self, **sizes: Any) -> LayoutSpace:  # noqa: ANN401 -- LayoutSpace's fields
        """Return all layouts of the job, or those of given sizes."""
        model, training = self.timer.model, self.timer.training
        return LayoutSpace(
            gpus=self.gpus,
            scale_up=self.scale_up,
            layers=model.layers,
            heads=model.heads,
            kv_heads=model.heads_of_keys,
            sequence=self.timer.sequence,
            global_batch=training.global_batch,
            experts=1 if model.experts is None else model.experts.count,
            **sizes,
        )

    def layout(self, given: dict[str, Any]) -> Layout:
        """Return the layout of given sizes; what is not given is as in a plain layout.

        Raises
        ------
        SpecError
            Sizes that do not divide what they must; all reasons.
        TrafficError
            Sizes that do not multiply to the GPUs, or nothing fits.
        """
        model_parallel = given.get("tp", 1) * given.get("cp", 1) * given.get("pp", 1)
        dp = given.get("dp")
        if dp is not None and {"tp", "pp"} <= given.keys() and dp * model_parallel != self.gpus:
            raise TrafficError(
                f"tp x cp x pp x dp = {given['tp']} x {given.get('cp', 1)} x {given['pp']} x {dp} ="
                f" {dp * model_parallel:,} is not the {self.gpus:,} GPUs of the job",
                hint="leave dp out, or change --gpus",
            )
        if {"tp", "pp"} <= given.keys():
            if self.gpus % model_parallel:
                raise TrafficError(
                    f"tp x cp x pp = {given['tp']} x {given.get('cp', 1)} x {given['pp']} ="
                    f" {model_parallel:,} does not divide {self.gpus:,} GPUs",
                    hint="another --gpus, or other sizes",
                )
            whole = {"tp": 1, "cp": 1, "pp": 1, **given, "dp": self.gpus // model_parallel}
            found = self._best_memory(Layout(**whole), free={"recompute", "zero_stage"} - given.keys())
            check_layout(self.timer.model, self.timer.training, found, self.scale_up)
            return found
        space = self._narrow(given)
        return replace(plain_layout(space, self.timer), placement=given.get("placement", "packed"))

    def _narrow(self, given: dict[str, Any]) -> LayoutSpace:
        listed = {name: (value,) for name, value in given.items() if name != "placement"}
        return self.space(**listed)

    def _best_memory(self, layout: Layout, free: set[str]) -> Layout:
        """Return the layout with the least recomputation that fits, where that is free."""
        if "recompute" not in free:
            return layout
        for recompute in ("none", "selective", "full"):
            candidate = replace(layout, recompute=recompute)
            if self.timer.missing_bytes(candidate) <= 0:
                return candidate
        return replace(layout, recompute="full")

    def report(self, layout: Layout, search: LayoutSearch | None = None) -> JobReport:
        """Return what the job gets with a layout."""
        network = self.networks.network(layout)
        step = self.timer.step(layout, network)
        copies = layout.ep // math.gcd(layout.ep, layout.cp)  # the fewest that one set of experts needs
        one = replace(layout, dp=copies, placement="packed")
        training = self.timer.training
        alone = StepTimer(
            self.timer.model,
            training.model_copy(update={"global_batch": training.global_batch * copies // layout.dp}),
            self.timer.accelerator,
        )
        baseline = alone.step(one, self.networks.network(one))
        per_gpu = (step.tokens_per_s / layout.n_ranks, baseline.tokens_per_s / one.n_ranks)
        return JobReport(
            layout,
            step,
            per_gpu[0] / per_gpu[1],
            baseline,
            self.timer.step(layout, AtLineRate(network)),
            search,
        )

    def search(
        self, given: dict[str, Any], *, progress: Callable[[str, int, int], None] | None = None
    ) -> JobReport:
        """Find the layout with the shortest step among those of given sizes, and report it.

        Raises
        ------
        TrafficError
            There is no layout, or none fits.
        """
        timer = self.timer
        chosen = {name: (value,) for name, value in given.items()}
        space = space_of(timer.model, timer.training, self.gpus, self.scale_up, **chosen)
        found = search_layouts(space, self.timer, self.networks, progress=progress)
        return self.report(found.best, found)


def fits_in(job: TrainingJob, layout: Layout) -> None:
    """Refuse a layout that does not fit into memory, saying what would.

    Raises
    ------
    TrafficError
        How many bytes a GPU is short of, and the plainest layout that fits.
    """
    missing = job.timer.missing_bytes(layout)
    if missing <= 0:
        return
    total = job.timer.accelerator.memory + missing
    message = (
        f"{job.timer.model.name} does not fit: tp {layout.tp}, pp {layout.pp}, dp {layout.dp} with"
        f" {layout.recompute} recomputation needs {total / 2**30:,.1f} GiB a GPU,"
        f" {job.timer.accelerator.name} has {job.timer.accelerator.memory / 2**30:,.0f}"
        f" ({missing / 2**30:,.1f} GiB short)"
    )
    try:
        plain = plain_layout(job.space(), job.timer)
    except TrafficError:
        raise TrafficError(message, hint="more GPUs, --zero 3, or accelerators with more memory") from None
    raise TrafficError(message, hint=f"fits: --tp {plain.tp} --pp {plain.pp} --recompute {plain.recompute}")
