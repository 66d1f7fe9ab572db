"""SONiC: ``config_db.json`` of every switch, written and read.

Written: a file per switch with ports and breakout, neighbours, a routed fabric (a /31 and an eBGP session
per cable, RFC 7938: an AS per leaf, one for the spines of a pod), and for RoCE the DSCP maps, PFC, ECN
thresholds, headroom and buffer pool that `netplan.planning.tune` computes.

Read: one file, or the files of all switches one after another (``cat *.json``). Cables are the rows of
``DEVICE_NEIGHBOR``; both ends may tell of one, and have to agree.

Tables and field names: the SONiC configuration schema (sonic-buildimage, ``sonic-yang-models``, Apache-2.0).
A lossless profile's ``xoff`` is headroom beyond the threshold [bytes], ``dynamic_th`` is log2 of PFC's alpha.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from netplan.errors import OutputError
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.interop.files import safe_file_name
from netplan.interop.graph import ReadCable, ReadGraph, ReadNode
from netplan.interop.json_text import Document, read_json
from netplan.interop.ports import Plug, plain_names, plugs
from netplan.interop.registry import ReadOptions, WriteOptions, add_format, setting, speed_remark
from netplan.interop.source import Faults, shown

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.source import Source
    from netplan.planning.tune import BufferRow, PortRow, Tuning

#: Lanes of a cage, rate of a lane [Gb/s] up to 800G and beyond.
_CAGE, _LANE, _FAST_LANE = 8, 100, 200

#: A speed in Mb/s this near a whole number is one.
_WHOLE = 1e-6

#: Private AS numbers of four bytes begin here (RFC 6996).
_FIRST_AS = 4_200_000_000

#: Lossless priority and its DSCP (AF31), as NIC vendors preset RoCE; congestion notifications: DSCP 48.
_PRIORITY, _DSCP, _CNP, _CNP_DSCP = "3", "26", "6", "48"

_ROLES = {1: "ToRRouter", 2: "LeafRouter", 3: "SpineRouter"}
_MOST_TEXT = 255
_MOST_MBPS = 10_000_000


@dataclass(frozen=True)
class _Port:
    """A logical port of a switch."""

    name: str
    alias: str
    cage: int
    first: int
    """First lane, from 1."""
    lanes: int


def deal_ports(rates: list[float]) -> list[_Port]:
    """Return SONiC's ports for cables in their order: cages of eight lanes, each split into equal ports.

    >>> [port.name for port in deal_ports([50e9, 50e9, 100e9])]
    ['Ethernet0', 'Ethernet4', 'Ethernet8']
    """
    made: list[_Port] = []
    cage, used, size, speed = 0, _CAGE, 0, 0.0
    for rate in rates:
        gbps = rate * 8 / 1e9
        lane = _LANE if gbps <= _CAGE * _LANE else _FAST_LANE
        need = 1 << max(0, math.ceil(math.log2(max(gbps / lane, 1) * (1 - 1e-9))))
        if need > _CAGE or abs(rate * 8 / 1e6 - round(rate * 8 / 1e6)) > _WHOLE or round(rate * 8 / 1e6) < 1:
            raise OutputError(
                f"a port of {gbps:g} Gb/s is none of SONiC's",
                hint=f"whole Mb/s, up to {_CAGE * _FAST_LANE} Gb/s",
            )
        if used + need > _CAGE or need != size or rate != speed:
            cage, used, size, speed = cage + 1, 0, need, rate
        first = (cage - 1) * _CAGE + used
        part = f"/{used // need + 1}" if need < _CAGE else ""
        made.append(_Port(f"Ethernet{first}", f"Eth{cage}{part}", cage, first + 1, need))
        used += need
    return made


def write(fabric: Fabric, options: WriteOptions) -> dict[str, bytes]:
    """Write ``NAME.json`` for each switch.

    Raises
    ------
    OutputError
        Rates that SONiC cannot say, or more cables than 10.0.0.0/8 has addresses for.
    """
    from netplan.catalog.parts import load_catalogue
    from netplan.planning.tune import tune

    tuning = tune(fabric, load_catalogue()) if setting(options, "qos", ("on", "off")) == "on" else None
    names, tier = plain_names(fabric), fabric.nodes.tier.tolist()
    ends: dict[int, list[tuple[int, Plug]]] = defaultdict(list)
    for plug in plugs(fabric):
        if plug.cable >= 1 << 23:
            raise OutputError("10.0.0.0/8 has addresses for 8,388,608 cables", hint="export a part of it")
        for node, port in ((plug.a, plug.a_port), (plug.b, plug.b_port)):
            if tier[node]:
                ends[node].append((port, plug))
    ports = {
        node: dict(
            zip(
                [port for port, _ in sorted(rows, key=lambda row: row[0])],
                deal_ports([plug.rate for _, plug in sorted(rows, key=lambda row: row[0])]),
                strict=True,
            )
        )
        for node, rows in ends.items()
    }
    numbers = _as_numbers(fabric)
    files = {}
    for node, rows in ends.items():
        made = _Switch(fabric, names, ports, numbers, node, sorted(rows, key=lambda row: row[0]))
        config = made.base()
        if tuning is not None:
            config |= made.qos(tuning)
        files[f"{safe_file_name(names[node])}.json"] = (json.dumps(config, indent=2) + "\n").encode()
    return files


def _as_numbers(fabric: Fabric) -> dict[int, int]:
    """Return an AS per switch: spines and above share theirs in a pod, where no cable joins two of them."""
    nodes, links = fabric.nodes, fabric.links
    key: dict[int, tuple[int, ...]] = {}
    for node, tier in enumerate(nodes.tier.tolist()):
        if tier:
            place = (int(nodes.site[node]), int(nodes.pod[node]))
            key[node] = (tier, *place) if tier > 1 else (1, node)
    ends = zip(links.src.tolist(), links.dst.tolist(), strict=True)
    if any(a in key and b in key and key[a] == key[b] for a, b in ends):
        key = {node: (node,) for node in key}
    number = {each: _FIRST_AS + i for i, each in enumerate(sorted(set(key.values())))}
    return {node: number[each] for node, each in key.items()}


@dataclass(frozen=True)
class _Switch:
    """What one switch's file is made of."""

    fabric: Fabric
    names: list[str]
    ports: dict[int, dict[int, _Port]]
    numbers: dict[int, int]
    node: int
    rows: list[tuple[int, Plug]]

    def base(self) -> dict[str, Any]:
        """Return everything but quality of service."""
        own, name = self.ports[self.node], self.names[self.node]
        router = str(ipaddress.IPv4Address(int(ipaddress.IPv4Address("172.16.0.0")) + self.node))
        localhost = {"hostname": name, "bgp_asn": str(self.numbers[self.node])}
        role = _ROLES.get(int(self.fabric.nodes.tier[self.node]))
        localhost |= {"type": role} if role else {}
        tables: dict[str, dict[str, Any]] = {
            "DEVICE_METADATA": {"localhost": localhost},
            **{key: {} for key in ("PORT", "BREAKOUT_CFG", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA")},
            "LOOPBACK_INTERFACE": {"Loopback0": {}, f"Loopback0|{router}/32": {}},
            **{key: {} for key in ("INTERFACE", "BGP_NEIGHBOR")},
        }
        lengths: dict[str, str] = {}
        for number, plug in self.rows:
            port = own[number]
            is_a = plug.a == self.node and plug.a_port == number
            far, far_number = (plug.b, plug.b_port) if is_a else (plug.a, plug.a_port)
            far_port = self.ports[far][far_number].name if far in self.ports else f"eth{far_number - 1}"
            mbps = round(plug.rate * 8 / 1e6)
            tables["PORT"][port.name] = {
                "alias": port.alias,
                "index": str(port.cage),
                "lanes": ",".join(map(str, range(port.first, port.first + port.lanes))),
                "speed": str(mbps),
                "mtu": "9216",
                "admin_status": "up",
                "description": f"{self.names[far]}:{far_port}"[:_MOST_TEXT],
            }
            if port.lanes < _CAGE:
                mode = {"brkout_mode": f"{_CAGE // port.lanes}x{mbps / 1000:g}G"}
                tables["BREAKOUT_CFG"].setdefault(f"Ethernet{(port.cage - 1) * _CAGE}", mode)
            tables["DEVICE_NEIGHBOR"][port.name] = {"name": self.names[far], "port": far_port}
            far_role = _ROLES.get(int(self.fabric.nodes.tier[far])) if far in self.ports else "Server"
            tables["DEVICE_NEIGHBOR_METADATA"][self.names[far]] = {"type": far_role} if far_role else {}
            lengths[port.name] = f"{max(1, math.ceil(plug.length - 1e-9))}m"
            near_ip, far_ip = (
                ipaddress.IPv4Address((10 << 24) + 2 * plug.cable + side) for side in (not is_a, is_a)
            )
            tables["INTERFACE"] |= {port.name: {}, f"{port.name}|{near_ip}/31": {}}
            if far in self.numbers:
                tables["BGP_NEIGHBOR"][str(far_ip)] = {
                    "asn": str(self.numbers[far]),
                    "local_addr": str(near_ip),
                    "name": self.names[far],
                    "admin_status": "up",
                }
        tables["CABLE_LENGTH"] = {"AZURE": lengths}
        return {key: rows for key, rows in tables.items() if rows}

    def _class(self, tuning: Tuning, plug: Plug) -> PortRow:
        """Return the class of ports that a cable's port at this switch is of."""
        tier, kind = TIER_NAMES[self.fabric.nodes.tier[self.node]], self.fabric.links.kind[2 * plug.cable]
        alike = [
            row
            for row in tuning.ports
            if (row.tier, row.kind) == (tier, LINK_KINDS[kind])
            and math.isclose(row.rate_gbps, plug.rate * 8 / 1e9, rel_tol=1e-6)
            and row.length_m >= plug.length * (1 - 1e-6)
        ]
        return min(alike, key=lambda row: row.length_m)

    def _buffer(self, tuning: Tuning, wanted: set[str]) -> BufferRow | None:
        """Return the buffer of this kind of switch; of several that suit, the one with the most headroom."""
        tier = TIER_NAMES[self.fabric.nodes.tier[self.node]]
        fit = [row for row in tuning.buffers if row.tier == tier and wanted <= set(row.ports)]
        return max(fit, key=lambda row: row.headroom_bytes, default=None)

    def qos(self, tuning: Tuning) -> dict[str, Any]:
        """Return the tables of DSCP, PFC, ECN and buffers."""
        tables: dict[str, dict[str, Any]] = {
            "DSCP_TO_TC_MAP": {
                "ROCE": {str(i): {_DSCP: _PRIORITY, _CNP_DSCP: _CNP}.get(str(i), "0") for i in range(64)}
            },
            **{key: {"ROCE": {str(i): str(i) for i in range(8)}} for key in ("TC_TO_QUEUE_MAP",)},
            "TC_TO_PRIORITY_GROUP_MAP": {
                "ROCE": {str(i): _PRIORITY if str(i) == _PRIORITY else "0" for i in range(8)}
            },
            "MAP_PFC_PRIORITY_TO_QUEUE": {"ROCE": {str(i): str(i) for i in range(8)}},
            "SCHEDULER": {
                "ROCE": {"type": "DWRR", "weight": "50"},
                "CNP": {"type": "STRICT"},
                "REST": {"type": "DWRR", "weight": "50"},
            },
            **{key: {} for key in ("WRED_PROFILE", "PORT_QOS_MAP", "QUEUE")},
            **{key: {} for key in ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG")},
        }
        curves: dict[tuple[int, int, float], str] = {}
        classes = {plug.cable: self._class(tuning, plug) for _, plug in self.rows}
        lossless = {row.name for row in classes.values() if row.headroom_bytes}
        pool = self._buffer(tuning, lossless)
        if pool is not None and pool.shared_bytes and lossless:
            tables["BUFFER_POOL"]["ingress_lossless_pool"] = {
                "type": "ingress",
                "mode": "dynamic",
                "size": str(pool.shared_bytes),
                "xoff": str(pool.headroom_bytes),
            }
        for number, plug in self.rows:
            port, row = self.ports[self.node][number].name, classes[plug.cable]
            qos = {
                "dscp_to_tc_map": "ROCE",
                "tc_to_queue_map": "ROCE",
                "tc_to_pg_map": "ROCE",
                "pfc_to_queue_map": "ROCE",
            }
            if row.headroom_bytes:
                qos |= {"pfc_enable": _PRIORITY, "pfcwd_sw_enable": _PRIORITY}
            tables["PORT_QOS_MAP"][port] = qos
            for queue, scheduler in (("0", "REST"), (_PRIORITY, "ROCE"), (_CNP, "CNP")):
                tables["QUEUE"][f"{port}|{queue}"] = {"scheduler": scheduler}
            if row.kmin_bytes is not None and row.kmax_bytes is not None and row.pmax is not None:
                curve = curves.setdefault(
                    (row.kmin_bytes, row.kmax_bytes, row.pmax), f"ROCE_{len(curves) + 1}"
                )
                tables["WRED_PROFILE"][curve] = {
                    "ecn": "ecn_all",
                    "wred_green_enable": "true",
                    "green_min_threshold": str(row.kmin_bytes),
                    "green_max_threshold": str(row.kmax_bytes),
                    "green_drop_probability": str(max(1, round(100 * row.pmax))),
                }
                tables["QUEUE"][f"{port}|{_PRIORITY}"]["wred_profile"] = curve
            if tables["BUFFER_POOL"] and row.headroom_bytes:
                self._profile(tables, tuning, port, plug, row)
        return {key: rows for key, rows in tables.items() if rows}

    @staticmethod
    def _profile(
        tables: dict[str, dict[str, Any]], tuning: Tuning, port: str, plug: Plug, row: PortRow
    ) -> None:
        """Give a port its lossless profile."""
        profile = {
            "pool": "ingress_lossless_pool",
            "size": "0",
            "xoff": str(row.headroom_bytes),
            "xon": "0",
            "xon_offset": str(max((row.xoff_bytes or 0) - (row.xon_bytes or 0), 0)),
        }
        if tuning.static_xoff_bytes is None:
            profile["dynamic_th"] = str(round(math.log2(tuning.alpha)))
        else:
            profile["static_th"] = str(round(tuning.static_xoff_bytes))
        mbps, metres = round(plug.rate * 8 / 1e6), math.ceil(row.length_m)
        base = name = f"pg_lossless_{mbps}_{metres}m_profile"
        number = 2
        while tables["BUFFER_PROFILE"].get(name, profile) != profile:
            name, number = f"{base}_{number}", number + 1
        tables["BUFFER_PROFILE"][name] = profile
        tables["BUFFER_PG"][f"{port}|{_PRIORITY}"] = {"profile": name}


# ---- Read --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _End:
    """What one switch says of a cable."""

    line: int
    switch: str
    port: str
    far: str
    far_port: str
    rate: float | None
    length: float | None


def read(source: Source, options: ReadOptions) -> ReadGraph:
    """Read the configuration of one switch, or of several one after another.

    Raises
    ------
    SpecError
        Not JSON, no configuration of SONiC, or ends of a cable that contradict each other; all are listed.
    """
    faults, graph = Faults(source), ReadGraph(source)
    roles: dict[str, str] = {}
    own: dict[str, Document] = {}
    radix: dict[str, int] = {}
    ends: list[_End] = []
    for document in read_json(source):
        _read_switch(document, faults, roles, own, radix, ends)
    faults.refuse()
    by_end = {(end.switch, end.port): end for end in ends}
    known = dict.fromkeys([*own, *(end.far for end in ends)])
    for name in known:
        is_host = name not in own and (
            roles.get(name, "Server") == "Server" or "Server" in roles.get(name, "")
        )
        tier = next((t for t, role in _ROLES.items() if role == roles.get(name)), None)
        line = own[name].line(name) if name in own else None
        graph.nodes.append(ReadNode(name, name, is_host, line, None if is_host else tier, radix.get(name, 0)))
    silent = one_sided = unlike = 0
    done: set[tuple[str, str]] = set()
    for end in ends:
        if (end.switch, end.port) in done:
            continue
        other = by_end.get((end.far, end.far_port)) if end.far_port else None
        if other is not None and (other.far, other.far_port) != (end.switch, end.port):
            faults.add(
                end.line,
                f"{shown(end.switch)} {shown(end.port)} is cabled to {shown(end.far)} {shown(end.far_port)}, "
                f"which says {shown(other.far)} {shown(other.far_port)} (line {other.line})",
            )
            continue
        one_sided += other is None and end.far in own
        done |= (
            {(end.switch, end.port), (end.far, end.far_port)} if end.far_port else {(end.switch, end.port)}
        )
        rates = [each.rate for each in (end, other) if each is not None and each.rate is not None]
        lengths = [each.length for each in (end, other) if each is not None and each.length is not None]
        silent += not rates
        unlike += len(set(rates)) > 1
        graph.cables.append(
            ReadCable(
                end.switch,
                end.far,
                min(rates, default=options.speed),
                end.line,
                max(lengths, default=3.0),
                a_port=_number(end.port),
                b_port=_number(end.far_port),
            )
        )
    faults.refuse()
    guessed = sum(name not in own and name not in roles for name in known)
    strange = sum(not node.is_host and node.name not in own for node in graph.nodes)
    for count, what in (
        (guessed, "neighbour(s) without a type: taken for hosts"),
        (strange, "switch(es) known from their neighbours only: their other cables are missing"),
        (one_sided, "cable(s) that one end only tells of"),
        (unlike, "cable(s) whose ends have different speeds: the lower is taken"),
    ):
        if count:
            graph.remarks.append(f"{count:,} {what}")
    if silent:
        graph.remarks.append(speed_remark(options, silent))
    return graph


def _table(document: Document, name: str, faults: Faults) -> dict[str, dict[str, Any]]:
    """Return a table whose rows are maps; faults otherwise."""
    table = document.data.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        faults.add(document.line(name), f"{name} is no table: a map of maps is expected")
        return {}
    return table


def _read_switch(  # noqa: C901, PLR0912 -- a fault of each kind
    document: Document,
    faults: Faults,
    roles: dict[str, str],
    own: dict[str, Document],
    radix: dict[str, int],
    ends: list[_End],
) -> None:
    """Read one switch."""
    if not isinstance(document.data, dict) or "DEVICE_METADATA" not in document.data:
        message = "is no config_db.json of SONiC: it has no DEVICE_METADATA"
        faults.add(document.line(), message)
        return
    localhost = _table(document, "DEVICE_METADATA", faults).get("localhost", {})
    name = localhost.get("hostname")
    if not isinstance(name, str) or not name:
        faults.add(document.line("DEVICE_METADATA"), "DEVICE_METADATA has no localhost with a hostname")
        return
    if name in own:
        message = f"switch {shown(name)} is described twice, first in line {own[name].line(name)}"
        faults.add(document.line("DEVICE_METADATA"), message)
        return
    own[name] = document
    if isinstance(localhost.get("type"), str):
        roles[name] = localhost["type"]
    for told, row in _table(document, "DEVICE_NEIGHBOR_METADATA", faults).items():
        if isinstance(row.get("type"), str):
            roles.setdefault(told, row["type"])
    ports = _table(document, "PORT", faults)
    lengths: dict[str, Any] = {}
    for row in _table(document, "CABLE_LENGTH", faults).values():
        lengths |= row
    neighbours = _table(document, "DEVICE_NEIGHBOR", faults)
    radix[name] = len(ports)
    if not neighbours:
        message = f"{shown(name)} has no DEVICE_NEIGHBOR: what its ports lead to is not known"
        faults.add(document.line("DEVICE_METADATA"), message, "cables are read from this table")
    for port, row in neighbours.items():
        far: Any
        far_port: Any
        far, far_port = row.get("name"), row.get("port", "")
        line = document.line("DEVICE_NEIGHBOR", port)
        if not isinstance(far, str) or not far or not isinstance(far_port, str):
            faults.add(line, f"neighbour at {shown(port)} has no name")
            continue
        if ports and port not in ports:
            faults.add(line, f"neighbour at {shown(port)}, which is not in PORT")
            continue
        speed = str(ports.get(port, {}).get("speed", ""))
        rate = None
        if speed:
            if not re.fullmatch(r"[0-9]{1,8}", speed) or not 0 < int(speed) <= _MOST_MBPS:
                faults.add(document.line("PORT", port), f"{shown(port)} has the speed {shown(speed)} [Mb/s]")
                continue
            rate = int(speed) * 1e6 / 8
        metres = re.fullmatch(r"([0-9]{1,7})m", str(lengths.get(port, "")))
        length = float(metres[1]) if metres and int(metres[1]) else None
        ends.append(_End(line, name, port, far, far_port, rate, length))


def _number(port: str) -> int:
    """Return the last number of a port's name."""
    found = re.findall(r"[0-9]{1,9}", port[:_MOST_TEXT])
    return int(found[-1]) if found else 0


add_format(
    "sonic",
    __name__,
    summary="SONiC config_db.json of every switch: ports, neighbours, BGP, PFC, ECN, buffers; "
    "read: one, or `cat *.json`",
    checked_by="round trip, by test; the WRED table by its YANG model's bounds",
    leaves_out="GPUs, pods, planes, unused ports; which lanes a real box has where (see its platform.json); "
    "lengths are whole metres",
    suffix="",
    kind="config",
    is_folder=True,
    read=read,
    write=write,
    settings={"qos": "on, or off: no DSCP maps, PFC, ECN and buffers"},
)
