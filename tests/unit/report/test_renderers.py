"""Contract of every renderer, then what is particular to each."""

import io
import os
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from netplan.errors import NetplanError
from netplan.report.diagram import RENDERERS, draw_fabric, find_renderer, render_diagram
from netplan.report.diagram.png import MOST_PIXELS, plain
from tests.unit.report.fabrics_to_draw import NAMES, fabric_named, two_planes

SVG = "{http://www.w3.org/2000/svg}"


def parse(fabric, **options) -> ET.Element:
    return ET.fromstring(render_diagram(fabric, "svg", **options))


def by_class(root: ET.Element, tag: str, name: str) -> list[ET.Element]:
    return [e for e in root.iter(SVG + tag) if name in (e.get("class") or "").split()]


# ---- contract ------------------------------------------------------------------------------------


@pytest.fixture(params=RENDERERS.names())
def renderer(request):
    return RENDERERS.find(request.param)


def test_a_renderer_says_what_it_is(renderer):
    assert renderer.suffix.startswith(".")
    assert renderer.summary
    assert find_renderer(renderer.name) is find_renderer(renderer.suffix.upper()) is renderer


def test_suffixes_are_told_apart():
    suffixes = [renderer.suffix for renderer in RENDERERS]
    assert len(set(suffixes)) == len(suffixes)


def test_the_same_scene_gives_the_same_bytes(renderer):
    fabric = fabric_named("metro-2")
    assert renderer.render(draw_fabric(fabric)) == renderer.render(draw_fabric(fabric))


def test_the_same_bytes_whatever_the_hash_seed(renderer):
    program = f"""
import hashlib
from tests.unit.report.fabrics_to_draw import fabric_named
from netplan.report.diagram import render_diagram
for name in ("rails-1024", "uneven", "metro-lab"):
    print(hashlib.sha256(render_diagram(fabric_named(name), {renderer.name!r})).hexdigest())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([".", *sys.path])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    "names", ['{{}}<b>&"c"\'', "{{}}\u4e2d\u6587\U0001f5a7", "{{}}\x07\x1b", "{{}}]]>-->"]
)
def test_any_name_can_be_drawn(renderer, names):
    fabric = two_planes(names.replace("{{}}", "{}"))
    assert renderer.render(draw_fabric(fabric, collapse="none"))


def test_an_unknown_format_is_refused_with_those_there_are():
    with pytest.raises(NetplanError, match=r"diagram format 'svgz' is not one of svg, png, html") as error:
        render_diagram(fabric_named("lab"), ".svgz")
    assert error.value.hint == "svg"


# ---- SVG -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_svg_holds_the_whole_scene(name):
    fabric = fabric_named(name)
    scene, root = draw_fabric(fabric), parse(fabric)
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert len(by_class(root, "g", "box")) == len(scene.boxes)
    assert len(by_class(root, "g", "area")) == len(scene.areas)
    assert len(list(root.iter(SVG + "polyline"))) == sum(bool(line.points) for line in scene.lines)
    texts = [text.text for text in root.iter(SVG + "text")]
    assert {box.label for box in scene.boxes} <= set(texts)
    assert {text.text for text in scene.texts} <= set(texts)
    assert root.findtext(SVG + "title") == scene.title


def test_svg_boxes_of_each_tier_are_its_nodes_when_nothing_is_collapsed():
    root = parse(fabric_named("fat-tree-4"), collapse="none")
    # k = 4: k^3/4 hosts, k^2/2 leaves and spines, k^2/4 cores; a third of 48 cables on each level.
    assert [len(by_class(root, "g", kind)) for kind in ("host", "leaf", "spine", "core")] == [16, 8, 8, 4]
    kinds = ("host_leaf", "leaf_spine", "spine_core")
    assert [len(by_class(root, "polyline", kind)) for kind in kinds] == [16, 16, 16]


def test_svg_tooltips_say_everything():
    root = parse(fabric_named("rails-1024"))
    titles = [title.text for title in root.iter(SVG + "title")]
    assert "leaf-b0-r3: leaf, 64 of 64 ports used, rail 3" in titles
    assert "32 hosts: host-00000 … host-00031, 256 GPUs · 8 × 400G each" in titles
    assert "32 hosts – leaf-b0-r0: 32 × 400G" in titles


def test_svg_escapes_names():
    fabric = two_planes('{}<b>&"c"')
    root = parse(fabric, collapse="none")
    assert root.findtext(SVG + "title") == 'two planes<b>&"c" — by hand, 2 GPUs, 4 switches, 6 cables'
    assert 'l1<b>&"c": leaf, 3 of 8 ports used, plane 1, 2:1 downlink to uplink bandwidth' in [
        title.text for title in root.iter(SVG + "title")
    ]
    assert any(text.text == 'l0<b>&"c"' for text in root.iter(SVG + "text"))
    assert not list(root.iter(SVG + "b"))


def test_svg_needs_nothing_from_elsewhere():
    text = render_diagram(fabric_named("metro-4"), "svg").decode()
    assert "<script" not in text
    assert "href" not in text
    assert set(re.findall(r"https?://[^\"]*", text)) == {"http://www.w3.org/2000/svg"}


def test_svg_has_a_white_background():
    paper = by_class(parse(fabric_named("lab")), "rect", "paper")
    assert [rect.get("fill") for rect in paper] == ["#ffffff"]


# ---- PNG -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "collapse"), [("lab", "auto"), ("gpus-131072", "auto"), ("fat-tree-8", "none")]
)
def test_png_has_the_scene_s_proportions_and_a_sane_size(name, collapse):
    fabric = fabric_named(name)
    scene = draw_fabric(fabric, collapse=collapse)
    image = Image.open(io.BytesIO(render_diagram(fabric, "png", collapse=collapse)))
    image.load()
    assert image.format == "PNG"
    assert max(image.size) <= MOST_PIXELS
    assert image.width / image.height == pytest.approx(scene.width / scene.height, rel=0.01)
    assert image.getpixel((0, 0)) == (255, 255, 255)


def test_png_shows_boxes_in_their_colours():
    fabric = fabric_named("lab")
    scene = draw_fabric(fabric)
    image = Image.open(io.BytesIO(render_diagram(fabric, "png"))).convert("RGB")
    scale = image.width / scene.width
    for box in scene.boxes:
        pixel = image.getpixel((round((box.x + 6) * scale), round((box.y + box.h / 2) * scale)))
        assert pixel == tuple(int(box.fill[i : i + 2], 16) for i in (1, 3, 5))


def test_png_writes_other_scripts_without_failing():
    assert plain("Zürich × 2 — 中…") == "Zurich x 2 - ?…"
