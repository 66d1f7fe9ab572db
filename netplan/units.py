"""Text with a unit in, SI out, and back: the only place that knows units.

Inside netplan a quantity is a plain number: **bytes, seconds, bytes per second, metres**. Outside, in YAML
and on the command line, it carries its unit: ``400G``, ``1 GiB``, ``150 us``, ``30 km``. There is one parser
for each dimension, so that ``400G`` is never gauss and a length is never taken where a time is due.

Rates count decimal bits (``400G`` = 400 Gb/s = 5e10 B/s) unless they say ``B``; kB, MB, GB are powers of 1000
and KiB, MiB, GiB powers of 1024. Arithmetic is exact up to the last step: ``0.1 GB`` is 100,000,000 bytes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

from netplan.errors import UnitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "BITS_PER_BYTE",
    "FIBRE_DELAY_S_PER_M",
    "LENGTH_PATTERN",
    "RATE_PATTERN",
    "SIZE_PATTERN",
    "TIME_PATTERN",
    "UnitError",
    "format_count",
    "format_length",
    "format_rate",
    "format_size",
    "format_time",
    "parse_length",
    "parse_rate",
    "parse_size",
    "parse_time",
]

#: Bits in a byte [bit/B].
BITS_PER_BYTE = 8

#: One-way propagation delay of optical fibre [s/m]: 5.05 us/km. Source: SONiC's buffer model (light at
#: 198,000 km/s) and the HPE/Juniper laboratory fit (5.05 us/km).
FIBRE_DELAY_S_PER_M = 5.05e-9

#: Largest size [B]: byte counts live in int64 columns.
_MAX_SIZE = 2**63 - 1

#: Decimal exponents that are still a quantity and not a slip of the keyboard. Also what keeps
#: ``1e999999999 B`` from being written out as an integer.
_MAX_EXPONENT = 30

#: Longest text that is read as a quantity; longer text is shown cut.
_MAX_TEXT = 60

#: Significant digits that the formatters print.
_DIGITS = 4

#: Zeros that the formatters print at most, before or behind the digits.
_MAX_ZEROS = 9

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_QUANTITY = re.compile(rf"(?P<number>[+-]?{_NUMBER})\s*(?P<unit>[^\W\d_].*|)", re.DOTALL)
_NOT_A_NUMBER = re.compile(r"[+-]?\.?(?:nan|inf|infinity)\b.*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class _Dimension:
    """The units of one physical dimension, and what to say when a text has none of them."""

    noun: str
    """What the quantity is called, with its article."""
    accepted: str
    """The accepted units and examples, for messages."""
    scale: Mapping[str, Fraction]
    """SI value of one of each unit."""
    bare: str
    """Hint for a number without a unit; ``{n}`` is the number."""
    slips: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Units that people write, with those they may have meant (besides letters in the wrong case)."""

    def meant(self, unit: str) -> list[str]:
        """Return the accepted units that somebody who wrote `unit` may have meant, one spelling of each."""
        if unit in self.slips:
            return list(self.slips[unit])
        by_scale: dict[Fraction, str] = {}
        for accepted, scale in self.scale.items():
            if _folded(accepted) == _folded(unit):
                by_scale.setdefault(scale, accepted)
        return list(by_scale.values())


def _folded(unit: str) -> str:
    # "GBps" could be either of Gb/s and GB/s: fold the spellings of "per second" together before comparing.
    return unit.casefold().replace(" ", "").replace("bps", "b/s").replace("bit/s", "b/s")


