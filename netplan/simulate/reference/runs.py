"""Stored runs of packet-level simulators.

A file holds the runs of one simulator: topologies, demands (which several runs share) and, for each
run, the settings and what the simulator measured. JSON, plain or gzipped; its members are described
in ``tests/data/packet/README.md``. Everything here is in SI units: bytes, seconds, bytes/s.

A cable of a topology becomes two directed links: link ``2 i`` from its first node to its second,
``2 i + 1`` back. A flow that is spread over all shortest paths has a share of its bytes on each link:
at every node it is divided equally over the next hops that are on a shortest path.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from netplan.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["FORMAT", "Demand", "Links", "Measured", "Paths", "ReferenceRun", "read_runs"]

#: What a file says in its member ``format``.
FORMAT = "netplan/reference-runs/1"

_GBPS = 1e9 / 8
_NS = 1e-9

#: ``balancing`` of runs whose flows keep to one recorded path.
_SINGLE_PATH = ("ecmp", "fecmp")


class Links(NamedTuple):
    """Directed links of a topology."""

    n_hosts: int
    """Nodes 0 to n_hosts - 1 are hosts, the rest switches."""
    src: NDArray[np.int64]
    """(n_links,) sending node."""
    dst: NDArray[np.int64]
    """(n_links,) receiving node."""
    capacity: NDArray[np.float64]
    """(n_links,) rate on the wire [bytes/s]."""
    delay: NDArray[np.float64]
    """(n_links,) one-way propagation [s]."""


class Paths(NamedTuple):
    """Links that each flow crosses, in order; with the share of its bytes that takes each."""

    ptr: NDArray[np.int64]
    """(n_flows + 1,) CSR row pointer."""
    link: NDArray[np.int64]
    """(nnz,) link ids."""
    share: NDArray[np.float64]
    """(nnz,) share of the flow's bytes, in (0, 1]; 1 throughout on a single path."""

    def row(self, flow: int) -> NDArray[np.int64]:
        """Return the links of one flow."""
        return self.link[self.ptr[flow] : self.ptr[flow + 1]]


class Demand(NamedTuple):
    """What the hosts send."""

    src: NDArray[np.int64]
    """(n_flows,) sending host."""
    dst: NDArray[np.int64]
    """(n_flows,) receiving host."""
    size: NDArray[np.float64]
    """(n_flows,) payload [bytes]."""
    start: NDArray[np.float64]
    """(n_flows,) earliest begin [s]."""
    after: NDArray[np.int64]
    """(n_flows,) the flow whose end this one waits for; -1: none."""
    chunk: float
    """Flows are sent chunk by chunk [bytes]; 0: whole."""
    feeder: NDArray[np.int64]
    """(n_flows,) chunk k of a flow waits for chunk k - 1 of this flow to be received; -1: none."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What the simulator saw; a member is None where it did not look."""

    flow: NDArray[np.int64]
    """(n_seen,) the flows that the per-flow members are about, in order."""
    received: NDArray[np.float64] | None
    """(n_seen,) from a flow's begin to its last byte at the receiver [s]; nan: never."""
    acknowledged: NDArray[np.float64] | None
    """(n_seen,) from a flow's begin to the last acknowledgement at the sender [s]; nan: never."""
    ideal: NDArray[np.float64] | None
    """(n_seen,) the same as `received` under max-min sharing, by the authors' own program [s]."""
    marked: NDArray[np.float64] | None
    """(n_seen,) packets that arrived with an ECN mark."""
    goodput: NDArray[np.float64] | None
    """(n_flows,) payload received per second over the second half of an endless run [bytes/s]."""
    makespan: float | None
    """From the first begin to the last end of all flows [s]."""
    bound: float | None
    """Bytes on the most loaded link over its rate, headers counted, acknowledgements not [s]."""
    bound_with_acks: float | None
    """The same with the bytes of acknowledgements, as if those went back along the data's paths [s]."""
    static_bound: float | None
    """Rings: 1 / edges of the ring on the most loaded link."""
    pauses: int
    """PFC pause frames."""
    paused: float | None
    """Time that ports stood still, summed over ports [s]."""
    drops: int
    """Packets lost."""
    queues: tuple[tuple[int, float, float], ...]
    """The longest queues: link, largest and time-averaged length [bytes]."""
    sent: tuple[tuple[int, float], ...]
    """What switches sent in all, acknowledgements included: link, bytes on the wire."""
    done: int
    """Flows that had ended when the run ended."""
    cpu: float | None
    """Processor time the simulator took [s]."""


