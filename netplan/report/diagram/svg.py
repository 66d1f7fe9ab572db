"""SVG 1.1 as text: one file, no scripts, nothing to load from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from netplan.report.diagram import palette
from netplan.report.diagram.registry import renderer
from netplan.report.diagram.scene import (
    LABEL_SIZE,
    SAMPLE_HEIGHT,
    SAMPLE_WIDTH,
    STACK_OFFSET,
    SUBLABEL_SIZE,
)
from netplan.report.diagram.text import text_width

if TYPE_CHECKING:
    from netplan.report.diagram.scene import Area, Box, LegendItem, Line, Scene, Text

_FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"

#: Characters that XML 1.0 cannot carry, even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@renderer("svg", suffix=".svg", summary="vector graphics for pages, slides and browsers; tooltips say more")
def render(scene: Scene) -> bytes:
    """Draw a scene as SVG.

    Returns
    -------
    bytes
        UTF-8 text, the same for the same scene.
    """
    width, height = _number(scene.width), _number(scene.height)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{_FONTS}">'
        ),
        f"<title>{_text(scene.title)}</title>",
        f'<rect class="paper" width="{width}" height="{height}" fill="{palette.PAPER}"/>',
        *_group("areas", [_area(area) for area in scene.areas]),
        *_group("lines", [_line(line) for line in scene.lines if line.points], ' fill="none"'),
        *_group("boxes", [_box(box) for box in scene.boxes]),
        *_group("texts", [_free_text(text) for text in scene.texts]),
        *_group("legend", [_sample(item) for item in scene.legend]),
        "</svg>",
    ]
    return ("\n".join(parts) + "\n").encode()


def _group(name: str, elements: list[str], attributes: str = "") -> list[str]:
    return [f'<g class="{name}"{attributes}>', *elements, "</g>"]


def _number(value: float) -> str:
    """Write a length: two decimals are finer than any screen."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _rect(x: float, y: float, w: float, h: float, fill: str, stroke: str, more: str = "") -> str:
    return (
        f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(w)}" height="{_number(h)}" '
        f'fill="{fill}" stroke="{stroke}"{more}/>'
    )


def _area(area: Area) -> str:
    dash = ' stroke-dasharray="6 4"' if area.folded else ""
    rect = _rect(area.x, area.y, area.w, area.h, area.fill, area.stroke, f' rx="8"{dash}')
    name = quoteattr(_NOT_XML.sub("\ufffd", area.id))
    return f'<g class="area {area.kind}" id={name}><title>{_text(area.title)}</title>{rect}</g>'


def _line(line: Line) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
    dash = ' stroke-dasharray="7 4"' if line.dashed else ""
    return (
        f'<polyline class="{line.kind}" points="{points}" stroke="{line.colour}" '
        f'stroke-width="{_number(line.width)}"{dash}><title>{_text(line.title)}</title></polyline>'
    )


def _box(box: Box) -> str:
    dash = ' stroke-dasharray="5 3"' if box.folded else ""
    parts = [
        _rect(
            box.x + k * STACK_OFFSET, box.y - k * STACK_OFFSET, box.w, box.h, box.fill, box.stroke, ' rx="5"'
        )
        for k in ((2, 1) if box.stacked else ())
    ]
    parts.append(_rect(box.x, box.y, box.w, box.h, box.fill, box.stroke, f' stroke-width="1.4" rx="5"{dash}'))
    if box.stripes:
        step = (box.w - 12) / len(box.stripes)
        parts += [
            f'<rect x="{_number(box.x + 6 + i * step)}" y="{_number(box.y + box.h - 6)}" '
            f'width="{_number(step)}" height="3" fill="{colour}"/>'
            for i, colour in enumerate(box.stripes)
        ]
    middle = box.x + box.w / 2
    y = box.y + box.h / 2
    two = bool(box.sublabel)
    parts.append(
        _written(middle, y - 2 if two else y + 4, box.label, LABEL_SIZE, palette.INK, "middle", bold=True)
    )
    if two:
        parts.append(_written(middle, y + 12, box.sublabel, SUBLABEL_SIZE, palette.FAINT, "middle"))
    return f'<g class="box {box.kind}" id="{box.id}"><title>{_text(box.title)}</title>{"".join(parts)}</g>'


def _written(
    x: float, y: float, text: str, size: float, colour: str, anchor: str, *, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" fill="{colour}"'
        f"{weight}{place}>{_text(text)}</text>"
    )


def _free_text(text: Text) -> str:
    written = _written(text.x, text.y, text.text, text.size, text.colour, text.anchor, bold=text.bold)
    if not text.backdrop:
        return written
    width = text_width(text.text, text.size, bold=text.bold) + 4
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
    return (
        f'<rect x="{_number(left)}" y="{_number(text.y - text.size)}" width="{_number(width)}" '
        f'height="{_number(text.size * 1.3)}" fill="{text.backdrop}"/>{written}'
    )


def _sample(item: LegendItem) -> str:
    y = item.y + SAMPLE_HEIGHT / 2
    if item.kind in {"line", "dashed"}:
        dash = ' stroke-dasharray="7 4"' if item.kind == "dashed" else ""
        return (
            f'<line x1="{_number(item.x)}" y1="{_number(y)}" x2="{_number(item.x + SAMPLE_WIDTH)}" '
            f'y2="{_number(y)}" stroke="{item.stroke}" stroke-width="2.5"{dash}/>'
        )
    size = (SAMPLE_WIDTH, SAMPLE_HEIGHT)
    dash = ' stroke-dasharray="3 2"' if item.kind == "folded" else ""
    below = (
        _rect(item.x + 3, item.y - 3, *size, item.fill, item.stroke, ' rx="3"')
        if item.kind == "stack"
        else ""
    )
    return below + _rect(item.x, item.y, *size, item.fill, item.stroke, f' rx="3"{dash}')
