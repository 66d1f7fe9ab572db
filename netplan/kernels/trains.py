"""The time-domain engine: trains of packets through queues, marks, pauses and senders.

What moves is a *train*: the packets that a flow sends within one step of time (`F_STEP`, at its share of
the NIC), to the nearest whole number, at least one. A train knows when its first packet is where it is,
and how far behind the last one follows. Per hop it needs one or two events. As the step goes to zero every
train is one packet, and the engine is a packet simulator of the same rules, which is how it is tested
(`trains_reference`); longer steps are cheaper by the number of packets in a train.

Rules, per event at time t (C rate of a link, D its delay, b bytes of the train, b1 of a packet):

* a transmitter that is idle sends at once, else the train waits, first come first served;
  the transmitter is taken for b / C, the first packet is at the other end at t + b1 / C + D, the
  last one (b - b1) / C later, or as far behind as it came if the link is faster than the train;
* queue q(t): bytes of trains that wait for a transmitter (what it sends is not in it);
* mark: each packet of a train that leaves a queue, with probability p(q), q what waits behind it;
* pause: bytes held per ingress link, dynamic threshold alpha * (pool - shared), headroom above it,
  the pause frame takes the reverse delay; a paused transmitter ends the train it sends;
* a watchdog, where a switch has one: a queue paused for longer than its detection time drops what it
  holds and gets, or sends regardless, until it has not been paused for the restoration time;
* a NIC sends for its flows in turn, one train each; after a train a flow waits b / R (no credit
  is kept for time lost), and while its window is full;
* an acknowledgement per train comes back after the delays of its way, behind what waits there if
  it shares the queue of data; its bytes take their time of the links on the way.

Events lie in a calendar of buckets (R. Brown, *Calendar queues*, CACM 31, 1988): the order within
one bucket, a fraction of a packet time, is kept only on request; times within it are exact.

Random numbers are hashes of (seed, flow, packet, hop): they do not depend on the order of events.
"""

from __future__ import annotations

import math

from netplan.kernels.trains_cc import (
    D_BYTES_AT,
    D_RAISE,
    DCQCN_BYTES,
    DCQCN_TIMER_S,
    RCCC_ECHO,
    RCCC_PULL,
    RCCC_RATE,
    V_ASKED,
    V_CREDIT,
    begin,
    dcqcn_cnp,
    dcqcn_cut,
    dcqcn_raise,
    on_ack,
    on_loss,
    rccc_ask,
    rccc_grant,
    rccc_heard,
    rccc_window,
    uniform,
)
from netplan.kernels.trains_state import (
    ACK,
    ARRIVE,
    BLOCKED,
    C_ACKS_WAIT,
    C_BUCKET,
    C_BUCKETS,
    C_CC,
    C_CREDITS,
    C_DEPENDS_ON_ACK,
    C_DONE,
    C_EVENTS,
    C_FREE,
    C_N_FREE,
    C_ORDERED,
    C_PENDING,
    C_RECOVERY,
    C_ROWS,
    C_SAMPLES,
    C_SEED,
    C_USES_INT,
    CALM,
    CC_DCQCN,
    CC_RCCC,
    CREDIT,
    CUT,
    DONE,
    F_ACK_BYTES,
    F_ACKED,
    F_ALLOWED,
    F_CHUNK,
    F_DUE,
    F_FINISH,
    F_GRANTED,
    F_HEADER,
    F_LAST_CNP,
    F_NACK_AT,
    F_NACK_FOR,
    F_NEXT,
    F_PAYLOAD,
    F_PROGRESS,
    F_RATE,
    F_RECEIVED,
    F_RESENT,
    F_RX,
    F_SENT,
    F_SIZE,
    F_START,
    F_STEP,
    F_WINDOW,
    FREE,
    G_GATES,
    G_MARKS,
    G_NEXT,
    G_NIC,
    G_PACKETS,
    G_PATH,
    G_PATHS,
    G_PULL_NEXT,
    G_PULLED,
    G_SPARE,
    G_SPARE_NEXT,
    G_STATE,
    G_WAITS,
    GO_BACK_N,
    GRANT,
    I_QUEUE,
    I_SENT,
    I_TIME,
    K_ASKED,
    K_BUSY,
    K_DROPS,
    K_HEAD,
    K_IS_NIC,
    K_LAST,
    K_PAUSED,
    K_PAUSES,
    K_PULL_HEAD,
    K_PULL_TAIL,
    K_PULLING,
    K_QUEUED,
    K_SPARE_HEAD,
    K_SPARE_TAIL,
    K_SRC,
    K_STORM,
    K_STORMS,
    K_TAIL,
    L_ALPHA,
    L_AREA,
    L_CREDIT,
    L_DELAY,
    L_FREE,
    L_HELD,
    L_KMAX,
    L_KMIN,
    L_LOST,
    L_ORDER,
    L_OUT,
    L_PEAK,
    L_PMAX,
    L_QUEUE,
    L_RATE,
    L_ROOM,
    L_ROOM_USED,
    L_SEEN,
    L_SENT,
    L_SINCE,
    L_STOPPED,
    L_XOFF,
    LOSS,
    N_DETECT,
    N_EGRESS_ALPHA,
    N_LIMIT,
    N_OFFSET,
    N_PEAK,
    N_POOL,
    N_RESERVE,
    N_RESTORE,
    N_SHARED,
    P_ASK,
    P_BORN,
    P_LOAD,
    P_SEQ,
    P_SPREAD,
    P_TIME,
    P_WIRE,
    PACED,
    PAUSE,
    PULL,
    Q_FLOW,
    Q_HOP,
    Q_MARKS,
    Q_NACK,
    Q_NEXT,
    Q_PACKETS,
    Q_PATH,
    Q_TYPE,
    QUEUED,
    RAISE,
    READY,
    RESUME,
    S_DYNAMIC,
    S_LOSSLESS,
    S_WATCHDOG,
    SEND,
    START,
    STORM,
    TIMEOUT,
    WATCH_DROP,
    WATCH_FORWARD,
    WATCH_OFF,
    X_CNP_GAP,
    X_END,
    X_INT_BYTES,
    X_INT_QUEUE,
    X_NACK_GAP,
    X_NEXT_SAMPLE,
    X_NOW,
    X_PAUSE_BYTES,
    X_SAMPLE,
    X_TIMEOUT,
    X_WIDTH,
    World,
    compiled,
    inlined,
)

