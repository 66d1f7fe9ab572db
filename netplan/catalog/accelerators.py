"""The accelerators that are known: peak rates, memory and scale-up domain, with source and confidence."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Gt
from pydantic import Strict, TypeAdapter

from netplan.catalog.shipped import Item
from netplan.errors import CatalogError, did_you_mean
from netplan.spec.base import SpecModel
from netplan.spec.quantity import Count, Name, Rate, Size
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

__all__ = ["Accelerator", "Precision", "accelerators", "find_accelerator", "list_accelerators"]

Precision = Literal["bf16", "fp16", "fp8"]
Tera = Annotated[float, Strict(), Gt(0)]


class Accelerator(SpecModel):
    """A chip."""

    name: Name
    """Name in the catalogue."""
    description: str
    """What it is."""
    matrix: dict[Precision, Tera]
    """Dense peak of matrix products by precision [1e12 FLOP/s]."""
    vector: Tera
    """Peak of elementwise operations [1e12 FLOP/s]."""
    memory: Size
    """Memory."""
    memory_rate: Rate
    """Its bandwidth."""
    scale_up: Rate
    """Bandwidth of the scale-up domain, per accelerator and direction."""
    domain: Count
    """Accelerators of a scale-up domain."""
    confidence: Literal["published", "vendor-claim", "estimate"]
    """How far the figures can be trusted."""
    source: str
    """Where they come from."""

    def peak(self, precision: Precision) -> float:
        """Return the dense peak of matrix products [FLOP/s].

        Raises
        ------
        CatalogError
            It has none in this precision.
        """
        if precision not in self.matrix:
            raise CatalogError(
                f"{self.name} has no {precision}: {', '.join(self.matrix)}", hint="--precision bf16 or fp16"
            )
        return self.matrix[precision] * 1e12


class _File(SpecModel):
    accelerators: tuple[Accelerator, ...]
    """The table."""


@cache
def accelerators() -> dict[str, Accelerator]:
    """Return all accelerators by name."""
    path = Path(__file__).with_name("data") / "chips" / "accelerators.yaml"
    found = validate(TypeAdapter(_File), parse_yaml(path.read_bytes(), "accelerators.yaml"))
    return {each.name: each for each in found.accelerators}


def list_accelerators() -> list[Item]:
    """Return all accelerators, with how far their figures can be trusted."""
    found = accelerators().values()
    return [Item(each.name, each.confidence, each.description, each.source) for each in found]


def find_accelerator(name: str) -> Accelerator:
    """Return an accelerator.

    Raises
    ------
    CatalogError
        There is none of that name.
    """
    known = accelerators()
    if name not in known:
        near = did_you_mean(name, known)
        raise CatalogError(
            f"accelerator {name!r} is not one of {', '.join(known)}",
            hint=f"did you mean {near}?" if near else None,
        )
    return known[name]
