"""What the direct families share: hosts on routers, global cables between groups, checks of sizes.

*Global ports* of a group are numbered through its routers (spines in a dragonfly+): port ``t`` is
on router ``t // h``. The first ``g - 1`` ports reach each other group once, the next ``g - 1``
again, and so on (*rounds*), so that parallel cables of a pair of groups are on different routers.
Within a round, place ``s`` of group ``i`` leads

* ``palmtree``: to group ``i - s - 1`` (modulo g), which has the cable at its place ``g - s - 2``;
* ``consecutive``: to group ``s`` where ``s < i``, else ``s + 1``.

(The names are those of Camarero, Vallejo, Beivide, *Topological Characterization of Hamming and
Dragonfly Networks and Its Implications on Routing*, ACM TACO 11(4), 2014.) Ports that are left
over, fewer than ``g - 1``, are used when the spec says ``uneven``: by one more cable each to the
groups before and after at distance 1, 2, ..., and at distance g/2 when their number is odd.

References
----------
Kim, Dally, Scott, Abts, *Technology-Driven, Highly-Scalable Dragonfly Topology*, ISCA 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import FabricError
from netplan.fabric import LINK_KINDS, FabricBuilder
from netplan.topology.sizes import MOST_ENDPOINTS, check_cables, check_nics, check_nics_per_gpu
from netplan.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from netplan.fabric import Fabric
    from netplan.fabric.direct import DirectStructure, HyperXStructure, TorusStructure
    from netplan.spec.direct import (
        DirectHostsSpec,
        DirectSpec,
        DragonflyPlusSpec,
        DragonflySpec,
        HyperXSpec,
        TorusSpec,
    )

#: Numbers named when one does not fit.
_NAMED = 4


@dataclass(frozen=True)
class Counts:
    """How large a direct network is."""

    endpoints: int
    """NIC ports that it holds."""
    switches: int
    """Routers, and spines in a dragonfly+."""
    cables: int
    """Cables between switches."""


# ---- hosts -------------------------------------------------------------------------------------


def hosts_per_router(hosts: DirectHostsSpec, endpoints: int, block: int, name: str) -> int:
    """Return how many hosts a router serves: with all their NICs, or with one each when spread.

    Parameters
    ----------
    hosts
        What the spec says of them.
    endpoints
        NIC ports on a router.
    block
        Routers in a row that a spread host must not leave: its NICs must divide them.
    name
        Name of the fabric, for messages.

    Raises
    ------
    FabricError
        Not one fits; the NICs of a spread host do not divide ``block``; NICs that do not fit the GPUs.
    """
    nics = hosts.n_nics
    check_nics(name, nics)
    check_nics_per_gpu(name, nics, hosts.gpus)
    if hosts.attach == "spread":
        if block % nics:
            fits = [n for n in range(1, min(block, nics) + 1) if block % n == 0]
            raise FabricError(
                f"{name}: hosts.attach = spread: {nics} NICs do not divide the {block} routers in a row "
                "that hosts are spread over",
                hint=f"feasible: hosts.nics of {named(fits, nics)}, or attach: one-router",
            )
        return endpoints
    if endpoints < nics:
        raise FabricError(
            f"{name}: a host has {nics} NICs, a router {endpoints} NIC ports: no host fits",
            hint="spread the NICs over routers (hosts.attach: spread), or give routers more endpoints",
        )
    return endpoints // nics


def count_hosts(hosts: DirectHostsSpec, room: int, name: str, larger: str) -> int:
    """Return how many hosts there are: as many as there is room for when the spec does not say.

    Parameters
    ----------
    hosts
        What the spec says of them.
    room
        Hosts that the routers hold.
    name
        Name of the fabric, for messages.
    larger
        What would hold more, for hints.

    Raises
    ------
    FabricError
        More than there is room for, or more endpoints than netplan builds.
    """
    count = room if hosts.count is None else hosts.count
    if count > room:
        raise FabricError(
            f"{name}: {format_count(count)} hosts with {hosts.n_nics} NICs, but the routers hold "
            f"{format_count(room)}",
            hint=f"feasible: at most {format_count(room)} hosts; {larger}",
        )
    if count * hosts.n_nics > MOST_ENDPOINTS:
        raise FabricError(
            f"{name}: {format_count(count)} hosts with {hosts.n_nics} NICs are "
            f"{format_count(count * hosts.n_nics)} endpoints; netplan builds up to "
            f"{format_count(MOST_ENDPOINTS)}",
            hint="check the sizes, or give hosts.count",
        )
    return count


def endpoint_routers(hosts: DirectHostsSpec, n_hosts: int, per_router: int) -> NDArray[np.int32]:
    """(n_endpoints,) router of each NIC, host by host.

    Parameters
    ----------
    hosts
        What the spec says of them.
    n_hosts
        How many there are.
    per_router
        Hosts that a router serves, by `hosts_per_router`.
    """
    nics = hosts.n_nics
    host = np.repeat(np.arange(n_hosts), nics)
    if hosts.attach == "one-router":
        return np.asarray(host // per_router, np.int32)
    return np.asarray(host // per_router * nics + np.tile(np.arange(nics), n_hosts), np.int32)


# ---- sizes -------------------------------------------------------------------------------------


def check_radix(name: str, what: str, need: int, radix: int | None, largest: str) -> int:
    """Return the ports of a switch: as many as it uses when the spec does not say.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    what
        What the ports are for, such as "a router: 16 endpoints + ...".
    need
        Ports in use.
    radix
        Ports that there are; None for as many as are used.
    largest
        What is feasible, for the hint.

    Raises
    ------
    FabricError
        More are needed than there are.
    """
    if radix is not None and need > radix:
        raise FabricError(
            f"{name}: {what} = {need} ports; the radix is {radix}",
            hint=f"feasible: radix of at least {need}{f'; {largest}' if largest else ''}",
        )
    return need if radix is None else radix


def check_size(name: str, counts: Counts) -> None:
    """Refuse what is absurdly large before memory is taken.

    Raises
    ------
    FabricError
        More switches or cables than netplan builds.
    """
    if counts.switches > MOST_ENDPOINTS:
        raise FabricError(
            f"{name}: {format_count(counts.switches)} switches; netplan builds up to "
            f"{format_count(MOST_ENDPOINTS)}",
            hint="check the sizes",
        )
    check_cables(name, counts.cables)


def named(numbers: Sequence[int], wanted: int) -> str:
    """Return the few numbers nearest to ``wanted``, ascending, as text."""
    return ", ".join(format_count(n) for n in sorted(sorted(numbers, key=lambda n: abs(n - wanted))[:_NAMED]))


# ---- global cables -----------------------------------------------------------------------------


def group_numbers(ports: int, *, uneven: bool) -> list[int]:
    """Return the numbers of groups that a group of so many global ports can be joined with, ascending.

    Parameters
    ----------
    ports
        Global ports of a group.
    uneven
        Whether pairs may differ by one cable. Then all ports are used by any number of groups, except
        that an odd number of ports left over needs an even number of groups.
    """
    if uneven:
        return [g for g in range(2, ports + 2) if ports % (g - 1) % 2 == 0 or g % 2 == 0]
    return [g for g in range(2, ports + 2) if ports % (g - 1) == 0]


def check_groups(name: str, ports: int, groups: int, need: int, *, uneven: bool) -> None:
    """Refuse a number of groups that cannot be joined.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    ports
        Global ports of a group.
    groups
        Groups asked for.
    need
        Groups that the hosts fill: fewer are not named as feasible.
    uneven
        As in `group_numbers`.

    Raises
    ------
    FabricError
        More groups than global ports reach, or ports that do not divide; names the nearest feasible.
    """
    fits = group_numbers(ports, uneven=uneven)
    if groups in fits:
        return
    if groups > ports + 1:
        why = f"a group has {ports} global ports, one for each other group at most"
    elif uneven:
        why = f"{groups} groups with {ports % (groups - 1)} global ports left over each: an odd number in all"
    else:
        why = f"a group's {ports} global ports do not divide into equal bundles to {groups - 1} other groups"
    ways = f"feasible: groups of {named([n for n in fits if n >= need] or fits, groups)}"
    if not uneven and groups in group_numbers(ports, uneven=True):
        ways += "; or uneven: true, some pairs having one cable more"
    raise FabricError(f"{name}: groups = {groups}: {why}", hint=ways)


def fitting_groups(name: str, ports: int, need: int | None, *, uneven: bool) -> int:
    """Return the number of groups: the smallest feasible one that is enough, or the largest.

    Parameters
    ----------
    name
        Name of the fabric, for messages.
    ports
        Global ports of a group.
    need
        Groups that the hosts fill; None for as many as can be.
    uneven
        As in `group_numbers`.

    Raises
    ------
    FabricError
        The hosts fill more groups than can be joined.
    """
    fits = group_numbers(ports, uneven=uneven)
    if need is None:
        return fits[-1]
    enough = next((g for g in fits if g >= need), None)
    if enough is None:
        raise FabricError(
            f"{name}: the hosts fill {format_count(need)} groups, but a group has {ports} global ports, "
            f"so at most {fits[-1]} groups can be joined",
            hint=f"feasible: hosts for at most {fits[-1]} groups; larger groups; more global links",
        )
    return enough


def join_groups(
    groups: int, routers: int, ports: int, arrangement: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Lay the global cables (see the module).

    Parameters
    ----------
    groups, routers
        Groups, and routers of each.
    ports
        Global ports of a router.
    arrangement
        ``palmtree`` or ``consecutive``.

    Returns
    -------
    global_ptr : (n_pairs + 1,)
        As `netplan.fabric.direct.DragonflyStructure` has it.
    global_low, global_high : (n_global,)
        Places of the two routers, by pair of groups.
    """
    g, total = groups, routers * ports
    rounds, left = divmod(total, g - 1)
    low, high = np.triu_indices(g, 1)  # pairs of groups in their order
    if arrangement == "palmtree":
        place_low, place_high = (low - high - 1) % g, high - low - 1
    else:
        place_low, place_high = high - 1, low
    first = np.arange(rounds) * (g - 1)
    pair = [np.repeat(np.arange(len(low)), rounds)]
    ends = [[(place[:, None] + first).ravel()] for place in (place_low, place_high)]
    group = np.arange(g)
    base = rounds * (g - 1)
    for distance in range(1, left // 2 + 1):  # two ports each: to the group after, from the group before
        _add_extra(group, (group + distance) % g, (base, base + 1), g, pair, ends)
        base += 2
    if left % 2:
        half = np.arange(g // 2)
        _add_extra(half, half + g // 2, (base, base), g, pair, ends)
    number = np.concatenate(pair)
    order = np.argsort(number, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(low)))])
    router_low, router_high = (np.concatenate(end)[order] // ports for end in ends)
    return ptr.astype(np.int32), router_low.astype(np.int32), router_high.astype(np.int32)


def _add_extra(
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    port: tuple[int, int],
    n: int,
    pair: list[NDArray[np.int64]],
    ends: list[list[NDArray[np.int64]]],
) -> None:
    """Add one cable from each group ``a`` at port ``port[0]`` to group ``b`` at port ``port[1]``."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    pair.append(low * (2 * n - low - 1) // 2 + high - low - 1)
    ends[0].append(np.where(a < b, port[0], port[1]))
    ends[1].append(np.where(a < b, port[1], port[0]))


# ---- the fabric --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Routers:
    """What the switches with hosts are called, and where they are."""

    template: str
    parts: tuple[Any, ...]
    radix: int
    pod: ArrayLike = -1


@dataclass(frozen=True)
class Spines:
    """Switches without hosts: those of a dragonfly+."""

    count: int
    template: str
    parts: tuple[Any, ...]
    radix: int
    pod: ArrayLike


@dataclass(frozen=True)
class Laid:
    """Cables between switches, in the order of the structure."""

    rate: ArrayLike
    """Line rate [bytes/s]."""
    length: ArrayLike
    """Length [m]."""
    kind: ArrayLike
    """Name from `LINK_KINDS`, or numbers of them."""


def build_direct(
    spec: DirectSpec,
    structure: DirectStructure,
    *,
    n_hosts: int,
    routers: Routers,
    cables: Laid,
    spines: Spines | None = None,
) -> Fabric:
    """Build the fabric: hosts, routers and spines, NIC ports, then the cables of the structure.

    Parameters
    ----------
    spec
        The validated spec.
    structure
        Where everything is; node and cable ids in it are set here.
    n_hosts
        How many hosts there are.
    routers, spines
        The switches.
    cables
        What is laid, one value or one for each cable of ``structure.cable_ends()``.
    """
    hosts, nics = spec.hosts, spec.hosts.n_nics
    builder = FabricBuilder(spec.name, spec.kind)
    host0 = builder.add_hosts(
        n_hosts,
        gpus=hosts.gpus,
        scale_up_rate=hosts.scale_up,
        template="host-{:05d}",
        parts=(range(n_hosts),),
    )
    spread = hosts.attach == "spread"
    router0 = builder.add_switches(
        structure.n_routers,
        tier=1,
        radix=routers.radix,
        template=routers.template,
        parts=routers.parts,
        pod=routers.pod,
        rail=np.arange(structure.n_routers) % nics if spread else -1,
    )
    nodes: dict[str, Any] = {"router_node": router0}
    if spines is not None:
        nodes["spine_node"] = builder.add_switches(
            spines.count,
            tier=2,
            radix=spines.radix,
            template=spines.template,
            parts=spines.parts,
            pod=spines.pod,
        )
    nic = np.tile(np.arange(nics), n_hosts)
    builder.add_endpoints(
        host0 + np.repeat(np.arange(n_hosts), nics),
        router0 + structure.endpoint_router,
        rate=hosts.nic_speed,
        length=spec.cables.host_leaf,
        gpu=nic * hosts.gpus // nics,
        rail=nic,
    )
    structure = replace(structure, first_cable=n_hosts * nics, **nodes)
    low, high = structure.cable_ends()
    builder.add_cables(low, high, rate=cables.rate, length=cables.length, kind=cables.kind)
    return builder.finish(direct=structure, spec=spec)


def build_grid(
    spec: TorusSpec | HyperXSpec,
    structure: Callable[..., TorusStructure | HyperXStructure],
    counts: Counts,
    bundles: Sequence[int],
    endpoints: int,
    to_others: int,
    what: str,
) -> Fabric:
    """Build a fabric whose routers stand on a grid.

    Parameters
    ----------
    spec
        The validated spec.
    structure
        Makes the structure from the fields that all grids have.
    counts
        How large it is.
    bundles
        Parallel cables between neighbours, per dimension.
    endpoints, to_others
        Ports of a router to NICs, and to other routers.
    what
        What needs these ports, for messages.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    name, hosts, dims = spec.name, spec.hosts, spec.dims
    most = (spec.radix or 0) - to_others
    radix = check_radix(
        name, what, endpoints + to_others, spec.radix, f"at most {most} endpoints" if most > 0 else ""
    )
    per_router = hosts_per_router(hosts, endpoints, dims[0], name)
    room = per_router * prod(dims) // (hosts.n_nics if hosts.attach == "spread" else 1)
    n_hosts = count_hosts(hosts, room, name, "larger dims, or more endpoints a router")
    check_size(name, counts)
    made = structure(
        endpoint_router=endpoint_routers(hosts, n_hosts, per_router),
        router_node=0,
        first_cable=0,
        sizes=np.array(dims, np.int32),
        bundles=np.array(bundles, np.int32),
    )
    # Coordinate 0 changes fastest.
    places = np.unravel_index(np.arange(prod(dims)), dims, order="F")
    lengths = spec.cables.dimensions or (spec.cables.local,) * len(dims)
    return build_direct(
        spec,
        made,
        n_hosts=n_hosts,
        routers=Routers("router" + "-{:d}" * len(dims), tuple(c.astype(np.int32) for c in places), radix),
        cables=Laid(
            spec.link_speed or hosts.nic_speed, np.repeat(lengths, np.diff(made.dimension_cable)), "local"
        ),
    )


def name_bundles(dims: Sequence[int], bundles: Sequence[int]) -> str:
    """Return sizes, and parallel cables where there are, as text: ``8 x 8 x 4, bundles 1 1 2``."""
    sizes = " x ".join(map(str, dims))
    return sizes if set(bundles) == {1} else f"{sizes}, bundles {' '.join(map(str, bundles))}"


def group_cables(spec: DragonflySpec | DragonflyPlusSpec, n_local: int, n_global: int) -> Laid:
    """Return rates, lengths and kinds of local, then global cables."""
    nic = spec.hosts.nic_speed
    rates = [spec.local_speed or nic, spec.global_speed or nic]
    lengths = [spec.cables.local, getattr(spec.cables, "global")]
    kinds = [LINK_KINDS.index("local"), LINK_KINDS.index("global")]
    counts = [n_local, n_global]
    return Laid(np.repeat(rates, counts), np.repeat(lengths, counts), np.repeat(kinds, counts))
