"""Where the boxes and areas of a picture go.

Tiers are rows, hosts at the bottom; columns (pods, rails, blocks) stand side by side in panels
(sites). A box that stands for a whole tier of a column is as wide as the column, so that its lines
run straight up and down and do not cross. What belongs to a whole site (cores, hosts whose rails
are in several columns) is as wide as the columns that it joins.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.report.diagram.scene import BOX_PADDING, LABEL_SIZE, SUBLABEL_SIZE
from netplan.report.diagram.text import text_width
from netplan.report.diagram.wording import column_title, wordings_of

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.report.diagram.cells import Cell, Grouping

BOX_HEIGHT = 46.0
BOX_GAP = 12.0
COLUMN_GAP = 16.0
COLUMN_PADDING = 12.0

#: Gap between boxes of a crowded row.
_TIGHT_GAP = 7.0
PANEL_PADDING = 18.0

#: Height of a band for the title of an area.
TITLE_BAND = 22.0
TITLE_SIZE = 11.0

#: Narrowest and widest box for a single node.
_NARROWEST = 34.0
_WIDEST = 132.0
_WIDEST_SPARSE = 190.0

#: Narrowest box for several things, where there are very few in a row, and where there are few.
_WIDE_STACK = 156.0
_STACK = 124.0

#: Up to this many boxes in a row, over all sites, may be so wide.
_SPARSE = 5
_ROOMY = 10
_CROWDED = 24

#: Narrowest panel of a picture of one site and of several.
_LONE_PANEL = 620.0
_PANEL = 250.0


@dataclass(slots=True)
class Span:
    """A stretch from left to right."""

    x: float
    w: float

    @property
    def end(self) -> float:
        """Right end."""
        return self.x + self.w

    @property
    def middle(self) -> float:
        """Middle."""
        return self.x + self.w / 2


@dataclass(frozen=True, slots=True)
class PlacedPanel:
    """One site: its columns and how far it reaches; ``cells`` are the places of its boxes."""

    span: Span
    columns: tuple[Span, ...]
    cells: dict[int, Span]
    in_column: dict[int, int]
    """Column of each cell that stands in one."""


def place_panel(fabric: Fabric, grouping: Grouping, number: int, *, padded: bool) -> PlacedPanel:
    """Place the boxes of one panel from left to right, beginning at 0.

    Parameters
    ----------
    fabric, grouping
        What is drawn.
    number
        The panel.
    padded
        Whether the panel has an edge and so needs room inside it.
    """
    panel = grouping.panels[number]
    cells = {i: cell for i, cell in enumerate(grouping.cells) if cell.panel == number}
    in_column, n_columns = _columns_of(cells, len(panel.columns))
    rows = _rows(fabric, grouping, cells, in_column, n_columns)
    pad = COLUMN_PADDING if n_columns > 1 else 0.0
    between = 2 * pad + COLUMN_GAP
    titles = [column_title(column) for column in panel.columns]
    widths = [text_width(title, TITLE_SIZE, bold=True) + 8 if title else 0.0 for title in titles]
    widths += [0.0] * (n_columns - len(widths))
    for row in rows:
        if row.divides:
            for column in range(row.low, row.high + 1):
                widths[column] = max(widths[column], row.width_of(row.share))
        else:
            there = sum(widths[row.low : row.high + 1]) + (row.high - row.low) * between
            _widen(widths, row.low, row.high, row.width_of(len(row.members)) - there)
    narrowest = _PANEL if padded else _LONE_PANEL
    _widen(widths, 0, n_columns - 1, narrowest - sum(widths) - (n_columns - 1) * between)
    edge = PANEL_PADDING if padded else 0.0
    columns, x = [], edge + pad
    for width in widths:
        columns.append(Span(x, width))
        x += width + between
    placed: dict[int, Span] = {}
    for row in rows:
        row.place(columns, placed)
    return PlacedPanel(Span(0.0, columns[-1].end + pad + edge), tuple(columns), placed, in_column)


@dataclass(frozen=True, slots=True)
class _Row:
    """Boxes of one tier over one or more columns; all are equally wide."""

    low: int
    high: int
    """First and last column."""
    members: tuple[int, ...]
    least: float
    """Least width of a box."""
    most: float
    """Greatest width of use to a box."""
    gap: float

    @property
    def share(self) -> int:
        """Boxes over each column, where they can be dealt out equally."""
        return len(self.members) // (self.high - self.low + 1)

    @property
    def divides(self) -> bool:
        """Whether each column gets as many: boxes then stand above what they are joined with."""
        return len(self.members) % (self.high - self.low + 1) == 0

    def width_of(self, count: int) -> float:
        """Return the least width of so many boxes."""
        return count * (self.least + self.gap) - self.gap

    def place(self, columns: list[Span], placed: dict[int, Span]) -> None:
        """Spread the boxes over their columns."""
        over = columns[self.low : self.high + 1]
        if not self.divides:
            over = [Span(over[0].x, over[-1].end - over[0].x)]
        share = len(self.members) // len(over)
        for j, span in enumerate(over):
            slot = (span.w + self.gap) / share
            width = min(slot - self.gap, self.most)
            for k, i in enumerate(self.members[j * share : (j + 1) * share]):
                placed[i] = Span(span.x + k * slot + (slot - self.gap - width) / 2, width)


def _rows(
    fabric: Fabric, grouping: Grouping, cells: dict[int, Cell], in_column: dict[int, int], n_columns: int
) -> list[_Row]:
    """Return the rows of a panel: those of its columns first, then those across columns."""
    members: dict[tuple[int, int, int], list[int]] = {}
    for i, column in in_column.items():
        members.setdefault((column, column, cells[i].tier), []).append(i)
    members |= _clusters({i: cell for i, cell in cells.items() if i not in in_column}, n_columns)
    per_tier = Counter(cell.tier for cell in grouping.cells)
    rows = []
    for (low, high, tier), row in members.items():
        needs = [_needs(fabric, cells[i], per_tier[tier], in_rail=grouping.in_rail(cells[i])) for i in row]
        gap = BOX_GAP if per_tier[tier] <= _CROWDED // 2 else _TIGHT_GAP
        least, most = (max(values) for values in zip(*needs, strict=True))
        rows.append(_Row(low, high, tuple(row), least, most, gap))
    return rows


def _columns_of(cells: dict[int, Cell], n_columns: int) -> tuple[dict[int, int], int]:
    """Return the column of each cell that stands in one, and how many columns there are.

    Where some cells of a tier stand in columns and others do not (custom fabrics), the others get
    a column of their own at the right: in their row there is no room across the columns.
    """
    mixed = {cell.tier for cell in cells.values() if cell.column >= 0}
    in_column = {i: cell.column for i, cell in cells.items() if cell.column >= 0}
    left_over = [i for i, cell in cells.items() if cell.column < 0 and cell.tier in mixed]
    in_column |= dict.fromkeys(left_over, n_columns)
    return in_column, n_columns + bool(left_over)


def _clusters(cells: dict[int, Cell], n_columns: int) -> dict[tuple[int, int, int], list[int]]:
    """Return cells that share a stretch of columns in one row: by first and last column and tier."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for tier in sorted({cell.tier for cell in cells.values()}):
        row = sorted(
            (min(cell.span[0], n_columns - 1), min(cell.span[1], n_columns - 1), i)
            for i, cell in cells.items()
            if cell.tier == tier
        )
        low, high, members = row[0][0], row[0][1], [row[0][2]]
        for start, end, i in row[1:]:
            if start > high:
                found[low, high, tier] = sorted(members)
                low, high, members = start, end, []
            high = max(high, end)
            members.append(i)
        found[low, high, tier] = sorted(members)
    return found


