"""LLDP answers and rank files."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest
from hypothesis import given, settings

from netplan.errors import SpecError
from netplan.fabric.convert import node_names
from netplan.interop.ports import plain_names, plugs
from netplan.interop.registry import FORMATS, WriteOptions
from tests.strategies import fabrics
from tests.unit.interop.samples import cables, node_number, read_back, with_nasty_names


def neighbour(far, port, *, switch, wrapped):
    """Return one interface's neighbour in either form of lldpd's JSON."""
    ability = [{"type": "Bridge", "enabled": switch}, {"type": "Station", "enabled": not switch}]
    if wrapped:
        return {
            "chassis": [{"name": [{"value": far}], "capability": ability}],
            "port": [{"id": [{"type": "ifname", "value": port}]}],
        }
    return {"chassis": {far: {"capability": ability}}, "port": {"id": {"type": "ifname", "value": port}}}


def answers(fabric, *, wrapped):
    """Return what every switch of a fabric would answer."""
    names = node_names(fabric)
    rows = defaultdict(list)
    for plug in plugs(fabric):
        for near, port, far, far_port in (
            (plug.a, plug.a_port, plug.b, plug.b_port),
            (plug.b, plug.b_port, plug.a, plug.a_port),
        ):
            if fabric.nodes.tier[near]:
                is_switch = bool(fabric.nodes.tier[far])
                of = neighbour(names[far], f"swp{far_port}", switch=is_switch, wrapped=wrapped)
                own = f"swp{port}"
                rows[names[near]].append({"name": own, **of} if wrapped else {own: of})
    return "\n".join(
        json.dumps({name: {"lldp": [{"interface": found}] if wrapped else {"interface": found}}})
        for name, found in rows.items()
    ).encode()


@pytest.mark.parametrize("wrapped", [False, True])
@given(fabric=fabrics())
@settings(max_examples=15)
def test_lldp(wrapped, fabric):
    """Every cable once, though both ends tell of it; hosts are the stations."""
    nasty = with_nasty_names(fabric)
    back = read_back(answers(nasty, wrapped=wrapped), "lldp").fabric
    assert cables(back, by_number=True, rates=False) == cables(nasty, by_number=True, rates=False)
    assert {node_number(node_names(back)[i]) for i in back.host_ids.tolist()} == set(fabric.host_ids.tolist())


def answer(switch, *ends):
    """Return a switch's answer: (port, far, far port, is a switch)."""
    rows = [{p: neighbour(far, at, switch=is_switch, wrapped=False)} for p, far, at, is_switch in ends]
    return json.dumps({switch: {"lldp": {"interface": rows}}}) + "\n"


def test_one_neighbour_without_a_list():
    """lldpd writes a single interface without a list."""
    of = neighbour("h", "eth0", switch=False, wrapped=False)
    text = json.dumps({"s": {"lldp": {"interface": {"swp1": of}}}})
    assert read_back(text.encode(), "lldp").fabric.n_hosts == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"lldp": {}}', "file:1: does not say which switch answered"),
        ("[]", "file:1: does not say which switch answered"),
        ('{"s": {}}', "file:1: is no answer of lldpcli"),
        ('{"s": {"lldp": {"interface": [1]}}}', "an interface is '1', not a map"),
        (answer("s", ("p1", "h", "e", False)) * 2, "file:2: switch 's' answers twice, first in line 1"),
        (
            answer("s", ("p1", "h", "e", False), ("p1", "g", "e", False)),
            "'s' 'p1' has two neighbours, 'h' and 'g'",
        ),
        (
            answer("s", ("p1", "t", "p1", True)) + answer("t", ("p1", "u", "p1", True)),
            "'s' 'p1' sees 't' 'p1', which sees 'u' 'p1' (line 2)",
        ),
    ],
)
def test_lldp_faults(text, message):
    """What is wrong, and where."""
    with pytest.raises(SpecError) as caught:
        read_back(text.encode(), "lldp")
    assert message in str(caught.value)


@given(fabric=fabrics())
@settings(max_examples=15)
def test_rank_file(fabric):
    """Every GPU is one rank, in order, at a slot that its host has."""
    nasty = with_nasty_names(fabric)
    writer = FORMATS.find("rank-file").write
    assert writer is not None
    files = writer(nasty, WriteOptions())
    slots = dict(re.findall(r"^([A-Za-z0-9._-]+) slots=(\d+)$", files["hostfile"].decode(), re.MULTILINE))
    assert len(slots) == fabric.n_hosts
    lines = files["rankfile"].decode().splitlines()
    found = [re.fullmatch(r"rank (\d+)=([A-Za-z0-9._-]+) slot=(\d+)", line) for line in lines]
    rows = [row for row in found if row is not None]
    assert len(rows) == len(lines)
    assert [int(row[1]) for row in rows] == list(range(fabric.n_gpus))
    assert all(int(row[3]) < int(slots[row[2]]) for row in rows)
    names = plain_names(nasty)
    assert [row[2] for row in rows] == [
        names[host]
        for host, gpus in zip(fabric.host_ids.tolist(), fabric.gpus_per_host.tolist(), strict=True)
        for _ in range(gpus)
    ]
