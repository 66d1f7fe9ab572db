"""Each pattern by hand: edges, bytes, factors; every refusal with its words."""

from __future__ import annotations

import numpy as np
import pytest

from netplan.errors import TrafficError
from netplan.traffic import PATTERNS, all_to_all, permutation
from tests.contracts.making import make_demand, make_fabric, run
from tests.fabrics import dumbbell, lab_two_leaves, one_leaf, rail_2x8, three_campuses

SMALL = "kind: leaf-spine\nradix: 16\nhosts: {{count: {hosts}, gpus: {gpus}{more}}}\n"


def small(hosts, gpus, more=""):
    """Return a leaf-spine fabric of a few hosts."""
    return make_fabric(SMALL.format(hosts=hosts, gpus=gpus, more=more))


@pytest.mark.parametrize(
    ("kind", "passes", "factor"),
    [("all-reduce", 2 * 5 / 6, 2 * 5 / 6), ("reduce-scatter", 5 / 6, 5 / 6), ("all-gather", 5 / 6, 5 / 6)],
)
def test_ring_edges_and_bytes(kind, passes, factor):
    """3 hosts of 2 GPUs and NICs (n = 6 ranks), 2 rings of 2 channels, S = 6,000 bytes.

    By hand: ring r goes NIC r of host 0 -> 1 -> 2 -> 0; each edge of each channel carries
    passes x S / (2 x 2); the NVLink hops of a ring are 6 ranks less 3 edges between hosts.
    """
    demand = make_demand(small(3, 2), f"kind: {kind}\nsize: 6000 B")
    assert demand.busbw_factor == pytest.approx(factor)
    edges = sorted(zip(demand.src.tolist(), demand.dst.tolist(), demand.channel.tolist(), strict=True))
    assert edges == sorted(
        (a, b, c) for a, b in [(0, 2), (1, 3), (2, 4), (3, 5), (4, 0), (5, 1)] for c in (0, 1)
    )
    np.testing.assert_allclose(demand.size, passes * 6000 / 4)
    assert len(np.unique(demand.ring)) == 4
    phase = demand.phases[0]
    assert phase.lockstep
    assert phase.passes == pytest.approx(passes)
    assert phase.scale_up_hops == 3


def test_ring_scale_up_time_by_hand():
    """4 GPUs, 4 NICs a host, scale-up S': a GPU sends each ring to its neighbour but the one that leaves at
    it.

    By hand: total = passes x S = 2 x 7/8 x 8e9 = 14e9 bytes over 4 rings; 3 of 4 rings: 10.5e9 / 450e9 s.
    One host alone: nothing leaves, all 4 rings.
    """
    two = make_demand(small(2, 4), "kind: all-reduce\nsize: 8 GB").phases[0]
    assert two.scale_up_s == pytest.approx(2 * 7 / 8 * 8e9 * 3 / 4 / 450e9)
    alone = make_demand(small(2, 4), "kind: all-reduce\nsize: 8 GB\nranks: 4")
    assert len(alone) == 0
    assert alone.phases[0].scale_up_s == pytest.approx(2 * 3 / 4 * 8e9 / 450e9)
    assert alone.phases[0].scale_up_hops == 4


@pytest.mark.parametrize(("leaves", "channels"), [(2, 1), (4, 1), (4, 2)])
def test_packed_rings_cross_each_leaf_once(leaves, channels):
    """Ranks in order on a leaf-spine fabric: per leaf, direction, NIC and channel one flow crosses to the
    next leaf.

    By hand: hosts 4 l to 4 l + 3 are on leaf l, so the ring leaves it once: 8 NICs x channels flows up, as
    many down.
    """
    fabric = make_fabric(f"kind: leaf-spine\nradix: 64\nhosts: {{count: {4 * leaves}}}")
    demand = make_demand(fabric, f"kind: all-reduce\nsize: 1 GiB\nchannels: {channels}")
    a, b = fabric.endpoints.leaf[demand.src], fabric.endpoints.leaf[demand.dst]
    crosses = a != b
    for ends in (a, b):
        assert np.unique(ends[crosses], return_counts=True)[1].tolist() == [8 * channels] * leaves


def test_packed_rings_stay_in_their_rail():
    """Rail-optimized, one block: no flow of a ring meets a spine; two blocks: one flow each way, rail and
    channel.
    """
    fabric = rail_2x8()
    demand = make_demand(fabric, "kind: all-reduce\nsize: 1 GiB\nchannels: 1")
    ends = fabric.endpoints
    assert (ends.rail[demand.src] == ends.rail[demand.dst]).all()
    assert (ends.leaf[demand.src] != ends.leaf[demand.dst]).sum() == 2 * 8


