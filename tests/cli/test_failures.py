"""``--fail`` and ``netplan failures``: outputs, manifests, exit statuses, and what a wrong call is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli


def run(*arguments: str) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def printed(*arguments: str) -> Any:
    """Run netplan with JSON output."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_simulate_with_failures():
    """Manifest, losses and the undamaged run stand in the JSON; the same seed gives the same bytes."""
    command = ("simulate", "fat-tree-k8", "permutation-64mib", "--routing", "spray")
    failures = ("--fail", "switch:spine-0-0", "--fail", "host:host-00005", "--on-dead", "evict")
    data = printed(*command, *failures)
    assert data["manifest"]["failures"] == {
        "items": ["switch:spine-0-0", "host:host-00005"],
        "seeds": [0, 0],
        "on_dead": "evict",
    }
    damage = data["damage"]
    assert damage["switches_failed"] == ["spine-0-0"]
    assert damage["hosts_cut_off"] == ["host-00005"]
    assert damage["cables_failed"] == {"host_leaf": 1, "leaf_spine": 4, "spine_core": 4}
    assert damage["undamaged"]["ranks"] == data["result"]["ranks"] + 1 == 128
    assert 0.9 < damage["bandwidth_left"] < 1
    assert damage["changed"]
    assert not damage["unused"]
    assert printed(*command, *failures) == data
    whole = printed(*command)
    assert "damage" not in whole
    assert whole["manifest"]["failures"] is None
    assert whole["result"]["efficiency"] == damage["undamaged"]["efficiency"]


def test_simulate_says_what_is_left():
    """The table ends with what was lost; an unused failure is called so."""
    command = ("simulate", "fat-tree-k8", "all-reduce-1gib", "--ranks", "8")
    used = run(*command, "--fail", "host:host-00003").stdout
    assert "failures: host:host-00003" in used
    assert "Cut off: 1 host(s) with 1 GPUs (host-00003)." in used
    assert "Left after rerouting:" in used
    unused = run(*command, "--fail", "host:host-00100").stdout
    assert "Nothing that this demand uses has failed" in unused


def test_compare_with_failures():
    """All rows and the baseline run on the damaged fabric, and the output says so."""
    command = ("compare", "fat-tree-k8", "permutation-64mib", "--routing", "spray", "--fail", "tier:core:2")
    data = printed(*command)
    entries = [data["baseline"], *data["rows"]]
    assert all(entry["manifest"]["failures"]["items"] == ["tier:core:2"] for entry in entries)
    assert len(data["damage"]["switches_failed"]) == 2
    assert "the baseline included, runs on the damaged fabric" in run(*command).stdout


def test_show_saves_a_damaged_fabric(tmp_path):
    """A damaged fabric can be saved, checked, drawn, simulated and damaged further."""
    path = str(tmp_path / "damaged.json")
    assert run("show", "fat-tree-k8", "--fail", "switch:leaf-0-0", "--save", path).exit_code == 0
    assert run("check", path).exit_code == 0
    assert run("diagram", path, "-o", str(tmp_path / "damaged.svg")).exit_code == 0
    data = printed("simulate", path, "all-reduce-1gib", "--fail", "switch:spine-0-0", "--routing", "spray")
    assert data["manifest"]["failures"]["items"] == ["switch:leaf-0-0", "switch:spine-0-0"]
    assert data["damage"]["switches_failed"] == ["spine-0-0"]
    assert data["result"]["ranks"] == 124


