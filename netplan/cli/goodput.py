"""``netplan goodput``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.fabric import Fabric
    from netplan.planning.goodput import Goodput

#: What ``--target`` is computed for when ``--sizes`` is not given.
_SIZES = "1024,10000,16384,100000"

#: Checkpoint write times of the table of targets [s].
_WRITES = (0.0, 0.1, 1.0, 5.0)


class ShareType(click.ParamType[float]):
    """A share: ``0.4`` or ``40%``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Read it."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*(%?)\s*", str(value))
        if found is None:
            self.fail(f"{value!r} is not a share, such as 0.4 or 40%", param, ctx)
        return float(found[1]) / (100 if found[2] else 1)


SHARE = ShareType()


class TimeType(click.ParamType[float]):
    """A time with its unit, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Read it."""
        from netplan.errors import UnitError
        from netplan.units import parse_time

        if isinstance(value, float):
            return value
        try:
            return parse_time(value)
        except UnitError as error:
            self.fail(str(error), param, ctx)


TIME = TimeType()


#: Options that are fields of `netplan.planning.goodput.Recovery`.
_RECOVERY = ("detect_s", "restart_s", "write_s", "interval_s", "rule", "repair_s", "spares")


def recovery_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what failures and checkpoints cost."""
    for option in (
        click.option(
            "--network",
            type=click.Choice(["fabric", "published"]),
            default="fabric",
            show_default=True,
            help="Network failures: those of FABRIC, which may degrade a job instead of stopping it, or as "
            "published, each of which stops it.",
        ),
        click.option(
            "--rate",
            "rates",
            multiple=True,
            metavar="CAUSE=N",
            help="Interruptions per part in a million hours, such as gpu=7; all=20 scales all causes to 20 "
            "per GPU. Repeatable.",
        ),
        click.option(
            "--spares", type=int, help="Hosts that stand by.  [default: as many as are hardly missed]"
        ),
        click.option(
            "--repair", "repair_s", type=TIME, help="Mean time until a failed host is back.  [default: 24 h]"
        ),
        click.option(
            "--rule",
            type=click.Choice(["exact", "young", "daly"]),
            default="exact",
            show_default=True,
            help="How the interval between checkpoints is chosen.",
        ),
        click.option(
            "--interval", "interval_s", type=TIME, help="Work between checkpoints, instead of a rule's."
        ),
        click.option(
            "--write", "write_s", type=TIME, help="How long a checkpoint stops the job.  [default: 5 s]"
        ),
        click.option(
            "--restart",
            "restart_s",
            type=TIME,
            help="From a failure found to computing again.  [default: 5 min]",
        ),
        click.option(
            "--detect", "detect_s", type=TIME, help="From a failure to its being found.  [default: 5 min]"
        ),
    ):
        command = option(command)
    return command


def read_rates(texts: tuple[str, ...]) -> dict[str, float]:
    """Read ``gpu=7``."""
    found = {}
    for text in texts:
        match = re.fullmatch(r"([a-z_]+)=([0-9]*\.?[0-9]+)", text)
        if match is None:
            message = f"{text!r} is not CAUSE=N, such as gpu=7"
            raise click.BadParameter(message, param_hint="--rate")
        if match[1] in found:
            message = f"names {match[1]} twice"
            raise click.BadParameter(message, param_hint="--rate")
        found[match[1]] = float(match[2])
    return found


def job_goodput(
    fabric: Fabric | None,
    gpus: int | None,
    *,
    given: Mapping[str, Any],
    communication_share: float,
    routing: str,
    seed: int,
) -> Goodput:
    """Return the goodput of a job on a fabric, or of so many GPUs in hosts of eight.

    Parameters
    ----------
    fabric, gpus
        Where, and how many.
    given
        Values of options; those of `recovery_options` are read.
    communication_share, routing, seed
        As `netplan.api.goodput` takes them.
    """
    from netplan import api
    from netplan.planning.goodput import Recovery

    recovery = Recovery(**{name: given[name] for name in _RECOVERY if given[name] is not None})
    with options.progress_on_stderr() as progress:
        return api.goodput(
            fabric,
            gpus=gpus,
            recovery=recovery,
            rates=read_rates(given["rates"]),
            network=given["network"],
            communication_share=communication_share,
            routing=routing,
            seed=seed,
            progress=progress,
        )


@click.command(short_help="How much of its time a job trains: failures, checkpoints, spares")
@click.argument("fabric", required=False)
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs of the job; without FABRIC in hosts of eight.")
@recovery_options
@click.option(
    "--communication-share",
    type=SHARE,
    default="0.2",
    show_default=True,
    help="Share of the step that is communication nothing hides.",
)
@click.option("--routing", default="spray", show_default=True, help="Routing scheme after a failure.")
@click.option("--play", type=click.IntRange(min=0), default=0, help="Play so many runs event by event.")
@click.option("--days", type=float, default=54.0, show_default=True, help="Days of a played run.")
@click.option("--target", type=SHARE, help="How fast recovery must be for so large a share, such as 99%.")
@click.option("--sizes", default=_SIZES, show_default=True, help="GPUs of the jobs of --target.")
@options.set_option
@options.seed_option
@options.output_options
@options.verbose_option
def command(
    fabric: str | None,
    *,
    gpus: int | None,
    communication_share: float,
    routing: str,
    play: int,
    days: float,
    target: float | None,
    sizes: str,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
    verbose: bool,
    **wishes: Any,  # noqa: ANN401 -- recovery_options
) -> None:
    """Say how much of its time a job on FABRIC trains, and what takes the rest.

    Interruptions come from published counts per part; those of the network from FABRIC itself, where a
    failure that leaves every NIC a port only slows the job. Without FABRIC say --gpus.

    \b
    Examples:
      netplan goodput --gpus 16384 --play 20
      netplan goodput superpod-b200-4su --spares 2 --write 2s --target 99%
    """  # noqa: D301 -- click wants the control character
    from dataclasses import asdict

    from netplan import api
    from netplan.planning.goodput import target_rows
    from netplan.planning.goodput_events import play_goodput
    from netplan.planning.part_failures import part_failures_with
    from netplan.report.goodput import goodput_tables

    if fabric is None and gpus is None:
        message = "say FABRIC or --gpus"
        raise click.UsageError(message)
    if fabric is None and overrides:
        message = "--set needs FABRIC"
        raise click.UsageError(message)
    fabric_sets, traffic_sets = options.split_sets(overrides)
    if traffic_sets:
        message = "--set traffic.… has no workload to change here"
        raise click.UsageError(message)
    built = None if fabric is None else api.load_fabric(fabric, overrides=fabric_sets)
    goodput = job_goodput(
        built,
        gpus,
        given=wishes,
        communication_share=communication_share,
        routing=routing,
        seed=seed,
    )
    played = None
    if play:
        with options.progress_on_stderr() as progress:
            played = play_goodput(goodput, days=days, runs=play, seed=seed, progress=progress)
    targets = []
    if target is not None:
        counts = [_count(text) for text in options.split_list(sizes, "--sizes")]
        targets = target_rows(
            counts, _WRITES, target, failures=part_failures_with(read_rates(wishes["rates"]))
        )
    if verbose and built is not None:
        click.echo(repr(built), err=True)
    data = goodput.to_dict() | {
        "fabric": None if built is None else {"name": built.name, "gpus": built.n_gpus},
        "played": None if played is None else asdict(played),
        "targets": [asdict(row) for row in targets],
    }
    options.emit(
        form,
        output,
        data,
        lambda: goodput_tables(goodput, played, targets, 0.0 if target is None else target),
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is not a number of GPUs, such as 16384"
        raise click.BadParameter(message, param_hint="--sizes")
    return int(text)
