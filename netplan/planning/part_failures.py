"""How often the parts of a training job interrupt it: published counts, as rates per part.

*Counts.* Llama 3 (Meta, 2024), table 5: 419 unexpected interruptions in 54 days of a job on 16,384 H100 in
2,048 hosts with one NIC a GPU. A count over parts and hours is a rate; a job of another size has as many
times the parts. The table's own percentages are kept nowhere: its 30.1 % for faulty GPUs does not go with
its count of 148, which is 35.3 % of 419.

*Other clusters.* All causes together are 3.8 failures per 1,000 host-days. Kokolis et al. (Meta, HPCA 2025)
have 6.50 and 2.34 on two clusters of A100 (hardware only, all jobs), so a factor of two either way is what
another cluster may differ by.

*Scope.* Failures are taken as independent and constant in time. Software and dependencies are taken to scale
with GPUs as the parts do, which no one has published; faults of one job's own code do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from netplan.errors import ModelRangeError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NETWORK_PARTS", "PART_FAILURES", "JobParts", "PartFailure", "part_failures_with"]

Per = Literal["gpu", "host", "nic"]

#: Hours that the counts were taken over.
_HOURS = 54 * 24

#: Parts that they were taken over.
_PARTS: dict[Per, int] = {"gpu": 16_384, "host": 2_048, "nic": 16_384}

_LLAMA = "Llama 3 (Meta, 2024), table 5: {} of 419 interruptions in 54 days on 16,384 H100"


@dataclass(frozen=True)
class JobParts:
    """What a job consists of, as far as it fails."""

    gpus: int
    gpus_per_host: int = 8
    nics_per_host: int = 8

    def __post_init__(self) -> None:
        """Refuse a job without parts, and one of broken hosts.

        Raises
        ------
        ModelRangeError
            A count below 1, or GPUs that do not fill hosts.
        """
        for name in ("gpus", "gpus_per_host", "nics_per_host"):
            if getattr(self, name) < 1:
                raise ModelRangeError(f"{name} = {getattr(self, name)} is too few", hint="at least 1")
        if self.gpus % self.gpus_per_host:
            raise ModelRangeError(
                f"gpus = {self.gpus} do not fill hosts of {self.gpus_per_host}",
                hint=f"{-(-self.gpus // self.gpus_per_host) * self.gpus_per_host} do",
            )

    @property
    def hosts(self) -> int:
        """Hosts of the job."""
        return self.gpus // self.gpus_per_host

    def count(self, per: Per) -> int:
        """Return how many parts of a kind there are."""
        return {"gpu": self.gpus, "host": self.hosts, "nic": self.hosts * self.nics_per_host}[per]


@dataclass(frozen=True)
class PartFailure:
    """How often one part of a kind interrupts a job."""

    name: str
    per: Per
    per_hour: float
    """Interruptions per part and hour."""
    takes_host: bool
    """Whether a host goes to repair, and a spare takes its place."""
    source: str
    confidence: str = "derived"
    """``derived`` from counts that are published, or ``user``."""

    def interruptions(self, parts: JobParts, hours: float) -> float:
        """Return the expected interruptions of a job in so many hours."""
        return self.per_hour * parts.count(self.per) * hours


def _llama(name: str, per: Per, count: int, *, takes_host: bool = True) -> PartFailure:
    return PartFailure(name, per, count / _PARTS[per] / _HOURS, takes_host, _LLAMA.format(count))


#: Causes by name, as published.
PART_FAILURES: dict[str, PartFailure] = {
    part.name: part
    for part in (
        _llama("gpu", "gpu", 148),
        _llama("hbm", "gpu", 72),
        _llama("software", "gpu", 54, takes_host=False),
        _llama("network", "gpu", 35, takes_host=False),
        _llama("host_maintenance", "host", 32),
        _llama("gpu_sram", "gpu", 19),
        _llama("gpu_processor", "gpu", 17),
        _llama("nic", "nic", 7),
        _llama("nccl_timeout", "gpu", 7, takes_host=False),
        _llama("silent_corruption", "gpu", 6),
        _llama("gpu_thermal", "gpu", 6),
        _llama("ssd", "host", 3),
        _llama("power_supply", "host", 3),
        _llama("chassis", "host", 2),
        _llama("io_board", "host", 2),
        _llama("dependency", "gpu", 2, takes_host=False),
        _llama("cpu", "host", 2),
        _llama("memory", "host", 2),
    )
}

#: Causes that a study of a fabric's own failures takes the place of.
NETWORK_PARTS = ("network", "nic")

#: More interruptions per part and hour than this are refused: a slip.
_MOST = 1.0


def part_failures_with(per_million_hours: Mapping[str, float]) -> dict[str, PartFailure]:
    """Return the causes with the rates that the user gives.

    Parameters
    ----------
    per_million_hours
        Cause to interruptions per part in a million hours; ``all`` scales every cause so that they come to
        this many per GPU (in hosts of eight GPUs with a NIC each).

    Raises
    ------
    ModelRangeError
        There is no such cause, or a rate is out of range.
    """
    parts = dict(PART_FAILURES)
    for name, rate in per_million_hours.items():
        if name != "all" and name not in PART_FAILURES:
            near = did_you_mean(name, ["all", *PART_FAILURES])
            raise ModelRangeError(
                f"{name!r} is not one of all, {', '.join(PART_FAILURES)}",
                hint=f"did you mean {near}?" if near else None,
            )
        if not 0 <= rate <= _MOST * 1e6:
            raise ModelRangeError(
                f"rate {name} = {rate:g} in a million hours is out of range", hint="0 to 1,000,000"
            )
    if "all" in per_million_hours:
        unit = JobParts(8)
        now = sum(part.interruptions(unit, 1.0) for part in parts.values()) / unit.gpus
        scale = per_million_hours["all"] / 1e6 / now
        for name, part in parts.items():
            parts[name] = replace(
                part,
                per_hour=part.per_hour * scale,
                source=f"given by the user for all causes; shares: {part.source}",
                confidence="user",
            )
    for name, rate in per_million_hours.items():
        if name != "all":
            parts[name] = replace(
                parts[name], per_hour=rate / 1e6, source="given by the user", confidence="user"
            )
    return parts
