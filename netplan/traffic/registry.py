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
    ("ring", "all_to_all", "permutation", "incast", "point_to_point", "flow_list"),
    TrafficError,
)


def pattern(
    kind: str, *, summary: str, leaves_out: str, busbw_factor: Callable[[int], float] | None = None
) -> Callable[[_Build], _Build]:
    """Register the function below as the builder of a kind."""

    def register(build: _Build) -> _Build:
        PATTERNS.add(kind, build.__module__, Pattern(kind, summary, leaves_out, build, busbw_factor))
        return build

    return register
