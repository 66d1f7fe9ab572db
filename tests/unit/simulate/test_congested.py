"""Phases under a protocol: bytes, determinism, short cuts against whole runs, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan import api
from netplan.congestion.switch import PRESETS, SwitchBuffer
from netplan.errors import ModelRangeError
from netplan.routing import RoutingOptions
from netplan.simulate import congested
from netplan.simulate.parts import Ties, find_components, find_ties, likeness
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario
from netplan.simulate.switches import BUFFER_S, lay_switches
from netplan.traffic import build_demand
from tests.fabrics import blocking_two_leaves, lab_two_leaves

MIB = 1 << 20


def run(fabric, traffic, *, cc="dcqcn", routing="ecmp", seed=0, sets=None, **options):
    spec = api.load_traffic(traffic, overrides=sets)
    return api.simulate(fabric, spec, routing=routing, cc=cc, seed=seed, **options)


@pytest.fixture(scope="module")
def lab():
    return api.load_fabric("lab-2-leaf")


@pytest.mark.parametrize("cc", ["none", "dctcp", "hpcc"])
def test_an_incast_takes_what_its_link_takes(lab, cc):
    """8 x 4 MiB through one 400G port: bytes / payload rate, HPCC at eta, and never less than that."""
    result = run(lab, "incast-8", cc=cc, sets={"size": "32MiB"})
    port = float(lab.endpoint_rate.min()) * 4096 / (4096 + 82)
    least = result.scenario.demand.size.sum() / port
    assert least <= result.completion_s * (1 + 1e-9)
    assert result.completion_s <= least * 1.15 + 50e-6
    assert result.congestion.queues.worst_link.endswith("host-00000 #1")
    assert result.congestion.loss_fraction == 0
    assert 0 <= result.efficiency.worst_flow <= result.efficiency.mean_flow <= 0.13


def test_pauses_come_with_pfc_and_losses_without(lab):
    """Under `none` a small buffer pauses; without PFC it drops, and go-back-N sends again."""
    profile = replace(PRESETS["hpcc-ns3"], buffer=SwitchBuffer(6e6))
    paused = run(lab, "incast-8", cc="none", switch=profile).congestion
    assert paused.pfc.pause_events > 0
    assert paused.pfc.pause_time_s > 0
    assert paused.loss_fraction == 0
    lossy = replace(profile, buffer=SwitchBuffer(1e6, lossless=False))
    lost = run(lab, "incast-8", cc="dctcp", switch=lossy).congestion
    assert lost.pfc.pause_events == 0
    assert 0 < lost.loss_fraction < 1
    assert lost.resent_bytes > 0


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 50),
    size=st.integers(20_000, 2_000_000),
    routing=st.sampled_from(["ecmp", "spray", "adaptive"]),
    cc=st.sampled_from(["none", "dcqcn", "timely", "hpcc"]),
    qps=st.sampled_from([1, 3]),
)
def test_no_link_carries_more_than_it_can(seed, size, routing, cc, qps):
    """Bytes are conserved: all flows end, none sooner than its NIC allows, loads are at most 1."""
    assume(cc != "hpcc" or routing == "ecmp")
    fabric = blocking_two_leaves()
    sets = {"size": f"{size}B", "qps": str(qps)}
    result = run(fabric, "permutation-64mib", cc=cc, routing=routing, seed=seed, sets=sets)
    assert np.isfinite(result.finish).all()
    alone = result.scenario.demand.size / (fabric.endpoint_rate.min() * 4096 / 4178)
    assert (result.finish >= alone * (1 - 1e-9)).all()
    assert result.link_load.max() <= 1 + 1e-9
    assert result.efficiency.collective <= 1


def test_same_seed_same_bytes_and_another_seed_others(lab):
    first, again = (json.dumps(run(lab, "incast-8").to_dict(), sort_keys=True) for _ in range(2))
    assert first == again
    assert json.dumps(run(lab, "incast-8", seed=1).to_dict(), sort_keys=True) != first


@pytest.mark.parametrize("cc", ["none", "dctcp", "timely"])
def test_half_the_step_changes_completion_by_less_than_a_percent(lab, cc):
    first = run(lab, "incast-8", cc=cc, sets={"size": "32MiB"})
    half = run(lab, "incast-8", cc=cc, sets={"size": "32MiB"}, step=first.congestion.step_s / 2)
    assert half.completion_s == pytest.approx(first.completion_s, rel=0.01)


@pytest.mark.parametrize(
    ("most_senders", "method", "tolerance"), [(2048, "components", 0.05), (1, "bottlenecks", 0.05)]
)
def test_short_cuts_against_the_whole_run(monkeypatch, most_senders, method, tolerance):
    """A lockstep ring over 16 random hosts of a pod: completion within 5 % of the whole run's."""
    fabric = api.load_fabric("superpod-b200-4su")
    sets = {"size": "64MiB", "ranks": "256", "placement.kind": "random"}
    whole = run(fabric, "all-reduce-1gib", cc="dctcp", sets=sets, exact=True)
    monkeypatch.setattr(congested, "MOST_EVENTS", whole.congestion.events * 0.9)
    monkeypatch.setattr(congested, "MOST_SENDERS", most_senders)
    short = run(fabric, "all-reduce-1gib", cc="dctcp", sets=sets)
    assert short.congestion.method == method
    assert short.congestion.kinds < short.congestion.groups
    assert short.completion_s == pytest.approx(whole.completion_s, rel=tolerance)
    assert any("--exact" in remark for remark in short.remarks())


