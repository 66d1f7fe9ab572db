"""Random graphs of switches for the tests of the path kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Graph(NamedTuple):
    """Switches and cables; links ``2 c`` and ``2 c + 1`` are the directions of cable ``c``."""

    n_nodes: int
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    ptr: NDArray[np.int64]
    link: NDArray[np.int64]

    def parallel(self, a: int, b: int) -> list[int]:
        """Return the links from one node to another, ascending."""
        return np.flatnonzero((self.src == a) & (self.dst == b)).tolist()

    def view(self) -> nx.Graph:
        """Return the graph without parallel cables, for networkx's algorithms."""
        graph = nx.Graph()
        graph.add_nodes_from(range(self.n_nodes))
        graph.add_edges_from(zip(self.src.tolist(), self.dst.tolist(), strict=True))
        return graph


def graph_of(n_nodes: int, cables: list[tuple[int, int]]) -> Graph:
    """Return the graph of some cables, each a pair of nodes."""
    ends = np.array(cables, np.int32).reshape(-1, 2)
    src, dst = ends.ravel(), ends[:, ::-1].ravel()
    ptr = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=n_nodes))]).astype(np.int64)
    return Graph(n_nodes, src, dst, ptr, np.argsort(src, kind="stable").astype(np.int64))


def random_graph(seed: int, n_nodes: int = 9) -> Graph:
    """Return a connected random graph with some parallel cables."""
    rng = np.random.default_rng(seed)
    tree = [(int(rng.integers(i)), i) for i in range(1, n_nodes)]
    more = [
        tuple(rng.choice(n_nodes, 2, replace=False).tolist())
        for _ in range(int(rng.integers(0, 2 * n_nodes)))
    ]
    double = [tree[i] for i in rng.integers(0, len(tree), int(rng.integers(0, 4)))]
    return graph_of(n_nodes, [*tree, *more, *double])


def shortest_paths(graph: Graph, a: int, b: int) -> list[list[int]]:
    """List every shortest path as links, counting parallel cables apart: by brute force."""
    paths: list[list[int]] = []
    for nodes in nx.all_shortest_paths(graph.view(), a, b):
        some: list[list[int]] = [[]]
        for x, y in pairwise(nodes):
            some = [[*path, link] for path in some for link in graph.parallel(x, y)]
        paths += some
    return paths
