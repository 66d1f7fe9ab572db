"""What a fabric is built of: a switch for each node, a medium for each kind of cable, a cage for each end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import CatalogError
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.planning.floor import round_up
from netplan.planning.media import (
    Link,
    Medium,
    NoMediumError,
    choose_medium,
    choose_nic,
    choose_switch,
    find_wish,
)
from netplan.spec.parts import SwitchSpec
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from netplan.catalog.parts import Catalogue
    from netplan.fabric import Fabric
    from netplan.spec.parts import NicSpec

__all__ = [
    "ROUTE_LENGTH",
    "Boxes",
    "Group",
    "Plan",
    "Wishes",
    "box_remarks",
    "cage_remarks",
    "choose_build",
    "choose_nics",
    "number_rows",
]

#: From this length on a fibre route is what is bought, not a piece of a length that is sold [m].
ROUTE_LENGTH = 500.0


@dataclass(frozen=True)
class Wishes:
    """What the user asks for, where it is not left to netplan."""

    switches: Mapping[str, str] = field(default_factory=dict)
    """Name of a switch by tier; ``*`` for every tier."""
    nic: str | None = None
    """Name of a NIC."""
    host: str | None = None
    """Name of a host; without it hosts are left out."""
    optics: Mapping[str, str] = field(default_factory=dict)
    """Transceiver, cable or standard by kind of cable; ``*`` for every kind."""
    protocol: str | None = None
    """``ethernet`` or ``infiniband``; ethernet where sites are joined, else any, when None."""
    spares: float = 0.0
    """Spare pieces of everything but hosts, as a fraction, rounded up line by line."""


@dataclass(frozen=True, eq=False)
class Group:
    """Cables of one kind: same speed, length class and boxes at both ends."""

    link: Link
    length: float
    """Length that is bought [m]."""
    medium: Medium | None
    why: str
    """Why there is none."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Every cable with its group and its ends, as columns."""

    fabric: Fabric
    groups: tuple[Group, ...]
    group: NDArray[np.int64]
    """(n_cables,) index into ``groups``."""
    near: NDArray[np.int64]
    """(n_cables,) node at the near end: the switch, the lower one of two."""
    far: NDArray[np.int64]
    """(n_cables,) node at the far end."""
    near_port: NDArray[np.int64]
    """(n_cables,) port among those of its module, from 0."""
    near_cage: NDArray[np.int64]
    """(n_cables,) cage of the near node, from 0."""
    far_port: NDArray[np.int64]
    far_cage: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Boxes:
    """A switch of the catalogue for each node."""

    chosen: tuple[SwitchSpec | None, ...]
    """One for each kind of node; None where nothing fits."""
    labels: tuple[tuple[str, str], ...]
    """Tier and a name for the line, for each kind."""
    kind: NDArray[np.int64]
    """(n_nodes,) index into ``chosen``; -1 for hosts."""


def _choose_boxes(fabric: Fabric, catalogue: Catalogue, wishes: Wishes) -> list[Boxes]:
    """Choose, for each protocol that may be, a switch for each kind of node."""
    unknown = set(wishes.switches) - {"*", *TIER_NAMES[1:]}
    if unknown:
        raise CatalogError(
            f"--switch {min(unknown)}=...: there is no such tier", hint=f"tiers: {', '.join(TIER_NAMES[1:])}"
        )
    kind, needs = _needs(fabric)
    is_metro = bool((fabric.links.kind == LINK_KINDS.index("inter_site")).any())
    protocols = (
        [wishes.protocol] if wishes.protocol else ["ethernet"] if is_metro else ["infiniband", "ethernet"]
    )
    wished = {
        need.tier: wish
        for need in needs
        if (wish := wishes.switches.get(need.tier, wishes.switches.get("*"))) is not None
    }
    said = {catalogue.switch(wish).protocol for wish in wished.values()}
    if len(said) == 1 and not wishes.protocol:
        protocols = [*said]
    tries = [
        [
            _wished_switch(catalogue, wished[need.tier], need)
            if need.tier in wished
            else choose_switch(catalogue, need.ports, radix=need.radix, protocol=protocol)
            for need in needs
        ]
        for protocol in protocols
    ]
    labels = tuple((need.tier, f"unlisted-{need.said}-switch") for need in needs)
    return [Boxes(tuple(chosen), labels, kind) for chosen in tries]


