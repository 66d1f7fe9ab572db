"""Specs of families whose parallel networks meet only inside hosts: planes, or rails on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count
from netplan.spec.tiers import (
    CableLengthsSpec,
    CoreSpec,
    FabricSpecBase,
    HostsSpec,
    LeafSpec,
    PodSpec,
    PositiveRate,
    RailPodSpec,
    SpineSpec,
    TwoTierCablesSpec,
    TwoTierSpineSpec,
    refuse,
    unused,
)
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Most planes of a fabric.
MOST_PLANES = 64

#: Ports of a NIC, and planes, of the dual-ToR family.
DUAL = 2

#: A rate of 1 Gb/s [bytes/s].
_GIGABIT = 1e9 / 8

#: Rounding that a quotient of rates may carry.
_ROUNDING = 1e-9


class PlaneHostsSpec(HostsSpec):
    """The hosts of a fabric with planes, all alike."""

    nics: Count | None = None
    """NICs of each host that are on this fabric; as many as GPUs when omitted."""
    nic_speed: PositiveRate = 50e9
    """Line rate of each NIC, over all its ports; they share it equally."""


class PlaneCoreSpec(SpecModel):
    """The core tier of each plane of a three-tier fabric."""

    radix: Count | None = None
    """Ports at the speed used; the fabric's ``radix`` when omitted."""
    count: Count | None = None
    """Core switches of each plane; the smallest number that gives equal bundles when omitted."""


class RailPlaneCoreSpec(CoreSpec):
    """The core tier of each plane of a three-tier fabric."""

    count: Count | None = None
    """Core switches of each plane; the smallest number that gives equal bundles when omitted."""


def _three_tier_keys(spec: MultiPlaneSpec | DualTorSpec) -> Iterator[Refusal]:
    """Refuse what only three tiers use."""
    if spec.tiers == 2:  # noqa: PLR2004 -- tiers
        why = "tiers = 2"
        yield from unused(spec, "", ["pod", "core"], why)
        three = ("downlinks", "uplinks", "oversubscription", "uplink_speed")
        yield from unused(spec.spine, "spine", three, why)
        yield from unused(spec.cables, "cables", ["spine_core"], why)


def _divides(speed: float, ports: int) -> bool:
    """Tell whether ports that share a speed equally have a whole number of Gb/s each."""
    each = speed / _GIGABIT / ports
    return abs(each - round(each)) < _ROUNDING


class RailOnlySpec(FabricSpecBase):
    """NIC r of every host on rail r; the rails never meet in the network, only inside hosts."""

    kind: Literal["rail-only"]
    """The family."""
    tiers: Literal[1, 2] = 1
    """Switch tiers of each rail: one leaf, or leaves and spines."""
    hosts: HostsSpec
    """The hosts; one rail per NIC."""
    radix: Count
    """Ports of every switch that does not say its own."""
    leaf: LeafSpec = LeafSpec()
    """The leaves of each rail; ``downlinks`` is the hosts that one of them serves."""
    spine: TwoTierSpineSpec = TwoTierSpineSpec()
    """Two tiers: the spines of each rail."""
    cables: TwoTierCablesSpec = TwoTierCablesSpec()
    """Cable lengths."""

    @model_validator(mode="after")
    def _no_tier_that_is_not_there(self) -> Self:
        """Refuse what only two tiers use."""
        if self.tiers == 1:
            why = "tiers = 1"
            refuse(
                [
                    *unused(self.leaf, "leaf", ["uplinks", "oversubscription", "uplink_speed"], why),
                    *unused(self, "", ["spine"], why),
                    *unused(self.cables, "cables", ["leaf_spine"], why),
                ]
            )
        return self


