"""OpenSM, the subnet manager itself, as a routing scheme: ``opensm:ftree``, ``opensm:updn``, ...

ibsim plays switches and adapters from a net file; OpenSM runs once with ``libumad2sim.so`` preloaded,
lays its forwarding tables and dumps them; here they are read back and followed. No hardware, no root, nothing
outside a temporary folder: the two talk over abstract Unix sockets whose name is drawn for each run. Planes
and rails that never meet are subnets of their own: OpenSM runs once for each.

The tables decide the paths and nothing else: virtual lanes, which some engines (``lash``, ``dfsssp``) rely on
to be free of deadlock, are not modelled. OpenSM falls back to ``minhop`` when an engine gives up; that is
an error here, for the result would carry a wrong name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import BackendError, RoutingError, did_you_mean
from netplan.interop.subnet import MOST_SIM_HOST, Subnet
from netplan.interop.torus_2qos import torus_conf
from netplan.routing.registry import SCHEMES, RoutingScheme
from netplan.routing.routes import Routes, single_paths
from netplan.routing.tables import follow_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.routing.routes import FlowTable, RoutingOptions

#: Engines of OpenSM 3.3, with what each is for (man opensm).
ENGINES = {
    "minhop": "shortest paths with balanced counters, its default",
    "updn": "up/down from the top tier",
    "dnup": "down/up: up/down with the directions exchanged",
    "ftree": "d-mod-k on fat-trees",
    "lash": "shortest paths in layers free of deadlock",
    "dor": "dimension order, on meshes and hypercubes",
    "dfsssp": "shortest paths with weights, free of deadlock by virtual lanes",
    "sssp": "shortest paths with weights",
    "nue": "within a number of virtual lanes, of newer OpenSM",
    "torus-2QoS": "dimension order on tori, with a configuration of the torus",
}

#: Engines that are told the roots.
_WITH_ROOTS = ("updn", "dnup", "ftree")

#: What to install, for Debian and Ubuntu.
INSTALL = "apt-get install opensm ibsim-utils"

#: Unicast LIDs of a subnet: 0x0001 to 0xBFFF (InfiniBand Architecture Specification, volume 1).
MOST_LIDS = 0xBFFF

#: Longest that ibsim and OpenSM may take [s].
MOST_SECONDS = 600.0

_SWITCH = re.compile(r"Unicast lids .* of switch (?:Lid \d+ |DR path .* )?guid 0x([0-9a-fA-F]+)")
_ROW = re.compile(
    r"0x([0-9a-fA-F]{1,4})\s+(\d{1,3})\s*[#:]\s*\(?\s*Channel Adapter portguid 0x([0-9a-fA-F]{1,16})"
)
_USED = re.compile(r"osm_ucast_mgr_process: (\S+) tables configured on all switches")


@dataclass(frozen=True, eq=False)
class Tables:
    """Forwarding tables as a subnet manager laid them."""

    fabric: Fabric
    engine: str
    """The engine that OpenSM used in the end: it falls back to ``minhop`` when another gives up."""
    forward: NDArray[np.integer]
    """(n_nodes, n_endpoints) link that a switch sends packets for an endpoint to; -1 for none."""
    order: NDArray[np.int64]
    """(n_endpoints,) endpoints in the order that ``ftree`` wants ranks in; as they are for the others."""

    def paths(
        self, src: NDArray[np.integer], dst: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Follow the tables for many pairs: CSR of links, in path order.

        Raises
        ------
        RoutingError
            A table has no entry for a pair on its way, or its packets go round.
        """
        return follow_tables(self.fabric, self.forward, src, dst)


def missing_programs() -> str | None:
    """Say what is missing to run OpenSM on a simulated subnet; None when all is there."""
    for program, package in (("ibsim", "ibsim-utils"), ("opensm", "opensm")):
        if find_program(program) is None:
            return f"{program} is not installed (Debian: {package})"
    if preload_library() is None:
        return "libumad2sim.so is not installed (Debian: libumad2sim0)"
    return None


