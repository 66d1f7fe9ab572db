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
@options.fail_option
@options.set_option
@options.seed_option
def command(
    fabric: str,
    *,
    output: str,
    collapse: str,
    failures: tuple[str, ...],
    overrides: tuple[str, ...],
    seed: int,
) -> None:
    """Draw FABRIC as .svg, .png or .html: tiers in rows, pods grouped, collapsed when it is large.

    With --fail the whole fabric is drawn, and what failed or is cut off is marked.

    \b
    Examples:
      netplan diagram lab-2-leaf -o lab.svg
      netplan diagram superpod-b200-16su --collapse pod -o superpod.png
      netplan diagram metro-star-3site --fail span:hub/west/path-2 -o cut.svg
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.diagram import render_diagram
    from netplan.spec.validate import split_overrides

    built = api.load_fabric(fabric, overrides=split_overrides(overrides))
    damaged = api.fail(built, failures, seed=seed)
    write_file(output, render_diagram(built, Path(output).suffix, collapse=collapse, damaged=damaged))
    click.echo(f"wrote {output}", err=True)
