"""What senders do with the signals that come back: the rules of each congestion control.

One function a protocol, called for every acknowledgement that arrives (of a train of one or more
packets). Its state lies in the flow's columns from ``F_STATE0``; the equations, symbols and
sources stand in ``netplan/congestion/cc/<name>.py``. Rates in bytes/s, windows in payload bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from netplan.kernels.trains_state import (
    C_CC,
    C_SEED,
    C_VARIABLE_WINDOW,
    CC_DCQCN,
    CC_DCTCP,
    CC_HPCC,
    CC_IBCC,
    CC_NSCC,
    CC_PER_MARK,
    CC_POWERTCP,
    CC_RCCC,
    CC_RTT,
    CC_SWIFT,
    CC_TIMELY,
    F_ACKED,
    F_GRANTED,
    F_HEADER,
    F_LINE,
    F_NEXT,
    F_PAYLOAD,
    F_RATE,
    F_RTT,
    F_SENT,
    F_SIZE,
    F_STATE0,
    F_WINDOW,
    F_WINDOW0,
    G_CUTS,
    I_QUEUE,
    I_SENT,
    I_TIME,
    inlined,
)

if TYPE_CHECKING:
    from netplan.kernels.trains_state import World

# DCQCN's parameters (columns of World.parameter) and state.
(
    DCQCN_GAIN,
    DCQCN_ALPHA_S,
    DCQCN_CUT_S,
    DCQCN_TIMER_S,
    DCQCN_BYTES,
    DCQCN_STEPS,
    DCQCN_AI,
    DCQCN_HAI,
    DCQCN_MIN,
    DCQCN_CLAMP,
    DCQCN_ON_CNP,
    DCQCN_LEAST_CUT,
) = range(12)
D_TARGET, D_ALPHA, D_TICK, D_BIT, D_CUT, D_STAGE, D_CUT_GRID, D_RAISE, D_BYTES_AT, D_BYTE_STAGE, D_CUT_DUE = (
    range(F_STATE0, F_STATE0 + 11)
)

# DCTCP.
DCTCP_GAIN, DCTCP_AI, DCTCP_MIN = range(3)
T_SEQ, T_ALPHA, T_MARKS, T_BATCH, T_REDUCED, T_HIGH = range(F_STATE0, F_STATE0 + 6)

# DCTCP by marks.
PER_MARK_CUT, PER_MARK_AI, PER_MARK_START = range(3)
(M_WINDOW,) = range(F_STATE0, F_STATE0 + 1)

# HPCC.
HPCC_ETA, HPCC_STAGES, HPCC_AI, HPCC_MIN, HPCC_FAST = range(5)
H_SEQ, H_RATE, H_UTIL, H_STAGE, H_FIRST = range(F_STATE0, F_STATE0 + 5)

# TIMELY.
(
    TIMELY_ALPHA,
    TIMELY_BETA,
    TIMELY_LOW,
    TIMELY_HIGH,
    TIMELY_MIN_RTT,
    TIMELY_AI,
    TIMELY_HAI,
    TIMELY_MIN,
    TIMELY_HAI_AFTER,
    TIMELY_PATCHED,
    TIMELY_REF,
) = range(11)
Y_SEQ, Y_RTT, Y_DIFF, Y_STAGE = range(F_STATE0, F_STATE0 + 4)

# Swift.
(
    SWIFT_BASE,
    SWIFT_HOP,
    SWIFT_RANGE,
    SWIFT_RANGE_MIN,
    SWIFT_RANGE_MAX,
    SWIFT_AI,
    SWIFT_BETA,
    SWIFT_MAX_CUT,
    SWIFT_START,
) = range(9)
W_WINDOW, W_RTT, W_CUT = range(F_STATE0, F_STATE0 + 3)

# PowerTCP.
POWER_GAMMA, POWER_FLOWS = range(2)
O_SEQ, O_POWER, O_OLD, O_WINDOW, O_FIRST = range(F_STATE0, F_STATE0 + 5)

# NSCC.
(
    NSCC_TARGET,
    NSCC_GAMMA,
    NSCC_ALPHA,
    NSCC_FI,
    NSCC_ETA,
    NSCC_EWMA,
    NSCC_QA_GATE,
    NSCC_QA_THRESHOLD,
    NSCC_MAX_WINDOW,
    NSCC_REF_RATE,
    NSCC_REF_DELAY,
) = range(11)
(
    U_WINDOW,
    U_INC,
    U_DELAY,
    U_BASE,
    U_RECEIVED,
    U_ADJUSTED,
    U_CUT_AT,
    U_QA_END,
    U_ACHIEVED,
    U_TRIGGER,
    U_IGNORE,
    U_QUIET,
) = range(F_STATE0, F_STATE0 + 12)

# RTT template.
RTT_LIMIT, RTT_EXCESS, RTT_CUT, RTT_SMALL_CUT, RTT_STEP, RTT_FLOOR, RTT_FIRST_MIN = range(7)
R_SEQ, R_MIN, R_PROBES, R_MARKED = range(F_STATE0, F_STATE0 + 4)

# InfiniBand's congestion control.
IBCC_INCREASE, IBCC_TIMER, IBCC_LIMIT, IBCC_STEP = range(4)
B_INDEX, B_TICK = range(F_STATE0, F_STATE0 + 2)

# Receiver credits (RCCC and its kin).
RCCC_WINDOW, RCCC_PULL, RCCC_RATE, RCCC_SHARED, RCCC_ECHO = range(5)
V_CREDIT, V_PULLED, V_ASKED, V_GUESSING = range(F_STATE0, F_STATE0 + 4)

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MUL1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


_NS = 1e-9
_NEVER = math.inf
_NO_DELAY = 1e-6  # below it NSCC takes a path for empty


@inlined
def uniform(seed: int, flow: int, packet: int, hop: int) -> float:
    """Return the number in [0, 1) that belongs to a packet at a hop (SplitMix64's finaliser)."""
    state = np.uint64(0)
    for word in (seed, flow, packet, hop):  # the seed is mixed on its own, or (1, 2) would draw as (2, 1)
        state = (state ^ np.uint64(word)) + _GAMMA
        state = (state ^ (state >> np.uint64(30))) * _MUL1
        state = (state ^ (state >> np.uint64(27))) * _MUL2
        state ^= state >> np.uint64(31)
    return float(state >> np.uint64(11)) * _TO_UNIT


@inlined
def set_window(w: World, f: int) -> None:
    """Bring the window of flow ``f`` in line with its rate."""
    full = w.flow[f, F_WINDOW0]
    if full <= 0.0:
        w.flow[f, F_WINDOW] = math.inf
    elif w.counter[C_VARIABLE_WINDOW] == 1:
        w.flow[f, F_WINDOW] = full * w.flow[f, F_RATE] / w.flow[f, F_LINE]
    else:
        w.flow[f, F_WINDOW] = full


@inlined
def begin(w: World, f: int) -> None:
    """Set the state of a flow that starts."""
    flow = w.flow
    cc = w.counter[C_CC]
    flow[f, F_RATE] = flow[f, F_LINE]
    for c in range(F_STATE0, flow.shape[1]):
        flow[f, c] = 0.0
    if cc == CC_DCQCN:
        flow[f, D_TARGET] = flow[f, F_LINE]
        flow[f, D_ALPHA] = 1.0
        flow[f, D_TICK] = -1.0
        flow[f, D_RAISE] = _NEVER
        flow[f, D_CUT_DUE] = _NEVER
    elif cc == CC_DCTCP:
        flow[f, T_ALPHA] = 1.0
    elif cc == CC_HPCC:
        flow[f, H_RATE] = flow[f, F_LINE]
        flow[f, H_UTIL] = 1.0
    set_window(w, f)
    bdp = flow[f, F_LINE] * flow[f, F_RTT] * _payload_part(w, f)
    if cc == CC_SWIFT:
        flow[f, W_WINDOW] = w.parameter[SWIFT_START]
        if flow[f, W_WINDOW] <= 0.0:
            flow[f, W_WINDOW] = bdp
        flow[f, W_CUT] = -_NEVER
        flow[f, F_WINDOW] = flow[f, W_WINDOW]
    elif cc == CC_POWERTCP:
        flow[f, O_POWER] = 1.0
        flow[f, O_OLD] = bdp
        flow[f, O_WINDOW] = bdp
        flow[f, F_WINDOW] = bdp
    elif cc == CC_NSCC:
        flow[f, U_WINDOW] = w.parameter[NSCC_MAX_WINDOW] * bdp
        flow[f, U_BASE] = flow[f, F_RTT]
        _nscc_bound(w, f)
    elif cc == CC_RTT:
        flow[f, R_MIN] = w.parameter[RTT_FIRST_MIN]
    elif cc == CC_PER_MARK:
        flow[f, M_WINDOW] = w.parameter[PER_MARK_START] * bdp
        _per_mark_bound(w, f)
    elif cc == CC_RCCC:
        flow[f, V_CREDIT] = rccc_window(w, f)
        flow[f, V_GUESSING] = 1.0
        flow[f, F_GRANTED] = 0.0


@inlined
def _payload_part(w: World, f: int) -> float:
    """Return the part of a full packet that is payload."""
    return float(w.flow[f, F_PAYLOAD] / (w.flow[f, F_PAYLOAD] + w.flow[f, F_HEADER]))


@inlined
def _age_alpha(w: World, f: int, now: float) -> None:
    """Do the alpha updates that were due up to ``now``: one with the CNP bit, the others without."""
    flow, par = w.flow, w.parameter
    n = math.floor((now - flow[f, D_TICK]) / par[DCQCN_ALPHA_S])
    if n <= 0:
        return
    keep = 1.0 - par[DCQCN_GAIN]
    if flow[f, D_BIT] > 0.0:
        flow[f, D_ALPHA] = keep * flow[f, D_ALPHA] + par[DCQCN_GAIN]
        flow[f, D_BIT] = 0.0
    else:
        flow[f, D_ALPHA] *= keep
    if n > 1:
        flow[f, D_ALPHA] *= keep ** (n - 1)
    flow[f, D_TICK] += n * par[DCQCN_ALPHA_S]


@inlined
def dcqcn_cnp(w: World, f: int, now: float) -> float:
    """Take a CNP; return when the next cut is due (inf: nothing new to be scheduled)."""
    flow, par = w.flow, w.parameter
    if par[DCQCN_ON_CNP] > 0.0:  # the paper's: every CNP cuts, and moves alpha up
        if flow[f, D_TICK] >= 0.0:
            _age_alpha(w, f, now)
        if flow[f, D_CUT_GRID] > 0.0 and now < flow[f, D_CUT_GRID] + par[DCQCN_CUT_S]:
            return _NEVER
        flow[f, D_CUT_GRID] = now
        flow[f, D_CUT] = 1.0
        _dcqcn_cut(w, f, now)
        flow[f, D_ALPHA] = (1.0 - par[DCQCN_GAIN]) * flow[f, D_ALPHA] + par[DCQCN_GAIN]
        flow[f, D_TICK] = now
        return _NEVER
    if flow[f, D_TICK] < 0.0:  # the first: the timers begin
        flow[f, D_ALPHA] = 1.0
        flow[f, D_BIT] = 0.0
        flow[f, D_TICK] = now
        flow[f, D_CUT_GRID] = now + _NS
        flow[f, D_TARGET] = flow[f, F_RATE]
    else:
        _age_alpha(w, f, now)
        flow[f, D_BIT] = 1.0
    if flow[f, D_CUT] > 0.0:
        return _NEVER
    flow[f, D_CUT] = 1.0
    period = par[DCQCN_CUT_S]
    n = math.floor((now - flow[f, D_CUT_GRID]) / period) + 1.0
    flow[f, D_CUT_DUE] = flow[f, D_CUT_GRID] + max(n, 1.0) * period
    return float(flow[f, D_CUT_DUE])


@inlined
def dcqcn_cut(w: World, f: int, now: float) -> None:
    """Cut the rate at a check that found a CNP."""
    _age_alpha(w, f, now)
    _dcqcn_cut(w, f, now)


@inlined
def _dcqcn_cut(w: World, f: int, now: float) -> None:
    flow, par = w.flow, w.parameter
    if par[DCQCN_CLAMP] > 0.0 or flow[f, D_STAGE] + flow[f, D_BYTE_STAGE] > 0.0 or par[DCQCN_ON_CNP] > 0.0:
        flow[f, D_TARGET] = flow[f, F_RATE]
    keep = max(1.0 - 0.5 * flow[f, D_ALPHA], par[DCQCN_LEAST_CUT])
    flow[f, F_RATE] = max(par[DCQCN_MIN], flow[f, F_RATE] * keep)
    flow[f, D_STAGE] = 0.0
    flow[f, D_BYTE_STAGE] = 0.0
    flow[f, D_CUT] = 0.0
    flow[f, D_CUT_DUE] = _NEVER
    flow[f, D_RAISE] = now + par[DCQCN_TIMER_S]
    flow[f, D_BYTES_AT] = flow[f, F_SENT] + par[DCQCN_BYTES]
    w.flow_int[f, G_CUTS] += 1
    set_window(w, f)


@inlined
def dcqcn_raise(w: World, f: int, by_bytes: int) -> None:
    """Raise the rate: the timer has run out, or (``by_bytes`` 1) the byte counter."""
    flow, par = w.flow, w.parameter
    steps = par[DCQCN_STEPS]
    stage, other = flow[f, D_STAGE], flow[f, D_BYTE_STAGE]
    if par[DCQCN_BYTES] <= 0.0:
        other = stage
    high, low = max(stage, other), min(stage, other)
    if high >= steps:
        step = par[DCQCN_HAI] if low > steps else par[DCQCN_AI]
        flow[f, D_TARGET] = min(flow[f, D_TARGET] + step, flow[f, F_LINE])
    flow[f, F_RATE] = 0.5 * (flow[f, F_RATE] + flow[f, D_TARGET])
    if by_bytes == 1:
        flow[f, D_BYTE_STAGE] += 1.0
    else:
        flow[f, D_STAGE] += 1.0
    set_window(w, f)


@inlined
def on_ack(
    w: World, f: int, p: int, now: float, packets: int, load: float, marks: int, rtt: float, hops: int
) -> None:
    """Let the protocol of flow ``f`` see an acknowledgement.

    ``F_ACKED`` already counts it. DCQCN is not here: its CNPs go to `dcqcn_cnp`.
    """
    cc = w.counter[C_CC]
    if cc == CC_DCTCP:
        _dctcp(w, f, packets, marks)
    elif cc == CC_HPCC:
        _hpcc(w, f, p, now, hops)
    elif cc == CC_TIMELY:
        _timely(w, f, rtt)
    elif cc == CC_SWIFT:
        _swift(w, f, now, load, rtt, hops)
    elif cc == CC_POWERTCP:
        _powertcp(w, f, p, hops)
    elif cc == CC_NSCC:
        _nscc(w, f, now, load, marks, rtt)
    elif cc == CC_PER_MARK:
        _per_mark(w, f, load, marks)
    elif cc == CC_RTT:
        _rtt_template(w, f, marks, rtt)
    elif cc == CC_IBCC:
        _ibcc(w, f, now, marks)


@inlined
def rccc_window(w: World, f: int) -> float:
    """Return the most credit that a flow may have [payload bytes]."""
    flow = w.flow
    bdp = flow[f, F_LINE] * flow[f, F_RTT] * _payload_part(w, f)
    return float(max(w.parameter[RCCC_WINDOW] * bdp, flow[f, F_PAYLOAD]))


@inlined
def rccc_heard(w: World, f: int) -> None:
    """Drop what is left of the first credit: the receiver's count from here on."""
    flow = w.flow
    if flow[f, V_GUESSING] > 0.0:
        flow[f, V_GUESSING] = 0.0
        if w.parameter[RCCC_ECHO] == 0.0:
            flow[f, V_CREDIT] = min(flow[f, V_CREDIT], 0.0)


@inlined
def rccc_ask(w: World, f: int, load: float, turns: int) -> float:
    """Spend the credit for ``load`` bytes; return up to which grant the packet asks for credit."""
    flow, par = w.flow, w.parameter
    flow[f, V_CREDIT] -= load
    left = flow[f, F_SIZE] - flow[f, F_SENT]
    ask = min(left, rccc_window(w, f)) - flow[f, V_CREDIT]
    if flow[f, V_GUESSING] > 0.0 and left > 0.0:
        ask = max(ask, flow[f, F_PAYLOAD])
    if par[RCCC_SHARED] > 0.0 and turns > 1:
        ask /= turns
    return float(flow[f, V_PULLED] + max(ask, 0.0))


@inlined
def rccc_grant(w: World, f: int, load: float) -> None:
    """Take a grant in at the sender."""
    flow = w.flow
    rccc_heard(w, f)
    flow[f, V_PULLED] += load
    flow[f, V_CREDIT] += load
    if w.parameter[RCCC_ECHO] == 0.0:
        flow[f, V_CREDIT] = min(flow[f, V_CREDIT], rccc_window(w, f))


@inlined
def _dctcp(w: World, f: int, packets: int, marks: int) -> None:
    flow, par = w.flow, w.parameter
    mtu = flow[f, F_PAYLOAD]
    acked, sent = flow[f, F_ACKED], flow[f, F_SENT]
    flow[f, T_MARKS] += marks
    new_batch = acked > flow[f, T_SEQ]
    if new_batch:
        if flow[f, T_SEQ] == 0.0:
            flow[f, T_BATCH] = math.floor(sent / mtu) + 1.0
        else:
            part = min(1.0, flow[f, T_MARKS] / flow[f, T_BATCH])
            flow[f, T_ALPHA] = (1.0 - par[DCTCP_GAIN]) * flow[f, T_ALPHA] + par[DCTCP_GAIN] * part
            flow[f, T_MARKS] = 0.0
            flow[f, T_BATCH] = math.floor((sent - acked) / mtu) + 1.0
        flow[f, T_SEQ] = sent
    if flow[f, T_REDUCED] > 0.0 and acked > flow[f, T_HIGH]:
        flow[f, T_REDUCED] = 0.0
    if marks > 0 and flow[f, T_REDUCED] == 0.0:
        flow[f, F_RATE] = max(par[DCTCP_MIN], flow[f, F_RATE] * (1.0 - 0.5 * flow[f, T_ALPHA]))
        flow[f, T_REDUCED] = 1.0
        flow[f, T_HIGH] = sent
        w.flow_int[f, G_CUTS] += 1
    if new_batch and flow[f, T_REDUCED] == 0.0:
        flow[f, F_RATE] = min(flow[f, F_LINE], flow[f, F_RATE] + par[DCTCP_AI])
    set_window(w, f)


@inlined
def _per_mark_bound(w: World, f: int) -> None:
    flow = w.flow
    mtu = flow[f, F_PAYLOAD]
    flow[f, M_WINDOW] = max(flow[f, M_WINDOW], mtu)
    flow[f, F_WINDOW] = flow[f, M_WINDOW] - mtu * (1.0 - 1e-9)  # room for all of a packet lets it go


@inlined
def _per_mark(w: World, f: int, load: float, marks: int) -> None:
    flow, par = w.flow, w.parameter
    mtu = flow[f, F_PAYLOAD]
    if marks > 0:
        flow[f, M_WINDOW] -= par[PER_MARK_CUT] * load
        w.flow_int[f, G_CUTS] += 1
    else:
        flow[f, M_WINDOW] += par[PER_MARK_AI] * mtu * load / flow[f, M_WINDOW]
    _per_mark_bound(w, f)


@inlined
def _hpcc(w: World, f: int, p: int, now: float, hops: int) -> None:
    flow, par = w.flow, w.parameter
    last, news = w.last_telemetry, w.telemetry
    if flow[f, H_FIRST] == 0.0:
        flow[f, H_FIRST] = 1.0
        flow[f, H_SEQ] = flow[f, F_SENT]
        for h in range(hops):
            for c in range(3):
                last[f, h, c] = news[p, h, c]
        return
    base = flow[f, F_RTT]
    window = flow[f, F_WINDOW0]
    top, span = 0.0, 0.0
    for h in range(hops):
        tau = news[p, h, I_TIME] - last[f, h, I_TIME]
        rate = last[f, h, 3]  # of the hop, written when it was crossed
        if tau > 0.0:
            u = (news[p, h, I_SENT] - last[f, h, I_SENT]) / tau / rate
            queue = min(news[p, h, I_QUEUE], last[f, h, I_QUEUE])
            u += queue * flow[f, F_LINE] / rate / window
            if u > top:
                top, span = u, tau
        for c in range(3):
            last[f, h, c] = news[p, h, c]
    span = min(span, base)
    flow[f, H_UTIL] = (flow[f, H_UTIL] * (base - span) + top * span) / base
    excess = flow[f, H_UTIL] / par[HPCC_ETA]
    full = flow[f, F_ACKED] > flow[f, H_SEQ]
    stage = flow[f, H_STAGE] + 1.0
    if excess >= 1.0 or flow[f, H_STAGE] >= par[HPCC_STAGES]:
        rate = flow[f, H_RATE] / excess + par[HPCC_AI]
        stage = 0.0
    else:
        rate = flow[f, H_RATE] + par[HPCC_AI]
    rate = min(max(rate, par[HPCC_MIN]), flow[f, F_LINE])
    if full or par[HPCC_FAST] > 0.0:
        # The gap to the next packet, which runs already, is stretched or shortened too.
        wire = flow[f, F_PAYLOAD] + flow[f, F_HEADER]
        flow[f, F_NEXT] += wire / rate - wire / flow[f, F_RATE]
        flow[f, F_RATE] = rate
    if full:
        flow[f, H_RATE] = rate
        flow[f, H_STAGE] = stage
        flow[f, H_SEQ] = max(flow[f, F_SENT], flow[f, H_SEQ])
    set_window(w, f)


@inlined
def _timely(w: World, f: int, rtt: float) -> None:
    flow, par = w.flow, w.parameter
    if flow[f, F_ACKED] <= flow[f, Y_SEQ]:
        return
    if flow[f, Y_SEQ] != 0.0:
        a = par[TIMELY_ALPHA]
        diff = (1.0 - a) * flow[f, Y_DIFF] + a * (rtt - flow[f, Y_RTT])
        gradient = diff / par[TIMELY_MIN_RTT]
        factor = -1.0  # negative: rise
        extra = 0.0
        if rtt < par[TIMELY_LOW]:
            pass
        elif rtt > par[TIMELY_HIGH]:
            factor = 1.0 - par[TIMELY_BETA] * (1.0 - par[TIMELY_HIGH] / rtt)
        elif par[TIMELY_PATCHED] > 0.0:
            weight = min(max(2.0 * gradient + 0.5, 0.0), 1.0)
            error = (rtt - par[TIMELY_REF]) / par[TIMELY_REF]
            factor = max(1.0 - par[TIMELY_PATCHED] * weight * error, 0.0)
            extra = par[TIMELY_AI] * (1.0 - weight)
        elif gradient > 0.0:
            factor = max(1.0 - par[TIMELY_BETA] * gradient, 0.0)
        if factor < 0.0:
            step = par[TIMELY_AI] if flow[f, Y_STAGE] < par[TIMELY_HAI_AFTER] else par[TIMELY_HAI]
            flow[f, F_RATE] = min(flow[f, F_LINE], flow[f, F_RATE] + step)
            flow[f, Y_STAGE] += 1.0
        else:
            rate = flow[f, F_RATE] * factor + extra
            flow[f, F_RATE] = min(flow[f, F_LINE], max(par[TIMELY_MIN], rate))
            flow[f, Y_STAGE] = 0.0
            w.flow_int[f, G_CUTS] += 1
        flow[f, Y_DIFF] = diff
        set_window(w, f)
    flow[f, Y_SEQ] = max(flow[f, F_SENT], flow[f, Y_SEQ])
    flow[f, Y_RTT] = rtt


@inlined
def _swift(w: World, f: int, now: float, load: float, rtt: float, hops: int) -> None:
    flow, par = w.flow, w.parameter
    mtu = flow[f, F_PAYLOAD]
    window = flow[f, W_WINDOW]
    may_cut = now - flow[f, W_CUT] >= flow[f, W_RTT]
    flow[f, W_RTT] = rtt if flow[f, W_RTT] == 0.0 else 0.875 * flow[f, W_RTT] + 0.125 * rtt
    span = par[SWIFT_RANGE]
    a = span / (1.0 / math.sqrt(par[SWIFT_RANGE_MIN]) - 1.0 / math.sqrt(par[SWIFT_RANGE_MAX]))
    b = -a / math.sqrt(par[SWIFT_RANGE_MAX])
    target = par[SWIFT_BASE] + hops * par[SWIFT_HOP]
    target += min(max(a / math.sqrt(window / mtu) + b, 0.0), span)
    if rtt < target:
        if window >= mtu:
            window += par[SWIFT_AI] * mtu * load / window
        else:
            window += par[SWIFT_AI] * load
    elif may_cut:
        window *= max(1.0 - par[SWIFT_BETA] * (rtt - target) / rtt, 1.0 - par[SWIFT_MAX_CUT])
        flow[f, W_CUT] = now
        w.flow_int[f, G_CUTS] += 1
    window = min(max(window, 0.01 * mtu), 1e4 * mtu)
    flow[f, W_WINDOW] = window
    flow[f, F_WINDOW] = max(window, 1.0)
    if window < mtu:  # less than a packet a round trip: paced
        flow[f, F_RATE] = min(window / flow[f, W_RTT] / _payload_part(w, f), flow[f, F_LINE])
    else:
        flow[f, F_RATE] = flow[f, F_LINE]


@inlined
def _powertcp(w: World, f: int, p: int, hops: int) -> None:
    flow, par = w.flow, w.parameter
    last, news = w.last_telemetry, w.telemetry
    base = flow[f, F_RTT]
    if flow[f, O_FIRST] == 0.0:
        flow[f, O_FIRST] = 1.0
        flow[f, O_SEQ] = flow[f, F_SENT]
        for h in range(hops):
            for c in range(3):
                last[f, h, c] = news[p, h, c]
        return
    top, span = 0.0, 0.0
    for h in range(hops):
        tau = news[p, h, I_TIME] - last[f, h, I_TIME]
        rate = last[f, h, 3]
        if tau > 0.0:
            growth = (news[p, h, I_QUEUE] - last[f, h, I_QUEUE]) / tau
            current = growth + (news[p, h, I_SENT] - last[f, h, I_SENT]) / tau
            voltage = news[p, h, I_QUEUE] + rate * base
            power = current * voltage / (rate * rate * base)
            if power > top:
                top, span = power, tau
        for c in range(3):
            last[f, h, c] = news[p, h, c]
    span = min(span, base)
    flow[f, O_POWER] = (flow[f, O_POWER] * (base - span) + top * span) / base
    full = flow[f, F_LINE] * base * _payload_part(w, f)
    window = par[POWER_GAMMA] * (flow[f, O_OLD] / flow[f, O_POWER] + full / par[POWER_FLOWS])
    window += (1.0 - par[POWER_GAMMA]) * flow[f, O_WINDOW]
    window = min(max(window, flow[f, F_PAYLOAD]), full)
    flow[f, O_WINDOW] = window
    flow[f, F_WINDOW] = window
    flow[f, F_RATE] = min(flow[f, F_LINE] * window / full, flow[f, F_LINE])
    if flow[f, F_ACKED] > flow[f, O_SEQ]:
        flow[f, O_OLD] = window
        flow[f, O_SEQ] = max(flow[f, F_SENT], flow[f, O_SEQ])


@inlined
def _nscc_scale(w: World, f: int) -> float:
    """Return a: the flow's bandwidth-delay product over the reference network's."""
    bdp = w.flow[f, F_LINE] * w.flow[f, F_RTT]
    return float(bdp / (w.parameter[NSCC_REF_RATE] * w.parameter[NSCC_REF_DELAY]))


@inlined
def _nscc_bound(w: World, f: int) -> None:
    """Keep the window in its bounds and hand it to the sender."""
    flow = w.flow
    mtu = flow[f, F_PAYLOAD]
    most = w.parameter[NSCC_MAX_WINDOW] * flow[f, F_LINE] * flow[f, U_BASE] * _payload_part(w, f)
    flow[f, U_WINDOW] = max(min(flow[f, U_WINDOW], most), mtu)
    flow[f, F_WINDOW] = flow[f, U_WINDOW] - mtu * (1.0 - 1e-9)  # room for all of a packet lets it go


@inlined
def _nscc_adapt(w: World, f: int, now: float, bad: int, delay: float, target: float) -> bool:
    """Fall to what got through, at the end of a period in which far too little did.

    Returns whether it did, or whether news that is bad (a mark, a loss) is of packets sent before it last
    did: those do not count.
    """
    flow, par = w.flow, w.parameter
    done = bad > 0 and flow[f, U_IGNORE] > 0.0
    if not done and now > flow[f, U_QA_END]:
        most = par[NSCC_MAX_WINDOW] * flow[f, F_LINE] * flow[f, U_BASE] * _payload_part(w, f)
        if (
            flow[f, U_QA_END] > 0.0
            and (flow[f, U_TRIGGER] > 0.0 or delay > par[NSCC_QA_THRESHOLD] * target)
            and flow[f, U_ACHIEVED] < most / 2.0 ** par[NSCC_QA_GATE]
        ):
            flow[f, U_WINDOW] = flow[f, U_ACHIEVED]
            flow[f, U_IGNORE] = flow[f, F_SENT] - flow[f, F_ACKED]
            flow[f, U_TRIGGER] = 0.0
            w.flow_int[f, G_CUTS] += 1
            done = True
        flow[f, U_ACHIEVED] = 0.0
        flow[f, U_QA_END] = now + flow[f, U_BASE] + target
    if done:
        flow[f, U_INC] = 0.0
        flow[f, U_RECEIVED] = 0.0
    return done


@inlined
def _nscc(w: World, f: int, now: float, load: float, marks: int, rtt: float) -> None:
    flow, par = w.flow, w.parameter
    mtu = flow[f, F_PAYLOAD]
    flow[f, U_BASE] = min(flow[f, U_BASE], rtt)
    delay = rtt - flow[f, U_BASE]
    trip = flow[f, F_RTT]
    target = par[NSCC_TARGET] * trip
    a = _nscc_scale(w, f)
    sample = 0.25 * flow[f, U_BASE] if marks == 0 and delay > target else delay
    flow[f, U_DELAY] += par[NSCC_EWMA] * (sample - flow[f, U_DELAY])
    flow[f, U_ACHIEVED] += load
    flow[f, U_RECEIVED] += load
    flow[f, U_IGNORE] -= load
    if _nscc_adapt(w, f, now, marks, delay, target):
        _nscc_bound(w, f)
        return
    flow[f, U_QUIET] = flow[f, U_QUIET] + load if delay < _NO_DELAY else 0.0
    if marks == 0 and delay >= target:
        flow[f, U_INC] += par[NSCC_FI] * mtu * a * load
    elif marks == 0:
        if flow[f, U_QUIET] > flow[f, U_WINDOW]:
            flow[f, U_QUIET] = _NEVER  # goes on until a delay is seen
            flow[f, U_WINDOW] += 0.25 * a * load
        else:
            flow[f, U_INC] += par[NSCC_ALPHA] * mtu * a / par[NSCC_REF_DELAY] * load * (target - delay)
    elif delay >= target and flow[f, U_DELAY] > target and now - flow[f, U_CUT_AT] > flow[f, U_BASE]:
        excess = (flow[f, U_DELAY] - target) / flow[f, U_DELAY]
        flow[f, U_WINDOW] *= max(1.0 - par[NSCC_GAMMA] * excess, 0.5)
        flow[f, U_CUT_AT] = now
        w.flow_int[f, G_CUTS] += 1
    _nscc_bound(w, f)
    if flow[f, U_RECEIVED] > 8.0 * mtu or now - flow[f, U_ADJUSTED] > trip:
        flow[f, U_WINDOW] += flow[f, U_INC] / flow[f, U_WINDOW]
        flow[f, U_INC] = 0.0
        flow[f, U_RECEIVED] = 0.0
        if now - flow[f, U_ADJUSTED] >= trip:
            flow[f, U_WINDOW] += par[NSCC_ETA] * mtu * a
            flow[f, U_ADJUSTED] = now
    _nscc_bound(w, f)


@inlined
def on_loss(w: World, f: int, now: float, load: float, rtt: float) -> None:
    """Let the protocol know that ``load`` bytes were lost, sent ``rtt`` ago; their header met no queue."""
    flow = w.flow
    if w.counter[C_CC] == CC_NSCC:
        trip = flow[f, F_RTT]
        flow[f, U_BASE] = min(flow[f, U_BASE], rtt)
        flow[f, U_IGNORE] -= load
        flow[f, U_TRIGGER] = 1.0
        flow[f, U_DELAY] += w.parameter[NSCC_EWMA] * (trip - flow[f, U_DELAY])
        if not _nscc_adapt(w, f, now, 1, 0.0, w.parameter[NSCC_TARGET] * trip):
            flow[f, U_WINDOW] -= load
        _nscc_bound(w, f)
    elif w.counter[C_CC] == CC_PER_MARK:
        flow[f, M_WINDOW] -= load
        _per_mark_bound(w, f)
    elif w.counter[C_CC] == CC_SWIFT and now - flow[f, W_CUT] >= flow[f, W_RTT]:
        flow[f, W_WINDOW] = max(flow[f, W_WINDOW] * (1.0 - w.parameter[SWIFT_MAX_CUT]), 1.0)
        flow[f, W_CUT] = now
        flow[f, F_WINDOW] = flow[f, W_WINDOW]
        w.flow_int[f, G_CUTS] += 1


@inlined
def _rtt_template(w: World, f: int, marks: int, rtt: float) -> None:
    flow, par = w.flow, w.parameter
    flow[f, R_MARKED] += marks
    if flow[f, F_ACKED] <= flow[f, R_SEQ]:
        return
    probe = flow[f, R_PROBES]
    flow[f, R_PROBES] = probe + 1.0
    flow[f, R_MIN] = min(flow[f, R_MIN], rtt)
    if uniform(w.counter[C_SEED] + 2, f, int(probe), 0) < 1.0 / 256.0:
        flow[f, R_MIN] = rtt
    rate = flow[f, F_RATE]
    if flow[f, R_MARKED] > 0.0 or rtt >= par[RTT_LIMIT]:
        rate *= par[RTT_CUT]
        w.flow_int[f, G_CUTS] += 1
    elif rtt - flow[f, R_MIN] > par[RTT_EXCESS]:
        rate *= par[RTT_SMALL_CUT]
        w.flow_int[f, G_CUTS] += 1
    else:
        rate += par[RTT_STEP] * flow[f, F_LINE]
    flow[f, F_RATE] = min(max(rate, par[RTT_FLOOR] * flow[f, F_LINE]), flow[f, F_LINE])
    flow[f, R_MARKED] = 0.0
    flow[f, R_SEQ] = max(flow[f, F_SENT], flow[f, R_SEQ])
    set_window(w, f)


@inlined
def _ibcc(w: World, f: int, now: float, marks: int) -> None:
    flow, par = w.flow, w.parameter
    ticks = math.floor((now - flow[f, B_TICK]) / par[IBCC_TIMER])
    if ticks > 0.0:
        flow[f, B_INDEX] = max(flow[f, B_INDEX] - ticks, 0.0)
        flow[f, B_TICK] += ticks * par[IBCC_TIMER]
    if marks > 0:
        flow[f, B_INDEX] = min(flow[f, B_INDEX] + par[IBCC_INCREASE] * marks, par[IBCC_LIMIT])
        w.flow_int[f, G_CUTS] += 1
    flow[f, F_RATE] = flow[f, F_LINE] / (1.0 + par[IBCC_STEP] * flow[f, B_INDEX])
    set_window(w, f)
