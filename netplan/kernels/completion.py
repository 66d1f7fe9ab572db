"""Finish times of messages whose flows share links max-min fairly.

Whenever a message starts or finishes, rates change; they are solved anew, but only where they
can have changed. After a change the solver guesses the set of flows concerned (those that the
finished flows held back), fills that set again with all others held fixed, and looks for a flow
outside whose certificate broke: its bottleneck link is no longer saturated, or it is faster than
a flow that is stopped on the same saturated link. Such flows join the set, until none is left.
Every flow then has a bottleneck, so the rates are *the* max-min rates (see `max_min`), not an
approximation of them; a test holds them equal to solving everything at each event.

A *message* owns one or more consecutive flows (its QPs) that draw from one pool of bytes. With
one flow a message this is the usual "equal bytes a QP"; with several it is work-conserving.

A message may have to wait for others (`Order`): the steps of a ring, the shifts of a staged
all-to-all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from netplan.kernels.max_min import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from netplan.kernels.arrays import Floats, Ints

#: Completions closer than this (relative to the clock) are one event. Far above the rounding of
#: the clock, far below any latency that is modelled.
SAME_TIME = 1e-9

#: Relative slack of a link that counts as saturated: the rounding of a sum of a million rates.
_SATURATED = 1e-9

_WAITING, _RUNNING, _DONE = 0, 1, 2


class Order(NamedTuple):
    """Which message begins only after which other: pair ``i`` lets ``then[i]`` wait for ``first[i]``."""

    first: NDArray[np.int64]
    """(n_pairs,) the message that is waited for."""
    then: NDArray[np.int64]
    """(n_pairs,) the message that waits; one that waits for several begins after the last of them."""
    delay: NDArray[np.float64]
    """(n_pairs,) time between the end of the first and the earliest begin of the second [s], >= 0."""


class Completion(NamedTuple):
    """What became of each message, and of the rates on the way."""

    finish: NDArray[np.float64]
    """(n_messages,) time of the last byte [s]."""
    first_rate: NDArray[np.float64]
    """(n_flows,) max-min rate right after the flow's message started [bytes/s]."""
    first_bottleneck: NDArray[np.int64]
    """(n_flows,) the link that stopped the flow then."""
    events: int
    """Distinct instants at which rates were solved anew."""