#: What `run` returns.
FINISHED, NEEDS_ROWS, STUCK, TIME_UP = range(4)

#: How often the last train of a queue that is too long keeps its place when another one arrives.
_KEEPS_PLACE = 0.5

# ---- the calendar ---------------------------------------------------------------------------------


@inlined
def _put(w: World, p: int, time: float) -> None:
    """Enter row ``p`` into the calendar."""
    count = w.counter
    w.train[p, P_TIME] = time
    bucket = max(int(time / w.option[X_WIDTH]), count[C_BUCKET])
    bucket = min(bucket, count[C_BUCKET] + count[C_BUCKETS] - 1)
    slot = bucket & (count[C_BUCKETS] - 1)
    rows = w.train_int
    at, before = w.head[slot], -1
    if count[C_ORDERED] == 1:
        while at >= 0 and w.train[at, P_TIME] <= time:
            before, at = at, rows[at, Q_NEXT]
    elif at >= 0:
        before, at = w.tail[slot], -1
    rows[p, Q_NEXT] = at
    if before < 0:
        w.head[slot] = p
    else:
        rows[before, Q_NEXT] = p
    if at < 0:
        w.tail[slot] = p
    count[C_PENDING] += 1


@inlined
def _take_row(w: World, kind: int, owner: int) -> int:
    """Return a free row of the train table."""
    p = int(w.counter[C_FREE])
    w.counter[C_FREE] = w.train_int[p, Q_NEXT]
    w.counter[C_N_FREE] -= 1
    w.train_int[p, Q_TYPE] = kind
    w.train_int[p, Q_FLOW] = owner
    return p


@inlined
def _free_row(w: World, p: int) -> None:
    w.train_int[p, Q_TYPE] = FREE
    w.train_int[p, Q_NEXT] = w.counter[C_FREE]
    w.counter[C_FREE] = p
    w.counter[C_N_FREE] += 1


@inlined
def _event(w: World, kind: int, owner: int, time: float) -> None:
    """Enter an event that is no train."""
    _put(w, _take_row(w, kind, owner), time)


# ---- links ----------------------------------------------------------------------------------------


@inlined
def _count_queue(w: World, link: int, now: float, change: float) -> None:
    """Account for bytes that join or leave a queue."""
    table = w.link
    table[link, L_AREA] += table[link, L_QUEUE] * max(now - table[link, L_SEEN], 0.0)
    table[link, L_SEEN] = max(now, table[link, L_SEEN])
    table[link, L_QUEUE] += change
    table[link, L_PEAK] = max(table[link, L_PEAK], table[link, L_QUEUE])


@inlined
def _ask(w: World, link: int, now: float) -> None:
    """Wake a transmitter that has something to send and is neither paused nor awake."""
    marks = w.link_int
    if (
        marks[link, K_BUSY] == 0
        and (marks[link, K_PAUSED] == 0 or marks[link, K_STORM] == WATCH_FORWARD)
        and marks[link, K_HEAD] >= 0
        and w.link[link, L_OUT] < w.link[link, L_CREDIT]
    ):
        marks[link, K_BUSY] = 1
        _event(w, SEND, link, max(now, w.link[link, L_FREE]))


@inlined
def _free_credit(w: World, way_in: int, wire: float, now: float) -> None:
    """Send the credit for bytes that left the buffer at the end of a link back to its sender."""
    p = _take_row(w, CREDIT, way_in)
    w.train[p, P_WIRE] = wire
    late = w.link[way_in, L_DELAY] + w.option[X_PAUSE_BYTES] / w.link[way_in, L_RATE]
    _put(w, p, now + late)


@inlined
def _transmit(w: World, p: int, link: int, now: float) -> None:
    """Put train ``p`` on the wire of ``link``."""
    train, rows, table = w.train, w.train_int, w.link
    f = rows[p, Q_FLOW]
    rate = table[link, L_RATE]
    wire = train[p, P_WIRE]
    packets = rows[p, Q_PACKETS]
    first = min(wire, w.flow[f, F_PAYLOAD] + w.flow[f, F_HEADER])
    hop = rows[p, Q_HOP]
    if hop > 0:
        queue = table[link, L_QUEUE]
        kmin = table[link, L_KMIN]
        if queue + wire > kmin:
            kmax = table[link, L_KMAX]
            number = int(train[p, P_SEQ] / w.flow[f, F_PAYLOAD])
            for i in range(packets):
                behind = queue + wire - (i + 1) * first
                if behind > kmax or (
                    behind > kmin
                    and uniform(w.counter[C_SEED], f, number + i, hop)
                    < table[link, L_PMAX] * (behind - kmin) / (kmax - kmin)
                ):
                    rows[p, Q_MARKS] += 1
        if w.counter[C_USES_INT] == 1:
            news = w.telemetry
            news[p, hop - 1, I_TIME] = now
            grain = w.option[X_INT_BYTES]
            news[p, hop - 1, I_SENT] = math.floor(table[link, L_SENT] / grain) * grain
            grain = w.option[X_INT_QUEUE]
            news[p, hop - 1, I_QUEUE] = math.floor(queue / grain) * grain
    if w.counter[C_CREDITS] == 1:
        table[link, L_OUT] += wire
        if hop > 0:
            _free_credit(w, w.path_link[w.path_ptr[rows[p, Q_PATH]] + hop - 1], wire, now)
    behind_time = train[p, P_TIME] + train[p, P_SPREAD] - now  # until the last packet is here
    table[link, L_FREE] = now + wire / rate
    table[link, L_SENT] += wire
    train[p, P_SPREAD] = max((wire - first) / rate, behind_time)
    rows[p, Q_HOP] = hop + 1
    rows[p, Q_TYPE] = ARRIVE
    _put(w, p, now + first / rate + table[link, L_DELAY])


