"""Exported files in the real programs that they are for: ibsim, OpenSM, ibnetdiscover, ibdmchk, slurmctld,
dot, SimGrid.

Each test skips by name where its program is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pytest

from netplan import api
from netplan.errors import BackendError, RoutingError
from netplan.fabric.classify import classify
from netplan.fabric.convert import node_names
from netplan.interop import opensm
from netplan.interop.lanes import ibsim_word
from netplan.interop.registry import FORMATS, WriteOptions
from netplan.interop.subnet import Subnet
from netplan.interop.torus_2qos import torus_conf
from netplan.routing import FlowTable, route_flows
from tests.contracts.making import make_fabric
from tests.unit.interop.samples import cables, read_back, with_nasty_names, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from netplan.fabric import Fabric

pytestmark = pytest.mark.programs

#: Shipped fabrics of up to 1,024 hosts that are one subnet and that ibsim plays in seconds.
SUBNETS = (
    "custom-example",
    "deepseek-ft2-plane",
    "dragonfly-1056",
    "dragonfly-72",
    "fat-tree-k8",
    "fire-flyer-2-zone",
    "hpcc-320",
    "hyperx-672",
    "lab-2-leaf",
    "metro-30km-2site",
    "metro-star-3site",
    "slim-fly-q5",
    "superpod-b200-4su",
    "superpod-b300-xdr-4su",
)


def program(name: str) -> str:
    """Return the path of a program, or skip."""
    found = opensm.find_program(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture
def subnet_manager() -> None:
    """Skip where OpenSM cannot run on a simulated subnet."""
    if (missing := opensm.missing_programs()) is not None:
        pytest.skip(missing)


def discovered(fabric: Fabric, folder: Path) -> str:
    """Return what ibnetdiscover sees of a fabric that ibsim plays and OpenSM brought up."""
    subnet = Subnet.of(fabric)
    (folder / "net").write_bytes(written(fabric, "ibsim"))
    (folder / "opensm.conf").touch()
    log = folder / "opensm.log"
    with opensm.simulated(subnet, folder / "net", folder, 60) as environment:
        of_client = environment | opensm.client_environment(subnet)
        of_client |= {"OSM_CACHE_DIR": str(folder), "OSM_TMP_DIR": str(folder)}
        command = [program("opensm"), "-F", str(folder / "opensm.conf"), "-o", "-f", str(log), "-t", "2000"]
        opensm.run_program(command, of_client, folder, 120, log)
        return opensm.run_program([program("ibnetdiscover")], of_client, folder, 120, log)


@pytest.mark.usefixtures("subnet_manager")
@pytest.mark.parametrize("name", SUBNETS)
def test_ibnetdiscover_reads_the_same_graph(name, tmp_path):
    """Names, ports, speeds and all: ibsim's subnet, brought up by OpenSM, as ibnetdiscover prints it."""
    program("ibnetdiscover")
    fabric = api.load_fabric(name)
    back = read_back(discovered(fabric, tmp_path).encode(), "ibnetdiscover").fabric
    plain = {row[:2]: n for row, n in cables(fabric, rates=False).items()}
    seen = {row[:2]: n for row, n in cables(back, rates=False).items()}
    assert seen == {tuple(str(each).replace("/", "-") for each in row): n for row, n in plain.items()}
    if all(ibsim_word(rate) for rate in np.unique(fabric.links.capacity).tolist()):
        speeds = [Counter(each.links.capacity.round().tolist()) for each in (fabric, back)]
        assert speeds[0] == speeds[1]


@pytest.mark.usefixtures("subnet_manager")
def test_names_that_need_escaping_come_back(tmp_path):
    """Quotes, brackets, line feeds and letters beyond ASCII do not break the subnet."""
    program("ibnetdiscover")
    fabric = with_nasty_names(
        make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 8, gpus: 2}\nspine: {count: 4}")
    )
    back = read_back(discovered(fabric, tmp_path).encode(), "ibnetdiscover").fabric
    assert cables(back, by_number=True, rates=False) == cables(fabric, by_number=True, rates=False)


