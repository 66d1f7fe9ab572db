"""Forwarding tables that a real subnet manager dumped, put onto the fabric that ibnetdiscover saw.

``opensm-lfts.dump`` (OpenSM with log flag 0x40) and what ``dump_lfts.sh`` or ``dump_fts`` print: a line per
switch with its GUID, then a line per LID with the port it leaves by and the GUID of the port it belongs to.
Where a port has several LIDs (LMC), the lowest counts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netplan.errors import OutputError
from netplan.interop.source import Faults, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.interop.graph import Imported, ReadGraph
    from netplan.interop.source import Source

_SWITCH = re.compile(r"\s*Unicast lids .*? of switch .*?guid 0x([0-9a-fA-F]{1,16})")
_ROW = re.compile(r"\s*0x([0-9a-fA-F]{1,5})\s+(\d{1,3})\s*[#:]\s*\(?\s*(Channel Adapter|Switch|Router)\b(.*)")
_PORT_GUID = re.compile(r"portguid 0x([0-9a-fA-F]{1,16})")
_OTHER = re.compile(
    r"\s*(?:$|#|Lid\b|Port\b|Info\b|Destination\b|\d+ (?:valid )?(?:lids|valid)|LID\b|--|Multicast)"
)
_UNREACHABLE = re.compile(r"\s*0x[0-9a-fA-F]+\s+(?:UNREACHABLE|\d+)\b")


def with_tables(imported: Imported, graph: ReadGraph, source: Source) -> tuple[Fabric, tuple[str, ...]]:
    """Return the fabric with forwarding tables, and remarks.

    Raises
    ------
    SpecError
        The dump is not one, or speaks of switches and ports that the fabric does not have.
    OutputError
        The fabric came from a file without GUIDs.
    """
    if not graph.guids:
        raise OutputError(
            f"{graph.source.name}: has no GUIDs, so that forwarding tables cannot be put onto it",
            hint="forwarding tables go with an ibnetdiscover dump",
        )
    fabric = imported.fabric
    place = {row: cable for cable, row in enumerate(imported.cable_order)}
    endpoint_of_cable = {int(cable): i for i, cable in enumerate(fabric.endpoints.cable)}
    switch = {
        guid: imported.node_of[graph.nodes[i].key]
        for guid, (kind, i) in graph.guids.items()
        if kind == 0 and graph.nodes[i].key in imported.node_of
    }
    adapter = {guid: endpoint_of_cable[place[i]] for guid, (kind, i) in graph.guids.items() if kind == 1}
    port = _ports(imported, graph)
    forward = np.full((fabric.n_nodes, fabric.n_endpoints), -1, np.int32)
    faults = Faults(source)
    strangers = _fill(forward, source, faults, _Known(fabric, switch, adapter, port, graph.source.name))
    if (forward < 0).all() and not faults.found:
        faults.add(None, "has no entry for any port of the fabric", "is it opensm-lfts.dump of this subnet?")
    faults.refuse()
    remarks = [f"forwarding tables of {source.name}: ib-static follows them"]
    if strangers:
        remarks.append(f"entries left out, for ports that the fabric does not have: {strangers:,}")
    empty = int((forward[fabric.nodes.tier > 0] < 0).all(axis=1).sum())
    if empty:
        remarks.append(f"switches without a table: {empty:,}")
    return replace(fabric, forwarding=forward), tuple(remarks)


class _Known(NamedTuple):
    """What a dump may speak of."""

    fabric: Fabric
    switch: dict[str, int]
    """GUID of a switch -> node id."""
    adapter: dict[str, int]
    """GUID of a port -> endpoint."""
    port: dict[tuple[int, int], int]
    """(node id of a switch, port) -> link."""
    source: str
    """File that the fabric was read from."""


def _fill(forward: NDArray[np.int32], source: Source, faults: Faults, known: _Known) -> int:
    """Fill in the tables; return how many entries are for ports that the fabric does not have."""
    strangers = 0
    node: int | None = None
    for number, line in enumerate(source.lines, 1):
        if found := _SWITCH.match(line):
            node = known.switch.get(found[1].lower().lstrip("0"))
            if node is None:
                message = f"switch 0x{found[1]} is not in {known.source}"
                faults.add(number, message, "are the two of one subnet?")
        elif found := _ROW.match(line):
            guid = _PORT_GUID.search(found[4])
            if found[3] == "Channel Adapter" and guid is not None and node is not None:
                endpoint = known.adapter.get(guid[1].lower().lstrip("0"))
                strangers += endpoint is None
                _enter(forward, (number, node, endpoint, int(found[2])), faults, known)
        elif not (_OTHER.match(line) or _UNREACHABLE.match(line)):
            faults.add(number, f"is no line of a dump of forwarding tables: {shown(line)}")
    return strangers


def _enter(
    forward: NDArray[np.int32], row: tuple[int, int, int | None, int], faults: Faults, known: _Known
) -> None:
    """Enter one row: (line, switch, endpoint, port); the first of an endpoint's LIDs counts."""
    line, node, endpoint, port = row
    link = known.port.get((node, port))
    if endpoint is None or (link is None and port == 0):
        return
    if link is None:
        faults.add(line, f"port {port} of {known.fabric.node_name(node)} has no cable in {known.source}")
    elif forward[node, endpoint] < 0:
        forward[node, endpoint] = link


def _ports(imported: Imported, graph: ReadGraph) -> dict[tuple[int, int], int]:
    """Return the link that leaves each port of each switch."""
    found: dict[tuple[int, int], int] = {}
    src = imported.fabric.links.src
    for cable, row in enumerate(imported.cable_order):
        read = graph.cables[row]
        for key, number in ((read.a, read.a_port), (read.b, read.b_port)):
            node = imported.node_of[key]
            found[node, number] = 2 * cable if int(src[2 * cable]) == node else 2 * cable + 1
    return found
