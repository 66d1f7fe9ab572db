"""``netplan jobs``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.files import write_file

if TYPE_CHECKING:
    from netplan.spec.jobs import JobsSpec
    from netplan.traffic.damaged import OnDead

SCHEMA = "netplan/jobs/1"


@click.command(short_help="Run several training jobs on one fabric: how they slow each other")
@click.argument("fabric")
@click.argument("jobs")
@click.option("--routing", default="ecmp", show_default=True, help="Routing scheme (netplan list routing).")
@click.option("--qps", type=click.IntRange(min=1), default=1, show_default=True, help="QPs of a connection.")
@click.option("--placement", help="Of every job, instead of its own: packed, fragmented, topology-aware, ...")
@click.option("--job", "name", help="Only this job of the file.")
@click.option(
    "--scaling",
    metavar="GPUS,...",
    help="Each job alone at these sizes, packed and fragmented: throughput over linear speed-up.",
)
@click.option("--plot", type=click.Path(), help="With --scaling and one job: draw it here (.svg or .png).")
@options.fail_option
@options.on_dead_option
@options.set_option
@options.seed_option
@options.output_options
def command(
    fabric: str,
    jobs: str,
    *,
    routing: str,
    qps: int,
    placement: str | None,
    name: str | None,
    scaling: str | None,
    plot: str | None,
    failures: tuple[str, ...],
    on_dead: OnDead,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
) -> None:
    """Place the jobs of JOBS, a shipped name or YAML file, on FABRIC, and say how they slow each other.

    A job has gpus, parallelism (tp, cp, pp, ep), a placement, the compute time of its step, and exchanges:
    what the groups of an axis communicate in a step. For each job its step alone, the one expected with the
    others, and the one if the others' communication never stops.

    \b
    jobs:
      - name: a
        gpus: 512
        parallelism: {tp: 8}
        placement: {kind: topology-aware}
        compute: 900 ms
        exchanges:
          - {axis: dp, collective: all-reduce, size: 8 GB, hidden: 100 ms}

    \b
    Examples:
      netplan jobs superpod-b200-4su three-jobs
      netplan jobs superpod-b200-4su three-jobs --placement topology-aware --routing spray --format json
      netplan jobs superpod-b200-4su three-jobs --job gpt-175b --scaling 64,256,1024 --plot speed-up.svg
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.scaling import (
        draw_scaling,
        jobs_table,
        jobs_to_dict,
        scaling_table,
        scaling_to_dict,
    )

    built = api.load_fabric(fabric, overrides=options.split_sets(overrides)[0])
    spec = api.load_jobs(jobs, placement=placement)
    if name is not None:
        spec = _only(spec, name)
    target = api.fail(built, failures, seed=seed) if failures else built
    settings: dict[str, Any] = {"seed": seed, "on_dead": on_dead, "routing": routing, "qps": qps}
    if scaling is not None:
        sizes = options.split_sizes(scaling)
        kinds = ("packed", "fragmented") if placement is None else tuple(dict.fromkeys(("packed", placement)))
        _check_plot(plot, jobs=len(spec.jobs))
        with options.progress_on_stderr() as progress:
            found = api.scale_jobs(target, spec, sizes, placements=kinds, progress=progress, **settings)
        title = f"on {built.name}: {routing}, max-min rates, seed {seed}"
        if plot is not None:
            job, points = next(iter(found.items()))
            write_file(plot, draw_scaling(points, f"{job} {title}", Path(plot).suffix))
        scaled = {job: scaling_to_dict(points) for job, points in found.items()}
        options.emit(
            form,
            output,
            {"schema": SCHEMA, "scaling": scaled},
            lambda: [scaling_table(points, f"{job} {title}", "GPU steps/s") for job, points in found.items()],
        )
        return
    if plot is not None:
        message = "draws what --scaling finds"
        raise click.BadParameter(message, param_hint="--plot")
    with options.progress_on_stderr() as progress:
        outcomes = api.run_jobs(target, spec, progress=progress, **settings)
    title = f"{len(outcomes)} job(s) on {built.name}: {routing}, max-min rates, seed {seed}"
    data = {"schema": SCHEMA, "jobs": jobs_to_dict(outcomes)}
    options.emit(form, output, data, lambda: [jobs_table(outcomes, title)])


def _check_plot(plot: str | None, *, jobs: int) -> None:
    """Refuse a picture of several jobs."""
    if plot is not None and jobs > 1:
        message = f"draws one job, and there are {jobs}: choose with --job"
        raise click.BadParameter(message, param_hint="--plot")


def _only(spec: JobsSpec, name: str) -> JobsSpec:
    """Return one job of several."""
    from netplan.errors import did_you_mean

    found = tuple(job for job in spec.jobs if job.name == name)
    if not found:
        names = [job.name for job in spec.jobs]
        near = did_you_mean(name, names)
        message = f"there is no job {name!r} among {', '.join(names)}" + (f"; {near}?" if near else "")
        raise click.BadParameter(message, param_hint="--job")
    return spec.model_copy(update={"jobs": found})
