"""Communication times of all groups on a fabric: closed forms, the engine, a slow laying."""

import time

import numpy as np
import pytest

from netplan import api
from netplan.congestion.line_rate import TRANSPORTS
from netplan.errors import TrafficError
from netplan.routing import RoutingOptions
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario
from netplan.spec.traffic import TRAFFIC_SPEC, PlacementSpec
from netplan.traffic import build_demand, place_ranks
from netplan.traffic.placement import Placement
from netplan.traffic.registry import PATTERNS
from netplan.training.groups import RankGrid
from netplan.training.laying import make_demand
from netplan.training.network import Experts, FabricNetwork, NetworkOptions
from netplan.training.together import run_together
from tests.contracts.making import make_fabric
from tests.fabrics import blocking_two_leaves, twin_planes

#: Payload line rate of a NIC of 400G [bytes/s].
LINE = 50e9 * TRANSPORTS["roce"].payload_fraction(4096)

#: A size for which latency is below 0.1 %.
SIZE = 64e9


@pytest.fixture(scope="module")
def pod():
    """Return a rail-optimized fabric of 32 hosts of 8 GPUs, non-blocking."""
    return make_fabric(
        "kind: rail-optimized\nradix: 32\nspine: {radix: 32}\n"
        "hosts: {count: 32, gpus: 8, nic_speed: 400G, scale_up: 450 GB/s}"
    )


def network(fabric, *, placement=None, options=None, **sizes):
    """Return the network of a job over the first hosts of a fabric."""
    grid = RankGrid(**sizes)
    spec = PlacementSpec(**(placement or {}))
    placed = place_ranks(fabric, spec, grid.n_ranks, np.random.default_rng(1))
    return FabricNetwork(fabric, placed, grid, NetworkOptions(**({"routing": "spray"} | (options or {}))))


@pytest.mark.parametrize(
    ("collective", "factor"), [("all-reduce", 2), ("all-gather", 1), ("reduce-scatter", 1)]
)
@pytest.mark.parametrize(
    "sizes", [{"tp": 8, "dp": 16}, {"tp": 4, "dp": 16}, {"dp": 64}, {"tp": 8, "dp": 4, "pp": 4}]
)
def test_ring_closed_form(pod, collective, factor, sizes):
    """Ring: factor (n-1)/n S over the NICs of the group on a host (Thakur et al. 2005).

    With tp 8 a data group has a NIC of each host; with tp 4 two of its ranks are there, with tp 1 all eight.
    """
    n, tp = sizes["dp"], sizes.get("tp", 1)
    nics = 8 // tp
    time = network(pod, **sizes).time("dp", collective, SIZE)
    assert time == pytest.approx(factor * (n - 1) / n * SIZE / (nics * LINE), rel=0.01)


def test_groups_inside_hosts_use_no_nic(pod):
    """Tensor groups of 8 on hosts of 8: the scale-up domain's 2(n-1)/n S/B, and no flow."""
    net = network(pod, tp=8, dp=4)
    assert net.lay("tp", "all-reduce", SIZE).flows == 0
    assert net.time("tp", "all-reduce", SIZE) == pytest.approx(2 * 7 / 8 * SIZE / 450e9, rel=0.001)
    assert net.time("tp", "send-recv", SIZE) == pytest.approx(SIZE / 450e9, rel=0.001)


@pytest.mark.parametrize(
    ("sizes", "ranks_per_host"), [({"tp": 8, "dp": 16, "ep": 16}, 1), ({"dp": 32, "ep": 32}, 8)]
)
def test_all_to_all_closed_form(pod, sizes, ranks_per_host):
    """Of a rank's S bytes, S/n go to each rank; (n-m)/n S leave the host by its NIC (m ranks a host)."""
    n, m = sizes["ep"], ranks_per_host
    time = network(pod, **sizes).time("ep", "all-to-all", SIZE)
    assert time == pytest.approx((n - m) / n * SIZE / LINE, rel=0.01)


