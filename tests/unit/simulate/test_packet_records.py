"""Records of packet simulators as others may have them: other sizes, numbers, protocols, and broken ones."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from netplan.errors import ModelRangeError, SpecError
from netplan.simulate.reference.comparison import RunComparison
from netplan.simulate.reference.engine import cannot_run
from netplan.simulate.reference.models import compare_records, load_records
from netplan.simulate.reference.records import read_records

NS3 = {
    "ENABLE_QCN": 1,
    "RATE_DECREASE_INTERVAL": 4,
    "ALPHA_RESUME_INTERVAL": 1,
    "RP_TIMER": 300,
    "EWMA_GAIN": 0.00390625,
    "RATE_AI": "20Mb/s",
    "RATE_HAI": "0.2Gb/s",
    "MIN_RATE": "1000Mb/s",
    "DCTCP_RATE_AI": "615Mb/s",
    "FAST_RECOVERY_TIMES": 1,
    "HAS_WIN": 0,
    "VAR_WIN": 0,
    "CC_MODE": 1,
    "BUFFER_SIZE": 32,
    "KMIN_MAP": "2 25000000000 100 100000000000 400",
    "KMAX_MAP": "2 25000000000 400 100000000000 1600",
    "PMAX_MAP": "2 25000000000 0.2 100000000000 0.2",
}
NS3_COLUMNS = [
    "id",
    "src",
    "dst",
    "sport",
    "size_B",
    "start_ns",
    "fct_rx_ns",
    "fct_ack_ns",
    "rx_B",
    "pkts",
    "marked",
    "nacks",
    "ideal_maxmin_fct_ns",
    "path",
]
HTSIM_COLUMNS = [
    "id",
    "src",
    "dst",
    "size_B",
    "start_ns",
    "finish_ns(sender, last ack)",
    "ideal_maxmin_fct_ns",
    "path(single-path only)",
]
UEC = [
    "Automatic queue sizing enabled trimming queue-size-to-bdp-factor is 1xBDP",
    "Setting ECN to parameters low 12450 high 45650 enable on tor downlink 1",
    "network_max_unloaded_rtt 4.7",
]


def star(hosts, gbps=100.0, delay=1000):
    pairs = [[host, hosts] for host in range(hosts)]
    links = [{"rate_gbps": gbps, "delay_ns": delay, "pairs": pairs}]
    return {"n_hosts": hosts, "switches": [hosts, hosts], "roles": {"leaf": [hosts, hosts]}, "links": links}


def ideal(n, size, wire, payload, gbps):
    return n * size * wire / payload * 8 / gbps + 2 * 1000 + wire * 8 / gbps


def ns3_record(tag, n=3, size=700_000, cc="dcqcn", gbps=100, **changes):
    """Incast of n senders, which the simulator ended just as max-min says."""
    payload, wire = 1003, 1051
    end = ideal(n, size, wire, payload, gbps)
    flows = [
        [i, i, n, 10000, size, 999, end, end + 2000, size, 1, 0, 0, end, [i, n + 1, n]] for i in range(n)
    ]
    return {
        "tag": tag,
        "scenario": "a-incast",
        "cc": cc,
        "params": {**NS3, **changes.pop("params", {})},
        "topology": changes.pop("topology", f"star{n + 1}"),
        "payload_B": payload,
        "wire_B": wire,
        "rc": 0,
        "n_flows": n,
        "n_done": n,
        "sim_ns": int(3 * end),
        "flows": flows,
        "pfc_total": {"pauses": 0, "paused_ns": 0},
        "summary": {"makespan_ns": end},
        **changes,
    }


def htsim_record(tag, command, n=3, size=700_000, cc="nscc", lines=UEC, **changes):
    payload, wire = (4086, 4150) if "uec" in command or "eqds" in command else (4150, 4214)
    end = ideal(n, size, wire, payload, 100)
    flows = [[i, i, n, size, 0, end, end, None] for i in range(n)]
    return {
        "tag": tag,
        "scenario": "a-incast",
        "cc": cc,
        "params": {"cmd": command},
        "stdout_settings": lines,
        "topology": f"star{n + 1}",
        "payload_B": payload,
        "wire_B": wire,
        "rc": 0,
        "n_flows": n,
        "n_done": n,
        "sim_ns": int(3 * end),
        "flows": flows,
        "pfc_total": {"pauses": 0},
        "summary": {"makespan_ns": end},
        **changes,
    }


def write(folder, hpcc=(), htsim=(), conweave=(), **topologies):
    stars = {f"star{hosts}": star(hosts) for hosts in range(2, 24)}
    (folder / "topologies.json").write_text(json.dumps({**stars, **topologies}))
    for name, records, columns in (
        ("hpcc", hpcc, NS3_COLUMNS),
        ("htsim", htsim, HTSIM_COLUMNS),
        ("conweave", conweave, NS3_COLUMNS),
    ):
        if records:
            content = {"header": {"columns": {"flow_cols": columns}}, "records": list(records)}
            (folder / f"{name}_a_incast.json").write_text(json.dumps(content))
    return folder


def reason(folder, name):
    return dict(compare_records(folder).left_out)[name]


# ---- other numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 12, 21])
@pytest.mark.parametrize(
    ("cc", "mode", "params", "most"),
    [
        ("none", 0, {"ENABLE_QCN": 0}, 0.01),
        ("dctcp", 8, {"HAS_WIN": 1, "VAR_WIN": 1, "KMIN_MAP": "1 100000000000 300"}, 0.02),
        ("hpcc", 3, {"HAS_WIN": 1, "VAR_WIN": 1, "U_TARGET": 0.9, "INT_MULTI": 4, "FAST_REACT": 1}, 0.2),
        ("dcqcn", 1, {"KMIN_MAP": "1 100000000000 150", "BUFFER_SIZE": 12}, 2.0),
        ("timely", 7, {}, 1.0),
    ],
)
def test_other_sizes_and_settings(tmp_path, n, cc, mode, params, most):
    """Any number of senders, any threshold: it runs, and no faster than the link."""
    settings = {**params, "CC_MODE": mode}
    if "KMIN_MAP" in settings:
        settings |= {"KMAX_MAP": "1 100000000000 600", "PMAX_MAP": "1 100000000000 0.5"}
    write(tmp_path, hpcc=[ns3_record("x", n, 1_200_000, cc, params=settings)])
    (got,) = compare_records(tmp_path).runs
    assert got.makespan_error is not None
    assert -0.005 < got.makespan_error < most


@pytest.mark.parametrize("gbps", [25, 100])
def test_other_link_rates(tmp_path, gbps):
    """The ECN curve is that of the ports' rate; times follow the rate."""
    record = ns3_record("x", 4, 1_500_000, "none", gbps, params={"CC_MODE": 0}, topology="t")
    write(tmp_path, hpcc=[record], t=star(5, gbps))
    (got,) = compare_records(tmp_path).runs
    assert got.makespan_error == pytest.approx(0, abs=0.01)


