#!/usr/bin/env python3
"""Make what the documentation has from the program: reference pages, pictures, outputs of commands.

    python docs/generate.py            write what is not current
    python docs/generate.py --check    say what is not current; exit status 1 if anything

Written whole: the pages in `PAGES` and the pictures in `IMAGES`. In every other page and in the README
the output below a ``$ netplan ...`` line of a ``console`` block is replaced by what the program prints;
``netplan`` lines of an ``sh`` block are run, their output is not shown. Each page runs in an empty folder
of its own, in which its ``yaml`` blocks with a ``title`` are files.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from docs import charts  # noqa: E402 -- the checkout that this file is in
from netplan import api  # noqa: E402
from netplan.catalog.parts import TABLES, shipped_catalogue  # noqa: E402
from netplan.catalog.paths import Kind, shipped_folder  # noqa: E402
from netplan.catalog.rules import RULES  # noqa: E402
from netplan.catalog.shipped import list_shipped  # noqa: E402
from netplan.cli.main import COMMANDS, cli  # noqa: E402
from netplan.congestion.checks import SETTING_CHECKS, SettingCheck  # noqa: E402
from netplan.congestion.line_rate import TRANSPORTS  # noqa: E402
from netplan.fabric.checks import CHECKS, Check  # noqa: E402
from netplan.fabric.measures import measure  # noqa: E402
from netplan.report.diagram import render_diagram  # noqa: E402
from netplan.routing import SCHEMES  # noqa: E402
from netplan.spec.parts import Figure, PartSpec, PriceSpec  # noqa: E402
from netplan.spec.template import SpecEntry, spec_fields, spec_kinds  # noqa: E402
from netplan.topology import FAMILIES  # noqa: E402
from netplan.traffic import PATTERNS  # noqa: E402
from netplan.units import format_length, format_rate, format_size  # noqa: E402

_MADE = "<!-- made by docs/generate.py: change the program or that script, not this page -->\n\n"

#: Pictures, each of a shipped fabric.
IMAGES = {
    "images/baidu-10k.svg": "baidu-10k",
    "images/superpod-b200-4su.svg": "superpod-b200-4su",
    "images/metro-30km-2site.svg": "metro-30km-2site",
    "images/dragonfly-routings.svg": "dragonfly-1056",
    "images/dragonfly-72.svg": "dragonfly-72",
    "images/metro-star-3site.svg": "metro-star-3site",
}

#: Pictures that are charts of results instead of diagrams.
CHARTS: dict[str, Callable[[], bytes]] = {"images/dragonfly-routings.svg": charts.dragonfly_routings}

# ---- Introductions of pages --------------------------------------------------------------------------------

_COMMANDS = """\
# Commands

FABRIC and TRAFFIC are a shipped name (`netplan list`, `netplan list traffic`), a YAML file, or `-` for
standard input; FABRIC may also be a `.json` file that `netplan show --save` wrote.

Data goes to standard output, everything else to standard error. Exit status: 0 done · 1 a fault in the
input, or the output cannot be written · 2 a wrong call · 3 a check or target is not met · 4 a foreign
program is missing or failed · 130 interrupted.

`-h` or `--help` shows a command's help, `netplan --version` the version.
"""

_SPECS = """\
# Spec fields

A spec is a YAML file. Quantities carry their unit (`400G`, `30 km`, `1 GiB`, `150 us`); a bare number
where a unit is due is refused, and so is a key that is not listed here. `--set leaf.uplinks=16` on the
command line replaces one field (for a workload `--set traffic.qps=4`).

Default: **required** where there is none; *follows* where the value follows from other keys or is not
set. `[]` stands for each item of a list.

`netplan explain leaf.uplinks` prints one row of these tables, `netplan new rail-optimized` a commented file,
`netplan schema fabric` a JSON Schema for editors.

Units: rates `b/s`, `kb/s`, `Mb/s`, `Gb/s`, `Tb/s` (short `400G`) and `B/s` to `TB/s`, `KiB/s` to
`TiB/s`; sizes `B`, `kB`, `MB`, `GB`, `TB` (powers of 1000) and `KiB`, `MiB`, `GiB`, `TiB` (powers of
1024); times `ns`, `us`, `ms`, `s`, `min`, `h`, `d`; lengths `mm`, `cm`, `m`, `km`.

## Fabrics
"""

_CHECKS = """\
# Checks

`netplan check FABRIC` looks at a fabric element by element and lists what is wrong with it; errors end
it with exit status 3. A fabric that netplan builds from a spec is checked before anything is computed
from it, and refused when it has errors. `netplan explain NP104` prints one of these sections.

Codes from NP201 on are of settings: [`netplan tune`](../guides/tune.md) finds them in ECN, PFC and protocol
settings, and `netplan check FABRIC --routing SCHEME` finds NP221. Of a setting, an error is one that no
switch can have or that loses packets where none may be lost; a warning works and is foolish.
"""

_CATALOGUE = """\
# Catalogue

What is shipped in `topologies/` and `traffic/`. A name can be used wherever a file can: `netplan show
lab-2-leaf`. The text of each entry is the comment at the head of its file, which says what is published,
what is derived and what is assumed. *Bisection*: bisection bandwidth over half of all NIC bandwidth.

## Fabrics
"""

_PARTS = """\
# Parts

