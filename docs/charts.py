"""Charts of results for the documentation, as SVG text: the same bytes on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netplan import api
from netplan.report.diagram.palette import FAINT, INK, LINE, OKABE_ITO, PAPER, mix

if TYPE_CHECKING:
    from netplan.simulate import Result

ROUTINGS = ("ecmp", "minimal", "valiant", "adaptive", "spray", "ugal")

#: What is shown, left and right: title, and what it changes of the permutation.
PANELS: tuple[tuple[str, dict[str, str]], ...] = (
    ("random permutation", {}),
    ("group to next group", {"shift": "32"}),
)

_FABRIC, _TRAFFIC = "dragonfly-1056", "permutation-64mib"
_COLOUR = OKABE_ITO[4]
_PANEL, _LEFT, _TOP, _HEIGHT, _BAR = 430, 46, 58, 220, 44
_GAP = 20
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def dragonfly_routings() -> bytes:
    """Draw what each routing gives on the dragonfly of Kim et al.: mean flow, and the slowest one."""
    width, height = _PANEL * len(PANELS) + 10, _TOP + _HEIGHT + 62
    fabric = api.load_fabric(_FABRIC)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        f"<title>{_FABRIC}: rate of a flow over its NIC's, by routing</title>",
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        f'<g fill="{INK}">',
    ]
    for place, (title, changes) in enumerate(PANELS):
        traffic = api.load_traffic(_TRAFFIC, overrides=changes)
        results = {routing: api.simulate(fabric, traffic, routing=routing) for routing in ROUTINGS}
        parts += _panel(_PANEL * place + _LEFT, title, results)
    pale, y = mix(_COLOUR, PAPER, 0.6), height - 20
    parts += [
        f'<rect x="{_LEFT}" y="{y - 11}" width="12" height="12" fill="{pale}"/>',
        f'<text x="{_LEFT + 18}" y="{y}">mean flow</text>',
        f'<rect x="{_LEFT + 110}" y="{y - 11}" width="12" height="12" fill="{_COLOUR}"/>',
        f'<text x="{_LEFT + 128}" y="{y}">slowest flow</text>',
        f'<text x="{_LEFT + 240}" y="{y}" fill="{FAINT}">over the NIC\'s line rate; one QP a flow</text>',
        "</g></svg>",
    ]
    return ("\n".join(parts) + "\n").encode()


def _panel(left: int, title: str, results: dict[str, Result]) -> list[str]:
    """Return the bars of one pattern."""
    right = left + (_BAR + _GAP) * len(results)
    parts = [f'<text x="{left}" y="{_TOP - 28}" font-size="15" font-weight="bold">{title}</text>']
    for tick in _TICKS:
        y = _y(tick)
        parts += [
            f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="{LINE}" stroke-width="0.5"/>',
            f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" fill="{FAINT}">{tick:g}</text>',
        ]
    for place, (routing, result) in enumerate(results.items()):
        x = left + _GAP // 2 + (_BAR + _GAP) * place
        mean, worst = result.efficiency.mean_flow, result.efficiency.worst_flow
        for value, colour, inset in ((mean, mix(_COLOUR, PAPER, 0.6), 0), (worst, _COLOUR, 8)):
            y = _y(value)
            parts.append(
                f'<rect x="{x + inset}" y="{y}" width="{_BAR - 2 * inset}" '
                f'height="{_TOP + _HEIGHT - y:.1f}" fill="{colour}"/>'
            )
        parts += [
            f'<text x="{x + _BAR // 2}" y="{_y(mean) - 5}" text-anchor="middle">{mean:.2f}</text>',
            f'<text x="{x + _BAR // 2}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{routing}</text>',
        ]
    return parts


def _y(value: float) -> float:
    """Return the height on the paper of a value between 0 and 1."""
    return round(_TOP + _HEIGHT * (1 - value), 1)


#: What is drawn over distance.
_PROTOCOLS = ("max-min", "none", "dcqcn", "hpcc", "rtt-template", "dctcp", "timely")
_KM = (0.1, 1, 5, 15, 30, 100)


def distances() -> bytes:
    """Draw the efficiency of protocols against the distance between two sites."""
    from netplan.report.distance import distance_points, draw_distances

    traffic = api.load_traffic("permutation-64mib")
    comparisons = {}
    for km in _KM:
        fabric = api.load_fabric("metro-16", overrides={"spans[0].length": f"{km} km"})
        comparisons[km * 1e3] = api.compare(fabric, traffic, routing=("ecmp",), cc=_PROTOCOLS)
    title = "permutation-64mib on metro-16: efficiency by distance between sites"
    return draw_distances(distance_points(comparisons), title, "svg")
