"""Which switches of the catalogue serve ports of a speed, and which NIC has so many of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import CatalogError
from netplan.units import format_rate

if TYPE_CHECKING:
    from netplan.catalog.parts import Catalogue
    from netplan.planning.plan.request import Request
    from netplan.spec.parts import NicSpec, SwitchSpec

__all__ = ["EVERY", "Box", "choose_nic_with", "find_boxes"]

#: Asks for every switch of the catalogue.
EVERY = "all"

#: Into how many NIC ports a switch port may be split.
_BREAKOUTS = (2, 4)


@dataclass(frozen=True)
class Box:
    """Switches that look the same to a fabric spec."""

    radix: int
    """Ports at the speed between switches."""
    breakout: int
    """NIC ports on one switch port."""
    parts: tuple[str, ...]
    """Names in the catalogue."""


def find_boxes(catalogue: Catalogue, request: Request, speed: float) -> list[Box]:
    """Return what may be used where NIC ports have a speed.

    Parameters
    ----------
    catalogue
        The parts.
    request
        Which switches, of which protocol.
    speed
        Line rate of a NIC's port [bytes/s].

    Returns
    -------
    list of Box
        By number of ports. A switch without ports of the speed is used with its faster ports split in two,
        or four. When the request names no switch, those with a known price or power are used, and of these
        the one with the most known figures where several are alike; ``all`` names every switch.

    Raises
    ------
    CatalogError
        A switch that the request names is not in the catalogue, or its ports are not known.
    """
    found: dict[tuple[int, int], list[SwitchSpec]] = {}
    for switch in _allowed(catalogue, request):
        for breakout in (1, *_BREAKOUTS):
            ports = switch.ports_at(speed * breakout)
            if ports:
                found.setdefault((ports, breakout), []).append(switch)
                break
    boxes = []
    for (radix, breakout), alike in sorted(found.items()):
        parts = alike if request.switches else [min(alike, key=_unknown_figures)]
        boxes.append(Box(radix, breakout, tuple(part.name for part in parts)))
    return boxes


def _allowed(catalogue: Catalogue, request: Request) -> list[SwitchSpec]:
    """Return the switches that may be used."""
    protocol = request.any_protocol
    if not request.switches or request.switches == (EVERY,):
        return [
            switch
            for switch in catalogue.switches.values()
            if switch.ports
            and protocol in (None, switch.protocol)
            and (request.switches or switch.price or switch.power_max or switch.power_typical)
        ]
    named = [catalogue.switch(name) for name in request.switches]
    for switch in named:
        if switch.ports is None:
            raise CatalogError(
                f"switch {switch.name!r}: its ports are not known, so no fabric can be planned with it",
                hint="netplan list parts shows what is known; --parts FILE adds figures",
            )
        if protocol not in (None, switch.protocol):
            sites = "where sites are joined" if request.protocol is None else "as --protocol asks"
            raise CatalogError(
                f"switch {switch.name!r} speaks {switch.protocol}, not {protocol} {sites}",
                hint="name a switch of that protocol, or give --protocol",
            )
    return named


def _unknown_figures(switch: SwitchSpec) -> int:
    """Count the figures of a switch that nobody publishes, the price first."""
    rest = (switch.power_max, switch.power_typical, switch.cages)
    return 4 * (switch.price is None) + sum(figure is None for figure in rest)


def choose_nic_with(catalogue: Catalogue, ports: int, speed: float) -> NicSpec:
    """Return the first NIC with so many ports of a speed [bytes/s], those with known cages first.

    Raises
    ------
    CatalogError
        There is none.
    """
    fitting = [nic for nic in catalogue.nics.values() if nic.ports_at(speed) >= ports]
    if not fitting:
        many = f"{ports} ports" if ports > 1 else "a port"
        raise CatalogError(
            f"no NIC of the catalogue has {many} of {format_rate(speed)}", hint="--parts FILE adds one"
        )
    return min(fitting, key=lambda nic: (nic.ports_at(speed) != ports, nic.cage is None))