def find_program(name: str) -> str | None:
    """Return the path of a program; administrators' programs are often not on a user's PATH."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    )


def preload_library() -> Path | None:
    """Return the library that leads libibumad to ibsim."""
    places = (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"))
    found = (next(place.glob("**/umad2sim/libumad2sim.so"), None) for place in places if place.is_dir())
    return next((path for path in found if path is not None), None)


def lay_tables(
    subnet: Subnet,
    engine: str,
    folder: Path,
    *,
    options: Sequence[str] = (),
    has_roots: bool = True,
    seconds: float = MOST_SECONDS,
) -> Tables:
    """Start ibsim with a subnet, run OpenSM on each of its parts once and return the tables that it laid.

    Raises
    ------
    BackendError
        A program is missing, failed or took too long; the text has the end of what it said.
    RoutingError
        The fabric has more ports than a subnet has LIDs.
    """
    if missing := missing_programs():
        raise BackendError(f"routing opensm:{engine}: {missing}", hint=INSTALL)
    lids = int(np.bincount(subnet.part).max()) + len(subnet.switch_guid)
    if lids > MOST_LIDS:
        raise RoutingError(
            f"routing opensm:{engine}: fabric {subnet.fabric.name!r} needs {lids:,} LIDs, "
            f"and a subnet has {MOST_LIDS:,}",
            hint="split it into planes, or take ib-static",
        )
    net = folder / "net"
    net.write_text(subnet.net_file(), encoding="ascii")
    (folder / "opensm.conf").touch()  # else the machine's own would be read
    (folder / "roots").write_text(subnet.root_file(), encoding="ascii")
    fabric = subnet.fabric
    forward = np.full((fabric.n_nodes, fabric.n_endpoints), -1, np.int32)
    order = np.arange(fabric.n_endpoints)
    used = engine
    with simulated(subnet, net, folder, seconds) as environment:
        n_parts = int(subnet.part.max()) + 1
        for number in range(n_parts):
            dumps, log = folder / f"dumps-{number}", folder / f"opensm-{number}.log"
            dumps.mkdir()
            command = [str(find_program("opensm")), "-F", str(folder / "opensm.conf"), "-R", engine, "-o"]
            command += ["-f", str(log), "-D", "0x43", "--dump_files_dir", str(dumps), "-t", "2000"]
            if has_roots and engine in _WITH_ROOTS:
                command += ["-a", str(folder / "roots")]
            of_part = environment | client_environment(subnet, number)
            of_part |= {"OSM_CACHE_DIR": str(dumps), "OSM_TMP_DIR": str(dumps)}
            run_program([*command, *options], of_part, folder, seconds, log)
            if not (dumps / "opensm-lfts.dump").exists():
                raise BackendError(f"opensm -R {engine} dumped no tables: {_end(log)}")
            found = _USED.findall(log.read_text(errors="replace"))
            if not found:
                raise BackendError(f"opensm -R {engine} laid no tables: {_end(log)}")
            used = found[-1] if number == 0 or found[-1] != engine else used
            text = (dumps / "opensm-lfts.dump").read_text(errors="replace")
            read_dump(text, subnet, forward)
            wanted = dumps / "opensm-ftree-ca-order.dump"
            if found[-1] == "ftree" and wanted.exists() and n_parts == 1:
                order = _read_order(subnet, wanted)
    return Tables(fabric, used, forward, order)


def client_environment(subnet: Subnet, part: int = 0) -> dict[str, str]:
    """Return what tells a client of ibsim where to attach.

    Raises
    ------
    BackendError
        All names of the part are too long for ibsim.
    """
    host = subnet.sim_host(part)
    if host is None:
        raise BackendError(
            f"ibsim takes names of up to {MOST_SIM_HOST} characters; those of subnet {part} are all longer",
            hint="give the hosts shorter names",
        )
    return {"SIM_HOST": host} if host else {}


def run_program(
    command: Sequence[str], environment: dict[str, str], folder: Path, seconds: float, log: Path
) -> str:
    """Run one program against the simulator; return what it printed.

    Raises
    ------
    BackendError
        It failed or took too long.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            env=environment | {"LD_PRELOAD": str(preload_library())},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BackendError(f"{name} took more than {seconds:g} s: {_end(log)}") from None
    except OSError as error:
        raise BackendError(f"{name} cannot be started: {error.strerror}", hint=INSTALL) from None
    if done.returncode:
        said = f"{done.stdout[-500:]}{done.stderr[-500:]} {_end(log)}"
        raise BackendError(f"{name} ended with status {done.returncode}: {said}")
    return done.stdout


