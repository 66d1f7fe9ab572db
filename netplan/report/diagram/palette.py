"""Colours that stay apart for colour-blind readers, on screens and in print.

Rails take the colours of Okabe and Ito (https://jfly.uni-koeln.de/color/). Where a fabric has
rails, the tiers above the leaves are grey: colour then means rail and nothing else.
"""

from __future__ import annotations

#: Rail colours; rail 8 starts again, a shade darker (`rail_colour`).
OKABE_ITO = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f")

#: Colour of each tier in a fabric without rails, host first.
TIER_COLOURS = ("#7f8794", "#56b4e9", "#009e73", "#e69f00", "#cc79a7")

#: Colour of each tier in a fabric with rails.
GREY_TIERS = ("#7f8794", "#64748b", "#64748b", "#475569", "#334155")

INK = "#1f2937"
FAINT = "#5b6472"
WARNING = "#b45309"
LINE = "#8a94a3"
SITE_LINK = "#6d28d9"
FAILED = "#c81e1e"
PAPER = "#ffffff"
AREA_FILL = "#f7f8fa"
AREA_STROKE = "#cbd2da"
SITE_FILL = "#fdfdfe"
SITE_STROKE = "#aab3bf"


def mix(colour: str, other: str, share: float) -> str:
    """Return ``colour`` with ``share`` of another in it.

    Examples
    --------
    >>> mix("#000000", "#ffffff", 0.5)
    '#808080'
    """
    a, b = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in (colour, other))
    return "#" + "".join(f"{int(x + (y - x) * share + 0.5):02x}" for x, y in zip(a, b, strict=True))


def rail_colour(rail: int) -> str:
    """Return the colour of a rail; each round through the palette is a shade darker."""
    rounds, place = divmod(rail, len(OKABE_ITO))
    return mix(OKABE_ITO[place], "#000000", min(0.28 * rounds, 0.7))


def face(colour: str, plane: int = -1) -> str:
    """Return the face of a box with an edge of ``colour``: pale enough to read on; planes by shade."""
    return mix(colour, PAPER, max(0.8 - 0.14 * max(plane, 0), 0.4))


def edge(colour: str) -> str:
    """Return a colour fit for edges and lines on white: yellow, too, is to be seen."""
    return mix(colour, "#000000", 0.18)
