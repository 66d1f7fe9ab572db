"""Hash collisions: closed forms and the tables of Monte Carlo runs made before netplan.

The fabrics, flows and routes are the package's own; nothing is drawn here. A table was rounded
to 0.01 and its own sampling error is of that size, so 0.03 is the distance allowed to it; the
assertion that three standard errors are below the tolerance keeps each run long enough.
"""

from __future__ import annotations

from functools import cache
from math import factorial, perm

import numpy as np
import pytest

from netplan.routing import RoutingOptions, route_flows
from tests.contracts.making import first_rates, make_demand, make_fabric, make_flows, run, standard_error

TABLE = 0.03


@cache
def leaves_of(n: int, leaves: int, gpus: int = 1):
    """Return leaves of n NICs and n uplinks, each uplink to another of n spines."""
    return make_fabric(
        f"kind: leaf-spine\nradix: {2 * max(n, leaves)}\n"
        f"hosts: {{count: {leaves * n // gpus}, gpus: {gpus}}}\n"
        f"leaf: {{downlinks: {n}, uplinks: {n}}}\nspine: {{count: {n}}}"
    )


def to_next_leaf(n: int, leaves: int):
    """Every NIC sends to the NIC in its place on the next leaf: flows that share a way up share the way down.

    So each leaf is one throw of n balls into n bins, and links down add nothing to it.
    """
    fabric = leaves_of(n, leaves)
    return fabric, make_demand(fabric, f"kind: permutation\nsize: 1 MiB\nshift: {n}")


