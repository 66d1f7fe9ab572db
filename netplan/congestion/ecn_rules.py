"""Where Kmin, Kmax and Pmax come from: the published settings as rules of rate C and base RTT.

========================  =====================================  ======  =====================================
rule                      Kmin / Kmax                            Pmax    source
========================  =====================================  ======  =====================================
``hpcc-ns3``              100 kB / 400 kB per 25G                0.2     HPCC ns-3 ``run.py``
``conweave-ns3``          100 kB / 400 kB per 100G               0.2     ConWeave ns-3 ``run.py`` (at 100G)
``dcqcn-paper``           5 kB / 200 kB per 40G                  0.01    DCQCN authors' Matlab files (at 40G)
``sonic-default``         1 MiB / 2 MiB                          0.05    SONiC ``AZURE_LOSSLESS``
``cumulus``               150 kB / 1500 kB                       1       NVIDIA Cumulus Linux, RoCE defaults
``dctcp``                 K = max(C RTT / 7, 30 kB per 10G)      1       Alizadeh et al. 2010; HPCC ``run.py``
``dci``                   0.75 / 1.5 C RTT, buffer 2.5 C RTT     1       HPE and Juniper, 50 to 500 km, 4:1
========================  =====================================  ======  =====================================

The first three keep a queue's *delay* the same at any rate: Kmin is 32 us, 8 us and 1 us of the line. The
last two follow the round trip: a flow that halves its rate leaves a gap of about one C RTT, and what waits
below the threshold has to fill it. ``choose_ecn`` takes, for a port:

1. ``dci`` where 0.75 C RTT is above the Kmax of ``hpcc-ns3``, 128 us of the line (a round trip above
   171 us): there every rule by rate alone would leave the line idle after each cut;
2. ``dctcp`` for a protocol that counts the marks of a round trip;
3. else the largest thresholds of ``hpcc-ns3``, ``conweave-ns3`` and ``dcqcn-paper`` whose Kmin is below
   PFC's xoff with all ports of the switch congested; the smallest of them where none is.

What was not published: Pmax of ``cumulus`` and ``dci``, 1 here. Measured for ``dci``: 100 % use of a 100G
line by four senders without loss, queue at most about one C RTT.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from netplan.congestion.switch import EcnCurve
from netplan.errors import ModelRangeError, did_you_mean
from netplan.units import format_rate, format_size, format_time

__all__ = ["DCI_BUFFER_RTTS", "ECN_RULES", "EcnChoice", "EcnRule", "choose_ecn", "find_ecn_rule"]

_GBPS = 1e9 / 8

#: Buffer of a port of the ``dci`` profile, in C RTT.
DCI_BUFFER_RTTS = 2.5


@dataclass(frozen=True)
class EcnRule:
    """A published setting, as a rule."""

    name: str
    formula: str
    """In words."""
    source: str
    curve: Callable[[float, float], EcnCurve]
    """Rate [bytes/s] and base RTT [s] to a curve."""


def _by_rate(kmin: float, kmax: float, pmax: float, gbps: float) -> Callable[[float, float], EcnCurve]:
    """Return a curve that grows with the rate."""
    return lambda rate, _: EcnCurve(kmin, kmax, pmax).scaled(rate / (gbps * _GBPS))


def _fixed(kmin: float, kmax: float, pmax: float) -> Callable[[float, float], EcnCurve]:
    """Return the same curve at any rate."""
    curve = EcnCurve(kmin, kmax, pmax)
    return lambda *_: curve


def _dctcp(rate: float, rtt: float) -> EcnCurve:
    """Return DCTCP's step."""
    threshold = max(rate * rtt / 7, 30e3 * rate / (10 * _GBPS))
    return EcnCurve(threshold, threshold, 1.0)


def _dci(rate: float, rtt: float) -> EcnCurve:
    """Return the long-haul profile."""
    return EcnCurve(0.75 * rate * rtt, 1.5 * rate * rtt, 1.0)


