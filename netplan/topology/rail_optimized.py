r"""Rail-optimized: NIC r of every host goes to a leaf of rail r.

Hosts come in *blocks* of d (a leaf's downlinks; NVIDIA's scalable unit); a block has one leaf
per rail, so two GPUs of equal local index in one block are one switch apart. The rails meet in
the spines (two tiers) or in spines and cores (three tiers). With H hosts and n rails:

* blocks B = ceil(H / d); leaves L = B n;
* two tiers: spines as in `leaf_spine`, every leaf on every spine;
* three tiers, pods ``by: block``: as in `clos`, a pod holding whole blocks;
* three tiers, pods ``by: rail``: each rail's B leaves are cut into equal pods, so traffic of
  one rail stays under its own spines as far as a pod reaches (the DGX SuperPOD from 4,096 GPUs);
  ``core.domains: D`` then gives each of D sets of rails cores of its own.

::

      spine 0        spine 1          H = 4, n = 2, d = 2: B = 2, L = 4
      /  |  |  \   /  |  |  \
    r0  r1  r0  r1                     leaf-block-rail
    | \/ |   | \/ |
    h0  h1   h2  h3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.spec.tiers import CoreSpec
from netplan.topology.registry import family
from netplan.topology.sizes import (
    check_hosts,
    fewest_switches,
    size_three_tiers,
    size_two_tiers,
    split_leaf,
    split_spine,
)
from netplan.topology.tree import Attachment, build_tree

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import RailOptimizedSpec
    from netplan.spec.planes import DualTorSpec, MultiPlaneSpec
    from netplan.spec.tiers import PodSpec
    from netplan.topology.sizes import ClosSizes, Split


@family(
    "rail-optimized",
    summary="NIC r of every host on the leaves of rail r; two or three tiers, pods by block or by rail",
    leaves_out="NICs with ports on several leaves (multi-plane, dual-tor)",
)
def build(spec: RailOptimizedSpec) -> Fabric:
    """Build a rail-optimized fabric.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    hosts, rails = spec.hosts, spec.hosts.n_nics
    check_hosts(hosts, spec.name)
    by_rail = spec.tiers == 3 and spec.pod.by == "rail"  # noqa: PLR2004 -- tiers
    rate, name = hosts.nic_speed, spec.name
    sizes = fewest_switches(
        spec,
        lambda leaf: split_leaf(leaf, spec.radix, rate, name),
        lambda leaf: rail_sizes(spec, -(-hosts.count // leaf.down), rails, leaf, name, by_rail=by_rail),
        lambda down: -(-hosts.count // down) * rails,
        nics=hosts.count * rails,
        rate=rate,
        core=spec.core if spec.tiers == 3 else None,  # noqa: PLR2004 -- tiers
    )
    return build_tree(
        spec.name,
        spec.kind,
        hosts=hosts,
        n_hosts=hosts.count,
        nics=rails,
        attachment=attach_rails(hosts.count, rails, sizes.leaf.down, sizes, by_rail=by_rail),
        sizes=sizes,
        cables=spec.cables,
        spec=spec,
    )


def rail_sizes(
    spec: RailOptimizedSpec | MultiPlaneSpec | DualTorSpec,
    blocks: int,
    rails: int,
    leaf: Split,
    name: str,
    *,
    by_rail: bool,
) -> ClosSizes:
    """Find the switches of each tier (of each plane, where there are planes).

    Parameters
    ----------
    spec
        What is wanted.
    blocks, rails
        Blocks of hosts, and leaves of each.
    leaf
        A leaf's ports.
    name
        Name of the fabric, for messages.
    by_rail
        Whether pods are of one rail each.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    pod: PodSpec = spec.pod
    if spec.tiers == 2:  # noqa: PLR2004 -- tiers
        three = "tiers: 3" if spec.kind == "dual-tor" else ""
        count, spine = spec.hosts.count, spec.spine
        return size_two_tiers(name, count, rails, leaf.down, leaf, spine, spec.radix, three_tiers=three)
    leaves = blocks * rails
    core = spec.core if isinstance(spec.core, CoreSpec) else CoreSpec(**dict(spec.core))
    if by_rail:
        return size_three_tiers(name, rails, leaves, leaf, pod, spec.spine, core, spec.radix)
    # Pods hold whole blocks.
    down = split_spine(spec.spine, spec.radix, leaf.up_rate, name).down
    if rails > down:
        raise FabricError(
            f"{name}: a block has {rails} leaves, one per rail, but a spine has {down} downlinks",
            hint=f"feasible: {'' if spec.kind == 'dual-tor' else 'pod.by: rail; '}"
            f"spines with at least {rails} downlinks",
        )
    if pod.leaves is not None and pod.leaves % rails:
        near = {pod.leaves // rails * rails, (pod.leaves // rails + 1) * rails}
        fits = [str(leaves) for leaves in sorted(near) if 0 < leaves <= down]
        raise FabricError(
            f"{name}: pod.leaves = {pod.leaves} is not a multiple of the {rails} rails, so a block "
            "would be cut in two",
            hint=f"feasible: {' or '.join(fits or [str(down // rails * rails)])}",
        )
    return size_three_tiers(name, None, leaves, leaf, pod, spec.spine, core, spec.radix, block=rails)


def attach_rails(n_hosts: int, rails: int, downlinks: int, sizes: ClosSizes, *, by_rail: bool) -> Attachment:
    """Attach NIC r of each host to the leaf of its block and rail."""
    host = np.repeat(np.arange(n_hosts, dtype=np.int32), rails)
    rail = np.tile(np.arange(rails, dtype=np.int32), n_hosts)
    block = host // downlinks
    blocks = sizes.leaves // rails
    number = np.arange(sizes.leaves, dtype=np.int32)
    pod_rail = None
    if by_rail:
        leaf_rail, leaf_block = number // blocks, number % blocks
        endpoint_leaf = rail * blocks + block
        pods_per_rail = sizes.pods // rails
        leaf_pod = leaf_rail * pods_per_rail + leaf_block // sizes.leaves_per_pod
        pod_rail = np.repeat(np.arange(rails, dtype=np.int16), pods_per_rail)
    else:
        leaf_block, leaf_rail = number // rails, number % rails
        endpoint_leaf = block * rails + rail
        leaf_pod = number // sizes.leaves_per_pod
    return Attachment(
        endpoint_leaf=endpoint_leaf,
        endpoint_port=host % downlinks,
        leaf_pod=leaf_pod,
        leaf_rail=leaf_rail.astype(np.int16),
        leaf_template="leaf-b{:d}-r{:d}",
        leaf_parts=(leaf_block, leaf_rail),
        pod_rail=pod_rail,
    )
