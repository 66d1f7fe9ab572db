"""Options that commands share, and how they write what they found."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from netplan.congestion.cc.registry import CongestionControl
    from netplan.fabric import Fabric
    from netplan.packet import PacketEngine
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
        click.option("--placement", help="packed, random, fragmented, rail-aware or topology-aware."),
        click.option("--ranks", type=int, help="GPUs that take part."),
        click.option("--size", help="Size, such as 4GiB."),
        click.option("--mtu", type=int, default=None, help="Payload of a full packet [bytes]: 256 to 4096."),
        click.option("--polarized", is_flag=True, help="All switches share one hash seed."),
        click.option("--work-conserving", is_flag=True, help="A QP that is done helps its siblings."),
    ):
        command = option(command)
    return command


def cc_options(command: Command) -> Command:
    """Add what a congestion control and its switches may be told."""
    for option in (
        click.option(
            "--step",
            metavar="TIME",
            help="Longest time that one train of packets stands for, such as 0.5us; 0us: single packets.",
        ),
        click.option("--exact", is_flag=True, help="Run every flow to its end: no scaling, no parts."),
        click.option(
            "--switch-profile",
            "switch",
            metavar="NAME",
            help="Rules of the switches: auto, tune (as netplan tune sets them), hpcc-ns3, conweave-ns3, "
            "dcqcn-paper, sonic-default, cumulus, htsim, dci, or a YAML file.  [default: auto]",
        ),
        click.option(
            "--param",
            "params",
            multiple=True,
            metavar="[CC.]NAME=VALUE",
            help="Parameter of a congestion control, such as dcqcn.rate_ai=40M or timer_s=55us. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def packet_options(command: Command) -> Command:
    """Add what a packet simulator may be told."""
    for option in (
        click.option("--yes", is_flag=True, help="Run packet by packet however long it takes."),
        click.option(
            "--packet-logs", type=click.Path(), help="Folder that keeps inputs and logs of its runs."
        ),
        click.option(
            "--packet-timeout", metavar="TIME", help="End a packet run after this time.  [default: 6 h]"
        ),
        click.option(
            "--packet",
            metavar="NAME",
            help="Packet by packet: ns3, or trains (netplan's own engine with single packets).",
        ),
    ):
        command = option(command)
    return command


def packet_engine(
    name: str | None,
    *,
    cc: Sequence[str],
    timeout: str | None,
    logs: str | None,
    yes: bool,
    progress: Callable[[str, int, int], None] | None = None,
) -> PacketEngine | None:
    """Return the packet simulator that ``--packet`` names, with its limits."""
    if name is None:
        given = {"--packet-timeout": timeout, "--packet-logs": logs, "--yes": yes}
        alone = next((option for option, value in given.items() if value), None)
        if alone:
            message = f"{alone} goes with --packet"
            raise click.UsageError(message)
        return None
    if "max-min" in cc:
        message = "--packet needs a protocol (--cc): max-min rates have no packets"
        raise click.UsageError(message)
    from netplan.errors import UnitError
    from netplan.packet import Limits, PacketEngine
    from netplan.units import parse_time

    if logs is not None and not Path(logs).is_dir():
        message = f"there is no folder {logs!r}"
        raise click.BadParameter(message, param_hint="--packet-logs")
    try:
        seconds = Limits.timeout_s if timeout is None else parse_time(timeout)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--packet-timeout") from None
    report = None if progress is None else lambda part: progress(f"{name} packets", int(1000 * part), 1000)
    return PacketEngine(name, Limits(timeout_s=seconds, logs=logs, yes=yes), report)


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


def split_params(
    items: Sequence[str], ccs: Sequence[str]
) -> tuple[dict[str, dict[str, tuple[float, ...]]], list[str]]:
    """Read ``--param`` options.

    Parameters
    ----------
    items
        ``[CC.]NAME=VALUE`` or ``[CC.]NAME=VALUE,VALUE``; without a protocol it is for each that has the name.
    ccs
        The protocols that will run.

    Returns
    -------
    values : dict
        Protocol to parameter to its values in SI units.
    unread : list of str
        Settings, as ``CC.NAME``, of protocols that do not run.
    """
    from netplan.congestion.cc.registry import PROTOCOLS
    from netplan.simulate.scenario import MAX_MIN

    values: dict[str, dict[str, tuple[float, ...]]] = {}
    unread: list[str] = []
    running = [PROTOCOLS.find(cc) for cc in ccs if cc != MAX_MIN]
    for item in items:
        owner, name, text = _split_param(item)
        if owner:
            readers = [PROTOCOLS.find(owner)]
        else:
            readers = [cc for cc in running if name in {each.name for each in cc.parameters}]
            if not readers and running:
                running[0].values({name: 0.0})  # refuses, and says what it reads
        for cc in readers:
            numbers = _parameter_values(cc, name, text)
            if cc.name not in ccs:
                unread.append(f"{cc.name}.{name}")
            elif name in values.setdefault(cc.name, {}):
                message = f"names {cc.name}.{name} twice"
                raise click.BadParameter(message, param_hint="--param")
            else:
                values[cc.name][name] = numbers
        if not readers:
            unread.append(name)
    return values, unread


def _split_param(item: str) -> tuple[str, str, str]:
    """Return protocol (or nothing), name and values of ``[CC.]NAME=VALUE``."""
    key, equals, text = item.partition("=")
    owner, dot, name = (part.strip() for part in key.rpartition("."))
    if not equals or not name or not text.strip() or (dot and not owner):
        message = f"{item!r} is not [CC.]NAME=VALUE"
        raise click.BadParameter(message, param_hint="--param")
    return owner, name, text


def _parameter_values(cc: CongestionControl, name: str, text: str) -> tuple[float, ...]:
    """Read the values of a parameter, each within the protocol's range."""
    known = {each.name: each for each in cc.parameters}
    if name not in known:
        cc.values({name: 0.0})  # refuses, and says what it reads
    numbers = tuple(_parameter(part, known[name].unit, f"{cc.name}.{name}") for part in text.split(","))
    for number in numbers:
        cc.values({name: number})
    return numbers


