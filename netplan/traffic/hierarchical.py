"""Hierarchical collectives: inside scale-up domains first, then over the rails, then inside again.

All-reduce of S bytes over k hosts of g ranks: reduce-scatter in each host ((g-1)/g S over the scale-up
domain), ring all-reduce of every NIC's part over the hosts (2 (k-1)/k S for all NICs of a host
together), all-gather in each host. The three follow one another.

``levels: sites`` splits the middle once more, for fabrics of several sites: reduce-scatter over the
rings of each site's hosts ((k'-1)/k' S for k' hosts), all-reduce of what each host then owns with its
counterparts at the other sites (2 (s-1)/s S/k' for s sites), all-gather over the sites' rings. Long
spans carry S for each site and direction, twice (s-1)/s, whatever the number of hosts, and a piece of
data crosses them 2 (s-1) times in turn; a flat ring sends 2 (n-1)/n S over each of its few long
edges. Where sites have unequal numbers of hosts, the parts are those of the largest one, and a host
of a smaller site owns several.

Source: the reduction of NCCL's cross-data-centre support and of NeMo's hierarchical all-reduce is of
this form; closed forms by counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netplan.traffic.demand import Phase, PhaseTraffic
from netplan.traffic.rails import chains, port_table, ranks_of_host
from netplan.traffic.registry import algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.fabric import Fabric
    from netplan.spec.traffic import CollectiveSpec
    from netplan.traffic.placement import Placement


@algorithm(
    "hierarchical",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    summary="inside scale-up domains, over rails (and sites), inside again",
    leaves_out="overlap of the stages: each waits for the one before",
)
def build(
    fabric: Fabric,
    spec: CollectiveSpec,
    placement: Placement,
    rng: np.random.Generator,
) -> Sequence[PhaseTraffic]:
    """Make the stages."""
    inside = _inside(fabric, spec, placement)
    ports = port_table(placement, spec.planes)
    site = fabric.nodes.site[fabric.host_ids[placement.hosts]]
    by_site = len(np.unique(site)) > 1 and spec.levels != "hosts"
    groups = [np.flatnonzero(site == number) for number in np.unique(site)] if by_site else []
    between: list[PhaseTraffic] = []
    if spec.kind != "all-gather":
        between += [*inside("reduce-scatter"), *_in_sites(spec, ports, groups, "reduce-scatter")]
    if not by_site:
        between += _over_hosts(spec, ports)
    else:
        between += _over_sites(spec, ports, groups)
    if spec.kind != "reduce-scatter":
        between += [*_in_sites(spec, ports, groups, "all-gather"), *inside("all-gather")]
    return between


def _inside(fabric: Fabric, spec: CollectiveSpec, placement: Placement):  # type: ignore[no-untyped-def] # noqa: ANN202
    """Return what makes the stage inside hosts."""
    g = ranks_of_host(placement)
    seconds = float((g - 1) / g * spec.size / fabric.scale_up_rate[placement.hosts].min())
    none = np.zeros(0, np.int64)

    def make(what: str) -> list[PhaseTraffic]:
        if g == 1:
            return []
        phase = Phase(f"{what} in hosts", lockstep=True, scale_up_s=seconds, scale_up_hops=1)
        return [PhaseTraffic(phase, none, none, np.zeros(0))]

    return make


def _over_hosts(spec: CollectiveSpec, ports: np.ndarray) -> list[PhaseTraffic]:
    """Return the stage over the rails: rings of all hosts."""
    k = len(ports)
    if k == 1:
        return []
    passes = (2 if spec.kind == "all-reduce" else 1) * (k - 1) / k
    return [_rings(f"{spec.kind} over rails", spec, [ports], [passes * spec.size], passes)]


def _in_sites(
    spec: CollectiveSpec, ports: np.ndarray, groups: list[np.ndarray], what: str
) -> list[PhaseTraffic]:
    """Return the stage of each site's rings, all sites at once."""
    rings = [ports[group] for group in groups if len(group) > 1]
    if not rings:
        return []
    passes = [(len(ring) - 1) / len(ring) for ring in rings]
    return [_rings(f"{what} in sites", spec, rings, [share * spec.size for share in passes], max(passes))]


def _rings(
    name: str, spec: CollectiveSpec, rings: list[np.ndarray], sizes: list[float], passes: float
) -> PhaseTraffic:
    """Return closed rings over some tables of ports."""
    blocks, first = [], 0
    for ports, whole in zip(rings, sizes, strict=True):
        blocks.append(chains(ports, whole, spec.channels, closed=True, first_ring=first))
        first += ports.shape[1] * spec.channels
    src, dst, size, channel, ring = (np.concatenate(column) for column in zip(*blocks, strict=True))
    phase = Phase(name, lockstep=True, passes=passes)
    return PhaseTraffic(phase, src, dst, size, channel=channel, ring=ring)


def _over_sites(spec: CollectiveSpec, ports: np.ndarray, groups: list[np.ndarray]) -> list[PhaseTraffic]:
    """Return the stage between sites: each part's owners, one a site, in a ring."""
    s, most = len(groups), max(len(group) for group in groups)
    passes = (2 if spec.kind == "all-reduce" else 1) * (s - 1) / s
    owner = np.stack([group[np.arange(most) * len(group) // most] for group in groups])  # (sites, parts)
    places, channels = ports.shape[1], spec.channels
    table = ports[owner].reshape(s, most * places)
    src, dst, size, lane, ring = chains(table, passes * spec.size, channels, closed=True)
    part = np.tile(np.repeat(np.arange(most), places * channels), s)
    phase = Phase(f"{spec.kind} between sites", lockstep=True, passes=passes)
    return [PhaseTraffic(phase, src, dst, size, channel=part * channels + lane, ring=ring)]
