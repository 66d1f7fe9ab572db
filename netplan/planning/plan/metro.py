"""Designs over several sites: each site a fabric of one family, all joined with each other.

Every pair of sites has a span of `Request.span`, and each site long links for its NIC bandwidth over
`Request.metro_oversubscription`. The switches of a site's top tier must keep ports free for the metro
switches: where they have too few, twice as many (then four and eight times) are asked for.
"""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import combinations
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError, SpecError
from netplan.fabric.columns import TIER_NAMES
from netplan.planning.plan.design import Rejection
from netplan.planning.plan.families import GENERATORS, Candidate, Ground
from netplan.planning.plan.survey import build_spec
from netplan.units import format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from netplan.planning.plan.boxes import Box
    from netplan.planning.plan.request import Request

__all__ = ["join_sites", "share_out"]

#: Metro switches of each site.
_METRO_SWITCHES = 4

#: By how much the top tier of a site is enlarged, until its ports are enough.
_FACTORS = (1, 2, 4, 8)


def share_out(request: Request) -> list[int]:
    """Return the hosts of each site: as even as can be.

    Examples
    --------
    >>> from netplan.planning.plan import Request
    >>> share_out(Request(gpus=1016, sites=2, span=30e3))
    [64, 63]
    """
    each, more = divmod(request.hosts, request.sites)
    return [each + (site < more) for site in range(request.sites)]


def join_sites(
    kind: str, request: Request, boxes: Callable[[int], list[Box]]
) -> Iterator[Candidate | Rejection]:
    """Yield what a family proposes for each site, joined."""
    hosts = share_out(request)
    ground = Ground(request, request.host_spec(hosts[0]), boxes)
    for site in GENERATORS.find(kind).propose(ground):
        yield _joined(site, hosts, request)


def _joined(site: Candidate, hosts: list[int], request: Request) -> Candidate | Rejection:
    """Return a candidate of all sites, the first that can be built of those with enlarged top tiers."""
    name = f"{site.name}-{len(hosts)}-sites"
    refusal: FabricError | SpecError | None = None
    try:
        build_spec(site.spec)
    except (FabricError, SpecError) as error:
        reason = error.message.removeprefix(f"{site.name}: ")
        return Rejection((name,), f"at each site: {reason}", error.hint)
    for factor in _FACTORS:
        try:
            spec = _enlarged(site.spec, factor)
            whole = _metro_spec(name, spec, hosts, request, site)
            build_spec(whole)
        except (FabricError, SpecError) as error:
            refusal = refusal or error
        else:
            return Candidate(
                name, site.family, whole, site.parts, site.nic_ports, site.planes, site.oversubscription
            )
    assert refusal is not None
    return Rejection((name,), refusal.message.removeprefix(f"{name}: "), refusal.hint)


def _enlarged(spec: dict[str, Any], factor: int) -> dict[str, Any]:
    """Return a site's spec with so many times the switches in its top tier.

    Raises
    ------
    FabricError
        Its top tier cannot be enlarged.
    """
    if factor == 1:
        return spec
    fabric = build_spec(spec)
    top = int(fabric.nodes.tier.max())
    if top < 2:  # noqa: PLR2004 -- leaves are as many as hosts need
        raise FabricError(f"{spec['name']}: its top tier are leaves, whose number follows from the hosts")
    many = int((fabric.nodes.tier == top).sum())
    per = int(spec.get("planes", 1)) * (_rails(spec) if spec["kind"] == "rail-only" else 1)
    more = deepcopy(spec)
    more.setdefault(TIER_NAMES[top], {})["count"] = many * factor // per
    return more


def _rails(spec: dict[str, Any]) -> int:
    """Return the rails of a spec's hosts."""
    return int(spec["hosts"].get("nics", spec["hosts"]["gpus"]))


def _metro_spec(
    name: str, site: dict[str, Any], hosts: list[int], request: Request, candidate: Candidate
) -> dict[str, Any]:
    """Return the spec of all sites."""
    names = [f"site-{number + 1}" for number in range(len(hosts))]
    sites = []
    for label, count in zip(names, hosts, strict=True):
        fabric = json.loads(json.dumps(site)) | {"name": label}
        if "count" in fabric["hosts"]:
            fabric["hosts"]["count"] = count
        sites.append({"name": label, "fabric": fabric})
    assert request.span is not None
    rate = request.nic_rate / candidate.nic_ports * int(site.get("leaf", {}).get("breakout", 1))
    return {
        "name": name,
        "kind": "metro",
        "sites": sites,
        "metro": {
            "radix": int(site.get("radix") or site.get("k", 0)),
            "switches": _METRO_SWITCHES,
            "link_speed": format_rate(rate),
            "oversubscription": request.metro_oversubscription,
        },
        "spans": [{"a": a, "b": b, "length": format_length(request.span)} for a, b in combinations(names, 2)],
    }