def _parameter(text: str, unit: str, name: str) -> float:
    """Read the value of a parameter, with its unit."""
    from netplan.errors import UnitError
    from netplan.units import parse_rate, parse_size, parse_time

    parsers: dict[str, Any] = {"s": parse_time, "bytes": parse_size, "bytes/s": parse_rate}
    try:
        return float(parsers[unit](text.strip()) if unit in parsers else text)
    except UnitError as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--param") from None
    except ValueError:
        message = f"{name} = {text.strip()!r} is not a number"
        raise click.BadParameter(message, param_hint="--param") from None


def congestion_options(
    fabric: Fabric, *, switch: str | None, exact: bool, step: str | None, cc: Sequence[str]
) -> dict[str, Any]:
    """Return the keyword arguments that `netplan.api` takes for switches and the engine."""
    from netplan import api
    from netplan.errors import UnitError
    from netplan.units import parse_time

    found: dict[str, Any] = {"exact": exact}
    if step is not None:
        try:
            found["step"] = parse_time(step)
        except UnitError as error:
            raise click.BadParameter(str(error), param_hint="--step") from None
    if switch is not None:
        found["switch"] = api.tuned_switches(fabric, cc) if switch == "tune" else switch
    return found


def unread_settings(ccs: Sequence[str], **given: object) -> list[str]:
    """Return which settings of the engine nothing reads, because no protocol runs."""
    if any(cc != "max-min" for cc in ccs):
        return []
    return [f"--{name.replace('_', '-')}" for name, value in given.items() if value]


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


def split_sizes(text: str) -> list[int]:
    """Read the numbers of GPUs of ``--scaling``."""
    sizes = []
    for item in split_list(text, "--scaling"):
        # int() accepts fewer forms than isdigit(): no superscripts, no doubled underscores.
        if re.fullmatch(r"0*[1-9][0-9]*(_[0-9]+)*", item, re.ASCII) is None:
            message = f"{item!r} is not a number of GPUs"
            raise click.BadParameter(message, param_hint="--scaling")
        sizes.append(int(item))
    return sizes


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
