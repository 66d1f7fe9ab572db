"""Training goodput: closed forms against the process played event by event, and against published runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from netplan import api
from netplan.api import load_fabric
from netplan.errors import ModelRangeError
from netplan.planning.failures import study_failures
from netplan.planning.goodput import (
    Recovery,
    daly_interval,
    effective_share,
    erlang_b,
    exact_interval,
    first_order_waste,
    network_effect,
    recovery_for,
    spares_for,
    target_rows,
    training_goodput,
    young_interval,
)
from netplan.planning.goodput_events import play_goodput
from netplan.planning.part_failures import PART_FAILURES, JobParts, part_failures_with

LLAMA = JobParts(16_384)


# ---- Published runs ------------------------------------------------------------------------------------


def test_llama_3_interruptions_by_cause():
    # Table 5 of the Llama 3 report: counts in 54 days.
    published = {
        "gpu": 148, "hbm": 72, "software": 54, "network": 35, "host_maintenance": 32, "gpu_sram": 19,
        "gpu_processor": 17, "nic": 7, "nccl_timeout": 7, "silent_corruption": 6, "gpu_thermal": 6, "ssd": 3,
        "power_supply": 3, "chassis": 2, "io_board": 2, "dependency": 2, "cpu": 2, "memory": 2,
    }  # fmt: skip
    assert sum(published.values()) == 419
    goodput = training_goodput(LLAMA)
    assert {row.cause: pytest.approx(row.per_hour * 24 * 54) for row in goodput.causes} == published
    assert goodput.interruptions(54) == pytest.approx(419)
    # "Half of all are of GPUs and their memory": 58.7 % with all causes of the GPU.
    of_gpus = ("gpu", "hbm", "gpu_sram", "gpu_processor", "silent_corruption", "gpu_thermal")
    assert sum(row.share for row in goodput.causes if row.cause in of_gpus) == pytest.approx(0.64, abs=0.01)


def test_llama_3_effective_time_is_above_90_percent():
    # Recovery and checkpoints are MegaScale's, not Llama's: the figure is not fitted.
    goodput = training_goodput(LLAMA)
    assert 0.90 < goodput.effective_time < 0.95
    # The 47 planned interruptions as well: 466 in all, still above 90 %.
    planned = part_failures_with({"all": 466 / 16_384 / (54 * 24) * 1e6})
    both = training_goodput(LLAMA, failures=planned)
    assert both.interruptions(54) == pytest.approx(466)
    assert both.effective_time > 0.90


def test_ten_thousand_and_a_hundred_thousand_gpus():
    # Said: about every 4 h and about every 20 min. Between the two the rate would rise 12 times with 10 times
    # the GPUs, so no rate per part meets both: Llama's has 5.1 h and 30 min.
    ten = training_goodput(JobParts(10_000)).mtbf_s
    hundred = training_goodput(JobParts(100_000)).mtbf_s
    assert ten / 3600 == pytest.approx(5.07, abs=0.01)
    assert hundred / 60 == pytest.approx(30.4, abs=0.1)
    assert ten / hundred == pytest.approx(10)
    # One rate within 10 % of both: 27.4 in a million GPU-hours, 1.39 of Llama's.
    both = part_failures_with({"all": 27.4})
    assert training_goodput(JobParts(10_000), failures=both).mtbf_s / 3600 == pytest.approx(4, rel=0.10)
    assert training_goodput(JobParts(100_000), failures=both).mtbf_s / 60 == pytest.approx(20, rel=0.10)


def test_host_rate_lies_between_two_clusters_of_meta():
    # Kokolis et al., HPCA 2025: 6.50 and 2.34 failures per 1,000 host-days.
    per_1000 = training_goodput(LLAMA).interruptions(1) / LLAMA.hosts * 1000
    assert 2.34 < per_1000 < 6.50


def test_projections_of_kokolis_et_al():
    # HPCA 2025: 6.50 failures per 1,000 host-days; 16,384 GPUs fail every 1.8 h, 131,072 every 0.23 h.
    rate = part_failures_with({"all": 6.50 / 1000 / 24 / 8 * 1e6})
    assert training_goodput(LLAMA, failures=rate).mtbf_s / 3600 == pytest.approx(1.8, rel=0.01)
    assert training_goodput(JobParts(131_072), failures=rate).mtbf_s / 3600 == pytest.approx(0.23, rel=0.03)


def test_recovery_for_99_percent():
    rows = {
        (row.gpus, row.write_s): row.recovery_s for row in target_rows([16_384, 100_000], [0.0, 0.1, 1.0])
    }
    # Without checkpoints' cost: M ln(1/0.99).
    assert rows[16_384, 0.0] == pytest.approx(54 * 86400 / 419 * math.log(1 / 0.99))
    assert rows[16_384, 0.1] == pytest.approx(64.7, abs=0.1)
    assert rows[16_384, 1.0] is None
    assert rows[100_000, 0.0] == pytest.approx(18.3, abs=0.1)
    assert rows[100_000, 0.1] is None


# ---- Closed forms --------------------------------------------------------------------------------------


@given(mtbf=st.floats(600, 1e7), ratio=st.floats(1e-6, 0.5))
def test_exact_interval_is_the_optimum(mtbf, ratio):
    write = mtbf * ratio
    found = minimize_scalar(
        lambda x: -effective_share(mtbf, 0.0, write, math.exp(x)),
        bounds=(math.log(mtbf * 1e-5), math.log(mtbf * 5)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    best = effective_share(mtbf, 0.0, write, exact_interval(mtbf, write))
    assert best == pytest.approx(-found.fun, rel=1e-9)
    # Daly's is nearly as good, and better than Young's less its checkpoint is never needed.
    assert effective_share(mtbf, 0.0, write, daly_interval(mtbf, write)) == pytest.approx(best, rel=2e-3)


def test_intervals_agree_for_short_checkpoints():
    for write in (0.1, 1.0, 10.0):
        exact = exact_interval(1e5, write)
        assert young_interval(1e5, write) == pytest.approx(exact, rel=0.01)
        assert daly_interval(1e5, write) == pytest.approx(exact, rel=1e-5)
    assert daly_interval(10.0, 30.0) == 10.0
    assert exact_interval(1e5, 1e-6) == pytest.approx(young_interval(1e5, 1e-6))


def test_first_order_is_the_limit():
    for mtbf in (1e6, 1e7, 1e8):
        write, recovery = 5.0, 600.0
        interval = young_interval(mtbf, write)
        exact = 1 - effective_share(mtbf, recovery, write, interval)
        assert first_order_waste(mtbf, recovery, write, interval) == pytest.approx(exact, rel=0.02)


def test_erlang():
    # B(s, a) = (a^s/s!) / sum a^k/k!
    for servers in range(8):
        for load in (0.1, 1.0, 6.0):
            terms = [load**k / math.factorial(k) for k in range(servers + 1)]
            assert erlang_b(servers, load) == pytest.approx(terms[-1] / sum(terms))
    spares = spares_for(6.0, 0.001)
    assert erlang_b(spares + 1, 6.0) <= 0.001 < erlang_b(spares, 6.0)
    assert spares_for(0.0) == 0


@given(
    gpus=st.integers(1, 4000).map(lambda n: n * 8),
    detect=st.floats(0, 1000),
    restart=st.floats(0, 1000),
    write=st.floats(0, 60),
    spares=st.one_of(st.none(), st.integers(0, 30)),
)
def test_shares_sum_to_one(gpus, detect, restart, write, spares):
    recovery = Recovery(detect_s=detect, restart_s=restart, write_s=write, spares=spares)
    found = training_goodput(JobParts(gpus), recovery)
    parts = (
        found.effective_time, found.detection, found.restart, found.lost_work, found.checkpoints,
        found.waiting, found.degraded,
    )  # fmt: skip
    assert sum(parts) == pytest.approx(1, abs=1e-9)
    assert all(part >= 0 for part in parts)


def test_nothing_fails():
    never = {name: replace(part, per_hour=0.0) for name, part in PART_FAILURES.items()}
    found = training_goodput(JobParts(8), failures=never)
    assert found.effective_time == 1
    assert found.to_dict()["goodput"]["mtbf_s"] is None
    with_interval = training_goodput(JobParts(8), Recovery(write_s=10, interval_s=90), failures=never)
    assert with_interval.effective_time == pytest.approx(0.9)
    with pytest.raises(ModelRangeError, match="every rate is 0"):
        target_rows([8], [1.0], failures=never)


# ---- Played event by event -----------------------------------------------------------------------------


@pytest.mark.parametrize("repair", ["exponential", "fixed"])
@pytest.mark.parametrize("spares", [None, 2, 0])
@pytest.mark.parametrize("rule", ["exact", "young"])
def test_events_agree_with_the_closed_form(spares, rule, repair):
    # Erlang's formula holds for any distribution of repair times: both are played. A run starts with all
    # spares and nothing lost, so it is long.
    goodput = training_goodput(JobParts(8192), Recovery(spares=spares, rule=rule, repair_s=40_000))
    played = play_goodput(goodput, days=600, runs=30, seed=3, repair=repair)
    assert played.effective_time == pytest.approx(
        goodput.effective_time, abs=5 * played.standard_error + 1e-4
    )
    assert played.waiting == pytest.approx(goodput.waiting, rel=0.1, abs=5e-4)
    assert played.checkpoints == pytest.approx(goodput.checkpoints, rel=0.03)
    assert played.recovery == pytest.approx(goodput.detection + goodput.restart, rel=0.05)
    assert played.lost_work == pytest.approx(goodput.lost_work, rel=0.05)
    total = played.effective_time + played.waiting + played.checkpoints + played.recovery + played.lost_work
    assert total == pytest.approx(1, abs=1e-3)


def test_events_are_the_same_for_a_seed():
    goodput = training_goodput(LLAMA)
    assert play_goodput(goodput, runs=3, seed=1) == play_goodput(goodput, runs=3, seed=1)
    assert play_goodput(goodput, runs=3, seed=1) != play_goodput(goodput, runs=3, seed=2)
    # Poisson: 419 +- 20 a run.
    counts = play_goodput(goodput, runs=50, seed=1).interruptions
    assert counts == pytest.approx(419, abs=5 * math.sqrt(419 / 50))


def test_events_without_failures_or_checkpoints():
    never = {name: replace(part, per_hour=0.0) for name, part in PART_FAILURES.items()}
    assert play_goodput(training_goodput(JobParts(8), failures=never), runs=2).effective_time == 1
    free = training_goodput(LLAMA, Recovery(write_s=0.0))
    played = play_goodput(free, runs=20)
    assert free.effective_time == pytest.approx(played.effective_time, abs=5 * played.standard_error)
    assert played.lost_work == 0


# ---- The network ---------------------------------------------------------------------------------------


def test_a_network_that_degrades_stops_less():
    fabric = load_fabric("fat-tree-k8")
    study = study_failures(fabric)
    # A packed ring crosses no spine that it would miss; a permutation does.
    assert network_effect(study, 0.3).degraded_loss == 0
    effect = network_effect(study, 0.3, "permutation")
    # NICs, cables to hosts and leaves stop a job; spines, cores and cables between them do not.
    stopping = {row.kind for row in study.classes if row.stops_per_month}
    assert stopping == {"nic", "host_leaf", "leaf"}
    hours = 365.25 / 12 * 24
    assert effect.stops_per_hour * hours == pytest.approx(
        sum(row.stops_per_month or 0 for row in study.classes)
    )
    assert 0 < effect.degraded_loss < 1e-3
    # By hand: a repair of so many hours with bandwidth left b makes steps 1 + s (1/b - 1) times as long.
    loss = 0.0
    for row in study.classes:
        assert row.failures_per_month is not None
        assert row.stops_per_month is not None
        running = row.failures_per_month - row.stops_per_month
        longer = 1 + 0.3 * (1 / min(row.left["permutation"], 1) - 1)
        loss += running * row.rate.repair_h / hours * (1 - 1 / longer)
    assert effect.degraded_loss == pytest.approx(loss)
    assert network_effect(study, 0.0, "permutation").degraded_loss == 0
    found = training_goodput(JobParts(fabric.n_gpus, 1, 1), network=effect)
    assert {row.cause for row in found.causes} >= {"network", "nic"}
    assert found.degraded == pytest.approx(effect.degraded_loss * (found.effective_time + found.degraded))
    half = effect.of_job(0.5)
    assert half.stops_per_hour == pytest.approx(effect.stops_per_hour / 2)
    assert half.degraded_per_hour == pytest.approx(effect.degraded_per_hour)
    with pytest.raises(ModelRangeError, match=r"communication share 1.5 is out of range"):
        network_effect(study, 1.5)
    with pytest.raises(ModelRangeError, match="workload 'x' is not in the study"):
        network_effect(study, 0.5, "x")


def test_the_short_road():
    fabric = load_fabric("fat-tree-k8")
    assert api.goodput(gpus=128).mtbf_s == training_goodput(JobParts(128)).mtbf_s
    whole = api.goodput(fabric)
    assert whole.network is not None
    # A job on half of the hosts is hit by half of the stops, and by all that degrades.
    half = api.goodput(fabric, gpus=64)
    assert half.mtbf_s == pytest.approx(2 * whole.mtbf_s)
    published = api.goodput(fabric, network="published", rates={"network": 0.0})
    assert published.network is None
    assert {row.cause: row.per_hour for row in published.causes}["network"] == 0
    with pytest.raises(ModelRangeError, match="neither a fabric nor a number of GPUs is given"):
        api.goodput()
    with pytest.raises(ModelRangeError, match="256 GPUs are more than the 128"):
        api.goodput(fabric, gpus=256)


# ---- What is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JobParts(0), "gpus = 0 is too few"),
        (lambda: JobParts(12), "gpus = 12 do not fill hosts of 8"),
        (lambda: Recovery(detect_s=-1), "detection time -1 s is out of range"),
        (lambda: Recovery(repair_s=1e12), "repair time 1e[+]12 s is out of range"),
        (lambda: Recovery(interval_s=0), "leaves no time to work"),
        (lambda: Recovery(spares=-1), "spares = -1 is below 0"),
        (lambda: Recovery(rule="best"), "rule 'best' is not one of exact, young, daly"),  # type: ignore[arg-type]
        (lambda: part_failures_with({"gpus": 1}), "'gpus' is not one of all, gpu"),
        (lambda: part_failures_with({"gpu": -1}), "rate gpu = -1"),
        (lambda: young_interval(0, 1), "time between failures 0 s"),
        (lambda: recovery_for(1.0, 1e4, 1), "target 1 is out of range"),
        (lambda: spares_for(1.0, 0), "waiting 0 is out of range"),
        (
            lambda: training_goodput(JobParts(10_000_000)),
            r"are interrupted every 18.2 s, sooner than the 600 s",
        ),
        (lambda: play_goodput(training_goodput(LLAMA), runs=0), r"0 run\(s\)"),
        (lambda: play_goodput(training_goodput(LLAMA), runs=100_000, days=36_000), "at most 20,000,000"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ModelRangeError, match=message):
        make()


def test_rates_that_the_user_gives():
    parts = part_failures_with({"all": 20.0, "gpu": 5.0})
    assert parts["gpu"].per_hour == pytest.approx(5e-6)
    assert parts["gpu"].confidence == "user"
    share = np.array([148, 72])
    assert parts["hbm"].per_hour / 20e-6 == pytest.approx(share[1] / 419, rel=1e-9)
