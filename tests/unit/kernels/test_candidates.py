"""Greedy placement on candidates: by hand, and against the obvious implementation."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.kernels.candidates import place_on_candidates
from netplan.kernels.reference import place_on_candidates_slowly


def place(rows, candidates, weight, capacity, path, load):
    """Call the kernel with lists; paths as lists again."""
    width = max([1, *(len(links) for row in candidates for links in row)])
    wide = max([width, *(len(links) for links in path if links)])
    table = np.full((len(rows), len(candidates[0]) if rows else 0, width), -1, np.int32)
    for r, row in enumerate(candidates):
        for c, links in enumerate(row):
            table[r, c, : len(links)] = links
    paths = np.full((len(path), wide), -1, np.int32)
    for flow, links in enumerate(path):
        paths[flow, : len(links or [])] = links or []
    loads = np.array(load, float)
    changed = place_on_candidates(
        np.array(rows, np.int64), table, np.array(weight, float), 1 / np.array(capacity, float), loads, paths
    )
    return [[link for link in row if link >= 0] for row in paths.tolist()], loads, changed


def test_by_hand():
    """A short path over link 0, a long one over links 1 and 2; all carry 1.

    Flow 0 (0.75) fits on the short one. Flow 1 (0.5) would make it 1.25: the long one fits and is taken.
    Flow 2 (0.75) fits nowhere: short 1.5 x 1 hop against long 1.25 x 2 hops: the short one. Flow 3 (0.25):
    short 1.75, long 0.75 fits.
    """
    path, load, changed = place(
        [0, 1, 2, 3], [[[0], [1, 2]]] * 4, [0.75, 0.5, 0.75, 0.25], [1, 1, 1], [None] * 4, [0, 0, 0]
    )
    assert path == [[0], [1, 2], [0], [1, 2]]
    assert load.tolist() == [1.5, 0.75, 0.75]
    assert changed == 4


def test_looking_again_by_hand():
    """What has been placed stays while it is not overloaded, and takes itself off before it looks.

    Link 0 carries flows 0 and 1 of 0.75: flow 0 finds link 1 free and moves; then flow 1 is alone and stays.
    """
    path, load, changed = place([0, 1], [[[1]], [[1]]], [0.75, 0.75], [1, 1], [[0], [0]], [1.5, 0])
    assert path == [[1], [0]]
    assert load.tolist() == [0.75, 0.75]
    assert changed == 1


def test_equal_candidates_take_the_first():
    """Two idle links: the first given."""
    assert place([0], [[[1], [0]]], [0.5], [1, 1], [None], [0, 0])[0] == [[1]]


def test_no_hops():
    """Endpoints of one switch cross nothing, whatever else is loaded."""
    path, load, _ = place([0, 1], [[[]], [[]]], [1, 1], [1], [None, None], [0])
    assert path == [[], []]
    assert load.tolist() == [0]


@st.composite
def systems(draw):
    """Links of capacity 1, 2 or 4, flows in eighths: all sums are exact, so that equal is equal."""
    n_links = draw(st.integers(1, 6))
    links = st.lists(st.integers(0, n_links - 1), min_size=1, max_size=4, unique=True)
    n_flows, n_candidates = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    looks = [
        [draw(st.lists(links, min_size=n_candidates, max_size=n_candidates)) for _ in range(n_flows)]
        for _ in range(2)
    ]
    capacity = draw(st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=n_links, max_size=n_links))
    weight = [draw(st.integers(1, 12)) / 8 for _ in range(n_flows)]
    return looks, weight, capacity


@given(system=systems())
@settings(max_examples=200)
def test_against_the_obvious_implementation(system):
    """Two looks of all flows: the same paths, loads and number of changes."""
    looks, weight, capacity = system
    rows = list(range(len(weight)))
    slow: list[list[int] | None] = [None] * len(weight)
    fast = slow
    load = np.zeros(len(capacity))
    for candidates in looks:
        slow, slow_load, slow_changed = place_on_candidates_slowly(rows, candidates, weight, capacity, slow)
        fast, load, changed = place(rows, candidates, weight, capacity, fast, load)
        assert fast == slow
        np.testing.assert_allclose(load, slow_load, rtol=0, atol=1e-12)
        assert changed == slow_changed
