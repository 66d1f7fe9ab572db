"""What a training step communicates, and what it asks for the time of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

__all__ = ["Exchange", "StepNetwork"]


class StepNetwork(Protocol):
    """What a step asks for the time of its communication."""

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return seconds."""


@dataclass(frozen=True)
class Exchange:
    """A kind of communication of a step."""

    axis: str
    collective: str
    bytes: float
    """Size of one, as nccl-tests counts it."""
    count: float
    """How many of them one after another."""

    def times(self, factor: float) -> Exchange:
        """Return so many times as many."""
        return replace(self, count=self.count * factor)

    def one(self, network: StepNetwork) -> float:
        """Return how long one of them takes [s]."""
        return network.time(self.axis, self.collective, self.bytes)

    def on(self, network: StepNetwork) -> float:
        """Return how long all of them take [s]."""
        return self.count * self.one(network)