@pytest.mark.usefixtures("subnet_manager")
def test_damage_is_seen(tmp_path):
    """Missing cables, a NIC that is gone and a cable at half speed show in the dump, and are told."""
    program("ibnetdiscover")
    fabric = api.fail(
        api.load_fabric("fat-tree-k8"), ["cable:leaf-0-1/spine-0-2", "cable:spine-3-0/core-0-1"]
    )
    capacity = fabric.links.capacity.copy()
    slow = next(
        row for row in range(0, len(fabric.links), 2) if fabric.link_name(row) == "leaf-5-0 -> spine-5-1"
    )
    capacity[slow : slow + 2] /= 2
    from dataclasses import replace

    fabric = replace(fabric, links=replace(fabric.links, capacity=capacity))
    found = classify(read_back(discovered(fabric, tmp_path).encode(), "ibnetdiscover").fabric)
    assert found.family == "fat-tree"
    assert [(fault.code, fault.where) for fault in found.deviations] == [
        ("NP111", "leaf-0-1"),
        ("NP111", "spine-3-0"),
        ("NP112", "leaf-5-0 -> spine-5-1"),
    ]


@pytest.mark.usefixtures("subnet_manager")
@pytest.mark.parametrize(
    ("name", "engine"),
    [("fat-tree-k8", "ftree"), ("superpod-b200-4su", "ftree"), ("fat-tree-k8", "updn"), ("hpcc-320", "updn")],
)
def test_ibdmchk_finds_no_credit_loop(name, engine, tmp_path):
    """All paths that OpenSM laid, followed by ibdmchk: each arrives, and no buffers wait in a ring."""
    checker = program("ibdmchk")
    fabric = api.load_fabric(name)
    opensm.lay_tables(Subnet.of(fabric), engine, tmp_path)
    said = subprocess.run(
        [checker, "-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"],
        cwd=tmp_path / "dumps-0",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ).stdout
    assert f"Scanned:{fabric.n_endpoints * (fabric.n_endpoints - 1)} CA to CA paths" in said
    assert "no credit loops found" in said


@pytest.mark.usefixtures("subnet_manager")
def test_engines_as_routings():
    """``opensm:ftree`` is a routing like others: no contention on shifts, as our own d-mod-k."""
    fabric = api.load_fabric("fat-tree-k8")
    n = fabric.n_endpoints
    for by in (1, 5, 64):
        src = np.arange(n, dtype=np.int32)
        flows = FlowTable(src, np.roll(src, -by).astype(np.int32), np.zeros(n, np.int32))
        for scheme in ("opensm:ftree", "ib-static"):
            used = np.bincount(route_flows(fabric, flows, scheme).resource)
            assert used.max() == 1
    traffic = api.load_traffic("all-to-all-moe")
    mine, theirs = (api.simulate(fabric, traffic, routing=name) for name in ("ib-static", "opensm:ftree"))
    assert theirs.efficiency.collective == pytest.approx(mine.efficiency.collective, rel=1e-9)
    assert theirs.scenario.transport.name == mine.scenario.transport.name


@pytest.mark.usefixtures("subnet_manager")
@pytest.mark.parametrize("engine", ["ftree", "updn"])
def test_imported_tables_are_followed(engine, tmp_path):
    """A dump and the tables that OpenSM dumped: ib-static on the import takes OpenSM's very paths."""
    fabric = api.load_fabric("fat-tree-k8")
    laid = opensm.lay_tables(Subnet.of(fabric), engine, tmp_path)
    (tmp_path / "dump.txt").write_bytes(written(fabric, "ibnetdiscover"))
    back, remarks = api.import_fabric(
        str(tmp_path / "dump.txt"), "ibnetdiscover", tables=str(tmp_path / "dumps-0" / "opensm-lfts.dump")
    )
    assert not any("left out" in remark for remark in remarks)
    n = fabric.n_endpoints
    src, dst = np.divmod(np.arange(n * n), n)
    src, dst = src[src != dst].astype(np.int32), dst[src != dst].astype(np.int32)
    theirs = laid.paths(src, dst)
    named = {node_names(back)[int(host)]: i for i, host in enumerate(back.endpoints.host)}
    place = np.array([named[node_names(fabric)[int(host)]] for host in fabric.endpoints.host], np.int32)
    flows = FlowTable(place[src], place[dst], np.zeros(len(src), np.int32))
    routes = route_flows(back, flows, "ib-static")
    np.testing.assert_array_equal(routes.path_ptr, theirs[0])
    ends = (np.array(node_names(fabric))[fabric.links.dst], np.array(node_names(back))[back.links.dst])
    np.testing.assert_array_equal(ends[1][routes.resource], ends[0][theirs[1]])


