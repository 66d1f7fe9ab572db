"""In-network all-reduce: switches of an aggregation tree add up what comes from below and copy the result.

As SHARP does it, and NCCL's CollNet: one tree for each NIC port of a host (rail); every host sends
its part S/R up its own cable, every switch sends one sum of S/R up, and the result comes down the
same links. So each NIC sends and receives S/R, half of what a ring needs: ``busbw <= 2 (n-1)/n B``.
All links of a tree move at the pace of its slowest. Inside hosts the GPUs reduce-scatter and
all-gather over the scale-up domain, 2 (g-1)/g S, pipelined with the network.

The root is the switch from which the farthest leaf of the job is nearest: the leaf itself where all
hosts of a rail are on one, a spine for two tiers, a central router of a direct network. Trees of
different rails take different roots and parallel cables where there are several.

Left out: whether the switches can (the user says so by asking for it), how many trees and how large
operands they take, and the time that adding takes. Protocols of congestion are refused: flow control
of aggregated packets is the switches' own.

Source: R. Graham et al., Scalable Hierarchical Aggregation Protocol, COMHPC 2016; NVIDIA/nccl
issues 320 and 652 (the factor 2 as the maintainers state it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from netplan.errors import TrafficError
from netplan.traffic.demand import LinkTrees, Phase, PhaseTraffic
from netplan.traffic.rails import port_table, ranks_of_host
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.placement import Placement


#: Roots that are tried for a tree.
_MOST_ROOTS = 8


@algorithm(
    "in-network",
    "all-reduce",
    summary="switches reduce and multicast along aggregation trees (SHARP)",
    leaves_out="whether the switches can, and how many trees they hold; the time that adding takes",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make one flow for each tree, over all its links.

    Raises
    ------
    TrafficError
        Ranks on one host, or NICs of a rail that no switches join.
    """
    ports = port_table(placement, spec.planes)
    k, places = ports.shape
    if k == 1:
        raise TrafficError("algorithm in-network needs ranks on several hosts", hint="nvls")
    graph = _SwitchGraph(fabric)
    trees = [graph.tree(ports[:, place], place) for place in range(places)]
    links = [tree for tree, _ in trees]
    ways = [way for _, way in trees]

    def pointer(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([[0], np.cumsum([len(part) for part in parts])])

    g = ranks_of_host(placement)
    scale_up = 2 * (g - 1) / g * spec.size / fabric.scale_up_rate[placement.hosts].min()
    phase = Phase(
        "all-reduce in-network",
        lockstep=True,
        scale_up_s=float(scale_up),
        scale_up_hops=2 if g > 1 else 0,
        hops=1,
        trees=LinkTrees(pointer(links), np.concatenate(links), pointer(ways), np.concatenate(ways)),
    )
    return [
        PhaseTraffic(phase, ports[0], ports[1], np.full(places, spec.size / places), ring=np.arange(places))
    ]


class _SwitchGraph:
    """The switches of a fabric and the links between them."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        links = fabric.links
        tier = fabric.nodes.tier
        self._link = np.flatnonzero((tier[links.src] > 0) & (tier[links.dst] > 0))
        n = fabric.n_nodes
        self._key = links.src[self._link].astype(np.int64) * n + links.dst[self._link]
        order = np.argsort(self._key, kind="stable")
        self._link, self._key = self._link[order], self._key[order]
        ones = np.ones(len(self._link), np.int8)
        self._matrix = csr_matrix((ones, (links.src[self._link], links.dst[self._link])), shape=(n, n))

    def tree(self, ports: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the links of the tree over some ports, and those of the longest way up and down."""
        fabric = self._fabric
        leaf = fabric.endpoints.leaf[ports].astype(np.int64)
        cable = 2 * fabric.endpoints.cable[ports].astype(np.int64)
        leaves = np.unique(leaf)
        root, before, depth = self._root(leaves, number)
        child = leaves[leaves != root]
        up: dict[int, int] = {}
        at = child
        while len(at):
            for node in at.tolist():
                up[node] = self._cable(node, int(before[node]), number)
            at = np.unique(before[at])
            at = at[(at != root) & ~np.isin(at, list(up))]
        above = np.array(sorted(up.values()), np.int64)
        tree = np.concatenate([cable, above, cable + 1, above ^ 1])
        far = int(leaves[np.argmax(depth[leaves])])
        host = int(np.argmax(leaf == far))
        way = [int(cable[host])]
        while far != root:
            way.append(up[far])
            far = int(before[far])
        return tree, np.array(way + [link ^ 1 for link in reversed(way)], np.int64)

    def _root(self, leaves: np.ndarray, number: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Return a root, the next switch towards it from each switch, and distances from it."""
        if len(leaves) == 1:
            n = self._fabric.n_nodes
            return int(leaves[0]), np.full(n, -1), np.zeros(n)
        near = dijkstra(self._matrix, indices=leaves[0], unweighted=True)
        far = leaves[np.argmax(near[leaves])]
        if not np.isfinite(near[far]):
            raise TrafficError(
                "algorithm in-network: no switches join the NICs of one rail of the job's hosts",
                hint="ring or tree change rails inside hosts",
            )
        worst = np.maximum(near, dijkstra(self._matrix, indices=far, unweighted=True))
        candidates = np.flatnonzero(worst == worst.min())
        tried = np.roll(candidates, -(number % len(candidates)))[:_MOST_ROOTS]
        best: tuple[float, int, np.ndarray, np.ndarray] | None = None
        for root in tried.tolist():
            _, before = breadth_first_order(self._matrix, root, return_predecessors=True)
            depth = dijkstra(self._matrix, indices=root, unweighted=True)
            if best is None or depth[leaves].max() < best[0]:
                best = (float(depth[leaves].max()), root, before, depth)
            if best[0] <= worst.min():
                break
        assert best is not None
        return best[1], best[2], best[3]

    def _cable(self, src: int, dst: int, number: int) -> int:
        """Return one of the parallel links between two switches."""
        key = src * self._fabric.n_nodes + dst
        first, end = np.searchsorted(self._key, [key, key + 1])
        return int(self._link[first + number % (end - first)])
