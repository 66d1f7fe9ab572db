"""What GraphML and DOT have in common: nodes and edges with attributes of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.interop import roles
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.registry import speed_remark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from netplan.fabric import Fabric
    from netplan.interop.registry import ReadOptions
    from netplan.interop.source import Source


@dataclass(frozen=True)
class PlainNode:
    """A node of a file."""

    key: str
    attributes: Mapping[str, str]
    line: int | None = None


@dataclass(frozen=True)
class PlainEdge:
    """An edge of a file."""

    a: str
    b: str
    attributes: Mapping[str, str]
    line: int | None = None
    a_port: int = 0
    b_port: int = 0


def read_plain(
    source: Source, nodes: Sequence[PlainNode], edges: Sequence[PlainEdge], options: ReadOptions
) -> ReadGraph:
    """Return what a plain graph says of a fabric; roles, tiers and speeds it lacks are found or assumed."""
    graph = ReadGraph(source)
    degree = Counter(end for edge in edges for end in (edge.a, edge.b))
    guessed = 0
    for node in nodes:
        of, name = node.attributes, node.attributes.get("name") or node.key
        is_host = roles.role(of)
        if is_host is None:
            guessed += 1
            is_host = roles.guess_host(name, degree[node.key])
        scale_up = roles.rate({"capacity": of["scale_up"]}) if "scale_up" in of else None
        site = of.get("site")
        graph.nodes.append(
            ReadNode(
                node.key,
                name,
                is_host,
                node.line,
                tier=None if is_host else roles.tier(of),
                radix=roles.whole(of, "radix", 1_000_000) or 0,
                gpus=roles.whole(of, "gpus", 1_000_000) or None if is_host else None,
                scale_up=scale_up or None if is_host else None,
                pod=None if is_host else roles.whole(of, "pod", 1_000_000),
                rail=None if is_host else roles.whole(of, "rail", 10_000),
                site=site,
            )
        )
    if any(node.site for node in graph.nodes) and len({node.site for node in graph.nodes}) == 1:
        graph.nodes = [ReadNode(**{**vars(node), "site": None}) for node in graph.nodes]
    silent = 0
    for place, edge in enumerate(edges):
        rate = roles.rate(edge.attributes)
        silent += rate is None
        length = roles.length(edge.attributes)
        kind = edge.attributes.get("kind")
        graph.cables.append(
            ReadCable(
                edge.a,
                edge.b,
                options.speed if rate is None else rate,
                edge.line,
                3.0 if length is None else length,
                kind if kind in ("local", "global") else None,
                edge.a_port or place,
                edge.b_port or place,
            )
        )
    if guessed:
        graph.remarks.append(
            f"{guessed:,} node(s) do not say what they are; hosts: those named so, or with one edge only"
        )
    if silent:
        graph.remarks.append(speed_remark(options, silent))
    return graph


def node_attributes(fabric: Fabric) -> Iterator[dict[str, Any]]:
    """Yield what there is to say of each node, by id."""
    nodes = fabric.nodes
    for node in range(fabric.n_nodes):
        tier = int(nodes.tier[node])
        data: dict[str, Any] = {
            "kind": TIER_NAMES[tier],
            "tier": tier,
            "site": fabric.site_names[nodes.site[node]],
        }
        if tier == 0:
            host = int(fabric.host_index[node])
            data |= {"gpus": int(fabric.gpus_per_host[host]), "scale_up": float(fabric.scale_up_rate[host])}
        else:
            data["radix"] = int(nodes.radix[node])
            places = {key: int(getattr(nodes, key)[node]) for key in ("pod", "rail", "plane")}
            data |= {key: value for key, value in places.items() if value >= 0}
        yield data


def cable_attributes(fabric: Fabric) -> Iterator[dict[str, Any]]:
    """Yield what there is to say of each cable."""
    links = fabric.links
    for row in range(0, len(links), 2):
        yield {
            "capacity": float(links.capacity[row]),
            "length": float(links.length[row]),
            "kind": LINK_KINDS[links.kind[row]],
        }
