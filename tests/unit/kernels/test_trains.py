"""The train engine against the obvious packet simulator of the same rules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.dynamics import Flows, Network, Options, Outcome, run_flows
from netplan.congestion.switch import EcnCurve, PfcThresholds, PfcWatchdog, SwitchBuffer, SwitchProfile
from netplan.kernels.trains_cc import uniform
from netplan.kernels.trains_reference import Dcqcn, Link, Sender, Switch, simulate_packets
from tests.unit.congestion.trains import flows, network


def reference(
    net: Network, offered: Flows, profile: SwitchProfile, parameters: dict[str, float] | None, window: float
) -> tuple[list[Link], list[Sender]]:
    links = []
    for rate, delay, src, dst in zip(net.rate, net.delay, net.src, net.dst, strict=True):
        link = Link(rate, delay, int(src), int(dst))
        if net.is_switch[src]:
            curve = profile.ecn_of(rate)
            link.kmin, link.kmax, link.pmax = curve.kmin_bytes, curve.kmax_bytes, curve.pmax
        if net.is_switch[dst]:
            link.alpha = profile.alpha_of(rate)
            link.room = profile.headroom_of(rate, delay) if profile.buffer.lossless else 0.0
        links.append(link)
    switches = {}
    for s in np.flatnonzero(net.is_switch):
        into = [link for link in links if link.dst == s]
        reserve = profile.buffer.reserved_bytes
        pool = profile.buffer.total_bytes - sum(link.room for link in into) - len(into) * reserve
        switches[int(s)] = Switch(pool, reserve, profile.pfc.xon_offset_bytes, profile.buffer.lossless)
        if profile.watchdog is not None:
            switches[int(s)].watchdog = profile.watchdog.action
            switches[int(s)].detect = profile.watchdog.detection_s
            switches[int(s)].restore = profile.watchdog.restoration_s
    senders = [
        Sender(
            size=offered.size[f],
            start=offered.start[f],
            path=[int(e) for e in offered.path_link[offered.path_ptr[f] : offered.path_ptr[f + 1]]],
            back=[int(e) for e in offered.back_link[offered.back_ptr[f] : offered.back_ptr[f + 1]]],
            payload=offered.payload,
            header=offered.header,
            ack=offered.ack_bytes,
            window=window or np.inf,
        )
        for f in range(len(offered.size))
    ]
    dcqcn = None
    if parameters is not None:
        values = PROTOCOLS.find("dcqcn").values(parameters)
        dcqcn = Dcqcn(*values[:4], *values[5:9])
    simulate_packets(
        links, switches, senders, lambda f, packet, hop: uniform(0, f, packet, hop), dcqcn, end=0.1
    )
    return links, senders


def assert_same(out: Outcome, links: list[Link], senders: list[Sender]) -> None:
    np.testing.assert_allclose(out.finish, [sender.finish for sender in senders], rtol=1e-9)
    np.testing.assert_allclose(out.received, [sender.received for sender in senders], rtol=1e-9)
    np.testing.assert_array_equal(out.marks, [sender.marks for sender in senders])
    np.testing.assert_array_equal(out.pauses, [link.pauses for link in links])
    np.testing.assert_array_equal(out.drops, [link.drops for link in links])
    np.testing.assert_array_equal(out.storms, [link.storms for link in links])
    np.testing.assert_allclose(out.peak_queue, [link.peak for link in links], rtol=1e-9, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    protocol=st.sampled_from(["none", "dcqcn"]),
    lossless=st.booleans(),
    window=st.sampled_from([0.0, 40e3]),
    watchdog=st.sampled_from([None, PfcWatchdog(3e-6, 7e-6), PfcWatchdog(3e-6, 7e-6, "forward")]),
)
def test_single_packets_equal_the_obvious_simulator(data, protocol, lossless, window, watchdog):
    """Two switches and a trunk: six hosts, any flows between them, small buffers and thresholds."""
    # Odd rates and delays, lest two packets arrive at one instant: they would have no order.
    hosts = [
        (host, 6 + host % 2, 100.0 + 1.37 * (host + 1) ** 0.7, 1.0 + 0.013 * (host + 1) ** 1.5)
        for host in range(6)
    ]
    profile = SwitchProfile(
        "small",
        EcnCurve(20e3, 80e3, 0.3),
        PfcThresholds("dynamic", alpha=0.5),
        SwitchBuffer(700e3 if lossless else 150e3, lossless=lossless),
        watchdog=watchdog,
    )
    net, number = network([*hosts, (6, 7, 99.13, 2.0)], 6, profile)
    pairs = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1])
    ends = data.draw(st.lists(pairs, min_size=1, max_size=6))
    routes = [(a, 6 + a % 2, b) if a % 2 == b % 2 else (a, 6 + a % 2, 6 + b % 2, b) for a, b in ends]
    size = [float(data.draw(st.integers(1_000, 300_000))) for _ in routes]
    start = [data.draw(st.integers(0, 20_000)) * 1.00037e-9 + 3.17e-9 * f for f in range(len(routes))]
    offered = flows(number, routes, size, start)
    parameters = {"timer_s": 30e-6, "rate_ai": 5e8} if protocol == "dcqcn" else None
    out = run_flows(
        net,
        offered,
        PROTOCOLS.find(protocol),
        parameters,
        Options(step=0, ordered=True, window=window, window_follows_rate=False, end=0.1),
    )
    links, senders = reference(net, offered, profile, parameters, window)
    assert_same(out, links, senders)


def test_draws_differ():
    """Of seeds, flows, packets and hops: exchanging two numbers gives another draw."""
    numbers = [uniform(*row) for row in np.ndindex(8, 8, 4, 3)]
    assert len(set(numbers)) == len(numbers)
    assert np.mean(numbers) == pytest.approx(0.5, abs=3 / np.sqrt(12 * len(numbers)))


def test_longer_table_than_foreseen(monkeypatch):
    """The table of trains grows while the run goes on, and the result does not change."""
    net, number = network([(0, 2, 100.0, 300.0), (1, 2, 100.0, 300.0)], 2)
    offered = flows(number, [(0, 2, 1)], 30e6)  # 7,500 packets in flight
    out = run_flows(net, offered, PROTOCOLS.find("none"), None, Options(step=0))
    packet = 1048 / net.rate[0]
    first = 2 * 300e-6 + 2 * packet
    assert out.received[0] == pytest.approx(first + (30_000 - 1) * packet, rel=1e-12)
    assert replace(out).status == "finished"
