"""The families of topologies, by the ``kind`` of their spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError
from netplan.registry import Registry

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import FabricSpec


@dataclass(frozen=True)
class Family:
    """A kind of fabric that netplan can build."""

    kind: str
    summary: str
    """What it is, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    build: Callable[[Any], Fabric]
    """Make the fabric from the validated spec of this kind."""


#: Every family by its kind; adding a family adds its file here.
FAMILIES: Registry[Family] = Registry(
    "kind",
    "netplan.topology",
    (
        "leaf_spine",
        "fat_tree",
        "clos",
        "rail_optimized",
        "rail_only",
        "multi_plane",
        "dual_tor",
        "dragonfly",
        "dragonfly_plus",
        "slim_fly",
        "torus",
        "hyperx",
        "metro",
        "custom",
    ),
    FabricError,
)


def family(
    kind: str, *, summary: str, leaves_out: str
) -> Callable[[Callable[[Any], Fabric]], Callable[[Any], Fabric]]:
    """Register the function below as the builder of a kind."""

    def register(build: Callable[[Any], Fabric]) -> Callable[[Any], Fabric]:
        FAMILIES.add(kind, build.__module__, Family(kind, summary, leaves_out, build))
        return build

    return register


def build_fabric(spec: FabricSpec) -> Fabric:
    """Build the fabric that a validated spec describes.

    Parameters
    ----------
    spec
        Any fabric spec.

    Returns
    -------
    Fabric
        Checked, with its spec kept in ``fabric.spec``.

    Raises
    ------
    FabricError
        The spec asks for something infeasible; the message names what is feasible.
    """
    return FAMILIES.find(spec.kind).build(spec)
