"""Layouts against all combinations."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.training.groups import RankGrid
from netplan.training.layouts import Layout, LayoutSpace, layouts

ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


def stage_counts(layers):
    """Return how many equal stages there may be, or such that the ends have one layer less, but some."""
    return {
        n
        for n in range(1, layers + 1)
        if layers % n == 0 or ((layers + 2) % n == 0 and n > 1 and (layers + 2) // n - 1 >= 1)
    }


def every(space):
    """Return all layouts, by trying every combination of every size."""
    found = set()
    for tp, cp, pp, ep, micro, stages in itertools.product(
        range(1, 9), range(1, 5), range(1, 9), range(1, 9), (1, 2, 4, 8), range(1, 9)
    ):
        dp, left = divmod(space.gpus, tp * cp * pp)
        rules = (
            left == 0 and dp > 0,
            space.heads % tp == 0 and space.kv_heads % tp == 0 and space.scale_up % tp == 0,
            cp == 1 or space.sequence % (2 * cp) == 0,
            pp * stages in stage_counts(space.layers),
            space.experts % ep == 0 and cp * dp % ep == 0,
        )
        if not all(rules) or space.global_batch % (dp * micro):
            continue
        if stages > 1 and (pp == 1 or (space.global_batch // (dp * micro)) % pp):
            continue
        for order in space.order:
            if ep not in (1, cp) and order == ORDERS[1]:
                continue
            found.add(Layout(tp, cp, dp, pp, ep, stages, micro, order=order))
    return found


@settings(max_examples=15)
@given(
    gpus=st.sampled_from([8, 16, 24, 32]),
    layers=st.sampled_from([1, 6, 8]),
    heads=st.sampled_from([(4, 4), (8, 2), (6, 3)]),
    experts=st.sampled_from([1, 4, 8]),
    batch=st.sampled_from([16, 48]),
)
def test_equals_all_combinations(gpus, layers, heads, experts, batch):
    """No layout is missed, none comes twice, all make a grid of the GPUs."""
    space = LayoutSpace(
        gpus=gpus, scale_up=8, layers=layers, heads=heads[0], kv_heads=heads[1], sequence=24,
        global_batch=batch, experts=experts, cp=(1, 2, 3, 4), recompute=("none",), order=ORDERS,
    )  # fmt: skip
    found = list(layouts(space))
    assert len(found) == len(set(found))
    assert set(found) == every(space)
    for layout in found:
        grid = RankGrid(
            tp=layout.tp, cp=layout.cp, dp=layout.dp, pp=layout.pp, ep=layout.ep, order=layout.order
        )
        assert grid.n_ranks == layout.n_ranks == gpus


def test_what_is_asked_for_is_kept():
    """Only sizes that are wanted; placements and recomputation multiply."""
    space = LayoutSpace(
        gpus=64, scale_up=8, layers=8, heads=8, kv_heads=8, sequence=32, global_batch=64,
        tp=(8,), pp=(2, 3), virtual_stages=(1,), micro_batch=(1,), placement=("packed", "topology-aware"),
    )  # fmt: skip
    found = list(layouts(space))
    assert {(each.tp, each.pp, each.dp) for each in found} == {(8, 2, 4)}
    assert len(found) == 3 * 2


@pytest.mark.parametrize("gpus", [7, 1000])
def test_no_layout(gpus):
    """GPUs that no sizes multiply to give none."""
    space = LayoutSpace(gpus=gpus, scale_up=8, layers=4, heads=8, kv_heads=8, sequence=32, global_batch=4)
    assert list(layouts(space)) == []


def test_llama_3_405b_on_sixteen_stages():
    """126 layers: 16 stages of 8, the first and the last of 7 (Llama 3 paper, 3.3.2), as published."""
    space = LayoutSpace(
        gpus=16384, scale_up=8, layers=126, heads=128, kv_heads=8, sequence=8192, global_batch=2048,
        micro_batch=(1,), recompute=("none",),
    )  # fmt: skip
    found = {(each.tp, each.pp, each.dp, each.virtual_stages) for each in layouts(space)}
    assert {(8, 16, 128, 1), (8, 16, 128, 4)} <= found
