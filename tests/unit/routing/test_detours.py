"""Minimal, Valiant and UGAL routing outside the arithmetic: walked fabrics, options, messages."""

from __future__ import annotations

import numpy as np
import pytest

from netplan.errors import ModelRangeError
from netplan.fabric.failures import apply_failures
from netplan.kernels.hashing import mix
from netplan.routing import RoutingOptions, route_flows
from netplan.routing.detours import valiant_between
from netplan.routing.walked import without_structure
from netplan.simulate import Scenario, simulate
from netplan.simulate.compare import compare_results
from netplan.simulate.damage import Aftermath, whole_fabric
from tests.contracts.making import make_demand, make_fabric, make_flows
from tests.contracts.routes import hops_between_leaves, meeting_pairs
from tests.direct import DIRECT, direct_fabric
from tests.fabrics import NAMED, fat_tree_k4


@pytest.mark.parametrize("name", NAMED)
def test_minimal_is_ecmp_where_there_is_no_direct_network(name):
    """The same switches hash the same key: link by link."""
    fabric = NAMED[name]()
    flows = make_flows(*meeting_pairs(fabric), qps=2)
    one, other = (
        route_flows(fabric, flows, scheme, RoutingOptions(seed=4)) for scheme in ("ecmp", "minimal")
    )
    np.testing.assert_array_equal(one.resource, other.resource)


@pytest.mark.parametrize("name", [n for n in DIRECT if "dragonfly" not in n and n != "full mesh"])
def test_walked_valiant_goes_by_a_router(name):
    """Every path is two shortest ones: a switch on it splits it so. Many draws use many intermediates."""
    fabric = without_structure(direct_fabric(name))
    far = hops_between_leaves(fabric)
    n = 400
    src, dst = np.zeros(n, int), np.full(n, fabric.n_endpoints - 1)
    hops, length = valiant_between(fabric, src, dst, mix(np.arange(n)), 0)
    first, last = fabric.endpoints.leaf[[0, -1]]
    ways = set()
    for row in range(n):
        path = hops[row, : length[row]]
        nodes = [first, *fabric.links.dst[path].tolist()]
        assert nodes[-1] == last
        assert len(set(path.tolist())) == len(path)
        assert any(
            step == far[first, node] and len(path) - step == far[node, last]
            for step, node in enumerate(nodes)
        )
        ways.add(tuple(path.tolist()))
    assert len(ways) > 5


def test_a_link_is_not_crossed_twice():
    """A chain of routers 0 - 1 - 2, from 0 to 1: by 0 or 1 it is one hop, by 2 it is 0 1 2 1, three hops."""
    fabric = without_structure(
        make_fabric("kind: torus\ndims: [3]\nwrap: false\nrouter: {endpoints: 1}\nhosts: {gpus: 1}")
    )
    n = 64
    hops, length = valiant_between(fabric, np.zeros(n, int), np.ones(n, int), mix(np.arange(n)), 0)
    assert set(length.tolist()) == {1, 3}
    for row in range(n):
        assert len(set(hops[row, : length[row]].tolist())) == length[row]


@pytest.mark.parametrize("numbers", [(0, 0), (-1, 3), (2, -1)])
def test_candidates_are_some(numbers):
    """The message names both numbers and the default."""
    options = RoutingOptions(minimal_candidates=numbers[0], valiant_candidates=numbers[1])
    with pytest.raises(
        ModelRangeError, match=rf"minimal_candidates = {numbers[0]} .* = {numbers[1]} "
    ) as caught:
        route_flows(fat_tree_k4(), make_flows([0], [15]), "ugal", options)
    assert "2 of each" in (caught.value.hint or "")


def test_ugal_keeps_to_minimal_paths_while_they_fit():
    """One flow of a group to the next on an idle dragonfly: four flowlets, all by the one global cable.

    Five flows, of which a cable carries one: some go over other groups, and each gets more than a fifth.
    """
    fabric = direct_fabric("dragonfly")
    alone = route_flows(fabric, make_flows([0], [6]), "ugal")
    assert alone.share.tolist() == [1.0] * len(alone.share)
    minimal = route_flows(fabric, make_flows([0], [6]), "minimal")
    assert set(alone.resource.tolist()) == set(minimal.resource.tolist())
    flows = make_flows(np.arange(5), 6 + np.arange(5))
    crowd = route_flows(fabric, flows, "ugal")
    crossed = fabric.links.kind[crowd.resource] == 7  # global
    assert len(set(crowd.resource[crossed].tolist())) > 1
    assert crowd.link_load(np.ones(5))[fabric.links.kind == 7].max() < 5


def test_only_valiant_or_only_minimal_candidates():
    """UGAL with minimal candidates alone takes minimal paths; with Valiant ones alone, two global hops."""
    fabric = direct_fabric("dragonfly")
    flows = make_flows(np.arange(6), 6 + np.arange(6))
    for numbers, hops in (((2, 0), 1), ((0, 2), 2)):
        options = RoutingOptions(minimal_candidates=numbers[0], valiant_candidates=numbers[1])
        routes = route_flows(fabric, flows, "ugal", options)
        np.testing.assert_allclose(routes.path_sum((fabric.links.kind == 7).astype(float)), hops)


def scenario(fabric, routing):
    """Return a permutation on a fabric."""
    return Scenario(fabric, make_demand(fabric, "kind: permutation\nsize: 1 MiB"), routing)


@pytest.mark.parametrize("routing", ["minimal", "valiant", "ugal", "adaptive", "ib-static"])
def test_damaged_networks_are_held_against_walked_ones(routing):
    """A lost cable takes the structure: both runs lay paths by one rule, and the remark says which."""
    fabric = direct_fabric("dragonfly, two cables a pair")
    damaged = apply_failures(fabric, ["random:global:3", "random:local:3"])
    assert damaged.direct is None
    whole = whole_fabric(fabric, damaged, routing)
    assert whole.direct is None
    after = Aftermath.of(simulate(scenario(whole, routing)), simulate(scenario(damaged, routing)))
    said = [remark for remark in after.remarks() if "Both runs" in remark]
    if routing in ("minimal", "valiant", "ugal"):
        assert said == ["Both runs take shortest paths: a damaged dragonfly has not all its minimal ones."]
    else:
        assert said == []


def test_lost_hosts_keep_the_arithmetic():
    """A lost NIC shifts cables by one; paths of those left are the same, hop by hop."""
    fabric = direct_fabric("dragonfly")
    damaged = apply_failures(fabric, ["nic:host-00003/0"])
    assert damaged.direct is not None
    assert whole_fabric(fabric, damaged, "minimal") is fabric
    assert damaged.damage is not None
    flows = make_flows([0, 1, 2], [20, 21, 22])
    one = route_flows(fabric, make_flows([0, 1, 2], [21, 22, 23]), "minimal")
    other = route_flows(damaged, flows, "minimal")
    np.testing.assert_array_equal(one.resource // 2, damaged.damage.cable[other.resource // 2])


def test_compare_says_what_the_baseline_is():
    """``ib-static`` on a direct network is minhop: the remark names it and its deadlocks."""
    fabric = direct_fabric("dragonfly")
    baseline = simulate(scenario(fabric, "ib-static"))
    assert baseline.is_contended
    found = compare_results(baseline, [("ugal", "max-min", {}, simulate(scenario(fabric, "ugal")))])
    remarks = [remark for remark in found.remarks() if "minhop" in remark]
    assert len(remarks) == 1
    assert "deadlock" in remarks[0]
