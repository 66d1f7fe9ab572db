"""All the ways to lay a model on a number of GPUs.

A layout is a set of parallel sizes with what goes with them. Of all combinations those are listed that
frameworks take (Megatron-Core's checks in arguments.py and parallel_state.py):

* ``tp x cp x dp x pp`` are the GPUs; ``ep`` divides ``cp x dp`` and the experts;
* ``tp`` divides the attention heads and the heads of keys and values, and stays in a scale-up domain;
* ``pp x virtual_stages`` divides the layers, or the layers and 2: then the first and the last stage have one
  layer less, in exchange for the embedding and the loss (Llama 3 405B: 126 layers on 16 stages); virtual
  stages need ``pp`` of 2 or more, and micro-batches in multiples of ``pp``;
* ``2 cp`` divides the sequence (its parts are dealt out from both ends);
* ``dp x micro_batch`` divides the global batch;
* ZeRO 3 goes without pipeline stages, where every micro-batch would gather all weights again.

Whether the model fits into memory, and how long its step takes, is for others to say.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from netplan.training.groups import DEFAULT_ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Layout", "LayoutSpace", "layouts"]


#: ZeRO stage that splits the weights.
_SHARDED = 3


@dataclass(frozen=True, order=True)
class Layout:
    """Parallel sizes, schedule and placement."""

    tp: int
    cp: int
    dp: int
    pp: int
    ep: int = 1
    virtual_stages: int = 1
    micro_batch: int = 1
    """Sequences of a micro-batch."""
    zero_stage: int = 1
    recompute: str = "none"
    """none, selective or full."""
    order: str = DEFAULT_ORDER
    """Order of ranks, fastest coordinate first."""
    placement: str = "packed"
    """Kind of placement."""

    @property
    def n_ranks(self) -> int:
        """GPUs."""
        return self.tp * self.cp * self.dp * self.pp


@dataclass(frozen=True)
class LayoutSpace:
    """What layouts there may be."""

    gpus: int
    """GPUs of the job."""
    scale_up: int
    """GPUs of a scale-up domain."""
    layers: int
    heads: int
    kv_heads: int
    sequence: int
    """Tokens of a sequence."""
    global_batch: int
    """Sequences of a step."""
    experts: int = 1
    """Experts of a layer; 1 for dense models."""
    tp: tuple[int, ...] | None = None
    """Sizes to try; None for all that can be. The same below."""
    cp: tuple[int, ...] | None = (1,)
    dp: tuple[int, ...] | None = None
    pp: tuple[int, ...] | None = None
    ep: tuple[int, ...] | None = None
    virtual_stages: tuple[int, ...] | None = None
    micro_batch: tuple[int, ...] = (1, 2, 4, 8)
    zero_stage: tuple[int, ...] = (1,)
    recompute: tuple[str, ...] = ("none", "selective", "full")
    order: tuple[str, ...] = (DEFAULT_ORDER,)
    placement: tuple[str, ...] = ("packed",)


def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors, ascending.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    return tuple(d for d in range(1, number + 1) if number % d == 0)


def layouts(space: LayoutSpace) -> Iterator[Layout]:
    """Yield every layout of a space once, small parallel sizes first.

    Parameters
    ----------
    space
        What there may be.
    """
    sizes = [
        layout
        for tp in _tensor_sizes(space)
        for pp in _chosen(_stage_counts(space.layers), space.pp)
        for cp in _chosen(divisors(space.sequence), space.cp)
        for layout in _parallel(space, tp, pp, cp)
    ]
    rest = list(itertools.product(space.zero_stage, space.recompute, space.order, space.placement))
    for layout in sizes:
        for zero, recompute, order, placement in rest:
            if _same_stages(layout, order) and (zero < _SHARDED or layout.pp == 1):
                yield replace(layout, zero_stage=zero, recompute=recompute, order=order, placement=placement)


def _chosen(possible: tuple[int, ...], wanted: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the possible sizes that are wanted."""
    return possible if wanted is None else tuple(size for size in wanted if size in possible)


def _tensor_sizes(space: LayoutSpace) -> tuple[int, ...]:
    """Return the tensor sizes that heads and scale-up domain allow."""
    possible = tuple(
        size
        for size in divisors(space.heads)
        if size <= space.scale_up and space.scale_up % size == 0 and space.kv_heads % size == 0
    )
    return _chosen(possible, space.tp)


def _parallel(space: LayoutSpace, tp: int, pp: int, cp: int) -> Iterator[Layout]:
    """Yield the layouts of given tensor, pipeline and context sizes."""
    if space.gpus % (tp * pp * cp) or (cp > 1 and space.sequence % (2 * cp)):
        return
    dp = space.gpus // (tp * pp * cp)
    if space.dp is not None and dp not in space.dp:
        return
    experts = [ep for ep in divisors(space.experts) if cp * dp % ep == 0]
    for ep in _chosen(tuple(experts), space.ep):
        for micro in space.micro_batch:
            if space.global_batch % (dp * micro):
                continue
            batches = space.global_batch // (dp * micro)
            for stages in _virtual(space, pp, batches):
                yield Layout(tp, cp, dp, pp, ep, stages, micro)


def _virtual(space: LayoutSpace, pp: int, batches: int) -> tuple[int, ...]:
    """Return the numbers of virtual stages of a pipeline."""
    possible: tuple[int, ...] = (1,)
    if pp > 1 and batches % pp == 0:
        possible = tuple(count // pp for count in _stage_counts(space.layers) if count % pp == 0)
    return _chosen(possible, space.virtual_stages)


def _stage_counts(layers: int) -> tuple[int, ...]:
    """Return the numbers of stages that layers make: equal ones, or of one layer less at both ends."""
    even, less = divisors(layers), divisors(layers + 2)
    return tuple(sorted({*even, *(count for count in less if 1 < count <= (layers + 2) // 2)}))


def _same_stages(layout: Layout, order: str) -> bool:
    """Tell whether stages of dense layers and of experts are the same ranks in an order."""
    names = order.split("-")
    return layout.ep in (1, layout.cp) or names.index("pp") > names.index("dp")
