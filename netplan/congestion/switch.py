"""What a switch does to traffic that waits: marks it (ECN), pauses who sends it (PFC), drops it.

A `SwitchProfile` is one set of rules for a whole switch. Three parts make it up:

* `EcnCurve`: a packet that leaves a queue is marked with probability ``p(q)``, q the bytes that
  still wait there: 0 up to Kmin, rising in a straight line to Pmax at Kmax, 1 above
  (RED as DCQCN uses it: Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*,
  SIGCOMM 2015; the same rule in ``switch-mmu.cc`` of the ns-3 of HPCC).
* `PfcThresholds`: what came in through one port may wait up to ``xoff``; then the port's other end
  is paused, and may go on once ``xon_offset`` bytes less wait. Dynamic: xoff = alpha x (what is
  free of the shared pool), so that it falls as the switch fills.
* `SwitchBuffer`: the memory all ports share.

Presets are the settings of the packet simulators and of switch operating systems that netplan is
compared with; their numbers are data of those programs, named in ``source``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from netplan.errors import ModelRangeError, did_you_mean

__all__ = [
    "PRESETS",
    "EcnCurve",
    "PfcThresholds",
    "PfcWatchdog",
    "SwitchBuffer",
    "SwitchProfile",
    "find_profile",
]

_GBPS = 1e9 / 8  # bytes/s

#: Relative difference of port rates that are one.
_SAME_RATE = 1e-6


@dataclass(frozen=True)
class EcnCurve:
    """How likely a packet is marked, by the queue that it leaves."""

    kmin_bytes: float
    """Up to this queue nothing is marked [bytes]."""
    kmax_bytes: float
    """Above this queue everything is marked [bytes]; equal to kmin: a step."""
    pmax: float
    """Probability at kmax, in (0, 1]."""

    def __post_init__(self) -> None:
        """Refuse a curve that is none."""
        if not 0 <= self.kmin_bytes <= self.kmax_bytes:
            message = (
                f"ECN thresholds kmin = {self.kmin_bytes:g} B, kmax = {self.kmax_bytes:g} B:"
                " 0 <= kmin <= kmax is needed"
            )
            raise ModelRangeError(message, hint="marking begins at kmin and is certain above kmax")
        if not 0 < self.pmax <= 1:
            message = f"ECN pmax = {self.pmax:g} is not in (0, 1]"
            raise ModelRangeError(message, hint="pmax is a probability: 5 % is 0.05")

    def probability(self, queue_bytes: float) -> float:
        """Return the probability of a mark at a queue [bytes]."""
        if queue_bytes > self.kmax_bytes:
            return 1.0
        if queue_bytes <= self.kmin_bytes:
            return 0.0
        return self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes)

    def scaled(self, factor: float) -> EcnCurve:
        """Return the curve with both thresholds times ``factor``."""
        return replace(self, kmin_bytes=self.kmin_bytes * factor, kmax_bytes=self.kmax_bytes * factor)


@dataclass(frozen=True)
class PfcThresholds:
    """When a switch pauses the sender of one ingress port and priority."""

    mode: Literal["dynamic", "static"] = "dynamic"
    """Whether xoff follows the free pool."""
    xoff_bytes: float = 0.0
    """Static: bytes of one ingress port at which it is paused."""
    xon_offset_bytes: float = 3072.0
    """The pause ends once the port holds this much less than xoff [bytes]."""
    alpha: float = 0.125
    """Dynamic: share of the free pool that one ingress port may hold."""
    headroom_bytes: float = 0.0
    """Room above xoff for what is in flight when the pause is sent [bytes]; 0: by the link's delay."""

    def __post_init__(self) -> None:
        """Refuse thresholds that cannot work."""
        if self.mode not in {"dynamic", "static"}:
            message = f"PFC mode {self.mode!r} is not one of dynamic, static"
            raise ModelRangeError(message, hint=did_you_mean(self.mode, ("dynamic", "static")))
        for name in ("xoff_bytes", "xon_offset_bytes", "headroom_bytes"):
            if getattr(self, name) < 0:
                message = f"PFC {name} = {getattr(self, name):g} is negative"
                raise ModelRangeError(message)
        if self.mode == "dynamic" and not self.alpha > 0:
            message = f"PFC alpha = {self.alpha:g} is not > 0"
            raise ModelRangeError(message, hint="SONiC's dynamic_th n means alpha = 2^n")
        if self.mode == "static" and not self.xoff_bytes > self.xon_offset_bytes:
            message = (
                f"PFC xoff = {self.xoff_bytes:g} B is not above xon_offset = {self.xon_offset_bytes:g} B:"
                " the pause would never end"
            )
            raise ModelRangeError(message)


