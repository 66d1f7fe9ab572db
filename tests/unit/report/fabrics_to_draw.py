"""Fabrics that a diagram must do justice to, by name, and how to build them."""

from functools import cache

import numpy as np

from netplan.fabric import Fabric, FabricBuilder
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate
from netplan.topology import build_fabric

_LONG = "row-07-rack-12-" + "x" * 46 + "-{:02d}"

_LAB = """
name: lab
kind: leaf-spine
hosts: {count: 4, gpus: 8, nics: 2}
radix: 8
leaf: {downlinks: 4, uplinks: 4}
spine: {count: 2}
"""


def _metro(sites: int, hosts: int, layout: str = "mesh") -> str:
    parts = "".join(
        f"""
- name: site-{place}
  position: [{30 * (place % 2)} km, {30 * (place // 2)} km]
  fabric: {{name: s, kind: rail-optimized, hosts: {{count: {hosts}}}, radix: 64,
            spine: {{radix: 64, count: {hosts // 4}}}}}"""
        for place in range(sites)
    )
    return f"""
name: metro-{sites}
kind: metro
sites: {parts}
metro: {{radix: 128, switches: 4, oversubscription: 8, layout: {layout}}}
"""


def _paths(*lengths: int) -> str:
    site = "kind: leaf-spine, radix: 16, hosts: {count: 16, gpus: 1}, spine: {radix: 32, count: 8}"
    paths = ", ".join(f"{{length: {length} km}}" for length in lengths)
    return f"""
name: metro-paths-{len(lengths)}
kind: metro
sites:
- {{name: hub}}
- {{name: east, fabric: {{name: e, {site}}}}}
- {{name: west, fabric: {{name: w, {site}}}}}
spans: [{{a: hub, b: east, paths: [{paths}]}}, {{a: hub, b: west, length: 9 km}}]
metro: {{radix: 64, switches: 2, wavelengths: 64}}
"""


