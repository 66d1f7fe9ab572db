"""Static InfiniBand routing: shift permutations without contention, effective bisection bandwidth.

Rate of a pair here, as in the literature: 1 / (largest number of flows on a link of its static
path). Random bisections are drawn by the test, paths come from the package. Tables: congestion.md,
section 5.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from netplan.routing import RoutingOptions, route_flows
from tests.contracts.making import busiest_on_path, first_rates, make_fabric, make_flows, standard_error


@pytest.mark.parametrize("k", [4, 8, 16])
def test_d_mod_k_runs_every_shift_without_contention(k):
    """Full three-tier trees of k-port switches, every shift of k^3/4 hosts: one flow on each link in use.

    Zahavi (2010) proves it; OpenSM's ftree claims it. Exact: no tolerance.
    """
    fabric = make_fabric(f"kind: fat-tree\nk: {k}")
    hosts = np.arange(k**3 // 4)
    for shift in range(1, len(hosts)):
        routes = route_flows(fabric, make_flows(hosts, np.roll(hosts, -shift)), "ib-static")
        assert np.bincount(routes.resource).max() == 1, f"shift {shift}"


@pytest.mark.parametrize(
    "fabric",
    [
        "kind: leaf-spine\nradix: 16\nhosts: {count: 128, gpus: 1}\n",  # full two tiers, one cable a pair
        "kind: leaf-spine\nradix: 16\nhosts: {count: 32, gpus: 1}\n",  # bundles of cables
        "kind: clos\nradix: 16\nhosts: {count: 256, gpus: 1}\npod: {leaves: 4}\n",  # bundles on both levels
    ],
)
def test_d_mod_k_runs_every_shift_on_trees_with_bundles(fabric):
    """Parallel cables between switches: still one flow on each link, for every shift of a full tree."""
    built = make_fabric(fabric)
    hosts = np.arange(built.n_endpoints)
    for shift in range(1, len(hosts)):
        routes = route_flows(built, make_flows(hosts, np.roll(hosts, -shift)), "ib-static")
        assert np.bincount(routes.resource).max() == 1, f"shift {shift}"


def test_random_tables_do_not():
    """The same shifts over unbalanced tables collide: the law is one of d-mod-k, not of the fabric."""
    fabric = make_fabric("kind: fat-tree\nk: 8")
    hosts = np.arange(128)
    routes = route_flows(fabric, make_flows(hosts, np.roll(hosts, -17)), "ib-random")
    assert np.bincount(routes.resource).max() > 1


@cache
def two_tiers(ports: int, hosts: int):
    """Return a full leaf-spine fabric of switches with so many ports."""
    return make_fabric(
        f"kind: leaf-spine\nradix: {ports}\nhosts: {{count: {hosts}, gpus: 1}}\n"
        f"spine: {{count: {ports // 2}}}"
    )


def random_halves(fabric, seed: int):
    """Draw a random bisection, matched pair by pair."""
    return np.split(np.random.default_rng(seed).permutation(fabric.n_endpoints), 2)


def effective_bisection(fabric, scheme: str, seed: int) -> float:
    """Return the mean rate of pairs when one random half sends to the other."""
    half, other = random_halves(fabric, seed)
    routes = route_flows(fabric, make_flows(half, other), scheme, RoutingOptions(seed=seed))
    return float((1 / busiest_on_path(routes)).mean())


@pytest.mark.parametrize(
    ("fabric", "d_mod_k", "random"),
    [
        ((24, 288), 0.823, 0.694),
        ((36, 648), 0.809, 0.683),
        ((64, 2048), 0.799, 0.670),
        (16, 0.703, 0.561),
        (24, 0.686, 0.541),
        (36, 0.674, 0.530),
    ],
)
def test_effective_bisection_bandwidth(fabric, d_mod_k, random):
    """Two tiers (ports, hosts) or full three tiers (k), random bisections, one direction.

    Tolerance: 0.03, the sampling error of the table's own runs and of these (three standard errors).
    The IB clusters that Hoefler measured (CLUSTER'08) had 0.55-0.60.
    """
    built = two_tiers(*fabric) if isinstance(fabric, tuple) else make_fabric(f"kind: fat-tree\nk: {fabric}")
    for scheme, expected in (("ib-static", d_mod_k), ("ib-random", random)):
        samples = [effective_bisection(built, scheme, seed) for seed in range(40)]
        assert 3 * standard_error(samples) < 0.03
        assert np.mean(samples) == pytest.approx(expected, abs=0.03)


def slower_of_both_directions(fabric, scheme: str, seed: int) -> float:
    """Return the mean rate of random pairs that exchange messages, each at its slower direction."""
    half, other = random_halves(fabric, seed)
    flows = make_flows(np.concatenate([half, other]), np.concatenate([other, half]))
    rate = 1 / busiest_on_path(route_flows(fabric, flows, scheme, RoutingOptions(seed=seed)))
    return float(np.minimum(*np.split(rate, 2)).mean())


def test_random_pairs_of_512_nodes():
    """512 nodes on 32-port switches, pairs exchange (Sendrecv): measured 38 % (Geoffray & Hoefler, HOTI'08).

    Tolerance: 0.04 to the measured figure; 0.03 to the 0.40 and 0.52 (d-mod-k) that the same model gave
    before.
    """
    fabric = two_tiers(32, 512)
    random = [slower_of_both_directions(fabric, "ib-random", seed) for seed in range(60)]
    d_mod_k = [slower_of_both_directions(fabric, "ib-static", seed) for seed in range(60)]
    assert 3 * max(standard_error(random), standard_error(d_mod_k)) < 0.015
    assert np.mean(random) == pytest.approx(0.38, abs=0.04)
    assert np.mean(random) == pytest.approx(0.40, abs=0.03)
    assert np.mean(d_mod_k) == pytest.approx(0.52, abs=0.03)


@pytest.mark.parametrize(
    ("hosts", "random", "d_mod_k"), [(256, 0.43, 0.55), (128, 0.48, 0.61), (64, 0.59, 0.72)]
)
def test_random_pairs_of_fewer_nodes(hosts, random, d_mod_k):
    """The same leaves and spines with fewer leaves in use.

    Tolerance: 0.03, as for the other tables of that section; three standard errors are below it.
    """
    fabric = two_tiers(32, hosts)
    for scheme, expected in (("ib-random", random), ("ib-static", d_mod_k)):
        samples = [slower_of_both_directions(fabric, scheme, seed) for seed in range(100)]
        assert 3 * standard_error(samples) < 0.03
        assert np.mean(samples) == pytest.approx(expected, abs=0.03)


def test_the_slowest_link_alone_underestimates_max_min():
    """1 / (flows on the busiest link) gives away what flows held back elsewhere leave; max-min does not.

    So for every flow the max-min rate is at least that figure: a bound that ties this file's model to
    netplan's.
    """
    fabric = two_tiers(32, 512)
    for seed in range(5):
        half, other = random_halves(fabric, seed)
        found = first_rates(fabric, make_flows(half, other), "ib-random", seed=seed)
        assert (found.flow >= 1 / busiest_on_path(found.routes) - 1e-12).all()
