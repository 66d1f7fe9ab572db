r"""Training goodput: the share of time in which a job makes progress that lasts.

*Process.* Failures that interrupt the job come at a constant rate 1/M (M: mean time between them), also
while it recovers. After each, recovery takes R = detection + restart, and the work since the last checkpoint
is done again. A checkpoint after each tau of work stops the job for d (what a checkpoint writes behind the
job's back is not in d). Then (Daly, FGCS 2006, eq. 20) the job makes progress during

    E = tau / (M e^(R/M) (e^((tau + d)/M) - 1))

of its time. Of the rest, 1 - e^(-R/M) is detection and restart, E d / tau checkpoints, and what remains work
that is lost and done again. To first order waste is failures x recovery + checkpoints: (R + tau/2)/M + d/tau.

*Interval.* Young (CACM 1974): tau = sqrt(2 d M). Daly, of higher order (his eq. 37), for d < 2 M:
tau = sqrt(2 d M) (1 + sqrt(d/2M)/3 + (d/2M)/9) - d, else M. The exact optimum of E does not depend on R:
tau = M (1 + W(-e^(-1 - d/M))), W the principal branch of Lambert's function.

*Spares.* k hosts stand by. A failure that takes a host sends it to repair for a time T on average; with all
spares in repair the job waits until a host comes back. Hosts in repair are a queue that loses arrivals, so
the share of waiting is Erlang's B(k + 1, a), a = rate x T, whatever the distribution of repair times. What
remains of the time runs as above: the shares multiply.

*Network.* `network_effect` turns a study of a fabric's failures (`netplan.planning.failures`) into stops
(failures that leave a NIC without a port) and degraded time: during a repair a step lasts
1 + s (1/left - 1) times as long, s being communication's share of the step that nothing hides and `left` the
bandwidth left. Failures that only degrade do not interrupt.

`netplan.planning.goodput_events` plays the same process event by event.

*Defaults.* MegaScale (ByteDance, NSDI 2024): faults found and diagnosed in under 10 minutes on average, hosts
copy a checkpoint out of GPUs in several seconds, effective time above 90 % (as quoted; not checked in the
paper's text). Taken: 5 min + 5 min, 5 s. The time to repair, 24 h, is an assumption.

*Range.* M longer than a restart. Failures in bursts, hosts that fail again after repair and slow hosts that
do not fail are left out; the first two make spares scarcer than Erlang says.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from netplan.errors import ModelRangeError
from netplan.planning.part_failures import NETWORK_PARTS, PART_FAILURES, JobParts, PartFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from netplan.planning.failures import FailureStudy

__all__ = [
    "CauseRow",
    "Goodput",
    "NetworkEffect",
    "Recovery",
    "TargetRow",
    "daly_interval",
    "effective_share",
    "erlang_b",
    "exact_interval",
    "first_order_waste",
    "network_effect",
    "recovery_for",
    "spares_for",
    "target_rows",
    "training_goodput",
    "young_interval",
]

#: Version of the JSON that `Goodput.to_dict` makes.
SCHEMA = "netplan/goodput/1"

Rule = Literal["exact", "young", "daly"]

#: Hours of the month that rates of failure studies are given for.
_HOURS_PER_MONTH = 365.25 / 12 * 24

#: Waiting that spares are chosen for when the user does not say how many there are.
WAITING_ALLOWED = 1e-3

#: Longest time that is accepted for anything [s]: ten years.
_LONGEST_S = 10 * 365.25 * 86400


@dataclass(frozen=True)
class Recovery:
    """What a failure and a checkpoint cost."""

    detect_s: float = 300.0
    """From a failure to its being found [s]."""
    restart_s: float = 300.0
    """From then until the job computes again: hosts, processes, communicators, loading [s]."""
    write_s: float = 5.0
    """How long a checkpoint stops the job [s]."""
    interval_s: float | None = None
    """Work between checkpoints [s]; None: as `rule` says."""
    rule: Rule = "exact"
    """How an interval is chosen."""
    repair_s: float = 86400.0
    """Mean time until a host that failed is back [s]."""
    spares: int | None = None
    """Hosts that stand by; None: as many as keep waiting under `WAITING_ALLOWED`."""

    def __post_init__(self) -> None:
        """Refuse times that cannot be.

        Raises
        ------
        ModelRangeError
            A time is negative, not finite, or longer than ten years; an interval of 0; spares below 0.
        """
        words = {
            "detect_s": "detection time",
            "restart_s": "restart time",
            "write_s": "checkpoint write time",
            "repair_s": "repair time",
            "interval_s": "checkpoint interval",
        }
        for name, word in words.items():
            value = getattr(self, name)
            if value is None:
                continue
            if not 0 <= value <= _LONGEST_S:
                raise ModelRangeError(f"{word} {value:g} s is out of range", hint="0 s to ten years")
        if self.interval_s == 0:
            raise ModelRangeError(
                "checkpoint interval 0 s leaves no time to work", hint="such as 10min; see --interval"
            )
        if self.spares is not None and self.spares < 0:
            raise ModelRangeError(f"spares = {self.spares} is below 0", hint="0 or more hosts")
        if self.rule not in ("exact", "young", "daly"):
            raise ModelRangeError(f"interval rule {self.rule!r} is not one of exact, young, daly")

    @property
    def recovery_s(self) -> float:
        """Detection and restart [s]."""
        return self.detect_s + self.restart_s


# ---- Closed forms --------------------------------------------------------------------------------------


def _check_mtbf(mtbf_s: float, write_s: float) -> None:
    if not mtbf_s > 0 or not write_s >= 0:
        raise ModelRangeError(
            f"time between failures {mtbf_s:g} s with checkpoints of {write_s:g} s is out of range",
            hint="above 0 s, and 0 s or more",
        )


def young_interval(mtbf_s: float, write_s: float) -> float:
    """Return Young's interval between checkpoints [s].

    Examples
    --------
    >>> round(young_interval(mtbf_s=10_000, write_s=5), 1)
    316.2
    """
    _check_mtbf(mtbf_s, write_s)
    return math.sqrt(2 * write_s * mtbf_s)


def daly_interval(mtbf_s: float, write_s: float) -> float:
    """Return Daly's interval of higher order [s]."""
    _check_mtbf(mtbf_s, write_s)
    if write_s >= 2 * mtbf_s:
        return mtbf_s
    half = write_s / (2 * mtbf_s)
    return math.sqrt(2 * write_s * mtbf_s) * (1 + math.sqrt(half) / 3 + half / 9) - write_s


