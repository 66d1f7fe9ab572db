"""All-to-all: every rank sends 1/n of its buffer to every rank, all pairs at once.

With PXN (NCCL's default) data first goes over the scale-up domain to the GPU whose NIC is on the
destination's rail, and then stays in that rail: one flow for each pair of hosts and rail, of
``g S/n`` bytes per destination GPU (g: ranks on the sending host). Without PXN every pair of
GPUs has its own flow from the sender's NIC to the receiver's; (g-1)/g of them change rail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.planes import MOST_FLOWS
from netplan.traffic.registry import pattern
from netplan.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import AllToAllSpec
    from netplan.traffic.placement import Placement


@pattern(
    "all-to-all",
    summary="every rank sends an equal part to every other, all pairs at once, with or without PXN",
    leaves_out="NCCL's rounds and its window of peers: all flows run at the same time",
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
    nics, receivers = np.unique(placement.endpoint, return_counts=True)
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
    phase = Phase(f"all-to-all {'PXN' if spec.pxn else 'direct'}", scale_up_s=float(scale_up))
    return [PhaseTraffic(phase, src, dst, size)]


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
