"""Bill of materials: what a fabric takes to build, what it costs and what it draws.

The steps of `bill`: each node gets a switch of the catalogue, each kind of cable (kind, speed, length class,
boxes at both ends) gets a medium (both `netplan.planning.build`), and then columns are counted: modules per
switch, cables per length class. Nothing is guessed: a figure that nobody publishes makes its total a lower
bound, with the parts at fault named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import CatalogError
from netplan.fabric.columns import LINK_KINDS
from netplan.planning.build import (
    ROUTE_LENGTH,
    Boxes,
    Plan,
    Wishes,
    box_remarks,
    cage_remarks,
    choose_build,
    choose_nics,
    number_rows,
)
from netplan.planning.floor import LENGTH_CLASSES, length_class
from netplan.planning.media import choose_terminal
from netplan.spec.parts import PartSpec, Sourced
from netplan.units import format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from netplan.catalog.parts import Catalogue
    from netplan.fabric import Fabric
    from netplan.planning.media import Medium
    from netplan.spec.parts import HostSpec, LineTerminalSpec, NicSpec

__all__ = ["Bill", "Line", "Range", "Totals", "Wishes", "bill", "cabling"]

#: What an unlisted part's line says of its source.
_UNLISTED = "no part of the catalogue fits"


@dataclass(frozen=True)
class Range:
    """A cost [USD]."""

    low: float
    mid: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Return it as plain data."""
        return {"low": self.low, "mid": self.mid, "high": self.high}

    def times(self, factor: float) -> Range:
        """Return it so many times."""
        return Range(self.low * factor, self.mid * factor, self.high * factor)


@dataclass(frozen=True)
class Line:
    """One line of the bill."""

    part: str
    kind: str
    """switch, nic, transceiver, cable, fibre, line-terminal, host or unlisted."""
    use: str
    """Where it goes: a tier, or a kind of cable and an end."""
    quantity: int
    """Pieces in use."""
    spares: int
    """Pieces to keep beside them."""
    unit_cost: Range | None
    """Price of a piece [USD]; None when nobody publishes it."""
    power_typical: float | None
    """Draw of a piece [W]; None when unknown."""
    power_max: float | None
    """Largest draw of a piece [W]; None when unknown."""
    source: str
    """Where the price comes from, or else the part."""
    confidence: str | None = None
    """How far the price can be trusted."""
    length: float | None = None
    """Length of a cable [m]."""
    fibre_pairs: int = 0
    """Fibre pairs of the line."""
    far_ends: int = 1
    """Plugs at the far end of a cable: more than 1 of a breakout cable."""
    is_included: bool = False
    """Whether the host's price and power include it."""

    @property
    def cost(self) -> Range | None:
        """Cost of the line with its spares [USD]."""
        return None if self.unit_cost is None else self.unit_cost.times(self.quantity + self.spares)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        powers = {"typical": self.power_typical, "max": self.power_max}
        return {
            "part": self.part,
            "kind": self.kind,
            "use": self.use,
            "length_m": self.length,
            "quantity": self.quantity,
            "spares": self.spares,
            "unit_cost_usd": self.unit_cost.to_dict() if self.unit_cost else None,
            "cost_usd": self.cost.to_dict() if self.cost else None,
            "power_w": {
                key: None if value is None else value * self.quantity for key, value in powers.items()
            },
            "fibre_pairs": self.fibre_pairs,
            "confidence": self.confidence,
            "source": self.source,
        }


