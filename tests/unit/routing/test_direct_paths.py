"""Arithmetic on direct networks against a search over their cables: the same set of paths, nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.fabric.direct import DIRECT_STRUCTURES, DragonflyStructure, direct_from_dict
from netplan.kernels.hashing import mix
from netplan.routing.direct_paths import hashed_chooser, minimal_hops, valiant_hops
from tests.direct import DIRECT, Search, direct_fabric, every_path, structure_of


def pairs(fabric, most=40):
    """Return router pairs of a small network: all, or a sample."""
    n = structure_of(fabric).n_routers
    numbers = np.arange(n * n)
    if len(numbers) > most:
        numbers = np.random.default_rng(1).choice(numbers, most, replace=False)
    return [divmod(int(x), n) for x in numbers]


@pytest.mark.parametrize("name", DIRECT)
def test_the_cables_are_where_the_structure_has_them(name):
    """`cable_ends` against the cables of the fabric, both ends, and how many there are."""
    fabric = direct_fabric(name)
    s = structure_of(fabric)
    low, high = s.cable_ends()
    cable = s.first_cable + np.arange(s.n_cables)
    assert fabric.links.n_cables == s.first_cable + s.n_cables
    np.testing.assert_array_equal(fabric.links.src[2 * cable], low)
    np.testing.assert_array_equal(fabric.links.dst[2 * cable], high)
    np.testing.assert_array_equal(s.router_node + s.endpoint_router, fabric.endpoints.leaf)


@pytest.mark.parametrize("name", DIRECT)
def test_minimal_paths_are_all_those_of_the_family(name):
    """Choice by choice: every minimal path can be taken, and nothing else."""
    fabric = direct_fabric(name)
    search, s = Search(fabric), structure_of(fabric)
    for src, dst in pairs(fabric):
        expected = search.minimal(s.router_node + src, s.router_node + dst)
        assert set(every_path(minimal_hops, s, src, dst)) == expected


@pytest.mark.parametrize("name", DIRECT)
def test_valiant_paths_are_all_those_of_the_family(name):
    """Choice by choice: every path over an intermediate can be taken, and nothing else."""
    fabric = direct_fabric(name)
    search, s = Search(fabric), structure_of(fabric)
    for src, dst in pairs(fabric, most=8):
        expected = search.valiant(s.router_node + src, s.router_node + dst)
        assert set(every_path(valiant_hops, s, src, dst)) == expected


@pytest.mark.parametrize("find", [minimal_hops, valiant_hops])
@given(name=st.sampled_from(sorted(DIRECT)), seed=st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_many_rows_at_once(find, name, seed):
    """Rows do not disturb each other: each is a walk from its source to its destination, no link twice."""
    fabric = direct_fabric(name)
    s, links = structure_of(fabric), fabric.links
    src, dst = np.random.default_rng(seed).integers(0, s.n_routers, (2, 50))
    hops, length = find(s, src, dst, hashed_chooser(mix(np.arange(50), seed)))
    assert hops.shape == (50, length.max(initial=0))
    for row in range(50):
        path = hops[row, : length[row]]
        assert (hops[row, length[row] :] == -1).all()
        assert len(set(path.tolist())) == len(path)
        nodes = np.concatenate([[s.router_node + src[row]], links.dst[path]])
        np.testing.assert_array_equal(links.src[path], nodes[:-1])
        assert nodes[-1] == s.router_node + dst[row]


@pytest.mark.parametrize("find", [minimal_hops, valiant_hops])
@pytest.mark.parametrize("name", DIRECT)
def test_a_path_does_not_depend_on_other_flows(name, find):
    """40 rows at once and one by one: the same links."""
    s = structure_of(direct_fabric(name))
    src, dst = np.random.default_rng(3).integers(0, s.n_routers, (2, 40))
    key = mix(np.arange(40))
    hops, length = find(s, src, dst, hashed_chooser(key))
    for row in range(40):
        one = slice(row, row + 1)
        alone, n = find(s, src[one], dst[one], hashed_chooser(key[one]))
        assert alone[0, : n[0]].tolist() == hops[row, : length[row]].tolist()


def test_choices_are_even():
    """Two cables between two groups, hashed 4,000 times: half each, within five standard deviations (32)."""
    s = structure_of(direct_fabric("dragonfly, two cables a pair"))
    assert isinstance(s, DragonflyStructure)
    n = 4000
    hops, length = minimal_hops(
        s, np.zeros(n, np.int64), np.full(n, s.routers), hashed_chooser(mix(np.arange(n)))
    )
    crossed = hops[hops >= 2 * s.global_cable]
    assert len(crossed) == n
    _, count = np.unique(crossed, return_counts=True)
    assert len(count) == s.global_ptr[1] - s.global_ptr[0]
    assert np.abs(count - n / len(count)).max() < 5 * 32
    assert length.max() == 3


def test_torus_ties_go_both_ways():
    """Ring of 6: three routers on is as far as three back; of 2,000 QPs half go each way (sigma: 22)."""
    s = structure_of(direct_fabric("ring"))
    n = 2000
    hops, length = minimal_hops(s, np.zeros(n, np.int64), np.full(n, 3), hashed_chooser(mix(np.arange(n))))
    assert (length == 3).all()
    assert abs((hops[:, 0] % 2 == 0).sum() - n / 2) < 5 * 23


@pytest.mark.parametrize("name", DIRECT)
def test_plain_data_and_back(name):
    """`to_dict` and `direct_from_dict`: equal, column by column; the kind is the fabric's."""
    fabric = direct_fabric(name)
    s = structure_of(fabric)
    again = direct_from_dict(s.to_dict())
    assert type(again) is type(s) is DIRECT_STRUCTURES[fabric.kind]
    assert again.to_dict() == s.to_dict()
    assert again.endpoint_router.dtype == np.int32


def test_lost_hosts_shift_cables():
    """Endpoint 1 of 12 and its cable are gone: the others keep their routers, cables move down by one."""
    s = structure_of(direct_fabric("torus"))
    left = np.delete(np.arange(len(s.endpoint_router)), 1)
    other = s.with_endpoints(left, 1)
    assert other.first_cable == s.first_cable - 1
    assert other.endpoint_router.tolist() == np.delete(s.endpoint_router, 1).tolist()
    assert other.n_cables == s.n_cables
