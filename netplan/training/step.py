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
  the layer before, and the first;
* *sharing*: communication beside computation takes `SHARED` of the accelerator from it: NCCL's channels
  have a multiprocessor each, 16 to 20 of 108 to 132 (Calculon's processor_usage is 0.15 too);
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
from netplan.training.memory import Memory, memory_of, parameters_of_rank, stage_layers

if TYPE_CHECKING:
    from netplan.catalog.accelerators import Accelerator
    from netplan.spec.model import ModelSpec
    from netplan.spec.training import TrainingSpec
    from netplan.training.jobs import Exchange, StepNetwork
    from netplan.training.layouts import Layout

__all__ = ["StepResult", "StepTimer", "check_layout"]

#: Bytes of an activation.
_BYTES = 2.0

#: Part of the accelerator that communication takes from computation beside it.
SHARED = 0.15

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
    """Communication that nothing hides, by axis: tp, ep, cp, pp, dp [s]."""
    total: dict[str, float]
    """All communication, hidden or not, by axis [s]."""
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
        shape, batches = self._shape(layout), self.training.global_batch // (layout.dp * layout.micro_batch)
        stages = stage_layers(self.model.layers, layout.pp)
        compute, again, tp, ep, cp = self._stages(layout, shape, network, stages)
        busy = [c + t + e + x for c, t, e, x in zip(compute, tp, ep, cp, strict=True)]
        slowest = max(range(layout.pp), key=busy.__getitem__)
        bubble = (sum(busy) - busy[slowest]) / layout.virtual_stages
        send, sends = self._sends(layout, shape, network, batches)
        gradients, exposed_dp = self._data(layout, shape, network, stages[slowest], batches)
        optimizer = self._optimizer(layout)
        exposed = {
            "tp": batches * tp[slowest],
            "ep": batches * ep[slowest],
            "cp": batches * cp[slowest],
            "pp": sends,
            "dp": exposed_dp + SHARED * max(gradients - exposed_dp, 0.0),
        }
        compute_s = batches * compute[slowest] + optimizer
        step = compute_s + bubble + sum(exposed.values())
        flops = model_flops(self.model, self.tokens, self.sequence)
        gpus = layout.n_ranks
        peak = gpus * self.device.peak * step
        twice = batches * again[slowest]
        hidden = 1 - self.training.overlap_tensor
        return StepResult(
            step_s=step,
            compute_s=compute_s,
            bubble_s=bubble,
            exposed=exposed,
            total={
                "tp": exposed["tp"] / hidden if hidden else 0.0,
                "ep": exposed["ep"],
                "cp": exposed["cp"],
                "pp": 2.0 * layout.virtual_stages * batches * send if layout.pp > 1 else 0.0,
                "dp": gradients,
            },
            recompute_s=twice,
            mfu=flops / peak,
            mfu_causal=(flops - self._masked()) / peak,
            hfu=flops / peak * (1 + self._recomputed(layout, shape)),
            tokens_per_s=self.tokens / step,
            flops_per_gpu=flops / (gpus * step),
            memory=memory_of(self.model, self.training, layout),
        )

    def exchanges(self, layout: Layout) -> tuple[Exchange, ...]:
        """Return what a step communicates, kind by kind."""
        asked: dict[tuple[str, str, float], float] = {}
        times = {"now": 1.0}

        class Listens:
            def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
                key = (axis, collective, bytes)
                asked[key] = asked.get(key, 0.0) + times["now"]
                return 0.0

        self.step(layout, Listens())
        from netplan.training.jobs import Exchange as One

        return tuple(One(axis, collective, size, count) for (axis, collective, size), count in asked.items())

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

    def _stages(
        self, layout: Layout, shape: Shape, network: StepNetwork, stages: tuple[int, ...]
    ) -> tuple[list[float], list[float], list[float], list[float], list[float]]:
        """Return for a micro-batch of each stage: computation, what is done again, exposed tp, ep, cp [s]."""
        share = self.model.expert_layers / self.model.layers
        dense = self._layer(shape, experts=False)
        routed = self._layer(shape, experts=True) if share else dense
        forward = (1 - share) * dense.forward + share * routed.forward
        backward = (1 - share) * dense.backward + share * routed.backward
        again = {"none": 0.0, "selective": dense.attention, "full": forward}[layout.recompute]
        if layout.recompute == "selective" and shape.flash:
            again = 0.0  # fused attention keeps no scores to begin with
        tp_each = self._tensor(layout, shape, network)
        ep_each = self._expert(layout, shape, network) * share
        cp_each = self._context(layout, shape, network, dense.attention)
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

    def _tensor(self, layout: Layout, shape: Shape, network: StepNetwork) -> float:
        """Return the exposed communication of the tensor ranks for a layer and micro-batch [s]."""
        if layout.tp == 1:
            return 0.0
        size = self._activation(layout, shape)
        again = 1.0 if layout.recompute == "full" else 0.0
        if self.training.sequence_parallel:
            each = network.time("tp", "all-gather", size) + network.time("tp", "reduce-scatter", size)
            time = (4.0 + 2.0 * again) * each
        else:
            time = (4.0 + 2.0 * again) * network.time("tp", "all-reduce", size)
        return time * (1 - self.training.overlap_tensor)

    def _expert(self, layout: Layout, shape: Shape, network: StepNetwork) -> float:
        """Return the exposed communication of the expert ranks for a layer of experts and micro-batch [s]."""
        if self.model.experts is None or layout.ep == 1:
            return 0.0
        size = self._activation(layout, shape) * self.model.experts.top_k / shape.split
        out = 0.5 if self.training.fp8_dispatch else 1.0
        again = 1.0 if layout.recompute == "full" else 0.0
        there = network.time("ep", "all-to-all", size * out)
        back = network.time("ep", "all-to-all", size) if out < 1 else there
        # Backward, gradients go out for what was combined (in 16 bits) and come back for what was dispatched.
        return ((1 + again) * (there + back) + 2 * back) * (1 - self.training.overlap_experts)

    def _context(self, layout: Layout, shape: Shape, network: StepNetwork, attention: float) -> float:
        """Return the exposed communication of the context ranks for a layer and micro-batch [s]."""
        if layout.cp == 1:
            return 0.0
        kv = self.model.heads_of_keys * self.model.size_of_head / layout.tp
        size = 2 * _BYTES * shape.batch * self.sequence * kv
        time = network.time("cp", "all-gather", size)
        hidden = attention * (layout.cp - 1) / layout.cp
        return max(time - hidden, 0.0) + max(2 * time - 2 * hidden, 0.0)

    # ---- Between stages and replicas

    def _sends(self, layout: Layout, shape: Shape, network: StepNetwork, batches: int) -> tuple[float, float]:
        """Return the time of one send between stages, and what of all of them is exposed [s]."""
        if layout.pp == 1:
            return 0.0, 0.0
        each = network.time("pp", "send-recv", self._activation(layout, shape) / shape.split)
        hides = self.training.overlap_pipeline
        if hides is None:
            hides = layout.virtual_stages > 1
        if hides:
            return each, 2.0 * (layout.pp - 1) * each
        return each, 2.0 * layout.virtual_stages * (batches + layout.pp - 1) * each

    def _data(
        self, layout: Layout, shape: Shape, network: StepNetwork, layers: int, batches: int
    ) -> tuple[float, float]:
        """Return the communication of the data-parallel ranks, and what of it is exposed [s]."""
        if layout.dp * layout.cp == 1:
            return 0.0, 0.0
        common, routed = parameters_of_rank(self.model, layout)
        share = self.model.expert_layers / self.model.layers
        dense = self._layer(shape, experts=False)
        mixed = self._layer(shape, experts=True) if share else dense
        forward = (1 - share) * dense.forward + share * mixed.forward
        backward = (1 - share) * dense.backward + share * mixed.backward
        axis = "dp-cp" if layout.cp > 1 else "dp"
        parts = [(axis, common)]
        if routed:
            parts.append(("edp", routed))
        copies = {"edp": layout.dp * layout.cp // layout.ep}
        total = exposed = 0.0
        for name, parameters in parts:
            if copies.get(name, 2) == 1:
                continue
            if layout.zero_stage == 3:  # noqa: PLR2004 -- ZeRO 3
                whole, own = self._sharded(network, name, parameters, layers, batches, forward, backward)
                total, exposed = total + whole, exposed + own
                continue
            grads, weights = self.training.gradient_bytes * parameters, _BYTES * parameters
            if layout.zero_stage:
                reduce = network.time(name, "reduce-scatter", grads)
                gather = network.time(name, "all-gather", weights)
            else:
                reduce, gather = network.time(name, "all-reduce", grads), 0.0
            total += reduce + gather
            if self.training.overlap_gradients:
                last = 1 / layers
                exposed += max(reduce - layers * backward * (1 - last), reduce * last)
                exposed += max(gather - layers * forward * (1 - last), gather * last)
            else:
                exposed += reduce + gather
        return total, exposed

    def _sharded(
        self,
        network: StepNetwork,
        axis: str,
        parameters: float,
        layers: int,
        batches: int,
        forward: float,
        backward: float,
    ) -> tuple[float, float]:
        """Return the communication of weights split over replicas (ZeRO 3), and what of it is exposed [s]."""
        each = parameters / layers
        gather = network.time(axis, "all-gather", _BYTES * each)
        reduce = network.time(axis, "reduce-scatter", self.training.gradient_bytes * each)
        total = batches * layers * (2 * gather + reduce)
        if not self.training.overlap_gradients:
            return total, total
        late = max(gather - forward, 0.0) + max(gather + reduce - backward, 0.0)
        return total, batches * (layers * late + gather + reduce)

    def _optimizer(self, layout: Layout) -> float:
        """Return the time of the optimizer [s]."""
        common, routed = parameters_of_rank(self.model, layout)
        ranks = layout.dp * layout.cp if layout.zero_stage else 1
        copies = max(layout.dp * layout.cp // layout.ep, 1) if layout.zero_stage else 1
        return self.device.memory(_UPDATE * (common / ranks + routed / copies))

    def _masked(self) -> float:
        """Return the FLOPs of attention that a causal mask makes useless."""
        latent = self.model.latent
        size = self.model.size_of_head
        inner = 2 * size if latent is None else latent.rope + latent.nope + latent.value
        return 3.0 * self.tokens * self.model.layers * self.model.heads * self.sequence * inner

    def _recomputed(self, layout: Layout, shape: Shape) -> float:
        """Return the FLOPs done again over the model's."""
        if layout.recompute == "full":
            return 1 / 3
        if layout.recompute == "selective" and not shape.flash:
            core = 4.0 * self.sequence * self.model.heads * self.model.size_of_head * self.model.layers
            return core * self.tokens / model_flops(self.model, self.tokens, self.sequence)
        return 0.0
