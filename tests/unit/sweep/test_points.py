"""Points of grids and draws."""

import itertools
import math

import pytest

from netplan.errors import SpecError
from netplan.spec.sweep import SWEEP_SPEC, SweepSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate
from netplan.sweep.points import count_points, make_points
from netplan.units import parse_time


def spec(text: str) -> SweepSpec:
    head = "name: s\nfabric: lab-2-leaf\ntraffic: incast-8\n"
    return validate(SWEEP_SPEC, parse_yaml(head + text, "s.yaml"))


def test_a_grid_is_every_combination_the_last_running_fastest():
    found = spec("vary: {routing: [ecmp, spray], traffic.qps: [1, 2, 4]}\n")
    points = [(point["routing"], point["traffic.qps"]) for point in make_points(found)]
    assert points == list(itertools.product(("ecmp", "spray"), (1, 2, 4)))
    assert count_points(found) == 6


def test_points_written_out_are_combined_with_what_varies():
    found = spec("set: {seed: 3}\nvary: {routing: [ecmp, spray]}\npoints: [{mtu: 1024}, {mtu: 4096}]\n")
    points = list(make_points(found))
    assert [(p["mtu"], p["routing"], p["seed"]) for p in points] == [
        (1024, "ecmp", 3),
        (1024, "spray", 3),
        (4096, "ecmp", 3),
        (4096, "spray", 3),
    ]
    assert count_points(found) == 4
    alone = spec("points: [{mtu: 1024}, {mtu: 4096}]\n")
    assert [p["mtu"] for p in make_points(alone)] == [1024, 4096]
    assert count_points(alone) == 2


def test_steps_of_a_range_hold_both_ends_and_are_even_on_their_scale():
    found = spec("vary: {cc.dcqcn.timer_s: {low: 10us, high: 1ms, scale: log, steps: 3}}\n")
    times = [parse_time(point["cc.dcqcn.timer_s"]) for point in make_points(found)]
    assert times == pytest.approx([1e-5, 1e-4, 1e-3])
    whole = spec("vary: {traffic.qps: {low: 1, high: 9, steps: 5}}\n")
    assert [point["traffic.qps"] for point in make_points(whole)] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("method", ["random", "latin-hypercube"])
def test_draws_stay_in_their_range_and_follow_the_seed(method):
    text = (
        "vary:\n"
        "  cc.dcqcn.timer_s: {low: 10us, high: 1ms, scale: log}\n"
        "  traffic.qps: {low: 1, high: 4}\n"
        "  routing: [ecmp, spray]\n"
        f"sample: {{method: {method}, points: 80, seed: %d}}\n"
    )
    one, again, other = (list(make_points(spec(text % seed))) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert len(one) == count_points(spec(text % 1)) == 80
    for point in one:
        assert 1e-5 <= parse_time(point["cc.dcqcn.timer_s"]) <= 1e-3
        assert point["traffic.qps"] in (1, 2, 3, 4)
    assert {point["traffic.qps"] for point in one} == {1, 2, 3, 4}
    assert {point["routing"] for point in one} == {"ecmp", "spray"}


def test_a_latin_hypercube_uses_every_part_of_a_scale_once():
    found = spec(
        "vary: {cc.dcqcn.timer_s: {low: 10us, high: 1ms, scale: log}, traffic.qps: [1, 2, 4, 8]}\n"
        "sample: {method: latin-hypercube, points: 40}\n"
    )
    points = list(make_points(found))
    places = [
        (math.log(parse_time(point["cc.dcqcn.timer_s"])) - math.log(1e-5)) / math.log(100) for point in points
    ]
    assert sorted(int(place * 40) for place in places) == list(range(40))
    counts = [sum(point["traffic.qps"] == qps for point in points) for qps in (1, 2, 4, 8)]
    assert counts == [10, 10, 10, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vary: {}\n", "nothing varies: the grid is empty"),
        ("vary: {routing: []}\n", "vary.routing has no values: the grid is empty"),
        ("set: {routing: ecmp}\nvary: {routing: [spray]}\n", "is also in `set`"),
        ("vary: {routing: [spray]}\npoints: [{routing: ecmp}]\n", "is also in `vary`"),
        ("vary: {mtu: [256]}\nsample: {points: 5}\n", "is not used by a grid"),
        ("vary: {mtu: [256]}\nsample: {method: random}\n", "needs a number of points"),
        ("vary: {mtu: [256]}\nreplicas: 0\n", "must be at least 1"),
        ("vary: {mtu: {low: 1, high: 5, scale: cubic}}\n", "must be one of linear, log"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(text, message):
    with pytest.raises(SpecError) as caught:
        spec(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("range_", "message"),
    [
        ("{low: 5, high: 1, steps: 3}", "vary.x: low = 5 is above high = 1"),
        ("{low: 0, high: 1, scale: log, steps: 3}", "low = 0: a logarithmic scale needs more than 0"),
        ("{low: 1us, high: 5M, steps: 3}", "both must be numbers, or quantities of one dimension"),
        ("{low: 1us, high: 5, steps: 3}", "both must be numbers, or quantities of one dimension"),
        ("{low: 1, high: 5}", "a grid needs the number of steps"),
    ],
)
def test_a_range_that_is_none_is_refused(range_, message):
    with pytest.raises(SpecError) as caught:
        list(make_points(spec(f"vary: {{x: {range_}}}\n")))
    assert message in str(caught.value)


def test_all_wrong_ranges_are_told_at_once():
    found = spec("vary: {x: {low: 5, high: 1, steps: 3}, y: {low: 1, high: 5}}\n")
    with pytest.raises(SpecError) as caught:
        list(make_points(found))
    assert len(caught.value.faults) == 2
