"""Slurm's ``topology.conf``: a tree (``topology/tree``), or blocks (``topology/block``, Slurm 23.11 on).

A tree line is ``SwitchName=leaf0 Nodes=h[0-15]`` or ``SwitchName=spine0 Switches=leaf[0-1]``; a block line
``BlockName=b0 Nodes=h[0-17]`` and once ``BlockSizes=18``. Keys are of any case, ``#`` begins a comment, a
backslash joins lines (man topology.conf).

A Slurm tree says which hosts are near, not how many cables there are. When read, each switch is taken to
have as many cables upwards as hosts below it (nothing is oversubscribed), and that is told.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from netplan.errors import FabricError
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.host_groups import HostTree, host_trees
from netplan.interop.hostlist import MOST_NAMES, read_hostlist, write_hostlist
from netplan.interop.registry import ReadOptions, WriteOptions, add_format
from netplan.interop.source import Faults, shown

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source

#: Keys of each kind of line, in lower case; those that say nothing of the fabric have no meaning here.
_KEYS = {
    "switchname": ("nodes", "switches", "linkspeed"),
    "blockname": ("nodes",),
    "blocksizes": (),
}
_PAIR = re.compile(r"\s*([A-Za-z]+)\s*=\s*(\"[^\"]*\"|\S+)")

#: Heights beyond this are all taken as the highest tier.
_MOST_TIER = 4


@dataclass
class SlurmSwitch:
    """A switch or block of a file."""

    name: str
    line: int | None
    nodes: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)


# ---- writing -----------------------------------------------------------------------------------


def tree_lines(roots: list[HostTree]) -> list[str]:
    """Return the lines of a tree, leaves first."""
    lines = []
    for root in roots:
        for switch in root.walk():
            if switch.hosts:
                lines.append(f"SwitchName={switch.name} Nodes={write_hostlist(switch.hosts)}")
            else:
                below = write_hostlist(child.name for child in switch.children)
                lines.append(f"SwitchName={switch.name} Switches={below}")
    return lines


def blocks(roots: list[HostTree]) -> tuple[list[HostTree], list[int]]:
    """Return the blocks (lowest groups) and the block sizes: that of the smallest and its doubles.

    Slurm plans in blocks of the first size, and larger blocks are a power of two of it.
    """
    leaves = [switch for root in roots for switch in root.walk() if switch.hosts]
    least = min(len(leaf.hosts) for leaf in leaves)
    sizes = [least]
    while len(sizes) < 4 and 2 ** len(sizes) <= len(leaves):  # noqa: PLR2004 -- more are of no use to a scheduler
        sizes.append(least * 2 ** len(sizes))
    return leaves, sizes


def _refuse_empty(roots: list[HostTree]) -> None:
    if not any(switch.hosts for root in roots for switch in root.walk()):
        raise FabricError("the fabric has no host with a port: there is no tree to write")


def write_tree(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a tree.

    Raises
    ------
    FabricError
        No host has a port left.
    """
    roots = host_trees(fabric)
    _refuse_empty(roots)
    head = ["# Written by netplan; slurm.conf needs TopologyPlugin=topology/tree"]
    return {"topology.conf": ("\n".join([*head, *tree_lines(roots)]) + "\n").encode()}