The parts that [`netplan bom`](../guides/bill-of-materials.md) chooses from. Every figure says where it comes
from and how far it can be trusted: *published* (the maker's document), *vendor-claim* (marketing, resellers),
*estimate*. What was not found with a source is not here: it is unknown, and totals that need it say
"at least".

`--parts FILE` adds parts or replaces those of the same name; the shipped files in `netplan/catalog/data` show
how to write them.
"""

_RULES = """\
## Plug rules

What a part that is chosen, or asked for with `--optics`, must keep. A rule whose figure is unknown passes.
`netplan explain PL107` prints one.
"""

_JSON = """\
# JSON

`--format json` prints one object, keys sorted, the same bytes for the same inputs and seed on any
machine. The unit stands in the key (`completion_s`; `_gb_per_s` is 1e9 B/s). `schema` names the form and
its version: the number is raised when a key changes its meaning; new keys may come without that.
"""

_ROUTING = """\
# Routing schemes

What `--routing` takes. How each works: [Models](../concepts/models.md#routing-schemes).
"""

_TRANSPORTS = """\
## Transports

The packet format and the latencies that go with a scheme. Payload fraction: payload line rate over link rate.
"""


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


# ---- Commands ----------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Return the page of commands."""
    parts = [_COMMANDS]
    group = click.Context(cli, info_name="netplan")
    for name in COMMANDS:
        command = cli.get_command(group, name)
        assert command is not None
        parts.append(_command(command, click.Context(command, info_name=name, parent=group)))
    return "\n".join(parts)


def _command(command: click.Command, context: click.Context) -> str:
    """Return the section of one command."""
    text, _, examples = inspect.cleandoc(command.help or "").replace("\\b", "\b").partition("\b\n")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f"## netplan {context.info_name}\n",
        f"```text\nnetplan {context.info_name} {usage}\n```\n",
        text,
    ]
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    rows = [(_spelling(option, context), _help(option, context)) for option in options]
    if rows:
        parts.append(table(("option", "meaning"), rows))
    lines = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    parts.append("```sh\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def _spelling(option: click.Option, context: click.Context) -> str:
    """Return how an option is written."""
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} `{option.make_metavar(context)}`"


def _help(option: click.Option, context: click.Context) -> str:
    """Return an option's help with its default."""
    record = option.get_help_extra(context)
    default = record.get("default")
    return (option.help or "") + (f" Default: `{default}`." if default else "")


# ---- Specs, checks, catalogue ------------------------------------------------------------------------------


def specs_page() -> str:
    """Return the page of spec fields."""
    parts = [_SPECS]
    for kind in FAMILIES.names():
        family = FAMILIES.find(kind)
        about = f"{_sentence(family.summary)} Leaves out: {family.leaves_out}.\n"
        parts += [f"### {kind}\n", about, _fields(kind, spec_fields("fabric"))]
    parts.append("## Traffic\n")
    for kind in spec_kinds("traffic"):
        pattern = PATTERNS.find(kind)
        about = f"{_sentence(pattern.summary)} Leaves out: {pattern.leaves_out}.\n"
        parts += [f"### {kind}\n", about, _fields(kind, spec_fields("traffic"))]
    return "\n".join(parts)


def _fields(kind: str, fields: tuple[SpecEntry, ...]) -> str:
    """Return the table of a kind's fields."""
    rows = []
    for field in fields:
        if kind in field.kinds:
            default = {None: "**required**", "null": "*follows*"}.get(field.default, f"`{field.default}`")
            accepts = f"`{kind}`" if field.path == "kind" else field.accepts
            rows.append((f"`{field.path}`", accepts, default, field.description))
    return table(("field", "accepts", "default", "meaning"), rows)


def checks_page() -> str:
    """Return the page of checks."""
    checks: list[Check | SettingCheck] = [*CHECKS.values(), *SETTING_CHECKS.values()]
    links = [(f"[{check.code}](#{check.code.lower()})", check.title) for check in checks]
    parts = [_CHECKS, table(("code", "what must hold"), links)]
    for check in checks:
        parts += [
            f"## {check.code}\n",
            f"**{_sentence(check.title)}**\n",
            f"*Looks at.* {check.what}\n",
            f"*Why.* {check.why}\n",
            f"*Remedy.* {check.remedy}\n",
        ]
    return "\n".join(parts)


def catalogue_page() -> str:
    """Return the page of shipped fabrics and workloads."""
    rows = []
    for item in list_shipped("topologies"):
        data = measure(api.load_fabric(item.name)).to_dict()
        switches = data["switches"]
        counts = [switches[tier] for tier in ("leaf", "spine", "core", "metro")]
        tiers = " / ".join(f"{count:,}" for count in counts if count)
        link = f"[{item.name}](#{item.name})"
        fraction = data["bisection_fraction"]
        rows.append(
            (
                link,
                item.kind,
                f"{data['gpus']:,}",
                f"{data['endpoints']:,}",
                tiers,
                f"{data['cables']['total']:,}",
                "-" if fraction is None else f"{fraction:.3g}",
            )
        )
    head = ("fabric", "family", "GPUs", "NIC ports", "switches by tier", "cables", "bisection")
    parts = [_CATALOGUE, table(head, rows)]
    parts += _entries("topologies")
    parts.append("## Workloads\n")
    parts.append(
        table(
            ("workload", "pattern", "what it is"),
            [(f"[{i.name}](#{i.name})", i.kind, i.summary) for i in list_shipped("traffic")],
        )
    )
    parts += _entries("traffic")
    return "\n".join(parts)


def _entries(kind: Kind) -> list[str]:
    """Return a section for each file of a kind."""
    parts = []
    for item in list_shipped(kind):
        lines = (shipped_folder(kind) / f"{item.name}.yaml").read_text(encoding="utf-8").splitlines()
        comment = []
        for line in lines:
            if not line.startswith("#"):
                break
            comment.append(line.removeprefix("#").removeprefix(" "))
        parts += [f"### {item.name}\n", f"{item.summary} Source: {item.source}.\n".replace("..\n", ".\n")]
        parts.append("```text\n" + "\n".join(comment) + "\n```\n")
    return parts


def parts_page() -> str:
    """Return the page of parts."""
    parts = [_PARTS]
    catalogue = shipped_catalogue()
    for name in TABLES:
        title = "NICs" if name == "nics" else _sentence(name).rstrip(".")
        parts.append(f"## {title}\n")
        here = getattr(catalogue, name).values()
        rows = [(f"`{part.name}`", part.description, _figures(part)) for part in here]
        parts.append(table(("part", "what it is", "figures"), rows))
    rules = [(rule.code, _sentence(rule.title), rule.source) for rule in RULES.values()]
    parts += [_RULES, table(("code", "what must hold", "source"), rules)]
    parts.append("## Sources\n")
    rows = []
    for _, part in catalogue.parts():
        for name in type(part).model_fields:
            figure = getattr(part, name)
            if isinstance(figure, Figure | PriceSpec):
                rows.append((f"`{part.name}`", name, figure.confidence, figure.date, figure.source))
    parts.append(table(("part", "figure", "confidence", "date", "source"), rows))
    return "\n".join(parts)


def _figures(part: PartSpec) -> str:
    """Return what is known of a part in one cell."""
    said = []
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, PriceSpec):
            said.append(f"{value.low:,.0f} to {value.high:,.0f} USD")
        elif isinstance(value, Figure):
            said.append(_figure(name, value.value))
        elif name in ("speed", "standard", "mode", "connector", "medium", "protocol"):
            said.append(format_rate(value) if name == "speed" else str(value))
        elif name in ("fits", "far_fits"):
            said.append(f"{'far end in' if name == 'far_fits' else 'in'} {' or '.join(value)}")
        elif name in ("links", "far_ends") and value > 1:
            said.append(f"{value} {name.replace('_', ' ')}")
        elif name == "ports" and isinstance(value, int):
            said.append(f"{value} port{'s' if value > 1 else ''}")
        elif name == "gpus":
            said.append(f"{value} GPUs")
        elif name == "dwdm" and value:
            said.append("DWDM")
    return "; ".join(said)


