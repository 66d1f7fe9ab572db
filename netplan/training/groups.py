"""Which ranks form the groups of each parallelism.

Rank to coordinates as Megatron-Core lays them out (`RankGenerator` in megatron/core/parallel_state.py): the
order ``tp-cp-ep-dp-pp`` says which coordinate varies fastest. Two grids lie over the same ranks: that of
dense layers, ``tp x cp x dp x pp`` ranks, and that of experts, ``tp x ep x edp x pp``, where
``edp = cp dp / ep``: the expert groups take the place of context and data groups. A rank's number is, with
the order above::

    rank = t + tp (c + cp (d + dp p))  =  t + tp (e + ep (x + edp p))

The groups of an axis are the sets of ranks that differ in its coordinate only; in ``dp-cp``, the group over
which gradients of dense layers are reduced, in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from netplan.errors import TrafficError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AXES", "DEFAULT_ORDER", "RankGrid"]

#: Coordinates of dense layers and of experts; an axis is one of them, or several joined by ``-``.
AXES = ("tp", "cp", "dp", "pp", "ep", "edp")

#: Fastest coordinate first, as Megatron-Core has it when nothing else is said.
DEFAULT_ORDER = "tp-cp-ep-dp-pp"

_TOKENS = tuple(DEFAULT_ORDER.split("-"))

_EXPERT = ("ep", "edp")


@dataclass(frozen=True)
class RankGrid:
    """The ranks of a job as a grid of coordinates."""

    tp: int = 1
    """Tensor parallel size."""
    cp: int = 1
    """Context parallel size."""
    dp: int = 1
    """Data parallel size."""
    pp: int = 1
    """Pipeline stages."""
    ep: int = 1
    """Expert parallel size; divides ``cp x dp``."""
    order: str = DEFAULT_ORDER
    """Fastest coordinate first; all of tp, cp, ep, dp, pp."""

    def __post_init__(self) -> None:
        """Refuse sizes that make no grid.

        Raises
        ------
        TrafficError
            A size below 1, ``ep`` that does not divide ``cp x dp``, or an order that is none.
        """
        for name in ("tp", "cp", "dp", "pp", "ep"):
            if getattr(self, name) < 1:
                raise TrafficError(f"{name} = {getattr(self, name)}: groups have at least one rank", hint="1")
        if self.cp * self.dp % self.ep:
            raise TrafficError(
                f"ep = {self.ep} does not divide cp x dp = {self.cp} x {self.dp} = {self.cp * self.dp}",
                hint="expert groups take the place of context and data groups: a divisor of their product",
            )
        tokens = self.order.split("-")
        if sorted(tokens) != sorted(_TOKENS):
            raise TrafficError(
                f"order = {self.order!r} is not {', '.join(_TOKENS)} joined by '-', each once",
                hint=f"{DEFAULT_ORDER}, or tp-cp-ep-pp-dp: stages of a pipeline next to each other",
            )
        if self.ep > 1 and self._span("pp", self._expert) != self._span("pp", self._dense):
            raise TrafficError(
                f"order = {self.order!r}: stages of experts and of dense layers are not the same ranks",
                hint=f"{DEFAULT_ORDER}, or tp-cp-ep-pp-dp with ep = cp",
            )

    @property
    def n_ranks(self) -> int:
        """Ranks of the job."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def edp(self) -> int:
        """Ranks that hold the same experts."""
        return self.cp * self.dp // self.ep

    @property
    def _dense(self) -> dict[str, int]:
        """Sizes of the dense layers' grid, fastest first."""
        sizes = {"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp}
        return {name: sizes[name] for name in self.order.split("-") if name != "ep"}

    @property
    def _expert(self) -> dict[str, int]:
        """Sizes of the experts' grid, fastest first."""
        sizes = {"tp": self.tp, "ep": self.ep, "dp": self.edp, "pp": self.pp}
        names = [name for name in self.order.split("-") if name != "cp"]
        return {"edp" if name == "dp" else name: sizes[name] for name in names}

    @staticmethod
    def _span(axis: str, sizes: dict[str, int]) -> int:
        """Return by how much the rank grows with a coordinate."""
        names = list(sizes)
        return math.prod(sizes[name] for name in names[: names.index(axis)])

    def size(self, axis: str) -> int:
        """Return the ranks of a group of an axis."""
        sizes = self._sizes(axis)
        return math.prod(sizes[name] for name in axis.split("-"))

    def _sizes(self, axis: str) -> dict[str, int]:
        """Return the grid that an axis belongs to."""
        names = axis.split("-")
        unknown = [name for name in names if name not in AXES]
        if unknown or len(set(names)) != len(names):
            raise TrafficError(
                f"axis = {axis!r} is not one of {', '.join(AXES)}, or several of a grid joined by '-'",
                hint="dp-cp for the gradients of dense layers",
            )
        sizes = self._expert if any(name in _EXPERT for name in names) else self._dense
        if any(name not in sizes for name in names):
            raise TrafficError(
                f"axis = {axis!r} mixes coordinates of dense layers (tp, cp, dp, pp) and of experts "
                "(tp, ep, edp, pp)",
                hint="dp-cp, ep-edp",
            )
        return sizes

    def groups(self, axis: str) -> NDArray[np.int64]:
        """Return all groups of an axis.

        Parameters
        ----------
        axis
            One of `AXES`, or several of one grid joined by ``-``, such as ``dp-cp``.

        Returns
        -------
        (n_groups, size) int64
            Ranks, ascending within a group; every rank is in one group.

        Raises
        ------
        TrafficError
            There is no such axis.

        Examples
        --------
        >>> RankGrid(tp=2, dp=2, pp=2).groups("dp").tolist()
        [[0, 2], [1, 3], [4, 6], [5, 7]]
        """
        sizes = self._sizes(axis)
        names = list(sizes)[::-1]  # slowest first, as numpy counts
        ranks = np.arange(self.n_ranks).reshape([sizes[name] for name in names])
        mine = set(axis.split("-"))
        others = [place for place, name in enumerate(names) if name not in mine]
        inside = [place for place, name in enumerate(names) if name in mine]
        return ranks.transpose(others + inside).reshape(-1, self.size(axis))

    def coordinates(self) -> dict[str, NDArray[np.int64]]:
        """Return, for every coordinate, that of each rank: (n_ranks,) from 0."""
        found = {}
        for sizes in (self._dense, self._expert):
            for name, size in sizes.items():
                found[name] = np.arange(self.n_ranks) // self._span(name, sizes) % size
        return found
