r"""What fluid models say: fixed points, stability and oscillations of DCQCN and patched TIMELY.

The model of DCQCN is that of Zhu, Ghobadi, Misra, Padhye, *ECN or Delay: Lessons Learnt from Analysis
of DCQCN and TIMELY* (CoNEXT 2016). N equal flows share a link of C packets/s; per flow the rate R, the
target R_T, alpha, and one queue q; quantities with a star are tau* (the feedback delay) old::

    p(q)   = 0 below Kmin, pmax (q - Kmin) / (Kmax - Kmin), 1 above Kmax
    dq     = N R - C
    dalpha = g / tau' (1 - (1 - p*)^(tau' R*) - alpha)
    dR_T   = - (R_T - R) / tau a + R_AI R* (c + e)
    dR     = - R alpha / (2 tau) a + (R_T - R) R* (b + d) / 2
    a = 1 - (1 - p*)^(tau R*)     b = p* / ((1 - p*)^-B - 1)        c = (1 - p*)^(F B) b
                                  d = p* / ((1 - p*)^(-T R*) - 1)   e = (1 - p*)^(F T R*) d

b and d are events of the byte counter and of the timer per packet, c and e those beyond the F steps
of fast recovery. The fixed point has R = C / N, alpha = 1 - (1 - p)^(tau' R) and p from

    a^2 alpha / ((b + d)(c + e)) = tau^2 R_AI R

whose left side rises with p: bisection. Above pmax the queue is pinned at Kmax.

Stability: the equations are linearised at the fixed point (by complex steps, so without rounding)
and the loop is cut where it is delayed: L(s) e^(-s tau*) is what comes back of a change of R. The
phase margin is 180 degrees plus the phase of L where its magnitude is one; below zero the queue
oscillates. For N beyond the point where p > pmax this continues the straight part of p(q): a test of
the formula rather than physics. `published_phase_margin` is the authors' own, of a simplified model.

Patched TIMELY (the same paper): q* = q' (1 + N delta / (beta C)) with q' = C T_ref.

Units of this module: packets and seconds, as in the paper; its functions take SI and convert.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "DcqcnFluid",
    "DcqcnPoint",
    "Oscillation",
    "patched_timely_queue",
    "phase_margin",
    "published_phase_margin",
    "settle",
    "simulate_fluid",
]

_GBPS = 1e9 / 8


@dataclass(frozen=True)
class DcqcnFluid:
    """A DCQCN link; defaults: those of the authors' published program, 40 Gb/s."""

    n_flows: int
    capacity: float = 40 * _GBPS
    """[bytes/s]"""
    packet: float = 1000.0
    """[bytes]"""
    kmin_bytes: float = 5e3
    kmax_bytes: float = 200e3
    pmax: float = 0.01
    gain: float = 1 / 256
    cnp_s: float = 50e-6
    """tau: time between CNPs [s]."""
    alpha_s: float = 55e-6
    """tau': time between updates of alpha [s]."""
    timer_s: float = 55e-6
    """T: time between increases [s]."""
    byte_counter: float = 10e6
    """B: bytes between increases."""
    steps: float = 5.0
    """F: steps of fast recovery."""
    rate_ai: float = 40e6 / 8
    """R_AI [bytes/s]."""

    def __post_init__(self) -> None:
        """Refuse what the model does not cover."""
        if self.n_flows < 1:
            message = f"n_flows = {self.n_flows} is not at least 1"
            raise ModelRangeError(message)
        if not 0 <= self.kmin_bytes < self.kmax_bytes:
            message = (
                f"kmin = {self.kmin_bytes:g} B, kmax = {self.kmax_bytes:g} B:"
                " the fluid model needs kmin < kmax"
            )
            raise ModelRangeError(message, hint="a step has no slope to linearise")

    @property
    def share(self) -> float:
        """Fair rate of a flow [packets/s]."""
        return self.capacity / self.packet / self.n_flows


class DcqcnPoint(NamedTuple):
    """A fixed point."""

    probability: float
    """p*: of a mark."""
    queue_bytes: float
    """q*: pinned at Kmax where p* is above pmax."""
    alpha: float
    rate: float
    """R* of each flow [bytes/s]."""
    target: float
    """R_T* [bytes/s]."""
    pinned: bool
    """Whether p* is above pmax."""


