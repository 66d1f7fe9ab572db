"""The page of published fabrics is true: its rows are built and have the numbers that their sources print."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from netplan import api
from netplan.errors import SpecError
from netplan.fabric import TIER_NAMES, Fabric
from netplan.fabric.checks import check_fabric
from netplan.planning import bom
from netplan.spec.validate import split_overrides
from netplan.topology.slim_fly import slim_fly_counts
from tests.deepseek import deepseek_parts, deepseek_prices
from tests.fabrics import yaml_fabric

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "published.md"


def tables() -> dict[str, list[list[str]]]:
    """Return the cells of each table's rows, by its header."""
    found: dict[str, list[list[str]]] = {}
    header = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = ""
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = " | ".join(cells)
            found.setdefault(header, [])
        elif set(cells[0]) != {"-"}:
            found[header].append(cells)
    return found


COUNTS = tables()["fabric | netplan | GPUs | switches | cables | mark"]
COST = tables()["network | published, k$ an endpoint | netplan | difference"]


def number(text: str) -> int:
    """Read ``1,024`` or ``2 x 512``."""
    value = 1
    for factor in text.split("x"):
        value *= int(factor.replace(",", ""))
    return value


def fabric_of(cell: str) -> Fabric:
    """Build what stands between backticks: a spec, or a shipped name with ``--set``."""
    text = cell.strip("`")
    if text.startswith("{"):
        return yaml_fabric("{name: x, " + text[1:])
    name, *words = text.split()
    sets = [word for word in words if word != "--set"]
    return api.load_fabric(name, overrides=split_overrides(sets))


def switches_and_cables(fabric: Fabric) -> tuple[list[int], list[int]]:
    tiers = [fabric.count_tier(tier) for tier in ("leaf", "spine", "core")]
    return tiers, [fabric.count_cables(kind) for kind in ("host_leaf", "leaf_spine", "spine_core")]


def test_the_page_has_all_rows():
    assert len(COUNTS) == 38
    assert Counter(row[-1] for row in COUNTS) == {"S": 33, "M": 5}


@pytest.mark.parametrize("row", COUNTS, ids=lambda row: f"{row[0]} {row[2]}")
def test_a_row_is_what_netplan_builds(row):
    name, how, gpus, switches, cables, _ = row
    fabric = fabric_of(how)
    assert fabric.n_gpus == number(gpus), name
    tiers, levels = switches_and_cables(fabric)
    assert tiers == [number(part) for part in switches.split("/")], name
    assert levels == [number(part) for part in cables.split("/")], name
    assert [fault for fault in check_fabric(fabric) if fault.severity == "error"] == []
    # Not only totals: spines are alike, and so are cores, and no switch has more cables than ports.
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    for tier in ("spine", "core"):
        here = used[fabric.nodes.tier == TIER_NAMES.index(tier)]
        assert len(np.unique(here)) <= 1, (name, tier)
    assert (used[fabric.nodes.tier > 0] <= fabric.nodes.radix[fabric.nodes.tier > 0]).all()


@pytest.mark.parametrize(
    ("how", "switches", "between", "scale_up_links"),
    [
        # Switches and cables between switches, printed as one number; SimAI's links hold NVLink's too.
        ("deepseek-ft2-plane", 96, 2048, None),
        ("deepseek-mpft-16k", 768, 16384, None),
        ("deepseek-ft3-65k", 5120, 131072, None),
        ("deepseek-df-261k", 16352, 384272, None),
        ("{kind: clos, radix: 40, hosts: {count: 1600, gpus: 1}}", 200, 3200, None),
        ("alibaba-hpn-pod", 360, 14400, 60480),
        ("{kind: rail-optimized, radix: 128, hosts: {count: 512}, spine: {count: 64}}", 128, 4096, 12288),
        ("{kind: leaf-spine, radix: 64, hosts: {count: 1024, gpus: 1}}", 48, 1024, None),
        ("{kind: clos, radix: 64, hosts: {count: 32768, gpus: 1}}", 2560, 65536, None),
        # What the price table's rows of 4,096 and 16,384 GPUs (192, 768: planes) would take as one network.
        ("{kind: clos, radix: 64, hosts: {count: 4096, gpus: 1}}", 320, 8192, None),
        ("{kind: clos, radix: 64, hosts: {count: 16384, gpus: 1}}", 1280, 32768, None),
    ],
)
def test_sums_that_are_printed(how, switches, between, scale_up_links):
    fabric = fabric_of(how)
    assert fabric.n_switches == switches
    assert fabric.links.n_cables - fabric.n_endpoints == between
    if scale_up_links is not None:
        assert fabric.links.n_cables + fabric.n_gpus == scale_up_links


def test_simai_counts_with_scale_up_links():
    rows = [row for row in COUNTS if row[0].startswith("SimAI")]
    links = [fabric_of(row[1]).links.n_cables + number(row[2]) for row in rows]
    assert links == [60480, 12288, 768, 1088]


def test_hpn_as_its_paper_describes_it():
    fabric = api.load_fabric("alibaba-hpn-pod")
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    tor, agg = fabric.nodes.tier == 1, fabric.nodes.tier == 2
    assert set(used[tor].tolist()) == {128 + 60}
    assert set(used[agg].tolist()) == {120}
    assert set((fabric.nodes.radix[tor] - used[tor]).tolist()) == {8}  # for backup hosts
    planes = np.bincount(fabric.nodes.plane[agg])
    assert planes.tolist() == [60, 60]
    rates = [fabric.links.capacity[fabric.links.kind == kind].sum() for kind in (0, 1)]
    assert rates[0] / rates[1] == pytest.approx(1.067, abs=5e-4)
    of_a_host = fabric.endpoints.leaf[fabric.endpoints.host == fabric.host_ids[0]]
    assert len(set(of_a_host.tolist())) == 16


