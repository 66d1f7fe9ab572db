"""PFC headroom: room for what still arrives after a pause is sent.

When what waits from one ingress port and priority passes xoff, the switch sends a pause. Until the other
end has stopped, the port keeps filling; *headroom* is the buffer kept for that. The terms are those of
SONiC's plugin for NVIDIA switches (``sonic-swss cfgmgr/buffer_headroom_mellanox.lua``), which follow the
worst case of IEEE 802.1Q (Annex O)::

    headroom = MTU_lossless + k x (MTU_port + 2 C d + 2 C g + mac_phy + response(C) + C t)

    MTU_lossless   a packet that arrived whole just before
    MTU_port       a packet that the far end has begun when the pause reaches it
    2 C d          both directions of the cable: rate C x one-way delay d (``cable``)
    2 C g          gearboxes or transponders, one-way delay g
    mac_phy        MAC and PHY of both ends, bytes
    response(C)    64 bytes x pause quanta of IEEE 802.3 31B.3.7 (``PAUSE_QUANTA``): the far end's reaction
    C t            processing not in the others: the vendor's constant t
    k              buffer cells over bytes on the wire: 1 + s (k_worst - 1), s the share of small packets

``k_worst`` = cell / packet: a small packet fills a whole cell. It is what separates the published tables:
3 on Spectrum-4 (cells of 192 bytes, packets of 64), 3.02 on Tomahawk 5 (254 over 84: preamble and gap
counted), 1.32 on Tomahawk 3, 1.33 on Jericho 2.

Departures from the plugin: it counts the cable in units of 1024 where 1000 is meant (2.4 % less than
2 C d), which its published tables do not do; and it adds the pipeline's latency as ``xon`` to the size of
a profile, which is no headroom and is left to `netplan.congestion.pools`. A rate between two listed ones
takes the response *time* of the next lower rate.

Valid for full-duplex links with one pause sent per crossing of xoff; not for priorities that share one
headroom pool (``over_subscribe_ratio``), which need less when they do not pause together.

Held against the published tables of NVIDIA SN5600 (24 rows within 2.2 %, with ``t`` fitted on one),
SN4280 (2.9 %) and SN5610N from 100G on (3.1 %), and of Broadcom switches of Arista and Dell, along the
length of the cable (2 %): `tests/laws/test_headroom.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from netplan.errors import ModelRangeError
from netplan.units import FIBRE_DELAY_S_PER_M, format_length, format_rate, format_size

if TYPE_CHECKING:
    from netplan.spec.buffers import BufferSpec

__all__ = [
    "PAUSE_QUANTA",
    "Headroom",
    "HeadroomRule",
    "fit_processing",
    "response_bytes",
]

#: Bits of one pause quantum (IEEE 802.3 31B.2).
_QUANTUM_BITS = 512

#: Quanta within which a port must have stopped, by rate [Gb/s]: IEEE 802.3 31B.3.7, as in SONiC's plugin.
PAUSE_QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}

#: What headroom is rounded up to [bytes].
_ROUNDED_TO = 1024


@dataclass(frozen=True)
class Headroom:
    """Headroom of one port and priority, term by term [bytes]; all but the first are without `occupancy`."""

    lossless_mtu: float
    port_mtu: float
    cable: float
    gearbox: float
    mac_phy: float
    response: float
    processing: float
    occupancy: float
    """Buffer bytes per byte on the wire."""

    @property
    def exact_bytes(self) -> float:
        """The sum [bytes]."""
        wire = self.port_mtu + self.cable + self.gearbox + self.mac_phy + self.response + self.processing
        return self.lossless_mtu + self.occupancy * wire

    @property
    def total_bytes(self) -> int:
        """The sum, rounded up to whole KiB [bytes]."""
        return math.ceil(self.exact_bytes / _ROUNDED_TO) * _ROUNDED_TO

    @property
    def reason(self) -> str:
        """Say where most of it comes from."""
        cable = self.occupancy * self.cable
        rest = self.exact_bytes - cable
        return (
            f"{format_size(round(cable))} on the cable (2 x rate x delay x {self.occupancy:.3g}) and "
            f"{format_size(round(rest))} of packets and reaction times"
        )


@dataclass(frozen=True)
class HeadroomRule:
    """How a kind of switch counts headroom."""

    name: str = "ieee"
    cell_bytes: float = 192.0
    """Bytes of a buffer cell."""
    packet_bytes: float = 64.0
    """Bytes on the wire of the smallest packet, which fills a cell."""
    small_packets: float = 0.02
    """Share of the bytes in flight that are such packets, 0 to 1."""
    lossless_mtu_bytes: float = 4096.0
    port_mtu_bytes: float = 9216.0
    mac_phy_bytes: float = 819.2
    """SONiC's default for NVIDIA switches: 0.8 KiB."""
    response: Literal["ieee", "none"] = "ieee"
    """Whether the far end's reaction is counted by quanta, or is part of `processing_s`."""
    processing_s: float = 126.4e-9
    """The vendor's constant t [s]; this one is of Spectrum-4 (SN5600)."""
    gearbox_s: float = 0.0
    """One-way delay of gearboxes or transponders in the line [s]."""
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse what no switch can be."""
        for name in ("cell_bytes", "packet_bytes"):
            if not getattr(self, name) > 0:
                raise ModelRangeError(
                    f"headroom rule {self.name}: {name} = {getattr(self, name):g} is not > 0"
                )
        for name in ("lossless_mtu_bytes", "port_mtu_bytes", "mac_phy_bytes", "processing_s", "gearbox_s"):
            if getattr(self, name) < 0:
                raise ModelRangeError(
                    f"headroom rule {self.name}: {name} = {getattr(self, name):g} is negative"
                )
        if not 0 <= self.small_packets <= 1:
            raise ModelRangeError(
                f"headroom rule {self.name}: small_packets = {self.small_packets:g} is not in 0 to 1",
                hint="a share: 2 % is 0.02",
            )

    @classmethod
    def of_switch(cls, spec: BufferSpec | None, *, small_packets: float) -> HeadroomRule:
        """Return the rule of a switch of the catalogue; the general one when it is not known (None)."""
        if spec is None:
            return cls(small_packets=small_packets)
        return cls(
            spec.name,
            cell_bytes=spec.cell,
            packet_bytes=spec.packet,
            small_packets=small_packets,
            mac_phy_bytes=spec.mac_phy,
            response=spec.response,
            processing_s=spec.processing,
            source=spec.source,
        )

    @property
    def occupancy(self) -> float:
        """Buffer bytes that one byte on the wire takes, at least 1."""
        worst = max(self.cell_bytes / self.packet_bytes, 1.0)
        return 1.0 + self.small_packets * (worst - 1.0)

    def of(self, rate: float, delay: float) -> Headroom:
        """Return the headroom of a port.

        Parameters
        ----------
        rate
            Line rate [bytes/s], > 0.
        delay
            One-way delay of the cable [s], >= 0.

        Returns
        -------
        Headroom
            Never less than ``2 x rate x delay``.

        Raises
        ------
        ModelRangeError
            A rate or delay that no link has.

        Examples
        --------
        >>> HeadroomRule().of(50e9, 151.5e-6).total_bytes  # 400 Gb/s over 30 km
        15838208
        """
        if not (rate > 0 and math.isfinite(rate)):
            raise ModelRangeError(f"headroom: rate = {rate:g} bytes/s is not > 0")
        if not (delay >= 0 and math.isfinite(delay)):
            raise ModelRangeError(
                f"headroom: delay = {delay:g} s is not 0 or more", hint="give the one-way delay of the cable"
            )
        return Headroom(
            lossless_mtu=self.lossless_mtu_bytes,
            port_mtu=self.port_mtu_bytes,
            cable=2.0 * rate * delay,
            gearbox=2.0 * rate * self.gearbox_s,
            mac_phy=self.mac_phy_bytes,
            response=response_bytes(rate) if self.response == "ieee" else 0.0,
            processing=rate * self.processing_s,
            occupancy=self.occupancy,
        )


def response_bytes(rate: float) -> float:
    """Return what a port still sends after it has received a pause [bytes], by its rate [bytes/s].

    Examples
    --------
    >>> response_bytes(50e9)  # 905 quanta of 512 bits
    57920.0
    """
    gbps = rate * 8 / 1e9
    listed = [speed for speed in PAUSE_QUANTA if speed <= gbps * (1 + 1e-9)]
    if not listed:
        raise ModelRangeError(
            f"headroom: {format_rate(rate)} is below {min(PAUSE_QUANTA)}G, the slowest that is known",
            hint="give the headroom of such ports yourself",
        )
    return PAUSE_QUANTA[max(listed)] * _QUANTUM_BITS / 8 * gbps / max(listed)


def fit_processing(rule: HeadroomRule, rate: float, length: float, headroom: float) -> float:
    """Return the constant t [s] with which a rule gives one published row of a vendor's table.

    Parameters
    ----------
    rule
        The rule; its own `processing_s` is left out.
    rate, length, headroom
        The row: rate [bytes/s], length of the cable [m], headroom [bytes].

    Raises
    ------
    ModelRangeError
        The row is below what the rule's other terms take.
    """
    terms = rule.of(rate, length * FIBRE_DELAY_S_PER_M)
    rest = (headroom - terms.exact_bytes) / terms.occupancy + terms.processing
    if rest < 0:
        raise ModelRangeError(
            f"headroom rule {rule.name}: {format_size(headroom)} at {format_rate(rate)} over "
            f"{format_length(length)} is less than its terms other than processing take",
            hint="the share of small packets or an MTU is too large for this table",
        )
    return rest / rate
