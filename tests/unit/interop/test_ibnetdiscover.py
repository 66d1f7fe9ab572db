"""Dumps as they come from real subnets: names of all sorts, inner nodes, mixed speeds, forwarding tables."""

from __future__ import annotations

import numpy as np
import pytest

from netplan import api
from netplan.errors import OutputError, SpecError
from netplan.fabric.classify import classify
from netplan.fabric.convert import fabric_to_dict, load_fabric, node_names, save_fabric
from netplan.interop.ibnetdiscover import split_description
from netplan.interop.registry import FORMATS, ReadOptions
from netplan.interop.source import source_of
from netplan.interop.subnet import Subnet
from netplan.interop.tables import with_tables
from netplan.routing import FlowTable, route_flows
from tests.contracts.making import make_fabric
from tests.unit.interop.samples import read_back

# Own text in the form of a dump: a GB200-like subnet with what real ones have.
DUMP = """\
#
# Topology file: generated on a day
#
vendid=0x2c9
devid=0xd2f2
sysimgguid=0x900
switchguid=0x900(900)
Switch\t65 "S-0000000000000900"\t\t# "MF0;ib-leaf01:MQM9700/U1" enhanced port 0 lid 2 lmc 0
[1]\t"H-0000000000000100"[1](101) \t\t# "gpu01 HCA-1" lid 11 4xNDR
[2]\t"H-0000000000000110"[1](111) \t\t# "gpu01.cluster.local mlx5_1" lid 12 4xNDR
[3]\t"H-0000000000000200"[1](201) \t\t# "gpu02 HCA-1" lid 13 4xHDR
[4]\t"H-0000000000000210"[1](211) \t\t# "gpu02 HCA-2" lid 14 4xNDR
[7]\t"H-0000000000000300"[1](301) \t\t# "MT4129 ConnectX7 Mellanox Technologies" lid 15 2xNDR
[40]\t"S-0000000000000a00"[1]\t\t# "MF0;ib-spine01:MQM9700/U1" lid 3 4xNDR
[41]\t"S-0000000000000a00"[2]\t\t# "MF0;ib-spine01:MQM9700/U1" lid 3 4xNDR
[65]\t"H-0000000000000990"[1](990) \t\t# "Mellanox Technologies Aggregation Node" lid 9 4xNDR

switchguid=0xa00(a00)
Switch\t65 "S-0000000000000a00"\t\t# "MF0;ib-spine01:MQM9700/U1" enhanced port 0 lid 3 lmc 0
[1]\t"S-0000000000000900"[40]\t\t# "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR
[2]\t"S-0000000000000900"[41]\t\t# "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR

sysimgguid=0x100
caguid=0x100
Ca\t1 "H-0000000000000100"\t\t# "gpu01 HCA-1"
[1](101) \t"S-0000000000000900"[1]\t\t# lid 11 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR

sysimgguid=0x110
caguid=0x110
Ca\t1 "H-0000000000000110"\t\t# "gpu01.cluster.local mlx5_1"
[1](111) \t"S-0000000000000900"[2]\t\t# lid 12 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR

caguid=0x210
Ca\t1 "H-0000000000000210"\t\t# "gpu02 HCA-2"
[1](211) \t"S-0000000000000900"[4]\t\t# lid 14 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR

caguid=0x200
Ca\t1 "H-0000000000000200"\t\t# "gpu02 HCA-1"
[1](201) \t"S-0000000000000900"[3]\t\t# lid 13 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 4xHDR

caguid=0x300
Ca\t1 "H-0000000000000300"\t\t# "MT4129 ConnectX7 Mellanox Technologies"
[1](301) \t"S-0000000000000900"[7]\t\t# lid 15 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 2xNDR

caguid=0x990
Ca\t1 "H-0000000000000990"\t\t# "Mellanox Technologies Aggregation Node"
[1](990) \t"S-0000000000000900"[65]\t\t# lid 9 lmc 0 "MF0;ib-leaf01:MQM9700/U1" lid 2 4xNDR
"""

