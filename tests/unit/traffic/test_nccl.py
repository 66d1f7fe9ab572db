"""NCCL's model: latencies and bandwidths by hand, its choice, and what a phase makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from netplan import api
from netplan.traffic.nccl import Cluster, bandwidth, cluster_of, latency, model, time_s
from netplan.traffic.nccl import constants as c
from netplan.traffic.nccl.model import algorithms, correction, protocols
from netplan.traffic.placement import place_ranks
from tests.contracts.making import NIC, ROCE, make_demand, make_fabric, run

DGX_H100 = Cluster(4, 32, 8, 50.0, 370.8, "hopper")


def dgx(hosts, **more):
    """Return H100 hosts under one switch."""
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return make_fabric(f"kind: leaf-spine\nradix: 4096\nhosts: {{count: {hosts}, gpus: 8{extra}}}")


@pytest.mark.parametrize(
    ("kind", "algorithm", "protocol", "expected"),
    [
        # 2 x 31 steps, 2 x 3 of them between hosts; posting takes 1 us, x 3 for Simple
        ("all-reduce", "ring", "ll", 6.6 + 56 * 1.0 + 6 * 2.7),
        ("all-reduce", "ring", "ll128", 14.0 + 56 * 1.9 + 6 * 4.0),
        ("all-reduce", "ring", "simple", 8.4 + 56 * 3.4 + 6 * 14.0),
        ("all-gather", "ring", "simple", 8.4 + 28 * 3.4 + 3 * 14.0),
        ("all-reduce", "tree", "ll", 6.8 + 2 * (7 * 0.6 + 2 * 5.0)),
        ("all-reduce", "tree", "simple", 8.4 + 2 * (7 * 4.0 + 2 * 14.0)),
        ("all-reduce", "nvls-tree", "simple", 25 + 2 * 2 * 20.9),
        ("all-reduce", "in-network", "simple", 25 + 18),
        ("broadcast", "ring", "ll", 6.6 + 32 * 2.7),
    ],
)
def test_latencies(kind, algorithm, protocol, expected):
    """4 hosts of 8, by the formulas of tuning.cc [us]."""
    assert latency(DGX_H100, kind, algorithm, protocol) == pytest.approx(expected)


def test_latency_of_pat_and_amd():
    """PAT: log2(k) net / 3.5 + 2.8 n; AMD CPUs take 2 us to post, 6 for Simple."""
    one = Cluster(16, 16, 1, 50.0, 370.8, "hopper")
    assert latency(one, "all-gather", "pat", "simple") == pytest.approx(8 + 4 * 14 / 3.5 + 16 * 2.8)
    amd = Cluster(4, 32, 8, 50.0, 370.8, "hopper", "amd")
    assert latency(amd, "all-reduce", "ring", "simple") == pytest.approx(8.4 + 56 * 6 + 6 * 14)


@pytest.mark.parametrize(
    ("nics", "rate", "architecture", "nvlink", "channels"),
    [
        (8, 50.0, "hopper", 370.8, (8, 48)),  # 8 x 400G
        (8, 25.0, "ampere", 240.0, (8, 24)),  # DGX A100
        (16, 12.5, "ampere", 240.0, (16, 12)),
        (16, 25.0, "hopper", 370.8, (16, 24)),
        (8, 100.0, "blackwell", 721.8, (8, 96)),
        (4, 12.5, "volta", 120.0, (4, 12)),
        (8, 50.0, "hopper", 164.8, (8, 22)),  # H800: NVLink holds rings back
    ],
)
def test_channels(nics, rate, architecture, nvlink, channels):
    """Channels that NCCL is known to find: 48 GB/s for 400G, 24 for 200G, 12 for 100G."""
    assert Cluster(2, 16, nics, rate, nvlink, architecture).channels == channels


def test_bandwidths():
    """GB/s of algorithm bandwidth, 4 hosts of 8 with 8 x 48 GB/s."""
    factor = 32 / 62
    assert bandwidth(DGX_H100, "all-reduce", "ring", "simple") == pytest.approx(384 * factor)
    assert bandwidth(DGX_H100, "all-reduce", "ring", "ll128") == pytest.approx(8 * 36.7 * factor)
    assert bandwidth(DGX_H100, "all-reduce", "ring", "ll") == pytest.approx(20.4 * factor)
    assert bandwidth(DGX_H100, "all-reduce", "tree", "simple") == pytest.approx(8 * 36 / 2)
    assert bandwidth(DGX_H100, "all-reduce", "nvls-tree", "simple") == pytest.approx(8 * 45.5 * factor)
    two = Cluster(2, 16, 8, 50.0, 370.8, "hopper")
    assert bandwidth(two, "all-reduce", "nvls-tree", "simple") == pytest.approx(8 * 57.7 * 16 / 30)
    one = Cluster(1, 8, 8, 50.0, 370.8, "hopper")
    # 8 channels of 40 GB/s x 0.85 x 7/8 x 2, n / 2(n-1)
    assert bandwidth(one, "all-reduce", "nvls", "simple") == pytest.approx(8 * 40 * 0.85 * 7 / 8 * 2 * 8 / 14)


def test_trees_of_medium_sizes_are_slower():
    """The table of tuning.cc: 64 B x 2^i; 1 above 512 MiB."""
    assert correction(DGX_H100, "tree", "simple", 64 * 2**12) == 0.5
    assert correction(DGX_H100, "tree", "ll", 64) == 1.0
    assert correction(DGX_H100, "tree", "simple", 2**30) == 1.0
    assert correction(DGX_H100, "nvls-tree", "simple", 64 * 2**12) == 1.0
    assert all(len(row) == 24 for row in c.TREE_CORRECTION)


def test_choice_grows_with_the_size():
    """H100, 4 hosts: LL trees for bytes, LL128 for MiB, NVLS trees and rings for GiB: as NCCL logs show."""
    fabric = dgx(4)

    def chosen(size):
        demand = make_demand(fabric, f"kind: all-reduce\nalgorithm: auto\nsize: {size} B")
        return demand.algorithm, demand.protocol

    assert chosen(8) == ("tree", "ll")
    assert chosen(2**20) == ("tree", "ll128")
    assert chosen(2**28) == ("nvls-tree", "simple")
    assert chosen(2**34) == ("ring", "simple")
    a100 = dgx(4, scale_up="300 GB/s", nic_speed="200G")
    large = make_demand(a100, "kind: all-reduce\nalgorithm: auto\nsize: 1 GiB")
    assert (large.algorithm, large.protocol) == ("ring", "simple")
    one = make_demand(dgx(1), "kind: all-reduce\nalgorithm: auto\nsize: 1 GiB")
    assert one.algorithm == "nvls"


@pytest.mark.parametrize("size", [2**k for k in range(3, 35, 3)])
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_choice_is_the_least_of_all(kind, size):
    """Compared with every algorithm and protocol that there is, one by one."""
    fabric = dgx(4)
    demand = make_demand(fabric, f"kind: {kind}\nalgorithm: auto\nsize: {size} B")
    times = {
        (name, protocol): time_s(DGX_H100, kind, name, protocol, size)
        for name in algorithms(kind, DGX_H100)
        for protocol in protocols(name)
    }
    assert times[str(demand.algorithm), str(demand.protocol)] == min(times.values())


def test_protocols_send_more_bytes():
    """LL: 8 bytes for 4; LL128: 128 for 120; Simple: as many."""
    fabric = dgx(2)
    for protocol, factor in (("simple", 1.0), ("ll", 2.0), ("ll128", 128 / 120)):
        text = f"kind: all-reduce\nprotocol: {protocol}\nsize: 120 MB"
        bare = make_demand(fabric, "kind: all-reduce\nsize: 120 MB")
        assert make_demand(fabric, text).size.sum() == pytest.approx(factor * bare.size.sum())


def test_what_a_phase_under_nccl_takes():
    """Large ring: NICs at 48 of 50 GB/s bind, below payload line rate; small: latency, and no bytes."""
    fabric = dgx(4)
    large = run(fabric, "kind: all-reduce\nprotocol: simple\nsize: 64 GiB", "spray")
    fixed = (8.4 + 56 * 3.4 + 6 * 14) * 1e-6
    network = 2 * 31 / 32 * 2**36 / (8 * 48e9)
    assert large.completion_s == pytest.approx(fixed + network, rel=1e-4)
    assert large.phases[0].network_s == pytest.approx(network * 48e9 / (NIC * ROCE), rel=1e-9)
    small = run(fabric, "kind: all-reduce\nprotocol: ll\nsize: 8 B", "spray")
    assert small.completion_s == pytest.approx((6.6 + 56 + 6 * 2.7) * 1e-6, rel=0.01)


def test_a_contended_network_binds_instead():
    """4 leaves, 4:1: the fabric is slower than NICs at 48 GB/s, and the time is the fabric's and latency."""
    fabric = make_fabric(
        "kind: leaf-spine\nradix: 64\nhosts: {count: 16, gpus: 8}\nleaf: {oversubscription: 4, downlinks: 32}"
    )
    text = "kind: all-reduce\nsize: 4 GiB\nplacement: {kind: fragmented}\nwindow: null"
    bare = run(fabric, text, "spray").phases[0]
    under = run(fabric, f"{text}\nprotocol: simple", "spray").phases[0]
    assert under.network_s == pytest.approx(bare.network_s)
    assert under.completion_s == pytest.approx(bare.network_s + under.latency_s)
    assert under.ideal_s < under.completion_s


