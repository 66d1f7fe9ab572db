"""A `Fabric` in, a picture of it out: ``draw_fabric`` lays out, a renderer writes.

`draw_fabric` makes a `Scene`: a neutral, placed description. `RENDERERS` turn scenes into files,
one format a module; `render_diagram` does both. Small fabrics are drawn node by node, large ones
as stacks with counts, because a full drawing of some thousand nodes is a grey slab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan.report.diagram.layout import COLLAPSES, draw_fabric
from netplan.report.diagram.registry import RENDERERS, Renderer, find_renderer
from netplan.report.diagram.scene import Scene

if TYPE_CHECKING:
    from netplan.fabric import Fabric

__all__ = [
    "COLLAPSES",
    "RENDERERS",
    "Renderer",
    "Scene",
    "draw_fabric",
    "find_renderer",
    "render_diagram",
]


def render_diagram(
    fabric: Fabric, suffix_or_format: str, *, collapse: str = "auto", damaged: Fabric | None = None
) -> bytes:
    """Draw a fabric as the bytes of a file.

    Parameters
    ----------
    fabric
        Any fabric.
    suffix_or_format
        Name of a renderer, or the suffix of its files: ``svg`` or ``.svg``.
    collapse
        How much is drawn as one box, as in `draw_fabric`.
    damaged
        The fabric after failures: what it has lost is marked, as in `draw_fabric`.

    Returns
    -------
    bytes
        The file; the same bytes for the same fabric.

    Raises
    ------
    OutputError
        The format or the way to collapse is not one of those there are (all are listed), or the
        fabric is too large to be drawn node by node.
    """
    chosen = find_renderer(suffix_or_format)  # before the work of drawing
    return chosen.render(draw_fabric(fabric, collapse=collapse, damaged=damaged))
