"""Which family a fabric nearly is, and where it deviates from it.

For fabrics that were found, not generated: imported ones. A deviation is judged against what the rest of the
same fabric does, never against a plan that nobody has:

* *Bundles.* Within switches that share upper neighbours, nearly all pairs have one number of parallel cables
  (the most frequent one, when it holds for over half of the pairs). Where pairs differ by design, as between
  spines and core groups, the row of a switch (its cables to each upper switch) is held against the most
  frequent row that is near to it. Fewer cables are missing; a missing one and one too many at the same switch
  are one cable gone astray (miswired).
* *Speeds.* Cables between two tiers that are slower than the most frequent speed there are degraded, when
  they are fewer than a quarter and those of one switch pair or host are not slower all together by design.
* *Hosts.* NIC ports fewer than nearly all hosts have; ports on a switch above the leaves; on rails, a NIC
  whose leaf serves another rail.

Direct networks are told apart by the number of switches that a switch sees at each distance: that histogram
follows in closed form from the family's parameters, and its median over switches hardly moves when a few
cables are missing. A Slim Fly is known by degree and diameter 2. What fits nothing is ``irregular``.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric.checks import CheckPage, FabricFault, components
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from netplan.fabric.columns import Fabric

#: At most so many deviations of one code are spelled out; the rest are counted.
MOST_LISTED = 50

#: Over this share of switch pairs must agree for their number of cables to be what is meant.
_MOST_PAIRS = 0.5

#: Up to this share of cables, slower ones are degraded; more are meant to be slower.
_FEW = 0.25

#: A leaf serves a rail when at least this share of its NIC ports are of it.
_PURE = 0.8

#: The largest direct network that is measured by distances from all of a sample of switches.
_SAMPLE = 64

_PAGES = (
    (
        "NP111",
        "no cable is missing",
        "Bundles between two switches, and NIC ports of a host, are as many as nearly everywhere else.",
        "A missing cable takes its share of bandwidth from every flow that hashes there.",
        "Look at both ports: unplugged, disabled, or down.",
    ),
    (
        "NP112",
        "no cable is degraded",
        "A cable runs at the speed of nearly all cables between the same tiers.",
        "A down-trained link is the slowest of a collective: all others wait for it.",
        "Clean or replace the cable or transceiver; look at the port's error counters.",
    ),
    (
        "NP113",
        "hosts are on leaves",
        "A host's NIC ports are on the lowest tier of switches.",
        "A host on a spine takes a port from a leaf and its paths are shorter than all others'.",
        "Nothing, for management and storage hosts; else move the host.",
    ),
    (
        "NP114",
        "bundles are as elsewhere",
        "Two switches have no more parallel cables than nearly all other pairs.",
        "Unequal bundles load upper switches unequally.",
        "Move the cable to where one is missing.",
    ),
    (
        "NP115",
        "no cable is miswired",
        "A cable leads to where nearly all switches or hosts alike have theirs.",
        "A switch or rail gets too much and another too little: routing engines for trees give up.",
        "Exchange the cables named.",
    ),
)
#: What is written of these checks: they run on fabrics that were found (`as_built`).
PAGES = tuple(CheckPage(*page) for page in _PAGES)


@dataclass(frozen=True)
class Classification:
    """What a fabric nearly is."""

    family: str
    """Name of a family, or ``irregular``."""
    described_as: str
    """The same in a few words, with its numbers."""
    deviations: tuple[FabricFault, ...]
    """Where it differs from that; all are warnings."""


def classify(fabric: Fabric, *, most: int = MOST_LISTED) -> Classification:
    """Find the family that a fabric nearly is, and list its deviations.

    Parameters
    ----------
    fabric
        Any fabric.
    most
        How many deviations of one code are spelled out; the last says how many more there are.
    """
    rails = _rail_of_leaf(fabric)
    family, words = _direct_family(fabric) if _is_direct(fabric) else _tree_family(fabric, rails)
    found = [*_hosts(fabric), *_degraded(fabric)]
    if not _is_direct(fabric):
        found += [*_bundles(fabric), *_astray_tiers(fabric)]
    else:
        found += _missing_direct(fabric)
    if rails is not None:
        found += _wrong_rails(fabric, rails)
    return Classification(family, words, tuple(_limited(found, most)))


def _limited(found: list[FabricFault], most: int) -> Iterator[FabricFault]:
    """Yield the first of each code; the last that is spelled out counts the rest."""
    by_code: dict[str, list[FabricFault]] = defaultdict(list)
    for fault in found:
        by_code[fault.code].append(fault)
    for code in sorted(by_code):
        faults = by_code[code]
        yield from faults[: most - 1]
        if len(faults) >= most:
            last, more = faults[most - 1], len(faults) - most
            text = f"{last.message} (and {more:,} more)" if more else last.message
            yield FabricFault(last.code, last.severity, last.where, text, last.hint)


def _fault(code: str, where: str, message: str) -> FabricFault:
    return FabricFault(code, "warning", where, message)


def _is_direct(fabric: Fabric) -> bool:
    direct = [LINK_KINDS.index("local"), LINK_KINDS.index("global")]
    return bool(np.isin(fabric.links.kind, direct).any())


# ---- trees -------------------------------------------------------------------------------------


def _rail_of_leaf(fabric: Fabric) -> NDArray[np.int64] | None:
    """(n_nodes,) rail that each leaf serves; None where leaves serve all rails."""
    ends = fabric.endpoints
    if not len(ends) or ends.rail.max() == 0:
        return None
    full = np.bincount(ends.host, minlength=fabric.n_nodes)
    mode = _mode(full[fabric.host_ids])
    rows = np.flatnonzero((full[ends.host] == mode) & (fabric.nodes.tier[ends.leaf] == 1))
    if not len(rows) or mode == 1:
        return None
    n_rails = int(ends.rail[rows].max()) + 1
    count = np.zeros((fabric.n_nodes, n_rails), np.int64)
    np.add.at(count, (ends.leaf[rows], ends.rail[rows]), 1)
    rail = np.where(count.sum(axis=1) > 0, count.argmax(axis=1), -1)
    pure = count.max(axis=1).sum() / max(count.sum(), 1)
    return rail if pure >= _PURE and len(np.unique(rail[rail >= 0])) == n_rails else None


def _tree_family(  # noqa: PLR0911 -- one return for each family
    fabric: Fabric, rails: NDArray[np.int64] | None
) -> tuple[str, str]:
    """Return family and words of a tree."""
    tier = fabric.nodes.tier
    part = components(fabric, through_hosts=False)
    parts = np.unique(part[fabric.endpoints.leaf])
    tiers = sorted(set(tier[tier > 0].tolist()))
    count = {t: int((tier == t).sum()) for t in tiers}
    links = fabric.links
    same = (tier[links.src[0::2]] == tier[links.dst[0::2]]) & (tier[links.src[0::2]] > 0)
    size = ", ".join(
        f"{n:,} {TIER_NAMES[t]}{'s' if n > 1 else ''}".replace("leafs", "leaves") for t, n in count.items()
    )
    size += f", {int(same.sum()):,} cables within a tier" if same.any() else ""
    n_rails = 0 if rails is None else int(rails.max()) + 1
    if len(parts) > 1:
        leaf_part = part[fabric.endpoints.leaf]
        hosts_in = [len(np.unique(fabric.endpoints.host[leaf_part == p])) for p in parts]
        if min(hosts_in) < fabric.n_hosts * 0.5:
            return "irregular", f"{len(parts)} fabrics that do not meet: {size}"
        if n_rails == len(parts):
            return "rail-only", f"a fabric of {n_rails} rails (or planes) that meet in hosts only: {size}"
        return "multi-plane", f"a fabric of {len(parts)} planes that never meet: {size}"
    if tiers == [1]:
        return (
            ("leaf-spine", "one switch") if count[1] == 1 else ("irregular", f"switches of one tier: {size}")
        )
    if tiers == [1, 2]:
        if n_rails:
            return "rail-optimized", f"a rail-optimized fabric of {n_rails} rails: {size}"
        return "leaf-spine", f"a leaf-spine fabric: {size}"
    up, down = np.zeros(fabric.n_nodes, np.int64), np.zeros(fabric.n_nodes, np.int64)
    low, high = fabric.links.src[0::2], fabric.links.dst[0::2]
    np.add.at(up, low, 1)
    np.add.at(down, high, 1)
    middle = (tier == 1) | (tier == 2)  # noqa: PLR2004 -- leaf and spine
    even = np.mean(up[middle] >= down[middle]) >= _PURE
    pods = len(np.unique(_pods(fabric)[tier == 1]))
    of = f"{pods} pods{f', {n_rails} rails' if n_rails else ''}: {size}"
    if n_rails:
        return "rail-optimized", f"a rail-optimized fabric of three tiers, {of}"
    return ("fat-tree", f"a fat-tree, {of}") if even else ("clos", f"an oversubscribed three-tier tree, {of}")


def _pods(fabric: Fabric) -> NDArray[np.int64]:
    """(n_nodes,) leaves and spines that are joined without cores, by number; a stray cable joins nothing."""
    tier, links = fabric.nodes.tier, fabric.links
    low, high = links.src[0::2], links.dst[0::2]
    rows = (tier[low] == 1) & (tier[high] == 2)  # noqa: PLR2004 -- leaf and spine
    neighbours: dict[int, set[int]] = defaultdict(set)
    for a, b in zip(low[rows].tolist(), high[rows].tolist(), strict=True):
        neighbours[a].add(b)
    pod = np.arange(fabric.n_nodes)
    heads: list[int] = []
    for leaf, mine in neighbours.items():
        for head in heads:
            theirs = neighbours[head]
            if len(mine & theirs) > 0.5 * min(len(mine), len(theirs)):
                pod[leaf] = head
                break
        else:
            heads.append(leaf)
    return pod


def _mode(values: NDArray[np.integer]) -> int:
    """Return the most frequent value; the largest of equally frequent ones."""
    if not len(values):
        return 0
    found, counts = np.unique(values, return_counts=True)
    return int(found[np.flatnonzero(counts == counts.max())[-1]])


def _bundles(fabric: Fabric) -> Iterator[FabricFault]:
    """Hold the bundles between adjacent tiers against those of switches alike."""
    tier = fabric.nodes.tier
    low, high = fabric.links.src[0::2], fabric.links.dst[0::2]
    for below in range(1, int(tier.max())):
        rows = (tier[low] == below) & (tier[high] == below + 1)
        if not rows.any():
            continue
        lowers, uppers = np.flatnonzero(tier == below), np.flatnonzero(tier == below + 1)
        have = np.zeros((len(lowers), len(uppers)), np.int64)
        np.add.at(have, (np.searchsorted(lowers, low[rows]), np.searchsorted(uppers, high[rows])), 1)
        for row, want in _wanted(have):
            yield from _compare_row(fabric, int(lowers[row]), uppers, have[row], want)


def _wanted(have: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each row that is not as it should be, and what it should be."""
    groups = _alike(have)
    heads = [group for group in groups if len(group) > 1]
    for group in groups:
        table = have[group]
        if len(group) == 1 and heads and len(heads[0]) > 1:
            near = min((np.abs(have[other[0]] - table[0]).sum(), i) for i, other in enumerate(heads))
            if near[0] > table[0].sum():  # nothing alike: it is what it is
                continue
            table = np.concatenate([have[heads[near[1]]], table])
        seen = np.flatnonzero((table > 0).mean(axis=0) >= _MOST_PAIRS)
        if not len(seen):
            continue
        inner = table[:, seen]
        mode = _mode(inner[inner > 0])
        uniform = np.mean(inner == mode) > _MOST_PAIRS
        want = np.zeros(have.shape[1], np.int64)
        for column in seen.tolist():
            want[column] = mode if uniform else _mode(table[:, column])
        for row in group:
            if (have[row] != want).any():
                yield row, want