#: All rules by name.
ECN_RULES = {
    rule.name: rule
    for rule in (
        EcnRule(
            "hpcc-ns3",
            "100 kB / 400 kB per 25G",
            "alibaba-edu/High-Precision-Congestion-Control simulation/run.py",
            _by_rate(100e3, 400e3, 0.2, 25),
        ),
        EcnRule(
            "conweave-ns3",
            "100 kB / 400 kB per 100G",
            "conweave-project/conweave-ns3 run.py, given for 100G",
            _by_rate(100e3, 400e3, 0.2, 100),
        ),
        EcnRule(
            "dcqcn-paper",
            "5 kB / 200 kB per 40G",
            "jitupadhye-zz/rdma stability.m, given for 40G",
            _by_rate(5e3, 200e3, 0.01, 40),
        ),
        EcnRule(
            "sonic-default",
            "1 MiB / 2 MiB at any rate",
            "sonic-net/sonic-buildimage qos_config.j2, AZURE_LOSSLESS",
            _fixed(1_048_576, 2_097_152, 0.05),
        ),
        EcnRule(
            "cumulus",
            "150 kB / 1500 kB at any rate",
            "NVIDIA Cumulus Linux, RoCE defaults",
            _fixed(150e3, 1500e3, 1.0),
        ),
        EcnRule(
            "dctcp",
            "K = max(C RTT / 7, 30 kB per 10G)",
            "Alizadeh et al., SIGCOMM 2010; alibaba-edu/High-Precision-Congestion-Control simulation/run.py",
            _dctcp,
        ),
        EcnRule(
            "dci",
            "0.75 / 1.5 C RTT",
            "HPE and Juniper, long-haul tests of 50 to 500 km",
            _dci,
        ),
    )
}

#: Rules by rate alone, largest thresholds first.
_BY_RATE = ("hpcc-ns3", "conweave-ns3", "dcqcn-paper")


@dataclass(frozen=True)
class EcnChoice:
    """A rule for a port and why it was chosen."""

    rule: EcnRule
    curve: EcnCurve
    reason: str


def find_ecn_rule(name: str) -> EcnRule:
    """Return a rule by name.

    Raises
    ------
    ModelRangeError
        There is none; the message lists those there are.
    """
    if name not in ECN_RULES:
        raise ModelRangeError(
            f"ECN rule {name!r} is not one of {', '.join(ECN_RULES)}", hint=did_you_mean(name, ECN_RULES)
        )
    return ECN_RULES[name]


def is_long(rate: float, rtt: float) -> bool:
    """Whether a rule by rate alone would leave a line idle after each rate cut."""
    kmax = ECN_RULES["hpcc-ns3"].curve(rate, rtt).kmax_bytes
    return ECN_RULES["dci"].curve(rate, rtt).kmin_bytes > kmax


def choose_ecn(
    rate: float, rtt: float, *, xoff: float | None, reads_every_mark: bool = False, rule: str | None = None
) -> EcnChoice:
    """Choose the ECN curve of a port.

    Parameters
    ----------
    rate
        Line rate [bytes/s], > 0.
    rtt
        Base round-trip time of the paths over it [s], >= 0.
    xoff
        PFC's threshold with all ports of the switch congested [bytes]; infinite without PFC, None when the
        buffer is unknown.
    reads_every_mark
        Whether the protocol counts the marks of a round trip, as DCTCP does.
    rule
        Name of a rule to take instead.

    Raises
    ------
    ModelRangeError
        No such rule, or a rate or RTT that no path has.
    """
    if not rate > 0:
        raise ModelRangeError(f"ECN: rate = {rate:g} bytes/s is not > 0")
    if not rtt >= 0:
        raise ModelRangeError(f"ECN: round-trip time = {rtt:g} s is negative")
    if rule is not None:
        found, why = find_ecn_rule(rule), "as asked for"
    elif is_long(rate, rtt):
        found, why = ECN_RULES["dci"], "a rule by rate alone would leave the line idle after each rate cut"
    elif reads_every_mark:
        found, why = ECN_RULES["dctcp"], "a step, for a protocol that counts the marks of a round trip"
    else:
        found, why = _by_xoff(rate, rtt, xoff)
    formula = found.formula
    if "RTT" in formula:
        formula += f" at {format_rate(rate)} and a round trip of {format_time(rtt)}"
    return EcnChoice(found, found.curve(rate, rtt), f"{found.name}, {formula}: {why}")


def _by_xoff(rate: float, rtt: float, xoff: float | None) -> tuple[EcnRule, str]:
    """Return the rule with the largest thresholds that mark before all ports are paused."""
    rules = [ECN_RULES[name] for name in _BY_RATE]
    if xoff is None:
        return rules[1], "the buffer is unknown, so whether it marks before PFC pauses cannot be said"
    if xoff == math.inf:
        return rules[0], "the largest; there is no PFC to come before"
    said = f"PFC's xoff with all ports congested ({format_size(round(xoff))})"
    for each in rules:
        if each.curve(rate, rtt).kmin_bytes < xoff:
            return each, f"the largest with Kmin below {said}"
    return rules[-1], f"the smallest, though Kmin is not below {said}"
