"""ibnetdiscover dumps, and the net files of ibsim, which are of the same grammar.

A record is a line ``Switch``, ``Ca`` (or ``Hca``) or ``Rt`` with the number of ports and an id in quotes,
then one line per cabled port: ``[port] "peer"[its port]``. Before a record stand lines ``switchguid=`` and
the like; what follows ``#`` are comments that ibnetdiscover fills with names, LIDs and speeds. Both ends of
a cable describe it, and must agree.

*Hosts.* One host has several adapters: they are put together by the host part of their node description
(``dgx-01 HCA-3``, ``dgx-01 mlx5_2``), by a short name that begins a full one (``dgx-01``,
``dgx-01.example.com``), and by the system image GUID of one card. Descriptions that are a factory's own name
no host: such adapters go by their ports where cabling is regular (`_by_port`), else each is its own host.
SHARP aggregation nodes inside switches and routers are left out.

*Speeds.* ``4xNDR`` in a comment or ``w=4 s=NDR`` after the port. Per lane [Gb/s]: SDR 2, DDR 4, QDR 8 (data
rate: 8b/10b coded), FDR10 10, FDR 13.64, EDR 25, HDR 50, NDR 100, XDR 200 (InfiniBand Architecture
Specification 1.7, volume 2; InfiniBand Trade Association roadmap).

Written for OpenSM: an endpoint is a channel adapter ``"host HCA-n"`` with one port; see
`netplan.interop.subnet`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.lanes import LANE_GBPS, WIDTHS, lane_rate
from netplan.interop.registry import ReadOptions, WriteOptions, add_format, speed_remark
from netplan.interop.source import Faults, shown
from netplan.interop.subnet import Subnet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.fabric import Fabric
    from netplan.interop.source import Source

_RECORD = re.compile(r'(Switch|Hca|Ca|Rt|Router)\s+(\d{1,5})\s+"([^"]*)"(.*)')
_PORT = re.compile(
    r'\[(\d{1,5})\](?:\[ext (\d+)\])?\s*(?:\((?:0x)?([0-9a-fA-F]{1,16})\))?\s*"([^"]*)"\s*\[(\d{1,5})\](.*)'
)
_GUID = re.compile(r"(switchguid|caguid|rtguid|sysimgguid|vendid|devid)=0x([0-9a-fA-F]{1,16})")
_SPEED = re.compile(r"\b(\d{1,2})x([A-Z]{3}(?:10)?)\b")
_WIDTH_OPTION, _SPEED_OPTION = re.compile(r"\bw=(\d{1,2})x?\b"), re.compile(r"\bs=([A-Z]{3}(?:10)?)\b")
_DESCRIPTION = re.compile(r'"([^"]*)"')
#: Adapter part of a node description: what follows the host's name.
_ADAPTER = re.compile(
    r"[\s/:]+(HCA|mlx\d+|hfi\d*|ibp|ibs|ib|irdma|NIC|CA|port)[-_ ]?([0-9a-z]*)(?:[^0-9a-z].*)?$",
    re.IGNORECASE,
)
_FACTORY = re.compile(
    r"mellanox technologies|nvidia|connectx|^mt\d+|^localhost|^\(none\)|^node description", re.IGNORECASE
)
_SWITCH_NAME = re.compile(r"MF0;([^:;]+):[^/]*((?:/[A-Za-z0-9]+)*)$")
_AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
#: Cabling is regular when this share of hosts has all adapters on one port number.
_REGULAR = 0.9

#: Up to this share of ends that only one side describes are left out: links that changed while the dump ran.
_FEW = 0.01

_NOT_A_LINE = re.compile(r"[A-Za-z]+=|DR path|Chassis\b|Non-Chassis|Hostname:")


@dataclass
class _Port:
    line: int
    number: int
    peer: str
    peer_port: int
    rate: float | None
    guid: str | None


@dataclass
class _Record:
    line: int
    kind: str
    ports: int
    id: str
    description: str
    guid: str | None
    image: str | None
    cabled: dict[int, _Port] = field(default_factory=dict)


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read a dump or a net file.

    Raises
    ------
    SpecError
        It is cut off or not of this grammar; all faults are listed.
    """
    faults = Faults(source)
    records = _records(source, faults)
    if not records and not faults.found:
        faults.add(None, "has no Switch, Ca or Hca record", "is it the output of ibnetdiscover?")
    faults.refuse()
    graph = ReadGraph(source)
    kept = _without_inner_nodes(records, graph)
    host_of, host_name = _hosts([r for r in kept.values() if r.kind == "Ca"], graph)
    _add_nodes(kept, host_of, host_name, graph)
    assumed = _add_cables(records, kept, host_of, options, graph, faults)
    faults.refuse()
    if assumed:
        graph.remarks.append(speed_remark(options, assumed))
    return graph