def _figure(name: str, value: Any) -> str:  # noqa: ANN401 -- any figure
    """Return one figure in words."""
    said: dict[str, Callable[[Any], str]] = {
        "ports": lambda ports: " or ".join(f"{each.count} x {format_rate(each.speed)}" for each in ports),
        "cages": lambda c: f"{c.count} {c.type}" + (f" of {c.power:g} W" if c.power else ""),
        "cage": str,
        "channels": "{} channels".format,
        "rack_units": "{} U".format,
        "buffer": lambda size: f"buffer {format_size(size)}",
        "reach": lambda reach: f"to {format_length(reach)}",
        "power_typical": "{:g} W typical".format,
        "power_max": "{:g} W at most".format,
    }
    return said[name](value)


def _sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


# ---- JSON --------------------------------------------------------------------------------------------------

#: What each key of a command's JSON means; `[]` is each item of a list.
_RESULT_KEYS = {
    "completion_s": "completion time [s]",
    "ideal_s": "completion time without contention and windows [s]",
    "latency_s": "latency inside the completion time [s]",
    "algbw_gb_per_s": "algorithm bandwidth [1e9 B/s]",
    "busbw_gb_per_s": "bus bandwidth [1e9 B/s]; null when the workload is no collective",
    "efficiency.mean_flow": "bandwidth efficiency, mean over sending NIC ports, 0 to 1",
    "efficiency.collective": "ideal over simulated completion time, 0 to 1",
    "efficiency.worst_flow": "smallest term of the mean, 0 to 1",
    "flows": "flows between hosts",
    "qps": "queue pairs of each flow",
    "ranks": "GPUs that take part",
    "phases[].name": "name of the phase",
    "phases[].flows": "its flows",
    "phases[].completion_s": "from its begin to its end [s]",
    "phases[].network_s": "until the last byte left the network's bottleneck, latency aside [s]",
    "phases[].scale_up_s": "busy time of the scale-up domain, at the same time as the network's [s]",
    "phases[].latency_s": "latency in its completion time [s]",
    "phases[].ideal_s": "its completion time without contention [s]",
    "bottlenecks[].link": "sender and receiver of a contended link; the five worst, worst first",
    "bottlenecks[].load": "carried over payload capacity, all flows active",
    "bottlenecks[].offered": "what its flows' senders would send unhindered, over payload capacity",
    "bottlenecks[].flows": "flows that cross it",
    "links_by_tier[].tier": "kind of link",
    "links_by_tier[].direction": "up (from the hosts) or down",
    "links_by_tier[].links": "how many",
    "links_by_tier[].mean_load": "mean of carried over payload capacity",
    "links_by_tier[].max_load": "the largest",
    "links_by_tier[].max_offered": "the largest offered load",
    "links_by_tier[].idle_links": "links that carry nothing",
    "contended": "whether any link is offered more than it carries",
    "window_limited_flows": "flows that their window limits to less than their NIC's line rate",
    "remarks": "in words, with a code: what changed nothing, was supposed or shortened",
    "pfc.pause_time_s": "time that links were paused, together [s]; `pfc` is null under `max-min`",
    "pfc.pause_events": "pauses sent",
    "loss_fraction": "dropped over sent bytes; null under `max-min`",
    "queues.peak_bytes": "most bytes that waited at a switch port; `queues` is null under `max-min`",
    "queues.worst_link": "where",
    "queues.mean_bytes": "mean over time of the queue that was longest in the mean [bytes]",
    "queues.mean_link": "where",
    "marked_packets": "packets with an ECN mark; null under `max-min`",
    "engine.method": "whole, scaled, components or bottlenecks; `engine` is null under `max-min`",
    "engine.scale": "smallest part of the bytes that was run, 0 to 1",
    "engine.groups": "groups that senders fell into",
    "engine.groups_run": "groups that were run: alike ones once",
    "engine.events": "events of the engine",
    "engine.step_s": "longest time that one train of packets stands for [s]",
}
_MANIFEST_KEYS = {
    "netplan": "version",
    "fabric.name": "name of the fabric",
    "fabric.kind": "its family",
    "fabric.sha256": "hash of its validated spec",
    "traffic.name": "name of the workload",
    "traffic.kind": "its pattern",
    "traffic.sha256": "hash of its validated spec",
    "failures": "null, or what failed with its seeds, and what a job does with hosts that lost NICs",
    "models.routing": "routing scheme",
    "models.cc": "congestion control",
    "models.transport": "packet format and latencies: roce or infiniband",
    "models.flow": "how flows share links",
    "congestion.parameters.*": "parameters of the protocol in SI units; `congestion` is null under `max-min`",
    "congestion.switch.*": "rules of the switches: ECN, PFC, buffer (`netplan.congestion.switch`)",
    "congestion.exact": "whether everything was run whole",
    "congestion.step_s": "step that was asked for; null: the engine's own",
    "mtu_bytes": "payload of a full packet [bytes]",
    "qps": "queue pairs of each flow",
    "seed": "seed of hashes, tables, placements",
}


