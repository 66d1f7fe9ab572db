"""Specs of direct networks: routers with hosts on them, joined with each other instead of with spines.

The words follow the papers: a *router* is a switch of tier 1, a *group* is a pod. Sizes that are
left out are found by `netplan.topology` from the radix or from the number of hosts.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, Strict, create_model, model_validator

from netplan.spec.base import Refusal, SpecModel
from netplan.spec.quantity import Count, Length
from netplan.spec.tiers import FabricSpecBase, PositiveRate, refuse, unused

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DirectHostsSpec",
    "DirectSpec",
    "DragonflyPlusSpec",
    "DragonflySpec",
    "GroupCablesSpec",
    "HyperXSpec",
    "SlimFlySpec",
    "TorusSpec",
    "is_prime_power",
]

#: Largest q of a Slim Fly: 32,768 routers.
MOST_Q = 128

#: Most dimensions of a torus or HyperX.
MOST_DIMENSIONS = 6


class DirectHostsSpec(SpecModel):
    """The hosts of a direct network, all alike. They fill the routers in order."""

    count: Count | None = None
    """How many hosts; as many as the routers hold when omitted."""
    gpus: Count = 8
    """GPUs of each host: one scale-up domain."""
    nics: Count | None = None
    """NIC ports of each host that are on this fabric; as many as GPUs when omitted."""
    nic_speed: PositiveRate = 50e9
    """Line rate of each NIC port."""
    scale_up: PositiveRate = 450e9
    """What one GPU sends into its scale-up domain, per direction (NVLink 4: 450 GB/s)."""
    attach: Literal["one-router", "spread"] = "one-router"
    """``one-router``: all NICs of a host on one router. ``spread``: one NIC on each of routers in a row."""

    @property
    def n_nics(self) -> int:
        """NIC ports of each host."""
        return self.gpus if self.nics is None else self.nics


class _HostCableSpec(SpecModel):
    """Typical cable lengths; each adds its propagation delay."""

    host_leaf: Length = 3.0
    """Host to router."""


class _LocalCableSpec(_HostCableSpec):
    """Typical cable lengths; each adds its propagation delay."""

    local: Length = 5.0
    """Between two switches of a group."""


if TYPE_CHECKING:

    class GroupCablesSpec(_LocalCableSpec):
        """Typical cable lengths; each adds its propagation delay."""

else:
    # `global` is a word of Python, so a class body cannot say it; as a key it is what everybody calls them.
    GroupCablesSpec = create_model(
        "GroupCablesSpec",
        __base__=_LocalCableSpec,
        __doc__=_LocalCableSpec.__doc__,
        **{"global": (Length, Field(default=30.0, description="Between two groups."))},
    )


class GridCablesSpec(_HostCableSpec):
    """Typical cable lengths; each adds its propagation delay."""

    local: Length = 5.0
    """Between two routers, in every dimension."""
    dimensions: tuple[Length, ...] | None = None
    """Between two routers, for each dimension; ``local`` for all when omitted."""


class RouterSpec(SpecModel):
    """The routers."""

    endpoints: Count | None = None
    """NIC ports on each router; balanced with its other ports when omitted."""


class DragonflyRouterSpec(RouterSpec):
    """The routers. What is omitted follows from the radix or the hosts: a = 2p = 2h."""

    endpoints: Count | None = None
    """NIC ports on each router: p."""
    global_links: Count | None = None
    """Ports of each router to other groups: h."""


class DragonflyGroupSpec(SpecModel):
    """A group: routers of which each is joined with every other."""

    routers: Count | None = None
    """Routers of each group: a; 2h when omitted."""
    bundle: Count = 1
    """Parallel cables between two routers of a group."""


class _GroupsSpec(FabricSpecBase):
    """What families of groups have."""

    hosts: DirectHostsSpec = DirectHostsSpec()
    """The hosts."""
    radix: Count | None = None
    """Ports of every switch; as many as it uses when omitted."""
    groups: Annotated[int, Strict(), Ge(2), Le(1_000_000)] | None = None
    """Groups: g; from ``hosts.count``, or as many as can be joined, when omitted."""
    arrangement: Literal["palmtree", "consecutive"] = "palmtree"
    """Order of a group's global cables: ``palmtree`` from the group before it on, ``consecutive`` from 0."""
    uneven: bool = False
    """Whether some pairs of groups may have one cable more than others, where the ports do not divide."""
    local_speed: PositiveRate | None = None
    """Line rate of cables in a group; the NIC port's when omitted."""
    global_speed: PositiveRate | None = None
    """Line rate of cables between groups; the NIC port's when omitted."""
    cables: GroupCablesSpec = GroupCablesSpec()
    """Cable lengths."""


