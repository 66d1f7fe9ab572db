"""Mark on a picture what failed: of the whole fabric, so that what is lost is seen in its place.

A box of which all failed, or are cut off, is red; a pile of which some did keeps its face, gets a red
edge and says how many. Lines likewise: red and dashed when all their cables are gone, red when some are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.failures import gone_cables
from netplan.report.diagram import palette
from netplan.report.diagram.scene import BOX_PADDING, SUBLABEL_SIZE
from netplan.report.diagram.text import text_width
from netplan.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.report.diagram.cells import Grouping
    from netplan.report.diagram.scene import Box, Line


@dataclass(frozen=True, eq=False)
class Failed:
    """What a damaged fabric has lost of the whole one."""

    nodes: NDArray[np.bool_]
    """(n_nodes,) whether a switch or host failed, or a host has no NIC port left."""
    cables: NDArray[np.bool_]
    """(n_cables of the whole,) whether a cable failed or lost an end."""
    texts: tuple[str, ...]
    """The failures as they were written."""

    @classmethod
    def of(cls, fabric: Fabric, damaged: Fabric) -> Failed:
        """Hold a damaged fabric against the whole one that it was made from."""
        assert damaged.damage is not None
        nodes = np.zeros(fabric.n_nodes, bool)
        nodes[damaged.damage.nodes] = True
        had = np.diff(fabric.endpoint_ptr) > 0
        nodes[fabric.host_ids[had & (np.diff(damaged.endpoint_ptr) == 0)]] = True
        cables = np.zeros(fabric.links.n_cables, bool)
        cables[gone_cables(fabric, damaged)] = True
        already = () if fabric.damage is None else fabric.damage.failures
        return cls(nodes, cables, damaged.damage.failures[len(already) :])

    def in_words(self) -> str:
        """Say what failed, in a line."""
        return f"failed: {', '.join(self.texts)}"


def mark_boxes(boxes: Sequence[Box], grouping: Grouping, failed: Failed) -> list[Box]:
    """Return the boxes of a drawing, those with something failed marked."""
    counts = np.bincount(grouping.cell_of[failed.nodes], minlength=len(boxes)).tolist()
    return [_marked_box(box, count) for box, count in zip(boxes, counts, strict=True)]


def mark_lines(lines: Sequence[Line], grouping: Grouping, failed: Failed) -> list[Line]:
    """Return the lines of a drawing, those with something failed marked."""
    counts = np.bincount(grouping.bundle_of[failed.cables], minlength=len(lines)).tolist()
    return [_marked_line(line, count) for line, count in zip(lines, counts, strict=True)]


def _marked_box(box: Box, count: int) -> Box:
    """Return a box of which so many failed."""
    if not count:
        return box
    is_whole = count == box.count
    of = f"all {format_count(count)}" if is_whole else f"{format_count(count)} of {format_count(box.count)}"
    word = "lost" if box.kind == "host" else "failed"  # hosts are cut off as well
    said = word if box.count == 1 else f"{of} {word}"
    room = box.w - 2 * BOX_PADDING
    texts = (f"{box.sublabel}, {said}" if box.sublabel else said, said, f"{format_count(count)} {word}", "")
    return replace(
        box,
        fill=palette.face(palette.FAILED) if is_whole else box.fill,
        stroke=palette.FAILED,
        sublabel=next(text for text in texts if text_width(text, SUBLABEL_SIZE) <= room),
        title=f"{box.title}: {said}",
        failed=count,
    )


def _marked_line(line: Line, count: int) -> Line:
    """Return a line of which so many cables failed."""
    if not count:
        return line
    return replace(
        line,
        colour=palette.FAILED,
        dashed=line.dashed or count == line.count,
        title=f"{line.title}: {format_count(count)} of {format_count(line.count)} failed",
        failed=count,
    )
