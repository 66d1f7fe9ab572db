"""Slurm's ``topology.yaml`` (Slurm 25.05 on): named topologies, here one of a tree or of blocks.

::

    - topology: netplan
      cluster_default: true
      tree:
        switches:
          - switch: leaf0
            nodes: h[0-15]
          - switch: spine0
            children: leaf[0-1]

Blocks are ``block: {block_sizes: [18], blocks: [{block: b0, nodes: h[0-17]}]}`` (man topology.yaml). Of
several topologies in a file the one with ``cluster_default`` is read, else the first.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from netplan.interop.host_groups import host_trees
from netplan.interop.hostlist import read_hostlist, write_hostlist
from netplan.interop.registry import ReadOptions, WriteOptions, add_format, setting
from netplan.interop.slurm import SlurmSwitch, _refuse_empty, blocks, graph_of_blocks, graph_of_tree
from netplan.interop.source import Faults
from netplan.interop.yaml_text import read_yaml

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.graph import ReadGraph
    from netplan.interop.source import Source

Marks = dict[tuple[str | int, ...], int]


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a tree or blocks.

    Raises
    ------
    NetplanError
        No host has a port left, or ``form`` is not known.
    """
    form = setting(options, "form", ("tree", "block"))
    roots = host_trees(fabric)
    _refuse_empty(roots)
    lines = ["# Written by netplan", f"- topology: {json.dumps(fabric.name)}", "  cluster_default: true"]
    if form == "tree":
        lines += ["  tree:", "    switches:"]
        for root in roots:
            for switch in root.walk():
                key = "nodes" if switch.hosts else "children"
                below = switch.hosts or [child.name for child in switch.children]
                lines.append(f"      - switch: {json.dumps(switch.name)}")
                lines.append(f"        {key}: {json.dumps(write_hostlist(below))}")
    else:
        leaves, sizes = blocks(roots)
        lines += ["  block:", f"    block_sizes: {json.dumps(sizes)}", "    blocks:"]
        for leaf in leaves:
            lines.append(f"      - block: {json.dumps(leaf.name)}")
            lines.append(f"        nodes: {json.dumps(write_hostlist(leaf.hosts))}")
    return {"topology.yaml": ("\n".join(lines) + "\n").encode()}


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a tree or blocks.

    Raises
    ------
    SpecError
        It is not such a file; all faults are listed.
    """
    data, marks = read_yaml(source)
    faults = Faults(source)
    topologies = data if isinstance(data, list) else []
    chosen, place = None, 0
    for i, each in enumerate(topologies):
        if isinstance(each, dict) and (chosen is None or each.get("cluster_default") is True):
            chosen, place = each, i
    if chosen is None:
        faults.add(1, "is no list of topologies", "a file begins with: - topology: name")
        faults.refuse()
    assert chosen is not None
    if isinstance(chosen.get("tree"), dict):
        switches = _switches(
            chosen["tree"].get("switches"), (place, "tree", "switches"), "switch", marks, faults
        )
        faults.refuse()
        return graph_of_tree(source, switches, options, faults)
    if isinstance(chosen.get("block"), dict):
        found = _switches(chosen["block"].get("blocks"), (place, "block", "blocks"), "block", marks, faults)
        faults.refuse()
        return graph_of_blocks(source, found, options, faults)
    faults.add(marks.get((place,)), "has neither tree nor block; ring, torus3d and flat are not read")
    faults.refuse()
    raise AssertionError


def _switches(
    data: Any,  # noqa: ANN401 -- whatever the file has
    path: tuple[str | int, ...],
    word: str,
    marks: Marks,
    faults: Faults,
) -> list[SlurmSwitch]:
    """Return the switches or blocks of a list."""
    if not isinstance(data, list) or not data:
        faults.add(marks.get(path, marks.get(path[:1])), f"{path[-1]} is no list with anything in it")
        return []
    found = []
    for i, row in enumerate(data):
        line = marks.get((*path, i))
        if not isinstance(row, dict) or not isinstance(row.get(word), str):
            faults.add(line, f"has no {word} with a name")
            continue
        try:
            lists = {key: read_hostlist(_text(row.get(key))) for key in ("nodes", "children") if row.get(key)}
        except ValueError as error:
            faults.add(line, str(error))
            continue
        if not lists:
            faults.add(line, f"{word} {row[word]!r} has nothing below it: an empty tree is none")
        found.append(SlurmSwitch(row[word], line, lists.get("nodes", []), lists.get("children", [])))
    return found


def _text(value: Any) -> str:  # noqa: ANN401 -- whatever the file has
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    if not isinstance(value, str):
        msg = f"has {value!r:.60}, which is no list of names"
        raise ValueError(msg)  # noqa: TRY004 -- of the file, told with its line
    return value


add_format(
    "slurm-yaml",
    __name__,
    summary="Slurm's topology.yaml (25.05 on): a tree, or blocks",
    checked_by="netplan's reader (no such Slurm in Debian 12)",
    leaves_out="speeds, parallel cables, single spines; ring and torus3d are not read",
    suffix=".yaml",
    read=read,
    write=write,
    settings={"form": "tree or block"},
)
