"""Each scheme by hand on small fabrics; arithmetic against walking; messages."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan.errors import ModelRangeError, RoutingError
from netplan.kernels.hashing import mix
from netplan.kernels.max_min import solve_max_min
from netplan.routing import RoutingOptions, route_flows, spray
from netplan.routing.adaptive import placed_on_graph, placed_on_structure, split_flows, together
from netplan.routing.ecmp import five_tuple_keys
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.routing.ib_static import balanced_up_down_paths
from netplan.routing.rail_pinned import pinned_paths
from netplan.routing.routes import single_paths
from netplan.routing.spray import sprayed_on_links, sprayed_on_trunks
from netplan.routing.walked import without_structure
from tests.contracts.making import make_demand, make_fabric, make_flows
from tests.contracts.routes import check_routes, meeting_pairs
from tests.direct import direct_fabric
from tests.fabrics import NAMED, fat_tree_k4, one_leaf, rails_meeting_in_hosts
from tests.strategies import TREES, fabrics

LARGE = {
    "fat-tree": "kind: fat-tree\nk: 8",
    "two tiers": "kind: leaf-spine\nradix: 16\nhosts: {count: 40, gpus: 1}\nleaf: {downlinks: 8, uplinks: 8}",
    "rails": "kind: rail-optimized\nradix: 16\nhosts: {count: 8, gpus: 4}\nleaf: {downlinks: 4, uplinks: 4}",
    "rails, three tiers": (
        "kind: rail-optimized\ntiers: 3\nradix: 16\nhosts: {count: 30, gpus: 4}\npod: {by: rail}"
    ),
}


def links_of(routes):
    """Cut routes into the links of each path."""
    return [part.tolist() for part in np.split(routes.resource, routes.path_ptr[1:-1])]


@given(fabric=fabrics(*TREES), seed=st.integers(0, 99), is_shared=st.booleans())
@settings(max_examples=60)
def test_hashed_paths_by_arithmetic_and_by_walking(fabric, seed, is_shared):
    """Structure and walk make the same choices in the same order of options: equal link by link."""
    src, dst = meeting_pairs(fabric, seed=seed)
    assume(len(src))
    key, seeds = mix(src, dst, seed), switch_seeds(fabric, seed, shared=is_shared)
    for a, b in zip(
        hashed_paths(fabric, src, dst, key, seeds),
        hashed_paths(fabric, src, dst, key, seeds, walk=True),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@given(fabric=fabrics(*TREES), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_pinned_paths_by_arithmetic_and_by_walking(fabric, seed):
    """Equal link by link."""
    src, dst = meeting_pairs(fabric, seed=seed)
    assume(len(src))
    for a, b in zip(pinned_paths(fabric, src, dst), pinned_paths(fabric, src, dst, walk=True), strict=True):
        np.testing.assert_array_equal(a, b)


def rates(fabric, routes):
    """Max-min rates of routes, without headers."""
    weight = np.repeat(routes.weight, np.diff(routes.path_ptr))
    capacity = routes.capacity(fabric.links.capacity)
    return solve_max_min(capacity, routes.path_ptr, routes.resource, routes.share * weight).rate


@given(fabric=fabrics(*TREES), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_spray_over_trunks_is_spray_over_links(fabric, seed):
    """On a tree all uplinks of a leaf (and of a pod) carry equal shares: loads to rounding, rates to 1e-9.

    By hand: a leaf's u uplinks are S bundles, each spine has the same number of ways on; so the count of
    shortest paths over each uplink is the same. Rates add rounding of sums over many flows.
    """
    src, dst = meeting_pairs(fabric, seed=seed)
    assume(len(src))
    flows = make_flows(src, dst)
    trunks, links = sprayed_on_trunks(fabric, fabric.structure, flows), sprayed_on_links(fabric, flows)
    load = np.random.default_rng(seed).uniform(1, 2, len(src))
    np.testing.assert_allclose(trunks.link_load(load), links.link_load(load), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rates(fabric, trunks), rates(fabric, links), rtol=1e-9)
    np.testing.assert_allclose(
        trunks.path_sum(fabric.links.delay), links.path_sum(fabric.links.delay), rtol=1e-12
    )


def placed_rates(fabric, flows, options, place):
    """Rates of flows over 400G, their flowlets placed by ``place``."""
    flowlets, owner = split_flows(fabric, flows, options)
    path_ptr, link = place(fabric, flowlets, options.reevaluations)
    path_ptr, link, share = together(len(flows), len(fabric.links), owner, path_ptr, link)
    return solve_max_min(fabric.links.capacity, path_ptr, link, share).rate / 50e9


def test_flowlets_by_hand():
    """NIC 0 sends two flows, NIC 1 one, and flowlets = 4: two flowlets each of the first, four of the other.

    None is more than a quarter of 50 GB/s; together they are the flows.
    """
    fabric = one_leaf()
    flows = make_flows([0, 0, 1], [3, 2, 2])
    flowlets, owner = split_flows(fabric, flows, RoutingOptions(flowlets=4))
    assert owner.tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert flowlets.rate.max() <= 12.5e9
    np.testing.assert_allclose(np.bincount(owner, flowlets.rate), flows.lone_rates(fabric.endpoint_rate))


@pytest.mark.parametrize("name", LARGE)
def test_adaptive_by_arithmetic_and_by_search(name):
    """Two greedy placements with other orders among equals: legal paths, the same quality.

    Tolerance: 0.02 on the mean rate over five random permutations.
    """
    fabric = make_fabric(LARGE[name])
    means: dict[str, list[float]] = {"structure": [], "graph": []}
    for seed in range(5):
        demand = make_demand(fabric, "kind: permutation\nsize: 1 MiB", seed=seed)
        flows, options = make_flows(demand.src, demand.dst), RoutingOptions(seed=seed)
        for word, place in (("structure", placed_on_structure), ("graph", placed_on_graph)):
            means[word].append(float(placed_rates(fabric, flows, options, place).mean()))
    assert np.mean(means["structure"]) == pytest.approx(np.mean(means["graph"]), abs=0.02)
    assert min(*means["structure"], *means["graph"]) > 0.8


def test_looking_again_helps():
    """``reevaluations``: more looks never lower the mean rate of ten permutations noticeably, and 8 beat
    none.

    Greedy moves are not a descent: 0.005 is allowed to chance.
    """
    fabric = make_fabric(LARGE["fat-tree"])
    means = []
    for looks in (0, 1, 8):
        found = []
        for seed in range(10):
            demand = make_demand(fabric, "kind: permutation\nsize: 1 MiB\ncross_leaf: true", seed=seed)
            options = RoutingOptions(seed=seed, reevaluations=looks, flowlets=1)
            flows = make_flows(demand.src, demand.dst)
            found.append(placed_rates(fabric, flows, options, placed_on_structure).mean())
        means.append(np.mean(found))
    assert means[0] < means[2]
    assert means[0] - 0.005 < means[1] < means[2] + 0.005


def test_lone_rates_by_hand():
    """Endpoint 0 sends two flows, endpoint 3 receives two: each flow is halved at one of its ends."""
    fabric = one_leaf()
    flows = make_flows([0, 0, 1], [3, 2, 3])
    np.testing.assert_allclose(flows.lone_rates(fabric.endpoint_rate), 25e9)


def test_pinning_by_hand():
    """k = 4: NIC on downlink i takes uplink i; spines and cores choose by the source's leaf.

    Hosts 0 and 1 on leaf 0, to host 12 (leaf 6): uplinks 0 and 1 of leaf 0; leaf number 0 -> spine uplink 0.
    Host 2 is downlink 0 of leaf 1: uplink 0 of leaf 1, then spine uplink 1.
    """
    fabric = fat_tree_k4()
    s = fabric.structure
    assert s is not None
    paths = links_of(route_flows(fabric, make_flows([0, 1, 2], [12, 13, 14]), "rail-pinned"))
    assert [path[1] for path in paths] == [2 * (s.leaf_cable + j) for j in (0, 1, 2)]
    assert [path[2] for path in paths] == [2 * (s.spine_cable + j) for j in (0, 2, 1)]


def test_d_mod_k_by_hand():
    """k = 4, destination 13: downlink 1 of leaf 6, which is leaf 0 of pod 3.

    Leaf uplink 1 mod 2 = 1, so spine position 1; spine uplink (0 x 1 + 1 mod 1) mod 2 = 0: core 0 of
    group 1. Down: the only cables from there. The source plays no part beyond its leaf.
    """
    fabric = fat_tree_k4()
    s = fabric.structure
    assert s is not None
    for source in (0, 3, 9):
        path = links_of(route_flows(fabric, make_flows([source], [13]), "ib-static"))[0]
        spine = source // 4 * 2 + 1
        assert path == [
            2 * fabric.endpoints.cable[source],
            2 * (s.leaf_cable + source // 2 * 2 + 1),
            2 * (s.spine_cable + spine * 2 + 0),
            2 * (s.spine_cable + (3 * 2 + 1) * 2 + 0) + 1,
            2 * (s.leaf_cable + 6 * 2 + 1) + 1,
            2 * fabric.endpoints.cable[13] + 1,
        ]


@pytest.mark.parametrize("scheme", ["ib-static", "ib-random"])
def test_static_tables_know_only_the_destination(scheme):
    """Two flows to one endpoint that meet at a switch stay together from there on."""
    fabric = make_fabric(LARGE["fat-tree"])
    src, dst = meeting_pairs(fabric)
    after: dict[tuple[int, int], int] = {}
    for path, d in zip(
        links_of(route_flows(fabric, make_flows(src, dst), scheme)), dst.tolist(), strict=True
    ):
        for link in path[1:]:
            assert after.setdefault((int(fabric.links.src[link]), d), link) == link


@pytest.mark.parametrize("name", NAMED)
def test_up_down_on_every_fabric(name):
    """Balanced up/down tables, also where d-mod-k would be taken: legal everywhere."""
    fabric = NAMED[name]()
    src, dst = meeting_pairs(fabric)
    flows = make_flows(src, dst)
    routes = route_flows(fabric, flows, "ecmp")
    path_ptr, link = balanced_up_down_paths(fabric, src, dst)
    updn = single_paths("ib-static", fabric, len(src), routes.weight, path_ptr, link)
    check_routes(fabric, flows, updn, are_shortest=fabric.structure is not None)


def test_up_down_balances_like_minhop():
    """Every shift on a full two-tier tree would be 1 for d-mod-k; balanced counters come near it, random
    tables not.

    By hand: 4 leaves of 4 on 4 spines, 12 remote destinations of a leaf over 4 uplinks: 3 each.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {count: 4}")
    s = fabric.structure
    assert s is not None
    src, dst = np.repeat(np.arange(4), 12), np.tile(np.arange(4, 16), 4)
    path_ptr, link = balanced_up_down_paths(fabric, src[:12], dst[:12])
    assert np.unique(link[path_ptr[:-1] + 1], return_counts=True)[1].tolist() == [3, 3, 3, 3]


