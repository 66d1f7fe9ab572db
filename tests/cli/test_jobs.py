"""``netplan jobs``: what it prints, and what it refuses."""

import json

import pytest
from click.testing import CliRunner

from netplan import api
from netplan.cli.main import cli

JOB = "{name: a, gpus: 8, parallelism: {tp: 2}, compute: 1 s, exchanges: [%s]}"
GRADIENTS = "{axis: dp, collective: all-reduce, size: 1 GB}"


def run(*arguments, stdin=None):
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, ["jobs", *arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_shipped_jobs():
    """Placed without topology they slow each other; placed with it they do not meet."""
    scattered = json.loads(run("superpod-b200-4su", "three-jobs", "--format", "json").stdout)
    assert scattered["schema"] == "netplan/jobs/1"
    keys = {
        "name", "gpus", "hosts", "alone_s", "step_s", "worst_s", "slowdown", "worst_slowdown", "slowed"
    }  # fmt: skip
    assert all(set(job) == keys for job in scattered["jobs"])
    assert [job["gpus"] for job in scattered["jobs"]] == [256, 256, 512]
    assert max(job["slowdown"] for job in scattered["jobs"]) > 1.02
    arguments = ("--placement", "topology-aware", "--format", "json")
    apart = json.loads(run("superpod-b200-4su", "three-jobs", *arguments).stdout)
    for job, other in zip(apart["jobs"], scattered["jobs"], strict=True):
        assert job["worst_slowdown"] == 1
        assert job["alone_s"] <= other["alone_s"]


def test_same_seed_same_bytes():
    """Twice the same text; another seed draws other hosts."""
    first, second, third = (
        run("superpod-b200-4su", "three-jobs", "--format", "json", "--seed", seed).stdout for seed in "001"
    )
    assert first == second != third


def test_hidden_communication_takes_no_time():
    """By hand: on lab-2-leaf a job's step is its compute, and what of 0.3 s of all-reduce is not hidden.

    dp 4 of tp 2 on hosts of 2 GPUs at 100G: 2 x 3/4 x 1 GB over one NIC of 12.5 GB/s x 0.98: 0.122 s.
    """
    text = "jobs: [" + JOB % "{axis: dp, collective: all-reduce, size: 1 GB, hidden: %s}" + "]"
    steps = []
    for hidden in ("0 s", "100 ms", "1 s"):
        data = json.loads(run("lab-2-leaf", "-", "--format", "json", stdin=text % hidden).stdout)
        steps.append(data["jobs"][0]["step_s"])
    took = 2 * 3 / 4 * 1e9 / (12.5e9 * 4096 / (4096 + 82))
    assert steps == pytest.approx([1 + took, 1 + took - 0.1, 1.0], rel=1e-3)


def test_table_names_what_is_slowed_most():
    """A row for each job."""
    text = run("superpod-b200-4su", "three-jobs").stdout
    assert "dp reduce-scatter x" in text
    assert "3 job(s) on superpod-b200-4su: ecmp" in text


def test_on_a_damaged_fabric():
    """With a NIC less one group takes longer."""
    text = "jobs: [" + JOB % GRADIENTS + "]"
    whole, hurt = (
        json.loads(run("lab-2-leaf", "-", "--format", "json", *fail, stdin=text).stdout)["jobs"][0]["step_s"]
        for fail in ((), ("--fail", "nic:host-00001/0"))
    )
    assert hurt > whole + 0.05


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        (JOB.replace("gpus: 8", "gpus: 9") % GRADIENTS, "parallelism: tp x cp x pp = 2 does not make 9 GPUs"),
        (JOB.replace("tp: 2", "tp: 2, dp: 3") % GRADIENTS, "tp x cp x pp x dp = 6 does not make 8 GPUs"),
        (JOB.replace("tp: 2", "ep: 3") % GRADIENTS, "parallelism.ep = 3: does not divide cp x dp = 8"),
        (JOB % GRADIENTS + ", " + JOB % GRADIENTS, "jobs[1].name = 'a': names 'a' twice"),
        (JOB % GRADIENTS.replace("1 GB", "0 B"), "size = '0 B': must be more than 0"),
        (JOB % GRADIENTS.replace("all-reduce", "allreduce"), "did you mean `all-reduce`?"),
        (JOB.replace("gpus: 8", "gpus: 64") % GRADIENTS, "job 'a': ranks = 64, but fabric"),
        (JOB.replace("compute", "placement: {kind: explicit, hosts: [host-00077]}, compute") % GRADIENTS,
         "job 'a': placement.hosts: 'host-00077' is not a host of fabric 'lab-2-leaf'"),
    ],
)  # fmt: skip
def test_bad_jobs(jobs, says):
    """Exit status 1, and a message with place and value."""
    result = run("lab-2-leaf", "-", stdin=f"jobs: [{jobs}]")
    assert result.exit_code == 1
    assert says in result.output


