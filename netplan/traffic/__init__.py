"""``TrafficSpec`` and fabric in, `Demand` out: one pattern a file.

A demand is a table of flows between NIC ports, with what belongs to it but does not cross the
fabric: bytes over the scale-up domain, steps, the factor between algorithm and bus bandwidth.
Patterns register themselves; `build_demand` finds them by the spec's ``kind``. *Rank*: number of
a participant; *placement*: rank to GPU.
"""

from netplan.traffic.demand import Demand, Phase, PhaseTraffic, build_demand
from netplan.traffic.placement import Placement, place_ranks
from netplan.traffic.registry import PATTERNS, Pattern

__all__ = [
    "PATTERNS",
    "Demand",
    "Pattern",
    "Phase",
    "PhaseTraffic",
    "Placement",
    "build_demand",
    "place_ranks",
]
