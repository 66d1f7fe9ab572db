"""How a design becomes one of the same kind for more GPUs.

The later design is the one that the same generator proposes under the same name (family, tiers, planes,
ports, ratio) for the later number of GPUs or, where that cannot be built, one with a tier more (spines of a
leaf-spine then look up as well, as in a clos); `netplan.planning.growth.regrow` matches the two. Which
beginnings of a later design touch fewer cables is another question: `netplan grow --choices`.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError, SpecError
from netplan.planning.growth import regrow
from netplan.planning.plan.families import Candidate
from netplan.planning.plan.survey import build_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from netplan.planning.plan.design import Design, Rejection
    from netplan.planning.plan.request import Request

__all__ = ["Growing", "growing", "later_names"]

#: End of a name that tells an even split of ports (`netplan.planning.plan.even`).
_EVEN = re.compile("-even-(?:leaf|spine)")

#: Part of a name, and what stands there with a tier more.
_TIER_MORE = (
    ("leaf-spine-", ("clos-",)),
    ("rail-optimized-2t-", ("rail-optimized-3t-by-block-", "rail-optimized-3t-by-rail-")),
    ("rail-only-1t-", ("rail-only-2t-",)),
    ("-2t-", ("-3t-",)),
)

#: Families whose taller design is of another family.
_TALLER = {"leaf-spine": "clos"}


@dataclass(frozen=True)
class Growing:
    """What becomes of a design's cables and switches; None where there is no like design of later size."""

    gpus: int
    """GPUs later."""
    design: str | None = None
    """The later design."""
    touched: int | None = None
    """Old cables that are plugged elsewhere or taken out."""
    touched_fraction: float | None = None
    new_cables: int | None = None
    new_switches: int | None = None
    why_not: str | None = None
    """Why there is no like design."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def later_names(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of later designs: that of equal tiers first, then those with a tier more.

    Examples
    --------
    >>> later_names("leaf-spine-r64-2to1")
    (('leaf-spine-r64-2to1',), ('clos-r64-2to1',))
    >>> later_names("rail-optimized-2t-r128-even-leaf")[1]
    ('rail-optimized-3t-by-block-r128', 'rail-optimized-3t-by-rail-r128')
    """
    name = _EVEN.sub("", name)
    for beginning, others in _TIER_MORE:
        if beginning in name:
            return (name,), tuple(name.replace(beginning, other, 1) for other in others)
    return ((name,),)


def growing(
    design: Design, request: Request, propose: Callable[[Request], Iterable[Candidate | Rejection]]
) -> Growing:
    """Return how a design grows to the request's later number of GPUs.

    Parameters
    ----------
    design
        What is built first.
    request
        With ``grow_to``.
    propose
        Returns the candidates of a request.

    Returns
    -------
    Growing
        To the design of as many tiers; where that cannot be built, to the one with a tier more that touches
        the fewest cables, of equals the one with the fewest new switches.
    """
    assert request.grow_to is not None
    families = tuple(dict.fromkeys((design.family, _TALLER.get(design.family, design.family))))
    later = replace(request, gpus=request.grow_to, grow_to=None, families=families)
    proposed = {each.name: each for each in propose(later) if isinstance(each, Candidate)}
    before = build_spec(design.spec)
    why_not = "its family proposes no like design of that size"
    for names in later_names(str(design.spec["name"])):
        found = []
        for name in names:
            if name not in proposed:
                continue
            try:
                after = build_spec(proposed[name].spec)
            except (FabricError, SpecError) as error:
                if name == names[0] and len(names) == 1:
                    why_not = error.message.removeprefix(f"{name}: ")
                continue
            growth = regrow(before, after)
            found.append(
                Growing(
                    gpus=request.grow_to,
                    design=name,
                    touched=growth.n_touched,
                    touched_fraction=growth.n_touched / growth.before.links.n_cables,
                    new_cables=sum(kind["new"] for kind in growth.cables().values()),
                    new_switches=sum(tier["new"] for tier in growth.switches().values()),
                )
            )
        if found:
            return min(found, key=lambda each: (each.touched, each.new_switches))
    return Growing(request.grow_to, why_not=why_not)
