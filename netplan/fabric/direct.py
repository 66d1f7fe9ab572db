"""Arithmetic description of direct networks: a minimal path follows from ids, without a search.

A direct network has no tiers above its routers: hosts hang on switches that are cabled among one
another. Each family is one frozen value of a few numbers and arrays. All of them agree on this:

* *Routers* are the switches with endpoints (tier 1). Router ``r`` is node ``router_node + r``.
  Where there are groups, the ``routers`` of group ``g`` are ``g * routers + i``; ``i`` is the
  router's *place* in its group.
* All cables of hosts are numbered before ``first_cable``; cables between switches follow from it
  without a gap, in the order of the family (below). ``cable_ends()`` lists them in that order, so
  a builder can lay exactly these and a check can compare.
* Link ``2 * c`` of a cable goes from the end that is named first (the lower place, coordinate,
  group or router; from the leaf to the spine) to the other, link ``2 * c + 1`` back.
* Pairs ``i < j`` of ``n`` things are numbered ``(0,1), (0,2), ..., (0,n-1), (1,2), ...``:
  pair ``i * (2 * n - i - 1) // 2 + j - i - 1`` (`pair_number`).
* A *bundle* is how many parallel cables join two neighbours; they are consecutive.

==================  =======================================================================
`DragonflyStructure`      local cables group by group, pair by pair of places, bundle; then
                          global cables pair by pair of groups, as ``global_ptr`` cuts them
`DragonflyPlusStructure`  leaf by leaf its uplinks, ``leaf_bundle`` to each spine of its group
                          in order; then global cables as in a dragonfly, between spines
`HyperXStructure`         dimension by dimension, line by line, pair by pair of coordinates,
                          bundle. A *line* is a row of routers that differ in one coordinate
`TorusStructure`          dimension by dimension, line by line, from coordinate ``x`` to
                          ``x + 1`` for ascending ``x``, bundle; the last one of a dimension
                          that wraps leads from its last coordinate to 0
`SlimFlyStructure`        pair by pair of neighbours, by the lower router, then the upper
==================  =======================================================================

Coordinate 0 of a router changes fastest: ``r = x0 + n0 * (x1 + n1 * (x2 + ...))``; lines of
dimension ``d`` are numbered by the router number that is left when coordinate ``d`` is taken out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from netplan.fabric.columns import freeze_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def pair_number(low: NDArray[np.int64], high: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the number of each pair ``low < high`` of ``n`` things (see the module)."""
    return low * (2 * n - low - 1) // 2 + high - low - 1


