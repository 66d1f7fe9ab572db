"""Fabric specs: what a file in ``topologies/`` may say, one model per family.

A spec says what a network architect decides (hosts, radix, oversubscription, distances). Numbers
that follow from those (how many spines) are computed by `netplan.topology`, and can be given
where a published design fixed them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Gt
from pydantic import Field, TypeAdapter, model_validator

from netplan.errors import did_you_mean
from netplan.spec.base import Refusal, Refusals, SpecModel
from netplan.spec.quantity import Count, Duration, Length, Name, Rate, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Not `Field(gt=0)`: pydantic 2.10 carries the default of one field over to others that share such an alias.
PositiveRate = Annotated[Rate, Gt(0)]
PositiveRatio = Annotated[Ratio, Gt(0)]


def _refuse(refusals: Iterable[Refusal]) -> None:
    """Raise all refusals at once, if there are any."""
    found = tuple(refusals)
    if found:
        raise Refusals(found)


def _repeated(names: Iterable[str], table: str) -> Iterator[Refusal]:
    """Refuse each repetition of a name in a list of named things."""
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        if seen[name]:
            yield Refusal("is used twice; names are unique", path=(table, place, "name"))
        seen[name] += 1


def _meant(name: str, known: Iterable[str]) -> str | None:
    """Ask for the name that was probably meant."""
    meant = did_you_mean(name, known)
    return f"did you mean `{meant}`?" if meant else None


def _no_length(path: tuple[str | int, ...], a: str, b: str) -> Refusal:
    """Refuse a span whose length cannot be found."""
    hint = "give the span a length, or both sites a position"
    return Refusal(f"the distance between {a} and {b} is not known", path=path, hint=hint)


def _unused(part: SpecModel, path: str, names: Iterable[str], why: str) -> Iterator[Refusal]:
    """Refuse each of ``names`` that was given in ``part``: it would change nothing."""
    for name in names:
        if name in part.model_fields_set:
            yield Refusal(f"is not used: {why}", path=f"{path}.{name}" if path else name, hint="leave it out")


class HostsSpec(SpecModel):
    """The hosts of a fabric, all alike."""

    count: Count
    """How many hosts."""
    gpus: Count = 8
    """GPUs of each host: one scale-up domain."""
    nics: Count | None = None
    """NIC ports of each host that are on this fabric; as many as GPUs when omitted."""
    nic_speed: PositiveRate = 50e9
    """Line rate of each NIC port."""
    scale_up: PositiveRate = 450e9
    """What one GPU sends into its scale-up domain, per direction (NVLink 4: 450 GB/s)."""

    @property
    def n_nics(self) -> int:
        """NIC ports of each host."""
        return self.gpus if self.nics is None else self.nics


def _ratio_beside_counts(tier: LeafSpec | SpineSpec) -> Iterator[Refusal]:
    """Refuse an oversubscription that both counts overrule."""
    if tier.downlinks is not None and tier.uplinks is not None:
        yield from _unused(tier, "", ["oversubscription"], "downlinks and uplinks are both given")


class LeafSpec(SpecModel):
    """The leaf tier. What is omitted follows from the radix and the oversubscription."""

    radix: Count | None = None
    """Ports at uplink speed; the fabric's ``radix`` when omitted."""
    downlinks: Count | None = None
    """NIC ports that one leaf serves."""
    breakout: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """NIC ports on one switch port: 2 when a 400G port is split into two of 200G."""
    uplinks: Count | None = None
    """Ports towards the spines."""
    oversubscription: PositiveRatio = 1.0
    """Downlink over uplink bandwidth; 1 is non-blocking. Not used when both counts are given."""
    uplink_speed: PositiveRate | None = None
    """Line rate towards the spines; the NIC speed times the breakout when omitted."""

    @model_validator(mode="after")
    def _ratio_or_both_counts(self) -> Self:
        """Refuse a ratio beside the two counts that it would follow from."""
        _refuse(_ratio_beside_counts(self))
        return self


class TwoTierSpineSpec(SpecModel):
    """The spine tier under no other."""

    radix: Count | None = None
    """Ports at the speed used; the fabric's ``radix`` when omitted."""
    count: Count | None = None
    """Spines of each pod; the smallest number that gives equal bundles when omitted."""


class SpineSpec(TwoTierSpineSpec):
    """The spine tier, with or without cores above it."""

    downlinks: Count | None = None
    """Three tiers: ports towards the leaves."""
    uplinks: Count | None = None
    """Three tiers: ports towards the cores."""
    oversubscription: PositiveRatio = 1.0
    """Three tiers: downlink over uplink bandwidth. Not used when both counts are given."""
    uplink_speed: PositiveRate | None = None
    """Three tiers: line rate towards the cores; the leaf's uplink speed when omitted."""

    @model_validator(mode="after")
    def _ratio_or_both_counts(self) -> Self:
        """Refuse a ratio beside the two counts that it would follow from."""
        _refuse(_ratio_beside_counts(self))
        return self


class CoreSpec(SpecModel):
    """The core tier of a three-tier fabric."""

    radix: Count | None = None
    """Ports at the speed used; the fabric's ``radix`` when omitted."""
    count: Count | None = None
    """Core switches in all; the smallest number that gives equal bundles when omitted."""
    domains: Count = 1
    """Sets of cores, each for whole rails, that meet only inside hosts; for ``pod.by: rail`` only."""


