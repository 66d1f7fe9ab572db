r"""HPCC: every switch writes its load into the packet; senders aim for eta of the busiest hop.

Li et al., *HPCC: High Precision Congestion Control*, SIGCOMM 2019 (``rdma-hw.cc``, CC mode 3).
Per acknowledgement, for each hop j with rate B_j, two readings tau apart::

    u_j = (bytes sent in tau) / (tau B_j) + min(q, q_before) (line / B_j) / W        W: BDP
    U   = (1 - tau / T) U + (tau / T) max_j u_j          tau at most T, the base round trip; U starts at 1
    U >= eta, or `stages` increases done:   R = R_c eta / U + R_AI;  else R = R_c + R_AI

R is set at every acknowledgement (fast reaction), R_c once a round trip; the window is W R / line.
Telemetry is read when a packet leaves a queue. `stages` is 0 as in the authors' simulation: they
say that the paper's 5 is a misprint (project page of HPCC).
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_HPCC

_MBPS = 1e6 / 8
_RUN = "alibaba-edu/High-Precision-Congestion-Control simulation/run.py, hp at 100G"

HPCC = congestion_control(
    CongestionControl(
        name="hpcc",
        summary="a window set from the load that every switch on the way reports (in-band telemetry)",
        leaves_out="per-hop rates (MULTI_RATE); at most five hops in the header; PINT",
        code=CC_HPCC,
        signals=("int",),
        acts_on="window",
        parameters=(
            Parameter("eta", 0.95, "1", 0.01, 1.0, "load aimed for", _RUN),
            Parameter("stages", 0.0, "1", 0.0, 100.0, "increases in a row before the load decides", _RUN),
            Parameter("rate_ai", 40 * _MBPS, "bytes/s", 0.0, 1e12, "increase per step", _RUN),
            Parameter("min_rate", 1000 * _MBPS, "bytes/s", 1.0, 1e12, "no rate falls below it", _RUN),
            Parameter("fast_react", 1.0, "1", 0.0, 1.0, "1: every acknowledgement counts", _RUN),
        ),
        window_bdp=1.0,
        acks_wait=True,
    ),
    __name__,
)
