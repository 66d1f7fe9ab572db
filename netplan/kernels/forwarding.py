"""What static forwarding tables have in common: whose turn it is, and where a table leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.arrays import Ints, Ints32


def destination_turns(
    cable: NDArray[np.int32], leaf: NDArray[np.int32], dst: NDArray[np.integer]
) -> tuple[Ints, Ints, Ints]:
    """Return the order in which endpoints get their tables, and the rows that go to each.

    Leaf by leaf, leaves with more endpoints first, in the order of their cables, as OpenSM does.

    Parameters
    ----------
    cable, leaf : (n_endpoints,) int32
        Cable and leaf of each endpoint.
    dst : (n,) endpoints
        Where the rows go.

    Returns
    -------
    turn
        (n_endpoints,) endpoints in their order.
    order, row_ptr
        The rows ``order[row_ptr[e]:row_ptr[e + 1]]`` go to endpoint ``e``.
    """
    turn = np.lexsort((cable, leaf, -np.bincount(leaf)[leaf])).astype(np.int64)
    order = np.argsort(dst, kind="stable").astype(np.int64)
    row_ptr = np.searchsorted(dst[order], np.arange(len(leaf) + 1)).astype(np.int64)
    return turn, order, row_ptr


@njit(cache=True)
def follow_table(
    rows: Ints, src_leaf: Ints, target: int, forward: Ints, link_dst: Ints32, hops: Ints, length: Ints
) -> int:
    """Follow a table from the leaf of each row to ``target``; fill its hops and its length.

    ``forward`` has each node's link towards the target, -1 where there is none. Hops beyond the
    width of ``hops`` are counted only. Returns a row that gets stuck, or -1.
    """
    for row in rows:
        node = src_leaf[row]
        step = 0
        while node != target:
            if forward[node] < 0:
                return int(row)
            if step < hops.shape[1]:
                hops[row, step] = forward[node]
            node = link_dst[forward[node]]
            step += 1
        length[row] = step
    return -1
