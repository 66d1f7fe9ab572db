"""Minimal paths and Valiant paths between endpoints of any fabric.

Direct networks (`Fabric.direct`) have them by arithmetic (`direct_paths`). Elsewhere a minimal
path is a shortest one, laid as `ecmp` lays it; a Valiant path is two of them, over a leaf that is
drawn uniformly among the leaves with endpoints that the source reaches. Where the second would
cross a link again, in the same direction, another leaf is drawn, up to `REDRAWS` times; a row that
finds none takes a shortest path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.checks import components
from netplan.kernels.hashing import choose, mix
from netplan.routing.direct_paths import hashed_chooser, minimal_hops, valiant_hops
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.routing.routes import refuse_unreachable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

#: Schemes that take a family's own minimal paths where the fabric has a structure to compute them by.
BY_FAMILY = ("minimal", "valiant", "ugal")

#: How often another intermediate leaf is drawn for a path that would cross a link twice.
REDRAWS = 8

#: Tells the draw of an intermediate apart from other uses of a path's key.
_MIDDLE = 0x31DD1E


def minimal_between(
    fabric: Fabric, src: NDArray[np.integer], dst: NDArray[np.integer], key: NDArray[np.uint64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one minimal path per row.

    Parameters
    ----------
    fabric
        The fabric.
    src, dst : (n,) endpoints
        The two ends.
    key : (n,) uint64
        What decides among the paths.
    seed
        Seeds the switches' hash functions on fabrics without `Fabric.direct`.

    Returns
    -------
    hops : (n, width) int64
        Links between switches in path order; -1 behind the last.
    length : (n,) int64
        How many there are.

    Raises
    ------
    RoutingError
        No path joins the endpoints of a row.
    """
    if fabric.direct is not None:
        router = fabric.direct.endpoint_router.astype(np.int64)
        return minimal_hops(fabric.direct, router[src], router[dst], hashed_chooser(key))
    return _inner(*hashed_paths(fabric, src, dst, key, switch_seeds(fabric, seed)))


def valiant_between(
    fabric: Fabric, src: NDArray[np.integer], dst: NDArray[np.integer], key: NDArray[np.uint64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one path over a drawn intermediate per row; as `minimal_between`."""
    if fabric.direct is not None:
        router = fabric.direct.endpoint_router.astype(np.int64)
        return valiant_hops(fabric.direct, router[src], router[dst], hashed_chooser(key))
    return _over_leaves(fabric, np.asarray(src), np.asarray(dst), key, seed)


def _inner(
    path_ptr: NDArray[np.int64], link: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the links between switches of paths that are CSR with both cables."""
    length = np.diff(path_ptr) - 2
    width = int(length.max(initial=0))
    hops = np.full((len(length), width), -1, np.int64)
    inside = np.ones(len(link), bool)
    inside[path_ptr[:-1]] = inside[path_ptr[1:] - 1] = False
    hops[np.arange(width) < length[:, None]] = link[inside]
    return hops, length


def _over_leaves(
    fabric: Fabric,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    key: NDArray[np.uint64],
    seed: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Walk to a drawn leaf and on from there."""
    leaf, node_seed = fabric.endpoints.leaf, switch_seeds(fabric, seed)
    part = components(fabric, through_hosts=False)[leaf]
    apart = np.flatnonzero(part[src] != part[dst])
    if len(apart):
        refuse_unreachable(fabric, int(src[apart[0]]), int(dst[apart[0]]))
    # An endpoint stands for each leaf that has some; leaves of one part follow one another.
    _, at = np.unique(leaf, return_index=True)
    at = at[np.argsort(part[at], kind="stable")]
    first = np.searchsorted(part[at], part[src], side="left")
    options = np.searchsorted(part[at], part[src], side="right") - first
    hops, length = _inner(*hashed_paths(fabric, src, dst, key, node_seed))
    rows = np.flatnonzero(leaf[src] != leaf[dst])
    for draw in range(REDRAWS):
        if not len(rows):
            break
        again = mix(key[rows], _MIDDLE, draw)
        middle = at[first[rows] + choose(again, mix(np.full(len(rows), _MIDDLE)), options[rows])]
        to, n_to = _inner(*hashed_paths(fabric, src[rows], middle, mix(again, 1), node_seed))
        onward, n_onward = _inner(*hashed_paths(fabric, middle, dst[rows], mix(again, 2), node_seed))
        found, n_found = _joined(to, n_to, onward, n_onward)
        is_path = ~_repeats(found)
        kept = rows[is_path]
        width = max(hops.shape[1], found.shape[1])
        hops = np.pad(hops, ((0, 0), (0, width - hops.shape[1])), constant_values=-1)
        hops[kept] = -1
        hops[kept, : found.shape[1]] = found[is_path]
        length[kept] = n_found[is_path]
        rows = rows[~is_path]
    return hops[:, : int(length.max(initial=0))], length


def _joined(
    one: NDArray[np.int64], n_one: NDArray[np.int64], other: NDArray[np.int64], n_other: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put one row of links behind the other."""
    length = n_one + n_other
    width = int(length.max(initial=0))
    hops = np.full((len(length), width), -1, np.int64)
    both = np.concatenate([one, other], axis=1)
    hops[np.arange(width) < length[:, None]] = both[both >= 0]
    return hops, length


def _repeats(hops: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) whether a row has a link twice."""
    ordered = np.sort(hops, axis=1)
    return np.asarray(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1))
