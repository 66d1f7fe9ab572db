"""The text of a file of another program, read with limits; and its faults, gathered with their lines."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from netplan.errors import CatalogError, Fault, SpecError

#: The largest file that is read [bytes].
MOST_BYTES = 256 * 2**20

#: The longest line that is read [characters]: lists of switches are the longest of real files.
MOST_LINE = 2**20

#: Most nodes and cables of an imported fabric.
MOST_THINGS = 2_000_000

#: So many faults are spelled out; the rest are counted.
MOST_FAULTS = 20


@dataclass(frozen=True)
class Source:
    """A text and what to call it in messages."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends; only line feeds end lines."""
        return [line.removesuffix("\r") for line in self.text.split("\n")]


@dataclass
class Faults:
    """Faults of one source, gathered so that all are told at once."""

    source: Source
    found: list[Fault] = field(default_factory=list)
    more: int = 0

    def add(self, line: int | None, message: str, hint: str | None = None) -> None:
        """Add a fault at a line (from 1), or of the whole file."""
        if len(self.found) >= MOST_FAULTS:
            self.more += 1
            return
        where = self.source.name if line is None else f"{self.source.name}:{line}"
        self.found.append(Fault(where, message, hint))

    def refuse(self) -> None:
        """Raise when there are faults.

        Raises
        ------
        SpecError
            With all of them.
        """
        if not self.found:
            return
        found = list(self.found)
        if self.more:
            found.append(Fault(self.source.name, f"and {self.more:,} more faults"))
        raise SpecError(faults=found)


def shown(text: str, most: int = 60) -> str:
    """Return a text as it may stand in a message: quoted, escaped, not longer than ``most``."""
    return repr(text if len(text) <= most else text[:most] + "...")


def read_source(path: str) -> Source:
    """Read a file, or ``-`` for standard input.

    Bytes that are not UTF-8 become U+FFFD: names in real dumps hold anything, and are made safe later.

    Raises
    ------
    CatalogError
        It cannot be read, or is too large.
    """
    label = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        elif Path(path).is_dir():
            raise CatalogError(f"{path!r} is a folder, not a file", hint="name a file in it")
        else:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CatalogError(f"file {path!r} cannot be read: {reason}", hint="check the path") from None
    return source_of(content, label)


def source_of(content: bytes, label: str) -> Source:
    """Return bytes as a source.

    Raises
    ------
    CatalogError
        It is too large, empty, or has a line beyond `MOST_LINE`.
    """
    if len(content) > MOST_BYTES:
        raise CatalogError(f"file {label!r} is larger than {MOST_BYTES // 2**20} MiB", hint="is it a fabric?")
    if content[:2] in (b"\x1f\x8b", b"PK", b"BZ"):
        raise CatalogError(f"file {label!r} is compressed", hint="unpack it first")
    source = Source(label, content.decode("utf-8-sig", "replace"))
    if not source.text.strip():
        raise CatalogError(f"file {label!r} is empty")
    for number, line in enumerate(source.lines, 1):
        if len(line) > MOST_LINE:
            raise CatalogError(
                f"{label}:{number}: has {len(line):,} characters in one line; at most {MOST_LINE:,} are read",
                hint="is it a text file of this format?",
            )
    return source
