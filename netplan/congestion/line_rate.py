"""Payload line rate and latency of a transport.

*Payload line rate* = link rate x payload / (payload + headers), for full packets. Around each
RoCEv2 packet Ethernet carries preamble 8, header 14, FCS 4, inter-packet gap 12, IPv4 20, UDP 8,
BTH 12 and ICRC 4 bytes; an InfiniBand packet has LRH 8, BTH 12, ICRC 4 and VCRC 2. The RETH (16
bytes, once a message) is left out: below 0.01 % for messages from 256 KiB on.

Latencies are half of what DeepSeek-V3 (ISCA 2025, Table 5: 64 B, CPU side) measured end to end
through one leaf, and what two more switches added: RoCE 3.6 us and 5.6 us, InfiniBand 2.8 us and
3.7 us, NVLink 3.33 us. So a switch adds 1.0 us (RoCE) or 0.45 us (InfiniBand), its cables of a few
metres included, and the two hosts and NICs together add the rest: 2.6 us or 2.35 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import ModelRangeError

if TYPE_CHECKING:
    from netplan.fabric import Fabric

#: Payload bytes of a full packet when nothing else is said [bytes].
DEFAULT_MTU = 4096

#: MTUs that RDMA knows [bytes].
MTUS = (256, 512, 1024, 2048, 4096)

#: Latency of a hop inside the scale-up domain [s]: NVLink, DeepSeek-V3 (ISCA 2025), Table 5.
SCALE_UP_LATENCY_S = 3.33e-6


@dataclass(frozen=True)
class Transport:
    """Packet format and latencies."""

    name: str
    header_bytes: int
    """Bytes around the payload of each packet, on the wire."""
    switch_latency_s: float
    """Added by each switch [s]."""
    endpoint_latency_s: float
    """Added once by sending and receiving host and NIC [s]."""

    def payload_fraction(self, mtu: int = DEFAULT_MTU) -> float:
        """Return payload line rate over link rate, for full packets of ``mtu`` payload bytes.

        Raises
        ------
        ModelRangeError
            RDMA has no such MTU.

        Examples
        --------
        >>> round(TRANSPORTS["roce"].payload_fraction(4096), 4)
        0.9804
        """
        if mtu not in MTUS:
            raise ModelRangeError(
                f"mtu = {mtu} bytes is not one of {', '.join(str(size) for size in MTUS)}",
                hint="RDMA packets carry 256 to 4096 bytes in powers of two",
            )
        return mtu / (mtu + self.header_bytes)


#: The transports by name.
TRANSPORTS = {
    "roce": Transport("roce", 8 + 14 + 4 + 12 + 20 + 8 + 12 + 4, 1.0e-6, 2.6e-6),
    "infiniband": Transport("infiniband", 8 + 12 + 4 + 2, 0.45e-6, 2.35e-6),
}


def latencies(fabric: Fabric, transport: Transport) -> tuple[float, float]:
    """Return (per switch, per message) latencies [s]: the fabric's own where it has them."""
    switch = transport.switch_latency_s if fabric.switch_latency is None else fabric.switch_latency
    endpoint = transport.endpoint_latency_s if fabric.endpoint_latency is None else fabric.endpoint_latency
    return switch, endpoint
