"""Packet buffers of switches: what a file of `netplan/catalog/data/buffers` may say.

How much memory a switch has is in the parts catalogue; here is how it counts headroom and shares the rest.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from annotated_types import Gt, Le
from pydantic import model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.parts import Sourced
from netplan.spec.quantity import Duration, Name, Size
from netplan.spec.tiers import PositiveRatio, refuse, repeated

__all__ = ["BufferSpec", "BuffersFileSpec"]


class BufferSpec(Sourced):
    """How one kind of switch counts its buffer."""

    name: Name
    """Name of the chip."""
    switches: tuple[Name, ...]
    """Parts of the catalogue that have it."""
    cell: Annotated[Size, Gt(0)]
    """A packet takes whole cells of this size."""
    packet: Annotated[Size, Gt(0)]
    """Smallest packet of the vendor's headroom table, on the wire: it takes one cell."""
    mac_phy: Size
    """Bytes in MAC and PHY of both ends."""
    response: Literal["ieee", "none"]
    """Reaction of the far end: by the quanta of IEEE 802.3, or within `processing`."""
    processing: Duration
    """The vendor's constant: time until the far end has stopped, beyond the other terms."""
    memory: Annotated[Size, Gt(0)] | None = None
    """Packet buffer of the chip, for parts whose own is not known."""
    usable: Annotated[PositiveRatio, Le(1)] = 1.0
    """Share of the memory that queues can use."""
    deep: bool = False
    """Off-chip memory holds the queues."""


class BuffersFileSpec(SpecModel):
    """A file of buffers."""

    buffers: tuple[BufferSpec, ...]
    """Kinds of switch."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        """Refuse repeated chips, and parts that two chips claim."""
        refuse(repeated((each.name for each in self.buffers), "buffers"))
        claimed = Counter(part for each in self.buffers for part in each.switches)
        refuse(
            Refusal(f"has {part!r} under two chips", hint="a part has one chip", path="buffers")
            for part, times in claimed.items()
            if times > 1
        )
        return self
