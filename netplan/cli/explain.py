"""``netplan explain``."""

from __future__ import annotations

import re
import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from netplan.cli import options
from netplan.errors import CatalogError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from netplan.congestion.line_rate import Transport
    from netplan.fabric.checks import CheckPage

#: Version of the JSON.
SCHEMA = "netplan/explain/1"

#: Kinds of words with an example each, in the order in which they are told.
KINDS = {
    "term": "a word of the glossary, such as rail or busbw",
    "family": "a family of fabrics, such as rail-optimized",
    "pattern": "a traffic pattern, such as all-reduce",
    "algorithm": "a schedule of a collective, such as tree",
    "routing": "a routing scheme, such as ecmp",
    "cc": "a congestion control or a parameter of one, such as dcqcn or dcqcn.rate_ai",
    "check": "a check of a fabric or of settings, by code or title, such as NP104 or NP211",
    "rule": "a plug rule of parts, by code, such as PL107",
    "field": "a field of a spec by its dotted path, such as leaf.uplinks or traffic.window",
    "topic": "latency: the values that the models use",
}

#: Widest line of the text form.
_WIDTH = 100

#: A site of a metro domain has a spec of any family: its fields are that family's.
_SITE = "sites.fabric."

_INDEX = re.compile(r"\[[0-9]*\]")


@dataclass(frozen=True)
class Entry:
    """What there is to say of one word."""

    kind: str
    """One of `KINDS`."""
    name: str
    summary: str
    """One line, for lists."""
    text: str
    """Markdown: paragraphs and lists."""
    facts: tuple[tuple[str, str], ...] = ()
    """Further facts, a name and a value each."""
    words: tuple[str, ...] = ()
    """Other words under which it is found."""


@click.command(short_help="Explain a term, check, scheme, pattern or spec field")
@click.argument("word", nargs=-1)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md"]),
    default="table",
    show_default=True,
    help="Form of the output.",
)
@click.option("-o", "--output", type=click.Path(), help="Write here instead of to standard output.")
def command(word: tuple[str, ...], *, form: str, output: str | None) -> None:
    """Explain WORD as the documentation does; without a WORD, list what can be explained.

    A WORD is a term of the glossary, a fabric family, a traffic pattern, a routing scheme, a check's code or
    title, a plug rule's code, a field of a spec by its dotted path, or latency.

    \b
    Examples:
      netplan explain NP104
      netplan explain leaf.uplinks
      netplan explain bus bandwidth
    """  # noqa: D301 -- click looks for the control character \b
    entries = list(all_entries())
    if not word:
        _list_words(entries, form, output)
        return
    wanted = " ".join(word)
    found = find_entries(wanted, entries)
    if form == "json":
        data = {"schema": SCHEMA, "word": wanted, "entries": [_plain(entry) for entry in found]}
        options.emit("json", output, data, list)
    else:
        write = _markdown if form == "md" else _text
        options.emit_text("\n".join(write(entry) for entry in found), output)


def find_entries(word: str, entries: Iterable[Entry]) -> list[Entry]:
    """Return what there is to say of a word.

    Raises
    ------
    CatalogError
        Nothing; with the nearest known word as a hint.
    """
    entries = list(entries)
    key = _key(word).removeprefix(_SITE)
    found = [entry for entry in entries if key in {_key(name) for name in (entry.name, *entry.words)}]
    if found:
        return found
    known = [name for entry in entries for name in (entry.name, *entry.words)]
    near = did_you_mean(word, known)
    hint = f"did you mean {near}? " if near else ""
    raise CatalogError(
        f"there is nothing to explain {word!r}", hint=f"{hint}(netplan explain lists the words)".strip()
    )


def _key(word: str) -> str:
    """Return what makes two spellings of a word one."""
    return _INDEX.sub("", word.strip().casefold()).replace("_", "-").replace(" ", "-")


# ---- All words ---------------------------------------------------------------------------------------------


def all_entries() -> Iterator[Entry]:
    """Yield everything that can be explained, kind by kind."""
    yield from _terms()
    yield from _families()
    yield from _patterns()
    yield from _algorithms()
    yield from _schemes()
    yield from _protocols()
    yield from _checks()
    yield from _rules()
    yield from _fields()
    yield from _topics()


def _terms() -> Iterator[Entry]:
    """Yield the glossary."""
    from netplan.catalog.glossary import load_glossary

    for term in load_glossary():
        summary = " ".join(term.text.partition("\n\n")[0].split())
        yield Entry("term", term.term, summary, term.text, words=term.also)


