"""ECN, PFC and protocol settings for every class of ports of a fabric, and whether the buffers hold them.

For each class (`netplan.planning.port_classes`):

* headroom by `netplan.congestion.headroom`, with the figures of the switch that the catalogue names;
* xoff and xon from the switch's pool and PFC's dynamic threshold (`netplan.congestion.pools`);
* Kmin, Kmax and Pmax by the published rule that suits rate, round trip and xoff
  (`netplan.congestion.ecn_rules`);
* of the protocol, its defaults, additive increases in proportion to the NIC's rate where their source says
  so; `netplan.planning.search` looks for better ones.

Every figure comes with a rule and a reason. What a user sets replaces what is computed, and is checked the
same way (`netplan.congestion.checks`).

Not decided here: which priorities are lossless, schedulers, PFC watchdogs, and the thresholds of lossy
traffic that shares the switch. Ports of NICs are not tuned: they keep their own buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from netplan.catalog.buffers import shipped_buffers
from netplan.congestion.cc.registry import PROTOCOLS
from netplan.congestion.checks import PortSettings, check_pool, check_ports, refuse_errors
from netplan.congestion.ecn_rules import DCI_BUFFER_RTTS, ECN_RULES, EcnChoice, choose_ecn
from netplan.congestion.pools import PoolPlan, Ports
from netplan.errors import ModelRangeError, did_you_mean
from netplan.fabric.checks import FabricFault
from netplan.fabric.columns import LINK_KINDS
from netplan.planning.port_classes import PortClass, PortClasses, SwitchKind, find_port_classes
from netplan.units import format_rate, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from netplan.catalog.parts import Catalogue
    from netplan.congestion.cc.registry import CongestionControl, Parameter
    from netplan.fabric import Fabric
    from netplan.spec.parts import SwitchSpec

__all__ = ["Asked", "BufferRow", "ParameterRow", "PortRow", "Tuning", "tune"]

#: From this round trip on, the long-haul settings of NICs are given [s].
LONG_HAUL_RTT_S = 100e-6

#: A pause ends this much below xoff: two packets of the largest size [bytes].
XON_OFFSET_BYTES = 2 * 9216

#: Protocols whose source scales its additive increases by the NIC's rate; their defaults are for 100G.
_SCALED_AT_100G = {"dcqcn", "hpcc"}

_100G = 12.5e9


@dataclass(frozen=True)
class Asked:
    """What the user decides, where it is not left to netplan."""

    cc: str = "dcqcn"
    """Congestion control."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Of the protocol, in SI units."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """Part by tier; ``*`` for every tier."""
    pool_bytes: float | None = None
    """Buffer of every switch; the catalogue's by default."""
    alpha: float = 0.125
    """PFC's dynamic threshold: the ns-3 of HPCC."""
    n_priorities: int = 1
    """Lossless priorities."""
    small_packets: float = 0.02
    """Share of small packets in flight: about that of SN5610N's profile for RDMA; 1 is the worst case."""
    oversubscription: float = 1.0
    """Headroom promised over headroom kept."""
    lossy: frozenset[str] = frozenset()
    """Kinds of cable without PFC; ``*`` for all."""
    ecn: Mapping[str, tuple[float, float, float] | str | None] = field(default_factory=dict)
    """(Kmin, Kmax, Pmax), the name of a rule or None (off) by kind of cable; ``*`` for all."""
    static_xoff_bytes: float | None = None
    """A static threshold instead of the dynamic one."""
    headroom_bytes: float | None = None
    """Of every port, instead of what is computed."""

    def is_lossless(self, kind: str) -> bool:
        """Whether PFC is on for a kind of cable."""
        return not self.lossy & {kind, "*"}


