"""``netplan export``."""

from __future__ import annotations

import click

from netplan.cli import options


@click.command(short_help="Write a fabric in the format of another program")
@click.argument("fabric")
@click.option("--to", "format_name", required=True, metavar="FORMAT", help="Format: netplan list formats.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="File to write, or -; a new folder for some formats.",
)
@click.option("--traffic", metavar="TRAFFIC", help="The workload, for formats of traffic.")
@click.option(
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the format, such as blocks=4 for slurm-block. Repeatable.",
)
@options.fail_option
@options.set_option
@options.seed_option
def command(
    fabric: str,
    *,
    format_name: str,
    output: str,
    traffic: str | None,
    settings: tuple[str, ...],
    failures: tuple[str, ...],
    overrides: tuple[str, ...],
    seed: int,
) -> None:
    """Write FABRIC for another program. With --fail what is left after the failures is written.

    \b
    Examples:
      netplan export superpod-b200-4su --to ibsim -o superpod.net
      netplan export fat-tree-k8 --to slurm -o topology.conf
      netplan export fat-tree-k8 --to opensm -o opensm-files
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.interop.registry import find_format
    from netplan.spec.validate import split_overrides

    chosen = find_format(format_name, "write")
    built = api.fail(api.load_fabric(fabric, overrides=split_overrides(overrides)), failures, seed=seed)
    written = api.export(
        built,
        format_name,
        output,
        traffic=None if traffic is None else api.load_traffic(traffic),
        settings=_settings(settings),
        seed=seed,
    )
    what = f"{len(written)} file(s) in {output}" if chosen.is_folder else output
    click.echo(f"wrote {what}", err=True)
    if chosen.leaves_out:
        click.echo(f"left out: {chosen.leaves_out}", err=True)


def _settings(items: tuple[str, ...]) -> dict[str, str]:
    """Return the options of the format."""
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            message = f"{item!r} is not NAME=VALUE"
            raise click.BadParameter(message, param_hint="--option")
        found[name] = value
    return found
