"""Failures as text, damaged fabrics in every later stage, and each refusal's message."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from netplan.errors import FabricError
from netplan.fabric.checks import check_fabric
from netplan.fabric.convert import fabric_to_dict, load_fabric, save_fabric, to_networkx
from netplan.fabric.failures import Failures, apply_failures, list_losses
from netplan.fabric.measures import measure
from netplan.report.diagram import render_diagram
from tests.contracts.making import damage_of, make_fabric
from tests.fabrics import (
    NAMED,
    dumbbell,
    fat_tree_k4,
    lab_two_leaves,
    metro_diverse,
    metro_star,
    metro_two_sites,
    rail_2x8,
    three_campuses,
)

DAMAGED = {
    "a spine": (fat_tree_k4, ["switch:spine-0-1"]),
    "a NIC": (rail_2x8, ["nic:host-00003/2"]),
    "a leaf": (rail_2x8, ["switch:leaf-b1-r7"]),
    "cables at random": (fat_tree_k4, ["random:cable:10%"]),
    "a site": (metro_two_sites, ["site:north"]),
    "a span": (three_campuses, ["span:b/c"]),
    "one of two": (three_campuses, ["cable:leaf-b/leaf-a"]),
    "the middle": (dumbbell, ["switch:mid"]),
}


@pytest.fixture(params=DAMAGED)
def damaged(request):
    """Each of the fabrics above."""
    make, failures = DAMAGED[request.param]
    return apply_failures(make(), failures, seed=1)


def test_the_fabric_itself_is_not_touched():
    """A damaged fabric is another value: the first keeps its bytes; no failures give it back."""
    fabric = fat_tree_k4()
    before = json.dumps(fabric_to_dict(fabric))
    damaged = apply_failures(fabric, ["switch:core-0-0"])
    assert json.dumps(fabric_to_dict(fabric)) == before
    assert damaged.n_nodes == fabric.n_nodes
    assert damaged.node_name(20) == fabric.node_name(20)
    assert apply_failures(fabric, []) is fabric
    assert repr(damaged).endswith("damaged>")


def test_known_damage_is_a_warning(damaged):
    """Cut-off hosts and parts are warnings; nothing else is wrong with what is left."""
    assert {fault.severity for fault in check_fabric(damaged)} <= {"warning"}


def test_it_is_measured_drawn_and_converted(damaged, tmp_path):
    """Every later stage takes it; saving and loading gives an equal one."""
    measures = measure(damaged)
    assert measures.endpoints == damaged.n_endpoints
    assert measures.notes[0].startswith("damaged (")
    for suffix in (".svg", ".png"):
        assert render_diagram(damaged, suffix)
    assert to_networkx(damaged).number_of_edges() == damaged.links.n_cables
    save_fabric(damaged, tmp_path / "damaged.json")
    again = load_fabric(tmp_path / "damaged.json")
    assert fabric_to_dict(again) == fabric_to_dict(damaged)
    assert damage_of(again).failures == damage_of(damaged).failures


def test_old_numbers(damaged):
    """Every endpoint left is the one of its old number: same host, rail and leaf."""
    damage = damaged.damage
    for column in ("host", "rail", "plane", "leaf", "gpu"):
        old = getattr(damage.before, column)[damage.endpoint]
        np.testing.assert_array_equal(getattr(damaged.endpoints, column), old)
    np.testing.assert_array_equal(
        damage.cable[damaged.endpoints.cable], damage.before.cable[damaged.damage.endpoint]
    )
    assert len(damage.failed_cables) + damaged.links.n_cables == damage.n_cables


def test_failures_on_top_equal_failures_at_once():
    """First a spine, then a leaf, or both together: the same fabric is left."""
    fabric = fat_tree_k4()
    both = apply_failures(fabric, ["switch:spine-0-0", "switch:leaf-1-0"])
    first = apply_failures(fabric, ["switch:spine-0-0"])
    then = apply_failures(first, ["switch:leaf-1-0"])
    assert fabric_to_dict(then) == fabric_to_dict(both)
    assert list_losses(first, then).switches == ("leaf-1-0",)
    assert list_losses(fabric, then).switches == ("leaf-1-0", "spine-0-0")


def test_names_with_slashes():
    """In a metro domain the names of a site's nodes have slashes: ``cable:`` finds both."""
    fabric = metro_two_sites()
    damaged = apply_failures(fabric, ["cable:north/leaf-b0-r0/north/spine-0-1", "nic:south/host-00002/1"])
    assert list_losses(fabric, damaged).cables == {"host_leaf": 1, "leaf_spine": 1}
    there = damaged.links.src[2 * damaged.endpoints.cable]
    np.testing.assert_array_equal(there, damaged.endpoints.host)


