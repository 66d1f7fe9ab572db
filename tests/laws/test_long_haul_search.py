"""Default DCQCN over 30 km leaves capacity unused, and a search of its parameters gets it back."""

from __future__ import annotations

import pytest

from netplan.catalog.parts import shipped_catalogue
from netplan.planning.search import make_scene, search
from netplan.planning.tune import Asked, tune
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.traffic import build_demand
from tests.fabrics import yaml_fabric

SITE = (
    "kind: leaf-spine, hosts: {count: 8, gpus: 1, nic_speed: 100G}, radix: 16,"
    " leaf: {downlinks: 4, uplinks: 4}"
)
METRO = f"""
name: metro-16
kind: metro
sites:
- {{name: a, fabric: {{name: a, {SITE}}}}}
- {{name: b, fabric: {{name: b, {SITE}}}}}
spans: [{{a: a, b: b, length: 30 km, links: 2}}]
metro: {{radix: 64, switches: 1, link_speed: 100G}}
"""


@pytest.mark.slow
def test_dcqcn_over_30_km():
    """16 hosts of 100G, a permutation of 32 MiB over two long links of 100G, deep buffers at both ends."""
    fabric = yaml_fabric(METRO)
    traffic = validate(TRAFFIC_SPEC, parse_yaml("{name: p, kind: permutation, size: 32 MiB}", "t.yaml"))
    tuning = tune(fabric, shipped_catalogue(), Asked(switches={"*": "jericho-2"}))
    scene = make_scene(fabric, build_demand(fabric, traffic, seed=0), tuning)
    found = search(scene, "dcqcn", over=("timer_s", "rate_ai", "ecn", "min_dec_fac"), grid=4, most_trials=60)
    assert found.start.efficiency < 0.85
    assert found.best.efficiency > 0.95
    assert found.best.drops == 0
