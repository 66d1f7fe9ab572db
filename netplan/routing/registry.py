"""The routing schemes, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from netplan.errors import RoutingError
from netplan.registry import Registry

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, Routes, RoutingOptions

    _Route = Callable[[Fabric, FlowTable, RoutingOptions], Routes]

Transport = Literal["roce", "infiniband"]


@dataclass(frozen=True)
class RoutingScheme:
    """A way to choose paths."""

    name: str
    summary: str
    """What it captures, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    transport: Transport
    """Packet format and latencies that go with it."""
    uses_qps: bool
    """Whether the QPs of a flow may take different paths."""
    uses_seed: bool
    """Whether the seed changes the paths."""
    differs_by_structure: bool
    """Whether a fabric's structure decides which paths it lays, not only how fast they are found."""
    route: _Route
    """Route flows on a fabric."""


#: Every scheme by name; adding a scheme adds its file here.
SCHEMES: Registry[RoutingScheme] = Registry(
    "routing",
    "netplan.routing",
    (
        "ecmp",
        "rail_pinned",
        "spray",
        "adaptive",
        "minimal",
        "valiant",
        "ugal",
        "ib_static",
        "ib_random",
        "ideal",
    ),
    RoutingError,
)


def routing_scheme(
    name: str,
    *,
    summary: str,
    leaves_out: str,
    transport: Transport = "roce",
    uses_qps: bool = False,
    uses_seed: bool = False,
    differs_by_structure: bool = False,
) -> Callable[[_Route], _Route]:
    """Register the function below as a routing scheme."""

    def register(route: _Route) -> _Route:
        scheme = RoutingScheme(
            name, summary, leaves_out, transport, uses_qps, uses_seed, differs_by_structure, route
        )
        SCHEMES.add(name, route.__module__, scheme)
        return route

    return register
