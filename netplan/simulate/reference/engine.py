"""A reference run under the time-domain engine of `netplan.congestion.dynamics`.

Everything the engine is told comes from the run's own settings: protocol parameters, ECN curve, PFC
rule, buffer, window, sizes of packets and acknowledgements and the links that both cross. Nothing is
fitted. `SETTINGS` names what each simulator's parameter is for the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, Outcome, run_flows
from netplan.congestion.switch import PRESETS, EcnCurve, PfcThresholds, SwitchBuffer, SwitchProfile
from netplan.simulate.reference.comparison import ModelRun
from netplan.simulate.reference.max_min import FlowTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["SETTINGS", "can_run", "run_engine", "simulate_run"]

_US = 1e-6
_MIB = 1024 * 1024

#: Rate of the hosts in the runs; maps of thresholds by rate are read at it [bit/s].
_NIC_BPS = 100e9

#: Points in time at which an endless run is looked at: the middle is one of them.
_SAMPLES = 50


def _rate(text: object) -> float:
    """Return bytes/s of ``40Mb/s``."""
    return float(str(text).removesuffix("Mb/s")) * 1e6 / 8


def _number(value: object) -> float:
    return float(str(value))


def _us(value: object) -> float:
    return float(str(value)) * _US


#: Protocol of the engine and, by name of the simulator's parameter, (the engine's parameter, its unit).
_DCQCN: dict[str, tuple[str, Callable[[object], float]]] = {
    "EWMA_GAIN": ("gain", _number),
    "ALPHA_RESUME_INTERVAL": ("alpha_s", _us),
    "RATE_DECREASE_INTERVAL": ("cut_s", _us),
    "RP_TIMER": ("timer_s", _us),
    "FAST_RECOVERY_TIMES": ("fast_recovery_steps", _number),
    "RATE_AI": ("rate_ai", _rate),
    "RATE_HAI": ("rate_hai", _rate),
    "MIN_RATE": ("min_rate", _rate),
    "CLAMP_TARGET_RATE": ("clamp", _number),
}
_TIMELY: dict[str, tuple[str, Callable[[object], float]]] = {
    "RATE_AI": ("rate_ai", _rate),
    "RATE_HAI": ("rate_hai", _rate),
    "MIN_RATE": ("min_rate", _rate),
}
SETTINGS: dict[str, tuple[str, dict[str, tuple[str, Callable[[object], float]]]]] = {
    "none": ("none", {}),
    "roce_ecmp": ("none", {}),
    "roce_deep_ecmp": ("none", {}),
    "dcqcn": ("dcqcn", _DCQCN),
    "dcqcn_paper": ("dcqcn", _DCQCN),
    "dcqcn_vwin": ("dcqcn", _DCQCN),
    "timely": ("timely", _TIMELY),
    "timely_vwin": ("timely", _TIMELY),
    "dctcp": (
        "dctcp",
        {
            "EWMA_GAIN": ("gain", _number),
            "DCTCP_RATE_AI": ("rate_ai", _rate),
            "MIN_RATE": ("min_rate", _rate),
        },
    ),
    "hpcc": (
        "hpcc",
        {
            "U_TARGET": ("eta", _number),
            "MI_THRESH": ("stages", _number),
            "RATE_AI": ("rate_ai", _rate),
            "MIN_RATE": ("min_rate", _rate),
            "FAST_REACT": ("fast_react", _number),
        },
    ),
}


def can_run(run: ReferenceRun) -> bool:
    """Whether the engine has the run's protocol, and its flows keep to one path each.

    Runs in which the simulator itself ended no flow (go-back-N that never gets anywhere) are left out.
    """
    if run.measured.goodput is None and run.measured.done == 0:
        return False
    known = run.protocol in SETTINGS and SETTINGS[run.protocol][0] in PROTOCOLS.names()
    return known and run.single_path and not (run.simulator == "htsim" and run.protocol == "hpcc")


def simulate_run(run: ReferenceRun, *, seed: int = 0, step: float | None = None) -> Outcome:
    """Run a reference run's flows through the engine.

    Parameters
    ----------
    run
        A run for which `can_run` holds.
    seed
        Of the random marks.
    step
        Longest train [s]; None: the engine's choice.

    Returns
    -------
    Outcome
        The engine's own result.
    """
    protocol, names = SETTINGS[run.protocol]
    values = {
        ours: unit(run.settings[theirs]) for theirs, (ours, unit) in names.items() if theirs in run.settings
    }
    return run_flows(
        network(run), flows(run), PROTOCOLS.find(protocol), values, options(run, seed=seed, step=step)
    )


def run_engine(run: ReferenceRun, *, seed: int = 0, step: float | None = None) -> ModelRun:
    """Return what the engine says of a reference run, for `comparison.compare_run`.

    Parameters
    ----------
    run, seed, step
        As in `simulate_run`.
    """
    out = simulate_run(run, seed=seed, step=step)
    times, goodput = None, None
    if run.measured.goodput is not None:
        middle = np.searchsorted(out.sample_time, run.horizon / 2 * (1 - 1e-9))
        late = out.delivered - out.sample_received[middle]
        goodput = late / (run.horizon - out.sample_time[middle])
    else:
        times = FlowTimes(out.started, out.received - out.started, out.finish - out.started)
    return ModelRun(times, goodput, out.peak_queue, out.mean_queue, bool(out.pauses.sum() > 0))


def _speed_up(run: ReferenceRun) -> float:
    """Return by how much the simulator's clock makes links faster than they are: packets keep their bytes."""
    return run.wire_bytes / run.as_timed(run.wire_bytes)


