"""Rates, queues and pauses over time: flows under a congestion control on the links of a fabric.

This is the front of the train engine (`netplan.kernels.trains`, whose docstring has the equations):
it turns a `Network`, `Flows` and a protocol into tables, runs them, and reads the result back.

The step. Packets that a flow sends within one step travel together as one train, and at least one
packet. What the loop must resolve sets the step::

    step = min(RTT / 32, shortest timer of the protocol / 8,
               Kmin / (16 C), headroom / (8 C))       least over the links in use, C their rates

of each flow with its own RTT. Single packets are sent where that is less than two at the flow's share of
its NIC; by protocols that read telemetry, whose balance depends on the grain of what they read; and by
TIMELY, which acts on the difference of two round trips, so that where in a train it looks decides (trains
of six packets moved completions by 3 %, of three by 1.3 %). A train is thus small against the round trip,
against the time between two cuts, against the queue at which marking begins and against the room a pause
has. Halving it changes completion times by less than 1 %, where marks are random in the mean over seeds
(tested: incast, permutation, all-to-all, ring, 30 km), and `step=0` sends single packets. A step longer
than a quarter of the shortest round trip is refused: the loop would be slower than the trains.

Not modelled: loss by bit errors; NIC and PCIe limits; more than one priority (acknowledgements either
overtake data or queue with it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from netplan.congestion.switch import SwitchProfile
from netplan.errors import ModelRangeError
from netplan.kernels import trains_state as col
from netplan.kernels.trains import FINISHED, NEEDS_ROWS, STUCK, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from netplan.congestion.cc.registry import CongestionControl

    Engine: TypeAlias = Callable[
        ["Network", "Flows", CongestionControl, Mapping[str, float], "Options"], "Outcome"
    ]
    _Tables: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]

__all__ = [
    "Flows",
    "Network",
    "Options",
    "Outcome",
    "link_tables",
    "round_trips",
    "run_flows",
    "sends_single_packets",
]

#: Steps in the shortest round trip, in the shortest timer, in Kmin and in the headroom.
STEPS_PER_RTT, STEPS_PER_TIMER, STEPS_PER_KMIN, STEPS_PER_HEADROOM = 32, 8, 16, 8

#: Packets that are worth a train.
_LEAST_TRAIN = 2.0

#: Buckets of the calendar, a power of two.
_BUCKETS = 1 << 13

#: Longest series.
_MOST_SAMPLES = 100_000

#: Bytes of a pause frame on the wire.
_PAUSE_BYTES = 64.0


@dataclass(frozen=True, eq=False)
class Network:
    """Links between nodes, and what the switches among them do."""

    rate: NDArray[np.float64]
    """(n_links,) capacity of each directed link [bytes/s], > 0."""
    delay: NDArray[np.float64]
    """(n_links,) from the first bit in to the first bit out, with the switch behind it [s], >= 0."""
    src: NDArray[np.int64]
    """(n_links,) node that sends."""
    dst: NDArray[np.int64]
    """(n_links,) node that receives."""
    is_switch: NDArray[np.bool_]
    """(n_nodes,) whether the node forwards."""
    profile: SwitchProfile | Sequence[SwitchProfile | None]
    """Rules of all switches, or one for each node (None: a host)."""


@dataclass(frozen=True, eq=False)
class Flows:
    """What is to be sent, on which paths."""

    size: NDArray[np.float64]
    """(n_flows,) payload [bytes], > 0."""
    start: NDArray[np.float64]
    """(n_flows,) when it starts, or how long after the last flow it waits for [s]."""
    flow_ptr: NDArray[np.int64]
    """(n_flows + 1,) flow f may use paths ``flow_ptr[f]:flow_ptr[f + 1]``; several: each train draws one."""
    path_ptr: NDArray[np.int64]
    """(n_paths + 1,) CSR of `path_link`."""
    path_link: NDArray[np.int64]
    """Links of each path, from the NIC to the receiver."""
    back_ptr: NDArray[np.int64]
    """(n_paths + 1,) CSR of `back_link`."""
    back_link: NDArray[np.int64]
    """Links that the acknowledgements of a path take."""
    payload: float = 1000.0
    """Bytes of a full packet that are the application's."""
    header: float = 48.0
    """Bytes of a packet beyond them, on the wire."""
    ack_bytes: float = 60.0
    """Bytes on the wire of one packet's acknowledgement; 0: they cost nothing."""
    after: NDArray[np.int64] | None = None
    """(n, 2) pairs: the second flow starts once the first has ended."""
    chunk: float = 0.0
    """With `gated_by`: bytes that a flow may send before it needs the flow that gates it."""
    gated_by: NDArray[np.int64] | None = None
    """(n_flows,) flow whose k-th received chunk lets this one send its chunk k + 1; -1: none."""


