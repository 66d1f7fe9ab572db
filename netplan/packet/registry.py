"""The packet back ends, by name, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import BackendError, ModelRangeError
from netplan.registry import Registry
from netplan.units import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Engine, Flows, Network, Options, Outcome

    Report = Callable[[float], None]
    _Run = Callable[
        [Network, Flows, CongestionControl, Mapping[str, float], Options, "Limits", Report | None], Outcome
    ]

#: Longest run that needs no yes [s].
LONG_S = 600.0


@dataclass(frozen=True)
class Limits:
    """What a run may take."""

    timeout_s: float = 6 * 3600.0
    """It is ended after this time [s]."""
    memory_bytes: int = 16 * 2**30
    """It fails when it asks for more [bytes]."""
    logs: str | None = None
    """Folder in which inputs and outputs of the run are kept; None: of failed runs only, in a temporary one."""
    yes: bool = False
    """Whether runs longer than `LONG_S` are wanted."""


@dataclass(frozen=True)
class PacketBackend:
    """A packet simulator."""

    name: str
    summary: str
    """What it captures, in a sentence."""
    leaves_out: str
    """What of the real thing is not modelled."""
    protocols: tuple[str, ...]
    """Congestion controls that it has."""
    hops_per_s: float
    """Packets over links that it does in a second, about: for estimates."""
    check: Callable[[], None]
    """Raise `BackendError` where it cannot run."""
    run: _Run


BACKENDS: Registry[PacketBackend] = Registry(
    "packet back end", "netplan.packet", ("ns3.backend", "trains"), BackendError
)


def estimate(flows: Flows) -> float:
    """Return how many packets cross links in all, acknowledgements included."""
    first = flows.flow_ptr[:-1]
    hops = np.diff(flows.path_ptr)[first] + np.diff(flows.back_ptr)[first]
    return float((np.ceil(flows.size / flows.payload) * hops).sum())


def packet_engine(
    backend: PacketBackend, limits: Limits | None = None, report: Report | None = None
) -> Engine:
    """Return an engine that runs phases packet by packet.

    Parameters
    ----------
    backend
        The simulator.
    limits
        Time and memory that a run may take.
    report
        Called now and then with the part of the bytes that is delivered.

    Raises
    ------
    BackendError
        The simulator is not installed.
    """
    backend.check()
    bounds = limits or Limits()

    def run(
        network: Network,
        flows: Flows,
        cc: CongestionControl,
        parameters: Mapping[str, float],
        options: Options,
    ) -> Outcome:
        if cc.name not in backend.protocols:
            raise ModelRangeError(
                f"packet back end {backend.name} has no {cc.name}; it has {', '.join(backend.protocols)}",
                hint="leave --packet out: the flow-level engine has it",
            )
        refuse_long(backend, flows, bounds)
        return backend.run(network, flows, cc, parameters, options, bounds, report)

    return run


def refuse_long(backend: PacketBackend, flows: Flows, limits: Limits) -> None:
    """Ask for a yes before a run that takes long.

    Raises
    ------
    ModelRangeError
        It takes longer than `LONG_S`, and nobody said yes.
    """
    hops = estimate(flows)
    seconds = hops / backend.hops_per_s
    if seconds > LONG_S and not limits.yes:
        raise ModelRangeError(
            f"packet by packet this takes about {format_time(float(f'{seconds:.2g}'))}: {hops:.2g} packets over links"
            f" at {backend.hops_per_s:.2g} a second",
            hint="--yes runs it; or fewer ranks, or a smaller --size",
        )