def test_a_scaled_run_goes_on_along_the_line(lab, monkeypatch):
    """An incast that DCTCP holds at line rate: a fifth of the bytes tells the time of all."""
    sets = {"size": "256MiB"}
    whole = run(lab, "incast-8", cc="dctcp", sets=sets, exact=True)
    monkeypatch.setattr(congested, "MOST_EVENTS", whole.congestion.events / 4)
    short = run(lab, "incast-8", cc="dctcp", sets=sets)
    assert short.congestion.method == "scaled"
    assert short.congestion.scale < 0.3
    assert short.completion_s == pytest.approx(whole.completion_s, rel=0.03)


def test_components_by_hand():
    """Senders 0, 1 share full link 5; 2, 3 share full link 7; 4 is alone on 5's half-full neighbour 6."""
    sender, link = np.array([0, 1, 2, 3, 4, 0]), np.array([5, 5, 7, 7, 6, 6])
    capacity = np.full(8, 10.0)
    ties = find_ties(sender, link, np.array([5.0, 5, 5, 5, 2, 2]), capacity)
    assert ties.sender.tolist() == [0, 1, 2, 3]
    label = find_components(5, ties)
    assert label[0] == label[1] != label[2] == label[3] != label[4]
    own, at = np.full(5, 9, np.uint64), np.full(4, 3, np.uint64)
    groups = likeness(label, own, ties, at)
    assert groups.kind[label[0]] == groups.kind[label[2]] != groups.kind[label[4]]
    own[3] = 8  # another size
    other = likeness(label, own, ties, at)
    assert other.kind[label[0]] != other.kind[label[2]]
    assert sorted(other.members(int(label[2])).tolist()) == [2, 3]


def test_likeness_tells_a_chain_from_a_star():
    """Three senders on two links: one sender in the middle, or two and one apart from each other."""
    chain = Ties(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]))
    star = Ties(np.array([3, 4, 5]), np.array([2, 2, 2]))
    ties = Ties(np.concatenate([chain.sender, star.sender]), np.concatenate([chain.link, star.link]))
    label = find_components(6, ties)
    groups = likeness(label, np.ones(6, np.uint64), ties, np.ones(7, np.uint64))
    assert len(groups.example) == 2


def test_spread_paths_keep_the_shares_of_links(lab):
    """Each path is a walk from NIC to NIC, and spines get paths in equal numbers."""
    from netplan.simulate.senders import lay_flows, make_senders

    spec = api.load_traffic("permutation-64mib")
    demand = build_demand(lab, spec)
    from netplan.routing import FlowTable, route_flows

    routes = route_flows(lab, FlowTable(demand.src, demand.dst, demand.channel, 1), "spray")
    senders = make_senders(routes, demand.size, demand.start, np.ones(routes.n_paths), qps=1)
    flows = lay_flows(senders, routes, lab, payload=4096.0, header=82.0, seed=0)
    src, dst = lab.links.src, lab.links.dst
    for p in range(len(flows.path_ptr) - 1):
        way = flows.path_link[flows.path_ptr[p] : flows.path_ptr[p + 1]]
        assert (dst[way[:-1]] == src[way[1:]]).all()
    shares = routes.link_load(np.ones(routes.n_paths))
    per = 1 / np.diff(flows.flow_ptr)
    owner = np.repeat(np.arange(len(per)), np.diff(flows.flow_ptr))
    entry = np.repeat(per[owner], np.diff(flows.path_ptr))
    laid = np.bincount(flows.path_link, entry, minlength=len(shares))
    assert laid == pytest.approx(shares, abs=0.05)


