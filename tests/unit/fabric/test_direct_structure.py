"""The structure of direct networks in files, checks and failures: kept, refused, dropped."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError
from netplan.fabric import LINK_KINDS, Fabric, FabricBuilder
from netplan.fabric.checks import check_fabric
from netplan.fabric.convert import fabric_to_dict, load_fabric, save_fabric, to_networkx
from netplan.fabric.direct import direct_from_dict
from netplan.fabric.failures import apply_failures, list_losses
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric

SPECS: dict[str, dict[str, Any]] = {
    "dragonfly": {"radix": 7},
    "dragonfly-plus": {"radix": 4},
    "slim-fly": {"q": 3},
    "torus": {"dims": [3, 2], "bundles": [2, 1]},
    "hyperx": {"dims": [3, 2]},
}


def build(kind: str, **more: Any) -> Fabric:
    spec = {"name": "x", "kind": kind, "hosts": {"gpus": 1}, **SPECS[kind], **more}
    return build_fabric(FABRIC_SPEC.validate_python(spec))


def saved(fabric: Fabric) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(fabric_to_dict(fabric)))
    return data


def found(fabric: Fabric) -> list[tuple[str, str, str]]:
    return [(fault.code, fault.where, fault.message) for fault in check_fabric(fabric)]


@pytest.mark.parametrize("kind", SPECS)
def test_a_file_gives_the_structure_back(kind: str, tmp_path: Any) -> None:
    fabric = build(kind)
    save_fabric(fabric, tmp_path / "a.json")
    loaded = load_fabric(tmp_path / "a.json")
    assert loaded.direct is not None
    assert fabric.direct is not None
    assert type(loaded.direct) is type(fabric.direct)
    assert loaded.direct.to_dict() == fabric.direct.to_dict()
    assert direct_from_dict(loaded.direct.to_dict()).to_dict() == fabric.direct.to_dict()
    assert fabric_to_dict(loaded) == fabric_to_dict(fabric)
    kinds = {data["kind"] for *_, data in to_networkx(fabric).edges(data=True)}
    assert kinds <= {"host_leaf", "local", "global"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "kind",
            "mesh",
            'direct.kind is "mesh", not one of dragonfly, dragonfly-plus, hyperx, torus, slim-fly',
        ),
        ("kind", [1], "direct.kind is a list, not one of dragonfly"),
        ("groups", "9", 'direct.groups is "9", not a whole number in range'),
        ("groups", -1, "direct.groups is -1, not a whole number in range"),
        ("groups", True, "direct.groups is true, not a whole number in range"),
        ("global_ptr", 3, "direct.global_ptr is 3, not a list of whole numbers"),
        ("gruops", 3, "direct has unknown gruops"),
    ],
)
def test_a_file_with_another_structure_is_refused(key: str, value: object, message: str) -> None:
    data = saved(build("dragonfly"))
    data["direct"][key] = value
    with pytest.raises(FabricError) as caught:
        load_fabric(json.dumps(data), source="in")
    assert f"in: {message}" in str(caught.value)
    data["direct"] = 5
    with pytest.raises(FabricError, match=r"direct\.kind is null, not one of"):
        load_fabric(json.dumps(data), source="in")


LIES: list[tuple[str, dict[str, Any], str]] = [
    ("dragonfly", {"groups": 8}, "does not give each of its 28 pairs of groups a global cable"),
    ("dragonfly", {"local_bundle": 0}, "has no groups, switches or cables in them"),
    ("dragonfly", {"routers": 3}, "has global cables at switches that are not among the 3 of a group"),
    ("dragonfly", {"local_bundle": 2}, "has 216 cables, the fabric 162"),
    ("dragonfly", {"router_node": 80}, "has switches up to node 115, the fabric 108 nodes"),
    ("dragonfly", {"endpoint_router": [0]}, "has 1 endpoints, the fabric 72"),
    ("dragonfly", {"endpoint_router": [36] * 72}, "has endpoints on routers that are not among its 36"),
    ("dragonfly", {"global_high": [0]}, "has global cables with one end"),
    ("dragonfly-plus", {"spine_node": 39}, "has switches up to node 48, the fabric 40 nodes"),
    ("dragonfly-plus", {"first_cable": 19}, "has 49 cables, the fabric 50"),
    ("slim-fly", {"low": [1]}, "has cables with one end"),
    ("slim-fly", {"routers": 4}, "has cables at routers that are not among its 4"),
    ("torus", {"sizes": [40_000, 40_000]}, "has dimensions of 40000 x 40000 routers, the fabric"),
    ("torus", {"sizes": []}, "has dimensions of  routers, the fabric"),
    ("torus", {"bundles": [1]}, "has dimensions without cables"),
    ("torus", {"wraps": [2, 0]}, "has dimensions that neither go around nor end"),
    ("hyperx", {"bundles": [1, 0]}, "has dimensions without cables"),
]


@pytest.mark.parametrize(("kind", "lie", "message"), LIES, ids=[f"{k}-{v}" for k, v, _ in LIES])
def test_a_lying_structure_is_a_fault(kind: str, lie: dict[str, Any], message: str) -> None:
    fabric = build(kind)
    assert fabric.direct is not None
    values: dict[str, Any] = {
        k: np.asarray(v, np.int32) if isinstance(v, list) else v for k, v in lie.items()
    }
    wrong = replace(fabric, direct=replace(fabric.direct, **values))
    codes = found(wrong)
    assert codes
    assert codes[0][0] == "NP109"
    assert message in codes[0][2], codes[0]


def test_a_list_of_neighbours_out_of_order_is_a_fault() -> None:
    fabric = build("slim-fly")
    direct: Any = fabric.direct
    swapped = replace(direct, low=direct.low[::-1].copy(), high=direct.high[::-1].copy())
    assert "does not list its cables in order" in found(replace(fabric, direct=swapped))[0][2]


@pytest.mark.parametrize("kind", SPECS)
def test_cables_that_are_elsewhere_are_faults(kind: str) -> None:
    # Two inner cables change places: ports, kinds and degrees are as before.
    fabric = build(kind)
    direct: Any = fabric.direct
    a = 2 * direct.first_cable
    src, dst = fabric.links.src.copy(), fabric.links.dst.copy()
    b = next(c for c in range(a + 2, len(src), 2) if src[c] != src[a])
    for column in (src, dst):
        column[[a, a + 1, b, b + 1]] = column[[b, b + 1, a, a + 1]]
    faults = found(replace(fabric, links=replace(fabric.links, src=src, dst=dst)))
    assert [code for code, *_ in faults] == ["NP109", "NP109"]
    assert "is not where the structure has cable" in faults[0][2]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_damage_to_the_structure_is_a_crash(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(SPECS)))
    whole = saved(build(kind))
    key = data.draw(st.sampled_from(sorted(whole["direct"])))
    value = whole["direct"][key]
    if isinstance(value, list) and value:
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(-(2**31), 2**31 - 1))
    elif isinstance(value, dict):
        value["values"][0] = data.draw(st.integers(-5, 2**31 - 1))
    else:
        whole["direct"][key] = data.draw(st.integers(-5, 10**8) | st.text(max_size=3) | st.none())
    with suppress(FabricError):
        load_fabric(json.dumps(whole), source="in")


# ---- checks ------------------------------------------------------------------------------------------------


def test_only_cables_of_direct_networks_may_stay_in_a_tier() -> None:
    for kind, codes in (("local", []), ("global", []), ("leaf_spine", ["NP104"]), ("other", ["NP104"])):
        builder = FabricBuilder("x", "custom")
        hosts = builder.add_hosts(2, gpus=1, scale_up_rate=1.0, template="h{:d}", parts=(range(2),))
        leaves = builder.add_switches(2, tier=1, radix=4, template="l{:d}", parts=(range(2),))
        two = np.arange(2)
        builder.add_endpoints(hosts + two, leaves + two, rate=1.0, length=1.0, gpu=0, rail=0)
        builder.add_cables(leaves + two[:1], leaves + two[1:], rate=1.0, length=1.0, kind=kind)
        assert [fault.code for fault in check_fabric(builder.finish(check=False))] == codes, kind


def test_hosts_are_not_joined_by_local_cables() -> None:
    builder = FabricBuilder("x", "custom")
    hosts = builder.add_hosts(2, gpus=1, scale_up_rate=1.0, template="h{:d}", parts=(range(2),))
    leaf = builder.add_switches(1, tier=1, radix=4, template="l{:d}", parts=(range(1),))
    two = np.arange(2)
    builder.add_endpoints(hosts + two, np.full(2, leaf), rate=1.0, length=1.0, gpu=0, rail=0)
    builder.add_cables(hosts + two[:1], hosts + two[1:], rate=1.0, length=1.0, kind="local")
    assert [fault.code for fault in check_fabric(builder.finish(check=False))] == ["NP104"]


def test_bundles_of_direct_networks_may_differ() -> None:
    uneven = build("dragonfly", groups=8, uneven=True, group={"bundle": 2}, radix=20, router={"endpoints": 2})
    assert found(uneven) == []
    assert found(build("hyperx", bundles=[3, 1])) == []


def test_groups_without_a_global_cable_are_a_warning() -> None:
    fabric = build("dragonfly")  # one cable between any two of nine groups
    ends = fabric.links.src[0::2], fabric.links.dst[0::2]
    pods = np.sort([fabric.nodes.pod[end] for end in ends], axis=0)
    cable = int(np.flatnonzero((pods[0] == 2) & (pods[1] == 7))[0])
    name = "/".join(fabric.node_name(int(end[cable])) for end in ends)
    damaged = apply_failures(fabric, [f"cable:{name}"])
    assert found(damaged) == [("NP110", "groups 2 and 7", "are joined by no global cable")]
    lost = found(apply_failures(fabric, ["random:global:34"]))
    assert ("NP110", "(and 29 more)") in {(code, message[-13:]) for code, _, message in lost}
    for kind in SPECS:
        assert found(build(kind)) == []


# ---- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPECS)
def test_hosts_and_nics_can_fail_without_the_structure(kind: str) -> None:
    fabric = build(kind)
    damaged = apply_failures(fabric, ["random:host:1", "random:nic:2", "random:host_leaf:1"], seed=3)
    assert damaged.direct is not None
    gone = fabric.links.n_cables - damaged.links.n_cables
    assert 2 <= gone <= 4
    assert damaged.n_endpoints == fabric.n_endpoints - gone
    assert {fault.code for fault in check_fabric(damaged)} == {"NP105"}
    again = load_fabric(json.dumps(fabric_to_dict(damaged)), source="in")
    assert again.direct is not None
    assert again.direct.to_dict() == damaged.direct.to_dict()


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("dragonfly", "random:local:2"),
        ("dragonfly", "random:global:5%"),
        ("dragonfly", "cable:router-0-0/router-0-1"),
        ("dragonfly-plus", "tier:spine:1"),
        ("slim-fly", "switch:router-2-1"),
        ("torus", "cable:router-0-0/router-1-0#2"),
        ("hyperx", "random:switch:1"),
    ],
)
def test_inner_failures_drop_the_structure(kind: str, failure: str) -> None:
    fabric = build(kind)
    damaged = apply_failures(fabric, [failure])
    assert damaged.direct is None
    assert [fault for fault in check_fabric(damaged) if fault.severity == "error"] == []
    lost = list_losses(fabric, damaged).cables
    assert lost
    assert set(lost) <= {"host_leaf", "local", "global"}


def test_kinds_of_cable_keep_their_numbers() -> None:
    # Saved fabrics hold these numbers.
    assert LINK_KINDS[:8] == (
        "host_leaf", "leaf_spine", "spine_core", "site_metro", "inter_site", "other", "local", "global"
    )  # fmt: skip
