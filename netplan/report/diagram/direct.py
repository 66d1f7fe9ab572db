"""Draw a direct network: groups on a circle with their cables as chords, grids as grids.

Hosts are not drawn: each box says how many are on it. ``collapse`` means here

``none``
    Every switch is a box.
``pod``, ``rail``
    Groups: a group is a box (its leaves and its spines one each in a dragonfly+). Grids: two
    dimensions are drawn, a box stands for all routers of the others, and of a long dimension the
    first two and the last are drawn.
``auto``
    Every switch where that is readable, else as ``pod``.

Places. Routers of groups stand around a circle in the order of their groups, spines on a circle
inside. In a grid even dimensions run to the right and odd ones down; neighbours are joined by a
straight line, others of the row by an arc above, of the column by an arc at the right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, hypot, pi
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric import LINK_KINDS, TIER_NAMES
from netplan.fabric.direct import DragonflyPlusStructure, HyperXStructure, TorusStructure
from netplan.report.diagram import palette
from netplan.report.diagram.captions import MARGIN, write_failed, write_title
from netplan.report.diagram.cells import LEAF, Bundle, Grouping, bundle_cables
from netplan.report.diagram.failed import Failed, mark_boxes, mark_lines
from netplan.report.diagram.scene import (
    BOX_PADDING,
    LABEL_SIZE,
    SAMPLE_HEIGHT,
    SAMPLE_WIDTH,
    SUBLABEL_SIZE,
    Box,
    LegendItem,
    Line,
    Scene,
    Text,
)
from netplan.report.diagram.text import fit, text_width
from netplan.report.diagram.wording import cables_of, number_of, title_of
from netplan.units import format_count, format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.fabric.direct import DirectStructure

    Point = tuple[float, float]

#: What a readable picture of every switch has at most; chords may be many, they tell by their shape.
MOST_SWITCHES, MOST_CHORDS = 72, 320

#: Groups drawn on a circle; of more, the first ones and the last, and the rest as one.
MOST_GROUPS = 12

#: Routers along a dimension; of more, the first two and the last, and the rest as one.
MOST_ALONG = 8

#: Sizes of a box: of one switch, and of several.
_SMALL, _LARGE = (58.0, 34.0), (138.0, 44.0)

#: Room between boxes of a grid: for arcs above a row, and at the right of a column.
_GAP_X, _GAP_Y = 58.0, 54.0

_FACT = 11.0

#: Height of the title and the facts below it.
_HEAD = MARGIN + 96.0

#: Places on a line where its number may stand.
_LABEL_AT = (0.5, 0.38, 0.62, 0.28, 0.72)

#: Directions of a picture: a grid of more dimensions is collapsed, or drawn as blocks.
_AXES = 2

#: Most lines that say their numbers.
_MOST_LABELS = 66


def draw_direct(fabric: Fabric, collapse: str, failed: Failed | None = None) -> Scene:
    """Lay out a direct network as a picture.

    Parameters
    ----------
    fabric
        One with `Fabric.direct`.
    collapse
        ``auto``, ``none``, ``pod`` or ``rail`` (see the module).
    failed
        What is to be marked as failed.
    """
    direct = fabric.direct
    assert direct is not None
    plan = None
    deep = isinstance(direct, (HyperXStructure, TorusStructure)) and len(direct.sizes) > _AXES
    if collapse == "none" or (collapse == "auto" and fabric.n_switches <= MOST_SWITCHES and not deep):
        plan = _every_switch(fabric, direct)
        if collapse == "auto" and len(plan.grouping.bundles) > MOST_CHORDS:
            plan = None
    return _Drawing(fabric, plan or _collapsed(fabric, direct), failed).scene()


@dataclass(frozen=True)
class _Plan:
    """Which switches are one box, and where it stands."""

    grouping: Grouping
    """Cells of switches; hosts have the cell of a router of theirs."""
    centres: list[Point]
    """Middle of each cell's box."""
    box: tuple[float, float]
    """Size of the boxes."""
    is_grid: bool
    group: list[int]
    """Group of each cell; -1 where there are none, or several."""
    folded: list[bool]
    """Whether the cell stands for what is left out."""


