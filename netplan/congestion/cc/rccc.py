r"""Receiver credits: the receiver asks for what its link can take, one sender after another.

UEC's RCCC as ``sim/uec.cpp`` of ultraethernet/uet-htsim has it, and with other constants EQDS and NDP.
A sender needs credit to send, and each packet that it sends says up to which grant it wants more::

    begin:       credit = `speculative` BDP; what is left of it is void once anything comes back
    each packet: ask = granted so far + (min(bytes left, `speculative` BDP) - credit) / n
                 n: flows that wait for the same NIC (`shared` 1), or 1
    receiver:    goes round the flows whose ask is above what they were granted, and grants `pull`
                 packets at a time at `pull_rate` of its link; with none left, it grants the others
                 what they have not asked for, until each has a `speculative` BDP more than it asked
    loss:        the trimmed packet's header calls for its credit anew

``echo`` 1 is NDP: every packet that arrives, trimmed or not, calls for one more, and nothing of the first
window becomes void. This shares the last link exactly and says nothing about links before it, where packets
are trimmed and sent again.
"""

from __future__ import annotations

from netplan.congestion.cc.registry import CongestionControl, Parameter, congestion_control
from netplan.kernels.trains_state import CC_RCCC

_UEC = "ultraethernet/uet-htsim sim/uec.cpp"
_NDP = "Handley et al., NDP, SIGCOMM 2017; Broadcom/csg-htsim sim/ndp.cpp"

RCCC = congestion_control(
    CongestionControl(
        name="rccc",
        summary="receivers grant credit at line rate, in turn (Ultra Ethernet)",
        leaves_out="less credit after marks; retransmission timers; NSCC beside it",
        code=CC_RCCC,
        signals=("credits",),
        acts_on="window",
        parameters=(
            Parameter("speculative", 1.5, "1", 0.001, 1e4, "first credit, and most of it, in BDP", _UEC),
            Parameter("pull", 4.0, "1", 0.01, 1e4, "packets of one grant", _UEC),
            Parameter("pull_rate", 0.99, "1", 0.01, 1.0, "part of the link's rate that is granted", _UEC),
            Parameter("shared", 1.0, "1", 0.0, 1.0, "1: a NIC's flows divide what they ask for", _UEC),
            Parameter("echo", 0.0, "1", 0.0, 1.0, "1: each packet that arrives calls for one (NDP)", _NDP),
        ),
        lossless=False,
    ),
    __name__,
)
