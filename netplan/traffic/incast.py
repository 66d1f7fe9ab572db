"""Incast: many NICs send to one, whose cable they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError
from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import IncastSpec
    from netplan.traffic.placement import Placement


@pattern(
    "incast",
    summary="N NICs on other hosts send to the NIC of rank 0 at once",
    leaves_out="queueing and losses at the receiver's leaf (see the congestion models)",
)
def build(
    fabric: Fabric,
    spec: IncastSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the flows of an incast.

    Raises
    ------
    TrafficError
        Fewer NICs on other hosts than senders.
    """
    receiver = int(placement.endpoint[0])
    _, first = np.unique(placement.endpoint, return_index=True)
    nics = placement.endpoint[np.sort(first)]
    others = nics[fabric.endpoints.host[nics] != fabric.endpoints.host[receiver]]
    # The receiver's own rail first: the others may not reach it inside the network.
    other_rail = fabric.endpoints.rail[others] != fabric.endpoints.rail[receiver]
    others = others[np.argsort(other_rail, kind="stable")]
    if len(others) < spec.senders:
        raise TrafficError(
            f"senders = {spec.senders:,}, but the job has {len(others):,} NICs on hosts other than rank 0's",
            hint=f"at most {len(others):,} senders, or more ranks",
        )
    src = others[: spec.senders]
    size = np.full(len(src), float(spec.size))
    return [PhaseTraffic(Phase(f"incast {spec.senders} to 1"), src, np.full(len(src), receiver), size)]
