"""How long the operations of a layer take on an accelerator.

Time of an operation = FLOPs / (peak x efficiency(FLOPs)) + bytes / (memory rate x efficiency(bytes)).

Large matrix products reach `ACHIEVABLE` of the peak: what was measured, not what data sheets say. A100:
267.9 of 312 TFLOP/s (stas00/ml-engineering, compute/accelerator). Later chips cannot hold their clock under
products of real numbers: H100 and H200 720 of 989 in bf16 and 1,280 of 1,979 in fp8, MI300X 620 of 1,307
and 990 of 2,615 (SemiAnalysis, *MI300X vs H100 vs H200*, December 2024; the best shapes with kind data
reach 794 and 782). B200: 1,745 of 2,250 with kind data (ml-engineering), less the tenth that H100 loses.
Smaller products lose as in Calculon's systems ``a100_80g`` and ``h100_80g_nvl8`` (Isaev et al., *Calculon*,
SC 2023; calculon-ai/calculon @4f81f029): factors 1, 0.95, 0.63, 0.1 from 128, 16 and 1 GFLOP. From there
too: of elementwise operations 0.95, 0.5, 0.1 of the vector peak from 16 and 1 GFLOP; of memory 0.9, 0.75,
0.6, 0.3 from 100, 10 and 1 MB; compute and memory are not overlapped. None of it is fitted to training
runs.

An operation is a matrix product (m, k) x (k, n), 2 m k n FLOPs, which reads and writes (m k + k n + m n)
elements, or an elementwise one of so many FLOPs and bytes. In the backward pass a matrix product is two:
gradients of its input and of its weights.

*Attention.* ``flash`` (Dao et al. 2022): scores are never written; half of the products of a causal mask is
left out; `FLASH` of the matrix peak is reached. Otherwise scores, softmax and dropout are written and read,
whole.

Valid for decoder-only transformers from some hundred million parameters on; not for inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.catalog.accelerators import Accelerator, Precision
    from netplan.spec.model import ModelSpec

__all__ = ["Device", "LayerTime", "Shape", "head_time", "layer_flops", "layer_time", "model_flops"]

_TERA, _GIGA, _MEGA = 1e12, 1e9, 1e6

#: From so many GFLOP on (matrix), GFLOP (vector), MB (memory): part of what is achievable.
_MATRIX = ((128.0, 1.0), (16.0, 0.95), (1.0, 0.63), (0.0, 0.1))
_VECTOR = ((16.0, 0.95), (1.0, 0.5), (0.0, 0.1))
_MEMORY = ((100.0, 0.90), (10.0, 0.75), (1.0, 0.6), (0.0, 0.3))

#: Part of the matrix peak that large products reach, by accelerator. Not measured, so supposed: V100 as
#: A100, H20 (whose clock has room) 0.9, GB200 as B200, Ascend and Kunlun 0.75.
ACHIEVABLE = {
    "v100": 0.859,
    "a100": 0.859,
    "a100-40g": 0.859,
    "h100": 0.728,
    "h800": 0.728,
    "h200": 0.728,
    "h20": 0.9,
    "b200": 0.70,
    "gb200": 0.70,
    "mi300x": 0.474,
    "ascend-910b": 0.75,
    "kunlun-p800": 0.75,
}

#: The same of 8-bit products, over that of 16 bits.
EIGHT_BITS = {"h100": 0.89, "h800": 0.89, "h200": 0.89, "mi300x": 0.8}

#: Of an accelerator that is not in the table.
ACHIEVABLE_ELSE = 0.75

#: Part of the achievable that fused attention reaches, forward and backward (FlashAttention-2 on A100,
#: 0.6 to 0.7 and 0.5 to 0.6 of the peak; FlashAttention-3 on H100 alike).
FLASH, FLASH_BACK = 0.75, 0.65

#: Bytes of an activation and of a weight in a product.
_BYTES = 2.0

#: FLOPs of an element: norm, GELU or SiLU, softmax, dropout or residual.
_NORM, _ACTIVATION, _SOFTMAX, _ADD = 9.0, 8.0, 5.0, 1.0


@dataclass(frozen=True)
class Device:
    """An accelerator in a precision."""

    accelerator: Accelerator
    precision: Precision = "bf16"

    @property
    def peak(self) -> float:
        """Dense peak of matrix products [FLOP/s]."""
        return self.accelerator.peak(self.precision)

    def matrix(self, flops: float) -> float:
        """Return the time of matrix products of so many FLOPs [s]."""
        held = ACHIEVABLE.get(self.accelerator.name, ACHIEVABLE_ELSE)
        if self.precision == "fp8":
            held *= EIGHT_BITS.get(self.accelerator.name, 0.9)
        return flops / (self.peak * held * _part(_MATRIX, flops / _GIGA)) if flops else 0.0

    def fused(self, flops: float, part: float) -> float:
        """Return the time of fused attention of so many FLOPs [s]."""
        held = ACHIEVABLE.get(self.accelerator.name, ACHIEVABLE_ELSE)
        # Attention is not done in 8 bits.
        peak = self.accelerator.peak("bf16" if self.precision == "fp8" else self.precision)
        return flops / (peak * held * part) if flops else 0.0

    def vector(self, flops: float) -> float:
        """Return the time of elementwise FLOPs [s]."""
        rate = self.accelerator.vector * _TERA
        return flops / (rate * _part(_VECTOR, flops / _GIGA)) if flops else 0.0

    def memory(self, moved: float) -> float:
        """Return the time to move so many bytes [s]."""
        return moved / (self.accelerator.memory_rate * _part(_MEMORY, moved / _MEGA)) if moved else 0.0


def _part(table: Sequence[tuple[float, float]], size: float) -> float:
    return next(part for least, part in table if size >= least)


@dataclass(frozen=True)
class Shape:
    """What a GPU has of a micro-batch."""

    batch: int
    """Sequences."""
    tokens: int
    """Tokens of a sequence on this GPU: sequence / cp."""
    sequence: int
    """Tokens that they attend to."""
    tp: int = 1
    sequence_parallel: bool = True
    """Norms, dropout and residuals are split over the tensor ranks too."""
    ep: int = 1
    flash: bool = True
    dropout: bool = False

    @property
    def all_tokens(self) -> int:
        """Tokens of the micro-batch on this GPU."""
        return self.batch * self.tokens

    @property
    def split(self) -> int:
        """Ranks that norms are split over."""
        return self.tp if self.sequence_parallel else 1


@dataclass(frozen=True)
class LayerTime:
    """Times of a layer for one micro-batch on one GPU, communication aside [s]."""

    forward: float
    backward: float
    attention: float
    """Of the forward pass, what selective recomputation does again: scores, softmax, dropout, values."""
    attention_products: float
    """Of that, products; the rest is elementwise."""


class _Sum:
    """Adds up operations, forward and backward."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.forward = self.backward = 0.0

    def product(self, m: float, k: float, n: float, times: float = 1.0, *, weights: bool = True) -> None:
        """Add ``times`` products; of activations alone both gradients are of inputs."""
        flops, moved = 2.0 * m * k * n, _BYTES * (m * k + k * n + m * n)
        each = self.device.matrix(flops) + self.device.memory(moved)
        gradient = self.device.matrix(flops) + self.device.memory(
            _BYTES * (m * k + m * n) + (4.0 if weights else _BYTES) * k * n
        )
        self.forward += times * each
        self.backward += times * (each + gradient)

    def elementwise(self, elements: float, flops: float, reads: float = 1.0, *, back: float = 1.5) -> None:
        """Add an operation that reads so many tensors of elements and writes one."""
        moved = _BYTES * elements * (reads + 1.0)
        each = self.device.vector(flops * elements) + self.device.memory(moved)
        self.forward += each
        self.backward += back * each