TABLES = """\
Unicast lids [0x0-0xf] of switch Lid 2 guid 0x0000000000000900 (MF0;ib-leaf01:MQM9700/U1):
  LID  Out   Destination
       Port     Info
0x0002 000 : (Switch portguid 0x0000000000000900: 'MF0;ib-leaf01:MQM9700/U1')
0x000b 001 : (Channel Adapter portguid 0x0000000000000101: 'gpu01 HCA-1')
0x000c 002 : (Channel Adapter portguid 0x0000000000000111: 'gpu01.cluster.local mlx5_1')
0x000d 040 : (Channel Adapter portguid 0x0000000000000201: 'gpu02 HCA-1')
0x000e 004 : (Channel Adapter portguid 0x0000000000000211: 'gpu02 HCA-2')
0x000f 007 : (Channel Adapter portguid 0x0000000000000301: 'MT4129')
0x0010 007 : (Channel Adapter portguid 0x0000000000000999: 'gone since')
7 valid lids dumped
"""


def test_what_real_dumps_have():
    """Hosts by several names, adapters out of order, factory names, SHARP nodes, speeds by width."""
    read = read_back(DUMP.encode(), "ibnetdiscover")
    fabric = read.fabric
    names = node_names(fabric)
    assert names == ["gpu01", "gpu02", "H-0000000000000300", "ib-leaf01", "ib-spine01"]
    assert fabric.gpus_per_host.tolist() == [2, 2, 1]
    rate = (fabric.endpoint_rate * 8 / 1e9).tolist()
    assert rate == [400, 400, 200, 400, 200]  # gpu02's first adapter is HCA-1, though listed second
    assert fabric.nodes.tier.tolist() == [0, 0, 0, 1, 2]
    assert fabric.nodes.radix.tolist()[3:] == [65, 65]
    said = " | ".join(read.remarks)
    assert "1 SHARP aggregation node(s)" in said
    assert "hosts with several names, taken as one: gpu01 (gpu01.cluster.local)" in said
    assert "1 adapter(s) carry no host's name" in said
    assert "1 host(s) are named by a GUID" in said


def test_nameless_adapters_go_by_their_ports():
    """Where hosts have one port number on each of their leaves, a factory's name does not part a host.

    One host lost the names of all its adapters, one of a single adapter, one has another way to say HCA-2.
    """
    fabric = make_fabric("kind: rail-optimized\nradix: 16\nhosts: {count: 16, gpus: 4}\nspine: {count: 4}")
    text = Subnet.of(fabric).dump()
    factory = '"MT4129 ConnectX7   Mellanox Technologies"'
    for adapter in (
        "host-00003 HCA-1",
        "host-00003 HCA-2",
        "host-00003 HCA-3",
        "host-00003 HCA-4",
        "host-00005 HCA-3",
    ):
        text = text.replace(f'"{adapter}"', factory)
    text = text.replace('"host-00006 HCA-2"', '"host-00006 mlx5_1"')
    read = read_back(text.encode(), "ibnetdiscover")
    assert read.fabric.n_hosts == 16
    assert np.bincount(read.fabric.endpoints.host).tolist() == [4] * 16
    assert any("5 adapter(s) carry no host's name" in each for each in read.remarks)
    found = classify(read.fabric)
    assert found.family == "rail-optimized"
    # The order of nameless adapters within a host cannot be known; of all others it is.
    assert {fault.where.split()[0] for fault in found.deviations} <= {
        "host-00005",
        node_names(read.fabric)[15],
    }


def test_a_link_that_changed_while_the_dump_ran():
    """One end in hundreds that the other side does not confirm is left out, and told; many are refused."""
    fabric = make_fabric("kind: rail-optimized\nradix: 16\nhosts: {count: 16, gpus: 4}\nspine: {count: 4}")
    lines = Subnet.of(fabric).dump().split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("[9]"))
    read = read_back("\n".join([*lines[:first], *lines[first + 1 :]]).encode(), "ibnetdiscover")
    assert read.fabric.links.n_cables == fabric.links.n_cables - 1
    assert any("1 end(s) that the other side does not confirm" in each for each in read.remarks)
    with pytest.raises(SpecError, match="which has no line for it"):
        read_back("\n".join([*lines[:first], *lines[first + 6 :]]).encode(), "ibnetdiscover")


