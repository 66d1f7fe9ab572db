"""Each check of settings: what sets it off, and what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netplan.congestion.checks import SETTING_CHECKS, PortSettings, check_pool, check_ports, refuse_errors
from netplan.congestion.headroom import HeadroomRule, fit_processing, response_bytes
from netplan.congestion.pools import PoolPlan, Ports, dynamic_xoff
from netplan.errors import ModelRangeError, SpecError

#: 400G over 1 us: 100 kB on the cable.
GOOD = PortSettings("leaf", 50e9, 1e-6, 400e3, 1600e3, 0.2, 200e3)
PLAN = PoolPlan(100e6, (Ports(16, 200e3),))


def codes(port: PortSettings, plan: PoolPlan = PLAN, **options: object) -> list[str]:
    faults = [*check_ports([port]), *check_pool("switch", plan, {0: port}, **options)]  # type: ignore[arg-type]
    assert {fault.code for fault in faults} <= set(SETTING_CHECKS)
    return [fault.code for fault in faults]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"kmin_bytes": 2e6}, "NP201"),
        ({"pmax": 0.0}, "NP202"),
        ({"pmax": 1.5}, "NP202"),
        ({"headroom_bytes": 99e3}, "NP205"),
        ({"static_xoff_bytes": 10e6}, "NP203"),
        ({"static_xoff_bytes": 18e3, "xon_offset_bytes": 18e3}, "NP206"),
    ],
)
def test_settings_that_no_switch_can_have(change, code):
    found = codes(replace(GOOD, **change))
    assert code in found
    faults = [
        *check_ports([replace(GOOD, **change)]),
        *check_pool("switch", PLAN, {0: replace(GOOD, **change)}),
    ]
    with pytest.raises(SpecError, match=f"{code}: "):
        refuse_errors(faults)


def test_good_settings_pass():
    """Kmin 400 kB; S = 96.7 MB: xoff alone 10.7 MB, and with one port filling all 16: 671 kB."""
    assert codes(GOOD) == []
    refuse_errors([])


def test_ecn_above_xoff_is_a_warning():
    """S = 96.7 MB: alpha S / (1 + alpha) = 10.75 MB with alpha 1/8."""
    assert codes(replace(GOOD, kmin_bytes=10.7e6, kmax_bytes=20e6)) == ["NP212"]
    assert codes(replace(GOOD, kmin_bytes=10.8e6, kmax_bytes=20e6)) == ["NP211"]
    assert codes(replace(GOOD, kmin_bytes=10.8e6, kmax_bytes=20e6), reads_ecn=False) == []
    refuse_errors(check_pool("switch", PLAN, {0: replace(GOOD, kmin_bytes=10.8e6, kmax_bytes=20e6)}))


def test_ecn_above_a_static_xoff_is_a_warning():
    assert codes(replace(GOOD, static_xoff_bytes=300e3)) == ["NP211"]


def test_headroom_that_does_not_fit():
    small = replace(PLAN, pool_bytes=3e6)
    assert codes(GOOD, small) == ["NP204"]
    assert codes(GOOD, small, long=[0]) == ["NP231"]
    (fault,) = check_pool("metro", small, {0: GOOD}, long=[0])
    # 3 MB / (200 kB + 4 KiB) = 14.7
    assert (
        "cannot do it lossless: 16 ports need 200 kB of headroom each; the buffer holds 14" in fault.message
    )


def test_a_percentage_is_pointed_out():
    (fault,) = check_ports([replace(GOOD, pmax=20.0)])
    assert fault.hint == "a percentage? write 0.2"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: HeadroomRule(cell_bytes=0), "cell_bytes = 0 is not > 0"),
        (lambda: HeadroomRule(processing_s=-1e-9), "processing_s = -1e-09 is negative"),
        (lambda: HeadroomRule(small_packets=2), "small_packets = 2 is not in 0 to 1"),
        (lambda: HeadroomRule().of(0, 1e-6), "rate = 0 bytes/s is not > 0"),
        (lambda: HeadroomRule().of(1e10, -1e-6), "delay = -1e-06 s is not 0 or more"),
        (lambda: response_bytes(1e9 / 8), "1G is below 10G"),
        (lambda: fit_processing(HeadroomRule(), 50e9, 300, 1e3), "is less than its terms"),
        (lambda: dynamic_xoff(1e6, 0, 1), "alpha = 0 is not > 0"),
        (lambda: dynamic_xoff(1e6, 1, 0), "0 congested queues"),
        (lambda: PoolPlan(0, ()), "buffer pool = 0 B is not > 0"),
        (lambda: PoolPlan(1e6, (), oversubscription=0.5), "oversubscription = 0.5 is not 1 or more"),
        (lambda: PoolPlan(1e6, (), n_priorities=0), "lossless priorities = 0"),
        (lambda: PoolPlan(1e6, (), alpha=-1), "alpha = -1 is not > 0"),
    ],
)
def test_values_outside_a_models_range(make, says):
    with pytest.raises(ModelRangeError, match=says):
        make()
