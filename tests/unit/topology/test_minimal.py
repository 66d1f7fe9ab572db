"""No regular design of a family has fewer switches than netplan's.

The search here knows nothing of `netplan.topology.sizes`: it tries every split of a leaf's ports, every size
of pod, every number of spines and cores, keeps what has ports enough and does not block (or blocks no more
than asked for), and counts. Regular means: equal bundles, and pods alike but for the last. A leaf keeps the
uplinks that its ratio calls for even where it is the only one; three tiers are at least two pods.
"""

from __future__ import annotations

import re
from math import ceil, inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan import api
from netplan.errors import FabricError
from netplan.fabric.measures import measure
from tests.fabrics import yaml_fabric


def splits(radix: int, ratio: float = 1.0, breakout: int = 1, fast: float = 1.0) -> list[tuple[int, int]]:
    """Return all (downlinks, uplinks) of a switch; an uplink is as fast as ``fast`` downlinks."""
    return [
        (down, up)
        for down in range(1, radix * breakout + 1)
        for up in range(1, radix + 1)
        if ceil(down / breakout) + up <= radix and up * fast * ratio >= down - 1e-9
    ]


def fewest_on_two_tiers(
    hosts: int, nics: int, rails: int, radix: int, ratio: float = 1.0, breakout: int = 1
) -> float:
    """Return the fewest switches of two tiers; a host has ``nics`` NICs on each of ``rails`` leaves."""
    best = inf
    for down, up in splits(radix, ratio, breakout, breakout):
        if down < nics:
            continue
        leaves = ceil(hosts / (down // nics)) * rails
        if leaves == 1:
            best = min(best, 1)
        for spines in range(1, up + 1):
            if up % spines == 0 and leaves * (up // spines) <= radix:
                best = min(best, leaves + spines)
    return best


def fewest_on_three_tiers(  # noqa: C901 -- one loop for each number that is free
    hosts: int,
    nics: int,
    rails: int,
    radix: int,
    *,
    by: str = "block",
    ratios: tuple[float, float] = (1.0, 1.0),
    domains: int = 1,
) -> float:
    """Return the fewest switches of three tiers of at least two pods."""
    groups, block = (rails, 1) if by == "rail" else (1, rails)
    best = inf
    for down, up in splits(radix, ratios[0]):
        if down < nics:
            continue
        leaves = ceil(hosts / (down // nics)) * rails
        for per_pod in range(block, leaves // groups + 1, block):
            pods = groups * ceil(leaves / groups / per_pod)
            if pods < 2 or pods % domains:
                continue
            for spines in range(1, up + 1):
                below = per_pod * up // spines
                if up % spines or below >= radix:
                    continue
                for above in range(1, radix - below + 1):
                    if above * ratios[1] < below - 1e-9:
                        continue
                    for cores in range(1, above + 1):
                        if above % cores == 0 and pods // domains * (above // cores) <= radix:
                            best = min(best, leaves + pods * spines + domains * spines * cores)
    return best


def ours(text: str) -> int | None:
    """Return netplan's number of switches; None where it refuses."""
    try:
        return yaml_fabric(text).n_switches
    except FabricError as error:
        if "fit one pod" in str(error):  # not a three-tier fabric: nothing to compare
            return None
        return -1


def hold(text: str, least: float) -> None:
    """Compare with the search; a refusal must be one there as well."""
    count = ours(text)
    if count is not None:
        assert count == (-1 if least == inf else least), text


@pytest.mark.parametrize("radix", [2, 3, 4, 5, 6, 7, 8, 10, 11])
def test_leaf_spine(radix):
    for nics in (1, 2):
        for hosts in range(1, radix * radix // 2 // nics + 2):
            text = f"{{name: x, kind: leaf-spine, radix: {radix}, hosts: {{count: {hosts}, gpus: {nics}}}}}"
            hold(text, fewest_on_two_tiers(hosts, nics, 1, radix))


@pytest.mark.parametrize("ratio", [1.5, 2, 3])
@pytest.mark.parametrize("radix", [6, 7, 9])
def test_leaf_spine_that_blocks(radix, ratio):
    for hosts in range(1, radix * radix):
        text = (
            f"{{name: x, kind: leaf-spine, radix: {radix}, hosts: {{count: {hosts}, gpus: 1}},"
            f" leaf: {{oversubscription: {ratio}}}}}"
        )
        hold(text, fewest_on_two_tiers(hosts, 1, 1, radix, ratio))


@pytest.mark.parametrize("radix", [6, 7, 9])
def test_leaf_spine_with_split_ports(radix):
    for hosts in range(1, radix * radix):
        text = (
            f"{{name: x, kind: leaf-spine, radix: {radix}, hosts: {{count: {hosts}, gpus: 1}},"
            f" leaf: {{breakout: 2}}}}"
        )
        hold(text, fewest_on_two_tiers(hosts, 1, 1, radix, 1, 2))


@pytest.mark.parametrize("radix", [4, 6, 7, 9, 10])
@pytest.mark.parametrize("rails", [2, 3])
def test_rails_on_two_tiers(radix, rails):
    for hosts in range(1, radix * radix // 2 // rails + 2):
        text = f"{{name: x, kind: rail-optimized, radix: {radix}, hosts: {{count: {hosts}, gpus: {rails}}}}}"
        hold(text, fewest_on_two_tiers(hosts, 1, rails, radix))


@pytest.mark.parametrize("radix", [2, 3, 4, 5, 6, 7])
def test_clos(radix):
    for hosts in range(1, radix**3 // 4 + 2):
        text = f"{{name: x, kind: clos, radix: {radix}, hosts: {{count: {hosts}, gpus: 1}}}}"
        hold(text, fewest_on_three_tiers(hosts, 1, 1, radix))


@pytest.mark.parametrize("ratios", [(2, 1), (1, 2), (1.5, 2.5)])
def test_clos_that_blocks(ratios):
    for hosts in range(1, 60):
        text = (
            f"{{name: x, kind: clos, radix: 6, hosts: {{count: {hosts}, gpus: 1}},"
            f" leaf: {{oversubscription: {ratios[0]}}}, spine: {{oversubscription: {ratios[1]}}}}}"
        )
        hold(text, fewest_on_three_tiers(hosts, 1, 1, 6, ratios=ratios))


@pytest.mark.parametrize("by", ["block", "rail"])
@pytest.mark.parametrize("radix", [4, 6, 7])
def test_rails_on_three_tiers(radix, by):
    for hosts in range(1, radix**3 // 8 + 2):
        text = (
            f"{{name: x, kind: rail-optimized, tiers: 3, radix: {radix}, hosts: {{count: {hosts}, gpus: 2}},"
            f" pod: {{by: {by}}}}}"
        )
        hold(text, fewest_on_three_tiers(hosts, 1, 2, radix, by=by))


def test_rails_in_core_domains():
    for hosts in range(1, 50):
        text = (
            f"{{name: x, kind: rail-optimized, tiers: 3, radix: 6, hosts: {{count: {hosts}, gpus: 2}},"
            " pod: {by: rail}, core: {domains: 2}}"
        )
        hold(text, fewest_on_three_tiers(hosts, 1, 2, 6, by="rail", domains=2))


@pytest.mark.parametrize("radix", [5, 6, 10])
def test_planes_and_rails_of_their_own(radix):
    for hosts in range(1, radix * radix // 2 + 1):
        count = f"hosts: {{count: {hosts}, gpus: 2}}"
        one = fewest_on_two_tiers(hosts, 1, 1, radix)
        hold(f"{{name: x, kind: rail-only, tiers: 2, radix: {radix}, {count}}}", 2 * one)
        planes = f"{{name: x, kind: multi-plane, planes: 2, assignment: per-nic, radix: {radix}, {count}}}"
        hold(planes, 2 * one)
        on_a_leaf = fewest_on_two_tiers(hosts, 2, 1, radix)
        hold(f"{{name: x, kind: multi-plane, planes: 2, radix: {radix}, {count}}}", 2 * on_a_leaf)
        by_rail = 2 * fewest_on_two_tiers(hosts, 1, 2, radix)
        hold(f"{{name: x, kind: multi-plane, planes: 2, rails: true, radix: {radix}, {count}}}", by_rail)
        hold(f"{{name: x, kind: dual-tor, radix: {radix}, {count}}}", by_rail)
        kept = f"{{name: x, kind: dual-tor, radix: {radix}, {count}, spine: {{radix: {radix - 1}}}"
        hold(f"{kept}, leaf: {{backup: 1}}}}", 2 * fewest_on_two_tiers(hosts, 1, 2, radix - 1))


@settings(max_examples=40, deadline=None)
@given(radix=st.integers(8, 24), part=st.floats(0.02, 1), nics=st.sampled_from([1, 2, 4]))
def test_larger_leaf_spines(radix, part, nics):
    hosts = max(int(part * radix * radix / 2 / nics), 1)
    text = f"{{name: x, kind: leaf-spine, radix: {radix}, hosts: {{count: {hosts}, gpus: {nics}}}}}"
    hold(text, fewest_on_two_tiers(hosts, nics, 1, radix))


@settings(max_examples=12, deadline=None)
@given(radix=st.integers(8, 12), part=st.floats(0.1, 1), by=st.sampled_from(["block", "rail"]))
def test_larger_rails_on_three_tiers(radix, part, by):
    hosts = max(int(part * radix**3 / 8), 1)
    text = (
        f"{{name: x, kind: rail-optimized, tiers: 3, radix: {radix}, hosts: {{count: {hosts}, gpus: 2}},"
        f" pod: {{by: {by}}}}}"
    )
    hold(text, fewest_on_three_tiers(hosts, 1, 2, radix, by=by))


def test_a_narrower_leaf_where_it_saves_switches():
    # 20 NICs, 10-port switches. Leaves of 5 + 5: four, and two spines do not divide 5 uplinks: 5, so 9.
    # Leaves of 4 + 4: five, and two spines of 4 x 5 / 2 = 10 ports: 7 in all.
    fabric = yaml_fabric("{name: x, kind: leaf-spine, radix: 10, hosts: {count: 20, gpus: 1}}")
    assert (fabric.count_tier("leaf"), fabric.count_tier("spine")) == (5, 2)
    assert (measure(fabric).bisection_fraction or 0) >= 1
    # A count that is given is kept, and the others follow from the ratio.
    text = "{name: x, kind: leaf-spine, radix: 10, hosts: {count: 20, gpus: 1}, leaf: {downlinks: 5}}"
    kept = yaml_fabric(text)
    assert (kept.count_tier("leaf"), kept.count_tier("spine")) == (4, 5)


@pytest.mark.parametrize(("gpus", "switches"), [(1024, 48), (2048, 96)])
def test_two_tiers_of_64_ports_up_to_2048_gpus(gpus, switches):
    # FT2 (DeepSeek-V3, ISCA 2025, Table 3): 2,048 endpoints on 96 switches. A planner that sizes every fabric
    # as a three-tier fat-tree orders 320 (= 4,096 x 5 / 64) here.
    rails = yaml_fabric(f"{{name: x, kind: rail-optimized, radix: 64, hosts: {{count: {gpus // 8}}}}}")
    leaves = yaml_fabric(f"{{name: x, kind: leaf-spine, radix: 64, hosts: {{count: {gpus // 8}}}}}")
    assert rails.n_switches == leaves.n_switches == switches


def test_fat_trees_are_full():
    # Every port of every switch is in use, so no tree of 5k^2/4 switches of k ports holds more.
    for k in (2, 4, 6, 8):
        fabric = yaml_fabric(f"{{name: x, kind: fat-tree, k: {k}}}")
        assert fabric.n_switches == 5 * k * k // 4
        assert 2 * fabric.links.n_cables == fabric.n_switches * k + fabric.n_endpoints
        assert fabric.n_switches == fewest_on_three_tiers(k**3 // 4, 1, 1, k) if k < 8 else True


def test_the_docs_say_what_equal_bundles_cost():
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `([\w-]+)` \| ([\d,]+) \| ([\d,]+) \|", page)
    assert len(rows) == 5
    for name, ours, ports_alone in rows:
        fabric = api.load_fabric(name)
        c = fabric.structure
        assert c is not None
        radix = int(fabric.nodes.radix[fabric.nodes.tier == 2][0])
        # Leaves as they are; above them as many uplinks as NICs fill whole switches, half of each for spines
        # under cores, all of it at the top.
        nics = c.n_leaves * c.uplinks
        above = ceil(2 * nics / radix) + ceil(nics / radix) if c.cores_per_group else ceil(nics / radix)
        assert int(ours.replace(",", "")) == fabric.n_switches
        assert int(ports_alone.replace(",", "")) == c.n_leaves + above
