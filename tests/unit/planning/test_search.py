"""Searching for parameters: the scene, the knobs, and what a search returns."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

from netplan.catalog.parts import shipped_catalogue
from netplan.congestion.cc.registry import PROTOCOLS
from netplan.errors import ModelRangeError, OutputError
from netplan.planning.search import Scene, Search, find_knobs, make_scene, run_trial, search
from netplan.planning.tune import Asked, tune
from netplan.report.tuning import draw_landscape, search_tables
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.traffic import build_demand
from tests.fabrics import lab_two_leaves, metro_two_sites, rails_only_one_tier


def demand_of(fabric, text: str):
    return build_demand(fabric, validate(TRAFFIC_SPEC, parse_yaml(text, "t.yaml")), seed=0)


@cache
def incast(size: str = "1 MiB", cc: str = "dcqcn", routing: str = "ecmp", **asked) -> Scene:
    """Three hosts send to the fourth at once, 400G everywhere."""
    fabric = lab_two_leaves()
    demand = demand_of(fabric, f"{{name: i, kind: incast, senders: 3, size: {size}}}")
    tuning = tune(fabric, shipped_catalogue(), Asked(cc=cc, switches={"*": "sn5600"}, **asked))
    return make_scene(fabric, demand, tuning, routing=routing, n_seeds=1)


@cache
def small_search() -> Search:
    return search(incast(), "dcqcn", over=("timer_s", "ecn"), grid=2, most_trials=7)


def test_the_bound_is_the_time_of_the_busiest_link():
    """Three times 1 MiB with 82 bytes around each 4096 at 50e9 B/s, after the one-way latency of the nearest.

    One sender shares the receiver's leaf: 2 x 3 m of cable, one switch, 2.6 us of NICs and hosts.
    """
    scene = incast()
    wire = 3 * 2**20 * (4096 + 82) / 4096
    assert scene.bound_s == pytest.approx(wire / 50e9 + 2 * 3 * 5.05e-9 + 1e-6 + 2.6e-6)


def test_the_way_back_is_the_way_there_reversed():
    scene = incast()
    network, flows = scene.network, scene.flows
    for f in range(len(flows.size)):
        there = flows.path_link[flows.path_ptr[f] : flows.path_ptr[f + 1]]
        back = flows.back_link[flows.back_ptr[f] : flows.back_ptr[f + 1]]
        assert network.src[back].tolist() == network.dst[there][::-1].tolist()
        assert network.dst[back].tolist() == network.src[there][::-1].tolist()


def test_without_congestion_control_an_incast_needs_little_more_than_the_bound():
    """PFC alone keeps the receiver's cable busy: bound over completion is near 1, and never above."""
    trial = run_trial(incast("4 MiB", "none"), PROTOCOLS.find("none"), {}, {}, coarse=False)
    assert 0.97 < trial.efficiency <= 1.0
    assert trial.drops == 0


def test_a_search_returns_the_best_of_its_trials():
    found = small_search()
    assert found.best.efficiency >= found.start.efficiency
    assert found.trials == 7
    assert found.start.values == pytest.approx({"timer_s": 300e-6, "ecn": 1.0})
    low, high = 300e-6 / 16, 300e-6 * 16
    corners = [(low, 1 / 16), (high, 1 / 16), (low, 16), (high, 16)]
    seen = [(trial.values["timer_s"], trial.values["ecn"]) for trial in found.landscape]
    np.testing.assert_allclose(seen, corners, rtol=1e-9)


def test_a_search_is_the_same_for_the_same_arguments():
    again = search(incast(), "dcqcn", over=("timer_s", "ecn"), grid=2, most_trials=7)
    assert again.to_dict() == small_search().to_dict()


def test_knobs_that_change_nothing_are_said_to():
    """A flow alone on its path is never marked."""
    fabric = lab_two_leaves()
    demand = demand_of(fabric, "{name: p, kind: point-to-point, size: 1 MiB, src: 0, dst: 2}")
    tuning = tune(fabric, shipped_catalogue(), Asked(switches={"*": "sn5600"}))
    scene = make_scene(fabric, demand, tuning, n_seeds=1)
    found = search(scene, "dcqcn", over=("timer_s",), grid=2, most_trials=3)
    assert "The knobs change nothing here" in found.notes[-1]


