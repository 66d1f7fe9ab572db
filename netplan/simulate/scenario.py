"""Everything that decides a result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import netplan
from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import run_flows
from netplan.congestion.line_rate import DEFAULT_MTU, TRANSPORTS, Transport
from netplan.routing import SCHEMES, RoutingOptions
from netplan.simulate.switches import AUTO, BUFFER_S, DEFAULT, find_switches

if TYPE_CHECKING:
    from netplan.congestion.dynamics import Engine
    from netplan.congestion.switch import SwitchProfile
    from netplan.fabric import Fabric
    from netplan.fabric.damage import Damage
    from netplan.traffic import Demand

#: The ideal congestion control, without time: rates are max-min fair at once and stay so.
MAX_MIN = "max-min"


@dataclass(frozen=True, eq=False)
class Scenario:
    """One run: fabric x demand x routing x seed."""

    fabric: Fabric
    demand: Demand
    routing: str
    """Name of a routing scheme."""
    options: RoutingOptions = field(default_factory=RoutingOptions)
    """Seed and options of the routing."""
    mtu: int = DEFAULT_MTU
    """Payload of a full packet [bytes]."""
    cc: str = MAX_MIN
    """``max-min``, or the name of a protocol of `netplan.congestion.cc`."""
    cc_params: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the protocol in SI units, where they are not its defaults."""
    switch: str | SwitchProfile | Mapping[str, SwitchProfile] = AUTO
    """Rules of the switches, by name or by tier (`netplan.simulate.switches`)."""
    exact: bool = False
    """Run everything whole instead of by parts (`netplan.simulate.parts`)."""
    step: float | None = None
    """Longest time that one train of packets stands for [s]; None: what the round trip asks for."""
    record: bool = False
    """Keep rates and queues over time."""
    packet: str = ""
    """Name of the packet simulator that `engine` is; empty: the flow-level engine."""
    engine: Engine = run_flows
    """What runs flows under a protocol."""
    unread: tuple[str, ...] = ()
    """Settings that were given and that this congestion control does not read: reported with the result."""

    @property
    def transport(self) -> Transport:
        """Packet format and latencies: those that go with the routing scheme."""
        return TRANSPORTS[SCHEMES.find(self.routing).transport]

    def manifest(self) -> dict[str, Any]:
        """Return what a number can be traced by: hashes, version, failures, models, seed."""
        damage = self.fabric.damage
        return {
            "netplan": netplan.__version__,
            "fabric": {
                "name": self.fabric.name,
                "kind": self.fabric.kind,
                "sha256": _digest(self.fabric.spec),
            },
            "traffic": {
                "name": self.demand.name,
                "kind": self.demand.kind,
                "sha256": _digest(self.demand.spec),
            },
            "failures": None if damage is None else self._failures(damage),
            "models": {
                "routing": self.routing,
                "cc": self.cc,
                "transport": self.transport.name,
                "flow": "max-min fluid" if self.cc == MAX_MIN else self.packet or "packet trains",
            },
            "congestion": None if self.cc == MAX_MIN else self._congestion(),
            "mtu_bytes": self.mtu,
            "qps": self.demand.qps,
            "routing_options": asdict(self.options),
            "seed": self.options.seed,
        }

    def _congestion(self) -> dict[str, Any]:
        """Return what the engine was told: every parameter of the protocol, and the rules of the switches."""
        cc = PROTOCOLS.find(self.cc)
        values = cc.values(self.cc_params).tolist()
        if isinstance(self.switch, Mapping):
            switch: Any = {tier: asdict(profile) for tier, profile in self.switch.items()}
        elif isinstance(self.switch, str):
            switch = asdict(DEFAULT if self.switch == AUTO else find_switches(self.switch))
            if self.switch == AUTO:
                del switch["buffer"]["total_bytes"]
                switch["buffer"]["total_s"] = BUFFER_S
        else:
            switch = asdict(self.switch)
        return {
            "parameters": {each.name: value for each, value in zip(cc.parameters, values, strict=False)},
            "switch": switch,
            "exact": self.exact,
            "step_s": self.step,
        }

    def _failures(self, damage: Damage) -> dict[str, Any]:
        """Return what failed, as it was written, and what a job does with hosts that lost NICs."""
        return {
            "items": list(damage.failures),
            "seeds": list(damage.seeds),
            "on_dead": self.demand.on_dead,
        }


def _digest(spec: object) -> str | None:
    """Return the hash of a spec as plain data; None for what was built without one."""
    if spec is None:
        return None
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
