"""Payload line rates, latencies and efficiency figures, by hand."""

import numpy as np
import pytest

from netplan.congestion.efficiency import Efficiency, sender_efficiency
from netplan.congestion.line_rate import MTUS, SCALE_UP_LATENCY_S, TRANSPORTS, latencies
from netplan.errors import ModelRangeError
from tests.contracts.making import make_fabric


@pytest.mark.parametrize("mtu", MTUS)
def test_payload_fraction(mtu):
    """RoCEv2: 8 preamble + 14 Ethernet + 20 IPv4 + 8 UDP + 12 BTH + 4 ICRC + 4 FCS + 12 gap = 82 bytes a
    packet.

    InfiniBand: 8 LRH + 12 BTH + 4 ICRC + 2 VCRC = 26.
    """
    assert TRANSPORTS["roce"].payload_fraction(mtu) == pytest.approx(mtu / (mtu + 82), rel=1e-15)
    assert TRANSPORTS["infiniband"].payload_fraction(mtu) == pytest.approx(mtu / (mtu + 26), rel=1e-15)


@pytest.mark.parametrize("mtu", [0, 1500, 9000, -4096])
def test_other_mtus_are_refused(mtu):
    """RDMA has no such packets; the message lists those it has."""
    with pytest.raises(ModelRangeError, match=rf"mtu = {mtu} bytes is not one of 256, 512, 1024, 2048, 4096"):
        TRANSPORTS["roce"].payload_fraction(mtu)


@pytest.mark.parametrize(
    ("name", "one_switch", "three_switches"), [("roce", 3.6e-6, 5.6e-6), ("infiniband", 2.8e-6, 3.7e-6)]
)
def test_latencies_add_up_to_the_measured_ones(name, one_switch, three_switches):
    """DeepSeek-V3 (ISCA 2025, table 5), 64 B end to end: through one leaf, and through leaf, spine, leaf."""
    t = TRANSPORTS[name]
    assert t.endpoint_latency_s + t.switch_latency_s == pytest.approx(one_switch)
    assert t.endpoint_latency_s + 3 * t.switch_latency_s == pytest.approx(three_switches)
    assert pytest.approx(3.33e-6) == SCALE_UP_LATENCY_S


def test_a_fabric_may_have_latencies_of_its_own():
    """Each replaces the transport's by itself."""
    text = "kind: leaf-spine\nradix: 8\nhosts: {count: 2, gpus: 1}\n"
    plain = make_fabric(text)
    assert latencies(plain, TRANSPORTS["roce"]) == (1e-6, 2.6e-6)
    quick = make_fabric(text + "latency: {switch: 600 ns}")
    assert latencies(quick, TRANSPORTS["roce"]) == pytest.approx((0.6e-6, 2.6e-6))
    assert latencies(make_fabric(text + "latency: {endpoint: 0 s}"), TRANSPORTS["infiniband"]) == (
        0.45e-6,
        0.0,
    )


def test_sender_efficiency_by_hand():
    """Line rates 10 (endpoints 0-3) and 4 (endpoint 4).

    0 sends 6 + 2 to two receivers: 8/10. 1 sends 3 to the slow endpoint 4: 3/4, for it takes no more.
    2 sends 5 + 1 over two channels to one receiver: 6/10. 3 sends nothing and does not count.
    """
    line = np.array([10.0, 10.0, 10.0, 10.0, 4.0])
    src, dst = np.array([0, 0, 1, 2, 2]), np.array([1, 2, 4, 3, 3])
    rate = np.array([6.0, 2.0, 3.0, 5.0, 1.0])
    np.testing.assert_allclose(sender_efficiency(src, dst, rate, line), [0.8, 0.75, 0.6])


def test_no_flows_no_senders():
    """An empty phase has no figures to average."""
    nothing = np.zeros(0, int)
    assert sender_efficiency(nothing, nothing, np.zeros(0), np.ones(3)).shape == (0,)


def test_figures_by_name():
    """The JSON has the three by name."""
    assert Efficiency(0.5, 0.25, 0.1).to_dict() == {"mean_flow": 0.5, "collective": 0.25, "worst_flow": 0.1}
