"""Which nodes become one box, and how many cables run between the boxes.

Every node gets a *panel* (its site), a *column* (its pod, plane, rail or block; -1 for what belongs to
the whole site) and a *cell*: the nodes drawn as one box. All of it is arithmetic on columns, so a
fabric of 400,000 cables is grouped in some tens of milliseconds. Where there are more sites or
columns than can be read, the first two and the last stay and the rest become one, *folded*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.fabric import LINK_KINDS, TIER_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric

HOST, LEAF, SPINE, CORE, METRO = range(len(TIER_NAMES))

#: Sites drawn; of more, the first two and the last, and the rest as one.
MOST_SITES = 5

#: First two, the folded rest, the last.
_FOLDED_COLUMNS = 4

#: Number, in sorting, of what has none.
_NONE = np.iinfo(np.int64).max

#: Planes up to here are drawn apart.
_MOST_PLANES = 8

_HOST_LEAF, _INTER_SITE = LINK_KINDS.index("host_leaf"), LINK_KINDS.index("inter_site")


@dataclass(frozen=True)
class Grain:
    """How finely a fabric is drawn."""

    columns: Literal["one", "pod", "plane", "rail", "block"]
    """What a column of the picture is. A block: hosts, and the leaves that only they share."""
    host: Literal["node", "group", "column"]
    """A box for each host, for each set of hosts on the same leaves, or for each column."""
    leaf: Literal["node", "rail", "column"]
    spine: Literal["node", "column"]
    core: Literal["node", "column"]
    metro: Literal["node", "column"] = "column"
    most_columns: int = 8
    """Columns of a site drawn; of more, the first two and the last, and the rest as one."""


@dataclass(frozen=True)
class Cell:
    """Nodes drawn as one box."""

    panel: int
    column: int
    """Column of the panel; -1 when it belongs to the whole panel."""
    tier: int
    count: int
    first: int
    """Lowest node id."""
    last: int
    """Highest node id."""
    rails: tuple[int, ...]
    """Rails that its switches serve, ascending."""
    planes: tuple[int, ...]
    radix: tuple[int, int]
    """Least and largest; (0, 0) for hosts."""
    used: tuple[int, int]
    """Ports in use of one node: least and most."""
    gpus: int
    """GPUs of its hosts."""
    span: tuple[int, int]
    """First and last column of the panel that it is joined with."""


@dataclass(frozen=True)
class Column:
    """One column of a panel."""

    kind: Literal["one", "pod", "plane", "rail", "block"]
    number: int
    """Number of the pod, plane, rail or block; the first one's where several are folded; -1 for none."""
    merged: int
    """How many columns it stands for: 1 unless folded."""
    pods: int
    """How many pods are in it."""
    leaves: int
    rails: tuple[int, ...]
    """Rails of its leaves."""

    @property
    def is_rail(self) -> bool:
        """Whether it is named after the one rail that it serves."""
        return self.kind in {"pod", "rail"} and len(self.rails) == 1


