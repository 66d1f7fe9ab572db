"""A reference run under the time-domain engine of `netplan.congestion.dynamics`.

Everything the engine is told comes from the run's own settings: protocol parameters, ECN curve, PFC
rule, buffer, window, sizes of packets and acknowledgements and the links that both cross. Nothing is
fitted. `SETTINGS` names what each simulator's parameter is for the engine; what htsim's programs have
built in instead of on their command lines stands in `_htsim_values`.

`cannot_run` says by name why a run cannot be represented.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, Outcome, run_flows
from netplan.congestion.switch import PRESETS, EcnCurve, PfcThresholds, SwitchBuffer, SwitchProfile
from netplan.errors import ModelRangeError, did_you_mean
from netplan.simulate.reference.comparison import ModelRun
from netplan.simulate.reference.max_min import FlowTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["SETTINGS", "can_run", "cannot_run", "run_engine", "simulate_run"]

_US = 1e-6
_MIB = 1024 * 1024

#: Points in time at which an endless run is looked at: the middle is one of them.
_SAMPLES = 50


def _rate(text: object) -> float:
    """Return bytes/s of ``40Mb/s``, ``1Gb/s`` or ``100000bps``."""
    match = re.fullmatch(r"([\d.eE+-]+) *([kKMGT]?)(?:b/s|bps)", str(text))
    if match is None:
        message = f"the rate {text!r} is none that is known: 40Mb/s, 1Gb/s and the like are"
        raise ModelRangeError(message)
    return float(match[1]) * {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[match[2]] / 8


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
    "nscc": ("nscc", {}),
    "nscc_ecmp": ("nscc", {}),
    "nscc_obl": ("nscc", {}),
    "nscc_notrim": ("nscc", {}),
    "rccc": ("rccc", {}),
    "rccc_ecmp": ("rccc", {}),
    "eqds": ("rccc", {}),
    "ndp": ("rccc", {}),
    "swift": ("swift", {}),
    "dctcp_ecmp": ("dctcp-per-mark", {}),
    "dctcp_spray": ("dctcp-per-mark", {}),
}

#: Protocols of htsim that the engine has no rule for, and why.
_WITHOUT_RULE = {
    "nscc_rccc": "NSCC and receiver credits at once: the engine runs one control a flow",
    "roce_ar": "packets that choose the shortest queue: the engine draws paths at random",
    "hpcc": "htsim's HPCC: its base round trip and window are not recorded",
}

#: Protocol of a run whose name is not in `SETTINGS`, by the CC_MODE of the ns-3 simulators.
_BY_MODE = {0: "none", 1: "dcqcn", 3: "hpcc", 7: "timely", 8: "dctcp"}

#: Settings of the ns-3 simulators that the engine has one value of: value, and what another would mean.
_AS_BUILT: dict[str, tuple[float, str]] = {
    "ERROR_RATE_PER_LINK": (0, "links that lose packets by themselves"),
    "L2_BACK_TO_ZERO": (0, "a message that begins anew after a loss"),
    "L2_ACK_INTERVAL": (1, "acknowledgements of several packets at once"),
    "MULTI_RATE": (0, "HPCC with a rate for each hop"),
    "SAMPLE_FEEDBACK": (0, "HPCC with sampled feedback"),
    "USE_DYNAMIC_PFC_THRESHOLD": (1, "fixed PFC thresholds, which are not recorded"),
}

#: Path identifiers that a sender of htsim goes through without looking at what becomes of them. Each is
#: hashed to a path, so that a flow's paths have unequal shares.
_PATH_IDS = {"nscc_obl": 64, "dctcp_spray": 64, "ndp": 64}


def can_run(run: ReferenceRun) -> bool:
    """Whether the engine can represent a run."""
    return cannot_run(run) is None


def cannot_run(run: ReferenceRun) -> str | None:
    """Return why the engine cannot represent a run; None: it can.

    Parameters
    ----------
    run
        Any run.

    Returns
    -------
    str or None
        What is missing, for a table of runs left out.
    """
    htsim = run.simulator == "htsim"
    odd = [
        meaning
        for name, (value, meaning) in _AS_BUILT.items()
        if not htsim and float(run.settings.get(name, value)) != value
    ]
    missing = [name for name in _needed(run) if name not in run.settings]
    checks = (
        (run.measured.goodput is None and run.measured.done == 0, "the simulator itself ended no flow"),
        (htsim and run.protocol in _WITHOUT_RULE, _WITHOUT_RULE.get(run.protocol, "")),
        (_rule(run) is None, f"no rule for the protocol {run.protocol!r}"),
        (bool(odd), ", ".join(odd)),
        (
            htsim and run.protocol == "swift" and len(np.unique(run.demand.dst)) > 1,
            "htsim's Swift keeps each flow to one path, which is not recorded",
        ),
        (
            not htsim and not run.single_path,
            f"load balancing {run.balancing!r}: the engine has single paths and random spraying",
        ),
        (bool(missing), f"setting {', '.join(missing)} is not recorded"),
        (
            not htsim and not missing and _curve(run) is None,
            "ECN thresholds that are not in proportion to the rates of the ports",
        ),
    )
    return next((reason for applies, reason in checks if applies), None)


def _rule(run: ReferenceRun) -> tuple[str, dict[str, tuple[str, Callable[[object], float]]]] | None:
    """Return the engine's protocol for a run and the names of its parameters; None: it has none."""
    if run.protocol in SETTINGS:
        return SETTINGS[run.protocol]
    if run.simulator == "htsim":
        return SETTINGS["roce_ecmp"] if _roce(run) else None
    mode = run.settings.get("CC_MODE")
    return SETTINGS[_BY_MODE[mode]] if mode in _BY_MODE else None


