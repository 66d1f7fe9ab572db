"""Fixed points, stability and oscillation of the fluid models, against published numbers.

Expectations: jitupadhye-zz/rdma (data files of *ECN or Delay*, CoNEXT 2016) for the margins; a
bisection of the exact equation, and an Euler integration, made independently for the fixed points.
"""

import math

import numpy as np
import pytest

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Options, run_flows
from netplan.congestion.switch import EcnCurve, SwitchBuffer, SwitchProfile
from netplan.congestion.theory import (
    DcqcnFluid,
    patched_timely_queue,
    phase_margin,
    published_phase_margin,
    settle,
    simulate_fluid,
)
from netplan.errors import ModelRangeError
from tests.unit.congestion.trains import GBPS, PROFILE, flows, network, star

FLOWS = (2, 4, 10, 20, 40, 64)


@pytest.mark.parametrize(
    ("n", "probability", "queue_kb", "alpha"),
    [
        (2, 7.770e-4, 20.15, 0.1014),
        (4, 1.888e-3, 41.81, 0.1218),
        (8, 4.552e-3, 93.77, 0.1452),
        (10, 6.032e-3, 122.62, 0.1533),
        (16, 1.087e-2, 200.0, 0.171),
        (64, 5.9e-2, 200.0, 0.230),
    ],
)
def test_dcqcn_fixed_points(n, probability, queue_kb, alpha):
    point = settle(DcqcnFluid(n))
    digits = 0.5e-3 if n < 16 else 3e-3  # as many as are published
    assert point.probability == pytest.approx(probability, rel=digits * 2)
    assert point.queue_bytes == pytest.approx(queue_kb * 1e3, rel=1e-3)
    assert point.alpha == pytest.approx(alpha, rel=digits * 2)
    assert point.rate == pytest.approx(40 * GBPS / n, rel=1e-12)
    assert point.pinned == (n >= 16)


def test_the_fixed_point_is_one():
    """All derivatives are zero there: what is put into the equations comes out of them."""
    link = DcqcnFluid(6)
    point = settle(link)
    p, rate = point.probability, point.rate / 1000
    mark = 1 - (1 - p) ** (50e-6 * rate)
    byte = p / ((1 - p) ** -1e4 - 1)
    time = p / ((1 - p) ** (-55e-6 * rate) - 1)
    gap = point.target / 1000 - rate
    cut = rate * point.alpha / (2 * 50e-6) * mark
    assert 0.5 * gap * rate * (byte + time) == pytest.approx(cut, rel=1e-9)
    beyond = (1 - p) ** 5e4 * byte + (1 - p) ** (5 * 55e-6 * rate) * time
    assert gap / 50e-6 * mark == pytest.approx(40e6 / 8e3 * rate * beyond, rel=1e-6)
    assert point.alpha == pytest.approx(1 - (1 - p) ** (55e-6 * rate), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "delay", "degrees"),
    [
        ({}, 0.0, (26.6, 13.4, 4.8, 9.6, 27.4, 43.5)),
        ({}, 50e-6, (8.3, -0.75, -6.6, -0.95, 15.7, 29.5)),
        ({}, 100e-6, (-10.1, -14.9, -17.9, -11.5, 4.1, 15.6)),
        ({"rate_ai": 10e6 / 8}, 100e-6, (19.9, 24.6, 4.2, -2.5, 1.6, 10.5)),
        ({"rate_ai": 10e6 / 8, "kmax_bytes": 1e6}, 100e-6, (44.2, 47.7, 43.8, 19.2, 27.2, 30.0)),
    ],
)
def test_published_phase_margins(change, delay, degrees):
    """The authors' data, printed with one digit."""
    got = [published_phase_margin(DcqcnFluid(n, **change), delay) for n in FLOWS]
    np.testing.assert_allclose(got, degrees, atol=0.1)


