"""The small named fabrics that tests share, each drawn.

``yaml_fabric`` builds any other from its YAML text, as a user's file would be read.
"""

from netplan.fabric import Fabric
from netplan.spec.fabric import FABRIC_SPEC, FabricSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate
from netplan.topology import build_fabric


def yaml_spec(text: str) -> FabricSpec:
    """Read a spec from YAML text; faults are at ``fabric.yaml``."""
    return validate(FABRIC_SPEC, parse_yaml(text, "fabric.yaml"))


def yaml_fabric(text: str) -> Fabric:
    """Build a fabric from YAML text."""
    return build_fabric(yaml_spec(text))


def one_leaf() -> Fabric:
    """Four hosts of one NIC on one leaf: no spine at all.

    ::

          leaf-0-0
         /  |  |  \\
        h0 h1 h2 h3
    """
    return yaml_fabric("{name: one-leaf, kind: leaf-spine, radix: 8, hosts: {count: 4, gpus: 1}}")


def lab_two_leaves() -> Fabric:
    """Four hosts of one NIC, 400G everywhere, non-blocking.

    ::

           spine-0-0 (4 ports)
           ||      ||
        leaf-0-0  leaf-0-1
         h0  h1    h2  h3
    """
    return yaml_fabric("{name: lab-two-leaves, kind: leaf-spine, radix: 4, hosts: {count: 4, gpus: 1}}")


def blocking_two_leaves() -> Fabric:
    """Eight hosts of one NIC, each leaf 4 down and 2 up: oversubscribed 2:1.

    ::

        spine-0-0 (4 ports)
          ||     ||
        leaf-0-0   leaf-0-1
        h0 ... h3  h4 ... h7
    """
    return yaml_fabric(
        "{name: blocking-two-leaves, kind: leaf-spine, radix: 6, hosts: {count: 8, gpus: 1},"
        " leaf: {oversubscription: 2}, spine: {radix: 4}}"
    )


def fat_tree_k4() -> Fabric:
    """Al-Fares et al., figure 3: 16 hosts, 8 leaves, 8 spines, 4 cores, 16 cables on each level.

    ::

        core-0-0 core-0-1   core-1-0 core-1-1      group g: the cores of spines g
           \\  |  \\  |           |  /    |  /
          spine-0-0           spine-0-1            and likewise pods 1, 2, 3
             |   \\           /   |
          leaf-0-0           leaf-0-1
          h0   h1            h2   h3
    """
    return yaml_fabric("{name: fat-tree-k4, kind: fat-tree, k: 4}")


def rail_2x8() -> Fabric:
    """Two blocks of 4 hosts with 8 NICs; 16 leaves (one per block and rail), 4 spines.

    ::

        spine-0-0 ... spine-0-3 (16 ports)            every leaf on every spine, one cable each
           |   \\ ... /   |
        leaf-b0-r0 ... leaf-b0-r7   leaf-b1-r0 ... leaf-b1-r7
           hosts 0-3: NIC r on r       hosts 4-7: NIC r on r
    """
    return yaml_fabric(
        "{name: rail-2x8, kind: rail-optimized, radix: 8, hosts: {count: 8}, spine: {radix: 16}}"
    )


def rail_three_tiers() -> Fabric:
    """16 hosts of 2 NICs, pods by rail: two pods of one rail each, joined by cores.

    ::

        core-0-0 (group 0)            core-1-0 (group 1)       8 cables to each spine
            |    \\ ...               ... /     |
        spine-0-0  spine-0-1          spine-1-0  spine-1-1     pod = rail
            |   ...    |                  |   ...    |
        leaf-b0-r0 .. leaf-b7-r0      leaf-b0-r1 .. leaf-b7-r1     block b: hosts 2b, 2b + 1
    """
    return yaml_fabric(
        "{name: rail-three-tiers, kind: rail-optimized, tiers: 3, radix: 4, hosts: {count: 16, gpus: 2},"
        " pod: {by: rail}, spine: {radix: 16}, core: {radix: 16}}"
    )