def complete(
    capacity: NDArray[np.float64],
    flow_ptr: NDArray[np.int64],
    flow_link: NDArray[np.int64],
    coefficient: NDArray[np.float64],
    message_ptr: NDArray[np.int64],
    size: NDArray[np.float64],
    start: NDArray[np.float64],
    *,
    multiplicity: NDArray[np.float64] | None = None,
    order: Order | None = None,
    progress: Callable[[int], None] | None = None,
) -> Completion:
    """Run all messages to their end.

    Parameters
    ----------
    capacity : (n_links,) float64
        Usable capacity of each directed link [bytes/s], > 0 on every link in use.
    flow_ptr, flow_link, coefficient
        Paths as in `max_min.solve_max_min`.
    message_ptr : (n_messages + 1,) int64
        Message ``m`` owns the flows ``message_ptr[m]:message_ptr[m + 1]``.
    size : (n_messages,) float64
        Bytes of each message, > 0.
    start : (n_messages,) float64
        When each message begins [s]; with `order`, before which it does not begin.
    multiplicity : (n_flows,) float64, optional
        How many equal QPs a flow stands for, each of which has the flow's rate; 1 when omitted.
    order : Order, optional
        Messages that wait for others.
    progress : callable, optional
        Called now and then with the number of finished messages.

    Returns
    -------
    Completion
        Finish times [s], first rates [bytes/s], first bottlenecks and the number of events.

    Raises
    ------
    ValueError
        A message that can never finish (a link of capacity 0 on each of its paths), or messages that
        wait for each other.
    """
    n_flows, n_messages, n_links = len(flow_ptr) - 1, len(size), len(capacity)
    if multiplicity is None:
        multiplicity = np.ones(n_flows)
    message_of = np.repeat(np.arange(n_messages), np.diff(message_ptr))
    if order is None:
        order = Order(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    by_first = np.argsort(order.first, kind="stable")
    state = _State(
        flow_ptr=flow_ptr.astype(np.int64),
        flow_link=flow_link.astype(np.int64),
        coefficient=coefficient.astype(np.float64),
        multiplicity=multiplicity.astype(np.float64),
        capacity=capacity.astype(np.float64),
        message_ptr=message_ptr.astype(np.int64),
        message_of=message_of,
        rate=np.zeros(n_flows),
        bottleneck=np.full(n_flows, -1, np.int64),
        first_rate=np.full(n_flows, -1.0),
        first_bottleneck=np.full(n_flows, -1, np.int64),
        left=size.astype(np.float64).copy(),
        speed=np.zeros(n_messages),
        since=start.astype(np.float64).copy(),
        due=start.astype(np.float64).copy(),
        status=np.zeros(n_messages, np.int8),
        heap=np.zeros(n_messages, np.int64),
        heap_position=np.full(n_messages, -1, np.int64),
        link_ptr=_row_pointer(flow_link, n_links),
        link_length=np.zeros(n_links, np.int64),
        link_flow=np.zeros(len(flow_link), np.int64),
        link_entry=np.zeros(len(flow_link), np.int64),
        entry_slot=np.zeros(len(flow_link), np.int64),
        waits_for=np.bincount(order.then, minlength=n_messages).astype(np.int64),
        next_ptr=_row_pointer(order.first, n_messages),
        next_message=order.then[by_first].astype(np.int64),
        next_delay=order.delay[by_first].astype(np.float64),
    )
    scratch = _Scratch(
        work=np.zeros(n_flows, np.int64),
        member=np.zeros(n_flows, np.int64),
        in_set=np.zeros(n_flows, np.bool_),
        touched=np.zeros(n_links, np.int64),
        is_touched=np.zeros(n_links, np.bool_),
        residual=np.zeros(n_links),
        demand=np.zeros(n_links),
        n_open=np.zeros(n_links, np.int64),
        level=np.zeros(n_links),
        blocked=np.zeros(n_links, np.bool_),
        batch=np.zeros(n_messages, np.int64),
    )
    heap_size = _begin(state)
    events = n_done = 0
    while n_done < n_messages:
        heap_size, step_events, step_done, stuck = _advance(state, scratch, heap_size, 20_000)
        if stuck >= 0:
            msg = f"message {stuck} can never finish: every path it has crosses a link of capacity 0"
            raise ValueError(msg)
        events += step_events
        n_done += step_done
        if heap_size == 0 and n_done < n_messages:
            msg = f"{n_messages - n_done} messages wait for each other and never begin"
            raise ValueError(msg)
        if progress is not None:
            progress(n_done)
    return Completion(state.due, state.first_rate, state.first_bottleneck, events)


class _State(NamedTuple):
    """What the engine knows between events."""

    flow_ptr: NDArray[np.int64]
    flow_link: NDArray[np.int64]
    coefficient: NDArray[np.float64]
    multiplicity: NDArray[np.float64]
    capacity: NDArray[np.float64]
    message_ptr: NDArray[np.int64]
    message_of: NDArray[np.int64]
    rate: NDArray[np.float64]
    bottleneck: NDArray[np.int64]
    first_rate: NDArray[np.float64]
    first_bottleneck: NDArray[np.int64]
    left: NDArray[np.float64]
    speed: NDArray[np.float64]
    since: NDArray[np.float64]
    due: NDArray[np.float64]
    status: NDArray[np.int8]
    heap: NDArray[np.int64]
    heap_position: NDArray[np.int64]
    link_ptr: NDArray[np.int64]
    link_length: NDArray[np.int64]
    link_flow: NDArray[np.int64]
    link_entry: NDArray[np.int64]
    entry_slot: NDArray[np.int64]
    waits_for: NDArray[np.int64]
    next_ptr: NDArray[np.int64]
    next_message: NDArray[np.int64]
    next_delay: NDArray[np.float64]


class _Scratch(NamedTuple):
    """Memory that one event leaves to the next, so that none is allocated on the way."""

    work: NDArray[np.int64]
    member: NDArray[np.int64]
    in_set: NDArray[np.bool_]
    touched: NDArray[np.int64]
    is_touched: NDArray[np.bool_]
    residual: NDArray[np.float64]
    demand: NDArray[np.float64]
    n_open: NDArray[np.int64]
    level: NDArray[np.float64]
    blocked: NDArray[np.bool_]
    batch: NDArray[np.int64]


def _row_pointer(row: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    """Return the CSR row pointer of entries that stand in the given rows (link -> flows)."""
    pointer = np.zeros(n_rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n_rows), out=pointer[1:])
    return pointer


@njit(cache=True)
def _sift_up(heap: Ints, position: Ints, due: Floats, i: int) -> None:
    """Move the message at heap place ``i`` towards the root while it is due earlier."""
    m = heap[i]
    while i > 0:
        parent = (i - 1) >> 1
        if due[heap[parent]] <= due[m]:
            break
        heap[i] = heap[parent]
        position[heap[i]] = i
        i = parent
    heap[i] = m
    position[m] = i


@njit(cache=True)
def _sift_down(heap: Ints, position: Ints, due: Floats, n: int, i: int) -> None:
    """Move the message at heap place ``i`` away from the root while it is due later."""
    m = heap[i]
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and due[heap[child + 1]] < due[heap[child]]:
            child += 1
        if due[heap[child]] >= due[m]:
            break
        heap[i] = heap[child]
        position[heap[i]] = i
        i = child
    heap[i] = m
    position[m] = i


@njit(cache=True)
def _begin(state: _State) -> int:
    """Put every message that waits for no other into the heap at its start time; return the heap's size."""
    heap_size = 0
    for m in range(len(state.due)):
        if state.waits_for[m] == 0:
            heap_size = _enter(state, heap_size, m)
    return heap_size


@njit(cache=True)
def _enter(state: _State, heap_size: int, m: int) -> int:
    """Put message ``m`` into the heap at the time it is due; return the heap's size."""
    state.heap[heap_size] = m
    state.heap_position[m] = heap_size
    _sift_up(state.heap, state.heap_position, state.due, heap_size)
    return heap_size + 1


@njit(cache=True)
def _let_begin(state: _State, heap_size: int, m: int, now: float) -> int:
    """Tell the messages that wait for ``m`` that it has finished; return the heap's size."""
    for i in range(state.next_ptr[m], state.next_ptr[m + 1]):
        later = state.next_message[i]
        state.due[later] = max(state.due[later], now + state.next_delay[i])
        state.waits_for[later] -= 1
        if state.waits_for[later] == 0:
            heap_size = _enter(state, heap_size, later)
    return heap_size


@njit(cache=True)
def _insert_flow(state: _State, f: int) -> None:
    """Enter flow ``f`` into the flow lists of its links."""
    for e in range(state.flow_ptr[f], state.flow_ptr[f + 1]):
        link = state.flow_link[e]
        slot = state.link_ptr[link] + state.link_length[link]
        state.link_flow[slot] = f
        state.link_entry[slot] = e
        state.entry_slot[e] = slot
        state.link_length[link] += 1


@njit(cache=True)
def _remove_flow(state: _State, f: int) -> None:
    """Take flow ``f`` out of the flow lists of its links (the last one fills the gap)."""
    for e in range(state.flow_ptr[f], state.flow_ptr[f + 1]):
        link = state.flow_link[e]
        slot = state.entry_slot[e]
        last = state.link_ptr[link] + state.link_length[link] - 1
        state.link_flow[slot] = state.link_flow[last]
        state.link_entry[slot] = state.link_entry[last]
        state.entry_slot[state.link_entry[slot]] = slot
        state.link_length[link] -= 1


@njit(cache=True)
def _advance(state: _State, scratch: _Scratch, heap_size: int, max_events: int) -> tuple[int, int, int, int]:
    """Run up to ``max_events`` instants; return heap size, events, finished messages, a stuck one."""
    events = 0
    n_done = 0
    while heap_size > 0 and events < max_events:
        now = state.due[state.heap[0]]
        if now == np.inf:
            return heap_size, events, n_done, state.heap[0]
        horizon = now + SAME_TIME * abs(now)
        n_batch = 0
        while heap_size > 0 and state.due[state.heap[0]] <= horizon:
            m = state.heap[0]
            scratch.batch[n_batch] = m
            n_batch += 1
            heap_size -= 1
            state.heap_position[m] = -1
            if heap_size > 0:
                state.heap[0] = state.heap[heap_size]
                state.heap_position[state.heap[0]] = 0
                _sift_down(state.heap, state.heap_position, state.due, heap_size, 0)
        events += 1
        n_set = 0
        for b in range(n_batch):
            m = scratch.batch[b]
            if state.status[m] == _RUNNING:
                state.status[m] = _DONE
                state.left[m] = 0.0
                n_done += 1
                heap_size = _let_begin(state, heap_size, m, state.due[m])
                for f in range(state.message_ptr[m], state.message_ptr[m + 1]):
                    _remove_flow(state, f)
        # Flows that a finished flow held back may rise.
        for b in range(n_batch):
            m = scratch.batch[b]
            if state.status[m] != _DONE:
                continue
            for f in range(state.message_ptr[m], state.message_ptr[m + 1]):
                for e in range(state.flow_ptr[f], state.flow_ptr[f + 1]):
                    link = state.flow_link[e]
                    for s in range(state.link_ptr[link], state.link_ptr[link] + state.link_length[link]):
                        g = state.link_flow[s]
                        if state.bottleneck[g] == link:
                            n_set = _join(state, scratch, n_set, g)
        # Messages that start have rates to be found.
        for b in range(n_batch):
            m = scratch.batch[b]
            if state.status[m] == _WAITING:
                state.status[m] = _RUNNING
                heap_size = _push(state, heap_size, m)
                for f in range(state.message_ptr[m], state.message_ptr[m + 1]):
                    _insert_flow(state, f)
                    n_set = _join(state, scratch, n_set, f)
        n_set = _refill(state, scratch, n_set)
        for i in range(n_set):
            f = scratch.member[i]
            scratch.in_set[f] = False
            if state.first_rate[f] < 0.0:
                state.first_rate[f] = state.rate[f]
                state.first_bottleneck[f] = state.bottleneck[f]
        for i in range(n_set):
            _reschedule(state, heap_size, scratch.member[i], now)
    return heap_size, events, n_done, -1


@njit(cache=True)
def _push(state: _State, heap_size: int, m: int) -> int:
    """Put message ``m`` back into the heap, never due until it has a rate."""
    state.due[m] = np.inf
    state.heap[heap_size] = m
    state.heap_position[m] = heap_size
    return heap_size + 1


@njit(cache=True)
def _reschedule(state: _State, heap_size: int, f: int, now: float) -> None:
    """Settle the bytes of flow ``f``'s message at its old speed and move its due time to the new one."""
    m = state.message_of[f]
    speed = 0.0
    for g in range(state.message_ptr[m], state.message_ptr[m + 1]):
        speed += state.rate[g] * state.multiplicity[g]
    if speed == state.speed[m]:
        return
    state.left[m] = max(state.left[m] - state.speed[m] * (now - state.since[m]), 0.0)
    state.since[m] = now
    state.speed[m] = speed
    due = now + state.left[m] / speed if speed > 0.0 else np.inf
    earlier = due < state.due[m]
    state.due[m] = due
    if earlier:
        _sift_up(state.heap, state.heap_position, state.due, state.heap_position[m])
    else:
        _sift_down(state.heap, state.heap_position, state.due, heap_size, state.heap_position[m])


@njit(cache=True)
def _join(state: _State, scratch: _Scratch, n_set: int, f: int) -> int:
    """Add flow ``f`` to the set that is filled anew, unless it is in; return the set's size."""
    if scratch.in_set[f]:
        return n_set
    scratch.in_set[f] = True
    scratch.member[n_set] = f
    return n_set + 1


@njit(cache=True)
def _refill(state: _State, scratch: _Scratch, n_set: int) -> int:
    """Solve the rates of the flows in the set and of all whose certificate that breaks.

    Returns the set's size; on return every running flow has a bottleneck.
    """
    n_seen = 0
    n_touched = 0
    while n_seen < n_set:
        for i in range(n_seen, n_set):
            f = scratch.member[i]
            for e in range(state.flow_ptr[f], state.flow_ptr[f + 1]):
                link = state.flow_link[e]
                if not scratch.is_touched[link]:
                    scratch.is_touched[link] = True
                    scratch.touched[n_touched] = link
                    n_touched += 1
        n_seen = n_set
        for t in range(n_touched):
            link = scratch.touched[t]
            room = state.capacity[link]
            for s in range(state.link_ptr[link], state.link_ptr[link] + state.link_length[link]):
                g = state.link_flow[s]
                if not scratch.in_set[g]:
                    room -= state.coefficient[state.link_entry[s]] * state.rate[g]
            scratch.residual[link] = room
        for i in range(n_set):
            scratch.work[i] = scratch.member[i]
        fill(
            scratch.work,
            n_set,
            state.flow_ptr,
            state.flow_link,
            state.coefficient,
            scratch.residual,
            state.rate,
            state.bottleneck,
            scratch.demand,
            scratch.n_open,
            scratch.level,
            scratch.blocked,
        )
        for t in range(n_touched):
            n_set = _join_broken(state, scratch, n_set, scratch.touched[t])
    for t in range(n_touched):
        scratch.is_touched[scratch.touched[t]] = False
    return n_set


@njit(cache=True)
def _join_broken(state: _State, scratch: _Scratch, n_set: int, link: int) -> int:
    """Add the flows outside the set that the new rates on ``link`` leave without a bottleneck."""
    first = state.link_ptr[link]
    last = first + state.link_length[link]
    is_saturated = scratch.residual[link] <= _SATURATED * state.capacity[link]
    fastest = 0.0  # of the set's flows on this link
    stops_at = np.inf  # the level at which the link stops one of the set's flows
    for s in range(first, last):
        g = state.link_flow[s]
        if scratch.in_set[g]:
            fastest = max(fastest, state.rate[g])
            if state.bottleneck[g] == link:
                stops_at = min(stops_at, state.rate[g])
    for s in range(first, last):
        g = state.link_flow[s]
        if scratch.in_set[g]:
            continue
        if state.rate[g] > stops_at * (1.0 + _SATURATED) or (
            state.bottleneck[g] == link and (not is_saturated or fastest > state.rate[g] * (1.0 + _SATURATED))
        ):
            n_set = _join(state, scratch, n_set, g)
    return n_set
