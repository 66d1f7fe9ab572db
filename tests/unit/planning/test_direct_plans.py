"""Bills of materials, floors and failure studies of direct networks."""

from __future__ import annotations

import numpy as np
import pytest

from netplan.catalog.parts import shipped_catalogue
from netplan.fabric.columns import LINK_KINDS
from netplan.planning.bom import Bill, Wishes, bill, cabling
from netplan.planning.failures import study_failures
from netplan.planning.floor import floor_lengths
from netplan.spec.floor import FloorSpec
from netplan.spec.traffic import TRAFFIC_SPEC
from tests.fabrics import yaml_fabric

#: 9 groups of 8 routers: 8 NICs, 7 routers of the group, 7 global cables each.
DRAGONFLY = (
    "{name: df, kind: dragonfly, radix: 64, groups: 9, router: {endpoints: 8, global_links: 7}, "
    "group: {routers: 8}, hosts: {gpus: 8, nic_speed: 400G}}"
)


def quantities(made: Bill, kind: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for line in made.lines:
        if line.kind == kind:
            found[line.part, line.use] = found.get((line.part, line.use), 0) + line.quantity
    return found


def test_a_module_that_holds_both_ends_is_counted_once():
    # A router is the near end of some of its 7 cables, the far end of others: 4 modules.
    made = bill(
        yaml_fabric(DRAGONFLY), shipped_catalogue(), Wishes(optics={"*": "DR4"}, protocol="infiniband")
    )
    found = quantities(made, "transceiver")
    assert {use: n for (_, use), n in found.items() if "switch side" in use} == {
        "host_leaf, switch side": 72 * 4,
        "local, switch side": 72 * 4,
        "global, switch side": 72 * 4,
    }
    assert sum(n for (_, use), n in quantities(made, "fibre").items() if use == "local") == 9 * 28
    assert sum(n for (_, use), n in quantities(made, "fibre").items() if use == "global") == 9 * 28


def test_a_copper_cable_of_two_links_has_a_plug_for_each_neighbour():
    # One link to each of 7 routers: 7 cables of which one link is used, so 7 cages, not 4.
    fabric = yaml_fabric(DRAGONFLY)
    made = bill(
        fabric, shipped_catalogue(), Wishes(optics={"local": "lacc-2x400g-osfp"}, protocol="infiniband")
    )
    assert quantities(made, "cable")["lacc-2x400g-osfp", "local"] == 9 * 28
    rows = [row for row in cabling(made) if row["type"] == "lacc-2x400g-osfp"]
    plugs = {
        (row[f"{end}_device"], row[f"{end}_port"].split("/")[0]) for row in rows for end in ("from", "to")
    }
    assert len(plugs) == 72 * 7


def test_two_links_to_one_neighbour_share_a_copper_cable():
    fabric = yaml_fabric(DRAGONFLY.replace("{routers: 8}", "{routers: 8, bundle: 2}"))
    made = bill(
        fabric, shipped_catalogue(), Wishes(optics={"local": "lacc-2x400g-osfp"}, protocol="infiniband")
    )
    assert quantities(made, "cable")["lacc-2x400g-osfp", "local"] == 9 * 28
    rows = [row for row in cabling(made) if row["type"] == "lacc-2x400g-osfp"]
    plugs = {
        (row[f"{end}_device"], row[f"{end}_port"].split("/")[0]) for row in rows for end in ("from", "to")
    }
    assert len(plugs) == 72 * 7
    assert len(rows) == 2 * 9 * 28


def mean_length(fabric, kind: str, floor: FloorSpec) -> float:
    return float(floor_lengths(fabric, floor)[fabric.links.kind[0::2] == LINK_KINDS.index(kind)].mean())


def test_groups_are_short_inside():
    fabric = yaml_fabric("{name: df, kind: dragonfly, radix: 15, hosts: {gpus: 1}}")
    assert mean_length(fabric, "local", FloorSpec()) < mean_length(fabric, "global", FloorSpec()) / 2


def test_spines_of_a_group_stand_at_its_rows_unless_said_otherwise():
    fabric = yaml_fabric("{name: dfp, kind: dragonfly-plus, radix: 16, groups: 9, hosts: {gpus: 1}}")
    near, own = FloorSpec(), FloorSpec(spine="own-rows")
    assert mean_length(fabric, "local", near) < mean_length(fabric, "local", own)
    tree = yaml_fabric("{name: ls, kind: leaf-spine, radix: 16, hosts: {count: 128, gpus: 1}}")
    assert (floor_lengths(tree, near) == floor_lengths(tree, own)).all()


def test_routers_without_hosts_stand_with_the_last_that_has_some():
    text = "{name: t, kind: torus, dims: [4, 4], hosts: {gpus: 1%s}}"
    full, part = yaml_fabric(text % ""), yaml_fabric(text % ", count: 3")
    floor = FloorSpec(hosts_per_rack=1, switches_per_rack=1)
    assert floor_lengths(part, floor).max() <= floor_lengths(full, floor).max()
    inner = floor_lengths(part, floor)[part.links.kind[0::2] == LINK_KINDS.index("local")]
    assert np.isfinite(inner).all()
    assert (inner >= floor.in_rack).all()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("kind: dragonfly, radix: 7", {"local", "global", "leaf"}),
        ("kind: dragonfly-plus, radix: 4", {"local", "global", "leaf", "spine"}),
        ("kind: slim-fly, q: 3", {"local", "global", "leaf"}),
        ("kind: torus, dims: [4, 3]", {"local", "leaf"}),
        ("kind: hyperx, dims: [3, 3]", {"local", "leaf"}),
    ],
)
def test_failures_of_direct_networks_are_studied(text, kinds):
    fabric = yaml_fabric(f"{{name: x, {text}, hosts: {{gpus: 1}}}}")
    workload = TRAFFIC_SPEC.validate_python({"name": "p", "kind": "permutation", "size": "1 MiB"})
    study = study_failures(fabric, [workload])
    assert kinds | {"nic", "host_leaf"} <= {row.kind for row in study.classes}
    local = [row for row in study.classes if row.kind == "local"]
    assert sum(row.elements for row in local) == fabric.count_cables("local")
    assert all(0 < row.left["p"] <= 1.5 for row in local)
