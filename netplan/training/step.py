r"""The time of a training step: computation, communication that nothing hides, and idle pipelines.

One micro-batch takes a stage t_f forward and t_b backward: its layers, with the tensor and expert ranks'
communication between them, and what is recomputed. A pipeline of p stages, v virtual stages and m
micro-batches (1F1B, Narayanan et al. 2021) takes

    m max_i (t_f + t_b)_i + (sum_i - max_i) (t_f + t_b) / v,

which is (m + (p - 1) / v) (t_f + t_b) for equal stages. Added to it:

* *pipeline*: sends of activations and gradients between stages, 2 v of them a micro-batch for m + p - 1
  micro-batches; where they are hidden (by default with virtual stages) those of filling and draining, 2 (p
  - 1);
* *data*: gradients (reduce-scatter with ZeRO, else all-reduce) and parameters (all-gather of ZeRO 1 and 2).
  With ``overlap_gradients`` what is longer than the last micro-batch's backward (gradients) or the first
  one's forward (parameters) is exposed, and the last of as many buckets as the stage has layers in any
  case. ZeRO 3 gathers a layer's weights ahead of it, twice a micro-batch: exposed is what is longer than
  the layer before, and the first. Common parameters and those of experts go over the same ports, one after
  the other;
* *sharing*: communication beside computation takes `SHARED` of the accelerator from it: NCCL's channels
  have a multiprocessor each, 16 to 20 of 108 to 132 (Calculon's processor_usage is 0.15 too). Sends between
  stages have fewer, `SHARED_SENDS`. It is charged to the axis that is hidden;
* *optimizer*: its memory traffic, 30 bytes a parameter that the GPU updates.

Communication of the tensor ranks, per layer and micro-batch (Korthikanti et al. 2022): with sequence
parallelism 2 all-gathers and 2 reduce-scatters each way, and 2 all-gathers more backward, which products
hide; without, 2 all-reduces each way; of b s h elements. Experts: dispatch and combine each way, of tokens
x top_k x h elements. Context ranks: the keys and values of the whole sequence, once forward and twice
backward, hidden behind the attention as far as that is long enough.

*mfu* = FLOPs of the model / (GPUs x peak x step), attention whole (`compute.model_flops`); *hfu* counts
what is recomputed too. *Scaling efficiency* = tokens per second and GPU over those of the same layout with
one data-parallel replica of a micro-batch stream as long (`StepTimer.scaling`).

What it leaves out: stragglers, data loading, checkpoints, kernel launches, the clock's drift with
temperature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from netplan.errors import SpecError
from netplan.training.compute import Device, Shape, head_time, layer_time, model_flops
from netplan.training.exchanges import Exchange
from netplan.training.memory import Memory, memory_of, parameters_of_rank, stage_layers

if TYPE_CHECKING:
    from netplan.catalog.accelerators import Accelerator
    from netplan.spec.model import ModelSpec
    from netplan.spec.training import TrainingSpec
    from netplan.training.exchanges import StepNetwork
    from netplan.training.layouts import Layout

__all__ = ["StepResult", "StepTimer", "check_layout"]

#: Bytes of an activation.
_BYTES = 2.0

#: Part of the accelerator that communication takes from computation beside it.
SHARED = 0.15

#: The same for sends to one rank: NCCL gives a 400 Gb/s NIC max(2, ceil(GB/s / 14)) = 4 channels (issue 1272
#: of NVIDIA/nccl), of 132 multiprocessors.
SHARED_SENDS = 0.03

#: Axes of groups that are reported with another.
_AXES = {"dp-cp": "dp", "edp": "dp"}

#: Memory traffic of the optimizer for a parameter [bytes]: reads and writes weight, moments, gradient.
_UPDATE = 30.0


@dataclass(frozen=True)
class StepResult:
    """A step and its parts [s]; they add up to `step_s`."""

    step_s: float
    compute_s: float
    """Computation of the slowest stage, recomputation and optimizer included."""
    bubble_s: float
    """The slowest stage waits for the pipeline to fill and drain."""
    exposed: dict[str, float]
    """What communication adds to the step, by axis: tp, ep, cp, pp, dp [s]. Where computation hides it, it
    still takes a part of the accelerator (`SHARED`)."""
    total: dict[str, float]
    """All communication of the slowest stage, hidden or not, by axis [s]."""
    recompute_s: float
    """Of the computation, what is done twice."""
    mfu: float
    """Attention counted whole, as Megatron, PaLM and llm-foundry do."""
    mfu_causal: float
    """Attention counted half, as its mask leaves it (Llama 3)."""
    hfu: float
    tokens_per_s: float
    flops_per_gpu: float
    """Of the model [FLOP/s]."""
    memory: Memory

    @property
    def exposed_comm_s(self) -> float:
        """Communication that nothing hides [s]."""
        return sum(self.exposed.values())


def check_layout(
    model: ModelSpec, training: TrainingSpec, layout: Layout, scale_up: int | None = None
) -> None:
    """Refuse a layout that cannot be, with all reasons.

    Raises
    ------
    SpecError
        Sizes that do not divide what they must.
    """
    from netplan.errors import Fault

    faults = []

    def need(ok: bool, message: str, hint: str | None = None) -> None:  # noqa: FBT001 -- a condition
        if not ok:
            faults.append(Fault("", message, hint))

    sequence = training.sequence or model.sequence
    stages = layout.pp * layout.virtual_stages
    need(model.heads % layout.tp == 0, f"tp = {layout.tp} does not divide the {model.heads} attention heads")
    need(
        model.heads_of_keys % layout.tp == 0 or layout.tp % model.heads_of_keys == 0,
        f"tp = {layout.tp} does not go with {model.heads_of_keys} heads of keys and values",
    )
    if scale_up is not None:
        need(
            layout.tp <= scale_up,
            f"tp = {layout.tp} is more than the {scale_up} GPUs of a scale-up domain",
            "tensor parallelism over NICs is not worth it: use more pipeline stages",
        )
    is_even = (
        training.uneven_stages
        or model.layers % stages == 0
        or (stages > 1 and (model.layers + 2) % stages == 0)
    )
    need(
        is_even,
        f"{model.layers} layers do not divide into {layout.pp} stages"
        + (f" of {layout.virtual_stages} virtual ones" if layout.virtual_stages > 1 else ""),
        f"stages that do: {', '.join(str(n) for n in range(1, model.layers + 1) if model.layers % n == 0)}",
    )
    need(layout.virtual_stages == 1 or layout.pp > 1, "virtual stages need a pipeline (pp of 2 and more)")
    need(
        training.global_batch % (layout.dp * layout.micro_batch) == 0,
        f"dp x micro-batch = {layout.dp} x {layout.micro_batch} does not divide the global batch of"
        f" {training.global_batch:,}",
    )
    need(
        layout.cp == 1 or sequence % (2 * layout.cp) == 0,
        f"2 cp = {2 * layout.cp} does not divide the sequence of {sequence:,}",
    )
    experts = 1 if model.experts is None else model.experts.count
    need(experts % layout.ep == 0, f"ep = {layout.ep} does not divide the {experts} experts of a layer")
    need(
        (layout.dp * layout.cp) % layout.ep == 0,
        f"ep = {layout.ep} does not divide the {layout.dp * layout.cp} ranks of dp x cp",
    )
    if faults:
        raise SpecError(faults=faults)


@dataclass(frozen=True, eq=False)
class StepTimer:
    """Steps of a model on an accelerator: what `netplan.training.planner` asks about layouts."""

    model: ModelSpec
    training: TrainingSpec
    accelerator: Accelerator
    _layers: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def device(self) -> Device:
        """The accelerator in the job's precision."""
        return Device(self.accelerator, self.training.precision)

    @property
    def sequence(self) -> int:
        """Tokens of a sequence."""
        return self.training.sequence or self.model.sequence

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.sequence * self.training.global_batch

    def missing_bytes(self, layout: Layout) -> float:
        """Return how many bytes a GPU is short of; 0 or less when the layout fits."""
        return memory_of(self.model, self.training, layout).total - self.accelerator.memory

    def step_s(self, layout: Layout, network: StepNetwork) -> float:
        """Return the time of a step [s]."""
        return self.step(layout, network).step_s

    def step(self, layout: Layout, network: StepNetwork) -> StepResult:
        """Return a step and its parts.

        Parameters
        ----------
        layout
            As `check_layout` lets it through.
        network
            Gives the time of communication: ``time(axis, collective, bytes)``.
        """
        shape, batches = self._shape(layout), self._batches(layout)
        stages = stage_layers(self.model.layers, layout.pp)
        compute, again, tp, ep, cp = self._stages(layout, shape, network, stages)
        busy = [c + t + e + x for c, t, e, x in zip(compute, tp, ep, cp, strict=True)]
        slowest = max(range(layout.pp), key=busy.__getitem__)
        bubble = (sum(busy) - busy[slowest]) / layout.virtual_stages
        total = dict.fromkeys(("tp", "ep", "cp", "pp", "dp"), 0.0)
        for each in self._exchanges(layout, stages[slowest]):
            total[_AXES.get(each.axis, each.axis)] += each.on(network)
        exposed = {
            "tp": batches * tp[slowest],
            "ep": batches * ep[slowest],
            "cp": batches * cp[slowest],
            "pp": self._exposed_sends(layout, shape, network, batches),
            "dp": self._exposed_data(layout, shape, network, stages[slowest]),
        }
        for axis, late in exposed.items():
            shared = SHARED_SENDS if axis == "pp" else SHARED
            exposed[axis] = late + shared * max(total[axis] - late, 0.0)
        optimizer = self._optimizer(layout)
        compute_s = batches * compute[slowest] + optimizer
        step = compute_s + bubble + sum(exposed.values())
        flops = model_flops(self.model, self.tokens, self.sequence)
        gpus = layout.n_ranks
        peak = gpus * self.device.peak * step
        twice = batches * again[slowest]
        return StepResult(
            step_s=step,
            compute_s=compute_s,
            bubble_s=bubble,
            exposed=exposed,
            total=total,
            recompute_s=twice,
            mfu=flops / peak,
            mfu_causal=(flops - self._masked()) / peak,
            hfu=flops / peak * (1 + self._recomputed(layout, shape)),
            tokens_per_s=self.tokens / step,
            flops_per_gpu=flops / (gpus * step),
            memory=memory_of(self.model, self.training, layout),
        )

    def exchanges(self, layout: Layout) -> tuple[Exchange, ...]:
        """Return what a GPU of the stage with the most layers communicates in a step, kind by kind."""
        return self._exchanges(layout, max(stage_layers(self.model.layers, layout.pp)))

    def _exchanges(self, layout: Layout, layers: int) -> tuple[Exchange, ...]:
        shape, batches = self._shape(layout), self._batches(layout)
        passes = layers * batches
        routed = passes * self.model.expert_layers / self.model.layers
        return (
            *(each.times(passes) for each in self._tensor(layout, shape)),
            *(each.times(routed) for each in self._expert(layout, shape)),
            *(each.times(passes) for each in self._context(layout, shape)),
            *(each.times(2.0 * layout.virtual_stages * batches) for each in self._send(layout, shape)),
            *self._data(layout, layers),
        )

    def _batches(self, layout: Layout) -> int:
        """Return the micro-batches of a replica."""
        return self.training.global_batch // (layout.dp * layout.micro_batch)

    # ---- Computation and what is between its operations

    def _shape(self, layout: Layout) -> Shape:
        return Shape(
            batch=layout.micro_batch,
            tokens=self.sequence // layout.cp,
            sequence=self.sequence,
            tp=layout.tp,
            sequence_parallel=self.training.sequence_parallel,
            ep=layout.ep,
            flash=self.training.flash,
            dropout=self.training.dropout,
        )

    def _layer(self, shape: Shape, *, experts: bool) -> Any:  # noqa: ANN401 -- a LayerTime
        key = (shape, experts)
        if key not in self._layers:
            self._layers[key] = layer_time(self.device, self.model, shape, experts=experts)
        return self._layers[key]

    def _mean_layer(self, shape: Shape) -> tuple[float, float]:
        """Return forward and backward of a layer, the mean over dense ones and those of experts [s]."""
        share = self.model.expert_layers / self.model.layers
        dense = self._layer(shape, experts=False)
        routed = self._layer(shape, experts=True) if share else dense
        return (
            (1 - share) * dense.forward + share * routed.forward,
            (1 - share) * dense.backward + share * routed.backward,
        )

    def _stages(
        self, layout: Layout, shape: Shape, network: StepNetwork, stages: tuple[int, ...]
    ) -> tuple[list[float], list[float], list[float], list[float], list[float]]:
        """Return for a micro-batch of each stage: computation, what is done again, exposed tp, ep, cp [s]."""
        share = self.model.expert_layers / self.model.layers
        dense = self._layer(shape, experts=False)
        forward, backward = self._mean_layer(shape)
        again = {"none": 0.0, "selective": dense.attention, "full": forward}[layout.recompute]
        if layout.recompute == "selective" and shape.flash:
            again = 0.0  # fused attention keeps no scores to begin with
        tp_each = self._exposed_tensor(layout, shape, network)
        ep_each = self._exposed_expert(layout, shape, network) * share
        cp_each = self._exposed_context(layout, shape, network, dense.attention)
        if shape not in self._layers:
            self._layers[shape] = head_time(self.device, self.model, shape)
        head = self._layers[shape]
        compute, twice, tp, ep, cp = [], [], [], [], []
        for place, layers in enumerate(stages):
            own = layers * (forward + backward + again)
            if place == layout.pp - 1:
                own += sum(head)
            compute.append(own)
            twice.append(layers * again)
            tp.append(layers * tp_each)
            ep.append(layers * ep_each)
            cp.append(layers * cp_each)
        return compute, twice, tp, ep, cp

    def _activation(self, layout: Layout, shape: Shape) -> float:
        """Return the bytes of a micro-batch's activations between layers on all tensor ranks together."""
        return _BYTES * shape.all_tokens * self.model.hidden

    def _tensor(self, layout: Layout, shape: Shape) -> tuple[Exchange, ...]:
        """Return what the tensor ranks exchange for a layer and micro-batch."""
        if layout.tp == 1:
            return ()
        size = self._activation(layout, shape)
        count = 6.0 if layout.recompute == "full" else 4.0
        kinds = ("all-gather", "reduce-scatter") if self.training.sequence_parallel else ("all-reduce",)
        return tuple(Exchange("tp", kind, size, count) for kind in kinds)

    def _exposed_tensor(self, layout: Layout, shape: Shape, network: StepNetwork) -> float:
        """Return what of it nothing hides [s]."""
        return _sum(self._tensor(layout, shape), network) * (1 - self.training.overlap_tensor)

    def _expert(self, layout: Layout, shape: Shape) -> tuple[Exchange, ...]:
        """Return what the expert ranks exchange for a layer of experts and micro-batch."""
        if self.model.experts is None or layout.ep == 1:
            return ()
        size = self._activation(layout, shape) * self.model.experts.top_k / shape.split
        forward = 2.0 if layout.recompute == "full" else 1.0
        # Backward, gradients go out for what was combined (in 16 bits) and come back for what was dispatched.
        if not self.training.fp8_dispatch:
            return (Exchange("ep", "all-to-all", size, 2 * forward + 2),)
        return (
            Exchange("ep", "all-to-all", size / 2, forward),
            Exchange("ep", "all-to-all", size, forward + 2),
        )

    def _exposed_expert(self, layout: Layout, shape: Shape, network: StepNetwork) -> float:
        """Return what of it nothing hides [s]."""
        return _sum(self._expert(layout, shape), network) * (1 - self.training.overlap_experts)

    def _context(self, layout: Layout, shape: Shape) -> tuple[Exchange, ...]:
        """Return what the context ranks exchange for a layer and micro-batch."""
        if layout.cp == 1:
            return ()
        size = _BYTES * shape.batch * self.sequence * self.model.width_of_keys_and_values / layout.tp
        return (Exchange("cp", "all-gather", size, 3.0),)

    def _exposed_context(self, layout: Layout, shape: Shape, network: StepNetwork, attention: float) -> float:
        """Return what of it the attention does not hide: a third of it forward, the rest backward [s]."""
        hidden = 3 * attention * (layout.cp - 1) / layout.cp
        return max(_sum(self._context(layout, shape), network) - hidden, 0.0)

    # ---- Between stages and replicas

    def _send(self, layout: Layout, shape: Shape) -> tuple[Exchange, ...]:
        """Return one send between stages."""
        if layout.pp == 1:
            return ()
        return (Exchange("pp", "send-recv", self._activation(layout, shape) / shape.split, 1.0),)

    def _exposed_sends(self, layout: Layout, shape: Shape, network: StepNetwork, batches: int) -> float:
        """Return what of a step's sends nothing hides [s]."""
        hides = self.training.overlap_pipeline
        if hides is None:
            hides = layout.virtual_stages > 1
        count = layout.pp - 1 if hides else layout.virtual_stages * (batches + layout.pp - 1)
        return 2.0 * count * _sum(self._send(layout, shape), network)

    def _data(self, layout: Layout, layers: int) -> tuple[Exchange, ...]:
        """Return what the data-parallel ranks exchange in a step: gradients, and parameters with ZeRO."""
        common, routed = parameters_of_rank(self.model, layout)
        ranks = layout.dp * layout.cp
        parts = [
            ("dp-cp" if layout.cp > 1 else "dp", common, ranks),
            ("edp", routed, ranks // layout.ep),
        ]
        passes = layers * self._batches(layout)
        found = []
        for axis, parameters, copies in parts:
            if not parameters or copies == 1:
                continue
            grads, weights = self.training.gradient_bytes * parameters, _BYTES * parameters
            if layout.zero_stage == 3:  # noqa: PLR2004 -- ZeRO 3
                found.append(Exchange(axis, "all-gather", weights / layers, 2.0 * passes))
                found.append(Exchange(axis, "reduce-scatter", grads / layers, passes))
            elif layout.zero_stage:
                found.append(Exchange(axis, "reduce-scatter", grads, 1.0))
                found.append(Exchange(axis, "all-gather", weights, 1.0))
            else:
                found.append(Exchange(axis, "all-reduce", grads, 1.0))
        return tuple(found)

    def _exposed_data(self, layout: Layout, shape: Shape, network: StepNetwork, layers: int) -> float:
        """Return what of it nothing hides [s]."""
        moved = self._data(layout, layers)
        if not self.training.overlap_gradients:
            return _sum(moved, network)
        gather = sum(each.one(network) for each in moved if each.collective == "all-gather")
        reduce = sum(each.one(network) for each in moved if each.collective != "all-gather")
        forward, backward = self._mean_layer(shape)
        if layout.zero_stage == 3:  # noqa: PLR2004 -- ZeRO 3
            late = max(gather - forward, 0.0) + max(gather + reduce - backward, 0.0)
            return self._batches(layout) * (layers * late + gather + reduce)
        others = layers - 1  # that compute while a layer's bucket is under way
        return max(reduce - others * backward, reduce / layers) + max(
            gather - others * forward, gather / layers
        )

    def _optimizer(self, layout: Layout) -> float:
        """Return the time of the optimizer [s]."""
        common, routed = parameters_of_rank(self.model, layout)
        ranks = layout.dp * layout.cp if layout.zero_stage else 1
        copies = max(layout.dp * layout.cp // layout.ep, 1) if layout.zero_stage else 1
        return self.device.memory(_UPDATE * (common / ranks + routed / copies))

    def _masked(self) -> float:
        """Return the FLOPs of attention that a causal mask makes useless."""
        inner = self.model.heads * (self.model.size_of_query + self.model.size_of_value)
        return 3.0 * self.tokens * self.model.layers * self.sequence * inner

    def _recomputed(self, layout: Layout, shape: Shape) -> float:
        """Return the FLOPs done again over the model's."""
        if layout.recompute == "full":
            return 1 / 3
        if layout.recompute == "selective" and not shape.flash:
            inner = self.model.heads * (self.model.size_of_query + self.model.size_of_value)
            core = 2.0 * self.sequence * inner * self.model.layers
            return core * self.tokens / model_flops(self.model, self.tokens, self.sequence)
        return 0.0


def _sum(exchanges: tuple[Exchange, ...], network: StepNetwork) -> float:
    """Return how long exchanges take, one after another [s]."""
    return sum(each.on(network) for each in exchanges)
