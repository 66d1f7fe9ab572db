r"""Dragonfly+: groups that are leaf-spine networks, their spines joined with the spines of other groups.

Shpiner et al., *Dragonfly+: Low Cost Topology for Scaling Datacenters*, HiPINEB 2017. With p
endpoints on each of L leaves, S spines with h global cables each, and g groups:

* switches g (L + S), endpoints g L p; ports of a leaf p + S b, of a spine L b + h, b the bundle;
* cables in groups g L S b, between groups g S h / 2;
* g <= S h + 1. With fewer groups each pair has S h / (g - 1) cables; when that is no whole number
  the request is refused, or pairs differ by one cable (``uneven: true``).

Balanced, with r-port switches: p = L = S = h = r/2, so (r/2)^2 endpoints a group and at most
(r/2)^2 + 1 groups: r^4/16 + r^2/4 endpoints.

Leonardo's 23 cells have 18 spines each and one cable from each spine to every other cell: h = 22,
18 cables a pair of cells (Turisini, Amati, Cestari, *LEONARDO*, JLSRF 8, 2024).

::

    group 0                  group 1
    spine 0    spine 1 ------ spine 0 ...     spines: global cables
      |    \  /    |
    leaf 0     leaf 1                         leaves: endpoints
    h  h       h  h

Order of ids: leaves by group, spines by group, endpoints by host and NIC; cables in groups by
leaf, then spine; global cables by pair of groups (`netplan.fabric.direct`). Which spine has which
global cable: `netplan.topology.direct`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.fabric.direct import DragonflyPlusStructure
from netplan.topology.direct import (
    Counts,
    Routers,
    Spines,
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
    from netplan.spec.direct import DirectHostsSpec, DragonflyPlusSpec


def dragonfly_plus_counts(p: int, leaves: int, spines: int, h: int, g: int, bundle: int = 1) -> Counts:
    """Return how large a dragonfly+ is whose global ports are all in use.

    Examples
    --------
    >>> dragonfly_plus_counts(p=2, leaves=2, spines=2, h=2, g=5)
    Counts(endpoints=20, switches=20, cables=30)
    """
    return Counts(g * leaves * p, g * (leaves + spines), g * leaves * spines * bundle + g * spines * h // 2)


@family(
    "dragonfly-plus",
    summary="groups that are leaf-spine networks, their spines joined with the spines of other groups",
    leaves_out="groups of different size, as those of Leonardo's storage cells",
)
def build(spec: DragonflyPlusSpec) -> Fabric:
    """Build a dragonfly+.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    name, hosts, bundle = spec.name, spec.hosts, spec.group.bundle
    p, leaves, spines, h = group_sizes(spec)
    per_leaf = hosts_per_router(hosts, p, leaves, name)
    half = (spec.radix or 0) // (1 + bundle)
    feasible = f"balanced with {spec.radix} ports: {half} leaves and spines a group" if half else ""
    leaf_radix = check_radix(
        name,
        f"a leaf: {p} endpoints + {spines} spines x {bundle}",
        p + spines * bundle,
        spec.leaf.radix or spec.radix,
        feasible,
    )
    spine_radix = check_radix(
        name,
        f"a spine: {leaves} leaves x {bundle} + {h} global links",
        leaves * bundle + h,
        spec.spine.radix or spec.radix,
        feasible,
    )
    per_group = per_leaf * leaves // (hosts.n_nics if hosts.attach == "spread" else 1)
    need = None if hosts.count is None else max(-(-hosts.count // per_group), 2)
    g = spec.groups or fitting_groups(name, spines * h, need, uneven=spec.uneven)
    check_groups(name, spines * h, g, need or 2, uneven=spec.uneven)
    n_hosts = count_hosts(hosts, g * per_group, name, "more groups, or more endpoints a leaf")
    check_size(name, dragonfly_plus_counts(p, leaves, spines, h, g, bundle))
    ptr, low, high = join_groups(g, spines, h, spec.arrangement)
    structure = DragonflyPlusStructure(
        endpoint_router=endpoint_routers(hosts, n_hosts, per_leaf),
        router_node=0,
        first_cable=0,
        groups=g,
        routers=leaves,
        spines=spines,
        spine_node=0,
        leaf_bundle=bundle,
        global_ptr=ptr,
        global_low=low,
        global_high=high,
    )
    group, place = np.divmod(np.arange(g * leaves, dtype=np.int32), leaves)
    above, position = np.divmod(np.arange(g * spines, dtype=np.int32), spines)
    return build_direct(
        spec,
        structure,
        n_hosts=n_hosts,
        routers=Routers("leaf-{:d}-{:d}", (group, place), leaf_radix, pod=group),
        spines=Spines(g * spines, "spine-{:d}-{:d}", (above, position), spine_radix, pod=above),
        cables=group_cables(spec, structure.n_local, len(low)),
    )


def group_sizes(spec: DragonflyPlusSpec) -> tuple[int, int, int, int]:
    """Return p, L, S and h: those given are kept, the others balance them.

    Raises
    ------
    FabricError
        The radix is too small for any.
    """
    bundle = spec.group.bundle
    p, h = spec.leaf.endpoints, spec.spine.global_links
    leaves, spines = spec.group.leaves, spec.group.spines
    half = next((n for n in (spines, leaves, p, h) if n is not None), None)
    if half is None and spec.radix is not None:
        half = spec.radix // (1 + bundle)
        if half < 1:
            raise FabricError(
                f"{spec.name}: radix = {spec.radix}: a leaf has an endpoint and {bundle} cables to a spine",
                hint=f"feasible: radix of at least {1 + bundle}",
            )
    elif half is None:
        half = next(n for n in count(1) if _holds(spec.hosts, n, bundle) >= (spec.hosts.count or 0))
    spines = half if spines is None else spines
    leaves = half if leaves is None else leaves
    return (
        spines * bundle if p is None else p,
        leaves,
        spines,
        leaves * bundle if h is None else h,
    )


def _holds(hosts: DirectHostsSpec, half: int, bundle: int) -> int:
    """Return the hosts that the largest balanced dragonfly+ with ``half`` leaves and spines a group holds."""
    nics, p, groups = hosts.n_nics, half * bundle, half * half * bundle + 1
    if hosts.attach == "one-router":
        return groups * half * (p // nics)
    return groups * (half // nics) * p if half % nics == 0 else 0
