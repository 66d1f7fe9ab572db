"""Classes of switch ports, and kinds of switches: what buffers are planned for.

A *port class* is the switch ports of one tier, kind of cable, rate, length and medium. The round trip of a
class is that of the longest path over its ports: each kind of cable once up and once down at its longest,
the latency of every switch and of two hosts; over a span, with the span once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.catalog.buffers import shipped_buffers
from netplan.congestion.headroom import Headroom, HeadroomRule
from netplan.congestion.line_rate import TRANSPORTS, latencies
from netplan.fabric.columns import LINK_KINDS, TIER_NAMES
from netplan.planning.build import Wishes, choose_build, choose_nics
from netplan.planning.floor import round_up
from netplan.units import format_length, format_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.catalog.parts import Catalogue
    from netplan.fabric import Fabric
    from netplan.planning.build import Boxes
    from netplan.planning.media import Medium
    from netplan.spec.parts import SwitchSpec

__all__ = ["LONG_DELAY_S", "PortClass", "PortClasses", "SwitchKind", "find_port_classes"]

#: From this one-way delay on, headroom is mostly distance [s]: 1 km.
LONG_DELAY_S = 5e-6

_INTER_SITE = LINK_KINDS.index("inter_site")
_SITE_METRO = LINK_KINDS.index("site_metro")


@dataclass(frozen=True)
class PortClass:
    """Switch ports that are alike."""

    tier: str
    kind: str
    rate: float
    length: float
    delay: float
    rtt: float
    medium: str | None
    ports: int
    rule: HeadroomRule

    @property
    def name(self) -> str:
        """The class in words."""
        return f"{self.tier} {self.kind} {format_rate(self.rate)} {format_length(self.length)}"

    @property
    def is_long(self) -> bool:
        """Whether its headroom is mostly distance."""
        return self.delay >= LONG_DELAY_S

    @property
    def headroom(self) -> Headroom:
        """Computed headroom."""
        return self.rule.of(self.rate, self.delay)


@dataclass(frozen=True)
class SwitchKind:
    """Switches of one tier and part with the same ports."""

    tier: str
    part: SwitchSpec | None
    switches: int
    counts: Mapping[int, int]
    """Ports by number of the class, the most of any such switch."""

    @property
    def label(self) -> str:
        """The switch in words."""
        return f"{self.tier} ({self.part.name if self.part else 'unlisted switch'})"


@dataclass(frozen=True)
class PortClasses:
    """All classes and kinds."""

    classes: list[PortClass]
    kinds: list[SwitchKind]


def find_port_classes(
    fabric: Fabric, catalogue: Catalogue, *, switches: Mapping[str, str], small_packets: float
) -> PortClasses:
    """Group the switch ports of a fabric, and its switches.

    Parameters
    ----------
    fabric
        The fabric.
    catalogue
        Parts, for switches and media.
    switches
        Part by tier; ``*`` for every tier. Without any, Ethernet switches are chosen.
    small_packets
        Share of small packets in flight, 0 to 1.

    Raises
    ------
    CatalogError
        A part that is not known, or has too few ports.
    """
    length = fabric.links.length[0::2].astype(np.float64)
    wishes = Wishes(switches=switches, protocol=None if switches else "ethernet")
    nics = choose_nics(fabric, catalogue, wishes)
    boxes, plan = choose_build(fabric, catalogue, wishes, length, nics)
    at = fabric.links.dst.astype(np.int64)  # the ingress port of link l is at its receiving end
    is_port = fabric.nodes.tier[at] > 0
    link, node = np.flatnonzero(is_port), at[is_port]
    cable = link // 2
    bought = round_up(length)[cable]
    columns = np.stack(
        [
            fabric.nodes.tier[node].astype(np.float64),
            fabric.links.kind[link].astype(np.float64),
            fabric.links.capacity[link],
            bought,
            boxes.kind[node].astype(np.float64),
        ]
    )
    unique, number = np.unique(columns, axis=1, return_inverse=True)
    number = number.reshape(-1)
    round_trip = _RoundTrips(fabric)
    classes = []
    for place in range(unique.shape[1]):
        of_class = link[number == place]
        tier, kind = TIER_NAMES[int(unique[0, place])], int(unique[1, place])
        part = boxes.chosen[int(unique[4, place])]
        buffer = shipped_buffers().get(part.name) if part else None
        medium = plan.groups[int(plan.group[of_class[0] // 2])].medium
        delay = float(fabric.links.delay[of_class].max())
        classes.append(
            PortClass(
                tier,
                LINK_KINDS[kind],
                float(unique[2, place]),
                float(fabric.links.length[of_class].max()),
                delay,
                round_trip(kind, delay),
                _medium_name(medium),
                len(of_class),
                HeadroomRule.of_switch(buffer, small_packets=small_packets),
            )
        )
    return PortClasses(classes, _find_kinds(fabric, boxes, node, number, len(classes)))


def _medium_name(medium: Medium | None) -> str | None:
    """Return what carries a class: the cable, or the transceivers at its ends."""
    if medium is None:
        return None
    if medium.cable is not None:
        return medium.cable.name
    assert medium.near is not None
    return medium.near.standard


def _find_kinds(
    fabric: Fabric, boxes: Boxes, node: NDArray[np.int64], number: NDArray[np.int64], n_classes: int
) -> list[SwitchKind]:
    """Group switches by tier, part and classes of ports; a kind has the most ports that any of it has."""
    counts = np.bincount(node * n_classes + number, minlength=fabric.n_nodes * n_classes)
    counts = counts.reshape(fabric.n_nodes, n_classes)
    switches = np.flatnonzero(fabric.nodes.tier > 0)
    key = np.column_stack(
        [fabric.nodes.tier[switches].astype(np.int64), boxes.kind[switches], counts[switches] > 0]
    )
    unique, kind = np.unique(key, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    found = []
    for place, row in enumerate(unique):
        members = switches[kind == place]
        most = counts[members].max(axis=0)
        ports = {int(c): int(most[c]) for c in np.flatnonzero(most)}
        found.append(SwitchKind(TIER_NAMES[int(row[0])], boxes.chosen[int(row[1])], len(members), ports))
    return found


class _RoundTrips:
    """Base round trip of the longest path over a kind of cable."""

    def __init__(self, fabric: Fabric) -> None:
        transport = TRANSPORTS["roce"]
        self.switch, self.endpoint = latencies(fabric, transport)
        kind, delay = fabric.links.kind, fabric.links.delay
        longest = [float(delay[kind == k].max(initial=0.0)) for k in range(len(LINK_KINDS))]
        self.top = int(fabric.top_tier.max())
        self.site_metro = longest[_SITE_METRO]
        self.span = longest[_INTER_SITE]
        inside = sum(longest) - self.site_metro - self.span
        self.local = 2 * inside + (2 * self.top - 1) * self.switch + self.endpoint
        # Without metro switches, spans join switches of the sites themselves.
        n_metro = 2 if (kind == _SITE_METRO).any() else 0
        self.beyond = (
            2 * inside + 2 * self.site_metro + (2 * self.top + n_metro) * self.switch + self.endpoint
        )

    def __call__(self, kind: int, delay: float) -> float:
        """Return the round trip over a kind of cable with a one-way delay [s]."""
        if kind == _INTER_SITE:
            return 2 * (self.beyond + delay)
        if kind == _SITE_METRO:
            return 2 * (self.beyond + self.span)
        return 2 * self.local
