"""What designs are simulated with: two rings over all GPUs, and all-to-alls in groups all over the fabric.

* ``all-reduce``: a ring all-reduce of all GPUs, hosts in order;
* ``all-reduce-random``: the same with hosts in random order, as a cluster in use hands them out;
* ``all-to-all-groups``: the hosts in random order, cut into groups of ``group`` GPUs (expert parallelism),
  and all groups at it at once: nearly every byte crosses the spines, so the whole fabric is loaded, while
  flows stay few. With PXN, as NCCL does: data first goes over the scale-up domain to the GPU on the
  destination's rail. Each host sends each other host of its group, on each of n NICs, g^2 S / (N n) bytes
  (g GPUs a host, N ranks a group, S bytes a rank). Hosts that fill no group are idle.

An all-to-all of all GPUs would be 268 million flows on 16,384 GPUs. Groups load the cuts of the network as it
does (nearly all peers are under other leaves), but for the random unevenness of the draw.

A group has at most as many hosts as keep the flows of all groups under `MOST_FLOWS`, for one port a NIC; the
same for all designs of a request.

*Efficiency* is the time of the same flows with nothing contended over the simulated one, latency left out of
both: on 131,072 GPUs the ring's latency is most of a 1 GiB all-reduce and would hide what the fabric does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.spec.traffic import CollectiveSpec
from netplan.traffic import Demand, Phase, PhaseTraffic, build_demand
from netplan.traffic.planes import over_planes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.planning.plan.request import Request
    from netplan.simulate.result import Result

__all__ = ["MOST_FLOWS", "WORKLOADS", "demands", "grouped_all_to_all", "hosts_of_group", "large_efficiency"]

#: Flows between NICs of all groups together.
MOST_FLOWS = 400_000

WORKLOADS = ("all-reduce", "all-reduce-random", "all-to-all-groups")

_RING = {"kind": "all-reduce", "size": "16 GiB"}

#: Bytes that each rank sends in an all-to-all.
_SIZE = 2**30

#: Bytes that a flow of an all-to-all may have outstanding (NCCL p2p), as in `AllToAllSpec`.
_WINDOW = 2**20

#: Tells the draw of groups apart from other uses of the user's seed.
_GROUP_SEED = 0x6A2A


@dataclass(frozen=True)
class Workload:
    """A demand with its name."""

    name: str
    demand: Demand


def demands(fabric: Fabric, request: Request) -> Iterator[Workload]:
    """Yield the demands of all workloads on a fabric."""
    for name, placement in (("all-reduce", "packed"), ("all-reduce-random", "random")):
        spec = CollectiveSpec.model_validate({"name": name, **_RING, "placement": {"kind": placement}})
        yield Workload(name, build_demand(fabric, spec, seed=request.seed))
    hosts = hosts_of_group(request)
    yield Workload("all-to-all-groups", grouped_all_to_all(fabric, hosts, seed=request.seed))


def hosts_of_group(request: Request) -> int:
    """Return the hosts of each all-to-all group: 2 at least, all at most.

    Examples
    --------
    >>> from netplan.planning.plan import Request
    >>> hosts_of_group(Request(gpus=1024)), hosts_of_group(Request(gpus=131072))
    (8, 4)
    """
    nics = request.hosts * request.nics
    most = min(-(-request.group // request.gpus_per_host), 1 + MOST_FLOWS // nics)
    return min(max(most, 2), request.hosts)


def grouped_all_to_all(fabric: Fabric, hosts: int, *, seed: int = 0, size: float = _SIZE) -> Demand:
    """Return all-to-alls in groups of hosts drawn at random, all at once.

    Parameters
    ----------
    fabric
        Whole, and with hosts that are all alike.
    hosts
        Hosts of each group, at least 2.
    seed
        Decides which hosts make a group.
    size
        Bytes that each rank sends, its own part included.
    """
    rng = np.random.default_rng([_GROUP_SEED, seed])
    n_groups = fabric.n_hosts // hosts
    group = rng.permutation(fabric.n_hosts)[: n_groups * hosts].reshape(n_groups, hosts)
    # In turns, as a schedule would: in turn t each host sends to the t-th after it.
    peers = np.stack([np.roll(group, -turn, axis=1) for turn in range(1, hosts)])
    src_host = np.broadcast_to(group, peers.shape).ravel()
    nics = _nics_of_host(fabric)
    gpus, n_nics = int(fabric.gpus_per_host[0]), nics.shape[1]
    ranks = hosts * gpus
    src, dst = nics[src_host].ravel(), nics[peers.ravel()].ravel()
    away = ranks - gpus
    local_s = (gpus - 1) * size / ranks  # to the other GPUs of the host
    relayed_s = away * (gpus - 1) / gpus * size / ranks  # PXN
    part = PhaseTraffic(
        Phase("all-to-all PXN", scale_up_s=(local_s + relayed_s) / float(fabric.scale_up_rate.min())),
        src,
        dst,
        np.full(len(src), gpus * gpus / n_nics * size / ranks),
    )
    part = over_planes(fabric, part, "all")
    n = len(part.src)
    return Demand(
        name="all-to-all-groups",
        kind="all-to-all",
        n_ranks=n_groups * ranks,
        size_bytes=round(size),
        busbw_factor=(ranks - 1) / ranks,
        qps=1,
        work_conserving=False,
        phases=(part.phase,),
        phase=np.zeros(n, np.int32),
        src=part.src.astype(np.int32),
        dst=part.dst.astype(np.int32),
        size=np.asarray(part.size, np.float64),
        start=np.zeros(n),
        channel=np.zeros(n, np.int32),
        ring=np.full(n, -1, np.int32),
        window_bytes=_WINDOW,
    )


def _nics_of_host(fabric: Fabric) -> NDArray[np.int64]:
    """(n_hosts, n_nics) first port of each NIC of each host."""
    first = fabric.nic_ptr[:-1]
    return first.reshape(fabric.n_hosts, -1)


def large_efficiency(result: Result) -> float:
    """Return ideal over simulated time of a result's phases, latency left out of both."""
    ideal = actual = 0.0
    for phase in result.phases:
        # Of a ring both times hold the same latency; of other phases that of the last flow.
        ideal += max(phase.ideal_s - phase.latency_s, phase.scale_up_s)
        actual += max(phase.completion_s - phase.latency_s, phase.scale_up_s)
    return min(ideal / actual, 1.0) if actual else 1.0