@dataclass(frozen=True)
class Options:
    """How to run."""

    seed: int = 0
    step: float | None = None
    """Longest time one train stands for [s]; 0: single packets; None: from each flow's round trip."""
    ordered: bool = False
    """Do events in the order of time to the last digit, not to a quarter of a packet: slower."""
    end: float = np.inf
    """Stop here [s]."""
    sample: float = 0.0
    """Time between samples of the series [s]; 0: no series."""
    watch: tuple[int, ...] = ()
    """Links whose queue is sampled."""
    watch_pauses: bool = False
    """Sample also how long each link has been paused."""
    acks_wait: bool = False
    """Acknowledgements queue with data instead of overtaking it."""
    depends_on_ack: bool = False
    """A dependent flow starts at the last acknowledgement of its predecessor, not at its last byte."""
    window: NDArray[np.float64] | float = 0.0
    """Payload bytes that a flow at line rate may have outstanding; 0: no limit."""
    window_follows_rate: bool = True
    """The window shrinks with the rate."""
    base_rtt: NDArray[np.float64] | float = 0.0
    """Round trip that a protocol takes for an empty network's [s]; 0: that of each flow's path."""
    go_back_n: bool = True
    """Lost: all that came after is sent again. Else what was lost alone, once the sender hears of it as
    if the header had gone on (packet trimming; with IRN the next packets tell it)."""
    nack_gap: float = 500e-6
    """Time between two NACKs for the same packet [s]."""
    timeout: float = 0.0
    """A sender without news for this long sends again what is not acknowledged [s]; 0: it waits for ever.
    With selective repeat a sender is told of each loss, and needs none."""
    cnp_gap: float = 0.0
    """Time between two CNPs of a receiver for a flow [s]."""
    telemetry_bytes: float = 1.0
    """Grain of the byte count in telemetry [bytes]."""
    telemetry_queue: float = 1.0
    """Grain of the queue in telemetry [bytes]."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of flows and links."""

    received: NDArray[np.float64]
    """(n_flows,) when the last byte arrived [s]; inf: never."""
    finish: NDArray[np.float64]
    """(n_flows,) when the last acknowledgement was back [s]; inf: never."""
    started: NDArray[np.float64]
    """(n_flows,) when it began [s]."""
    delivered: NDArray[np.float64]
    """(n_flows,) payload bytes received."""
    marks: NDArray[np.int64]
    """(n_flows,) marked packets received."""
    cuts: NDArray[np.int64]
    """(n_flows,) times the sender lowered its rate."""
    resent: NDArray[np.float64]
    """(n_flows,) payload bytes sent again."""
    peak_queue: NDArray[np.float64]
    """(n_links,) most bytes that ever waited for the link."""
    mean_queue: NDArray[np.float64]
    """(n_links,) bytes that waited, mean over the run."""
    carried: NDArray[np.float64]
    """(n_links,) bytes sent, headers and acknowledgements with them."""
    pauses: NDArray[np.int64]
    """(n_links,) pauses asked for by the node at the link's end."""
    paused: NDArray[np.float64]
    """(n_links,) time that the link was paused [s]."""
    drops: NDArray[np.int64]
    """(n_links,) packets dropped before the link."""
    storms: NDArray[np.int64]
    """(n_links,) times that the PFC watchdog took the link's queue."""
    end: float
    """When the run ended [s]."""
    status: str
    """finished, time-up or stuck."""
    events: int
    step: float
    """Shortest step used [s]."""
    sample_time: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """(n_samples,) times of the series [s]."""
    sample_received: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """(n_samples, n_flows) payload bytes received by then."""
    sample_queue: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """(n_samples, n_watched) bytes waiting then."""
    sample_paused: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """(n_samples, n_links) time that each link has been paused by then [s]; no links: not asked for."""


