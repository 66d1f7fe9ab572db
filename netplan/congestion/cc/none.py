"""No end-to-end control: every flow sends at line rate, and only PFC (or loss) stops it.

With PFC off this is go-back-N on a lossy fabric: what overflows a buffer is dropped, the receiver
answers the gap with a NACK, and the sender starts again from there.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, congestion_control
from netplan.kernels.trains_state import CC_NONE

NONE = congestion_control(
    CongestionControl(
        name="none",
        summary="flows send at line rate; PFC alone holds them back",
        leaves_out="everything a NIC would do on its own: rate limits, injection throttling",
        code=CC_NONE,
        signals=(),
        acts_on="none",
    ),
    __name__,
)
