"""Pictures of direct networks: what every one must keep to, and what some say."""

from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from netplan.fabric import Fabric
from netplan.fabric.failures import apply_failures
from netplan.report.diagram import COLLAPSES, Scene, draw_fabric, render_diagram
from netplan.report.diagram.direct import MOST_SWITCHES
from netplan.report.diagram.scene import BOX_PADDING, LABEL_SIZE, SUBLABEL_SIZE
from netplan.report.diagram.text import text_width
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric
from tests.unit.report.rects import overlap, rect_of, rect_of_text

FABRICS: dict[str, dict[str, Any]] = {
    "dragonfly": {"kind": "dragonfly", "radix": 7},
    "dragonfly-many": {"kind": "dragonfly", "radix": 15},
    "dragonfly-two": {"kind": "dragonfly", "radix": 7, "groups": 2},
    "dragonfly-uneven": {"kind": "dragonfly", "radix": 11, "groups": 12, "uneven": True},
    "dragonfly-single": {"kind": "dragonfly", "group": {"routers": 1}, "router": {"global_links": 6}},
    "dragonfly-plus": {"kind": "dragonfly-plus", "radix": 8, "groups": 5},
    "dragonfly-plus-many": {"kind": "dragonfly-plus", "radix": 8, "hosts": {"gpus": 1, "count": 100}},
    "slim-fly": {"kind": "slim-fly", "q": 5},
    "slim-fly-large": {"kind": "slim-fly", "q": 16},
    "torus-1": {"kind": "torus", "dims": [20]},
    "torus-2": {"kind": "torus", "dims": [6, 5]},
    "torus-pair": {"kind": "torus", "dims": [2, 3], "pair_cables": 2, "bundles": [2, 1]},
    "torus-3": {"kind": "torus", "dims": [4, 3, 3]},
    "torus-large": {"kind": "torus", "dims": [16, 4, 16]},
    "mesh": {"kind": "torus", "dims": [5, 3], "wrap": False},
    "hyperx-1": {"kind": "hyperx", "dims": [9]},
    "hyperx-2": {"kind": "hyperx", "dims": [5, 4]},
    "hyperx-4": {"kind": "hyperx", "dims": [3, 3, 2, 2], "router": {"endpoints": 2}},
    "hyperx-large": {"kind": "hyperx", "dims": [12, 8], "router": {"endpoints": 7}},
}


@cache
def built(name: str) -> Fabric:
    return build_fabric(FABRIC_SPEC.validate_python({"name": name, "hosts": {"gpus": 1}, **FABRICS[name]}))


@cache
def drawn(name: str, collapse: str) -> Scene:
    return draw_fabric(built(name), collapse=collapse)


PICTURES = [
    (name, collapse)
    for name in FABRICS
    for collapse in COLLAPSES
    if collapse != "none" or built(name).n_switches <= 100
]


@pytest.fixture(params=PICTURES, ids="-".join)
def picture(request):
    name, collapse = request.param
    return built(name), drawn(name, collapse)


def written(scene: Scene) -> set[str]:
    return {text.text for text in scene.texts}


# ---- every picture ---------------------------------------------------------------------------------


def test_lines_stand_for_all_cables_between_switches(picture):
    fabric, scene = picture
    counted = Counter[str]()
    for line in scene.lines:
        counted[line.kind] += line.count
    assert counted == {kind: n for kind in ("local", "global") if (n := fabric.count_cables(kind))}


def test_boxes_stand_for_all_switches(picture):
    fabric, scene = picture
    counted = Counter[str]()
    for box in scene.boxes:
        counted[box.kind] += box.count
    assert counted == {tier: n for tier in ("leaf", "spine") if (n := fabric.count_tier(tier))}


