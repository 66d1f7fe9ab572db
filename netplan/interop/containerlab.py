"""containerlab: the topology file of a laboratory of containers, written and read.

Switches are nodes of kind ``sonic-vs`` (or another, setting ``kind``), hosts of kind ``linux``; every cable
is a link between ``ethN`` of either end. Labels ``netplan-...`` keep tiers, radixes and GPUs; a link's
``vars`` keep speed and length. When read, roles come from these labels, from ``kind: linux``, and
``group``.

Format: containerlab's JSON schema (clab.schema.json, BSD-3-Clause).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from netplan.errors import OutputError
from netplan.fabric.columns import TIER_NAMES
from netplan.interop import roles
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.ports import plain_names, plugs
from netplan.interop.registry import ReadOptions, WriteOptions, add_format, setting, speed_remark
from netplan.interop.source import Faults, shown
from netplan.interop.yaml_text import read_yaml

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source

#: Kinds of switches whose containers name their ports eth1, eth2, ...
_KINDS = ("sonic-vs", "linux", "nokia_srlinux", "nvidia_cumulusvx", "arista_ceos")

#: How a kind calls port n.
_PORT_NAMES = {"nokia_srlinux": "e1-{}", "nvidia_cumulusvx": "swp{}"}

_IMAGES = {"sonic-vs": "docker-sonic-vs:latest"}
_TIERS = {name: tier for tier, name in enumerate(TIER_NAMES)}


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write ``fabric.clab.yml``: YAML whose strings are JSON strings."""
    kind = setting(options, "kind", _KINDS)
    names, tier = plain_names(fabric), fabric.nodes.tier.tolist()
    quote = json.dumps
    lines = [f"name: {quote(re.sub(r'[^a-zA-Z0-9-]+', '-', fabric.name).strip('-') or 'fabric')}"]
    lines += ["topology:", "  kinds:"]
    if kind in _IMAGES:
        lines += [f"    {kind}:", f"      image: {quote(_IMAGES[kind])}"]
    lines += ["    linux:", "      image: alpine:3", "  nodes:"]
    for node, name in enumerate(names):
        labels: dict[str, str] = {"netplan-tier": TIER_NAMES[tier[node]]}
        if tier[node]:
            labels["netplan-radix"] = str(int(fabric.nodes.radix[node]))
        else:
            labels["netplan-gpus"] = str(int(fabric.gpus_per_host[fabric.host_index[node]]))
        lines += [
            f"    {quote(name)}:",
            f"      kind: {kind if tier[node] else 'linux'}",
            f"      group: {TIER_NAMES[tier[node]]}",
            f"      labels: {quote(labels)}",
        ]
    lines.append("  links:")
    for plug in plugs(fabric):
        ends = [
            f"{names[node]}:{_PORT_NAMES.get(kind if tier[node] else 'linux', 'eth{}').format(port)}"
            for node, port in ((plug.a, plug.a_port), (plug.b, plug.b_port))
        ]
        told = {"netplan-speed": f"{plug.rate!r} B/s", "netplan-length": repr(plug.length)}
        lines += [f"    - endpoints: {quote(ends)}", f"      vars: {quote(told)}"]
    if not fabric.n_nodes:
        raise OutputError("the fabric has no nodes")
    return {"fabric.clab.yml": ("\n".join(lines) + "\n").encode()}


