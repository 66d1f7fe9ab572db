"""``netplan failures``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from netplan.cli import options

if TYPE_CHECKING:
    from netplan.traffic.damaged import OnDead


@click.command(short_help="Show what each failure costs: hosts cut off, bandwidth left, minutes a month")
@click.argument("fabric")
@click.argument("traffic", required=False)
@click.option("--routing", default="spray", show_default=True, help="Routing scheme (netplan list routing).")
@click.option("--exhaustive", is_flag=True, help="Simulate every element, not one of each class.")
@click.option("--only", help="Kinds of elements, comma-separated, such as leaf,spine,leaf_spine.")
@click.option(
    "--random",
    "random",
    multiple=True,
    metavar="WHAT:MANY",
    help="Draw several failures at once, such as cable:1%, spine:2, fibre_path:2. Repeatable.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    help="How often each --random is drawn.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="KIND=PERCENT",
    help="Failures per element and month, such as leaf=0.1%. Repeatable.",
)
@click.option(
    "--repair",
    multiple=True,
    metavar="[KIND=]TIME",
    help="Mean time to repair, such as 2h or span=12h; 4 h, spans 12 h, sites 24 h if not given. Repeatable.",
)
@options.on_dead_option
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    fabric: str,
    traffic: str | None,
    *,
    routing: str,
    exhaustive: bool,
    only: str | None,
    random: tuple[str, ...],
    samples: int,
    rates: tuple[str, ...],
    repair: tuple[str, ...],
    on_dead: OnDead,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
) -> None:
    """Fail NICs, cables, switches, spans and sites of FABRIC, one of each class, and run TRAFFIC on the rest.

    Without TRAFFIC a ring all-reduce and a random permutation are run. Classes are elements with equal
    surroundings; one of each is simulated. Rates of failure and a time to repair make it minutes a month.

    \b
    Examples:
      netplan failures superpod-b200-4su
      netplan failures fat-tree-k8 permutation-64mib --random cable:1% --samples 20 --repair 2h
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.planning.failure_rates import rates_with
    from netplan.planning.failures import Draws, study_failures
    from netplan.report.failures import failure_tables

    fabric_sets, traffic_sets = options.split_sets(overrides)
    built = api.load_fabric(fabric, overrides=fabric_sets)
    if traffic is None and traffic_sets:
        message = "--set traffic.… needs TRAFFIC"
        raise click.UsageError(message)
    workload = () if traffic is None else (api.load_traffic(traffic, overrides=traffic_sets),)
    with options.progress_on_stderr() as progress:
        study = study_failures(
            built,
            workload,
            routing=routing,
            seed=seed,
            on_dead=on_dead,
            exhaustive=exhaustive,
            kinds=options.split_list(only, "--only") if only else (),
            draws=Draws(random, samples),
            rates=rates_with(dict(_percent(text) for text in rates), dict(_hours(text) for text in repair)),
            progress=progress,
        )
    if verbose:
        runs = sum(row.simulated for row in study.classes) + sum(row.samples for row in study.random)
        click.echo(f"{built!r}\n{runs:,} failures of {len(study.workloads)} workload(s)", err=True)
    options.emit(form, output, study.to_dict(), lambda: failure_tables(study))


def _percent(text: str) -> tuple[str, float]:
    """Read ``leaf=0.1%``."""
    found = re.fullmatch(r"([a-z_]+)=([0-9]*\.?[0-9]+) ?%", text)
    if found is None:
        message = f"{text!r} is not KIND=PERCENT, such as leaf=0.1%"
        raise click.BadParameter(message, param_hint="--rate")
    return found[1], float(found[2])


def _hours(text: str) -> tuple[str | None, float]:
    """Read ``2h`` or ``span=12h``."""
    from netplan.units import parse_time

    kind, equals, time = text.rpartition("=")
    return kind if equals else None, parse_time(time) / 3600
