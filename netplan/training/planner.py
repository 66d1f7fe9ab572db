"""The layout and placement with the shortest step, for a model on a fabric.

Every layout of a space (`netplan.training.layouts`) that fits into memory is a candidate; its bounds are the
step with communication that takes no time, the step with NIC ports as the only limits, and the step on the
fabric (`netplan.training.search`). Networks of layouts that have a group size and stride in common share
results, so a search of thousands of layouts runs tens of patterns.

The *plain layout*, which the gain is held against, is what one would take without a search: packed hosts,
full recomputation, context ranks and ZeRO 3 only where nothing else fits, the fewest tensor and pipeline
ranks that hold the model, pipelines rather short, no virtual stages, the smallest micro-batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from netplan.errors import TrafficError, did_you_mean
from netplan.spec.traffic import PlacementSpec
from netplan.traffic.placement import Placement, place_ranks
from netplan.training.exchanges import StepNetwork
from netplan.training.groups import DEFAULT_ORDER, RankGrid
from netplan.training.layouts import Layout, LayoutSpace, layouts
from netplan.training.network import FabricNetwork, NetworkOptions
from netplan.training.search import Found, branch_and_bound

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.model import ModelSpec
    from netplan.spec.training import TrainingSpec

__all__ = [
    "AtLineRate",
    "BoundedNetwork",
    "LayoutSearch",
    "NetworkMaker",
    "StepModel",
    "plain_layout",
    "search_layouts",
    "space_of",
]

#: ZeRO stage that splits the weights.
_SHARDED = 3

#: Recomputation, the least first.
_RECOMPUTE = ("none", "selective", "full")


#: Context parallel sizes that are tried, and the fewest tokens of a rank.
_CONTEXT, _LEAST_TOKENS = (1, 2, 4, 8, 16, 32), 1024


#: Kinds of placement that need no list of hosts.
_PLACEMENTS = ("packed", "random", "fragmented", "rail-aware", "topology-aware")


class StepModel(Protocol):
    """What a search asks about a model on some accelerators."""

    def missing_bytes(self, layout: Layout) -> float:
        """Return how many bytes a GPU is short of; 0 or less when the layout fits."""

    def step_s(self, layout: Layout, network: StepNetwork) -> float:
        """Return the time of a step [s]; slower communication makes none shorter."""


class BoundedNetwork(StepNetwork, Protocol):
    """Times of communication, and what they cannot fall below."""

    def bound(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return a time that no routing can beat [s]."""


class _Free:
    """Communication that takes no time: one GPU's, or where computation alone is asked for."""

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return 0."""
        return 0.0

    bound = time


@dataclass(frozen=True, eq=False)
class AtLineRate:
    """A network with NIC ports and scale-up domains as the only limits."""

    network: BoundedNetwork

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return a time that no routing can beat [s]."""
        return self.network.bound(axis, collective, bytes)


