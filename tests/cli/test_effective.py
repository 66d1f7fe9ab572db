"""`netplan goodput`, `effective`, `mixed` and `share`: outputs, charts, what a wrong call is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli

DAY = """\
name: day
gpus: 10240
inference: {peak_gpus: 4000, mean: 0.6}
training: {least_gpus: 1024, unit_gpus: 512}
"""

MIXED = """\
name: two-kinds
pools:
  - {name: fast, accelerators: 512, layer_time: 10 ms, nic: 400G}
  - {name: slow, accelerators: 512, layer_time: 16 ms, nic: 200G}
job: {layers: 80, micro_batches: 512, layer_gradients: 3.4 GB, most_stages: 16}
"""


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


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the two files and go there."""
    (tmp_path / "day.yaml").write_text(DAY)
    (tmp_path / "mixed.yaml").write_text(MIXED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_goodput_without_a_fabric():
    data = printed("goodput", "--gpus", "16384", "--play", "3", "--target", "99%", "--sizes", "16384")
    goodput = data["goodput"]
    assert goodput["interruptions_per_day"] * 54 == pytest.approx(419)
    assert goodput["effective_time"] > 0.9
    assert sum(goodput["wasted"].values()) + goodput["effective_time"] == pytest.approx(1)
    assert data["played"]["runs"] == 3
    assert [row["write_s"] for row in data["targets"]] == [0, 0.1, 1, 5]
    assert data["fabric"] is None
    again = printed("goodput", "--gpus", "16384", "--play", "3", "--target", "99%", "--sizes", "16384")
    assert again == data
    text = run("goodput", "--gpus", "16384", "--play", "3", "--target", "99%").stdout
    assert "Interrupted every 3.083 h, 7.76 times a day; recovery takes 10 min." in text
    assert "Played 3 times over 54 days" in text
    assert "longest recovery for 0.99 of the time" in text


def test_goodput_of_a_fabric():
    own = printed("goodput", "fat-tree-k8")
    published = printed("goodput", "fat-tree-k8", "--network", "published")
    assert own["fabric"]["gpus"] == 128
    assert published["network"] is None
    assert own["network"]["stops_per_hour"] < own["network"]["failures_per_hour"]
    half = printed("goodput", "fat-tree-k8", "--gpus", "64")
    assert half["network"]["stops_per_hour"] == pytest.approx(own["network"]["stops_per_hour"] / 2)
    assert half["goodput"]["mtbf_s"] == pytest.approx(2 * own["goodput"]["mtbf_s"])


def test_options_of_recovery():
    slow = printed("goodput", "--gpus", "8192", "--detect", "10min", "--restart", "20min", "--write", "30s")
    assert slow["recovery"]["detect_s"] == 600
    assert (
        slow["goodput"]["effective_time"] < printed("goodput", "--gpus", "8192")["goodput"]["effective_time"]
    )
    rated = printed("goodput", "--gpus", "8192", "--rate", "all=25", "--spares", "0", "--repair", "2h")
    assert rated["goodput"]["mtbf_s"] == pytest.approx(3600 / (25e-6 * 8192))
    assert rated["goodput"]["wasted"]["waiting"] > 0.1
    assert (
        printed("goodput", "--gpus", "8192", "--interval", "15min")["goodput"]["checkpoint_interval_s"] == 900
    )
    young = printed("goodput", "--gpus", "8192", "--rule", "young")["goodput"]
    assert young["checkpoint_interval_s"] == pytest.approx((2 * 5 * young["mtbf_s"]) ** 0.5)


def test_effective(files):
    call = ("effective", "fat-tree-k8", "llama3-405b", "--mfu", "43%", "--scaling", "0.9", "--pue", "1.25")
    data = printed(*call, "--plot", "where.svg")
    effective = data["effective"]
    assert effective["pue_factor"] == pytest.approx(0.8)
    product = 1.0
    for name in ("pue_factor", "mfu", "scaling", "effective_time", "utilisation"):
        product *= effective[name]
    assert effective["product"] == pytest.approx(product)
    assert data["inputs"]["bandwidth_efficiency"]["kind"] == "computed"
    assert data["inputs"]["effective_time"]["kind"] == "computed"
    assert (files / "where.svg").read_text().startswith("<")
    given = printed(*call, "--effective-time", "95%", "--utilisation", "0.7", "--bandwidth-efficiency", "60%")
    assert given["effective"]["effective_time"] == 0.95
    assert given["effective"]["utilisation"] == 0.7
    worth = {row["what"]: row["gpus"] for row in given["worth_of_one_point"]}
    assert worth["scaling"] == pytest.approx(128 / 90)
    text = run(*call).stdout
    assert "effective compute of 128 GPUs" in text
    assert "what one point is worth" in text


def test_effective_of_a_step(files):
    data = printed(
        "effective", "fat-tree-k8", "llama3-8b", "--accelerator", "a100", "--pp", "2", "--global-batch", "256"
    )
    assert data["inputs"]["mfu"]["kind"] == data["inputs"]["scaling"]["kind"] == "computed"
    assert "pp 2 dp 64" in data["notes"][0]
    half = printed("effective", "fat-tree-k8", "llama3-8b", "--accelerator", "a100", "--mfu", "40%")
    assert half["effective"]["mfu"] == 0.4
    assert half["inputs"]["scaling"]["kind"] == "computed"


def test_share(files):
    data = printed("share", "day.yaml", "--plot", "day.png")
    assert data["share"]["gain"] > 0.2
    assert len(data["hours"]) == 24
    assert (files / "day.png").read_bytes().startswith(b"\x89PNG")
    more = printed("share", "day.yaml", "--set", "inference.mean=0.5")
    assert more["share"]["gain"] > data["share"]["gain"]
    assert "Elastic use gives training" in run("share", "day.yaml").stdout


def test_mixed(files):
    data = printed("mixed", "mixed.yaml")
    loss = data["mixed"]["loss"]
    assert data["mixed"]["efficiency"] == pytest.approx(1 - loss["total"])
    assert loss["total"] == pytest.approx(sum(value for name, value in loss.items() if name != "total"))
    assert printed("mixed", "two-kinds")["name"] == "two-kinds"
    assert printed("share", "chat-and-train")["gpus"] == 10_240
    layers = printed("mixed", "mixed.yaml", "--set", "job.split=by-layers")
    assert layers["mixed"]["kind"] == "by-layers"
    assert layers["pipelines"][0]["pools"][0] == "fast"
    assert "Ideal sum of the pools" in run("mixed", "mixed.yaml").stdout


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        (("goodput",), 2, "say FABRIC or --gpus"),
        (("goodput", "--gpus", "12"), 1, "gpus = 12 do not fill hosts of 8"),
        (("goodput", "--gpus", "8", "--set", "x=1"), 2, "--set needs FABRIC"),
        (("goodput", "fat-tree-k8", "--set", "traffic.qps=1"), 2, "has no workload to change"),
        (("goodput", "fat-tree-k8", "--gpus", "256"), 1, "256 GPUs are more than the 128"),
        (("goodput", "--gpus", "8", "--rate", "gpu"), 2, "'gpu' is not CAUSE=N"),
        (("goodput", "--gpus", "8", "--rate", "gpu=1", "--rate", "gpu=2"), 2, "names gpu twice"),
        (("goodput", "--gpus", "8", "--rate", "gpux=1"), 1, "did you mean gpu?"),
        (("goodput", "--gpus", "8", "--detect", "5"), 2, "unit"),
        (("goodput", "--gpus", "8", "--target", "much"), 2, "'much' is not a share, such as 0.4 or 40%"),
        (("goodput", "--gpus", "8", "--target", "100%"), 1, "target 1 is out of range"),
        (("goodput", "--gpus", "8", "--target", "99%", "--sizes", "x"), 2, "'x' is not a number of GPUs"),
        (("effective", "fat-tree-k8", "llama3-8b", "--mfu", "0", "--scaling", "1"), 1, "MFU 0 is out"),
        (("effective", "fat-tree-k8", "llama3-8b", "--mfu", "43", "--scaling", "1"), 1, "did you mean 0.43?"),
        (
            ("effective", "fat-tree-k8", "llama3-8b", "--mfu", "1", "--scaling", "1", "--tp", "2"),
            2,
            "have no use",
        ),
        (("effective", "fat-tree-k8", "llama-8b"), 1, "did you mean llama3-8b?"),
        (("effective", "nothing", "llama3-8b"), 1, "'nothing' is neither a shipped name nor a file"),
        (("share", "day.yaml", "--set", "gpus=4000"), 1, "holds 4,800 of 4,000 GPUs"),
        (("share", "day.yaml", "--plot", "day.pdf"), 1, "pdf"),
        (("mixed", "mixed.yaml", "--set", "job.layers=1000", "--set", "pools[0].most_layers=1"), 0, ""),
        (("mixed", "mixed.yaml", "--set", "pools[0].group=7"), 1, "512 accelerators do not fill groups of 7"),
        (("mixed", "mixed.yaml", "--set", "pools[1].name=fast"), 1, "each with its own name"),
        (("mixed", "mixed.yaml", "--set", "job.layer=3"), 1, "unknown key"),
        (("mixed", "two-kind"), 1, "mixed job 'two-kind' is neither a shipped name nor a file"),
        (("share", "chat-and-trains"), 1, "did you mean chat-and-train?"),
        (("share", "none.yaml"), 1, "cannot be read"),
    ],
)
def test_what_a_wrong_call_is_told(files, call, status, message):
    result = run(*call)
    assert result.exit_code == status, result.output
    assert message in result.output
    assert not list(files.glob("*.pdf"))
