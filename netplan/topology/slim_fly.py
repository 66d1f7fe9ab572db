r"""Slim Fly: 2 q^2 routers, any two at most two hops apart, near the least degree that allows it.

Besta, Hoefler, *Slim Fly: A Cost Effective Low-Diameter Network Topology*, SC 2014: the graphs of
McKay, Miller and Siran (J. Combinatorial Theory B 74, 1998), as simplified by Hafner (2004). With
q = 4w + d a power of a prime, d in {-1, 0, 1}, and p endpoints on each router:

* routers 2 q^2, endpoints 2 q^2 p;
* ports of a router to others k' = (3q - d)/2, cables q^2 k';
* p = ceil(k'/2) when omitted: all-to-all traffic then fills the cables about as the NICs.

Over the field of q elements with generator x, routers (0, a, b) and (1, m, c) are joined as

* (0, a, b) with (0, a, b') when b - b' is in X;  (1, m, c) with (1, m, c') when c - c' is in X';
* (0, a, b) with (1, m, c) when b = m a + c;

where X are the even and X' the odd powers of x below q - 1 (d = 1: each (q-1)/2; d = 0: X = even
powers up to q - 2, X' odd ones up to q - 1, q/2 each); for d = -1, X = 1, x^2, ..., x^(2w-2),
x^(2w-1), x^(2w+1), ..., x^(4w-3) and X' = x X.

q = 5 is the Hoffman-Singleton graph: 50 routers of degree 7, 175 cables. q = 17: 578 routers,
k' = 25; q = 19: 722 routers, k' = 29. The formulas give 32,928 endpoints, 1,568 routers and 32,928
cables for q = 28, p = 21 (DeepSeek-V3, ISCA 2025, Table 3, "SF"), but 28 is no power of a
prime: there is no such graph, and it is refused. q = 27 and q = 29 are the nearest there are.

Order of ids: rack by rack; rack a has the q routers (0, a, b) by b, then the q routers (1, a, c)
by c. A rack is a pod: cables in it are ``local``, between racks ``global``; any two racks are
joined by 2q cables (Besta and Hoefler's layout).
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import FabricError
from netplan.fabric import LINK_KINDS
from netplan.fabric.direct import SlimFlyStructure
from netplan.spec.direct import MOST_Q, is_prime_power
from netplan.topology.direct import (
    Counts,
    Laid,
    Routers,
    build_direct,
    check_radix,
    check_size,
    count_hosts,
    endpoint_routers,
    hosts_per_router,
)
from netplan.topology.galois import Field
from netplan.topology.registry import family

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.direct import SlimFlySpec

#: Every q of which there is a graph, up to `MOST_Q`.
FEASIBLE_Q = tuple(q for q in range(3, MOST_Q + 1) if is_prime_power(q))


def slim_fly_degree(q: int) -> int:
    """Return k', the ports of a router to others.

    Examples
    --------
    >>> [slim_fly_degree(q) for q in (5, 17, 19, 28)]
    [7, 25, 29, 42]
    """
    return (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2


def slim_fly_counts(q: int, p: int) -> Counts:
    """Return how large a Slim Fly is, by formula: also for a q of which there is no graph.

    Examples
    --------
    >>> slim_fly_counts(28, 21)  # DeepSeek-V3, Table 3, although there is no such graph
    Counts(endpoints=32928, switches=1568, cables=32928)
    """
    return Counts(2 * q * q * p, 2 * q * q, q * q * slim_fly_degree(q))


@family(
    "slim-fly",
    summary="2 q^2 routers at most two hops apart, near the least degree that allows it",
    leaves_out="graphs of other sizes than 2 q^2, q a power of a prime",
)
def build(spec: SlimFlySpec) -> Fabric:
    """Build a Slim Fly.

    Raises
    ------
    FabricError
        The request is infeasible.
    """
    name, hosts = spec.name, spec.hosts
    q = spec.q or _choose_q(spec)
    degree = slim_fly_degree(q)
    p = router_endpoints(spec, q)
    radix = check_radix(
        name,
        f"a router: {p} endpoints + {degree} other routers",
        p + degree,
        spec.radix,
        _largest(spec.radix or 0, spec.router.endpoints),
    )
    per_router = hosts_per_router(hosts, p, 2 * q, name)
    room = per_router * 2 * q * q // (hosts.n_nics if hosts.attach == "spread" else 1)
    n_hosts = count_hosts(hosts, room, name, "a larger q, or more endpoints a router")
    check_size(name, slim_fly_counts(q, p))
    low, high = mms_edges(q)
    structure = SlimFlyStructure(
        endpoint_router=endpoint_routers(hosts, n_hosts, per_router),
        router_node=0,
        first_cable=0,
        routers=2 * q * q,
        low=low,
        high=high,
    )
    rack, place = np.divmod(np.arange(2 * q * q, dtype=np.int32), 2 * q)
    inside = rack[low] == rack[high]
    return build_direct(
        spec,
        structure,
        n_hosts=n_hosts,
        routers=Routers("router-{:d}-{:d}", (rack, place), radix, pod=rack),
        cables=Laid(
            spec.link_speed or hosts.nic_speed,
            np.where(inside, spec.cables.local, getattr(spec.cables, "global")),
            np.where(inside, LINK_KINDS.index("local"), LINK_KINDS.index("global")),
        ),
    )


def router_endpoints(spec: SlimFlySpec, q: int) -> int:
    """Return p: as given, else half of a router's ports to others, rounded up."""
    return spec.router.endpoints or ceil(slim_fly_degree(q) / 2)


