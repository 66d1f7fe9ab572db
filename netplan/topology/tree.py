"""Lay out a folded Clos of given sizes: the part that all tree families share.

Order of ids. Nodes: hosts, leaves (by pod), spines (by pod, then position), cores (by domain,
then group, then place). Cables: NIC ports in host order, leaf uplinks in leaf order, spine
uplinks in spine order. `netplan.fabric.ClosStructure` computes paths from exactly this order.

Several trees that never meet (planes, or rails of a rail-only fabric) are one structure as well:
`side_by_side` counts leaves, pods and core domains through, tree after tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.fabric import ClosStructure, FabricBuilder
from netplan.spec.tiers import CableLengthsSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.fabric import FatTreeHostsSpec
    from netplan.spec.tiers import FabricSpecBase, HostsSpec, TwoTierCablesSpec
    from netplan.topology.sizes import ClosSizes


@dataclass(frozen=True)
class Attachment:
    """Which leaf and port each NIC is on, and what the leaves are called."""

    endpoint_leaf: NDArray[np.int32]
    """(n_endpoints,) leaf number, host by host."""
    endpoint_port: NDArray[np.int32]
    """(n_endpoints,) place among the leaf's downlinks."""
    leaf_pod: NDArray[np.int32]
    """(n_leaves,) pod of each leaf, ascending."""
    leaf_rail: NDArray[np.int16]
    """(n_leaves,) rail that each leaf serves; -1 for all."""
    leaf_template: str
    """Name template of the leaves."""
    leaf_parts: tuple[Any, ...]
    """Parts of the template, one value per leaf."""
    pod_rail: NDArray[np.int16] | None = None
    """(n_pods,) rail of each pod's spines, where pods are by rail."""
    ports: int = 1
    """Ports of each NIC, which share its speed; the endpoints of a NIC follow one another."""
    leaf_plane: NDArray[np.int16] | None = None
    """(n_leaves,) plane of each leaf; None in a fabric without planes."""