def test_default_buffers_and_those_of_long_links():
    """26 us of all ports; over a span the default supposes a deeper one, and the result says so."""
    lab = api.load_fabric("lab-2-leaf")
    transport = Scenario(lab, build_demand(lab, api.load_traffic("incast-8")), "ecmp").transport
    switches = lay_switches(lab, transport)
    leaf = int(lab.endpoints.leaf[0])
    ports = lab.links.capacity[lab.links.dst == leaf].sum()
    assert switches.total[leaf] == pytest.approx(BUFFER_S * ports)
    assert not len(switches.deep)
    metro = api.load_fabric("metro-30km-2site")
    assert len(lay_switches(metro, transport).deep)


def test_a_part_of_a_fabric_has_the_shared_buffer_of_the_whole():
    fabric = lab_two_leaves()
    transport = Scenario(
        fabric, build_demand(fabric, api.load_traffic("permutation-64mib")), "ecmp"
    ).transport
    switches = lay_switches(fabric, transport)
    leaf = int(fabric.endpoints.leaf[0])
    every = np.arange(len(fabric.links))
    few = every[fabric.links.dst == leaf][:1]

    def pool(links):
        (profile,) = switches.profiles(np.array([leaf]), links)
        assert profile is not None
        return profile.buffer.total_bytes - switches.room[links][fabric.links.dst[links] == leaf].sum()

    assert pool(few) == pytest.approx(pool(every))


def test_manifest_names_everything(lab):
    result = run(lab, "incast-8", cc_params={"rate_ai": 5e6})
    manifest = result.to_dict()["manifest"]
    assert manifest["models"]["cc"] == "dcqcn"
    assert manifest["congestion"]["parameters"]["rate_ai"] == 5e6
    assert manifest["congestion"]["parameters"]["cut_s"] == 4e-6
    assert manifest["congestion"]["switch"]["name"] == "auto"
    assert run(lab, "incast-8", cc="max-min").to_dict()["manifest"]["congestion"] is None


def test_a_series_adds_up_to_the_bytes(lab):
    result = run(lab, "incast-8", record=True)
    (series,) = result.congestion.series
    step = np.diff(np.concatenate([[0.0], series.time]))
    received = (series.rate * step[:, None]).sum(axis=0)
    assert received == pytest.approx(result.scenario.demand.size, rel=0.02)
    assert series.queue.max() <= result.congestion.queues.peak_bytes
    assert series.links[0].endswith("host-00000 #1")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"routing": "spray", "cc": "hpcc"}, "over different links"),
        ({"routing": "ideal"}, "no links inside the network"),
        ({"routing": "ib-static"}, "does not run over infiniband"),
        ({"cc": "ib-credits"}, "does not run over roce"),
        ({"cc": "dcqcm"}, "is not one of max-min, none, dcqcn"),
        ({"cc_params": {"rate_ia": 1.0}}, "no parameter 'rate_ia'"),
        ({"cc_params": {"gain": 2.0}}, "out of range"),
        ({"switch": "sonic"}, "not one of hpcc-ns3"),
        (
            {"switch": PRESETS["hpcc-ns3"], "routing": "ecmp", "fabric": "metro-30km-2site"},
            "headroom and reserves",
        ),
        ({"step": 1.0}, "does not fit the shortest round trip"),
        ({"switch": {"leaf": PRESETS["htsim"]}}, "no switch profile for spine"),
        ({"exact": True, "sets": {"size": "100TiB"}}, "--exact would take about"),
        ({"record": True, "sets": {"size": "100TiB"}}, "a series would take about"),
    ],
)
def test_what_is_refused(lab, options, says):
    options = dict(options)
    fabric = api.load_fabric(options.pop("fabric")) if "fabric" in options else lab
    with pytest.raises(ModelRangeError, match=says):
        run(fabric, "incast-8", **options)


def test_senders_that_never_end_are_reported(lab, monkeypatch):
    """A run that is given up says how many QPs have not ended."""
    monkeypatch.setattr("netplan.simulate.dynamics.PATIENCE", 0.5)
    with pytest.raises(ModelRangeError, match="8 of 8 QPs have not ended"):
        run(lab, "incast-8")


def test_windows_hold_senders_back():
    """Over 30 km a window of 4 MiB at 300 us carries 14 GB/s, whatever the protocol."""
    metro = api.load_fabric("metro-30km-2site")
    sets = {"size": "64MiB", "ranks": "2", "window": "1MiB"}
    spec = api.load_traffic("point-to-point", overrides={"size": "64MiB", "window": "1MiB"})
    del sets
    demand = build_demand(metro, spec)
    slow = simulate(Scenario(metro, demand, "ecmp", RoutingOptions(), cc="none"))
    fluid = simulate(Scenario(metro, demand, "ecmp", RoutingOptions()))
    assert slow.completion_s == pytest.approx(fluid.completion_s, rel=0.1)