def _families() -> Iterator[Entry]:
    """Yield the fabric families."""
    from netplan.spec.template import spec_fields
    from netplan.topology import FAMILIES

    for family in FAMILIES:
        names = [
            field.path
            for field in spec_fields("fabric")
            if family.kind in field.kinds and "." not in field.path and field.path != "kind"
        ]
        facts = (
            ("leaves out", family.leaves_out),
            ("keys", ", ".join(names)),
            ("start one", f"netplan new {family.kind} -o my-fabric.yaml"),
        )
        yield Entry("family", family.kind, family.summary, _sentence(family.summary), facts)


def _patterns() -> Iterator[Entry]:
    """Yield the traffic patterns."""
    from netplan.spec.template import spec_fields
    from netplan.traffic import PATTERNS

    for pattern in PATTERNS:
        names = [
            field.path
            for field in spec_fields("traffic")
            if pattern.kind in field.kinds and "." not in field.path and field.path != "kind"
        ]
        factor = pattern.busbw_factor
        facts = (
            ("leaves out", pattern.leaves_out),
            ("bus bandwidth", "none: it is no collective" if factor is None else _factor(pattern.kind)),
            ("keys", ", ".join(names)),
        )
        yield Entry("pattern", pattern.kind, pattern.summary, _sentence(pattern.summary), facts)


def _algorithms() -> Iterator[Entry]:
    """Yield the schedules of all-reduce, all-gather and reduce-scatter."""
    from netplan.traffic.registry import ALGORITHMS

    for found in ALGORITHMS:
        facts = (
            ("of", ", ".join(found.kinds)),
            ("leaves out", found.leaves_out),
            ("run it", f"netplan simulate FABRIC TRAFFIC --algo {found.name}"),
        )
        yield Entry("algorithm", found.name, found.summary, _sentence(found.summary), facts)


def _factor(kind: str) -> str:
    """Return the factor between algorithm and bus bandwidth, as nccl-tests defines it."""
    if kind in ("broadcast", "reduce", "send-recv"):
        return "algbw"
    return "algbw x 2(n-1)/n" if kind == "all-reduce" else "algbw x (n-1)/n"


def _schemes() -> Iterator[Entry]:
    """Yield the routing schemes."""
    from netplan.congestion.line_rate import TRANSPORTS
    from netplan.routing import SCHEMES

    for scheme in SCHEMES:
        transport = TRANSPORTS[scheme.transport]
        format_and_latency = (
            f"{transport.name}: {transport.header_bytes} bytes around each packet, "
            f"{transport.switch_latency_s * 1e6:g} us a switch"
        )
        facts = (
            ("leaves out", scheme.leaves_out),
            ("transport", format_and_latency),
            (
                "queue pairs",
                "each takes its own path" if scheme.uses_qps else "all take one path, or all paths",
            ),
            ("seed", "changes the paths" if scheme.uses_seed else "does not change the paths"),
        )
        yield Entry("routing", scheme.name, scheme.summary, _sentence(scheme.summary), facts)


def _protocols() -> Iterator[Entry]:
    """Yield congestion controls and their parameters."""
    from netplan.congestion.cc.registry import PROTOCOLS

    for cc in PROTOCOLS:
        facts = [
            ("leaves out", cc.leaves_out),
            ("reads", ", ".join(cc.signals) or "nothing"),
            ("acts on", cc.acts_on),
        ]
        for each in cc.parameters:
            facts.append((each.name, f"{_amount(each.default, each.unit)}; {each.meaning}"))
            own = (
                ("default", _amount(each.default, each.unit)),
                ("range", f"{_amount(each.low, each.unit)} to {_amount(each.high, each.unit)}"),
                ("source", each.source),
            )
            yield Entry("cc", f"{cc.name}.{each.name}", each.meaning, _sentence(each.meaning), own)
        yield Entry("cc", cc.name, cc.summary, _sentence(cc.summary), tuple(facts))
    text = "Rates are max-min fair at once, and stay so: what an ideal congestion control would reach."
    yield Entry("cc", "max-min", text.rstrip("."), text, (("leaves out", "queues, pauses, losses, time"),))


def _amount(value: float, unit: str) -> str:
    """Return a parameter's value with its unit."""
    from netplan.units import format_rate, format_size, format_time

    write = {"s": format_time, "bytes": format_size, "bytes/s": format_rate}.get(unit)
    return write(value) if write else f"{value:g}"


def _checks() -> Iterator[Entry]:
    """Yield the checks of fabrics and of settings."""
    from netplan.congestion.checks import SETTING_CHECKS
    from netplan.fabric.checks import CHECKS
    from netplan.fabric.classify import PAGES

    checks: list[CheckPage] = [*CHECKS.values(), *PAGES, *SETTING_CHECKS.values()]
    for check in checks:
        facts = (("looks at", check.what), ("why", check.why), ("remedy", check.remedy))
        yield Entry("check", check.code, check.title, _sentence(check.title), facts, words=(check.title,))


