"""Growth plans: the steps make the new fabric, and on tiny fabrics no plan keeps more cables."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from netplan import api
from netplan.errors import FabricError
from netplan.fabric import Fabric
from netplan.fabric.columns import LINK_KINDS
from netplan.fabric.failures import apply_failures
from netplan.planning.growth import Growth, growth_choices, purchases, regrow
from netplan.planning.matching import group_rows, join, match_nodes, most_kept, pair_equal
from netplan.units import format_rate
from tests.fabrics import NAMED, yaml_fabric
from tests.strategies import fabrics

# ---- an oracle: all maps of tiny fabrics -------------------------------------------------------------------


def injections(old: list[int], new: list[int]):
    """Yield all ways to give as many old nodes as possible different new ones."""
    if len(old) <= len(new):
        for chosen in permutations(new, len(old)):
            yield dict(zip(old, chosen, strict=True))
    else:
        for chosen in permutations(old, len(new)):
            yield dict(zip(chosen, new, strict=True))


def fits(before: Fabric, after: Fabric, place: dict[int, int]) -> dict[int, int]:
    """Leave out boxes with fewer, or slower, ports than their places use."""
    used = np.bincount(after.links.src, minlength=after.n_nodes)

    def fastest(fabric: Fabric, node: int) -> float:
        return float(fabric.links.capacity[fabric.links.src == node].max())

    return {
        old: new
        for old, new in place.items()
        if before.nodes.radix[old] >= used[new] and fastest(before, old) >= fastest(after, new)
    }


def wires(fabric: Fabric) -> Counter[tuple[int, int, int]]:
    """Return cables between switches of one speed: (lower, upper, Gb/s) to how many."""
    links, tier = fabric.links, fabric.nodes.tier
    ends = zip(links.src[0::2].tolist(), links.dst[0::2].tolist(), links.capacity[0::2].tolist(), strict=True)
    return Counter((a, b, round(rate / 125e6)) for a, b, rate in ends if tier[a])


def seats(fabric: Fabric) -> list[list[tuple[tuple[int, int, int, float], int]]]:
    """Return for each host what its ports are: (rail, plane, ports of the host, rate), and the leaf."""
    ends, found = fabric.endpoints, []
    for host in fabric.host_ids:
        mine = ends.host == host
        rates = fabric.endpoint_rate[mine].tolist()
        columns = (ends.rail[mine].tolist(), ends.plane[mine].tolist(), [len(rates)] * len(rates), rates)
        found.append(list(zip(zip(*columns, strict=True), ends.leaf[mine].tolist(), strict=True)))
    return found


def most_kept_of_all(before: Fabric, after: Fabric) -> int:
    """Return the most cables that any map of switches to places of their tier, and of hosts, keeps."""
    old, new = wires(before), wires(after)
    old_seats, new_seats = seats(before), seats(after)

    def tier(fabric: Fabric, number: int) -> list[int]:
        return [int(node) for node in np.flatnonzero(fabric.nodes.tier == number)]

    def maps(number: int):
        for place in injections(tier(before, number), tier(after, number)):
            yield fits(before, after, place)

    def kept(place: dict[int, int], lower: int) -> int:
        return sum(
            min(count, new[place[a], place[b], rate])
            for (a, b, rate), count in old.items()
            if before.nodes.tier[a] == lower and a in place and b in place
        )

    best = 0
    for leaves in maps(1):
        table = [
            [sum((port, leaves.get(leaf)) in theirs for port, leaf in mine) for theirs in new_seats]
            for mine in old_seats
        ]
        rows, columns = linear_sum_assignment(np.asarray(table), maximize=True)
        hosts = int(np.asarray(table)[rows, columns].sum())
        for spines in maps(2):
            below = hosts + kept({**leaves, **spines}, 1)
            cores = [kept({**spines, **some}, 2) for some in maps(3)]
            best = max(best, below + max(cores, default=0))
    return best


ONE = "hosts: {count: %d, gpus: 1}"
TWO = "hosts: {count: %d, gpus: 2}"
TINY = [
    (f"kind: leaf-spine, radix: 4, {ONE % 4}", f"kind: leaf-spine, radix: 4, {ONE % 8}"),
    (f"kind: leaf-spine, radix: 8, {ONE % 8}", f"kind: leaf-spine, radix: 8, {ONE % 16}"),
    (f"kind: leaf-spine, radix: 8, {ONE % 16}", f"kind: leaf-spine, radix: 8, {ONE % 8}"),
    (f"kind: leaf-spine, radix: 6, {ONE % 9}", f"kind: leaf-spine, radix: 8, {ONE % 12}"),
    (f"kind: leaf-spine, radix: 8, {ONE % 7}, leaf: {{downlinks: 3, uplinks: 4}}",
     f"kind: leaf-spine, radix: 8, {ONE % 12}"),
    (f"kind: leaf-spine, radix: 8, {ONE % 12}",
     f"kind: leaf-spine, radix: 8, {ONE % 12}, leaf: {{oversubscription: 3}}, spine: {{count: 2}}"),
    (f"kind: rail-optimized, radix: 4, {TWO % 4}, spine: {{radix: 8}}",
     f"kind: rail-optimized, radix: 8, {TWO % 8}"),
    (f"kind: rail-optimized, radix: 4, {TWO % 2}", f"kind: rail-optimized, radix: 4, {TWO % 4}"),
    (f"kind: rail-only, radix: 4, {TWO % 3}", f"kind: rail-only, radix: 4, tiers: 2, {TWO % 4}"),
    (f"kind: rail-optimized, radix: 4, {TWO % 4}", f"kind: rail-only, radix: 4, tiers: 2, {TWO % 4}"),
    (f"kind: clos, radix: 4, {ONE % 8}", f"kind: clos, radix: 4, {ONE % 8}, core: {{count: 4}}"),
    (f"kind: leaf-spine, radix: 4, {ONE % 4}", f"kind: clos, radix: 4, {ONE % 8}"),
    (f"kind: clos, radix: 4, {ONE % 4}, pod: {{leaves: 1}}",
     f"kind: clos, radix: 4, {ONE % 6}, pod: {{leaves: 1}}"),
    (f"kind: dual-tor, radix: 4, {ONE % 2}", f"kind: dual-tor, radix: 4, {ONE % 4}"),
    (f"kind: multi-plane, planes: 2, radix: 4, {ONE % 4}", f"kind: leaf-spine, radix: 4, {ONE % 4}"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), TINY)
def test_no_map_of_tiny_fabrics_keeps_more(before, after):
    old, new = yaml_fabric(f"{{name: a, {before}}}"), yaml_fabric(f"{{name: b, {after}}}")
    growth = regrow(old, new)
    best = most_kept_of_all(old, new)
    assert len(growth.kept[0]) == best
    assert most_kept(old, new) >= best


@pytest.mark.parametrize(("before", "after"), TINY)
def test_plan_and_bound_bracket_the_best_on_the_way_back(before, after):
    old, new = yaml_fabric(f"{{name: b, {after}}}"), yaml_fabric(f"{{name: a, {before}}}")
    assert len(regrow(old, new).kept[0]) <= most_kept_of_all(old, new) <= most_kept(old, new)


# ---- what every plan must hold -----------------------------------------------------------------------------


def wiring(fabric: Fabric) -> Counter[tuple[frozenset[str], str]]:
    """Return the cables by the names of their two ends, kind and speed."""
    links = fabric.links
    return Counter(
        (
            frozenset((fabric.node_name(int(links.src[2 * c])), fabric.node_name(int(links.dst[2 * c])))),
            f"{LINK_KINDS[links.kind[2 * c]]} {format_rate(float(links.capacity[2 * c]))}",
        )
        for c in range(links.n_cables)
    )


def carry_out(growth: Growth) -> tuple[set[str], Counter[tuple[frozenset[str], str]]]:  # noqa: C901 -- the fitter's day
    """Do what the steps say to the plugs of the old fabric; return the boxes and the wiring that come out."""
    old, (ports, _) = growth.before, growth.ports
    rows = list(growth.steps())
    new_name = {
        row["from_device"]: row["to_device"] for row in rows if row["action"] in {"rename", "convert"}
    }
    devices = {old.node_name(node) for node in range(old.n_nodes)}
    gone = {row["from_device"] for row in rows if row["action"] == "retire"}
    devices = {new_name.get(name, name) for name in devices - gone}

    def called(name: str) -> str:
        """Return what a box of the old fabric is called from now on."""
        return f"retired {name}" if name in gone else new_name.get(name, name)

    devices |= {row["to_device"] for row in rows if row["action"] == "install"}
    nic = {int(c): port for c, port in zip(old.endpoints.cable, growth_nics(old), strict=True)}
    plugs: dict[tuple[str, object], int] = {}
    kinds: dict[int, str] = {}
    for cable in range(old.links.n_cables):
        kinds[cable] = (
            f"{LINK_KINDS[old.links.kind[2 * cable]]} {format_rate(float(old.links.capacity[2 * cable]))}"
        )
        for end, node in enumerate((old.links.src[2 * cable], old.links.dst[2 * cable])):
            name = old.node_name(int(node))
            port = nic[cable] if end == 0 and cable in nic else int(ports[cable, end])
            key = (called(name), port)
            assert key not in plugs
            plugs[key] = cable
    # All ends that go are pulled, then all are plugged.
    pulled: list[tuple[int, dict[str, Any]]] = []
    for row in rows:
        if row["action"] in {"move", "remove"}:
            name = row["from_device"]
            key = (called(name), row["from_port"])
            cable = plugs.pop(key)
            assert kinds[cable] == row["what"]
            if row["action"] == "remove":
                other = row["other_device"]
                assert plugs.pop((called(other), row["other_port"])) == cable
            else:
                pulled.append((cable, row))
    for cable, row in pulled:
        key = (row["to_device"], row["to_port"])
        assert key not in plugs
        plugs[key] = cable
    for row in (row for row in rows if row["action"] == "connect"):
        cable = len(kinds)
        kinds[cable] = row["what"]
        for side in ("to", "other"):
            key = (row[f"{side}_device"], row[f"{side}_port"])
            assert key not in plugs
            plugs[key] = cable
    for cable, row in pulled:  # the other end is where the step says
        assert plugs[row["other_device"], row["other_port"]] == cable
    ends: dict[int, list[str]] = {}
    for (name, _), cable in plugs.items():
        ends.setdefault(cable, []).append(name)
    assert {len(two) for two in ends.values()} == {2}
    return devices, Counter((frozenset(two), kinds[cable]) for cable, two in ends.items())


def growth_nics(fabric: Fabric) -> list[str]:
    """Return the names of all NIC ports, in the order of the endpoints."""
    found = []
    for number, nic in enumerate(fabric.endpoint_nic.tolist()):
        first, end = fabric.nic_ptr[nic], fabric.nic_ptr[nic + 1]
        rail = int(fabric.endpoints.rail[number]) + 1
        found.append(f"nic{rail}/{number - int(first) + 1}" if end - first > 1 else f"nic{rail}")
    return found


def hold(before: Fabric, after: Fabric) -> None:
    growth = regrow(before, after)
    place = growth.place[growth.place >= 0]
    assert len(np.unique(place)) == len(place)
    hosts = growth.place[before.host_ids]
    assert (after.nodes.tier[hosts[hosts >= 0]] == 0).all()
    assert int((hosts >= 0).sum()) == min(before.n_hosts, after.n_hosts)
    for side, fabric, rest in ((0, before, growth.removed), (1, after, growth.new)):
        parts = np.concatenate([growth.kept[side], growth.moved[side], rest])
        assert np.sort(parts).tolist() == list(range(fabric.links.n_cables))
    assert len(growth.kept[0]) <= growth.bound
    switches = np.flatnonzero((growth.place >= 0) & (before.nodes.tier > 0))
    used = np.bincount(after.links.src, minlength=after.n_nodes)
    assert (used[growth.place[switches]] <= before.nodes.radix[switches]).all()
    numbers = growth.ports[1]
    ends = np.stack([after.links.src[0::2], after.links.dst[0::2]], 1)
    at_switch = after.nodes.tier[ends] > 0
    most = np.where(np.isin(ends, growth.place[switches]), 10**6, after.nodes.radix[ends])
    assert (numbers[at_switch] >= 1).all()
    assert (numbers[at_switch] <= most[at_switch]).all()
    devices, cables = carry_out(growth)
    assert devices == {after.node_name(node) for node in range(after.n_nodes)}
    assert cables == wiring(after)


@settings(max_examples=60, deadline=None)
@given(before=fabrics(), after=fabrics())
def test_the_steps_make_the_new_fabric(before, after):
    hold(before, after)


@settings(max_examples=30, deadline=None)
@given(fabric=fabrics())
def test_nothing_moves_between_equal_fabrics(fabric):
    growth = regrow(fabric, fabric)
    assert growth.n_touched == 0
    assert len(growth.new) == len(growth.new_nodes) == 0
    assert growth.place.tolist() == list(range(fabric.n_nodes))
    assert list(growth.steps()) == []
    assert growth.bound == fabric.links.n_cables


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_fabric_grows_out_of_two_leaves_and_back(name):
    small = yaml_fabric("{name: small, kind: leaf-spine, radix: 16, hosts: {count: 12, gpus: 1}}")
    hold(small, NAMED[name]())
    hold(NAMED[name](), small)


def test_a_damaged_fabric_is_refused():
    fabric = NAMED["lab_two_leaves"]()
    damaged = apply_failures(fabric, ["switch:leaf-0-0"])
    with pytest.raises(FabricError, match="damaged: a growth plan joins two whole fabrics") as caught:
        regrow(damaged, fabric)
    assert caught.value.hint == "leave --fail out; what a failure costs: netplan failures"


# ---- sizes and numbers worked out by hand ------------------------------------------------------------------


def test_twice_the_superpod_moves_half_of_the_cables_above_the_leaves():
    # 32 leaves of 32 uplinks on 16 spines, two cables each; later 32 spines, one each: one of two moves.
    growth = regrow(
        api.load_fabric("superpod-b200-4su"),
        api.load_fabric("superpod-b200-4su", overrides={"hosts.count": "256"}),
    )
    assert growth.cables()["leaf_spine"] == {
        "before": 1024,
        "after": 2048,
        "kept": 512,
        "moved_at_one_end": 512,
        "moved_at_both_ends": 0,
        "removed": 0,
        "new": 1024,
    }
    assert growth.cables()["host_leaf"]["kept"] == 1024
    assert growth.to_dict()["touched_at_least"] == growth.n_touched == 512


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        # A spine has 64 uplinks on 4 cores, 16 each; later two on each of 32: 8 of 64 stay, 160 spines.
        ("growth-102k", 160 * 8),
        # On two sites four on each of 16.
        ("growth-102k-2site", 160 * 16),
    ],
)
def test_ten_times_the_gpus(later, kept):
    growth = regrow(api.load_fabric("growth-10k"), api.load_fabric(later))
    cables = growth.cables()
    assert (growth.before.n_gpus, growth.after.n_gpus) == (10_240, 102_400)
    assert cables["host_leaf"]["kept"] == cables["leaf_spine"]["kept"] == 10_240
    assert cables["spine_core"]["kept"] == kept
    assert cables["spine_core"]["moved_at_one_end"] == 10_240 - kept
    assert growth.n_touched == growth.before.links.n_cables - growth.bound  # none touches fewer
    assert {tier: row["kept"] for tier, row in growth.switches().items()}.items() >= {
        ("leaf", 160),
        ("spine", 160),
        ("core", 128),
    }


def test_a_spine_that_is_no_longer_one_becomes_a_leaf():
    before = yaml_fabric("{name: a, kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}}")
    after = yaml_fabric("{name: b, kind: rail-only, radix: 8, hosts: {count: 8, gpus: 6}}")
    growth = regrow(before, after)
    assert growth.switches()["leaf"]["converted"] == growth.switches()["spine"]["before"] == 2
    rows = [row for row in growth.steps() if row["action"] == "convert"]
    assert [row["what"] for row in rows] == ["spine to leaf"] * 2


def test_a_box_with_too_few_or_too_slow_ports_does_not_stay():
    small = yaml_fabric("{name: a, kind: leaf-spine, radix: 4, hosts: {count: 4, gpus: 1}}")
    wide = yaml_fabric("{name: b, kind: leaf-spine, radix: 16, hosts: {count: 16, gpus: 1}}")
    fast = yaml_fabric("{name: c, kind: leaf-spine, radix: 4, hosts: {count: 4, gpus: 1, nic_speed: 800G}}")
    assert regrow(small, wide).switches()["leaf"]["retired"] == 2
    assert regrow(small, fast).switches()["leaf"]["retired"] == 2
    assert regrow(fast, small).switches()["leaf"]["kept"] == 2


# ---- parts to buy ------------------------------------------------------------------------------------------


def test_what_is_bought_is_the_difference_of_two_bills():
    # 256 H100 GPUs more than 256: as many NIC optics as the order of 256 GPUs had, 256 (vitextech.com).
    order = {"hosts.count": "32"}
    bills = [
        api.bill_of_materials(api.load_fabric("superpod-b200-4su", overrides=sets), protocol="infiniband")
        for sets in (order, {"hosts.count": "64"})
    ]
    rows = {(each.part, each.length): each for each in purchases(*bills)}
    assert rows["qm9700", None].buy == 24 - 12
    for each in rows.values():
        assert each.before + each.buy - each.left == each.after
        assert each.cost is None or each.cost == (each.unit_cost or 0) * each.buy
    back = {(each.part, each.length): each for each in purchases(*bills[::-1])}
    assert back["qm9700", None].left == 12
    assert back["qm9700", None].buy == 0


# ---- how to begin ------------------------------------------------------------------------------------------

LATER = {
    "name": "later",
    "kind": "clos",
    "radix": 8,
    "hosts": {"count": 64, "gpus": 1},
    "pod": {"leaves": 4},
}


def test_beginnings_trade_switches_now_for_cables_later():
    choices = growth_choices(LATER, 32)
    touched = [each.growth.n_touched for each in choices]
    switches = [each.n_switches for each in choices]
    assert touched == sorted(touched)
    assert switches == sorted(switches, reverse=True)
    assert len(set(touched)) == len(choices) >= 2
    assert touched[0] == 0  # all cores of the later size are there
    # 64 NICs: 16 leaves, 16 spines, 4 groups of 2 cores (4 pods x 4 uplinks = 16 ports: 2 x 8). 32 NICs: 8, 8
    # and all 8 cores; or the full two-tier tree of 8 + 4, of whose spines each keeps the cables of the 4
    # leaves of one pod. One core a group (8, 8 and 4), of whose 32 cables 16 stay, is no better.
    assert switches == [8 + 8 + 8, 8 + 4]
    assert touched == [0, 4 * 4]
    for each in choices:
        assert each.growth.before.n_gpus == 32
        assert each.to_dict()["touched_at_least"] <= each.growth.n_touched


def test_beginnings_of_two_tiers():
    later = {"name": "x", "kind": "leaf-spine", "radix": 16, "hosts": {"count": 128, "gpus": 1}}
    choices = growth_choices(later, 32)
    # 16 leaves, 8 spines later. 4 leaves now: 8 spines move nothing; 4, two cables each, half; 2 three of 4.
    assert [(each.n_switches, each.growth.n_touched) for each in choices] == [(12, 0), (8, 16), (6, 24)]


def test_a_pod_of_later_may_begin_on_two_tiers():
    later = {**LATER, "hosts": {"count": 64, "gpus": 1}}
    choices = growth_choices(later, 16)
    assert choices[0].growth.n_touched == 0
    assert choices[0].growth.before.kind == "leaf-spine"  # its spines have ports for the cores already
    assert choices[0].n_switches == 8


@pytest.mark.parametrize(
    ("later", "hosts", "message", "hint"),
    [
        (LATER, 64, "later has 64 hosts: a beginning of 64 would not grow", "take fewer than 64 hosts"),
        (
            {"name": "k4", "kind": "fat-tree", "k": 4},
            4,
            "k4 is of kind fat-tree: beginnings are known for the tree families",
            "give both sizes: netplan grow BEFORE AFTER",
        ),
    ],
)
def test_what_has_no_beginning(later, hosts, message, hint):
    with pytest.raises(FabricError) as caught:
        growth_choices(later, hosts)
    assert (caught.value.message, caught.value.hint) == (message, hint)


# ---- the parts of matching ---------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_pairs_and_joins_are_those_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = (rng.integers(0, 4, (2, int(rng.integers(0, 12)))) for _ in range(2))
    left, right = pair_equal(list(ours), list(theirs))
    assert ours[:, left].T.tolist() == theirs[:, right].T.tolist()
    assert len(set(left.tolist())) == len(left) == len(set(right.tolist()))
    counts = [Counter(map(tuple, table.T.tolist())) for table in (ours, theirs)]
    assert len(left) == (counts[0] & counts[1]).total()
    a, b = join(ours[0], theirs[0])
    expected = [(i, j) for i, x in enumerate(ours[0]) for j, y in enumerate(theirs[0]) if x == y]
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == expected
    number, count = group_rows(*ours)
    rows = list(map(tuple, ours.T.tolist()))
    assert count == len(set(rows))
    assert all((number[i] == number[j]) == (x == y) for i, x in enumerate(rows) for j, y in enumerate(rows))


def test_the_same_plan_in_every_call():
    before, after = api.load_fabric("superpod-b200-4su"), api.load_fabric("superpod-b200-16su")
    assert match_nodes(before, after).tolist() == match_nodes(before, after).tolist()