def test_oci_carries_52_petabits():
    fabric = api.load_fabric("oci-131k")
    assert fabric.n_gpus == 131_072
    assert 8 * fabric.endpoint_rate.sum() == pytest.approx(52.4e15, rel=1e-3)
    assert api.load_fabric("rail-131k").endpoint_rate.sum() == fabric.endpoint_rate.sum()
    for kind in (1, 2):  # non-blocking: as much between tiers as below
        assert fabric.links.capacity[fabric.links.kind == kind].sum() / 2 == fabric.endpoint_rate.sum()


def test_gb200_racks_to_9216_gpus():
    # 8 racks of 72 a scalable unit, up to 128 racks; 400G NICs. Leaf and spine counts were not found.
    unit = yaml_fabric(
        "{name: su, kind: rail-optimized, radix: 64, hosts: {count: 8, gpus: 72}, spine: {radix: 80}}"
    )
    assert unit.n_gpus == 576
    whole = yaml_fabric("{name: all, kind: rail-only, tiers: 2, radix: 64, hosts: {count: 128, gpus: 72}}")
    assert whole.n_gpus == whole.n_endpoints == 9216


def test_slim_fly_of_the_cost_table_is_a_formula():
    counts = slim_fly_counts(28, 21)
    assert (counts.endpoints, counts.switches, counts.cables) == (32_928, 1_568, 32_928)
    with pytest.raises(SpecError, match="28"):
        yaml_fabric("{name: x, kind: slim-fly, q: 28, hosts: {gpus: 1}}")


def test_fire_flyers_1320_switches_are_a_formula():
    # 5N/r holds for a full tree; 10,560 ports fill 26.4 pods.
    full = yaml_fabric("{name: x, kind: clos, radix: 40, hosts: {count: 16000, gpus: 1}}")
    assert full.n_switches == 5 * 16_000 / 40
    tree = yaml_fabric("{name: x, kind: clos, radix: 40, hosts: {count: 10560, gpus: 1}}")
    assert 1320 < tree.n_switches == 1468


# ---- cost --------------------------------------------------------------------------------------------------

#: DeepSeek-V3, ISCA 2025, Table 3: switches, cables between switches, total [M$], k$ an endpoint.
TABLE_3 = {
    "FT2": ("deepseek-ft2-plane", 96, 2_048, 9, 4.39),
    "MPFT": ("deepseek-mpft-16k", 768, 16_384, 72, 4.39),
    "FT3": ("deepseek-ft3-65k", 5_120, 131_072, 491, 7.5),
    "Slim Fly (formula)": (None, 1_568, 32_928, 146, 4.4),
    "Dragonfly": ("deepseek-df-261k", 16_352, 384_272, 1_522, 5.8),
}


@pytest.fixture(scope="module")
def costs(tmp_path_factory) -> dict[str, float]:
    """Return what each network costs an endpoint [USD], by the bill of materials where it can be built."""
    switch, link = deepseek_prices()
    catalogue = deepseek_parts(tmp_path_factory.mktemp("deepseek"), cages=64)
    found = {}
    for name, (shipped, n_switches, n_links, *_) in TABLE_3.items():
        if shipped is None:
            found[name] = (n_switches * switch + n_links * link) / 32_928
            continue
        fabric = api.load_fabric(shipped)
        kinds = ("leaf_spine", "spine_core", "local", "global")
        there = {kind: "switch-link" for kind in kinds if fabric.count_cables(kind)}
        wishes = bom.Wishes(optics={"host_leaf": "endpoint-link", **there}, protocol="infiniband")
        made = bom.bill(fabric, catalogue, wishes)
        assert made.totals.unknown["cost"] == ()
        assert made.totals.switches == n_switches
        found[name] = made.totals.cost.mid / fabric.n_endpoints
    return found


def test_cost_an_endpoint_as_in_deepseeks_table(costs):
    for name, cost in costs.items():
        assert cost / 1e3 == pytest.approx(TABLE_3[name][-1], rel=0.03), name
    published = sorted(TABLE_3, key=lambda name: TABLE_3[name][-1])
    assert sorted(costs, key=lambda name: round(costs[name], -1)) == published
    for name in TABLE_3:  # ratios to FT2
        ratio = costs[name] / costs["FT2"]
        assert ratio == pytest.approx(TABLE_3[name][-1] / TABLE_3["FT2"][-1], rel=0.15)


def test_the_page_prints_these_costs(costs):
    assert [row[0] for row in COST] == list(TABLE_3)
    for name, published, ours, difference in COST:
        assert float(published) == TABLE_3[name][-1]
        assert float(ours) == pytest.approx(costs[name] / 1e3, abs=0.005)
        off = abs(costs[name] / 1e3 / TABLE_3[name][-1] - 1) * 100
        assert float(difference.removesuffix(" %")) == pytest.approx(off, abs=0.051)


def test_a_slim_fly_that_exists_costs_what_the_formula_says(costs):
    # q = 27: 1,458 routers of k' = 41, p = 21; q = 28 would have k' = 42.
    fabric = yaml_fabric("{name: x, kind: slim-fly, q: 27, hosts: {gpus: 1}, router: {endpoints: 21}}")
    switch, link = deepseek_prices()
    cost = (
        fabric.n_switches * switch + (fabric.links.n_cables - fabric.n_endpoints) * link
    ) / fabric.n_endpoints
    assert cost == pytest.approx(costs["Slim Fly (formula)"], rel=0.01)
