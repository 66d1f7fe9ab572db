"""What a sweep may vary: each path read, each wrong one refused with its reason."""

import pytest

from netplan.errors import ModelRangeError, SpecError
from netplan.sweep.settings import Case, read_case

BASE = {"fabric": "lab-2-leaf", "traffic": "incast-8"}


def test_every_part_of_a_scenario_can_be_set():
    case = read_case(
        {
            **BASE,
            "fabric.leaf.uplinks": 4,
            "traffic.placement.kind": "random",
            "routing": "spray",
            "cc": "dcqcn",
            "cc.dcqcn.rate_ai": "40M",
            "switch": "hpcc-ns3",
            "switch.kmin": "100 kB",
            "switch.ecn_factor": 2,
            "fail": ("switch:leaf-0-0", "random:cable:1"),
            "on_dead": "evict",
            "mtu": 1024,
            "seed": 7,
            "polarized": True,
            "exact": True,
            "step": "1us",
        }
    )
    assert case.fabric_sets == {"leaf.uplinks": "4"}
    assert case.traffic_sets == {"placement.kind": "random"}
    assert (case.routing, case.cc, case.seed) == ("spray", "dcqcn", 7)
    assert case.cc_params == {"rate_ai": 5e6}
    assert case.switch_fields == {"kmin": 100_000.0, "ecn_factor": 2.0}
    assert case.failures == ("switch:leaf-0-0", "random:cable:1")
    assert case.options == {"on_dead": "evict", "mtu": 1024, "polarized": True, "exact": True, "step": 1e-6}
    assert case.unread == ()
    profile = case.switches()
    assert not isinstance(profile, str)
    assert profile.ecn.kmin_bytes == 200_000.0  # the factor comes after the threshold
    assert profile.ecn.kmax_bytes == 3_200_000.0


def test_what_is_not_read_does_not_make_another_case():
    one = read_case({**BASE, "cc": "hpcc", "cc.dcqcn.rate_ai": "5M"})
    two = read_case({**BASE, "cc": "hpcc", "cc.dcqcn.rate_ai": "40M"})
    assert one.key == two.key
    assert one.unread == ("cc.dcqcn.rate_ai",)
    still = read_case({**BASE, "switch": "hpcc-ns3", "switch.pmax": 0.5, "step": "1us"})
    assert still.unread == ("switch.pmax", "switch", "step")
    assert still.key == read_case(BASE).key


def test_cases_differ_by_what_is_read():
    cases = [
        read_case({**BASE, **more})
        for more in (
            {},
            {"seed": 1},
            {"routing": "spray"},
            {"fail": "random:cable:1"},
            {"traffic.qps": 2},
            {"fabric.leaf.uplinks": 4},
            {"cc": "dcqcn"},
            {"cc": "dcqcn", "cc.dcqcn.rate_ai": "5M"},
            {"cc": "dcqcn", "switch": "sonic-default"},
        )
    ]
    assert len({case.key for case in cases}) == len(cases)


def test_a_random_failure_makes_another_fabric_with_each_seed_and_a_named_one_does_not():
    def keys(failure: str) -> set[str]:
        return {read_case({**BASE, "fail": failure, "seed": seed}).fabric_key for seed in (0, 1)}

    assert len(keys("random:cable:1")) == 2
    assert len(keys("switch:leaf-0-0")) == 1


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({"routting": "ecmp"}, "routting: unknown setting; accepted: fabric, traffic", "`routing`"),
        ({"leaf.uplinks": 4}, "leaf.uplinks: unknown setting", None),
        ({"routing": 3}, "routing = 3: must be a text", None),
        ({"seed": True}, "seed = True: must be a whole number", None),
        ({"fail": 1}, "fail = 1: must be a text or a list of texts", None),
        ({"routing": "ecpm"}, "routing: routing 'ecpm' is not one of", "ecmp"),
        ({"cc": "dcqnc"}, "cc: ", "dcqcn"),
        (
            {"cc.dcqcn.rate_aj": "5M"},
            "cc.dcqcn.rate_aj: dcqcn has no parameter 'rate_aj'",
            "cc.dcqcn.rate_ai",
        ),
        ({"cc.dcqcn.rate_ai": 5}, "cc.dcqcn.rate_ai = 5 is not a rate: it has no unit", "5"),
        ({"cc.dcqcn.gain": 7}, "cc.dcqcn.gain: dcqcn.gain = 7 1 is out of range", None),
        ({"switch.kmn": "1MB"}, "switch.kmn: unknown setting; accepted after `switch.`: kmin", "switch.kmin"),
        ({"switch.pmax": "5 %"}, "switch.pmax = is not a number: '5 %'", None),
        ({"cc": "dcqcn", "switch": "hpc"}, "switch: switch profile 'hpc' is not one of", None),
        ({"cc": "dcqcn", "step": "soon"}, "step = 'soon' is not a time", None),
    ],
)
def test_a_wrong_setting_is_refused_with_its_path(settings, message, hint):
    with pytest.raises(SpecError) as caught:
        read_case({**BASE, **settings})
    assert message in str(caught.value)
    if hint:
        assert hint in (caught.value.hint or caught.value.message)


def test_the_buffer_of_a_switch_needs_a_profile():
    case = read_case({**BASE, "cc": "dcqcn", "switch.buffer": "32MB"})
    with pytest.raises(ModelRangeError, match=r"switch\.buffer needs a named profile"):
        case.switches()


def test_thresholds_of_the_default_can_be_scaled():
    case = read_case({**BASE, "cc": "dcqcn", "switch.ecn_factor": 2})
    profile = case.switches()
    assert not isinstance(profile, str)
    assert profile.name == "auto"
    assert profile.ecn.kmin_bytes == 800_000.0


def test_figures_that_do_not_go_together_are_refused():
    case = Case("lab-2-leaf", "incast-8", cc="dcqcn", switch="hpcc-ns3", switch_fields={"kmin": 9e9})
    with pytest.raises(ModelRangeError, match="0 <= kmin <= kmax is needed"):
        case.switches()
