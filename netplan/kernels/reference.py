"""Slow, obvious implementations: the oracles of the fast kernels.

They are part of the package so that a user can check an answer with other code than made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.kernels.completion import Order


def solve_max_min_slowly(
    capacity: NDArray[np.float64],
    flow_ptr: NDArray[np.int64],
    flow_link: NDArray[np.int64],
    coefficient: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Give every flow its max-min fair rate by textbook progressive filling.

    All unfrozen flows grow together until a link fills; the flows on it freeze; the rest go on.

    Parameters
    ----------
    capacity : (n_links,) float64
        Usable capacity of each directed link [bytes/s].
    flow_ptr, flow_link, coefficient
        As in `max_min.solve_max_min`.

    Returns
    -------
    (n_flows,) float64
        Rates [bytes/s].
    """
    n_flows, n_links = len(flow_ptr) - 1, len(capacity)
    use = np.zeros((n_links, n_flows))
    for flow in range(n_flows):
        for entry in range(flow_ptr[flow], flow_ptr[flow + 1]):
            use[flow_link[entry], flow] += 1.0 if coefficient is None else coefficient[entry]
    rate = np.zeros(n_flows)
    is_open = np.ones(n_flows, bool)
    while is_open.any():
        growing = use[:, is_open].sum(axis=1)
        room = np.maximum(capacity - use @ rate, 0.0)
        step = np.full(n_links, np.inf)
        np.divide(room, growing, out=step, where=growing > 0)
        rate[is_open] += step.min()
        full = step <= step.min() * (1 + 1e-12) + 1e-300
        is_open &= ~(use[full] > 0).any(axis=0)
    return rate


def complete_slowly(
    capacity: NDArray[np.float64],
    flow_ptr: NDArray[np.int64],
    flow_link: NDArray[np.int64],
    size: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
    order: Order | None = None,
) -> NDArray[np.float64]:
    """Finish times when all rates are solved anew at every arrival and completion.

    Parameters
    ----------
    capacity, flow_ptr, flow_link
        As in `max_min.solve_max_min`.
    size : (n_flows,) float64
        Bytes of each flow, > 0.
    start : (n_flows,) float64, optional
        When each flow begins [s]; 0 when omitted.
    order : Order, optional
        Flows that wait for others.

    Returns
    -------
    (n_flows,) float64
        Finish times [s].
    """
    n_flows = len(size)
    earliest = np.zeros(n_flows) if start is None else start
    pairs = [] if order is None else list(zip(*order, strict=True))
    left = size.astype(float).copy()
    finish = np.full(n_flows, np.inf)
    now = float(earliest.min()) if n_flows else 0.0
    while np.isinf(finish).any():
        begin = earliest.copy()
        for first, then, delay in pairs:
            begin[then] = max(begin[then], finish[first] + delay)
        ids = np.flatnonzero(np.isinf(finish) & (begin <= now))
        coming = begin[np.isinf(finish) & (begin > now)]
        next_start = float(coming.min()) if len(coming) else np.inf
        if not len(ids):
            if next_start == np.inf:
                msg = "flows that wait for each other never begin"
                raise ValueError(msg)
            now = next_start
            continue
        rows = [flow_link[flow_ptr[i] : flow_ptr[i + 1]] for i in ids]
        ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        rate = solve_max_min_slowly(capacity, ptr, np.concatenate(rows))
        with np.errstate(divide="ignore"):
            until = left[ids] / rate
        step = min(float(until.min()), next_start - now)
        left[ids] -= rate * step
        now += step
        done = ids[until <= step * (1 + 1e-12)]
        left[done] = 0.0
        finish[done] = now
    return finish


def place_on_candidates_slowly(
    rows: list[int],
    candidates: list[list[list[int]]],
    weight: list[float],
    capacity: list[float],
    path: list[list[int] | None],
) -> tuple[list[list[int] | None], list[float], int]:
    """Place flows in turn, each on the best of its candidates, as `candidates.place_on_candidates`.

    Parameters
    ----------
    rows
        The flows, in the order in which they are placed.
    candidates
        For each row the links of its candidate paths.
    weight, capacity
        Rate of each flow and capacity of each link [bytes/s].
    path
        Links of every flow, None where it has not been placed yet.

    Returns
    -------
    path
        Links of every flow.
    load
        Utilisation of every link.
    changed
        Flows whose path has changed.
    """
    path, changed = list(path), 0

    def loads(without: int) -> list[float]:
        load = [0.0] * len(capacity)
        for flow, links in enumerate(path):
            for link in links or [] if flow != without else []:
                load[link] += weight[flow] / capacity[link]
        return load

    for flow, found in zip(rows, candidates, strict=True):
        old = path[flow]
        if old is not None and max((loads(without=-1)[link] for link in old), default=0.0) <= 1:
            continue
        load, options = loads(without=flow), found if old is None else [old, *found]

        def order(links: list[int], load: list[float] = load, flow: int = flow) -> tuple[bool, float, float]:
            peak = max((load[link] + weight[flow] / capacity[link] for link in links), default=0.0)
            fits = peak <= 1
            return not fits, len(links) if fits else peak * len(links), peak

        path[flow] = min(options, key=order)
        changed += path[flow] != old
    return path, loads(without=-1), changed
