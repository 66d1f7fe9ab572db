"""What a direct network can carry, and how far apart its endpoints are.

Direct networks have no uplinks and downlinks, so no oversubscription: what their cables carry is
given relative to what the NICs inject. Everything here follows from `Fabric.direct` by arithmetic.

*Bisection.* The least capacity between two halves of the endpoints is NP-hard to find in general,
so what is given is the least over the family's own cuts (`cuts`), an upper bound of it:

* torus and HyperX: each dimension of even size cut in two, where all routers have equally many
  endpoints. For a HyperX of full size this is the closed form of Ahn et al. (SC 2009), N K_i S_i / 4
  cables; for a torus that of Dally (1990), 2 N K_i / n_i cables (half in a mesh);
* all families: endpoints in order of site, group and router, the first half against the others.
  In a dragonfly of an even number of groups, half of the groups against the others.

*Hops* are counted on shortest paths, which may take two global cables in a dragonfly. Distances
of a grid add up over its dimensions, so pairs are counted by the correlation of the endpoints per
router with itself (FFT); in a dragonfly+ by groups; in a Slim Fly and a dragonfly from the routers
within one and two cables, all others being one cable further off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from netplan.fabric.columns import LINK_KINDS
from netplan.fabric.direct import DragonflyPlusStructure, HyperXStructure, TorusStructure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from netplan.fabric.columns import Fabric
    from netplan.fabric.direct import DirectStructure

#: Rows of a product of adjacencies that are held at a time.
_ROWS = 1024

_PAIR = 2


@dataclass(frozen=True)
class DirectMeasures:
    """Figures of a direct network."""

    local_over_injection: float
    """What the routers send into local cables over what their NICs send: (a - 1)/p in a dragonfly."""
    global_over_injection: float | None
    """What switches send into global cables over what the NICs send: h/p in a dragonfly; None in a grid."""
    bisection_cut: str
    """Which cut the bisection is that of."""
    average_hops: float | None
    """Mean over all pairs of endpoints of the switches on a shortest path; None with a single endpoint."""
    hops: dict[str, float]
    """Share of the pairs of endpoints, by the number of switches on a shortest path."""


def measure_direct(fabric: Fabric, direct: DirectStructure) -> tuple[DirectMeasures, float | None]:
    """Measure a direct network.

    Parameters
    ----------
    fabric
        The fabric.
    direct
        Its structure.

    Returns
    -------
    DirectMeasures
        All that is particular to direct networks.
    bisection_fraction : float or None
        What crosses the cut over half the endpoints' line rate, at most 1; None with a single endpoint.
    """
    links, injected = fabric.links, float(fabric.endpoint_rate.sum())
    from_router = fabric.nodes.tier[links.src] == 1
    local = links.capacity[(links.kind == LINK_KINDS.index("local")) & from_router].sum()
    between = links.capacity[links.kind == LINK_KINDS.index("global")].sum()
    has_groups = not isinstance(direct, (HyperXStructure, TorusStructure))
    least = least_cut(fabric, direct)
    pairs = count_hops(direct)
    total = sum(pairs.values())
    found = DirectMeasures(
        local_over_injection=float(local) / injected,
        global_over_injection=float(between) / injected if has_groups else None,
        bisection_cut=least.words if least else "none",
        average_hops=sum(hops * count for hops, count in pairs.items()) / total if total else None,
        hops={str(hops): count / total for hops, count in sorted(pairs.items()) if count},
    )
    return found, min(least.fraction, 1.0) if least is not None else None


# ---- bisection ---------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A cut into two halves of the endpoints."""

    fraction: float
    """What crosses it over the slower half's line rate, in the direction that carries less."""
    capacity: float
    """What crosses it [bytes/s]."""
    words: str
    """Which it is."""


def least_cut(fabric: Fabric, direct: DirectStructure) -> Cut | None:
    """Return that of the family's cuts which carries least; None with a single endpoint."""
    rate = fabric.endpoint_rate
    found = []
    for side, first, words in cuts(fabric, direct):
        half = min(float(rate[first].sum()), float(rate[~first].sum()))
        if half:
            capacity = cut_capacity(fabric, side, first)
            found.append(Cut(capacity / half, capacity, words))
    return min(found, default=None)


