"""Graphs and files: what goes in comes out, and what is no fabric is refused with the place."""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError, OutputError
from netplan.fabric import Fabric
from netplan.fabric.checks import components
from netplan.fabric.convert import SCHEMA, fabric_to_dict, load_fabric, node_names, save_fabric, to_networkx
from netplan.routing.hashed import hashed_paths, switch_seeds
from tests import fabrics
from tests.strategies import TREES
from tests.strategies import fabrics as random_fabrics


def assert_equal(a: Fabric, b: Fabric) -> None:
    """Every column, name and number of two fabrics is the same."""
    for table in ("nodes", "links", "endpoints"):
        for name, column in vars(getattr(a, table)).items():
            other = getattr(getattr(b, table), name)
            np.testing.assert_array_equal(column, other, err_msg=f"{table}.{name}")
            assert column.dtype == other.dtype, (table, name)
    assert node_names(a) == node_names(b)
    np.testing.assert_array_equal(a.gpus_per_host, b.gpus_per_host)
    np.testing.assert_array_equal(a.scale_up_rate, b.scale_up_rate)
    for name in ("name", "kind", "site_names", "spec", "switch_latency", "endpoint_latency"):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.structure is None) == (b.structure is None)
    if a.structure is not None and b.structure is not None:
        assert a.structure.to_dict() == b.structure.to_dict()


# ---- networkx ----------------------------------------------------------------------------------


def test_graph_has_nodes_by_name_and_one_edge_per_cable() -> None:
    fabric = fabrics.metro_two_sites()
    graph = to_networkx(fabric)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (fabric.n_nodes, fabric.links.n_cables)
    assert graph.nodes["north/host-00003"] == {"kind": "host", "tier": 0, "site": "north"}
    leaf = {"kind": "leaf", "tier": 1, "site": "south", "pod": 1, "rail": 1, "radix": 8}
    assert graph.nodes["south/leaf-b1-r1"] == leaf
    long = [data for *_, data in graph.edges(data=True) if data["kind"] == "inter_site"]
    assert (
        long
        == [{"capacity": 50e9, "delay": pytest.approx(151.5e-6), "length": 3e4, "kind": "inter_site"}] * 8
    )


def test_keys_of_edges_are_cables() -> None:
    fabric = fabrics.dumbbell()
    keys = {key: {a, b} for a, b, key in to_networkx(fabric).edges(keys=True)}
    assert sorted(keys) == list(range(fabric.links.n_cables))
    for cable, ends in keys.items():
        assert ends == {
            fabric.node_name(int(end)) for end in (fabric.links.src[2 * cable], fabric.links.dst[2 * cable])
        }


def test_switch_level_counts_endpoints_instead_of_hosts() -> None:
    graph = to_networkx(fabrics.rail_2x8(), level="switch")
    assert Counter(nx.get_node_attributes(graph, "kind").values()) == {"leaf": 16, "spine": 4}
    assert sum(nx.get_node_attributes(graph, "endpoints").values()) == 64
    assert graph.number_of_edges() == 64


@given(fabric=random_fabrics())
@settings(max_examples=30)
def test_names_are_unique(fabric: Fabric) -> None:
    assert len(set(node_names(fabric))) == fabric.n_nodes


# ---- round trip --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", fabrics.NAMED)
def test_file_gives_the_fabric_back(name: str, tmp_path: Path) -> None:
    fabric = fabrics.NAMED[name]()
    save_fabric(fabric, tmp_path / "x.json")
    assert_equal(fabric, load_fabric(tmp_path / "x.json"))
    assert_equal(fabric, load_fabric(str(tmp_path / "x.json")))
    assert_equal(fabric, load_fabric((tmp_path / "x.json").read_text()))
    assert list(tmp_path.iterdir()) == [tmp_path / "x.json"]


@given(fabric=random_fabrics())
@settings(max_examples=60)
def test_any_fabric_comes_back_and_gives_the_same_bytes(fabric: Fabric) -> None:
    text = json.dumps(fabric_to_dict(fabric))
    again = load_fabric(text)
    assert_equal(fabric, again)
    assert json.dumps(fabric_to_dict(again)) == text


