"""Congestion control on the command line: results, grids, series, pictures, refusals and remarks."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from netplan.cli.main import cli

LAB = ("lab-2-leaf", "incast-8")


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def read(*arguments):
    result = invoke(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_simulate_fills_queues_pauses_and_losses():
    result = read("simulate", *LAB, "--cc", "dcqcn")["result"]
    assert set(result["pfc"]) == {"pause_time_s", "pause_events", "watchdog_events"}
    assert result["queues"]["peak_bytes"] > result["queues"]["mean_bytes"] > 0
    assert result["queues"]["worst_link"].endswith("host-00000 #1")
    assert result["loss_fraction"] == 0
    assert result["marked_packets"] > 0
    assert result["engine"]["method"] == "whole"
    table = invoke("simulate", *LAB, "--cc", "dcqcn", "--param", "rate_ai=40M").stdout
    assert "peak queue at" in table
    assert "dcqcn, rate_ai 5e+06" in table


def test_max_min_has_none_of_it():
    result = read("simulate", *LAB)["result"]
    assert result["pfc"] is result["queues"] is result["loss_fraction"] is result["engine"] is None


@pytest.mark.parametrize(
    "cc", ["none", "dcqcn", "dcqcn-paper", "dctcp", "timely", "timely-patched", "hpcc", "swift", "nscc"]
)
def test_every_protocol_runs(cc):
    data = read("simulate", *LAB, "--cc", cc)
    assert data["result"]["completion_s"] > 0.9 * data["result"]["ideal_s"]
    assert data["manifest"]["models"]["cc"] == cc


def test_compare_makes_a_row_for_each_value_of_a_parameter(tmp_path):
    chart = tmp_path / "chart.svg"
    ccs = ("--cc", "dcqcn,hpcc,max-min", "--param", "dcqcn.timer_s=55us,300us", "--param", "hpcc.eta=0.9")
    data = read("compare", *LAB, "--routing", "ecmp", *ccs, "--size", "64MiB", "--chart", chart)
    rows = data["rows"]
    assert [row["cc"] for row in rows] == ["dcqcn", "dcqcn", "hpcc", "max-min"]
    assert [row["params"] for row in rows[:2]] == [{"dcqcn.timer_s": 55e-6}, {"dcqcn.timer_s": 300e-6}]
    assert rows[2]["manifest"]["congestion"]["parameters"]["eta"] == 0.9
    assert rows[0]["result"]["completion_s"] != rows[1]["result"]["completion_s"]
    assert all(row["versus_baseline"]["completion"] > 0 for row in rows)
    texts = " ".join(text.text or "" for text in ET.parse(chart).iter() if text.tag.endswith("text"))
    assert "hpcc" in texts
    assert "(baseline)" in texts


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cc", "hpcc", "--param", "dcqcn.rate_ai=40M"), "NP214: dcqcn.rate_ai changes nothing"),
        (("--param", "dcqcn.rate_ai=40M"), "NP214: dcqcn.rate_ai changes nothing"),
        (("--exact",), "NP214: --exact changes nothing: the congestion control is max-min"),
        (("--switch-profile", "dci"), "NP214: --switch-profile changes nothing"),
        (("--step", "1us"), "NP214: --step changes nothing"),
    ],
)
def test_a_setting_that_nothing_reads_is_reported(arguments, says):
    assert any(says in remark for remark in read("simulate", *LAB, *arguments)["result"]["remarks"])


def test_a_protocol_without_contention_is_reported():
    one = read("simulate", "lab-2-leaf", "point-to-point", "--cc", "none")["result"]["remarks"]
    assert any(remark.startswith("NP242") for remark in one)
    both = read("compare", "lab-2-leaf", "point-to-point", "--routing", "ecmp", "--cc", "none,dcqcn,timely")
    text = " ".join(both["remarks"])
    assert "NP242: under ecmp no link is contended" in text
    assert "none, dcqcn and timely give the same completion under ecmp" in text


def test_a_parameter_that_changes_nothing_is_reported():
    same = ("--cc", "dcqcn", "--param", "rate_hai=100M,200M", "--routing", "ecmp")
    assert any(
        remark.startswith("NP214: dcqcn.rate_hai changes nothing under ecmp")
        for remark in read("compare", "lab-2-leaf", "point-to-point", *same)["remarks"]
    )


def test_deep_buffers_of_a_metro_are_reported():
    text = invoke("simulate", "metro-30km-2site", "point-to-point", "--cc", "hpcc").stdout
    assert "NP241" in text


def test_series_and_pictures(tmp_path):
    names = [tmp_path / name for name in ("s.csv", "s.json", "p.svg", "p.png")]
    done = invoke("simulate", *LAB, "--cc", "dctcp", "--series", names[0], "--plot", names[2])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(names[0].read_text().splitlines()))
    assert {row["what"] for row in rows} == {"rate_gb_per_s", "queue_bytes"}  # dctcp is never paused here
    invoke("simulate", *LAB, "--cc", "dctcp", "--series", names[1], "--plot", names[3])
    data = json.loads(names[1].read_text())
    assert data["schema"] == "netplan/series/1"
    (phase,) = data["phases"]
    assert len(phase["rates"]) == 8
    assert len(phase["rates"][0]["gb_per_s"]) == len(phase["time_s"])
    lines = [each for each in ET.parse(names[2]).iter() if each.tag.endswith("polyline")]
    assert len(lines) == 8 + len(phase["queues"])
    assert names[3].read_bytes().startswith(b"\x89PNG")
    assert phase["pauses"] == []


def test_pauses_over_time_add_up(tmp_path):
    """Without a protocol an incast is held back by pauses alone, up to all of the time."""
    series, plot = tmp_path / "s.json", tmp_path / "p.html"
    data = read("simulate", *LAB, "--cc", "none", "--series", series, "--plot", plot)["result"]
    (phase,) = json.loads(series.read_text())["phases"]
    assert phase["pauses"]
    width = np.diff([0.0, *phase["time_s"]])
    fractions = np.array([one["fraction"] for one in phase["pauses"]])
    assert 0 <= fractions.min() < fractions.max() <= 1
    paused = (fractions * width).sum(axis=1)
    # The eight links that were paused longest: at least their share of the thirteen or so that were.
    assert len(paused) == 8
    assert 8 / 16 * data["pfc"]["pause_time_s"] <= paused.sum() <= 1.01 * data["pfc"]["pause_time_s"]
    assert np.all(np.diff(paused) <= 0.01 * paused[0])
    table = tmp_path / "s.csv"
    invoke("simulate", *LAB, "--cc", "none", "--series", table)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["what"] for row in rows} == {"rate_gb_per_s", "queue_bytes", "paused_fraction"}
    page = plot.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "part of the time that links are paused" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--cc", "dcqnc"), 1, "dcqcn"),
        (("--cc", "dcqcn", "--param", "rate_ai"), 2, "is not [CC.]NAME=VALUE"),
        (("--cc", "dcqcn", "--param", "rate_ia=5M"), 1, "rate_ai"),
        (("--cc", "dcqcn", "--param", "rate_ai=5"), 2, "rate_ai"),
        (("--cc", "dcqcn", "--param", "gain=x"), 2, "gain = 'x' is not a number"),
        (("--cc", "dcqcn", "--param", "gain=3"), 1, "out of range"),
        (("--cc", "dcqcn", "--param", "gain=0.1", "--param", "dcqcn.gain=0.2"), 2, "names dcqcn.gain twice"),
        (("--cc", "dcqcn", "--param", "gain=0.1,0.2"), 2, "netplan compare takes several"),
        (("--cc", "dcqcn", "--param", "swifd.x=1"), 1, "swift"),
        (("--cc", "dcqcn", "--step", "5"), 2, "--step"),
        (("--cc", "dcqcn", "--step", "1ms"), 1, "does not fit the shortest round trip"),
        (("--cc", "dcqcn", "--switch-profile", "sonic"), 1, "sonic-default"),
        (("--cc", "dcqcn", "--routing", "ib-static"), 1, "does not run over infiniband"),
        (("--cc", "dcqcn", "--routing", "ideal"), 1, "no links inside the network"),
        (("--series", "x.csv"), 2, "--series needs a protocol"),
        (("--plot", "x.svg"), 2, "--plot needs a protocol"),
        (("--cc", "dcqcn", "--series", "x.txt"), 2, "does not end in .csv or .json"),
        (("--cc", "dcqcn", "--plot", "x.gif"), 1, "svg"),
        (("--cc", "dcqcn", "--series", "x.csv", "--fail", "switch:spine-0-0"), 2, "do not go together"),
    ],
)
def test_what_is_refused(arguments, status, says):
    result = invoke("simulate", *LAB, *arguments)
    assert result.exit_code == status, result.output
    assert says in result.stderr
    assert result.stdout == ""


def test_tuned_switches_run_where_their_buffers_are_known():
    ok = invoke(
        "simulate", "superpod-b300-spectrum-8su", "incast-8", "--cc", "dcqcn", "--switch-profile", "tune"
    )
    assert ok.exit_code == 0, ok.output
    refused = invoke("simulate", "metro-30km-2site", "incast-8", "--cc", "dcqcn", "--switch-profile", "tune")
    assert refused.exit_code == 1
    assert "cannot be set as tune says" in refused.stderr


def test_list_and_explain():
    items = {item["name"] for item in read("list", "cc")["items"]}
    assert {"max-min", "none", "dcqcn", "hpcc"} <= items
    (entry,) = [e for e in read("explain", "dcqcn.rate_ai")["entries"] if e["kind"] == "cc"]
    assert entry["facts"]["default"] == "20M"
    assert "run.py" in entry["facts"]["source"]
    (entry,) = [e for e in read("explain", "hpcc")["entries"] if e["kind"] == "cc"]
    assert "eta" in entry["facts"]


def test_a_cell_that_cannot_be_run_is_a_row_with_its_reason():
    grid = ("compare", *LAB, "--routing", "ecmp,spray", "--cc", "hpcc,dctcp")
    data = read(*grid)
    assert [(row["routing"], row["cc"]) for row in data["rows"]] == [
        ("ecmp", "hpcc"),
        ("ecmp", "dctcp"),
        ("spray", "hpcc"),
        ("spray", "dctcp"),
    ]
    ran, refused = data["rows"][0], data["rows"][2]
    assert ran["result"] is not None
    assert ran["reason"] is None
    assert refused["result"] is None
    assert "over different links" in refused["reason"]
    table = invoke(*grid).stdout
    assert "spray (not run)" in table
    assert "spray with hpcc was not run: cc hpcc compares what each hop told two packets" in table


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--routing", "spray", "--cc", "hpcc,powertcp"), "over different links"),
        (("--cc", "dctcp,dcqcn", "--param", "dcqcn.gain=0.1,3"), "out of range"),
        (("--cc", "max-min,dctcp", "--switch-profile", "sonic"), "sonic-default"),
    ],
)
def test_a_grid_is_refused_where_nothing_runs_or_a_value_is_wrong(arguments, says):
    result = invoke("compare", *LAB, *arguments)
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stdout == ""


PROFILE_FILE = """\
name: mixed
ecn: {kmin: 100 kB, kmax: 400 kB, pmax: 0.2}
ecn_by_rate:
  - {rate: 100G, kmin: 50 kB, kmax: 200 kB, pmax: 0.2}
  - {rate: 400G, kmin: 400 kB, kmax: 1600 kB, pmax: 0.2}
