"""``netplan mixed``."""

from __future__ import annotations

import click

from netplan.cli import options


@click.command(short_help="Split one job over unequal accelerators, and say what mixing costs")
@click.argument("job")
@options.set_option
@options.output_options
def command(job: str, *, overrides: tuple[str, ...], form: str, output: str | None) -> None:
    """Split JOB, a shipped name or YAML file of pools of accelerators and a model, as fast as it can be.

    \b
    Examples:
      netplan mixed two-kinds
      netplan mixed mixed.yaml --set job.micro_batches=2048 --set job.split=by-layers --format json
    """  # noqa: D301 -- click wants the control character
    from netplan.catalog.kept import read_kept
    from netplan.report.sharing import mixed_tables, mixed_to_dict
    from netplan.spec.sharing import MixedSpec
    from netplan.spec.validate import split_overrides, validate
    from netplan.training.mixed import MixedJob, Pool, plan_mixed

    spec = validate(MixedSpec, read_kept(job, "mixed"), overrides=split_overrides(overrides))
    pools = [
        Pool(each.name, each.accelerators, each.layer_time, each.nic, each.group, each.most_layers)
        for each in spec.pools
    ]
    asked = spec.job
    work = MixedJob(
        layers=asked.layers,
        micro_batches=asked.micro_batches,
        layer_bytes=asked.layer_gradients,
        overlap=asked.overlap,
        jitter=asked.jitter,
        most_stages=asked.most_stages,
        cross_rate=asked.cross_rate,
    )
    plan = plan_mixed(pools, work, asked.split)
    options.emit(form, output, mixed_to_dict(plan, spec.name), lambda: mixed_tables(plan, spec.name))
