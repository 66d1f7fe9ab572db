"""What a file says: nodes and cables; and the fabric that is made of it.

Every reader ends in a `ReadGraph`. `build_read_graph` gives names that netplan can hold, tiers where the
file has none (`netplan.interop.tiers`), and builds the fabric as a `custom` one ``as_built``: what a
planner would refuse (a host on a spine, a missing cable, two parts) is a warning there. What had to be
assumed or left out is told as remarks: nothing is taken silently.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from netplan.errors import FabricError, SpecError, UnitError, did_you_mean
from netplan.interop.source import MOST_THINGS, Faults, Source, shown
from netplan.interop.tiers import infer_tiers
from netplan.spec.fabric import CustomSpec
from netplan.topology import build_fabric
from netplan.units import format_rate, parse_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from netplan.fabric import Fabric

#: Longest name of a node.
_MOST_NAME = 64

#: Bounds of what a file may say: rates [bytes/s], lengths [m]; and names that a slip is compared with.
_MOST_RATE, _MOST_LENGTH, _MOST_COMPARED = 1e15, 1e9, 5000

#: Length of cables whose file says none [m].
_LENGTH = 3.0

#: So many renamed nodes are told one by one.
_MOST_TOLD = 5


@dataclass(frozen=True)
class ReadNode:
    """A host or switch of a file."""

    key: str
    """What the file's cables call it; unique."""
    name: str
    """Name as the file has it; made safe later."""
    is_host: bool
    line: int | None = None
    """Line where it is described."""
    tier: int | None = None
    """1 leaf, 2 spine, 3 core; None: from the cables."""
    radix: int = 0
    """Ports of a switch; raised to those in use."""
    gpus: int | None = None
    """GPUs of a host; None: one per NIC port."""
    scale_up: float | None = None
    """What one GPU of a host sends into its scale-up domain [bytes/s]; None: netplan's default."""
    pod: int | None = None
    rail: int | None = None
    site: str | None = None


@dataclass(frozen=True)
class ReadCable:
    """A cable of a file."""

    a: str
    """Key of one end."""
    b: str
    """Key of the other."""
    rate: float
    """Line rate per direction [bytes/s]."""
    line: int | None = None
    length: float = _LENGTH
    """Length [m]."""
    kind: str | None = None
    """``local`` or ``global`` in a direct network."""
    a_port: int = 0
    """Port at ``a``; orders the NICs of a host."""
    b_port: int = 0
    """Port at ``b``."""


