r"""UEC's receiver credits: the receiver asks for what its link can take, one sender after another.

A sender begins with ``speculative`` BDP of credit. Each receiver goes round the flows that have more
to send than they were granted and grants one of them four packets, at the pace at which its link would
receive them (``sim/uec.cpp`` of ultraethernet/uet-htsim). This shares the last link exactly and
says nothing about links before it, where marks and trimming of NSCC are meant to help.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_RCCC

_UEC = "ultraethernet/uet-htsim sim/uec.cpp"

RCCC = congestion_control(
    CongestionControl(
        name="rccc",
        summary="receivers grant credit at line rate, in turn (Ultra Ethernet)",
        leaves_out="less credit after marks; division of credit among a NIC's receivers; NSCC beside it",
        code=CC_RCCC,
        signals=("credits",),
        acts_on="window",
        parameters=(
            Parameter("speculative", 1.5, "1", 0.001, 100.0, "credit before the first grant, in BDP", _UEC),
        ),
        lossless=False,
    ),
    __name__,
)
