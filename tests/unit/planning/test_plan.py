"""Plans: bounds against bills, closed forms against failure studies, the front against all pairs."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan import api
from netplan.catalog.parts import shipped_catalogue
from netplan.errors import CatalogError, FabricError
from netplan.planning import bom
from netplan.planning.failures import RATES, study_failures
from netplan.planning.growth import regrow
from netplan.planning.plan import Amount, Limits, Rejection, Request, plan_designs
from netplan.planning.plan.bounds import Bound, Crowded, bound
from netplan.planning.plan.boxes import find_boxes
from netplan.planning.plan.even import even_ports, even_split
from netplan.planning.plan.families import GENERATORS, Ground
from netplan.planning.plan.families.direct import fewest_routers
from netplan.planning.plan.growing import later_names
from netplan.planning.plan.impact import failing
from netplan.planning.plan.metro import share_out
from netplan.planning.plan.pareto import beats, rank
from netplan.planning.plan.search import NoDesignError
from netplan.planning.plan.survey import Survey, build_spec, cut_bound, reaches_all, survey
from netplan.planning.plan.trial import amounts, try_out
from netplan.planning.plan.workloads import demands, grouped_all_to_all, hosts_of_group, large_efficiency
from netplan.report.plans import design_yaml, write_designs
from netplan.routing import RoutingOptions
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario
from netplan.spec.traffic import AllToAllSpec, PermutationSpec
from netplan.topology import FAMILIES
from netplan.traffic import build_demand
from tests.fabrics import yaml_fabric

#: Quick to build, with every sort of family, planes and ratios.
SMALL = Request(gpus=256, seed=3)


def surveys(request: Request) -> list[Survey]:
    """All candidates of a request that can be built."""
    catalogue = shipped_catalogue()

    def boxes(nic_ports):
        return find_boxes(catalogue, request, request.nic_rate / nic_ports)

    ground = Ground(request, request.host_spec(request.hosts), boxes)
    proposed = [each for kind in request.kinds for each in GENERATORS.find(kind).propose(ground)]
    found = [survey(each, request, catalogue) for each in proposed]
    return [each for each in found if isinstance(each, Survey)]


@pytest.fixture(scope="module")
def small():
    return surveys(SMALL)


@pytest.fixture(scope="module")
def plan():
    return plan_designs(SMALL)


# ---- Candidates ----------------------------------------------------------------------------------------


def test_every_family_but_those_of_other_families_and_of_lists_proposes_something():
    assert set(GENERATORS.names()) == set(FAMILIES.names()) - {"metro", "custom"}


def test_what_is_proposed_has_the_hosts_asked_for_and_a_fitting_name(small):
    assert {each.candidate.family for each in small} >= {
        "leaf-spine",
        "rail-optimized",
        "multi-plane",
        "torus",
    }
    for each in small:
        fabric = build_spec(each.candidate.spec)
        assert fabric.n_gpus == each.gpus == 256
        assert fabric.name == each.candidate.name
        assert sum(each.switches.values()) == fabric.n_switches
        assert sum(each.cables.values()) == fabric.links.n_cables
        assert sum(group.count for group in each.groups) == fabric.links.n_cables


def test_a_switch_is_used_at_the_ports_speed_else_with_split_ports():
    catalogue = shipped_catalogue()
    boxes = find_boxes(catalogue, Request(gpus=64, switches=("q3400", "qm9700")), 50e9)
    assert [(box.radix, box.breakout, box.parts) for box in boxes] == [
        (64, 1, ("qm9700",)),
        (144, 2, ("q3400",)),
    ]


def test_without_a_wish_the_best_documented_switch_stands_for_those_alike():
    every = find_boxes(shipped_catalogue(), Request(gpus=64, switches=("all",)), 50e9)
    chosen = find_boxes(shipped_catalogue(), Request(gpus=64), 50e9)
    alike = next(box.parts for box in every if (box.radix, box.breakout) == (64, 1))
    assert {"qm9700", "sn5400", "tomahawk-4"} <= set(alike)
    assert next(box.parts for box in chosen if (box.radix, box.breakout) == (64, 1)) == ("qm9700",)


@pytest.mark.parametrize(("hosts", "radix", "ratio"), [(64, 64, 2.0), (40, 32, 2.0), (100, 48, 1.0)])
def test_the_hyperx_has_the_fewest_routers(hosts, radix, ratio):
    # Every grid of up to three dimensions, every number of hosts a router, bundles just as bisection asks.
    nics = 8
    best = None
    for per_router in range(1, radix // nics + 1):
        for count in (1, 2, 3):
            for dims in itertools.combinations_with_replacement(range(2, 65), count):
                routers = int(np.prod(dims))
                if routers * per_router < hosts or routers > 128:
                    continue
                endpoints = per_router * nics
                bundles = [-(-2 * endpoints // (ratio * size)) for size in dims]
                if endpoints + sum(k * (s - 1) for k, s in zip(bundles, dims, strict=True)) <= radix:
                    best = routers if best is None else min(best, routers)
    found = fewest_routers(hosts, nics, radix, ratio)
    assert (None if found is None else int(np.prod(found[0]))) == best


def test_sites_share_the_hosts():
    assert share_out(Request(gpus=8 * 10, sites=3, span=1e4)) == [4, 3, 3]


# ---- Bounds --------------------------------------------------------------------------------------------


def test_no_bound_is_above_the_bill_and_none_is_far_below(small):
    catalogue = shipped_catalogue()
    seen = 0
    for each in small:
        part = each.candidate.parts[0]
        found = bound(each, catalogue.switch(part), catalogue, has_floor=False)
        wishes = bom.Wishes(switches={"*": part}, nic=each.nic)
        fabric = build_spec(each.candidate.spec)
        if isinstance(found, Rejection) and "too few ports" in found.reason:
            with pytest.raises(CatalogError, match="too few ports"):
                bom.bill(fabric, catalogue, wishes)
            continue
        made = bom.bill(fabric, catalogue, wishes)
        if isinstance(found, Rejection):
            assert any("cages" in remark for remark in made.remarks)
            continue
        seen += 1
        for least, real in zip((found.cost, found.power), amounts(made), strict=True):
            assert least.mid <= real.mid * (1 + 1e-9)
            assert least.mid >= 0.8 * real.mid  # whole modules and plugs
            assert set(least.unknown) == set(real.unknown)
            assert all(pieces <= real.unknown[part] + 1e-9 for part, pieces in least.unknown.items())
            assert set(least.large) == set(real.large)
        assert least.is_at_most(real)
    assert seen > 20


def test_no_routing_is_better_than_the_cuts_allow(small):
    narrow = [each for each in small if each.most_efficiency < 0.99]
    assert len(narrow) > 5
    for each in narrow[:: max(len(narrow) // 8, 1)]:
        fabric = build_spec(each.candidate.spec)
        for routing in ("spray", "ecmp", "ideal"):
            for workload in demands(fabric, SMALL):
                options = RoutingOptions(seed=1)
                found = large_efficiency(simulate(Scenario(fabric, workload.demand, routing, options)))
                bounded = cut_bound(fabric, workload.demand)
                if routing == "ideal":
                    continue  # it takes the network away: it may be above
                assert found <= bounded + 1e-6, (each.candidate.name, workload.name, routing)


def test_the_cut_of_a_shift_is_the_oversubscription():
    # 4 leaves of 8 hosts; NIC i sends to NIC i + 8, so all leave their leaf: 8 down on 4 up is one half.
    fabric = yaml_fabric(
        "{name: f, kind: leaf-spine, radix: 12, hosts: {count: 32, gpus: 1, nic_speed: 400G},"
        " leaf: {downlinks: 8, uplinks: 4}}"
    )
    spec = PermutationSpec(name="p", kind="permutation", size=64 * 2**20, shift=8)
    demand = build_demand(fabric, spec)
    assert cut_bound(fabric, demand) == pytest.approx(0.5)
    found = simulate(Scenario(fabric, demand, "spray", RoutingOptions()))
    assert large_efficiency(found) == pytest.approx(0.5, abs=1e-6)


# ---- Workloads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaf-spine", "dual-tor"])
def test_one_group_of_all_hosts_is_the_all_to_all_with_pxn(name):
    fabric = yaml_fabric(
        f"{{name: f, kind: {name}, radix: 64, hosts: {{count: 6, gpus: 4, nic_speed: 400G}}}}"
    )
    grouped = grouped_all_to_all(fabric, 6, size=2**30)
    whole = build_demand(fabric, AllToAllSpec(name="a", kind="all-to-all", size=2**30))

    def flows(demand):
        return sorted(
            zip(demand.src.tolist(), demand.dst.tolist(), demand.size.round(3).tolist(), strict=True)
        )

    assert flows(grouped) == flows(whole)
    assert grouped.phases[0].scale_up_s == pytest.approx(whole.phases[0].scale_up_s)
    assert grouped.busbw_factor == pytest.approx(whole.busbw_factor)


def test_groups_are_apart_and_bounded():
    fabric = api.load_fabric("lab-2-leaf")
    demand = grouped_all_to_all(fabric, 2, seed=1)
    host = fabric.host_index[fabric.endpoints.host]
    partner: dict[int, set[int]] = {}
    for a, b in zip(host[demand.src].tolist(), host[demand.dst].tolist(), strict=True):
        partner.setdefault(a, set()).add(b)
    assert all(len(others) == 1 for others in partner.values())
    assert hosts_of_group(Request(gpus=1024)) == 8
    assert hosts_of_group(Request(gpus=72 * 8, gpus_per_host=72)) == 2


# ---- Failures ------------------------------------------------------------------------------------------

FAILING = {
    "leaf-spine": "{name: f, kind: leaf-spine, radix: 16, hosts: {count: 12, gpus: 4, nic_speed: 400G}}",
    "rail-only": "{name: f, kind: rail-only, radix: 16, hosts: {count: 12, gpus: 4, nic_speed: 400G}}",
    "dual-tor": "{name: f, kind: dual-tor, radix: 16, hosts: {count: 12, gpus: 4, nic_speed: 400G}}",
    "per-nic": "{name: f, kind: multi-plane, planes: 2, assignment: per-nic, radix: 16,"
    " hosts: {count: 16, gpus: 4, nic_speed: 400G}}",
    "fat-tree": "{name: f, kind: fat-tree, k: 4}",
    "fewer NICs": "{name: f, kind: leaf-spine, radix: 16,"
    " hosts: {count: 8, gpus: 8, nics: 4, nic_speed: 400G}}",
    "torus": "{name: f, kind: torus, dims: [3, 3], hosts: {gpus: 4, nic_speed: 400G}}",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING.keys())
def test_stops_and_the_worst_leaf_are_those_of_a_failure_study(text):
    fabric = yaml_fabric(text)
    found = failing(fabric)
    routing = "minimal" if fabric.direct is not None else "spray"
    kinds = ("nic", "host_leaf", "leaf", *(("spine",) if fabric.nodes.tier.max() > 1 else ()))
    study = study_failures(fabric, routing=routing, kinds=kinds, exhaustive=True)
    assert found.stops_per_month == pytest.approx(study.totals()["stops_per_month"])
    leaf = next(row for row in study.classes if row.kind == "leaf")
    assert found.worst_nics == max(row.nics_cut_off for row in study.classes if row.kind == "leaf")
    assert (found.worst_nics > 0) == (leaf.nics_cut_off > 0)


@pytest.mark.parametrize("kind", ["spine", "leaf_spine"])
def test_lost_minutes_above_the_leaves_are_those_of_a_failure_study(kind):
    # Four leaves of four hosts, four spines; NIC i sends to NIC i + 4: all of it crosses a spine. Without one
    # spine of four a quarter is gone; without one cable of sixteen its leaf is at 3/4: 1/16 of all.
    fabric = yaml_fabric(
        "{name: f, kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1, nic_speed: 400G}}"
    )
    spec = PermutationSpec(name="p", kind="permutation", size=64 * 2**20, shift=4)
    study = study_failures(fabric, (spec,), kinds=(kind,), exhaustive=True)
    lost = study.totals()["lost_minutes_per_month"]["p"]
    only = {
        name: rate if name == kind else replace(rate, percent_per_month=0.0) for name, rate in RATES.items()
    }
    expected = failing(fabric, only).lost_minutes_per_month
    # A cable's loss also takes from the flows that arrive over it.
    assert lost == pytest.approx(expected * (2 if kind == "leaf_spine" else 1), rel=1e-6)


def test_what_meets_only_in_hosts_does_not_reach_all():
    assert reaches_all(yaml_fabric(FAILING["leaf-spine"]))
    assert reaches_all(yaml_fabric(FAILING["dual-tor"]))
    assert not reaches_all(yaml_fabric(FAILING["rail-only"]))
    assert not reaches_all(yaml_fabric(FAILING["per-nic"]))
    assert reaches_all(yaml_fabric(FAILING["torus"]))
    assert not reaches_all(api.load_fabric("rail-131k"))


# ---- The front -----------------------------------------------------------------------------------------


def test_unknown_figures_are_never_taken_for_nothing():
    known, cheap = Amount(1, 5, 9), Amount(0, 1, 2, {"x": 3}, ("x",))
    assert not cheap.is_at_most(known)  # x may cost anything
    assert not known.is_at_most(cheap)  # or nothing
    assert cheap.is_at_most(replace(cheap, mid=2.0))
    assert cheap.is_at_most(replace(cheap, unknown={"x": 4}))
    assert not replace(cheap, unknown={"x": 4}).is_at_most(cheap)


amounts_of = st.builds(
    lambda mid, x: Amount(mid, mid, mid, {"x": x} if x else {}), st.integers(0, 4), st.integers(0, 2)
)


@given(
    st.lists(
        st.tuples(amounts_of, amounts_of, st.integers(1, 4), st.integers(1, 3), st.booleans()), max_size=8
    )
)
@settings(max_examples=100, deadline=None)
def test_beating_is_a_strict_order_and_the_front_is_what_nothing_beats(rows):
    class Row:
        def __init__(self, cost, power, efficiency, stops, reach):
            self.cost, self.power, self.efficiency = cost, power, efficiency / 4
            self.stops, self.any_to_any = float(stops), reach

    these = [Row(*row) for row in rows]
    for a, b, c in itertools.product(these, repeat=3):
        assert not beats(a, a)
        assert not (beats(a, b) and beats(b, a))
        assert not (beats(a, b) and beats(b, c)) or beats(a, c)
    front = [a for a in these if not any(beats(b, a) for b in these)]
    assert not these or front
    for a in these:  # each that is beaten is beaten by one of the front
        assert a in front or any(beats(b, a) for b in front)


def test_what_was_not_tried_cannot_be_on_the_front_when_the_plan_says_it_is_exact(plan):
    # Everything simulated, against a search that stops early: the early front holds wherever it claims to.
    every = plan_designs(replace(SMALL, simulate=500))
    assert every.is_exact
    assert not any(not each.is_beaten for each in every.skipped)
    figures = {design.name: design for design in every.designs}
    for each in plan.skipped:
        name = each.name.partition(" of ")[0]
        if each.is_beaten and name in figures:
            assert not figures[name].pareto, each
    assert len(every.designs) > len(plan.designs)


def test_designs_are_ranked_by_weighted_ratios(plan):
    cost_only = rank(plan.designs, {"cost": 1.0})
    priced = [design for design in cost_only if design.is_priced]
    assert [design.cost.mid for design in priced] == sorted(design.cost.mid for design in priced)
    assert priced[0].score == 1
    best = rank(plan.designs, {"efficiency": 1.0})
    assert best[0].efficiency == max(design.efficiency for design in plan.designs)
    assert all(design.score >= 1 for design in plan.designs)
    assert [design.is_priced for design in plan.designs] == sorted(
        (design.is_priced for design in plan.designs), reverse=True
    )


def test_a_plan_has_distinct_designs_and_beaten_ones(plan):
    assert len({json.dumps(dict(design.spec)) for design in plan.designs}) == len(plan.designs) >= 6
    assert 2 <= len(plan.front) < len(plan.designs)
    for design in plan.designs:
        assert 0 < design.efficiency <= 1
        assert design.efficiency == min(design.efficiencies.values())


def test_equal_requests_have_equal_plans(plan):
    again = plan_designs(Request(gpus=256, seed=3))
    assert json.dumps(again.to_dict(), sort_keys=True) == json.dumps(plan.to_dict(), sort_keys=True)


@pytest.mark.slow
def test_processes_change_nothing(monkeypatch):
    from netplan.planning.plan import search

    monkeypatch.setattr(search, "_LARGE", 1)
    one = plan_designs(replace(SMALL, simulate=7))
    two = plan_designs(replace(SMALL, simulate=7), workers=2)
    assert one.to_dict() == two.to_dict()


# ---- Files ---------------------------------------------------------------------------------------------


def test_each_design_is_rebuilt_from_its_yaml(plan, tmp_path):
    paths = write_designs(plan.designs, str(tmp_path / "new" / "designs"))
    assert len(paths) == len(plan.designs)
    for path, design in zip(paths, plan.designs, strict=True):
        read, made = api.load_fabric(path), build_spec(design.spec)
        assert read.spec == made.spec
        for table in ("nodes", "links", "endpoints"):
            for name, column in vars(getattr(made, table)).items():
                assert np.array_equal(column, getattr(getattr(read, table), name)), (design.name, name)
        assert design_yaml(design).startswith("# For: 256 GPUs")


def test_two_sites_are_two_fabrics_with_spans():
    made = plan_designs(
        Request(
            gpus=512, sites=2, span=30e3, families=("rail-optimized",), tiers=(2,), max_oversubscription=1
        )
    )
    for design in made.designs:
        fabric = build_spec(design.spec)
        assert fabric.site_names == ("site-1", "site-2")
        assert fabric.n_gpus == 512
        assert design.cables["inter_site"] >= 32  # 256 NICs of 400G over 8
        assert design.efficiencies["all-reduce-random"] < 0.5


def test_hosts_of_72_gpus_are_planned():
    made = plan_designs(
        Request(gpus=72 * 16, gpus_per_host=72, families=("rail-only", "multi-plane", "leaf-spine"))
    )
    assert {design.family for design in made.designs} >= {"rail-only"}
    one = next(design for design in made.designs if design.name == "rail-only-1t-r64")
    assert one.switches == {"leaf": 72}
    assert one.spec["hosts"]["scale_up"] == "900.0 GB/s"


def test_growing_is_that_of_a_growth_plan():
    made = plan_designs(
        Request(gpus=256, grow_to=512, switches=("qm9700",), families=("leaf-spine", "torus"), simulate=3)
    )
    grown = {design.name: design.growth for design in made.designs}
    before, after = (
        build_spec({"name": "leaf-spine-r64", "kind": "leaf-spine", "radix": 64, "hosts": hosts})
        for hosts in (Request(gpus=256).host_spec(32), Request(gpus=512).host_spec(64))
    )
    expected = regrow(before, after)
    found = grown["leaf-spine-r64"]
    assert found is not None
    assert found.touched == expected.n_touched
    assert found.new_cables == after.links.n_cables - (before.links.n_cables - len(expected.removed))
    assert found.new_switches == after.n_switches - before.n_switches
    torus = next(growth for name, growth in grown.items() if name.startswith("torus"))
    assert torus is not None
    assert torus.why_not == "its family proposes no like design of that size"


def test_what_is_full_on_two_tiers_grows_into_three():
    # 1,024 NICs fill 32 leaves and 16 spines of 64 ports. In a clos half of a spine looks up, so of its
    # 64 cables 32 stay: 512 of 1,024 are moved, and 4 x 1,024 hosts are what 128 leaves hold.
    made = plan_designs(
        Request(
            gpus=1024,
            grow_to=4096,
            switches=("qm9700",),
            families=("leaf-spine",),
            max_oversubscription=1.0,
        )
    )
    growth = made.designs[0].growth
    assert growth is not None
    assert (growth.design, growth.why_not) == ("clos-r64", None)
    assert growth.touched == 512
    assert growth.touched_fraction == 512 / 2048
    assert growth.new_switches == (128 + 128 + 64) - (32 + 16)
    assert growth.new_cables == 3 * 4096 - (2048 - 0)


def test_what_is_full_on_three_tiers_does_not_grow():
    made = plan_designs(
        Request(
            gpus=16384,
            grow_to=131072,
            switches=("qm9700",),
            families=("clos",),
            max_oversubscription=1.0,
        )
    )
    growth = made.designs[0].growth
    assert growth is not None
    assert growth.design is None
    assert growth.why_not == "128 pods need 128 ports on each core; core.radix = 64"


@pytest.mark.parametrize(
    ("name", "later"),
    [
        ("leaf-spine-r64-2-sites", "clos-r64-2-sites"),
        ("2-plane-split-rails-2t-r128", "2-plane-split-rails-3t-r128"),
        ("dual-tor-2t-r256-2to1", "dual-tor-3t-r256-2to1"),
        ("rail-only-1t-r64", "rail-only-2t-r64"),
        ("rail-optimized-3t-by-rail-r128-even-spine-even-leaf", None),
    ],
)
def test_later_designs_are_of_the_same_kind(name, later):
    same, *more = later_names(name)
    assert same == (name.removesuffix("-even-spine-even-leaf"),)
    assert more == ([] if later is None else [(later,)])


# ---- The published and the impossible ------------------------------------------------------------------


def test_mpft_is_found_and_beats_three_tiers_of_planes():
    # DeepSeek-V3, Table 3: 16,384 endpoints on 768 64-port switches in eight planes of two tiers. A single
    # plane needs three tiers: 1,280 switches (5 r^2 / 4 of the full tree, a quarter of its endpoints).
    request = Request(
        gpus=16384,
        switches=("qm9700",),
        max_oversubscription=1,
        families=("multi-plane", "clos", "leaf-spine"),
    )
    found = {each.candidate.name: each for each in surveys(request)}
    assert sum(found["8-plane-per-nic-2t-r64"].switches.values()) == 768
    assert sum(found["clos-r64"].switches.values()) == 1280
    assert "leaf-spine-r64" not in found
    made = plan_designs(replace(request, simulate=1))
    why = next(each for each in made.rejected if "leaf-spine-r64" in each.designs)
    assert why.reason == "512 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers"
    assert "three tiers" in (why.hint or "")


def refused(**wishes) -> NoDesignError:
    with pytest.raises(NoDesignError) as caught:
        plan_designs(Request(**{"gpus": 256, "switches": ("qm9700",), **wishes}))
    return caught.value


def test_the_limit_that_binds_is_named_with_the_best_there_is():
    error = refused(limits=Limits(cost=1.0), families=("leaf-spine",))
    assert "no design for 256 GPUs keeps to the limits: --max-cost 1 USD refuses" in error.message
    cheapest = min(each.value or 0.0 for each in error.plan.rejected if each.limit == "cost")
    assert f"nearest has {cheapest:,.0f}" in error.message
    assert "--max-efficiency" not in error.message
    error = refused(limits=Limits(efficiency=1.0), max_oversubscription=4.0, families=("torus",))
    assert "--min-efficiency 1 refuses" in error.message
    error = refused(limits=Limits(any_to_any=True), families=("rail-only",))
    assert "--any-to-any refuses" in error.message


def test_a_design_of_unknown_cost_keeps_to_no_limit_of_cost():
    error = refused(limits=Limits(cost=1e9), switches=("sn5600",), families=("leaf-spine",))
    assert "all of unknown cost" in error.message
    assert any("no price of" in each.reason for each in error.plan.rejected)


def test_a_speed_that_no_switch_has_is_named():
    assert "no switch that may be used has ports of 401G" in refused(nic_rate=401e9 / 8).message


def test_nothing_can_be_built():
    error = refused(gpus=16384, tiers=(2,), families=("leaf-spine",))
    assert "can be built: leaf-spine-r64: 512 leaves" in error.message
    assert "at most 256 hosts" in (error.hint or "")


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"gpus": 250}, "250 GPUs are not whole hosts of 8"),
        ({"grow_to": 256}, "do not grow to 256"),
        ({"grow_to": 1001}, "1,001 GPUs are not whole hosts"),
        ({"gpus": 8}, "fewer than two hosts"),
        ({"gpus": -8}, "-8 GPUs are fewer than two hosts"),
        ({"gpus": 8_000_000}, "8,000,000 GPUs have 8,000,000 NICs, more than the 4,194,304"),
        ({"grow_to": 8_000_000}, "8,000,000 GPUs have 8,000,000 NICs"),
        ({"nic_rate": 0.0}, "NIC rate = 0 is not a rate above 0"),
        ({"nic_rate": float("nan")}, "NIC rate = nan is not a rate above 0"),
        ({"sites": 2, "span": 1e9}, "span = 1000000 km is out of range"),
        ({"sites": 2, "span": 0.0}, "out of range"),
        ({"gpus_per_host": 0}, "too few"),
        ({"nics_per_host": 3}, "one must divide the other"),
        ({"max_oversubscription": 0.5}, "oversubscription = 0.5 is out of range"),
        ({"max_oversubscription": float("nan")}, "out of range"),
        ({"families": ("leafspine",)}, "family 'leafspine' is not one of leaf-spine"),
        ({"routing": "sprayed"}, "routing 'sprayed' is not one of"),
        ({"protocol": "fc"}, "not one of ethernet, infiniband"),
        ({"tiers": (4,)}, "tiers = 4 is out of range"),
        ({"planes": (0,)}, "planes = 0 is out of range"),
        ({"simulate": 0}, "at least one fabric"),
        ({"group": 1}, "at least 2 GPUs"),
        ({"sites": 2}, "need the length of the fibre"),
        ({"sites": 99, "span": 1e4}, "sites = 99 is out of range"),
        ({"span": 1e4}, "joins two sites"),
        ({"gpus": 16, "sites": 3, "span": 1e4}, "cannot be shared out"),
        ({"sites": 2, "span": 1e4, "metro_oversubscription": 0.0}, "is not a ratio above 0"),
        ({"limits": Limits(efficiency=1.5)}, "efficiency of at least 1.5 is out of range"),
        ({"limits": Limits(cost=0.0)}, "cost of at most 0 is out of range"),
        ({"limits": Limits(power=float("inf"))}, "power of at most inf"),
        ({"weights": (("price", 1.0),)}, "'price' is not one of cost"),
        ({"weights": (("cost", -1.0),)}, "weight cost = -1"),
        ({"weights": (("cost", 0.0),)}, "no objective has a weight above 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(wishes, message):
    error_class = Exception if "routing" in wishes else FabricError
    with pytest.raises(error_class, match="(?s)" + message.replace("(", "\\(")):
        Request(**{"gpus": 256, **wishes})


def test_switches_that_are_not_there_or_do_not_fit_are_refused():
    with pytest.raises(CatalogError, match="did you mean qm9700"):
        plan_designs(Request(gpus=256, switches=("qm9770",)))
    with pytest.raises(CatalogError, match="ports are not known"):
        plan_designs(Request(gpus=256, switches=("jericho-2",)))
    with pytest.raises(CatalogError, match="speaks infiniband, not ethernet as --protocol asks"):
        plan_designs(Request(gpus=256, switches=("qm9700",), protocol="ethernet"))
    with pytest.raises(CatalogError, match="not ethernet where sites are joined"):
        plan_designs(Request(gpus=256, switches=("qm9700",), sites=2, span=1e4))


def test_planes_that_the_nics_cannot_have_are_refused_one_by_one():
    error = refused(planes=(3,))
    reasons = {each.reason for each in error.plan.rejected}
    assert any("does not divide the 8 NICs" in reason for reason in reasons)
    assert any("no NIC of the catalogue has 3 ports" in reason for reason in reasons)


def test_what_cannot_be_routed_is_refused_with_the_reason():
    catalogue = shipped_catalogue()
    request = replace(SMALL, families=("rail-only",), tiers=(1,), switches=("qm9700",), routing="ib-static")
    found = surveys(request)[0]
    trial = try_out(found, ("qm9700",), request, catalogue)
    assert trial.designs or "cannot run" in trial.rejected[0].reason
    assert isinstance(bound(found, catalogue.switch("qm9700"), catalogue, has_floor=True), Bound)


# ---- even numbers of ports ---------------------------------------------------------------------------------


@given(
    radix=st.integers(2, 150),
    down=st.integers(1, 200),
    ratio=st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0]),
    breakout=st.sampled_from([1, 2, 4]),
)
def test_an_even_split_is_the_widest_of_all_that_fit(radix, down, ratio, breakout):
    fits = [
        (links, up)
        for links in range(1, down + 1)
        for up in range(2, radix + 1, 2)
        if links % (2 * breakout) == 0
        and links // breakout + up <= radix
        and links <= up * ratio * breakout + 1e-6
    ]
    wide = [each for each in fits if each[0] == max(links for links, _ in fits)]
    assert even_split(radix, down, ratio, breakout) == min(wide, default=None)


def test_odd_ports_that_cost_a_cage_too_many_are_made_even():
    # 128 ports in 64 cages. The fewest switches have 85 links down and 43 up: 43 + 22 cages. 84 and 42 fit.
    request = Request(
        gpus=1024, families=("multi-plane",), planes=(8,), tiers=(2,), switches=("sn5610",), simulate=4
    )
    odd, even = "8-plane-per-nic-2t-r128-2to1", "8-plane-per-nic-2t-r128-2to1-even-leaf"
    found = next(each for each in surveys(request) if each.candidate.name == odd)
    refusal = bound(found, shipped_catalogue().switch("sn5610"), shipped_catalogue(), has_floor=False)
    assert isinstance(refusal, Crowded)
    assert (refusal.tier, refusal.reason) == ("leaf", "leaf: the modules need 65 cages, sn5610 has 64")
    plan = plan_designs(request)
    assert not any("cages" in each.reason for each in plan.rejected)
    design = next(each for each in plan.designs if each.name == even)
    assert design.spec["leaf"] == {"downlinks": 84, "uplinks": 42}
    made = bom.bill(build_spec(design.spec), shipped_catalogue(), bom.Wishes(switches={"*": "sn5610"}))
    assert not any("cages" in remark for remark in made.remarks)


def test_what_is_even_already_stays_refused():
    request = Request(gpus=1024, families=("leaf-spine",), switches=("q3400",), max_oversubscription=1.0)
    found = surveys(request)[0]
    assert even_ports(found, "leaf", ("q3400",)) is None
    with pytest.raises(NoDesignError, match="leaf: the modules need 108 cages, q3400 has 72"):
        plan_designs(request)