@pytest.mark.usefixtures("subnet_manager")
def test_engines_on_planes():
    """Planes and rails that never meet are subnets of their own, each with its OpenSM."""
    fabric = make_fabric("kind: rail-only\nradix: 16\nhosts: {count: 8, gpus: 4}")
    src = np.arange(fabric.n_endpoints, dtype=np.int32)
    flows = FlowTable(src, np.roll(src, -4).astype(np.int32), np.zeros(len(src), np.int32))
    routes = route_flows(fabric, flows, "opensm:minhop")
    assert len(routes.resource) == 2 * len(src)


@pytest.mark.usefixtures("subnet_manager")
def test_an_engine_that_gives_up_is_an_error():
    """OpenSM falls back to minhop silently: netplan does not."""
    fabric = make_fabric("kind: slim-fly\nq: 5\nrouter: {endpoints: 1}\nhosts: {gpus: 1}")
    flows = FlowTable(np.array([0], np.int32), np.array([9], np.int32), np.zeros(1, np.int32))
    with pytest.raises(RoutingError, match="opensm gave up 'ftree' on fabric 'under-test' and laid"):
        route_flows(fabric, flows, "opensm:ftree")


def test_missing_programs_are_named(monkeypatch):
    """Without OpenSM the error has the line that installs it, and its own exit status."""
    monkeypatch.setattr(opensm, "find_program", lambda name: None)
    fabric = make_fabric("kind: fat-tree\nk: 4")
    flows = FlowTable(np.array([0], np.int32), np.array([9], np.int32), np.zeros(1, np.int32))
    with pytest.raises(BackendError, match="ibsim is not installed") as caught:
        route_flows(fabric, flows, "opensm:ftree")
    assert caught.value.hint == "apt-get install opensm ibsim-utils"


@pytest.mark.usefixtures("subnet_manager")
@pytest.mark.parametrize("dims", ["[4, 4, 3]", "[5, 4]", "[3, 3, 3]", "[4, 4, 2]"])
def test_torus_2qos_takes_our_configuration(dims, tmp_path):
    """The engine finds the torus of the file in the subnet, with rings of 2, 3, 4 and 5."""
    fabric = make_fabric(f"kind: torus\ndims: {dims}\nrouter: {{endpoints: 1}}\nhosts: {{gpus: 1}}")
    subnet = Subnet.of(fabric)
    text = torus_conf(subnet)
    assert text is not None
    (tmp_path / "torus").write_text(text)
    tables = opensm.lay_tables(
        subnet, "torus-2QoS", tmp_path, options=["--torus_config", str(tmp_path / "torus"), "-Q"]
    )
    assert tables.engine == "torus-2QoS"


@pytest.mark.usefixtures("subnet_manager")
def test_opensm_reads_our_files(tmp_path):
    """Roots, order and I/O ports by the options file that names them; ftree takes them."""
    fabric = api.load_fabric("fat-tree-k8")
    made = FORMATS.find("opensm")
    assert made.write is not None
    files = made.write(fabric, WriteOptions(settings={"io": "host-0000[0-3]"}))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert len(files["io.guid"].splitlines()) == 4
    assert len(files["cn.guid"].splitlines()) == 124
    assert len(files["roots.guid"].splitlines()) == 16
    subnet = Subnet.of(fabric)
    (tmp_path / "net").write_text(subnet.net_file())
    with opensm.simulated(subnet, tmp_path / "net", tmp_path, 30) as environment:
        of_client = environment | opensm.client_environment(subnet)
        of_client |= {"OSM_CACHE_DIR": str(tmp_path), "OSM_TMP_DIR": str(tmp_path)}
        log = tmp_path / "log"
        command = [program("opensm"), "-F", "opensm.conf", "-o", "-f", str(log), "-t", "2000", "-D", "0x43"]
        opensm.run_program(command, of_client, tmp_path, 60, log)
        said = log.read_text(errors="replace")
    assert "ftree tables configured on all switches" in said
    assert not re.search(r"ERR .*(guid|root|file)", said)