@dataclass(eq=False)
class NetworkMaker:
    """Makes the network of any layout on one fabric; results are shared between layouts."""

    fabric: Fabric
    options: NetworkOptions = field(default_factory=NetworkOptions)
    placement: PlacementSpec = field(default_factory=PlacementSpec)
    """What the layouts' kinds of placement have in common: hosts of other jobs."""
    seed: int = 0
    _placements: dict[tuple[str, int], Placement] = field(default_factory=dict)
    _networks: dict[tuple[Any, ...], FabricNetwork] = field(default_factory=dict)
    _cache: dict[Any, Any] = field(default_factory=dict)

    def place(self, kind: str, ranks: int) -> Placement:
        """Return the placement of a kind for so many GPUs.

        Raises
        ------
        TrafficError
            There is no such kind, or the fabric has not as many GPUs.
        """
        if kind not in _PLACEMENTS:
            raise TrafficError(
                f"placement {kind!r} is not one of {', '.join(_PLACEMENTS)}",
                hint=did_you_mean(kind, _PLACEMENTS),
            )
        if (kind, ranks) not in self._placements:
            spec = PlacementSpec.model_validate({**self.placement.model_dump(), "kind": kind})
            self._placements[kind, ranks] = place_ranks(
                self.fabric, spec, ranks, np.random.default_rng(self.seed)
            )
        return self._placements[kind, ranks]

    def free_gpus(self) -> int:
        """Return the GPUs that no other job holds."""
        spec = PlacementSpec.model_validate({**self.placement.model_dump(), "kind": "packed"})
        return len(place_ranks(self.fabric, spec, None, np.random.default_rng(self.seed)))

    def different(self, kinds: Sequence[str], ranks: int) -> tuple[str, ...]:
        """Return the kinds of placement that differ for so many GPUs, the first of equal ones."""
        if ranks == 1:  # which is not traffic that could be placed
            return tuple(kinds[:1])
        seen: dict[bytes, str] = {}
        for kind in kinds:
            seen.setdefault(self.place(kind, ranks).host.tobytes(), kind)
        return tuple(seen.values())

    def network(self, layout: Layout) -> BoundedNetwork:
        """Return the network of a layout."""
        if layout.n_ranks == 1:
            return _Free()
        key = (layout.tp, layout.cp, layout.dp, layout.pp, layout.ep, layout.order, layout.placement)
        if key not in self._networks:
            grid = RankGrid(
                tp=layout.tp, cp=layout.cp, dp=layout.dp, pp=layout.pp, ep=layout.ep, order=layout.order
            )
            placed = self.place(layout.placement, layout.n_ranks)
            self._networks[key] = FabricNetwork(self.fabric, placed, grid, self.options, cache=self._cache)
        return self._networks[key]


@dataclass(frozen=True)
class LayoutSearch:
    """What a search for a layout found."""

    found: Found[Layout]
    plain: Layout
    """What one would take without a search."""
    plain_s: float
    """Its step [s]."""
    too_large: int
    """Layouts that do not fit into memory."""

    @property
    def best(self) -> Layout:
        """The layout with the shortest step."""
        return self.found.best

    @property
    def best_s(self) -> float:
        """Its step [s]."""
        return self.found.best_s

    @property
    def gain(self) -> float:
        """How much faster than the plain layout: its step over the best one's, less 1."""
        return self.plain_s / self.best_s - 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "candidates": self.found.candidates,
            "too_large": self.too_large,
            "run_on_fabric": self.found.evaluated[-1],
            "proven": self.found.is_proven,
            "bound_s": self.found.bound_s,
            "gain": self.gain,
            "plain": {"step_s": self.plain_s, "parallelism": layout_to_dict(self.plain)},
            "layouts": [
                {"step_s": step, "parallelism": layout_to_dict(layout)} for layout, step in self.found.ranking
            ],
        }


def layout_to_dict(layout: Layout) -> dict[str, Any]:
    """Return a layout as plain data."""
    return {
        "tp": layout.tp,
        "cp": layout.cp,
        "dp": layout.dp,
        "pp": layout.pp,
        "ep": layout.ep,
        "virtual_stages": layout.virtual_stages,
        "micro_batch": layout.micro_batch,
        "zero_stage": layout.zero_stage,
        "recompute": layout.recompute,
        "order": layout.order,
        "placement": layout.placement,
    }


