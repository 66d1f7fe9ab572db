r"""Graphviz DOT, and the prescriptive topology (PTM) dot of Cumulus Linux, which is DOT with ports.

Written: ``"leaf-0" -- "spine-0" [speed="400G" ports="swp9 swp1"]``, for PTM ``"leaf-0":"swp9" --
"spine-0":"swp1"``. PTM (``ptmd``) holds such a file against what LLDP sees; ports are called as Cumulus does
(``swpN``), those of hosts ``ethN``. Read: graphs and digraphs, with subgraphs, node lists (``a -- {b c}``),
ports, attributes, comments; HTML labels are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from netplan.fabric.convert import node_names
from netplan.interop.plain_graph import PlainEdge, PlainNode, cable_attributes, node_attributes, read_plain
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import MOST_THINGS, Faults, shown
from netplan.interop.subnet import Subnet
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.fabric import Fabric
    from netplan.interop.graph import ReadGraph
    from netplan.interop.source import Source

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
    |"(?P<quoted>(?:[^"\\]|\\.)*)"
    |(?P<word>[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*|-?(?:\.\d+|\d+(?:\.\d*)?))
    |(?P<arrow>--|->)
    |(?P<mark>[{}\[\];,:=])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MOST_DEPTH = 100
_COMPASS = {"n", "ne", "e", "se", "s", "sw", "w", "nw", "c", "_"}


def quote(text: str) -> str:
    r"""Return a text as DOT quotes it.

    >>> quote('a"b')
    '"a\\"b"'
    """
    plain = "".join(c if c.isprintable() else " " for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write DOT with all attributes."""
    return {"fabric.dot": _text(fabric, is_ptm=False).encode()}


