"""What each command prints: the JSON contract, tables, files, exit statuses."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from netplan.cli.main import COMMANDS, cli


def run(*arguments: str) -> str:
    """Run netplan and return its standard output; it must succeed."""
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def read(*arguments: str) -> Any:
    """Run netplan with ``--format json`` and return the data."""
    return json.loads(run(*arguments, "--format", "json"))


def test_help_lists_commands_without_importing_them() -> None:
    """``--help`` must not import numpy, pydantic or any command, in a new process."""
    code = (
        "import sys; from netplan.cli.main import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'pydantic', 'yaml', 'numba', 'netplan.cli.simulate')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    for name in COMMANDS:
        assert name in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_short_help_is_the_commands_own(name: str) -> None:
    """The help that ``--help`` shows without importing is what the command says of itself, with examples."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(200) == COMMANDS[name][1]
    assert command.help is not None
    assert command.help.count("netplan ") >= 2, "two examples"


def test_list_has_a_sentence_for_everything() -> None:
    """Every kind lists items with name, kind, summary and source."""
    for kind in ("fabrics", "traffic", "families", "patterns", "algorithms", "routing", "cc", "formats"):
        items = read("list", kind)["items"]
        assert items
        for item in items:
            assert set(item) == {"name", "kind", "summary", "source"}
            assert item["name"]
            assert item["summary"]


def test_simulate_keeps_its_contract() -> None:
    """The keys of guide/cli.md, and figures that agree with each other."""
    data = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--routing", "ecmp")
    result = data["result"]
    assert {
        "completion_s",
        "algbw_gb_per_s",
        "busbw_gb_per_s",
        "efficiency",
        "flows",
        "phases",
        "bottlenecks",
        "pfc",
        "loss_fraction",
        "queues",
    } <= set(result)
    assert set(result["efficiency"]) == {"mean_flow", "collective", "worst_flow"}
    assert result["efficiency"]["collective"] == pytest.approx(result["ideal_s"] / result["completion_s"])
    assert result["algbw_gb_per_s"] == pytest.approx(2**30 / result["completion_s"] / 1e9)
    n = result["ranks"]
    assert result["busbw_gb_per_s"] == pytest.approx(result["algbw_gb_per_s"] * 2 * (n - 1) / n)
    assert data["manifest"]["seed"] == 0
    assert len(data["manifest"]["fabric"]["sha256"]) == 64
    assert data["schema"] == "netplan/result/1"


def test_compare_keeps_its_contract() -> None:
    """A row per setting in the order of the grid, each with its figures over the baseline's."""
    data = read("compare", "lab-2-leaf", "permutation-64mib", "--routing", "ecmp,spray", "--qps", "1,4")
    assert [(row["routing"], row["params"]["qps"]) for row in data["rows"]] == [
        ("ecmp", 1),
        ("ecmp", 4),
        ("spray", 1),
        ("spray", 4),
    ]
    base = data["baseline"]["result"]
    assert data["baseline"]["routing"] == "ib-static"
    for row in data["rows"]:
        versus = row["versus_baseline"]
        mine = row["result"]
        assert versus["completion"] == pytest.approx(mine["completion_s"] / base["completion_s"])
        for figure in ("mean_flow", "collective"):
            assert versus[figure] == pytest.approx(mine["efficiency"][figure] / base["efficiency"][figure])
        assert row["cc"] == "max-min"


def test_compare_says_that_nothing_changed_and_why() -> None:
    """System: point-to-point, one flow on an idle fabric. Expected: words that no link is contended."""
    text = run("compare", "lab-2-leaf", "point-to-point", "--routing", "ecmp,spray,adaptive")
    assert "No link is offered more than it carries" in text
    assert "routing changes nothing" in text
    incast = run("compare", "lab-2-leaf", "incast-8", "--routing", "ecmp,spray")
    assert "Only NIC ports are contended" in incast
    qps = run("compare", "lab-2-leaf", "permutation-64mib", "--routing", "spray", "--qps", "1,8")
    assert "More QPs change nothing under spray" in qps


def test_compare_warns_of_an_up_down_baseline() -> None:
    """System: a metro domain, where ib-static is OpenSM's up/down, and a tree, where it is d-mod-k."""
    words = "OpenSM's up/down on this fabric"
    assert words in run("compare", "metro-30km-2site", "all-reduce-1gib", "--routing", "spray")
    assert words not in run("compare", "superpod-b200-4su", "permutation-64mib", "--routing", "spray")
    other = run(
        "compare", "metro-30km-2site", "all-reduce-1gib", "--baseline", "ib-random", "--routing", "spray"
    )
    assert words not in other


def test_show_and_check() -> None:
    """``show`` counts, ``check`` finds nothing wrong with a shipped fabric."""
    fabric = read("show", "superpod-b200-4su")["fabric"]
    assert fabric["switches"]["leaf"] == 32
    assert fabric["switches"]["spine"] == 16
    assert fabric["cables"]["leaf_spine"] == 1024
    assert read("check", "superpod-b200-4su")["faults"] == []


