"""``netplan check``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.errors import ExitStatus

if TYPE_CHECKING:
    from netplan.fabric import Fabric


@click.command(short_help="Check a fabric's structure")
@click.argument("fabric")
@options.fail_option
@click.option(
    "--routing",
    metavar="SCHEME",
    help="Also look for cyclic buffer dependencies (PFC deadlocks) of this routing scheme.",
)
@click.option(
    "--traffic", metavar="TRAFFIC", help="With --routing: of this workload's flows, not of all leaves."
)
@options.set_option
@options.seed_option
@options.output_options
def command(
    fabric: str,
    *,
    failures: tuple[str, ...],
    routing: str | None,
    traffic: str | None,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
) -> None:
    """Check FABRIC: ports, cables, speeds, tiers, connection, bundles. Exit status 3 when there are errors.

    With --fail what is left after the failures is checked: what they cut off is a warning.

    \b
    Examples:
      netplan check superpod-b200-4su
      netplan check metro-30km-2site --routing ecmp
      netplan check saved-fabric.json --format json
      netplan check fat-tree-k8 --fail switch:leaf-0-0
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.fabric.checks import CHECKS, MOST_LISTED, check_fabric
    from netplan.fabric.classify import PAGES, classify
    from netplan.report.tables import Table
    from netplan.spec.validate import split_overrides

    if traffic is not None and routing is None:
        message = "--traffic needs --routing: it says whose paths are looked at"
        raise click.UsageError(message)
    built = api.load_fabric(fabric, overrides=split_overrides(overrides), check=False)
    built = api.fail(built, failures, seed=seed)
    faults = [asdict(fault) for fault in check_fabric(built)]
    data: dict[str, Any] = {"schema": "netplan/check/1", "faults": faults}
    remarks = []
    if built.kind == "custom":
        found_as = classify(built, most=MOST_LISTED)
        faults += [asdict(fault) for fault in found_as.deviations]
        data["family"], data["described_as"] = found_as.family, found_as.described_as
        remarks.append(
            f"nearly {found_as.described_as}; the warnings NP111 to NP115 are where it differs from that."
        )
    if routing is not None and not any(fault["severity"] == "error" for fault in faults):
        more, data["buffer_cycles"] = _buffer_cycles(built, routing, traffic, seed)
        faults += more
        cycles = len(data["buffer_cycles"]["cycles"])
        remarks.append(
            f"buffer dependencies of {routing}: {f'{cycles} cycle(s)' if cycles else 'no cycle'}; "
            f"looked at {data['buffer_cycles']['covers']} ({data['buffer_cycles']['flows']:,} flows)."
        )
    errors = sum(fault["severity"] == "error" for fault in faults)
    n_checks = len(CHECKS) + ("buffer_cycles" in data) + len(PAGES) * (built.kind == "custom")
    summary = f"{built.name}: {n_checks} checks, {errors} error(s), {len(faults) - errors} warning(s)"
    options.emit(form, output, data, lambda: [Table.of(faults, summary, remarks)])
    if errors:
        sys.exit(ExitStatus.TARGET_NOT_MET)


def _buffer_cycles(
    fabric: Fabric, routing: str, traffic: str | None, seed: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the faults and the facts of cyclic buffer dependencies."""
    from netplan import api
    from netplan.congestion.deadlock import check_buffer_cycles
    from netplan.routing import FlowTable, RoutingOptions
    from netplan.traffic import build_demand

    flows = None
    if traffic is not None:
        demand = build_demand(fabric, api.load_traffic(traffic), seed=seed)
        flows = FlowTable(demand.src, demand.dst, demand.channel, demand.qps)
    found = check_buffer_cycles(fabric, routing, flows, options=RoutingOptions(seed=seed))
    cycles = [[fabric.link_name(link) for link in cycle] for cycle in found.cycles]
    faults = [
        {
            "code": "NP221",
            "severity": "error",
            "where": cycle[0],
            "message": f"the buffers behind {len(cycle)} links wait for one another: {', then '.join(cycle)}",
            "hint": "route up the tiers and down only (ib-static), or break the ring; netplan explain NP221",
        }
        for cycle in cycles
    ]
    facts = {
        "routing": routing,
        "flows": found.n_flows,
        "covers": found.covers,
        "dependencies": found.n_dependencies,
        "cycles": cycles,
    }
    return faults, facts
