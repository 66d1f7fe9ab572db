"""Structural checks of a fabric, each with a stable code.

A check looks at elements, not at totals: a miswired fat-tree has the right number of switches
and cables, and only the ports in use per switch give it away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.fabric.direct_places import misplaced_cables
from netplan.units import format_rate

if TYPE_CHECKING:
    from netplan.fabric.columns import Fabric
    from netplan.fabric.structure import ClosStructure

#: At most this many faults of one code are spelled out; the rest are counted.
MOST_LISTED = 5

_METRO = TIER_NAMES.index("metro")
_INTER_SITE = LINK_KINDS.index("inter_site")
_DIRECT = [LINK_KINDS.index("local"), LINK_KINDS.index("global")]


@dataclass(frozen=True)
class FabricFault:
    """One thing wrong with a fabric."""

    code: str
    severity: Literal["error", "warning"]
    where: str
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class CheckPage:
    """What is written of a check."""

    code: str
    title: str
    what: str
    """What it looks at."""
    why: str
    """What goes wrong otherwise."""
    remedy: str
    """What to change."""


@dataclass(frozen=True)
class Check(CheckPage):
    """A check and its page."""

    run: Callable[[Fabric], Iterator[FabricFault]]


#: All checks by code, in the order they run.
CHECKS: dict[str, Check] = {}

_Run = Callable[["Fabric"], Iterator[FabricFault]]


def _check(code: str, title: str, *, what: str, why: str, remedy: str) -> Callable[[_Run], _Run]:
    """Register a check."""

    def register(run: _Run) -> _Run:
        CHECKS[code] = Check(code, title, what, why, remedy, run)
        return run

    return register


def check_fabric(fabric: Fabric) -> list[FabricFault]:
    """Return every fault of a fabric, errors first.

    A later check may rely on an earlier one, so checks after a broken cable table are left out.
    """
    faults: list[FabricFault] = []
    for check in CHECKS.values():
        faults.extend(check.run(fabric))
        if check.code == "NP101" and faults:
            break
    return sorted(faults, key=lambda fault: fault.severity != "error")


def is_as_built(fabric: Fabric) -> bool:
    """Whether a fabric is one that was found so: what cannot be planned may yet be cabled."""
    return fabric.spec is not None and fabric.spec.get("as_built") is True


def _listed(ids: np.ndarray) -> Iterator[tuple[int, str]]:
    """Yield the first few ids with what to say of the rest."""
    for place, i in enumerate(ids[:MOST_LISTED]):
        rest = len(ids) - MOST_LISTED
        yield int(i), f" (and {rest:,} more)" if place == MOST_LISTED - 1 and rest > 0 else ""


@_check(
    "NP101",
    "both ends of a cable are nodes",
    what="Every cable joins two different nodes of the fabric.",
    why="A cable that ends nowhere, or where it began, carries nothing.",
    remedy="Name an existing switch or host at both ends.",
)
def _ends(fabric: Fabric) -> Iterator[FabricFault]:
    src, dst = fabric.links.src[0::2], fabric.links.dst[0::2]
    outside = (src < 0) | (src >= fabric.n_nodes) | (dst < 0) | (dst >= fabric.n_nodes)
    for cable, more in _listed(np.flatnonzero(outside)):
        ends = f"{src[cable]} and {dst[cable]}"
        yield FabricFault("NP101", "error", f"cable {cable}", f"ends at nodes {ends}, not both exist{more}")
    for cable, more in _listed(np.flatnonzero(~outside & (src == dst))):
        where = f"cable {cable}"
        yield FabricFault("NP101", "error", where, f"both ends are {fabric.node_name(src[cable])}{more}")


@_check(
    "NP102",
    "no switch uses more ports than it has",
    what="The cables at each switch are at most its radix.",
    why="The fabric cannot be built with the switches named.",
    remedy="Use a switch of a larger radix, more switches, or fewer cables per pair.",
)
def _ports(fabric: Fabric) -> Iterator[FabricFault]:
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    over = (fabric.nodes.tier > 0) & (used > fabric.nodes.radix)
    for node, more in _listed(np.flatnonzero(over)):
        yield FabricFault(
            "NP102",
            "error",
            fabric.node_name(node),
            f"{used[node]} ports in use, the switch has {fabric.nodes.radix[node]}{more}",
            hint="take a larger radix, or spread the cables over more switches",
        )


@_check(
    "NP103",
    "both directions of a cable have one speed",
    what="The two links of a cable have the same capacity, which is above zero.",
    why="Ports at different speeds do not come up; a zero speed carries nothing.",
    remedy="Give both ends the same speed.",
)
def _speeds(fabric: Fabric) -> Iterator[FabricFault]:
    there, back = fabric.links.capacity[0::2], fabric.links.capacity[1::2]
    bad = (there != back) | ~(there > 0) | ~np.isfinite(there)
    for cable, more in _listed(np.flatnonzero(bad)):
        speeds = f"{format_rate(there[cable])} and {format_rate(back[cable])}"
        yield FabricFault(
            "NP103", "error", fabric.link_name(2 * cable), f"the two ends run at {speeds}{more}"
        )


@_check(
    "NP104",
    "cables join adjacent tiers",
    what=(
        "A cable leads one tier up, or from a site's top tier to a metro switch, or between sites. "
        "Cables of kind `local` or `global` (direct networks) may also join switches of one tier."
    ),
    why="Routing by tiers (up, then down) cannot use a cable that skips or stays in a tier.",
    remedy="Correct the tier of one of the switches, or the end of the cable.",
)
def _tiers(fabric: Fabric) -> Iterator[FabricFault]:
    tier, site = fabric.nodes.tier, fabric.nodes.site
    low, high = fabric.links.src[0::2], fabric.links.dst[0::2]
    adjacent = tier[high] - tier[low] == 1
    to_metro = (tier[high] == _METRO) & (tier[low] > 0) & (tier[low] == fabric.top_tier[site[low]])
    between = (fabric.links.kind[0::2] == _INTER_SITE) & (site[low] != site[high]) & (tier[low] == tier[high])
    direct = np.isin(fabric.links.kind[0::2], _DIRECT) & (tier[low] == tier[high]) & (tier[low] > 0)
    for cable, more in _listed(np.flatnonzero(~(adjacent | to_metro | between | direct))):
        tiers = f"tier {tier[low[cable]]} with tier {tier[high[cable]]}"
        severity: Literal["error", "warning"] = "warning" if is_as_built(fabric) else "error"
        yield FabricFault("NP104", severity, fabric.link_name(2 * cable), f"joins {tiers}{more}")


@_check(
    "NP105",
    "every host has an endpoint",
    what="Each host has at least one NIC port, and each NIC port's cable is at its own host and leaf.",
    why="A host without a port takes part in no collective.",
    remedy="Add a link from the host to a leaf, or remove the host.",
)
def _endpoints(fabric: Fabric) -> Iterator[FabricFault]:
    count = np.bincount(fabric.endpoints.host, minlength=fabric.n_nodes)
    had = count if fabric.damage is None else np.bincount(fabric.damage.before.host, minlength=fabric.n_nodes)
    bare = fabric.host_ids[count[fabric.host_ids] == 0]
    for host, more in _listed(bare[had[bare] == 0]):
        yield FabricFault("NP105", "error", fabric.node_name(host), f"has no NIC port with a link{more}")
    for host, more in _listed(bare[had[bare] > 0]):
        message = f"is cut off by the failures: no NIC port is left{more}"
        yield FabricFault("NP105", "warning", fabric.node_name(host), message)
    up = 2 * fabric.endpoints.cable.astype(np.int64)
    wrong = (fabric.links.src[up] != fabric.endpoints.host) | (fabric.links.dst[up] != fabric.endpoints.leaf)
    for endpoint, more in _listed(np.flatnonzero(wrong)):
        what = f"its cable does not join its host and its leaf{more}"
        yield FabricFault("NP105", "error", f"endpoint {endpoint}", what)
    for endpoint, more in _listed(np.flatnonzero(fabric.nodes.tier[fabric.endpoints.host] != 0)):
        at = fabric.node_name(fabric.endpoints.host[endpoint])
        yield FabricFault("NP105", "error", f"endpoint {endpoint}", f"is at {at}, which is no host{more}")


@_check(
    "NP106",
    "the fabric is connected",
    what="Every node can be reached from every other.",
    why="A job placed on both parts cannot run.",
    remedy="Join the parts, or describe them as two fabrics.",
)
def _connected(fabric: Fabric) -> Iterator[FabricFault]:
    part = components(fabric, through_hosts=True)
    ids = np.arange(fabric.n_nodes)
    if fabric.damage is not None:  # nodes without any cable left are known
        ids = np.unique(fabric.links.src)
        part = np.unique(part[ids], return_inverse=True)[1]
    if part.size and part.max() > 0:
        first, lost = int(ids[0]), int(ids[np.flatnonzero(part != part[0])[0]])
        yield FabricFault(
            "NP106",
            "error" if fabric.damage is None and not is_as_built(fabric) else "warning",
            fabric.node_name(lost),
            f"cannot be reached from {fabric.node_name(first)}: the fabric is in {int(part.max()) + 1} parts",
            hint="join the parts, or describe them as separate fabrics",
        )


@_check(
    "NP107",
    "endpoints meet inside the network",
    what="Every endpoint reaches every other without passing through a host.",
    why=(
        "Rails or planes that meet only in hosts (rail-only, several core groups) need PXN or a host "
        "relay for traffic that changes rail; collectives that stay in their rail do not care."
    ),
    remedy="Nothing, when it is meant; otherwise join the groups by a core tier.",
)
def _meet(fabric: Fabric) -> Iterator[FabricFault]:
    if not fabric.n_endpoints:
        return
    part = components(fabric, through_hosts=False)
    groups = np.unique(part[fabric.endpoints.leaf])
    if len(groups) > 1:
        hint = "traffic that changes rail needs PXN; ring collectives stay in their rail"
        if (np.diff(fabric.nic_ptr) > 1).any():
            hint = "traffic stays in its plane: QPs bound to one port of a NIC leave its other planes idle"
        yield FabricFault(
            "NP107",
            "warning",
            fabric.name,
            f"its endpoints are in {len(groups)} groups that meet only inside hosts",
            hint=hint,
        )


@_check(
    "NP108",
    "bundles are equal",
    what="A switch has the same number of parallel cables to each neighbour one tier up.",
    why="With unequal bundles ECMP and destination routing load some neighbours more than others.",
    remedy="Choose the number of upper switches so that it divides the uplinks.",
)
def _bundles(fabric: Fabric) -> Iterator[FabricFault]:
    tier = fabric.nodes.tier
    low, up = tier[fabric.links.src[0::2]], tier[fabric.links.dst[0::2]]
    rows = np.flatnonzero((low > 0) & (up > low))
    src, dst = fabric.links.src[0::2][rows].astype(np.int64), fabric.links.dst[0::2][rows].astype(np.int64)
    pairs, bundle = np.unique(src * fabric.n_nodes + dst, return_counts=True)
    owner = pairs // fabric.n_nodes
    most, least = np.zeros(fabric.n_nodes, np.int64), np.full(fabric.n_nodes, np.iinfo(np.int64).max)
    np.maximum.at(most, owner, bundle)
    np.minimum.at(least, owner, bundle)
    for node, more in _listed(np.flatnonzero(most > least)):
        spread = f"{least[node]} to {most[node]} parallel cables to its upper neighbours"
        yield FabricFault("NP108", "warning", fabric.node_name(node), f"has {spread}{more}")


@_check(
    "NP109",
    "the structure agrees with the cables",
    what="Every cable is where the fabric's arithmetic description (Clos or direct) says.",
    why="Paths are computed from the structure: they would lead over cables that are elsewhere.",
    remedy="Remove the structure of a fabric whose cables were changed: its paths are then walked.",
)
def _structure(fabric: Fabric) -> Iterator[FabricFault]:
    if fabric.structure is None and fabric.direct is None:
        return
    try:
        wrongs = [_misplaced(fabric, fabric.structure)] if fabric.structure is not None else []
        wrongs += [misplaced_cables(fabric, fabric.direct)] if fabric.direct is not None else []
    except ValueError as error:
        yield FabricFault("NP109", "error", fabric.name, f"its structure {error}")
        return
    for cable, more in _listed(np.flatnonzero(np.any(wrongs, axis=0))):
        yield FabricFault(
            "NP109",
            "error",
            fabric.link_name(2 * cable),
            f"is not where the structure has cable {cable}{more}",
            hint="remove the structure; paths are then walked",
        )


@_check(
    "NP110",
    "every two groups have a global cable",
    what="Each pair of groups of a direct network is joined by a cable of kind `global`.",
    why="Minimal routing takes one global hop: between groups without one every path is a detour by a third.",
    remedy="Lay a cable between the groups, or accept the detour: failures of global cables cause it.",
)
def _groups(fabric: Fabric) -> Iterator[FabricFault]:
    links, nodes = fabric.links, fabric.nodes
    rows = np.flatnonzero(links.kind[0::2] == _DIRECT[1]) * 2
    ends = np.stack([links.src[rows], links.dst[rows]])
    pods = int(nodes.pod.max(initial=-1)) + 1
    for site in np.unique(nodes.site[ends]).tolist():
        pod = np.sort(nodes.pod[ends[:, nodes.site[ends[0]] == site]].astype(np.int64), axis=0)
        here = np.unique(nodes.pod[(nodes.site == site) & (nodes.tier > 0) & (nodes.pod >= 0)])
        joined = np.unique(pod[0] * pods + pod[1])
        low, high = np.triu_indices(len(here), 1)
        apart = np.setdiff1d(here[low].astype(np.int64) * pods + here[high], joined)
        for pair, more in _listed(apart):
            a, b = divmod(pair, pods)
            yield FabricFault(
                "NP110", "warning", f"groups {a} and {b}", f"are joined by no global cable{more}"
            )


def _misplaced(fabric: Fabric, s: ClosStructure) -> np.ndarray:
    """Return, for each cable, whether the structure has it elsewhere.

    Raises
    ------
    ValueError
        The structure is of a fabric of another size; the text completes "its structure ...".
    """
    if len(s.endpoint_leaf) != fabric.n_endpoints or not s.n_leaves:
        msg = f"has {len(s.endpoint_leaf)} endpoints on {s.n_leaves} leaves, the fabric {fabric.n_endpoints}"
        raise ValueError(msg)
    n_spines = s.n_pods * s.spines
    if n_spines > fabric.n_nodes:
        msg = f"has {n_spines:,} spines, the fabric {fabric.n_nodes:,} nodes"
        raise ValueError(msg)
    port = s.endpoint_leaf * (int(s.endpoint_port.max(initial=0)) + 1) + s.endpoint_port.astype(np.int64)
    if s.endpoint_port.min(initial=0) < 0 or (np.diff(np.sort(port)) == 0).any():
        msg = "has two endpoints on one port of a leaf"
        raise ValueError(msg)
    total = fabric.n_endpoints + s.n_leaves * s.uplinks + n_spines * s.spine_uplinks
    if total != fabric.links.n_cables:
        msg = f"has {total:,} cables, the fabric {fabric.links.n_cables:,}"
        raise ValueError(msg)
    leaf = np.repeat(np.arange(s.n_leaves), s.uplinks)
    position = np.tile(np.arange(s.uplinks) // max(s.leaf_bundle, 1), s.n_leaves)
    spine = np.repeat(np.arange(n_spines), s.spine_uplinks)
    place = np.tile(np.arange(s.spine_uplinks) // max(s.spine_bundle, 1), n_spines)
    pod, at = np.divmod(spine, max(s.spines, 1))
    core = (pod // s.pods_per_domain * s.spines + at) * s.cores_per_group + place
    tables = (
        (fabric.endpoints.cable, fabric.endpoints.host, s.leaf_node + s.endpoint_leaf),
        (
            s.leaf_cable + np.arange(len(leaf)),
            s.leaf_node + leaf,
            s.spine_node + s.leaf_pod[leaf] * s.spines + position,
        ),
        (s.spine_cable + np.arange(len(spine)), s.spine_node + spine, s.core_node + core),
    )
    # A cable that no table names is misplaced as well.
    wrong = np.ones(total, bool)
    for cable, lower, upper in tables:
        if len(cable) and (cable.min() < 0 or cable.max() >= total):
            msg = "names cables that the fabric does not have"
            raise ValueError(msg)
        wrong[cable] = (fabric.links.src[2 * cable] != lower) | (fabric.links.dst[2 * cable] != upper)
    return wrong


def components(fabric: Fabric, *, through_hosts: bool) -> np.ndarray:
    """(n_nodes,) number of the connected part that each node is in."""
    # Imported here: scipy.sparse.csgraph costs a third of a second, and `import netplan` must not.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    src, dst = fabric.links.src[0::2], fabric.links.dst[0::2]
    if not through_hosts:
        inside = fabric.nodes.tier[src] > 0
        src, dst = src[inside], dst[inside]
    graph = coo_array((np.ones(len(src), np.int8), (src, dst)), shape=(fabric.n_nodes, fabric.n_nodes))
    return np.asarray(connected_components(graph, directed=False)[1])