TEXTS = {
    "lab": _LAB,
    "metro-paths-2": _paths(14, 23),
    "metro-paths-3": _paths(14, 23, 31),
    "metro-paths-5": _paths(14, 23, 31, 40, 55),
    "one-leaf": "name: one-leaf\nkind: leaf-spine\nradix: 64\nhosts: {count: 4}",
    "rails-512": "name: rails-512\nkind: rail-optimized\nhosts: {count: 64}\nradix: 64",
    "rails-1024": "name: rails-1024\nkind: rail-optimized\nhosts: {count: 128}\nradix: 64",
    "rails-2048": "name: rails-2048\nkind: rail-optimized\nhosts: {count: 256}\nradix: 64",
    "rails-16": "name: rails-16\nkind: rail-optimized\nhosts: {count: 40, gpus: 16}\nradix: 64",
    "fat-tree-4": "name: fat-tree-4\nkind: fat-tree\nk: 4",
    "fat-tree-8": "name: fat-tree-8\nkind: fat-tree\nk: 8",
    "leaf-spine-2048": """
name: leaf-spine-2048
kind: leaf-spine
radix: 64
hosts: {count: 2048, gpus: 1}
leaf: {oversubscription: 2}
""",
    "clos-65536": "name: clos-65536\nkind: clos\nradix: 64\nhosts: {count: 65536, gpus: 1}",
    "pods-by-rail-4096": """
name: pods-by-rail-4096
kind: rail-optimized
tiers: 3
hosts: {count: 512}
radix: 64
pod: {by: rail}
""",
    "pods-by-block-4096": """
name: pods-by-block-4096
kind: rail-optimized
tiers: 3
hosts: {count: 512}
radix: 64
""",
    "gpus-131072": """
name: gpus-131072
kind: rail-optimized
tiers: 3
radix: 64
hosts: {count: 16384}
pod: {by: rail}
core: {domains: 2}
""",
    "two-planes-4096": """
name: two-planes-4096
kind: multi-plane
planes: 2
rails: true
radix: 128
hosts: {count: 512, nic_speed: 800G}
""",
    "eight-planes-512": """
name: eight-planes-512
kind: multi-plane
planes: 8
assignment: per-nic
tiers: 3
radix: 8
hosts: {count: 64}
""",
    "dual-tor-small": """
name: dual-tor-small
kind: dual-tor
radix: 8
hosts: {count: 4, gpus: 2}
leaf: {downlinks: 2, uplinks: 2, backup: 1}
""",
    "rails-only-72": "name: rails-only-72\nkind: rail-only\nradix: 64\nhosts: {count: 64, gpus: 72}",
    "metro-lab": """
name: metro-lab
kind: metro
sites:
- name: a
  position: [0 km, 0 km]
  fabric: {name: a, kind: leaf-spine, hosts: {count: 4, nics: 2}, radix: 16,
           leaf: {downlinks: 4, uplinks: 4}, spine: {count: 2}}
- name: b
  position: [30 km, 0 km]
  fabric: {name: b, kind: leaf-spine, hosts: {count: 4, nics: 2}, radix: 16,
           leaf: {downlinks: 4, uplinks: 4}, spine: {count: 2}}
metro: {radix: 32, switches: 2, oversubscription: 4}
""",
    "metro-2": _metro(2, 64),
    "metro-4": _metro(4, 128),
    "metro-9": _metro(9, 64, "ring"),
    "uneven": f"""
name: uneven
kind: custom
hosts:
- {{name: {_LONG.format(1)}, gpus: 8}}
- {{name: {_LONG.format(2)}, gpus: 4}}
- {{name: gpu3, gpus: 8}}
- {{name: gpu4, gpus: 1}}
switches:
- {{name: {_LONG.format(3)}, tier: 1, radix: 32, pod: 0}}
- {{name: l2, tier: 1, radix: 16, pod: 0}}
- {{name: l3, tier: 1, radix: 64}}
- {{name: s1, tier: 2, radix: 64}}
- {{name: s2, tier: 2, radix: 32, pod: 0}}
links:
- {{a: {_LONG.format(1)}, b: {_LONG.format(3)}, speed: 400G, count: 4}}
- {{a: {_LONG.format(1)}, b: l2, speed: 400G, count: 2}}
- {{a: {_LONG.format(2)}, b: l2, speed: 200G, count: 1}}
- {{a: {_LONG.format(2)}, b: l3, speed: 200G, count: 1}}
- {{a: gpu3, b: l3, speed: 800G, count: 8}}
- {{a: gpu4, b: l3, speed: 100G}}
- {{a: {_LONG.format(3)}, b: s1, speed: 400G, count: 4}}
- {{a: {_LONG.format(3)}, b: s1, speed: 800G, count: 2}}
- {{a: l2, b: s1, speed: 400G, count: 2}}
- {{a: l2, b: s2, speed: 800G, count: 1}}
- {{a: l3, b: s2, speed: 800G, count: 6}}
- {{a: l3, b: s1, speed: 400G, count: 3}}
""",
}


def build(text: str) -> Fabric:
    return build_fabric(validate(FABRIC_SPEC, parse_yaml(text, "drawn.yaml")))


def two_planes(names: str = "{}") -> Fabric:
    """Two hosts of two ports, one on each plane; a leaf and a spine to each plane.

    ::

        s0    s1
        l0    l1
        | \\  / |
        h0    h1      (both hosts on both leaves)
    """
    builder = FabricBuilder(names.format("two planes"), "by hand")
    rates = {"rate": 5e10, "length": 3.0}
    hosts = builder.add_hosts(
        2, gpus=1, scale_up_rate=1e11, template=names.format("h{}"), parts=(["0", "1"],)
    )
    leaves = builder.add_switches(
        2, tier=1, radix=8, template=names.format("l{}"), parts=(["0", "1"],), plane=np.arange(2), pod=0
    )
    spines = builder.add_switches(
        2, tier=2, radix=8, template=names.format("s{}"), parts=(["0", "1"],), plane=np.arange(2), pod=0
    )
    builder.add_endpoints(
        hosts + np.array([0, 0, 1, 1]),
        leaves + np.array([0, 1, 0, 1]),
        gpu=0,
        rail=0,
        plane=np.array([0, 1, 0, 1]),
        **rates,
    )
    builder.add_cables(leaves + np.arange(2), spines + np.arange(2), kind="leaf_spine", **rates)
    return builder.finish(check=False)  # planes meet in hosts only


NAMES = (*TEXTS, "two-planes")


@cache
def fabric_named(name: str) -> Fabric:
    return two_planes() if name == "two-planes" else build(TEXTS[name])
