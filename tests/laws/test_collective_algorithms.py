"""Every algorithm's closed form on an uncontended fabric, and the caps of its bus bandwidth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netplan import api
from netplan.errors import FabricError, ModelRangeError, TrafficError
from netplan.traffic.tree import binary_tree, double_tree, tree_depth
from tests.contracts.making import INFINIBAND, NIC, ROCE, make_demand, make_fabric, run

#: Scale-up domains so fast that only the network counts [bytes/s]; and the one of an H100.
FAST, H100 = 1e15, 450e9
SIZE = 2**36  # latency below 1 %


def one_leaf(hosts, gpus, scale_up="1 PB/s"):
    """Return hosts under one switch: nothing contends."""
    text = "kind: leaf-spine\nradix: 4096\nhosts: {{count: {}, gpus: {}, scale_up: {}}}"
    return make_fabric(text.format(hosts, gpus, scale_up))


def algbw(hosts, gpus, text, **more):
    """Return bytes over time in units of a NIC's payload line rate."""
    result = run(one_leaf(hosts, gpus, **more), f"{text}\nsize: {SIZE} B\nwindow: null", "spray")
    return result.algbw / (NIC * ROCE)


@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize("hosts", [2, 3, 4, 5, 7, 8, 16])
def test_caps_of_all_reduce(hosts, gpus):
    """Bus bandwidth over that of a host's NICs, for n -> infinity: ring 1; tree 2, 4/3, 1; in-network 2.

    With n ranks, busbw = algbw x 2(n-1)/n. Ring: algbw = g B n / (2(n-1)), busbw = g B. Tree: the busiest
    host sends 1, 1.5, 2 S. In-network: S up and S down a host.
    """
    n = hosts * gpus
    assert algbw(hosts, gpus, "kind: all-reduce") == pytest.approx(gpus * n / (2 * (n - 1)), rel=0.01)
    busiest = {2: 1.0, 3: 1.5}.get(hosts, 2.0)
    assert algbw(hosts, gpus, "kind: all-reduce\nalgorithm: tree") == pytest.approx(gpus / busiest, rel=0.01)
    assert algbw(hosts, gpus, "kind: all-reduce\nalgorithm: nvls-tree") == pytest.approx(
        gpus / busiest, rel=0.01
    )
    assert algbw(hosts, gpus, "kind: all-reduce\nalgorithm: in-network") == pytest.approx(gpus, rel=0.01)


@pytest.mark.parametrize(("hosts", "gpus"), [(2, 8), (4, 8), (8, 8), (16, 8), (3, 2), (5, 1)])
@pytest.mark.parametrize("algorithm", ["concurrent", "pairwise", "hierarchical"])
def test_caps_of_all_to_all(hosts, gpus, algorithm):
    """Busbw = B (n-1)/((k-1) g): 1.875, 1.29, 1.125, 1.06 B for 2, 4, 8, 16 hosts of 8 GPUs."""
    n = hosts * gpus
    busbw = algbw(hosts, gpus, f"kind: all-to-all\nalgorithm: {algorithm}") * (n - 1) / n
    assert busbw == pytest.approx((n - 1) / ((hosts - 1) * gpus), rel=0.01)


@pytest.mark.parametrize(("hosts", "gpus"), [(2, 1), (4, 1), (4, 4), (8, 8), (2, 8), (16, 2)])
def test_halving_doubling(hosts, gpus):
    """Bytes of a rank that leave its host, by hand: steps at distance g, 2g, ... carry S/2g, S/4g, ...

    The step at distance d exchanges S/(2d), twice. Those from d = g on cross the network: 2 S (1/g - 1/n).
    """
    n = hosts * gpus
    time = 2 * (1 / gpus - 1 / n)
    assert algbw(hosts, gpus, "kind: all-reduce\nalgorithm: halving-doubling") == pytest.approx(
        1 / time, rel=0.01
    )
    half = algbw(hosts, gpus, "kind: reduce-scatter\nalgorithm: recursive-halving")
    assert half == pytest.approx(2 / time, rel=0.01)