class PodSpec(SpecModel):
    """How leaves are grouped under spines in a three-tier fabric."""

    leaves: Count | None = None
    """Leaves of each pod; as many as a spine's downlinks when omitted."""


class RailPodSpec(PodSpec):
    """How leaves are grouped under spines in a three-tier fabric with rails."""

    by: Literal["block", "rail"] = "block"
    """``block``: a pod holds all rails of its hosts. ``rail``: a pod holds one rail of many hosts."""


class TwoTierCablesSpec(SpecModel):
    """Typical cable lengths; each adds its propagation delay."""

    host_leaf: Length = 3.0
    """Host to leaf."""
    leaf_spine: Length = 30.0
    """Leaf to spine."""


class CableLengthsSpec(TwoTierCablesSpec):
    """Typical cable lengths; each adds its propagation delay."""

    spine_core: Length = 100.0
    """Three tiers: spine to core."""


class MetroCablesSpec(SpecModel):
    """Typical lengths of the cables that are no site's own."""

    site_metro: Length = 100.0
    """A site's top tier to its metro switches."""


class LatencySpec(SpecModel):
    """Latencies that replace the transport's own (`netplan explain latency`)."""

    switch: Duration | None = None
    """Added by each switch on a path."""
    endpoint: Duration | None = None
    """Added once per message by the two NICs and hosts."""


class FabricSpecBase(SpecModel):
    """What every family has."""

    name: Name
    """Name of the fabric; the file's name in the catalogue."""
    description: str = ""
    """What it is, in a sentence."""
    source: str = ""
    """Where its numbers come from."""
    latency: LatencySpec = LatencySpec()
    """Latencies, where they differ from the transport's."""


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
            _refuse(
                [
                    *_unused(self, "", ["pod", "core"], why),
                    *_unused(self.spine, "spine", three, why),
                    *_unused(self.cables, "cables", ["spine_core"], why),
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


class CustomSpec(FabricSpecBase):
    """Hosts, switches and links, listed."""

    kind: Literal["custom"]
    """The family."""
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
        refusals = [*_repeated((host.name for host in self.hosts), "hosts")]
        refusals += _repeated((switch.name for switch in self.switches), "switches")
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
                            hint=_meant(name, sorted(known)),
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
        _refuse(refusals)
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
    LeafSpineSpec | ClosSpec | FatTreeSpec | RailOptimizedSpec | CustomSpec, Field(discriminator="kind")
]


class SiteSpec(SpecModel):
    """One site of a metro domain."""

    name: Name
    """Name, unique in the domain."""
    position: tuple[Length, Length] | None = None
    """Place on a map, as two lengths: ``[0 km, 12 km]``. Not needed where ``spans`` gives lengths."""
    fabric: SiteFabricSpec
    """The site's own fabric."""


class SpanSpec(SpecModel):
    """The fibre route between two sites."""

    a: Name
    """A site."""
    b: Name
    """The other site."""
    length: Length | None = None
    """Fibre length; from the positions when omitted."""
    links: Count | None = None
    """Links (of ``metro.link_speed``); from ``metro.oversubscription`` when omitted."""


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
    route_factor: Annotated[Ratio, Field(ge=1)] = 1.0
    """Fibre length over straight distance, where lengths come from positions."""
    layout: Literal["mesh", "ring"] = "mesh"
    """Which sites are joined when ``spans`` is omitted: every pair, or neighbours in order."""


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
        position = {site.name: site.position for site in self.sites}
        refusals = [*_repeated((site.name for site in self.sites), "sites")]
        for place, site in enumerate(self.sites):
            why = "latencies of a metro domain are its own"
            refusals += _unused(site.fabric, f"sites[{place}].fabric", ["latency"], why)
        joined = set()
        for place, span in enumerate(self.spans or ()):
            ends = {"a": span.a, "b": span.b}
            unknown = [(end, name) for end, name in ends.items() if name not in position]
            refusals += [
                Refusal("is not a site", path=("spans", place, end), hint=_meant(name, position))
                for end, name in unknown
            ]
            joined |= set(ends.values())
            if span.a == span.b:
                refusals.append(Refusal(f"joins {span.a} with itself", path=("spans", place)))
            elif not unknown and span.length is None and None in (position[span.a], position[span.b]):
                refusals.append(_no_length(("spans", place), span.a, span.b))
        for place, site in enumerate(self.sites):
            if self.spans is None and site.position is None:
                refusals.append(
                    Refusal(
                        "has no position, so the length of its spans is not known",
                        path=("sites", place, "name"),
                        hint="give every site a position, or list the spans with a length",
                    )
                )
            elif self.spans is not None and site.name not in joined:
                refusals.append(Refusal("is at the end of no span", path=("sites", place, "name")))
        _refuse(refusals)
        return self


FabricSpec = Annotated[
    LeafSpineSpec | ClosSpec | FatTreeSpec | RailOptimizedSpec | MetroSpec | CustomSpec,
    Field(discriminator="kind"),
]

#: Validates any fabric spec by its ``kind``.
FABRIC_SPEC: TypeAdapter[FabricSpec] = TypeAdapter(FabricSpec)