@dataclass(frozen=True)
class JsonExample:
    """A command whose JSON is described."""

    command: str
    about: str
    keys: dict[str, str]
    """What the keys mean; a key that ends with ``*`` stands for all below it."""


JSON_EXAMPLES = (
    JsonExample(
        "list fabrics --format json",
        "`netplan list`",
        {
            "schema": "`netplan/list/1`",
            "items[].name": "name",
            "items[].kind": "family, pattern, transport ...",
            "items[].summary": "a sentence",
            "items[].source": "where its numbers come from",
        },
    ),
    JsonExample(
        "show metro-30km-2site --format json",
        "`netplan show`",
        {
            "schema": "`netplan/show/1`",
            "fabric.name": "name",
            "fabric.kind": "family",
            "fabric.hosts": "hosts",
            "fabric.gpus": "GPUs",
            "fabric.endpoints": "NIC ports",
            "fabric.switches.*": "switches by tier, and `total`",
            "fabric.cables.*": "cables by kind, and `total`",
            "fabric.ports.*": "ports of each tier: `used` and `total`",
            "fabric.oversubscription.*": "downlink over uplink bandwidth by tier; null at the top",
            "fabric.bisection_fraction": "bisection bandwidth over half of all NIC bandwidth",
            "fabric.max_hops": "switches on the longest shortest path",
            "fabric.rails": "rails",
            "fabric.planes": "parallel fabrics that meet only inside hosts",
            "fabric.groups": "groups of NIC ports that reach each other inside the network",
            "fabric.direct": "null; of a direct network its ratios, cut and hops (below)",
            "fabric.sites.*": "sites: `names`, and `spans`: links and length of each, and where they are "
            "known its fibre path, wavelengths and fibre pairs",
            "fabric.paths.*": "equal-cost paths between two NIC ports by where they are",
            "fabric.rail_reach.*": "NIC ports of one rail within one switch, three switches, and in all",
            "fabric.nic_rates_gbps": "line rates of NIC ports [Gb/s]",
            "fabric.scale_up.*": "GPUs of a scale-up domain and the rate of each into it [1e9 B/s]",
            "fabric.notes": "what a reader should know of these figures",
        },
    ),
    JsonExample(
        "show slim-fly-q5 --format json",
        "`netplan show`, direct networks",
        {
            "schema": "`netplan/show/1`",
            "fabric.direct.local_over_injection": "local cables of the routers over their NICs, by bandwidth",
            "fabric.direct.global_over_injection": "global cables over NICs, by bandwidth; null in a grid",
            "fabric.direct.bisection_cut": "which cut `bisection_fraction` is that of",
            "fabric.direct.average_hops": "mean switches on a shortest path between two NICs",
            "fabric.direct.hops.*": "share of pairs of NICs by the switches between them",
            "fabric.*": "as above",
        },
    ),
    JsonExample(
        "check lab-2-leaf --format json",
        "`netplan check`",
        {"schema": "`netplan/check/1`", "faults": "list, empty when nothing is wrong"},
    ),
    JsonExample(
        "simulate lab-2-leaf incast-8 --cc dcqcn --format json",
        "`netplan simulate`",
        {
            "schema": "`netplan/result/1`",
            **{f"result.{key}": text for key, text in _RESULT_KEYS.items()},
            **{f"manifest.{key}": text for key, text in _MANIFEST_KEYS.items()},
            "manifest.routing_options.*": "options of the routing scheme",
        },
    ),
    JsonExample(
        "compare lab-2-leaf incast-8 --qps 1,2 --routing ecmp --format json",
        "`netplan compare`",
        {
            "schema": "`netplan/comparison/1`",
            "baseline.routing": "routing scheme of the baseline",
            "baseline.result.*": "as in `netplan simulate`",
            "baseline.manifest.*": "as in `netplan simulate`",
            "rows[].routing": "routing scheme",
            "rows[].cc": "congestion control",
            "rows[].params.*": "settings that differ between rows besides, such as `qps`",
            "rows[].result.*": "as in `netplan simulate`",
            "rows[].manifest.*": "as in `netplan simulate`",
            "rows[].versus_baseline.mean_flow": "efficiency over the baseline's",
            "rows[].versus_baseline.collective": "efficiency over the baseline's",
            "rows[].versus_baseline.completion": "completion time over the baseline's: 2 takes twice as long",
            "remarks": "in words: which settings changed nothing, and why",
        },
    ),
    JsonExample(
        "plan --gpus 256 --switch qm9700 --family leaf-spine --family clos --grow-to 512 --format json",
        "`netplan plan`",
        {
            "schema": "`netplan/plan/1`",
            "request.*": "what was asked for, in SI units",
            "candidates": "designs that were looked at",
            "exact": "whether all that was not simulated is beaten: the front is then that of all candidates",
            "designs[].name": "name of the design and of its fabric",
            "designs[].family": "kind of fabric",
            "designs[].spec.*": "the fabric spec, as a YAML file says it",
            "designs[].switch": "switch of the catalogue, on every tier",
            "designs[].nic": "NIC of the catalogue, or null",
            "designs[].planes": "networks that meet only inside hosts",
            "designs[].oversubscription": "NIC over uplink bandwidth at the narrowest tier, as asked for",
            "designs[].switches.*": "switches by tier, and `total`",
            "designs[].cables.*": "cables by kind, and `total`",
            "designs[].any_to_any": "whether every NIC reaches every other through the network",
            "designs[].cost_usd.*": "the network [USD]: low, mid, high",
            "designs[].cost_per_gpu_usd": "its middle over GPUs [USD]",
            "designs[].power_w": "largest draw of the network [W]",
            "designs[].at_least.*": "parts without a price or largest draw: the sum is a lower bound",
            "designs[].efficiency": "least of the workloads' efficiencies, latency left out",
            "designs[].efficiencies.*": "efficiency by workload",
            "designs[].routing": "routing scheme of the simulations",
            "designs[].failures.stops_per_month": "failures that take all ports of a NIC",
            "designs[].failures.lost_minutes_per_month": "minutes of the whole fabric's bandwidth",
            "designs[].failures.worst_nics": "NICs that one switch cuts off, at most",
            "designs[].failures.worst_gpus": "GPUs that they serve",
            "designs[].growth.*": "what `--grow-to` takes: cables touched, new cables and switches; or null",
            "designs[].remarks": "what the figures do not say",
            "designs[].pareto": "whether it is on the front",
            "designs[].score": "weighted mean of ratios to the best; 1 is best in everything",
            "rejected[].design": "first of the designs",
            "rejected[].designs": "designs refused for this reason",
            "rejected[].reason": "why they cannot be built, or which limit they break",
            "rejected[].hint": "what would be feasible, or null",
            "rejected[].limit": "limit that is broken, or null",
            "rejected[].value": "what the first has instead, or null",
            "skipped": "designs that were not simulated: name, reason, and what beats them",
            "notes": "what the figures rest on",
            "manifest.*": "version and seed",
        },
    ),
    JsonExample(
        "bom lab-2-leaf --host dgx-h100 --format json",
        "`netplan bom`",
        {
            "schema": "`netplan/bom/1`",
            "fabric": "name of the fabric",
            "lines[].part": "name of the part in the catalogue, or `unlisted-...`",
            "lines[].kind": "switch, nic, transceiver, cable, fibre, line-terminal, host or unlisted",
            "lines[].use": "where it goes: a tier, or a kind of cable and the side",
            "lines[].length_m": "length that is bought [m], or null",
            "lines[].quantity": "pieces in use",
            "lines[].spares": "pieces to keep beside them",
            "lines[].unit_cost_usd.*": "price of a piece [USD]: low, mid, high; null when unknown",
            "lines[].cost_usd.*": "price of the line with its spares [USD]",
            "lines[].power_w.typical": "typical draw of the line [W], or null; of switches without optics",
            "lines[].power_w.max": "largest draw of the line [W], or null; of switches with optics",
            "lines[].fibre_pairs": "fibre pairs of the line",
            "lines[].confidence": "of the price: published, vendor-claim or estimate",
            "lines[].source": "where the price comes from, or else the part",
            "totals.switches": "switches",
            "totals.nics": "network adapters",
            "totals.transceivers": "transceivers, both ends",
            "totals.line_terminals": "ends of DWDM lines, two for each fibre pair with several wavelengths",
            "totals.cables": "cables with plugs, and fibre cables",
            "totals.breakout_cables": "cables that split, among them",
            "totals.fibre_pairs": "fibre pairs",
            "totals.spares": "spare pieces",
            "totals.rack_units": "height of switches and line terminals, and of the hosts when one is named",
            "totals.gpus": "GPUs",
            "totals.cost_usd.*": "cost of the network with spares [USD]: low, mid, high",
            "totals.power_w.*": "draw of the network [W]: typical, max",
            "totals.per_gpu.cost_usd.*": "cost over GPUs [USD]",
            "totals.per_gpu.power_w.*": "draw over GPUs [W]",
            "totals.hosts.cost_usd.*": "cost of the hosts [USD], or null",
            "totals.hosts.power_max_w": "largest draw of the hosts [W], or null",
            "totals.network_share": "the network's largest draw over that of network and hosts, or null",
            "totals.at_least.*": "parts without a figure, by total: that total is a lower bound",
            "remarks": "what was chosen, and what does not fit",
        },
    ),
    JsonExample(
        "simulate fat-tree-k8 permutation-64mib --routing spray --fail switch:spine-0-0 --format json",
        "`netplan simulate --fail`",
        {
            "schema": "`netplan/result/1`",
            "result.*": "as without --fail, on the damaged fabric",
            "manifest.*": "as without --fail",
            "manifest.failures.items": "the failures as they were written",
            "manifest.failures.seeds": "seed of the random choices of each",
            "manifest.failures.on_dead": "what a job does with hosts that lost NICs: shrink, evict or refuse",
            "damage.failures": "the failures as they were written",
            "damage.switches_failed": "names of switches that failed",
            "damage.cables_failed.*": "cables that failed or lost an end, by kind",
            "damage.hosts_cut_off": "names of hosts without any NIC port left",
            "damage.gpus_cut_off": "their GPUs",
            "damage.hosts_reduced": "names of hosts that lost some of their NIC ports",
            "damage.nics_cut_off": "NICs without any port left",
            "damage.nic_ports_lost": "NIC ports that are of no use any more",
            "damage.nic_ports_without_leaf": "those of them whose leaf failed",
            "damage.nic_ports_cut_off": "those of them that no longer reach the larger part of the fabric",
            "damage.undamaged.*": "figures of the same run on the undamaged fabric",
            "damage.bandwidth_left": "bandwidth per GPU that takes part, over the undamaged fabric's",
            "damage.unused": "whether nothing that failed carried any of the demand",
            "damage.changed": "whether any figure differs from the undamaged fabric's",
            "damage.remarks": "the same in words",
        },
    ),
    JsonExample(
        "failures lab-2-leaf --random cable:2 --samples 2 --format json",
        "`netplan failures`",
        {
            "schema": "`netplan/failures/1`",
            "fabric.*": "name, kind, hosts and GPUs of the fabric",
            "workloads.*": "by name: kind, ranks, bandwidth per GPU on the undamaged fabric [1e9 B/s]",
            "exhaustive": "whether every element was simulated, not one of each class",
            "classes[].kind": "nic, kind of cable, tier of switch, span (a fibre path), whole_span or site",
            "classes[].failure": "what was failed (with all simulated: the worst), as `--fail` takes it",
            "classes[].elements": "how many elements are in the class",
            "classes[].simulated": "how many of them were simulated",
            "classes[].hosts_cut_off": "hosts without any NIC port left; the most of those simulated",
            "classes[].gpus_cut_off": "their GPUs",
            "classes[].nics_cut_off": "NICs without any port left",
            "classes[].nic_ports_lost": "NIC ports that are of no use any more",
            "classes[].left.*": "bandwidth left by workload: 1 is the undamaged fabric's; mean",
            "classes[].worst.*": "the least of those simulated",
            "classes[].unused": "whether it carried none of the workloads",
            "classes[].note": "why a workload cannot run, or null",
            "classes[].rate.*": "percent per element and month, source, confidence, repair time [h]",
            "classes[].length_km": "length of a fibre path [km], or null",
            "classes[].failures_per_month": "failures of the class in a month; null: the rate is not known",
            "classes[].stops_per_month": "those that leave a NIC without any port",
            "classes[].degraded_minutes_per_month": "minutes in which anything is lost",
            "classes[].lost_minutes_per_month.*": "minutes of the whole fabric's bandwidth, by workload",
            "totals.*": "sums over the classes; `unknown_rates` names kinds that are missing in them",
            "random[].failure": "what was drawn",
            "random[].samples": "how often",
            "random[].hosts_cut_off.*": "mean and worst",
            "random[].gpus_cut_off.*": "mean and worst",
            "random[].nics_cut_off.*": "mean and worst",
            "random[].nic_ports_lost.*": "mean and worst",
            "random[].left.*": "by workload: mean, worst, and the seed of the worst draw",
            "notes": "what the figures rest on",
            "manifest.*": "version, routing, seed, on_dead",
        },
    ),
    JsonExample(
        "grow superpod-b200-4su superpod-b200-4su --set after.hosts.count=256 --format json",
        "`netplan grow`",
        {
            "schema": "`netplan/growth/1`",
            "before": "name of the fabric that is there",
            "after": "name of the fabric that is to be",
            "gpus.*": "GPUs before and after",
            "hosts.*": "hosts before and after; kept: those that keep their seats",
            "switches.*": "by tier: before, after, kept, converted (from another tier), new, retired",
            "cables.*": "by kind: before, after, kept, moved at one end or at both, removed, new",
            "touched": "cables in place that are moved or removed",
            "touched_fraction": "their part of all cables in place",
            "touched_at_least": "in any plan between the two fabrics",
            "purchases[].part": "name of a part",
            "purchases[].kind": "as in a bill's lines",
            "purchases[].length_m": "length of a cable [m], or null",
            "purchases[].before": "pieces in the bill of the fabric that is there",
            "purchases[].after": "pieces in the bill of the fabric that is to be",
            "purchases[].buy": "pieces to buy",
            "purchases[].left_over": "pieces that are left over",
            "purchases[].cost_mid_usd": "middle cost of those to buy [USD]; null: no price is known",
        },
    ),
    JsonExample(
        "grow superpod-b200-4su superpod-b200-4su --set before.hosts.count=64 --choices --format json",
        "`netplan grow --choices`",
        {
            "schema": "`netplan/growth-choices/1`",
            "choices[].design": "what a design of the first size has in common with the later one",
            "choices[].spec.*": "its spec, as in a YAML file",
            "choices[].switches.*": "switches by tier",
            "choices[].switches_total": "switches to buy now",
            "choices[].cables": "cables to lay now",
            "choices[].touched": "cables of these that are moved or removed when it grows",
            "choices[].touched_at_least": "in any plan between the two sizes",
            "choices[].bought_later": "switches to buy when it grows",
        },
    ),
    JsonExample(
        "check lab-2-leaf --routing ecmp --format json",
        "`netplan check --routing`",
        {
            "schema": "`netplan/check/1`",
            "faults": "empty, or a list of the faults below",
            "buffer_cycles.routing": "routing scheme",
            "buffer_cycles.flows": "flows looked at",
            "buffer_cycles.covers": "which flows and paths those are",
            "buffer_cycles.dependencies": "pairs of links, one waiting for the other; 0: up, then down",
            "buffer_cycles.cycles": "cyclic buffer dependencies, each a list of links; empty: no deadlock",
        },
    ),
    JsonExample(
        "tune metro-30km-2site --format json",
        "`netplan tune`",
        {
            "schema": "`netplan/tune/1`",
            "fabric": "name of the fabric",
            "cc.name": "congestion control",
            "cc.parameters[].name": "parameter",
            "cc.parameters[].value": "its value",
            "cc.parameters[].unit": "s, bytes, bytes/s or 1",
            "cc.parameters[].default": "the protocol's default",
            "cc.parameters[].meaning": "what it does",
            "cc.parameters[].reason": "where the value comes from",
            "ports[].class": "tier, kind of cable, rate and length",
            "ports[].tier": "tier of the switch that has the port",
            "ports[].kind": "kind of cable",
            "ports[].medium": "transceiver or cable, or null",
            "ports[].rate_gbps": "line rate [Gb/s]",
            "ports[].length_m": "longest cable of the class [m]",
            "ports[].delay_s": "its one-way delay [s]",
            "ports[].rtt_s": "base round trip of the longest path over it [s]",
            "ports[].ports": "ports of the class in the whole fabric",
            "ports[].kmin_bytes": "ECN: marking begins [bytes], or null",
            "ports[].kmax_bytes": "ECN: everything is marked above [bytes], or null",
            "ports[].pmax": "ECN: probability at Kmax, or null",
            "ports[].ecn_rule": "rule that the thresholds follow, or null",
            "ports[].headroom_bytes": "PFC headroom of the port and priority [bytes]; null without PFC",
            "ports[].xoff_bytes": "level at which the port is paused, it alone congested [bytes], or null",
            "ports[].xoff_all_bytes": "the same with all ports of the switch congested [bytes], or null",
            "ports[].xon_bytes": "level at which the pause ends, it alone congested [bytes], or null",
            "ports[].dci_buffer_bytes": "of a long link: buffer of the port without PFC [bytes], or null",
            "ports[].reason": "rules and reasons",
            "buffer.pool_bytes": "buffer of the tightest kind of switch [bytes], or null",
            "buffer.required_bytes": "what it takes [bytes], or null",
            "buffer.fits": "whether all switches hold what is asked of them; null when one is unknown",
            "buffer.switches[].tier": "tier",
            "buffer.switches[].part": "part of the catalogue, or null",
            "buffer.switches[].switches": "switches of the kind",
            "buffer.switches[].ports.*": "ports by class, the most that one of them has",
            "buffer.switches[].pool_bytes": "buffer that queues can use [bytes]; null when it is unknown",
            "buffer.switches[].headroom_bytes": "headroom of all its lossless ports [bytes]",
            "buffer.switches[].shared_bytes": "what is left for all ports [bytes], or null",
            "buffer.switches[].required_bytes": "least buffer with which all are lossless [bytes]",
            "buffer.switches[].fits": "whether it has that, or null",
            "buffer.switches[].most_ports.*": "of each long class: ports that the buffer could hold",
            "buffer.switches[].reason": "where the buffer goes",
            "buffer.switches[].remedies": "what would do, where it does not fit",
            "faults[].code": "code of the [check](checks.md)",
            "faults[].severity": "error or warning",
            "faults[].where": "switch and class of ports",
            "faults[].message": "what is wrong there",
            "faults[].hint": "what to do about it, or null",
            "notes": "what the figures rest on",
        },
    ),
    JsonExample(
        "tune lab-2-leaf --switch sn5600 --search incast-8 --over timer_s,ecn --trials 6 --grid 2 "
        "--format json",
        "`netplan tune --search`",
        {
            "schema": "`netplan/tune/1`",
            "fabric": "name of the fabric",
            "cc.*": "as without --search",
            "ports[].*": "as without --search",
            "buffer.*": "as without --search",
            "faults": "as without --search",
            "notes": "as without --search",
            "search.cc": "congestion control",
            "search.demand": "name of the workload",
            "search.flows": "flows of a trial",
            "search.bound_s": "time that the busiest link needs for its bytes [s]",
            "search.knobs[].name": "parameter, or ecn: a factor on Kmin and Kmax",
            "search.knobs[].start": "its value at the start",
            "search.knobs[].low": "lowest value tried",
            "search.knobs[].high": "highest value tried",
            "search.knobs[].unit": "s, bytes, bytes/s or 1",
            "search.start.*": "the trial at the start",
            "search.ruled": "the trial with the parameters above, or null where they are those of the start",
            "search.best.*": "the best trial",
            "search.landscape[].values.*": "values of the knobs",
            "search.landscape[].efficiency": "bound over completion time",
            "search.landscape[].completion_s": "when the last flow ended [s], or null",
            "search.landscape[].median_s": "when the median flow ended [s], or null",
            "search.landscape[].peak_queue_bytes": "longest queue [bytes]",
            "search.landscape[].drops": "packets lost",
            "search.landscape[].pauses": "PFC pauses",
            "search.trials": "trials run",
            "search.notes": "what was found",
        },
    ),
    JsonExample(
        "explain NP104 --format json",
        "`netplan explain`",
        {
            "schema": "`netplan/explain/1`",
            "word": "what was asked for",
            "entries[].kind": "term, family, pattern, routing, check, rule, field or topic",
            "entries[].name": "name",
            "entries[].summary": "one line",
            "entries[].text": "Markdown",
            "entries[].facts.*": "further facts by name",
            "entries[].words": "other words under which it is found",
        },
    ),
)

