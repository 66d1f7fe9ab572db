"""Means, intervals, fronts and sensitivities against closed forms and plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netplan.errors import SpecError
from netplan.sweep.summary import best_points, pareto_points, pivot, point_means, sensitivity
from netplan.sweep.table import Column, Results


def results(point, settings, completion, error=None):
    n = len(point)
    columns = [
        Column("point", int, tuple(point)),
        *(
            Column(name, float if isinstance(values[0], float) else str, tuple(values))
            for name, values in settings.items()
        ),
        Column("completion_s", float, tuple(completion)),
        Column("error", str, tuple(error or [None] * n)),
    ]
    return Results(tuple(columns))


def test_the_interval_of_a_mean_is_students():
    found = point_means(results([0, 0, 0, 1], {}, [1.0, 2.0, 3.0, 5.0]), "completion_s", 0.95)
    assert found.mean.tolist() == [2.0, 5.0]
    # t(0.975, 2 degrees) = 4.302653 (tables), s = 1, n = 3
    assert found.half[0] == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(found.half[1])


def test_failed_replicas_are_counted_and_left_out():
    table = results([0, 0, 1, 1], {}, [1.0, None, None, None], [None, "no", "no", "no"])
    found = point_means(table, "completion_s")
    assert found.ran.tolist() == [1, 0]
    assert found.failed.tolist() == [1, 2]
    assert math.isnan(found.mean[1])
    assert best_points(found, "min").tolist() == [0]


@given(
    st.lists(st.tuples(st.integers(0, 6).map(float), st.integers(0, 6).map(float)), min_size=1, max_size=30)
)
def test_a_front_is_what_no_other_point_beats(pairs):
    one = point_means(results(range(len(pairs)), {}, [a for a, _ in pairs]), "completion_s")
    two = point_means(results(range(len(pairs)), {}, [b for _, b in pairs]), "completion_s")
    front = set(pareto_points([one, two], ["min", "max"]).tolist())

    def beats(p, q):
        return p[0] <= q[0] and p[1] >= q[1] and p != q

    expected = {k for k, own in enumerate(pairs) if not any(beats(other, own) for other in pairs)}
    assert front == expected


def test_a_pivot_is_the_mean_of_each_cell():
    table = results(range(4), {"a": ["x", "x", "y", "y"], "b": [2.0, 1.0, 1.0, 1.0]}, [1.0, 2.0, 3.0, 5.0])
    rows, columns, mean = pivot(table, "a", "b", "completion_s")
    assert (rows, columns) == (["x", "y"], [1.0, 2.0])
    assert mean[0].tolist() == [2.0, 1.0]
    assert mean[1, 0] == 4.0
    assert math.isnan(mean[1, 1])


def test_the_setting_that_decides_has_the_variance_and_one_without_influence_none():
    rng = np.random.default_rng(1)
    x, noise = rng.random(600), rng.random(600)
    table = results(range(600), {"x": x.tolist(), "noise": noise.tolist()}, (3 * x).tolist())
    first, second = sensitivity(table, "completion_s")
    assert first.setting == "x"
    assert first.share > 0.98  # 1 - 1/12^2 of a linear law in 12 bins is 0.993
    assert first.rank_correlation == pytest.approx(1.0)
    assert second.share < 0.03
    assert second.rank_correlation == pytest.approx(0.0, abs=0.1)


def test_shares_of_an_additive_law_are_those_of_its_terms():
    # y = 2 a + b over a grid: a has 4 of 5 parts of the variance, b 1; chance (9 degrees of freedom, what is
    # left over 90) is taken off.
    a, b = (v.ravel().astype(float) for v in np.meshgrid(np.arange(10), np.arange(10)))
    table = results(range(100), {"a": a.tolist(), "b": b.tolist()}, (2 * a + b).tolist())
    shares = {each.setting: each.share for each in sensitivity(table, "completion_s")}
    assert shares["a"] == pytest.approx((0.8 - 9 * 0.2 / 90) / (1 + 0.2 / 90))
    assert shares["b"] == pytest.approx((0.2 - 9 * 0.8 / 90) / (1 + 0.8 / 90))


def test_texts_and_too_few_points_are_refused():
    table = results([0, 1], {"a": ["x", "y"]}, [1.0, 2.0])
    with pytest.raises(SpecError, match="column a holds texts"):
        point_means(table, "a")
    with pytest.raises(SpecError, match="2 points have a completion_s: sensitivity needs 3"):
        sensitivity(table, "completion_s")
    with pytest.raises(SpecError, match="no column 'completion'"):
        point_means(table, "completion")
