"""Time of a collective as NCCL's tuning model has it: ``latency + bytes / bandwidth``.

Per algorithm and protocol, from the constants of `netplan.traffic.nccl.constants`. *Bus bandwidth* =
channels x speed of a channel, with the caps of architecture and scale; *bandwidth* (bytes over time)
= bus bandwidth x n / steps for rings and NVLS, x 1/2 for trees.

Latencies, k hosts of g ranks, n = k g: ring: ``(steps - between) max(NVLink, overhead) + between net``
with 2 (n-1) steps, 2 (k-1) between hosts (half for all-gather and reduce-scatter), x 1.4 for Simple
all-reduces that are not tiny; tree: ``2 ((g-1) NVLink + floor(log2 k) net)``; NVLS-tree: ``NVLink + 2
floor(log2 k) net``; PAT: ``floor(log2 k) net / 3.5 + 2.8 us n``; on top of each its base.

Channels: NCCL searches the graph of the host for as many channels of as high a speed as fit. Here:
of the speeds that NCCL tries, the one whose channels together carry the most through the NICs and
through NVLink (of which a GPU carries (r-1)/r of all r channels, as it sends one into its NIC). For
8 NICs of 400G: 8 channels of 48 GB/s, 0.96 of line rate. NVLS takes a channel a GPU, up to 9, of the
highest speed of which NVLink carries 1 + 1/g.

NCCL's factor 1.4 on the latency of Simple rings and its caps of NVLS-tree belong to its *choice* only. For
the *time* they are left out: the efficiencies that Alibaba published with SimAI for 2 to 128 hosts of 8 x
400G are met without the factor within 4 % in the mean from 1 GiB up and without bias, with it they are 5 to
10 % higher from 32 hosts on; tables of NVLS-tree on 2, 12 and 20 hosts lie above the caps
(`docs/reference/measurements.md`).

An all-reduce with NVLS is a pipeline of loops; a loop takes a chunk of every channel and head (GPU of a
host), and its length follows from the size (`chunk_bytes`: 16 to 128 KiB). Until the pipeline is full

    2 max(floor(log2 k), 1) loops of channels x heads x chunk bytes

pass at the full rate, which the time counts and NCCL's choice does not. 72 GPUs of a domain make a loop of
up to 226 MB: half a millisecond. The chunks are NCCL's; that 2 loops fill the pipeline for 1 and 2 hosts,
and 2 more each level of the tree, is netplan's, read off the tables of H100 hosts (1, 2 and 12 of them).

Left out: PCIe, NUMA, C2C and PXN paths, hosts without NVSwitch, tuner plugins.

Source: NVIDIA/nccl src/graph/tuning.cc, src/graph/search.cc, src/enqueue.cc (chunks), release 2.30. The
rule of 9 NVLS channels is netplan's: the slopes of the tables of 2 and 20 GB200 NVL72, 831 and 430 GB/s, are
what NVLink and 9 x 48 GB/s allow (`docs/reference/measurements.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from netplan.traffic.nccl import constants as c

#: Channels of NVLS, at most.
NVLS_CHANNELS = 9

#: Channels whose chunks a loop of NVLS takes, by architecture: on one host, on several.
_NVLS_LOOP = ((0, 0), (0, 0), (16, 16), (32, 24))

#: Chunk of NVLS [bytes], and of its tree from so many hosts on.
_CHUNK, _TREE_CHUNK, _TREE_HOSTS = 131072, 65536, 4

#: A message of fewer so many loops gets smaller chunks: loops and chunk, NVLS and NVLS-tree.
_SMALLER = {
    "nvls": ((64, 65536), (8, 32768), (2, 16384)),
    "nvls-tree": ((4, 65536), (1, 32768)),
}

#: A lower speed counts as better where its channels together carry this much more.
_BETTER = 1.05

#: Channels of a NIC, and of NVLink on one host, at most.
_MOST_PER_NIC, _MOST_INSIDE = 2, 32

#: Bytes of a rank and channel from which a Simple ring pays for its plateau.
_PLATEAU_BYTES = 64


@dataclass(frozen=True)
class Cluster:
    """What NCCL's model knows of a job's hosts."""

    hosts: int
    ranks: int
    nics: int
    """NIC ports of a host."""
    nic_rate: float
    """Line rate of each [GB/s]."""
    nvlink: float
    """What NCCL takes a GPU to send over NVLink [GB/s]."""
    architecture: str
    """One of `constants.ARCHITECTURES`."""
    cpu: str = "intel"

    @property
    def row(self) -> int:
        """Row of the architecture in tables of constants."""
        return c.ARCHITECTURES.index(self.architecture)

    @property
    def scale(self) -> int:
        """Column of tables: 0 one host, 1 two, 2 more."""
        return min(self.hosts, 3) - 1

    @property
    def per_host(self) -> float:
        """Ranks of a host, on average."""
        return self.ranks / self.hosts

    @cached_property
    def channels(self) -> tuple[int, float]:
        """Number and speed [GB/s] of the channels of rings and trees."""
        several = self.per_host > 1
        best: tuple[int, float] = (1, 0.0)
        if self.hosts == 1:
            for inside in c.SPEEDS_INSIDE[self.row]:
                best = _better(best, min(int(self.nvlink / inside), _MOST_INSIDE), float(inside))
            return best
        room: float = self.nvlink * self.nics / (self.nics - 1) if several and self.nics > 1 else math.inf
        for speed in c.SPEEDS_BETWEEN[self.row]:
            count = self.nics * self._per_nic(speed)
            if not math.isinf(room):
                count = min(count, int(room / speed))
            if count >= min(self.nics, _MOST_INSIDE):  # every NIC has one
                best = _better(best, count, speed)
        if not best[1]:  # NVLink carries less than the slowest channel of every NIC
            return self.nics, room / self.nics
        return best

    @property
    def nic_fraction(self) -> float:
        """Part of the NICs' line rate that channels can use."""
        if self.hosts == 1:
            return 1.0
        best = (1, 0.0)
        for speed in c.SPEEDS_BETWEEN[self.row]:
            best = _better(best, self._per_nic(speed), speed)
        return best[0] * best[1] / self.nic_rate

    def _per_nic(self, speed: float) -> int:
        """Return how many channels of a speed a NIC carries."""
        return min(math.floor(self.nic_rate / speed + 1e-9), _MOST_PER_NIC)

    @cached_property
    def nvls(self) -> tuple[int, float, float]:
        """Number of NVLS channels, their speed over NVLink and through NICs [GB/s]."""
        g = self.per_host
        count = int(min(g, NVLS_CHANNELS))
        fit = [s for s in c.SPEEDS_INSIDE[self.row] if count * s * (1 + 1 / g) <= self.nvlink]
        nics = self.nics * self.nic_rate * self.nic_fraction
        return count, fit[0] if fit else 0.0, nics / g if self.hosts > 1 else math.inf


