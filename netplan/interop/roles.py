"""Host or switch, tier, speed: from the attributes of a plain graph, else from names and degrees."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from netplan.errors import UnitError
from netplan.units import parse_length, parse_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROLE_KEYS = ("kind", "role", "type", "function", "group", "class", "layer")
_HOST = re.compile(r"host|server|gpu|compute|node|nic|hca|worker", re.IGNORECASE)
_SWITCH = re.compile(r"switch|leaf|spine|core|super|tor\b|aggr|edge|fabric|router|agg|metro", re.IGNORECASE)
_HOST_NAME = re.compile(
    r"(?:^|[/._-])(host|server|srv|gpu|node|compute|worker|dgx|hgx|h\d|n\d)", re.IGNORECASE
)
_TIERS = {
    "leaf": 1,
    "tor": 1,
    "edge": 1,
    "spine": 2,
    "aggregation": 2,
    "agg": 2,
    "core": 3,
    "superspine": 3,
    "super-spine": 3,
    "metro": 4,
}
_MOST_RATE_TEXT = 64
_RATE_KEYS = ("speed", "bandwidth", "rate", "capacity", "bw", "label")


def role(attributes: Mapping[str, str]) -> bool | None:
    """Return whether attributes say that a node is a host; None when they say nothing.

    >>> role({"kind": "leaf"}), role({"role": "server"}), role({"x": "1"})
    (False, True, None)
    """
    folded = {key.casefold(): value for key, value in attributes.items()}
    for key in _ROLE_KEYS:
        value = folded.get(key, "")
        if _SWITCH.search(value):
            return False
        if _HOST.search(value):
            return True
    return None


def tier(attributes: Mapping[str, str]) -> int | None:
    """Return the tier that attributes say, 1 to 4."""
    folded = {key.casefold(): value for key, value in attributes.items()}
    text = folded.get("tier", "")
    if text in ("1", "2", "3", "4"):
        return int(text)
    return next(
        (_TIERS[value] for key in _ROLE_KEYS if (value := folded.get(key, "").casefold()) in _TIERS), None
    )


def guess_host(name: str, degree: int) -> bool:
    """Return whether a node without a role is a host: by its name, else when one cable leads to it."""
    if _SWITCH.search(name):
        return False
    return bool(_HOST_NAME.search(name)) or degree == 1


def rate(attributes: Mapping[str, str]) -> float | None:
    """Return the speed that attributes say [bytes/s]; ``capacity`` as a number is in bytes/s.

    >>> rate({"speed": "400G"}), rate({"capacity": "50000000000.0"}), rate({"label": "x"})
    (50000000000.0, 50000000000.0, None)
    """
    folded = {key.casefold(): value for key, value in attributes.items()}
    if "linkspeedraw" in folded:  # the Internet Topology Zoo's: bit/s
        return _number(folded["linkspeedraw"], 8)
    for key in _RATE_KEYS:
        value = folded.get(key)
        if value is None:
            continue
        if key == "capacity" and (number := _number(value, 1)) is not None:
            return number
        if len(value) <= _MOST_RATE_TEXT and (parsed := _parsed_rate(value)) is not None:
            return parsed
    return None


@lru_cache(maxsize=1024)
def _parsed_rate(text: str) -> float | None:
    """Return a rate with a unit; None for what is none. A file of 10,000 cables has a few."""
    try:
        return parse_rate(text)
    except UnitError:
        return None


def length(attributes: Mapping[str, str]) -> float | None:
    """Return the length that attributes say [m]: a number of metres, or a text with a unit."""
    value = attributes.get("length")
    if value is None:
        return None
    if (number := _number(value, 1)) is not None:
        return number
    try:
        return parse_length(value)
    except UnitError:
        return None


def whole(attributes: Mapping[str, str], key: str, most: int) -> int | None:
    """Return a whole number from 0 to ``most`` that attributes say."""
    text = attributes.get(key, "")
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and int(text) <= most else None


def _number(text: str, divisor: float) -> float | None:
    try:
        number = float(text) / divisor
    except ValueError:
        return None
    return number if 0 <= number < 1e15 else None  # noqa: PLR2004 -- neither NaN nor beyond any speed