def test_failures_table():
    """JSON, CSV and table of the study; rates and times to repair given by the user."""
    command = ("failures", "lab-2-leaf", "--only", "spine,leaf", "--random", "nic:2", "--samples", "3")
    settings = ("--rate", "spine=1%", "--repair", "2h", "--repair", "leaf=30 min")
    data = printed(*command, *settings)
    assert data["schema"] == "netplan/failures/1"
    assert list(data["workloads"]) == ["all-reduce", "permutation"]
    rows = {row["kind"]: row for row in data["classes"]}
    assert set(rows) == {"spine", "leaf"}
    assert rows["spine"]["rate"]["percent_per_month"] == 1
    assert rows["spine"]["rate"]["repair_h"] == 2
    assert rows["leaf"]["rate"]["repair_h"] == 0.5
    assert data["random"][0]["samples"] == 3
    table = run(*command, *settings).stdout
    assert "single failures of lab-2-leaf" in table
    assert "random:nic:2" in table
    assert "A month has" in table
    lines = run(*command, *settings, "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("class,count,failed")
    assert len(lines) == 3


def test_failures_with_a_workload():
    """A workload stands for the two default ones; its keys can be set."""
    data = printed("failures", "lab-2-leaf", "all-reduce-1gib", "--only", "nic", "--set", "traffic.ranks=8")
    assert data["workloads"]["all-reduce-1gib"]["ranks"] == 8


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("simulate", "lab-2-leaf", "all-reduce-1gib", "--fail", "switch:leaf-9"), 1, "no switch 'leaf-9'"),
        (("simulate", "lab-2-leaf", "all-reduce-1gib", "--fail", "random:cable:150%"), 1, "out of range"),
        (("simulate", "lab-2-leaf", "all-reduce-1gib", "--fail", ""), 1, "is not a failure"),
        (("simulate", "lab-2-leaf", "all-reduce-1gib", "--fail", "tier:leaf:2"), 1, "keeps a working NIC"),
        (("simulate", "lab-2-leaf", "all-reduce-1gib", "--on-dead", "ignore"), 2, "--on-dead"),
        (
            (
                *("simulate", "lab-2-leaf", "all-reduce-1gib", "--on-dead", "refuse"),
                *("--fail", "nic:host-00001/0"),
            ),
            1,
            "lost 1 of its 2 NIC ports",
        ),
        (("failures", "lab-2-leaf", "--only", "spin"), 1, "did you mean spine"),
        (("failures", "lab-2-leaf", "--only", "core"), 1, "has no element of kind core"),
        (("failures", "lab-2-leaf", "--rate", "leaf=1"), 2, "is not KIND=PERCENT"),
        (("failures", "lab-2-leaf", "--rate", "leaf=200%"), 1, "out of range"),
        (("failures", "lab-2-leaf", "--repair", "4"), 1, "4"),
        (("failures", "lab-2-leaf", "--repair", "leaf=0h"), 1, "repair time 0 h"),
        (("failures", "lab-2-leaf", "--random", "cable:0%"), 1, "0% is out of range"),
        (("failures", "lab-2-leaf", "--samples", "0"), 2, "--samples"),
        (("failures", "lab-2-leaf", "--routing", "hot-potato"), 1, "hot-potato"),
        (("failures", "lab-2-leaf", "--set", "traffic.ranks=8"), 2, "needs TRAFFIC"),
    ],
)
def test_wrong_calls(arguments, status, says):
    """Exit status 1 for a fault of the input, 2 for a wrong call; the message names what is wrong."""
    result = run(*arguments)
    assert result.exit_code == status
    assert says in result.stderr
    assert result.stdout == ""


def test_diagram_marks_failures(tmp_path):
    """The whole fabric is drawn, what failed is marked; a name that is not there writes nothing."""
    out = tmp_path / "cut.svg"
    result = CliRunner().invoke(
        cli, ["diagram", "metro-star-3site", "--fail", "span:hub/west/path-2", "-o", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "failed: span:hub/west/path-2" in out.read_text()
    other = tmp_path / "other.svg"
    result = CliRunner().invoke(
        cli, ["diagram", "metro-star-3site", "--fail", "span:hub/west/path-9", "-o", str(other)]
    )
    assert result.exit_code == 1
    assert "this span has no fibre path path-9" in result.stderr
    assert "it has path-1, path-2" in result.stderr
    assert not other.exists()


def test_check_takes_failures():
    """What is cut off is a warning, so the exit status is 0; a seed decides what random failures take."""
    result = CliRunner().invoke(
        cli, ["check", "fat-tree-k8", "--fail", "switch:leaf-0-0", "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    faults = json.loads(result.stdout)["faults"]
    assert {fault["code"] for fault in faults} == {"NP105"}
    assert all(fault["severity"] == "warning" for fault in faults)


def test_failures_of_a_metro_star_are_per_path():
    result = CliRunner().invoke(
        cli, ["failures", "metro-star-3site", "--only", "span,whole_span", "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["classes"]
    cuts = {row["failure"]: row["length_km"] for row in rows if row["kind"] == "span"}
    assert cuts == {
        "span:hub/east/path-1": 14.0,
        "span:hub/east/path-2": 23.0,
        "span:hub/west/path-1": 17.0,
        "span:hub/west/path-2": 31.0,
    }
