"""How a design becomes one of the same kind for more GPUs.

The later design is the one that the same generator proposes under the same name (family, tiers, planes,
ports, ratio) for the later number of GPUs; `netplan.planning.growth.regrow` matches the two. Which beginnings
of a later design touch fewer cables is another question: `netplan grow --choices`.
"""

from __future__ import annotations

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

__all__ = ["Growing", "growing"]


@dataclass(frozen=True)
class Growing:
    """What becomes of a design's cables and switches; None where there is no like design of later size."""

    gpus: int
    """GPUs later."""
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
    """
    assert request.grow_to is not None
    later = replace(request, gpus=request.grow_to, grow_to=None, families=(design.family,))
    name = design.spec["name"]
    found = next((each for each in propose(later) if isinstance(each, Candidate) and each.name == name), None)
    if found is None:
        return Growing(request.grow_to, why_not="its family proposes no like design of that size")
    try:
        after = build_spec(found.spec)
    except (FabricError, SpecError) as error:
        return Growing(request.grow_to, why_not=error.message.removeprefix(f"{name}: "))
    growth = regrow(build_spec(design.spec), after)
    cables = growth.cables().values()
    return Growing(
        gpus=request.grow_to,
        touched=growth.n_touched,
        touched_fraction=growth.n_touched / growth.before.links.n_cables,
        new_cables=sum(kind["new"] for kind in cables),
        new_switches=sum(tier["new"] for tier in growth.switches().values()),
    )
