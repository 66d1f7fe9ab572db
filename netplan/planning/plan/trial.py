"""Price and simulate a surveyed candidate: from bounds to figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import NetplanError, RoutingError, SpecError, TrafficError
from netplan.planning import bom
from netplan.planning.floor import floor_lengths, load_floor
from netplan.planning.plan.design import Amount, Design, Rejection
from netplan.planning.plan.survey import build_spec
from netplan.planning.plan.workloads import demands, large_efficiency
from netplan.routing import SCHEMES, RoutingOptions
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.catalog.parts import Catalogue
    from netplan.fabric import Fabric
    from netplan.planning.bom import Bill
    from netplan.planning.plan.request import Request
    from netplan.planning.plan.survey import Survey

__all__ = ["Trial", "amounts", "routing_for", "try_out"]

#: Begins what a bill says of the use of host cables and their modules.
_HOST_CABLE = "host_leaf"

#: What suits direct networks, where it is there: minimal paths alone would leave most links idle.
_DIRECT = "ugal"


@dataclass(frozen=True)
class Trial:
    """What became of a candidate: a design for each switch, or why there is none."""

    designs: tuple[Design, ...]
    rejected: tuple[Rejection, ...]


def try_out(survey: Survey, parts: Sequence[str], request: Request, catalogue: Catalogue) -> Trial:
    """Build a candidate, run the workloads, and price it with each switch.

    Parameters
    ----------
    survey
        What is tried.
    parts
        Switches that it is priced with.
    request
        Routing, seed and floor.
    catalogue
        The parts.
    """
    candidate = survey.candidate
    fabric = build_spec(candidate.spec)
    bills: dict[str, Bill] = {}
    rejected: list[Rejection] = []
    length = None if request.floor is None else floor_lengths(fabric, load_floor(request.floor))
    for part in parts:
        wishes = bom.Wishes(switches={"*": part}, nic=survey.nic)
        name = f"{candidate.name} of {part}"
        try:
            bill = bom.bill(fabric, catalogue, wishes, length=length)
        except NetplanError as error:
            reason = error.faults[0].message if isinstance(error, SpecError) else error.message
            rejected.append(Rejection((name,), reason, error.hint))
            continue
        crowded = next((remark for remark in bill.remarks if "cages, " in remark), None)
        if crowded is None:
            bills[part] = bill
        else:
            reason, _, rest = crowded.partition(". ")
            rejected.append(Rejection((name,), reason, rest))
    if not bills:
        return Trial((), tuple(rejected))
    routing = routing_for(fabric, request)
    efficiencies = {}
    for workload in demands(fabric, request):
        scenario = Scenario(fabric, workload.demand, routing, RoutingOptions(seed=request.seed))
        try:
            efficiencies[workload.name] = large_efficiency(simulate(scenario))
        except (RoutingError, TrafficError) as error:
            reason = f"{workload.name} cannot run by {routing}: {error.message}"
            return Trial((), (*rejected, Rejection((candidate.name,), reason, error.hint)))
    designs = []
    for part, bill in bills.items():
        cost, power = amounts(bill)
        designs.append(
            Design(
                name=candidate.name if len(candidate.parts) == 1 else f"{candidate.name}-{part}",
                family=candidate.family,
                spec=candidate.spec,
                switch=part,
                nic=survey.nic,
                planes=candidate.planes,
                oversubscription=candidate.oversubscription,
                switches=survey.switches,
                cables=survey.cables,
                gpus=survey.gpus,
                any_to_any=survey.any_to_any,
                cost=cost,
                power=power,
                efficiencies=efficiencies,
                routing=routing,
                failing=survey.failing,
                remarks=tuple(_remarks(survey, bill)),
            )
        )
    return Trial(tuple(designs), tuple(rejected))


def routing_for(fabric: Fabric, request: Request) -> str:
    """Return the routing of the simulations: the request's, or what suits the family."""
    if request.routing is not None:
        return request.routing
    if fabric.direct is not None and _DIRECT in SCHEMES.names():
        return _DIRECT
    return "spray"


def amounts(bill: Bill) -> tuple[Amount, Amount]:
    """Return cost and largest draw of a bill's network, with the pieces of parts without a figure."""
    totals = bill.totals
    no_price: dict[str, float] = {}
    no_power: dict[str, float] = {}
    large: dict[str, set[str]] = {"cost": set(), "power": set()}
    for line in bill.lines:
        if line.kind == "host" or line.is_included:
            continue
        is_large = line.kind == "unlisted" or not (line.kind == "nic" or line.use.startswith(_HOST_CABLE))
        for name, unknown, is_open in (
            ("cost", no_price, line.cost is None),
            ("power", no_power, line.part in totals.unknown["power_max"]),
        ):
            if is_open:
                unknown[line.part] = unknown.get(line.part, 0.0) + line.quantity
                large[name] |= {line.part} if is_large else set()
    c, power = totals.cost, totals.power_max
    return (
        Amount(c.low, c.mid, c.high, no_price, tuple(sorted(large["cost"]))),
        Amount(totals.power_typical, power, power, no_power, tuple(sorted(large["power"]))),
    )


def _remarks(survey: Survey, bill: Bill) -> list[str]:
    """Say what the figures do not."""
    remarks = []
    if not survey.any_to_any:
        remarks.append(
            "NICs of different rails or planes meet only inside hosts: traffic between them needs PXN or the "
            "scale-up domain, and what has neither has no path"
        )
    remarks += [remark.removesuffix(".") for remark in bill.remarks if "unlisted" in remark]
    return remarks
