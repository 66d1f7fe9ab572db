"""PNG drawn with Pillow and the font that it brings: no browser, no system font.

Pillow draws without smooth edges, so the picture is drawn twice as large and halved. Its font
has ASCII, ``·`` and ``…`` only: other letters are written without their accents, or as ``?``.
"""

from __future__ import annotations

import io
import math
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from netplan.report.diagram import palette
from netplan.report.diagram.registry import renderer
from netplan.report.diagram.scene import (
    LABEL_SIZE,
    SAMPLE_HEIGHT,
    SAMPLE_WIDTH,
    STACK_OFFSET,
    SUBLABEL_SIZE,
)

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    from netplan.report.diagram.scene import Area, Box, LegendItem, Line, Scene, Text

#: Pixels of the picture for one unit of the scene, where the limits below allow it.
SCALE = 2.0

#: Widest and highest picture [pixels].
MOST_PIXELS = 4000

#: How much larger it is drawn before it is reduced.
_OVERSAMPLING = 2

_ASCII = str.maketrans({"×": "x", "—": "-", "–": "-", "−": "-", "µ": "u"})
_IN_FONT = frozenset("·…")


@renderer("png", suffix=".png", summary="pixels for chats and office programs; at most 4,000 wide or high")
def render(scene: Scene) -> bytes:
    """Draw a scene as PNG.

    Returns
    -------
    bytes
        The file, the same for the same scene and version of Pillow.
    """
    from PIL import Image, ImageDraw

    scale = min(SCALE, MOST_PIXELS / scene.width, MOST_PIXELS / scene.height)
    size = (max(round(scene.width * scale), 1), max(round(scene.height * scale), 1))
    image = Image.new("RGB", (size[0] * _OVERSAMPLING, size[1] * _OVERSAMPLING), palette.PAPER)
    pen = _Pen(ImageDraw.Draw(image), scale * _OVERSAMPLING)
    for area in scene.areas:
        pen.area(area)
    for line in scene.lines:
        pen.line(line)
    for box in scene.boxes:
        pen.box(box)
    for text in scene.texts:
        pen.free_text(text)
    for item in scene.legend:
        pen.sample(item)
    file = io.BytesIO()
    image.resize(size, Image.Resampling.BOX).save(file, "PNG", optimize=True)
    return file.getvalue()


def plain(text: str) -> str:
    """Return the text in letters that the font has.

    Examples
    --------
    >>> plain("Zürich × 2 — …")
    'Zurich x 2 - …'
    """
    letters = unicodedata.normalize("NFKD", text.translate(_ASCII).replace("…", "\x00")).replace("\x00", "…")
    kept = (c for c in letters if not unicodedata.combining(c))
    return "".join(c if (c.isascii() and c.isprintable()) or c in _IN_FONT else "?" for c in kept)


@lru_cache(maxsize=64)
def _font(size: float) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


class _Pen:
    """Draws in the unit of the scene on a picture ``scale`` times as large."""

    def __init__(self, draw: ImageDraw, scale: float) -> None:
        self._draw = draw
        self._scale = scale

    def area(self, area: Area) -> None:
        self._rect(area.x, area.y, area.w, area.h, area.fill, area.stroke, radius=8, dashed=area.folded)

    def line(self, line: Line) -> None:
        points = line.points
        for (x0, y0), (x1, y1) in pairwise(points):
            self._stroke(x0, y0, x1, y1, line.colour, line.width, dash=(7, 4) if line.dashed else None)

    def box(self, box: Box) -> None:
        for k in (2, 1) if box.stacked else ():
            shift = k * STACK_OFFSET
            self._rect(box.x + shift, box.y - shift, box.w, box.h, box.fill, box.stroke)
        self._rect(box.x, box.y, box.w, box.h, box.fill, box.stroke, width=1.4, dashed=box.folded)
        step = (box.w - 12) / len(box.stripes) if box.stripes else 0
        for i, colour in enumerate(box.stripes):
            left, top = box.x + 6 + i * step, box.y + box.h - 6
            self._draw.rectangle(self._scaled(left, top, left + step, top + 3), colour)
        middle, y = box.x + box.w / 2, box.y + box.h / 2
        two = bool(box.sublabel)
        self._text(middle, y - 2 if two else y + 4, box.label, LABEL_SIZE, palette.INK, "middle", bold=True)
        if two:
            self._text(middle, y + 12, box.sublabel, SUBLABEL_SIZE, palette.FAINT, "middle")

    def free_text(self, text: Text) -> None:
        if text.backdrop:
            width = _font(text.size * self._scale).getlength(plain(text.text)) / self._scale + 8
            left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
            top = text.y - text.size
            self._draw.rectangle(self._scaled(left, top, left + width, top + 1.3 * text.size), text.backdrop)
        self._text(text.x, text.y, text.text, text.size, text.colour, text.anchor, bold=text.bold)

    def sample(self, item: LegendItem) -> None:
        y = item.y + SAMPLE_HEIGHT / 2
        if item.kind in {"line", "dashed"}:
            dash = (7, 4) if item.kind == "dashed" else None
            self._stroke(item.x, y, item.x + SAMPLE_WIDTH, y, item.stroke, 2.5, dash=dash)
            return
        size = (SAMPLE_WIDTH, SAMPLE_HEIGHT)
        if item.kind == "stack":
            self._rect(item.x + 3, item.y - 3, *size, item.fill, item.stroke, radius=3)
        self._rect(item.x, item.y, *size, item.fill, item.stroke, radius=3, dashed=item.kind == "folded")

    def _scaled(self, *values: float) -> list[float]:
        return [value * self._scale for value in values]

    def _rect(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: str,
        stroke: str,
        *,
        radius: float = 5,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        corners, thick = self._scaled(x, y, x + w, y + h), max(round(width * self._scale), 1)
        if not dashed:
            self._draw.rounded_rectangle(corners, radius * self._scale, fill, stroke, thick)
            return
        self._draw.rounded_rectangle(corners, radius * self._scale, fill)
        for ends in ((x, y, x + w, y), (x + w, y, x + w, y + h), (x + w, y + h, x, y + h), (x, y + h, x, y)):
            self._stroke(*ends, stroke, width, dash=(5, 3))

    def _stroke(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        colour: str,
        width: float,
        *,
        dash: tuple[float, float] | None = None,
    ) -> None:
        thick = max(round(width * self._scale), 1)
        if dash is None:
            self._draw.line(self._scaled(x0, y0, x1, y1), colour, thick)
            return
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0:
            return
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        at = 0.0
        while at < length:
            end = min(at + dash[0], length)
            piece = self._scaled(x0 + dx * at, y0 + dy * at, x0 + dx * end, y0 + dy * end)
            self._draw.line(piece, colour, thick)
            at = end + dash[1]

    def _text(
        self, x: float, y: float, text: str, size: float, colour: str, anchor: str, *, bold: bool = False
    ) -> None:
        letters = plain(text)
        # The font has one weight; an outline of a quarter of a unit reads as bold.
        stroke = round(0.22 * self._scale) if bold else 0
        place = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
        self._draw.text(
            (x * self._scale, y * self._scale),
            letters,
            colour,
            _font(size * self._scale),
            anchor=place,
            stroke_width=stroke,
            stroke_fill=colour,
        )