def rails_meeting_in_hosts() -> Fabric:
    """As `rail_three_tiers`, but each rail in two pods and with cores of its own (``core.domains: 2``)."""
    return yaml_fabric(
        "{name: rails-meeting-in-hosts, kind: rail-optimized, tiers: 3, radix: 4, hosts: {count: 8, gpus: 2},"
        " pod: {by: rail, leaves: 2}, core: {domains: 2}}"
    )


def rails_only_one_tier() -> Fabric:
    """Three hosts of two NICs, a leaf a rail: the rails meet only inside hosts.

    ::

        leaf-r0-0    leaf-r1-0
        h0 h1 h2     h0 h1 h2       NIC r on leaf r
    """
    return yaml_fabric("{name: rails-only-one-tier, kind: rail-only, radix: 4, hosts: {count: 3, gpus: 2}}")


def twin_planes() -> Fabric:
    """Four hosts of two NICs, each NIC with a port of 200G in both of two rail-optimized planes.

    ::

        spine-0-0 (8 ports)                    spine-1-0
        ||  ||  ||  ||                         ||  ||  ||  ||
        leaf-p0-b0-r0 ... leaf-p0-b1-r1        leaf-p1-b0-r0 ... leaf-p1-b1-r1
          h0 h1 (NIC 0)     h2 h3 (NIC 1)        and the other port of each likewise
    """
    return yaml_fabric(
        "{name: twin-planes, kind: multi-plane, planes: 2, rails: true, radix: 4, hosts: {count: 4, gpus: 2},"
        " spine: {radix: 8}}"
    )


def a_plane_for_each_nic() -> Fabric:
    """Six hosts of two NICs of one port: NIC 0 in a plane of two leaves and a spine, NIC 1 in another."""
    return yaml_fabric(
        "{name: a-plane-for-each-nic, kind: multi-plane, planes: 2, assignment: per-nic, radix: 6,"
        " hosts: {count: 6, gpus: 2}}"
    )


def dual_tor_two_segments() -> Fabric:
    """Two segments of two hosts with one NIC: a ToR each in both planes, a port kept for a backup host.

    ::

        spine-0-0                          spine-1-0
        || \\                               || \\
        leaf-p0-b0-r0  leaf-p0-b1-r0       leaf-p1-b0-r0  leaf-p1-b1-r0
          h0 h1          h2 h3               h0 h1          h2 h3
    """
    return yaml_fabric(
        "{name: dual-tor-two-segments, kind: dual-tor, radix: 5, hosts: {count: 4, gpus: 1},"
        " leaf: {backup: 1}}"
    )


def metro_two_sites() -> Fabric:
    """Two sites of 8 hosts with 2 NICs, 30 km apart (151.5 us), 8 long links.

    ::

        north-metro-0 ======= 30 km ======= south-metro-0
        north-metro-1 ======= 30 km ======= south-metro-1
           |  X  |                             |  X  |
        4 spines                            4 spines
        4 leaves (2 blocks x 2 rails)       4 leaves
    """
    site = "kind: rail-optimized, radix: 8, hosts: {count: 8, gpus: 2}, spine: {radix: 8, count: 4}"
    return yaml_fabric(
        "name: metro-two-sites\nkind: metro\nsites:\n"
        f"- {{name: north, position: [0 km, 0 km], fabric: {{name: north, {site}}}}}\n"
        f"- {{name: south, position: [0 km, 30 km], fabric: {{name: south, {site}}}}}\n"
        "metro: {radix: 16, switches: 2, oversubscription: 2}\n"
    )


def metro_star() -> Fabric:
    """Two sites of 8 hosts on a hub of switches only, 10 and 20 km from it, 8 links to each.

    ::

        east-metro-0 == 10 km == hub-metro-0 == 20 km == west-metro-0
        east-metro-1 == 10 km == hub-metro-1 == 20 km == west-metro-1
          |  X  |                                          |  X  |
        4 spines, 2 leaves                               4 spines, 2 leaves
    """
    site = "kind: leaf-spine, radix: 8, hosts: {count: 8, gpus: 1}, spine: {radix: 8, count: 4}"
    return yaml_fabric(
        "name: metro-star\nkind: metro\nsites:\n- {name: hub, position: [0 km, 0 km]}\n"
        f"- {{name: east, position: [10 km, 0 km], fabric: {{name: east, {site}}}}}\n"
        f"- {{name: west, position: [0 km, 20 km], fabric: {{name: west, {site}}}}}\n"
        "metro: {radix: 8, switches: 2, layout: star}\n"
    )