def exact_interval(mtbf_s: float, write_s: float) -> float:
    """Return the interval at which progress is largest [s]: see the module."""
    from scipy.special import lambertw

    _check_mtbf(mtbf_s, write_s)
    ratio = write_s / mtbf_s
    if ratio < 1e-9:  # noqa: PLR2004 -- near its branch point W loses digits, and the series has them
        return math.sqrt(2 * write_s * mtbf_s)
    return mtbf_s * (1 + float(lambertw(-math.exp(-1 - ratio)).real))


_RULES = {"exact": exact_interval, "young": young_interval, "daly": daly_interval}


def effective_share(mtbf_s: float, recovery_s: float, write_s: float, interval_s: float) -> float:
    """Return the share of time in which a job makes progress that lasts: see the module.

    Parameters
    ----------
    mtbf_s
        Mean time between interruptions [s]; may be infinite.
    recovery_s, write_s
        Recovery, and how long a checkpoint stops the job [s].
    interval_s
        Work between checkpoints [s]; 0 only with `write_s` 0: checkpoints all the time.
    """
    _check_mtbf(mtbf_s, write_s)
    if interval_s == 0 and write_s == 0:
        return math.exp(-recovery_s / mtbf_s)
    if math.isinf(mtbf_s):
        return interval_s / (interval_s + write_s)
    period = (interval_s + write_s) / mtbf_s
    if period > 700:  # noqa: PLR2004 -- e^x has no float above: no checkpoint is ever reached
        return 0.0
    return interval_s / mtbf_s * math.exp(-recovery_s / mtbf_s) / math.expm1(period)


