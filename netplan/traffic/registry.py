"""The traffic patterns, by the ``kind`` of their spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import TrafficError
from netplan.registry import Registry

if TYPE_CHECKING:
    import numpy as np

    from netplan.fabric import Fabric
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement

    _Build = Callable[[Fabric, Any, Placement, np.random.Generator], Sequence[PhaseTraffic]]


@dataclass(frozen=True)
class Pattern:
    """A kind of traffic."""

    kind: str
    summary: str
    """What it captures, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    build: _Build
    """Make the flows of each phase from fabric, spec, placement and random generator."""
    busbw_factor: Callable[[int], float] | None = None
    """Bus over algorithm bandwidth, given the number of ranks; None when it is no collective."""


#: Every pattern by kind; adding one adds its file here.
PATTERNS: Registry[Pattern] = Registry(
    "kind",
    "netplan.traffic",
    (
        "collectives",
        "all_to_all",
        "rooted",
        "gather",
        "send_recv",
        "permutation",
        "incast",
        "point_to_point",
        "flow_list",
    ),
    TrafficError,
)


@dataclass(frozen=True)
class Algorithm:
    """A schedule of some collectives."""

    name: str
    kinds: tuple[str, ...]
    """Collectives that have it."""
    summary: str
    """What it captures, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    build: _Build
    """Make the flows of each phase from fabric, spec, placement and random generator."""


#: Algorithms of all-reduce, all-gather, reduce-scatter by name; adding one adds its file here.
ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    "netplan.traffic",
    (
        "ring",
        "tree",
        "halving_doubling",
        "recursive_doubling",
        "hierarchical",
        "in_network",
        "nvls",
        "pat",
    ),
    TrafficError,
)


def algorithm(name: str, *kinds: str, summary: str, leaves_out: str) -> Callable[[_Build], _Build]:
    """Register the function below as the builder of an algorithm."""

    def register(build: _Build) -> _Build:
        ALGORITHMS.add(name, build.__module__, Algorithm(name, kinds, summary, leaves_out, build))
        return build

    return register


def pattern(
    kind: str, *, summary: str, leaves_out: str, busbw_factor: Callable[[int], float] | None = None
) -> Callable[[_Build], _Build]:
    """Register the function below as the builder of a kind."""

    def register(build: _Build) -> _Build:
        PATTERNS.add(kind, build.__module__, Pattern(kind, summary, leaves_out, build, busbw_factor))
        return build

    return register
