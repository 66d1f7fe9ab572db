"""YAML of other programs: any root, lines kept, aliases and depth limited as in specs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netplan.errors import Fault, SpecError
from netplan.spec.text import parse_yaml

if TYPE_CHECKING:
    from netplan.interop.source import Source

_KEY = "document"


def read_yaml(source: Source) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """Return the data of one YAML document, and the line where each value begins.

    Raises
    ------
    SpecError
        It is not YAML, or too much of it (aliases, depth); with lines.
    """
    # A spec's root is a map: the document is put below a key, so that it may be a list.
    lines = [" " + line if line.strip() not in ("---", "...") else "" for line in source.lines]
    text = f"{_KEY}:\n" + "\n".join(lines)
    try:
        found = parse_yaml(text, source.name)
    except SpecError as error:
        raise SpecError(faults=[_moved(fault, source.name) for fault in error.faults]) from None
    marks = {path[1:]: line - 1 for path, line in found.marks.items() if path}
    return found.data[_KEY], marks


def _moved(fault: Fault, name: str) -> Fault:
    """Return a fault with its line in the file."""
    label, _, line = fault.where.rpartition(":")
    where = f"{label}:{max(int(line) - 1, 1)}" if label == name and line.isdigit() else fault.where
    return Fault(where, fault.message, fault.hint)
