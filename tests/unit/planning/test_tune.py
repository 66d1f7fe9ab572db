"""Settings by class of ports: what is grouped, what follows from what, what is said."""

from __future__ import annotations

import pytest

from netplan.catalog.buffers import shipped_buffers
from netplan.catalog.parts import shipped_catalogue
from netplan.errors import CatalogError, ModelRangeError, SpecError
from netplan.planning.tune import Asked, PortRow, Tuning, tune
from netplan.spec.buffers import BuffersFileSpec
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate
from tests.fabrics import NAMED, blocking_two_leaves, metro_two_sites, yaml_fabric

METRO = """
name: m
kind: metro
sites:
- {{name: a, fabric: {site}}}
- {{name: b, fabric: {site}}}
spans: [{{a: a, b: b, length: {km} km, links: {links}}}]
metro: {{radix: 64, switches: 1, link_speed: {speed}}}
"""
SITE = "{name: s, kind: leaf-spine, hosts: {count: 8, gpus: 1}, radix: 16, leaf: {downlinks: 4, uplinks: 4}}"


def metro(km: float = 30, links: int = 8, speed: str = "400G"):
    return yaml_fabric(METRO.format(site=SITE, km=km, links=links, speed=speed))


def tuned(fabric, **asked) -> Tuning:
    return tune(fabric, shipped_catalogue(), Asked(**asked))


def port(tuning: Tuning, tier: str, kind: str) -> PortRow:
    (row,) = (row for row in tuning.ports if (row.tier, row.kind) == (tier, kind))
    return row


@pytest.mark.parametrize("name", NAMED)
def test_every_switch_port_is_in_one_class(name):
    fabric = NAMED[name]()
    tuning = tuned(fabric)
    switch_ports = int((fabric.nodes.tier[fabric.links.dst] > 0).sum())
    assert sum(row.ports for row in tuning.ports) == switch_ports
    assert sum(row.switches for row in tuning.buffers) == fabric.n_switches
    assert len({row.name for row in tuning.ports}) == len(tuning.ports)


def test_classes_of_a_small_fabric():
    """Leaf: 4 hosts, 2 uplinks; spine: 4 downlinks. Round trip: 2 x (2 x 33 m x 5.05 ns + 3 us + 2.6 us)."""
    tuning = tuned(blocking_two_leaves(), switches={"*": "sn5600"})
    assert [(row.tier, row.kind, row.ports) for row in tuning.ports] == [
        ("leaf", "host_leaf", 8),
        ("leaf", "leaf_spine", 4),
        ("spine", "leaf_spine", 4),
    ]
    assert port(tuning, "leaf", "host_leaf").rtt_s == pytest.approx(2 * (2 * 33 * 5.05e-9 + 5.6e-6))
    leaf, spine = tuning.buffers
    assert dict(leaf.ports) == {"leaf host_leaf 400G 3 m": 4, "leaf leaf_spine 400G 30 m": 2}
    assert (leaf.switches, spine.switches) == (2, 1)
    assert leaf.pool_bytes == 158_229_504


def test_headroom_and_thresholds_by_hand():
    """Leaf of six 400G ports, SN5600, worst case of small packets (k = 3), MTU 4096.

    Host ports, 3 m: 4096 + 3 (9216 + 1515 + 819 + 57920 + 6320) = 231,466 B: 227 KiB.
    """
    tuning = tuned(blocking_two_leaves(), switches={"*": "sn5600"}, small_packets=1.0)
    row = port(tuning, "leaf", "host_leaf")
    assert row.headroom_bytes == 227 * 1024
    up = port(tuning, "leaf", "leaf_spine").headroom_bytes
    assert up is not None
    shared = 158_229_504 - 4 * 227 * 1024 - 2 * up - 6 * 4096
    assert row.xoff_bytes == round(shared / 8 / (1 + 1 / 8))
    assert row.xoff_all_bytes == round(shared / 8 / (1 + 6 / 8))
    assert row.xon_bytes == row.xoff_bytes - 2 * 9216
    assert row.kmin_bytes == 1_600_000
    assert row.ecn_rule == "hpcc-ns3"


