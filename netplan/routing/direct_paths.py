"""Paths on direct networks by arithmetic on ids (see `netplan.fabric.direct`).

*Minimal* paths are those of the family, as its authors route; per family:

* dragonfly: a local hop to the router with the global cable, one global hop, a local hop; any
  global cable between the two groups. Of these not all are equally long, and two global hops over
  a third group can be shorter than local-global-local: shortest paths (`ecmp`) are another set.
* dragonfly-plus: leaf, spine, one global hop (none inside a group), spine, leaf.
* hyperx: one hop in each dimension in which the routers differ, dimensions in any order.
* torus: dimension by dimension in order, the shorter way round; both ways where they are equal.
* slim-fly: one hop to a neighbour, else two hops over any common neighbour.

*Valiant* paths are two minimal ones, by an intermediate (Valiant, "A scheme for fast parallel
communication", SIAM J. Comput. 1982). It is drawn uniformly, whatever the destination:

* dragonfly, dragonfly-plus: another group than the two; the path goes on from the router (spine)
  at which it enters it (Kim et al., ISCA 2008; Shpiner et al., HiPINEB 2017). With two groups
  there is none: the path is minimal. Inside a dragonfly's group: a router of the group; inside a
  group of dragonfly-plus, where minimal paths are over all spines already, none.
* hyperx, torus, slim-fly: any router, the two ends included.

Which of the possible paths is taken is decided by choices in turn, made by a `Chooser`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.direct import (
    DragonflyPlusStructure,
    DragonflyStructure,
    HyperXStructure,
    SlimFlyStructure,
    TorusStructure,
    pair_number,
)
from netplan.kernels.hashing import choose, mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric.direct import DirectStructure, GroupedStructure

#: Makes one choice for many paths: rows (n,) and how many options each has (n,) in, indices below them out.
Chooser = Callable[["NDArray[np.int64]", "NDArray[np.int64]"], "NDArray[np.int64]"]

#: Tells the choices on a path apart from other uses of its key.
_CHOICE = 0xC401CE

#: Rows whose common neighbours are looked for at a time: (rows, degree) tables.
_BLOCK = 1 << 16


def hashed_chooser(key: NDArray[np.uint64]) -> Chooser:
    """Return a chooser that hashes the key of each row anew for each choice of that row."""
    turn = np.zeros(
        len(key), np.int64
    )  # a count for each row: its path does not depend on what else is routed

    def pick(rows: NDArray[np.int64], options: NDArray[np.int64]) -> NDArray[np.int64]:
        turn[rows] += 1
        return choose(key[rows], mix(_CHOICE, turn[rows]), options)

    return pick


class _Hops:
    """The links of many paths, put down hop by hop."""

    def __init__(self, n: int) -> None:
        self._columns: list[NDArray[np.int64]] = []
        self._n = n

    def add(self, rows: NDArray[np.int64], link: NDArray[np.int64]) -> None:
        """Let some rows cross a link each."""
        column = np.full(self._n, -1, np.int64)
        column[rows] = link
        self._columns.append(column)

    def packed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (hops, length): (n, width) links, the first ``length`` of each row; -1 behind them."""
        if not self._columns:
            return np.full((self._n, 0), -1, np.int64), np.zeros(self._n, np.int64)
        table = np.stack(self._columns, axis=1)
        used = table >= 0
        length = used.sum(axis=1)
        width = int(length.max(initial=0))
        hops = np.full((self._n, width), -1, np.int64)
        hops[np.arange(width) < length[:, None]] = table[used]
        return hops, length


