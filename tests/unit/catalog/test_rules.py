"""Plug rules: each has a case that breaks it and one that keeps it."""

from __future__ import annotations

import pytest

from netplan.catalog.parts import shipped_catalogue
from netplan.catalog.rules import (
    RULES,
    check_cable,
    check_link,
    check_plug,
    check_protocol,
    check_shared,
    check_twin,
)
from netplan.cli.explain import all_entries, find_entries

PARTS = shipped_catalogue()


def codes(faults):
    return [fault.message.split()[0] for fault in faults]


@pytest.mark.parametrize(
    ("module", "box", "code"),
    [
        ("400g-dr4-qsfpdd", PARTS.switch("sn4600"), "PL101"),  # QSFP-DD into QSFP56
        ("mma4z00-ns400", PARTS.switch("qm9700"), "PL102"),  # flat top into a switch
        ("mma4z00-ns", PARTS.nic("connectx-7"), "PL102"),  # finned top into a NIC
        ("mma1z00-ns400", PARTS.switch("qm9700"), "PL103"),  # QSFP112 into an OSFP switch
        ("mma4z00-ns400", PARTS.nic("bluefield-3"), "PL104"),  # OSFP into a BlueField-3
        ("800g-2xsr4-osfp", PARTS.switch("q3400"), "PL106"),  # multimode at XDR
        ("400g-zr-plus", PARTS.switch("qm9700"), "PL110"),  # 22.5 W into a cage of 17 W
        ("mma4z00-ns", PARTS.switch("qm9700"), None),
        ("mma4z00-ns400", PARTS.nic("connectx-7"), None),
        ("mma1z00-ns400", PARTS.nic("bluefield-3"), None),
        ("800g-dr4-osfp", PARTS.switch("q3400"), None),
        ("800g-2xsr4-osfp", PARTS.switch("sn5600"), None),  # Ethernet at 800G may be multimode
        ("400g-zr", PARTS.switch("sn5400"), None),  # 20 W into 21 W
        ("400g-dr4-qsfpdd", PARTS.switch("tomahawk-4"), None),  # cages unknown: no fault
    ],
)
def test_what_goes_into_which_cage(module, box, code):
    assert codes(check_plug(PARTS.medium(module), box)) == ([code] if code else [])


def test_the_far_end_of_a_split_cable_has_its_own_plug():
    cable = PARTS.medium("dac-2x400g-osfp-split-osfp")
    nic, switch = PARTS.nic("connectx-7"), PARTS.switch("qm9700")
    assert codes(check_plug(cable, switch)) == []
    assert codes(check_plug(cable, nic, is_far=True)) == []
    assert codes(check_plug(cable, nic)) == ["PL102"]


def test_xdr_takes_no_passive_copper():
    cable = PARTS.cables["dac-2x400g-osfp"].model_copy(update={"speed": 100e9})
    assert codes(check_plug(cable, PARTS.switch("q3400"))) == ["PL106"]
    active = PARTS.cables["lacc-2x400g-osfp"].model_copy(update={"speed": 100e9})
    assert codes(check_plug(active, PARTS.switch("q3400"))) == []


@pytest.mark.parametrize(
    ("module", "speed", "length", "expected"),
    [
        ("mma4z00-ns", 50e9, 50.0, []),
        ("mma4z00-ns", 50e9, 50.5, ["PL107"]),
        ("mms4x00-nm", 50e9, 500.0, []),
        ("400g-fr4-qsfpdd", 50e9, 30e3, ["PL107"]),
        ("400g-er4", 50e9, 30e3, []),
        ("400g-zr", 50e9, 40e3, []),
        ("400g-zr", 50e9, 41e3, ["PL107"]),
        ("400g-zr-amplified", 50e9, 120e3, []),
        ("mma4z00-ns", 100e9, 10.0, ["PL108"]),
        ("dac-2x400g-osfp", 25e9, 3.0, ["PL108", "PL107"]),
    ],
)
def test_reach_and_speed(module, speed, length, expected):
    assert codes(check_cable(PARTS.medium(module), speed, length)) == expected


def test_both_ends_have_one_standard():
    optics = PARTS.optics
    assert codes(check_link(optics["mma4z00-ns"], optics["mma4z00-ns400"])) == []
    assert codes(check_link(optics["mma4z00-ns"], optics["mms4x00-ns400"])) == ["PL109"]


def test_the_ports_of_a_twin_port_module_have_one_type_of_fibre():
    twin = PARTS.optics["mma4z00-ns"]
    straight, split = ("multimode", False), ("multimode", True)
    assert codes(check_twin(twin, [straight, straight])) == []
    assert codes(check_twin(twin, [split, split])) == []
    assert codes(check_twin(twin, [straight])) == []
    assert codes(check_twin(twin, [straight, split])) == ["PL105"]
    assert codes(check_twin(twin, [straight, ("single-mode", False)])) == ["PL105"]
    assert codes(check_twin(twin, [("single-mode", False)] * 2)) == ["PL105"]
    assert codes(check_twin(twin, [straight] * 3)) == ["PL105"]


def test_infiniband_and_ethernet_do_not_link_up():
    ib, ethernet = PARTS.switch("qm9700"), PARTS.switch("sn5600")
    assert codes(check_protocol(ib, ethernet)) == ["PL111"]
    assert codes(check_protocol(ib, ib)) == []


def test_only_dwdm_modules_share_a_fibre_pair():
    assert codes(check_shared(PARTS.optics["400g-zr-amplified"])) == []
    assert codes(check_shared(PARTS.optics["800g-zr"])) == []
    assert codes(check_shared(PARTS.optics["400g-lr4"])) == ["PL112"]
    assert codes(check_shared(PARTS.cables["dac-2x400g-osfp"])) == ["PL112"]


def test_every_rule_says_what_and_who():
    assert len(RULES) == 12
    for code, rule in RULES.items():
        assert rule.code == code
        assert len(rule.title) > 20
        assert rule.source
        assert [(entry.kind, entry.name) for entry in find_entries(code, all_entries())] == [("rule", code)]
