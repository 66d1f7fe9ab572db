"""OpenSM, the subnet manager itself, on a simulated InfiniBand subnet made from a fabric.

ibsim plays switches and adapters from a text file; OpenSM runs once with ``libumad2sim.so``
preloaded, lays its forwarding tables and dumps them; here they are read back and followed, so that
its paths can stand beside netplan's. No hardware, no root, nothing outside a private folder: the
two talk over abstract Unix sockets whose name is drawn for each run.

An endpoint is a channel adapter with one port. The cables of a switch are on ports 1, 2, ... by
cable id, so leaves have hosts first; GUIDs ascend with the ids in the order that OpenSM sorts them
in. Either can be dealt out at random instead: real GUIDs follow no plan, nor do all cables.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.kernels.walk import join_hops

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric

Engine = Literal["ftree", "updn", "minhop"]

#: Hops after which a packet is lost: more than any fabric here needs.
MAX_HOPS = 64

_SECONDS = 15.0

#: GUIDs of switches, and of adapters. OpenSM sorts switches by GUID with its bytes turned round (as it
#: lies in a packet, read by a little-endian machine): the number of a switch is put in so turned round.
_SWITCHES, _ADAPTERS = 0x2_0000_0000, 0x1_0000_0001
_SWITCH = re.compile(r"Unicast lids .* of switch Lid \d+ guid 0x([0-9a-f]+) ")
_ROW = re.compile(r"0x[0-9a-f]+ (\d+) # Channel Adapter portguid 0x([0-9a-f]+):")
_USED = re.compile(r"osm_ucast_mgr_process: (\w+) tables configured on all switches")


@dataclass(frozen=True, eq=False)
class Subnet:
    """A fabric as InfiniBand sees it: port numbers and GUIDs."""

    fabric: Fabric
    port: NDArray[np.int64]
    """(n_links,) port of the sender that a link leaves from, counted from 1."""
    switch_guid: dict[int, int]
    """Node id of a switch -> its GUID."""
    adapter_guid: NDArray[np.int64]
    """(n_endpoints,) port GUIDs."""

    @classmethod
    def of(cls, fabric: Fabric, *, guid_seed: int | None = None, port_seed: int | None = None) -> Subnet:
        """Number ports and deal out GUIDs: ascending, or each shuffled by a seed."""
        port = np.ones(len(fabric.links), np.int64)
        for node in np.flatnonzero(fabric.nodes.tier > 0):
            out = fabric.out_link[fabric.out_ptr[node] : fabric.out_ptr[node + 1]]
            port[out] = np.arange(1, len(out) + 1)
            if port_seed is not None:
                port[out] = np.random.default_rng([port_seed, int(node)]).permutation(port[out])
        switches = np.flatnonzero(fabric.nodes.tier > 0)
        switch, adapter = np.arange(len(switches)), np.arange(fabric.n_endpoints)
        if guid_seed is not None:
            rng = np.random.default_rng(guid_seed)
            switch, adapter = rng.permutation(switch), rng.permutation(adapter)
        guids = (_SWITCHES + (switch % 256 << 8) + switch // 256).tolist()
        return cls(fabric, port, dict(zip(switches.tolist(), guids, strict=True)), _ADAPTERS + 2 * adapter)

    def ports_in_order(self, node: int) -> NDArray[np.int64]:
        """Return the links that leave a switch, port 1 first."""
        out = self.fabric.out_link[self.fabric.out_ptr[node] : self.fabric.out_ptr[node + 1]]
        return out[np.argsort(self.port[out])]

    def switch_id(self, node: int) -> str:
        """Return the name of a switch in the net file."""
        return self.fabric.node_name(node)

    def adapter_id(self, endpoint: int) -> str:
        """Return the name of an endpoint's adapter in the net file: its host, and its place there."""
        host = int(self.fabric.endpoints.host[endpoint])
        first = int(self.fabric.endpoint_ptr[self.fabric.host_index[host]])
        return f"{self.fabric.node_name(host)}.{endpoint - first}"

    def net_file(self) -> str:
        """Return the subnet in ibsim's format (that of ibnetdiscover)."""
        return "\n".join(self._records()) + "\n"

    def _records(self) -> Iterator[str]:
        fabric, links = self.fabric, self.fabric.links
        endpoint_of = dict(zip(fabric.endpoints.cable.tolist(), range(fabric.n_endpoints), strict=True))
        for node, guid in self.switch_guid.items():
            out = self.ports_in_order(node).tolist()
            yield f"switchguid=0x{guid:x}({guid:x})"
            ports = max(int(fabric.nodes.radix[node]), len(out))
            yield f'Switch\t{ports} "{self.switch_id(node)}"'
            for link in out:
                here, there = self.port[link], self.port[link ^ 1]
                if link // 2 in endpoint_of:
                    far = self.adapter_id(endpoint_of[link // 2])
                else:
                    far = self.switch_id(int(links.dst[link]))
                yield f'[{here}]\t"{far}"[{there}]'
            yield ""
        for endpoint, guid in enumerate(self.adapter_guid.tolist()):
            leaf, cable = int(fabric.endpoints.leaf[endpoint]), int(fabric.endpoints.cable[endpoint])
            yield f"caguid=0x{guid - 1:x}"
            yield f'Hca\t1 "{self.adapter_id(endpoint)}"'
            yield f'[1]({guid:x})\t"{self.switch_id(leaf)}"[{self.port[2 * cable + 1]}]'
            yield ""

    def root_file(self) -> str:
        """Return the GUIDs of the highest tier's switches: what ``updn`` and ``ftree`` take as roots."""
        tier = self.fabric.nodes.tier
        roots = np.flatnonzero(tier == tier.max()).tolist()
        return "".join(f"0x{self.switch_guid[node]:016x}\n" for node in roots)


@dataclass(frozen=True, eq=False)
class Tables:
    """Forwarding tables as a subnet manager laid them."""

    fabric: Fabric
    engine: str
    """The engine that OpenSM used in the end: it falls back to ``minhop`` when another gives up."""
    forward: NDArray[np.int64]
    """(n_nodes, n_endpoints) link that a switch sends packets for an endpoint to; -1 for none."""
    order: NDArray[np.int64]
    """(n_endpoints,) endpoints in the order that ``ftree`` wants ranks in; as they are for the others."""

    def paths(
        self, src: NDArray[np.integer], dst: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Follow the tables for many pairs: CSR of links, in path order.

        Raises
        ------
        LookupError
            A table has no entry for a pair on its way, or its packets go round.
        """
        fabric = self.fabric
        node = fabric.endpoints.leaf[src].astype(np.int64)
        goal = fabric.endpoints.leaf[dst].astype(np.int64)
        hops = np.full((len(node), MAX_HOPS), -1, np.int64)
        length = np.zeros(len(node), np.int64)
        for step in range(MAX_HOPS):
            row = np.flatnonzero(node != goal)
            if not len(row):
                return join_hops(fabric.endpoints.cable, np.asarray(src), np.asarray(dst), hops, length)
            link = self.forward[node[row], dst[row]]
            if (link < 0).any():
                lost = row[link < 0][0]
                msg = f"no way from endpoint {src[lost]} to {dst[lost]}"
                raise LookupError(msg)
            hops[row, step] = link
            length[row] += 1
            node[row] = fabric.links.dst[link]
        msg = f"packets from endpoint {src[row[0]]} to {dst[row[0]]} go round"
        raise LookupError(msg)


def missing_programs() -> str | None:
    """Say what is missing to run OpenSM on a simulated subnet; None when all is there."""
    for program, package in (("ibsim", "ibsim-utils"), ("opensm", "opensm")):
        if _program(program) is None:
            return f"{program} is not installed (Debian: {package})"
    if _preload() is None:
        return "libumad2sim.so is not installed (Debian: libumad2sim0)"
    return None


def _program(name: str) -> str | None:
    """Return the path of a program; administrators' programs are often not on a user's PATH."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    )


def _preload() -> Path | None:
    """Return the library that leads libibumad to ibsim."""
    return next(Path("/usr/lib").glob("**/umad2sim/libumad2sim.so"), None)


def lay_tables(
    subnet: Subnet, engine: Engine, folder: Path, *, options: Sequence[str] = (), has_roots: bool = True
) -> Tables:
    """Start ibsim with a subnet, run OpenSM on it once and return the tables that it laid.

    Raises
    ------
    RuntimeError
        A program failed or took too long; the text has the end of what it said.
    """
    net, log, dumps = folder / "net", folder / "opensm.log", folder / "dumps"
    dumps.mkdir()
    net.write_text(subnet.net_file(), encoding="ascii")
    (folder / "opensm.conf").touch()  # else the machine's own would be read
    (folder / "roots").write_text(subnet.root_file(), encoding="ascii")
    environment = os.environ | {"IBSIM_SOCKNAME": f"netplan-{uuid.uuid4().hex[:12]}"}
    command = [str(_program("opensm")), "-F", str(folder / "opensm.conf"), "-R", engine, "-o"]
    command += ["-f", str(log), "-D", "0x43", "--dump_files_dir", str(dumps), "-t", "2000"]
    if has_roots and engine != "minhop":
        command += ["-a", str(folder / "roots")]
    with _simulated(net, folder, environment):
        try:
            done = subprocess.run(
                [*command, *options],
                env=environment
                | {
                    "LD_PRELOAD": str(_preload()),
                    "SIM_HOST": subnet.adapter_id(0),
                    "OSM_CACHE_DIR": str(dumps),
                    "OSM_TMP_DIR": str(dumps),
                },
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            msg = f"opensm took more than {_SECONDS} s: {_end(log)}"
            raise RuntimeError(msg) from error
    if done.returncode or not (dumps / "opensm-lfts.dump").exists():
        msg = f"opensm failed: {done.stdout[-500:]}{done.stderr[-500:]} {_end(log)}"
        raise RuntimeError(msg)
    return _read(subnet, log, dumps)


@contextmanager
def _simulated(net: Path, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run ibsim with a net file while the block runs; it takes clients when the block begins."""
    said = folder / "ibsim.log"
    with said.open("w") as out:
        process = subprocess.Popen(
            [str(_program("ibsim")), "-s", "-n", "-N", "8192", "-S", "2048", "-P", "65536", str(net)],
            env=environment,
            stdin=subprocess.PIPE,  # it ends when its input does
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            until = time.monotonic() + _SECONDS
            while "Network simulator ready" not in said.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > until:
                    msg = f"ibsim did not start: {_end(said)}"
                    raise RuntimeError(msg)
                time.sleep(0.02)
            yield
        finally:
            process.kill()
            process.communicate()


def _end(path: Path) -> str:
    """Return the last lines of a log."""
    return path.read_text(errors="replace")[-800:] if path.exists() else f"no {path.name}"


def _read(subnet: Subnet, log: Path, dumps: Path) -> Tables:
    """Read what OpenSM dumped."""
    fabric = subnet.fabric
    used = _USED.findall(log.read_text(errors="replace"))
    if not used:
        msg = f"opensm laid no tables: {_end(log)}"
        raise RuntimeError(msg)
    node_of = {guid: node for node, guid in subnet.switch_guid.items()}
    endpoint_of = {guid: i for i, guid in enumerate(subnet.adapter_guid.tolist())}
    forward = np.full((fabric.n_nodes, fabric.n_endpoints), -1, np.int64)
    out: NDArray[np.int64] = np.zeros(0, np.int64)
    for line in (dumps / "opensm-lfts.dump").read_text(errors="replace").splitlines():
        if found := _SWITCH.match(line):
            node = node_of[int(found[1], 16)]
            out = subnet.ports_in_order(node)
        elif found := _ROW.match(line):
            forward[node, endpoint_of[int(found[2], 16)]] = out[int(found[1]) - 1]
    order = np.arange(fabric.n_endpoints)
    wanted = dumps / "opensm-ftree-ca-order.dump"
    if used[-1] == "ftree" and wanted.exists():
        order = _read_order(subnet, wanted)
    return Tables(fabric, used[-1], forward, order)


def _read_order(subnet: Subnet, path: Path) -> NDArray[np.int64]:
    """Read the order of ranks: one line per adapter, its LID and its name; DUMMY where a place is free."""
    endpoint = {subnet.adapter_id(i): i for i in range(subnet.fabric.n_endpoints)}
    names = [line.split()[-1] for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return np.array([endpoint[name] for name in names if name in endpoint])