@pytest.mark.parametrize("hosts", [3, 5, 6, 7, 12])
def test_ranks_that_are_no_power_of_two_fold(hosts):
    """MPICH: r = n - 2^p ranks hand S over before and get S after: 2 S more for halving-doubling."""
    low = 2 ** int(math.log2(hosts))
    time = 2 * (low - 1) / low + 2
    assert algbw(hosts, 1, "kind: all-reduce\nalgorithm: halving-doubling") == pytest.approx(
        1 / time, rel=0.01
    )
    time = math.log2(low) + 2
    assert algbw(hosts, 1, "kind: all-reduce\nalgorithm: recursive-doubling") == pytest.approx(
        1 / time, rel=0.01
    )


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("hosts", [2, 3, 6, 8, 13, 16])
def test_pat(kind, hosts):
    """(n-1)/n S/B in ceil(log2 n) steps, for any n."""
    text = f"kind: {kind}\nalgorithm: pat"
    assert algbw(hosts, 1, text) == pytest.approx(hosts / (hosts - 1), rel=0.01)
    assert len(make_demand(one_leaf(hosts, 1), f"{text}\nsize: 1 MiB").phases) == math.ceil(math.log2(hosts))


@pytest.mark.parametrize("hosts", [2, 4, 16])
def test_recursive_doubling(hosts):
    """All-reduce: log2(n) S/B. All-gather: (n-1)/n S/B."""
    text = "kind: all-reduce\nalgorithm: recursive-doubling"
    assert algbw(hosts, 1, text) == pytest.approx(1 / math.log2(hosts), rel=0.01)
    text = "kind: all-gather\nalgorithm: recursive-doubling"
    assert algbw(hosts, 1, text) == pytest.approx(hosts / (hosts - 1), rel=0.01)


@pytest.mark.parametrize(("hosts", "gpus"), [(2, 8), (4, 8), (16, 8), (4, 72), (3, 1)])
def test_hierarchical(hosts, gpus):
    """2 (g-1)/g S/B_nvl + 2 (k-1)/k (S/g)/B_nic, one after the other; half for all-gather."""
    nvl = 2 * (gpus - 1) / gpus / H100
    nic = 2 * (hosts - 1) / hosts / gpus / (NIC * ROCE)
    text = "kind: all-reduce\nalgorithm: hierarchical"
    expected = 1 / (nvl + nic) / (NIC * ROCE)
    assert algbw(hosts, gpus, text, scale_up="450 GB/s") == pytest.approx(expected, rel=0.01)
    for kind in ("all-gather", "reduce-scatter"):
        text = f"kind: {kind}\nalgorithm: hierarchical"
        assert algbw(hosts, gpus, text, scale_up="450 GB/s") == pytest.approx(2 * expected, rel=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: broadcast", 8.0),
        ("kind: reduce", 8.0),
        ("kind: send-recv", 1.0),  # one pair of ranks over one NIC
        ("kind: gather", 32 / 24),  # 24 ranks of other hosts send S/32 to one NIC
        ("kind: scatter", 8 * 32 / 24),  # PXN: by the 8 NICs of the root's host
    ],
)
def test_rooted(text, expected):
    """4 hosts of 8 GPUs: chains carry S over all NICs."""
    assert algbw(4, 8, text) == pytest.approx(expected, rel=0.01)


def test_nvls():
    """One domain of g GPUs: S (1 + 1/g) out of each GPU, against 2 (g-1)/g S of a ring."""
    text = f"kind: all-reduce\nalgorithm: nvls\nsize: {SIZE} B"
    result = run(one_leaf(1, 8, "450 GB/s"), text, "spray")
    assert result.algbw == pytest.approx(450e9 / (1 + 1 / 8), rel=0.01)
    result = run(one_leaf(1, 72, "900 GB/s"), text, "spray")
    assert result.algbw == pytest.approx(900e9 / (1 + 1 / 72), rel=0.01)


def test_nvls_tree_is_bound_by_the_scale_up_domain():
    """2 hosts of 8: the tree could carry 8 NICs' 392 GB/s, NVLS no more than 450 / (1 + 1/8) = 400."""
    result = run(
        one_leaf(2, 8, "400 GB/s"), f"kind: all-reduce\nalgorithm: nvls-tree\nsize: {SIZE} B", "spray"
    )
    assert result.algbw == pytest.approx(400e9 / (1 + 1 / 8), rel=0.01)


