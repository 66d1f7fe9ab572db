"""Everything that decides a result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import netplan
from netplan.congestion.line_rate import DEFAULT_MTU, TRANSPORTS, Transport
from netplan.routing import SCHEMES, RoutingOptions

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.fabric.damage import Damage
    from netplan.traffic import Demand

#: The only model of congestion control so far: rates are max-min fair at once and stay so.
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
                "cc": MAX_MIN,
                "transport": self.transport.name,
                "flow": "max-min fluid",
            },
            "mtu_bytes": self.mtu,
            "qps": self.demand.qps,
            "routing_options": asdict(self.options),
            "seed": self.options.seed,
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
