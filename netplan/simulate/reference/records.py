"""Records of packet simulators as their authors keep them, read as reference runs.

A folder of records has a file for each simulator and scenario (``hpcc_*.json``, ``conweave_*.json``,
``htsim_*.json``: a ``header`` and ``records``) and ``topologies.json``. `read_records` makes reference
runs of them, of whatever size, protocol or threshold, and says by name which records it cannot use and
why.

What the records leave to their reader is worked out here:

* The way of the acknowledgements in the ns-3 simulators: they are hashed like data, with source and
  destination exchanged. The hash (MurmurHash3 over addresses and ports, the switch's id as seed, next
  hops in the order of their ids) is checked on every recorded path of the data. Where it gives another
  path, acknowledgements are taken to go back along the data's path.
* All flows of the runs whose records list only a sample (all-to-all, rings of one QP a step).
* Who waits for whom in rings and staged all-to-alls.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from netplan.errors import SpecError
from netplan.simulate.reference.runs import FORMAT, ReferenceRun, parse_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Records", "convert", "read_records"]

Json = dict[str, Any]

WORD = 0xFFFFFFFF

SIMULATORS = {
    "hpcc": {
        "name": "HPCC ns-3",
        "repository": "alibaba-edu/High-Precision-Congestion-Control",
        "commit": "9f4be2a9ead8a90e8bf732c66bd758c00e58e5be",
    },
    "conweave": {
        "name": "ConWeave ns-3",
        "repository": "conweave-project/conweave-ns3",
        "commit": "236a801a00e35de9078635e04acae2f701c21ded",
    },
    "htsim": {
        "name": "htsim",
        "repository": "ultraethernet/uet-htsim (ndp, swift, eqds: Broadcom/csg-htsim)",
        "commit": "40ccb0526bb6297eeb22ab33f9934fb35278dbaf (841d9e7be46bb968eece766aa4b6c044c7799f67)",
    },
}

#: What only says where and how often the simulator writes.
NOT_A_SETTING = re.compile(
    r"QLEN_MON|MONITORING|FLOWGEN|LINK_DOWN|RANDOM_SEED|LOAD$|^cmd$|^seed$|PFC_ENABLED"
)

#: Members that every record has.
_MEMBERS = (
    "tag",
    "scenario",
    "cc",
    "topology",
    "params",
    "flows",
    "n_flows",
    "n_done",
    "sim_ns",
    "payload_B",
    "wire_B",
    "rc",
    "pfc_total",
)

#: Protocols of htsim that spread the packets of a flow over all paths.
SPREADS = (
    "nscc",
    "nscc_obl",
    "nscc_notrim",
    "nscc_rccc",
    "dctcp_spray",
    "rccc",
    "eqds",
    "ndp",
    "swift",
    "roce_ar",
)


#: Protocols of htsim whose names are used as they are.
_HTSIM = (
    *SPREADS,
    "nscc_ecmp",
    "dctcp_ecmp",
    "rccc_ecmp",
    "hpcc",
    "roce_ecmp",
    "roce_deep_ecmp",
)

#: What a record that is not as the others are may raise on its way.
_UNUSABLE = (LookupError, ValueError, TypeError, AttributeError, SpecError)


class Records(NamedTuple):
    """What a folder of records holds."""

    runs: tuple[ReferenceRun, ...]
    left_out: tuple[tuple[str, str], ...]
    """(name, reason) of the records that cannot be used."""


def read_records(folder: str | Path) -> Records:
    """Read a folder of records.

    Parameters
    ----------
    folder
        Where ``topologies.json`` and the simulators' files are.

    Returns
    -------
    Records
        Reference runs, and the records that are none with the reason.

    Raises
    ------
    SpecError
        No such folder, no topologies, no record, or a file that is not JSON.
    """
    left_out: list[tuple[str, str]] = []
    made = convert(Path(folder), left_out=left_out)
    runs: list[ReferenceRun] = []
    for key, content in made.items():
        for run in content["runs"]:
            try:
                runs += parse_runs({**content, "runs": [run]}, f"{folder}: {key}")
            except _UNUSABLE as error:
                left_out.append((run["name"], _reason(error)))
    return Records(tuple(runs), tuple(left_out))


def _reason(error: BaseException) -> str:
    """Return what is wrong with a record, in words."""
    if isinstance(error, KeyError):
        return f"member {error} is missing"
    text = str(error)
    told = isinstance(error, LookupError | SpecError | ValueError) and text
    return text if told else f"not as expected ({text})"


# ---- ECMP of the ns-3 simulators ------------------------------------------------------------------


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & WORD


def ecmp_hash(words: Sequence[int], seed: int) -> int:
    """MurmurHash3 (32 bits, Austin Appleby, public domain) of three words."""
    state = seed
    for word in words:
        state ^= _rotate(word * 0xCC9E2D51 & WORD, 15) * 0x1B873593 & WORD
        state = (_rotate(state, 13) * 5 + 0xE6546B64) & WORD
    state ^= 4 * len(words)
    state = (state ^ state >> 16) * 0x85EBCA6B & WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & WORD
    return state ^ state >> 16


def _address(host: int) -> int:
    return (0x0B000001 + (host // 256 << 16) + (host % 256 << 8)) & WORD


class Topology:
    """Nodes and cables of one recorded topology."""

    def __init__(self, raw: Json) -> None:
        self.n_hosts = int(raw["n_hosts"])
        self.bundle = int(raw["roles"].get("bundle_parallel_links_on_upper_tiers", 1))
        self.cables = [
            (a, b, group["rate_gbps"], group["delay_ns"]) for group in raw["links"] for a, b in group["pairs"]
        ]
        self.neighbours: dict[int, list[int]] = defaultdict(list)
        for a, b, _, _ in self.cables:
            self.neighbours[a].append(b)
            self.neighbours[b].append(a)
        for at in self.neighbours.values():
            at.sort()
        self.next_hops = lru_cache(maxsize=None)(self._next_hops)

    def _next_hops(self, to: int) -> dict[int, list[int]]:
        distance = {to: 0}
        queue = [to]
        for node in queue:
            for other in self.neighbours[node]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    if other >= self.n_hosts:
                        queue.append(other)
        return {
            node: [
                n
                for n in self.neighbours[node]
                if distance.get(n) == far - 1 and (n >= self.n_hosts or n == to)
            ]
            for node, far in distance.items()
        }

    def hashed(self, src: int, dst: int, sport: int, dport: int) -> list[int]:
        """Return the nodes that a flow crosses under ECMP."""
        path = [src]
        words = (_address(src), _address(dst), sport | dport << 16)
        while path[-1] != dst:
            hops = self.next_hops(dst)[path[-1]]
            path.append(hops[ecmp_hash(words, path[-1]) % len(hops)] if len(hops) > 1 else hops[0])
        return path

    def compact(self) -> Json:
        """Return the written form."""
        return {"hosts": self.n_hosts, "cables": [list(cable) for cable in self.cables]}


# ---- one record -> one run ------------------------------------------------------------------------


def _columns(header: Json) -> dict[str, int]:
    names = (re.sub(r"\(.*", "", name) for name in header["columns"]["flow_cols"])
    return {name: place for place, name in enumerate(names)}


def _steady(record: Json) -> list[float] | None:
    """Mean goodput of each flow over the second half of the run [Gb/s]."""
    if record["n_done"] or "ts_goodput_gbps" not in record:
        return None
    if "goodput_last_half_gbps" in record.get("summary", {}):
        return list(record["summary"]["goodput_last_half_gbps"])
    rows = record["ts_goodput_gbps"]
    return [round(sum(row[len(row) // 2 :]) / len(row[len(row) // 2 :]), 3) for row in rows]


def _measured(record: Json, rows: list[list[Any]], col: dict[str, int], topology: Json) -> Json:
    """Return what the simulator measured; times in ns from the flow's start."""
    start = col["start_ns"]

    def column(name: str) -> list[Any] | None:
        values = [row[col[name]] if len(row) > col[name] else None for row in rows] if name in col else []
        return values if any(value is not None for value in values) else None

    finish = column("finish_ns")
    if finish is not None:
        finish = [
            f - (r[start] or 0) if f is not None and r[start] is not None else None
            for f, r in zip(finish, rows, strict=True)
        ]
    summary = record.get("summary", {})
    keep: Json = {
        "received_ns": column("fct_rx_ns"),
        "acknowledged_ns": column("fct_ack_ns") or finish,
        "ideal_ns": column("ideal_maxmin_fct_ns"),
        "marked": column("marked"),
        "goodput_gbps": _steady(record),
        "makespan_ns": summary.get("makespan_ns"),
        "bound_ns": summary.get("bound_bottleneck_link_ns"),
        "bound_with_acks_ns": summary.get("bound_with_acks_ns"),
        "static_bound": summary.get("static_bound_efficiency"),
        "pauses": record["pfc_total"]["pauses"],
        "paused_ns": record["pfc_total"].get("paused_ns"),
        "drops": record.get("drops", 0),
        "queue_bytes": [q for q in (_queue(row, topology) for row in record.get("queues", [])[:3]) if q]
        or None,
        "sent_bytes": [row for row in record.get("tx", []) if row[2]] or None,
        "cpu_s": record.get("cpu_run_s"),
        "done": record["n_done"],
    }
    return {name: value for name, value in keep.items() if value is not None}


