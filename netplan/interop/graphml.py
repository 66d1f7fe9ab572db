"""GraphML: a graph with attributes in XML, as networkx, igraph, Gephi and yEd read it.

Nodes carry ``kind``, ``tier``, ``site``, ``gpus``, ``radix``, ...; edges ``capacity`` [bytes/s], ``length``
[m] and ``kind``. When read, the same are understood, and of other programs' files roles by any attribute
that names one, speeds with a unit, and ``LinkSpeedRaw`` [bit/s] of the Internet Topology Zoo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.fabric.convert import node_names
from netplan.interop.plain_graph import PlainEdge, PlainNode, cable_attributes, node_attributes, read_plain
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import Faults, shown
from netplan.interop.xml_text import Element, attribute, escape, read_xml

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.graph import ReadGraph
    from netplan.interop.source import Source

_TYPES = {str: "string", int: "long", float: "double"}
_NODE_KEYS: dict[str, type] = {
    **dict.fromkeys(("name", "kind", "site"), str),
    **dict.fromkeys(("tier", "gpus", "radix", "pod", "rail", "plane"), int),
    "scale_up": float,
}
_EDGE_KEYS: dict[str, type] = {"capacity": float, "length": float, "kind": str}


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write GraphML."""
    names = node_names(fabric)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ]
    for owner, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for key, kind in keys.items():
            lines.append(
                f'  <key id="{owner[0]}_{key}" for="{owner}" attr.name="{key}" attr.type="{_TYPES[kind]}"/>'
            )
    lines.append(f'  <graph id={attribute(fabric.name)} edgedefault="undirected">')
    for i, data in enumerate(node_attributes(fabric)):
        lines.append(f'    <node id="n{i}">{_data("n", {"name": names[i], **data})}</node>')
    src, dst = fabric.links.src[0::2].tolist(), fabric.links.dst[0::2].tolist()
    for cable, data in enumerate(cable_attributes(fabric)):
        ends = f'source="n{src[cable]}" target="n{dst[cable]}"'
        lines.append(f'    <edge id="e{cable}" {ends}>{_data("e", data)}</edge>')
    lines += ["  </graph>", "</graphml>"]
    return {"fabric.graphml": ("\n".join(lines) + "\n").encode()}


def _data(prefix: str, values: dict[str, Any]) -> str:
    texts = {key: escape(value) if isinstance(value, str) else repr(value) for key, value in values.items()}
    return "".join(f'<data key="{prefix}_{key}">{text}</data>' for key, text in texts.items())


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read GraphML.

    Raises
    ------
    SpecError
        It is not XML, or not GraphML; all faults are listed.
    """
    root = read_xml(source)
    faults = Faults(source)
    graphs = root.all("graph")
    if root.tag != "graphml" or len(graphs) != 1:
        faults.add(root.line, f"the root is <{root.tag}> with {len(graphs)} graphs: GraphML with one is read")
        faults.refuse()
    keys = {key.attributes.get("id", ""): key.attributes.get("attr.name", "") for key in root.all("key")}
    nodes, edges = [], []
    for element in graphs[0].children:
        of = {
            keys.get(data.attributes.get("key", ""), "") or data.attributes.get("key", ""): data.text.strip()
            for data in element.all("data")
        }
        if element.tag == "node":
            if "id" not in element.attributes:
                faults.add(element.line, "a node has no id")
                continue
            label = of.get("name") or of.get("label") or element.attributes["id"]
            nodes.append(PlainNode(element.attributes["id"], {**of, "name": label}, element.line))
        elif element.tag == "edge":
            edge = _edge(element, of, faults)
            edges += [edge] if edge else []
    faults.refuse()
    return read_plain(source, nodes, edges, options)


def _edge(element: Element, of: dict[str, str], faults: Faults) -> PlainEdge | None:
    ends = [element.attributes.get(end) for end in ("source", "target")]
    if ends[0] is None or ends[1] is None:
        faults.add(element.line, f"an edge has one end only: {shown(str(element.attributes))}")
        return None
    return PlainEdge(ends[0], ends[1], of, element.line)


add_format(
    "graphml",
    __name__,
    summary="GraphML, for networkx, igraph, Gephi, yEd: nodes and cables with their attributes",
    checked_by="networkx",
    leaves_out="structure (paths are walked after reading), GUIDs; planes when read",
    suffix=".graphml",
    read=read,
    write=write,
)
