"""``netplan plan``."""

from __future__ import annotations

import os
import re
import time

import click

from netplan.cli import options

_MONEY = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>[kMG]?)(?: *USD)?")
_POWER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<unit>[kMG]?) *W")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

#: Processes at most: more cores than designs of a batch are of no use.
_MOST_WORKERS = 6


@click.command(short_help="Find designs for so many GPUs: cost, power, efficiency, failures")
@click.option("--gpus", type=int, required=True, help="GPUs in all: whole hosts.")
@click.option("--nic", default="400G", show_default=True, metavar="RATE", help="Line rate of each NIC.")
@click.option("--gpus-per-host", type=int, default=8, show_default=True, help="GPUs of a scale-up domain.")
@click.option("--nics-per-host", type=int, help="NICs of a host; as many as GPUs if not given.")
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="KIND",
    help="Kind of fabric to try; all if not given. Repeatable.",
)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="PART",
    help="Switch of the catalogue to try, or all; the best documented ones if not given. Repeatable.",
)
@click.option("--protocol", type=click.Choice(["ethernet", "infiniband"]), help="Protocol of the switches.")
@click.option("--tiers", default="1,2,3", show_default=True, help="Numbers of switch tiers to try.")
@click.option(
    "--planes", help="Numbers of planes to try, 1 for none; 1, 2, 4 and one for each NIC if not given."
)
@click.option(
    "--max-oversubscription",
    type=float,
    default=2.0,
    show_default=True,
    help="Largest ratio of NIC to uplink bandwidth: 1, 2, 4, ... up to it are tried.",
)
@click.option("--non-blocking", is_flag=True, help="As --max-oversubscription 1.")
@click.option("--any-to-any", is_flag=True, help="Every NIC must reach every other through the network.")
@click.option("--max-cost", metavar="USD", help="Most that the network may cost, such as 60M.")
@click.option("--max-power", metavar="POWER", help="Most that the network may draw, such as 1.5MW.")
@click.option("--min-efficiency", type=float, help="Least efficiency, 0 to 1.")
@click.option("--max-stops", type=float, help="Most failures a month that take a NIC from a job.")
@click.option(
    "--weights", metavar="NAME=N,…", help="What counts how much in the order: cost, power, efficiency, stops."
)
@click.option("--sites", type=int, default=1, show_default=True, help="Sites that share the hosts.")
@click.option("--span", metavar="LENGTH", help="Fibre between any two sites, such as 30km.")
@click.option(
    "--metro-oversubscription",
    type=float,
    default=8.0,
    show_default=True,
    help="NIC bandwidth of a site over that of its long links.",
)
@click.option(
    "--routing", help="Routing scheme of the simulations; spray if not given, ugal for direct networks."
)
@click.option("--group", type=int, default=64, show_default=True, help="GPUs of each all-to-all group.")
@click.option(
    "--floor",
    metavar="default|FILE",
    help="Cable lengths from where racks stand; the families' typical lengths without it.",
)
@click.option(
    "--parts", type=click.Path(), help="YAML file of parts; one with the name of a shipped part replaces it."
)
@click.option("--grow-to", type=int, help="Show what growing each design to so many GPUs takes.")
@click.option(
    "--simulate", type=int, help="Fabrics to simulate at most; 16, from 32,768 GPUs on 10, if not given."
)
@click.option("--top", type=click.IntRange(min=1), help="Designs to show at most; all if not given.")
@click.option(
    "--out", type=click.Path(), metavar="FOLDER", help="Write the spec of each design here as YAML."
)
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    *,
    gpus: int,
    nic: str,
    gpus_per_host: int,
    nics_per_host: int | None,
    families: tuple[str, ...],
    switches: tuple[str, ...],
    protocol: str | None,
    tiers: str,
    planes: str | None,
    max_oversubscription: float,
    non_blocking: bool,
    any_to_any: bool,
    max_cost: str | None,
    max_power: str | None,
    min_efficiency: float | None,
    max_stops: float | None,
    weights: str | None,
    sites: int,
    span: str | None,
    metro_oversubscription: float,
    routing: str | None,
    group: int,
    floor: str | None,
    parts: str | None,
    grow_to: int | None,
    simulate: int | None,
    top: int | None,
    out: str | None,
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
) -> None:
    """Find the fabrics that fit a number of GPUs, price and simulate them, and show which are not beaten.

    Families, switches, tiers, planes and oversubscriptions are combined. What cannot be built is listed with
    the reason. Of the rest the promising are priced and simulated. A star marks the Pareto front.

    \b
    Examples:
      netplan plan --gpus 1024 --non-blocking
      netplan plan --gpus 16384 --nic 400G --max-cost 70M --min-efficiency 0.9 --out designs
    """  # noqa: D301 -- click wants the control character
    from netplan.planning.plan import Limits, Request
    from netplan.planning.plan.search import NoDesignError, plan_designs
    from netplan.report.plans import plan_tables, refusal_tables, write_designs
    from netplan.units import parse_length, parse_rate

    if non_blocking and max_oversubscription not in (1.0, 2.0):
        message = (
            f"--non-blocking and --max-oversubscription {max_oversubscription:g} are two different wishes"
        )
        raise click.UsageError(message)
    limits = Limits(
        cost=None if max_cost is None else _quantity(max_cost, _MONEY, "--max-cost", "60M"),
        power=None if max_power is None else _quantity(max_power, _POWER, "--max-power", "1.5MW"),
        efficiency=min_efficiency,
        stops=max_stops,
        any_to_any=any_to_any,
    )
    request = Request(
        gpus=gpus,
        nic_rate=parse_rate(nic),
        gpus_per_host=gpus_per_host,
        nics_per_host=nics_per_host,
        families=families,
        switches=switches,
        protocol=protocol,
        tiers=_numbers(tiers, "--tiers"),
        planes=_numbers(planes, "--planes") if planes else (),
        max_oversubscription=1.0 if non_blocking else max_oversubscription,
        sites=sites,
        span=None if span is None else parse_length(span),
        metro_oversubscription=metro_oversubscription,
        routing=routing,
        group=group,
        floor=floor,
        parts=parts,
        limits=limits,
        grow_to=grow_to,
        simulate=simulate,
        seed=seed,
        weights=_weights(weights),
    )
    begun = time.perf_counter()
    with options.progress_on_stderr() as progress:
        try:
            plan = plan_designs(request, workers=min(os.cpu_count() or 1, _MOST_WORKERS), progress=progress)
        except NoDesignError as error:
            refused = error.plan
            options.emit(form, output, refused.to_dict(), lambda: refusal_tables(refused))
            raise
    if verbose:
        click.echo(
            f"{plan.candidates} candidates, {len(plan.designs)} designs, {len(plan.front)} on the front, "
            f"{time.perf_counter() - begun:.1f} s",
            err=True,
        )
    if out is not None:
        paths = write_designs(plan.designs[:top], out)
        click.echo(f"wrote {len(paths)} specs to {out}", err=True)
    options.emit(form, output, plan.to_dict(), lambda: plan_tables(plan, top))