def _plan(
    fabric: Fabric,
    cell: NDArray[np.int64],
    centres: list[Point],
    box: tuple[float, float],
    folded: list[bool],
    *,
    is_grid: bool,
) -> _Plan:
    """Return a plan: cables numbered by the cells (of switches) that they join."""
    cell = cell.copy()
    cell[fabric.endpoints.host] = cell[fabric.endpoints.leaf]
    inner = np.flatnonzero(fabric.links.kind[0::2] != LINK_KINDS.index("host_leaf"))
    bundles, number = bundle_cables(fabric, cell, inner)
    bundle_of = np.zeros(fabric.links.n_cables, np.int64)
    bundle_of[inner] = number
    pods = [np.unique(fabric.nodes.pod[(cell == i) & (fabric.nodes.tier > 0)]) for i in range(len(centres))]
    group = [int(pod[0]) if len(pod) == 1 else -1 for pod in pods]
    grouping = Grouping((), (), bundles, cell, bundle_of)
    return _Plan(grouping, centres, box, is_grid, group, folded)


def _every_switch(fabric: Fabric, direct: DirectStructure) -> _Plan:
    """Give every switch a box."""
    switches = np.flatnonzero(fabric.nodes.tier > 0)
    cell = np.full(fabric.n_nodes, -1, np.int64)
    cell[switches] = np.arange(len(switches))
    centres: list[Point]
    if isinstance(direct, (HyperXStructure, TorusStructure)) and len(direct.sizes) > 1:
        places = np.unravel_index(np.arange(direct.n_routers), direct.sizes.tolist(), order="F")
        centres = _grid(places, direct.sizes.tolist(), _SMALL)
        return _plan(fabric, cell, centres, _SMALL, [False] * len(switches), is_grid=True)
    spines = direct.groups * direct.spines if isinstance(direct, DragonflyPlusStructure) else 0
    n_groups = int(fabric.nodes.pod.max()) + 1 or direct.n_routers  # a row of a grid has no groups
    inner = _circle(spines, n_groups, _SMALL) if spines else []
    outer = _circle(direct.n_routers, n_groups, _SMALL, _radius(inner) if spines else (0.0, 0.0))
    return _plan(fabric, cell, [*outer, *inner], _SMALL, [False] * len(switches), is_grid=False)


def _collapsed(fabric: Fabric, direct: DirectStructure) -> _Plan:
    """Give a group, or all routers of the dimensions that are not drawn, one box."""
    cell = np.full(fabric.n_nodes, -1, np.int64)
    routers = direct.router_node + np.arange(direct.n_routers)
    if isinstance(direct, (HyperXStructure, TorusStructure)):
        places = np.unravel_index(np.arange(direct.n_routers), direct.sizes.tolist(), order="F")
        shown = [
            _fold(size, MOST_ALONG if len(direct.sizes) > 1 else MOST_GROUPS)
            for size in direct.sizes[:_AXES].tolist()
        ]
        along = [fold[place] for fold, place in zip(shown, places, strict=False)]
        sizes = [int(fold.max()) + 1 for fold in shown]
        cell[routers] = np.ravel_multi_index(tuple(along), sizes, order="F")
        n = int(np.prod(sizes))
        at = np.unravel_index(np.arange(n), sizes, order="F")
        merged = [np.bincount(fold) > 1 for fold in shown]
        folded = [any(bool(m[a[i]]) for m, a in zip(merged, at, strict=True)) for i in range(n)]
        centres = _grid(at, sizes, _LARGE) if len(sizes) > 1 else _circle(n, n, _LARGE)
        return _plan(fabric, cell, centres, _LARGE, folded, is_grid=len(sizes) > 1)
    fold = _fold(int(fabric.nodes.pod.max()) + 1, MOST_GROUPS)
    n = int(fold.max()) + 1
    switches = np.flatnonzero(fabric.nodes.tier > 0)
    cell[switches] = fold[fabric.nodes.pod[switches]]
    folded = (np.bincount(fold) > 1).tolist()
    if not isinstance(direct, DragonflyPlusStructure):
        return _plan(fabric, cell, _circle(n, n, _LARGE), _LARGE, folded, is_grid=False)
    cell[switches] += n * (fabric.nodes.tier[switches] > LEAF)
    inner = _circle(n, n, _LARGE)
    outer = _circle(n, n, _LARGE, _radius(inner))
    return _plan(fabric, cell, [*outer, *inner], _LARGE, folded * 2, is_grid=False)


def _fold(count: int, most: int) -> NDArray[np.int64]:
    """(count,) which of the things drawn each is: all, or the first ones, the rest as one, and the last."""
    place = np.arange(count)
    if count <= most:
        return place
    few = 4 if most == MOST_ALONG else most
    return np.where(place < few - 2, place, np.where(place == count - 1, few - 1, few - 2))