def _better(best: tuple[int, float], count: int, speed: float) -> tuple[int, float]:
    """Return the channels that carry more; of equal ones the first."""
    return (count, speed) if count * speed > _BETTER * best[0] * best[1] else best


def algorithms(kind: str, cluster: Cluster) -> tuple[str, ...]:
    """Return the algorithms that NCCL has for a collective on some hosts, without CollNet."""
    has_nvls = c.NVLS_EFFICIENCY[cluster.row] > 0 and cluster.nvls[0] > 1
    if kind == "all-reduce":
        several = ("nvls-tree",) if cluster.hosts > 1 else ("nvls",)
        return ("tree", "ring", *(several if has_nvls else ()))
    if kind in ("all-gather", "reduce-scatter"):
        pat = ("pat",) if cluster.hosts == cluster.ranks else ()
        return ("ring", *pat, *(("nvls",) if has_nvls and cluster.hosts == 1 else ()))
    return ("ring",)


def protocols(algorithm: str) -> tuple[str, ...]:
    """Return the protocols that an algorithm runs with."""
    return c.PROTOCOLS if algorithm in ("ring", "tree") else ("simple",)


def steps(kind: str, ranks: int) -> int:
    """Return the steps of a ring."""
    if kind in ("all-gather", "reduce-scatter"):
        return ranks - 1
    return 2 * (ranks - 1) if kind == "all-reduce" else ranks


