"""One rank sends to another: what a single connection gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.flow_list import between_ranks
from netplan.traffic.registry import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import PointToPointSpec
    from netplan.traffic.demand import PhaseTraffic
    from netplan.traffic.placement import Placement


@pattern(
    "point-to-point",
    summary="one rank sends to another",
    leaves_out="what limits a single QP in the NIC",
)
def build(
    fabric: Fabric,
    spec: PointToPointSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the one flow.

    Raises
    ------
    TrafficError
        A rank that is not there, or both on one host.
    """
    ends = np.array([spec.src]), np.array([spec.dst])
    return [between_ranks(fabric, placement, *ends, [spec.size], np.zeros(1), "point-to-point")]
