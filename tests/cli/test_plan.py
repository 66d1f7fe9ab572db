"""``netplan plan``: the JSON contract, the tables, the files it writes, and how it refuses."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from netplan import api
from netplan.cli.main import cli

SMALL = ("--gpus", "256", "--switch", "qm9700", "--family", "leaf-spine", "--family", "rail-optimized")


def run(*arguments: str, status: int = 0):
    result = CliRunner().invoke(cli, ["plan", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_json_has_the_keys_of_the_contract():
    data = json.loads(run(*SMALL, "--format", "json").stdout)
    assert data["schema"] == "netplan/plan/1"
    keys = {"name", "family", "spec", "switches", "cables", "cost_usd", "power_w", "efficiency", "pareto"}
    for design in data["designs"]:
        assert keys <= set(design)
        assert set(design["cost_usd"]) == {"low", "mid", "high"}
        assert design["switches"]["total"] == sum(design["switches"].values()) // 2
        assert design["at_least"]["cost"]
    assert all({"design", "reason"} <= set(each) for each in data["rejected"])
    assert data["exact"] is True


def test_the_same_call_prints_the_same_bytes():
    assert run(*SMALL, "--format", "json").stdout == run(*SMALL, "--format", "json").stdout


def test_tables_show_the_front_the_refused_and_what_is_at_least():
    text = run(*SMALL).stdout
    assert "on the Pareto front" in text
    assert "Refused:" in text
    assert "≥ at least: no price is published for" in text
    assert "leaf-spine-r64 " in text
    assert len(run(*SMALL, "--top", "1").stdout) < len(text)


def test_csv_has_a_row_for_each_design():
    rows = list(csv.DictReader(io.StringIO(run(*SMALL, "--format", "csv").stdout)))
    data = json.loads(run(*SMALL, "--format", "json").stdout)
    assert [row["design"] for row in rows] == [design["name"] for design in data["designs"]]


def test_specs_are_written_and_can_be_used(tmp_path):
    result = run(*SMALL, "--non-blocking", "--out", str(tmp_path / "designs"))
    assert "specs to" in result.stderr
    fabric = api.load_fabric(str(tmp_path / "designs" / "leaf-spine-r64.yaml"))
    assert fabric.n_gpus == 256
    (tmp_path / "file").write_text("")
    assert "cannot make the folder" in run(*SMALL, "--out", str(tmp_path / "file"), status=1).stderr


def test_a_limit_that_nothing_keeps_ends_with_status_3_and_lists_why():
    result = run(*SMALL, "--max-cost", "1k", "--format", "json", status=3)
    assert "--max-cost 1,000 USD refuses" in result.stderr
    data = json.loads(result.stdout)
    assert data["designs"] == []
    assert {each["limit"] for each in data["rejected"]} >= {"cost"}


def test_weights_and_limits_are_read():
    data = json.loads(
        run(*SMALL, "--weights", "cost=2,efficiency=1", "--max-cost", "60M", "--max-power", "1.5MW",
            "--format", "json").stdout
    )  # fmt: skip
    assert data["request"]["weights"] == {"cost": 2.0, "efficiency": 1.0}
    assert data["request"]["limits"]["cost"] == 60e6
    assert data["request"]["limits"]["power"] == 1.5e6


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--gpus", "250"), 1, "are not whole hosts of 8"),
        (("--gpus", "many"), 2, "not a valid integer"),
        (("--gpus", "256", "--nic", "400"), 1, "400"),
        (("--gpus", "256", "--switch", "qm9770"), 1, "did you mean qm9700"),
        (("--gpus", "256", "--max-oversubscription", "0.5"), 1, "out of range"),
        (("--gpus", "256", "--non-blocking", "--max-oversubscription", "4"), 2, "two different wishes"),
        (("--gpus", "256", "--planes", "two"), 2, "not a whole number"),
        (("--gpus", "256", "--tiers", "1,,2"), 2, "empty entry"),
        (("--gpus", "256", "--max-cost", "cheap"), 2, "is not an amount; write it as 60M"),
        (("--gpus", "256", "--max-power", "5"), 2, "is not an amount; write it as 1.5MW"),
        (("--gpus", "256", "--weights", "cost"), 2, "is not NAME=NUMBER"),
        (("--gpus", "256", "--weights", "price=1"), 1, "'price' is not one of cost"),
        (("--gpus", "256", "--sites", "2"), 1, "--span 30km"),
        (("--gpus", "256", "--family", "clox"), 1, "hint: clos"),
        (("--gpus", "256", "--parts", "nowhere.yaml"), 1, "cannot be read"),
        ((), 2, "--gpus"),
    ],
)
def test_bad_input_is_refused(arguments, status, message):
    assert message in run(*arguments, status=status).stderr
