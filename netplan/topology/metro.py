"""Two or more sites, each a fabric of its own, joined by long links between metro switches.

For a site of bandwidth W (its NICs' line rates added up), ``oversubscription`` o, link speed c and
T switches in its top tier:

* long links of the site: K = ceil(W / (o c)), shared equally by its spans, each span's number
  rounded up to a multiple of the M metro switches;
* every top switch has x uplinks to the metro switches: ceil(max(K, M) / T), rounded up to a multiple
  of M (or, below M, to a divisor of M), dealt out in turn;
* link i of a span joins metro switch ``i mod M`` of one site with ``i mod M`` of the other.

Node names of a site begin with its name and a slash: ``north/leaf-0-3``; metro switches are
``north-metro-0``. Fibre delay is 5.05 us/km: 30 km are 151.5 us one way. Where a span's length is
not given it is the distance of the two positions times ``route_factor``.

::

      metro 0 ======= 30 km ======= metro 0
      metro 1 ======= 30 km ======= metro 1
       |  X  |                       |  X  |
      spines                        spines       each site: any family
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, hypot
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.fabric import TIER_NAMES, FabricBuilder
from netplan.topology.registry import build_fabric, family
from netplan.topology.sizes import check_cables, divisors
from netplan.units import format_rate

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.fabric import MetroSpec

_METRO_TIER = 4

#: More long links than any site has, and few enough to count with.
_MOST_LINKS = 1e12


@dataclass(frozen=True)
class Span:
    """Parallel long links between two sites."""

    a: int
    """Index of a site."""
    b: int
    """Index of the other site."""
    length: float
    """Fibre length [m]."""
    links: int
    """Parallel links."""


@family(
    "metro",
    summary="two or more sites, each of any other family, joined by long links between metro switches",
    leaves_out="protection switching, wavelengths and amplifiers of the optical line",
)
def build(spec: MetroSpec) -> Fabric:
    """Build a metro domain.

    Raises
    ------
    FabricError
        A site's top tier or a metro switch has too few ports; the message says how many are free.
    """
    parts = _build_sites(spec)
    metro, n_metro = spec.metro, spec.metro.switches
    wanted = [float(part.endpoint_rate.sum()) / metro.link_speed / metro.oversubscription for part in parts]
    needed = [ceil(min(links, _MOST_LINKS)) for links in wanted]
    spans = plan_spans(spec, needed)
    builder = FabricBuilder(spec.name, spec.kind)
    metro0: list[int] = []
    for index, (site, part) in enumerate(zip(spec.sites, parts, strict=True)):
        shift = builder.add_fabric(part, site=index, prefix=f"{site.name}/")
        top = np.flatnonzero(part.nodes.tier == part.nodes.tier.max())
        uplinks = _uplinks_per_switch(needed[index], len(top), n_metro)
        _check_ports(spec, index, part, top, uplinks, [span for span in spans if index in (span.a, span.b)])
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
        place = np.arange(len(top) * uplinks)
        builder.add_cables(
            shift + np.repeat(top, uplinks),
            metro0[index] + place % n_metro,
            rate=metro.link_speed,
            length=spec.cables.site_metro,
            kind="site_metro",
        )
    for span in spans:
        place = np.arange(span.links) % n_metro
        builder.add_cables(
            metro0[span.a] + place,
            metro0[span.b] + place,
            rate=metro.link_speed,
            length=span.length,
            kind="inter_site",
        )
    return builder.finish(site_names=tuple(site.name for site in spec.sites), spec=spec)


def _build_sites(spec: MetroSpec) -> list[Fabric]:
    """Build the fabric of each site, as long as they are not absurdly large together."""
    parts: list[Fabric] = []
    for site in spec.sites:
        parts.append(build_fabric(site.fabric))
        check_cables(spec.name, sum(part.links.n_cables for part in parts))
    return parts


def plan_spans(spec: MetroSpec, needed: list[int]) -> list[Span]:
    """Decide which sites are joined, over what length, by how many links.

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
    """
    sites = spec.sites
    index = {site.name: i for i, site in enumerate(sites)}
    if spec.spans is not None:
        pairs = [(index[span.a], index[span.b], span.length, span.links) for span in spec.spans]
    elif spec.metro.layout == "mesh":
        pairs = [(a, b, None, None) for a, b in combinations(range(len(sites)), 2)]
    else:
        ring = [(i, (i + 1) % len(sites)) for i in range(len(sites))]
        pairs = [(a, b, None, None) for a, b in (ring if len(sites) > 2 else ring[:1])]  # noqa: PLR2004
    degree = np.bincount([end for a, b, *_ in pairs for end in (a, b)], minlength=len(sites))
    spans = []
    for a, b, length, links in pairs:
        if links is None:
            share = max(ceil(needed[a] / degree[a]), ceil(needed[b] / degree[b]))
            links = ceil(share / spec.metro.switches) * spec.metro.switches  # noqa: PLW2901
        spans.append(Span(a, b, _length(spec, a, b) if length is None else length, links))
    return spans


def _length(spec: MetroSpec, a: int, b: int) -> float:
    """Return the fibre length between two sites with positions [m]."""
    here, there = spec.sites[a].position, spec.sites[b].position
    assert here is not None  # MetroSpec refuses spans of unknown length
    assert there is not None
    return hypot(here[0] - there[0], here[1] - there[1]) * spec.metro.route_factor


def _uplinks_per_switch(needed: int, n_top: int, n_metro: int) -> int:
    """Return the uplinks of each top-tier switch to the metro switches, in equal bundles."""
    least = ceil(max(needed, n_metro) / n_top)  # every metro switch gets at least one
    if least >= n_metro:
        return ceil(least / n_metro) * n_metro
    return next(n for n in divisors(n_metro) if n >= least)


def _check_ports(
    spec: MetroSpec, index: int, part: Fabric, top: np.ndarray, uplinks: int, spans: list[Span]
) -> None:
    """Refuse a site whose switches have no ports for the metro tier."""
    metro = spec.metro
    used = np.bincount(part.links.src, minlength=part.n_nodes)[top]
    free = int((part.nodes.radix[top] - used).min())
    name = spec.sites[index].name
    if free < uplinks:
        raise FabricError(
            f"{spec.name}: site {name!r}: each of its {len(top)} top-tier switches needs {uplinks} ports for "
            f"the metro tier and has {free} free of {int(part.nodes.radix[top].min())}",
            hint="feasible: "
            + "; ".join(_ways_to_free_ports(spec, part, top, free, int(used.max()) + uplinks)),
        )
    ports = ceil(len(top) * uplinks / metro.switches) + sum(
        ceil(span.links / metro.switches) for span in spans
    )
    if ports > metro.radix:
        raise FabricError(
            f"{spec.name}: site {name!r}: a metro switch needs {ports} ports of "
            f"{format_rate(metro.link_speed)}; metro.radix = {metro.radix}",
            hint=f"feasible: metro.radix of at least {ports}",
        )
    check_cables(spec.name, part.links.n_cables + len(top) * uplinks + sum(span.links for span in spans))


def _ways_to_free_ports(spec: MetroSpec, part: Fabric, top: np.ndarray, free: int, ports: int) -> list[str]:
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
