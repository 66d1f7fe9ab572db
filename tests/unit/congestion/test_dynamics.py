"""The time-domain engine: what every run must obey, and cases that can be computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, run_flows
from netplan.congestion.switch import EcnCurve, SwitchBuffer, SwitchProfile, find_profile
from netplan.errors import ModelRangeError
from tests.unit.congestion.trains import GBPS, PROFILE, US, flows, incast, network, star

NAMES = PROTOCOLS.names()
WINDOW = 52e3  # what HPCC's and DCTCP's window is at 100G and 4.16 us

LINE = 100 * GBPS
PACKET = 1048 / LINE


def options(name: str, **more: object) -> Options:
    cc = PROTOCOLS.find(name)
    return Options(window=cc.window_bdp * WINDOW, acks_wait=cc.acks_wait, **more)  # type: ignore[arg-type]


# ---- laws that hold for every protocol -------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES), lossless=st.booleans())
def test_bytes_are_conserved(data, name, lossless):
    """What was sent is received, once; each link carried its flows' bytes, no faster than it can."""
    profile = replace(PROFILE, buffer=SwitchBuffer(4e6 if lossless else 60e6, lossless=lossless))
    net, number = network([*star(4), (4, 5, 100, 1.0), (5, 6, 100, 1.5)], 4, profile)
    pairs = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda pair: pair[0] != pair[1])
    ends = data.draw(st.lists(pairs, min_size=1, max_size=6))
    size = [float(data.draw(st.integers(1, 400_000))) for _ in ends]
    start = [data.draw(st.integers(0, 50)) * US for _ in ends]
    offered = flows(number, [(a, 4, b) for a, b in ends], size, start)
    out = run_flows(
        net, offered, PROTOCOLS.find(name), None, options(name, seed=data.draw(st.integers(0, 99)))
    )
    assert out.status == "finished"
    assert out.drops.sum() == 0
    np.testing.assert_array_equal(out.delivered, offered.size)
    wire = np.asarray(size) + np.ceil(np.asarray(size) / 1000) * 48
    packets = np.ceil(np.asarray(size) / 1000)
    carried, pulls = np.zeros(len(net.rate)), np.zeros(len(net.rate))
    for (a, b), w, n in zip(ends, wire, packets, strict=True):
        for end in ((a, 4), (4, b)):
            carried[number[end]] += w
        for end in ((b, 4), (4, a)):
            carried[number[end]] += 60 * n
            pulls[number[end]] += 60 * np.ceil(n / 4) if name == "rccc" else 0
    assert np.all(out.carried >= carried * (1 - 1e-12))
    assert np.all(out.carried <= (carried + pulls) * (1 + 1e-12))
    assert np.all(out.carried <= net.rate * out.end * (1 + 1e-9))
    assert np.all(out.finish >= out.received)
    assert np.all(out.received >= start + wire / LINE)


@pytest.mark.parametrize("name", NAMES)
def test_a_lone_flow_runs_at_line_rate(name):
    """Nothing waits, so nothing slows it: size and latency by hand (HPCC: eta of it)."""
    net, offered, _ = incast(1, 2e6)
    out = run_flows(net, offered, PROTOCOLS.find(name), None, options(name))
    ideal = 2000 * PACKET + PACKET + 2 * US
    slack = 1 / 0.95 if name in {"hpcc", "powertcp"} else 1.0
    assert ideal * (1 - 1e-9) <= out.received[0] <= ideal * slack * 1.01


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_result(name):
    net, offered, _ = incast(6, 3e5)
    first, second = (run_flows(net, offered, PROTOCOLS.find(name), None, options(name)) for _ in range(2))
    np.testing.assert_array_equal(first.finish, second.finish)
    np.testing.assert_array_equal(first.marks, second.marks)


@pytest.mark.parametrize("name", NAMES)
def test_halving_the_step_changes_little(name):
    """Mean completion of an incast over four seeds, by less than 1 %."""
    net, offered, _ = incast(8, 1e6)
    cc = PROTOCOLS.find(name)
    default = run_flows(net, offered, cc, None, options(name)).step
    means = []
    for step in (default, default / 2):
        runs = [run_flows(net, offered, cc, None, options(name, seed=s, step=step)) for s in range(4)]
        means.append(np.mean([run.finish.max() for run in runs]))
    assert means[1] == pytest.approx(means[0], rel=0.01)


# ---- by hand ----------------------------------------------------------------------------------------


