"""``netplan check``."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from netplan.cli import options
from netplan.errors import ExitStatus


@click.command(short_help="Check a fabric's structure")
@click.argument("fabric")
@options.fail_option
@options.set_option
@options.seed_option
@options.output_options
def command(
    fabric: str,
    *,
    failures: tuple[str, ...],
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
      netplan check saved-fabric.json --format json
      netplan check fat-tree-k8 --fail switch:leaf-0-0
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.fabric.checks import CHECKS, check_fabric
    from netplan.report.tables import Table
    from netplan.spec.validate import split_overrides

    built = api.load_fabric(fabric, overrides=split_overrides(overrides), check=False)
    built = api.fail(built, failures, seed=seed)
    faults = [asdict(fault) for fault in check_fabric(built)]
    errors = sum(fault["severity"] == "error" for fault in faults)
    summary = f"{built.name}: {len(CHECKS)} checks, {errors} error(s), {len(faults) - errors} warning(s)"
    data = {"schema": "netplan/check/1", "faults": faults}
    options.emit(form, output, data, lambda: [Table.of(faults, summary)])
    if errors:
        sys.exit(ExitStatus.TARGET_NOT_MET)