def minimal_hops(
    s: DirectStructure, src: NDArray[np.int64], dst: NDArray[np.int64], pick: Chooser
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute a minimal path between routers per row.

    Parameters
    ----------
    s
        The network.
    src, dst : (n,) int64
        Router numbers; equal ones have no hops between them.
    pick
        Makes the choices.

    Returns
    -------
    hops : (n, width) int64
        Links in path order; -1 behind the last.
    length : (n,) int64
        How many there are.
    """
    hops = _Hops(len(src))
    _minimal(s, hops, np.arange(len(src)), src, dst, pick)
    return hops.packed()


def valiant_hops(
    s: DirectStructure, src: NDArray[np.int64], dst: NDArray[np.int64], pick: Chooser
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute a path over a drawn intermediate between routers per row; as `minimal_hops`."""
    hops = _Hops(len(src))
    rows = np.flatnonzero(src != dst)
    if isinstance(s, DragonflyStructure):
        _dragonfly_valiant(s, hops, rows, src, dst, pick)
    elif isinstance(s, DragonflyPlusStructure):
        _dragonfly_plus_valiant(s, hops, rows, src, dst, pick)
    else:
        middle = dst.copy()
        middle[rows] = pick(rows, np.full(len(rows), s.n_routers))
        _minimal(s, hops, rows, src, middle, pick)
        _minimal(s, hops, rows, middle, dst, pick)
    return hops.packed()


def _minimal(
    s: DirectStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    """Put down minimal paths of some rows; ``src`` and ``dst`` are of all rows."""
    if isinstance(s, DragonflyStructure):
        _dragonfly(s, hops, rows, src, dst, pick)
    elif isinstance(s, DragonflyPlusStructure):
        _dragonfly_plus(s, hops, rows, src, dst, pick)
    elif isinstance(s, HyperXStructure):
        _hyperx(s, hops, rows, src, dst, pick)
    elif isinstance(s, TorusStructure):
        _torus(s, hops, rows, src, dst, pick)
    else:
        _slim_fly(s, hops, rows, src, dst, pick)


def _one_of(
    first: NDArray[np.int64], bundle: int, rows: NDArray[np.int64], pick: Chooser
) -> NDArray[np.int64]:
    """Choose among ``bundle`` parallel cables from ``first`` on."""
    return first + pick(rows, np.full(len(rows), bundle)) if bundle > 1 else first


# ---- Dragonfly -------------------------------------------------------------------------------------------


def _dragonfly(
    s: DragonflyStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    here = src.copy()
    across = rows[src[rows] // s.routers != dst[rows] // s.routers]
    if len(across):
        _dragonfly_to_group(s, hops, across, here, dst // s.routers, pick)
    _dragonfly_local(s, hops, rows, here, dst, pick)


def _dragonfly_to_group(
    s: DragonflyStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    here: NDArray[np.int64],
    group: NDArray[np.int64],
    pick: Chooser,
) -> None:
    """Go to another group; ``here`` becomes the router at which it is entered."""
    place = _global_cables(s, rows, here[rows] // s.routers, group[rows], pick)
    exits = here.copy()
    exits[rows] = here[rows] // s.routers * s.routers + place.near
    _dragonfly_local(s, hops, rows, here, exits, pick)
    hops.add(rows, place.link)
    here[rows] = group[rows] * s.routers + place.far


def _dragonfly_local(
    s: DragonflyStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    here: NDArray[np.int64],
    there: NDArray[np.int64],
    pick: Chooser,
) -> None:
    """Go to another router of the group, where it is another."""
    rows = rows[here[rows] != there[rows]]
    if not len(rows):
        return
    group, i, j = here[rows] // s.routers, here[rows] % s.routers, there[rows] % s.routers
    pair = pair_number(np.minimum(i, j), np.maximum(i, j), s.routers)
    pairs = s.routers * (s.routers - 1) // 2
    cable = s.first_cable + (group * pairs + pair) * s.local_bundle
    hops.add(rows, 2 * _one_of(cable, s.local_bundle, rows, pick) + (i > j))


class _GlobalHop:
    """A global cable for each of some paths."""

    def __init__(self, link: NDArray[np.int64], near: NDArray[np.integer], far: NDArray[np.integer]) -> None:
        self.link, self.near, self.far = link, near, far


def _global_cables(
    s: GroupedStructure,
    rows: NDArray[np.int64],
    group: NDArray[np.int64],
    other: NDArray[np.int64],
    pick: Chooser,
) -> _GlobalHop:
    """Choose one of the global cables between two groups; ``near`` and ``far`` are places at its ends."""
    pair = pair_number(np.minimum(group, other), np.maximum(group, other), s.groups)
    first = s.global_ptr[pair].astype(np.int64)
    at = first + pick(rows, s.global_ptr[pair + 1] - first)
    low, high, back = s.global_low[at], s.global_high[at], group > other
    link = 2 * (s.global_cable + at) + back
    return _GlobalHop(link, np.where(back, high, low), np.where(back, low, high))


def _other_group(
    s: GroupedStructure,
    rows: NDArray[np.int64],
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    pick: Chooser,
) -> NDArray[np.int64]:
    """Draw a group that is neither of two."""
    group = pick(rows, np.full(len(rows), s.groups - 2))
    low, high = np.minimum(one, other), np.maximum(one, other)
    group = group + (group >= low)
    return group + (group >= high)


def _dragonfly_valiant(
    s: DragonflyStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    here = src.copy()
    one, other = src // s.routers, dst // s.routers
    inside = rows[one[rows] == other[rows]]
    if len(inside):
        middle = here.copy()
        middle[inside] = one[inside] * s.routers + pick(inside, np.full(len(inside), s.routers))
        _dragonfly_local(s, hops, inside, here, middle, pick)
        here[inside] = middle[inside]
    across = rows[one[rows] != other[rows]]
    if len(across) and s.groups > 2:  # noqa: PLR2004 -- a third group
        group = one.copy()
        group[across] = _other_group(s, across, one[across], other[across], pick)
        _dragonfly_to_group(s, hops, across, here, group, pick)
    _dragonfly(s, hops, rows, here, dst, pick)


# ---- Dragonfly+ ------------------------------------------------------------------------------------------


def _up_link(
    s: DragonflyPlusStructure,
    rows: NDArray[np.int64],
    leaf: NDArray[np.int64],
    spine: NDArray[np.integer],
    pick: Chooser,
) -> NDArray[np.int64]:
    """Choose a link from a leaf (over the whole fabric) to a spine (place in its group)."""
    cable = s.first_cable + (leaf * s.spines + spine) * s.leaf_bundle
    return 2 * _one_of(cable, s.leaf_bundle, rows, pick)


def _dragonfly_plus(
    s: DragonflyPlusStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    one, other = src // s.routers, dst // s.routers
    inside = rows[(one[rows] == other[rows]) & (src[rows] != dst[rows])]
    if len(inside):
        spine = pick(inside, np.full(len(inside), s.spines))
        hops.add(inside, _up_link(s, inside, src[inside], spine, pick))
        hops.add(inside, _up_link(s, inside, dst[inside], spine, pick) + 1)
    across = rows[one[rows] != other[rows]]
    if len(across):
        way = _global_cables(s, across, one[across], other[across], pick)
        hops.add(across, _up_link(s, across, src[across], way.near, pick))
        hops.add(across, way.link)
        hops.add(across, _up_link(s, across, dst[across], way.far, pick) + 1)


def _dragonfly_plus_valiant(
    s: DragonflyPlusStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    one, other = src // s.routers, dst // s.routers
    is_across = (one[rows] != other[rows]) & (s.groups > 2)  # noqa: PLR2004 -- a third group
    _dragonfly_plus(s, hops, rows[~is_across], src, dst, pick)
    across = rows[is_across]
    if not len(across):
        return
    group = _other_group(s, across, one[across], other[across], pick)
    way = _global_cables(s, across, one[across], group, pick)
    hops.add(across, _up_link(s, across, src[across], way.near, pick))
    hops.add(across, way.link)
    out = _global_cables(s, across, group, other[across], pick)
    turns = np.flatnonzero(way.far != out.near)  # from spine to spine of the group, over one of its leaves
    if len(turns):
        leaf = group[turns] * s.routers + pick(across[turns], np.full(len(turns), s.routers))
        hops.add(across[turns], _up_link(s, across[turns], leaf, way.far[turns], pick) + 1)
        hops.add(across[turns], _up_link(s, across[turns], leaf, out.near[turns], pick))
    hops.add(across, out.link)
    hops.add(across, _up_link(s, across, dst[across], out.far, pick) + 1)


# ---- Grids -----------------------------------------------------------------------------------------------


def _hyperx(
    s: HyperXStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    here, sizes, strides = src.copy(), s.sizes.astype(np.int64), s.strides
    bundles, pairs = s.bundles.astype(np.int64), s.steps
    for _ in range(len(sizes)):
        at, to = here[rows, None] // strides % sizes, dst[rows, None] // strides % sizes
        differs = at != to
        left = differs.sum(axis=1)
        rows, at, to, differs = rows[left > 0], at[left > 0], to[left > 0], differs[left > 0]
        if not len(rows):
            return
        which = pick(rows, left[left > 0])
        d = np.argmax(np.cumsum(differs, axis=1) > which[:, None], axis=1)
        each = np.arange(len(rows))
        x, y = at[each, d], to[each, d]
        stride, size = strides[d], sizes[d]
        line = here[rows] // (stride * size) * stride + here[rows] % stride
        pair = pair_number(np.minimum(x, y), np.maximum(x, y), size)
        cable = s.dimension_cable[d] + (line * pairs[d] + pair) * bundles[d]
        if bundles.max() > 1:
            cable = cable + pick(rows, bundles[d])
        hops.add(rows, 2 * cable + (x > y))
        here[rows] += (y - x) * stride


def _torus(
    s: TorusStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    here = src.copy()
    for d, (size, stride, bundle) in enumerate(
        zip(s.sizes.tolist(), s.strides.tolist(), s.bundles.tolist(), strict=True)
    ):
        x, y = src[rows] // stride % size, dst[rows] // stride % size
        if s.wraps[d]:
            ahead = (y - x) % size
            is_up = 2 * ahead < size
            tie = np.flatnonzero(2 * ahead == size)
            if len(tie):
                is_up[tie] = pick(rows[tie], np.full(len(tie), 2)) == 0
            steps = np.where(is_up, ahead, size - ahead) * (ahead > 0)
        else:
            is_up, steps = y > x, np.abs(y - x)
        line = here[rows] // (stride * size) * stride + here[rows] % stride
        first = s.dimension_cable[d] + line * s.steps[d] * bundle
        for step in range(int(steps.max(initial=0))):
            going = np.flatnonzero(steps > step)
            up = is_up[going]
            # A cable is numbered by the coordinate that it leads up from.
            low = np.where(up, x[going] + step, x[going] - step - 1) % size
            cable = _one_of(first[going] + low * bundle, bundle, rows[going], pick)
            hops.add(rows[going], 2 * cable + ~up)
        here[rows] += (y - x) * stride


# ---- Slim Fly --------------------------------------------------------------------------------------------


def _slim_fly(
    s: SlimFlyStructure,
    hops: _Hops,
    rows: NDArray[np.int64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    pick: Chooser,
) -> None:
    rows = rows[src[rows] != dst[rows]]
    direct = s.link_between[src[rows], dst[rows]].astype(np.int64)
    hops.add(rows[direct >= 0], direct[direct >= 0])
    rows = rows[direct < 0]
    if not len(rows):
        return
    near = s.neighbour_table
    shared = np.empty((len(rows), near.shape[1]), bool)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        between = near[src[rows[block]]]
        shared[block] = (s.link_between[between, dst[rows[block], None]] >= 0) & (between >= 0)
    options = shared.sum(axis=1)
    assert options.all(), "two routers of a slim fly are more than two hops apart"
    place = np.argmax(np.cumsum(shared, axis=1, dtype=np.int16) > pick(rows, options)[:, None], axis=1)
    middle = near[src[rows], place]
    hops.add(rows, s.link_between[src[rows], middle].astype(np.int64))
    hops.add(rows, s.link_between[middle, dst[rows]].astype(np.int64))
