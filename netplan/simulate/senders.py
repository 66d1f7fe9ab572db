"""What the engine is given for a phase: senders with their paths, on the links they use.

A *sender* is a QP: it has a rate or a window of its own. Paths that stand for several QPs become as
many senders; a flow that is sprayed, or whose scheme moves it from path to path, is one sender with
up to `MOST_PATHS` paths, of which each train of packets draws one. Where a scheme gives shares of
links (spraying, adaptive routing), paths are laid so that links get packets in those shares.

With ``work_conserving`` traffic, QPs that are done help their siblings: a flow's bytes are laid on
its paths in proportion to their max-min rates, once, at the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.dynamics import Flows, Network
from netplan.congestion.line_rate import latencies
from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.congestion.line_rate import Transport
    from netplan.fabric import Fabric
    from netplan.routing import Routes
    from netplan.simulate.switches import Switches

__all__ = ["ACK_BYTES", "MOST_PATHS", "Senders", "lay_flows", "lay_network", "link_delays", "make_senders"]

#: Paths of one sender.
MOST_PATHS = 64

#: Bytes of an acknowledgement on the wire beyond the headers of a packet: AETH.
ACK_BYTES = 4

#: Weights this close to whole numbers count QPs.
_WHOLE = 1e-9

_SEED = 0x5E4D


@dataclass(frozen=True, eq=False)
class Senders:
    """QPs of one phase."""

    owner: NDArray[np.int64]
    """(n,) flow of each."""
    path: NDArray[np.int64]
    """(n,) path of the routes that it takes."""
    size: NDArray[np.float64]
    """(n,) payload [bytes]."""
    start: NDArray[np.float64]
    """(n,) when it begins [s]."""
    rate: NDArray[np.float64]
    """(n,) max-min rate [bytes/s of payload]."""
    window: NDArray[np.float64]
    """(n,) payload bytes that may be outstanding; inf: as many as the protocol allows."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.owner)

    def take(self, rows: NDArray[np.int64]) -> Senders:
        """Return some of them."""
        return Senders(
            self.owner[rows],
            self.path[rows],
            self.size[rows],
            self.start[rows],
            self.rate[rows],
            self.window[rows],
        )


def make_senders(
    routes: Routes,
    size: NDArray[np.float64],
    start: NDArray[np.float64],
    path_rate: NDArray[np.float64],
    *,
    qps: int,
    window: float | None = None,
    pooled: bool = False,
) -> Senders:
    """Return the senders of a phase.

    Parameters
    ----------
    routes
        Paths of the flows.
    size, start : (n_flows,) float64
        Bytes and begin of each flow.
    path_rate : (n_paths,) float64
        Max-min rate of each path, its QPs together [bytes/s].
    qps
        Queue pairs of a flow.
    window
        Bytes that a flow may have outstanding, its QPs together.
    pooled
        QPs share a flow's bytes by their rates instead of equally.
    """
    n = len(size)
    owner = np.repeat(np.arange(n), np.diff(routes.flow_ptr))
    part = routes.weight / qps
    if pooled:
        whole = np.bincount(owner, path_rate, minlength=n)
        part = path_rate / whole[owner]
    count = np.rint(routes.weight).astype(np.int64)
    is_spread = (routes.resource >= routes.n_links).any() or (routes.share < 1).any()
    if is_spread or (np.abs(count - routes.weight) > _WHOLE).any() or (count < 1).any():
        count = np.ones(routes.n_paths, np.int64)
    path = np.repeat(np.arange(routes.n_paths), count)
    each = part[path] / count[path]
    limit = np.full(len(path), np.inf) if window is None else window * each
    return Senders(
        owner[path], path, size[owner[path]] * each, start[owner[path]], (path_rate / count)[path], limit
    )


def link_delays(fabric: Fabric, transport: Transport) -> NDArray[np.float64]:
    """Return the delay of every link with the switch behind it, and half of what hosts add at each end."""
    per_switch, per_message = latencies(fabric, transport)
    is_switch = fabric.nodes.tier > 0
    src, dst = fabric.links.src, fabric.links.dst
    delay = fabric.links.delay + np.where(is_switch[dst], per_switch, 0.0)
    at_host = ~is_switch[src] | ~is_switch[dst]
    return np.asarray(delay + np.where(at_host, per_message / 2, 0.0), np.float64)


def lay_flows(
    senders: Senders, routes: Routes, fabric: Fabric, *, payload: float, header: float, seed: int
) -> Flows:
    """Return senders with their paths, as the engine takes them; links are the fabric's."""
    if routes.n_trunks or (routes.share < 1).any():
        flow_ptr, path_ptr, link = _spread_paths(senders, routes, fabric, seed)
    else:
        length = np.diff(routes.path_ptr)[senders.path]
        path_ptr = np.concatenate([[0], np.cumsum(length)])
        place = np.arange(path_ptr[-1]) - np.repeat(path_ptr[:-1], length)
        link = routes.resource[np.repeat(routes.path_ptr[senders.path], length) + place]
        flow_ptr = np.arange(len(senders) + 1)
    length = np.diff(path_ptr)
    place = np.arange(path_ptr[-1]) - np.repeat(path_ptr[:-1], length)
    back = link[np.repeat(path_ptr[1:], length) - 1 - place] ^ 1  # the other direction of each cable
    return Flows(
        size=senders.size,
        start=senders.start,
        flow_ptr=flow_ptr,
        path_ptr=path_ptr,
        path_link=link,
        back_ptr=path_ptr,
        back_link=back,
        payload=payload,
        header=header,
        ack_bytes=header + ACK_BYTES,
    )


