"""``netplan new``."""

from __future__ import annotations

import shlex
from math import isqrt, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.errors import FabricError, OutputError, UnitError, did_you_mean

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import ClosSpec, LeafSpineSpec, RailOptimizedSpec
    from netplan.spec.planes import DualTorSpec, MultiPlaneSpec, RailOnlySpec
    from netplan.topology.sizes import Split

    _TreeSpec = LeafSpineSpec | ClosSpec | RailOptimizedSpec | RailOnlySpec | MultiPlaneSpec | DualTorSpec

#: What each family's specs have that an option sets.
OPTIONS = {
    "leaf-spine": {"hosts", "gpus", "nic", "radix"},
    "fat-tree": {"gpus", "nic", "radix"},
    "clos": {"hosts", "gpus", "nic", "radix"},
    "rail-optimized": {"hosts", "gpus", "nic", "radix", "tiers"},
    "rail-only": {"hosts", "gpus", "nic", "radix", "tiers"},
    "multi-plane": {"hosts", "gpus", "nic", "radix", "tiers", "planes"},
    "dual-tor": {"hosts", "gpus", "nic", "radix", "tiers"},
    "dragonfly": {"hosts", "gpus", "nic", "radix"},
    "dragonfly-plus": {"hosts", "gpus", "nic", "radix"},
    "slim-fly": {"hosts", "gpus", "nic", "radix"},
    "torus": {"hosts", "gpus", "nic", "radix", "dims"},
    "hyperx": {"hosts", "gpus", "nic", "radix", "dims"},
    "metro": {"hosts", "gpus", "nic", "radix"},
    "custom": {"hosts", "gpus", "nic", "radix"},
}

#: Why a family does not have an option, and what to do.
_INSTEAD = {
    ("fat-tree", "hosts"): "its hosts follow from k (--radix): k^3/4 NIC ports",
    ("fat-tree", "tiers"): "it has three",
    ("leaf-spine", "tiers"): "it has two; kind clos has three",
    ("clos", "tiers"): "it has three; kind leaf-spine has two",
    ("metro", "tiers"): "its sites may be of any family: edit sites[].fabric",
    ("custom", "tiers"): "its switches are listed with their tiers",
    ("dual-tor", "planes"): "it has two",
    **{
        (kind, "tiers"): "a direct network joins its routers with each other"
        for kind in ("dragonfly", "dragonfly-plus", "slim-fly", "torus", "hyperx")
    },
}

#: The same for families that lack an option for one reason.
_NO = {
    "planes": "kind multi-plane has planes",
    "dims": "kinds torus and hyperx have dimensions",
}

#: Tiers that a family may have, where not two or three.
_TIERS = {"rail-only": ("1", "2")}

_ONE, _TWO, _THREE = 1, 2, 3

#: Sizes that nothing else says.
_RADIX, _GPUS, _NIC, _K, _HOSTS = 64, 8, "400G", 16, 64

#: Hosts of the families of groups, and dimensions of those of a grid, when nothing is given.
_GROUP_HOSTS, _DIMENSIONS = 256, {"torus": 3, "hyperx": 2}

#: A metro template's sites: hosts of each, NIC bandwidth over long-link bandwidth, distance.
_SITE_HOSTS, _METRO_RATIO, _DISTANCE = 16, 8, "30 km"