def _queue(row: list[Any], topology: Json) -> list[Any] | None:
    """Return [node, next node, largest, mean] of one of the longest queues.

    htsim names switches by tier: LS (leaf), US (upper), CS (core); DST is a host. A queue of parallel
    links, or of a tier whose numbers are not those of the topology, is left out.
    """
    if not isinstance(row[0], str):
        return row[:4]
    match = re.fullmatch(r"(LS|US|CS|SRC)_?(\d+)->(LS|US|CS|DST)_?(\d+)\(0\)", row[0])
    roles = topology["roles"]
    first = {
        "LS": roles.get("leaf", roles.get("tor")),
        "US": roles.get("spine", roles.get("agg")),
        "CS": roles.get("core"),
        "SRC": [0],
        "DST": [0],
    }
    if match is None or first[match[1]] is None or first[match[3]] is None:
        return None
    a, b = first[match[1]][0] + int(match[2]), first[match[3]][0] + int(match[4])
    cables = {tuple(pair) for group in topology["links"] for pair in group["pairs"]}
    return [a, b, *row[1:3]] if (a, b) in cables or (b, a) in cables else None


def _settings(record: Json, header: Json) -> Json:
    both = {**header.get("common_params", {}), **record["params"]}
    kept = {name: value for name, value in both.items() if not NOT_A_SETTING.search(name)}
    if "cmd" in both:
        kept.update(_htsim_settings(both["cmd"], record.get("stdout_settings", [])))
    if "maxBdp_B" in record:
        kept["max_bdp_bytes"], kept["max_rtt_ns"] = record["maxBdp_B"], record["maxRtt_ns"]
    return kept


