"""Three tiers: pods of leaves and spines, joined by groups of cores.

With leaves of d downlinks and u uplinks, spines of sd downlinks and v uplinks, cores of r ports:

* leaves L = ceil(H / floor(d / n)), in pods of p = ``pod.leaves`` (else sd, spread evenly);
  pods P = ceil(L / p), the last one perhaps smaller in leaves;
* spines per pod S = the smallest divisor of u that is at least ceil(p u / sd);
* one core group per spine position, of G cores: the smallest divisor of v that is at least
  ceil(P v / r); cores S G in all;
* cables: H n to hosts, L u leaf-spine, P S v spine-core.

Full and non-blocking with r-port switches: r^3/4 NICs, 5r^2/4 switches, r^3/2 cables between them
(DeepSeek-V3, ISCA 2025, Table 3, "FT3").

``core.domains`` above 1 is refused: all NICs of a host are in one pod, so
hosts of different domains would never meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.topology.leaf_spine import hosts_per_leaf
from netplan.topology.registry import family
from netplan.topology.sizes import check_hosts, fewest_switches, size_three_tiers, split_leaf
from netplan.topology.tree import build_tree, hosts_on_leaves

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import ClosSpec
    from netplan.topology.sizes import ClosSizes, Split


@family(
    "clos",
    summary="three tiers; pods of leaves and spines joined by cores, any oversubscription",
    leaves_out="spines that share cores with spines of another position",
)
def build(spec: ClosSpec) -> Fabric:
    """Build a three-tier Clos.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    hosts = spec.hosts
    check_hosts(hosts, spec.name)
    name, nics, rate = spec.name, hosts.n_nics, hosts.nic_speed

    def size(leaf: Split) -> ClosSizes:
        """Size the fabric with such leaves."""
        leaves = -(-hosts.count // hosts_per_leaf(name, nics, leaf))
        return size_three_tiers(name, None, leaves, leaf, spec.pod, spec.spine, spec.core, spec.radix)

    sizes = fewest_switches(
        spec,
        lambda leaf: split_leaf(leaf, spec.radix, rate, name),
        size,
        lambda down: -(-hosts.count // (down // nics)),
        nics=hosts.count * nics,
        rate=rate,
        unit=nics,
        core=spec.core,
    )
    return build_tree(
        spec.name,
        spec.kind,
        hosts=hosts,
        n_hosts=hosts.count,
        nics=hosts.n_nics,
        attachment=hosts_on_leaves(hosts.count, hosts.n_nics, sizes.leaf.down, sizes.leaves_per_pod),
        sizes=sizes,
        cables=spec.cables,
        spec=spec,
    )