def _needs(fabric: Fabric, cell: Cell, in_row: int, *, in_rail: bool) -> tuple[float, float]:
    """Return the least width of a box, and the most that is of use to it."""
    options = [label for label, _ in wordings_of(fabric, cell, "", in_rail=in_rail)]
    room = [text_width(text, LABEL_SIZE, bold=True) + 2 * BOX_PADDING for text in options]
    if cell.count > 1:
        if in_row <= _SPARSE:
            return _WIDE_STACK, float("inf")
        if in_row <= _ROOMY:
            return _STACK, float("inf")
        return max(room[-1], text_width("00 leaves", SUBLABEL_SIZE) + 2 * BOX_PADDING), float("inf")
    widest = _WIDEST_SPARSE if in_row <= _SPARSE else _WIDEST
    full, short = min(max(room[0], 64.0), widest), min(max(room[-1], _NARROWEST), 64.0)
    if in_row <= _ROOMY:
        return full, max(full, _WIDEST)
    if in_row <= _CROWDED:
        return min(full, max(short, 62.0)), full
    return short, full


def _widen(widths: list[float], low: int, high: int, by: float) -> None:
    """Widen columns equally, by ``by`` in all."""
    if by > 0:
        for column in range(low, high + 1):
            widths[column] += by / (high - low + 1)
