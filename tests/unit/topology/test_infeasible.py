"""Requests that cannot be built: what is said, that the way out named is one, that absurd ones go fast."""

# ruff: noqa: E501 -- the spec of a row stays on one line, as a user might write it

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import FabricError, NetplanError
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric
from netplan.topology.sizes import MOST_CABLES, MOST_ENDPOINTS
from tests.fabrics import yaml_fabric
from tests.strategies import SPECS


def refused(text: str) -> FabricError:
    with pytest.raises(FabricError) as caught:
        yaml_fabric(text)
    return caught.value


LS = "name: x, kind: leaf-spine"
CLOS = "name: x, kind: clos"
RAIL = "name: x, kind: rail-optimized"
ONE = "hosts: {count: %d, gpus: 1}"

# Text, message, hint, and what the hint names as feasible.
INFEASIBLE: list[tuple[str, str, str, list[str]]] = [
    (
        f"{{{LS}, radix: 8, hosts: {{count: 4, gpus: 6}}, leaf: {{downlinks: 4}}}}",
        "x: a host has 6 NICs, a leaf 4 downlinks: no host fits",
        "spread the NICs over leaves (kind: rail-optimized), or take leaves with more downlinks",
        [f"{{{RAIL}, radix: 8, hosts: {{count: 4, gpus: 6}}, leaf: {{downlinks: 4}}}}"],
    ),
    (
        f"{{{LS}, radix: 64, hosts: {{count: 4, gpus: 8, nics: 3}}}}",
        "x: hosts.nics = 3 and hosts.gpus = 8: one must divide the other",
        "give as many NICs as GPUs, or a divisor or multiple",
        [f"{{{LS}, radix: 64, hosts: {{count: 4, gpus: 8, nics: {n}}}}}" for n in (8, 4, 16)],
    ),
    (
        f"{{{LS}, radix: 64, {ONE % 16384}}}",
        "x: 512 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 2,048 hosts on two tiers; 8 separate fabrics (planes or jobs) of at most 2,048 hosts; "
        "three tiers of these switches (kind: clos); spine.radix of at least 512; leaf.downlinks of at least 256, "
        "on leaves of a radix that holds them"),
        [
            f"{{{LS}, radix: 64, {ONE % 2048}}}",
            f"{{{CLOS}, radix: 64, {ONE % 16384}}}",
            f"{{{LS}, radix: 64, {ONE % 16384}, spine: {{radix: 512}}}}",
            f"{{{LS}, radix: 64, {ONE % 16384}, leaf: {{radix: 512, downlinks: 256}}}}",
        ],
    ),
    (
        # 2,049 leaves are more than three tiers hold (64 pods of 32): they are not named.
        f"{{{LS}, radix: 64, {ONE % 65537}}}",
        "x: 2,049 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 2,048 hosts on two tiers; 33 separate fabrics (planes or jobs) of at most 2,048 hosts; "
        "spine.radix of at least 2,049; leaf.downlinks of at least 1,025, on leaves of a radix that holds them"),
        [
            f"{{{LS}, radix: 64, {ONE % 65537}, spine: {{radix: 2049}}}}",
            f"{{{LS}, radix: 64, {ONE % 65537}, leaf: {{radix: 2050, downlinks: 1025}}}}",
        ],
    ),
    (
        f"{{{RAIL}, radix: 64, hosts: {{count: 512}}}}",
        "x: 128 leaves, but a spine of 64 ports reaches at most 64 leaves on two tiers",
        ("feasible: at most 256 hosts on two tiers; 2 separate fabrics (planes or jobs) of at most 256 hosts; "
        "three tiers of these switches (tiers: 3 with pod.by: rail); spine.radix of at least 128; "
        "leaf.downlinks of at least 64, on leaves of a radix that holds them"),
        [
            f"{{{RAIL}, radix: 64, hosts: {{count: 256}}}}",
            f"{{{RAIL}, tiers: 3, pod: {{by: rail}}, radix: 64, hosts: {{count: 512}}}}",
            f"{{{RAIL}, radix: 64, hosts: {{count: 512}}, spine: {{radix: 128}}}}",
            f"{{{RAIL}, radix: 64, hosts: {{count: 512}}, leaf: {{radix: 128, downlinks: 64}}}}",
        ],
    ),
    (
        # More rails than a spine has ports: no number of hosts fits.
        f"{{{RAIL}, radix: 8, hosts: {{count: 4, gpus: 16}}}}",
        "x: 16 leaves, but a spine of 8 ports reaches at most 8 leaves on two tiers",
        "feasible: spine.radix of at least 16",
        [f"{{{RAIL}, radix: 8, hosts: {{count: 4, gpus: 16}}, spine: {{radix: 16}}}}"],
    ),
    (
        f"{{{LS}, radix: 8, {ONE % 4}, spine: {{count: 2}}}}",
        "x: spine.count = 2, but one leaf holds all hosts: spines would join nothing",
        "leave spine.count out, or take smaller leaves (leaf.downlinks)",
        [
            f"{{{LS}, radix: 8, {ONE % 4}}}",
            f"{{{LS}, radix: 8, {ONE % 4}, leaf: {{downlinks: 2}}, spine: {{count: 2}}}}",
        ],
    ),
    (
        f"{{{LS}, radix: 64, {ONE % 512}, spine: {{count: 12}}}}",
        "x: spine.count = 12: 12 spines do not divide a leaf's 32 uplinks into equal bundles",
        "feasible: 8, 16, 32",
        [f"{{{LS}, radix: 64, {ONE % 512}, spine: {{count: {n}}}}}" for n in (8, 16, 32)],
    ),
    (
        f"{{{LS}, radix: 64, {ONE % 512}, spine: {{count: 4}}}}",
        "x: spine.count = 4: 4 spines have 256 ports, the leaves have 512 uplinks",
        "feasible: 8, 16, 32",
        [],
    ),
    (
        f"{{{LS}, radix: 8, {ONE % 8}, leaf: {{downlinks: 6, uplinks: 3}}}}",
        "x: a leaf with 6 downlinks of 400G and 3 uplinks of 400G needs 9 ports; leaf.radix = 8",
        "lower leaf.downlinks or leaf.uplinks, raise leaf.oversubscription, or take a larger radix",
        [f"{{{LS}, radix: 8, {ONE % 8}, leaf: {{radix: 9, downlinks: 6, uplinks: 3}}}}"],
    ),
    (
        f"{{{LS}, radix: 1, {ONE % 8}}}",
        ("x: a leaf of 1 ports has no room for a downlink of 400G beside the uplinks of 400G that "
        "leaf.oversubscription = 1 asks for"),
        "raise leaf.oversubscription, or take a larger radix",
        [f"{{{LS}, radix: 2, hosts: {{count: 2, gpus: 1}}}}"],
    ),
    (
        f"{{{LS}, radix: 64, {ONE % 8}, leaf: {{oversubscription: 1.0e-300}}}}",
        ("x: a leaf of 64 ports has no room for a downlink of 400G beside the uplinks of 400G that "
        "leaf.oversubscription = 1e-300 asks for"),
        "raise leaf.oversubscription, or take a larger radix",
        [f"{{{LS}, radix: 64, {ONE % 8}, leaf: {{oversubscription: 0.5}}}}"],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 64}, spine: {{downlinks: 7, uplinks: 2}}}}",
        "x: a spine with 7 downlinks of 400G and 2 uplinks of 400G needs 9 ports; spine.radix = 8",
        "lower spine.downlinks or spine.uplinks, raise spine.oversubscription, or take a larger radix",
        [f"{{{CLOS}, radix: 8, {ONE % 64}, spine: {{radix: 9, downlinks: 7, uplinks: 2}}}}"],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 64}, pod: {{leaves: 6}}}}",
        "x: pod.leaves = 6, but a spine has 4 downlinks",
        "at most 4 leaves a pod, or spines with more downlinks",
        [
            f"{{{CLOS}, radix: 8, {ONE % 64}, pod: {{leaves: 4}}}}",
            f"{{{CLOS}, radix: 8, {ONE % 64}, pod: {{leaves: 6}}, spine: {{radix: 12}}}}",
        ],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 16}}}",
        "x: 4 leaves fit one pod, so a core tier would join nothing",
        "use two tiers (kind: leaf-spine, or tiers: 2), or smaller pods (pod.leaves)",
        [f"{{{LS}, radix: 8, {ONE % 16}}}", f"{{{CLOS}, radix: 8, {ONE % 16}, pod: {{leaves: 2}}}}"],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 2}}}",
        "x: 1 leaves fit one pod, so a core tier would join nothing",
        "use two tiers (kind: leaf-spine, or tiers: 2)",
        [f"{{{LS}, radix: 8, {ONE % 2}}}"],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 160}, core: {{radix: 4}}}}",
        "x: 10 pods need 10 ports on each core; core.radix = 4",
        "feasible: core.radix of at least 10; at most 4 pods, of 4 leaves each",
        [
            f"{{{CLOS}, radix: 8, {ONE % 160}, core: {{radix: 10}}}}",
            f"{{{CLOS}, radix: 8, {ONE % 64}, core: {{radix: 4}}}}",
        ],
    ),
    (
        # 131,072 GPUs on 64-port switches: 128 pods.
        f"{{{RAIL}, tiers: 3, radix: 64, pod: {{by: rail}}, hosts: {{count: 16384}}}}",
        "x: 128 pods need 128 ports on each core; core.radix = 64",
        ("feasible: core.domains: 2, 4, 8 (domains meet only inside hosts); core.radix of at least 128; "
        "at most 64 pods, of 32 leaves each"),
        [
            f"{{{RAIL}, tiers: 3, radix: 64, pod: {{by: rail}}, hosts: {{count: 16384}}, core: {{{core}}}}}"
            for core in ("domains: 2", "domains: 4", "domains: 8", "radix: 128")
        ]
        + [f"{{{RAIL}, tiers: 3, radix: 64, pod: {{by: rail}}, hosts: {{count: 8192}}}}"],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 64}, core: {{domains: 3}}}}",
        ("x: core.domains = 3 needs pods by rail: with all NICs of a host in one pod, hosts of different domains "
        "would never meet"),
        "leave core.domains out, or use kind: rail-optimized with pod.by: rail",
        [f"{{{CLOS}, radix: 8, {ONE % 64}}}"],
    ),
    (
        f"{{{RAIL}, tiers: 3, radix: 8, pod: {{by: rail, leaves: 1}}, hosts: {{count: 16, gpus: 2}}, core: {{domains: 4}}}}",
        "x: core.domains = 4 cuts through a rail: there are 2 rails",
        "feasible: core.domains: 1, 2 (domains meet only inside hosts); core.radix of at least 4",
        [
            f"{{{RAIL}, tiers: 3, radix: 8, pod: {{by: rail, leaves: 1}}, hosts: {{count: 16, gpus: 2}}, "
            f"core: {{domains: {n}}}}}"
            for n in (1, 2)
        ],
    ),
    (
        f"{{{CLOS}, radix: 8, {ONE % 64}, core: {{count: 7}}}}",
        "x: core.count = 7 does not give 4 core groups equal bundles of 4 uplinks per spine",
        "feasible: 8, 16",
        [f"{{{CLOS}, radix: 8, {ONE % 64}, core: {{count: {n}}}}}" for n in (8, 16)],
    ),
    (
        f"{{{RAIL}, tiers: 3, radix: 8, hosts: {{count: 16, gpus: 8}}}}",
        "x: a block has 8 leaves, one per rail, but a spine has 4 downlinks",
        "feasible: pod.by: rail; spines with at least 8 downlinks",
        [
            f"{{{RAIL}, tiers: 3, radix: 8, hosts: {{count: 16, gpus: 8}}, pod: {{by: rail}}}}",
            f"{{{RAIL}, tiers: 3, radix: 8, hosts: {{count: 16, gpus: 8}}, spine: {{radix: 16, downlinks: 8}}}}",
        ],
    ),
    (
        f"{{{RAIL}, tiers: 3, radix: 16, hosts: {{count: 64, gpus: 4}}, pod: {{leaves: 6}}}}",
        "x: pod.leaves = 6 is not a multiple of the 4 rails, so a block would be cut in two",
        "feasible: 4 or 8",
        [
            f"{{{RAIL}, tiers: 3, radix: 16, hosts: {{count: 64, gpus: 4}}, pod: {{leaves: {n}}}}}"
            for n in (4, 8)
        ],
    ),
    (
        f"{{{RAIL}, tiers: 3, radix: 16, hosts: {{count: 64, gpus: 8}}, pod: {{leaves: 30}}}}",
        "x: pod.leaves = 30 is not a multiple of the 8 rails, so a block would be cut in two",
        "feasible: 8",
        [f"{{{RAIL}, tiers: 3, radix: 16, hosts: {{count: 64, gpus: 8}}, pod: {{leaves: 8}}}}"],
    ),
    (
        "{name: x, kind: fat-tree, k: 8, hosts: {gpus: 3}}",
        "x: hosts with 3 NICs for 3 GPUs do not fill a leaf of 4 downlinks evenly",
        "give hosts.nics a divisor of k/2 = 4 that fits hosts.gpus, or use kind: clos",
        ["{name: x, kind: fat-tree, k: 8, hosts: {gpus: 3, nics: 1}}"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "hint", "feasible"), INFEASIBLE, ids=[row[1][3:60] for row in INFEASIBLE]
)
def test_refusal_names_a_way_that_works(text: str, message: str, hint: str, feasible: list[str]) -> None:
    error = refused(text)
    assert (error.message, error.hint) == (message, hint)
    for other in feasible:
        yaml_fabric(other)


