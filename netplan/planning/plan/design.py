"""What planning finds: designs with their figures, and what was refused and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netplan.planning.plan.growing import Growing
    from netplan.planning.plan.request import Request

__all__ = ["SCHEMA", "Amount", "Design", "Failing", "Plan", "Rejection", "Skipped"]

#: Version of the JSON that `Plan.to_dict` makes.
SCHEMA = "netplan/plan/1"

#: Significant digits to which costs, powers and stops are compared.
_DIGITS = 3


@dataclass(frozen=True)
class Amount:
    """Money or power, as far as it is known: the known sum, and pieces of parts without a figure."""

    low: float
    mid: float
    high: float
    unknown: Mapping[str, float] = field(default_factory=dict)
    """Pieces of each part without a figure: each adds an unknown amount, 0 or more."""
    large: tuple[str, ...] = ()
    """Those of them that are large parts: switches, what joins switches, and links that no part of the
    catalogue carries. NICs and host cables are not: designs with one port speed have as many of them."""

    def compared(self) -> float:
        """Return the middle to the digits that count."""
        return rounded(self.mid)

    def is_at_most(self, other: Amount) -> bool:
        """Whether it is no more than another, whatever the parts without a figure turn out to be.

        So: the known sums say so, and of no such part does it have more pieces.
        """
        return self.compared() <= other.compared() and all(
            pieces <= other.unknown.get(part, 0.0) for part, pieces in self.unknown.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"low": self.low, "mid": self.mid, "high": self.high}


def rounded(value: float) -> float:
    """Return a value to the digits that count in comparisons.

    Examples
    --------
    >>> rounded(123456.0), rounded(0.0)
    (123000.0, 0.0)
    """
    return float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True)
class Failing:
    """What single failures do, from counts of elements (`netplan.planning.plan.impact`)."""

    stops_per_month: float
    """Failures that take all ports of a NIC."""
    lost_minutes_per_month: float
    """Minutes of the whole fabric's bandwidth that are lost; see `impact`."""
    worst_nics: int
    """NICs that the failure of one switch cuts off, at most."""
    worst_gpus: int
    """GPUs whose NICs these are."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Design:
    """One fabric built of certain parts, priced and simulated."""

    name: str
    family: str
    spec: Mapping[str, Any]
    """The fabric spec, as a YAML file says it."""
    switch: str
    """Switch of the catalogue on every tier."""
    nic: str | None
    planes: int
    oversubscription: float
    switches: Mapping[str, int]
    """Switches by tier."""
    cables: Mapping[str, int]
    """Cables by kind."""
    gpus: int
    any_to_any: bool
    """Whether every NIC reaches every other through the network."""
    cost: Amount
    """The network [USD]."""
    power: Amount
    """Largest draw of the network [W]."""
    efficiencies: Mapping[str, float]
    """Workload to simulated efficiency, latency aside."""
    routing: str
    failing: Failing
    remarks: tuple[str, ...] = ()
    growth: Growing | None = None
    """How it becomes one for more GPUs, where the request asks."""
    pareto: bool = False
    """No other design beats it (`netplan.planning.plan.pareto`)."""
    score: float = 0.0
    """Weighted mean of the ratios to the best design of each objective; 1 is the best in all."""

    @property
    def efficiency(self) -> float:
        """The least of the workloads'."""
        return min(self.efficiencies.values())

    @property
    def stops(self) -> float:
        """Stops a month."""
        return self.failing.stops_per_month

    @property
    def is_priced(self) -> bool:
        """Whether all large parts have a price."""
        return not self.cost.large

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "family": self.family,
            "spec": dict(self.spec),
            "switch": self.switch,
            "nic": self.nic,
            "planes": self.planes,
            "oversubscription": self.oversubscription,
            "switches": {**self.switches, "total": sum(self.switches.values())},
            "cables": {**self.cables, "total": sum(self.cables.values())},
            "any_to_any": self.any_to_any,
            "cost_usd": self.cost.to_dict(),
            "cost_per_gpu_usd": self.cost.mid / self.gpus,
            "power_w": self.power.mid,
            "at_least": {"cost": sorted(self.cost.unknown), "power": sorted(self.power.unknown)},
            "efficiency": self.efficiency,
            "efficiencies": dict(self.efficiencies),
            "routing": self.routing,
            "failures": self.failing.to_dict(),
            "growth": None if self.growth is None else self.growth.to_dict(),
            "remarks": list(self.remarks),
            "pareto": self.pareto,
            "score": self.score,
        }


@dataclass(frozen=True)
class Rejection:
    """Designs that cannot be, or break a limit, for one reason."""

    designs: tuple[str, ...]
    reason: str
    hint: str | None = None
    limit: str | None = None
    """The limit that is broken: ``cost``, ``power``, ``efficiency``, ``stops``, ``any_to_any``; None where
    the fabric cannot be built."""
    value: float | None = None
    """What the first of the designs has instead."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "design": self.designs[0],
            "designs": list(self.designs),
            "reason": self.reason,
            "hint": self.hint,
            "limit": self.limit,
            "value": self.value,
        }


@dataclass(frozen=True)
class Skipped:
    """A design that fits but was not simulated."""

    name: str
    reason: str
    beaten_by: str | None = None
    """A design that is certainly better; None: it may be on the front."""

    @property
    def is_beaten(self) -> bool:
        """Whether it is certainly not on the front."""
        return self.beaten_by is not None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """The answer to a request."""

    request: Request
    designs: tuple[Design, ...]
    """Best first: those whose large parts have prices before the others, each by score."""
    rejected: tuple[Rejection, ...]
    skipped: tuple[Skipped, ...]
    """Designs that fit but were not simulated: beaten, or beyond the number asked for."""
    candidates: int
    """Designs that were looked at."""
    notes: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the front is that of all candidates: whatever was not simulated is beaten."""
        return all(each.is_beaten for each in self.skipped)

    @property
    def front(self) -> tuple[Design, ...]:
        """The Pareto front."""
        return tuple(design for design in self.designs if design.pareto)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: the same bytes for the same request."""
        import netplan

        return {
            "schema": SCHEMA,
            "request": self.request.to_dict(),
            "candidates": self.candidates,
            "exact": self.is_exact,
            "designs": [design.to_dict() for design in self.designs],
            "rejected": [rejection.to_dict() for rejection in self.rejected],
            "skipped": [each.to_dict() for each in self.skipped],
            "notes": list(self.notes),
            "manifest": {"netplan": netplan.__version__, "seed": self.request.seed},
        }