watchdog: {detection: 200 ms, restoration: 200 ms, action: drop}
buffer: {total: 64 MB}
"""


def test_a_switch_profile_of_the_users_own(tmp_path):
    file = tmp_path / "mixed.yaml"
    file.write_text(PROFILE_FILE)
    data = read("simulate", *LAB, "--cc", "dcqcn", "--switch-profile", file)
    switch = data["manifest"]["congestion"]["switch"]
    assert switch["ecn_by_rate"][1] == [50e9, {"kmin_bytes": 4e5, "kmax_bytes": 1.6e6, "pmax": 0.2}]
    assert switch["watchdog"] == {"detection_s": 0.2, "restoration_s": 0.2, "action": "drop"}
    assert data["result"]["pfc"]["watchdog_events"] == 0
    file.write_text(PROFILE_FILE.replace("  - {rate: 100G", "  - {rate: 10G"))  # its 100G ports fall back
    assert read("simulate", *LAB, "--cc", "dcqcn", "--switch-profile", file)["result"] != data["result"]


def test_headroom_that_is_too_small_is_reported(tmp_path):
    """Pauses that come too late: what arrives until the sender has heard of them finds no room."""
    file = tmp_path / "thin.yaml"
    thin = """\
name: thin
ecn: {kmin: 400 kB, kmax: 1600 kB, pmax: 0.2}
pfc: {mode: static, xoff: 100 kB, headroom: 8 kB}
buffer: {total: 9 MB}
"""
    for headroom, remarked in (("8 kB", True), ("32 kB", False)):
        file.write_text(thin.replace("8 kB", headroom))
        result = read("simulate", *LAB, "--cc", "hpcc", "--switch-profile", file)["result"]
        assert result["pfc"]["pause_events"] > 0
        assert (result["loss_fraction"] > 0) is remarked
        assert any(remark.startswith("NP243") for remark in result["remarks"]) is remarked


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("kmin: 400 kB", "kmin: 4 MB", "kmin = '4 MB' is above kmax"),
        ("pmax: 0.2}\necn_by", "pmax: 2.0}\necn_by", "ecn.pmax"),
        ("rate: 400G", "rate: 100G", "names a rate a second time"),
        ("detection: 200 ms", "detection: 0 s", "watchdog.detection"),
        ("detection: 200 ms", "detection: 200", "watchdog.detection"),
        ("action: drop", "action: dorp", "watchdog.action"),
        ("64 MB", "-1 B", "buffer.total"),
        ("name: mixed", "name: mixed\npfc: {mode: static, xoff: 1 kB}", "a pause would never end"),
        ("watchdog", "watchdgo", "watchdog"),
    ],
)
def test_faults_of_a_switch_profile(tmp_path, old, new, says):
    file = tmp_path / "bad.yaml"
    assert old in PROFILE_FILE
    file.write_text(PROFILE_FILE.replace(old, new))
    result = invoke("simulate", *LAB, "--cc", "dcqcn", "--switch-profile", file)
    assert result.exit_code == 1, result.output
    assert f"{file}:" in result.stderr
    assert says in result.stderr
    assert result.stdout == ""


def test_a_switch_profile_that_is_not_there():
    result = invoke("simulate", *LAB, "--cc", "dcqcn", "--switch-profile", "nowhere.yaml")
    assert result.exit_code == 1
    assert "switch profile 'nowhere.yaml' cannot be read" in result.stderr
