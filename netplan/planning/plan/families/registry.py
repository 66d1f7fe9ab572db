"""The generators of candidates, by the kind of fabric that they propose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError
from netplan.registry import Registry

if TYPE_CHECKING:
    from netplan.planning.plan.boxes import Box
    from netplan.planning.plan.request import Request

__all__ = ["GENERATORS", "Candidate", "Generator", "Ground", "generator", "ratio_label"]


@dataclass(frozen=True)
class Candidate:
    """A fabric that may fit, not yet sized."""

    name: str
    """Says what tells it apart: family, tiers, ports, planes, oversubscription."""
    family: str
    spec: dict[str, Any]
    """The fabric spec, as a YAML file says it."""
    parts: tuple[str, ...]
    """Switches of the catalogue that it can be built from."""
    nic_ports: int = 1
    """Ports of each NIC, which share its speed."""
    planes: int = 1
    """Networks that meet only inside hosts."""
    oversubscription: float = 1.0
    """NIC bandwidth over uplink bandwidth at the narrowest tier, as asked for."""


@dataclass(frozen=True)
class Ground:
    """What a generator builds on: the hosts of one site and the switches for a speed of NIC ports."""

    request: Request
    hosts: dict[str, Any]
    """``hosts`` of the spec."""
    boxes: Callable[[int], list[Box]]
    """Switches where a NIC has so many ports."""

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return int(self.hosts["count"])


@dataclass(frozen=True)
class Generator:
    """How a family is tried."""

    kind: str
    propose: Callable[[Ground], Iterator[Candidate]]
    """Yield candidates, from fewer tiers and smaller switches up."""


#: Every generator by the kind of its fabrics; adding a family adds its file here.
GENERATORS: Registry[Generator] = Registry(
    "family",
    "netplan.planning.plan.families",
    ("trees", "rails", "planes", "direct"),
    FabricError,
)


def generator(
    kind: str,
) -> Callable[[Callable[[Ground], Iterator[Candidate]]], Callable[[Ground], Iterator[Candidate]]]:
    """Register the function below as the generator of a kind."""

    def register(propose: Callable[[Ground], Iterator[Candidate]]) -> Callable[[Ground], Iterator[Candidate]]:
        GENERATORS.add(kind, propose.__module__, Generator(kind, propose))
        return propose

    return register


def ratio_label(ratio: float) -> str:
    """Return the end of a name: nothing for 1, ``-2to1`` for 2."""
    return "" if ratio == 1 else f"-{ratio:g}to1"
