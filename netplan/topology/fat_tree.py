"""The k-ary fat-tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).

k pods, each of k/2 leaves and k/2 spines; k^2/4 cores in k/2 groups; k^3/4 NIC ports;
5k^2/4 switches; 3k^3/4 cables, a third on each level. Every port of every switch is in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.topology.registry import family
from netplan.topology.sizes import MOST_ENDPOINTS, ClosSizes, Split
from netplan.topology.tree import build_tree, hosts_on_leaves
from netplan.units import format_count

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import FatTreeSpec


@family(
    "fat-tree",
    summary="the full k-ary fat-tree of Al-Fares: k pods, k^3/4 NIC ports, non-blocking",
    leaves_out="partly filled trees (use kind: clos)",
)
def build(spec: FatTreeSpec) -> Fabric:
    """Build a k-ary fat-tree.

    Raises
    ------
    FabricError
        The NICs of a host do not divide the k/2 downlinks of a leaf, or the tree is absurdly large.
    """
    half = spec.k // 2
    hosts = spec.hosts
    nics = hosts.gpus if hosts.nics is None else hosts.nics
    if half % nics or (hosts.gpus % nics and nics % hosts.gpus):
        raise FabricError(
            f"{spec.name}: hosts with {nics} NICs for {hosts.gpus} GPUs do not fill a leaf of {half} "
            "downlinks evenly",
            hint=f"give hosts.nics a divisor of k/2 = {half} that fits hosts.gpus, or use kind: clos",
        )
    if half**2 * spec.k > MOST_ENDPOINTS:
        raise FabricError(
            f"{spec.name}: k = {spec.k} gives {format_count(half**2 * spec.k)} NIC ports; netplan builds "
            f"up to {format_count(MOST_ENDPOINTS)}",
            hint="take a smaller k",
        )
    n_hosts = half * half * spec.k // nics
    split = Split(spec.k, half, half, hosts.nic_speed)
    sizes = ClosSizes(
        leaf=split,
        leaves=spec.k * half,
        leaves_per_pod=half,
        pods=spec.k,
        spines=half,
        spine=split,
        cores_per_group=half,
        core_radix=spec.k,
    )
    return build_tree(
        spec.name,
        spec.kind,
        hosts=hosts,
        n_hosts=n_hosts,
        nics=nics,
        attachment=hosts_on_leaves(n_hosts, nics, half, half),
        sizes=sizes,
        cables=spec.cables,
        spec=spec,
    )
