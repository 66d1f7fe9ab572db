"""Scaling curves, their table and their chart."""

import math
import re

import pytest

from netplan.errors import TrafficError
from netplan.report.scaling import draw_scaling, jobs_table, jobs_to_dict, scaling_table, scaling_to_dict
from netplan.report.tables import render_tables
from netplan.training.jobs import JobOutcome
from netplan.training.scaling import scaling_curve


def step(gpus, placement):
    """Return a step of 1 s, longer by 10 % (packed) or 30 % each time that GPUs double from 8 on."""
    return 1 + (0.1 if placement == "packed" else 0.3) * math.log2(gpus / 8), 1000.0 * gpus


def test_efficiencies_by_hand():
    """Weak scaling: efficiency is the first step over the step: 1/1.1, 1/1.2; 1/1.3, 1/1.6."""
    points = scaling_curve(step, [32, 8, 16])
    assert [(p.placement, p.gpus) for p in points] == [
        (kind, gpus) for kind in ("packed", "fragmented") for gpus in (8, 16, 32)
    ]
    assert [p.efficiency for p in points] == pytest.approx([1, 1 / 1.1, 1 / 1.2, 1, 1 / 1.3, 1 / 1.6])
    assert points[1].throughput == pytest.approx(16000 / 1.1)
    assert scaling_to_dict(points)[0] == {
        "placement": "packed", "gpus": 8, "step_s": 1.0, "throughput": 8000.0, "efficiency": 1.0
    }  # fmt: skip


def test_bad_sizes():
    """No size, none below one, none twice."""
    with pytest.raises(TrafficError, match="every size is 1 GPU or more"):
        scaling_curve(step, [])
    with pytest.raises(TrafficError, match="every size is 1 GPU or more"):
        scaling_curve(step, [0, 8])
    with pytest.raises(TrafficError, match="sizes: 8 is listed twice"):
        scaling_curve(step, [8, 8])


def test_table_and_chart():
    """A row for each size; a line for each placement with a mark for each size, and its last figure."""
    points = scaling_curve(step, [8, 16, 32])
    text = render_tables([scaling_table(points)], "table")
    assert "fragmented efficiency" in text
    assert "0.625" in text
    svg = draw_scaling(points, "speed-up", "svg").decode()
    assert "fragmented 62.5%" in svg
    assert "packed 83.3%" in svg
    assert len(re.findall(r"packed, \d+ GPUs", svg)) == 3


def test_jobs_as_table_and_data():
    """The kind that is slowed most is named."""
    jobs = [
        JobOutcome("a", 64, 8, 2.0, 2.5, 3.0, {"dp all-reduce": 1.5, "pp send-recv": 1.1}),
        JobOutcome("b", 8, 1, 1.0, 1.0, 1.0, {}),
    ]
    text = render_tables([jobs_table(jobs)], "table")
    assert "dp all-reduce x1.50" in text
    data = jobs_to_dict(jobs)
    assert (data[0]["slowdown"], data[0]["worst_slowdown"], data[1]["slowdown"]) == (1.25, 1.5, 1.0)
