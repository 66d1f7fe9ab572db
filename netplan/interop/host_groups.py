"""A fabric as a tree of host groups, as schedulers see it: which hosts are near to which.

The lowest level are hosts that share a leaf (with several NICs, the hosts of one set of leaves: a
scalable unit). Above it stand pods (what spines join; groups of a direct network), sites, and the whole. A
level that parts nothing is left out. Several switches side by side, such as the spines of a pod, are one
switch of the tree: a scheduler wants distance, not paths.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from netplan.fabric.convert import node_names
from netplan.interop.graph import clean_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.fabric import Fabric


@dataclass(frozen=True)
class HostTree:
    """One switch of the tree, with what is below it."""

    name: str
    hosts: tuple[str, ...] = ()
    children: tuple[HostTree, ...] = ()

    def walk(self) -> Iterator[HostTree]:
        """Yield the switches below and this one, leaves first."""
        for child in self.children:
            yield from child.walk()
        yield self


def host_names(fabric: Fabric) -> list[str]:
    """Return a name for each node that schedulers take; no two are equal."""
    seen: Counter[str] = Counter()
    names = []
    for raw in node_names(fabric):
        name = clean_name(raw)
        seen[name] += 1
        while seen[name] > 1:
            name = f"{name}-{seen[name]}"
            seen[name] += 1
        names.append(name)
    return names


def host_trees(fabric: Fabric) -> list[HostTree]:
    """Return the roots: one, or one for each part that no switch joins with the others."""
    names = host_names(fabric)
    ends = fabric.endpoints
    groups = _joined(fabric.n_nodes, ends.host, ends.leaf)
    linked = np.unique(ends.host)
    first = np.unique(groups[linked])
    hosts_of = {int(g): tuple(names[h] for h in linked[groups[linked] == g].tolist()) for g in first}
    leaves_of: dict[int, list[int]] = defaultdict(list)
    for leaf in np.unique(ends.leaf).tolist():
        leaves_of[int(groups[leaf])].append(leaf)
    taken: set[str] = set()
    level = {
        g: HostTree(_group_name(fabric, leaves_of[g], names, taken, "unit"), hosts=hosts)
        for g, hosts in hosts_of.items()
    }
    for word, upper in _levels(fabric, groups):
        # What the level joins: groups by the label of any of their leaves.
        above: dict[int, list[int]] = defaultdict(list)
        for g in level:
            above[int(upper[leaves_of[g][0]])].append(g)
        if len(above) == len(level):
            continue
        merged: dict[int, HostTree] = {}
        merged_leaves: dict[int, list[int]] = {}
        for members in above.values():
            head = members[0]
            merged_leaves[head] = [leaf for g in members for leaf in leaves_of[g]]
            if len(members) == 1:
                merged[head] = level[head]
                continue
            joining = _switches_above(fabric, upper, int(upper[leaves_of[head][0]]), word)
            name = _group_name(fabric, joining, names, taken, word)
            merged[head] = HostTree(name, children=tuple(level[g] for g in members))
        level, leaves_of = merged, defaultdict(list, merged_leaves)
    return list(level.values())


def _joined(n: int, a: NDArray[np.integer], b: NDArray[np.integer]) -> NDArray[np.int64]:
    """(n,) the part that each node is in."""
    graph = coo_array((np.ones(len(a), bool), (a, b)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _levels(fabric: Fabric, groups: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the levels above the groups: their word, and the part that each node is in."""
    nodes, links, ends = fabric.nodes, fabric.links, fabric.endpoints
    src, dst = links.src[0::2].astype(np.int64), links.dst[0::2].astype(np.int64)
    low, high = nodes.tier[src], nodes.tier[dst]
    pod = nodes.pod.astype(np.int64)
    host_ends = np.stack([ends.host, ends.leaf]).astype(np.int64)
    same_pod = (low > 0) & (pod[src] >= 0) & (pod[src] == pod[dst])
    top = int(nodes.tier.max())
    below = (low > 0) & (high <= 2) & (low != high) & (top > 2)  # noqa: PLR2004 -- leaves and spines
    one_site = (low > 0) & (nodes.site[src] == nodes.site[dst])
    sites = [("site", one_site)] if len(fabric.site_names) > 1 else []
    for word, rows in (("pod", same_pod | below), *sites, ("fabric", low > 0)):
        a, b = np.concatenate([src[rows], host_ends[0]]), np.concatenate([dst[rows], host_ends[1]])
        yield word, _joined(fabric.n_nodes, a, b)


def _switches_above(fabric: Fabric, upper: NDArray[np.int64], part: int, word: str) -> list[int]:
    """Return the switches of the highest tier of a part: those that join what is in it."""
    tier = fabric.nodes.tier
    members = np.flatnonzero((upper == part) & (tier > 0))
    top = members[tier[members] == tier[members].max()]
    return [int(node) for node in top]


def _group_name(fabric: Fabric, switches: list[int], names: list[str], taken: set[str], word: str) -> str:
    """Return the name of the only switch, or one for several: what they are and which is the first."""
    name = names[switches[0]] if len(switches) == 1 else f"{word}-{names[switches[0]]}"
    base, number = name, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name