def test_check_of_a_broken_saved_fabric_ends_with_3(tmp_path: Path) -> None:
    """System: a saved fabric whose first leaf has lost its radix. Expected: NP102, exit status 3."""
    saved = tmp_path / "lab.json"
    run("show", "lab-2-leaf", "--save", str(saved))
    data = json.loads(saved.read_text())
    hosts, switches = 8, 4
    data["nodes"]["radix"] = [0] * hosts + [1] + [16] * (switches - 1)
    saved.write_text(json.dumps(data))
    result = CliRunner().invoke(cli, ["check", str(saved), "--format", "json"])
    assert result.exit_code == 3
    faults = json.loads(result.stdout)["faults"]
    assert [fault["code"] for fault in faults] == ["NP102"]
    assert set(faults[0]) == {"code", "severity", "where", "message", "hint"}
    assert CliRunner().invoke(cli, ["show", str(saved)]).exit_code == 1


def test_a_saved_fabric_simulates_as_its_spec_does(tmp_path: Path) -> None:
    """Loading a saved fabric instead of its spec changes no number."""
    saved = tmp_path / "f.json"
    run("show", "superpod-b200-4su", "--save", str(saved))
    arguments = ("all-reduce-1gib", "--placement", "random", "--seed", "3")
    assert read("simulate", str(saved), *arguments) == read("simulate", "superpod-b200-4su", *arguments)


def test_csv_and_markdown_hold_the_same_rows() -> None:
    """CSV has raw numbers, one row per setting and the baseline; Markdown the same rows."""
    arguments = ("compare", "lab-2-leaf", "permutation-64mib", "--routing", "ecmp,spray")
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv"))))
    assert [row["routing"] for row in rows] == ["ib-static (baseline)", "ecmp", "spray"]
    assert float(rows[2]["collective"]) == pytest.approx(1.0)
    markdown = run(*arguments, "--format", "md")
    assert sum(line.startswith("| ") for line in markdown.splitlines()) == 2 + len(rows), (
        "a header, a ruler, the rows"
    )


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_diagram_writes_a_picture(tmp_path: Path, suffix: str) -> None:
    """The suffix chooses the format; nothing else is left in the folder."""
    out = tmp_path / f"lab.{suffix}"
    run("diagram", "lab-2-leaf", "-o", str(out))
    head = out.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in head
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_diagram_refuses_other_suffixes(tmp_path: Path) -> None:
    """An unknown suffix: exit status 1, the accepted ones, no file."""
    result = CliRunner().invoke(cli, ["diagram", "lab-2-leaf", "-o", str(tmp_path / "lab.bmp")])
    assert result.exit_code == 1
    assert "svg" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_set_changes_the_spec_as_the_file_would() -> None:
    """``--set`` of the fabric and, with ``traffic.`` before it, of the workload."""
    halved = read("show", "lab-2-leaf", "--set", "hosts.nic_speed=200G")["fabric"]
    plain = read("show", "lab-2-leaf")["fabric"]
    assert halved != plain
    big = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--set", "traffic.size=2 GiB")
    small = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--size", "1 GiB")
    assert big["result"]["completion_s"] > small["result"]["completion_s"]


def test_output_option_writes_what_would_be_printed(tmp_path: Path) -> None:
    """``-o`` writes the same bytes as standard output gets."""
    out = tmp_path / "r.json"
    printed = run("simulate", "lab-2-leaf", "all-reduce-1gib", "--format", "json")
    assert run("simulate", "lab-2-leaf", "all-reduce-1gib", "--format", "json", "-o", str(out)) == ""
    assert out.read_text() == printed


def test_same_seed_same_bytes_in_two_processes() -> None:
    """Two processes with different hash seeds print the same JSON; another seed prints another."""

    def text(seed: str, hash_seed: str) -> str:
        command = [sys.executable, "-m", "netplan", "compare", "superpod-b200-4su", "all-reduce-1gib"]
        command += ["--placement", "random", "--seed", seed, "--format", "json"]
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    first = text("1", "1")
    assert first == text("1", "2")
    assert first != text("2", "1")


def test_flows_are_written_with_their_bottlenecks(tmp_path: Path) -> None:
    """System: 8 senders to one NIC at 100G. Expected: 8 equal rates that fill the NIC's payload rate."""
    out = tmp_path / "flows.csv"
    run("simulate", "lab-2-leaf", "incast-8", "--flows", str(out))
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 8
    assert {row["dst_host"] for row in rows} == {"host-00000"}
    assert sum(float(row["rate_gb_per_s"]) for row in rows) == pytest.approx(12.5 * 4096 / (4096 + 82))
    assert {row["bottleneck"] for row in rows} == {"leaf-0-0 -> host-00000 #1"}


def test_schema_is_json_schema() -> None:
    """Both schemas are draft 2020-12 and know their kinds."""
    for kind, word in (("fabric", "rail-optimized"), ("traffic", "all-to-all")):
        text = run("schema", kind)
        assert json.loads(text)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert word in text


def test_cli_py_is_the_same_program() -> None:
    """``python cli.py`` and ``python -m netplan`` print the same version."""
    root = Path(__file__).parents[2]
    for command in (["cli.py"], ["-m", "netplan"]):
        done = subprocess.run(
            [sys.executable, *command, "--version"], capture_output=True, text=True, check=True, cwd=root
        )
        assert done.stdout.startswith("netplan, version")