@inlined
def _send(w: World, link: int, now: float) -> None:
    """Let a transmitter that may be free take the next train."""
    table, marks = w.link, w.link_int
    if (
        (marks[link, K_PAUSED] == 1 and marks[link, K_STORM] != WATCH_FORWARD)
        or marks[link, K_HEAD] < 0
        or table[link, L_OUT] >= table[link, L_CREDIT]
    ):
        marks[link, K_BUSY] = 0
        return
    if table[link, L_FREE] > now * (1.0 + 1e-14):
        _event(w, SEND, link, table[link, L_FREE])
        return
    if marks[link, K_IS_NIC] == 1:
        _serve_flows(w, link, now)
    else:
        p = marks[link, K_HEAD]
        marks[link, K_HEAD] = w.train_int[p, Q_NEXT]
        _count_queue(w, link, now, -w.train[p, P_WIRE])
        _release(w, p, link, now)
        _transmit(w, p, link, now)
    if marks[link, K_HEAD] >= 0:
        _event(w, SEND, link, max(table[link, L_FREE], now))
    else:
        marks[link, K_BUSY] = 0


# ---- switches -------------------------------------------------------------------------------------


@inlined
def _threshold(w: World, way_in: int, node: int) -> float:
    """Bytes that one ingress link may hold beyond its reserve."""
    if w.node_int[node, S_DYNAMIC] == 1:
        return float(max(w.node[node, N_POOL] - w.node[node, N_SHARED], 0.0) * w.link[way_in, L_ALPHA])
    return float(w.link[way_in, L_XOFF])


@inlined
def _frame(w: World, kind: int, way_in: int, now: float) -> None:
    """Send a pause or resume frame up a link; frames do not overtake each other."""
    table = w.link
    time = now + table[way_in, L_DELAY] + w.option[X_PAUSE_BYTES] / table[way_in, L_RATE]
    table[way_in, L_ORDER] = max(time, table[way_in, L_ORDER])
    _event(w, kind, way_in, table[way_in, L_ORDER])


@inlined
def _admit(w: World, p: int, way_in: int, way_out: int, node: int, now: float) -> bool:
    """Give a train that must wait its place in the buffer; False: there is none, it is lost."""
    table, nodes = w.link, w.node
    wire = w.train[p, P_WIRE]
    reserve = nodes[node, N_RESERVE]
    limit = _threshold(w, way_in, node)
    used = max(table[way_in, L_HELD] - reserve, 0.0)
    if nodes[node, N_LIMIT] > 0.0 and table[way_out, L_QUEUE] + wire > nodes[node, N_LIMIT]:
        return False
    if nodes[node, N_EGRESS_ALPHA] > 0.0 and table[way_out, L_QUEUE] + wire > nodes[
        node, N_EGRESS_ALPHA
    ] * max(nodes[node, N_POOL] - nodes[node, N_SHARED], 0.0):
        return False
    if table[way_in, L_ROOM_USED] + wire > table[way_in, L_ROOM] and used + wire > limit:
        return False
    held = table[way_in, L_HELD] + wire
    if held <= reserve:
        table[way_in, L_HELD] = held
    elif held - reserve > limit:
        table[way_in, L_ROOM_USED] += wire
    else:
        table[way_in, L_HELD] = held
        nodes[node, N_SHARED] += min(wire, held - reserve)
        nodes[node, N_PEAK] = max(nodes[node, N_PEAK], nodes[node, N_SHARED])
    if w.node_int[node, S_LOSSLESS] == 1 and w.link_int[way_in, K_ASKED] == 0:
        used = max(table[way_in, L_HELD] - reserve, 0.0)
        if table[way_in, L_ROOM_USED] > 0.0 or used >= _threshold(w, way_in, node):
            w.link_int[way_in, K_ASKED] = 1
            w.link_int[way_in, K_PAUSES] += 1
            _frame(w, PAUSE, way_in, now)
    return True


@inlined
def _release(w: World, p: int, way_out: int, now: float) -> None:
    """Give back the buffer of a train that leaves, and let its ingress link go on if that is due."""
    node = w.link_int[way_out, K_SRC]
    table, nodes = w.link, w.node
    hop = w.train_int[p, Q_HOP]
    way_in = w.path_link[w.path_ptr[w.train_int[p, Q_PATH]] + hop - 1]
    wire = w.train[p, P_WIRE]
    reserve = nodes[node, N_RESERVE]
    room = min(table[way_in, L_ROOM_USED], wire)
    shared = min(wire - room, max(table[way_in, L_HELD] - reserve, 0.0))
    table[way_in, L_ROOM_USED] -= room
    table[way_in, L_HELD] = max(table[way_in, L_HELD] - (wire - room), 0.0)
    nodes[node, N_SHARED] = max(nodes[node, N_SHARED] - shared, 0.0)
    if w.link_int[way_in, K_ASKED] == 1 and table[way_in, L_ROOM_USED] <= 0.0:
        used = max(table[way_in, L_HELD] - reserve, 0.0)
        if used <= 0.0 or used + nodes[node, N_OFFSET] <= _threshold(w, way_in, node):
            w.link_int[way_in, K_ASKED] = 0
            _frame(w, RESUME, way_in, now)


