"""What a dead port costs where NICs move its traffic to their other ports, against the closed form."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import TrafficError
from netplan.fabric.failures import apply_failures
from netplan.planning.failures import large_message_bandwidth
from tests.contracts.making import make_demand, make_fabric, run
from tests.fabrics import metro_two_sites, rail_2x8, twin_planes, yaml_fabric

RING = "kind: all-reduce\nsize: 1 GiB\nchannels: 2\nwindow: null"


def dual_tor(hosts: int = 8, gpus: int = 2):
    return make_fabric(
        "kind: dual-tor\nradix: 64\n"
        f"hosts: {{count: {hosts}, gpus: {gpus}, nic_speed: 400G, scale_up: 90 TB/s}}\n"
        "leaf: {downlinks: 4, backup: 0, breakout: 2, uplinks: 4, uplink_speed: 400G}"
    )


def planes(n: int, hosts: int = 6, gpus: int = 2):
    return make_fabric(
        f"kind: multi-plane\nplanes: {n}\nradix: 64\n"
        f"hosts: {{count: {hosts}, gpus: {gpus}, nic_speed: 800G, scale_up: 90 TB/s}}"
    )


def left(fabric, failures, text, routing="spray"):
    """Return the bandwidth left of a workload, over the undamaged fabric's."""
    damaged = apply_failures(fabric, failures)
    whole, after = (run(each, make_demand(each, text), routing) for each in (fabric, damaged))
    return large_message_bandwidth(after) / large_message_bandwidth(whole)


def test_a_dead_port_of_a_bond_leaves_half():
    """p = 2 ports, q = 1 dead: (p - q)/p = 1/2, by itself with dual ToRs."""
    assert left(dual_tor(), ["nic:host-00001/0#2"], RING) == pytest.approx(1 / 2, rel=1e-9)


def test_a_dead_tor_of_a_pair_leaves_half():
    """All NICs of a segment on one ToR lose a port, and all make up for it alike."""
    fabric = dual_tor()
    tor = fabric.node_name(int(fabric.endpoints.leaf[0]))
    assert left(fabric, [f"switch:{tor}"], RING) == pytest.approx(1 / 2, rel=1e-9)


@pytest.mark.parametrize(("n", "dead"), [(2, 1), (4, 1), (4, 2), (4, 3), (8, 3)])
def test_dead_ports_of_a_nic_with_planes_leave_their_share(n, dead):
    """p ports, q dead: the NIC keeps (p - q)/p, and so does the collective."""
    fabric = planes(n)
    failures = [f"nic:host-00002/1#{port}" for port in range(1, dead + 1)]
    assert left(fabric, failures, f"{RING}\nfailover: nic") == pytest.approx((n - dead) / n, rel=1e-9)


@pytest.mark.parametrize("n", [2, 4])
def test_without_failover_the_job_ends_the_ring(n):
    """R = p NICs rings; one less: (R - 1)/R. The default where ports are no bond."""
    fabric = planes(n)
    for text in (RING, f"{RING}\nfailover: none"):
        expected = (2 * n - 1) / (2 * n)
        assert left(fabric, ["nic:host-00002/1#1"], text) == pytest.approx(expected, rel=1e-9)


def test_ports_dead_in_different_planes_share_what_both_have():
    """Planes 0 and 1 dead at neighbours: between them p - 2 of p planes are common, so that edge decides."""
    fabric = planes(4)
    failures = ["nic:host-00002/1#1", "nic:host-00003/1#2"]
    assert left(fabric, failures, f"{RING}\nfailover: nic") == pytest.approx(2 / 4, rel=1e-9)


def test_no_plane_in_common_ends_the_rings_of_that_nic():
    """Twin planes, hosts 0 and 1 keep different ones at NIC 0: its two rings go, NIC 1's two stay: 2/4."""
    fabric = planes(2)
    failures = ["nic:host-00000/0#1", "nic:host-00001/0#2"]
    damaged = apply_failures(fabric, failures)
    demand = make_demand(damaged, f"{RING}\nfailover: nic")
    assert len(np.unique(demand.ring)) == 2 * 2
    assert set(damaged.endpoints.rail[demand.src].tolist()) == {1}
    both = [*failures, "nic:host-00000/1#1", "nic:host-00001/1#2"]
    with pytest.raises(TrafficError, match="no ring is left"):
        make_demand(apply_failures(fabric, both), f"{RING}\nfailover: nic")