@dataclass
class ReadGraph:
    """Everything that a file says of a fabric."""

    source: Source
    nodes: list[ReadNode] = field(default_factory=list)
    cables: list[ReadCable] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What was assumed, merged or left out."""
    guids: dict[str, tuple[int, int]] = field(default_factory=dict)
    """InfiniBand: GUID (hexadecimal) of a switch -> (0, index of the node); of a NIC port -> (1, cable)."""


@dataclass(frozen=True, eq=False)
class Imported:
    """A fabric that was read, and what to know of it."""

    fabric: Fabric
    remarks: tuple[str, ...]
    cable_order: tuple[int, ...]
    """Cable of the fabric -> index of the cable in the `ReadGraph`."""
    node_of: dict[str, int]
    """Key of a node -> node id."""


def clean_name(raw: str) -> str:
    """Return a name as netplan holds them: letters, digits, ``.``, ``_``, ``-``, at most 64.

    >>> clean_name("MF0;leaf 01/U1"), clean_name("<script>"), clean_name("über")
    ('MF0-leaf-01-U1', 'script', 'uber')
    """
    plain = unicodedata.normalize("NFKD", raw[:1000]).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("._-")[:_MOST_NAME].rstrip("-") or "node"


def _unique_names(nodes: Sequence[ReadNode], remarks: list[str]) -> list[str]:
    """Return a name for each node that no other has; tell of those that changed."""
    taken: set[str] = {node.name for node in nodes if node.name == clean_name(node.name)}
    used: set[str] = set()
    names, changed = [], []
    for node in nodes:
        name = clean_name(node.name)
        number = 2
        base = name
        while name in used or (name in taken and name != node.name):
            ending = f"-{number}"
            name = base[: _MOST_NAME - len(ending)] + ending
            number += 1
        used.add(name)
        names.append(name)
        if name != node.name:
            changed.append(f"{shown(node.name)} is {name}")
    if changed:
        more = f" and {len(changed) - _MOST_TOLD:,} more" if len(changed) > _MOST_TOLD else ""
        remarks.append(f"names changed: {', '.join(changed[:_MOST_TOLD])}{more}")
    return names


def check_graph(graph: ReadGraph, faults: Faults) -> None:
    """Add the faults that any format can have: nodes twice, ends that are not there, loops, host to host."""
    by_key: dict[str, ReadNode] = {}
    for node in graph.nodes:
        if node.key in by_key:
            first = by_key[node.key].line
            where = "" if first is None else f", first in line {first}"
            faults.add(node.line, f"node {shown(node.key)} is described twice{where}")
        by_key.setdefault(node.key, node)
    for cable in graph.cables:
        _check_cable(cable, by_key, faults)
    if len(graph.nodes) + len(graph.cables) > MOST_THINGS:
        faults.add(None, f"has over {MOST_THINGS:,} nodes and cables")


def _check_cable(cable: ReadCable, by_key: dict[str, ReadNode], faults: Faults) -> None:
    """Add the faults of one cable."""
    for end in (cable.a, cable.b):
        if end not in by_key:
            # Not of all names for all cables: a mangled file has thousands of both.
            near = did_you_mean(end, list(by_key)[:_MOST_COMPARED]) if not faults.found else None
            faults.add(
                cable.line,
                f"a cable ends at {shown(end)}, which the file does not describe",
                f"did you mean {near}?" if near else "is the file whole?",
            )
    if cable.a == cable.b:
        faults.add(cable.line, f"a cable joins {shown(cable.a)} with itself")
    elif cable.a in by_key and cable.b in by_key and by_key[cable.a].is_host and by_key[cable.b].is_host:
        faults.add(
            cable.line,
            f"a cable joins two hosts, {shown(cable.a)} and {shown(cable.b)}",
            "netplan's cables end at a switch",
        )
    if not 0 < cable.rate < _MOST_RATE:
        faults.add(cable.line, f"a cable has the speed {cable.rate:g} B/s: it must be above zero")
    if not 0 <= cable.length < _MOST_LENGTH:
        faults.add(cable.line, f"a cable has the length {cable.length:g} m")


def build_read_graph(
    graph: ReadGraph, *, name: str = "imported", gpus_per_host: int | None = None
) -> Imported:
    """Build the fabric that a file describes.

    Parameters
    ----------
    graph
        What was read.
    name
        Name of the fabric.
    gpus_per_host
        GPUs of each host, over what the file says.

    Raises
    ------
    SpecError
        The file describes no fabric; all faults are listed, with their lines.
    """
    faults = Faults(graph.source)
    check_graph(graph, faults)
    faults.refuse()
    remarks = list(graph.remarks)
    used = Counter(end for cable in graph.cables for end in (cable.a, cable.b))
    bare = [node for node in graph.nodes if not used[node.key]]
    if bare:
        some = ", ".join(shown(node.name) for node in bare[:_MOST_TOLD])
        remarks.append(f"left out, for they have no cable: {len(bare):,} node(s): {some}")
    nodes = [node for node in graph.nodes if used[node.key]]
    hosts = [node for node in nodes if node.is_host]
    switches = [node for node in nodes if not node.is_host]
    for word, found in (("host", hosts), ("switch", switches)):
        if not found:
            faults.add(None, f"describes no {word} with a cable", "is the file whole, and of this format?")
    faults.refuse()
    ordered = [*hosts, *switches]
    names = dict(zip((node.key for node in ordered), _unique_names(ordered, remarks), strict=True))
    place = {node.key: i for i, node in enumerate(ordered)}
    tiers, kinds = infer_tiers(
        len(hosts),
        [node.tier for node in switches],
        np.array([(place[cable.a], place[cable.b]) for cable in graph.cables]),
        [cable.kind for cable in graph.cables],
    )
    order = _cable_order(graph.cables, place, len(hosts))
    spec = _spec(
        graph, name, hosts, switches, names, tiers.tolist(), kinds, order, used, gpus_per_host, remarks
    )
    try:
        fabric = build_fabric(CustomSpec.model_validate(spec))
    except ValidationError as error:
        first = error.errors()[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise SpecError(f"{graph.source.name}: is no fabric: {message}") from None
    except FabricError as error:
        raise FabricError(f"{graph.source.name}: {error.message}", hint=error.hint) from None
    return Imported(
        replace(fabric, name=name), tuple(remarks), tuple(order), {key: place[key] for key in names}
    )


def _cable_order(cables: Sequence[ReadCable], place: dict[str, int], n_hosts: int) -> list[int]:
    """Return the cables in the fabric's order: hosts' by host and port, then those between switches."""
    at_host, between = [], []
    for i, cable in enumerate(cables):
        ends = ((place[cable.a], cable.a_port), (place[cable.b], cable.b_port))
        host, port = min(ends)
        if host < n_hosts:
            at_host.append((host, port, i))
        else:
            between.append((min(ends)[0], max(ends)[0], i))
    return [row[2] for row in sorted(at_host)] + [row[2] for row in sorted(between)]


def _who(assumed: int, hosts: int) -> str:
    return "a host has" if assumed == hosts else "some hosts have"


@lru_cache(maxsize=1024)
def _rate_text(rate: float) -> str:
    """Return a rate as a spec has it, exactly."""
    text = format_rate(rate)
    try:
        return text if parse_rate(text) == rate else f"{rate!r} B/s"
    except UnitError:
        return f"{rate!r} B/s"


def _spec(  # noqa: PLR0913, PLR0917 -- what a graph has, sorted and named
    graph: ReadGraph,
    name: str,
    hosts: Sequence[ReadNode],
    switches: Sequence[ReadNode],
    names: dict[str, str],
    tiers: list[int],
    kinds: list[str | None],
    order: Iterable[int],
    used: Counter[str],
    gpus_per_host: int | None,
    remarks: list[str],
) -> dict[str, Any]:
    """Return the spec of a custom fabric as plain data."""
    assumed = sum(gpus_per_host is None and host.gpus is None for host in hosts)
    if assumed:
        remarks.append(
            f"GPUs: the file does not say how many {_who(assumed, len(hosts))}; "
            "taken: one per NIC port (--gpus-per-host to say)"
        )
    sites = any(node.site for node in (*hosts, *switches))

    def site(node: ReadNode) -> dict[str, str]:
        return {"site": clean_name(node.site or "site")} if sites else {}

    links: list[dict[str, Any]] = []
    for i in order:
        cable = graph.cables[i]
        link: dict[str, Any] = {"a": names[cable.a], "b": names[cable.b], "speed": _rate_text(cable.rate)}
        if cable.length != _LENGTH:
            link["length"] = f"{cable.length!r} m"
        if kinds[i] is not None:
            link["kind"] = kinds[i]
        before = links[-1] if links else {}
        if {**before, "count": 1} == {**link, "count": 1}:
            before["count"] = before.get("count", 1) + 1
        else:
            links.append(link)
    return {
        "kind": "custom",
        "name": name,
        "description": f"Read from {clean_name(graph.source.name.rsplit('/', 1)[-1])}",
        "as_built": True,
        "hosts": [
            {
                "name": names[node.key],
                "gpus": gpus_per_host or node.gpus or used[node.key],
                **({} if node.scale_up is None else {"scale_up": _rate_text(node.scale_up)}),
                **site(node),
            }
            for node in hosts
        ],
        "switches": [
            {
                "name": names[node.key],
                "tier": tier,
                "radix": max(node.radix, used[node.key]),
                **({} if node.pod is None else {"pod": node.pod}),
                **({} if node.rail is None else {"rail": node.rail}),
                **site(node),
            }
            for node, tier in zip(switches, tiers, strict=True)
        ],
        "links": links,
    }
