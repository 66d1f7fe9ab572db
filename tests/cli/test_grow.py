"""``netplan grow``: the JSON contract, the steps it writes, and how it refuses."""

from __future__ import annotations

import csv
import json

from click.testing import CliRunner

from netplan.cli.main import cli

TWICE = ("superpod-b200-4su", "superpod-b200-4su", "--set", "after.hosts.count=256")


def run(*arguments: str, status: int = 0):
    result = CliRunner().invoke(cli, ["grow", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_json_has_the_keys_of_the_contract():
    data = json.loads(run(*TWICE, "--format", "json").stdout)
    assert data["schema"] == "netplan/growth/1"
    assert data["touched"] == data["touched_at_least"] == 512
    assert data["touched_fraction"] == 0.25
    assert data["switches"]["spine"] == {
        "before": 16,
        "after": 32,
        "kept": 16,
        "converted": 0,
        "new": 16,
        "retired": 0,
    }
    assert data["hosts"] == {"before": 128, "after": 256, "kept": 128}
    part = next(each for each in data["purchases"] if each["part"] == "qm9700")
    assert (part["before"], part["after"], part["buy"], part["left_over"]) == (48, 96, 48, 0)


def test_the_table_says_what_moves_and_that_it_is_the_least():
    text = run(*TWICE).stdout
    assert (
        "512 of 2,048 cables in place are touched (25.0%); no plan between these two touches fewer." in text
    )
    assert "Parts to buy: at least" in text
    assert "no price is published for connectx-7" in text
    # From two tiers to pods of one rail each: a spine keeps 4 of its leaves, one cable each: 16 x 4 of 1,024.
    text = run("superpod-b200-4su", "superpod-b200-64su").stdout
    assert "960 of 2,048 cables in place are touched (46.9%); at least 512 are in any plan" in text


def test_csv_is_the_list_of_parts():
    rows = list(csv.DictReader(run(*TWICE, "--format", "csv").stdout.splitlines()))
    assert {row["part"]: row["buy"] for row in rows}["qm9700"] == "48"


def test_steps_are_a_list_for_those_who_carry_them_out(tmp_path):
    path = tmp_path / "steps.csv"
    result = run(*TWICE, "--steps", str(path))
    assert f"wrote the steps to {path}" in result.stderr
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == list(range(1, len(rows) + 1))
    moves = [row for row in rows if row["action"] == "move"]
    assert len(moves) == 512
    # Leaf 0 has two cables on each of 16 spines: one of each stays.
    first = moves[0]
    assert first["from_device"].startswith("spine-0-")
    assert first["to_device"].startswith("spine-0-")
    assert first["other_device"].startswith("leaf-")
    assert len({(row["to_device"], row["to_port"]) for row in moves}) == 512
    assert sum(row["action"] == "install" for row in rows) == 128 + 48


def test_choices_are_ranked():
    call = ("superpod-b200-4su", "superpod-b200-4su", "--set", "before.hosts.count=64", "--choices")
    data = json.loads(run(*call, "--format", "json").stdout)
    assert data["schema"] == "netplan/growth-choices/1"
    pairs = [(each["touched"], each["switches_total"]) for each in data["choices"]]
    # 512 GPUs: 16 leaves; the 16 spines of 1,024 GPUs, or 8 of which each cable has a parallel one too many.
    assert pairs == [(0, 32), (256, 24)]
    assert all(each["touched"] == each["touched_at_least"] for each in data["choices"])
    text = run(*call).stdout
    assert text.splitlines()[0] == "512 GPUs that grow into superpod-b200-4su (1,024 GPUs)"


def test_a_set_must_say_which_fabric():
    result = run("lab-2-leaf", "lab-2-leaf", "--set", "hosts.count=8", status=2)
    assert (
        "'hosts.count' says not of which fabric; write before.hosts.count or after.hosts.count"
        in result.output
    )


def test_choices_take_no_options_that_would_change_nothing():
    result = run("lab-2-leaf", "lab-2-leaf", "--choices", "--floor", "default", status=2)
    assert "--floor: not used with --choices" in result.output
    result = run("lab-2-leaf", "lab-2-leaf", "--choices", "--set", "after.radix=8", status=2)
    assert "with --choices only before.hosts.count can be set" in result.output


def test_a_design_that_cannot_begin_smaller():
    result = run("lab-2-leaf", "lab-2-leaf", "--choices", status=1)
    assert "would not grow" in result.output
    assert "hint: take fewer than" in result.output
    result = run("lab-2-leaf", "fat-tree-k8", "--choices", status=1)
    assert "beginnings are known for the tree families" in result.output


def test_the_same_call_prints_the_same_bytes():
    assert run(*TWICE, "--format", "json").stdout == run(*TWICE, "--format", "json").stdout
