"""What spans of 15 to 500 km do to protocols: published profiles, and rules that collapse."""

from __future__ import annotations

import numpy as np
import pytest

from netplan import api
from netplan.congestion.switch import EcnCurve, PfcThresholds, SwitchBuffer, SwitchProfile
from netplan.errors import ModelRangeError
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from tests.contracts.making import make_fabric

SITE = (
    "{{name: {name}, kind: leaf-spine, hosts: {{count: 8, gpus: 1, nic_speed: 100G}}, radix: 16,"
    " leaf: {{downlinks: 4, uplinks: 4}}}}"
)
METRO = """kind: metro
sites:
- {{name: a, fabric: {a}}}
- {{name: b, fabric: {b}}}
spans: [{{a: a, b: b, length: {km} km, links: 1}}]
metro: {{radix: 64, switches: 1, link_speed: 100G}}
"""

#: 100G.
RATE = 12.5e9

#: HPE and Juniper measured 4 NICs of 100G on one long link of 100G, 16 QPs each.
FLOWS = "kind: flows\nqps: 16\nwindow: {window} B\nflows: [{flows}]"


def metro(km: float):
    return make_fabric(METRO.format(a=SITE.format(name="a"), b=SITE.format(name="b"), km=km))


def four_to_one(size: float, window: float):
    flows = ", ".join(f"{{src: {k}, dst: {8 + k}, size: {int(size)} B}}" for k in range(4))
    text = FLOWS.format(window=int(window), flows=flows)
    return validate(TRAFFIC_SPEC, parse_yaml(f"name: four-to-one\n{text}", "t.yaml"))


def round_trip(km: float) -> float:
    return 2 * km * 5.05e-6 + 20e-6


def profile(km: float) -> SwitchProfile:
    """Their switch: buffer 2.5, Kmin 0.75, Kmax 1.5 round trips of the link's rate, no PFC."""
    bdp = round_trip(km) * RATE
    return SwitchProfile(
        "dci",
        EcnCurve(0.75 * bdp, 1.5 * bdp, 1.0),
        PfcThresholds("dynamic", alpha=1.0),
        SwitchBuffer(4e9, deep=True, lossless=False, queue_limit_bytes=2.5 * bdp),
        ecn_scales=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("outstanding", [1.04, 1.5])
def test_the_profile_of_hpe_and_juniper_fills_100_km_without_loss(outstanding):
    """Published for 50 to 500 km: 100 % utilisation, no drops, a peak queue of about one round trip.

    With these windows `none` does it as well: the test is of window, buffer and thresholds together,
    not of the protocol.
    """
    km = 100
    bdp = round_trip(km) * RATE
    traffic = four_to_one(1e9, outstanding * bdp / 4)
    fabric = metro(km)
    best = api.simulate(fabric, traffic)
    result = api.simulate(fabric, traffic, cc="dcqcn-long-haul", switch=profile(km))
    assert best.completion_s / result.completion_s >= 0.99
    assert result.congestion is not None
    assert result.congestion.loss_fraction == 0
    assert result.congestion.queues is not None
    assert result.congestion.queues.peak_bytes < 1.5 * bdp


def efficiency(km: float, cc: str) -> float:
    """Return what a protocol takes of the time that max-min rates take; 0 when it never ends."""
    fabric, traffic = metro(km), four_to_one(1e8, 1e12)
    try:
        result = api.simulate(fabric, traffic, cc=cc)
    except ModelRangeError:
        return 0.0
    return api.simulate(fabric, traffic).completion_s / result.completion_s


@pytest.mark.slow
def test_a_rule_of_absolute_round_trips_collapses_and_hpcc_holds():
    """DOCA's template cuts at 150 us: 15 km of fibre are that long without any queue."""
    near, far = efficiency(5, "rtt-template"), efficiency(16, "rtt-template")
    assert near > 0.75
    assert far < 0.1
    assert efficiency(30, "hpcc") > 0.9


@pytest.mark.slow
def test_default_dcqcn_oscillates_over_30_km():
    """The queue of the long link empties again and again, though its senders have bytes to send."""
    fabric, traffic = metro(30), four_to_one(4e8, 1e12)
    result = api.simulate(fabric, traffic, cc="dcqcn", record=True)
    assert result.congestion is not None
    (series,) = result.congestion.series
    middle = (series.time > 0.3 * result.completion_s) & (series.time < 0.9 * result.completion_s)
    rate = series.rate[middle].sum(axis=1)
    assert np.std(rate) > 0.05 * np.mean(rate)
    assert result.efficiency.collective < 0.95
