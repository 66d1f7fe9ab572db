"""Checks of ECN, PFC and protocol settings, each with a stable code.

Errors are settings that no switch or NIC can have, or that lose packets where none may be lost. Warnings are
settings that work and are foolish: they say so, and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.errors import Fault, SpecError
from netplan.fabric.checks import CheckPage, FabricFault
from netplan.units import format_rate, format_size, format_time

if TYPE_CHECKING:
    from netplan.congestion.pools import PoolPlan

__all__ = [
    "SETTING_CHECKS",
    "PortSettings",
    "check_pool",
    "check_ports",
    "refuse_errors",
]


#: All checks by code; their faults are those of the fabric's switches.
SETTING_CHECKS = {
    check.code: check
    for check in (
        CheckPage(
            "NP201",
            "Kmin is at most Kmax",
            what="ECN marking begins at Kmin and is certain above Kmax.",
            why="A switch refuses such a curve, or marks nothing.",
            remedy="Swap the two, or give both the same value for a step.",
        ),
        CheckPage(
            "NP202",
            "Pmax is a probability above 0",
            what="The marking probability at Kmax is in (0, 1].",
            why="Above 1 is no probability; 0 marks nothing until Kmax and everything beyond it.",
            remedy="Write 5 % as 0.05; for a step, Kmin = Kmax and Pmax = 1.",
        ),
        CheckPage(
            "NP203",
            "xoff is inside the pool",
            what="A static xoff, its ports together, is at most the shared pool of the switch.",
            why="Queues fill the pool before the pause is sent: packets are lost.",
            remedy="Lower xoff to the pool over the number of ports, or use a dynamic threshold (alpha).",
        ),
        CheckPage(
            "NP204",
            "headroom fits the buffer",
            what="The headroom of all lossless ports of a switch, with their reserves, fits its buffer.",
            why="Without headroom a paused port still receives, and loses, what is on the cable.",
            remedy="Fewer long ports, a deep-buffer switch, shorter spans, or no PFC on the long links.",
        ),
        CheckPage(
            "NP205",
            "headroom holds what is on the cable",
            what="The headroom given is at least 2 x rate x delay of the cable.",
            why="That much arrives after the pause was sent; the rest is lost.",
            remedy="Leave the headroom out, and netplan computes it.",
        ),
        CheckPage(
            "NP206",
            "xon is below xoff",
            what="The level at which a pause ends is below the level at which it is sent.",
            why="Otherwise a pause never ends, or ends at once.",
            remedy="An offset of two packets of the largest size, or more.",
        ),
        CheckPage(
            "NP211",
            "ECN marks before PFC pauses",
            what="Kmin is below the xoff of a single congested port.",
            why="Senders are stopped hop by hop, with innocent flows, and never told to slow down.",
            remedy="Lower Kmin, or raise alpha or the pool.",
        ),
        CheckPage(
            "NP212",
            "ECN marks before PFC pauses whatever the traffic",
            what="Kmin is below alpha S / (n (1 + p alpha)): the condition of the DCQCN paper, section 4.",
            why="Where one port fills the queues of many others, it can be paused before any of them marks.",
            remedy="Nothing, where such traffic does not occur; else lower Kmin.",
        ),
        CheckPage(
            "NP213",
            "marking is on for a protocol that reads it",
            what="A protocol that slows down on ECN marks runs over ports that mark.",
            why="It never slows down: queues grow to PFC's xoff, or until packets are lost.",
            remedy="Give the ports an ECN curve.",
        ),
        CheckPage(
            "NP214",
            "a setting is read by something",
            what="ECN thresholds or parameters are given to a protocol that reads them.",
            why="The setting changes nothing, and whoever made it expects that it does.",
            remedy="Leave it out, or choose the protocol that reads it.",
        ),
        CheckPage(
            "NP221",
            "no cyclic buffer dependency",
            what="No ring of links in which the buffer behind each waits for the next (PFC or credits).",
            why="Such a ring can stop for good: a deadlock. Watchdogs then drop packets.",
            remedy="Route up the tiers and down only, break rings of sites, or change class on the way.",
        ),
        CheckPage(
            "NP231",
            "long links can be lossless",
            what="A switch has the buffer for the headroom of its long links.",
            why="Headroom grows with rate x distance: 15 MB a port and priority at 400G over 30 km.",
            remedy="Fewer such ports, a deep-buffer switch, or no PFC there with the dci thresholds.",
        ),
        CheckPage(
            "NP232",
            "queues of long links without PFC fit the buffer",
            what="A switch can hold 2.5 RTT x rate for every long port without PFC at once.",
            why="Queues of long links grow by a round trip of bytes before senders hear of it.",
            remedy="A deep-buffer switch, fewer long ports, or traffic that never congests them all at once.",
        ),
        CheckPage(
            "NP241",
            "a simulation supposes buffers that exist",
            what="Under the default switch profile, headroom of long links fits the buffer of a switch.",
            why="Deeper buffers were supposed: the result is that of switches with memory beside the chip.",
            remedy="netplan tune says what fits; --switch-profile tune or a preset runs just that.",
        ),
        CheckPage(
            "NP242",
            "congestion control has something to do",
            what="A link is contended, or a signal asked some sender to slow down.",
            why="Rows that differ by the protocol only are equal then, or differ by its own margin.",
            remedy="To compare protocols, take traffic or a routing under which links are contended.",
        ),
        CheckPage(
            "NP243",
            "pauses prevent losses",
            what="No packet is lost at switches that pause.",
            why="Headroom is too small for what is on the way, or for the engine's trains of packets.",
            remedy="More headroom (netplan tune), or a shorter --step.",
        ),
    )
}


@dataclass(frozen=True)
class PortSettings:
    """ECN and PFC of one class of ports."""

    where: str
    """The class, in words."""
    rate: float
    """Line rate [bytes/s]."""
    delay: float
    """One-way delay of the cable [s]."""
    kmin_bytes: float | None
    """None: no marking."""
    kmax_bytes: float | None
    pmax: float | None
    headroom_bytes: float | None
    """None: no PFC."""
    static_xoff_bytes: float | None = None
    """None: dynamic threshold."""
    xon_offset_bytes: float = 0.0


def check_ports(ports: Iterable[PortSettings]) -> Iterator[FabricFault]:
    """Yield what is wrong with ports by themselves: NP201, NP202, NP205, NP206."""
    for port in ports:
        if port.kmin_bytes is not None and port.kmax_bytes is not None and port.pmax is not None:
            if not 0 <= port.kmin_bytes <= port.kmax_bytes:
                yield FabricFault(
                    "NP201",
                    "error",
                    port.where,
                    f"Kmin ({format_size(port.kmin_bytes)}) is above Kmax ({format_size(port.kmax_bytes)})",
                    hint="marking begins at Kmin and is certain above Kmax",
                )
            if not 0 < port.pmax <= 1:
                yield FabricFault(
                    "NP202",
                    "error",
                    port.where,
                    f"Pmax = {port.pmax:g} is not in (0, 1]",
                    hint=f"a percentage? write {port.pmax / 100:g}" if 1 < port.pmax <= 100 else None,  # noqa: PLR2004
                )
        if port.headroom_bytes is not None:
            least = 2 * port.rate * port.delay
            if port.headroom_bytes < least:
                yield FabricFault(
                    "NP205",
                    "error",
                    port.where,
                    f"headroom of {format_size(port.headroom_bytes)} is less than the cable holds: 2 x "
                    f"{format_rate(port.rate)} x {format_time(port.delay)} = {_mb(least)}",
                    hint="leave the headroom out, and it is computed",
                )
        if port.static_xoff_bytes is not None and port.static_xoff_bytes <= port.xon_offset_bytes:
            yield FabricFault(
                "NP206",
                "error",
                port.where,
                f"xoff ({format_size(port.static_xoff_bytes)}) is not above the xon offset "
                f"({format_size(port.xon_offset_bytes)}): a pause would never end",
            )


def check_pool(
    where: str,
    plan: PoolPlan,
    ports: Mapping[int, PortSettings],
    *,
    long: Iterable[int] = (),
    reads_ecn: bool = True,
) -> Iterator[FabricFault]:
    """Yield what is wrong with a switch's pool and the ports on it: NP203, NP204, NP211, NP212, NP231.

    Parameters
    ----------
    where
        The switch, in words.
    plan
        Its pool.
    ports
        Settings by place in ``plan.ports``.
    long
        Places of classes whose headroom is mostly distance: NP231 is said of them, not NP204.
    reads_ecn
        Whether the protocol reads marks; else their place relative to xoff does not matter.
    """
    places = set(long)
    if not plan.fits and not places:
        yield FabricFault(
            "NP204",
            "error",
            where,
            f"lossless needs {_mb(plan.required_bytes)} of buffer, the switch has "
            f"{_mb(plan.pool_bytes)} ({plan.reason})",
            hint="fewer lossless priorities, a smaller share of small packets, or a larger buffer",
        )
    for place in sorted(places):
        if plan.fits:
            break
        most, port = plan.most_ports(place), ports[place]
        yield FabricFault(
            "NP231",
            "error",
            f"{where}, {port.where}",
            f"this switch cannot do it lossless: {plan.ports[place].count} ports need "
            f"{_mb(plan.ports[place].headroom_bytes)} of headroom each; the buffer holds {most}",
            hint="a deep-buffer switch, or no PFC on these links with the dci thresholds",
        )
    yield from _static(where, plan, ports)
    if reads_ecn and plan.fits:
        yield from _ecn_before_pfc(where, plan, ports)


def _mb(size: float) -> str:
    """Write a size to four digits."""
    return format_size(int(float(f"{size:.4g}")))


def _static(where: str, plan: PoolPlan, ports: Mapping[int, PortSettings]) -> Iterator[FabricFault]:
    """Yield static thresholds that the pool cannot hold."""
    static = {i: p.static_xoff_bytes for i, p in ports.items() if p.static_xoff_bytes is not None}
    total = plan.n_priorities * sum(plan.ports[i].count * xoff for i, xoff in static.items())
    if static and total > plan.shared_bytes:
        largest = max(static, key=lambda i: plan.ports[i].count * static[i])
        yield FabricFault(
            "NP203",
            "error",
            where,
            f"xoff of {_mb(static[largest])} on {plan.n_ports} ports comes to "
            f"{_mb(total)}, the shared pool is {_mb(plan.shared_bytes)}",
            hint=f"at most {format_size(int(plan.shared_bytes // (plan.n_ports * plan.n_priorities)))} each",
        )


def _ecn_before_pfc(where: str, plan: PoolPlan, ports: Mapping[int, PortSettings]) -> Iterator[FabricFault]:
    """Yield ports that may be paused before they mark; NP212 once for a switch."""
    marking = [p for p in ports.values() if p.kmin_bytes is not None and p.headroom_bytes is not None]
    unsure: dict[str, float] = {}
    bound = plan.kmin_bound_bytes()
    for port in marking:
        kmin = port.kmin_bytes or 0.0
        alone = plan.xoff_bytes() if port.static_xoff_bytes is None else port.static_xoff_bytes
        if kmin >= alone:
            yield FabricFault(
                "NP211",
                "warning",
                f"{where}, {port.where}",
                f"Kmin ({_mb(kmin)}) is not below PFC's xoff ({_mb(alone)}): it pauses before it marks",
                hint="lower Kmin, or raise alpha or the pool",
            )
        elif port.static_xoff_bytes is None and kmin >= bound:
            unsure[port.where] = kmin
    if unsure:
        largest = format_size(round(max(unsure.values())))
        yield FabricFault(
            "NP212",
            "warning",
            where,
            f"Kmin (up to {largest}) is above {_mb(bound)}: where one port fills the queues of all "
            "others at once, it is paused before they mark",
            hint="nothing, where such traffic does not occur",
        )


def refuse_errors(faults: Iterable[FabricFault]) -> None:
    """Raise all errors among faults at once.

    Raises
    ------
    SpecError
        There are any.
    """
    errors = [
        Fault(fault.where, f"{fault.code}: {fault.message}", fault.hint)
        for fault in faults
        if fault.severity == "error"
    ]
    if errors:
        raise SpecError(faults=errors)
