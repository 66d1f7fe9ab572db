"""Every registered routing scheme on every family: adding either adds its tests here."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.routing import SCHEMES, RoutingOptions, route_flows
from netplan.routing.walked import without_structure
from netplan.topology import FAMILIES
from tests.contracts.making import make_fabric, make_flows
from tests.contracts.routes import check_routes, meeting_pairs, takes_shortest
from tests.direct import DIRECT, direct_fabric
from tests.fabrics import NAMED, fat_tree_k4
from tests.strategies import SPECS, fabrics

RAGGED = {
    "clos with a small last pod": "kind: clos\nradix: 8\nhosts: {count: 37, gpus: 1}\npod: {leaves: 3}",
    "clos with bundles": "kind: clos\nradix: 16\nhosts: {count: 30, gpus: 2}\npod: {leaves: 2}",
    "leaf-spine, last leaf half empty": "kind: leaf-spine\nradix: 12\nhosts: {count: 15, gpus: 2}",
    "leaf-spine, four NICs a GPU": "kind: leaf-spine\nradix: 16\nhosts: {count: 6, gpus: 1, nics: 4}",
    "rails by block on three tiers": (
        "kind: rail-optimized\ntiers: 3\nradix: 8\nhosts: {count: 24, gpus: 2}\npod: {leaves: 2}"
    ),
}


def check(fabric, scheme, *, seed=0, qps=1, polarized=False):
    """Route all pairs that meet and hold the routes against the contract."""
    src, dst = meeting_pairs(fabric, seed=seed)
    if not len(src):
        return
    flows = make_flows(src, dst, channel=np.arange(len(src)) % 3, qps=qps)
    routes = route_flows(fabric, flows, scheme, RoutingOptions(seed=seed, polarized=polarized))
    assert routes.scheme == scheme
    check_routes(fabric, flows, routes, are_shortest=takes_shortest(fabric, scheme))


@pytest.mark.parametrize("scheme", SCHEMES.names())
@pytest.mark.parametrize("name", NAMED)
def test_named_fabrics(name, scheme):
    """The contract, all pairs, one QP and three."""
    check(NAMED[name](), scheme)
    check(NAMED[name](), scheme, qps=3, seed=5)


@pytest.mark.parametrize("scheme", SCHEMES.names())
@pytest.mark.parametrize("name", RAGGED)
def test_irregular_trees(name, scheme):
    """The contract where pods, leaves or bundles are uneven."""
    check(make_fabric(RAGGED[name]), scheme, qps=2)


@pytest.mark.parametrize("scheme", SCHEMES.names())
@pytest.mark.parametrize("name", DIRECT)
def test_direct_networks(name, scheme):
    """The contract on every direct family, by arithmetic and walked as a damaged network is."""
    fabric = direct_fabric(name)
    check(fabric, scheme, qps=2)
    check(without_structure(fabric), scheme, seed=3)


def test_every_family_is_drawn():
    """A family without a strategy would escape the test below."""
    assert set(SPECS) == set(FAMILIES.names())


@given(
    fabric=fabrics(), scheme=st.sampled_from(SCHEMES.names()), seed=st.integers(0, 9), polarized=st.booleans()
)
@settings(max_examples=150)
def test_any_fabric(fabric, scheme, seed, polarized):
    """The contract on any small fabric of any family."""
    check(fabric, scheme, seed=seed, qps=1 + seed % 2, polarized=polarized)


@pytest.mark.parametrize("scheme", list(SCHEMES), ids=SCHEMES.names())
def test_flags_say_the_truth(scheme):
    """``uses_seed``: another seed, other paths. ``uses_qps``: a path for each QP. Otherwise neither."""
    fabric = fat_tree_k4()
    src, dst = meeting_pairs(fabric)
    one, two = (
        route_flows(fabric, make_flows(src, dst), scheme.name, RoutingOptions(seed=s)) for s in (0, 1)
    )
    assert np.array_equal(one.resource, two.resource) == (not scheme.uses_seed)
    many = route_flows(fabric, make_flows(src, dst, qps=4), scheme.name)
    assert many.n_paths == len(src) * (4 if scheme.uses_qps else 1)
    assert scheme.summary
    assert scheme.leaves_out


@pytest.mark.parametrize("scheme", SCHEMES.names())
def test_same_seed_same_routes(scheme):
    """Nothing but fabric, flows and options decides."""
    src, dst = meeting_pairs(fat_tree_k4())
    first, second = (
        route_flows(fat_tree_k4(), make_flows(src, dst, qps=2), scheme, RoutingOptions(seed=7))
        for _ in range(2)
    )
    assert first.resource.tobytes() == second.resource.tobytes()
    assert first.share.tobytes() == second.share.tobytes()


@pytest.mark.parametrize("scheme", SCHEMES.names())
def test_no_flows(scheme):
    """An empty table gives empty routes."""
    routes = route_flows(fat_tree_k4(), make_flows([], []), scheme)
    assert routes.n_paths == 0


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda r: {"resource": np.roll(r.resource, 1)}, "starts elsewhere"),
        (lambda r: {"weight": r.weight * 2}, "Not equal to tolerance"),
        (lambda r: {"share": r.share * 0.5}, "Not equal to tolerance"),
        (
            lambda r: {"resource": np.where(r.resource == r.resource[1], r.resource[1] ^ 1, r.resource)},
            "made or lost",
        ),
    ],
)
def test_the_contract_refuses_wrong_routes(damage, complaint):
    """Shifted by a link, twice the QPs, half the bytes, a link taken backwards."""
    fabric = fat_tree_k4()
    flows = make_flows([0, 3], [15, 8])
    routes = route_flows(fabric, flows, "ecmp")
    check_routes(fabric, flows, routes)
    with pytest.raises(AssertionError, match=complaint):
        check_routes(fabric, flows, replace(routes, **damage(routes)))
