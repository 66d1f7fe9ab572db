"""Topology files of SimAI: GPUs are nodes, each with its NIC ports, and hosts are known by their NVSwitches.

``nodes gpus_per_server nvswitches switches links GPU``, then the ids of NVSwitches and switches, then a link
per line. GPUs come first, then NVSwitches, then switches. GPUs ``h * gpus_per_server`` on are of host ``h``.
A NIC port is a link from the GPU that it serves to a leaf; the link from a GPU to an NVSwitch says the
scale-up rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.id_tables import link_text, read_links, read_numbers, read_switch_ids
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import Faults

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source

#: Delay of an NVLink that SimAI's own generator writes [s].
_NVLINK_DELAY = 25e-9


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a topology.

    Raises
    ------
    FabricError
        Hosts have different numbers of GPUs, which the format cannot say.
    """
    gpus = np.unique(fabric.gpus_per_host)
    if len(gpus) != 1:
        raise FabricError(
            f"fabric {fabric.name!r}: hosts have {gpus.min()} to {gpus.max()} GPUs; SimAI has one number",
            hint="write it as hpcc instead",
        )
    per_host = int(gpus[0])
    n_gpus, n_hosts = fabric.n_gpus, fabric.n_hosts
    switches = (fabric.nodes.tier > 0).nonzero()[0]
    number = {int(node): n_gpus + n_hosts + i for i, node in enumerate(switches)}
    lines = []
    for gpu in range(n_gpus):
        host = gpu // per_host
        lines.append(link_text(gpu, n_gpus + host, float(fabric.scale_up_rate[host]), _NVLINK_DELAY))
    links, ends = fabric.links, fabric.endpoints
    of_cable = dict(zip(ends.cable.tolist(), range(len(ends)), strict=True))
    for row in range(0, len(links), 2):
        endpoint = of_cable.get(row // 2)
        if endpoint is None:
            a = number[int(links.src[row])]
        else:
            a = int(fabric.host_index[ends.host[endpoint]]) * per_host + int(ends.gpu[endpoint])
        b = number[int(links.dst[row])]
        lines.append(link_text(a, b, float(links.capacity[row]), float(links.delay[row])))
    total = n_gpus + n_hosts + len(switches)
    head = f"{total} {per_host} {n_hosts} {len(switches)} {len(lines)} H100"
    ids = " ".join(map(str, range(n_gpus, total)))
    return {"topology": ("\n".join([head, ids, *lines]) + "\n").encode()}


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a topology.

    Raises
    ------
    SpecError
        It is not such a file; all faults are listed.
    """
    faults = Faults(source)
    words, at = read_numbers(source, faults, 5, "nodes gpus_per_server nvswitches switches links GPU")
    n_nodes, per_host, n_nv, n_switches, n_links = (int(word) for word in words[:5])
    ids, at = read_switch_ids(source, faults, at, n_nodes, n_nv + n_switches)
    n_gpus = n_nodes - len(ids)
    if per_host < 1 or n_gpus < 1 or n_gpus % per_host or ids != list(range(n_gpus, n_nodes)):
        faults.add(
            1, f"{n_gpus} GPUs in hosts of {per_host}, with switches numbered after them, do not fit together"
        )
        faults.refuse()
    links = read_links(source, faults, at, n_nodes, n_links)
    first_switch = n_gpus + n_nv
    rate: dict[int, float] = {}
    graph = ReadGraph(source)
    for i, link in enumerate(links):
        a, b = sorted((link.a, link.b))
        if a < n_gpus <= b < first_switch:
            host = a // per_host
            rate[a] = rate.get(a, 0.0) + link.rate
            continue
        keys = []
        for end in (a, b):
            if n_gpus <= end < first_switch:
                faults.add(
                    link.line, f"joins the NVSwitch {end} with {a if end == b else b}, which is no GPU"
                )
            keys.append(f"h{end // per_host}" if end < n_gpus else f"s{end}")
        # NIC ports of a host by GPU, then in the order of the file.
        port = (a % per_host) * len(links) + i if a < n_gpus else i
        graph.cables.append(
            ReadCable(keys[0], keys[1], link.rate, link.line, link.length, a_port=port, b_port=i)
        )
    faults.refuse()
    for host in range(n_gpus // per_host):
        scale_up = rate.get(host * per_host)
        graph.nodes.append(
            ReadNode(f"h{host}", f"host-{host}", is_host=True, gpus=per_host, scale_up=scale_up)
        )
    graph.nodes += [ReadNode(f"s{i}", f"switch-{i}", is_host=False) for i in range(first_switch, n_nodes)]
    return graph


add_format(
    "simai",
    __name__,
    summary="topology of SimAI: GPUs with their NVLinks, NIC ports and switches",
    checked_by="files of SimAI's own generator, read; netplan's reader, written",
    leaves_out="names; lengths only as delays; the kind of GPU",
    suffix="",
    read=read,
    write=write,
)