def test_pipeline_closed_form(pod):
    """A stage on its own hosts: S over the NIC, both neighbours at once in full duplex."""
    net = network(pod, tp=8, pp=8, dp=2)
    assert net.time("pp", "send-recv", SIZE) == pytest.approx(SIZE / LINE, rel=0.01)
    assert net.boundary_times(SIZE) == pytest.approx(np.full(7, SIZE / LINE), rel=0.01)


def test_pipeline_by_boundary(pod):
    """Two stages of 4 GPUs share a host: boundaries 0 and 2 are inside hosts, 1 is between two."""
    net = network(pod, tp=4, pp=4)
    inside, between = SIZE / 450e9, SIZE / LINE
    assert net.boundary_times(SIZE) == pytest.approx([inside, between, inside], rel=0.01)
    assert net.time("pp", "send-recv", SIZE) == pytest.approx(between, rel=0.01)


def test_context_ring_goes_around(pod):
    """send-recv on another axis than pp is from each rank to the next, and from the last to the first."""
    net = network(pod, tp=8, cp=4)
    assert net.lay("cp", "send-recv", SIZE).flows == 32 * 4  # 4 p2p channels of 14 GB/s make 50 GB/s
    assert net.time("cp", "send-recv", SIZE) == pytest.approx(SIZE / LINE, rel=0.01)


def test_tokens_limited_to_hosts(pod):
    """DeepSeek-V3: 8 experts on at most 4 hosts: half the bytes on the network of 8 copies each sent."""
    plain = network(pod, tp=1, dp=128, ep=128)
    limited = network(pod, tp=1, dp=128, ep=128, options={"experts": Experts(top_k=8, most_hosts=4)})
    assert limited.times("ep", "all-to-all", SIZE).network_s == pytest.approx(
        plain.times("ep", "all-to-all", SIZE).network_s / 2
    )


def test_nothing_to_send(pod):
    """No bytes, or a group of one rank, take no time."""
    net = network(pod, tp=8, dp=4)
    assert net.time("dp", "all-reduce", 0) == 0
    assert net.time("pp", "send-recv", SIZE) == 0
    assert net.bound("cp", "all-gather", SIZE) == 0


# ---- against the engine -----------------------------------------------------------------------


@pytest.mark.parametrize("routing", ["ecmp", "spray", "adaptive", "rail-pinned", "ib-static"])
@pytest.mark.parametrize(
    ("axis", "collective"),
    [
        ("dp", "all-reduce"),
        ("ep", "all-to-all"),
        ("pp", "send-recv"),
        ("dp", "all-gather"),
        ("tp", "all-reduce"),
    ],
)
def test_times_equal_the_engines(pod, routing, axis, collective):
    """The short way for equal flows gives what a run of the engine gives: network, latency and total."""
    net = network(
        pod, tp=4, dp=16, pp=2, ep=8, placement={"kind": "random"}, options={"routing": routing, "qps": 2}
    )
    laid = net.lay(axis, collective, SIZE)
    demand = make_demand(laid, collective, len(net.placement), 2)
    result = simulate(Scenario(pod, demand, routing, RoutingOptions(seed=0)))
    found = net.times(axis, collective, SIZE)
    assert found.total_s == pytest.approx(result.completion_s, rel=1e-9)
    assert found.network_s == pytest.approx(result.phases[0].network_s, rel=1e-9)
    assert found.ideal_s == pytest.approx(result.phases[0].ideal_s, rel=1e-2)


def slow_flows(net, axis, collective, size):
    """Lay every group by itself with the builder of the pattern; return src, dst, bytes sorted."""
    placed = net.placement
    rows: list[tuple[int, int, float]] = []
    for group in net.grid.groups(axis):
        order = {int(host): place for place, host in reversed(list(enumerate(placed.host[group])))}
        ranks = sorted(group.tolist(), key=lambda rank: (order[int(placed.host[rank])], rank))
        small = Placement(net.fabric, placed.host[ranks].copy(), placed.local_gpu[ranks].copy())
        spec = TRAFFIC_SPEC.validate_python({"name": "slow", "kind": collective, "size": int(size)})
        for part in PATTERNS.find(collective).build(net.fabric, spec, small, np.random.default_rng(0)):
            each = np.broadcast_to(part.size, part.src.shape)
            rows += zip(part.src.tolist(), part.dst.tolist(), each.tolist(), strict=True)
    return sorted(rows)


