"""Long links: propagation and what a window of outstanding bytes makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contracts.making import NIC, ROCE, make_fabric, run

METRO = """kind: metro
sites:
- {{name: a, fabric: {site}}}
- {{name: b, fabric: {site}}}
spans: [{{a: a, b: b, length: {km} km}}]
metro: {{radix: 64, switches: 2}}
"""
SITE = "{name: s, kind: leaf-spine, hosts: {count: 8, gpus: 1}, radix: 16, leaf: {downlinks: 4, uplinks: 4}}"

#: Propagation in fibre: 1/198,000 km/s.
PER_KM = 5.05e-6


def metro(km: float):
    """Two sites of two leaves, so many kilometres apart."""
    return make_fabric(METRO.format(site=SITE, km=km))


def one_way(km: float) -> float:
    """Host, leaf, spine, metro | metro, spine, leaf, host: 3 + 30 + 100 m at each end, 6 switches, hosts."""
    return (2 * 0.133 + km) * PER_KM + 6 * 1e-6 + 2.6e-6


def test_round_trip_of_30_km():
    """Fibre alone: 2 x 30 km x 5.05 us/km = 303 us."""
    fabric = metro(30)
    long = fabric.links.delay[fabric.links.length >= 30e3]
    np.testing.assert_allclose(2 * long, 303e-6, rtol=1e-12)


@pytest.mark.parametrize("scheme", ["ecmp", "rail-pinned", "spray", "adaptive"])
@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("km", [2, 30, 80])
def test_window_over_round_trip(km, window, scheme):
    """One flow between sites with W bytes outstanding: R = W / RTT, or line rate where that is more.

    By hand: at 30 km RTT = 2 x (151.5 + 1.34 + 6 + 2.6) us = 323 us, so 4 MiB give 13.0 GB/s, and
    1 MiB 3.2 GB/s; the flow's time is S / R plus one way. Exact but for rounding.
    """
    fabric = metro(km)
    result = run(fabric, f"kind: point-to-point\nsize: 1 GiB\nsrc: 0\ndst: 8\nwindow: {window} MiB", scheme)
    rate = min(window * 2**20 / (2 * one_way(km)), NIC * ROCE)
    assert result.rate[0] == pytest.approx(rate, rel=1e-12)
    assert result.completion_s == pytest.approx(2**30 / rate + one_way(km), rel=1e-12)
    assert result.windowed == (rate < NIC * ROCE)
    assert result.efficiency.mean_flow == pytest.approx(rate / (NIC * ROCE), rel=1e-12)


def test_no_window_no_limit():
    """Without a window distance costs latency and nothing else."""
    result = run(metro(80), "kind: point-to-point\nsize: 1 GiB\nsrc: 0\ndst: 8\nwindow: null", "ecmp")
    assert result.rate[0] == pytest.approx(NIC * ROCE, rel=1e-12)
    assert result.completion_s == pytest.approx(2**30 / (NIC * ROCE) + one_way(80), rel=1e-12)


def test_flows_inside_a_site_do_not_notice():
    """A window that stops flows between sites leaves those inside one alone."""
    flows = "[{src: 0, dst: 8, size: 1 GiB}, {src: 1, dst: 5, size: 1 GiB}]"
    result = run(metro(30), f"kind: flows\nflows: {flows}\nwindow: 4 MiB", "spray")
    assert result.rate[0] == pytest.approx(4 * 2**20 / (2 * one_way(30)), rel=1e-12)
    assert result.rate[1] == pytest.approx(NIC * ROCE, rel=1e-12)
    assert result.windowed == 1


def test_a_ring_pays_the_span_where_it_crosses_it():
    """16 hosts on two sites, ranks in order: 2 of 16 edges are 30 km long, the latency is of those two.

    By hand: passes = 2 x 15/16; edges: per site 6 inside leaves and 1 between leaves, 2 between sites.
    A window of 4 MiB stops the two long edges at W / RTT, and with them the ring (lockstep).
    """
    result = run(metro(30), "kind: all-reduce\nsize: 1 GiB\nchannels: 1", "spray")
    passes = 2 * 15 / 16
    inside, across = 0.006 * PER_KM + 3.6e-6, 0.066 * PER_KM + 5.6e-6
    latency = passes * (12 * inside + 2 * across + 2 * one_way(30))
    bandwidth = passes * 2**30 / (4 * 2**20 / (2 * one_way(30)))
    assert result.latency_s == pytest.approx(latency, rel=1e-9)
    assert result.completion_s == pytest.approx(bandwidth + latency, rel=1e-9)


def test_more_channels_open_the_window():
    """Two channels have a window each: twice the rate over the same distance."""
    one, two = (
        run(metro(30), f"kind: all-reduce\nsize: 1 GiB\nchannels: {n}", "spray").phases[0].network_s
        for n in (1, 2)
    )
    assert one / two == pytest.approx(2, rel=1e-9)
