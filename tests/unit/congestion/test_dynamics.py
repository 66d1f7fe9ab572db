"""The time-domain engine: what every run must obey, and cases that can be computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, run_flows
from netplan.congestion.switch import (
    EcnCurve,
    PfcThresholds,
    PfcWatchdog,
    SwitchBuffer,
    SwitchProfile,
    find_profile,
)
from netplan.errors import ModelRangeError
from netplan.simulate.dynamics import round_trips
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
            # each packet may call for a grant, and a window of credit comes in grants of four packets
            pulls[number[end]] += 60 * (n + np.ceil(n / 4) + 24) if name == "rccc" else 0
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
    assert halved(name, net, offered, seeds=4) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("name", ["dcqcn", "hpcc", "timely", "dctcp", "swift", "nscc"])
@pytest.mark.parametrize("demand", ["permutation", "all-to-all", "ring", "30 km"])
def test_halving_the_step_changes_little_on_a_fabric(name, demand):
    """The same at 400G, where a step holds six packets of 1 kB, on two tiers with colliding paths."""
    if (name, demand) == ("swift", "30 km"):
        pytest.skip("its window falls below a packet there, and the run takes minutes")
    net, offered = two_tiers(demand)
    # DCQCN's marks are random: its own completions spread by 1 % (ring) and 8 % (permutation) over seeds,
    # so that the mean over n of them is known within 8 % * sqrt(2 / n), and half of the mean flow's.
    assert halved(name, net, offered, seeds=24 if name == "dcqcn" else 1) == pytest.approx(1, rel=0.01)


def halved(name: str, net: Network, offered: Flows, seeds: int) -> float:
    """Return mean completion of all flows with half the step over that with the default, over some seeds."""
    cc = PROTOCOLS.find(name)
    line = net.rate[offered.path_link[offered.path_ptr[:-1]]]
    base = replace(options(name), window=cc.window_bdp * line * round_trips(net, offered))
    default = run_flows(net, offered, cc, None, base).step
    first, second = (
        [run_flows(net, offered, cc, None, replace(base, seed=s, step=step)) for s in range(seeds)]
        for step in (default, default / 2)
    )
    pairs = [[np.mean([run.finish.mean() for run in runs]) for runs in (first, second)]]
    if seeds == 1:  # nothing is random: the last flow's end as well
        pairs.append([run.finish.max() for run in (first[0], second[0])])
    ratios = [after / before for before, after in pairs]
    return float(max(ratios, key=lambda ratio: abs(ratio - 1)))


def two_tiers(demand: str) -> tuple[Network, Flows]:
    """16 hosts on four leaves under two spines, 400G; or two sites of four, 30 km apart."""
    if demand == "30 km":
        profile = replace(PROFILE, buffer=SwitchBuffer(400e6))
        cables = [*((h, 8 + h // 4, 100.0, 1.0) for h in range(8)), (8, 9, 400.0, 150.0)]
        net, number = network(cables, 8, profile)
        return net, flows(number, [(h, 8, 9, 4 + h) for h in range(4)], 40e6)
    cables = [(h, 16 + h // 4, 400.0, 1.0) for h in range(16)]
    cables += [(16 + leaf, 20 + spine, 400.0, 1.0) for leaf in range(4) for spine in range(2)]
    net, number = network(cables, 16)
    rng = np.random.default_rng(7)
    order = rng.permutation(16)
    pairs = {
        "permutation": [(a, int(b) if b != a else (a + 1) % 16) for a, b in enumerate(order)],
        "all-to-all": [(a, b) for a in range(16) for b in range(16) if a != b],
        "ring": list(zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)),
    }[demand]

    def way(a: int, b: int) -> tuple[int, ...]:
        up, down = 16 + a // 4, 16 + b // 4
        return (a, up, b) if up == down else (a, up, 20 + int(rng.integers(2)), down, b)

    return net, flows(number, [way(a, b) for a, b in pairs], 3e5 if demand == "all-to-all" else 4e6)


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


# ---- watchdog and curves by rate ---------------------------------------------------------------------


def ring_of_three(profile: SwitchProfile) -> tuple[Network, Flows]:
    """Three switches in a ring, four hosts each; all send two switches on, the same way round.

    ::

        4 hosts - s0 -> s1 - 4 hosts
                   ^    |
                   +-s2-+ (4 hosts)       buffers fill around the ring: each waits for the next
    """
    cables = [(h, 12 + h // 4, 100.0, 1.0) for h in range(12)]
    cables += [(12 + k, 12 + (k + 1) % 3, 100.0, 1.0) for k in range(3)]
    net, number = network(cables, 12, profile)
    at = [h // 4 for h in range(12)]
    routes = [
        (h, 12 + at[h], 12 + (at[h] + 1) % 3, 12 + (at[h] + 2) % 3, (at[h] + 2) % 3 * 4 + h % 4)
        for h in range(12)
    ]
    return net, flows(number, routes, 2e6)


TIGHT = SwitchProfile("tight", PROFILE.ecn, PfcThresholds("static", 50e3, 3e3), SwitchBuffer(4e6))


def test_a_cycle_of_pauses_is_a_deadlock_without_a_watchdog():
    net, offered = ring_of_three(TIGHT)
    out = run_flows(net, offered, PROTOCOLS.find("none"))
    assert out.status == "stuck"
    assert out.storms.sum() == 0


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_a_watchdog_ends_a_deadlock(action):
    """Dropping frees what the ring waits for; forwarding sends into full buffers, which drop."""
    watched = replace(TIGHT, watchdog=PfcWatchdog(100e-6, 100e-6, action))
    net, offered = ring_of_three(watched)
    out = run_flows(net, offered, PROTOCOLS.find("none"), None, Options(timeout=1e-3))
    assert out.status == "finished"
    assert out.storms.sum() > 0
    np.testing.assert_array_equal(out.delivered, offered.size)
    assert out.resent.sum() > 0
    assert out.finish.min() > 100e-6


def test_a_watchdog_that_has_nothing_to_do_changes_nothing():
    """Pauses of an incast are shorter than its detection time."""
    net, offered, _ = incast(8, 1e6)
    watched = replace(PROFILE, watchdog=PfcWatchdog(1.0, 1.0))
    plain = run_flows(net, offered, PROTOCOLS.find("none"))
    out = run_flows(replace(net, profile=watched), offered, PROTOCOLS.find("none"))
    assert out.storms.sum() == 0
    np.testing.assert_array_equal(out.finish, plain.finish)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0.0, 0.2), "detection_s = 0 is not > 0"),
        ((0.2, -1.0), "restoration_s = -1 is not > 0"),
        ((0.2, 0.2, "dorp"), "'dorp' is not one of drop, forward"),
    ],
)
def test_bad_watchdogs(arguments, says):
    with pytest.raises(ModelRangeError, match=says):
        PfcWatchdog(*arguments)


def test_ports_of_other_rates_may_have_other_curves():
    """A step at 50 kB for 100G ports, one at 200 kB for 400G: all that leaves fuller queues is marked."""
    low, high = EcnCurve(50e3, 50e3, 1.0), EcnCurve(1e9, 1e9, 1.0)
    by_rate = ((100 * GBPS, low), (400 * GBPS, high))
    profile = replace(PROFILE, ecn=EcnCurve(2e9, 2e9, 1.0), ecn_scales=False, ecn_by_rate=by_rate)
    assert profile.ecn_of(100 * GBPS) == low
    assert profile.ecn_of(400 * GBPS) == high
    assert profile.ecn_of(200 * GBPS).kmin_bytes == 2e9
    for gbps, marked in ((100.0, True), (400.0, False), (200.0, False)):
        net, number = network(star(5, gbps), 5, profile)
        offered = flows(number, [(host, 5, 4) for host in range(4)], 1e6)
        assert bool(run_flows(net, offered, PROTOCOLS.find("none")).marks.sum()) is marked
