"""Two or more sites, each a fabric of its own, joined by long links between metro switches.

For a site of bandwidth W (its NICs' line rates added up), ``oversubscription`` o, link speed c and
T switches in its top tier:

* long links of the site: K = ceil(W / (o c)), shared equally by its spans, each span's number
  rounded up to a multiple of the M metro switches; a site without a fabric asks for none;
* every top switch has x uplinks to the metro switches: ceil(max(K, M) / T), rounded up to a multiple
  of M (or, below M, to a divisor of M), dealt out in turn. In a direct network (dragonfly, torus, ...)
  the T are those of its switches that have x free ports, and x is the least number for which x T >= K;
* link i of a span joins metro switch ``i mod M`` of one site with ``i mod M`` of the other;
* the links of a span are dealt to its P fibre paths in consecutive parts, equal but for one multiple of
  M (of 1 where M does not divide them): 32 links, M = 4, P = 3 are 12, 12 and 8;
* w wavelengths on a fibre pair: a path of L links needs ceil(L / w) pairs, and is refused with fewer.

Layouts: ``mesh`` joins every pair of sites (n(n-1)/2 spans), ``ring`` neighbours in order (n, or 1 for
two sites), ``star`` all others with the hub (n - 1).

Node names of a site begin with its name and a slash: ``north/leaf-0-3``; metro switches are
``north-metro-0``. Fibre delay is 5.05 us/km: 30 km are 151.5 us one way; each path has its own.
Where a path's length is not given it is the distance of the two positions times ``route_factor``.
Paths have equal cost to every routing scheme, whatever their lengths, as parallel links have to
equal-cost routing by hops.

::

      metro 0 ======= 30 km ======= metro 0
      metro 1 ======= 30 km ======= metro 1
       |  X  |                       |  X  |
      spines                        spines       each site: any family
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import ceil, hypot
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.fabric import TIER_NAMES, FabricBuilder
from netplan.fabric.fibre import FibrePath
from netplan.topology.registry import build_fabric, family
from netplan.topology.sizes import check_cables, divisors
from netplan.units import format_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.fabric import MetroSpec
    from netplan.spec.metro import SpanSpec

_METRO_TIER = 4

#: More long links than any site has, and few enough to count with.
_MOST_LINKS = 1e12


@dataclass(frozen=True)
class Path:
    """Links of a span over one fibre route."""

    length: float
    """Fibre length [m]."""
    links: int
    """Parallel links."""
    fibre_pairs: int
    """Fibre pairs that carry them."""


@dataclass(frozen=True)
class Span:
    """Parallel long links between two sites."""

    a: int
    """Index of a site."""
    b: int
    """Index of the other site."""
    wavelengths: int
    """Links that one fibre pair can carry."""
    paths: tuple[Path, ...]
    """Diverse fibre routes."""

    @property
    def links(self) -> int:
        """Parallel links, over all paths."""
        return sum(path.links for path in self.paths)


@family(
    "metro",
    summary="two or more sites, each of any other family, joined by long links between metro switches",
    leaves_out="protection switching in the optical line; what DWDM modules, multiplexers and amplifiers add "
    "to the fibre's delay",
)
def build(spec: MetroSpec) -> Fabric:
    """Build a metro domain.

    Raises
    ------
    FabricError
        A site's top tier or a metro switch has too few ports, or a fibre path too few fibre pairs; the
        message says how many there are.
    """
    parts = _build_sites(spec)
    metro, n_metro = spec.metro, spec.metro.switches
    needed = [0 if part is None else _links_needed(spec, part) for part in parts]
    spans = plan_spans(spec, needed)
    uplinks = [
        np.zeros(0, np.int64) if part is None else _uplinks(spec, index, part, needed[index])
        for index, part in enumerate(parts)
    ]
    _check_cables(spec, parts, uplinks, spans)
    builder = FabricBuilder(spec.name, spec.kind)
    metro0: list[int] = []
    for index, (site, part, to_metro) in enumerate(zip(spec.sites, parts, uplinks, strict=True)):
        _check_metro_ports(spec, index, len(to_metro), spans)
        shift = 0 if part is None else builder.add_fabric(part, site=index, prefix=f"{site.name}/")
        metro0.append(
            builder.add_switches(
                n_metro,
                tier=_METRO_TIER,
                radix=metro.radix,
                template=f"{site.name}-metro-{{:d}}",
                parts=(range(n_metro),),
                site=index,
            )
        )
        builder.add_cables(
            shift + to_metro,
            metro0[index] + np.arange(len(to_metro)) % n_metro,
            rate=metro.link_speed,
            length=spec.cables.site_metro,
            kind="site_metro",
        )
    fibre_paths = _number_paths(spans)
    first = 0
    for span in spans:
        place = np.arange(span.links) % n_metro
        counts = [path.links for path in span.paths]
        builder.add_cables(
            metro0[span.a] + place,
            metro0[span.b] + place,
            rate=metro.link_speed,
            length=np.repeat([path.length for path in span.paths], counts),
            kind="inter_site",
            path=np.repeat(first + np.arange(len(counts)), counts),
        )
        first += len(counts)
    names = tuple(site.name for site in spec.sites)
    return builder.finish(site_names=names, fibre_paths=fibre_paths, spec=spec)


def _build_sites(spec: MetroSpec) -> list[Fabric | None]:
    """Build the fabric of each site that has one, as long as they are not absurdly large together."""
    parts: list[Fabric | None] = []
    for site in spec.sites:
        parts.append(None if site.fabric is None else build_fabric(site.fabric))
        check_cables(spec.name, sum(part.links.n_cables for part in parts if part is not None))
    return parts


def _check_cables(
    spec: MetroSpec, parts: list[Fabric | None], uplinks: list[NDArray[np.int64]], spans: list[Span]
) -> None:
    """Refuse an absurd number of cables before they are made."""
    inside = sum(part.links.n_cables for part in parts if part is not None)
    check_cables(spec.name, inside + sum(map(len, uplinks)) + sum(span.links for span in spans))


def _links_needed(spec: MetroSpec, part: Fabric) -> int:
    """Return the long links that a site asks for."""
    links = float(part.endpoint_rate.sum()) / spec.metro.link_speed / spec.metro.oversubscription
    return ceil(min(links, _MOST_LINKS))


# ---- spans -------------------------------------------------------------------------------------


def plan_spans(spec: MetroSpec, needed: list[int]) -> list[Span]:
    """Decide which sites are joined, over which fibre paths, by how many links.

    Parameters
    ----------
    spec
        The metro domain.
    needed
        Long links that each site asks for.

    Returns
    -------
    list of Span
        In the spec's order.

    Raises
    ------
    FabricError
        The links of a path do not fit the fibre pairs that it is given.
    """
    sites = spec.sites
    index = {site.name: i for i, site in enumerate(sites)}
    pairs: list[tuple[int, int, SpanSpec | None]]
    if spec.spans is not None:
        pairs = [(index[span.a], index[span.b], span) for span in spec.spans]
    elif spec.metro.layout == "mesh":
        pairs = [(a, b, None) for a, b in combinations(range(len(sites)), 2)]
    elif spec.metro.layout == "star":
        hub = index[spec.metro.hub or sites[0].name]
        pairs = [(hub, i, None) for i in range(len(sites)) if i != hub]
    else:
        ring = [(i, (i + 1) % len(sites)) for i in range(len(sites))]
        pairs = [(a, b, None) for a, b in (ring if len(sites) > 2 else ring[:1])]  # noqa: PLR2004
    degree = np.bincount([end for a, b, _ in pairs for end in (a, b)], minlength=len(sites))
    n_metro = spec.metro.switches
    spans = []
    for a, b, said in pairs:
        share = max(ceil(needed[a] / degree[a]), ceil(needed[b] / degree[b]), 1)
        spans.append(_plan_span(spec, a, b, said, ceil(share / n_metro) * n_metro))
    return spans


def _plan_span(spec: MetroSpec, a: int, b: int, said: SpanSpec | None, asked: int) -> Span:
    """Deal the links of a span to its fibre paths; ``asked`` when the spec does not say how many."""
    n_metro = spec.metro.switches
    paths: tuple[tuple[float | None, int | None, int | None], ...] = ((None, None, None),)
    links, wavelengths = asked, spec.metro.wavelengths
    if said is not None:
        paths = ((said.length, None, said.fibre_pairs),)
        if said.paths is not None:
            paths = tuple((p.length, p.links, p.fibre_pairs or said.fibre_pairs) for p in said.paths)
        links = said.links if said.links is not None else ceil(max(asked, len(paths)) / n_metro) * n_metro
        wavelengths = said.wavelengths or spec.metro.wavelengths
    counts = deal_links([path[1] for path in paths], links, n_metro)
    planned = []
    for number, ((length, _, pairs), count) in enumerate(zip(paths, counts, strict=True), start=1):
        least = ceil(count / wavelengths)
        if pairs is not None and pairs < least:
            ends = f"{spec.sites[a].name}/{spec.sites[b].name}"
            where = f"span {ends}" + (f" path-{number}" if len(paths) > 1 else "")
            raise FabricError(
                f"{spec.name}: {where}: {count} links do not fit {pairs} fibre pair(s) of "
                f"{wavelengths} wavelength(s), which carry {pairs * wavelengths}",
                hint=f"feasible: fibre_pairs of at least {least}; wavelengths of at least "
                f"{ceil(count / pairs)}; at most {pairs * wavelengths} links",
            )
        planned.append(Path(_length(spec, a, b) if length is None else length, count, pairs or least))
    return Span(a, b, wavelengths, tuple(planned))


def deal_links(said: list[int | None], links: int, n_metro: int) -> list[int]:
    """Deal the links of a span to its paths.

    Parameters
    ----------
    said
        Links of each path that says its own, else None.
    links
        Links in all, at least one for each path; not used when every path says its own.
    n_metro
        Metro switches of each site: parts are multiples of it where they can be, so that a cut path
        takes as much from each of them.

    Returns
    -------
    list of int
        Links of each path.
    """
    left = links - sum(count for count in said if count is not None)
    silent = [place for place, count in enumerate(said) if count is None]
    unit = n_metro if left % n_metro == 0 and left >= len(silent) * n_metro else 1
    each, more = divmod(left // unit, len(silent) or 1)
    parts = {place: (each + (turn < more)) * unit for turn, place in enumerate(silent)}
    return [parts[place] if count is None else count for place, count in enumerate(said)]


def _number_paths(spans: list[Span]) -> tuple[FibrePath, ...]:
    """Return the fibre paths of all spans; those between the same two sites are numbered on."""
    counts: Counter[tuple[int, int]] = Counter()
    found = []
    for span in spans:
        ends = min(span.a, span.b), max(span.a, span.b)
        for path in span.paths:
            counts[ends] += 1
            found.append(
                FibrePath(span.a, span.b, counts[ends], path.length, span.wavelengths, path.fibre_pairs)
            )
    return tuple(found)


def _length(spec: MetroSpec, a: int, b: int) -> float:
    """Return the fibre length between two sites with positions [m]."""
    here, there = spec.sites[a].position, spec.sites[b].position
    assert here is not None  # MetroSpec refuses spans of unknown length
    assert there is not None
    return hypot(here[0] - there[0], here[1] - there[1]) * spec.metro.route_factor


# ---- the metro tier of a site --------------------------------------------------------------------


def _uplinks(spec: MetroSpec, index: int, part: Fabric, needed: int) -> NDArray[np.int64]:
    """Return the switch at the lower end of each cable to the metro tier, in equal bundles.

    Raises
    ------
    FabricError
        The switches of the top tier have too few free ports.
    """
    n_metro = spec.metro.switches
    top = np.flatnonzero(part.nodes.tier == part.nodes.tier.max())
    used = np.bincount(part.links.src, minlength=part.n_nodes)[top]
    free = part.nodes.radix[top] - used
    if _is_direct(part):
        each = _fewest_uplinks(free, max(needed, n_metro), n_metro)
        if each is None:
            raise _too_few_free(spec, index, part, free, needed)
        top = top[free >= each]
        check_cables(spec.name, len(top) * each)
        return np.repeat(top, each)
    each = _uplinks_per_switch(needed, len(top), n_metro)
    if free.min() < each:
        name = spec.sites[index].name
        raise FabricError(
            f"{spec.name}: site {name!r}: each of its {len(top)} top-tier switches needs {each} ports for "
            f"the metro tier and has {free.min()} free of {int(part.nodes.radix[top].min())}",
            hint="feasible: "
            + "; ".join(_ways_to_free_ports(spec, part, top, int(free.min()), int(used.max()) + each)),
        )
    check_cables(spec.name, len(top) * each)
    return np.repeat(top, each)


def _is_direct(part: Fabric) -> bool:
    """Tell whether switches of the top tier are cabled among one another."""
    tier = part.nodes.tier
    return bool(((tier[part.links.src] == tier.max()) & (tier[part.links.dst] == tier.max())).any())


def _uplinks_per_switch(needed: int, n_top: int, n_metro: int) -> int:
    """Return the uplinks of each top-tier switch to the metro switches, in equal bundles."""
    least = ceil(max(needed, n_metro) / n_top)  # every metro switch gets at least one
    if least >= n_metro:
        return ceil(least / n_metro) * n_metro
    return next(n for n in divisors(n_metro) if n >= least)


def _fewest_uplinks(free: NDArray[np.integer], needed: int, n_metro: int) -> int | None:
    """Return the least equal number of uplinks of all switches with so many free ports; None: too few."""
    most = int(free.max(initial=0))
    bundles = [*(n for n in divisors(n_metro) if n <= most), *range(2 * n_metro, most + 1, n_metro)]
    return next((n for n in bundles if n * int((free >= n).sum()) >= needed), None)


def _too_few_free(
    spec: MetroSpec, index: int, part: Fabric, free: NDArray[np.integer], needed: int
) -> FabricError:
    """Say that a direct network has no room for its uplinks."""
    most = max(
        (n * int((free >= n).sum()) for n in range(1, int(free.max(initial=0)) + 1)),
        default=0,
    )
    ways = [f"a radix that leaves {ceil(max(needed, 1) / len(free))} ports free on each of its switches"]
    if most >= spec.metro.switches:
        ratio = float(part.endpoint_rate.sum()) / spec.metro.link_speed / most
        ways.append(f"metro.oversubscription of at least {ceil(ratio * 100) / 100:g}")
    return FabricError(
        f"{spec.name}: site {spec.sites[index].name!r}: its {len(free):,} {part.kind} switches have "
        f"{int(np.maximum(free, 0).sum()):,} free ports; equal bundles to {spec.metro.switches} "
        f"metro switches need {needed:,}",
        hint="feasible: " + "; ".join(ways),
    )


def _check_metro_ports(spec: MetroSpec, index: int, uplinks: int, spans: list[Span]) -> None:
    """Refuse a site whose metro switches have too few ports."""
    metro = spec.metro
    here = [span.links for span in spans for end in (span.a, span.b) if end == index]
    ports = ceil(uplinks / metro.switches) + sum(ceil(links / metro.switches) for links in here)
    if ports > metro.radix:
        raise FabricError(
            f"{spec.name}: site {spec.sites[index].name!r}: a metro switch needs {ports} ports of "
            f"{format_rate(metro.link_speed)}; metro.radix = {metro.radix}",
            hint=f"feasible: metro.radix of at least {ports}",
        )


def _ways_to_free_ports(
    spec: MetroSpec, part: Fabric, top: NDArray[np.int64], free: int, ports: int
) -> list[str]:
    """Name what would let a site's top tier hold its uplinks: ``ports`` ports each, or fewer uplinks."""
    metro, n_top = spec.metro, len(top)
    tier = TIER_NAMES[part.nodes.tier[top[0]]]
    radix = f"radix of at least {ports}"
    ways = {
        "fat-tree": [f"for this site, kind: clos with core.count: {n_top} and a core.{radix}"],
        "custom": [f"a {radix} for each of these switches"],
    }.get(part.kind, [f"{tier}.{radix}" + (f" with {tier}.count: {n_top}" if tier != "leaf" else "")])
    fits = [
        n
        for n in range(ceil(metro.switches / n_top), free + 1)
        if metro.switches % n == 0 or n % metro.switches == 0
    ]
    if fits:
        links = part.endpoint_rate.sum() / metro.link_speed
        least = ceil(links / (fits[-1] * n_top) * 100) / 100
        ways.append(f"metro.oversubscription of at least {least:g}")
    return ways