def test_fragmented_rings_cross_always():
    """One host of each leaf in turn: every edge of every ring leaves its leaf."""
    fabric = make_fabric("kind: leaf-spine\nradix: 64\nhosts: {count: 16}")
    demand = make_demand(fabric, "kind: all-reduce\nsize: 1 GiB\nchannels: 1\nplacement: {kind: fragmented}")
    assert (fabric.endpoints.leaf[demand.src] != fabric.endpoints.leaf[demand.dst]).all()


def test_ring_on_hosts_in_part():
    """8 GPUs and 4 NICs a host, 11 ranks: 8 on host 0, 3 on host 1, whose GPUs 0-2 are served by NICs 0 and
    1.

    By hand: two NICs serve both hosts' ranks, so two rings.
    """
    fabric = small(2, 8, ", nics: 4")
    demand = make_demand(fabric, "kind: all-reduce\nsize: 11 MB\nchannels: 1\nranks: 11")
    assert sorted(zip(demand.src.tolist(), demand.dst.tolist(), strict=True)) == [
        (0, 4),
        (1, 5),
        (4, 0),
        (5, 1),
    ]
    np.testing.assert_allclose(demand.size, 2 * 10 / 11 * 11e6 / 2)
    assert demand.n_ranks == 11


def test_more_nics_than_gpus():
    """2 GPUs with 4 NICs: all four NICs have a ring; point-to-point uses the first NIC of each GPU."""
    fabric = small(2, 2, ", nics: 4")
    demand = make_demand(fabric, "kind: all-reduce\nsize: 4 MB\nchannels: 1")
    assert sorted(demand.src.tolist()) == list(range(8))
    one = make_demand(fabric, "kind: point-to-point\nsize: 1 MB\nsrc: 1\ndst: 2")
    assert (one.src.tolist(), one.dst.tolist()) == ([2], [4])
    part = make_demand(fabric, "kind: all-reduce\nsize: 4 MB\nchannels: 1\nranks: 3")
    assert sorted(part.src.tolist()) == [0, 1, 4, 5]  # one GPU of host 1: its two NICs


def test_all_to_all_with_pxn_by_hand():
    """2 hosts of 2 GPUs and NICs, S = 4,000 bytes, n = 4: each rank sends 1,000 to each.

    By hand: to NIC r of the other host both ranks of this one send 1,000, leaving by NIC r: four flows of
    2,000.
    Scale-up: to the sibling 1,000; relayed to the sibling's rail 1,000 of the 2,000 for the other host.
    """
    demand = make_demand(small(2, 2), "kind: all-to-all\nsize: 4000 B")
    assert sorted(zip(demand.src.tolist(), demand.dst.tolist(), strict=True)) == [
        (0, 2),
        (1, 3),
        (2, 0),
        (3, 1),
    ]
    assert demand.size.tolist() == [2000.0] * 4
    assert demand.busbw_factor == pytest.approx(3 / 4)
    assert demand.phases[0].scale_up_s == pytest.approx(2000 / 450e9)


@pytest.mark.parametrize("is_pxn", [True, False])
def test_pxn_keeps_flows_in_their_rail(is_pxn):
    """With PXN no byte changes rail; without, (g - 1)/g of them do: 7/8 at g = 8."""
    fabric = rail_2x8()
    demand = make_demand(fabric, f"kind: all-to-all\nsize: 64 MiB\npxn: {str(is_pxn).lower()}")
    changes = fabric.endpoints.rail[demand.src] != fabric.endpoints.rail[demand.dst]
    share = demand.size[changes].sum() / demand.size.sum()
    assert share == (0 if is_pxn else pytest.approx(7 / 8))


@pytest.mark.parametrize("is_pxn", [True, False])
def test_all_to_all_with_fewer_nics(is_pxn):
    """8 GPUs behind one NIC, k = 4 hosts: one flow for each ordered pair of hosts, of 8 x 8 parts."""
    demand = make_demand(
        small(4, 8, ", nics: 1"), f"kind: all-to-all\nsize: 32 kB\npxn: {str(is_pxn).lower()}"
    )
    assert len(demand) == 4 * 3
    assert demand.size.tolist() == [64 * 1000.0] * 12