@inlined
def _arrive(w: World, p: int, now: float) -> None:
    """Take a train in at the end of a link."""
    rows = w.train_int
    path = rows[p, Q_PATH]
    at = w.path_ptr[path] + rows[p, Q_HOP]
    if at == w.path_ptr[path + 1]:
        _deliver(w, p, now)
        return
    link = w.path_link[at]
    marks = w.link_int
    if (
        marks[link, K_HEAD] < 0
        and (marks[link, K_PAUSED] == 0 or marks[link, K_STORM] == WATCH_FORWARD)
        and marks[link, K_STORM] != WATCH_DROP
        and w.link[link, L_FREE] <= now
        and w.link[link, L_OUT] < w.link[link, L_CREDIT]
    ):
        _transmit(w, p, link, now)
        return
    node = marks[link, K_SRC]
    if marks[link, K_STORM] == WATCH_DROP:
        _drop(w, p, link, now)
        return
    if not _admit(w, p, w.path_link[at - 1], link, node, now):
        if w.counter[C_RECOVERY] != GO_BACK_N and _takes_last_place(w, p, link, now):
            return
        _drop(w, p, link, now)
        return
    _count_queue(w, link, now, w.train[p, P_WIRE])
    rows[p, Q_NEXT] = -1
    if marks[link, K_HEAD] < 0:
        marks[link, K_HEAD] = p
    else:
        rows[marks[link, K_TAIL], Q_NEXT] = p
    marks[link, K_TAIL] = p
    _ask(w, link, now)


@inlined
def _takes_last_place(w: World, p: int, link: int, now: float) -> bool:
    """Let every second train that finds a queue too long have the place of the last one, which is trimmed.

    Who comes just after a packet has left would else lose nothing, and who comes just before everything
    (phase effects: Handley et al., NDP, SIGCOMM 2017, section 3.1).
    """
    rows, train, marks = w.train_int, w.train, w.link_int
    node = marks[link, K_SRC]
    if w.node[node, N_LIMIT] <= 0.0 or marks[link, K_HEAD] < 0:
        return False
    f, hop = rows[p, Q_FLOW], rows[p, Q_HOP]
    if uniform(w.counter[C_SEED] + 3, f, w.flow_int[f, G_PACKETS], hop) < _KEEPS_PLACE:
        return False
    last = marks[link, K_TAIL]
    _count_queue(w, link, now, -train[last, P_WIRE])
    _release(w, last, link, now)
    way_in = w.path_link[w.path_ptr[rows[p, Q_PATH]] + hop - 1]
    if not _admit(w, p, way_in, link, node, now):  # it is longer than the one that made room
        back = w.path_link[w.path_ptr[rows[last, Q_PATH]] + rows[last, Q_HOP] - 1]
        _admit(w, last, back, link, node, now)
        _count_queue(w, link, now, train[last, P_WIRE])
        return False
    _count_queue(w, link, now, train[p, P_WIRE])
    for c in range(train.shape[1]):
        train[p, c], train[last, c] = train[last, c], train[p, c]
    for c in range(rows.shape[1]):
        if c != Q_NEXT:
            rows[p, c], rows[last, c] = rows[last, c], rows[p, c]
    w.link[link, L_LOST] += train[p, P_WIRE]
    marks[link, K_DROPS] += rows[p, Q_PACKETS]
    _lose(w, p, now)
    return True


@inlined
def _drop(w: World, p: int, link: int, now: float) -> None:
    """Count a train as dropped before a link, and lose it."""
    w.link[link, L_LOST] += w.train[p, P_WIRE]
    w.link_int[link, K_DROPS] += w.train_int[p, Q_PACKETS]
    _lose(w, p, now)


@inlined
def _storm(w: World, link: int, now: float) -> None:
    """Let the watchdog take a queue that has been paused too long, if packets wait in it."""
    marks, rows = w.link_int, w.train_int
    node = marks[link, K_SRC]
    if marks[link, K_STORM] != WATCH_OFF or marks[link, K_PAUSED] == 0:
        return
    due = w.link[link, L_SINCE] + w.node[node, N_DETECT]
    if due > now * (1.0 + 1e-14):
        return  # let go and paused again in between: that pause has a look of its own
    if marks[link, K_HEAD] < 0:
        _event(w, STORM, link, now + w.node[node, N_DETECT])
        return
    marks[link, K_STORM] = w.node_int[node, S_WATCHDOG]
    marks[link, K_STORMS] += 1
    if marks[link, K_STORM] == WATCH_FORWARD:
        _ask(w, link, now)
        return
    while marks[link, K_HEAD] >= 0:
        p = marks[link, K_HEAD]
        marks[link, K_HEAD] = rows[p, Q_NEXT]
        _count_queue(w, link, now, -w.train[p, P_WIRE])
        _release(w, p, link, now)
        _drop(w, p, link, now)


@inlined
def _calm(w: World, link: int, now: float) -> None:
    """End a storm once the queue has not been paused for the restoration time."""
    marks = w.link_int
    since = w.link[link, L_SINCE] + w.node[marks[link, K_SRC], N_RESTORE]
    if marks[link, K_STORM] == WATCH_OFF or marks[link, K_PAUSED] == 1 or since > now * (1.0 + 1e-14):
        return
    marks[link, K_STORM] = WATCH_OFF
    _ask(w, link, now)


