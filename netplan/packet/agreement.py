"""How far a flow-level result is from a packet simulator's, flow by flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.simulate.result import Result

__all__ = ["Agreement"]


@dataclass(frozen=True)
class Agreement:
    """Errors of a flow-level result; means over runs of both with several seeds.

    Errors are relative: flow-level over packet-level, less 1. Marking is random, so a single run of either may be
    far from its own mean; with several seeds the times of each flow are averaged on both sides first.
    """

    flows: int
    seeds: int
    median: float
    """Median of the absolute errors of the flows' completion times."""
    p90: float
    """90th percentile of them."""
    completion: float
    """Error of the completion time of the whole demand (signed)."""
    spread: float
    """Standard deviation over seeds of the packet simulator's completion time, over its mean."""
    peak_queue: float | None
    """Largest peak queue over the packet simulator's; None where one of them has none."""
    pauses: tuple[bool, bool]
    """Whether PFC paused anything: flow level, packets."""
    loss: tuple[float, float]
    """Part of the bytes that was lost: flow level, packets."""

    @classmethod
    def of(cls, flow_level: Sequence[Result], packets: Sequence[Result]) -> Agreement:
        """Compare results of the same demand: one or more seeds of each.

        Parameters
        ----------
        flow_level, packets
            Results under a protocol; the same number of flows in all.
        """
        ours = np.mean([result.finish for result in flow_level], axis=0)
        theirs = np.mean([result.finish for result in packets], axis=0)
        error = np.abs(ours / np.maximum(theirs, 1e-15) - 1) if len(ours) else np.zeros(1)
        ends = np.array([result.completion_s for result in packets])
        mean_end = float(np.mean([result.completion_s for result in flow_level]))
        peaks = [_peak(results) for results in (flow_level, packets)]
        return cls(
            flows=len(ours),
            seeds=len(packets),
            median=float(np.median(error)),
            p90=float(np.quantile(error, 0.9)),
            completion=mean_end / float(ends.mean()) - 1,
            spread=float(ends.std(ddof=1) / ends.mean()) if len(ends) > 1 else 0.0,
            peak_queue=peaks[0] / peaks[1] if min(peaks) > 0 else None,
            pauses=(_paused(flow_level), _paused(packets)),
            loss=(_loss(flow_level), _loss(packets)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "flows": self.flows,
            "seeds": self.seeds,
            "flow_error_median": self.median,
            "flow_error_p90": self.p90,
            "completion_error": self.completion,
            "completion_spread": self.spread,
            "peak_queue_ratio": self.peak_queue,
            "pauses": {"flow_level": self.pauses[0], "packets": self.pauses[1]},
            "loss_fraction": {"flow_level": self.loss[0], "packets": self.loss[1]},
        }


def _peak(results: Sequence[Result]) -> float:
    peaks = [
        result.congestion.queues.peak_bytes
        for result in results
        if result.congestion is not None and result.congestion.queues is not None
    ]
    return float(np.mean(peaks)) if peaks else 0.0


def _paused(results: Sequence[Result]) -> bool:
    return any(
        result.congestion is not None and result.congestion.pfc.pause_events > 0 for result in results
    )


def _loss(results: Sequence[Result]) -> float:
    return float(
        np.mean([0.0 if result.congestion is None else result.congestion.loss_fraction for result in results])
    )