class DragonflySpec(_GroupsSpec):
    """Groups of routers joined all to all, and all groups joined with each other (Kim et al., ISCA 2008)."""

    kind: Literal["dragonfly"]
    """The family."""
    router: DragonflyRouterSpec = DragonflyRouterSpec()
    """The routers."""
    group: DragonflyGroupSpec = DragonflyGroupSpec()
    """The groups."""

    @model_validator(mode="after")
    def _says_how_large(self) -> Self:
        """Refuse a spec from which no size follows."""
        sizes = (self.router.endpoints, self.router.global_links, self.group.routers)
        if self.radix is None and self.hosts.count is None and not any(sizes):
            raise _no_size("radix, hosts.count, router.global_links or group.routers")
        return self


class DragonflyPlusLeafSpec(SpecModel):
    """The leaves of each group."""

    radix: Count | None = None
    """Ports; the fabric's ``radix`` when omitted."""
    endpoints: Count | None = None
    """NIC ports on each leaf; as many as a leaf has cables to spines when omitted."""


class DragonflyPlusSpineSpec(SpecModel):
    """The spines of each group."""

    radix: Count | None = None
    """Ports; the fabric's ``radix`` when omitted."""
    global_links: Count | None = None
    """Ports of each spine to other groups; as many as it has cables to leaves when omitted."""


class DragonflyPlusGroupSpec(SpecModel):
    """A group: leaves and spines, each leaf joined with each spine."""

    leaves: Count | None = None
    """Leaves of each group; as many as spines when omitted."""
    spines: Count | None = None
    """Spines of each group; as many as leaves, or half the radix, when omitted."""
    bundle: Count = 1
    """Parallel cables between a leaf and a spine."""


class DragonflyPlusSpec(_GroupsSpec):
    """Groups of leaves and spines, the spines joined with other groups (Shpiner et al., HiPINEB 2017)."""

    kind: Literal["dragonfly-plus"]
    """The family."""
    leaf: DragonflyPlusLeafSpec = DragonflyPlusLeafSpec()
    """The leaves."""
    spine: DragonflyPlusSpineSpec = DragonflyPlusSpineSpec()
    """The spines."""
    group: DragonflyPlusGroupSpec = DragonflyPlusGroupSpec()
    """The groups."""

    @model_validator(mode="after")
    def _says_how_large(self) -> Self:
        """Refuse a spec from which no size follows."""
        sizes = (self.group.leaves, self.group.spines, self.leaf.endpoints, self.spine.global_links)
        if not any((self.radix, self.hosts.count, *sizes)):
            raise _no_size("radix, hosts.count, group.leaves or group.spines")
        return self


class SlimFlySpec(FabricSpecBase):
    """Routers at most two hops apart, near the least degree that allows it (Besta and Hoefler, SC 2014)."""

    kind: Literal["slim-fly"]
    """The family."""
    q: Annotated[int, Strict(), Ge(3), Le(MOST_Q)] | None = None
    """2 q^2 routers; a power of a prime. From ``radix`` or ``hosts.count`` when omitted."""
    hosts: DirectHostsSpec = DirectHostsSpec()
    """The hosts."""
    radix: Count | None = None
    """Ports of every router; as many as it uses when omitted."""
    router: RouterSpec = RouterSpec()
    """The routers; half as many endpoints as ports to other routers, rounded up, when omitted."""
    link_speed: PositiveRate | None = None
    """Line rate between routers; the NIC port's when omitted."""
    cables: GroupCablesSpec = GroupCablesSpec()
    """Cable lengths; a group is one of q racks of 2 q routers."""

    @model_validator(mode="after")
    def _graph_exists(self) -> Self:
        """Refuse a q of which there is no graph, and a spec from which no q follows."""
        if self.q is None and self.radix is None and self.hosts.count is None:
            raise _no_size("q, radix or hosts.count")
        if self.q is not None and not (is_prime_power(self.q) and self.q % 4 != 2):  # noqa: PLR2004 -- q = 4w + 2
            fits = [n for n in range(3, MOST_Q + 1) if is_prime_power(n)]
            near = sorted(sorted(fits, key=lambda n: abs(n - (self.q or 0)))[:4])
            raise Refusal(
                "is not a power of a prime: without a field of q elements there is no such graph",
                path="q",
                hint=f"feasible: {', '.join(map(str, near))}",
            )
        return self


