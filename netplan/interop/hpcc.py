"""Topology files of the HPCC simulator (ns-3 for RDMA) and of those that grew from it.

``nodes switches links``, then the ids of the switches, then ``src dst rate delay error_rate`` per link.
Nodes that are no switches are hosts, with as many links as they have NIC ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.id_tables import link_text, read_links, read_numbers, read_switch_ids
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import Faults

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a topology: hosts first."""
    number = {
        int(node): i for i, node in enumerate([*fabric.host_ids, *(fabric.nodes.tier > 0).nonzero()[0]])
    }
    switches = range(fabric.n_hosts, fabric.n_nodes)
    lines = [f"{fabric.n_nodes} {fabric.n_switches} {fabric.links.n_cables}", " ".join(map(str, switches))]
    links = fabric.links
    for row in range(0, len(links), 2):
        a, b = number[int(links.src[row])], number[int(links.dst[row])]
        lines.append(link_text(a, b, float(links.capacity[row]), float(links.delay[row])))
    return {"topology.txt": ("\n".join(lines) + "\n").encode()}


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a topology.

    Raises
    ------
    SpecError
        It is not such a file; all faults are listed.
    """
    faults = Faults(source)
    words, at = read_numbers(source, faults, 3, "nodes switches links")
    n_nodes, n_switches, n_links = (int(word) for word in words[:3])
    switches, at = read_switch_ids(source, faults, at, n_nodes, n_switches)
    links = read_links(source, faults, at, n_nodes, n_links)
    is_switch = set(switches)
    graph = ReadGraph(source)
    for node in range(n_nodes):
        switch = node in is_switch
        graph.nodes.append(ReadNode(str(node), f"{'switch' if switch else 'host'}-{node}", not switch))
    graph.cables = [
        ReadCable(str(link.a), str(link.b), link.rate, link.line, link.length, a_port=i, b_port=i)
        for i, link in enumerate(links)
    ]
    return graph


add_format(
    "hpcc",
    __name__,
    summary="topology.txt of the HPCC simulator (ns-3 with RDMA) and its descendants",
    checked_by="netplan's reader; counts against published files",
    leaves_out="names, GPUs; lengths only as delays",
    suffix=".txt",
    read=read,
    write=write,
)
