"""``netplan sweep``: run sweeps, and show their results."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.errors import ExitStatus
from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from netplan.report.diagram import Scene
    from netplan.report.tables import Table
    from netplan.sweep import Outcome, Plan
    from netplan.sweep.run import Pool
    from netplan.sweep.run import Progress as Now

    _Tables = tuple[dict[str, Any], list[Table]]


class _RunOrShow(click.Group):
    """``netplan sweep FILE`` runs; ``netplan sweep show FILE`` shows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden ``run`` before anything that is no command or help."""
        if args and args[0] not in self.commands and args[0] not in {"-h", "--help"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show both ways in one line."""
        formatter.write_usage(ctx.command_path, "SWEEP -o RESULTS | show RESULTS")


@click.group(cls=_RunOrShow, short_help="Run thousands of scenarios, resumable, here or on a cluster")
def command() -> None:
    """Run many scenarios: what varies, how it is sampled and how often each runs stands in a file.

    A run that was stopped goes on where it was with the same command. Without a file, `netplan sweep run
    --help` lists the options.

    \b
    Examples:
      netplan sweep routing-qps -o results.csv
      netplan sweep show results.csv --pivot routing,traffic.qps
    """  # noqa: D301 -- click wants the control character


@command.command(short_help="Run a sweep (the word run may be left out)")
@click.argument("sweep")
@click.option("-o", "--output", required=True, type=click.Path(), help="Results: .parquet or .csv.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes, here or on Slurm.  [default: one per core]"
)
@click.option("--cluster", metavar="WHERE", help="tcp://host:port of a Dask scheduler, or slurm.")
@click.option(
    "--cluster-set",
    "cluster_sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Slurm: what dask_jobqueue.SLURMCluster takes, such as queue=batch, memory=8GiB. Repeatable.",
)
@click.option("--yes", is_flag=True, help="Run more than 100,000 scenarios.")
@click.option("--dry-run", is_flag=True, help="Check the sweep and say what it would run; write nothing.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Replace a value of the sweep file, such as replicas=3 or sample.points=500.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(options.FORMATS),
    default="table",
    show_default=True,
    help="Of the summary.",
)
@options.verbose_option
def run(
    sweep: str,
    *,
    output: str,
    workers: int | None,
    cluster: str | None,
    cluster_sets: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    overrides: tuple[str, ...],
    form: str,
    verbose: bool,
) -> None:
    """Run SWEEP, a shipped name or a YAML file, and write its results.

    \b
    Examples:
      netplan sweep routing-qps -o results.parquet
      netplan sweep my-sweep.yaml -o results.parquet --workers 8 --set replicas=3
      netplan sweep my-sweep.yaml -o results.parquet --cluster tcp://10.0.0.1:8786
    """  # noqa: D301 -- click wants the control character
    from netplan.spec.validate import split_overrides
    from netplan.sweep.run import MANY, count_scenarios, load_sweep, run_sweep
    from netplan.sweep.table import check_output

    sets = split_overrides(overrides)
    check_output(output)
    count = count_scenarios(sweep, overrides=sets)
    if count > MANY and not yes:
        message = f"{sweep} has {count:,} scenarios, more than {MANY:,}: add --yes to run them"
        raise click.UsageError(message)
    plan = load_sweep(sweep, overrides=sets)
    if dry_run:
        _emit_plan(plan, form)
        return
    workers = workers or os.cpu_count() or 1
    pool = _cluster(cluster, workers, plan, cluster_sets)
    try:
        with _progress(plan.spec.goal.metric) as progress:
            outcome = run_sweep(plan, output, pool=pool, workers=workers, progress=progress)
    except KeyboardInterrupt:
        click.echo(
            f"interrupted: what is finished is in {output}.journal; the same command goes on", err=True
        )
        sys.exit(ExitStatus.INTERRUPTED)
    if verbose:
        click.echo(f"{outcome.ran:,} cases in {outcome.wall_s:.2f} s", err=True)
    data, tables = _summary(outcome, output)
    options.emit(form, None, data, lambda: tables)


