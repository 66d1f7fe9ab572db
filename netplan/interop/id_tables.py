"""What SimAI's and HPCC's topology files share: numbered nodes, a line of switches, a line per link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import UnitError
from netplan.interop.source import Faults, shown
from netplan.units import FIBRE_DELAY_S_PER_M, parse_rate, parse_time

if TYPE_CHECKING:
    from netplan.interop.source import Source

#: Most nodes of such a file.
MOST_NODES = 2_000_000

#: Lengths from delays are rounded to this [m]: the files have decimal nanoseconds.
_LENGTH_STEP = 1e-3


@dataclass(frozen=True)
class IdLink:
    """A link line."""

    line: int
    a: int
    b: int
    rate: float
    delay: float

    @property
    def length(self) -> float:
        """Length of fibre of that delay [m]."""
        return round(self.delay / FIBRE_DELAY_S_PER_M / _LENGTH_STEP) * _LENGTH_STEP


def read_numbers(source: Source, faults: Faults, count: int, example: str) -> tuple[list[str], int]:
    """Return the words of the first line, of which ``count`` must be whole numbers, and the place after it.

    Raises
    ------
    SpecError
        The first line is another.
    """
    at = next((i for i, line in enumerate(source.lines) if line.strip()), 0)
    words = source.lines[at].split()
    if len(words) < count or not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words[:count]):
        faults.add(
            at + 1, f"is not the first line of such a file: {shown(source.lines[at])}", f"it is: {example}"
        )
        faults.refuse()
    if int(words[0]) > MOST_NODES:
        faults.add(at + 1, f"has {words[0]} nodes; at most {MOST_NODES:,} are read")
        faults.refuse()
    return words, at + 1


def read_switch_ids(
    source: Source, faults: Faults, at: int, n_nodes: int, count: int
) -> tuple[list[int], int]:
    """Return the ids of the switches and the place after them; they may run over several lines.

    Raises
    ------
    SpecError
        They are not as many as the first line says, or no ids of nodes.
    """
    ids: list[int] = []
    start = at
    while len(ids) < count and at < len(source.lines):
        for word in source.lines[at].split():
            if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) >= n_nodes:
                faults.add(at + 1, f"has the switch {shown(word)}: ids are 0 to {n_nodes - 1}")
                faults.refuse()
            ids.append(int(word))
        at += 1
    if len(ids) != count or len(set(ids)) != count:
        faults.add(start + 1, f"names {len(set(ids)):,} switches, but the first line says {count:,}")
        faults.refuse()
    return ids, at


def read_links(source: Source, faults: Faults, at: int, n_nodes: int, count: int) -> list[IdLink]:
    """Return the links.

    Raises
    ------
    SpecError
        Lines that are none, or not as many as the first line says.
    """
    links = []
    for number, line in enumerate(source.lines[at:], at + 1):
        words = line.split()
        if not words:
            continue
        link = _link(number, words, n_nodes, faults)
        if link is not None:
            links.append(link)
    if len(links) != count and not faults.found:
        faults.add(None, f"has {len(links):,} links, but its first line says {count:,}", "is the file whole?")
    faults.refuse()
    return links


def _link(number: int, words: list[str], n_nodes: int, faults: Faults) -> IdLink | None:
    if len(words) not in (4, 5) or not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words[:2]):
        faults.add(number, f"is no link: {shown(' '.join(words))}", "it is: 0 64 400Gbps 500ns 0")
        return None
    a, b = int(words[0]), int(words[1])
    if max(a, b) >= n_nodes:
        faults.add(number, f"has the node {max(a, b)}: ids are 0 to {n_nodes - 1}")
        return None
    try:
        # ns-3 writes bps, which netplan's own quantities refuse: here b is always bits.
        rate = parse_rate(re.sub(r"bps$", "b/s", words[2]))
        return IdLink(number, a, b, rate, parse_time(words[3]))
    except UnitError as error:
        faults.add(number, error.message)
        return None


def link_text(a: int, b: int, rate: float, delay: float) -> str:
    """Return a link line, exact to a picosecond."""
    return f"{a} {b} {rate * 8 / 1e9:.12g}Gbps {delay * 1e9:.12g}ns 0"
