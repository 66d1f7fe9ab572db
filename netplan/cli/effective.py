"""``netplan effective``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.cli.goodput import SHARE, job_goodput, recovery_options
from netplan.cli.train import layout_options, layout_wishes, training_wishes

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.planning.effective import Factor
    from netplan.training.job import JobReport


@click.command(
    short_help="Effective compute: PUE, MFU, scaling, failures and utilisation, and what a point is worth"
)
@click.argument("fabric")
@click.argument("model")
@layout_options
@click.option("--search", is_flag=True, help="Find the layout with the shortest step.")
@click.option("--pue", type=float, help="Facility power over IT power.  [default: 1.56]")
@click.option(
    "--mfu", type=SHARE, help="MFU of the job over its scaling efficiency.  [default: of a step on FABRIC]"
)
@click.option(
    "--scaling", type=SHARE, help="Scaling efficiency at this size.  [default: of a step on FABRIC]"
)
@click.option("--effective-time", type=SHARE, help="Share of time that trains, instead of computing it.")
@click.option("--utilisation", "--utilization", type=SHARE, help="GPU-hours that jobs have.  [default: 83%]")
@click.option(
    "--communication-share",
    type=SHARE,
    help="Share of the step that is communication nothing hides.  [default: of a step on "
    "FABRIC, or what a given scaling loses]",
)
@click.option(
    "--bandwidth-efficiency",
    type=SHARE,
    help="Of collectives on FABRIC.  [default: of a step on FABRIC, or of a simulated ring all-reduce]",
)
@click.option("--price", type=float, help="USD per GPU-hour.  [default: 2.50]")
@click.option("--routing", default="ecmp", show_default=True, help="Routing scheme (netplan list routing).")
@click.option("--plot", type=click.Path(), help="Draw where the compute goes: .svg, .png or .html.")
@recovery_options
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    fabric: str,
    model: str,
    *,
    search: bool,
    pue: float | None,
    mfu: float | None,
    scaling: float | None,
    effective_time: float | None,
    utilisation: float | None,
    communication_share: float | None,
    bandwidth_efficiency: float | None,
    price: float | None,
    routing: str,
    plot: str | None,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
    **wishes: Any,  # noqa: ANN401 -- layout_options, recovery_options
) -> None:
    """Say what share of the power paid for becomes model FLOPs of MODEL on FABRIC, and where the rest goes.

    Effective compute = 1/PUE x MFU x scaling efficiency x effective training time x utilisation. What is not
    given is computed, or assumed with its source named.

    \b
    Examples:
      netplan effective superpod-b200-4su llama3-70b --plot where.svg
      netplan effective baidu-10k gpt3-175b --mfu 50% --scaling 0.9 --pue 1.2
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.catalog.models import load_model
    from netplan.files import write_file
    from netplan.planning.effective import PRICE_USD, PUE, UTILISATION, Factor, effective_compute
    from netplan.report.effective import draw_effective, effective_tables

    fabric_sets, traffic_sets = options.split_sets(overrides)
    if traffic_sets:
        message = "--set traffic.… has no workload to change here"
        raise click.UsageError(message)
    built = api.load_fabric(fabric, overrides=fabric_sets)
    load_model(model)  # refuses one that there is not, before anything is computed
    size = wishes["gpus"] or built.n_gpus

    def factor(value: float | None, default: Factor) -> Factor:
        return default if value is None else Factor(value, "by an option")

    given = {
        "mfu": mfu,
        "scaling": scaling,
        "communication_share": communication_share,
        "bandwidth_efficiency": bandwidth_efficiency,
    }
    factors = {name: Factor(value, "by an option") for name, value in given.items() if value is not None}
    report = None
    if mfu is None or scaling is None:
        report = _step(built, model, wishes, search=search, routing=routing, seed=seed, factors=factors)
    elif search or layout_wishes(wishes) or wishes["global_batch"] or wishes["accelerator"]:
        message = "with --mfu and --scaling no step is computed: --search, sizes and accelerator have no use"
        raise click.UsageError(message)
    elif bandwidth_efficiency is None:
        factors["bandwidth_efficiency"] = _of_a_ring(built, routing, seed)
    share = factors.get("communication_share")
    lost = min(max(1 - factors["scaling"].value, 0.0), 1.0) if share is None else share.value
    time = (
        job_goodput(
            built,
            size,
            given=wishes,
            communication_share=lost,
            routing=routing,
            seed=seed,
        )
        if effective_time is None
        else Factor(effective_time, "by an option")
    )
    found = effective_compute(
        size,
        mfu=factors["mfu"],
        scaling=factors["scaling"],
        effective_time=time,
        pue=factor(pue, PUE),
        utilisation=factor(utilisation, UTILISATION),
        communication_share=share,
        bandwidth_efficiency=factors["bandwidth_efficiency"],
        price_usd=factor(price, PRICE_USD),
        notes={} if report is None else {"layout": _layout(report)},
    )
    if plot is not None:
        title = f"{model} on {built.name}: where the compute goes"
        write_file(plot, draw_effective(found, title, Path(plot).suffix))
    if verbose:
        click.echo(repr(built), err=True)
    data = found.to_dict() | {"fabric": {"name": built.name, "gpus": built.n_gpus}, "model": model}
    options.emit(form, output, data, lambda: effective_tables(found))


def _step(
    fabric: Fabric,
    model: str,
    wishes: dict[str, Any],
    *,
    search: bool,
    routing: str,
    seed: int,
    factors: dict[str, Factor],
) -> JobReport:
    """Time a step, and add what is not among the factors."""
    from dataclasses import asdict

    from netplan import api
    from netplan.planning.effective import Factor
    from netplan.planning.job_factors import job_factors

    job = api.training_job(fabric, model, **training_wishes(wishes), seed=seed, routing=routing)
    with options.progress_on_stderr() as progress:
        report = api.train(job, layout_wishes(wishes), search=search, progress=progress)
    source = f"a step of {job.timer.model.name} on {job.gpus:,} {job.timer.accelerator.name} by {routing}"
    for name, value in asdict(job_factors(report, job.scale_up)).items():
        factors.setdefault(name, Factor(value, source, "computed"))
    return report


def _of_a_ring(fabric: Fabric, routing: str, seed: int) -> Factor:
    """Return the bandwidth efficiency of a ring all-reduce on a fabric."""
    from netplan import api
    from netplan.planning.effective import Factor
    from netplan.planning.failures import default_traffic

    ring = default_traffic()[0]
    result = api.simulate(fabric, ring, routing=routing, seed=seed)
    source = f"{ring.kind} of 16 GiB by {routing}, simulated"
    return Factor(min(result.efficiency.collective, 1.0), source, "computed")


def _layout(report: JobReport) -> str:
    """Return a layout in words."""
    one = report.layout
    sizes = {"tp": one.tp, "cp": one.cp, "pp": one.pp, "dp": one.dp, "ep": one.ep}
    words = " ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    found = "plain or as given" if report.search is None else "found by search"
    return (
        f"{words or 'one GPU'}, {found}; a step takes {report.step.step_s:.4g} s; the whole job's MFU is "
        f"{report.step.mfu:.1%}"
    )