def cuts(
    fabric: Fabric, direct: DirectStructure
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_], str]]:
    """Yield cuts into halves of the endpoints.

    Yields
    ------
    side : (n_nodes,)
        Whether a switch is in the first half.
    first : (n_endpoints,)
        Whether an endpoint is.
    words : str
        Which cut it is.
    """
    router = direct.endpoint_router
    on_router = np.bincount(router, minlength=direct.n_routers)
    words = "groups"
    if isinstance(direct, (HyperXStructure, TorusStructure)):
        words = "routers"
    if isinstance(direct, (HyperXStructure, TorusStructure)) and (on_router == on_router[0]).all():
        coordinates = np.unravel_index(np.arange(direct.n_routers), direct.sizes.tolist(), order="F")
        for number, (size, at) in enumerate(zip(direct.sizes.tolist(), coordinates, strict=True)):
            if size % 2 == 0:
                first = at < size // 2
                yield _sides(fabric, direct, first), first[router], f"dimension {number} in the middle"
    first = np.zeros(len(router), bool)
    first[np.argsort(router, kind="stable")[: len(router) // 2]] = True
    words += " in order, half of the endpoints against the others"
    # The router with endpoints of both halves may be on either side.
    in_first = np.bincount(router, first, direct.n_routers)
    for side in (in_first > 0, (in_first > 0) & (in_first == on_router)):
        yield _sides(fabric, direct, side), first, words


def _sides(fabric: Fabric, direct: DirectStructure, first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_nodes,) whether a switch is in the first half, from where the routers are."""
    side = np.zeros(fabric.n_nodes, bool)
    side[direct.router_node : direct.router_node + direct.n_routers] = first
    if isinstance(direct, DragonflyPlusStructure):
        # The spines of a group go with its leaves; of one that is cut, each with what it has most cables to.
        share = first.reshape(direct.groups, direct.routers).mean(axis=1)
        spines = slice(direct.spine_node, direct.spine_node + direct.groups * direct.spines)
        side[spines] = np.repeat(share > 1 / 2, direct.spines)
        is_cut = np.repeat((share > 0) & (share < 1), direct.spines)
        links = fabric.links
        to_first = np.where(side[links.dst], links.capacity, -links.capacity)
        more = np.bincount(links.src, to_first, fabric.n_nodes)[spines] > 0
        side[spines] = np.where(is_cut, more, side[spines])
    return side


def cut_capacity(fabric: Fabric, side: NDArray[np.bool_], first: NDArray[np.bool_]) -> float:
    """Return what crosses a cut [bytes/s], in the direction that carries less.

    Parameters
    ----------
    fabric
        Any fabric.
    side : (n_nodes,)
        Whether a switch is in the first half.
    first : (n_endpoints,)
        Whether an endpoint is; its own cable is cut where its switch is on the other side.
    """
    links = fabric.links
    between = (fabric.nodes.tier[links.src] > 0) & (fabric.nodes.tier[links.dst] > 0)
    there = between & side[links.src] & ~side[links.dst]
    back = between & ~side[links.src] & side[links.dst]
    astray = fabric.endpoint_rate[side[fabric.endpoints.leaf] != first].sum()
    return float(min(links.capacity[there].sum(), links.capacity[back].sum()) + astray)


# ---- hops --------------------------------------------------------------------------------------


def count_hops(direct: DirectStructure) -> dict[int, int]:
    """Return how many pairs of endpoints have so many switches on a shortest path.

    Returns
    -------
    dict
        Number of switches (1: both on one router) to unordered pairs of different endpoints.
    """
    weight = np.bincount(direct.endpoint_router, minlength=direct.n_routers)
    if isinstance(direct, (HyperXStructure, TorusStructure)):
        pairs = _grid_pairs(direct, weight)
    elif isinstance(direct, DragonflyPlusStructure):
        group = weight.reshape(direct.groups, direct.routers).sum(axis=1)
        same, near = _squares(weight), _squares(group)
        pairs = {0: same, 2: near - same, 3: _squares(weight.sum(keepdims=True)) - near}
    else:
        pairs = _near_pairs(direct, weight)
    pairs[0] -= int(weight.sum())  # an endpoint with itself
    return {distance + 1: count // 2 for distance, count in pairs.items() if count}


def _squares(counts: NDArray[np.int64]) -> int:
    """Return the sum of squares."""
    return int((counts.astype(np.int64) ** 2).sum())


def _grid_pairs(direct: HyperXStructure | TorusStructure, weight: NDArray[np.int64]) -> dict[int, int]:
    """Count ordered pairs by distance in cables, from the correlation of the weights."""
    sizes = direct.sizes.tolist()
    wraps = direct.wraps.tolist() if isinstance(direct, TorusStructure) else [1] * len(sizes)
    shape = [size if wrap else 2 * size for size, wrap in zip(sizes, wraps, strict=True)]  # no way around
    grid = np.zeros(shape)
    grid[tuple(slice(size) for size in sizes)] = weight.reshape(sizes, order="F")
    correlation = np.fft.irfftn(np.abs(np.fft.rfftn(grid)) ** 2, s=shape, axes=range(len(shape)))
    distance = np.zeros(shape, np.int64)
    for d, size in enumerate(shape):
        apart = np.minimum(np.arange(size), size - np.arange(size))
        if isinstance(direct, HyperXStructure):
            apart = np.minimum(apart, 1)
        distance += apart.reshape([-1 if i == d else 1 for i in range(len(shape))])
    counts = np.bincount(distance.ravel(), np.rint(correlation).ravel())
    return {hops: int(count) for hops, count in enumerate(np.rint(counts).tolist())}


def _near_pairs(direct: DirectStructure, weight: NDArray[np.int64]) -> dict[int, int]:
    """Count ordered pairs at 0, 1, 2 and 3 cables in a network where no pair is further apart."""
    used = np.flatnonzero(weight)
    adjacency = _adjacency(direct)
    counts = [_squares(weight), 0, 0]
    for start in range(0, len(used), _ROWS):
        rows = used[start : start + _ROWS]
        one = adjacency[rows]
        two = one @ adjacency  # routers within two cables, the router itself and its neighbours included
        two.data[:] = 1
        reach_one = int(weight[rows] @ (one @ weight))
        reach_two = int(weight[rows] @ ((two + one).astype(bool) @ weight)) - int((weight[rows] ** 2).sum())
        counts[1] += reach_one
        counts[2] += reach_two - reach_one
    total = int(weight.sum()) ** 2
    return {**dict(enumerate(counts)), 3: total - sum(counts)}


def _adjacency(direct: DirectStructure) -> csr_array:
    """(n_routers, n_routers) 1 where two routers are joined."""
    from scipy.sparse import coo_array

    low, high = (ends - direct.router_node for ends in direct.cable_ends())
    n = direct.n_routers
    key = np.unique(np.concatenate([low * n + high, high * n + low]))  # parallel cables count once
    return coo_array((np.ones(len(key), np.int64), (key // n, key % n)), shape=(n, n)).tocsr()
