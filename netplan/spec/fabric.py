"""Fabric specs: what a file in ``topologies/`` may say, one model per family.

A spec says what a network architect decides (hosts, radix, oversubscription, distances). Numbers
that follow from those (how many spines) are computed by `netplan.topology`, and can be given
where a published design fixed them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.direct import DragonflyPlusSpec, DragonflySpec, HyperXSpec, SlimFlySpec, TorusSpec
from netplan.spec.metro import MetroTierSpec, SpanSpec
from netplan.spec.planes import DualTorSpec, MultiPlaneSpec, RailOnlySpec
from netplan.spec.quantity import Count, Length, Name
from netplan.spec.tiers import (
    CableLengthsSpec,
    CoreSpec,
    FabricSpecBase,
    HostsSpec,
    LeafSpec,
    MetroCablesSpec,
    PodSpec,
    PositiveRate,
    RailPodSpec,
    SpineSpec,
    TwoTierCablesSpec,
    TwoTierSpineSpec,
    meant,
    refuse,
    repeated,
    unused,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def _no_length(path: tuple[str | int, ...], a: str, b: str) -> Refusal:
    """Refuse a span whose length cannot be found."""
    hint = "give the span a length, or both sites a position"
    return Refusal(f"the distance between {a} and {b} is not known", path=path, hint=hint)


class LeafSpineSpec(FabricSpecBase):
    """Two tiers; all NICs of a host on one leaf; every leaf on every spine."""

    kind: Literal["leaf-spine"]
    """The family."""
    hosts: HostsSpec
    """The hosts."""
    radix: Count
    """Ports of every switch that does not say its own."""
    leaf: LeafSpec = LeafSpec()
    """The leaf tier."""
    spine: TwoTierSpineSpec = TwoTierSpineSpec()
    """The spine tier."""
    cables: TwoTierCablesSpec = TwoTierCablesSpec()
    """Cable lengths."""


class ClosSpec(FabricSpecBase):
    """Three tiers: pods of leaves and spines, joined by cores; all NICs of a host on one leaf."""

    kind: Literal["clos"]
    """The family."""
    hosts: HostsSpec
    """The hosts."""
    radix: Count
    """Ports of every switch that does not say its own."""
    leaf: LeafSpec = LeafSpec()
    """The leaf tier."""
    pod: PodSpec = PodSpec()
    """How leaves are grouped."""
    spine: SpineSpec = SpineSpec()
    """The spine tier."""
    core: CoreSpec = CoreSpec()
    """The core tier."""
    cables: CableLengthsSpec = CableLengthsSpec()
    """Cable lengths."""


class FatTreeHostsSpec(SpecModel):
    """The hosts of a k-ary fat-tree; their number follows from k."""

    gpus: Count = 1
    """GPUs of each host."""
    nics: Count | None = None
    """NIC ports of each host; as many as GPUs when omitted."""
    nic_speed: PositiveRate = 50e9
    """Line rate of every port of the fabric."""
    scale_up: PositiveRate = 450e9
    """What one GPU sends into its scale-up domain, per direction."""


class FatTreeSpec(FabricSpecBase):
    """The k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008): k pods of k/2 leaves and k/2 spines."""

    kind: Literal["fat-tree"]
    """The family."""
    k: Annotated[int, Field(strict=True, ge=2, le=512, multiple_of=2)]
    """Ports of every switch: even."""
    hosts: FatTreeHostsSpec = FatTreeHostsSpec()
    """The hosts."""
    cables: CableLengthsSpec = CableLengthsSpec()
    """Cable lengths."""


class RailOptimizedSpec(FabricSpecBase):
    """NIC r of every host on the leaves of rail r; the rails meet in the spines (or cores)."""

    kind: Literal["rail-optimized"]
    """The family."""
    tiers: Literal[2, 3] = 2
    """Switch tiers."""
    hosts: HostsSpec
    """The hosts; one rail per NIC."""
    radix: Count
    """Ports of every switch that does not say its own."""
    leaf: LeafSpec = LeafSpec()
    """The leaf tier; ``downlinks`` is the hosts that one rail leaf serves."""
    pod: RailPodSpec = RailPodSpec()
    """Three tiers: how leaves are grouped."""
    spine: SpineSpec = SpineSpec()
    """The spine tier."""
    core: CoreSpec = CoreSpec()
    """Three tiers: the core tier."""
    cables: CableLengthsSpec = CableLengthsSpec()
    """Cable lengths."""

    @model_validator(mode="after")
    def _no_tier_that_is_not_there(self) -> Self:
        """Refuse what only three tiers use."""
        if self.tiers == 2:  # noqa: PLR2004 -- tiers
            why = "tiers = 2"
            three = ("downlinks", "uplinks", "oversubscription", "uplink_speed")
            refuse(
                [
                    *unused(self, "", ["pod", "core"], why),
                    *unused(self.spine, "spine", three, why),
                    *unused(self.cables, "cables", ["spine_core"], why),
                ]
            )
        return self


class CustomSwitchSpec(SpecModel):
    """One switch of a custom fabric."""

    name: Name
    """Name, unique in the fabric."""
    tier: Annotated[int, Field(strict=True, ge=1, le=4)]
    """1 leaf, 2 spine, 3 core, 4 metro."""
    radix: Count
    """Ports."""
    pod: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] | None = None
    """Pod it belongs to."""
    rail: Annotated[int, Field(strict=True, ge=0, le=10_000)] | None = None
    """Rail it serves."""
    site: Name | None = None
    """Site it stands in."""


class CustomHostSpec(SpecModel):
    """One host of a custom fabric; its NIC ports are its links, in their order."""

    name: Name
    """Name, unique in the fabric."""
    gpus: Count = 8
    """GPUs: one scale-up domain."""
    scale_up: PositiveRate = 450e9
    """What one GPU sends into its scale-up domain, per direction."""
    site: Name | None = None
    """Site it stands in."""


class CustomLinkSpec(SpecModel):
    """One cable, or several parallel ones, of a custom fabric."""

    a: Name
    """A host or switch."""
    b: Name
    """A switch (or the host, when ``a`` is the switch)."""
    speed: PositiveRate
    """Line rate per direction and cable."""
    count: Count = 1
    """Parallel cables."""
    length: Length = 3.0
    """Length of each."""
    kind: Literal["local", "global"] | None = None
    """Of a direct network: ``local`` within a group, ``global`` between two; joins switches of one tier."""


class CustomSpec(FabricSpecBase):
    """Hosts, switches and links, listed."""

    kind: Literal["custom"]
    """The family."""
    as_built: bool = False
    """It was found so: what breaks a rule of tiers, or is not connected, is a warning and not an error."""
    hosts: Annotated[tuple[CustomHostSpec, ...], Field(min_length=1)]
    """The hosts."""
    switches: Annotated[tuple[CustomSwitchSpec, ...], Field(min_length=1)]
    """The switches."""
    links: Annotated[tuple[CustomLinkSpec, ...], Field(min_length=1)]
    """The cables."""

    @model_validator(mode="after")
    def _links_join_things_that_are_there(self) -> Self:
        """Refuse repeated names, links to unknown nodes, between hosts, and hosts without a link."""
        hosts = {host.name for host in self.hosts}
        switches = {switch.name for switch in self.switches}
        known = hosts | switches
        refusals = [*repeated((host.name for host in self.hosts), "hosts")]
        refusals += repeated((switch.name for switch in self.switches), "switches")
        refusals += [
            Refusal("is a host and a switch; names are unique", path=("switches", place, "name"))
            for place, switch in enumerate(self.switches)
            if switch.name in hosts
        ]
        for place, link in enumerate(self.links):
            for end, name in (("a", link.a), ("b", link.b)):
                if name not in known:
                    refusals.append(
                        Refusal(
                            "is neither a host nor a switch of this fabric",
                            path=("links", place, end),
                            hint=meant(name, sorted(known)),
                        )
                    )
            if link.a == link.b:
                refusals.append(Refusal(f"joins {link.a} with itself", path=("links", place)))
            elif link.a in hosts and link.b in hosts:
                refusals.append(
                    Refusal(
                        f"joins two hosts, {link.a} and {link.b}",
                        path=("links", place),
                        hint="links end at a switch",
                    )
                )
        refusals += self._without_site()
        linked = {name for link in self.links for name in (link.a, link.b)}
        refusals += [
            Refusal(
                "has no link", path=("hosts", place, "name"), hint="add a link to a leaf, or remove the host"
            )
            for place, host in enumerate(self.hosts)
            if host.name not in linked
        ]
        refuse(refusals)
        return self

    def _without_site(self) -> Iterator[Refusal]:
        """Refuse things without a site where others have one: they would be put anywhere."""
        tables: tuple[tuple[str, tuple[CustomHostSpec | CustomSwitchSpec, ...]], ...] = (
            ("hosts", self.hosts),
            ("switches", self.switches),
        )
        if all(item.site is None for _, items in tables for item in items):
            return
        for table, items in tables:
            for place, item in enumerate(items):
                if item.site is None:
                    yield Refusal(
                        "has no site, but others have one",
                        path=(table, place, "name"),
                        hint="give all a site, or none",
                    )


SiteFabricSpec = Annotated[
    LeafSpineSpec
    | ClosSpec
    | FatTreeSpec
    | RailOptimizedSpec
    | RailOnlySpec
    | MultiPlaneSpec
    | DualTorSpec
    | DragonflySpec
    | DragonflyPlusSpec
    | SlimFlySpec
    | TorusSpec
    | HyperXSpec
    | CustomSpec,
    Field(discriminator="kind"),
]


class SiteSpec(SpecModel):
    """One site of a metro domain."""

    name: Name
    """Name, unique in the domain."""
    position: tuple[Length, Length] | None = None
    """Place on a map, as two lengths: ``[0 km, 12 km]``. Not needed where ``spans`` gives lengths."""
    fabric: SiteFabricSpec | None = None
    """The site's own fabric; a site without one has metro switches only: a hub, an exchange point."""


