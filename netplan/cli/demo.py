"""``netplan demo``: the main job on shipped files."""

from __future__ import annotations

import time
from pathlib import Path

import click

from netplan.cli import options
from netplan.files import write_file

#: What the demo runs: the fabric and demand behind "60 % against 95 % bandwidth efficiency".
FABRIC, TRAFFIC = "baidu-10k", "all-reduce-16gib-random"
ROUTINGS = ("ecmp", "rail-pinned", "adaptive", "spray")


@click.command(short_help="Compare routings with InfiniBand on a shipped fabric, and draw it")
@click.option(
    "-o",
    "--output",
    default=f"{FABRIC}.svg",
    show_default=True,
    type=click.Path(),
    help="Where to draw the fabric.",
)
@options.seed_option
def command(output: str, *, seed: int) -> None:
    """Run the main job: a fabric and an all-reduce in, bandwidth efficiency against InfiniBand out.

    \b
    Examples:
      netplan demo
      netplan demo --seed 7 -o fabric.png
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.diagram import render_diagram
    from netplan.report.results import comparison_tables
    from netplan.report.tables import render_tables

    begun = time.perf_counter()
    fabric = api.load_fabric(FABRIC)
    traffic = api.load_traffic(TRAFFIC)
    comparison = api.compare(fabric, traffic, routing=ROUTINGS, seed=seed)
    click.echo(render_tables(comparison_tables(comparison), "table"), nl=False)
    write_file(output, render_diagram(fabric, Path(output).suffix))
    click.echo(f"\nwrote the diagram {output}; {time.perf_counter() - begun:.1f} s", err=True)
    click.echo(
        f"the same by hand: netplan compare {FABRIC} {TRAFFIC} --routing {','.join(ROUTINGS)}", err=True
    )
