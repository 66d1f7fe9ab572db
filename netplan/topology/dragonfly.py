r"""Dragonfly: groups of routers joined all to all, and the groups joined all to all.

Kim, Dally, Scott, Abts, *Technology-Driven, Highly-Scalable Dragonfly Topology*, ISCA 2008. With
p endpoints and h global cables on each router, a routers in a group and g groups:

* routers g a, endpoints g a p, ports of a router p + (a - 1) b + h, b the local bundle;
* local cables g b a (a - 1) / 2, global cables g a h / 2;
* g <= a h + 1. With fewer groups each pair has a h / (g - 1) cables; when that is no whole number
  the request is refused, or pairs differ by one cable (``uneven: true``).

Balanced: a = 2p = 2h, so a router of r ports has h = floor((r + 1) / 4). What the spec omits
follows from that: h from the radix, or the smallest h whose largest dragonfly holds the hosts.
h = 16 (63 of 64 ports), g = 511: 261,632 endpoints, 16,352 routers, 384,272 cables between them
(DeepSeek-V3, ISCA 2025, Table 3, "DF"), 2 pairs of each group having two cables.

::

    group 0           group 1         p = 2, a = 2, h = 1, g = 3
    r0 ---- r1        r0 ---- r1
    |\  \   |\  \_____/|\      |\     each router: 2 hosts, 1 local and 1 global cable
    h h  \  h h       h h     /h h
          \______    ________/
                 r1 r0    group 2

Order of ids: routers by group, endpoints by host and NIC, local cables by group and pair of
routers, global cables by pair of groups (`netplan.fabric.direct`). Which router has which global
cable: `netplan.topology.direct`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.fabric.direct import DragonflyStructure
from netplan.topology.direct import (
    Counts,
    Routers,
    build_direct,
    check_groups,
    check_radix,
    check_size,
    count_hosts,
    endpoint_routers,
    fitting_groups,
    group_cables,
    hosts_per_router,
    join_groups,
)
from netplan.topology.registry import family

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.spec.direct import DirectHostsSpec, DragonflySpec


def dragonfly_counts(p: int, a: int, h: int, g: int, bundle: int = 1) -> Counts:
    """Return how large a dragonfly is whose global ports are all in use.

    Examples
    --------
    >>> dragonfly_counts(p=16, a=32, h=16, g=511)  # DeepSeek-V3, Table 3
    Counts(endpoints=261632, switches=16352, cables=384272)
    """
    return Counts(g * a * p, g * a, g * bundle * a * (a - 1) // 2 + g * a * h // 2)


def balanced_links(radix: int, bundle: int = 1) -> int:
    """Return the global links h of the largest balanced router (a = 2p = 2h) of so many ports.

    Examples
    --------
    >>> balanced_links(64)
    16
    """
    return (radix + bundle) // (2 + 2 * bundle)


@family(
    "dragonfly",
    summary="groups of routers joined all to all, and all groups joined with each other",
    leaves_out="groups that are not full meshes (Cray's two-dimensional ones), unequal groups",
)
def build(spec: DragonflySpec) -> Fabric:
    """Build a dragonfly.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    name, hosts = spec.name, spec.hosts
    bundle = spec.group.bundle
    p, a, h = router_sizes(spec)
    per_router = hosts_per_router(hosts, p, a, name)
    what = f"a router: {p} endpoints + {a - 1} routers of its group x {bundle} + {h} global links"
    most = balanced_links(spec.radix or 0, bundle)
    feasible = f"balanced with {spec.radix} ports: {most} endpoints, {2 * most} routers, {most} global links"
    radix = check_radix(name, what, p + (a - 1) * bundle + h, spec.radix, feasible if most else "")
    per_group = per_router * a // (hosts.n_nics if hosts.attach == "spread" else 1)
    need = None if hosts.count is None else max(-(-hosts.count // per_group), 2)
    g = spec.groups or fitting_groups(name, a * h, need, uneven=spec.uneven)
    check_groups(name, a * h, g, need or 2, uneven=spec.uneven)
    n_hosts = count_hosts(hosts, g * per_group, name, "more groups, or more endpoints a router")
    check_size(name, dragonfly_counts(p, a, h, g, bundle))
    ptr, low, high = join_groups(g, a, h, spec.arrangement)
    structure = DragonflyStructure(
        endpoint_router=endpoint_routers(hosts, n_hosts, per_router),
        router_node=0,
        first_cable=0,
        groups=g,
        routers=a,
        local_bundle=bundle,
        global_ptr=ptr,
        global_low=low,
        global_high=high,
    )
    group, place = np.divmod(np.arange(g * a, dtype=np.int32), a)
    return build_direct(
        spec,
        structure,
        n_hosts=n_hosts,
        routers=Routers("router-{:d}-{:d}", (group, place), radix, pod=group),
        cables=group_cables(spec, structure.n_local, len(low)),
    )


def router_sizes(spec: DragonflySpec) -> tuple[int, int, int]:
    """Return p, a and h: those given are kept, the others balance them.

    Raises
    ------
    FabricError
        The radix is too small for any.
    """
    p, a, h = spec.router.endpoints, spec.group.routers, spec.router.global_links
    if h is None and a is not None:
        h = max(a // 2, 1)
    elif h is None and p is not None:
        h = p
    elif h is None and spec.radix is not None:
        h = balanced_links(spec.radix, spec.group.bundle)
        if h < 1:
            raise FabricError(
                f"{spec.name}: radix = {spec.radix}: a router has an endpoint, a global link and "
                f"{spec.group.bundle} to another router of its group",
                hint=f"feasible: radix of at least {2 + spec.group.bundle}",
            )
    elif h is None:
        h = next(n for n in count(1) if _holds(spec.hosts, n) >= (spec.hosts.count or 0))
    return (h if p is None else p, 2 * h if a is None else a, h)


def _holds(hosts: DirectHostsSpec, h: int) -> int:
    """Return the hosts that the largest balanced dragonfly holds."""
    nics, groups = hosts.n_nics, 2 * h * h + 1
    if hosts.attach == "one-router":
        return groups * 2 * h * (h // nics)
    return groups * (2 * h // nics) * h if 2 * h % nics == 0 else 0
