"""netplan's own engine with single packets: the same rules as ns-3's model, without ns-3.

It is the flow-level engine with trains of one packet, in the order of time to the last digit; always there.
What differs from ns-3: acknowledgements cost time on links but wait for nothing, and pause frames take none
of a link's.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netplan.congestion.dynamics import run_flows
from netplan.packet.registry import BACKENDS, Limits, PacketBackend, Stats, estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Flows, Network, Options, Outcome


def _run(
    network: Network,
    flows: Flows,
    cc: CongestionControl,
    parameters: Mapping[str, float],
    options: Options,
    limits: Limits,
    report: Callable[[float], None] | None,
) -> tuple[Outcome, Stats]:
    begun = time.process_time()
    out = run_flows(network, flows, cc, parameters, replace(options, step=0.0, ordered=True))
    spent = time.process_time() - begun
    packets = int(np.ceil((flows.size + out.resent) / flows.payload).sum())
    return out, Stats(packets, int(estimate(flows)), spent, "in process")


BACKENDS.add(
    "trains",
    __name__,
    PacketBackend(
        name="trains",
        summary="netplan's own engine, one packet a train",
        leaves_out="what the flow-level engine leaves out: it is no independent check",
        protocols=(
            *("none", "dcqcn", "dcqcn-connectx", "dcqcn-paper", "dctcp", "timely", "timely-patched"),
            *("hpcc", "swift", "powertcp", "nscc", "rccc", "rtt-template"),
        ),
        hops_per_s=5e6,
        check=lambda: None,
        run=_run,
    ),
)
