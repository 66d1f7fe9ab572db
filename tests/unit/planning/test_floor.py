"""Cable lengths from where racks stand."""

from __future__ import annotations

import time

import numpy as np
import pytest

from netplan import api
from netplan.errors import CatalogError, SpecError
from netplan.fabric.columns import LINK_KINDS
from netplan.planning.floor import LENGTH_CLASSES, floor_lengths, length_class, load_floor, round_up
from netplan.spec.floor import FloorSpec
from tests.fabrics import yaml_fabric

#: Eight hosts of one NIC on two leaves, one spine.
EIGHT = "{name: eight, kind: leaf-spine, radix: 8, hosts: {count: 8, gpus: 1}}"


def lengths_of(fabric, kind, floor):
    return floor_lengths(fabric, floor)[fabric.links.kind[0::2] == LINK_KINDS.index(kind)]


def test_a_small_hall_by_hand():
    # Two hosts a rack, four racks in one row at x = 0, 1, 2, 3; one leaf rack at its end, x = 4, y = 0.
    # Half of 1 host row is 0, so the spines' row is row 0 and the hosts' row 1.
    # rise 2, slack 0, width 1, pitch 3: host in rack r to leaf: (4 - r) + 2 * 2.
    floor = FloorSpec(
        hosts_per_rack=2,
        racks_per_row=4,
        rack_width=1.0,
        row_pitch=3.0,
        rise=2.0,
        slack=0.0,
        switches_per_rack=8,
    )
    fabric = yaml_fabric(EIGHT)
    assert lengths_of(fabric, "host_leaf", floor).tolist() == [8, 8, 7, 7, 6, 6, 5, 5]
    # The spine stands in row 0, in the middle of its length: one rack of 1 m in 4 m begins at 1.5.
    assert lengths_of(fabric, "leaf_spine", floor).tolist() == [2.5 + 3 + 4] * 8


def test_in_rack_leaves_are_close():
    floor = FloorSpec(hosts_per_rack=4, leaf="in-rack")
    fabric = yaml_fabric(EIGHT)
    assert (lengths_of(fabric, "host_leaf", floor) == floor.in_rack).all()


def test_middle_of_row_is_closer_than_its_end_at_worst():
    fabric = api.load_fabric("superpod-b200-4su")
    at_end = lengths_of(fabric, "host_leaf", FloorSpec())
    in_middle = lengths_of(fabric, "host_leaf", FloorSpec(leaf="middle-of-row"))
    assert in_middle.max() < at_end.max()


def test_slack_and_rise_only_lengthen():
    fabric = api.load_fabric("superpod-b200-4su")
    short = floor_lengths(fabric, FloorSpec(slack=0.0))
    assert (floor_lengths(fabric, FloorSpec(slack=0.2)) >= short).all()
    assert (floor_lengths(fabric, FloorSpec(slack=0.0, rise=4.0)) >= short).all()


def test_spans_keep_their_length_and_sites_are_apart():
    fabric = api.load_fabric("metro-30km-2site")
    assert (lengths_of(fabric, "inter_site", FloorSpec()) == 30e3).all()
    assert lengths_of(fabric, "host_leaf", FloorSpec()).max() < 50, "each site has its own hall"


def test_a_fabric_of_131072_gpus_takes_less_than_a_second():
    fabric = api.load_fabric("rail-131k")
    begin = time.perf_counter()
    length = floor_lengths(fabric, FloorSpec())
    assert time.perf_counter() - begin < 1
    assert len(length) == fabric.links.n_cables
    assert length.min() > 0
    assert length.max() < 500


@pytest.mark.parametrize("name", ["custom-example", "fat-tree-k8", "llama3-24k", "metro-ring-4site"])
def test_every_cable_gets_a_length(name):
    fabric = api.load_fabric(name)
    for floor in (FloorSpec(), FloorSpec(leaf="in-rack", spine="end-of-row", core="middle-of-row")):
        assert (floor_lengths(fabric, floor) > 0).all()


def test_classes():
    lengths = np.asarray([0.3, 1.0, 1.1, 3.0, 4.0, 499.0, 501.0, 2e3, 30e3, 81e3, 120e3, 130e3])
    bought = [1.0, 1.0, 2.0, 3.0, 5.0, 500.0, 2e3, 2e3, 40e3, 120e3, 120e3, 130e3]
    assert round_up(lengths).tolist() == bought
    assert length_class(np.asarray([130e3])).tolist() == [len(LENGTH_CLASSES)]


def test_a_floor_file(tmp_path):
    path = tmp_path / "hall.yaml"
    path.write_text("hosts_per_rack: 2\nrow_pitch: 4 m\n", encoding="utf-8")
    floor = load_floor(str(path))
    assert (floor.hosts_per_rack, floor.row_pitch) == (2, 4.0)
    assert load_floor("default") == FloorSpec()


def test_faults_of_a_floor_file(tmp_path):
    path = tmp_path / "hall.yaml"
    path.write_text("hosts_per_rack: 0\nrow_pitch: 4\nspine: in-rack\n", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_floor(str(path))
    said = str(caught.value)
    assert "hall.yaml:1: hosts_per_rack = 0" in said
    assert "hall.yaml:2: row_pitch = 4" in said
    path.write_text("spine: in-rack\n", encoding="utf-8")
    with pytest.raises(SpecError, match="only leaves can stand"):
        load_floor(str(path))
    with pytest.raises(CatalogError, match="write `default`"):
        load_floor(str(tmp_path / "no.yaml"))