COMMANDS = {
    "nscc": "htsim_uec -sender_cc_algo nscc -load_balancing_algo mixed -mtu 4150",
    "rccc": "htsim_uec -receiver_cc_only -load_balancing_algo mixed -mtu 4150",
    "eqds": "htsim_eqds -strat ecmp_host -paths 64 -q 50 -mtu 4150",
    "ndp": "htsim_ndp -strat ecmp_host -paths 64 -q 12 -cwnd 20 -mtu 4150",
    "swift": "htsim_swift -q 500 -cwnd 10 -mtu 4000",
    "roce_ecmp": "htsim_roce -strat ecmp_host -paths 1 -q 2000 -pfc_thresholds 20 30 -mtu 4150",
}


@pytest.mark.parametrize("n", [2, 7, 19])
@pytest.mark.parametrize("cc", list(COMMANDS))
def test_protocols_of_htsim(tmp_path, cc, n):
    """Receivers, marks and delays keep one link full whatever the number of senders."""
    write(tmp_path, htsim=[htsim_record("x", COMMANDS[cc], n, 4_000_000, cc)])
    (got,) = compare_records(tmp_path).runs
    assert got.makespan_error == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(
    ("command", "protocol"),
    [
        (COMMANDS["nscc"], "nscc"),
        (COMMANDS["nscc"] + " -disable_trim", "nscc_notrim"),
        (COMMANDS["nscc"].replace("mixed", "oblivious"), "nscc_obl"),
        (COMMANDS["nscc"].replace("mixed", "oblivious -paths 1"), "nscc_ecmp"),
        (COMMANDS["nscc"] + " -receiver_cc", "nscc_rccc"),
        (COMMANDS["rccc"] + " -paths 1", "rccc_ecmp"),
        ("htsim_uec -sender_cc_algo dctcp -load_balancing_algo oblivious", "dctcp_spray"),
        (COMMANDS["roce_ecmp"], "roce_ecmp"),
        ("htsim_roce -strat ecmp_ar -pfc_thresholds 12 15", "roce_ar"),
        (COMMANDS["eqds"], "eqds"),
    ],
)
def test_a_name_of_ones_own_is_read_from_the_command(tmp_path, command, protocol):
    write(tmp_path, htsim=[htsim_record("x", command, cc="mine")])
    (run,) = read_records(tmp_path).runs
    assert run.protocol == protocol


