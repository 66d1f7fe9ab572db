"""What the results of a sweep say: means over replicas, pivots, Pareto fronts, sensitivity.

A point's figure is the mean over its replicas that ran; the interval is t x s / sqrt(n), t of Student's
distribution with n - 1 degrees of freedom (none for one replica). Rows with an error count as failed.

*Sensitivity* of a figure to a setting: the share of the variance over points that lies between the groups of
equal values of the setting (eta squared of a one-way analysis of variance; more than `BINS` different numbers
are cut into as many equally filled bins), and for numbers Spearman's rank correlation. Shares are of each
setting alone: they need not add up to 1, and what only combinations do is in none of them. Drawn samples give
every setting a share by chance, of about (groups - 1) / (points - 1), which is taken off (omega squared's
correction), so that a setting without influence comes out near 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from netplan.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from netplan.sweep.table import Column, Results

__all__ = [
    "BINS",
    "Points",
    "Sensitivity",
    "best_points",
    "pareto_points",
    "pivot",
    "point_means",
    "sensitivity",
]

Direction = Literal["min", "max"]

#: Groups that the values of a setting are cut into where there are more.
BINS = 12


@dataclass(frozen=True, eq=False)
class Points:
    """A figure of every point."""

    metric: str
    point: NDArray[np.int64]
    """(n,) number of each point."""
    first: NDArray[np.int64]
    """(n,) first row of each, for its settings."""
    mean: NDArray[np.float64]
    """(n,) mean over replicas; nan where all failed."""
    half: NDArray[np.float64]
    """(n,) half width of the interval; nan for fewer than 2 replicas."""
    ran: NDArray[np.int64]
    """(n,) replicas that ran."""
    failed: NDArray[np.int64]
    """(n,) replicas that failed."""


def point_means(results: Results, metric: str, confidence: float = 0.95) -> Points:
    """Return the mean of a figure for every point, over its replicas.

    Raises
    ------
    SpecError
        There is no such column, or it does not hold numbers.
    """
    value = _numbers(results[metric])
    point, first, place = np.unique(
        np.asarray(results["point"].values, np.int64), return_index=True, return_inverse=True
    )
    failed = np.bincount(place, [error is not None for error in results["error"].values], len(point))
    is_there = ~np.isnan(value)
    ran = np.bincount(place[is_there], minlength=len(point))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(place[is_there], value[is_there], len(point)) / ran
        square = np.bincount(place[is_there], (value[is_there] - mean[place[is_there]]) ** 2, len(point))
        spread = np.sqrt(square / (ran - 1))
    from scipy.stats import t

    half = np.full(len(point), np.nan)
    several = ran > 1
    half[several] = t.ppf((1 + confidence) / 2, ran[several] - 1) * spread[several] / np.sqrt(ran[several])
    return Points(metric, point, first, mean, half, ran, failed.astype(np.int64))


def best_points(points: Points, direction: Direction, most: int = 5) -> NDArray[np.int64]:
    """Return the places of the best points, best first; of equal ones the earlier."""
    there = np.flatnonzero(~np.isnan(points.mean))
    sign = 1.0 if direction == "min" else -1.0
    order: NDArray[np.int64] = there[np.lexsort((there, sign * points.mean[there]))]
    return order[:most]


def pareto_points(figures: Sequence[Points], directions: Sequence[Direction]) -> NDArray[np.int64]:
    """Return the places of points that no other beats in every figure, in the order of the first figure."""
    signs = np.array([1.0 if direction == "min" else -1.0 for direction in directions])
    cost = np.stack([each.mean for each in figures], axis=1) * signs
    there = np.flatnonzero(~np.isnan(cost).any(axis=1))
    order = there[np.lexsort(cost[there].T[::-1])]
    front: list[int] = []
    for place in order.tolist():
        if (
            not front
            or not ((cost[front] <= cost[place]).all(axis=1) & (cost[front] < cost[place]).any(axis=1)).any()
        ):
            front.append(place)
    return np.asarray(front, np.int64)


def pivot(
    results: Results, row: str, column: str, metric: str
) -> tuple[list[Any], list[Any], NDArray[np.float64]]:
    """Return the mean of a figure over all rows with each pair of values of two columns.

    Returns
    -------
    rows, columns : list
        The values, sorted.
    mean : (n_rows, n_columns) float64
        nan where no scenario ran.
    """
    value = _numbers(results[metric])
    rows, r = _groups(results[row])
    columns, c = _groups(results[column])
    is_there = ~np.isnan(value)
    cell = (r * len(columns) + c)[is_there]
    n = len(rows) * len(columns)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, value[is_there], n) / np.bincount(cell, minlength=n)
    return rows, columns, mean.reshape(len(rows), len(columns))


@dataclass(frozen=True)
class Sensitivity:
    """What one setting does to a figure."""

    setting: str
    share: float
    """Share of the variance over points between its values, chance taken off; 0 to 1."""
    rank_correlation: float | None
    """Spearman's, -1 to 1; None where values are no numbers, or all are equal."""
    low: float
    """Smallest mean over the points with one value (or bin)."""
    high: float
    """Largest."""


