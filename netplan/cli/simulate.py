"""``netplan simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.files import write_file

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.packet import PacketEngine
    from netplan.simulate.result import Result
    from netplan.simulate.sizes import Sweep
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead


@click.command(short_help="Run traffic on a fabric")
@click.argument("fabric")
@click.argument("traffic")
@click.option("--routing", default="ecmp", show_default=True, help="Routing scheme (netplan list routing).")
@click.option("--cc", default="max-min", show_default=True, help="Congestion control (netplan list cc).")
@click.option("--qps", type=int, help="Queue pairs of each connection.")
@click.option(
    "--algo",
    help="Algorithm of a collective, such as ring, tree, hierarchical, in-network; auto: as NCCL chooses.",
)
@click.option(
    "--proto",
    help="Protocol of NCCL: auto, ll, ll128 or simple; none: the bare network.  [default: the workload's; "
    "with --sizes auto]",
)
@click.option("--channels", type=int, help="NCCL channels of each NIC.")
@click.option(
    "--sizes",
    metavar="BEGIN:END[:FACTOR]",
    help="Run many sizes, as nccl-tests does: 8:16G doubles, 1M:1G:4 has a factor. Numbers are bytes, K M G "
    "powers of 1024.",
)
@click.option("--by", type=click.Choice(["tier", "rail", "phase", "site"]), help="Add a summary by a column.")
@click.option("--flows", type=click.Path(), help="Write a CSV with a row for every flow here.")
@options.cc_options
@click.option(
    "--series",
    type=click.Path(),
    help="Write rates, queues and pauses over time here (.csv or .json); needs a protocol.",
)
@click.option(
    "--plot",
    type=click.Path(),
    help="Draw what --series has, or bandwidth over --sizes, here (.svg, .png or .html).",
)
@options.packet_options
@options.fail_option
@options.on_dead_option
@options.traffic_options
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(  # noqa: C901, PLR0915 -- one run, or many sizes
    fabric: str,
    traffic: str,
    *,
    routing: str,
    cc: str,
    qps: int | None,
    algo: str | None,
    proto: str | None,
    channels: int | None,
    sizes: str | None,
    by: str | None,
    flows: str | None,
    params: tuple[str, ...],
    switch: str | None,
    exact: bool,
    step: str | None,
    series: str | None,
    plot: str | None,
    packet: str | None,
    packet_timeout: str | None,
    packet_logs: str | None,
    yes: bool,
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
    """Run TRAFFIC on FABRIC and say how long it takes, with what efficiency, and what holds it back.

    With --fail it runs on the damaged fabric, rerouted, and beside it on the undamaged one: what is cut off
    and which bandwidth is left comes with the result.

    With --cc a protocol's senders run over time through queues that mark, pause and drop; with --packet too,
    packet by packet in ns-3.

    \b
    Examples:
      netplan simulate superpod-b200-4su all-reduce-1gib --routing ecmp --placement random
      netplan simulate metro-30km-2site all-reduce-1gib --size 16GiB --by site --format json
      netplan simulate fat-tree-k8 permutation-64mib --routing spray --fail switch:spine-0-0
      netplan simulate superpod-b200-4su all-reduce-1gib --ranks 96 --algo auto --sizes 8:16G --routing spray
      netplan simulate lab-2-leaf incast-8 --cc dcqcn --param rate_ai=40M --plot incast.svg
      netplan simulate lab-2-leaf incast-8 --cc dcqcn --packet trains
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.damage import damage_tables
    from netplan.report.results import flow_table, result_tables
    from netplan.report.series import draw_series, render_series
    from netplan.report.tables import render_tables

    options.check_polarized([routing], polarized=polarized)
    fabric_sets, traffic_sets = options.split_sets(overrides)
    built = api.load_fabric(fabric, overrides=fabric_sets)
    sets = options.traffic_sets(
        traffic_sets, placement=placement, ranks=ranks, size=size, qps=qps, work_conserving=work_conserving
    )
    named = {"algorithm": algo, "protocol": proto, "channels": None if channels is None else str(channels)}
    sets |= {key: value for key, value in named.items() if value is not None}
    workload = api.load_traffic(traffic, overrides=sets)
    api.check_cc(cc)
    values, unread = options.split_params(params, [cc])
    if any(len(each) > 1 for each in values.get(cc, {}).values()):
        message = "takes one value here; netplan compare takes several"
        raise click.BadParameter(message, param_hint="--param")
    check_series(cc, series=series, plot=None if sizes else plot, failures=failures)
    unread += options.unread_settings([cc], switch_profile=switch, exact=exact, step=step)
    engine = {
        "cc_params": {name: each[0] for name, each in values.get(cc, {}).items()},
        "unread": tuple(unread),
        "record": bool(series or plot) and sizes is None,
        **options.congestion_options(built, switch=switch, exact=exact, step=step, cc=[cc]),
    }
    settings = {"routing": routing, "seed": seed, **options.routing_options(polarized=polarized, mtu=mtu)}
    if sizes is not None:
        check_sizes(size=size, series=series, flows=flows, by=by)
        swept = api.fail(built, failures, seed=seed) if failures else built
        bare = proto is None and getattr(workload, "protocol", "") == "none"
        more = {"cc": cc, "on_dead": on_dead, **settings, **engine}
        sweep = run_sizes(swept, _with_nccl(workload) if bare else workload, sizes, more)
        emit_sizes(sweep, form, output, plot)
        return
    aftermath = None
    with options.progress_on_stderr() as progress:
        simulator = options.packet_engine(
            packet, cc=[cc], timeout=packet_timeout, logs=packet_logs, yes=yes, progress=progress
        )
        engine |= {} if simulator is None else {"packet": packet, "engine": simulator}
        more = {"cc": cc, "on_dead": on_dead, "progress": progress, **settings, **engine}
        if failures:
            aftermath = api.aftermath(built, api.fail(built, failures, seed=seed), workload, **more)
        result = aftermath.damaged if aftermath else api.simulate(built, workload, **more)
    if verbose:
        _say_what_ran(result, simulator)
    if flows is not None:
        write_file(flows, render_tables([flow_table(result)], "csv").encode())
    if series is not None:
        write_file(series, render_series(result, Path(series).suffix).encode())
    if plot is not None:
        write_file(plot, draw_series(result, Path(plot).suffix))
    data: dict[str, Any] = result.to_dict()
    if by is not None:
        data["result"][f"by_{by}"] = result.by(by)
    if simulator is not None:
        data["packet"] = simulator.to_dict()
    if aftermath is not None:
        data["damage"] = aftermath.to_dict()
    options.emit(form, output, data, lambda: [*result_tables(result, by), *damage_tables(aftermath)])


