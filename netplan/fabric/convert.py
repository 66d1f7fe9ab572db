"""A fabric as a networkx graph, and as a file of netplan's own.

The file is JSON: ``schema`` (`SCHEMA`), names, and the columns of each table, a column being a
list of numbers or, where few values repeat in runs, ``{"values": [...], "counts": [...]}``.
Cables have one row for both directions; ``links`` has the columns that could differ between them.
``direct`` is there for direct networks, ``damage`` for damaged fabrics only, ``fibre_paths`` (with the
column ``cables.path``) only where the fibre routes between sites are known.
Whatever is read is checked before it is used: files come from other people and other programs.
"""

from __future__ import annotations

import json
import re
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from netplan.errors import FabricError, OutputError, did_you_mean
from netplan.fabric.builder import CABLE_COLUMNS, ENDPOINT_COLUMNS, NODE_COLUMNS, raise_on_faults
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES, Endpoints, Fabric, Links, NameBlock, Nodes
from netplan.fabric.damage import REASONS, Damage
from netplan.fabric.direct import DIRECT_STRUCTURES
from netplan.fabric.fibre import FibrePath
from netplan.fabric.structure import ClosStructure
from netplan.files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import networkx as nx
    from numpy.typing import NDArray

    from netplan.fabric.direct import DirectStructure

#: Name and version of the file format; a change that older programs misread raises the number.
SCHEMA = "netplan/fabric/1"

#: Longest column that is read: what runs may expand to.
MOST_ROWS = 67_108_864

_CABLES = {name: dtype for name, dtype in CABLE_COLUMNS.items() if name not in ("capacity", "path")}
_LINKS: dict[str, type[np.generic]] = {"capacity": np.float64, "delay": np.float64}
_HOSTS: dict[str, type[np.generic]] = {"gpus": np.int32, "scale_up_rate": np.float64}
_STRUCTURE_COLUMNS: dict[str, type[np.generic]] = dict.fromkeys(
    ("endpoint_leaf", "endpoint_port", "leaf_pod"), np.int32
)
_STRUCTURE_NUMBERS = tuple(
    name for name in ClosStructure.__dataclass_fields__ if name not in _STRUCTURE_COLUMNS
)
_KEYS = (
    "schema",
    "name",
    "kind",
    "site_names",
    "names",
    "nodes",
    "hosts",
    "cables",
    "links",
    "endpoints",
    "structure",
    "spec",
    "switch_latency_s",
    "endpoint_latency_s",
)

#: Keys that are there only where they say something.
_OPTIONAL = ("direct", "fibre_paths", "forwarding", "damage")

_FIBRE_PATH = ("a", "b", "number", "length_m", "wavelengths", "fibre_pairs")

_DAMAGE = ("failures", "seeds", "nodes", "cable", "endpoint", "n_cables", "before", "lost")

#: Templates of names: text and places for whole numbers or words, nothing that could reach into objects.
_TEMPLATE = re.compile(r"(?:[^{}]|\{(?::0?[0-9]{0,2}d)?\})*")

#: Numbers beyond this are refused: products of them with units would overflow.
_MOST_NUMBER = 1e300

#: A column is written in runs when that takes at most this share of the plain list.
_RUNS_PAY = 0.5


def node_names(fabric: Fabric) -> list[str]:
    """Return the name of every node, by id."""
    names = [""] * fabric.n_nodes
    for block in fabric.names:
        for node in range(block.first, block.first + block.count):
            names[node] = block.name(node)
    return names


