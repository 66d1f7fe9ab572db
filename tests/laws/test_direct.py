"""Throughput of direct networks: closed forms of the literature, exactly where traffic is split finely.

A *load* is what a link carries over its capacity when every NIC sends at its line rate; the
throughput of a pattern is 1 / the largest load (Dally & Towles, *Principles and Practices of
Interconnection Networks*, chapter 3). Expected loads are sums over all paths with their
probabilities (`tests.direct.expected_load`), so laws about them are exact to rounding. Routers
have p endpoints, and all cables the NICs' speed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from netplan.fabric.direct import DragonflyStructure
from netplan.kernels.max_min import solve_max_min
from netplan.routing import route_flows
from netplan.routing.direct_paths import minimal_hops, valiant_hops
from tests.contracts.making import make_flows
from tests.direct import expected_load, structure_of
from tests.fabrics import yaml_fabric

#: Rounding of sums of probabilities.
EXACT = 1e-9


@cache
def network(text):
    """Build a network of hosts with one NIC."""
    return yaml_fabric(f"{{name: law, {text}, hosts: {{gpus: 1}}}}")


@cache
def balanced_dragonfly(h):
    """Kim et al.: p = h, a = 2h, as many groups as there can be."""
    return network(
        f"kind: dragonfly, router: {{endpoints: {h}, global_links: {h}}}, group: {{routers: {2 * h}}}"
    )


def dragonfly_of(fabric):
    """Return the structure of a dragonfly."""
    s = structure_of(fabric)
    assert isinstance(s, DragonflyStructure)
    return s


def concentration(fabric):
    """Endpoints of each router."""
    return len(structure_of(fabric).endpoint_router) // structure_of(fabric).n_routers


def uniform(fabric):
    """Each router sends what its NICs can, 1/R of it to every router."""
    n = structure_of(fabric).n_routers
    return np.full((n, n), concentration(fabric) / n)


def permuted(fabric, target):
    """Router r sends all to router target[r]."""
    traffic = np.zeros((len(target), len(target)))
    traffic[np.arange(len(target)), target] = concentration(fabric)
    return traffic


def shifted(fabric, by):
    """Router r sends all to router r + by."""
    return permuted(fabric, np.roll(np.arange(structure_of(fabric).n_routers), -by))


def throughput(fabric, find, traffic):
    """Share of the NICs' line rate that all get: the cables of NICs carry no more than 1."""
    return 1 / max(expected_load(fabric, find, traffic).max(), 1)


def rates(fabric, pairs, scheme, *, qps=1):
    """Max-min rates of flows between pairs of endpoints over the NICs' line rate."""
    src, dst = pairs
    flows = make_flows(src, dst, channel=np.arange(len(src)), qps=qps)
    routes = route_flows(fabric, flows, scheme)
    weight = np.repeat(routes.weight, np.diff(routes.path_ptr))
    capacity = routes.capacity(fabric.links.capacity)
    path = solve_max_min(capacity, routes.path_ptr, routes.resource, routes.share * weight).rate
    return np.add.reduceat(path * routes.weight, routes.flow_ptr[:-1]) / fabric.endpoint_rate[src]