def test_linear_speed_up(tmp_path):
    """Packed keeps more of the linear speed-up than fragmented; the figure is throughput over it."""
    picture = tmp_path / "speed-up.svg"
    arguments = ("superpod-b200-4su", "three-jobs", "--job", "gpt-175b", "--scaling", "64,256,1024")
    data = json.loads(run(*arguments, "--plot", str(picture), "--format", "json").stdout)
    points = data["scaling"]["gpt-175b"]
    by = {(point["placement"], point["gpus"]): point for point in points}
    assert len(points) == len(by) == 6
    for (kind, gpus), point in by.items():
        assert point["throughput"] == pytest.approx(gpus / point["step_s"])
        assert point["efficiency"] == pytest.approx(by["packed", 64]["step_s"] / point["step_s"])
        assert point["efficiency"] <= by["packed", gpus]["efficiency"], kind
    assert by["fragmented", 1024]["efficiency"] < by["packed", 1024]["efficiency"] - 0.05
    assert "fragmented" in picture.read_text()
    text = run(*arguments).stdout
    assert "gpt-175b on superpod-b200-4su" in text
    assert "fragmented GPU steps/s" in text


def test_one_data_rank_scales_without_loss():
    """Without groups that grow (dp 1 to dp 1) there is nothing to lose: one size, efficiency 1."""
    text = "jobs: [" + JOB % GRADIENTS + "]"
    data = json.loads(run("lab-2-leaf", "-", "--scaling", "2", "--format", "json", stdin=text).stdout)
    assert {point["efficiency"] for point in data["scaling"]["a"]} == {1.0}
    assert {point["step_s"] for point in data["scaling"]["a"]} == {1.0}


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--scaling", "64,1000"), 1, "job 'gpt-175b' does not make 1,000 GPUs out of tp x cp x pp = 64"),
        (("--job", "moe", "--scaling", "64,96"), 1, "job 'moe' does not make 96 GPUs out of ep = 64 ranks"),
        (("--job", "moe", "--scaling", "64,8x"), 2, "'8x' is not a number of GPUs"),
        (("--job", "moe", "--scaling", "64,64"), 2, "names '64' twice"),
        (("--job", "moe", "--scaling", "0,64"), 2, "'0' is not a number of GPUs"),
        (("--job", "moe", "--scaling", "²"), 2, "'²' is not a number of GPUs"),
        (("--job", "moe", "--scaling", "2048"), 1, "job 'moe': ranks = 2,048, but fabric"),
        (("--job", "gpt"), 2, "there is no job 'gpt' among llama-8b, gpt-175b, moe"),
        (("--plot", "a.svg"), 2, "draws what --scaling finds"),
        (("--scaling", "64", "--plot", "a.svg"), 2, "draws one job, and there are 3: choose with --job"),
    ],
)
def test_bad_scaling(arguments, status, says):
    """Place and value, and nothing written."""
    result = run("superpod-b200-4su", "three-jobs", *arguments)
    assert result.exit_code == status
    assert says in result.output


def test_unknown_names():
    """A name that is not shipped, and a file that is not there."""
    result = run("lab-2-leaf", "three-job")
    assert result.exit_code == 1
    assert "jobs 'three-job' is neither a shipped name nor a file" in result.output
    assert "three-jobs" in result.output
    assert run("lab-2-leaf", "nothing.yaml").exit_code == 1


def test_in_python():
    """The same through `netplan.api`."""
    fabric = api.load_fabric("superpod-b200-4su")
    outcomes = api.run_jobs(fabric, api.load_jobs("three-jobs", placement="topology-aware"), routing="spray")
    assert [each.name for each in outcomes] == ["llama-8b", "gpt-175b", "moe"]


# ---- jobs that train a model, and netplan train ---------------------------------------------------

MODEL_JOBS = """
jobs:
  - {name: eight, gpus: 256, model: llama3-8b, placement: {kind: fragmented}}
  - {name: experts, gpus: 512, model: mixtral-8x7b, parallelism: {ep: 8, tp: 2}, placement: {kind: random}}
"""


