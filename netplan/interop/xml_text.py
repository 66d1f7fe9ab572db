"""XML of other programs, read without what makes XML dangerous: no document types, no entities, no depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from netplan.errors import Fault, SpecError
from netplan.interop.source import MOST_THINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.interop.source import Source

#: Elements inside one another; real files need about ten.
_MOST_DEPTH = 64


@dataclass
class Element:
    """An element with its line."""

    tag: str
    """Name without its namespace."""
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Yield this element and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, tag: str) -> list[Element]:
        """Return the children of a name."""
        return [child for child in self.children if child.tag == tag]


def read_xml(source: Source) -> Element:
    """Return the root element.

    Raises
    ------
    SpecError
        It is not XML, or has a document type or entities (a way to make a small file huge), or is too deep.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    stack: list[Element] = []
    roots: list[Element] = []
    count = 0

    def refuse(message: str) -> None:
        raise SpecError(faults=[Fault(f"{source.name}:{parser.CurrentLineNumber}", message)])

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) >= _MOST_DEPTH:
            refuse(f"has elements over {_MOST_DEPTH} deep")
        if count > 4 * MOST_THINGS:
            refuse(f"has over {4 * MOST_THINGS:,} elements")
        element = Element(tag.rsplit(" ", 1)[-1], attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def text(data: str) -> None:
        if stack:
            stack[-1].text += data

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = text
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = lambda *_: refuse(
        "has a document type (DOCTYPE): such files are not read"
    )
    parser.EntityDeclHandler = lambda *_: refuse("declares an entity: such files are not read")
    try:
        parser.Parse(source.text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        fault = Fault(f"{source.name}:{error.lineno}", f"is not XML: {expat.errors.messages[error.code]}")
        raise SpecError(faults=[fault]) from None
    return roots[0]


def escape(value: object) -> str:
    """Return a value as it may stand between tags."""
    return attribute(value)[1:-1].replace("<", "&lt;").replace(">", "&gt;")


def attribute(value: object) -> str:
    """Return a value quoted as an attribute; what XML cannot hold becomes U+FFFD."""
    text = "".join(
        c if c >= " " and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff" else "\ufffd"
        for c in str(value)
    )
    return quoteattr(text)
