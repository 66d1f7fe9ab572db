"""``netplan export``, ``netplan import``, ``netplan list formats``: exit statuses, streams, files."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from netplan.cli.main import cli
from netplan.interop.registry import FORMATS


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run netplan in an empty folder; return its status, what it printed and its messages."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str):
        return CliRunner().invoke(cli, list(arguments))

    return invoke


def test_formats_are_listed(run):
    """Each with its kind, ways, summary and who checks it."""
    items = {
        item["name"]: item for item in json.loads(run("list", "formats", "--format", "json").stdout)["items"]
    }
    assert {each.name for each in FORMATS} <= set(items)
    assert items["ibnetdiscover"]["kind"] == "fabric: read, write"
    assert "leaves out" in items["slurm"]["summary"]
    assert "slurmctld" in items["slurm"]["source"]


def test_there_and_back(run, tmp_path):
    """Exported with failures, imported, checked, drawn, simulated and priced."""
    lost = ("--fail", "cable:leaf-0-1/spine-0-2")
    done = run("export", "fat-tree-k8", *lost, "--to", "ibnetdiscover", "-o", "dump.txt")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("wrote dump.txt\nleft out: ")
    done = run("import", "dump.txt", "--from", "ibnetdiscover", "-o", "ours.yaml", "--format", "json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert (data["schema"], data["family"]) == ("netplan/import/1", "fat-tree")
    assert [each["code"] for each in data["deviations"]] == ["NP111"]
    assert data["fabric"]["cables"] == 383
    done = run("check", "ours.yaml")
    assert done.exit_code == 0
    assert "NP111" in done.stdout
    assert "nearly a fat-tree, 8 pods" in done.stdout
    assert run("show", "ours.yaml").exit_code == 0
    assert run("diagram", "ours.yaml", "-o", "ours.svg").exit_code == 0
    assert (tmp_path / "ours.svg").read_bytes().startswith(b"<")
    assert run("simulate", "ours.yaml", "permutation-64mib", "--routing", "ib-static").exit_code == 0
    assert run("bom", "ours.yaml").exit_code == 0
    assert run("import", "dump.txt", "--from", "ibnetdiscover", "-o", "ours.json").exit_code == 0
    assert run("check", "ours.json", "--format", "json").exit_code == 0


def test_what_a_file_does_not_say(run, tmp_path):
    """Speeds and GPUs from the command line; without them they are assumed aloud."""
    (tmp_path / "t.conf").write_text("SwitchName=s Nodes=h[0-3]\n")
    done = run(
        "import", "t.conf", "--from", "slurm", "--speed", "200G", "--gpus-per-host", "8", "-o", "f.yaml"
    )
    assert done.exit_code == 0
    assert "taken: 200G" in done.stdout
    assert '{name: "h0"' in (tmp_path / "f.yaml").read_text().replace('"name": ', "name: ")
    assert "32" in run("show", "f.yaml").stdout
    assert run("import", "t.conf", "--from", "slurm", "--speed", "200").exit_code == 2
    said = run("import", "t.conf", "--from", "slurm").stdout
    assert "one per NIC port (--gpus-per-host to say)" in said


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("export", "fat-tree-k8", "--to", "ibsim", "-o", "no/f"), 1, "there is no folder 'no'"),
        (("export", "fat-tree-k8", "--to", "nothing", "-o", "f"), 1, "format 'nothing' is not one of"),
        (("export", "fat-tree-k8", "--to", "slurm", "-o", "f", "--option", "x=1"), 1, "has no option 'x'"),
        (("export", "fat-tree-k8", "--to", "slurm", "-o", "f", "--option", "x"), 2, "is not NAME=VALUE"),
        (
            ("export", "fat-tree-k8", "--to", "slurm-yaml", "-o", "f", "--option", "form=ring"),
            1,
            "tree, block",
        ),
        (("export", "fat-tree-k8", "--to", "opensm", "-o", "f", "--option", "io=x*"), 1, "names no host"),
        (("import", "f.txt", "--from", "slurm"), 1, "cannot be read"),
        (("import", ".", "--from", "slurm"), 1, "is a folder"),
        (("import", "f.txt", "--from", "htsim"), 1, "is written, not read"),
        (("import", "f.txt", "--from", "slurm", "-o", "f.txt"), 1, "written as .yaml or .json"),
        (("import", "f.txt", "--from", "slurm", "--tables", "t", "-o", "f.yaml"), 1, "no forwarding tables"),
        (("simulate", "fat-tree-k8", "incast-8", "--routing", "opensm:ftre"), 1, "did you mean opensm:ftree"),
        (("simulate", "fat-tree-k8", "incast-8", "--routing", "opensmm"), 1, "opensm:ENGINE"),
    ],
)
def test_faults(run, tmp_path, arguments, status, said):
    """A message, a status, and nothing written."""
    done = run(*arguments)
    assert done.exit_code == status
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_files(run, tmp_path):
    """A new folder, or an empty one; never one with something in it."""
    assert run("export", "lab-2-leaf", "--to", "nccl", "-o", "out").exit_code == 0
    assert len(list((tmp_path / "out").iterdir())) == 9
    done = run("export", "lab-2-leaf", "--to", "nccl", "-o", "out")
    assert done.exit_code == 1
    assert "a folder that is not empty" in done.stderr


def test_standard_output(run):
    """A single file may go to standard output."""
    done = run("export", "lab-2-leaf", "--to", "slurm", "-o", "-")
    assert done.exit_code == 0
    assert done.stdout.startswith("# Written by netplan")


def test_explained(run):
    """The checks of found fabrics have their pages."""
    for code in ("NP111", "NP112", "NP113", "NP114", "NP115"):
        assert run("explain", code).exit_code == 0
