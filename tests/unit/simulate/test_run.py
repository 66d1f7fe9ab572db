"""`simulate` by hand on small fabrics: times, rates, loads, figures, bottlenecks, and the same bytes each
time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from netplan.errors import ModelRangeError, RoutingError
from netplan.routing import SCHEMES
from netplan.simulate import Scenario, simulate
from netplan.simulate.compare import compare_results
from tests.contracts.making import INFINIBAND, NIC, ROCE, make_demand, make_fabric, run
from tests.fabrics import dumbbell, lab_two_leaves, metro_two_sites, one_leaf, rail_2x8

ROOT = Path(__file__).parents[3]

#: Propagation [s/m].
PER_METRE = 5.05e-9

TWO_ACROSS = "kind: flows\nflows: [{src: 0, dst: 2, size: 1 MB}, {src: 1, dst: 3, size: 3 MB}]"


def test_dumbbell_by_hand():
    """Two flows of 1 and 3 MB over one cable of 12.5 GB/s between leaves.

    By hand, C = 12.5e9 x 4096/4178 payload: both at C/2 until 2 MB/C, when the first is done; the other has
    2 MB left, at C: 4 MB/C. Latency: cables 3 + 30 + 30 + 3 m, 3 switches, hosts.
    Ideal: each at 50e9 x 4096/4178; the longer decides.
    """
    result = run(dumbbell(), TWO_ACROSS)
    c = 12.5e9 * ROCE
    latency = 66 * PER_METRE + 3e-6 + 2.6e-6
    np.testing.assert_allclose(result.rate, c / 2, rtol=1e-12)
    np.testing.assert_allclose(result.finish, [2e6 / c + latency, 4e6 / c + latency], rtol=1e-9)
    assert result.completion_s == pytest.approx(4e6 / c + latency, rel=1e-9)
    assert result.ideal_s == pytest.approx(3e6 / (NIC * ROCE) + latency, rel=1e-12)
    assert result.efficiency.mean_flow == pytest.approx(c / 2 / (NIC * ROCE), rel=1e-12)
    assert result.efficiency.worst_flow == pytest.approx(1 / 8, rel=1e-12)
    assert result.efficiency.collective == pytest.approx(result.ideal_s / result.completion_s, rel=1e-12)
    assert result.busbw is None
    assert result.algbw == pytest.approx(4e6 / result.completion_s, rel=1e-12)


def test_loads_and_bottlenecks_by_hand():
    """The dumbbell's two cables between switches: full, offered 2 x 400G on 100G = 8, two flows each; NICs
    an eighth.
    """
    fabric = dumbbell()
    result = run(fabric, TWO_ACROSS)
    names = [fabric.link_name(link) for link in range(len(fabric.links))]
    loads = dict(zip(names, result.link_load.tolist(), strict=True))
    assert loads["left -> mid"] == pytest.approx(1)
    assert loads["mid -> right"] == pytest.approx(1)
    assert loads["mid -> left"] == 0
    assert loads["h0 -> left"] == pytest.approx(1 / 8)
    assert [(b.link, round(b.load, 9), round(b.offered, 9), b.flows) for b in result.bottlenecks()] == [
        ("left -> mid", 1.0, 8.0, 2),
        ("mid -> right", 1.0, 8.0, 2),
    ]
    assert result.is_contended
    assert {names[link] for link in result.bottleneck.tolist()} <= {"left -> mid", "mid -> right"}
    assert result.bottlenecks(1) == result.bottlenecks()[:1]


def test_late_flow_by_hand():
    """The second flow starts when the first is half done: rates are solved anew, the clock is the phase's.

    By hand, C = 12.5e9 x payload: alone until t0 = 0.5 MB/C; then halves: 0.5 MB left takes 1 MB/C: done at
    1.5 MB/C; the second then has 2.5 of 3 MB left: 1.5 + 2.5 = 4 MB/C. Latency on top of each.
    """
    c = 12.5e9 * ROCE
    start = 0.5e6 / c
    flows = f"[{{src: 0, dst: 2, size: 1 MB}}, {{src: 1, dst: 3, size: 3 MB, start: {start * 1e9!r} ns}}]"
    result = run(dumbbell(), f"kind: flows\nflows: {flows}")
    latency = 66 * PER_METRE + 5.6e-6
    np.testing.assert_allclose(result.finish - latency, [1.5e6 / c, 4e6 / c], rtol=1e-9)


def test_slower_endpoint_counts():
    """A flow from 400G to 100G is at line rate when it fills the 100G port."""
    fabric = make_fabric(
        "kind: custom\nhosts: [{name: fast, gpus: 1}, {name: slow, gpus: 1}]\n"
        "switches: [{name: s, tier: 1, radix: 4}]\n"
        "links: [{a: fast, b: s, speed: 400G}, {a: slow, b: s, speed: 100G}]"
    )
    result = run(fabric, "kind: point-to-point\nsize: 1 MB\nsrc: 0\ndst: 1")
    assert result.rate[0] == pytest.approx(12.5e9 * ROCE)
    assert result.efficiency.to_dict() == {
        "mean_flow": pytest.approx(1),
        "collective": pytest.approx(1),
        "worst_flow": pytest.approx(1),
    }


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
def test_mtu_and_transport_decide_the_payload_rate(mtu):
    """Bytes over payload line rate; InfiniBand carries 26 bytes around each packet, RoCE 82."""
    traffic = "kind: point-to-point\nsize: 1 GiB\nsrc: 0\ndst: 1"
    for scheme, header in (("ecmp", 82), ("ib-static", 26)):
        result = run(one_leaf(), traffic, scheme, mtu=mtu)
        assert result.phases[0].network_s == pytest.approx(2**30 / (NIC * mtu / (mtu + header)), rel=1e-12)
    with pytest.raises(ModelRangeError, match="mtu = 1500"):
        run(one_leaf(), traffic, mtu=1500)


def test_equal_parts_and_pools_of_bytes():
    """Work-conserving QPs take what is left; with equal parts the slowest QP decides.

    System: 4 leaves of 4 hosts, 4 QPs each, hashed. First rates are the same; the slowest flow ends later
    with equal parts, as its slowest QP has a quarter of the bytes to the end.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {count: 4}")
    slower = 0
    for seed in range(10):
        text = "kind: permutation\nsize: 1 MB\ncross_leaf: true\nqps: 4\nwork_conserving: "
        parts, pool = (run(fabric, text + word, "ecmp", seed=seed) for word in ("false", "true"))
        np.testing.assert_allclose(parts.rate, pool.rate, rtol=1e-12)  # sums in another order
        assert pool.completion_s <= parts.completion_s * (1 + 1e-9)
        slower += pool.completion_s < parts.completion_s * 0.999
    assert slower > 5