def latency(  # noqa: PLR0911 -- one formula an algorithm
    cluster: Cluster, kind: str, algorithm: str, protocol: str
) -> float:
    """Return the latency of a collective [us]."""
    p = c.PROTOCOLS.index(protocol)
    own = "collnet-direct" if algorithm == "in-network" else algorithm
    if own == "collnet-direct" and c.NVLS_EFFICIENCY[cluster.row] > 0:
        own = "nvls"  # its reduction inside hosts, in the switches' tree between them
    k, g = cluster.hosts, cluster.ranks // cluster.hosts
    inside = c.NVLINK_LATENCY[own][p]
    between = c.NET_LATENCY["tree" if cluster.per_host == 1 and own in ("ring", "pat") else own][p]
    base = c.BASE_LATENCY[own][p]
    depth = k.bit_length() - 1
    if own == "ring":
        if kind in ("broadcast", "reduce"):
            hop = c.NVLINK_LATENCY if k == 1 else c.NET_LATENCY
            return base + steps(kind, cluster.ranks) * hop["tree" if protocol == "simple" else "ring"][p]
        if k > 1:
            overhead = c.NET_OVERHEAD[cluster.cpu] * (3 if protocol == "simple" else 1)
            inside = max(inside, overhead)
        far = (2 if kind == "all-reduce" else 1) * (k - 1)
        return base + (steps(kind, cluster.ranks) - far) * inside + far * between
    if own == "tree":
        return base + 2 * ((g - 1) * inside + depth * between)
    if own == "nvls":
        return inside + (between if k > 1 else 0.0)
    if own == "nvls-tree":
        return base + inside + 2 * depth * between
    if own == "pat":
        return base + depth * between / 3.5 + cluster.ranks * 2.8
    return base + 2 * (min(1, g - 1) * inside + (g - 1) * 0.4) + between


def bandwidth(cluster: Cluster, kind: str, algorithm: str, protocol: str, *, nics: bool = True) -> float:
    """Return the most bytes over time that NCCL's model gives a collective [GB/s].

    Parameters
    ----------
    cluster
        The hosts.
    kind, algorithm, protocol
        What runs.
    nics
        Whether the NICs count; else only what NCCL itself, GPUs and NVLink allow.
    """
    count, speed = cluster.channels
    row, scale = cluster.row, cluster.scale
    total = count * speed
    if not nics and cluster.hosts > 1 and total >= cluster.nics * cluster.nic_rate * cluster.nic_fraction:
        # The NICs decided on the channels; NVLink would carry more.
        share = 1 - 1 / max(cluster.nics, 2)
        total = cluster.nvlink / share if cluster.per_host > 1 else math.inf
    ring = cluster.ranks / steps(kind, cluster.ranks)
    if algorithm == "ring":
        if protocol == "ll":
            several = 1 if cluster.cpu == "amd" else 0
            total = min(c.LL_MOST[row if cluster.hosts == 1 else several][scale], total / 2)
        elif protocol == "ll128":
            total = min(0.92 * total, count * c.RING_LL128_MOST[row][scale])
        return total * ring
    if algorithm == "tree":
        total = min(0.92 * total, count * c.TREE_MOST[row][scale])
        if protocol == "ll":
            several = 1 if cluster.cpu == "amd" else 0
            total = min(total / 3.8, c.LL_MOST[row if cluster.hosts == 1 else several][scale])
        elif protocol == "ll128":
            most = count * c.TREE_LL128_MOST[row][scale]
            total = min(total * (7 / 9 if cluster.hosts == 1 else 120 / 128), most)
        return total / 2
    if algorithm == "pat":
        return 0.75 * total
    if algorithm in ("nvls", "nvls-tree", "in-network"):
        return _nvls(cluster, kind, algorithm, nics=nics)
    return total * ring


