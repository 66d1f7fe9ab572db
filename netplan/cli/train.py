"""``netplan train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from netplan.cli import options
from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

SCHEMA = "netplan/train/1"

#: Options that are sizes of the layout, by the name of its field.
_SIZES = {
    "tensor": "tp",
    "context": "cp",
    "pipeline": "pp",
    "data": "dp",
    "expert": "ep",
    "virtual_stages": "virtual_stages",
    "micro_batch": "micro_batch",
    "zero": "zero_stage",
    "recompute": "recompute",
    "placement": "placement",
}

#: Options that ``--jobs`` hands on.
_OF_JOBS = (
    *("routing", "qps", "scaling", "plot", "placement"),
    *("failures", "overrides", "seed", "form", "output"),
)


def layout_options(command: Command) -> Command:
    """Add the options that choose a layout and how the model is trained."""
    at_least_1 = click.IntRange(min=1)
    for option in (
        click.option("--uneven-stages", is_flag=True, help="Stages may differ by a layer."),
        click.option("--no-overlap", is_flag=True, help="Gradients are reduced after the backward pass."),
        click.option("--no-flash", is_flag=True, help="Attention that writes its scores."),
        click.option("--precision", type=click.Choice(["bf16", "fp16", "fp8"]), help="Of products."),
        click.option("--sequence", type=at_least_1, help="Tokens of a sequence.  [default: the model's]"),
        click.option("--global-batch", type=at_least_1, help="Sequences of a step.  [default: 4 Mi tokens]"),
        click.option("--placement", help="packed, rail-aware, topology-aware, fragmented or random."),
        click.option("--recompute", type=click.Choice(["none", "selective", "full"]), help="Of activations."),
        click.option("--zero", type=click.IntRange(0, 3), help="ZeRO stage; 3 is FSDP.  [default: 1]"),
        click.option("--micro-batch", type=at_least_1, help="Sequences of a micro-batch."),
        click.option("--virtual-stages", type=at_least_1, help="Virtual stages of each pipeline stage."),
        click.option("--ep", "expert", type=at_least_1, help="Expert parallel ranks."),
        click.option("--cp", "context", type=at_least_1, help="Context parallel ranks."),
        click.option("--dp", "data", type=at_least_1, help="Data parallel ranks.  [default: what is left]"),
        click.option("--pp", "pipeline", type=at_least_1, help="Pipeline stages."),
        click.option("--tp", "tensor", type=at_least_1, help="Tensor parallel ranks."),
        click.option("--accelerator", help="Such as h100.  [default: by the fabric's scale-up bandwidth]"),
        click.option("--gpus", type=at_least_1, help="GPUs of the job.  [default: all]"),
    ):
        command = option(command)
    return command


@click.command(short_help="Step time, scaling and MFU of a training job; find its parallel layout")
@click.argument("fabric")
@click.argument("model", required=False)
@layout_options
@click.option("--search", is_flag=True, help="Find the layout with the shortest step.")
@click.option("--jobs", help="Several jobs at once instead of MODEL: a file, as for netplan jobs.")
@click.option(
    "--scaling",
    metavar="GPUS,...",
    help="The layout at these sizes, packed and fragmented: throughput over linear speed-up.",
)
@click.option("--plot", type=click.Path(), help="Draw what --scaling finds here (.svg or .png).")
@click.option("--routing", default="ecmp", show_default=True, help="Routing scheme (netplan list routing).")
@click.option("--qps", type=click.IntRange(min=1), default=1, show_default=True, help="QPs of a connection.")
@click.option(
    "--algo",
    "algorithm",
    default="auto",
    show_default=True,
    help="Algorithm of collectives: auto (NCCL's choice and times), or ring, tree, ... on the bare network.",
)
@options.fail_option
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    fabric: str,
    model: str | None,
    *,
    search: bool,
    jobs: str | None,
    scaling: str | None,
    plot: str | None,
    routing: str,
    qps: int,
    algorithm: str,
    failures: tuple[str, ...],
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
    **wishes: Any,  # noqa: ANN401 -- layout_options
) -> None:
    """Say how long a step of MODEL takes on FABRIC, what it waits for, and how well it scales.

    Sizes that are not given are those of a plain layout: the fewest tensor and pipeline ranks that hold the
    model. Communication takes what the engine finds on the fabric, with the placement, all groups at once.

    \b
    Examples:
      netplan train llama3-24k llama3-405b --gpus 16384 --tp 8 --pp 16 --virtual-stages 8 --global-batch 2048
      netplan train superpod-b200-4su llama3-70b --search --format json
      netplan train superpod-b200-4su --jobs three-jobs
      netplan train superpod-b200-4su llama3-8b --scaling 8,64,512,1024 --plot speed-up.svg
    """  # noqa: D301 -- click wants the control character
    if jobs is not None:
        from netplan.cli.jobs import command as run_jobs

        if model is not None or search:
            message = "takes the place of MODEL and --search"
            raise click.BadParameter(message, param_hint="--jobs")
        context = click.get_current_context()
        _refuse_beside_jobs(context)
        same = {name: context.params[name] for name in _OF_JOBS}
        context.invoke(run_jobs, fabric=fabric, jobs=jobs, name=None, on_dead="shrink", **same)
        return
    if model is None:
        message = "Missing argument 'MODEL', or --jobs."
        raise click.UsageError(message)
    from netplan import api
    from netplan.report.scaling import draw_scaling, scaling_table, scaling_to_dict
    from netplan.report.training import job_tables

    built = api.load_fabric(fabric, overrides=options.split_sets(overrides)[0])
    target = api.fail(built, failures, seed=seed) if failures else built
    job = api.training_job(
        target,
        model,
        **training_wishes(wishes),
        seed=seed,
        routing=routing,
        qps=qps,
        algorithm=algorithm,
    )
    given = layout_wishes(wishes)
    sizes = scaling_sizes(scaling, plot)
    with options.progress_on_stderr() as progress:
        report = api.train(job, given, search=search, progress=progress)
        kinds = tuple(dict.fromkeys(("packed", report.layout.placement, "fragmented")))
        points = api.scale_training(job, report.layout, sizes, kinds, progress=progress) if sizes else []
    if verbose:
        click.echo(f"{target!r}\n{report.layout}", err=True)
    data: dict[str, Any] = {"schema": SCHEMA, "job": report.to_dict(), "model": job.timer.model.name}
    data["accelerator"] = job.timer.accelerator.name
    data["global_batch"] = job.timer.training.global_batch
    data["sequence"] = job.timer.sequence
    if report.search is not None:
        data["search"] = report.search.to_dict()
    title = f"{job.timer.model.name} on {target.name}: {routing}, seed {seed}"
    if points:
        data["scaling"] = scaling_to_dict(points)
    if plot is not None:
        write_file(plot, draw_scaling(points, title, Path(plot).suffix))
    extra = [scaling_table(points, f"linear speed-up: {title}")] if points else []
    options.emit(form, output, data, lambda: [*job_tables(job, report), *extra])


def _refuse_beside_jobs(context: click.Context) -> None:
    """Refuse options that say how one job is trained: with ``--jobs`` the file says it of each.

    Raises
    ------
    click.BadParameter
        Such an option was given; all are named.
    """
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in {*_OF_JOBS, "fabric", "model", "search", "jobs", "verbose"}
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        message = f"does not go with {', '.join(given)}: the file of jobs says it of each job"
        raise click.BadParameter(message, param_hint="--jobs")


def scaling_sizes(scaling: str | None, plot: str | None) -> list[int]:
    """Read the sizes of ``--scaling``."""
    if scaling is None:
        if plot is not None:
            message = "draws what --scaling finds"
            raise click.BadParameter(message, param_hint="--plot")
        return []
    return options.split_sizes(scaling)


def layout_wishes(wishes: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes of the layout that were given."""
    return {field: wishes[name] for name, field in _SIZES.items() if wishes.get(name) is not None}


def training_wishes(wishes: dict[str, Any]) -> dict[str, Any]:
    """Return what `netplan.api.training_job` takes of the options."""
    found = {name: wishes[name] for name in ("gpus", "accelerator", "global_batch", "sequence", "precision")}
    found |= {"flash": not wishes["no_flash"], "overlap_gradients": not wishes["no_overlap"]}
    found["uneven_stages"] = wishes["uneven_stages"]
    return {name: value for name, value in found.items() if value is not None}