def _alike(have: NDArray[np.int64]) -> list[list[int]]:
    """Return the rows in groups that share most of their upper neighbours."""
    groups: list[list[int]] = []
    sets = [set(np.flatnonzero(row).tolist()) for row in have]
    for row, mine in enumerate(sets):
        for group in groups:
            head = sets[group[0]]
            if len(mine & head) > _MOST_PAIRS * max(len(mine), len(head), 1):
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


def _compare_row(
    fabric: Fabric, switch: int, uppers: NDArray[np.int64], have: NDArray[np.int64], want: NDArray[np.int64]
) -> Iterator[FabricFault]:
    """Tell missing cables, cables too many, and pairs of both, which are cables gone astray."""
    name = fabric.node_name
    missing = [int(i) for i in np.flatnonzero(have < want) for _ in range(int(want[i] - have[i]))]
    extra = [int(i) for i in np.flatnonzero(have > want) for _ in range(int(have[i] - want[i]))]
    astray = min(len(missing), len(extra))
    for lost, found in zip(missing[:astray], extra[:astray], strict=True):
        message = f"a cable leads to {name(int(uppers[found]))}, where {name(int(uppers[lost]))} lacks one"
        yield _fault("NP115", name(switch), message)
    for i, number in Counter(missing[astray:]).items():
        up = name(int(uppers[i]))
        message = f"{number} of {want[i]} cable(s) to {up} missing: switches like it have {want[i]}"
        yield _fault("NP111", name(switch), message)
    for i, number in Counter(extra[astray:]).items():
        up = name(int(uppers[i]))
        yield _fault(
            "NP114",
            name(switch),
            f"has {number} cable(s) to {up} more than the {want[i]} of switches like it",
        )


