"""Widths of text, estimated without a font, and ways to make text fit.

A picture is laid out once and shown with whatever font the reader's system has. The widths here
are those of DejaVu Sans, the widest of the usual ones, rounded up: what fits here fits everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Width of characters as a share of the font size.
_WIDTHS = {
    **dict.fromkeys("ijl'|", 0.34),
    **dict.fromkeys('I.,:; ftr()[]-/!"\\`', 0.42),
    "·": 0.34,
    **dict.fromkeys("abcdeghknopqsuvxyz_?*$", 0.65),
    **dict.fromkeys("0123456789", 0.65),
    **dict.fromkeys("ABCEFJKLPRSTVXYZ{}", 0.7),
    **dict.fromkeys("DGHNOQU&<>=+~^#×−", 0.85),
    **dict.fromkeys("mwMW@%…—–", 1.0),
}

#: Width of any other character: those of East Asian scripts are as wide as high.
_OTHER = 1.0

#: Bold letters are this much wider.
_BOLD = 1.12

ELLIPSIS = "…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is at most, in the unit of ``size``.

    Examples
    --------
    >>> round(text_width("leaf-3", 10), 1)
    31.3
    """
    width = sum(_WIDTHS.get(letter, _OTHER) for letter in text) * size
    return width * _BOLD if bold else width


def shorten(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """Return the text, with its middle replaced by an ellipsis where it is wider than ``width``.

    The middle goes because names that people and generators give differ at the end.

    Examples
    --------
    >>> shorten("row-7-rack-12-leaf-03", 80, 10)
    'row-7-…af-03'
    """
    if text_width(text, size, bold=bold) <= width:
        return text
    for kept in range(len(text) - 1, 0, -1):
        head = (kept + 1) // 2
        short = text[:head].rstrip() + ELLIPSIS + text[len(text) - (kept - head) :].lstrip()
        if text_width(short, size, bold=bold) <= width:
            return short
    return ELLIPSIS if text_width(ELLIPSIS, size, bold=bold) <= width else ""


def fit(options: Sequence[str], width: float, size: float, *, bold: bool = False) -> str:
    """Return the first of several wordings that fits; the last one shortened when none does."""
    for option in options:
        if text_width(option, size, bold=bold) <= width:
            return option
    return shorten(options[-1], width, size, bold=bold) if options else ""
