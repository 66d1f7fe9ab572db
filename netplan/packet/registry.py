"""The packet back ends, by name, and how long they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import BackendError, ModelRangeError
from netplan.registry import Registry
from netplan.units import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.congestion.dynamics import Flows, Network, Options, Outcome

    Report = Callable[[float], None]
    _Run = Callable[
        [Network, Flows, CongestionControl, Mapping[str, float], Options, "Limits", Report | None],
        tuple[Outcome, "Stats"],
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
    """Folder in which inputs and outputs of runs are kept; None: those of failed runs, in a temporary one."""
    yes: bool = False
    """Whether runs longer than `LONG_S` are wanted."""


@dataclass(frozen=True)
class Stats:
    """What a run has done, and how fast."""

    packets: int
    """Data packets sent, those sent again included."""
    hops: int
    """Packets of all kinds over links."""
    cpu_s: float
    """Time of the processor in the simulator alone [s]."""
    how: str
    """How the simulator was loaded: bindings, compiler or in process."""


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


class PacketEngine:
    """Runs phases packet by packet: what a `Scenario` holds as its engine.

    Parameters
    ----------
    backend
        The simulator, or its name.
    limits
        Time and memory that a run may take.
    report
        Called now and then with the part of the bytes that is delivered.

    Raises
    ------
    BackendError
        The simulator is not there, or not installed.
    """

    def __init__(
        self, backend: PacketBackend | str, limits: Limits | None = None, report: Report | None = None
    ) -> None:
        self.backend = BACKENDS.find(backend) if isinstance(backend, str) else backend
        self.backend.check()
        self.limits = limits or Limits()
        self.report = report
        self.runs: list[Stats] = []
        """Of the phases that have been run."""

    def __call__(
        self,
        network: Network,
        flows: Flows,
        cc: CongestionControl,
        parameters: Mapping[str, float],
        options: Options,
    ) -> Outcome:
        """Run flows to their end, as `netplan.congestion.dynamics.run_flows` does."""
        backend = self.backend
        if cc.name not in backend.protocols:
            raise ModelRangeError(
                f"packet back end {backend.name} has no {cc.name}; it has {', '.join(backend.protocols)}",
                hint="leave --packet out: the flow-level engine has it",
            )
        refuse_long(backend, flows, self.limits)
        outcome, stats = backend.run(network, flows, cc, parameters, options, self.limits, self.report)
        self.runs.append(stats)
        return outcome

    def __repr__(self) -> str:
        """Say in one line what has been run, and how fast."""
        done = self.to_dict()
        speed = done["packets_per_s"]
        fast = f"{speed:,.0f} packets/s" if speed else "nothing run"
        return (
            f"<PacketEngine {self.backend.name}: {done['packets']:,} packets, {done['hops']:,} hops, {fast}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what has been run as plain data; times differ from run to run."""
        packets, hops = sum(run.packets for run in self.runs), sum(run.hops for run in self.runs)
        cpu = sum(run.cpu_s for run in self.runs)
        return {
            "backend": self.backend.name,
            "how": self.runs[0].how if self.runs else None,
            "packets": packets,
            "hops": hops,
            "cpu_s": cpu,
            "packets_per_s": packets / cpu if cpu > 0 else None,
        }


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
            f"packet by packet this takes about {format_time(float(f'{seconds:.2g}'))}: {hops:.2g} packets"
            f" over links at {backend.hops_per_s:.2g} a second",
            hint="--yes runs it; or fewer ranks, or a smaller --size",
        )
