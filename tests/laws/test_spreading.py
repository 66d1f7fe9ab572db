"""What spreading load over all paths must give: everything where nothing is oversubscribed, and no more than
that.
"""

from __future__ import annotations

import numpy as np
import pytest

from netplan.routing import SCHEMES
from tests.contracts.making import NIC, ROCE, first_rates, make_demand, make_fabric, run, standard_error

NON_BLOCKING = {
    "two tiers": "kind: leaf-spine\nradix: 64\nhosts: {count: 512, gpus: 1}\nspine: {count: 32}",
    "two tiers, rails": "kind: rail-optimized\nradix: 64\nhosts: {count: 64}",
    "three tiers": "kind: clos\nradix: 64\nhosts: {count: 512}\npod: {leaves: 16}",
    "three tiers, rails": "kind: rail-optimized\ntiers: 3\nradix: 64\nhosts: {count: 512}",
}
OFFERED = {
    "permutation": "kind: permutation\nsize: 1 MiB\ncross_leaf: true",
    "packed ring": "kind: all-reduce\nsize: 1 GiB",
    "scattered ring": "kind: all-reduce\nsize: 1 GiB\nplacement: {kind: random}",
}


@pytest.mark.parametrize("offered", OFFERED)
@pytest.mark.parametrize("fabric", NON_BLOCKING)
def test_from_60_to_95_percent(fabric, offered):
    """Non-blocking fabrics of 64-port switches: spraying reaches 100 %, adaptive routing at least 95 %.

    By hand: a leaf of d downlinks and d uplinks sends and receives at most d NICs' line rates, spread
    evenly: no trunk is over its capacity, so every NIC runs at line rate. Adaptive routing keeps
    quarters of a NIC's rate whole and decides greedily, so some links are overloaded; 0.95 is the figure
    that is claimed for it.
    One QP a flow hashed collides: below 0.65 where all flows cross (the "60 %").
    """
    built = make_fabric(NON_BLOCKING[fabric])
    for seed in range(3):
        demand = make_demand(built, OFFERED[offered], seed=seed)
        spray = run(built, demand, "spray", seed=seed).efficiency
        assert spray.mean_flow == pytest.approx(1, rel=1e-9)
        assert spray.worst_flow == pytest.approx(1, rel=1e-9)
        assert run(built, demand, "adaptive", seed=seed).efficiency.mean_flow >= 0.95
        if offered == "permutation":
            assert run(built, demand, "ecmp", seed=seed).efficiency.mean_flow < 0.65


@pytest.mark.parametrize("k", [4, 8, 16, 32])
def test_adaptive_on_narrow_trees(k):
    """Fat-trees of few ports, single cables, where a flow has few paths: 0.95 holds there as well.

    Measured with adaptive routing that probes (Geoffray & Hoefler, HOTI'08, 32 ports): 0.77, against 0.38
    static. netplan's knows all loads without delay, so it has to lie above, and not above spraying's 1.
    """
    fabric = make_fabric(f"kind: fat-tree\nk: {k}")
    for seed in range(4):
        demand = make_demand(fabric, OFFERED["permutation"], seed=seed)
        hashed = first_rates(fabric, demand, "ecmp", seed=seed).flow.mean()
        adaptive = first_rates(fabric, demand, "adaptive", seed=seed).flow.mean()
        assert hashed + 0.3 < adaptive
        assert 0.95 <= adaptive <= 1


@pytest.mark.parametrize("ratio", [2, 4, 8])
@pytest.mark.parametrize("kind", ["leaf-spine", "clos"])
def test_oversubscription(kind, ratio):
    """o:1 leaves, every flow leaves its leaf (on three tiers: by a shift of one pod, its pod).

    By hand: d flows share d/o uplinks up and d/o down, so spraying gives each exactly 1/o.
    """
    half = 16
    pods = "" if kind == "leaf-spine" else "pod: {leaves: 4}\n"
    fabric = make_fabric(
        f"kind: {kind}\nradix: 64\nhosts: {{count: {16 * half}, gpus: 1}}\n{pods}"
        f"leaf: {{downlinks: {half}, uplinks: {half // ratio}}}"
    )
    cross = "cross_leaf: true" if kind == "leaf-spine" else f"shift: {4 * half}"
    demand = make_demand(fabric, f"kind: permutation\nsize: 1 MiB\n{cross}")
    np.testing.assert_allclose(first_rates(fabric, demand, "spray").flow, 1 / ratio, rtol=1e-9)
    for scheme in SCHEMES.names():
        mean = first_rates(fabric, demand, scheme).flow.mean()
        assert scheme == "ideal" or mean <= 1 / ratio * (1 + 1e-9)  # no routing makes capacity