def run_flows(
    network: Network,
    flows: Flows,
    cc: CongestionControl,
    parameters: Mapping[str, float] | None = None,
    options: Options | None = None,
) -> Outcome:
    """Run flows to their end under a congestion control.

    Parameters
    ----------
    network, flows
        The links, and what is sent over them.
    cc
        The protocol, see `netplan.congestion.cc`.
    parameters
        Its parameters, by name, where they are not its defaults.
    options
        How to run.

    Returns
    -------
    Outcome
        Completion times, queues, pauses and, where asked for, series.

    Raises
    ------
    ModelRangeError
        A parameter that the protocol does not have, a step too long for the shortest round trip,
        a negative delay, a path that does not begin where its flow's others do.
    """
    options = options or Options()
    _check(network, flows)
    rtt = round_trips(network, flows)
    values = cc.values(parameters or {})
    link, link_int, node, node_int = link_tables(network)
    steps = _steps(options, rtt, cc, values, link[np.unique(flows.path_link)])
    trains = _trains(steps, flows, network.rate)
    world = _world(flows, cc, values, options, rtt, trains, (link, link_int, node, node_int))
    while True:
        code = run(world)
        if code != NEEDS_ROWS:
            break
        world = _longer(world)
    return _outcome(world, code, float(steps.min()))


def _check(network: Network, flows: Flows) -> None:
    if np.any(network.delay < 0):
        link = int(np.flatnonzero(network.delay < 0)[0])
        message = f"link {link} has a negative delay ({network.delay[link]:g} s)"
        raise ModelRangeError(message)
    if np.any(network.rate <= 0):
        link = int(np.flatnonzero(network.rate <= 0)[0])
        message = f"link {link} has no capacity ({network.rate[link]:g} bytes/s)"
        raise ModelRangeError(message, hint="leave out links that are down")
    if np.any(flows.size <= 0):
        flow = int(np.flatnonzero(flows.size <= 0)[0])
        message = f"flow {flow} has nothing to send ({flows.size[flow]:g} bytes)"
        raise ModelRangeError(message)
    first = flows.path_link[flows.path_ptr[:-1]]
    own = np.repeat(first[flows.flow_ptr[:-1]], np.diff(flows.flow_ptr))
    if np.any(first != own):
        message = "the paths of one flow begin at different NIC ports"
        raise ModelRangeError(message, hint="make a flow of each port's part")


def round_trips(network: Network, flows: Flows) -> NDArray[np.float64]:
    """Return each flow's round trip on its first path, nothing waiting [s]."""
    packet = flows.payload + flows.header
    forth = network.delay + packet / network.rate
    back = network.delay + flows.ack_bytes / network.rate
    there = np.add.reduceat(forth[flows.path_link], flows.path_ptr[:-1])
    home = np.zeros(len(flows.back_ptr) - 1)
    used = np.diff(flows.back_ptr) > 0
    if used.any():
        home[used] = np.add.reduceat(back[flows.back_link], flows.back_ptr[:-1][used])
    return np.asarray((there + home)[flows.flow_ptr[:-1]], np.float64)


