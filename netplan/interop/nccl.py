"""NCCL's topology XML (``NCCL_TOPO_FILE``), one per host, and a file of ranks.

A host is written as two sockets; each PCIe switch (class 0x060400) below holds a GPU (0x030200) and the NIC
ports that serve it (0x020000 for Ethernet, 0x020700 for InfiniBand with ``net``). PCIe is written at the
generation that carries the NIC: the file tells NCCL what is near to what, and these figures bound nothing
that netplan computes.

When read, a file is one host; a switch called ``network`` is put behind its NICs, so that commands have a
fabric. NICs are devices of class 0x02....; ``<net speed=...>`` (Mb/s) gives their speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.fabric.convert import node_names
from netplan.interop.files import safe_file_name
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.host_groups import host_names
from netplan.interop.registry import ReadOptions, WriteOptions, add_format, speed_remark
from netplan.interop.source import Faults
from netplan.interop.xml_text import Element, attribute, read_xml

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source

_GPU, _NIC, _BRIDGE = "0x030200", "0x020700", "0x060400"

#: NCCL's own limits (src/graph/xml.h): elements inside one, and hosts that are worth a file each.
_MOST_SUBS = 640
_MOST_HOSTS = 16_384

#: Rate of 16 lanes [bytes/s] by the text that NCCL reads.
_PCIE = (
    (16e9, "8.0 GT/s PCIe"),
    (32e9, "16.0 GT/s PCIe"),
    (64e9, "32.0 GT/s PCIe"),
    (128e9, "64.0 GT/s PCIe"),
)


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a file per host, and the ranks.

    Raises
    ------
    FabricError
        There are too many hosts for a file each.
    """
    if fabric.n_hosts > _MOST_HOSTS:
        raise FabricError(f"fabric {fabric.name!r}: {fabric.n_hosts:,} hosts are over {_MOST_HOSTS:,} files")
    names, real = host_names(fabric), node_names(fabric)
    files: dict[str, bytes] = {}
    ranks = ["# rank host gpu; written by netplan"]
    rank = 0
    for i, node in enumerate(fabric.host_ids.tolist()):
        name = safe_file_name(names[node])
        files[f"{name}.xml"] = _host_xml(fabric, i, real[node]).encode()
        for gpu in range(int(fabric.gpus_per_host[i])):
            ranks.append(f"{rank} {name} {gpu}")
            rank += 1
    files["ranks.txt"] = ("\n".join(ranks) + "\n").encode()
    return files


def _host_xml(fabric: Fabric, host: int, name: str) -> str:
    """Return the topology of one host."""
    first, last = int(fabric.endpoint_ptr[host]), int(fabric.endpoint_ptr[host + 1])
    n_gpus = int(fabric.gpus_per_host[host])
    ports: dict[int, list[int]] = {gpu: [] for gpu in range(n_gpus)}
    for endpoint in range(first, last):
        ports[min(int(fabric.endpoints.gpu[endpoint]), n_gpus - 1)].append(endpoint)
    comment = name.replace("--", "- -").encode("ascii", "replace").decode()
    lines = [f"<!-- {attribute(comment)[1:-1]} -->", '<system version="1">']
    half = (n_gpus + 1) // 2
    for socket in range(2 if n_gpus > 1 else 1):
        lines.append(
            f'  <cpu numaid="{socket}" affinity="" arch="x86_64" vendor="GenuineIntel" '
            'familyid="6" modelid="143">'
        )
        for gpu in range(socket * half, min((socket + 1) * half, n_gpus)):
            lines += _switch_xml(fabric, gpu, ports[gpu], first)
        lines.append("  </cpu>")
    return "\n".join([*lines, "</system>"]) + "\n"