def _spread_paths(
    senders: Senders, routes: Routes, fabric: Fabric, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lay paths over links in the shares that the routes give."""
    rng = np.random.default_rng([_SEED, seed])
    flow_ptr, path_ptr = [0], [0]
    links: list[int] = []
    laid: dict[bytes, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
    for path in senders.path.tolist():
        row = slice(int(routes.path_ptr[path]), int(routes.path_ptr[path + 1]))
        resource, share = routes.resource[row], routes.share[row]
        inner = resource[1:-1].tobytes() + share[1:-1].tobytes()
        if inner not in laid:
            laid[inner] = _links_of(routes, resource[1:-1], share[1:-1])
        between, shares = laid[inner]
        first, last = int(resource[0]), int(resource[-1])
        branches: dict[int, list[tuple[int, float]]] = {}
        for link, part in zip(between.tolist(), shares.tolist(), strict=True):
            branches.setdefault(int(fabric.links.src[link]), []).append((link, part))
        target = int(fabric.links.src[last])
        for way in _walks(fabric, branches, [first], target, MOST_PATHS if len(between) else 1, rng):
            links += [*way, last]
            path_ptr.append(len(links))
        flow_ptr.append(len(path_ptr) - 1)
    return np.array(flow_ptr), np.array(path_ptr), np.array(links, np.int64)


def _links_of(
    routes: Routes, resource: NDArray[np.int64], share: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return links and shares of resources, trunks taken apart."""
    links, shares = [], []
    for r, part in zip(resource.tolist(), share.tolist(), strict=True):
        if r < routes.n_links:
            links.append(np.array([r]))
            shares.append(np.array([part]))
            continue
        trunk = r - routes.n_links
        members = routes.trunk_link[routes.trunk_ptr[trunk] : routes.trunk_ptr[trunk + 1]]
        links.append(members)
        shares.append(np.full(len(members), part / len(members)))
    if not links:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(links), np.concatenate(shares)


def _walks(
    fabric: Fabric,
    branches: dict[int, list[tuple[int, float]]],
    way: list[int],
    target: int,
    count: int,
    rng: np.random.Generator,
) -> Iterator[list[int]]:
    """Lay ``count`` paths from the end of a way, as many over each link as its share says."""
    node = int(fabric.links.dst[way[-1]])
    if node == target:
        for _ in range(count):
            yield way
        return
    out = branches[node]
    if count == 1:
        weights = np.array([part for _, part in out])
        chosen = [int(rng.choice(len(out), p=weights / weights.sum()))]
        counts = np.bincount(chosen, minlength=len(out))
    else:
        order = rng.permutation(len(out))  # which links get one path more is drawn
        weights = np.array([out[k][1] for k in order])
        bounds = np.floor(np.cumsum(weights) / weights.sum() * count + rng.random() * (1 - 1e-9))
        bounds[-1] = count
        counts = np.zeros(len(out), np.int64)
        counts[order] = np.diff(np.concatenate([[0], np.minimum(bounds, count)])).astype(np.int64)
    for (link, _), number in zip(out, counts.tolist(), strict=True):
        if number:
            yield from _walks(fabric, branches, [*way, link], target, number, rng)


def lay_network(
    fabric: Fabric, transport: Transport, switches: Switches, flows: Flows
) -> tuple[Network, Flows, NDArray[np.int64]]:
    """Return the part of a fabric that flows use, the flows on its links, and the fabric's link of each.

    A switch keeps the buffer that its ports outside the part leave to the others.
    """
    links = np.unique(np.concatenate([flows.path_link, flows.back_link]))
    src, dst = fabric.links.src[links].astype(np.int64), fabric.links.dst[links].astype(np.int64)
    nodes, ends = np.unique(np.concatenate([src, dst]), return_inverse=True)
    network = Network(
        rate=fabric.links.capacity[links].astype(np.float64),
        delay=link_delays(fabric, transport)[links],
        src=ends[: len(links)],
        dst=ends[len(links) :],
        is_switch=fabric.nodes.tier[nodes] > 0,
        profile=switches.profiles(nodes, links),
    )
    renumbered = Flows(
        size=flows.size,
        start=flows.start,
        flow_ptr=flows.flow_ptr,
        path_ptr=flows.path_ptr,
        path_link=np.searchsorted(links, flows.path_link),
        back_ptr=flows.back_ptr,
        back_link=np.searchsorted(links, flows.back_link),
        payload=flows.payload,
        header=flows.header,
        ack_bytes=flows.ack_bytes,
    )
    return network, renumbered, links