@inlined
def _lose(w: World, p: int, now: float) -> None:
    """Drop a train; with selective repeat the sender hears of it as the rest of the way would tell it."""
    if w.counter[C_RECOVERY] == GO_BACK_N:
        _free_row(w, p)
        return
    path, hop = w.train_int[p, Q_PATH], w.train_int[p, Q_HOP]
    late = 0.0
    for e in range(w.path_ptr[path] + hop, w.path_ptr[path + 1]):
        link = w.path_link[e]
        late += w.link[link, L_DELAY] + w.flow[w.train_int[p, Q_FLOW], F_ACK_BYTES] / w.link[link, L_RATE]
    late += _way_back(w, p)
    w.train_int[p, Q_TYPE] = LOSS
    _put(w, p, now + late)


# ---- receivers ------------------------------------------------------------------------------------


@inlined
def _way_back(w: World, p: int) -> float:
    """Return how long an acknowledgement takes, and charge its bytes to the links on its way."""
    path = w.train_int[p, Q_PATH]
    f = w.train_int[p, Q_FLOW]
    packets = w.train_int[p, Q_PACKETS]
    small = w.flow[f, F_ACK_BYTES]
    late = 0.0
    now = w.train[p, P_TIME]  # not the last packet's time: a transmitter must not be taken in advance
    for e in range(w.back_ptr[path], w.back_ptr[path + 1]):
        link = w.back_link[e]
        rate = w.link[link, L_RATE]
        late += w.link[link, L_DELAY] + small / rate
        if w.counter[C_ACKS_WAIT] == 1:
            late += w.link[link, L_QUEUE] / rate + max(w.link[link, L_FREE] - now - late, 0.0)
        if small > 0.0:
            w.link[link, L_FREE] = max(w.link[link, L_FREE], now) + packets * small / rate
            w.link[link, L_SENT] += packets * small
    return late


@inlined
def _deliver(w: World, p: int, now: float) -> None:
    """Receive a train and acknowledge it."""
    train, rows, flow, flows = w.train, w.train_int, w.flow, w.flow_int
    f = rows[p, Q_FLOW]
    last = now + train[p, P_SPREAD]
    load = train[p, P_LOAD]
    rows[p, Q_NACK] = 0
    if w.counter[C_CREDITS] == 1:
        _free_credit(w, w.path_link[w.path_ptr[rows[p, Q_PATH] + 1] - 1], train[p, P_WIRE], now)
    if w.counter[C_RECOVERY] == GO_BACK_N and flows[f, G_PATHS] == 1:
        seq, expected = train[p, P_SEQ], flow[f, F_RECEIVED]
        if seq > expected:
            if now >= flow[f, F_NACK_AT] or flow[f, F_NACK_FOR] != expected:
                flow[f, F_NACK_AT] = now + w.option[X_NACK_GAP]
                flow[f, F_NACK_FOR] = expected
                rows[p, Q_NACK] = 1
                train[p, P_SEQ] = expected
                train[p, P_LOAD] = 0.0
                rows[p, Q_TYPE] = ACK
                _put(w, p, last + _way_back(w, p))
            else:
                _free_row(w, p)
            return
        if seq + load <= expected:
            _free_row(w, p)
            return
        load = seq + load - expected
        train[p, P_SEQ] = expected + load
        train[p, P_LOAD] = load
    before = flow[f, F_RECEIVED]
    flow[f, F_RECEIVED] = before + load
    if w.counter[C_CC] == CC_RCCC:
        if w.parameter[RCCC_ECHO] > 0.0:
            flow[f, V_ASKED] += load
        else:
            flow[f, V_ASKED] = max(flow[f, V_ASKED], train[p, P_ASK])
        _want(w, f, w.path_link[w.path_ptr[rows[p, Q_PATH] + 1] - 1], last)
    flows[f, G_MARKS] += rows[p, Q_MARKS]
    if flow[f, F_RECEIVED] >= flow[f, F_SIZE]:
        flow[f, F_RX] = last
        if w.counter[C_DEPENDS_ON_ACK] == 0:
            _let_go(w, f, last)
    chunk = flow[f, F_CHUNK]
    g = flows[f, G_GATES]
    if g >= 0 and math.floor(flow[f, F_RECEIVED] / chunk) > math.floor(before / chunk):
        flow[g, F_ALLOWED] = (math.floor(flow[f, F_RECEIVED] / chunk) + 1.0) * chunk
        _wake(w, g, last)
    if w.option[X_CNP_GAP] > 0.0 and rows[p, Q_MARKS] > 0:
        if last < flow[f, F_LAST_CNP] + w.option[X_CNP_GAP]:
            rows[p, Q_MARKS] = 0
        else:
            flow[f, F_LAST_CNP] = last
    rows[p, Q_TYPE] = ACK
    _put(w, p, last + _way_back(w, p))


@inlined
def _want(w: World, f: int, way_in: int, now: float) -> None:
    """Put a flow into the ring of those that its receiver pulls, if it asks for more than it was granted."""
    marks, flows = w.link_int, w.flow_int
    if flows[f, G_PULLED] == 1 or w.flow[f, F_GRANTED] >= w.flow[f, V_ASKED]:
        return
    flows[f, G_PULLED] = 1
    flows[f, G_PULL_NEXT] = -1
    if marks[way_in, K_PULL_HEAD] < 0:
        marks[way_in, K_PULL_HEAD] = f
    else:
        flows[marks[way_in, K_PULL_TAIL], G_PULL_NEXT] = f
    marks[way_in, K_PULL_TAIL] = f
    if marks[way_in, K_PULLING] == 0:
        marks[way_in, K_PULLING] = 1
        _event(w, PULL, way_in, now)