@given(fabric=random_fabrics(*TREES), seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_loaded_structure_routes_as_the_original(fabric: Fabric, seed: int) -> None:
    again = load_fabric(json.dumps(fabric_to_dict(fabric)))
    assert fabric.structure is not None
    domain = components(fabric, through_hosts=False)[fabric.endpoints.leaf]
    src, dst = np.divmod(np.arange(fabric.n_endpoints**2), fabric.n_endpoints)
    meet = (src != dst) & (domain[src] == domain[dst])
    key = np.random.default_rng(seed).integers(0, 2**63, int(meet.sum())).astype(np.uint64)
    here, there = (hashed_paths(f, src[meet], dst[meet], key, switch_seeds(f, seed)) for f in (fabric, again))
    np.testing.assert_array_equal(here[0], there[0])
    np.testing.assert_array_equal(here[1], there[1])


def test_latencies_are_kept(tmp_path: Path) -> None:
    fabric = replace(fabrics.one_leaf(), switch_latency=6e-7, endpoint_latency=2e-6)
    save_fabric(fabric, tmp_path / "x.json")
    again = load_fabric(tmp_path / "x.json")
    assert (again.switch_latency, again.endpoint_latency) == (6e-7, 2e-6)


def test_a_faulty_fabric_is_refused_unless_it_is_to_be_checked(tmp_path: Path) -> None:
    fabric = fabrics.lab_two_leaves()
    faulty = replace(fabric, nodes=replace(fabric.nodes, radix=np.minimum(fabric.nodes.radix, 3)))
    save_fabric(faulty, tmp_path / "x.json")
    assert_equal(faulty, load_fabric(tmp_path / "x.json", check=False))
    message = r"fabric 'lab-two-leaves' has 3 fault\(s\):\n  NP102 leaf-0-0: 4 ports"
    with pytest.raises(FabricError, match=message):
        load_fabric(tmp_path / "x.json")


# ---- writing -----------------------------------------------------------------------------------


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "x.json"
    with pytest.raises(OutputError, match=re.escape(f"there is no folder '{path.parent}'")):
        save_fabric(fabrics.one_leaf(), path)
    assert not path.parent.exists()


def test_a_directory_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a folder"):
        save_fabric(fabrics.one_leaf(), tmp_path)
    assert list(tmp_path.parent.glob(f".{tmp_path.name}.*")) == []


def test_numbers_that_json_has_no_word_for_are_refused(tmp_path: Path) -> None:
    fabric = fabrics.one_leaf()
    broken = replace(fabric, links=replace(fabric.links, capacity=np.full(8, np.nan)))
    with pytest.raises(OutputError, match="fabric 'one-leaf' has numbers that are not finite"):
        save_fabric(broken, tmp_path / "x.json")


def test_what_was_there_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    save_fabric(fabrics.one_leaf(), path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="No space left on device"):
        save_fabric(fabrics.dumbbell(), path)
    assert load_fabric(path).name == "one-leaf"
    assert list(tmp_path.iterdir()) == [path]


# ---- reading -----------------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=r"no\.json: cannot be read: No such file or directory"):
        load_fabric(tmp_path / "no.json")
    with pytest.raises(FabricError, match="'a\\\\x00b': cannot be read: embedded null"):
        load_fabric("a\0b")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"{\xff")
    with pytest.raises(FabricError, match=r"x\.json: is not text in UTF-8 \(byte 1\)"):
        load_fabric(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: custom", "in: is not JSON: Expecting value (line 1, column 1)"),
        ('{"schema": ', "in: is not JSON: Expecting value (line 1, column 12)"),
        ("[" * 200_000, "in: is not JSON that can be read: maximum recursion depth"),
        ('{"a": ' + "1" * 5000 + "}", "in: is not JSON that can be read: Exceeds the limit"),
        ("[1]", "in: is not a saved fabric: the JSON is a list, not an object"),
        ("null", "in: is not a saved fabric: the JSON is null, not an object"),
        ("{}", "in: has no schema; this netplan reads 'netplan/fabric/1'"),
        ('{"schema": "other"}', "in: has schema 'other'; this netplan reads 'netplan/fabric/1'"),
        ('{"schema": "netplan/fabric/2"}', "in: has schema 'netplan/fabric/2'; this netplan reads"),
        ('{"schema": NaN}', "in: has a number NaN: numbers are finite"),
        (f'{{"schema": "{SCHEMA}", "name": "x"}}', "in: the fabric lacks kind, site_names, names"),
    ],
)  # fmt: skip
def test_what_is_no_fabric_is_refused(text: str, message: str) -> None:
    with pytest.raises(FabricError, match=re.escape(message)):
        load_fabric(text, source="in")


