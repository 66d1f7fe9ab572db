"""The study of failures: classes, figures by hand, rates, random draws, refusals."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from netplan import api
from netplan.errors import FabricError, ModelRangeError, TrafficError
from netplan.fabric import LINK_KINDS, TIER_NAMES
from netplan.planning import failures as module
from netplan.planning.failure_classes import element_classes
from netplan.planning.failure_rates import RATES, rates_with
from netplan.planning.failures import Draws, study_failures
from netplan.spec.traffic import CollectiveSpec, PermutationSpec
from tests.contracts.making import damage_of, make_demand, make_fabric, run
from tests.fabrics import (
    fat_tree_k4,
    lab_two_leaves,
    metro_diverse,
    metro_star,
    metro_two_sites,
    rail_2x8,
    three_campuses,
    yaml_fabric,
)

CROSS_LEAF = PermutationSpec.model_validate(
    {"name": "cross", "kind": "permutation", "size": "1 MiB", "cross_leaf": True}
)
ALL_REDUCE = CollectiveSpec.model_validate(
    {"name": "ring", "kind": "all-reduce", "size": "1 GiB", "window": None}
)


def dragonfly_tiny():
    return yaml_fabric("{name: d, kind: dragonfly, radix: 7, hosts: {gpus: 1}}")


def torus_tiny():
    return yaml_fabric("{name: t, kind: torus, dims: [4, 4], hosts: {gpus: 1}}")


def test_classes_of_a_regular_tree():
    """Al-Fares k = 4: one class each: 16 NICs, 3 x 16 cables, 8 leaves, 8 spines, 4 cores."""
    found = {entry.kind: len(entry.failures) for entry in element_classes(fat_tree_k4())}
    assert found == {
        "nic": 16,
        "host_leaf": 16,
        "leaf_spine": 16,
        "spine_core": 16,
        "leaf": 8,
        "spine": 8,
        "core": 4,
    }
    assert len(element_classes(fat_tree_k4())) == 7


def test_classes_of_a_metro_domain():
    """Two equal sites: no class is per site; one span, two sites."""
    found = {entry.kind: len(entry.failures) for entry in element_classes(metro_two_sites())}
    assert found["span"] == 1
    assert found["site"] == 2
    assert found["inter_site"] == 8
    assert found["metro"] == 4
    assert len(element_classes(metro_two_sites())) == len(found)


def test_classes_tell_unlike_elements_apart():
    """Three campuses in a row: every leaf, and each of the two spans, is a class of its own."""
    kinds = [entry.kind for entry in element_classes(three_campuses())]
    assert kinds.count("leaf") == 3
    assert kinds.count("span") == 2
    assert kinds.count("site") == 3


@pytest.mark.parametrize(
    "make",
    [
        fat_tree_k4,
        lab_two_leaves,
        metro_two_sites,
        metro_star,
        metro_diverse,
        three_campuses,
        rail_2x8,
        dragonfly_tiny,
        torus_tiny,
    ],
)
def test_every_failure_can_be_applied(make):
    """What the classes name is what ``--fail`` takes."""
    fabric = make()
    for entry in element_classes(fabric):
        for text in entry.failures:
            assert damage_of(api.fail(fabric, [text])).failures == (text,)


def test_figures_by_hand():
    """Two tiers, 4 spines, 8 leaves of 8 NICs, one per host, all flows across leaves.

    By hand: a spine leaves 3/4; one of two parallel cables takes 1/8 from the flows that touch its leaf: of
    64 flows 8 leave it and 8 enter it, none does both: (48 + 16 x 7/8)/64 of the sum of all rates.
    """
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}\nspine: {count: 4, radix: 16}"
    )
    study = study_failures(fabric, [CROSS_LEAF])
    rows = {row.kind: row for row in study.classes}
    assert rows["spine"].left["cross"] == pytest.approx(3 / 4, rel=1e-9)
    assert rows["leaf_spine"].left["cross"] == pytest.approx((48 + 16 * 7 / 8) / 64, rel=1e-9)
    assert rows["leaf"].left["cross"] == pytest.approx(1, rel=1e-9)
    assert (rows["leaf"].hosts_cut_off, rows["leaf"].gpus_cut_off) == (8, 8)
    assert (rows["nic"].hosts_cut_off, rows["nic"].nic_ports_lost) == (1, 1)
    assert rows["spine"].elements == 4
    assert study.workloads["cross"]["bandwidth_gb_per_s"] == pytest.approx(50 * 4096 / 4178)


def test_minutes_by_hand():
    """4 spines x 1 % a month x 2 h = 4.8 min degraded; a quarter of the bandwidth is lost: 1.2 min.

    Leaves: 8 x 0.5 % x 3 h = 7.2 min; a leaf cuts off 8 of 64 GPUs: 0.9 min lost.
    """
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}\nspine: {count: 4, radix: 16}"
    )
    rates = rates_with({"spine": 1.0, "leaf": 0.5}, {None: 2.0, "leaf": 3.0})
    study = study_failures(fabric, [CROSS_LEAF], kinds=["spine", "leaf"], rates=rates)
    rows = {row.kind: row for row in study.classes}
    assert rows["spine"].failures_per_month == pytest.approx(0.04)
    assert rows["spine"].degraded_minutes_per_month == pytest.approx(4.8)
    assert (rows["spine"].lost_minutes_per_month or {})["cross"] == pytest.approx(1.2)
    assert rows["leaf"].degraded_minutes_per_month == pytest.approx(7.2)
    assert (rows["leaf"].lost_minutes_per_month or {})["cross"] == pytest.approx(0.9)
    totals = study.totals()
    assert totals["degraded_minutes_per_month"] == pytest.approx(12)
    assert totals["lost_minutes_per_month"]["cross"] == pytest.approx(2.1)
    assert totals["unknown_rates"] == []
    assert rows["spine"].rate.confidence == "user"


def test_cuts_take_a_path_each_at_its_own_length():
    """Three paths of 10, 20 and 30 km with 12, 12 and 8 of 32 links; the whole span has no known rate.

    By hand: 0.0227 % per km and month; 32 NICs on each side at 1:1, so with k links left of 32 all flows that
    cross get k/32 under a shift by half (all of them cross).
    """
    fabric = metro_diverse()
    shift = PermutationSpec.model_validate(
        {"name": "shift", "kind": "permutation", "size": "1 MiB", "shift": 32}
    )
    study = study_failures(fabric, [shift], kinds=["span", "whole_span"])
    rows = [row for row in study.classes if row.kind == "span"]
    assert [row.failure for row in rows] == [f"span:north/south/path-{n}" for n in (1, 2, 3)]
    assert [row.length_km for row in rows] == [10, 20, 30]
    for row, links, km in zip(rows, (12, 12, 8), (10, 20, 30), strict=True):
        assert row.left["shift"] == pytest.approx((32 - links) / 32, rel=1e-9)
        assert row.failures_per_month == pytest.approx(0.0227 / 100 * km)
        assert row.hosts_cut_off == 0
    (whole,) = (row for row in study.classes if row.kind == "whole_span")
    assert whole.failure == "span:north/south"
    assert whole.hosts_cut_off == 32
    assert whole.failures_per_month is None
    assert study.totals()["unknown_rates"] == ["whole_span"]


def test_spans_of_one_path_are_named_without_it():
    found = [entry for entry in element_classes(metro_star()) if "span" in entry.kind]
    assert [(entry.kind, entry.failures) for entry in found] == [
        ("span", ("span:hub/east",)),
        ("span", ("span:hub/west",)),
    ]


def test_rates_cover_every_kind_of_cable_and_tier():
    assert {*LINK_KINDS, *TIER_NAMES[1:], "nic", "span", "whole_span", "site"} <= set(RATES)
    for rate in RATES.values():
        assert rate.confidence in ("published", "derived", "assumed", "unknown")
        assert rate.source
        assert (rate.percent_per_month is None) == (rate.confidence == "unknown")


def test_derived_rates_by_hand():
    """2 % in three months; 35 interruptions in 54 days over 16,384 + 16,384 + 16,384/7 cables."""
    assert RATES["spine"].percent_per_month == pytest.approx(-100 * np.log(1 - 0.02) / 3, rel=0.01)
    months = 54 / (365.25 / 12)
    cables = 2 * 16384 + 16384 / 7
    assert RATES["leaf_spine"].percent_per_month == pytest.approx(100 * 35 / cables / months, rel=0.01)
    assert RATES["span"].percent_per_month == pytest.approx(100 * 4.4 / 1609.344 / 12, rel=0.01)


@pytest.mark.parametrize("make", [dragonfly_tiny, torus_tiny])
def test_direct_networks_have_classes_and_rates(make):
    """Every router, every cable between routers and every NIC is an element with a rate."""
    fabric = make()
    study = study_failures(fabric)
    found = {row.kind: 0 for row in study.classes}
    for row in study.classes:
        found[row.kind] += row.elements
        assert row.failures_per_month is not None
    assert found["leaf"] == fabric.n_switches
    assert found["nic"] == fabric.n_endpoints
    assert found.get("local", 0) + found.get("global", 0) == fabric.links.n_cables - fabric.n_endpoints


def test_draws_of_several_sites_and_paths():
    study = study_failures(metro_diverse(), kinds=["metro"], draws=Draws(("fibre_path:2", "site:1"), 6))
    paths, sites = study.random
    assert paths.hosts_cut_off == {"mean": 0, "worst": 0}
    assert 0 < paths.left["permutation"]["worst"] < 1
    assert sites.hosts_cut_off == {"mean": 32, "worst": 32}


def test_a_span_fails_per_km_and_a_site_is_unknown():
    """30 km at 0.0227 % per km and month; no rate for sites: the totals say which kind is missing."""
    study = study_failures(metro_two_sites(), kinds=["span", "site"])
    rows = {row.kind: row for row in study.classes}
    assert rows["span"].failures_per_month == pytest.approx(0.0227 / 100 * 30)
    assert rows["span"].hosts_cut_off == 8
    assert rows["site"].failures_per_month is None
    assert rows["site"].lost_minutes_per_month is None
    assert study.totals()["unknown_rates"] == ["site"]
    assert any("at least" in note for note in study.notes)


def test_one_of_each_class_stands_for_all():
    """On a symmetric fabric under spraying and a shift, simulating all gives what the representative gave."""
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {count: 2, radix: 16}"
    )
    shift = PermutationSpec.model_validate({"name": "s", "kind": "permutation", "size": "1 MiB", "shift": 4})
    one, every = (study_failures(fabric, [shift], exhaustive=e) for e in (False, True))
    for a, b in zip(one.classes, every.classes, strict=True):
        assert (a.kind, a.elements, a.simulated) == (b.kind, b.elements, 1)
        assert b.simulated == b.elements
        if a.kind in {"leaf_spine", "spine"}:
            assert b.left["s"] == pytest.approx(a.left["s"], rel=1e-9)
            assert b.worst["s"] == pytest.approx(a.left["s"], rel=1e-9)


def test_what_is_not_used_is_said():
    """A job on one leaf per rail: spines, and cables to them, change nothing."""
    small = ALL_REDUCE.model_copy(update={"ranks": 32})
    study = study_failures(rail_2x8(), [small])
    rows = {row.kind: row for row in study.classes}
    assert rows["spine"].unused
    assert rows["spine"].left["ring"] == pytest.approx(1, rel=1e-12)
    assert rows["spine"].degraded_minutes_per_month == 0
    assert not rows["nic"].unused
    said = next(note for note in study.notes if note.startswith("Not used by the workloads"))
    assert "switch:spine-0-0" in said


def test_a_job_that_asked_for_all_gpus_gets_what_is_left():
    """64 ranks on 64 GPUs: with a leaf gone it runs on 56."""
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}\nspine: {radix: 64}")
    study = study_failures(fabric, [CROSS_LEAF.model_copy(update={"ranks": 64})], kinds=["leaf"])
    assert study.classes[0].left["cross"] == pytest.approx(1, rel=1e-9)


def test_nothing_left_is_a_row_not_an_error():
    """One leaf: losing it cuts off everything: 0 left, with the reason."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 4, gpus: 1}")
    study = study_failures(fabric, [ALL_REDUCE])
    row = next(row for row in study.classes if row.kind == "leaf")
    assert row.left["ring"] == 0
    assert row.hosts_cut_off == 4
    assert "no host of fabric" in (row.note or "")
    assert any("no host of fabric" in note for note in study.notes)


