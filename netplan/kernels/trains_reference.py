"""The rules of `trains`, packet by packet, in the most obvious way: the oracle for the compiled engine.

One heap of events in the order of time, objects for links and flows, every timer of DCQCN an event
of its own. Protocols: none and DCQCN (ConnectX flavour); lossless switches with dynamic thresholds, or
lossy ones with go-back-N; PFC watchdogs. A test holds its results equal to the engine's with single-packet
trains.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Dcqcn", "Link", "Sender", "Switch", "simulate_packets"]


@dataclass
class Switch:
    """A node that forwards."""

    pool: float
    """Bytes its ports share."""
    reserve: float
    offset: float
    lossless: bool
    shared: float = 0.0
    watchdog: str = ""
    """What it does with a queue that is paused too long: drop, forward; empty: nothing."""
    detect: float = 0.0
    restore: float = 0.0


@dataclass
class Link:
    """A directed link with its transmitter, and what its far end keeps of its packets."""

    rate: float
    delay: float
    src: int
    dst: int
    kmin: float = math.inf
    kmax: float = math.inf
    pmax: float = 1.0
    alpha: float = 0.0
    room: float = 0.0
    free: float = 0.0
    queue: deque[_Packet] = field(default_factory=deque)
    waiting: float = 0.0
    peak: float = 0.0
    paused: bool = False
    awake: bool = False
    asked: bool = False
    pauses: int = 0
    held: float = 0.0
    room_used: float = 0.0
    drops: int = 0
    since: float = 0.0
    storm: str = ""
    storms: int = 0
    last: int = -1
    flows: set[int] = field(default_factory=set)


@dataclass
class Dcqcn:
    """Parameters, see `netplan.congestion.cc.dcqcn`."""

    gain: float
    alpha_s: float
    cut_s: float
    timer_s: float
    steps: float
    ai: float
    hai: float
    min_rate: float


@dataclass
class Sender:
    """A flow, both ends."""

    size: float
    start: float
    path: Sequence[int]
    back: Sequence[int]
    payload: float
    header: float
    ack: float
    window: float = math.inf
    line: float = 0.0
    rate: float = 0.0
    next: float = 0.0
    sent: float = 0.0
    acked: float = 0.0
    got: float = 0.0
    nack_at: float = 0.0
    nack_for: float = -1.0
    begun: bool = False
    finish: float = math.inf
    received: float = math.inf
    marks: int = 0
    target: float = 0.0
    alpha: float = 1.0
    alpha_bit: bool = False
    cut_bit: bool = False
    timed: bool = False
    stage: float = 0.0
    raise_turn: int = 0


@dataclass
class _Packet:
    flow: int
    load: float
    wire: float
    seq: float
    hop: int = 0
    mark: bool = False


def simulate_packets(
    links: list[Link],
    switches: dict[int, Switch],
    senders: list[Sender],
    draw: Callable[[int, int, int], float],
    dcqcn: Dcqcn | None = None,
    *,
    pause_bytes: float = 64.0,
    nack_gap: float = 500e-6,
    end: float = 1.0,
) -> None:
    """Run until all flows are done; results are left in the arguments.

    Parameters
    ----------
    links, switches, senders
        The network and what is sent; switches by node, all other nodes are hosts.
    draw
        Random number in [0, 1) of (flow, packet, hop).
    dcqcn
        Parameters; None: senders stay at line rate.
    pause_bytes, nack_gap, end
        Bytes of a pause frame, time between NACKs for one packet [s], latest time [s].
    """
    _Run(links, switches, senders, draw, dcqcn, pause_bytes, nack_gap).run(end)


class _Run:
    def __init__(
        self,
        links: list[Link],
        switches: dict[int, Switch],
        senders: list[Sender],
        draw: Callable[[int, int, int], float],
        dcqcn: Dcqcn | None,
        pause_bytes: float,
        nack_gap: float,
    ) -> None:
        self.links, self.switches, self.senders = links, switches, senders
        self.draw, self.dcqcn, self.pause_bytes, self.nack_gap = draw, dcqcn, pause_bytes, nack_gap
        self.now = 0.0
        self.heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self.order = itertools.count()
        for f, sender in enumerate(senders):
            links[sender.path[0]].flows.add(f)
            self.at(sender.start, self.begin, f)

    def at(self, time: float, what: Callable[..., None], *args: object) -> None:
        heapq.heappush(self.heap, (time, next(self.order), what, args))

    def run(self, end: float) -> None:
        while self.heap and any(math.isinf(sender.finish) for sender in self.senders):
            self.now, _, what, args = heapq.heappop(self.heap)
            if self.now > end:
                return
            what(*args)

    # ---- hosts

    def begin(self, f: int) -> None:
        sender = self.senders[f]
        sender.line = sender.rate = sender.target = self.links[sender.path[0]].rate
        sender.next = self.now
        sender.begun = True
        self.wake_nic(sender.path[0])

    def may_send(self, f: int) -> bool:
        sender = self.senders[f]
        return (
            sender.begun
            and math.isinf(sender.finish)
            and sender.sent < sender.size
            and sender.sent - sender.acked < sender.window
        )

    def wake_nic(self, nic: int) -> None:
        """Send the next packet in turn, if the transmitter is free and not paused."""
        link = self.links[nic]
        if link.paused:
            return
        if link.free > self.now:
            self.at(link.free, self.wake_nic, nic)
            return
        n = len(self.senders)
        able = sorted((f for f in link.flows if self.may_send(f)), key=lambda f: (f - link.last - 1) % n)
        for f in able:
            sender = self.senders[f]
            if sender.next <= self.now:
                link.last = f
                load = min(sender.payload, sender.size - sender.sent)
                packet = _Packet(f, load, load + sender.header, sender.sent)
                sender.sent += load
                sender.next = self.now + packet.wire / min(sender.rate, link.rate)
                self.transmit(packet, nic)
                self.at(link.free, self.wake_nic, nic)
                return
        if able:
            self.at(min(self.senders[f].next for f in able), self.wake_nic, nic)

    # ---- links and switches

    def transmit(self, packet: _Packet, number: int) -> None:
        link = self.links[number]
        if packet.hop > 0:
            q, f = link.waiting, packet.flow
            if q > link.kmax:
                packet.mark = True
            elif q > link.kmin:
                p = link.pmax * (q - link.kmin) / (link.kmax - link.kmin)
                index = int(packet.seq / self.senders[f].payload)
                packet.mark = packet.mark or self.draw(f, index, packet.hop) < p
        link.free = self.now + packet.wire / link.rate
        packet.hop += 1
        self.at(link.free + link.delay, self.arrive, packet)

    def threshold(self, way_in: Link) -> float:
        switch = self.switches[way_in.dst]
        return max(switch.pool - switch.shared, 0.0) * way_in.alpha

    def arrive(self, packet: _Packet) -> None:
        sender = self.senders[packet.flow]
        if packet.hop == len(sender.path):
            self.deliver(packet)
            return
        number = sender.path[packet.hop]
        link, way_in = self.links[number], self.links[sender.path[packet.hop - 1]]
        if (
            not link.queue
            and (not link.paused or link.storm == "forward")
            and link.storm != "drop"
            and link.free <= self.now
        ):
            self.transmit(packet, number)
            return
        switch = self.switches[link.src]
        if link.storm == "drop":
            link.drops += 1
            return
        used = max(way_in.held - switch.reserve, 0.0)
        if way_in.room_used + packet.wire > way_in.room and used + packet.wire > self.threshold(way_in):
            link.drops += 1
            return
        held = way_in.held + packet.wire
        if held <= switch.reserve:
            way_in.held = held
        elif held - switch.reserve > self.threshold(way_in):
            way_in.room_used += packet.wire
        else:
            way_in.held = held
            switch.shared += min(packet.wire, held - switch.reserve)
        if switch.lossless and not way_in.asked:
            used = max(way_in.held - switch.reserve, 0.0)
            if way_in.room_used > 0 or used >= self.threshold(way_in):
                way_in.asked = True
                way_in.pauses += 1
                self.frame(sender.path[packet.hop - 1], stop=True)
        link.queue.append(packet)
        link.waiting += packet.wire
        link.peak = max(link.peak, link.waiting)
        self.wake_port(number)

    def frame(self, number: int, *, stop: bool) -> None:
        link = self.links[number]
        self.at(self.now + link.delay + self.pause_bytes / link.rate, self.pause, number, stop)

    def pause(self, number: int, stop: bool) -> None:  # noqa: FBT001 - an event's argument
        link = self.links[number]
        if link.paused != stop and link.src in self.switches and self.switches[link.src].watchdog:
            switch = self.switches[link.src]
            link.since = self.now
            if stop:
                self.at(self.now + switch.detect, self.look, number)
            elif link.storm:
                self.at(self.now + switch.restore, self.calm, number)
        link.paused = stop
        if not stop:
            (self.wake_port if link.src in self.switches else self.wake_nic)(number)

    def look(self, number: int) -> None:
        """Take a queue that has been paused for the detection time and holds packets."""
        link, switch = self.links[number], self.switches[self.links[number].src]
        if link.storm or not link.paused or link.since + switch.detect > self.now:
            return
        if not link.queue:
            self.at(self.now + switch.detect, self.look, number)
            return
        link.storm = switch.watchdog
        link.storms += 1
        if link.storm == "forward":
            self.wake_port(number)
        while link.storm == "drop" and link.queue:
            self.take(number)
            link.drops += 1

    def calm(self, number: int) -> None:
        """End a storm once the queue has not been paused for the restoration time."""
        link = self.links[number]
        if link.storm and not link.paused and link.since + self.switches[link.src].restore <= self.now:
            link.storm = ""
            self.wake_port(number)

    def wake_port(self, number: int) -> None:
        link = self.links[number]
        if link.queue and (not link.paused or link.storm == "forward") and not link.awake:
            link.awake = True
            self.at(max(link.free, self.now), self.serve, number)

    def serve(self, number: int) -> None:
        link = self.links[number]
        link.awake = False
        if (link.paused and link.storm != "forward") or not link.queue:
            return
        if link.free > self.now:
            self.wake_port(number)
            return
        self.transmit(self.take(number), number)
        self.wake_port(number)

    def take(self, number: int) -> _Packet:
        """Take the first packet off a queue, and its bytes off the buffer."""
        link = self.links[number]
        packet = link.queue.popleft()
        link.waiting -= packet.wire
        sender = self.senders[packet.flow]
        way_in, switch = self.links[sender.path[packet.hop - 1]], self.switches[link.src]
        room = min(way_in.room_used, packet.wire)
        shared = min(packet.wire - room, max(way_in.held - switch.reserve, 0.0))
        way_in.room_used -= room
        way_in.held -= packet.wire - room
        switch.shared -= shared
        used = max(way_in.held - switch.reserve, 0.0)
        if (
            way_in.asked
            and way_in.room_used <= 0
            and (used <= 0 or used + switch.offset <= self.threshold(way_in))
        ):
            way_in.asked = False
            self.frame(sender.path[packet.hop - 1], stop=False)
        return packet

    # ---- receivers

    def deliver(self, packet: _Packet) -> None:
        sender = self.senders[packet.flow]
        nack = packet.seq > sender.got
        if nack:
            if self.now < sender.nack_at and sender.nack_for == sender.got:
                return
            sender.nack_at, sender.nack_for = self.now + self.nack_gap, sender.got
        elif packet.seq < sender.got:
            return
        else:
            sender.got += packet.load
            sender.marks += packet.mark
            if sender.got >= sender.size:
                sender.received = self.now
        late = 0.0
        for number in sender.back:
            link = self.links[number]
            late += link.delay + sender.ack / link.rate
            link.free = max(link.free, self.now) + sender.ack / link.rate
        self.at(self.now + late, self.acknowledge, packet, nack)

    def acknowledge(self, packet: _Packet, nack: bool) -> None:  # noqa: FBT001 - an event's argument
        sender = self.senders[packet.flow]
        if nack:
            sender.sent = sender.acked
        else:
            sender.acked += packet.load
            sender.sent = max(sender.sent, sender.acked)
            if sender.acked >= sender.size:
                sender.finish = self.now
                return
            if packet.mark and self.dcqcn:
                self.notify(packet.flow, self.dcqcn)
        self.wake_nic(sender.path[0])

    # ---- DCQCN, every timer an event

    def notify(self, f: int, dcqcn: Dcqcn) -> None:
        sender = self.senders[f]
        sender.alpha_bit = sender.cut_bit = True
        if not sender.timed:
            sender.timed = True
            sender.alpha, sender.alpha_bit = 1.0, False
            sender.target = sender.rate
            self.at(self.now + dcqcn.alpha_s, self.tick, f, dcqcn)
            self.at(self.now + dcqcn.cut_s + 1e-9, self.check, f, dcqcn)

    def tick(self, f: int, dcqcn: Dcqcn) -> None:
        sender = self.senders[f]
        sender.alpha = (1 - dcqcn.gain) * sender.alpha + dcqcn.gain * sender.alpha_bit
        sender.alpha_bit = False
        self.at(self.now + dcqcn.alpha_s, self.tick, f, dcqcn)

    def check(self, f: int, dcqcn: Dcqcn) -> None:
        sender = self.senders[f]
        self.at(self.now + dcqcn.cut_s, self.check, f, dcqcn)
        if not sender.cut_bit:
            return
        if sender.stage > 0:
            sender.target = sender.rate
        sender.rate = max(dcqcn.min_rate, sender.rate * (1 - sender.alpha / 2))
        sender.stage, sender.cut_bit = 0.0, False
        sender.raise_turn += 1
        self.at(self.now + dcqcn.timer_s, self.rise, f, dcqcn, sender.raise_turn)

    def rise(self, f: int, dcqcn: Dcqcn, turn: int) -> None:
        sender = self.senders[f]
        if turn != sender.raise_turn:
            return
        self.at(self.now + dcqcn.timer_s, self.rise, f, dcqcn, turn)
        if sender.stage >= dcqcn.steps:
            sender.target += dcqcn.ai if sender.stage == dcqcn.steps else dcqcn.hai
            sender.target = min(sender.target, sender.line)
        sender.rate = (sender.rate + sender.target) / 2
        sender.stage += 1