@pytest.mark.parametrize(
    ("n", "delay"), [(10, 4e-6), (10, 50e-6), (10, 70e-6), (4, 58e-6), (4, 85e-6), (2, 3e-4)]
)
def test_margins_tell_stability(n, delay):
    """The integrated equations settle above a margin of zero and swing below it.

    At 50 us (N = 10) and 58 us (N = 4) the published margins are below zero, and the queue stands still.
    """
    link = DcqcnFluid(n)
    margin = phase_margin(link, delay)
    assert abs(margin) > 1
    spread = simulate_fluid(link, delay, duration=0.3).std_queue_bytes
    assert (spread < 1e-3 * settle(link).queue_bytes) == (margin > 0)
    if (n, delay) in {(10, 50e-6), (4, 58e-6)}:
        assert published_phase_margin(link, delay) < 0 < margin


def test_margin_falls_with_delay():
    """In a straight line: the loop loses w tau* radians where its gain is one."""
    link = DcqcnFluid(10)
    margins = [phase_margin(link, delay) for delay in (0.0, 50e-6, 100e-6)]
    assert margins[0] - margins[1] == pytest.approx(margins[1] - margins[2], rel=1e-9)
    assert margins[0] > 0 > margins[2]


def test_integrated_equations():
    """N = 10: 122 KB and still at 4 us, a wide oscillation at 85 us."""
    still = simulate_fluid(DcqcnFluid(10), 4e-6)
    assert still.mean_queue_bytes == pytest.approx(122.0e3, rel=0.01)
    assert still.std_queue_bytes < 2e3
    moving = simulate_fluid(DcqcnFluid(10), 85e-6)
    assert moving.std_queue_bytes > 50e3
    assert moving.utilisation == pytest.approx(0.965, abs=0.01)
    assert simulate_fluid(DcqcnFluid(64), 85e-6).utilisation == pytest.approx(0.863, abs=0.01)


def test_patched_timely():
    assert patched_timely_queue(2, 10 * GBPS, 10e6 / 8) == 78_125.0


def test_what_the_theory_refuses():
    with pytest.raises(ModelRangeError, match="n_flows = 0 is not at least 1"):
        DcqcnFluid(0)
    with pytest.raises(ModelRangeError, match="kmin = 5 B, kmax = 5 B: the fluid model needs kmin < kmax"):
        DcqcnFluid(2, kmin_bytes=5, kmax_bytes=5)
    with pytest.raises(ModelRangeError, match="feedback delay -1 s is negative"):
        phase_margin(DcqcnFluid(2), -1.0)
    with pytest.raises(ModelRangeError, match=r"no marking probability below 0.5 holds 10000000 flows"):
        settle(DcqcnFluid(10**7))
    with pytest.raises(ModelRangeError, match=r"step = 0.001 s is not small against the protocol's timers"):
        simulate_fluid(DcqcnFluid(2), 0.0, step=1e-3)


# ---- the engine against what theory says -----------------------------------------------------------


def steady(name, n, profile, options, parameters=None, gbps=100.0):
    """Run ``n`` endless flows into one host; return the outcome and the queue and rates of the last half."""
    net, number = network(star(n + 1, gbps), n + 1, profile)
    offered = flows(number, [(host, n + 1, n) for host in range(n)], 1e12)
    port = number[n + 1, n]
    run = Options(**{"end": 40e-3, "sample": 20e-6, "watch": (port,), **options})
    out = run_flows(net, offered, PROTOCOLS.find(name), parameters, run)
    half = len(out.sample_time) // 2
    rate = (out.sample_received[-1] - out.sample_received[half]) / (
        out.sample_time[-1] - out.sample_time[half]
    )
    return out, out.sample_queue[half:, 0], rate


def test_dcqcn_paper_settles_at_the_fluid_fixed_point():
    """40G, N = 2: the queue of the packets is near q* of the fluid, and the link is full."""
    profile = SwitchProfile(
        "paper", EcnCurve(5e3, 200e3, 0.01), PROFILE.pfc, SwitchBuffer(12e6), ecn_scales=False
    )
    point = settle(DcqcnFluid(2))
    options = {"cnp_gap": 50e-6, "end": 200e-3}
    _, queue, rate = steady("dcqcn-paper", 2, profile, options, {"rate_hai": 40e6 / 8}, gbps=40.0)
    assert rate.sum() > 0.97 * 40 * GBPS * 1000 / 1048
    assert point.queue_bytes / 3 < queue.mean() < 3 * point.queue_bytes