def test_evict_leaves_hosts_out_that_lost_a_nic():
    """A NIC fails: with ``evict`` its host goes, and the others keep all rings."""
    study = study_failures(rail_2x8(), [ALL_REDUCE], kinds=["nic"], on_dead="evict")
    assert study.classes[0].left["ring"] == pytest.approx(1, rel=1e-9)
    shrink = study_failures(rail_2x8(), [ALL_REDUCE], kinds=["nic"])
    assert shrink.classes[0].left["ring"] == pytest.approx(7 / 8, rel=1e-9)


def test_dual_tors_save_jobs_from_stopping():
    """One port to each of two ToRs: a cable or a ToR costs half of a NIC's rate, but stops no job.

    By hand: rings carry equal parts, so the collective waits for the NIC at half its rate; a job that starts
    again without that port has 15 of its 16 rings. With single ToRs the same cable leaves a NIC without port.
    """
    dual = make_fabric(
        "kind: dual-tor\nradix: 16\nhosts: {count: 16, gpus: 8, nic_speed: 400G}\nleaf: {backup: 0}"
    )
    rows = {row.kind: row for row in study_failures(dual, [ALL_REDUCE]).classes}
    for kind in ("host_leaf", "leaf"):
        assert rows[kind].left["ring"] == pytest.approx(1 / 2, rel=1e-9)
        assert rows[kind].nics_cut_off == 0
        assert rows[kind].stops_per_month == 0
    assert rows["nic"].left["ring"] == pytest.approx(7 / 8, rel=1e-9)
    assert rows["nic"].stops_per_month == rows["nic"].failures_per_month
    evict = study_failures(dual, [ALL_REDUCE], kinds=["host_leaf"], on_dead="evict")
    assert evict.classes[0].left["ring"] == pytest.approx(1 / 2, rel=1e-9)
    again = ALL_REDUCE.model_copy(update={"failover": "none"})
    for row in study_failures(dual, [again], kinds=["host_leaf", "leaf"]).classes:
        assert row.left["ring"] == pytest.approx(15 / 16, rel=1e-9)
    single = {row.kind: row for row in study_failures(rail_2x8(), [ALL_REDUCE]).classes}
    for kind in ("nic", "host_leaf", "leaf"):
        assert single[kind].left["ring"] == pytest.approx(7 / 8, rel=1e-9)
        assert single[kind].stops_per_month == single[kind].failures_per_month
    assert single["spine"].stops_per_month == 0