def hosts_on_leaves(n_hosts: int, nics: int, downlinks: int, leaves_per_pod: int) -> Attachment:
    """Attach all NICs of a host to one leaf, filling leaves in order.

    Parameters
    ----------
    n_hosts, nics
        Hosts, and NICs of each.
    downlinks
        NIC ports of a leaf, >= ``nics``.
    leaves_per_pod
        Leaves of each pod but the last.
    """
    per_leaf = downlinks // nics
    host = np.repeat(np.arange(n_hosts, dtype=np.int32), nics)
    nic = np.tile(np.arange(nics, dtype=np.int32), n_hosts)
    n_leaves = -(-n_hosts // per_leaf)
    leaf = np.arange(n_leaves, dtype=np.int32)
    return Attachment(
        endpoint_leaf=host // per_leaf,
        endpoint_port=(host % per_leaf) * nics + nic,
        leaf_pod=leaf // leaves_per_pod,
        leaf_rail=np.full(n_leaves, -1, np.int16),
        leaf_template="leaf-{:d}-{:d}",
        leaf_parts=(leaf // leaves_per_pod, leaf % leaves_per_pod),
    )


def side_by_side(
    one: Attachment, sizes: ClosSizes, trees: int, *, split: bool
) -> tuple[Attachment, ClosSizes]:
    """Put equal trees that never meet beside each other.

    Parameters
    ----------
    one
        How the hosts are attached to the first tree, with m NICs each.
    sizes
        The numbers of one tree.
    trees
        How many trees.
    split
        Whether each of a host's m NICs has a port in every tree (then in the order of the trees); else a
        host has ``m * trees`` NICs of one port, NIC i in tree ``i mod trees``.

    Returns
    -------
    Attachment, ClosSizes
        Of all trees together. The attachment has neither planes nor other names of leaves yet; rails are
        those of the host's NICs.
    """
    tree = np.arange(trees, dtype=np.int32)

    def beside(column: NDArray[np.int32], step: int) -> NDArray[np.int32]:
        """Return a column of each tree, one after the other, raised by ``step`` from tree to tree."""
        return np.asarray((column + tree[:, None] * step).ravel(), np.int32)

    def rails(column: NDArray[np.int16]) -> NDArray[np.int16]:
        """Return the rails of each tree, one after the other."""
        mine = np.tile(column.astype(np.int32), (trees, 1))
        if not split:
            mine = np.where(mine < 0, mine, mine * trees + tree[:, None])
        return np.asarray(mine.ravel(), np.int16)

    together = replace(
        sizes,
        leaves=sizes.leaves * trees,
        pods=sizes.pods * trees,
        domains=sizes.domains * trees if sizes.cores_per_group else 1,
    )
    return replace(
        one,
        endpoint_leaf=np.asarray((one.endpoint_leaf[:, None] + tree * sizes.leaves).ravel(), np.int32),
        endpoint_port=np.repeat(one.endpoint_port, trees),
        leaf_pod=beside(one.leaf_pod, sizes.pods),
        leaf_rail=rails(one.leaf_rail),
        leaf_parts=tuple(np.tile(part, trees) for part in one.leaf_parts),
        pod_rail=None if one.pod_rail is None else rails(one.pod_rail),
        ports=trees if split else 1,
    ), together


def build_tree(
    name: str,
    kind: str,
    *,
    hosts: HostsSpec | FatTreeHostsSpec,
    n_hosts: int,
    nics: int,
    attachment: Attachment,
    sizes: ClosSizes,
    cables: TwoTierCablesSpec,
    spec: FabricSpecBase,
) -> Fabric:
    """Build the fabric: nodes, cables, endpoints and the structure that paths follow from."""
    uplinks = sizes.leaf.up if sizes.spines else 0
    spine_uplinks = sizes.spine.up if sizes.spine and sizes.cores_per_group else 0
    n_spines = sizes.pods * sizes.spines
    builder = FabricBuilder(name, kind)
    host0 = builder.add_hosts(
        n_hosts,
        gpus=hosts.gpus,
        scale_up_rate=hosts.scale_up,
        template="host-{:05d}",
        parts=(range(n_hosts),),
    )
    a = attachment
    n_leaves = len(a.leaf_pod)
    leaf0 = builder.add_switches(
        n_leaves,
        tier=1,
        radix=sizes.leaf.radix,
        template=a.leaf_template,
        parts=a.leaf_parts,
        pod=a.leaf_pod,
        plane=-1 if a.leaf_plane is None else a.leaf_plane,
        rail=a.leaf_rail,
    )
    leaf_plane = np.full(n_leaves, -1, np.int16) if a.leaf_plane is None else a.leaf_plane
    pod_plane = leaf_plane[np.searchsorted(a.leaf_pod, np.arange(sizes.pods))]
    spine_pod = np.repeat(np.arange(sizes.pods), sizes.spines)
    spine_position = np.tile(np.arange(sizes.spines), sizes.pods)
    spine0 = builder.add_switches(
        n_spines,
        tier=2,
        radix=sizes.spine.radix if sizes.spine else 0,
        template="spine-{:d}-{:d}",
        parts=(spine_pod, spine_position),
        pod=spine_pod,
        plane=pod_plane[spine_pod],
        rail=-1 if a.pod_rail is None else a.pod_rail[spine_pod],
    )
    groups, per_group = sizes.domains * sizes.spines, sizes.cores_per_group
    n_cores = groups * per_group
    core0 = builder.add_switches(
        n_cores,
        tier=3,
        radix=sizes.core_radix,
        template="core-{:d}-{:d}",
        parts=(np.repeat(np.arange(groups), per_group), np.tile(np.arange(per_group), groups)),
        plane=np.repeat(pod_plane[:: sizes.pods // sizes.domains], sizes.spines * per_group),
    )
    nic = np.repeat(np.arange(nics), a.ports)
    builder.add_endpoints(
        host0 + np.repeat(np.arange(n_hosts), len(nic)),
        leaf0 + a.endpoint_leaf,
        rate=hosts.nic_speed / a.ports,
        length=cables.host_leaf,
        gpu=np.tile(nic * hosts.gpus // nics, n_hosts),
        rail=np.tile(nic, n_hosts),
        plane=0 if a.leaf_plane is None else a.leaf_plane[a.endpoint_leaf],
    )
    leaf_cable = spine_cable = 0
    if uplinks:
        leaf = np.repeat(np.arange(n_leaves), uplinks)
        position = np.tile(np.arange(uplinks) // (uplinks // sizes.spines), n_leaves)
        spine = a.leaf_pod[leaf] * sizes.spines + position
        leaf_cable = builder.add_cables(
            leaf0 + leaf,
            spine0 + spine,
            rate=sizes.leaf.up_rate,
            length=cables.leaf_spine,
            kind="leaf_spine",
        )
    if spine_uplinks and sizes.spine:
        spine = np.repeat(np.arange(n_spines), spine_uplinks)
        place = np.tile(np.arange(spine_uplinks) // (spine_uplinks // per_group), n_spines)
        domain = (spine // sizes.spines) // (sizes.pods // sizes.domains)
        group = domain * sizes.spines + spine % sizes.spines
        spine_cable = builder.add_cables(
            spine0 + spine,
            core0 + group * per_group + place,
            rate=sizes.spine.up_rate,
            length=cables.spine_core if isinstance(cables, CableLengthsSpec) else 0.0,
            kind="spine_core",
        )
    structure = ClosStructure(
        endpoint_leaf=a.endpoint_leaf.astype(np.int32),
        endpoint_port=a.endpoint_port.astype(np.int32),
        leaf_pod=a.leaf_pod.astype(np.int32),
        uplinks=uplinks,
        spines=sizes.spines,
        spine_uplinks=spine_uplinks,
        cores_per_group=per_group,
        domains=sizes.domains,
        leaf_node=leaf0,
        spine_node=spine0,
        core_node=core0,
        leaf_cable=leaf_cable,
        spine_cable=spine_cable,
    )
    return builder.finish(structure=structure, spec=spec)
