"""containerlab: round trips, the published schema, a topology in its own style, and faults."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings

from netplan.errors import SpecError
from netplan.fabric.convert import node_names
from tests.contracts.making import make_fabric
from tests.strategies import fabrics
from tests.unit.interop.samples import cables, node_number, read_back, with_nasty_names, written

TREE = "kind: leaf-spine\nradix: 8\nhosts: {count: 8, gpus: 4, nics: 2}\nspine: {count: 4}"


@given(fabric=fabrics())
@settings(max_examples=25)
def test_round_trip(fabric):
    """Cables, speeds, lengths, hosts, GPUs, tiers and radixes."""
    nasty = with_nasty_names(fabric)
    back = read_back(written(nasty, "containerlab"), "containerlab").fabric
    assert cables(back, by_number=True) == cables(nasty, by_number=True)
    assert sorted(back.links.length.tolist()) == pytest.approx(sorted(fabric.links.length.tolist()))
    order = [node_number(name) for name in node_names(back)]
    np.testing.assert_array_equal(back.nodes.tier, fabric.nodes.tier[order])
    np.testing.assert_array_equal(back.nodes.radix, fabric.nodes.radix[order])
    index = fabric.host_index[order[: back.n_hosts]]
    np.testing.assert_array_equal(back.gpus_per_host, fabric.gpus_per_host[index])


@given(fabric=fabrics())
@settings(max_examples=10)
def test_ports_are_used_once(fabric):
    """No interface of a node has two cables, and none is eth0, which is management."""
    data = yaml.safe_load(written(with_nasty_names(fabric), "containerlab"))
    ends = [end for link in data["topology"]["links"] for end in link["endpoints"]]
    assert len(ends) == len(set(ends))
    assert not any(end.endswith(":eth0") for end in ends)
    assert {end.split(":")[0] for end in ends} <= set(data["topology"]["nodes"])


@pytest.mark.parametrize("kind", ["sonic-vs", "linux", "nokia_srlinux", "nvidia_cumulusvx", "arista_ceos"])
def test_schema(kind):
    """The published schema takes what is written; where the schema is at hand (CLAB_SCHEMA)."""
    path = os.environ.get("CLAB_SCHEMA", "")
    if not Path(path).is_file():
        pytest.skip("CLAB_SCHEMA names no file")
    jsonschema = pytest.importorskip("jsonschema")
    # Python's regular expressions have no \p{...}.
    schema = json.loads(Path(path).read_text().replace(r"\\p{N}", "0-9").replace(r"\\p{L}", "a-zA-Z"))
    jsonschema.validate(yaml.safe_load(written(make_fabric(TREE), "containerlab", kind=kind)), schema)


def test_own_style():
    """A topology as people write them: no labels, kinds only."""
    text = """
name: two
topology:
  nodes:
    leaf1: {kind: nokia_srlinux}
    leaf2: {kind: nokia_srlinux}
    spine1: {kind: nokia_srlinux}
    client1: {kind: linux}
    client2:
      kind: linux
  links:
    - endpoints: ["leaf1:e1-1", "spine1:e1-1"]
    - endpoints: ["leaf2:e1-1", "spine1:e1-2"]
    - endpoints: ["client1:eth1", "leaf1:e1-3"]
    - endpoints: ["client2:eth1", "leaf2:e1-3"]
    - endpoints: ["leaf1:e1-9", "host:x"]
"""
    back = read_back(text.encode(), "containerlab")
    assert (back.fabric.n_hosts, back.fabric.n_switches) == (2, 3)
    assert back.fabric.nodes.tier.tolist() == [0, 0, 1, 1, 2]
    assert any("1 link(s) left out" in remark for remark in back.remarks)
    assert any("4 cable(s)" in remark for remark in back.remarks)


HEAD = "topology:\n  nodes:\n    a: {kind: linux}\n    s: {kind: x}\n  links:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "file:1: is no topology of containerlab"),
        ("- 1", "file:1: is no topology of containerlab"),
        ("topology: {nodes: {a: 3}}", "node 'a' is '3', not a map"),
        (HEAD + '    - endpoints: ["a:eth1"]', "file:6: a link has not two endpoints"),
        (HEAD + '    - endpoints: ["a:eth1", "s"]', "file:6: endpoint 's' is not node:interface"),
        (HEAD + '    - endpoints: ["a:eth1", "t:e1"]', "file:6: a cable ends at 't'"),
        (HEAD + "    - 7", "file:6: a link is no map with endpoints"),
    ],
)
def test_faults(text, message):
    """What is wrong, and where."""
    with pytest.raises(SpecError) as caught:
        read_back(text.encode(), "containerlab")
    assert message in str(caught.value)