def _rates(link: DcqcnFluid, p: complex, rate: complex) -> tuple[complex, complex, complex, complex, complex]:
    """Return a, b, c, d, e at marking probability ``p`` and rate [packets/s], complex to be derived."""
    b_packets = link.byte_counter / link.packet
    keep = np.log1p(-p)
    a = -np.expm1(link.cnp_s * rate * keep)
    b = p / np.expm1(-b_packets * keep)
    d = p / np.expm1(-link.timer_s * rate * keep)
    c = np.exp(link.steps * b_packets * keep) * b
    e = np.exp(link.steps * link.timer_s * rate * keep) * d
    return a, b, c, d, e


def settle(link: DcqcnFluid) -> DcqcnPoint:
    """Return the fixed point of a link.

    Parameters
    ----------
    link
        The link and the protocol's parameters.

    Returns
    -------
    DcqcnPoint
        Marking probability, queue [bytes], alpha and rates [bytes/s].

    Raises
    ------
    ModelRangeError
        No probability below one balances increases and cuts.
    """
    rate = link.share
    right = link.cnp_s**2 * link.rate_ai / link.packet * rate

    def excess(p: float) -> float:
        a, b, c, d, e = _rates_fast(link, p, rate)
        alpha = -math.expm1(link.alpha_s * rate * math.log1p(-p))
        product = (b + d) * (c + e)
        return math.inf if product == 0.0 else a * a * alpha / product - right

    low, high = 1e-12, 0.5
    if excess(high) < 0:
        message = f"no marking probability below {high} holds {link.n_flows} flows at {rate:g} packets/s"
        raise ModelRangeError(message, hint="the increase (rate_ai) is too strong for the rate")
    while high - low > 1e-15 + 1e-13 * high:
        middle = 0.5 * (low + high)
        if excess(middle) < 0:
            low = middle
        else:
            high = middle
    p = 0.5 * (low + high)
    a, b, _, d, _ = _rates_fast(link, p, rate)
    alpha = -math.expm1(link.alpha_s * rate * math.log1p(-p))
    target = rate + alpha * a / (link.cnp_s * (b + d))
    slope = (link.kmax_bytes - link.kmin_bytes) / link.pmax
    pinned = p > link.pmax
    queue = link.kmax_bytes if pinned else link.kmin_bytes + p * slope
    return DcqcnPoint(p, queue, alpha, rate * link.packet, target * link.packet, pinned)


def phase_margin(link: DcqcnFluid, delay: float) -> float:
    """Return the phase margin of a link with DCQCN [degrees]; below zero it oscillates.

    The model above, linearised exactly, the loop cut where it is delayed.

    Parameters
    ----------
    link
        The link and the protocol's parameters.
    delay
        Feedback delay tau* [s], >= 0.

    Returns
    -------
    float
        Degrees; inf if the loop's gain is below one everywhere.
    """
    now, old = _linearise(link, settle(link))
    gain = _slope(link) * link.n_flows

    def loop(s: complex) -> complex:
        heard = old[:, 0] + old[:, 1] * gain / s  # of R, and through the queue of p
        return complex(-np.linalg.solve(s * np.eye(3) - now, heard)[2])

    return _margin(loop, delay)


