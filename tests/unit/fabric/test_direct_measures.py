"""Measures of direct networks: against graph searches, all halvings of small ones, and closed forms."""

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from netplan.fabric import Fabric
from netplan.fabric.direct_measures import count_hops, cut_capacity, measure_direct
from netplan.fabric.failures import apply_failures
from netplan.fabric.measures import _endpoint_groups, _search, first_half, max_flow, measure, oversubscription
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric


def build(**spec: Any) -> Fabric:
    return build_fabric(FABRIC_SPEC.validate_python({"name": "x", "hosts": {"gpus": 1}, **spec}))


SMALL: list[dict[str, Any]] = [
    {"kind": "dragonfly", "radix": 7},
    {"kind": "dragonfly", "radix": 7, "groups": 3, "hosts": {"gpus": 1, "count": 17}},
    {"kind": "dragonfly", "radix": 7, "groups": 8, "uneven": True, "arrangement": "consecutive"},
    {"kind": "dragonfly-plus", "radix": 4},
    {"kind": "dragonfly-plus", "radix": 6, "groups": 4, "hosts": {"gpus": 1, "count": 20}},
    {"kind": "slim-fly", "q": 4},
    {"kind": "slim-fly", "q": 5, "hosts": {"gpus": 2, "count": 60}},
    {"kind": "torus", "dims": [5, 4]},
    {"kind": "torus", "dims": [3, 2, 4], "wrap": False, "hosts": {"gpus": 1, "count": 13}},
    {"kind": "torus", "dims": [3, 4], "router": {"endpoints": 2}, "hosts": {"gpus": 3, "attach": "spread"}},
    {"kind": "hyperx", "dims": [4, 3]},
    {"kind": "hyperx", "dims": [2, 3, 4], "bundles": [2, 1, 1], "hosts": {"gpus": 1, "count": 31}},
]


@pytest.mark.parametrize("spec", SMALL, ids=str)
def test_hops_are_those_of_breadth_first_searches(spec: dict[str, Any]) -> None:
    built = build(**spec)
    graph = nx.Graph()
    inside = np.flatnonzero(built.nodes.tier[built.links.src] > 0)
    graph.add_edges_from(zip(built.links.src[inside].tolist(), built.links.dst[inside].tolist(), strict=True))
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    found: dict[int, int] = {}
    for a, b in combinations(built.endpoints.leaf.tolist(), 2):
        hops = distance[a][b] + 1
        found[hops] = found.get(hops, 0) + 1
    assert built.direct is not None
    assert count_hops(built.direct) == found
    measured = measure(built)
    assert measured.direct is not None
    total = sum(found.values())
    assert measured.direct.average_hops == pytest.approx(sum(h * n for h, n in found.items()) / total)
    assert measured.direct.hops == pytest.approx({str(h): n / total for h, n in found.items()})
    assert measured.max_hops == max(found) == _search(built).max_hops


