"""How lines run between placed boxes, and where their labels go.

Between rows a line is straight: upright where one box lies over the other, else slanting. Within
a row (links between sites) it runs from side to side where the boxes face each other, else along
a *shelf* above the row, one lane for each pair of sites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.report.diagram.text import text_width

if TYPE_CHECKING:
    from netplan.report.diagram.cells import Bundle, Grouping

#: Height of a lane of a shelf.
LANE = 24.0

#: Room between a row, with the edge of its site where it has one, and the lowest lane of its shelf.
SHELF_FOOT = 18.0

LABEL = 10.5

#: Upright lines run to a box that is at least so much wider than the other one.
_WIDER = 1.3

#: Sideways distance of lines of different speeds between the same boxes.
_SIDE_BY_SIDE = 10.0

#: With more slanting lines than this, equal labels on all of them are a swarm.
MOST_LABELS = 14

#: A line gets no thicker than this.
_THICKEST = 4.5

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle."""

    x: float
    y: float
    w: float
    h: float

    @property
    def middle(self) -> float:
        """Middle from left to right."""
        return self.x + self.w / 2

    def meets(self, other: Rect) -> bool:
        """Whether the two have a point in common."""
        return (
            self.x < other.x + other.w
            and other.x < self.x + self.w
            and self.y < other.y + other.h
            and other.y < self.y + self.h
        )


@dataclass(frozen=True, slots=True)
class Lane:
    """Bundles that run along one lane of a shelf."""

    tier: int
    level: int
    """0 is next to the row."""
    members: tuple[int, ...]


def thickness(count: int, lines: int) -> float:
    """Return the width of a line that stands for ``count`` cables, in a gap with so many lines."""
    if lines > 100:  # noqa: PLR2004 -- from there on thick lines are a slab
        return 0.8
    return min(1.0 + 0.32 * math.log2(count), _THICKEST)


def find_lanes(grouping: Grouping, middles: dict[int, float], facing: set[int]) -> list[Lane]:
    """Deal lanes to bundles within a row.

    Parameters
    ----------
    grouping
        What is drawn.
    middles
        Middle of each box.
    facing
        Bundles that need no lane, because they run from side to side.

    Returns
    -------
    list of Lane
        The shortest lines lie lowest; lines that do not overlap share a level.
    """
    alike: dict[tuple[int, int, int, float, float], list[int]] = {}
    for i, bundle in enumerate(grouping.bundles):
        low, high = grouping.cells[bundle.low], grouping.cells[bundle.high]
        if bundle.low == bundle.high or low.tier != high.tier or i in facing:
            continue
        key = (low.tier, min(low.panel, high.panel), max(low.panel, high.panel), bundle.rate, bundle.length)
        alike.setdefault(key, []).append(i)
    reach = []
    for key, members in alike.items():
        joined = [grouping.bundles[i] for i in members]
        ends = [middles[end] for bundle in joined for end in (bundle.low, bundle.high)]
        reach.append((max(ends) - min(ends), min(ends), max(ends), key[0], tuple(members)))
    taken: dict[int, list[list[tuple[float, float]]]] = {}
    lanes = []
    for _, left, right, tier, along in sorted(reach):
        levels = taken.setdefault(tier, [])
        level = next(
            (n for n, spans in enumerate(levels) if all(right < a or b < left for a, b in spans)), len(levels)
        )
        if level == len(levels):
            levels.append([])
        levels[level].append((left, right))
        lanes.append(Lane(tier, level, along))
    return lanes


def run_along(
    lanes: list[Lane], bundles: tuple[Bundle, ...], boxes: dict[int, Rect], foot: float
) -> dict[int, tuple[Point, ...]]:
    """Return the ways of the bundles in lanes: up from one box, along, down to the other.

    The lowest lane is ``foot`` above the boxes. The ends of a box's lines are spread over its upper
    edge so that nested lines do not cross.
    """
    stubs: dict[int, list[tuple[int, float, int, int]]] = {}
    for lane in lanes:
        for i in lane.members:
            low, high = bundles[i].low, bundles[i].high
            far = abs(boxes[low].middle - boxes[high].middle)
            left, right = sorted((low, high), key=lambda cell: boxes[cell].middle)
            # Lines to the left come first, the nearest leftmost; then those to the right, farthest first.
            stubs.setdefault(right, []).append((0, far, lane.level, i))
            stubs.setdefault(left, []).append((1, -far, lane.level, i))
    at: dict[tuple[int, int], float] = {}
    for cell, ends in stubs.items():
        for place, (_, _, _, i) in enumerate(sorted(ends)):
            at[cell, i] = boxes[cell].x + boxes[cell].w * (place + 1) / (len(ends) + 1)
    ways: dict[int, tuple[Point, ...]] = {}
    for lane in lanes:
        for i in lane.members:
            low, high = bundles[i].low, bundles[i].high
            y = boxes[low].y - foot - lane.level * LANE
            x0, x1 = at[low, i], at[high, i]
            ways[i] = ((x0, boxes[low].y), (x0, y), (x1, y), (x1, boxes[high].y))
    return ways