def _switch_xml(fabric: Fabric, gpu: int, endpoints: list[int], first: int) -> list[str]:
    """Return a PCIe switch with a GPU and its NIC ports."""
    fastest = max((float(fabric.endpoint_rate[e]) for e in endpoints), default=50e9)
    speed = next((text for rate, text in _PCIE if rate >= fastest), _PCIE[-1][1])
    link = f'link_speed="{speed}" link_width="16"'
    bus = 0x10 + 2 * gpu
    lines = [f'    <pci busid="0000:{bus % 256:02x}:00.0" class="{_BRIDGE}" {link}>']
    lines.append(f'      <pci busid="{_domain(1, gpu)}" class="{_GPU}" {link}>')
    lines += [f'        <gpu dev="{gpu}" sm="90" rank="{gpu}" gdr="1"/>', "      </pci>"]
    for place, endpoint in enumerate(endpoints):
        mbps = round(float(fabric.endpoint_rate[endpoint]) * 8 / 1e6)
        number = endpoint - first
        lines.append(f'      <pci busid="{_domain(2 + place, gpu)}" class="{_NIC}" {link}>')
        lines += [
            "        <nic>",
            (
                f'          <net name="mlx5_{number}" dev="{number}" speed="{mbps}" port="1" '
                f'guid="0x{endpoint + 1:x}" maxconn="131072" gdr="1"/>'
            ),
        ]
        lines += ["        </nic>", "      </pci>"]
    return [*lines, "    </pci>"]


def _domain(kind: int, gpu: int) -> str:
    """Return a PCI address: a domain per kind of device, a bus per GPU."""
    return f"{kind:04x}:{gpu % 256:02x}:{gpu // 256 % 32:02x}.0"


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read the topology of one host.

    Raises
    ------
    SpecError
        It is not XML, or no such topology, or has no NIC.
    """
    root = read_xml(source)
    faults = Faults(source)
    if root.tag != "system":
        faults.add(root.line, f"the root is <{root.tag}>, not <system>")
        faults.refuse()
    devices = [element for element in root.walk() if element.tag == "pci"]
    for element in root.walk():
        if len(element.children) > _MOST_SUBS:
            faults.add(
                element.line, f"<{element.tag}> has {len(element.children)} elements; NCCL reads {_MOST_SUBS}"
            )
    gpus = [each for each in devices if each.attributes.get("class", "").startswith("0x03")]
    nics = [each for each in devices if each.attributes.get("class", "").startswith("0x02")]
    if not nics:
        faults.add(None, "has no NIC: no <pci> of class 0x02....", "a fabric begins at NICs")
    faults.refuse()
    graph = ReadGraph(source)
    graph.nodes = [
        ReadNode("host", options.name, is_host=True, gpus=len(gpus) or None),
        ReadNode("network", "network", is_host=False),
    ]
    silent = 0
    port = 0
    for nic in nics:
        nets = [element for element in nic.walk() if element.tag == "net"]
        for net in nets or [nic]:
            rate = _speed(net, faults) if net.tag == "net" else None
            silent += rate is None
            graph.cables.append(
                ReadCable("host", "network", options.speed if rate is None else rate, net.line, a_port=port)
            )
            port += 1
    faults.refuse()
    graph.remarks.append(
        "the file is of one host: a switch called network stands for the fabric behind its NICs"
    )
    if silent:
        graph.remarks.append(speed_remark(options, silent, "NIC port"))
    return graph


def _speed(net: Element, faults: Faults) -> float | None:
    """Return the speed of a port [bytes/s]."""
    text = net.attributes.get("speed")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:12]) < 10**9:
        faults.add(net.line, f"speed = {text[:40]!r} is no number of Mb/s")
        return None
    return int(text) * 1e6 / 8


add_format(
    "nccl",
    __name__,
    summary="NCCL's topology XML per host (NCCL_TOPO_FILE), with a file of ranks",
    checked_by="the grammar of NCCL's own parser; files of cloud vendors, read",
    leaves_out="the network beyond the NICs; NVLinks; real PCI addresses",
    suffix=".xml",
    kind="config",
    is_folder=True,
    read=read,
    write=write,
)