#: Keys that are there only when there is something to tell, and stand in no example's output.
_FAULT_KEYS = {
    "faults[].code": "code of the [check](checks.md)",
    "faults[].severity": "error or warning",
    "faults[].where": "node, link or endpoint",
    "faults[].message": "what is wrong there",
    "faults[].hint": "what to do about it, or null",
}


def json_page() -> str:
    """Return the page of JSON keys.

    Raises
    ------
    ValueError
        A key that a command prints is not described, or one that is described is not printed.
    """
    parts = [_JSON]
    for example in JSON_EXAMPLES:
        printed = _run(shlex.split(example.command)).stdout
        there = list(dict.fromkeys(_key_paths(json.loads(printed), "")))
        described = dict.fromkeys(example.keys, False)
        for path in there:
            key = _described(path, example.keys)
            if key is None:
                msg = f"netplan {example.command}: the key {path} is not described in docs/generate.py"
                raise ValueError(msg)
            described[key] = True
        unused = [key for key, is_used in described.items() if not is_used]
        if unused:
            msg = f"netplan {example.command} does not print {', '.join(unused)}"
            raise ValueError(msg)
        keys = {**example.keys, **(_FAULT_KEYS if example.command.startswith("check") else {})}
        parts += [f"## {example.about.strip('`')}\n", f"For example `netplan {example.command}`.\n"]
        parts.append(table(("key", "meaning"), [(f"`{key}`", text) for key, text in keys.items()]))
    return "\n".join(parts)


