"""Branch and bound against trying everything."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netplan.errors import TrafficError
from netplan.training.search import branch_and_bound

VALUES = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.one_of(st.floats(0.1, 10), st.just(math.inf))),
    min_size=1,
    max_size=40,
)


def stages_of(table):
    """Return three stages: parts of the value, as bounds that rise."""

    def stage(number):
        def value(candidate):
            low, middle, last = table[candidate]
            parts = (last * low * middle, last * middle, last)
            return parts[number] if math.isfinite(last) else (0.0 if number < 2 else math.inf)

        return value

    return [stage(number) for number in range(3)]


@given(VALUES, st.integers(1, 5))
def test_equals_trying_everything(table, keep):
    """The best ones are those of a sort of all values, in order."""
    feasible = sorted(last for _, _, last in table if math.isfinite(last))
    if not feasible:
        with pytest.raises(TrafficError, match="layouts is feasible"):
            branch_and_bound(range(len(table)), stages_of(table), keep=keep)
        return
    found = branch_and_bound(range(len(table)), stages_of(table), keep=keep)
    assert [value for _, value in found.ranking[:keep]] == feasible[:keep]
    assert found.is_proven
    assert found.candidates == len(table)


def test_candidates_with_a_bad_bound_are_not_run():
    """By hand: values 1, 2, 3 with bounds equal to them: only the first is run."""
    ran = []

    def value(candidate):
        ran.append(candidate)
        return float(candidate)

    found = branch_and_bound([3, 1, 2], [float, value])
    assert (found.best, found.best_s, ran, found.evaluated) == (1, 1.0, [1], (3, 1))


@given(VALUES, st.integers(1, 10))
def test_a_search_cut_short_says_what_it_did_not_see(table, most):
    """Its bound is below the best of all, and the best found is one of the values."""
    feasible = sorted(last for _, _, last in table if math.isfinite(last))
    stages = stages_of(table)
    try:
        found = branch_and_bound(range(len(table)), stages, most=most)
    except TrafficError:
        return  # those that were run could not be
    assert found.evaluated[2] <= most
    assert found.bound_s <= feasible[0] <= found.best_s
    assert found.is_proven == (found.bound_s == found.best_s)


def test_nothing_to_choose_from():
    """No candidates at all."""
    with pytest.raises(TrafficError, match="there is no layout to choose from"):
        branch_and_bound([], [float])