def network(run: ReferenceRun) -> Network:
    """Return the run's links with the rules of its switches."""
    links = run.links
    n_nodes = int(max(links.src.max(), links.dst.max())) + 1
    return Network(
        rate=links.capacity * _speed_up(run),
        delay=links.delay,
        src=links.src,
        dst=links.dst,
        is_switch=np.arange(n_nodes) >= links.n_hosts,
        profile=profile(run),
    )


def flows(run: ReferenceRun) -> Flows:
    """Return the run's flows; acknowledgements have the bytes that they hold a link for."""
    demand = run.demand
    every = np.arange(run.n_flows + 1)
    waiting = np.flatnonzero(demand.after >= 0)
    return Flows(
        size=demand.size,
        start=np.where(demand.after >= 0, 0.0, demand.start),
        flow_ptr=every,
        path_ptr=run.paths.ptr,
        path_link=run.paths.link,
        back_ptr=run.ack_paths.ptr,
        back_link=run.ack_paths.link,
        payload=run.payload_bytes,
        header=run.wire_bytes - run.payload_bytes,
        ack_bytes=run.as_timed(run.ack_bytes) * _speed_up(run) / run.ack_every,
        after=np.column_stack([demand.after[waiting], waiting]) if len(waiting) else None,
        chunk=demand.chunk,
        gated_by=demand.feeder if demand.chunk > 0 else None,
    )


def options(run: ReferenceRun, *, seed: int = 0, step: float | None = None) -> Options:
    """Return how the run's flows are to be run."""
    settings = run.settings
    endless = run.measured.goodput is not None
    window: NDArray[np.float64] | float = 0.0
    base_rtt: NDArray[np.float64] | float = 0.0
    if settings.get("HAS_WIN"):
        window = float(settings.get("max_bdp_bytes", 0.0))
        base_rtt = settings.get("max_rtt_ns", 0.0) * 1e-9
        if not window or not settings.get("GLOBAL_T", 1):
            own_rtt, own_window = _pair(run)
            base_rtt, window = own_rtt, own_window
            if settings.get("GLOBAL_T", 1):
                base_rtt, window = own_rtt.max(), own_window.max()
    lossy = settings.get("ENABLE_IRN", 0) == 1
    if lossy and not settings.get("HAS_WIN"):
        window = 104_000.0  # IRN's limit of bytes in flight on two tiers
    grain = float(settings.get("INT_MULTI", 1))
    return Options(
        seed=seed,
        step=step,
        end=run.horizon if endless or run.measured.done < run.n_flows else 4 * run.horizon,
        sample=run.horizon / _SAMPLES if endless else 0.0,
        # HPCC's program sets ACK_HIGH_PRIO at hosts only: in its switches acknowledgements wait with data.
        acks_wait=run.simulator != "conweave",
        depends_on_ack=run.waits_for_ack,
        window=window,
        window_follows_rate=bool(settings.get("VAR_WIN", 0)),
        base_rtt=base_rtt,
        go_back_n=not lossy,
        nack_gap=4e-6 if run.simulator == "conweave" else 500e-6,
        telemetry_bytes=128 * grain if run.simulator != "htsim" else 1.0,
        telemetry_queue=80 * grain if run.simulator != "htsim" else 1.0,
    )