@pytest.mark.parametrize("scheme", ["ecmp", "spray", "ib-static"])
def test_pooled_rings(scheme):
    """Work-conserving QPs in a lockstep phase: the slowest edge's bytes over its QPs' rates together.

    By hand from first rates: passes x S / (rings x channels) over the sum of an edge's QPs; where all
    QPs of an edge go one way (all but ECMP) equal parts take the same time.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 8, gpus: 2}\nspine: {count: 4}")
    text = "kind: all-reduce\nsize: 1 GB\nqps: 4\nwork_conserving: "
    pool, parts = (run(fabric, text + word, scheme, seed=2) for word in ("true", "false"))
    edge = 2 * 15 / 16 * 1e9 / (2 * 2)
    assert pool.phases[0].network_s == pytest.approx(edge / pool.rate.min(), rel=1e-12)
    if scheme == "ecmp":
        assert pool.completion_s < parts.completion_s
    else:
        assert pool.completion_s == pytest.approx(parts.completion_s, rel=1e-12)


def test_scale_up_may_decide():
    """One NIC's share is small, NVLink slow: the busy time of the scale-up domain is the completion time.

    By hand: 8 GPUs, 8 rings, two hosts: a GPU sends 7/8 of passes x S at 1 GB/s.
    """
    fabric = make_fabric("kind: leaf-spine\nradix: 32\nhosts: {count: 2, scale_up: 8G}")
    result = run(fabric, "kind: all-reduce\nsize: 1 GB")
    passes = 2 * 15 / 16
    assert result.phases[0].scale_up_s == pytest.approx(passes * 1e9 * 7 / 8 / 1e9)
    assert result.completion_s == pytest.approx(result.phases[0].scale_up_s + result.latency_s)
    assert result.phases[0].network_s < 0.1 * result.completion_s


def test_windows_are_counted_and_named():
    """A window that stops a flow is no link: its bottleneck is -1, the link loads are what it leaves."""
    result = run(
        metro_two_sites(), "kind: point-to-point\nsize: 1 GiB\nsrc: 0\ndst: 16\nwindow: 1 MiB", "spray"
    )
    assert result.windowed == 1
    assert result.bottleneck.tolist() == [-1]
    assert not result.is_contended
    assert result.link_load.max() == pytest.approx(result.rate[0] / (NIC * ROCE))


def test_by_tier_rail_site_and_phase():
    """Summaries by column, on a ring over two blocks of a rail-optimized fabric.

    By hand: 8 rails x 2 channels x 8 edges; a NIC's two channels have half its payload rate each: 24.5 GB/s.
    """
    result = run(rail_2x8(), "kind: all-reduce\nsize: 1 GiB", "spray")
    rails = result.by("rail")
    assert [row["rail"] for row in rails] == [str(r) for r in range(8)]
    assert {row["flows"] for row in rails} == {16}
    assert rails[0]["mean_rate_gb_per_s"] == pytest.approx(50 * ROCE / 2)
    assert [row["site"] for row in result.by("site")] == ["site"]
    tiers = {(row["tier"], row["direction"]): row for row in result.by("tier")}
    assert tiers["host_leaf", "up"]["mean_load"] == pytest.approx(1)
    assert tiers["leaf_spine", "up"]["links"] == 64
    assert tiers["leaf_spine", "up"]["mean_load"] == pytest.approx(
        1 / 4
    )  # one of 4 hosts a leaf sends over it
    assert result.by("phase")[0]["name"] == "all-reduce ring"
    with pytest.raises(ValueError, match="by = 'color' is not one of tier, rail, phase, site"):
        result.by("color")


def test_sites():
    """Rates by the site that sends."""
    flows = "[{src: 0, dst: 4, size: 1 MB}, {src: 20, dst: 24, size: 1 MB}, {src: 18, dst: 26, size: 1 MB}]"
    result = run(metro_two_sites(), f"kind: flows\nflows: {flows}", "spray")
    assert [(row["site"], row["flows"]) for row in result.by("site")] == [("north", 1), ("south", 2)]


def test_loads_never_exceed_one_and_offers_tell_by_how_much():
    """Incast of 3 on 4 hosts of one leaf: the receiver's cable is full, and offered three times its rate."""
    result = run(one_leaf(), "kind: incast\nsize: 1 MB\nsenders: 3")
    assert result.link_load.max() == pytest.approx(1)
    assert result.link_offered.max() == pytest.approx(3)
    assert [b.flows for b in result.bottlenecks()] == [3]


