"""Sweeps on a real Dask cluster: a scheduler and two workers, processes of their own on the loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from netplan.errors import BackendError
from netplan.sweep import load_sweep, run_sweep
from netplan.sweep.cluster import ClusterPool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip(
    "distributed", reason="dask's distributed is not installed: pip install netplan-rdma[cluster]"
)

SWEEP = """\
name: cluster
fabric: lab-2-leaf
traffic: incast-8
set: {cc: dcqcn, switch: hpcc-ns3, traffic.size: %s}
vary: {cc.dcqcn.timer_s: {low: 55us, high: 1ms, steps: %d}}
"""


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Cluster:
    """A scheduler and two workers."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = _start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"
        )
        self.workers = [self.add(folder / str(place)) for place in range(2)]

    def add(self, folder: Path) -> subprocess.Popen[bytes]:
        return _start(
            *("dask_worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny"),
            *("--local-directory", str(folder)),
        )

    def wait(self) -> None:
        from distributed import Client

        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, TimeoutError), Client(self.address, timeout=2) as client:
                client.wait_for_workers(2, timeout=30)
                return
        pytest.fail("the cluster does not come up")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    try:
        found.wait()
        yield found
    finally:
        found.close()


# Dask's own code warns about sockets and event loops that a killed peer left behind.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_a_cluster_gives_the_bytes_of_this_machine_even_when_a_worker_is_killed(cluster, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP % ("16MiB", 60))
    plan = load_sweep(str(path))
    run_sweep(plan, str(tmp_path / "here.parquet"))

    def kill(progress):
        if progress.ran == 10:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    pool = ClusterPool(cluster.address, 2, plan.texts)
    outcome = run_sweep(plan, str(tmp_path / "there.parquet"), pool=pool, progress=kill)
    assert outcome.ran == 60
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_a_killed_scheduler_is_said_and_what_is_finished_is_kept(cluster, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP % ("16MiB", 200))
    plan = load_sweep(str(path))

    def kill(progress):
        if progress.ran == 10:
            cluster.scheduler.kill()

    pool = ClusterPool(cluster.address, 2, plan.texts)
    with pytest.raises(BackendError, match="was lost") as caught:
        run_sweep(plan, str(tmp_path / "r.csv"), pool=pool, progress=kill)
    assert "what is finished is kept" in (caught.value.hint or "")
    outcome = run_sweep(plan, str(tmp_path / "r.csv"))
    assert 0 < outcome.ran <= 190
    run_sweep(plan, str(tmp_path / "calm.csv"))
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "calm.csv").read_bytes()


def test_an_address_without_a_scheduler_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("netplan.sweep.cluster._PATIENCE_S", 1)
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP % ("1MiB", 2))
    plan = load_sweep(str(path))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(BackendError, match=f"no scheduler answers at {address}"):
            run_sweep(plan, str(tmp_path / "r.csv"), pool=ClusterPool(address, 1, plan.texts))
    assert not list(tmp_path.glob("r.csv*"))