def saved() -> dict[str, Any]:
    """The fabric of the tests below as plain data: one leaf of 4 hosts with 1 GPU, 4 cables."""
    data: dict[str, Any] = json.loads(json.dumps(fabric_to_dict(fabrics.one_leaf())))
    return data


# Each row: where to put what, and what is said of it.
BROKEN: list[tuple[tuple[str | int, ...], object, str]] = [
    (("extra",), 1, "the fabric has unknown extra; accepted: schema, name"),
    (("nodes",), [1], "nodes is a list, not an object"),
    (("nodes", "teir"), [1], "nodes has unknown teir; accepted: tier, pod, plane, rail, site, radix"),
    (("nodes", "tier"), [0, 0, 0, 0], "the columns of nodes have different lengths: tier 4, pod 5"),
    (("nodes", "tier"), "01", 'nodes.tier is "01", not a list of whole numbers'),
    (("nodes", "tier"), [0, 0, 0, 0, 1.0], "nodes.tier[4] is 1.0; the column holds whole numbers"),
    (("nodes", "tier"), [0, 0, 0, 0, True], "nodes.tier[4] is true; the column holds whole numbers"),
    (("nodes", "tier"), [0, 0, 0, 0, None], "nodes.tier[4] is null; the column holds whole numbers"),
    (("nodes", "tier"), [0, 0, 0, 0, [1]], "nodes.tier[4] is a list; the column holds whole numbers"),
    (("nodes", "tier"), [0, 0, 0, 0, 300], "nodes.tier has a number outside what int8 holds"),
    (("nodes", "tier"), [0, 0, 0, 0, 5], "nodes.tier[4] = 5 is not one of the 5 tiers"),
    (("nodes", "site"), [0, 0, 0, 0, 1], "nodes.site[4] = 1 is not one of the 1 sites"),
    (("nodes", "pod"), {"values": [1]}, "nodes.pod lacks counts"),
    (
        ("nodes", "pod"),
        {"values": [1], "counts": [2, 3]},
        "nodes.pod: counts must be one per value, at least 1",
    ),
    (("nodes", "pod"), {"values": [1], "counts": [0]}, "nodes.pod: counts must be one per value, at least 1"),
    (("nodes", "pod"), {"values": [1], "counts": [10**12]}, "and 67,108,864 in all"),
    (("hosts", "gpus"), [1, 1, 1], "the columns of hosts have different lengths: gpus 3, scale_up_rate 4"),
    (("hosts",), {"gpus": [1], "scale_up_rate": [1.0]}, "hosts has 1 rows, but 4 nodes are of tier 0"),
    (("hosts", "gpus"), [1, 1, 1, 0], "hosts.gpus has 0: at least 1 is accepted"),
    (("hosts", "scale_up_rate"), [-1, 1, 1, 1], "hosts.scale_up_rate has -1.0: at least 0 is accepted"),
    (("cables", "lower"), [0, 1, 2, 9], "cables.lower[3] = 9 is not one of the 5 nodes"),
    (("cables", "upper"), [4, -4, 4, 4], "cables.upper[1] = -4 is not one of the 5 nodes"),
    (("cables", "kind"), [0, 0, 0, 8], "cables.kind[3] = 8 is not one of the 8 kinds of cable"),
    (("cables", "length"), [3, 3, 3, -3], "cables.length has -3.0: at least 0 is accepted"),
    (("links",), {"capacity": [1.0], "delay": [1.0]}, "links has 1 rows; 4 cables have 8"),
    (("links", "delay"), [-1.0] * 8, "links.delay has -1.0: at least 0 is accepted"),
    (("links", "capacity"), [10**400] * 8, "links.capacity has a number outside what float64 holds"),
    (("endpoints", "host"), [0, 1, 2, 5], "endpoints.host[3] = 5 is not one of the 5 nodes"),
    (("endpoints", "host"), [0, 1, 2, 4], "endpoints.host must name hosts, in ascending order"),
    (("endpoints", "host"), [0, 2, 1, 3], "endpoints.host must name hosts, in ascending order"),
    (("endpoints", "leaf"), [4, 4, 4, 5], "endpoints.leaf[3] = 5 is not one of the 5 nodes"),
    (("endpoints", "cable"), [0, 1, 2, 4], "endpoints.cable[3] = 4 is not one of the 4 cables"),
    (("endpoints", "rail"), [0, 0, 0, -1], "endpoints.rail[3] = -1 is not one of the 32768 rails"),
    (("name",), 3, "name is 3, not a text"),
    (("kind",), "", 'kind is "", not a text'),
    (("site_names",), [], "site_names is an empty list, not a list of texts"),
    (("site_names",), ["a", {}], "site_names[1] is an object, not a text"),
    (("names",), {}, "names is an object, not a list of blocks"),
    (("names", 0), 1, "names[0] is 1, not an object"),
    (("names", 1, "first"), 3, "names[1] must follow the block before it: first = 4, count at least 0"),
    (
        ("names", 0, "template"),
        "{0.__class__}",
        "names[0].template = '{0.__class__}' may have the places {}, {:d}",
    ),
    (("names", 0, "template"), "{:999999999d}", "may have the places {}, {:d} and {:05d} only"),
    (("names", 0, "template"), "host", "names[0].parts must have one list per place of the template 'host'"),
    (("names", 0, "parts"), [[1, 2]], "names[0].parts[0] must be a list of 4 values"),
    (
        ("names", 0, "parts"),
        [["a", "b", "c", "d"]],
        "names[0].parts[0] has values that do not fit 'host-{:05d}'",
    ),
    (("names",), [], "names are given to 0 nodes; there are 5"),
    (("structure",), 1, "structure is 1, not an object"),
    (("structure", "uplinks"), -1, "structure.uplinks is -1, not a whole number in range"),
    (("structure", "domains"), 0, "structure.domains is 0, not a whole number in range"),
    (("structure", "spines"), 2**40, "structure.spines is 1099511627776, not a whole number in range"),
    (
        ("structure", "endpoint_leaf"),
        [0, 0, 0, 1],
        "structure.endpoint_leaf[3] = 1 is not one of the 1 leaves",
    ),
    (
        ("structure", "leaf_pod"),
        [2],
        "structure.leaf_pod[0] = 2 is not one of the 1 pods that leaves can fill",
    ),
    (("structure", "leaf_pod"), [1, 0], "structure.leaf_pod must name pods in ascending order"),
    (("spec",), "x" * 99, 'spec is "' + "x" * 36 + "..., not an object"),
    (("switch_latency_s",), True, "switch_latency_s is true, not a time of 0 s or more"),
    (("endpoint_latency_s",), -1, "endpoint_latency_s is -1, not a time of 0 s or more"),
]


