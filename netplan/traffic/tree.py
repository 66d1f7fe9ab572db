"""Double binary tree all-reduce, as NCCL lays it between hosts.

The first tree is a binary tree in which every second host is a leaf: host 0 is the root, and the
parent of host h, whose lowest set bit is b, is ``(h ^ b) | 2b``, or ``h ^ b`` where that is not
there. The second tree is the first one mirrored (an even number k of hosts) or moved on by one (odd
k), so that hosts that are leaves in one are inside in the other. Each tree takes half of the data up
(reduce) and down (broadcast), pipelined. Inside a host data goes along a chain of all GPUs.

Bytes that a host sends, of S: a parent edge carries S/2, so does each child edge: 1, 1.5 and 2 S at
the busiest host for k = 2, 3 and from 4 on; 2 (k-1)/k S on average. With B bytes/s for all NICs of a
host together and n ranks, ``busbw <= (n-1)/n B x 2, 4/3, 1``.

Every NIC port carries both trees: NCCL doubles its channels, and the two of a pair take one tree
each. Latency: ``2 depth`` edges in turn, depth = ceil(log2 k), and 2 (g-1) scale-up hops.

Source: NVIDIA/nccl src/graph/trees.cc (`ncclGetBtree`, `ncclGetDtree`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.rails import port_table, ranks_of_host
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.placement import Placement


@algorithm(
    "tree",
    "all-reduce",
    summary="double binary tree between hosts, a chain of GPUs inside",
    leaves_out="filling and draining of the pipeline; which GPU of a host is entered first",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of an all-reduce over double binary trees."""
    g = ranks_of_host(placement)
    scale_up = 2 * (g - 1) / g * spec.size / fabric.scale_up_rate[placement.hosts].min()
    return [tree_phase(spec, placement, "all-reduce tree", float(scale_up), 2 * (g - 1))]


def tree_phase(
    spec: CollectiveSpec, placement: Placement, name: str, scale_up_s: float, scale_up_hops: int
) -> PhaseTraffic:
    """Lay both trees over every NIC port; each edge carries its part of the buffer up and down.

    Parameters
    ----------
    spec
        Size, channels, planes.
    placement
        The GPUs of the job.
    name, scale_up_s, scale_up_hops
        Of the phase: what happens inside hosts.
    """
    ports = port_table(placement, spec.planes)
    k, places = ports.shape
    parents = double_tree(k)
    lanes = max(spec.channels // 2, 1)  # channels of one tree
    blocks = []
    for number, parent in enumerate(parents):
        child = np.flatnonzero(parent >= 0)
        up = np.stack([ports[child], ports[parent[child]]])  # (2, edges, places)
        for way in (up, up[::-1]):
            src, dst = way.reshape(2, -1)
            lane = np.arange(lanes) + number * lanes
            tree = np.tile(np.arange(places), len(child))[:, None] * 2 * lanes + lane
            blocks.append(
                (
                    np.repeat(src, lanes),
                    np.repeat(dst, lanes),
                    np.tile(lane, len(src)),
                    tree.ravel(),
                )
            )
    src, dst, channel, ring = (np.concatenate(column) for column in zip(*blocks, strict=True))
    phase = Phase(
        name,
        lockstep=True,
        scale_up_s=scale_up_s,
        scale_up_hops=scale_up_hops,
        hops=2 * max(tree_depth(parent) for parent in parents),
    )
    each = spec.size / (2 * places * lanes)
    return PhaseTraffic(phase, src, dst, np.full(len(src), each), channel=channel, ring=ring)


def double_tree(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the parent of each of k hosts in both trees; -1 for the root.

    Examples
    --------
    >>> [parent.tolist() for parent in double_tree(4)]
    [[-1, 2, 0, 2], [1, 3, 1, -1]]
    """
    first = binary_tree(k)
    host = np.arange(k)
    if k % 2:  # moved on by one
        moved = first[(host - 1) % k]
        return first, np.where(moved < 0, -1, (moved + 1) % k)
    mirrored = first[k - 1 - host]
    return first, np.where(mirrored < 0, -1, k - 1 - mirrored)


def binary_tree(k: int) -> np.ndarray:
    """Return the parent of each of k hosts in NCCL's binary tree; -1 for the root, host 0."""
    host = np.arange(k)
    bit = host & -host
    parent = (host ^ bit) | (bit << 1)
    parent = np.where(parent >= k, host ^ bit, parent)
    parent[0] = -1
    return parent


def tree_depth(parent: np.ndarray) -> int:
    """Return the edges between the root and the host farthest from it."""
    depth, at = 0, parent[parent >= 0]
    while len(at):
        depth += 1
        at = parent[at]
        at = at[at >= 0]
    return depth
