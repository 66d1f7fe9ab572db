"""What is written around a picture: its title, a gutter at the left, a legend below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.fabric import TIER_NAMES
from netplan.report.diagram import palette
from netplan.report.diagram.cells import HOST, LEAF, count_blocks
from netplan.report.diagram.place import BOX_HEIGHT
from netplan.report.diagram.route import LABEL
from netplan.report.diagram.scene import SAMPLE_HEIGHT, SAMPLE_WIDTH, Box, LegendItem, Line, Text
from netplan.report.diagram.text import shorten, text_width
from netplan.report.diagram.wording import (
    Traits,
    cables_of,
    count_of,
    number_of,
    oversubscription,
    ports_of,
    title_of,
)
from netplan.units import format_count

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.report.diagram.cells import Grouping
    from netplan.report.diagram.failed import Failed

MARGIN = 28.0

#: Width of the gutter.
GUTTER = 186.0

#: Where the picture begins, below the title.
HEAD = MARGIN + 74.0

_TITLE = 19.0
_FACTS = 13.0
_LEGEND = 11.0

#: A rail gets an entry of its own in the legend up to this many.
_MOST_RAILS = 18

#: Facts written between two rows.
_MOST_FACTS = 4

_Sample = tuple[Literal["box", "stack", "folded", "line", "dashed"], str, str, str]
_Entry = tuple[str, float, str, bool]


def write_title(fabric: Fabric, width: float) -> Iterator[Text]:
    """Yield the title: the name, and below it what the fabric is and how large."""
    name, _, facts = title_of(fabric).partition(" — ")
    room = width - 2 * MARGIN
    shown = shorten(name, room, _TITLE, bold=True)
    yield Text(MARGIN, MARGIN + _TITLE, shown, _TITLE, palette.INK, bold=True)
    shown = shorten(facts, room, _FACTS)
    yield Text(MARGIN, MARGIN + _TITLE + 1.7 * _FACTS, shown, _FACTS, palette.FAINT)


def write_failed(failed: Failed, width: float) -> Iterator[Text]:
    """Yield, below the title, what failed."""
    shown = shorten(failed.in_words(), width - 2 * MARGIN, LABEL)
    yield Text(MARGIN, MARGIN + _TITLE + 3.2 * _FACTS, shown, LABEL, palette.FAILED)


def write_gutter(
    fabric: Fabric,
    grouping: Grouping,
    traits: Traits,
    row_y: dict[int, float],
    labelled: set[tuple[int, int]],
) -> Iterator[Text]:
    """Yield at the left what each row is, and which cables run between it and the next.

    Parameters
    ----------
    fabric, grouping, traits
        What is drawn.
    row_y
        Upper edge of each tier's row, the highest tier first.
    labelled
        Pairs of tiers (the lower one first) whose lines say themselves how many cables they are.
    """
    nodes = fabric.nodes
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    tiers = list(row_y)
    for tier, below in zip(tiers, [*tiers[1:], None], strict=True):
        here = np.flatnonzero(nodes.tier == tier)
        entries: list[_Entry] = [(count_of(len(here), tier), _FACTS, palette.INK, True)]
        if tier == HOST:
            entries += [(fact, LABEL, palette.FAINT, False) for fact in _host_facts(fabric, traits)]
        else:
            entries.append((ports_of(nodes.radix[here], used[here]), LABEL, palette.FAINT, False))
            ratio = oversubscription(traits.ratio[here])
            if ratio:
                entries.append((f"{ratio} oversubscribed", LABEL, palette.WARNING, True))
        yield from _block(row_y[tier] + BOX_HEIGHT / 2, entries)
        if below is not None:
            middle = (row_y[tier] + BOX_HEIGHT + row_y[below]) / 2
            facts = _cable_facts(grouping, tier, below, labelled=(below, tier) in labelled)
            yield from _block(middle, [(fact, LABEL, palette.FAINT, False) for fact in facts])


def _block(middle: float, entries: list[_Entry]) -> Iterator[Text]:
    """Yield lines of text, centred on a height."""
    y = middle - sum(size * 1.35 for _, size, _, _ in entries) / 2
    for text, size, colour, bold in entries:
        y += size * 1.35
        shown = shorten(text, GUTTER - 14, size, bold=bold)
        yield Text(MARGIN, y - size * 0.35, shown, size, colour, bold=bold)


def _host_facts(fabric: Fabric, traits: Traits) -> Iterator[str]:
    """Yield what the hosts are: alike, or in numbers."""
    gpus, ports, rates = fabric.gpus_per_host, np.diff(fabric.endpoint_ptr), np.unique(fabric.endpoint_rate)
    alike = len(gpus) and gpus.min() == gpus.max() and ports.min() == ports.max()
    if alike and len(rates) == 1:
        yield f"each {number_of(int(gpus[0]), 'GPU')}, {cables_of(int(ports[0]), float(rates[0]))}"
    else:
        yield f"{number_of(fabric.n_gpus, 'GPU')}, {number_of(fabric.n_endpoints, 'NIC port')}"
    if traits.has_rails:
        leaves = fabric.nodes.tier == LEAF
        block, site = count_blocks(fabric)[leaves], fabric.nodes.site[leaves]
        blocks = len(np.unique(site.astype(np.int64) * fabric.n_nodes + block))
        if blocks > 1:
            yield f"in {number_of(blocks, 'block')}"


def _cable_facts(grouping: Grouping, tier: int, below: int, *, labelled: bool) -> list[str]:
    """Return how many cables of which speed run between two rows."""
    totals: dict[float, int] = {}
    counts = []
    for bundle in grouping.bundles:
        if (grouping.cells[bundle.low].tier, grouping.cells[bundle.high].tier) == (below, tier):
            totals[bundle.rate] = totals.get(bundle.rate, 0) + bundle.count
            counts.append(bundle.count)
    facts = [cables_of(count, rate) for rate, count in sorted(totals.items())]
    if len(facts) > _MOST_FACTS:
        rest = sum(count for _, count in sorted(totals.items())[_MOST_FACTS - 1 :])
        facts = [*facts[: _MOST_FACTS - 1], f"{format_count(rest)} faster"]
    if not labelled and len(counts) > 1 and min(counts) == max(counts) > 1:
        facts.append(f"{format_count(counts[0])} per line")
    return facts


def write_legend(
    boxes: list[Box], lines: list[Line], grouping: Grouping, traits: Traits, y: float, width: float
) -> tuple[list[LegendItem], list[Text], float]:
    """Explain colours and lines.

    Parameters
    ----------
    boxes, lines, grouping, traits
        What is drawn, and so is to be explained.
    y
        Upper edge.
    width
        Width of the picture.

    Returns
    -------
    tuple
        The samples, their texts, and the lower edge.
    """
    x = MARGIN
    items, texts = [], []
    samples = [*_colour_samples(boxes, grouping, traits), *_shape_samples(boxes, lines)]
    for kind, fill, stroke, label in samples:
        reach = SAMPLE_WIDTH + 8 + text_width(label, _LEGEND)
        if x > MARGIN and x + reach > width - MARGIN:
            x, y = MARGIN, y + 22
        items.append(LegendItem(x, y, kind, fill, stroke, label))
        texts.append(Text(x + SAMPLE_WIDTH + 8, y + SAMPLE_HEIGHT - 2, label, _LEGEND, palette.FAINT))
        x += reach + 16
    return items, texts, y + SAMPLE_HEIGHT


def _colour_samples(boxes: list[Box], grouping: Grouping, traits: Traits) -> Iterator[_Sample]:
    """Yield what the colours mean: rails where there are any, else tiers."""
    rails = sorted({rail for cell in grouping.cells for rail in cell.rails})
    for place, rail in enumerate(rails[: _MOST_RAILS + 1]):
        colour = palette.rail_colour(rail)
        label = f"rail {rail}" if place < _MOST_RAILS else "… and so on"
        yield "box", palette.mix(colour, palette.PAPER, 0.35), palette.edge(colour), label
    if not traits.has_rails:
        for tier in sorted({TIER_NAMES.index(box.kind) for box in boxes}, reverse=True):
            colour = palette.TIER_COLOURS[tier]
            yield "box", palette.face(colour), palette.edge(colour), TIER_NAMES[tier]
    if any(max(cell.planes, default=0) > 0 for cell in grouping.cells):
        grey = palette.GREY_TIERS[HOST]
        yield "box", palette.face(grey, 2), palette.edge(grey), "darker: higher plane"


def _shape_samples(boxes: list[Box], lines: list[Line]) -> Iterator[_Sample]:
    """Yield what the shapes of boxes and lines mean."""
    grey = palette.GREY_TIERS[HOST]
    if any(box.stacked for box in boxes):
        yield "stack", palette.face(grey), palette.edge(grey), "several alike"
    if any(box.folded for box in boxes):
        yield "folded", palette.face(grey), palette.edge(grey), "left out, summed up"
    local = [line for line in lines if line.kind != "inter_site"]
    if any(line.count > 1 for line in local):
        yield "line", "", palette.LINE, "parallel cables, thicker: more"
    elif local:
        yield "line", "", palette.LINE, "cable"
    if any(line.kind == "inter_site" and not line.failed for line in lines):
        yield "line", "", palette.SITE_LINK, "links between sites"
    if any(box.failed == box.count for box in boxes):
        yield "box", palette.face(palette.FAILED), palette.FAILED, "failed or cut off"
    if any(0 < box.failed < box.count for box in boxes):
        yield "stack", palette.face(grey), palette.FAILED, "some failed"
    if any(line.failed == line.count for line in lines):
        yield "dashed", "", palette.FAILED, "failed cables"
    if any(0 < line.failed < line.count for line in lines):
        yield "line", "", palette.FAILED, "some cables failed"
