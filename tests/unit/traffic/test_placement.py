"""Rank to GPU to NIC, by hand."""

from itertools import combinations

import numpy as np
import pytest

from netplan.errors import TrafficError
from netplan.spec.traffic import PlacementSpec
from netplan.traffic import place_ranks
from tests.contracts.making import make_fabric
from tests.fabrics import rail_2x8


def place(fabric, ranks=None, seed=0, **spec):
    """Place ranks."""
    return place_ranks(fabric, PlacementSpec(**spec), ranks, np.random.default_rng(seed))


def fabric_of(gpus, nics, hosts=4):
    """Return a leaf-spine fabric with so many GPUs and NICs a host."""
    return make_fabric(f"kind: leaf-spine\nradix: 32\nhosts: {{count: {hosts}, gpus: {gpus}, nics: {nics}}}")


def test_packed():
    """Hosts in order, all GPUs of each; the last host in part."""
    placed = place(fabric_of(4, 4), 10)
    assert placed.host.tolist() == [0] * 4 + [1] * 4 + [2] * 2
    assert placed.local_gpu.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert placed.hosts.tolist() == [0, 1, 2]
    assert placed.ranks_per_host.tolist() == [4, 4, 2]
    assert len(placed) == 10


def test_random_is_a_permutation_of_hosts():
    """Whole hosts in an order that the seed decides."""
    orders = {tuple(place(rail_2x8(), seed=s, kind="random").hosts.tolist()) for s in range(10)}
    assert len(orders) > 5
    assert all(sorted(order) == list(range(8)) for order in orders)