def test_a_metro_switch_that_cannot_do_it_lossless_says_so_and_what_can():
    """16 spans of 400G over 30 km: 16 x 15.8 MB is more than 158 MB; each asks for 15.84 MB."""
    tuning = tuned(metro(links=16), switches={"*": "sn5600"})
    row = port(tuning, "metro", "inter_site")
    assert row.headroom_bytes == 15_838_208
    assert tuning.fits is False
    bad = tuning.tightest
    assert bad is not None
    assert (bad.tier, bad.fits) == ("metro", False)
    most = bad.most_ports[row.name]
    assert most == 9
    text = " ".join(bad.remedies)
    assert f"at most {most} ports" in text
    assert "jericho-2 (4.4 GB, deep buffer)" in text
    assert "--lossy inter_site" in text
    (fault,) = (fault for fault in tuning.faults if fault.code == "NP231")
    assert "this switch cannot do it lossless" in fault.message
    # As many as are said fit, one more does not.
    assert tuned(metro(links=most), switches={"*": "sn5600"}).fits
    assert not tuned(metro(links=most + 1), switches={"*": "sn5600"}).fits
    assert tuned(metro(links=16), switches={"*": "sn5600", "metro": "jericho-2"}).fits


def test_long_links_get_the_dci_thresholds():
    """0.75 and 1.5 RTT x rate, and 2.5 as buffer without PFC (HPE and Juniper)."""
    row = port(tuned(metro()), "metro", "inter_site")
    bdp = 50e9 * row.rtt_s
    assert row.rtt_s > 303e-6
    assert row.kmin_bytes == round(0.75 * bdp)
    assert row.kmax_bytes == round(1.5 * bdp)
    assert row.dci_buffer_bytes == round(2.5 * bdp)
    assert port(tuned(metro(km=2)), "metro", "inter_site").ecn_rule == "hpcc-ns3"


def test_without_pfc_on_the_span_its_queues_must_fit():
    """40 MB a port: 158 MB hold three such queues at once."""
    tuning = tuned(metro(), switches={"*": "sn5600"}, lossy=frozenset({"inter_site"}))
    row = port(tuning, "metro", "inter_site")
    assert (row.headroom_bytes, row.xoff_bytes) == (None, None)
    assert tuning.fits
    (fault,) = (fault for fault in tuning.faults if fault.code == "NP232")
    assert "hold 3 such queues" in fault.message
    deep = tuned(metro(), switches={"*": "jericho-2"}, lossy=frozenset({"inter_site"}))
    assert not [fault for fault in deep.faults if fault.code == "NP232"]


def test_an_unknown_buffer_is_said_not_guessed():
    tuning = tuned(metro_two_sites(), switches={"*": "jericho-3"})
    assert tuning.fits is None
    assert tuning.tightest is None
    assert "give it as --pool" in tuning.buffers[0].reason
    assert any("general rule" in note for note in tuning.notes)
    assert tuned(metro_two_sites(), switches={"*": "jericho-3"}, pool_bytes=1e9).fits


def test_infiniband_switches_are_pointed_out():
    assert any("no PFC" in note for note in tuned(blocking_two_leaves(), switches={"*": "qm9700"}).notes)
    assert not any("no PFC" in note for note in tuned(blocking_two_leaves()).notes)


def test_a_protocol_that_reads_no_marks_gets_none():
    tuning = tuned(blocking_two_leaves(), cc="timely")
    assert {row.kmin_bytes for row in tuning.ports} == {None}
    assert "does not read marks" in tuning.ports[0].reason
    assert not [fault for fault in tuning.faults if fault.code == "NP213"]


