"""What a fabric is and can carry: counts, oversubscription, bisection, hops, equal-cost paths.

Terms. *Downlink* of a switch: a cable to a lower tier; *uplink*: a cable to a higher tier, or to
another site in the same tier. *Group*: endpoints that reach each other without passing through a
host; rails or planes that meet only in hosts are several groups, and pairs of endpoints in
different groups are left out of every measure.

Two roads lead to each measure. Fabrics with a `ClosStructure` are measured by arithmetic, the
others by searches over the graph of switches, which tests hold equal to the arithmetic. Direct
networks are measured by `netplan.fabric.direct_measures`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from netplan.fabric.checks import components
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.fabric.direct_measures import measure_direct

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from netplan.fabric.columns import Fabric
    from netplan.fabric.direct_measures import DirectMeasures
    from netplan.fabric.structure import ClosStructure

#: Most links between switches that max-flow is run on: some seconds.
MOST_FLOW_LINKS = 2_000_000

#: Most steps that the search for hops and paths takes: kinds of leaves times pairs of joined switches.
MOST_SEARCH_STEPS = 200_000_000

#: Kinds of cable that may join switches of one tier.
DIRECT_KINDS = [LINK_KINDS.index("local"), LINK_KINDS.index("global")]

#: Largest sum of capacities that scipy's max-flow, with 32-bit numbers, is given.
_MOST_CAPACITY = 2**30


@dataclass(frozen=True)
class Ports:
    """Ports of the switches of a tier."""

    used: int
    """Ports with a cable."""
    total: int
    """Ports that the switches have."""


@dataclass(frozen=True)
class SpanMeasure:
    """Parallel long links between two sites over one fibre path, or of one length where none is known."""

    a: str
    """A site."""
    b: str
    """The other site."""
    length_km: float
    """Fibre length [km]."""
    links: int
    """Links on it."""
    capacity_gbps: float
    """What they carry together [Gb/s], per direction."""
    path: int | None = None
    """Place of the fibre path among those between the two sites, from 1; None where it is not known."""
    wavelengths: int | None = None
    """Links that one fibre pair can carry."""
    fibre_pairs: int | None = None
    """Fibre pairs of the path."""


@dataclass(frozen=True)
class Sites:
    """Sites and the spans between them."""

    names: tuple[str, ...]
    """Names, by number."""
    spans: tuple[SpanMeasure, ...]
    """Spans, by their sites; none in a fabric of one site."""


@dataclass(frozen=True)
class PathCounts:
    """Fewest equal-cost shortest paths between two endpoints, by where they are; None where no pair is.

    Paths over different parallel cables count apart, as ECMP chooses among cables.
    """

    same_leaf: int | None
    """Both on one leaf: one path through one switch."""
    same_pod: int | None
    """On two leaves with a common spine: three switches."""
    across_core: int | None
    """Further apart, in one site."""
    across_sites: int | None
    """In two sites."""


@dataclass(frozen=True)
class RailReach:
    """Most endpoints of one rail that are this close to each other, the endpoint itself included."""

    one_switch: int
    """On one leaf."""
    three_switches: int | None
    """On leaves that share a spine with it; None: not computed."""
    all: int
    """Reached at all, without passing through a host."""


@dataclass(frozen=True)
class ScaleUp:
    """The scale-up domains: one per host."""

    gpus: tuple[int, ...]
    """Sizes that occur [GPUs], ascending."""
    rate_gb_per_s: tuple[float, ...]
    """What one GPU sends into its domain [GB/s], per direction; rates that occur, ascending."""


@dataclass(frozen=True)
class Measures:
    """All that `netplan show` says of a fabric."""

    name: str
    kind: str
    hosts: int
    gpus: int
    endpoints: int
    switches: dict[str, int]
    """Switches per tier, and ``total``."""
    cables: dict[str, int]
    """Cables per kind, and ``total``."""
    ports: dict[str, Ports]
    """Ports per tier that the fabric has."""
    oversubscription: dict[str, float | None]
    """Per tier: the largest downlink over uplink capacity of a switch; 1 is non-blocking, below 1
    there is more up than down; None where nothing leads further up."""
    bisection_fraction: float | None
    """What crosses the middle over half the endpoints' line rate, one direction, at most 1.

    The middle is that of the canonical split: endpoints in order of site, pod and leaf, cut into
    two equal halves (each group for itself). The bisection bandwidth proper is the least over all
    halvings, so this is an upper bound of it. None: not computed, ``notes`` say why.
    """
    max_hops: int | None
    """Switches on the longest of the shortest paths between two endpoints; None: not computed."""
    rails: int
    """NICs of different local index."""
    planes: int
    """Parallel fabrics that never meet inside the network."""
    groups: int
    """Groups of endpoints that meet only inside hosts; 1 where all endpoints reach each other."""
    sites: Sites
    paths: PathCounts
    rail_reach: RailReach
    nic_rates_gbps: tuple[float, ...]
    """Line rates of the NIC ports that occur [Gb/s], ascending."""
    scale_up: ScaleUp
    notes: tuple[str, ...]
    """What was left out, and why."""
    direct: DirectMeasures | None = None
    """Figures of a direct network (dragonfly, torus, ...); None of others, and of damaged ones."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the keys of ``fabric`` in the output of `netplan show`."""
        return asdict(self)