def test_qps_hash_apart():
    """A flow of 64 QPs: 64 keys, a path each, weight 1; all uplinks of the leaf are used by some.

    64 keys on 2 uplinks all choose one with a probability of 2^-63.
    """
    fabric = fat_tree_k4()
    routes = route_flows(fabric, make_flows([0], [15], qps=64), "ecmp")
    assert routes.n_paths == 64
    assert routes.weight.tolist() == [1.0] * 64
    assert len({path[1] for path in links_of(routes)}) == 2
    whole = route_flows(fabric, make_flows([0], [15], qps=64), "ib-static")
    assert whole.weight.tolist() == [64.0]


def test_source_ports_are_those_of_roce():
    """Keys depend on addresses, channel, QP and seed; 14 bits of port tell QPs of one pair apart.

    By hand: 2,000 QPs on 2^14 ports repeat a port 2000 - 2^14 (1 - (1 - 2^-14)^2000) = 117 times; standard
    deviation below the root of that, so within 60 means 5 of them.
    """
    n = 2000
    zero = np.zeros(n, int)
    keys = five_tuple_keys(zero, zero + 1, zero, np.arange(n), 0)
    ports = 2**14
    expected = n - ports * (1 - (1 - 1 / ports) ** n)
    assert n - len(np.unique(keys)) == pytest.approx(expected, abs=60)
    one = five_tuple_keys(np.array([0]), np.array([1]), np.array([0]), np.array([0]), 0)
    for other in ((1, 0, 0, 0, 0), (0, 2, 0, 0, 0), (0, 1, 1, 0, 0), (0, 1, 0, 1, 0), (0, 1, 0, 0, 1)):
        a, b, channel, qp, seed = other
        assert one != five_tuple_keys(np.array([a]), np.array([b]), np.array([channel]), np.array([qp]), seed)


