"""What is asked for: GPUs, NICs, what may be used, what must hold, what counts how much."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from netplan.errors import FabricError, did_you_mean
from netplan.planning.plan.families import GENERATORS
from netplan.routing import SCHEMES
from netplan.topology.sizes import MOST_ENDPOINTS
from netplan.units import format_count, format_length, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["OBJECTIVES", "Limits", "Request"]

#: What designs are compared by.
OBJECTIVES = ("cost", "power", "efficiency", "stops")

#: Ratios that are tried up to the largest allowed, beside that one.
_RATIOS = (1.0, 2.0, 4.0, 8.0, 16.0)

#: Largest oversubscription: what is asked for beyond it is a slip.
_MOST_RATIO = 100.0

_MOST_SITES = 16

#: Half of the way around the Earth [m].
_LONGEST_SPAN = 20_000e3

#: Fabrics that are simulated where the request does not say, and from how many GPUs on fewer.
_SIMULATED, _SIMULATED_LARGE, _LARGE = 16, 10, 32_768


@dataclass(frozen=True)
class Limits:
    """What a design must keep to; None: no limit."""

    cost: float | None = None
    """Network, middle price [USD]."""
    power: float | None = None
    """Network, largest draw [W]."""
    efficiency: float | None = None
    """Least efficiency, 0 to 1."""
    stops: float | None = None
    """Failures a month that take a NIC away from a job."""
    any_to_any: bool = False
    """Whether every NIC must reach every other through the network."""


@dataclass(frozen=True)
class Request:
    """One planning question. Equal requests have equal answers."""

    gpus: int
    """GPUs in all; whole hosts."""
    nic_rate: float = 50e9
    """Line rate of each NIC, all its ports together [bytes/s]."""
    gpus_per_host: int = 8
    """GPUs of a scale-up domain."""
    nics_per_host: int | None = None
    """NICs of a host; as many as GPUs when None."""
    scale_up: float | None = None
    """What one GPU sends into its scale-up domain [bytes/s]; when None 450 GB/s, from 72 GPUs on 900 GB/s."""
    families: tuple[str, ...] = ()
    """Kinds of fabric to try; all when empty."""
    switches: tuple[str, ...] = ()
    """Switches of the catalogue to try; the best documented one for each number of ports when empty."""
    protocol: str | None = None
    """``ethernet`` or ``infiniband``; any when None, Ethernet where sites are joined."""
    tiers: tuple[int, ...] = (1, 2, 3)
    """Numbers of switch tiers to try, for families that have tiers."""
    planes: tuple[int, ...] = ()
    """Numbers of planes to try, 1 for none; 1, 2, 4 and one for each NIC when empty."""
    max_oversubscription: float = 2.0
    """Largest ratio of downlink to uplink bandwidth; 1 for non-blocking fabrics only."""
    sites: int = 1
    """Sites among which the hosts are shared out."""
    span: float | None = None
    """Fibre between any two sites [m]."""
    metro_oversubscription: float = 8.0
    """NIC bandwidth of a site over that of its long links."""
    routing: str | None = None
    """Routing scheme of the simulations; ``spray``, or what suits a direct network, when None."""
    group: int = 64
    """GPUs of each all-to-all group (expert parallelism)."""
    floor: str | None = None
    """``default`` or a file: cable lengths from where racks stand; else the families' typical lengths."""
    parts: str | None = None
    """YAML file of parts beside the shipped ones."""
    limits: Limits = field(default_factory=Limits)
    weights: tuple[tuple[str, float], ...] = tuple((name, 1.0) for name in OBJECTIVES)
    """How much each objective counts in the order of the designs."""
    grow_to: int | None = None
    """GPUs that each design is to grow to later."""
    simulate: int | None = None
    """Fabrics that are simulated at most; 16, from 32,768 GPUs on 10, when None."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be asked.

        Raises
        ------
        FabricError
            A value out of range, or a name that is not known.
        """
        self._check_hosts()
        self._check_choices()
        self._check_sites()
        self._check_targets()

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.gpus // self.gpus_per_host

    @property
    def nics(self) -> int:
        """NICs of each host."""
        return self.gpus_per_host if self.nics_per_host is None else self.nics_per_host

    @property
    def ratios(self) -> tuple[float, ...]:
        """Oversubscriptions to try, ascending."""
        most = self.max_oversubscription
        return tuple(sorted({*(ratio for ratio in _RATIOS if ratio <= most), most}))

    @property
    def plane_counts(self) -> tuple[int, ...]:
        """Numbers of planes to try, ascending; 1 for none."""
        return tuple(sorted(set(self.planes or (1, 2, 4, self.nics))))

    @property
    def most_simulated(self) -> int:
        """Fabrics that are simulated at most."""
        return self.simulate or (_SIMULATED if self.gpus < _LARGE else _SIMULATED_LARGE)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of fabric to try."""
        return self.families or GENERATORS.names()

    @property
    def any_protocol(self) -> str | None:
        """Protocol of the switches; None for any."""
        return "ethernet" if self.protocol is None and self.sites > 1 else self.protocol

    def host_spec(self, hosts: int) -> dict[str, Any]:
        """Return the ``hosts`` of a fabric spec, as a file says it."""
        spec: dict[str, Any] = {"count": hosts, "gpus": self.gpus_per_host}
        if self.nics != self.gpus_per_host:
            spec["nics"] = self.nics
        spec["nic_speed"] = format_rate(self.nic_rate)
        scale_up = self.scale_up
        if scale_up is None and self.gpus_per_host >= 72:  # noqa: PLR2004 -- NVL72: NVLink 5
            scale_up = 900e9
        if scale_up is not None:
            spec["scale_up"] = format_rate(scale_up, style="bytes")
        return spec

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"weights": dict(self.weights)}

    def _check_hosts(self) -> None:
        """Refuse GPUs that are not whole hosts, and NICs that do not fit them."""
        per_host = self.gpus_per_host
        if per_host < 1:
            raise FabricError(f"GPUs per host = {per_host} is too few", hint="8, or 72 for an NVL72 rack")
        if self.nics < 1 or (per_host % self.nics and self.nics % per_host):
            raise FabricError(
                f"NICs per host = {self.nics} and GPUs per host = {per_host}: one must divide the other",
                hint="give as many NICs as GPUs, or a divisor or multiple",
            )
        if not (isfinite(self.nic_rate) and self.nic_rate > 0):
            raise FabricError(f"NIC rate = {self.nic_rate:g} is not a rate above 0", hint="--nic 400G")
        if self.gpus < 2 * per_host:
            raise FabricError(
                f"{self.gpus} GPUs are fewer than two hosts of {per_host}: there is nothing to join",
                hint=f"at least {2 * per_host} GPUs",
            )
        for gpus in (self.gpus, self.grow_to or self.gpus):
            ports = gpus // per_host * self.nics
            if ports > MOST_ENDPOINTS:
                raise FabricError(
                    f"{format_count(gpus)} GPUs have {format_count(ports)} NICs, more than the "
                    f"{format_count(MOST_ENDPOINTS)} that netplan is meant for",
                    hint=f"at most {format_count(MOST_ENDPOINTS // self.nics * per_host)} GPUs",
                )
            if gpus % per_host:
                below = gpus // per_host * per_host
                raise FabricError(
                    f"{format_count(gpus)} GPUs are not whole hosts of {per_host}",
                    hint=f"feasible: {format_count(below)} or {format_count(below + per_host)}",
                )
        if self.grow_to is not None and self.grow_to <= self.gpus:
            raise FabricError(
                f"{format_count(self.gpus)} GPUs do not grow to {format_count(self.grow_to)}",
                hint="grow to more than there are",
            )

    def _check_choices(self) -> None:
        """Refuse names and numbers that are not there."""
        for kind in self.families:
            GENERATORS.find(kind)
        if self.routing is not None:
            SCHEMES.find(self.routing)
        if self.protocol not in (None, "ethernet", "infiniband"):
            raise FabricError(f"protocol {self.protocol!r} is not one of ethernet, infiniband")
        _within("tiers", self.tiers, 1, 3)
        _within("planes", self.planes, 1, 64)
        if self.simulate is not None and self.simulate < 1:
            raise FabricError(f"simulate = {self.simulate}: at least one fabric must be simulated", hint="16")
        if self.group < 2:  # noqa: PLR2004 -- a pair
            raise FabricError(f"group = {self.group}: an all-to-all needs at least 2 GPUs", hint="64")

    def _check_sites(self) -> None:
        """Refuse sites without a span, a span without sites, and more sites than hosts."""
        if not 1 <= self.sites <= _MOST_SITES:
            raise FabricError(f"sites = {self.sites} is out of range", hint=f"1 to {_MOST_SITES}")
        if self.sites > 1 and self.span is None:
            raise FabricError(
                f"{self.sites} sites need the length of the fibre between them", hint="--span 30km"
            )
        if self.sites == 1 and self.span is not None:
            raise FabricError(f"a span of {format_length(self.span)} joins two sites", hint="--sites 2")
        if self.span is not None and not 0 < self.span <= _LONGEST_SPAN:
            raise FabricError(
                f"span = {format_length(self.span)} is out of range",
                hint=f"above 0, at most {format_length(_LONGEST_SPAN)}",
            )
        if self.hosts < self.sites:
            raise FabricError(f"{self.hosts} hosts cannot be shared out among {self.sites} sites")
        if self.metro_oversubscription <= 0 or not isfinite(self.metro_oversubscription):
            raise FabricError(
                f"metro oversubscription = {self.metro_oversubscription:g} is not a ratio above 0", hint="8"
            )

    def _check_targets(self) -> None:
        """Refuse limits and weights out of range."""
        ratio = self.max_oversubscription
        if not 1 <= ratio <= _MOST_RATIO:
            raise FabricError(
                f"oversubscription = {ratio:g} is out of range: it is NIC bandwidth over uplink bandwidth",
                hint=f"1 (non-blocking) to {_MOST_RATIO:g}",
            )
        limits = self.limits
        if limits.efficiency is not None and not 0 < limits.efficiency <= 1:
            raise FabricError(
                f"efficiency of at least {limits.efficiency:g} is out of range", hint="above 0, at most 1"
            )
        for name in ("cost", "power", "stops"):
            value = getattr(limits, name)
            if value is not None and not (value > 0 and isfinite(value)):
                raise FabricError(f"a {name} of at most {value:g} is out of range", hint="above 0")
        check_weights(dict(self.weights))


def _within(name: str, values: Iterable[int], least: int, most: int) -> None:
    """Refuse a number that is out of range."""
    for value in values:
        if not least <= value <= most:
            raise FabricError(f"{name} = {value} is out of range", hint=f"{least} to {most}")


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights of unknown objectives, negative ones, and none above 0.

    Raises
    ------
    FabricError
        See above.
    """
    for name, weight in weights.items():
        if name not in OBJECTIVES:
            raise FabricError(
                f"{name!r} is not one of {', '.join(OBJECTIVES)}", hint=did_you_mean(name, OBJECTIVES)
            )
        if weight < 0 or not isfinite(weight):
            raise FabricError(f"weight {name} = {weight:g} is out of range", hint="0 or more")
    if not any(weights.values()):
        raise FabricError("no objective has a weight above 0", hint="cost=2,efficiency=1")