@inlined
def _spare(w: World, f: int, way_in: int) -> None:
    """Put a flow into the ring of those that get what nobody asks for, a window of it at most."""
    marks, flows, flow = w.link_int, w.flow_int, w.flow
    if (
        flows[f, G_SPARE] == 1
        or w.parameter[RCCC_ECHO] > 0.0
        or flow[f, F_GRANTED] - flow[f, V_ASKED] >= rccc_window(w, f)
    ):
        return
    flows[f, G_SPARE] = 1
    flows[f, G_SPARE_NEXT] = -1
    if marks[way_in, K_SPARE_HEAD] < 0:
        marks[way_in, K_SPARE_HEAD] = f
    else:
        flows[marks[way_in, K_SPARE_TAIL], G_SPARE_NEXT] = f
    marks[way_in, K_SPARE_TAIL] = f


@inlined
def _pull(w: World, way_in: int, now: float) -> None:
    """Grant the flow whose turn it is some packets, and come back once they would have arrived."""
    marks, flows, flow = w.link_int, w.flow_int, w.flow
    f = marks[way_in, K_PULL_HEAD]
    load = 0.0
    if f >= 0:
        marks[way_in, K_PULL_HEAD] = flows[f, G_PULL_NEXT]
        flows[f, G_PULLED] = 0
        load = min(w.parameter[RCCC_PULL] * flow[f, F_PAYLOAD], flow[f, V_ASKED] - flow[f, F_GRANTED])
    else:
        f = marks[way_in, K_SPARE_HEAD]
        if f >= 0:
            marks[way_in, K_SPARE_HEAD] = flows[f, G_SPARE_NEXT]
            flows[f, G_SPARE] = 0
            load = w.parameter[RCCC_PULL] * flow[f, F_PAYLOAD]
    if f < 0:
        marks[way_in, K_PULLING] = 0
        return
    flow[f, F_GRANTED] += load
    p = _take_row(w, GRANT, f)
    w.train_int[p, Q_PATH] = flows[f, G_PATH]
    w.train_int[p, Q_PACKETS] = 1
    w.train[p, P_LOAD] = load
    w.train[p, P_TIME] = now
    _put(w, p, now + _way_back(w, p))
    _want(w, f, way_in, now)
    if flows[f, G_PULLED] == 0:
        _spare(w, f, way_in)
    wire = load * (1.0 + flow[f, F_HEADER] / flow[f, F_PAYLOAD])
    _event(w, PULL, way_in, now + wire / (w.link[way_in, L_RATE] * w.parameter[RCCC_RATE]))


# ---- senders --------------------------------------------------------------------------------------


@inlined
def _may_send(w: World, f: int) -> bool:
    flow = w.flow
    sent = flow[f, F_SENT]
    return bool(
        sent < min(flow[f, F_SIZE], flow[f, F_ALLOWED])
        and sent - flow[f, F_ACKED] < flow[f, F_WINDOW]
        and (w.counter[C_CC] != CC_RCCC or flow[f, V_CREDIT] > 0.0)
    )


@inlined
def _wake(w: World, f: int, now: float) -> None:
    """Let a blocked flow go on if it may."""
    if w.flow_int[f, G_STATE] == BLOCKED and _may_send(w, f):
        _pace(w, f, now)


@inlined
def _pace(w: World, f: int, now: float) -> None:
    """Queue a flow at its NIC, or have it come back when its next packet is due."""
    flow, flows = w.flow, w.flow_int
    nic = flows[f, G_NIC]
    due = flow[f, F_NEXT]
    if due > now and due > w.link[nic, L_FREE] * (1.0 + 1e-14):
        flows[f, G_STATE] = PACED
        flow[f, F_DUE] = due
        _event(w, READY, f, due)
        return
    flows[f, G_STATE] = QUEUED
    # Turns go round by flow number, from the flow that was served last.
    marks = w.link_int
    n, last = flows.shape[0], marks[nic, K_LAST]
    turn = (f - last - 1) % n
    at = marks[nic, K_HEAD]
    before = -1
    if at >= 0 and (marks[nic, K_TAIL] - last - 1) % n < turn:
        before, at = marks[nic, K_TAIL], -1
    while at >= 0 and (at - last - 1) % n < turn:
        before, at = at, flows[at, G_NEXT]
    marks[nic, K_QUEUED] += 1
    flows[f, G_NEXT] = at
    if before < 0:
        marks[nic, K_HEAD] = f
    else:
        flows[before, G_NEXT] = f
    if at < 0:
        marks[nic, K_TAIL] = f
    _ask(w, nic, max(now, due))


