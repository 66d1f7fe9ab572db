"""The max-min solver against its definition, its slow reference and a linear program.

All tolerances are relative. 1e-9 is five orders above the rounding of sums over a dozen flows
and far below any difference that would show in a result.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from netplan.kernels.max_min import solve_max_min
from netplan.kernels.reference import solve_max_min_slowly
from tests.contracts.max_min import check_max_min
from tests.unit.kernels.systems import System, random_system, system, systems


def solve(s: System):
    return solve_max_min(s.capacity, s.flow_ptr, s.flow_link, s.coefficient)


def test_parking_lot_by_hand():
    """One long flow over three links, one short flow on each.

    System:  x0 + x1 <= 1,  x0 + x2 <= 2,  x0 + x3 <= 10
    By hand: link 0 saturates first: x0 = x1 = 1/2; then x2 = 2 - 1/2, x3 = 10 - 1/2.
    Bottlenecks: link 0 for flows 0 and 1, their own link for the others.
    """
    s = system([1, 2, 10], [[0, 1, 2], [0], [1], [2]])
    found = solve(s)
    np.testing.assert_allclose(found.rate, [0.5, 0.5, 1.5, 9.5], rtol=1e-15)
    assert found.bottleneck.tolist() == [0, 0, 1, 2]


def test_coefficients_by_hand():
    """A flow that puts twice its rate on a link, and one that puts half.

    System:  2 x0 + x1 <= 6,  0.5 x1 + x2 <= 3
    By hand: link 0 alone gives x0 = x1 = 2; link 1 alone gives x1 = x2 = 2: both at level 2.
    """
    s = system([6, 3], [[0], [0, 1], [1]], [[2], [1, 0.5], [1]])
    np.testing.assert_allclose(solve(s).rate, [2, 2, 2], rtol=1e-15)


def test_chain_of_levels_by_hand():
    """A link's level may rise when a tighter link froze one of its flows.

    System:  x0 <= 1,  x0 + x1 <= 4,  x1 + x2 <= 10
    By hand: x0 = 1, so x1 = 3 (not 2), so x2 = 7 (not 5).
    """
    s = system([1, 4, 10], [[0, 1], [1, 2], [2]])
    np.testing.assert_allclose(solve(s).rate, [1, 3, 7], rtol=1e-15)


@given(systems())
def test_equal_to_slow_reference(s):
    """The same rates as textbook filling of one global level, on any small system."""
    slow = solve_max_min_slowly(s.capacity, s.flow_ptr, s.flow_link, s.coefficient)
    np.testing.assert_allclose(solve(s).rate, slow, rtol=1e-9)


@given(systems())
def test_certificate_on_small_systems(s):
    """No link over its capacity, and each flow is stopped by the link that the solver names."""
    found = solve(s)
    check_max_min(
        s.capacity,
        s.flow_ptr,
        s.flow_link,
        found.rate,
        coefficient=s.coefficient,
        bottleneck=found.bottleneck,
    )


@given(systems(), st.randoms(use_true_random=False))
def test_order_does_not_matter(s, random):
    """The answer is unique: numbering flows and links otherwise permutes it and changes nothing else."""
    flows = list(range(s.n_flows))
    links = list(range(len(s.capacity)))
    random.shuffle(flows)
    random.shuffle(links)
    capacity = np.empty(len(links))
    capacity[links] = s.capacity
    rows = []
    for flow in flows:
        entries = list(zip(s.flow_link[s.row(flow)], s.coefficient[s.row(flow)], strict=True))
        random.shuffle(entries)
        rows.append(entries)
    other = system(
        capacity.tolist(),
        [[links[link] for link, _ in row] for row in rows],
        [[value for _, value in row] for row in rows],
    )
    np.testing.assert_allclose(solve(other).rate, solve(s).rate[flows], rtol=1e-9)


@given(systems(is_weighted=False), st.data())
def test_equal_flows_are_one_weighted_flow(s, data):
    """``q`` copies of a flow get what one flow gets that counts ``q`` times on each link."""
    copies = data.draw(st.lists(st.integers(1, 5), min_size=s.n_flows, max_size=s.n_flows))
    weight = np.repeat(np.array(copies, float), np.diff(s.flow_ptr))
    together = solve(s._replace(coefficient=weight)).rate
    paths = [s.flow_link[s.row(f)].tolist() for f in range(s.n_flows) for _ in range(copies[f])]
    apart = solve(system(s.capacity.tolist(), paths)).rate
    np.testing.assert_allclose(apart, np.repeat(together, copies), rtol=1e-9)


@given(systems(), st.floats(1e-3, 1e12))
def test_scale_does_not_matter(s, factor):
    """Capacities in other units give rates in other units."""
    scaled = solve(s._replace(capacity=s.capacity * factor)).rate
    np.testing.assert_allclose(scaled, solve(s).rate * factor, rtol=1e-9)


def lexicographic_oracle(s: System) -> np.ndarray:
    """Maximise the smallest rate, then the next one, by linear programs (no filling, no levels).

    Variables are the rates and the level t. A flow is settled when, with all open rates at least
    t, its own cannot exceed t.
    """
    n = s.n_flows
    use = np.zeros((len(s.capacity), n))
    for flow in range(n):
        use[s.flow_link[s.row(flow)], flow] += s.coefficient[s.row(flow)]
    settled: dict[int, float] = {}
    while len(settled) < n:
        still_open = [f for f in range(n) if f not in settled]
        least = np.zeros((len(still_open), n + 1))  # t - x_f <= 0
        least[np.arange(len(still_open)), still_open] = -1
        least[:, n] = 1
        table = np.vstack([np.hstack([use, np.zeros((len(use), 1))]), least])
        bound = np.concatenate([s.capacity, np.zeros(len(still_open))])
        bounds = [(settled[f], settled[f]) if f in settled else (0, None) for f in range(n)]
        best = linprog([0] * n + [-1], table, bound, bounds=[*bounds, (0, None)], method="highs")
        level = best.x[n]
        for flow in still_open:
            goal = np.zeros(n + 1)
            goal[flow] = -1
            most = linprog(goal, table, bound, bounds=[*bounds, (level * (1 - 1e-9), None)], method="highs")
            if most.x[flow] <= level * (1 + 1e-6):
                settled[flow] = level
    return np.array([settled[f] for f in range(n)])


@given(systems(most_links=4, most_flows=5))
@settings(max_examples=25)
def test_equal_to_lexicographic_linear_programs(s):
    """An LP solver that knows nothing of filling finds the same; 1e-5 is what it resolves."""
    np.testing.assert_allclose(solve(s).rate, lexicographic_oracle(s), rtol=1e-5)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_certificate_on_a_large_system(is_weighted):
    """100,000 flows on 20,000 links: the certificate, and far fewer rounds than levels.

    Textbook filling takes a round per distinct level, of which there are thousands here.
    """
    s = random_system(np.random.default_rng(1), 100_000, 20_000, 6, is_weighted=is_weighted)
    found = solve(s)
    check_max_min(
        s.capacity,
        s.flow_ptr,
        s.flow_link,
        found.rate,
        coefficient=s.coefficient,
        bottleneck=found.bottleneck,
    )
    assert found.rounds < 100 < len(np.unique(found.rate.round(6)))


@pytest.mark.parametrize("n", [40, 400])
def test_equal_to_slow_reference_on_random_systems(n):
    """Larger systems than hypothesis draws, with and without coefficients."""
    for seed in range(5):
        s = random_system(np.random.default_rng(seed), n, n // 3, 5, is_weighted=bool(seed % 2))
        slow = solve_max_min_slowly(s.capacity, s.flow_ptr, s.flow_link, s.coefficient)
        np.testing.assert_allclose(solve(s).rate, slow, rtol=1e-9)


def test_link_of_capacity_zero():
    """A dead link stops the flows on it and no others.

    System:  x0 <= 0,  x0 + x1 <= 4.   By hand: x0 = 0, x1 = 4.
    """
    found = solve(system([0, 4], [[0, 1], [1]]))
    assert found.rate.tolist() == [0, 4]
    assert found.bottleneck.tolist() == [0, 1]


def test_flow_without_a_link_is_refused():
    """Nothing would limit its rate."""
    with pytest.raises(ValueError, match=r"flow 1 crosses no link, so its rate is unbounded"):
        solve(system([1], [[0], []]))


def test_no_flows():
    """Nothing to solve, nothing solved."""
    assert solve(system([1.0], [])).rate.shape == (0,)


def test_inputs_are_left_alone():
    """The solver lowers capacities in a copy."""
    s = system([1, 2, 10], [[0, 1, 2], [0], [1], [2]])
    before = [array.copy() for array in s]
    solve(s)
    for now, then in zip(s, before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (lambda s, rate: rate * 1.001, "more than its capacity"),
        (lambda s, rate: np.zeros_like(rate), "could be faster"),
        (lambda s, rate: rate * 0.999, "could be faster"),
        # Equal share of each link's capacity without handing out what others leave: popular, and not max-min.
        (lambda s, rate: np.array([0.5, 0.5, 1.0, 5.0]), "could be faster"),
        (lambda s, rate: np.array([0.4, 0.6, 1.6, 9.6]), "could be faster"),  # all links full, not fair
    ],
)
def test_the_contract_refuses_wrong_answers(wrong, complaint):
    """On the parking lot, whose answer is (1/2, 1/2, 3/2, 19/2)."""
    s = system([1, 2, 10], [[0, 1, 2], [0], [1], [2]])
    right = solve(s).rate
    check_max_min(s.capacity, s.flow_ptr, s.flow_link, right)
    with pytest.raises(AssertionError, match=complaint):
        check_max_min(s.capacity, s.flow_ptr, s.flow_link, wrong(s, right))
