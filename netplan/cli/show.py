"""``netplan show``."""

from __future__ import annotations

import click

from netplan.cli import options


@click.command(short_help="Show what a fabric is: counts, oversubscription, bisection")
@click.argument("fabric")
@click.option(
    "--save", type=click.Path(), help="Save the built fabric as JSON, to be loaded instead of its spec."
)
@options.fail_option
@options.set_option
@options.seed_option
@options.output_options
def command(
    fabric: str,
    *,
    save: str | None,
    failures: tuple[str, ...],
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
) -> None:
    """Show counts per tier, ports, oversubscription, bisection, rails, planes and sites of FABRIC.

    \b
    Examples:
      netplan show superpod-b200-64su
      netplan show my-fabric.yaml --set leaf.oversubscription=2 --format json
      netplan show fat-tree-k8 --fail random:cable:5% --save damaged.json
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.fabric.convert import save_fabric
    from netplan.fabric.measures import measure
    from netplan.report.fabrics import measure_tables
    from netplan.spec.validate import split_overrides

    built = api.fail(api.load_fabric(fabric, overrides=split_overrides(overrides)), failures, seed=seed)
    if save is not None:
        save_fabric(built, save)
        click.echo(f"saved {built!r} to {save}", err=True)
    measures = measure(built)
    data = {"schema": "netplan/show/1", "fabric": measures.to_dict()}
    options.emit(form, output, data, lambda: measure_tables(measures))
