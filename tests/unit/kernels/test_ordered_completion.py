"""Messages that wait for others, against solving everything at each event and against hand-made cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.kernels.completion import Order, complete
from netplan.kernels.reference import complete_slowly
from tests.unit.kernels.systems import System, system, systems

#: As in test_completion: completions closer than 1e-9 of the clock are one event.
TOLERANCE = 1e-7


def order(*pairs: tuple[int, int, float]) -> Order:
    """Return an order from (first, then, delay)."""
    first, then, delay = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Order(np.array(first, np.int64), np.array(then, np.int64), np.array(delay, float))


def run(s: System, size, wait: Order, start=None):
    """Complete with one flow a message."""
    size = np.asarray(size, float)
    begin = np.zeros(len(size)) if start is None else np.asarray(start, float)
    messages = np.arange(len(size) + 1)
    return complete(s.capacity, s.flow_ptr, s.flow_link, s.coefficient, messages, size, begin, order=wait)


def test_a_chain_by_hand():
    """Three flows of 2 bytes on one link of 2 bytes/s, each 0.5 s after the one before.

    By hand: each has the link to itself: ends at 1, 2.5, 4.
    """
    done = run(system([2], [[0], [0], [0]]), [2, 2, 2], order((0, 1, 0.5), (1, 2, 0.5)))
    np.testing.assert_allclose(done.finish, [1, 2.5, 4], rtol=1e-12)
    assert done.first_rate.tolist() == [2, 2, 2]


def test_last_of_two_by_hand():
    """Flow 2 waits for flows 0 and 1, which share a link of 2: 2 and 4 bytes end at 2 and 3.

    By hand: flow 2 begins at 3 + 1 = 4, not at 2 + 3 = 5: the later of both is 5. 2 bytes alone: 6.
    """
    done = run(system([2], [[0], [0], [0]]), [2, 4, 2], order((0, 2, 3), (1, 2, 1)))
    np.testing.assert_allclose(done.finish, [2, 3, 6], rtol=1e-12)


def test_start_is_the_earliest_begin():
    done = run(system([2], [[0], [0]]), [2, 2], order((0, 1, 0)), start=[0, 7])
    np.testing.assert_allclose(done.finish, [1, 8], rtol=1e-12)


def test_next_begins_at_the_same_instant():
    """With no delay the second takes over the rate of the first, and a third flow sees no gap."""
    done = run(system([2], [[0], [0], [0]]), [1, 1, 4], order((0, 1, 0)))
    np.testing.assert_allclose(done.finish, [1, 2, 3], rtol=1e-12)


@given(systems(), st.data())
@settings(max_examples=60)
def test_equal_to_solving_everything(s, data):
    """Any order without a circle: pairs go from lower to higher numbers."""
    n = len(s.flow_ptr) - 1
    size = np.array(data.draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n)))
    start = np.array(data.draw(st.lists(st.floats(0, 5), min_size=n, max_size=n)))
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.floats(0, 3)), max_size=2 * n)
    )
    wait = order(*[(min(a, b), max(a, b), d) for a, b, d in pairs if a != b])
    plain = System(s.capacity, s.flow_ptr, s.flow_link, np.ones(len(s.flow_link)))
    done = run(plain, size, wait, start)
    slow = complete_slowly(s.capacity, s.flow_ptr, s.flow_link, size, start, wait)
    np.testing.assert_allclose(done.finish, slow, rtol=TOLERANCE)


def test_circle_is_refused():
    circle = order((0, 1, 0), (1, 0, 0))
    with pytest.raises(ValueError, match="2 messages wait for each other and never begin"):
        run(system([2], [[0], [0], [0]]), [1, 1, 1], circle)
    with pytest.raises(ValueError, match="wait for each other"):
        complete_slowly(np.array([2.0]), np.arange(4), np.zeros(3, np.int64), np.ones(3), np.zeros(3), circle)