# ---- Slurm -------------------------------------------------------------------------------------


@contextmanager
def slurm(folder: Path, hosts: str, topology: bytes) -> Iterator[dict[str, str]]:
    """Run munge and slurmctld with a topology in a private folder; yield the environment for scontrol."""
    controller, munge = program("slurmctld"), program("munged")
    (folder / "state").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    (folder / "topology.conf").write_bytes(topology)
    with socket.socket() as taken, socket.socket() as other:
        taken.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = taken.getsockname()[1], other.getsockname()[1]
    lines = (
        "ClusterName=netplan", f"SlurmctldHost={socket.gethostname()}(127.0.0.1)", f"SlurmUser={_user()}",
        "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge.sock", f"StateSaveLocation={folder}/state",
        f"SlurmctldPidFile={folder}/pid", f"SlurmctldPort={ports[0]}", f"SlurmdPort={ports[1]}",
        "TopologyPlugin=topology/tree", "SelectType=select/linear", "ProctrackType=proctrack/linuxproc",
        f"SlurmctldLogFile={folder}/log", f"NodeName={hosts} NodeAddr=127.0.0.1",
        "PartitionName=all Nodes=ALL Default=YES",
    )  # fmt: skip
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    running = []
    try:
        with (folder / "out").open("w") as out:
            command = [
                munge,
                "--foreground",
                "--force",
                f"--key-file={folder}/key",
                f"--socket={folder}/munge.sock",
            ]
            command += [
                f"--pid-file={folder}/munged.pid",
                f"--log-file={folder}/munged.log",
                f"--seed-file={folder}/seed",
            ]
            running.append(subprocess.Popen(command, stdout=out, stderr=out))
            _wait((folder / "munge.sock").exists)
            running.append(
                subprocess.Popen([controller, "-D", "-f", str(folder / "slurm.conf")], stdout=out, stderr=out)
            )
            yield os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _user() -> str:
    import getpass

    return getpass.getuser()


