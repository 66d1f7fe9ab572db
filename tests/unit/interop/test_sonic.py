"""SONiC: what is written is read back, its tables hold together, and faults have lines."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings

from netplan.errors import OutputError, SpecError
from netplan.fabric.convert import node_names
from netplan.interop.registry import FORMATS, WriteOptions
from netplan.interop.sonic import deal_ports
from tests.contracts.making import make_fabric
from tests.strategies import fabrics
from tests.unit.interop.samples import cables, node_number, read_back, with_nasty_names

TREE = "kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 4, nics: 2}\nspine: {count: 4}"


def configs(fabric, **options):
    """Write; return the files."""
    writer = FORMATS.find("sonic").write
    assert writer is not None
    return writer(fabric, WriteOptions(settings=options))


@given(fabric=fabrics())
@settings(max_examples=25)
def test_round_trip(fabric):
    """Every cable of random fabrics, its speed, and who is a host; names as a hostname can be."""
    nasty = with_nasty_names(fabric)
    back = read_back(b"".join(configs(nasty, qos="off").values()), "sonic").fabric
    assert cables(back, by_number=True) == cables(nasty, by_number=True)
    assert {node_number(node_names(back)[i]) for i in back.host_ids.tolist()} == set(fabric.host_ids.tolist())


@given(fabric=fabrics())
@settings(max_examples=15)
def test_sessions_and_addresses(fabric):
    """Both ends of a session name each other's address and AS, which differ; no address is used twice."""
    made = [json.loads(each) for each in configs(fabric, qos="off").values()]
    asn, session, addresses = {}, {}, []
    for each in made:
        number = each["DEVICE_METADATA"]["localhost"]["bgp_asn"]
        for far, row in each.get("BGP_NEIGHBOR", {}).items():
            assert far not in session
            session[far] = row["local_addr"], row["asn"]
            asn[row["local_addr"]] = number
            assert row["asn"] != number
        addresses += [key.split("|")[1] for key in each["INTERFACE"] if "|" in key]
    assert len(addresses) == len(set(addresses))
    for far, (near, number) in session.items():
        assert session[near][0] == far
        assert asn[far] == number
        assert {f"{far}/31", f"{near}/31"} <= set(addresses)


def test_tables_hold_together():
    """References lead to rows that are there; the WRED rows are within the bounds of the YANG model."""
    for content in configs(make_fabric(TREE)).values():
        config = json.loads(content)
        ports = config["PORT"]
        lanes = [lane for row in ports.values() for lane in row["lanes"].split(",")]
        assert len(lanes) == len(set(lanes))
        for table in ("DEVICE_NEIGHBOR", "PORT_QOS_MAP"):
            assert set(config[table]) == set(ports)
        assert set(config["CABLE_LENGTH"]["AZURE"]) == set(ports)
        for key, row in config["QUEUE"].items():
            assert key.split("|")[0] in ports
            assert row["scheduler"] in config["SCHEDULER"]
            assert row.get("wred_profile", "ROCE_1") in config["WRED_PROFILE"]
        assert {row["profile"] for row in config["BUFFER_PG"].values()} == set(config["BUFFER_PROFILE"])
        assert {row["pool"] for row in config["BUFFER_PROFILE"].values()} == set(config["BUFFER_POOL"])
        for name, row in config["WRED_PROFILE"].items():
            assert re.fullmatch(r"[a-zA-Z0-9][-a-zA-Z0-9_]{0,31}", name)
            assert 0 < int(row["green_min_threshold"]) < int(row["green_max_threshold"])
            assert 0 <= int(row["green_drop_probability"]) <= 100
        # What the ports' headroom takes together is what the pool keeps for it.
        kept = sum(int(config["BUFFER_PROFILE"][r["profile"]]["xoff"]) for r in config["BUFFER_PG"].values())
        assert kept <= int(config["BUFFER_POOL"]["ingress_lossless_pool"]["xoff"])


def test_ports():
    """Cages of eight lanes are split into ports of one speed."""
    assert [port.alias for port in deal_ports([12.5e9] * 9)][-2:] == ["Eth1/8", "Eth2/1"]
    assert [port.name for port in deal_ports([100e9, 50e9, 50e9])] == ["Ethernet0", "Ethernet8", "Ethernet12"]
    with pytest.raises(OutputError, match="3200 Gb/s is none of SONiC's"):
        deal_ports([400e9])


def switch(name, neighbours, speed="400000", **more):
    """Return a small config."""
    return json.dumps(
        {
            "DEVICE_METADATA": {"localhost": {"hostname": name}},
            "PORT": {port: {"speed": speed} for port in neighbours},
            "DEVICE_NEIGHBOR": {p: {"name": far, "port": at} for p, (far, at) in neighbours.items()},
            **more,
        },
        indent=1,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "file:1: is no config_db.json of SONiC: it has no DEVICE_METADATA"),
        (
            '{"DEVICE_METADATA": {"localhost": {}}}',
            "file:1: DEVICE_METADATA has no localhost with a hostname",
        ),
        ('{"DEVICE_METADATA": 1}', "DEVICE_METADATA is no table"),
        ('{"DEVICE_METADATA": {"localhost": {"hostname": "a"}}}', "'a' has no DEVICE_NEIGHBOR"),
        (switch("a", {"Ethernet0": ("h", "eth0")}, "fast"), "'Ethernet0' has the speed 'fast'"),
        (switch("a", {"Ethernet0": ("h", "eth0")}) * 2, "switch 'a' is described twice, first in line 4"),
        (switch("a", {"Ethernet0": ("h", "eth0")}, PORT={"Ethernet8": {}}), "which is not in PORT"),
        (switch("a", {"Ethernet0": ("", "eth0")}), "neighbour at 'Ethernet0' has no name"),
        (
            switch("a", {"Ethernet0": ("b", "Ethernet0")}) + switch("b", {"Ethernet0": ("c", "Ethernet0")}),
            "'a' 'Ethernet0' is cabled to 'b' 'Ethernet0', which says 'c' 'Ethernet0'",
        ),
        ("{" * 5000, "is not JSON"),
        ('{"a":' * 5000, "is nested too deeply"),
        ('{"a": NaN}', "NaN is no number of JSON"),
    ],
)
def test_faults(text, message):
    """What is wrong, and where."""
    with pytest.raises(SpecError) as caught:
        read_back(text.encode(), "sonic")
    assert message in str(caught.value)


def test_remarks():
    """One file, or files that differ, are read with a word about it."""
    back = read_back(
        (
            switch("a", {"Ethernet0": ("b", "Ethernet0"), "Ethernet8": ("h", "eth0")})
            + switch("b", {"Ethernet0": ("a", "Ethernet0")}, "200000")
        ).encode(),
        "sonic",
    )
    said = " ".join(back.remarks)
    assert "1 cable(s) whose ends have different speeds: the lower is taken" in said
    assert "1 neighbour(s) without a type: taken for hosts" in said
    assert sorted(back.fabric.links.capacity[0::2].tolist()) == [25e9, 50e9]
