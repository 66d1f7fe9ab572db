"""Views of the results of a sweep, as plain data, tables and scenes: what ``netplan sweep show`` shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import SpecError, did_you_mean
from netplan.report.tables import Table
from netplan.sweep import pictures, summary
from netplan.sweep.pictures import unit_of, value_text
from netplan.sweep.row import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netplan.report.diagram import Scene
    from netplan.sweep.table import Results

__all__ = ["View", "best_view", "error_view", "pareto_view", "pivot_view", "sensitivity_view"]

#: Version of the JSON of a view.
SCHEMA = "netplan/sweep-view/1"

_CORNER = "\\"


@dataclass(frozen=True)
class View:
    """Results, and the figure that is looked at."""

    results: Results
    name: str
    metric: str
    is_max: bool
    confidence: float

    @classmethod
    def of(
        cls,
        results: Results,
        manifest: Mapping[str, Any] | None,
        *,
        metric: str | None = None,
        is_max: bool | None = None,
        name: str = "",
    ) -> View:
        """Return a view of the sweep's goal, or of another figure.

        Raises
        ------
        SpecError
            There is no such figure.
        """
        spec = manifest["spec"] if manifest else {}
        goal = spec.get("goal", {"metric": "completion_s", "direction": "min"})
        metric = metric or goal["metric"]
        _check_metric(metric)
        if is_max is None:
            is_max = goal["direction"] == "max" if metric == goal["metric"] else _is_more_better(metric)
        return cls(results, spec.get("name", name), metric, is_max, spec.get("confidence", 0.95))


def _is_more_better(metric: str) -> bool:
    return metric in {"algbw_gb_per_s", "busbw_gb_per_s", "mean_flow", "collective", "worst_flow"}


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        near = did_you_mean(metric, METRICS)
        raise SpecError(
            f"{metric!r} is not a figure of the results: {', '.join(METRICS)}",
            hint=f"did you mean {near}?" if near else None,
        )


def best_view(view: View, most: int) -> tuple[dict[str, Any], list[Table]]:
    """Return the best points, each with the interval of its mean."""
    points = summary.point_means(view.results, view.metric, view.confidence)
    places = summary.best_points(points, "max" if view.is_max else "min", most)
    found, rows = [], []
    for place in places.tolist():
        row = int(points.first[place])
        half = float(points.half[place])
        settings = {column.name: column.values[row] for column in view.results.settings}
        found.append(
            {
                "point": int(points.point[place]),
                "settings": settings,
                "mean": float(points.mean[place]),
                "half_width": None if np.isnan(half) else half,
                "ran": int(points.ran[place]),
                "failed": int(points.failed[place]),
            }
        )
        rows.append(
            {
                "point": int(points.point[place]),
                **{
                    column.name: value_text(column.values[row], column.unit)
                    for column in view.results.settings
                },
                view.metric: value_text(points.mean[place], unit_of(view.metric)),
                f"± at {view.confidence:.0%}": value_text(half, unit_of(view.metric)),
                "ran": int(points.ran[place]),
            }
        )
    failed = int(points.failed.sum())
    remarks = [f"{failed:,} scenarios failed: --errors says why"] if failed else []
    word = "largest" if view.is_max else "smallest"
    title = f"{view.name}: {word} {view.metric} of {len(points.point):,} points"
    data = {"schema": SCHEMA, "metric": view.metric, "points": found, "failed": failed}
    return data, [Table.of(rows, title, remarks)]


def pivot_view(view: View, axes: Sequence[str]) -> tuple[dict[str, Any], list[Table], Scene]:
    """Return the mean of the figure over two columns."""
    row, column = _two(axes, "--pivot", "ROW,COLUMN")
    rows, columns, mean = summary.pivot(view.results, row, column, view.metric)
    units = (view.results[row].unit, view.results[column].unit)
    unit = unit_of(view.metric)
    across = [value_text(value, units[1]) for value in columns]
    name = f"{row} {_CORNER} {column}"
    body = tuple(
        (value_text(value, units[0]), *(value_text(cell, unit) for cell in mean[place].tolist()))
        for place, value in enumerate(rows)
    )
    title = f"{view.name}: mean {view.metric}"
    data = {
        "schema": SCHEMA,
        "metric": view.metric,
        "row": row,
        "column": column,
        "rows": rows,
        "columns": columns,
        "mean": [[None if np.isnan(cell) else cell for cell in line] for line in mean.tolist()],
    }
    if np.isnan(mean).all():
        raise SpecError(f"no scenario has a {view.metric}: there is nothing to show")
    i, j = pictures.thin(rows), pictures.thin(columns)
    scene = pictures.draw_heat_map(
        title,
        (row, column, view.metric),
        [rows[k] for k in i],
        [columns[k] for k in j],
        mean[np.ix_(i, j)],
        units,
    )
    return data, [Table((name, *across), body, title)], scene


def pareto_view(view: View, figures: Sequence[str]) -> tuple[dict[str, Any], list[Table], Scene]:
    """Return the points that no other beats in two figures."""
    parts = [_figure(text) for text in _two(figures, "--pareto", "FIGURE:min,FIGURE:max")]
    names = [name for name, _ in parts]
    means = [summary.point_means(view.results, name, view.confidence) for name in names]
    front = summary.pareto_points(means, ["max" if is_max else "min" for _, is_max in parts])
    found, rows = [], []
    for place in front.tolist():
        row = int(means[0].first[place])
        settings = {column.name: column.values[row] for column in view.results.settings}
        values = {name: float(each.mean[place]) for name, each in zip(names, means, strict=True)}
        found.append({"point": int(means[0].point[place]), "settings": settings, **values})
        rows.append(
            {
                "point": int(means[0].point[place]),
                **{
                    column.name: value_text(column.values[row], column.unit)
                    for column in view.results.settings
                },
                **{name: value_text(value, unit_of(name)) for name, value in values.items()},
            }
        )
    title = f"{view.name}: " + ", ".join(f"{'most' if is_max else 'least'} {name}" for name, is_max in parts)
    hover = [
        ", ".join(
            f"{column.name} {value_text(column.values[int(row)], column.unit)}"
            for column in view.results.settings
        )
        for row in means[0].first
    ]
    scene = pictures.draw_front(title, (means[0], means[1]), front, hover)
    return {"schema": SCHEMA, "figures": names, "front": found}, [Table.of(rows, title)], scene


def sensitivity_view(view: View) -> tuple[dict[str, Any], list[Table], Scene]:
    """Return how much each setting matters for the figure."""
    found = summary.sensitivity(view.results, view.metric)
    unit = unit_of(view.metric)
    rows = [
        {
            "setting": each.setting,
            "share of variance": f"{each.share:.1%}",
            "rank correlation": "-" if each.rank_correlation is None else f"{each.rank_correlation:+.2f}",
            "lowest mean": value_text(each.low, unit),
            "highest mean": value_text(each.high, unit),
        }
        for each in found
    ]
    title = f"{view.name}: what {view.metric} depends on"
    data = {"schema": SCHEMA, "metric": view.metric, "settings": [dict(vars(each)) for each in found]}
    return data, [Table.of(rows, title)], pictures.draw_sensitivity(title, found)


def error_view(view: View) -> tuple[dict[str, Any], list[Table]]:
    """Return how many scenarios failed with each error."""
    counts = Counter(error for error in view.results["error"].values if error is not None)
    rows = [{"scenarios": count, "error": error.splitlines()[0]} for error, count in counts.most_common()]
    title = f"{view.name}: {sum(counts.values()):,} of {len(view.results):,} scenarios failed"
    data = {
        "schema": SCHEMA,
        "errors": [{"count": count, "error": error} for error, count in counts.most_common()],
    }
    return data, [Table.of(rows, title)]


def _two(parts: Sequence[str], option: str, form: str) -> tuple[str, str]:
    if len(parts) != 2:  # noqa: PLR2004 -- as the name says
        raise SpecError(f"{option} takes two, as {form}; {len(parts)} given")
    return parts[0], parts[1]


def _figure(text: str) -> tuple[str, bool]:
    """Read ``FIGURE:min`` or ``FIGURE:max``."""
    name, _, direction = text.partition(":")
    _check_metric(name)
    if direction not in {"", "min", "max"}:
        raise SpecError(f"--pareto {text}: {direction!r} is neither min nor max")
    return name, _is_more_better(name) if not direction else direction == "max"