class MultiPlaneSpec(FabricSpecBase):
    """Several equal trees, one per plane, that meet only inside hosts."""

    kind: Literal["multi-plane"]
    """The family."""
    planes: Annotated[int, Field(strict=True, ge=2, le=MOST_PLANES)]
    """Planes."""
    assignment: Literal["split", "per-nic"] = "split"
    """``split``: every NIC has a port in each plane. ``per-nic``: NIC i has one, in plane i mod planes."""
    rails: bool = False
    """Whether each plane is rail-optimized; else all ports that a host has in a plane are on one leaf."""
    tiers: Literal[2, 3] = 2
    """Switch tiers of each plane."""
    hosts: PlaneHostsSpec
    """The hosts."""
    radix: Count
    """Ports of every switch that does not say its own, at the speed of a NIC's port."""
    leaf: LeafSpec = LeafSpec()
    """The leaf tier of each plane."""
    pod: RailPodSpec = RailPodSpec()
    """Three tiers: how the leaves of a plane are grouped."""
    spine: SpineSpec = SpineSpec()
    """The spine tier of each plane."""
    core: RailPlaneCoreSpec = RailPlaneCoreSpec()
    """Three tiers: the core tier of each plane."""
    cables: CableLengthsSpec = CableLengthsSpec()
    """Cable lengths."""

    @model_validator(mode="after")
    def _planes_divide_and_nothing_is_unused(self) -> Self:
        """Refuse planes that do not divide NICs or their speed, and keys that would change nothing."""
        refusals = [*_three_tier_keys(self)]
        if not self.rails:
            refusals += unused(self.pod, "pod", ["by"], "rails = false")
        speed = self.hosts.nic_speed
        if self.assignment == "split" and not _divides(speed, self.planes):
            fits = [n for n in range(2, MOST_PLANES + 1) if _divides(speed, n)]
            near = sorted(sorted(fits, key=lambda n: abs(n - self.planes))[:3])
            refusals.append(
                Refusal(
                    f"does not divide {format_rate(speed)} into ports of a whole number of Gb/s",
                    path="planes",
                    hint=f"feasible: {', '.join(map(str, near))}"
                    if near
                    else "take an even hosts.nic_speed, or assignment: per-nic",
                )
            )
        if self.assignment == "per-nic" and self.hosts.n_nics % self.planes:
            fits = [n for n in range(2, MOST_PLANES + 1) if self.hosts.n_nics % n == 0]
            refusals.append(
                Refusal(
                    f"does not divide the {self.hosts.n_nics} NICs of a host (assignment: per-nic)",
                    path="planes",
                    hint=f"feasible: {', '.join(map(str, fits))}" if fits else "use assignment: split",
                )
            )
        refuse(refusals)
        return self


class DualTorLeafSpec(LeafSpec):
    """The ToR tier. What is omitted follows from the radix and the oversubscription."""

    backup: Annotated[int, Field(strict=True, ge=0, le=10_000)] = 0
    """NIC ports kept for backup hosts beside the downlinks: in the radix, without a cable."""


class DualTorSpec(FabricSpecBase):
    """The two ports of each NIC on two ToRs, in two planes that meet only inside hosts; a ToR pair a rail."""

    kind: Literal["dual-tor"]
    """The family."""
    tiers: Literal[2, 3] = 2
    """Switch tiers of each plane: ToR and aggregation, or cores above them."""
    hosts: PlaneHostsSpec
    """The hosts in use; backup hosts (``leaf.backup``) are not counted."""
    radix: Count
    """Ports of every switch that does not say its own."""
    leaf: DualTorLeafSpec = DualTorLeafSpec()
    """The ToRs; ``downlinks`` is the hosts of a segment."""
    pod: PodSpec = PodSpec()
    """Three tiers: how the ToRs of a plane are grouped."""
    spine: SpineSpec = SpineSpec()
    """The aggregation switches of each plane."""
    core: PlaneCoreSpec = PlaneCoreSpec()
    """Three tiers: the core tier of each plane."""
    cables: CableLengthsSpec = CableLengthsSpec()
    """Cable lengths."""

    @model_validator(mode="after")
    def _speed_divides_and_nothing_is_unused(self) -> Self:
        """Refuse a NIC speed of which a half is odd, and keys that would change nothing."""
        refusals = [*_three_tier_keys(self)]
        if not _divides(self.hosts.nic_speed, DUAL):
            refusals.append(
                Refusal(
                    "does not divide into two ports of a whole number of Gb/s",
                    path="hosts.nic_speed",
                    hint="take an even number of Gb/s",
                )
            )
        refuse(refusals)
        return self
