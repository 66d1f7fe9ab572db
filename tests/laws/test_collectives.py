"""Incast and collectives: times by hand, and caps that no fabric or routing may break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError
from netplan.routing import SCHEMES
from tests.contracts.making import INFINIBAND, NIC, ROCE, first_rates, make_demand, make_fabric, run

#: Propagation on fibre and copper alike [s/m], and NVLink's latency [s]: as the documents say.
PER_METRE, NVLINK = 5.05e-9, 3.33e-6


@pytest.mark.parametrize("scheme", SCHEMES.names())
@pytest.mark.parametrize("senders", [2, 8, 31])
def test_incast(scheme, senders):
    """N senders of S bytes to one NIC of payload rate C: each C/N, all done at N S / C + latency.

    By hand, one leaf: latency = two cables of 3 m, one switch, two hosts.
    Exact but for rounding.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 64\nhosts: {count: 32, gpus: 1}\nleaf: {downlinks: 32}")
    result = run(fabric, f"kind: incast\nsize: 4 MiB\nsenders: {senders}", scheme)
    is_infiniband = SCHEMES.find(scheme).transport == "infiniband"
    rate = NIC * (INFINIBAND if is_infiniband else ROCE)
    switch, hosts = (0.45e-6, 2.35e-6) if is_infiniband else (1e-6, 2.6e-6)
    np.testing.assert_allclose(result.rate, rate / senders, rtol=1e-12)
    expected = senders * 4 * 2**20 / rate + 6 * PER_METRE + switch + hosts
    assert result.completion_s == pytest.approx(expected, rel=1e-12)


def test_incast_through_the_network():
    """Senders on other leaves share the receiver's cable just so: C/N, with nothing else contended
    (spray).
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}")
    result = run(fabric, "kind: incast\nsize: 4 MiB\nsenders: 48", "spray")
    np.testing.assert_allclose(result.rate, NIC * ROCE / 48, rtol=1e-12)
    assert result.phases[0].network_s == pytest.approx(48 * 4 * 2**20 / (NIC * ROCE), rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "passes"), [("all-reduce", 2 * 7 / 8), ("reduce-scatter", 7 / 8), ("all-gather", 7 / 8)]
)
def test_ring_by_alpha_and_beta(kind, passes):
    """4 hosts of 2 GPUs and 2 NICs, 2 hosts a leaf; n = 8 ranks, S = 1e9 bytes, 2 rings, sprayed.

    By hand. Bandwidth: each edge of each ring carries passes x S / 2, at payload line rate B.
    Latency: data goes round each ring's edges in turn, ``passes`` times: 2 edges inside a leaf (2 cables
    of 3 m, 1 switch), 2 across (2 x 3 m + 2 x 30 m, 3 switches), hosts' 2.6 us on each, and 8 - 4 = 4
    edges inside hosts. Exact but for rounding.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 4, gpus: 2}")
    result = run(fabric, f"kind: {kind}\nsize: 1 GB\nchannels: 1", "spray")
    inside, across = 6 * PER_METRE + 1e-6 + 2.6e-6, 66 * PER_METRE + 3e-6 + 2.6e-6
    latency = passes * (2 * inside + 2 * across + 4 * NVLINK)
    bandwidth = passes * 1e9 / 2 / (NIC * ROCE)
    phase = result.phases[0]
    assert phase.network_s == pytest.approx(bandwidth, rel=1e-12)
    assert phase.latency_s == pytest.approx(latency, rel=1e-12)
    assert result.completion_s == pytest.approx(bandwidth + latency, rel=1e-12)
    assert result.algbw == pytest.approx(1e9 / (bandwidth + latency), rel=1e-12)
    assert result.busbw == pytest.approx(passes * 1e9 / (bandwidth + latency), rel=1e-12)
    # alpha-beta in its usual words: busbw tends to the sum of a host's NICs, 2 B, as S grows
    assert result.busbw is not None
    assert result.busbw < 2 * NIC * ROCE


@pytest.mark.parametrize("scheme", ["ecmp", "spray", "ib-static"])
def test_latency_does_not_change_the_bandwidth_term(scheme):
    """Three times the latency: same network time, latency three times, busbw of 1 GiB barely lower.

    SimAI issue 67 saw 45.7 fall to 2.5 GB/s when a send latency went from 2 to 6 us; latencies of steps
    that are pipelined do not add up like that.
    """
    text = (
        "kind: rail-optimized\nradix: 64\nhosts: {{count: 64}}\nlatency: {{switch: {} us, endpoint: {} us}}"
    )
    one, three = (
        run(
            make_fabric(text.format(1 * factor, 2 * factor)),
            "kind: all-reduce\nsize: 1 GiB\nwindow: null",
            scheme,
        )
        for factor in (1, 3)
    )
    assert three.phases[0].network_s == one.phases[0].network_s
    # 64 hosts in 2 blocks: 62 edges of each ring inside a leaf, 2 over a spine, 448 inside hosts.
    fixed = 2 * 511 / 512 * ((62 * 6 + 2 * 66) * PER_METRE + 448 * NVLINK)
    assert one.latency_s - fixed == pytest.approx(2 * 511 / 512 * (62 * 3e-6 + 2 * 5e-6), rel=1e-9)
    assert three.latency_s - fixed == pytest.approx(3 * (one.latency_s - fixed), rel=1e-9)
    assert one.busbw is not None
    assert three.busbw is not None
    assert three.busbw > 0.9 * one.busbw


