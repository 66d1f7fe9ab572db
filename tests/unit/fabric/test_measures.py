"""What `measure` says: by hand on the drawn fabrics, by two roads on random ones, by networkx on some."""

import json
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from netplan.fabric import Fabric, FabricBuilder
from netplan.fabric import measures as module
from netplan.fabric.convert import to_networkx
from netplan.fabric.measures import PathCounts, RailReach, clos_flow, first_half, max_flow, measure
from tests import fabrics
from tests.strategies import TREES
from tests.strategies import fabrics as random_fabrics


def halves(fabric: Fabric) -> np.ndarray:
    return first_half(fabric, module._endpoint_groups(fabric))


def networkx_flow(fabric: Fabric, first: np.ndarray) -> float:
    """Max-flow from the first half to the second, hosts not forwarding."""
    switches = to_networkx(fabric, level="switch")
    graph = nx.DiGraph()
    for a, b, capacity in switches.edges(data="capacity"):
        for src, dst in ((a, b), (b, a)):
            known = graph.get_edge_data(src, dst, {"capacity": 0})["capacity"]
            graph.add_edge(src, dst, capacity=known + round(capacity))
    for endpoint, rate in enumerate(fabric.endpoint_rate):
        leaf = fabric.node_name(int(fabric.endpoints.leaf[endpoint]))
        src, dst = ("source", leaf) if first[endpoint] else (leaf, "sink")
        known = graph.get_edge_data(src, dst, {"capacity": 0})["capacity"]
        graph.add_edge(src, dst, capacity=known + round(rate))
    return float(nx.maximum_flow_value(graph, "source", "sink"))


def test_keys_of_show_are_a_contract() -> None:
    measured = measure(fabrics.metro_two_sites()).to_dict()
    wanted = {"name", "kind", "hosts", "gpus", "endpoints", "switches", "cables", "oversubscription"}
    assert wanted | {"bisection_fraction", "max_hops"} <= set(measured)
    assert set(measured["switches"]) == {"leaf", "spine", "core", "metro", "total"}
    kinds = {"host_leaf", "leaf_spine", "spine_core", "site_metro", "inter_site", "other"}
    kinds |= {"local", "global", "total"}
    assert set(measured["cables"]) == kinds
    assert json.loads(json.dumps(measured, allow_nan=False))["sites"]["names"] == ["north", "south"]


