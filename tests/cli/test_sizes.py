"""Algorithms, protocols and sweeps over sizes on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from netplan.cli.main import cli


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def read(*arguments):
    result = invoke(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_one_run_says_what_was_chosen():
    result = read("simulate", "lab-2-leaf", "all-reduce-nccl", "--size", "1KiB")["result"]
    assert (result["algorithm"], result["protocol"]) == ("tree", "ll")
    result = read("simulate", "lab-2-leaf", "all-reduce-1gib")["result"]
    assert (result["algorithm"], result["protocol"]) == ("ring", "none")
    assert "algorithm, protocol" in invoke("simulate", "lab-2-leaf", "all-reduce-nccl").stdout
    assert read("simulate", "lab-2-leaf", "incast-8")["result"]["algorithm"] is None


def test_a_table_as_nccl_tests_prints_it(tmp_path):
    plot = tmp_path / "sweep.svg"
    data = read(
        *("simulate", "lab-2-leaf", "all-reduce-1gib", "--algo", "auto", "--sizes", "8:16G"),
        *("--routing", "spray", "--plot", plot),
    )
    assert data["schema"] == "netplan/sizes/1"
    assert len(data["sizes"]) == 32
    assert data["sizes"][0]["size_bytes"] == 8
    ring = read(*("simulate", "lab-2-leaf", "all-reduce-1gib", "--sizes", "16G", "--routing", "spray"))
    assert ring["sizes"][0]["busbw_gb_per_s"] == pytest.approx(2 * 12.0, rel=0.01)  # 2 NICs of 100G, 0.96
    assert set(data["sizes"][0]) == {
        *("size_bytes", "count", "type", "time_us", "algbw_gb_per_s", "busbw_gb_per_s"),
        *("algorithm", "protocol", "latency_us", "efficiency"),
    }
    assert plot.read_text().startswith("<svg") or "<svg" in plot.read_text()
    table = invoke("simulate", "lab-2-leaf", "all-reduce-1gib", "--sizes", "1M:4M", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [row["size_bytes"] for row in rows] == ["1048576", "2097152", "4194304"]
    assert {row["algo"] for row in rows} == {"ring"}
    assert {row["proto"] for row in rows} <= {"ll", "ll128", "simple"}


def test_the_bare_network_when_asked_for():
    bare = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--proto", "none", "--sizes", "1G", "--qps", "4")
    run = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--qps", "4")["result"]
    assert bare["sizes"][0]["protocol"] == "none"
    assert bare["sizes"][0]["time_us"] == pytest.approx(run["completion_s"] * 1e6)


def test_a_damaged_fabric_is_swept():
    whole = read("simulate", "lab-2-leaf", "all-reduce-1gib", "--sizes", "1G", "--routing", "spray")
    hurt = read(
        *("simulate", "lab-2-leaf", "all-reduce-1gib", "--sizes", "1G", "--routing", "spray"),
        *("--fail", "nic:host-00003/1"),
    )
    assert hurt["sizes"][0]["busbw_gb_per_s"] < 0.6 * whole["sizes"][0]["busbw_gb_per_s"]


def test_the_shape_of_a_measured_cluster():
    """The guide's line: OCI's 2 x 8 H100 with 16 x 200G measured 449.5 to 471.2 GB/s."""
    data = read(
        *("simulate", "cluster", "all-reduce-1gib", "--set", "hosts.count=2", "--set", "hosts.nics=16"),
        *("--set", "hosts.nic_speed=200G", "--set", "traffic.gpu=h100", "--algo", "auto"),
        *("--sizes", "1G:16G", "--routing", "spray"),
    )
    assert [row["algorithm"] for row in data["sizes"]] == ["nvls-tree"] * 5
    for row, measured in zip(data["sizes"], (449.51, 461.62, 467.43, 469.84, 471.22), strict=True):
        assert row["busbw_gb_per_s"] == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sizes", "0:8"), "no bytes"),
        (("--sizes", "8:4"), "ends before it begins"),
        (("--sizes", "8:16", "--size", "1MiB"), "--size is about one run"),
        (("--sizes", "8:16", "--by", "tier"), "--by is about one run"),
        (("--sizes", "8:16", "--flows", "x.csv"), "--flows is about one run"),
        (("--size", "0B"), "size"),
        (("--algo", "butterfly"), "algorithm"),
        (("--algo", "pat"), "is not an algorithm of all-reduce"),
        (("--algo", "hierarchical", "--proto", "ll"), "goes with NCCL's own algorithms"),
        (("--proto", "fast"), "protocol"),
        (("--algo", "in-network", "--cc", "dcqcn"), "does not run aggregation trees"),
        (("--algo", "nvls"), "stays in one scale-up domain"),
        (("--channels", "0"), "channels"),
    ],
)
def test_refusals(arguments, words):
    """On standard error, with exit status 1 or 2, and nothing on standard output."""
    result = invoke("simulate", "lab-2-leaf", "all-reduce-1gib", *arguments)
    assert result.exit_code in (1, 2)
    assert words in " ".join(result.stderr.split())
    assert not result.stdout


def test_algorithms_are_listed_and_explained():
    names = [item["name"] for item in read("list", "algorithms")["items"]]
    assert names[:2] == ["ring", "tree"]
    for name in names:
        assert invoke("explain", name).exit_code == 0
