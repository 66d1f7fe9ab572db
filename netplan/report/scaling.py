"""Scaling curves, jobs that share a fabric, and searches for layouts: tables, plain data and a chart."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Line, Text
from netplan.report.tables import Table
from netplan.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.training.jobs import JobOutcome
    from netplan.training.planner import LayoutSearch
    from netplan.training.scaling import ScalingPoint

_WIDTH, _HEIGHT = 620.0, 300.0
_LEFT, _TOP, _RIGHT, _BELOW = 70.0, 64.0, 190.0, 60.0

#: Grid lines of the vertical axis.
_STEPS = 5

#: A point's mark has this half size.
_MARK = 3.0


def scaling_to_dict(points: Sequence[ScalingPoint]) -> list[dict[str, Any]]:
    """Return scaling points as plain data."""
    return [asdict(point) for point in points]


def scaling_table(points: Sequence[ScalingPoint], title: str = "", work: str = "tokens/s") -> Table:
    """Return a row for each size, with a column for each placement."""
    kinds = list(dict.fromkeys(point.placement for point in points))
    sizes = sorted({point.gpus for point in points})
    by = {(point.placement, point.gpus): point for point in points}
    columns = ["gpus"]
    for kind in kinds:
        columns += [f"{kind} step_s", f"{kind} {work}", f"{kind} efficiency"]
    rows = []
    for size in sizes:
        row: list[Any] = [size]
        for kind in kinds:
            point = by[kind, size]
            row += [point.step_s, point.throughput, point.efficiency]
        rows.append(tuple(row))
    remark = f"efficiency: {work} over GPUs times {work} a GPU at {sizes[0]:,} GPUs"
    return Table(tuple(columns), tuple(rows), title or "linear speed-up", (remark,))


def draw_scaling(points: Sequence[ScalingPoint], title: str, suffix_or_format: str) -> bytes:
    """Draw the efficiency over the number of GPUs, a line for each placement.

    Parameters
    ----------
    points
        As `netplan.training.scaling.scaling_curve` returns them.
    title
        What is drawn.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    kinds = list(dict.fromkeys(point.placement for point in points))
    sizes = sorted({point.gpus for point in points})
    low = min(point.efficiency for point in points)
    floor = max(math.floor(low * 10 - 1e-9) / 10 if low < 1 else 0.9, 0.0)
    ceiling = max(1.0, *(point.efficiency for point in points))
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(gpus: float) -> float:
        return _LEFT + (math.log2(gpus) - first) / max(last - first, 1e-9) * _WIDTH

    def y(efficiency: float) -> float:
        return _TOP + _HEIGHT * (1 - (efficiency - floor) / (ceiling - floor))

    frame = Area(
        "frame", _LEFT, _TOP, _WIDTH, _HEIGHT, "column", "", "", palette.AREA_FILL, palette.AREA_STROKE
    )
    texts = [
        Text(16.0, 26.0, title, 14.0, palette.INK, bold=True),
        Text(_LEFT, _TOP - 10, "throughput over linear speed-up", 11.0, palette.FAINT),
        Text(_LEFT + _WIDTH, _TOP + _HEIGHT + 40, "GPUs", 11.0, palette.FAINT, anchor="end"),
    ]
    lines = []
    for step in range(_STEPS + 1):
        value = floor + (ceiling - floor) * step / _STEPS
        texts.append(Text(_LEFT - 8, y(value) + 4, f"{value:.0%}", 11.0, palette.FAINT, anchor="end"))
        if 0 < step < _STEPS:
            ends = ((_LEFT, y(value)), (_LEFT + _WIDTH, y(value)))
            lines.append(_line(f"grid-{step}", ends, palette.AREA_STROKE, 0.6, f"{value:.0%}"))
    shown = sizes if len(sizes) <= 2 * _STEPS else sizes[:: -(-len(sizes) // (2 * _STEPS))]
    below = _TOP + _HEIGHT + 18
    texts += [Text(x(size), below, f"{size:,}", 11.0, palette.FAINT, anchor="middle") for size in shown]
    for number, kind in enumerate(kinds):
        colour = palette.edge(palette.rail_colour(number))
        curve = sorted((p for p in points if p.placement == kind), key=lambda point: point.gpus)
        way = tuple((round(x(p.gpus), 2), round(y(p.efficiency), 2)) for p in curve)
        lines.append(_line(f"curve-{number}", way, colour, 1.8, kind))
        for p, (a, b) in zip(curve, way, strict=True):
            mark = ((a - _MARK, b), (a, b - _MARK), (a + _MARK, b), (a, b + _MARK), (a - _MARK, b))
            hint = (
                f"{kind}, {p.gpus:,} GPUs: {p.efficiency:.1%}, step {format_time(float(f'{p.step_s:.4g}'))}"
            )
            lines.append(_line(f"mark-{number}-{p.gpus}", mark, colour, 2.2, hint))
        end = f"{kind} {curve[-1].efficiency:.1%}"
        texts.append(Text(_LEFT + _WIDTH + 10, _TOP + 14 + 18 * number, end, 11.0, colour))
    height = _TOP + _HEIGHT + _BELOW
    return renderer.render(
        Scene(title, _LEFT + _WIDTH + _RIGHT, height, (frame,), tuple(lines), (), tuple(texts), ())
    )


def _line(name: str, points: tuple[tuple[float, float], ...], colour: str, width: float, title: str) -> Line:
    return Line(
        source=name,
        target="",
        kind="other",
        count=1,
        rate=0.0,
        points=points,
        width=width,
        colour=colour,
        dashed=False,
        label="",
        title=title,
    )


def jobs_to_dict(outcomes: Sequence[JobOutcome]) -> list[dict[str, Any]]:
    """Return what sharing does to jobs as plain data."""
    return [
        {
            "name": each.name,
            "gpus": each.gpus,
            "hosts": each.hosts,
            "alone_s": each.alone_s,
            "step_s": each.step_s,
            "worst_s": each.worst_s,
            "slowdown": each.slowdown,
            "worst_slowdown": each.worst_slowdown,
            "slowed": each.slowed,
        }
        for each in outcomes
    ]


def jobs_table(outcomes: Sequence[JobOutcome], title: str = "") -> Table:
    """Return a row for each job."""
    rows = []
    for each in outcomes:
        worst = max(each.slowed, key=each.slowed.__getitem__, default=None)
        most = "-" if worst is None or each.slowed[worst] <= 1 else f"{worst} x{each.slowed[worst]:.2f}"
        rows.append(
            {
                "job": each.name,
                "gpus": each.gpus,
                "hosts": each.hosts,
                "alone_s": each.alone_s,
                "step_s": each.step_s,
                "slowdown": each.slowdown,
                "worst_s": each.worst_s,
                "worst slowdown": each.worst_slowdown,
                "slowed most": most,
            }
        )
    remark = (
        "step_s: expected, each job's communication meeting the others' as often as they are under way; "
        "worst_s: always meeting"
    )
    return Table.of(rows, title or "jobs on one fabric", (remark,))


def search_table(search: LayoutSearch, shown: int = 5) -> Table:
    """Return the best layouts found, the plain one last.

    Parameters
    ----------
    search
        As `netplan.training.planner.search_layouts` returns it.
    shown
        How many of the best.
    """
    from netplan.training.planner import layout_to_dict

    found = search.found
    rows = [
        {"layout": f"{place + 1}", "step_s": step, "over plain": search.plain_s / step}
        | layout_to_dict(layout)
        for place, (layout, step) in enumerate(found.ranking[:shown])
    ]
    rows.append(
        {"layout": "plain", "step_s": search.plain_s, "over plain": 1.0} | layout_to_dict(search.plain)
    )
    kept = [
        name
        for name in rows[0]
        if name in ("layout", "step_s", "over plain", "tp", "dp", "pp", "micro_batch")
        or len({row[name] for row in rows}) > 1
    ]
    common = ", ".join(f"{name} {rows[0][name]}" for name in rows[0] if name not in kept)
    fit = f"{found.candidates:,} layouts fit, {search.too_large:,} do not; "
    runs = f"{found.evaluated[-1]:,}"
    if found.is_proven:
        fit += f"{runs} were run on the fabric, the others cannot be faster."
    else:
        fit += f"the search ended after {runs} runs on the fabric: none is faster than {found.bound_s:.4g} s."
    remarks = [fit, f"The best is {search.gain:.1%} faster than the plain layout."]
    if common:
        remarks.append(f"All of them: {common}.")
    return Table.of([{name: row[name] for name in kept} for row in rows], "best layouts", remarks)