# Per fabric, by hand: oversubscription, bisection, hops, paths, rail reach.
BY_HAND = {
    "one_leaf": ({"leaf": None}, 1.0, 1, PathCounts(1, None, None, None), RailReach(4, 4, 4)),
    # 2 uplinks x 2 parallel cables down to the other leaf.
    "lab_two_leaves": (
        {"leaf": 1.0, "spine": None}, 1.0, 3, PathCounts(1, 4, None, None), RailReach(2, 4, 4),
    ),
    # 4 hosts of 400G behind 2 uplinks of 400G.
    "blocking_two_leaves": (
        {"leaf": 2.0, "spine": None}, 0.5, 3, PathCounts(1, 4, None, None), RailReach(4, 8, 8),
    ),
    # Al-Fares: k/2 paths in a pod, (k/2)^2 between pods.
    "fat_tree_k4": (
        {"leaf": 1.0, "spine": 1.0, "core": None}, 1.0, 5, PathCounts(1, 2, 4, None), RailReach(2, 4, 16),
    ),
    "rail_2x8": ({"leaf": 1.0, "spine": None}, 1.0, 3, PathCounts(1, 4, None, None), RailReach(4, 8, 8)),
    # 2 uplinks x 8 uplinks x 8 parallel cables down x 1.
    "rail_three_tiers": (
        {"leaf": 1.0, "spine": 1.0, "core": None}, 1.0, 5, PathCounts(1, 2, 128, None), RailReach(2, 16, 16),
    ),
    # Each rail for itself: two pods of two leaves; core.domains leaves out the other rail's 8 endpoints.
    "rails_meeting_in_hosts": (
        {"leaf": 1.0, "spine": 1.0, "core": None}, 1.0, 5, PathCounts(1, 2, 8, None), RailReach(2, 4, 8),
    ),
    # Nothing above the leaves; 3 NICs of a rail on each.
    "rails_only_one_tier": ({"leaf": None}, 1.0, 1, PathCounts(1, None, None, None), RailReach(3, 3, 3)),
    # Each plane for itself: 2 uplinks of a leaf, each of them times 2 down to the other leaf.
    "twin_planes": ({"leaf": 1.0, "spine": None}, 1.0, 3, PathCounts(1, 4, None, None), RailReach(2, 4, 4)),
    # 3 NICs and 3 uplinks a leaf, one spine: 3 x 3.
    "a_plane_for_each_nic": (
        {"leaf": 1.0, "spine": None}, 1.0, 3, PathCounts(1, 9, None, None), RailReach(3, 6, 6),
    ),
    # 4 of 5 ports: 2 hosts, 2 uplinks.
    "dual_tor_two_segments": (
        {"leaf": 1.0, "spine": None}, 1.0, 3, PathCounts(1, 4, None, None), RailReach(2, 4, 4),
    ),
    # 8 of 16 line rates between the sites. 4 uplinks of a leaf x 2 of a spine x 4 long links of a metro
    # switch x 4 cables down to spines x 1 down to the leaf.
    "metro_two_sites": (
        {"leaf": 1.0, "spine": 2.0, "metro": 1.0}, 0.5, 6, PathCounts(1, 4, None, 128), RailReach(4, 8, 16),
    ),
    # 100G for two hosts of 400G.
    "dumbbell": ({"leaf": 8.0, "spine": None}, 0.125, 3, PathCounts(1, 1, None, None), RailReach(2, 4, 4)),
    # a has 400G down and 400G up; b 400G down, 600G up; c 200G down, 200G up. Halves: 2 and 3 endpoints.
    "three_campuses": ({"leaf": 1.0}, 1.0, 3, PathCounts(1, None, None, 1), RailReach(2, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", fabrics.NAMED)
def test_drawn_fabrics_measure_as_by_hand(name: str) -> None:
    measured = measure(fabrics.NAMED[name]())
    ratios, bisection, hops, paths, reach = BY_HAND[name]
    assert measured.oversubscription == ratios
    assert measured.bisection_fraction == pytest.approx(bisection)
    assert (measured.max_hops, measured.paths, measured.rail_reach) == (hops, paths, reach)


def test_rest_of_the_metro_by_hand() -> None:
    measured = measure(fabrics.metro_two_sites())
    (span,) = measured.sites.spans
    assert (span.a, span.b, span.length_km, span.links, span.capacity_gbps) == ("north", "south", 30, 8, 3200)
    assert (measured.rails, measured.planes, measured.groups) == (2, 1, 1)
    assert measured.nic_rates_gbps == (400.0,)
    assert (measured.scale_up.gpus, measured.scale_up.rate_gb_per_s) == ((2,), (450.0,))
    # 4 leaves of 8 ports, all used; 4 spines of 8 ports, 4 down and 2 up; 2 metro switches of 16: 4 + 4.
    ports = {tier: (p.used, p.total) for tier, p in measured.ports.items()}
    assert ports == {"leaf": (64, 64), "spine": (48, 64), "metro": (32, 64)}


def test_spans_are_listed_per_pair_and_length() -> None:
    spans = measure(fabrics.three_campuses()).sites.spans
    assert [(s.a, s.b, s.length_km, s.links) for s in spans] == [("a", "b", 10.0, 2), ("b", "c", 20.0, 1)]


def test_less_down_than_up_is_shown_as_it_is() -> None:
    fabric = fabrics.yaml_fabric(
        "{name: x, kind: leaf-spine, radix: 6, hosts: {count: 4, gpus: 1}, leaf: {downlinks: 2, uplinks: 4}}"
    )
    assert measure(fabric).oversubscription == {"leaf": 0.5, "spine": None}


def test_pairs_without_a_path_are_left_out_with_a_note() -> None:
    measured = measure(fabrics.rails_meeting_in_hosts())
    assert measured.groups == 2
    assert "2 groups that meet only inside hosts" in measured.notes[0]


def test_one_endpoint_has_no_bisection() -> None:
    measured = measure(
        fabrics.yaml_fabric("{name: x, kind: leaf-spine, radix: 4, hosts: {count: 1, gpus: 1}}")
    )
    assert measured.bisection_fraction is None
    assert measured.max_hops == 0
    assert measured.notes == ("no two endpoints meet, so there is no bisection",)


def test_an_empty_fabric_measures_as_nothing() -> None:
    measured = measure(FabricBuilder("empty", "custom").finish(check=False))
    assert (measured.endpoints, measured.max_hops, measured.bisection_fraction) == (0, 0, None)


def test_too_large_to_search_gives_none_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FLOW_LINKS", 10)
    monkeypatch.setattr(module, "MOST_SEARCH_STEPS", 10)
    measured = measure(fabrics.metro_two_sites())
    assert (measured.bisection_fraction, measured.max_hops) == (None, None)
    assert measured.rail_reach == RailReach(4, None, 16)
    assert measured.paths == PathCounts(None, None, None, None)
    assert measured.notes == (
        (
            "the bisection is not computed: 112 links between switches without a structure, and max-flow "
            "is run on up to 10"
        ),
        "hops and paths are not computed: 8 leaves without a structure are too many",
    )


@given(fabric=random_fabrics(*TREES))
@settings(max_examples=150)
def test_arithmetic_equals_search(fabric: Fabric) -> None:
    by_structure, by_search = measure(fabric), measure(replace(fabric, structure=None))
    for key, value in by_structure.to_dict().items():
        if key == "bisection_fraction" and value is not None:
            assert by_search.bisection_fraction == pytest.approx(value, rel=1e-6)
        else:
            assert by_search.to_dict()[key] == value, key


@given(fabric=random_fabrics(*TREES))
@settings(max_examples=20)
def test_closed_form_is_the_max_flow_of_networkx(fabric: Fabric) -> None:
    assert fabric.structure is not None
    first = halves(fabric)
    if first.any():
        assert clos_flow(fabric, fabric.structure, first) == pytest.approx(networkx_flow(fabric, first))


@given(fabric=random_fabrics("metro", "custom"))
@settings(max_examples=20)
def test_search_is_the_max_flow_of_networkx(fabric: Fabric) -> None:
    first = halves(fabric)
    if first.any():
        assert max_flow(fabric, first) == pytest.approx(networkx_flow(fabric, first), rel=1e-6)


@given(fabric=random_fabrics("metro", "custom", "clos"))
@settings(max_examples=20)
def test_hops_and_paths_are_those_of_networkx(fabric: Fabric) -> None:
    fabric = replace(fabric, structure=None)
    graph = to_networkx(fabric, level="switch")
    leaves = sorted({fabric.node_name(int(leaf)) for leaf in fabric.endpoints.leaf})
    hops = [len(fabric.endpoints.leaf) > len(leaves)]
    for leaf in leaves:
        distance = nx.single_source_shortest_path_length(graph, leaf)
        hops += [distance[other] + 1 for other in leaves if other != leaf and other in distance]
    assert measure(fabric).max_hops == max(hops)


def test_split_follows_sites_then_pods_then_leaves() -> None:
    # North's 16 endpoints are the first half.
    fabric = fabrics.metro_two_sites()
    assert (fabric.nodes.site[fabric.endpoints.host[halves(fabric)]] == 0).all()


def test_odd_numbers_of_endpoints_are_cut_in_the_smaller_half_first() -> None:
    assert halves(fabrics.three_campuses()).tolist() == [True, True, False, False, False]


def test_rates_that_share_no_unit_are_counted_closely() -> None:
    fabric = fabrics.dumbbell()
    odd = replace(fabric.links, capacity=fabric.links.capacity * 1.000000123456789)
    fabric = replace(fabric, links=odd)
    assert max_flow(fabric, halves(fabric)) == pytest.approx(12.5e9 * 1.000000123456789, rel=1e-7)


def test_a_large_fabric_is_measured_in_milliseconds() -> None:
    fabric = fabrics.yaml_fabric(
        "{name: big, kind: rail-optimized, tiers: 3, radix: 64, hosts: {count: 16384}, pod: {by: rail},"
        " core: {domains: 2}}"
    )
    measure(fabric)
    start = time.perf_counter()
    measured = measure(fabric)
    # 30 ms on an idle core; ten times that where other tests run beside.
    assert time.perf_counter() - start < 0.3
    assert (measured.gpus, measured.bisection_fraction, measured.max_hops) == (131_072, 1.0, 5)
