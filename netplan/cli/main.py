"""The program ``netplan``: finds commands by name and turns errors into exit statuses."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from netplan import __version__
from netplan.errors import ExitStatus, NetplanError

if TYPE_CHECKING:
    from typing import IO

#: Module and short help of every command. The help stands here so that ``--help`` imports no command; a test
#: holds it equal to the command's own.
COMMANDS = {
    "demo": ("demo", "Compare routings with InfiniBand on a shipped fabric, and draw it"),
    "list": ("list_shipped", "List what is shipped: fabrics, traffic, sweeps, routing, formats"),
    "new": ("new", "Write a commented spec for a fabric family"),
    "show": ("show", "Show what a fabric is: counts, oversubscription, bisection"),
    "check": ("check", "Check a fabric's structure"),
    "simulate": ("simulate", "Run traffic on a fabric"),
    "compare": ("compare", "Compare routings under one demand with an InfiniBand baseline"),
    "jobs": ("jobs", "Run several training jobs on one fabric: how they slow each other"),
    "train": ("train", "Step time, scaling and MFU of a training job; find its parallel layout"),
    "failures": ("failures", "Show what each failure costs: hosts cut off, bandwidth left, minutes a month"),
    "goodput": ("goodput", "How much of its time a job trains: failures, checkpoints, spares"),
    "effective": (
        "effective",
        "Effective compute: PUE, MFU, scaling, failures and utilisation, and what a point is worth",
    ),
    "mixed": ("mixed", "Split one job over unequal accelerators, and say what mixing costs"),
    "share": ("share", "A day of training and inference on one cluster: what elastic use gains"),
    "bom": ("bom", "Bill of materials: parts, cost and power of a fabric"),
    "plan": ("plan", "Find designs for so many GPUs: cost, power, efficiency, failures"),
    "grow": ("grow", "Plan the re-cabling from one size of a fabric to the next"),
    "tune": ("tune", "ECN, PFC and protocol settings by port class, and whether the buffers hold them"),
    "sweep": ("sweep", "Run thousands of scenarios, resumable, here or on a cluster"),
    "diagram": ("diagram", "Draw a fabric"),
    "export": ("export", "Write a fabric in the format of another program"),
    "import": ("import_", "Read a fabric from a file of another program, and say what it is"),
    "explain": ("explain", "Explain a term, check, scheme, pattern or spec field"),
    "schema": ("schema", "Print the JSON Schema of fabric, traffic or sweep specs, for editors"),
}


class _Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"netplan.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, suggesting the nearest name."""
        from netplan.errors import did_you_mean

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = did_you_mean(args[0], COMMANDS)
            suggestion = f" Did you mean {near!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{suggestion}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's signature
        """Run the command; a `NetplanError` becomes a message and an exit status."""
        try:
            return super().invoke(ctx)
        except NetplanError as error:
            raise _Fault(error) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(ExitStatus.INTERRUPTED)


class _Fault(click.ClickException):
    """A fault of the input, shown without a traceback."""

    def __init__(self, error: NetplanError) -> None:
        super().__init__(str(error))
        # An instance's own, over the class's 1 of click.
        vars(self)["exit_code"] = int(error.exit_status)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to standard error."""
        click.echo(f"error: {self.message}", file=file or sys.stderr)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, prog_name="netplan")
def cli() -> None:
    """Design RDMA fabrics for AI training, and know how much of their bandwidth a job gets.

    FABRIC and TRAFFIC are a shipped name (netplan list), a YAML file, a saved .json fabric, or - for
    standard input.

    \b
    Examples:
      netplan demo
      netplan compare baidu-10k all-reduce-16gib-random --routing ecmp,spray
    """  # noqa: D301 -- click wants the control character


def main() -> NoReturn:
    """Run the program and end the process with its exit status."""
    try:
        cli.main(prog_name="netplan", standalone_mode=True)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
    sys.exit(ExitStatus.OK)