def choose_build(
    fabric: Fabric,
    catalogue: Catalogue,
    wishes: Wishes,
    length: NDArray[np.float64],
    nics: Mapping[float, NicSpec | None],
) -> tuple[Boxes, Plan]:
    """Choose the protocol with the fewest holes: switches, then links that the catalogue does not have."""
    found: list[tuple[tuple[int, int, int], Boxes, Plan]] = []
    for boxes in _choose_boxes(fabric, catalogue, wishes):
        plan = _plan(fabric, catalogue, wishes, length, boxes, nics)
        no_switch = sum(switch is None for switch in boxes.chosen)
        no_price = sum(switch is None or switch.price is None for switch in boxes.chosen)
        found.append(((no_switch, sum(each.medium is None for each in plan.groups), no_price), boxes, plan))
    _, boxes, plan = min(found, key=lambda each: each[0])
    return boxes, plan


def box_remarks(boxes: Boxes, wishes: Wishes) -> Iterator[str]:
    """Say which protocol was taken, and for which tiers the catalogue has no switch."""
    protocols = sorted({switch.protocol for switch in boxes.chosen if switch is not None})
    if protocols and wishes.protocol is None and not wishes.switches:
        yield f"Switches: {' and '.join(protocols)}, for the fewest unlisted parts; --protocol chooses."
    for switch, (tier, label) in zip(boxes.chosen, boxes.labels, strict=True):
        if switch is None:
            said = label.removeprefix("unlisted-").removesuffix("-switch")
            yield f"{tier}: no switch of the catalogue has {said}; its line is unlisted."


@dataclass(frozen=True)
class _Need:
    """What a kind of node needs of its switch."""

    tier: str
    radix: int
    """Ports that it must have at its one speed; 0 where its ports have several."""
    ports: dict[float, int]
    """Ports with a cable, by speed [bytes/s]."""
    said: str
    """The same in words."""


def _needs(fabric: Fabric) -> tuple[NDArray[np.int64], list[_Need]]:
    """Return the kind of each node (-1: a host), and what each kind needs."""
    speeds = np.unique(fabric.links.capacity)
    at = np.searchsorted(speeds, fabric.links.capacity)
    cells = np.bincount(fabric.links.src * len(speeds) + at, minlength=fabric.n_nodes * len(speeds))
    used = cells.reshape(fabric.n_nodes, len(speeds))
    switches = np.flatnonzero(fabric.nodes.tier > 0)
    kind = np.full(fabric.n_nodes, -1, np.int64)
    pattern = (used[switches] > 0) @ (1 << np.arange(len(speeds)))
    unique, kind[switches] = number_rows([fabric.nodes.tier[switches], fabric.nodes.radix[switches], pattern])
    needs = []
    for index, (tier, radix, _) in enumerate(unique):
        most = used[kind == index].max(axis=0)
        ports = {float(speed): int(count) for speed, count in zip(speeds, most, strict=True) if count}
        ports = ports or {float(speeds[-1]): 0}
        is_one = len(ports) == 1
        counts = {speed: radix if is_one else count for speed, count in ports.items()}
        said = "+".join(f"{count}x{format_rate(speed)}" for speed, count in counts.items())
        needs.append(_Need(TIER_NAMES[tier], radix if is_one else 0, ports, said))
    return kind, needs


