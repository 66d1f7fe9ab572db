"""Small files of every format that is read, and how what was read is held against what was written."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from netplan.fabric.columns import NameBlock
from netplan.fabric.convert import node_names
from netplan.interop.graph import Imported, build_read_graph
from netplan.interop.registry import FORMATS, ReadOptions, WriteOptions
from netplan.interop.source import source_of

if TYPE_CHECKING:
    from netplan.fabric import Fabric

#: What can be read back from what was written; `lldp` is only read, `test_operations.py` has its own.
READABLE = [each.name for each in FORMATS if each.read is not None and each.write is not None]

#: Formats that keep every cable and every name.
GRAPHS = ["ibnetdiscover", "ibsim", "graphml", "dot", "ptm"]

#: Begins names: everything that some format has to escape, and what could leave a folder.
NASTY = "../h <b>\"q\" 'a' & {x} \\ ; [1] é\n\t|--"


def written(fabric: Fabric, name: str, **settings: str) -> bytes:
    """Write a format of one file."""
    made = FORMATS.find(name)
    assert made.write is not None
    files = made.write(fabric, WriteOptions(settings=settings))
    return next(iter(files.values()))


def read_back(content: bytes, name: str) -> Imported:
    """Read a file."""
    made = FORMATS.find(name)
    assert made.read is not None
    return build_read_graph(made.read(source_of(content, "file"), ReadOptions()))


def with_nasty_names(fabric: Fabric) -> Fabric:
    """Return a fabric whose names need escaping everywhere, and end in the node's id."""
    words = ["host" if tier == 0 else "leaf" for tier in fabric.nodes.tier.tolist()]
    names = [f"{NASTY}{word}-{i}" for i, word in enumerate(words)]
    return replace(fabric, names=(NameBlock(0, len(names), "{}", (names,)),))


def node_number(name: str) -> int:
    """Return the number that a name ends in."""
    found = re.search(r"(\d+)$", name)
    assert found is not None, name
    return int(found[1])


def cables(fabric: Fabric, *, by_number: bool = False, rates: bool = True) -> Counter[tuple[object, ...]]:
    """Return the cables as a multiset: two ends, and the rate in Mb/s."""
    names: list[object] = list(node_names(fabric))
    if by_number:
        names = [node_number(str(name)) for name in names]
    links = fabric.links
    rows = zip(links.src[0::2].tolist(), links.dst[0::2].tolist(), links.capacity[0::2].tolist(), strict=True)
    return Counter(
        (*sorted((names[a], names[b]), key=str), round(rate * 8 / 1e6) if rates else 0) for a, b, rate in rows
    )