def test_lines_end_at_the_edges_of_their_boxes(picture):
    _, scene = picture
    boxes = {box.id: box for box in scene.boxes}
    assert len(boxes) == len(scene.boxes)
    for line in scene.lines:
        if not line.points:
            assert line.source == line.target
            continue
        ends = (line.points[0], line.points[-1])
        for (x, y), box in zip(ends, (boxes[line.source], boxes[line.target]), strict=True):
            assert box.x - 0.02 <= x <= box.x + box.w + 0.02
            assert box.y - 0.02 <= y <= box.y + box.h + 0.02


def test_boxes_and_texts_keep_off_each_other_and_on_the_paper(picture):
    _, scene = picture
    for a, b in combinations(scene.boxes, 2):
        assert not overlap(rect_of(a), rect_of(b)), (a.label, b.label)
    for text in scene.texts:
        for box in scene.boxes:
            assert not overlap(rect_of_text(text), rect_of(box)), (text.text, box.label)
    for one, other in combinations(scene.texts, 2):
        assert not overlap(rect_of_text(one), rect_of_text(other)), (one.text, other.text)
    rects = [rect_of(box) for box in scene.boxes] + [rect_of_text(text) for text in scene.texts]
    rects += [(x, y, x, y) for line in scene.lines for x, y in line.points]
    for left, top, right, bottom in rects:
        assert left >= 0
        assert top >= 0
        assert right <= scene.width
        assert bottom <= scene.height


def test_text_fits_its_box(picture):
    _, scene = picture
    for box in scene.boxes:
        room = box.w - 2 * BOX_PADDING
        assert box.label
        assert text_width(box.label, LABEL_SIZE, bold=True) <= room, box
        assert text_width(box.sublabel, SUBLABEL_SIZE) <= room, box


@pytest.mark.parametrize("collapse", ["auto", "pod", "rail"])
@pytest.mark.parametrize("name", FABRICS)
def test_collapsed_it_is_readable(name, collapse):
    scene = drawn(name, collapse)
    assert len(scene.boxes) <= MOST_SWITCHES
    assert scene.height <= 1.5 * scene.width
    assert b"<svg" in render_diagram(built(name), "svg", collapse=collapse)


# ---- node by node --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, collapse in PICTURES if collapse == "none"])
def test_every_pair_of_switches_that_is_joined_is_a_line(name):
    fabric, scene = built(name), drawn(name, "none")
    name_of = {box.id: box.title.split(": ")[1].split(",")[0] for box in scene.boxes}
    found = Counter[frozenset[str]]()
    for line in scene.lines:
        found[frozenset((name_of[line.source], name_of[line.target]))] += line.count
    wired = Counter(
        frozenset((fabric.node_name(int(a)), fabric.node_name(int(b))))
        for a, b in zip(fabric.links.src[::2], fabric.links.dst[::2], strict=True)
        if fabric.nodes.tier[a] > 0
    )
    assert found == wired


def test_a_torus_is_a_grid_with_its_ends_joined_by_arcs():
    scene = drawn("torus-2", "auto")
    assert len({box.x for box in scene.boxes}) == 6
    assert len({box.y for box in scene.boxes}) == 5
    arcs = [line for line in scene.lines if len(line.points) > 2]
    assert len(arcs) == 6 + 5
    assert all(len(line.points) == 2 for line in drawn("mesh", "auto").lines)


# ---- what is said ------------------------------------------------------------------------------------------


def test_a_small_dragonfly_names_its_groups_and_counts_hosts_on_routers():
    scene = drawn("dragonfly", "auto")
    assert {f"group {g}" for g in range(9)} <= written(scene)
    assert {box.sublabel for box in scene.boxes} == {"2 hosts"}
    assert "9 groups of 4 routers; 72 hosts, 72 NICs; 7 of 7 ports used at most" in written(scene)
    assert "cables: 54 local × 400G, 5 m; 36 global × 400G, 30 m, 1 a pair of groups" in written(scene)
    local = {line.colour for line in scene.lines if line.kind == "local"}
    assert len(local) == 9, "local lines have the colour of their group"