@dataclass(frozen=True, eq=False)
class ReferenceRun:
    """One run of a packet-level simulator: what went in and what came out."""

    name: str
    simulator: str
    """Short name: hpcc, conweave, htsim."""
    source: str
    """Simulator, repository and commit."""
    scenario: str
    protocol: str
    balancing: str
    """How paths were chosen: ecmp, or the name of a scheme that moves packets between paths."""
    topology: str
    seed: int | None
    note: str
    payload_bytes: float
    """Payload of a full packet."""
    wire_bytes: float
    """What a full packet takes on the wire."""
    ack_bytes: float
    """What an acknowledgement takes on the wire."""
    ack_every: int
    """Data packets per acknowledgement."""
    lossless: bool
    """Whether PFC was on."""
    clock: float
    """Serialisation times are cut to whole multiples of this [s]; 0: they are not."""
    horizon: float
    """When the simulator stopped [s]."""
    settings: dict[str, Any]
    """The simulator's own parameters, by its names."""
    links: Links
    demand: Demand
    paths: Paths
    ack_paths: Paths
    """Links that acknowledgements cross. Where the simulator did not tell: back along the data's path."""
    measured: Measured

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return len(self.demand.size)

    @property
    def single_path(self) -> bool:
        """Whether each flow keeps to one path."""
        return bool(np.all(self.paths.share == 1.0))

    @property
    def waits_for_ack(self) -> bool:
        """Whether a dependent flow waits for the last acknowledgement, instead of the last byte received."""
        return self.simulator == "htsim"

    @property
    def wire_per_payload(self) -> float:
        """Bytes on the wire for each byte of payload."""
        return self.wire_bytes / self.payload_bytes

    def as_timed(self, packet: float) -> float:
        """Return the bytes for which the simulator lets a packet hold a host's link.

        ns-3 cuts the time of a packet to whole nanoseconds: 60 bytes at 100 Gb/s take 4 instead of
        4.8 ns, as 50 bytes would.
        """
        if self.clock == 0:
            return packet
        rate = float(self.links.capacity[self.links.src < self.links.n_hosts].min())
        return math.floor(packet / rate / self.clock * (1 + 1e-12)) * self.clock * rate

    @cached_property
    def latency(self) -> NDArray[np.float64]:
        """(n_flows,) time of a full packet that meets no other, less its first serialisation [s]."""
        return self._latency(self.paths, self.wire_bytes, first=False)

    @cached_property
    def ack_latency(self) -> NDArray[np.float64]:
        """(n_flows,) time of an acknowledgement that meets no other packet [s]."""
        return self._latency(self.ack_paths, self.ack_bytes, first=True)

    def _latency(self, paths: Paths, packet: float, *, first: bool) -> NDArray[np.float64]:
        """Return propagation and store-and-forward along paths, with or without the first link's."""
        hop = paths.share * (self.links.delay[paths.link] + packet / self.links.capacity[paths.link])
        owner = np.repeat(np.arange(self.n_flows), np.diff(paths.ptr))
        total = np.bincount(owner, hop, minlength=self.n_flows).astype(np.float64)
        return total if first else total - packet / self.links.capacity[paths.link[paths.ptr[:-1]]]


