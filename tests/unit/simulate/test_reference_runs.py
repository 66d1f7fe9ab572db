"""Reading reference runs, laying paths, max-min on them and the figures of a comparison, by hand."""

from __future__ import annotations

import copy
import gzip
import json

import numpy as np
import pytest

from netplan.errors import SpecError
from netplan.simulate.reference.comparison import (
    ModelRun,
    by_kind,
    by_protocol,
    compare_run,
    seed_group,
    summarise,
)
from netplan.simulate.reference.max_min import FlowTimes, max_min_goodput, max_min_times
from netplan.simulate.reference.models import MODELS
from netplan.simulate.reference.runs import FORMAT, parse_runs, read_runs

US = 1e-6

#: Hosts 0 and 1 on leaf 4, hosts 2 and 3 on leaf 5; spines 6 and 7. 8 Gb/s (1 byte/ns), 1 us each.
CABLES = [[host, 4 + host // 2, 8, 1000] for host in range(4)] + [
    [leaf, spine, 8, 1000] for leaf in (4, 5) for spine in (6, 7)
]


def content(**changes):
    """One run of two flows from hosts 0 and 1 to host 2 over spines 6 and 7; packets of 900 + 100 bytes."""
    demand = {
        "src": [0, 1],
        "dst": [2, 2],
        "bytes": [900_000, 1_800_000],
        "start_ns": [0, 0],
        "path": [[0, 4, 6, 5, 2], [1, 4, 7, 5, 2]],
        "ack_path": [[2, 5, 6, 4, 0], [2, 5, 6, 4, 1]],
        **changes.pop("demand", {}),
    }
    measured = {
        "received_ns": [2_007_000, 3_007_000],
        "makespan_ns": 3_007_000,
        "pauses": 0,
        "drops": 0,
        "done": 2,
        "queue_bytes": [[5, 2, 50_000, 10_000]],
        **changes.pop("measured", {}),
    }
    run = {
        "name": "x_s1_none",
        "simulator": "hpcc",
        "scenario": "incast",
        "protocol": "none",
        "balancing": "ecmp",
        "topology": "t",
        "note": "",
        "payload_bytes": 900,
        "wire_bytes": 1000,
        "ack_bytes": 60,
        "ack_every": 1,
        "lossless": True,
        "clock_ns": 1,
        "horizon_ns": 4_000_000,
        "settings": {},
        "demand": 0,
        "measured": measured,
        **changes,
    }
    return {
        "format": FORMAT,
        "simulator": {"name": "s", "repository": "r", "commit": "c"},
        "topologies": {"t": {"hosts": 4, "cables": CABLES}},
        "demands": [demand],
        "runs": [run],
    }


def one(**changes):
    (run,) = parse_runs(content(**changes), "here")
    return run


def test_units_and_links():
    run = one()
    assert run.links.capacity.tolist() == [1e9] * 16
    assert run.links.delay == pytest.approx(1 * US)
    ends = list(zip(run.links.src.tolist(), run.links.dst.tolist(), strict=True))
    assert ends[:2] == [(0, 4), (4, 0)]
    assert [ends[link] for link in run.paths.row(1)] == [(1, 4), (4, 7), (7, 5), (5, 2)]
    assert run.source == "s, r, c"
    assert run.single_path
    assert run.measured.received == pytest.approx([2007 * US, 3007 * US])
    assert ends[run.measured.queues[0][0]] == (5, 2)


def test_latency_by_hand():
    """Four links of 1 us, a packet of 1 us on each behind the first; 60 ns of acknowledgement on all."""
    run = one()
    assert run.latency == pytest.approx([7 * US] * 2)
    assert run.ack_latency == pytest.approx([4.24 * US] * 2)


def test_whole_nanoseconds():
    """At 100 Gb/s 1,051 bytes take 84.08 ns and 60 bytes 4.8 ns: 84 and 4 are 1,050 and 50 bytes."""
    run = one()
    assert run.as_timed(1000.4) == pytest.approx(1000)
    fast = copy.deepcopy(CABLES)
    for cable in fast:
        cable[2] = 100
    raw = content()
    raw["topologies"]["t"]["cables"] = fast
    (run,) = parse_runs(raw, "here")
    assert run.as_timed(1051) == pytest.approx(1050)
    assert run.as_timed(60) == pytest.approx(50)
    assert one(clock_ns=0).as_timed(1051.5) == 1051.5


def test_spread_over_all_shortest_paths():
    """From leaf 4 to leaf 5 half of the bytes go over each spine; within a leaf there is one path."""
    run = one(balancing="spray", demand={"dst": [2, 0], "path": [[0], [0]]})
    ends = list(zip(run.links.src.tolist(), run.links.dst.tolist(), strict=True))
    first = slice(run.paths.ptr[0], run.paths.ptr[1])
    shares = {ends[k]: s for k, s in zip(run.paths.link[first], run.paths.share[first], strict=True)}
    assert shares == {(0, 4): 1, (4, 6): 0.5, (4, 7): 0.5, (6, 5): 0.5, (7, 5): 0.5, (5, 2): 1}
    assert [ends[k] for k in run.paths.row(1)] == [(1, 4), (4, 0)]
    assert not run.single_path


def test_without_acknowledgement_paths_they_go_back():
    raw = content()
    del raw["demands"][0]["ack_path"]
    (run,) = parse_runs(raw, "here")
    ends = list(zip(run.links.src.tolist(), run.links.dst.tolist(), strict=True))
    assert [ends[k] for k in run.ack_paths.row(1)] == [(2, 5), (5, 7), (7, 4), (4, 1)]


def test_max_min_by_hand():
    """1 and 2 MB on the wire share the last link of 1 byte/ns: 2 ms, then 1 MB alone: 3 ms; latency 7 us."""
    run = one()
    times = max_min_times(run)
    assert times.received == pytest.approx([2007 * US, 3007 * US])
    assert times.acknowledged == pytest.approx([2011.24 * US, 3011.24 * US])
    assert times.makespan(run) == pytest.approx(3007 * US)
    assert max_min_goodput(run) == pytest.approx([0.45e9, 0.45e9])


def test_acknowledgements_take_capacity_by_hand():
    """Flow 2 -> 0 meets the acknowledgements of 0 -> 2 on its first link: x (1 + 60/1000) = C."""
    run = one(
        demand={
            "src": [0, 2],
            "dst": [2, 0],
            "bytes": [900_000, 900_000],
            "path": [[0, 4, 6, 5, 2], [2, 5, 6, 4, 0]],
            "ack_path": [[2, 5, 6, 4, 0], [0, 4, 6, 5, 2]],
        }
    )
    assert max_min_times(run).received == pytest.approx([1007 * US] * 2)
    assert max_min_times(run, acknowledgements=True).received == pytest.approx([1067 * US] * 2)


def test_flow_after_flow_by_hand():
    """The second begins when the first has arrived, at 1,007 us, and is alone: 2,007 us more."""
    run = one(demand={"after": [-1, 0]})
    times = max_min_times(run)
    assert times.begin == pytest.approx([0, 1007 * US])
    assert times.received == pytest.approx([1007 * US, 2007 * US])


def test_flow_after_acknowledgement_by_hand():
    times = max_min_times(one(simulator="htsim", demand={"after": [-1, 0]}))
    assert times.begin == pytest.approx([0, 1011.24 * US])


def test_chunks_by_hand():
    """Flow 1 -> 3 passes on what flow 0 -> 1 brings, in two chunks of 0.5 MB on the wire.

    0 -> 1: two links, latency 3 us: chunk 0 arrives at 503 us. 1 -> 3 sends its chunk 0 at once (500 us) and
    chunk 1 from 503 us: 1,003 us on the wire, latency 7 us.
    """
    run = one(
        demand={
            "src": [0, 1],
            "dst": [1, 3],
            "bytes": [900_000, 900_000],
            "path": [[0, 4, 1], [1, 4, 6, 5, 3]],
            "ack_path": [[1, 4, 0], [3, 5, 6, 4, 1]],
            "chunk_bytes": 450_000,
            "feeder": [-1, 0],
        }
    )
    assert max_min_times(run).received == pytest.approx([1003 * US, 1010 * US])


def test_comparison_by_hand():
    run = one()
    times = FlowTimes(np.zeros(2), np.array([3.0, 2.2]) * 1e-3, np.array([3.1, 2.3]) * 1e-3)
    queue = np.zeros(16)
    queue[5 * 2] = 1.0
    link = run.measured.queues[0][0]
    queue[link] = 75_000
    got = compare_run(run, ModelRun(times, None, queue, queue / 10, pauses=True))
    # 900,000 bytes are below LARGE_FLOW, so one flow counts: 2.2 / 3.007 - 1.
    assert got.flow_errors == pytest.approx([2.2 / 3.007 - 1])
    assert got.makespan_error == pytest.approx(3.0 / 3.007 - 1)
    assert got.queue_peak == pytest.approx(1.5)
    assert got.queue_mean == pytest.approx(0.75)
    assert got.pauses == (True, False)


def test_ranks_forgive_which_flow_was_unlucky():
    run = one(
        demand={"bytes": [1_800_000, 1_800_000]}, measured={"received_ns": [2e6, 4e6], "makespan_ns": 4e6}
    )
    got = compare_run(run, ModelRun(FlowTimes(np.zeros(2), np.array([4e-3, 2e-3]), np.zeros(2))))
    assert got.flow_errors == pytest.approx([1, -0.5])
    assert got.rank_errors == pytest.approx([0, 0])


def test_endless_runs_compare_goodput():
    run = one(measured={"goodput_gbps": [6, 2], "done": 0, "received_ns": [None, None]})
    got = compare_run(run, ModelRun(goodput=np.array([0.5e9, 0.4e9])))
    assert got.goodput_errors == pytest.approx([-0.5, 0.3])
    assert got.total_goodput == pytest.approx(0.9)
    assert got.makespan_error is None


def test_flows_that_never_ended_are_left_out():
    run = one(demand={"bytes": [2e6, 2e6]}, measured={"received_ns": [4e6, None], "done": 1})
    got = compare_run(run, MODELS["max-min"].answer(run, 0))
    assert len(got.flow_errors) == 1
    assert got.makespan_error is None


def test_means_over_seeds():
    """Seeds 1 and 2 take 2 and 4 ms, by the model 3 and 3: the means agree, the spread is 2 / 3."""
    parts = []
    for seed, end in ((1, 2e6), (2, 4e6)):
        run = one(name=f"x_s{seed}_none", measured={"makespan_ns": end, "received_ns": [end, end]})
        times = FlowTimes(np.zeros(2), np.full(2, 3e-3), np.full(2, 3e-3))
        parts.append(compare_run(run, ModelRun(times)))
    (row,) = summarise(parts, by_kind)
    assert row.name == "x_none"
    assert (row.runs, row.flows) == (2, 2)
    assert row.makespan_error == pytest.approx(0)
    assert row.seed_spread == pytest.approx(2 / 3)
    assert row.flow_median == pytest.approx((0.5 + 0.25) / 2)
    (same,) = summarise(parts, by_protocol)
    assert same.name == ""
    assert same.makespan_worst == pytest.approx(0)


def test_seed_groups():
    assert seed_group("c_ls4x4x8_s12_dcqcn") == "c_ls4x4x8_dcqcn"
    assert seed_group("cwc_ls4x4x8_s1_fecmp_pfc") == "cwc_ls4x4x8_fecmp_pfc"
    assert seed_group("a_dcqcn_N8_8MB") == "a_dcqcn_N8_8MB"


def test_files_and_folders(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(content()))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(content(name="y")).encode()))
    assert [run.name for run in read_runs(tmp_path)] == ["x_s1_none", "y"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda raw: raw.update(format="other"),
            r"here: format is 'other', accepted is 'netplan/reference-runs/1'",
        ),
        (lambda raw: raw["runs"][0].pop("protocol"), r"here: member 'protocol' is missing"),
        (lambda raw: raw.pop("topologies"), r"here: member 'topologies' is missing"),
        (
            lambda raw: raw["demands"][0]["path"][0].insert(1, 3),
            r"here: run x_s1_none: nodes \(0, 3\) have no cable in t",
        ),
    ],
)
def test_wrong_content_is_refused(make, says):
    raw = content()
    make(raw)
    with pytest.raises(SpecError, match=says):
        parse_runs(raw, "here")


def test_list_is_refused():
    with pytest.raises(SpecError, match=r"here: format is None, accepted is"):
        parse_runs([1], "here")


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(SpecError, match=r"no \*\.json or \*\.json\.gz in this folder"):
        read_runs(tmp_path)
    for name, raw in (("a.json", b"{"), ("b.json.gz", b"nothing"), ("c.json.gz", gzip.compress(b"{}")[:-9])):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(SpecError, match=rf"{name}: cannot be read as reference runs"):
            read_runs(tmp_path / name)
    with pytest.raises(SpecError, match=r"none\.json: cannot be read as reference runs"):
        read_runs(tmp_path / "none.json")
