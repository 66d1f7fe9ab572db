"""Network files of ASTRA-sim's analytical back ends: dimensions, not graphs.

::

    topology: [Switch, Switch]
    npus_count: [8, 16]
    bandwidth: [450.0, 50.0]  # GB/s
    latency: [500.0, 4200.0]  # ns

The first dimension is the scale-up domain, the second all hosts behind one switch: bandwidth is what a GPU's
share of its host's NIC ports carries, latency the longest path's links and switches. A torus keeps its
dimensions, as rings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.interop.registry import WriteOptions, add_format

if TYPE_CHECKING:
    from netplan.fabric import Fabric

#: Latencies where the fabric has none of its own: of a scale-up hop and of a switch [ns].
_SCALE_UP_NS, _SWITCH_NS = 500.0, 600.0


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write the dimensions.

    Raises
    ------
    FabricError
        Hosts differ in GPUs or NIC rates, which dimensions cannot say.
    """
    gpus = np.unique(fabric.gpus_per_host)
    rates = np.bincount(
        fabric.host_index[fabric.endpoints.host], fabric.endpoint_rate, minlength=fabric.n_hosts
    )
    if len(gpus) != 1 or np.ptp(rates) > 0:
        raise FabricError(
            f"fabric {fabric.name!r}: hosts differ in GPUs or NIC rates; ASTRA-sim's dimensions are all alike"
        )
    per_host = int(gpus[0])
    kinds, counts, bandwidth, latency = [], [], [], []
    if per_host > 1:
        kinds, counts = ["Switch"], [per_host]
        bandwidth, latency = [float(fabric.scale_up_rate[0]) / 1e9], [_SCALE_UP_NS]
    switch_ns = _SWITCH_NS if fabric.switch_latency is None else fabric.switch_latency * 1e9
    delay_ns = float(fabric.links.delay.max()) * 1e9
    spec = fabric.spec or {}
    dims = [int(size) for size in spec.get("dims", ())]
    if fabric.kind == "torus" and spec.get("wrap", True) and int(np.prod(dims)) == fabric.n_hosts:
        between = fabric.links.capacity[fabric.nodes.tier[fabric.links.src] > 0]
        for size in dims:
            kinds.append("Ring")
            counts.append(size)
            bandwidth.append(float(between.min()) / per_host / 1e9)
            latency.append(switch_ns + delay_ns)
    elif fabric.n_hosts > 1:
        tiers = int(fabric.nodes.tier.max())
        kinds.append("Switch")
        counts.append(fabric.n_hosts)
        bandwidth.append(float(rates[0]) / per_host / 1e9)
        latency.append((2 * tiers - 1) * switch_ns + 2 * tiers * delay_ns)
    rows = (
        f"topology: [ {', '.join(kinds)} ]",
        f"npus_count: [ {', '.join(map(str, counts))} ]",
        f"bandwidth: [ {', '.join(f'{value:.9g}' for value in map(float, bandwidth))} ]  # GB/s",
        f"latency: [ {', '.join(f'{value:.9g}' for value in map(float, latency))} ]  # ns",
    )
    return {"network.yml": ("# Written by netplan\n" + "\n".join(rows) + "\n").encode()}


add_format(
    "astra-sim",
    __name__,
    summary="network file of ASTRA-sim's analytical back ends: dimensions with bandwidth and latency",
    checked_by="its keys and lengths, by test (ASTRA-sim itself is not run)",
    leaves_out="the graph: oversubscription, ECMP and everything between a host and the top tier",
    suffix=".yml",
    write=write,
)