def write_ptm(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a PTM topology."""
    return {"topology.dot": _text(fabric, is_ptm=True).encode()}


def _text(fabric: Fabric, *, is_ptm: bool) -> str:
    """Return the graph."""
    names = node_names(fabric)
    subnet = Subnet.of(fabric)
    lines = [f"graph {quote(fabric.name)} {{"]
    if is_ptm:
        lines.append("  // Written by netplan. ptmd reads the part of the switch it runs on.")
    else:
        for name, data in zip(names, node_attributes(fabric), strict=True):
            of = " ".join(f"{key}={quote(str(value))}" for key, value in data.items())
            lines.append(f"  {quote(name)} [{of}]")
    links = fabric.links
    nic = [0] * fabric.n_nodes
    for cable, data in enumerate(cable_attributes(fabric)):
        ends = []
        for link in (2 * cable, 2 * cable + 1):
            node = int(links.src[link])
            if fabric.nodes.tier[node] == 0:
                nic[node] += 1
                ends.append((names[node], f"eth{nic[node]}"))
            else:
                ends.append((names[node], f"swp{subnet.port[link]}"))
        speed = f"speed={quote(format_rate(data['capacity']))}"
        if is_ptm:
            lines.append(f"  {':'.join(map(quote, ends[0]))} -- {':'.join(map(quote, ends[1]))} [{speed}]")
        else:  # Graphviz takes what follows a colon for a field of a record
            of = " ".join(f"{key}={quote(str(value))}" for key, value in data.items())
            ports = f"ports={quote(f'{ends[0][1]} {ends[1][1]}')}"
            lines.append(f"  {quote(ends[0][0])} -- {quote(ends[1][0])} [{speed} {of} {ports}]")
    return "\n".join([*lines, "}"]) + "\n"


# ---- reading -----------------------------------------------------------------------------------


class _Token(NamedTuple):
    text: str
    is_mark: bool
    line: int


@dataclass
class _Parser:
    """Reads one graph; faults that leave no way to go on end it."""

    source: Source
    faults: Faults
    tokens: list[_Token]
    at: int = 0
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    edges: list[PlainEdge] = field(default_factory=list)

    def fail(self, message: str) -> None:
        """End with a fault at the token that is next.

        Raises
        ------
        SpecError
            Always.
        """
        line = self.tokens[min(self.at, len(self.tokens) - 1)].line if self.tokens else 1
        self.faults.add(line, message)
        self.faults.refuse()

    def peek(self) -> _Token:
        """Return the next token; nothing but a fault when the file ends."""
        if self.at >= len(self.tokens):
            self.fail("the file ends within the graph: is it whole?")
        return self.tokens[self.at]

    def take(self, *marks: str) -> bool:
        """Take the next token when it is one of these marks or words."""
        token = self.peek()
        if token.text in marks and (token.is_mark or token.text.isalpha()):
            self.at += 1
            return True
        return False

    def word(self, what: str) -> str:
        """Take a word."""
        token = self.peek()
        if token.is_mark:
            self.fail(f"{what} is expected, not {shown(token.text)}")
        self.at += 1
        return token.text

    def graph(self) -> None:
        """Read the graph."""
        self.take("strict")
        if not self.tokens or self.peek().text.casefold() not in ("graph", "digraph"):
            self.fail("is no DOT: it begins with graph or digraph")
        self.at += 1
        if not self.peek().is_mark:
            self.word("the graph's name")
        if not self.take("{"):
            self.fail("{ is expected after the graph's name")
        self.statements({}, {}, 0)

    def statements(self, node_of: dict[str, str], edge_of: dict[str, str], depth: int) -> list[str]:
        """Read up to the closing brace; return the nodes within."""
        if depth > _MOST_DEPTH:
            self.fail(f"has subgraphs over {_MOST_DEPTH} deep")
        node_of, edge_of = dict(node_of), dict(edge_of)
        inside: list[str] = []
        while not self.take("}"):
            if self.take(";", ","):
                continue
            token = self.peek()
            follows = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else token
            if not token.is_mark and token.text in ("graph", "node", "edge") and follows.text == "[":
                self.at += 1
                found = self.attributes()
                {"graph": {}, "node": node_of, "edge": edge_of}[token.text].update(found)
            elif not token.is_mark and follows.is_mark and follows.text == "=":
                self.at += 2
                self.word("a value")
            else:
                inside += self.chain(node_of, edge_of, depth)
        return inside

    def chain(self, node_of: dict[str, str], edge_of: dict[str, str], depth: int) -> list[str]:
        """Read a node, or nodes joined by edges."""
        line = self.peek().line
        ends = [self.end(node_of, edge_of, depth)]
        while self.take("--", "->"):
            ends.append(self.end(node_of, edge_of, depth))
        found = self.attributes() if self.at < len(self.tokens) and self.peek().text == "[" else {}
        if len(ends) == 1:
            for key, _ in ends[0]:
                self.nodes[key] |= found
        of = {**edge_of, **found}
        for left, right in pairwise(ends):
            if len(self.edges) + len(left) * len(right) > MOST_THINGS:
                self.fail(f"has over {MOST_THINGS:,} edges")
            self.edges += [
                PlainEdge(a, b, of, line, a_port, b_port) for a, a_port in left for b, b_port in right
            ]
        return [key for end in ends for key, _ in end]

    def end(self, node_of: dict[str, str], edge_of: dict[str, str], depth: int) -> list[tuple[str, int]]:
        """Read one end of an edge: a node with a port, or a subgraph; return nodes and port numbers."""
        token = self.peek()
        if not token.is_mark and token.text == "subgraph":
            self.at += 1
            if not self.peek().is_mark:
                self.word("the subgraph's name")
        if self.take("{"):
            members = self.statements(node_of, edge_of, depth + 1)
            return [(key, 0) for key in dict.fromkeys(members)]
        line = self.peek().line
        key = self.word("a node")
        port = 0
        while self.take(":"):
            text = self.word("a port")
            digits = re.findall(r"\d{1,6}", text)
            port = int(digits[-1]) if digits and text not in _COMPASS else port
        if key not in self.nodes:
            self.nodes[key] = dict(node_of)
            self.lines[key] = line
        return [(key, port)]

    def attributes(self) -> dict[str, str]:
        """Read lists of attributes."""
        found: dict[str, str] = {}
        while self.at < len(self.tokens) and self.take("["):
            while not self.take("]"):
                if self.take(";", ","):
                    continue
                key = self.word("an attribute")
                found[key] = self.word("a value") if self.take("=") else "true"
        return found


def _tokens(source: Source, faults: Faults) -> list[_Token]:
    """Return the tokens of a file."""
    return list(_token_stream(source, faults))


def _token_stream(source: Source, faults: Faults) -> Iterator[_Token]:
    text, at, line = source.text, 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None and text[at] == "<":
            end = _html_end(text, at)
            if end is None:
                faults.add(line, "an HTML label does not end")
                faults.refuse()
            assert end is not None
            yield _Token("", False, line)
            line += text.count("\n", at, end)
            at = end
            continue
        if found is None:
            faults.add(line, f"is no DOT: {shown(text[at : at + 20])}")
            faults.refuse()
        assert found is not None
        if found["quoted"] is not None:
            quoted = found["quoted"]
            if "\\" in quoted:
                # Line breaks of labels are spaces of a name; a backslash at a line's end joins lines.
                quoted = re.sub(r"\\([nlr])", " ", quoted.replace("\\\n", "").replace("\\\\", "\0"))
                quoted = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL).replace("\0", "\\")
            yield _Token(quoted, False, line)
        elif found["word"] is not None:
            yield _Token(found["word"], False, line)
        elif found["space"] is None:
            yield _Token(found[0], True, line)
        line += text.count("\n", at, found.end())
        at = found.end()


def _html_end(text: str, at: int) -> int | None:
    """Return where an HTML label ends."""
    depth = 0
    for found in re.compile("[<>]").finditer(text, at):
        depth += 1 if found[0] == "<" else -1
        if not depth:
            return found.end()
    return None


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read DOT.

    Raises
    ------
    SpecError
        It is no DOT.
    """
    faults = Faults(source)
    parser = _Parser(source, faults, _tokens(source, faults))
    parser.graph()
    nodes = [
        PlainNode(key, {k: v for k, v in of.items() if k != "name"}, parser.lines[key])
        for key, of in parser.nodes.items()
    ]
    return read_plain(source, nodes, parser.edges, options)


add_format(
    "dot",
    __name__,
    summary="Graphviz DOT with ports and attributes",
    checked_by="Graphviz dot",
    leaves_out="structure (paths are walked after reading), GUIDs; planes when read",
    suffix=".dot",
    read=read,
    write=write,
)
add_format(
    "ptm",
    __name__,
    summary="topology of Cumulus Linux's ptmd: which port must see which, checked by LLDP on the switch",
    checked_by="Graphviz dot",
    leaves_out="lengths, roles, GPUs",
    suffix=".dot",
    read=read,
    write=write_ptm,
)