def test_fragmented():
    """One host of each leaf in turn. By hand: leaves of 4 hosts, 0-3, 4-7, 8: order 0 4 8 1 5 2 6 3 7."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 9, gpus: 1}")
    assert place(fabric, kind="fragmented").hosts.tolist() == [0, 4, 8, 1, 5, 2, 6, 3, 7]


def test_explicit():
    """Hosts as listed, in that order."""
    placed = place(fabric_of(2, 2), kind="explicit", hosts=("host-00003", "host-00001"))
    assert placed.host.tolist() == [3, 3, 1, 1]


@pytest.mark.parametrize(
    ("gpus", "nics", "expected"),
    [
        (4, 4, [0, 1, 2, 3]),  # a NIC each
        (4, 2, [0, 0, 1, 1]),  # two GPUs a NIC
        (8, 1, [0] * 8),  # all behind one
        (2, 4, [0, 2]),  # the first of each GPU's two NICs
    ],
)
def test_endpoints(gpus, nics, expected):
    """The NIC that serves a rank, on host 0 and shifted by its NICs on host 1."""
    placed = place(fabric_of(gpus, nics))
    assert placed.endpoint[:gpus].tolist() == expected
    assert placed.endpoint[gpus : 2 * gpus].tolist() == [nics + e for e in expected]


@pytest.mark.parametrize(
    ("gpus", "nics", "ranks", "expected"),
    [(4, 4, 6, [4, 5]), (4, 2, 5, [2]), (4, 2, 7, [2, 3]), (2, 4, 3, [4, 5]), (8, 1, 9, [1])],
)
def test_nics_of_a_host_in_part(gpus, nics, ranks, expected):
    """Of the second host, in part: the NICs of the GPUs in use, all of them where a GPU has several."""
    assert place(fabric_of(gpus, nics), ranks).nics(1).tolist() == expected


# ---- other jobs, rails and topology -------------------------------------------------------------


def leaves_of_four(hosts=16):
    """Return hosts of one GPU on leaves of four: 0-3, 4-7, 8-11, 12-15."""
    return make_fabric(f"kind: leaf-spine\nradix: 8\nhosts: {{count: {hosts}, gpus: 1}}")


def names(*places):
    """Return the names of hosts."""
    return tuple(f"host-{place:05}" for place in places)


def test_packed_around_taken_hosts():
    """Hosts of other jobs are left out; the order stays."""
    placed = place(leaves_of_four(), 4, taken=(*names(0, 2), "host-00004..host-00006"))
    assert placed.hosts.tolist() == [1, 3, 7, 8]


def test_rail_aware_takes_the_freest_leaves_first():
    """By hand: free are 2 of leaf 0, 3 of leaf 1, all of 2, 1 of 3: leaves 2, 1, 0, 3."""
    placed = place(leaves_of_four(), kind="rail-aware", taken=names(0, 1, 7, 12, 13, 14))
    assert placed.hosts.tolist() == [8, 9, 10, 11, 4, 5, 6, 2, 3, 15]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (2, [2, 3]),  # exactly leaf 0
        (3, [4, 5, 6]),  # exactly leaf 1
        (4, [8, 9, 10, 11]),  # only leaf 2 holds all
        (5, [8, 9, 10, 11, 15]),  # no leaf does: the largest, and for the rest the one that fits best
        (6, [8, 9, 10, 11, 2, 3]),
        (9, [8, 9, 10, 11, 4, 5, 6, 2, 3]),
    ],
)
def test_topology_aware_fits_best(ranks, expected):
    """Free are 2 of leaf 0, 3 of leaf 1, 4 of leaf 2, 1 of leaf 3."""
    placed = place(leaves_of_four(), ranks, kind="topology-aware", taken=names(0, 1, 7, 12, 13, 14))
    assert placed.hosts.tolist() == expected


def test_topology_aware_keeps_to_a_pod():
    """Fat tree of k = 4, pods of two leaves of two hosts: 3 hosts stay in pod 1, which has 3 left.

    Pod 0 has four: it is kept whole. Of pod 1 the leaf with two comes first.
    """
    fabric = make_fabric("kind: fat-tree\nk: 4")
    placed = place(fabric, 3, kind="topology-aware", taken=names(4))
    assert placed.hosts.tolist() == [6, 7, 5]


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 11])
def test_topology_aware_uses_as_few_leaves_as_any_choice(ranks):
    """No choice of hosts touches fewer leaves: brute force over all sets of leaves."""
    taken = (0, 5, 6, 9)
    placed = place(leaves_of_four(), ranks, kind="topology-aware", taken=names(*taken))
    free = [sum(host not in taken for host in range(4 * leaf, 4 * leaf + 4)) for leaf in range(4)]
    fewest = next(n for n in range(1, 5) if any(sum(chosen) >= ranks for chosen in combinations(free, n)))
    assert len(set((placed.hosts // 4).tolist())) == fewest


@pytest.mark.parametrize("kind", ["packed", "random", "fragmented", "rail-aware", "topology-aware"])
def test_busy_hosts_are_drawn_by_seed(kind):
    """A quarter of 16 hosts is held by others: 12 are left, which ones the seed says; none twice."""
    placed = [place(leaves_of_four(), seed=seed, kind=kind, busy=0.25) for seed in (1, 1, 2)]
    orders = [each.hosts.tolist() for each in placed]
    assert [len(set(order)) for order in orders] == [12] * 3
    assert orders[0] == orders[1]
    assert set(orders[0]) != set(orders[2])


def test_explicit_takes_ranges():
    """first..last, in host order."""
    placed = place(leaves_of_four(), kind="explicit", hosts=("host-00005", "host-00001..host-00003"))
    assert placed.hosts.tolist() == [5, 1, 2, 3]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"taken": ("host-00099",)}, "placement.taken: 'host-00099' is not a host of fabric 'under-test'"),
        (
            {"taken": ("host-00003..host-00001",)},
            "placement.taken: 'host-00003..host-00001' ends before it begins",
        ),
        (
            {"taken": ("host-00001", "host-00000..host-00002")},
            "placement.taken: 'host-00001' is listed twice",
        ),
        (
            {"kind": "explicit", "hosts": ("host-00001",), "taken": ("host-00001",)},
            "placement.hosts: 'host-00001' is also in placement.taken: another job holds it",
        ),
        ({"busy": 0.5}, "ranks = 16, but fabric 'under-test' has 8 GPUs that no other job holds"),
    ],
)
def test_bad_placements(spec, text):
    """What cannot be placed is refused, with the place and a way out."""
    with pytest.raises(TrafficError) as error:
        place(leaves_of_four(), 16, **spec)
    assert text in str(error.value)


def test_busy_does_not_go_with_explicit():
    """The spec says so."""
    with pytest.raises(ValueError, match="is not used with placement explicit"):
        PlacementSpec(kind="explicit", hosts=("a",), busy=0.1)
