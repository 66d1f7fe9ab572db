"""Direct networks: counts against closed forms and published tables, graphs against networkx, refusals."""

import time
from math import prod
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError
from netplan.fabric import LINK_KINDS, Fabric
from netplan.fabric.checks import check_fabric
from netplan.fabric.direct import DIRECT_STRUCTURES
from netplan.fabric.measures import measure
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric
from netplan.topology.direct import group_numbers, join_groups
from netplan.topology.dragonfly import balanced_links, dragonfly_counts
from netplan.topology.dragonfly_plus import dragonfly_plus_counts
from netplan.topology.galois import Field
from netplan.topology.hyperx import hyperx_counts
from netplan.topology.slim_fly import FEASIBLE_Q, mms_edges, slim_fly_counts, slim_fly_degree
from netplan.topology.torus import torus_counts
from tests.fabrics import yaml_fabric
from tests.strategies import DIRECT, SPECS

# ruff: noqa: E501 -- the spec of a row stays on one line, as a user might write it

ONE = "hosts: {gpus: 1}"


def build(**spec: Any) -> Fabric:
    return build_fabric(FABRIC_SPEC.validate_python({"name": "x", "hosts": {"gpus": 1}, **spec}))


def inner(fabric: Fabric) -> int:
    return fabric.count_cables("local") + fabric.count_cables("global")


def counts(fabric: Fabric) -> tuple[int, int, int]:
    return fabric.n_endpoints, fabric.n_switches, inner(fabric)