def _slips(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {slip: tuple(meant.split()) for slips, meant in table.items() for slip in slips.split()}


def _pattern(scale: Mapping[str, Fraction]) -> str:
    return rf"^\s*{_NUMBER}\s*(?:{'|'.join(re.escape(unit) for unit in scale)})\s*$"


_DECIMAL: dict[str, Fraction] = {
    "": Fraction(1),
    "k": Fraction(1000),
    "K": Fraction(1000),
    "M": Fraction(1000**2),
    "G": Fraction(1000**3),
    "T": Fraction(1000**4),
    "P": Fraction(1000**5),
}
_BINARY: dict[str, Fraction] = {
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
}
_PREFIXES = {**_DECIMAL, **_BINARY}
_BIT = Fraction(1, BITS_PER_BYTE)

_RATE = _Dimension(
    noun="a rate",
    accepted="bits per second as 400G or 400 Gb/s, bytes per second as 50 GB/s or 50 GiB/s (k, M, G, T, P)",
    scale={
        **{prefix + "b/s": scale * _BIT for prefix, scale in _DECIMAL.items()},
        **{prefix + "B/s": scale for prefix, scale in _PREFIXES.items()},
        **{prefix: scale * _BIT for prefix, scale in _DECIMAL.items() if prefix},
        **{prefix + tail: scale * _BIT for tail in ("bit/s", "bps") for prefix, scale in _DECIMAL.items()},
    },
    bare="write {n}G for {n} Gb/s, or {n} GB/s for bytes per second",
    slips={
        **{prefix + "b": (prefix + "b/s",) for prefix in _DECIMAL},
        **{prefix + "B": (prefix + "B/s",) for prefix in _PREFIXES},
        **{prefix + "Bps": (prefix + "B/s", prefix + "b/s") for prefix in _DECIMAL},
        **{prefix: (prefix[0] + "b/s", prefix + "B/s") for prefix in _BINARY},
        **_slips({"GE GbE": "G", "TE TbE": "T"}),
    },
)
_SIZE = _Dimension(
    noun="a size",
    accepted="B, kB, MB, GB, TB, PB (powers of 1000) or KiB, MiB, GiB, TiB, PiB (powers of 1024), as 1 GiB",
    scale={prefix + "B": scale for prefix, scale in _PREFIXES.items()},
    bare="write {n} B for bytes, or {n} MiB for mebibytes",
    slips={
        **{prefix: (prefix + "B", prefix.upper() + "iB") for prefix in _DECIMAL if prefix},
        **{prefix: (prefix + "B",) for prefix in _BINARY},
        **_slips({"byte bytes Byte Bytes": "B"}),
    },
)
_TIME = _Dimension(
    noun="a time",
    accepted="ns, us (or \N{MICRO SIGN}s), ms, s, min, h, d, as 150 us",
    scale={
        "ns": Fraction(1, 1000**3),
        "us": Fraction(1, 1000**2),
        "\N{MICRO SIGN}s": Fraction(1, 1000**2),
        "\N{GREEK SMALL LETTER MU}s": Fraction(1, 1000**2),
        "ms": Fraction(1, 1000),
        "s": Fraction(1),
        "min": Fraction(60),
        "h": Fraction(3600),
        "d": Fraction(86400),
    },
    bare="write {n} us for microseconds, or {n} s for seconds",
    slips=_slips(
        {
            "n nsec nanosecond nanoseconds": "ns",
            "u usec microsecond microseconds": "us",
            "msec millisecond milliseconds": "ms",
            "sec secs second seconds": "s",
            "m M": "min ms",
            "mins minute minutes": "min",
            "hr hrs hour hours": "h",
            "day days": "d",
        }
    ),
)
_LENGTH = _Dimension(
    noun="a length",
    accepted="mm, cm, m, km, as 30 km",
    scale={"mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1), "km": Fraction(1000)},
    bare="write {n} m for metres, or {n} km for kilometres",
    slips=_slips(
        {
            "metre metres meter meters": "m",
            "k K kilometre kilometres kilometer kilometers": "km",
        }
    ),
)


#: Regular expressions (for Python and ECMAScript) of the texts that the parsers accept, for JSON Schema.
RATE_PATTERN = _pattern(_RATE.scale)
SIZE_PATTERN = _pattern(_SIZE.scale)
TIME_PATTERN = _pattern(_TIME.scale)
LENGTH_PATTERN = _pattern(_LENGTH.scale)


def parse_rate(text: object) -> float:
    """Read a rate.

    Parameters
    ----------
    text : str
        ``400G``, ``400Gb/s``, ``400 Gbit/s`` and ``400Gbps`` are 400e9 bits per second; ``50 GB/s`` and
        ``50 GiB/s`` are bytes per second. Prefixes k (or K), M, G, T, P.

    Returns
    -------
    float
        The rate [bytes/s], >= 0.

    Raises
    ------
    UnitError
        If `text` is a bare number, negative, not finite, empty, or has a unit that is not one of a rate.

    Examples
    --------
    >>> parse_rate("400G")
    50000000000.0
    >>> parse_rate("50 GB/s")
    50000000000.0
    """
    return float(_parse(text, _RATE))


def parse_size(text: object) -> int:
    """Read an amount of data.

    Parameters
    ----------
    text : str
        ``1 GiB`` (powers of 1024) or ``1 GB`` (powers of 1000); B, and k, M, G, T, P before it. ``1 G`` is
        refused, since it is either.

    Returns
    -------
    int
        The size [bytes], >= 0 and < 2**63.

    Raises
    ------
    UnitError
        As `parse_rate`; also if the size is not a whole number of bytes.

    Examples
    --------
    >>> parse_size("1 GiB")
    1073741824
    >>> parse_size("0.1 GB")
    100000000
    """
    size = _parse(text, _SIZE)
    if size.denominator != 1:
        below = math.floor(size)
        reason = f"is {float(size):.10g} bytes: a size must be a whole number of bytes"
        raise _refusal(text, reason, f"write {below} B or {below + 1} B")
    if size > _MAX_SIZE:
        reason = "is too large: a size must be below 8192 PiB (2**63 bytes)"
        raise _refusal(text, reason, "check the number and its unit")
    return int(size)


def parse_time(text: object) -> float:
    """Read a time.

    Parameters
    ----------
    text : str
        ``150 us``; units ns, us (or µs), ms, s, min, h, d.

    Returns
    -------
    float
        The time [s], >= 0.

    Raises
    ------
    UnitError
        As `parse_rate`.

    Examples
    --------
    >>> parse_time("150 us")
    0.00015
    """
    return float(_parse(text, _TIME))


def parse_length(text: object) -> float:
    """Read a length.

    Parameters
    ----------
    text : str
        ``30 km``; units mm, cm, m, km.

    Returns
    -------
    float
        The length [m], >= 0.

    Raises
    ------
    UnitError
        As `parse_rate`.

    Examples
    --------
    >>> parse_length("30 km")
    30000.0
    """
    return float(_parse(text, _LENGTH))


def format_rate(rate: float, *, style: Literal["bits", "bytes"] = "bits") -> str:
    """Write a rate for people.

    Parameters
    ----------
    rate : float
        The rate [bytes/s].
    style : {"bits", "bytes"}
        ``bits`` for the speed of a port (``400G``), ``bytes`` for data delivered (``50.0 GB/s``).

    Returns
    -------
    str
        The rate; `parse_rate` reads it back, to four significant digits in bits.

    Examples
    --------
    >>> format_rate(5e10)
    '400G'
    >>> format_rate(5e10, style="bytes")
    '50.0 GB/s'
    """
    if style == "bytes":
        number, unit = _scaled(rate, _STEPS_BYTE_RATE, lambda value: f"{value:.1f}")
        return f"{number} {unit}"
    number, unit = _scaled(rate * BITS_PER_BYTE, _STEPS_BIT_RATE, _short)
    # A port speed is written without a space (400G); below 1 kb/s there is no prefix to stand for the unit.
    return f"{number}{unit}" if unit in _DECIMAL else f"{number} {unit}"


def format_size(size: float) -> str:
    """Write an amount of data for people.

    Parameters
    ----------
    size : int or float
        The size [bytes].

    Returns
    -------
    str
        Powers of 1024 when that is exact and no longer than powers of 1000 (``4 KiB``, but ``16 MB`` and not
        ``15625 KiB``); else powers of 1000, to four significant digits.

    Examples
    --------
    >>> format_size(2**30), format_size(100_000_000), format_size(1_234_567)
    ('1 GiB', '100 MB', '1.235 MB')
    """
    decimal, unit = _scaled(size, _STEPS_SIZE, _short)
    if not math.isfinite(size) or size != int(size):
        return f"{decimal} {unit}"
    decimal_is_exact = Decimal(decimal) * int(_SIZE.scale[unit]) == int(size)
    for prefix, scale in reversed(_BINARY.items()):
        count, rest = divmod(int(size), int(scale))
        if count and not rest and (len(str(count)) <= len(decimal) or not decimal_is_exact):
            return f"{count} {prefix}B"
    return f"{decimal} {unit}"


def format_time(time: float) -> str:
    """Write a time for people.

    Parameters
    ----------
    time : float
        The time [s].

    Returns
    -------
    str
        The time to four significant digits, in ns, us, ms, s, and from 10 minutes in min, from 2 hours in h,
        from 2 days in d.

    Examples
    --------
    >>> format_time(150e-6), format_time(90.0), format_time(5400.0)
    ('150 us', '90 s', '90 min')
    """
    number, unit = _scaled(time, _STEPS_TIME, _short)
    return f"{number} {unit}"


def format_length(length: float) -> str:
    """Write a length for people.

    Parameters
    ----------
    length : float
        The length [m].

    Returns
    -------
    str
        The length to four significant digits, in mm below 10 cm, else m or km.

    Examples
    --------
    >>> format_length(30_000.0), format_length(0.5)
    ('30 km', '0.5 m')
    """
    number, unit = _scaled(length, _STEPS_LENGTH, _short)
    return f"{number} {unit}"


def format_count(count: int) -> str:
    """Write a count for people, with separators of thousands.

    Parameters
    ----------
    count : int
        The count.

    Returns
    -------
    str
        The count.

    Examples
    --------
    >>> format_count(131072)
    '131,072'
    """
    return f"{count:,}"


class _Step(NamedTuple):
    """A unit of the formatters and where its use begins, both in SI."""

    begins: float
    scale: float
    unit: str


def _decimal_steps(unit: str) -> list[_Step]:
    return [
        _Step(float(scale), float(scale), prefix + unit)
        for prefix, scale in _DECIMAL.items()
        if prefix != "K"
    ]


_STEPS_BIT_RATE = [_Step(1.0, 1.0, "b/s"), *_decimal_steps("")[1:]]
_STEPS_BYTE_RATE = _decimal_steps("B/s")
_STEPS_SIZE = _decimal_steps("B")
_STEPS_TIME = [
    _Step(1e-9, 1e-9, "ns"),
    _Step(1e-6, 1e-6, "us"),
    _Step(1e-3, 1e-3, "ms"),
    _Step(1.0, 1.0, "s"),
    # 90 s says more than 1.5 min: the long units begin late.
    _Step(600.0, 60.0, "min"),
    _Step(7200.0, 3600.0, "h"),
    _Step(172_800.0, 86_400.0, "d"),
]
_STEPS_LENGTH = [_Step(1e-3, 1e-3, "mm"), _Step(0.1, 1.0, "m"), _Step(1e3, 1e3, "km")]


def _scaled(value: float, steps: Sequence[_Step], write: Callable[[float], str]) -> tuple[str, str]:
    """Choose the unit for `value`; return the number, written by `write`, and the unit."""
    if value == 0 or not math.isfinite(value):
        base = next(step.unit for step in steps if step.scale == 1.0)
        return f"{value:g}", base
    # Round before choosing, so that 999.99 MB is 1 GB and not 1000 MB.
    magnitude = float(f"{abs(value):.{_DIGITS}g}")
    step = next((step for step in reversed(steps) if step.begins <= magnitude), steps[0])
    return write(value / step.scale), step.unit


def _short(value: float) -> str:
    """Write `value` to four significant digits, with an exponent only where nobody could count the zeros."""
    short = f"{value:.{_DIGITS}g}"
    is_readable = 10.0**-_MAX_ZEROS < abs(value) < 10.0**_MAX_ZEROS
    return format(Decimal(short), "f") if is_readable else short


def _parse(text: object, dimension: _Dimension) -> Fraction:
    """Read `text` as a quantity of `dimension`, exactly, in SI."""
    is_not = f"is not {dimension.noun}"
    accepted = f"accepted: {dimension.accepted}"
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise _refusal(text, f"{is_not}; {accepted}", "write a number with its unit")
    quantity = text.strip() if isinstance(text, str) else _shown(text)
    if not quantity:
        raise _refusal(text, f"{is_not}: it is empty; {accepted}", "write a number with its unit")
    if _NOT_A_NUMBER.fullmatch(quantity):
        raise _refusal(text, f"{is_not}: it is not finite; {accepted}", "write a number with its unit")
    match = _QUANTITY.fullmatch(quantity) if len(quantity) <= _MAX_TEXT else None
    if match is None:
        hint = "write a decimal number (a point, no separators), then its unit"
        raise _refusal(text, f"{is_not}; {accepted}", hint)
    number, unit = match["number"], match["unit"]
    if not unit:
        raise _refusal(text, f"{is_not}: it has no unit; {accepted}", dimension.bare.format(n=number))
    scale = dimension.scale.get(unit)
    if scale is None:
        hint = _unit_hint(number, unit, dimension)
        raise _refusal(text, f"{is_not}: it has the unit {unit!r}; {accepted}", hint)
    value = Decimal(number)
    if value < 0:
        hint = f"write {quantity.removeprefix('-')}"
        raise _refusal(text, f"is negative: {dimension.noun} must be 0 or more; {accepted}", hint)
    if value and abs(value.adjusted()) > _MAX_EXPONENT:
        reason = f"is out of range: the power of ten must be within {_MAX_EXPONENT} of 0"
        raise _refusal(text, reason, "check the exponent")
    return Fraction(value) * scale


def _refusal(value: object, reason: str, hint: str) -> UnitError:
    return UnitError(reason, value=_shown(value), hint=hint)


def _unit_hint(number: str, unit: str, dimension: _Dimension) -> str:
    # A bare prefix is the speed of a port, written 400G.
    meant = [number + word if word in _DECIMAL else f"{number} {word}" for word in dimension.meant(unit)]
    if not meant:
        return "check the unit and the case of its letters"
    hint = f"write {' or '.join(meant)}"
    is_about_bits = "b" in unit.casefold() and "b" in hint.casefold()
    return f"{hint}; b is bits, B is bytes" if is_about_bits else hint


def _shown(value: object) -> str:
    """Write what the user gave, in quotes if it is text, on one line of bearable length."""
    if isinstance(value, int) and value.bit_length() > _MAX_TEXT * 4:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write out very long ones
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[: _MAX_TEXT - 3]}..."