def test_a_leaf_without_uplinks_is_cut_off():
    """Its hosts keep their cables, but reach nobody else: they are cut off, and the reason says so."""
    fabric = fat_tree_k4()
    damaged = apply_failures(fabric, ["cable:leaf-0-0/spine-0-0", "cable:spine-0-1/leaf-0-0"])
    losses = list_losses(fabric, damaged)
    assert losses.hosts == ("host-00000", "host-00001")
    assert (losses.endpoints, losses.leaf_failed, losses.cut_off) == (2, 0, 2)


@pytest.mark.parametrize(
    ("failure", "count"),
    [
        ("random:cable:3", 3),
        ("random:cable:12.5%", 6),
        ("random:leaf_spine:1", 1),
        ("random:site:1", None),
        ("tier:core:2", 8),
        ("random:core:2", 8),
        ("random:host:1", 1),
        ("random:nic:25%", 4),
        ("tier:leaf:1", 4),
        ("random:switch:100%", None),
    ],
)
def test_how_many_fail(failure, count):
    """48 cables, 16 hosts of one NIC, 4 cores of 4 cables, leaves of 2 hosts and 2 uplinks."""
    if count is None:
        with pytest.raises(FabricError, match="no host of fabric 'fat-tree-k4' keeps a working NIC"):
            apply_failures(fat_tree_k4(), [failure])
    else:
        assert len(damage_of(apply_failures(fat_tree_k4(), [failure], seed=5)).failed_cables) == count


def test_parallel_cables():
    """Two parallel cables: the first, the second, or all."""
    fabric = lab_two_leaves()
    texts = {"": 1, "#1": 1, "#2": 1, "#all": 2}
    gone = {
        text: damage_of(apply_failures(fabric, [f"cable:leaf-0-0/spine-0-0{text}"])).failed_cables.tolist()
        for text in ("", "#1", "#2")
    }
    assert gone[""] == gone["#1"] != gone["#2"]
    every = apply_failures(fabric, ["cable:spine-0-0/leaf-0-0#all", "cable:host-00000/leaf-0-0"])
    assert len(damage_of(every).failed_cables) == texts["#all"] + 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a failure"),
        ("leaf-0-3", "is not a failure"),
        ("swich:leaf-0-3", "did you mean switch"),
        ("switch:", "write the kind, a colon, the name"),
        ("switch:leaf-0-9", "no switch 'leaf-0-9'"),
        ("switch:leef-0-1", "did you mean leaf-0-1"),
        ("switch:host-00001", "is a host, not a switch"),
        ("host:leaf-0-0", "is a leaf, not a host"),
        ("host:host-99999", "no host 'host-99999'"),
        ("nic:host-00003", "names one end only"),
        ("nic:host-00003/4", "has no NIC '4'"),
        ("nic:host-00003/x", "it has NICs 0"),
        ("nic:host-00003/0#2", "there are 1 ports of host-00003 NIC 0, not 2"),
        ("cable:leaf-0-0", "names one end only"),
        ("cable:leaf-0-0/spine-9-9", "no host or switch 'spine-9-9'"),
        ("cable:leaf-0-0/spine-1-0", "leaf-0-0 is joined to"),
        ("cable:leaf-0-0/spine-0-0#2", "there are 1 parallel cables, not 2"),
        ("cable:leaf-0-0/spine-0-0#0", "is not #1, #2"),
        ("site:west", "its sites: site"),
        ("span:east", "does not name two sites"),
        ("span:east/west", "no site 'east'"),
        ("span:site/site", "no span joins"),
        ("span:site/site/path-1", "no span joins"),
        ("span:site/site/path-0", "paths are called path-1, path-2"),
        ("span:a/b/c/d", "does not name two sites"),
        ("random:fibre_path:1", "there are 0 fibre paths, not 1"),
        ("random:site:2", "there are 1 sites, not 2"),
        ("tier:spine", "does not say how many"),
        ("tier:spine:0", "neither a number from 1 nor a percentage"),
        ("tier:spine:9", "there are 8 nodes of tier spine, not 9"),
        ("tier:spin:1", "did you mean spine"),
        ("random:cable:0%", "0% is out of range"),
        ("random:cable:101%", "101% is out of range"),
        ("random:cable:-1%", "neither a number"),
        ("random:cable:many", "neither a number"),
        ("random:cable:0.5%", "0.5% of 48 cables is none"),
        ("random:cabel:1", "did you mean cable"),
        ("tier:host:16", "no host of fabric"),
    ],
)
def test_messages(text, says):
    """Each refusal names the failure as it was written, and says what is accepted."""
    with pytest.raises(FabricError) as refusal:
        apply_failures(fat_tree_k4(), [text])
    assert says in str(refusal.value)
    assert repr(text) in str(refusal.value) or text in str(refusal.value)


def test_span_messages():
    """Two sites that no span joins, and more links than the span has."""
    with pytest.raises(FabricError, match="no span joins these sites"):
        apply_failures(three_campuses(), ["span:a/c"])
    with pytest.raises(FabricError, match="there are 2 links in this span, not 3"):
        apply_failures(three_campuses(), ["span:a/b:3"])


