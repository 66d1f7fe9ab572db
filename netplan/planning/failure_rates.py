"""How often each kind of element fails, and how long it stays so: published figures, else what is assumed.

* *NIC-ToR links* and *ToR switches*: Alibaba HPN, an AI fabric. Its ToR figure counts critical errors;
  of all causes 5 % of ToRs fail in a year (Gill et al., SIGCOMM 2011), 0.43 % a month, eight times
  as many.
* *Spines, cores, metro switches*: 2 % of switches fail within three months, of all causes
  (hardware is a third of them): -ln(1 - 0.02)/3 = 0.67 % a month. For aggregation switches Gill et
  al. have 10 % a year, 0.88 % a month. Their time to repair is often a reboot's.
* *Cables between switches*: 35 interruptions of a job in 54 days. The fabric of its 16,384 GPUs has
  16,384 cables to hosts, as many to the pod's spines (1:1) and 2,341 above (1:7):
  35 / 35,109 / (54/30.44) = 0.056 % a month, as HPN has for its links. Switches are in the 35, and
  failures that interrupted nothing are not.
* *Fibre cuts*: 4.4 a year and 1,000 miles are 0.0227 % a month and km. A cut takes all fibres of a
  path, and the rate is one of long-distance routes: streets of a city are dug up more often.
* *Sites*, and all paths of a span at once: nothing is published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from netplan.errors import FabricError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class FailureRate:
    """How often one element of a kind fails, and how long it stays so."""

    percent_per_month: float | None
    """Failures per element and month [%]; None: not known."""
    source: str
    confidence: str
    """``published``, ``derived``, ``assumed``, ``user`` or ``unknown``."""
    per_km: bool = False
    """Whether the rate is one per km of the element."""
    repair_h: float = 4.0
    """Mean time to repair [h]: an assumption unless the user gives it."""


_HPN_LINK = "Alibaba HPN (SIGCOMM 2024): 0.057 % of NIC-ToR links a month"
_HPN_TOR = "Alibaba HPN (SIGCOMM 2024): 0.051 % of ToR switches a month with critical errors"
_SWITCHES = "Microsoft (Singh et al., CCR 2021): of 180,000 switches of all tiers 2 % fail within 3 months"
_LLAMA_CABLES = "Llama 3 (Meta, 2024): 35 interruptions by switches and cables in 54 days, over 35,109 cables"

#: Rate of each kind of element. What nobody publishes is taken from the nearest kind, and says so.
RATES: dict[str, FailureRate] = {
    "nic": FailureRate(
        0.024,
        "Llama 3 (Meta, 2024): 7 interruptions by NICs in 54 days on 16,384 GPUs, one NIC each",
        "derived",
    ),
    "host_leaf": FailureRate(0.057, _HPN_LINK, "published"),
    "leaf": FailureRate(0.051, _HPN_TOR, "published"),
    "spine": FailureRate(0.67, _SWITCHES, "derived"),
    "core": FailureRate(0.67, _SWITCHES, "derived"),
    "metro": FailureRate(0.67, _SWITCHES, "derived"),
    "leaf_spine": FailureRate(0.056, _LLAMA_CABLES, "derived"),
    "spine_core": FailureRate(0.056, _LLAMA_CABLES, "derived"),
    "site_metro": FailureRate(0.056, f"as a cable inside a site: {_LLAMA_CABLES}", "assumed"),
    "inter_site": FailureRate(0.056, f"its optics, as a cable inside a site: {_LLAMA_CABLES}", "assumed"),
    "local": FailureRate(0.056, f"as a cable between tiers: {_LLAMA_CABLES}", "assumed"),
    "global": FailureRate(0.056, f"as a cable between tiers: {_LLAMA_CABLES}", "assumed"),
    "other": FailureRate(0.056, f"as a cable between tiers: {_LLAMA_CABLES}", "assumed"),
    "span": FailureRate(
        0.0227,
        "about 4.4 cuts a year per 1,000 miles of cable (US carriers, 1990s; often quoted, not checked)",
        "assumed",
        per_km=True,
        repair_h=12.0,
    ),
    "whole_span": FailureRate(
        None,
        "no figure published: diverse paths are laid to avoid it",
        "unknown",
        repair_h=12.0,
    ),
    "site": FailureRate(None, "no figure published", "unknown", repair_h=24.0),
}


def rates_with(
    percent: Mapping[str, float] | None = None, repair_h: Mapping[str | None, float] | None = None
) -> dict[str, FailureRate]:
    """Return the rates with those that the user gives.

    Parameters
    ----------
    percent
        Kind to failures per element and month [%].
    repair_h
        Kind to mean time to repair [h]; None stands for every kind.

    Raises
    ------
    FabricError
        There is no such kind, or a rate or time is out of range.
    """
    rates = dict(RATES)
    for kind in [*(percent or {}), *(kind for kind in (repair_h or {}) if kind is not None)]:
        check_kind(kind)
    everywhere = (repair_h or {}).get(None)
    for kind, rate in rates.items():
        hours = (repair_h or {}).get(kind, everywhere)
        if hours is not None:
            if not 0 < hours <= 24 * 365:
                raise FabricError(
                    f"repair time {hours:g} h is out of range", hint="above 0 and at most a year, such as 4h"
                )
            rates[kind] = rate = replace(rate, repair_h=hours)  # noqa: PLW2901
        if percent and kind in percent:
            if not 0 <= percent[kind] <= 100:  # noqa: PLR2004 -- percent
                raise FabricError(
                    f"failure rate {kind}={percent[kind]:g}% is out of range", hint="0% to 100% a month"
                )
            rates[kind] = FailureRate(percent[kind], "given by the user", "user", repair_h=rate.repair_h)
    return rates


def check_kind(kind: str) -> None:
    """Refuse a kind of element that there is not.

    Raises
    ------
    FabricError
        It is not a key of `RATES`.
    """
    if kind not in RATES:
        near = did_you_mean(kind, RATES)
        raise FabricError(
            f"{kind!r} is not one of {', '.join(RATES)}", hint=f"did you mean {near}?" if near else None
        )
