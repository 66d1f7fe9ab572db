"""A sweep over sizes: equal to running each size, and its table, picture and refusals."""

from __future__ import annotations

import pytest

from netplan import api
from netplan.errors import TrafficError, UnitError
from netplan.report.sizes import draw_sizes, sizes_table
from netplan.simulate.sizes import size_range, sweep_sizes
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from tests.contracts.making import make_fabric

FABRIC = (
    "kind: leaf-spine\nradix: 16\nhosts: {count: 8, gpus: 2, scale_up: 450 GB/s}\nleaf: {oversubscription: 3}"
)
SIZES = (8, 1000, 2**16, 2**20 + 3, 2**24, 2**30, 2**33)


def workload(text):
    """Return the spec of a workload without its size."""
    return validate(TRAFFIC_SPEC, parse_yaml(f"name: swept\nsize: 1 MiB\n{text}", "traffic.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "kind: all-reduce",
        "kind: all-reduce\nalgorithm: auto",
        "kind: all-reduce\nprotocol: auto\nplacement: {kind: random}",
        "kind: all-reduce\nalgorithm: tree\nprotocol: ll128",
        "kind: all-reduce\nalgorithm: hierarchical",
        "kind: all-reduce\nalgorithm: halving-doubling",
        "kind: all-reduce\nalgorithm: in-network\nprotocol: simple",
        "kind: all-reduce\nqps: 4\nsplit_data_on_qps: false",
        "kind: all-gather\nalgorithm: pat\nprotocol: simple",
        "kind: reduce-scatter\nalgorithm: auto\nranks: 2\ngpu: h100",
        "kind: all-to-all\nwork_conserving: true\nqps: 2",
        "kind: all-to-all\npxn: false",
        "kind: broadcast\nprotocol: auto",
        "kind: send-recv",
        "kind: incast\nsenders: 5",
    ],
)
@pytest.mark.parametrize("routing", ["ecmp", "spray"])
def test_a_sweep_is_all_its_runs(text, routing):
    """The slow way: every size run by itself. Equal to rounding, also latency, choice and ideal."""
    fabric = make_fabric(FABRIC)
    spec = workload(text)
    sweep = sweep_sizes(fabric, spec, SIZES, routing=routing, seed=3)
    for size, row in zip(SIZES, sweep.rows, strict=True):
        one = api.simulate(fabric, spec.model_copy(update={"size": size}), routing=routing, seed=3)
        demand = one.scenario.demand
        assert (row.algorithm, row.protocol) == (demand.algorithm, demand.protocol)
        assert row.time_s == pytest.approx(one.completion_s, rel=1e-6)
        assert row.latency_s == pytest.approx(one.latency_s, rel=1e-6, abs=1e-12)
        assert row.ideal_s == pytest.approx(one.ideal_s, rel=0.02)
        if one.busbw is not None:
            assert row.busbw == pytest.approx(one.busbw, rel=1e-6)
    assert sweep.n_ranks == demand.n_ranks


def test_a_sweep_under_a_protocol_runs_every_size():
    """Queues do not scale: each size is a run."""
    fabric, spec = make_fabric(FABRIC), workload("kind: incast\nsenders: 3")
    sweep = sweep_sizes(fabric, spec, (2**20, 2**21), cc="dcqcn")
    for size, row in zip((2**20, 2**21), sweep.rows, strict=True):
        one = api.simulate(fabric, spec.model_copy(update={"size": size}), cc="dcqcn")
        assert row.time_s == pytest.approx(one.completion_s, rel=1e-9)


def test_ranges_as_nccl_tests_reads_them():
    """-b 8 -e 16G -f 2 is 32 sizes; letters are powers of 1024; quantities are read as everywhere."""
    assert len(size_range("8:16G")) == 32
    assert size_range("8:16G")[-1] == 2**34
    assert size_range("1k:1M:32") == (2**10, 2**15, 2**20)
    assert size_range("100:1000:3") == (100, 300, 900)
    assert size_range("1 GiB, 1MB,8") == (8, 10**6, 2**30)
    assert size_range("4M") == (2**22,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0:8", "no bytes"),
        ("0", "no bytes"),
        ("8:4", "ends before it begins"),
        ("8:16:1", "not a number above 1"),
        ("8:16:x", "not a number above 1"),
        ("8:16:inf", "not a number above 1"),
        ("1:2:3:4", "is no range of sizes"),
        ("1:1G:1.01", "more than 200 sizes"),
        ("8:lots", "lots"),
        ("", "is empty"),
    ],
)
def test_ranges_that_are_refused(text, words):
    """Each with its words and a hint."""
    with pytest.raises(UnitError, match=words) as caught:
        size_range(text)
    assert caught.value.hint


def test_refusals():
    """A list of flows has no one size; a sweep needs a size of a byte or more."""
    fabric = make_fabric(FABRIC)
    flows = api.load_traffic("flows-example")
    with pytest.raises(TrafficError, match="of kind flows has no one size"):
        sweep_sizes(fabric, flows, (8,))
    for sizes in ((), (0,), (-1, 8)):
        with pytest.raises(TrafficError, match="needs sizes of 1 byte and more"):
            sweep_sizes(fabric, workload("kind: all-reduce"), sizes)


def test_table_and_picture():
    """Elements as nccl-tests counts them: of a rank; one colour for each algorithm and protocol."""
    fabric = make_fabric(FABRIC)
    sweep = sweep_sizes(fabric, workload("kind: all-gather\nprotocol: auto"), (2**10, 2**20, 2**30))
    table = sizes_table(sweep)
    assert table.columns[:2] == ("size_bytes", "count")
    assert [row[1] for row in table.rows] == [2**10 // 64, 2**20 // 64, 2**30 // 64]
    assert table.remarks[0].startswith("mean bus bandwidth")
    picture = draw_sizes(sweep, ".svg").decode()
    for row in sweep.rows[1:]:
        assert f"ring {row.protocol}" in picture
    assert sweep.to_dict()["sizes"][2]["size_bytes"] == 2**30
