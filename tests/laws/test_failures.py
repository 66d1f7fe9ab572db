"""What failures must cost, by hand: spines, cables, leaves, sites, spans; rerouting is complete."""

from __future__ import annotations

import numpy as np
import pytest

from netplan.errors import RoutingError
from netplan.fabric.checks import check_fabric
from netplan.fabric.failures import apply_failures, list_losses
from netplan.routing import SCHEMES, FlowTable, RoutingOptions, route_flows
from netplan.routing.ecmp import five_tuple_keys
from netplan.routing.hashed import hashed_paths, switch_seeds
from netplan.simulate.damage import Aftermath
from tests.contracts.making import damage_of, first_rates, make_demand, make_fabric, run
from tests.contracts.routes import WITH_DETOURS, check_routes
from tests.fabrics import NAMED, fat_tree_k4, metro_two_sites, rail_2x8, rails_meeting_in_hosts

CROSS_LEAF = "kind: permutation\nsize: 1 MiB\ncross_leaf: true"


@pytest.mark.parametrize(("spines", "lost"), [(2, 1), (4, 1), (8, 1), (8, 3), (16, 5)])
def test_losing_spines_of_a_two_tier_fabric(spines, lost):
    """S spines, 1:1, every flow leaves its leaf, sprayed; k spines fail.

    By hand: a leaf of d NICs has d uplinks, d/S to each spine; d (S-k)/S are left, up as down, and all are
    used alike: every flow gets exactly (S-k)/S.
    """
    fabric = make_fabric(
        f"kind: leaf-spine\nradix: 32\nhosts: {{count: 64, gpus: 1}}\nspine: {{count: {spines}, radix: 128}}"
    )
    demand = make_demand(fabric, CROSS_LEAF)
    np.testing.assert_allclose(first_rates(fabric, demand, "spray").flow, 1, rtol=1e-9)
    damaged = apply_failures(fabric, [f"tier:spine:{lost}"], seed=lost)
    assert len(list_losses(fabric, damaged).switches) == lost
    rates = first_rates(damaged, make_demand(damaged, CROSS_LEAF), "spray").flow
    np.testing.assert_allclose(rates, (spines - lost) / spines, rtol=1e-9)


@pytest.mark.parametrize(("spines", "bundle"), [(2, 2), (2, 4), (4, 2), (4, 4)])
def test_losing_one_cable_of_a_bundle(spines, bundle):
    """Leaves with b cables to each of S spines; one cable of leaf A fails; flows by share of paths.

    By hand, u = S b: from A there are b (b-1) paths over the spine of the failed cable and b^2 over each
    other, b (u-1) in all: each of A's u-1 uplinks carries 1/(u-1) of what leaves A, and likewise towards A. u
    flows share u-1 cables: those from or to A get (u-1)/u, all others their line rate, since no link of
    another leaf carries more than before.
    """
    uplinks = spines * bundle
    fabric = make_fabric(
        f"kind: leaf-spine\nradix: {2 * uplinks}\nhosts: {{count: {4 * uplinks}, gpus: 1}}\n"
        f"spine: {{count: {spines}, radix: 64}}"
    )
    damaged = apply_failures(fabric, ["cable:leaf-0-0/spine-0-1#2"])
    assert damaged.links.n_cables == fabric.links.n_cables - 1
    demand = make_demand(damaged, CROSS_LEAF)
    rates = first_rates(damaged, demand, "spray").flow
    leaf = damaged.endpoints.leaf
    touches = (leaf[demand.src] == leaf.min()) | (leaf[demand.dst] == leaf.min())
    assert touches.any()
    assert not touches.all()
    np.testing.assert_allclose(rates[touches], (uplinks - 1) / uplinks, rtol=1e-9)
    np.testing.assert_allclose(rates[~touches], 1, rtol=1e-9)


@pytest.mark.parametrize("leaf", [0, 3, 7])
def test_losing_a_leaf_cuts_off_its_hosts(leaf):
    """One NIC a host: exactly the hosts of the leaf are cut off, and the rest runs as before."""
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}\nspine: {radix: 64}")
    node = int(np.flatnonzero(fabric.nodes.tier == 1)[leaf])
    damaged = apply_failures(fabric, [f"switch:{fabric.node_name(node)}"])
    hosts = fabric.endpoints.host[fabric.endpoints.leaf == node]
    losses = list_losses(fabric, damaged)
    assert losses.hosts == tuple(fabric.node_name(int(host)) for host in hosts)
    assert losses.gpus == len(hosts)
    assert (losses.endpoints, losses.leaf_failed, losses.cut_off) == (8, 8, 0)
    demand = make_demand(damaged, CROSS_LEAF)
    assert demand.n_ranks == 64 - 8
    np.testing.assert_allclose(first_rates(damaged, demand, "spray").flow, 1, rtol=1e-9)