@inlined
def _serve_flows(w: World, nic: int, now: float) -> None:
    """Send a train of the flow whose turn it is."""
    flow, flows, marks = w.flow, w.flow_int, w.link_int
    while marks[nic, K_HEAD] >= 0:
        f = marks[nic, K_HEAD]
        marks[nic, K_HEAD] = flows[f, G_NEXT]
        marks[nic, K_QUEUED] -= 1
        flows[f, G_STATE] = BLOCKED
        if not _may_send(w, f):
            continue
        mtu, header = flow[f, F_PAYLOAD], flow[f, F_HEADER]
        rate = flow[f, F_RATE]
        share = min(rate, w.link[nic, L_RATE] / (marks[nic, K_QUEUED] + 1))
        packets = max(math.floor(share * flow[f, F_STEP] / (mtu + header) + 0.5), 1.0)
        room = flow[f, F_WINDOW] - (flow[f, F_SENT] - flow[f, F_ACKED])
        if w.counter[C_CC] == CC_RCCC:
            room = flow[f, V_CREDIT]
        if room < packets * mtu:  # the packet that fills the window still goes
            packets = max(math.ceil(room / mtu), 1.0)
        load = min(packets * mtu, min(flow[f, F_SIZE], flow[f, F_ALLOWED]) - flow[f, F_SENT])
        packets = math.ceil(load / mtu)
        marks[nic, K_LAST] = f
        p = _take_row(w, ARRIVE, f)
        rows, train = w.train_int, w.train
        path = flows[f, G_PATH]
        if flows[f, G_PATHS] > 1:
            draw = uniform(w.counter[C_SEED] + 1, f, flows[f, G_PACKETS], 0)
            path += int(draw * flows[f, G_PATHS])
        wire = load + packets * header
        rows[p, Q_PATH] = path
        rows[p, Q_HOP] = 0
        rows[p, Q_PACKETS] = int(packets)
        rows[p, Q_MARKS] = 0
        train[p, P_LOAD] = load
        train[p, P_WIRE] = wire
        train[p, P_SEQ] = flow[f, F_SENT]
        first = min(wire, mtu + header)
        line = w.link[nic, L_RATE]
        pace = min(rate, line)
        train[p, P_TIME] = now
        train[p, P_SPREAD] = (wire - first) / pace
        train[p, P_BORN] = now + train[p, P_SPREAD]
        flow[f, F_SENT] += load
        flows[f, G_PACKETS] += int(packets)
        flow[f, F_NEXT] = now + wire / pace
        _transmit(w, p, nic, now)
        if w.counter[C_CC] == CC_RCCC:
            train[p, P_ASK] = rccc_ask(w, f, load, marks[nic, K_QUEUED] + 1)
        if w.counter[C_CC] == CC_DCQCN and w.parameter[DCQCN_BYTES] > 0.0:
            while flow[f, D_RAISE] < math.inf and flow[f, F_SENT] >= flow[f, D_BYTES_AT]:
                flow[f, D_BYTES_AT] += w.parameter[DCQCN_BYTES]
                dcqcn_raise(w, f, 1)
        if _may_send(w, f):
            _pace(w, f, now)
        return


@inlined
def _go_back(w: World, f: int, now: float) -> None:
    """Send everything again that is not acknowledged."""
    w.flow[f, F_RESENT] += w.flow[f, F_SENT] - w.flow[f, F_ACKED]
    w.flow[f, F_SENT] = w.flow[f, F_ACKED]
    _wake(w, f, now)


@inlined
def _watch(w: World, f: int, now: float) -> None:
    """Look whether a sender has waited too long for news."""
    flow = w.flow
    if w.flow_int[f, G_STATE] == DONE:
        return
    due = flow[f, F_PROGRESS] + w.option[X_TIMEOUT]
    if due <= now:
        if flow[f, F_SENT] > flow[f, F_ACKED]:
            _go_back(w, f, now)
        flow[f, F_PROGRESS] = now
        due = now + w.option[X_TIMEOUT]
    _event(w, TIMEOUT, f, due)


@inlined
def _acknowledge(w: World, p: int, now: float) -> None:
    """Take an acknowledgement in at the sender."""
    train, rows, flow, flows = w.train, w.train_int, w.flow, w.flow_int
    f = rows[p, Q_FLOW]
    if flows[f, G_STATE] == DONE:
        _free_row(w, p)
        return
    if rows[p, Q_NACK] == 1:
        _go_back(w, f, now)
        _free_row(w, p)
        return
    flow[f, F_PROGRESS] = now
    flow[f, F_ACKED] += train[p, P_LOAD]
    flow[f, F_SENT] = max(flow[f, F_SENT], flow[f, F_ACKED])
    if flow[f, F_ACKED] >= flow[f, F_SIZE]:
        flow[f, F_FINISH] = now
        flows[f, G_STATE] = DONE
        w.counter[C_DONE] += 1
        if w.counter[C_DEPENDS_ON_ACK] == 1:
            _let_go(w, f, now)
        _free_row(w, p)
        return
    rate = flow[f, F_RATE]
    if w.counter[C_CC] == CC_DCQCN:
        if rows[p, Q_MARKS] > 0:
            was = flow[f, D_RAISE]
            due = dcqcn_cnp(w, f, now)
            if due < math.inf:
                _event(w, CUT, f, due)
            elif flow[f, D_RAISE] != was:
                _event(w, RAISE, f, flow[f, D_RAISE])
    elif w.counter[C_CC] == CC_RCCC:
        rccc_heard(w, f)
    else:
        hops = rows[p, Q_HOP] - 1
        rtt = now - train[p, P_BORN]
        on_ack(w, f, p, now, rows[p, Q_PACKETS], train[p, P_LOAD], rows[p, Q_MARKS], rtt, hops)
    _free_row(w, p)
    if flows[f, G_STATE] == PACED and flow[f, F_RATE] != rate and flow[f, F_NEXT] != flow[f, F_DUE]:
        flows[f, G_STATE] = BLOCKED
    _wake(w, f, now)


@inlined
def _let_go(w: World, f: int, now: float) -> None:
    """Start the flows that waited for the end of ``f`` and for nothing else."""
    for e in range(w.after_ptr[f], w.after_ptr[f + 1]):
        g = w.after[e]
        w.flow_int[g, G_WAITS] -= 1
        if w.flow_int[g, G_WAITS] == 0:
            _event(w, START, g, max(now, 0.0) + w.flow[g, F_START])


@inlined
def _start(w: World, f: int, now: float) -> None:
    begin(w, f)
    w.flow[f, F_START] = now
    w.flow[f, F_NEXT] = now
    w.flow[f, F_PROGRESS] = now
    w.flow_int[f, G_STATE] = BLOCKED
    if w.option[X_TIMEOUT] > 0.0 and w.counter[C_RECOVERY] == GO_BACK_N:  # else each loss is told
        _event(w, TIMEOUT, f, now + w.option[X_TIMEOUT])
    _wake(w, f, now)


# ---- the run --------------------------------------------------------------------------------------


