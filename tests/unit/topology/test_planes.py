"""Rail-only, multi-plane and dual-ToR fabrics: counts, wiring, what is published, and what is refused."""

# ruff: noqa: E501 -- the spec of a row stays on one line, as a user might write it

from __future__ import annotations

import re
from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from netplan.errors import FabricError, NetplanError, SpecError
from netplan.fabric.checks import check_fabric, components
from netplan.fabric.measures import measure
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric
from netplan.topology.sizes import equal_bundle
from tests.fabrics import dual_tor_two_segments, rails_only_one_tier, twin_planes, yaml_fabric

if TYPE_CHECKING:
    from netplan.fabric import Fabric


def build(**spec: Any) -> Fabric:
    """Build a spec; infeasible ones are not what is tested."""
    try:
        return build_fabric(FABRIC_SPEC.validate_python({"name": "x", **spec}))
    except FabricError:
        assume(False)
        raise


def tiers(fabric: Fabric) -> tuple[int, ...]:
    return tuple(map(fabric.count_tier, ("leaf", "spine", "core")))


def cables(fabric: Fabric) -> tuple[int, ...]:
    return tuple(map(fabric.count_cables, ("host_leaf", "leaf_spine", "spine_core")))


def ports_in_use(fabric: Fabric, tier: int) -> Counter[int]:
    return Counter(
        np.bincount(fabric.links.src, minlength=fabric.n_nodes)[fabric.nodes.tier == tier].tolist()
    )


# ---- counts ------------------------------------------------------------------------------------


@given(hosts=st.integers(1, 40), nics=st.sampled_from([1, 2, 4, 8, 72]))
def test_counts_of_rail_only_on_one_tier(hosts, nics):
    """A leaf a rail, and nothing else."""
    fabric = build(kind="rail-only", radix=40, hosts={"count": hosts, "gpus": nics})
    assert tiers(fabric) == (nics, 0, 0)
    assert cables(fabric) == (hosts * nics, 0, 0)
    assert ports_in_use(fabric, 1) == {hosts: nics}
    assert (fabric.nodes.rail[fabric.endpoints.leaf] == fabric.endpoints.rail).all()


@given(hosts=st.integers(1, 60), nics=st.sampled_from([1, 2, 4]), d=st.integers(1, 8), u=st.integers(1, 8))
def test_counts_of_rail_only_on_two_tiers(hosts, nics, d, u):
    """Each rail is a leaf-spine network of one NIC a host."""
    leaf = {"downlinks": d, "uplinks": u}
    fabric = build(kind="rail-only", tiers=2, radix=16, hosts={"count": hosts, "gpus": nics}, leaf=leaf)
    leaves = ceil(hosts / d)
    spines = equal_bundle(leaves, u, 16) if leaves > 1 else 0
    assert tiers(fabric) == (nics * leaves, nics * (spines or 0), 0)
    assert cables(fabric) == (hosts * nics, nics * leaves * u if spines else 0, 0)
    group = components(fabric, through_hosts=False)
    assert len(np.unique(group[fabric.endpoints.leaf])) == nics


