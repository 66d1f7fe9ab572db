"""Each check finds the fault it is for, says where, and is silent otherwise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from netplan.errors import FabricError
from netplan.fabric import ClosStructure, Fabric, FabricBuilder
from netplan.fabric.builder import raise_on_faults
from netplan.fabric.checks import CHECKS, MOST_LISTED, check_fabric
from tests import fabrics
from tests.strategies import TREES
from tests.strategies import fabrics as random_fabrics


def rewired(fabric: Fabric, ends: dict[int, tuple[int, int]]) -> Fabric:
    """Put the ends of some cables elsewhere; the fabric is walked from then on."""
    src, dst = fabric.links.src.copy(), fabric.links.dst.copy()
    for cable, (low, high) in ends.items():
        src[2 * cable], dst[2 * cable] = low, high
        src[2 * cable + 1], dst[2 * cable + 1] = high, low
    return replace(fabric, links=replace(fabric.links, src=src, dst=dst), structure=None)


def with_structure(fabric: Fabric, **numbers: Any) -> Fabric:
    assert fabric.structure is not None
    return replace(fabric, structure=replace(fabric.structure, **numbers))


def found(fabric: Fabric) -> list[tuple[str, str, str]]:
    return [(fault.code, fault.where, fault.message) for fault in check_fabric(fabric)]


def built(add: Callable[[FabricBuilder], None]) -> Fabric:
    builder = FabricBuilder("broken", "custom")
    add(builder)
    return builder.finish(check=False)


def hosts_and_leaves(builder: FabricBuilder, hosts: int, leaves: int) -> None:
    builder.add_hosts(hosts, gpus=1, scale_up_rate=1e9, template="h{:d}", parts=(range(hosts),))
    builder.add_switches(leaves, tier=1, radix=8, template="l{:d}", parts=(range(leaves),))


def attach(builder: FabricBuilder, host: list[int], leaf: list[int]) -> None:
    builder.add_endpoints(
        np.array(host), np.array(leaf), rate=50e9, length=3.0, gpu=0, rail=np.arange(len(host)) % 2
    )


# ---- silence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", fabrics.NAMED)
def test_sound_fabrics_have_no_faults(name: str) -> None:
    apart = {
        "rails_meeting_in_hosts",
        "rails_only_one_tier",
        "twin_planes",
        "a_plane_for_each_nic",
        "dual_tor_two_segments",
    }
    expected = ["NP107"] if name in apart else []
    assert [code for code, *_ in found(fabrics.NAMED[name]())] == expected


@given(fabric=random_fabrics(*TREES, "metro"))
@settings(max_examples=60)
def test_families_build_without_errors(fabric: Fabric) -> None:
    assert {fault.code for fault in check_fabric(fabric)} <= {"NP107"}


def test_every_check_has_a_page() -> None:
    assert list(CHECKS) == [f"NP{number}" for number in range(101, 111)]
    for code, check in CHECKS.items():
        assert check.code == code
        assert all((check.title, check.what, check.why, check.remedy))
        assert check.what.endswith(".")


# ---- NP101 -------------------------------------------------------------------------------------


def test_a_cable_to_nowhere() -> None:
    fabric = rewired(fabrics.lab_two_leaves(), {5: (4, 99)})
    assert found(fabric) == [("NP101", "cable 5", "ends at nodes 4 and 99, not both exist")]


def test_a_cable_to_itself() -> None:
    fabric = rewired(fabrics.lab_two_leaves(), {5: (4, 4)})
    assert found(fabric) == [("NP101", "cable 5", "both ends are leaf-0-0")]


def test_many_faults_are_counted_not_listed() -> None:
    fabric = rewired(fabrics.rail_2x8(), dict.fromkeys(range(100, 112), (64, -1)))
    faults = found(fabric)
    assert len(faults) == MOST_LISTED
    assert faults[-1][2] == "ends at nodes 64 and -1, not both exist (and 7 more)"


# ---- NP102 -------------------------------------------------------------------------------------


def test_more_ports_than_the_switch_has() -> None:
    fabric = fabrics.lab_two_leaves()
    fabric = replace(fabric, nodes=replace(fabric.nodes, radix=np.array([0, 0, 0, 0, 4, 3, 4], np.int32)))
    assert found(fabric) == [("NP102", "leaf-0-1", "4 ports in use, the switch has 3")]


def test_a_miswired_fat_tree_is_caught_by_its_ports() -> None:
    # System: k = 8 fat-tree (208 nodes, 384 cables, 128 hosts). Three cables of spines to core 0-0 lead to
    # core 0-1 instead: all counts are as before, it is still connected, but the cores use 5 and 11 ports.
    fabric = fabrics.yaml_fabric("{name: k8, kind: fat-tree, k: 8}")
    core = {fabric.node_name(node): node for node in range(fabric.n_nodes)}
    cables = np.flatnonzero(fabric.links.dst[0::2] == core["core-0-0"])[:3]
    wrong = rewired(fabric, {int(c): (int(fabric.links.src[2 * c]), core["core-0-1"]) for c in cables})
    for count in ("n_nodes", "n_hosts", "n_endpoints"):
        assert getattr(wrong, count) == getattr(fabric, count)
    assert wrong.links.n_cables == fabric.links.n_cables == 384
    assert ("NP102", "core-0-1", "11 ports in use, the switch has 8") in found(wrong)
    with pytest.raises(FabricError, match="NP102 core-0-1: 11 ports in use"):
        raise_on_faults(wrong)


# ---- NP103 -------------------------------------------------------------------------------------


def test_two_speeds_on_one_cable() -> None:
    fabric = fabrics.dumbbell()
    capacity = fabric.links.capacity.copy()
    capacity[9] = 50e9
    capacity[10:12] = 0
    fabric = replace(fabric, links=replace(fabric.links, capacity=capacity))
    assert found(fabric) == [
        ("NP103", "left -> mid", "the two ends run at 100G and 400G"),
        ("NP103", "right -> mid", "the two ends run at 0 b/s and 0 b/s"),
    ]


# ---- NP104 -------------------------------------------------------------------------------------


def test_a_cable_within_a_tier() -> None:
    def add(builder: FabricBuilder) -> None:
        hosts_and_leaves(builder, 2, 2)
        attach(builder, [0, 1], [2, 3])
        builder.add_cables(np.array([2]), np.array([3]), rate=50e9, length=3.0, kind="other")

    assert found(built(add)) == [("NP104", "l0 -> l1", "joins tier 1 with tier 1")]


def test_a_cable_that_skips_a_tier() -> None:
    fabric = fabrics.fat_tree_k4()
    cable = int(np.flatnonzero(fabric.links.kind[0::2] == 2)[0])
    core = int(fabric.links.dst[2 * cable])
    wrong = rewired(fabric, {cable: (16, core)})
    assert ("NP104", "leaf-0-0 -> core-0-0", "joins tier 1 with tier 3") in found(wrong)


def test_a_host_on_a_metro_switch() -> None:
    with pytest.raises(FabricError, match=r"NP104 h -> m: joins tier 0 with tier 4"):
        fabrics.yaml_fabric(
            "{name: x, kind: custom, hosts: [{name: h}], switches: [{name: m, tier: 4, radix: 4}],"
            " links: [{a: h, b: m, speed: 400G}]}"
        )


# ---- NP105 -------------------------------------------------------------------------------------


def test_a_host_without_a_port() -> None:
    def add(builder: FabricBuilder) -> None:
        hosts_and_leaves(builder, 2, 1)
        attach(builder, [0], [2])

    assert found(built(add))[0] == ("NP105", "h1", "has no NIC port with a link")


def test_an_endpoint_whose_cable_is_elsewhere() -> None:
    fabric = fabrics.lab_two_leaves()
    moved = replace(fabric, endpoints=replace(fabric.endpoints, leaf=np.array([4, 5, 5, 5], np.int32)))
    message = "its cable does not join its host and its leaf"
    assert found(moved) == [("NP105", "endpoint 1", message)]


def test_an_endpoint_at_a_switch() -> None:
    fabric = fabrics.lab_two_leaves()
    host = fabric.endpoints.host.copy()
    host[3] = 5
    moved = replace(fabric, endpoints=replace(fabric.endpoints, host=host))
    assert ("NP105", "endpoint 3", "is at leaf-0-1, which is no host") in found(moved)


# ---- NP106, NP107 ------------------------------------------------------------------------------


def test_a_fabric_in_parts() -> None:
    def add(builder: FabricBuilder) -> None:
        hosts_and_leaves(builder, 2, 2)
        attach(builder, [0, 1], [2, 3])

    fabric = built(add)
    assert found(fabric) == [
        ("NP106", "h1", "cannot be reached from h0: the fabric is in 2 parts"),
        ("NP107", "broken", "its endpoints are in 2 groups that meet only inside hosts"),
    ]
    with pytest.raises(FabricError) as caught:
        raise_on_faults(fabric)
    assert caught.value.hint == "join the parts, or describe them as separate fabrics"


def test_rails_that_meet_in_hosts_are_a_warning_not_an_error() -> None:
    def add(builder: FabricBuilder) -> None:
        hosts_and_leaves(builder, 2, 2)
        attach(builder, [0, 0, 1, 1], [2, 3, 2, 3])

    (fault,) = check_fabric(built(add))
    assert (fault.code, fault.severity) == ("NP107", "warning")
    raise_on_faults(built(add))


def test_no_endpoints_meet_nowhere() -> None:
    assert found(built(lambda builder: hosts_and_leaves(builder, 0, 1))) == []


# ---- NP108 -------------------------------------------------------------------------------------


def test_unequal_bundles_are_a_warning() -> None:
    fabric = fabrics.yaml_fabric(
        "{name: x, kind: custom, hosts: [{name: h}], switches: [{name: l, tier: 1, radix: 8},"
        " {name: s, tier: 2, radix: 8}, {name: t, tier: 2, radix: 8}],"
        " links: [{a: h, b: l, speed: 400G}, {a: l, b: s, speed: 400G, count: 2}, {a: l, b: t, speed: 400G}]}"
    )
    (fault,) = check_fabric(fabric)
    assert (fault.code, fault.severity, fault.where) == ("NP108", "warning", "l")
    assert fault.message == "has 1 to 2 parallel cables to its upper neighbours"


def test_long_links_need_not_be_equal() -> None:
    # leaf-b has two cables to leaf-a and one to leaf-c: spans of different width.
    assert found(fabrics.three_campuses()) == []


# ---- NP109 -------------------------------------------------------------------------------------


def test_swapped_cables_keep_all_ports_and_are_caught_by_the_structure() -> None:
    # Two spines of different core groups exchange a core: every switch keeps its number of ports.
    fabric = fabrics.fat_tree_k4()
    assert fabric.structure is not None
    a, b = fabric.structure.spine_cable, fabric.structure.spine_cable + fabric.structure.spine_uplinks
    ends = {c: (int(fabric.links.src[2 * c]), int(fabric.links.dst[2 * d])) for c, d in ((a, b), (b, a))}
    swapped = replace(rewired(fabric, ends), structure=fabric.structure)
    assert found(swapped) == [
        ("NP109", "spine-0-0 -> core-1-0", f"is not where the structure has cable {a}"),
        ("NP109", "spine-0-1 -> core-0-0", f"is not where the structure has cable {b}"),
    ]
    assert found(replace(swapped, structure=None)) == []


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (
            {"endpoint_leaf": np.zeros(3, np.int32)},
            "its structure has 3 endpoints on 8 leaves, the fabric 16",
        ),
        ({"uplinks": 3}, "its structure has 56 cables, the fabric 48"),
        ({"spines": 10**6}, "its structure has 4,000,000 spines, the fabric 36 nodes"),
        ({"leaf_cable": 40}, "its structure names cables that the fabric does not have"),
        ({"endpoint_port": np.zeros(16, np.int32)}, "its structure has two endpoints on one port of a leaf"),
    ],
)
def test_a_structure_of_another_size(numbers: dict[str, Any], message: str) -> None:
    assert found(with_structure(fabrics.fat_tree_k4(), **numbers)) == [("NP109", "fat-tree-k4", message)]


def test_every_number_of_the_structure_is_looked_at() -> None:
    fabric = fabrics.rail_three_tiers()
    assert fabric.structure is not None
    others: dict[str, Any] = {
        name: value + 1 for name, value in vars(fabric.structure).items() if isinstance(value, int)
    }
    others["endpoint_leaf"] = np.roll(fabric.structure.endpoint_leaf, 1)
    others["leaf_pod"] = np.zeros(16, np.int32)
    assert set(others) == set(vars(fabric.structure)) - {"endpoint_port"}
    for name, value in others.items():
        assert any(code == "NP109" for code, *_ in found(with_structure(fabric, **{name: value}))), name


def test_structure_survives_as_plain_data() -> None:
    structure = fabrics.rail_three_tiers().structure
    assert structure is not None
    assert ClosStructure.from_dict(structure.to_dict()).to_dict() == structure.to_dict()
    assert (structure.n_leaves, structure.n_pods, structure.leaf_bundle, structure.spine_bundle) == (
        16,
        2,
        1,
        8,
    )
