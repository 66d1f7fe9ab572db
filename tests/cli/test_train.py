"""``netplan train``: outputs, the JSON contract, and what a wrong call is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from netplan import api
from netplan.cli.main import cli

POD = "superpod-b200-4su"


def run(*arguments: str, status: int = 0) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.stderr
    return result


def job(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("train", POD, *arguments, "--format", "json").stdout)["job"]
    return found


def test_the_contract_of_the_json():
    found = job("llama3-8b", "--gpus", "64")
    assert {"step_s", "compute_s", "exposed_comm_s", "scaling_efficiency", "mfu", "parallelism"} <= set(found)
    assert 0 < found["compute_s"] + found["exposed_comm_s"] <= found["step_s"]
    assert 0.2 < found["mfu_causal"] < found["mfu"] <= found["hfu"] < 0.8
    # A replica alone has no one to share its optimizer with (ZeRO 1): more of them may gain a little by that.
    assert 0.5 < found["scaling_efficiency"] <= 1.01
    sizes = found["parallelism"]
    assert sizes["tp"] * sizes["cp"] * sizes["dp"] * sizes["pp"] == 64
    assert found["memory_gib"]["total"] < 180


def test_one_replica_scales_to_itself():
    found = job("llama3-70b", "--gpus", "32", "--tp", "8", "--pp", "4", "--global-batch", "64")
    assert found["parallelism"]["dp"] == 1
    assert found["scaling_efficiency"] == pytest.approx(1.0)


@pytest.mark.parametrize("more", [(), ("--search",)])
def test_one_gpu_has_nothing_to_wait_for(more):
    found = job("mpt-1b", "--gpus", "1", "--global-batch", "8", *more)
    assert found["exposed_comm_s"] == found["bubble_s"] == 0
    assert found["step_s"] == found["compute_s"] == found["step_on_ideal_network_s"]
    assert found["scaling_efficiency"] == 1


def test_what_failures_have_left_is_what_a_job_gets():
    found = job("llama3-8b", "--fail", "host:host-00003", "--global-batch", "2032")
    assert found["gpus"] == 1016


def test_experts_do_not_scale_better_than_they_can():
    found = job(
        "mixtral-8x7b", "--gpus", "64", "--tp", "1", "--pp", "1", "--ep", "8", "--global-batch", "512"
    )
    assert 0.5 < found["scaling_efficiency"] <= 1.01


def test_experts_over_context_ranks_have_a_baseline():
    """Expert ranks that the context ranks do not divide: 8 replicas of 3 ranks hold 3 sets of 8."""
    found = job(
        *("mixtral-8x7b", "--gpus", "48", "--tp", "1", "--pp", "1", "--cp", "3", "--ep", "8"),
        *("--global-batch", "128", "--sequence", "6144"),
    )
    assert 0.5 < found["scaling_efficiency"] <= 1.01


def test_a_search_finds_what_trying_all_finds():
    given = ("llama3-8b", "--gpus", "16", "--global-batch", "64", "--recompute", "none", "--zero", "1")
    found = job(*given, "--micro-batch", "1", "--placement", "packed", "--search")
    steps = []
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8, 16):
            if tp * pp > 16:
                continue
            for virtual in (1, 2, 4, 8, 16, 32):
                if (
                    (virtual > 1 and pp == 1)
                    or 32 % (pp * virtual)
                    or (virtual > 1 and 64 // (16 // tp // pp) % pp)
                ):
                    continue
                fabric = api.load_fabric(POD)
                one = api.training_job(fabric, "llama3-8b", gpus=16, global_batch=64)
                sizes = {"tp": tp, "pp": pp, "virtual_stages": virtual, "micro_batch": 1, "recompute": "none"}
                steps.append(api.train(one, {**sizes, "zero_stage": 1}).step.step_s)
    assert found["step_s"] == pytest.approx(min(steps))


def test_the_table_says_what_a_step_waits_for():
    text = run("train", POD, "llama3-8b", "--gpus", "64").stdout
    for word in ("computation", "data communication, exposed", "MFU", "scaling efficiency", "GiB"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("lama3-8b",), 1, "did you mean llama3-8b?"),
        (("llama3-8b", "--accelerator", "h10"), 1, "did you mean h100?"),
        (("llama3-8b", "--gpus", "2000"), 1, "2,000 GPUs are wanted, superpod-b200-4su has 1,024"),
        (("llama3-70b", "--gpus", "256", "--tp", "8", "--pp", "4", "--dp", "7"), 1, "is not the 256 GPUs"),
        (("llama3-70b", "--tp", "3", "--pp", "7"), 1, "does not divide 1,024 GPUs"),
        (("llama3-70b", "--tp", "8", "--pp", "32"), 1, "80 layers do not divide into 32 stages"),
        (("llama3-405b", "--gpus", "8"), 1, "GiB a GPU short"),
        (("llama3-405b", "--gpus", "64", "--tp", "2", "--pp", "2"), 1, "does not fit"),
        (("llama3-8b", "--accelerator", "a100", "--precision", "fp8"), 1, "a100 has no fp8"),
        (("llama3-8b", "--placement", "rail-awar"), 1, "placement 'rail-awar' is not one of packed, random"),
        (("llama3-8b", "--search", "--placement", "explicit"), 1, "placement 'explicit' is not one of"),
        (("llama3-8b", "--algo", "rings"), 1, "algorithm 'rings' is not one of ring, tree"),
        (("llama3-405b", "--gpus", "1"), 1, "the model does not fit on 1 GPU: tp 1"),
        (("llama3-8b", "--global-batch", "0"), 2, "0 is not in the range"),
        (("llama3-8b", "--zero", "4"), 2, "4 is not in the range"),
        (
            ("--jobs", "three-jobs", "--tp", "8", "--no-flash", "--algo", "ring"),
            2,
            "does not go with --tp, --no-flash, --algo: the file of jobs says it of each job",
        ),
    ],
)
def test_a_wrong_call_is_told_why(arguments, status, message):
    assert message in run("train", POD, *arguments, status=status).stderr
