"""What can fail alone in a fabric, in classes of elements with the same surroundings.

*Classes* come from colour refinement: nodes begin with their tier and size, and are told apart as
long as their neighbours (with number and speed of cables) differ. On folded Clos fabrics elements
of one class can be exchanged without changing the fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric import LINK_KINDS, TIER_NAMES
from netplan.kernels.hashing import mix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from netplan.fabric import Fabric

_INTER_SITE = LINK_KINDS.index("inter_site")


@dataclass(frozen=True)
class ElementClass:
    """Elements that can fail alone and are alike."""

    kind: str
    """Key of `RATES`."""
    failures: tuple[str, ...]
    """The failure of each, as ``--fail`` takes it."""
    length_km: float | None = None
    """Length of a fibre path."""


def node_colours(fabric: Fabric) -> NDArray[np.int64]:
    """(n_nodes,) number of the class that each node is in, by colour refinement."""
    nodes, links = fabric.nodes, fabric.links
    gpus = np.zeros(fabric.n_nodes, np.int64)
    gpus[fabric.host_ids] = fabric.gpus_per_host
    colour = np.unique(mix(nodes.tier, gpus), return_inverse=True)[1].astype(np.int64)
    edge = mix(links.kind, links.capacity.view(np.int64), links.length.view(np.int64))
    while True:
        around = np.zeros(fabric.n_nodes, np.uint64)
        np.add.at(around, links.src, mix(edge, colour[links.dst]))
        finer = np.unique(mix(colour, around), return_inverse=True)[1].astype(np.int64)
        if finer.max(initial=0) == colour.max(initial=0):
            return finer
        colour = finer


def element_classes(fabric: Fabric) -> list[ElementClass]:
    """Return the classes of all elements that can fail alone, from the NICs up."""
    return [
        *_nic_classes(fabric),
        *_cable_classes(fabric),
        *_switch_classes(fabric),
        *_span_classes(fabric),
        *_site_classes(fabric),
    ]


def _grouped(key: NDArray[np.integer], kind: str, text: Callable[[int], str]) -> Iterator[ElementClass]:
    """Yield a class for each key, in order of its first element."""
    if not len(key):
        return
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    for number in np.argsort(first):
        yield ElementClass(kind, tuple(text(int(i)) for i in np.flatnonzero(place == number)))


def _nic_classes(fabric: Fabric) -> Iterator[ElementClass]:
    """NICs, with all their ports."""
    ends, colour = fabric.endpoints, node_colours(fabric)
    nic = ends.host.astype(np.int64) * (int(ends.rail.max(initial=0)) + 1) + ends.rail
    nics, first, place = np.unique(nic, return_index=True, return_inverse=True)
    around = np.zeros(len(nics), np.uint64)
    np.add.at(around, place, mix(colour[ends.leaf], fabric.endpoint_rate.view(np.int64)))
    key = mix(colour[ends.host[first]], around).view(np.int64)
    names = {int(host): fabric.node_name(int(host)) for host in fabric.host_ids}
    yield from _grouped(key, "nic", lambda i: f"nic:{names[int(ends.host[first[i]])]}/{ends.rail[first[i]]}")


def _cable_classes(fabric: Fabric) -> Iterator[ElementClass]:
    """Cables of each kind."""
    links, colour = fabric.links, node_colours(fabric)
    low, high = links.src[0::2], links.dst[0::2]
    pair = low.astype(np.int64) * fabric.n_nodes + high
    order = np.argsort(pair, kind="stable")
    first = np.searchsorted(pair[order], pair[order], side="left")
    number = np.empty(len(pair), np.int64)
    number[order] = np.arange(len(pair)) - first
    parallel = np.unique(pair, return_inverse=True, return_counts=True)
    bundle = parallel[2][parallel[1]]
    width = links.capacity[0::2].view(np.int64), links.length[0::2].view(np.int64)
    key = mix(links.kind[0::2], colour[low], colour[high], *width, bundle).view(np.int64)
    names = [fabric.node_name(node) for node in range(fabric.n_nodes)] if len(pair) else []
    for code, kind in enumerate(LINK_KINDS):
        rows = np.flatnonzero(links.kind[0::2] == code)

        def text(i: int, rows: NDArray[np.int64] = rows) -> str:
            row = rows[i]
            place = f"#{number[row] + 1}" if bundle[row] > 1 else ""
            return f"cable:{names[low[row]]}/{names[high[row]]}{place}"

        yield from _grouped(key[rows], kind, text)


def _switch_classes(fabric: Fabric) -> Iterator[ElementClass]:
    """Switches of each tier."""
    colour = node_colours(fabric)
    failed = fabric.damage.nodes if fabric.damage is not None else np.zeros(0, np.int32)
    for tier, kind in enumerate(TIER_NAMES[1:], start=1):
        rows = np.setdiff1d(np.flatnonzero(fabric.nodes.tier == tier), failed)

        def text(i: int, rows: NDArray[np.int64] = rows) -> str:
            return f"switch:{fabric.node_name(int(rows[i]))}"

        yield from _grouped(colour[rows], kind, text)


def _span_classes(fabric: Fabric) -> Iterator[ElementClass]:
    """Cuts of a fibre path, then whole spans of several paths; those of equal length and links together.

    Where no paths are known a span counts as one path of its greatest length.
    """
    rows = 2 * np.flatnonzero(fabric.links.kind[0::2] == _INTER_SITE)
    site = fabric.nodes.site
    ends = np.sort(np.stack([site[fabric.links.src[rows]], site[fabric.links.dst[rows]]]), axis=0)
    found: dict[tuple[str, float, int], list[str]] = {}
    for a, b in sorted(set(zip(*ends.tolist(), strict=True))):
        here = rows[(ends[0] == a) & (ends[1] == b)]
        text = f"span:{fabric.site_names[a]}/{fabric.site_names[b]}"
        path = fabric.links.path[here]
        paths = np.unique(path[path >= 0]).tolist()
        several = len(paths) > 1
        for place in paths if several else [None]:
            on = here if place is None else here[path == place]
            name = text if place is None else f"{text}/{fabric.fibre_paths[place].name}"
            found.setdefault(("span", float(fabric.links.length[on].max()), len(on)), []).append(name)
        if several:
            longest = float(fabric.links.length[here].max())
            found.setdefault(("whole_span", longest, len(here)), []).append(text)
    for (kind, length, _), texts in sorted(found.items(), key=lambda item: item[0][0] == "whole_span"):
        yield ElementClass(kind, tuple(texts), length / 1e3 if kind == "span" else None)


def _site_classes(fabric: Fabric) -> Iterator[ElementClass]:
    """Sites, those with nodes of the same classes together."""
    if len(fabric.site_names) < 2:  # noqa: PLR2004 -- losing the only site leaves nothing
        return
    colour = node_colours(fabric)
    found: dict[bytes, list[str]] = {}
    for number, name in enumerate(fabric.site_names):
        nodes = np.bincount(colour[fabric.nodes.site == number], minlength=int(colour.max()) + 1)
        found.setdefault(nodes.tobytes(), []).append(f"site:{name}")
    for texts in found.values():
        yield ElementClass("site", tuple(texts))