def test_the_rules_parameters_are_run_beside():
    found = search(
        incast(),
        "dcqcn",
        over=("timer_s",),
        ruled={
            **{each.name: each.default for each in PROTOCOLS.find("dcqcn").parameters},
            "timer_s": 1e-4,
        },
        grid=2,
        most_trials=3,
    )
    assert found.ruled is not None
    assert found.ruled.values == {"timer_s": 1e-4}
    assert [row[0] for row in search_tables(found)[0].rows] == ["start", "by rule", "best"]


def test_long_flows_are_cut_and_it_is_said():
    """100 round trips of about 12 us at 50e9 B/s: some 60 MB."""
    scene = incast("1 GiB")
    assert scene.flows.size.max() < 100e6
    assert any("cut to 100 round trips" in note for note in scene.notes)


@pytest.mark.parametrize(
    ("names", "says", "hint"),
    [
        (("timers",), "nothing called 'timers'", "timer_s"),
        (("timer_s", "timer_s"), "is named twice", None),
        (("byte_counter",), "starts at 0", "give a start"),
    ],
)
def test_knobs_that_cannot_be(names, says, hint):
    with pytest.raises(ModelRangeError, match=says) as error:
        find_knobs(PROTOCOLS.find("dcqcn"), names)
    assert hint is None or hint in str(error.value.hint)


def test_usual_knobs():
    assert [knob.name for knob in find_knobs(PROTOCOLS.find("dcqcn"))] == [
        "timer_s",
        "ecn",
        "rate_ai",
        "min_dec_fac",
    ]
    assert find_knobs(PROTOCOLS.find("dcqcn-connectx"))[0].name == "timer_s"
    knob = next(knob for knob in find_knobs(PROTOCOLS.find("hpcc")) if knob.name == "eta")
    assert knob.high == 1.0  # its own limit, not 16 times the start
    with pytest.raises(ModelRangeError, match="nothing called 'ecn'"):
        find_knobs(PROTOCOLS.find("hpcc"), ("ecn",))
    with pytest.raises(ModelRangeError, match="no parameter to search over"):
        find_knobs(PROTOCOLS.find("none"))


@pytest.mark.parametrize(
    ("asked", "qps", "says"),
    [
        (Asked(switches={"*": "jericho-3"}), 1, "are not all known"),
        (Asked(pool_bytes=1e6), 1, "do not hold the headroom"),
        (Asked(switches={"*": "jericho-2"}), 512, "QPs in a phase; a search takes at most 2,048"),
    ],
)
def test_scenes_that_the_engine_cannot_run(asked, qps, says):
    fabric = metro_two_sites()
    demand = demand_of(fabric, f"{{name: p, kind: permutation, size: 1 MiB, qps: {qps}}}")
    tuning = tune(fabric, shipped_catalogue(), asked)
    with pytest.raises(ModelRangeError, match=says):
        make_scene(fabric, demand, tuning)


def test_flows_must_keep_to_single_paths():
    with pytest.raises(ModelRangeError, match="spreads flows over many paths"):
        incast(routing="spray")


def test_a_demand_that_stays_inside_hosts_has_nothing_to_search():
    fabric = rails_only_one_tier()
    tuning = tune(fabric, shipped_catalogue(), Asked(switches={"*": "sn5600"}))
    with pytest.raises(ModelRangeError, match="sends nothing over the network"):
        make_scene(fabric, demand_of(fabric, "{name: a, kind: all-reduce, size: 1 MiB, ranks: 2}"), tuning)


def test_too_few_trials():
    with pytest.raises(ModelRangeError, match="fewer than the start and a landscape of 9 points"):
        search(incast(), "dcqcn", over=("timer_s", "ecn"), grid=3, most_trials=9)


def test_the_picture_has_a_cell_for_each_trial():
    svg = draw_landscape(small_search(), ".svg")
    texts = [node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"timer_s", "ecn", "4.8 ms", "x 0.0625", "x 16"} <= set(texts)
    labels = {f"{trial.efficiency:.3f}" for trial in small_search().landscape}
    assert labels <= set(texts)
    assert draw_landscape(small_search(), "png").startswith(b"\x89PNG")
    with pytest.raises(OutputError, match="'bmp'"):
        draw_landscape(small_search(), "bmp")
