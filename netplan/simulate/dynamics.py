"""A phase under a congestion control: rates, queues and pauses over time instead of max-min at once.

The phase's QPs (`netplan.simulate.senders`) run through the time-domain engine
(`netplan.congestion.dynamics`). How much of it is run follows from the number of events it would
take:

* *whole*: up to `MOST_EVENTS` events, or with ``exact``, everything is run to its end;
* *scaled*: of a phase of many bytes a part ``s`` is run, with all starts times ``s``; what is left takes
  what it would by max-min, over the throughput that the protocol reached at the sender's bottleneck::

      finish(1) = finish(s) + (1 - s) T / E    T: time by max-min
      E = what its senders got together between 45 and 90 % of their bytes / their max-min rates

  so that who is ahead at a bottleneck does not stay ahead, which is right in the mean and for rings. Pauses,
  marks and lost bytes go on in proportion. A protocol that still speeds up (DCQCN does for 100 ms at 400G) is
  held slower than it becomes;
* *parts* (`netplan.simulate.parts`): a phase of many senders falls into components or bottlenecks,
  of which equal ones are run once, whole or scaled.

A run that has not ended after `PATIENCE` times its max-min time is given up: flows that have not
ended are said to be stuck, and the result is refused.

Acknowledgements: one for each packet, with the packet's headers and an AETH, on the way back, as in
the simulators that the engine is compared with (NICs that join acknowledgements need less).
Telemetry in packets (42 bytes with HPCC) is not counted as header.

Losses: where all switches pause, a packet lost all the same brings go-back-N; where some do not, senders
repeat what was lost alone (selective repeat, as later NICs do). Timeouts are modelled where a PFC watchdog
may drop a flow's last packets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import (
    STEPS_PER_RTT,
    STEPS_PER_TIMER,
    Flows,
    Network,
    Options,
    Outcome,
    run_flows,
    sends_single_packets,
)
from netplan.congestion.switch import SwitchProfile
from netplan.errors import ModelRangeError
from netplan.fabric.columns import freeze_arrays
from netplan.units import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Engine

__all__ = [
    "LARGEST_EXACT",
    "MOST_EVENTS",
    "Control",
    "Series",
    "Traced",
    "engine_step",
    "estimate_events",
    "run_scaled",
    "run_whole",
]

#: Events that are run without shortening anything: some ten seconds.
MOST_EVENTS = 1e8

#: Events above which even ``exact`` is refused: the better part of an hour.
LARGEST_EXACT = 3e10

#: A run ends after this many times what max-min takes.
PATIENCE = 50.0

#: Where a PFC watchdog may drop a flow's last packets, which no later one tells of, a sender without news
#: for this long sends again [s]: 4.096 us * 2^14, the InfiniBand timeout value 14 that RoCE NICs begin with.
TIMEOUT_S = 4.096e-6 * 2**14

#: Samples of a series.
SAMPLES = 400

#: Samples before the first sender ends, below which rates are means over each sender's time.
_COARSE = 4

#: Between these parts of their bytes the throughput of senders is taken.
_MIDDLE = (0.45, 0.9)


@dataclass(frozen=True)
class Control:
    """A protocol with what it is told."""

    cc: CongestionControl
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Where they are not its defaults, in SI units."""
    seed: int = 0
    step: float | None = None
    """Longest train [s]; None: the engine's own."""
    exact: bool = False
    engine: Engine = run_flows
    """What runs flows: the train engine, or a packet simulator that takes and gives the same."""

    @property
    def is_packets(self) -> bool:
        """Whether a packet simulator runs."""
        return self.engine is not run_flows

    @staticmethod
    def of(name: str, parameters: Mapping[str, float], **rest: Any) -> Control:  # noqa: ANN401
        """Find a protocol and check its parameters.

        Raises
        ------
        ModelRangeError
            No such protocol or parameter, or a value out of range.
        """
        cc = PROTOCOLS.find(name)
        cc.values(parameters)
        return Control(cc, parameters, **rest)


