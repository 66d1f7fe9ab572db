"""A day of training and inference: the load, the best sizes against all of them, what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netplan.errors import ModelRangeError, SpecError
from netplan.planning.sharing import best_sizes, load_curve, share_day
from netplan.report.sharing import draw_day, sharing_tables
from netplan.spec.sharing import InferenceSpec, SharingSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

DAY = """\
name: day
gpus: 10240
inference: {peak_gpus: 4000, mean: 0.6, bandwidth: 2 GB/s}
training: {least_gpus: 1024, unit_gpus: 512, bandwidth: 20 GB/s}
"""


def day(**sets: str) -> SharingSpec:
    """Return the day with other values."""
    return validate(
        SharingSpec, parse_yaml(DAY, "day.yaml"), overrides={k.replace("__", "."): v for k, v in sets.items()}
    )


def value(sizes, switch_h):
    """Return GPU-hours of a day that is like the one before."""
    changed = sum(size for place, size in enumerate(sizes) if size != sizes[place - 1])
    return sum(sizes) - switch_h * changed


@given(
    free=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    switch=st.sampled_from([0.0, 0.1, 0.3, 0.7, 2.0]),
)
@example(free=[1, 3, 3, 3, 3], switch=2.0)  # best: wait the first hour
def test_best_sizes_against_all(free, switch):
    found = best_sizes(free, switch)
    assert all(size <= room for size, room in zip(found, free, strict=True))
    every = itertools.product(*(range(room + 1) for room in free))
    assert value(found, switch) == pytest.approx(max(value(sizes, switch) for sizes in every))


def test_without_cost_training_takes_what_is_free():
    free = [5, 3, 8, 1]
    assert best_sizes(free, 0.0) == free


def test_the_cosine_has_its_mean_and_peak():
    curve = load_curve(InferenceSpec(peak_gpus=10, mean=0.6, peak_hour=20))
    assert max(curve) == curve[20] == 1
    assert sum(curve) / 24 == pytest.approx(0.6)
    assert curve[8] == pytest.approx(0.2)
    assert max(load_curve(InferenceSpec(peak_gpus=10, mean=0.6, peak_hour=20.5))) == pytest.approx(1)


def test_a_day_by_hand():
    # 12 hours of 2,000 GPUs, 12 of 1,000, 0 headroom: training has 2,000 all day, or 3,000 half of it.
    hours = [1.0] * 12 + [0.5] * 12
    found = share_day(
        SharingSpec.model_validate(
            {
                "name": "x",
                "gpus": 4000,
                "inference": {"peak_gpus": 2000, "curve": hours, "headroom": 0.0, "bandwidth": 1e9},
                "training": {"least_gpus": 8, "switch": 360.0, "bandwidth": 10e9},
            }
        )
    )
    assert found.training_fixed_gpu_h == 48_000
    # Two changes a day: 0.1 h of 3,000 and of 2,000 GPUs.
    assert found.switch_gpu_h == pytest.approx(500)
    assert found.training_elastic_gpu_h == pytest.approx(60_000 - 500)
    assert found.gain == pytest.approx(59_500 / 48_000 - 1)
    assert found.changes == 2
    assert found.utilisation_fixed == pytest.approx((48_000 + 36_000) / 96_000)
    assert found.inference_mean == pytest.approx(0.75)
    # 2,000 x 10 + 2,000 x 1 GB/s of 4,000 x 50.
    assert found.fabric_load("fixed")["peak"] == pytest.approx(22 / 200)
    assert found.fabric_load("elastic")["peak"] == pytest.approx(31 / 200)


def test_a_full_fabric_slows_training():
    free = share_day(day())
    full = share_day(day(oversubscription="8.0"))
    load = full.fabric_load("fixed")["peak"]
    assert load == pytest.approx(8 * free.fabric_load("fixed")["peak"])
    assert load > 1
    slow = [1 + 0.2 * max(0.0, row.fabric_load_fixed - 1) for row in full.hours]
    assert full.training_fixed_gpu_h == pytest.approx(sum(5120 / each for each in slow))


def test_tables_and_chart():
    found = share_day(day())
    text = str(sharing_tables(found)[0].remarks)
    assert "mean load 60.0% of its peak" in text
    assert f"{found.gain:.1%} more GPU-hours" in text
    svg = draw_day(found, ".svg").decode()
    assert "training, elastic" in svg
    assert found.to_dict()["share"]["changes"] == found.changes


def test_a_peak_that_leaves_too_little():
    with pytest.raises(ModelRangeError) as caught:
        share_day(day(gpus="5000"))
    caught.match("holds 4,800 of 5,000 GPUs for inference and leaves 0; training needs 1,024")
    caught.match("5,824 GPUs would do")
    assert share_day(day(gpus="5824")).gain > 0


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"inference__mean": "0.4"}, "is below 0.5, where a cosine would go below 0"),
        ({"inference__mean": "null"}, "has neither curve nor mean"),
        ({"inference__curve": str([1.0] * 24)}, "has both curve and mean"),
        ({"inference__mean": "null", "inference__curve": str([0.5] * 24)}, "largest value 0.5 below 1"),
        ({"inference__curve": "[1.0]"}, "curve"),
        ({"training__switch": "5"}, "unit"),
        ({"oversubscription": "0.0"}, "oversubscription"),
        ({"gpu": "5"}, "unknown key"),
    ],
)
def test_what_is_refused(sets, message):
    with pytest.raises(SpecError) as caught:
        day(**sets)
    assert message in str(caught.value)
