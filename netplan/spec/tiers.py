"""What fabric specs of all families are made of: hosts, tiers, cable lengths, latencies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Gt
from pydantic import Field, model_validator

from netplan.errors import did_you_mean
from netplan.spec.base import Refusal, Refusals, SpecModel
from netplan.spec.quantity import Count, Duration, Length, Name, Rate, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Not `Field(gt=0)`: pydantic 2.10 carries the default of one field over to others that share such an alias.
PositiveRate = Annotated[Rate, Gt(0)]
PositiveRatio = Annotated[Ratio, Gt(0)]


def refuse(refusals: Iterable[Refusal]) -> None:
    """Raise all refusals at once, if there are any."""
    found = tuple(refusals)
    if found:
        raise Refusals(found)


def repeated(names: Iterable[str], table: str) -> Iterator[Refusal]:
    """Refuse each repetition of a name in a list of named things."""
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        if seen[name]:
            yield Refusal("is used twice; names are unique", path=(table, place, "name"))
        seen[name] += 1


def meant(name: str, known: Iterable[str]) -> str | None:
    """Ask for the name that was probably meant."""
    meant = did_you_mean(name, known)
    return f"did you mean `{meant}`?" if meant else None


def unused(part: SpecModel, path: str, names: Iterable[str], why: str) -> Iterator[Refusal]:
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
        yield from unused(tier, "", ["oversubscription"], "downlinks and uplinks are both given")


class LeafSpec(SpecModel):
    """The leaf tier. What is omitted follows from the radix and the oversubscription.

    Where both counts, and those of the tiers above, are omitted: the split with the fewest switches.
    """

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
    """Line rate towards the spines; the NIC port's speed times the breakout when omitted."""

    @model_validator(mode="after")
    def _ratio_or_both_counts(self) -> Self:
        """Refuse a ratio beside the two counts that it would follow from."""
        refuse(_ratio_beside_counts(self))
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
        refuse(_ratio_beside_counts(self))
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
    """Leaves of each pod; with the fewest switches, and of equals the most leaves, when omitted."""


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