def _records(source: Source, faults: Faults) -> dict[str, _Record]:
    """Return the records by their ids."""
    records: dict[str, _Record] = {}
    guids: dict[str, str] = {}
    now: _Record | None = None
    for number, full in enumerate(source.lines, 1):
        line = full.strip()
        if not line or line.startswith("#"):
            continue
        if found := _GUID.match(line):
            now = None
            guids[found[1]] = found[2].lower().lstrip("0")
        elif found := _RECORD.match(line):
            now = _new_record(number, found, guids)
            guids = {}
            if now.id in records:
                faults.add(
                    number, f"{shown(now.id)} is described twice, first in line {records[now.id].line}"
                )
            records.setdefault(now.id, now)
        elif line.startswith("["):
            _read_port(number, line, now, faults)
        elif not _NOT_A_LINE.match(line):
            faults.add(number, f"is no line of an ibnetdiscover dump: {shown(line)}")
    return records


def _new_record(number: int, found: re.Match[str], guids: dict[str, str]) -> _Record:
    """Return the record that a line begins."""
    kind = {"Hca": "Ca", "Router": "Rt"}.get(found[1], found[1])
    _, _, comment = found[4].partition("#")
    described = _DESCRIPTION.search(comment)
    guid = guids.get({"Switch": "switchguid", "Ca": "caguid", "Rt": "rtguid"}[kind])
    return _Record(
        number,
        kind,
        int(found[2]),
        found[3],
        described[1] if described else found[3],
        guid,
        guids.get("sysimgguid"),
    )


def _read_port(number: int, line: str, now: _Record | None, faults: Faults) -> None:
    """Add a port to its record."""
    found = _PORT.match(line)
    if found is None:
        faults.add(number, f"is no port line: {shown(line)}", 'a port line is: [1] "peer"[2]')
        return
    if now is None:
        faults.add(number, "is a port of no record: a Switch, Ca or Hca line must come before")
        return
    port = int(found[1])
    if not 1 <= port <= now.ports:
        faults.add(number, f"port {port} of {shown(now.id)}, which has ports 1 to {now.ports}")
        return
    if port in now.cabled:
        faults.add(
            number, f"port {port} of {shown(now.id)} is cabled twice, first in line {now.cabled[port].line}"
        )
        return
    rate, fault = _rate(found[6])
    if fault:
        faults.add(number, fault)
    now.cabled[port] = _Port(
        number, port, found[4], int(found[5]), rate, (found[3] or "").lower().lstrip("0") or None
    )


def _rate(rest: str) -> tuple[float | None, str | None]:
    """Return the rate [bytes/s] in the rest of a port line, or what is wrong with it."""
    options, _, comment = rest.partition("#")
    comment = _DESCRIPTION.sub("", comment)
    if speed := _SPEED_OPTION.search(options):
        width = _WIDTH_OPTION.search(options)
        pair = (int(width[1]) if width else 4, speed[1])
    elif both := _SPEED.search(comment) or _SPEED.search(options):
        pair = (int(both[1]), both[2])
    else:
        return None, None
    if pair[0] not in WIDTHS or pair[1] not in LANE_GBPS:
        return (
            None,
            f"speed {pair[0]}x{pair[1]} is not known: widths {sorted(WIDTHS)}, speeds {', '.join(LANE_GBPS)}",
        )
    return lane_rate(*pair), None


