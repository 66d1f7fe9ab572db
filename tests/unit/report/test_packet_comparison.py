"""Tables of models against packet simulators."""

from __future__ import annotations

import json

import numpy as np

from netplan.report.packet_comparison import comparison_from_dict, comparison_table, comparison_to_dict
from netplan.report.tables import render_tables
from netplan.simulate.reference.comparison import RunComparison, by_protocol, summarise


def one(**changes) -> RunComparison:
    values = {
        "name": "c_k4_s1_dcqcn",
        "simulator": "hpcc",
        "protocol": "dcqcn",
        "scenario": "c-permutation",
        "flow_errors": np.array([0.02, -0.04]),
        "rank_errors": np.array([0.01, -0.01]),
        "makespan": 1.1,
        "measured_makespan": 1.0,
        "goodput_errors": np.zeros(0),
        "total_goodput": None,
        "queue_peak": 0.95,
        "queue_mean": None,
        "pauses": (True, False),
        **changes,
    }
    return RunComparison(**values)


def test_json_keeps_everything():
    row = json.loads(json.dumps(comparison_to_dict(one())))
    again = comparison_from_dict(row)
    assert comparison_to_dict(again) == comparison_to_dict(one())
    assert again.pauses == (True, False)
    assert again.makespan_error == one().makespan_error


def test_infinite_errors_survive_json():
    again = comparison_from_dict(
        json.loads(json.dumps(comparison_to_dict(one(flow_errors=np.array([np.inf])))))
    )
    assert np.isinf(again.flow_errors[0])


def test_table_in_percent_without_empty_columns():
    """Errors 2 and 4 %: median 3; ratios stay ratios; nothing was endless, so there is no goodput."""
    table = comparison_table(summarise([one()], by_protocol), "title")
    shown = dict(zip(table.columns, table.rows[0], strict=True))
    assert shown["flow median %"] == "3.0"
    assert shown["makespan %"] == "10.0"
    assert shown["queue peak ×"] == "0.95"
    assert shown["PFC right"] == "0.00"
    assert "goodput %" not in shown
    assert "run" not in shown
    assert "title" in render_tables([table], "table")


def test_no_rows_no_table():
    assert comparison_table([]).rows == ()
