"""Quantities: what is accepted, what each refusal says, and that writing and reading agree."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netplan import units
from netplan.units import (
    UnitError,
    format_count,
    format_length,
    format_rate,
    format_size,
    format_time,
    parse_length,
    parse_rate,
    parse_size,
    parse_time,
)

Parser = Callable[[object], float]

PARSERS: list[Parser] = [parse_rate, parse_size, parse_time, parse_length]

ACCEPTED: list[tuple[Parser, str, float]] = [
    (parse_rate, "400G", 5e10),
    (parse_rate, "400 G", 5e10),
    (parse_rate, "  400Gb/s ", 5e10),
    (parse_rate, "400 Gbit/s", 5e10),
    (parse_rate, "400Gbps", 5e10),
    (parse_rate, "0.4T", 5e10),
    (parse_rate, "400e3 M", 5e10),
    (parse_rate, "8 b/s", 1.0),
    (parse_rate, "8k", 1000.0),
    (parse_rate, "8K", 1000.0),
    (parse_rate, "8P", 1e15),
    (parse_rate, "50 GB/s", 5e10),
    (parse_rate, "50 GiB/s", 50 * 2.0**30),
    (parse_rate, "0G", 0.0),
    (parse_rate, "-0G", 0.0),
    (parse_rate, "+1 B/s", 1.0),
    (parse_size, "1 GiB", 2**30),
    (parse_size, "0.1 GB", 100_000_000),
    (parse_size, "1.5 KiB", 1536),
    (parse_size, "1 kB", 1000),
    (parse_size, "1 KB", 1000),
    (parse_size, ".5TB", 500_000_000_000),
    (parse_size, "7 B", 7),
    (parse_size, "2 PiB", 2**51),
    (parse_size, "9223372036854775807 B", 2**63 - 1),
    (parse_time, "150 us", 150e-6),
    (parse_time, "150 \N{MICRO SIGN}s", 150e-6),
    (parse_time, "150\N{GREEK SMALL LETTER MU}s", 150e-6),
    (parse_time, "3 ns", 3e-9),
    (parse_time, "3 ms", 3e-3),
    (parse_time, "3 s", 3.0),
    (parse_time, "3 min", 180.0),
    (parse_time, "1.5 h", 5400.0),
    (parse_time, "2 d", 172800.0),
    (parse_length, "30 km", 30_000.0),
    (parse_length, "2.5 m", 2.5),
    (parse_length, "5 cm", 0.05),
    (parse_length, "5mm", 0.005),
]

RATES = (
    "accepted: bits per second as 400G or 400 Gb/s, bytes per second as 50 GB/s or 50 GiB/s (k, M, G, T, P)"
)
SIZES = (
    "accepted: B, kB, MB, GB, TB, PB (powers of 1000) or KiB, MiB, GiB, TiB, PiB (powers of 1024), as 1 GiB"
)
TIMES = "accepted: ns, us (or \N{MICRO SIGN}s), ms, s, min, h, d, as 150 us"
LENGTHS = "accepted: mm, cm, m, km, as 30 km"
CHECK = "check the unit and the case of its letters"
DECIMAL = "write a decimal number (a point, no separators), then its unit"
WITH_UNIT = "write a number with its unit"

REFUSED: list[tuple[Parser, object, str, str]] = [
    # A number without a unit, as text and as YAML reads it.
    (
        parse_rate,
        "400",
        f"'400' is not a rate: it has no unit; {RATES}",
        "write 400G for 400 Gb/s, or 400 GB/s for bytes per second",
    ),
    (
        parse_rate,
        400,
        f"400 is not a rate: it has no unit; {RATES}",
        "write 400G for 400 Gb/s, or 400 GB/s for bytes per second",
    ),
    (
        parse_size,
        "1e6",
        f"'1e6' is not a size: it has no unit; {SIZES}",
        "write 1e6 B for bytes, or 1e6 MiB for mebibytes",
    ),
    (
        parse_time,
        1.5,
        f"1.5 is not a time: it has no unit; {TIMES}",
        "write 1.5 us for microseconds, or 1.5 s for seconds",
    ),
    (
        parse_length,
        "30",
        f"'30' is not a length: it has no unit; {LENGTHS}",
        "write 30 m for metres, or 30 km for kilometres",
    ),
    # No number at all.
    (parse_rate, "", f"'' is not a rate: it is empty; {RATES}", WITH_UNIT),
    (parse_rate, "  ", f"'  ' is not a rate: it is empty; {RATES}", WITH_UNIT),
    (parse_rate, "nan", f"'nan' is not a rate: it is not finite; {RATES}", WITH_UNIT),
    (parse_time, "inf s", f"'inf s' is not a time: it is not finite; {TIMES}", WITH_UNIT),
    (parse_time, math.inf, f"inf is not a time: it is not finite; {TIMES}", WITH_UNIT),
    (parse_length, "-.inf", f"'-.inf' is not a length: it is not finite; {LENGTHS}", WITH_UNIT),
    (parse_rate, None, f"None is not a rate; {RATES}", WITH_UNIT),
    (parse_rate, True, f"True is not a rate; {RATES}", WITH_UNIT),
    (parse_rate, "fast", f"'fast' is not a rate; {RATES}", DECIMAL),
    (parse_rate, "400,5G", f"'400,5G' is not a rate; {RATES}", DECIMAL),
    (parse_rate, "1_000G", f"'1_000G' is not a rate; {RATES}", DECIMAL),
    (parse_rate, "x" * 99, f"'{'x' * 56}... is not a rate; {RATES}", DECIMAL),
    (parse_rate, 10**80, f"an integer of 266 bits is not a rate; {RATES}", DECIMAL),
    # A unit of another kind, or in the wrong case.
    (parse_rate, "400g", f"'400g' is not a rate: it has the unit 'g'; {RATES}", "write 400G"),
    (parse_rate, "400 GbE", f"'400 GbE' is not a rate: it has the unit 'GbE'; {RATES}", "write 400G"),
    (
        parse_rate,
        "400 gb/s",
        f"'400 gb/s' is not a rate: it has the unit 'gb/s'; {RATES}",
        "write 400 Gb/s or 400 GB/s; b is bits, B is bytes",
    ),
    (
        parse_rate,
        "50GBps",
        f"'50GBps' is not a rate: it has the unit 'GBps'; {RATES}",
        "write 50 GB/s or 50 Gb/s; b is bits, B is bytes",
    ),
    (
        parse_rate,
        "50 GB",
        f"'50 GB' is not a rate: it has the unit 'GB'; {RATES}",
        "write 50 GB/s; b is bits, B is bytes",
    ),
    (parse_rate, "4 km", f"'4 km' is not a rate: it has the unit 'km'; {RATES}", CHECK),
    (parse_size, "1 G", f"'1 G' is not a size: it has the unit 'G'; {SIZES}", "write 1 GB or 1 GiB"),
    (parse_size, "1k", f"'1k' is not a size: it has the unit 'k'; {SIZES}", "write 1 kB or 1 KiB"),
    (parse_size, "1 Gi", f"'1 Gi' is not a size: it has the unit 'Gi'; {SIZES}", "write 1 GiB"),
    (
        parse_size,
        "1 kib",
        f"'1 kib' is not a size: it has the unit 'kib'; {SIZES}",
        "write 1 KiB; b is bits, B is bytes",
    ),
    (
        parse_size,
        "1 Gb",
        f"'1 Gb' is not a size: it has the unit 'Gb'; {SIZES}",
        "write 1 GB; b is bits, B is bytes",
    ),
    (parse_time, "5 m", f"'5 m' is not a time: it has the unit 'm'; {TIMES}", "write 5 min or 5 ms"),
    (parse_time, "5 US", f"'5 US' is not a time: it has the unit 'US'; {TIMES}", "write 5 us"),
    (parse_time, "5 sec", f"'5 sec' is not a time: it has the unit 'sec'; {TIMES}", "write 5 s"),
    (parse_length, "3 KM", f"'3 KM' is not a length: it has the unit 'KM'; {LENGTHS}", "write 3 km"),
    (parse_length, "3 miles", f"'3 miles' is not a length: it has the unit 'miles'; {LENGTHS}", CHECK),
    # Out of range.
    (parse_rate, "-4G", f"'-4G' is negative: a rate must be 0 or more; {RATES}", "write 4G"),
    (
        parse_rate,
        "1e999999999G",
        "'1e999999999G' is out of range: the power of ten must be within 30 of 0",
        "check the exponent",
    ),
    (
        parse_size,
        "1.5 B",
        "'1.5 B' is 1.5 bytes: a size must be a whole number of bytes",
        "write 1 B or 2 B",
    ),
    (
        parse_size,
        "8192 PiB",
        "'8192 PiB' is too large: a size must be below 8192 PiB (2**63 bytes)",
        "check the number and its unit",
    ),
]


@pytest.mark.parametrize(("parse", "text", "value"), ACCEPTED)
def test_accepted_texts_have_their_exact_value(parse: Parser, text: str, value: float) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(("parse", "text", "message", "hint"), REFUSED)
def test_refusals_say_value_and_way_out(parse: Parser, text: object, message: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.hint == hint


def test_sizes_are_whole_python_integers() -> None:
    assert type(parse_size("1 GiB")) is int


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.text(max_size=20) | st.from_regex(r"-?[0-9.]{1,4}(e[0-9]{1,3})? ?[a-zA-Z/]{0,5}"))
def test_any_text_is_read_or_refused(parse: Parser, text: str) -> None:
    try:
        value = parse(text)
    except UnitError:
        return
    assert value >= 0
    assert math.isfinite(value)


NICE = st.integers(0, 9999)


@given(number=NICE, scale=st.sampled_from([1e3, 1e6, 1e9, 1e12]))
def test_rate_is_read_back(number: int, scale: float) -> None:
    rate = number * scale / 8
    assert parse_rate(format_rate(rate)) == rate


@given(tenths=st.integers(0, 9999), scale=st.sampled_from([1e3, 1e6, 1e9, 1e12]))
def test_rate_in_bytes_is_read_back(tenths: int, scale: float) -> None:
    rate = tenths * scale / 10
    assert parse_rate(format_rate(rate, style="bytes")) == pytest.approx(rate, rel=1e-3)


@given(number=NICE, unit=st.sampled_from(["B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "TiB"]))
def test_size_is_read_back(number: int, unit: str) -> None:
    size = parse_size(f"{number} {unit}")
    assert parse_size(format_size(size)) == size


@given(number=st.integers(1, 999), unit=st.sampled_from(["ns", "us", "ms", "s", "min", "h", "d"]))
@example(number=150, unit="us")
def test_time_is_read_back(number: int, unit: str) -> None:
    time = parse_time(f"{number} {unit}")
    assert parse_time(format_time(time)) == pytest.approx(time, rel=1e-3)
    if unit in {"ns", "us", "ms"}:
        assert format_time(time) == f"{number} {unit}"


@given(number=NICE, unit=st.sampled_from(["mm", "m", "km"]))
def test_length_is_read_back(number: int, unit: str) -> None:
    length = parse_length(f"{number} {unit}")
    assert parse_length(format_length(length)) == length


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e10, "400G"),
        (2e11, "1.6T"),
        (1.25e8, "1G"),
        (12.5, "100 b/s"),
        (0.0, "0 b/s"),
        (math.inf, "inf b/s"),
        (-5e10, "-400G"),
        (1234.5678e9 / 8, "1.235T"),
        (999_999e9 / 8, "1P"),
    ],
)
def test_format_rate(value: float, text: str) -> None:
    assert format_rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e10, "50.0 GB/s"),
        (1.25e8, "125.0 MB/s"),
        (0.0, "0 B/s"),
        (999.99e9, "1.0 TB/s"),
        (math.nan, "nan B/s"),
    ],
)
def test_format_rate_in_bytes(value: float, text: str) -> None:
    assert format_rate(value, style="bytes") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1000, "1 kB"),
        (1024, "1 KiB"),
        (1536 * 1024, "1536 KiB"),
        (16_000_000, "16 MB"),
        (2**30, "1 GiB"),
        (1_234_567, "1.235 MB"),
        (999_999_999, "1 GB"),
        (1.5, "1.5 B"),
        (math.inf, "inf B"),
        (-1024, "-1 KiB"),
    ],
)
def test_format_size(value: float, text: str) -> None:
    assert format_size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (1e-25, "1e-16 ns"),
        (1e20, "1.157e+15 d"),
        (1e-10, "0.1 ns"),
        (150e-6, "150 us"),
        (0.99999, "1 s"),
        (90.0, "90 s"),
        (600.0, "10 min"),
        (5400.0, "90 min"),
        (7200.0, "2 h"),
        (259_200.0, "3 d"),
        (math.inf, "inf s"),
        (-2e-3, "-2 ms"),
    ],
)
def test_format_time(value: float, text: str) -> None:
    assert format_time(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 m"), (0.003, "3 mm"), (0.5, "0.5 m"), (50.0, "50 m"), (30_000.0, "30 km")]
)
def test_format_length(value: float, text: str) -> None:
    assert format_length(value) == text


def test_format_count() -> None:
    assert format_count(131072) == "131,072"
    assert format_count(0) == "0"


def test_fibre_delay_is_light_in_glass() -> None:
    # By hand: SONiC counts light at 198,000 km/s, which is 5.0505 us/km.
    assert pytest.approx(1 / 198e6, rel=1e-3) == units.FIBRE_DELAY_S_PER_M
    assert units.BITS_PER_BYTE == 8


@pytest.mark.parametrize(
    ("parse", "pattern"),
    [
        (parse_rate, units.RATE_PATTERN),
        (parse_size, units.SIZE_PATTERN),
        (parse_time, units.TIME_PATTERN),
        (parse_length, units.LENGTH_PATTERN),
    ],
)
def test_pattern_accepts_what_the_parser_accepts(parse: Parser, pattern: str) -> None:
    for its_parser, text, _ in ACCEPTED:
        if its_parser is parse and not text.startswith(("+", "-")):
            assert re.search(pattern, text), text
    for its_parser, refused, _, _ in REFUSED:
        if its_parser is parse and isinstance(refused, str) and "unit" in (_reason(parse, refused)):
            assert not re.search(pattern, refused), refused


def _reason(parse: Parser, text: str) -> str:
    with pytest.raises(UnitError) as caught:
        parse(text)
    return caught.value.reason
