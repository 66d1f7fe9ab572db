"""``netplan diagram``."""

from __future__ import annotations

from pathlib import Path

import click

from netplan.cli import options
from netplan.files import write_file


@click.command(short_help="Draw a fabric")
@click.argument("fabric")
@click.option(
    "-o", "--output", required=True, type=click.Path(), help="File to write; its suffix chooses the format."
)
@click.option(
    "--collapse",
    type=click.Choice(["auto", "none", "pod", "rail"]),
    default="auto",
    show_default=True,
    help="What is drawn as one box.",
)
@options.set_option
def command(fabric: str, *, output: str, collapse: str, overrides: tuple[str, ...]) -> None:
    """Draw FABRIC as .svg or .png: tiers in rows, pods grouped, collapsed when it is large.

    \b
    Examples:
      netplan diagram lab-2-leaf -o lab.svg
      netplan diagram superpod-b200-16su --collapse pod -o superpod.png
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.diagram import render_diagram
    from netplan.spec.validate import split_overrides

    built = api.load_fabric(fabric, overrides=split_overrides(overrides))
    write_file(output, render_diagram(built, Path(output).suffix, collapse=collapse))
    click.echo(f"wrote {output}", err=True)