def space_of(
    model: ModelSpec,
    training: TrainingSpec,
    gpus: int,
    scale_up: int,
    **chosen: Any,  # noqa: ANN401 -- LayoutSpace's fields
) -> LayoutSpace:
    """Return the layouts that are worth a look for a model on so many GPUs.

    Parameters
    ----------
    model
        The model.
    training
        Batch, sequence and what else a step is.
    gpus
        GPUs of the job.
    scale_up
        GPUs of a scale-up domain.
    **chosen
        Fields of `LayoutSpace` that are given: sizes to keep to, such as ``tp=(8,)``.

    Notes
    -----
    Context ranks are tried where each has 1,024 tokens or more; with fused attention selective recomputation
    is none, and only one of them is tried; weights are split over replicas (ZeRO 3) without pipelines only.
    """
    sequence = training.sequence or model.sequence
    free: dict[str, Any] = {
        "cp": tuple(cp for cp in _CONTEXT if sequence // cp >= _LEAST_TOKENS or cp == 1),
        "recompute": ("none", "full") if training.flash else _RECOMPUTE,
        "zero_stage": (1, 3),
        "order": (DEFAULT_ORDER, "tp-cp-ep-pp-dp"),
        "placement": ("packed", "topology-aware", "rail-aware"),
    }
    return LayoutSpace(
        gpus=gpus,
        scale_up=scale_up,
        layers=model.layers,
        heads=model.heads,
        kv_heads=model.heads_of_keys,
        sequence=sequence,
        global_batch=training.global_batch,
        experts=1 if model.experts is None else model.experts.count,
        **(free | chosen),
    )


def plain_layout(space: LayoutSpace, model: StepModel) -> Layout:
    """Return the layout that one would take without a search.

    Parameters
    ----------
    space
        What layouts there may be.
    model
        Says what fits.

    Raises
    ------
    TrafficError
        There is no layout, or none fits; with how many bytes the smallest is short of.
    """
    short = math.inf
    nearest: Layout | None = None
    gpus = "1 GPU" if space.gpus == 1 else f"{space.gpus:,} GPUs"

    def plainness(layout: Layout) -> tuple[int, ...]:
        return (
            int(layout.recompute == _RECOMPUTE[-1]),
            layout.cp,
            int(layout.zero_stage == _SHARDED),
            layout.tp * layout.pp,
            layout.pp,
            _RECOMPUTE.index(layout.recompute),
            layout.virtual_stages,
            layout.micro_batch,
            layout.zero_stage,
            -layout.ep,
        )

    first = (space.order[0], space.placement[0])
    for layout in sorted(
        (each for each in layouts(space) if (each.order, each.placement) == first), key=plainness
    ):
        missing = model.missing_bytes(layout)
        if missing <= 0:
            return layout
        if missing < short:
            short, nearest = missing, layout
    if nearest is None:
        raise TrafficError(
            f"no parallel sizes divide {gpus}, {space.layers} layers, {space.heads} heads and a "
            f"global batch of {space.global_batch:,}",
            hint="another number of GPUs or another global batch: a multiple of the data parallel size",
        )
    raise TrafficError(
        f"the model does not fit on {gpus}: tp {nearest.tp}, pp {nearest.pp}, cp {nearest.cp}, "
        f"dp {nearest.dp} with {nearest.recompute} recomputation is {short / 2**30:,.1f} GiB a GPU short",
        hint="more GPUs, ZeRO 3, or accelerators with more memory",
    )


def search_layouts(
    space: LayoutSpace,
    model: StepModel,
    networks: NetworkMaker,
    *,
    keep: int = 5,
    most: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> LayoutSearch:
    """Find the layouts with the shortest steps.

    Parameters
    ----------
    space
        What layouts there may be.
    model
        Memory and step time.
    networks
        The fabric.
    keep
        How many of the best are wanted, in order.
    most
        Most layouts to run on the fabric; None for as many as the proof takes.
    progress
        Called with (what, done, all).

    Returns
    -------
    LayoutSearch
        The best layout of all, unless the search was cut short.

    Raises
    ------
    TrafficError
        There is no layout, or none fits.
    """
    plain = plain_layout(space, model)
    space = replace(space, placement=networks.different(space.placement, space.gpus))
    free = _Free()
    fits: list[Layout] = []
    count = 0
    for layout in layouts(space):
        count += 1
        if model.missing_bytes(layout) <= 0:
            fits.append(layout)
    found = branch_and_bound(
        fits,
        (
            lambda layout: model.step_s(layout, free),
            lambda layout: model.step_s(layout, AtLineRate(networks.network(layout))),
            lambda layout: model.step_s(layout, networks.network(layout)),
        ),
        keep=keep,
        most=most,
        progress=progress,
    )
    known: Mapping[Layout, float] = dict(found.ranking)
    plain_s = known[plain] if plain in known else model.step_s(plain, networks.network(plain))
    return LayoutSearch(found=found, plain=plain, plain_s=plain_s, too_large=count - len(fits))