def switch_graph(fabric: Fabric) -> nx.MultiGraph:
    """The switches by node id, one edge a cable: straight from the columns."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(np.flatnonzero(fabric.nodes.tier > 0).tolist())
    inside = np.flatnonzero(fabric.links.kind[0::2] != LINK_KINDS.index("host_leaf"))
    graph.add_edges_from(
        zip(fabric.links.src[2 * inside].tolist(), fabric.links.dst[2 * inside].tolist(), strict=True)
    )
    return graph


def degrees(fabric: Fabric, tier: int = 1) -> set[int]:
    graph = switch_graph(fabric)
    return {degree for node, degree in graph.degree() if fabric.nodes.tier[node] == tier}


def group_cables(fabric: Fabric) -> np.ndarray:
    """(groups, groups) global cables between each two groups."""
    rows = np.flatnonzero(fabric.links.kind == LINK_KINDS.index("global"))
    pod = fabric.nodes.pod
    table = np.zeros((pod.max() + 1,) * 2, int)
    np.add.at(table, (pod[fabric.links.src[rows]], pod[fabric.links.dst[rows]]), 1)
    return table


# ---- published counts ----------------------------------------------------------------------------


def test_deepseek_table_is_reproduced() -> None:
    # DeepSeek-V3 (ISCA 2025), Table 3: endpoints, switches, cables between them.
    assert dragonfly_counts(16, 32, 16, 511) == (table := dragonfly_counts(p=16, a=32, h=16, g=511))
    assert (table.endpoints, table.switches, table.cables) == (261_632, 16_352, 384_272)
    slim = slim_fly_counts(28, 21)
    assert (slim.endpoints, slim.switches, slim.cables) == (32_928, 1_568, 32_928)
    assert slim_fly_degree(28) + 21 == 63


def test_the_largest_dragonfly_is_built_in_time() -> None:
    start = time.perf_counter()
    built = build(kind="dragonfly", radix=64, groups=511, uneven=True)
    took = time.perf_counter() - start
    assert counts(built) == (261_632, 16_352, 384_272)
    between = group_cables(built)
    assert (between.sum(axis=1) == 512).all()
    off = between[~np.eye(511, dtype=bool)]
    assert set(off.tolist()) == {1, 2}
    assert ((between == 2).sum(axis=1) == 2).all(), "two pairs of each group have a second cable"
    assert took < 10  # 0.4 s on the machine it was written on
    start = time.perf_counter()
    assert measure(built).max_hops == 4
    assert time.perf_counter() - start < 30  # 1.4 s


@pytest.mark.parametrize(
    ("q", "routers", "degree"),  # Besta and Hoefler (SC 2014); q = 5 is Hoffman-Singleton
    [(5, 50, 7), (17, 578, 25), (19, 722, 29)],
)
def test_known_slim_flies(q: int, routers: int, degree: int) -> None:
    built = build(kind="slim-fly", q=q)
    assert built.n_switches == routers
    assert degrees(built) == {degree}
    assert measure(built).max_hops == 3


def test_balanced_dragonfly_of_the_paper() -> None:
    # Kim et al. (ISCA 2008): p = h = 4, a = 8: 1,056 terminals on routers of 15 ports; with 64 ports over 256 K.
    assert counts(build(kind="dragonfly", radix=15)) == (1056, 264, 264 * 7 // 2 + 33 * 32 // 2)
    h = balanced_links(64)
    assert dragonfly_counts(h, 2 * h, h, 2 * h * h + 1).endpoints > 256_000


def test_flattened_butterfly_of_the_paper() -> None:
    # Kim, Dally, Abts (ISCA 2007): a k-ary 3-flat has k^3 terminals on k^2 routers of 3k - 2 ports.
    built = build(kind="hyperx", dims=[8, 8])
    assert (built.n_endpoints, built.n_switches) == (512, 64)
    assert set(np.bincount(built.links.src)[built.nodes.tier > 0].tolist()) == {22}


# ---- the graphs are what they say ---------------------------------------------------------------------


def test_slim_fly_of_q_5_is_the_hoffman_singleton_graph() -> None:
    graph = nx.Graph(switch_graph(build(kind="slim-fly", q=5)))
    assert nx.is_isomorphic(graph, nx.hoffman_singleton_graph())


@pytest.mark.parametrize("q", [q for q in FEASIBLE_Q if q <= 32])
def test_slim_fly_has_diameter_two_and_the_degree_of_the_formula(q: int) -> None:
    low, high = mms_edges(q)
    n = 2 * q * q
    joined = np.zeros((n, n), np.float32)
    joined[low, high] = joined[high, low] = 1
    assert len(low) == q * q * slim_fly_degree(q) == joined.sum() / 2, "no cable twice"
    assert (joined.sum(axis=0) == slim_fly_degree(q)).all()
    assert (joined @ joined + joined + np.eye(n, dtype=np.float32) > 0).all()
    rack = np.stack([low, high]) // (2 * q)
    across = np.sort(rack[:, rack[0] != rack[1]], axis=0)
    _, cables = np.unique(across, axis=1, return_counts=True)
    assert len(cables) == q * (q - 1) // 2
    assert set(cables.tolist()) == {2 * q}, "2q cables between any two racks"


@pytest.mark.parametrize("q", FEASIBLE_Q[:14])
def test_fields_are_fields(q: int) -> None:
    field = Field(q)
    everything = np.arange(q)
    assert sorted(field.powers.tolist()) == list(range(1, q)), "the generator gives every nonzero element"
    add, times = field.total, field.product
    for table in (add, times[1:, 1:] - 1):
        assert (table == table.T).all()
        assert (np.sort(table, axis=1) == np.arange(len(table))).all()
    assert (field.difference[add, everything] == everything[:, None]).all()
    assert (add[add][:, :, :] == add[:, add]).all(), "(a + b) + c = a + (b + c)"
    assert (times[times] == times[:, times]).all()
    distributed = add[times[:, :, None], times[:, None, :]]
    assert (times[:, add] == distributed).all(), "a (b + c) = a b + a c"


@pytest.mark.parametrize(("dims", "wrap"), [([4, 3], True), ([3, 4, 5], True), ([5], True), ([4, 3], False)])
def test_a_torus_is_the_grid_of_networkx(dims: list[int], wrap: bool) -> None:
    mine = nx.Graph(switch_graph(build(kind="torus", dims=dims, wrap=wrap)))
    theirs = nx.grid_graph(dims, periodic=wrap)
    assert nx.is_isomorphic(mine, theirs)
    assert nx.diameter(mine) == nx.diameter(theirs)


def test_a_dimension_of_two_has_one_joint_or_two() -> None:
    assert degrees(build(kind="torus", dims=[2, 4])) == {3}
    assert degrees(build(kind="torus", dims=[2, 4], pair_cables=2)) == {4}
    assert degrees(build(kind="torus", dims=[2, 4], bundles=[3, 1])) == {5}
    assert degrees(build(kind="torus", dims=[2, 2], wrap=False)) == {2}


@pytest.mark.parametrize("dims", [[5], [4, 3], [2, 3, 4]])
def test_a_hyperx_is_a_product_of_complete_graphs(dims: list[int]) -> None:
    mine = nx.Graph(switch_graph(build(kind="hyperx", dims=dims)))
    theirs = nx.complete_graph(dims[0])
    for size in dims[1:]:
        theirs = nx.cartesian_product(theirs, nx.complete_graph(size))
    assert nx.is_isomorphic(mine, theirs)
    assert nx.diameter(mine) == len(dims)


@pytest.mark.parametrize("arrangement", ["palmtree", "consecutive"])
@pytest.mark.parametrize(
    ("radix", "groups", "uneven"), [(11, None, False), (11, 10, False), (11, 4, False), (7, 8, True)]
)
def test_a_dragonfly_joins_its_groups_and_its_routers(
    arrangement: str, radix: int, groups: int | None, uneven: bool
) -> None:
    built = build(kind="dragonfly", radix=radix, groups=groups, uneven=uneven, arrangement=arrangement)
    h = balanced_links(radix)
    a, g = 2 * h, groups or 2 * h * h + 1
    assert counts(built) == (g * a * h, g * a, g * a * (a - 1) // 2 + g * a * h // 2)
    assert degrees(built) == {a - 1 + h}
    graph = nx.Graph(switch_graph(built))
    assert nx.diameter(graph) <= 3
    for group in range(g):
        members = [n for n in graph if built.nodes.pod[n] == group]
        assert nx.density(graph.subgraph(members)) == 1
    between = group_cables(built)[~np.eye(g, dtype=bool)]
    share = a * h / (g - 1)
    assert set(between.tolist()) == {int(share), int(np.ceil(share))}


def test_parallel_cables_of_two_groups_are_on_different_routers() -> None:
    built = build(
        kind="dragonfly", router={"endpoints": 2, "global_links": 3}, group={"routers": 4}, groups=4
    )
    rows = np.flatnonzero(built.links.kind == LINK_KINDS.index("global"))
    pairs = np.stack([built.links.src[rows], built.nodes.pod[built.links.dst[rows]]])
    assert len(np.unique(pairs, axis=1).T) == len(rows) == 4 * 12


def test_dragonfly_plus_groups_are_leaf_spine() -> None:
    built = build(kind="dragonfly-plus", radix=8, groups=9)
    n = dragonfly_plus_counts(4, 4, 4, 4, 9)
    assert counts(built) == (n.endpoints, n.switches, n.cables)
    assert degrees(built, 1) == {4}
    assert degrees(built, 2) == {8}
    graph = nx.Graph(switch_graph(built))
    group = graph.subgraph([n for n in graph if built.nodes.pod[n] == 3])
    assert nx.is_isomorphic(group, nx.complete_bipartite_graph(4, 4))
    assert (group_cables(built)[~np.eye(9, dtype=bool)] == 2).all()
    assert (built.nodes.tier[built.links.src[built.links.kind == LINK_KINDS.index("global")]] == 2).all()


@settings(max_examples=60)
@given(
    st.integers(2, 6),
    st.integers(1, 4),
    st.integers(2, 30),
    st.booleans(),
    st.sampled_from(["palmtree", "consecutive"]),
)
def test_global_ports_are_used_once(routers: int, ports: int, groups: int, uneven: bool, how: str) -> None:
    if groups not in group_numbers(routers * ports, uneven=uneven):
        return
    ptr, low, high = join_groups(groups, routers, ports, how)
    pair = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    a, b = np.triu_indices(groups, 1)
    used = np.zeros((groups, routers), int)
    np.add.at(used, (a[pair], low), 1)
    np.add.at(used, (b[pair], high), 1)
    assert (used == ports).all(), "every router uses its global ports, no more"
    bundle = np.diff(ptr)
    assert bundle.max() - bundle.min() <= (1 if uneven else 0)


# ---- whatever the numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DIRECT)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), share=st.floats(0.1, 1))
def test_every_direct_fabric_is_sound(kind: str, data: st.DataObject, share: float) -> None:
    spec = data.draw(SPECS[kind])
    hosts = {key: value for key, value in spec["hosts"].items() if key != "count"}
    try:
        full = build(**{**spec, "hosts": hosts})
    except FabricError:
        assume(False)  # fewer ports than NICs, routers in a row that are no multiple of them, groups
        raise
    check_direct(full, spec, hosts, share)


def check_direct(full: Fabric, spec: dict[str, Any], hosts: dict[str, Any], share: float) -> None:
    """Raise unless a direct fabric is what every consumer relies on."""
    nics, attach = hosts.get("nics", hosts["gpus"]), hosts["attach"]
    assert type(full.direct) is DIRECT_STRUCTURES[spec["kind"]]
    assert [fault for fault in check_fabric(full) if fault.severity == "error"] == []
    # Every router has as many NICs as it may have but for what no whole host fills.
    on_router = np.bincount(full.endpoints.leaf, minlength=full.n_nodes)[full.nodes.tier == 1]
    assert len(set(on_router.tolist())) == 1
    if attach == "spread":
        router = full.endpoints.leaf.reshape(-1, nics)
        assert (np.diff(router, axis=1) == 1).all()
        assert (full.nodes.rail[full.endpoints.leaf] == full.endpoints.rail).all()
        assert (full.nodes.pod[router] == full.nodes.pod[router[:, :1]]).all()
    else:
        assert (full.endpoints.leaf.reshape(-1, nics) == full.endpoints.leaf[::nics, None]).all()
    # Fewer hosts fill the same routers in order.
    count = max(int(full.n_hosts * share), 1)
    groups = getattr(full.direct, "groups", None)
    spec = spec if groups is None else {**spec, "groups": groups}
    part = build(**{**spec, "hosts": {**hosts, "count": count}})
    assert part.n_hosts == count
    assert (part.n_switches, inner(part)) == (full.n_switches, inner(full))
    index = np.arange(part.n_endpoints)
    shift = full.n_hosts - count
    assert (part.endpoints.leaf + shift == full.endpoints.leaf[index]).all()


def test_a_grid_counts_as_its_formulas() -> None:
    for dims, bundles in (([4, 3, 2], [1, 2, 3]), ([5], [2]), ([2, 2], [1, 1])):
        torus = build(kind="torus", dims=dims, bundles=bundles)
        n = torus_counts(dims, bundles, [size > 2 for size in dims], 1)
        assert counts(torus) == (n.endpoints, n.switches, n.cables)
        hyperx = build(kind="hyperx", dims=dims, bundles=bundles, router={"endpoints": 2})
        m = hyperx_counts(dims, bundles, 2)
        assert counts(hyperx) == (m.endpoints, m.switches, m.cables)
        assert m.switches == n.switches == prod(dims)


# ---- sizes that are left out ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "sizes"),
    [
        ({"kind": "dragonfly", "hosts": {"gpus": 1, "count": 72}}, (72, 36)),  # h = 2: 9 groups of 4 routers
        (
            {"kind": "dragonfly", "hosts": {"gpus": 1, "count": 73}},
            (73, 42),
        ),  # h = 3: 5 groups of 18; 7 divide
        (
            {"kind": "dragonfly", "radix": 15, "hosts": {"gpus": 1, "count": 100}},
            (100, 40),
        ),  # 4 groups do not divide
        ({"kind": "dragonfly", "group": {"routers": 4}}, (4 * 2 * 9, 36)),
        ({"kind": "dragonfly", "router": {"endpoints": 2}}, (72, 36)),
        ({"kind": "dragonfly-plus", "hosts": {"gpus": 1, "count": 20}}, (20, 20)),
        ({"kind": "dragonfly-plus", "group": {"leaves": 2}}, (20, 20)),
        ({"kind": "slim-fly", "hosts": {"gpus": 1, "count": 201}}, (201, 98)),
        ({"kind": "slim-fly", "radix": 11}, (200, 50)),
        ({"kind": "slim-fly", "radix": 11, "hosts": {"gpus": 1, "count": 40}}, (40, 18)),
        ({"kind": "torus", "dims": [3, 3], "hosts": {"gpus": 4}}, (36, 9)),
        ({"kind": "hyperx", "dims": [4, 3], "hosts": {"gpus": 1}}, (36, 12)),
    ],
)
def test_sizes_follow(spec: dict[str, Any], sizes: tuple[int, int]) -> None:
    built = build(**spec)
    assert (built.n_endpoints, built.n_switches) == sizes


# ---- refusals -----------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, list[str]]] = [
    ("kind: dragonfly, radix: 2", ["radix = 2", "radix of at least 3"]),
    ("kind: dragonfly, radix: 15, groups: 34", ["a group has 32 global ports", "feasible: groups of", "33"]),
    (
        "kind: dragonfly, radix: 15, groups: 31",
        ["32 global ports do not divide into equal bundles to 30", "17, 33", "uneven: true"],
    ),
    (
        "kind: dragonfly, router: {endpoints: 1, global_links: 1}, group: {routers: 9}, groups: 9, uneven: true",
        ["9 groups with 1 global ports left over each: an odd number", "8, 10"],
    ),
    (
        "kind: dragonfly, radix: 15, group: {routers: 16}",
        ["8 endpoints + 15 routers of its group x 1 + 8 global links = 31 ports; the radix is 15", "radix of at least 31",
         "4 endpoints, 8 routers, 4 global links"],
    ),
    ("kind: dragonfly, radix: 7, hosts: {gpus: 8}", ["a host has 8 NICs, a router 2 NIC ports", "spread"]),
    ("kind: dragonfly, radix: 15, hosts: {gpus: 3, attach: spread}", ["3 NICs do not divide the 8 routers", "1, 2"]),
    ("kind: dragonfly, radix: 64, hosts: {gpus: 8, nics: 3}", ["hosts.nics = 3 and hosts.gpus = 8"]),
    ("kind: dragonfly, radix: 7, groups: 9, hosts: {gpus: 1, count: 73}", ["the routers hold 72", "more groups"]),
    ("kind: dragonfly, radix: 7, hosts: {gpus: 1, count: 73}", ["the hosts fill 10 groups", "at most 9 groups"]),
    ("kind: dragonfly, radix: 200", ["endpoints; netplan builds up to"]),
    ("kind: dragonfly, radix: 400, hosts: {gpus: 1, count: 10}, groups: 20001", ["cables; netplan builds up to"]),
    ("kind: dragonfly-plus, radix: 1", ["radix = 1", "radix of at least 2"]),
    ("kind: dragonfly-plus, radix: 8, group: {spines: 5}", ["a leaf: 5 endpoints + 5 spines x 1 = 10 ports", "4 leaves"]),
    ("kind: dragonfly-plus, radix: 8, spine: {global_links: 9}, group: {leaves: 4, spines: 4}", ["a spine: 4 leaves"]),
    ("kind: dragonfly-plus, radix: 8, groups: 18", ["16 global ports", "17"]),
    ("kind: slim-fly, radix: 6", ["q = 3", "ports"]),
    ("kind: slim-fly, q: 5, radix: 10", ["4 endpoints + 7 other routers = 11 ports", "q of at most 4"]),
    ("kind: slim-fly, radix: 11, hosts: {gpus: 1, count: 201}", ["more than any Slim Fly of these routers", "200"]),
    ("kind: slim-fly, hosts: {gpus: 1, count: 4000000}", ["more than any Slim Fly up to q = 128"]),
    ("kind: torus, dims: [4, 4], radix: 4, hosts: {gpus: 1}", ["1 endpoints + 4 to its neighbours (4 x 4) = 5"]),
    (
        "kind: torus, dims: [4, 4], bundles: [2, 1], radix: 7, router: {endpoints: 2}, hosts: {gpus: 1}",
        ["(4 x 4, bundles 2 1) = 8 ports", "at most 1 endpoints"],
    ),
    ("kind: torus, dims: [10000, 10000]", ["endpoints; netplan builds up to"]),
    ("kind: torus, dims: [4, 4], hosts: {gpus: 1, count: 17}", ["the routers hold 16", "larger dims"]),
    ("kind: torus, dims: [10000, 1000], hosts: {gpus: 1, count: 5}", ["10,000,000 switches; netplan builds"]),
    ("kind: hyperx, dims: [4, 4], hosts: {gpus: 8}", ["a router 4 NIC ports: no host fits"]),
    ("kind: hyperx, dims: [3, 4], hosts: {gpus: 2, attach: spread}", ["2 NICs do not divide the 3 routers"]),
    ("kind: hyperx, dims: [4, 4], radix: 9, hosts: {gpus: 1}", ["4 endpoints + 6 to others", "at most 3 endpoints"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_cannot_be_built_is_refused_with_what_can(text: str, words: list[str]) -> None:
    hosts = "" if "hosts:" in text else f", {ONE}"
    start = time.perf_counter()
    with pytest.raises(FabricError) as caught:
        yaml_fabric(f"{{name: x, {text}{hosts}}}")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert time.perf_counter() - start < 3