def _without_inner_nodes(records: dict[str, _Record], graph: ReadGraph) -> dict[str, _Record]:
    """Return the records without SHARP aggregation nodes and routers."""
    inner = [r.id for r in records.values() if r.kind == "Ca" and _AGGREGATION.search(r.description)]
    routers = [r.id for r in records.values() if r.kind == "Rt"]
    if inner:
        graph.remarks.append(f"left out: {len(inner):,} SHARP aggregation node(s) inside switches")
    if routers:
        graph.remarks.append(f"left out: {len(routers):,} InfiniBand router(s)")
    gone = {*inner, *routers}
    return {key: record for key, record in records.items() if key not in gone}


def split_description(description: str) -> tuple[str, int | None]:
    """Return host and number (from 0) of the adapter of a node description; no host where a factory wrote it.

    >>> split_description("dgx-01 HCA-3"), split_description("gpu7 mlx5_2"), split_description("H0")
    (('dgx-01', 2), ('gpu7', 2), ('H0', None))
    """
    if _FACTORY.search(description.strip()):
        return "", None
    found = _ADAPTER.search(description)
    if found is None:
        return description.strip(), None
    number = re.search(r"\d{1,9}", found[2])
    first = 1 if found[1].upper() == "HCA" else 0  # HCA-1 is mlx5_0
    return description[: found.start()].strip(), int(number[0]) - first if number else None


class _Groups:
    """Things that are found to be one, by union of sets."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, key: str) -> str:
        """Return the member that stands for the set of a thing."""
        while self._parent.setdefault(key, key) != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def join(self, key: str, other: str) -> None:
        """Put the set of a thing to that of another."""
        self._parent[self.root(key)] = self.root(other)


def _host_keys(adapters: list[_Record]) -> dict[str, str]:
    """Return, by adapter id, a key that all adapters of one host share."""
    groups = _Groups()
    by_image: dict[str, list[str]] = defaultdict(list)
    named: dict[str, list[str]] = defaultdict(list)
    for record in adapters:
        if host := split_description(record.description)[0]:
            named[host].append(record.id)
        if record.image:
            by_image[record.image].append(record.id)
    for ids in (*named.values(), *by_image.values()):
        for other in ids[1:]:
            groups.join(other, ids[0])
    for host, ids in named.items():
        short = host.split(".", 1)[0]
        if short != host and short in named and not re.fullmatch(r"[\d.]+", host):
            groups.join(ids[0], named[short][0])
    cabled = [record for record in adapters if record.cabled]
    for nameless, host in _by_port(cabled, {record.id: groups.root(record.id) for record in cabled}):
        groups.join(nameless, host)
    return {record.id: groups.root(record.id) for record in adapters}


def _by_port(adapters: list[_Record], host_of: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield nameless adapters with one of the host they belong to, where cabling is regular enough to tell.

    It is when nearly all hosts with names have their adapters on one port number, each of another leaf. The
    adapter on that port of a leaf which the host's leaves go with is then the host's.
    """
    leaf: dict[str, tuple[str, int]] = {}
    of_host: dict[str, list[str]] = defaultdict(list)
    nameless = []
    for record in adapters:
        port = next(iter(record.cabled.values()))
        leaf[record.id] = (port.peer, port.peer_port)
        if split_description(record.description)[0]:
            of_host[host_of[record.id]].append(record.id)
        else:
            nameless.append(record.id)
    several = [ids for ids in of_host.values() if len(ids) > 1]
    regular = [ids for ids in several if len({leaf[i][1] for i in ids}) == 1]
    if not nameless or not several or len(regular) < _REGULAR * len(several):
        return
    together: dict[str, set[str]] = defaultdict(set)
    for ids in regular:
        leaves = {leaf[i][0] for i in ids}
        for each in leaves:
            together[each] |= leaves
    # Group of leaves, by its least member, and port -> an adapter of the host there, and its leaves.
    head: dict[tuple[str, int], tuple[str, set[str]]] = {}
    for ids in regular:
        first = leaf[ids[0]]
        head[min(together[first[0]]), first[1]] = (ids[0], {leaf[i][0] for i in ids})
    for adapter in nameless:
        at, number = leaf[adapter]
        key = (min(together.get(at, {at})), number)
        host, leaves = head.setdefault(key, (adapter, set()))
        if host != adapter and at not in leaves:
            yield adapter, host
        leaves.add(at)


