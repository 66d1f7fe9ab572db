"""The floor: how racks stand, and by which way a cable goes from one to another."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt
from pydantic import model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Length, Ratio
from netplan.spec.tiers import refuse

__all__ = ["FloorSpec", "Placement"]

Placement = Literal["in-rack", "end-of-row", "middle-of-row", "own-rows"]
"""Where the switches of a tier stand: in the racks of the hosts they serve (on top of them), in network racks
at the end or in the middle of those hosts' row, or in rows of network racks in the middle of the hall."""

_Positive = Annotated[Length, Gt(0)]


class FloorSpec(SpecModel):
    """A hall of racks in straight rows; cables go up to a tray, along it, and down again.

    A cable's length is the walk along and across the rows, plus the two rises, plus slack, rounded up to the
    next length that is sold. Every default is an assumption of netplan's, not a published layout.
    """

    hosts_per_rack: Count = 4
    """Hosts in one rack (four DGX H100 make 40.8 kW)."""
    racks_per_row: Count = 16
    """Racks in one row."""
    rack_width: _Positive = 0.6
    """Distance from rack to rack along a row."""
    row_pitch: _Positive = 3.0
    """Distance from row to row: half of a cold and a hot aisle, and the racks' depth."""
    rise: Length = 2.0
    """From a port up to the tray, on average."""
    slack: Annotated[Ratio, Ge(0)] = 0.1
    """Spare length over the way, as a fraction."""
    in_rack: _Positive = 2.0
    """Length of a cable that stays in its rack; without slack."""
    switches_per_rack: Count = 20
    """Switches in one network rack."""
    leaf: Placement = "end-of-row"
    """Where leaves stand."""
    spine: Placement = "own-rows"
    """Where spines stand; ``in-rack`` is for leaves only."""
    core: Placement = "own-rows"
    """Where cores stand; ``in-rack`` is for leaves only."""
    metro: Placement = "own-rows"
    """Where metro switches stand; ``in-rack`` is for leaves only."""
    rows_per_hall: Count = 16
    """Rows of host racks in one hall; a site has as many halls as its hosts need, side by side."""
    hall_gap: Length = 10.0
    """From the end of one hall's rows to the next hall's."""

    @model_validator(mode="after")
    def _only_leaves_are_in_the_hosts_racks(self) -> Self:
        """Refuse other tiers there: a spine serves leaves, not a rack."""
        refuse(
            Refusal("is in-rack, where only leaves can stand", path=tier, hint="write own-rows or end-of-row")
            for tier in ("spine", "core", "metro")
            if getattr(self, tier) == "in-rack"
        )
        return self
