"""Fat trees, two and three tiers: the same graphs as fnss makes, switch by switch.

fnss (Fast Network Simulation Setup) and netplan were written apart. Graphs are compared tier by tier: numbers
of nodes, degrees, the tiers of neighbours, and isomorphism with tiers kept.
"""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from netplan.fabric import Fabric
from netplan.fabric.convert import to_networkx
from tests.against.fnss_vectors import CASES, FORMAT, make_vector, read_vector
from tests.fabrics import yaml_fabric


def theirs(name: str) -> nx.Graph:
    data = read_vector(name)
    assert data["format"] == FORMAT
    graph = nx.Graph(data["edges"])
    nx.set_node_attributes(graph, dict(enumerate(data["tiers"])), "tier")
    return graph


def ours(fabric: Fabric) -> nx.Graph:
    graph = nx.Graph()
    tiers = fabric.nodes.tier.tolist()
    graph.add_nodes_from((node, {"tier": tier}) for node, tier in enumerate(tiers))
    graph.add_edges_from(zip(fabric.links.src.tolist(), fabric.links.dst.tolist(), strict=True))
    assert graph.number_of_edges() == fabric.links.n_cables, "no two cables are parallel"
    return graph


def ports(graph: nx.Graph) -> Counter[tuple[int, tuple[tuple[int, int], ...]]]:
    """Return how many nodes there are of each tier and surroundings (ports by tier of the far end)."""
    tier = nx.get_node_attributes(graph, "tier")
    return Counter(
        (tier[node], tuple(sorted(Counter(tier[other] for other in graph[node]).items()))) for node in graph
    )


@pytest.mark.parametrize("name", CASES)
def test_every_switch_has_the_ports_of_fnss(name):
    mine, other = ours(yaml_fabric(CASES[name][2])), theirs(name)
    assert mine.number_of_nodes() == other.number_of_nodes()
    assert mine.number_of_edges() == other.number_of_edges()
    assert ports(mine) == ports(other)


@pytest.mark.parametrize("name", CASES)
def test_the_graph_is_that_of_fnss(name):
    # Hosts of a leaf are alike, so the graph of the switches with the number of their hosts is enough.
    graphs = []
    for graph in (ours(yaml_fabric(CASES[name][2])), theirs(name)):
        tier = nx.get_node_attributes(graph, "tier")
        hosts = {node: sum(tier[other] == 0 for other in graph[node]) for node in graph}
        switches = graph.subgraph([node for node in graph if tier[node]]).copy()
        nx.set_node_attributes(switches, {node: (tier[node], hosts[node]) for node in switches}, "label")
        graphs.append(switches)
    assert nx.weisfeiler_lehman_graph_hash(graphs[0], node_attr="label") == nx.weisfeiler_lehman_graph_hash(
        graphs[1], node_attr="label"
    )
    if len(graphs[0]) <= 80:
        assert nx.vf2pp_is_isomorphic(*graphs, node_label="label")
    # Pods are the parts that are left without the cores, groups of cores those that share spines.
    for lower, upper in ((1, 2), (2, 3)):
        parts = []
        for graph in graphs:
            label = nx.get_node_attributes(graph, "label")
            between = graph.subgraph([node for node in graph if label[node][0] in {lower, upper}])
            parts.append(
                Counter(
                    tuple(sorted(Counter(label[node] for node in part).items()))
                    for part in nx.connected_components(between)
                )
            )
        assert parts[0] == parts[1]


@pytest.mark.programs
@pytest.mark.parametrize("name", CASES)
def test_the_stored_graphs_are_what_fnss_makes(name):
    pytest.importorskip("fnss", reason="fnss is not installed (pip install fnss)")
    assert make_vector(name) == read_vector(name)


@pytest.mark.parametrize(("leaves", "spines"), [(4, 3), (12, 8), (32, 16)])
def test_leaves_and_spines_are_networkx_complete_bipartite_graph(leaves, spines):
    text = (
        f"{{name: x, kind: leaf-spine, radix: 64, hosts: {{count: {leaves * spines}, gpus: 1}},"
        f" leaf: {{downlinks: {spines}, uplinks: {spines}}}, spine: {{count: {spines}}}}}"
    )
    switches = nx.Graph(to_networkx(yaml_fabric(text), level="switch"))
    expected = nx.complete_bipartite_graph(leaves, spines)
    assert sorted(dict(switches.degree()).values()) == sorted(dict(expected.degree()).values())
    assert nx.is_bipartite(switches)
    assert switches.number_of_edges() == expected.number_of_edges() == leaves * spines
    sides = nx.bipartite.sets(switches)
    assert {len(side) for side in sides} == {leaves, spines}


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_hyperx_of_two_a_dimension_is_networkx_hypercube(dimensions):
    text = (
        f"{{name: x, kind: hyperx, dims: {[2] * dimensions}, hosts: {{gpus: 1}}, router: {{endpoints: 1}}}}"
    )
    switches = nx.Graph(to_networkx(yaml_fabric(text), level="switch"))
    assert nx.is_isomorphic(switches, nx.hypercube_graph(dimensions))