def straight(low: Rect, high: Rect, shift: float = 0.0, *, bar: bool = True) -> tuple[Point, ...]:
    """Return the way from the upper edge of one box to the lower edge of one above it.

    Parameters
    ----------
    low, high
        The boxes.
    shift
        How far it stands aside.
    bar
        Whether the wider box stands for several things, so that a line may end anywhere on it.
    """
    narrow, wide = (low, high) if low.w <= high.w else (high, low)
    inside = wide.x <= narrow.middle <= wide.x + wide.w
    if abs(low.middle - high.middle) < 1 or (bar and inside and wide.w >= _WIDER * narrow.w):
        x = narrow.middle + shift
        return ((x, low.y), (x, high.y + high.h))
    return ((low.middle + shift, low.y), (high.middle + shift, high.y + high.h))


def shifts_of(bundles: tuple[Bundle, ...]) -> list[float]:
    """Return how far each line stands aside from others between the same two boxes."""
    pairs: dict[tuple[int, int], list[int]] = {}
    for i, bundle in enumerate(bundles):
        pairs.setdefault((bundle.low, bundle.high), []).append(i)
    shift = [0.0] * len(bundles)
    for members in pairs.values():
        for place, i in enumerate(members):
            shift[i] = (place - (len(members) - 1) / 2) * _SIDE_BY_SIDE
    return shift


def label_places(
    ways: dict[int, tuple[Point, ...]],
    wordings: dict[int, tuple[str, ...]],
    limits: dict[int, float],
    occupied: list[Rect],
) -> dict[int, tuple[str, float, float, bool]]:
    """Find places for the labels of the lines between two rows.

    Parameters
    ----------
    ways
        The lines.
    wordings
        What may be written on each line, the fullest first; all have equally many.
    limits
        How far to the right each label may reach.
    occupied
        Where nothing may be written; the labels that were placed are added.

    Returns
    -------
    dict
        For lines with a label: the text, its left (upright lines) or middle (slanting ones), its
        baseline, and whether the line is upright. All lines use the same degree of wording.
    """
    if any(way[0][0] != way[-1][0] for way in ways.values()):
        return _slanting_labels(ways, wordings, occupied)
    stops = sorted(way[0][0] for way in ways.values())
    for degree in range(len(next(iter(wordings.values()), ()))):
        placed: dict[int, tuple[str, float, float, bool]] = {}
        taken = []
        for i, way in ways.items():
            x, text = way[0][0], wordings[i][degree]
            y = (way[0][1] + way[-1][1]) / 2 + LABEL / 3
            width = text_width(text, LABEL)
            limit = min([limits[i], *(stop - 4 for stop in stops if stop > x)])
            rect = Rect(x + 5, y - LABEL, width + 2, LABEL * 1.3)
            if rect.x + rect.w > limit or any(rect.meets(other) for other in occupied):
                break
            placed[i] = (text, x + 6, y, True)
            taken.append(rect)
        else:
            occupied += taken
            return {i: entry for i, entry in placed.items() if entry[0]}
    return {}


def _slanting_labels(
    ways: dict[int, tuple[Point, ...]], wordings: dict[int, tuple[str, ...]], occupied: list[Rect]
) -> dict[int, tuple[str, float, float, bool]]:
    """Find places on slanting lines, near their lower ends, where they are farthest apart."""
    found = {}
    for i, way in ways.items():
        text = wordings[i][-1]
        (x0, y0), (x1, y1) = way[0], way[-1]
        width = text_width(text, LABEL) + 4
        for share in (0.3, 0.2, 0.42, 0.55, 0.68, 0.8) if text else ():
            x, y = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
            rect = Rect(x - width / 2, y - LABEL * 0.7, width, LABEL * 1.4)
            if not any(rect.meets(other) for other in occupied):
                occupied.append(rect)
                found[i] = (text, x, y + LABEL * 0.35, False)
                break
    return found


def lane_label(way: tuple[Point, ...], width: float, occupied: list[Rect]) -> tuple[float, float] | None:
    """Find a place for a label on the level part of a way along a shelf; None where there is no room.

    Parameters
    ----------
    way
        The line: up, along, down.
    width
        Width of the label.
    occupied
        Where nothing may be written; the label is added.
    """
    (left, y), (right, _) = sorted(way[1:3])
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
        x = left + (right - left) * share
        rect = Rect(x - width / 2 - 4, y - LABEL * 0.7, width + 8, LABEL * 1.4)
        fits = left + 4 < rect.x and rect.x + rect.w < right - 4
        if fits and not any(rect.meets(other) for other in occupied):
            occupied.append(rect)
            return x, y + LABEL * 0.35
    return None