class _Search(NamedTuple):
    """What a search over the graph of switches finds."""

    max_hops: int | None
    paths: PathCounts
    reach_three: int | None
    note: str | None = None


def measure(fabric: Fabric) -> Measures:
    """Measure a fabric.

    Parameters
    ----------
    fabric
        Any fabric without faults.

    Returns
    -------
    Measures
        Counts, ratios and paths.

    Notes
    -----
    O(links) where the fabric has a structure, so milliseconds for 131,072 GPUs.
    """
    notes = []
    if fabric.damage is not None:
        notes.append(f"damaged ({', '.join(fabric.damage.failures)}): the figures are those of what is left")
    group = _endpoint_groups(fabric)
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups > 1:
        notes.append(
            f"the endpoints are in {n_groups} groups that meet only inside hosts; pairs in different groups "
            "have no path and are left out, and the bisection is that of each group, added up"
        )
    direct = None
    if fabric.direct is not None:
        direct, bisection = measure_direct(fabric, fabric.direct)
        notes += ["no two endpoints meet, so there is no bisection"] if bisection is None else []
        found = _by_hops(fabric, direct)
    else:
        bisection, note = _bisection(fabric, group)
        notes += [note] if note else []
        s = fabric.structure
        found = _search(fabric) if s is None else _by_structure(fabric, s, group)
        notes += [found.note] if found.note else []
    return Measures(
        name=fabric.name,
        kind=fabric.kind,
        hosts=fabric.n_hosts,
        gpus=fabric.n_gpus,
        endpoints=fabric.n_endpoints,
        switches={tier: fabric.count_tier(tier) for tier in TIER_NAMES[1:]} | {"total": fabric.n_switches},
        cables={kind: fabric.count_cables(kind) for kind in LINK_KINDS} | {"total": fabric.links.n_cables},
        ports=_ports(fabric),
        oversubscription=oversubscription(fabric),
        bisection_fraction=bisection,
        max_hops=found.max_hops,
        rails=len(np.unique(fabric.endpoints.rail)),
        planes=len(np.unique(fabric.endpoints.plane)),
        groups=n_groups,
        sites=Sites(fabric.site_names, _spans(fabric)),
        paths=found.paths,
        rail_reach=_rail_reach(fabric, group, found.reach_three),
        nic_rates_gbps=_gbps(fabric.endpoint_rate),
        scale_up=ScaleUp(
            gpus=tuple(np.unique(fabric.gpus_per_host).tolist()),
            rate_gb_per_s=tuple((np.unique(fabric.scale_up_rate) / 1e9).tolist()),
        ),
        notes=tuple(notes),
        direct=direct,
    )


def oversubscription(fabric: Fabric) -> dict[str, float | None]:
    """Return the largest downlink over uplink capacity of a switch, per tier that the fabric has.

    Returns
    -------
    dict
        Tier name to ratio: 1 is non-blocking; None for a tier from which nothing leads further up.
        Cables of a direct network between switches of one tier lead nowhere up.
    """
    tier, links = fabric.nodes.tier, fabric.links
    leads_down = tier[links.dst] < tier[links.src]
    leads_up = ~leads_down & ((tier[links.dst] > tier[links.src]) | ~np.isin(links.kind, DIRECT_KINDS))
    down = np.bincount(links.src, np.where(leads_down, links.capacity, 0.0), fabric.n_nodes)
    up = np.bincount(links.src, np.where(leads_up, links.capacity, 0.0), fabric.n_nodes)
    ratios: dict[str, float | None] = {}
    for number, name in enumerate(TIER_NAMES[1:], start=1):
        here = tier == number
        has_up = here & (up > 0)
        if here.any():
            ratios[name] = float((down[has_up] / up[has_up]).max()) if has_up.any() else None
    return ratios


