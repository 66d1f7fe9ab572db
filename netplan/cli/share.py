"""``netplan share``."""

from __future__ import annotations

from pathlib import Path

import click

from netplan.cli import options


@click.command(short_help="A day of training and inference on one cluster: what elastic use gains")
@click.argument("day")
@click.option("--plot", type=click.Path(), help="Draw who has the GPUs in each hour: .svg or .png.")
@options.set_option
@options.output_options
def command(day: str, *, plot: str | None, overrides: tuple[str, ...], form: str, output: str | None) -> None:
    """Compare fixed with elastic use of a cluster over DAY, a shipped name or YAML file.

    \b
    Examples:
      netplan share chat-and-train
      netplan share day.yaml --set inference.mean=0.5 --plot day.svg --format json
    """  # noqa: D301 -- click wants the control character
    from netplan.catalog.kept import read_kept
    from netplan.files import write_file
    from netplan.planning.sharing import share_day
    from netplan.report.sharing import draw_day, sharing_tables
    from netplan.spec.sharing import SharingSpec
    from netplan.spec.validate import split_overrides, validate

    spec = validate(SharingSpec, read_kept(day, "days"), overrides=split_overrides(overrides))
    found = share_day(spec)
    if plot is not None:
        write_file(plot, draw_day(found, Path(plot).suffix))
    options.emit(form, output, found.to_dict(), lambda: sharing_tables(found))