def test_spraying_gains_nothing_inside_one_leaf():
    """All hosts under one leaf: there is one path, so multipath gains 0 % (uccl issue 153).

    By hand: every NIC at its payload line rate; bytes of a flow over that rate, whatever the routing.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 64\nhosts: {count: 4}\nleaf: {downlinks: 32}")
    demand = make_demand(fabric, "kind: permutation\nsize: 64 MiB")
    times = {
        scheme: run(fabric, demand, scheme).completion_s
        for scheme in ("ecmp", "rail-pinned", "spray", "adaptive")
    }
    assert len(set(times.values())) == 1
    assert run(fabric, demand, "spray").phases[0].network_s == pytest.approx(
        64 * 2**20 / (NIC * ROCE), rel=1e-12
    )


@pytest.mark.parametrize(
    "offered",
    [
        "kind: all-reduce\nsize: 1 GiB",
        "kind: permutation\nsize: 3 MiB\nshift: 8",
        "kind: all-to-all\nsize: 64 MiB",
        "kind: flows\nflows: [{src: 0, dst: 8, size: 1 MiB}, {src: 9, dst: 17, size: 3 MiB, start: 10 us}]",
    ],
)
def test_schemes_agree_where_nothing_is_contended(offered):
    """Rail-optimized, one block: each rail is one leaf, so traffic in its rail meets nothing but NIC ports.

    Schemes of one transport then give the same completion; the two transports differ in headers and latency.
    """
    fabric = make_fabric("kind: rail-optimized\nradix: 64\nhosts: {count: 16}")
    demand = make_demand(fabric, offered)
    by_transport: dict[str, set[float]] = {}
    for scheme in SCHEMES:
        result = run(fabric, demand, scheme.name)
        assert result.efficiency.collective == pytest.approx(1, rel=1e-12)
        by_transport.setdefault(scheme.transport, set()).add(round(result.completion_s, 15))
    assert {transport: len(times) for transport, times in by_transport.items()} == {
        "roce": 1,
        "infiniband": 1,
    }
    assert min(by_transport["infiniband"]) < min(by_transport["roce"])


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        # twice the uplinks (Meta's stopgap), 1.125 times, and half as many at twice the speed (ByteDance):
        # QPs: (mean, slowest host), None where the table has no figure
        ("downlinks: 16, uplinks: 32", {1: (0.69, None), 4: (0.993, None), 16: (1.0, 1.0)}),
        ("downlinks: 16, uplinks: 18", {16: (0.997, 0.89)}),
        (
            "downlinks: 16, uplinks: 8, uplink_speed: 800G",
            {1: (0.64, None), 4: (0.89, None), 16: (0.976, None)},
        ),
    ],
)
def test_mitigations_of_collisions(leaf, expected):
    """Cross-leaf permutation on 16 leaves of 16 NICs with more or fatter uplinks (congestion.md, section 4).

    Tolerance: 0.03, as for the table of QPs; three standard errors are below it.
    """
    spines = leaf.split("uplinks: ")[1].split(",")[0]
    fabric = make_fabric(
        f"kind: leaf-spine\nradix: 64\nhosts: {{count: 256, gpus: 1}}\n"
        f"leaf: {{{leaf}}}\nspine: {{count: {spines}}}"
    )
    for qps, (mean, slowest) in expected.items():
        offered = f"kind: permutation\nsize: 1 MiB\ncross_leaf: true\nqps: {qps}"
        flows = [
            first_rates(fabric, make_demand(fabric, offered, seed=s), "ecmp", seed=s).flow for s in range(60)
        ]
        assert 3 * standard_error([flow.min() for flow in flows]) < 0.03
        assert np.mean(flows) == pytest.approx(mean, abs=0.03)
        if slowest is not None:
            assert np.mean([flow.min() for flow in flows]) == pytest.approx(slowest, abs=0.03)