def _rules() -> Iterator[Entry]:
    """Yield the plug rules of parts."""
    from netplan.catalog.rules import RULES

    for rule in RULES.values():
        yield Entry("rule", rule.code, rule.title, _sentence(rule.title), (("source", rule.source),))


def _fields() -> Iterator[Entry]:
    """Yield the fields of specs."""
    from netplan.spec.template import spec_fields

    for field in (*spec_fields("fabric"), *spec_fields("traffic")):
        default = {None: "required", "null": "none: not set, or it follows from other keys"}.get(
            field.default, field.default
        )
        facts = (
            ("accepts", field.accepts),
            ("default", str(default)),
            ("in", ", ".join(field.kinds)),
        )
        prefixed = f"{field.what}.{field.path}"
        text = field.description or f"The {field.path}."
        yield Entry(
            "field", field.name, text, text, facts, words=tuple({prefixed, field.path} - {field.name})
        )


def _topics() -> Iterator[Entry]:
    """Yield what is computed from the models' constants."""
    from netplan.congestion.line_rate import DEFAULT_MTU, SCALE_UP_LATENCY_S, TRANSPORTS
    from netplan.units import FIBRE_DELAY_S_PER_M

    facts = [
        (transport.name, _transport_in_words(transport, transport.payload_fraction(DEFAULT_MTU), DEFAULT_MTU))
        for transport in TRANSPORTS.values()
    ]
    facts += [
        ("cables", f"{FIBRE_DELAY_S_PER_M * 1e9:g} us per km"),
        ("scale-up hop", f"{SCALE_UP_LATENCY_S * 1e6:g} us"),
    ]
    text = (
        "One-way latency of a message = propagation on its cables + a time per switch + a time per message "
        "for both NICs and hosts. The values below are the defaults of each transport; `latency.switch` and "
        "`latency.endpoint` of a fabric spec replace them. The transport goes with the routing scheme."
    )
    yield Entry("topic", "latency", "the latencies that the models use", text, tuple(facts))


def _transport_in_words(transport: Transport, fraction: float, mtu: int) -> str:
    """Return latencies and payload fraction of a transport in words."""
    return (
        f"{transport.switch_latency_s * 1e6:g} us a switch, {transport.endpoint_latency_s * 1e6:g} us "
        f"a message; payload line rate {fraction:.4f} of the link rate at MTU {mtu}"
    )


def _sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


# ---- Output ------------------------------------------------------------------------------------------------


def _plain(entry: Entry) -> dict[str, object]:
    """Return an entry as plain data."""
    data = asdict(entry)
    return {**data, "facts": dict(entry.facts), "words": list(entry.words)}


def _markdown(entry: Entry) -> str:
    """Return an entry as Markdown."""
    facts = "".join(f"- **{name}**: {value}\n" for name, value in entry.facts)
    return f"### {entry.name}\n\n*{entry.kind}*\n\n{entry.text}\n" + (f"\n{facts}" if facts else "")


def _text(entry: Entry) -> str:
    """Return an entry as text for people: the Markdown's paragraphs filled, its marks for code left out."""
    lines = [f"{entry.name} ({entry.kind})"]
    for paragraph in entry.text.split("\n\n"):
        rows = paragraph.replace("`", "").splitlines()
        is_laid_out = any(row.lstrip().startswith(("- ", "* ", "|", "    ")) for row in rows)
        lines.append("")
        lines += [f"  {row}" for row in rows] if is_laid_out else _fill(" ".join(rows), "  ", "  ")
    if entry.facts:
        width = max(len(name) for name, _ in entry.facts) + 2
        lines.append("")
        for name, value in entry.facts:
            lines += _fill(value, f"  {name + ':':<{width}}", " " * (width + 2))
    return "\n".join(lines) + "\n"


def _fill(text: str, first: str, other: str) -> list[str]:
    """Return text in lines of bearable length."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _list_words(entries: list[Entry], form: str, output: str | None) -> None:
    """List the kinds of words, and the words of each."""
    from netplan.report.tables import Table

    words: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for entry in entries:
        if entry.name not in words[entry.kind]:
            words[entry.kind].append(entry.name)
    data = {
        "schema": SCHEMA,
        "kinds": [{"kind": kind, "about": about, "words": words[kind]} for kind, about in KINDS.items()],
    }
    tables = [
        Table(("kind", "words", "about"), tuple((k, len(words[k]), about) for k, about in KINDS.items()))
    ]
    lists = "\n".join(
        "\n".join(_fill(", ".join(words[kind]), f"{kind}: ", "  "))
        for kind in KINDS
        if kind not in {"field", "cc"}
    )
    if form == "table":
        from netplan.report.tables import render_tables

        options.emit_text(f"{render_tables(tables, 'table')}\n{lists}\n", output)
    else:
        options.emit(form, output, data, lambda: tables)