def test_losing_a_leaf_of_a_rail_takes_one_nic_of_each_host():
    """8 rails: the 4 hosts of the block keep 7 NICs; all run 7 rings: 7/8 of the bandwidth, latency aside."""
    fabric = rail_2x8()
    damaged = apply_failures(fabric, ["switch:leaf-b0-r5"])
    losses = list_losses(fabric, damaged)
    assert losses.hosts == ()
    assert losses.reduced_hosts == ("host-00000", "host-00001", "host-00002", "host-00003")
    demand = make_demand(damaged, "kind: all-reduce\nsize: 1 GiB")
    assert set(damaged.endpoints.rail[demand.src]) == set(range(8)) - {5}
    assert (damaged.endpoints.rail[demand.src] == damaged.endpoints.rail[demand.dst]).all()
    before = run(fabric, "kind: all-reduce\nsize: 1 GiB", "spray")
    after = run(damaged, demand, "spray")
    assert before.phases[0].network_s / after.phases[0].network_s == pytest.approx(7 / 8, rel=1e-9)


def test_two_hosts_that_lost_different_rails_still_run_seven_rings():
    """Host 0 lost NIC 1, host 5 lost NIC 6: seven rings; each host lets a spare NIC stand in for one."""
    damaged = apply_failures(rail_2x8(), ["nic:host-00000/1", "nic:host-00005/6"])
    demand = make_demand(damaged, "kind: all-reduce\nsize: 1 GiB\nchannels: 1")
    assert np.unique(demand.ring).tolist() == list(range(7))
    for ring in range(7):
        rows = demand.ring == ring
        assert len(np.unique(damaged.endpoints.host[demand.src[rows]])) == 8
    assert len(np.unique(demand.src)) == 7 * 8


def test_rails_that_meet_in_hosts_lose_the_ring_instead():
    """A spare NIC of another rail does not reach the ring: only rails that all hosts have are used."""
    fabric = rails_meeting_in_hosts()
    damaged = apply_failures(fabric, ["nic:host-00000/0"])
    demand = make_demand(damaged, "kind: all-reduce\nsize: 1 GiB")
    assert set(damaged.endpoints.rail[demand.src]) == {1}
    both = apply_failures(fabric, ["nic:host-00000/0", "nic:host-00001/1"])
    with pytest.raises(Exception, match="no ring is left"):
        make_demand(both, "kind: all-reduce\nsize: 1 GiB")
    evicted = make_demand(both, "kind: all-reduce\nsize: 1 GiB", on_dead="evict")
    assert evicted.n_ranks == 2 * (8 - 2)


