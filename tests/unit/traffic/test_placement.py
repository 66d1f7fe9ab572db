"""Rank to GPU to NIC, by hand."""

import numpy as np
import pytest

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
