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

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.damaged import RingEdges, damaged_rings, has_failover, whole_rings
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.rails import port_table
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.placement import Placement

_LEAVES_OUT = "chunking: the time until the first chunk is round the ring; channels that NCCL cannot place"


@algorithm(
    "ring",
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    summary="one ring per NIC and channel",
    leaves_out=_LEAVES_OUT,
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows: reduce-scatter and all-gather load links alike, all-reduce twice as much."""
    n = len(placement)
    return [_ring_phase(fabric, spec, placement, (2 if spec.kind == "all-reduce" else 1) * (n - 1) / n)]


def _ring_phase(fabric: Fabric, spec: CollectiveSpec, placement: Placement, passes: float) -> PhaseTraffic:
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


def _ring_edges(fabric: Fabric, spec: CollectiveSpec, placement: Placement) -> RingEdges:
    """Return the edges of all rings, of one channel."""
    if fabric.damage is not None:
        if spec.cross_nic:
            raise TrafficError(
                f"cross_nic = {spec.cross_nic}: rings of a damaged fabric keep to one NIC of each host",
                hint="cross_nic: 0",
            )
        failover = has_failover(fabric, spec.failover)
        return damaged_rings(placement, planes=spec.planes, failover=failover)
    ports = port_table(placement, spec.planes)
    return crossing_rings(ports, alternate=spec.cross_nic == 2) if spec.cross_nic else whole_rings(ports)  # noqa: PLR2004


def crossing_rings(ports: np.ndarray, *, alternate: bool) -> RingEdges:
    """Return the edges of rings that enter a host by one NIC of a pair and leave by the other.

    Parameters
    ----------
    ports : (n_hosts, n_rings)
        The port of each ring's own number; with an odd number the last ring keeps to one.
    alternate
        Odd hosts swap the pair (NCCL_CROSS_NIC=2), so that data leaves by the port that it enters by at the
        next host: only the edge that closes the ring over an odd number of hosts changes rails.
    """
    hosts, rings = ports.shape
    ring = np.arange(rings)
    other = np.minimum(ring ^ 1, rings - 1) if rings % 2 else ring ^ 1
    is_odd = (np.arange(hosts) % 2 == 1)[:, None] & alternate
    enters, leaves = np.where(is_odd, other, ring), np.where(is_odd, ring, other)
    rows = np.arange(hosts)[:, None]
    src = ports[rows, leaves].ravel()
    dst = np.roll(ports[rows, enters], -1, axis=0).ravel()
    edges = whole_rings(ports)
    return replace(edges, src=src, dst=dst)


def _scale_up_time(fabric: Fabric, placement: Placement, rings: int, total: float) -> float:
    """Return the time the busiest GPU needs to send its part of all rings to its neighbour [s]."""
    counts = placement.ranks_per_host
    hosts = placement.hosts
    k = len(hosts)
    # Rings leave a host at the GPUs of their NICs; the GPU with the fewest exits sends the most.
    fewest_exits = rings // counts if k > 1 else np.zeros(k, np.int64)
    sent = np.where(counts > 1, total * (rings - fewest_exits) / rings, 0.0)
    return float((sent / fabric.scale_up_rate[hosts]).max())
