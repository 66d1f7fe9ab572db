r"""TIMELY: the change of the round trip time decides.

Mittal et al., *TIMELY: RTT-based Congestion Control for the Datacenter*, SIGCOMM 2015
(``rdma-hw.cc``, CC mode 7). Once a round trip, counted in sequence numbers::

    diff = (1 - a) diff + a (RTT - RTT_before);   gradient = diff / RTT_min
    RTT < T_low, or T_low <= RTT <= T_high and gradient <= 0:
        R = R + R_AI; R + R_HAI after five increases in a row
    RTT > T_high:     R = R (1 - beta (1 - T_high / RTT))
    otherwise:        R = R max(0, 1 - beta gradient), not below min_rate

Patched TIMELY (Zhu et al., *ECN or Delay*, CoNEXT 2016) replaces what lies between T_low and
T_high by w = clip(2 gradient + 1/2, 0, 1),
R = R_AI (1 - w) + R (1 - beta' w (RTT - RTT_ref) / RTT_ref), which has one fair fixed point.
"""

from __future__ import annotations

from dataclasses import replace

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_TIMELY

_MBPS = 1e6 / 8
_RUN = "alibaba-edu/High-Precision-Congestion-Control simulation/run.py and rdma-hw.cc, timely at 100G"
_PAPER = "Zhu et al., CoNEXT 2016 (jitupadhye-zz/rdma timely-model.tex)"

_PARAMETERS = (
    Parameter("ewma", 0.875, "1", 0.0, 1.0, "weight a of a new difference", _RUN),
    Parameter("beta", 0.8, "1", 0.0, 1.0, "strength of a decrease", _RUN),
    Parameter("t_low_s", 50e-6, "s", 0.0, 1.0, "round trip below which the rate always rises", _RUN),
    Parameter("t_high_s", 500e-6, "s", 0.0, 10.0, "round trip above which it always falls", _RUN),
    Parameter("min_rtt_s", 20e-6, "s", 1e-9, 1.0, "what differences are measured by", _RUN),
    Parameter("rate_ai", 100 * _MBPS, "bytes/s", 0.0, 1e12, "increase per round trip", _RUN),
    Parameter("rate_hai", 500 * _MBPS, "bytes/s", 0.0, 1e12, "the same after five in a row", _RUN),
    Parameter("min_rate", 1000 * _MBPS, "bytes/s", 1.0, 1e12, "no rate falls below it", _RUN),
    Parameter("hai_after", 5.0, "1", 0.0, 1e6, "increases before rate_hai", _RUN),
    Parameter("patched_beta", 0.0, "1", 0.0, 1.0, "beta' of patched TIMELY; 0: as published first", _RUN),
    Parameter("reference_rtt_s", 50e-6, "s", 1e-9, 1.0, "RTT_ref of patched TIMELY", _PAPER),
)

TIMELY = congestion_control(
    CongestionControl(
        name="timely",
        summary="a rate that follows the gradient of the round trip time",
        leaves_out="segments of 16 to 64 KB; hardware time stamps with errors",
        code=CC_TIMELY,
        signals=("rtt",),
        acts_on="rate",
        parameters=_PARAMETERS,
    ),
    __name__,
)

PATCHED_TIMELY = congestion_control(
    replace(
        TIMELY,
        name="timely-patched",
        summary="TIMELY with a fixed point: the distance to a reference round trip decides",
        parameters=tuple(
            replace(parameter, default=0.008, source=_PAPER)
            if parameter.name == "patched_beta"
            else parameter
            for parameter in _PARAMETERS
        ),
    ),
    __name__,
)