def _astray_tiers(fabric: Fabric) -> Iterator[FabricFault]:
    """Tell cables between switches that skip a tier or stay in one."""
    tier = fabric.nodes.tier
    low, high = fabric.links.src[0::2], fabric.links.dst[0::2]
    inter_site = fabric.links.kind[0::2] == LINK_KINDS.index("inter_site")
    metro = tier[high] == len(TIER_NAMES) - 1
    odd = (tier[low] > 0) & (tier[high] - tier[low] != 1) & ~inter_site & ~metro
    for each in np.unique(tier[low[odd]]).tolist():  # joined by design: sites, or a ring of cores
        within = odd & (tier[low] == each) & (tier[high] == each)
        if len(np.unique([low[within], high[within]])) > _MOST_PAIRS * (tier == each).sum():
            odd &= ~within
    for cable in np.flatnonzero(odd).tolist():
        a, b = TIER_NAMES[tier[low[cable]]], TIER_NAMES[tier[high[cable]]]
        yield _fault("NP115", fabric.link_name(2 * cable), f"joins a {a} with a {b}")


# ---- hosts and speeds ----------------------------------------------------------------------------


def _hosts(fabric: Fabric) -> Iterator[FabricFault]:
    """Tell hosts with fewer NIC ports than nearly all, and hosts above the leaves."""
    ends, tier = fabric.endpoints, fabric.nodes.tier
    ports = np.bincount(ends.host, minlength=fabric.n_nodes)
    on_leaf = fabric.host_ids[
        np.bincount(ends.host, (tier[ends.leaf] == 1).astype(float), minlength=fabric.n_nodes)[
            fabric.host_ids
        ]
        > 0
    ]
    mode = _mode(ports[on_leaf])
    few = on_leaf[ports[on_leaf] < mode]
    if len(few) <= _FEW * max(len(on_leaf), 1):
        for host in few.tolist():
            yield _fault("NP111", fabric.node_name(host), f"{ports[host]} of {mode} NIC ports are cabled")
    if _is_direct(fabric):
        return
    for endpoint in np.flatnonzero(tier[ends.leaf] > 1).tolist():
        switch = int(ends.leaf[endpoint])
        where = fabric.node_name(int(ends.host[endpoint]))
        yield _fault("NP113", where, f"is on {fabric.node_name(switch)}, a {TIER_NAMES[tier[switch]]}")