def _choose_q(spec: SlimFlySpec) -> int:
    """Return the largest q whose routers have ports enough, or the smallest that holds the hosts.

    Raises
    ------
    FabricError
        There is none.
    """
    hosts, fits = spec.hosts, list(FEASIBLE_Q)
    if spec.radix is not None:
        fits = [q for q in fits if _ports(q, spec.router.endpoints) <= spec.radix]
        if not fits:
            raise FabricError(
                f"{spec.name}: radix = {spec.radix}: the smallest Slim Fly (q = 3) has routers of "
                f"{_ports(3, spec.router.endpoints)} ports",
                hint="take a larger radix, or fewer endpoints a router",
            )
    if hosts.count is None:
        return fits[-1]
    room = {q: _holds(spec, q) for q in fits}
    enough = next((q for q in fits if room[q] >= (hosts.count or 0)), None)
    if enough is None:
        most = max(room.values())
        raise FabricError(
            f"{spec.name}: {hosts.count:,} hosts with {hosts.n_nics} NICs are more than any Slim Fly "
            f"{'of these routers' if spec.radix else f'up to q = {MOST_Q}'} holds",
            hint=f"feasible: at most {most:,} hosts; a larger radix; more endpoints a router",
        )
    return enough


def _ports(q: int, endpoints: int | None) -> int:
    """Return the ports of a router."""
    return slim_fly_degree(q) + (endpoints or ceil(slim_fly_degree(q) / 2))


def _holds(spec: SlimFlySpec, q: int) -> int:
    """Return the hosts that a Slim Fly holds."""
    p, nics = router_endpoints(spec, q), spec.hosts.n_nics
    if spec.hosts.attach == "one-router":
        return 2 * q * q * (p // nics)
    return 2 * q * q // nics * p if 2 * q % nics == 0 else 0


def _largest(radix: int, endpoints: int | None) -> str:
    """Name the largest that fits a radix."""
    fits = [q for q in FEASIBLE_Q if _ports(q, endpoints) <= radix]
    return f"q of at most {fits[-1]}" if fits else ""


def mms_edges(q: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the two routers of every cable, the lower first, by lower and higher router.

    Parameters
    ----------
    q
        A power of a prime, at least 3.
    """
    field = Field(q)
    in_x, in_x_odd = (np.isin(field.difference, field.powers[list(e)]) for e in _exponents(q))
    b, b_other = np.nonzero(np.triu(in_x, 1))
    c, c_other = np.nonzero(np.triu(in_x_odd, 1))
    rack = np.arange(q)[:, None] * 2 * q
    a, m, y = (index.ravel() for index in np.indices((q, q, q)))
    ends = (
        np.concatenate(
            [(rack + b).ravel(), (rack + q + c).ravel(), a * 2 * q + field.total[field.product[m, a], y]]
        ),
        np.concatenate([(rack + b_other).ravel(), (rack + q + c_other).ravel(), m * 2 * q + q + y]),
    )
    low, high = np.minimum(*ends), np.maximum(*ends)
    order = np.lexsort((high, low))
    return low[order].astype(np.int32), high[order].astype(np.int32)


def _exponents(q: int) -> tuple[list[int], list[int]]:
    """Return the exponents of the generator that make X and X'."""
    if q % 4 == 3:  # noqa: PLR2004 -- q = 4w - 1
        w = (q + 1) // 4
        even = [*range(0, 2 * w - 1, 2), *range(2 * w - 1, 4 * w - 2, 2)]
        return even, [(e + 1) % (q - 1) for e in even]
    if q % 2 == 0:
        return [*range(0, q - 1, 2)], [e % (q - 1) for e in range(1, q, 2)]
    return [*range(0, q - 2, 2)], [*range(1, q - 1, 2)]
