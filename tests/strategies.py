"""Hypothesis strategies for small valid specs of every family.

Each draws the numbers a user would give; sizes that follow stay below some hundred endpoints, so
that a test may build every example and search it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from netplan.errors import FabricError
from netplan.fabric import Fabric
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric

GB = 1e9

_RATES = st.sampled_from([12.5 * GB, 25 * GB, 50 * GB, 100 * GB])


def _hosts(draw: st.DrawFn, *, most: int = 24, nics: tuple[int, ...] = (1, 2, 4)) -> dict[str, Any]:
    """Draw the hosts' part of a spec."""
    gpus = draw(st.sampled_from(nics))
    hosts = {"count": draw(st.integers(1, most)), "gpus": gpus, "nic_speed": draw(_RATES)}
    if draw(st.booleans()):
        hosts["nics"] = draw(st.sampled_from([n for n in nics if gpus % n == 0]))
    return hosts


def _leaf(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the leaf's part of a spec."""
    leaf: dict[str, Any] = {"oversubscription": draw(st.sampled_from([0.5, 1, 1.5, 2, 3]))}
    if draw(st.booleans()):
        leaf["breakout"] = 2
    if draw(st.booleans()):
        leaf["uplink_speed"] = draw(_RATES)
    return leaf


@st.composite
def leaf_spine_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Two tiers; perhaps too many leaves for the spines."""
    return {
        "name": "ls",
        "kind": "leaf-spine",
        "radix": draw(st.sampled_from([8, 12, 16])),
        "hosts": _hosts(draw),
        "leaf": _leaf(draw),
    }


@st.composite
def clos_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Three tiers; perhaps in one pod only, or with more pods than core ports."""
    return {
        "name": "clos",
        "kind": "clos",
        "radix": draw(st.sampled_from([6, 8, 12])),
        "hosts": _hosts(draw, most=48),
        "leaf": _leaf(draw),
        "pod": {"leaves": draw(st.integers(1, 3))},
        "spine": {"oversubscription": draw(st.sampled_from([0.5, 1, 2, 3]))},
        "core": {"radix": draw(st.sampled_from([6, 16]))},
    }


@st.composite
def fat_tree_specs(draw: st.DrawFn) -> dict[str, Any]:
    """A full k-ary fat-tree."""
    k = draw(st.sampled_from([2, 4, 6, 8]))
    gpus = draw(st.sampled_from([n for n in (1, 2, 4) if k // 2 % n == 0]))
    return {"name": "ft", "kind": "fat-tree", "k": k, "hosts": {"gpus": gpus, "nic_speed": draw(_RATES)}}


@st.composite
def rail_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Rail-optimized, two or three tiers, pods by block or by rail."""
    spec: dict[str, Any] = {
        "name": "rail",
        "kind": "rail-optimized",
        "tiers": draw(st.sampled_from([2, 3])),
        "radix": draw(st.sampled_from([4, 8, 12])),
        "hosts": _hosts(draw),
        "leaf": _leaf(draw),
    }
    if spec["tiers"] == 3:
        spec["pod"] = {"by": draw(st.sampled_from(["block", "rail"]))}
        spec["spine"] = {"oversubscription": draw(st.sampled_from([0.5, 1, 2]))}
        spec["core"] = {"radix": draw(st.sampled_from([4, 16])), "domains": draw(st.sampled_from([1, 1, 2]))}
    return spec


@st.composite
def rail_only_specs(draw: st.DrawFn) -> dict[str, Any]:
    """One leaf a rail, perhaps too small; or leaves and spines."""
    spec: dict[str, Any] = {
        "name": "rail-only",
        "kind": "rail-only",
        "tiers": draw(st.sampled_from([1, 2])),
        "radix": draw(st.sampled_from([8, 12])),
        "hosts": _hosts(draw),
    }
    if spec["tiers"] == 2:
        spec["leaf"] = _leaf(draw)
    return spec


@st.composite
def multi_plane_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Planes of leaf-spine, Clos or rails; NICs split or in one plane each."""
    spec: dict[str, Any] = {
        "name": "planes",
        "kind": "multi-plane",
        "planes": draw(st.sampled_from([2, 4])),
        "tiers": draw(st.sampled_from([2, 3])),
        "rails": draw(st.booleans()),
        "radix": draw(st.sampled_from([8, 12])),
        "hosts": _hosts(draw, most=12),
        "leaf": _leaf(draw),
    }
    nics = spec["hosts"].get("nics", spec["hosts"]["gpus"])
    if nics % spec["planes"] == 0:
        spec["assignment"] = draw(st.sampled_from(["split", "per-nic"]))
    if spec["tiers"] == 3:
        if spec["rails"]:
            spec["pod"] = {"by": draw(st.sampled_from(["block", "rail"]))}
        elif draw(st.booleans()):
            spec["pod"] = {"leaves": draw(st.integers(1, 3))}
        spec["spine"] = {"oversubscription": draw(st.sampled_from([0.5, 1, 2]))}
    return spec


@st.composite
def dual_tor_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Two ToRs for each rail and segment, perhaps with ports for backup hosts."""
    spec: dict[str, Any] = {
        "name": "dual-tor",
        "kind": "dual-tor",
        "tiers": draw(st.sampled_from([2, 3])),
        "radix": draw(st.sampled_from([8, 12, 16])),
        "hosts": _hosts(draw, most=16),
        "leaf": {**_leaf(draw), "backup": draw(st.integers(0, 3))},
    }
    if spec["tiers"] == 3:
        spec["spine"] = {"oversubscription": draw(st.sampled_from([1, 3]))}
    return spec


@st.composite
def metro_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Two or three sites of two tiers, with room for the metro tier."""
    sites = []
    for number in range(draw(st.integers(2, 3))):
        hosts = {"count": draw(st.integers(2, 8)), "gpus": 2}
        fabric = {
            "name": f"s{number}",
            "kind": draw(st.sampled_from(["leaf-spine", "rail-optimized"])),
            "radix": 8,
            "hosts": hosts,
            "spine": {"radix": 64},
        }
        sites.append({"name": f"s{number}", "position": (number * 1e4, 0.0), "fabric": fabric})
    metro = {
        "radix": 64,
        "switches": draw(st.integers(1, 3)),
        "oversubscription": draw(st.sampled_from([1, 2, 4])),
        "layout": draw(st.sampled_from(["mesh", "ring"])),
    }
    return {"name": "metro", "kind": "metro", "sites": tuple(sites), "metro": metro}


@st.composite
def metro_star_specs(draw: st.DrawFn) -> dict[str, Any]:
    """A star: two or three sites around the first or a hub of switches only, over one path or several."""
    spec = draw(metro_specs())
    sites, metro = list(spec["sites"]), {**spec["metro"], "wavelengths": draw(st.sampled_from([1, 4, 64]))}
    if draw(st.booleans()):
        sites.insert(0, {"name": "hub", "position": (0.0, 5e3)})
    spec = {**spec, "sites": tuple(sites), "metro": {**metro, "layout": "star"}}
    if draw(st.booleans()):
        del spec["metro"]["layout"]
        spec["spans"] = tuple(
            {
                "a": sites[0]["name"],
                "b": site["name"],
                "paths": tuple({"length": draw(st.floats(1e3, 8e4))} for _ in range(draw(st.integers(1, 3)))),
            }
            for site in sites[1:]
        )
    return spec


@st.composite
def custom_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Leaves and spines joined at random, every leaf to the first spine at least."""
    n_leaves, n_spines = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    hosts, links = [], []
    for number in range(draw(st.integers(1, 6))):
        hosts.append({"name": f"h{number}", "gpus": draw(st.integers(1, 4))})
        for _ in range(draw(st.integers(1, 2))):
            leaf = draw(st.integers(0, n_leaves - 1))
            links.append({"a": f"h{number}", "b": f"l{leaf}", "speed": draw(_RATES)})
    for leaf in range(n_leaves):
        for spine in range(n_spines):
            count = draw(st.integers(0, 3))
            if count or spine == 0:
                link = {"a": f"s{spine}", "b": f"l{leaf}", "speed": draw(_RATES), "count": count or 1}
                links.append(link)
    used = {name for link in links for name in (link["a"], link["b"])}
    switches = [{"name": f"l{i}", "tier": 1, "radix": 64} for i in range(n_leaves)]
    switches += [{"name": f"s{i}", "tier": 2, "radix": 64} for i in range(n_spines) if f"s{i}" in used]
    return {
        "name": "custom",
        "kind": "custom",
        "hosts": tuple(hosts),
        "switches": tuple(switches),
        "links": tuple(links),
    }


def _direct_hosts(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the hosts of a direct network: full when they are not counted."""
    hosts = _hosts(draw)
    if draw(st.booleans()):
        del hosts["count"]
    return {**hosts, "attach": draw(st.sampled_from(["one-router", "spread"]))}


def _groups(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what dragonfly and dragonfly-plus share."""
    spec: dict[str, Any] = {
        "hosts": _direct_hosts(draw),
        "arrangement": draw(st.sampled_from(["palmtree", "consecutive"])),
        "uneven": draw(st.booleans()),
    }
    if draw(st.booleans()):
        spec["groups"] = draw(st.integers(2, 8))
    if draw(st.booleans()):
        spec["global_speed"] = draw(_RATES)
    return spec


@st.composite
def dragonfly_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Groups joined evenly or not; perhaps too few endpoints for a host, or groups that do not divide."""
    return {
        "name": "df",
        "kind": "dragonfly",
        **_groups(draw),
        "router": {"endpoints": draw(st.integers(1, 5)), "global_links": draw(st.integers(1, 3))},
        "group": {"routers": draw(st.integers(1, 4)), "bundle": draw(st.integers(1, 2))},
    }


@st.composite
def dragonfly_plus_specs(draw: st.DrawFn) -> dict[str, Any]:
    """As `dragonfly_specs`, with leaves and spines."""
    return {
        "name": "dfp",
        "kind": "dragonfly-plus",
        **_groups(draw),
        "leaf": {"endpoints": draw(st.integers(1, 5))},
        "spine": {"global_links": draw(st.integers(1, 3))},
        "group": {
            "leaves": draw(st.integers(1, 4)),
            "spines": draw(st.integers(1, 4)),
            "bundle": draw(st.integers(1, 2)),
        },
    }


@st.composite
def slim_fly_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Any small q, of each of the three constructions."""
    return {
        "name": "sf",
        "kind": "slim-fly",
        "q": draw(st.sampled_from([3, 4, 5, 7, 8])),
        "hosts": _direct_hosts(draw),
        "router": {"endpoints": draw(st.integers(1, 4))},
    }


def _grid(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what torus and hyperx share."""
    dims = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    spec: dict[str, Any] = {
        "name": "grid",
        "dims": tuple(dims),
        "hosts": _direct_hosts(draw),
        "router": {"endpoints": draw(st.integers(1, 4))},
    }
    if draw(st.booleans()):
        spec["bundles"] = tuple(draw(st.integers(1, 2)) for _ in dims)
    return spec


@st.composite
def torus_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Tori and meshes of up to three dimensions."""
    spec = {"kind": "torus", **_grid(draw), "wrap": draw(st.booleans())}
    return {**spec, "pair_cables": draw(st.sampled_from([1, 2]))} if spec["wrap"] else spec


@st.composite
def hyperx_specs(draw: st.DrawFn) -> dict[str, Any]:
    """Full meshes, flattened butterflies, and of three dimensions."""
    return {"kind": "hyperx", **_grid(draw)}


#: One strategy of specs per family, by its ``kind``.
SPECS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "leaf-spine": leaf_spine_specs(),
    "clos": clos_specs(),
    "fat-tree": fat_tree_specs(),
    "rail-optimized": rail_specs(),
    "rail-only": rail_only_specs(),
    "multi-plane": multi_plane_specs(),
    "dual-tor": dual_tor_specs(),
    "dragonfly": dragonfly_specs(),
    "dragonfly-plus": dragonfly_plus_specs(),
    "slim-fly": slim_fly_specs(),
    "torus": torus_specs(),
    "hyperx": hyperx_specs(),
    "metro": metro_specs(),
    "custom": custom_specs(),
}


def _built(spec: dict[str, Any]) -> Fabric | None:
    """Build a fabric; None when the request is infeasible."""
    try:
        return build_fabric(FABRIC_SPEC.validate_python(spec))
    except FabricError:
        return None


def fabrics(*kinds: str) -> st.SearchStrategy[Fabric]:
    """Small fabrics of some families (of all when none is named)."""
    specs = st.one_of(*(SPECS[kind] for kind in kinds or SPECS))
    return specs.map(_built).filter(lambda fabric: fabric is not None)  # type: ignore[return-value]


#: Families whose fabrics have a `ClosStructure`.
TREES = ("leaf-spine", "clos", "fat-tree", "rail-optimized", "rail-only", "multi-plane", "dual-tor")

#: Families whose fabrics have a `DirectStructure`.
DIRECT = ("dragonfly", "dragonfly-plus", "slim-fly", "torus", "hyperx")
