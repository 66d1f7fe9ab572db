"""Even numbers of ports, where odd ones waste half a cage each.

Sizing takes the fewest switches (`netplan.topology.sizes`), and those may have 85 links to hosts and 43 to
spines on 128 ports. A cage with two ports holds links of one medium, so 85 and 43 take 43 + 22 = 65 cages
where such a switch has 64. With 84 and 42 it has room, at the price of some more switches.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from netplan.planning.plan.families import Candidate
    from netplan.planning.plan.survey import Survey

__all__ = ["even_ports", "even_split"]

#: Cables below and above a tier whose split a spec can give.
_CABLES = {"leaf": ("host_leaf", "leaf_spine"), "spine": ("leaf_spine", "spine_core")}

#: Rounding that a quotient may carry.
_EPSILON = 1e-9


def even_split(radix: int, down: int, ratio: float, breakout: int = 1) -> tuple[int, int] | None:
    """Return the most downlinks, at most ``down``, whose ports and uplinks are both even.

    Parameters
    ----------
    radix
        Ports of the switch.
    down
        Downlinks that it has.
    ratio
        Oversubscription, at most.
    breakout
        Downlinks on one port; a port towards hosts is ``breakout`` times as fast as one of these.

    Returns
    -------
    (int, int) or None
        Downlinks and uplinks; None when the switch is too small.

    Examples
    --------
    >>> even_split(128, 85, 2.0)
    (84, 42)
    >>> even_split(128, 65, 1.0)
    (64, 64)
    """
    step = 2 * breakout
    for links in range(down // step * step, 0, -step):
        up = 2 * max(ceil(links / (2 * ratio * breakout) - _EPSILON), 1)
        if links // breakout + up <= radix:
            return links, up
    return None


def even_ports(found: Survey, tier: str, parts: Sequence[str]) -> Candidate | None:
    """Return a candidate with an even split of one tier's ports.

    Parameters
    ----------
    found
        A candidate whose modules need too many cages.
    tier
        The tier that lacks them.
    parts
        Switches of the catalogue that lack them.

    Returns
    -------
    Candidate or None
        None when the split is even already, or is not the spec's to choose.
    """
    below, above = (_links(found, tier, kind) for kind in _CABLES.get(tier, ("", "")))
    if not below or not above or (below % 2 == 0 and above % 2 == 0):
        return None
    spec = deepcopy(found.candidate.spec)
    name = f"{found.candidate.name}-even-{tier}"
    spec["name"] = name
    for site in [each["fabric"] for each in spec["sites"]] if "sites" in spec else [spec]:
        mine: dict[str, Any] = site.get(tier, {})
        if "radix" not in site or "downlinks" in mine:
            return None
        ratio = float(mine.pop("oversubscription", 1.0))
        split = even_split(int(site["radix"]), below, ratio, int(mine.get("breakout", 1)))
        if split is None:
            return None
        site[tier] = {**mine, "downlinks": split[0], "uplinks": split[1]}
    return replace(found.candidate, name=name, spec=spec, parts=tuple(parts))


def _links(found: Survey, tier: str, kind: str) -> int:
    """Return the cables of a kind at the busiest switch of a tier."""
    return sum(dict(group.most).get(tier, 0) for group in found.groups if group.kind == kind)
