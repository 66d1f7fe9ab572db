r"""Multi-plane: p equal trees that meet only inside hosts; each carries a part of the traffic.

With H hosts of n NICs of speed c:

* ``assignment: split``: every NIC has a port of c/p in each plane, so a plane has H n endpoints
  (the B300 SuperPOD's twin planes: p = 2, c = 800G). A rank's bytes are spread over the ports
  of its NIC, each part staying in its plane;
* ``assignment: per-nic``: NIC i has its one port in plane i mod p, so a plane has H n/p endpoints
  (DeepSeek's MPFT: p = n = 8). NICs of different planes reach each other through the host.

A plane with m ports of each host (m = n split, n/p per NIC) is, with its leaves, spines and cores
counted as in those families: `leaf_spine` (two tiers) or `clos` (three), all m ports of a host on
one leaf; or, with ``rails: true``, `rail_optimized`, port r on the leaves of rail r. The fabric
has p times as many switches and cables.

Without blocking and with r-port switches a plane has r^2/2 endpoints, 3r/2 switches and r^2/2
cables between them on two tiers. MPFT, r = 64, p = 8: 16,384 endpoints, 768 switches, 16,384
cables (DeepSeek-V3, ISCA 2025, Table 3). Split four ways at r = 512 (102.4 Tb/s as 512 x 200G)
two tiers reach 131,072 NICs of 800G.

::

    plane 0          plane 1        H = 2, n = 1, p = 2, split
    spine ...        spine ...
      |                |
    leaf             leaf
     | \___________   | \           each NIC: one port left, one right
     |    _________\__|  |
     |   /          \    |
     h0 (NIC 0)      h1 (NIC 0)

Order of ids: planes one after the other in each tier, each plane's switches in the order of its
family; endpoints by host, NIC and plane.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.topology.leaf_spine import hosts_per_leaf
from netplan.topology.rail_optimized import attach_rails, rail_sizes
from netplan.topology.registry import family
from netplan.topology.sizes import (
    check_cables,
    check_hosts,
    fewest_switches,
    size_three_tiers,
    size_two_tiers,
    split_leaf,
)
from netplan.topology.tree import build_tree, hosts_on_leaves, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.fabric import Fabric
    from netplan.spec.planes import DualTorSpec, MultiPlaneSpec
    from netplan.spec.tiers import LeafSpec
    from netplan.topology.sizes import ClosSizes, Split
    from netplan.topology.tree import Attachment


@family(
    "multi-plane",
    summary="equal trees, one a plane, that meet inside hosts only; NICs split over planes or in one each",
    leaves_out="planes of different size or speed; reordering between the planes of one message",
)
def build(spec: MultiPlaneSpec) -> Fabric:
    """Build a multi-plane fabric.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    hosts, name = spec.hosts, f"{spec.name}: in each plane"
    split = spec.assignment == "split"
    check_hosts(hosts, spec.name, spec.planes if split else 1)
    ports = hosts.n_nics if split else hosts.n_nics // spec.planes
    rate = port_rate(spec)

    def split_ports(leaf: LeafSpec) -> Split:
        """Divide the ports of such a leaf."""
        return split_leaf(leaf, spec.radix, rate, name)

    if spec.rails:
        by_rail = spec.tiers == 3 and spec.pod.by == "rail"  # noqa: PLR2004 -- tiers
        one, sizes = rail_plane(spec, split_ports, rate, ports, name, by_rail=by_rail)
    else:
        one, sizes = _leaf_plane(spec, split_ports, rate, ports, name)
    return build_planes(spec, one, sizes, spec.planes, split=split)


def port_rate(spec: MultiPlaneSpec) -> float:
    """Return the line rate of a NIC's port [bytes/s]."""
    return spec.hosts.nic_speed / (spec.planes if spec.assignment == "split" else 1)


def _leaf_plane(
    spec: MultiPlaneSpec, split: Callable[[LeafSpec], Split], rate: float, ports: int, name: str
) -> tuple[Attachment, ClosSizes]:
    """Return one plane in which all ports of a host are on one leaf."""
    count, radix = spec.hosts.count, spec.radix

    def size(leaf: Split) -> ClosSizes:
        """Size the plane with such leaves."""
        per_leaf = hosts_per_leaf(name, ports, leaf, "rails: true")
        if spec.tiers == 2:  # noqa: PLR2004 -- tiers
            three = "tiers: 3"
            return size_two_tiers(name, count, None, per_leaf, leaf, spec.spine, radix, three_tiers=three)
        leaves = -(-count // per_leaf)
        return size_three_tiers(name, None, leaves, leaf, spec.pod, spec.spine, spec.core, radix)

    sizes = fewest_switches(
        spec,
        split,
        size,
        lambda down: -(-count // (down // ports)),
        nics=count * ports,
        rate=rate,
        unit=ports,
        core=spec.core if spec.tiers == 3 else None,  # noqa: PLR2004 -- tiers
    )
    return hosts_on_leaves(count, ports, sizes.leaf.down, sizes.leaves_per_pod), sizes


def rail_plane(
    spec: MultiPlaneSpec | DualTorSpec,
    split: Callable[[LeafSpec], Split],
    rate: float,
    ports: int,
    name: str,
    *,
    by_rail: bool,
) -> tuple[Attachment, ClosSizes]:
    """Return one rail-optimized plane.

    Parameters
    ----------
    spec
        The fabric.
    split
        Divides the ports of such a leaf.
    rate
        Line rate of a NIC's port [bytes/s].
    ports
        Ports that a host has in a plane.
    name
        Name of the plane, for messages.
    by_rail
        Whether pods are of one rail each.
    """
    count = spec.hosts.count
    sizes = fewest_switches(
        spec,
        split,
        lambda leaf: rail_sizes(spec, -(-count // leaf.down), ports, leaf, name, by_rail=by_rail),
        lambda down: -(-count // down) * ports,
        nics=count * ports,
        rate=rate,
        core=spec.core if spec.tiers == 3 else None,  # noqa: PLR2004 -- tiers
    )
    return attach_rails(count, ports, sizes.leaf.down, sizes, by_rail=by_rail), sizes


def build_planes(
    spec: MultiPlaneSpec | DualTorSpec, one: Attachment, sizes: ClosSizes, planes: int, *, split: bool
) -> Fabric:
    """Build a fabric of planes that are all like one.

    Raises
    ------
    FabricError
        More cables than netplan builds.
    """
    attachment, together = side_by_side(one, sizes, planes, split=split)
    check_cables(spec.name, together.cables)
    plane = np.repeat(np.arange(planes), sizes.leaves)
    has_rails = bool((attachment.leaf_rail >= 0).any())
    first, second = attachment.leaf_parts
    return build_tree(
        spec.name,
        spec.kind,
        hosts=spec.hosts,
        n_hosts=spec.hosts.count,
        nics=spec.hosts.n_nics,
        attachment=replace(
            attachment,
            leaf_plane=plane.astype(np.int16),
            leaf_template="leaf-p{:d}-b{:d}-r{:d}" if has_rails else "leaf-p{:d}-{:d}-{:d}",
            leaf_parts=(plane, first, attachment.leaf_rail if has_rails else second),
        ),
        sizes=together,
        cables=spec.cables,
        spec=spec,
    )
