"""Published training runs: steps, utilisation and scaling of Megatron, Meta, Inspur and MosaicML."""

from __future__ import annotations

import pytest

from netplan import api
from netplan.training.published import (
    RATIOS,
    RUNS,
    Fabrics,
    PublishedRatio,
    PublishedRun,
    figure,
    is_met,
    run,
)

#: Rows that miss, with the reason in the table.
MISSES = {
    "Llama 3 405B, 16,384 GPUs, 131,072 tokens",
    "MT-NLG 530B, 3,360 GPUs",
    "GPT-3 175B on V100",
}
RATIO_MISSES = {"MPT-70B", "MPT-30B", "MPT-7B", "MPT-3B", "MPT-1B"}


@pytest.fixture(scope="module")
def fabrics() -> Fabrics:
    return Fabrics(api.load_fabric)


@pytest.mark.parametrize("one", RUNS, ids=lambda one: one.name)
def test_a_run_is_met_or_says_why_not(fabrics, one: PublishedRun):
    got = figure(one, run(one, fabrics))
    assert is_met(one, got) == (one.name not in MISSES), got
    assert bool(one.reason) == (one.name in MISSES)


@pytest.mark.parametrize("ratio", RATIOS, ids=lambda ratio: ratio.name)
def test_a_scaling_is_met_or_says_why_not(fabrics, ratio: PublishedRatio):
    small, large = (run(each, fabrics) for each in (ratio.small, ratio.large))
    got = figure(ratio.large, large) / figure(ratio.small, small)
    misses = ratio.name.split(",")[0] in RATIO_MISSES
    assert (abs(got - ratio.published) <= ratio.points) == (not misses), got
    assert got <= 1.01


def test_no_run_is_faster_than_its_chips(fabrics):
    for one in RUNS:
        step = run(one, fabrics)
        assert 0 < step.mfu < step.hfu + 1e-9 < 0.86
        parts = step.compute_s + step.bubble_s + step.exposed_comm_s
        assert step.step_s == pytest.approx(parts)