def test_hpcc_runs_at_eta():
    _, queue, rate = steady("hpcc", 4, PROFILE, {"window": 52e3, "acks_wait": True})
    assert rate.sum() / (100 * GBPS * 1000 / 1048) == pytest.approx(0.95, abs=0.01)
    assert queue.mean() < 5e3


def test_swift_keeps_its_target():
    """Delay = base + one switch + the share of the window, where W = rate x delay."""
    _, queue, rate = steady("swift", 4, PROFILE, {})
    line = 100 * GBPS
    delay = 4.16e-6 + queue.mean() / line
    window = rate.mean() * delay / 1000
    a = 100e-6 / (1 / math.sqrt(0.1) - 1 / math.sqrt(100))
    extra = min(max(a / math.sqrt(window) - a / 10, 0), 100e-6)
    assert delay == pytest.approx(20e-6 + 20e-6 / 6.55 + extra, rel=0.1)
    assert rate.sum() / (line * 1000 / 1048) == pytest.approx(1.0, abs=0.01)


def test_dctcp_queue_stands_at_the_threshold():
    """Step marking at K: the queue swings below and around it, and the link is full."""
    k = 300e3
    profile = SwitchProfile("step", EcnCurve(k, k, 1.0), PROFILE.pfc, PROFILE.buffer)
    _, queue, rate = steady("dctcp", 8, profile, {"window": 52e3, "acks_wait": True})
    assert 0.8 * k < queue.mean() < 1.05 * k
    assert rate.sum() / (100 * GBPS * 1000 / 1048) == pytest.approx(1.0, abs=0.01)


def test_powertcp_fills_the_link_with_little_queue():
    _, queue, rate = steady("powertcp", 4, PROFILE, {"base_rtt": 4.16e-6})
    assert rate.sum() / (100 * GBPS * 1000 / 1048) > 0.95
    assert queue.mean() < 52e3


@pytest.mark.parametrize(("km", "falls"), [(2, False), (30, True)])
def test_a_fixed_round_trip_limit_collapses_over_distance(km, falls):
    """150 us of the template are 15 km of fibre there and back; HPCC holds eta at any distance."""
    net, number = network([(0, 2, 100, 5.05 * km), (2, 1, 100, 1.0)], 2, find_deep())
    offered = flows(number, [(0, 2, 1)], 1e12)
    end = 200 * (2 * 5.05e-6 * km + 10e-6)
    run = Options(end=end, sample=end / 2)
    out = run_flows(net, offered, PROTOCOLS.find("rtt-template"), None, run)
    late = (out.delivered[0] - out.sample_received[0, 0]) / (end / 2) / (100 * GBPS * 1000 / 1048)
    assert (late < 0.02) if falls else (late > 0.9)
    rtt = 2 * (5.05e-6 * km + 1e-6) + 1e-6
    run = Options(end=end, sample=end / 2, window=100 * GBPS * rtt, base_rtt=rtt)
    out = run_flows(net, offered, PROTOCOLS.find("hpcc"), None, run)
    late = (out.delivered[0] - out.sample_received[0, 0]) / (end / 2) / (100 * GBPS * 1000 / 1048)
    assert late == pytest.approx(0.95, abs=0.02)


def find_deep() -> SwitchProfile:
    return SwitchProfile("deep", PROFILE.ecn, PROFILE.pfc, SwitchBuffer(1e9))