@pytest.mark.parametrize("kind", ["packed", "random", "fragmented", "rail-aware"])
@pytest.mark.parametrize(
    "sizes", [{"tp": 2, "dp": 12, "pp": 3}, {"tp": 8, "dp": 6, "ep": 3}, {"tp": 3, "dp": 5}]
)
@pytest.mark.parametrize(
    ("axis", "collective"), [("dp", "all-reduce"), ("ep", "all-to-all"), ("edp", "all-gather")]
)
def test_moved_groups_equal_groups_laid_one_by_one(pod, kind, sizes, axis, collective):
    """Groups laid once per look and moved are the same flows as each laid by itself."""
    net = network(pod, placement={"kind": kind}, **sizes)
    laid = net.lay(axis, collective, 2**30)
    fast: list[tuple[int, int, float]] = []
    for part in laid.phases:
        each = np.broadcast_to(part.size, part.src.shape)
        fast += zip(part.src.tolist(), part.dst.tolist(), each.tolist(), strict=True)
    assert np.array(sorted(fast)) == pytest.approx(np.array(slow_flows(net, axis, collective, 2**30)))


def test_no_ring_is_shared_by_two_groups(pod):
    """Ring numbers of different groups differ, so that latencies of one do not add to another's."""
    net = network(pod, tp=8, dp=16, pp=2)
    part = net.lay("dp", "all-reduce", SIZE).phases[0]
    assert np.bincount(np.asarray(part.ring)).tolist() == [16] * (8 * 2 * 2)


def test_ports_of_planes_are_all_used():
    """NICs of two ports of 200G: a message is split over both planes."""
    net = network(twin_planes(), tp=2, pp=4)
    line = 25e9 * TRANSPORTS["roce"].payload_fraction(4096)
    assert net.time("pp", "send-recv", SIZE) == pytest.approx(SIZE / (2 * line), rel=0.01)
    assert net.time("pp", "all-reduce", SIZE) == pytest.approx(2 * 3 / 4 * SIZE / (2 * line), rel=0.01)


def test_pxn_keeps_to_the_receivers_rail(pod):
    """Stages of 3 GPUs: rank r of a stage is another GPU than in the next; with PXN it stays in its rail."""
    ends = pod.endpoints
    for pxn, same in ((True, True), (False, False)):
        part = network(pod, tp=3, pp=8, options={"pxn": pxn}).lay("pp", "send-recv", SIZE).phases[0]
        assert bool((ends.rail[part.src] == ends.rail[part.dst]).all()) is same


@pytest.mark.parametrize(
    "algorithm",
    ["tree", "halving-doubling", "recursive-doubling", "hierarchical", "in-network", "nvls-tree", "auto"],
)
def test_every_algorithm_equals_the_engine(pod, algorithm):
    """What a collective's own algorithm takes for one group is what `FabricNetwork` says of one group.

    A group of 128 ranks on 16 hosts, all of them.
    """
    net = network(pod, dp=128, options={"algorithm": algorithm})
    spec = TRAFFIC_SPEC.validate_python(
        {"name": "one", "kind": "all-reduce", "algorithm": algorithm, "size": 2**26, "ranks": 128}
    )
    demand = build_demand(pod, spec, seed=0)
    result = simulate(Scenario(pod, demand, "spray", RoutingOptions(seed=0)))
    assert net.time("dp", "all-reduce", 2**26) == pytest.approx(result.completion_s, rel=1e-6)


def test_trees_of_several_groups(pod):
    """In-network: groups of one rank a host each get aggregation trees of their own; S up and S down."""
    net = network(pod, tp=8, dp=16, options={"algorithm": "in-network"})
    assert net.time("dp", "all-reduce", SIZE) == pytest.approx(SIZE / LINE, rel=0.01)
    with pytest.raises(TrafficError, match="aggregation trees in switches cannot share links"):
        net.together([("dp", "all-reduce", SIZE)])


