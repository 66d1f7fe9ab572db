"""Choose how finely to draw a fabric, and draw it.

``collapse`` says what becomes one box:

``none``
    Nothing: every host and switch is a box; only parallel cables are one line.
``pod``
    All hosts, leaves and spines of a pod, each tier one box. A plane of one pod is called a plane.
``rail``
    The leaves of each rail of a pod; where pods are by rail, all pods of a rail.
``auto``
    As little as keeps the picture readable (`MOST_BOXES`, `MOST_LINES`, `WIDEST`).

Direct networks (dragonfly, torus, ...) have no rows of tiers: `netplan.report.diagram.direct` draws them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import OutputError, did_you_mean
from netplan.fabric import TIER_NAMES
from netplan.report.diagram.cells import (
    LEAF,
    Grain,
    count_blocks,
    group_fabric,
)
from netplan.report.diagram.direct import draw_direct
from netplan.report.diagram.drawing import Drawing
from netplan.report.diagram.failed import Failed
from netplan.units import format_count

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.report.diagram.scene import Scene

#: Ways to collapse a fabric.
COLLAPSES = ("auto", "none", "pod", "rail")

#: What a readable picture has at most.
MOST_BOXES = 72
MOST_LINES = 120
WIDEST = 1720.0

#: Node by node is refused above this many nodes: nobody can read it, few programs open it.
MOST_NODES = 2000

_EVERYTHING = 10**9


def draw_fabric(fabric: Fabric, *, collapse: str = "auto", damaged: Fabric | None = None) -> Scene:
    """Lay out a fabric as a picture.

    Parameters
    ----------
    fabric
        Any fabric.
    collapse
        ``auto``, ``none``, ``pod`` or ``rail`` (see the module).
    damaged
        The fabric after failures: what it has lost is marked.

    Returns
    -------
    Scene
        Placed boxes, lines and texts; the same for the same fabric.

    Raises
    ------
    OutputError
        ``collapse`` is none of these, or is ``none`` for more than `MOST_NODES` nodes.
    """
    if collapse not in COLLAPSES:
        raise OutputError(
            f"collapse = {collapse!r} is not one of {', '.join(COLLAPSES)}",
            hint=did_you_mean(collapse, COLLAPSES),
        )
    failed = None if damaged is None or damaged.damage is None else Failed.of(fabric, damaged)
    if collapse == "auto" and fabric.direct is None:
        return _draw_readable(fabric, failed)
    if collapse == "none" and fabric.n_nodes > MOST_NODES:
        raise OutputError(
            f"{fabric.name}: collapse = 'none' draws all {format_count(fabric.n_nodes)} nodes; "
            f"it does so up to {format_count(MOST_NODES)}",
            hint="use auto, pod or rail",
        )
    if fabric.direct is not None:
        return draw_direct(fabric, collapse, failed)
    grain = _chosen_grain(fabric, collapse)
    return Drawing(fabric, group_fabric(fabric, grain), failed).scene()


def _chosen_grain(fabric: Fabric, collapse: str) -> Grain:
    pods = _Pods.of(fabric)
    if collapse == "none":
        return Grain(pods.finest, "node", "node", "node", "node", "node", most_columns=_EVERYTHING)
    if collapse == "pod":
        return Grain(pods.word, "column", "column", "column", "column")
    if pods.by_rail:
        return Grain("rail", "column", "column", "column", "column")
    return Grain(pods.word, "column", "rail", "column", "column", most_columns=4)


def _draw_readable(fabric: Fabric, failed: Failed | None) -> Scene:
    """Draw as finely as is readable."""
    *finer, coarsest = _grains(fabric)
    for grain in finer:
        grouping = group_fabric(fabric, grain)
        if len(grouping.cells) > MOST_BOXES or len(grouping.bundles) > MOST_LINES:
            continue
        scene = Drawing(fabric, grouping, failed).scene()
        if scene.width <= WIDEST:
            return scene
    return Drawing(fabric, group_fabric(fabric, coarsest), failed).scene()


@dataclass(frozen=True)
class _Pods:
    """How the leaves of a fabric are divided."""

    count: int
    """Pods of the site that has most."""
    rails: int
    planes: int
    """Planes; 0 where leaves have none."""
    by_rail: bool
    """Several pods, each of one rail."""
    finest: Literal["one", "pod", "plane", "block"]
    """What the columns are when every leaf is drawn: planes, else pods, else blocks where these are alike."""

    @property
    def word(self) -> Literal["pod", "plane"]:
        """What a pod is called: a plane, where every plane is one pod."""
        return "plane" if self.planes == self.count > 1 else "pod"

    @classmethod
    def of(cls, fabric: Fabric) -> _Pods:
        nodes = fabric.nodes
        leaves = np.flatnonzero(nodes.tier == LEAF)
        site, pod, rail = (c[leaves].astype(np.int64) for c in (nodes.site, nodes.pod, nodes.rail))
        key = site * (int(pod.max(initial=0)) + 2) + pod + 1
        pods, first = np.unique(key, return_index=True)
        pods_with_rails = np.unique(np.stack([key, rail]), axis=1)
        count = int(np.bincount(site[first]).max(initial=0))
        rails = len(np.unique(rail[rail >= 0]))
        by_rail = count > 1 and rails > 1 and pods_with_rails.shape[1] == len(pods) and int(rail.min()) >= 0
        planes = len(np.unique(nodes.plane[leaves][nodes.plane[leaves] >= 0]))
        if count > 1:
            return cls(count, rails, planes, by_rail, "plane" if planes > 1 else "pod")
        # Blocks of one leaf (all NICs of a host on it) or of a leaf per rail; of mixed sizes, as
        # in a custom fabric, they say nothing.
        block = site * (fabric.n_nodes + 1) + count_blocks(fabric)[leaves]
        sizes = np.unique(block, return_counts=True)[1]
        alike = len(sizes) > 0 and sizes.min() == sizes.max()
        return cls(count, rails, planes, by_rail, "block" if alike else "one")


def _grains(fabric: Fabric) -> Iterator[Grain]:
    """Yield the ways to draw a fabric, finest first; the last is readable whatever the fabric."""
    pods = _Pods.of(fabric)
    tier_counts = np.bincount(fabric.nodes.tier, minlength=len(TIER_NAMES))
    n_switches, n_leaves = int(tier_counts[LEAF:].sum()), int(tier_counts[LEAF])
    if fabric.n_nodes <= MOST_BOXES:
        yield Grain(pods.finest, "node", "node", "node", "node")
    if n_switches <= MOST_BOXES:
        yield Grain(pods.finest, "group", "node", "node", "node")
    if n_leaves <= MOST_BOXES:
        yield Grain(pods.finest, "group", "node", "column", "column")
    if pods.planes > 1:
        leaf: Literal["rail", "column"] = "rail" if pods.rails > 1 and pods.planes <= 4 else "column"  # noqa: PLR2004 -- so many planes show their rails
        yield Grain("plane", "column", leaf, "column", "column")
        yield Grain("plane", "column", "column", "column", "column", most_columns=4)
    elif pods.count <= 1:
        yield Grain("block", "group", "rail", "column", "column", most_columns=4)
    elif pods.by_rail and pods.count > pods.rails:
        yield Grain("rail", "column", "column", "column", "column")
    elif pods.count <= 4:  # noqa: PLR2004 -- so many pods show their rails side by side
        yield Grain("pod", "column", "rail", "column", "column")
    if pods.count > 1 >= pods.planes:
        yield Grain("pod", "column", "column", "column", "column")
        yield Grain("pod", "column", "column", "column", "column", most_columns=4)
    yield Grain("one", "column", "rail", "column", "column")
    yield Grain("one", "column", "column", "column", "column")