@pytest.mark.parametrize(
    ("description", "host", "number"),
    [
        ("dgx-gb200-n01-c1 HCA-1", "dgx-gb200-n01-c1", 0),
        ("node7 mlx5_2", "node7", 2),
        ("nic-host-3 HCA-4", "nic-host-3", 3),
        ("a b HCA-1", "a b", 0),
        ("gpu3/mlx5_0", "gpu3", 0),
        ("H0", "H0", None),
        ("localhost HCA-1", "", None),
        ("MT4129 ConnectX7   Mellanox Technologies", "", None),
        ("", "", None),
    ],
)
def test_node_descriptions(description, host, number):
    """Host and number of the adapter."""
    assert split_description(description) == (host, number)


def with_real_tables(tables: str = TABLES):
    """Return the dump's fabric with forwarding tables."""
    made = FORMATS.find("ibnetdiscover")
    assert made.read is not None
    graph = made.read(source_of(DUMP.encode(), "dump"), ReadOptions())
    from netplan.interop.graph import build_read_graph

    return with_tables(build_read_graph(graph), graph, source_of(tables.encode(), "tables"))


def test_static_routing_follows_real_tables(tmp_path):
    """ib-static takes the ports of the dump: to gpu02's first adapter over the spine, which leads nowhere."""
    fabric, remarks = with_real_tables()
    assert any("1" in each and "does not have" in each for each in remarks)
    flows = FlowTable(np.array([0], np.int32), np.array([3], np.int32), np.zeros(1, np.int32))
    routes = route_flows(fabric, flows, "ib-static")
    assert [fabric.link_name(link) for link in routes.resource.tolist()] == [
        "gpu01 -> ib-leaf01 #1",
        "ib-leaf01 -> gpu02 #2",
    ]
    saved = tmp_path / "f.json"
    save_fabric(fabric, saved)
    again = load_fabric(saved)
    assert again.forwarding is not None
    np.testing.assert_array_equal(again.forwarding, fabric.forwarding)
    assert api.fail(fabric, ["cable:gpu01/ib-leaf01"]).forwarding is None


def test_bad_tables():
    """Switches and ports that are not there, lines that are none; tables onto a file without GUIDs."""
    with pytest.raises(SpecError, match="tables:1: switch 0xdead is not in dump"):
        with_real_tables(TABLES.replace("guid 0x0000000000000900 (MF0", "guid 0xdead (MF0"))
    with pytest.raises(SpecError, match="tables:5: port 99 of ib-leaf01 has no cable in dump"):
        with_real_tables(TABLES.replace("0x000b 001", "0x000b 099"))
    with pytest.raises(SpecError, match="tables:9: is no line of a dump"):
        with_real_tables(TABLES.replace("0x000f 007", "what 007"))
    with pytest.raises(SpecError, match="has no entry for any port"):
        with_real_tables("Unicast lids [0x0-0xf] of switch Lid 2 guid 0x0000000000000900 (x):\n")
    made = FORMATS.find("ibsim")
    assert made.read is not None
    from netplan.interop.graph import build_read_graph

    graph = made.read(source_of(b'Switch 8 "s"\n[1] "h"[1]\nHca 1 "h"\n[1] "s"[1]\n', "net"), ReadOptions())
    with pytest.raises(OutputError, match="has no GUIDs"):
        with_tables(build_read_graph(graph), graph, source_of(TABLES.encode(), "tables"))


def test_saved_tables_are_checked():
    """A saved fabric whose tables point at links of another switch is refused."""
    fabric, _ = with_real_tables()
    data = fabric_to_dict(fabric)
    import json

    data["forwarding"][0] = [0] * fabric.n_endpoints  # link 0 leaves a host
    with pytest.raises(Exception, match="has an entry that is no link of its own"):
        load_fabric(json.dumps(data))
    data["forwarding"] = data["forwarding"][:1]
    with pytest.raises(Exception, match="forwarding must be a list of 2 tables"):
        load_fabric(json.dumps(data))
