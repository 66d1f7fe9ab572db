"""Which part of a catalogue fits: a switch for a kind of node, a NIC, a medium for a kind of cable."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.catalog.rules import check_cable, check_link, check_plug, check_protocol, check_shared
from netplan.errors import CatalogError, SpecError, did_you_mean
from netplan.spec.parts import (
    CableSpec,
    FibreSpec,
    LineTerminalSpec,
    NicSpec,
    OpticSpec,
    PriceSpec,
    SwitchSpec,
)
from netplan.units import format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from netplan.catalog.parts import Catalogue
    from netplan.errors import Fault

__all__ = [
    "Link",
    "Medium",
    "NoMediumError",
    "choose_medium",
    "choose_nic",
    "choose_switch",
    "choose_terminal",
    "find_wish",
    "price_of",
]

#: Speeds that a port can be split into: at most so many parts.
_MOST_SPLITS = 8

#: Reach [m] up to which single-mode optics are of the DR, FR, LR and ER classes; beyond is coherent.
_SINGLE_MODE = (500.0, 2e3, 10e3, 40e3)


class NoMediumError(CatalogError):
    """No part of the catalogue carries a link."""


@dataclass(frozen=True)
class Medium:
    """What one link runs over: a cable with plugs, or two transceivers with fibre between them."""

    near: OpticSpec | None
    """Transceiver at the switch, the lower one where both ends are switches; None for a cable."""
    far: OpticSpec | None
    """Transceiver at the other end."""
    fibre: FibreSpec | None
    """Fibre between them."""
    cable: CableSpec | None
    """The cable; None for transceivers."""

    @property
    def name(self) -> str:
        """The type of the cable that is laid."""
        if self.cable is not None:
            return self.cable.name
        assert self.near is not None
        return self.fibre.name if self.fibre else f"{self.near.connector} {self.near.mode}"

    @property
    def reach(self) -> float:
        """The longest it can be [m]."""
        if self.cable is not None:
            return self.cable.reach.value
        assert self.near is not None
        assert self.far is not None
        return min(self.near.reach.value, self.far.reach.value)

    @property
    def rank(self) -> int:
        """Place in the order of what is usually cheaper, as `choose_medium` says."""
        if self.cable is not None:
            return {"copper": 0, "active-copper": 1, "active-optical": 3}[self.cable.medium]
        assert self.near is not None
        if self.near.mode == "multimode":
            return 2
        return 4 + sum(self.reach > reach for reach in _SINGLE_MODE)

    @property
    def cost(self) -> float | None:
        """Middle price of one link [USD]; None when any part of it has none."""
        if self.cable is not None:
            price = price_of(self.cable)
            return None if price is None else price.mid / self.cable.links
        assert self.near is not None
        assert self.far is not None
        prices = [(price_of(end), end.ports) for end in (self.near, self.far)]
        fibre = price_of(self.fibre) if self.fibre else None
        if fibre is None or any(price is None for price, _ in prices):
            return None
        return fibre.mid * self.near.fibres + sum(price.mid / ports for price, ports in prices if price)


@dataclass(frozen=True)
class Link:
    """A kind of cable that needs a medium."""

    kind: str
    speed: float
    """Line rate [bytes/s]."""
    length: float
    """Length [m] that the medium must reach."""
    near: SwitchSpec | None
    """Box at the near end; None when the catalogue has none."""
    far: SwitchSpec | NicSpec | None
    """Box at the far end."""
    is_shared: bool = False
    """Whether it shares its fibre pair with other links, as a DWDM channel."""

    def __str__(self) -> str:
        """Say what it is."""
        ends = " to ".join(box.name if box else "an unlisted box" for box in (self.near, self.far))
        return f"{self.kind} at {format_rate(self.speed)} over {format_length(self.length)}, {ends}"


def price_of(part: OpticSpec | CableSpec | FibreSpec) -> PriceSpec | None:
    """Return the price of a part, None when unknown."""
    return part.price


def choose_switch(
    catalogue: Catalogue, ports: Mapping[float, int], *, radix: int, protocol: str | None
) -> SwitchSpec | None:
    """Return the smallest switch of the catalogue with the ports that a node has.

    Parameters
    ----------
    catalogue
        Where to look.
    ports
        Cables of the node by speed [bytes/s].
    radix
        Ports at the fastest speed, at which the switch must say how many it has; slower ports may be split
        ones, where it does not say.
    protocol
        ``ethernet`` or ``infiniband``; None for any.

    Returns
    -------
    SwitchSpec or None
        Of those that fit the one with known cages, the fewest ports too many, a known price and known power,
        in this order; None when none fits.
    """
    fastest = max(ports)
    fitting = [
        switch
        for switch in catalogue.switches.values()
        if protocol in (None, switch.protocol)
        and switch.ports_at(fastest) >= max(radix, 1)
        and _load(switch, ports) <= 1 + 1e-9
    ]
    return min(
        fitting,
        key=lambda s: (
            s.cages is None,
            s.ports_at(fastest) - radix,
            s.price is None,
            s.power_typical is None,
        ),
        default=None,
    )


def choose_nic(catalogue: Catalogue, speed: float) -> NicSpec | None:
    """Return the first NIC with a port of that speed [bytes/s], those with known cages first."""
    fitting = [nic for nic in catalogue.nics.values() if nic.ports_at(speed)]
    return min(fitting, key=lambda nic: nic.cage is None, default=None)


def choose_terminal(
    catalogue: Catalogue, speed: float, wavelengths: int, length: float
) -> LineTerminalSpec | None:
    """Return the line terminal with the fewest channels that carries a fibre pair's links.

    Parameters
    ----------
    catalogue
        Where to look.
    speed
        Line rate of the links [bytes/s].
    wavelengths
        Links on the fibre pair.
    length
        Fibre length [m].

    Returns
    -------
    LineTerminalSpec or None
        None when none has the channels or the reach.
    """
    fitting = [
        terminal
        for terminal in catalogue.line_terminals.values()
        if terminal.speed == speed
        and terminal.channels.value >= wavelengths
        and terminal.reach.value >= length
    ]
    return min(fitting, key=lambda terminal: terminal.channels.value, default=None)


def find_wish(catalogue: Catalogue, wish: str) -> str:
    """Return what a user asked for: the name of a transceiver or cable, or an optical standard.

    Raises
    ------
    CatalogError
        The catalogue has neither.
    """
    if wish in catalogue.optics or wish in catalogue.cables:
        return wish
    standards = {optic.standard.casefold(): optic.standard for optic in catalogue.optics.values()}
    media = {cable.medium for cable in catalogue.cables.values()}
    if wish.casefold() in standards:
        return standards[wish.casefold()]
    if wish in media:
        return wish
    near = did_you_mean(wish, [*catalogue.optics, *catalogue.cables, *standards.values(), *media])
    raise CatalogError(
        f"{wish!r} is no transceiver, cable or optical standard of the parts catalogue",
        hint=f"did you mean {near}? (netplan list parts)"
        if near
        else "netplan list parts shows all; --parts adds",
    )


def choose_medium(catalogue: Catalogue, link: Link, wish: str | None = None) -> Medium:
    """Return the cheapest medium that carries a link.

    Parameters
    ----------
    catalogue
        Where to look.
    link
        What is to be carried.
    wish
        A part's name or a standard that the medium must have, as `find_wish` returns it.

    Returns
    -------
    Medium
        Of those that break no plug rule, the first in the order copper, active copper, multimode, active
        optical, DR, FR, LR, ER, coherent, and of equals the one that reaches least; a later one whose price
        is known to be lower than that one's.

    Raises
    ------
    NoMediumError
        There is none; says which rule the nearest one breaks.
    SpecError
        There is none with what was wished for; each rule that it breaks is a fault.
    """
    if isinstance(link.near, SwitchSpec) and isinstance(link.far, SwitchSpec):
        faults = list(check_protocol(link.near, link.far))
        if faults:
            raise SpecError(faults=_placed(faults, link))
    tried = [
        (medium, list(_faults(medium, link)))
        for medium in _media(catalogue, link.speed if wish is None else None)
        if wish is None or _is_wished(medium, wish)
    ]
    fitting = sorted((medium for medium, faults in tried if not faults), key=lambda m: (m.rank, m.reach))
    if fitting:
        first = fitting[0]
        priced = [] if first.cost is None else [medium for medium in fitting if medium.cost is not None]
        return min(priced, key=lambda m: m.cost or 0.0, default=first)
    best = min(tried, key=lambda each: len(each[1]), default=None)
    if wish is not None and best is not None:
        raise SpecError(faults=_placed(best[1], link))
    why = f": {best[1][0].message}" if best else ""
    raise NoMediumError(f"no part of the catalogue carries {link}{why}", hint="add one with --parts FILE")


def _placed(faults: Iterable[Fault], link: Link) -> list[Fault]:
    """Return faults with the link as their place."""
    from netplan.errors import Fault

    return [Fault(str(link), fault.message, fault.hint) for fault in faults]


def _media(catalogue: Catalogue, speed: float | None) -> Iterator[Medium]:
    """Yield every medium of a speed (of any when None): all cables, and all pairs of transceivers."""
    for cable in catalogue.cables.values():
        if speed in (None, cable.speed):
            yield Medium(None, None, None, cable)
    optics = [optic for optic in catalogue.optics.values() if speed in (None, optic.speed)]
    for near, far in itertools.product(optics, optics):
        if (near.standard, near.mode, near.connector) == (far.standard, far.mode, far.connector):
            fibre = next(
                (
                    f
                    for f in catalogue.fibres.values()
                    if (f.mode, f.connector) == (near.mode, near.connector)
                ),
                None,
            )
            yield Medium(near, far, fibre, None)


def _is_wished(medium: Medium, wish: str) -> bool:
    """Whether a medium is what the user asked for."""
    if medium.cable is not None:
        return wish in (medium.cable.name, medium.cable.medium)
    assert medium.near is not None
    assert medium.far is not None
    return wish in (medium.near.name, medium.far.name, medium.near.standard)


def _faults(medium: Medium, link: Link) -> Iterator[Fault]:
    """Yield which plug rules a medium breaks on a link."""
    near = medium.cable or medium.near
    far = medium.cable or medium.far
    assert near is not None
    assert far is not None
    yield from check_cable(near, link.speed, link.length)
    if link.is_shared:
        yield from check_shared(near)
    if medium.near is not None and medium.far is not None and medium.far.name != medium.near.name:
        yield from check_cable(medium.far, link.speed, link.length)
        yield from check_link(medium.near, medium.far)
    if link.near is not None:
        yield from check_plug(near, link.near)
    if link.far is not None:
        yield from check_plug(far, link.far, is_far=True)


def _capacity(switch: SwitchSpec, speed: float) -> int:
    """Return how many ports of a speed a switch has, faster ones split where it does not say."""
    stated = switch.ports_at(speed)
    if stated or switch.ports is None:
        return stated
    splits = [
        each.count * int(each.speed / speed)
        for each in switch.ports.value
        if 1 < each.speed / speed <= _MOST_SPLITS and (each.speed / speed).is_integer()
    ]
    return max(splits, default=0)


def _load(switch: SwitchSpec, ports: Mapping[float, int]) -> float:
    """Return the share of a switch that ports take; infinite where it has none of a speed."""
    return sum(
        count / capacity if (capacity := _capacity(switch, speed)) else float("inf")
        for speed, count in ports.items()
    )
