"""The path kernels on random graphs, against every shortest path that networkx lists."""

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from netplan.kernels.hashing import mix
from netplan.kernels.least_loaded import place_on_graph
from netplan.kernels.share import count_shares, fill_shares
from netplan.kernels.up_down import up_down_paths
from netplan.kernels.walk import switch_graph, walk_hashed, walk_pinned
from tests.unit.kernels.graphs import Graph, graph_of, random_graph, shortest_paths

SEEDS = range(25)

#: Tier of each node, CSR of links, and the links' ends: what the walking kernels take first.
Arrays = tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


def all_pairs(graph: Graph):
    """Return every ordered pair of different nodes."""
    a, b = np.divmod(np.arange(graph.n_nodes**2), graph.n_nodes)
    return a[a != b], b[a != b]


def with_hosts(graph: Graph) -> tuple[Arrays, NDArray[np.int32], NDArray[np.int32]]:
    """Put one host on each switch: node ``n + i`` on switch ``i``, by cable ``cables + i``.

    Returns tier, CSR, link ends, and each endpoint's cable and leaf, as the walking kernels take them.
    """
    n, cables = graph.n_nodes, len(graph.src) // 2
    whole = graph_of(
        2 * n,
        [
            *zip(graph.src[::2].tolist(), graph.dst[::2].tolist(), strict=True),
            *((n + i, i) for i in range(n)),
        ],
    )
    tier = np.repeat(np.array([1, 0], np.int8), n)
    cable, leaf = np.arange(cables, cables + n, dtype=np.int32), np.arange(n, dtype=np.int32)
    return (tier, whole.ptr, whole.link, whole.dst, whole.src), cable, leaf


def rows(ptr, link):
    """Cut a CSR into lists."""
    return [part.tolist() for part in np.split(link, ptr[1:-1])]


