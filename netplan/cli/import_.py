"""``netplan import``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from netplan.cli import options


@click.command(short_help="Read a fabric from a file of another program, and say what it is")
@click.argument("file")
@click.option("--from", "format_name", required=True, metavar="FORMAT", help="Format: netplan list formats.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(),
    help="Write the fabric here: a .yaml spec, or a saved .json fabric.",
)
@click.option("--name", metavar="NAME", help="Name of the fabric.  [default: from the file's]")
@click.option("--speed", metavar="RATE", help="Speed of cables that the file gives none.  [default: 400G]")
@click.option("--gpus-per-host", type=click.IntRange(1, 1024), help="GPUs of each host.")
@click.option(
    "--tables",
    metavar="FILE",
    help="Forwarding tables that OpenSM dumped (opensm-lfts.dump): ib-static then follows them.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(options.FORMATS),
    default="table",
    show_default=True,
    help="Form of the report.",
)
def command(
    file: str,
    *,
    format_name: str,
    target: str | None,
    name: str | None,
    speed: str | None,
    gpus_per_host: int | None,
    tables: str | None,
    form: str,
) -> None:
    """Read FILE, find which family it nearly is, and list where it deviates from it.

    \b
    Examples:
      netplan import ibnetdiscover.out --from ibnetdiscover -o ours.yaml
      netplan import ibnetdiscover.out --from ibnetdiscover --tables opensm-lfts.dump -o ours.json
      netplan import topology.conf --from slurm --speed 200G --gpus-per-host 8 -o ours.yaml
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.errors import UnitError
    from netplan.fabric.classify import classify
    from netplan.report.tables import Table
    from netplan.units import parse_rate

    rate = None
    if speed is not None:
        try:
            rate = parse_rate(speed)
        except UnitError as error:
            raise click.BadParameter(str(error), param_hint="--speed") from None
    if target is not None:
        api.check_target(target, has_tables=tables is not None)
    fabric, remarks = api.import_fabric(
        file, format_name, name=name, speed=rate, gpus_per_host=gpus_per_host, tables=tables
    )
    found = classify(fabric)
    data: dict[str, Any] = {
        "schema": "netplan/import/1",
        "fabric": {
            "name": fabric.name,
            "hosts": fabric.n_hosts,
            "gpus": fabric.n_gpus,
            "endpoints": fabric.n_endpoints,
            "switches": fabric.n_switches,
            "cables": fabric.links.n_cables,
        },
        "family": found.family,
        "described_as": found.described_as,
        "deviations": [asdict(each) for each in found.deviations],
        "remarks": list(remarks),
    }
    if target is not None:
        api.save_imported(fabric, target)
        click.echo(f"wrote {target}", err=True)

    def report() -> list[Table]:
        counts = Table.of([data["fabric"]], f"{fabric.name}: nearly {found.described_as}", list(remarks))
        rows = [asdict(each) for each in found.deviations]
        return [counts, Table.of(rows, f"Deviations: {len(rows)}")]

    options.emit(form, None, data, report)
