"""What a picture shows and where, for any renderer.

A `Scene` is boxes, lines between them, areas around them, free texts and a legend, all placed, in
one unit (a renderer may scale it; a font size is in the same unit). Renderers decide how a box
looks in their format; they neither measure nor choose texts: every text here fits its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Font sizes of the texts in boxes.
LABEL_SIZE = 12.0
SUBLABEL_SIZE = 10.0

#: Least room between the text of a box and its edges, left and right.
BOX_PADDING = 3.0

#: How far the cards behind a stacked box stick out, to the right and upwards.
STACK_OFFSET = 3.0


@dataclass(frozen=True, slots=True)
class Box:
    """One thing, or a stack of equal ones."""

    id: str
    """Unique in the scene; lines refer to it."""
    x: float
    y: float
    w: float
    h: float
    label: str
    """Fits the box in `LABEL_SIZE`."""
    sublabel: str
    """Fits the box in `SUBLABEL_SIZE`; may be empty."""
    kind: str
    """Tier: ``host``, ``leaf``, ``spine``, ``core`` or ``metro``."""
    count: int
    """How many things the box stands for."""
    group: str
    """Id of the area that it is in; empty outside of all areas."""
    title: str
    """Full text for a tooltip."""
    fill: str
    """Colour of the face, as ``#rrggbb``, like all colours."""
    stroke: str
    stacked: bool = False
    """Stands for several things: drawn as a pile of cards."""
    folded: bool = False
    """Stands for things left out of the picture: drawn with a dashed edge."""
    stripes: tuple[str, ...] = ()
    """Colours of a narrow band at the lower edge: the rails in a stack of several."""
    failed: int = 0
    """How many of them failed or are cut off."""


@dataclass(frozen=True, slots=True)
class Line:
    """Cables between two boxes, all of one kind and speed."""

    source: str
    """Id of the box nearer to the hosts."""
    target: str
    kind: str
    """Name from `netplan.fabric.LINK_KINDS`."""
    count: int
    """Cables that the line stands for."""
    rate: float
    """Line rate of each cable, per direction [bytes/s]."""
    points: tuple[tuple[float, float], ...]
    """The way from source to target; empty when both are one box and nothing is drawn."""
    width: float
    colour: str
    dashed: bool
    label: str
    """What is written on the line, as `Scene.texts` has it; empty when there was no room."""
    title: str
    """Full text for a tooltip."""
    failed: int = 0
    """How many of the cables failed or lost an end."""


@dataclass(frozen=True, slots=True)
class Area:
    """A titled rectangle around boxes: a pod, a rail, a block of hosts, a site."""

    id: str
    x: float
    y: float
    w: float
    h: float
    kind: Literal["site", "column"]
    label: str
    """Its title as `Scene.texts` has it."""
    title: str
    """Full text for a tooltip."""
    fill: str
    stroke: str
    folded: bool = False
    """Stands for things left out of the picture: drawn with a dashed edge."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text outside of boxes."""

    x: float
    y: float
    """Baseline."""
    text: str
    size: float
    colour: str
    bold: bool = False
    anchor: Literal["start", "middle", "end"] = "start"
    backdrop: str = ""
    """Colour laid under the text, so that lines below it do not strike it out; none when empty."""


@dataclass(frozen=True, slots=True)
class LegendItem:
    """A sample of a colour or line; its explanation stands beside it in `Scene.texts`."""

    x: float
    y: float
    """Top left corner of the sample."""
    kind: Literal["box", "stack", "folded", "line", "dashed"]
    fill: str
    stroke: str
    label: str


#: Size of the samples of a legend.
SAMPLE_WIDTH = 20.0
SAMPLE_HEIGHT = 12.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture of a fabric, ready to be drawn: areas, then lines, boxes, texts and legend."""

    title: str
    """What is shown, in one line; also among the texts."""
    width: float
    height: float
    areas: tuple[Area, ...]
    lines: tuple[Line, ...]
    boxes: tuple[Box, ...]
    texts: tuple[Text, ...]
    legend: tuple[LegendItem, ...]