@contextmanager
def simulated(subnet: Subnet, net: Path, folder: Path, seconds: float) -> Iterator[dict[str, str]]:
    """Run ibsim with a net file while the block runs; yield the environment that its clients need.

    Raises
    ------
    BackendError
        ibsim does not start.
    """
    said = folder / "ibsim.log"
    environment = {key: value for key, value in os.environ.items() if key != "SIM_HOST"}
    environment |= {"IBSIM_SOCKNAME": f"netplan-{uuid.uuid4().hex[:12]}"}
    n_nodes = len(subnet.switch_guid) + subnet.fabric.n_endpoints
    radix = np.maximum(
        subnet.fabric.nodes.radix, np.bincount(subnet.fabric.links.src, minlength=subnet.fabric.n_nodes)
    )
    ports = (
        int(radix[subnet.fabric.nodes.tier > 0].sum())
        + len(subnet.switch_guid)
        + 2 * subnet.fabric.n_endpoints
    )
    limits = ["-N", str(n_nodes + 64), "-S", str(len(subnet.switch_guid) + 64), "-P", str(ports + 1024)]
    with said.open("w") as out:
        process = subprocess.Popen(
            [str(find_program("ibsim")), "-s", "-n", *limits, str(net)],
            env=environment,
            stdin=subprocess.PIPE,  # it ends when its input does
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            until = time.monotonic() + seconds
            while "Network simulator ready" not in said.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > until:
                    raise BackendError(f"ibsim did not start: {_end(said)}")
                time.sleep(0.02)
            yield environment
        finally:
            process.kill()
            process.communicate()


def _end(path: Path) -> str:
    """Return the last lines of a log."""
    return path.read_text(errors="replace")[-800:] if path.exists() else f"no {path.name}"


def read_dump(text: str, subnet: Subnet, forward: NDArray[np.int32]) -> None:
    """Fill in the tables that OpenSM dumped for a subnet that netplan made.

    Raises
    ------
    BackendError
        The dump speaks of another subnet.
    """
    node_of = {guid: node for node, guid in subnet.switch_guid.items()}
    endpoint_of = {guid: i for i, guid in enumerate(subnet.adapter_guid.tolist())}
    out: NDArray[np.int64] = np.zeros(0, np.int64)
    node = -1
    try:
        for line in text.splitlines():
            if found := _SWITCH.match(line):
                node = node_of[int(found[1], 16)]
                out = subnet.ports_in_order(node)
            elif (found := _ROW.match(line)) and int(found[2]) > 0:
                forward[node, endpoint_of[int(found[3], 16)]] = out[int(found[2]) - 1]
    except (KeyError, IndexError) as error:
        raise BackendError(f"opensm dumped tables of something else: {error!r}") from None


def _read_order(subnet: Subnet, path: Path) -> NDArray[np.int64]:
    """Read the order of ranks: one line per adapter, its LID and its name; DUMMY where a place is free."""
    endpoint = {subnet.adapter_id(i): i for i in range(subnet.fabric.n_endpoints)}
    lines = [line.strip().split(None, 1) for line in path.read_text(errors="replace").splitlines()]
    return np.array([endpoint[line[1]] for line in lines if len(line) > 1 and line[1] in endpoint])


# ---- as a routing scheme -------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _tables(fabric: Fabric, engine: str) -> Tables:
    """Return the tables of an engine on a fabric; kept, for one run routes each phase by them."""
    with tempfile.TemporaryDirectory(prefix="netplan-opensm-") as folder:
        subnet, options = Subnet.of(fabric), []
        if engine == "torus-2QoS":
            text = torus_conf(subnet)
            if text is None:
                raise RoutingError(
                    f"routing opensm:torus-2QoS: fabric {fabric.name!r} is no generated torus of 2 or 3 dims"
                )
            (Path(folder) / "torus-2QoS.conf").write_text(text, encoding="ascii")
            options = ["--torus_config", str(Path(folder) / "torus-2QoS.conf"), "-Q"]
        tables = lay_tables(subnet, engine, Path(folder), options=options)
    if tables.engine != engine:
        raise RoutingError(
            f"opensm gave up {engine!r} on fabric {fabric.name!r} and laid {tables.engine!r} instead",
            hint=f"ask for opensm:{tables.engine}, or for an engine that fits the fabric",
        )
    return tables


def _scheme(name: str) -> RoutingScheme:
    """Return the routing scheme of ``opensm:ENGINE``."""
    engine = name.partition(":")[2]
    if engine not in ENGINES:
        message = f"routing {name!r}: {engine!r} is not one of OpenSM's engines: {', '.join(ENGINES)}"
        near = did_you_mean(engine, ENGINES)
        raise RoutingError(message, hint=f"did you mean opensm:{near}?" if near else None)

    def route(fabric: Fabric, flows: FlowTable, options: RoutingOptions) -> Routes:
        path_ptr, link = _tables(fabric, engine).paths(flows.src, flows.dst)
        weight = np.full(len(flows), float(flows.qps))
        return single_paths(name, fabric, len(flows), weight, path_ptr, link)

    return RoutingScheme(
        name,
        f"forwarding tables that OpenSM itself lays on a simulated subnet: {ENGINES[engine]}",
        "virtual lanes; LMC (several LIDs per port)",
        "infiniband",
        uses_qps=False,
        uses_seed=False,
        differs_by_structure=False,
        route=route,
    )


def offer_engines() -> None:
    """Let routing names begin with ``opensm:``; called by whoever may import this layer."""
    SCHEMES.add_prefix("opensm", "opensm:ENGINE", _scheme)