def _key_paths(data: Any, prefix: str) -> Iterator[str]:  # noqa: ANN401 -- JSON
    """Yield the paths of all leaves of JSON data."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _key_paths(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        for item in data:
            yield from _key_paths(item, f"{prefix}[]")
    else:
        yield prefix


def _described(path: str, keys: dict[str, str]) -> str | None:
    """Return the entry of ``keys`` that describes a path."""
    if path in keys:
        return path
    return next((key for key in keys if key.endswith(".*") and f"{path}.".startswith(key[:-1])), None)


# ---- Models ------------------------------------------------------------------------------------------------


def schemes_page() -> str:
    """Return the page of routing schemes and transports."""
    flags = {True: "yes", False: "no"}
    rows = [
        (
            f"`{s.name}`",
            s.transport,
            flags[s.uses_qps],
            flags[s.uses_seed],
            _sentence(s.summary),
            _sentence(s.leaves_out),
        )
        for s in SCHEMES
    ]
    head = ("scheme", "transport", "QPs matter", "seed matters", "what it captures", "what it leaves out")
    figures = [
        (
            t.name,
            str(t.header_bytes),
            f"{t.payload_fraction(4096):.4f}",
            f"{t.payload_fraction(1024):.4f}",
            f"{t.switch_latency_s * 1e6:g} µs",
            f"{t.endpoint_latency_s * 1e6:g} µs",
        )
        for t in TRANSPORTS.values()
    ]
    return "\n".join(
        [
            _ROUTING,
            table(head, rows),
            _TRANSPORTS,
            table(
                (
                    "transport",
                    "bytes around a packet",
                    "payload fraction, MTU 4096",
                    "MTU 1024",
                    "a switch",
                    "a message",
                ),
                figures,
            ),
        ]
    )


#: Pages that are written whole.
PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": commands_page,
    "reference/specs.md": specs_page,
    "reference/routing.md": schemes_page,
    "reference/checks.md": checks_page,
    "reference/catalogue.md": catalogue_page,
    "reference/parts.md": parts_page,
    "reference/json.md": json_page,
}


# ---- Outputs of commands in pages --------------------------------------------------------------------------

_BLOCK = re.compile(
    r"^```(?P<info>console|sh|yaml title=\"(?P<title>[^\"]+)\")\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_CUT = re.compile(r" \| (?P<end>head|tail) -n (?P<lines>[1-9][0-9]*)$")
_OURS = ("netplan ", "./run netplan ")


@dataclass(frozen=True)
class Ran:
    """What a command printed."""

    status: int
    stdout: str
    stderr: str


def _run(arguments: list[str]) -> Ran:
    """Run netplan in this process."""
    result = CliRunner().invoke(cli, arguments, prog_name="netplan")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def run_line(line: str) -> Ran:
    """Run a line such as ``netplan show lab-2-leaf | head -n 5``."""
    found = _CUT.search(line)
    words = shlex.split(_CUT.sub("", line))
    ran = _run(words[words.index("netplan") + 1 :])
    if found is None:
        return ran
    lines, count = ran.stdout.splitlines(keepends=True), int(found["lines"])
    kept = lines[:count] if found["end"] == "head" else lines[-count:]
    return Ran(ran.status, "".join(kept), ran.stderr)


def with_outputs(text: str) -> str:
    """Return a page with the outputs of its commands as they are now; runs in the current folder.

    Raises
    ------
    ValueError
        A command of an ``sh`` block fails.
    """

    def block(found: re.Match[str]) -> str:
        if found["title"]:
            Path(found["title"]).write_text(found["body"], encoding="utf-8")
        elif found["info"] == "sh":
            for line in found["body"].splitlines():
                ran = run_line(line) if line.startswith(_OURS) else Ran(0, "", "")
                if ran.status:
                    msg = f"{line}: exit status {ran.status}\n{ran.stderr}"
                    raise ValueError(msg)
        else:
            return f"```console\n{_console(found['body'])}```"
        return found[0]

    return _BLOCK.sub(block, text)


def _console(body: str) -> str:
    """Return a console block with the outputs as they are now."""
    lines: list[str] = []
    is_ours = False
    for line in body.splitlines():
        if line.startswith("$ "):
            is_ours = line.removeprefix("$ ").startswith(_OURS)
            lines.append(line)
            if is_ours:
                ran = run_line(line.removeprefix("$ "))
                output = ran.stdout + (ran.stderr if ran.status else "")
                lines += [out.rstrip() for out in output.splitlines()]
        elif not is_ours:
            lines.append(line)
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _empty_folder() -> Iterator[None]:
    """Work in an empty folder for a while."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def written_pages() -> list[Path]:
    """Return the pages that people write, the README among them."""
    made = {DOCS / name for name in PAGES}
    return [ROOT / "README.md", *(path for path in sorted(DOCS.rglob("*.md")) if path not in made)]