def test_of_many_groups_the_first_and_the_last_are_drawn():
    scene = drawn("dragonfly-many", "auto")
    assert [box.label for box in scene.boxes] == [
        *(f"group {g}" for g in range(10)), "… 22 groups", "group 32"
    ]  # fmt: skip
    assert [box.folded for box in scene.boxes].count(True) == 1
    assert scene.boxes[0].sublabel == "8 routers · 32 hosts"
    assert "28 cables among them" in scene.boxes[0].title
    folded = [line.label for line in scene.lines if line.dashed and line.points]
    assert set(folded) <= {"×22", ""}
    assert "×22" in folded


def test_uneven_bundles_are_told():
    assert any(", 1 or 2 a pair of groups" in text for text in written(drawn("dragonfly-uneven", "pod")))


def test_a_dragonfly_plus_has_leaves_outside_of_spines():
    scene = drawn("dragonfly-plus", "pod")
    assert [box.kind for box in scene.boxes] == ["leaf"] * 5 + ["spine"] * 5
    xs, ys = ([getattr(box, c) for box in scene.boxes] for c in "xy")
    assert min(xs[:5]) < min(xs[5:])
    assert max(ys[:5]) > max(ys[5:])
    assert "5 groups of 4 leaves and 4 spines; 80 hosts, 80 NICs; 8 of 8 ports used at most" in written(scene)
    assert scene.boxes[5].sublabel == "4 spines"


def test_a_deep_torus_is_drawn_in_two_dimensions():
    scene = drawn("torus-3", "auto")
    assert len(scene.boxes) == 12
    assert scene.boxes[0].label == "0-0-*"
    assert scene.boxes[0].sublabel == "3 routers · 3 hosts"
    large = drawn("torus-large", "auto")
    assert [box.label for box in large.boxes[:4]] == ["0-0-*", "1-0-*", "2…14-0-*", "15-0-*"]
    assert "16 × 4 × 16 = 1,024 routers; 1,024 hosts, 1,024 NICs; 7 of 7 ports used at most" in written(large)


# ---- failures ----------------------------------------------------------------------------------


def test_what_failed_is_marked():
    fabric = built("dragonfly")
    damaged = apply_failures(
        fabric, ["switch:router-2-1", "cable:router-0-0/router-0-1", "host:host-00000"], seed=1
    )
    scene = draw_fabric(fabric, damaged=damaged)
    boxes = {box.title.split(": ")[1].split(",")[0]: box for box in scene.boxes}
    assert boxes["router-2-1"].failed == 1
    assert "2 hosts lost" in boxes["router-2-1"].title
    assert "1 host lost" in boxes["router-0-0"].title
    assert boxes["router-0-0"].failed == 0
    assert boxes["router-4-0"].title.count("lost") == 0
    lines = [line for line in scene.lines if line.failed]
    assert len(lines) == 5 + 1, "three local and two global cables of the router, and one cable"
    assert all(line.dashed for line in lines)
    assert any("failed: switch:router-2-1" in text for text in written(scene))
    few = draw_fabric(fabric, damaged=damaged, collapse="pod")
    group = next(box for box in few.boxes if box.label == "group 2")
    assert group.failed == 1
    assert "1 of 4 failed" in group.title


def test_a_damaged_network_is_drawn_by_tiers():
    # Without its structure it is any fabric: in rows, its switches joined within theirs.
    damaged = apply_failures(built("dragonfly"), ["random:global:2"])
    assert damaged.direct is None
    scene = draw_fabric(damaged)
    assert sum(line.count for line in scene.lines if line.kind == "global") == 34


def test_the_same_fabric_gives_the_same_picture():
    assert render_diagram(built("slim-fly"), "svg") == render_diagram(built("slim-fly"), "svg")
    assert np.all([box.w == drawn("slim-fly", "auto").boxes[0].w for box in drawn("slim-fly", "auto").boxes])