@dataclass(frozen=True)
class Panel:
    """One site, or the folded rest of them."""

    sites: tuple[int, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Bundle:
    """Parallel cables of one kind and speed between two cells, the one nearer to the hosts first."""

    low: int
    high: int
    kind: str
    rate: float
    count: int
    length: float
    """Length of an inter-site link [m]; 0 for others, which may differ in it."""


@dataclass(frozen=True)
class Grouping:
    """A fabric as cells and bundles."""

    panels: tuple[Panel, ...]
    cells: tuple[Cell, ...]
    """Ordered by panel, tier, column and first node."""
    bundles: tuple[Bundle, ...]
    cell_of: NDArray[np.int64] = field(compare=False, repr=False)
    """(n_nodes,) cell of each node."""
    bundle_of: NDArray[np.int64] = field(compare=False, repr=False)
    """(n_cables,) bundle of each cable."""

    def in_rail(self, cell: Cell) -> bool:
        """Whether a cell stands in a column that is a rail's."""
        return cell.column >= 0 and self.panels[cell.panel].columns[cell.column].is_rail


def group_fabric(fabric: Fabric, grain: Grain) -> Grouping:
    """Group the nodes of a fabric into cells and its cables into bundles.

    Parameters
    ----------
    fabric
        Any fabric.
    grain
        How finely.

    Notes
    -----
    Cost O(n log n) in the cables; there is no Python loop over nodes or cables. The counts of the
    bundles of a kind add up to the fabric's cables of that kind.
    """
    panel, panel_sites = _panels(fabric)
    raw = _raw_columns(fabric, grain)
    column, columns = _columns(fabric, grain, panel, raw, len(panel_sites))
    _put_hosts_in_columns(fabric, panel, column)
    mask_low, mask_high = _joined_columns(fabric, column)
    cell = _cells(fabric, grain, panel, column, (mask_low, mask_high))
    bundles, bundle_of = bundle_cables(fabric, cell)
    return Grouping(
        panels=tuple(Panel(sites, tuple(columns[number])) for number, sites in enumerate(panel_sites)),
        cells=_describe(fabric, cell, panel, column, (mask_low, mask_high)),
        bundles=bundles,
        cell_of=cell,
        bundle_of=bundle_of,
    )


def count_blocks(fabric: Fabric) -> NDArray[np.int64]:
    """Return, for every node, the number of its block: hosts and leaves joined without a spine; -1 above.

    Blocks are numbered from 0 in each site, in the order of their leaves.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    tier = fabric.nodes.tier
    src, dst = fabric.links.src[0::2], fabric.links.dst[0::2]
    low = (tier[src] == HOST) & (tier[dst] == LEAF)
    ends = (src[low].astype(np.int64), dst[low].astype(np.int64))
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(fabric.n_nodes,) * 2)
    label = connected_components(graph, directed=False)[1].astype(np.int64)
    leaves = np.flatnonzero(tier == LEAF)
    site = fabric.nodes.site.astype(np.int64)
    # A component lies in one site; number components by site, then by first leaf.
    found, first = np.unique(label[leaves], return_index=True)
    order = np.lexsort((first, site[leaves[first]]))
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    sites_of = site[leaves[first]][order]
    start = np.searchsorted(sites_of, np.arange(len(fabric.site_names)))
    number = np.full(int(label.max()) + 1, -1, np.int64)
    number[found] = rank - start[site[leaves[first]]]
    block: NDArray[np.int64] = np.where(tier <= LEAF, number[label], -1)
    return block


def _panels(fabric: Fabric) -> tuple[NDArray[np.int64], list[tuple[int, ...]]]:
    """Return the panel of each node and the sites of each panel."""
    n_sites = len(fabric.site_names)
    if n_sites <= MOST_SITES:
        sites: list[tuple[int, ...]] = [(site,) for site in range(n_sites)]
    else:
        sites = [(0,), (1,), tuple(range(2, n_sites - 1)), (n_sites - 1,)]
    panel_of_site = np.repeat(np.arange(len(sites)), [len(group) for group in sites])
    return panel_of_site[fabric.nodes.site], sites


def _raw_columns(fabric: Fabric, grain: Grain) -> NDArray[np.int64]:
    """Return the pod, plane, rail or block of leaves and spines; -1 for what has none and for other tiers."""
    nodes = fabric.nodes
    if grain.columns == "block":
        block = count_blocks(fabric)
        return np.where(nodes.tier == LEAF, block, -1)
    middle = (nodes.tier == LEAF) | (nodes.tier == SPINE)
    if grain.columns == "one":
        return np.where(middle, 0, -1)
    values: NDArray[np.integer] = getattr(nodes, grain.columns)
    return np.where(middle, values.astype(np.int64), -1)


def _columns(
    fabric: Fabric, grain: Grain, panel: NDArray[np.int64], raw: NDArray[np.int64], n_panels: int
) -> tuple[NDArray[np.int64], list[list[Column]]]:
    """Return the column of each node within its panel, and what the columns are."""
    tier, pod, rail = fabric.nodes.tier, fabric.nodes.pod, fabric.nodes.rail
    column = np.full(fabric.n_nodes, -1, np.int64)
    columns: list[list[Column]] = []
    for number in range(n_panels):
        here = panel == number
        leaves = np.flatnonzero(here & (tier == LEAF))
        several_sites = len(np.unique(fabric.nodes.site[leaves])) > 1
        # Leaves without a pod or rail come last.
        values, place = np.unique(np.where(raw[leaves] < 0, _NONE, raw[leaves]), return_inverse=True)
        if len(values) <= 1 or several_sites:
            # One column: all leaves and spines are in it, whatever they say.
            middle = here & ((tier == LEAF) | (tier == SPINE))
            column[middle] = 0
            kind: Literal["one", "pod", "plane", "rail", "block"] = "one"
            shown = np.zeros(1, np.int64)
            values = np.array([-1])
            place = np.zeros(len(leaves), np.int64)
        else:
            kind = grain.columns
            n = len(values)
            shown = np.arange(n)
            if n > max(grain.most_columns, _FOLDED_COLUMNS):
                shown = np.where(shown < 2, shown, np.where(shown == n - 1, 3, 2))  # noqa: PLR2004 -- first two
            column[leaves] = shown[place]
            spines = np.flatnonzero(here & (tier == SPINE))
            found = np.minimum(np.searchsorted(values, raw[spines]), n - 1)
            known = (values[found] == raw[spines]) & (raw[spines] >= 0)
            column[spines] = np.where(known, shown[found], -1)
        columns.append(
            [
                Column(
                    kind=kind,
                    number=-1 if values[shown == j][0] == _NONE else int(values[shown == j][0]),
                    merged=int((shown == j).sum()),
                    pods=len(np.unique(pod[mine])),
                    leaves=len(mine),
                    rails=_present(rail[mine]),
                )
                for j in range(int(shown.max()) + 1)
                for mine in (leaves[shown[place] == j],)
            ]
        )
    return column, columns


def _present(values: NDArray[np.generic]) -> tuple[int, ...]:
    """Return the values that are not -1, once each, ascending."""
    return tuple(int(value) for value in np.unique(values) if value >= 0)


def _put_hosts_in_columns(fabric: Fabric, panel: NDArray[np.int64], column: NDArray[np.int64]) -> None:
    """Give hosts the column of their leaves, in panels where no host has leaves in several."""
    host, leaf = fabric.endpoints.host, fabric.endpoints.leaf
    least = np.full(fabric.n_nodes, np.iinfo(np.int64).max)
    most = np.full(fabric.n_nodes, -1, np.int64)
    np.minimum.at(least, host, column[leaf])
    np.maximum.at(most, host, column[leaf])
    hosts = fabric.host_ids
    across = np.unique(panel[hosts[least[hosts] != most[hosts]]])
    column[hosts] = np.where(np.isin(panel[hosts], across), -1, most[hosts])


def _joined_columns(fabric: Fabric, column: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last column that each node is cabled to; its own for a node in a column."""
    low = np.where(column >= 0, column, np.iinfo(np.int64).max)
    high = column.copy()
    tier = fabric.nodes.tier
    src, dst = fabric.links.src, fabric.links.dst
    # Each tier looks at the one below (and hosts at the one above), so what is joined through
    # a tier without columns is found too.
    for above, below in ((HOST, LEAF), (SPINE, LEAF), (CORE, SPINE), (METRO, CORE)):
        chosen = (tier[src] == below) & (tier[dst] == above) & (column[dst] < 0)
        np.minimum.at(low, dst[chosen], low[src[chosen]])
        np.maximum.at(high, dst[chosen], high[src[chosen]])
    nowhere = high < 0
    low[nowhere], high[nowhere] = 0, np.iinfo(np.int32).max
    return low, high


def _cells(
    fabric: Fabric,
    grain: Grain,
    panel: NDArray[np.int64],
    column: NDArray[np.int64],
    joined: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return the cell of each node, numbered by panel, tier, column and first node."""
    tier, rail, plane = fabric.nodes.tier, fabric.nodes.rail, fabric.nodes.plane
    part = np.zeros(fabric.n_nodes, np.int64)
    ids = np.arange(fabric.n_nodes)
    apart = np.zeros(fabric.n_nodes, np.int64)
    if plane.max() < _MOST_PLANES:
        apart = plane.astype(np.int64) + 1
    for number in (LEAF, SPINE, CORE, METRO):
        here = tier == number
        how = getattr(grain, TIER_NAMES[number])
        if how == "node":
            part[here] = ids[here]
            continue
        part[here] = apart[here]
        if how == "rail":
            part[here] += (rail[here].astype(np.int64) + 1) * (_MOST_PLANES + 1)
        _part_by_span(part, here & (column < 0), panel, joined)
    hosts = tier == HOST
    if grain.host == "node":
        part[hosts] = ids[hosts]
    elif grain.host == "column":
        _part_by_span(part, hosts & (column < 0), panel, joined)
    cell = _number(panel, tier, column, part)
    if grain.host == "group":
        # Hosts whose NICs go to the same cells, equally often, are one: their leaves' cells
        # are mixed to a sum that does not depend on the order of the NICs.
        ends = _mixed(cell[fabric.endpoints.leaf])
        total = np.zeros(fabric.n_nodes, np.uint64)
        np.add.at(total, fabric.endpoints.host, ends)
        gpus = np.zeros(fabric.n_nodes, np.uint64)
        gpus[fabric.host_ids] = fabric.gpus_per_host.astype(np.uint64)
        part[hosts] = np.unique(total[hosts] + _mixed(gpus[hosts]), return_inverse=True)[1]
        cell = _number(panel, tier, column, part)
    return cell


def _mixed(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return well-scattered 64-bit numbers, one for each value (splitmix64)."""
    z = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _part_by_span(
    part: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    panel: NDArray[np.int64],
    joined: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Divide nodes of a whole panel by the columns they span, where the spans do not overlap."""
    ids = np.flatnonzero(chosen)
    if not len(ids):
        return
    spans = np.stack([panel[ids], joined[0][ids], joined[1][ids]], axis=1)
    found, place = np.unique(spans, axis=0, return_inverse=True)
    number, reach, last = 0, -1, -1
    numbers = []
    for where, low, high in found.tolist():
        if where != last or low > reach:
            number += 1
            reach = high
        reach, last = max(reach, high), where
        numbers.append(number)
    # Above the planes, which part them further.
    part[ids] += np.array(numbers)[place.reshape(-1)] * (1 << 20)


def _number(
    panel: NDArray[np.int64], tier: NDArray[np.int8], column: NDArray[np.int64], part: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return cells numbered by panel, tier, column and lowest node id."""
    group = (panel * len(TIER_NAMES) + tier) * (int(column.max()) + 2) + column + 1
    found, dense = np.unique(part, return_inverse=True)
    key = group * len(found) + dense
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    order = np.lexsort((first, group[first]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[cell]


def _describe(
    fabric: Fabric,
    cell: NDArray[np.int64],
    panel: NDArray[np.int64],
    column: NDArray[np.int64],
    joined: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[Cell, ...]:
    """Return what is known of each cell."""
    nodes = fabric.nodes
    n = int(cell.max()) + 1
    counts = np.bincount(cell, minlength=n)
    order = np.argsort(cell, kind="stable")
    start = np.concatenate([[0], np.cumsum(counts)])[:-1]
    first, last = order[start], order[start + counts - 1]
    used = np.bincount(fabric.links.src, minlength=fabric.n_nodes)

    def least(values: NDArray[np.generic]) -> list[int]:
        return [int(v) for v in np.minimum.reduceat(values[order], start)]

    def most(values: NDArray[np.generic]) -> list[int]:
        return [int(v) for v in np.maximum.reduceat(values[order], start)]

    gpus = np.bincount(cell[fabric.host_ids], weights=fabric.gpus_per_host, minlength=n)
    rails, planes = _values_by_cell(cell, nodes.rail, n), _values_by_cell(cell, nodes.plane, n)
    radix, ports = (least(nodes.radix), most(nodes.radix)), (least(used), most(used))
    spans = (least(joined[0]), most(joined[1]))
    return tuple(
        Cell(
            panel=int(panel[first[i]]),
            column=int(column[first[i]]),
            tier=int(nodes.tier[first[i]]),
            count=int(counts[i]),
            first=int(first[i]),
            last=int(last[i]),
            rails=rails[i],
            planes=planes[i],
            radix=(radix[0][i], radix[1][i]),
            used=(ports[0][i], ports[1][i]),
            gpus=int(gpus[i]),
            span=(spans[0][i], spans[1][i]),
        )
        for i in range(n)
    )


def _values_by_cell(cell: NDArray[np.int64], values: NDArray[np.int16], n: int) -> list[tuple[int, ...]]:
    """Return the values that occur in each cell, without -1."""
    wide = int(values.max()) + 2
    pairs = np.unique(cell * wide + values + 1)
    result: list[list[int]] = [[] for _ in range(n)]
    for pair in pairs.tolist():
        where, value = divmod(pair, wide)
        if value:
            result[where].append(value - 1)
    return [tuple(found) for found in result]


def bundle_cables(
    fabric: Fabric, cell: NDArray[np.int64], cables: NDArray[np.int64] | None = None
) -> tuple[tuple[Bundle, ...], NDArray[np.int64]]:
    """Return cables (all, or those chosen) between cells, counted, and the bundle of each."""
    links = fabric.links
    rows = 2 * (np.arange(links.n_cables) if cables is None else cables)
    src, dst = links.src[rows], links.dst[rows]
    kind = links.kind[rows].astype(np.int64)
    low, high = cell[src], cell[dst]
    # Metro switches face each other: whichever end the file named first, it is one line.
    level = fabric.nodes.tier[src] >= fabric.nodes.tier[dst]
    turned = level & (low > high)
    low, high = np.where(turned, high, low), np.where(turned, low, high)
    rates, rate = np.unique(links.capacity[rows], return_inverse=True)
    far = np.where(kind == _INTER_SITE, links.length[rows], 0.0)
    lengths, length = np.unique(far, return_inverse=True)
    n = int(cell.max()) + 1
    shape = (n, n, len(LINK_KINDS), len(rates), len(lengths))
    key = np.ravel_multi_index((low, high, kind, rate, length), shape)
    found, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    ends = (column.tolist() for column in np.unravel_index(found, shape))
    bundles = tuple(
        Bundle(a, b, LINK_KINDS[k], float(rates[r]), count, float(lengths[m]))
        for a, b, k, r, m, count in zip(*ends, counts.tolist(), strict=True)
    )
    return bundles, place.reshape(-1).astype(np.int64)
