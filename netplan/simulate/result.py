"""What a run found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.fabric import LINK_KINDS
from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.congestion.efficiency import Efficiency
    from netplan.simulate.scenario import Scenario

#: Version of the JSON that `Result.to_dict` makes; raised when a key changes its meaning.
SCHEMA = "netplan/result/1"

#: Offered load above which a link counts as contended: one flow at line rate is 1.
CONTENDED = 1.0 + 1e-6

#: Bytes/s of a GB/s as nccl-tests prints it.
_GB = 1e9


@dataclass(frozen=True)
class Bottleneck:
    """A link that more is offered to than it carries."""

    link: str
    """Sender and receiver."""
    load: float
    """Carried rate over payload capacity, all flows active."""
    offered: float
    """What its flows' senders would send, unhindered, over payload capacity."""
    flows: int
    """Flows that cross it."""


@dataclass(frozen=True)
class PhaseResult:
    """Times of one phase [s]."""

    name: str
    flows: int
    completion_s: float
    """From the phase's begin to its end."""
    network_s: float
    """Until the last byte left the network's bottleneck, latency aside."""
    scale_up_s: float
    """Busy time of the scale-up domain, at the same time as the network's."""
    latency_s: float
    """Latency in the completion time."""
    ideal_s: float
    """Completion time without contention."""
    ideal_network_s: float
    """Until the last byte left the busiest NIC, without contention, latency aside."""
    cables_s: float
    """Propagation on the cables that data crosses in turn."""
    inside_s: float
    """Latency of hops inside hosts that goes with the scale-up domain's time."""

    def to_dict(self) -> dict[str, Any]:
        """Return what is told of a phase; the parts that `netplan.simulate.sizes` scales are not."""
        parts = ("ideal_network_s", "cables_s", "inside_s")
        return {name: value for name, value in vars(self).items() if name not in parts}


@dataclass(frozen=True)
class Queues:
    """The longest queues of switch ports."""

    peak_bytes: float
    """Most bytes that waited at any port."""
    worst_link: str
    """Where."""
    mean_bytes: float
    """Mean over time of the queue that was longest on average."""
    mean_link: str
    """Where."""


@dataclass(frozen=True)
class Pfc:
    """Pauses of all ports together."""

    pause_time_s: float
    """Time that links were paused: a link paused for 1 ms counts 1 ms."""
    pause_events: float
    watchdog_events: float = 0.0
    """Times that a PFC watchdog took a queue that was paused too long."""


@dataclass(frozen=True, eq=False)
class PhaseSeries:
    """Rates, queues and pauses of a phase over time."""

    phase: str
    flow: NDArray[np.int64]
    """(n_senders,) flow of each, counted over the demand."""
    qp: NDArray[np.int64]
    """(n_senders,) number of the QP within its flow."""
    links: tuple[str, ...]
    """Ports whose queues were watched."""
    time: NDArray[np.float64]
    """(n_samples,) [s]."""
    rate: NDArray[np.float64]
    """(n_samples, n_senders) received since the sample before [bytes/s of payload]."""
    queue: NDArray[np.float64]
    """(n_samples, n_links) bytes that waited."""
    paused_links: tuple[str, ...]
    """Links that were paused, those paused longest; none: no pause at all."""
    paused: NDArray[np.float64]
    """(n_samples, n_paused_links) part of the time since the sample before, 0 to 1."""


@dataclass(frozen=True, eq=False)
class Congestion:
    """What a protocol did to queues, pauses and losses."""

    pfc: Pfc
    queues: Queues | None
    """None where no switch port ever held a packet."""
    loss_fraction: float
    """Payload bytes dropped over bytes sent, those sent again included."""
    marked_packets: float
    resent_bytes: float
    method: str
    """whole, scaled, components or bottlenecks: `netplan.simulate.dynamics`."""
    scale: float
    """Smallest part of the bytes that was run in the engine; 1: all."""
    groups: int
    """Groups that senders fell into, all phases."""
    kinds: int
    """Groups that were run: those that are alike once."""
    events: int
    """Events of the engine."""
    step_s: float
    """Longest time that one train of packets stands for."""
    deep: tuple[int, str] | None
    """Number and name of a switch for which a deep buffer was supposed."""
    series: tuple[PhaseSeries, ...] = ()

    def method_to_dict(self) -> dict[str, Any]:
        """Return how the engine was used."""
        return {
            "method": self.method,
            "scale": self.scale,
            "groups": self.groups,
            "groups_run": self.kinds,
            "events": self.events,
            "step_s": self.step_s,
            "note": None if self.method == "whole" else SHORTENED,
        }


