"""The congestion controls, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import ModelRangeError, did_you_mean
from netplan.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

Signal = Literal["ecn", "rtt", "int", "credits", "loss"]


@dataclass(frozen=True)
class Parameter:
    """A number that a protocol reads."""

    name: str
    default: float
    """In SI units: seconds, bytes, bytes/s."""
    unit: str
    """s, bytes, bytes/s or 1."""
    low: float
    """Smallest value that makes sense."""
    high: float
    """Largest."""
    meaning: str
    source: str
    """Where the default comes from."""
    is_period: bool = False
    """Whether decisions follow each other in this time, so that the engine's step must resolve it."""


@dataclass(frozen=True)
class CongestionControl:
    """A rule by which senders find their rates."""

    name: str
    summary: str
    """What it captures, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    code: int
    """Number in `netplan.kernels.trains_state`."""
    signals: tuple[Signal, ...]
    """What it reads; empty: nothing comes back."""
    acts_on: Literal["rate", "window", "none"]
    parameters: tuple[Parameter, ...] = ()
    """In the order of the kernel's columns."""
    window_bdp: float = 0.0
    """Default window, in bandwidth-delay products of the longest path; 0: no limit."""
    acks_wait: bool = False
    """Whether acknowledgements queue with data by default, as in the simulator it is compared with."""
    lossless: bool = True
    """Whether it is meant for a fabric with PFC."""

    def values(self, given: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the parameters in the kernel's order.

        Raises
        ------
        ModelRangeError
            A name that the protocol does not have, or a value outside its range.
        """
        names = [parameter.name for parameter in self.parameters]
        for name, value in given.items():
            if name not in names:
                known = ", ".join(names) or "no parameter at all"
                message = f"{self.name} has no parameter {name!r}: it reads {known}"
                raise ModelRangeError(message, hint=did_you_mean(name, names))
            parameter = self.parameters[names.index(name)]
            if not parameter.low <= value <= parameter.high:
                message = (
                    f"{self.name}.{name} = {value:g} {parameter.unit} is out of range:"
                    f" {parameter.low:g} to {parameter.high:g} {parameter.unit} is accepted"
                )
                raise ModelRangeError(message, hint=parameter.meaning)
        row = [given.get(parameter.name, parameter.default) for parameter in self.parameters]
        return np.asarray(row or [0.0], np.float64)

    def shortest_timer(self, values: NDArray[np.float64]) -> float:
        """Return the shortest time between two decisions [s]; inf: the round trip decides."""
        times = [
            value
            for parameter, value in zip(self.parameters, values, strict=False)
            if parameter.is_period and value > 0
        ]
        return min(times, default=np.inf)


#: Every congestion control by name; adding one adds its file here.
PROTOCOLS: Registry[CongestionControl] = Registry(
    "congestion control",
    "netplan.congestion.cc",
    (
        "none",
        "dcqcn",
        "dctcp",
        "timely",
        "hpcc",
        "swift",
        "powertcp",
        "nscc",
        "rccc",
        "rtt_template",
        "ib",
    ),
    ModelRangeError,
)


def congestion_control(cc: CongestionControl, module: str) -> CongestionControl:
    """Register a protocol that is defined in ``module``."""
    PROTOCOLS.add(cc.name, module, cc)
    return cc
