r"""Swift: a window that keeps the delay at a target.

Kumar et al., *Swift: Delay is Simple and Effective for Congestion Control in the Datacenter*,
SIGCOMM 2020; constants of ``sim/swift.cpp`` in Broadcom/csg-htsim, whose authors call some of them
guesses. Window W in packets, per acknowledgement of n packets with delay D::

    target = base + hops x hop + clip(a / sqrt(W) + b, 0, range)
             a = range / (1 / sqrt(W_min) - 1 / sqrt(W_max)),  b = - a / sqrt(W_max)
    D < target:   W = W + ai n / W    (W < 1: W + ai n)
    else, at most once a round trip:  W = W max(1 - beta (D - target) / D, 1 - max_cut)
    a loss, at most once a round trip:  W = W (1 - max_cut)

Below one packet the window becomes a rate, W packets a round trip.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_SWIFT

_HTSIM = "Broadcom/csg-htsim sim/swift.cpp (guesses, say its authors)"

SWIFT = congestion_control(
    CongestionControl(
        name="swift",
        summary="a window that grows below a target delay and is cut above it, in proportion",
        leaves_out="separate fabric and endpoint delays; path changes (PLB); retransmission timers",
        code=CC_SWIFT,
        signals=("rtt", "loss"),
        acts_on="window",
        parameters=(
            Parameter("base_s", 20e-6, "s", 0.0, 1.0, "target of a path without hops", _HTSIM),
            Parameter("hop_s", 20e-6 / 6.55, "s", 0.0, 1.0, "what each switch adds to the target", _HTSIM),
            Parameter("range_s", 100e-6, "s", 0.0, 1.0, "most that a small window adds", _HTSIM),
            Parameter("range_min", 0.1, "1", 1e-6, 1e6, "packets at which it adds all of that", _HTSIM),
            Parameter("range_max", 100.0, "1", 1e-6, 1e6, "packets from which it adds nothing", _HTSIM),
            Parameter("ai", 1.0, "1", 0.0, 1e3, "packets added per round trip", _HTSIM),
            Parameter("beta", 0.8, "1", 0.0, 1.0, "strength of a cut", _HTSIM),
            Parameter("max_cut", 0.5, "1", 0.0, 1.0, "largest part that one cut takes", _HTSIM),
            Parameter(
                "first_window",
                0.0,
                "bytes",
                0.0,
                1e12,
                "first window; 0: a bandwidth-delay product",
                "netplan: htsim is told one on its command line",
            ),
        ),
        lossless=False,
    ),
    __name__,
)
