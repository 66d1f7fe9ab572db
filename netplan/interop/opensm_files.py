"""Files that OpenSM takes beside a subnet: roots, routing order, I/O ports, torus-2QoS.

They name GUIDs, those that the ``ibsim`` and ``ibnetdiscover`` exports give the same fabric:

* ``roots``: switches of the highest tier (``--root_guid_file``, for ``updn`` and ``ftree``);
* ``node-order``: ports in the order of hosts (``--guid_routing_order_file``, for ``minhop``, ``updn``);
* ``cn`` and ``io``: ports of compute hosts, and of others (``--cn_guid_file``, ``--io_guid_file``, for
  ``ftree``): all hosts are compute hosts unless ``io=PATTERN`` names some by a pattern of shell wildcards;
* ``torus-2QoS.conf``, for tori of two or three dimensions: the sizes and a seed switch with its neighbours
  (``--torus_config``); a dimension of 2 is open (``m`` for mesh), as the engine wants;
* ``opensm.conf``: the options that name these files.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from netplan.errors import OutputError
from netplan.fabric.convert import node_names
from netplan.interop.registry import WriteOptions, add_format
from netplan.interop.subnet import Subnet
from netplan.interop.torus_2qos import torus_conf

if TYPE_CHECKING:
    from netplan.fabric import Fabric


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write the GUID files, and for a torus its configuration.

    Raises
    ------
    OutputError
        ``io`` names no host, or all.
    """
    subnet = Subnet.of(fabric)
    names = node_names(fabric)
    pattern = options.settings.get("io")
    is_io = [
        pattern is not None and fnmatchcase(names[host], pattern) for host in fabric.endpoints.host.tolist()
    ]
    if pattern is not None and not any(is_io):
        raise OutputError(f"io = {pattern!r} names no host", hint=f"hosts are called like {names[0]}")
    if pattern is not None and all(is_io):
        raise OutputError(f"io = {pattern!r} names every host: no compute host is left")
    guids = [f"0x{guid:016x}\n" for guid in subnet.adapter_guid.tolist()]
    files = {
        "roots.guid": subnet.root_file(),
        "node-order.guid": subnet.node_order_file(),
        "cn.guid": "".join(guid for guid, io in zip(guids, is_io, strict=True) if not io),
    }
    engine = "minhop" if fabric.direct is not None else "ftree"
    if any(is_io):
        files["io.guid"] = "".join(guid for guid, io in zip(guids, is_io, strict=True) if io)
    if (torus := torus_conf(subnet)) is not None:
        files["torus-2QoS.conf"] = torus
        engine = "torus-2QoS"
    lines = [f"routing_engine {engine}", "guid_routing_order_file node-order.guid"]
    if engine == "ftree":
        lines += ["root_guid_file roots.guid", "cn_guid_file cn.guid"]
        lines += ["io_guid_file io.guid", "max_reverse_hops 1"] if any(is_io) else []
    if engine == "torus-2QoS":
        lines += ["torus_config torus-2QoS.conf", "qos TRUE"]
    files["opensm.conf"] = (
        "# netplan; the names of files are seen from OpenSM's own folder\n" + "\n".join(lines) + "\n"
    )
    return {name: text.encode() for name, text in files.items()}


add_format(
    "opensm",
    __name__,
    summary="GUID files and options for OpenSM: roots, order of ports, compute and I/O ports, torus-2QoS",
    checked_by="OpenSM on ibsim",
    leaves_out="partitions, QoS policies",
    suffix="",
    kind="config",
    is_folder=True,
    write=write,
    settings={"io": "pattern of the names of hosts that are not compute hosts, such as storage-*"},
)