@dataclass(frozen=True)
class PfcWatchdog:
    """What becomes of an egress queue that others keep paused, as SONiC's pfcwd has it.

    A queue that holds packets and has been paused without a break for ``detection_s`` is in a storm:
    what it holds and what arrives for it is dropped, or it sends regardless of the pause. The storm is
    over once no pause has held for ``restoration_s``. SONiC's defaults: 200 ms and 200 ms, drop
    (``pfcwd start_default``); counted where the packets are, at the paused queue.
    """

    detection_s: float = 0.2
    restoration_s: float = 0.2
    action: Literal["drop", "forward"] = "drop"

    def __post_init__(self) -> None:
        """Refuse times that are none and unknown actions."""
        for name in ("detection_s", "restoration_s"):
            if not 0 < getattr(self, name) < float("inf"):
                message = f"PFC watchdog {name} = {getattr(self, name):g} is not > 0 and finite"
                raise ModelRangeError(message, hint="SONiC accepts 100 ms and more; its default is 200 ms")
        if self.action not in {"drop", "forward"}:
            message = f"PFC watchdog action {self.action!r} is not one of drop, forward"
            raise ModelRangeError(message, hint=did_you_mean(self.action, ("drop", "forward")))


@dataclass(frozen=True)
class SwitchBuffer:
    """The packet memory of a switch."""

    total_bytes: float
    """All of it."""
    reserved_bytes: float = 4096.0
    """Kept for each ingress port, outside the shared pool [bytes]."""
    lossless: bool = True
    """PFC is on: a port that holds too much is paused. Off: what does not fit is dropped."""
    egress_alpha: float = 0.0
    """Without PFC: share of the free pool that one egress queue may hold; 0: no such limit."""
    queue_limit_bytes: float = 0.0
    """Longest queue of one egress port [bytes]; 0: no such limit."""
    credit_bytes: float = 0.0
    """InfiniBand: buffer of each input that the sender before it counts credits of; 0: no credits.
    A link then carries at most credit_bytes / its round trip; PFC and drops do not occur."""
    deep: bool = False
    """Off-chip memory behind it (HBM), for spans."""

    def __post_init__(self) -> None:
        """Refuse a buffer that holds nothing."""
        if not self.total_bytes > 0:
            message = f"switch buffer total_bytes = {self.total_bytes:g} is not > 0"
            raise ModelRangeError(message)
        for name in ("reserved_bytes", "egress_alpha", "queue_limit_bytes", "credit_bytes"):
            if getattr(self, name) < 0:
                message = f"switch buffer {name} = {getattr(self, name):g} is negative"
                raise ModelRangeError(message)


@dataclass(frozen=True)
class SwitchProfile:
    """All rules of a switch."""

    name: str
    ecn: EcnCurve
    """Curve of a port of `reference_rate`."""
    pfc: PfcThresholds
    buffer: SwitchBuffer
    reference_rate: float = 100 * _GBPS
    """Port rate that `ecn` and `pfc.alpha` are for [bytes/s]."""
    ecn_scales: bool = True
    """Whether ECN thresholds grow with the port's rate."""
    headroom_factor: float = 3.0
    """Headroom of a port = factor x rate x one-way delay of its link, where `pfc` gives none."""
    alpha_doubles: bool = False
    """Whether alpha doubles with each doubling of a port's rate over `reference_rate`."""
    source: str = ""
    ecn_by_rate: tuple[tuple[float, EcnCurve], ...] = ()
    """Curves of ports of some rates [bytes/s], used as they are in place of `ecn`."""
    watchdog: PfcWatchdog | None = None
    """None: a pause may last for ever."""

    def ecn_of(self, rate: float) -> EcnCurve:
        """Return the curve of a port of a rate [bytes/s]."""
        for own, curve in self.ecn_by_rate:
            if abs(own - rate) <= _SAME_RATE * own:
                return curve
        return self.ecn.scaled(rate / self.reference_rate) if self.ecn_scales else self.ecn

    def alpha_of(self, rate: float) -> float:
        """Return PFC's alpha for an ingress port of a rate [bytes/s]."""
        alpha = self.pfc.alpha
        ratio = rate / self.reference_rate
        while self.alpha_doubles and ratio >= 2.0:  # noqa: PLR2004 - a doubling
            alpha, ratio = alpha * 2.0, ratio / 2.0
        return alpha

    def headroom_of(self, rate: float, delay: float) -> float:
        """Return the headroom of an ingress port [bytes] by its rate [bytes/s] and one-way delay [s]."""
        return self.pfc.headroom_bytes or self.headroom_factor * rate * delay