@pytest.mark.parametrize(("path", "value", "message"), BROKEN, ids=[message for *_, message in BROKEN])
def test_a_broken_file_is_refused_with_the_place(
    path: tuple[str | int, ...], value: object, message: str
) -> None:
    data = saved()
    holder: Any = data
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    for check in (True, False):
        with pytest.raises(FabricError, match="^in: .*" + re.escape(message)):
            load_fabric(json.dumps(data), source="in", check=check)


def test_a_number_too_large_for_a_float_is_refused() -> None:
    text = json.dumps(saved()).replace("[50000000000.0]", "[1e999]")
    with pytest.raises(FabricError, match=r"links\.capacity\.values has a number outside what float64 holds"):
        load_fabric(text)


def test_a_lying_structure_is_a_fault() -> None:
    data = json.loads(json.dumps(fabric_to_dict(fabrics.lab_two_leaves())))
    data["structure"]["spine_node"] += 1
    with pytest.raises(FabricError, match="NP109"):
        load_fabric(json.dumps(data))


@given(data=st.data())
@settings(max_examples=150)
def test_no_damage_to_a_file_is_a_crash(data: st.DataObject) -> None:
    # Put anything anywhere: the answer is a fabric or a FabricError.
    content: Any = saved()
    path = []
    holder = content
    while isinstance(holder, (dict, list)) and holder:
        part = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        path.append((holder, part))
        holder = holder[part]
    target, part = path[data.draw(st.integers(0, len(path) - 1))]
    target[part] = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3) | st.lists(st.integers(-1, 9), max_size=5) | st.just({})
    )  # fmt: skip
    with suppress(FabricError):
        load_fabric(json.dumps(content))