def first_order_waste(mtbf_s: float, recovery_s: float, write_s: float, interval_s: float) -> float:
    """Return failures x recovery + checkpoints, as a share of time: what the exact form tends to."""
    return (recovery_s + interval_s / 2) / mtbf_s + write_s / interval_s


def erlang_b(servers: int, load: float) -> float:
    """Return Erlang's loss formula B(servers, load) by its recursion.

    Examples
    --------
    >>> erlang_b(1, 1.0)
    0.5
    """
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    return blocked


def spares_for(load: float, waiting: float = WAITING_ALLOWED) -> int:
    """Return the fewest spare hosts that keep the share of waiting at most so large.

    Parameters
    ----------
    load
        Hosts in repair on average: rate x time to repair.
    waiting
        Share of time, above 0.
    """
    if not 0 < waiting <= 1:
        raise ModelRangeError(f"waiting {waiting:g} is out of range", hint="above 0, at most 1")
    spares, blocked = 0, load / (1 + load)
    while blocked > waiting:
        spares += 1
        blocked = load * blocked / (spares + 1 + load * blocked)
    return spares


def recovery_for(target: float, mtbf_s: float, write_s: float) -> float | None:
    """Return the longest recovery with which progress takes a share of time [s], with the best interval.

    Parameters
    ----------
    target
        Share of time, above 0 and below 1.
    mtbf_s, write_s
        As for `effective_share`.

    Returns
    -------
    float or None
        None where checkpoints and lost work alone take more than 1 - target.
    """
    if not 0 < target < 1:
        raise ModelRangeError(f"target {target:g} is out of range", hint="above 0 and below 1, such as 0.99")
    best = effective_share(mtbf_s, 0.0, write_s, exact_interval(mtbf_s, write_s))
    return mtbf_s * math.log(best / target) if best >= target else None


# ---- The network's part --------------------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkEffect:
    """What failures of a fabric do to a job on all of it."""

    failures_per_hour: float
    """All failures whose rate is known."""
    stops_per_hour: float
    """Those that leave a NIC without a port: the job stops."""
    host_stops_per_hour: float
    """Those of them that take a host to repair: the NIC itself failed."""
    degraded_loss: float
    """Share of progress lost while bandwidth is missing."""
    communication_share: float
    workload: str
    unknown: tuple[str, ...] = ()
    """Kinds of elements without a rate: left out."""

    @property
    def degraded_per_hour(self) -> float:
        """Failures that do not stop the job."""
        return self.failures_per_hour - self.stops_per_hour

    def of_job(self, share: float) -> NetworkEffect:
        """Return the effect on a job with so large a share of the hosts: stops are theirs, the rest stays."""
        return replace(
            self,
            failures_per_hour=self.failures_per_hour - self.stops_per_hour * (1 - share),
            stops_per_hour=self.stops_per_hour * share,
            host_stops_per_hour=self.host_stops_per_hour * share,
        )


def network_effect(
    study: FailureStudy, communication_share: float, workload: str | None = None
) -> NetworkEffect:
    """Return stops and degraded time from a study of single failures.

    Parameters
    ----------
    study
        As `netplan.planning.failures.study_failures` returns it.
    communication_share
        Share of a step that is communication nothing hides, 0 to 1.
    workload
        Whose bandwidth counts; the first when None.

    Raises
    ------
    ModelRangeError
        A share out of range, or no such workload.
    """
    if not 0 <= communication_share <= 1:
        raise ModelRangeError(
            f"communication share {communication_share:g} is out of range", hint="0 to 1, such as 0.2"
        )
    names = list(study.workloads)
    chosen = names[0] if workload is None else workload
    if chosen not in names:
        raise ModelRangeError(f"workload {chosen!r} is not in the study", hint=f"it has {', '.join(names)}")
    failures = stops = hosts = loss = 0.0
    for row in study.classes:
        if row.failures_per_month is None or row.stops_per_month is None:
            continue
        failures += row.failures_per_month
        stops += row.stops_per_month
        if row.kind == "nic":
            hosts += row.stops_per_month
        running = row.failures_per_month - row.stops_per_month
        left = min(row.left[chosen], 1.0)
        slower = 1.0 if left == 0 else 1 - 1 / (1 + communication_share * (1 / left - 1))
        loss += running * row.rate.repair_h / _HOURS_PER_MONTH * slower
    return NetworkEffect(
        failures_per_hour=failures / _HOURS_PER_MONTH,
        stops_per_hour=stops / _HOURS_PER_MONTH,
        host_stops_per_hour=hosts / _HOURS_PER_MONTH,
        degraded_loss=min(loss, 1.0),
        communication_share=communication_share,
        workload=chosen,
        unknown=tuple(dict.fromkeys(row.kind for row in study.classes if row.failures_per_month is None)),
    )


