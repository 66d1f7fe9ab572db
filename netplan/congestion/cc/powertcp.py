r"""PowerTCP: current (how fast) times voltage (how much) of the busiest hop decides the window.

Addanki, Michel, Schmid, *PowerTCP: Pushing the Performance Limits of Datacenter Networks*, NSDI
2022, algorithm 1 (telemetry). Per acknowledgement, for each hop with rate b, queue q, two readings
dt apart, base round trip T::

    current = dq/dt + (bytes sent in dt) / dt       voltage = q + b T
    power   = current voltage / (b^2 T)             the largest over the hops
    Gamma   = ((T - dt) Gamma + dt power) / T       Gamma starts at 1
    W       = gamma (W_old / Gamma + BDP / N) + (1 - gamma) W

W_old is the window one round trip ago, N the number of flows expected on a NIC; the rate is W / T.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_POWERTCP

_PAPER = "Addanki et al., NSDI 2022, section 3 and 4"

POWERTCP = congestion_control(
    CongestionControl(
        name="powertcp",
        summary="a window from the queue and its growth at every hop (in-band telemetry)",
        leaves_out="theta-PowerTCP (delay instead of telemetry); reconfigurable networks",
        code=CC_POWERTCP,
        signals=("int",),
        acts_on="window",
        parameters=(
            Parameter("gamma", 0.9, "1", 0.0, 1.0, "weight of a new window", _PAPER),
            Parameter("flows", 10.0, "1", 1.0, 1e6, "flows expected to share a NIC", _PAPER),
        ),
        window_bdp=1.0,
    ),
    __name__,
)
