r"""DCTCP: the share of marked packets of the last round trip says how far to go back.

Alizadeh et al., *Data Center TCP*, SIGCOMM 2010, as a rate with a window that follows it
(``rdma-hw.cc`` in the ns-3 of HPCC, CC mode 8; window W = BDP R / line rate). Once a round trip,
counted in sequence numbers, F being the share of marked packets in it::

    alpha = (1 - g) alpha + g F            alpha starts at 1
    first mark of a round trip:  R = R (1 - alpha / 2), and no other cut until what was then
                                 outstanding is acknowledged
    a round trip without cut:    R = R + R_AI

R_AI is one packet a round trip: 615 Mb/s at 13 us.

``dctcp-per-mark`` is what htsim has under this name (``sim/uec.cpp`` of ultraethernet/uet-htsim), without
alpha. For each acknowledgement, of A bytes::

    no mark:  W = W + A mtu / W        mark:  W = W - A / 3        loss:  W = W - its bytes
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_DCTCP, CC_PER_MARK

_MBPS = 1e6 / 8
_UEC = "ultraethernet/uet-htsim sim/uec.cpp"
_RUN = "alibaba-edu/High-Precision-Congestion-Control simulation/run.py, dctcp at 100G"

DCTCP = congestion_control(
    CongestionControl(
        name="dctcp",
        summary="a window cut in proportion to the share of marked packets, once a round trip",
        leaves_out="slow start, delayed acknowledgements, TCP's timeouts",
        code=CC_DCTCP,
        signals=("ecn",),
        acts_on="window",
        parameters=(
            Parameter("gain", 1 / 16, "1", 0.0, 1.0, "weight g of a new sample in alpha", _RUN),
            Parameter("rate_ai", 615 * _MBPS, "bytes/s", 0.0, 1e12, "increase per round trip", _RUN),
            Parameter("min_rate", 1000 * _MBPS, "bytes/s", 1.0, 1e12, "no rate falls below it", _RUN),
        ),
        window_bdp=1.0,
        acks_wait=True,
    ),
    __name__,
)

DCTCP_PER_MARK = congestion_control(
    CongestionControl(
        name="dctcp-per-mark",
        summary="a window that each mark cuts by a third of what it acknowledges (htsim's DCTCP)",
        leaves_out="timeouts",
        code=CC_PER_MARK,
        signals=("ecn", "loss"),
        acts_on="window",
        parameters=(
            Parameter("cut", 1 / 3, "1", 0.0, 1.0, "part of the marked bytes that a mark takes", _UEC),
            Parameter("ai", 1.0, "1", 0.0, 1e3, "packets added per round trip", _UEC),
            Parameter("first_window", 1.5, "1", 0.1, 100.0, "first window, in BDP", _UEC),
        ),
        lossless=False,
    ),
    __name__,
)
