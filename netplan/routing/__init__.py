"""Fabric and flows in, `Routes` out: one routing scheme a file.

A scheme says which links each flow takes, and which share of it. Schemes register themselves
with a name, a sentence on what they capture and one on what they leave out; `route_flows` finds
them by name. On fabrics that netplan generated, paths follow by arithmetic (`clos_paths`); on
others (custom, metro, imported, damaged) by walking next hops (`walked_paths`). Tests hold the
two equal.
"""

from netplan.routing.registry import SCHEMES, RoutingScheme
from netplan.routing.remember import remembered_routes
from netplan.routing.routes import FlowTable, Routes, RoutingOptions, route_flows

__all__ = [
    "SCHEMES",
    "FlowTable",
    "Routes",
    "RoutingOptions",
    "RoutingScheme",
    "remembered_routes",
    "route_flows",
]
