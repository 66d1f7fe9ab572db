"""``netplan grow``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from netplan.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Plan the re-cabling from one size of a fabric to the next")
@click.argument("before")
@click.argument("after")
@click.option(
    "--choices", is_flag=True, help="List designs of BEFORE's number of hosts that grow well into AFTER."
)
@click.option("--steps", type=click.Path(), metavar="FILE.csv", help="Write the list of steps here.")
@click.option(
    "--parts", type=click.Path(), help="YAML file of parts; one with the name of a shipped part replaces it."
)
@click.option(
    "--floor",
    metavar="default|FILE",
    help="Cable lengths of the parts from where racks stand; the fabrics' own lengths without it.",
)
@click.option("--protocol", type=click.Choice(["ethernet", "infiniband"]), help="Protocol of the switches.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="before|after.KEY=VALUE",
    help="Replace a value of one of the specs, such as before.core.count=256. Repeatable.",
)
@options.output_options
def command(
    before: str,
    after: str,
    *,
    choices: bool,
    steps: str | None,
    parts: str | None,
    floor: str | None,
    protocol: str | None,
    overrides: tuple[str, ...],
    form: str,
    output: str | None,
) -> None:
    """Plan how fabric BEFORE becomes fabric AFTER with the fewest cables moved.

    Hosts keep their seats; switches are matched tier by tier so that most cables stay. What is to buy is the
    difference of the two bills of materials. --format csv is the list of parts.

    \b
    Examples:
      netplan grow superpod-b200-4su superpod-b200-4su --set after.hosts.count=256
      netplan grow growth-10k growth-102k --steps steps.csv
      netplan grow growth-10k growth-102k --choices
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.files import write_file
    from netplan.planning.growth import purchases, regrow
    from netplan.report.growth import growth_tables, steps_csv

    sets = _split(overrides)
    if choices:
        _refuse_unused({"--steps": steps, "--parts": parts, "--floor": floor, "--protocol": protocol})
        _choices(before, after, sets, form, output)
        return
    first = api.load_fabric(before, overrides=sets["before"])
    later = api.load_fabric(after, overrides=sets["after"])
    growth = regrow(first, later)
    bills = [
        api.bill_of_materials(fabric, parts=parts, floor=floor, protocol=protocol)
        for fabric in (first, later)
    ]
    bought = purchases(*bills)
    if steps is not None:
        write_file(steps, steps_csv(growth.steps()).encode())
        click.echo(f"wrote the steps to {steps}", err=True)
    data = {
        "schema": "netplan/growth/1",
        **growth.to_dict(),
        "purchases": [each.to_dict() for each in bought],
    }
    tables = growth_tables(growth, bought, bills[1].remarks)
    options.emit(form, output, data, lambda: tables[-1:] if form == "csv" else tables)


def _choices(before: str, after: str, sets: dict[str, dict[str, str]], form: str, output: str | None) -> None:
    """List ways to begin."""
    from netplan import api
    from netplan.catalog.shipped import read_document
    from netplan.planning.growth import growth_choices
    from netplan.report.growth import choice_tables

    if sets["after"] or set(sets["before"]) - {"hosts.count"}:
        message = "with --choices only before.hosts.count can be set: the designs follow from AFTER as it is"
        raise click.UsageError(message)
    hosts = api.load_fabric(before, overrides=sets["before"]).n_hosts
    found = growth_choices(read_document(after, "topologies").data, hosts)
    data = {"schema": "netplan/growth-choices/1", "choices": [each.to_dict() for each in found]}
    options.emit(form, output, data, lambda: choice_tables(found))


def _refuse_unused(given: dict[str, str | None]) -> None:
    """Refuse options that would change nothing."""
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        message = f"{', '.join(unused)}: not used with --choices"
        raise click.UsageError(message)


def _split(overrides: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the overrides of each of the two specs."""
    from netplan.spec.validate import split_overrides

    found: dict[str, dict[str, str]] = {"before": {}, "after": {}}
    for key, value in split_overrides(overrides).items():
        side, _, rest = key.partition(".")
        if side not in found or not rest:
            message = f"{key!r} says not of which fabric; write before.{key} or after.{key}"
            raise click.BadParameter(message, param_hint="--set")
        found[side][rest] = value
    return found