@pytest.mark.parametrize("kind", SPECS)
@given(data=st.data())
@settings(max_examples=40)
def test_a_spec_is_built_or_refused_with_a_hint(kind: str, data: st.DataObject) -> None:
    spec = FABRIC_SPEC.validate_python(data.draw(SPECS[kind]))
    refusal = None
    try:
        build_fabric(spec)
    except FabricError as error:
        refusal = error
    if refusal is not None:
        assert refusal.message.startswith(f"{spec.name}: ")
        assert refusal.hint


@given(
    radix=st.sampled_from([2, 4, 7, 8, 16]),
    hosts=st.integers(1, 2000),
    rails=st.sampled_from([None, 1, 2, 3, 8]),
)
@settings(max_examples=60)
def test_what_is_named_beyond_two_tiers_works(radix: int, hosts: int, rails: int | None) -> None:
    head = f"{LS}, radix: {radix}" if rails is None else f"{RAIL}, radix: {radix}"
    gpus = rails or 1
    text = f"{{{head}, hosts: {{count: %d, gpus: {gpus}}}%s}}"
    try:
        yaml_fabric(text % (hosts, ""))
    except FabricError as error:
        hint = error.hint or ""
    else:
        return
    if most := re.search(r"at most ([0-9,]+) hosts on two", hint):
        yaml_fabric(text % (int(most[1].replace(",", "")), ""))
    if "kind: clos" in hint:
        yaml_fabric(f"{{{CLOS}, radix: {radix}, {ONE % hosts}}}")
    if "tiers: 3 with pod.by: rail" in hint:
        yaml_fabric(text % (hosts, ", tiers: 3, pod: {by: rail}"))
    if ports := re.search(r"spine.radix of at least ([0-9,]+)", hint):
        yaml_fabric(text % (hosts, f", spine: {{radix: {ports[1].replace(',', '')}}}"))
    if down := re.search(r"leaf.downlinks of at least ([0-9,]+)", hint):
        d = int(down[1].replace(",", ""))
        yaml_fabric(text % (hosts, f", leaf: {{radix: {2 * d}, downlinks: {d}}}"))


