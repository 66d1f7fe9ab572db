"""``netplan compare --distance``: outputs, and what a wrong call is told."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli

GRID = ("compare", "metro-16", "permutation-64mib", "--routing", "ecmp")


def run(*arguments: str, status: int = 0) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.stderr
    return result


def test_a_grid_for_each_distance_with_its_picture(tmp_path):
    plot = tmp_path / "d.svg"
    arguments = (*GRID, "--cc", "none,rtt-template", "--distance", "1km,30km", "--chart", str(plot))
    data = json.loads(run(*arguments, "--format", "json").stdout)
    assert data["schema"] == "netplan/distances/1"
    found = {(row["setting"], row["distance_m"]): row for row in data["rows"]}
    assert set(found) == {(f"ecmp, {cc}", d) for cc in ("none", "rtt-template") for d in (1e3, 30e3)}
    assert found["ecmp, none", 30e3]["of_max_min"] > 0.9
    assert found["ecmp, rtt-template", 1e3]["of_max_min"] > 0.5
    stuck = found["ecmp, rtt-template", 30e3]
    assert stuck["completion_s"] is None
    assert stuck["of_max_min"] == 0
    assert "have not ended" in stuck["reason"]
    text = plot.read_text()
    assert "efficiency by distance" in text
    assert "30 km" in text


def test_the_table_has_a_column_for_each_distance():
    text = run(*GRID, "--cc", "none", "--distance", "1km,30km").stdout
    assert "setting     1 km   30 km" in text
    assert "ecmp, none" in text


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ("compare", "lab-2-leaf", "incast-8", "--distance", "1km"),
            1,
            "has no spans whose length could vary",
        ),
        (("compare", "metro-star-3site", "permutation-64mib", "--distance", "1km"), 1, "paths"),
        ((*GRID, "--distance", "1foot"), 2, "foot"),
        ((*GRID, "--distance", "0km"), 2, "0km is not more than 0"),
        ((*GRID, "--distance", "1km,1km"), 2, "twice"),
    ],
)
def test_a_wrong_call_is_told_why(arguments, status, message):
    assert message in run(*arguments, status=status).stderr