def test_double_trees_need_more_than_rings(pod):
    """Tree on 16 hosts of one rank: the busiest NIC sends 2 S, a ring's 2 (n-1)/n S; fewer hops."""
    ring = network(pod, tp=8, dp=16)
    tree = network(pod, tp=8, dp=16, options={"algorithm": "tree"})
    assert tree.time("dp", "all-reduce", SIZE) / ring.time("dp", "all-reduce", SIZE) == pytest.approx(
        16 / 15, rel=0.01
    )
    assert tree.time("dp", "all-reduce", 8) < ring.time("dp", "all-reduce", 8) / 2
    assert tree.together([("dp", "all-reduce", SIZE)]) == pytest.approx([tree.time("dp", "all-reduce", SIZE)])


# ---- bounds, classes, together ----------------------------------------------------------------


@pytest.mark.parametrize("routing", ["ecmp", "spray", "ib-static"])
@pytest.mark.parametrize("kind", ["packed", "random", "fragmented"])
@pytest.mark.parametrize(("algorithm", "protocol"), [("ring", "none"), ("tree", "none"), ("auto", "auto")])
def test_no_time_is_below_its_bound(pod, routing, kind, algorithm, protocol):
    """The bound knows NIC ports only: every routing takes as long or longer, whatever the size."""
    options = {"routing": routing, "channels": 1, "algorithm": algorithm, "protocol": protocol}
    net = network(pod, tp=4, dp=16, pp=2, ep=4, placement={"kind": kind}, options=options)
    for axis, collective in (
        ("tp", "all-reduce"),
        ("dp", "reduce-scatter"),
        ("dp", "all-reduce"),
        ("ep", "all-to-all"),
        ("pp", "send-recv"),
    ):
        for size in (1e3, 1e6, 1e9):
            assert 0 < net.bound(axis, collective, size) <= net.time(axis, collective, size)


def test_a_size_class_is_run_once(pod):
    """Two sizes are one run under max-min; the answer is linear beside the latency."""
    cache: dict[object, object] = {}
    grid = RankGrid(tp=8, dp=16)
    placed = place_ranks(pod, PlacementSpec(), 128, np.random.default_rng(0))
    net = FabricNetwork(pod, placed, grid, cache=cache)
    one, two = net.times("dp", "all-reduce", 1e9), net.times("dp", "all-reduce", 2e9)
    assert len(cache) == 1
    assert two.network_s == pytest.approx(2 * one.network_s)
    assert two.latency_s == one.latency_s
    other = FabricNetwork(pod, placed, grid, NetworkOptions(seed=7), cache=cache)
    other.time("dp", "all-reduce", 1e9)
    assert len(cache) == 2


def test_a_protocol_runs_in_the_engine():
    """Under a protocol the engine's time is taken: more than max-min's, of the same order."""
    fabric = blocking_two_leaves()
    fluid = network(fabric, dp=8, options={"routing": "ecmp"})
    packets = network(fabric, dp=8, options={"routing": "ecmp", "cc": "dcqcn"})
    ratio = packets.time("dp", "all-reduce", 2**24) / fluid.time("dp", "all-reduce", 2**24)
    assert 1.0 <= ratio < 2.0


def test_two_kinds_share_a_link():
    """Two all-reduces of one group at once take twice as long as one; one alone goes on at full speed.

    By hand: sizes S and 3S. Each has half of the links until S ends at 2T; of 3S then 2S are left, at full
    speed another 2T: 4T.
    """
    net = network(blocking_two_leaves(), dp=8, options={"routing": "spray"})
    alone = net.time("dp", "all-reduce", SIZE)
    ends = net.together([("dp", "all-reduce", SIZE), ("dp", "all-reduce", 3 * SIZE)])
    assert ends == pytest.approx([2 * alone, 4 * alone], rel=0.01)