def sensitivity(results: Results, metric: str) -> list[Sensitivity]:
    """Return how much each setting matters for a figure, the one that matters most first.

    Raises
    ------
    SpecError
        The figure holds no numbers, or fewer than 3 points have one.
    """
    points = point_means(results, metric)
    there = ~np.isnan(points.mean)
    value, first = points.mean[there], points.first[there]
    if len(value) < 3:  # noqa: PLR2004 -- less has no variance between and within
        raise SpecError(f"{len(value)} points have a {metric}: sensitivity needs 3 at least")
    total = float(((value - value.mean()) ** 2).sum())
    found = []
    for column in results.settings:
        group, correlation = _grouped(column, first, value)
        count = np.bincount(group)
        means = np.bincount(group, value) / count
        between = float((count * (means - value.mean()) ** 2).sum())
        groups, n = len(count), len(value)
        share = 0.0
        if groups > 1 and total > 0:
            within = max(total - between, 0.0) / (n - groups) if n > groups else 0.0
            share = max((between - (groups - 1) * within) / (total + within), 0.0)
        found.append(
            Sensitivity(column.name, min(share, 1.0), correlation, float(means.min()), float(means.max()))
        )
    return sorted(found, key=lambda each: (-each.share, each.setting))


def _grouped(
    column: Column, first: NDArray[np.int64], value: NDArray[np.float64]
) -> tuple[NDArray[np.int64], float | None]:
    """Return the group of each point by a setting, and the rank correlation where there is one."""
    own = [column.values[row] for row in first.tolist()]
    names = sorted({*own}, key=_order)
    place = {name: number for number, name in enumerate(names)}
    group = np.array([place[each] for each in own], np.int64)
    if column.kind is str or column.kind is bool or None in place:
        return group, None
    from scipy.stats import rankdata, spearmanr

    number = np.asarray(own, np.float64)
    correlation = None
    if len(names) > 1 and value.min() < value.max():
        correlation = float(spearmanr(number, value).statistic)
    if len(names) > BINS:
        ranks = rankdata(number, "ordinal") - 1
        group = (ranks * BINS // len(ranks)).astype(np.int64)
    return group, correlation


def _groups(column: Column) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values of a column, sorted, and the place of each row's value."""
    values = sorted(set(column.values), key=_order)
    place = {value: number for number, value in enumerate(values)}
    return values, np.array([place[value] for value in column.values], np.int64)


def _order(value: object) -> tuple[bool, Any]:
    return value is not None, value if value is not None else 0


def _numbers(column: Column) -> NDArray[np.float64]:
    if column.kind is str:
        raise SpecError(f"column {column.name} holds texts: a figure is needed")
    return np.array([np.nan if value is None else float(value) for value in column.values])
