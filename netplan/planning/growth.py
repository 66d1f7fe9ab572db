"""From one size of a fabric to the next: which boxes and cables stay, which move, what is to buy.

`regrow` matches the old fabric into the new one (`netplan.planning.matching`: hosts keep their seats, each
tier of switches is a linear assignment) and splits the cables:

* *kept*: both ends stay in the boxes that they are in;
* *moved*: plugged elsewhere, at one end where that is possible, else at both; same kind, speed and length;
* *removed*: an old cable that the new fabric has no use for; *new*: one to lay.

Ports are numbered 1, 2, ... per box in the order of the old fabric's cables. A cable that stays keeps its
ports; an end that moves, or is new, takes the lowest port that was free before, then the lowest that gets
free.

What it is not: a schedule. Which cable may be pulled while a job runs follows from `netplan failures`; the
steps are in an order in which each switch's moves stand together. A box has a place if its ports are as
many and as fast as the place uses; whether its part number is the same is for the bill of materials. A host
of the old fabric stays where it stands, under whichever number it gets.

`growth_choices` answers the other question: how to begin. From the design of the later size it derives
beginnings that have its pods and leaves already and differ in how many cores (or spines) are there from the
first day: many cost switches now, few cost moves later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import FabricError
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.planning.matching import (
    Cables,
    cables_of,
    group_rows,
    match_nodes,
    most_kept,
    nic_ports,
    pair_equal,
    strip_nic_port,
)
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import Document
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from netplan.topology.sizes import divisors
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.planning.bom import Bill

    Ints = NDArray[np.int64]

__all__ = ["ACTIONS", "Beginning", "Growth", "Purchase", "growth_choices", "purchases", "regrow"]

#: What a step does, in the order of the steps.
ACTIONS = ("rename", "convert", "install", "move", "remove", "retire", "connect")


@dataclass(frozen=True, eq=False)
class Growth:
    """What becomes of each box and cable between two sizes of a fabric."""

    before: Fabric
    after: Fabric
    place: Ints
    """(n_nodes before,) the new node that each old one becomes; -1 for none."""
    kept: tuple[Ints, Ints]
    """Cables that stay: number before, number after."""
    moved: tuple[Ints, Ints]
    """Cables that are plugged elsewhere: number before, number after."""
    removed: Ints
    """Old cables without a use."""
    new: Ints
    """New cables to lay, by their number after."""
    bound: int
    """No way to match the two fabrics keeps more cables than this."""

    @cached_property
    def new_nodes(self) -> Ints:
        """Hosts and switches of the new fabric that are not there before."""
        there = np.zeros(self.after.n_nodes, bool)
        there[self.place[self.place >= 0]] = True
        return np.flatnonzero(~there)

    @cached_property
    def ports(self) -> tuple[Ints, Ints]:
        """Port numbers of each cable's two ends: (n_cables before, 2) and (n_cables after, 2)."""
        return _number_ports(self)

    def switches(self) -> dict[str, dict[str, int]]:
        """Return per tier how many switches stay, change their tier, are new and are left over."""
        old, new = self.before.nodes.tier, self.after.nodes.tier
        place = self.place
        found = {}
        for number, tier in enumerate(TIER_NAMES[1:], 1):
            mine = np.flatnonzero(old == number)
            there = mine[place[mine] >= 0]
            same = int((new[place[there]] == number).sum())
            arrived = np.flatnonzero((place >= 0) & (old > 0) & (old != number))
            counts = {
                "before": len(mine),
                "after": int((new == number).sum()),
                "kept": same,
                "converted": int((new[place[arrived]] == number).sum()),
                "new": int((new[self.new_nodes] == number).sum()),
                "retired": len(mine) - len(there),
            }
            if counts["before"] or counts["after"]:
                found[tier] = counts
        return found

    def cables(self) -> dict[str, dict[str, int]]:
        """Return per kind how many cables stay, move, are removed and are new."""
        old, new = self.before.links.kind[0::2], self.after.links.kind[0::2]
        one, both = self.ends_moved()
        columns = {
            "before": old,
            "after": new,
            "kept": old[self.kept[0]],
            "moved_at_one_end": old[self.moved[0][one]],
            "moved_at_both_ends": old[self.moved[0][both]],
            "removed": old[self.removed],
            "new": new[self.new],
        }
        counts = {name: np.bincount(column, minlength=len(LINK_KINDS)) for name, column in columns.items()}
        return {
            kind: {name: int(count[number]) for name, count in counts.items()}
            for number, kind in enumerate(LINK_KINDS)
            if counts["before"][number] or counts["after"][number]
        }

    def ends_moved(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell for each moved cable whether one of its ends moves, and whether both do."""
        lower, upper = _stays(self)
        return lower | upper, ~(lower | upper)

    @property
    def n_touched(self) -> int:
        """Old cables that do not stay as they are."""
        return len(self.moved[0]) + len(self.removed)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        n_hosts = self.before.n_hosts
        stay = int((self.place[self.before.host_ids] >= 0).sum())
        total = self.before.links.n_cables
        return {
            "before": self.before.name,
            "after": self.after.name,
            "gpus": {"before": self.before.n_gpus, "after": self.after.n_gpus},
            "hosts": {"before": n_hosts, "after": self.after.n_hosts, "kept": stay},
            "switches": self.switches(),
            "cables": self.cables(),
            "touched": self.n_touched,
            "touched_fraction": self.n_touched / total if total else 0.0,
            "touched_at_least": total - self.bound,
        }

    def steps(self) -> Iterator[dict[str, Any]]:
        """Yield what is to be done, one piece a row.

        The device that an end is pulled from, and both of a cable that is removed, go by their old names, all
        others by their new ones; ports are numbers, or ``nic3`` (``nic3/2``: its second port). *Moves* name
        the end that is plugged elsewhere (``from`` and ``to``) and where the other end is when all is done
        (``other``); a cable of which both ends move has two rows. A port may be in use until its own cable is
        pulled.
        """
        yield from _device_steps(self)
        yield from _cable_steps(self)


def regrow(before: Fabric, after: Fabric) -> Growth:
    """Return how to come from one fabric to another while moving few cables.

    Parameters
    ----------
    before
        What is there.
    after
        What is to be.

    Returns
    -------
    Growth
        The same for the same arguments. ``before`` and ``after`` may be of any family.

    Raises
    ------
    FabricError
        One of them is damaged.

    Examples
    --------
    >>> from netplan import api
    >>> grown = api.load_fabric("superpod-b200-4su", overrides={"hosts.count": "256"})
    >>> growth = regrow(api.load_fabric("superpod-b200-4su"), grown)
    >>> growth.cables()["leaf_spine"]["kept"], growth.n_touched
    (512, 512)
    """
    for fabric in (before, after):
        if fabric.damage is not None:
            raise FabricError(
                f"{fabric.name} is damaged: a growth plan joins two whole fabrics",
                hint="leave --fail out; what a failure costs: netplan failures",
            )
    place = match_nodes(before, after)
    rates = np.unique(np.concatenate([before.links.capacity, after.links.capacity]))
    old, new = cables_of(before, rates), cables_of(after, rates)
    # A cable of another length is another cable, unless both of its ends stay where they are.
    rest_old, rest_new = np.arange(before.links.n_cables), np.arange(after.links.n_cables)
    kept = _pair_ends(place, old, new, rest_old, rest_new, lower=True, upper=True)
    moved: list[tuple[Ints, Ints]] = []
    rest_old, rest_new = np.setdiff1d(rest_old, kept[0]), np.setdiff1d(rest_new, kept[1])
    for lower, upper in ((True, False), (False, True), (False, False)):
        ours, theirs = _with_lengths(before, after, old, new, with_nic=lower)
        found = _pair_ends(place, ours, theirs, rest_old, rest_new, lower=lower, upper=upper)
        moved.append(found)
        rest_old, rest_new = np.setdiff1d(rest_old, found[0]), np.setdiff1d(rest_new, found[1])
    order = np.argsort(np.concatenate([a for a, _ in moved]), kind="stable")
    pairs = (np.concatenate([a for a, _ in moved])[order], np.concatenate([b for _, b in moved])[order])
    return Growth(before, after, place, kept, pairs, rest_old, rest_new, most_kept(before, after))


def _with_lengths(
    before: Fabric, after: Fabric, old: Cables, new: Cables, *, with_nic: bool
) -> tuple[Cables, Cables]:
    """Return the cables with kind, speed, length [mm] and perhaps NIC port as their sort."""
    length = np.concatenate([before.links.length[0::2], after.links.length[0::2]])
    sort = np.concatenate([old.sort, new.sort])
    number, _ = group_rows(sort if with_nic else strip_nic_port(sort), np.rint(length * 1e3).astype(np.int64))
    n = len(old.sort)
    return replace(old, sort=number[:n]), replace(new, sort=number[n:])


def _pair_ends(
    place: Ints, old: Cables, new: Cables, rest_old: Ints, rest_new: Ints, *, lower: bool, upper: bool
) -> tuple[Ints, Ints]:
    """Pair cables of one sort of which the named ends stay in their boxes."""
    ours, theirs = [old.sort[rest_old]], [new.sort[rest_new]]
    there = np.ones(len(rest_old), bool)
    if lower and upper:  # a cable between switches of one tier has no lower end
        a, b = place[old.lower[rest_old]], place[old.upper[rest_old]]
        there &= (a >= 0) & (b >= 0)
        ours += [np.minimum(a, b), np.maximum(a, b)]
        a, b = new.lower[rest_new], new.upper[rest_new]
        theirs += [np.minimum(a, b), np.maximum(a, b)]
    elif lower or upper:
        mine, its = (old.lower, new.lower) if lower else (old.upper, new.upper)
        there &= place[mine[rest_old]] >= 0
        ours.append(place[mine[rest_old]])
        theirs.append(its[rest_new])
    here = np.flatnonzero(there)
    a, b = pair_equal([column[here] for column in ours], theirs)
    return rest_old[here[a]], rest_new[b]


def _stays(growth: Growth) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell for each moved cable whether its lower end, or else its upper end, stays in its box."""
    a, b = growth.moved
    old, new = growth.before.links, growth.after.links
    lower = growth.place[old.src[0::2][a]] == new.src[0::2][b]
    lower &= nic_ports(growth.before)[a] == nic_ports(growth.after)[b]
    upper = growth.place[old.dst[0::2][a]] == new.dst[0::2][b]
    return lower, upper & ~lower


# ---- ports -------------------------------------------------------------------------------------------------


def _number_ports(growth: Growth) -> tuple[Ints, Ints]:
    """Return port numbers of all ends, before and after."""
    old, new = growth.before.links, growth.after.links
    before = _ranks(np.stack([old.src[0::2], old.dst[0::2]], 1).astype(np.int64)) + 1
    after = np.zeros((new.n_cables, 2), np.int64)
    ends = np.stack([new.src[0::2], new.dst[0::2]], 1).astype(np.int64)
    a, b = growth.kept
    turned = (
        growth.place[old.src[0::2][a]] != ends[b, 0]
    )  # ends of a cable in one tier may change their order
    after[b] = np.where(turned[:, None], before[a][:, ::-1], before[a])
    lower, upper = _stays(growth)
    a, b = growth.moved
    after[b[lower], 0] = before[a[lower], 0]
    after[b[upper], 1] = before[a[upper], 1]
    # Ports in use before, in the numbers of the new nodes.
    old_ends = growth.place[np.stack([old.src[0::2], old.dst[0::2]], 1)]
    there = old_ends >= 0
    fixed = after > 0
    open_ends = np.argwhere(~fixed)
    node = ends[~fixed]
    need = np.bincount(node, minlength=growth.after.n_nodes)
    radix = np.maximum(growth.after.nodes.radix.astype(np.int64), np.bincount(new.src, minlength=len(need)))
    # A box with more ports than its place uses keeps those that its cables are in.
    np.maximum.at(radix, ends[fixed], after[fixed])
    span = int(max(radix.max(initial=0), before.max(initial=0))) + 1
    final = ends[fixed] * span + after[fixed]
    vacated = np.setdiff1d(old_ends[there] * span + before[there], final)
    who = np.repeat(np.arange(len(need)), np.where(need > 0, radix, 0))
    number = _rank_in(who) + 1
    key = who * span + number
    key = key[~np.isin(key, final)]
    is_vacated = np.isin(key, vacated)
    order = np.lexsort((key % span, is_vacated, key // span))
    free = key[order]
    start = np.searchsorted(free // span, node)
    place = start + _ranks(node[:, None])[:, 0]
    after[open_ends[:, 0], open_ends[:, 1]] = free[place] % span
    return before, after


def _ranks(ends: Ints) -> Ints:
    """Return the place of each end among those of its node, in the order of the rows."""
    flat = ends.reshape(-1)
    order = np.argsort(flat, kind="stable")
    rank = np.empty(len(flat), np.int64)
    rank[order] = _rank_in(flat[order])
    return rank.reshape(ends.shape)


def _rank_in(ascending: Ints) -> Ints:
    """Return the place of each entry among its equals, in an ascending column."""
    start = np.flatnonzero(np.diff(ascending, prepend=-1))
    sizes = np.diff(np.append(start, len(ascending)))
    return np.arange(len(ascending)) - np.repeat(start, sizes)


# ---- steps -------------------------------------------------------------------------------------------------


def _row(action: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- cells
    """Return a row of steps; what is not named is empty."""
    columns = ("from_device", "from_port", "to_device", "to_port", "other_device", "other_port")
    row: dict[str, Any] = {"action": action, "what": "", **dict.fromkeys(columns, ""), "length_m": ""}
    return {**row, **more}


def _device_steps(growth: Growth) -> Iterator[dict[str, Any]]:
    """Yield what becomes of the boxes."""
    before, after, place = growth.before, growth.after, growth.place
    old_tier, new_tier = before.nodes.tier, after.nodes.tier
    for node in range(before.n_nodes):
        if place[node] < 0:
            continue
        name, new = before.node_name(node), after.node_name(int(place[node]))
        if old_tier[node] != new_tier[place[node]]:
            tiers = f"{TIER_NAMES[old_tier[node]]} to {TIER_NAMES[new_tier[place[node]]]}"
            yield _row("convert", what=tiers, from_device=name, to_device=new)
        elif name != new:
            yield _row("rename", what=TIER_NAMES[old_tier[node]], from_device=name, to_device=new)
    for node in growth.new_nodes.tolist():
        yield _row("install", what=TIER_NAMES[new_tier[node]], to_device=after.node_name(node))
    for node in np.flatnonzero(place < 0).tolist():
        yield _row("retire", what=TIER_NAMES[old_tier[node]], from_device=before.node_name(node))


def _cable_steps(growth: Growth) -> Iterator[dict[str, Any]]:
    """Yield what becomes of the cables that do not stay."""
    old, new = _Ends(growth.before, growth.ports[0]), _Ends(growth.after, growth.ports[1])
    lower, upper = _stays(growth)
    columns = (*growth.moved, lower, upper)
    for a, b, low, up in zip(*(column.tolist() for column in columns), strict=True):
        for end, stays in ((1, up), (0, low)):
            if not stays:
                device, port = old.at(a, end)
                to_device, to_port = new.at(b, end)
                other, other_port = new.at(b, 1 - end)
                yield _row(
                    "move",
                    what=old.what(a),
                    from_device=device,
                    from_port=port,
                    to_device=to_device,
                    to_port=to_port,
                    other_device=other,
                    other_port=other_port,
                    length_m=old.length(a),
                )
    for a in growth.removed.tolist():
        device, port = old.at(a, 1)
        other, other_port = old.at(a, 0)
        yield _row(
            "remove",
            what=old.what(a),
            from_device=device,
            from_port=port,
            other_device=other,
            other_port=other_port,
            length_m=old.length(a),
        )
    for b in growth.new.tolist():
        device, port = new.at(b, 1)
        other, other_port = new.at(b, 0)
        yield _row(
            "connect",
            what=new.what(b),
            to_device=device,
            to_port=port,
            other_device=other,
            other_port=other_port,
            length_m=new.length(b),
        )


class _Ends:
    """The ends of a fabric's cables, as people name them."""

    def __init__(self, fabric: Fabric, ports: Ints) -> None:
        links, ends = fabric.links, fabric.endpoints
        self._fabric = fabric
        self._ends = np.stack([links.src[0::2], links.dst[0::2]], 1)
        self._ports = ports
        self._kind = links.kind[0::2]
        self._rate = links.capacity[0::2]
        self._length = links.length[0::2]
        self._names: dict[int, str] = {}
        nic = fabric.endpoint_nic
        several = np.diff(fabric.nic_ptr)[nic] > 1
        port = np.arange(fabric.n_endpoints) - fabric.nic_ptr[nic] + 1
        self._nic: dict[int, str] = {
            cable: f"nic{rail + 1}/{number}" if many else f"nic{rail + 1}"
            for cable, rail, many, number in zip(
                ends.cable.tolist(), ends.rail.tolist(), several.tolist(), port.tolist(), strict=True
            )
        }

    def at(self, cable: int, end: int) -> tuple[str, str | int]:
        """Return device and port of an end."""
        node = int(self._ends[cable, end])
        if node not in self._names:
            self._names[node] = self._fabric.node_name(node)
        port = self._nic[cable] if end == 0 and cable in self._nic else int(self._ports[cable, end])
        return self._names[node], port

    def what(self, cable: int) -> str:
        """Return kind and speed."""
        return f"{LINK_KINDS[self._kind[cable]]} {format_rate(float(self._rate[cable]))}"

    def length(self, cable: int) -> float:
        """Return the length [m]."""
        return float(self._length[cable])


# ---- parts to buy ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Purchase:
    """A part that the later size takes more, or fewer, pieces of."""

    part: str
    kind: str
    length: float | None
    """Length of a cable [m]."""
    before: int
    after: int
    unit_cost: float | None
    """Middle price of a piece [USD]; None when nobody publishes it."""

    @property
    def buy(self) -> int:
        """Pieces to buy; 0 when some are left over."""
        return max(self.after - self.before, 0)

    @property
    def left(self) -> int:
        """Pieces left over."""
        return max(self.before - self.after, 0)

    @property
    def cost(self) -> float | None:
        """Middle cost of what is to buy [USD]; None when unknown."""
        return None if self.unit_cost is None else self.unit_cost * self.buy

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "part": self.part,
            "kind": self.kind,
            "length_m": self.length,
            "before": self.before,
            "after": self.after,
            "buy": self.buy,
            "left_over": self.left,
            "cost_mid_usd": self.cost,
        }


def purchases(before: Bill, after: Bill) -> tuple[Purchase, ...]:
    """Return what the later size takes beyond the first: the difference of two bills, spares included.

    Parameters
    ----------
    before, after
        The bills of materials of both sizes, made with the same wishes.

    Notes
    -----
    Pieces are alike when part, kind and length are. That is a lower bound where a moved cable needs another
    length on the real floor.
    """
    counts: tuple[Counter[tuple[str, str, float | None]], ...] = (Counter(), Counter())
    prices: dict[tuple[str, str, float | None], float | None] = {}
    for count, bill in zip(counts, (before, after), strict=True):
        for line in bill.lines:
            if line.is_included:
                continue
            key = line.part, line.kind, line.length
            count[key] += line.quantity + line.spares
            prices[key] = None if line.unit_cost is None else line.unit_cost.mid
    keys = dict.fromkeys([*counts[1], *counts[0]])
    return tuple(Purchase(*key, counts[0][key], counts[1][key], prices[key]) for key in keys)


# ---- how to begin ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Beginning:
    """A design of the first size, and what it takes to come from it to the later one."""

    spec: Mapping[str, Any]
    """The design, as plain data of a YAML file."""
    growth: Growth
    why: str
    """What it has in common with the later size."""

    @property
    def n_switches(self) -> int:
        """Switches to buy now."""
        return self.growth.before.n_switches

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        before = self.growth.before
        return {
            "design": self.why,
            "spec": dict(self.spec),
            "switches": {tier: before.count_tier(tier) for tier in TIER_NAMES[1:] if before.count_tier(tier)},
            "switches_total": before.n_switches,
            "cables": before.links.n_cables,
            "touched": self.growth.n_touched,
            "touched_at_least": before.links.n_cables - self.growth.bound,
            "bought_later": len(self.growth.new_nodes) - (self.growth.after.n_hosts - before.n_hosts),
        }


def growth_choices(later: Mapping[str, Any], hosts: int) -> tuple[Beginning, ...]:
    """Return ways to begin a design with fewer hosts, the one that moves the fewest cables first.

    Parameters
    ----------
    later
        The design of the later size: plain data of a YAML file of one of the tree families.
    hosts
        Hosts of the first size, fewer than the later one has.

    Returns
    -------
    tuple of Beginning
        By cables touched, then by switches bought now. Those that another one beats in both are left out.

    Raises
    ------
    FabricError
        It is no tree family, or has as few hosts; or no beginning is feasible.
    SpecError
        The spec has faults.

    Notes
    -----
    The beginnings: (1) the fewest switches now, as if it were never to grow; (2) two tiers now, with the
    leaves and spines of a pod of the later size; (3) the pods, leaves and spines of the later size, with each
    number of cores (on two tiers: spines) that gives equal bundles and holds the first size, up to that of
    the later size, which moves nothing.
    """
    after = _build(later)
    count = later.get("hosts", {}).get("count", 0)
    if after.structure is None or after.kind in {"fat-tree", "metro"}:
        raise FabricError(
            f"{after.name} is of kind {after.kind}: beginnings are known for the tree families",
            hint="give both sizes: netplan grow BEFORE AFTER",
        )
    if hosts >= count:
        raise FabricError(
            f"{after.name} has {count:,} hosts: a beginning of {hosts:,} would not grow",
            hint=f"take fewer than {count:,} hosts",
        )
    found: dict[str, Beginning] = {}
    refused: FabricError | None = None
    for why, spec in _beginnings(later, after, hosts):
        try:
            before = _build(spec)
        except FabricError as error:
            refused = error
            continue
        key = repr([before.nodes.tier.tobytes(), before.links.dst.tobytes()])
        if key not in found:
            found[key] = Beginning(spec, regrow(before, after), why)
    if not found:
        assert refused is not None
        raise refused
    ranked = sorted(found.values(), key=lambda each: (each.growth.n_touched, each.n_switches))
    best: list[Beginning] = []
    for each in ranked:
        if not best or each.n_switches < best[-1].n_switches:
            best.append(each)
    return tuple(best)


def _build(spec: Mapping[str, Any]) -> Fabric:
    """Build a fabric from plain data."""
    return build_fabric(validate(FABRIC_SPEC, Document("later", dict(spec), {}, {})))


def _beginnings(later: Mapping[str, Any], after: Fabric, hosts: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield designs of the first size, feasible or not."""
    c = after.structure
    assert c is not None
    first = {**later, "hosts": {**later["hosts"], "count": hosts}}
    yield "fewest switches now", first
    down = int(np.bincount(c.endpoint_leaf).max())
    leaf = {**later.get("leaf", {}), "downlinks": down, "uplinks": c.uplinks}
    leaf.pop("oversubscription", None)
    planes = max(int(after.nodes.plane.max(initial=0)) + 1, 1) if after.kind in _PLANES else 1
    if not c.cores_per_group:
        for count in divisors(c.uplinks):
            if count <= c.spines:
                spine = {**later.get("spine", {}), "count": count}
                yield f"leaves of later, {count} spines a tree", {**first, "leaf": leaf, "spine": spine}
        return
    spine_down = c.leaf_bundle * int(np.bincount(c.leaf_pod).max())
    spine = {**later.get("spine", {}), "count": c.spines, "downlinks": spine_down, "uplinks": c.spine_uplinks}
    spine.pop("oversubscription", None)
    pod = {**later.get("pod", {}), "leaves": int(np.bincount(c.leaf_pod).max())}
    two = {key: value for key, value in first.items() if key not in {"pod", "core", "tiers"}}
    if later["kind"] == "clos":
        two["kind"] = "leaf-spine"
    kept = {key: value for key, value in spine.items() if key in {"radix", "count"}}
    yield "leaves and spines of a pod of later, on two tiers", {**two, "leaf": leaf, "spine": kept}
    domains = c.domains // planes
    for cores in divisors(c.spine_uplinks):
        if cores <= c.cores_per_group:
            core = {**later.get("core", {}), "count": cores * c.spines * domains}
            why = f"pods of later, {cores} of {c.cores_per_group} cores a group"
            yield why, {**first, "leaf": leaf, "pod": pod, "spine": spine, "core": core}


#: Families in which counts of spines and cores are those of a plane.
_PLANES = frozenset({"multi-plane", "dual-tor"})
