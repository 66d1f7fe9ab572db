"""Short ways from text to values, shared by the tests of routing, traffic, simulation and laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from netplan.congestion.line_rate import TRANSPORTS
from netplan.kernels.max_min import solve_max_min
from netplan.routing import SCHEMES, FlowTable, Routes, RoutingOptions, route_flows
from netplan.simulate import Result, Scenario, simulate
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from netplan.traffic import Demand, build_demand

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from netplan.fabric import Fabric
    from netplan.fabric.damage import Damage
    from netplan.traffic.damaged import OnDead

#: Payload over line rate of full 4096-byte packets, by hand: 82 and 26 header bytes around them.
ROCE, INFINIBAND = 4096 / (4096 + 82), 4096 / (4096 + 26)

#: Line rate of the NIC ports of all fabrics made here that do not say another [bytes/s].
NIC = 50e9


def make_fabric(text: str) -> Fabric:
    """Build the fabric that a YAML spec describes; it needs no name."""
    return build_fabric(validate(FABRIC_SPEC, parse_yaml(f"name: under-test\n{text}", "fabric.yaml")))


def make_demand(fabric: Fabric, text: str, *, seed: int = 0, on_dead: OnDead = "shrink") -> Demand:
    """Lay the workload that a YAML spec describes on a fabric; it needs no name."""
    spec = validate(TRAFFIC_SPEC, parse_yaml(f"name: offered\n{text}", "traffic.yaml"))
    return build_demand(fabric, spec, seed=seed, on_dead=on_dead)


def damage_of(fabric: Fabric) -> Damage:
    """Return the damage of a fabric that has some."""
    assert fabric.damage is not None
    return fabric.damage


def make_flows(src: ArrayLike, dst: ArrayLike, *, channel: ArrayLike = 0, qps: int = 1) -> FlowTable:
    """Return a table of flows between endpoints."""
    src = np.asarray(src, np.int32)
    return FlowTable(
        src, np.asarray(dst, np.int32), np.broadcast_to(np.asarray(channel, np.int32), src.shape), qps
    )


def run(
    fabric: Fabric,
    traffic: str | Demand,
    routing: str = "ecmp",
    *,
    seed: int = 0,
    mtu: int = 4096,
    **options: Any,
) -> Result:
    """Simulate a workload, given as YAML text or as a demand."""
    demand = make_demand(fabric, traffic, seed=seed) if isinstance(traffic, str) else traffic
    return simulate(Scenario(fabric, demand, routing, RoutingOptions(seed=seed, **options), mtu))


class FirstRates(NamedTuple):
    """Max-min rates with all flows active, as fractions of the NICs' payload line rate."""

    flow: NDArray[np.float64]
    """(n_flows,) all QPs of a flow together: what it gets when they are work-conserving."""
    slowest_qp: NDArray[np.float64]
    """(n_flows,) the slowest QP times their number: what counts when each carries an equal part."""
    routes: Routes


def first_rates(
    fabric: Fabric,
    flows: Demand | FlowTable,
    routing: str,
    *,
    seed: int = 0,
    nic: float = NIC,
    **options: Any,
) -> FirstRates:
    """Route flows and solve their rates once, without running them to their end."""
    table = FlowTable(flows.src, flows.dst, flows.channel, flows.qps)
    routes = route_flows(fabric, table, routing, RoutingOptions(seed=seed, **options))
    fraction = TRANSPORTS[SCHEMES.find(routing).transport].payload_fraction()
    weight = np.repeat(routes.weight, np.diff(routes.path_ptr))
    rate = solve_max_min(
        routes.capacity(fabric.links.capacity) * fraction,
        routes.path_ptr,
        routes.resource,
        routes.share * weight,
    ).rate / (nic * fraction)
    first = routes.flow_ptr[:-1]
    return FirstRates(
        np.add.reduceat(rate * routes.weight, first), np.minimum.reduceat(rate, first) * table.qps, routes
    )


def busiest_on_path(routes: Routes) -> NDArray[np.int64]:
    """Return, per path, the number of paths on the most used of its links."""
    used = np.bincount(routes.resource, minlength=routes.n_links)
    return np.maximum.reduceat(used[routes.resource], routes.path_ptr[:-1])


def standard_error(samples: ArrayLike) -> float:
    """Return the standard error of the mean of independent samples."""
    samples = np.asarray(samples, float)
    return float(samples.std(ddof=1) / np.sqrt(len(samples)))