@dataclass(frozen=True)
class PortRow:
    """Settings of one class of ports."""

    name: str
    """Tier, kind of cable, rate and length in words: the class."""
    tier: str
    kind: str
    medium: str | None
    """What carries it; None when the catalogue has nothing."""
    rate_gbps: float
    length_m: float
    delay_s: float
    rtt_s: float
    """Base round trip of the longest path."""
    ports: int
    """In the whole fabric."""
    kmin_bytes: int | None
    kmax_bytes: int | None
    pmax: float | None
    ecn_rule: str | None
    headroom_bytes: int | None
    xoff_bytes: int | None
    """With one congested port at the switch; None: no PFC, or the buffer is unknown."""
    xoff_all_bytes: int | None
    """With all ports congested."""
    xon_bytes: int | None
    dci_buffer_bytes: int | None
    """Of a long link without PFC: buffer of the port, 2.5 RTT x rate."""
    reason: str


@dataclass(frozen=True)
class BufferRow:
    """Buffer of one kind of switch."""

    tier: str
    part: str | None
    """None: the catalogue has no switch for it."""
    switches: int
    ports: Mapping[str, int]
    """Lossless ports by class."""
    pool_bytes: int | None
    """None: unknown."""
    headroom_bytes: int
    shared_bytes: int | None
    required_bytes: int
    fits: bool | None
    most_ports: Mapping[str, int]
    """Of each long class: how many such ports the switch could hold beside its others."""
    reason: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class ParameterRow:
    """One parameter of the protocol."""

    name: str
    value: float
    unit: str
    default: float
    meaning: str
    reason: str