@pytest.mark.parametrize("seed", range(4))
def test_ecmp_after_failures_equals_walked_routes(seed):
    """Only NICs failed: paths by arithmetic on the damaged structure equal walked ones.

    Cables inside failed: the paths are the walk's with the flows' old addresses, so a flow none of whose
    switches lost an option keeps its path.
    """
    fabric = fat_tree_k4()
    ends = apply_failures(fabric, ["random:nic:3"], seed=seed)
    assert ends.structure is not None
    assert not [fault for fault in check_fabric(ends) if fault.severity == "error"]
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(ends.n_endpoints), 2)
    dst = (src + rng.integers(1, ends.n_endpoints, len(src))) % ends.n_endpoints
    key = five_tuple_keys(src, dst, np.zeros(len(src), np.int64), np.zeros(len(src), np.int64), seed)
    seeds = switch_seeds(ends, seed)
    for fast, slow in zip(
        hashed_paths(ends, src, dst, key, seeds),
        hashed_paths(ends, src, dst, key, seeds, walk=True),
        strict=True,
    ):
        np.testing.assert_array_equal(fast, slow)

    inside = apply_failures(fabric, ["random:spine_core:1"], seed=seed)
    assert inside.structure is None
    flows = FlowTable(src.astype(np.int32), dst.astype(np.int32), np.zeros(len(src), np.int32))
    before = route_flows(fabric, flows, "ecmp", RoutingOptions(seed=seed))
    after = route_flows(inside, flows, "ecmp", RoutingOptions(seed=seed))
    gone = damage_of(inside).failed_cables
    touched = np.isin(fabric.links.src, fabric.links.src[[2 * gone[0], 2 * gone[0] + 1]])
    kept = 0
    for flow in range(len(flows)):
        old = before.resource[before.path_ptr[flow] : before.path_ptr[flow + 1]]
        new = after.resource[after.path_ptr[flow] : after.path_ptr[flow + 1]]
        if not touched[old].any():
            np.testing.assert_array_equal(2 * damage_of(inside).cable[new // 2] + new % 2, old)
            kept += 1
    assert kept


@pytest.mark.parametrize("scheme", SCHEMES.names())
@pytest.mark.parametrize(
    "name", [name for name, make in NAMED.items() if make().nodes.tier.max() > 1] + ["three_campuses"]
)
def test_every_scheme_reroutes(name, scheme):
    """A cable of each kind that can be spared fails: routes keep their contract on what is left."""
    fabric = NAMED[name]()
    cables = [c for c in range(fabric.links.n_cables) if fabric.nodes.tier[fabric.links.src[2 * c]] > 0]
    damaged = apply_failures(fabric, ["random:nic:1", _cable(fabric, cables[-1])], seed=1)
    demand = make_demand(damaged, "kind: all-reduce\nsize: 1 MiB", on_dead="shrink")
    flows = FlowTable(demand.src, demand.dst, demand.channel, demand.qps)
    try:
        routes = route_flows(damaged, flows, scheme, RoutingOptions(seed=1))
    except RoutingError:
        assert scheme == "ib-static"
        return
    check_routes(damaged, flows, routes, are_shortest=scheme not in WITH_DETOURS)


def _cable(fabric, cable):
    """Return the failure of a cable."""
    src, dst = fabric.links.src[2 * cable], fabric.links.dst[2 * cable]
    return f"cable:{fabric.node_name(src)}/{fabric.node_name(dst)}"


@pytest.mark.parametrize("routing", SCHEMES.names())
def test_an_unused_failure_changes_nothing(routing):
    """The job is on the first block; a NIC of the second fails: the same figures, and the output says so."""
    fabric = rail_2x8()
    job = "kind: all-reduce\nsize: 1 MiB\nranks: 32"
    damaged = apply_failures(fabric, ["nic:host-00006/3"])
    after = Aftermath.of(run(fabric, job, routing), run(damaged, job, routing))
    assert after.is_unused
    assert after.is_same
    assert after.bandwidth_left == pytest.approx(1, rel=1e-12)
    assert "Nothing that this demand uses has failed" in after.remarks()[-1]


def test_an_unused_spine_changes_nothing():
    """One block on one leaf per rail: no flow goes up, so a spine can fail under any routing by hashes."""
    fabric, job = rail_2x8(), "kind: all-reduce\nsize: 1 MiB\nranks: 32"
    damaged = apply_failures(fabric, ["switch:spine-0-1"])
    after = Aftermath.of(run(fabric, job), run(damaged, job))
    assert after.is_unused
    assert after.is_same


def test_site_loss_cuts_the_site():
    """Of two sites one fails: its 8 hosts, and only they, are cut off; the job runs in the other."""
    fabric = metro_two_sites()
    damaged = apply_failures(fabric, ["site:south"])
    losses = list_losses(fabric, damaged)
    assert losses.hosts == tuple(f"south/host-0000{i}" for i in range(8))
    assert losses.gpus == 16
    assert losses.cut_off == 0
    assert make_demand(damaged, "kind: all-reduce\nsize: 1 MiB").n_ranks == 16
    assert {fault.severity for fault in check_fabric(damaged)} <= {"warning"}


def test_all_spans_lost_leaves_the_first_of_two_equal_sites():
    """No link between the sites: the parts are equal, so the one with the first endpoint stays."""
    fabric = metro_two_sites()
    damaged = apply_failures(fabric, ["span:south/north"])
    losses = list_losses(fabric, damaged)
    assert losses.cables == {"inter_site": 8}
    assert losses.cut_off == 16
    assert all(name.startswith("south/") for name in losses.hosts)


@pytest.mark.parametrize("left", [6, 4, 2])
def test_inter_site_share_follows_the_links(left):
    """Every flow crosses the 8 links between sites, sprayed; k are left: each gets k/8 of what it had."""
    fabric = metro_two_sites()
    shift = "kind: permutation\nsize: 1 MiB\nshift: 16"
    before = first_rates(fabric, make_demand(fabric, shift), "spray").flow
    damaged = apply_failures(fabric, [f"span:north/south:{8 - left}"])
    after = first_rates(damaged, make_demand(damaged, shift), "spray").flow
    np.testing.assert_allclose(after / before, left / 8, rtol=1e-9)


def test_failures_are_drawn_by_the_seed():
    """The same seed draws the same, another seed another; one failure's draw does not move another's."""
    fabric = fat_tree_k4()

    def gone(*failures, seed):
        return damage_of(apply_failures(fabric, failures, seed)).failed_cables.tolist()

    assert gone("random:cable:10%", seed=3) == gone("random:cable:10%", seed=3)
    assert gone("random:cable:10%", seed=3) != gone("random:cable:10%", seed=4)
    both = gone("random:leaf_spine:2", "random:spine_core:2", seed=3)
    assert set(gone("random:leaf_spine:2", seed=3)) < set(both)