def test_kinds_on_different_links_do_not_meet(pod):
    """Tensor groups inside hosts and data groups between them: both as alone."""
    net = network(pod, tp=8, dp=16)
    asked = [("tp", "all-reduce", SIZE), ("dp", "all-reduce", SIZE), ("pp", "send-recv", SIZE)]
    assert net.together(asked) == pytest.approx([net.time(*each) for each in asked], rel=1e-9)


def test_together_alone_equals_time(pod):
    """One kind by itself takes what `time` says, contended or not."""
    net = network(pod, tp=8, dp=16, pp=2, placement={"kind": "random"}, options={"routing": "ecmp"})
    for asked in (("dp", "all-reduce", SIZE), ("pp", "send-recv", SIZE)):
        assert net.together([asked]) == pytest.approx([net.time(*asked)], rel=1e-9)
    assert run_together(pod, [None], net.options) == [0.0]


def test_windows_limit_channels_over_distance():
    """4 MiB a channel over 30 km, round trip about 315 us: 13.3 GB/s, one channel a NIC."""
    fabric = api.load_fabric("metro-30km-2site")
    n = fabric.n_gpus // 8
    net = network(fabric, tp=8, dp=n, options={"channels": 1})
    assert net.times("dp", "all-reduce", SIZE).network_s == pytest.approx(
        2 * (n - 1) / n * SIZE / 13.3e9, rel=0.03
    )


def test_a_host_that_lost_a_nic_slows_its_groups(pod):
    """The GPU without a NIC uses its neighbour's: two groups share it, and take twice as long."""
    damaged = api.fail(pod, ["nic:host-00003/2"])
    whole, hurt = network(pod, tp=8, dp=16), network(damaged, tp=8, dp=16)
    assert hurt.time("dp", "all-reduce", SIZE) == pytest.approx(
        2 * whole.time("dp", "all-reduce", SIZE), rel=0.01
    )
    assert hurt.time("tp", "all-reduce", SIZE) == whole.time("tp", "all-reduce", SIZE)


def test_a_rack_of_72_is_one_scale_up_domain():
    """Data groups of 9 inside a rack of 72 GPUs take no NIC; those over 64 racks one NIC a rank."""
    fabric = api.load_fabric("rail-only-nvl72-4k")
    inside = network(fabric, tp=8, dp=9, options={"routing": "ecmp"})
    assert inside.time("dp", "all-reduce", SIZE) == pytest.approx(2 * 8 / 9 * SIZE / 900e9, rel=0.01)
    across = network(fabric, tp=72, dp=64, options={"routing": "ecmp"})
    assert across.time("dp", "all-reduce", SIZE) == pytest.approx(2 * 63 / 64 * SIZE / LINE, rel=0.01)


def test_sixteen_thousand_gpus_take_seconds():
    """Llama 3 405B's groups on its fabric: all kinds of an axis in well below a few seconds."""
    fabric = api.load_fabric("llama3-24k")
    net = network(fabric, tp=8, pp=16, dp=128, options={"routing": "ecmp"})
    net.time("pp", "send-recv", SIZE)  # compiles
    begun = time.perf_counter()
    for axis, collective in (("tp", "all-reduce"), ("dp", "all-gather"), ("dp", "all-reduce")):
        assert net.time(axis, collective, SIZE) > 0
    assert time.perf_counter() - begun < 5


# ---- bad input --------------------------------------------------------------------------------


def test_bad_questions(pod):
    """Each says what it takes."""
    net = network(pod, tp=8, dp=4)
    with pytest.raises(TrafficError, match="collective = 'allreduce' is not one of") as error:
        net.time("dp", "allreduce", 1)
    assert error.value.hint is not None
    assert "all-reduce" in error.value.hint
    with pytest.raises(TrafficError, match="bytes = -1: a size is finite, and 0 or more"):
        net.time("dp", "all-reduce", -1)
    with pytest.raises(TrafficError, match="32 GPUs are placed, but tp x cp x dp x pp = 8 x 1 x 8 x 1 = 64"):
        FabricNetwork(pod, net.placement, RankGrid(tp=8, dp=8))
