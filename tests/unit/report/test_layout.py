"""What every picture of every fabric must keep to, whatever is collapsed."""

import time
from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from netplan.errors import NetplanError
from netplan.fabric import LINK_KINDS, TIER_NAMES
from netplan.report.diagram import COLLAPSES, Scene, draw_fabric
from netplan.report.diagram.cells import Grain, count_blocks, group_fabric
from netplan.report.diagram.layout import MOST_BOXES, MOST_LINES, MOST_NODES, WIDEST
from netplan.report.diagram.scene import BOX_PADDING, LABEL_SIZE, SUBLABEL_SIZE
from netplan.report.diagram.text import ELLIPSIS, text_width
from tests.unit.report.fabrics_to_draw import NAMES, fabric_named
from tests.unit.report.rects import overlap, rect_of, rect_of_text

PICTURES = [
    (name, collapse)
    for name in NAMES
    for collapse in COLLAPSES
    if collapse != "none"
    or name in {"lab", "one-leaf", "rails-512", "fat-tree-4", "metro-lab", "uneven", "two-planes"}
]


@cache
def drawn(name: str, collapse: str) -> Scene:
    return draw_fabric(fabric_named(name), collapse=collapse)


@pytest.fixture(params=PICTURES, ids="-".join)
def picture(request):
    name, collapse = request.param
    return fabric_named(name), drawn(name, collapse)


def of_kind(scene: Scene, kind: str) -> int:
    return sum(line.count for line in scene.lines if line.kind == kind)


# ---- counts --------------------------------------------------------------------------------------


def test_lines_stand_for_all_cables_of_each_kind(picture):
    fabric, scene = picture
    for kind in LINK_KINDS:
        assert of_kind(scene, kind) == fabric.count_cables(kind), kind


def test_boxes_stand_for_all_nodes_of_each_tier(picture):
    fabric, scene = picture
    counted = Counter[str]()
    for box in scene.boxes:
        counted[box.kind] += box.count
    assert counted == {tier: fabric.count_tier(tier) for tier in TIER_NAMES if fabric.count_tier(tier)}


@pytest.mark.parametrize("name", ["lab", "rails-512", "fat-tree-4", "metro-lab", "uneven", "fat-tree-8"])
def test_node_by_node_each_node_is_a_box_and_each_pair_a_line(name):
    fabric = fabric_named(name)
    scene = draw_fabric(fabric, collapse="none")
    assert all(box.count == 1 for box in scene.boxes)
    assert len(scene.boxes) == fabric.n_nodes
    name_of = {box.id: box.title.split(":")[0] for box in scene.boxes}
    drawn = Counter[frozenset[str]]()
    for line in scene.lines:
        drawn[frozenset((name_of[line.source], name_of[line.target]))] += line.count
    # The obvious way: cable by cable.
    wired = Counter(
        frozenset((fabric.node_name(int(a)), fabric.node_name(int(b))))
        for a, b in zip(fabric.links.src[::2], fabric.links.dst[::2], strict=True)
    )
    assert drawn == wired


def test_lines_join_boxes_of_the_scene(picture):
    _, scene = picture
    ids = {box.id for box in scene.boxes}
    assert len(ids) == len(scene.boxes)
    assert all(line.source in ids and line.target in ids for line in scene.lines)


def test_lines_end_at_the_edges_of_their_boxes(picture):
    _, scene = picture
    boxes = {box.id: box for box in scene.boxes}
    for line in scene.lines:
        if not line.points:
            assert line.source == line.target
            continue
        for (x, y), box in zip(
            (line.points[0], line.points[-1]), (boxes[line.source], boxes[line.target]), strict=True
        ):
            # 6: the cards of a pile, at its right.
            assert box.x - 0.01 <= x <= box.x + box.w + 6.01
            assert box.y - 0.01 <= y <= box.y + box.h + 0.01


# ---- readable ------------------------------------------------------------------------------------