@dataclass(frozen=True)
class Totals:
    """Sums of a bill. A sum with parts in its ``unknown`` is a lower bound."""

    switches: int
    nics: int
    transceivers: int
    line_terminals: int
    """Ends of DWDM lines, listed or not."""
    cables: int
    """Pieces with two ends or more: copper, active optical and fibre cables."""
    breakout_cables: int
    fibre_pairs: int
    spares: int
    rack_units: int
    """Of the switches and line terminals, and of the hosts where one is named."""
    gpus: int
    cost: Range
    """The network [USD]."""
    power_typical: float
    """The network [W]."""
    power_max: float
    host_cost: Range | None
    """The hosts [USD]; None where none is named or their price is unknown."""
    host_power: float | None
    """The hosts, largest draw [W]; None where none is named or it is unknown."""
    unknown: dict[str, tuple[str, ...]]
    """Parts without a figure, by total: ``cost``, ``power_typical``, ``power_max``, ``rack_units``."""

    @property
    def network_share(self) -> float | None:
        """Largest draw of the network over that of network and hosts, 0 to 1."""
        return None if self.host_power is None else self.power_max / (self.power_max + self.host_power)

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data."""
        power = {"typical": self.power_typical, "max": self.power_max}
        counts = ("switches", "nics", "transceivers", "line_terminals", "cables", "breakout_cables")
        return {
            **{
                name: getattr(self, name) for name in (*counts, "fibre_pairs", "spares", "rack_units", "gpus")
            },
            "cost_usd": self.cost.to_dict(),
            "power_w": power,
            "per_gpu": {
                "cost_usd": self.cost.times(1 / self.gpus).to_dict(),
                "power_w": {key: value / self.gpus for key, value in power.items()},
            },
            "hosts": {
                "cost_usd": self.host_cost.to_dict() if self.host_cost else None,
                "power_max_w": self.host_power,
            },
            "network_share": self.network_share,
            "at_least": {name: list(parts) for name, parts in self.unknown.items()},
        }


@dataclass(frozen=True, eq=False)
class Bill:
    """A bill of materials."""

    fabric: str
    lines: tuple[Line, ...]
    totals: Totals
    remarks: tuple[str, ...]
    """What was chosen, and what does not fit."""
    plan: Plan
    """The cables with their ends, for the cabling list."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without the cabling."""
        return {
            "fabric": self.fabric,
            "lines": [line.to_dict() for line in self.lines],
            "totals": self.totals.to_dict(),
            "remarks": list(self.remarks),
        }


def bill(
    fabric: Fabric, catalogue: Catalogue, wishes: Wishes, *, length: NDArray[np.float64] | None = None
) -> Bill:
    """Return the bill of materials of a fabric.

    Parameters
    ----------
    fabric
        What is to be built.
    catalogue
        The parts, `netplan.catalog.parts.load_catalogue`.
    wishes
        What is not left to netplan.
    length
        (n_cables,) lengths [m], as `floor_lengths` returns them; the fabric's own when None.

    Returns
    -------
    Bill
        The same for the same arguments.

    Raises
    ------
    CatalogError
        A part that is wished for is not in the catalogue, or too small.
    SpecError
        A medium that is wished for breaks a plug rule: its reach, its cage, its standard.

    Notes
    -----
    Transceivers: a twin-port module serves two cables of one kind at one switch; cables of different kinds
    (down and up) do not share one. Power: a part with only one of its two figures counts with it in both; a
    switch's largest draw holds its optics, so these are not counted again.
    """
    if not fabric.links.n_cables:
        raise CatalogError(f"{fabric.name} has no cables, so there is nothing to buy")
    remarks: list[str] = []
    if length is None:
        length = fabric.links.length[0::2]
        remarks.append(
            "Cable lengths are the fabric's own; --floor default takes them from where racks stand."
        )
    host = catalogue.host(wishes.host) if wishes.host else None
    nics = choose_nics(fabric, catalogue, wishes)
    boxes, plan = choose_build(fabric, catalogue, wishes, length, nics)
    remarks += box_remarks(boxes, wishes)
    remarks += cage_remarks(plan, boxes)
    terminals = _terminals(plan, catalogue)
    if terminals:
        remarks.append("Patch cords between DWDM modules and their line terminals are not counted.")
    lines = [
        *_switch_lines(fabric, boxes),
        *_nic_lines(fabric, nics, host),
        *_transceiver_lines(plan),
        *_cable_lines(plan),
        *_terminal_lines(terminals),
        *_host_lines(fabric, host, remarks),
    ]
    spared = tuple(_with_spares(line, wishes.spares) for line in lines)
    totals = _totals(fabric, spared, boxes, host, terminals)
    return Bill(fabric.name, spared, totals, tuple(remarks), plan)


def cabling(bill: Bill) -> Iterator[dict[str, Any]]:
    """Yield the cabling list: a row for each link, from the switch (the lower one) to the other end.

    Ports are numbered by kind of cable, in the order of the cables; ``3/2`` is the second port of the module
    in cage 3. Several links of one cable (copper, split cables) share its label but for the last number.
    """
    plan, fabric = bill.plan, bill.plan.fabric
    names = [fabric.node_name(node) for node in range(fabric.n_nodes)]
    tier = fabric.nodes.tier
    columns = (plan.group, plan.near, plan.far, plan.near_cage, plan.near_port, plan.far_cage, plan.far_port)
    codes = {kind: "".join(word[0] for word in kind.split("_")).upper() for kind in LINK_KINDS}
    for cable, (group, near, far, near_cage, near_port, far_cage, far_port) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        this = plan.groups[group]
        is_host = tier[far] == 0
        yield {
            "from_device": names[near],
            "from_port": f"{near_cage + 1}/{near_port + 1}",
            "to_device": names[far],
            "to_port": f"nic{far_cage + 1}" if is_host else f"{far_cage + 1}/{far_port + 1}",
            "type": this.medium.name if this.medium else "unlisted",
            "from_module": this.medium.near.name if this.medium and this.medium.near else "",
            "to_module": this.medium.far.name if this.medium and this.medium.far else "",
            "length_m": this.length,
            "label": f"{codes[this.link.kind]}-{cable:06d}",
        }


