"""Switch profiles: curves, thresholds, and what they refuse."""

import re

import pytest

from netplan.congestion.switch import (
    PRESETS,
    EcnCurve,
    PfcThresholds,
    SwitchBuffer,
    find_profile,
)
from netplan.errors import ModelRangeError

GBPS = 1e9 / 8


def test_curve():
    curve = EcnCurve(100.0, 300.0, 0.2)
    assert [curve.probability(q) for q in (0, 100, 200, 300, 301)] == pytest.approx([0, 0, 0.1, 0.2, 1.0])
    step = EcnCurve(300.0, 300.0, 1.0)
    assert (step.probability(300.0), step.probability(300.1)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EcnCurve(2.0, 1.0, 0.5), r"kmin = 2 B, kmax = 1 B: 0 <= kmin <= kmax is needed"),
        (lambda: EcnCurve(1.0, 2.0, 0.0), r"pmax = 0 is not in \(0, 1\]"),
        (lambda: EcnCurve(1.0, 2.0, 5.0), r"pmax = 5 is not in \(0, 1\]"),
        (lambda: PfcThresholds("dynamic", alpha=0.0), r"alpha = 0 is not > 0"),
        (lambda: PfcThresholds("dynamik"), r"'dynamik' is not one of dynamic, static\n  hint: dynamic"),  # type: ignore[arg-type]
        (lambda: PfcThresholds("static", xoff_bytes=10.0), r"xoff = 10 B is not above xon_offset = 3072 B"),
        (lambda: PfcThresholds(headroom_bytes=-1.0), r"headroom_bytes = -1 is negative"),
        (lambda: SwitchBuffer(0.0), r"total_bytes = 0 is not > 0"),
        (lambda: SwitchBuffer(1.0, reserved_bytes=-1.0), r"reserved_bytes = -1 is negative"),
        (lambda: find_profile("hpcc-ns"), r"'hpcc-ns' is not one of hpcc-ns3, .*\n  hint: hpcc-ns3"),
    ],
)
def test_refused(build, message):
    with pytest.raises(ModelRangeError) as caught:
        build()
    assert re.search(message, str(caught.value))


def test_rules_grow_with_the_port():
    """HPCC: thresholds x 4 at four times the rate, alpha x 4, headroom 3 C d."""
    hpcc = find_profile("hpcc-ns3")
    assert hpcc.ecn_of(400 * GBPS).kmin_bytes == pytest.approx(1600e3)
    assert hpcc.alpha_of(400 * GBPS) == pytest.approx(0.5)
    assert hpcc.headroom_of(400 * GBPS, 150e-6) == pytest.approx(22.5e6)
    conweave = find_profile("conweave-ns3")
    assert conweave.ecn_of(400 * GBPS).kmin_bytes == pytest.approx(100e3)
    assert conweave.alpha_of(400 * GBPS) == pytest.approx(1 / 16)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_name_their_source(name):
    assert PRESETS[name].source
