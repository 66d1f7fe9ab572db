"""Where things of a picture are, as rectangles."""

from netplan.report.diagram.scene import Text
from netplan.report.diagram.text import text_width

#: Left, top, right, bottom.
Rect = tuple[float, float, float, float]


def rect_of(thing) -> Rect:
    return thing.x, thing.y, thing.x + thing.w, thing.y + thing.h


def rect_of_text(text: Text) -> Rect:
    width = text_width(text.text, text.size, bold=text.bold)
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * width
    return left, text.y - 0.75 * text.size, left + width, text.y + 0.2 * text.size


def overlap(a: Rect, b: Rect) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
