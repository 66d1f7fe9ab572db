"""A sweep on a real Slurm of one node, by dask-jobqueue."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from netplan.errors import BackendError
from netplan.sweep import load_sweep, run_sweep
from netplan.sweep.cluster import ClusterPool
from tests.against import slurm

pytest.importorskip(
    "dask_jobqueue", reason="dask-jobqueue is not installed: pip install netplan-rdma[cluster]"
)

# Dask's own code warns about sockets and processes that it leaves to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SWEEP = """\
name: slurm
fabric: lab-2-leaf
traffic: incast-8
vary: {traffic.senders: [2, 4, 8], seed: {low: 0, high: 9, steps: 10}}
"""


def test_slurm_gives_the_bytes_of_this_machine(tmp_path, monkeypatch):
    reason = slurm.missing()
    if reason:
        pytest.skip(reason)
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP)
    plan = load_sweep(str(path))
    run_sweep(plan, str(tmp_path / "here.csv"))
    settings = {
        "interface": "lo",
        "memory": "500MiB",
        "walltime": "00:05:00",
        "log_directory": str(tmp_path),
        "job_directives_skip": ["--mem"],
    }
    with (
        tempfile.TemporaryDirectory(prefix="sl", ignore_cleanup_errors=True) as folder,
        slurm.running(Path(folder)) as environment,
    ):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        pool = ClusterPool("slurm", 2, plan.texts, settings)
        outcome = run_sweep(plan, str(tmp_path / "there.csv"), pool=pool)
    assert outcome.ran == 30
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()


def test_a_setting_that_slurm_does_not_have_is_said(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SWEEP)
    plan = load_sweep(str(path))
    pool = ClusterPool("slurm", 1, plan.texts, {"kores": 3})
    with pytest.raises(BackendError, match=r"Slurm cannot be used: .*kores"):
        run_sweep(plan, str(tmp_path / "r.csv"), pool=pool)