def _degraded(fabric: Fabric) -> Iterator[FabricFault]:
    """Tell cables that are slower than nearly all between the same tiers."""
    tier, links = fabric.nodes.tier, fabric.links
    low, high = tier[links.src[0::2]], tier[links.dst[0::2]]
    rate = links.capacity[0::2]
    # Between switches the tiers do not matter where a host hangs from any tier.
    group = np.where(low == 0, 0, 1 + 8 * low.astype(np.int64) + high)
    for each in np.unique(group).tolist():
        rows = np.flatnonzero(group == each)
        values, counts = np.unique(rate[rows], return_counts=True)
        usual = values[np.flatnonzero(counts == counts.max())[-1]]
        slow = rows[rate[rows] < usual * (1 - 1e-9)]
        if len(slow) > _FEW * len(rows):  # slower by design, but for one beside a faster one
            slow = slow[rate[slow] < _fastest_parallel(fabric, rate)[slow] * (1 - 1e-9)]
        elif each == 0:  # a host whose ports are all alike has slower NICs, or one port only
            alike = _per_host(fabric, rate, rows)
            slow = np.array([c for c in slow.tolist() if not alike[int(links.src[2 * c])]], np.int64)
        for cable in slow.tolist():
            runs = f"runs at {format_rate(float(rate[cable]))}"
            where = fabric.link_name(2 * cable)
            yield _fault("NP112", where, f"{runs}, others there at {format_rate(float(usual))}")


