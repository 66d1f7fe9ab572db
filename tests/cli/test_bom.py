"""``netplan bom``: the JSON contract, the lists it writes, and how it refuses."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from netplan.cli.main import cli


def run(*arguments: str, status: int = 0):
    result = CliRunner().invoke(cli, ["bom", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_json_has_the_keys_of_the_contract():
    data = json.loads(run("superpod-b200-4su", "--floor", "default", "--format", "json").stdout)
    assert data["schema"] == "netplan/bom/1"
    for line in data["lines"]:
        assert {"part", "quantity", "unit_cost_usd", "power_w", "source"} <= set(line)
    totals = data["totals"]
    assert totals["switches"] == 48
    assert set(totals["cost_usd"]) == {"low", "mid", "high"}
    assert totals["cost_usd"]["low"] < totals["cost_usd"]["mid"] < totals["cost_usd"]["high"]
    assert totals["per_gpu"]["power_w"]["max"] == pytest.approx(totals["power_w"]["max"] / 1024)
    assert totals["at_least"]["cost"] == ["connectx-7"]
    assert totals["network_share"] is None


def test_parts_are_listed_with_a_sentence_and_a_source():
    result = CliRunner().invoke(cli, ["list", "parts", "--format", "json"])
    items = json.loads(result.stdout)["items"]
    assert {item["kind"] for item in items} == {
        *("switch", "nic", "optic", "cable", "fibre", "line terminal", "host")
    }
    assert all(item["name"] and item["summary"] for item in items)
    assert next(item for item in items if item["name"] == "qm9700")["source"]


def test_the_same_call_prints_the_same_bytes():
    calls = [run("lab-2-leaf", "--spares", "3%", "--format", "json").stdout for _ in range(2)]
    assert calls[0] == calls[1]


def test_the_table_says_at_least_and_why():
    text = run("superpod-b200-4su", "--floor", "default").stdout
    assert "at least 4," in text
    assert "no price is published for connectx-7." in text
    named = run("superpod-b200-4su", "--floor", "default", "--host", "dgx-b200").stdout
    assert "at least" not in named
    assert "network's share of power" in named


def test_csv_is_an_order_list():
    rows = list(
        csv.DictReader(io.StringIO(run("superpod-b200-4su", "--spares", "3%", "--format", "csv").stdout))
    )
    assert all(int(row["order"]) == int(row["needed"]) + int(row["spares"]) for row in rows)
    assert {row["part"]: row["order"] for row in rows}["qm9700"] == "50"  # 32 + 1 and 16 + 1


def test_the_cabling_list_is_written(tmp_path):
    path = tmp_path / "cables.csv"
    result = run("metro-30km-2site", "--floor", "default", "--cabling", str(path))
    assert "wrote the cabling list" in result.stderr
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 1024 + 1024 + 128 + 64
    wanted = ("from_device", "from_port", "to_device", "to_port", "type", "length_m", "label")
    assert all(row[key] for row in rows for key in wanted)


def test_parts_and_floor_files(tmp_path):
    parts, hall = tmp_path / "p.yaml", tmp_path / "h.yaml"
    parts.write_text(
        "nics: [{name: connectx-7, cage: {value: osfp-rhs, source: q, date: 2026-05, confidence: published},"
        " price: {low: 1500 USD, high: 1500 USD, source: q, date: 2026-05, confidence: published},"
        " ports: {value: [{speed: 400G, count: 1}], source: q, date: 2026-05, confidence: published}}]\n",
        encoding="utf-8",
    )
    hall.write_text("leaf: in-rack\n", encoding="utf-8")
    data = json.loads(
        run("superpod-b200-4su", "--parts", str(parts), "--floor", str(hall), "--format", "json").stdout
    )
    assert data["totals"]["at_least"]["cost"] != ["connectx-7"]
    nic = next(line for line in data["lines"] if line["kind"] == "nic")
    assert nic["unit_cost_usd"]["mid"] == 1500


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--spares", "-3%"], 2, "'-3%' is not between 0% and 100%"),
        (["--spares", "3"], 2, "is not a percentage; write it as 3%"),
        (["--switch", "qm970"], 1, "did you mean qm9700"),
        (["--switch", "leaf="], 2, "is not [KEY=]PART"),
        (["--switch", "qm9700", "--switch", "qm9700"], 2, "is given twice for all"),
        (
            ["--optics", "leaf_spine=SR4", "--set", "cables.leaf_spine=80 m"],
            1,
            "PL107 mma4z00-ns reaches 50 m",
        ),
        (["--parts", "no.yaml"], 1, "parts file 'no.yaml' cannot be read"),
        (["--floor", "no.yaml"], 1, "floor file 'no.yaml' cannot be read"),
        (["--protocol", "token-ring"], 2, "token-ring"),
    ],
)
def test_bad_input(arguments, status, message):
    result = run("superpod-b200-4su", *arguments, status=status)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_broken_parts_file_shows_every_fault_with_its_line(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text(
        "switches:\n  - name: a b\n    protocol: ethernet\n  - protocol: etherent\n", encoding="utf-8"
    )
    said = run("lab-2-leaf", "--parts", str(path), status=1).stderr
    assert "broken.yaml:2: switches[0].name = 'a b'" in said
    assert "broken.yaml:4: switches[1].protocol = 'etherent'" in said
    assert "did you mean `ethernet`?" in said