def test_refuse():
    """``refuse`` names the host and what it lost."""
    damaged = api.fail(rail_2x8(), ["nic:host-00003/2"])
    with pytest.raises(TrafficError, match="host-00003 lost 1 of its 8 NIC ports"):
        make_demand(damaged, "kind: all-reduce\nsize: 1 MiB", on_dead="refuse")
    assert make_demand(damaged, "kind: all-reduce\nsize: 1 MiB\nranks: 24", on_dead="refuse").n_ranks == 24
    with pytest.raises(TrafficError, match="after the failures, 56 GPUs"):
        make_demand(damaged, "kind: all-reduce\nsize: 1 MiB\nranks: 64", on_dead="evict")


def test_gpus_of_a_lost_nic_use_the_next():
    """NIC 2 of host 3 is gone: GPU 2 sends by NIC 3, GPU 7 of a host without NIC 7 by NIC 0."""
    damaged = api.fail(rail_2x8(), ["nic:host-00003/2", "nic:host-00004/7"])
    flow = "kind: flows\nflows: [{src: 26, dst: 39, size: 1 MB}]"
    demand = make_demand(damaged, flow)
    assert damaged.endpoints.rail[demand.src].tolist() == [3]
    assert damaged.endpoints.rail[demand.dst].tolist() == [0]
    assert run(damaged, demand, "spray").efficiency.mean_flow == pytest.approx(1)


