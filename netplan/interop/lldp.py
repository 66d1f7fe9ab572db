r"""LLDP: what ``lldpcli show neighbors -f json`` says on every switch, read one answer after another.

An answer does not say who gave it: each is put below the name of its switch, ``{"leaf-0": {"lldp": ...}}``,
or wrapped by hand as ``(echo "{\"$(hostname)\":"; lldpcli show neighbors -f json; echo "}")``. Both ends
may tell of a cable. A neighbour whose chassis is no bridge or router, or that gave no answer and says
nothing, is a host.

Format: lldpd's JSON (``json`` and ``json0``), lldpcli(8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.json_text import Document, read_json
from netplan.interop.registry import ReadOptions, add_format, speed_remark
from netplan.interop.source import Faults, shown

if TYPE_CHECKING:
    from netplan.interop.source import Source

_SWITCHING = {"bridge", "router"}


@dataclass(frozen=True)
class _Seen:
    """A neighbour at a port."""

    line: int
    switch: str
    port: str
    far: str
    far_port: str


def _list(value: Any) -> list[Any]:  # noqa: ANN401 -- whatever the file has
    """Return a list: lldpd writes one element without its list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:  # noqa: ANN401 -- whatever the file has
    """Return a text, of ``json`` or of ``json0``, which wraps it."""
    while isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("value", "")
    return value if isinstance(value, str) else ""


def _interfaces(
    document: Document,
    answer: Any,  # noqa: ANN401 -- whatever the file has
    faults: Faults,
) -> list[tuple[str, dict[str, Any]]]:
    """Return the ports of an answer and what is behind each."""
    if not isinstance(answer, dict) or "lldp" not in answer:
        faults.add(document.line(), "is no answer of lldpcli: it has no lldp")
        return []
    found = []
    for each in _list(answer["lldp"]):
        for row in _list(each.get("interface") if isinstance(each, dict) else None):
            if not isinstance(row, dict):
                faults.add(document.line("interface"), f"an interface is {shown(str(row))}, not a map")
            elif isinstance(row.get("name"), str):  # json0
                found.append((row["name"], row))
            else:
                found += [(port, of) for port, of in row.items() if isinstance(of, dict)]
    return found


def _chassis(of: dict[str, Any]) -> tuple[str, set[str]]:
    """Return name and enabled abilities of a neighbour."""
    for chassis in _list(of.get("chassis")):
        if not isinstance(chassis, dict):
            continue
        name = _text(chassis.get("name"))
        if not name and chassis and "id" not in chassis:
            name, chassis = next(iter(chassis.items()))  # noqa: PLW2901 -- json puts it below its name
            if not isinstance(chassis, dict):
                continue
        name = name or _text(chassis.get("id"))
        abilities = {
            str(each.get("type", "")).casefold()
            for each in _list(chassis.get("capability"))
            if isinstance(each, dict) and each.get("enabled") is True
        }
        return name, abilities
    return "", set()


def read(source: Source, options: ReadOptions) -> ReadGraph:  # noqa: C901 -- a fault of each kind
    """Read the neighbours of several switches.

    Raises
    ------
    SpecError
        Not JSON, no answers of lldpcli, or ends of a cable that contradict each other; all are listed.
    """
    faults, graph = Faults(source), ReadGraph(source)
    own: dict[str, int] = {}
    able: dict[str, set[str]] = {}
    seen: list[_Seen] = []
    nameless = 0
    for document in read_json(source):
        if not isinstance(document.data, dict) or "lldp" in document.data:
            faults.add(
                document.line(),
                "does not say which switch answered",
                'put each answer below its name: {"leaf-0": {"lldp": ...}}',
            )
            continue
        for switch, answer in document.data.items():
            line = document.line(switch)
            if switch in own:
                faults.add(line, f"switch {shown(switch)} answers twice, first in line {own[switch]}")
                continue
            own[switch] = line
            for port, of in _interfaces(document, answer, faults):
                far, abilities = _chassis(of)
                about = next((each for each in _list(of.get("port")) if isinstance(each, dict)), {})
                far_port = _text(about.get("id")) or _text(about.get("descr"))
                if not far:
                    nameless += 1
                    continue
                able.setdefault(far, set()).update(abilities)
                seen.append(_Seen(document.line(switch, port), switch, port, far, far_port))
    faults.refuse()
    _cables(graph, seen, own, faults, options)
    faults.refuse()
    # A host may bridge for its containers: what answered, or has an answering neighbour's tier, is known.
    for name in dict.fromkeys([*own, *(each.far for each in seen)]):
        is_host = name not in own and not (able[name] & _SWITCHING and "station" not in able[name])
        graph.nodes.append(ReadNode(name, name, is_host, own.get(name)))
    silent = sum(name not in own for name in able)
    if nameless:
        graph.remarks.append(f"left out: {nameless:,} neighbour(s) without a name")
    if silent:
        graph.remarks.append(
            f"{silent:,} neighbour(s) gave no answer; hosts: those that neither bridge nor route"
        )
    if graph.cables:
        graph.remarks.append(speed_remark(options, len(graph.cables)))
    return graph


def _cables(
    graph: ReadGraph, seen: list[_Seen], own: dict[str, int], faults: Faults, options: ReadOptions
) -> None:
    """Add every cable once."""
    by_end: dict[tuple[str, str], _Seen] = {}
    for each in seen:
        first = by_end.setdefault((each.switch, each.port), each)
        if first is not each:
            faults.add(
                each.line,
                f"{shown(each.switch)} {shown(each.port)} has two neighbours, "
                f"{shown(first.far)} and {shown(each.far)}",
                "is a switch between them that does not speak LLDP?",
            )
    done: set[tuple[str, str]] = set()
    one_sided = 0
    for end, each in by_end.items():
        if end in done:
            continue
        far_end = each.far, each.far_port
        other = by_end.get(far_end)
        if other is not None and (other.far, other.far_port) != end:
            faults.add(
                each.line,
                f"{shown(each.switch)} {shown(each.port)} sees {shown(each.far)} {shown(each.far_port)}, "
                f"which sees {shown(other.far)} {shown(other.far_port)} (line {other.line})",
            )
            continue
        one_sided += other is None and each.far in own
        done |= {end, far_end} if other is not None else {end}
        a_port, b_port = (_number(port) for port in (each.port, each.far_port))
        graph.cables.append(
            ReadCable(each.switch, each.far, options.speed, each.line, a_port=a_port, b_port=b_port)
        )
    if one_sided:
        graph.remarks.append(f"{one_sided:,} cable(s) that one end only sees")


def _number(port: str) -> int:
    found = re.findall(r"[0-9]{1,9}", port[:255])
    return int(found[-1]) if found else 0


add_format(
    "lldp",
    __name__,
    summary='neighbours as lldpcli prints them (-f json), each below its switch: {"leaf-0": {"lldp": ...}}',
    checked_by="round trip with an own writer, by test",
    leaves_out="speeds, lengths, GPUs: LLDP as lldpcli shows it has none",
    suffix=".json",
    read=read,
)