@pytest.mark.parametrize("algorithm", ["ring", "tree", "hierarchical", "in-network", "nvls-tree"])
def test_domains_of_72(algorithm):
    """Racks of 72 GPUs on rails of one switch each: the same caps with 72 NICs."""
    fabric = api.load_fabric("rail-only-nvl72-4k")
    text = f"kind: all-reduce\nalgorithm: {algorithm}\nsize: {SIZE} B\nwindow: null\nranks: 1152"
    result = run(fabric, text, "rail-pinned")
    n, k, g, nics, nvl = 1152, 16, 72, 72 * NIC * ROCE, 900e9
    time = {
        "ring": max(2 * (n - 1) / n / nics, 2 * (n - 1) / n * 71 / 72 / nvl),
        "tree": max(2 / nics, 2 * 71 / 72 / nvl),
        "hierarchical": 2 * (k - 1) / k / nics + 2 * (g - 1) / g / nvl,
        "in-network": max(1 / nics, 2 * 71 / 72 / nvl),
        "nvls-tree": max(2 / nics, (1 + 1 / g) / nvl),
    }[algorithm]
    # Of the ring, 5 % are latency: 1,136 scale-up hops, twice.
    assert SIZE / (result.completion_s - result.latency_s) == pytest.approx(1 / time, rel=0.01)


@given(
    text=st.sampled_from(
        [
            "kind: leaf-spine\nradix: 16\nhosts: {{count: {}, gpus: {}}}",
            "kind: leaf-spine\nradix: 16\nhosts: {{count: {}, gpus: {}}}\nleaf: {{oversubscription: 3}}",
            "kind: rail-optimized\nradix: 16\nhosts: {{count: {}, gpus: {}}}",
            "kind: clos\nradix: 16\nhosts: {{count: {}, gpus: {}}}\npod: {{leaves: 2}}",
        ]
    ),
    hosts=st.integers(2, 16),
    gpus=st.sampled_from([1, 2, 4]),
    scheme=st.sampled_from(["ecmp", "spray", "ib-static", "ideal"]),
    algorithm=st.sampled_from(["tree", "nvls-tree", "in-network", "hierarchical", "halving-doubling"]),
    protocol=st.sampled_from(["none", "simple"]),
    placement=st.sampled_from(["packed", "random", "fragmented"]),
    size=st.integers(1, 2**34),
    seed=st.integers(0, 9),
)
@settings(max_examples=120)
def test_no_algorithm_beats_its_cap(text, hosts, gpus, scheme, algorithm, protocol, placement, size, seed):
    """Whatever the fabric, routing, placement and size: bytes of the busiest host over its NICs' rate."""
    try:
        fabric = make_fabric(text.format(hosts, gpus))
    except FabricError:
        assume(False)
    if algorithm in ("hierarchical", "halving-doubling"):
        protocol = "none"
    result = run(
        fabric,
        f"kind: all-reduce\nalgorithm: {algorithm}\nprotocol: {protocol}\nsize: {size} B\n"
        f"placement: {{kind: {placement}}}\ngpu: h100",
        scheme,
        seed=seed,
    )
    n, busiest = hosts * gpus, {2: 1.0, 3: 1.5}.get(hosts, 2.0)
    sent = {
        "tree": busiest,
        "nvls-tree": busiest,
        "in-network": 1.0,
        "hierarchical": 2 * (hosts - 1) / hosts,
        # a power of two of ranks takes part; of the busiest host all but what its own ranks exchange
        "halving-doubling": 2 * (1 / gpus - 1 / n) * gpus if n & (n - 1) == 0 else 0.0,
    }[algorithm]
    rate = gpus * NIC * (INFINIBAND if scheme == "ib-static" else ROCE)
    assert result.completion_s >= sent * size / rate * (1 - 1e-9)
    assert result.ideal_s <= result.completion_s * (1 + 1e-9)
    assert result.completion_s > result.latency_s > 0