#: How far off runs are that are not whole: ``benchmarks/congestion.py errors``, whose table is in the guide.
SHORTENED = (
    "measured against whole runs: incasts within 2 %, rings within 3 % (TIMELY 11 %), all-to-all up to 4 %"
    " (HPCC 11 %) too fast, random permutations on single paths 6 to 20 % too fast"
)

_METHODS = {
    "scaled": "Run with {scale:.1%} of the bytes, the rest at the rates reached; --exact runs all.",
    "components": "Flows that share no full link are run apart, alike groups once: {kinds:,} of {groups:,}"
    " groups{part}; --exact runs all together.",
    "bottlenecks": "Too many flows are tied together: full links are run one by one, alike ones once:"
    " {kinds:,} of {groups:,} groups{part}; --exact runs all together.",
}


def unread_remark(setting: str, cc: str) -> str:
    """Say that nothing reads a setting."""
    return f"NP214: {setting} changes nothing: the congestion control is {cc}"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Columns of flow results and link loads, and the figures drawn from them."""

    scenario: Scenario
    phases: tuple[PhaseResult, ...]
    efficiency: Efficiency
    rate: NDArray[np.float64]
    """(n_flows,) rate of each flow when all flows of its phase are active [bytes/s]."""
    finish: NDArray[np.float64]
    """(n_flows,) when the flow's last byte arrived, counted from its phase's begin [s]."""
    bottleneck: NDArray[np.int64]
    """(n_flows,) link that stops the flow's slowest path (of a trunk the first); -1: its window."""
    link_load: NDArray[np.float64]
    """(n_links,) carried over payload capacity, all flows active; the largest over the phases."""
    link_offered: NDArray[np.float64]
    """(n_links,) what senders would send unhindered over payload capacity; the largest over the phases."""
    link_flows: NDArray[np.int64]
    """(n_links,) flows that cross each link; the largest over the phases."""
    windowed: int
    """Flows that their window limits to less than their NIC's line rate."""
    congestion: Congestion | None
    """Queues, pauses and losses; None under ``max-min``, which knows none."""
    events: int
    """Instants at which rates were solved anew."""
    wall_s: float
    """Time that the run took [s]; not part of `to_dict`, which is the same for the same seed."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    def __repr__(self) -> str:
        """Say in one line what it is."""
        demand, e = self.scenario.demand, self.efficiency
        return (
            f"<Result {demand.name!r} on {self.scenario.fabric.name!r} by {self.scenario.routing}: "
            f"{self.completion_s:.6g} s, collective {e.collective:.3f}, mean flow {e.mean_flow:.3f}, "
            f"worst {e.worst_flow:.3f}>"
        )

    @property
    def completion_s(self) -> float:
        """Time from the begin of the first phase to the end of the last [s]."""
        return sum(phase.completion_s for phase in self.phases)

    @property
    def ideal_s(self) -> float:
        """Completion time without contention [s]."""
        return sum(phase.ideal_s for phase in self.phases)

    @property
    def latency_s(self) -> float:
        """Latency in the completion time [s]."""
        return sum(phase.latency_s for phase in self.phases)

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth: size over time [bytes/s]."""
        return self.scenario.demand.size_bytes / self.completion_s

    @property
    def busbw(self) -> float | None:
        """Bus bandwidth as nccl-tests defines it [bytes/s]; None when it is no collective."""
        factor = self.scenario.demand.busbw_factor
        return None if factor is None else self.algbw * factor

    @property
    def is_contended(self) -> bool:
        """Whether any link is offered more than it can carry."""
        return bool((self.link_offered > CONTENDED).any())

    def _congestion_to_dict(self) -> dict[str, Any]:
        """Return queues, pauses and losses: null under max-min, which knows none."""
        found = self.congestion
        if found is None:
            return {
                "pfc": None,
                "loss_fraction": None,
                "queues": None,
                "marked_packets": None,
                "engine": None,
            }
        return {
            "pfc": vars(found.pfc),
            "loss_fraction": found.loss_fraction,
            "queues": None if found.queues is None else vars(found.queues),
            "marked_packets": found.marked_packets,
            "engine": found.method_to_dict(),
        }

    def remarks(self) -> list[str]:
        """Say, with a code where there is one, what of the settings changed nothing or was supposed."""
        found, scenario = self.congestion, self.scenario
        remarks = [unread_remark(name, scenario.cc) for name in scenario.unread]
        if found is None:
            return remarks
        if len(self.rate) and not self.is_contended:
            remarks.append(
                f"NP242: no link is contended: {scenario.cc} has nothing to share out; what it takes beyond"
                " max-min is its own margin"
            )
        if found.deep is not None:
            count, name = found.deep
            remarks.append(
                f"NP241: headroom of long links does not fit the buffer of {count:,} switches (such as"
                f" {name}): deeper ones are supposed; netplan tune says what fits"
            )
        if found.loss_fraction > 0 and found.pfc.pause_events > 0:
            remarks.append(
                f"NP243: {found.loss_fraction:.2%} of the bytes were lost although switches pause: headroom"
                " is too small"
            )
        if found.method != "whole":
            part = f", with {found.scale:.1%} of the bytes and more" if found.scale < 1 else ""
            remarks.append(
                _METHODS[found.method].format(
                    scale=found.scale, kinds=found.kinds, groups=found.groups, part=part
                )
            )
            remarks.append(f"Such runs, {SHORTENED}.")
        return remarks

    def bottlenecks(self, most: int = 5) -> list[Bottleneck]:
        """Return the links with the largest offered load above 1, worst first."""
        over = np.flatnonzero(self.link_offered > CONTENDED)
        # Rounded, so that equal loads are equal and the order of ids decides on any machine.
        worst = over[np.lexsort((over, -np.round(self.link_offered[over], 9)))][:most]
        name = self.scenario.fabric.link_name
        return [
            Bottleneck(
                name(int(link)),
                float(self.link_load[link]),
                float(self.link_offered[link]),
                int(self.link_flows[link]),
            )
            for link in worst
        ]

    def by(self, what: str) -> list[dict[str, Any]]:
        """Summarise by a column.

        Parameters
        ----------
        what
            ``tier``: loads of each kind of link and direction. ``rail``, ``site``: rates of the flows
            that NICs of each send. ``phase``: times.

        Returns
        -------
        list of dict
            One row per value, with units in the keys.

        Raises
        ------
        ValueError
            There is no such summary.
        """
        if what == "phase":
            return [phase.to_dict() for phase in self.phases]
        if what == "tier":
            return self._by_tier()
        fabric, demand = self.scenario.fabric, self.scenario.demand
        if what == "rail":
            group = fabric.endpoints.rail[demand.src]
            names: list[str] = [str(rail) for rail in range(int(group.max(initial=-1)) + 1)]
        elif what == "site":
            group = fabric.nodes.site[fabric.endpoints.host[demand.src]]
            names = list(fabric.site_names)
        else:
            msg = f"by = {what!r} is not one of tier, rail, phase, site"
            raise ValueError(msg)
        rows = []
        for number, name in enumerate(names):
            rates = self.rate[group == number]
            if len(rates):
                rows.append(
                    {
                        what: name,
                        "flows": len(rates),
                        "mean_rate_gb_per_s": float(rates.mean()) / _GB,
                        "worst_rate_gb_per_s": float(rates.min()) / _GB,
                    }
                )
        return rows

    def _by_tier(self) -> list[dict[str, Any]]:
        """Return loads of each kind of link and direction."""
        links = self.scenario.fabric.links
        direction = np.arange(len(links)) % 2
        rows = []
        for kind, name in enumerate(LINK_KINDS):
            for down, word in enumerate(("up", "down")):
                chosen = (links.kind == kind) & (direction == down)
                if chosen.any():
                    load, offered = self.link_load[chosen], self.link_offered[chosen]
                    rows.append(
                        {
                            "tier": name,
                            "direction": word,
                            "links": int(chosen.sum()),
                            "mean_load": float(load.mean()),
                            "max_load": float(load.max()),
                            "max_offered": float(offered.max()),
                            "idle_links": int((load == 0).sum()),
                        }
                    )
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data: the same bytes for the same scenario, on any machine."""
        busbw = self.busbw
        return {
            "schema": SCHEMA,
            "result": {
                "completion_s": self.completion_s,
                "ideal_s": self.ideal_s,
                "latency_s": self.latency_s,
                "algbw_gb_per_s": self.algbw / _GB,
                "busbw_gb_per_s": None if busbw is None else busbw / _GB,
                "efficiency": self.efficiency.to_dict(),
                "flows": len(self.rate),
                "qps": self.scenario.demand.qps,
                "ranks": self.scenario.demand.n_ranks,
                "algorithm": self.scenario.demand.algorithm,
                "protocol": self.scenario.demand.protocol,
                "phases": [phase.to_dict() for phase in self.phases],
                "bottlenecks": [dict(vars(bottleneck)) for bottleneck in self.bottlenecks()],
                "links_by_tier": self.by("tier"),
                "contended": self.is_contended,
                "remarks": self.remarks(),
                "window_limited_flows": self.windowed,
                **self._congestion_to_dict(),
            },
            "manifest": self.scenario.manifest(),
        }
