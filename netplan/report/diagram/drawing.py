"""Draw one grouping of a fabric: place its boxes, run its lines, write on both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from netplan.fabric import TIER_NAMES
from netplan.report.diagram import palette
from netplan.report.diagram.captions import (
    GUTTER,
    HEAD,
    MARGIN,
    write_failed,
    write_gutter,
    write_legend,
    write_title,
)
from netplan.report.diagram.cells import HOST, Bundle, Cell, Grouping
from netplan.report.diagram.failed import mark_boxes, mark_lines
from netplan.report.diagram.place import (
    BOX_HEIGHT,
    COLUMN_PADDING,
    PANEL_PADDING,
    TITLE_BAND,
    TITLE_SIZE,
    PlacedPanel,
    Span,
    place_panel,
)
from netplan.report.diagram.route import (
    LABEL,
    LANE,
    MOST_LABELS,
    SHELF_FOOT,
    Point,
    Rect,
    find_lanes,
    label_places,
    lane_label,
    run_along,
    shifts_of,
    straight,
    thickness,
)
from netplan.report.diagram.scene import (
    BOX_PADDING,
    LABEL_SIZE,
    STACK_OFFSET,
    SUBLABEL_SIZE,
    Area,
    Box,
    Line,
    Scene,
    Text,
)
from netplan.report.diagram.text import fit, shorten, text_width
from netplan.report.diagram.wording import (
    Traits,
    cables_of,
    column_title,
    line_tooltip,
    nics_of,
    panel_titles,
    title_of,
    tooltip_of,
    wordings_of,
)
from netplan.units import format_count, format_length

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.report.diagram.failed import Failed

_SITE_TITLE = 13.0

#: Room between rows: for upright lines, and for slanting ones, which need more in a wide picture.
_UPRIGHT_GAP = (84.0, 112.0)
_SLANTING_GAP = (104.0, 190.0)

#: Least room between two sites.
_SITE_GAP = 44.0

#: Room between lines that face each other, for a text on each; more lines than these share two texts.
_PATH_STEP = 15.0
_LABELLED_PATHS = 3

#: Height of a line of a title that stands in its area, above the boxes.
_TITLE_LINE = 14.0

#: A box shows the colours of its rails up to this many.
_MOST_STRIPES = 32


class Drawing:
    """One picture while it is made: the constructor places, `scene` draws and writes.

    Parameters
    ----------
    fabric
        What is drawn.
    grouping
        How finely.
    failed
        What is to be marked as failed.
    """

    def __init__(self, fabric: Fabric, grouping: Grouping, failed: Failed | None = None) -> None:
        self.fabric = fabric
        self.failed = failed
        self.grouping = grouping
        self.cells = grouping.cells
        self.bundles = grouping.bundles
        self.traits = Traits.of(fabric)
        self.several = len(grouping.panels) > 1
        self.texts: list[Text] = []
        self.panels = self._place_panels()
        self.spans = {i: span for panel in self.panels for i, span in panel.cells.items()}
        self.facing = self._find_facing()
        middles = {i: span.middle for i, span in self.spans.items()}
        self.lanes = find_lanes(grouping, middles, self.facing)
        self.titled = self._find_titled()
        self.row_y = self._place_rows()
        self.rects = {
            i: Rect(span.x, self.row_y[self.cells[i].tier], span.w, BOX_HEIGHT)
            for i, span in self.spans.items()
        }

    @property
    def width(self) -> float:
        """Width of the picture."""
        return max(panel.span.end for panel in self.panels) + MARGIN

    def scene(self) -> Scene:
        """Return the finished picture."""
        columns = self._column_areas()
        bottom = max([y + BOX_HEIGHT for y in self.row_y.values()] + [area.y + area.h for area in columns])
        sites = self._site_areas(bottom) if self.several else []
        bottom = max([bottom] + [area.y + area.h for area in sites])
        areas = [*sites, *columns]
        lines = self._lines(areas)
        boxes = self._boxes()
        if self.failed is not None:
            lines = mark_lines(lines, self.grouping, self.failed)
            boxes = mark_boxes(boxes, self.grouping, self.failed)
            self.texts += write_failed(self.failed, self.width)
        labelled = {self._gap(b) for b, line in zip(self.bundles, lines, strict=True) if line.label}
        self.texts += write_gutter(self.fabric, self.grouping, self.traits, self.row_y, labelled)
        self.texts += write_title(self.fabric, self.width)
        legend, texts, end = write_legend(boxes, lines, self.grouping, self.traits, bottom + 34, self.width)
        return Scene(
            title=title_of(self.fabric),
            width=round(self.width, 2),
            height=round(end + MARGIN, 2),
            areas=tuple(areas),
            lines=tuple(lines),
            boxes=tuple(boxes),
            texts=(*self.texts, *texts),
            legend=tuple(legend),
        )

    # ---- places --------------------------------------------------------------------------------

    def _place_panels(self) -> list[PlacedPanel]:
        """Place the panels side by side, with room for what is written between them."""
        placed = []
        x = MARGIN + GUTTER
        for number in range(len(self.grouping.panels)):
            panel = place_panel(self.fabric, self.grouping, number, padded=self.several)
            placed.append(_moved(panel, x))
            x += panel.span.w + self._gap_after(number)
        return placed

    def _gap_after(self, number: int) -> float:
        """Return the room between a panel and the next."""
        wanted = _SITE_GAP
        between: dict[tuple[int, int], list[Bundle]] = {}
        for bundle in self.bundles:
            if {self.cells[bundle.low].panel, self.cells[bundle.high].panel} == {number, number + 1}:
                between.setdefault((bundle.low, bundle.high), []).append(bundle)
        for bundles in between.values():
            wanted = max(wanted, *(text_width(text, LABEL) + 14 for text in _facing_texts(bundles)))
        return wanted

    def _find_facing(self) -> set[int]:
        """Return bundles whose boxes face each other: alone in their rows, in neighbouring panels."""
        row = Counter((cell.panel, cell.tier) for cell in self.cells)
        return {
            i
            for i, bundle in enumerate(self.bundles)
            for low, high in [(self.cells[bundle.low], self.cells[bundle.high])]
            if low.tier == high.tier
            and abs(low.panel - high.panel) == 1
            and row[low.panel, low.tier] == row[high.panel, high.tier] == 1
        }

    def _find_titled(self) -> dict[tuple[int, int], tuple[int, int, list[str]]]:
        """Return, by panel and column, highest and lowest tier and title of each column with a title.

        Where hosts stand in the column the title is below them, where no line can strike it out.
        Else it is above, beside the lines: then it is cut into as many texts as its room calls for.
        """
        found = {}
        for number, (panel, placed) in enumerate(zip(self.grouping.panels, self.panels, strict=True)):
            for j, column in enumerate(panel.columns):
                tiers = [self.cells[i].tier for i, where in placed.in_column.items() if where == j]
                title = column_title(column)
                if not title or not tiers:
                    continue
                room = placed.columns[j].w / 2 + COLUMN_PADDING - 12
                texts = [title]
                if min(tiers) != HOST and text_width(title, TITLE_SIZE, bold=True) > room:
                    texts = title.split(" · ") if " · " in title else title.rsplit(" ", 1)
                found[number, j] = (max(tiers), min(tiers), texts)
        return found

    def _room_above(self, tier: int) -> float:
        """Return the room that the areas of columns take above the boxes of a row."""
        lines = [len(texts) for top, bottom, texts in self.titled.values() if top == tier and bottom != HOST]
        return _TITLE_LINE * max(lines) + 10 if lines else COLUMN_PADDING

    def _place_rows(self) -> dict[int, float]:
        """Return the upper edge of each tier's row, the highest tier first."""
        tiers = sorted({cell.tier for cell in self.cells}, reverse=True)
        shelf = dict.fromkeys(tiers, 0.0)
        for lane in self.lanes:
            shelf[lane.tier] = max(shelf[lane.tier], self._shelf_foot + lane.level * LANE + LABEL)
        y = HEAD + (PANEL_PADDING if self.several else 0.0)
        rows: dict[int, float] = {}
        for place, tier in enumerate(tiers):
            if place:
                y += self._row_gap(tiers[place - 1], tier)
            elif not shelf[tier]:
                y += self._room_above(tier) - COLUMN_PADDING
            y += shelf[tier]
            rows[tier] = y
            y += BOX_HEIGHT
        return rows

    @property
    def _shelf_foot(self) -> float:
        return SHELF_FOOT + (PANEL_PADDING if self.several else 0.0)

    def _row_gap(self, tier: int, below: int) -> float:
        """Return the room between two rows."""
        slanting = False
        for bundle in self.bundles:
            low, high = self.cells[bundle.low], self.cells[bundle.high]
            if low.tier == below and high.tier == tier and low.panel == high.panel:
                a, b = self.spans[bundle.low], self.spans[bundle.high]
                way = self._straight(bundle, Rect(a.x, 2, a.w, 1), Rect(b.x, 0, b.w, 1), 0.0)
                slanting = slanting or way[0][0] != way[1][0]
        least, most = _SLANTING_GAP if slanting else _UPRIGHT_GAP
        share = 0.12 if slanting else 0.08
        gap = min(max(share * max(panel.span.w for panel in self.panels), least), most)
        return gap + self._room_above(below) - COLUMN_PADDING

    # ---- areas ---------------------------------------------------------------------------------

    def _column_areas(self) -> list[Area]:
        """Draw an area around each pod, rail or block that has a title, and write that."""
        areas = []
        for (number, j), (top, bottom, texts) in self.titled.items():
            column = self.grouping.panels[number].columns[j]
            span = self.panels[number].columns[j]
            x, w = span.x - COLUMN_PADDING, span.w + 2 * COLUMN_PADDING
            y = self.row_y[top] - (COLUMN_PADDING if bottom == HOST else self._room_above(top))
            end = self.row_y[bottom] + BOX_HEIGHT + (TITLE_BAND + 4 if bottom == HOST else COLUMN_PADDING)
            one_rail = column.is_rail
            colour = palette.rail_colour(column.rails[0]) if one_rail else palette.AREA_STROKE
            fill = palette.mix(colour, palette.PAPER, 0.93) if one_rail else palette.AREA_FILL
            shown = [shorten(text, w - 12, TITLE_SIZE, bold=True) for text in texts]
            if bottom == HOST:
                middle = x + w / 2
                self.texts.append(
                    Text(middle, end - 9, shown[0], TITLE_SIZE, palette.FAINT, bold=True, anchor="middle")
                )
            else:
                self.texts += [
                    Text(
                        x + 8,
                        y + _TITLE_LINE * (k + 1),
                        text,
                        TITLE_SIZE,
                        palette.FAINT,
                        bold=True,
                        backdrop=fill,
                    )
                    for k, text in enumerate(shown)
                ]
            areas.append(
                Area(
                    id=f"area-{number}-{j}",
                    x=x,
                    y=y,
                    w=w,
                    h=end - y,
                    kind="column",
                    label=" · ".join(shown),
                    title=column_title(column),
                    fill=fill,
                    stroke=colour,
                    folded=column.merged > 1,
                )
            )
        return areas

    def _site_areas(self, bottom: float) -> list[Area]:
        """Draw an area around each site, with its title at the foot, away from the lines."""
        areas = []
        top_tier = next(iter(self.row_y))
        top = self.row_y[top_tier] - PANEL_PADDING - (self._room_above(top_tier) - COLUMN_PADDING)
        for number, (panel, placed) in enumerate(zip(self.grouping.panels, self.panels, strict=True)):
            mine = [cell for cell in self.cells if cell.panel == number]
            hosts = sum(cell.count for cell in mine if cell.tier == HOST)
            titles = panel_titles(self.fabric, panel, hosts, sum(cell.gpus for cell in mine))
            span = placed.span
            shown = fit(titles, span.w - 16, _SITE_TITLE, bold=True)
            self.texts.append(
                Text(span.middle, bottom + 22, shown, _SITE_TITLE, palette.INK, bold=True, anchor="middle")
            )
            areas.append(
                Area(
                    id=f"site-{number}",
                    x=span.x,
                    y=top,
                    w=span.w,
                    h=bottom + 34 - top,
                    kind="site",
                    label=shown,
                    title=titles[0],
                    fill=palette.SITE_FILL,
                    stroke=palette.SITE_STROKE,
                    folded=len(panel.sites) > 1,
                )
            )
        return areas

    # ---- boxes ---------------------------------------------------------------------------------

    def _boxes(self) -> list[Box]:
        """Draw the boxes, with what fits of their wordings."""
        inside = Counter[int]()
        for bundle in self.bundles:
            if bundle.low == bundle.high:
                inside[bundle.low] += bundle.count
        boxes = []
        for i, cell in enumerate(self.cells):
            rect, nics = self.rects[i], nics_of(self.grouping, i) if cell.tier == HOST else ""
            label, sublabel = self._written_on(cell, nics, rect.w - 2 * BOX_PADDING)
            colour = self._colour(cell)
            stripes = cell.rails if 1 < len(cell.rails) <= _MOST_STRIPES else ()
            boxes.append(
                Box(
                    id=f"box-{i}",
                    x=rect.x,
                    y=rect.y,
                    w=rect.w,
                    h=rect.h,
                    label=label,
                    sublabel=sublabel,
                    kind=TIER_NAMES[cell.tier],
                    count=cell.count,
                    group=self._group(i),
                    title=tooltip_of(self.fabric, cell, nics, self.traits, inside[i]),
                    fill=palette.face(colour, cell.planes[0] if len(cell.planes) == 1 else -1),
                    stroke=palette.edge(colour),
                    stacked=cell.count > 1,
                    folded=self._folded(cell),
                    stripes=tuple(palette.rail_colour(rail) for rail in stripes),
                )
            )
        return boxes

    def _written_on(self, cell: Cell, nics: str, room: float) -> tuple[str, str]:
        """Return the fullest label and second line that fit a box."""
        wordings = wordings_of(self.fabric, cell, nics, in_rail=self.grouping.in_rail(cell))
        label = fit([text for text, _ in wordings], room, LABEL_SIZE, bold=True)
        seconds = next((seconds for text, seconds in wordings if text == label), wordings[-1][1])
        # A second line that does not fit is left out: half a number misleads.
        return label, next((text for text in seconds if text_width(text, SUBLABEL_SIZE) <= room), "")

    def _group(self, number: int) -> str:
        """Return the id of the innermost area that a box is in."""
        panel = self.cells[number].panel
        column = self.panels[panel].in_column.get(number, -1)
        if (panel, column) in self.titled:
            return f"area-{panel}-{column}"
        return f"site-{panel}" if self.several else ""

    def _folded(self, cell: Cell) -> bool:
        panel = self.grouping.panels[cell.panel]
        return len(panel.sites) > 1 or (cell.column >= 0 and panel.columns[cell.column].merged > 1)

    def _colour(self, cell: Cell) -> str:
        if len(cell.rails) == 1:
            return palette.rail_colour(cell.rails[0])
        return (palette.GREY_TIERS if self.traits.has_rails else palette.TIER_COLOURS)[cell.tier]

    # ---- lines ---------------------------------------------------------------------------------

    def _lines(self, areas: list[Area]) -> list[Line]:
        """Run the bundles and write on those that have room."""
        shifts = shifts_of(self.bundles)
        ways = run_along(self.lanes, self.bundles, self.rects, self._shelf_foot)
        for i, bundle in enumerate(self.bundles):
            low, high = self.rects[bundle.low], self.rects[bundle.high]
            if bundle.low == bundle.high:
                ways[i] = ()
            elif i in self.facing:
                ways[i] = self._across(bundle, low, high, self._facing_shift(i))
            elif i not in ways:
                ways[i] = self._straight(bundle, low, high, shifts[i])
        labels = self._write_labels(ways, areas)
        gaps = Counter(self._gap(bundle) for bundle in self.bundles)
        return [
            Line(
                source=f"box-{bundle.low}",
                target=f"box-{bundle.high}",
                kind=bundle.kind,
                count=bundle.count,
                rate=bundle.rate,
                points=ways[i],
                width=round(thickness(bundle.count, gaps[self._gap(bundle)]), 2),
                colour=self._line_colour(bundle),
                dashed=self._folded(self.cells[bundle.low]) or self._folded(self.cells[bundle.high]),
                label=labels.get(i, ""),
                title=line_tooltip(self.fabric, bundle, self.cells),
            )
            for i, bundle in enumerate(self.bundles)
        ]

    def _gap(self, bundle: Bundle) -> tuple[int, int]:
        """Return the two tiers that a bundle joins."""
        return self.cells[bundle.low].tier, self.cells[bundle.high].tier

    def _line_colour(self, bundle: Bundle) -> str:
        if bundle.kind == "inter_site":
            return palette.SITE_LINK
        ends = (self.cells[bundle.low], self.cells[bundle.high])
        rails = {cell.rails[0] for cell in ends if len(cell.rails) == 1}
        return palette.edge(palette.rail_colour(rails.pop())) if len(rails) == 1 else palette.LINE

    def _straight(self, bundle: Bundle, low: Rect, high: Rect, shift: float) -> tuple[Point, ...]:
        wide = self.cells[bundle.low if low.w > high.w else bundle.high]
        return straight(low, high, shift, bar=wide.count > 1)

    def _across(self, bundle: Bundle, low: Rect, high: Rect, shift: float) -> tuple[Point, ...]:
        """Return the way between two boxes that face each other, from the edge of a pile's last card."""
        y = low.y + low.h / 2 + shift

        def right(rect: Rect, cell: Cell) -> float:
            return rect.x + rect.w + (2 * STACK_OFFSET if cell.count > 1 else 0.0)

        if low.x < high.x:
            return ((right(low, self.cells[bundle.low]), y), (high.x, y))
        return ((low.x, y), (right(high, self.cells[bundle.high]), y))

    # ---- labels --------------------------------------------------------------------------------

    def _write_labels(self, ways: dict[int, tuple[Point, ...]], areas: list[Area]) -> dict[int, str]:
        """Write how many cables each line stands for, where there is room; return the labels."""
        written: dict[int, str] = {}
        occupied = [
            Rect(r.x, r.y - 2 * STACK_OFFSET, r.w, r.h + 2 * STACK_OFFSET) for r in self.rects.values()
        ]
        for placed in self.texts:
            width = text_width(placed.text, placed.size, bold=placed.bold)
            left = placed.x - (width / 2 if placed.anchor == "middle" else 0.0)
            occupied.append(Rect(left, placed.y - placed.size, width, 1.3 * placed.size))
        for members in self._facing_groups():
            self._label_facing(members, ways, written)
        self._label_lanes(ways, occupied, written)
        gaps: dict[tuple[int, int], list[int]] = {}
        for i, bundle in enumerate(self.bundles):
            if ways[i] and self._gap(bundle)[0] != self._gap(bundle)[1]:
                gaps.setdefault(self._gap(bundle), []).append(i)
        for members in gaps.values():
            self._label_gap({i: ways[i] for i in members}, areas, occupied, written)
        return written

    def _facing_groups(self) -> list[list[int]]:
        """Return the facing bundles, those between the same two boxes together."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i in sorted(self.facing):
            groups.setdefault((self.bundles[i].low, self.bundles[i].high), []).append(i)
        return list(groups.values())

    def _facing_shift(self, number: int) -> float:
        """Return how far a facing line stands from the middle of its boxes."""
        members = next(group for group in self._facing_groups() if number in group)
        step = min(_PATH_STEP, (BOX_HEIGHT - _PATH_STEP) / max(len(members) - 1, 1))
        return (members.index(number) - (len(members) - 1) / 2) * step

    def _label_facing(
        self, members: list[int], ways: dict[int, tuple[Point, ...]], written: dict[int, str]
    ) -> None:
        """Write on the lines between two boxes that face each other, or on all of them together."""
        (x0, y), (x1, _) = sorted(ways[members[0]])
        last = ways[members[-1]][0][1]
        bundles = [self.bundles[i] for i in members]
        texts = _facing_texts(bundles)
        # Between the edges of the sites; a pile's last card is not the edge.
        middle = (x0 + x1 - 2 * STACK_OFFSET) / 2
        heights = (
            [ways[i][0][1] - 4 for i in members]
            if 1 < len(members) <= _LABELLED_PATHS
            else [y - 7, last + 16]
        )
        for text, height in zip(texts, heights, strict=False):
            self.texts.append(Text(middle, height, text, LABEL, palette.SITE_LINK, anchor="middle"))
        if 1 < len(members) <= _LABELLED_PATHS:
            written.update(zip(members, texts, strict=True))
        else:
            written[members[0]] = " · ".join(texts)

    def _label_lanes(
        self, ways: dict[int, tuple[Point, ...]], occupied: list[Rect], written: dict[int, str]
    ) -> None:
        """Write on lanes, once for all lines of each."""
        stubs = [
            Rect(x - 3, min(y0, y1), 6, abs(y1 - y0))
            for lane in self.lanes
            for i in lane.members
            for (x, y0), (_, y1) in (ways[i][:2], ways[i][2:])
        ]
        for lane in self.lanes:
            first = self.bundles[lane.members[0]]
            total = replace(first, count=sum(self.bundles[i].count for i in lane.members))
            text = " · ".join(_span_texts(total))
            longest = max(lane.members, key=lambda i: abs(ways[i][1][0] - ways[i][2][0]))
            place = lane_label(ways[longest], text_width(text, LABEL), [*occupied, *stubs])
            if place:
                self._label(*place, text, palette.SITE_LINK, [])
                written[longest] = text

    def _label_gap(
        self,
        ways: dict[int, tuple[Point, ...]],
        areas: list[Area],
        occupied: list[Rect],
        written: dict[int, str],
    ) -> None:
        """Write on the lines between two rows: all in the same words, or none."""
        bundles = {i: self.bundles[i] for i in ways}
        one_rate = len({bundle.rate for bundle in bundles.values()}) == 1
        equal = one_rate and len({bundle.count for bundle in bundles.values()}) == 1
        if equal and (next(iter(bundles.values())).count == 1):
            return
        slanting = any(way[0][0] != way[1][0] for way in ways.values())
        if equal and slanting and len(ways) > MOST_LABELS:
            return  # the gutter says it once
        wordings: dict[int, tuple[str, ...]] = {}
        limits = {}
        for i, bundle in bundles.items():
            full = cables_of(bundle.count, bundle.rate)
            short = f"×{format_count(bundle.count)}" if bundle.count > 1 else ""
            wordings[i] = (full, short) if one_rate else (full,)
            x = ways[i][0][0]
            ends = [area.x + area.w - 3 for area in areas if area.x < x < area.x + area.w]
            limits[i] = min(ends, default=self.width)
        for i, (text, x, y, upright) in label_places(ways, wordings, limits, occupied).items():
            if upright:
                self.texts.append(Text(x, y, text, LABEL, palette.FAINT))
            else:
                self._label(x, y, text, palette.INK, areas)
            written[i] = text

    def _label(self, x: float, y: float, text: str, colour: str, areas: list[Area]) -> None:
        """Write across a line, on the colour of the area there."""
        under = [
            area.fill for area in areas if area.x <= x <= area.x + area.w and area.y <= y <= area.y + area.h
        ]
        backdrop = under[-1] if under else palette.PAPER
        self.texts.append(Text(x, y, text, LABEL, colour, anchor="middle", backdrop=backdrop))


def _span_texts(bundle: Bundle) -> list[str]:
    """Return what is written on a link between sites: its length and how many there are."""
    cables = cables_of(bundle.count, bundle.rate)
    return [format_length(bundle.length), cables] if bundle.length else [cables]


def _facing_texts(bundles: list[Bundle]) -> list[str]:
    """Return what is written on parallel links between two sites: one text each, or all in two texts."""
    if len(bundles) == 1:
        return _span_texts(bundles[0])
    if len(bundles) <= _LABELLED_PATHS:
        return [" · ".join(_span_texts(bundle)) for bundle in bundles]
    lengths = [bundle.length for bundle in bundles]
    total = sum(bundle.count for bundle in bundles)
    return [
        f"{len(bundles)} paths, {format_length(min(lengths))} to {format_length(max(lengths))}",
        cables_of(total, bundles[0].rate),
    ]


def _moved(panel: PlacedPanel, by: float) -> PlacedPanel:
    """Return a panel further to the right."""

    def moved(span: Span) -> Span:
        return Span(span.x + by, span.w)

    return replace(
        panel,
        span=moved(panel.span),
        columns=tuple(moved(span) for span in panel.columns),
        cells={i: moved(span) for i, span in panel.cells.items()},
    )