def test_text_fits_its_box(picture):
    _, scene = picture
    for box in scene.boxes:
        room = box.w - 2 * BOX_PADDING
        assert box.label
        assert text_width(box.label, LABEL_SIZE, bold=True) <= room, box
        assert text_width(box.sublabel, SUBLABEL_SIZE) <= room, box


def test_shortened_text_is_whole_in_the_tooltip(picture):
    _, scene = picture
    for box in scene.boxes:
        if ELLIPSIS in box.label and box.count == 1:
            head, tail = box.label.split(ELLIPSIS)
            name = box.title.split(":")[0]
            assert name.startswith(head)
            assert name.endswith(tail)


def test_titles_of_areas_fit_them(picture):
    _, scene = picture
    for area in scene.areas:
        size = 13.0 if area.kind == "site" else 11.0
        widest = max(text_width(part, size, bold=True) for part in area.label.split(" · "))
        assert widest <= area.w


def test_no_box_overlaps_another(picture):
    _, scene = picture
    for a, b in combinations(scene.boxes, 2):
        assert not overlap(rect_of(a), rect_of(b)), (a.label, b.label)


def test_boxes_lie_in_their_areas_and_in_no_other(picture):
    _, scene = picture
    for area in scene.areas:
        if area.kind != "column":
            continue
        left, top, right, bottom = rect_of(area)
        for box in scene.boxes:
            inside = left <= box.x and box.x + box.w <= right and top <= box.y and box.y + box.h <= bottom
            assert inside == (box.group == area.id)
            assert inside or not overlap(rect_of(area), rect_of(box))


def test_areas_of_one_kind_do_not_overlap(picture):
    _, scene = picture
    for a, b in combinations(scene.areas, 2):
        if a.kind == b.kind:
            assert not overlap(rect_of(a), rect_of(b))


def test_no_text_lies_on_a_box_or_on_another_text(picture):
    _, scene = picture
    for text in scene.texts:
        for box in scene.boxes:
            assert not overlap(rect_of_text(text), rect_of(box)), (text.text, box.label)
    for a, b in combinations(scene.texts, 2):
        assert not overlap(rect_of_text(a), rect_of_text(b)), (a.text, b.text)


def test_everything_lies_on_the_paper(picture):
    _, scene = picture
    rects = [rect_of(thing) for thing in (*scene.boxes, *scene.areas)]
    rects += [rect_of_text(text) for text in scene.texts]
    rects += [(x, y, x, y) for line in scene.lines for x, y in line.points]
    for left, top, right, bottom in rects:
        assert left >= 0
        assert top >= 0
        assert right <= scene.width
        assert bottom <= scene.height


