"""Imported fabrics are told by their family; each deviation put in is found, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from netplan import api
from netplan.fabric.checks import check_fabric
from netplan.fabric.classify import classify
from netplan.interop.subnet import Subnet
from tests.contracts.making import make_fabric
from tests.unit.interop.samples import read_back, written

#: Shipped fabrics that are told by another name: what lies between their sites cannot be seen in a dump.
OTHERWISE = {
    "custom": {"leaf-spine"},
    "metro": {"rail-optimized"},
    "clos": {"clos", "fat-tree"},
    "multi-plane": {"multi-plane", "rail-only"},
    "dual-tor": {"multi-plane", "leaf-spine", "rail-optimized", "clos", "fat-tree"},
}
SHIPPED = (
    "custom-example",
    "deepseek-ft2-plane",
    "dragonfly-1056",
    "dragonfly-72",
    "fat-tree-k8",
    "fire-flyer-2-zone",
    "hpcc-320",
    "hyperx-672",
    "lab-2-leaf",
    "metro-30km-2site",
    "metro-ring-4site",
    "rail-only-4k",
    "rail-only-nvl72-4k",
    "slim-fly-q5",
    "superpod-b200-4su",
    "superpod-b200-16su",
    "superpod-b300-xdr-4su",
    "torus-tpu-v4-4k",
)


def imported(fabric):
    """Return a fabric as an ibnetdiscover dump shows it."""
    return read_back(written(fabric, "ibnetdiscover"), "ibnetdiscover").fabric


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_fabrics(name):
    """Without names of tiers, rails or groups, each is known from its cables, and has no deviation."""
    fabric = api.load_fabric(name)
    found = classify(imported(fabric))
    assert found.family in OTHERWISE.get(fabric.kind, {fabric.kind})
    assert not found.deviations


@pytest.mark.parametrize(
    ("spec", "family", "words"),
    [
        ("kind: torus\ndims: [5, 4, 3]\nrouter: {endpoints: 1}\nhosts: {gpus: 1}", "torus", "3x4x5"),
        ("kind: hyperx\ndims: [4, 5]\nrouter: {endpoints: 2}\nhosts: {gpus: 1}", "hyperx", "4x5"),
        ("kind: hyperx\ndims: [6]\nrouter: {endpoints: 2}\nhosts: {gpus: 1}", "hyperx", "full mesh"),
        ("kind: slim-fly\nq: 5\nrouter: {endpoints: 2}\nhosts: {gpus: 1}", "slim-fly", "q = 5"),
        (
            "kind: dragonfly\nrouter: {endpoints: 2, global_links: 2}\ngroup: {routers: 4}\nhosts: {gpus: 1}",
            "dragonfly",
            "9 groups of 4",
        ),
        (
            (
                "kind: dragonfly-plus\nleaf: {endpoints: 4}\nspine: {global_links: 2}\n"
                "group: {leaves: 3, spines: 3}\ngroups: 4\nhosts: {gpus: 1}"
            ),
            "dragonfly-plus",
            "12 leaves and 12 spines",
        ),
        ("kind: rail-only\nradix: 16\nhosts: {count: 8, gpus: 4}", "rail-only", "4 rails"),
    ],
)
def test_families(spec, family, words):
    """Parameters are found too."""
    found = classify(imported(make_fabric(spec)))
    assert (found.family, bool(found.deviations)) == (family, False)
    assert words in found.described_as


def rewired(fabric, *, swaps=(), slow=()):
    """Return a fabric with the upper ends of pairs of cables exchanged, and cables at half speed."""
    links = fabric.links
    src, dst, capacity = links.src.copy(), links.dst.copy(), links.capacity.copy()
    for a, b in swaps:
        dst[2 * a], dst[2 * b] = dst[2 * b], dst[2 * a]
        src[2 * a + 1], src[2 * b + 1] = dst[2 * a], dst[2 * b]
    for cable in slow:
        capacity[2 * cable : 2 * cable + 2] /= 2
    leaf = dst[2 * fabric.endpoints.cable.astype(int)].astype(np.int32)
    return replace(
        fabric,
        links=replace(links, src=src, dst=dst, capacity=capacity),
        endpoints=replace(fabric.endpoints, leaf=leaf),
        structure=None,
    )


def codes(fabric):
    """Return how often each code is found."""
    return Counter(fault.code for fault in classify(fabric).deviations)


@pytest.mark.parametrize("name", ["superpod-b200-4su", "fat-tree-k8", "lab-2-leaf"])
def test_missing_cables(name):
    """Two cables between switches gone: one or two bundles that lack them, the family unchanged."""
    fabric = api.load_fabric(name)
    found = classify(imported(api.fail(fabric, ["random:leaf_spine:2"], seed=4)))
    assert found.family == fabric.kind
    assert {fault.code for fault in found.deviations} == {"NP111"}
    lost = sum(int(fault.message.split()[0]) for fault in found.deviations)
    assert lost == 2


def test_missing_nic():
    """A host with seven of eight ports is named, and its other NICs are not called miswired."""
    found = classify(imported(api.fail(api.load_fabric("superpod-b200-4su"), ["nic:host-00007/2"])))
    assert [(f.code, f.where, f.message) for f in found.deviations] == [
        ("NP111", "host-00007", "7 of 8 NIC ports are cabled")
    ]


@pytest.mark.parametrize("name", ["superpod-b200-4su", "fat-tree-k8"])
def test_degraded_cables(name):
    """A NIC and a trunk cable at half speed are found, by both ends."""
    fabric = api.load_fabric(name)
    trunk = fabric.n_endpoints + 7
    back = imported(rewired(fabric, slow=[5, trunk]))
    found = classify(back).deviations
    assert codes(back) == {"NP112": 2}
    names = {fault.where.split(" #")[0] for fault in found}
    assert names == {fabric.link_name(2 * cable).split(" #")[0] for cable in (5, trunk)}
    assert all("runs at 200G, others there at 400G" in fault.message for fault in found)


def test_slow_beside_fast():
    """Of few cables, one that is slower than its neighbour between the same switches is degraded."""
    fabric = make_fabric(
        "kind: custom\nhosts: [{name: a}, {name: b}]\n"
        "switches: [{name: l, tier: 1, radix: 8}, {name: s, tier: 2, radix: 8}]\n"
        "links: [{a: a, b: l, speed: 400G}, {a: b, b: l, speed: 400G},"
        " {a: l, b: s, speed: 400G}, {a: l, b: s, speed: 100G}]"
    )
    assert [(f.code, f.message) for f in classify(fabric).deviations] == [
        ("NP112", "runs at 100G, others there at 400G")
    ]
    slow_hosts = make_fabric(
        "kind: custom\nhosts: [{name: a}, {name: b}]\nswitches: [{name: l, tier: 1, radix: 8}]\n"
        "links: [{a: a, b: l, speed: 400G}, {a: b, b: l, speed: 200G}]"
    )
    assert not classify(slow_hosts).deviations


def test_miswired_trunks():
    """Two trunk cables exchanged between pods: both leaves are named, with where the cable belongs."""
    fabric = api.load_fabric("fat-tree-k8")
    first = fabric.n_endpoints
    found = classify(imported(rewired(fabric, swaps=[(first + 3, first + 40)]))).deviations
    assert [fault.code for fault in found] == ["NP115", "NP115"]
    name = fabric.node_name
    a, b = first + 3, first + 40
    spines = [name(int(fabric.links.dst[2 * cable])) for cable in (a, b)]
    leaves = [name(int(fabric.links.src[2 * cable])) for cable in (a, b)]
    assert {fault.where for fault in found} == set(leaves)
    assert {fault.message for fault in found} == {
        f"a cable leads to {spines[1]}, where {spines[0]} lacks one",
        f"a cable leads to {spines[0]}, where {spines[1]} lacks one",
    }


def test_miswired_rails():
    """Two NICs of one host exchanged: each is on a leaf of the other's rail."""
    found = classify(imported(rewired(api.load_fabric("superpod-b200-4su"), swaps=[(0, 1)]))).deviations
    assert [(f.code, f.where) for f in found] == [
        ("NP115", "host-00000 NIC 0"),
        ("NP115", "host-00000 NIC 1"),
    ]