def _hosts(adapters: list[_Record], graph: ReadGraph) -> tuple[dict[str, str], dict[str, str]]:
    """Return host key by adapter id, and name by host key."""
    keys = _host_keys(adapters)
    members: dict[str, list[_Record]] = defaultdict(list)
    for record in adapters:
        members[keys[record.id]].append(record)
    names = {}
    merged = []
    for key, group in members.items():
        words = list(dict.fromkeys(name for r in group if (name := split_description(r.description)[0])))
        names[key] = min(words, key=len) if words else group[0].id
        if len(words) > 1:
            merged.append(f"{names[key]} ({', '.join(words[1:3] if words[0] == names[key] else words[:2])})")
    if merged:
        graph.remarks.append(f"hosts with several names, taken as one: {', '.join(merged[:5])}")
    nameless = sum(not any(split_description(r.description)[0] for r in group) for group in members.values())
    unnamed = sum(not split_description(record.description)[0] for record in adapters)
    if unnamed:
        graph.remarks.append(
            f"{unnamed:,} adapter(s) carry no host's name: put to hosts by their ports where cabling is "
            f"regular; {nameless:,} host(s) are named by a GUID"
        )
    return keys, names


def _switch_name(record: _Record) -> str:
    """Return the name of a switch: without the frame that Mellanox switches put around it."""
    found = _SWITCH_NAME.match(record.description)
    if found is None:  # a name that all switches of a model have names none of them
        return record.id if _FACTORY.search(record.description) else record.description or record.id
    chip = found[2].strip("/").replace("/", "-")  # of a chassis: leaf or spine card, and chip
    return found[1] if chip in ("", "U1") else f"{found[1]}-{chip}"


def _add_nodes(
    kept: dict[str, _Record], host_of: dict[str, str], host_name: dict[str, str], graph: ReadGraph
) -> None:
    """Add hosts and switches; two switches of one name are told apart by GUID."""
    seen: set[str] = set()
    names: dict[str, int] = defaultdict(int)
    for record in kept.values():
        if record.kind == "Switch":
            names[_switch_name(record)] += 1
    for record in kept.values():
        if record.kind == "Switch":
            name = _switch_name(record)
            name = f"{name}-{record.guid or record.id}" if names[name] > 1 else name
            if record.guid:
                graph.guids[record.guid] = (0, len(graph.nodes))
            graph.nodes.append(ReadNode(record.id, name, is_host=False, line=record.line, radix=record.ports))
        elif (host := host_of[record.id]) not in seen:
            seen.add(host)
            graph.nodes.append(ReadNode(host, host_name[host], is_host=True, line=record.line))


