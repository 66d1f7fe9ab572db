"""Groups of ranks, against Megatron-Core's own rule written out slowly."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netplan.errors import TrafficError
from netplan.training.groups import DEFAULT_ORDER, RankGrid


def megatron_groups(sizes, names):
    """Return groups as Megatron-Core's docstring has them, rank by rank.

    ``sizes``: name to size, fastest first. A rank's number is the sum of coordinate times the product of
    the sizes before; a group has all ranks whose other coordinates are equal.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for coordinate in itertools.product(*(range(size) for size in list(sizes.values())[::-1])):
        at = dict(zip(list(sizes)[::-1], coordinate, strict=True))
        rank, factor = 0, 1
        for name, size in sizes.items():
            rank += at[name] * factor
            factor *= size
        key = tuple(at[name] for name in list(sizes)[::-1] if name not in names)
        groups.setdefault(key, []).append(rank)
    return [sorted(group) for _, group in sorted(groups.items())]


def test_documented_example():
    """Megatron-Core's docstring: 16 GPUs, tp 2, pp 4.

    Tensor groups [g0 g1] [g2 g3] ...; data groups [g0 g2] [g1 g3] ...; pipelines [g0 g4 g8 g12] ...
    """
    grid = RankGrid(tp=2, dp=2, pp=4)
    assert grid.groups("tp").tolist() == [[2 * k, 2 * k + 1] for k in range(8)]
    assert grid.groups("dp").tolist() == [
        [0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]
    ]  # fmt: skip
    assert grid.groups("pp").tolist() == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]


@given(
    tp=st.sampled_from([1, 2, 4]),
    cp=st.sampled_from([1, 2, 3]),
    dp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 3]),
    order=st.sampled_from([DEFAULT_ORDER, "tp-cp-ep-pp-dp", "tp-dp-cp-ep-pp", "pp-dp-tp-cp-ep"]),
    axis=st.sampled_from(["tp", "cp", "dp", "pp", "dp-cp", "tp-cp"]),
)
def test_dense_groups_equal_the_slow_ones(tp, cp, dp, pp, order, axis):
    """All groups of dense layers, in Megatron's order of groups."""
    grid = RankGrid(tp=tp, cp=cp, dp=dp, pp=pp, order=order)
    every = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    sizes = {name: every[name] for name in order.split("-") if name in every}
    assert grid.groups(axis).tolist() == megatron_groups(sizes, axis.split("-"))


@pytest.mark.parametrize(("ep", "axis"), [(1, "ep"), (4, "ep"), (8, "edp"), (2, "edp"), (4, "ep-edp")])
def test_expert_groups_equal_the_slow_ones(ep, axis):
    """Expert groups lie over context and data: tp x ep x edp x pp."""
    grid = RankGrid(tp=2, cp=2, dp=4, pp=3, ep=ep)
    sizes = {"tp": 2, "ep": ep, "edp": 8 // ep, "pp": 3}
    assert grid.groups(axis).tolist() == megatron_groups(sizes, axis.split("-"))


@given(tp=st.integers(1, 4), cp=st.integers(1, 3), dp=st.integers(1, 4), pp=st.integers(1, 3), data=st.data())
def test_groups_part_the_ranks_and_agree_with_the_coordinates(tp, cp, dp, pp, data):
    """Every rank is in one group; in a group only the axis' coordinate differs, and it counts up from 0."""
    ep = data.draw(st.sampled_from([e for e in range(1, cp * dp + 1) if cp * dp % e == 0]))
    grid = RankGrid(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep)
    at = grid.coordinates()
    for axis, grid_of in [(a, ("tp", "cp", "dp", "pp")) for a in ("tp", "cp", "dp", "pp")] + [
        (a, ("tp", "ep", "edp", "pp")) for a in ("ep", "edp")
    ]:
        groups = grid.groups(axis)
        assert sorted(groups.ravel().tolist()) == list(range(grid.n_ranks))
        assert groups.shape[1] == grid.size(axis)
        assert (at[axis][groups] == np.arange(grid.size(axis))).all()
        for other in set(grid_of) - {axis}:
            assert (np.ptp(at[other][groups], axis=1) == 0).all()


def test_sizes():
    """Experts take the place of context and data."""
    grid = RankGrid(tp=8, cp=2, dp=64, pp=16, ep=32)
    assert (grid.n_ranks, grid.edp, grid.size("dp-cp")) == (16384, 4, 128)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"tp": 0}, "tp = 0: groups have at least one rank"),
        ({"dp": 4, "ep": 3}, "ep = 3 does not divide cp x dp = 1 x 4 = 4"),
        ({"order": "tp-dp-pp"}, "order = 'tp-dp-pp' is not tp, cp, ep, dp, pp joined by '-', each once"),
        ({"dp": 4, "ep": 2, "order": "tp-cp-ep-pp-dp", "pp": 2}, "are not the same ranks"),
    ],
)
def test_bad_sizes(sizes, text):
    """What makes no grid is refused with the numbers."""
    with pytest.raises(TrafficError, match=text.replace("(", r"\(")):
        RankGrid(**sizes)


@pytest.mark.parametrize(
    ("axis", "text"),
    [("xp", "axis = 'xp' is not one of"), ("dp-dp", "is not one of"), ("dp-ep", "mixes coordinates")],
)
def test_bad_axes(axis, text):
    """An axis that does not exist, or of two grids."""
    with pytest.raises(TrafficError, match=text):
        RankGrid(dp=2).groups(axis)