FABRICS = (
    "kind: leaf-spine\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}}}\n",
    "kind: leaf-spine\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}}}\nleaf: {{oversubscription: 3}}",
    "kind: rail-optimized\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}}}\n",
    "kind: clos\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}}}\npod: {{leaves: 2}}",
    (
        "kind: rail-optimized\ntiers: 3\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}}}\n"
        "pod: {{by: rail, leaves: 1}}"
    ),
)


@given(
    text=st.sampled_from(FABRICS),
    hosts=st.integers(2, 24),
    gpus=st.sampled_from([1, 2, 4]),
    scheme=st.sampled_from(SCHEMES.names()),
    size=st.integers(1, 2**33),
    qps=st.integers(1, 4),
    placement=st.sampled_from(["packed", "random", "fragmented"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=80)
def test_busbw_never_exceeds_its_cap(text, hosts, gpus, scheme, size, qps, placement, seed):
    """Whatever the fabric, routing, size and placement: no collective beats the NICs of its hosts.

    By hand, k hosts of g GPUs with g NICs of payload rate B, n = k g:
    ring: every host sends passes x S in all, so busbw = passes S / T <= g B.
    all-to-all: a host sends g S (k - 1)/k over g B, so T >= S (k - 1)/(k B) and
    busbw = S/T (n - 1)/n <= B (n - 1) / ((k - 1) g).
    """
    try:
        fabric = make_fabric(text.format(hosts=hosts, gpus=gpus))
    except FabricError:  # some sizes fit one pod, or need more ports
        assume(False)
    rate = NIC * (INFINIBAND if SCHEMES.find(scheme).transport == "infiniband" else ROCE)
    n = hosts * gpus
    common = f"size: {size} B\nqps: {qps}\nplacement: {{kind: {placement}}}"
    for kind in ("all-reduce", "all-gather", "reduce-scatter"):
        busbw = run(fabric, f"kind: {kind}\n{common}", scheme, seed=seed).busbw
        assert busbw is not None
        assert busbw <= gpus * rate * (1 + 1e-9)
    busbw = run(fabric, f"kind: all-to-all\n{common}", scheme, seed=seed).busbw
    assert busbw is not None
    assert busbw <= rate * (n - 1) / ((hosts - 1) * gpus) * (1 + 1e-9)


@pytest.mark.parametrize(("hosts", "times"), [(2, 1.875), (4, 1.29), (8, 1.125), (16, 1.06)])
def test_all_to_all_reaches_its_cap(hosts, times):
    """Rail-optimized, PXN, one block, large buffers: busbw = B (n - 1)/((k - 1) g), 1.06 to 1.875 B at g = 8.

    nccl-tests issues 130 and 267 derive the figures. The gap left is latency: below 0.1 % of 8 GiB.
    """
    fabric = make_fabric("kind: rail-optimized\nradix: 64\nhosts: {count: 16}\n")
    result = run(fabric, f"kind: all-to-all\nsize: 8 GiB\nranks: {8 * hosts}", "ecmp")
    assert result.busbw is not None
    assert result.busbw / (NIC * ROCE) == pytest.approx((8 * hosts - 1) / ((hosts - 1) * 8), rel=1e-3)
    assert result.busbw / (NIC * ROCE) == pytest.approx(times, abs=0.006)


def test_eight_gpus_behind_one_nic():
    """8 GPUs a host and one NIC of 200 Gb/s: an all-to-all gets 25 / 8 = 3.1 GB/s a GPU (nccl issue 780).

    By hand: each GPU sends S (k - 1)/k between hosts, at 1/8 of the NIC's payload rate.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 64\nhosts: {count: 16, nics: 1, nic_speed: 200G}")
    result = run(fabric, "kind: all-to-all\nsize: 1 GiB\nwindow: null", "spray")
    per_gpu = 2**30 * 15 / 16 / result.completion_s
    assert per_gpu == pytest.approx(25e9 / 8 * ROCE, rel=1e-3)
    assert per_gpu == pytest.approx(3.1e9, rel=0.02)


@given(st.integers(1, 32))
def test_more_qps_do_not_change_what_a_nic_sends(qps):
    """QPs split a flow, they do not add to it: under spraying the same rates with any number of them."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}")
    demand = make_demand(fabric, f"kind: permutation\nsize: 1 MiB\nqps: {qps}")
    np.testing.assert_allclose(first_rates(fabric, demand, "spray").flow, 1, rtol=1e-9)
    once, many = (run(fabric, f"kind: permutation\nsize: 1 MiB\nqps: {q}", "spray") for q in (1, qps))
    assert many.completion_s == pytest.approx(once.completion_s, rel=1e-12)