def published_phase_margin(link: DcqcnFluid, delay: float) -> float:
    """Return the phase margin that the paper's authors publish [degrees].

    They expand the model to first order in p (A = 1 / B + 1 / (T R)): a = tau R p,
    b + d = A - (1 + A / 2) p, c + e = A - (1 + 2 F + A / 2) p; take p* from the cube root
    [R_AI / (tau' R^2) (1 / B + 1 / (T R))^2]^(1/3); let alpha follow p at the rate g R; and use the
    old rate as what is recovered from, the present one as what counts events (in `phase_margin` it
    is the other way round). Their data files (github.com/jitupadhye-zz/rdma, pm_*.txt) come out of
    this to 0.1 degrees. The exact model's margins differ by up to 19 degrees either way up to 100 us;
    where the signs differ, the integrated equations follow the exact one (both tested).

    Parameters
    ----------
    link, delay
        As in `phase_margin`.
    """
    rate, ai = link.share, link.rate_ai / link.packet
    events = link.packet / link.byte_counter + 1 / (link.timer_s * rate)
    p = (ai / (link.alpha_s * rate**2) * events**2) ** (1 / 3)
    a, _, c, _, e = _rates_fast(link, p, rate)
    target = rate * (1 + (c + e) * link.cnp_s * ai / a)
    alpha = -math.expm1(link.alpha_s * rate * math.log1p(-p))
    half = 0.5 * (events - (1 + events / 2) * p)  # of b + d
    beyond = 1 + 2 * link.steps + events / 2
    gain = _slope(link) * link.n_flows
    gap = target - rate

    def loop(s: complex) -> complex:
        by_queue = -0.5 * rate**2 * alpha - 0.5 * (1 + events / 2) * rate * gap
        by_alpha = -0.5 * p * rate**2 * link.gain * rate / (s + link.gain * rate)
        by_rate = -0.5 * p * rate * alpha - half * rate
        target_by_rate = -p * gap + events * ai - beyond * ai * p
        target_by_queue = -rate * gap - beyond * ai * rate
        through_target = half * rate * (target_by_rate + target_by_queue * gain / s) / (s + p * rate)
        heard = (by_queue + by_alpha) * gain / s + by_rate + through_target
        present = -0.5 * p * rate * alpha + half * gap
        present += half * rate * (p * rate + events * ai) / (s + p * rate)
        return complex(-heard / (s - present))

    return _margin(loop, delay)


def _slope(link: DcqcnFluid) -> float:
    """Return dp/dq, q in packets."""
    return link.pmax / (link.kmax_bytes - link.kmin_bytes) * link.packet


def _margin(loop: Callable[[complex], complex], delay: float) -> float:
    """Return the smallest phase margin of a loop with a delay [degrees]."""
    if delay < 0:
        message = f"feedback delay {delay:g} s is negative"
        raise ModelRangeError(message)
    grid = np.logspace(0, 8, 4001)
    value = np.array([loop(1j * w) for w in grid])
    phase = np.unwrap(np.angle(value))
    phase -= 2 * np.pi * np.ceil((phase[0] - np.pi / 2) / (2 * np.pi))  # an integrator starts at -90 degrees
    margins = []
    for i in np.flatnonzero((np.abs(value[:-1]) >= 1) & (np.abs(value[1:]) < 1)):
        low, high = grid[i], grid[i + 1]
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if abs(loop(1j * middle)) >= 1 else (low, middle)
        turned = float(np.angle(loop(1j * low) / value[i]))
        margins.append(180.0 + math.degrees(phase[i] + turned - low * delay))
    return min(margins, default=math.inf)