def _add_cables(
    records: dict[str, _Record],
    kept: dict[str, _Record],
    host_of: dict[str, str],
    options: ReadOptions,
    graph: ReadGraph,
    faults: Faults,
) -> int:
    """Add cables; return how many had no speed."""
    numbers = _adapter_numbers(kept, host_of)
    assumed = unlike = 0
    for record, port, peer, back in _confirmed(records, graph, faults):
        mine, its = (record.id, port.number), (peer.id, port.peer_port)
        if record.id not in kept or peer.id not in kept or mine >= its:
            continue
        rates = [rate for rate in (port.rate, back.rate) if rate is not None]
        assumed += not rates
        unlike += len(set(rates)) > 1
        rate = min(rates, default=options.speed)
        ends = []
        for owner, each in ((record, port), (peer, back)):
            if owner.kind == "Ca":
                ends.append((host_of[owner.id], numbers[owner.id] * 1000 + each.number))
                if each.guid or owner.guid:
                    graph.guids[each.guid or f"{owner.guid}"] = (1, len(graph.cables))
            else:
                ends.append((owner.id, each.number))
        graph.cables.append(
            ReadCable(ends[0][0], ends[1][0], rate, port.line, a_port=ends[0][1], b_port=ends[1][1])
        )
    if unlike:
        graph.remarks.append(f"{unlike:,} cable(s) have two speeds, one at each end; taken: the slower")
    return assumed


def _confirmed(
    records: dict[str, _Record], graph: ReadGraph, faults: Faults
) -> Iterator[tuple[_Record, _Port, _Record, _Port]]:
    """Yield each end of a cable that the other side describes too; others are faults, or told when few."""
    lone: list[tuple[int, str]] = []
    for record in records.values():
        for port in record.cabled.values():
            where = f"port {port.number} leads to {shown(port.peer)}"
            peer = records.get(port.peer)
            back = peer.cabled.get(port.peer_port) if peer is not None else None
            if peer is None:
                hint = "the dump is cut off, or a record is missing"
                faults.add(port.line, f"{where}, which the file does not describe", hint)
            elif back is None:
                lone.append((port.line, f"{where}[{port.peer_port}], which has no line for it"))
            elif (back.peer, back.peer_port) != (record.id, port.number):
                said = f"which says {shown(back.peer)}[{back.peer_port}]"
                lone.append((port.line, f"{where}[{port.peer_port}], {said}"))
            elif back is port:
                faults.add(port.line, f"port {port.number} leads to itself")
            else:
                yield record, port, peer, back
    if len(lone) > _FEW * sum(len(record.cabled) for record in records.values()):
        for line, message in lone:
            faults.add(line, message, "both ends of a cable describe it")
    elif lone:
        first = f"line {lone[0][0]}: {lone[0][1]}"
        graph.remarks.append(f"left out: {len(lone):,} end(s) that the other side does not confirm; {first}")


def _adapter_numbers(kept: dict[str, _Record], host_of: dict[str, str]) -> dict[str, int]:
    """Return the place of each adapter in its host: by its number, then as the file lists them."""
    by_host: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for place, record in enumerate(kept.values()):
        if record.kind == "Ca":
            number = split_description(record.description)[1]
            by_host[host_of[record.id]].append((10**9 if number is None else number, place, record.id))
    return {row[2]: i for rows in by_host.values() for i, row in enumerate(sorted(rows))}


def write_ibsim(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write a net file for ibsim."""
    return {"fabric.net": Subnet.of(fabric).net_file().encode()}


def write_ibnetdiscover(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write what ibnetdiscover would print of the fabric."""
    return {"ibnetdiscover.txt": Subnet.of(fabric).dump().encode()}


add_format(
    "ibnetdiscover",
    __name__,
    summary="what ibnetdiscover prints of an InfiniBand subnet: switches, adapters, ports, speeds, GUIDs",
    checked_by="ibnetdiscover's own output on ibsim (read); netplan's reader (written)",
    leaves_out="cable lengths, GPUs per host; LIDs that it writes are its own count",
    suffix=".txt",
    read=read,
    write=write_ibnetdiscover,
)
add_format(
    "ibsim",
    __name__,
    summary="net file of ibsim, the simulator of InfiniBand subnets under a real subnet manager",
    checked_by="ibsim with OpenSM, ibnetdiscover and ibdmchk",
    leaves_out="cable lengths, GPUs per host; speeds above 600G, which ibsim's words end before",
    suffix=".net",
    read=read,
    write=write_ibsim,
)
