"""Flows as listed, each from rank to rank with its size and start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import FlowListSpec
    from netplan.traffic.placement import Placement


@pattern(
    "flows",
    summary="flows as listed: rank to rank, size, start",
    leaves_out="nothing: the flows are the pattern",
)
def build(
    fabric: Fabric,
    spec: FlowListSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of a list.

    Raises
    ------
    TrafficError
        A rank that is not there, or a flow from a GPU to one of the same host.
    """
    src = np.array([flow.src for flow in spec.flows])
    dst = np.array([flow.dst for flow in spec.flows])
    start = np.array([flow.start for flow in spec.flows])
    return [between_ranks(fabric, placement, src, dst, [flow.size for flow in spec.flows], start, "flows")]


def between_ranks(
    fabric: Fabric,
    placement: Placement,
    src: np.ndarray,
    dst: np.ndarray,
    size: Sequence[int],
    start: np.ndarray,
    name: str,
) -> PhaseTraffic:
    """Return a phase of flows from rank to rank.

    Raises
    ------
    TrafficError
        A rank that is not there, or a flow that stays in its host.
    """
    n = len(placement)
    for place, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        if max(a, b) >= n:
            raise TrafficError(
                f"{name}[{place}]: rank {max(a, b)} is not one of the {n:,} ranks",
                hint=f"ranks are 0 to {n - 1}",
            )
        if placement.host[a] == placement.host[b]:
            where = fabric.node_name(int(fabric.host_ids[placement.host[a]]))
            raise TrafficError(
                f"{name}[{place}]: ranks {a} and {b} are both on {where}: the flow does not use the network",
                hint="name ranks of different hosts",
            )
    # Flows of one pair of NICs are told apart by their place, so that they hash apart.
    channel = np.arange(len(src))
    ends = placement.endpoint
    return PhaseTraffic(
        Phase(name), ends[src], ends[dst], np.array(size, float), start=start, channel=channel
    )