def layer_time(device: Device, model: ModelSpec, shape: Shape, *, experts: bool = False) -> LayerTime:
    """Return the time of a transformer layer.

    Parameters
    ----------
    device, model, shape
        Where, what, and how much of it.
    experts
        Whether it is a layer of experts.
    """
    done = _Sum(device)
    own = shape.all_tokens * model.hidden / shape.split
    done.elementwise(own, _NORM)
    core = _attention(done, device, model, shape)
    _add(done, own, shape)
    done.elementwise(own, _NORM)
    if experts:
        _experts(done, model, shape)
    else:
        _feed_forward(done, model, shape.all_tokens, model.ffn / shape.tp, 1.0)
    _add(done, own, shape)
    return LayerTime(done.forward, done.backward, *core)


def _add(done: _Sum, elements: float, shape: Shape) -> None:
    """Add dropout, where there is one, and the residual."""
    if shape.dropout:
        done.elementwise(elements, _ADD)
    done.elementwise(elements, _ADD, reads=2.0, back=0.5)


def _attention(done: _Sum, device: Device, model: ModelSpec, shape: Shape) -> tuple[float, float]:
    """Add the attention; return the time of its core and of the products in it, forward."""
    t, h, tokens = shape.tp, model.hidden, shape.all_tokens
    heads = model.heads / t
    if model.latent is None:
        size = value = model.size_of_head
        kv = model.heads_of_keys * size / t
        done.product(tokens, h, heads * size + 2 * kv)
    else:
        a = model.latent
        size, value = a.rope + a.nope, a.value
        done.product(tokens, h, a.query_rank + a.kv_rank + a.rope)
        done.product(tokens, a.query_rank, heads * size)
        done.product(tokens, a.kv_rank, heads * (a.nope + a.value))
    if model.positions == 0:  # rotary positions on queries and keys
        done.elementwise(2 * tokens * heads * size, 3.0, back=1.0)
    before = done.forward
    flops = 2.0 * shape.batch * heads * shape.tokens * shape.sequence * (size + value)
    if shape.flash:
        core = products = device.fused(flops / 2, FLASH)
        done.forward += core
        done.backward += device.fused(flops / 2 * 2.5, FLASH_BACK)  # scores are made again
    else:
        times = shape.batch * heads
        done.product(times * shape.tokens, size, shape.sequence, weights=False)
        products = done.forward - before
        scores = times * shape.tokens * shape.sequence
        done.elementwise(scores, _SOFTMAX)
        if shape.dropout:
            done.elementwise(scores, _ADD)
        middle = done.forward
        done.product(times * shape.tokens, shape.sequence, value, weights=False)
        products += done.forward - middle
        core = done.forward - before
    done.product(tokens, heads * value, h)
    return core, products


