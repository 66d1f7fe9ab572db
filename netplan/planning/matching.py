"""Which box of an old fabric takes which place of a new one, so that the fewest cables move.

A place map sends each old node to a new one, no two to the same. It keeps an old cable when a new cable of
the same kind and speed joins the places of its two ends (for a host's cable: the same NIC port as well).
The kept cables of a map f are

    K(f) = Σ over pairs of nodes a, b, kinds and speeds of  min(cables a-b before, cables f(a)-f(b) after)

and the most kept cables over all maps is a quadratic assignment problem. Two things make it tractable:
hosts are alike within those on the same leaves, and cables join neighbouring tiers, so that with all other
tiers fixed one tier is a *linear* assignment problem (Kuhn, *The Hungarian method for the assignment
problem*, 1955; solved by `scipy.optimize.linear_sum_assignment`), exact. `match_nodes` goes from the leaves
up, then over the tiers again until nothing improves, from several ways to seat the hosts, and takes the
best. It is exact for every tier given the others, not for all at once; `most_kept` bounds from above what
any map keeps. Tests hold both against all maps of tiny fabrics.

Each assignment falls apart into groups that share neighbours (a pod, a core group), so 100,000 GPUs take
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric

    Ints = NDArray[np.int64]

__all__ = [
    "Cables",
    "cables_of",
    "group_rows",
    "join",
    "match_nodes",
    "most_kept",
    "nic_ports",
    "pair_equal",
    "strip_nic_port",
]

#: Room for the number of a NIC port: a 16-bit rail, fewer than 127 planes, fewer than 128 ports of the NIC.
_NIC_BITS = 32

#: Rounds over all tiers; each must keep more cables than the last.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Cables:
    """The cables of a fabric, as columns that two fabrics can be compared by."""

    lower: Ints
    """(n_cables,) node nearer to the hosts."""
    upper: Ints
    """(n_cables,) the other node."""
    sort: Ints
    """(n_cables,) kind, speed and, for a host's cable, NIC port, as one number."""


def cables_of(fabric: Fabric, rates: NDArray[np.float64]) -> Cables:
    """Return the cables of a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    rates
        All line rates of the fabrics that are compared, ascending [bytes/s].
    """
    links = fabric.links
    rate = np.searchsorted(rates, links.capacity[0::2])
    sort = ((links.kind[0::2].astype(np.int64) * len(rates) + rate) << _NIC_BITS) + nic_ports(fabric)
    return Cables(links.src[0::2].astype(np.int64), links.dst[0::2].astype(np.int64), sort)


def nic_ports(fabric: Fabric) -> Ints:
    """Return a number for the NIC port that each cable is in: rail, plane, ports of the NIC; else 0."""
    ends = fabric.endpoints
    port = np.zeros(fabric.links.n_cables, np.int64)
    of_nic = np.diff(fabric.nic_ptr)[fabric.endpoint_nic]
    port[ends.cable] = ((ends.rail.astype(np.int64) + 1) * 128 + ends.plane + 1) * 128 + of_nic
    return port


def strip_nic_port(sort: Ints) -> Ints:
    """Return `Cables.sort` without the NIC port."""
    return sort >> _NIC_BITS