def test_incast_fills_the_buffer_to_the_dynamic_threshold():
    """n ports hold alpha (B - n x) each: n B / (8 + n) together, and the link never idles."""
    n = 4
    net, offered, number = incast(n, 8e6)
    out = run_flows(net, offered, PROTOCOLS.find("none"))
    pool = 32 * 2**20 - (n + 1) * (3 * LINE * 1e-6 + 4096)
    assert out.peak_queue[number[n + 1, n]] == pytest.approx(n * (pool + 4096 * 8) / (8 + n), rel=0.01)
    assert out.received.max() == pytest.approx(n * 8000 * PACKET + PACKET + 2 * US, rel=1e-3)
    assert out.pauses.sum() > 0
    assert out.drops.sum() == 0


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_window_gives_window_over_round_trip(share):
    """The law of every window: W / RTT, here a part of the line rate over 30 km."""
    net, number = network([(0, 2, 100, 150.0), (2, 1, 100, 1.0)], 2)
    rtt = 2 * 151e-6 + 2 * PACKET + 2 * 60 / LINE
    window = np.floor(share * LINE * rtt / 1048) * 1000
    run = Options(window=window, window_follows_rate=False, step=0, end=22 * rtt, sample=10 * rtt)
    out = run_flows(net, flows(number, [(0, 2, 1)], 1e9), PROTOCOLS.find("none"), None, run)
    late = out.sample_received[1] - out.sample_received[0]
    assert late[0] == pytest.approx(10 * window, rel=1e-3)


def test_a_victim_gets_the_rate_of_one_incast_flow():
    """Its own receiver is idle, but the trunk it crosses is paused for the others."""
    cables = [(0, 6, 100, 1.0), (1, 6, 100, 1.0), (2, 6, 100, 1.0), (3, 6, 100, 1.0)]
    cables += [(4, 7, 100, 1.0), (5, 7, 100, 1.0), (6, 7, 400, 1.0)]
    net, number = network(cables, 6)
    routes = [(0, 6, 7, 4), (1, 6, 7, 4), (2, 6, 7, 4), (3, 6, 7, 5)]
    out = run_flows(
        net, flows(number, routes, 1e9), PROTOCOLS.find("none"), None, Options(end=20e-3, sample=10e-3)
    )
    late = out.delivered - out.sample_received[0]
    assert late[3] == pytest.approx(late[:3].mean(), rel=0.01)
    assert late[:3].sum() == pytest.approx(LINE * 1000 / 1048 * 10e-3, rel=0.01)


def test_flows_wait_for_flows():
    """A chain of two, then one that waits for both ends of it."""
    net, number = network(star(3), 3)
    routes = [(0, 3, 1), (1, 3, 2), (2, 3, 0)]
    offered = flows(number, routes, 1e5, [0.0, 5 * US, 0.0], after=np.array([[0, 1], [0, 2], [1, 2]]))
    out = run_flows(net, offered, PROTOCOLS.find("none"))
    assert out.started[1] == pytest.approx(out.received[0] + 5 * US, rel=1e-9)
    assert out.started[2] == pytest.approx(out.received[1], rel=1e-9)
    late = run_flows(net, offered, PROTOCOLS.find("none"), None, Options(depends_on_ack=True))
    assert late.started[1] == pytest.approx(late.finish[0] + 5 * US, rel=1e-9)


def test_a_ring_goes_chunk_by_chunk():
    """Three hosts, each sends its next chunk once it has the one before: latency adds up, once a chunk."""
    net, number = network(star(3), 3)
    routes = [(0, 3, 1), (1, 3, 2), (2, 3, 0)]
    chunk = 1e5
    offered = flows(number, routes, 4 * chunk, chunk=chunk, gated_by=np.array([2, 0, 1]), ack_bytes=0.0)
    out = run_flows(net, offered, PROTOCOLS.find("none"), None, Options(step=0))
    one = 100 * PACKET + PACKET + 2 * US
    np.testing.assert_allclose(out.received, 4 * one, rtol=1e-6)


def test_marks_follow_the_curve():
    """One source faster than the link after it: the queue stands at the window, and p(q) is marked."""
    profile = SwitchProfile("flat", EcnCurve(0, 1e6, 0.5), PROFILE.pfc, PROFILE.buffer, ecn_scales=False)
    net, number = network([(0, 2, 200, 1.0), (2, 1, 100, 1.0)], 2, profile)
    offered = flows(number, [(0, 2, 1)], 40e6, ack_bytes=0.0)
    out = run_flows(
        net, offered, PROTOCOLS.find("none"), None, Options(window=200e3, window_follows_rate=False, step=0)
    )
    queue = out.mean_queue[number[2, 1]]
    expected = 40_000 * 0.5 * queue / 1e6
    assert out.marks[0] == pytest.approx(expected, abs=4 * np.sqrt(expected) + 0.01 * expected)


def test_cnp_gap():
    """A receiver that may answer once in 50 us lets 50 us of marks cause one cut."""
    net, offered, _ = incast(4, 2e6)
    every = run_flows(net, offered, PROTOCOLS.find("dcqcn-paper"))
    spaced = run_flows(net, offered, PROTOCOLS.find("dcqcn-paper"), None, Options(cnp_gap=50e-6))
    assert spaced.cuts.max() <= spaced.finish.max() / 50e-6 + 1
    assert spaced.cuts.sum() <= every.cuts.sum()