def test_a_name_of_ones_own_is_read_from_the_mode(tmp_path):
    write(tmp_path, hpcc=[ns3_record("x", cc="dctcp_my_variant", params={"CC_MODE": 8, "HAS_WIN": 1})])
    (run,) = read_records(tmp_path).runs
    assert cannot_run(run) is None
    assert len(compare_records(tmp_path).runs) == 1


def test_other_ports_than_expected(tmp_path):
    """The hash gives another path than the recorded one: acknowledgements go back along it."""
    leaf_spine = {
        "n_hosts": 4,
        "roles": {},
        "links": [
            {"rate_gbps": 100.0, "delay_ns": 1000, "pairs": [[0, 4], [1, 4], [2, 5], [3, 5]]},
            {"rate_gbps": 100.0, "delay_ns": 1000, "pairs": [[4, 6], [4, 7], [5, 6], [5, 7]]},
        ],
    }
    made = []
    for spine in (6, 7):  # one of the two is not what the hash says
        record = ns3_record(f"over{spine}", 1, cc="none", params={"CC_MODE": 0}, topology="t")
        record["flows"][0][2] = 2
        record["flows"][0][-1] = [0, 4, spine, 5, 2]
        made.append(record)
    write(tmp_path, hpcc=made, t=leaf_spine)
    runs = read_records(tmp_path).runs
    assert len(runs) == 2
    straight = [
        np.array_equal(run.links.src[run.paths.link], run.links.dst[run.ack_paths.link[::-1]]) for run in runs
    ]
    assert any(straight)
    assert len(compare_records(tmp_path).runs) == 2


# ---- what is not represented is said by name ----------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cc": "pint", "params": {"CC_MODE": 10}}, "no rule for the protocol 'pint'"),
        ({"params": {"ERROR_RATE_PER_LINK": 0.001}}, "lose packets by themselves"),
        ({"params": {"MULTI_RATE": 1}}, "HPCC with a rate for each hop"),
        ({"params": {"RATE_AI": "fast"}}, "the rate 'fast'"),
        ({"n_done": 0}, "ended no flow"),
        ({"rc": 139}, "ended with code 139"),
        ({"flows": []}, "lists no flow"),
        ({"topology": "nowhere"}, "topology 'nowhere' is not in topologies.json"),
    ],
)
def test_what_cannot_be_run_is_named(tmp_path, changes, told):
    write(tmp_path, hpcc=[ns3_record("odd", **changes), ns3_record("good", cc="none", params={"CC_MODE": 0})])
    found = compare_records(tmp_path)
    assert [one.name for one in found.runs] == ["good"]
    assert told in dict(found.left_out)["odd"]


def test_unbalanced_thresholds_are_named(tmp_path):
    """100G and 400G ports whose curves are not in proportion: the switch rule has one curve that grows."""
    uneven = star(4)
    uneven["links"] += [{"rate_gbps": 400.0, "delay_ns": 1000, "pairs": [[4, 5]]}]
    params = {
        "KMIN_MAP": "2 100000000000 400 400000000000 500",
        "KMAX_MAP": "2 100000000000 1600 400000000000 1700",
        "PMAX_MAP": "2 100000000000 0.2 400000000000 0.2",
    }
    record = ns3_record("odd", params=params, topology="t")
    uneven["links"][0]["pairs"] = [[0, 4], [1, 4], [2, 4], [3, 5]]
    for flow in record["flows"]:
        flow[-1] = [flow[1], 4, 5, 3]
    write(tmp_path, hpcc=[record], t=uneven)
    assert "not in proportion" in reason(tmp_path, "odd")


def test_settings_that_are_missing_are_named(tmp_path):
    record = ns3_record("odd")
    del record["params"]["KMIN_MAP"]
    write(tmp_path, hpcc=[record], htsim=[htsim_record("mute", COMMANDS["nscc"], lines=[])])
    left_out = dict(compare_records(tmp_path).left_out)
    assert "KMIN_MAP" in left_out["odd"]
    assert "network_rtt_us" in left_out["mute"]


