"""Types of the fields of specifications: quantities with units, counts, ratios and names.

A quantity is text in YAML (``400G``), a plain SI number in Python, and text again when a model is written out
with ``model_dump(mode="json")``. A number without a unit is refused in YAML and JSON; a model that is built
in Python takes both ``speed="400G"`` and ``speed=5e10``. Limits may be added in SI, as in
``Annotated[Length, Gt(0)]``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Le
from pydantic import AfterValidator, BeforeValidator, PlainSerializer, Strict, ValidationInfo, WithJsonSchema

from netplan import units
from netplan.spec.base import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["MAX_COUNT", "Count", "Duration", "Length", "Name", "Rate", "Ratio", "Size", "written_by"]

#: Largest count of anything. A fabric has some hundred thousand endpoints; more than this is a slip.
MAX_COUNT = 10_000_000

#: Longest name.
_MAX_NAME = 64

_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _reader(parse: Callable[[object], float]) -> BeforeValidator:
    def read(value: object, info: ValidationInfo) -> float:
        if info.mode == "python" and isinstance(value, (int, float)) and not isinstance(value, bool):
            if not 0 <= value < math.inf:
                message = f"is {value}: a quantity must be finite, and 0 or more"
                raise Refusal(message)
            return value
        try:
            return parse(value)
        except units.UnitError as error:
            raise Refusal(error.reason, hint=error.hint) from None

    return BeforeValidator(read)


@dataclass(frozen=True)
class _Writer:
    """Write a quantity as text that is read back as the same number."""

    format: Callable[[float], str]
    parse: Callable[[object], float]
    si_unit: str

    def __call__(self, value: float) -> str:
        # The formatters round for people, so they do only where nothing is lost.
        text = self.format(value)
        try:
            is_exact = self.parse(text) == value
        except units.UnitError:  # a model built in Python may hold what no text could say
            is_exact = False
        return text if is_exact else f"{value!r} {self.si_unit}"


def _writer(write: Callable[[float], str], parse: Callable[[object], float], si_unit: str) -> PlainSerializer:
    return PlainSerializer(_Writer(write, parse, si_unit), return_type=str, when_used="json")


def _schema(pattern: str, description: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": "string", "pattern": pattern, "description": description, "examples": list(examples)}
    )


def written_by(schema: Mapping[str, Any]) -> Callable[[float], str] | None:
    """Return the function that writes values of a type as text with a unit.

    Parameters
    ----------
    schema : CoreSchema
        Pydantic's core schema of the type.

    Returns
    -------
    callable or None
        The function; None when the type is not one of a quantity.
    """
    inner: Mapping[str, Any] | None = schema
    while inner is not None:
        function = inner.get("serialization", {}).get("function")
        if isinstance(function, _Writer):
            return function
        inner = inner.get("schema")
    return None


def _check_name(name: str) -> str:
    if len(name) > _MAX_NAME:
        message = f"has {len(name)} characters: a name has at most {_MAX_NAME}"
        raise Refusal(message, hint="shorten it")
    if not re.fullmatch(_NAME_PATTERN[1:-1], name):
        message = "is not a name: it must begin with a letter or a digit, and go on with these or . _ -"
        better = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")
        raise Refusal(message, hint=f"write {better}" if better else "write a word such as rail-2k")
    return name


Rate = Annotated[
    float,
    _reader(units.parse_rate),
    _writer(units.format_rate, units.parse_rate, "B/s"),
    _schema(units.RATE_PATTERN, "Rate in bits (400G) or bytes (50 GB/s) per second", "400G", "50 GB/s"),
]
"""Rate [bytes/s], written ``400G`` or ``50 GB/s``."""

Size = Annotated[
    int,
    _reader(units.parse_size),
    _writer(units.format_size, units.parse_size, "B"),
    _schema(units.SIZE_PATTERN, "Amount of data, a whole number of bytes", "1 GiB", "16 MB"),
]
"""Amount of data [bytes], written ``1 GiB`` or ``16 MB``."""

Duration = Annotated[
    float,
    _reader(units.parse_time),
    _writer(units.format_time, units.parse_time, "s"),
    _schema(units.TIME_PATTERN, "Time", "150 us", "2 h"),
]
"""Time [s], written ``150 us``."""

Length = Annotated[
    float,
    _reader(units.parse_length),
    _writer(units.format_length, units.parse_length, "m"),
    _schema(units.LENGTH_PATTERN, "Length", "30 km", "2.5 m"),
]
"""Length [m], written ``30 km``."""

# Not Field(ge=1): with pydantic 2.10, a Field inside a type that several fields use can carry the default of
# one over to another, which is then no longer required.
Count = Annotated[int, Strict(), Ge(1), Le(MAX_COUNT)]
"""Whole number from 1 to `MAX_COUNT`."""

Ratio = Annotated[float, Strict(), Ge(0)]
"""Number without a unit, 0 or more; narrow it with ``Annotated[Ratio, Le(1)]``."""

Name = Annotated[
    str,
    Strict(),
    AfterValidator(_check_name),
    WithJsonSchema(
        {"type": "string", "pattern": _NAME_PATTERN, "maxLength": _MAX_NAME, "examples": ["rail-2k"]}
    ),
]
"""Name of a thing: letters, digits, ``.``, ``_`` and ``-``, at most 64, the first a letter or a digit."""
