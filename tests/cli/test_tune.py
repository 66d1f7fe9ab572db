"""``netplan tune`` and ``netplan check --routing``: outputs, exit statuses, and what a wrong call is told."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli

RING = """\
name: ring
kind: metro
sites:
- {name: a, fabric: {name: a, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}}
- {name: b, fabric: {name: b, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}}
- {name: c, fabric: {name: c, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}}
- {name: d, fabric: {name: d, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}}
spans:
- {a: a, b: b, length: 30 km}
- {a: b, b: c, length: 30 km}
- {a: c, b: d, length: 30 km}
- {a: d, b: a, length: 30 km}
metro: {radix: 16, switches: 1}
"""


def run(*arguments: str, status: int = 0) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.stderr
    return result


def test_the_json_keeps_its_contract():
    """Keys of the issue; every class of ports has its reason."""
    data = json.loads(run("tune", "superpod-b200-4su", "--switch", "sn5600", "--format", "json").stdout)
    assert data["schema"] == "netplan/tune/1"
    assert data["cc"]["name"] == "dcqcn"
    keys = {"class", "rate_gbps", "length_m", "kmin_bytes", "kmax_bytes", "pmax", "headroom_bytes"}
    keys |= {"xoff_bytes", "xon_bytes", "reason"}
    for port in data["ports"]:
        assert keys <= set(port)
        assert 0 < port["kmin_bytes"] < port["xoff_bytes"]
        assert port["xon_bytes"] < port["xoff_bytes"]
    buffer = data["buffer"]
    assert buffer["fits"] is True
    assert buffer["required_bytes"] <= buffer["pool_bytes"] == 158_229_504


def test_a_metro_switch_without_the_buffer_ends_with_3():
    result = run("tune", "metro-30km-2site", status=3)
    assert "this switch cannot do it lossless" in result.stdout
    assert "jericho-2" in result.stdout
    run("tune", "metro-30km-2site", "--switch", "metro=jericho-2")
    run("tune", "metro-30km-2site", "--lossy", "inter_site")


def test_csv_has_one_row_a_class():
    text = run("tune", "lab-2-leaf", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["kind"] for row in rows] == ["host_leaf", "leaf_spine", "leaf_spine"]


def test_what_is_asked_for_is_taken():
    options = [
        "--ecn",
        "host_leaf=300kB,900kB,0.1",
        "--ecn",
        "cumulus",
        "--xoff",
        "1MB",
        "--headroom",
        "500kB",
    ]
    options += ["--param", "dcqcn.rate_ai=40M", "--param", "timer_s=55us", "--pool", "100MB"]
    data = json.loads(run("tune", "lab-2-leaf", *options, "--format", "json").stdout)
    first, second, _ = data["ports"]
    assert (first["kmin_bytes"], first["kmax_bytes"], first["pmax"]) == (300_000, 900_000, 0.1)
    assert (second["kmin_bytes"], second["ecn_rule"]) == (150_000, "cumulus")
    assert first["headroom_bytes"] == 500_000
    assert first["xoff_bytes"] == first["xoff_all_bytes"] == 1_000_000
    values = {row["name"]: row["value"] for row in data["cc"]["parameters"]}
    assert (values["rate_ai"], values["timer_s"]) == (5e6, 55e-6)
    assert data["buffer"]["pool_bytes"] == 100_000_000


def test_a_parameter_of_another_protocol_is_a_warning():
    data = json.loads(run("tune", "lab-2-leaf", "--param", "hpcc.eta=0.9", "--format", "json").stdout)
    (fault,) = (fault for fault in data["faults"] if fault["code"] == "NP214")
    assert "hpcc.eta changes nothing: the congestion control is dcqcn" in fault["message"]


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--ecn", "2MB,1MB,0.2"], 1, "NP201: Kmin (2 MB) is above Kmax (1 MB)"),
        (["--ecn", "1MB,2MB,5"], 1, "a percentage? write 0.05"),
        (["--ecn", "1MB,2MB,much"], 2, "Pmax 'much' is not a number"),
        (["--ecn", "1MB,2MB"], 2, "is not KMIN,KMAX,PMAX, a rule or off"),
        (["--ecn", "1,2,0.1"], 2, "it has no unit"),
        (["--ecn", "hpcc"], 1, "ECN rule 'hpcc' is not one of"),
        (["--ecn", "spine=off"], 1, "'spine' is not a kind of cable"),
        (["--xoff", "5GB"], 1, "NP203: xoff of 5 GB"),
        (["--xoff", "-5MB"], 2, "is negative"),
        (["--headroom", "1kB"], 1, "NP205: headroom of 1 kB is less than the cable holds"),
        (["--param", "rate_aj=5M"], 1, "dcqcn has no parameter 'rate_aj'"),
        (["--param", "rate_ai"], 2, "is not [CC.]NAME=VALUE"),
        (["--param", "rate_ai=5"], 2, "it has no unit"),
        (["--param", "gain=much"], 2, "gain = 'much' is not a number"),
        (["--param", "gain=2"], 1, "dcqcn.gain = 2 1 is out of range"),
        (["--param", "timer_s=-5us"], 2, "is negative"),
        (["--param", "gain=0.1", "--param", "dcqcn.gain=0.2"], 2, "names 'gain' twice"),
        (["--param", "cubic.gain=0.1"], 1, "'cubic' is not one of"),
        (["--cc", "dcqn"], 1, "congestion control 'dcqn' is not one of"),
        (["--alpha", "0"], 1, "alpha = 0 is not > 0"),
        (["--pool", "10"], 2, "it has no unit"),
        (["--oversubscribe", "0.5"], 2, "0.5 is not in the range"),
        (["--small-packets", "200%"], 2, "is not between 0% and 100%"),
        (["--lossy", "intersite"], 1, "'intersite' is not a kind of cable"),
        (["--switch", "sn56"], 1, "switch 'sn56' is not in the parts catalogue"),
    ],
)
def test_bad_input(options, status, says, tmp_path):
    out = tmp_path / "out.json"
    result = run("tune", "lab-2-leaf", *options, "--format", "json", "-o", str(out), status=status)
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()


def test_a_search_prints_its_landscape_and_draws_it(tmp_path):
    picture = tmp_path / "landscape.svg"
    options = [
        "--switch",
        "sn5600",
        "--search",
        "incast-8",
        "--set",
        "traffic.size=1 MiB",
        "--over",
        "timer_s,ecn",
    ]
    options += ["--trials", "6", "--grid", "2", "--picture", str(picture)]
    text = run("tune", "lab-2-leaf", *options).stdout
    assert "search of dcqcn for incast-8: 8 flows, 6 trials" in text
    assert "efficiency over timer_s and ecn" in text
    assert picture.read_bytes().startswith(b"<?xml")
    data = json.loads(run("tune", "lab-2-leaf", *options, "--format", "json").stdout)["search"]
    assert len(data["landscape"]) == 4
    assert data["best"]["efficiency"] >= data["start"]["efficiency"]


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--over", "timer_s"], 2, "--over and --picture need --search"),
        (["--picture", "x.svg"], 2, "--over and --picture need --search"),
        (["--search", "incast-8", "--picture", "x.bmp"], 1, "bmp"),
        (["--search", "incast-8", "--over", "timers"], 1, "nothing called 'timers'"),
        (["--search", "incast-8", "--over", "timer_s,,ecn"], 2, "has an empty entry"),
        (["--search", "incast-8", "--routing", "spray"], 1, "spreads flows over many paths"),
        (["--search", "incast-9"], 1, "incast-8"),
        (["--search", "incast-8", "--trials", "10"], 1, "fewer than the start and a landscape of 25 points"),
    ],
)
def test_searches_that_cannot_be(options, status, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("tune", "lab-2-leaf", "--switch", "sn5600", *options, status=status)
    assert says in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture
def ring(tmp_path: Path) -> str:
    """Four sites in a ring."""
    path = tmp_path / "ring.yaml"
    path.write_text(RING, encoding="utf-8")
    return str(path)


def test_check_finds_a_deadlock_of_a_routing(ring):
    result = run("check", ring, "--routing", "ecmp", status=3)
    assert "NP221" in result.stdout
    assert "2 cycle(s)" in result.stdout
    data = json.loads(run("check", ring, "--routing", "ecmp", "--format", "json", status=3).stdout)
    assert [len(cycle) for cycle in data["buffer_cycles"]["cycles"]] == [4, 4]
    assert data["buffer_cycles"]["flows"] == 48
    assert "no cycle" in run("check", ring, "--routing", "ib-static").stdout
    run("check", ring)


def test_check_of_a_workloads_own_flows():
    text = run("check", "lab-2-leaf", "--routing", "ecmp", "--traffic", "incast-8").stdout
    assert "the demand's flows, on all their equal-cost paths (8 flows)" in text


def test_check_with_a_wrong_call():
    assert "--traffic needs --routing" in run("check", "lab-2-leaf", "--traffic", "incast-8", status=2).stderr
    assert "is not one of ecmp" in run("check", "lab-2-leaf", "--routing", "ecpm", status=1).stderr


@pytest.mark.parametrize("code", ["NP201", "NP211", "NP221", "NP231", "NP232"])
def test_codes_are_explained(code):
    assert "remedy" in run("explain", code).stdout
