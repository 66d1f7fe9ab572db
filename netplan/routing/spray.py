"""Packet spraying: every flow uses all of its equal-cost paths, in equal shares.

What per-packet load balancing reaches when packets are spread evenly and arrive in any order
(RoCE adaptive routing with NIC reordering, UEC, REPS). On an intact Clos the shares are the same
on all uplinks of a leaf and on all uplinks of a pod, so these are one *trunk* each; elsewhere
each flow gets a share per link, the number of its shortest paths that cross the link over the
number of its shortest paths, and links that all flows use alike are found and made one trunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from netplan.errors import ModelRangeError
from netplan.kernels.hashing import mix
from netplan.kernels.share import count_shares, fill_shares
from netplan.routing.clos_paths import refuse_other_domain
from netplan.routing.registry import routing_scheme
from netplan.routing.routes import Routes, refuse_unreachable
from netplan.routing.walked import switch_links

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import ClosStructure, Fabric
    from netplan.routing.routes import FlowTable, RoutingOptions

#: Largest table of shares (16 bytes an entry) that is made for a fabric without a structure.
MOST_SHARES = 150_000_000

#: Pairs of leaves from which the size of a large table is estimated before all are counted.
SAMPLED_PAIRS = 256


@routing_scheme(
    "spray",
    summary="every flow is spread over all its equal-cost paths in equal shares, packet by packet",
    leaves_out="reordering and its limits at the NIC; the queueing of randomly spread packets",
)
def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
    """Route every flow over all its paths."""
    if fabric.structure is not None:
        return sprayed_on_trunks(fabric, fabric.structure, flows)
    return sprayed_on_links(fabric, flows)


def sprayed_on_trunks(fabric: Fabric, s: ClosStructure, flows: FlowTable) -> Routes:
    """Return routes over trunks: all uplinks of a leaf or pod as one resource per direction."""
    n, n_links = len(flows), len(fabric.links)
    src_leaf, dst_leaf = (
        s.endpoint_leaf[flows.src].astype(np.int64),
        s.endpoint_leaf[flows.dst].astype(np.int64),
    )
    src_pod, dst_pod = s.leaf_pod[src_leaf].astype(np.int64), s.leaf_pod[dst_leaf].astype(np.int64)
    refuse_other_domain(fabric, s, flows.src, flows.dst, src_pod, dst_pod)
    pods = s.n_pods if s.spine_uplinks else 0
    leaf_up, leaf_down = n_links, n_links + s.n_leaves
    pod_up, pod_down = n_links + 2 * s.n_leaves, n_links + 2 * s.n_leaves + pods
    hops = np.full((n, 6), -1, np.int64)
    cable = fabric.endpoints.cable.astype(np.int64)
    hops[:, 0], hops[:, 5] = 2 * cable[flows.src], 2 * cable[flows.dst] + 1
    far = src_leaf != dst_leaf
    hops[far, 1], hops[far, 4] = leaf_up + src_leaf[far], leaf_down + dst_leaf[far]
    across = src_pod != dst_pod
    hops[across, 2], hops[across, 3] = pod_up + src_pod[across], pod_down + dst_pod[across]
    used = hops >= 0
    per_leaf, per_pod = s.uplinks, s.spines * s.spine_uplinks
    leaf_cables = s.leaf_cable + np.arange(s.n_leaves * per_leaf, dtype=np.int64)
    pod_cables = s.spine_cable + np.arange(pods * per_pod, dtype=np.int64)
    members = np.concatenate([np.full(2 * s.n_leaves, per_leaf), np.full(2 * pods, per_pod)])
    if not per_leaf:  # one leaf, no trunks
        members, leaf_cables = members[:0], leaf_cables[:0]
    return Routes(
        scheme="spray",
        n_links=n_links,
        flow_ptr=np.arange(n + 1, dtype=np.int64),
        weight=np.full(n, float(flows.qps)),
        path_ptr=np.concatenate([[0], np.cumsum(used.sum(axis=1))]),
        resource=hops[used],
        share=np.ones(int(used.sum())),
        trunk_ptr=np.concatenate([[0], np.cumsum(members)]).astype(np.int64),
        trunk_link=np.concatenate([2 * leaf_cables, 2 * leaf_cables + 1, 2 * pod_cables, 2 * pod_cables + 1]),
    )


def sprayed_on_links(fabric: Fabric, flows: FlowTable) -> Routes:
    """Return routes with a share per link, for any fabric.

    Raises
    ------
    RoutingError
        No path joins the endpoints of a flow.
    ModelRangeError
        The table of shares would be larger than `MOST_SHARES`.
    """
    leaf = fabric.endpoints.leaf.astype(np.int64)
    pairs, pair_of = np.unique(leaf[flows.dst] * fabric.n_nodes + leaf[flows.src], return_inverse=True)
    from_leaf, to_leaf = pairs % fabric.n_nodes, pairs // fabric.n_nodes
    links = fabric.links
    ptr, link = switch_links(fabric)
    graph = ptr, link, links.dst
    if len(pairs) > 4 * SAMPLED_PAIRS:  # counting all takes a minute where the table is far too large
        sample = np.linspace(0, len(pairs) - 1, SAMPLED_PAIRS).astype(np.int64)
        counted, lost = count_shares(*graph, from_leaf[sample], to_leaf[sample])
        if lost < 0 and counted.mean() * len(pairs) > 1.5 * MOST_SHARES:
            _refuse_size(len(pairs), f"about {counted.mean() * len(pairs):,.0f}")
    count, lost = count_shares(*graph, from_leaf, to_leaf)
    if lost >= 0:
        row = int(np.flatnonzero(pair_of == lost)[0])
        refuse_unreachable(fabric, int(flows.src[row]), int(flows.dst[row]))
    if count.sum() > MOST_SHARES:
        _refuse_size(len(pairs), f"{int(count.sum()):,}")
    pair_ptr = np.concatenate([[0], np.cumsum(count)])
    pair_link, pair_share = fill_shares(*graph, from_leaf, to_leaf, pair_ptr)
    trunk_ptr, trunk_link, trunk_of = _equal_links(fabric, count, pair_link, pair_share)
    # One entry per pair and trunk, with the shares of all its links together.
    pair = np.repeat(np.arange(len(pairs)), count)
    entry, place = np.unique(pair * len(trunk_ptr) + trunk_of[pair_link], return_inverse=True)
    share = np.bincount(place, pair_share).astype(np.float64)
    pair_ptr = np.searchsorted(entry // len(trunk_ptr), np.arange(len(pairs) + 1))
    resource = len(links) + entry % len(trunk_ptr)
    path_ptr = np.concatenate([[0], np.cumsum(np.diff(pair_ptr)[pair_of] + 2)])
    path_resource, path_share = _spread(fabric, flows, path_ptr, pair_of, pair_ptr, resource, share)
    return Routes(
        scheme="spray",
        n_links=len(links),
        flow_ptr=np.arange(len(flows) + 1, dtype=np.int64),
        weight=np.full(len(flows), float(flows.qps)),
        path_ptr=path_ptr,
        resource=path_resource,
        share=path_share,
        trunk_ptr=trunk_ptr,
        trunk_link=trunk_link,
    )


def _refuse_size(n_pairs: int, shares: str) -> NoReturn:
    """Say that a table of shares would be too large."""
    raise ModelRangeError(
        f"spraying between {n_pairs:,} pairs of leaves takes {shares} shares of links; "
        f"at most {MOST_SHARES:,}",
        hint="on fabrics without a regular structure, spray fewer flows or a smaller fabric",
    )


def _equal_links(
    fabric: Fabric, count: NDArray[np.int64], pair_link: NDArray[np.int64], pair_share: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the links that every pair of leaves uses with one share: they are one trunk.

    Returns the trunks as CSR of links, and the trunk of each link (-1 where unused). Links are told
    apart by a 64-bit sum over their (pair, share) entries: equal sums by chance are as likely as a
    collision of that hash.
    """
    pair = np.repeat(np.arange(len(count)), count)
    signature = np.zeros(len(fabric.links), np.uint64)
    np.add.at(signature, pair_link, mix(pair, pair_share.view(np.int64)))
    used = np.unique(pair_link)
    key = mix(signature[used], fabric.links.capacity[used].view(np.int64))
    _, trunk, members = np.unique(key, return_inverse=True, return_counts=True)
    trunk_of = np.full(len(fabric.links), -1, np.int64)
    trunk_of[used] = trunk
    trunk_ptr = np.concatenate([[0], np.cumsum(members)]).astype(np.int64)
    return trunk_ptr, used[np.argsort(trunk, kind="stable")], trunk_of


def _spread(
    fabric: Fabric,
    flows: FlowTable,
    path_ptr: NDArray[np.int64],
    pair_of: NDArray[np.int64],
    pair_ptr: NDArray[np.int64],
    pair_link: NDArray[np.int64],
    pair_share: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give each flow its pair's links and shares, between its own two cables."""
    cable = fabric.endpoints.cable.astype(np.int64)
    first, last = path_ptr[:-1], path_ptr[1:] - 1
    resource, share = np.empty(path_ptr[-1], np.int64), np.ones(path_ptr[-1])
    resource[first], resource[last] = 2 * cable[flows.src], 2 * cable[flows.dst] + 1
    inner = np.ones(path_ptr[-1], bool)
    inner[first] = inner[last] = False
    owner = np.repeat(np.arange(len(flows)), np.diff(path_ptr) - 2)
    place = np.flatnonzero(inner) - first[owner] - 1
    entry = pair_ptr[pair_of[owner]] + place
    resource[inner], share[inner] = pair_link[entry], pair_share[entry]
    return resource, share
