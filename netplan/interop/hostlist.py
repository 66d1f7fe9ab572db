"""Slurm's host lists: ``h[0-3,7],gpu01``, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Most names that one list may stand for.
MOST_NAMES = 262_144

_NUMBERED = re.compile(r"(.*?)(\d{1,18})")


def write_hostlist(names: Iterable[str]) -> str:
    """Return names as one list, consecutive numbers as ranges.

    >>> write_hostlist(["h0", "h1", "h2", "h5", "login"])
    'h[0-2,5],login'
    >>> write_hostlist(["n08", "n09", "n10"])
    'n[08-10]'
    """
    groups: dict[tuple[str, int], list[int]] = {}
    alone: list[str] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is None:
            alone.append(name)
            continue
        digits = found[2]
        width = len(digits)
        # Slurm pads to the width of the lower bound: numbers without a leading zero pad to nothing.
        key = (found[1], width if digits.startswith("0") and width > 1 else 0)
        groups.setdefault(key, []).append(int(digits))
    # Padded numbers that have outgrown their zeros (n08, n10) belong with those that have not.
    for prefix, width in [key for key in groups if key[1] > 0]:
        plain = groups.get((prefix, 0), [])
        grown = [number for number in plain if len(str(number)) == width]
        if grown:
            groups[prefix, width] += grown
            groups[prefix, 0] = [number for number in plain if len(str(number)) != width]
    parts = []
    for (prefix, width), numbers in groups.items():
        if not numbers:
            continue
        ranges = list(_ranges(sorted(set(numbers)), width))
        text = ",".join(ranges)
        parts.append(f"{prefix}{text}" if len(ranges) == 1 and "-" not in text else f"{prefix}[{text}]")
    return ",".join([*parts, *alone])


def _ranges(numbers: list[int], width: int) -> Iterator[str]:
    """Yield runs of consecutive numbers."""
    start = last = numbers[0]
    for number in [*numbers[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        yield f"{start:0{width}d}" if start == last else f"{start:0{width}d}-{last:0{width}d}"
        if number is not None:
            start = last = number


def read_hostlist(text: str) -> list[str]:
    """Return the names that a list stands for.

    Raises
    ------
    ValueError
        It is not a host list, or stands for more than `MOST_NAMES`; the text says what is wrong.

    Examples
    --------
    >>> read_hostlist("h[0-2,5],login")
    ['h0', 'h1', 'h2', 'h5', 'login']
    """
    names: list[str] = []
    for item in _items(text):
        made = [""]
        for fixed, inside in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", item):
            ends = [fixed] if fixed else list(_numbers(inside))
            if len(made) * len(ends) > MOST_NAMES:
                msg = f"stands for more than {MOST_NAMES:,} names"
                raise ValueError(msg)
            made = [start + end for start in made for end in ends]
        names += made
        if len(names) > MOST_NAMES:
            msg = f"stands for more than {MOST_NAMES:,} names"
            raise ValueError(msg)
    return names


def _items(text: str) -> Iterator[str]:
    """Yield what commas outside of brackets part."""
    depth, start = 0, 0
    for i, char in enumerate(f"{text},"):
        depth += (char == "[") - (char == "]")
        if depth not in (0, 1):
            msg = "has brackets that do not match"
            raise ValueError(msg)
        if char == "," and not depth:
            item = text[start:i].strip()
            if not item or re.search(r"[\s={}\"']", item):
                msg = "has an empty name" if not item else f"has the name {item!r}"
                raise ValueError(msg)
            yield item
            start = i + 1
    if depth:
        msg = "has brackets that do not match"
        raise ValueError(msg)


def _numbers(inside: str) -> Iterator[str]:
    """Yield the numbers between brackets."""
    for part in inside.split(","):
        found = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part, re.ASCII)
        if found is None:
            msg = f"has [{inside[:40]}], which is no list of numbers"
            raise ValueError(msg)
        low, high = found[1], found[2] or found[1]
        if int(high) < int(low):
            msg = f"has the range {part.strip()}, which runs backwards"
            raise ValueError(msg)
        if int(high) - int(low) >= MOST_NAMES:
            msg = f"stands for more than {MOST_NAMES:,} names"
            raise ValueError(msg)
        width = len(low) if low.startswith("0") else 0
        yield from (f"{number:0{width}d}" for number in range(int(low), int(high) + 1))