@dataclass(frozen=True, eq=False)
class Series:
    """What happened over time."""

    time: NDArray[np.float64]
    """(n_samples,) [s]."""
    received: NDArray[np.float64]
    """(n_samples, n_senders) payload bytes received by then."""
    queue: NDArray[np.float64]
    """(n_samples, n_watched) bytes that waited."""
    paused: NDArray[np.float64]
    """(n_samples, n_links) part of the time since the sample before that each link was paused, 0 to 1;
    no links where no series was asked for."""


@dataclass(frozen=True, eq=False)
class Traced:
    """What became of some senders and of the links that they used."""

    finish: NDArray[np.float64]
    """(n_senders,) when the last byte arrived [s], latency included; inf: never."""
    rate: NDArray[np.float64]
    """(n_senders,) payload per second from its begin until the first of the senders ended [bytes/s]."""
    size: NDArray[np.float64]
    """(n_senders,) payload that was run [bytes]."""
    peak_queue: NDArray[np.float64]
    """(n_links,) most bytes that waited."""
    mean_queue: NDArray[np.float64]
    """(n_links,) bytes that waited, mean over the run."""
    pauses: NDArray[np.float64]
    """(n_links,) pauses asked for by the node at the link's end."""
    paused: NDArray[np.float64]
    """(n_links,) time paused [s]."""
    lost: NDArray[np.float64]
    """(n_links,) payload bytes dropped before the link."""
    storms: float
    """Times that the PFC watchdog took a queue."""
    marks: float
    """Marked packets received."""
    resent: float
    """Payload bytes sent again."""
    end: float
    """When the run ended [s]."""
    events: int
    step: float
    """Step of the engine [s]."""
    scale: float = 1.0
    """Part of the bytes that was run."""
    series: Series | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)


def windows(
    control: Control, network: Network, flows: Flows, limit: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the window of each sender at line rate [bytes]; 0: none.

    The protocol's own (a multiple of line rate x round trip of the sender's first path), or the
    demand's where that is less.
    """
    own = np.full(len(flows.size), np.inf)
    if control.cc.window_bdp > 0:
        first = flows.flow_ptr[:-1]
        line = network.rate[flows.path_link[flows.path_ptr[first]]]
        own = control.cc.window_bdp * line * round_trips(network, flows)
    least = np.minimum(own, limit)
    return np.where(np.isfinite(least), np.maximum(least, 1.0), 0.0)


def round_trips(network: Network, flows: Flows) -> NDArray[np.float64]:
    """Return the round trip of a packet on each sender's first path, nothing waiting [s]."""
    packet = flows.payload + flows.header
    forth = network.delay + packet / network.rate
    back = network.delay + flows.ack_bytes / network.rate
    there = np.add.reduceat(forth[flows.path_link], flows.path_ptr[:-1])
    home = np.add.reduceat(back[flows.back_link], flows.back_ptr[:-1])
    return np.asarray((there + home)[flows.flow_ptr[:-1]], np.float64)