@pytest.mark.parametrize("placement", ["packed", "random", "fragmented"])
def test_other_hosts_keep_their_order(placement):
    """A dead host is taken out of the order of the whole fabric, nothing else moves."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {radix: 16}")
    damaged = api.fail(fabric, ["host:host-00005"])
    text = f"kind: all-reduce\nsize: 1 MiB\nplacement: {{kind: {placement}}}"
    before, after = make_demand(fabric, text), make_demand(damaged, text)
    hosts = fabric.endpoints.host[before.src[::2]].tolist()
    hosts.remove(5)
    assert damaged.endpoints.host[after.src[::2]].tolist() == hosts


def test_random_draws():
    """Mean, worst and the seed of the worst; drawn anew each time, the same for the same seed."""
    draws = Draws(("leaf_spine:2", "spine:1"), 8)
    study = study_failures(fat_tree_k4(), [CROSS_LEAF], kinds=["core"], draws=draws, seed=3)
    again = study_failures(fat_tree_k4(), [CROSS_LEAF], kinds=["core"], draws=draws, seed=3)
    assert json.dumps(study.to_dict(), sort_keys=True) == json.dumps(again.to_dict(), sort_keys=True)
    two, spine = study.random
    assert (two.failure, two.samples) == ("random:leaf_spine:2", 8)
    left = two.left["cross"]
    assert left["worst"] <= left["mean"] < 1
    assert 3 <= left["worst_seed"] < 11
    # All spines of this tree are alike, and so is what is left on average over the same flows.
    assert spine.left["cross"]["mean"] < 1
    assert spine.hosts_cut_off == {"mean": 0.0, "worst": 0.0}


@pytest.mark.parametrize("routing", ["ecmp", "adaptive", "ib-static", "spray"])
def test_every_routing(routing):
    """The table has finite figures under every kind of routing."""
    study = study_failures(fat_tree_k4(), routing=routing)
    for row in study.classes:
        assert all(0 <= left < 2 for left in row.left.values())
        assert np.isfinite(row.degraded_minutes_per_month or 0)


def test_4096_gpus_take_less_than_a_minute():
    """The single-failure table of a three-tier SuperPOD of 4,096 GPUs (takes about 5 s on two cores)."""
    begun = time.perf_counter()
    study = study_failures(api.load_fabric("superpod-b200-16su"))
    assert time.perf_counter() - begun < 60
    assert len(study.classes) == 7


def test_every_kind_has_a_rate_with_source():
    """A figure, its source and how sure it is; what nobody publishes says so."""
    for rate in RATES.values():
        assert rate.source
        assert rate.confidence in {"published", "derived", "assumed", "unknown"}
        assert (rate.percent_per_month is None) == (rate.confidence == "unknown")
    assert RATES["host_leaf"].percent_per_month == 0.057
    assert RATES["leaf"].percent_per_month == 0.051


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"kinds": ["spin"]}, "did you mean spine"),
        ({"kinds": ["core"]}, "has no element of kind core"),
        ({"draws": Draws(("cable:200%",))}, "200% is out of range"),
        ({"draws": Draws(("cabel:1",))}, "did you mean cable"),
        ({"draws": Draws(("cable:1",), 0)}, "samples = 0 is too few"),
    ],
)
def test_refusals(arguments, says):
    """Each names what was asked for and what is accepted."""
    with pytest.raises(FabricError) as refusal:
        study_failures(lab_two_leaves(), [ALL_REDUCE], **arguments)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("percent", "repair", "says"),
    [
        ({"leaf": 101.0}, {}, "leaf=101% is out of range"),
        ({"leave": 1.0}, {}, "did you mean leaf"),
        ({}, {"leave": 1.0}, "did you mean leaf"),
        ({}, {None: 0.0}, "repair time 0 h is out of range"),
    ],
)
def test_rates_out_of_range(percent, repair, says):
    """Each names the kind and the range."""
    with pytest.raises(FabricError) as refusal:
        rates_with(percent, repair)
    assert says in str(refusal.value)


def test_too_many_runs(monkeypatch):
    """What would take days is refused before it begins."""
    monkeypatch.setattr(module, "MOST_RUNS", 10)
    with pytest.raises(ModelRangeError, match="at most 10"):
        study_failures(fat_tree_k4(), [ALL_REDUCE], exhaustive=True)