def to_networkx(fabric: Fabric, *, level: Literal["node", "switch"] = "node") -> nx.MultiGraph:
    """Return the fabric as a graph, for networkx's algorithms and file formats.

    Parameters
    ----------
    fabric
        Any fabric.
    level
        ``node``: hosts and switches. ``switch``: switches only, with the number of ``endpoints``
        on each.

    Returns
    -------
    networkx.MultiGraph
        Nodes by name, with ``kind`` (name of the tier), ``tier``, ``site`` (its name) and, where
        they apply, ``pod``, ``rail``, ``plane`` and ``radix``. One edge per cable, its key the
        cable's id, with ``capacity`` [bytes/s, per direction], ``delay`` [s], ``length`` [m] and
        ``kind``.

    Notes
    -----
    A view for algorithms, not a store: it takes about a hundred times the memory of the columns.
    """
    import networkx as nx

    nodes, links = fabric.nodes, fabric.links
    names = node_names(fabric)
    on_switch = np.bincount(fabric.endpoints.leaf, minlength=fabric.n_nodes)
    graph = nx.MultiGraph(name=fabric.name)
    for node, name in enumerate(names):
        tier = int(nodes.tier[node])
        if tier == 0 and level == "switch":
            continue
        data: dict[str, Any] = {
            "kind": TIER_NAMES[tier],
            "tier": tier,
            "site": fabric.site_names[nodes.site[node]],
        }
        places = {column: int(getattr(nodes, column)[node]) for column in ("pod", "rail", "plane")}
        data |= {column: value for column, value in places.items() if value >= 0}
        if tier > 0:
            data["radix"] = int(nodes.radix[node])
            data |= {"endpoints": int(on_switch[node])} if level == "switch" else {}
        graph.add_node(name, **data)
    for cable in range(links.n_cables):
        row = 2 * cable
        src, dst = int(links.src[row]), int(links.dst[row])
        if level == "switch" and 0 in (nodes.tier[src], nodes.tier[dst]):
            continue
        graph.add_edge(
            names[src],
            names[dst],
            key=cable,
            capacity=float(links.capacity[row]),
            delay=float(links.delay[row]),
            length=float(links.length[row]),
            kind=LINK_KINDS[links.kind[row]],
        )
    return graph


# ---- writing -----------------------------------------------------------------------------------


