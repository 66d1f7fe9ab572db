"""Parts: what a file of switches, NICs, optics, cables and hosts may say.

Every figure carries where it comes from, when that was written and how far it can be trusted. A figure that
nobody publishes is left out: it is *unknown*, and totals that need it say "at least".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Generic, Literal, Self, TypeVar

from annotated_types import Gt
from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Duration, Length, Name, Size
from netplan.spec.tiers import PositiveRate, refuse, repeated

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CableSpec",
    "Cage",
    "FibreSpec",
    "Figure",
    "HostSpec",
    "LineTerminalSpec",
    "NicSpec",
    "OpticSpec",
    "PartSpec",
    "PartsFileSpec",
    "PortsSpec",
    "PriceSpec",
    "SwitchSpec",
]

T = TypeVar("T")

Cage = Literal["osfp-ihs", "osfp-rhs", "qsfp112", "qsfp-dd", "qsfp56", "qsfp28"]
"""Cages: OSFP with an integrated heat sink (finned top, switches) or a riding one (flat top, NICs), QSFP112,
QSFP-DD, QSFP56, QSFP28."""

Confidence = Literal["published", "vendor-claim", "estimate"]

Date = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$")]
"""When the source was written or read: year, year and month, or a day."""

_POWER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>k?W)")
_PRICE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *USD")


def _power(text: str) -> float | None:
    found = _POWER.fullmatch(text.strip())
    return None if found is None else float(found["number"]) * (1e3 if found["unit"] == "kW" else 1.0)


def _price(text: str) -> float | None:
    found = _PRICE.fullmatch(text.strip())
    return None if found is None else float(found["number"])


def _reader(parse: Callable[[str], float | None], what: str, example: str) -> BeforeValidator:
    def read(value: object) -> float:
        if isinstance(value, str):
            found = parse(value)
            if found is not None:
                return found
        raise Refusal(f"is not {what}, 0 or more", hint=f"write it with its unit, such as {example}")

    return BeforeValidator(read)


Power = Annotated[
    float,
    _reader(_power, "a power", "17 W or 1.72 kW"),
    WithJsonSchema({"type": "string", "examples": ["17 W"]}),
]
"""Power [W], written ``17 W`` or ``1.72 kW``."""

Money = Annotated[
    float,
    _reader(_price, "a price", "36000 USD"),
    WithJsonSchema({"type": "string", "examples": ["36000 USD"]}),
]
"""Money [USD], written ``36000 USD``."""


class Sourced(SpecModel):
    """Where a figure comes from."""

    source: Annotated[str, StringConstraints(min_length=1)]
    """Document, page or person; how it was derived, if it was."""
    date: Date
    """When that was written or read: ``"2024"``, ``2024-08`` or ``2024-08-31``."""
    confidence: Confidence
    """``published`` (the maker's document), ``vendor-claim`` (marketing, a reseller) or ``estimate``."""


class Figure(Sourced, Generic[T]):
    """One figure with its source."""

    value: T
    """The figure, with its unit."""


class PriceSpec(Sourced):
    """What one piece costs: a range."""

    low: Money
    """The lowest price seen."""
    high: Money
    """The highest price seen."""

    @model_validator(mode="after")
    def _low_is_lower(self) -> Self:
        """Refuse a range the wrong way round."""
        if self.low > self.high:
            raise Refusal(f"has low ({self.low:g} USD) above high ({self.high:g} USD)", hint="swap the two")
        return self

    @property
    def mid(self) -> float:
        """Middle of the range [USD]."""
        return (self.low + self.high) / 2


class PortsSpec(SpecModel):
    """How many ports there are when all run at one speed."""

    speed: PositiveRate
    """Line rate of each."""
    count: Count
    """Ports at that speed, those of split cages included."""


class CagesSpec(SpecModel):
    """The cages of a switch."""

    type: Cage
    """What they take."""
    count: Count
    """How many."""
    power: Power | None = None
    """The most that one cage gives to its module; unknown when omitted."""


class PartSpec(SpecModel):
    """What every part has."""

    name: Name
    """Name, unique among all parts."""
    description: str = ""
    """What it is, in a sentence."""
    vendor: str = ""
    """Who makes it."""
    price: PriceSpec | None = None
    """Price of one piece; unknown when omitted."""
    power_typical: Figure[Power] | None = None
    """Typical draw of one piece; of a switch without its optics, of a cable both ends together."""
    power_max: Figure[Power] | None = None
    """Largest draw of one piece; of a switch with the optics it holds, of a cable both ends together."""


def _ports_at(ports: Figure[tuple[PortsSpec, ...]] | None, speed: float) -> int:
    """Return the ports at a speed; 0 where that is not known."""
    return next((each.count for each in ports.value if each.speed == speed), 0) if ports else 0


class SwitchSpec(PartSpec):
    """A switch."""

    protocol: Literal["ethernet", "infiniband"]
    """What it speaks."""
    chip: str = ""
    """The silicon in it."""
    ports: Figure[tuple[PortsSpec, ...]] | None = None
    """Ports per speed; unknown when omitted, and then the part is never chosen by itself."""
    cages: Figure[CagesSpec] | None = None
    """What modules plug into; unknown when omitted."""
    rack_units: Figure[Count] | None = None
    """Height [rack units]."""
    buffer: Figure[Size] | None = None
    """Packet buffer, all ports together."""
    latency: Figure[Duration] | None = None
    """Port to port."""

    def ports_at(self, speed: float) -> int:
        """Return how many ports it has when all run at a speed [bytes/s]."""
        return _ports_at(self.ports, speed)


class NicSpec(PartSpec):
    """A network adapter."""

    ports: Figure[tuple[PortsSpec, ...]] | None = None
    """Ports per speed; unknown when omitted, and then the part is never chosen by itself."""
    cage: Figure[Cage] | None = None
    """What plugs into each port; unknown when omitted."""

    def ports_at(self, speed: float) -> int:
        """Return how many ports it has at a speed [bytes/s]."""
        return _ports_at(self.ports, speed)


class OpticSpec(PartSpec):
    """A transceiver for fibre."""

    standard: Annotated[str, StringConstraints(min_length=1)]
    """Optical standard of one port, such as ``DR4``; both ends of a fibre have the same."""
    speed: PositiveRate
    """Line rate of one port."""
    ports: Literal[1, 2, 4, 8] = 1
    """Ports in one module: 2 for a twin-port one."""
    fits: Annotated[tuple[Cage, ...], Field(min_length=1)]
    """Cages that take it."""
    mode: Literal["multimode", "single-mode"]
    """Fibre it needs."""
    connector: Literal["mpo-12", "lc"]
    """Fibre connector of one port."""
    fibre_pairs: Count
    """Pairs of fibres that one port uses."""
    fibres: Literal[1, 2, 4] = 1
    """Fibre cables that one port takes."""
    reach: Figure[Annotated[Length, Gt(0)]]
    """Longest fibre."""
    dwdm: bool = False
    """Whether it sends on a DWDM channel of its own: such links share a fibre pair between line terminals."""


class CableSpec(PartSpec):
    """A cable with its plugs: direct-attach copper, active copper, active optical."""

    medium: Literal["copper", "active-copper", "active-optical"]
    """Copper without or with electronics in the plugs, or fibre with fixed optics."""
    speed: PositiveRate
    """Line rate of one link."""
    links: Literal[1, 2, 4, 8] = 1
    """Links in one cable."""
    far_ends: Literal[1, 2, 4, 8] = 1
    """Plugs at the far end: 2 of a cable that splits into two."""
    fits: Annotated[tuple[Cage, ...], Field(min_length=1)]
    """Cages that take the near end: the switch."""
    far_fits: Annotated[tuple[Cage, ...], Field(min_length=1)]
    """Cages that take a far end: the NIC, or the other switch."""
    reach: Figure[Annotated[Length, Gt(0)]]
    """Longest piece."""

    @model_validator(mode="after")
    def _links_fill_the_far_ends(self) -> Self:
        """Refuse links that do not divide among the plugs."""
        if self.links % self.far_ends:
            raise Refusal(f"is not a multiple of far_ends ({self.far_ends})", path="links")
        return self


class FibreSpec(PartSpec):
    """A fibre cable between two transceivers."""

    mode: Literal["multimode", "single-mode"]
    """Kind of fibre."""
    connector: Literal["mpo-12", "lc"]
    """Connector at both ends."""


class LineTerminalSpec(PartSpec):
    """One end of a DWDM line: multiplexer, demultiplexer and amplifiers of one fibre pair."""

    speed: PositiveRate
    """Line rate of the links on its channels."""
    channels: Figure[Count]
    """Links that share the fibre pair."""
    reach: Figure[Annotated[Length, Gt(0)]]
    """Longest fibre between two of them."""
    rack_units: Figure[Count] | None = None
    """Height [rack units]."""


class HostSpec(PartSpec):
    """A server with its GPUs."""

    gpus: Count
    """GPUs."""
    rack_units: Figure[Count] | None = None
    """Height [rack units]."""
    includes_nics: bool = True
    """Whether price and power include the NICs; their transceivers are counted apart."""


class PartsFileSpec(SpecModel):
    """A file of parts. A part with the name of a shipped one replaces it."""

    switches: tuple[SwitchSpec, ...] = ()
    """Switches."""
    nics: tuple[NicSpec, ...] = ()
    """Network adapters."""
    optics: tuple[OpticSpec, ...] = ()
    """Transceivers."""
    cables: tuple[CableSpec, ...] = ()
    """Cables with plugs."""
    fibres: tuple[FibreSpec, ...] = ()
    """Fibre cables."""
    line_terminals: tuple[LineTerminalSpec, ...] = ()
    """Ends of DWDM lines."""
    hosts: tuple[HostSpec, ...] = ()
    """Servers."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        """Refuse repeated names."""
        refuse(
            refusal
            for table in type(self).model_fields
            for refusal in repeated((part.name for part in getattr(self, table)), table)
        )
        return self
