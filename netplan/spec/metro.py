"""Specs of what joins the sites of a metro domain: spans, their fibre paths, the metro switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Gt
from pydantic import Field, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Length, Name, Ratio
from netplan.spec.tiers import PositiveRate, PositiveRatio, refuse, unused

if TYPE_CHECKING:
    from collections.abc import Iterator

PositiveLength = Annotated[Length, Gt(0)]

#: Most fibre paths of a span.
MOST_PATHS = 16

Wavelengths = Annotated[int, Field(strict=True, ge=1, le=1024)]
"""Links on one fibre pair: 64 of 400G at 75 GHz or 32 of 800G at 150 GHz fill the C band's 4.8 THz."""


class FibrePathSpec(SpecModel):
    """One fibre route of a span; the others share no duct with it."""

    length: PositiveLength | None = None
    """Fibre length; from the positions when omitted."""
    links: Count | None = None
    """Links on this path; an equal part of the span's links when omitted."""
    fibre_pairs: Count | None = None
    """Fibre pairs; the span's ``fibre_pairs``, else as many as its links need, when omitted."""


class SpanSpec(SpecModel):
    """The links between two sites, over one fibre path or several."""

    a: Name
    """A site."""
    b: Name
    """The other site."""
    length: Length | None = None
    """Fibre length of the one path; from the positions when omitted."""
    links: Count | None = None
    """Links (of ``metro.link_speed``); from ``metro.oversubscription`` when omitted."""
    paths: Annotated[tuple[FibrePathSpec, ...], Field(min_length=1, max_length=MOST_PATHS)] | None = None
    """Diverse fibre paths, each with its own length; one path of ``length`` when omitted."""
    fibre_pairs: Count | None = None
    """Fibre pairs of each path that does not say its own; as many as its links need when omitted."""
    wavelengths: Wavelengths | None = None
    """Links that one fibre pair can carry; ``metro.wavelengths`` when omitted."""

    @model_validator(mode="after")
    def _paths_or_length(self) -> Self:
        """Refuse a length beside paths, and numbers of links that contradict one another."""
        refuse(self._contradictions())
        return self

    def _contradictions(self) -> Iterator[Refusal]:
        if self.paths is None:
            return
        if self.length is not None:
            yield from unused(self, "", ["length"], "each of the paths has its own")
        said = [path.links for path in self.paths if path.links is not None]
        if self.fibre_pairs is not None and all(path.fibre_pairs is not None for path in self.paths):
            yield from unused(self, "", ["fibre_pairs"], "every path says its own")
        if self.links is None:
            if said and len(said) < len(self.paths):
                yield Refusal(
                    "are given to some paths only, so the others' part is not known",
                    path="paths",
                    hint="give every path its links, or the span its links in all",
                )
        elif len(said) == len(self.paths) and sum(said) != self.links:
            yield Refusal(
                f"is not the sum of the links of its paths ({sum(said)})",
                path="links",
                hint="leave it out: the paths say it",
            )
        elif len(said) < len(self.paths) and sum(said) + len(self.paths) - len(said) > self.links:
            yield Refusal(
                f"leaves none for some of its {len(self.paths)} paths",
                path="links",
                hint="give more links, or fewer paths",
            )


class MetroTierSpec(SpecModel):
    """The switches of each site that hold the long links."""

    radix: Count
    """Ports of a metro switch."""
    switches: Count = 2
    """Metro switches of each site."""
    link_speed: PositiveRate = 50e9
    """Line rate of the long links and of the links to the site's top tier."""
    oversubscription: PositiveRatio = 1.0
    """NIC bandwidth of a site over the bandwidth of its long links."""
    wavelengths: Wavelengths = 1
    """Links that one fibre pair can carry: 1 is grey optics, each link on its own pair; more is DWDM."""
    route_factor: Annotated[Ratio, Field(ge=1)] = 1.0
    """Fibre length over straight distance, where lengths come from positions."""
    layout: Literal["mesh", "ring", "star"] = "mesh"
    """Which sites are joined when ``spans`` is omitted: every pair, neighbours in order, all with a hub."""
    hub: Name | None = None
    """``star``: the site in the middle; the first when omitted."""

    @model_validator(mode="after")
    def _hub_goes_with_star(self) -> Self:
        """Refuse a hub where there is none."""
        if self.layout != "star" and self.hub is not None:
            refuse(unused(self, "", ["hub"], f"layout = {self.layout}"))
        return self
