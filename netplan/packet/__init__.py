"""Packet by packet: the same scenario in a packet simulator, with the same kind of result.

A *back end* takes what the train engine takes (`netplan.congestion.dynamics`: network, flows, protocol,
options) and returns what it returns. A `PacketEngine` is a back end with its limits: what a `Scenario` holds.
"""

from netplan.packet.registry import BACKENDS, Limits, PacketBackend, PacketEngine, Stats, estimate

__all__ = ["BACKENDS", "Limits", "PacketBackend", "PacketEngine", "Stats", "estimate"]