@given(
    hosts=st.integers(1, 40),
    nics=st.sampled_from([2, 4]),
    planes=st.sampled_from([2, 4]),
    split=st.booleans(),
    rails=st.booleans(),
    d=st.integers(4, 8),
    u=st.integers(1, 6),
)
def test_counts_of_multi_plane(hosts, nics, planes, split, rails, d, u):
    """Planes times what a plane has."""
    assume(split or nics % planes == 0)
    fabric = build(
        kind="multi-plane", planes=planes, assignment="split" if split else "per-nic", rails=rails, radix=16,
        hosts={"count": hosts, "gpus": nics}, leaf={"downlinks": d, "uplinks": u},
    )  # fmt: skip
    ports = nics if split else nics // planes
    leaves = ceil(hosts / d) * ports if rails else ceil(hosts / (d // ports))
    spines = (equal_bundle(leaves, u, 16) or 0) if leaves > 1 else 0
    assert tiers(fabric) == (planes * leaves, planes * spines, 0)
    assert cables(fabric) == (planes * hosts * ports, planes * leaves * u if spines else 0, 0)
    assert fabric.n_endpoints == hosts * nics * (planes if split else 1)
    assert set(fabric.endpoint_rate.tolist()) == {50e9 / planes if split else 50e9}
    ends = fabric.endpoints
    if split:
        assert ends.plane.tolist() == list(range(planes)) * (hosts * nics)
        assert np.diff(fabric.nic_ptr).tolist() == [planes] * (hosts * nics)
    else:
        assert (ends.plane == ends.rail % planes).all()
        assert len(fabric.nic_ptr) - 1 == hosts * nics
    if rails:
        assert (fabric.nodes.rail[ends.leaf] == ends.rail).all()
    else:  # all ports that a host has in a plane are on one leaf
        assert len(np.unique(np.stack([ends.host, ends.plane, ends.leaf]), axis=1).T) == hosts * planes


@given(
    hosts=st.integers(1, 40), nics=st.sampled_from([1, 2, 4]), d=st.integers(2, 8), backup=st.integers(0, 4)
)
def test_counts_of_dual_tor(hosts, nics, d, backup):
    """Two ToRs for each segment and rail; backup ports are in the radix and nowhere else."""
    leaf = {"downlinks": d, "uplinks": 4, "backup": backup}
    fabric = build(kind="dual-tor", radix=16, hosts={"count": hosts, "gpus": nics}, leaf=leaf)
    tors = ceil(hosts / d) * nics
    spines = (equal_bundle(tors, 4, 16) or 0) if tors > 1 else 0
    assert tiers(fabric) == (2 * tors, 2 * spines, 0)
    assert cables(fabric) == (2 * hosts * nics, 8 * tors if spines else 0, 0)
    assert set(fabric.nodes.radix[fabric.nodes.tier == 1].tolist()) == {16}
    assert max(ports_in_use(fabric, 1)) <= 16 - backup
    # The two ports of a NIC are on two ToRs of one rail and block, in two planes.
    pair = fabric.endpoints.leaf.reshape(-1, 2)
    assert (fabric.nodes.rail[pair[:, 0]] == fabric.nodes.rail[pair[:, 1]]).all()
    assert fabric.nodes.plane[pair].tolist() == [[0, 1]] * len(pair)


# ---- published ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "leaves", "spines"), [(1, 16, 8), (2, 32, 16), (4, 64, 32), (8, 128, 64), (16, 256, 128)]
)
@pytest.mark.parametrize("rails", ["true", "false"])
def test_b300_spectrum_x(units, leaves, spines, rails):
    """Twin planes of SN5600 as 128 x 400G [S]: both planes' switches; a published cable is two of ours."""
    fabric = yaml_fabric(
        f"{{name: x, kind: multi-plane, planes: 2, rails: {rails}, radix: 128, hosts: {{count: {64 * units}, nic_speed: 800G}}}}"
    )
    gpus = 512 * units
    assert fabric.n_gpus == gpus
    assert tiers(fabric) == (leaves, spines, 0)
    assert cables(fabric) == (2 * gpus, 2 * gpus, 0)
    assert ports_in_use(fabric, 1) == {128: leaves}
    assert ports_in_use(fabric, 2) == {128: spines}
    assert measure(fabric).bisection_fraction == 1


def test_mpft():
    """DeepSeek-V3, Table 3 [S]: 16,384 endpoints, 768 switches, 16,384 cables between switches."""
    fabric = yaml_fabric(
        "{name: x, kind: multi-plane, planes: 8, assignment: per-nic, radix: 64, hosts: {count: 2048}}"
    )
    assert (fabric.n_endpoints, fabric.n_switches, fabric.count_cables("leaf_spine")) == (16384, 768, 16384)
    measured = measure(fabric)
    assert (measured.planes, measured.groups, measured.rails, measured.max_hops) == (8, 8, 8, 3)


HPN = "radix: 128, leaf: {downlinks: 128, backup: 8, breakout: 2, uplinks: 60, uplink_speed: 400G}"


def test_hpn_pod():
    """SIGCOMM 2024 [S]: 240 ToRs, 120 aggregation switches, 14,400 cables; ToRs 1.067:1.

    SimAI's generator counts 60,480 links [M]: 45,120 cables and one link of each GPU into its scale-up domain.
    """
    fabric = yaml_fabric(f"{{name: x, kind: dual-tor, hosts: {{count: 1920}}, {HPN}}}")
    assert fabric.n_gpus == 15360
    assert tiers(fabric) == (240, 120, 0)
    assert cables(fabric) == (30720, 14400, 0)
    assert fabric.links.n_cables + fabric.n_gpus == 60480
    assert ports_in_use(fabric, 1) == {128 + 60: 240}
    assert set(fabric.nodes.radix[fabric.nodes.tier == 1].tolist()) == {128 + 8 + 60}
    assert ports_in_use(fabric, 2) == {120: 120}
    measured = measure(fabric)
    assert measured.oversubscription["leaf"] == pytest.approx(16 / 15)
    assert (measured.planes, measured.rails, measured.nic_rates_gbps) == (2, 8, (200.0,))
    # A segment: 16 ToRs, 128 hosts.
    assert len(np.unique(fabric.endpoints.leaf[: 128 * 16])) == 16


def test_hpn_pods_above_a_core():
    """Aggregation switches with 120 ports down and 8 up are 15:1 [S]; six pods are 92,160 GPUs [D]."""
    fabric = yaml_fabric(
        f"{{name: x, kind: dual-tor, tiers: 3, hosts: {{count: 11520}}, {HPN}, spine: {{downlinks: 120, uplinks: 8}}}}"
    )
    assert fabric.n_gpus == 92160
    assert tiers(fabric)[:2] == (6 * 240, 6 * 120)
    assert cables(fabric)[1:] == (6 * 14400, 6 * 120 * 8)
    assert measure(fabric).oversubscription["spine"] == pytest.approx(15)
    assert ports_in_use(fabric, 2) == {128: 720}


@pytest.mark.parametrize(
    ("text", "switches", "endpoints"),
    [
        # 102.4 Tb/s as 512 x 200G: r^2/2 NICs of 800G on two tiers, 3r/2 switches a plane.
        ("planes: 4, radix: 512, hosts: {count: 16384, nic_speed: 800G}", 4 * 3 * 256, 524_288),
        # 64-port switches: each plane a quarter of the largest three-tier tree.
        (
            "planes: 8, assignment: per-nic, tiers: 3, radix: 64, hosts: {count: 16384}",
            8 * (512 + 512 + 256),
            131_072,
        ),
        # 51.2 Tb/s as 128 x 400G, NICs of 800G in two halves, three tiers.
        (
            "planes: 2, rails: true, tiers: 3, pod: {by: rail}, radix: 128, hosts: {count: 16384, nic_speed: 800G}",
            2 * 5 * 1024,
            262_144,
        ),
    ],
)
def test_131072_gpus_with_planes(text, switches, endpoints):
    """Without blocking; the counts are [D]."""
    fabric = yaml_fabric(f"{{name: x, kind: multi-plane, {text}}}")
    assert (fabric.n_gpus, fabric.n_switches, fabric.n_endpoints) == (131_072, switches, endpoints)
    assert measure(fabric).bisection_fraction == 1


# ---- wiring ------------------------------------------------------------------------------------


def test_order_of_ids_and_names():
    """Endpoints by host, NIC, plane; switches plane after plane."""
    fabric = twin_planes()
    ends = fabric.endpoints
    assert ends.rail.tolist() == [0, 0, 1, 1] * 4
    assert ends.plane.tolist() == [0, 1] * 8
    assert ends.gpu.tolist() == [0, 0, 1, 1] * 4
    names = [fabric.node_name(node) for node in range(4, fabric.n_nodes)]
    assert names[:4] == ["leaf-p0-b0-r0", "leaf-p0-b0-r1", "leaf-p0-b1-r0", "leaf-p0-b1-r1"]
    assert names[8:] == ["spine-0-0", "spine-1-0"]
    assert fabric.nodes.plane[4:].tolist() == [0] * 4 + [1] * 4 + [0, 1]
    assert fabric.endpoint_rate.tolist() == [25e9] * 16


def test_cores_keep_to_their_plane():
    fabric = yaml_fabric(
        "{name: x, kind: multi-plane, planes: 2, tiers: 3, radix: 4, hosts: {count: 8, gpus: 1}}"
    )
    assert fabric.structure is not None
    assert fabric.structure.domains == 2
    group = components(fabric, through_hosts=False)
    for plane in (0, 1):
        assert len(np.unique(group[fabric.nodes.plane == plane])) == 1
    assert set(fabric.nodes.plane[fabric.nodes.tier == 3].tolist()) == {0, 1}


@pytest.mark.parametrize("make", [rails_only_one_tier, twin_planes, dual_tor_two_segments])
def test_that_they_meet_only_in_hosts_is_a_warning(make):
    (fault,) = check_fabric(make())
    assert (fault.code, fault.severity) == ("NP107", "warning")
    assert ("QPs bound to one port" in str(fault.hint)) == (make is not rails_only_one_tier)


def test_sites_of_a_metro_domain_may_have_planes():
    """Each spine has one uplink, dealt out in turn: spine 0 is plane 0, so each plane has a metro switch."""
    site = "kind: multi-plane, planes: 2, radix: 8, hosts: {count: 4, gpus: 2}, spine: {radix: 32}"
    fabric = yaml_fabric(
        "name: m\nkind: metro\nmetro: {radix: 32, oversubscription: 4}\nsites:\n"
        f"- {{name: a, position: [0 km, 0 km], fabric: {{name: a, {site}}}}}\n"
        f"- {{name: b, position: [9 km, 0 km], fabric: {{name: b, {site}}}}}\n"
    )
    assert [fault.code for fault in check_fabric(fabric)] == ["NP107"]
    measured = measure(fabric)
    assert (measured.planes, measured.groups) == (2, 2)


# ---- refused -----------------------------------------------------------------------------------

MP = "name: x, kind: multi-plane, radix: 64"
RO = "name: x, kind: rail-only, radix: 64"
DT = "name: x, kind: dual-tor, radix: 64"

# Text, message, hint, and what the hint names as feasible.
INFEASIBLE: list[tuple[str, str, str | None, list[str]]] = [
    (
        f"{{{RO}, hosts: {{count: 65}}}}",
        "x: 65 hosts, but a rail of one leaf reaches 64",
        "feasible: tiers: 2; at most 64 hosts; leaf.radix of at least 65",
        [f"{{{RO}, tiers: 2, hosts: {{count: 65}}}}", f"{{{RO}, hosts: {{count: 64}}}}", f"{{{RO}, leaf: {{radix: 65}}, hosts: {{count: 65}}}}"],
    ),
    (
        f"{{{RO}, hosts: {{count: 8}}, leaf: {{downlinks: 129, breakout: 2}}}}",
        "x: leaf.downlinks = 129 need 65 ports; leaf.radix = 64",
        "feasible: at most 128",
        [f"{{{RO}, hosts: {{count: 8}}, leaf: {{downlinks: 128, breakout: 2}}}}"],
    ),
    (
        f"{{{RO}, tiers: 2, hosts: {{count: 2049}}}}",
        "x: in each rail: 65 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 2,048 hosts on two tiers; 2 separate fabrics (planes or jobs) of at most 2,048 hosts; "
        "spine.radix of at least 65; leaf.downlinks of at least 33, on leaves of a radix that holds them"),
        [f"{{{RO}, tiers: 2, hosts: {{count: 2048}}}}", f"{{{RO}, tiers: 2, hosts: {{count: 2049}}, spine: {{radix: 65}}}}"],
    ),
    (
        f"{{{MP}, planes: 2, hosts: {{count: 512}}}}",
        "x: in each plane: 128 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 256 hosts on two tiers; 2 separate fabrics (planes or jobs) of at most 256 hosts; three tiers "
        "of these switches (tiers: 3); spine.radix of at least 128; leaf.downlinks of at least 64, on leaves of a radix "
        "that holds them"),
        [f"{{{MP}, planes: 2, hosts: {{count: 256}}}}", f"{{{MP}, planes: 2, tiers: 3, hosts: {{count: 512}}}}"],
    ),
    (
        f"{{{MP}, planes: 2, hosts: {{count: 4, gpus: 64}}}}",
        "x: in each plane: a host has 64 NICs, a leaf 32 downlinks: no host fits",
        "spread the NICs over leaves (rails: true), or take leaves with more downlinks",
        [f"{{{MP}, planes: 2, rails: true, hosts: {{count: 4, gpus: 64}}}}"],
    ),
    (
        f"{{{MP}, planes: 2, rails: true, hosts: {{count: 512}}}}",
        "x: in each plane: 128 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 256 hosts on two tiers; 2 separate fabrics (planes or jobs) of at most 256 hosts; three tiers "
        "of these switches (tiers: 3 with pod.by: rail); spine.radix of at least 128; leaf.downlinks of at least 64, on "
        "leaves of a radix that holds them"),
        [f"{{{MP}, planes: 2, rails: true, tiers: 3, pod: {{by: rail}}, hosts: {{count: 512}}}}"],
    ),
    (
        f"{{{DT}, hosts: {{count: 512}}}}",
        "x: in each plane: 128 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 256 hosts on two tiers; 2 separate fabrics (planes or jobs) of at most 256 hosts; three tiers "
        "of these switches (tiers: 3); spine.radix of at least 128; leaf.downlinks of at least 64, on leaves of a radix "
        "that holds them"),
        [f"{{{DT}, tiers: 3, hosts: {{count: 512}}}}", f"{{{DT}, hosts: {{count: 512}}, spine: {{radix: 128}}}}"],
    ),
    (
        f"{{{DT}, hosts: {{count: 8}}, leaf: {{backup: 64}}}}",
        "x: leaf.backup = 64 keeps 64 of a ToR's 64 ports: none is left",
        "feasible: leaf.backup of at most 62",
        [f"{{{DT}, hosts: {{count: 1}}, leaf: {{backup: 62}}}}"],
    ),
    (
        f"{{{DT}, hosts: {{count: 8}}, leaf: {{backup: 8, downlinks: 32, uplinks: 32}}}}",
        "x: without the 8 ports kept for backup hosts: a leaf with 32 downlinks of 200G and 32 uplinks of 200G needs 64 ports; leaf.radix = 56",
        "lower leaf.downlinks or leaf.uplinks, raise leaf.oversubscription, or take a larger radix",
        [f"{{{DT}, hosts: {{count: 8}}, leaf: {{backup: 8, downlinks: 32, uplinks: 32, radix: 72}}}}"],
    ),
    (
        f"{{{DT}, tiers: 3, hosts: {{count: 8}}}}",
        "x: in each plane: 8 leaves fit one pod, so a core tier would join nothing",
        "use two tiers (kind: leaf-spine, or tiers: 2), or smaller pods (pod.leaves)",
        [f"{{{DT}, tiers: 2, hosts: {{count: 8}}}}"],
    ),
    (
        f"{{{DT}, tiers: 3, radix: 8, hosts: {{count: 64}}}}".replace("radix: 64, ", ""),
        "x: a block has 8 leaves, one per rail, but a spine has 4 downlinks",
        "feasible: spines with at least 8 downlinks",
        [f"{{{DT}, tiers: 3, radix: 8, hosts: {{count: 64}}, spine: {{radix: 16, downlinks: 8, uplinks: 8}}, core: {{radix: 32}}}}".replace("radix: 64, ", "")],
    ),
    (
        f"{{{MP}, planes: 64, hosts: {{count: 10000, gpus: 8, nic_speed: 6400G}}}}",
        "x: 10,000 hosts with 8 NICs of 64 ports are 5,120,000 endpoints; netplan builds up to 4,194,304",
        "check hosts.count",
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint", "feasible"), INFEASIBLE)
def test_what_cannot_be_built_is_refused_with_a_way_out(text, message, hint, feasible):
    with pytest.raises(FabricError) as caught:
        yaml_fabric(text)
    said = re.sub(r"x: in each plane: (?=a block)", "x: ", caught.value.message)
    assert (said, caught.value.hint) == (message, hint)
    for other in feasible:
        yaml_fabric(other)


@pytest.mark.parametrize(
    ("text", "says", "feasible"),
    [
        (
            f"{{{MP}, planes: 3, hosts: {{count: 8}}}}",
            "planes = 3: does not divide 400G into ports of a whole number of Gb/s\n  hint: feasible: 2, 4, 5",
            [f"{{{MP}, planes: {n}, hosts: {{count: 8}}}}" for n in (2, 4, 5)],
        ),
        (
            f"{{{MP}, planes: 3, hosts: {{count: 8, nic_speed: 800G}}}}",
            "planes = 3: does not divide 800G into ports of a whole number of Gb/s\n  hint: feasible: 2, 4, 5",
            [],
        ),
        (
            f"{{{MP}, planes: 2, hosts: {{count: 8, nic_speed: 1G}}}}",
            "planes = 2: does not divide 1G into ports of a whole number of Gb/s\n  hint: take an even hosts.nic_speed, or assignment: per-nic",
            [f"{{{MP}, planes: 2, assignment: per-nic, hosts: {{count: 8, nic_speed: 1G}}}}"],
        ),
        (
            f"{{{MP}, planes: 3, assignment: per-nic, hosts: {{count: 8, gpus: 8}}}}",
            "planes = 3: does not divide the 8 NICs of a host (assignment: per-nic)\n  hint: feasible: 2, 4, 8",
            [f"{{{MP}, planes: {n}, assignment: per-nic, hosts: {{count: 8, gpus: 8}}}}" for n in (2, 4, 8)],
        ),
        (
            f"{{{MP}, planes: 2, assignment: per-nic, hosts: {{count: 8, gpus: 1}}}}",
            "planes = 2: does not divide the 1 NICs of a host (assignment: per-nic)\n  hint: use assignment: split",
            [f"{{{MP}, planes: 2, assignment: split, hosts: {{count: 8, gpus: 1}}}}"],
        ),
        (f"{{{MP}, planes: 1, hosts: {{count: 8}}}}", "planes = 1: must be at least 2", []),
        (f"{{{MP}, planes: 65, hosts: {{count: 8}}}}", "planes = 65: must be at most 64", []),
        (f"{{{MP}, planes: 2, hosts: {{count: 8}}, core: {{count: 3}}}}", "core is not used: tiers = 2", []),
        (f"{{{MP}, planes: 2, hosts: {{count: 8}}, spine: {{uplinks: 3}}}}", "spine.uplinks = 3 is not used: tiers = 2", []),
        (f"{{{MP}, planes: 2, tiers: 3, hosts: {{count: 8}}, pod: {{by: rail}}}}", "pod.by = 'rail' is not used: rails = false", []),
        (f"{{{DT}, hosts: {{count: 8, nic_speed: 25G}}}}", "hosts.nic_speed = '25G': does not divide into two ports of a whole number of Gb/s\n  hint: take an even number of Gb/s", []),
        (f"{{{DT}, hosts: {{count: 8}}, pod: {{leaves: 8}}}}", "pod is not used: tiers = 2", []),
        (f"{{{DT}, hosts: {{count: 8}}, leaf: {{backup: -1}}}}", "leaf.backup = -1: must be at least 0", []),
        (f"{{{DT}, hosts: {{count: 8}}, core: {{domains: 2}}}}", "core.domains: unknown key", []),
        (f"{{{RO}, hosts: {{count: 8}}, leaf: {{uplinks: 8}}}}", "leaf.uplinks = 8 is not used: tiers = 1", []),
        (f"{{{RO}, hosts: {{count: 8}}, spine: {{count: 8}}}}", "spine is not used: tiers = 1", []),
        (f"{{{RO}, hosts: {{count: 8}}, cables: {{leaf_spine: 9 m}}}}", "cables.leaf_spine = '9 m' is not used: tiers = 1", []),
        (f"{{{RO}, tiers: 3, hosts: {{count: 8}}}}", "tiers = 3: must be one of 1, 2", []),
    ],
)  # fmt: skip
def test_a_broken_rule_is_said(text, says, feasible):
    with pytest.raises((SpecError, NetplanError)) as caught:
        yaml_fabric(text)
    assert says in str(caught.value)
    for other in feasible:
        yaml_fabric(other)
