"""Names of hosts and ports as network operating systems and cabling crews have them.

The cables of a node are on its ports 1, 2, ... in the order of the fabric's cables, so that leaves have
hosts first. Names of nodes are what DNS takes for a label of at most 63 characters, plus ``_`` and ``.``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.convert import node_names
from netplan.interop.graph import clean_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.fabric import Fabric

#: Longest name of a node.
_MOST = 63


def plain_names(fabric: Fabric) -> list[str]:
    """Return a plain name for each node; no two are equal, also not when case is ignored."""
    raw = node_names(fabric)
    kept = {name.casefold() for name in raw if clean_name(name)[:_MOST] == name}
    used: set[str] = set()
    names = []
    for name in raw:
        base = unique = clean_name(name)[:_MOST]
        number = 2
        while unique.casefold() in used or (unique.casefold() in kept and unique != name):
            ending = f"-{number}"
            unique, number = base[: _MOST - len(ending)] + ending, number + 1
        used.add(unique.casefold())
        names.append(unique)
    return names


@dataclass(frozen=True)
class Plug:
    """A cable by its ends."""

    cable: int
    a: int
    """Node id; the lower tier."""
    b: int
    a_port: int
    """From 1."""
    b_port: int
    rate: float
    """[bytes/s]"""
    length: float
    """[m]"""


def plugs(fabric: Fabric) -> Iterator[Plug]:
    """Yield every cable with its ports."""
    links = fabric.links
    port = np.ones(len(links), np.int64)
    for node in range(fabric.n_nodes):
        out = np.sort(fabric.out_link[fabric.out_ptr[node] : fabric.out_ptr[node + 1]])
        port[out] = np.arange(1, len(out) + 1)
    tier = fabric.nodes.tier
    for row in range(0, len(links), 2):
        a, b = int(links.src[row]), int(links.dst[row])
        ports = int(port[row]), int(port[row + 1])
        if tier[a] > tier[b]:
            a, b, ports = b, a, ports[::-1]
        yield Plug(row // 2, a, b, *ports, float(links.capacity[row]), float(links.length[row]))
