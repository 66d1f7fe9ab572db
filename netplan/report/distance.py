"""Efficiency against distance: one comparison for each length of the spans between sites."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError
from netplan.report.diagram import Scene, find_renderer, palette
from netplan.report.diagram.scene import Area, Line, Text
from netplan.report.tables import Table
from netplan.simulate.compare import NotRun
from netplan.simulate.scenario import MAX_MIN
from netplan.units import format_length, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netplan.fabric import Fabric
    from netplan.simulate.compare import Comparison

__all__ = ["DistancePoint", "distance_points", "distance_table", "draw_distances", "span_sets"]

#: Version of the JSON.
SCHEMA = "netplan/distances/1"

_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT = 70.0, 64.0, 620.0, 320.0, 250.0
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class DistancePoint:
    """One setting at one distance."""

    distance: float
    """Length of every span [m]."""
    setting: str
    completion_s: float | None
    """None: it was not run, or does not end."""
    of_max_min: float
    """Completion time at max-min rates over its own, same fabric and routing; 0 where it does not end."""
    collective: float
    """Bandwidth efficiency ``collective``; 0 where it was not run."""
    mean_flow: float
    reason: str = ""
    """Why it was not run."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "distance_m": self.distance,
            "setting": self.setting,
            "completion_s": self.completion_s,
            "of_max_min": self.of_max_min,
            "collective": self.collective,
            "mean_flow": self.mean_flow,
            "reason": self.reason or None,
        }


def span_sets(fabric: Fabric, text: str) -> dict[str, str]:
    """Return the overrides that give every span of a metro fabric a length.

    Raises
    ------
    FabricError
        It has no spans with a length of their own.
    """
    spec: Any = fabric.spec or {}
    spans = spec.get("spans") if isinstance(spec, dict) else None
    if spec.get("kind") != "metro" or not isinstance(spans, list | tuple) or not spans:
        raise FabricError(
            f"{fabric.name} has no spans whose length could vary", hint="--distance is for metro fabrics"
        )
    if any(span.get("paths") for span in spans):
        raise FabricError(
            f"{fabric.name} has spans of several fibre paths, each with a length of its own",
            hint="vary them with netplan sweep: fabric.spans[0].paths[0].length",
        )
    return {f"spans[{place}].length": text for place in range(len(spans))}


def distance_points(comparisons: Mapping[float, Comparison]) -> list[DistancePoint]:
    """Return the points of comparisons by their distance [m]."""
    found = []
    for distance, comparison in comparisons.items():
        ideal = {
            (row.routing, row.params.get("qps")): row.result.completion_s
            for row in comparison.rows
            if row.cc == MAX_MIN
        }
        for row in comparison.in_order():
            if row.cc == MAX_MIN:
                continue
            extra = "".join(f", {name} {value:g}" for name, value in row.params.items())
            name = f"{row.routing}, {row.cc}{extra}"
            if isinstance(row, NotRun):
                found.append(DistancePoint(distance, name, None, 0.0, 0.0, 0.0, row.reason))
                continue
            figures, took = row.result.efficiency, row.result.completion_s
            share = ideal[row.routing, row.params.get("qps")] / took
            found.append(DistancePoint(distance, name, took, share, figures.collective, figures.mean_flow))
    return found


def distance_table(points: Sequence[DistancePoint], title: str) -> Table:
    """Return the efficiency of every setting (rows) at every distance (columns)."""
    distances = list(dict.fromkeys(point.distance for point in points))
    by_setting: dict[str, dict[float, DistancePoint]] = {}
    for point in points:
        by_setting.setdefault(point.setting, {})[point.distance] = point
    rows = tuple(
        (name, *(_cell(own.get(distance)) for distance in distances)) for name, own in by_setting.items()
    )
    reasons = dict.fromkeys(f"{point.setting}: {point.reason}" for point in points if point.reason)
    remarks = ("Figures: completion time at max-min rates over that under the protocol.", *list(reasons)[:8])
    return Table(("setting", *map(format_length, distances)), rows, title, remarks)


def _cell(point: DistancePoint | None) -> str:
    if point is None:
        return "-"
    return "not run" if point.completion_s is None else f"{point.of_max_min:.3f}"


def draw_distances(points: Sequence[DistancePoint], title: str, suffix_or_format: str) -> bytes:
    """Draw efficiency against distance, a line for each setting.

    Parameters
    ----------
    points
        As `distance_points` returns them.
    title
        Above the picture.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.

    Raises
    ------
    OutputError
        There is no such format.
    """
    renderer = find_renderer(suffix_or_format)
    distances = sorted({point.distance for point in points})
    low, high = math.log(distances[0]), math.log(distances[-1])

    def place(distance: float, value: float) -> tuple[float, float]:
        share = (math.log(distance) - low) / (high - low) if high > low else 0.5
        return _LEFT + share * _WIDTH, _TOP + (1 - value) * _HEIGHT

    texts = [Text(16.0, 26.0, title, 14.0, palette.INK, bold=True)]
    texts.append(
        Text(
            _LEFT,
            _TOP - 10,
            "completion time at max-min rates over that under the protocol",
            11.0,
            palette.INK,
        )
    )
    texts += [
        Text(_LEFT - 8, _TOP + (1 - step) * _HEIGHT + 4, f"{step:g}", 10.0, palette.FAINT, anchor="end")
        for step in _STEPS
    ]
    texts += [
        Text(
            place(each, 0)[0], _TOP + _HEIGHT + 18, format_length(each), 10.0, palette.FAINT, anchor="middle"
        )
        for each in distances
    ]
    lines = []
    names = list(dict.fromkeys(point.setting for point in points))
    ends: list[tuple[float, str, str]] = []
    for number, name in enumerate(names):
        own = sorted((point for point in points if point.setting == name), key=lambda point: point.distance)
        colour = palette.OKABE_ITO[(number * 3 + 4) % len(palette.OKABE_ITO)]
        steps = tuple(place(point.distance, min(point.of_max_min, 1.0)) for point in own)
        shown = ", ".join(
            f"{format_length(p.distance)} {p.of_max_min:.2f}"
            + ("" if p.completion_s is None else f" ({format_time(float(f'{p.completion_s:.3g}'))})")
            for p in own
        )
        lines.append(
            Line(
                "frame",
                "frame",
                "curve",
                1,
                0.0,
                steps,
                2.0,
                colour,
                dashed=number >= len(palette.OKABE_ITO),
                label="",
                title=f"{name}: {shown}",
            )
        )
        ends.append((steps[-1][1] + 4, name, colour))
    last = -math.inf
    for wanted, name, colour in sorted(ends):
        last = max(wanted, last + 13)  # a line of text
        texts.append(Text(_LEFT + _WIDTH + 10, last, name, 11.0, colour))
    frame = Area("frame", _LEFT, _TOP, _WIDTH, _HEIGHT, "column", "", title, palette.PAPER, palette.LINE)
    height = max(_TOP + _HEIGHT + 36, last + 20)
    return renderer.render(
        Scene(title, _LEFT + _WIDTH + _RIGHT, height, (frame,), tuple(lines), (), tuple(texts), ())
    )
