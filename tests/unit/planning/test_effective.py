"""Effective compute: the product, what a point is worth, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from netplan.errors import ModelRangeError, OutputError
from netplan.planning.effective import Factor, effective_compute, more_throughput
from netplan.planning.goodput import training_goodput
from netplan.planning.part_failures import JobParts
from netplan.report.effective import draw_effective, effective_tables


def given(**values: float) -> Any:
    """Return effective compute of 10,000 GPUs with plain numbers."""
    numbers = {"mfu": 0.5, "scaling": 0.9, "effective_time": 0.95, "pue": 1.25, "utilisation": 0.8} | values
    gpus = int(numbers.pop("gpus", 10_000))
    factors: dict[str, Any] = {name: Factor(value, "test") for name, value in numbers.items()}
    return effective_compute(gpus, **factors)


def test_the_product_by_hand():
    found = given()
    assert found.product == pytest.approx(0.8 * 0.5 * 0.9 * 0.95 * 0.8)
    data = found.to_dict()
    assert set(data["effective"]) == {
        "pue_factor", "mfu", "scaling", "effective_time", "utilisation", "product",
    }  # fmt: skip
    assert data["effective"]["pue_factor"] == pytest.approx(0.8)
    assert data["schema"] == "netplan/effective/1"


def test_what_a_point_is_worth():
    found = given(communication_share=0.2, bandwidth_efficiency=0.6, price_usd=2.0)
    worth = {row.what: row for row in found.worth()}
    # scaling 0.90 -> 0.91 is 1/90 more: 111 GPUs, at 2 USD and 8,766 h a year.
    assert worth["scaling"].gpus == pytest.approx(10_000 / 90)
    assert worth["scaling"].usd_per_year == pytest.approx(10_000 / 90 * 2 * 8766)
    # A step of 0.8 + 0.2 x 60/61.
    assert worth["bandwidth_efficiency"].gpus == pytest.approx(10_000 * (1 / (0.8 + 0.2 * 60 / 61) - 1))
    # Nothing is above 1.
    assert given(bandwidth_efficiency=1.0).worth()[0].gpus == 0
    assert given(utilisation=1.0).worth()[-1].gpus == 0


def test_from_60_to_95_percent():
    # The claim is 5 to 10 % of the step; it holds for communication shares of 13.6 to 27 %.
    for share, saved in ((0.1357, 0.05), (0.2714, 0.10)):
        assert 1 - 1 / more_throughput(share, 0.60, 0.95) == pytest.approx(saved, abs=1e-4)
    assert more_throughput(0.0, 0.6, 0.95) == 1
    assert more_throughput(1.0, 0.6, 0.95) == pytest.approx(0.95 / 0.6)


def test_goodput_is_taken_whole():
    goodput = training_goodput(JobParts(16_384))
    found = effective_compute(
        16_384, mfu=Factor(0.41, "test"), scaling=Factor(0.95, "test"), effective_time=goodput
    )
    assert found.effective_time.value == goodput.effective_time
    assert found.effective_time.kind == "computed"
    assert found.to_dict()["goodput"]["mtbf_s"] == goodput.mtbf_s
    # What scaling loses is communication, unless said otherwise.
    assert found.communication_share.value == pytest.approx(0.05)
    assert {found.pue.kind, found.utilisation.kind, found.price_usd.kind} == {"assumed"}
    assert len(effective_tables(found)) == 4


def test_the_chart():
    found = given()
    svg = draw_effective(found, "a <job>", ".svg").decode()
    assert "a &lt;job&gt;" in svg
    assert "MFU 50.0%" in svg
    assert f"{found.product:.1%} left" in svg
    page = draw_effective(found, "a <job>", ".html").decode()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
    assert "<?xml" not in page
    assert draw_effective(found, "a", "png").startswith(b"\x89PNG")
    with pytest.raises(OutputError):
        draw_effective(found, "a", ".pdf")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gpus": 0}, "gpus = 0 is too few"),
        ({"pue": 0.8}, r"PUE 0.8 is out of range(.|\n)*did you mean 1.25"),
        ({"pue": 0.0}, "PUE 0 is out of range"),
        ({"mfu": 45.0}, r"MFU 45 is out of range(.|\n)*did you mean 0.45"),
        ({"scaling": 0.0}, "scaling efficiency 0 is out of range"),
        ({"effective_time": 1.1}, "effective time 1.1 is out of range"),
        ({"utilisation": -0.1}, "utilisation -0.1 is out of range"),
        ({"bandwidth_efficiency": 2.0}, "bandwidth efficiency 2 is out of range"),
        ({"communication_share": 1.2}, "communication share 1.2 is out of range"),
        ({"price_usd": -1.0}, "price -1 USD per GPU-hour is out of range"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(ModelRangeError) as caught:
        given(**values)
    caught.match(message)