def _gbps(rate: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the rates that occur [Gb/s], ascending."""
    return tuple((np.unique(rate) * 8 / 1e9).tolist())


def _ports(fabric: Fabric) -> dict[str, Ports]:
    """Count ports per tier."""
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)
    ports = {}
    for number, name in enumerate(TIER_NAMES[1:], start=1):
        here = fabric.nodes.tier == number
        if here.any():
            ports[name] = Ports(int(used[here].sum()), int(fabric.nodes.radix[here].sum()))
    return ports


def _spans(fabric: Fabric) -> tuple[SpanMeasure, ...]:
    """List the long links by their sites and length."""
    rows = np.flatnonzero(fabric.links.kind[0::2] == LINK_KINDS.index("inter_site")) * 2
    ends = np.sort(fabric.nodes.site[np.stack([fabric.links.src[rows], fabric.links.dst[rows]])], axis=0)
    length = fabric.links.length[rows]
    path = fabric.links.path[rows]
    spans = []
    keys = sorted(set(zip(*ends.tolist(), path.tolist(), length.tolist(), strict=True)))
    for a, b, place, metres in keys:
        here = rows[(ends[0] == a) & (ends[1] == b) & (length == metres) & (path == place)]
        rate = float(fabric.links.capacity[here].sum()) * 8 / 1e9
        known = fabric.fibre_paths[place] if place >= 0 else None
        spans.append(
            SpanMeasure(
                fabric.site_names[a],
                fabric.site_names[b],
                metres / 1e3,
                len(here),
                rate,
                known and known.number,
                known and known.wavelengths,
                known and known.fibre_pairs,
            )
        )
    return tuple(spans)


def _rail_reach(fabric: Fabric, group: NDArray[np.int64], three: int | None) -> RailReach:
    """Count how many endpoints of a rail are close."""
    rail = fabric.endpoints.rail
    return RailReach(_most_on_a_rail(fabric.endpoints.leaf, rail), three, _most_on_a_rail(group, rail))


def _most_on_a_rail(place: NDArray[np.integer], rail: NDArray[np.int16]) -> int:
    """Return the most endpoints that are on one rail in one place."""
    key = place.astype(np.int64) * (int(rail.max(initial=0)) + 1) + rail
    return int(np.unique(key, return_counts=True)[1].max(initial=0))


def _endpoint_groups(fabric: Fabric) -> NDArray[np.int64]:
    """(n_endpoints,) number of the group that each endpoint is in, in order of first endpoint."""
    s = fabric.structure
    if s is None:
        key = components(fabric, through_hosts=False)[fabric.endpoints.leaf]
    else:
        key = (s.leaf_pod // s.pods_per_domain)[s.endpoint_leaf]
        if not s.uplinks:
            key = s.endpoint_leaf
        elif not s.spine_uplinks:
            key = s.leaf_pod[s.endpoint_leaf]
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


# ---- bisection ---------------------------------------------------------------------------------


def _bisection(fabric: Fabric, group: NDArray[np.int64]) -> tuple[float | None, str | None]:
    """Return the bisection fraction, or None with the reason."""
    first = first_half(fabric, group)
    line = _line_rate_of_halves(fabric, group, first)
    if not line:
        return None, "no two endpoints meet, so there is no bisection"
    if fabric.structure is not None:
        return min(clos_flow(fabric, fabric.structure, first) / line, 1.0), None
    src = fabric.links.src
    n_links = int(((fabric.nodes.tier[src] > 0) & (fabric.nodes.tier[fabric.links.dst] > 0)).sum())
    if n_links > MOST_FLOW_LINKS:
        return None, (
            f"the bisection is not computed: {n_links:,} links between switches without a structure, and "
            f"max-flow is run on up to {MOST_FLOW_LINKS:,}"
        )
    return min(max_flow(fabric, first) / line, 1.0), None


def first_half(fabric: Fabric, group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n_endpoints,) whether each endpoint is in the first half of the canonical split.

    Endpoints in order of site, pod, leaf and number; of each group the first half, rounded down.
    """
    leaf = fabric.endpoints.leaf
    group_of = np.full(fabric.n_nodes, -1)
    group_of[leaf] = group
    rank = np.empty(fabric.n_nodes, np.int64)
    rank[np.lexsort((fabric.nodes.pod, fabric.nodes.site, group_of))] = np.arange(fabric.n_nodes)
    order = np.argsort(rank[leaf], kind="stable")
    size = np.bincount(group)
    place = np.arange(len(leaf)) - np.repeat(np.cumsum(size) - size, size)
    first = np.empty(len(leaf), bool)
    first[order] = place < np.repeat(size // 2, size)
    return first


def _line_rate_of_halves(fabric: Fabric, group: NDArray[np.int64], first: NDArray[np.bool_]) -> float:
    """Return what could cross at most [bytes/s]: per group, the slower half's line rate."""
    rate = fabric.endpoint_rate
    halves = [np.bincount(group, np.where(half, rate, 0.0)) for half in (first, ~first)]
    return float(np.minimum(*halves).sum())


def clos_flow(fabric: Fabric, s: ClosStructure, first: NDArray[np.bool_]) -> float:
    """Return the max-flow from the first half to the second [bytes/s], by arithmetic.

    Notes
    -----
    The spines of a pod are interchangeable, and so are the cores of a group and the positions of
    spines with their core groups. A flow may therefore be spread equally over them without loss,
    which makes a tree: leaves below pods below domains. In a tree it is best to match senders and
    receivers as low as possible; what is left over goes up, as far as the uplinks carry it.
    """
    rate = fabric.endpoint_rate
    send = np.bincount(s.endpoint_leaf, np.where(first, rate, 0.0), s.n_leaves)
    receive = np.bincount(s.endpoint_leaf, np.where(first, 0.0, rate), s.n_leaves)
    total = 0.0
    leaf_uplinks = _up_capacity(fabric, s.leaf_cable, s.uplinks)
    spine_uplinks = _up_capacity(fabric, s.spine_cable, s.spine_uplinks)
    for above, uplinks in (
        (s.leaf_pod.astype(np.int64), leaf_uplinks),
        (np.arange(s.n_pods) // s.pods_per_domain, s.spines * spine_uplinks),
    ):
        matched = np.minimum(send, receive)
        total += float(matched.sum())
        send = np.bincount(above, np.minimum(send - matched, uplinks))
        receive = np.bincount(above, np.minimum(receive - matched, uplinks))
    return total + float(np.minimum(send, receive).sum())


def _up_capacity(fabric: Fabric, cable: int, uplinks: int) -> float:
    """Return what the uplinks of a switch carry [bytes/s], all being like its first."""
    return uplinks * float(fabric.links.capacity[2 * cable]) if uplinks else 0.0


def max_flow(fabric: Fabric, first: NDArray[np.bool_]) -> float:
    """Return the max-flow from the first half to the second [bytes/s], by search.

    Only switches forward. Capacities are counted in the largest unit that divides them all, or,
    where the sum would then be too large, in one of 2^-30 of the sum.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    links, tier = fabric.links, fabric.nodes.tier
    between = np.flatnonzero((tier[links.src] > 0) & (tier[links.dst] > 0))
    leaf, rate = fabric.endpoints.leaf, fabric.endpoint_rate
    source, sink = fabric.n_nodes, fabric.n_nodes + 1
    capacity = np.concatenate([links.capacity[between], rate])
    whole = np.rint(np.minimum(capacity, 2.0**62)).astype(np.int64)
    unit = max(float(np.gcd.reduce(whole)), float(capacity.sum()) / _MOST_CAPACITY)
    graph = coo_array(
        (
            (capacity + unit / 4) // unit,
            (
                np.concatenate([links.src[between], np.where(first, source, leaf)]),
                np.concatenate([links.dst[between], np.where(first, leaf, sink)]),
            ),
        ),
        shape=(sink + 1, sink + 1),
    ).tocsr()  # parallel links are added up
    return float(maximum_flow(graph.astype(np.int32), source, sink).flow_value) * unit


# ---- hops and paths ----------------------------------------------------------------------------


def _by_hops(fabric: Fabric, direct: DirectMeasures) -> _Search:
    """Return what is told of every fabric; places in a tree mean nothing in a direct network."""
    on_leaf = np.unique(fabric.endpoints.leaf, return_counts=True)[1]
    same = 1 if (on_leaf > 1).any() else None
    hops = max(map(int, direct.hops), default=0)
    return _Search(hops, PathCounts(same, None, None, None), None)


def _by_structure(fabric: Fabric, s: ClosStructure, group: NDArray[np.int64]) -> _Search:
    """Return hops and paths by arithmetic."""
    on_leaf = np.bincount(s.endpoint_leaf, minlength=s.n_leaves)
    leaves_of_pod = np.bincount(s.leaf_pod, on_leaf > 0)
    pods_of_domain = np.bincount(np.arange(s.n_pods) // s.pods_per_domain, leaves_of_pod > 0)
    is_far = bool(s.spine_uplinks) and bool((pods_of_domain > 1).any())
    is_near = bool(s.uplinks) and bool((leaves_of_pod > 1).any())
    is_same = bool((on_leaf > 1).any())
    near = s.uplinks * s.leaf_bundle
    hops = 5 if is_far else 3 if is_near else int(is_same)
    near_place = s.leaf_pod[s.endpoint_leaf] if s.uplinks else s.endpoint_leaf
    return _Search(
        max_hops=hops,
        paths=PathCounts(
            same_leaf=1 if is_same else None,
            same_pod=near if is_near else None,
            across_core=near * s.spine_uplinks * s.spine_bundle if is_far else None,
            across_sites=None,
        ),
        reach_three=_most_on_a_rail(near_place, fabric.endpoints.rail),
    )


def _search(fabric: Fabric) -> _Search:
    """Return hops and paths by breadth-first searches over the switches.

    Leaves with the same cables to the same neighbours see the same distances and numbers of
    paths, so one search per kind of leaf is enough.
    """
    adjacency = _switch_graph(fabric)
    leaves, on_leaf = np.unique(fabric.endpoints.leaf, return_counts=True)
    kind = _leaf_kinds(adjacency, leaves)
    nothing = PathCounts(None, None, None, None)
    if (int(kind.max(initial=-1)) + 1) * adjacency.nnz > MOST_SEARCH_STEPS:
        note = f"hops and paths are not computed: {len(leaves):,} leaves without a structure are too many"
        return _Search(None, nothing, None, note)
    site = fabric.nodes.site
    longest, reach = int((on_leaf > 1).any()), 0
    fewest: dict[str, list[int]] = {"same_pod": [], "across_core": [], "across_sites": []}
    for leaf in leaves[np.unique(kind, return_index=True)[1]]:
        distance, paths = _breadth_first(adjacency, int(leaf))
        near = (distance >= 0) & (distance <= 2)  # noqa: PLR2004 -- links between three switches
        reach = max(reach, int(np.bincount(fabric.endpoints.rail[near[fabric.endpoints.leaf]]).max()))
        other = leaves[(distance[leaves] > 0)]
        longest = max(longest, int(distance[other].max(initial=-1)) + 1)
        is_here = site[other] == site[leaf]
        is_near = distance[other] <= 2  # noqa: PLR2004
        for name, chosen in (
            ("same_pod", is_here & is_near),
            ("across_core", is_here & ~is_near),
            ("across_sites", ~is_here),
        ):
            if chosen.any():
                fewest[name].append(int(paths[other[chosen]].min()))
    least = {name: min(counts, default=None) for name, counts in fewest.items()}
    return _Search(
        max_hops=longest,
        paths=PathCounts(same_leaf=1 if (on_leaf > 1).any() else None, **least),
        reach_three=reach,
    )


def _switch_graph(fabric: Fabric) -> csr_array:
    """(n_nodes, n_nodes) parallel links between each two switches."""
    from scipy.sparse import coo_array

    links, tier = fabric.links, fabric.nodes.tier
    between = np.flatnonzero((tier[links.src] > 0) & (tier[links.dst] > 0))
    count = np.ones(len(between))
    shape = (fabric.n_nodes, fabric.n_nodes)
    return coo_array((count, (links.src[between], links.dst[between])), shape=shape).tocsr()


def _leaf_kinds(adjacency: csr_array, leaves: NDArray[np.int32]) -> NDArray[np.int64]:
    """(n_leaves,) number of each leaf's kind: equal cables to equal neighbours."""
    kinds: dict[tuple[bytes, bytes], int] = {}
    numbers = np.empty(len(leaves), np.int64)
    for place, leaf in enumerate(leaves):
        row = slice(adjacency.indptr[leaf], adjacency.indptr[leaf + 1])
        key = adjacency.indices[row].tobytes(), adjacency.data[row].tobytes()
        # A leaf without neighbours is like no other: it does not reach them.
        numbers[place] = kinds.setdefault(key if key[0] else (b"", str(leaf).encode()), len(kinds))
    return numbers


def _breadth_first(adjacency: csr_array, start: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distance of each switch in links (-1: not reached) and its number of shortest paths."""
    distance = np.full(adjacency.shape[0], -1, np.int64)
    paths = np.zeros(adjacency.shape[0])
    distance[start], paths[start] = 0, 1
    here: NDArray[np.intp] = np.array([start])
    while len(here):
        step = np.zeros(adjacency.shape[0])
        step[here] = paths[here]
        arriving = adjacency @ step  # cables run both ways, so the matrix is its own transpose
        depth = distance[here[0]] + 1
        here = np.flatnonzero((arriving > 0) & (distance < 0))
        distance[here], paths[here] = depth, arriving[here]
    return distance, paths