def _fastest_parallel(fabric: Fabric, rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_cables,) the highest speed between the two ends of each cable [bytes/s]."""
    pair = fabric.links.src[0::2].astype(np.int64) * fabric.n_nodes + fabric.links.dst[0::2]
    place = np.unique(pair, return_inverse=True)[1]
    fastest = np.zeros(place.max(initial=-1) + 1)
    np.maximum.at(fastest, place, rate)
    return np.asarray(fastest[place])


def _per_host(fabric: Fabric, rate: NDArray[np.float64], rows: NDArray[np.int64]) -> dict[int, bool]:
    """Return, per host, whether it has several ports and all are of one speed: slower by design."""
    speeds: dict[int, list[float]] = defaultdict(list)
    for cable in rows.tolist():
        speeds[int(fabric.links.src[2 * cable])].append(float(rate[cable]))
    return {host: len(found) > 1 and len(set(found)) == 1 for host, found in speeds.items()}


def _wrong_rails(fabric: Fabric, rails: NDArray[np.int64]) -> Iterator[FabricFault]:
    """Tell NICs that are on a leaf of another rail, of hosts that have all of theirs."""
    ends = fabric.endpoints
    ports = np.bincount(ends.host, minlength=fabric.n_nodes)
    full = ports[ends.host] == _mode(ports[fabric.host_ids])
    rail = rails[ends.leaf]
    for endpoint in np.flatnonzero(full & (rail >= 0) & (rail != ends.rail)).tolist():
        leaf = fabric.node_name(int(ends.leaf[endpoint]))
        where = f"{fabric.node_name(int(ends.host[endpoint]))} NIC {ends.rail[endpoint]}"
        yield _fault("NP115", where, f"is on {leaf}, which serves rail {rail[endpoint]}")


# ---- direct networks -----------------------------------------------------------------------------


def _switch_neighbours(fabric: Fabric) -> tuple[list[list[int]], Counter[tuple[int, int]]]:
    """Return the neighbours of each switch (by place), and the number of cables of each pair."""
    tier, links = fabric.nodes.tier, fabric.links
    switches = np.flatnonzero(tier > 0)
    low, high = links.src[0::2], links.dst[0::2]
    rows = (tier[low] > 0) & (tier[high] > 0)
    a, b = np.searchsorted(switches, low[rows]), np.searchsorted(switches, high[rows])
    pairs = Counter(zip(np.minimum(a, b).tolist(), np.maximum(a, b).tolist(), strict=True))
    near: list[list[int]] = [[] for _ in switches]
    for one, other in pairs:
        near[one].append(other)
        near[other].append(one)
    return near, pairs


def _histogram(near: list[list[int]]) -> tuple[int, ...]:
    """Return how many switches the median switch sees at distance 1, 2, ..."""
    step = max(1, len(near) // _SAMPLE)
    rows = []
    for start in range(0, len(near), step):
        seen, edge, row = {start}, [start], []
        while edge:
            edge = list(dict.fromkeys(b for a in edge for b in near[a] if b not in seen))
            seen.update(edge)
            row.append(len(edge))
        rows.append(row[:-1])
    width = max(map(len, rows))
    table = np.array([row + [0] * (width - len(row)) for row in rows])
    usual = np.median(table, axis=0).astype(int).tolist()
    while usual and not usual[-1]:  # a few switches see farther, for a cable is missing
        usual.pop()
    return tuple(usual)


def _product(factors: list[list[int]]) -> tuple[int, ...]:
    """Return the distance histogram of a product of graphs, from those of its factors (with distance 0)."""
    total = np.ones(1, np.int64)
    for factor in factors:
        total = np.convolve(total, factor)
    return tuple(total[1:].tolist())


def _factorizations(n: int, least: int = 2, most: int = 6) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a number as a product of ascending factors."""
    if n >= least:
        yield (n,)
    if most > 1:
        for d in range(least, int(n**0.5) + 1):
            if n % d == 0:
                for rest in _factorizations(n // d, d, most - 1):
                    yield (d, *rest)


def _cycle(n: int) -> list[int]:
    """Return the distance histogram of a ring."""
    if n == 2:  # noqa: PLR2004 -- a ring of two is a cable
        return [1, 1]
    return [1] + [2] * ((n - 1) // 2) + ([1] if n % 2 == 0 else [])


def _apart(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Return how much two histograms differ, as a share of the switches."""
    pairs = itertools.zip_longest(a, b, fillvalue=0)
    return sum(abs(x - y) for x, y in pairs) / max(sum(a), 1)


def _direct_family(fabric: Fabric) -> tuple[str, str]:
    """Return family and words of a direct network."""
    near, _ = _switch_neighbours(fabric)
    n = len(near)
    if len(set(fabric.nodes.tier[fabric.nodes.tier > 0].tolist())) > 1:
        kinds = fabric.nodes.tier[fabric.nodes.tier > 0]
        leaves, spines = int((kinds == 1).sum()), int((kinds == 2).sum())  # noqa: PLR2004 -- spines
        return "dragonfly-plus", f"a dragonfly+ of {leaves:,} leaves and {spines:,} spines"
    seen = _histogram(near)
    degree = seen[0] if seen else 0
    found: list[tuple[float, int, int, str, str]] = []
    for dims in _factorizations(n):
        size = "x".join(map(str, dims))
        rings = _product([_cycle(d) for d in dims])
        found.append((_apart(rings, seen), 1, len(dims), "torus", f"a torus of {size} switches"))
        whole = "a full mesh" if len(dims) == 1 else "a HyperX"
        histogram = _product([[1, d - 1] for d in dims])
        found.append((_apart(histogram, seen), 0, len(dims), "hyperx", f"{whole} of {size} switches"))
    if groups := _cliques(near):
        found.append(
            (0.01, 2, 0, "dragonfly", f"a dragonfly of {len(groups):,} groups of {len(groups[0]):,} routers")
        )
    q = round((n / 2) ** 0.5)
    has_degree = any(2 * degree == 3 * q - delta for delta in (-1, 0, 1))
    if 2 * q * q == n and len(seen) == 2 and has_degree:  # noqa: PLR2004 -- its diameter
        found.append((0.0, 3, 0, "slim-fly", f"a Slim Fly with q = {q}, {n} routers"))
    if found:
        apart, _, _, family, words = min(found)  # a ring of 4 is also 2x2: the fewest dimensions
        if apart <= 0.1:  # noqa: PLR2004 -- a tenth of the switches at another distance
            return family, words
    usual = Counter(len(each) for each in near).most_common(1)[0][0]
    return "irregular", f"a direct network of {n:,} switches, most with {usual} neighbours"


def _cliques(near: list[list[int]]) -> list[list[int]]:
    """Return the groups of a dragonfly: equal, each nearly a clique, joined by few cables; else nothing."""
    sets = [set(each) for each in near]
    done: set[int] = set()
    groups: list[list[int]] = []
    alone: list[int] = []
    for start in range(len(near)):
        if start in done:
            continue
        # Neighbours that share most of the neighbours which any shares with this one are of its group.
        common = {b: len(sets[start] & sets[b]) for b in near[start] if b not in done}
        most = max(common.values(), default=0)
        if most == 0:  # its group is there already, but for a missing cable
            alone.append(start)
            continue
        group = [start, *(b for b, shared in common.items() if shared > 0.5 * most)]
        done.update(group)
        groups.append(group)
    if not groups or len(alone) > _FEW * len(near):
        return []
    for router in alone:
        max(groups, key=lambda group: len(sets[router].intersection(group))).append(router)
    size = Counter(map(len, groups)).most_common(1)[0][0]
    if size < 3 or len(groups) < 3 or sum(len(g) != size for g in groups) > _FEW * len(groups):  # noqa: PLR2004
        return []
    inside = np.mean([len(sets[a] & set(group)) / max(len(group) - 1, 1) for group in groups for a in group])
    outside = [len(near[a]) - len(sets[a] & set(group)) for group in groups for a in group]
    groups.sort(key=lambda group: len(group) != size)
    return groups if inside > 0.9 and np.median(outside) >= 1 else []  # noqa: PLR2004 -- nearly cliques


def _missing_direct(fabric: Fabric) -> Iterator[FabricFault]:
    """Tell switches with fewer cables to switches than nearly all of their tier have."""
    tier = fabric.nodes.tier
    low, high = fabric.links.src[0::2], fabric.links.dst[0::2]
    between = (tier[low] > 0) & (tier[high] > 0)
    count = np.bincount(low[between], minlength=fabric.n_nodes) + np.bincount(
        high[between], minlength=fabric.n_nodes
    )
    for each in np.unique(tier[tier > 0]).tolist():
        switches = np.flatnonzero(tier == each)
        mode = _mode(count[switches])
        if (count[switches] != mode).mean() > _FEW:
            continue
        for node in switches[count[switches] < mode].tolist():
            yield _fault(
                "NP111", fabric.node_name(node), f"{count[node]} of {mode} cables to switches are there"
            )
        for node in switches[count[switches] > mode].tolist():
            yield _fault(
                "NP114", fabric.node_name(node), f"has {count[node]} cables to switches, others {mode}"
            )
