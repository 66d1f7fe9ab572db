"""Whether a routing can deadlock a lossless fabric: cyclic buffer dependencies.

Under PFC (and InfiniBand credits) a packet waits in the buffer behind link a until the buffer behind its
next link b has room. *Link b follows link a* for some packet is an edge a -> b of the *channel dependency
graph*. A deadlock is a ring of full buffers that each wait for the next, so no cycle in the graph means no
deadlock, whatever the traffic (Dally and Seitz, *Deadlock-free message routing in multiprocessor
interconnection networks*, IEEE ToC 1987). A cycle means that one *can* form: it is needed, not enough
(Hu et al., *Deadlocks in datacenter networks*, HotNets 2016).

Hosts always take what arrives, so links to hosts end a chain and links from hosts only begin one. Paths that
go up the tiers and then down, with at most one link between switches of one tier in between, have no cycle:
the graph then only has edges from an up link to a higher one, from up to level to down, and from a down link
to a lower one. That is tried first; the graph is laid out where it does not hold.

Schemes that choose among equal-cost paths by hash or load (``ecmp``, ``adaptive``, ...) may take any of them,
so all their equal-cost paths are looked at; a fixed forwarding table is looked at as it is. Traffic classes
(virtual channels) that a packet changes on its way are nodes of their own in `find_cycles`.

Not seen: loops that exist only while routes change, and hosts that pause the fabric themselves (a slow
receiver).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.checks import components
from netplan.routing.registry import SCHEMES
from netplan.routing.routes import FlowTable, RoutingOptions, route_flows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.routes import Routes

__all__ = ["BufferCycles", "check_buffer_cycles", "find_cycles", "flows_of_all_leaves"]

#: Schemes that may take any equal-cost path: looked at as `spray`, which takes all of them.
_ANY_PATH = {"ecmp", "rail-pinned", "adaptive", "ib-adaptive"}

#: Flows that are routed at once.
_CHUNK = 16_384

#: Pairs of a leaf and an endpoint up to which every endpoint is a destination, not one a leaf.
_MOST_PAIRS = 1_000_000

#: Up, level, down: the order in which a path may have them.
_LEVEL = 1


@dataclass(frozen=True)
class BufferCycles:
    """Cyclic buffer dependencies of a routing on a fabric."""

    n_flows: int
    """Flows looked at."""
    covers: str
    """Which flows and paths those are."""
    n_dependencies: int
    """Edges of the channel dependency graph; 0 where all paths go up, then down."""
    links: tuple[int, ...]
    """Links of the cycles below, ascending."""
    cycles: tuple[tuple[int, ...], ...]
    """A shortest cycle of each strongly connected part, largest part first."""

    @property
    def is_free(self) -> bool:
        """Whether no deadlock can form."""
        return not self.cycles


def find_cycles(before: NDArray[np.int64], after: NDArray[np.int64], n_channels: int) -> list[list[int]]:
    """Return a shortest cycle of each strongly connected part of a channel dependency graph.

    Parameters
    ----------
    before, after : (n_edges,) int64
        Channel ``after[e]`` follows channel ``before[e]`` for some packet. A channel is a link, or
        ``link * n_classes + class``.
    n_channels
        How many channels there are.

    Returns
    -------
    list of list of int
        Channels in order, the first after the last; the largest part first. Empty: no deadlock can form.

    Notes
    -----
    Linear in the edges, but for the shortest cycle: a breadth-first search from one channel of each part.
    """
    # Imported here: scipy.sparse.csgraph costs a third of a second, and `import netplan` must not.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    loops = np.unique(before[before == after])
    graph = coo_array((np.ones(len(before), np.int8), (before, after)), shape=(n_channels, n_channels))
    _, part = connected_components(graph, directed=True, connection="strong")
    size = np.bincount(part, minlength=1)
    inside = (part[before] == part[after]) & (size[part[before]] > 1)
    cycles = [[int(channel)] for channel in loops if size[part[channel]] == 1]
    edges: dict[int, dict[int, list[int]]] = {}
    for a, b in zip(before[inside].tolist(), after[inside].tolist(), strict=True):
        edges.setdefault(int(part[a]), {}).setdefault(a, []).append(b)
    cycles += [_shortest_cycle(edges[each]) for each in sorted(edges)]
    return sorted(cycles, key=lambda cycle: -int(size[part[cycle[0]]]))


def _shortest_cycle(edges: dict[int, list[int]]) -> list[int]:
    """Return a shortest cycle through the first channel of a strongly connected part."""
    start = min(edges)
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        channel = queue.popleft()
        for following in sorted(edges.get(channel, ())):
            if following == start:
                cycle = [channel]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if following not in came_from:
                came_from[following] = channel
                queue.append(following)
    msg = "the part is not strongly connected"
    raise ValueError(msg)


def check_buffer_cycles(
    fabric: Fabric,
    scheme: str,
    flows: FlowTable | None = None,
    *,
    options: RoutingOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BufferCycles:
    """Look for cyclic buffer dependencies of a routing scheme on a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    scheme
        Name of a routing scheme.
    flows
        Flows to look at; by default those between all pairs of leaves that any path joins.
    options
        Seed and scheme options.
    progress
        Called with (phase, flows done, all flows).

    Raises
    ------
    RoutingError
        No such scheme, or a flow without a path.

    Examples
    --------
    >>> from netplan import api
    >>> check_buffer_cycles(api.load_fabric("lab-2-leaf"), "ecmp").is_free
    True
    """
    SCHEMES.find(scheme)
    routed_by = "spray" if scheme in _ANY_PATH else scheme
    table, covers = (flows, "the demand's flows") if flows is not None else flows_of_all_leaves(fabric)
    if routed_by != scheme:
        covers += ", on all their equal-cost paths"
    edges = np.zeros(0, np.int64)
    n_links = len(fabric.links)
    chunks = list(_chunks(table))
    is_simple = all(
        _goes_up_then_down(fabric, route_flows(fabric, chunk, routed_by, options)) for chunk in chunks
    )
    for done, chunk in enumerate([] if is_simple else chunks, 1):
        routes = route_flows(fabric, chunk, routed_by, options)
        edges = np.union1d(edges, _dependencies(fabric, routes))
        if progress is not None:
            progress("dependencies", min(done * _CHUNK, len(table)), len(table))
    before, after = np.divmod(edges, n_links)
    cycles = find_cycles(before, after, n_links) if len(edges) else []
    on_cycles = np.unique(np.concatenate([np.asarray(cycle, np.int64) for cycle in cycles] or [edges[:0]]))
    return BufferCycles(
        len(table),
        covers,
        len(edges),
        tuple(int(link) for link in on_cycles),
        tuple(tuple(cycle) for cycle in cycles),
    )


def flows_of_all_leaves(fabric: Fabric) -> tuple[FlowTable, str]:
    """Return flows from each leaf to all others that any path joins, and which they are in words."""
    leaf = fabric.endpoints.leaf.astype(np.int64)
    leaves, first = np.unique(leaf, return_index=True)
    if len(leaves) * fabric.n_endpoints <= _MOST_PAIRS:
        target, covers = np.arange(fabric.n_endpoints), "one flow from each leaf to every endpoint"
    else:  # the last of each leaf: on another host than the first, where it has several
        by_leaf = np.argsort(leaf, kind="stable")
        target = by_leaf[np.flatnonzero(np.diff(np.append(leaf[by_leaf], -1)))]
        covers = "one flow for each pair of leaves"
    src = np.repeat(first, len(target))
    dst = np.tile(target, len(first))
    part = components(fabric, through_hosts=False)
    keep = (
        (leaf[src] != leaf[dst])
        & (fabric.endpoints.host[src] != fabric.endpoints.host[dst])
        & (part[leaf[src]] == part[leaf[dst]])
    )
    src, dst = src[keep].astype(np.int32), dst[keep].astype(np.int32)
    return FlowTable(src, dst, np.zeros(len(src), np.int32)), covers


def _chunks(flows: FlowTable) -> Iterator[FlowTable]:
    """Yield the flows, some at a time."""
    for start in range(0, len(flows), _CHUNK):
        part = slice(start, start + _CHUNK)
        yield FlowTable(flows.src[part], flows.dst[part], flows.channel[part], flows.qps)


def _goes_up_then_down(fabric: Fabric, routes: Routes) -> bool:
    """Whether every path goes up the tiers, over at most one level link, and down."""
    tier = fabric.nodes.tier.astype(np.int64)
    low, high = tier[fabric.links.src], tier[fabric.links.dst]
    if routes.n_trunks:
        first = routes.trunk_link[routes.trunk_ptr[:-1]]
        owner = np.repeat(np.arange(routes.n_trunks), np.diff(routes.trunk_ptr))
        same = (low[routes.trunk_link] == low[first][owner]) & (high[routes.trunk_link] == high[first][owner])
        if not same.all():
            return False
        low, high = np.append(low, low[first]), np.append(high, high[first])
    direction = 1 - np.sign(high - low)  # 0 up, 1 level, 2 down
    here, nxt = routes.resource[:-1], routes.resource[1:]
    inside = np.ones(max(len(routes.resource) - 1, 0), bool)
    inside[routes.path_ptr[1:-1] - 1] = False
    is_chain = high[here] == low[nxt]
    rises = direction[nxt] > direction[here]
    repeats = (direction[nxt] == direction[here]) & (direction[here] != _LEVEL)
    return bool((is_chain & (rises | repeats) | ~inside).all())


def _dependencies(fabric: Fabric, routes: Routes) -> NDArray[np.int64]:
    """Return the edges of the channel dependency graph as ``before * n_links + after``, ascending."""
    n_links, src, dst = routes.n_links, fabric.links.src, fabric.links.dst
    path = np.repeat(np.arange(routes.n_paths), np.diff(routes.path_ptr))
    link = routes.resource
    if routes.n_trunks:
        is_trunk = link >= n_links
        trunk = link[is_trunk] - n_links
        size = np.diff(routes.trunk_ptr)[trunk]
        at = np.repeat(routes.trunk_ptr[trunk] - np.cumsum(size) + size, size) + np.arange(size.sum())
        path = np.concatenate([path[~is_trunk], np.repeat(path[is_trunk], size)])
        link = np.concatenate([link[~is_trunk], routes.trunk_link[at]])
    between = (fabric.nodes.tier[src[link]] > 0) & (fabric.nodes.tier[dst[link]] > 0)
    path, link = path[between], link[between]
    # Every packet of a path that comes over one of its links to a node may leave it over any other.
    arrives, leaves = path * fabric.n_nodes + dst[link], path * fabric.n_nodes + src[link]
    order = np.argsort(leaves, kind="stable")
    start = np.searchsorted(leaves[order], arrives, "left")
    count = np.searchsorted(leaves[order], arrives, "right") - start
    at = np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.unique(np.repeat(link, count) * n_links + link[order][at])
