r"""UEC's NSCC: marks and delay together move a window; what got through bounds it after a collapse.

Ultra Ethernet's network-signalled control as ``sim/uec.cpp`` of ultraethernet/uet-htsim has it.
Scale: a = BDP / (100 Gb/s x 12 us); target queueing delay D_t = target x RTT. Per acknowledgement of
A bytes with queueing delay d (RTT less the smallest seen)::

    no mark, d >= D_t:   inc += fi mss a A                     fair increase
    no mark, d <  D_t:   inc += alpha mss a / 12 us x A (D_t - d)   proportional; after a window with
                         d < 1 us: W += a A / 4 at once
    mark,    d >= D_t:   W = W max(1 - gamma (d_avg - D_t) / d_avg, 1/2), once a round trip, if d_avg > D_t
    mark,    d <  D_t:   nothing (another path is tried)
    every 8 packets or round trip:   W += inc / W, inc = 0; once a round trip: W += eta mss a
    quick adapt, once RTT + D_t: after a loss or d > 4 D_t, if less than max / 8 got through:
                         W = what got through; then marks and losses of what was in flight do not count
    loss (a trimmed packet comes back as NACK): W -= its bytes; its header met no queue, so that its
                         round trip shows the empty path's

d_avg = d_avg + 0.0125 (d - d_avg), with RTT / 4 for an unmarked late packet. W is between one packet and
1.5 times the rate times the smallest round trip seen, and begins at 1.5 BDP; a packet is sent if W has
room for all of it.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_NSCC

_UEC = "ultraethernet/uet-htsim sim/uec.cpp initNsccParams"

NSCC = congestion_control(
    CongestionControl(
        name="nscc",
        summary="a window moved by marks and queueing delay in four quadrants (Ultra Ethernet)",
        leaves_out="choice of paths by marks; acknowledgements that are joined; probes and timeouts",
        code=CC_NSCC,
        signals=("ecn", "rtt", "loss"),
        acts_on="window",
        parameters=(
            Parameter("target", 0.75, "1", 0.01, 10.0, "queueing delay aimed for, in round trips", _UEC),
            Parameter("gamma", 0.8, "1", 0.0, 1.0, "strength of a cut", _UEC),
            Parameter("alpha", 4.0, "1", 0.0, 1e3, "strength of the proportional increase", _UEC),
            Parameter("fi", 5.0, "1", 0.0, 1e3, "fair increase, in scaled packets", _UEC),
            Parameter("eta", 0.15, "1", 0.0, 1e3, "packets added per round trip, scaled", _UEC),
            Parameter("ewma", 0.0125, "1", 0.0, 1.0, "weight of a new delay", _UEC),
            Parameter("qa_gate", 3.0, "1", 0.0, 30.0, "quick adapt if less than max / 2^gate arrived", _UEC),
            Parameter("qa_threshold", 4.0, "1", 0.0, 1e3, "delay that calls it, in targets", _UEC),
            Parameter("max_window", 1.5, "1", 0.1, 100.0, "largest window, in BDP", _UEC),
            Parameter("reference_rate", 12.5e9, "bytes/s", 1.0, 1e13, "rate that a is measured by", _UEC),
            Parameter("reference_delay_s", 12e-6, "s", 1e-9, 1.0, "delay that a is measured by", _UEC),
        ),
        lossless=False,
    ),
    __name__,
)
