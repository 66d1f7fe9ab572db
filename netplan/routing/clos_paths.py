"""Paths on a folded Clos by arithmetic on ids (see `netplan.fabric.ClosStructure`).

Every path goes up to the lowest tier at which the two endpoints meet, then down. Four choices
decide it; a scheme makes them, and everything else follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.routing.routes import refuse_unreachable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import ClosStructure, Fabric

Stage = Literal["leaf_up", "spine_up", "core_down", "spine_down"]


@dataclass(frozen=True, eq=False)
class Choice:
    """One choice that a scheme has to make, for many paths at once."""

    stage: Stage
    """Where: a leaf's uplinks, a spine's uplinks, a core's or a spine's parallel cables downwards."""
    node: NDArray[np.int64]
    """(n,) the switch that chooses."""
    row: NDArray[np.int64]
    """(n,) the path it chooses for."""
    options: int
    """How many equal-cost links there are; the choice is an index into them, by link id."""
    first: NDArray[np.int64]
    """(n,) link id of the first option; the options are ``first + 2 * index``."""


#: Makes a choice: (n,) indices in ``[0, options)``.
Chooser = Callable[[Choice], "NDArray[np.int64]"]


def clos_paths(
    fabric: Fabric,
    structure: ClosStructure,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    choose: Chooser,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one path per row.

    Parameters
    ----------
    fabric, structure
        The fabric and its structure.
    src, dst : (n,) endpoints
        The two ends of each path.
    choose
        Makes the choices.

    Returns
    -------
    path_ptr : (n + 1,) int64
        CSR row pointer.
    link : (nnz,) int64
        Links of each path, in order.

    Raises
    ------
    RoutingError
        Two endpoints are in core domains that do not meet.
    """
    s = structure
    n = len(src)
    cable = fabric.endpoints.cable.astype(np.int64)
    hops = np.full((n, 6), -1, np.int64)
    hops[:, 0], hops[:, 5] = 2 * cable[src], 2 * cable[dst] + 1
    src_leaf, dst_leaf = s.endpoint_leaf[src].astype(np.int64), s.endpoint_leaf[dst].astype(np.int64)
    src_pod, dst_pod = s.leaf_pod[src_leaf].astype(np.int64), s.leaf_pod[dst_leaf].astype(np.int64)
    rows = np.flatnonzero(src_leaf != dst_leaf)
    if len(rows):
        refuse_other_domain(fabric, s, src, dst, src_pod, dst_pod)
        up_links = 2 * (s.leaf_cable + src_leaf[rows] * s.uplinks)
        up = choose(Choice("leaf_up", s.leaf_node + src_leaf[rows], rows, s.uplinks, up_links))
        hops[rows, 1] = up_links + 2 * up
        position = up // s.leaf_bundle
        across = np.flatnonzero(src_pod[rows] != dst_pod[rows])
        if len(across):
            _cross_core(s, hops, rows[across], position[across], src_pod, dst_pod, choose)
        spine = dst_pod[rows] * s.spines + position
        down_links = 2 * (s.leaf_cable + dst_leaf[rows] * s.uplinks + position * s.leaf_bundle) + 1
        down = choose(Choice("spine_down", s.spine_node + spine, rows, s.leaf_bundle, down_links))
        hops[rows, 4] = down_links + 2 * down
    used = hops >= 0
    path_ptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return path_ptr, hops[used]


def _cross_core(
    s: ClosStructure,
    hops: NDArray[np.int64],
    rows: NDArray[np.int64],
    position: NDArray[np.int64],
    src_pod: NDArray[np.int64],
    dst_pod: NDArray[np.int64],
    choose: Chooser,
) -> None:
    """Fill in the two hops over a core."""
    spine = src_pod[rows] * s.spines + position
    up_links = 2 * (s.spine_cable + spine * s.spine_uplinks)
    up = choose(Choice("spine_up", s.spine_node + spine, rows, s.spine_uplinks, up_links))
    hops[rows, 2] = up_links + 2 * up
    place = up // s.spine_bundle
    group = src_pod[rows] // s.pods_per_domain * s.spines + position
    far_spine = dst_pod[rows] * s.spines + position
    down_links = 2 * (s.spine_cable + far_spine * s.spine_uplinks + place * s.spine_bundle) + 1
    core = s.core_node + group * s.cores_per_group + place
    down = choose(Choice("core_down", core, rows, s.spine_bundle, down_links))
    hops[rows, 3] = down_links + 2 * down


def refuse_other_domain(
    fabric: Fabric,
    s: ClosStructure,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    src_pod: NDArray[np.int64],
    dst_pod: NDArray[np.int64],
) -> None:
    """Refuse a pair of endpoints whose pods have no core in common."""
    apart = src_pod != dst_pod
    if s.cores_per_group:
        apart &= src_pod // s.pods_per_domain != dst_pod // s.pods_per_domain
    if apart.any():
        first = int(np.flatnonzero(apart)[0])
        refuse_unreachable(fabric, int(src[first]), int(dst[first]))
