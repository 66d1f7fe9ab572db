"""Which algorithm and protocol NCCL takes, and what it adds to the network's time.

NCCL chooses by its own model, which knows NICs and NVLink but no fabric (NVIDIA/nccl issue 1545);
the fabric then decides how long it takes. A phase under NCCL takes

    latency of NCCL + propagation on the cables
    + max(network's time, scale-up domain's time, S / (what NCCL, GPUs and NVLink allow),
          time of the busiest NIC at the part of its line rate that NCCL's channels use)

The network's time is the engine's, of the bytes that the protocol sends: twice the payload with LL,
128/120 with LL128. NCCL's latencies contain switches and cables of the machine room where they were
measured, so that of the fabric's only the propagation is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import TrafficError
from netplan.spec.traffic import GPU_ARCHITECTURES
from netplan.traffic.demand import Software
from netplan.traffic.nccl import constants as c
from netplan.traffic.nccl import model
from netplan.traffic.nccl.model import Cluster
from netplan.traffic.rails import port_table

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.traffic.placement import Placement

#: Scale-up rates of a GPU and direction up to which it is taken for an architecture [bytes/s].
_UP_TO = ((160e9, "volta"), (320e9, "ampere"), (600e9, "hopper"))


@dataclass(frozen=True)
class Choice:
    """What NCCL runs."""

    algorithm: str
    protocol: str
    software: Software
    wire: float
    """Payload of each byte that the protocol sends."""


def cluster_of(fabric: Fabric, spec: Any, placement: Placement) -> Cluster:  # noqa: ANN401 -- any collective
    """Return what NCCL's model knows of a job's hosts."""
    rate = float(fabric.scale_up_rate[placement.hosts].min())
    gpu = spec.gpu
    if gpu == "auto":
        architecture = next((name for most, name in _UP_TO if rate <= most), "blackwell")
    else:
        architecture = GPU_ARCHITECTURES.get(gpu, gpu)
    ports = port_table(placement, spec.planes)
    efficiency = c.NVLINK_EFFICIENCY[c.ARCHITECTURES.index(architecture)]
    return Cluster(
        hosts=len(placement.hosts),
        ranks=len(placement),
        nics=ports.shape[1],
        nic_rate=float(fabric.endpoint_rate[ports].min()) / 1e9,
        nvlink=rate * efficiency / 1e9,
        architecture=architecture,
        cpu=spec.cpu,
    )


def choose(fabric: Fabric, spec: Any, placement: Placement) -> Choice:  # noqa: ANN401 -- any collective
    """Return what NCCL runs: what the spec says, and for the rest the shortest time of its model.

    Raises
    ------
    TrafficError
        The algorithm does not run with the protocol, or not on these hosts.
    """
    cluster = cluster_of(fabric, spec, placement)
    wanted, protocol, size = spec.algorithm, spec.protocol, spec.size
    names = model.algorithms(spec.kind, cluster) if wanted == "auto" else (wanted,)
    if wanted in ("nvls", "nvls-tree") and not c.NVLS_EFFICIENCY[cluster.row]:
        raise TrafficError(
            f"algorithm {wanted}: GPUs of {cluster.architecture} have no NVLink SHARP",
            hint="gpu: h100, or algorithm: tree",
        )
    free = protocol in ("auto", "none")
    pairs = [
        (name, each)
        for name in names
        for each in (model.protocols(name) if free else (protocol,))
        if each in model.protocols(name)
    ]
    name, best = min(pairs, key=lambda pair: model.time_s(cluster, spec.kind, pair[0], pair[1], size))
    return Choice(name, best, software_of(cluster, spec.kind, name, best, size), c.WIRE[best])


def software_of(cluster: Cluster, kind: str, algorithm: str, protocol: str, size: float) -> Software:
    """Return what NCCL adds to the network's time of a collective."""
    factor = model.correction(cluster, algorithm, protocol, size)
    own = model.bandwidth(cluster, kind, algorithm, protocol, nics=False) * factor * 1e9
    fixed = model.latency(cluster, kind, algorithm, protocol) * 1e-6
    fixed += model.fill_s(cluster, kind, algorithm, size)
    penalty = {"tree": 0.92, "pat": 0.75}.get(algorithm, 1.0)
    return Software(
        latency_s=fixed,
        busy_s=size / own,
        nic_fraction=cluster.nic_fraction * penalty * factor,
    )
