"""What a picture shows of failures: marks add up to what is lost, in its place, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from netplan.fabric.failures import apply_failures, gone_cables
from netplan.report.diagram import draw_fabric, palette, render_diagram
from tests.fabrics import dual_tor_two_segments, fat_tree_k4, metro_diverse, metro_star, rail_2x8

CASES = [
    (fat_tree_k4, ["switch:leaf-0-0", "random:cable:3"]),
    (rail_2x8, ["tier:spine:1", "nic:host-00003/2", "host:host-00005"]),
    (metro_star, ["span:hub/east", "switch:hub-metro-1"]),
    (metro_diverse, ["span:north/south/path-2", "site:south"]),
    (dual_tor_two_segments, ["nic:host-00001/0#1"]),
]


@pytest.mark.parametrize("collapse", ["auto", "none", "pod"])
@pytest.mark.parametrize(("make", "failures"), CASES)
def test_marks_add_up_to_what_is_lost(make, failures, collapse):
    fabric = make()
    damaged = apply_failures(fabric, failures)
    scene = draw_fabric(fabric, collapse=collapse, damaged=damaged)
    assert damaged.damage is not None
    dead = (np.diff(damaged.endpoint_ptr) == 0) & (np.diff(fabric.endpoint_ptr) > 0)
    nodes = set(damaged.damage.nodes.tolist()) | set(fabric.host_ids[dead].tolist())
    assert sum(box.failed for box in scene.boxes) == len(nodes)
    assert sum(line.failed for line in scene.lines) == len(gone_cables(fabric, damaged))
    for box in scene.boxes:
        assert (box.stroke == palette.FAILED) == (box.failed > 0)
        assert box.failed <= box.count
    for line in scene.lines:
        assert (line.colour == palette.FAILED) == (line.failed > 0)
        assert line.dashed or line.failed < line.count


@pytest.mark.parametrize(("make", "failures"), CASES)
def test_only_marks_differ_from_the_whole_picture(make, failures):
    """Same boxes and lines in the same places; without failures the same picture."""
    fabric = make()
    whole = draw_fabric(fabric)
    assert draw_fabric(fabric, damaged=fabric) == whole
    marked = draw_fabric(fabric, damaged=apply_failures(fabric, failures))
    for before, after in zip(whole.boxes, marked.boxes, strict=True):
        same = {name: getattr(before, name) for name in ("fill", "stroke", "sublabel", "title", "failed")}
        assert replace(after, **same) == before
    for line, marked_line in zip(whole.lines, marked.lines, strict=True):
        same = {name: getattr(line, name) for name in ("colour", "dashed", "title", "failed")}
        assert replace(marked_line, **same) == line


def test_the_picture_says_what_failed():
    fabric = fat_tree_k4()
    damaged = apply_failures(fabric, ["switch:leaf-0-0"])
    scene = draw_fabric(fabric, damaged=damaged)
    texts = [text.text for text in scene.texts]
    assert "failed: switch:leaf-0-0" in texts
    assert "failed or cut off" in texts
    box = next(box for box in scene.boxes if "leaf-0-0" in box.title)
    assert box.failed == 1
    assert box.title.endswith(": failed")
    hosts = [box for box in scene.boxes if box.kind == "host" and box.failed]
    assert sum(box.failed for box in hosts) == 2  # cut off, though they did not fail
    assert all("lost" in box.sublabel for box in hosts)


def test_failures_on_top_of_a_damaged_fabric_are_the_new_ones():
    first = apply_failures(fat_tree_k4(), ["switch:spine-0-0"])
    scene = draw_fabric(first, damaged=apply_failures(first, ["switch:spine-1-0"]))
    assert "failed: switch:spine-1-0" in [text.text for text in scene.texts]


def test_svg_has_the_marks():
    fabric = metro_star()
    text = render_diagram(fabric, "svg", damaged=apply_failures(fabric, ["span:hub/west"])).decode()
    assert f'stroke="{palette.FAILED}"' in text
    assert "8 of 8 failed" in text
