r"""DCQCN: switches mark, receivers send CNPs, senders cut and recover their rate.

Zhu et al., *Congestion Control for Large-Scale RDMA Deployments*, SIGCOMM 2015. Per flow: rate
R_C, target R_T, alpha; all start at line rate and 1.

ConnectX flavour (``dcqcn``; the state machine of ``rdma-hw.cc`` in the ns-3 of HPCC, CC mode 1)::

    first CNP                alpha = 1; the timers below begin now
    every tau' (alpha_s)     alpha = (1 - g) alpha + g [a CNP came since the last time]
    every cut_s, if a CNP came since the last cut:
        R_T = R_C if there was an increase since the last cut (or clamp)
        R_C = max(min_rate, R_C max(1 - alpha / 2, min_dec_fac)); stage = 0; the increase timer begins anew
    every timer_s            stage < F: R_C = (R_C + R_T) / 2            fast recovery
                             stage = F: R_T += R_AI, then the same       additive
                             stage > F: R_T += R_HAI, then the same      hyper
                             stage += 1

The byte counter B raises its own stage after each B bytes; an increase is additive once either
stage has reached F and hyper once both are beyond it.

Paper flavour (``dcqcn-paper``): a receiver sends a CNP at most every cnp gap; every CNP cuts at
once, R_T = R_C, and moves alpha up; without CNPs alpha falls every tau'.

Defaults of ``dcqcn`` are those of ``simulation/run.py`` of that repository at 100 Gb/s, of
``dcqcn-connectx`` those of the NIC firmware (``mlxconfig`` dump: rpg_time_reset 300 us, rpg_byte_reset
32767, rpg_threshold 1, AI 5, HAI 50 Mb/s, min rate 1 Mb/s, dce_tcp_g 1019/1024, dce_tcp_rtt 1 us, monitor
period 4 us), of ``dcqcn-paper`` those of the authors' fluid model. min_dec_fac (rpg_min_dec_fac) is 1/2 in
all of them, which is no limit, as alpha is at most 1; ``dcqcn-long-haul`` has 0.95.
"""

from __future__ import annotations

from dataclasses import replace

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_DCQCN

_MBPS = 1e6 / 8
_RUN = "alibaba-edu/High-Precision-Congestion-Control simulation/run.py, dcqcn at 100G"
_FIRMWARE = "mlxconfig dump of a ConnectX NIC; NVIDIA, DCQCN parameters"
_NONE = "1/2 is no limit, as alpha is at most 1; firmware: rpg_min_dec_fac 50"
_LONG_HAUL = (
    "HPE and Juniper, lossless RoCE over 50 to 500 km: T 5 ms, min_dec_fac 95, clamp 1; else the firmware"
)
_PAPER = "Zhu et al., SIGCOMM 2015; jitupadhye-zz/rdma stability.m"

_PARAMETERS = (
    Parameter("gain", 1 / 256, "1", 0.0, 1.0, "weight g of a new sample in alpha", _RUN),
    Parameter("alpha_s", 1e-6, "s", 1e-7, 1.0, "time between updates of alpha", _RUN),
    Parameter("cut_s", 4e-6, "s", 1e-7, 1.0, "least time between cuts", _RUN, is_period=True),
    Parameter("timer_s", 300e-6, "s", 1e-7, 10.0, "time between increases", _RUN),
    Parameter("byte_counter", 0.0, "bytes", 0.0, 1e12, "bytes between increases; 0: timer only", _RUN),
    Parameter("fast_recovery_steps", 1.0, "1", 0.0, 100.0, "increases before the target rises", _RUN),
    Parameter("rate_ai", 20 * _MBPS, "bytes/s", 0.0, 1e12, "additive increase of the target", _RUN),
    Parameter("rate_hai", 200 * _MBPS, "bytes/s", 0.0, 1e12, "hyper increase of the target", _RUN),
    Parameter("min_rate", 1000 * _MBPS, "bytes/s", 1.0, 1e12, "no rate falls below it", _RUN),
    Parameter("clamp", 0.0, "1", 0.0, 1.0, "1: every cut lowers the target to the rate", _RUN),
    Parameter("cut_on_cnp", 0.0, "1", 0.0, 1.0, "1: a CNP cuts at once (paper), 0: at the next check", _RUN),
    Parameter("min_dec_fac", 0.5, "1", 0.5, 0.99, "least part of the rate that a cut leaves", _NONE),
)


def _with(source: str, **values: float) -> tuple[Parameter, ...]:
    return tuple(
        replace(parameter, default=values[parameter.name], source=source)
        if parameter.name in values
        else parameter
        for parameter in _PARAMETERS
    )


DCQCN = congestion_control(
    CongestionControl(
        name="dcqcn",
        summary="ECN marks come back as CNPs that cut a rate; timers raise it (ConnectX state machine)",
        leaves_out="10-bit fixed point of alpha; the NIC's grouping of QPs",
        code=CC_DCQCN,
        signals=("ecn",),
        acts_on="rate",
        parameters=_PARAMETERS,
    ),
    __name__,
)

DCQCN_CONNECTX = congestion_control(
    replace(
        DCQCN,
        name="dcqcn-connectx",
        summary="DCQCN with the defaults of the NIC firmware, byte counter included",
        parameters=_with(
            _FIRMWARE,
            gain=5 / 1024,
            byte_counter=32767.0,
            rate_ai=5 * _MBPS,
            rate_hai=50 * _MBPS,
            min_rate=1 * _MBPS,
        ),
    ),
    __name__,
)

DCQCN_LONG_HAUL = congestion_control(
    replace(
        DCQCN,
        name="dcqcn-long-haul",
        summary="DCQCN as HPE and Juniper set NICs for 50 to 500 km: cuts of 5 %, 5 ms between increases",
        parameters=_with(
            _LONG_HAUL,
            gain=5 / 1024,
            byte_counter=32767.0,
            rate_ai=5 * _MBPS,
            rate_hai=50 * _MBPS,
            min_rate=1 * _MBPS,
            timer_s=5e-3,
            min_dec_fac=0.95,
            clamp=1.0,
        ),
    ),
    __name__,
)

DCQCN_PAPER = congestion_control(
    replace(
        DCQCN,
        name="dcqcn-paper",
        summary="DCQCN as published: 50 us between CNPs, 55 us timers, five steps of recovery",
        parameters=_with(
            _PAPER,
            alpha_s=55e-6,
            cut_s=50e-6,
            timer_s=55e-6,
            byte_counter=10e6,
            fast_recovery_steps=5.0,
            rate_ai=40 * _MBPS,
            rate_hai=40 * _MBPS,
            min_rate=10 * _MBPS,
            clamp=1.0,
            cut_on_cnp=1.0,
        ),
    ),
    __name__,
)