def made_page(name: str) -> str:
    """Return a page that is written whole, as it should be."""
    title, _, rest = PAGES[name]().rstrip().partition("\n\n")
    return f"{title}\n\n{_MADE}{rest}\n"


def picture(name: str) -> bytes:
    """Return a picture as it should be."""
    if name in CHARTS:
        return CHARTS[name]()
    return render_diagram(api.load_fabric(IMAGES[name]), ".svg")


def current() -> Iterator[tuple[Path, bytes]]:
    """Yield every file that this script is responsible for, with its content as it should be."""
    for name in IMAGES:
        yield DOCS / name, picture(name)
    for name in PAGES:
        yield DOCS / name, made_page(name).encode()
    for path in written_pages():
        with _empty_folder():
            yield path, with_outputs(path.read_text(encoding="utf-8")).encode()


def main(arguments: list[str]) -> int:
    """Write what is not current, or only say so."""
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for path, content in current():
        old = path.read_bytes() if path.exists() else b""
        if old == content:
            continue
        stale += 1
        print(f"{'not current' if is_check else 'wrote'}: {path.relative_to(ROOT)}")
        if is_check and path.suffix == ".md":
            changes = difflib.unified_diff(
                old.decode().splitlines(), content.decode().splitlines(), "now", "should be", lineterm="", n=1
            )
            print("\n".join(list(changes)[:40]))
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return int(is_check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
