"""Means over seeds: the same flows on the same paths, with other random marks and path draws."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Flows, Network, Options, Outcome

    _Engine = Callable[[Network, Flows, CongestionControl, Mapping[str, float], Options], Outcome]

__all__ = ["MeanEngine"]

#: What is the same in all runs, or told for the first.
_OF_THE_FIRST = {
    *("status", "events", "step"),
    *("sample_time", "sample_received", "sample_queue", "sample_paused"),
}

#: Distance of the seeds of two runs, so that those of neighbouring scenarios do not meet.
_STRIDE = 7919


class MeanEngine:
    """Runs an engine several times and returns the mean outcome.

    Parameters
    ----------
    engine
        `netplan.congestion.dynamics.run_flows`, or a `PacketEngine`.
    seeds
        How many runs.
    """

    def __init__(self, engine: _Engine, seeds: int) -> None:
        self.engine = engine
        self.seeds = seeds
        self.ends: list[list[float]] = []
        """When the last flow ended in each run, of each call [s]."""

    def __call__(
        self,
        network: Network,
        flows: Flows,
        cc: CongestionControl,
        parameters: Mapping[str, float],
        options: Options,
    ) -> Outcome:
        """Run all seeds; times, queues and counts are means."""
        runs = [
            self.engine(network, flows, cc, parameters, replace(options, seed=options.seed + _STRIDE * k))
            for k in range(self.seeds)
        ]
        self.ends.append([float(run.received.max()) for run in runs])
        mean: dict[str, Any] = {
            each.name: np.mean([getattr(run, each.name) for run in runs], axis=0)
            for each in fields(runs[0])
            if each.name not in _OF_THE_FIRST
        }
        return replace(runs[0], **mean)

    @property
    def spread(self) -> float:
        """Standard deviation of the end over seeds, over its mean; of several calls the largest."""
        if self.seeds < 2:  # noqa: PLR2004 -- one has none
            return 0.0
        return max((float(np.std(ends, ddof=1) / np.mean(ends)) for ends in self.ends), default=0.0)