# ---- places ------------------------------------------------------------------------------------


def _circle(count: int, groups: int, box: tuple[float, float], around: Point = (0.0, 0.0)) -> list[Point]:
    """Return places on an ellipse, equally many of each group next to each other, from the top clockwise.

    Parameters
    ----------
    count, groups
        Boxes, and groups that they are of.
    box
        Size of a box.
    around
        Half axes of an ellipse of boxes that this one is to lie outside of.
    """
    per_group = ceil(count / groups)
    place = np.arange(count)
    gap = 0.6 if per_group > 1 else 0.0  # after each group
    step = 2 * pi / (count + groups * gap)
    turn = 0.5 * gap + 0.5 * (per_group > 1)
    angle = (place + gap * (place // per_group) + turn) * step - pi / 2
    x, y = np.cos(angle), np.sin(angle)
    across = max(130.0, around[0] + box[0] + 40)
    down = max(80.0, around[1] + box[1] + 40)
    after = np.roll(place, -1)
    while count > 1:
        beside = np.abs(x - x[after]) * across >= box[0] + 14
        above = np.abs(y - y[after]) * down >= box[1] + 14
        if (beside | above).all():
            break
        across, down = 1.05 * across, 1.05 * max(down, 0.66 * across)
    return list(zip((across * x).tolist(), (down * y).tolist(), strict=True))


def _radius(places: list[Point]) -> Point:
    """Return the half axes of the ellipse that places stand on."""
    return max(abs(x) for x, _ in places), max(abs(y) for _, y in places)


def _grid(
    places: tuple[NDArray[np.int64], ...] | tuple[np.ndarray, ...], sizes: list[int], box: tuple[float, float]
) -> list[Point]:
    """Return places by coordinates: even dimensions to the right, odd ones down, blocks apart."""
    step = [box[0] + _GAP_X, box[1] + _GAP_Y]
    where = [np.zeros(len(places[0])), np.zeros(len(places[0]))]
    reach = [0.0, 0.0]
    for d, (size, place) in enumerate(zip(sizes, places, strict=True)):
        axis = d % 2
        width = step[axis] if d < _AXES else reach[axis] + 0.7 * step[axis]
        where[axis] = where[axis] + place * width
        reach[axis] = width * size
    return list(zip(where[0].tolist(), where[1].tolist(), strict=True))


# ---- the picture -------------------------------------------------------------------------------


class _Drawing:
    """One picture while it is made."""

    def __init__(self, fabric: Fabric, plan: _Plan, failed: Failed | None) -> None:
        self.fabric = fabric
        self.plan = plan
        self.failed = failed
        self.facts = list(_facts(fabric))
        w, h = plan.box
        xs, ys = (np.array(values) for values in zip(*plan.centres, strict=True))
        # Room for arcs and for the names of groups outside the circle.
        left = MARGIN + (20.0 if plan.is_grid else 70.0)
        top = _HEAD + (_GAP_Y if plan.is_grid else 30.0)
        self.x = (xs - xs.min() + left).tolist()
        self.y = (ys - ys.min() + top).tolist()
        widest = max([text_width(fact, _FACT) for fact in self.facts] + [text_width(title_of(fabric), 12)])
        self.width = max(max(self.x) + w + (_GAP_X if plan.is_grid else 70.0) + MARGIN, widest + 2 * MARGIN)
        self.bottom = max(self.y) + h + (20.0 if plan.is_grid else 30.0)
        spare = (self.width - (max(self.x) + w + left)) / 2
        if not plan.is_grid and spare > 0:
            self.x = [x + spare for x in self.x]
        self.texts: list[Text] = []

    def scene(self) -> Scene:
        """Return the finished picture."""
        boxes = list(self._boxes())
        self.texts += write_title(self.fabric, self.width)
        lowest = MARGIN + 58
        for k, fact in enumerate(self.facts):
            self.texts.append(Text(MARGIN, lowest + k * 14, fact, _FACT, palette.FAINT))
        self.texts += self._group_names()
        lines = self._lines()
        if self.failed is not None:
            switches = replace(
                self.failed,
                nodes=self.failed.nodes & (self.fabric.nodes.tier > 0),
                cables=self.failed.cables & (self.fabric.links.kind[0::2] != LINK_KINDS.index("host_leaf")),
            )
            lines = mark_lines(lines, self.plan.grouping, switches)
            boxes = self._lost_hosts(mark_boxes(boxes, self.plan.grouping, switches))
            self.texts += _moved(write_failed(self.failed, self.width), lowest + len(self.facts) * 14)
        items, texts, end = _legend(boxes, lines, self.bottom + 12)
        return Scene(
            title=title_of(self.fabric),
            width=round(self.width, 2),
            height=round(end + MARGIN, 2),
            areas=(),
            lines=tuple(lines),
            boxes=tuple(boxes),
            texts=(*self.texts, *texts),
            legend=tuple(items),
        )

    def _boxes(self) -> Iterator[Box]:
        """Draw the boxes."""
        fabric, (w, h) = self.fabric, self.plan.box
        cell = self.plan.grouping.cell_of
        inside = np.zeros(len(self.x), np.int64)
        for bundle in self.plan.grouping.bundles:
            if bundle.low == bundle.high:
                inside[bundle.low] += bundle.count
        nics = np.bincount(cell[fabric.endpoints.leaf], minlength=len(self.x))
        host = fabric.endpoints.host.astype(np.int64)
        on = np.unique(host * len(self.x) + cell[fabric.endpoints.leaf]) % len(self.x)
        hosts = np.bincount(on, minlength=len(self.x))
        for i in range(len(self.x)):
            nodes = np.flatnonzero((cell == i) & (fabric.nodes.tier > 0))
            first, count, tier = int(nodes[0]), len(nodes), int(fabric.nodes.tier[nodes[0]])
            name = fabric.node_name(first)
            word = "spine" if tier > LEAF else "leaf" if fabric.count_tier("spine") else "router"
            said = number_of(count, word, "leaves" if word == "leaf" else "")
            group = f"group {self.plan.group[i]}" if self.plan.group[i] >= 0 else ""
            people = number_of(int(hosts[i]), "host") if hosts[i] else "no host" if tier == LEAF else ""
            seconds = [f"{people} · {number_of(int(nics[i]), 'NIC')}"] if hosts[i] else []
            if self.plan.box == _SMALL:
                labels = [name, name.partition("-")[2], name.rpartition("-")[2]]
            elif fabric.nodes.pod[first] >= 0:
                pods = len(np.unique(fabric.nodes.pod[nodes]))
                labels = [group or f"… {pods} groups"]
                seconds = [f"{said} · {people}"] if people else [said]
            else:
                labels = [_span_of_names(name, fabric.node_name(int(nodes[-1])))]
                seconds = [f"{said} · {people}"] if count > 1 and people else seconds or [said]
            seconds += [people]
            facts = [group] if group and count > 1 else []
            facts += [f"{said}: {name}" + (f" … {fabric.node_name(int(nodes[-1]))}" if count > 1 else "")]
            facts += [people] if people else []
            facts += [number_of(int(nics[i]), "NIC")] if nics[i] else []
            facts += [f"{number_of(int(inside[i]), 'cable')} among them"] if inside[i] else []
            colour = self._colour(i, tier)
            room = w - 2 * BOX_PADDING
            yield Box(
                id=f"box-{i}",
                x=round(self.x[i], 2),
                y=round(self.y[i], 2),
                w=w,
                h=h,
                label=fit(labels, room, LABEL_SIZE, bold=True),
                sublabel=next((t for t in seconds if text_width(t, SUBLABEL_SIZE) <= room), ""),
                kind=TIER_NAMES[tier],
                count=count,
                group="",
                title=", ".join(facts),
                fill=palette.face(colour),
                stroke=palette.edge(colour),
                stacked=count > 1,
                folded=self.plan.folded[i],
            )

    def _colour(self, number: int, tier: int) -> str:
        """Return the colour of a box: of its group where there are few enough, else of its tier."""
        group = self.plan.group[number]
        if group >= 0 and not self.plan.is_grid and int(self.fabric.nodes.pod.max()) < MOST_GROUPS:
            return palette.rail_colour(group)
        return palette.TIER_COLOURS[tier]

    def _group_names(self) -> Iterator[Text]:
        """Yield the names of groups outside the circle, where every switch is a box."""
        if self.plan.is_grid or self.plan.box != _SMALL:
            return
        w, h = self.plan.box
        members: dict[int, list[int]] = {}
        outer = np.flatnonzero(self.fabric.nodes.tier > 0)[: len(self.x)]
        for i, group in enumerate(self.plan.group):
            if group >= 0 and self.fabric.nodes.tier[outer[i]] == LEAF:
                members.setdefault(group, []).append(i)
        centre = ((min(self.x) + max(self.x) + w) / 2, (min(self.y) + max(self.y) + h) / 2)
        for group, places in members.items():
            middle = places[(len(places) - 1) // 2 : len(places) // 2 + 1]  # of an arc the mean is inside
            x = sum(self.x[i] for i in middle) / len(middle) + w / 2
            y = sum(self.y[i] for i in middle) / len(middle) + h / 2
            dx, dy = x - centre[0], y - centre[1]
            long = max(hypot(dx, dy), 1.0)
            text = f"group {group}"
            wide = text_width(text, _FACT, bold=True)
            # Out to where no box of the group is in the way.
            out = w / 2 + 4  # beyond the lines to the next box
            while out < 400:  # noqa: PLR2004 -- far enough
                at = (x + dx / long * out, y + dy / long * out)
                rect = (at[0] - wide / 2 - 3, at[1] - 10, at[0] + wide / 2 + 3, at[1] + 6)
                if not any(
                    rect[0] < self.x[i] + w
                    and self.x[i] < rect[2]
                    and rect[1] < self.y[i] + h
                    and self.y[i] < rect[3]
                    for i in range(len(self.x))
                ):
                    break
                out += 4
            yield Text(at[0], at[1], text, _FACT, palette.FAINT, bold=True, anchor="middle")

    def _lost_hosts(self, boxes: list[Box]) -> list[Box]:
        """Return the boxes, those of lost hosts saying so."""
        assert self.failed is not None
        lost = self.failed.nodes & (self.fabric.nodes.tier == 0)
        counts = np.bincount(self.plan.grouping.cell_of[lost], minlength=len(boxes))
        marked = []
        for box, count in zip(boxes, counts.tolist(), strict=True):
            if not count:
                marked.append(box)
                continue
            said = f"{number_of(count, 'host')} lost"
            texts = (f"{box.sublabel}, {said}", said, f"{count} lost", "")
            fits = next(t for t in texts if text_width(t, SUBLABEL_SIZE) <= box.w - 2 * BOX_PADDING)
            marked.append(replace(box, sublabel=fits, stroke=palette.FAILED, title=f"{box.title}, {said}"))
        return marked

    # ---- lines -----------------------------------------------------------------------------------

    def _lines(self) -> list[Line]:
        """Run the bundles, thicker the more cables, and say how many on some."""
        bundles = self.plan.grouping.bundles
        most = max((b.count for b in bundles if b.low != b.high), default=1)
        drawn = [b for b in bundles if b.low != b.high]
        differ = len({(b.kind, b.count) for b in drawn}) > len({b.kind for b in drawn})
        labelled = (differ or self.plan.box == _LARGE) and len(drawn) <= _MOST_LABELS and most > 1
        lines = []
        for bundle in bundles:
            ways = self._way(bundle) if bundle.low != bundle.high else ()
            label = (
                self._label(ways, f"×{format_count(bundle.count)}")
                if labelled and ways and bundle.count > 1
                else ""
            )
            a, b = (self._name(end) for end in (bundle.low, bundle.high))
            lines.append(
                Line(
                    source=f"box-{bundle.low}",
                    target=f"box-{bundle.high}",
                    kind=bundle.kind,
                    count=bundle.count,
                    rate=bundle.rate,
                    points=ways,
                    width=round(1.0 + 3.0 * (bundle.count / most) ** 0.5 if most > 1 else 1.3, 2),
                    colour=self._line_colour(bundle),
                    dashed=self.plan.folded[bundle.low] or self.plan.folded[bundle.high],
                    label=label,
                    title=f"{a} – {b}: {bundle.kind}, {cables_of(bundle.count, bundle.rate)}",
                )
            )
        return lines

    def _name(self, number: int) -> str:
        """Return what a line's end is called."""
        nodes = np.flatnonzero((self.plan.grouping.cell_of == number) & (self.fabric.nodes.tier > 0))
        name = self.fabric.node_name(int(nodes[0]))
        return name if len(nodes) == 1 else f"{name} … {self.fabric.node_name(int(nodes[-1]))}"

    def _line_colour(self, bundle: Bundle) -> str:
        """Return the colour of a line: of its group inside of one, grey for global cables."""
        group = self.plan.group[bundle.low]
        if bundle.kind == "local" and group >= 0 and group == self.plan.group[bundle.high]:
            return palette.edge(self._colour(bundle.low, LEAF))
        return palette.SITE_LINK if bundle.kind == "global" else palette.LINE

    def _way(self, bundle: Bundle) -> tuple[Point, ...]:
        """Return the way of a line: straight, or in a grid an arc past what is between."""
        w, h = self.plan.box
        (ax, ay), (bx, by) = ((self.x[i] + w / 2, self.y[i] + h / 2) for i in (bundle.low, bundle.high))
        if not self.plan.is_grid:
            return _clipped((ax, ay), (bx, by), w, h)
        across, down = abs(bx - ax), abs(by - ay)
        if across + down <= max(w + _GAP_X, h + _GAP_Y) + 1 and not (across and down):
            return _clipped((ax, ay), (bx, by), w, h)
        if not down:  # above the row
            rise = 12 + 30 * min(across / (8 * (w + _GAP_X)), 1.0)
            shift = 0.2 * w
            ends = sorted([(ax, ay), (bx, by)])
            (x0, y0), (x1, y1) = ends
            way = _arc((x0 + shift, y0 - h / 2), (x1 - shift, y1 - h / 2), (0.0, -rise))
            return way if ends[0] == (ax, ay) else way[::-1]
        if not across:  # at the right of the column
            rise = 12 + 34 * min(down / (8 * (h + _GAP_Y)), 1.0)
            shift = 0.2 * h
            ends = sorted([(ax, ay), (bx, by)], key=lambda end: end[1])
            (x0, y0), (x1, y1) = ends
            way = _arc((x0 + w / 2, y0 + shift), (x1 + w / 2, y1 - shift), (rise, 0.0))
            return way if ends[0] == (ax, ay) else way[::-1]
        return _clipped((ax, ay), (bx, by), w, h)

    def _label(self, way: tuple[Point, ...], text: str) -> str:
        """Write on a line where there is room; return what was written."""
        wide = text_width(text, _FACT)
        w, h = self.plan.box
        for share in _LABEL_AT:
            x, y = _along(way, share)
            rect = (x - wide / 2 - 2, y - 8, x + wide / 2 + 2, y + 6)
            boxes = (
                (self.x[i] - 3, self.y[i] - 7, self.x[i] + w + 7, self.y[i] + h + 3)
                for i in range(len(self.x))
            )
            texts = (_rect_of(placed) for placed in self.texts)
            if not any(
                r[0] < rect[2] and rect[0] < r[2] and r[1] < rect[3] and rect[1] < r[3]
                for r in (*boxes, *texts)
            ):
                self.texts.append(
                    Text(x, y + 4, text, _FACT, palette.INK, anchor="middle", backdrop=palette.PAPER)
                )
                return text
        return ""


def _span_of_names(first: str, last: str) -> str:
    """Return what the routers of a box are called: ``0-2-*`` for all of the last dimension."""
    parts = zip(first.split("-")[1:], last.split("-")[1:], strict=True)
    return "-".join(a if a == b else "*" if a == "0" else f"{a}…{b}" for a, b in parts)


def _rect_of(text: Text) -> tuple[float, float, float, float]:
    """Return what a text covers."""
    wide = text_width(text.text, text.size, bold=text.bold)
    left = text.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor] * wide
    return left - 2, text.y - text.size, left + wide + 2, text.y + 0.3 * text.size


def _clipped(a: Point, b: Point, w: float, h: float) -> tuple[Point, ...]:
    """Return the part of the line between two middles of boxes that is outside of both."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    share = min(w / 2 / abs(dx) if dx else 1.0, h / 2 / abs(dy) if dy else 1.0, 0.5)
    ends = ((a[0] + dx * share, a[1] + dy * share), (b[0] - dx * share, b[1] - dy * share))
    return tuple((round(x, 2), round(y, 2)) for x, y in ends)


def _arc(a: Point, b: Point, rise: Point) -> tuple[Point, ...]:
    """Return a flat arc from one point to another, its middle moved by ``rise``."""
    points = []
    for k in range(25):
        t = k / 24
        lift = 1 - (2 * t - 1) ** 4  # rises soon, runs flat
        points.append(
            (
                round(a[0] + (b[0] - a[0]) * t + rise[0] * lift, 2),
                round(a[1] + (b[1] - a[1]) * t + rise[1] * lift, 2),
            )
        )
    return tuple(points)


def _along(way: tuple[Point, ...], share: float) -> Point:
    """Return the point at a share of a way's points."""
    place = share * (len(way) - 1)
    i = min(int(place), len(way) - 2)
    (x0, y0), (x1, y1) = way[i], way[i + 1]
    return x0 + (x1 - x0) * (place - i), y0 + (y1 - y0) * (place - i)


def _moved(texts: Iterator[Text], y: float) -> Iterator[Text]:
    """Yield texts at another height."""
    for text in texts:
        yield replace(text, y=y)


# ---- what is said around it -----------------------------------------------------------------------


def _facts(fabric: Fabric) -> Iterator[str]:
    """Yield what the network is made of, in two lines."""
    direct, tier = fabric.direct, fabric.nodes.tier
    assert direct is not None
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    routers = fabric.count_tier("leaf")
    hosts = f"{number_of(fabric.n_hosts, 'host')}, {number_of(fabric.n_endpoints, 'NIC')}"
    if isinstance(direct, (HyperXStructure, TorusStructure)):
        sizes = " × ".join(map(str, direct.sizes.tolist()))
        what = f"{sizes} routers" if len(direct.sizes) == 1 else f"{sizes} = {number_of(routers, 'router')}"
    else:
        groups = int(fabric.nodes.pod.max()) + 1
        spines = fabric.count_tier("spine")
        each = routers // groups
        alike = number_of(each, "leaf", "leaves") if spines else number_of(each, "router")
        what = f"{number_of(groups, 'group')} of {alike}"
        what += f" and {number_of(spines // groups, 'spine')}" if spines else ""
    radix = fabric.nodes.radix[tier > 0]
    ports = f"{int(used[tier > 0].max())} of {int(radix.max())} ports used at most"
    yield f"{what}; {hosts}; {ports}"
    cables = []
    for kind in ("local", "global"):
        rows = fabric.links.kind[0::2] == LINK_KINDS.index(kind)
        if rows.any():
            rates = np.unique(fabric.links.capacity[0::2][rows])
            lengths = np.unique(fabric.links.length[0::2][rows])
            span = " to ".join(format_length(float(v)) for v in {lengths.min(): 0, lengths.max(): 0})
            pair = _pair_fact(fabric, rows) if kind == "global" else ""
            cables.append(
                f"{format_count(int(rows.sum()))} {kind} × {format_rate(float(rates[0]))}, {span}{pair}"
            )
    yield f"cables: {'; '.join(cables)}"


def _pair_fact(fabric: Fabric, rows: NDArray[np.bool_]) -> str:
    """Return how many of some cables join two groups."""
    pods = np.stack([fabric.nodes.pod[ends[0::2][rows]] for ends in (fabric.links.src, fabric.links.dst)])
    counts = np.unique(np.sort(pods, axis=0), axis=1, return_counts=True)[1]
    least, most = int(counts.min()), int(counts.max())
    return f", {least if least == most else f'{least} or {most}'} a pair of groups"


def _legend(boxes: list[Box], lines: list[Line], y: float) -> tuple[list[LegendItem], list[Text], float]:
    """Explain boxes and lines; return samples, texts and the lower edge."""
    grey = palette.GREY_TIERS[0]
    samples = []
    if any(box.stacked for box in boxes):
        samples.append(("stack", palette.face(grey), palette.edge(grey), "several switches"))
    if any(box.folded for box in boxes):
        samples.append(("folded", palette.face(grey), palette.edge(grey), "left out, summed up"))
    kinds = {line.kind for line in lines if line.points}
    if "local" in kinds:
        samples.append(("line", "", palette.LINE, "local cables"))
    if "global" in kinds:
        samples.append(("line", "", palette.SITE_LINK, "global cables"))
    if any(box.failed for box in boxes) or any(line.failed for line in lines):
        samples.append(("line", "", palette.FAILED, "failed"))
    x, items, texts = MARGIN, [], []
    for kind, fill, stroke, label in samples:
        items.append(LegendItem(x, y, kind, fill, stroke, label))  # type: ignore[arg-type]
        texts.append(Text(x + SAMPLE_WIDTH + 8, y + SAMPLE_HEIGHT - 2, label, _FACT, palette.FAINT))
        x += SAMPLE_WIDTH + 24 + text_width(label, _FACT)
    return items, texts, y + SAMPLE_HEIGHT