def group_rows(*columns: Ints) -> tuple[Ints, int]:
    """Return a number for each row, the same for equal rows, and how many there are."""
    order = np.lexsort(columns[::-1])
    differs = np.zeros(len(order), bool)
    for column in columns:
        there = column[order]
        differs[1:] |= there[1:] != there[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(differs)
    return number, int(differs.sum()) + 1 if len(order) else 0


def pair_equal(ours: Sequence[Ints], theirs: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Pair rows of two tables that are equal, each row once, in order.

    Returns
    -------
    ours, theirs : (n_pairs,) int64
        Row numbers of the pairs.
    """
    n = len(ours[0])
    both = [np.concatenate(pair) for pair in zip(ours, theirs, strict=True)]
    number, count = group_rows(*both)
    first, second = number[:n], number[n:]
    left, right = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    here = np.minimum(np.bincount(first, minlength=count), np.bincount(second, minlength=count))
    return left[_rank(first[left]) < here[first[left]]], right[_rank(second[right]) < here[second[right]]]


def _rank(ascending: Ints) -> Ints:
    """Return the place of each entry among its equals, in an ascending column."""
    start = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(ascending)])
    sizes = np.diff(np.concatenate([start, [len(ascending)]]))
    return np.arange(len(ascending)) - np.repeat(start, sizes)


def join(ours: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of rows with equal keys, as two columns of row numbers."""
    order = np.argsort(theirs, kind="stable")
    first = np.searchsorted(theirs[order], ours, "left")
    count = np.searchsorted(theirs[order], ours, "right") - first
    row = np.repeat(np.arange(len(ours)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, order[np.repeat(first, count) + within]


class _Pair:
    """Two fabrics that are being matched."""

    def __init__(self, before: Fabric, after: Fabric) -> None:
        self.before, self.after = before, after
        rates = np.unique(np.concatenate([before.links.capacity, after.links.capacity]))
        self.old, self.new = cables_of(before, rates), cables_of(after, rates)
        self.old_bundles = _bundles(self.old)
        self.new_bundles = _bundles(self.new)
        self.old_position, self.new_position = _positions(before), _positions(after)
        self.old_ports, self.old_speed = before.nodes.radix.astype(np.int64), _speed(before)
        self.new_ports = np.bincount(after.links.src, minlength=after.n_nodes)
        self.new_speed = _speed(after)

    def fits(self, old: Ints, new: Ints) -> NDArray[np.bool_]:
        """Tell whether old switches have the ports, and the speed, that new places use."""
        return (self.old_ports[old] >= self.new_ports[new]) & (self.old_speed[old] >= self.new_speed[new])

    def kept(self, place: Ints) -> tuple[Ints, Ints]:
        """Return the cables that a place map keeps, old and new."""
        lower, upper = place[self.old.lower], place[self.old.upper]
        there = np.flatnonzero((lower >= 0) & (upper >= 0))
        ours = (*_ordered(lower[there], upper[there]), self.old.sort[there])
        theirs = (*_ordered(self.new.lower, self.new.upper), self.new.sort)
        old, new = pair_equal(ours, theirs)
        return there[old], new


def _ordered(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return two columns of ends with the smaller node first: a cable has no direction."""
    return np.minimum(a, b), np.maximum(a, b)


def _speed(fabric: Fabric) -> NDArray[np.float64]:
    """Return the fastest link of each node [bytes/s]."""
    speed = np.zeros(fabric.n_nodes)
    np.maximum.at(speed, fabric.links.src, fabric.links.capacity)
    return speed


def _positions(fabric: Fabric) -> Ints:
    """Return the place of each node among those of its site, tier, plane and pod."""
    nodes = fabric.nodes
    columns: list[NDArray[np.integer]] = [nodes.site, nodes.tier, nodes.plane, nodes.pod]
    number, _ = group_rows(*(column.astype(np.int64) for column in columns))
    order = np.argsort(number, kind="stable")
    position = np.empty(len(number), np.int64)
    position[order] = _rank(number[order])
    return position


def _bundles(cables: Cables) -> tuple[Ints, Ints, Ints, Ints]:
    """Return parallel cables as one row, seen from either end: node, neighbour, sort, how many."""
    node = np.concatenate([cables.lower, cables.upper])
    other = np.concatenate([cables.upper, cables.lower])
    sort = np.concatenate([cables.sort, cables.sort])
    number, count = group_rows(node, other, sort)
    first = np.full(count, len(number), np.int64)
    np.minimum.at(first, number, np.arange(len(number)))
    return node[first], other[first], sort[first], np.bincount(number, minlength=count)


# ---- seats of the hosts ------------------------------------------------------------------------------------


def _classes(fabric: Fabric) -> tuple[Ints, Ints]:
    """Return, for each host in host order, a number for its set of leaves and one for its set of pods."""
    ends = fabric.endpoints
    host = fabric.host_index[ends.host]
    place = np.arange(fabric.n_endpoints) - fabric.endpoint_ptr[host]
    leaves = np.full((int(place.max(initial=0)) + 1, fabric.n_hosts), -1, np.int64)
    leaves[place, host] = ends.leaf
    pods = np.where(leaves >= 0, fabric.nodes.pod[leaves], -1)
    return _by_first(group_rows(*leaves)[0]), _by_first(group_rows(*pods.astype(np.int64))[0])


def _by_first(values: Ints) -> Ints:
    """Return a number for each value, in the order in which values first come up."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number.reshape(-1)]


def _seatings(before: Fabric, after: Fabric) -> Iterator[Ints]:
    """Yield ways to give each old host a new one: (n_hosts,) places in the new host order, -1 for none."""
    n_old, n_new = before.n_hosts, after.n_hosts
    identity = np.where(np.arange(n_old) < n_new, np.arange(n_old), -1)
    yield identity
    old_class, old_pods = _classes(before)
    new_class, new_pods = _classes(after)
    old_sizes, new_sizes = np.bincount(old_class), np.bincount(new_class)
    seen = {identity.tobytes()}
    for seats in (
        _seat(old_class, new_class, np.arange(len(old_sizes)), np.arange(len(new_sizes))),
        _seat(
            old_class, new_class, np.argsort(-old_sizes, kind="stable"), np.argsort(-new_sizes, kind="stable")
        ),
        _seat_by_pod(old_class, new_class, old_pods, new_pods),
    ):
        if seats.tobytes() not in seen:
            seen.add(seats.tobytes())
            yield seats


def _seat(old_class: Ints, new_class: Ints, old_order: Ints, new_order: Ints) -> Ints:
    """Give the hosts of the i-th old class seats of the i-th new one; those left over any seat, in order."""
    partner = np.full(len(old_order), -1, np.int64)
    n = min(len(old_order), len(new_order))
    partner[old_order[:n]] = new_order[:n]
    return _seat_partners(old_class, new_class, partner)


def _seat_partners(old_class: Ints, new_class: Ints, partner: Ints) -> Ints:
    """Give the hosts of each old class seats of its partner (-1: none); those left over any seat."""
    old, new = pair_equal([partner[old_class]], [new_class])
    seats = np.full(len(old_class), -1, np.int64)
    seats[old] = new
    free = np.setdiff1d(np.arange(len(new_class)), new)
    left = np.flatnonzero(seats < 0)[: len(free)]
    seats[left] = free[: len(left)]
    return seats


def _seat_by_pod(old_class: Ints, new_class: Ints, old_pods: Ints, new_pods: Ints) -> Ints:
    """Give the classes of the i-th old pod partners in the i-th new pod; those left over any, in order."""
    old_pod, new_pod = _first_of(old_class, old_pods), _first_of(new_class, new_pods)
    old, new = pair_equal([old_pod], [new_pod])
    partner = np.full(len(old_pod), -1, np.int64)
    partner[old] = new
    free = np.setdiff1d(np.arange(len(new_pod)), new)
    left = np.flatnonzero(partner < 0)[: len(free)]
    partner[left] = free[: len(left)]
    return _seat_partners(old_class, new_class, partner)


def _first_of(number: Ints, values: Ints) -> Ints:
    """Return the value of each number where it first comes up."""
    _, first = np.unique(number, return_index=True)
    return values[first]


# ---- places of the switches --------------------------------------------------------------------------------


def match_nodes(before: Fabric, after: Fabric) -> Ints:
    """Give each old node a place in the new fabric.

    Parameters
    ----------
    before, after
        The two fabrics.

    Returns
    -------
    (n_nodes_before,) int64
        Node ids of the new fabric; -1 for a host or switch that has no place there. A switch with no cable to
        keep takes a place of its tier that is left, then one of another tier, if it has the ports and speed.
    """
    pair = _Pair(before, after)
    best, most = np.full(before.n_nodes, -1, np.int64), -1
    for seats in _seatings(before, after):
        place = np.full(before.n_nodes, -1, np.int64)
        place[before.host_ids] = np.where(seats >= 0, after.host_ids[seats], -1)
        place, kept = _place_switches(pair, place)
        if kept > most:
            best, most = place, kept
    return _fill(pair, best)


def _place_switches(pair: _Pair, place: Ints) -> tuple[Ints, int]:
    """Match each tier given the others, from the leaves up, then again while more cables are kept."""
    tiers = np.unique(pair.before.nodes.tier[pair.before.nodes.tier > 0]).tolist()
    kept = -1
    for _ in range(_ROUNDS):
        tried = place
        for tier in tiers:
            tried = _match_tier(pair, tried, tier)
        now = len(pair.kept(tried)[0])
        if now <= kept:
            break
        place, kept = tried, now
    return place, kept


def _match_tier(pair: _Pair, place: Ints, tier: int) -> Ints:
    """Match one tier exactly, given the places of all other nodes."""
    node, other, sort, count = pair.old_bundles
    mine = np.flatnonzero((pair.before.nodes.tier[node] == tier) & (place[other] >= 0))
    new_node, new_other, new_sort, new_count = pair.new_bundles
    theirs = np.flatnonzero(pair.after.nodes.tier[new_node] == tier)
    keys = np.concatenate([place[other[mine]], new_other[theirs]])
    number, _ = group_rows(keys, np.concatenate([sort[mine], new_sort[theirs]]))
    left, right = join(number[: len(mine)], number[len(mine) :])
    left, right = mine[left], theirs[right]
    fits = pair.fits(node[left], new_node[right])
    left, right = left[fits], right[fits]
    weight = np.minimum(count[left], new_count[right])
    cell, n_cells = group_rows(node[left], new_node[right])
    first = np.zeros(n_cells, np.int64)
    first[cell] = np.arange(len(cell))
    total = np.bincount(cell, weight, n_cells).astype(np.int64)
    rows, columns = _assign(pair, node[left][first], new_node[right][first], total)
    place = np.where(pair.before.nodes.tier == tier, -1, place)
    place[rows] = columns
    return place


def _assign(pair: _Pair, row: Ints, column: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """Return the assignment of the greatest weight; of equals one that keeps positions."""
    if not len(row):
        return row, column
    rows, r = np.unique(row, return_inverse=True)
    columns, c = np.unique(column, return_inverse=True)
    n = len(rows) + len(columns)
    _, part = connected_components(
        coo_array((np.ones(len(r)), (r, len(rows) + c)), shape=(n, n)), directed=False
    )
    found: list[tuple[Ints, Ints]] = []
    order = np.argsort(part[r], kind="stable")
    bounds = np.flatnonzero(np.diff(part[r][order], prepend=-1, append=-1))
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        here = order[start:end]
        mine, i = np.unique(r[here], return_inverse=True)
        theirs, j = np.unique(c[here], return_inverse=True)
        dense = np.zeros((len(mine), len(theirs)))
        same = pair.old_position[rows[mine]][:, None] == pair.new_position[columns[theirs]]
        dense[i, j] = weight[here] * (min(dense.shape) + 1.0)
        dense += np.where(dense > 0, same, 0)
        a, b = linear_sum_assignment(dense, maximize=True)
        real = dense[a, b] > 0
        found.append((rows[mine[a[real]]], columns[theirs[b[real]]]))
    return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def _fill(pair: _Pair, place: Ints) -> Ints:
    """Give switches without a place one that is left: of their tier first, then of any."""
    place = place.copy()
    old_tier, new_tier = pair.before.nodes.tier, pair.after.nodes.tier
    taken = np.zeros(pair.after.n_nodes, bool)
    taken[place[place >= 0]] = True
    for is_same in (True, False):
        idle = np.flatnonzero((place < 0) & (old_tier > 0))
        for tier in np.unique(old_tier[idle]).tolist():
            mine = idle[old_tier[idle] == tier]
            free = np.flatnonzero(~taken & (new_tier > 0) & ((new_tier == tier) == is_same))
            # Boxes of one size are alike: the smallest first, each to the first place that it fits.
            for box in mine[np.argsort(pair.old_ports[mine], kind="stable")].tolist():
                fits = np.flatnonzero(pair.fits(np.full(len(free), box), free))
                if len(fits):
                    place[box] = free[fits[0]]
                    taken[free[fits[0]]] = True
                    free = np.delete(free, fits[0])
    return place


# ---- a bound -----------------------------------------------------------------------------------------------


def most_kept(before: Fabric, after: Fabric) -> int:
    """Return a bound: no place map keeps more cables.

    Parameters
    ----------
    before, after
        The two fabrics.

    Notes
    -----
    For each kind and speed of cable, seen from either tier: a node with bundles b1 >= b2 >= ... that takes a
    place with bundles c1 >= c2 >= ... keeps at most Σ min(bi, ci), whatever its neighbours do. Each old node
    with its best place, summed, is a bound; so is the number of cables after. The smallest counts.
    """
    pair = _Pair(before, after)
    old_sort, new_sort = strip_nic_port(pair.old.sort), strip_nic_port(pair.new.sort)
    bound = 0
    for sort in np.unique(old_sort).tolist():
        ends = [_ends(pair.old, old_sort == sort), _ends(pair.new, new_sort == sort)]
        counts = [int((old_sort == sort).sum()), int((new_sort == sort).sum())]
        for side in (0, 1):
            mine, theirs = _profiles(*ends[0], side), _profiles(*ends[1], side)
            gain = {
                profile: max((_overlap(profile, other) for other in theirs), default=0) for profile in mine
            }
            best = sorted((gain[p] for p, n in mine.items() for _ in range(n)), reverse=True)
            counts.append(sum(best[: sum(theirs.values())]))
        bound += min(counts)
    return bound


def _ends(cables: Cables, here: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the two ends of some cables."""
    return cables.lower[here], cables.upper[here]


def _profiles(lower: Ints, upper: Ints, side: int) -> dict[tuple[int, ...], int]:
    """Return how many nodes of a side have which bundles, the widest first."""
    node, other = (lower, upper) if side == 0 else (upper, lower)
    if not len(node):
        return {}
    number, count = group_rows(node, other)
    size = np.bincount(number, minlength=count)
    owner = np.zeros(count, np.int64)
    owner[number] = node
    found: dict[tuple[int, ...], int] = {}
    order = np.lexsort((-size, owner))
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    for bundle in np.split(size[order], starts[1:]):
        profile = tuple(bundle.tolist())
        found[profile] = found.get(profile, 0) + 1
    return found


def _overlap(ours: tuple[int, ...], theirs: tuple[int, ...]) -> int:
    """Return the most cables that two lists of bundles share."""
    return sum(min(a, b) for a, b in zip(ours, theirs, strict=False))
