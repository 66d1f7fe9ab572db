"""A key that a family would not use is refused, not ignored (nobody's number is changed silently)."""

import pytest

from netplan.errors import SpecError
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

LEAF_SPINE = "name: f\nkind: leaf-spine\nradix: 64\nhosts: {count: 16}\n"
RAILS = "name: f\nkind: rail-optimized\nradix: 64\nhosts: {count: 64}\n"
CLOS = "name: f\nkind: clos\nradix: 64\nhosts: {count: 512}\n"
SITE = "name: s, kind: leaf-spine, radix: 64, hosts: {count: 8}"
METRO = f"""\
name: m
kind: metro
metro: {{radix: 64, oversubscription: 8}}
sites:
- {{name: a, position: [0 km, 0 km], fabric: {{{SITE}}}}}
- {{name: b, position: [9 km, 0 km], fabric: {{{SITE}}}}}
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LEAF_SPINE + "spine: {uplinks: 3}\n", "f.yaml:5: spine.uplinks: unknown key"),
        (LEAF_SPINE + "cables: {spine_core: 9 m}\n", "f.yaml:5: cables.spine_core: unknown key"),
        (CLOS + "pod: {by: rail}\n", "f.yaml:5: pod.by: unknown key"),
        (CLOS + "cables: {site_metro: 9 m}\n", "f.yaml:5: cables.site_metro: unknown key"),
        (RAILS + "pod: {by: rail}\n", "f.yaml:5: pod is not used: tiers = 2"),
        (RAILS + "core: {count: 3}\n", "f.yaml:5: core is not used: tiers = 2"),
        (RAILS + "spine: {downlinks: 3}\n", "f.yaml:5: spine.downlinks = 3 is not used: tiers = 2"),
        (RAILS + "cables: {spine_core: 9 m}\n", "f.yaml:5: cables.spine_core = '9 m' is not used: tiers = 2"),
        (
            RAILS + "leaf: {downlinks: 32, uplinks: 16, oversubscription: 2}\n",
            "f.yaml:5: leaf.oversubscription = 2 is not used: downlinks and uplinks are both given",
        ),
        (
            METRO.replace("count: 8}}", "count: 8}, latency: {switch: 1 us}}", 1),
            "f.yaml:5: sites[0].fabric.latency is not used: latencies of a metro domain are its own",
        ),
        (METRO + "cables: {leaf_spine: 9 m}\n", "f.yaml:7: cables.leaf_spine: unknown key"),
    ],
)
def test_a_key_that_changes_nothing_is_refused(text, says):
    with pytest.raises(SpecError) as caught:
        validate(FABRIC_SPEC, parse_yaml(text, "f.yaml"))
    assert says in str(caught.value)


@pytest.mark.parametrize("text", [LEAF_SPINE, RAILS, CLOS, METRO])
def test_the_same_files_without_it_are_good(text):
    assert validate(FABRIC_SPEC, parse_yaml(text, "f.yaml")).name in ("f", "m")