# ---- A job ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CauseRow:
    """Interruptions by one cause."""

    cause: str
    per_hour: float
    share: float
    """Of all interruptions."""
    takes_host: bool
    source: str


@dataclass(frozen=True)
class Goodput:
    """Where the time of a job goes."""

    gpus: int
    hosts: int
    mtbf_s: float
    """Mean time between interruptions [s]."""
    interval_s: float
    """Work between checkpoints [s]; infinite when nothing ever fails."""
    recovery: Recovery
    spares: int
    effective_time: float
    """Share of time that is progress, at full speed: what all below leave."""
    detection: float
    restart: float
    lost_work: float
    """Work done again."""
    checkpoints: float
    waiting: float
    """No host to go on with."""
    degraded: float
    """Lost because steps last longer while part of the network is away."""
    causes: tuple[CauseRow, ...]
    network: NetworkEffect | None = field(default=None)

    def interruptions(self, days: float) -> float:
        """Return the expected interruptions in so many days."""
        return days * 86400 / self.mtbf_s

    def to_dict(self) -> dict[str, Any]:
        """Return the goodput as plain data."""
        finite = math.isfinite
        return {
            "schema": SCHEMA,
            "goodput": {
                "gpus": self.gpus,
                "hosts": self.hosts,
                "effective_time": self.effective_time,
                "mtbf_s": self.mtbf_s if finite(self.mtbf_s) else None,
                "interruptions_per_day": self.interruptions(1.0),
                "checkpoint_interval_s": self.interval_s if finite(self.interval_s) else None,
                "spares": self.spares,
                "wasted": {
                    "detection": self.detection,
                    "restart": self.restart,
                    "lost_work": self.lost_work,
                    "checkpoints": self.checkpoints,
                    "waiting": self.waiting,
                    "degraded": self.degraded,
                },
            },
            "recovery": asdict(self.recovery),
            "causes": [asdict(row) for row in self.causes],
            "network": None if self.network is None else asdict(self.network),
        }


