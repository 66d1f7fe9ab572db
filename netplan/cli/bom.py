"""``netplan bom``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from netplan.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

_PERCENT = re.compile(r"(?P<number>-?[0-9]+(?:\.[0-9]+)?) *%")


@click.command(short_help="Bill of materials: parts, cost and power of a fabric")
@click.argument("fabric")
@click.option(
    "--parts", type=click.Path(), help="YAML file of parts; one with the name of a shipped part replaces it."
)
@click.option(
    "--floor",
    metavar="default|FILE",
    help="Cable lengths from where racks stand; the fabric's own lengths without it.",
)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="[TIER=]PART",
    help="Switch of a tier, or of all. Repeatable.",
)
@click.option("--nic", metavar="PART", help="NIC of the hosts.")
@click.option("--host", metavar="PART", help="Host; its price and power are shown beside the network's.")
@click.option(
    "--optics",
    multiple=True,
    metavar="[KIND=]PART",
    help="Transceiver, cable or standard (DR4) for a kind of cable, or for all. Repeatable.",
)
@click.option("--protocol", type=click.Choice(["ethernet", "infiniband"]), help="Protocol of the switches.")
@click.option(
    "--spares", default="0%", show_default=True, metavar="PERCENT", help="Spare pieces of every part."
)
@click.option("--cabling", type=click.Path(), metavar="FILE.csv", help="Write the cabling list here.")
@options.set_option
@options.output_options
def command(
    fabric: str,
    *,
    parts: str | None,
    floor: str | None,
    switches: tuple[str, ...],
    nic: str | None,
    host: str | None,
    optics: tuple[str, ...],
    protocol: str | None,
    spares: str,
    cabling: str | None,
    overrides: tuple[str, ...],
    form: str,
    output: str | None,
) -> None:
    """List what FABRIC takes to build: switches, NICs, transceivers, cables by length, power, cost.

    A figure that nobody publishes is unknown; its total then says "at least". --format csv is an order list.

    \b
    Examples:
      netplan bom superpod-b200-4su --floor default --host dgx-b200 --spares 3%
      netplan bom metro-30km-2site --optics inter_site=400ZR --cabling cables.csv
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.files import write_file
    from netplan.planning import bom
    from netplan.report.bills import bill_tables, cabling_csv, purchase_table
    from netplan.spec.validate import split_overrides

    wishes = {
        "switches": split_wishes(switches, "--switch"),
        "nic": nic,
        "host": host,
        "optics": split_wishes(optics, "--optics"),
        "protocol": protocol,
        "spares": parse_percent(spares, "--spares"),
    }
    built = api.load_fabric(fabric, overrides=split_overrides(overrides))
    made = api.bill_of_materials(built, parts=parts, floor=floor, **wishes)
    if cabling is not None:
        write_file(cabling, cabling_csv(bom.cabling(made)).encode())
        click.echo(f"wrote the cabling list to {cabling}", err=True)
    data = {"schema": "netplan/bom/1", **made.to_dict()}
    options.emit(form, output, data, lambda: [purchase_table(made)] if form == "csv" else bill_tables(made))


def parse_percent(text: str, option: str) -> float:
    """Return a percentage as a fraction, refusing what is not 0 to 100 percent."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        message = f"{text!r} is not a percentage; write it as 3%"
        raise click.BadParameter(message, param_hint=option)
    value = float(found["number"]) / 100
    if not 0 <= value <= 1:
        message = f"{text!r} is not between 0% and 100%"
        raise click.BadParameter(message, param_hint=option)
    return value


def split_wishes(items: Sequence[str], option: str) -> dict[str, str]:
    """Split ``KEY=VALUE`` and plain ``VALUE`` (under ``*``)."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        name, part = (key.strip(), value.strip()) if equals else ("*", key.strip())
        if not name or not part:
            message = f"{item!r} is not [KEY=]PART"
            raise click.BadParameter(message, param_hint=option)
        if name in found:
            message = f"names {name!r} twice" if equals else "is given twice for all"
            raise click.BadParameter(message, param_hint=option)
        found[name] = part
    return found
