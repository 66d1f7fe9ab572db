"""Small direct networks, and their minimal and Valiant paths by search over the cables.

The search knows kinds of cable, groups and coordinates, not the structure (`netplan.fabric.direct`)
or its numbering of cables: it is what the arithmetic is held against.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric import LINK_KINDS, Fabric
from tests.fabrics import yaml_fabric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from netplan.fabric.direct import DirectStructure
    from netplan.routing.direct_paths import Chooser

    Ints = NDArray[np.int64]
    Find = Callable[[DirectStructure, Ints, Ints, Chooser], tuple[Ints, Ints]]

Path = tuple[int, ...]

#: Small networks of every family: single cables, bundles, few groups, all arrangements.
DIRECT = {
    "dragonfly": "kind: dragonfly\nrouter: {endpoints: 2, global_links: 1}\ngroup: {routers: 3}\ngroups: 4",
    "dragonfly, two cables a pair": (
        "kind: dragonfly\nrouter: {endpoints: 1, global_links: 2}\ngroup: {routers: 4}\ngroups: 5"
    ),
    "dragonfly, consecutive": (
        "kind: dragonfly\nrouter: {endpoints: 1, global_links: 1}\ngroup: {routers: 4}\n"
        "arrangement: consecutive"
    ),
    "dragonfly, uneven": (
        "kind: dragonfly\nrouter: {endpoints: 1, global_links: 2}\ngroup: {routers: 3}\n"
        "groups: 5\nuneven: true"
    ),
    "dragonfly, local bundles": (
        "kind: dragonfly\nrouter: {endpoints: 1, global_links: 2}\ngroup: {routers: 2, bundle: 2}\ngroups: 3"
    ),
    "dragonfly, two groups": (
        "kind: dragonfly\nrouter: {endpoints: 2, global_links: 1}\ngroup: {routers: 3}\ngroups: 2"
    ),
    "dragonfly-plus": (
        "kind: dragonfly-plus\nleaf: {endpoints: 2}\nspine: {global_links: 2}\n"
        "group: {leaves: 2, spines: 2}\ngroups: 5"
    ),
    "dragonfly-plus, bundles": (
        "kind: dragonfly-plus\nleaf: {endpoints: 1}\nspine: {global_links: 2}\n"
        "group: {leaves: 3, spines: 2, bundle: 2}\ngroups: 3"
    ),
    "slim-fly": "kind: slim-fly\nq: 3\nrouter: {endpoints: 1}",
    "slim-fly, q = 4": "kind: slim-fly\nq: 4\nrouter: {endpoints: 2}",
    "ring": "kind: torus\ndims: [6]\nrouter: {endpoints: 2}",
    "torus": "kind: torus\ndims: [4, 3]\nrouter: {endpoints: 1}",
    "torus, 3 dimensions": "kind: torus\ndims: [3, 2, 4]\nrouter: {endpoints: 1}",
    "torus, two cables round": "kind: torus\ndims: [2, 3]\nrouter: {endpoints: 1}\npair_cables: 2",
    "torus, bundles": "kind: torus\ndims: [4, 2]\nbundles: [2, 1]\nrouter: {endpoints: 1}",
    "mesh": "kind: torus\ndims: [4, 3]\nwrap: false\nrouter: {endpoints: 1}",
    "full mesh": "kind: hyperx\ndims: [5]\nrouter: {endpoints: 2}",
    "hyperx": "kind: hyperx\ndims: [4, 3]\nrouter: {endpoints: 2}",
    "hyperx, 3 dimensions": "kind: hyperx\ndims: [2, 3, 3]\nbundles: [1, 2, 1]\nrouter: {endpoints: 1}",
}


@cache
def direct_fabric(name: str) -> Fabric:
    """Build one of `DIRECT`: a GPU and a NIC a host."""
    hosts = "\nhosts: {gpus: 1}"
    return yaml_fabric(f"name: direct\n{DIRECT[name]}{hosts}")


def structure_of(fabric: Fabric) -> DirectStructure:
    """Return the structure of a direct network."""
    assert fabric.direct is not None
    return fabric.direct


class Odometer:
    """A chooser that goes through all sequences of choices, one each time it is wound."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._options: list[int] = []

    def pick(self, rows: Ints, options: Ints) -> Ints:
        """Make the next choice of the sequence, for one row or none."""
        if not len(rows):
            return rows
        turn = len(self._options)
        self._options.append(int(options[0]))
        if turn == len(self._script):
            self._script.append(0)
        return np.array([self._script[turn]])

    @property
    def probability(self) -> float:
        """How likely the choices made are, if each is even."""
        return 1 / prod(self._options)

    def wind(self) -> bool:
        """Go to the next sequence; False after the last."""
        del self._script[len(self._options) :]
        while self._script and self._script[-1] + 1 == self._options[len(self._script) - 1]:
            self._script.pop()
        self._options.clear()
        if self._script:
            self._script[-1] += 1
        return bool(self._script)


def every_path(find: Find, s: DirectStructure, src: int, dst: int) -> dict[Path, float]:
    """Return all paths that some sequence of choices gives, each with its probability."""
    found: dict[Path, float] = {}
    odometer = Odometer()
    while True:
        hops, length = find(s, np.array([src]), np.array([dst]), odometer.pick)
        path = tuple(hops[0, : length[0]].tolist())
        found[path] = found.get(path, 0.0) + odometer.probability
        if not odometer.wind():
            return found


