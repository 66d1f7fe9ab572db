"""Pictures of the results of a sweep: heat maps, fronts, sensitivities, as scenes for any renderer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.report.diagram import Scene, palette
from netplan.report.diagram.scene import Area, Box, Line, Text
from netplan.units import format_length, format_rate, format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from netplan.sweep.summary import Points, Sensitivity

__all__ = ["draw_front", "draw_heat_map", "draw_sensitivity", "value_text"]

_LEFT, _TOP, _CELL_W, _CELL_H = 150.0, 64.0, 74.0, 26.0
_MOST_CELLS = 60
_WIDTH, _HEIGHT, _DOT = 640.0, 420.0, 6.0
_BAR, _GAP = 20.0, 9.0

#: Colours of the least and the largest value (viridis' ends are told apart by all eyes).
_COLD, _WARM = "#f7f4c8", "#1f4e79"

_FORMATS: dict[str, Callable[[float], str]] = {
    "s": format_time,
    "B": format_size,
    "B/s": format_rate,
    "m": format_length,
}

#: A quantity that is written in so many letters is not rounded.
_SHORT = 9

#: Unit of figures, by the end of their name.
_UNITS = (("_s", "s"), ("_bytes", "B"))


def value_text(value: Any, unit: str = "") -> str:  # noqa: ANN401 -- a cell of any column
    """Return a value as people read it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        number = float(f"{value:.4g}")
        if unit not in _FORMATS or number < 0:
            return f"{number:.4g}"
        exact = _FORMATS[unit](value)
        return exact if len(exact) <= _SHORT else _FORMATS[unit](number)
    return str(value)


def unit_of(metric: str) -> str:
    """Return the unit that a figure's name says."""
    return next((unit for end, unit in _UNITS if metric.endswith(end)), "")