# ---- lines -------------------------------------------------------------------------------------------------


def _line(part: PartSpec, kind: str, use: str, quantity: int, **more: Any) -> Line:  # noqa: ANN401 -- Line's fields
    """Return the line of a part."""
    price = part.price
    typical, largest = part.power_typical, part.power_max
    figures = [getattr(part, name, None) for name in ("ports", "channels", "reach", "power_max")]
    sources = [each.source for each in figures if isinstance(each, Sourced)]
    source = price.source if price else next(iter(sources), "")
    return Line(
        part=part.name,
        kind=kind,
        use=use,
        quantity=quantity,
        spares=0,
        unit_cost=Range(price.low, price.mid, price.high) if price else None,
        power_typical=typical.value if typical else None,
        power_max=largest.value if largest else None,
        source=source,
        confidence=price.confidence if price else None,
        **more,
    )


def _unlisted(name: str, use: str, quantity: int, why: str = _UNLISTED, **more: Any) -> Line:  # noqa: ANN401
    """Return a line for what the catalogue does not have."""
    return Line(name, "unlisted", use, quantity, 0, None, None, None, why, **more)


def _switch_lines(fabric: Fabric, boxes: Boxes) -> Iterator[Line]:
    """Yield a line for each kind of switch."""
    counts = np.bincount(boxes.kind[boxes.kind >= 0], minlength=len(boxes.chosen))
    for switch, (tier, label), count in zip(boxes.chosen, boxes.labels, counts.tolist(), strict=True):
        if switch is None:
            yield _unlisted(label, tier, count)
        else:
            yield _line(switch, "switch", tier, count)


