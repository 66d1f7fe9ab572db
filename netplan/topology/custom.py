"""Hosts, switches and links as listed: for fabrics that no family describes.

Counts are what the file says. A host's NIC ports are its links in the order of the file; NIC i
serves the GPUs from ``i * gpus // nics`` on and is rail i. Paths are found by walking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.fabric import FabricBuilder
from netplan.topology.registry import family
from netplan.topology.sizes import check_cables, check_nics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.fabric import CustomLinkSpec, CustomSpec

_KIND_OF_TIERS = {(1, 2): "leaf_spine", (2, 3): "spine_core"}
_METRO_TIER = 4


@family(
    "custom",
    summary="switches, hosts and links as listed",
    leaves_out="nothing beyond what every fabric leaves out; paths are walked, not computed",
)
def build(spec: CustomSpec) -> Fabric:
    """Build a custom fabric.

    Raises
    ------
    FabricError
        The fabric has faults (ports, tiers, connection), of which all are listed, or is absurdly large.
    """
    check_cables(spec.name, sum(link.count for link in spec.links))
    hosts, switches = spec.hosts, spec.switches
    named = [host.site for host in hosts] + [switch.site for switch in switches]
    sites = tuple(dict.fromkeys(name for name in named if name is not None)) or ("site",)
    site = dict(zip(named, [0] * len(named), strict=True)) | {name: i for i, name in enumerate(sites)}
    builder = FabricBuilder(spec.name, spec.kind)
    builder.add_hosts(
        len(hosts),
        gpus=[host.gpus for host in hosts],
        scale_up_rate=[host.scale_up for host in hosts],
        template="{}",
        parts=([host.name for host in hosts],),
        site=[site[host.site] for host in hosts],
    )
    builder.add_switches(
        len(switches),
        tier=[switch.tier for switch in switches],
        radix=[switch.radix for switch in switches],
        template="{}",
        parts=([switch.name for switch in switches],),
        pod=[-1 if switch.pod is None else switch.pod for switch in switches],
        rail=[-1 if switch.rail is None else switch.rail for switch in switches],
        site=[site[switch.site] for switch in switches],
    )
    names = [host.name for host in hosts] + [switch.name for switch in switches]
    node = {name: i for i, name in enumerate(names)}
    tier = np.array([0] * len(hosts) + [switch.tier for switch in switches])
    place = np.array([site[name] for name in named])
    ends = np.array([(node[link.a], node[link.b]) for link in spec.links])
    swap = tier[ends[:, 0]] > tier[ends[:, 1]]
    low, high = np.where(swap, ends[:, 1], ends[:, 0]), np.where(swap, ends[:, 0], ends[:, 1])
    at_host = tier[low] == 0
    _add_nics(builder, spec, low, high, np.flatnonzero(at_host))
    for i in np.flatnonzero(~at_host):
        tiers = (int(tier[low[i]]), int(tier[high[i]]))
        between_sites = tiers[0] == tiers[1] and place[low[i]] != place[high[i]]
        link: CustomLinkSpec = spec.links[i]
        builder.add_cables(
            np.full(link.count, low[i]),
            np.full(link.count, high[i]),
            rate=link.speed,
            length=link.length,
            kind=link.kind or ("inter_site" if between_sites else _kind(tiers)),
        )
    return builder.finish(site_names=sites, spec=spec)


def _kind(tiers: tuple[int, int]) -> str:
    """Return the kind of a cable from the tiers of its ends, the lower first."""
    return "site_metro" if tiers[1] == _METRO_TIER else _KIND_OF_TIERS.get(tiers, "other")


def _add_nics(
    builder: FabricBuilder, spec: CustomSpec, low: NDArray[Any], high: NDArray[Any], rows: NDArray[Any]
) -> None:
    """Add the NIC ports: the links ``rows``, host by host in the order of the file."""
    count = np.array([link.count for link in spec.links])
    rows = rows[np.argsort(low[rows], kind="stable")]
    row = np.repeat(rows, count[rows])
    host = low[row]
    nics = np.bincount(host, minlength=len(spec.hosts))
    check_nics(spec.name, int(nics.max()))
    rail = np.arange(len(row)) - (np.cumsum(nics) - nics)[host]
    gpus = np.array([item.gpus for item in spec.hosts])
    builder.add_endpoints(
        host,
        high[row],
        rate=np.array([link.speed for link in spec.links])[row],
        length=np.array([link.length for link in spec.links])[row],
        gpu=rail * gpus[host] // nics[host],
        rail=rail,
    )