def write_blocks(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write blocks.

    Raises
    ------
    FabricError
        No host has a port left.
    """
    roots = host_trees(fabric)
    _refuse_empty(roots)
    leaves, sizes = blocks(roots)
    lines = ["# Written by netplan; slurm.conf needs TopologyPlugin=topology/block"]
    lines += [f"BlockName={leaf.name} Nodes={write_hostlist(leaf.hosts)}" for leaf in leaves]
    lines.append(f"BlockSizes={','.join(map(str, sizes))}")
    return {"topology.conf": ("\n".join(lines) + "\n").encode()}


# ---- reading -----------------------------------------------------------------------------------


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a tree or blocks.

    Raises
    ------
    SpecError
        It is not of this grammar, or no tree; all faults are listed.
    """
    faults = Faults(source)
    found: dict[str, list[SlurmSwitch]] = {"switchname": [], "blockname": []}
    for number, line in _joined_lines(source):
        _read_line(number, line, found, faults)
    if found["switchname"] and found["blockname"]:
        faults.add(found["blockname"][0].line, "has blocks beside switches: a file has one of the two")
    if not (found["switchname"] or found["blockname"]) and not faults.found:
        faults.add(None, "has no SwitchName and no BlockName line", "is it a topology.conf?")
    faults.refuse()
    if found["blockname"]:
        return graph_of_blocks(source, found["blockname"], options, faults)
    return graph_of_tree(source, found["switchname"], options, faults)


def _joined_lines(source: Source) -> list[tuple[int, str]]:
    """Return the lines with their numbers, continued ones joined, without comments."""
    lines: list[tuple[int, str]] = []
    before, start = "", 0
    for number, full in enumerate(source.lines, 1):
        text = re.split(r"(?<!\\)#", full, maxsplit=1)[0].rstrip()
        start = start if before else number
        if text.endswith("\\"):
            before += text[:-1] + " "
            continue
        if (before + text).strip():
            lines.append((start, before + text))
        before = ""
    return [*lines, (start, before)] if before.strip() else lines


def _pairs(number: int, line: str, faults: Faults) -> dict[str, str]:
    """Return keys, in lower case, and values of a line; nothing when it is none."""
    pairs: dict[str, str] = {}
    place = 0
    for pair in _PAIR.finditer(line):
        if line[place : pair.start()].strip():
            break
        key = pair[1].lower()
        if key in pairs:
            faults.add(number, f"{pair[1]} stands twice")
        pairs[key] = pair[2].strip('"')
        place = pair.end()
    if line[place:].strip() or not pairs:
        faults.add(
            number, f"is no line of a topology.conf: {shown(line.strip())}", "SwitchName=leaf0 Nodes=h[0-15]"
        )
        return {}
    return pairs


def _read_line(number: int, line: str, found: dict[str, list[SlurmSwitch]], faults: Faults) -> None:
    """Add what one line says."""
    pairs = _pairs(number, line, faults)
    if not pairs:
        return
    kind = next(iter(pairs))
    if kind not in _KEYS:
        faults.add(number, f"begins with {kind}; accepted: SwitchName, BlockName, BlockSizes")
        return
    for key in pairs:
        if key != kind and key not in _KEYS[kind]:
            faults.add(number, f"has the key {shown(key)}; accepted: {', '.join(_KEYS[kind]) or 'no other'}")
    if kind == "blocksizes":
        return
    try:
        names = read_hostlist(pairs[kind])
        nodes = read_hostlist(pairs["nodes"]) if "nodes" in pairs else []
        children = read_hostlist(pairs["switches"]) if "switches" in pairs else []
    except ValueError as error:
        faults.add(number, str(error))
        return
    if not nodes and not children:
        what = "neither Nodes nor Switches" if kind == "switchname" else "no Nodes"
        faults.add(number, f"{shown(pairs[kind])} has {what}: an empty tree is none")
    for name in names:
        found[kind].append(SlurmSwitch(name, number, nodes, children))


def _places(
    switches: list[SlurmSwitch], faults: Faults
) -> tuple[dict[str, SlurmSwitch], dict[str, str], dict[str, str]]:
    """Return the switches by name, the parent of each, and the switch of each host."""
    by_name: dict[str, SlurmSwitch] = {}
    parent: dict[str, str] = {}
    for switch in switches:
        if switch.name in by_name:
            faults.add(switch.line, f"switch {shown(switch.name)} is described twice")
        by_name.setdefault(switch.name, switch)
    for switch in by_name.values():
        for child in dict.fromkeys(switch.children):
            if child not in by_name:
                faults.add(switch.line, f"has the child {shown(child)}, which is no switch of the file")
            elif parent.setdefault(child, switch.name) != switch.name:
                message = f"has the child {shown(child)}, which is under {shown(parent[child])} already"
                faults.add(switch.line, message)
    hosts = _hosts(by_name, faults)
    if sum(len(each.nodes) + len(each.children) for each in by_name.values()) > 4 * MOST_NAMES:
        faults.add(None, f"has over {4 * MOST_NAMES:,} nodes")
    return by_name, parent, hosts


def _hosts(by_name: dict[str, SlurmSwitch], faults: Faults) -> dict[str, str]:
    """Return the switch of each host."""
    hosts: dict[str, str] = {}
    for switch in by_name.values():
        for host in dict.fromkeys(switch.nodes):
            if hosts.setdefault(host, switch.name) != switch.name:
                message = f"has the node {shown(host)}, which is on {shown(hosts[host])} already"
                faults.add(switch.line, message)
            if host in by_name:
                faults.add(by_name[host].line, f"{shown(host)} is a switch and a node")
    return hosts


def graph_of_tree(
    source: Source, switches: list[SlurmSwitch], options: ReadOptions, faults: Faults
) -> ReadGraph:
    """Return the fabric of a tree.

    Raises
    ------
    SpecError
        It is no tree: a switch twice, under itself, with two parents, or a child that is not there.
    """
    by_name, parent, hosts = _places(switches, faults)
    faults.refuse()
    order = _leaves_first(by_name, parent, faults)
    faults.refuse()
    height: dict[str, int] = {}
    below: Counter[str] = Counter()
    for name in order:
        switch = by_name[name]
        height[name] = 1 + max((height[child] for child in switch.children), default=0)
        below[name] = len(set(switch.nodes)) + sum(below[child] for child in set(switch.children))
    graph = ReadGraph(source)
    graph.nodes += [
        ReadNode(f"h:{host}", host, is_host=True, line=by_name[on].line) for host, on in hosts.items()
    ]
    graph.nodes += [
        ReadNode(
            f"s:{name}", name, is_host=False, line=by_name[name].line, tier=min(height[name], _MOST_TIER)
        )
        for name in by_name
    ]
    graph.cables += [
        ReadCable(f"h:{host}", f"s:{on}", options.speed, by_name[on].line) for host, on in hosts.items()
    ]
    for child, up in parent.items():
        line = by_name[up].line
        graph.cables += [ReadCable(f"s:{child}", f"s:{up}", options.speed, line)] * max(below[child], 1)
    graph.remarks.append(
        "a Slurm tree has no speeds and no number of cables; taken: "
        f"{options.speed * 8 / 1e9:g}G, one per host, and as many upwards from a switch as hosts are below it"
    )
    return graph


def _leaves_first(by_name: dict[str, SlurmSwitch], parent: dict[str, str], faults: Faults) -> list[str]:
    """Return the switches, children before parents; a ring of parents is a fault."""
    waiting = {name: len(set(switch.children)) for name, switch in by_name.items()}
    ready = [name for name, count in waiting.items() if not count]
    order = []
    while ready:
        name = ready.pop()
        order.append(name)
        if (up := parent.get(name)) is not None:
            waiting[up] -= 1
            if not waiting[up]:
                ready.append(up)
    for name, count in waiting.items():
        if count:
            faults.add(by_name[name].line, f"switch {shown(name)} is under itself")
    return order


def graph_of_blocks(
    source: Source, found: list[SlurmSwitch], options: ReadOptions, faults: Faults
) -> ReadGraph:
    """Return the fabric of blocks: each a leaf, all under one spine that the file does not name."""
    root = "blocks"
    while any(block.name == root for block in found):
        root += "-"
    top = [SlurmSwitch(root, None, children=[block.name for block in found])] if len(found) > 1 else []
    graph = graph_of_tree(source, [*found, *top], options, faults)
    if top:
        graph.remarks.append(f"blocks are joined by one switch, called {root}")
    return graph


add_format(
    "slurm",
    __name__,
    summary="Slurm's topology.conf as a tree: which hosts are near to which",
    checked_by="slurmctld: scontrol show topology",
    leaves_out="speeds, parallel cables, single spines: switches side by side are one switch of the tree",
    suffix=".conf",
    read=read,
    write=write_tree,
)
add_format(
    "slurm-block",
    __name__,
    summary="Slurm's topology.conf as blocks: hosts that share leaves",
    checked_by="netplan's reader (slurmctld 24.05 or newer; Debian 12 has an older one)",
    leaves_out="everything above the blocks",
    suffix=".conf",
    read=read,
    write=write_blocks,
)