def _wait(done, seconds: float = 15.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


def shown(environment: dict[str, str]) -> str:
    """Return what slurmctld answers; it takes a moment to be there."""
    for _ in range(100):
        said = subprocess.run(
            [program("scontrol"), "show", "topology"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if said.returncode == 0 and "SwitchName" in said.stdout:
            return said.stdout
        time.sleep(0.2)
    pytest.fail(f"slurmctld does not answer: {said.stdout}{said.stderr}")


@pytest.mark.parametrize("name", ["fat-tree-k8", "superpod-b200-4su", "dragonfly-72", "metro-30km-2site"])
def test_slurmctld_answers_with_the_same_tree(name, tmp_path):
    """``scontrol show topology`` names each switch with the children and hosts that the file gives it."""
    program("scontrol")
    fabric = api.load_fabric(name)
    text = written(fabric, "slurm")
    names = [node_names(fabric)[i].replace("/", "-") for i in fabric.host_ids.tolist()]
    from netplan.interop.hostlist import read_hostlist, write_hostlist

    with slurm(tmp_path / "slurm", write_hostlist(names), text) as environment:
        said = shown(environment)
    told = {}
    for line in said.splitlines():
        of = dict(pair.split("=", 1) for pair in line.split() if "=" in pair)
        told[of["SwitchName"]] = (
            set(read_hostlist(of["Nodes"])),
            set(read_hostlist(of.get("Switches", "none"))),
        )
    asked: dict[str, tuple[set[str], set[str]]] = {}
    for line in text.decode().splitlines()[1:]:
        of = dict(pair.split("=", 1) for pair in line.split())
        below = set(read_hostlist(of.get("Switches", "none")))
        nodes = set(read_hostlist(of["Nodes"])) if "Nodes" in of else set()
        for child in below - {"none"}:
            nodes |= asked[child][0]
        asked[of["SwitchName"]] = (nodes, below)
    assert told == asked
    assert set.union(*(nodes for nodes, _ in told.values())) == set(names)


# ---- Graphviz, networkx, SimGrid -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["dot", "ptm"])
def test_graphviz_accepts_it(name):
    """Every node and edge is in what ``dot`` lays out, whatever the names."""
    dot = program("dot")
    fabric = with_nasty_names(api.load_fabric("lab-2-leaf"))
    said = subprocess.run(
        [dot, "-Tplain"], input=written(fabric, name), capture_output=True, timeout=60, check=True
    ).stdout.decode()
    kinds = Counter(line.split()[0] for line in said.splitlines() if line)
    assert kinds["node"] == fabric.n_nodes
    assert kinds["edge"] == fabric.links.n_cables


def test_networkx_reads_graphml(tmp_path):
    """The graph is isomorphic by ids, and its attributes are of the right types."""
    fabric = with_nasty_names(api.load_fabric("fat-tree-k8"))
    (tmp_path / "f.graphml").write_bytes(written(fabric, "graphml"))
    graph = nx.read_graphml(tmp_path / "f.graphml")
    assert graph.number_of_nodes() == fabric.n_nodes
    edges = Counter(tuple(sorted((int(a[1:]), int(b[1:])))) for a, b in graph.edges())
    links = fabric.links
    pairs = zip(links.src[0::2].tolist(), links.dst[0::2].tolist(), strict=True)
    assert edges == Counter(tuple(sorted(pair)) for pair in pairs)
    assert graph.nodes["n0"]["gpus"] == 1
    assert next(iter(graph.edges(data=True)))[2]["capacity"] == 50e9


SIMGRID = """
import json, sys
from simgrid import Actor, Engine, Host, Mailbox

engine = Engine(["x", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0",
"--cfg=network/latency-factor:0",
                 "--cfg=network/bandwidth-factor:1", "--cfg=network/weight-S:0", "--log=root.thres:error"])
engine.load_platform(sys.argv[1])
pairs, size, done = json.loads(sys.argv[2]), float(sys.argv[3]), {}

def send(i):
    Mailbox.by_name(str(i)).put(0, int(size))

def receive(i):
    Mailbox.by_name(str(i)).get()
    done[i] = Engine.clock

for i, (a, b) in enumerate(pairs):
    Actor.create(f"s{i}", Host.by_name(a), send, i)
    Actor.create(f"r{i}", Host.by_name(b), receive, i)
engine.run()
print(json.dumps([len(engine.all_hosts), [done[i] for i in range(len(pairs))]]))
"""


@pytest.fixture
def simgrid() -> str:
    """Return the Python that has SimGrid, or skip."""
    python = "/usr/bin/python3"
    if (
        not shutil.which(python)
        or subprocess.run([python, "-c", "import simgrid"], capture_output=True, check=False).returncode
    ):
        pytest.skip("python3-simgrid is not installed")
    return python


def test_simgrid_loads_the_platform(simgrid, tmp_path):
    """Loaded by SimGrid: 16 ports; four flows into one port take four times as long as one alone."""
    fabric = api.load_fabric("lab-2-leaf")
    (tmp_path / "p.xml").write_bytes(written(fabric, "simgrid"))
    size = 5e9
    for pairs, seconds in (
        ([["host-00000-0", "host-00005-1"]], 0.1),
        ([[f"host-{i:05d}-0", "host-00007-0"] for i in range(4)], 0.4),
    ):
        done = subprocess.run(
            [simgrid, "-c", SIMGRID, str(tmp_path / "p.xml"), json.dumps(pairs), str(size)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        hosts, ends = json.loads(done.stdout.splitlines()[-1])
        assert hosts == fabric.n_endpoints
        rate = float(fabric.links.capacity[0])
        assert ends == pytest.approx([len(pairs) * size / rate] * len(pairs), rel=1e-3), seconds
