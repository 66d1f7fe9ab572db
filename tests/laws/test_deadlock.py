"""Virtual channels that keep direct networks free of deadlock, as `docs/concepts/models.md` lists them.

Dally & Seitz, *Deadlock-Free Message Routing in Multiprocessor Interconnection Networks*, IEEE
Trans. Computers 1987: packets that wait for each other all round need a cycle in the graph of
channels, where a channel points to those that some packet asks for while it holds it. So the
graph of all paths, each link with its virtual channel, must have none. netplan does not choose
virtual channels; this proves that the numbers it names are enough, on small networks.
"""

from __future__ import annotations

from itertools import pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest

from netplan.fabric.direct import HyperXStructure, TorusStructure
from netplan.routing.direct_paths import minimal_hops, valiant_hops
from tests.direct import DIRECT, direct_fabric, every_path, structure_of

#: (minimal, valiant and ugal); per dimension for a hyperx.
CHANNELS = {
    "dragonfly": (2, 3),
    "dragonfly-plus": (1, 2),
    "slim-fly": (2, 4),
    "torus": (2, 4),
    "hyperx": (1, 2),
}
GLOBAL = 7


def dragonfly_channels(path, fabric):
    """One more after each global hop, and between two local hops of one group."""
    channels: list[int] = []
    last = None
    for link in path:
        kind = fabric.links.kind[link]
        here = channels[-1] if channels else 0
        channels.append(here + (last in (GLOBAL, kind)))
        last = kind
    return channels


def dragonfly_plus_channels(path, fabric):
    """One more when a path goes on from its intermediate group: up again, or over a second global cable."""
    channels: list[int] = []
    last = None
    for link in path:
        kind, is_up = fabric.links.kind[link], link % 2 == 0
        turns = (kind != GLOBAL and is_up) or (kind == GLOBAL and last == GLOBAL)
        channels.append((channels[-1] if channels else 0) + bool(turns and last is not None))
        last = kind
    return channels


def by_hop(path, fabric):
    """One more with each hop."""
    return list(range(len(path)))


def torus_channels(path, fabric):
    """Per half of the way two: the second from the cable on that closes the ring (the dateline)."""
    s = structure_of(fabric)
    assert isinstance(s, TorusStructure)
    stride = s.strides
    channels, last, crossed = [], None, 0
    for link in path:
        near, far = fabric.links.src[link] - s.router_node, fabric.links.dst[link] - s.router_node
        step = abs(int(near) - int(far))
        dimension = int(np.flatnonzero(step % stride == 0)[-1])
        crossed = 0 if dimension != last else crossed
        crossed |= int(step > stride[dimension])
        if step == stride[dimension] and s.sizes[dimension] == 2 and s.wraps[dimension]:
            crossed |= int((link // 2 - s.dimension_cable[dimension]) // s.bundles[dimension] % 2)
        channels.append(crossed)
        last = dimension
    return channels


RULES = {
    "dragonfly": dragonfly_channels,
    "dragonfly-plus": dragonfly_plus_channels,
    "slim-fly": by_hop,
    "hyperx": by_hop,
    "torus": torus_channels,
}


def ways(fabric, find):
    """Yield (path, channels) of every path between any two routers."""
    if fabric.kind == "torus" and find is valiant_hops:
        yield from torus_detours(fabric)
        return
    s, rule = structure_of(fabric), RULES[fabric.kind]
    for src, dst in permutations(range(s.n_routers), 2):
        for path in every_path(find, s, src, dst):
            yield path, rule(path, fabric)


def torus_detours(fabric):
    """Yield (path, channels) of every two minimal paths of a torus, the second on channels of its own."""
    s = structure_of(fabric)
    routers = range(s.n_routers)
    legs = {(src, dst): every_path(minimal_hops, s, src, dst) for src, dst in permutations(routers, 2)}
    for (src, middle), first in legs.items():
        for dst in set(routers) - {src, middle}:
            for one, other in product(first, legs[middle, dst]):
                on = [channel + 2 for channel in torus_channels(other, fabric)]
                yield (*one, *other), [*torus_channels(one, fabric), *on]


def channel_graph(paths):
    """Return which channels are asked for while which are held."""
    graph = nx.DiGraph()
    for path, channels in paths:
        held = list(zip(path, channels, strict=True))
        graph.add_edges_from(pairwise(held))
    return graph


#: Detours of these are as many millions; a channel for each hop needs no proof.
MANY = ("hyperx, 3 dimensions", "slim-fly, q = 4")


@pytest.mark.parametrize(
    ("name", "find"),
    [
        (name, find)
        for name in DIRECT
        for find in (minimal_hops, valiant_hops)
        if find is minimal_hops or name not in MANY
    ],
)
def test_so_many_channels_are_enough(name, find):
    """No cycle of channels, and no more of them than the table says."""
    fabric = direct_fabric(name)
    most = CHANNELS[fabric.kind][find is valiant_hops]
    if fabric.kind == "hyperx":
        s = structure_of(fabric)
        assert isinstance(s, HyperXStructure)
        most *= len(s.sizes)
    paths = list(ways(fabric, find))
    assert max(max(channels, default=0) for _, channels in paths) + 1 <= most
    assert nx.is_directed_acyclic_graph(channel_graph(paths))


@pytest.mark.parametrize(
    ("name", "find"),
    [
        ("dragonfly", minimal_hops),
        ("dragonfly, two cables a pair", valiant_hops),
        ("dragonfly-plus", valiant_hops),
        ("slim-fly", minimal_hops),
        ("ring", minimal_hops),
        ("hyperx", minimal_hops),
    ],
)
def test_one_channel_is_not(name, find):
    """Without virtual channels the same paths can wait for each other all round."""
    paths = [(path, [0] * len(path)) for path, _ in ways(direct_fabric(name), find)]
    assert not nx.is_directed_acyclic_graph(channel_graph(paths))
