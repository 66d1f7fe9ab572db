"""The renderers, by name: each turns a `Scene` into the bytes of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import OutputError
from netplan.registry import Registry

if TYPE_CHECKING:
    from netplan.report.diagram.scene import Scene

    _Render = Callable[[Scene], bytes]


@dataclass(frozen=True)
class Renderer:
    """A format that diagrams can be written in."""

    name: str
    suffix: str
    """Suffix of its files, with the dot."""
    summary: str
    """What it is good for, in a sentence."""
    render: _Render
    """Draw a scene."""


#: Every renderer by name; adding a renderer adds its file here.
RENDERERS: Registry[Renderer] = Registry(
    "diagram format", "netplan.report.diagram", ("svg", "png", "html"), OutputError
)


def renderer(name: str, *, suffix: str, summary: str) -> Callable[[_Render], _Render]:
    """Register the function below as a renderer."""

    def register(render: _Render) -> _Render:
        RENDERERS.add(name, render.__module__, Renderer(name, suffix, summary, render))
        return render

    return register


def find_renderer(format_: str) -> Renderer:
    """Return the renderer of a format, given by its name or by a file's suffix, in any case.

    Raises
    ------
    OutputError
        There is none; the message lists the formats there are.
    """
    wanted = format_.casefold()
    return next((r for r in RENDERERS if r.suffix == wanted), None) or RENDERERS.find(
        wanted.removeprefix(".")
    )