def _linearise(link: DcqcnFluid, point: DcqcnPoint) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the derivatives at the fixed point: by the state now, and by R and p a delay ago."""
    rate, target = point.rate / link.packet, point.target / link.packet
    step = 1e-200

    def change(x: list[complex], old: list[complex]) -> list[complex]:
        alpha, r_t, r = x
        r_old, p = old
        a, b, c, d, e = _rates(link, p, r_old)
        hit = -np.expm1(link.alpha_s * r_old * np.log1p(-p))
        ai = link.rate_ai / link.packet
        return [
            link.gain / link.alpha_s * (hit - alpha),
            -(r_t - r) / link.cnp_s * a + ai * r_old * (c + e),
            -r * alpha / (2 * link.cnp_s) * a + 0.5 * (r_t - r) * r_old * (b + d),
        ]

    state: list[complex] = [point.alpha, target, rate]
    before: list[complex] = [rate, point.probability]
    now, old = np.zeros((3, 3)), np.zeros((3, 2))
    for i in range(3):
        moved = [value + 1j * step * (i == k) for k, value in enumerate(state)]
        now[:, i] = [value.imag / step for value in change(moved, before)]
    for i in range(2):
        moved = [value + 1j * step * (i == k) for k, value in enumerate(before)]
        old[:, i] = [value.imag / step for value in change(state, moved)]
    return now, old


class Oscillation(NamedTuple):
    """What a link does over time, once the start is over."""

    mean_queue_bytes: float
    std_queue_bytes: float
    peak_queue_bytes: float
    """Of the whole run."""
    utilisation: float
    """0 to 1."""


def simulate_fluid(
    link: DcqcnFluid, delay: float, *, duration: float = 0.1, step: float = 1e-6
) -> Oscillation:
    """Integrate the delay-differential equations (Euler), all flows starting at line rate.

    Parameters
    ----------
    link
        The link and the protocol's parameters.
    delay
        Feedback delay tau* [s].
    duration, step
        Length and step of the run [s]; the statistics are of its second half.
    """
    if not 0 < step <= min(link.cnp_s, link.alpha_s, link.timer_s) / 10:
        message = f"step = {step:g} s is not small against the protocol's timers ({link.cnp_s:g} s and more)"
        raise ModelRangeError(message, hint="1e-6 is the default")
    n = round(duration / step)
    lag = round(delay / step)
    capacity = link.capacity / link.packet
    kmin, kmax = link.kmin_bytes / link.packet, link.kmax_bytes / link.packet
    ai = link.rate_ai / link.packet
    queue, rate = np.zeros(n + 1), np.full(n + 1, capacity)
    alpha, target = 1.0, capacity
    sent = np.zeros(n)
    for i in range(n):
        j = max(i - lag, 0)
        q_old, r_old = queue[j], rate[j]
        p = 0.0 if q_old <= kmin else link.pmax * (q_old - kmin) / (kmax - kmin) if q_old <= kmax else 1.0
        p = min(max(p, 1e-12), 1.0 - 1e-12)
        a, b, c, d, e = _rates_fast(link, p, r_old)
        r = rate[i]
        hit = -math.expm1(link.alpha_s * r_old * math.log1p(-p))
        arriving = link.n_flows * r
        sent[i] = capacity if queue[i] > 0 else min(arriving, capacity)
        queue[i + 1] = max(queue[i] + (arriving - capacity) * step, 0.0)
        alpha_next = alpha + step * link.gain / link.alpha_s * (hit - alpha)
        target_next = target + step * (-(target - r) / link.cnp_s * a + ai * r_old * (c + e))
        cut = r * alpha / (2 * link.cnp_s) * a
        rate[i + 1] = min(max(r + step * (0.5 * (target - r) * r_old * (b + d) - cut), 1.0), capacity)
        alpha, target = alpha_next, min(target_next, capacity)
    half = queue[n // 2 :] * link.packet
    return Oscillation(
        float(half.mean()),
        float(half.std()),
        float(queue.max() * link.packet),
        float(sent[n // 2 :].mean() / capacity),
    )


def _rates_fast(link: DcqcnFluid, p: float, rate: float) -> tuple[float, float, float, float, float]:
    """Return a to e as `_rates` does, for real numbers and with limits where powers overflow."""
    keep = math.log1p(-p)
    b_packets = link.byte_counter / link.packet

    def events(packets: float) -> tuple[float, float]:
        exponent = -packets * keep
        if exponent > 500.0:  # noqa: PLR2004 - e^500: no event between two marks
            return 0.0, 0.0
        often = p / math.expm1(exponent)
        return often, math.exp(-link.steps * exponent) * often

    b, c = events(b_packets)
    d, e = events(link.timer_s * rate)
    return -math.expm1(link.cnp_s * rate * keep), b, c, d, e


def patched_timely_queue(
    n_flows: int, capacity: float, delta: float, beta: float = 0.008, reference_s: float = 50e-6
) -> float:
    """Return the queue at which patched TIMELY stands still [bytes].

    Parameters
    ----------
    n_flows
        Flows that share the link.
    capacity
        Of the link [bytes/s].
    delta
        Additive increase of a flow [bytes/s].
    beta
        Strength beta' of a decrease.
    reference_s
        Queueing delay aimed for, T_ref [s].
    """
    return capacity * reference_s * (1 + n_flows * delta / (beta * capacity))
