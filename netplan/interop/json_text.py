"""JSON of other programs: one document or several one after another, with limits and lines."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never

from netplan.interop.source import Faults

if TYPE_CHECKING:
    from netplan.interop.source import Source


@dataclass(frozen=True)
class Document:
    """One JSON value of a source."""

    source: Source
    data: Any
    start: int
    """Place of its first character."""
    end: int

    @cached_property
    def _ends(self) -> list[int]:
        return [i for i, letter in enumerate(self.source.text) if letter == "\n"]

    def line(self, *keys: str) -> int:
        """Return the line where these keys stand, one after the other; of the last that is found."""
        at = self.start
        for key in keys:
            found = self.source.text.find(json.dumps(key), at, self.end)
            if found < 0:
                found = self.source.text.find(json.dumps(key, ensure_ascii=False), at, self.end)
            if found < 0:
                break
            at = found
        return bisect_right(self._ends, at - 1) + 1


def _finite(word: str) -> Never:
    raise ValueError(f"{word} is no number of JSON")


def read_json(source: Source) -> list[Document]:
    """Return the JSON values of a source, one or several.

    Raises
    ------
    SpecError
        It is not JSON, or nested too deeply; with the line.
    """
    decoder = json.JSONDecoder(parse_constant=_finite)
    text, at, found = source.text, 0, list[Document]()
    faults = Faults(source)
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at == len(text):
            return found
        line = text.count("\n", 0, at) + 1
        try:
            data, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            faults.add(error.lineno, f"is not JSON: {error.msg}", "is the file whole?")
        except RecursionError:
            faults.add(line, "is nested too deeply")
        except ValueError as error:
            faults.add(line, f"is not JSON: {str(error)[:80]}")
        else:
            found.append(Document(source, data, at, end))
            at = end
        faults.refuse()
