"""The points of a sweep: which settings each has.

A *grid* is every combination of the listed values and of the steps of ranges, the last setting running
fastest. *Random* points are independent draws; *latin-hypercube* points (`scipy.stats.qmc`) cut the scale of
every setting into as many equal parts as there are points and use each part once. A drawn list counts as a
range of its places, so that each value comes up equally often.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import SpecError, UnitError
from netplan.spec.sweep import RangeSpec
from netplan.units import parse_length, parse_rate, parse_size, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from netplan.errors import Fault
    from netplan.spec.sweep import Scalar, Settings, SweepSpec

__all__ = ["DIMENSIONS", "count_points", "make_points"]

#: Parsers of quantities, with the unit that their numbers are in.
DIMENSIONS: tuple[tuple[Callable[[object], float], str], ...] = (
    (parse_time, "s"),
    (parse_rate, "B/s"),
    (parse_length, "m"),
    (parse_size, "B"),
)

#: Digits of drawn values: enough to tell points apart, few enough to read.
_DIGITS = 6


@dataclass(frozen=True)
class _Range:
    """A range in numbers."""

    low: float
    high: float
    is_log: bool
    whole: bool
    unit: str
    """Unit that is written behind values; empty for plain numbers."""

    def at(self, place: NDArray[np.float64]) -> list[Scalar]:
        """Return the values at places from 0 to 1."""
        if self.whole:  # every whole number has an equal part of the scale
            low, high = self.low - 0.5, self.high + 0.5 - 1e-9
            low = max(low, self.low * 0.5) if self.is_log else low
        else:
            low, high = self.low, self.high
        if self.is_log:
            numbers = np.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        else:
            numbers = low + place * (high - low)
        return [self._write(number) for number in numbers.tolist()]

    def steps(self, n: int) -> list[Scalar]:
        """Return ``n`` values, both ends among them."""
        space = np.geomspace if self.is_log else np.linspace
        values = [self._write(number) for number in space(self.low, self.high, n).tolist()]
        return list(dict.fromkeys(values))

    def _write(self, number: float) -> Scalar:
        number = min(max(number, self.low), self.high)
        if self.whole:
            number = round(number)
        elif number not in (self.low, self.high):
            number = float(f"{number:.{_DIGITS}g}")
        if not self.unit:
            return int(number) if self.whole else float(number)
        return f"{number:.15g} {self.unit}"


def count_points(spec: SweepSpec) -> int:
    """Return how many points a sweep has, without making them."""
    listed = len(spec.points) or 1
    if not spec.vary:
        return len(spec.points)
    if spec.sample.points is not None:
        return listed * spec.sample.points
    return listed * math.prod(
        len(values) if isinstance(values, tuple) else (values.steps or 0) for values in spec.vary.values()
    )


def make_points(spec: SweepSpec) -> Iterator[Settings]:
    """Yield the settings of each point, those that stand for all included.

    Raises
    ------
    SpecError
        Ranges that are none; all of them at once.
    """
    base: Settings = {"fabric": spec.fabric, "traffic": spec.traffic, **spec.set}
    axes = _axes(spec)
    is_grid = spec.sample.method == "grid" or not axes
    for point in spec.points or ({},):
        for values in itertools.product(*axes.values()) if is_grid else zip(*axes.values(), strict=True):
            yield {**base, **point, **dict(zip(axes, values, strict=True))}


def _axes(spec: SweepSpec) -> dict[str, list[Scalar]]:
    """Return the values of each setting that varies: of a grid its steps, else one for each point."""
    faults: list[Fault] = []
    ranges: dict[str, _Range | tuple[Scalar, ...]] = {}
    for path, given in spec.vary.items():
        try:
            ranges[path] = _read_range(path, given) if isinstance(given, RangeSpec) else given
            if spec.sample.method == "grid" and isinstance(given, RangeSpec) and given.steps is None:
                _refuse(f"vary.{path}: a grid needs the number of steps", "steps: 5")
        except SpecError as error:
            faults += error.faults
    if faults:
        raise SpecError(faults=faults)
    if spec.sample.method == "grid":
        axes = {}
        for path, values in ranges.items():
            steps = getattr(spec.vary[path], "steps", None)
            axes[path] = values.steps(steps or 0) if isinstance(values, _Range) else list(values)
        return axes
    places = _draw(spec, len(ranges))
    return {
        path: values.at(place)
        if isinstance(values, _Range)
        else [values[min(int(x * len(values)), len(values) - 1)] for x in place.tolist()]
        for (path, values), place in zip(ranges.items(), places.T, strict=True)
    }


def _draw(spec: SweepSpec, dimensions: int) -> NDArray[np.float64]:
    """Return (n_points, n_settings) places from 0 to 1."""
    n, seed = spec.sample.points or 0, spec.sample.seed
    if not dimensions:
        return np.zeros((n, 0))
    if spec.sample.method == "random":
        return np.random.default_rng(seed).random((n, dimensions))
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(n))


def _read_range(path: str, spec: RangeSpec) -> _Range:
    """Return a range in numbers."""
    low, high, unit = _ends(path, spec.low, spec.high)
    where = f"vary.{path}"
    if low > high:
        _refuse(f"{where}: low = {spec.low} is above high = {spec.high}", "exchange them")
    if spec.scale == "log" and low <= 0:
        _refuse(f"{where}: low = {spec.low}: a logarithmic scale needs more than 0", "scale: linear")
    whole = spec.whole or (isinstance(spec.low, int) and isinstance(spec.high, int))
    return _Range(low, high, spec.scale == "log", whole or unit == "B", unit)


def _ends(path: str, low: Scalar, high: Scalar) -> tuple[float, float, str]:
    """Return both ends as numbers of one unit."""
    numbers = [end for end in (low, high) if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(numbers) == 2:  # noqa: PLR2004 -- both
        return float(numbers[0]), float(numbers[1]), ""
    for parse, unit in DIMENSIONS:
        try:
            return float(parse(low)), float(parse(high)), unit
        except UnitError:
            continue
    shown = f"low = {low!r}, high = {high!r}"
    _refuse(
        f"vary.{path}: {shown}: both must be numbers, or quantities of one dimension",
        "low: 55us, high: 1ms",
    )
    raise AssertionError


def _refuse(message: str, hint: str) -> None:
    raise SpecError(message, hint=hint)
