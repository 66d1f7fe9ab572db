"""Cyclic buffer dependencies: known cases, and a slow search for cycles beside the fast one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netplan.congestion.deadlock import check_buffer_cycles, find_cycles
from netplan.errors import RoutingError
from netplan.routing import FlowTable
from tests.fabrics import NAMED, metro_two_sites, yaml_fabric

Paths = list[list[tuple[object, object]]]


def cycles_of(paths: Paths) -> list[list[object]]:
    """Cycles of paths given as channels in order, by their names."""
    channels = sorted({channel for path in paths for channel in path}, key=str)
    number = {channel: i for i, channel in enumerate(channels)}
    pairs = [(number[a], number[b]) for path in paths for a, b in itertools.pairwise(path)]
    before, after = np.asarray(pairs or np.zeros((0, 2)), np.int64).T
    return [[channels[i] for i in cycle] for cycle in find_cycles(before, after, len(channels))]


def links(nodes: Sequence[object]) -> list[tuple[object, object]]:
    """The links of a path through nodes."""
    return list(itertools.pairwise(nodes))


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_clockwise_paths_around_a_ring_are_a_cycle_of_all_links(n):
    """Hu et al., HotNets 2016, figure 1: flows of two hops around a ring of switches."""
    paths = [links([i, (i + 1) % n, (i + 2) % n]) for i in range(n)]
    (cycle,) = cycles_of(paths)
    assert len(cycle) == n
    assert set(cycle) == {(i, (i + 1) % n) for i in range(n)}
    # Without one of the flows the ring is open: what a turn that is forbidden does.
    assert cycles_of(paths[1:]) == []


def test_minimal_dimension_order_on_a_torus_has_cycles_and_on_a_mesh_has_none():
    """Dally and Seitz 1987: rings of a torus close, the lines of a mesh do not."""

    def walk(a: int, b: int, k: int, *, wraps: bool) -> list[int]:
        step = 1 if ((b - a) % k <= k // 2 if wraps else b > a) else -1
        nodes = [a]
        while nodes[-1] != b:
            nodes.append((nodes[-1] + step) % k)
        return nodes

    def paths(k: int, *, wraps: bool) -> Paths:
        grid = list(itertools.product(range(k), repeat=2))
        return [
            links(
                [(x, a[1]) for x in walk(a[0], b[0], k, wraps=wraps)]
                + [(b[0], y) for y in walk(a[1], b[1], k, wraps=wraps)][1:]
            )
            for a, b in itertools.permutations(grid, 2)
        ]

    assert cycles_of(paths(5, wraps=False)) == []
    # k rings in each dimension, each in both directions.
    assert len(cycles_of(paths(5, wraps=True))) == 2 * 2 * 5


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_valiant_on_a_dragonfly_needs_a_class_for_each_global_hop(n_classes):
    """Kim et al., ISCA 2008: groups of switches joined all to all, traffic over a random third group.

    A path is local, global, local, global, local; with one class local and global links depend on one
    another in a ring, with a class more after each global hop they cannot.
    """
    groups, size = 5, 4

    def gateway(here: int, there: int) -> tuple[int, int]:
        return here, (there - here - 1) % groups % size

    def path(source: tuple[int, int], via: int, target: tuple[int, int]) -> list[tuple[object, object]]:
        nodes: list[tuple[int, int]] = [source]
        for here, there in ((source[0], via), (via, target[0])):
            nodes += [gateway(here, there), gateway(there, here)]
        nodes.append(target)
        nodes = [node for i, node in enumerate(nodes) if i == 0 or node != nodes[i - 1]]
        hops, channel = 0, []
        for a, b in itertools.pairwise(nodes):
            channel.append(((a, b), min(hops, n_classes - 1)))
            hops += a[0] != b[0]
        return channel  # type: ignore[return-value]

    switches = list(itertools.product(range(groups), range(size)))
    paths = [
        path(a, via, b)
        for a, b in itertools.permutations(switches, 2)
        for via in range(groups)
        if len({a[0], b[0], via}) == 3
    ]
    assert bool(cycles_of(paths)) == (n_classes < 3)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_parts_with_cycles_are_those_of_networkx(pairs):
    before, after = np.asarray(pairs or np.zeros((0, 2)), np.int64).T
    graph = nx.DiGraph(pairs)
    expected = [
        part
        for part in nx.strongly_connected_components(graph)
        if len(part) > 1 or graph.has_edge(next(iter(part)), next(iter(part)))
    ]
    found = find_cycles(before, after, 8)
    assert len(found) == len(expected)
    for cycle in found:
        assert any(set(cycle) <= part for part in expected)
        assert all(graph.has_edge(a, b) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("scheme", ["ecmp", "spray", "ib-static"])
def test_up_and_down_never_deadlocks(name, scheme):
    found = check_buffer_cycles(NAMED[name](), scheme)
    assert found.is_free
    assert found.links == ()


SITE = "kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}"


def ring_of_sites(n: int):
    """Sites in a ring, 30 km apart, a metro switch each."""
    sites = "".join(f"- {{name: s{i}, fabric: {{name: s{i}, {SITE}}}}}\n" for i in range(n))
    spans = "".join(f"- {{a: s{i}, b: s{(i + 1) % n}, length: 30 km}}\n" for i in range(n))
    return yaml_fabric(
        f"name: ring\nkind: metro\nsites:\n{sites}spans:\n{spans}metro: {{radix: 16, switches: 1}}\n"
    )


@pytest.mark.parametrize(("n", "is_free"), [(3, True), (4, False), (5, False)])
def test_a_ring_of_sites_deadlocks_from_four_on(n, is_free):
    """Of three sites each pair is joined; of four, shortest paths pass through a third and close the ring.

    Up/down routing (ib-static) breaks it.
    """
    fabric = ring_of_sites(n)
    found = check_buffer_cycles(fabric, "ecmp")
    assert found.is_free == is_free
    assert check_buffer_cycles(fabric, "ib-static").is_free
    for cycle in found.cycles:
        assert len(cycle) == n
        ends = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        assert all(fabric.links.dst[a] == fabric.links.src[b] for a, b in ends)


def test_flows_that_do_not_close_the_ring_are_free():
    """One flow alone waits for nobody."""
    fabric = ring_of_sites(4)
    one = FlowTable(np.zeros(1, np.int32), np.asarray([8], np.int32), np.zeros(1, np.int32))
    assert check_buffer_cycles(fabric, "ecmp", one).is_free


def test_without_a_flow_there_is_nothing_to_wait_for():
    none = np.zeros(0, np.int32)
    assert check_buffer_cycles(metro_two_sites(), "ecmp", FlowTable(none, none, none)).is_free


def test_an_unknown_scheme_is_refused():
    with pytest.raises(RoutingError, match="'ecmpp' is not one of"):
        check_buffer_cycles(metro_two_sites(), "ecmpp")