def between_hosts(graph: Graph, path: list[int], a: int, b: int):
    """Check that a path starts on a's cable and ends on b's; return the links between switches."""
    cables = len(graph.src) // 2
    assert path[0] == 2 * (cables + a)
    assert path[-1] == 2 * (cables + b) + 1
    return path[1:-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_hashed_walks_are_shortest_paths(seed):
    """Each path is one of those that networkx lists, from the source's cable to the destination's."""
    graph = random_graph(seed)
    arrays, cable, leaf = with_hosts(graph)
    a, b = all_pairs(graph)
    key = mix(a, b, seed)
    ptr, link, lost = walk_hashed(*arrays, cable, leaf, a, b, key, mix(np.arange(2 * graph.n_nodes)))
    assert lost == -1
    for row, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        path = between_hosts(graph, link[ptr[row] : ptr[row + 1]].tolist(), x, y)
        assert path in shortest_paths(graph, x, y)


def test_hashed_walks_reach_every_shortest_path():
    """Many keys between two nodes use all paths; each switch chooses evenly among its next links.

    System:  0 - {1, 2, 3} - 4, with two parallel cables 3 - 4: 1 + 1 + 2 = 4 paths.
    By hand: node 0 chooses 1, 2 or 3 with 1/3 each; 3 chooses either cable with 1/2.
    Tolerance: 5 standard deviations of a count of 30,000 draws.
    """
    graph = graph_of(5, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (3, 4)])
    arrays, cable, leaf = with_hosts(graph)
    n = 30_000
    _, link, _ = walk_hashed(
        *arrays, cable, leaf, np.zeros(n, int), np.full(n, 4), mix(np.arange(n)), mix(np.arange(10))
    )
    paths, count = np.unique(link.reshape(n, 4)[:, 1:3], axis=0, return_counts=True)
    assert paths.tolist() == [[0, 6], [2, 8], [4, 10], [4, 12]]
    expected = n * np.array([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert (np.abs(count - expected) < 5 * np.sqrt(expected * (1 - expected / n))).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_pinned_walks_are_shortest_paths(seed):
    """As for hashed walks; and the first switch takes link ``first_pin`` modulo its options."""
    graph = random_graph(seed)
    arrays, cable, leaf = with_hosts(graph)
    a, b = all_pairs(graph)
    first, other = np.arange(len(a)), np.arange(len(a))[::-1].copy()
    ptr, link, lost = walk_pinned(*arrays, cable, leaf, a, b, first, other)
    assert lost == -1
    for row, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        path = between_hosts(graph, link[ptr[row] : ptr[row + 1]].tolist(), x, y)
        every = shortest_paths(graph, x, y)
        assert path in every
        options = sorted({p[0] for p in every})
        assert path[0] == options[row % len(options)]


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_are_counts_of_shortest_paths(seed):
    """The share of a link = shortest paths that cross it / shortest paths, for every pair.

    So shares sum to the number of hops, and what enters a node leaves it. Tolerance: rounding.
    """
    graph = random_graph(seed)
    a, b = all_pairs(graph)
    order = np.argsort(b, kind="stable")
    a, b = a[order], b[order]
    count, lost = count_shares(graph.ptr, graph.link, graph.dst, a, b)
    assert lost == -1
    ptr = np.concatenate([[0], np.cumsum(count)])
    link, share = fill_shares(graph.ptr, graph.link, graph.dst, a, b, ptr)
    for row, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        mine, part = link[ptr[row] : ptr[row + 1]], share[ptr[row] : ptr[row + 1]]
        every = shortest_paths(graph, x, y)
        expected = np.bincount([e for path in every for e in path], minlength=len(graph.src)) / len(every)
        np.testing.assert_allclose(np.bincount(mine, part, minlength=len(graph.src)), expected, atol=1e-12)
        assert len(set(mine.tolist())) == len(mine)
        assert part.sum() == pytest.approx(len(every[0]), rel=1e-12)
        net = np.bincount(graph.dst[mine], part, minlength=graph.n_nodes) - np.bincount(
            graph.src[mine], part, minlength=graph.n_nodes
        )
        wanted = np.zeros(graph.n_nodes)
        wanted[x], wanted[y] = -1, 1
        np.testing.assert_allclose(net, wanted, atol=1e-12)


def ranked(graph: Graph, seed: int):
    """Give the nodes some tiers at random and return the order that up and down follow from."""
    tier = np.random.default_rng(seed + 1000).integers(1, 4, graph.n_nodes)
    rank = np.empty(graph.n_nodes, np.int64)
    rank[np.lexsort((np.arange(graph.n_nodes), tier))] = np.arange(graph.n_nodes)
    return rank


@pytest.mark.parametrize("seed", SEEDS)
def test_up_down_paths_never_turn_up_again(seed):
    """On any connected graph and any ranking: contiguous, legal; lost only where no legal path is.

    By hand: legal pairs are those that a node common to both ends' sets of "reachable by going up"
    joins. Tables are by destination: two paths to one destination never part after they met.
    """
    graph = random_graph(seed)
    rank = ranked(graph, seed)
    _, cable, leaf = with_hosts(graph)
    upwards = nx.DiGraph((x, y) for x, y in graph.view().to_directed().edges if rank[y] > rank[x])
    upwards.add_nodes_from(range(graph.n_nodes))
    above = {x: {x, *nx.descendants(upwards, x)} for x in range(graph.n_nodes)}
    a, b = all_pairs(graph)
    legal = np.array([bool(above[x] & above[y]) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    ptr, link, lost = up_down_paths(graph.ptr, graph.link, graph.dst, rank, cable, leaf, a[legal], b[legal])
    assert lost == -1
    next_link: dict[tuple[int, int], int] = {}
    for row, (x, y) in enumerate(zip(a[legal].tolist(), b[legal].tolist(), strict=True)):
        path = between_hosts(graph, link[ptr[row] : ptr[row + 1]].tolist(), x, y)
        node = x
        for e in path:
            assert graph.src[e] == node
            assert next_link.setdefault((node, y), e) == e
            node = int(graph.dst[e])
        assert node == y
        climbs = [rank[graph.dst[e]] > rank[graph.src[e]] for e in path]
        assert climbs == sorted(climbs, reverse=True), "goes up after it went down"
    if not legal.all():
        *_, lost = up_down_paths(graph.ptr, graph.link, graph.dst, rank, cable, leaf, a[~legal], b[~legal])
        assert lost >= 0


def test_up_down_balances_its_ports():
    """Two leaves joined by two spines, four endpoints a leaf: two destinations go over each spine."""
    graph = graph_of(4, [(0, 2), (0, 3), (1, 2), (1, 3)])
    leaf = np.repeat(np.arange(2, dtype=np.int32), 4)
    cable = np.arange(4, 12, dtype=np.int32)
    src, dst = np.arange(4), np.arange(4, 8)
    ptr, link, lost = up_down_paths(graph.ptr, graph.link, graph.dst, np.arange(4), cable, leaf, src, dst)
    assert lost == -1
    assert np.bincount([link[ptr[i] + 1] for i in range(4)]).tolist() == [2, 0, 2]


@pytest.mark.parametrize("seed", SEEDS)
def test_least_loaded_places_on_shortest_paths(seed):
    """Every placed path is a shortest one, and looking again never makes the busiest link busier."""
    graph = random_graph(seed)
    a, b = all_pairs(graph)
    args = (graph.ptr, graph.link, graph.dst, a, b, np.ones(len(a)), np.full(len(graph.src), 1.0), mix(a, b))
    busiest = []
    for rounds in (0, 8):
        hops, length, lost = place_on_graph(*args, rounds)
        assert lost == -1
        for row, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            assert hops[row, : length[row]].tolist() in shortest_paths(graph, x, y)
        used = hops[hops >= 0]
        busiest.append(np.bincount(used).max())
    assert busiest[1] <= busiest[0]


def test_least_loaded_spreads_evenly():
    """Eight equal flows over four equal paths: two each, whatever the order of looking.

    System: 0 - {1, 2, 3, 4} - 5.
    """
    graph = graph_of(6, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 5), (3, 5), (4, 5)])
    for seed in range(5):
        hops, _, _ = place_on_graph(
            graph.ptr,
            graph.link,
            graph.dst,
            np.zeros(8, np.int64),
            np.full(8, 5),
            np.ones(8),
            np.ones(16),
            mix(seed, np.arange(8)),
            0,
        )
        assert np.bincount(hops[:, 0]).tolist() == [2, 0, 2, 0, 2, 0, 2]


def test_no_path_is_said():
    """Two islands: every kernel names a row that cannot be joined."""
    graph = graph_of(4, [(0, 1), (2, 3)])
    arrays, cable, leaf = with_hosts(graph)
    a, b = np.array([0, 0]), np.array([1, 3])
    seeds = mix(np.arange(8))
    assert walk_hashed(*arrays, cable, leaf, a, b, mix(a, b), seeds)[2] == 1
    assert walk_pinned(*arrays, cable, leaf, a, b, a, a)[2] == 1
    assert count_shares(graph.ptr, graph.link, graph.dst, a, b)[1] == 1
    assert up_down_paths(graph.ptr, graph.link, graph.dst, np.arange(4), cable, leaf, a, b)[2] == 1
    ones = np.ones(len(graph.src))
    assert place_on_graph(graph.ptr, graph.link, graph.dst, a, b, np.ones(2), ones, mix(a, b), 0)[2] == 1


def test_hosts_do_not_forward():
    """A host with two NICs joins two leaves, but no path goes through it.

    System: switches 0 and 1, host 2 on both. The graph of switches has no link.
    """
    graph = graph_of(3, [(2, 0), (2, 1)])
    ptr, link = switch_graph(np.array([1, 1, 0], np.int8), graph.ptr, graph.link, graph.dst, graph.src)
    assert ptr.tolist() == [0, 0, 0, 0]
    assert len(link) == 0


def test_long_paths():
    """A chain of 40 switches: paths are as long as they need to be, in every kernel."""
    n = 40
    graph = graph_of(n, [(i, i + 1) for i in range(n - 1)])
    arrays, cable, leaf = with_hosts(graph)
    a, b = np.array([0]), np.array([n - 1])
    chain = [2 * i for i in range(n - 1)]
    ptr, link, _ = walk_hashed(*arrays, cable, leaf, a, b, mix(a), mix(np.arange(2 * n)))
    assert between_hosts(graph, rows(ptr, link)[0], 0, n - 1) == chain
    ptr, link, _ = up_down_paths(graph.ptr, graph.link, graph.dst, np.arange(n), cable, leaf, a, b)
    assert between_hosts(graph, rows(ptr, link)[0], 0, n - 1) == chain
    hops, _, _ = place_on_graph(
        graph.ptr, graph.link, graph.dst, a, b, np.ones(1), np.ones(len(graph.src)), mix(a), 0
    )
    assert hops[0].tolist() == chain
