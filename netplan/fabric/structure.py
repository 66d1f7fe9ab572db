r"""Arithmetic description of a folded Clos: any path follows from ids, without a search.

Every tree family (leaf-spine, fat-tree, three-tier Clos, rail-optimized) is this one structure
with other numbers. Leaves are numbered over the whole fabric; leaf ``l`` has ``uplinks`` cables,
numbered ``leaf_cable + l * uplinks + j``; uplink ``j`` goes to the spine at position
``j // leaf_bundle`` of the leaf's pod. Spine ``s`` (numbered over the whole fabric, ``spines``
consecutive ones per pod) has ``spine_uplinks`` cables ``spine_cable + s * spine_uplinks + i``;
uplink ``i`` goes to the ``i // spine_bundle``-th core of the *core group* at the spine's position
in its pod. Core groups of different *domains* do not meet: their endpoints meet only in hosts.

::

    core group 0        core group 1           core (domain, group, place)
      |  |  |             |  |  |
    spine 0 of each pod  spine 1 of each pod   spine = pod * spines + position
       \    X    /
      leaf 0 ... leaf n of the pod             leaf_pod[leaf] = pod
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClosStructure:
    """Numbers from which all paths of a folded Clos follow (see the module)."""

    endpoint_leaf: NDArray[np.int32]
    """(n_endpoints,) leaf number of each endpoint."""
    endpoint_port: NDArray[np.int32]
    """(n_endpoints,) place of the endpoint among its leaf's downlinks."""
    leaf_pod: NDArray[np.int32]
    """(n_leaves,) pod of each leaf, ascending."""
    uplinks: int
    """Uplinks of each leaf; 0 in a fabric of one tier."""
    spines: int
    """Spines of each pod; 0 in a fabric of one tier."""
    spine_uplinks: int
    """Uplinks of each spine; 0 in a fabric of two tiers."""
    cores_per_group: int
    """Cores of each core group; 0 in a fabric of two tiers."""
    domains: int
    """Sets of core groups that do not meet."""
    leaf_node: int
    """Node id of leaf 0; leaves follow in order, likewise below."""
    spine_node: int
    core_node: int
    leaf_cable: int
    """Cable id of uplink 0 of leaf 0."""
    spine_cable: int
    """Cable id of uplink 0 of spine 0."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.leaf_pod)

    @property
    def n_pods(self) -> int:
        """Number of pods."""
        return int(self.leaf_pod[-1]) + 1

    @property
    def pods_per_domain(self) -> int:
        """Pods whose spines share core groups."""
        return -(-self.n_pods // self.domains)

    @property
    def leaf_bundle(self) -> int:
        """Parallel cables between a leaf and a spine of its pod."""
        return self.uplinks // self.spines if self.spines else 0

    @property
    def spine_bundle(self) -> int:
        """Parallel cables between a spine and a core of its group."""
        return self.spine_uplinks // self.cores_per_group if self.cores_per_group else 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `from_dict` makes an equal structure."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ClosStructure:
        """Return the structure that `to_dict` described."""
        arrays = {"endpoint_leaf", "endpoint_port", "leaf_pod"}
        values: dict[str, Any] = {
            k: np.asarray(v, np.int32) if k in arrays else int(v) for k, v in data.items()
        }
        return cls(**values)
