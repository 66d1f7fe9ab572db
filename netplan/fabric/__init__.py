"""The fabric as columns: specs build it, routing walks it, reports read it.

A `Fabric` is some integer and float columns over nodes, links and endpoints (numpy arrays,
read-only). `FabricBuilder` makes one and refuses to finish a wrong one, `checks` lists faults
with codes, `measures` tells what it can carry, `convert` turns it into networkx graphs and files.

Terms. *Node*: a host (tier 0) or a switch (leaf 1, spine 2, core 3, metro 4). *Link*: one
direction of a *cable*; links ``2 * c`` (away from the hosts) and ``2 * c + 1`` (towards them)
are cable ``c``. *Endpoint*: one NIC port, with one cable to one leaf.
"""

from netplan.fabric.builder import FabricBuilder
from netplan.fabric.columns import (
    LINK_KINDS,
    TIER_NAMES,
    Endpoints,
    Fabric,
    Links,
    NameBlock,
    Nodes,
)
from netplan.fabric.structure import ClosStructure

__all__ = [
    "LINK_KINDS",
    "TIER_NAMES",
    "ClosStructure",
    "Endpoints",
    "Fabric",
    "FabricBuilder",
    "Links",
    "NameBlock",
    "Nodes",
]
