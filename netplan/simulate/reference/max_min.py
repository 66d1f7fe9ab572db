"""A reference run under max-min sharing: what its flows would get from a network without queues.

Flows move ``size x wire / payload`` bytes over the recorded links; rates are max-min fair and are
solved anew at every begin and end. On top comes the latency of one packet (propagation, and one
serialisation on each link behind the first). A dependent flow begins when what it waits for has
arrived (`ReferenceRun.waits_for_ack`: when the sender knows).

With ``acknowledgements``, a flow of rate ``x`` also puts ``x a / (w n)`` on the links of its
acknowledgements (``a`` bytes for each ``n`` packets of ``w`` bytes), and both sizes are what the
simulator's clock makes of them (`ReferenceRun.as_timed`). This is exact where flows that
load a link either way have like rates (all-to-all, rings); in general it is not: a flow whose
acknowledgements cross a full link is held to that link's level, although switches send
acknowledgements first and let the data wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netplan.kernels.completion import Order, complete
from netplan.kernels.max_min import solve_max_min

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.simulate.reference.runs import Paths, ReferenceRun

__all__ = ["FlowTimes", "max_min_goodput", "max_min_times"]


class FlowTimes(NamedTuple):
    """When the flows of a run began and ended, by a model."""

    begin: NDArray[np.float64]
    """(n_flows,) first byte sent [s]."""
    received: NDArray[np.float64]
    """(n_flows,) from begin to the last byte at the receiver [s]; inf: not within the run."""
    acknowledged: NDArray[np.float64]
    """(n_flows,) from begin to the last acknowledgement at the sender [s]."""

    def duration(self, run: ReferenceRun) -> NDArray[np.float64]:
        """Return what the run's simulator measures: to the last byte, or to the last acknowledgement [s]."""
        return self.received if run.measured.received is not None else self.acknowledged

    def makespan(self, run: ReferenceRun) -> float:
        """Return the time from the first begin to the last end as the simulator measures it [s]."""
        return float((self.begin + self.duration(run)).max() - self.begin.min())


class _Messages(NamedTuple):
    """The chunks of flows, as the completion engine takes them."""

    flow: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    size: NDArray[np.float64]
    order: Order


def max_min_times(run: ReferenceRun, *, acknowledgements: bool = False) -> FlowTimes:
    """Return when each flow ends if rates are max-min fair.

    Parameters
    ----------
    run
        A run whose flows have an end.
    acknowledgements
        Whether acknowledgements take capacity, and packets are timed as the simulator does.

    Returns
    -------
    FlowTimes
        Begin [s] and duration [s] of each flow.
    """
    wire = run.as_timed(run.wire_bytes) if acknowledgements else run.wire_bytes
    messages = _messages(run, wire / run.payload_bytes)
    paths, coefficient = _resources(run, acknowledgements=acknowledgements)
    rows = [np.arange(paths.ptr[f], paths.ptr[f + 1]) for f in messages.flow]
    entry = np.concatenate(rows)
    done = complete(
        run.links.capacity,
        np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
        paths.link[entry],
        coefficient[entry],
        np.arange(len(messages.size) + 1),
        messages.size,
        run.demand.start[messages.flow],
        order=messages.order,
    )
    begin = run.demand.start.copy()
    whole = np.isin(messages.order.then, messages.first)  # pairs that let a flow begin, not a later chunk
    arrival = done.finish[messages.order.first] + messages.order.delay
    np.maximum.at(begin, messages.flow[messages.order.then[whole]], arrival[whole])
    received = done.finish[messages.last] - begin + run.latency
    return FlowTimes(begin, received, received + run.ack_latency)


def max_min_goodput(run: ReferenceRun, *, acknowledgements: bool = False) -> NDArray[np.float64]:
    """Return the payload rate of each flow of an endless run when all are active.

    Parameters
    ----------
    run
        A run whose flows do not end.
    acknowledgements
        As in `max_min_times`.

    Returns
    -------
    (n_flows,) float64
        Payload received per second [bytes/s].
    """
    paths, coefficient = _resources(run, acknowledgements=acknowledgements)
    wire = run.as_timed(run.wire_bytes) if acknowledgements else run.wire_bytes
    found = solve_max_min(run.links.capacity, paths.ptr, paths.link, coefficient)
    return found.rate * run.payload_bytes / wire


def _messages(run: ReferenceRun, wire_per_payload: float) -> _Messages:
    """Cut flows into chunks and say which waits for which."""
    demand = run.demand
    chunk = np.where(demand.chunk > 0, demand.chunk, demand.size)
    count = np.ceil(demand.size / chunk - 1e-9).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    flow = np.repeat(np.arange(run.n_flows), count)
    number = np.arange(len(flow)) - first[flow]
    size = np.where(
        number == count[flow] - 1, demand.size[flow] - (count[flow] - 1) * chunk[flow], chunk[flow]
    )
    told = run.latency + (run.ack_latency if run.waits_for_ack else 0.0)
    later = np.flatnonzero(number > 0)
    fed = later[demand.feeder[flow[later]] >= 0]
    feeder = demand.feeder[flow[fed]]
    waiting = np.flatnonzero(demand.after >= 0)
    before = demand.after[waiting]
    order = Order(
        np.concatenate([later - 1, first[feeder] + number[fed] - 1, first[before] + count[before] - 1]),
        np.concatenate([later, fed, first[waiting]]),
        np.concatenate([np.zeros(len(later)), told[feeder], told[before]]),
    )
    return _Messages(flow, first, first + count - 1, size * wire_per_payload, order)


def _resources(run: ReferenceRun, *, acknowledgements: bool) -> tuple[Paths, NDArray[np.float64]]:
    """Return what each flow loads, and by how much per byte it sends on the wire."""
    if not acknowledgements:
        return run.paths, run.paths.share
    part = run.as_timed(run.ack_bytes) / (run.as_timed(run.wire_bytes) * run.ack_every)
    data, acks = run.paths, run.ack_paths
    owner = np.concatenate([np.repeat(np.arange(run.n_flows), np.diff(paths.ptr)) for paths in (data, acks)])
    link = np.concatenate([data.link, acks.link])
    load = np.concatenate([data.share, acks.share * part])
    by_flow = np.argsort(owner, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=run.n_flows))]).astype(np.int64)
    return type(data)(ptr, link[by_flow], load[by_flow]), load[by_flow]