def test_permutation_by_shift():
    """NIC i sends to NIC i + 3 of 8, counted around."""
    demand = make_demand(small(8, 1), "kind: permutation\nsize: 10 B\nshift: 3")
    assert demand.dst.tolist() == [(i + 3) % 8 for i in range(8)]


@pytest.mark.parametrize("is_cross_leaf", [False, True])
def test_random_permutations(is_cross_leaf):
    """Each NIC sends once and receives once, leaves its host (or leaf), and seeds differ."""
    fabric = rail_2x8()
    group = fabric.endpoints.leaf if is_cross_leaf else fabric.endpoints.host
    drawn = set()
    for seed in range(20):
        demand = make_demand(
            fabric, f"kind: permutation\nsize: 10 B\ncross_leaf: {str(is_cross_leaf).lower()}", seed=seed
        )
        assert sorted(demand.src.tolist()) == sorted(demand.dst.tolist()) == list(range(64))
        assert (group[demand.src] != group[demand.dst]).all()
        drawn.add(tuple(demand.dst.tolist()))
    assert len(drawn) == 20


def test_random_permutations_spread():
    """Targets of NIC 0 over 1,500 seeds are uniform over the 6 NICs of other hosts (the repair by swaps
    keeps that near).

    Tolerance: 5 standard deviations of a count, 5 sqrt(1500 x 5/36) = 72.
    """
    fabric = small(4, 2)
    targets = [int(make_demand(fabric, "kind: permutation\nsize: 1 B", seed=s).dst[0]) for s in range(1500)]
    count = np.bincount(targets, minlength=8)
    assert count[:2].tolist() == [0, 0]
    assert np.abs(count[2:] - 1500 / 6).max() < 72


def test_incast_by_hand():
    """5 senders of 6 NICs on other hosts: those of the receiver's rail first (0: 2, 4, 6), then the others,
    in rank order.
    """
    demand = make_demand(small(4, 2), "kind: incast\nsize: 7 B\nsenders: 5")
    assert demand.src.tolist() == [2, 4, 6, 3, 5]
    assert set(demand.dst.tolist()) == {0}
    assert demand.n_ranks == 6
    assert demand.size_bytes == 35


def test_flow_list():
    """As listed: ranks are GPUs, two flows of one pair are told apart, starts are kept."""
    demand = make_demand(
        one_leaf(),
        "kind: flows\nflows: [{src: 0, dst: 1, size: 5 B}, {src: 0, dst: 1, size: 7 B, start: 3 us}]",
    )
    assert demand.size.tolist() == [5, 7]
    assert demand.start.tolist() == [0, pytest.approx(3e-6)]
    assert demand.channel.tolist() == [0, 1]
    assert demand.n_ranks == 2
    assert demand.busbw_factor is None


def test_uneven_hosts():
    """Hosts with one and two NICs in one ring: as many rings as the host with the fewest NICs."""
    fabric = three_campuses()  # a0, a1 and c0 have one NIC, b0 two
    demand = make_demand(fabric, "kind: all-reduce\nsize: 8 MB\nchannels: 1")
    assert sorted(zip(demand.src.tolist(), demand.dst.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 4),
        (4, 0),
    ]


def test_qps_and_windows_travel():
    """What belongs to the connection is in the demand; a repr says what it is."""
    demand = make_demand(
        one_leaf(), "kind: all-reduce\nsize: 1 MB\nqps: 4\nwork_conserving: true\nwindow: 2 MiB"
    )
    assert (demand.qps, demand.work_conserving, demand.window_bytes) == (4, True, 2 * 2**20)
    assert repr(demand) == "<Demand 'offered' all-reduce: 4 ranks, 8 flows x 4 QPs in 1 phase(s)>"


