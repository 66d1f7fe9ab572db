"""Published fabrics, switch by switch: tiers, cables, and how many ports each switch has in use.

Each row names its source. Marks as in the sources' list: [S] the source prints the numbers, [D] they are
derived from what it prints, [M] counted in the source's files.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from netplan.fabric import TIER_NAMES, Fabric
from netplan.fabric.checks import check_fabric
from netplan.fabric.measures import measure
from tests.fabrics import yaml_fabric


@dataclass(frozen=True)
class Published:
    """A fabric and what its source says of it."""

    name: str
    source: str
    text: str
    switches: tuple[int, int, int]
    """Leaves, spines, cores."""
    cables: tuple[int, int, int]
    """Host to leaf, leaf to spine, spine to core."""
    ports: dict[str, dict[int, int]]
    """Tier to {ports in use: switches that use as many}."""


def ports_in_use(fabric: Fabric) -> dict[str, dict[int, int]]:
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    tier = fabric.nodes.tier
    return {TIER_NAMES[t]: dict(Counter(used[tier == t].tolist())) for t in sorted(set(tier.tolist()) - {0})}


B200 = (
    "NVIDIA DGX SuperPOD B200 reference architecture, SU of 32 nodes, 64 x 400G switches [S]: "
    "docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200"
)
B300 = (
    "NVIDIA DGX SuperPOD B300 Spectrum-X, one of two equal planes, SU of 64 nodes, 128 x 400G switches [S]: "
    "docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300"
)
XDR = (
    "NVIDIA DGX SuperPOD B300 XDR, SU of 72 nodes, 144 x 800G switches [S]: "
    "docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr"
)


def b200(units: int, leaves: int, spines: int, cores: int) -> Published:
    gpus = units * 256
    tiers = "tiers: 3, pod: {by: rail}" if cores else "tiers: 2"
    full = {"leaf": {64: leaves}, "spine": {64: spines}} | ({"core": {64: cores}} if cores else {})
    text = f"{{name: x, kind: rail-optimized, radix: 64, hosts: {{count: {units * 32}}}, {tiers}}}"
    cables = (gpus, gpus, gpus if cores else 0)
    return Published(f"b200-{units}su", B200, text, (leaves, spines, cores), cables, full)


def b300(units: int, leaves: int, spines: int) -> Published:
    gpus = units * 512
    text = f"{{name: x, kind: rail-optimized, radix: 128, hosts: {{count: {units * 64}}}}}"
    # The source counts both planes: twice as many switches; its cables are twin-port, one for both planes.
    ports = {"leaf": {128: leaves // 2}, "spine": {128: spines // 2}}
    return Published(f"b300-{units}su", B300, text, (leaves // 2, spines // 2, 0), (gpus, gpus, 0), ports)


def xdr(units: int, leaves: int, spines: int) -> Published:
    gpus = units * 576
    text = f"{{name: x, kind: rail-optimized, radix: 144, hosts: {{count: {units * 72}, nic_speed: 800G}}}}"
    # Where the spines are more than ceil(), for equal bundles, some of their ports stay free.
    ports = {"leaf": {144: leaves}, "spine": {gpus // spines: spines}}
    return Published(f"xdr-{units}su", XDR, text, (leaves, spines, 0), (gpus, gpus, 0), ports)


def al_fares(k: int) -> Published:
    half, third = k // 2, k**3 // 4
    return Published(
        f"al-fares-k{k}",
        "Al-Fares, Loukissas, Vahdat, SIGCOMM 2008: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 links [S]; "
        "fnss 0.9.1 builds as many for k = 4, 8, 16 [M]",
        f"{{name: x, kind: fat-tree, k: {k}}}",
        (k * half, k * half, half * half),
        (third, third, third),
        {"leaf": {k: k * half}, "spine": {k: k * half}, "core": {k: half * half}},
    )


PUBLISHED = [
    b200(2, 16, 8, 0),
    b200(4, 32, 16, 0),
    b200(8, 64, 32, 0),
    b200(16, 128, 128, 64),  # also H100's 512 nodes: 128 + 128 + 64 = 320 switches (RA-11333)
    b200(32, 256, 256, 128),
    b200(64, 512, 512, 256),
    b300(1, 16, 8),
    b300(2, 32, 16),
    b300(4, 64, 32),
    b300(8, 128, 64),
    b300(16, 256, 128),
    xdr(1, 8, 4),
    xdr(2, 16, 8),
    xdr(4, 32, 18),
    xdr(8, 64, 36),
    # Erratum: the source prints 9,216 GPUs for 18 SU; 18 x 72 x 8 = 10,368, as its own cable columns say.
    xdr(18, 144, 72),
    al_fares(4),
    al_fares(8),
    al_fares(16),
    Published(
        "deepseek-ft2",
        "DeepSeek-V3, ISCA 2025, Table 3, FT2: 2,048 endpoints, 96 switches, 2,048 links between them [S]",
        "{name: x, kind: leaf-spine, radix: 64, hosts: {count: 2048, gpus: 1}}",
        (64, 32, 0),
        (2048, 2048, 0),
        {"leaf": {64: 64}, "spine": {64: 32}},
    ),
    Published(
        "deepseek-ft3",
        "DeepSeek-V3, ISCA 2025, Table 3, FT3: 65,536 endpoints, 5,120 switches, 131,072 links between "
        "them [S]",
        "{name: x, kind: clos, radix: 64, hosts: {count: 65536, gpus: 1}}",
        (2048, 2048, 1024),
        (65536, 65536, 65536),
        {"leaf": {64: 2048}, "spine": {64: 2048}, "core": {64: 1024}},
    ),
    Published(
        "deepseek-one-plane-of-mpft",
        "DeepSeek-V3, ISCA 2025, Table 3, MPFT: 8 planes of an FT2 are 768 switches, 16,384 links [S]: "
        "one plane",
        "{name: x, kind: leaf-spine, radix: 64, hosts: {count: 2048, gpus: 8, nics: 1}}",
        (768 // 8 * 2 // 3, 768 // 8 // 3, 0),
        (2048, 16384 // 8, 0),
        {"leaf": {64: 64}, "spine": {64: 32}},
    ),
    Published(
        "megascale-like",
        "MegaScale, NSDI 2024 [S]: 64 x 400G switches 32 down 32 up, 400G leaf ports split into two of "
        "200G, 8 NICs "
        "of 200G on 8 leaves, 64 hosts per set of leaves, more than 10,000 GPUs; the totals are [D]",
        "{name: x, kind: rail-optimized, tiers: 3, radix: 64, hosts: {count: 1536, nic_speed: 200G},"
        " leaf: {downlinks: 64, breakout: 2, uplinks: 32}}",
        # 24 sets of 8 leaves; 6 pods of 32 leaves and 32 spines; a spine's 32 uplinks on 4 cores, 8 each.
        (192, 192, 128),
        (12288, 6144, 6144),
        {"leaf": {64 + 32: 192}, "spine": {64: 192}, "core": {48: 128}},
    ),
    Published(
        "llama3",
        "Meta, The Llama 3 Herd of Models, 3.3.1 [S]: 192 racks of 16 GPUs a pod, full bisection inside, "
        "8 pods, 24,576 "
        "GPUs, 1:7 above; switches per tier are not printed: [D] for 256-port spines",
        "{name: x, kind: clos, radix: 32, hosts: {count: 3072}, leaf: {downlinks: 16, uplinks: 16},"
        " pod: {leaves: 192}, spine: {radix: 256, downlinks: 192, oversubscription: 7}, core: {radix: 256}}",
        (1536, 128, 16),
        (24576, 24576, 8 * 16 * 28),
        {"leaf": {32: 1536}, "spine": {220: 128}, "core": {224: 16}},
    ),
    Published(
        "cloudswit-256",
        "cloudswit.ch planner, 64 nodes of 4 GPUs, rail-optimized, 64 x 800G switches [S]: 4 leaves (32 "
        "ports down as "
        "64 x 400G, 32 up), 2 spines",
        "{name: x, kind: rail-optimized, radix: 64, hosts: {count: 64, gpus: 4}, leaf: {breakout: 2}}",
        (4, 2, 0),
        (256, 128, 0),
        {"leaf": {64 + 32: 4}, "spine": {64: 2}},
    ),
    Published(
        "hpcc-320",
        "HPCC, SIGCOMM 2019, mix/fat.txt [M]: 320 hosts of 100G, 20 ToR (16 hosts, 4 up), 20 Agg (4 + "
        "4), 16 core (5), "
        "400G, 480 links. Counts and ports are the file's; that its pods are grouped alike is not "
        "checked here",
        "{name: x, kind: clos, radix: 20, hosts: {count: 320, gpus: 1, nic_speed: 100G},"
        " leaf: {downlinks: 16, uplinks: 4, uplink_speed: 400G}, pod: {leaves: 4},"
        " spine: {radix: 8, downlinks: 4, uplinks: 4}, core: {radix: 5}}",
        (20, 20, 16),
        (320, 80, 80),
        {"leaf": {20: 20}, "spine": {8: 20}, "core": {5: 16}},
    ),
    Published(
        "vitextech-256",
        "vitextech.com, case study of a 256-GPU H100 fabric [S]: 8 leaves, 4 spines, 256 NIC optics",
        "{name: x, kind: rail-optimized, radix: 64, hosts: {count: 32}}",
        (8, 4, 0),
        (256, 256, 0),
        {"leaf": {64: 8}, "spine": {64: 4}},
    ),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.name)
def test_switches_cables_and_ports_are_as_published(row: Published) -> None:
    fabric = yaml_fabric(row.text)
    assert tuple(map(fabric.count_tier, ("leaf", "spine", "core"))) == row.switches, row.source
    assert tuple(map(fabric.count_cables, ("host_leaf", "leaf_spine", "spine_core"))) == row.cables, (
        row.source
    )
    assert fabric.links.n_cables == sum(row.cables)
    assert ports_in_use(fabric) == row.ports, row.source
    assert check_fabric(fabric) == []


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.name)
def test_published_fabrics_do_not_block_but_llama3(row: Published) -> None:
    measured = measure(yaml_fabric(row.text))
    # Llama 3: 8 pods, 1:7 above; 28 of 192 links a spine. HPCC: 16 x 100G under 4 x 400G.
    assert measured.bisection_fraction == pytest.approx(28 / 192 if row.name == "llama3" else 1)
    assert measured.max_hops == (5 if row.switches[2] else 3)


def test_the_largest_fabric_in_two_core_domains() -> None:
    # OCI Zettascale's 131,072 GPUs [S], as two sets of cores of 64-port switches [D].
    fabric = yaml_fabric(
        "{name: x, kind: rail-optimized, tiers: 3, radix: 64, hosts: {count: 16384}, pod: {by: rail},"
        " core: {domains: 2}}"
    )
    assert ports_in_use(fabric) == {"leaf": {64: 4096}, "spine": {64: 4096}, "core": {64: 2048}}
    # Every core sees four rails only.
    assert fabric.structure is not None
    spine = fabric.links.src[0::2][fabric.links.kind[0::2] == 2]
    core = fabric.links.dst[0::2][fabric.links.kind[0::2] == 2]
    pairs = np.unique(np.stack([core, fabric.nodes.rail[spine]]), axis=1)
    assert set(Counter(pairs[0].tolist()).values()) == {4}


def test_racks_of_pods_are_balanced_where_a_rail_is_cut_into_pods() -> None:
    # 64 SU: each rail has 64 leaves in two pods of 32.
    fabric = yaml_fabric(PUBLISHED[5].text)
    leaves = fabric.nodes.tier == 1
    assert set(Counter(fabric.nodes.pod[leaves].tolist()).values()) == {32}
    for pod in range(16):
        assert set(fabric.nodes.rail[leaves & (fabric.nodes.pod == pod)].tolist()) == {pod // 2}
