"""The shipped files: each loads, is what its comment says, agrees with what was published, and runs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from netplan.catalog.paths import Kind, shipped_folder
from netplan.catalog.shipped import list_shipped, read_document
from netplan.errors import RoutingError, TrafficError
from netplan.fabric import LINK_KINDS, TIER_NAMES, Fabric
from netplan.fabric.checks import check_fabric
from netplan.routing import RoutingOptions
from netplan.simulate import Result, Scenario, simulate
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.traffic import TRAFFIC_SPEC, TrafficSpec
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from netplan.traffic import build_demand

KINDS: tuple[Kind, ...] = ("topologies", "traffic")

#: In which form the comment of a fabric gives its sizes.
SIZES = re.compile(r"# sizes: (\d+) hosts, (\d+) GPUs; switches: ([^;]+); cables: ([^;]+)")
#: In which form the comment of a workload names a fabric that it runs on.
RUNS_ON = re.compile(r"# runs on: (\S+)")


def names(kind: Kind) -> list[str]:
    return sorted(path.stem for path in shipped_folder(kind).glob("*.yaml"))


FABRICS, TRAFFIC = names("topologies"), names("traffic")


def path_of(kind: Kind, name: str) -> Path:
    return shipped_folder(kind) / f"{name}.yaml"


def text_of(kind: Kind, name: str) -> str:
    return path_of(kind, name).read_bytes().decode("ascii")


def comment(kind: Kind, name: str) -> list[str]:
    """Return the lines of the comment that a file begins with."""
    lines = text_of(kind, name).splitlines()
    return lines[: next(place for place, line in enumerate(lines) if not line.startswith("#"))]


@cache
def fabric(name: str, **overrides: str) -> Fabric:
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return build_fabric(validate(FABRIC_SPEC, read_document(name, "topologies"), overrides=dotted))


def traffic(name: str) -> TrafficSpec:
    return validate(TRAFFIC_SPEC, read_document(name, "traffic"))


def run(on: str, workload: str, routing: str) -> Result:
    built = fabric(on)
    demand = build_demand(built, traffic(workload), seed=1)
    return simulate(Scenario(built, demand, routing, RoutingOptions(seed=1)))


def sizes(built: Fabric) -> dict[str, int]:
    """Return hosts, GPUs, and what there is of each tier of switches and each kind of cable."""
    switches = {tier: built.count_tier(tier) for tier in TIER_NAMES[1:]}
    cables = {kind: built.count_cables(kind) for kind in LINK_KINDS}
    there = {name: count for name, count in {**switches, **cables}.items() if count}
    return {"hosts": built.n_hosts, "GPUs": built.n_gpus, **there}


# ---- every file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in names(kind)], ids=lambda value: value
)
def test_a_file_is_tidy_and_says_what_it_is(kind, name):
    text = text_of(kind, name)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    lines = text.splitlines()
    assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
    assert [line for line in lines if len(line) > 120 and not SIZES.fullmatch(line)] == []
    assert text.startswith("# For: ")
    item = next(item for item in list_shipped(kind) if item.name == name)
    assert re.fullmatch(r"[^\n]{20,}\.", item.summary), "the description is a sentence"
    assert item.source
    assert item.kind
    document = read_document(name, kind).data
    assert isinstance(document, dict)
    assert document["name"] == name
    assert list(document)[:4] == ["name", "kind", "description", "source"]


@pytest.mark.parametrize("name", FABRICS)
def test_a_fabric_is_sound_and_as_large_as_its_comment_says(name):
    built = fabric(name)
    assert built.name == name
    assert [fault for fault in check_fabric(built) if fault.severity == "error"] == []
    found = [match for line in comment("topologies", name) if (match := SIZES.fullmatch(line))]
    assert len(found) == 1
    hosts, gpus, *lists = found[0].groups()
    said = {"hosts": int(hosts), "GPUs": int(gpus)}
    for part in ", ".join(lists).split(", "):
        word, count = part.split(" ")
        said[word] = int(count)
    assert said == sizes(built)


#: Fabrics with rails or planes that meet only inside hosts.
APART = {
    "rail-131k",
    "rail-only-4k",
    "rail-only-nvl72-4k",
    "deepseek-mpft-16k",
    "superpod-b300-spectrum-8su",
    "alibaba-hpn-pod",
}


def test_only_fabrics_of_several_networks_have_warnings():
    warned = {name: [fault.code for fault in check_fabric(fabric(name))] for name in FABRICS}
    assert {name: codes for name, codes in warned.items() if codes} == {name: ["NP107"] for name in APART}


@pytest.mark.parametrize("name", [name for name in FABRICS if name not in {"lab-2-leaf", "custom-example"}])
def test_a_fabric_says_what_is_known_and_what_is_not(name):
    text = "\n".join(comment("topologies", name))
    assert "# Published: " in text or "nothing here is published" in text
    assert "# Assumed: " in text


def tiers(built: Fabric) -> tuple[int, ...]:
    return tuple(built.count_tier(tier) for tier in ("leaf", "spine", "core"))


def levels(built: Fabric) -> tuple[int, ...]:
    return tuple(built.count_cables(kind) for kind in ("host_leaf", "leaf_spine", "spine_core"))


def test_direct_networks_are_as_large_as_published():
    # DeepSeek-V3 (ISCA 2025), Table 3, DF; Kim et al. (ISCA 2008), 1K network; Blach et al. (NSDI 2024).
    said = {
        "deepseek-df-261k": (261_632, 16_352, 384_272),
        "dragonfly-1056": (1056, 264, 264 * 7 // 2 + 33 * 32 // 2),
        "slim-fly-q5": (200, 50, 175),
        "torus-tpu-v4-4k": (4096, 4096, 12_288),
        "hyperx-672": (672, 96, 864),
    }
    for name, counts in said.items():
        built = fabric(name)
        inside = built.count_cables("local") + built.count_cables("global")
        assert (built.n_endpoints, built.n_switches, inside) == counts, name


def test_leonardo_joins_each_second_layer_switch_with_every_other_cell():
    built = fabric("leonardo-booster")
    pod, tier = built.nodes.pod, built.nodes.tier
    link = np.flatnonzero(built.links.kind == LINK_KINDS.index("global"))
    pairs = np.stack([built.links.src[link], pod[built.links.dst[link]]])
    assert len(np.unique(pairs, axis=1).T) == len(link) == 23 * 18 * 22
    assert (tier[built.links.src[link]] == 2).all()


# ---- published counts ------------------------------------------------------------------------------------

B200 = "NVIDIA DGX SuperPOD reference architecture for B200, compute fabric, cable counts"
XDR = "NVIDIA DGX SuperPOD reference architecture for B300 XDR (18 SU: its 9,216 GPUs are an erratum)"
SPECTRUM = "NVIDIA DGX SuperPOD reference architecture for B300 Spectrum-X; its cables are two of ours each"
HPN = "Alibaba HPN, SIGCOMM 2024: 15 segments, 16 ToRs each, 60 aggregation switches a plane"
DEEPSEEK = "DeepSeek-V3, ISCA 2025, Table 3 (switches in all, cables between switches)"
AL_FARES = "Al-Fares et al., SIGCOMM 2008: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 cables"

#: Shipped fabric, what is set, GPUs, (leaf, spine, core), (host_leaf, leaf_spine, spine_core), source.
PUBLISHED = [
    ("superpod-b200-4su", {"hosts__count": "64"}, 512, (16, 8, 0), (512, 512, 0), B200),
    ("superpod-b200-4su", {}, 1024, (32, 16, 0), (1024, 1024, 0), B200),
    ("superpod-b200-4su", {"hosts__count": "256"}, 2048, (64, 32, 0), (2048, 2048, 0), B200),
    ("superpod-b200-16su", {}, 4096, (128, 128, 64), (4096, 4096, 4096), B200),
    ("superpod-b200-16su", {"hosts__count": "1024"}, 8192, (256, 256, 128), (8192, 8192, 8192), B200),
    ("superpod-b200-64su", {}, 16384, (512, 512, 256), (16384, 16384, 16384), B200),
    ("superpod-b300-xdr-4su", {"hosts__count": "72"}, 576, (8, 4, 0), (576, 576, 0), XDR),
    ("superpod-b300-xdr-4su", {"hosts__count": "144"}, 1152, (16, 8, 0), (1152, 1152, 0), XDR),
    ("superpod-b300-xdr-4su", {}, 2304, (32, 18, 0), (2304, 2304, 0), XDR),
    ("superpod-b300-xdr-4su", {"hosts__count": "576"}, 4608, (64, 36, 0), (4608, 4608, 0), XDR),
    ("superpod-b300-xdr-4su", {"hosts__count": "1296"}, 10368, (144, 72, 0), (10368, 10368, 0), XDR),
    ("deepseek-ft2-plane", {}, 2048, (64, 32, 0), (2048, 2048, 0), DEEPSEEK),
    ("deepseek-ft3-65k", {}, 65536, (2048, 2048, 1024), (65536, 65536, 65536), DEEPSEEK),
    ("fat-tree-k8", {"k": "4"}, 16, (8, 8, 4), (16, 16, 16), AL_FARES),
    ("fat-tree-k8", {}, 128, (32, 32, 16), (128, 128, 128), AL_FARES),
    ("fat-tree-k8", {"k": "16"}, 1024, (128, 128, 64), (1024, 1024, 1024), AL_FARES),
    ("hpcc-320", {}, 320, (20, 20, 16), (320, 80, 80), "simulation/mix/fat.txt of the HPCC authors"),
]


TWINS = "superpod-b300-spectrum-8su"

#: The same, with cables per published cable.
PUBLISHED_PLANES = [
    (TWINS, {"hosts__count": "64"}, 512, (16, 8, 0), (512, 512, 0), 2, SPECTRUM),
    (TWINS, {"hosts__count": "128"}, 1024, (32, 16, 0), (1024, 1024, 0), 2, SPECTRUM),
    (TWINS, {"hosts__count": "256"}, 2048, (64, 32, 0), (2048, 2048, 0), 2, SPECTRUM),
    (TWINS, {}, 4096, (128, 64, 0), (4096, 4096, 0), 2, SPECTRUM),
    (TWINS, {"hosts__count": "1024"}, 8192, (256, 128, 0), (8192, 8192, 0), 2, SPECTRUM),
    ("deepseek-mpft-16k", {}, 16384, (512, 256, 0), (16384, 16384, 0), 1, DEEPSEEK),
    ("alibaba-hpn-pod", {}, 15360, (240, 120, 0), (30720, 14400, 0), 1, HPN),
]


@pytest.mark.parametrize(
    ("name", "changed", "gpus", "switches", "cables", "factor", "source"), PUBLISHED_PLANES
)
def test_published_counts_of_planes(name, changed, gpus, switches, cables, factor, source):
    built = fabric(name, **changed)
    assert built.n_gpus == gpus, source
    assert tiers(built) == switches, source
    assert levels(built) == tuple(factor * count for count in cables), source


@pytest.mark.parametrize(("name", "changed", "gpus", "switches", "cables", "source"), PUBLISHED)
def test_published_counts(name, changed, gpus, switches, cables, source):
    built = fabric(name, **changed)
    assert built.n_gpus == built.n_endpoints == gpus, source
    assert tiers(built) == switches, source
    assert levels(built) == cables, source


def test_totals_that_deepseek_prints():
    ft2, ft3 = fabric("deepseek-ft2-plane"), fabric("deepseek-ft3-65k")
    assert (ft2.n_switches, ft2.links.n_cables - ft2.n_endpoints) == (96, 2048)
    assert (8 * ft2.n_endpoints, 8 * ft2.n_switches) == (16384, 768)  # MPFT
    assert (ft3.n_switches, ft3.links.n_cables - ft3.n_endpoints) == (5120, 131072)


def test_fire_flyer_zone():
    # Fire-Flyer AI-HPC, SC 2024: a zone is 20 spines and 40 leaves of 40 ports: 800 ports for hosts, 800 up.
    zone = fabric("fire-flyer-2-zone")
    assert tiers(zone) == (40, 20, 0)
    assert levels(zone) == (600, 800, 0)


def test_llama3_pods_and_the_ratio_above_them():
    # Llama 3 paper, 2024: racks of 16 GPUs, 192 racks a pod, 8 pods, full bisection below, 1:7 above.
    built = fabric("llama3-24k")
    pod = built.nodes.pod[built.nodes.tier == TIER_NAMES.index("leaf")]
    assert np.bincount(pod).tolist() == [192] * 8
    assert np.unique(built.endpoints.leaf, return_counts=True)[1].tolist() == [16] * 1536
    below, middle, above = levels(built)
    assert below == middle
    assert middle / above == pytest.approx(6.98, abs=0.005)


def test_megascale_leaves():
    # MegaScale, NSDI 2024: 64 hosts on a set of 8 leaves, 200G NICs two to a 400G port, 32 ports up.
    built = fabric("megascale-12k")
    assert built.n_gpus > 10_000
    assert built.count_cables("host_leaf") / built.count_tier("leaf") == 64
    assert built.count_cables("leaf_spine") / built.count_tier("leaf") == 32
    assert built.endpoint_rate.sum() == built.links.capacity[built.links.kind == 1].sum() / 2


def test_hpcc_is_wired_as_its_authors_wired_it():
    # Node numbers as in fat.txt: hosts 0-319, ToRs 320-339, Aggs 340-359, cores 360-375.
    built = fabric("hpcc-320")
    hosts = [(host, 320 + host // 16, 100e9) for host in range(320)]
    tors = [(320 + tor, 340 + tor // 4 * 4 + agg, 400e9) for tor in range(20) for agg in range(4)]
    aggs = [(340 + agg, 360 + agg % 4 * 4 + core, 400e9) for agg in range(20) for core in range(4)]
    up = built.links
    ours = zip(up.src[0::2].tolist(), up.dst[0::2].tolist(), (8 * up.capacity[0::2]).tolist(), strict=True)
    assert sorted(ours) == sorted([*hosts, *tors, *aggs])
    np.testing.assert_allclose(up.delay, 1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["metro-30km-2site", "metro-ring-4site"])
def test_long_links_of_a_site_are_an_eighth_of_its_nics(name):
    built = fabric(name)
    long = built.links.kind == LINK_KINDS.index("inter_site")
    site = built.nodes.site[built.links.src[long]]
    leaving = np.bincount(site, built.links.capacity[long])
    nics = np.bincount(built.nodes.site[built.endpoints.host], built.endpoint_rate)
    np.testing.assert_allclose(nics / leaving, 8)


# ---- every workload --------------------------------------------------------------------------------------


def runs_on(workload: str) -> str:
    """Return the fabric that the comment of a workload names."""
    found = [match[1] for line in comment("traffic", workload) if (match := RUNS_ON.fullmatch(line))]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("routing", ["ecmp", "ib-static"])
@pytest.mark.parametrize("workload", TRAFFIC)
def test_a_workload_runs_on_the_fabric_it_names(workload, routing):
    on = runs_on(workload)
    if traffic(workload).ranks is None:
        assert on == "lab-2-leaf"
    result = run(on, workload, routing)
    for figure in ("mean_flow", "collective", "worst_flow"):
        assert 0 < getattr(result.efficiency, figure) <= 1 + 1e-9


#: Refused by design: there is no path between the core domains, the rails, or the planes of two NICs; or
#: the ranks are on one host of 72 GPUs.
REFUSED = {
    (name, "permutation-64mib")
    for name in ("rail-131k", "rail-only-4k", "rail-only-nvl72-4k", "deepseek-mpft-16k")
} | {
    ("rail-only-4k", "flows-example"),
    ("rail-only-nvl72-4k", "flows-example"),
    ("rail-only-nvl72-4k", "point-to-point"),
    ("deepseek-mpft-16k", "flows-example"),
}


@pytest.mark.parametrize("workload", [name for name in TRAFFIC if traffic(name).ranks is None])
@pytest.mark.parametrize("on", FABRICS)
def test_a_workload_for_all_gpus_runs_on_every_fabric(on, workload):
    if (on, workload) in REFUSED:
        said = r"no path inside the network joins|both on host"
        with pytest.raises((RoutingError, TrafficError), match=said):
            run(on, workload, "ecmp")
        return
    # Direct networks have their own schemes; walking 16,352 routers takes minutes.
    result = run(on, workload, "ecmp" if fabric(on).direct is None else "minimal")
    for figure in ("mean_flow", "collective", "worst_flow"):
        assert 0 < getattr(result.efficiency, figure) <= 1 + 1e-9


def test_sizes_that_follow_from_models():
    # Llama 3: 8 KV heads of 128. 70B: h = 8192, ffn = 28672. 8B: h = 4096, ffn = 14336, 128256 words.
    def layer(h: int, ffn: int) -> int:
        return 2 * h * h + 2 * h * 1024 + 3 * h * ffn + 2 * h

    small = 32 * layer(4096, 14336) + 2 * 128256 * 4096 + 4096
    size = {name: getattr(traffic(name), "size", None) for name in TRAFFIC}
    assert size["all-gather-fsdp"] == 2 * layer(8192, 28672)
    assert size["reduce-scatter-zero1"] == 4 * small
    assert size["all-to-all-moe"] == 4096 * 7168 * 8
    assert size["point-to-point"] == 2 * (8192 // 8) * 16384


# ---- what physics says -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FABRICS
        if not name.startswith(("metro", "llama3", "alibaba-hpn", "growth-102k-2site"))
        and fabric(name).direct is None  # half bisection at most, and more than shortest paths needed
        and (name, "permutation-64mib") not in REFUSED
    ],
)
def test_spraying_carries_a_permutation_on_a_non_blocking_fabric(name):
    assert run(name, "permutation-64mib", "spray").efficiency.collective == pytest.approx(1, abs=1e-6)


def test_spraying_gives_an_oversubscribed_core_its_share():
    # 3,072 NICs a pod, of which 7/8 send to other pods in the mean, over 440 cables: 0.1637 each.
    efficiency = run("llama3-24k", "permutation-64mib", "spray").efficiency
    assert efficiency.worst_flow == pytest.approx(440 / (3072 * 7 / 8), rel=0.03)
    assert efficiency.mean_flow == pytest.approx(1 / 8 + 7 / 8 * 0.1637, rel=0.03)


def test_hashing_a_permutation_loses_half_of_a_large_fabric():
    # One flow an uplink, hashed at each stage: below the 1 - 1/e = 0.632 of one stage.
    for name in ("superpod-b200-4su", "superpod-b200-16su", "deepseek-ft2-plane", "baidu-10k"):
        assert 0.38 < run(name, "permutation-64mib", "ecmp").efficiency.mean_flow < 0.58


def test_an_incast_shares_the_receivers_cable():
    assert run("lab-2-leaf", "incast-8", "ecmp").efficiency.worst_flow == pytest.approx(1 / 8)
