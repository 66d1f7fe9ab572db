"""Rates, queues and pauses over time, and comparisons, as files and pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Box, Line, Text
from netplan.report.tables import Table, render_tables
from netplan.units import format_rate, format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.simulate.compare import Comparison
    from netplan.simulate.result import PhaseSeries, Result

#: Version of the JSON of a series.
SCHEMA = "netplan/series/1"

#: Lines of one panel that are drawn and named; more are drawn pale, without a name.
_NAMED = 8

#: Points of a drawn rate.
_POINTS = 60

_WIDTH, _PANEL, _GAP = 760.0, 190.0, 56.0
_LEFT, _TOP, _RIGHT = 90.0, 56.0, 250.0
_BAR, _BAR_GAP, _BAR_LABEL = 20.0, 8.0, 330.0

#: A name beside a panel is cut after this many letters.
_NAME = 34


def render_series(result: Result, suffix: str) -> str:
    """Return the series of a result as CSV, a row for each time and sender or link, or as JSON."""
    congestion = result.congestion
    series = () if congestion is None else congestion.series
    if suffix == ".json":
        data = {"schema": SCHEMA, "phases": [_plain(result, one) for one in series]}
        return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    rows = []
    for one in series:
        names = _sender_names(result, one)
        for i, time in enumerate(one.time.tolist()):
            rows += [
                (one.phase, time, "rate_gb_per_s", name, value / 1e9)
                for name, value in zip(names, one.rate[i].tolist(), strict=True)
            ]
            rows += [
                (one.phase, time, "queue_bytes", name, value)
                for name, value in zip(one.links, one.queue[i].tolist(), strict=True)
            ]
            rows += [
                (one.phase, time, "paused_fraction", name, value)
                for name, value in zip(one.paused_links, one.paused[i].tolist(), strict=True)
            ]
    return render_tables([Table(("phase", "time_s", "what", "of", "value"), tuple(rows))], "csv")


def _plain(result: Result, one: PhaseSeries) -> dict[str, object]:
    """Return one phase's series as plain data."""
    return {
        "phase": one.phase,
        "time_s": one.time.tolist(),
        "rates": [
            {"flow": flow, "qp": qp, "name": name, "gb_per_s": (one.rate[:, k] / 1e9).tolist()}
            for k, (flow, qp, name) in enumerate(
                zip(one.flow.tolist(), one.qp.tolist(), _sender_names(result, one), strict=True)
            )
        ],
        "queues": [{"link": link, "bytes": one.queue[:, k].tolist()} for k, link in enumerate(one.links)],
        "pauses": [
            {"link": link, "fraction": one.paused[:, k].tolist()} for k, link in enumerate(one.paused_links)
        ],
    }


