"""What a GPU has to hold: weights, gradients, optimizer, activations.

Per parameter on the GPU (Rajbhandari et al., *ZeRO*, SC 2020; Megatron-Core): 2 bytes of weight, the
gradient in 2 or 4 bytes, 12 bytes of optimizer (weight and two moments of Adam in 32 bits). ZeRO 1 splits
the optimizer over the data-parallel ranks, ZeRO 2 the gradients too, ZeRO 3 the weights too; experts are
split over the ranks that hold the same ones.

Activations of a layer per micro-batch (Korthikanti et al. 2022, generalised to grouped-query attention and
gated networks), s b tokens, t tensor ranks: norms 4 h, attention 2 h (its input) + 2 (heads + 2 kv) d + 2
heads d, feed-forward 2 h + 2 (2 + 1) ffn or 2 x 2 ffn, a mask of h for each dropout; divided by t, with
sequence parallelism all of it. Latent attention has its own sizes of query, key and value, and keeps what
it compresses them to on every tensor rank. Without fused attention scores, softmax and mask: 5 heads s
each, unless recomputed (selective). Full recomputation keeps the layer's input, 2 h, and one layer whole.
For h heads of d and ffn = 4 h this is their 34 s b h, and 5 a s^2 b.

In flight: the first stage holds pp micro-batches of all its layers, with v virtual stages pp + (pp - 1)/v;
the last stage one, with virtual stages pp - (pp - 1)/v, and the logits in 32 bits. The fuller of the two
counts. `RESERVE` is for the driver, communicators and fragmentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netplan.spec.model import ModelSpec
    from netplan.spec.training import TrainingSpec
    from netplan.training.layouts import Layout

__all__ = ["RESERVE", "Memory", "memory_of", "parameters_of_rank", "stage_layers"]

#: What the model cannot have [bytes].
RESERVE = 3.0 * 2**30

_WEIGHT, _OPTIMIZER = 2.0, 12.0


@dataclass(frozen=True)
class Memory:
    """What the fullest GPU holds [bytes]."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    reserve: float = RESERVE

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.reserve


def stage_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Return the layers of each stage: equal, or one less at both ends (see `netplan.training.layouts`).

    Examples
    --------
    >>> stage_layers(96, 8)
    (12, 12, 12, 12, 12, 12, 12, 12)
    >>> stage_layers(126, 16)[:2], sum(stage_layers(126, 16))
    ((7, 8), 126)
    """
    if layers % stages == 0:
        return (layers // stages,) * stages
    if stages > 1 and (layers + 2) % stages == 0:
        each = (layers + 2) // stages
        return (each - 1, *(each,) * (stages - 2), each - 1)
    most, over = divmod(layers, stages)
    return tuple(most + (1 if place < over else 0) for place in range(stages))


def parameters_of_rank(model: ModelSpec, layout: Layout) -> tuple[float, float]:
    """Return the parameters of the fullest GPU before ZeRO: common ones, and those of experts."""
    layers = max(stage_layers(model.layers, layout.pp))
    share = model.expert_layers / model.layers
    own = model.attention_parameters() * layers + model.dense_parameters() * layers * (1 - share)
    own += model.router_parameters() * layers * share
    embedding = model.embedding_parameters() * (2 if not model.tied and layout.pp == 1 else 1)
    routed = 0.0
    if model.experts is not None:
        routed = model.expert_parameters() * model.experts.count / layout.ep * layers * share
    return (own + embedding) / layout.tp, routed / layout.tp


def memory_of(model: ModelSpec, training: TrainingSpec, layout: Layout) -> Memory:
    """Return what the fullest GPU holds."""
    common, routed = parameters_of_rank(model, layout)
    ranks = layout.dp * layout.cp
    copies = max(ranks // layout.ep, 1)

    def split(stage: int) -> float:
        if layout.zero_stage < stage:
            return common + routed
        return common / ranks + routed / copies

    return Memory(
        weights=_WEIGHT * split(3),
        gradients=training.gradient_bytes * split(2),
        optimizer=_OPTIMIZER * split(1),
        activations=_activations(model, training, layout),
    )


def _activations(model: ModelSpec, training: TrainingSpec, layout: Layout) -> float:
    sequence = training.sequence or model.sequence
    tokens = layout.micro_batch * sequence / layout.cp
    split = layout.tp if training.sequence_parallel else 1
    ffn: float = model.ffn
    if model.experts is not None:
        ffn = max(
            ffn if model.experts.dense_layers else 0,
            model.experts.ffn * (model.experts.top_k + model.experts.shared),
        )
    masks = model.hidden * (2 if training.dropout else 0)
    kept = 8.0 * model.hidden + masks
    attention = model.heads * (model.size_of_query + model.size_of_value) + model.width_of_keys_and_values
    inside = 2.0 * attention + (6.0 if model.gated else 4.0) * ffn
    if model.latent is not None:  # what queries, keys and values are made of; every tensor rank has it whole
        kept += 2.0 * split * (model.latent.query_rank + model.latent.kv_rank + model.latent.rope)
    scores = 0.0
    if not training.flash:
        scores = (5.0 if training.dropout else 4.0) * model.heads * sequence / layout.tp
    layer = kept / split + inside / layout.tp + (0.0 if layout.recompute == "selective" else scores)
    whole = kept / split + inside / layout.tp + scores
    stages = stage_layers(model.layers, layout.pp)
    batches = max(training.global_batch / (layout.dp * layout.micro_batch), 1.0)
    virtual = layout.virtual_stages
    first = layout.pp + (layout.pp - 1) / virtual if virtual > 1 else float(layout.pp)
    last = layout.pp - (layout.pp - 1) / virtual if virtual > 1 else 1.0

    def stored(layers: int, in_flight: float) -> float:
        held = layers * min(in_flight, batches)
        if layout.recompute == "full":
            return 2.0 * model.hidden / split * held + whole
        return layer * held

    logits = 4.0 * model.vocabulary / layout.tp
    return tokens * max(stored(max(stages), first), stored(stages[-1], last) + logits)
