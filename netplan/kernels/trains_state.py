"""Columns of the train engine's tables, and the names of its events and protocols.

The engine (see `trains`) keeps links, nodes, flows and trains as rows of a few tables: one row is
one or two cache lines, and a compiled function is handed a dozen arrays rather than a hundred.
The constants here name their columns. Units: bytes, seconds, bytes/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.kernels.arrays import Floats, Ints

_Function = TypeVar("_Function", bound="Callable[..., object]")


def inlined(function: _Function) -> _Function:
    """Compile a rule of the engine into its caller.

    A call that hands on two dozen arrays costs more than what most rules do. Measured, per event:
    800 ns with plain calls, 150 ns without counting references of arrays (nothing here allocates),
    50 ns inlined as well.
    """
    return njit(cache=True, _nrt=False, forceinline=True)(function)  # type: ignore[call-overload,no-any-return]  # not in numba's stubs


def compiled(function: _Function) -> _Function:
    """Compile the engine's loop, which nothing here calls."""
    return njit(cache=True, _nrt=False)(function)  # type: ignore[call-overload,no-any-return]  # not in numba's stubs


# Events. A row of the train table is an event: which kind, when.
(
    FREE,
    ARRIVE,
    ACK,
    READY,
    SEND,
    PAUSE,
    RESUME,
    CUT,
    RAISE,
    START,
    LOSS,
    TIMEOUT,
    CREDIT,
    PULL,
    GRANT,
    STORM,
    CALM,
) = range(17)

# Flow states.
BLOCKED, PACED, QUEUED, DONE, UNBORN = range(5)

# Protocols (`kernels.trains_cc`).
(
    CC_NONE,
    CC_DCQCN,
    CC_DCTCP,
    CC_HPCC,
    CC_TIMELY,
    CC_SWIFT,
    CC_POWERTCP,
    CC_NSCC,
    CC_RTT,
    CC_IBCC,
    CC_RCCC,
    CC_PER_MARK,
) = range(12)

# Loss recovery.
GO_BACK_N, SELECTIVE = range(2)

# Links, float columns. Those from L_HELD on belong to the link as the way *into* a switch.
(
    L_RATE,
    L_DELAY,
    L_FREE,  # when the transmitter has sent all that it has begun
    L_QUEUE,  # bytes that wait for it
    L_AREA,  # integral of the queue over time
    L_SEEN,  # up to when the integral goes
    L_PEAK,
    L_SENT,  # bytes sent
    L_KMIN,
    L_KMAX,
    L_PMAX,
    L_STOPPED,  # time it was paused
    L_SINCE,  # since when it is paused
    L_HELD,  # bytes that came over it and wait in the switch (without headroom)
    L_ROOM_USED,  # of them, bytes in the headroom
    L_ALPHA,
    L_XOFF,
    L_ROOM,  # headroom
    L_LOST,  # bytes dropped
    L_ORDER,  # when the last pause or resume takes effect
    L_CREDIT,  # buffer at its end that its sender counts credits of; inf: no credits
    L_OUT,  # bytes sent for which no credit came back
) = range(22)
L_COLUMNS = 22

# Links, integer columns.
(
    K_SRC,
    K_DST,
    K_HEAD,  # of what waits: trains, or at a NIC the flows that may send
    K_TAIL,
    K_BUSY,  # a SEND event is under way
    K_PAUSED,
    K_ASKED,  # as the way into a switch: the switch has asked for a pause
    K_PAUSES,
    K_IS_NIC,
    K_DROPS,
    K_LAST,  # flow that a NIC served last
    K_PULL_HEAD,  # as the way into a host: flows that it pulls in turn
    K_PULL_TAIL,
    K_PULLING,  # a PULL event is under way
    K_QUEUED,  # flows that wait for their turn at a NIC
    K_SPARE_HEAD,  # as the way into a host: flows that get credit nobody asks for
    K_SPARE_TAIL,
    K_STORM,  # the PFC watchdog has taken it: drop or forward; 0: not
    K_STORMS,  # how often
) = range(19)
K_COLUMNS = 19

# What a watchdog does.
WATCH_OFF, WATCH_DROP, WATCH_FORWARD = range(3)

# Nodes.
N_POOL, N_SHARED, N_RESERVE, N_OFFSET, N_EGRESS_ALPHA, N_LIMIT, N_PEAK, N_DETECT, N_RESTORE = range(9)
N_COLUMNS = 9
S_IS_SWITCH, S_LOSSLESS, S_DYNAMIC, S_WATCHDOG = range(4)
S_COLUMNS = 4