@pytest.mark.parametrize("is_polarized", [True, False])
def test_polarization(is_polarized):
    """One hash seed for all: the spine repeats the leaf's choice, and with it only M of M^2 ways are used.

    System: k = 8, M = 4 uplinks on both tiers, one pair of hosts, 4,000 QPs.
    By hand: same key, same seed, same number of options: spine uplink index = leaf uplink index, always.
    With seeds of their own the two are equal for 1/4: 1,000, standard deviation 27.
    """
    fabric = make_fabric("kind: fat-tree\nk: 8")
    s = fabric.structure
    assert s is not None
    options = RoutingOptions(seed=1, polarized=is_polarized)
    paths = np.array(links_of(route_flows(fabric, make_flows([0], [127], qps=4000), "ecmp", options)))
    leaf_up = paths[:, 1] // 2 - s.leaf_cable
    spine_up = (paths[:, 2] // 2 - s.spine_cable) % s.spine_uplinks
    equal = int((leaf_up == spine_up).sum())
    assert equal == 4000 if is_polarized else abs(equal - 1000) < 5 * 27
    assert len(np.unique(leaf_up * 4 + spine_up)) == (4 if is_polarized else 16)


def test_routes_know_their_loads():
    """`link_load`, `path_sum` and `capacity` by hand on one sprayed flow.

    System: two leaves, 2 spines with one cable each. The trunk of a leaf's 2 uplinks has twice the capacity;
    10 bytes/s on the path are 5 on each; a path has 4 hops, each delay of the two cables between counts half.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 4\nhosts: {count: 4, gpus: 1}\nspine: {count: 2}")
    routes = route_flows(fabric, make_flows([0], [2]), "spray")
    load = routes.link_load(np.array([10.0]))
    assert sorted(load[load > 0].tolist()) == [5, 5, 5, 5, 10, 10]
    assert routes.path_sum(np.ones(len(fabric.links))).tolist() == [4]
    assert routes.capacity(fabric.links.capacity)[len(fabric.links) :].tolist() == [100e9] * 4
    assert repr(routes) == "<Routes spray: 1 flows on 1 paths, 4 hops>"


@pytest.mark.parametrize(
    "scheme",
    [
        "ecmp",
        "rail-pinned",
        "spray",
        "adaptive",
        "minimal",
        "valiant",
        "ugal",
        "ib-adaptive",
        "ib-static",
        "ib-random",
    ],
)
def test_rails_that_do_not_meet(scheme):
    """Core domains that do not meet: NIC 0 of one host and NIC 1 of another have no path; the message says
    so.
    """
    fabric = rails_meeting_in_hosts()
    with pytest.raises(RoutingError) as caught:
        route_flows(fabric, make_flows([0], [3]), scheme)
    assert caught.value.message == (
        "fabric 'rails-meeting-in-hosts': no path inside the network joins "
        "host-00000 NIC 0 and host-00001 NIC 1"
    )
    assert "PXN" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "scheme",
    ["ecmp", "rail-pinned", "spray", "adaptive", "minimal", "valiant", "ugal", "ib-static", "ib-random"],
)
def test_hosts_that_do_not_meet_on_a_walked_fabric(scheme):
    """The same words where paths are walked: a host joins two leaves and does not forward."""
    fabric = make_fabric(
        """kind: custom
hosts: [{name: a, gpus: 1}, {name: both, gpus: 2}, {name: b, gpus: 1}]
switches: [{name: left, tier: 1, radix: 4}, {name: right, tier: 1, radix: 4}]
links:
- {a: a, b: left, speed: 100G}
- {a: both, b: left, speed: 100G}
- {a: both, b: right, speed: 100G}
- {a: b, b: right, speed: 100G}
"""
    )
    with pytest.raises(RoutingError, match=r"no path inside the network joins a NIC 0 and b NIC 0"):
        route_flows(fabric, make_flows([0], [3]), scheme)


def test_unknown_scheme():
    """The message lists what there is, and guesses."""
    with pytest.raises(RoutingError) as caught:
        route_flows(one_leaf(), make_flows([0], [1]), "ecmpp")
    assert caught.value.message.startswith("routing 'ecmpp' is not one of ecmp, rail-pinned, spray, adaptive")
    assert "ecmp" in (caught.value.hint or "")


def test_too_many_shares(monkeypatch):
    """Spraying a walked fabric makes a table of shares; one that is too large is refused before it is
    made.
    """
    monkeypatch.setattr(spray, "MOST_SHARES", 3)
    fabric = NAMED["metro_two_sites"]()
    src, dst = meeting_pairs(fabric)
    with pytest.raises(
        ModelRangeError, match=r"spraying between \d+ pairs of leaves takes [\d,]+ shares of links; at most 3"
    ):
        route_flows(fabric, make_flows(src, dst), "spray")


def test_far_too_many_shares_are_estimated(monkeypatch):
    """A table far above the limit is refused from a sample of its pairs.

    A ring of 6 has 36 pairs of routers, with those of one router. The estimate is within 30 % of the count.
    """
    fabric = without_structure(direct_fabric("ring"))
    src, dst = meeting_pairs(fabric)
    exact = len(sprayed_on_links(fabric, make_flows(src, dst)).resource) - 2 * len(src)
    per_pair = exact / len(src)
    monkeypatch.setattr(spray, "MOST_SHARES", 3)
    monkeypatch.setattr(spray, "SAMPLED_PAIRS", 7)
    with pytest.raises(ModelRangeError, match=r"takes about \d+ shares of links; at most 3") as caught:
        route_flows(fabric, make_flows(src, dst), "spray")
    about = int(caught.value.message.split("about ")[1].split()[0])
    assert about == pytest.approx(per_pair * 36, rel=0.3)
