"""What the flows of every traffic pattern have to fulfil on every fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from netplan.traffic import PATTERNS

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic import Demand, Placement


def check_pattern(fabric: Fabric, spec: TrafficSpec, placement: Placement, demand: Demand) -> None:
    """Hold a demand against what its spec says, by closed forms.

    Parameters
    ----------
    fabric, spec, placement
        What the demand was built from.
    demand
        The flows.
    """
    n = len(demand)
    for column in ("src", "dst", "size", "start", "channel", "ring", "phase"):
        assert getattr(demand, column).shape == (n,), column
        assert not getattr(demand, column).flags.writeable, column
    ends = fabric.endpoints
    assert ((demand.src >= 0) & (demand.src < fabric.n_endpoints)).all()
    assert ((demand.dst >= 0) & (demand.dst < fabric.n_endpoints)).all()
    assert (ends.host[demand.src] != ends.host[demand.dst]).all(), "a flow stays in its host"
    assert np.isfinite(demand.size).all()
    assert (demand.size > 0).all()
    assert (demand.start >= 0).all()
    assert (np.diff(demand.phase) >= 0).all()
    assert all(0 <= number < len(demand.phases) for number in np.unique(demand.phase))
    assert all(phase.scale_up_s >= 0 for phase in demand.phases)
    used = np.isin(ends.host[np.concatenate([demand.src, demand.dst])], fabric.host_ids[placement.hosts])
    assert used.all(), "a flow of a host outside the job"
    same = np.stack([demand.phase, demand.src, demand.dst, demand.channel])
    assert np.unique(same, axis=1).shape[1] == n, "two flows that nothing tells apart would hash alike"
    assert (demand.qps, demand.work_conserving) == (spec.qps, spec.work_conserving)
    assert demand.window_bytes == spec.window

    assert demand.n_ranks == _ranks(spec, placement)
    factor = PATTERNS.find(spec.kind).busbw_factor
    assert demand.busbw_factor == (None if factor is None else factor(demand.n_ranks))
    assert demand.size.sum() == pytest.approx(_bytes_between_hosts(spec, placement), rel=1e-9)
    if factor is not None:
        assert demand.size_bytes == spec.size  # type: ignore[union-attr]
    else:
        assert demand.size_bytes == round(demand.size.sum())
    if demand.algorithm != "ring" or spec.kind in ("broadcast", "reduce"):
        return
    for ring in np.unique(demand.ring[demand.ring >= 0]):
        _check_ring(fabric, placement, demand, int(ring))


def _ranks(spec: TrafficSpec, placement: Placement) -> int:
    """Count who takes part."""
    if spec.kind == "incast":
        return spec.senders + 1
    if spec.kind == "point-to-point":
        return 2
    if spec.kind == "flows":
        return len({flow.src for flow in spec.flows} | {flow.dst for flow in spec.flows})
    return len(placement)


#: Bytes that leave hosts by pattern, then by algorithm: of S bytes, k hosts, n ranks, ranks of each host.
_BY_ALGORITHM = {
    "tree": lambda size, k, n, g: 2 * (k - 1) * size,  # k-1 edges, half in each tree, up and down
    "nvls-tree": lambda size, k, n, g: 2 * (k - 1) * size,
    "in-network": lambda size, k, n, g: size,  # a flow for each tree, whatever its links
    "nvls": lambda size, k, n, g: 0,
}
_BY_PATTERN = {
    "all-reduce": lambda size, k, n, g: 2 * (n - 1) / n * size * (k if k > 1 else 0),
    "reduce-scatter": lambda size, k, n, g: (n - 1) / n * size * (k if k > 1 else 0),
    "all-gather": lambda size, k, n, g: (n - 1) / n * size * (k if k > 1 else 0),
    "all-to-all": lambda size, k, n, g: (n**2 - (g**2).sum()) * size / n,  # pairs on different hosts
    "broadcast": lambda size, k, n, g: (k - 1) * size,
    "reduce": lambda size, k, n, g: (k - 1) * size,
    "gather": lambda size, k, n, g: (n - g[0]) * size / n,
    "scatter": lambda size, k, n, g: (n - g[0]) * size / n,
    "send-recv": lambda size, k, n, g: (k if k > 1 else 0) * size,
    "point-to-point": lambda size, k, n, g: size,
}
_BY_STAGES = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}
_IN_STEPS = ("halving-doubling", "recursive-doubling", "recursive-halving", "pat")


def _bytes_between_hosts(spec: TrafficSpec, placement: Placement) -> float:
    """Count all bytes that leave hosts, from the definition of the operation."""
    n, per_host = len(placement), placement.ranks_per_host.astype(float)
    k = len(per_host)
    if spec.kind == "flows":
        return float(sum(flow.size for flow in spec.flows))
    if spec.kind == "permutation":
        return float(len(np.unique(placement.endpoint)) * spec.size)
    if spec.kind == "incast":
        return float(spec.senders * spec.size)
    algorithm = getattr(spec, "algorithm", "")
    if algorithm in _IN_STEPS:
        return _bytes_by_messages(spec, placement)
    if algorithm == "hierarchical" and spec.kind in _BY_STAGES:
        return float(_BY_STAGES[spec.kind] * (k - 1) * spec.size)
    return float(_BY_ALGORITHM.get(algorithm, _BY_PATTERN[spec.kind])(spec.size, k, n, per_host))


def _bytes_by_messages(spec: TrafficSpec, placement: Placement) -> float:
    """Count bytes between hosts message by message, in plain loops over ranks."""
    n, host, total = len(placement), placement.host.tolist(), 0.0
    size, algorithm = float(spec.size), spec.algorithm  # type: ignore[union-attr]
    if algorithm == "pat":
        held = [{r} for r in range(n)]
        distance = 1
        while distance < n:
            distance *= 2
        while distance > 1:
            distance //= 2
            # A part must not go round more than once: rank r takes those of the n-1 ranks before it.
            moves = [
                (r, (r + distance) % n, {p for p in held[r] if (r - p) % n + distance < n}) for r in range(n)
            ]
            for a, b, parts in moves:
                held[b] |= parts
                total += len(parts) * size / n * (host[a] != host[b])
        assert all(len(parts) == n for parts in held)
        return total
    low = 1
    while 2 * low <= n:
        low *= 2
    rest = n - low
    alive = [r for r in range(n) if r >= 2 * rest or r % 2]
    for r in range(0, 2 * rest, 2):
        total += 2 * size * (host[r] != host[r + 1])
    factor = 2 if algorithm == "halving-doubling" else 1
    part = size
    distance = 1
    while distance < low:
        part = part / 2 if "halving" in algorithm else size
        if spec.kind == "all-gather":
            part = distance * size / n
        for place, r in enumerate(alive):
            total += factor * part * (host[r] != host[alive[place ^ distance]])
        distance *= 2
    return total


def _check_ring(fabric: Fabric, placement: Placement, demand: Demand, ring: int) -> None:
    """A ring visits every host of the job once, in rank order, and leaves by the NIC it came in by."""
    rows = demand.ring == ring
    src, dst, size = demand.src[rows], demand.dst[rows], demand.size[rows]
    assert len(np.unique(size)) == 1
    hosts = fabric.host_ids[placement.hosts]
    following = dict(zip(hosts.tolist(), np.roll(hosts, -1).tolist(), strict=True))
    assert sorted(fabric.endpoints.host[src].tolist()) == sorted(hosts.tolist())
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        assert following[int(fabric.endpoints.host[a])] == fabric.endpoints.host[b]
    assert sorted(src.tolist()) == sorted(dst.tolist())
