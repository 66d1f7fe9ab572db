"""A workload at many sizes as nccl-tests prints it, and as a picture."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Line, Text
from netplan.report.tables import Table
from netplan.units import format_size

if TYPE_CHECKING:
    from netplan.simulate.sizes import Sweep

_WIDTH, _HEIGHT = 760.0, 320.0
_LEFT, _TOP, _RIGHT = 90.0, 64.0, 220.0

#: Marks of the horizontal axis, at most.
_MARKS = 10


def sizes_table(sweep: Sweep) -> Table:
    """Return the table that nccl-tests prints, with algorithm and protocol."""
    rows = tuple(
        (
            row.size,
            row.count,
            "float",
            row.time_s * 1e6,
            row.algbw / 1e9,
            None if row.busbw is None else row.busbw / 1e9,
            row.algorithm or "",
            row.protocol or "",
        )
        for row in sweep.rows
    )
    columns = ("size_bytes", "count", "type", "time_us", "algbw_gb_per_s", "busbw_gb_per_s", "algo", "proto")
    mean = sweep.mean_busbw
    remarks = () if mean is None else (f"mean bus bandwidth {mean / 1e9:.2f} GB/s",)
    title = f"{sweep.traffic} ({sweep.kind}, {sweep.n_ranks:,} ranks) on {sweep.fabric}"
    return Table(columns, rows, title, remarks)


def draw_sizes(sweep: Sweep, suffix_or_format: str) -> bytes:
    """Draw bus bandwidth (algorithm bandwidth where there is none) over size.

    Parameters
    ----------
    sweep
        As `netplan.api.sweep` returns it.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    values = [(row.algbw if row.busbw is None else row.busbw) / 1e9 for row in sweep.rows]
    names = [f"{row.algorithm or sweep.kind} {row.protocol or ''}".strip() for row in sweep.rows]
    top = _ceiling(max(values))
    low, high = math.log2(sweep.rows[0].size), math.log2(sweep.rows[-1].size)
    span = max(high - low, 1.0)

    def place(size: int, value: float) -> tuple[float, float]:
        x = _LEFT + (math.log2(size) - low) / span * _WIDTH
        return round(x, 2), round(_TOP + _HEIGHT * (1 - value / top), 2)

    title = f"{sweep.traffic} on {sweep.fabric}, {sweep.n_ranks:,} ranks"
    what = "busbw" if sweep.rows[0].busbw is not None else "algbw"
    texts = [
        Text(16.0, 26.0, title, 14.0, palette.INK, bold=True),
        Text(_LEFT, _TOP - 10, f"{what} [GB/s] over size", 12.0, palette.INK, bold=True),
    ]
    lines = []
    kinds = list(dict.fromkeys(names))
    for number, kind in enumerate(kinds):
        colour = palette.rail_colour(number)
        texts.append(
            Text(_LEFT + _WIDTH + 14, _TOP + 12 + 18 * number, kind, 11.0, palette.edge(colour), bold=True)
        )
    points = [place(row.size, value) for row, value in zip(sweep.rows, values, strict=True)]
    for at, (here, there) in enumerate(itertools.pairwise(points)):
        kind = names[at + 1]
        row = sweep.rows[at + 1]
        lines.append(
            Line(
                source=f"point-{at}",
                target=f"point-{at + 1}",
                kind="other",
                count=1,
                rate=0.0,
                points=(here, there),
                width=2.0,
                colour=palette.rail_colour(kinds.index(kind)),
                dashed=False,
                label="",
                title=f"{format_size(row.size)}: {values[at + 1]:.1f} GB/s, {kind}",
            )
        )
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _TOP + _HEIGHT * (1 - part)
        texts.append(Text(_LEFT - 8, y + 4, f"{part * top:.4g}", 11.0, palette.FAINT, anchor="end"))
    each = max(math.ceil(len(sweep.rows) / _MARKS), 1)
    for row in sweep.rows[::each]:
        x, _ = place(row.size, 0.0)
        texts.append(
            Text(x, _TOP + _HEIGHT + 18, format_size(row.size), 11.0, palette.FAINT, anchor="middle")
        )
    frame = Area(
        "sizes", _LEFT, _TOP, _WIDTH, _HEIGHT, "column", "", "", palette.AREA_FILL, palette.AREA_STROKE
    )
    size = (_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + 40)
    return renderer.render(Scene(title, *size, (frame,), tuple(lines), (), tuple(texts), ()))


def _ceiling(value: float) -> float:
    """Return the next of 1, 2, 4, 5 times a power of ten: its quarters are round."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value * (1 - 1e-9))