@inlined
def _handle(w: World, p: int, now: float) -> None:
    """Do one event."""
    rows, flow = w.train_int, w.flow
    kind, owner = rows[p, Q_TYPE], rows[p, Q_FLOW]
    if kind == ARRIVE:
        _arrive(w, p, now)
        return
    if kind == ACK:
        _acknowledge(w, p, now)
        return
    load = w.train[p, P_LOAD]
    wire = w.train[p, P_WIRE]
    born = w.train[p, P_BORN]
    _free_row(w, p)
    if kind == LOSS:
        flow[owner, F_SENT] -= load
        flow[owner, F_RESENT] += load
        on_loss(w, owner, now, load, now - born)
        if w.counter[C_CC] == CC_RCCC:  # the credit is spent; the receiver, which saw the header, grants anew
            rccc_heard(w, owner)
            flow[owner, V_ASKED] = max(flow[owner, V_ASKED], born) + load  # P_ASK
            _want(w, owner, w.path_link[w.path_ptr[w.flow_int[owner, G_PATH] + 1] - 1], now)
        _wake(w, owner, now)
        return
    if kind == SEND:
        _send(w, owner, now)
    elif kind == READY:
        if w.flow_int[owner, G_STATE] == PACED and flow[owner, F_DUE] == now:
            w.flow_int[owner, G_STATE] = BLOCKED
            _wake(w, owner, now)
    elif kind == CUT:
        dcqcn_cut(w, owner, now)
        if w.flow_int[owner, G_STATE] != DONE:
            _event(w, RAISE, owner, flow[owner, D_RAISE])
    elif kind == RAISE:
        if flow[owner, D_RAISE] == now and w.flow_int[owner, G_STATE] != DONE:
            dcqcn_raise(w, owner, 0)
            flow[owner, D_RAISE] = now + w.parameter[DCQCN_TIMER_S]
            _event(w, RAISE, owner, flow[owner, D_RAISE])
    elif kind == PAUSE:
        if w.link_int[owner, K_PAUSED] == 0:
            w.link_int[owner, K_PAUSED] = 1
            w.link[owner, L_SINCE] = now
            node = w.link_int[owner, K_SRC]
            if w.node_int[node, S_WATCHDOG] != WATCH_OFF:
                _event(w, STORM, owner, now + w.node[node, N_DETECT])
    elif kind == RESUME:
        if w.link_int[owner, K_PAUSED] == 1:
            w.link_int[owner, K_PAUSED] = 0
            w.link[owner, L_STOPPED] += now - w.link[owner, L_SINCE]
            w.link[owner, L_SINCE] = now  # of a link that is not paused: since when
            if w.link_int[owner, K_STORM] != WATCH_OFF:
                _event(w, CALM, owner, now + w.node[w.link_int[owner, K_SRC], N_RESTORE])
            _ask(w, owner, now)
    elif kind == STORM:
        _storm(w, owner, now)
    elif kind == CALM:
        _calm(w, owner, now)
    elif kind == START:
        _start(w, owner, now)
    elif kind == TIMEOUT:
        _watch(w, owner, now)
    elif kind == CREDIT:
        w.link[owner, L_OUT] -= wire
        _ask(w, owner, now)
    elif kind == PULL:
        _pull(w, owner, now)
    elif kind == GRANT:
        rccc_grant(w, owner, load)
        _wake(w, owner, now)


@inlined
def _sample(w: World) -> None:
    """Write down what each flow has received, what waits at the watched links, and what was paused."""
    i = w.counter[C_SAMPLES]
    if i < w.sampled_flow.shape[0]:
        for f in range(w.sampled_flow.shape[1]):
            w.sampled_flow[i, f] = w.flow[f, F_RECEIVED]
        for k in range(len(w.watched)):
            w.sampled_queue[i, k] = w.link[w.watched[k], L_QUEUE]
        time = w.option[X_NEXT_SAMPLE]
        for k in range(w.sampled_pause.shape[1]):
            w.sampled_pause[i, k] = w.link[k, L_STOPPED]
            if w.link_int[k, K_PAUSED] == 1:
                w.sampled_pause[i, k] += max(time - w.link[k, L_SINCE], 0.0)
        w.counter[C_SAMPLES] = i + 1
    w.option[X_NEXT_SAMPLE] += w.option[X_SAMPLE]


@compiled
def run(w: World) -> int:
    """Run the events until all flows are done, time is up, or rows run out.

    Returns
    -------
    int
        `FINISHED`; `TIME_UP`; `NEEDS_ROWS`: the train table is to be made longer, then call again;
        `STUCK`: flows are left and nothing will ever happen (a deadlock, or a loss nobody notices).
    """
    count, option, rows = w.counter, w.option, w.train_int
    mask = count[C_BUCKETS] - 1
    n_flows = w.flow.shape[0]
    width = option[X_WIDTH]
    while count[C_DONE] < n_flows:
        if count[C_PENDING] == 0:
            return STUCK
        bucket = count[C_BUCKET]
        if option[X_SAMPLE] > 0.0 and bucket * width >= option[X_NEXT_SAMPLE]:
            _sample(w)
        slot = bucket & mask
        while w.head[slot] >= 0:
            if count[C_N_FREE] < count[C_ROWS]:
                return NEEDS_ROWS
            p = w.head[slot]
            w.head[slot] = rows[p, Q_NEXT]
            count[C_PENDING] -= 1
            time = w.train[p, P_TIME]
            if int(time / width) > bucket:  # lay beyond the calendar when it was entered
                _put(w, p, time)
                continue
            option[X_NOW] = time
            count[C_EVENTS] += 1
            _handle(w, p, time)
        if bucket * width > option[X_END]:
            return TIME_UP
        count[C_BUCKET] = bucket + 1
    return FINISHED
