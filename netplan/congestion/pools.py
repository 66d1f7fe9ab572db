"""How a switch shares its buffer: the pool, dynamic thresholds, and what lossless ports leave of it.

Of the memory B of a switch with n ports, each ingress port and lossless priority keeps a reserve r and, when
it is lossless, its headroom h. The rest is shared::

    S = B - p sum(r + h / o)                   p lossless priorities, o >= 1 oversubscription of headroom

A *dynamic threshold* lets a queue grow to ``alpha`` times what is still free of S (Choudhury and Hahne,
*Dynamic queue length thresholds for shared-memory packet switches*, ToN 1998). With k queues at it at once::

    xoff(k) = alpha S / (1 + k alpha)

so xoff falls from ``alpha S / (1 + alpha)`` with one port congested to ``alpha S / (1 + n alpha)`` with all.

ECN has to come first: a switch that pauses before it marks gives senders no reason to slow down. One
egress queue filled through one port marks before it pauses when ``Kmin < xoff(1)``. The DCQCN paper (Zhu et
al., SIGCOMM 2015, section 4) asks for more: one ingress port may fill the queues of all n egress ports, in
all p priorities, each up to Kmin; that marks first for sure when::

    Kmin < alpha S / (n (1 + p alpha))

Its own switch (12 MB, 32 ports of 40G, 8 priorities, 22.4 kB of headroom each, beta = 8 alpha = 8) gives
24.47 kB for the static threshold and 21.75 kB for Kmin (`tests/laws/test_pools.py`).

Not modelled: egress pools with thresholds of their own, and memory that is split between slices of a chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import ModelRangeError
from netplan.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PoolPlan", "Ports", "dynamic_xoff", "kmin_bound", "static_xoff_bound"]

#: Kept for each ingress port and priority [bytes]: switch-mmu.cc of the ns-3 of HPCC.
RESERVED_BYTES = 4096


def dynamic_xoff(shared: float, alpha: float, congested: int) -> float:
    """Return the threshold of each of so many queues that are all at it [bytes].

    Parameters
    ----------
    shared
        Shared pool S [bytes], >= 0.
    alpha
        Share of the free pool, > 0.
    congested
        How many queues are at the threshold, >= 1.

    Raises
    ------
    ModelRangeError
        A value outside these ranges.

    Examples
    --------
    >>> dynamic_xoff(9e6, alpha=0.125, congested=1)
    1000000.0
    """
    if not alpha > 0:
        raise ModelRangeError(f"alpha = {alpha:g} is not > 0", hint="SONiC's dynamic_th n means alpha = 2^n")
    if congested < 1 or shared < 0:
        raise ModelRangeError(f"dynamic threshold: shared = {shared:g} B, {congested} congested queues")
    return alpha * shared / (1 + congested * alpha)


def kmin_bound(shared: float, alpha: float, n_ports: int, n_priorities: int = 1) -> float:
    """Return the Kmin [bytes] below which ECN comes first whatever the traffic (DCQCN paper, section 4)."""
    return dynamic_xoff(shared, alpha, n_priorities) / n_ports


def static_xoff_bound(shared: float, n_ports: int, n_priorities: int = 1) -> float:
    """Return the largest static xoff [bytes] with which all ports and priorities may fill up at once."""
    return shared / (n_ports * n_priorities)


@dataclass(frozen=True)
class Ports:
    """Ports of one class at one switch."""

    count: int
    headroom_bytes: float
    """Of each port and lossless priority."""


@dataclass(frozen=True)
class PoolPlan:
    """What the lossless ports of a switch ask of its buffer."""

    pool_bytes: float
    """Memory that queues can use: B [bytes]."""
    ports: tuple[Ports, ...]
    alpha: float = 0.125
    """PFC's dynamic threshold; the ns-3 of HPCC has 1/8."""
    n_priorities: int = 1
    """Lossless priorities p."""
    reserved_bytes: float = RESERVED_BYTES
    """Of each port and priority: r."""
    oversubscription: float = 1.0
    """Headroom that is promised over headroom that is kept: o."""
    least_shared_bytes: float = 0.0
    """What the shared pool must have to be of use."""

    def __post_init__(self) -> None:
        """Refuse a plan without meaning."""
        if not self.pool_bytes > 0:
            raise ModelRangeError(f"buffer pool = {self.pool_bytes:g} B is not > 0")
        if not self.oversubscription >= 1:
            raise ModelRangeError(
                f"headroom oversubscription = {self.oversubscription:g} is not 1 or more",
                hint="2 keeps half of the headroom that all ports may need together",
            )
        if self.n_priorities < 1:
            raise ModelRangeError(f"lossless priorities = {self.n_priorities} is not 1 or more")
        dynamic_xoff(0.0, self.alpha, 1)

    @property
    def n_ports(self) -> int:
        """Ports in use: n."""
        return sum(each.count for each in self.ports)

    @property
    def headroom_bytes(self) -> float:
        """Headroom of all ports that is kept [bytes]."""
        total = sum(each.count * each.headroom_bytes for each in self.ports)
        return self.n_priorities * total / self.oversubscription

    @property
    def reserve_bytes(self) -> float:
        """Reserves of all ports [bytes]."""
        return self.n_priorities * self.n_ports * self.reserved_bytes

    @property
    def shared_bytes(self) -> float:
        """What is left for all: S [bytes]; 0 when nothing is."""
        return max(self.pool_bytes - self.headroom_bytes - self.reserve_bytes, 0.0)

    @property
    def required_bytes(self) -> float:
        """Least pool with which all ports are lossless and the shared pool is of use [bytes]."""
        return self.headroom_bytes + self.reserve_bytes + self.least_shared_bytes

    @property
    def fits(self) -> bool:
        """Whether the pool is that large."""
        return self.required_bytes <= self.pool_bytes

    def xoff_bytes(self, congested: int = 1) -> float:
        """Return PFC's threshold when so many ports are congested [bytes]."""
        return dynamic_xoff(self.shared_bytes, self.alpha, congested)

    def kmin_bound_bytes(self) -> float:
        """Return the Kmin below which ECN comes before PFC whatever the traffic [bytes]."""
        return kmin_bound(self.shared_bytes, self.alpha, self.n_ports, self.n_priorities)

    def most_ports(self, place: int) -> int:
        """Return how many ports of one class the pool could hold beside all the others."""
        others = tuple(each for i, each in enumerate(self.ports) if i != place)
        rest = PoolPlan(
            self.pool_bytes, others, self.alpha, self.n_priorities, self.reserved_bytes, self.oversubscription
        )
        per_port = self.n_priorities * (
            self.ports[place].headroom_bytes / self.oversubscription + self.reserved_bytes
        )
        left = self.pool_bytes - rest.headroom_bytes - rest.reserve_bytes - self.least_shared_bytes
        return max(int(left // per_port), 0)

    @property
    def reason(self) -> str:
        """Say where the pool goes."""
        parts: Sequence[str] = (
            f"{format_size(round(self.headroom_bytes))} headroom of {self.n_ports} ports",
            f"{format_size(round(self.reserve_bytes))} reserves",
            f"{format_size(round(self.shared_bytes))} shared",
        )
        return f"of {format_size(round(self.pool_bytes))}: {', '.join(parts)}"
