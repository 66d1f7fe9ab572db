"""``netplan new``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netplan.cli import options
from netplan.errors import FabricError, OutputError, UnitError, did_you_mean

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import ClosSpec, LeafSpineSpec, RailOptimizedSpec

#: What each family's specs have that an option sets.
OPTIONS = {
    "leaf-spine": {"hosts", "gpus", "nic", "radix"},
    "fat-tree": {"gpus", "nic", "radix"},
    "clos": {"hosts", "gpus", "nic", "radix"},
    "rail-optimized": {"hosts", "gpus", "nic", "radix", "tiers"},
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
}

_TWO, _THREE = 2, 3

#: Sizes that nothing else says.
_RADIX, _GPUS, _NIC, _K, _HOSTS = 64, 8, "400G", 16, 64

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


_COUNT = click.IntRange(min=1, max=10_000_000)


@click.command(short_help="Write a commented spec for a fabric family")
@click.argument("kind", callback=_kind)
@click.option("--name", callback=_name, help="Name of the fabric; my-KIND when omitted.")
@click.option("--hosts", type=_COUNT, help="Hosts (metro: of each site).")
@click.option("--gpus", type=_COUNT, help="GPUs of each host, a NIC port each.")
@click.option("--nic", callback=_nic, metavar="RATE", help="Line rate of a NIC port, such as 400G.")
@click.option("--radix", type=_COUNT, help="Ports of a switch (fat-tree: k).")
@click.option("--tiers", type=click.Choice(["2", "3"]), help="Switch tiers (rail-optimized only).")
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
    output: str | None,
    force: bool,
) -> None:
    """Write a spec of family KIND: leaf-spine, fat-tree, clos, rail-optimized, metro or custom.

    Required keys are set; every optional key is there as a comment with its default, or with the value that
    follows from the rest. The fabric is built before it is written, so what comes out is feasible.

    \b
    Examples:
      netplan new rail-optimized --hosts 128 -o my-fabric.yaml
      netplan new metro --name two-towns --hosts 32 -o two-towns.yaml
    """  # noqa: D301 -- click looks for the control character \b
    given = {
        word: value
        for word, value in {"hosts": hosts, "gpus": gpus, "nic": nic, "radix": radix, "tiers": tiers}.items()
        if value is not None
    }
    for word in given:
        if word not in OPTIONS[kind]:
            raise click.UsageError(f"family {kind} has no --{word}: {_INSTEAD[kind, word]}")
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
    if kind == "metro" or live.get("tiers") == _TWO:
        head.append(
            "Keys that only fabrics of three tiers have (pod, core, a spine's uplinks) are not listed here."
        )
    tiers = _TWO if kind == "metro" else live.get("tiers", _THREE)
    return commented_spec(kind, live, _shown(live, fabric), head=head, tiers=tiers)


# ---- What each family's file says --------------------------------------------------------------------------


def _build(live: dict[str, Any]) -> Fabric:
    """Build the fabric of plain data."""
    from netplan.spec.fabric import FABRIC_SPEC
    from netplan.topology import build_fabric

    return build_fabric(FABRIC_SPEC.validate_python(live))


def _tree(kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the live keys of leaf-spine, clos and rail-optimized."""
    radix, gpus = given.get("radix", _RADIX), given.get("gpus", _GPUS)
    tiers = {"leaf-spine": _TWO, "clos": _THREE}.get(kind, int(given.get("tiers", _TWO)))
    if tiers == _TWO:
        count = _HOSTS
    else:  # two full pods
        per_leaf = max(radix // 2 // gpus, 1) if kind == "clos" else radix // 2
        leaves = radix // 2 if kind == "clos" else max(radix // 2 // gpus, 1)
        count = 2 * per_leaf * leaves
    live: dict[str, Any] = {
        "kind": kind,
        "name": name,
        **({"tiers": tiers} if kind == "rail-optimized" else {}),
        "hosts": {
            "count": given.get("hosts", max(count, 1)),
            "gpus": gpus,
            "nic_speed": given.get("nic", _NIC),
        },
        "radix": radix,
        "leaf": {"oversubscription": 1},
    }
    if tiers == _THREE:
        if kind == "rail-optimized":
            live["pod"] = {"by": "block"}
        live |= {"spine": {"oversubscription": 1}, "core": {"radix": radix}}
    else:
        live["spine"] = {"radix": radix}
    live["cables"] = {"leaf_spine": "30 m"}
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
    "metro": _metro,
    "custom": _custom,
}


# ---- What is shown for keys without a fixed default --------------------------------------------------------


def _shown(live: dict[str, Any], fabric: Fabric) -> dict[str, str]:
    """Return the values that follow from the rest, by the path of their key."""
    from netplan.congestion.line_rate import TRANSPORTS
    from netplan.fabric import LINK_KINDS
    from netplan.spec.fabric import FABRIC_SPEC, ClosSpec, LeafSpineSpec, RailOptimizedSpec
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
        shown["spans"] = f"[{{a: north, b: south, length: {_DISTANCE}, links: {links}}}]"
    elif kind == "custom":
        shown |= {"switches[].pod": "0", "switches[].rail": "0"}
    elif kind == "fat-tree":
        shown["hosts.nics"] = str(live["hosts"]["gpus"])
    else:
        spec = FABRIC_SPEC.validate_python(live)
        assert isinstance(spec, (LeafSpineSpec, ClosSpec, RailOptimizedSpec))
        shown |= _tree_sizes(spec, fabric)
    return shown


def _tree_sizes(spec: LeafSpineSpec | ClosSpec | RailOptimizedSpec, fabric: Fabric) -> dict[str, str]:
    """Return the numbers that follow from a tree family's spec."""
    import numpy as np
    from pydantic import TypeAdapter

    from netplan.spec.quantity import Rate
    from netplan.spec.tiers import SpineSpec
    from netplan.topology.sizes import split_leaf, split_spine

    def rate(value: float) -> str:
        return str(TypeAdapter(Rate).dump_python(value, mode="json"))

    leaf = split_leaf(spec.leaf, spec.radix, spec.hosts.nic_speed, spec.name)
    structure = fabric.structure
    assert structure is not None
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
    if isinstance(spec.spine, SpineSpec) and structure.cores_per_group:
        spine = split_spine(spec.spine, spec.radix, leaf.up_rate, spec.name)
        shown |= {
            "spine.downlinks": str(spine.down),
            "spine.uplinks": str(spine.up),
            "spine.uplink_speed": rate(spine.up_rate),
            "core.radix": str(spec.radix),
            "core.count": str(int((fabric.nodes.tier == _THREE).sum())),
            "pod.leaves": str(int(np.bincount(structure.leaf_pod)[0])),
        }
    return shown