def test_jobs_of_models():
    """A model's step is that of `netplan train`, and its communication meets that of the other job."""
    data = json.loads(run("superpod-b200-4su", "-", "--format", "json", stdin=MODEL_JOBS).stdout)
    eight, experts = data["jobs"]
    assert set(eight["slowed"]) == {"dp reduce-scatter", "dp all-gather"}
    assert "ep all-to-all" in experts["slowed"]
    assert eight["alone_s"] < eight["step_s"] < eight["worst_s"]
    arguments = ("--gpus", "256", "--tp", "1", "--pp", "1", "--placement", "fragmented", "--algo", "ring")
    alone = CliRunner().invoke(
        cli, ["train", "superpod-b200-4su", "llama3-8b", *arguments, "--format", "json"]
    )
    assert json.loads(alone.stdout)["job"]["step_s"] == pytest.approx(eight["alone_s"])


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("{name: a, gpus: 8}", "jobs[0].compute is missing: a job has a model, or compute and exchanges"),
        ("{name: a, gpus: 8, model: llama3-8b, compute: 1 s}", "compute = '1 s' is not used with a model"),
        ("{name: a, gpus: 8, model: llama3-80b}", "model 'llama3-80b' is neither a shipped name nor a file"),
        ("{name: a, gpus: 64, model: llama3-405b}", "job 'a': llama3-405b is 2,2"),
        (
            "{name: a, gpus: 96, model: llama3-8b, parallelism: {pp: 3}}",
            "32 layers do not divide into 3 stages",
        ),
        ("{name: a, gpus: 8, model: llama3-8b, accelerator: h1000}", "accelerator 'h1000' is not one of"),
    ],
)
def test_bad_jobs_of_models(job, says):
    """Exit status 1 and a message with place and value."""
    result = run("superpod-b200-4su", "-", stdin=f"jobs: [{job}]")
    assert result.exit_code == 1
    assert says in result.output


def train(*arguments):
    """Run netplan train."""
    return CliRunner().invoke(cli, ["train", "superpod-b200-4su", *arguments])


def test_train_takes_jobs():
    """`netplan train FABRIC --jobs` is `netplan jobs`."""
    one = train("--jobs", "three-jobs", "--routing", "spray", "--format", "json").stdout
    assert one == run("superpod-b200-4su", "three-jobs", "--routing", "spray", "--format", "json").stdout
    assert "Missing argument 'MODEL', or --jobs." in train().output
    both = train("llama3-8b", "--jobs", "three-jobs")
    assert both.exit_code == 2
    assert "takes the place of MODEL and --search" in both.output


def test_train_scaling(tmp_path):
    """A model at several sizes: packed keeps its speed-up, fragmented loses under ECMP; and a picture."""
    picture = tmp_path / "speed-up.svg"
    arguments = ("llama3-8b", "--global-batch", "512", "--scaling", "8,64,512", "--plot", str(picture))
    points = json.loads(train(*arguments, "--format", "json").stdout)["scaling"]
    by = {(point["placement"], point["gpus"]): point["efficiency"] for point in points}
    assert by["packed", 8] == 1
    assert by["packed", 512] > 0.9
    assert by["fragmented", 512] < by["packed", 512] - 0.1
    assert "packed, 512 GPUs" in picture.read_text()
    assert "linear speed-up: llama3-8b" in train(*arguments).output


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (
            ("--tp", "2", "--pp", "1", "--scaling", "8,63"),
            1,
            "63 GPUs are no multiple of tp x cp x pp = 2 x 1 x 1",
        ),
        (("--tp", "1", "--pp", "1", "--zero", "1", "--scaling", "8,x"), 2, "'x' is not a number of GPUs"),
        (("--tp", "1", "--pp", "1", "--scaling", "8²"), 2, "'8²' is not a number of GPUs"),
        (("--tp", "1", "--pp", "1", "--scaling", "0"), 2, "'0' is not a number of GPUs"),
        (("--tp", "1", "--pp", "1", "--scaling", "1__0"), 2, "'1__0' is not a number of GPUs"),
        (("--plot", "a.svg"), 2, "draws what --scaling finds"),
    ],
)
def test_bad_train_scaling(arguments, status, says):
    """Place and value."""
    result = train("llama3-8b", *arguments)
    assert result.exit_code == status
    assert says in result.output


def test_train_search():
    """The search's best layout is no slower than the plain one, and is proven to be the best."""
    result = train("llama3-8b", "--gpus", "64", "--global-batch", "512", "--search", "--format", "json")
    data = json.loads(result.stdout)
    search = data["search"]
    assert search["proven"]
    assert search["gain"] >= 0
    assert data["job"]["step_s"] == pytest.approx(search["layouts"][0]["step_s"])
    assert data["job"]["step_s"] <= search["plain"]["step_s"]
    assert data["job"]["parallelism"] == search["layouts"][0]["parallelism"]