def draw_heat_map(
    title: str,
    names: tuple[str, str, str],
    rows: Sequence[Any],
    columns: Sequence[Any],
    mean: NDArray[np.float64],
    units: tuple[str, str] = ("", ""),
) -> Scene:
    """Return a heat map of a figure over two settings.

    Parameters
    ----------
    title
        Above the picture.
    names
        Names of rows, columns and figure.
    rows, columns, mean
        As `netplan.sweep.summary.pivot` returns them; more than 60 of each are thinned out by `thin`.
    units
        Of rows and columns.
    """
    low, high = float(np.nanmin(mean)), float(np.nanmax(mean))
    unit = unit_of(names[2])
    boxes, texts = [], [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    texts.append(Text(16.0, 46.0, f"{names[0]} (down) by {names[1]} (across): {names[2]}", 11.0, palette.INK))
    for i, row in enumerate(rows):
        y = _TOP + 24 + i * _CELL_H
        label = _cut(value_text(row, units[0]), 20)
        texts.append(Text(_LEFT - 8, y + _CELL_H / 2 + 4, label, 11.0, palette.INK, anchor="end"))
        for j, column in enumerate(columns):
            value = float(mean[i, j])
            share = 0.0 if math.isnan(value) or high == low else (value - low) / (high - low)
            fill = palette.PAPER if math.isnan(value) else palette.mix(_COLD, _WARM, share)
            x = _LEFT + j * _CELL_W
            words = value_text(value, unit)
            hover = (
                f"{names[0]} {value_text(row, units[0])}, {names[1]} {value_text(column, units[1])}: {words}"
            )
            boxes.append(_box(f"cell-{i}-{j}", x, y, _CELL_W, _CELL_H, hover, fill))
            ink = palette.PAPER if share > 0.5 else palette.INK  # noqa: PLR2004 -- half way
            texts.append(
                Text(x + _CELL_W / 2, y + _CELL_H / 2 + 4, _cut(words, 10), 10.0, ink, anchor="middle")
            )
    for j, column in enumerate(columns):
        label = _cut(value_text(column, units[1]), 10)
        texts.append(Text(_LEFT + (j + 0.5) * _CELL_W, _TOP + 16, label, 11.0, palette.INK, anchor="middle"))
    width = max(_LEFT + len(columns) * _CELL_W + 24, 16 + 8.0 * len(title))
    height = _TOP + 24 + len(rows) * _CELL_H + 24
    return Scene(title, width, height, (), (), tuple(boxes), tuple(texts), ())


def thin(values: Sequence[Any]) -> list[int]:
    """Return places of at most 60 values, evenly over all."""
    n = len(values)
    return (
        list(range(n))
        if n <= _MOST_CELLS
        else np.linspace(0, n - 1, _MOST_CELLS).round().astype(int).tolist()
    )


def draw_front(
    title: str, figures: tuple[Points, Points], front: NDArray[np.int64], names: Sequence[str]
) -> Scene:
    """Return all points over two figures, with the front that no point beats in both.

    Parameters
    ----------
    title
        Above the picture.
    figures
        Across and upwards.
    front
        Places of the points of the front.
    names
        What each point is called when pointed at.
    """
    x, y = (each.mean for each in figures)
    there = np.flatnonzero(~np.isnan(x) & ~np.isnan(y))
    (x0, x1), (y0, y1) = _span(x[there]), _span(y[there])

    def place(k: int) -> tuple[float, float]:
        across = (x[k] - x0) / (x1 - x0)
        up = (y[k] - y0) / (y1 - y0)
        return _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT

    chosen = set(front.tolist())
    boxes = []
    for k in sorted(there.tolist(), key=lambda k: k in chosen):
        left, top = place(k)
        fill = palette.OKABE_ITO[5 if k in chosen else 0] if k in chosen else palette.LINE
        boxes.append(_box(f"point-{k}", left - _DOT / 2, top - _DOT / 2, _DOT, _DOT, names[k], fill))
    steps = tuple(place(k) for k in front.tolist())
    lines = []
    if len(steps) > 1:
        lines.append(
            Line(
                "point",
                "point",
                "front",
                1,
                0.0,
                steps,
                1.4,
                palette.OKABE_ITO[5],
                dashed=True,
                label="",
                title="front",
            )
        )
    texts = [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        label = value_text(x0 + share * (x1 - x0), unit_of(figures[0].metric))
        texts.append(
            Text(_LEFT + share * _WIDTH, _TOP + _HEIGHT + 18, label, 10.0, palette.INK, anchor="middle")
        )
        label = value_text(y0 + share * (y1 - y0), unit_of(figures[1].metric))
        texts.append(
            Text(_LEFT - 8, _TOP + (1 - share) * _HEIGHT + 4, label, 10.0, palette.INK, anchor="end")
        )
    texts += [
        Text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 38, figures[0].metric, 11.0, palette.INK, anchor="middle"),
        Text(_LEFT, _TOP - 10, figures[1].metric, 11.0, palette.INK),
        Text(
            _LEFT + _WIDTH,
            _TOP - 10,
            f"front: {len(front)} of {len(there)} points",
            11.0,
            palette.INK,
            anchor="end",
        ),
    ]
    frame = Area("frame", _LEFT, _TOP, _WIDTH, _HEIGHT, "column", "", title, palette.PAPER, palette.LINE)
    return Scene(
        title,
        _LEFT + _WIDTH + 40,
        _TOP + _HEIGHT + 56,
        (frame,),
        tuple(lines),
        tuple(boxes),
        tuple(texts),
        (),
    )


def draw_sensitivity(title: str, found: Sequence[Sensitivity]) -> Scene:
    """Return bars of the share of variance that each setting explains."""
    left = 16 + 7.0 * max((len(each.setting) for each in found), default=4) + 12
    texts = [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    boxes = []
    for k, each in enumerate(found):
        y = _TOP + k * (_BAR + _GAP)
        width = max(each.share * 360.0, 0.5)
        boxes.append(
            _box(f"bar-{k}", left, y, width, _BAR, f"{each.setting}: {each.share:.1%}", palette.OKABE_ITO[4])
        )
        rank = "" if each.rank_correlation is None else f", rank correlation {each.rank_correlation:+.2f}"
        texts += [
            Text(left - 8, y + _BAR - 6, each.setting, 11.0, palette.INK, anchor="end"),
            Text(left + width + 8, y + _BAR - 6, f"{each.share:.0%}{rank}", 11.0, palette.INK),
        ]
    height = _TOP + len(found) * (_BAR + _GAP) + 16
    return Scene(
        title, max(left + 620.0, 16 + 8.0 * len(title)), height, (), (), tuple(boxes), tuple(texts), ()
    )


def _box(name: str, x: float, y: float, w: float, h: float, title: str, fill: str) -> Box:
    return Box(name, x, y, w, h, "", "", "cell", 1, "", title, fill, fill)


def _span(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of an axis."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = (high - low) * 0.04 or abs(high) * 0.04 or 1.0
    return (low - room if low - room >= 0 or low < 0 else 0.0), high + room


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
