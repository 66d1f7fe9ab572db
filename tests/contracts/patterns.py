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


def _bytes_between_hosts(spec: TrafficSpec, placement: Placement) -> float:
    """Count all bytes that leave hosts, from the definition of the operation."""
    n, per_host = len(placement), placement.ranks_per_host.astype(float)
    k = len(per_host)
    if spec.kind in ("all-reduce", "reduce-scatter", "all-gather"):
        passes = (2 if spec.kind == "all-reduce" else 1) * (n - 1) / n
        return passes * spec.size * (k if k > 1 else 0)  # each of k edges carries the buffer ``passes`` times
    if spec.kind == "all-to-all":
        pairs = n**2 - (per_host**2).sum()  # ordered pairs of ranks on different hosts
        return float(pairs * spec.size / n)
    if spec.kind == "permutation":
        return float(len(np.unique(placement.endpoint)) * spec.size)
    if spec.kind == "incast":
        return float(spec.senders * spec.size)
    if spec.kind == "point-to-point":
        return float(spec.size)
    assert spec.kind == "flows", f"say how many bytes {spec.kind} sends between hosts"
    return float(sum(flow.size for flow in spec.flows))


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