def _htsim_settings(command: str, lines: list[str]) -> Json:
    """Return what an htsim command line and its output say about queues, marking and pauses."""
    found: Json = {}
    for name, pattern in (
        ("queue_packets", r"-q (\d+)"),
        ("ecn_packets", r"-ecn (\d+ \d+)"),
        ("pfc_packets", r"-pfc_thresholds (\d+ \d+)"),
        ("initial_window_packets", r"-cwnd (\d+)"),
    ):
        match = re.findall(pattern, command)
        if match:
            values = [int(value) for value in match[-1].split()]  # the last one counts
            found[name] = values if len(values) > 1 else values[0]
    text = "\n".join(lines)
    for name, pattern in (
        ("min_rto_us", r"min RTO to ([\d.]+)"),
        ("network_rtt_us", r"network_max_unloaded_rtt ([\d.]+)"),
        ("ecn_low_bytes", r"ECN to parameters low (\d+)"),
        ("ecn_high_bytes", r"ECN to parameters low \d+ high (\d+)"),
        ("queue_bdp", r"factor is (\d+)xBDP"),
    ):
        match = re.findall(pattern, text)
        if match:
            found[name] = float(match[-1])
    found["trims"] = "-disable_trim" not in command
    return found


def _run(record: Json, header: Json, key: str, file: str) -> Json:
    """Return a run without its demand."""
    protocol = _htsim_protocol(record) if key == "htsim" else record["cc"]
    loss = record.get("loss_mode", "")
    pfc = "IRN" not in loss and record["params"].get("PFC_ENABLED", 1) == 1 and "nopfc" not in record["tag"]
    run: Json = {
        "name": record["tag"],
        "simulator": key,
        "scenario": record["scenario"],
        "protocol": protocol,
        "balancing": record.get("lb") or ("spread" if key == "htsim" and protocol in SPREADS else "ecmp"),
        "topology": record["topology"],
        "seed": record.get("seed"),
        "note": record.get("note", ""),
        "payload_bytes": record["payload_B"],
        "wire_bytes": record["wire_B"],
        "ack_bytes": 64 if key == "htsim" else 88 if protocol == "hpcc" else 60,
        "ack_every": 4 if key == "htsim" and "htsim_uec" in record["params"]["cmd"] else 1,
        "lossless": pfc and not protocol.startswith(("nscc", "rccc", "dctcp_", "ndp", "eqds", "swift"))
        if key == "htsim"
        else pfc,
        "clock_ns": 0 if key == "htsim" else 1,
        "horizon_ns": record["sim_ns"],
        "settings": _settings(record, header),
    }
    return {name: value for name, value in run.items() if value is not None}


