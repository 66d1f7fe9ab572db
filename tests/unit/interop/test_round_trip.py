"""What is written can be read back: the same cables, speeds, names and GPUs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from netplan.fabric.convert import node_names
from netplan.interop.hostlist import read_hostlist, write_hostlist
from netplan.interop.registry import FORMATS, WriteOptions
from netplan.spec.validate import validate
from tests.contracts.making import make_fabric
from tests.strategies import fabrics
from tests.unit.interop.samples import GRAPHS, cables, node_number, read_back, with_nasty_names, written

TREE = "kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 4, nics: 2}\nspine: {count: 4}"


@pytest.mark.parametrize("name", GRAPHS)
@given(fabric=fabrics())
@settings(max_examples=25)
def test_graphs_round_trip(name, fabric):
    """Random fabrics with names that need escaping, parallel cables and parts that never meet."""
    nasty = with_nasty_names(fabric)
    back = read_back(written(nasty, name), name).fabric
    speeds = name != "ibsim"  # ibsim's words end at HDR
    assert cables(back, by_number=True, rates=speeds) == cables(nasty, by_number=True, rates=speeds)
    hosts = {node_number(node_names(back)[i]) for i in back.host_ids.tolist()}
    assert hosts == set(fabric.host_ids.tolist())


@pytest.mark.parametrize("name", ["graphml", "dot"])
@given(fabric=fabrics())
@settings(max_examples=15)
def test_attributes_round_trip(name, fabric):
    """GPUs, tiers, radixes, lengths and scale-up rates are kept, and the order of NIC ports."""
    nasty = with_nasty_names(fabric)
    back = read_back(written(nasty, name), name).fabric
    order = [node_number(each) for each in node_names(back)]
    np.testing.assert_array_equal(back.nodes.tier, fabric.nodes.tier[order])
    np.testing.assert_array_equal(back.nodes.radix, fabric.nodes.radix[order])
    index = fabric.host_index[order[: back.n_hosts]]
    np.testing.assert_array_equal(back.gpus_per_host, fabric.gpus_per_host[index])
    np.testing.assert_allclose(back.scale_up_rate, fabric.scale_up_rate[index], rtol=1e-12)
    assert sorted(back.links.length.tolist()) == pytest.approx(sorted(fabric.links.length.tolist()))
    # NIC i of a host is on the same switch as before.
    was = {(int(h), i): int(leaf) for h, i, leaf in _ports(fabric)}
    now = {(order[h], i): order[leaf] for h, i, leaf in _ports(back)}
    assert was == now


def _ports(fabric):
    """Yield host, number of the port in its host, and switch."""
    first = fabric.endpoint_ptr[fabric.host_index[fabric.endpoints.host]]
    numbers = (np.arange(fabric.n_endpoints) - first).tolist()
    return zip(fabric.endpoints.host.tolist(), numbers, fabric.endpoints.leaf.tolist(), strict=True)


@given(fabric=fabrics())
@settings(max_examples=20)
def test_hpcc_round_trips(fabric):
    """Ids are hosts, then switches; rates and delays are exact to what the file writes."""
    back = read_back(written(fabric, "hpcc"), "hpcc").fabric
    order = [*fabric.host_ids.tolist(), *np.flatnonzero(fabric.nodes.tier > 0).tolist()]
    renamed = {order[i]: i for i in range(len(order))}
    links = fabric.links
    was = Counter(
        (*sorted((renamed[a], renamed[b]), key=str), round(rate * 8 / 1e6))
        for a, b, rate in zip(
            links.src[0::2].tolist(), links.dst[0::2].tolist(), links.capacity[0::2].tolist(), strict=True
        )
    )
    assert cables(back, by_number=True) == was
    assert sorted(back.links.delay) == pytest.approx(sorted(links.delay), abs=1e-11)


def test_simai_round_trips():
    """Hosts from their NVSwitches, NICs at their GPUs, scale-up rates; two NICs serve four GPUs."""
    fabric = make_fabric(TREE)
    back = read_back(written(fabric, "simai"), "simai").fabric
    assert (back.n_hosts, back.n_gpus, back.n_endpoints) == (16, 64, 32)
    np.testing.assert_array_equal(back.nodes.tier, fabric.nodes.tier)
    np.testing.assert_array_equal(back.endpoints.host, fabric.endpoints.host)
    np.testing.assert_array_equal(back.endpoints.leaf, fabric.endpoints.leaf)
    np.testing.assert_allclose(back.scale_up_rate, fabric.scale_up_rate)


def test_simai_refuses_unequal_hosts():
    """The format has one number of GPUs."""
    uneven = make_fabric(
        "kind: custom\nhosts: [{name: a, gpus: 4}, {name: b, gpus: 8}]\n"
        "switches: [{name: s, tier: 1, radix: 8}]\n"
        "links: [{a: a, b: s, speed: 400G}, {a: b, b: s, speed: 400G}]"
    )
    with pytest.raises(Exception, match="hosts have 4 to 8 GPUs"):
        written(uneven, "simai")


@given(fabric=fabrics())
@settings(max_examples=20)
def test_slurm_trees_hold_all_hosts(fabric):
    """Every host is in the tree once; written again after reading, the tree is the same."""
    text = written(fabric, "slurm")
    back = read_back(text, "slurm").fabric
    names = [name.replace("/", "-") for name in node_names(fabric)]
    assert {node_names(back)[i] for i in back.host_ids.tolist()} == {
        names[i] for i in fabric.host_ids.tolist()
    }
    assert written(back, "slurm").count(b"Nodes=") == text.count(b"Nodes=")


def test_slurm_forms_agree():
    """Tree and blocks, as conf and as YAML: the same hosts below the same switches."""
    fabric = make_fabric(TREE)
    conf, yaml = (
        read_back(written(fabric, "slurm"), "slurm"),
        read_back(written(fabric, "slurm-yaml"), "slurm-yaml"),
    )
    assert cables(conf.fabric) == cables(yaml.fabric)
    block = read_back(written(fabric, "slurm-block"), "slurm-block")
    blocks = read_back(written(fabric, "slurm-yaml", form="block"), "slurm-yaml")
    assert cables(block.fabric) == cables(blocks.fabric)
    assert b"BlockSizes=" in written(fabric, "slurm-block")


def test_two_fabrics_are_two_roots():
    """What no switch joins has no common root, and reads back as two parts."""
    parts = (
        "kind: custom\nas_built: true\nhosts: [{name: a, gpus: 1}, {name: b, gpus: 1}]\n"
        "switches: [{name: s, tier: 1, radix: 8}, {name: t, tier: 1, radix: 8}]\n"
        "links: [{a: a, b: s, speed: 400G}, {a: b, b: t, speed: 400G}]"
    )
    text = written(make_fabric(parts), "slurm").decode()
    assert text.splitlines()[1:] == ["SwitchName=s Nodes=a", "SwitchName=t Nodes=b"]
    assert read_back(text.encode(), "slurm").fabric.n_switches == 2


def test_hostlists():
    """Ranges, padding and several brackets, both ways."""
    names = [f"n{i:02d}" for i in range(8, 13)] + ["x-1", "x-3", "login"]
    assert write_hostlist(names) == "n[08-12],x-[1,3],login"
    assert read_hostlist("n[08-12],x-[1,3],login") == names
    assert read_hostlist("r[0-1]n[1-2]") == ["r0n1", "r0n2", "r1n1", "r1n2"]
    for wrong in ("a[", "a[5-1]", "a[0-99999999]", "a,,b", "a]b", "r[0-999]n[0-999]x[0-99]"):
        with pytest.raises(ValueError, match=r"has|stands"):
            read_hostlist(wrong)


def test_nccl_files():
    """One file per host with its GPUs and NIC ports, and ranks in host order."""
    fabric = with_nasty_names(make_fabric(TREE))
    made = FORMATS.find("nccl")
    assert made.write is not None
    files = made.write(fabric, WriteOptions())
    assert len(files) == 17
    assert len(files["ranks.txt"].splitlines()) == 1 + 64
    for name, content in files.items():
        assert "/" not in name
        assert not name.startswith(".")
        if name.endswith(".xml"):
            root = ET.fromstring(content)
            assert len(root.findall(".//gpu")) == 4
            assert [net.get("speed") for net in root.findall(".//net")] == ["400000"] * 2
            busids = [pci.get("busid") for pci in root.iter("pci")]
            assert len(set(busids)) == len(busids)
            back = read_back(content, "nccl").fabric
            assert (back.n_gpus, back.n_endpoints) == (4, 2)


def test_regular_trees_for_htsim():
    """Radixes and counts are those of the fabric; what is no regular tree is refused."""
    fabric = make_fabric("kind: fat-tree\nk: 4")
    text = written(fabric, "htsim").decode()
    low, delay = fabric.nodes.tier[fabric.links.src[0::2]], fabric.links.delay[0::2] * 1e9
    ns = [f"Downlink_Latency_ns {delay[low == tier].min():.12g}" for tier in range(3)]
    assert text.splitlines() == [
        "Nodes 16", "Tiers 3", "Podsize 4",
        "Tier 0", "Downlink_speed_Gbps 400", "Radix_Down 2", "Radix_Up 2", ns[0],
        "Tier 1", "Downlink_speed_Gbps 400", "Radix_Down 2", "Radix_Up 2", ns[1],
        "Tier 2", "Downlink_speed_Gbps 400", "Radix_Down 4", ns[2],
    ]  # fmt: skip
    with pytest.raises(Exception, match="is no generated tree"):
        written(make_fabric("kind: torus\ndims: [3, 3]\nrouter: {endpoints: 1}\nhosts: {gpus: 1}"), "htsim")


def test_dimensions_for_astra_sim():
    """A tree is two switches; a torus keeps its dimensions as rings."""
    from netplan.spec.text import parse_yaml

    tree = parse_yaml(written(make_fabric(TREE), "astra-sim"), "x").data
    assert tree["topology"] == ["Switch", "Switch"]
    assert tree["npus_count"] == [4, 16]
    assert tree["bandwidth"] == [450, 25]  # two NICs of 50 GB/s over four GPUs
    torus = make_fabric("kind: torus\ndims: [3, 4]\nrouter: {endpoints: 1}\nhosts: {gpus: 1}")
    rings = parse_yaml(written(torus, "astra-sim"), "x").data
    assert (rings["topology"], rings["npus_count"]) == (["Ring", "Ring"], [3, 4])


def test_specs_of_imported_fabrics():
    """An imported fabric written as a spec builds the same fabric."""
    from netplan.interop.spec_text import spec_text
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.spec.text import parse_yaml
    from netplan.topology import build_fabric

    fabric = make_fabric(
        "kind: dragonfly\nrouter: {endpoints: 2, global_links: 2}\ngroup: {routers: 4}\nhosts: {gpus: 1}"
    )
    back = read_back(written(fabric, "ibnetdiscover"), "ibnetdiscover").fabric
    again = build_fabric(validate(FABRIC_SPEC, parse_yaml(spec_text(back), "x.yaml")))
    assert cables(again) == cables(back) == cables(fabric)
    np.testing.assert_array_equal(again.links.kind, back.links.kind)