def test_repr_and_dict():
    """One line, and plain data with units in the keys; wall time is not in it."""
    result = run(lab_two_leaves(), "kind: all-reduce\nsize: 1 GB", "spray", seed=4)
    assert repr(result).startswith("<Result 'offered' on 'lab-two-leaves' by spray: 0.0")
    data = json.loads(json.dumps(result.to_dict()))
    assert data["schema"] == "netplan/result/1"
    assert data["result"]["completion_s"] == result.completion_s
    assert result.busbw is not None
    assert data["result"]["busbw_gb_per_s"] == pytest.approx(result.busbw / 1e9)
    assert data["result"]["efficiency"] == result.efficiency.to_dict()
    assert data["manifest"]["seed"] == 4
    assert data["manifest"]["models"]["routing"] == "spray"
    assert len(data["manifest"]["fabric"]["sha256"]) == 64
    assert "wall" not in json.dumps(data)
    assert result.wall_s > 0


def test_results_are_values():
    """Columns are read-only, and a run leaves its inputs as they were."""
    fabric, before = dumbbell(), dumbbell()
    demand = make_demand(fabric, TWO_ACROSS)
    result = run(fabric, demand)
    for column in (result.rate, result.finish, result.link_load, demand.size, fabric.links.capacity):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    np.testing.assert_array_equal(fabric.links.capacity, before.links.capacity)
    assert run(fabric, demand).to_dict() == result.to_dict()


def test_progress_is_told():
    """Phase name, finished and all messages."""
    told: list[tuple[str, int, int]] = []
    simulate(
        Scenario(dumbbell(), make_demand(dumbbell(), TWO_ACROSS), "ecmp"), progress=lambda *a: told.append(a)
    )
    assert told[-1] == ("flows", 2, 2)