def read(source: Source, options: ReadOptions) -> ReadGraph:  # noqa: C901, PLR0912 -- a fault of each kind
    """Read a topology file.

    Raises
    ------
    SpecError
        It is not YAML, or no topology of containerlab; all faults are listed.
    """
    data, marks = read_yaml(source)
    faults, graph = Faults(source), ReadGraph(source)
    topology = data.get("topology") if isinstance(data, dict) else None
    nodes = topology.get("nodes") if isinstance(topology, dict) else None
    links = topology.get("links", []) if isinstance(topology, dict) else None
    if not isinstance(nodes, dict) or not isinstance(links, list):
        faults.add(1, "is no topology of containerlab: it has no topology with nodes and links")
        faults.refuse()
    assert isinstance(nodes, dict)
    assert isinstance(links, list)
    pairs: list[tuple[int, list[tuple[str, str]], dict[str, str]]] = []
    other = 0
    for place, link in enumerate(links):
        line = marks.get(("topology", "links", place), 1)
        found = _ends(link)
        if found is None:
            other += 1
        elif isinstance(found, str):
            faults.add(line, found)
        else:
            told = link.get("vars")
            pairs.append((line, found, told if isinstance(told, dict) else {}))
    degree: dict[str, int] = {}
    for _, ends, _ in pairs:
        for name, _ in ends:
            degree[name] = degree.get(name, 0) + 1
    guessed = 0
    for key, row in nodes.items():
        line = marks.get(("topology", "nodes", key), 1)
        of = row if isinstance(row, dict) else {}
        if row is not None and not isinstance(row, dict):
            faults.add(line, f"node {shown(str(key))} is {shown(str(row))}, not a map")
        guessed += _add_node(graph, str(key), of, degree.get(str(key), 0), line)
    silent = 0
    for line, ends, told in pairs:
        rate = roles.rate({"speed": str(told.get("netplan-speed", ""))})
        length = roles.length({"length": str(told.get("netplan-length", ""))})
        silent += rate is None
        (a, a_port), (b, b_port) = ends
        graph.cables.append(
            ReadCable(
                a,
                b,
                options.speed if rate is None else rate,
                line,
                3.0 if length is None else length,
                a_port=_number(a_port),
                b_port=_number(b_port),
            )
        )
    faults.refuse()
    if other:
        graph.remarks.append(f"{other:,} link(s) left out: to the machine, to bridges, or of the long form")
    if guessed:
        graph.remarks.append(f"{guessed:,} node(s) do not say what they are; hosts: kind linux, or named so")
    if silent:
        graph.remarks.append(speed_remark(options, silent))
    return graph


def _add_node(graph: ReadGraph, key: str, of: dict[str, Any], degree: int, line: int) -> bool:
    """Add a node; return whether its role had to be guessed."""
    labels = of.get("labels")
    told = {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}
    known = {"kind": told["netplan-tier"]} if "netplan-tier" in told else {"kind": str(of.get("group", ""))}
    is_host = roles.role(known)
    guessed = is_host is None
    if is_host is None:
        is_host = of.get("kind") == "linux" or (of.get("kind") is None and roles.guess_host(key, degree))
    tier = _TIERS.get(told.get("netplan-tier", "")) or roles.tier(known)
    graph.nodes.append(
        ReadNode(
            key,
            key,
            is_host,
            line,
            tier=None if is_host else tier,
            radix=roles.whole(told, "netplan-radix", 1_000_000) or 0,
            gpus=roles.whole(told, "netplan-gpus", 1_000_000) or None if is_host else None,
        )
    )
    return guessed


def _ends(link: Any) -> list[tuple[str, str]] | str | None:  # noqa: ANN401 -- whatever the file has
    """Return the two ends of a link; what is wrong; or None for a link that is no cable."""
    if not isinstance(link, dict):
        return "a link is no map with endpoints"
    ends = link.get("endpoints")
    if ends is None and "type" in link:
        return None
    if not isinstance(ends, list) or len(ends) != 2:  # noqa: PLR2004 -- a cable has two ends
        return "a link has not two endpoints"
    found = []
    for end in ends:
        if isinstance(end, dict):
            name, port = str(end.get("node", "")), str(end.get("interface", ""))
        else:
            name, _, port = str(end).partition(":")
        if not name or not port:
            return f"endpoint {shown(str(end))} is not node:interface"
        if name in ("host", "mgmt-net", "macvlan", "vxlan", "dummy"):
            return None
        found.append((name, port))
    return found


def _number(port: str) -> int:
    found = re.findall(r"[0-9]{1,9}", port[:255])
    return int(found[-1]) if found else 0


add_format(
    "containerlab",
    __name__,
    summary="containerlab topology: switches and hosts as containers, a link per cable",
    checked_by="containerlab's JSON schema",
    leaves_out="sites, pods, planes; images are placeholders; speeds and lengths are in vars, not emulated",
    suffix=".clab.yml",
    read=read,
    write=write,
    settings={"kind": f"of switches: {', '.join(_KINDS)}"},
)
