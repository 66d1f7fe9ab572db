"""Which ECN thresholds a port gets, and why."""

from __future__ import annotations

import math

import pytest

from netplan.congestion.ecn_rules import ECN_RULES, choose_ecn, find_ecn_rule
from netplan.errors import ModelRangeError

GBPS = 1e9 / 8


@pytest.mark.parametrize(
    ("rule", "gbps", "rtt", "kmin", "kmax", "pmax"),
    [
        ("hpcc-ns3", 100, 0, 400e3, 1600e3, 0.2),
        ("hpcc-ns3", 400, 0, 1600e3, 6400e3, 0.2),
        ("conweave-ns3", 100, 0, 100e3, 400e3, 0.2),
        ("dcqcn-paper", 40, 0, 5e3, 200e3, 0.01),
        ("sonic-default", 800, 0, 1_048_576, 2_097_152, 0.05),
        ("cumulus", 25, 0, 150e3, 1500e3, 1.0),
        ("dctcp", 10, 0, 30e3, 30e3, 1.0),
        # 1.25e9 x 700 us / 7 = 125 kB: above the 30 kB of a short round trip.
        ("dctcp", 10, 700e-6, 125e3, 125e3, 1.0),
        # HPE and Juniper, 100G: 12.5e9 x 1 ms = 12.5 MB.
        ("dci", 100, 1e-3, 9.375e6, 18.75e6, 1.0),
    ],
)
def test_the_published_settings_come_back(rule, gbps, rtt, kmin, kmax, pmax):
    curve = ECN_RULES[rule].curve(gbps * GBPS, rtt)
    assert (curve.kmin_bytes, curve.kmax_bytes) == pytest.approx((kmin, kmax))
    assert curve.pmax == pmax


@pytest.mark.parametrize(
    ("rtt", "xoff", "every_mark", "rule"),
    [
        (10e-6, 2e6, False, "hpcc-ns3"),
        (10e-6, 1e6, False, "conweave-ns3"),
        (10e-6, 100e3, False, "dcqcn-paper"),
        (10e-6, 10.0, False, "dcqcn-paper"),
        (10e-6, math.inf, False, "hpcc-ns3"),
        (10e-6, None, False, "conweave-ns3"),
        (10e-6, 2e6, True, "dctcp"),
        (170e-6, 2e6, False, "hpcc-ns3"),
        (172e-6, 2e6, False, "dci"),
        (303e-6, 2e6, True, "dci"),
    ],
)
def test_the_rule_follows_from_round_trip_and_xoff(rtt, xoff, every_mark, rule):
    """400G: Kmin of the first three is 1.6 MB, 400 kB and 50 kB; dci begins at 171 us."""
    choice = choose_ecn(400 * GBPS, rtt, xoff=xoff, reads_every_mark=every_mark)
    assert choice.rule.name == rule
    assert choice.reason.startswith(rule)


def test_a_rule_can_be_asked_for():
    choice = choose_ecn(400 * GBPS, 1e-3, xoff=1e6, rule="cumulus")
    assert (choice.rule.name, choice.curve.kmin_bytes) == ("cumulus", 150e3)
    assert "as asked for" in choice.reason


def test_bad_input():
    with pytest.raises(ModelRangeError, match="not one of hpcc-ns3, conweave-ns3") as error:
        find_ecn_rule("hpcc")
    assert error.value.hint == "hpcc-ns3"
    with pytest.raises(ModelRangeError, match="is not > 0"):
        choose_ecn(0.0, 1e-6, xoff=1e6)
    with pytest.raises(ModelRangeError, match="is negative"):
        choose_ecn(1e9, -1e-6, xoff=1e6)