def group_shift(fabric):
    """NIC i sends to the NIC at its place in the next group: the adversarial pattern of Kim et al."""
    n = fabric.n_endpoints
    src = np.arange(n)
    return src, (src + n // (int(fabric.nodes.pod.max()) + 1)) % n


# ---- dragonfly -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("h", [1, 2, 3])
def test_dragonfly_carries_uniform_traffic(h):
    """Balanced and full, minimal paths.

    By hand: a global cable carries (a p)^2 / N = a p / g of group to group. A local one carries p h / g that
    leaves by the far router, p h / g that came in by the near one, and p^2 / N between the two routers.
    """
    fabric = balanced_dragonfly(h)
    s, p, a = dragonfly_of(fabric), h, 2 * h
    g = a * h + 1
    load = expected_load(fabric, minimal_hops, uniform(fabric))
    glob, local = load[2 * s.global_cable :], load[2 * s.first_cable : 2 * s.global_cable]
    np.testing.assert_allclose(glob, a * p / g, rtol=EXACT)
    np.testing.assert_allclose(local, 2 * p * h / g + p * p / (g * a * p), rtol=EXACT)
    assert throughput(fabric, minimal_hops, uniform(fabric)) == 1


@pytest.mark.parametrize("h", [2, 4])
def test_dragonfly_worst_case_of_minimal_routing(h):
    """All of a group to the next: 1 / (a h) of the capacity (Kim et al., ISCA 2008, section 4.1).

    By hand: a p NICs share the one cable between the two groups, and p = h. All other cables carry less.
    h = 4 is the network of the paper's figures: 1,056 endpoints, 1/32 = 0.03.
    """
    fabric = balanced_dragonfly(h)
    np.testing.assert_allclose(rates(fabric, group_shift(fabric), "minimal"), 1 / (2 * h * h), rtol=EXACT)


@pytest.mark.parametrize(("groups", "bundle"), [(9, 1), (5, 2), (3, 4)])
def test_dragonfly_worst_case_with_several_cables(groups, bundle):
    """Fewer groups, b cables between two: b / (a p) on average, however QPs are hashed on them.

    By hand: with 32 QPs a NIC (256 a pair of groups) every cable is used, and full; a p = 8 NICs share b.
    """
    fabric = network(
        "kind: dragonfly, router: {endpoints: 2, global_links: 2}, group: {routers: 4}, groups: "
        + str(groups)
    )
    found = rates(fabric, group_shift(fabric), "minimal", qps=32)
    assert found.mean() == pytest.approx(bundle / 8, rel=EXACT)


def test_dragonfly_valiant_halves():
    """Group to next group, over a third group: 2 a p / (g - 2) on every global cable but the direct ones.

    By hand: a p NICs of each group spread over g - 2 groups, once going and once coming in; no path takes
    the cable to the next group. With g = a h + 1 and p = h throughput is at most (a h - 1) / (2 a h), which
    tends to 0.5. Loads within groups: below.
    """
    fabric = balanced_dragonfly(2)
    s, g, a, p = dragonfly_of(fabric), 9, 4, 2
    traffic = shifted(fabric, a)
    load = expected_load(fabric, valiant_hops, traffic)
    src, dst = fabric.links.src - s.router_node, fabric.links.dst - s.router_node
    is_global = np.arange(len(load)) >= 2 * s.global_cable
    to_next = is_global & (dst // a == (src // a + 1) % g)
    np.testing.assert_allclose(load[is_global & ~to_next], 2 * a * p / (g - 2), rtol=EXACT)
    assert (load[to_next] == 0).all()
    # Uniform traffic: a p / g by minimal paths, twice that over a third group; local cables carry less.
    load = expected_load(fabric, valiant_hops, uniform(fabric))
    np.testing.assert_allclose(load[is_global], 2 * a * p / g, rtol=EXACT)
    assert throughput(fabric, valiant_hops, uniform(fabric)) == pytest.approx(g / (2 * a * p), rel=EXACT)


def test_dragonfly_adaptive_takes_the_better():
    """The paper's network: UGAL is near Valiant's best where minimal routing fails, and minimal elsewhere.

    By hand, group to next group: all routing together carries at most 1 + (g - 2) / 2 NICs' worth of a p
    over global cables: 16.5 / 32 = 0.516. Tolerance: flowlets of a quarter of a NIC, chosen greedily among
    four paths, reach four fifths of it; so does nothing that goes minimally or by one drawn path a NIC.
    Uniform traffic, 32 random destinations a NIC: the mean is within 3 % of minimal routing's, where all
    that can differ is that crowded cables are avoided.
    """
    fabric = balanced_dragonfly(4)
    bound = (1 + (33 - 2) / 2) / 32
    src, dst = group_shift(fabric)
    found = {scheme: rates(fabric, (src, dst), scheme).mean() for scheme in ("minimal", "valiant", "ugal")}
    assert 0.8 * bound < found["ugal"] <= bound
    assert found["minimal"] < 0.04
    assert found["valiant"] < found["ugal"]
    many = rates(fabric, (src, dst), "valiant", qps=64).mean()
    assert 0.9 * 31 / 64 < many <= 0.5
    rng = np.random.default_rng(0)
    src = np.repeat(np.arange(fabric.n_endpoints), 32)
    dst = rng.integers(0, fabric.n_endpoints, len(src))
    src, dst = src[src != dst], dst[src != dst]
    schemes = ("minimal", "valiant", "ugal")
    sent = {scheme: np.bincount(src, rates(fabric, (src, dst), scheme)) for scheme in schemes}
    assert sent["ugal"].mean() == pytest.approx(sent["minimal"].mean(), rel=0.03)
    assert sent["ugal"].min() >= sent["minimal"].min()
    assert sent["valiant"].mean() < 0.75 * sent["minimal"].mean()


def test_dragonfly_permutation():
    """A random permutation: UGAL above both, minimal above Valiant; the slowest flow gains most."""
    fabric = balanced_dragonfly(4)
    target = np.random.default_rng(1).permutation(fabric.n_endpoints)
    src = np.flatnonzero(target != np.arange(fabric.n_endpoints))
    found = {scheme: rates(fabric, (src, target[src]), scheme) for scheme in ("minimal", "valiant", "ugal")}
    assert found["valiant"].mean() < found["minimal"].mean() < found["ugal"].mean()
    assert max(found["valiant"].min(), found["minimal"].min()) < found["ugal"].min()


def test_dragonfly_plus_worst_case():
    """Group to next group in a dragonfly+: b cables for all endpoints of the group, as in a dragonfly."""
    fabric = network(
        "kind: dragonfly-plus, leaf: {endpoints: 4}, spine: {global_links: 4}, "
        "group: {leaves: 4, spines: 4}, groups: 9"
    )
    found = rates(fabric, group_shift(fabric), "minimal", qps=32)
    assert found.mean() == pytest.approx(2 / 16, rel=EXACT)
    assert rates(fabric, group_shift(fabric), "ugal").mean() > 0.8 * (2 + 14 / 2) / 16


# ---- by a drawn router: torus, hyperx, slim fly ----------------------------------------------------------

ROUTERS = {
    "ring of 6": "kind: torus, dims: [6], router: {endpoints: 1}",
    "ring of 5": "kind: torus, dims: [5], router: {endpoints: 2}",
    "torus": "kind: torus, dims: [4, 3], router: {endpoints: 1}",
    "mesh": "kind: torus, dims: [3, 3], wrap: false, router: {endpoints: 1}",
    "full mesh": "kind: hyperx, dims: [6], router: {endpoints: 6}",
    "flattened butterfly": "kind: hyperx, dims: [3, 4], router: {endpoints: 3}",
    "slim fly": "kind: slim-fly, q: 3, router: {endpoints: 2}",
}


@pytest.mark.parametrize("name", ROUTERS)
def test_valiant_makes_every_permutation_uniform(name):
    """Each link carries twice what it carries of uniform traffic, whatever the permutation (Valiant 1982).

    By hand: all routers send to an intermediate that is uniform, so each half of the way is uniform
    traffic. Uniform traffic itself: a share 1/R stays at its router and is sent nowhere, so 2 (1 - 1/R).
    """
    fabric = network(ROUTERS[name])
    n = structure_of(fabric).n_routers
    once = expected_load(fabric, minimal_hops, uniform(fabric))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n)
        target = np.empty(n, int)
        target[order] = np.roll(order, 1)  # one round trip through all routers: none sends to itself
        load = expected_load(fabric, valiant_hops, permuted(fabric, target))
        np.testing.assert_allclose(load, 2 * once, rtol=EXACT, atol=1e-12)
    load = expected_load(fabric, valiant_hops, uniform(fabric))
    np.testing.assert_allclose(load, 2 * (1 - 1 / n) * once, rtol=EXACT, atol=1e-12)


@pytest.mark.parametrize("k", [4, 6, 8])
def test_tornado(k):
    """Ring of even size k, each router to the one k/2 - 1 on: minimal paths all go the same way round.

    By hand: k/2 - 1 flows on each cable of that direction, none on the others. Uniform: k/8 a cable
    (Dally & Towles, table 3.1: capacity 8/k), so Valiant carries the tornado at 4/k.
    """
    fabric = network(f"kind: torus, dims: [{k}], router: {{endpoints: 1}}")
    tornado = shifted(fabric, k // 2 - 1)
    load = expected_load(fabric, minimal_hops, tornado)
    up = np.arange(len(load)) % 2 == 0
    inner = np.arange(len(load)) >= 2 * structure_of(fabric).first_cable
    np.testing.assert_allclose(load[inner & up], k / 2 - 1, rtol=EXACT)
    assert (load[inner & ~up] == 0).all()
    np.testing.assert_allclose(expected_load(fabric, minimal_hops, uniform(fabric))[inner], k / 8, rtol=EXACT)
    assert throughput(fabric, valiant_hops, tornado) == pytest.approx(min(4 / k, 1), rel=EXACT)
    src = np.arange(k)
    np.testing.assert_allclose(
        rates(fabric, (src, (src + k // 2 - 1) % k), "minimal"), 1 / max(k / 2 - 1, 1), rtol=EXACT
    )


@pytest.mark.parametrize("dims", [[5], [4, 4], [3, 5]])
def test_hyperx_neighbour(dims):
    """All p = width NICs of a router to the next in its row: 1 / width (Kim, Dally, Abts, ISCA 2007).

    By hand: a minimal path is the one cable; p NICs share it. Uniform: each cable of the row carries
    p / size, most in the narrowest dimension; Valiant carries any permutation at half of that's inverse.
    UGAL has other ways beside the cable, and lies above minimal routing.
    """
    width = dims[0]
    fabric = network(f"kind: hyperx, dims: {dims}, router: {{endpoints: {width}}}")
    n = structure_of(fabric).n_routers
    router = np.arange(n)
    target = router // width * width + (router + 1) % width
    src = np.arange(fabric.n_endpoints)
    dst = np.repeat(target * width, width) + src % width
    np.testing.assert_allclose(rates(fabric, (src, dst), "minimal"), 1 / width, rtol=EXACT)
    load = expected_load(fabric, minimal_hops, uniform(fabric))
    narrow = min(dims)
    assert load.max() == pytest.approx(width / narrow, rel=EXACT)
    assert throughput(fabric, valiant_hops, permuted(fabric, target)) == pytest.approx(
        narrow / (2 * width), rel=EXACT
    )
    assert rates(fabric, (src, dst), "ugal").mean() > 1.2 / width


@pytest.mark.parametrize(("q", "degree"), [(3, 5), (5, 7)])
def test_slim_fly_uniform(q, degree):
    """Besta & Hoefler, SC 2014: with p = ceil(k'/2) endpoints a router uniform traffic is nearly carried.

    By hand: k' neighbours are one hop away, the other R - 1 - k' two. Where common neighbours are unique and
    all cables alike (q = 5, the Hoffman-Singleton graph) each link carries p (k' + 2 (R - 1 - k')) / (R k').
    q = 3 has several common neighbours for some pairs: there this is the mean over links.
    """
    fabric = network(f"kind: slim-fly, q: {q}")
    s, p = structure_of(fabric), concentration(fabric)
    assert p == -(-degree // 2)
    n = 2 * q * q
    load = expected_load(fabric, minimal_hops, uniform(fabric))[2 * s.first_cable :]
    expected = p * (degree + 2 * (n - 1 - degree)) / (n * degree)
    assert load.mean() == pytest.approx(expected, rel=EXACT)
    if q == 5:
        np.testing.assert_allclose(load, expected, rtol=EXACT)
        assert 1 / expected == pytest.approx(0.9615, abs=1e-4)


def test_slim_fly_adversarial():
    """All NICs of a router to a neighbour: p share the one cable; UGAL goes two and more hops round.

    By hand: 1 / 4 at p = 4. A matching of neighbours: routers in pairs send to each other.
    """
    fabric = network("kind: slim-fly, q: 5")
    s, p = structure_of(fabric), 4
    low, high = (end - s.router_node for end in s.cable_ends())
    partner = np.full(s.n_routers, -1)
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        if partner[a] < 0 and partner[b] < 0:
            partner[a], partner[b] = b, a
    router = np.flatnonzero(partner >= 0)
    src = (router[:, None] * p + np.arange(p)).ravel()
    dst = (partner[router, None] * p + np.arange(p)).ravel()
    np.testing.assert_allclose(rates(fabric, (src, dst), "minimal"), 1 / p, rtol=EXACT)
    assert rates(fabric, (src, dst), "ugal").mean() > 1.5 / p