def test_bound_qps_move_to_the_first_plane_left():
    """planes: one has one ring a NIC on one port; on another it has all of that port: nothing is lost."""
    fabric = planes(4)
    text = f"{RING}\nfailover: nic\nplanes: one"
    assert left(fabric, ["nic:host-00002/1#1"], text) == pytest.approx(1, rel=1e-9)
    demand = make_demand(apply_failures(fabric, ["nic:host-00002/1#1"]), text)
    assert len(demand) == 6 * 2 * 2  # one flow an edge


def test_a_dead_nic_is_no_matter_of_failover():
    """No port is left: one of two NICs, so its rings go and half is left, as without failover."""
    for wish in ("nic", "none"):
        got = left(planes(2), ["nic:host-00002/1"], f"{RING}\nfailover: {wish}")
        assert got == pytest.approx(1 / 2, rel=1e-9)


def test_where_nics_have_one_port_failover_changes_nothing():
    damaged = apply_failures(rail_2x8(), ["nic:host-00000/1", "nic:host-00005/6"])
    with_it, without = (make_demand(damaged, f"{RING}\nfailover: {wish}") for wish in ("nic", "none"))
    for name in ("src", "dst", "size", "ring", "channel"):
        np.testing.assert_array_equal(getattr(with_it, name), getattr(without, name))


def test_sites_with_dual_tors_fail_over_by_themselves():
    site = (
        "kind: dual-tor, radix: 64, hosts: {count: 8, gpus: 1}, spine: {count: 4},"
        " leaf: {downlinks: 4, backup: 0, breakout: 2, uplinks: 4, uplink_speed: 400G}"
    )
    fabric = yaml_fabric(
        "name: m\nkind: metro\nmetro: {radix: 64}\nsites:\n"
        f"- {{name: a, position: [0 km, 0 km], fabric: {{name: a, {site}}}}}\n"
        f"- {{name: b, position: [9 km, 0 km], fabric: {{name: b, {site}}}}}\n"
    )
    damaged = apply_failures(fabric, ["nic:a/host-00001/0#1"])
    assert len(np.unique(make_demand(damaged, RING).ring)) == 2 * 2
    assert len(np.unique(make_demand(metro_two_sites(), RING).ring)) == 2 * 2


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=st.sampled_from([2, 4]), wish=st.sampled_from(["nic", "none"]))
def test_every_edge_carries_its_bytes_between_the_nics_of_its_hosts(data, n, wish):
    """Property, whatever ports are dead: each ring and channel moves the same bytes over every pair of hosts.

    Flows stay in one plane, and no two flows have the same ends and channel: their connections differ.
    """
    fabric = planes(n, hosts=4)
    dead = data.draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, n)),
            min_size=1,
            max_size=6,
            unique=True,
        )
    )
    damaged = apply_failures(fabric, [f"nic:host-{h:05d}/{nic}#{port}" for h, nic, port in dead])
    try:
        demand = make_demand(damaged, f"{RING}\nfailover: {wish}")
    except TrafficError:
        return
    ends = damaged.endpoints
    assert (ends.plane[demand.src] == ends.plane[demand.dst]).all() or wish == "none"
    connections = set(zip(demand.src.tolist(), demand.dst.tolist(), demand.channel.tolist(), strict=True))
    assert len(connections) == len(demand)
    carried: dict[tuple[int, int], float] = defaultdict(float)
    hosts = zip(ends.host[demand.src].tolist(), ends.host[demand.dst].tolist(), strict=True)
    for pair, size in zip(hosts, demand.size.tolist(), strict=True):
        carried[pair] += size
    ranks = demand.n_ranks
    assert list(carried.values()) == pytest.approx([2 * (ranks - 1) / ranks * 2**30] * len(carried), rel=1e-9)


def test_latency_counts_one_part_of_a_split_edge():
    """Rings of a damaged fabric wait once for each edge, though an edge is split over three planes."""
    fabric = planes(4)
    text = RING.replace("1 GiB", "1 KiB")
    damaged = apply_failures(fabric, ["nic:host-00002/1#1"])
    whole = run(fabric, make_demand(fabric, text), "spray")
    after = run(damaged, make_demand(damaged, f"{text}\nfailover: nic"), "spray")
    assert after.latency_s == pytest.approx(whole.latency_s, rel=1e-9)


def test_twin_planes_are_no_bond():
    damaged = apply_failures(twin_planes(), ["nic:host-00000/0#1"])
    assert len(np.unique(make_demand(damaged, RING).ring)) == 3 * 2
