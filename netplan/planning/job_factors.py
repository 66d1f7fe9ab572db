"""MFU, scaling efficiency and communication of a training job, as effective compute asks for them.

All come from a step on the fabric (`netplan.training.job`):

* *scaling* = throughput of a GPU over that of one replica of the job alone, at most 1.
* *mfu* = MFU of the job / scaling, so that the product of both is the job's own.
* *communication share* = communication between hosts that nothing hides, over the step.
* *bandwidth efficiency* = that communication with NIC ports as the only limits, over what it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netplan.training.job import JobReport

__all__ = ["JobFactors", "job_factors"]


@dataclass(frozen=True)
class JobFactors:
    """What a job's step comes to."""

    job_mfu: float
    """Of the whole job: mfu x scaling."""
    mfu: float
    scaling: float
    communication_share: float
    bandwidth_efficiency: float


def job_factors(report: JobReport, gpus_per_host: int) -> JobFactors:
    """Take a step apart.

    Parameters
    ----------
    report
        As `netplan.api.train` returns it.
    gpus_per_host
        Tensor ranks up to this many are inside a host, where the fabric has no part.
    """
    step, scaling = report.step, min(report.scaling_efficiency, 1.0)
    inside = {"tp"} if report.layout.tp <= gpus_per_host else set()
    outside = sum(time for axis, time in step.exposed.items() if axis not in inside)
    bound = sum(time for axis, time in report.on_ideal.exposed.items() if axis not in inside)
    return JobFactors(
        job_mfu=step.mfu,
        mfu=step.mfu / scaling,
        scaling=scaling,
        communication_share=outside / step.step_s,
        bandwidth_efficiency=min(bound / outside, 1.0) if bound else 1.0,
    )
