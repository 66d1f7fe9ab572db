r"""Rail-only: each rail a network of its own; GPUs of different rails meet inside hosts only.

Wang et al., *Rail-only: A Low-Cost High-Performance Network for Training LLMs with Trillion
Parameters* (arXiv 2307.12169). Traffic that changes rail goes over the scale-up domain first
(PXN, or a domain of 72 GPUs), so no switch has to join the rails. With H hosts of n NICs:

* one tier: n leaves of H <= r ports, no cable between switches;
* two tiers: n leaf-spine networks of H NICs each, as in `leaf_spine`: leaves L = n ceil(H / d),
  spines n S, S being the smallest divisor of u that is at least ceil(ceil(H / d) u / r).

Without blocking and with r-port switches a rail has r hosts on one tier, r^2/2 on two.

::

    leaf-r0-0    leaf-r1-0      H = 2, n = 2, one tier
     |     \    /     |
     |      \ /       |
     |      / \       |
     h0 ===       === h1        === scale-up inside the host joins the rails
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.topology.registry import family
from netplan.topology.sizes import ClosSizes, Split, check_hosts, fewest_switches, size_two_tiers, split_leaf
from netplan.topology.tree import build_tree, hosts_on_leaves, side_by_side
from netplan.units import format_count

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.planes import RailOnlySpec


@family(
    "rail-only",
    summary="each rail a network of its own, of one or two tiers; rails meet inside hosts only",
    leaves_out="traffic that changes rail in the network: it needs PXN or stays in the scale-up domain",
)
def build(spec: RailOnlySpec) -> Fabric:
    """Build a rail-only fabric.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    hosts, rails = spec.hosts, spec.hosts.n_nics
    check_hosts(hosts, spec.name)
    sizes = _one_leaf(spec) if spec.tiers == 1 else _leaf_spine(spec)
    rail = hosts_on_leaves(hosts.count, 1, sizes.leaf.down, sizes.leaves)
    attachment, together = side_by_side(rail, sizes, rails, split=False)
    number, place = np.divmod(np.arange(together.leaves), sizes.leaves)
    return build_tree(
        spec.name,
        spec.kind,
        hosts=hosts,
        n_hosts=hosts.count,
        nics=rails,
        attachment=replace(
            attachment,
            leaf_rail=number.astype(np.int16),
            leaf_template="leaf-r{:d}-{:d}",
            leaf_parts=(number, place),
            pod_rail=np.arange(rails, dtype=np.int16),
        ),
        sizes=together,
        cables=spec.cables,
        spec=spec,
    )


def _one_leaf(spec: RailOnlySpec) -> ClosSizes:
    """Return the numbers of a rail that is one leaf: all its ports look down."""
    leaf, hosts = spec.leaf, spec.hosts.count
    radix = leaf.radix or spec.radix
    down = leaf.downlinks or radix * leaf.breakout
    if ceil(down / leaf.breakout) > radix:
        raise FabricError(
            f"{spec.name}: leaf.downlinks = {down} need {ceil(down / leaf.breakout)} ports; "
            f"leaf.radix = {radix}",
            hint=f"feasible: at most {format_count(radix * leaf.breakout)}",
        )
    if hosts > down:
        raise FabricError(
            f"{spec.name}: {format_count(hosts)} hosts, but a rail of one leaf reaches {format_count(down)}",
            hint=f"feasible: tiers: 2; at most {format_count(down)} hosts; "
            f"leaf.radix of at least {format_count(ceil(hosts / leaf.breakout))}",
        )
    return ClosSizes(Split(radix + down - ceil(down / leaf.breakout), down, 0, 0.0), 1, 1, 1, 0, None)


def _leaf_spine(spec: RailOnlySpec) -> ClosSizes:
    """Return the numbers of a rail of two tiers."""
    hosts, name = spec.hosts, f"{spec.name}: in each rail"
    rate, count, radix, spine = hosts.nic_speed, hosts.count, spec.radix, spec.spine
    return fewest_switches(
        spec,
        lambda leaf: split_leaf(leaf, radix, rate, name),
        lambda leaf: size_two_tiers(name, count, None, leaf.down, leaf, spine, radix, three_tiers=None),
        lambda down: ceil(count / down),
        nics=count,
        rate=rate,
    )