def _numbers(text: str, option: str) -> tuple[int, ...]:
    """Read ``1,2,4``."""
    items = options.split_list(text, option)
    for item in items:
        if not item.isdecimal():
            message = f"{item!r} is not a whole number"
            raise click.BadParameter(message, param_hint=option)
    return tuple(int(item) for item in items)


def _quantity(text: str, pattern: re.Pattern[str], option: str, example: str) -> float:
    """Read an amount of money or power."""
    found = pattern.fullmatch(text.strip())
    if found is None:
        message = f"{text!r} is not an amount; write it as {example}"
        raise click.BadParameter(message, param_hint=option)
    return float(found["number"]) * _PREFIX[found["unit"]]


def _weights(text: str | None) -> tuple[tuple[str, float], ...]:
    """Read ``cost=2,efficiency=1``; all objectives count 1 when not given."""
    from netplan.planning.plan.request import OBJECTIVES

    if text is None:
        return tuple((name, 1.0) for name in OBJECTIVES)
    found = []
    for item in options.split_list(text, "--weights"):
        name, equals, number = item.partition("=")
        if not equals or re.fullmatch(r"[0-9]*\.?[0-9]+", number) is None:
            message = f"{item!r} is not NAME=NUMBER, such as cost=2"
            raise click.BadParameter(message, param_hint="--weights")
        found.append((name, float(number)))
    return tuple(found)
