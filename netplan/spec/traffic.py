"""Traffic specs: what a file in ``traffic/`` may say, one model per pattern."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import Field, Strict, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Duration, Name, Size

PositiveSize = Annotated[Size, Gt(0)]
Rank = Annotated[int, Strict(), Ge(0), Le(10_000_000)]


class PlacementSpec(SpecModel):
    """Which hosts a job gets, and in which order its ranks run over them."""

    kind: Literal["packed", "random", "fragmented", "explicit"] = "packed"
    """``packed``: in order; ``random``: by seed; ``fragmented``: a host per leaf in turn; ``explicit``."""
    hosts: tuple[Name, ...] | None = None
    """``explicit``: names of the hosts, in rank order."""

    @model_validator(mode="after")
    def _hosts_go_with_explicit(self) -> Self:
        """Refuse a list that is not used, and an explicit placement without one."""
        if self.kind == "explicit" and not self.hosts:
            raise Refusal(
                "explicit placement needs a list of hosts", path="hosts", hint="hosts: [host-00000, …]"
            )
        if self.kind != "explicit" and self.hosts is not None:
            raise Refusal(f"is not used with placement {self.kind}", path="hosts", hint="kind: explicit")
        return self


class _TrafficSpec(SpecModel):
    """What every workload has."""

    name: Name
    """Name of the workload; the file's name in the catalogue."""
    description: str = ""
    """What it is, in a sentence."""
    source: str = ""
    """Where its numbers come from."""
    ranks: Count | None = None
    """GPUs that take part; all of the fabric when omitted."""
    placement: PlacementSpec = PlacementSpec()
    """Which GPUs."""
    qps: Count = 1
    """Queue pairs of each connection (NCCL_IB_QPS_PER_CONNECTION)."""
    work_conserving: bool = False
    """A QP that is done helps its siblings; else every QP carries an equal share to its end."""
    window: PositiveSize | None = None
    """Bytes that one channel may have outstanding; no limit when omitted."""
    planes: Literal["all", "one"] = "all"
    """``all``: a NIC with ports in several planes uses all; ``one``: its QPs are bound to its first port."""


class RingSpec(_TrafficSpec):
    """A collective over rings, as NCCL lays them: one ring for each NIC and channel."""

    kind: Literal["all-reduce", "reduce-scatter", "all-gather"]
    """The collective."""
    algorithm: Literal["ring"] = "ring"
    """The schedule."""
    size: PositiveSize
    """Bytes as nccl-tests counts them: the buffer of a rank (all-reduce) or of all ranks together."""
    channels: Count = 2
    """NCCL channels of each NIC: rings that run side by side."""
    failover: Literal["auto", "nic", "none"] = "auto"
    """``nic``: a NIC that lost a port moves rings to its others; ``none``: not; ``auto``: with dual ToRs."""
    window: PositiveSize | None = 4 * 2**20
    """Bytes that one channel may have outstanding (NCCL_BUFFSIZE, 4 MiB); ``null`` for no limit."""


class AllToAllSpec(_TrafficSpec):
    """Every rank sends an equal part of its buffer to every other, all at once."""

    kind: Literal["all-to-all"]
    """The collective."""
    size: PositiveSize
    """Bytes that each rank sends in all, its own part included."""
    window: PositiveSize | None = 2**20
    """Bytes that one flow may have outstanding (NCCL p2p: 8 chunks of 128 KiB); ``null`` for no limit."""
    pxn: bool = True
    """Data goes over the scale-up domain to the GPU on the destination's rail, then stays in the rail."""


class PermutationSpec(_TrafficSpec):
    """Every NIC sends one flow and receives one."""

    kind: Literal["permutation"]
    """The pattern."""
    size: PositiveSize
    """Bytes of each flow."""
    shift: Count | None = None
    """NIC i sends to NIC i + shift; a random permutation when omitted."""
    cross_leaf: bool = False
    """Random: every flow leaves its leaf."""
    same_rail: bool = False
    """Random: every flow stays in its rail, as collectives with PXN do."""

    @model_validator(mode="after")
    def _a_shift_is_not_random(self) -> Self:
        """Refuse options of a random permutation beside a shift."""
        for name in ("cross_leaf", "same_rail"):
            if self.shift is not None and getattr(self, name):
                raise Refusal("is an option of random permutations; shift is given", path=name)
        return self


class IncastSpec(_TrafficSpec):
    """Many NICs send to one."""

    kind: Literal["incast"]
    """The pattern."""
    size: PositiveSize
    """Bytes of each sender."""
    senders: Count
    """How many NICs send to rank 0's NIC, from other hosts."""


class PointToPointSpec(_TrafficSpec):
    """One rank sends to another."""

    kind: Literal["point-to-point"]
    """The pattern."""
    size: PositiveSize
    """Bytes sent."""
    src: Rank
    """Rank that sends."""
    dst: Rank
    """Rank that receives."""


class FlowSpec(SpecModel):
    """One flow of a list."""

    src: Rank
    """Rank that sends."""
    dst: Rank
    """Rank that receives."""
    size: PositiveSize
    """Bytes sent."""
    start: Duration = 0.0
    """When it begins."""


class FlowListSpec(_TrafficSpec):
    """Flows as listed."""

    kind: Literal["flows"]
    """The pattern."""
    flows: Annotated[tuple[FlowSpec, ...], Field(min_length=1, max_length=1_000_000)]
    """The flows."""


TrafficSpec = Annotated[
    RingSpec | AllToAllSpec | PermutationSpec | IncastSpec | PointToPointSpec | FlowListSpec,
    Field(discriminator="kind"),
]

#: Validates any traffic spec by its ``kind``.
TRAFFIC_SPEC: TypeAdapter[TrafficSpec] = TypeAdapter(TrafficSpec)