def save_fabric(fabric: Fabric, path: str | Path) -> None:
    """Write a fabric to a file that `load_fabric` reads back as an equal one.

    Parameters
    ----------
    fabric
        Any fabric, with or without faults.
    path
        File to write; replaced when it is there.

    Raises
    ------
    OutputError
        The file cannot be written. What was there before is then still there.

    Notes
    -----
    Written beside the file and then renamed, so nobody ever reads half of one. The same fabric
    gives the same bytes.
    """
    try:
        text = json.dumps(fabric_to_dict(fabric), separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise OutputError(f"{path}: fabric {fabric.name!r} has numbers that are not finite") from error
    write_file(str(path), text.encode() + b"\n")


def fabric_to_dict(fabric: Fabric) -> dict[str, Any]:
    """Return a fabric as plain data: what `save_fabric` writes."""
    structure = None
    if fabric.structure is not None:
        structure = {
            name: _written(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(fabric.structure).items()
        }
    return {
        "schema": SCHEMA,
        "name": fabric.name,
        "kind": fabric.kind,
        "site_names": list(fabric.site_names),
        "names": [
            {
                "first": block.first,
                "count": block.count,
                "template": block.template,
                "parts": [np.asarray(part).tolist() for part in block.parts],
            }
            for block in fabric.names
        ],
        "nodes": {name: _written(getattr(fabric.nodes, name)) for name in NODE_COLUMNS},
        "hosts": {
            "gpus": _written(fabric.gpus_per_host),
            "scale_up_rate": _written(fabric.scale_up_rate),
        },
        "cables": {
            "lower": _written(fabric.links.src[0::2]),
            "upper": _written(fabric.links.dst[0::2]),
            "length": _written(fabric.links.length[0::2]),
            "kind": _written(fabric.links.kind[0::2]),
            **({"path": _written(fabric.links.path[0::2])} if fabric.fibre_paths else {}),
        },
        "links": {name: _written(getattr(fabric.links, name)) for name in _LINKS},
        "endpoints": {name: _written(getattr(fabric.endpoints, name)) for name in ENDPOINT_COLUMNS},
        "structure": structure,
        "spec": None if fabric.spec is None else dict(fabric.spec),
        "switch_latency_s": fabric.switch_latency,
        "endpoint_latency_s": fabric.endpoint_latency,
        **({} if fabric.direct is None else {"direct": _direct_to_dict(fabric.direct)}),
        **({"fibre_paths": _paths_to_dict(fabric)} if fabric.fibre_paths else {}),
        **({} if fabric.forwarding is None else {"forwarding": _forwarding_to_dict(fabric)}),
        **({} if fabric.damage is None else {"damage": _damage_to_dict(fabric.damage)}),
    }


def _direct_to_dict(direct: DirectStructure) -> dict[str, Any]:
    """Return the structure of a direct network as plain data."""
    return {
        "kind": direct.kind,
        **{name: _written(getattr(direct, name)) for name in direct.arrays()},
        **{name: getattr(direct, name) for name in direct.numbers()},
    }


def _paths_to_dict(fabric: Fabric) -> list[dict[str, Any]]:
    """Return the fibre paths as plain data."""
    rows = [
        (path.a, path.b, path.number, path.length, path.wavelengths, path.fibre_pairs)
        for path in fabric.fibre_paths
    ]
    return [dict(zip(_FIBRE_PATH, row, strict=True)) for row in rows]


def _forwarding_to_dict(fabric: Fabric) -> list[Any]:
    """Return the forwarding tables of the switches, by node id, as plain data."""
    assert fabric.forwarding is not None
    return [_written(row) for row in fabric.forwarding[fabric.nodes.tier > 0]]


def _damage_to_dict(damage: Damage) -> dict[str, Any]:
    """Return what a damaged fabric remembers as plain data."""
    return {
        "failures": list(damage.failures),
        "seeds": list(damage.seeds),
        "n_cables": damage.n_cables,
        "before": {name: _written(getattr(damage.before, name)) for name in ENDPOINT_COLUMNS},
        **{name: _written(getattr(damage, name)) for name in ("nodes", "cable", "endpoint", "lost")},
    }


def _written(column: NDArray[Any]) -> list[Any] | dict[str, list[Any]]:
    """Return a column as plain data, in runs where that is shorter."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(column), 1), bool), column[1:] != column[:-1]]))
    if 2 * len(starts) > _RUNS_PAY * len(column):
        return list(column.tolist())
    counts = np.diff(np.append(starts, len(column)))
    return {"values": column[starts].tolist(), "counts": counts.tolist()}


# ---- reading -----------------------------------------------------------------------------------


def load_fabric(text_or_path: str | Path, *, source: str | None = None, check: bool = True) -> Fabric:
    """Read a fabric that `save_fabric` wrote.

    Parameters
    ----------
    text_or_path
        The file's path, or its text: a `str` that begins with ``{``, or any when ``source`` is given.
    source
        What to call the text in messages; ``fabric`` when omitted.
    check
        Whether to refuse a fabric with faults. A file that is not a fabric at all is always refused.

    Returns
    -------
    Fabric
        Equal to the one that was saved.

    Raises
    ------
    FabricError
        The file is not there, is not JSON, is of another schema, lacks or exceeds what the schema
        has, names things that are not there, or the fabric has faults.
    """
    if isinstance(text_or_path, str) and (source is not None or text_or_path.lstrip().startswith("{")):
        text = text_or_path
    else:
        text = _read(Path(text_or_path))
        source = str(text_or_path)
    reader = _Reader(source or "fabric")
    fabric = reader.fabric(reader.parse(text))
    if check:
        raise_on_faults(fabric)
    return fabric


def _read(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FabricError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FabricError(f"{path}: is not text in UTF-8 (byte {error.start})") from error
    except ValueError as error:  # a path with a zero byte
        raise FabricError(f"{str(path)!r}: cannot be read: {error}") from error


class _Reader:
    """Turns plain data into a fabric and refuses what is not one.

    Parameters
    ----------
    source
        What the data came from; begins every message.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def _refuse(self, message: str, hint: str | None = None) -> NoReturn:
        raise FabricError(f"{self._source}: {message}", hint=hint)

    def parse(self, text: str) -> dict[str, Any]:
        """Return the data of a JSON text of the right schema."""

        def constant(word: str) -> NoReturn:
            self._refuse(f"has a number {word}: numbers are finite")

        try:
            data = json.loads(text, parse_constant=constant)
        except json.JSONDecodeError as error:
            self._refuse(
                f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
                "a saved fabric comes from `netplan`; specs are YAML files",
            )
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits, brackets 100,000 deep
            self._refuse(f"is not JSON that can be read: {error}")
        if not isinstance(data, dict):
            self._refuse(f"is not a saved fabric: the JSON is {_word(data)}, not an object")
        schema = data.get("schema")
        if schema != SCHEMA:
            hint = None
            if isinstance(schema, str) and schema.startswith("netplan/fabric/"):
                hint = "it is of another version of netplan; save the fabric again from its spec"
            found = "no schema" if schema is None else f"schema {schema!r}"
            self._refuse(f"has {found}; this netplan reads {SCHEMA!r}", hint)
        return data

    def fabric(self, data: Mapping[str, Any]) -> Fabric:
        """Return the fabric, its ids all in range."""
        self._keys("the fabric", data, (*_KEYS, *(key for key in _OPTIONAL if key in data)))
        site_names = self._words("site_names", data["site_names"])
        nodes = self._table("nodes", data["nodes"], NODE_COLUMNS)
        hosts = self._table("hosts", data["hosts"], _HOSTS)
        has_paths = isinstance(data["cables"], dict) and "path" in data["cables"]
        columns = _CABLES | ({"path": CABLE_COLUMNS["path"]} if has_paths else {})
        cables = self._table("cables", data["cables"], columns)
        links = self._table("links", data["links"], _LINKS)
        endpoints = self._table("endpoints", data["endpoints"], ENDPOINT_COLUMNS)
        n_nodes, n_cables = len(nodes["tier"]), len(cables["lower"])
        self._range("nodes.tier", nodes["tier"], len(TIER_NAMES), "tiers")
        self._range("nodes.site", nodes["site"], len(site_names), "sites")
        self._range("cables.lower", cables["lower"], n_nodes, "nodes")
        self._range("cables.upper", cables["upper"], n_nodes, "nodes")
        self._range("cables.kind", cables["kind"], len(LINK_KINDS), "kinds of cable")
        fibre_paths = self._fibre_paths(data.get("fibre_paths"), len(site_names))
        path = cables.get("path", np.full(n_cables, -1, np.int16))
        if has_paths:
            known = np.where(path == -1, 0, path) if fibre_paths else path
            self._range("cables.path", known, len(fibre_paths), "fibre paths")
            self._joins("cables.path", cables, path, fibre_paths, nodes["site"])
        self._range("endpoints.host", endpoints["host"], n_nodes, "nodes")
        self._range("endpoints.leaf", endpoints["leaf"], n_nodes, "nodes")
        self._range("endpoints.cable", endpoints["cable"], n_cables, "cables")
        self._range("endpoints.rail", endpoints["rail"], 1 << 15, "rails")
        for where, column, least in (
            ("cables.length", cables["length"], 0),
            ("links.delay", links["delay"], 0),
            ("hosts.gpus", hosts["gpus"], 1),
            ("hosts.scale_up_rate", hosts["scale_up_rate"], 0),
        ):
            if (column < least).any():
                self._refuse(f"{where} has {column.min()}: at least {least} is accepted")
        n_hosts = int((nodes["tier"] == 0).sum())
        if len(hosts["gpus"]) != n_hosts:
            self._refuse(f"hosts has {len(hosts['gpus'])} rows, but {n_hosts} nodes are of tier 0")
        if len(links["capacity"]) != 2 * n_cables:
            self._refuse(f"links has {len(links['capacity'])} rows; {n_cables} cables have {2 * n_cables}")
        if (nodes["tier"][endpoints["host"]] != 0).any() or (np.diff(endpoints["host"]) < 0).any():
            self._refuse("endpoints.host must name hosts, in ascending order")
        return Fabric(
            name=self._word("name", data["name"]),
            kind=self._word("kind", data["kind"]),
            nodes=Nodes(**nodes),
            links=Links(
                src=_both(cables["lower"], cables["upper"]),
                dst=_both(cables["upper"], cables["lower"]),
                length=np.repeat(cables["length"], 2),
                kind=np.repeat(cables["kind"], 2),
                path=np.repeat(path, 2),
                **links,
            ),
            endpoints=Endpoints(**endpoints),
            names=self._names(data["names"], n_nodes),
            gpus_per_host=hosts["gpus"],
            scale_up_rate=hosts["scale_up_rate"],
            site_names=site_names,
            structure=self._structure(data["structure"]),
            direct=self._direct(data.get("direct")),
            spec=self._spec(data["spec"]),
            switch_latency=self._latency("switch_latency_s", data["switch_latency_s"]),
            endpoint_latency=self._latency("endpoint_latency_s", data["endpoint_latency_s"]),
            fibre_paths=fibre_paths,
            forwarding=self._forwarding(
                data.get("forwarding"), nodes["tier"], cables, len(endpoints["host"])
            ),
            damage=self._damage(data.get("damage"), n_nodes, n_cables, len(endpoints["host"])),
        )

    def _forwarding(
        self, data: object, tier: NDArray[Any], cables: Mapping[str, NDArray[Any]], n_endpoints: int
    ) -> NDArray[np.int32] | None:
        """Return the forwarding tables, each entry a link that leaves its switch."""
        if data is None:
            return None
        switches = np.flatnonzero(tier > 0)
        if not isinstance(data, list) or len(data) != len(switches):
            self._refuse(f"forwarding must be a list of {len(switches)} tables, one per switch")
        if len(tier) * n_endpoints > MOST_ROWS:
            self._refuse(f"forwarding has over {MOST_ROWS:,} entries")
        source = _both(cables["lower"], cables["upper"])
        tables = np.full((len(tier), n_endpoints), -1, np.int32)
        for node, row in zip(switches.tolist(), data, strict=True):
            where = f"forwarding of node {node}"
            table = self._column(where, row, np.int32)
            if len(table) != n_endpoints:
                self._refuse(f"{where} has {len(table)} entries, not one for each of {n_endpoints} endpoints")
            used = table[table >= 0]
            if (table < -1).any() or (used >= len(source)).any() or (source[used] != node).any():
                self._refuse(f"{where} has an entry that is no link of its own")
            tables[node] = table
        return tables

    def _keys(self, where: str, data: object, wanted: Iterable[str]) -> None:
        """Refuse missing and unknown keys."""
        if not isinstance(data, dict):
            self._refuse(f"{where} is {_word(data)}, not an object")
        wanted = tuple(wanted)
        missing = [key for key in wanted if key not in data]
        if missing:
            self._refuse(f"{where} lacks {', '.join(missing)}")
        odd = [str(key) for key in data if key not in wanted]
        if odd:
            meant = did_you_mean(odd[0], wanted)
            self._refuse(
                f"{where} has unknown {', '.join(odd)}; accepted: {', '.join(wanted)}",
                f"did you mean {meant}?" if meant else None,
            )

    def _table(
        self, name: str, data: object, dtypes: Mapping[str, type[np.generic]]
    ) -> dict[str, NDArray[Any]]:
        """Return the columns of a table, all of one length."""
        self._keys(name, data, dtypes)
        assert isinstance(data, dict)
        columns = {key: self._column(f"{name}.{key}", data[key], dtype) for key, dtype in dtypes.items()}
        lengths = {key: len(column) for key, column in columns.items()}
        if len(set(lengths.values())) > 1:
            rows = ", ".join(f"{key} {length}" for key, length in lengths.items())
            self._refuse(f"the columns of {name} have different lengths: {rows}")
        return columns

    def _column(self, where: str, data: object, dtype: type[np.generic]) -> NDArray[Any]:
        """Return one column, plain or from runs."""
        if not isinstance(data, dict):
            return self._numbers(where, data, dtype)
        self._keys(where, data, ("values", "counts"))
        values = self._numbers(f"{where}.values", data["values"], dtype)
        counts = self._numbers(f"{where}.counts", data["counts"], np.int64)
        if len(values) != len(counts) or (counts < 1).any() or counts.astype(float).sum() > MOST_ROWS:
            self._refuse(f"{where}: counts must be one per value, at least 1 and {MOST_ROWS:,} in all")
        return np.repeat(values, counts)

    def _numbers(self, where: str, data: object, dtype: type[np.generic]) -> NDArray[Any]:
        """Return a list of numbers as an array, refusing what the type does not hold."""
        is_whole = np.issubdtype(dtype, np.integer)
        what = "whole numbers" if is_whole else "numbers"
        if not isinstance(data, list):
            self._refuse(f"{where} is {_word(data)}, not a list of {what}")
        kinds = {int} if is_whole else {int, float}
        for place, value in enumerate(data):
            if type(value) not in kinds:
                self._refuse(f"{where}[{place}] is {_word(value)}; the column holds {what}")
        try:
            numbers = np.array(data, dtype)
        except OverflowError:
            numbers = np.array([np.inf])
        if not (np.abs(numbers) < _MOST_NUMBER).all():  # JSON's 1e999 is one of them
            self._refuse(f"{where} has a number outside what {np.dtype(dtype).name} holds")
        return numbers

    def _range(self, where: str, ids: NDArray[Any], count: int, what: str) -> None:
        """Refuse ids of things that are not there."""
        wrong = np.flatnonzero((ids < 0) | (ids >= count))
        if len(wrong):
            place = int(wrong[0])
            self._refuse(f"{where}[{place}] = {ids[place]} is not one of the {count} {what}")

    def _word(self, where: str, data: object) -> str:
        """Return a text."""
        if not isinstance(data, str) or not data:
            self._refuse(f"{where} is {_word(data)}, not a text")
        return data

    def _words(self, where: str, data: object) -> tuple[str, ...]:
        """Return a list of texts, at least one."""
        if not isinstance(data, list) or not data:
            self._refuse(f"{where} is {_word(data)}, not a list of texts")
        return tuple(self._word(f"{where}[{place}]", value) for place, value in enumerate(data))

    def _names(self, data: object, n_nodes: int) -> tuple[NameBlock, ...]:
        """Return the blocks of names; together they name every node once."""
        if not isinstance(data, list):
            self._refuse(f"names is {_word(data)}, not a list of blocks")
        blocks = []
        next_node = 0
        for place, block in enumerate(data):
            where = f"names[{place}]"
            self._keys(where, block, ("first", "count", "template", "parts"))
            first, count, parts = block["first"], block["count"], block["parts"]
            if type(first) is not int or type(count) is not int or first != next_node or count < 0:
                self._refuse(
                    f"{where} must follow the block before it: first = {next_node}, count at least 0"
                )
            template = self._word(f"{where}.template", block["template"])
            if not _TEMPLATE.fullmatch(template):
                self._refuse(
                    f"{where}.template = {template!r} may have the places {{}}, {{:d}} and {{:05d}} only"
                )
            if not isinstance(parts, list) or len(parts) != template.count("{"):
                self._refuse(f"{where}.parts must have one list per place of the template {template!r}")
            wanted = [int if ":" in spot else (int, str) for spot in re.findall(r"\{.*?\}", template)]
            for number, (part, kind) in enumerate(zip(parts, wanted, strict=True)):
                if not isinstance(part, list) or len(part) != count:
                    self._refuse(f"{where}.parts[{number}] must be a list of {count} values")
                if not all(isinstance(value, kind) and not isinstance(value, bool) for value in part):
                    self._refuse(f"{where}.parts[{number}] has values that do not fit {template!r}")
            blocks.append(NameBlock(first, count, template, tuple(parts)))
            next_node += count
        if next_node != n_nodes:
            self._refuse(f"names are given to {next_node} nodes; there are {n_nodes}")
        return tuple(blocks)

    def _structure(self, data: object) -> ClosStructure | None:
        """Return the structure; that it fits the cables is check NP109."""
        if data is None:
            return None
        self._keys("structure", data, (*_STRUCTURE_COLUMNS, *_STRUCTURE_NUMBERS))
        assert isinstance(data, dict)
        values: dict[str, Any] = {
            name: self._column(f"structure.{name}", data[name], dtype)
            for name, dtype in _STRUCTURE_COLUMNS.items()
        }
        for name in _STRUCTURE_NUMBERS:
            value = data[name]
            if type(value) is not int or not int(name == "domains") <= value < MOST_ROWS:
                self._refuse(f"structure.{name} is {_word(value)}, not a whole number in range")
            values[name] = value
        n_leaves = len(values["leaf_pod"])
        self._range("structure.endpoint_leaf", values["endpoint_leaf"], n_leaves, "leaves")
        self._range("structure.leaf_pod", values["leaf_pod"], n_leaves, "pods that leaves can fill")
        if (np.diff(values["leaf_pod"]) < 0).any() or not n_leaves:
            self._refuse("structure.leaf_pod must name pods in ascending order, for one leaf at least")
        return ClosStructure(**values)

    def _direct(self, data: object) -> DirectStructure | None:
        """Return the structure of a direct network; that it fits the cables is check NP109."""
        if data is None:
            return None
        kind = data.get("kind") if isinstance(data, dict) else None
        cls = DIRECT_STRUCTURES.get(kind) if isinstance(kind, str) else None
        if cls is None:
            self._refuse(f"direct.kind is {_word(kind)}, not one of {', '.join(DIRECT_STRUCTURES)}")
        self._keys("direct", data, ("kind", *cls.arrays(), *cls.numbers()))
        assert isinstance(data, dict)
        values: dict[str, Any] = {
            name: self._column(f"direct.{name}", data[name], np.int32) for name in cls.arrays()
        }
        for name in cls.numbers():
            value = data[name]
            if type(value) is not int or not 0 <= value < MOST_ROWS:
                self._refuse(f"direct.{name} is {_word(value)}, not a whole number in range")
            values[name] = value
        return cls(**values)

    def _fibre_paths(self, data: object, n_sites: int) -> tuple[FibrePath, ...]:
        """Return the fibre paths of the spans."""
        if data is None:
            return ()
        if not isinstance(data, list):
            self._refuse(f"fibre_paths is {_word(data)}, not a list of paths")
        paths = []
        for place, row in enumerate(data):
            where = f"fibre_paths[{place}]"
            self._keys(where, row, _FIBRE_PATH)
            for key in ("a", "b", "number", "wavelengths", "fibre_pairs"):
                most, least = (n_sites, 0) if key in ("a", "b") else (MOST_ROWS, 1)
                if type(row[key]) is not int or not least <= row[key] < most:
                    self._refuse(f"{where}.{key} is {_word(row[key])}, not a whole number in range")
            length = self._latency(f"{where}.length_m", row["length_m"], "a length of 0 m or more")
            if length is None:
                self._refuse(f"{where}.length_m is null, not a length of 0 m or more")
            counts = {key: row[key] for key in ("a", "b", "number", "wavelengths", "fibre_pairs")}
            paths.append(FibrePath(length=length, **counts))
        return tuple(paths)

    def _joins(
        self,
        where: str,
        cables: Mapping[str, NDArray[Any]],
        path: NDArray[np.int16],
        paths: tuple[FibrePath, ...],
        site: NDArray[np.int16],
    ) -> None:
        """Refuse a cable on a fibre path between other sites than its own."""
        on = np.flatnonzero(path >= 0)
        ends = np.sort([site[cables["lower"][on]], site[cables["upper"][on]]], axis=0)
        said = np.sort([[each.a, each.b] for each in paths], axis=1)[path[on]].T
        wrong = np.flatnonzero((ends != said).any(axis=0))
        if len(wrong):
            place = int(on[wrong[0]])
            self._refuse(f"{where}[{place}] = {path[place]}: that path joins other sites than the cable does")

    def _damage(self, data: object, n_nodes: int, n_cables: int, n_endpoints: int) -> Damage | None:
        """Return what a damaged fabric remembers, its numbers all in range."""
        if data is None:
            return None
        self._keys("damage", data, _DAMAGE)
        assert isinstance(data, dict)
        failures = self._words("damage.failures", data["failures"])
        seeds = self._column("damage.seeds", data["seeds"], np.int64)
        whole = data["n_cables"]
        if type(whole) is not int or not n_cables <= whole < MOST_ROWS:
            self._refuse(f"damage.n_cables is {_word(whole)}, not a number of cables from {n_cables}")
        before = self._table("damage.before", data["before"], ENDPOINT_COLUMNS)
        nodes = self._column("damage.nodes", data["nodes"], np.int32)
        cable = self._column("damage.cable", data["cable"], np.int32)
        endpoint = self._column("damage.endpoint", data["endpoint"], np.int32)
        lost = self._column("damage.lost", data["lost"], np.int8)
        n_before = len(before["host"])
        for name, column, count, what in (
            ("before.host", before["host"], n_nodes, "nodes"),
            ("before.leaf", before["leaf"], n_nodes, "nodes"),
            ("before.cable", before["cable"], whole, "cables"),
            ("before.rail", before["rail"], 1 << 15, "rails"),
            ("nodes", nodes, n_nodes, "nodes"),
            ("cable", cable, whole, "cables"),
            ("endpoint", endpoint, n_before, "endpoints"),
            ("lost", lost, len(REASONS), "reasons"),
        ):
            self._range(f"damage.{name}", column, count, what)
        fits = len(seeds) == len(failures) and len(cable) == n_cables and len(endpoint) == n_endpoints
        ascends = all((np.diff(column) > 0).all() for column in (nodes, cable, endpoint))
        if not fits or not ascends or len(lost) != n_before or (np.diff(before["host"]) < 0).any():
            self._refuse(
                "damage does not fit the fabric: it has one seed per failure, and one old number per cable "
                "and endpoint in ascending order"
            )
        if not np.array_equal(np.flatnonzero(lost == 0), endpoint):
            self._refuse("damage.lost and damage.endpoint disagree on which endpoints are left")
        return Damage(
            failures=failures,
            seeds=tuple(seeds.tolist()),
            nodes=nodes,
            cable=cable,
            endpoint=endpoint,
            n_cables=whole,
            before=Endpoints(**before),
            lost=lost,
        )

    def _spec(self, data: object) -> dict[str, Any] | None:
        """Return the spec as it was saved."""
        if data is not None and not isinstance(data, dict):
            self._refuse(f"spec is {_word(data)}, not an object")
        return data

    def _latency(self, where: str, data: object, what: str = "a time of 0 s or more") -> float | None:
        """Return a latency [s]."""
        if data is None:
            return None
        if isinstance(data, bool) or not isinstance(data, (int, float)) or not 0 <= data < inf:
            self._refuse(f"{where} is {_word(data)}, not {what}")
        return float(data)


def _both(there: NDArray[Any], back: NDArray[Any]) -> NDArray[Any]:
    """Return a column of links from the columns of its two directions."""
    return np.stack([there, back], axis=1).ravel()


def _word(value: object) -> str:
    """Say what a JSON value is."""
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list" if value else "an empty list"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."  # noqa: PLR2004 -- characters
