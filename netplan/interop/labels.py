"""Cable lists as CSV: labels for those who pull the cables, and lists of theirs read.

Written: a row per cable with both ends (node, port), the text of the label at either end, speed, length,
kind, and sites. Cells that a spreadsheet would take for a formula begin with an apostrophe (OWASP, CSV
injection); names are plain already, as of `netplan.interop.ports`.

Read: any CSV with a head row that names two ends; separators comma, semicolon or tab. Head names are
matched without case and punctuation: ``a``, ``src``, ``source``, ``from``, ``a device``, ``side_a_device``
(NetBox), ...
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.interop import roles
from netplan.interop.graph import ReadGraph
from netplan.interop.plain_graph import PlainEdge, PlainNode, read_plain
from netplan.interop.ports import plain_names, plugs
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import Faults, shown

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source

_HEAD = [
    "cable",
    "a",
    "a_port",
    "a_role",
    "a_site",
    "b",
    "b_port",
    "b_role",
    "b_site",
    "speed_gbps",
    "length_m",
    "kind",
    "label_a",
    "label_b",
]

#: Names of columns, folded to letters and digits.
_COLUMNS = {
    "a": "a src source from adevice aname sourcedevice srcdevice fromdevice sideadevice sourcename "
    "localdevice",
    "b": "b dst dest destination to bdevice bname target destdevice dstdevice destinationdevice todevice "
    "sidebdevice targetname remotedevice",
    "a_port": "aport srcport sourceport fromport ainterface sideaname srcinterface localport sourceinterface",
    "b_port": "bport dstport destport destinationport toport binterface sidebname targetport dstinterface "
    "remoteport destinationinterface",
    "a_role": "arole srcrole sourcerole akind atype",
    "b_role": "brole dstrole destinationrole bkind btype targetrole",
    "speed": "speed rate bandwidth linkspeed speedgbps rategbps gbps speedgbs bandwidthgbps",
    "length": "length lengthm cablelength metres meters cablelengthm",
    "kind": "kind linkkind",
}
_FOUND_BY = {name: column for column, names in _COLUMNS.items() for name in names.split()}
_GBPS = {"speedgbps", "rategbps", "gbps", "speedgbs", "bandwidthgbps"}


def cell(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("leaf-0")
    ("'=1+1", 'leaf-0')
    """
    return "'" + text if text[:1] in tuple("=+-@\t\r") and text else text


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write ``cables.csv``."""
    names, nodes = plain_names(fabric), fabric.nodes
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_HEAD)
    for plug in plugs(fabric):
        ends = []
        for node, port in ((plug.a, plug.a_port), (plug.b, plug.b_port)):
            site = fabric.site_names[nodes.site[node]]
            ends += [cell(names[node]), port, TIER_NAMES[nodes.tier[node]], cell(site)]
        a, b = f"{names[plug.a]}:{plug.a_port}", f"{names[plug.b]}:{plug.b_port}"
        speed = repr(plug.rate * 8 / 1e9).removesuffix(".0")
        length, kind = repr(plug.length).removesuffix(".0"), LINK_KINDS[fabric.links.kind[2 * plug.cable]]
        labels = [cell(f"{a} > {b}"), cell(f"{b} > {a}")]
        out.writerow([f"C{plug.cable + 1:06}", *ends, speed, length, kind, *labels])
    return {"cables.csv": text.getvalue().encode()}


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a list of cables.

    Raises
    ------
    SpecError
        No head row with two ends, rows without them, numbers that are none; all are listed.
    """
    faults = Faults(source)
    first = next(i for i, line in enumerate(source.lines) if line.strip())
    head = source.lines[first]
    separator = max(",;\t", key=head.count)
    column: dict[str, int] = {}
    gbps = False
    try:
        titles = next(csv.reader([head], delimiter=separator), [])
    except csv.Error as error:
        faults.add(first + 1, f"is no row of a list: {error}", "names of columns, separated by commas")
        faults.refuse()
    for place, title in enumerate(titles):
        folded = re.sub(r"[^a-z0-9]", "", title.casefold())
        if folded in _FOUND_BY:
            column.setdefault(_FOUND_BY[folded], place)
            gbps |= folded in _GBPS
    if not {"a", "b"} <= set(column):
        faults.add(
            first + 1,
            f"has no columns for both ends of a cable: {shown(head)}",
            "name them a and b, or source and destination; and a_port, b_port, speed, length",
        )
        faults.refuse()
    nodes: dict[str, PlainNode] = {}
    edges: list[PlainEdge] = []
    ports: dict[tuple[str, str], int] = {}
    reader = csv.reader(source.lines[first + 1 :], delimiter=separator)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            faults.add(first + 1 + reader.line_num, f"is no row of CSV: {error}")
            continue
        line = first + 1 + reader.line_num
        if any(value.strip() for value in row) and not row[0].lstrip().startswith("#"):
            _read_row(row, column, line, gbps, (nodes, edges, ports), faults)
    faults.refuse()
    return read_plain(source, list(nodes.values()), edges, options)


def _read_row(
    row: list[str],
    column: dict[str, int],
    line: int,
    gbps: bool,  # noqa: FBT001
    into: tuple[dict[str, PlainNode], list[PlainEdge], dict[tuple[str, str], int]],
    faults: Faults,
) -> None:
    """Read one cable."""
    nodes, edges, ports = into
    of = {
        key: row[place].strip().removeprefix("'") if place < len(row) else "" for key, place in column.items()
    }
    if not of["a"] or not of["b"]:
        faults.add(line, "a cable lacks an end")
        return
    told: dict[str, str] = {}
    for key in ("speed", "length"):
        value = of.get(key, "")
        if not value:
            continue
        plain = re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,20})?(e-?[0-9]{1,2})?", value) is not None
        told[key] = f"{value} {'Gb/s' if gbps else ''}".strip() if plain and key == "speed" else value
        if plain and key == "speed":
            told |= {"capacity": repr(float(value) * 1e9 / 8)}
            del told["speed"]
        good = roles.rate(told) if key == "speed" else roles.length(told)
        if good is None or (key == "speed" and good <= 0):
            faults.add(line, f"the {key} {shown(value)} is none", "400G or 3 m; a plain number is Gb/s or m")
            return
    if of.get("kind") in LINK_KINDS:
        told["kind"] = of["kind"]
    numbers = []
    for end in ("a", "b"):
        name, port, role = of[end], of.get(f"{end}_port", ""), of.get(f"{end}_role", "")
        nodes.setdefault(name, PlainNode(name, {"name": name, **({"role": role} if role else {})}, line))
        if port:
            before = ports.setdefault((name, port), line)
            if before != line:
                faults.add(line, f"port {shown(port)} of {shown(name)} has a cable already, in line {before}")
        found = re.findall(r"[0-9]{1,9}", port[:255])
        numbers.append(int(found[-1]) if found else 0)
    edges.append(PlainEdge(of["a"], of["b"], told, line, *numbers))


add_format(
    "cables-csv",
    __name__,
    summary="list of cables as CSV: labels of both ends, speed, length; read: any CSV with two ends in a row",
    checked_by="round trip by test; Python's csv",
    leaves_out="GPUs, radixes, pods, planes; sites when read",
    suffix=".csv",
    read=read,
    write=write,
)