# Flows, float columns.
(
    F_SIZE,  # payload bytes
    F_PAYLOAD,  # of a full packet
    F_HEADER,  # bytes on the wire beyond the payload of a packet
    F_LINE,  # line rate of its NIC
    F_RATE,  # the protocol's rate
    F_WINDOW0,  # window at line rate; 0: none
    F_WINDOW,  # window now; inf: none
    F_RTT,  # base round trip
    F_NEXT,  # earliest time of the next packet
    F_SENT,  # payload bytes sent (last sequence number)
    F_ACKED,
    F_RECEIVED,
    F_ALLOWED,  # payload bytes that may be sent by now
    F_START,
    F_RX,  # last byte received
    F_FINISH,  # last acknowledgement back
    F_DUE,  # when the READY event that counts is due
    F_ACK_BYTES,
    F_NACK_AT,
    F_NACK_FOR,
    F_CHUNK,  # a chunk that lets the gated flow go on; 0: none
    F_RESENT,  # payload bytes sent again
    F_LAST_CNP,
    F_GRANTED,  # payload bytes that the receiver has asked for
    F_STEP,  # longest time that one of its trains stands for
    F_PROGRESS,  # when the last acknowledgement of something new came
    F_STATE0,  # first column of the protocol's state
) = range(27)
F_COLUMNS = 27 + 24

# Flows, integer columns.
(
    G_STATE,
    G_PATH,  # its first path
    G_PATHS,
    G_WAITS,  # flows that must end before it starts
    G_NIC,  # its first link
    G_NEXT,  # next in the NIC's ring
    G_MARKS,
    G_CUTS,
    G_GATES,  # flow that each chunk received here lets go on; -1: none
    G_PACKETS,
    G_PULL_NEXT,  # next in the receiver's ring
    G_PULLED,  # whether it is in that ring
    G_SPARE_NEXT,  # next in the ring of those that get credit nobody asks for
    G_SPARE,  # whether it is in that one
) = range(14)
G_COLUMNS = 14

# Trains.
P_TIME, P_SPREAD, P_WIRE, P_LOAD, P_SEQ, P_BORN = range(6)
P_ASK = P_BORN  # of receiver credits, which read no round trip: up to which grant the sender asks
P_COLUMNS = 6
Q_TYPE, Q_FLOW, Q_PATH, Q_HOP, Q_PACKETS, Q_MARKS, Q_NEXT, Q_NACK = range(8)
Q_COLUMNS = 8

# Telemetry of one hop.
I_TIME, I_SENT, I_QUEUE = range(3)

# Options, floats.
(
    X_WIDTH,  # of a bucket of the calendar [s]
    X_END,
    X_SAMPLE,  # time between samples; 0: none
    X_NEXT_SAMPLE,
    X_NOW,
    X_CNP_GAP,
    X_NACK_GAP,
    X_INT_BYTES,  # grain of telemetry's byte count
    X_INT_QUEUE,  # grain of telemetry's queue
    X_PAUSE_BYTES,
    X_TIMEOUT,  # of a sender without news; 0: none
) = range(11)
X_COLUMNS = 11

# Options and counters, integers.
(
    C_BUCKET,
    C_BUCKETS,
    C_FREE,  # first row of the free list
    C_N_FREE,
    C_DONE,
    C_EVENTS,
    C_CC,
    C_SEED,
    C_ACKS_WAIT,  # acknowledgements queue with data
    C_RECOVERY,
    C_DEPENDS_ON_ACK,
    C_USES_INT,
    C_SAMPLES,
    C_PENDING,
    C_VARIABLE_WINDOW,
    C_HOPS,
    C_ROWS,  # rows of the train table that one event may take
    C_CREDITS,  # some links have credits
    C_ORDERED,  # events within a bucket of the calendar keep their order too
) = range(19)
C_COLUMNS = 19


class World(NamedTuple):
    """All tables of a run."""

    link: Floats
    link_int: Ints
    node: Floats
    node_int: Ints
    flow: Floats
    flow_int: Ints
    train: Floats
    train_int: Ints
    telemetry: Floats
    """(n_trains, n_hops, 3) what each switch wrote into the train."""
    last_telemetry: Floats
    """(n_flows, n_hops, 3) what the last acknowledgement of each flow said."""
    path_ptr: Ints
    path_link: Ints
    back_ptr: Ints
    back_link: Ints
    after_ptr: Ints
    after: Ints
    """CSR: flows that wait for the end of each flow."""
    head: Ints
    tail: Ints
    option: Floats
    counter: Ints
    parameter: Floats
    sampled_flow: Floats
    """(n_samples, n_flows) payload bytes received."""
    watched: Ints
    sampled_queue: Floats
    """(n_samples, n_watched) bytes."""
    sampled_pause: Floats
    """(n_samples, n_links) time that each link has been paused by then [s]; or (0, 0): not wanted."""