def _steps(
    options: Options,
    rtt: NDArray[np.float64],
    cc: CongestionControl,
    values: NDArray[np.float64],
    links: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return each flow's step [s]: the one asked for, or the longest one that resolves its loop."""
    shortest = float(rtt.min())
    if options.step is not None:
        if not 0 <= options.step <= shortest / 4:
            message = (
                f"step = {options.step:g} s does not fit the shortest round trip ({shortest:g} s):"
                f" 0 to {shortest / 4:g} s is accepted"
            )
            raise ModelRangeError(message, hint="leave it out: it then follows from the round trip")
        return np.full(len(rtt), options.step)
    if sends_single_packets(cc):
        return np.zeros(len(rtt))
    bounds = [cc.shortest_timer(values) / STEPS_PER_TIMER]
    if "ecn" in cc.signals:
        bounds.append(float((links[:, col.L_KMIN] / links[:, col.L_RATE]).min()) / STEPS_PER_KMIN)
    room = links[:, col.L_ROOM] / links[:, col.L_RATE]
    if np.any(room > 0):
        bounds.append(float(room[room > 0].min()) / STEPS_PER_HEADROOM)
    return np.minimum(rtt / STEPS_PER_RTT, min(bounds))


def sends_single_packets(cc: CongestionControl) -> bool:
    """Whether what a protocol reads depends on the grain of trains, so that its packets go one by one."""
    return "int" in cc.signals or cc.code == col.CC_TIMELY


def _trains(steps: NDArray[np.float64], flows: Flows, rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the steps, 0 for flows that send single packets all the same.

    So does a flow that sends less than two packets in a step at its share of the NIC, with all there that
    may begin at once. Left to itself it would send two now and then, when the others have not begun yet:
    that moves the order in which packets meet, and saves no time.
    """
    nic = flows.path_link[flows.path_ptr[flows.flow_ptr[:-1]]]
    begins = np.ones(len(steps), bool)
    if flows.after is not None and len(flows.after):
        begins[np.asarray(flows.after)[:, 1]] = False
    senders = np.maximum(np.bincount(nic[begins], minlength=len(rate)), 1)
    packets = (rate / senders)[nic] * steps / (flows.payload + flows.header)
    return np.where(packets < _LEAST_TRAIN, 0.0, steps)


def _world(
    flows: Flows,
    cc: CongestionControl,
    values: NDArray[np.float64],
    options: Options,
    rtt: NDArray[np.float64],
    steps: NDArray[np.float64],
    tables: _Tables,
) -> col.World:
    """Lay out the tables."""
    link, link_int, node, node_int = tables
    n_flows = len(flows.size)
    flow, flow_int = _flow_tables(flows, options, rtt, link[:, col.L_RATE])
    flow[:, col.F_STEP] = steps
    after_ptr, after = _after(flows, n_flows, flow_int)
    hops = int(np.diff(flows.path_ptr).max())
    uses_int = "int" in cc.signals
    n_rows = 4 * n_flows + 4096  # the first n_flows are for their starts
    train_int = np.zeros((n_rows, col.Q_COLUMNS), np.int64)
    train_int[:, col.Q_NEXT] = np.arange(1, n_rows + 1)
    counter = np.zeros(col.C_COLUMNS, np.int64)
    counter[col.C_BUCKETS] = _BUCKETS
    counter[col.C_FREE] = n_flows
    counter[col.C_N_FREE] = n_rows - n_flows
    counter[col.C_CC] = cc.code
    counter[col.C_SEED] = options.seed
    counter[col.C_ACKS_WAIT] = options.acks_wait
    counter[col.C_RECOVERY] = col.GO_BACK_N if options.go_back_n else col.SELECTIVE
    counter[col.C_DEPENDS_ON_ACK] = options.depends_on_ack
    counter[col.C_USES_INT] = uses_int
    counter[col.C_ORDERED] = options.ordered
    counter[col.C_CREDITS] = np.isfinite(link[:, col.L_CREDIT]).any()
    counter[col.C_VARIABLE_WINDOW] = options.window_follows_rate
    counter[col.C_ROWS] = 8 + (int(np.diff(after_ptr).max()) if len(after) else 0)
    if node_int[:, col.S_WATCHDOG].any():  # a queue that is emptied may let every port of its switch go on
        counter[col.C_ROWS] += int(np.bincount(link_int[:, col.K_DST]).max())
    n_samples = _n_samples(options)
    world = col.World(
        link=link,
        link_int=link_int,
        node=node,
        node_int=node_int,
        flow=flow,
        flow_int=flow_int,
        train=np.zeros((n_rows, col.P_COLUMNS)),
        train_int=train_int,
        telemetry=np.zeros((n_rows, hops, 3) if uses_int else (1, 1, 3)),
        last_telemetry=_hop_rates(flows, link[:, col.L_RATE], hops) if uses_int else np.zeros((1, 1, 4)),
        path_ptr=flows.path_ptr.astype(np.int64),
        path_link=flows.path_link.astype(np.int64),
        back_ptr=flows.back_ptr.astype(np.int64),
        back_link=flows.back_link.astype(np.int64),
        after_ptr=after_ptr,
        after=after,
        head=np.full(_BUCKETS, -1, np.int64),
        tail=np.full(_BUCKETS, -1, np.int64),
        option=_option_row(
            options, float(steps.min()), flows, float(link[np.unique(flows.path_link), col.L_RATE].max())
        ),
        counter=counter,
        parameter=values,
        sampled_flow=np.zeros((n_samples, n_flows)),
        watched=np.asarray(options.watch, np.int64),
        sampled_queue=np.zeros((n_samples, len(options.watch))),
        sampled_pause=np.zeros((n_samples, len(link)) if options.watch_pauses else (0, 0)),
    )
    _enter_starts(world, flows.start)
    return world


def _n_samples(options: Options) -> int:
    if options.sample <= 0:
        return 0
    return (
        int(min(options.end / options.sample, _MOST_SAMPLES)) if np.isfinite(options.end) else _MOST_SAMPLES
    )


def _option_row(options: Options, step: float, flows: Flows, fastest: float) -> NDArray[np.float64]:
    option = np.zeros(col.X_COLUMNS)
    # A quarter of what a packet takes on the fastest link, or of a train.
    option[col.X_WIDTH] = max((flows.payload + flows.header) / fastest, step) / 4
    option[col.X_END] = options.end
    option[col.X_SAMPLE] = options.sample
    option[col.X_NEXT_SAMPLE] = options.sample
    option[col.X_CNP_GAP] = options.cnp_gap
    option[col.X_NACK_GAP] = options.nack_gap
    option[col.X_INT_BYTES] = options.telemetry_bytes
    option[col.X_INT_QUEUE] = options.telemetry_queue
    option[col.X_PAUSE_BYTES] = _PAUSE_BYTES
    option[col.X_TIMEOUT] = options.timeout
    return option


def _flow_tables(
    flows: Flows, options: Options, rtt: NDArray[np.float64], rate: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Lay out the flows before they start."""
    n_flows = len(flows.size)
    nic = flows.path_link[flows.path_ptr[flows.flow_ptr[:-1]]]
    flow = np.zeros((n_flows, col.F_COLUMNS))
    flow[:, col.F_SIZE] = flows.size
    flow[:, col.F_PAYLOAD] = flows.payload
    flow[:, col.F_HEADER] = flows.header
    flow[:, col.F_LINE] = rate[nic]
    flow[:, col.F_RATE] = rate[nic]
    flow[:, col.F_WINDOW0] = options.window
    flow[:, col.F_RTT] = np.where(np.asarray(options.base_rtt) > 0, options.base_rtt, rtt)
    flow[:, col.F_ALLOWED] = np.inf
    flow[:, col.F_START] = flows.start
    flow[:, col.F_RX] = np.inf
    flow[:, col.F_FINISH] = np.inf
    flow[:, col.F_ACK_BYTES] = flows.ack_bytes
    flow[:, col.F_NACK_FOR] = -1.0
    flow[:, col.F_LAST_CNP] = -np.inf
    flow_int = np.zeros((n_flows, col.G_COLUMNS), np.int64)
    flow_int[:, col.G_STATE] = col.UNBORN
    flow_int[:, col.G_PATH] = flows.flow_ptr[:-1]
    flow_int[:, col.G_PATHS] = np.diff(flows.flow_ptr)
    flow_int[:, col.G_NIC] = nic
    flow_int[:, col.G_GATES] = -1
    if flows.gated_by is not None:
        gated = np.flatnonzero(flows.gated_by >= 0)
        flow[gated, col.F_ALLOWED] = flows.chunk
        flow[flows.gated_by[gated], col.F_CHUNK] = flows.chunk
        flow_int[flows.gated_by[gated], col.G_GATES] = gated
    return flow, flow_int


def _hop_rates(flows: Flows, rate: NDArray[np.float64], hops: int) -> NDArray[np.float64]:
    """Return the table of last telemetry, empty but for the rate of each switch's link."""
    last = np.zeros((len(flows.size), hops, 4))
    for f, path in enumerate(flows.flow_ptr[:-1]):
        links = flows.path_link[flows.path_ptr[path] + 1 : flows.path_ptr[path + 1]]
        last[f, : len(links), 3] = rate[links]
    return last


def link_tables(network: Network) -> _Tables:
    """Lay out links and switches with the rules of their profiles."""
    n_links, n_nodes = len(network.rate), len(network.is_switch)
    link = np.zeros((n_links, col.L_COLUMNS))
    link[:, col.L_RATE] = network.rate
    link[:, col.L_DELAY] = network.delay
    link[:, col.L_KMIN] = np.inf
    link[:, col.L_KMAX] = np.inf
    link[:, col.L_CREDIT] = np.inf
    link_int = np.zeros((n_links, col.K_COLUMNS), np.int64)
    link_int[:, col.K_SRC] = network.src
    link_int[:, col.K_DST] = network.dst
    link_int[:, col.K_HEAD] = -1
    link_int[:, col.K_TAIL] = -1
    link_int[:, col.K_LAST] = -1
    link_int[:, col.K_PULL_HEAD] = -1
    link_int[:, col.K_SPARE_HEAD] = -1
    link_int[:, col.K_IS_NIC] = ~network.is_switch[network.src]
    node = np.zeros((n_nodes, col.N_COLUMNS))
    node_int = np.zeros((n_nodes, col.S_COLUMNS), np.int64)
    node_int[:, col.S_IS_SWITCH] = network.is_switch
    into = np.argsort(network.dst, kind="stable")
    into_ptr = np.searchsorted(network.dst[into], np.arange(n_nodes + 1))
    out = np.argsort(network.src, kind="stable")
    out_ptr = np.searchsorted(network.src[out], np.arange(n_nodes + 1))
    for s in np.flatnonzero(network.is_switch):
        profile = network.profile if isinstance(network.profile, SwitchProfile) else network.profile[int(s)]
        if profile is None:
            message = f"node {s} is a switch without a profile"
            raise ModelRangeError(message)
        ways_in = into[into_ptr[s] : into_ptr[s + 1]]
        node[s], node_int[s] = _buffer(int(s), profile, link, ways_in)
        _mark_ports(link, out[out_ptr[s] : out_ptr[s + 1]], profile)
    return link, link_int, node, node_int


def _buffer(
    s: int, profile: SwitchProfile, link: NDArray[np.float64], ways_in: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Divide the buffer of switch ``s`` among its ingress links; return its rows of the tables."""
    pfc, buffer = profile.pfc, profile.buffer
    rate, delay = link[ways_in, col.L_RATE], link[ways_in, col.L_DELAY]
    headroom = np.zeros(len(ways_in))
    if buffer.lossless:
        headroom[:] = [profile.headroom_of(r, d) for r, d in zip(rate, delay, strict=True)]
    link[ways_in, col.L_ROOM] = headroom
    link[ways_in, col.L_ALPHA] = [profile.alpha_of(r) for r in rate]
    link[ways_in, col.L_XOFF] = pfc.xoff_bytes
    room = float(headroom.sum())
    pool = buffer.total_bytes - room - len(ways_in) * buffer.reserved_bytes
    if pool <= 0:
        message = (
            f"switch {s} ({profile.name}): headroom ({room:.0f} B for {len(ways_in)} ports) and reserves"
            f" leave nothing of its buffer ({buffer.total_bytes:.0f} B)"
        )
        raise ModelRangeError(message, hint="a deeper buffer, fewer long links, or no PFC on them")
    if pfc.mode == "static" and pfc.xoff_bytes > buffer.total_bytes:
        message = (
            f"switch {s} ({profile.name}): xoff = {pfc.xoff_bytes:.0f} B is above its buffer"
            f" ({buffer.total_bytes:.0f} B)"
        )
        raise ModelRangeError(message)
    node = np.zeros(col.N_COLUMNS)
    node[col.N_POOL] = pool
    node[col.N_RESERVE] = buffer.reserved_bytes
    node[col.N_OFFSET] = pfc.xon_offset_bytes
    node[col.N_EGRESS_ALPHA] = buffer.egress_alpha
    node[col.N_LIMIT] = buffer.queue_limit_bytes
    flags = np.zeros(col.S_COLUMNS, np.int64)
    flags[col.S_IS_SWITCH] = 1
    flags[col.S_LOSSLESS] = buffer.lossless
    flags[col.S_DYNAMIC] = pfc.mode == "dynamic"
    if profile.watchdog is not None:
        node[col.N_DETECT], node[col.N_RESTORE] = profile.watchdog.detection_s, profile.watchdog.restoration_s
        drops = profile.watchdog.action == "drop"
        flags[col.S_WATCHDOG] = col.WATCH_DROP if drops else col.WATCH_FORWARD
    if buffer.credit_bytes > 0:
        link[ways_in, col.L_CREDIT] = buffer.credit_bytes
        link[ways_in, col.L_ROOM] = np.inf  # what has a credit has its place
        flags[col.S_LOSSLESS] = 0
    return node, flags


def _mark_ports(link: NDArray[np.float64], ports: NDArray[np.int64], profile: SwitchProfile) -> None:
    """Give each port its ECN curve."""
    for k in ports:
        curve = profile.ecn_of(link[k, col.L_RATE])
        link[k, [col.L_KMIN, col.L_KMAX, col.L_PMAX]] = curve.kmin_bytes, curve.kmax_bytes, curve.pmax


def _after(
    flows: Flows, n_flows: int, flow_int: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the flows that wait for each flow, as CSR, and count what each waits for."""
    if flows.after is None or not len(flows.after):
        return np.zeros(n_flows + 1, np.int64), np.zeros(0, np.int64)
    pairs = np.asarray(flows.after, np.int64)
    order = np.argsort(pairs[:, 0], kind="stable")
    flow_int[:, col.G_WAITS] = np.bincount(pairs[:, 1], minlength=n_flows)
    ptr = np.searchsorted(pairs[order, 0], np.arange(n_flows + 1))
    return ptr.astype(np.int64), pairs[order, 1]


def _enter_starts(world: col.World, start: NDArray[np.float64]) -> None:
    """Put the starts of flows that wait for nothing into the calendar: rows 0 to n_flows - 1."""
    rows, count = world.train_int, world.counter
    width, last = world.option[col.X_WIDTH], count[col.C_BUCKETS] - 1
    first = np.flatnonzero(world.flow_int[:, col.G_WAITS] == 0)
    for f in first[np.argsort(start[first], kind="stable")]:
        slot = min(int(start[f] / width), last)
        world.train[f, col.P_TIME] = start[f]
        rows[f, col.Q_TYPE] = col.START
        rows[f, col.Q_FLOW] = f
        rows[f, col.Q_NEXT] = -1
        if world.head[slot] < 0:
            world.head[slot] = f
        else:
            rows[world.tail[slot], col.Q_NEXT] = f
        world.tail[slot] = f
        count[col.C_PENDING] += 1


def _longer(world: col.World) -> col.World:
    """Return the world with twice the rows for trains."""
    n = len(world.train)
    train_int = np.zeros((2 * n, col.Q_COLUMNS), np.int64)
    train_int[:n] = world.train_int
    train_int[n:, col.Q_NEXT] = np.arange(n + 1, 2 * n + 1)
    train_int[-1, col.Q_NEXT] = world.counter[col.C_FREE]
    world.counter[col.C_FREE] = n
    world.counter[col.C_N_FREE] += n
    telemetry = world.telemetry
    if world.counter[col.C_USES_INT]:
        telemetry = np.concatenate([telemetry, np.zeros_like(telemetry)])
    train = np.concatenate([world.train, np.zeros_like(world.train)])
    return world._replace(train=train, train_int=train_int, telemetry=telemetry)


def _outcome(world: col.World, code: int, step: float) -> Outcome:
    flow, ints, link, link_int = world.flow, world.flow_int, world.link, world.link_int
    end = float(world.option[col.X_NOW])
    area = link[:, col.L_AREA] + link[:, col.L_QUEUE] * np.maximum(end - link[:, col.L_SEEN], 0)
    still = link_int[:, col.K_PAUSED] == 1
    n = int(world.counter[col.C_SAMPLES])
    return Outcome(
        received=flow[:, col.F_RX].copy(),
        finish=flow[:, col.F_FINISH].copy(),
        started=flow[:, col.F_START].copy(),
        delivered=flow[:, col.F_RECEIVED].copy(),
        marks=ints[:, col.G_MARKS].copy(),
        cuts=ints[:, col.G_CUTS].copy(),
        resent=flow[:, col.F_RESENT].copy(),
        peak_queue=link[:, col.L_PEAK].copy(),
        mean_queue=area / end if end > 0 else area,
        carried=link[:, col.L_SENT].copy(),
        pauses=link_int[:, col.K_PAUSES].copy(),
        paused=link[:, col.L_STOPPED] + np.where(still, end - link[:, col.L_SINCE], 0.0),
        drops=link_int[:, col.K_DROPS].copy(),
        storms=link_int[:, col.K_STORMS].copy(),
        end=end,
        status={FINISHED: "finished", STUCK: "stuck"}.get(code, "time-up"),
        events=int(world.counter[col.C_EVENTS]),
        step=step,
        sample_time=world.option[col.X_SAMPLE] * np.arange(1, n + 1),
        sample_received=world.sampled_flow[:n].copy(),
        sample_queue=world.sampled_queue[:n].copy(),
        sample_paused=world.sampled_pause[:n].copy(),
    )