def test_long_cables_add_to_nccl_s_latency():
    """30 km: data crosses the span 2 (n-1)/n times each way in a ring; NCCL's constants know no such."""
    fabric = api.load_fabric("metro-30km-2site")
    text = "kind: all-reduce\nprotocol: simple\nsize: 1 KiB"
    far = run(fabric, text, "spray")
    spans = 2 * 1023 / 1024 * 2 * 30_000 * 5.05e-9
    ring = (8.4 + (2 * 1023 - 2 * 127) * 3.4 + 2 * 127 * 14) * 1e-6
    assert far.completion_s == pytest.approx(ring + spans, rel=0.01)


@pytest.mark.parametrize(
    ("scale_up", "architecture"), [(150, "volta"), (300, "ampere"), (450, "hopper"), (900, "blackwell")]
)
def test_the_gpu_by_its_scale_up_rate(scale_up, architecture):
    """V100, A100, H100, B200; `gpu` says it for those that are cut down."""
    fabric = dgx(2, scale_up=f"{scale_up} GB/s")
    spec = api.load_traffic("all-reduce-1gib")
    placement = place_ranks(fabric, spec.placement, None, np.random.default_rng(0))
    assert cluster_of(fabric, spec, placement).architecture == architecture
    h20 = spec.model_copy(update={"gpu": "h20"})
    assert cluster_of(fabric, h20, placement).architecture == "hopper"


