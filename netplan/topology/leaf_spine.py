r"""Two tiers, every leaf joined to every spine.

With H hosts of n NICs, leaves of d downlinks and u uplinks and spines of r ports:

* leaves L = ceil(H / floor(d / n)), all NICs of a host on one leaf;
* spines S = the smallest divisor of u that is at least ceil(L u / r) (`sizes.equal_bundle`);
* cables: H n to hosts, L u between leaves and spines, u / S parallel ones per pair.

::

       spine 0      spine 1         H = 4, n = 1, d = 2, u = 2: L = 2, S = 2
        |    \    /    |
        |      X        |
       leaf 0       leaf 1
       h0  h1       h2  h3

The largest non-blocking one with r-port switches has r^2/2 NICs, 3r/2 switches and r^2/2 cables
between them (DeepSeek-V3, ISCA 2025, Table 3, "FT2").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.topology.registry import family
from netplan.topology.sizes import check_hosts, fewest_switches, size_two_tiers, split_leaf
from netplan.topology.tree import build_tree, hosts_on_leaves

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import LeafSpineSpec
    from netplan.topology.sizes import ClosSizes, Split


@family(
    "leaf-spine",
    summary="two tiers; all NICs of a host on one leaf, every leaf on every spine",
    leaves_out="NICs with ports on two leaves (dual-tor), planes (multi-plane)",
)
def build(spec: LeafSpineSpec) -> Fabric:
    """Build a leaf-spine fabric.

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
        per_leaf = hosts_per_leaf(name, nics, leaf)
        return size_two_tiers(name, hosts.count, None, per_leaf, leaf, spec.spine, spec.radix)

    sizes = fewest_switches(
        spec,
        lambda leaf: split_leaf(leaf, spec.radix, rate, name),
        size,
        lambda down: -(-hosts.count // (down // nics)),
        nics=hosts.count * nics,
        rate=rate,
        unit=nics,
    )
    return build_tree(
        spec.name,
        spec.kind,
        hosts=hosts,
        n_hosts=hosts.count,
        nics=hosts.n_nics,
        attachment=hosts_on_leaves(hosts.count, hosts.n_nics, sizes.leaf.down, sizes.leaves),
        sizes=sizes,
        cables=spec.cables,
        spec=spec,
    )


def hosts_per_leaf(name: str, nics: int, leaf: Split, rails: str = "kind: rail-optimized") -> int:
    """Return how many hosts fit one leaf with all their NICs.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    nics
        NICs of each host.
    leaf
        A leaf's ports.
    rails
        How a spec asks for NICs on different leaves, for hints.

    Raises
    ------
    FabricError
        Not even one does.
    """
    if leaf.down < nics:
        raise FabricError(
            f"{name}: a host has {nics} NICs, a leaf {leaf.down} downlinks: no host fits",
            hint=f"spread the NICs over leaves ({rails}), or take leaves with more downlinks",
        )
    return leaf.down // nics
