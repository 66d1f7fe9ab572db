"""How far a flow-level result is from a packet simulator's, flow by flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from netplan.simulate.result import Result

__all__ = ["Agreement"]

#: Least time of a flow [s].
_SHORTEST_S = 1e-15


@dataclass(frozen=True)
class Agreement:
    """Errors of a flow-level result, relative: flow-level over packet-level, less 1.

    Marking is random, so a single run of either may be far from its own mean: compare means over seeds
    (`netplan.packet.seeds.MeanEngine`).
    """

    flows: int
    median: float
    """Median of the absolute errors of the flows' completion times."""
    p90: float
    """90th percentile of them."""
    completion: float
    """Error of the completion time of the whole demand (signed)."""
    peak_queue: float | None
    """Largest peak queue over the packet simulator's; None where one of them has none."""
    pauses: tuple[bool, bool]
    """Whether PFC paused anything: flow level, packets."""
    loss: tuple[float, float]
    """Part of the bytes that was lost: flow level, packets."""

    @classmethod
    def of(cls, flow_level: Result, packets: Result) -> Agreement:
        """Compare two results of the same demand under a protocol."""
        error = np.abs(flow_level.finish / np.maximum(packets.finish, _SHORTEST_S) - 1)
        peaks = [_peak(result) for result in (flow_level, packets)]
        return cls(
            flows=len(error),
            median=float(np.median(error)) if len(error) else 0.0,
            p90=float(np.quantile(error, 0.9)) if len(error) else 0.0,
            completion=flow_level.completion_s / packets.completion_s - 1,
            peak_queue=peaks[0] / peaks[1] if min(peaks) > 0 else None,
            pauses=(_paused(flow_level), _paused(packets)),
            loss=(_loss(flow_level), _loss(packets)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "flows": self.flows,
            "flow_error_median": self.median,
            "flow_error_p90": self.p90,
            "completion_error": self.completion,
            "peak_queue_ratio": self.peak_queue,
            "pauses": {"flow_level": self.pauses[0], "packets": self.pauses[1]},
            "loss_fraction": {"flow_level": self.loss[0], "packets": self.loss[1]},
        }


def _peak(result: Result) -> float:
    congestion = result.congestion
    return 0.0 if congestion is None or congestion.queues is None else congestion.queues.peak_bytes


def _paused(result: Result) -> bool:
    return result.congestion is not None and result.congestion.pfc.pause_events > 0


def _loss(result: Result) -> float:
    return 0.0 if result.congestion is None else result.congestion.loss_fraction