# ---- trees ------------------------------------------------------------------------------------


def test_trees_as_nccl_draws_them():
    """The two illustrations of trees.cc: 14 hosts; mirrored for 12, moved on by one for 13."""
    assert binary_tree(14).tolist() == [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12]
    _, mirrored = double_tree(12)
    assert mirrored.tolist() == [1, 3, 1, 11, 5, 7, 5, 3, 9, 7, 9, -1]
    _, moved = double_tree(13)
    assert moved[1] == -1
    assert moved[9] == 1
    assert (moved[5], moved[0], moved[3], moved[7], moved[11]) == (9, 9, 5, 5, 0)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 31, 32, 100])
def test_every_tree_reduces_and_spreads_everything(k):
    """Data runs up and down: the root has each host's part once, and every host has the root's sum."""
    sent = np.zeros(k)
    for parent in double_tree(k):
        assert (parent < 0).sum() == 1
        parts = [{host} for host in range(k)]
        depth = np.zeros(k, int)
        for host in range(k):
            at = host
            while parent[at] >= 0:
                at = parent[at]
                depth[host] += 1
                assert depth[host] < k, "a circle"
        for host in sorted(range(k), key=lambda h: -depth[h]):
            if parent[host] >= 0:
                assert not parts[parent[host]] & parts[host], "a part is added twice"
                parts[parent[host]] |= parts[host]
                sent[host] += 0.5
                sent[parent[host]] += 0.5
        assert parts[int(np.flatnonzero(parent < 0)[0])] == set(range(k))
        assert tree_depth(parent) == depth.max() == math.ceil(math.log2(k))
    assert sent.max() == {2: 1.0, 3: 1.5}.get(k, 2.0)
    assert sent.mean() == pytest.approx(2 * (k - 1) / k)


def test_tree_latency():
    """2 depth edges in turn and 2 (g-1) hops inside: 5 hosts of 4, depth 3."""
    result = run(one_leaf(5, 4), "kind: all-reduce\nalgorithm: tree\nsize: 1 B", "spray")
    edge = 6 * 5.05e-9 + 1e-6 + 2.6e-6
    assert result.latency_s == pytest.approx(6 * edge + 6 * 3.33e-6, rel=1e-9)


def test_steps_cost_latency():
    """2 log2(n) exchanges of 1 byte take 2 log2(n) latencies: 16 hosts."""
    result = run(one_leaf(16, 1), "kind: all-reduce\nalgorithm: halving-doubling\nsize: 16 B", "spray")
    assert result.completion_s == pytest.approx(8 * (6 * 5.05e-9 + 1e-6 + 2.6e-6), rel=1e-3)


# ---- in-network -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["leaf-spine", "rail-optimized", "clos"])
def test_aggregation_trees(kind):
    """Each NIC sends and receives S/R once; each switch sends one sum up: links of a tree by hand."""
    more = {"clos": "\npod: {leaves: 2}"}.get(kind, "")
    fabric = make_fabric(f"kind: {kind}\nradix: 16\nhosts: {{count: 16, gpus: 2}}{more}")
    demand = make_demand(fabric, "kind: all-reduce\nalgorithm: in-network\nsize: 8 MB")
    trees = demand.phases[0].trees
    assert trees is not None
    for tree in range(2):
        link = trees.link[trees.ptr[tree] : trees.ptr[tree + 1]]
        assert len(np.unique(link)) == len(link)
        assert sorted(link ^ 1) == sorted(link), "what goes up comes down"
        tier = fabric.nodes.tier
        up = link[tier[fabric.links.dst[link]] > tier[fabric.links.src[link]]]
        senders = fabric.links.src[up]
        assert len(np.unique(senders)) == len(senders), "a switch or host sends twice"
        assert (tier[senders] == 0).sum() == 16
        nodes = set(senders.tolist()) | set(fabric.links.dst[up].tolist())
        assert len(nodes) == len(senders) + 1, "one root"
    result = run(fabric, "kind: all-reduce\nalgorithm: in-network\nsize: 8 GB", "ecmp")
    assert result.algbw == pytest.approx(2 * NIC * ROCE, rel=0.01)