def _nvls(cluster: Cluster, kind: str, algorithm: str, *, nics: bool, caps: bool = True) -> float:
    """Return the bandwidth of NVLS, alone, over trees or over trees in the switches [GB/s]."""
    count, inside, between = cluster.nvls
    inside *= c.NVLS_EFFICIENCY[cluster.row] * (count - 1) / max(count, 1)
    g = cluster.per_host
    if not inside:
        return math.inf  # no NVLS: the scale-up domain's own time counts
    speed = inside * (2 if kind == "all-reduce" else (g - 1) / g)
    if cluster.hosts > 1 and (nics or g > count):
        speed = min(speed, between * (2 if cluster.scale == 1 or algorithm == "in-network" else 1))
    if algorithm == "nvls-tree" and nics and caps:  # in the choice: tables of clusters lie above them
        speed = min(speed, c.NVLS_TREE_MOST[cluster.row][cluster.scale])
    factor = cluster.ranks / steps(kind, cluster.ranks) if kind == "all-reduce" else 1.0
    return count * speed * factor


def chunk_bytes(cluster: Cluster, algorithm: str, size: float) -> int:
    """Return the chunk that a channel of NVLS takes of a message for each head [bytes].

    Parameters
    ----------
    cluster
        The hosts.
    algorithm
        ``nvls``, also with ``in-network``, or ``nvls-tree``.
    size
        Bytes of the message.

    Examples
    --------
    >>> one = Cluster(1, 8, 8, 50.0, 370.8, "hopper")
    >>> [chunk_bytes(one, "nvls", size) >> 10 for size in (2**30, 2**30 - 1, 2**25, 2**20)]
    [128, 64, 32, 16]
    """
    chunk = _CHUNK
    if algorithm == "nvls-tree" and cluster.hosts >= _TREE_HOSTS:
        chunk = _TREE_CHUNK
    for loops, smaller in _SMALLER["nvls-tree" if algorithm == "nvls-tree" else "nvls"]:
        if size < loops * _nvls_lanes(cluster) * chunk and chunk > smaller:
            chunk = smaller
    return chunk


def _nvls_lanes(cluster: Cluster) -> float:
    """Return how many chunks a loop of NVLS takes: channels times heads."""
    return _NVLS_LOOP[cluster.row][min(cluster.scale, 1)] * cluster.per_host


def fill_s(cluster: Cluster, kind: str, algorithm: str, size: float) -> float:
    """Return the time until the pipeline of an all-reduce with NVLS is full [s]; 0 for what has none."""
    if kind != "all-reduce" or algorithm not in ("nvls", "nvls-tree", "in-network"):
        return 0.0
    depth = cluster.hosts.bit_length() - 1 if algorithm == "nvls-tree" else 1
    loops = 2 * max(depth, 1) * _nvls_lanes(cluster) * chunk_bytes(cluster, algorithm, size)
    return loops / (_nvls(cluster, kind, algorithm, nics=True, caps=False) * 1e9)


def correction(cluster: Cluster, algorithm: str, protocol: str, size: float) -> float:
    """Return the factor on the bandwidth of trees of medium sizes."""
    is_tree = algorithm == "tree" or (algorithm == "nvls-tree" and cluster.architecture == "blackwell")
    row = c.TREE_CORRECTION[c.PROTOCOLS.index(protocol)]
    place = int(size // 64).bit_length() - 1
    return row[place] if is_tree and 0 <= place < len(row) else 1.0


def fixed_latency(cluster: Cluster, kind: str, algorithm: str, protocol: str, size: float) -> float:
    """Return the latency of a collective of some bytes [us]: Simple rings have a plateau."""
    found = latency(cluster, kind, algorithm, protocol)
    large = size / (2 * cluster.channels[0] * cluster.ranks) >= _PLATEAU_BYTES
    if algorithm == "ring" and protocol == "simple" and kind == "all-reduce" and cluster.hosts > 1 and large:
        found *= 1.4 if cluster.row > 0 else 1.9
    return found


def time_s(cluster: Cluster, kind: str, algorithm: str, protocol: str, size: float) -> float:
    """Return the time that NCCL's model gives a collective [s]; its choice is the shortest.

    Examples
    --------
    >>> dgx = Cluster(4, 32, 8, 50.0, 370.8, "hopper")
    >>> round(2**30 / time_s(dgx, "all-reduce", "ring", "simple", 2**30) / 1e9, 1)
    184.7
    """
    speed = bandwidth(cluster, kind, algorithm, protocol) * correction(cluster, algorithm, protocol, size)
    return fixed_latency(cluster, kind, algorithm, protocol, size) * 1e-6 + size / (speed * 1e9)