@pytest.mark.parametrize("spec", SMALL, ids=str)
def test_the_cut_is_no_less_than_the_flow_across_it(spec: dict[str, Any]) -> None:
    # Max-flow = min-cut: no cut that separates the halves carries less than the flow between them.
    built = build(**spec)
    first = first_half(built, _endpoint_groups(built))
    line = min(built.endpoint_rate[first].sum(), built.endpoint_rate[~first].sum())
    assert built.direct is not None
    _, fraction = measure_direct(built, built.direct)
    assert fraction is not None
    grid = spec["kind"] in ("torus", "hyperx")
    if not grid:  # the cut is the canonical one
        assert fraction >= min(max_flow(built, first) / line, 1) - 1e-9


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"kind": "torus", "dims": [4, 2]}, 4 / 4),
        ({"kind": "torus", "dims": [4, 3], "router": {"endpoints": 2}}, 6 / 12),
        ({"kind": "torus", "dims": [3, 4], "wrap": False, "router": {"endpoints": 2}}, 3 / 12),
        ({"kind": "torus", "dims": [8], "router": {"endpoints": 1}}, 2 / 4),
        ({"kind": "hyperx", "dims": [4, 2], "router": {"endpoints": 4}}, 4 / 16),
        ({"kind": "hyperx", "dims": [4, 3], "bundles": [1, 2], "router": {"endpoints": 3}}, 12 / 18),
        ({"kind": "hyperx", "dims": [6], "router": {"endpoints": 6}}, 9 / 18),
        ({"kind": "dragonfly", "radix": 3}, None),
        ({"kind": "dragonfly", "radix": 7, "groups": 3}, None),
    ],
    ids=str,
)
def test_the_bisection_is_the_least_of_all_halvings(spec: dict[str, Any], least: float | None) -> None:
    # All ways to halve the routers, each with its endpoints, of networks of up to 12 routers.
    built = build(**spec)
    assert built.direct is not None
    _, fraction = measure_direct(built, built.direct)
    router = built.endpoints.leaf
    routers = np.unique(router)
    best = np.inf
    for chosen in combinations(routers.tolist(), len(routers) // 2):
        side = np.zeros(built.n_nodes, bool)
        side[list(chosen)] = True
        first = side[router]
        rate = min(built.endpoint_rate[first].sum(), built.endpoint_rate[~first].sum())
        best = min(best, cut_capacity(built, side, first) / rate)
    assert fraction == pytest.approx(min(best, 1))
    if least is not None:
        assert fraction == pytest.approx(least)


@pytest.mark.parametrize(
    ("spec", "fraction", "cut"),
    [
        # Dally (1990): 2 N K / n cables over N T / 2 endpoints, the longest dimension.
        ({"kind": "torus", "dims": [8, 8, 8], "router": {"endpoints": 4}}, 2 * 64 / 1024, "dimension"),
        ({"kind": "torus", "dims": [4, 16], "router": {"endpoints": 1}}, 2 * 4 / 32, "dimension 1"),
        # Ahn et al. (SC 2009): K S / (2 T), the dimension of the least K S. Domke et al. (SC 2019): 57.1 %.
        ({"kind": "hyperx", "dims": [12, 8], "router": {"endpoints": 7}}, 8 / 14, "dimension 1"),
        ({"kind": "hyperx", "dims": [8, 8], "bundles": [1, 2]}, 0.5, "dimension 0"),
        # Half of the groups against the others: (g/2)^2 bundles over g a p / 2 endpoints.
        ({"kind": "dragonfly", "radix": 15, "groups": 2}, 32 / 32, "groups in order"),
        ({"kind": "dragonfly", "radix": 11, "groups": 10}, 25 * 2 / (5 * 18), "groups in order"),
        ({"kind": "dragonfly-plus", "radix": 8, "groups": 2}, 1, "groups in order"),
    ],
    ids=str,
)
def test_closed_forms_of_the_bisection(spec: dict[str, Any], fraction: float, cut: str) -> None:
    measured = measure(build(**spec))
    assert measured.bisection_fraction == pytest.approx(fraction)
    assert measured.direct is not None
    assert measured.direct.bisection_cut.startswith(cut)


def test_ratios_are_those_of_the_papers_letters() -> None:
    dragonfly = measure(build(kind="dragonfly", radix=15)).direct
    assert dragonfly is not None
    assert dragonfly.local_over_injection == pytest.approx(7 / 4)  # (a - 1) / p
    assert dragonfly.global_over_injection == pytest.approx(1)  # h / p
    faster = measure(build(kind="dragonfly", radix=15, global_speed="800G", local_speed="100G")).direct
    assert faster is not None
    assert faster.local_over_injection == pytest.approx(7 / 16)
    assert faster.global_over_injection == pytest.approx(2)
    plus = measure(build(kind="dragonfly-plus", radix=8, leaf={"endpoints": 2}, group={"spines": 4})).direct
    assert plus is not None
    assert plus.local_over_injection == pytest.approx(2)  # S / p
    assert plus.global_over_injection == pytest.approx(2)  # S h / (L p)
    grid = measure(build(kind="torus", dims=[4, 4], bundles=[2, 1])).direct
    assert grid is not None
    assert grid.local_over_injection == pytest.approx(6)
    assert grid.global_over_injection is None


def test_direct_networks_have_no_oversubscription() -> None:
    assert oversubscription(build(kind="dragonfly", radix=7)) == {"leaf": None}
    assert oversubscription(build(kind="torus", dims=[4, 4])) == {"leaf": None}
    plus = build(kind="dragonfly-plus", radix=8, leaf={"endpoints": 4}, group={"spines": 2, "leaves": 4})
    assert oversubscription(plus) == {"leaf": 2, "spine": None}


def test_others_and_damaged_ones_have_no_direct_figures() -> None:
    built = build(kind="dragonfly", radix=7)
    damaged = measure(apply_failures(built, ["random:global:3"]))
    assert damaged.direct is None
    assert damaged.max_hops is not None
    assert damaged.bisection_fraction is not None
    whole = measure(built).bisection_fraction
    assert whole is not None
    assert damaged.bisection_fraction <= whole
    fewer = measure(apply_failures(built, ["random:host:3"])).direct
    assert fewer is not None, "the structure is kept when only hosts are gone"


def test_one_endpoint_has_no_pairs() -> None:
    measured = measure(build(kind="torus", dims=[3], hosts={"gpus": 1, "count": 1}))
    assert measured.bisection_fraction is None
    assert measured.notes == ("no two endpoints meet, so there is no bisection",)
    assert measured.direct is not None
    assert measured.direct.average_hops is None
    assert measured.direct.hops == {}