@dataclass(frozen=True)
class Tuning:
    """Settings for a fabric."""

    fabric: str
    cc: str
    ports: tuple[PortRow, ...]
    buffers: tuple[BufferRow, ...]
    parameters: tuple[ParameterRow, ...]
    faults: tuple[FabricFault, ...]
    notes: tuple[str, ...]
    alpha: float = 0.125
    static_xoff_bytes: float | None = None

    @property
    def fits(self) -> bool | None:
        """Whether all buffers hold what is asked of them; None when one is unknown and none is too small."""
        answers = [row.fits for row in self.buffers]
        return False if False in answers else None if None in answers else True

    @property
    def tightest(self) -> BufferRow | None:
        """The switch with the least buffer for what is asked of it."""
        known = [row for row in self.buffers if row.pool_bytes]
        return max(known, key=lambda row: row.required_bytes / (row.pool_bytes or 1), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        tightest = self.tightest
        return {
            "fabric": self.fabric,
            "cc": {"name": self.cc, "parameters": [asdict(row) for row in self.parameters]},
            "ports": [_port_data(row) for row in self.ports],
            "buffer": {
                "pool_bytes": tightest.pool_bytes if tightest else None,
                "required_bytes": tightest.required_bytes if tightest else None,
                "fits": self.fits,
                "switches": [{**asdict(row), "remedies": list(row.remedies)} for row in self.buffers],
            },
            "faults": [asdict(fault) for fault in self.faults],
            "notes": list(self.notes),
        }


def _port_data(row: PortRow) -> dict[str, Any]:
    """Return a port class as plain data; its name is ``class``."""
    data = asdict(row)
    return {"class": data.pop("name"), **data}


def tune(fabric: Fabric, catalogue: Catalogue, asked: Asked | None = None) -> Tuning:
    """Return ECN, PFC and protocol settings for a fabric.

    Parameters
    ----------
    fabric
        The fabric.
    catalogue
        Parts, for switches, their buffers and media.
    asked
        What the user decides.

    Returns
    -------
    Tuning
        Settings by class of ports, buffers by kind of switch, parameters, faults.

    Raises
    ------
    SpecError
        Settings that no switch can have (NP201, NP202, NP203, NP205, NP206), all at once.
    ModelRangeError
        A protocol, parameter or rule that is not known, or a value outside its range.
    CatalogError
        A part that is not known.
    """
    asked = asked or Asked()
    cc = PROTOCOLS.find(asked.cc)
    cc.values(asked.parameters)
    _check_kinds(asked)
    classes = find_port_classes(fabric, catalogue, switches=asked.switches, small_packets=asked.small_packets)
    rows, plans, faults = [], _plan_pools(classes, asked), list[FabricFault]()
    settings: list[PortSettings] = []
    reads_ecn = "ecn" in cc.signals
    for number, each in enumerate(classes.classes):
        plan = _plan_of(classes, plans, number)
        choice = _choose_curve(each, asked, cc, plan)
        row, setting = _port_row(each, choice, asked, plan)
        rows.append(row)
        settings.append(setting)
    faults += check_ports(settings)
    buffers = []
    for kind, basic in zip(classes.kinds, plans, strict=True):
        full = _with_room_to_mark(basic, kind, classes, rows, asked)
        if full is not None and full.ports:
            numbers = list(_lossless(kind, classes, asked))
            at = {place: settings[number] for place, number in enumerate(numbers)}
            long = [place for place, n in enumerate(numbers) if classes.classes[n].is_long]
            faults += check_pool(kind.label, full, at, long=long, reads_ecn=reads_ecn)
        faults += _lossy_queues(kind, basic, classes, asked)
        buffers.append(_buffer_row(kind, full, classes, catalogue, asked))
    faults += _unread(asked, cc, rows)
    own = [fault for fault in faults if fault.code not in {"NP204", "NP231"}]
    refuse_errors(own)
    faults.sort(key=lambda fault: fault.severity != "error")
    rtt = max((each.rtt for each in classes.classes), default=0.0)
    line = float(fabric.endpoint_rate.max(initial=0.0))
    parameters = tuple(_parameter(each, cc, asked, line) for each in cc.parameters)
    notes = (*_long_haul_notes(cc, asked, rtt), *_notes(classes, asked))
    return Tuning(
        fabric.name,
        cc.name,
        tuple(rows),
        tuple(buffers),
        parameters,
        tuple(faults),
        notes,
        asked.alpha,
        asked.static_xoff_bytes,
    )


# ---- Pools -------------------------------------------------------------------------------------------------


def _pool_of(kind: SwitchKind, asked: Asked) -> float | None:
    """Return the buffer that queues can use [bytes]; None when it is not known."""
    if asked.pool_bytes is not None:
        return asked.pool_bytes
    return None if kind.part is None else _usable(kind.part)


def _usable(part: SwitchSpec) -> float | None:
    """Return the buffer of a part that queues can use [bytes]: its own figure, else its chip's."""
    buffer = shipped_buffers().get(part.name)
    size = part.buffer.value if part.buffer else buffer.memory if buffer else None
    return None if size is None else size * (buffer.usable if buffer else 1.0)


def _headroom_of(each: PortClass, asked: Asked) -> int:
    """Return the headroom of a port [bytes]: 0 without PFC."""
    if not asked.is_lossless(each.kind):
        return 0
    return int(each.headroom.total_bytes if asked.headroom_bytes is None else asked.headroom_bytes)


def _lossless(kind: SwitchKind, classes: PortClasses, asked: Asked) -> dict[int, int]:
    """Return the lossless ports of a kind of switch by number of the class."""
    return {n: count for n, count in kind.counts.items() if asked.is_lossless(classes.classes[n].kind)}


def _plan_pools(classes: PortClasses, asked: Asked) -> list[PoolPlan | None]:
    """Return the pool of each kind of switch, None where it is not known."""
    plans: list[PoolPlan | None] = []
    for kind in classes.kinds:
        pool = _pool_of(kind, asked)
        plans.append(None if pool is None else _plan(kind, classes, asked, pool))
    return plans


def _plan(kind: SwitchKind, classes: PortClasses, asked: Asked, pool: float) -> PoolPlan:
    """Return the plan of a kind of switch with a pool: its lossless ports."""
    ports = tuple(
        Ports(count, _headroom_of(classes.classes[number], asked))
        for number, count in _lossless(kind, classes, asked).items()
    )
    return PoolPlan(pool, ports, asked.alpha, asked.n_priorities, oversubscription=asked.oversubscription)


def _plan_of(classes: PortClasses, plans: list[PoolPlan | None], number: int) -> PoolPlan | None:
    """Return the pool with the least shared room among the switches that have a class."""
    found = [
        plan
        for kind, plan in zip(classes.kinds, plans, strict=True)
        if number in kind.counts and plan is not None
    ]
    return min(found, key=lambda plan: plan.xoff_bytes(max(plan.n_ports, 1)), default=None)


def _with_room_to_mark(
    plan: PoolPlan | None, kind: SwitchKind, classes: PortClasses, rows: list[PortRow], asked: Asked
) -> PoolPlan | None:
    """Return a plan that also needs a shared pool in which each port marks before it pauses.

    Ports of long paths are left out: thresholds of their round trip are meant for deep buffers.
    """
    if plan is None:
        return None
    near = [n for n in _lossless(kind, classes, asked) if classes.classes[n].rtt < LONG_HAUL_RTT_S]
    kmin = max((rows[number].kmin_bytes or 0 for number in near), default=0)
    return replace(plan, least_shared_bytes=kmin * (1 + asked.alpha) / asked.alpha)


def _buffer_row(
    kind: SwitchKind, plan: PoolPlan | None, classes: PortClasses, catalogue: Catalogue, asked: Asked
) -> BufferRow:
    """Return one kind of switch as a row."""
    names = {classes.classes[number].name: count for number, count in kind.counts.items()}
    asks = plan if plan is not None else _plan(kind, classes, asked, 1.0)
    numbers = enumerate(_lossless(kind, classes, asked))
    long = {place: number for place, number in numbers if classes.classes[number].is_long}
    most = (
        {}
        if plan is None
        else {classes.classes[number].name: plan.most_ports(place) for place, number in long.items()}
    )
    if plan is None:
        what = (
            f"the buffer of {kind.part.name} is not published" if kind.part else "no switch is known for it"
        )
        reason = f"{what}: give it as --pool"
    else:
        reason = plan.reason
    remedies = () if plan is None or plan.fits else tuple(_remedies(kind, plan, long, classes, catalogue))
    return BufferRow(
        kind.tier,
        kind.part.name if kind.part else None,
        kind.switches,
        names,
        None if plan is None else int(plan.pool_bytes),
        int(asks.headroom_bytes),
        None if plan is None else int(plan.shared_bytes),
        int(asks.required_bytes),
        None if plan is None else plan.fits,
        most,
        reason,
        remedies,
    )


def _remedies(
    kind: SwitchKind, plan: PoolPlan, long: Mapping[int, int], classes: PortClasses, catalogue: Catalogue
) -> Iterator[str]:
    """Say what would make a switch lossless, and what does without."""
    for place, number in long.items():
        most = plan.most_ports(place)
        yield f"at most {most} ports of {classes.classes[number].name} a switch"
    larger = []
    for part in catalogue.switches.values():
        usable, buffer = _usable(part), shipped_buffers().get(part.name)
        if usable is not None and usable >= plan.required_bytes and part.protocol == "ethernet":
            deep = ", deep buffer" if buffer and buffer.deep else ""
            larger.append(f"{part.name} ({_said(usable)}{deep})")
    if larger:
        yield f"a switch with {_said(plan.required_bytes)} of buffer or more: {', '.join(larger)}"
    else:
        yield f"a switch with {_said(plan.required_bytes)} of buffer: the catalogue has none"
    for number in long.values():
        each = classes.classes[number]
        room = DCI_BUFFER_RTTS * each.rate * each.rtt
        curve = ECN_RULES["dci"].curve(each.rate, each.rtt)
        yield (
            f"no PFC on {each.name} (--lossy {each.kind}) with the dci thresholds: {_said(room)} of "
            f"buffer a port, Kmin {_said(curve.kmin_bytes)}, "
            f"Kmax {_said(curve.kmax_bytes)}"
        )


# ---- Ports -------------------------------------------------------------------------------------------------


def _check_kinds(asked: Asked) -> None:
    """Refuse settings for a kind of cable that there is not."""
    unknown = (set(asked.ecn) | asked.lossy) - {"*", *LINK_KINDS}
    if unknown:
        raise ModelRangeError(
            f"{min(unknown)!r} is not a kind of cable",
            hint=did_you_mean(min(unknown), LINK_KINDS) or f"kinds: {', '.join(LINK_KINDS)}",
        )


@dataclass(frozen=True)
class _Curve:
    """ECN of a class: what was chosen or asked for, and why."""

    kmin: float | None
    kmax: float | None
    pmax: float | None
    rule: str | None
    reason: str


def _choose_curve(each: PortClass, asked: Asked, cc: CongestionControl, plan: PoolPlan | None) -> _Curve:
    """Return the ECN curve of a class."""
    wish = asked.ecn.get(each.kind, asked.ecn.get("*", ""))
    if wish is None:
        return _Curve(None, None, None, None, "ECN: off, as asked for")
    if isinstance(wish, tuple):
        return _Curve(*wish, None, "ECN: as asked for")
    if not wish and "ecn" not in cc.signals:
        return _Curve(None, None, None, None, f"ECN: off, {cc.name} does not read marks")
    xoff = None if plan is None else plan.xoff_bytes(max(plan.n_ports, 1))
    choice: EcnChoice = choose_ecn(
        each.rate,
        each.rtt,
        xoff=xoff if asked.is_lossless(each.kind) else float("inf"),
        reads_every_mark=cc.name.startswith("dctcp"),
        rule=wish or None,
    )
    curve = choice.curve
    return _Curve(curve.kmin_bytes, curve.kmax_bytes, curve.pmax, choice.rule.name, f"ECN: {choice.reason}")


def _said(value: float) -> str:
    """Write a size to four digits, for sentences."""
    return format_size(int(float(f"{value:.4g}")))


def _whole(value: float | None) -> int | None:
    """Return a number of bytes as a whole one."""
    return None if value is None else round(value)


def _port_row(
    each: PortClass, curve: _Curve, asked: Asked, plan: PoolPlan | None
) -> tuple[PortRow, PortSettings]:
    """Return a class as a row, and as what the checks look at."""
    lossless = asked.is_lossless(each.kind)
    headroom = _headroom_of(each, asked) if lossless else None
    reasons = [curve.reason]
    xoff = xoff_all = None
    if lossless:
        own = asked.headroom_bytes is not None
        reasons.append(f"headroom: {'as asked for' if own else each.headroom.reason}")
        if asked.static_xoff_bytes is not None:
            xoff = xoff_all = asked.static_xoff_bytes
            reasons.append("xoff: static, as asked for")
        elif plan is not None and not plan.shared_bytes:
            reasons.append("xoff: none, the headroom of all ports does not fit the buffer")
        elif plan is not None:
            xoff, xoff_all = plan.xoff_bytes(), plan.xoff_bytes(max(plan.n_ports, 1))
            reasons.append(f"xoff: alpha {asked.alpha:g} of what is free of {_said(plan.shared_bytes)}")
    else:
        reasons.append("no PFC, as asked for")
    row = PortRow(
        each.name,
        each.tier,
        each.kind,
        each.medium,
        each.rate * 8 / 1e9,
        each.length,
        each.delay,
        each.rtt,
        each.ports,
        _whole(curve.kmin),
        _whole(curve.kmax),
        curve.pmax,
        curve.rule,
        headroom,
        _whole(xoff),
        _whole(xoff_all),
        None if xoff is None else max(round(xoff) - XON_OFFSET_BYTES, 0),
        round(DCI_BUFFER_RTTS * each.rate * each.rtt) if each.is_long else None,
        "; ".join(reasons),
    )
    setting = PortSettings(
        each.name,
        each.rate,
        each.delay,
        curve.kmin,
        curve.kmax,
        curve.pmax,
        headroom,
        asked.static_xoff_bytes if lossless else None,
        XON_OFFSET_BYTES,
    )
    return row, setting


def _lossy_queues(
    kind: SwitchKind, plan: PoolPlan | None, classes: PortClasses, asked: Asked
) -> Iterator[FabricFault]:
    """Yield long ports without PFC whose queues the buffer cannot hold at once."""
    for number, count in kind.counts.items():
        each = classes.classes[number]
        if plan is None or asked.is_lossless(each.kind) or not each.is_long:
            continue
        room = DCI_BUFFER_RTTS * each.rate * each.rtt
        most = int(plan.shared_bytes // room)
        if most < count:
            yield FabricFault(
                "NP232",
                "warning",
                f"{kind.label}, {each.name}",
                f"{count} ports without PFC may queue {_said(room)} each (2.5 RTT x rate); "
                f"{_said(plan.shared_bytes)} hold {most} such queues at once",
                hint="more congested ports than that lose packets: a deep-buffer switch does not",
            )


def _unread(asked: Asked, cc: CongestionControl, rows: list[PortRow]) -> list[FabricFault]:
    """Return settings that change nothing, and marking that is missing."""
    found = []
    reads = "ecn" in cc.signals
    if asked.ecn and not reads:
        said = ", ".join(cc.signals) or "nothing"
        found.append(
            FabricFault(
                "NP214",
                "warning",
                "--ecn",
                f"ECN thresholds change nothing under {cc.name}, which reads {said}",
                hint="leave them out",
            )
        )
    off = [row.name for row in rows if row.kmin_bytes is None]
    if reads and off:
        found.append(
            FabricFault(
                "NP213",
                "warning",
                off[0] + (f" and {len(off) - 1} more" if len(off) > 1 else ""),
                f"ECN is off, and {cc.name} slows down on marks alone",
                hint="give these ports an ECN curve",
            )
        )
    return found


# ---- Parameters and notes ----------------------------------------------------------------------------------


def _parameter(each: Parameter, cc: CongestionControl, asked: Asked, line: float) -> ParameterRow:
    """Return one parameter: the user's, one scaled by the NIC's rate or the default."""
    value, reason = each.default, f"default: {each.source}"
    if cc.name in _SCALED_AT_100G and each.name in {"rate_ai", "rate_hai"} and line != _100G:
        value = each.default * line / _100G
        reason = f"the default of 100G in proportion to NICs of {format_rate(line)}: {each.source}"
    if each.name in asked.parameters:
        value, reason = asked.parameters[each.name], "as asked for"
    return ParameterRow(each.name, value, each.unit, each.default, each.meaning, reason)


def _long_haul_notes(cc: CongestionControl, asked: Asked, rtt: float) -> Iterator[str]:
    """Say what is known of a protocol over long links."""
    if rtt >= LONG_HAUL_RTT_S and cc.name.startswith("dcqcn") and "timer_s" not in asked.parameters:
        yield (
            f"Round trips of {rtt * 1e6:.0f} us: default DCQCN is known to swing there. HPE and Juniper ran "
            "50 to 500 km with rpg_time_reset 5 ms, clamp_tgt_rate 1, rpg_min_dec_fac 95 % and one "
            "bandwidth-delay product outstanding (--cc dcqcn-long-haul); --search TRAFFIC looks for what "
            "suits a demand."
        )


def _notes(classes: PortClasses, asked: Asked) -> Iterator[str]:
    """Say what was taken."""
    general = sorted(
        {
            kind.part.name if kind.part else f"the unlisted {kind.tier} switch"
            for kind in classes.kinds
            if kind.part is None or kind.part.name not in shipped_buffers()
        }
    )
    if general and any(asked.is_lossless(each.kind) for each in classes.classes):
        yield (
            f"No headroom table was found for {', '.join(general)}: the general rule is taken "
            "(IEEE pause quanta, cells of 192 bytes)."
        )
    credit = sorted(
        {kind.part.name for kind in classes.kinds if kind.part and kind.part.protocol != "ethernet"}
    )
    if credit:
        yield f"{', '.join(credit)}: InfiniBand has credits, no PFC; these settings are Ethernet's."
    lossless = [each for each in classes.classes if asked.is_lossless(each.kind)]
    if not lossless:
        return
    worst = max(each.rule.cell_bytes / each.rule.packet_bytes for each in lossless)
    yield (
        f"Headroom counts {asked.small_packets:.0%} small packets in flight; with small packets alone "
        f"(--small-packets 100%) the part on the cable is up to {worst:.3g} times as large."
    )
    for each in lossless:
        if each.is_long:
            yield (
                f"{each.name}: headroom makes it lossless; to be busy after every pause its queue also has "
                f"to hold {_said(2 * each.rate * each.delay)} below xon (another 2 x rate x delay)."
            )