def _pair(run: ReferenceRun) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each flow's base round trip and window as the ns-3 simulators reckon them.

    Twice the propagation and one payload's serialisation per hop; times the slowest link's rate.
    """
    owner = np.repeat(np.arange(run.n_flows), np.diff(run.paths.ptr))
    rate = run.links.capacity[run.paths.link]
    hop = 2 * run.links.delay[run.paths.link] + run.payload_bytes / rate
    rtt = np.bincount(owner, hop, minlength=run.n_flows).astype(np.float64)
    slowest = np.minimum.reduceat(rate, run.paths.ptr[:-1])
    return rtt, rtt * slowest.astype(np.float64)


def profile(run: ReferenceRun) -> SwitchProfile:
    """Return the rules of the run's switches."""
    if run.simulator == "htsim":
        return _htsim_profile(run)
    settings = run.settings
    preset = PRESETS["hpcc-ns3" if run.simulator == "hpcc" else "conweave-ns3"]
    ecn, scales = _curve(settings)
    size = float(settings.get("BUFFER_SIZE", 32)) * _MIB
    return SwitchProfile(
        name=preset.name,
        ecn=ecn,
        pfc=preset.pfc,
        buffer=SwitchBuffer(
            size,
            reserved_bytes=preset.buffer.reserved_bytes,
            lossless=run.lossless,
            egress_alpha=preset.buffer.egress_alpha,
        ),
        reference_rate=float(run.links.capacity[run.links.src < run.links.n_hosts].min()) * _speed_up(run),
        ecn_scales=scales,
        headroom_factor=preset.headroom_factor if run.lossless else 0.0,  # the records say: none without PFC
        alpha_doubles=preset.alpha_doubles,
        source=preset.source,
    )


def _curve(settings: dict[str, Any]) -> tuple[EcnCurve, bool]:
    """Return the ECN curve of the slowest rate in the settings' maps, and whether it grows with the rate."""
    if not settings.get("ENABLE_QCN", 1):
        return EcnCurve(np.inf, np.inf, 1.0), False

    def by_rate(name: str) -> dict[float, float]:
        words = str(settings[name]).split()[1:]
        return {float(rate): float(value) for rate, value in zip(words[::2], words[1::2], strict=True)}

    kmin, kmax, pmax = by_rate("KMIN_MAP"), by_rate("KMAX_MAP"), by_rate("PMAX_MAP")
    slowest = _NIC_BPS if _NIC_BPS in kmin else min(kmin)
    fastest = max(kmin)
    grows = fastest > slowest and kmin[fastest] > kmin[slowest]
    return EcnCurve(kmin[slowest] * 1e3, kmax[slowest] * 1e3, pmax[slowest]), grows


def _htsim_profile(run: ReferenceRun) -> SwitchProfile:
    """Return htsim's lossless input queues: two thresholds in packets, whatever else waits."""
    low, high = run.settings["pfc_packets"]
    packet = run.payload_bytes
    return SwitchProfile(
        name="htsim-lossless",
        ecn=EcnCurve(np.inf, np.inf, 1.0),
        pfc=PfcThresholds(
            "static", xoff_bytes=high * packet, xon_offset_bytes=(high - low) * packet, headroom_bytes=1e9
        ),
        buffer=SwitchBuffer(1e12, reserved_bytes=0.0),
        source="ultraethernet/uet-htsim queue_lossless_input.cpp",
    )
