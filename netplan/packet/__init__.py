"""Packet by packet: the same scenario in a packet simulator, with the same kind of result.

A *back end* takes what the train engine takes (`netplan.congestion.dynamics`: network, flows, protocol, options)
and returns what it returns. `find_backend` finds one by name; `packet_engine` makes what a `Scenario` holds.
"""

from netplan.packet.registry import BACKENDS, Limits, PacketBackend, estimate, packet_engine

__all__ = ["BACKENDS", "Limits", "PacketBackend", "estimate", "packet_engine"]
