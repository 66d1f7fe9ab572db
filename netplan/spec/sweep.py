"""Sweep specs: which settings of a scenario vary, how they are sampled, and how often each runs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, Strict, TypeAdapter, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Name

Scalar = (
    Annotated[bool, Strict()]
    | Annotated[int, Strict()]
    | Annotated[float, Strict()]
    | Annotated[str, Strict()]
    | tuple[Annotated[str, Strict()], ...]
    | None
)
"""A value of a setting: as in the spec that it belongs to; a list of texts for ``fail``."""

Settings = dict[str, Scalar]

#: Values that one setting may list.
_MOST_VALUES = 100_000


Values = Annotated[tuple[Scalar, ...], Field(max_length=_MOST_VALUES)]


class RangeSpec(SpecModel):
    """Values between two ends."""

    low: Scalar
    """Lower end: a number, or a quantity with its unit."""
    high: Scalar
    """Upper end, of the same dimension."""
    scale: Literal["linear", "log"] = "linear"
    """How values are spaced between the ends."""
    steps: Annotated[int, Strict(), Ge(2), Le(_MOST_VALUES)] | None = None
    """How many values a grid takes, both ends included; not for random samples."""
    whole: Annotated[bool, Strict()] = False
    """Only whole numbers (of the unit, where there is one)."""


class SampleSpec(SpecModel):
    """How points are taken from the ranges and lists."""

    method: Literal["grid", "random", "latin-hypercube"] = "grid"
    """Every combination, independent draws, or draws that cover each setting evenly."""
    points: Count | None = None
    """How many points are drawn; not for a grid."""
    seed: Annotated[int, Strict(), Ge(0), Lt(2**63)] = 0
    """Decides the draws."""

    @model_validator(mode="after")
    def _points_go_with_draws(self) -> Self:
        """Refuse a number of draws without draws, and the other way round."""
        if self.method == "grid" and self.points is not None:
            raise Refusal("is not used by a grid", path="points", hint="method: latin-hypercube")
        if self.method != "grid" and self.points is None:
            raise Refusal(f"method {self.method} needs a number of points", path="points", hint="points: 100")
        return self


class GoalSpec(SpecModel):
    """What the best point is best in."""

    metric: str = "completion_s"
    """A column of the results (`netplan.sweep.row.METRICS`)."""
    direction: Literal["min", "max"] = "min"
    """Whether less or more is better."""


class SweepSpec(SpecModel):
    """A sweep: settings that stand, settings that vary, how they are sampled."""

    name: Name
    """Name of the sweep."""
    description: str = ""
    """What it is for, in a sentence."""
    source: str = ""
    """Where its numbers come from."""
    fabric: str
    """Shipped name, or a file; relative to the folder of the sweep file."""
    traffic: str
    """Shipped name, or a file; relative to the folder of the sweep file."""
    set: Settings = Field(default={})
    """Settings that are the same for all points."""
    vary: dict[str, Annotated[tuple[Scalar, ...], Field(max_length=_MOST_VALUES)] | RangeSpec] = Field(
        default={}
    )
    """Settings that vary: a list of values, or a range."""
    points: Annotated[tuple[Settings, ...], Field(max_length=1_000_000)] = ()
    """Points written out; with ``vary`` as well, each is combined with all of its samples."""
    sample: SampleSpec = SampleSpec()
    """How points are taken from ``vary``."""
    replicas: Annotated[int, Strict(), Ge(1), Le(100_000)] = 1
    """How often each point runs, with seeds one after another."""
    confidence: Annotated[float, Strict(), Gt(0), Lt(1)] = 0.95
    """Confidence of the intervals of means over replicas."""
    goal: GoalSpec = GoalSpec()
    """What counts as best."""

    @model_validator(mode="after")
    def _something_varies(self) -> Self:
        """Refuse a sweep of nothing, and a setting that is said twice."""
        if not self.vary and not self.points:
            raise Refusal(
                "nothing varies: the grid is empty", path="vary", hint="vary: {routing: [ecmp, spray]}"
            )
        for key, values in self.vary.items():
            if isinstance(values, tuple) and not values:
                raise Refusal("has no values: the grid is empty", path=("vary", key))
            if key in self.set:
                raise Refusal("is also in `set`", path=("vary", key), hint="keep one of them")
        for place, point in enumerate(self.points):
            for key in point:
                if key in self.vary:
                    raise Refusal("is also in `vary`", path=("points", place, key), hint="keep one of them")
        return self


#: Validates a sweep spec.
SWEEP_SPEC: TypeAdapter[SweepSpec] = TypeAdapter(SweepSpec)