def test_unknown_routing():
    """Refused before anything is computed."""
    with pytest.raises(RoutingError, match="routing 'sprai' is not one of"):
        run(one_leaf(), "kind: incast\nsize: 1 MB\nsenders: 2", "sprai")


PROGRAM = """
import json, sys
from tests.contracts.making import make_fabric, run
fabric = make_fabric(sys.argv[1])
for traffic in sys.argv[2:4]:
    for scheme in sys.argv[4:]:
        result = run(fabric, traffic, scheme, seed=11)
        print(json.dumps(result.to_dict(), sort_keys=True), result.rate.tobytes().hex(),
        result.finish.tobytes().hex())
"""


def test_same_bytes_in_two_processes():
    """Same seed, other PYTHONHASHSEED: the same JSON and the same columns to the last bit, for every
    scheme.
    """
    fabric = "kind: clos\nradix: 8\nhosts: {count: 20, gpus: 2}\npod: {leaves: 3}"
    permutation = "kind: permutation\nsize: 1 MiB\nqps: 3"
    ring = "kind: all-reduce\nsize: 1 GiB\nplacement: {kind: random}"
    out = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, fabric, permutation, ring, *SCHEMES.names()],
            env={**os.environ, "PYTHONHASHSEED": number, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for number in ("0", "12345")
    ]
    assert out[0] == out[1]
    assert out[0].count(b"\n") == 2 * len(SCHEMES.names())


def compare(fabric, traffic, baseline, *schemes, **more):
    """Compare schemes on a demand."""
    base = run(fabric, traffic, baseline)
    return compare_results(
        base, [(scheme, "max-min", dict(more), run(fabric, traffic, scheme)) for scheme in schemes]
    )


def test_comparison_by_hand():
    """Incast: routing changes nothing; headers do. By hand: mean-flow efficiencies equal, times as payload
    rates.
    """
    table = compare(one_leaf(), "kind: incast\nsize: 64 MiB\nsenders: 3", "ib-static", "ecmp", "spray")
    for row in table.rows:
        assert row.versus_baseline.mean_flow == pytest.approx(1)
        assert row.versus_baseline.completion == pytest.approx(INFINIBAND / ROCE, rel=1e-3)
    assert any("Only NIC ports are contended" in remark for remark in table.remarks())
    data = json.loads(json.dumps(table.to_dict()))
    assert [row["routing"] for row in data["rows"]] == ["ecmp", "spray"]
    assert data["baseline"]["routing"] == "ib-static"


def test_comparison_says_when_nothing_is_contended():
    """A rail's ring inside one block meets nothing: the table says why all rows are alike."""
    table = compare(
        make_fabric("kind: rail-optimized\nradix: 64\nhosts: {count: 8}"),
        "kind: all-reduce\nsize: 1 GiB",
        "ib-static",
        "ecmp",
        "adaptive",
    )
    assert table.remarks()[0].startswith(
        "No link is offered more than it carries under any of these settings"
    )
    assert [row.versus_baseline.collective for row in table.rows] == pytest.approx([1, 1])


def test_comparison_names_windows():
    """Between sites a window decides: the remark says so and how many flows."""
    table = compare(
        metro_two_sites(),
        "kind: point-to-point\nsize: 1 GiB\nsrc: 0\ndst: 16\nwindow: 1 MiB",
        "ib-static",
        "ecmp",
    )
    assert table.remarks()[-1].startswith("1 flows are limited by their window over the round-trip time")


def test_multipath_beats_a_colliding_hash():
    """Two-leaf permutation that a hash spreads badly: spray is 1, ecmp below; the ratio is the baseline's."""
    fabric = make_fabric("kind: leaf-spine\nradix: 16\nhosts: {count: 64, gpus: 1}\nspine: {count: 8}")
    table = compare(fabric, "kind: permutation\nsize: 1 MiB\nshift: 8", "ideal", "ecmp", "spray")
    by_name = {row.routing: row for row in table.rows}
    assert by_name["spray"].versus_baseline.completion == pytest.approx(1, rel=1e-9)
    assert by_name["ecmp"].versus_baseline.mean_flow == by_name["ecmp"].result.efficiency.mean_flow < 0.8