def test_a_given_oversubscription_is_a_bound_not_a_wish() -> None:
    # 1e12:1 would be no uplink at all; a leaf keeps one.
    fabric = yaml_fabric(f"{{{LS}, radix: 8, {ONE % 14}, leaf: {{oversubscription: 1e12}}}}")
    assert (fabric.count_tier("leaf"), fabric.count_cables("leaf_spine")) == (2, 2)


# ---- metro -------------------------------------------------------------------------------------


def metro(site: str, tier: str, extra: str = "") -> str:
    return (
        "name: m\nkind: metro\nsites:\n"
        f"- {{name: a, position: [0 km, 0 km], fabric: {{name: f, {site}}}}}\n"
        f"- {{name: b, position: [3 km, 4 km], fabric: {{name: f, {site}}}}}\n"
        f"metro: {{{tier}}}\n{extra}"
    )


# Site, metro tier, message, hint, and (site, metro tier) that the hint names.
NO_PORTS: list[tuple[str, str, str, str, list[tuple[str, str]]]] = [
    (
        "kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}",
        "radix: 64",
        "m: site 'a': each of its 2 top-tier switches needs 8 ports for the metro tier and has 0 free of 8",
        "feasible: spine.radix of at least 16 with spine.count: 2",
        [("kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 16, count: 2}", "radix: 64")],
    ),
    (
        "kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 12, count: 2}",
        "radix: 64",
        "m: site 'a': each of its 2 top-tier switches needs 8 ports for the metro tier and has 4 free of 12",
        "feasible: spine.radix of at least 16 with spine.count: 2; metro.oversubscription of at least 2",
        [
            ("kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 16, count: 2}", "radix: 64"),
            (
                "kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 12, count: 2}",
                "radix: 64, oversubscription: 2",
            ),
        ],
    ),
    (
        "kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}",
        "radix: 64, switches: 8",
        "m: site 'a': each of its 1 top-tier switches needs 8 ports for the metro tier and has 4 free of 8",
        "feasible: leaf.radix of at least 12",
        [("kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}, leaf: {radix: 12}", "radix: 64, switches: 8")],
    ),
    (
        "kind: fat-tree, k: 4",
        "radix: 64",
        "m: site 'a': each of its 4 top-tier switches needs 4 ports for the metro tier and has 0 free of 4",
        "feasible: for this site, kind: clos with core.count: 4 and a core.radix of at least 8",
        [("kind: clos, radix: 4, hosts: {count: 16, gpus: 1}, core: {count: 4, radix: 8}", "radix: 64")],
    ),
    (
        "kind: custom, hosts: [{name: h}], switches: [{name: l, tier: 1, radix: 1}], links: [{a: h, b: l, speed: 400G}]",
        "radix: 64",
        "m: site 'a': each of its 1 top-tier switches needs 2 ports for the metro tier and has 0 free of 1",
        "feasible: a radix of at least 3 for each of these switches",
        [
            (
                ("kind: custom, hosts: [{name: h}], switches: [{name: l, tier: 1, radix: 3}], "
                "links: [{a: h, b: l, speed: 400G}]"),
                "radix: 64",
            )
        ],
    ),
    (
        "kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 64, count: 2}",
        "radix: 8",
        "m: site 'a': a metro switch needs 16 ports of 400G; metro.radix = 8",
        "feasible: metro.radix of at least 16",
        [("kind: leaf-spine, radix: 8, hosts: {count: 16, gpus: 1}, spine: {radix: 64, count: 2}", "radix: 16")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("site", "tier", "message", "hint", "feasible"), NO_PORTS)
def test_a_site_without_ports(
    site: str, tier: str, message: str, hint: str, feasible: list[tuple[str, str]]
) -> None:
    error = refused(metro(site, tier))
    assert (error.message, error.hint) == (message, hint)
    for other in feasible:
        yaml_fabric(metro(*other))


def test_sites_that_no_span_joins_are_a_fault() -> None:
    site = "fabric: {name: f, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}, leaf: {radix: 32, downlinks: 8}}"
    text = (
        "name: m\nkind: metro\nsites:\n"
        + "".join(f"- {{name: {name}, {site}}}\n" for name in "abcd")
        + "metro: {radix: 64}\nspans: [{a: a, b: b, length: 1 km}, {a: c, b: d, length: 1 km}]\n"
    )
    assert "NP106 c/host-00000: cannot be reached from a/host-00000" in refused(text).message


# ---- absurd numbers ----------------------------------------------------------------------------

ABSURD = [
    (f"{{{LS}, radix: 64, {ONE % 10**9}}}", "hosts.count = 1000000000: must be at most 10,000,000"),
    (f"{{{LS}, radix: 64, {ONE % 10**7}}}", "x: 10,000,000 hosts with 1 NICs are 10,000,000 endpoints; netplan builds up to"),
    (f"{{{RAIL}, radix: 64, hosts: {{count: 1000000}}}}", "x: 1,000,000 hosts with 8 NICs are 8,000,000 endpoints"),
    (f"{{{LS}, radix: 64, hosts: {{count: 1, gpus: 4000000}}}}", "x: a host has 4,000,000 NICs; netplan takes up to 10,000"),
    (
        f"{{{LS}, radix: 10000000, {ONE % 4000000}, leaf: {{downlinks: 1, uplinks: 9000000}}}}",
        "x: 36,000,000,000,000 cables; netplan builds up to 16,777,216",
    ),
    (f"{{{LS}, radix: 10000000, {ONE % 4000000}, leaf: {{oversubscription: 0.001}}}}", "cables; netplan builds up to 16,777,216"),
    ("{name: x, kind: fat-tree, k: 512}", "x: k = 512 gives 33,554,432 NIC ports; netplan builds up to 4,194,304"),
    ("{name: x, kind: fat-tree, k: 1000000}", "k = 1000000: must be at most 512"),
    (f"{{{LS}, radix: 64, {ONE % 8}, leaf: {{breakout: 1000}}}}", "leaf.breakout = 1000: must be at most 64"),
    (
        ("{name: x, kind: custom, hosts: [{name: h}], switches: [{name: l, tier: 1, radix: 10000000},"
        " {name: s, tier: 2, radix: 10000000}], links: [{a: h, b: l, speed: 400G},"
        " {a: l, b: s, speed: 400G, count: 10000000}, {a: l, b: s, speed: 400G, count: 10000000}]}"),
        "x: 20,000,001 cables; netplan builds up to 16,777,216",
    ),
    (
        ("{name: x, kind: custom, hosts: [{name: h}], switches: [{name: l, tier: 1, radix: 10000000}],"
        " links: [{a: h, b: l, speed: 400G, count: 10001}]}"),
        "x: a host has 10,001 NICs; netplan takes up to 10,000",
    ),
    (
        metro("kind: fat-tree, k: 2", "radix: 10000000, switches: 10000000"),
        "m: site 'a': each of its 1 top-tier switches needs 10000000 ports for the metro tier and has 0 free of 2",
    ),
    (
        metro("kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}", "radix: 64, oversubscription: 1.0e-320"),
        "m: site 'a': each of its 1 top-tier switches needs 1000000000000 ports",
    ),
    (
        metro(
            "kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}",
            "radix: 10000000, switches: 2",
            "spans: [{a: a, b: b, links: 10000000}, {a: a, b: b, links: 9000000}]\n",
        ),
        "m: 19,000,016 cables; netplan builds up to 16,777,216",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ABSURD, ids=[message[:50] for _, message in ABSURD])
def test_absurd_numbers_are_refused_before_memory_is_taken(text: str, message: str) -> None:
    def attempt() -> float:
        start = time.perf_counter()
        with pytest.raises(NetplanError, match=re.escape(message)):
            yaml_fabric(text)
        return time.perf_counter() - start

    attempt()  # imports
    assert min(attempt() for _ in range(3)) < 0.05


def test_limits_leave_room_for_the_largest_fat_tree() -> None:
    # k = 256: exactly the most endpoints, three cables each.
    assert MOST_ENDPOINTS == 256**3 // 4
    assert 3 * MOST_ENDPOINTS < MOST_CABLES


def test_many_ports_cost_no_time() -> None:
    start = time.perf_counter()
    fabric = yaml_fabric(
        f"{{{LS}, radix: 9999990, {ONE % 4}, leaf: {{downlinks: 2, breakout: 64, uplinks: 2}}, spine: {{count: 2}}}}"
    )
    assert fabric.n_switches == 4
    assert time.perf_counter() - start < 0.5
