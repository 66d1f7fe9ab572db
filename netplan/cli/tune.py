"""``netplan tune``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.cli.bom import parse_percent, split_wishes
from netplan.errors import ExitStatus, UnitError
from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netplan.fabric.checks import FabricFault

#: Entries of an ECN curve: Kmin, Kmax, Pmax.
_CURVE = 3


@click.command(short_help="ECN, PFC and protocol settings by port class, and whether the buffers hold them")
@click.argument("fabric")
@click.option("--cc", default="dcqcn", show_default=True, help="Congestion control.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="[CC.]NAME=VALUE",
    help="Parameter of the congestion control, such as dcqcn.rate_ai=40M or timer_s=55us. Repeatable.",
)
@click.option(
    "--switch",
    "switches",
    multiple=True,
    metavar="[TIER=]PART",
    help="Switch of a tier, or of all (netplan list parts). Repeatable.",
)
@click.option("--parts", type=click.Path(), help="YAML file of parts; one with a shipped name replaces it.")
@click.option("--pool", metavar="SIZE", help="Packet buffer of every switch, such as 165.9MB.")
@click.option(
    "--alpha",
    type=float,
    default=0.125,
    show_default=True,
    help="PFC: share of the free pool a port may hold.",
)
@click.option(
    "--priorities", type=click.IntRange(1, 8), default=1, show_default=True, help="Lossless priorities."
)
@click.option(
    "--small-packets",
    default="2%",
    show_default=True,
    metavar="PERCENT",
    help="Small packets among what is in flight: each takes a whole buffer cell.",
)
@click.option(
    "--oversubscribe",
    type=click.FloatRange(min=1.0),
    default=1.0,
    show_default=True,
    help="Headroom promised to ports over headroom kept for them together.",
)
@click.option(
    "--lossy",
    multiple=True,
    metavar="KIND|all",
    help="No PFC on a kind of cable, such as inter_site, or on all. Repeatable.",
)
@click.option(
    "--ecn",
    multiple=True,
    metavar="[KIND=]KMIN,KMAX,PMAX|RULE|off",
    help="ECN of a kind of cable, or of all: a curve such as 400kB,1600kB,0.2, a rule such as hpcc-ns3, "
    "or off. Repeatable.",
)
@click.option(
    "--xoff", metavar="SIZE", help="Static PFC threshold of every port, instead of the dynamic one."
)
@click.option("--headroom", metavar="SIZE", help="Headroom of every port, instead of what is computed.")
@click.option(
    "--search",
    "traffic",
    metavar="TRAFFIC",
    help="Also search for the parameters with which this workload ends first, under the time-domain engine.",
)
@click.option("--routing", default="ecmp", show_default=True, help="With --search: a scheme of single paths.")
@click.option(
    "--over",
    help="With --search: what to vary, comma-separated, such as timer_s,rate_ai,ecn (ecn: Kmin and Kmax).",
)
@click.option(
    "--trials",
    type=click.IntRange(5, 10_000),
    default=40,
    show_default=True,
    help="With --search: runs to make.",
)
@click.option(
    "--grid",
    type=click.IntRange(2, 50),
    default=5,
    show_default=True,
    help="With --search: points of an axis.",
)
@click.option("--picture", type=click.Path(), help="With --search: draw the landscape here (.svg or .png).")
@options.set_option
@options.seed_option
@options.output_options
def command(
    fabric: str,
    *,
    cc: str,
    params: tuple[str, ...],
    switches: tuple[str, ...],
    parts: str | None,
    pool: str | None,
    alpha: float,
    priorities: int,
    small_packets: str,
    oversubscribe: float,
    lossy: tuple[str, ...],
    ecn: tuple[str, ...],
    xoff: str | None,
    headroom: str | None,
    traffic: str | None,
    routing: str,
    over: str | None,
    trials: int,
    grid: int,
    picture: str | None,
    overrides: tuple[str, ...],
    seed: int,
    form: str,
    output: str | None,
) -> None:
    """Give ECN thresholds, PFC headroom, xoff and xon for each class of FABRIC's ports, with rule and reason.

    Says whether the switches' buffers hold it, how many long links a switch can have lossless, and what would
    do. What you set yourself is checked the same way. Exit status 3 when a buffer is too small.

    \b
    Examples:
      netplan tune superpod-b200-4su --switch sn5600
      netplan tune metro-30km-2site --switch metro=jericho-2
      netplan tune metro-30km-2site --cc hpcc --pool 165.9MB --format json
      netplan tune lab-2-leaf --search incast-8 --over timer_s,ecn --trials 12 --grid 3
    """  # noqa: D301 -- click wants the control character
    from netplan import api
    from netplan.report.tuning import draw_landscape, search_tables, tuning_rows, tuning_tables
    from netplan.units import parse_size

    if traffic is None and (over is not None or picture is not None):
        message = "--over and --picture need --search: they are about its trials"
        raise click.UsageError(message)
    if picture is not None:
        from netplan.report.diagram import find_renderer

        find_renderer(Path(picture).suffix)  # refused before the trials
    own, foreign = _split_params(params, cc)
    asked = {
        "cc": cc,
        "parameters": own,
        "switches": split_wishes(switches, "--switch"),
        "pool_bytes": _quantity(pool, "--pool", parse_size),
        "alpha": alpha,
        "n_priorities": priorities,
        "small_packets": parse_percent(small_packets, "--small-packets"),
        "oversubscription": oversubscribe,
        "lossy": frozenset("*" if kind == "all" else kind for kind in lossy),
        "ecn": _split_ecn(ecn),
        "static_xoff_bytes": _quantity(xoff, "--xoff", parse_size),
        "headroom_bytes": _quantity(headroom, "--headroom", parse_size),
    }
    sets, traffic_sets = options.split_sets(overrides)
    built = api.load_fabric(fabric, overrides=sets)
    made = api.tune(built, parts=parts, unread=foreign, **asked)
    data = {"schema": "netplan/tune/1", **made.to_dict()}
    found = None
    if traffic is not None:
        names = options.split_list(over, "--over") if over is not None else []
        with options.progress_on_stderr() as progress:
            found = api.search_parameters(
                built,
                api.load_traffic(traffic, overrides=traffic_sets),
                made,
                parameters=own,
                routing=routing,
                over=names,
                trials=trials,
                grid=grid,
                seed=seed,
                progress=progress,
            )
        data["search"] = found.to_dict()
        if picture is not None:
            write_file(picture, draw_landscape(found, Path(picture).suffix))
            click.echo(f"wrote the landscape to {picture}", err=True)
    more = [] if found is None else search_tables(found)
    options.emit(
        form, output, data, lambda: [tuning_rows(made)] if form == "csv" else [*tuning_tables(made), *more]
    )
    if made.fits is False:
        sys.exit(ExitStatus.TARGET_NOT_MET)


def _quantity(text: str | None, option: str, parse: Callable[[object], float]) -> float | None:
    """Return a quantity, or say which option's it is."""
    if text is None:
        return None
    try:
        return parse(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _split_ecn(items: Sequence[str]) -> dict[str, tuple[float, float, float] | str | None]:
    """Split ``[KIND=]KMIN,KMAX,PMAX``, ``[KIND=]RULE`` and ``[KIND=]off``."""
    from netplan.units import parse_size

    found: dict[str, tuple[float, float, float] | str | None] = {}
    for kind, text in split_wishes(items, "--ecn").items():
        entries = [entry.strip() for entry in text.split(",")]
        if text == "off":
            found[kind] = None
        elif len(entries) == 1:
            found[kind] = text
        elif len(entries) == _CURVE:
            kmin, kmax = (_quantity(entry, "--ecn", parse_size) or 0.0 for entry in entries[:2])
            try:
                found[kind] = (kmin, kmax, float(entries[2]))
            except ValueError:
                message = f"Pmax {entries[2]!r} is not a number; write 20 % as 0.2"
                raise click.BadParameter(message, param_hint="--ecn") from None
        else:
            message = f"{text!r} is not KMIN,KMAX,PMAX, a rule or off"
            raise click.BadParameter(message, param_hint="--ecn")
    return found


def _split_params(items: Sequence[str], cc: str) -> tuple[dict[str, float], list[FabricFault]]:
    """Return parameters of a protocol in SI units, and those of others as warnings."""
    from netplan.congestion.cc.registry import PROTOCOLS
    from netplan.fabric.checks import FabricFault

    protocol = PROTOCOLS.find(cc)
    units: Mapping[str, str] = {each.name: each.unit for each in protocol.parameters}
    own: dict[str, float] = {}
    foreign = []
    for item in items:
        key, equals, text = item.partition("=")
        owner, dot, name = key.strip().rpartition(".")
        if not equals or not name or not text.strip() or (dot and not owner):
            message = f"{item!r} is not [CC.]NAME=VALUE"
            raise click.BadParameter(message, param_hint="--param")
        if dot and PROTOCOLS.find(owner).name != cc:
            message = f"{key.strip()} changes nothing: the congestion control is {cc}"
            foreign.append(
                FabricFault("NP214", "warning", "--param", message, hint=f"--cc {owner}, or leave it out")
            )
            continue
        if name in own:
            message = f"names {name!r} twice"
            raise click.BadParameter(message, param_hint="--param")
        if name not in units:
            protocol.values({name: 0.0})  # refuses, and says what it reads
        own[name] = _value(text.strip(), units[name], key.strip())
    return own, foreign


def _value(text: str, unit: str, name: str) -> float:
    """Read a value with its unit."""
    from netplan.units import parse_rate, parse_size, parse_time

    parsers: dict[str, Any] = {"s": parse_time, "bytes": parse_size, "bytes/s": parse_rate}
    try:
        return float(parsers[unit](text) if unit in parsers else text)
    except UnitError as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--param") from None
    except ValueError:
        message = f"{name} = {text!r} is not a number"
        raise click.BadParameter(message, param_hint="--param") from None
