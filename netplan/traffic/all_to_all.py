"""All-to-all: every rank sends 1/n of its buffer to every rank, all pairs at once.

With PXN (NCCL's default) data first goes over the scale-up domain to the GPU whose NIC is on the
destination's rail, and then stays in that rail: one flow for each pair of hosts and rail, of
``g S/n`` bytes per destination GPU (g: ranks on the sending host). Without PXN every pair of
GPUs has its own flow from the sender's NIC to the receiver's; (g-1)/g of them change rail.

Algorithms: ``concurrent``: all flows at once; ``pairwise``: k-1 steps, in step s host i sends to host
i + s (the bytes of a step are the same for all, so nothing meets at a receiver's NIC);
``hierarchical``: all that a host has for a rail is brought to the GPU of that rail first, over the
scale-up domain, then sent: the bytes of PXN, in two stages that follow one another.

A NIC carries at most its line rate B, and k hosts of g ranks send g S (k-1)/k each from g NICs, so
that ``busbw <= B (n-1) / ((k-1) g)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.planes import MOST_FLOWS
from netplan.traffic.rails import rank_ports
from netplan.traffic.registry import pattern
from netplan.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import AllToAllSpec
    from netplan.traffic.placement import Placement

#: Steps of a pairwise exchange: each is routed and solved by itself.
MOST_STEPS = 4096


@pattern(
    "all-to-all",
    summary="every rank sends an equal part to every other: at once, pairwise, or hierarchical; PXN or not",
    leaves_out="NCCL's rounds and its window of peers: concurrent runs all flows at the same time",
    busbw_factor=lambda n: (n - 1) / n,
)
def build(
    fabric: Fabric,
    spec: AllToAllSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of an all-to-all.

    Raises
    ------
    TrafficError
        More flows than `MOST_FLOWS`.
    """
    n, k = len(placement), len(placement.hosts)
    ports = rank_ports(placement)
    nics, ranks = np.unique(ports, return_counts=True)
    receivers = ranks / ports.shape[1]
    senders = k if spec.pxn else len(nics)
    if senders * len(nics) > MOST_FLOWS:
        raise TrafficError(
            f"an all-to-all of {format_count(n)} ranks is {format_count(senders * len(nics))} flows; "
            f"netplan takes up to {format_count(MOST_FLOWS)}",
            hint="lower ranks" + ("" if spec.pxn else ", or set pxn: true"),
        )
    part = spec.size / n
    host_of = fabric.host_index[fabric.endpoints.host[nics]]
    src, dst, size = (
        _by_rail(fabric, placement, nics, receivers, part)
        if spec.pxn
        else _by_pair(nics, host_of, receivers, part)
    )
    counts = placement.ranks_per_host
    local = part * (counts - 1)
    relayed = part * (n - counts) * (counts - 1) / counts if spec.pxn else np.zeros(k)
    scale_up = ((local + relayed) / fabric.scale_up_rate[placement.hosts]).max()
    if spec.algorithm == "concurrent":
        phase = Phase(f"all-to-all {'PXN' if spec.pxn else 'direct'}", scale_up_s=float(scale_up))
        return [PhaseTraffic(phase, src, dst, size)]
    none = np.zeros(0, np.int64)
    if spec.algorithm == "hierarchical":
        first = Phase("all-to-all in hosts", lockstep=True, scale_up_s=float(scale_up), scale_up_hops=1)
        return [
            PhaseTraffic(first, none, none, np.zeros(0)),
            PhaseTraffic(Phase("all-to-all over rails"), src, dst, size),
        ]
    if k > MOST_STEPS:
        raise TrafficError(
            f"a pairwise all-to-all of {k:,} hosts is {k - 1:,} steps; netplan takes up to {MOST_STEPS:,}",
            hint="algorithm: concurrent",
        )
    rate = fabric.scale_up_rate[placement.hosts]
    inside, passed_on = float((local / rate).max()), float((relayed / rate).max())
    steps = [PhaseTraffic(Phase("all-to-all in hosts", scale_up_s=inside), none, none, np.zeros(0))]
    place = np.full(fabric.n_hosts, -1, np.int64)
    place[placement.hosts] = np.arange(k)
    host = fabric.host_index[fabric.endpoints.host]
    shift = (place[host[dst]] - place[host[src]]) % k
    for step in range(1, k):
        rows = shift == step
        phase = Phase(f"all-to-all, host + {step}", scale_up_s=passed_on / (k - 1))
        steps.append(PhaseTraffic(phase, src[rows], dst[rows], size[rows]))
    return steps


def _by_rail(
    fabric: Fabric, placement: Placement, nics: np.ndarray, receivers: np.ndarray, part: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One flow from each host to each NIC of another host, leaving by the NIC of the same rail."""
    hosts, counts = placement.hosts, placement.ranks_per_host
    place = np.repeat(np.arange(len(hosts)), len(nics))
    dst = np.tile(nics, len(hosts))
    away = hosts[place] != fabric.host_index[fabric.endpoints.host[dst]]
    place, dst = place[away], dst[away]
    # The sender's NIC of the receiver's rail, if the job uses it there; else its first one.
    rails = int(fabric.endpoints.rail.max()) + 1
    first = np.full(len(hosts) * rails, -1, np.int64)
    host_place = np.full(fabric.n_hosts, -1, np.int64)
    host_place[hosts] = np.arange(len(hosts))
    nic_place = host_place[fabric.host_index[fabric.endpoints.host[nics]]]
    first[nic_place * rails + fabric.endpoints.rail[nics]] = nics
    any_nic = np.zeros(len(hosts), np.int64)
    any_nic[nic_place[::-1]] = nics[::-1]
    src = first[place * rails + fabric.endpoints.rail[dst]]
    src = np.where(src < 0, any_nic[place], src)
    per_nic = np.zeros(fabric.n_endpoints)
    per_nic[nics] = receivers
    return src, dst, part * counts[place] * per_nic[dst]


def _by_pair(
    nics: np.ndarray, host_of: np.ndarray, receivers: np.ndarray, part: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One flow from each NIC to each NIC of another host."""
    a, b = np.repeat(np.arange(len(nics)), len(nics)), np.tile(np.arange(len(nics)), len(nics))
    away = host_of[a] != host_of[b]
    a, b = a[away], b[away]
    return nics[a], nics[b], part * receivers[a] * receivers[b]