def test_tiers_are_rows_with_hosts_at_the_bottom(picture):
    _, scene = picture
    rows = {kind: {box.y for box in scene.boxes if box.kind == kind} for kind in TIER_NAMES}
    heights = [rows[kind] for kind in TIER_NAMES if rows[kind]]
    assert all(len(row) == 1 for row in heights)
    ys = [row.pop() for row in heights]
    assert ys == sorted(ys, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_auto_is_readable(name):
    scene = draw_fabric(fabric_named(name))
    assert len(scene.boxes) <= MOST_BOXES
    assert len(scene.lines) <= MOST_LINES
    assert scene.width <= WIDEST
    assert scene.height <= scene.width


@pytest.mark.bench
def test_the_largest_is_drawn_well_under_a_second():
    fabric = fabric_named("gpus-131072")
    began = time.perf_counter()
    draw_fabric(fabric)
    assert time.perf_counter() - began < 1


# ---- what is said --------------------------------------------------------------------------------


def written(scene: Scene) -> set[str]:
    return {text.text for text in scene.texts}


def labels(scene: Scene, kind: str) -> list[str]:
    return [box.label for box in scene.boxes if box.kind == kind]


def test_a_lab_is_drawn_node_by_node():
    scene = draw_fabric(fabric_named("lab"))
    assert scene.title == "lab — leaf-spine, 32 GPUs, 4 switches, 16 cables"
    assert labels(scene, "spine") == ["spine-0-0", "spine-0-1"]
    assert labels(scene, "host") == ["host-00000", "host-00001", "host-00002", "host-00003"]
    # Every host has both NICs on its leaf, every leaf two cables to each spine.
    assert [line.label for line in scene.lines] == ["×2"] * 8
    assert {"4 hosts", "2 leaves", "2 spines", "8 × 400G", "each 8 GPUs, 2 × 400G"} <= written(scene)


def test_a_thousand_gpus_show_blocks_and_rails():
    scene = draw_fabric(fabric_named("rails-1024"))
    assert labels(scene, "host") == ["32 hosts"] * 4
    assert labels(scene, "leaf") == [f"r{rail}" for rail in range(8)] * 4
    assert labels(scene, "spine") == ["16 spines"]
    assert [area.label for area in scene.areas] == [f"block {block}" for block in range(4)]
    leaves = [box for box in scene.boxes if box.kind == "leaf"]
    assert len({box.fill for box in leaves}) == 8
    assert leaves[0].fill == leaves[8].fill
    assert {"rail 0", "rail 7"} <= {item.label for item in scene.legend}
    assert {"1,024 × 400G", "32 per line", "64 ports, 64 used"} <= written(scene)


def test_collapsed_by_pod_a_two_tier_fabric_is_three_boxes():
    scene = draw_fabric(fabric_named("rails-1024"), collapse="pod")
    assert [box.label for box in scene.boxes] == ["128 hosts", "32 leaves · 8 rails", "16 spines"]
    assert scene.boxes[0].sublabel == "1,024 GPUs · 8 × 400G each"
    assert [line.label for line in scene.lines] == ["1,024 × 400G"] * 2
    assert len(scene.boxes[1].stripes) == 8


def test_collapsed_by_rail_each_rail_is_a_box():
    scene = draw_fabric(fabric_named("rails-1024"), collapse="rail")
    assert labels(scene, "leaf") == [f"rail {rail} · 4 leaves" for rail in range(8)]


def test_pods_of_one_rail_are_gathered_by_rail():
    scene = draw_fabric(fabric_named("gpus-131072"))
    assert labels(scene, "host") == ["16,384 hosts"]
    assert labels(scene, "leaf") == ["512 leaves"] * 8
    assert labels(scene, "core") == ["1,024 cores"] * 2  # the two domains do not meet
    assert [area.title for area in scene.areas] == [f"rail {rail} · 16 pods" for rail in range(8)]


def test_of_many_pods_two_and_the_last_are_drawn():
    scene = draw_fabric(fabric_named("gpus-131072"), collapse="pod")
    titles = [area.title for area in scene.areas]
    assert titles == ["pod 0 · rail 0", "pod 1 · rail 0", "… 125 more pods", "pod 127 · rail 7"]
    assert [area.folded for area in scene.areas] == [False, False, True, False]
    assert labels(scene, "leaf") == ["32 leaves", "32 leaves", "4,000 leaves", "32 leaves"]


def test_sites_stand_side_by_side_with_length_and_links_between():
    scene = draw_fabric(fabric_named("metro-2"))
    sites = [area for area in scene.areas if area.kind == "site"]
    assert [area.title for area in sites] == ["site-0 · 64 hosts, 512 GPUs", "site-1 · 64 hosts, 512 GPUs"]
    # 512 NICs of 400G over 8 are 64 links of 400G.
    assert [line.label for line in scene.lines if line.kind == "inter_site"] == ["30 km · 64 × 400G"]
    assert {"30 km", "64 × 400G", "8:1 oversubscribed"} <= written(scene)


def test_every_pair_of_four_sites_has_its_link_and_label():
    scene = draw_fabric(fabric_named("metro-4"))
    between = [line for line in scene.lines if line.kind == "inter_site"]
    assert len(between) == 6
    assert all(line.label.endswith(" · 44 × 400G") for line in between)


def test_of_many_sites_two_and_the_last_are_drawn():
    scene = draw_fabric(fabric_named("metro-9"))
    sites = [area for area in scene.areas if area.kind == "site"]
    assert [area.folded for area in sites] == [False, False, True, False]
    assert "6 more sites" in sites[2].title
    inner = [line for line in scene.lines if line.kind == "inter_site" and not line.points]
    assert sum(line.count for line in inner) == 5 * 32  # five of the ring's nine spans
    folded = next(box for box in scene.boxes if box.id == inner[0].source)
    assert "160 cables among them" in folded.title


def test_oversubscription_is_said_where_there_is_some():
    assert "2:1 oversubscribed" in written(draw_fabric(fabric_named("leaf-spine-2048")))
    assert not any("oversubscribed" in text for text in written(draw_fabric(fabric_named("rails-1024"))))


def test_a_single_leaf_has_no_other_tier():
    scene = draw_fabric(fabric_named("one-leaf"))
    assert {box.kind for box in scene.boxes} == {"host", "leaf"}


def test_cables_of_two_speeds_are_two_lines():
    scene = draw_fabric(fabric_named("uneven"), collapse="none")
    double = Counter((line.source, line.target) for line in scene.lines if line.kind == "leaf_spine")
    assert max(double.values()) == 2


def test_planes_differ_in_shade():
    scene = draw_fabric(fabric_named("two-planes"))
    low, high = [box.fill for box in scene.boxes if box.kind == "spine"]
    assert low != high
    assert "darker: higher plane" in written(scene)
    collapsed = draw_fabric(fabric_named("two-planes"), collapse="pod")
    assert len([box for box in collapsed.boxes if box.kind == "spine"]) == 2


# ---- grouping ------------------------------------------------------------------------------------


def test_blocks_are_hosts_and_the_leaves_they_share():
    # 64 hosts in two blocks of 32, eight leaves each; spines are in none.
    fabric = fabric_named("rails-512")
    block = count_blocks(fabric)
    assert block[:64].tolist() == [0] * 32 + [1] * 32
    assert block[64:80].tolist() == [0] * 8 + [1] * 8
    assert (block[80:] == -1).all()


def test_hosts_on_the_same_leaves_are_one_group():
    # The obvious way: the sorted leaves of each host.
    fabric = fabric_named("uneven")
    grouping = group_fabric(fabric, Grain("one", "group", "node", "node", "node"))
    leaves = [
        tuple(sorted(fabric.endpoints.leaf[a:b].tolist()))
        for a, b in zip(fabric.endpoint_ptr[:-1], fabric.endpoint_ptr[1:], strict=True)
    ]
    keys = set(zip(leaves, fabric.gpus_per_host.tolist(), strict=True))
    hosts = [cell for cell in grouping.cells if cell.tier == 0]
    assert len(hosts) == len(keys)


def test_a_cell_knows_its_ports():
    grouping = group_fabric(fabric_named("uneven"), Grain("one", "column", "column", "column", "column"))
    leaves = next(cell for cell in grouping.cells if cell.tier == 1)
    assert leaves.radix == (16, 64)
    # By hand: 4 + 6, 3 + 3 and 10 + 9 cables.
    assert leaves.used == (6, 19)


def test_drawing_changes_nothing():
    fabric = fabric_named("lab")
    before = {name: np.copy(getattr(fabric.nodes, name)) for name in ("tier", "pod", "rail", "site")}
    draw_fabric(fabric)
    assert all(np.array_equal(getattr(fabric.nodes, name), column) for name, column in before.items())


# ---- refusals ------------------------------------------------------------------------------------


def test_an_unknown_way_to_collapse_is_refused():
    with pytest.raises(NetplanError, match=r"collapse = 'pods' is not one of auto, none, pod, rail") as error:
        draw_fabric(fabric_named("lab"), collapse="pods")
    assert error.value.hint == "pod"


def test_node_by_node_is_refused_where_nobody_could_read_it():
    fabric = fabric_named("clos-65536")
    assert fabric.n_nodes > MOST_NODES
    with pytest.raises(NetplanError, match=r"draws all 70,656 nodes; it does so up to 2,000") as error:
        draw_fabric(fabric, collapse="none")
    assert error.value.hint == "use auto, pod or rail"