def test_loss_and_go_back_n():
    """A buffer too small without PFC: packets are lost, all bytes arrive all the same."""
    profile = replace(PROFILE, buffer=SwitchBuffer(600e3, lossless=False))
    net, number = network(star(3), 3, profile)
    offered = flows(number, [(0, 3, 2), (1, 3, 2)], 2e6)
    for go_back_n in (True, False):
        patient = Options(go_back_n=go_back_n, timeout=500e-6)
        out = run_flows(net, offered, PROTOCOLS.find("dcqcn"), None, patient)
        assert out.status == "finished"
        assert out.drops.sum() > 0
        assert out.resent.sum() > 0
        np.testing.assert_array_equal(out.delivered, offered.size)


def test_packets_spread_over_paths():
    """Two paths of half the rate carry a flow of line rate."""
    cables = [
        (0, 2, 100, 1.0),
        (2, 3, 50, 1.0),
        (2, 4, 50, 1.0),
        (3, 5, 50, 1.0),
        (4, 5, 50, 1.0),
        (5, 1, 100, 1.0),
    ]
    net, number = network(cables, 2)
    both = flows(number, [(0, 2, 3, 5, 1), (0, 2, 4, 5, 1)], 4e6)
    spread = replace(both, size=np.array([4e6]), start=np.zeros(1), flow_ptr=np.array([0, 2]))
    out = run_flows(net, spread, PROTOCOLS.find("none"), None, Options(step=0))
    assert 4e6 / out.received[0] == pytest.approx(LINE * 1000 / 1048, rel=0.05)
    paths = [number[2, 3], number[2, 4]]
    assert out.carried[paths].min() > 0.45 * out.carried[paths].sum()


# ---- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delay": np.full(4, -1e-6)}, r"link 0 has a negative delay \(-1e-06 s\)"),
        ({"rate": np.zeros(4)}, r"link 0 has no capacity \(0 bytes/s\)"),
    ],
)
def test_bad_links(change, message):
    net, offered, _ = incast(1, 1e4)
    with pytest.raises(ModelRangeError, match=message):
        run_flows(replace(net, **change), offered, PROTOCOLS.find("none"))


def test_bad_flows_and_steps():
    net, offered, number = incast(2, 1e4)
    none = PROTOCOLS.find("none")
    with pytest.raises(ModelRangeError, match=r"flow 1 has nothing to send \(0 bytes\)"):
        run_flows(net, replace(offered, size=np.array([1.0, 0.0])), none)
    with pytest.raises(ModelRangeError, match=r"step = 1e-05 s does not fit the shortest round trip"):
        run_flows(net, offered, none, None, Options(step=1e-5))
    joined = replace(offered, size=np.ones(1), start=np.zeros(1), flow_ptr=np.array([0, 2]))
    with pytest.raises(ModelRangeError, match="the paths of one flow begin at different NIC ports"):
        run_flows(net, joined, none)
    assert number  # the network itself is fine


def test_headroom_that_leaves_no_buffer():
    """30 km at 400G want 22.5 MB a port: two of them do not fit 32 MiB."""
    net, number = network([(0, 2, 400, 150.0), (2, 1, 400, 150.0)], 2)
    with pytest.raises(
        ModelRangeError, match=r"switch 2 \(test\): headroom \(45000000 B for 2 ports\) and res"
    ):
        run_flows(net, flows(number, [(0, 2, 1)], 1e4), PROTOCOLS.find("none"))
    deep = replace(net, profile=find_profile("dci"))
    assert run_flows(deep, flows(number, [(0, 2, 1)], 1e4), PROTOCOLS.find("none")).status == "finished"


def test_a_switch_without_rules():
    net, offered, _ = incast(1, 1e4)
    with pytest.raises(ModelRangeError, match="node 2 is a switch without a profile"):
        run_flows(replace(net, profile=[None, None, None]), offered, PROTOCOLS.find("none"))


def test_stuck_is_said():
    """The last packet is lost, and without a timeout nobody notices."""
    profile = replace(PROFILE, buffer=SwitchBuffer(30e3, lossless=False))
    net, number = network(star(5), 5, profile)
    routes = [(host, 5, 4) for host in range(4)]
    out = run_flows(net, flows(number, routes, 2e4), PROTOCOLS.find("none"))
    assert out.status == "stuck"
    assert np.isinf(out.finish).any()
    out = run_flows(net, flows(number, routes, 2e4), PROTOCOLS.find("none"), None, Options(timeout=1e-3))
    assert out.status == "finished"
    assert out.finish.max() > 1e-3


def test_types():
    """Networks and flows are values; their arrays are not written to."""
    net, offered, _ = incast(2, 1e5)
    for value in (net, offered):
        for name, column in vars(value).items():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
                assert name
    assert isinstance(net, Network)
    assert isinstance(offered, Flows)
    run_flows(net, offered, PROTOCOLS.find("hpcc"), None, Options(window=WINDOW))