def test_a_cut_takes_the_links_of_its_path_and_no_other():
    """Paths of 12, 12 and 8 links; with a number the first so many of it; whichever site comes first."""
    fabric = metro_diverse()
    for text, path, links in (
        ("span:north/south/path-1", 0, 12),
        ("span:south/north/path-3", 2, 8),
        ("span:north/south/path-2:5", 1, 5),
    ):
        gone = damage_of(apply_failures(fabric, [text])).failed_cables
        assert len(gone) == links
        assert set(fabric.links.path[2 * gone].tolist()) == {path}
    whole = damage_of(apply_failures(fabric, ["span:north/south"])).failed_cables
    assert len(whole) == 32


def test_fibre_path_messages():
    """A path that is not there, more links than it has, one that is cut already, and spans without paths."""
    with pytest.raises(FabricError, match=r"no fibre path path-4.*") as refusal:
        apply_failures(metro_diverse(), ["span:north/south/path-4"])
    assert refusal.value.hint == "it has path-1, path-2, path-3"
    with pytest.raises(FabricError, match="there are 8 links on this fibre path, not 9"):
        apply_failures(metro_diverse(), ["span:north/south/path-3:9"])
    cut = apply_failures(metro_diverse(), ["span:north/south/path-3"])
    with pytest.raises(FabricError, match="no link is left on this fibre path"):
        apply_failures(cut, ["span:north/south/path-3"])
    with pytest.raises(FabricError, match="no fibre path path-1") as refusal:
        apply_failures(three_campuses(), ["span:a/b/path-1"])
    assert refusal.value.hint == "fail the whole span, or some of its links"
    with pytest.raises(FabricError, match="no span joins these sites") as refusal:
        apply_failures(metro_star(), ["span:east/west"])
    assert refusal.value.hint == "spans: hub/east, hub/west"


@pytest.mark.parametrize("seed", range(5))
def test_random_paths_and_sites_fail_whole(seed):
    """Two of three paths: what is left is one path, complete; a site: all of its nodes."""
    fabric = metro_diverse()
    paths = apply_failures(fabric, ["random:fibre_path:2"], seed)
    (left,) = set(paths.links.path[paths.links.path >= 0].tolist())
    assert (paths.links.path == left).sum() == (fabric.links.path == left).sum()
    site = damage_of(apply_failures(fabric, ["random:site:1"], seed)).nodes
    assert len(set(fabric.nodes.site[site].tolist())) == 1
    assert len(site) == fabric.n_nodes // 2


def test_a_nic_of_two_ports():
    """``nic:`` takes a NIC with its ports in both planes, ``#2`` the second only."""
    fabric = make_fabric("kind: multi-plane\nradix: 8\nplanes: 2\nhosts: {count: 4, gpus: 1}")
    assert fabric.n_endpoints == 8
    assert apply_failures(fabric, ["nic:host-00001/0"]).n_endpoints == 6
    assert apply_failures(fabric, ["nic:host-00001/0#2"]).n_endpoints == 7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(failures=[]), "damage.failures"),
        (lambda d: d.update(n_cables=1), "damage.n_cables"),
        (lambda d: d.update(seeds=[]), "does not fit"),
        (lambda d: d.update(lost={"values": [0], "counts": [16]}), "disagree"),
        (lambda d: d.update(cable={"values": [99], "counts": [47]}), "damage.cable"),
        (lambda d: d.pop("before"), "damage lacks before"),
        (lambda d: d.update(more=1), "unknown more"),
    ],
)
def test_a_saved_damage_is_checked(change, says):
    """A file's damage must fit its fabric."""
    data = json.loads(json.dumps(fabric_to_dict(apply_failures(fat_tree_k4(), ["host:host-00003"]))))
    change(data["damage"])
    with pytest.raises(FabricError, match=says):
        load_fabric(json.dumps(data))


@pytest.mark.parametrize("name", NAMED)
def test_losing_every_nic_but_two(name):
    """The most that can fail: what is left is still a fabric."""
    fabric = NAMED[name]()
    hosts = [fabric.node_name(int(node)) for node in fabric.host_ids]
    damaged = apply_failures(fabric, [f"host:{host}" for host in hosts[2:]])
    assert len(list_losses(fabric, damaged).hosts) == len(hosts) - 2
    assert measure(damaged).endpoints == damaged.n_endpoints


def test_the_same_in_another_process():
    """Random failures do not depend on Python's hash seed."""
    code = (
        "from tests.fabrics import fat_tree_k4\n"
        "from netplan.fabric.failures import apply_failures\n"
        "print(apply_failures(fat_tree_k4(), ['random:cable:20%'], 7).damage.failed_cables.tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_reading_does_not_look_names_up():
    """`Failures.parse` knows no fabric: names are looked up when the failures are applied."""
    assert len(Failures.parse(["switch:nowhere", "tier:spine:2"])) == 2
