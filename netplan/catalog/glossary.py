"""The glossary: one text for the documentation and for ``netplan explain``.

``docs/concepts/glossary.md`` holds it, one ``### term`` heading each; it travels in the wheel as
``netplan/_shipped/glossary.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from netplan.errors import CatalogError

_PACKAGE = Path(__file__).resolve().parent.parent

#: Where the text is: inside an installed package, or beside it in a checkout.
_PLACES = (_PACKAGE / "_shipped" / "glossary.md", _PACKAGE.parent / "docs" / "concepts" / "glossary.md")

_TERM = re.compile(r"^### (?P<term>.+?)\s*$", re.MULTILINE)
_SECTION = re.compile(r"^##? .*$", re.MULTILINE)
_ALSO = re.compile(r"^Also: (?P<words>.+?)\.?$", re.MULTILINE)


@dataclass(frozen=True)
class Term:
    """One term."""

    term: str
    text: str
    """What it means, in Markdown, without the heading."""
    also: tuple[str, ...]
    """Other words under which it is found: the ``Also:`` line of the text."""


def load_glossary() -> tuple[Term, ...]:
    """Return all terms, in the order of the page.

    Raises
    ------
    CatalogError
        The installation has no glossary.
    """
    for path in _PLACES:
        if path.is_file():
            return parse_glossary(path.read_text(encoding="utf-8"))
    raise CatalogError("this installation of netplan has no glossary", hint="install netplan-rdma again")


def parse_glossary(text: str) -> tuple[Term, ...]:
    r"""Return the terms of a page.

    Examples
    --------
    >>> parse_glossary("# Glossary\n\n### rail\n\nNICs of equal index.\n\nAlso: rail group.\n")
    (Term(term='rail', text='NICs of equal index.\n\nAlso: rail group.', also=('rail group',)),)
    """
    terms = []
    heads = list(_TERM.finditer(text))
    for place, head in enumerate(heads):
        end = heads[place + 1].start() if place + 1 < len(heads) else len(text)
        body = _SECTION.split(text[head.end() : end], maxsplit=1)[0].strip()
        also = _ALSO.search(body)
        words = also["words"].replace("`", "").split(", ") if also else []
        terms.append(Term(head["term"].replace("`", ""), body, tuple(words)))
    return tuple(terms)
