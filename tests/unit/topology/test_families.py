"""What holds for every fabric of a family, whatever its numbers: the contract, and the counts."""

import time
from collections import Counter
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError
from netplan.fabric import Fabric
from netplan.fabric.checks import check_fabric
from netplan.fabric.convert import fabric_to_dict, node_names
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import FAMILIES, build_fabric
from netplan.topology.sizes import divisors, equal_bundle
from tests import fabrics, strategies
from tests.strategies import SPECS


def build(spec: dict[str, Any]) -> Fabric:
    """Build a spec; infeasible ones are not what is tested."""
    try:
        return build_fabric(FABRIC_SPEC.validate_python(spec))
    except FabricError:
        assume(False)
        raise


def check_contract(fabric: Fabric) -> None:
    """Raise unless the fabric is what every consumer relies on."""
    assert [fault for fault in check_fabric(fabric) if fault.severity == "error"] == []
    n = fabric.nodes
    # Hosts come in order, their NICs in order of rail, the ports of a NIC in order of plane, each on its
    # own cable.
    assert (np.diff(fabric.endpoints.host) >= 0).all()
    for h in range(fabric.n_hosts):
        mine = slice(fabric.endpoint_ptr[h], fabric.endpoint_ptr[h + 1])
        rails, planes = fabric.endpoints.rail[mine], fabric.endpoints.plane[mine]
        assert sorted(set(rails.tolist())) == list(range(int(rails.max()) + 1))
        ports = list(zip(rails.tolist(), planes.tolist(), strict=True))
        assert ports == sorted(set(ports))
        assert len({rails.tolist().count(rail) for rail in rails}) == 1
        assert (fabric.endpoints.host[mine] == fabric.host_ids[h]).all()
        assert (fabric.endpoints.gpu[mine] < fabric.gpus_per_host[h]).all()
    assert len(set(fabric.endpoints.cable.tolist())) == fabric.n_endpoints
    # A NIC is on a leaf of its rail, where leaves have rails.
    leaf_rail = n.rail[fabric.endpoints.leaf]
    assert ((leaf_rail == -1) | (leaf_rail == fabric.endpoints.rail)).all()
    # And in a plane of its own, where switches have planes.
    leaf_plane = n.plane[fabric.endpoints.leaf]
    assert ((leaf_plane == -1) | (leaf_plane == fabric.endpoints.plane)).all()
    # Cables stay in their pod, in their rail where both ends have one, in their site but for spans.
    low, high, kind = fabric.links.src[0::2], fabric.links.dst[0::2], fabric.links.kind[0::2]
    assert (n.pod[low] == n.pod[high])[(kind == 1) & (n.pod[high] >= 0)].all()
    assert (n.plane[low] == n.plane[high])[(kind == 1) | (kind == 2)].all()
    assert (n.rail[low] == n.rail[high])[(kind == 1) & (n.rail[high] >= 0)].all()
    assert (n.site[low] == n.site[high])[kind != 4].all()
    # The columns are read-only, and the spec is kept.
    for table in (fabric.nodes, fabric.links, fabric.endpoints):
        assert not any(column.flags.writeable for column in vars(table).values())
    assert fabric.spec is not None
    assert fabric.spec["kind"] == fabric.kind
    assert len(set(node_names(fabric))) == fabric.n_nodes


def bundles(fabric: Fabric, kind: int) -> dict[int, set[int]]:
    """Per lower switch, the numbers of parallel cables to its upper neighbours."""
    rows = fabric.links.kind[0::2] == kind
    pairs = Counter(
        zip(fabric.links.src[0::2][rows].tolist(), fabric.links.dst[0::2][rows].tolist(), strict=True)
    )
    found: dict[int, set[int]] = {}
    for (low, _), count in pairs.items():
        found.setdefault(low, set()).add(count)
    return found


def downlinks(fabric: Fabric) -> np.ndarray:
    return np.bincount(fabric.endpoints.leaf, minlength=fabric.n_nodes)