def _sender_names(result: Result, one: PhaseSeries) -> list[str]:
    """Return what each sender is called: the ends of its flow, and its QP where there are several."""
    fabric, demand = result.scenario.fabric, result.scenario.demand

    def end(endpoint: int) -> str:
        e = fabric.endpoints
        return f"{fabric.node_name(int(e.host[endpoint]))}/{int(e.rail[endpoint])}"

    several = one.qp.max(initial=0) > 0
    return [
        f"{end(int(demand.src[flow]))} -> {end(int(demand.dst[flow]))}" + (f" qp {qp}" if several else "")
        for flow, qp in zip(one.flow.tolist(), one.qp.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class _Curves:
    """What one panel shows."""

    title: str
    time: NDArray[np.float64]
    values: NDArray[np.float64]
    """(n_samples, n_curves)"""
    names: list[str]
    write: Callable[[float], str]
    high: float | None = None
    """Upper end of the vertical axis; None: from the values."""


def draw_series(result: Result, suffix_or_format: str) -> bytes:
    """Draw rates, queues and pauses of every phase over time.

    Parameters
    ----------
    result
        Of a scenario with ``record``.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    congestion = result.congestion
    panels = []
    for one in () if congestion is None else congestion.series:
        prefix = f"{one.phase}: " if len(result.phases) > 1 else ""
        time, rate = _smoothed(one.time, one.rate)
        over = format_time(float(f"{time[0] if len(time) else 0.0:.3g}"))
        rates = _Curves(
            f"{prefix}rate of each sender, means over {over}",
            time,
            rate,
            _sender_names(result, one),
            format_rate,
        )
        queues = _Curves(
            f"{prefix}bytes that wait at the fullest ports", one.time, one.queue, list(one.links), _size
        )
        stopped = "part of the time that links are paused" if one.paused_links else "no link is ever paused"
        time, paused = _smoothed(one.time, one.paused)
        pauses = _Curves(f"{prefix}{stopped}", time, paused, list(one.paused_links), _percent, 1.0)
        panels += [rates, queues, pauses]
    scenario = result.scenario
    title = (
        f"{scenario.demand.name} on {scenario.fabric.name}: {scenario.routing}, {scenario.cc}, "
        f"{format_time(result.completion_s)}"
    )
    areas, lines, texts = [], [], [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    for number, panel in enumerate(panels):
        top = _TOP + number * (_PANEL + _GAP)
        areas.append(_frame(number, top))
        lines += _curves(number, panel, top)
        texts += _labels(panel, top)
    height = _TOP + len(panels) * (_PANEL + _GAP) + 8
    scene = Scene(title, _LEFT + _WIDTH + _RIGHT, height, tuple(areas), tuple(lines), (), tuple(texts), ())
    return renderer.render(scene)


def _smoothed(
    time: NDArray[np.float64], rate: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means over about `_POINTS` equal parts: single packets would be spikes."""
    each = max(len(time) // _POINTS, 1)
    whole = len(time) // each * each
    means = rate[:whole].reshape(whole // each, each, rate.shape[1]).mean(axis=1)
    return time[each - 1 : whole : each], means


def _size(value: float) -> str:
    return format_size(float(f"{value:.3g}"))


def _percent(value: float) -> str:
    return f"{value * 100:.3g} %"


def _frame(number: int, top: float) -> Area:
    return Area(
        f"panel-{number}",
        _LEFT,
        top,
        _WIDTH,
        _PANEL,
        "column",
        "",
        "",
        palette.AREA_FILL,
        palette.AREA_STROKE,
    )


def _ceiling(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9)))


def _top_value(panel: _Curves) -> float:
    """Return where the vertical axis ends: rates in round bits/s."""
    if panel.high is not None:
        return panel.high
    most = float(panel.values.max(initial=0.0))
    return _ceiling(most * 8) / 8 if panel.write is format_rate else _ceiling(most)


def _curves(number: int, panel: _Curves, top: float) -> list[Line]:
    """Return a line for each curve."""
    high, last = _top_value(panel), float(panel.time[-1]) if len(panel.time) else 1.0
    lines = []
    for k in range(panel.values.shape[1]):
        x = _LEFT + panel.time / last * _WIDTH
        y = top + _PANEL - np.minimum(panel.values[:, k] / high, 1.0) * _PANEL
        colour = palette.rail_colour(k) if k < _NAMED else palette.LINE
        points = tuple((round(a, 2), round(b, 2)) for a, b in zip(x.tolist(), y.tolist(), strict=True))
        lines.append(
            Line(
                source=f"{number}-{k}",
                target="",
                kind="other",
                count=1,
                rate=0.0,
                points=points,
                width=1.4 if k < _NAMED else 0.6,
                colour=colour,
                dashed=False,
                label="",
                title=_about(panel, k),
            )
        )
    return lines[::-1]


def _about(panel: _Curves, k: int) -> str:
    """Return the name of a curve with its mean and its highest value."""
    values = panel.values[:, k]
    if not len(values):
        return panel.names[k]
    mean, most = (panel.write(float(f"{value:.4g}")) for value in (values.mean(), values.max()))
    return f"{panel.names[k]}: mean {mean}, at most {most}"


def _labels(panel: _Curves, top: float) -> list[Text]:
    """Return title, axes and names of a panel."""
    high, last = _top_value(panel), float(panel.time[-1]) if len(panel.time) else 1.0
    texts = [Text(_LEFT, top - 8, panel.title, 12.0, palette.INK, bold=True)]
    for part in (0.0, 0.5, 1.0):
        value = "0" if part == 0 else panel.write(float(f"{part * high:.4g}"))
        y = top + _PANEL * (1 - part) + 4
        texts.append(Text(_LEFT - 8, y, value, 11.0, palette.FAINT, anchor="end"))
        when = "0" if part == 0 else format_time(float(f"{part * last:.3g}"))
        texts.append(
            Text(_LEFT + part * _WIDTH, top + _PANEL + 16, when, 11.0, palette.FAINT, anchor="middle")
        )
    for k, name in enumerate(panel.names[:_NAMED]):
        short = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
        colour = palette.edge(palette.rail_colour(k))
        texts.append(Text(_LEFT + _WIDTH + 10, top + 12 + 18 * k, short, 11.0, colour))
    rest = len(panel.names) - _NAMED
    if rest > 0:
        more = f"and {rest:,} more (grey)"
        texts.append(Text(_LEFT + _WIDTH + 10, top + 12 + 18 * _NAMED, more, 11.0, palette.FAINT))
    return texts


def draw_comparison(comparison: Comparison, suffix_or_format: str) -> bytes:
    """Draw the completion times of a comparison as bars, the baseline first.

    Parameters
    ----------
    comparison
        As `netplan.api.compare` returns it.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    base = comparison.baseline
    entries = [(f"{base.scenario.routing}, {base.scenario.cc} (baseline)", base)]
    for row in comparison.rows:
        extra = "".join(f", {name} {value:g}" for name, value in row.params.items())
        entries.append((f"{row.routing}, {row.cc}{extra}", row.result))
    longest = max(result.completion_s for _, result in entries)
    title = f"{base.scenario.demand.name} on {base.scenario.fabric.name}: completion time"
    boxes, texts = [], [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    for number, (name, result) in enumerate(entries):
        y = _TOP + number * (_BAR + _BAR_GAP)
        width = max(result.completion_s / longest * _WIDTH, 1.0)
        colour = palette.TIER_COLOURS[0 if number == 0 else 1 if result.congestion is None else 3]
        boxes.append(
            Box(
                id=f"bar-{number}",
                x=_BAR_LABEL,
                y=y,
                w=width,
                h=_BAR,
                label="",
                sublabel="",
                kind="leaf",
                count=1,
                group="",
                title=f"{name}: {format_time(result.completion_s)}",
                fill=palette.face(colour),
                stroke=palette.edge(colour),
            )
        )
        texts.append(Text(_BAR_LABEL - 8, y + 14, name, 11.0, palette.INK, anchor="end"))
        figure = f"{format_time(result.completion_s)}, collective {result.efficiency.collective:.3f}"
        texts.append(Text(_BAR_LABEL + width + 8, y + 14, figure, 11.0, palette.FAINT))
    height = _TOP + len(entries) * (_BAR + _BAR_GAP) + 16
    return renderer.render(
        Scene(title, _BAR_LABEL + _WIDTH + 190, height, (), (), tuple(boxes), tuple(texts), ())
    )
