"""Traffic specs: what a file in ``traffic/`` may say, one model per pattern."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, Strict, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Duration, Name, Size

PositiveSize = Annotated[Size, Gt(0)]
Rank = Annotated[int, Strict(), Ge(0), Le(10_000_000)]


class PlacementSpec(SpecModel):
    """Which hosts a job gets, and in which order its ranks run over them."""

    kind: Literal["packed", "random", "fragmented", "rail-aware", "topology-aware", "explicit"] = "packed"
    """``packed``: in order; ``random``: by seed; ``fragmented``: a host per leaf in turn; ``rail-aware``:
    whole groups of hosts on the same leaves, the freest first; ``topology-aware``: the fewest leaves, pods
    and sites, and of these the fullest that hold the job; ``explicit``."""
    hosts: tuple[Name, ...] | None = None
    """``explicit``: names of the hosts, in rank order; ``host-00000..host-00031`` for a range."""
    taken: tuple[Name, ...] = ()
    """Hosts that other jobs hold, by name or range; never used."""
    busy: Annotated[float, Ge(0), Lt(1)] = 0.0
    """Share of the hosts that other jobs hold, drawn by seed, beside those that are ``taken``."""

    @model_validator(mode="after")
    def _hosts_go_with_explicit(self) -> Self:
        """Refuse a list that is not used, and an explicit placement without one."""
        if self.kind == "explicit" and not self.hosts:
            raise Refusal(
                "explicit placement needs a list of hosts", path="hosts", hint="hosts: [host-00000, …]"
            )
        if self.kind != "explicit" and self.hosts is not None:
            raise Refusal(f"is not used with placement {self.kind}", path="hosts", hint="kind: explicit")
        if self.kind == "explicit" and self.busy > 0:
            raise Refusal(
                "is not used with placement explicit", path="busy", hint="taken: hosts of other jobs, by name"
            )
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


#: Algorithms of each collective; the first is taken when nothing is said.
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "all-reduce": (
        "ring",
        "tree",
        "halving-doubling",
        "recursive-doubling",
        "hierarchical",
        "in-network",
        "nvls",
        "nvls-tree",
        "auto",
    ),
    "all-gather": ("ring", "pat", "recursive-doubling", "hierarchical", "nvls", "auto"),
    "reduce-scatter": ("ring", "pat", "recursive-halving", "hierarchical", "nvls", "auto"),
    "all-to-all": ("concurrent", "pairwise", "hierarchical"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
    "gather": ("direct",),
    "scatter": ("direct",),
    "send-recv": ("ring",),
}

#: Algorithms that NCCL has: only these have its protocols and its times.
NCCL_ALGORITHMS = ("ring", "tree", "in-network", "nvls", "nvls-tree", "pat", "auto")

#: GPUs whose tuning constants NCCL has; each stands for its architecture.
GPU_ARCHITECTURES: dict[str, str] = {
    "v100": "volta",
    "a100": "ampere",
    "a800": "ampere",
    "h100": "hopper",
    "h800": "hopper",
    "h20": "hopper",
    "h200": "hopper",
    "gh200": "hopper",
    "b200": "blackwell",
    "b300": "blackwell",
    "gb200": "blackwell",
    "gb300": "blackwell",
}

Gpu = Literal[
    "auto",
    "volta",
    "ampere",
    "hopper",
    "blackwell",
    "v100",
    "a100",
    "a800",
    "h100",
    "h800",
    "h20",
    "h200",
    "gh200",
    "b200",
    "b300",
    "gb200",
    "gb300",
]


class _CollectiveSpec(_TrafficSpec):
    """What collectives of NCCL have in common."""

    channels: Count = 2
    """NCCL channels of each NIC: rings that run side by side, or twice as many trees of half the data."""
    window: PositiveSize | None = 4 * 2**20
    """Bytes that one channel may have outstanding (NCCL_BUFFSIZE, 4 MiB); ``null`` for no limit."""
    protocol: Literal["none", "auto", "ll", "ll128", "simple"] = "none"
    """NCCL's protocol, whose bytes and times are then counted; ``auto``: its choice; ``none``: the bare
    network, with the latencies of cables, switches, NICs and scale-up hops."""
    gpu: Gpu = "auto"
    """GPU or architecture whose constants NCCL's model takes; ``auto``: by the scale-up rate."""
    cpu: Literal["intel", "amd"] = "intel"
    """CPU of the hosts: NCCL's model has its overheads."""
    cross_nic: Literal[0, 1, 2] = 0
    """NCCL_CROSS_NIC: 0: a ring enters and leaves a host by one NIC; 1: by two; 2: alternating rings, which
    keep to their rails between even and odd hosts."""
    split_data_on_qps: bool = True
    """NCCL_IB_SPLIT_DATA_ON_QPS: messages are cut over all QPs; else chunks of 512 KiB take turns."""

    @model_validator(mode="after")
    def _algorithm_and_protocol_go_together(self) -> Self:
        """Refuse algorithms that the collective does not have, and protocols without NCCL's times."""
        kind, algorithm = getattr(self, "kind", ""), getattr(self, "algorithm", "")
        if algorithm not in ALGORITHMS[kind]:
            has = [name for name, names in ALGORITHMS.items() if algorithm in names]
            raise Refusal(
                f"is not an algorithm of {kind}: {', '.join(ALGORITHMS[kind])}",
                path="algorithm",
                hint=f"{algorithm} is one of {', '.join(has)}",
            )
        if self.protocol != "none" and (algorithm not in NCCL_ALGORITHMS or kind == "send-recv"):
            raise Refusal(
                f"goes with NCCL's own algorithms ({', '.join(NCCL_ALGORITHMS)}), not with {algorithm}",
                path="protocol",
                hint="protocol: none counts the bare network",
            )
        if self.protocol in ("ll", "ll128") and algorithm not in ("ring", "tree", "auto"):
            raise Refusal(
                f"goes with ring and tree; NCCL runs {algorithm} with simple", path="protocol", hint="simple"
            )
        if self.cross_nic and algorithm != "ring":
            raise Refusal(f"is about rings, and the algorithm is {algorithm}", path="cross_nic", hint="0")
        return self


