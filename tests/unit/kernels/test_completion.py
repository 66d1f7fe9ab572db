"""The completion engine against solving everything at each event.

The engine takes completions closer than 1e-9 of the clock as one event, so each event may shift
what follows by that much: with a dozen events, 1e-7 relative is a bound with room.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.kernels.completion import complete
from netplan.kernels.max_min import solve_max_min
from netplan.kernels.reference import complete_slowly, solve_max_min_slowly
from tests.contracts.max_min import check_max_min
from tests.unit.kernels.systems import System, random_system, system, systems

TOLERANCE = 1e-7


def run(s: System, size, start=None, *, messages=None, multiplicity=None, progress=None):
    """Complete with one flow a message unless told otherwise."""
    size = np.asarray(size, float)
    return complete(
        s.capacity,
        s.flow_ptr,
        s.flow_link,
        s.coefficient,
        np.arange(len(size) + 1) if messages is None else np.asarray(messages, np.int64),
        size,
        np.zeros(len(size)) if start is None else np.asarray(start, float),
        multiplicity=multiplicity,
        progress=progress,
    )


def test_two_flows_by_hand():
    """Two flows of 1 and 3 bytes share a link of 2 bytes/s.

    By hand: both at 1 until t = 1, when the first ends; the other has 2 left, at 2 until t = 2.
    """
    done = run(system([2], [[0], [0]]), [1, 3])
    np.testing.assert_allclose(done.finish, [1, 2], rtol=1e-12)
    assert done.first_rate.tolist() == [1, 1]
    assert done.first_bottleneck.tolist() == [0, 0]
    assert done.events == 3  # the start and two ends


def test_late_start_by_hand():
    """A flow of 4 bytes alone on a link of 2 bytes/s; at t = 1 another of 1 byte joins.

    By hand: 2 bytes sent at t = 1; both at 1 until the second ends at t = 2; 1 byte left at 2: t = 2.5.
    """
    done = run(system([2], [[0], [0]]), [4, 1], [0, 1])
    np.testing.assert_allclose(done.finish, [2.5, 2], rtol=1e-12)
    assert done.first_rate.tolist() == [2, 1]


def test_pooled_message_by_hand():
    """A message over two QPs, one behind a slow link: bytes go where there is room.

    System:  x0 <= 1,  x1 <= 3, one message of 8 bytes on both.   By hand: 8 / (1 + 3) = 2 s;
    with equal parts of 4 bytes instead, the slow QP takes 4 s.
    """
    s = system([1, 3], [[0], [1]])
    np.testing.assert_allclose(run(s, [8], messages=[0, 2]).finish, [2], rtol=1e-12)
    np.testing.assert_allclose(run(s, [4, 4]).finish, [4, 4 / 3], rtol=1e-12)


def test_multiplicity_by_hand():
    """A flow that stands for four equal QPs moves four times its rate.

    System:  4 x0 + x1 <= 10, 40 and 4 bytes.
    By hand: x = 2; the message of four moves 8 bytes/s. t = 2: flow 1 done, 24 left at 10: t = 4.4.
    """
    s = system([10], [[0], [0]], [[4], [1]])
    done = run(s, [40, 4], multiplicity=np.array([4.0, 1.0]))
    np.testing.assert_allclose(done.finish, [4.4, 2], rtol=1e-12)
    np.testing.assert_allclose(done.first_rate, [2, 2], rtol=1e-12)


def test_flow_overtaken_on_a_full_link_by_hand():
    """Two flows on a full link change places at one instant: the third follows, though the link stays full.

    System, links L 3, A 1.25, B 2.5, C 0.5, D 0.8:
    g + h1 + h2 <= 3,  h1 + 4 y <= 1.25,  h2 + 5 w <= 2.5,  w + 3 z <= 0.5,  w + x <= 0.8
    By hand, y and z not begun: w = x = 0.4 (D), h2 = 2.5 - 2 = 0.5 (B), g = h1 = 1.25 (L).
    At t = 1 x ends, y and z begin: w = z = 0.125 (C), h1 = y = 0.25 (A), h2 may rise to 1.875 (B), so
    g = h2 = (3 - 0.25) / 2 = 1.375 (L). If g stayed at 1.25, h2 would fill L at 1.5, faster than g.
    g has 1.25 + 1.375 bytes: done at t = 2, before all others.
    """
    paths = {"g": [0], "h1": [0, 1], "h2": [0, 2], "w": [2, 3, 4], "x": [4], "y": [1], "z": [3]}
    coefficients = [[1], [1, 1], [1, 1], [5, 1, 1], [1], [4], [3]]
    s = system([3, 1.25, 2.5, 0.5, 0.8], list(paths.values()), coefficients)
    done = run(s, [2.625, 9, 9, 9, 0.4, 9, 9], [0, 0, 0, 0, 0, 1, 1])
    np.testing.assert_allclose(done.first_rate, [1.25, 1.25, 0.5, 0.4, 0.4, 0.25, 0.125], rtol=1e-12)
    assert done.finish[4] == pytest.approx(1, rel=1e-12)
    assert done.finish[0] == pytest.approx(2, rel=1e-9)


sizes = st.one_of(st.integers(1, 3).map(float), st.floats(0.5, 50))
starts = st.one_of(st.just(0.0), st.integers(0, 3).map(float), st.floats(0, 20))


@given(systems(is_weighted=False, most_flows=10), st.data())
def test_equal_to_solving_everything_at_each_event(s, data):
    """Distinct and equal sizes, distinct and equal starts, on any small system."""
    size = np.array(data.draw(st.lists(sizes, min_size=s.n_flows, max_size=s.n_flows)))
    start = np.array(data.draw(st.lists(starts, min_size=s.n_flows, max_size=s.n_flows)))
    slow = complete_slowly(s.capacity, s.flow_ptr, s.flow_link, size, start)
    np.testing.assert_allclose(run(s, size, start).finish, slow, rtol=TOLERANCE)


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_solving_everything_on_random_systems(seed):
    """60 flows on 25 links; equal sizes for even seeds, equal starts for every third."""
    rng = np.random.default_rng(seed)
    s = random_system(rng, 60, 25, 5)
    size = np.full(60, 7.0) if seed % 2 == 0 else rng.uniform(1, 20, 60)
    start = np.zeros(60) if seed % 3 == 0 else rng.uniform(0, 3, 60)
    slow = complete_slowly(s.capacity, s.flow_ptr, s.flow_link, size, start)
    np.testing.assert_allclose(run(s, size, start).finish, slow, rtol=TOLERANCE)


def complete_pools_slowly(s: System, messages, size, start, multiplicity):
    """Finish times of messages that spread their bytes over their QPs, all solved anew at each event."""
    n = len(size)
    left, finish, now = np.array(size, float), np.full(n, np.inf), float(np.min(start))
    while np.isinf(finish).any():
        running = [m for m in range(n) if np.isinf(finish[m]) and start[m] <= now]
        coming = [start[m] for m in range(n) if start[m] > now]
        if not running:
            now = min(coming)
            continue
        flows = [f for m in running for f in range(messages[m], messages[m + 1])]
        rows = [s.row(f) for f in flows]
        ptr = np.concatenate([[0], np.cumsum([row.stop - row.start for row in rows])])
        link = np.concatenate([s.flow_link[row] for row in rows])
        rate = solve_max_min_slowly(
            s.capacity, ptr, link, np.concatenate([s.coefficient[row] for row in rows])
        )
        speed = dict.fromkeys(running, 0.0)
        for m in running:
            for f in range(messages[m], messages[m + 1]):
                speed[m] += rate[flows.index(f)] * multiplicity[f]
        step = min([left[m] / speed[m] for m in running] + [t - now for t in coming])
        for m in running:
            left[m] -= speed[m] * step
            if left[m] <= 1e-12 * size[m]:
                finish[m] = now + step
        now += step
    return finish


@given(systems(most_links=5, most_flows=8), st.data())
@settings(max_examples=60)
def test_pooled_messages_against_a_slow_pool(s, data):
    """Messages of one or more QPs, each QP worth one or more, sharing the bytes of the message."""
    cuts = sorted(data.draw(st.sets(st.integers(1, max(s.n_flows - 1, 1)), max_size=3)) - {s.n_flows})
    messages = [0, *cuts, s.n_flows]
    n = len(messages) - 1
    size = data.draw(st.lists(sizes, min_size=n, max_size=n))
    start = data.draw(st.lists(starts, min_size=n, max_size=n))
    multiplicity = np.array(
        data.draw(st.lists(st.integers(1, 4).map(float), min_size=s.n_flows, max_size=s.n_flows))
    )
    done = run(s, size, start, messages=messages, multiplicity=multiplicity)
    slow = complete_pools_slowly(s, messages, size, start, multiplicity)
    np.testing.assert_allclose(done.finish, slow, rtol=TOLERANCE)


def test_first_rates_are_max_min_when_all_start_together():
    """20,000 flows at once: the rates at the start are those of the solver, and have its certificate."""
    rng = np.random.default_rng(3)
    s = random_system(rng, 20_000, 5_000, 6)
    done = run(s, rng.uniform(1, 2, 20_000))
    np.testing.assert_allclose(
        done.first_rate, solve_max_min(s.capacity, s.flow_ptr, s.flow_link, s.coefficient).rate, rtol=1e-9
    )
    check_max_min(s.capacity, s.flow_ptr, s.flow_link, done.first_rate, bottleneck=done.first_bottleneck)


def test_no_link_carries_more_bytes_than_it_can():
    """Until the last flow on a link ends, the link carried at most capacity x time: bytes are conserved."""
    rng = np.random.default_rng(4)
    s = random_system(rng, 3_000, 500, 5)
    size = rng.uniform(1, 50, 3_000)
    done = run(s, size)
    owner = np.repeat(np.arange(3_000), np.diff(s.flow_ptr))
    carried = np.bincount(s.flow_link, size[owner], minlength=500)
    last = np.zeros(500)
    np.maximum.at(last, s.flow_link, done.finish[owner])
    assert (carried <= s.capacity * last * (1 + 1e-9)).all()
    # Max-min rates never idle a link that has a flow stopped nowhere else: someone was stopped on some link
    # to the end.
    assert (carried >= s.capacity * last * (1 - 1e-6)).any()


def test_equal_messages_end_as_one_event():
    """1,000 equal flows on equal links: two instants, the start and the end."""
    done = run(system([1.0] * 1000, [[i] for i in range(1000)]), np.ones(1000))
    assert done.finish.tolist() == [1.0] * 1000
    assert done.events == 2


def test_same_bytes_each_time():
    """No clock, no hash order, no threads: two runs agree to the last bit."""
    rng = np.random.default_rng(5)
    s = random_system(rng, 2_000, 300, 5)
    size, start = rng.uniform(1, 50, 2_000), rng.uniform(0, 5, 2_000)
    first, second = run(s, size, start), run(s, size, start)
    for a, b in zip(first, second, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_message_that_can_never_finish_is_refused():
    """Each of its paths crosses a link of capacity 0; the message says which one."""
    with pytest.raises(
        ValueError, match=r"message 1 can never finish: every path it has crosses a link of capacity 0"
    ):
        run(system([0, 4], [[1], [0, 1]]), [1, 1])


def test_progress_is_told():
    """The number of finished messages, rising to all of them."""
    told: list[int] = []
    run(system([2], [[0], [0]]), [1, 3], progress=told.append)
    assert told[-1] == 2


def test_no_messages():
    """Nothing to do is done at once."""
    assert run(system([1.0], []), []).finish.shape == (0,)