def _pairs(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of ``n`` things in their order: the lower and the higher of each."""
    low, high = np.triu_indices(n, 1)
    return low.astype(np.int64), high.astype(np.int64)


@dataclass(frozen=True, eq=False)
class DirectBase(ABC):
    """What all direct families have in common."""

    kind: ClassVar[str]
    """The family, as in `Fabric.kind` of a generated fabric."""

    endpoint_router: NDArray[np.int32]
    """(n_endpoints,) router number of each endpoint."""
    router_node: int
    """Node id of router 0; the others follow in order."""
    first_cable: int
    """Lowest number of a cable between switches; all above are such cables too."""

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze_arrays(self)

    @property
    @abstractmethod
    def n_routers(self) -> int:
        """Switches that hosts can hang on, with or without hosts."""

    @property
    @abstractmethod
    def n_cables(self) -> int:
        """Cables between switches."""

    @abstractmethod
    def cable_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the node ids of both ends of every cable between switches, from ``first_cable`` on."""

    def with_endpoints(self, left: NDArray[np.int64], cables_gone: int) -> Self:
        """Return the structure when only endpoints and host cables were taken out.

        Parameters
        ----------
        left
            Endpoints that are left, ascending.
        cables_gone
            Host cables that were taken out; all are numbered before ``first_cable``.
        """
        return replace(
            self,
            endpoint_router=self.endpoint_router[left],
            first_cable=self.first_cable - cables_gone,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `direct_from_dict` makes an equal structure."""
        values = {
            name: getattr(self, name).tolist() if name in self.arrays() else getattr(self, name)
            for name in type(self).__dataclass_fields__
            if name != "kind"
        }
        return {"kind": self.kind, **values}

    @classmethod
    def arrays(cls) -> tuple[str, ...]:
        """Return the names of the fields that are (n,) int32 arrays; the others are whole numbers."""
        return tuple(name for name, field in cls.__dataclass_fields__.items() if "NDArray" in str(field.type))

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """Return the names of the fields that are whole numbers."""
        return tuple(n for n in cls.__dataclass_fields__ if n not in (*cls.arrays(), "kind"))


@dataclass(frozen=True, eq=False)
class GroupedStructure(DirectBase):
    """Groups of routers, joined in pairs by global cables."""

    groups: int
    routers: int
    """Routers of each group: *a* of a dragonfly, the leaves of a dragonfly+."""
    global_ptr: NDArray[np.int32]
    """(n_pairs + 1,) pair ``k`` of groups owns the global cables ``global_ptr[k]:global_ptr[k + 1]``,
    counted from ``global_cable``; no pair is without."""
    global_low: NDArray[np.int32]
    """(n_global,) place of each global cable's router (dragonfly+: spine) in the lower group."""
    global_high: NDArray[np.int32]
    """(n_global,) likewise in the higher group."""

    @property
    def n_routers(self) -> int:
        """Routers of all groups."""
        return self.groups * self.routers

    @property
    @abstractmethod
    def n_local(self) -> int:
        """Cables inside all groups."""

    @property
    def global_cable(self) -> int:
        """Number of the first global cable."""
        return self.first_cable + self.n_local

    @property
    def n_cables(self) -> int:
        """Local and global cables."""
        return self.n_local + len(self.global_low)

    def global_ends(self, per_group: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ends of each global cable: ``group * per_group + place``, lower and higher group."""
        below, above = _pairs(self.groups)
        cables = np.diff(self.global_ptr)
        return (
            np.repeat(below * per_group, cables) + self.global_low,
            np.repeat(above * per_group, cables) + self.global_high,
        )


@dataclass(frozen=True, eq=False)
class DragonflyStructure(GroupedStructure):
    """Groups of routers, all joined in pairs; groups joined in pairs by global cables.

    Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
    """

    kind: ClassVar[str] = "dragonfly"

    local_bundle: int
    """Parallel cables between two routers of a group."""

    @property
    def n_local(self) -> int:
        """Local cables of all groups."""
        return self.groups * (self.routers * (self.routers - 1) // 2) * self.local_bundle

    def cable_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the node ids of both ends of every cable between switches, from ``first_cable`` on."""
        low, high = _pairs(self.routers)
        group = np.arange(self.groups, dtype=np.int64)[:, None] * self.routers
        local = [np.repeat((group + x).ravel(), self.local_bundle) for x in (low, high)]
        below, above = self.global_ends(self.routers)
        return (
            self.router_node + np.concatenate([local[0], below]),
            self.router_node + np.concatenate([local[1], above]),
        )


@dataclass(frozen=True, eq=False)
class DragonflyPlusStructure(GroupedStructure):
    """Groups that are two-tier leaf-spine networks; spines of different groups joined by global cables.

    Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters", HiPINEB 2017. Routers
    are the leaves.
    """

    kind: ClassVar[str] = "dragonfly-plus"

    spines: int
    """Spines of each group; spine ``i`` of group ``g`` is node ``spine_node + g * spines + i``."""
    spine_node: int
    """Node id of spine 0 of group 0."""
    leaf_bundle: int
    """Parallel cables between a leaf and a spine of its group."""

    @property
    def n_local(self) -> int:
        """Cables between leaves and spines of all groups."""
        return self.groups * self.routers * self.spines * self.leaf_bundle

    def cable_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the node ids of both ends of every cable between switches, from ``first_cable`` on."""
        leaf = np.arange(self.n_routers, dtype=np.int64)[:, None]
        spine = leaf // self.routers * self.spines + np.arange(self.spines)
        leaf = np.repeat(leaf, self.spines * self.leaf_bundle)
        below, above = self.global_ends(self.spines)
        return (
            np.concatenate([self.router_node + leaf, self.spine_node + below]),
            self.spine_node + np.concatenate([np.repeat(spine.ravel(), self.leaf_bundle), above]),
        )


@dataclass(frozen=True, eq=False)
class _Grid(DirectBase):
    """Routers at the points of a grid."""

    sizes: NDArray[np.int32]
    """(n_dimensions,) routers along each dimension, at least 2."""
    bundles: NDArray[np.int32]
    """(n_dimensions,) parallel cables between neighbours, per dimension."""

    @property
    def n_routers(self) -> int:
        """Product of the sizes."""
        return int(np.prod(self.sizes, dtype=np.int64))

    @cached_property
    def strides(self) -> NDArray[np.int64]:
        """(n_dimensions,) how far the router number goes up with each coordinate."""
        return np.concatenate([[1], np.cumprod(self.sizes[:-1], dtype=np.int64)])

    @property
    @abstractmethod
    def steps(self) -> NDArray[np.int64]:
        """(n_dimensions,) neighbouring pairs on one line of each dimension."""

    @cached_property
    def dimension_cable(self) -> NDArray[np.int64]:
        """(n_dimensions + 1,) number of each dimension's first cable, and of the one after the last."""
        lines = self.n_routers // self.sizes.astype(np.int64)
        return self.first_cable + np.concatenate([[0], np.cumsum(lines * self.steps * self.bundles)])

    @property
    def n_cables(self) -> int:
        """Cables of all dimensions."""
        return int(self.dimension_cable[-1]) - self.first_cable

    @abstractmethod
    def _neighbours(self, dimension: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the coordinates that a line's cables join, in order, without the bundles."""

    def cable_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the node ids of both ends of every cable between switches, from ``first_cable`` on."""
        ends: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
        for d, (size, stride, bundle) in enumerate(
            zip(self.sizes.tolist(), self.strides.tolist(), self.bundles.tolist(), strict=True)
        ):
            line = np.arange(self.n_routers // size, dtype=np.int64)
            origin = (line // stride * size * stride + line % stride)[:, None]
            for side, at in zip(ends, self._neighbours(d), strict=True):
                side.append(np.repeat((origin + at * stride).ravel(), bundle))
        return self.router_node + np.concatenate(ends[0]), self.router_node + np.concatenate(ends[1])


@dataclass(frozen=True, eq=False)
class HyperXStructure(_Grid):
    """A grid in which routers that differ in one coordinate are neighbours.

    Ahn et al., "HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks",
    SC 2009. One dimension: full mesh; two: flattened butterfly.
    """

    kind: ClassVar[str] = "hyperx"

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """(n_dimensions,) neighbouring pairs on one line of each dimension: all pairs."""
        n = self.sizes.astype(np.int64)
        return n * (n - 1) // 2

    def _neighbours(self, dimension: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _pairs(int(self.sizes[dimension]))


@dataclass(frozen=True, eq=False)
class TorusStructure(_Grid):
    """A grid in which each router has a neighbour before and after it in every dimension."""

    kind: ClassVar[str] = "torus"

    wraps: NDArray[np.int32]
    """(n_dimensions,) 1 where the last router of a line joins the first, 0 where it does not (a mesh).
    A dimension of size 2 that wraps has two cables of its bundle between the same routers."""

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """(n_dimensions,) neighbouring pairs on one line of each dimension."""
        return self.sizes.astype(np.int64) - 1 + self.wraps

    def _neighbours(self, dimension: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        at = np.arange(self.steps[dimension], dtype=np.int64)
        return at, (at + 1) % int(self.sizes[dimension])


@dataclass(frozen=True, eq=False)
class SlimFlyStructure(DirectBase):
    """A graph of diameter 2 as its list of neighbours (McKay-Miller-Siran graphs).

    Besta, Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014.
    """

    kind: ClassVar[str] = "slim-fly"

    routers: int
    """Routers of the whole fabric, ``2 q^2``."""
    low: NDArray[np.int32]
    """(n_cables,) lower router of each cable; cables ascend by (low, high)."""
    high: NDArray[np.int32]
    """(n_cables,) higher router of each cable."""

    @property
    def n_routers(self) -> int:
        """Number of routers."""
        return self.routers

    @property
    def n_cables(self) -> int:
        """Cables between routers."""
        return len(self.low)

    def cable_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the node ids of both ends of every cable between switches, from ``first_cable`` on."""
        return self.router_node + self.low.astype(np.int64), self.router_node + self.high.astype(np.int64)

    @cached_property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """CSR of neighbours: row pointer (n_routers + 1,), neighbouring router (ascending), link to it."""
        src = np.concatenate([self.low, self.high]).astype(np.int64)
        dst = np.concatenate([self.high, self.low]).astype(np.int64)
        cable = self.first_cable + np.arange(self.n_cables, dtype=np.int64)
        link = np.concatenate([2 * cable, 2 * cable + 1])
        order = np.lexsort((dst, src))
        ptr = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=self.routers))]).astype(np.int64)
        return ptr, dst[order], link[order]

    @cached_property
    def neighbour_table(self) -> NDArray[np.int64]:
        """(n_routers, largest degree) neighbours of each router, ascending; -1 behind the last."""
        ptr, neighbour, _ = self.neighbours
        degree = np.diff(ptr)
        table = np.full((self.routers, int(degree.max(initial=0))), -1, np.int64)
        table[np.arange(table.shape[1]) < degree[:, None]] = neighbour
        return table

    @cached_property
    def link_between(self) -> NDArray[np.int32]:
        """(n_routers, n_routers) link from one router to another, -1 where they are no neighbours."""
        ptr, dst, link = self.neighbours
        table = np.full((self.routers, self.routers), -1, np.int32)
        table[np.repeat(np.arange(self.routers), np.diff(ptr)), dst] = link
        return table


#: What `Fabric.direct` can be.
DirectStructure = (
    DragonflyStructure | DragonflyPlusStructure | HyperXStructure | TorusStructure | SlimFlyStructure
)

#: The families by their kind.
DIRECT_STRUCTURES: dict[str, type[DirectStructure]] = {
    c.kind: c
    for c in (
        DragonflyStructure,
        DragonflyPlusStructure,
        HyperXStructure,
        TorusStructure,
        SlimFlyStructure,
    )
}


def direct_from_dict(data: Mapping[str, Any]) -> DirectStructure:
    """Return the structure that `DirectBase.to_dict` described.

    Raises
    ------
    KeyError
        No such kind, or a field is missing.
    """
    cls = DIRECT_STRUCTURES[data["kind"]]
    values: dict[str, Any] = {name: np.asarray(data[name], np.int32) for name in cls.arrays()}
    values.update({name: int(data[name]) for name in cls.numbers()})
    return cls(**values)
