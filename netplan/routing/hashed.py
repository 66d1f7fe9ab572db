"""Paths that switches choose by a hash: what `ecmp` and `ib_random` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.hashing import choose, mix
from netplan.kernels.walk import walk_hashed
from netplan.routing.clos_paths import Choice, clos_paths
from netplan.routing.routes import refuse_unreachable
from netplan.routing.walked import walk_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

#: Tells the switches' seeds apart from other uses of the user's seed.
_SWITCH_SEED = 0x5EED


def switch_seeds(fabric: Fabric, seed: int, *, shared: bool = False) -> NDArray[np.uint64]:
    """Return the hash seed of every node: one each, or one for all."""
    node = np.zeros(fabric.n_nodes, np.int64) if shared else np.arange(fabric.n_nodes)
    return mix(seed, _SWITCH_SEED, node)


def hashed_paths(
    fabric: Fabric,
    src: NDArray[np.integer],
    dst: NDArray[np.integer],
    key: NDArray[np.uint64],
    node_seed: NDArray[np.uint64],
    *,
    walk: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute one path per row; each switch on the way hashes the row's key.

    Parameters
    ----------
    fabric
        The fabric; its structure is used when it has one.
    src, dst : (n,) endpoints
        The two ends.
    key : (n,) uint64
        What is hashed.
    node_seed : (n_nodes,) uint64
        Seed of each switch.
    walk
        Walk even where arithmetic would do: the two are equal, by test.

    Returns
    -------
    path_ptr, link
        CSR of links, as `clos_paths` returns it.
    """
    if fabric.structure is not None and not walk:

        def by_hash(choice: Choice) -> NDArray[np.int64]:
            return choose(key[choice.row], node_seed[choice.node], choice.options)

        return clos_paths(fabric, fabric.structure, src, dst, by_hash)
    path_ptr, link, lost = walk_hashed(
        *walk_columns(fabric),
        np.asarray(src),
        np.asarray(dst),
        key,
        node_seed,
    )
    if lost >= 0:
        refuse_unreachable(fabric, int(src[lost]), int(dst[lost]))
    return path_ptr, link
