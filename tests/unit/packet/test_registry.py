"""Packet engines: limits, estimates, what they refuse; with a back end that answers at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from netplan import api
from netplan.congestion.dynamics import run_flows
from netplan.errors import BackendError, ModelRangeError
from netplan.packet import BACKENDS, Limits, PacketBackend, PacketEngine, Stats, estimate
from netplan.packet.agreement import Agreement
from netplan.packet.seeds import MeanEngine

PLAIN = PacketBackend(
    name="fake",
    summary="says what the flow-level engine says",
    leaves_out="packets",
    protocols=("none", "dcqcn"),
    hops_per_s=1e6,
    check=lambda: None,
    run=lambda network, flows, cc, parameters, options, limits, report: (
        run_flows(network, flows, cc, parameters, options),
        Stats(10, 20, 0.5, "fake"),
    ),
)


@pytest.fixture
def small():
    return api.load_fabric("lab-2-leaf"), api.load_traffic("incast-8")


def test_a_back_end_stands_where_the_engine_stood(small):
    engine = PacketEngine(PLAIN)
    flow_level = api.simulate(*small, cc="dcqcn")
    packets = api.simulate(*small, cc="dcqcn", engine=engine, packet="fake")
    assert packets.completion_s == flow_level.completion_s
    assert packets.scenario.manifest()["models"]["flow"] == "fake"
    assert flow_level.scenario.manifest()["models"]["flow"] == "packet trains"
    assert engine.to_dict() == {
        "backend": "fake",
        "how": "fake",
        "packets": 10,
        "hops": 20,
        "cpu_s": 0.5,
        "packets_per_s": 20.0,
    }
    assert "10 packets" in repr(engine)


def test_a_protocol_that_it_lacks_is_refused(small):
    with pytest.raises(ModelRangeError, match="packet back end fake has no hpcc; it has none, dcqcn"):
        api.simulate(*small, cc="hpcc", engine=PacketEngine(PLAIN), packet="fake")


def test_a_long_run_asks_for_a_yes(small):
    slow = replace(PLAIN, hops_per_s=10.0)
    with pytest.raises(ModelRangeError, match=r"this takes about .* packets over links") as caught:
        api.simulate(*small, cc="none", engine=PacketEngine(slow), packet="fake")
    assert "--yes runs it" in (caught.value.hint or "")
    result = api.simulate(*small, cc="none", engine=PacketEngine(slow, Limits(yes=True)), packet="fake")
    assert result.completion_s > 0


def test_the_estimate_counts_packets_and_acknowledgements_over_links(small):
    seen = []

    def run(network, flows, cc, parameters, options, limits, report):
        seen.append(estimate(flows))
        return run_flows(network, flows, cc, parameters, options), Stats(0, 0, 0.0, "fake")

    api.simulate(*small, cc="none", engine=PacketEngine(replace(PLAIN, run=run)), packet="fake")
    # 8 x 4 MiB in packets of 4,096; senders on the leaf of the receiver cross 2 links, the others 4.
    assert seen[0] in {256 * 2 * (2 * a + 4 * (8 - a)) for a in range(9)}


def test_a_name_that_is_none_is_refused():
    with pytest.raises(BackendError, match="packet back end 'ns4' is not one of ns3, trains"):
        PacketEngine("ns4")


@pytest.mark.parametrize("cc", ["none", "dcqcn", "hpcc", "swift", "nscc"])
def test_single_packets_of_the_own_engine_agree_with_its_trains(small, cc):
    engine = PacketEngine("trains")
    packets = api.simulate(*small, cc=cc, engine=engine, packet="trains")
    found = Agreement.of(api.simulate(*small, cc=cc), packets)
    assert found.flows == 8
    assert abs(found.completion) < 0.05
    assert engine.runs[0].packets == 8 * 256


def test_every_back_end_says_what_it_is():
    assert BACKENDS.names() == ("ns3", "trains")
    for backend in BACKENDS:
        assert backend.summary
        assert backend.leaves_out
        assert "dcqcn" in backend.protocols


def test_agreement_is_counted_flow_by_flow(small):
    class Shown:
        def __init__(self, finish):
            self.finish, self.completion_s, self.congestion = np.array(finish), max(finish), None

    found = Agreement.of(Shown([1.1, 2.0, 3.0]), Shown([1.0, 2.0, 4.0]))  # type: ignore[arg-type]
    assert found.median == pytest.approx(0.1)
    assert found.p90 == pytest.approx(0.22)
    assert found.completion == pytest.approx(-0.25)
    assert found.to_dict()["pauses"] == {"flow_level": False, "packets": False}


def test_means_over_seeds_are_means_of_single_runs(small):
    single = [api.simulate(*small, cc="dcqcn", engine=_seeded(k), packet="x").finish for k in range(3)]
    mean = MeanEngine(run_flows, 3)
    result = api.simulate(*small, cc="dcqcn", engine=mean, packet="x")
    np.testing.assert_allclose(result.finish, np.mean(single, axis=0))
    assert len(mean.ends[0]) == 3
    assert 0 < mean.spread < 0.5
    assert MeanEngine(run_flows, 1).spread == 0


def _seeded(k: int):
    def run(network, flows, cc, parameters, options):
        return run_flows(network, flows, cc, parameters, replace(options, seed=options.seed + 7919 * k))

    return run
