"""Platform files of SimGrid: hosts, routers and full-duplex links, routed on shortest paths.

Each NIC port is a host of SimGrid (``host-00000-0``), for its flows are what netplan places. Parallel cables
are one link of their sum, since SimGrid's ``Dijkstra`` routing has one route between two neighbours. Links
are ``SPLITDUPLEX``: each direction has its own capacity.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from netplan.interop.host_groups import host_names
from netplan.interop.registry import WriteOptions, add_format
from netplan.interop.xml_text import attribute

if TYPE_CHECKING:
    from netplan.fabric import Fabric


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a platform."""
    names = host_names(fabric)
    ends, links, nodes = fabric.endpoints, fabric.links, fabric.nodes
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        f'  <zone id={attribute(f"zone-{fabric.name}")} routing="Dijkstra">',
    ]
    port = []
    for endpoint in range(len(ends)):
        host = int(ends.host[endpoint])
        first = int(fabric.endpoint_ptr[fabric.host_index[host]])
        port.append(f"{names[host]}-{endpoint - first}")
        lines.append(f'    <host id="{port[-1]}" speed="1Gf"/>')
    lines += [f'    <router id="{names[node]}"/>' for node in (nodes.tier > 0).nonzero()[0].tolist()]
    of_cable = dict(zip(ends.cable.tolist(), port, strict=True))
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in range(0, len(links), 2):
        a = of_cable.get(row // 2, names[int(links.src[row])])
        rows[a, names[int(links.dst[row])]].append(row)
    routes = []
    for i, ((a, b), cables) in enumerate(rows.items()):
        rate = sum(float(links.capacity[row]) for row in cables)
        delay = float(links.delay[cables[0]])
        lines.append(
            f'    <link id="l{i}" bandwidth="{rate:.12g}Bps" latency="{delay:.12g}s" '
            'sharing_policy="SPLITDUPLEX"/>'
        )
        routes.append(f'    <route src="{a}" dst="{b}"><link_ctn id="l{i}" direction="UP"/></route>')
    return {"platform.xml": ("\n".join([*lines, *routes, "  </zone>", "</platform>"]) + "\n").encode()}


add_format(
    "simgrid",
    __name__,
    summary="platform of SimGrid: any fabric as hosts, routers and links",
    checked_by="SimGrid: loads, and flows that share a link get what netplan gives them",
    leaves_out="parallel cables (one link of their sum), equal paths (one shortest path), switch latencies",
    suffix=".xml",
    write=write,
)
