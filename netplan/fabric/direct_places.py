"""Whether the cables of a direct network are where its structure says (check NP109).

A structure may come from a file that somebody wrote, so its numbers are looked at before arrays
are made from them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.direct import (
    DragonflyPlusStructure,
    DragonflyStructure,
    SlimFlyStructure,
    TorusStructure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.fabric.columns import Fabric
    from netplan.fabric.direct import DirectStructure, HyperXStructure


def misplaced_cables(fabric: Fabric, direct: DirectStructure) -> NDArray[np.bool_]:
    """(n_cables,) whether the structure of a direct network has a cable elsewhere, or does not have it.

    Raises
    ------
    ValueError
        The structure contradicts itself or is of a fabric of another size; the text completes
        "its structure ...".
    """
    for fault in _faults(fabric, direct):
        raise ValueError(fault)
    wrong = np.ones(fabric.links.n_cables, bool)
    low, high = direct.cable_ends()
    rows = slice(2 * direct.first_cable, None, 2)
    wrong[direct.first_cable :] = (fabric.links.src[rows] != low) | (fabric.links.dst[rows] != high)
    ends = fabric.endpoints
    leaf = direct.router_node + direct.endpoint_router.astype(np.int64)
    wrong[ends.cable] = (fabric.links.dst[2 * ends.cable.astype(np.int64)] != leaf) | (ends.leaf != leaf)
    return wrong


def _faults(fabric: Fabric, direct: DirectStructure) -> Iterator[str]:
    """Yield what is wrong with the numbers; later ones rely on earlier ones."""
    if isinstance(direct, (DragonflyStructure, DragonflyPlusStructure)):
        yield from _group_faults(direct)
    elif isinstance(direct, SlimFlyStructure):
        yield from _list_faults(direct)
    else:
        yield from _grid_faults(direct, fabric.n_nodes)
    last = direct.router_node + direct.n_routers
    if isinstance(direct, DragonflyPlusStructure):
        last = max(last, direct.spine_node + direct.groups * direct.spines)
    if last > fabric.n_nodes:
        yield f"has switches up to node {last - 1:,}, the fabric {fabric.n_nodes:,} nodes"
    if len(direct.endpoint_router) != fabric.n_endpoints:
        yield f"has {len(direct.endpoint_router):,} endpoints, the fabric {fabric.n_endpoints:,}"
    if not _within(direct.endpoint_router, direct.n_routers):
        yield f"has endpoints on routers that are not among its {direct.n_routers:,}"
    total = direct.first_cable + direct.n_cables
    if total != fabric.links.n_cables:
        yield f"has {total:,} cables, the fabric {fabric.links.n_cables:,}"


def _within(numbers: NDArray[np.int32], count: int) -> bool:
    """Tell whether all are from 0 to ``count - 1``."""
    return bool(numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < count)


def _group_faults(direct: DragonflyStructure | DragonflyPlusStructure) -> Iterator[str]:
    """Yield what is wrong with groups and the table of global cables."""
    if isinstance(direct, DragonflyPlusStructure):
        places, bundle = direct.spines, direct.leaf_bundle
    else:
        places, bundle = direct.routers, direct.local_bundle
    if min(direct.groups, direct.routers, places, bundle) < 1:
        yield "has no groups, switches or cables in them"
    pairs = direct.groups * (direct.groups - 1) // 2
    ptr, n_global = direct.global_ptr, len(direct.global_low)
    if len(ptr) != pairs + 1 or ptr[0] != 0 or ptr[-1] != n_global or (np.diff(ptr) < 1).any():
        yield f"does not give each of its {pairs:,} pairs of groups a global cable"
    if len(direct.global_high) != n_global:
        yield "has global cables with one end"
    if not (_within(direct.global_low, places) and _within(direct.global_high, places)):
        yield f"has global cables at switches that are not among the {places:,} of a group"


def _list_faults(direct: SlimFlyStructure) -> Iterator[str]:
    """Yield what is wrong with a list of neighbours."""
    low, high = direct.low.astype(np.int64), direct.high.astype(np.int64)
    if len(low) != len(high):
        yield "has cables with one end"
    elif not (_within(direct.low, direct.routers) and _within(direct.high, direct.routers)):
        yield f"has cables at routers that are not among its {direct.routers:,}"
    elif (low >= high).any() or (np.diff(low * direct.routers + high) <= 0).any():
        yield "does not list its cables in order, each once and from the lower router"


def _grid_faults(direct: HyperXStructure | TorusStructure, n_nodes: int) -> Iterator[str]:
    """Yield what is wrong with the dimensions of a grid."""
    sizes = direct.sizes.tolist()
    columns = [direct.bundles, *([direct.wraps] if isinstance(direct, TorusStructure) else [])]
    if not sizes or min(sizes) < 2 or prod(sizes) > n_nodes:  # noqa: PLR2004 -- routers along a dimension
        yield f"has dimensions of {' x '.join(map(str, sizes))} routers, the fabric {n_nodes:,} nodes"
    if any(len(column) != len(sizes) for column in columns) or direct.bundles.min(initial=1) < 1:
        yield "has dimensions without cables"
    if isinstance(direct, TorusStructure) and not _within(direct.wraps, 2):
        yield "has dimensions that neither go around nor end"