class CollectiveSpec(_CollectiveSpec):
    """All-reduce, reduce-scatter or all-gather, by one of the algorithms that NCCL or MPI has."""

    kind: Literal["all-reduce", "reduce-scatter", "all-gather"]
    """The collective."""
    algorithm: Literal[
        "ring",
        "tree",
        "halving-doubling",
        "recursive-doubling",
        "recursive-halving",
        "hierarchical",
        "in-network",
        "nvls",
        "nvls-tree",
        "pat",
        "auto",
    ] = "ring"
    """The schedule; ``auto``: what NCCL's model takes for this size, with its protocol."""
    size: PositiveSize
    """Bytes as nccl-tests counts them: the buffer of a rank (all-reduce) or of all ranks together."""
    failover: Literal["auto", "nic", "none"] = "auto"
    """``nic``: a NIC that lost a port moves rings to its others; ``none``: not; ``auto``: with dual ToRs."""
    levels: Literal["auto", "hosts", "sites"] = "auto"
    """``hierarchical``: groups that work before the network does: hosts, or hosts and then sites; ``auto``:
    sites where the ranks are in several."""


class RootedSpec(_CollectiveSpec):
    """Broadcast from rank 0, or reduce to it: a chain over all hosts, one for each NIC and channel."""

    kind: Literal["broadcast", "reduce"]
    """The collective."""
    algorithm: Literal["ring"] = "ring"
    """The schedule: NCCL has no other."""
    size: PositiveSize
    """Bytes of the buffer."""


class GatherSpec(_TrafficSpec):
    """Gather at rank 0, or scatter from it: as many messages as ranks, all at once."""

    kind: Literal["gather", "scatter"]
    """The collective."""
    algorithm: Literal["direct"] = "direct"
    """The schedule."""
    size: PositiveSize
    """Bytes of all ranks together."""
    window: PositiveSize | None = 2**20
    """Bytes that one flow may have outstanding (NCCL p2p: 8 chunks of 128 KiB); ``null`` for no limit."""


class SendRecvSpec(_TrafficSpec):
    """Every rank sends to the next and receives from the one before, all at once (nccl-tests sendrecv)."""

    kind: Literal["send-recv"]
    """The pattern."""
    algorithm: Literal["ring"] = "ring"
    """The schedule."""
    size: PositiveSize
    """Bytes that each rank sends."""
    channels: Count = 2
    """Channels of each NIC for one message."""
    window: PositiveSize | None = 2**20
    """Bytes that one channel may have outstanding (NCCL p2p: 8 chunks of 128 KiB); ``null`` for no limit."""


class AllToAllSpec(_TrafficSpec):
    """Every rank sends an equal part of its buffer to every other."""

    kind: Literal["all-to-all"]
    """The collective."""
    algorithm: Literal["concurrent", "pairwise", "hierarchical"] = "concurrent"
    """``concurrent``: all at once; ``pairwise``: each host with one other at a time; ``hierarchical``: inside
    hosts first, so that every GPU sends all that its host has for a rail."""
    size: PositiveSize
    """Bytes that each rank sends in all, its own part included."""
    window: PositiveSize | None = 2**20
    """Bytes that one flow may have outstanding (NCCL p2p: 8 chunks of 128 KiB); ``null`` for no limit."""
    pxn: bool = True
    """Data goes over the scale-up domain to the GPU on the destination's rail, then stays in the rail."""

    @model_validator(mode="after")
    def _hierarchical_is_pxn(self) -> Self:
        """Refuse a hierarchical exchange that is to change rails in the network."""
        if self.algorithm == "hierarchical" and not self.pxn:
            raise Refusal(
                "is what hierarchical does: data changes rails inside hosts", path="pxn", hint="true"
            )
        return self


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
    CollectiveSpec
    | RootedSpec
    | GatherSpec
    | SendRecvSpec
    | AllToAllSpec
    | PermutationSpec
    | IncastSpec
    | PointToPointSpec
    | FlowListSpec,
    Field(discriminator="kind"),
]

#: Validates any traffic spec by its ``kind``.
TRAFFIC_SPEC: TypeAdapter[TrafficSpec] = TypeAdapter(TrafficSpec)
