"""Runs of sweeps: the same rows however they are run, stopped or killed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from netplan import api
from netplan.catalog.paths import shipped_folder
from netplan.errors import BackendError, OutputError, SpecError
from netplan.sweep import Progress, load_sweep, read_results, run_sweep
from netplan.sweep.journal import Journal
from netplan.sweep.pool import LocalPool
from netplan.sweep.row import METRICS

SWEEP = """\
name: small
fabric: lab-2-leaf
traffic: all-reduce-1gib
set: {traffic.placement.kind: random}
vary:
  routing: [ecmp, spray]
  traffic.qps: [1, 2]
  cc.dcqcn.rate_ai: [5M, 40M]
replicas: 2
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SWEEP)
    return str(path)


def test_rows_are_what_single_runs_give(sweep, tmp_path):
    outcome = run_sweep(load_sweep(sweep), str(tmp_path / "r.csv"))
    assert len(outcome.results) == 16
    assert outcome.ran == 8  # rate_ai is not read under max-min: half of the cases are the same
    assert outcome.manifest["distinct"] == 8
    fabric = api.load_fabric("lab-2-leaf")
    for row in outcome.results.rows():
        sets = {"placement.kind": "random", "qps": str(row["traffic.qps"])}
        traffic = api.load_traffic("all-reduce-1gib", overrides=sets)
        result = api.simulate(fabric, traffic, routing=row["routing"], seed=row["seed"])
        assert row["completion_s"] == result.completion_s
        assert row["collective"] == result.efficiency.collective
        assert row["seed"] == row["replica"]
        assert row["unread"] == "cc.dcqcn.rate_ai"


def test_the_bytes_are_the_same_however_it_runs(sweep, tmp_path):
    plan = load_sweep(sweep)
    for name, workers in (("one", 1), ("two", 2)):
        run_sweep(plan, str(tmp_path / f"{name}.csv"), workers=workers)
        run_sweep(plan, str(tmp_path / f"{name}.parquet"), workers=workers)
    for suffix in ("csv", "parquet"):
        first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
        assert first == second
    assert not list(tmp_path.glob("*.journal"))


def test_results_are_read_back_as_they_were(sweep, tmp_path):
    outcome = run_sweep(load_sweep(sweep), str(tmp_path / "r.parquet"))
    again = read_results(str(tmp_path / "r.parquet"), outcome.manifest["units"])
    assert again == outcome.results
    csv = run_sweep(load_sweep(sweep), str(tmp_path / "r.csv"))
    assert read_results(str(tmp_path / "r.csv"), csv.manifest["units"]).rows() == outcome.results.rows()
    assert outcome.results["cc.dcqcn.rate_ai"].values[:3:2] == (5e6 / 8, 5e6)
    assert outcome.results["cc.dcqcn.rate_ai"].unit == "B/s"
    frame = outcome.results.to_dataframe()
    assert frame.shape == (16, 3 + 3 + len(METRICS) + 3)
    assert frame["completion_s"].to_list() == list(outcome.results["completion_s"].values)


class StoppedError(Exception):
    pass


def test_a_stopped_run_goes_on_with_the_same_result(sweep, tmp_path):
    plan, output = load_sweep(sweep), tmp_path / "r.csv"

    def stop(progress):
        if progress.ran == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        run_sweep(plan, str(output), progress=stop)
    assert not output.exists()
    seen: list[Progress] = []
    outcome = run_sweep(plan, str(output), progress=seen.append)
    assert outcome.ran == 5
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (4, 8, 8)
    assert seen[-1].best
    assert seen[-1].best[0] == min(outcome.results["completion_s"].values)
    run_sweep(plan, str(tmp_path / "whole.csv"))
    assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert run_sweep(plan, str(output)).ran == 0  # all there


