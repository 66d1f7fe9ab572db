"""``netplan compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from netplan.fabric import Fabric
    from netplan.report.tables import Table
    from netplan.simulate.compare import Comparison
    from netplan.traffic.damaged import OnDead


@click.command(short_help="Compare routings under one demand with an InfiniBand baseline")
@click.argument("fabric")
@click.argument("traffic")
@click.option(
    "--routing", default="ecmp,adaptive,spray", show_default=True, help="Routing schemes, comma-separated."
)
@click.option("--cc", default="max-min", show_default=True, help="Congestion controls, comma-separated.")
@click.option("--qps", help="Queue pairs of each connection: one or several numbers, comma-separated.")
@click.option(
    "--baseline",
    default="ib-static",
    show_default=True,
    help="ib-static, ib-adaptive, ideal, or any routing scheme.",
)
@click.option(
    "--baseline-cc", default="max-min", show_default=True, help="Its congestion control, such as ib-credits."
)
@options.cc_options
@click.option("--chart", type=click.Path(), help="Draw it here (.svg, .png or .html).")
@click.option(
    "--distance",
    metavar="LENGTH,LENGTH",
    help="Run the grid for each length of a metro fabric's spans, such as 0.1km,1km,10km,30km,100km.",
)
@options.fail_option
@options.on_dead_option
@options.traffic_options
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    fabric: str,
    traffic: str,
    *,
    routing: str,
    cc: str,
    qps: str | None,
    baseline: str,
    baseline_cc: str,
    params: tuple[str, ...],
    switch: str | None,
    exact: bool,
    step: str | None,
    chart: str | None,
    distance: str | None,
    failures: tuple[str, ...],
    on_dead: OnDead,
    placement: str | None,
    ranks: int | None,
    size: str | None,
    mtu: int | None,
    polarized: bool,
    work_conserving: bool,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
) -> None:
    """Run TRAFFIC on FABRIC under a grid of settings and hold each against a baseline.

    A --param with several values, comma-separated, adds a row for each. The baseline runs with max-min rates.

    The three efficiencies are always named: mean_flow (mean over NICs of rate over line rate), collective
    (ideal over simulated completion time) and worst_flow. With --fail all of it, the baseline included, runs
    on the damaged fabric: the same hosts and demand.

    \b
    Examples:
      netplan compare baidu-10k permutation-64mib --routing ecmp,adaptive,spray
      netplan compare superpod-b200-4su all-reduce-1gib --placement random --qps 1,4,16
      netplan compare lab-2-leaf incast-8 --routing ecmp --cc dcqcn,hpcc --param dcqcn.rate_ai=5M,40M
      netplan compare metro-16 permutation-64mib --routing ecmp --cc dcqcn,hpcc --distance 0.1km,10km,100km
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.fabric.failures import list_losses
    from netplan.report.damage import losses_table
    from netplan.report.diagram import find_renderer
    from netplan.report.results import comparison_tables
    from netplan.report.series import draw_comparison
    from netplan.simulate.damage import losses_to_dict

    options.check_polarized(options.split_list(routing, "--routing"), polarized=polarized)
    fabric_sets, traffic_sets = options.split_sets(overrides)
    ccs = options.split_list(cc, "--cc")
    for name in (*ccs, baseline_cc):
        api.check_cc(name)
    values, unread = options.split_params(params, ccs)
    unread += options.unread_settings([*ccs, baseline_cc], switch_profile=switch, exact=exact, step=step)
    if chart is not None:
        find_renderer(Path(chart).suffix)  # refused before anything runs
    counts = [_count(item) for item in options.split_list(qps, "--qps")] if qps else []
    whole = api.load_fabric(fabric, overrides=fabric_sets)
    built = api.fail(whole, failures, seed=seed)
    sets = options.traffic_sets(
        traffic_sets, placement=placement, ranks=ranks, size=size, work_conserving=work_conserving
    )
    workload = api.load_traffic(traffic, overrides=sets)
    settings: dict[str, Any] = {
        "routing": options.split_list(routing, "--routing"),
        "cc": ccs,
        "params": values,
        "unread": unread,
        "qps": counts,
        "baseline": baseline,
        "baseline_cc": baseline_cc,
        "seed": seed,
        "on_dead": on_dead,
        **options.routing_options(polarized=polarized, mtu=mtu),
    }

    def run(on: Fabric, progress: Callable[[str, int, int], None] | None) -> Comparison:
        engine = options.congestion_options(on, switch=switch, exact=exact, step=step, cc=ccs)
        return api.compare(on, workload, progress=progress, **settings, **engine)

    if distance is not None:
        lengths = [_length(item) for item in options.split_list(distance, "--distance")]
        settings["cc"] = ["max-min", *(name for name in ccs if name != "max-min")]
        _by_distance(whole, fabric, fabric_sets, failures, lengths, run, (form, output, chart, seed))
        return
    with options.progress_on_stderr() as progress:
        comparison = run(built, progress)
    if chart is not None:
        write_file(chart, draw_comparison(comparison, Path(chart).suffix))
    if verbose:
        wall = comparison.baseline.wall_s + sum(row.result.wall_s for row in comparison.rows)
        click.echo(f"{built!r}\n{len(comparison.rows) + 1} runs in {wall:.3f} s", err=True)
    data = comparison.to_dict()
    losses = list_losses(whole, built) if failures else None
    if losses is not None:
        data["damage"] = losses_to_dict(built, losses)

    def tables() -> list[Table]:
        damage = [] if losses is None else [losses_table(built, losses)]
        return [*comparison_tables(comparison), *damage]

    options.emit(form, output, data, tables)


def _length(text: str) -> float:
    """Read one length of a span."""
    from netplan.errors import UnitError
    from netplan.units import parse_length

    try:
        length = parse_length(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--distance") from None
    if length <= 0:
        message = f"{text} is not more than 0"
        raise click.BadParameter(message, param_hint="--distance")
    return length


def _by_distance(
    whole: Fabric,
    fabric: str,
    sets: dict[str, str],
    failures: tuple[str, ...],
    lengths: Sequence[float],
    run: Callable[[Fabric, Callable[[str, int, int], None] | None], Comparison],
    wishes: tuple[str, str | None, str | None, int],
) -> None:
    """Run the grid for each length of the spans, and write what comes of it."""
    from netplan import api
    from netplan.report.distance import (
        SCHEMA,
        distance_points,
        distance_table,
        draw_distances,
        span_sets,
    )

    form, output, chart, seed = wishes
    comparisons = {}
    with options.progress_on_stderr() as progress:
        for length in lengths:
            own = {**sets, **span_sets(whole, f"{length:g} m")}
            built = api.fail(api.load_fabric(fabric, overrides=own), failures, seed=seed)
            comparisons[length] = run(built, progress)
    points = distance_points(comparisons)
    demand = next(iter(comparisons.values())).baseline.scenario.demand
    title = f"{demand.name} on {whole.name}: efficiency by distance between sites"
    if chart is not None:
        write_file(chart, draw_distances(points, title, Path(chart).suffix))
    data = {"schema": SCHEMA, "rows": [point.to_dict() for point in points]}
    options.emit(form, output, data, lambda: [distance_table(points, title)])


def _count(text: str) -> int:
    """Read one number of QPs."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:  # noqa: PLR2004 -- far above NCCL's 128
        message = f"{text!r} is not a number of queue pairs from 1 to 1024"
        raise click.BadParameter(message, param_hint="--qps")
    return int(text)