def metro_diverse() -> Fabric:
    """Two sites of 32 hosts joined by 32 links over three fibre paths, 16 wavelengths a fibre pair.

    ::

        north-metro-0..3 === path-1: 12 links, 10 km === south-metro-0..3
                         === path-2: 12 links, 20 km ===
                         === path-3:  8 links, 30 km ===
    """
    site = "kind: leaf-spine, radix: 16, hosts: {count: 32, gpus: 1}, spine: {radix: 16, count: 8}"
    return yaml_fabric(
        "name: metro-diverse\nkind: metro\nsites:\n"
        f"- {{name: north, fabric: {{name: north, {site}}}}}\n"
        f"- {{name: south, fabric: {{name: south, {site}}}}}\n"
        "spans: [{a: north, b: south, paths: [{length: 10 km}, {length: 20 km}, {length: 30 km}]}]\n"
        "metro: {radix: 32, switches: 4, wavelengths: 16}\n"
    )


def dumbbell() -> Fabric:
    """Two pairs of hosts over one 100G cable between two leaves, through one spine.

    ::

        h0 --400G-- left                  right --400G-- h2
        h1 --400G--  |                      |  --400G-- h3
                     +--100G-- mid --100G--+
    """
    return yaml_fabric(
        """
        name: dumbbell
        kind: custom
        hosts: [{name: h0, gpus: 1}, {name: h1, gpus: 1}, {name: h2, gpus: 1}, {name: h3, gpus: 1}]
        switches:
        - {name: left, tier: 1, radix: 4}
        - {name: right, tier: 1, radix: 4}
        - {name: mid, tier: 2, radix: 4}
        links:
        - {a: h0, b: left, speed: 400G}
        - {a: h1, b: left, speed: 400G}
        - {a: right, b: h2, speed: 400G}
        - {a: right, b: h3, speed: 400G}
        - {a: left, b: mid, speed: 100G, length: 30 m}
        - {a: mid, b: right, speed: 100G, length: 30 m}
        """
    )


def three_campuses() -> Fabric:
    """Three leaves at three sites in a row, joined leaf to leaf: no spine anywhere.

    ::

        a0, a1 -- leaf-a ==2 x 10 km== leaf-b --20 km-- leaf-c -- c0
                                        b0
    """
    return yaml_fabric(
        """
        name: three-campuses
        kind: custom
        hosts:
        - {name: a0, gpus: 2, site: a}
        - {name: a1, gpus: 2, site: a}
        - {name: b0, gpus: 2, site: b}
        - {name: c0, gpus: 2, site: c}
        switches:
        - {name: leaf-a, tier: 1, radix: 8, site: a}
        - {name: leaf-b, tier: 1, radix: 8, site: b}
        - {name: leaf-c, tier: 1, radix: 8, site: c}
        links:
        - {a: a0, b: leaf-a, speed: 200G}
        - {a: a1, b: leaf-a, speed: 200G}
        - {a: b0, b: leaf-b, speed: 200G, count: 2}
        - {a: c0, b: leaf-c, speed: 200G}
        - {a: leaf-a, b: leaf-b, speed: 200G, count: 2, length: 10 km}
        - {a: leaf-b, b: leaf-c, speed: 200G, length: 20 km}
        """
    )


#: Every fabric above by its name.
NAMED = {
    make.__name__: make
    for make in (
        one_leaf,
        lab_two_leaves,
        blocking_two_leaves,
        fat_tree_k4,
        rail_2x8,
        rail_three_tiers,
        rails_meeting_in_hosts,
        rails_only_one_tier,
        twin_planes,
        a_plane_for_each_nic,
        dual_tor_two_segments,
        metro_two_sites,
        dumbbell,
        three_campuses,
    )
}