DUMP_HOST_ON_SPINE = "H-00000000000000aa"


def test_host_on_spine():
    """A host on a spine is known as one, loads, is routed to, and is a deviation and no error."""
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 18\nhosts: {count: 32, gpus: 1}\nleaf: {uplinks: 4}\nspine: {count: 2}"
    )
    text = Subnet.of(fabric).dump()
    spine = f"S-{Subnet.of(fabric).switch_guid[fabric.n_nodes - 1]:016x}"
    start = text.index(f'"{spine}"\t\t# ')
    at = text.index("\n\n", start)
    text = text[:at] + f'\n[18]\t"{DUMP_HOST_ON_SPINE}"[1](ab) \t\t# "ufm HCA-1" lid 99 4xNDR' + text[at:]
    text += f'\ncaguid=0xaa\nCa\t1 "{DUMP_HOST_ON_SPINE}"\t\t# "ufm HCA-1"\n'
    text += f'[1](ab) \t"{spine}"[18]\t\t# lid 99 4xNDR\n'
    back = read_back(text.encode(), "ibnetdiscover").fabric
    found = classify(back)
    assert found.family == "leaf-spine"
    assert [(f.code, f.where, f.message) for f in found.deviations] == [
        ("NP113", "ufm", f"is on {fabric.node_name(fabric.n_nodes - 1)}, a spine")
    ]
    assert {fault.severity for fault in check_fabric(back)} <= {"warning"}
    result = api.simulate(back, api.load_traffic("permutation-64mib"), routing="ecmp")
    assert result.efficiency.worst_flow > 0


def test_broken_direct_networks():
    """A torus and a dragonfly with a cable missing stay what they are; both routers are named."""
    for name, kind in (("dragonfly-72", "local"), ("slim-fly-q5", "local")):
        fabric = api.load_fabric(name)
        found = classify(imported(api.fail(fabric, [f"random:{kind}:1"], seed=2)))
        assert found.family == fabric.kind
        assert [fault.code for fault in found.deviations] == ["NP111", "NP111"]


def test_long_lists_are_counted():
    """Deviations beyond the limit are counted in the last."""
    fabric = api.fail(api.load_fabric("superpod-b200-4su"), ["random:leaf_spine:10%"])
    found = classify(fabric, most=3).deviations
    assert len(found) == 3
    assert "more)" in found[-1].message
