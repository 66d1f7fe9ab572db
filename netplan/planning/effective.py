"""Effective compute: what share of the power that a data centre pays for becomes model FLOPs.

    effective = 1/PUE x MFU x scaling efficiency x effective training time x utilisation

* *PUE factor*: IT power over facility power.
* *MFU*: model FLOPs over peak FLOPs of a job so small that the fabric costs it nothing: the MFU of the whole
  job over its scaling efficiency, so that the product of both is the job's own MFU.
* *Scaling efficiency*: throughput of N GPUs over N times that of one GPU of the smallest layout.
* *Effective training time*: `netplan.planning.goodput`.
* *Utilisation*: share of GPU-hours that jobs have.

Baidu names these five factors and not how it measures them. The PUE factor is about energy and the other four
about time, so the product is model FLOPs per joule of facility energy over peak FLOPs per joule of IT energy.

*What one point is worth.* A factor f that becomes f + 0.01 does the work of N x 0.01/f more GPUs. Of
bandwidth efficiency e: with a share s of the step that is communication nothing hides, the step lasts
1 - s + s e/(e + 0.01) times as long, and N GPUs do the work of N over that. A price per GPU-hour makes it
money a year. Latency, which more bandwidth does not shorten, is in s too: an upper limit.

*Defaults.* PUE 1.56: average of the Uptime Institute's survey of 2024. Utilisation 0.83: Kokolis et al.
(Meta, HPCA 2025), a research cluster of 16,000 A100. Price 2.50 USD per GPU-hour: an assumption, of the order
of H100 rents in 2025.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from netplan.planning.goodput import Goodput

__all__ = [
    "PRICE_USD",
    "PUE",
    "UTILISATION",
    "EffectiveCompute",
    "Factor",
    "PointWorth",
    "effective_compute",
    "more_throughput",
]

#: Version of the JSON that `EffectiveCompute.to_dict` makes.
SCHEMA = "netplan/effective/1"

HOURS_PER_YEAR = 365.25 * 24

#: One point.
_POINT = 0.01


@dataclass(frozen=True)
class Factor:
    """A value and where it comes from."""

    value: float
    source: str
    kind: str = "given"
    """``computed``, ``given`` or ``assumed``."""


#: What is taken when the user gives nothing.
PUE = Factor(1.56, "average of the Uptime Institute's survey of 2024", "assumed")
UTILISATION = Factor(0.83, "a research cluster of Meta's (Kokolis et al., HPCA 2025)", "assumed")
PRICE_USD = Factor(2.5, "of the order of H100 rents in 2025", "assumed")


@dataclass(frozen=True)
class PointWorth:
    """What one point more of something is worth."""

    what: str
    now: float
    gpus: float
    """GPUs that would do as much more work."""
    usd_per_year: float


@dataclass(frozen=True)
class EffectiveCompute:
    """The factors, their product, and what a point of each is worth."""

    gpus: int
    pue: Factor
    mfu: Factor
    scaling: Factor
    effective_time: Factor
    utilisation: Factor
    communication_share: Factor
    bandwidth_efficiency: Factor
    price_usd: Factor
    """Per GPU-hour."""
    goodput: Goodput | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def pue_factor(self) -> float:
        """IT power over facility power."""
        return 1 / self.pue.value

    @property
    def product(self) -> float:
        """Effective compute."""
        return (
            self.pue_factor
            * self.mfu.value
            * self.scaling.value
            * self.effective_time.value
            * self.utilisation.value
        )

    def factors(self) -> dict[str, Factor]:
        """Return the factors whose product is `product`, in order."""
        pue = Factor(self.pue_factor, f"PUE {self.pue.value:g}: {self.pue.source}", self.pue.kind)
        return {
            "pue_factor": pue,
            "mfu": self.mfu,
            "scaling": self.scaling,
            "effective_time": self.effective_time,
            "utilisation": self.utilisation,
        }

    def worth(self) -> list[PointWorth]:
        """Return what one point of bandwidth efficiency, and of each factor of time, is worth."""
        yearly = self.price_usd.value * HOURS_PER_YEAR
        share, now = self.communication_share.value, self.bandwidth_efficiency.value
        step = min(now + _POINT, 1.0)
        rows = [("bandwidth_efficiency", now, self.gpus * (more_throughput(share, now, step) - 1))]
        for name in ("scaling", "mfu", "effective_time", "utilisation"):
            value = self.factors()[name].value
            more = min(value + _POINT, 1.0) - value
            rows.append((name, value, self.gpus * more / value))
        return [PointWorth(what, value, gpus, gpus * yearly) for what, value, gpus in rows]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        factors = self.factors()
        extra = {
            "communication_share": self.communication_share,
            "bandwidth_efficiency": self.bandwidth_efficiency,
            "price_usd_per_gpu_hour": self.price_usd,
        }
        return {
            "schema": SCHEMA,
            "gpus": self.gpus,
            "effective": {name: factor.value for name, factor in factors.items()} | {"product": self.product},
            "inputs": {name: asdict(factor) for name, factor in (factors | extra).items()},
            "worth_of_one_point": [asdict(row) for row in self.worth()],
            "goodput": None if self.goodput is None else self.goodput.to_dict()["goodput"],
            "notes": list(self.notes),
        }


def more_throughput(communication_share: float, before: float, after: float) -> float:
    """Return throughput with one bandwidth efficiency over that with another.

    Parameters
    ----------
    communication_share
        Share of the step that is communication nothing hides, at efficiency `before`: 0 to 1.
    before, after
        Bandwidth efficiencies, above 0 and at most 1.

    Raises
    ------
    ModelRangeError
        A value out of range.

    Examples
    --------
    A fifth of the step is communication; bandwidth efficiency rises from 60 % to 95 %:

    >>> round(more_throughput(0.2, 0.60, 0.95), 3)
    1.08
    """
    _check("communication share", communication_share, least=0.0)
    _check("bandwidth efficiency", before)
    _check("bandwidth efficiency", after)
    return 1 / (1 - communication_share + communication_share * before / after)


def effective_compute(
    gpus: int,
    *,
    mfu: Factor,
    scaling: Factor,
    effective_time: Factor | Goodput,
    pue: Factor = PUE,
    utilisation: Factor = UTILISATION,
    communication_share: Factor | None = None,
    bandwidth_efficiency: Factor = Factor(1.0, "no contention: nothing better is possible", "assumed"),
    price_usd: Factor = PRICE_USD,
    notes: Mapping[str, str] | None = None,
) -> EffectiveCompute:
    """Put the factors together.

    Parameters
    ----------
    gpus
        GPUs of the job.
    mfu, scaling
        As the module says.
    effective_time
        A share of time, or what `netplan.planning.goodput.training_goodput` found.
    pue, utilisation, price_usd
        The module's defaults when not given.
    communication_share
        Share of the step that is communication nothing hides; when None, what scaling loses.
    bandwidth_efficiency
        Of the collectives now.
    notes
        Remarks to keep, by topic.

    Raises
    ------
    ModelRangeError
        A value out of range; the message says which, and what is accepted.
    """
    if gpus < 1:
        raise ModelRangeError(f"gpus = {gpus} is too few", hint="at least 1")
    if not 1 <= pue.value <= 10:  # noqa: PLR2004 -- no data centre is that bad
        raise ModelRangeError(
            f"PUE {pue.value:g} is out of range",
            hint="facility power over IT power: 1 to 10, such as 1.2"
            + (f" (did you mean {1 / pue.value:.3g}?)" if 0.1 <= pue.value < 1 else ""),  # noqa: PLR2004
        )
    found = None
    if not isinstance(effective_time, Factor):
        found = effective_time
        days = found.mtbf_s / 86400
        every = "never" if math.isinf(days) else f"every {days * 24:.3g} h"
        effective_time = Factor(
            found.effective_time, f"interrupted {every}: see the goodput table", "computed"
        )
    if communication_share is None:
        communication_share = Factor(
            1 - min(scaling.value, 1.0), "all that scaling loses is taken for communication", "assumed"
        )
    named = {
        "MFU": mfu,
        "scaling efficiency": scaling,
        "effective time": effective_time,
        "utilisation": utilisation,
        "bandwidth efficiency": bandwidth_efficiency,
    }
    for name, factor in named.items():
        _check(name, factor.value)
    _check("communication share", communication_share.value, least=0.0)
    if not 0 <= price_usd.value <= 1e4:  # noqa: PLR2004 -- a slip
        raise ModelRangeError(
            f"price {price_usd.value:g} USD per GPU-hour is out of range", hint="0 to 10,000"
        )
    return EffectiveCompute(
        gpus=gpus,
        pue=pue,
        mfu=mfu,
        scaling=scaling,
        effective_time=effective_time,
        utilisation=utilisation,
        communication_share=communication_share,
        bandwidth_efficiency=bandwidth_efficiency,
        price_usd=price_usd,
        goodput=found,
        notes=tuple(f"{topic}: {text}" for topic, text in (notes or {}).items()),
    )


def _check(name: str, value: float, least: float | None = None) -> None:
    """Refuse what is no share; 0 only where `least` says so."""
    if not (0 < value <= 1 or value == least):
        hint = "0 to 1" if least == 0 else "above 0, at most 1"
        hint += f" (did you mean {value / 100:g}?)" if 1 < value <= 100 else ""  # noqa: PLR2004 -- percent
        raise ModelRangeError(f"{name} {value:g} is out of range", hint=hint)
