"""``netplan sweep``: outputs, exit statuses, and what a wrong call is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli

SWEEP = """\
name: small
fabric: lab-2-leaf
traffic: incast-8
vary: {traffic.senders: [2, 4, 8], traffic.size: [1MiB, 2MiB]}
replicas: 2
"""


def run(*arguments: str, status: int = 0) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.stderr
    return result


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Return results of the small sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "s.yaml").write_text(SWEEP)
    run("sweep", str(folder / "s.yaml"), "-o", str(folder / "r.csv"), "--workers", "1")
    return Path(folder) / "r.csv"


def test_a_run_says_what_ran_and_what_is_best(results, tmp_path):
    sweep, output = str(results.parent / "s.yaml"), str(tmp_path / "r.csv")
    data = json.loads(run("sweep", sweep, "-o", output, "--workers", "1", "--format", "json").stdout)
    assert data["schema"] == "netplan/sweep/1"
    assert {key: data[key] for key in ("points", "replicas", "scenarios", "ran", "failed")} == {
        "points": 6,
        "replicas": 2,
        "scenarios": 12,
        "ran": 12,
        "failed": 0,
    }
    best = data["best"][0]
    assert best["settings"] == {"traffic.senders": 2, "traffic.size": 2**20}
    assert best["ran"] == 2
    again = json.loads(run("sweep", sweep, "-o", output, "--format", "json").stdout)
    assert again["ran"] == 0
    assert again["best"] == data["best"]


def test_a_dry_run_writes_nothing(results, tmp_path):
    text = run("sweep", str(results.parent / "s.yaml"), "-o", str(tmp_path / "r.csv"), "--dry-run").stdout
    assert "scenarios  12" in text
    assert not list(tmp_path.iterdir())


def test_best_points(results):
    text = run("sweep", "show", str(results), "--best", "2").stdout
    assert "small: smallest completion_s of 6 points" in text
    assert text.count("MiB") == 2
    most = json.loads(run("sweep", "show", str(results), "--max", "--best", "1", "--format", "json").stdout)
    assert most["points"][0]["settings"] == {"traffic.senders": 8, "traffic.size": 2**21}


def test_a_pivot_and_its_picture(results, tmp_path):
    plot = tmp_path / "heat.svg"
    arguments = (
        "sweep",
        "show",
        str(results),
        "--pivot",
        "traffic.size,traffic.senders",
        "--plot",
        str(plot),
    )
    data = json.loads(run(*arguments, "--format", "json").stdout)
    assert data["rows"] == [2.0**20, 2.0**21]
    assert data["columns"] == [2, 4, 8]
    one, two = data["mean"]
    assert one[0] < one[1] < one[2]
    assert two[2] == pytest.approx(2 * one[2], rel=0.05)
    text = plot.read_text()
    assert text.startswith("<?xml")
    assert "1 MiB" in text
    assert "small: mean completion_s" in text


def test_a_front_and_sensitivities_with_their_pictures(results, tmp_path):
    plot = tmp_path / "front.svg"
    pareto = "completion_s:min,algbw_gb_per_s:max"
    data = json.loads(
        run("sweep", "show", str(results), "--pareto", pareto, "--plot", str(plot), "--format", "json").stdout
    )
    assert data["figures"] == ["completion_s", "algbw_gb_per_s"]
    assert data["front"][0]["settings"]["traffic.size"] == 2**20
    assert "front: " in plot.read_text()
    plot = tmp_path / "bars.png"
    text = run("sweep", "show", str(results), "--sensitivity", "--plot", str(plot)).stdout
    assert "share of variance" in text
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_errors_are_counted(tmp_path):
    (tmp_path / "s.yaml").write_text(SWEEP.replace("[2, 4, 8]", "[2, 5000]"))
    output = str(tmp_path / "r.csv")
    text = run("sweep", str(tmp_path / "s.yaml"), "-o", output, "--workers", "1").stdout
    assert "4 scenarios failed: --errors says why" in text
    text = run("sweep", "show", output, "--errors").stdout
    assert "small: 4 of 8 scenarios failed" in text


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("sweep", "nothing", "-o", "{}/r.csv"), 1, "sweep 'nothing' is neither a shipped name nor a file"),
        (("sweep", "routing-qps"), 2, "Missing option '-o'"),
        (("sweep", "routing-qps", "-o", "{}/r.xls"), 1, "results end in .parquet or .csv"),
        (("sweep", "routing-qps", "-o", "{}/r.csv", "--workers", "0"), 2, "0 is not in the range"),
        (
            ("sweep", "routing-qps", "-o", "{}/r.csv", "--cluster", "10.0.0.1"),
            2,
            "neither slurm nor the",
        ),
        (("sweep", "routing-qps", "-o", "{}/r.csv", "--cluster-set", "queue=x"), 2, "is for --cluster slurm"),
        (
            ("sweep", "routing-qps", "-o", "{}/r.csv", "--set", "replicas=20000"),
            2,
            "160,000 scenarios, more",
        ),
        (("sweep", "routing-qps", "-o", "{}/r.csv", "--set", "vary.routing=[]"), 1, "has no values"),
        (("sweep", "show", "{}/none.csv"), 1, "cannot be read: No such file"),
        (("sweep", "show", "{}/bad.csv"), 1, "holds no results of a sweep: it has no column point"),
        (("sweep", "show", "{}/bad.parquet"), 1, "is not a parquet file"),
        (("sweep", "show", "RESULTS", "--metric", "busbw_gb"), 1, "did you mean busbw_gb_per_s?"),
        (("sweep", "show", "RESULTS", "--pivot", "traffic.size"), 1, "--pivot takes two"),
        (("sweep", "show", "RESULTS", "--pivot", "traffic.sise,seed"), 1, "did you mean traffic.size?"),
        (("sweep", "show", "RESULTS", "--pareto", "flows:most,flows"), 1, "'most' is neither min nor max"),
        (("sweep", "show", "RESULTS", "--pareto", "flows,flow"), 1, "did you mean flows?"),
        (("sweep", "show", "RESULTS", "--plot", "x.svg"), 2, "--plot draws what"),
        (
            ("sweep", "show", "RESULTS", "--errors", "--sensitivity"),
            2,
            "--sensitivity and --errors do not",
        ),
        (
            ("sweep", "show", "RESULTS", "--metric", "loss_fraction", "--pivot", "seed,point"),
            1,
            "nothing to show",
        ),
    ],
)
def test_a_wrong_call_is_told_why(results, tmp_path, arguments, status, message):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    filled = [each.replace("{}", str(tmp_path)).replace("RESULTS", str(results)) for each in arguments]
    assert message in run(*filled, status=status).stderr
    assert not (tmp_path / "r.csv").exists()


def test_a_sweep_interrupted_from_the_keyboard_says_how_to_go_on(results, tmp_path, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("netplan.sweep.run.run_sweep", interrupt)
    output = str(tmp_path / "r.csv")
    found = run("sweep", str(results.parent / "s.yaml"), "-o", output, status=130)
    assert f"what is finished is in {output}.journal; the same command goes on" in found.stderr


def test_any_command_interrupted_from_the_keyboard_ends_with_130(monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("netplan.api.load_fabric", interrupt)
    assert "interrupted" in run("show", "lab-2-leaf", status=130).stderr


def test_shipped_sweeps_can_be_planned():
    names = [item["name"] for item in json.loads(run("list", "sweeps", "--format", "json").stdout)["items"]]
    assert "routing-qps" in names
    for name in names:
        text = run("sweep", name, "-o", "r.csv", "--dry-run", "--format", "json").stdout
        assert json.loads(text)["scenarios"] > 0
