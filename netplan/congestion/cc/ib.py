r"""InfiniBand: link credits alone, and with its congestion control.

``ib-credits``: a sender on a link counts the free bytes of the buffer at the other end (per virtual
lane) and stops at none; so a link carries at most buffer / its round trip, nothing is ever lost, and
a full buffer stops what is behind it, whoever it is for. The buffer is the switch profile's
``credit_bytes`` (profile ``infiniband``).

``ib-cc``: the same with the congestion control of the architecture's annex A10. A switch marks
(FECN), the receiver returns the mark (BECN), and the sender's index into a table of delays moves::

    each BECN:          CCTI = min(CCTI + increase, limit)
    every timer:        CCTI = max(CCTI - 1, 0)
    after each packet:  a gap of CCT[CCTI] packet times, here CCT[i] = step x i:  R = line / (1 + step CCTI)

OpenSM leaves it off, all entries at 0. The defaults here are netplan's, for want of published ones.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_IBCC, CC_NONE

_OURS = "netplan: the standard names no values, OpenSM's are 0"

IB_CREDITS = congestion_control(
    CongestionControl(
        name="ib-credits",
        summary="line rate, held back by link credits alone (InfiniBand as it is run)",
        leaves_out="virtual lanes beyond one; input arbitration of crossbars",
        code=CC_NONE,
        signals=("credits",),
        acts_on="none",
    ),
    __name__,
)

IB_CC = congestion_control(
    CongestionControl(
        name="ib-cc",
        summary="link credits, and marks that lengthen the gap between a sender's packets (annex A10)",
        leaves_out="marking of victims and of roots apart; tables that are not straight lines",
        code=CC_IBCC,
        signals=("ecn", "credits"),
        acts_on="rate",
        parameters=(
            Parameter("increase", 1.0, "1", 0.0, 127.0, "steps of the index per mark", _OURS),
            Parameter("timer_s", 150e-6, "s", 1e-6, 0.1, "time after which the index falls by one", _OURS),
            Parameter("limit", 127.0, "1", 1.0, 16383.0, "largest index", _OURS),
            Parameter("step", 0.25, "1", 0.0, 1000.0, "packet times that each step adds", _OURS),
        ),
    ),
    __name__,
)
