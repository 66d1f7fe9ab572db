"""What is written on boxes, areas and lines: from the fullest wording to the shortest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.fabric import TIER_NAMES
from netplan.report.diagram.cells import HOST, LEAF, METRO
from netplan.units import format_count, format_length, format_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.report.diagram.cells import Bundle, Cell, Column, Grouping, Panel

#: Tiers in the plural.
_PLURAL = ("hosts", "leaves", "spines", "cores", "metro switches")
_SINGULAR = ("host", "leaf", "spine", "core", "metro switch")

#: Ratios this near to 1 are called 1:1: partly filled leaves and rounding are no design.
_EVEN = 1.005


def count_of(count: int, tier: int) -> str:
    """Return a number of things of a tier, such as ``1 leaf`` or ``1,024 hosts``."""
    return f"{format_count(count)} {(_SINGULAR if count == 1 else _PLURAL)[tier]}"


def number_of(count: int, noun: str, plural: str = "") -> str:
    """Return a number of things, such as ``1 switch``."""
    return f"{format_count(count)} {noun if count == 1 else plural or noun + 's'}"


def title_of(fabric: Fabric) -> str:
    """Return name, family and sizes of a fabric in one line."""
    sites = f"{number_of(len(fabric.site_names), 'site')}, " if len(fabric.site_names) > 1 else ""
    return (
        f"{fabric.name} — {fabric.kind}, {sites}{number_of(fabric.n_gpus, 'GPU')}, "
        f"{number_of(fabric.n_switches, 'switch', 'switches')}, {number_of(fabric.links.n_cables, 'cable')}"
    )


@dataclass(frozen=True)
class Traits:
    """What a fabric's nodes are like: read once, written on many boxes."""

    ratio: NDArray[np.float64]
    """(n_nodes,) downlink over uplink bandwidth of each switch; 0 without uplinks or downlinks."""
    has_rails: bool

    @classmethod
    def of(cls, fabric: Fabric) -> Traits:
        """Read them from a fabric."""
        links, tier = fabric.links, fabric.nodes.tier
        step = tier[links.dst].astype(np.int64) - tier[links.src]
        # A metro switch looks up along the long links, which lead to its like.
        up = (step > 0) | ((step == 0) & (tier[links.src] == METRO))
        upward = np.bincount(links.src, np.where(up, links.capacity, 0.0), fabric.n_nodes)
        downward = np.bincount(links.src, np.where(step < 0, links.capacity, 0.0), fabric.n_nodes)
        ratio = np.divide(downward, upward, out=np.zeros(fabric.n_nodes), where=upward > 0)
        return cls(ratio, bool((fabric.nodes.rail[tier == LEAF] >= 0).any()))


def oversubscription(ratios: NDArray[np.float64]) -> str:
    """Return the highest of several ratios as ``2:1``; empty where none is above 1:1.

    Examples
    --------
    >>> oversubscription(np.array([1.0, 2.0])), oversubscription(np.array([0.9]))
    ('2:1', '')
    """
    worst = float(ratios.max(initial=0.0))
    return f"{worst:.3g}:1" if worst > _EVEN else ""


def wordings_of(
    fabric: Fabric, cell: Cell, nics: str, *, in_rail: bool = False
) -> list[tuple[str, tuple[str, ...]]]:
    """Return what may be written on a box, the fullest first: labels, each with its second lines.

    Parameters
    ----------
    fabric, cell
        The box.
    nics
        What the NICs of its hosts are, such as ``8 × 400G``.
    in_rail
        Whether it stands in a column that is a rail's, so that this need not be said.
    """
    second = _second_lines(cell, nics)
    if cell.count == 1:
        return [(name, second) for name in _names(fabric, cell)]
    count = count_of(cell.count, cell.tier)
    if cell.tier == LEAF and len(cell.rails) == 1 and not in_rail:
        rail = f"rail {cell.rails[0]}"
        return [(f"{rail} · {count}", second), (rail, (count, format_count(cell.count)))]
    few = [(count, second), (format_count(cell.count), ())]
    if cell.tier == LEAF and len(cell.rails) > 1:
        return [(f"{count} · {len(cell.rails)} rails", second), *few]
    return few


def _names(fabric: Fabric, cell: Cell) -> list[str]:
    """Return the name of a single node, then what is left without what its place says already."""
    name = fabric.node_name(cell.first)
    options = [name]
    site = fabric.site_names[fabric.nodes.site[cell.first]] + "/"
    if name.startswith(site):
        name = name.removeprefix(site)
        options.append(name)
    prefix = TIER_NAMES[cell.tier] + "-"
    if name.startswith(prefix):
        options.append(name.removeprefix(prefix))
        if cell.tier == LEAF and len(cell.rails) == 1:
            options += [f"rail {cell.rails[0]}", f"r{cell.rails[0]}"]
    return options