class MetroSpec(FabricSpecBase):
    """Two or more sites, each a fabric of its own, joined by long links."""

    kind: Literal["metro"]
    """The family."""
    sites: Annotated[tuple[SiteSpec, ...], Field(min_length=2, max_length=64)]
    """The sites."""
    metro: MetroTierSpec
    """The metro tier."""
    spans: tuple[SpanSpec, ...] | None = None
    """Which sites are joined; by ``metro.layout`` when omitted."""
    cables: MetroCablesSpec = MetroCablesSpec()
    """Lengths of the cables between a site's top tier and its metro switches."""

    @model_validator(mode="after")
    def _spans_join_sites_that_are_there(self) -> Self:
        """Refuse repeated names, spans to unknown sites and spans whose length is not known."""
        refuse([*self._site_refusals(), *self._span_refusals(), *self._hub_refusals()])
        return self

    def _site_refusals(self) -> Iterator[Refusal]:
        """Refuse names used twice, keys that change nothing, and sites that nothing joins."""
        yield from repeated((site.name for site in self.sites), "sites")
        why = "latencies of a metro domain are its own"
        joined = {end for span in self.spans or () for end in (span.a, span.b)}
        for place, site in enumerate(self.sites):
            if site.fabric is not None:
                yield from unused(site.fabric, f"sites[{place}].fabric", ["latency"], why)
            if self.spans is None and site.position is None:
                yield Refusal(
                    "has no position, so the length of its spans is not known",
                    path=("sites", place, "name"),
                    hint="give every site a position, or list the spans with a length",
                )
            elif self.spans is not None and site.name not in joined:
                yield Refusal("is at the end of no span", path=("sites", place, "name"))
        if sum(site.fabric is not None for site in self.sites) < 2:  # noqa: PLR2004 -- a fabric and another
            yield Refusal(
                "have fewer than two fabrics: there is nothing to join",
                path="sites",
                hint="leave out `fabric` only for hubs between sites that have one",
            )

    def _span_refusals(self) -> Iterator[Refusal]:
        """Refuse spans to sites that are not there, and those without a length."""
        position = {site.name: site.position for site in self.sites}
        for place, span in enumerate(self.spans or ()):
            ends = {"a": span.a, "b": span.b}
            unknown = [(end, name) for end, name in ends.items() if name not in position]
            for end, name in unknown:
                yield Refusal("is not a site", path=("spans", place, end), hint=meant(name, position))
            if span.a == span.b:
                yield Refusal(f"joins {span.a} with itself", path=("spans", place))
            elif not unknown and None in (position[span.a], position[span.b]):
                if span.paths is None and span.length is None:
                    yield _no_length(("spans", place), span.a, span.b)
                for number, path in enumerate(span.paths or ()):
                    if path.length is None:
                        yield _no_length(("spans", place, "paths", number), span.a, span.b)

    def _hub_refusals(self) -> Iterator[Refusal]:
        """Refuse a layout beside spans, and a hub that is no site."""
        names = [site.name for site in self.sites]
        if self.spans is not None:
            yield from unused(self.metro, "metro", ["layout", "hub"], "the spans are listed")
        elif self.metro.hub is not None and self.metro.hub not in names:
            yield Refusal("is not a site", path="metro.hub", hint=meant(self.metro.hub, names))


FabricSpec = Annotated[
    LeafSpineSpec
    | ClosSpec
    | FatTreeSpec
    | RailOptimizedSpec
    | RailOnlySpec
    | MultiPlaneSpec
    | DualTorSpec
    | DragonflySpec
    | DragonflyPlusSpec
    | SlimFlySpec
    | TorusSpec
    | HyperXSpec
    | MetroSpec
    | CustomSpec,
    Field(discriminator="kind"),
]

#: Validates any fabric spec by its ``kind``.
FABRIC_SPEC: TypeAdapter[FabricSpec] = TypeAdapter(FabricSpec)
