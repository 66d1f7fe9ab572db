"""What the routes of every scheme have to fulfil on every fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from netplan.routing.ib_static import is_direct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing import FlowTable, Routes

#: Schemes that go by an intermediate, always or where it pays.
WITH_DETOURS = ("valiant", "ugal")

#: Rounding of sums of shares.
_EXACT = 1e-9


def takes_shortest(fabric: Fabric, scheme: str) -> bool:
    """Whether a scheme lays shortest paths only.

    Up/down rules may forbid them where switches of one tier are joined; a detour is none; a
    dragonfly's minimal path (local, global, local) may be longer than two global hops.
    """
    if scheme == "ib-static":
        return fabric.structure is not None or is_direct(fabric)
    if scheme == "minimal":
        return fabric.direct is None or fabric.kind != "dragonfly"
    return scheme not in WITH_DETOURS


def check_routes(fabric: Fabric, flows: FlowTable, routes: Routes, *, are_shortest: bool = True) -> None:
    """Hold routes against the definition of a path, link by link.

    Every path leaves the source by its NIC's cable and enters the destination by its, all of its bytes
    with it; in between it crosses links between switches only, and what enters a switch leaves it. The
    weights of a flow's paths are its QPs.

    Parameters
    ----------
    fabric, flows, routes
        What was routed.
    are_shortest
        Whether paths have to be shortest ones (up/down rules may ask for longer).
    """
    n, links = len(flows), fabric.links
    assert routes.n_links == len(links)
    assert len(routes.flow_ptr) == n + 1
    assert routes.flow_ptr[0] == 0
    assert routes.flow_ptr[-1] == routes.n_paths
    np.testing.assert_allclose(np.add.reduceat(routes.weight, routes.flow_ptr[:-1]), flows.qps, rtol=_EXACT)
    assert (routes.weight > 0).all()
    owner = np.repeat(np.arange(n), np.diff(routes.flow_ptr))
    src, dst = flows.src[owner], flows.dst[owner]
    up = 2 * fabric.endpoints.cable[src].astype(np.int64)
    down = 2 * fabric.endpoints.cable[dst].astype(np.int64) + 1
    first, last = routes.path_ptr[:-1], routes.path_ptr[1:] - 1
    np.testing.assert_array_equal(routes.resource[first], up, err_msg="a path starts elsewhere")
    np.testing.assert_array_equal(routes.resource[last], down, err_msg="a path ends elsewhere")
    path = np.repeat(np.arange(routes.n_paths), np.diff(routes.path_ptr))
    entry = path * (routes.n_links + routes.n_trunks) + routes.resource
    assert len(np.unique(entry)) == len(entry), "a path crosses a resource twice"
    assert (routes.share > 0).all()

    if routes.scheme == "ideal":  # two cables and nothing between them
        assert (np.diff(routes.path_ptr) == 2).all()
        return
    path, link, share = _on_links(routes, path)
    assert (share <= 1 + _EXACT).all(), "a link carries more than all of a path"
    outer = (links.kind[link] == 0) & (fabric.nodes.tier[links.src[link]] == 0)
    outer |= (links.kind[link] == 0) & (fabric.nodes.tier[links.dst[link]] == 0)
    assert outer.sum() == 2 * routes.n_paths, "a path passes a host"
    ends = np.stack([path[outer], link[outer]])
    expected = np.stack([np.tile(np.arange(routes.n_paths), 2), np.concatenate([up, down])])
    np.testing.assert_array_equal(ends[:, np.lexsort(ends)], expected[:, np.lexsort(expected)])
    np.testing.assert_allclose(share[outer], 1, rtol=_EXACT)

    # What enters a node leaves it, but for the two hosts; where a path is single links, they touch in order.
    nodes = fabric.n_nodes
    net = np.bincount(path * nodes + links.dst[link], share, minlength=routes.n_paths * nodes)
    net -= np.bincount(path * nodes + links.src[link], share, minlength=routes.n_paths * nodes)
    net = net.reshape(routes.n_paths, nodes)
    each = np.arange(routes.n_paths)
    net[each, fabric.endpoints.host[src]] += 1
    net[each, fabric.endpoints.host[dst]] -= 1
    assert np.abs(net).max(initial=0.0) < _EXACT, "bytes are made or lost at a node"
    if not routes.n_trunks:
        inside = np.ones(len(routes.resource) - 1, bool)
        inside[routes.path_ptr[1:-1] - 1] = False
        whole = np.minimum.reduceat(routes.share, routes.path_ptr[:-1]) == 1
        inside &= np.repeat(whole, np.diff(routes.path_ptr))[:-1]
        touch = links.dst[routes.resource[:-1]] == links.src[routes.resource[1:]]
        assert touch[inside].all(), "a path has a gap"

    hops = np.bincount(path, share, minlength=routes.n_paths)
    shortest = hops_between_leaves(fabric)[fabric.endpoints.leaf[src], fabric.endpoints.leaf[dst]] + 2
    assert (hops >= shortest - _EXACT).all()
    if are_shortest:
        np.testing.assert_allclose(hops, shortest, rtol=_EXACT, err_msg="a path is longer than it has to be")


def _on_links(
    routes: Routes, path: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Spread what crosses a trunk evenly over its links (links in series may be one trunk: then it is more
    than 1).
    """
    is_trunk = routes.resource >= routes.n_links
    single = ~is_trunk
    trunk = routes.resource[is_trunk] - routes.n_links
    members = np.diff(routes.trunk_ptr)[trunk]
    assert (members > 0).all()
    place = np.arange(members.sum()) - np.repeat(np.cumsum(members) - members, members)
    link = routes.trunk_link[np.repeat(routes.trunk_ptr[:-1][trunk], members) + place]
    return (
        np.concatenate([path[single], np.repeat(path[is_trunk], members)]),
        np.concatenate([routes.resource[single], link]),
        np.concatenate([routes.share[single], np.repeat(routes.share[is_trunk] / members, members)]),
    )


def hops_between_leaves(fabric: Fabric) -> NDArray[np.float64]:
    """Return (n_nodes, n_nodes) least hops between switches, hosts not forwarding; by scipy, not by us."""
    return np.asarray(dijkstra(_switch_graph(fabric), unweighted=True))


def meeting_pairs(
    fabric: Fabric, *, most: int = 3000, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of endpoints of different hosts that the network joins: all, or a sample."""
    n = fabric.n_endpoints
    _, island = connected_components(_switch_graph(fabric), directed=False)
    rng = np.random.default_rng(seed)
    pairs = np.arange(n * n) if n * n <= most else rng.integers(0, n * n, most)
    src, dst = np.divmod(pairs, n)
    ends = fabric.endpoints
    keep = (ends.host[src] != ends.host[dst]) & (island[ends.leaf[src]] == island[ends.leaf[dst]])
    return src[keep], dst[keep]


def _switch_graph(fabric: Fabric) -> coo_array:
    """Return the adjacency of switches."""
    links, tier = fabric.links, fabric.nodes.tier
    between = (tier[links.src] > 0) & (tier[links.dst] > 0)
    ones = np.ones(int(between.sum()))
    return coo_array(
        (ones, (links.src[between], links.dst[between])), shape=(fabric.n_nodes, fabric.n_nodes)
    ).tocsr()