def _roce(run: ReferenceRun) -> bool:
    """Return whether a run is one of htsim's lossless RoCE; its other protocols drop or trim."""
    return run.simulator == "htsim" and run.protocol.startswith("roce")


def _needed(run: ReferenceRun) -> tuple[str, ...]:
    """Return the settings without which the engine would have to guess."""
    if run.simulator != "htsim":
        return ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP") if run.settings.get("ENABLE_QCN", 1) else ()
    if _roce(run):
        return ("pfc_packets",)
    if run.protocol.startswith(("nscc", "dctcp")):
        return ("network_rtt_us", "ecn_low_bytes", "ecn_high_bytes")
    if run.protocol.startswith("rccc"):
        return ("network_rtt_us",)
    return ("queue_packets",) + (("initial_window_packets",) if run.protocol != "eqds" else ())


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
    rule = _rule(run)
    if rule is None:
        message = f"run {run.name}: no rule for the protocol {run.protocol!r}"
        raise ModelRangeError(message, hint=did_you_mean(run.protocol, SETTINGS))
    protocol, names = rule
    values = {
        ours: unit(run.settings[theirs]) for theirs, (ours, unit) in names.items() if theirs in run.settings
    }
    if run.simulator == "htsim":
        values |= _htsim_values(run)
    return run_flows(
        network(run),
        flows(run, seed=seed),
        PROTOCOLS.find(protocol),
        values,
        options(run, seed=seed, step=step),
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
    first, _ = _cables(run)
    peak, mean = np.zeros(len(run.links.src)), np.zeros(len(run.links.src))
    np.maximum.at(peak, first, out.peak_queue)
    np.maximum.at(mean, first, out.mean_queue)
    return ModelRun(times, goodput, peak, mean, bool(out.pauses.sum() > 0))


def _speed_up(run: ReferenceRun) -> float:
    """Return by how much the simulator's clock makes links faster than they are: packets keep their bytes."""
    return run.wire_bytes / run.as_timed(run.wire_bytes)


def _htsim_values(run: ReferenceRun) -> dict[str, float]:
    """Return the parameters that htsim's programs have built in, or take from their command line.

    EQDS and NDP are receiver credits with other constants (``sim/eqds.cpp``, ``sim/ndp.cpp`` of
    Broadcom/csg-htsim): EQDS lets a flow begin with 50 packets of credit and grants 4,096 bytes in the
    time of 0.99 x (packet + 38) bytes; NDP begins with its window, is called for one packet by each
    that arrives, trimmed or not, at 0.99 of the link, and takes nothing of the first window back.
    """
    packet = run.wire_bytes
    bdp = float(_line(run)) * _htsim_rtt(run)
    if run.protocol.startswith("nscc"):
        return {"target": 0.75 if run.settings.get("trims", True) else 1.0}
    if run.protocol == "eqds":
        pull = 4096 / packet
        return {
            "speculative": 50 * packet / bdp,
            "pull": pull,
            "pull_rate": pull * packet / (0.99 * (packet + 38)),
            "shared": 0.0,
        }
    if run.protocol == "ndp":
        first = float(run.settings["initial_window_packets"])
        return {"speculative": first * packet / bdp, "pull": 1.0, "shared": 0.0, "echo": 1.0}
    if run.protocol == "swift":
        return {"first_window": float(run.settings["initial_window_packets"]) * run.payload_bytes}
    return {}


def _line(run: ReferenceRun) -> float:
    """Return the rate of the slowest host's link [bytes/s]."""
    return float(run.links.capacity[run.links.src < run.links.n_hosts].min())


def _htsim_rtt(run: ReferenceRun) -> float:
    """Return the round trip that htsim takes for its empty network's [s]."""
    if "network_rtt_us" in run.settings:
        return float(run.settings["network_rtt_us"]) * _US
    return float((run.latency + run.ack_latency).max())


def network(run: ReferenceRun) -> Network:
    """Return the run's links with the rules of its switches."""
    links = run.links
    n_nodes = int(max(links.src.max(), links.dst.max())) + 1
    first, strands = _cables(run)
    return Network(
        rate=links.capacity[first] / strands[first] * _speed_up(run),
        delay=links.delay[first],
        src=links.src[first],
        dst=links.dst[first],
        is_switch=np.arange(n_nodes) >= links.n_hosts,
        profile=profile(run),
    )


def _cables(run: ReferenceRun) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the recorded link of each of the engine's, and how many each recorded one stands for.

    htsim's topologies whose names end in ``b4`` have four parallel cables where one is recorded. The others
    come behind the recorded ones, both directions of a cable together.
    """
    n_links = len(run.links.src)
    bundle = re.search(r"_b(\d+)(_|$)", run.topology)
    if run.simulator != "htsim" or bundle is None or run.single_path:
        return np.arange(n_links), np.ones(n_links, np.int64)
    faster = np.rint(run.links.capacity / _line(run)).astype(np.int64)
    strands = np.where(faster % int(bundle[1]) == 0, int(bundle[1]), 1)
    more = np.repeat(np.arange(0, n_links, 2), strands[::2] - 1)
    return np.concatenate([np.arange(n_links), np.column_stack([more, more + 1]).ravel()]), strands


def _every_path(
    run: ReferenceRun, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all shortest paths of each flow: flow pointer, path pointer, links.

    A flow with one recorded path has that one. Where a sender goes through path identifiers, each of them
    is one of the paths, by chance.
    """
    if run.single_path:
        return np.arange(run.n_flows + 1), run.paths.ptr, run.paths.link
    first, _ = _cables(run)
    parallel: dict[int, list[int]] = defaultdict(list)
    for link, recorded in enumerate(first.tolist()):
        parallel[recorded].append(link)
    draw = np.random.default_rng([seed, run.seed or 0])
    rows: list[list[int]] = []
    flow_ptr = [0]
    known: dict[tuple[int, int], list[list[int]]] = {}
    for f, pair in enumerate(zip(run.demand.src.tolist(), run.demand.dst.tolist(), strict=True)):
        if pair not in known:
            usable = [strand for link in run.paths.row(f).tolist() for strand in parallel[link]]
            known[pair] = _walks(run, first, usable, *pair)
        ways = known[pair]
        if run.protocol in _PATH_IDS:
            ways = [ways[way] for way in draw.integers(len(ways), size=_PATH_IDS[run.protocol])]
        rows += ways
        flow_ptr.append(len(rows))
    lengths = [len(row) for row in rows]
    links = np.array([link for row in rows for link in row], np.int64)
    return np.array(flow_ptr), np.concatenate([[0], np.cumsum(lengths)]), links


def _walks(
    run: ReferenceRun, first: NDArray[np.int64], links: list[int], src: int, dst: int
) -> list[list[int]]:
    """Return all ways from one host to another over links that lie on shortest paths."""
    onward: dict[int, list[int]] = defaultdict(list)
    for link in links:
        onward[int(run.links.src[first[link]])].append(link)
    done: list[list[int]] = []
    begun: list[tuple[int, list[int]]] = [(src, [])]
    while begun:
        node, way = begun.pop()
        if node == dst:
            done.append(way)
            continue
        begun += [(int(run.links.dst[first[link]]), [*way, link]) for link in reversed(onward[node])]
    return done


def flows(run: ReferenceRun, *, seed: int = 0) -> Flows:
    """Return the run's flows; acknowledgements have the bytes that they hold a link for."""
    demand = run.demand
    waiting = np.flatnonzero(demand.after >= 0)
    flow_ptr, path_ptr, path_link = _every_path(run, seed)
    back_ptr, back_link = run.ack_paths.ptr, run.ack_paths.link
    if not run.single_path:  # each packet's acknowledgement goes back on the cables it came by
        back = [path_link[first:last][::-1] ^ 1 for first, last in pairwise(path_ptr)]
        back_ptr, back_link = path_ptr, np.concatenate(back)
    return Flows(
        size=demand.size,
        start=np.where(demand.after >= 0, 0.0, demand.start),
        flow_ptr=flow_ptr,
        path_ptr=path_ptr,
        path_link=path_link,
        back_ptr=back_ptr,
        back_link=back_link,
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
    selective = run.simulator == "htsim" and not _roce(run)  # trimmed, or told one by one
    if selective:
        base_rtt = _htsim_rtt(run)
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
        acks_wait=run.simulator == "hpcc" or _roce(run),
        depends_on_ack=run.waits_for_ack,
        window=window,
        window_follows_rate=bool(settings.get("VAR_WIN", 0)),
        base_rtt=base_rtt,
        go_back_n=not (lossy or selective),
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
    ecn, scales = _curve(run) or (EcnCurve(np.inf, np.inf, 1.0), False)
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
        reference_rate=_line(run) * _speed_up(run),
        ecn_scales=scales,
        headroom_factor=preset.headroom_factor if run.lossless else 0.0,  # the records say: none without PFC
        alpha_doubles=preset.alpha_doubles,
        source=preset.source,
    )


def _curve(run: ReferenceRun) -> tuple[EcnCurve, bool] | None:
    """Return the ECN curve of a port as fast as the hosts, and whether it grows with the rate.

    The simulators keep a map of Kmin, Kmax and Pmax by rate. None: the maps say of the rates that are in
    use something else than one curve, or one in proportion to the rate.
    """
    settings = run.settings
    if not settings.get("ENABLE_QCN", 1):
        return EcnCurve(np.inf, np.inf, 1.0), False

    def by_rate(name: str) -> dict[float, float]:
        words = str(settings[name]).split()[1:]
        return {float(rate): float(value) for rate, value in zip(words[::2], words[1::2], strict=True)}

    kmin, kmax, pmax = by_rate("KMIN_MAP"), by_rate("KMAX_MAP"), by_rate("PMAX_MAP")
    used = np.unique(np.concatenate([run.paths.link, run.ack_paths.link]))
    forward = used[run.links.src[used] >= run.links.n_hosts]
    rates = sorted({round(float(rate) * 8) for rate in run.links.capacity[forward]})
    if any(rate not in kmin for rate in rates):
        rates = [rate for rate in rates if rate in kmin] or [round(min(kmin))]
    first = rates[0]
    curve = EcnCurve(kmin[first] * 1e3, kmax[first] * 1e3, pmax[first])
    same = all((kmin[r], kmax[r]) == (kmin[first], kmax[first]) for r in rates)
    grows = all(
        np.isclose([kmin[r], kmax[r]], np.array([kmin[first], kmax[first]]) * r / first).all() for r in rates
    )
    if any(pmax[r] != pmax[first] for r in rates) or not (same or grows):
        return None
    return (curve, False) if same else (curve.scaled(_line(run) * 8 / first), True)


def _htsim_profile(run: ReferenceRun) -> SwitchProfile:
    """Return htsim's queues: lossless inputs with two thresholds in packets, or outputs of some length."""
    if not _roce(run):
        return _htsim_lossy_profile(run)
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


def _htsim_lossy_profile(run: ReferenceRun) -> SwitchProfile:
    """Return output queues of a length, in packets or round trips, that trim or drop what is too much."""
    settings = run.settings
    if "queue_packets" in settings:
        limit = float(settings["queue_packets"]) * float(settings.get("mtu", run.wire_bytes))
    else:
        limit = float(settings.get("queue_bdp", 1.0)) * _htsim_rtt(run) * _line(run)
    low, high = settings.get("ecn_low_bytes", np.inf), settings.get("ecn_high_bytes", np.inf)
    return SwitchProfile(
        name="htsim-lossy",
        ecn=EcnCurve(float(low), float(high), 1.0),
        pfc=PfcThresholds("static", xoff_bytes=1e12),
        buffer=SwitchBuffer(1e12, reserved_bytes=0.0, lossless=False, queue_limit_bytes=limit),
        reference_rate=_line(run),
        ecn_scales=True,
        source="ultraethernet/uet-htsim compositequeue.cpp",
    )