def _htsim_protocol(record: Json) -> str:
    """Return htsim's protocol by the name that `engine.SETTINGS` knows, or else by its command line."""
    name, command = str(record["cc"]), str(record["params"].get("cmd", ""))
    program = re.match(r"htsim_(\w+)", command)
    if name in _HTSIM or program is None:
        return name
    if program[1] == "roce":
        return "roce_ar" if "ecmp_ar" in command else "roce_ecmp"
    return _uec_protocol(command, name) if program[1] == "uec" else program[1]


def _uec_protocol(command: str, name: str) -> str:
    """Return the protocol of a command line of htsim_uec."""
    found = re.search(r"-sender_cc_algo (\w+)", command)
    kind = found[1] if found else "rccc" if "-receiver_cc_only" in command else name
    oblivious = "oblivious" in command
    forms = (
        (kind == "nscc" and "-receiver_cc" in command, "nscc_rccc"),
        (kind == "nscc" and "-disable_trim" in command, "nscc_notrim"),
        (re.search(r"-paths 1(?!\d)", command) is not None, f"{kind}_ecmp"),
        (kind == "dctcp", "dctcp_spray"),
        (kind == "nscc" and oblivious, "nscc_obl"),
    )
    return next((form for applies, form in forms if applies), kind)


# ---- demands --------------------------------------------------------------------------------------


def _listed(
    record: Json, topology: Topology, col: dict[str, int], rows: list[list[Any]], key: str, run: Json
) -> Json:
    """Return the demand of a record that lists all its flows."""
    demand: Json = {
        "src": [row[1] for row in rows],
        "dst": [row[2] for row in rows],
        "bytes": [row[col["size_B"]] for row in rows],
        "start_ns": [row[col["start_ns"]] for row in rows],
    }
    paths = [row[col["path"]] if len(row) > col["path"] else None for row in rows]
    if topology.bundle > 1 and run["balancing"] != "spread":
        raise LookupError("which of the parallel links was hashed to is not recorded")
    if all(path is None for path in paths) and run["balancing"] != "spread" and key == "htsim":
        if any(len(hops) > 1 for row in rows for hops in topology.next_hops(row[2]).values()):
            raise LookupError("paths not recorded")
        paths = [topology.hashed(row[1], row[2], 0, 0) for row in rows]
    if any(paths):
        demand["path"] = paths
    if key == "htsim":
        return demand
    received: dict[int, int] = defaultdict(int)
    ways = []
    for row, path in zip(rows, paths, strict=True):
        _, src, dst, sport = row[:4]
        dport = 100 + received[dst] if key == "conweave" else 100
        received[dst] += 1
        way = topology.hashed(src, dst, sport, dport)
        if path is not None and way != path:
            return demand  # other ports than expected: acknowledgements go back as the data came
        ways.append(topology.hashed(dst, src, dport, sport))
    demand["ack_path"] = ways
    return demand


