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

from docs import charts, measured, trained  # noqa: E402 -- the checkout that this file is in
from docs.json_keys import FAULT_KEYS, JSON_EXAMPLES  # noqa: E402
from netplan import api  # noqa: E402
from netplan.catalog.parts import TABLES, shipped_catalogue  # noqa: E402
from netplan.catalog.paths import Kind, shipped_folder  # noqa: E402
from netplan.catalog.rules import RULES  # noqa: E402
from netplan.catalog.shipped import list_shipped  # noqa: E402
from netplan.cli.main import COMMANDS, cli  # noqa: E402
from netplan.congestion.checks import SETTING_CHECKS  # noqa: E402
from netplan.congestion.line_rate import TRANSPORTS  # noqa: E402
from netplan.fabric.checks import CHECKS, CheckPage  # noqa: E402
from netplan.fabric.classify import PAGES as FOUND_CHECKS  # noqa: E402
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
    "images/distance.svg": "metro-16",
    "images/dragonfly-72.svg": "dragonfly-72",
    "images/metro-star-3site.svg": "metro-star-3site",
}

#: Pictures that are charts of results instead of diagrams.
CHARTS: dict[str, Callable[[], bytes]] = {
    "images/dragonfly-routings.svg": charts.dragonfly_routings,
    "images/distance.svg": charts.distances,
}

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


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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


def _command(command: click.Command, context: click.Context, level: str = "##") -> str:
    """Return the section of one command, with those of its own commands below it."""
    text, _, examples = inspect.cleandoc(command.help or "").replace("\\b", "\b").partition("\b\n")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    path = context.command_path
    parts = [f"{level} {path}\n", f"```text\n{usage}\n```\n", text]
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    rows = [(_spelling(option, context), _help(option, context)) for option in options]
    if rows:
        parts.append(table(("option", "meaning"), rows))
    lines = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    parts.append("```sh\n" + "\n".join(lines) + "\n```\n")
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            own = click.Context(each, info_name=name, parent=context)
            parts.append(_command(each, own, f"{level}#"))
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
    checks: list[CheckPage] = [*CHECKS.values(), *FOUND_CHECKS, *SETTING_CHECKS.values()]
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
    sources: list[tuple[str, ...]] = []
    for _, part in catalogue.parts():
        for name in type(part).model_fields:
            figure = getattr(part, name)
            if isinstance(figure, Figure | PriceSpec):
                sources.append((f"`{part.name}`", name, figure.confidence, figure.date, figure.source))
    parts.append(table(("part", "figure", "confidence", "date", "source"), sources))
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


def json_page() -> str:
    """Return the page of JSON keys.

    Raises
    ------
    ValueError
        A key that a command prints is not described, or one that is described is not printed.
    """
    parts = [_JSON]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some commands write files
        outputs = [_run(shlex.split(example.command)).stdout for example in JSON_EXAMPLES]
    for example, printed in zip(JSON_EXAMPLES, outputs, strict=True):
        there = list(dict.fromkeys(_key_paths(json.loads(printed), "")))
        described = dict.fromkeys(example.keys, False)
        for path in there:
            key = _described(path, example.keys)
            if key is None:
                msg = f"netplan {example.command}: the key {path} is not described in docs/json_keys.py"
                raise ValueError(msg)
            described[key] = True
        unused = [key for key, is_used in described.items() if not is_used]
        if unused:
            msg = f"netplan {example.command} does not print {', '.join(unused)}"
            raise ValueError(msg)
        keys = {**example.keys, **(FAULT_KEYS if example.command.startswith("check") else {})}
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
    "reference/measurements.md": measured.page,
    "reference/training-validation.md": lambda: trained.training_page(table),
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