def _second_lines(cell: Cell, nics: str) -> tuple[str, ...]:
    if cell.tier == HOST:
        gpus = number_of(cell.gpus, "GPU")
        return (f"{gpus} · {nics} each" if cell.count > 1 else f"{gpus} · {nics}", gpus)
    radix, used = _span(*cell.radix), _span(*cell.used)
    return (f"{used} of {radix} ports used", f"{used}/{radix} ports", f"{used}/{radix}")


def tooltip_of(fabric: Fabric, cell: Cell, nics: str, traits: Traits, inside: int) -> str:
    """Return everything that is known of a box.

    Parameters
    ----------
    fabric, cell, nics
        As in `wordings_of`.
    traits
        Of the fabric.
    inside
        Cables between things in the box.
    """
    names = fabric.node_name(cell.first)
    if cell.count > 1:
        names = f"{count_of(cell.count, cell.tier)}: {names} … {fabric.node_name(cell.last)}"
    else:
        names = f"{names}: {_SINGULAR[cell.tier]}"
    facts = [names, _second_lines(cell, nics)[0]]
    if cell.rails:
        facts.append(f"rail {cell.rails[0]}" if len(cell.rails) == 1 else f"{len(cell.rails)} rails")
    if cell.planes and max(cell.planes) > 0:
        facts.append(f"plane {_span(cell.planes[0], cell.planes[-1])}")
    ratio = oversubscription(traits.ratio[[cell.first, cell.last]])
    if ratio:
        facts.append(f"{ratio} downlink to uplink bandwidth")
    if inside:
        facts.append(f"{number_of(inside, 'cable')} among them")
    return ", ".join(facts)


def nics_of(grouping: Grouping, number: int) -> str:
    """Return how many NIC ports each host of a cell has, by speed: ``8 × 400G``; the mean where uneven."""
    ports: dict[float, int] = {}
    for bundle in grouping.bundles:
        if bundle.low == number and bundle.kind == "host_leaf":
            ports[bundle.rate] = ports.get(bundle.rate, 0) + bundle.count
    hosts = grouping.cells[number].count
    return " + ".join(f"{count / hosts:.3g} × {format_rate(rate)}" for rate, count in sorted(ports.items()))


def column_title(column: Column) -> str:
    """Return the title of a column; empty for one that needs none."""
    alone = column.kind == "block" and column.leaves == column.merged
    noun = "leaf" if alone else str(column.kind)
    if column.merged > 1:
        plural = "leaves" if noun == "leaf" else noun + "s"
        return f"… {format_count(column.merged)} more {plural}"
    if noun in {"one", "leaf"}:
        return ""
    if column.number < 0:
        return f"no {noun}"
    title = f"{noun} {column.number}"
    if column.kind == "pod" and len(column.rails) == 1:
        return f"{title} · rail {column.rails[0]}"
    if column.kind in {"rail", "plane"} and column.pods > 1:
        return f"{title} · {column.pods} pods"
    return title


def panel_titles(fabric: Fabric, panel: Panel, hosts: int, gpus: int) -> list[str]:
    """Return the wordings of a site's title, the fullest first."""
    size = number_of(gpus, "GPU")
    name = fabric.site_names[panel.sites[0]]
    if len(panel.sites) > 1:
        name = f"… {len(panel.sites)} more sites"
    if not hosts:
        return [f"{name} · switches only", name]
    return [f"{name} · {count_of(hosts, HOST)}, {size}", f"{name} · {size}", name]


def cables_of(count: int, rate: float) -> str:
    """Return a number of cables and their speed, as ``1,024 × 400G``."""
    return f"{format_count(count)} × {format_rate(rate)}"


def line_tooltip(fabric: Fabric, bundle: Bundle, cells: tuple[Cell, ...]) -> str:
    """Return everything that is known of a line."""
    ends = " – ".join(
        fabric.node_name(cell.first) if cell.count == 1 else count_of(cell.count, cell.tier)
        for cell in (cells[bundle.low], cells[bundle.high])
    )
    length = f", {format_length(bundle.length)}" if bundle.length else ""
    return f"{ends}: {cables_of(bundle.count, bundle.rate)}{length}"


def ports_of(radix: NDArray[np.int32], used: NDArray[np.int64]) -> str:
    """Return the ports of a tier's switches: ``64 ports, 48–64 used``."""
    ports = _span(int(radix.min()), int(radix.max()))
    return f"{ports} ports, {_span(int(used.min()), int(used.max()))} used"


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least}–{most}"