#: The settings that ship, by name.
PRESETS: dict[str, SwitchProfile] = {
    profile.name: profile
    for profile in (
        SwitchProfile(
            "hpcc-ns3",
            EcnCurve(400e3, 1600e3, 0.2),
            PfcThresholds("dynamic", alpha=1 / 8),
            SwitchBuffer(32 * 1024 * 1024),
            alpha_doubles=True,
            source="alibaba-edu/High-Precision-Congestion-Control simulation/run.py, switch-mmu.cc",
        ),
        SwitchProfile(
            "conweave-ns3",
            EcnCurve(100e3, 400e3, 0.2),
            PfcThresholds("dynamic", alpha=1 / 16),
            SwitchBuffer(9 * 1024 * 1024, egress_alpha=1.0),
            ecn_scales=False,
            source="conweave-project/conweave-ns3 run.py",
        ),
        SwitchProfile(
            "dcqcn-paper",
            EcnCurve(5e3, 200e3, 0.01),
            PfcThresholds("dynamic", alpha=1 / 8),
            SwitchBuffer(12e6),
            reference_rate=40 * _GBPS,
            ecn_scales=False,
            source="Zhu et al., SIGCOMM 2015; jitupadhye-zz/rdma stability.m",
        ),
        SwitchProfile(
            "sonic-default",
            EcnCurve(1_048_576, 2_097_152, 0.05),
            PfcThresholds("dynamic", alpha=1 / 8),
            SwitchBuffer(158_229_504),
            ecn_scales=False,
            source="sonic-net/sonic-buildimage files/build_templates/qos_config.j2; SN5600 buffers_defaults",
        ),
        SwitchProfile(
            "cumulus",
            EcnCurve(150e3, 1500e3, 1.0),
            PfcThresholds("dynamic", alpha=1 / 8),
            SwitchBuffer(64e6),
            ecn_scales=False,
            source="NVIDIA Cumulus Linux RoCE defaults: 150 KB, 1500 KB",
        ),
        SwitchProfile(
            "htsim",
            EcnCurve(24_900, 99_600, 1.0),
            PfcThresholds("static", xoff_bytes=124_500, xon_offset_bytes=12_450),
            SwitchBuffer(1e9, reserved_bytes=0.0, queue_limit_bytes=124_500, lossless=False),
            source="ultraethernet/uet-htsim main_uec.cpp: queue 1 BDP, ECN 0.2 and 0.8 of it",
        ),
        SwitchProfile(
            "infiniband",
            EcnCurve(32e3, 32e3, 1.0),
            PfcThresholds("dynamic", alpha=1.0),
            SwitchBuffer(64e6, credit_bytes=64e3),
            ecn_scales=False,
            headroom_factor=0.0,
            source="netplan's assumption: 64 KB a virtual lane and input, marks above half of it",
        ),
        SwitchProfile(
            "dci",
            EcnCurve(2.84e6, 5.68e6, 1.0),
            PfcThresholds("dynamic", alpha=1.0),
            SwitchBuffer(4e9, deep=True, lossless=False, queue_limit_bytes=9.47e6),
            source="HPE and Juniper, 50-500 km: Kmin 0.75, Kmax 1.5, buffer 2.5 RTT x C; here 30 km, 100G",
        ),
    )
}


def find_profile(name: str) -> SwitchProfile:
    """Return a preset.

    Raises
    ------
    ModelRangeError
        There is none of that name; the message lists those there are.
    """
    if name not in PRESETS:
        message = f"switch profile {name!r} is not one of {', '.join(PRESETS)}"
        raise ModelRangeError(message, hint=did_you_mean(name, PRESETS))
    return PRESETS[name]