Size = Annotated[int, Strict(), Ge(2), Le(10_000)]


class _GridSpec(FabricSpecBase):
    """What families of dimensions have."""

    dims: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST_DIMENSIONS)]
    """Routers along each dimension, at least 2 each, at most 6 dimensions: ``[8, 8, 8]``."""
    bundles: tuple[Count, ...] | None = None
    """Parallel cables between two joined routers, for each dimension; one when omitted."""
    hosts: DirectHostsSpec = DirectHostsSpec()
    """The hosts."""
    radix: Count | None = None
    """Ports of every router; as many as it uses when omitted."""
    link_speed: PositiveRate | None = None
    """Line rate between routers; the NIC port's when omitted."""
    cables: GridCablesSpec = GridCablesSpec()
    """Cable lengths."""

    @model_validator(mode="after")
    def _one_for_each_dimension(self) -> Self:
        """Refuse lists that are not one value for each dimension, and a length that nothing has."""
        refuse(self._lists_of_other_length())
        return self

    def _lists_of_other_length(self) -> Iterator[Refusal]:
        """Refuse lists that are not one value for each dimension, and a length that nothing has."""
        for path, values in (("bundles", self.bundles), ("cables.dimensions", self.cables.dimensions)):
            if values is not None and len(values) != len(self.dims):
                yield Refusal(
                    f"has {len(values)} values for {len(self.dims)} dimensions",
                    path=path,
                    hint="give one for each dimension, or leave it out",
                )
        if self.cables.dimensions is not None:
            yield from unused(self.cables, "cables", ["local"], "cables.dimensions has all lengths")


class TorusSpec(_GridSpec):
    """Routers on a grid, each joined with its two neighbours in every dimension, around the ends."""

    kind: Literal["torus"]
    """The family."""
    router: RouterSpec = RouterSpec()
    """The routers; one host on each when the endpoints are omitted."""
    wrap: bool = True
    """Whether the last router of each row joins the first; without it is a mesh."""
    pair_cables: Literal[1, 2] = 1
    """Joints in a dimension of size 2: with 2 the way around the end is a bundle of its own."""

    @model_validator(mode="after")
    def _goes_around(self) -> Self:
        """Refuse a second joint where nothing goes around."""
        if not self.wrap:
            refuse(unused(self, "", ["pair_cables"], "wrap = false"))
        return self


class HyperXSpec(_GridSpec):
    """Routers on a grid, each joined with all others of its row in every dimension (Ahn et al., SC 2009)."""

    kind: Literal["hyperx"]
    """The family."""
    router: RouterSpec = RouterSpec()
    """The routers; as many endpoints as the smallest dimension has routers when omitted."""


DirectSpec = DragonflySpec | DragonflyPlusSpec | SlimFlySpec | TorusSpec | HyperXSpec


def _no_size(keys: str) -> Refusal:
    """Refuse a spec from which no size follows."""
    return Refusal("nothing says how large the fabric is", hint=f"give {keys}")


def is_prime_power(number: int) -> bool:
    """Tell whether a number is a power of a prime: the number of elements of a finite field.

    Examples
    --------
    >>> [n for n in range(2, 30) if not is_prime_power(n)]
    [6, 10, 12, 14, 15, 18, 20, 21, 22, 24, 26, 28]
    """
    prime = next((n for n in range(2, isqrt(number) + 1) if number % n == 0), number)
    while number % prime == 0:
        number //= prime
    return number == 1