def read_runs(path: str | Path) -> tuple[ReferenceRun, ...]:
    """Read one file of runs, or every ``*.json`` and ``*.json.gz`` of a folder.

    Parameters
    ----------
    path
        A file or a folder.

    Returns
    -------
    tuple of ReferenceRun
        In the order of the files' names and of the runs in each.

    Raises
    ------
    SpecError
        A file that cannot be read, is not JSON, is of another format, or contradicts itself.
    """
    where = Path(path)
    if where.is_dir():
        files = sorted([*where.glob("*.json"), *where.glob("*.json.gz")])
        if not files:
            raise SpecError(
                f"{where}: no *.json or *.json.gz in this folder", hint="name a folder of reference runs"
            )
        return tuple(run for file in files for run in read_runs(file))
    try:
        raw = where.read_bytes()
        content = json.loads(gzip.decompress(raw) if where.suffix == ".gz" else raw)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise SpecError(f"{where}: cannot be read as reference runs: {error}") from None
    return parse_runs(content, str(where))


def parse_runs(content: object, where: str) -> tuple[ReferenceRun, ...]:
    """Return the runs of a file's content.

    Parameters
    ----------
    content
        What JSON gave.
    where
        Name of the file, for messages.

    Raises
    ------
    SpecError
        Another format, a member missing, or a path that is none in its topology.
    """
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(content, dict) or found != FORMAT:
        raise SpecError(
            f"{where}: format is {found!r}, accepted is {FORMAT!r}",
            hint="netplan.simulate.reference.records makes such files of records",
        )
    try:
        source = "{name}, {repository}, {commit}".format(**content["simulator"])
        topologies = {name: _Topology(raw) for name, raw in content["topologies"].items()}
        return tuple(_run(raw, content["demands"], topologies, source, where) for raw in content["runs"])
    except KeyError as error:
        raise SpecError(f"{where}: member {error} is missing") from None


class _Topology:
    """Links of a topology, with what is needed to lay paths on them."""

    def __init__(self, raw: dict[str, Any]) -> None:
        ends, rate, delay = [], [], []
        for a, b, gbps, ns in raw["cables"]:
            ends += [(a, b), (b, a)]
            rate += [gbps * _GBPS] * 2
            delay += [ns * _NS] * 2
        src, dst = np.array(ends, np.int64).reshape(-1, 2).T
        self.links = Links(raw["hosts"], src, dst, np.array(rate), np.array(delay))
        self.id_of = {end: i for i, end in enumerate(ends)}
        self.next: dict[int, list[int]] = defaultdict(list)
        for a, b in ends:
            self.next[a].append(b)
        self.spread: dict[tuple[int, int], tuple[list[int], list[float]]] = {}

    def along(self, nodes: Sequence[int]) -> list[int]:
        """Return the links between consecutive nodes."""
        return [self.id_of[a, b] for a, b in pairwise(nodes)]

    def spread_over(self, src: int, dst: int) -> tuple[list[int], list[float]]:
        """Return all links on shortest paths, nearest first, with equal division at each node."""
        known = self.spread.get((src, dst))
        if known is not None:
            return known
        distance = {dst: 0}
        queue = [dst]
        for node in queue:
            for other in self.next[node]:
                if other not in distance and (other >= self.links.n_hosts or other == src):
                    distance[other] = distance[node] + 1
                    queue.append(other)
        at = {src: 1.0}
        links: list[int] = []
        shares: list[float] = []
        for _ in range(distance[src]):
            onward: dict[int, float] = defaultdict(float)
            for node, share in at.items():
                hops = [n for n in self.next[node] if distance.get(n, -1) == distance[node] - 1]
                for hop in hops:
                    links.append(self.id_of[node, hop])
                    shares.append(share / len(hops))
                    onward[hop] += share / len(hops)
            at = onward
        self.spread[src, dst] = links, shares
        return links, shares