@command.command(short_help="Summarise, pivot and draw results")
@click.argument("results", type=click.Path())
@click.option("--metric", metavar="NAME", help="Figure to look at.  [default: the sweep's goal]")
@click.option("--best", type=click.IntRange(min=1), default=5, show_default=True, help="Points to list.")
@click.option(
    "--max/--min", "is_max", default=None, help="Whether more or less is better.  [default: as the goal]"
)
@click.option("--pivot", metavar="ROW,COLUMN", help="Mean of the figure over two settings.")
@click.option("--pareto", metavar="FIGURE:min|max,FIGURE:min|max", help="Points that no other beats in both.")
@click.option("--sensitivity", is_flag=True, help="How much each setting matters for the figure.")
@click.option("--errors", is_flag=True, help="Count the scenarios that failed by their error.")
@click.option("--plot", type=click.Path(), help="Draw what is shown here (.svg or .png).")
@options.output_options
def show(
    results: str,
    *,
    metric: str | None,
    best: int,
    is_max: bool | None,
    pivot: str | None,
    pareto: str | None,
    sensitivity: bool,
    errors: bool,
    plot: str | None,
    form: str,
    output: str | None,
) -> None:
    """Show the RESULTS of a sweep: its best points or, by option, a pivot, a front, sensitivities, errors.

    \b
    Examples:
      netplan sweep show results.parquet --best 10
      netplan sweep show results.parquet --pivot cc.dcqcn.rate_ai,cc.dcqcn.timer_s --plot heat.svg
      netplan sweep show results.parquet --pareto completion_s:min,peak_queue_bytes:min --plot front.svg
    """  # noqa: D301 -- click wants the control character
    from netplan.report.diagram import find_renderer
    from netplan.sweep import shown
    from netplan.sweep.run import read_manifest
    from netplan.sweep.table import read_results

    chosen = [
        name
        for name, given in (
            ("--pivot", pivot),
            ("--pareto", pareto),
            ("--sensitivity", sensitivity),
            ("--errors", errors),
        )
        if given
    ]
    if len(chosen) > 1:
        message = f"{' and '.join(chosen)} do not go together: one view at a time"
        raise click.UsageError(message)
    if plot is not None:
        if not chosen or errors:
            message = "--plot draws what --pivot, --pareto or --sensitivity shows"
            raise click.UsageError(message)
        find_renderer(Path(plot).suffix)
    manifest = read_manifest(results)
    table = read_results(results, manifest["units"] if manifest else None)
    view = shown.View.of(table, manifest, metric=metric, is_max=is_max, name=Path(results).name)
    scene: Scene | None = None
    if pivot is not None:
        data, tables, scene = shown.pivot_view(view, options.split_list(pivot, "--pivot"))
    elif pareto is not None:
        data, tables, scene = shown.pareto_view(view, options.split_list(pareto, "--pareto"))
    elif sensitivity:
        data, tables, scene = shown.sensitivity_view(view)
    elif errors:
        data, tables = shown.error_view(view)
    else:
        data, tables = shown.best_view(view, best)
    if plot is not None and scene is not None:
        write_file(plot, find_renderer(Path(plot).suffix).render(scene))
    options.emit(form, output, data, lambda: tables)


def _cluster(where: str | None, workers: int, plan: Plan, sets: Sequence[str]) -> Pool | None:
    """Return the pool that ``--cluster`` names."""
    from netplan.spec.text import parse_value
    from netplan.spec.validate import split_overrides

    if where is None:
        if sets:
            message = "--cluster-set is for --cluster slurm"
            raise click.UsageError(message)
        return None
    if where != "slurm" and "://" not in where:
        message = f"{where!r} is neither slurm nor the address of a scheduler, such as tcp://10.0.0.1:8786"
        raise click.BadParameter(message, param_hint="--cluster")
    from netplan.sweep.cluster import ClusterPool

    settings = {
        key: parse_value(text, f"--cluster-set {key}={text}") for key, text in split_overrides(sets).items()
    }
    return ClusterPool(where, workers, plan.texts, settings)


@contextmanager
def _progress(metric: str) -> Iterator[Callable[[Now], None] | None]:
    """Show rate, time left and the best so far on standard error when a person is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[best]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sweep", total=None, rate="", best="")

        def report(now: Now) -> None:
            failed = f", {now.failed:,} failed" if now.failed else ""
            best = f"best {metric} {now.best[0]:.5g}" if now.best else ""
            bar.update(
                task,
                completed=now.done,
                total=now.total,
                rate=f"{now.ran / max(now.wall_s, 1e-9):.1f}/s{failed}",
                best=best,
            )

        yield report


def _emit_plan(plan: Plan, form: str) -> None:
    """Say what a sweep would run."""
    from netplan.report.tables import Table

    data = {
        "schema": "netplan/sweep-plan/1",
        "sweep": plan.spec.name,
        "points": len(plan.points),
        "replicas": plan.spec.replicas,
        "scenarios": len(plan.cases),
        "distinct": len(plan.distinct()),
        "fabrics": len({case.fabric_key for case in plan.cases}),
        "first": dict(plan.points[0]),
    }
    rows = [{"sweep": key, "": value} for key, value in data.items() if key not in {"schema", "first"}]
    options.emit(form, None, data, lambda: [Table.of(rows)])


def _summary(outcome: Outcome, output: str) -> _Tables:
    """Return what a finished run says."""
    from netplan.report.tables import Table
    from netplan.sweep import shown

    manifest = outcome.manifest
    view = shown.View.of(outcome.results, manifest, name=Path(output).name)
    best, tables = shown.best_view(view, 5)
    data = {
        "schema": "netplan/sweep/1",
        "output": output,
        "ran": outcome.ran,
        **{key: manifest[key] for key in ("points", "replicas", "scenarios", "distinct", "failed")},
        "best": best["points"],
    }
    rows = [
        {"results": key, "": data[key]}
        for key in ("output", "points", "replicas", "scenarios", "distinct", "ran", "failed")
    ]
    return data, [*tables, Table.of(rows)]