def estimate_events(
    control: Control, network: Network, flows: Flows, rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how many events each sender takes, about.

    A train at every step at its max-min rate, but at least one packet; two events for each hop of a
    train, its acknowledgement and its begin.
    """
    packet = flows.payload + flows.header
    first = flows.flow_ptr[:-1]
    hops = np.diff(flows.path_ptr)[first]
    step = engine_step(control, round_trips(network, flows))
    load = np.maximum(np.floor(rate * step / packet + 0.5), 1.0) * flows.payload
    return np.asarray(np.ceil(flows.size / load) * (2.0 * hops + 2.0), np.float64)


def engine_step(control: Control, rtt: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step of each sender [s] by its round trip [s] and the protocol's timer.

    Thresholds and headroom of switches may shorten it further.
    """
    if control.step is not None:
        return np.full(len(rtt), control.step)
    if sends_single_packets(control.cc):
        return np.zeros(len(rtt))
    timer = control.cc.shortest_timer(control.cc.values(control.parameters))
    return np.minimum(rtt / STEPS_PER_RTT, timer / STEPS_PER_TIMER)


def run_whole(
    control: Control,
    network: Network,
    flows: Flows,
    rate: NDArray[np.float64],
    *,
    limit: NDArray[np.float64],
    scale: float = 1.0,
    watch: tuple[int, ...] | None = None,
) -> Traced:
    """Run senders to their end, with their bytes and starts times ``scale``.

    Parameters
    ----------
    control
        The protocol.
    network, flows
        As the engine takes them.
    rate : (n,) float64
        Max-min rate of each sender [bytes/s]: decides when to give up.
    limit : (n,) float64
        Window of the demand [bytes]; inf: none.
    scale
        Part of the bytes that is sent, in (0, 1].
    watch
        Links whose queues are sampled; None: no series.

    Raises
    ------
    ModelRangeError
        Senders that never end.
    """
    cc = control.cc
    if scale < 1:
        flows = replace(flows, size=np.maximum(flows.size * scale, 1.0), start=flows.start * scale)
    rtt = round_trips(network, flows)
    expected = float((flows.start + flows.size / rate).max() + rtt.max())
    out = control.engine(
        network,
        flows,
        cc,
        control.parameters,
        Options(
            seed=control.seed,
            step=control.step,
            end=PATIENCE * expected,
            sample=1.2 * expected / SAMPLES,
            watch=watch or (),
            watch_pauses=watch is not None,
            acks_wait=cc.acks_wait,
            window=windows(control, network, flows, limit),
            window_follows_rate=cc.acts_on == "window",
            go_back_n=_all_pause(network),
            timeout=TIMEOUT_S if _is_watched(network) else 0.0,
        ),
    )
    ended = np.isfinite(out.received)
    if not ended.all():
        raise ModelRangeError(
            f"under {cc.name} {int((~ended).sum()):,} of {len(ended):,} QPs have not ended"
            f" after {format_time(out.end)}, {PATIENCE:g} times what max-min rates take ({out.status})",
            hint="buffers that drop, a rate that never recovers, or a deadlock: netplan tune, netplan check",
        )
    return _traced(out, flows, _early_rates(out, flows, rtt, _series(out)), scale, _series(out))


def _all_pause(network: Network) -> bool:
    """Whether every switch pauses instead of dropping."""
    one = network.profile
    profiles = [one] if isinstance(one, SwitchProfile) else one
    return all(profile is None or profile.buffer.lossless for profile in profiles)


def _is_watched(network: Network) -> bool:
    """Whether a watchdog may drop what nobody else would."""
    one = network.profile
    profiles = [one] if isinstance(one, SwitchProfile) else one
    return any(profile is not None and profile.watchdog is not None for profile in profiles)


def _early_rates(out: Outcome, flows: Flows, rtt: NDArray[np.float64], series: Series) -> NDArray[np.float64]:
    """Return what each sender got while all of them were there: until the first of them ended.

    A sender that shares with none, or senders that begin at different times, have their mean over their time.
    """
    whole = np.asarray(flows.size / np.maximum(out.received - flows.start - rtt / 2, 1e-12), np.float64)
    first = float(out.received.min())
    if len(whole) == 1 or np.ptp(flows.start) > 0 or np.searchsorted(series.time, first) < _COARSE:
        return whole
    got = np.array([np.interp(first, series.time, column) for column in series.received.T])
    return np.asarray(got / np.maximum(first - flows.start - rtt / 2, 1e-12), np.float64)


def throughput(traced: Traced, rows: NDArray[np.int64]) -> float:
    """Return what some senders got together in the middle of their time [bytes/s].

    From when 45 % of their bytes were there to when 90 % were: begin and stragglers left out.
    """
    assert traced.series is not None
    time = np.concatenate([[0.0], traced.series.time])
    total = np.concatenate([[0.0], traced.series.received[:, rows].sum(axis=1)])
    whole = float(traced.size[rows].sum())
    begin, end = (float(np.interp(part * whole, total, time)) for part in _MIDDLE)
    if total[-1] < _MIDDLE[1] * whole or np.searchsorted(time, end) < _COARSE or end <= begin:
        return whole / float(traced.finish[rows].max())
    return (_MIDDLE[1] - _MIDDLE[0]) * whole / (end - begin)


def _series(out: Outcome) -> Series:
    since = np.diff(out.sample_time, prepend=0.0)
    paused = np.diff(out.sample_paused, axis=0, prepend=0.0) / since[: len(out.sample_paused), None]
    return Series(out.sample_time, out.sample_received, out.sample_queue, np.clip(paused, 0.0, 1.0))


def _traced(
    out: Outcome,
    flows: Flows,
    rate: NDArray[np.float64],
    scale: float,
    series: Series,
) -> Traced:
    return Traced(
        finish=out.received,
        rate=rate,
        size=flows.size,
        peak_queue=out.peak_queue,
        mean_queue=out.mean_queue,
        pauses=out.pauses.astype(np.float64),
        paused=out.paused,
        lost=np.asarray(out.drops * flows.payload, np.float64),
        storms=float(out.storms.sum()),
        marks=float(out.marks.sum()),
        resent=float(out.resent.sum()),
        end=out.end,
        events=out.events,
        step=out.step,
        scale=scale,
        series=series,
    )


def run_scaled(
    control: Control,
    network: Network,
    flows: Flows,
    rate: NDArray[np.float64],
    *,
    limit: NDArray[np.float64],
    scale: float,
    bottleneck: NDArray[np.int64],
    by_max_min: NDArray[np.float64],
) -> Traced:
    """Run senders with a part ``scale`` of their bytes, and go on at the throughput reached.

    Parameters
    ----------
    control, network, flows, rate, limit
        As in `run_whole`.
    scale
        Part of the bytes, in (0, 1); 1 and above: run whole.
    bottleneck : (n,) int64
        What holds each sender back by max-min; equal numbers share.
    by_max_min : (n,) float64
        How long each takes by max-min, latency aside [s].
    """
    if scale >= 1:
        return run_whole(control, network, flows, rate, limit=limit)
    part = run_whole(control, network, flows, rate, limit=limit, scale=scale)
    _, place = np.unique(bottleneck, return_inverse=True)
    reached = np.array(
        [
            throughput(part, rows) / float(rate[rows].sum())
            for rows in (np.flatnonzero(place == k) for k in range(int(place.max()) + 1))
        ]
    )
    left = (1 - scale) * by_max_min / np.clip(reached[place], 1 / PATIENCE, 1.0)
    begun = part.finish + flows.start * (1 - scale)
    finish = _bounded(network, flows, begun + left)
    return replace(
        part,
        finish=finish,
        pauses=part.pauses / scale,
        storms=part.storms / scale,
        paused=part.paused / scale,
        lost=part.lost / scale,
        marks=part.marks / scale,
        resent=part.resent / scale,
        end=float(finish.max()),
    )


def _bounded(network: Network, flows: Flows, finish: NDArray[np.float64]) -> NDArray[np.float64]:
    """Let no link have carried its bytes sooner than it can."""
    paths = np.diff(flows.flow_ptr)
    owner = np.repeat(np.arange(len(paths)), paths)
    entry = np.repeat(owner, np.diff(flows.path_ptr))
    wire = flows.size * (flows.payload + flows.header) / flows.payload / paths
    n = len(network.rate)
    busy = np.bincount(flows.path_link, wire[entry], minlength=n) / network.rate
    last = np.zeros(n)
    np.maximum.at(last, flows.path_link, finish[entry])
    begin = np.full(n, np.inf)
    np.minimum.at(begin, flows.path_link, flows.start[entry])
    with np.errstate(divide="ignore", invalid="ignore"):
        late = np.where(last > 0, (busy + begin) / last, 1.0)
    factor = np.ones(len(paths))
    np.maximum.at(factor, entry, late[flows.path_link])
    return finish * factor


def refuse_absurd(events: float, asked: str = "--exact") -> None:
    """Say that a whole run would take too long.

    Raises
    ------
    ModelRangeError
        It takes more than `LARGEST_EXACT` events.
    """
    if events > LARGEST_EXACT:
        raise ModelRangeError(
            f"{asked} would take about {events:.1e} events, {format_time(events / 1e7)} at 1e7 a second: at"
            f" most {LARGEST_EXACT:.0e} are accepted",
            hint="without it the phase is run by its parts; or make sizes or ranks smaller",
        )


def scale_for(events: float, budget: float = MOST_EVENTS) -> float:
    """Return the part of the bytes that fits a budget of events."""
    return min(budget / events, 1.0)