def _run(
    raw: dict[str, Any],
    demands: list[dict[str, Any]],
    topologies: dict[str, _Topology],
    source: str,
    where: str,
) -> ReferenceRun:
    """Return one run of a file."""
    topology = topologies[raw["topology"]]
    given = demands[raw["demand"]]
    single = raw["balancing"] in _SINGLE_PATH
    pairs = list(zip(given["src"], given["dst"], strict=True))
    try:
        if single:
            rows = [topology.along(nodes) for nodes in given["path"]]
            paths = _paths([(row, [1.0] * len(row)) for row in rows])
        else:
            paths = _paths([topology.spread_over(s, d) for s, d in pairs])
        if "ack_path" in given:
            ways = [topology.along(nodes) for nodes in given["ack_path"]]
            acks = _paths([(row, [1.0] * len(row)) for row in ways])
        else:
            back = np.arange(len(topology.links.src)) ^ 1  # the other direction of the same cable
            acks = _reversed(paths, back)
    except KeyError as error:
        raise SpecError(
            f"{where}: run {raw['name']}: nodes {error} have no cable in {raw['topology']}"
        ) from None
    return ReferenceRun(
        name=raw["name"],
        simulator=raw["simulator"],
        source=source,
        scenario=raw["scenario"],
        protocol=raw["protocol"],
        balancing=raw["balancing"],
        topology=raw["topology"],
        seed=raw.get("seed"),
        note=raw["note"],
        payload_bytes=float(raw["payload_bytes"]),
        wire_bytes=float(raw["wire_bytes"]),
        ack_bytes=float(raw["ack_bytes"]),
        ack_every=raw["ack_every"],
        lossless=raw["lossless"],
        clock=raw["clock_ns"] * _NS,
        horizon=raw["horizon_ns"] * _NS,
        settings=raw["settings"],
        links=topology.links,
        demand=_demand(given),
        paths=paths,
        ack_paths=acks,
        measured=_measured(raw["measured"], len(pairs), topology.id_of),
    )


def _paths(rows: Sequence[tuple[list[int], list[float]]]) -> Paths:
    ptr = np.concatenate([[0], np.cumsum([len(links) for links, _ in rows])]).astype(np.int64)
    return Paths(
        ptr,
        np.array([link for links, _ in rows for link in links], np.int64),
        np.array([share for _, shares in rows for share in shares]),
    )


def _reversed(paths: Paths, back: NDArray[np.int64]) -> Paths:
    """Return paths walked the other way."""
    link, share = paths.link.copy(), paths.share.copy()
    for first, last in zip(paths.ptr[:-1], paths.ptr[1:], strict=True):
        link[first:last] = back[paths.link[first:last]][::-1]
        share[first:last] = paths.share[first:last][::-1]
    return Paths(paths.ptr, link, share)


def _demand(raw: dict[str, Any]) -> Demand:
    nobody = [-1] * len(raw["src"])
    return Demand(
        np.array(raw["src"], np.int64),
        np.array(raw["dst"], np.int64),
        np.array(raw["bytes"], float),
        np.array(raw["start_ns"], float) * _NS,
        np.array(raw.get("after", nobody), np.int64),
        float(raw.get("chunk_bytes", 0)),
        np.array(raw.get("feeder", nobody), np.int64),
    )


def _measured(raw: dict[str, Any], n_flows: int, id_of: dict[tuple[int, int], int]) -> Measured:
    def column(name: str, unit: float) -> NDArray[np.float64] | None:
        return np.array(raw[name], float) * unit if name in raw else None  # JSON's null is nan

    def number(name: str, unit: float) -> float | None:
        return raw[name] * unit if name in raw else None

    return Measured(
        flow=np.array(raw.get("flow", range(n_flows)), np.int64),
        received=column("received_ns", _NS),
        acknowledged=column("acknowledged_ns", _NS),
        ideal=column("ideal_ns", _NS),
        marked=column("marked", 1.0),
        goodput=column("goodput_gbps", _GBPS),
        makespan=number("makespan_ns", _NS),
        bound=number("bound_ns", _NS),
        bound_with_acks=number("bound_with_acks_ns", _NS),
        static_bound=number("static_bound", 1.0),
        pauses=raw["pauses"],
        paused=number("paused_ns", _NS),
        drops=raw["drops"],
        queues=tuple(
            (id_of[a, b], float(top), float(mean)) for a, b, top, mean in raw.get("queue_bytes", ())
        ),
        sent=tuple((id_of[a, b], float(count)) for a, b, count in raw.get("sent_bytes", ())),
        done=raw["done"],
        cpu=number("cpu_s", 1.0),
    )