def number_rows(columns: Sequence[NDArray[Any]]) -> tuple[list[tuple[int, ...]], NDArray[np.int64]]:
    """Return the different rows of integer columns, ascending, and the number of each row's."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = column.astype(np.int64)
        key = key * (int(values.max(initial=0)) + 2) + values + 1
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    rows = list(zip(*(column[first].tolist() for column in columns), strict=True))
    return rows, number.reshape(-1).astype(np.int64)


def _wished_switch(catalogue: Catalogue, wish: str, need: _Need) -> SwitchSpec:
    """Return the switch that a user asked for, or say that it is too small."""
    switch = catalogue.switch(wish)
    if switch.ports is None:
        return switch
    if choose_switch(catalogue.with_only(switch), need.ports, radix=0, protocol=None) is None:
        ports = " and ".join(f"{count} of {format_rate(speed)}" for speed, count in need.ports.items())
        raise CatalogError(
            f"switch {wish!r} has too few ports for a {need.tier}, which uses {ports}",
            hint="choose a larger switch, or leave --switch out",
        )
    return switch


def choose_nics(fabric: Fabric, catalogue: Catalogue, wishes: Wishes) -> dict[float, NicSpec | None]:
    """Choose a NIC for each speed of endpoint."""
    chosen: dict[float, NicSpec | None] = {}
    for speed in np.unique(fabric.endpoint_rate).tolist():
        if wishes.nic is None:
            chosen[speed] = choose_nic(catalogue, speed)
            continue
        nic = catalogue.nic(wishes.nic)
        if nic.ports is not None and not nic.ports_at(speed):
            raise CatalogError(
                f"NIC {nic.name!r} has no port of {format_rate(speed)}, which the fabric's hosts have",
                hint="choose another, or leave --nic out",
            )
        chosen[speed] = nic
    return chosen


def _plan(
    fabric: Fabric,
    catalogue: Catalogue,
    wishes: Wishes,
    length: NDArray[np.float64],
    boxes: Boxes,
    nics: Mapping[float, NicSpec | None],
) -> Plan:
    """Give each cable a group and each group a medium, and each end a cage and a port."""
    unknown = set(wishes.optics) - {"*", *LINK_KINDS}
    if unknown:
        raise CatalogError(
            f"--optics {min(unknown)}=...: there is no such kind of cable",
            hint=f"kinds: {', '.join(LINK_KINDS)}",
        )
    wanted = {kind: find_wish(catalogue, wish) for kind, wish in wishes.optics.items()}
    src, dst = fabric.links.src[0::2].astype(np.int64), fabric.links.dst[0::2].astype(np.int64)
    tier = fabric.nodes.tier
    is_swapped = (tier[src] == 0) | ((tier[dst] > 0) & (tier[src] > tier[dst]))
    near, far = np.where(is_swapped, dst, src), np.where(is_swapped, src, dst)
    speeds, speed = np.unique(fabric.links.capacity[0::2], return_inverse=True)
    # Long routes keep their own length: a module need not reach to the end of the class.
    bought = np.where(length > ROUTE_LENGTH, length, round_up(length))
    lengths, place = np.unique(bought, return_inverse=True)
    wavelengths = np.asarray([1, *(path.wavelengths for path in fabric.fibre_paths)])
    is_shared = wavelengths[fabric.links.path[0::2] + 1] > 1
    unique, group = number_rows(
        [fabric.links.kind[0::2], speed, place, boxes.kind[near], boxes.kind[far], is_shared]
    )
    groups = []
    for kind, at, where, near_kind, far_kind, shared in unique:
        rate = float(speeds[at])
        name = LINK_KINDS[kind]
        far_box = boxes.chosen[far_kind] if far_kind >= 0 else nics.get(rate)
        link = Link(name, rate, float(lengths[where]), boxes.chosen[near_kind], far_box, bool(shared))
        wish = wanted.get(name, wanted.get("*"))
        try:
            groups.append(Group(link, link.length, choose_medium(catalogue, link, wish), ""))
        except NoMediumError as error:
            groups.append(Group(link, link.length, None, error.message))
    media = _media_ids(groups)
    n_near = np.asarray([_ports(each, each.link.near, is_near=True) for each in groups])
    n_far = np.asarray([_ports(each, each.link.far, is_near=False) for each in groups])
    # Both ends of every cable in one table: modules hold cables of one kind and medium at one node.
    node = np.concatenate([near, far])
    sort = np.concatenate([media[group], media[group]])
    # A cable of several links has all its links at one other switch: no plug is shared beyond that.
    straight = np.asarray(
        [bool(each.medium and each.medium.cable and each.medium.cable.far_ends == 1) for each in groups]
    )
    pair = number_rows([np.minimum(near, far), np.maximum(near, far)])[1] + len(groups)
    sort = np.where(np.tile(straight[group], 2), np.tile(pair, 2), sort)
    per_module = np.concatenate([n_near[group], n_far[group]])
    cage, port = _cages(node, sort, per_module)
    n = len(near)
    # A NIC's number is the place of its port in the host.
    return Plan(fabric, tuple(groups), group, near, far, port[:n], cage[:n], port[n:], cage[n:])


def _media_ids(groups: list[Group]) -> NDArray[np.int64]:
    """(n_groups,) number of the kind of cable and of the modules: groups with one number share modules."""
    ids: dict[tuple[str, str, str], int] = {}
    numbers = []
    for each in groups:
        medium = each.medium
        if medium is None:
            key = (each.link.kind, "", "")
        elif medium.cable is not None:
            key = (each.link.kind, medium.cable.name, str(each.length))
        else:
            assert medium.near is not None
            assert medium.far is not None
            key = (each.link.kind, medium.near.name, medium.far.name)
        numbers.append(ids.setdefault(key, len(ids)))
    return np.asarray(numbers, np.int64)


def _ports(group: Group, box: SwitchSpec | NicSpec | None, *, is_near: bool) -> int:
    """Return how many links one module, or one plug of a cable, carries."""
    medium = group.medium
    if medium is None:  # as many as a cage of the switch has ports
        cages = box.cages.value.count if isinstance(box, SwitchSpec) and box.cages else 0
        return max(box.ports_at(group.link.speed) // cages, 1) if box and cages else 1
    if medium.cable is not None:
        return medium.cable.links // (1 if is_near else medium.cable.far_ends)
    end = medium.near if is_near else medium.far
    assert end is not None
    return end.ports


def _cages(
    node: NDArray[np.int64], sort: NDArray[np.int64], per_module: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cage and the port in its module of every cable end, cages counted from 0 at every node."""
    order = np.lexsort((np.arange(len(node)), sort, node))
    sorted_node, sorted_sort, size = node[order], sort[order], per_module[order]
    new_node = np.concatenate([[True], sorted_node[1:] != sorted_node[:-1]])
    new = new_node | np.concatenate([[True], sorted_sort[1:] != sorted_sort[:-1]])
    start = np.flatnonzero(new)
    count = np.diff([*start.tolist(), len(node)])
    rank = np.arange(len(node)) - np.repeat(start, count)
    needed = -(-count // size[start])
    before = np.cumsum(needed) - needed
    # Cages before the first group of the same node.
    first = before[np.flatnonzero(new_node[start])]
    base = before - np.repeat(first, np.diff([*np.flatnonzero(new_node[start]).tolist(), len(start)]))
    cage, port = np.empty(len(node), np.int64), np.empty(len(node), np.int64)
    cage[order] = np.repeat(base, count) + rank // size
    port[order] = rank % size
    return cage, port


def cage_remarks(plan: Plan, boxes: Boxes) -> Iterator[str]:
    """Say where modules need more cages than a switch has."""
    node = np.concatenate([plan.near, plan.far])
    cage = np.concatenate([plan.near_cage, plan.far_cage])
    needed = np.zeros(len(boxes.kind), np.int64)
    np.maximum.at(needed, node, cage + 1)
    for kind, switch in enumerate(boxes.chosen):
        if switch is None or switch.cages is None:
            continue
        most = int(needed[boxes.kind == kind].max(initial=0))
        if most > switch.cages.value.count:
            yield (
                f"{boxes.labels[kind][0]}: the modules need {most} cages, {switch.name} has "
                f"{switch.cages.value.count}. "
                "A module holds one type of fibre, and a cable all its links to one switch; "
                "--optics KIND=PART takes one type."
            )