def expected_load(fabric: Fabric, find: Find, traffic: Ints | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each link carries when all choices are even and traffic is split as finely as you like.

    Parameters
    ----------
    fabric
        The network.
    find
        `minimal_hops` or `valiant_hops`.
    traffic : (n_routers, n_routers)
        What each router sends to each.
    """
    s = structure_of(fabric)
    load = np.zeros(len(fabric.links))
    for src, dst in np.argwhere(traffic).tolist():
        for path, probability in every_path(find, s, src, dst).items():
            load[list(path)] += traffic[src, dst] * probability
    return load


class Search:
    """Paths of a direct network by search over its cables."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.kind = fabric.kind
        links, tier = fabric.links, fabric.nodes.tier
        between = np.flatnonzero((tier[links.src] > 0) & (tier[links.dst] > 0)).tolist()
        self.out: dict[int, list[int]] = {int(n): [] for n in np.flatnonzero(tier > 0)}
        for link in between:
            self.out[int(links.src[link])].append(link)
        self.end = links.dst.tolist()
        self.start = links.src.tolist()
        self.is_global = (links.kind == LINK_KINDS.index("global")).tolist()
        self.group = fabric.nodes.pod.tolist()
        self.routers = np.flatnonzero(tier == 1).tolist()

    def nodes(self, path: Path, first: int) -> list[int]:
        """Return the switches on a path."""
        return [first, *(self.end[link] for link in path)]

    def hops(self, goal: int) -> dict[int, int]:
        """Return the hops of every switch to one."""
        hops, queue = {goal: 0}, deque([goal])
        while queue:
            node = queue.popleft()
            for link in self.out[node]:
                if self.end[link] not in hops:
                    hops[self.end[link]] = hops[node] + 1
                    queue.append(self.end[link])
        return hops

    def shortest(self, src: int, dst: int) -> set[Path]:
        """Return all shortest paths."""
        hops = self.hops(dst)

        def grow(node: int) -> Iterator[Path]:
            if node == dst:
                yield ()
            for link in self.out[node]:
                if hops[self.end[link]] == hops[node] - 1:
                    yield from ((link, *rest) for rest in grow(self.end[link]))

        return set(grow(src))

    def local(self, src: int, dst: int) -> set[Path]:
        """Return the ways of at most one local hop between routers of a dragonfly's group."""
        if src == dst:
            return {()}
        return {(link,) for link in self.out[src] if self.end[link] == dst and not self.is_global[link]}

    def to_group(self, src: int, group: int) -> set[Path]:
        """Return the ways into another group of a dragonfly: a local hop where needed, a global one."""
        return {
            (*near, link)
            for router in self.routers
            for near in self.local(src, router)
            for link in self.out[router]
            if self.is_global[link] and self.group[self.end[link]] == group
        }

    def minimal(self, src: int, dst: int) -> set[Path]:
        """Return the minimal paths between two routers, as the family has them."""
        if self.kind == "dragonfly":
            if self.group[src] == self.group[dst]:
                return self.local(src, dst)
            return {
                (*near, *far)
                for near in self.to_group(src, self.group[dst])
                for far in self.local(self.end[near[-1]], dst)
            }
        paths = self.shortest(src, dst)
        if self.kind == "torus":
            paths = {path for path in paths if self._in_order(path)}
        return paths

    def _in_order(self, path: Path) -> bool:
        """Whether a path takes the dimensions of a grid in order, each in one direction."""
        assert self.fabric.spec is not None
        sizes = self.fabric.spec["dims"]
        moves = []
        for link in path:
            near, far = (
                np.array(np.unravel_index(node - self.routers[0], sizes, order="F"))
                for node in (self.start[link], self.end[link])
            )
            moves.append(int(np.flatnonzero(near != far)[0]))
        return moves == sorted(moves)

    def valiant(self, src: int, dst: int) -> set[Path]:
        """Return the paths over an intermediate between two routers, as the family has them."""
        if src == dst:
            return {()}
        groups = set(self.group)
        third = {g for g in groups if g >= 0} - {self.group[src], self.group[dst]}
        if self.kind == "dragonfly" and self.group[src] == self.group[dst]:
            return {
                (*to, *on)
                for middle in self.routers
                if self.group[middle] == self.group[src]
                for to in self.local(src, middle)
                for on in self.local(middle, dst)
            }
        if self.kind == "dragonfly" and third:
            return {
                (*to, *on)
                for group in third
                for to in self.to_group(src, group)
                for on in self.minimal(self.end[to[-1]], dst)
            }
        if self.kind == "dragonfly-plus" and third and self.group[src] != self.group[dst]:
            return self._over_groups(src, dst, third)
        if self.kind.startswith("dragonfly"):
            return self.minimal(src, dst)
        return {
            (*to, *on)
            for middle in self.routers
            for to in self.minimal(src, middle)
            for on in self.minimal(middle, dst)
        }

    def _over_groups(self, src: int, dst: int, groups: set[int]) -> set[Path]:
        """Return the ways of a dragonfly+ up, over, (down and up), over, down."""
        found = set()
        for up in self.out[src]:
            for over in self.out[self.end[up]]:
                if not self.is_global[over] or self.group[self.end[over]] not in groups:
                    continue
                spine = self.end[over]
                turns: list[Path] = [()]
                turns += [
                    (down, again)
                    for down in self.out[spine]
                    if not self.is_global[down]
                    for again in self.out[self.end[down]]
                    if self.end[again] != spine
                ]
                for turn in turns:
                    last = self.end[turn[-1]] if turn else spine
                    for out in self.out[last]:
                        if self.is_global[out] and self.group[self.end[out]] == self.group[dst]:
                            found |= {
                                (up, over, *turn, out, down)
                                for down in self.out[self.end[out]]
                                if self.end[down] == dst
                            }
        return found
