"""What effective compute asks of a job: factors that go together, and what moves them."""

from __future__ import annotations

import pytest

from netplan import api
from netplan.planning.job_factors import job_factors


def factors(fabric, model, layout, **options):
    """Return the factors of a job."""
    job = api.training_job(fabric, model, **options)
    return job_factors(api.train(job, layout), job.scale_up)


@pytest.fixture(scope="module")
def fabric():
    return api.load_fabric("superpod-b200-4su")


def test_factors_go_together(fabric):
    job = api.training_job(fabric, "llama3-70b", routing="spray", algorithm="ring")
    report = api.train(job, {})
    found = job_factors(report, job.scale_up)
    assert found.mfu * found.scaling == pytest.approx(found.job_mfu) == report.step.mfu
    assert found.scaling == pytest.approx(report.scaling_efficiency)
    # Tensor ranks stay in their hosts; what is left of a step is communication on the fabric.
    outside = report.step.exposed_comm_s - report.step.exposed["tp"]
    assert found.communication_share == pytest.approx(outside / report.step.step_s)
    # A packed ring, sprayed, no oversubscription: only latency and headers are above the bound.
    assert found.bandwidth_efficiency > 0.9


def test_a_larger_batch_scales_better(fabric):
    small, large = (factors(fabric, "llama3-70b", {}, global_batch=n) for n in (512, 2048))
    assert large.scaling > small.scaling
    assert large.communication_share < small.communication_share


def test_one_replica_scales_by_definition(fabric):
    found = factors(fabric, "llama3-8b", {"tp": 8, "pp": 1}, gpus=8, global_batch=1)
    assert found.scaling == 1
    assert found.mfu == found.job_mfu
    assert found.communication_share == 0
    assert found.bandwidth_efficiency == 1


def test_contention_lowers_bandwidth_efficiency():
    # Hashes collide in this fabric's uplinks; spraying does not.
    fabric = api.load_fabric("baidu-10k")
    options = {"accelerator": "h100", "algorithm": "ring"}
    hashed, sprayed = (
        factors(fabric, "llama3-405b", {"tp": 8, "pp": 32}, routing=name, **options)
        for name in ("ecmp", "spray")
    )
    assert hashed.bandwidth_efficiency < 0.9 * sprayed.bandwidth_efficiency
    assert hashed.scaling < sprayed.scaling
