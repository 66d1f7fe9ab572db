"""A fabric as something to be walked: without its structure, and its columns as the kernels take them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from netplan.kernels.walk import switch_graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from netplan.fabric import Fabric


def has_structure(fabric: Fabric) -> bool:
    """Whether paths on a fabric can be computed by arithmetic, as a tree or as a direct network."""
    return fabric.structure is not None or fabric.direct is not None


def without_structure(fabric: Fabric) -> Fabric:
    """Return a fabric on which all paths have to be walked."""
    return replace(fabric, structure=None, direct=None)


class WalkColumns(NamedTuple):
    """Leading arguments of `walk_hashed` and `walk_pinned`, in their order."""

    tier: NDArray[np.int8]
    out_ptr: NDArray[np.int64]
    out_link: NDArray[np.int64]
    link_dst: NDArray[np.int32]
    link_src: NDArray[np.int32]
    cable: NDArray[np.int32]
    leaf: NDArray[np.int32]


def walk_columns(fabric: Fabric) -> WalkColumns:
    """Return the columns that a walk from endpoint to endpoint needs."""
    return WalkColumns(
        fabric.nodes.tier,
        fabric.out_ptr,
        fabric.out_link,
        fabric.links.dst,
        fabric.links.src,
        fabric.endpoints.cable,
        fabric.endpoints.leaf,
    )


def switch_links(fabric: Fabric) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the CSR of links between switches: row pointer over all nodes, and link ids."""
    columns = walk_columns(fabric)
    return switch_graph(*columns[:5])