def test_credits_bound_a_link_by_its_buffer():
    """InfiniBand: buffer / round trip of the link, and nothing waits where no credit is."""
    credit = 250e3
    profile = SwitchProfile(
        "ib", PROFILE.ecn, PROFILE.pfc, SwitchBuffer(64e6, credit_bytes=credit), headroom_factor=0.0
    )
    net, number = network([(0, 2, 100, 1.0), (2, 3, 100, 50.0), (3, 1, 100, 1.0)], 2, profile)
    offered = flows(number, [(0, 2, 3, 1)], 1e12)
    run = Options(end=20e-3, sample=10e-3, step=0)
    out = run_flows(net, offered, PROTOCOLS.find("ib-credits"), None, run)
    rate = (out.delivered[0] - out.sample_received[0, 0]) / 10e-3 * 1048 / 1000
    packet = 1048 / (100 * GBPS)
    rtt = 2 * 50e-6 + packet + 64 / (100 * GBPS)
    assert rate == pytest.approx(credit / rtt, rel=0.01)
    assert out.drops.sum() == 0
    assert out.pauses.sum() == 0
    assert out.peak_queue.max() <= credit + 1048


def test_credits_block_the_innocent():
    """A victim behind a full input buffer gets an incast flow's rate; IB's congestion control frees it."""
    cables = [(0, 6, 100, 0.1), (1, 6, 100, 0.1), (2, 6, 100, 0.1), (3, 6, 100, 0.1)]
    cables += [(4, 7, 100, 0.1), (5, 7, 100, 0.1), (6, 7, 400, 0.1)]
    profile = SwitchProfile(
        "ib",
        EcnCurve(32e3, 32e3, 1.0),
        PROFILE.pfc,
        SwitchBuffer(64e6, credit_bytes=64e3),
        headroom_factor=0.0,
        ecn_scales=False,
    )
    net, number = network(cables, 6, profile)
    routes = [(0, 6, 7, 4), (1, 6, 7, 4), (2, 6, 7, 4), (3, 6, 7, 5)]
    got = {}
    for name in ("ib-credits", "ib-cc"):
        run = Options(end=20e-3, sample=10e-3)
        out = run_flows(net, flows(number, routes, 1e12), PROTOCOLS.find(name), None, run)
        got[name] = (out.delivered - out.sample_received[0]) / 10e-3 / (100 * GBPS * 1000 / 1048)
        assert out.drops.sum() == 0
    assert got["ib-credits"][3] == pytest.approx(1 / 3, abs=0.03)
    assert got["ib-cc"][3] > 0.9


def test_receiver_credits_share_the_last_link():
    """RCCC: eight senders, one receiver: all equal, the link full, and little is lost."""
    profile = SwitchProfile(
        "trim",
        EcnCurve(1e12, 1e12, 1.0),
        PROFILE.pfc,
        SwitchBuffer(64e6, lossless=False, queue_limit_bytes=60e3),
    )
    net, number = network(star(9), 9, profile)
    offered = flows(number, [(host, 9, 8) for host in range(8)], 4e6)
    out = run_flows(net, offered, PROTOCOLS.find("rccc"), None, Options(go_back_n=False))
    ideal = 8 * 4e6 * 1.048 / (100 * GBPS)
    assert out.finish.max() == pytest.approx(ideal, rel=0.02)
    assert out.finish.min() > 0.97 * out.finish.max()
    assert out.drops.sum() < 8 * 100


def test_nscc_holds_its_queue_at_the_target():
    """Four long flows: delay between none and the target's 0.75 RTT, no loss once settled, full link."""
    rtt = 4.16e-6
    bdp = 100 * GBPS * rtt
    profile = SwitchProfile(
        "uec",
        EcnCurve(0.2 * bdp, 0.8 * bdp, 1.0),
        PROFILE.pfc,
        SwitchBuffer(64e6, lossless=False, queue_limit_bytes=bdp),
    )
    out, queue, rate = steady("nscc", 4, profile, {"base_rtt": rtt, "go_back_n": False})
    assert rate.sum() / (100 * GBPS * 1000 / 1048) == pytest.approx(1.0, abs=0.01)
    assert 0.1 * bdp < queue.mean() < 0.9 * bdp
    assert out.drops.sum() < 1e-3 * out.delivered.sum() / 1000
