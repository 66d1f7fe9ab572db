"""Buffers of the shipped switches: how each counts headroom, by part."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from netplan.spec.buffers import BuffersFileSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netplan.spec.buffers import BufferSpec

__all__ = ["shipped_buffers"]

_DATA = Path(__file__).resolve().parent / "data" / "buffers"


@cache
def shipped_buffers() -> Mapping[str, BufferSpec]:
    """Return how each part of the catalogue counts its buffer, by its name; unknown ones are missing."""
    found: dict[str, BufferSpec] = {}
    for path in sorted(_DATA.glob("*.yaml")):
        spec = validate(BuffersFileSpec, parse_yaml(path.read_bytes(), path.name))
        for each in spec.buffers:
            found |= dict.fromkeys(each.switches, each)
    return found
