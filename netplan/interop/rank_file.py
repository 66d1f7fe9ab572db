"""Ranks of a job: a hostfile for mpirun, and the rankfile of Open MPI, which binds each rank to a slot.

NCCL takes the ranks that the launcher gives; netplan's rank r is GPU r of the fabric, hosts in order. Hosts
need as many slots as they have GPUs.

Format: Open MPI, ``orte_hosts(7)`` (hostfile) and ``mpirun(1)`` (rankfile: ``rank 0=host slot=0``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.interop.ports import plain_names
from netplan.interop.registry import WriteOptions, add_format

if TYPE_CHECKING:
    from netplan.fabric import Fabric


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write ``hostfile`` and ``rankfile``."""
    names = plain_names(fabric)
    hosts: list[str] = []
    ranks: list[str] = []
    for host, gpus in zip(fabric.host_ids.tolist(), fabric.gpus_per_host.tolist(), strict=True):
        hosts.append(f"{names[host]} slots={gpus}")
        first = len(ranks)
        ranks += [f"rank {first + gpu}={names[host]} slot={gpu}" for gpu in range(gpus)]
    return {
        "hostfile": ("\n".join(hosts) + "\n").encode(),
        "rankfile": ("\n".join(ranks) + "\n").encode(),
    }


add_format(
    "rank-file",
    __name__,
    summary="hostfile and rankfile for mpirun: rank r is GPU r of the fabric, for NCCL's jobs",
    checked_by="its grammar, by test",
    leaves_out="everything but hosts and their GPUs; slots are GPUs, not cores",
    suffix="",
    kind="config",
    is_folder=True,
    write=write,
)