def _all_to_all(record: Json, topology: Topology, listing: Json | None) -> Json:
    """Return all flows of an ns-3 all-to-all: shift by shift, in each the hosts in order."""
    n = topology.n_hosts
    pairs = [(s, (s + shift) % n) for shift in range(1, n) for s in range(n)]
    demand = _pairs(record, pairs, size=4, start=5)
    if "staged" in record["tag"]:
        demand["after"] = [i - n if i >= n else -1 for i in range(len(pairs))]
    if listing is not None:
        ports = [(row[3], 100) for row in listing["flows"]]
        if [tuple(row[1:3]) for row in listing["flows"]] != pairs:
            raise ValueError(f"{record['tag']}: the listing's flows are in another order")
    else:
        ports = [(10000 + i // n, 100 + i // n) for i in range(len(pairs))]
    if any(row[3] != ports[row[0]][0] for row in record["flows"]):
        raise LookupError("source ports of the flows that are not listed are not recorded")
    demand["path"] = [topology.hashed(s, d, *port) for (s, d), port in zip(pairs, ports, strict=True)]
    demand["ack_path"] = [topology.hashed(d, s, b, a) for (s, d), (a, b) in zip(pairs, ports, strict=True)]
    for row in listing["flows"] if listing else ():
        if row[4] >= 0 and row[4] not in demand["path"][row[0]]:
            raise ValueError(f"{record['tag']}: flow {row[0]} took spine {row[4]}, the hash says otherwise")
    return demand


def _htsim_all_to_all(record: Json, topology: Topology, run: Json) -> Json:
    """Return all flows of htsim's all-to-all; staged, they are listed host by host."""
    n = topology.n_hosts
    if run["balancing"] != "spread":
        raise LookupError("paths not recorded")
    if "staged" in record["tag"]:
        pairs = [(s, (s + shift) % n) for s in range(n) for shift in range(1, n)]
        after = [i - 1 if i % (n - 1) else -1 for i in range(len(pairs))]
        return {**_pairs(record, pairs, size=3, start=4), "after": after}
    return _pairs(record, [(s, (s + shift) % n) for shift in range(1, n) for s in range(n)], size=3, start=4)


def _pairs(record: Json, pairs: list[tuple[int, int]], *, size: int, start: int) -> Json:
    """Return flows between pairs of hosts, of the size and begin that the listed ones have."""
    begin = min(row[start] for row in record["flows"] if row[start] is not None)
    return {
        "src": [s for s, _ in pairs],
        "dst": [d for _, d in pairs],
        "bytes": [record["flows"][0][size]] * len(pairs),
        "start_ns": [begin] * len(pairs),
    }


def _ring(record: Json, topology: Topology, demand: Json) -> Json:
    """Add chunks and feeders to a ring of one QP an edge."""
    match = re.search(r"chunk (\d+), (\d+) steps", record["note"])
    if match is None:
        raise ValueError(f"{record['tag']}: no chunk in its note")
    sender = {dst: i for i, dst in enumerate(demand["dst"])}
    return {
        **demand,
        "chunk_bytes": int(match[1]),
        "feeder": [sender[src] for src in demand["src"]],
    }


def _ring_of_steps(record: Json, topology: Topology, edges: Json) -> Json:
    """Return all flows of a ring with a QP a step: the next source port that takes the same path."""
    n = len(edges["src"])
    rows = {row[0]: row for row in record["flows"]}
    steps = record["n_flows"] // n
    src, dst, after, path, way = [], [], [], [], []
    port = list(edges["port"])
    for step in range(steps):
        for e in range(n):
            s, d = edges["src"][e], edges["dst"][e]
            if step:
                port[e] += 1
                while topology.hashed(s, d, port[e], 100) != edges["path"][e]:
                    port[e] += 1
            row = rows.get(step * n + e)
            if row is not None and (row[1], row[2], row[3]) != (s, d, port[e]):
                raise ValueError(f"{record['tag']}: flow {row[0]} is {row[1:4]}, not {(s, d, port[e])}")
            src.append(s)
            dst.append(d)
            after.append((step - 1) * n + (e - 1) % n if step else -1)
            path.append(edges["path"][e])
            way.append(topology.hashed(d, s, 100, port[e]))
    start = min(row[5] for row in record["flows"])
    return {
        "src": src,
        "dst": dst,
        "bytes": [record["flows"][0][4]] * len(src),
        "start_ns": [start] * len(src),
        "path": path,
        "ack_path": way,
        "after": after,
    }


def _htsim_ring(record: Json, topology: Topology, run: Json) -> Json:
    """Return all flows of htsim's ring: chains, each of which goes once round and more."""
    n = topology.n_hosts
    steps = record["n_flows"] // n
    edge: dict[int, tuple[int, int]] = {}
    for row in record["flows"]:
        where = (row[0] // steps + row[0] % steps) % n
        if edge.setdefault(where, (row[1], row[2])) != (row[1], row[2]):
            raise ValueError(f"{record['tag']}: flow {row[0]} is on another edge than expected")
    if run["balancing"] != "spread" and "inorder" not in record["tag"]:
        raise LookupError("paths not recorded")
    if "inorder" in record["tag"]:
        run["balancing"] = "spread"  # no two edges meet, whatever path each takes
        edge = {e: (e, (e + 1) % n) for e in range(n)}
    for e in range(n):  # an edge that the sample left out follows from its neighbours
        if e not in edge and (e - 1) % n in edge and (e + 1) % n in edge:
            edge[e] = (edge[(e - 1) % n][1], edge[(e + 1) % n][0])
    if len(edge) < n:
        raise LookupError("order of the ring not recorded")
    at = [edge[(i // steps + i % steps) % n] for i in range(record["n_flows"])]
    return {
        "src": [s for s, _ in at],
        "dst": [d for _, d in at],
        "bytes": [record["flows"][0][3]] * len(at),
        "start_ns": [0] * len(at),
        "after": [i - 1 if i % steps else -1 for i in range(len(at))],
    }


def _demand(
    record: Json, topology: Topology, col: dict[str, int], key: str, run: Json, listings: Json, edges: Json
) -> tuple[Json, list[list[Any]]]:
    """Return the demand, and the rows of the record in the order of the demand's flows (those it lists)."""
    tag, rows = record["tag"], record["flows"]
    if record["scenario"] == "d-alltoall":
        name = record["topology"].replace("leafspine_", "ls")
        demand = (
            _htsim_all_to_all(record, topology, run)
            if key == "htsim"
            else _all_to_all(record, topology, listings.get(name) if key == "hpcc" else None)
        )
    elif tag.startswith("d_ringstep"):
        match = re.match(r"d_ring_[^_]+_[^_]+", tag.replace("ringstep", "ring"))
        if match is None or match[0] not in edges:
            raise LookupError("the ring of one QP an edge, whose paths it shares, is not among the records")
        demand = _ring_of_steps(record, topology, edges[match[0]])
    elif key == "htsim" and record["scenario"] == "d-ring-allreduce":
        demand = _htsim_ring(record, topology, run)
    else:
        demand = _listed(record, topology, col, rows, key, run)
        if record["scenario"] == "d-ring-allreduce":
            demand = _ring(record, topology, demand)
    for row in rows:
        i = row[0]
        if (demand["src"][i], demand["dst"][i]) != (row[1], row[2]):
            raise ValueError(f"{tag}: flow {i} is {row[1]} -> {row[2]}, not as its demand says")
    return demand, rows


# ---- a folder -------------------------------------------------------------------------------------


def convert(folder: Path, *, left_out: list[tuple[str, str]] | None = None) -> dict[str, Json]:
    """Return a folder of records in netplan's own form (`runs.FORMAT`), one object per simulator.

    Parameters
    ----------
    folder
        The records.
    left_out
        Filled with (name, reason) of the records that cannot be used.

    Raises
    ------
    SpecError
        No such folder, no topologies, no record, or a file that is not JSON.
    """
    raw = _load(folder / "topologies.json")
    topologies = {name: Topology(value) for name, value in raw.items()}
    listing_file = folder / "hpcc_d_alltoall_paths.json"
    listings = _load(listing_file) if listing_file.exists() else {}
    made: dict[str, Json] = {}
    seen = 0
    for key, simulator in SIMULATORS.items():
        found = sorted(_records(folder, key), key=_place)
        seen += len(found)
        edges = _edges([item for item in found if not _why_not(item[0])])
        runs: list[Json] = []
        demands: list[Json] = []
        place: dict[str, int] = {}
        for record, header, file in found:
            try:
                reason = _why_not(record)
                if reason:
                    raise LookupError(reason)
                run, demand = _converted(record, header, key, file, (topologies, raw, listings, edges))
            except _UNUSABLE as error:
                if left_out is not None:
                    left_out.append((str(record.get("tag", file)), _reason(error)))
                continue
            text = json.dumps(demand)
            if text not in place:
                place[text] = len(demands)
                demands.append(demand)
            run["demand"] = place[text]
            runs.append(run)
        if runs:
            used = sorted({run["topology"] for run in runs})
            made[key] = {
                "format": FORMAT,
                "simulator": simulator,
                "topologies": {name: topologies[name].compact() for name in used},
                "demands": demands,
                "runs": runs,
            }
    if not seen:
        raise SpecError(
            f"{folder}: no records (hpcc_*.json, conweave_*.json, htsim_*.json)",
            hint="name a folder of records of packet simulators",
        )
    return made


def _load(path: Path) -> Json:
    """Return the object of a JSON file."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read as records of packet simulators: {error}") from None
    if not isinstance(content, dict):
        raise SpecError(f"{path}: holds a {type(content).__name__}, not an object of records")
    return content


def _place(item: tuple[Json, Json, str]) -> tuple[str, str]:
    """Return by what records are sorted."""
    return str(item[0].get("scenario", "")), str(item[0].get("tag", ""))


def _why_not(record: Json) -> str:
    """Return why a record cannot be used whatever it says; empty: it can."""
    missing = [name for name in _MEMBERS if name not in record]
    if missing:
        return f"member {missing[0]!r} is missing"
    if record["rc"] != 0:
        return f"the simulator ended with code {record['rc']}"
    if not record["flows"]:
        return "lists no flow"
    return ""


def _converted(
    record: Json, header: Json, key: str, file: str, shared: tuple[dict[str, Topology], Json, Json, Json]
) -> tuple[Json, Json]:
    """Return the run of a record, without the place of its demand, and its demand."""
    topologies, raw, listings, edges = shared
    if record["topology"] not in topologies:
        raise LookupError(f"topology {record['topology']!r} is not in topologies.json")
    topology = topologies[record["topology"]]
    columns = _columns(header)
    run = _run(record, header, key, file)
    demand, rows = _demand(record, topology, columns, key, run, listings, edges)
    measured = _measured(record, rows, columns, raw[record["topology"]])
    if key == "htsim" and run["protocol"].startswith("roce") and "after" in demand:
        measured.pop("acknowledged_ns", None)  # htsim_roce lists them in the order of their ends, not by flow
    if len(rows) < len(demand["src"]):
        measured["flow"] = [row[0] for row in rows]
    run["measured"] = measured
    return run, demand


def _records(folder: Path, key: str) -> Iterator[tuple[Json, Json, str]]:
    for path in sorted(folder.glob(f"{key}_*.json")):
        content = _load(path)
        for record in content.get("records", ()):
            yield record, content.get("header", {}), path.stem


def _edges(records: list[tuple[Json, Json, str]]) -> Json:
    """Return the rings of one QP an edge, by name without protocol: ends, port and path of each edge."""
    rings: Json = {}
    for record, _, _ in records:
        if record["tag"].startswith("d_ring_"):
            name = re.match(r"d_ring_[^_]+_[^_]+", record["tag"])[0]  # type: ignore[index]
            rings[name] = {
                "src": [row[1] for row in record["flows"]],
                "dst": [row[2] for row in record["flows"]],
                "port": [row[3] for row in record["flows"]],
                "path": [row[-1] for row in record["flows"]],
            }
    return rings
