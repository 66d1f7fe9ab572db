"""Types of fields: text in, SI inside, the same text out, and what each refusal says."""

import math
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from netplan.errors import SpecError
from netplan.spec.base import SpecModel
from netplan.spec.quantity import MAX_COUNT, Count, Duration, Length, Name, Rate, Ratio, Size, written_by
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate


class Everything(SpecModel):
    """One field of each type."""

    rate: Rate = 5e10
    size: Size = 2**30
    time: Duration = 150e-6
    span: Annotated[Length, Field(gt=0, le=200e3)] = 30e3
    count: Count = 4
    ratio: Ratio = 1.0
    name: Name = "rail-2k"
    rates: tuple[Rate, ...] = ()
    limit: Rate | None = None


def read(text: str) -> Everything:
    return validate(Everything, parse_yaml(text, "x.yaml"))


def fault(text: str) -> tuple[str, str | None]:
    with pytest.raises(SpecError) as caught:
        read(text)
    (only,) = caught.value.faults
    assert only.where == "x.yaml:1"
    return only.message, only.hint


def test_text_becomes_si() -> None:
    value = read(
        "{rate: 400G, size: 16 MB, time: 2 ms, span: 10 km, count: 8, ratio: 2, rates: [1T], limit: 8k}"
    )
    assert value == Everything(
        rate=5e10, size=16_000_000, time=2e-3, span=1e4, count=8, ratio=2.0, rates=(1.25e11,), limit=1000.0
    )
    assert type(value.size) is int
    assert type(value.ratio) is float


RATE = (
    "; accepted: bits per second as 400G or 400 Gb/s, bytes per second as 50 GB/s or 50 GiB/s (k, M, G, T, P)"
)
NUMBER = "write a number with its unit"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "rate: 400",
            f"rate = 400 is not a rate: it has no unit{RATE}",
            "write 400G for 400 Gb/s, or 400 GB/s for bytes per second",
        ),
        ("limit: .inf", f"limit = inf is not a rate: it is not finite{RATE}", NUMBER),
        ("rates: [1G, true]", f"rates[1] = true is not a rate{RATE}", NUMBER),
        ("rate: {a: 1}", f"rate is not a rate{RATE}", NUMBER),
        (
            "size: 1.5 B",
            "size = '1.5 B' is 1.5 bytes: a size must be a whole number of bytes",
            "write 1 B or 2 B",
        ),
        ("span: 0 m", "span = '0 m': must be more than 0 m", None),
        ("span: 300 km", "span = '300 km': must be at most 200 km", None),
        ("count: 0", "count = 0: must be at least 1", None),
        ("count: 10000001", "count = 10000001: must be at most 10,000,000", None),
        ("count: true", "count = true: must be a whole number", None),
        ("count: 4.0", "count = 4.0: must be a whole number", "write 4"),
        ("count: 4.5", "count = 4.5: must be a whole number", None),
        ("count: '4'", "count = '4': must be a whole number", "write 4 without quotes"),
        ("ratio: -0.5", "ratio = -0.5: must be at least 0", None),
        ("ratio: .nan", "ratio = nan: must be a finite number", None),
        ("ratio: '1'", "ratio = '1': must be a number", "write 1 without quotes"),
        ("ratio: true", "ratio = true: must be a number", None),
        (
            "name: my fabric!",
            (
                "name = 'my fabric!' is not a name: it must begin with a letter or a digit,"
                " and go on with these or . _ -"
            ),
            "write my-fabric",
        ),
        (
            "name: '*'",
            "name = '*' is not a name: it must begin with a letter or a digit, and go on with these or . _ -",
            "write a word such as rail-2k",
        ),
        (
            f"name: {'x' * 65}",
            f"name = '{'x' * 56}... has 65 characters: a name has at most 64",
            "shorten it",
        ),
        ("name: 8", "name = 8: must be text", 'write "8", in quotes'),
    ],
)
def test_refusals_say_value_and_way_out(text: str, message: str, hint: str | None) -> None:
    assert fault(text) == (message, hint)


def test_name_may_not_end_in_a_newline() -> None:
    assert fault(r'name: "rail\n"')[0].startswith(r"name = 'rail\n' is not a name")


@pytest.mark.parametrize("name", ["a", "8", "rail-2k", "B200_4su.v2", "x" * 64])
def test_names(name: str) -> None:
    assert read(f"name: '{name}'").name == name


def test_count_reaches_its_bound() -> None:
    assert read(f"count: {MAX_COUNT}").count == MAX_COUNT


def test_python_may_give_text_or_si() -> None:
    assert Everything.model_validate({"rate": "400G", "size": "1 GiB"}) == Everything(rate=5e10, size=2**30)
    value = Everything(rates=(1e9,))
    assert Everything.model_validate(value.model_dump()) == value


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_python_may_not_give_a_number_that_is_no_quantity(number: float) -> None:
    with pytest.raises(ValidationError, match=rf"is {number}: a quantity must be finite, and 0 or more"):
        Everything(rate=number)


def test_json_must_give_text() -> None:
    with pytest.raises(ValidationError, match="is not a rate: it has no unit"):
        Everything.model_validate_json('{"rate": 50000000000}')


def test_written_out_it_is_text_with_units() -> None:
    value = Everything(rates=(5e10,), limit=1543208750.125)
    assert value.model_dump(mode="json") == {
        "rate": "400G",
        "size": "1 GiB",
        "time": "150 us",
        "span": "30 km",
        "count": 4,
        "ratio": 1.0,
        "name": "rail-2k",
        "rates": ["400G"],
        "limit": "1543208750.125 B/s",
    }
    assert value.model_dump()["rate"] == 5e10


@given(
    rate=st.just(0.0) | st.floats(1e-20, 1e18),
    size=st.integers(0, 2**63 - 1),
    time=st.just(0.0) | st.floats(1e-20, 1e9),
    span=st.floats(1e-3, 2e5),
)
def test_written_out_and_read_it_is_the_same(rate: float, size: int, time: float, span: float) -> None:
    value = Everything(rate=rate, size=size, time=time, span=span, limit=rate)
    assert Everything.model_validate_json(value.model_dump_json(), strict=True) == value


def test_what_no_text_could_say_is_written_out_all_the_same() -> None:
    assert Everything(time=1e-200).model_dump(mode="json")["time"] == "1e-200 s"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Rate, 5e10, "400G"),
        (Annotated[Length, Field(gt=0)], 5e3, "5 km"),
        (Duration | None, 1.0, "1 s"),
    ],
)
def test_limits_can_be_written_with_their_unit(kind: Any, value: float, text: str) -> None:
    write = written_by(TypeAdapter(kind).core_schema)
    assert write is not None
    assert write(value) == text


def test_numbers_without_unit_have_no_writer() -> None:
    assert written_by(TypeAdapter(Count).core_schema) is None