def test_settings_that_change_nothing_and_marks_that_are_missing():
    def found(**asked):
        return {fault.code for fault in tuned(blocking_two_leaves(), **asked).faults}

    assert "NP214" in found(cc="timely", ecn={"*": (4e5, 8e5, 0.1)})
    assert "NP213" in found(cc="dcqcn", ecn={"*": None})
    assert not found(cc="dctcp", ecn={"*": (4e5, 8e5, 0.1)}) & {"NP213", "NP214"}


def test_dctcp_gets_a_step():
    row = port(tuned(blocking_two_leaves(), cc="dctcp"), "leaf", "host_leaf")
    assert row.kmin_bytes == row.kmax_bytes == round(30e3 * 40)


def test_parameters_scale_with_the_nic_and_say_what_is_known_of_distance():
    """5 Mb/s per 25G: 80 Mb/s at 400G. The published long-haul settings need one that is not modelled."""
    near = tuned(blocking_two_leaves())
    parameters = {row.name: row for row in near.parameters}
    assert parameters["rate_ai"].value == pytest.approx(80e6 / 8)
    assert parameters["timer_s"].value == parameters["timer_s"].default
    assert not any("rpg_min_dec_fac" in note for note in near.notes)
    assert any("rpg_min_dec_fac" in note for note in tuned(metro()).notes)
    own = {row.name: row for row in tuned(metro(), parameters={"timer_s": 1e-4}).parameters}
    assert (own["timer_s"].value, own["timer_s"].reason) == (1e-4, "as asked for")


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"ecn": {"*": (2e6, 1e6, 0.2)}}, SpecError, "NP201"),
        ({"ecn": {"*": (1e6, 2e6, 20.0)}}, SpecError, "NP202"),
        ({"static_xoff_bytes": 50e6}, SpecError, "NP203"),
        ({"headroom_bytes": 1e3}, SpecError, "NP205"),
        ({"static_xoff_bytes": 10e3}, SpecError, "NP206"),
        ({"ecn": {"hostleaf": None}}, ModelRangeError, "'hostleaf' is not a kind of cable"),
        ({"lossy": frozenset({"span"})}, ModelRangeError, "'span' is not a kind of cable"),
        ({"ecn": {"*": "hpc"}}, ModelRangeError, "ECN rule 'hpc' is not one of"),
        ({"cc": "cubic"}, ModelRangeError, "'cubic' is not one of"),
        ({"parameters": {"rate_aj": 1.0}}, ModelRangeError, "has no parameter 'rate_aj'"),
        ({"switches": {"*": "sn56"}}, CatalogError, "sn56"),
        ({"pool_bytes": 0.0}, ModelRangeError, "buffer pool = 0 B"),
        ({"alpha": 0.0}, ModelRangeError, "alpha = 0"),
    ],
)
def test_bad_input(asked, error, says):
    with pytest.raises(error, match=says):
        tuned(blocking_two_leaves(), **asked)


def test_all_faults_of_settings_come_at_once():
    with pytest.raises(SpecError) as error:
        tuned(blocking_two_leaves(), ecn={"*": (2e6, 1e6, 20.0)}, headroom_bytes=1e3)
    assert len(error.value.faults) == 3 * 3


def test_shipped_buffers_are_of_parts_that_there_are():
    assert set(shipped_buffers()) <= set(shipped_catalogue().switches)


def test_a_buffers_file_with_faults():
    one = (
        "{name: x, switches: [a], cell: 192 B, packet: 64 B, mac_phy: 1 B, response: ieee, processing: 1 ns,"
        " source: s, date: '2026', confidence: estimate}"
    )
    with pytest.raises(SpecError, match="is used twice"):
        validate(BuffersFileSpec, parse_yaml(f"buffers: [{one}, {one}]", "b.yaml"))
    other = one.replace("name: x", "name: y")
    with pytest.raises(SpecError, match="has 'a' under two chips"):
        validate(BuffersFileSpec, parse_yaml(f"buffers: [{one}, {other}]", "b.yaml"))
