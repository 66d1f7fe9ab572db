"""``FabricSpec`` in, `Fabric` out: one family of topologies a file.

Each family registers a builder for its ``kind`` with a sentence on what it is and one on what it
leaves out; `build_fabric` finds it. The counts of each family are in its module's docstring and
follow from `netplan.topology.sizes`; paths follow from `netplan.fabric.ClosStructure` where the
family is a tree.
"""

from netplan.topology.registry import FAMILIES, Family, build_fabric

__all__ = ["FAMILIES", "Family", "build_fabric"]
