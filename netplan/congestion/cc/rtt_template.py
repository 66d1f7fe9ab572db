r"""The round-trip template of NVIDIA's programmable congestion control.

The sample ``rtt_template`` of NVIDIA-DOCA/doca-samples (applications/pcc). Once a round trip::

    a CNP, or RTT >= 150 us:     R = 0.8 R
    RTT - RTT_min > 13 us:       R = 0.9 R
    otherwise:                   R = R + line / 20

R is between line / 2^14 and line, where it starts. RTT_min starts at 200 us and is forgotten with
probability 1/256. The limit is absolute: beyond some 15 km of fibre every round trip is longer, and
the rate falls to its floor.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_RTT

_DOCA = "NVIDIA-DOCA/doca-samples applications/pcc rtt_template"

RTT_TEMPLATE = congestion_control(
    CongestionControl(
        name="rtt-template",
        summary="a rate cut by CNPs and by round trips beyond fixed limits (programmable NICs)",
        leaves_out="NACKs; damping by the port's own load; what products ship instead (ZTR-RTTCC)",
        code=CC_RTT,
        signals=("ecn", "rtt"),
        acts_on="rate",
        parameters=(
            Parameter("limit_s", 150e-6, "s", 0.0, 10.0, "round trip that always cuts", _DOCA),
            Parameter("excess_s", 13e-6, "s", 0.0, 10.0, "queueing delay that cuts", _DOCA),
            Parameter("cut", 0.8, "1", 0.0, 1.0, "factor of the large cut", _DOCA),
            Parameter("small_cut", 0.9, "1", 0.0, 1.0, "factor of the small cut", _DOCA),
            Parameter("step", 0.05, "1", 0.0, 1.0, "part of line rate added", _DOCA),
            Parameter("floor", 2.0**-14, "1", 1e-9, 1.0, "part of line rate below which it never is", _DOCA),
            Parameter("first_min_rtt_s", 200e-6, "s", 0.0, 10.0, "RTT_min at first", _DOCA),
        ),
    ),
    __name__,
)