def training_goodput(
    parts: JobParts,
    recovery: Recovery | None = None,
    *,
    failures: Mapping[str, PartFailure] | None = None,
    network: NetworkEffect | None = None,
) -> Goodput:
    """Return where the time of a job goes.

    Parameters
    ----------
    parts
        Size of the job.
    recovery
        What failures and checkpoints cost; the module's defaults when None.
    failures
        Causes, as `netplan.planning.part_failures.part_failures_with` returns them.
    network
        What the fabric's own failures do; takes the place of the causes `NETWORK_PARTS`.

    Returns
    -------
    Goodput
        Shares of time that sum to 1.

    Examples
    --------
    >>> llama = training_goodput(JobParts(16_384))
    >>> round(llama.interruptions(days=54)), llama.effective_time > 0.9
    (419, True)
    """
    recovery = recovery or Recovery()
    causes = list((PART_FAILURES if failures is None else failures).values())
    rates = [
        (part.name, part.interruptions(parts, 1.0), part.takes_host, part.source)
        for part in causes
        if network is None or part.name not in NETWORK_PARTS
    ]
    if network is not None:
        rest = network.stops_per_hour - network.host_stops_per_hour
        source = "failures of this fabric that leave a NIC without a port (netplan failures)"
        rates += [("network", rest, False, source), ("nic", network.host_stops_per_hour, True, source)]
    total = sum(rate for _, rate, _, _ in rates)
    mtbf = 3600 / total if total else math.inf
    if mtbf < recovery.recovery_s:
        raise ModelRangeError(
            f"{parts.gpus:,} GPUs are interrupted every {mtbf:.3g} s, sooner than the "
            f"{recovery.recovery_s:g} s that recovery takes: the job hardly ever runs",
            hint="shorter --detect and --restart, or lower --rate",
        )
    load = sum(rate for _, rate, takes, _ in rates if takes) / 3600 * recovery.repair_s
    spares = spares_for(load) if recovery.spares is None else recovery.spares
    waiting = erlang_b(spares + 1, load)
    interval, shares = _shares(mtbf, recovery)
    running = 1 - waiting
    degraded = 0.0 if network is None else network.degraded_loss
    return Goodput(
        gpus=parts.gpus,
        hosts=parts.hosts,
        mtbf_s=mtbf,
        interval_s=interval,
        recovery=recovery,
        spares=spares,
        effective_time=running * shares["useful"] * (1 - degraded),
        detection=running * shares["detection"],
        restart=running * shares["restart"],
        lost_work=running * shares["lost_work"],
        checkpoints=running * shares["checkpoints"],
        waiting=waiting,
        degraded=running * shares["useful"] * degraded,
        causes=tuple(
            CauseRow(name, rate, rate / total if total else 0.0, takes, source)
            for name, rate, takes, source in sorted(rates, key=lambda row: -row[1])
        ),
        network=network,
    )


def _shares(mtbf: float, recovery: Recovery) -> tuple[float, dict[str, float]]:
    """Return the interval and the shares of the time in which the job does not wait for hosts."""
    write = recovery.write_s
    interval = recovery.interval_s
    if interval is None:
        interval = math.inf if math.isinf(mtbf) else _RULES[recovery.rule](mtbf, write)
        if interval < 0:  # Daly's series near its end
            interval = mtbf
    if math.isinf(interval):
        return interval, dict.fromkeys(("detection", "restart", "lost_work", "checkpoints"), 0.0) | {
            "useful": 1.0
        }
    useful = effective_share(mtbf, recovery.recovery_s, write, interval)
    detection = -math.expm1(-recovery.detect_s / mtbf)
    recovering = -math.expm1(-recovery.recovery_s / mtbf)
    checkpoints = useful * write / interval if write else 0.0
    return interval, {
        "useful": useful,
        "detection": detection,
        "restart": recovering - detection,
        "checkpoints": checkpoints,
        "lost_work": max(0.0, 1 - useful - recovering - checkpoints),
    }


@dataclass(frozen=True)
class TargetRow:
    """How fast recovery must be at one size."""

    gpus: int
    mtbf_s: float
    write_s: float
    recovery_s: float | None
    """The longest that meets the target; None: none does."""


def target_rows(
    sizes: Sequence[int],
    writes_s: Sequence[float],
    target: float = 0.99,
    *,
    failures: Mapping[str, PartFailure] | None = None,
    gpus_per_host: int = 8,
) -> list[TargetRow]:
    """Return how fast recovery must be at several sizes for progress to take a share of time.

    Parameters
    ----------
    sizes
        GPUs of the jobs.
    writes_s
        How long a checkpoint stops the job [s].
    target
        Share of time, spares never lacking.
    failures, gpus_per_host
        As for `training_goodput`.
    """
    causes = (PART_FAILURES if failures is None else failures).values()
    rows = []
    for size in sizes:
        parts = JobParts(size, gpus_per_host, gpus_per_host)
        total = sum(part.interruptions(parts, 1.0) for part in causes)
        if not total:
            raise ModelRangeError("every rate is 0: nothing fails, and any recovery will do")
        mtbf = 3600 / total
        rows += [TargetRow(size, mtbf, write, recovery_for(target, mtbf, write)) for write in writes_s]
    return rows