def _nic(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check a rate, keeping the text."""
    from netplan.units import parse_rate

    if value is not None:
        try:
            rate = parse_rate(value)
        except UnitError as error:
            raise click.BadParameter(str(error)) from None
        if not rate:
            raise click.BadParameter("a rate must be more than 0")
    return value


def _name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check a name."""
    from pydantic import TypeAdapter, ValidationError

    from netplan.spec.quantity import Name

    if value is not None:
        try:
            TypeAdapter(Name).validate_python(value)
        except ValidationError as error:
            raise click.BadParameter(f"{value!r} {error.errors()[0]['ctx']['error']}") from None
    return value


def _kind(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check a family's name, suggesting the nearest."""
    if value not in OPTIONS:
        near = did_you_mean(value, OPTIONS)
        suggestion = f" Did you mean {near!r}?" if near else ""
        raise click.BadParameter(f"{value!r} is not one of {', '.join(OPTIONS)}.{suggestion}")
    return value


def _dims(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """Read sizes of dimensions, ``8x8x4``."""
    if value is None:
        return None
    parts = value.lower().replace("x", " ").split()
    if not parts or not all(part.isdecimal() and len(part) <= 5 and int(part) >= 2 for part in parts):  # noqa: PLR2004 -- digits, routers
        raise click.BadParameter(f"{value!r}: sizes of at least 2 with x between them, such as 8x8x4")
    return [int(part) for part in parts]


_COUNT = click.IntRange(min=1, max=10_000_000)


@click.command(short_help="Write a commented spec for a fabric family")
@click.argument("kind", callback=_kind)
@click.option("--name", callback=_name, help="Name of the fabric; my-KIND when omitted.")
@click.option("--hosts", type=_COUNT, help="Hosts (metro: of each site).")
@click.option("--gpus", type=_COUNT, help="GPUs of each host, a NIC port each.")
@click.option("--nic", callback=_nic, metavar="RATE", help="Line rate of a NIC port, such as 400G.")
@click.option("--radix", type=_COUNT, help="Ports of a switch (fat-tree: k).")
@click.option(
    "--tiers",
    type=click.Choice(["1", "2", "3"]),
    help="Switch tiers (rail-optimized, multi-plane and dual-tor: 2 or 3; rail-only: 1 or 2).",
)
@click.option("--planes", type=click.IntRange(2, 64), help="Planes (multi-plane only); 2 when omitted.")
@click.option(
    "--dims",
    callback=_dims,
    metavar="SIZES",
    help="Routers along each dimension, such as 8x8x4 (torus, hyperx).",
)
@click.option("-o", "--output", type=click.Path(), help="Write here instead of to standard output.")
@click.option("--force", is_flag=True, help="Replace the file when it is there.")
def command(
    kind: str,
    *,
    name: str | None,
    hosts: int | None,
    gpus: int | None,
    nic: str | None,
    radix: int | None,
    tiers: str | None,
    planes: int | None,
    dims: list[int] | None,
    output: str | None,
    force: bool,
) -> None:
    """Write a spec of family KIND.

    KIND is leaf-spine, fat-tree, clos, rail-optimized, rail-only, multi-plane, dual-tor, dragonfly,
    dragonfly-plus, slim-fly, torus, hyperx, metro or custom.

    Required keys are set; every optional key is there as a comment with its default, or with the value that
    follows from the rest. The fabric is built before it is written, so what comes out is feasible.

    \b
    Examples:
      netplan new rail-optimized --hosts 128 -o my-fabric.yaml
      netplan new metro --name two-towns --hosts 32 -o two-towns.yaml
    """  # noqa: D301 -- click looks for the control character \b
    given = {
        word: value
        for word, value in {
            "hosts": hosts, "gpus": gpus, "nic": nic, "radix": radix,
            "tiers": tiers, "planes": planes, "dims": dims,
        }.items()
        if value is not None
    }  # fmt: skip
    for word in given:
        if word not in OPTIONS[kind]:
            instead = _INSTEAD.get((kind, word)) or _NO[word]
            raise click.UsageError(f"family {kind} has no --{word}: {instead}")
    fits = _TIERS.get(kind, ("2", "3"))
    if tiers is not None and tiers not in fits:
        raise click.UsageError(f"family {kind} has {' or '.join(fits)} tiers, not {tiers}")
    if (
        output not in (None, "-")
        and Path(str(output)).exists()
        and not Path(str(output)).is_dir()
        and not force
    ):
        raise OutputError(f"{output!r} is there already", hint="name another file, or add --force")
    text = template(kind, name or f"my-{kind}", given)
    options.emit_text(text, output)
    if output not in (None, "-"):
        click.echo(f"wrote {output}; next: netplan show {shlex.quote(str(output))}", err=True)


def template(kind: str, name: str, given: dict[str, Any]) -> str:
    """Return the commented spec of a family.

    Parameters
    ----------
    kind
        The family.
    name
        Name of the fabric.
    given
        Values of the options of `OPTIONS` that the user gave.

    Raises
    ------
    FabricError
        No such fabric can be built.
    """
    from netplan.spec.template import commented_spec

    live, fabric = _LIVE[kind](name, given)
    head = [
        f"A {kind} fabric.",
        "A line that begins with # and no space is an optional key with its default, or with the value that",
        "follows from the others: delete the # to set it. Remarks begin with # and a space.",
        f"All keys: netplan explain {kind}, netplan schema fabric. What comes out: netplan show FILE.",
    ]
    if kind == "metro" or (live.get("tiers") == _TWO and kind != "rail-only"):
        head.append(
            "Keys that only fabrics of three tiers have (pod, core, a spine's uplinks) are not listed here."
        )
    tiers = _TWO if kind == "metro" else max(live.get("tiers", _THREE), _TWO)
    return commented_spec(kind, live, _shown(live, fabric), head=head, tiers=tiers)


# ---- What each family's file says --------------------------------------------------------------------------


def _build(live: dict[str, Any]) -> Fabric:
    """Build the fabric of plain data."""
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.topology import build_fabric

    return build_fabric(FABRIC_SPEC.validate_python(live))


def _tree(kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the live keys of the families that are trees, or trees side by side."""
    radix, gpus = given.get("radix", _RADIX), given.get("gpus", _GPUS)
    tiers = {"leaf-spine": _TWO, "clos": _THREE}.get(kind, int(given.get("tiers", _TWO)))
    if kind == "rail-only":
        return _rail_only(name, given)
    if tiers == _TWO:
        count = _HOSTS
    else:  # two full pods
        per_leaf = max(radix // 2 // gpus, 1) if kind == "clos" else radix // 2
        leaves = radix // 2 if kind == "clos" else max(radix // 2 // gpus, 1)
        count = 2 * per_leaf * leaves
    live: dict[str, Any] = {
        "kind": kind,
        "name": name,
        **({"planes": given.get("planes", _TWO), "rails": True} if kind == "multi-plane" else {}),
        **({"tiers": tiers} if kind not in ("leaf-spine", "clos") else {}),
        "hosts": {
            "count": given.get("hosts", max(count, 1)),
            "gpus": gpus,
            "nic_speed": given.get("nic", _NIC),
        },
        "radix": radix,
        "leaf": {"oversubscription": 1},
    }
    if tiers == _THREE:
        if kind in ("rail-optimized", "multi-plane"):
            live["pod"] = {"by": "block"}
        live |= {"spine": {"oversubscription": 1}, "core": {"radix": radix}}
    else:
        live["spine"] = {"radix": radix}
    live["cables"] = {"leaf_spine": "30 m"}
    return live


def _rail_only(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the live keys of rail-only: one leaf a rail where the hosts fit."""
    radix, hosts = given.get("radix", _RADIX), given.get("hosts", _HOSTS)
    tiers = int(given.get("tiers", _ONE if hosts <= radix else _TWO))
    live = {
        "kind": "rail-only",
        "name": name,
        "tiers": tiers,
        "hosts": {
            "count": min(hosts, radix) if tiers == _ONE and "hosts" not in given else hosts,
            "gpus": given.get("gpus", _GPUS),
            "nic_speed": given.get("nic", _NIC),
        },
        "radix": radix,
    }
    if tiers == _TWO:
        live |= {"leaf": {"oversubscription": 1}, "spine": {"radix": radix}}
    live["cables"] = {"host_leaf": "3 m"}
    return live


def _plain(kind: str) -> Any:  # noqa: ANN401 -- a function as in _LIVE
    """Return the function that makes a tree family's keys and builds its fabric."""

    def make(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
        live = _tree(kind, name, given)
        return live, _build(live)

    return make


def _fat_tree(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
    """Make a k-ary fat-tree."""
    live = {
        "kind": "fat-tree",
        "name": name,
        "k": given.get("radix", _K),
        "hosts": {"gpus": given.get("gpus", 1), "nic_speed": given.get("nic", _NIC)},
        "cables": {"leaf_spine": "30 m"},
    }
    if live["k"] % 2 or not 2 <= live["k"] <= 512:  # noqa: PLR2004 -- the model's limits
        raise click.BadParameter(f"k = {live['k']}: an even number from 2 to 512", param_hint="--radix")
    return live, _build(live)


def _groups(kind: str) -> Any:  # noqa: ANN401 -- a function as in _LIVE
    """Return the function that makes a family of groups: its sizes follow from the radix and the hosts."""

    def make(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
        live = {
            "kind": kind,
            "name": name,
            "hosts": {
                "count": given.get("hosts", _GROUP_HOSTS),
                "gpus": given.get("gpus", _GPUS),
                "nic_speed": given.get("nic", _NIC),
            },
            "radix": given.get("radix", _RADIX),
            "cables": {"local": "5 m", "global": "30 m"},
        }
        return live, _build(live)

    return make


def _grid(kind: str) -> Any:  # noqa: ANN401 -- a function as in _LIVE
    """Return the function that makes a family of dimensions: near a cube that holds the hosts."""

    def make(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
        gpus = given.get("gpus", _GPUS)
        live: dict[str, Any] = {
            "kind": kind,
            "name": name,
            "dims": given.get("dims") or _cube(given.get("hosts", _HOSTS), _DIMENSIONS[kind]),
            "hosts": {"gpus": gpus, "nic_speed": given.get("nic", _NIC)},
            "cables": {"host_leaf": "3 m"},
        }
        live["hosts"] |= {"count": given["hosts"]} if "hosts" in given else {}
        live |= {"radix": given["radix"]} if "radix" in given else {}
        live |= {"router": {"endpoints": gpus}} if kind == "hyperx" else {}
        return live, _build(live)

    return make


def _cube(routers: int, dimensions: int) -> list[int]:
    """Return sizes, as equal as can be and at least 2, of a grid that has so many routers."""
    size = max(2, next(n for n in range(1, routers + 1) if n**dimensions >= routers))
    sizes = [size] * dimensions
    for place in range(dimensions):
        while sizes[place] > 2 and prod(sizes) // sizes[place] * (sizes[place] - 1) >= routers:  # noqa: PLR2004 -- routers
            sizes[place] -= 1
    return sizes


def _metro(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
    """Make two sites with as few spines as leave ports for the long links."""
    given = {"hosts": _SITE_HOSTS, **given}
    sites = []
    for place, site in enumerate(("north", "south")):
        inner = _tree("leaf-spine", f"{name}-{site}", given)
        sites.append(
            {"name": site, "position": ["0 km", "0 km" if place == 0 else _DISTANCE], "fabric": inner}
        )
    radix = given.get("radix", _RADIX)
    live: dict[str, Any] = {
        "kind": "metro",
        "name": name,
        "sites": sites,
        "metro": {"radix": radix, "switches": 2, "oversubscription": _METRO_RATIO},
        "cables": {"site_metro": "100 m"},
    }
    if "nic" in given:
        live["metro"]["link_speed"] = given["nic"]
    site_spec: dict[str, Any] = sites[0]["fabric"]  # type: ignore[assignment]
    least = int((_build(site_spec).nodes.tier == _TWO).sum())
    first: FabricError | None = None
    for switches in (2, 4, 8, 16, 32):
        live["metro"]["switches"] = switches
        for spines in _divisors(_leaf_uplinks(site_spec), least) if least else (0,):
            for site_data in sites:
                spine = {"count": spines} if spines else {"radix": radix}
                site_data["fabric"]["spine"] = spine  # type: ignore[index]
            try:
                return live, _build(live)
            except FabricError as error:
                first = first or error
    assert first is not None
    raise first


def _leaf_uplinks(data: dict[str, Any]) -> int:
    """Return the uplinks of a leaf of a leaf-spine spec in plain data."""
    from netplan.spec.fabric import LeafSpineSpec
    from netplan.topology.sizes import split_leaf

    spec = LeafSpineSpec.model_validate(data)
    return split_leaf(spec.leaf, spec.radix, spec.hosts.nic_speed, spec.name).up


def _divisors(number: int, least: int) -> list[int]:
    """Return the divisors of a number, those of at least ``least`` first."""
    found = [n for n in range(1, number + 1) if number % n == 0]
    return [n for n in found if n >= least] or found


def _custom(name: str, given: dict[str, Any]) -> tuple[dict[str, Any], Fabric]:
    """List hosts on two leaves and two spines, non-blocking."""
    gpus, nic, radix = given.get("gpus", _GPUS), given.get("nic", _NIC), given.get("radix", _RADIX)
    count = given.get("hosts", 4)
    leaves = min(count, 2)
    on_leaf = -(-count // leaves)
    trunk = -(-on_leaf * gpus // 2)
    switches = [("leaf", 1, place) for place in range(leaves)] + [("spine", 2, place) for place in range(2)]
    hosts = [f"host-{place}" for place in range(count)]
    live = {
        "kind": "custom",
        "name": name,
        "hosts": [{"name": host, "gpus": gpus, "site": "lab"} for host in hosts],
        "switches": [
            {"name": f"{word}-{place}", "tier": tier, "radix": radix, "site": "lab"}
            for word, tier, place in switches
        ],
        "links": [
            *(
                {"a": host, "b": f"leaf-{i // on_leaf}", "speed": nic, "count": gpus}
                for i, host in enumerate(hosts)
            ),
            *(
                {"a": f"leaf-{leaf}", "b": f"spine-{spine}", "speed": nic, "count": trunk}
                for leaf in range(leaves)
                for spine in range(2)
            ),
        ],
    }
    return live, _build(live)


_LIVE = {
    "leaf-spine": _plain("leaf-spine"),
    "fat-tree": _fat_tree,
    "clos": _plain("clos"),
    "rail-optimized": _plain("rail-optimized"),
    "rail-only": _plain("rail-only"),
    "multi-plane": _plain("multi-plane"),
    "dual-tor": _plain("dual-tor"),
    "dragonfly": _groups("dragonfly"),
    "dragonfly-plus": _groups("dragonfly-plus"),
    "slim-fly": _groups("slim-fly"),
    "torus": _grid("torus"),
    "hyperx": _grid("hyperx"),
    "metro": _metro,
    "custom": _custom,
}


# ---- What is shown for keys without a fixed default --------------------------------------------------------


def _shown(live: dict[str, Any], fabric: Fabric) -> dict[str, str]:
    """Return the values that follow from the rest, by the path of their key."""
    from netplan.congestion.line_rate import TRANSPORTS
    from netplan.fabric import LINK_KINDS
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.units import format_time

    roce = TRANSPORTS["roce"]
    shown = {
        "latency.switch": format_time(roce.switch_latency_s),
        "latency.endpoint": format_time(roce.endpoint_latency_s),
    }
    kind = live["kind"]
    if kind == "metro":
        site = live["sites"][0]["fabric"]
        inner = _shown(site, _build(site))
        shown |= {f"sites[].fabric.{path}": text for path, text in inner.items()}
        shown["sites[].fabric.latency"] = ""  # the domain's own count
        links = int((fabric.links.kind == LINK_KINDS.index("inter_site")).sum()) // 2
        path = f"{{length: {_DISTANCE}, links: {links}, fibre_pairs: {links}}}"
        shown["spans"] = (
            f"[{{a: north, b: south, length: null, links: {links}, wavelengths: 1, fibre_pairs: null, "
            f"paths: [{path}]}}]"
        )
    elif kind == "custom":
        shown |= {"switches[].pod": "0", "switches[].rail": "0"}
    elif kind == "fat-tree":
        shown["hosts.nics"] = str(live["hosts"]["gpus"])
    elif fabric.direct is not None:
        shown |= _direct_sizes(live, fabric)
    else:
        spec = FABRIC_SPEC.validate_python(live)
        assert spec.kind in ("leaf-spine", "clos", "rail-optimized", "rail-only", "multi-plane", "dual-tor")
        shown |= _tree_sizes(spec, fabric)
        # A count that is given ends the search for the fewest switches: not shown where it would, by itself,
        # give another fabric than the search.
        counts = [key for key in _COUNTS if shown.get(key)]
        shown |= {key: "" for key in counts if not _is_same(live, key, shown[key], fabric)}
    return shown


#: Counts that netplan chooses where none of them is given.
_COUNTS = (
    *("leaf.downlinks", "leaf.uplinks", "spine.count"),
    *("spine.downlinks", "spine.uplinks", "core.count", "pod.leaves"),
)


def _is_same(live: dict[str, Any], key: str, value: str, fabric: Fabric) -> bool:
    """Tell whether a count that is given in the spec leaves the fabric as it is."""
    import numpy as np

    tier, _, name = key.partition(".")
    try:
        other = _build({**live, tier: {**live.get(tier, {}), name: int(value)}})
    except FabricError:
        return False
    ours, theirs = fabric.links, other.links
    return np.array_equal(ours.src, theirs.src) and np.array_equal(ours.dst, theirs.dst)


def _direct_sizes(live: dict[str, Any], fabric: Fabric) -> dict[str, str]:
    """Return the numbers that follow from the spec of a direct network."""
    import numpy as np

    from netplan.fabric.direct import (
        DragonflyPlusStructure,
        DragonflyStructure,
        HyperXStructure,
        SlimFlyStructure,
        TorusStructure,
    )
    from netplan.topology.dragonfly import router_sizes
    from netplan.topology.dragonfly_plus import group_sizes
    from netplan.topology.slim_fly import router_endpoints

    d, nic = fabric.direct, live["hosts"]["nic_speed"]
    radix = np.bincount(fabric.nodes.tier, fabric.nodes.radix) / np.maximum(np.bincount(fabric.nodes.tier), 1)
    shown = {
        "hosts.count": str(fabric.n_hosts),
        "hosts.nics": str(live["hosts"]["gpus"]),
        "radix": str(int(radix[1])),
        **dict.fromkeys(("link_speed", "local_speed", "global_speed"), nic),
    }
    spec = fabric_spec(live)
    if isinstance(d, DragonflyStructure):
        p, a, h = router_sizes(spec)
        shown |= {"groups": str(d.groups), "group.routers": str(a)}
        shown |= {"router.endpoints": str(p), "router.global_links": str(h)}
    elif isinstance(d, DragonflyPlusStructure):
        p, leaves, spines, h = group_sizes(spec)
        shown |= {"groups": str(d.groups), "group.leaves": str(leaves), "group.spines": str(spines)}
        shown |= {"leaf.endpoints": str(p), "spine.global_links": str(h)}
        shown |= {"leaf.radix": str(int(radix[1])), "spine.radix": str(int(radix[2]))}
    elif isinstance(d, SlimFlyStructure):
        q = isqrt(d.routers // 2)
        shown |= {"q": str(q), "router.endpoints": str(router_endpoints(spec, q))}
    elif isinstance(d, (HyperXStructure, TorusStructure)):
        ones = ", ".join(["1"] * len(d.sizes))
        shown |= {"bundles": f"[{ones}]", "router.endpoints": str(live["hosts"]["gpus"])}
        shown["cables.dimensions"] = f"[{', '.join(['5 m'] * len(d.sizes))}]"
    return shown


def fabric_spec(live: dict[str, Any]) -> Any:  # noqa: ANN401 -- a spec of the kind that the data says
    """Return the validated spec of plain data."""
    from netplan.spec.fabric import FABRIC_SPEC

    return FABRIC_SPEC.validate_python(live)


def _leaf_split(spec: _TreeSpec) -> Split:
    """Return how a leaf's ports are divided."""
    from netplan.topology.dual_tor import split_tor
    from netplan.topology.multi_plane import port_rate
    from netplan.topology.sizes import split_leaf

    if spec.kind == "dual-tor":
        return split_tor(spec)
    rate = port_rate(spec) if spec.kind == "multi-plane" else spec.hosts.nic_speed
    return split_leaf(spec.leaf, spec.radix, rate, spec.name)


def _tree_sizes(spec: _TreeSpec, fabric: Fabric) -> dict[str, str]:
    """Return the numbers that follow from a tree family's spec."""
    import numpy as np
    from pydantic import TypeAdapter

    from netplan.spec.quantity import Rate
    from netplan.spec.tiers import SpineSpec
    from netplan.topology.sizes import split_spine

    def rate(value: float) -> str:
        return str(TypeAdapter(Rate).dump_python(value, mode="json"))

    structure = fabric.structure
    assert structure is not None
    if spec.kind == "rail-only" and spec.tiers == _ONE:
        # Refused where there are no spines: what only leads to them.
        unused = ("leaf.oversubscription", "leaf.uplinks", "leaf.uplink_speed", "spine", "cables.leaf_spine")
        shown = {"hosts.nics": str(spec.hosts.n_nics), **dict.fromkeys(unused, "")}
        return shown | {
            "leaf": f"{{radix: {spec.radix}, downlinks: {spec.radix}, breakout: 1}}",
        }
    leaf = _leaf_split(spec)
    shown = {
        "hosts.nics": str(spec.hosts.n_nics),
        "leaf.radix": str(spec.radix),
        "leaf.downlinks": str(leaf.down),
        "leaf.uplinks": str(leaf.up),
        "leaf.uplink_speed": rate(leaf.up_rate),
        "spine.radix": str(spec.radix),
        # Refused where one leaf holds everything: spines would join nothing.
        "spine.count": str(structure.spines) if structure.spines else "",
    }
    planes = len(np.unique(fabric.endpoints.plane))
    if isinstance(spec.spine, SpineSpec) and structure.cores_per_group:
        spine = split_spine(spec.spine, spec.radix, leaf.up_rate, spec.name)
        shown |= {
            "spine.downlinks": str(spine.down),
            "spine.uplinks": str(spine.up),
            "spine.uplink_speed": rate(spine.up_rate),
            "core.radix": str(spec.radix),
            "core.count": str(structure.spines * structure.cores_per_group * structure.domains // planes),
            "pod.leaves": str(int(np.bincount(structure.leaf_pod)[0])),
        }
    return shown