def test_every_family_has_a_strategy() -> None:
    assert set(SPECS) == set(FAMILIES.names())


@pytest.mark.parametrize("kind", SPECS)
@given(data=st.data())
@settings(max_examples=40)
def test_contract_of_the_family(kind: str, data: st.DataObject) -> None:
    spec = data.draw(SPECS[kind])
    fabric = build(spec)
    check_contract(fabric)
    assert fabric_to_dict(fabric) == fabric_to_dict(build(spec))
    if kind != "custom":
        for number in (1, 2, 3):
            assert all(len(counts) == 1 for counts in bundles(fabric, number).values())


@pytest.mark.parametrize("name", fabrics.NAMED)
def test_contract_of_the_drawn_fabrics(name: str) -> None:
    check_contract(fabrics.NAMED[name]())


def test_families_say_what_they_leave_out() -> None:
    for kind in FAMILIES.names():
        family = FAMILIES.find(kind)
        assert family.kind == kind
        assert family.summary
        assert family.leaves_out
    with pytest.raises(FabricError, match="leaf-spine"):
        FAMILIES.find("leafspine")


# ---- counts ------------------------------------------------------------------------------------


@given(
    hosts=st.integers(1, 60),
    nics=st.sampled_from([1, 2, 4]),
    d=st.integers(4, 8),
    u=st.integers(1, 8),
    r=st.integers(8, 24),
)
def test_counts_of_leaf_spine(hosts: int, nics: int, d: int, u: int, r: int) -> None:
    leaf = {"radix": 16, "downlinks": d, "uplinks": u}
    spec = {
        "name": "x",
        "kind": "leaf-spine",
        "radix": r,
        "hosts": {"count": hosts, "gpus": nics},
        "leaf": leaf,
    }
    fabric = build(spec)
    leaves = ceil(hosts / (d // nics))
    spines = next(s for s in range(1, u + 1) if u % s == 0 and s * r >= leaves * u) if leaves > 1 else 0
    assert (fabric.count_tier("leaf"), fabric.count_tier("spine")) == (leaves, spines)
    assert fabric.count_cables("host_leaf") == hosts * nics
    assert fabric.count_cables("leaf_spine") == (leaves * u if spines else 0)
    assert downlinks(fabric).max() <= d
    # All NICs of a host on one leaf; leaves filled in order.
    assert all(len(set(fabric.endpoints.leaf[h * nics : (h + 1) * nics])) == 1 for h in range(hosts))


@given(k=st.sampled_from([2, 4, 6, 8, 10]))
def test_counts_of_fat_tree(k: int) -> None:
    fabric = build({"name": "x", "kind": "fat-tree", "k": k})
    assert fabric.n_hosts == k**3 // 4
    assert fabric.n_switches == 5 * k**2 // 4
    assert fabric.links.n_cables == 3 * k**3 // 4
    assert set(np.bincount(fabric.links.src)[fabric.nodes.tier > 0]) == {k}


@given(
    hosts=st.integers(1, 60), d=st.integers(1, 6), u=st.integers(1, 6), p=st.integers(1, 6),
    sd=st.integers(2, 8), v=st.integers(1, 6), r=st.integers(4, 16),
)  # fmt: skip
def test_counts_of_clos(hosts: int, d: int, u: int, p: int, sd: int, v: int, r: int) -> None:
    spec = {
        "name": "x", "kind": "clos", "radix": 16, "hosts": {"count": hosts, "gpus": 1},
        "leaf": {"downlinks": d, "uplinks": u}, "pod": {"leaves": p},
        "spine": {"downlinks": sd, "uplinks": v}, "core": {"radix": r},
    }  # fmt: skip
    fabric = build(spec)
    leaves = ceil(hosts / d)
    pods = ceil(leaves / min(p, leaves))
    spines = equal_bundle(min(p, leaves), u, sd)
    cores = equal_bundle(pods, v, r)
    assert spines is not None
    assert cores is not None
    counts = (leaves, pods * spines, spines * cores)
    assert tuple(map(fabric.count_tier, ("leaf", "spine", "core"))) == counts
    cables = (hosts, leaves * u, pods * spines * v)
    assert tuple(map(fabric.count_cables, ("host_leaf", "leaf_spine", "spine_core"))) == cables
    assert downlinks(fabric).max() <= d
    # A core sees each pod as often as any other, over one position of spines.
    assert {tuple(sorted(c)) for c in bundles(fabric, 2).values()} == {(v // cores,)}


@given(
    hosts=st.integers(1, 40), rails=st.sampled_from([1, 2, 4, 8]), d=st.integers(1, 8), u=st.integers(1, 8)
)
def test_counts_of_rail_optimized(hosts: int, rails: int, d: int, u: int) -> None:
    spec = {
        "name": "x", "kind": "rail-optimized", "radix": 64, "hosts": {"count": hosts, "gpus": rails},
        "leaf": {"downlinks": d, "uplinks": u},
    }  # fmt: skip
    fabric = build(spec)
    leaves = ceil(hosts / d) * rails
    assert fabric.count_tier("leaf") == leaves
    assert fabric.count_tier("spine") == (equal_bundle(leaves, u, 64) if leaves > 1 else 0)
    assert fabric.count_cables("leaf_spine") == (leaves * u if leaves > 1 else 0)
    assert downlinks(fabric).max() <= d
    # Hosts of a block meet on one leaf per rail.
    leaf = fabric.endpoints.leaf.reshape(hosts, rails)
    for block in range(ceil(hosts / d)):
        assert all(len(set(column)) == 1 for column in leaf[block * d : (block + 1) * d].T.tolist())


@given(spec=strategies.metro_specs())
@settings(max_examples=40)
def test_counts_of_metro(spec: dict[str, Any]) -> None:
    fabric = build(spec)
    metro, sites = spec["metro"], len(spec["sites"])
    m = metro["switches"]
    assert fabric.count_tier("metro") == sites * m
    n_spans = sites * (sites - 1) // 2
    spans = 2 if sites == 3 else 1  # at each site, in a mesh or ring of two or three
    needed = []
    for number in range(sites):
        here = fabric.nodes.site[fabric.endpoints.host] == number
        needed.append(ceil(fabric.endpoint_rate[here].sum() / metro["oversubscription"] / 50e9))
    total = 0
    for a in range(sites):
        for b in range(a + 1, sites):
            total += ceil(max(ceil(needed[a] / spans), ceil(needed[b] / spans)) / m) * m
    assert fabric.count_cables("inter_site") == total
    assert n_spans <= total
    # Every switch of a site's top tier has the same number of uplinks, enough for what the site sends.
    rows = fabric.links.kind[0::2] == 3
    for number in range(sites):
        mine = rows & (fabric.nodes.site[fabric.links.src[0::2]] == number)
        counts = set(Counter(fabric.links.src[0::2][mine].tolist()).values())
        assert len(counts) == 1
        assert mine.sum() >= max(needed[number], m)


def test_pods_are_counted_over_all_sites() -> None:
    fabric = fabrics.metro_two_sites()
    leaves = fabric.nodes.tier == 1
    assert fabric.nodes.pod[leaves].tolist() == [0] * 4 + [1] * 4


def test_spans_follow_layout_and_route_factor() -> None:
    fabric = {
        "name": "f", "kind": "leaf-spine", "radix": 4, "hosts": {"count": 4, "gpus": 1},
        "spine": {"radix": 16, "count": 1},
    }  # fmt: skip
    sites = [
        {"name": f"s{i}", "position": (x, y), "fabric": fabric}
        for i, (x, y) in enumerate([(0, 0), (3000, 0), (3000, 4000), (0, 4000)])
    ]
    lengths = {}
    for layout in ("ring", "mesh"):
        metro = {"radix": 16, "switches": 1, "route_factor": 1.5, "layout": layout}
        built = build({"name": "m", "kind": "metro", "sites": tuple(sites), "metro": metro})
        rows = built.links.kind[0::2] == 4
        lengths[layout] = sorted(set(built.links.length[0::2][rows].tolist()))
        assert built.links.delay[0::2][rows].min() == pytest.approx(4500 * 5.05e-9)
    assert lengths == {"ring": [4500.0, 6000.0], "mesh": [4500.0, 6000.0, 7500.0]}


def test_listed_spans_keep_their_length_and_links() -> None:
    fabric = {
        "name": "f", "kind": "leaf-spine", "radix": 4, "hosts": {"count": 4, "gpus": 1},
        "spine": {"radix": 16, "count": 1},
    }  # fmt: skip
    built = build(
        {
            "name": "m", "kind": "metro", "metro": {"radix": 16, "switches": 2},
            "sites": ({"name": "a", "fabric": fabric}, {"name": "b", "fabric": fabric}),
            "spans": ({"a": "a", "b": "b", "length": 1e4, "links": 3}, {"a": "b", "b": "a", "length": 2e4}),
        }
    )  # fmt: skip
    rows = built.links.kind[0::2] == 4
    # The second span takes half of 4 links.
    assert Counter(built.links.length[0::2][rows].tolist()) == {1e4: 3, 2e4: 2}


def test_names_say_site_pod_and_place() -> None:
    fabric = fabrics.metro_two_sites()
    assert fabric.node_name(0) == "north/host-00000"
    assert {"south/leaf-b1-r1", "south/spine-0-3", "north-metro-1"} <= set(node_names(fabric))
    assert fabric.link_name(2 * fabric.links.n_cables - 2) == "north-metro-1 -> south-metro-1 #4"


def test_custom_nics_follow_the_order_of_the_file() -> None:
    fabric = fabrics.yaml_fabric(
        """
        name: x
        kind: custom
        hosts: [{name: a, gpus: 4}, {name: b, gpus: 4}]
        switches:
        - {name: l, tier: 1, radix: 8, pod: 7, rail: 3}
        - {name: m, tier: 1, radix: 8}
        - {name: s, tier: 2, radix: 8}
        links:
        - {a: b, b: m, speed: 100G}
        - {a: l, b: a, speed: 400G, length: 5 m}
        - {a: b, b: l, speed: 200G, count: 2}
        - {a: l, b: s, speed: 400G}
        - {a: s, b: m, speed: 400G}
        """
    )
    e = fabric.endpoints
    assert [fabric.node_name(int(h)) for h in e.host] == ["a", "b", "b", "b"]
    assert [fabric.node_name(int(leaf)) for leaf in e.leaf] == ["l", "m", "l", "l"]
    assert (e.rail.tolist(), e.gpu.tolist()) == ([0, 0, 1, 2], [0, 0, 1, 2])
    assert (fabric.endpoint_rate / 12.5e9).tolist() == [4, 1, 2, 2]
    assert fabric.links.length[0] == 5.0
    assert (fabric.nodes.pod[2], fabric.nodes.rail[2]) == (7, 3)


# ---- arithmetic --------------------------------------------------------------------------------


@given(number=st.integers(1, 5000))
def test_divisors_are_all_divisors(number: int) -> None:
    assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]


@given(lower=st.integers(1, 200), uplinks=st.integers(1, 200), ports=st.integers(1, 200))
def test_equal_bundle_is_the_smallest_that_fits(lower: int, uplinks: int, ports: int) -> None:
    fits = [n for n in range(1, uplinks + 1) if uplinks % n == 0 and n * ports >= lower * uplinks]
    assert equal_bundle(lower, uplinks, ports) == min(fits, default=None)


def test_the_largest_fabric_is_built_in_a_fraction_of_a_second() -> None:
    text = (
        "{name: big, kind: rail-optimized, tiers: 3, radix: 64, hosts: {count: 16384}, pod: {by: rail},"
        " core: {domains: 2}}"
    )
    fabrics.yaml_fabric(text)
    start = time.perf_counter()
    assert fabrics.yaml_fabric(text).n_gpus == 131_072
    # 0.1 s on an idle core.
    assert time.perf_counter() - start < 1.0