@pytest.mark.parametrize("n", [16, 32, 64])
def test_mean_rate_of_one_flow_per_uplink(n):
    """n NICs hashed on n uplinks: mean rate 1 - (1 - 1/n)^n, the share of uplinks that some flow chose.

    By hand: 0.644, 0.638, 0.635 for n = 16, 32, 64; 1 - 1/e = 0.632 for many: the "60 %".
    Tolerance: 0.005, more than three standard errors of 16,384 leaves.
    """
    leaves = 2 * n
    fabric, demand = to_next_leaf(n, leaves)
    means = [
        first_rates(fabric, demand, "ecmp", seed=s).flow.reshape(leaves, n).mean(1)
        for s in range(16_384 // leaves)
    ]
    assert 3 * standard_error(np.concatenate(means)) < 0.005
    assert np.mean(means) == pytest.approx(1 - (1 - 1 / n) ** n, abs=0.005)


def test_mean_flow_efficiency_of_a_result_is_that_figure():
    """`simulate` reports the same: its ``mean_flow`` is the mean rate over payload line rate."""
    fabric, demand = to_next_leaf(32, 64)
    results = [run(fabric, demand, "ecmp", seed=s).efficiency.mean_flow for s in range(8)]
    rates = [first_rates(fabric, demand, "ecmp", seed=s).flow.mean() for s in range(8)]
    np.testing.assert_allclose(results, rates, rtol=1e-12)
    assert np.mean(results) == pytest.approx(
        1 - (1 - 1 / 32) ** 32, abs=0.015
    )  # 3 standard errors of 512 leaves: 0.008


def expected_fullest(n: int) -> float:
    """E[max] of n balls in n bins: P(max <= k) = n!/n^n [x^n] (sum over j <= k of x^j / j!)^n."""
    total = 0.0
    for k in range(1, n + 1):
        series = np.zeros(n + 1)
        series[: k + 1] = [1 / factorial(j) for j in range(k + 1)]
        power, rest, exponent = np.eye(1, n + 1)[0], series, n
        while exponent:  # power of a truncated series by squaring
            if exponent & 1:
                power = np.convolve(power, rest)[: n + 1]
            rest, exponent = np.convolve(rest, rest)[: n + 1], exponent >> 1
        below = np.exp(np.log(power[n]) + sum(np.log(np.arange(1, n + 1))) - n * np.log(n))
        total += 1 - min(below, 1.0)
        if 1 - below < 1e-9:
            break
    return 1 + total  # E[max] = sum over k >= 0 of P(max > k), and P(max > 0) = 1


@pytest.mark.parametrize(("n", "table"), [(8, 2.60), (16, 3.08), (32, 3.54), (64, 3.97), (128, 4.39)])
def test_fullest_uplink(n, table):
    """The fullest of n uplinks carries E[max] flows; the slowest flow gets one over that.

    Tolerance: 2 %, more than three standard errors of 4,096 leaves; the table was drawn, too: 0.5 % off the
    exact value.
    """
    leaves = min(2 * n, 64)
    fabric, demand = to_next_leaf(n, leaves)
    fullest = []
    for seed in range(4096 // leaves):
        routes = first_rates(fabric, demand, "ecmp", seed=seed).routes
        flows = np.bincount(routes.resource, minlength=len(fabric.links))
        fullest.append(flows[fabric.links.kind == 1].reshape(leaves, n, 2)[:, :, 0].max(axis=1))
    exact = expected_fullest(n)
    assert table == pytest.approx(exact, rel=0.005)
    assert 3 * standard_error(np.concatenate(fullest)) < 0.02 * exact
    assert np.mean(fullest) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(
    ("qps", "mean", "slowest_host", "slowest_qp"),
    [
        (1, 0.50, 0.19, 0.19),
        (2, 0.66, 0.28, 0.26),
        (4, 0.80, 0.44, 0.33),
        (8, 0.90, 0.63, 0.44),
        (16, 0.95, 0.77, 0.53),
        (32, 0.98, 0.87, 0.63),
        (64, 0.99, 0.92, 0.71),
    ],
)
def test_cross_leaf_permutation_by_qps(qps, mean, slowest_host, slowest_qp):
    """16 leaves of 32 NICs and 32 spines, every flow leaves its leaf, Q QPs each.

    Table: congestion.md, section 4. Mean of max-min rates; slowest host when its QPs share its bytes;
    slowest QP times Q when each QP carries an equal part.
    """
    fabric = leaves_of(32, 16)
    samples = []
    for seed in range(60):
        demand = make_demand(
            fabric, f"kind: permutation\nsize: 1 MiB\ncross_leaf: true\nqps: {qps}", seed=seed
        )
        found = first_rates(fabric, demand, "ecmp", seed=seed)
        samples.append((found.flow.mean(), found.flow.min(), found.slowest_qp.min()))
    columns = np.array(samples).T
    assert max(3 * standard_error(column) for column in columns) < TABLE
    assert columns.mean(axis=1) == pytest.approx([mean, slowest_host, slowest_qp], abs=TABLE)


PACKED = {  # leaves: slowest flow with 1, 2, 4, 8 QPs
    1: (0.67, 0.88, 0.98, 1.0),
    4: (0.49, 0.70, 0.91, 0.998),
    16: (0.41, 0.58, 0.81, 0.99),
    64: (0.33, 0.49, 0.71, 0.96),
}


@pytest.mark.parametrize("leaves", PACKED)
@pytest.mark.parametrize("place", range(4))
def test_packed_rings(leaves, place):
    """Hosts of 8 NICs, 4 on a leaf, ranks in order: 8 rings cross each leaf boundary, on 32 uplinks.

    Table: collectives.md, A3. A collective waits for its slowest flow. All flows that leave a leaf go to
    the next one, so ways up and down collide alike and each leaf counts once.
    """
    qps = (1, 2, 4, 8)[place]
    fabric = leaves_of(32, max(leaves, 4), 8)
    demand = make_demand(fabric, f"kind: all-reduce\nsize: 1 GiB\nchannels: 1\nqps: {qps}")
    samples: list[float] = []
    for seed in range({1: 250, 4: 300, 16: 200, 64: 120}[leaves]):
        found = first_rates(fabric, demand, "ecmp", seed=seed)
        crosses = np.diff(found.routes.path_ptr)[found.routes.flow_ptr[:-1]] > 2
        by_leaf = found.slowest_qp[crosses].reshape(-1, 8).min(axis=1)
        samples += by_leaf.tolist() if leaves == 1 else [by_leaf.min()]
    assert 3 * standard_error(samples) < TABLE
    assert np.mean(samples) == pytest.approx(PACKED[leaves][place], abs=TABLE)


def test_packed_rings_of_a_result():
    """`simulate` charges the collective with exactly that: bytes of a QP over the rate of the slowest."""
    fabric = leaves_of(32, 16, 8)
    demand = make_demand(fabric, "kind: all-reduce\nsize: 1 GiB\nchannels: 1\nqps: 4")
    for seed in range(5):
        found = first_rates(fabric, demand, "ecmp", seed=seed)
        result = run(fabric, demand, "ecmp", seed=seed)
        ideal = run(fabric, demand, "ideal", seed=seed)
        ratio = ideal.phases[0].network_s / result.phases[0].network_s
        assert ratio == pytest.approx(found.slowest_qp.min(), rel=1e-9)


def test_probability_of_no_collision():
    """8 flows on 32 uplinks all apart: 32! / (24! 32^8) = 0.386.

    Tolerance: four standard errors of 9,600 leaves, 4 sqrt(p (1 - p) / 9,600) = 0.02.
    """
    exact = perm(32, 8) / 32**8
    assert exact == pytest.approx(0.386, abs=5e-4)
    fabric = leaves_of(32, 64, 8)
    demand = make_demand(fabric, "kind: all-reduce\nsize: 1 GiB\nchannels: 1")
    apart = []
    for seed in range(150):
        found = first_rates(fabric, demand, "ecmp", seed=seed)
        crosses = np.diff(found.routes.path_ptr) > 2
        apart.append(found.flow[crosses].reshape(64, 8).min(axis=1) > 0.999)
    assert np.mean(apart) == pytest.approx(exact, abs=0.02)


SENDERS = {  # QPs: slowest of 32 senders on 32 uplinks; of 16 on 32; of 16 leaves with 32 on 32
    1: (0.30, 0.45, 0.21),
    2: (0.38, None, 0.28),
    4: (0.47, 0.76, 0.36),
    8: (0.56, 0.92, 0.45),
    16: (0.65, 0.99, 0.55),
    32: (0.73, None, 0.64),
}


def one_leaf_sends(senders: int, qps: int):
    """Senders of one leaf, each to another leaf: only the ways up are shared."""
    src = np.arange(senders)
    return leaves_of(32, 33), make_flows(src, 32 * (src + 1) + src, qps=qps)


@pytest.mark.parametrize("qps", SENDERS)
def test_slowest_sender_of_one_leaf(qps):
    """32 (or 16) senders on 32 uplinks, equal bytes a QP; of 16 leaves, the slowest of 16 such draws.

    Table: collectives.md, A3.
    """
    one_leaf, half_load, sixteen = SENDERS[qps]
    for senders, expected in ((32, one_leaf), (16, half_load)):
        if expected is None:
            continue
        fabric, flows = one_leaf_sends(senders, qps)
        slowest = np.array([first_rates(fabric, flows, "ecmp", seed=s).slowest_qp.min() for s in range(640)])
        assert 3 * standard_error(slowest) < TABLE
        assert slowest.mean() == pytest.approx(expected, abs=TABLE)
        if senders == 32:
            of_sixteen = slowest.reshape(-1, 16).min(axis=1)
            assert 3 * standard_error(of_sixteen) < TABLE
            assert of_sixteen.mean() == pytest.approx(sixteen, abs=TABLE)


@pytest.mark.parametrize(
    ("qps", "utilisation", "slowest"),
    [(1, 0.638, 0.29), (4, 0.81, 0.60), (8, 0.86, 0.75), (16, 0.90, 0.84), (32, 0.93, 0.90)],
)
def test_fixed_shares_of_the_nic(qps, utilisation, slowest):
    """The rows "uplink utilisation" and "work-conserving" of the table are for a NIC that gives each QP 1/q
    of itself.

    By hand: a QP on an uplink with m QPs gets min(1/q, 1/m) of the line rate; a sender the sum over its QPs.
    Max-min fairness hands what a held-back QP leaves to its siblings, so it is never below that (0.95
    instead of 0.90 for the slowest of 32 senders with 32 QPs); the table is met from the same routes.
    """
    fabric, flows = one_leaf_sends(32, qps)
    means, least = [], []
    for seed in range(200):
        found = first_rates(fabric, flows, "ecmp", seed=seed)
        uplink = found.routes.resource[found.routes.path_ptr[:-1] + 1]
        share = np.minimum(1 / qps, 1 / np.bincount(uplink)[uplink])
        sender = share.reshape(32, qps).sum(axis=1)
        assert (found.flow >= sender - 1e-9).all()
        means.append(sender.mean())
        least.append(sender.min())
    assert np.mean(means) == pytest.approx(utilisation, abs=TABLE)
    assert np.mean(least) == pytest.approx(slowest, abs=TABLE)


def test_one_seed_on_two_tiers_uses_one_path_in_m():
    """Leaves of M uplinks under spines of M: M^2 ways from a leaf to a core, M of them with one hash seed.

    System: a fat-tree, M = k/2 = 4, 4,000 QPs between two pods. Each of the M^2 = 16 ways is missed by
    4,000 independent draws with probability 16 (15/16)^4000, nil.
    """
    fabric = make_fabric("kind: fat-tree\nk: 8")
    flows = make_flows([0], [127], qps=4000)
    ways = {}
    for polarized in (False, True):
        routes = route_flows(fabric, flows, "ecmp", RoutingOptions(seed=3, polarized=polarized))
        ways[polarized] = {
            tuple(path[1:3].tolist()) for path in np.split(routes.resource, routes.path_ptr[1:-1])
        }
    assert len(ways[False]) == 16
    assert len(ways[True]) == 4