def _with_nccl(workload: Any) -> Any:  # noqa: ANN401 -- any collective's spec
    """Return a collective with NCCL's times, where its algorithm is one of NCCL's."""
    from netplan.spec.traffic import NCCL_ALGORITHMS

    has = workload.algorithm in NCCL_ALGORITHMS
    return workload.model_copy(update={"protocol": "auto"}) if has else workload


def read_sizes(text: str) -> tuple[int, ...]:
    """Read ``--sizes``."""
    from netplan.errors import UnitError
    from netplan.simulate.sizes import size_range

    try:
        return size_range(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--sizes") from None


def check_sizes(*, size: str | None, series: str | None, flows: str | None, by: str | None) -> None:
    """Refuse options that concern one run beside a sweep."""
    given = {"--size": size, "--series": series, "--flows": flows, "--by": by}
    for name, value in given.items():
        if value is not None:
            message = f"{name} is about one run and does not go with --sizes"
            raise click.UsageError(message)


def run_sizes(fabric: Fabric, workload: TrafficSpec, sizes: str, settings: dict[str, Any]) -> Sweep:
    """Run every size of a range."""
    from netplan import api

    wanted = read_sizes(sizes)
    with options.progress_on_stderr() as progress:
        return api.sweep(fabric, workload, wanted, progress=progress, **settings)


def emit_sizes(sweep: Sweep, form: str, output: str | None, plot: str | None) -> None:
    """Print or write a sweep, and draw it if asked for."""
    from netplan.report.sizes import draw_sizes, sizes_table

    if plot is not None:
        write_file(plot, draw_sizes(sweep, Path(plot).suffix))
    options.emit(form, output, sweep.to_dict(), lambda: [sizes_table(sweep)])


def _say_what_ran(result: Result, simulator: PacketEngine | None) -> None:
    """Say on standard error what was run and how long it took."""
    run = result.scenario
    if simulator is not None:
        click.echo(f"{simulator!r}", err=True)
    click.echo(f"{run.fabric!r}\n{run.demand!r}\n{result.events:,} events in {result.wall_s:.3f} s", err=True)


def check_series(cc: str, *, series: str | None, plot: str | None, failures: tuple[str, ...]) -> None:
    """Refuse, before anything runs, a series that cannot be made or written."""
    from netplan.report.diagram import find_renderer

    asked = "--series" if series else "--plot"
    if (series or plot) and cc == "max-min":
        message = f"{asked} needs a protocol (--cc): max-min rates know no time"
        raise click.UsageError(message)
    if (series or plot) and failures:
        message = f"{asked} and --fail do not go together: two runs would be in it"
        raise click.UsageError(message)
    if series is not None and Path(series).suffix not in {".csv", ".json"}:
        message = f"{series!r} does not end in .csv or .json"
        raise click.BadParameter(message, param_hint="--series")
    if plot is not None:
        find_renderer(Path(plot).suffix)