@pytest.mark.parametrize("name", ["dragonfly-72", "slim-fly-q5", "torus-tpu-v4-4k", "alibaba-hpn-pod"])
def test_aggregation_trees_of_any_fabric(name):
    """Routers in the place of spines, and planes: every tree is one, and no NIC sends more than its part."""
    fabric = api.load_fabric(name)
    demand = make_demand(fabric, "kind: all-reduce\nalgorithm: in-network\nsize: 8 MB")
    trees = demand.phases[0].trees
    assert trees is not None
    for tree in range(len(trees.ptr) - 1):
        link = trees.link[trees.ptr[tree] : trees.ptr[tree + 1]]
        nodes = np.unique(np.concatenate([fabric.links.src[link], fabric.links.dst[link]]))
        assert len(link) == 2 * (len(nodes) - 1), "a tree of n nodes has n - 1 edges, used both ways"


def test_in_network_latency():
    """Two leaves: up to the spine and down again, as a message from leaf to leaf."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 8, gpus: 1}")
    result = run(fabric, "kind: all-reduce\nalgorithm: in-network\nsize: 1 B", "spray")
    assert result.latency_s == pytest.approx(66 * 5.05e-9 + 3e-6 + 2.6e-6, rel=1e-9)


def test_in_network_refusals():
    """One host has no tree; protocols of congestion control are not modelled."""
    text = "kind: all-reduce\nalgorithm: in-network\nsize: 1 MiB"
    with pytest.raises(TrafficError, match=r"needs ranks on several hosts\n  hint: nvls"):
        make_demand(one_leaf(1, 8), text)
    fabric, spec = api.load_fabric("lab-2-leaf"), api.load_traffic("all-reduce-1gib")
    spec = spec.model_copy(update={"algorithm": "in-network"})
    with pytest.raises(ModelRangeError, match="cc dcqcn does not run aggregation trees"):
        api.simulate(fabric, spec, cc="dcqcn")


# ---- distance ---------------------------------------------------------------------------------


def test_window_of_a_channel_at_30_km():
    """4 MiB a round trip, whatever the NIC: 13.3 GB/s with 315 us; here with six switches, 323 us.

    By hand, one way: 30 km, and spine, metro switch and leaf of each site; 2 x 3 m, 2 x 30 m and 2 x 100 m of
    cable; two hosts.
    """
    fabric = api.load_fabric("metro-30km-2site")
    text = "kind: all-reduce\nsize: 16 GiB\nchannels: 1"
    result = run(fabric, text, "spray")
    across = result.rate[
        fabric.nodes.site[fabric.endpoints.host[result.scenario.demand.src]]
        != fabric.nodes.site[fabric.endpoints.host[result.scenario.demand.dst]]
    ]
    assert result.windowed == len(across)
    latency = (30_000 + 2 * 3 + 2 * 30 + 2 * 100) * 5.05e-9 + 6e-6 + 2.6e-6
    np.testing.assert_allclose(across, 4 * 2**20 / (2 * latency), rtol=1e-3)
    np.testing.assert_allclose(across, 13.3e9, rtol=0.03)


# ---- alternating rings ------------------------------------------------------------------------


@pytest.mark.parametrize(("hosts", "changes"), [(4, 0), (5, 1), (8, 0)])
def test_alternating_rings_keep_their_rails(hosts, changes):
    """NCCL_CROSS_NIC=2: only the edge that closes the ring over an odd number of hosts changes rails; 1:
    all do; 0: none.
    """
    fabric = one_leaf(hosts, 4)
    rail = fabric.endpoints.rail
    for cross, expected in ((0, 0), (2, changes), (1, hosts)):
        demand = make_demand(fabric, f"kind: all-reduce\nsize: 1 MiB\nchannels: 1\ncross_nic: {cross}")
        crossing = rail[demand.src] != rail[demand.dst]
        np.testing.assert_array_equal(np.bincount(demand.ring, crossing), expected)
        assert sorted(demand.src.tolist()) == sorted(demand.dst.tolist()) == list(range(4 * hosts))