def _nic_lines(fabric: Fabric, nics: Mapping[float, NicSpec | None], host: HostSpec | None) -> Iterator[Line]:
    """Yield a line for each speed of NIC."""
    of_host = fabric.host_index[fabric.endpoints.host]
    for speed, nic in nics.items():
        ports = np.bincount(of_host[fabric.endpoint_rate == speed], minlength=fabric.n_hosts)
        if nic is None:
            yield _unlisted(f"unlisted-{format_rate(speed)}-nic", "host", int(ports.sum()))
            continue
        quantity = int((-(-ports // (nic.ports_at(speed) or 1))).sum())
        yield _line(nic, "nic", "host", quantity, is_included=bool(host and host.includes_nics))


def _transceiver_lines(plan: Plan) -> Iterator[Line]:
    """Yield a line for each transceiver, kind of cable and side."""
    ends: dict[tuple[str, str], list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
    parts: dict[str, PartSpec] = {}
    tier = plan.fabric.nodes.tier
    for side, node, cage in (("near", plan.near, plan.near_cage), ("far", plan.far, plan.far_cage)):
        uses: dict[tuple[str, str], list[int]] = {}
        for index, each in enumerate(plan.groups):
            part = getattr(each.medium, side) if each.medium else None
            if part is not None:
                parts[part.name] = part
                uses.setdefault((part.name, each.link.kind), []).append(index)
        for (name, kind), members in sorted(uses.items()):
            here = np.isin(plan.group, members)
            place = "NIC" if bool((tier[node[here]] == 0).all()) else "switch"
            ends.setdefault((name, f"{kind}, {place} side"), []).append((node[here], cage[here]))
    for (name, use), tables in ends.items():
        # One module may hold near ends of some cables and far ends of others, where both are of one tier.
        node, cage = (np.concatenate(column) for column in zip(*tables, strict=True))
        yield _line(parts[name], "transceiver", use, len(number_rows([node, cage])[0]))


def _cable_lines(plan: Plan) -> Iterator[Line]:
    """Yield a line for each type of cable, kind and length class."""
    counts = np.bincount(plan.group, minlength=len(plan.groups))
    merged: dict[tuple[str, str, float], list[int]] = {}
    for index, each in enumerate(plan.groups):
        name = each.medium.name if each.medium else f"unlisted-{format_rate(each.link.speed)}-link"
        length = float(each.length) if each.length <= ROUTE_LENGTH else _class(each.length)
        merged.setdefault((name, each.link.kind, length), []).append(index)
    for (name, kind, length), members in merged.items():
        medium = plan.groups[members[0]].medium
        links = int(counts[members].sum())
        if medium is None:
            yield _unlisted(name, kind, links, plan.groups[members[0]].why, length=length)
        elif medium.cable is not None:
            here = np.isin(plan.group, members)
            yield _line(
                medium.cable,
                "cable",
                kind,
                _count_cables(plan, here, medium),
                length=length,
                far_ends=medium.cable.far_ends,
            )
        else:
            assert medium.near is not None
            for use, of_length, routes in _routes(plan, members, kind, length):
                quantity, pairs = routes * medium.near.fibres, routes * medium.near.fibre_pairs
                if medium.fibre is None:
                    yield _unlisted(name, use, quantity, length=of_length, fibre_pairs=pairs)
                else:
                    yield _line(medium.fibre, "fibre", use, quantity, length=of_length, fibre_pairs=pairs)


def _routes(plan: Plan, members: Sequence[int], kind: str, length: float) -> Iterator[tuple[str, float, int]]:
    """Yield use, length [m] and number of the fibre links of some groups: by fibre path where one says more.

    A link that shares its fibre pair has no fibre of its own: the path's pairs are what is laid.
    """
    fabric = plan.fabric
    place, counts = np.unique(fabric.links.path[0::2][np.isin(plan.group, members)], return_counts=True)
    ends = [frozenset((path.a, path.b)) for path in fabric.fibre_paths]
    plain = 0
    for index, count in zip(place.tolist(), counts.tolist(), strict=True):
        path = fabric.fibre_paths[index] if index >= 0 else None
        if path is None or (path.wavelengths == 1 and ends.count(ends[index]) == 1):
            plain += count if path is None else max(count, path.fibre_pairs)
        else:
            sites = f"{fabric.site_names[path.a]}/{fabric.site_names[path.b]}"
            yield f"{kind} {sites}/{path.name}", path.length, path.fibre_pairs
    if plain:
        yield kind, length, plain


@dataclass(frozen=True)
class _Terminals:
    """Line terminals of one kind."""

    name: str
    part: LineTerminalSpec | None
    """None when the catalogue has none."""
    count: int


def _terminals(plan: Plan, catalogue: Catalogue) -> list[_Terminals]:
    """Return the line terminals that the fabric takes: two for each fibre pair with several wavelengths."""
    links = plan.fabric.links
    found: dict[str, _Terminals] = {}
    for place, path in enumerate(plan.fabric.fibre_paths):
        on = np.flatnonzero(links.path == place)
        if path.wavelengths == 1 or not len(on):
            continue
        speed = float(links.capacity[on[0]])
        part = choose_terminal(catalogue, speed, path.wavelengths, path.length)
        name = part.name if part else f"unlisted-{path.wavelengths}x{format_rate(speed)}-line-terminal"
        before = found[name].count if name in found else 0
        found[name] = _Terminals(name, part, before + 2 * path.fibre_pairs)
    return list(found.values())


def _terminal_lines(terminals: Sequence[_Terminals]) -> Iterator[Line]:
    """Yield a line for each kind of line terminal."""
    use = "inter_site, both ends of a fibre pair"
    for each in terminals:
        if each.part is None:
            yield _unlisted(each.name, use, each.count)
        else:
            yield _line(each.part, "line-terminal", use, each.count)


def _class(length: float) -> float:
    """Return the length class of a route [m]; beyond the last the length itself."""
    place = int(length_class(np.asarray([length]))[0])
    return LENGTH_CLASSES[place] if place < len(LENGTH_CLASSES) else length


def _count_cables(plan: Plan, here: NDArray[np.bool_], medium: Medium) -> int:
    """Return how many cables with plugs some links take."""
    assert medium.cable is not None
    if medium.cable.far_ends > 1:  # one for each plug at the switch
        return len(number_rows([plan.near[here], plan.near_cage[here]])[0])
    links = np.bincount(number_rows([plan.near[here], plan.far[here]])[1])
    return int((-(-links // medium.cable.links)).sum())


def _host_lines(fabric: Fabric, host: HostSpec | None, remarks: list[str]) -> Iterator[Line]:
    """Yield the line of the hosts."""
    if host is None:
        return
    different = int((fabric.gpus_per_host != host.gpus).sum())
    if different:
        remarks.append(f"{different:,} hosts have other than the {host.gpus} GPUs of {host.name}.")
    yield _line(host, "host", "host", fabric.n_hosts)


def _with_spares(line: Line, fraction: float) -> Line:
    """Return a line with its spare pieces."""
    if line.kind == "host" or line.is_included:
        return line
    return replace(line, spares=ceil(line.quantity * fraction - 1e-9))


# ---- totals ------------------------------------------------------------------------------------------------


def _totals(
    fabric: Fabric,
    lines: tuple[Line, ...],
    boxes: Boxes,
    host: HostSpec | None,
    terminals: Sequence[_Terminals],
) -> Totals:
    """Add up."""
    network = [line for line in lines if line.kind != "host" and not line.is_included]
    costs = [line.cost for line in network if line.cost is not None]
    typical, largest, no_power, no_largest = _power(network, boxes)
    units, no_height = _height(fabric, boxes, host, terminals)
    host_line = next((line for line in lines if line.kind == "host"), None)
    host_draw = None if host_line is None else _either(host_line.power_max, host_line.power_typical)
    unknown = {
        "cost": [line.part for line in network if line.cost is None],
        "power_typical": no_power,
        "power_max": no_largest,
        "rack_units": no_height,
    }

    def total(*kinds: str) -> int:
        return sum(line.quantity for line in lines if line.kind in kinds)

    return Totals(
        switches=fabric.n_switches,
        nics=total("nic"),
        transceivers=total("transceiver"),
        line_terminals=sum(each.count for each in terminals),
        cables=total("cable", "fibre"),
        breakout_cables=sum(line.quantity for line in lines if line.far_ends > 1),
        fibre_pairs=sum(line.fibre_pairs for line in lines),
        spares=sum(line.spares for line in lines),
        rack_units=units,
        gpus=fabric.n_gpus,
        cost=Range(sum(c.low for c in costs), sum(c.mid for c in costs), sum(c.high for c in costs)),
        power_typical=typical,
        power_max=largest,
        host_cost=host_line.cost if host_line else None,
        host_power=None if host_line is None or host_draw is None else host_draw * host_line.quantity,
        unknown={name: tuple(dict.fromkeys(parts)) for name, parts in unknown.items()},
    )


def _either(first: float | None, second: float | None) -> float | None:
    """Return the first of two figures that is known."""
    return second if first is None else first


def _power(network: list[Line], boxes: Boxes) -> tuple[float, float, list[str], list[str]]:
    """Return the typical and the largest draw [W], and the parts without any and without the largest."""
    # Where the largest draw of all switches is known, it holds the optics in them.
    holds_optics = all(switch is not None and switch.power_max is not None for switch in boxes.chosen)
    typical, largest = 0.0, 0.0
    no_power, no_largest = [], []
    for line in network:
        low = _either(line.power_typical, line.power_max)
        high = _either(line.power_max, line.power_typical)
        if low is None or high is None:
            if line.kind != "fibre":  # glass draws nothing
                no_power.append(line.part)
            continue
        typical += low * line.quantity
        is_inside = line.kind == "transceiver" and line.use.endswith("switch side") and holds_optics
        largest += 0.0 if is_inside else high * line.quantity
        if line.kind == "switch" and line.power_max is None:
            no_largest.append(line.part)
    return typical, largest, no_power, [*no_power, *no_largest]


def _height(
    fabric: Fabric, boxes: Boxes, host: HostSpec | None, terminals: Sequence[_Terminals]
) -> tuple[int, list[str]]:
    """Return the height of switches, line terminals and hosts [rack units], and the parts without one."""
    units = 0
    unknown = []
    counts = np.bincount(boxes.kind[boxes.kind >= 0], minlength=len(boxes.chosen)).tolist()
    for switch, (_, label), count in zip(boxes.chosen, boxes.labels, counts, strict=True):
        if switch is None or switch.rack_units is None:
            unknown.append(switch.name if switch else label)
        else:
            units += switch.rack_units.value * count
    for each in terminals:
        if each.part is None or each.part.rack_units is None:
            unknown.append(each.name)
        else:
            units += each.part.rack_units.value * each.count
    if host is not None and host.rack_units is None:
        unknown.append(host.name)
    elif host is not None and host.rack_units is not None:
        units += host.rack_units.value * fabric.n_hosts
    return units, unknown