@pytest.mark.parametrize(
    ("fabric", "text", "message", "hint"),
    [
        (
            one_leaf,
            "kind: all-reduce\nsize: 1 MB\nranks: 5",
            "ranks = 5, but fabric 'one-leaf' has 4 GPUs",
            "at most 4 ranks",
        ),
        (
            one_leaf,
            (
                "kind: all-reduce\nsize: 1 MB\nranks: 3\n"
                "placement: {kind: explicit, hosts: [host-00000, host-00002]}"
            ),
            "ranks = 3, but the listed hosts have 2 GPUs",
            "at most 2 ranks",
        ),
        (
            one_leaf,
            "kind: all-reduce\nsize: 1 MB\nranks: 1",
            "ranks = 1: traffic needs at least 2 ranks",
            "2 to 4 ranks",
        ),
        (
            one_leaf,
            "kind: incast\nsize: 1 MB\nsenders: 4",
            "senders = 4, but the job has 3 NICs on hosts other than rank 0's",
            "at most 3 senders, or more ranks",
        ),
        (
            one_leaf,
            "kind: point-to-point\nsize: 1 MB\nsrc: 0\ndst: 4",
            "point-to-point[0]: rank 4 is not one of the 4 ranks",
            "ranks are 0 to 3",
        ),
        (
            rail_2x8,
            "kind: flows\nflows: [{src: 0, dst: 8, size: 1 B}, {src: 3, dst: 5, size: 1 B}]",
            "flows[1]: ranks 3 and 5 are both on host-00000: the flow does not use the network",
            "name ranks of different hosts",
        ),
        (
            rail_2x8,
            "kind: permutation\nsize: 1 MB\nshift: 3",
            "shift = 3 keeps 40 of 64 flows inside their host",
            "shift by at least the NICs of a host, and not by a multiple of all NICs",
        ),
        (
            one_leaf,
            "kind: permutation\nsize: 1 MB\ncross_leaf: true",
            "no permutation takes every flow out of its leaf: one leaf holds more than half of the NICs",
            "place the ranks on more leaves",
        ),
        (
            rail_2x8,
            "kind: permutation\nsize: 1 MB\nranks: 12",
            "no permutation takes every flow out of its host: one host holds more than half of the NICs",
            "place the ranks on more hosts",
        ),
        (
            one_leaf,
            "kind: all-reduce\nsize: 1 MB\nplacement: {kind: explicit, hosts: [host-00000, host-0002]}",
            "placement.hosts: 'host-0002' is not a host of fabric 'one-leaf'",
            "host-0000",
        ),
        (
            dumbbell,
            "kind: all-reduce\nsize: 1 MB\nplacement: {kind: explicit, hosts: [h0, h1, h0]}",
            "placement.hosts: 'h0' is listed twice",
            "list each host once",
        ),
    ],
)
def test_refusals(fabric, text, message, hint):
    """Each says what, the value, what is there, and a way out."""
    with pytest.raises(TrafficError) as caught:
        make_demand(fabric(), text)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("is_pxn", "flows", "hint"), [(True, "256", "lower ranks"), (False, "1,024", "pxn: true")]
)
def test_too_many_flows(monkeypatch, is_pxn, flows, hint):
    """An all-to-all beyond memory is refused before it is made, with the number of flows."""
    monkeypatch.setattr(all_to_all, "MOST_FLOWS", 100)
    with pytest.raises(TrafficError) as caught:
        make_demand(small(8, 4), f"kind: all-to-all\nsize: 1 MB\npxn: {str(is_pxn).lower()}")
    assert caught.value.message == f"an all-to-all of 32 ranks is {flows} flows; netplan takes up to 100"
    assert hint in (caught.value.hint or "")


def test_unknown_kind():
    """The registry lists what there is, and guesses."""
    with pytest.raises(
        TrafficError, match=r"kind 'allreduce' is not one of all-reduce, .*, flows\n  hint: all-reduce"
    ):
        PATTERNS.find("allreduce")


def test_repair_that_fails(monkeypatch):
    """A permutation that swaps do not repair is given up in words, not searched for ever."""
    monkeypatch.setattr(permutation, "_REPAIR_ROUNDS", 0)
    with pytest.raises(TrafficError, match="found no permutation that takes every flow out of its host"):
        make_demand(lab_two_leaves(), "kind: permutation\nsize: 1 MB")


def test_permutation_of_two_hosts_is_found():
    """One leaf holds exactly half: only full crossings are permutations, and swaps find one for each seed."""
    for seed in range(50):
        demand = make_demand(lab_two_leaves(), "kind: permutation\nsize: 1 MB\ncross_leaf: true", seed=seed)
        assert {d // 2 for d in demand.dst[:2].tolist()} == {1}


def test_no_flow_between_hosts_still_takes_time():
    """A job inside one host: no flows, the scale-up domain decides, efficiency is 1."""
    result = run(rail_2x8(), "kind: all-reduce\nsize: 1 GiB\nranks: 8")
    assert len(result.rate) == 0
    assert result.completion_s >= 2 * 7 / 8 * 2**30 / 450e9
    assert result.efficiency.to_dict() == {"mean_flow": 1.0, "collective": 1.0, "worst_flow": 1.0}