def test_a_combination_that_cannot_be_is_a_row_with_its_error(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("name: s\nfabric: lab-2-leaf\ntraffic: incast-8\nvary: {traffic.senders: [4, 5000]}\n")
    outcome = run_sweep(load_sweep(str(path)), str(tmp_path / "r.csv"))
    good, bad = outcome.results.rows()
    assert good["error"] is None
    assert good["completion_s"] > 0
    assert "5,000" in bad["error"] or "5000" in bad["error"]
    assert bad["completion_s"] is None
    assert outcome.manifest["failed"] == 1


def test_files_beside_the_sweep_are_found_and_their_text_counts(tmp_path):
    text = (shipped_folder("topologies") / "lab-2-leaf.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text)
    path = tmp_path / "s.yaml"
    path.write_text("name: s\nfabric: mine.yaml\ntraffic: incast-8\nvary: {routing: [ecmp]}\n")
    plan = load_sweep(str(path))
    outcome = run_sweep(plan, str(tmp_path / "r.csv"))
    assert outcome.results["error"].values == (None,)
    (tmp_path / "mine.yaml").write_text(text + "# changed\n")
    assert load_sweep(str(path)).digest != plan.digest


def test_results_of_another_sweep_are_not_touched(sweep, tmp_path):
    output = tmp_path / "r.csv"
    run_sweep(load_sweep(sweep), str(output))
    before = output.read_bytes()
    other = load_sweep(sweep, overrides={"replicas": "3"})
    with pytest.raises(OutputError, match="is there and of another sweep: results are not mixed"):
        run_sweep(other, str(output))
    (tmp_path / "r.csv.manifest.json").unlink()
    with pytest.raises(OutputError, match="not known to be of this sweep"):
        run_sweep(load_sweep(sweep), str(output))
    assert output.read_bytes() == before


def test_a_journal_of_another_sweep_and_one_in_use_are_refused(tmp_path):
    path = tmp_path / "r.csv.journal"
    journal = Journal(path, "one")
    journal.add("k", {"completion_s": 1.0}, 0.1)
    with pytest.raises(OutputError, match="another run writes"):
        Journal(path, "one")
    journal.close()
    with pytest.raises(OutputError, match="is of another sweep, or of another version of netplan"):
        Journal(path, "two")
    again = Journal(path, "one")
    assert again.rows() == {"k": {"completion_s": 1.0}}
    again.add("k", {"completion_s": 2.0}, 0.1)
    assert again.rows() == {"k": {"completion_s": 1.0}}  # none double
    again.close(remove=True)
    assert not path.exists()


def test_a_file_that_is_no_journal_and_a_full_disk_are_said(tmp_path):
    path = tmp_path / "r.csv.journal"
    path.write_bytes(b"not sqlite at all" * 100)
    with pytest.raises(OutputError, match="is not a journal of netplan"):
        Journal(path, "one")
    journal = Journal(tmp_path / "full.journal", "one")
    journal._file.execute("pragma max_page_count = 5")

    def fill() -> None:
        for k in range(1000):
            journal.add(str(k), {"remarks": "x" * 2000}, 0.0)

    with pytest.raises(OutputError, match="the disk is full") as caught:
        fill()
    assert "what is finished is kept" in (caught.value.hint or "")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write to")
def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(sweep):
    with pytest.raises(OutputError, match=r"cannot write '/proc/r\.csv\.journal'"):
        run_sweep(load_sweep(sweep), "/proc/r.csv")


def test_outputs_that_cannot_be_are_refused(sweep, tmp_path, monkeypatch):
    plan = load_sweep(sweep)
    with pytest.raises(OutputError, match=r"results end in \.parquet or \.csv"):
        run_sweep(plan, str(tmp_path / "r.xlsx"))
    with pytest.raises(OutputError, match="there is no folder"):
        run_sweep(plan, str(tmp_path / "nowhere" / "r.csv"))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(BackendError, match="need polars, which is not installed"):
        run_sweep(plan, str(tmp_path / "r.parquet"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vary: {fabric.leaf.uplnks: [4]}", "did you mean `uplinks`?"),
        ("vary: {traffic.sendrs: [4]}", "did you mean `senders`?"),
        ("vary: {routng: [ecmp]}", "did you mean `routing`?"),
        ("vary: {fabric: [lab-3-leaf]}", "did you mean lab-2-leaf?"),
        ("vary: {seed: [1]}\ngoal: {metric: completion}", "did you mean completion_s?"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_runs(tmp_path, text, message):
    path = tmp_path / "s.yaml"
    path.write_text(f"name: s\nfabric: lab-2-leaf\ntraffic: incast-8\n{text}\n")
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- SpecError or CatalogError
        load_sweep(str(path))
    assert message in str(caught.value)


def test_all_wrong_settings_are_told_at_once(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nfabric: lab-2-leaf\ntraffic: incast-8\n"
        "vary: {fabric.leaf.uplnks: [4], traffic.sendrs: [4, 5], routing: [ecmp]}\n"
    )
    with pytest.raises(SpecError) as caught:
        load_sweep(str(path))
    assert len(caught.value.faults) == 2
    assert "fabric.leaf.uplnks" in str(caught.value)


def test_a_killed_worker_is_replaced_and_its_cases_run_again(sweep, tmp_path):
    plan = load_sweep(sweep)
    pool = LocalPool(2, plan.texts)
    killed = []

    def kill(progress):
        if progress.ran == 2:
            killed.append(pool.pids[0])
            os.kill(pool.pids[0], signal.SIGKILL)

    outcome = run_sweep(plan, str(tmp_path / "r.csv"), pool=pool, progress=kill)
    assert killed
    assert outcome.ran == 8
    run_sweep(plan, str(tmp_path / "calm.csv"))
    assert (tmp_path / "r.csv").read_bytes() == (tmp_path / "calm.csv").read_bytes()
    assert pool.pids == []


SCRIPT = """
import sys
from netplan.sweep import Progress, load_sweep, run_sweep
if __name__ == "__main__":
    run_sweep(load_sweep(sys.argv[1]), sys.argv[2], workers=2)
"""

MANY = """\
name: many
fabric: lab-2-leaf
traffic: incast-8
set: {cc: dcqcn, traffic.size: 16MiB}
vary: {seed: [%s]}
"""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_run_leaves_no_worker_and_goes_on_where_it_was(tmp_path):
    sweep, output, script = tmp_path / "s.yaml", tmp_path / "r.csv", tmp_path / "go.py"
    sweep.write_text(MANY % ", ".join(map(str, range(120))))
    script.write_text(textwrap.dedent(SCRIPT))
    process = subprocess.Popen([sys.executable, str(script), str(sweep), str(output)])
    journal = tmp_path / "r.csv.journal"
    deadline = time.monotonic() + 120
    workers: list[int] = []
    while time.monotonic() < deadline:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        if journal.exists() and journal.stat().st_size > 30_000:
            break
        time.sleep(0.05)
    assert process.poll() is None, "the run ended before it could be killed"
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers
    assert not any(map(_alive, workers))
    with sqlite3.connect(journal) as file:
        (kept,) = file.execute("select count(*) from done").fetchone()
    file.close()
    assert 0 < kept < 120
    plan = load_sweep(str(sweep))
    outcome = run_sweep(plan, str(output), workers=1)
    assert outcome.ran == 120 - kept
    run_sweep(plan, str(tmp_path / "calm.csv"))
    assert output.read_bytes() == (tmp_path / "calm.csv").read_bytes()


def test_a_manifest_says_what_ran(sweep, tmp_path):
    run_sweep(load_sweep(sweep), str(tmp_path / "r.csv"))
    manifest = json.loads((tmp_path / "r.csv.manifest.json").read_text())
    assert manifest["schema"] == "netplan/sweep/1"
    assert (manifest["points"], manifest["replicas"], manifest["scenarios"]) == (8, 2, 16)
    assert manifest["spec"]["vary"]["cc.dcqcn.rate_ai"] == ["5M", "40M"]
    assert len(manifest["files"]["fabrics"]["lab-2-leaf"]) == 64
