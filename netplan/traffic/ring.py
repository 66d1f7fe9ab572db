"""Ring all-reduce, reduce-scatter and all-gather, as NCCL lays them.

Every NIC port has a ring of its own (ring r uses port r of each host, so rings stay in their rail
and plane), times ``channels``; with ``planes: one`` only the first port of each NIC has one. A
ring visits the hosts in rank order; inside a host it passes all GPUs over the scale-up domain,
enters and leaves by the same port (what happens to a dead one: `netplan.traffic.damaged`). With n
ranks on k hosts, R rings of C channels and S bytes, each of the k edges of each ring and channel
carries

* all-reduce:      2(n-1)/n S / (R C)   in 2(n-1) steps,
* reduce-scatter,
  all-gather:       (n-1)/n S / (R C)   in n-1 steps.

The steps are pipelined, so all edges of a ring move at the speed of its slowest: the phase is
*lockstep*. A piece of data travels each edge once per n steps: its latency is that of the edges
in turn, not steps times the longest one; a 30 km span is paid where the ring crosses it.

Busy time in the scale-up domain: a GPU sends every ring on to its neighbour, except the rings
that leave the host at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.damaged import RingEdges, damaged_rings, has_failover, whole_rings
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import RingSpec
    from netplan.traffic.placement import Placement

_LEAVES_OUT = (
    "NCCL's choice of algorithm and protocol by size (ring, Simple is assumed); chunking; alternating "
    "rings (NCCL_CROSS_NIC=2)"
)


@pattern(
    "all-reduce",
    summary="ring all-reduce, one ring per NIC and channel",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: 2 * (n - 1) / n,
)
def all_reduce(
    fabric: Fabric,
    spec: RingSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of an all-reduce."""
    n = len(placement)
    return [_ring_phase(fabric, spec, placement, 2 * (n - 1) / n)]


@pattern(
    "reduce-scatter",
    summary="ring reduce-scatter, one ring per NIC and channel",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
@pattern(
    "all-gather",
    summary="ring all-gather, one ring per NIC and channel",
    leaves_out=_LEAVES_OUT,
    busbw_factor=lambda n: (n - 1) / n,
)
def half_of_all_reduce(
    fabric: Fabric,
    spec: RingSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of a reduce-scatter or an all-gather: they load links alike."""
    n = len(placement)
    return [_ring_phase(fabric, spec, placement, (n - 1) / n)]


def _ring_phase(fabric: Fabric, spec: RingSpec, placement: Placement, passes: float) -> PhaseTraffic:
    """Lay the rings; each carries ``passes`` times its part of the buffer over every edge."""
    edges = _ring_edges(fabric, spec, placement)
    k, rings, channels = len(placement.hosts), edges.rings, spec.channels
    total = passes * spec.size
    if k == 1:
        edges = edges.empty()
    # Parts of an edge other than the first count as rings of their own: data waits for one of them only.
    ring = edges.ring + rings * np.maximum(edges.moved - 1, 0)
    # What shares a port with another ring has other channels, which tell their connections apart.
    channel = np.where(edges.moved > 0, 1 + edges.ring, 0)[:, None] * channels + np.arange(channels)
    phase = Phase(
        name=f"{spec.kind} {spec.algorithm}",
        lockstep=True,
        scale_up_s=_scale_up_time(fabric, placement, rings, total),
        passes=passes,
        scale_up_hops=len(placement) - (k if k > 1 else 0),
    )
    return PhaseTraffic(
        phase,
        np.repeat(edges.src, channels),
        np.repeat(edges.dst, channels),
        np.repeat(total / (rings * channels) * edges.share, channels),
        channel=channel.ravel(),
        ring=(ring[:, None] * channels + np.arange(channels)).ravel(),
    )


def _ring_edges(fabric: Fabric, spec: RingSpec, placement: Placement) -> RingEdges:
    """Return the edges of all rings, of one channel."""
    if fabric.damage is not None:
        failover = has_failover(fabric, spec.failover)
        return damaged_rings(placement, planes=spec.planes, failover=failover)
    nics = _ring_nics(placement)
    if spec.planes == "one":
        nics = nics[:, np.unique(fabric.endpoint_nic[nics[0]], return_index=True)[1]]
    return whole_rings(nics)


def _ring_nics(placement: Placement) -> np.ndarray:
    """Return (n_hosts, n_rings) the NIC port that each ring uses at each host.

    As many rings as the host with the fewest NICs in the job has.
    """
    hosts = placement.hosts
    counts = placement.ranks_per_host
    gpus = placement.fabric.gpus_per_host[hosts]
    first, last = placement.fabric.endpoint_ptr[hosts], placement.fabric.endpoint_ptr[hosts + 1]
    whole = np.flatnonzero(counts == gpus)  # all ranks of the host: all its NICs, without a look at each
    parts = {int(place): placement.nics(int(place)) for place in np.flatnonzero(counts != gpus)}
    rings = int(min([*(last - first)[whole], *(len(nics) for nics in parts.values())]))
    table = first[:, None] + np.arange(rings)
    for place, nics in parts.items():
        table[place] = nics[:rings]
    return table


def _scale_up_time(fabric: Fabric, placement: Placement, rings: int, total: float) -> float:
    """Return the time the busiest GPU needs to send its part of all rings to its neighbour [s]."""
    counts = placement.ranks_per_host
    hosts = placement.hosts
    k = len(hosts)
    # Rings leave a host at the GPUs of their NICs; the GPU with the fewest exits sends the most.
    fewest_exits = rings // counts if k > 1 else np.zeros(k, np.int64)
    sent = np.where(counts > 1, total * (rings - fewest_exits) / rings, 0.0)
    return float((sent / fabric.scale_up_rate[hosts]).max())