@pytest.mark.parametrize("member", ["payload_B", "flows", "pfc_total", "params", "sim_ns", "cc"])
def test_members_that_are_missing_are_named(tmp_path, member):
    odd = ns3_record("odd")
    del odd[member]
    write(tmp_path, hpcc=[odd, ns3_record("good", cc="none", params={"CC_MODE": 0})])
    found = compare_records(tmp_path)
    assert [one.name for one in found.runs] == ["good"]
    assert member in dict(found.left_out)["odd"]


def test_rows_that_are_too_short_do_not_stop_the_others(tmp_path):
    odd = ns3_record("odd")
    odd["flows"] = [[0, 0], [1, 1]]
    write(tmp_path, hpcc=[odd, ns3_record("good", cc="none", params={"CC_MODE": 0})])
    found = compare_records(tmp_path)
    assert [one.name for one in found.runs] == ["good"]
    assert "odd" in dict(found.left_out)


def all_to_all(tag, port=10000, **changes):
    """Three hosts, all pairs at once, of which the first three flows are listed."""
    record = ns3_record(tag, 3, cc="none", params={"CC_MODE": 0}, topology="star3")
    rows = [[i, i, (i + 1) % 3, port, 700_000, 999, 1e5, 1e5, 700_000, 1, 0, 0, None, None] for i in range(3)]
    return {**record, "scenario": "d-alltoall", "n_flows": 6, "n_done": 6, "flows": rows, **changes}


def test_all_to_all_lists_a_sample(tmp_path):
    """All six flows are made from the three that are listed, if their ports say which paths they take."""
    write(tmp_path, hpcc=[all_to_all("x_all"), all_to_all("y_all", port=50822)])
    found = compare_records(tmp_path)
    assert [one.name for one in found.runs] == ["x_all"]
    (run,) = read_records(tmp_path).runs
    assert run.n_flows == 6
    assert run.measured.flow.tolist() == [0, 1, 2]
    assert "source ports" in dict(found.left_out)["y_all"]


def test_a_ring_of_steps_needs_its_ring(tmp_path):
    record = ns3_record("d_ringstep_t_random_dcqcn", scenario="d-ring-allreduce-perstep")
    write(tmp_path, hpcc=[record])
    assert "one QP an edge" in reason(tmp_path, "d_ringstep_t_random_dcqcn")


# ---- the folder ----------------------------------------------------------------------------------


def test_no_records(tmp_path):
    write(tmp_path)
    with pytest.raises(SpecError, match="no records"):
        load_records(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        read_records(tmp_path / "nowhere")


def test_not_json(tmp_path):
    write(tmp_path, hpcc=[ns3_record("x")])
    (tmp_path / "hpcc_more.json").write_text("{")
    with pytest.raises(SpecError, match=r"hpcc_more\.json: cannot be read"):
        load_records(tmp_path)
    (tmp_path / "hpcc_more.json").write_text("[1]")
    with pytest.raises(SpecError, match="holds a list"):
        load_records(tmp_path)


def test_an_unknown_model(tmp_path):
    write(tmp_path, hpcc=[ns3_record("x")])
    with pytest.raises(ModelRangeError, match="no model 'engin'") as told:
        compare_records(tmp_path, "engin")
    assert "engine" in str(told.value.hint)


def test_the_table(tmp_path):
    """Runs are put together by simulator, scenario and protocol; progress is told run by run."""
    records = [ns3_record(f"x{i}_none", n, cc="none", params={"CC_MODE": 0}) for i, n in enumerate((2, 4))]
    write(tmp_path, hpcc=records, htsim=[htsim_record("y", COMMANDS["rccc"], cc="rccc")])
    seen: list[RunComparison] = []
    found = compare_records(tmp_path, progress=seen.append)
    assert [one.name for one in seen] == ["x0_none", "x1_none", "y"]
    rows = found.summaries()
    assert [(row.simulator, row.protocol, row.runs) for row in rows] == [
        ("hpcc", "none", 2),
        ("htsim", "rccc", 1),
    ]
    assert compare_records(tmp_path, wanted=lambda run: run.protocol == "rccc").runs[0].name == "y"


def test_records_are_not_changed_by_reading(tmp_path):
    record = ns3_record("x")
    kept = copy.deepcopy(record)
    write(tmp_path, hpcc=[record])
    read_records(tmp_path)
    assert record == kept
