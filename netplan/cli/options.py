"""Options that commands share, and how they write what they found."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from netplan.report.tables import Table

    Command = Callable[..., Any]

FORMATS = ("table", "json", "csv", "md")


def output_options(command: Command) -> Command:
    """Add ``--format`` and ``-o``."""
    command = click.option(
        "-o", "--output", type=click.Path(), help="Write here instead of to standard output."
    )(command)
    return click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="Form of the output.",
    )(command)


def set_option(command: Command) -> Command:
    """Add ``--set``."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a value of the spec, such as leaf.uplinks=16; of the workload with traffic. before it.",
    )(command)


def seed_option(command: Command) -> Command:
    """Add ``--seed``."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0, max=2**63 - 1),
        default=0,
        show_default=True,
        help="Seed of hashes, tables, placements.",
    )(command)


def verbose_option(command: Command) -> Command:
    """Add ``-v``."""
    return click.option(
        "-v", "--verbose", is_flag=True, help="Say on standard error what is done and how long it takes."
    )(command)


def traffic_options(command: Command) -> Command:
    """Add the options that change a workload: each stands for a ``--set`` of its key."""
    for option in (
        click.option("--placement", help="packed, random or fragmented."),
        click.option("--ranks", type=int, help="GPUs that take part."),
        click.option("--size", help="Size, such as 4GiB."),
        click.option("--mtu", type=int, default=None, help="Payload of a full packet [bytes]: 256 to 4096."),
        click.option("--polarized", is_flag=True, help="All switches share one hash seed."),
        click.option("--work-conserving", is_flag=True, help="A QP that is done helps its siblings."),
    ):
        command = option(command)
    return command


def fail_option(command: Command) -> Command:
    """Add ``--fail``."""
    return click.option(
        "--fail",
        "failures",
        multiple=True,
        metavar="WHAT",
        help="What fails, such as switch:leaf-0-3, cable:leaf-0-1/spine-0-2, nic:host-00003/2, site:west, "
        "span:east/west/path-1, tier:spine:2, random:cable:1%. Repeatable.",
    )(command)


def on_dead_option(command: Command) -> Command:
    """Add ``--on-dead``."""
    return click.option(
        "--on-dead",
        type=click.Choice(["shrink", "evict", "refuse"]),
        default="shrink",
        show_default=True,
        help="Hosts that lost NIC ports: use the rest, leave out those that lost a whole NIC, or refuse.",
    )(command)


def split_sets(overrides: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the overrides of the fabric and those of the workload (``traffic.`` before the key)."""
    from netplan.spec.validate import split_overrides

    fabric, traffic = {}, {}
    for key, value in split_overrides(overrides).items():
        if key.startswith("traffic."):
            traffic[key.removeprefix("traffic.")] = value
        else:
            fabric[key.removeprefix("fabric.")] = value
    return fabric, traffic


def traffic_sets(
    sets: dict[str, str],
    *,
    placement: str | None,
    ranks: int | None,
    size: str | None,
    qps: int | None = None,
    work_conserving: bool = False,
) -> dict[str, str]:
    """Return overrides of a workload with those that the traffic options stand for."""
    sets = dict(sets)
    if placement is not None:
        sets["placement.kind"] = placement
    if ranks is not None:
        sets["ranks"] = str(ranks)
    if size is not None:
        sets["size"] = size
    if qps is not None:
        sets["qps"] = str(qps)
    if work_conserving:
        sets["work_conserving"] = "true"
    return sets


def check_polarized(routings: Sequence[str], *, polarized: bool) -> None:
    """Refuse ``--polarized`` where no scheme hashes 5-tuples: it would change nothing."""
    if polarized and "ecmp" not in routings:
        message = "--polarized concerns ecmp only, which is not among the routings"
        raise click.UsageError(message)


def routing_options(*, polarized: bool, mtu: int | None) -> dict[str, Any]:
    """Return the keyword arguments that `netplan.api` takes for routing options."""
    options: dict[str, Any] = {"polarized": polarized}
    if mtu is not None:
        options["mtu"] = mtu
    return options


def split_list(text: str, option: str) -> list[str]:
    """Split a comma-separated option, refusing an empty or repeated entry."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        message = f"has an empty entry in {text!r}"
        raise click.BadParameter(message, param_hint=option)
    repeated = next((item for place, item in enumerate(items) if item in items[:place]), None)
    if repeated is not None:
        message = f"names {repeated!r} twice"
        raise click.BadParameter(message, param_hint=option)
    return items


def emit(form: str, output: str | None, data: Any, tables: Callable[[], Sequence[Table]]) -> None:  # noqa: ANN401
    """Print or write data as JSON, or its tables in another form."""
    if form == "json":
        text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    else:
        from netplan.report.tables import render_tables

        text = render_tables(tables(), form)  # type: ignore[arg-type]
    emit_text(text, output)


def emit_text(text: str, output: str | None) -> None:
    """Print text, or write it to a file."""
    if output is None or output == "-":
        click.echo(text, nl=False)
    else:
        write_file(output, text.encode())


@contextmanager
def progress_on_stderr() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show long runs on standard error when a person is looking; yield what to call."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)

        yield report