def _feed_forward(done: _Sum, model: ModelSpec, tokens: float, inner: float, times: float) -> None:
    """Add ``times`` feed-forward networks over so many tokens each."""
    done.product(tokens, model.hidden, inner * (2 if model.gated else 1), times)
    done.elementwise(times * tokens * inner, _ACTIVATION, reads=2.0 if model.gated else 1.0, back=1.0)
    done.product(tokens, inner, model.hidden, times)


def _experts(done: _Sum, model: ModelSpec, shape: Shape) -> None:
    """Add router, shared experts and the routed ones of this GPU, their tokens spread evenly."""
    experts = model.experts
    assert experts is not None
    tokens = shape.all_tokens
    done.product(tokens / shape.split, model.hidden, experts.count)
    if experts.shared:
        _feed_forward(done, model, tokens, experts.shared * experts.ffn / shape.tp, 1.0)
    local = experts.count / shape.ep
    each = tokens * experts.top_k / local  # of all ranks of the expert group, on this one
    _feed_forward(done, model, each, experts.ffn / shape.tp, local)
    done.elementwise(2 * tokens * experts.top_k * model.hidden / shape.split, _ADD, back=1.0)  # to and from


def head_time(device: Device, model: ModelSpec, shape: Shape) -> tuple[float, float]:
    """Return forward and backward of the output layer and the loss [s]."""
    done = _Sum(device)
    vocabulary = model.vocabulary / shape.tp
    done.elementwise(shape.all_tokens * model.hidden / shape.split, _NORM)
    done.product(shape.all_tokens, model.hidden, vocabulary)
    done.elementwise(2 * shape.all_tokens * vocabulary, _SOFTMAX, back=1.0)  # in 32 bits
    return done.forward, done.backward


def layer_flops(model: ModelSpec, tokens: float, sequence: float, *, experts: bool) -> float:
    """Return the FLOPs of the products of a layer's forward pass, attention whole, whatever its mask."""
    if model.latent is None:
        size = value = model.size_of_head
        projections = model.hidden * (model.heads + 2 * model.heads_of_keys) * size
    else:
        a = model.latent
        size, value = a.rope + a.nope, a.value
        projections = model.hidden * (a.query_rank + a.kv_rank + a.rope)
        projections += model.heads * (a.query_rank * size + a.kv_rank * (a.nope + a.value))
    projections += model.heads * value * model.hidden
    inner = float((3 if model.gated else 2) * model.hidden * model.ffn)
    if experts:
        spec = model.experts
        assert spec is not None
        inner = (spec.top_k + spec.shared) * model.expert_parameters() + model.hidden * spec.count
    return 2.0 * tokens * (projections + inner + model.heads * sequence * (size + value))


def model_flops(model: ModelSpec, tokens: float, sequence: float) -> float:
    """Return the FLOPs of a step over so many tokens: three times the products of the forward pass.

    As Megatron, PaLM and llm-foundry count them: attention whole, nothing recomputed. Narayanan et al. 2021:
    72 tokens L h^2 (1 + s / 6h + V / 12hL) for ffn = 4h.
    """
    dense = model.layers - model.expert_layers
    forward = dense * layer_flops(model, tokens, sequence, experts=False)
    if model.experts is not None:
        forward += model.expert_layers * layer_flops(model, tokens, sequence, experts=True)
    return 3.0 * (forward + 2.0 * tokens * model.hidden * model.vocabulary)