def test_nvls_fills_a_pipeline_of_its_chunks():
    """16 channels x 8 heads x 128 KiB twice on one host; on 12 hosts (depth 3) six times 64 KiB."""
    one = model.Cluster(1, 8, 8, 50.0, 370.8, "hopper")
    large, rate = 2**30, model.bandwidth(one, "all-reduce", "nvls", "simple") * 1e9
    assert model.fill_s(one, "all-reduce", "nvls", large) == pytest.approx(2 * 16 * 8 * 2**17 / rate)
    assert model.fill_s(one, "all-reduce", "nvls", large - 1) == pytest.approx(2 * 16 * 8 * 2**16 / rate)
    many = model.Cluster(12, 96, 8, 50.0, 370.8, "hopper")
    bus = 8 * 48e9  # 8 NICs at 0.96 of 400G, of which an all-reduce of 96 ranks moves 2 x 95/96
    assert model.fill_s(many, "all-reduce", "nvls-tree", large) == pytest.approx(
        6 * 16 * 8 * 2**16 / (bus * 96 / 190)
    )
    assert model.fill_s(one, "all-gather", "nvls", large) == 0.0
    assert model.fill_s(many, "all-reduce", "ring", large) == 0.0


@pytest.mark.parametrize(
    ("hosts", "size", "chunk"),
    [(1, 8e9, 64), (1, 20e9, 128), (1, 1e9, 32), (2, 2**30, 128), (2, 2**29, 64), (20, 2**30, 64)],
)
def test_chunks_of_a_domain_of_72_gpus(hosts, size, chunk):
    """32 channels on one domain, 24 on several, x 72: NCCL's thresholds 64, 8, 2 and 4, 1 loops."""
    cluster = model.Cluster(hosts, 72 * hosts, 72, 50.0, 721.8, "blackwell")
    assert model.chunk_bytes(cluster, "nvls" if hosts == 1 else "nvls-tree", size) == chunk << 10
