"""Run one traffic pattern through SimGrid, the independent peer of netplan.

The script needs the Python bindings of SimGrid (Debian: ``python3-simgrid``,
tested with 3.32) and the standard library, and nothing of netplan, so that it
can serve as an independent witness: the results it prints are SimGrid's own.
One run simulates one pattern and prints one JSON object on standard output;
SimGrid itself logs to standard error.

Fabric
------
SimGrid's fat-tree zone, an extended generalised fat tree with one cable
between any two connected nodes, as many uplinks as downlinks per switch below
the top tier, and two directed links per cable (``SPLITDUPLEX``).  A shape is
written ``L;m1,...,mL``: ``L`` tiers of switches, the switches of tier ``l``
with ``ml`` children each.  SimGrid gets the topology parameters
``L;m1,...,mL;1,m1,...,m(L-1);1,...,1``.  There are no loopback and no limiter
links.

Model
-----
``network/model:CM02`` with latency and bandwidth factors of 1, no TCP window
bound (``TCP-gamma`` 0), no influence of the reverse traffic (``crosstraffic``
0) and no size term in the weights (``weight-S`` 0).  A flow first waits for
the latency of its path, without using bandwidth, and then transfers its bytes
at its share.

The share is *not* plain max-min fairness in general: CM02 weights a flow with
the inverse of the latency of its path.  The weights cancel where all flows
that share a link have equally long paths, which holds for every permutation on
a two-tier shape.  On three tiers it does not hold: four-hop and six-hop flows
share the uplinks of the leaf switches.  With ``--latency 0`` every flow has
weight 1, and the result is plain max-min fairness on any shape.

Routing rule
------------
Hosts are numbered from 0.  Write ``M(0) = 1`` and ``M(l) = m1 * ... * ml``.
The lowest tier that joins source ``s`` and destination ``d`` is the smallest
``t`` with ``s div M(t) = d div M(t)``, and the path has ``2 t`` links.  The
host has one uplink; a switch of tier ``l`` sends a flow that has to climb to
uplink ``c(l) = (d div M(l-1)) mod ml``.  So the uplink is ``d mod m1`` at the
leaf, ``(d div m1) mod m2`` one tier above, and so on: all flows towards ``d``
meet at one top switch, and the source plays no part.  Uplink ``j`` of a switch
leads to parent ``j``, and the way down is then the only one there is.  The
directed links of the path are

- up from tier ``l``:  ``(up, l, s div M(l), c(1), ..., c(l))`` for l < t,
- down to tier ``l``:  ``(down, l, d div M(l), c(1), ..., c(l))`` for l < t,

and two flows share a link in SimGrid if and only if they share one of these
names.  ``--check-routes`` verifies this against the routes SimGrid reports.
In a permutation only the up links of the switches can carry several flows.

Traffic
-------
Host ``i`` sends one message, and all messages start at time 0.

``ring``
    To host ``(i + 1) mod n``, ``--bytes`` each.
``permutation``
    To host ``p[i]``, ``--bytes`` each.  ``p`` starts as 0, 1, ..., n - 1; for
    i = n - 1 down to 1 it swaps ``p[i]`` and ``p[r mod (i + 1)]``, where ``r``
    is the next number of `SplitMix64` seeded with ``--seed``.  Then, for i = 0
    up to n - 1, a fixed point ``p[i] = i`` swaps ``p[i]`` and
    ``p[(i + 1) mod n]``.
``permutation-sizes``
    The same permutation, but host ``i`` sends ``floor(bytes * (0.5 + u))``
    bytes, where ``u = (r >> 11) / 2**53`` and ``r`` is the next number of the
    same generator, continued after the permutation, drawn for i = 0 up to
    n - 1.

Time
----
``build_cpu_s`` is the CPU time of the process from the creation of SimGrid's
engine until the zone is sealed.  SimGrid creates hosts and links there but
computes a route only when a message starts, so ``solve_cpu_s``, the CPU time
of the simulation run, contains the routes and the Python calls that start the
messages and wait for them; ``start_cpu_s`` is the part up to the last start.
Importing the module is in neither.  The process binds itself to one processor:
SimGrid computes on one anyway, and its Python actors are threads, whose
hand-overs cost two to three times as much CPU time between two processors.

Examples
--------
::

    /usr/bin/python3 benchmarks/simgrid_peer.py 256 --pattern ring --times
    /usr/bin/python3 benchmarks/simgrid_peer.py --shape "3;8,8,8" --latency 0
    /usr/bin/python3 benchmarks/simgrid_peer.py 4096 --check-routes 20000
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHAPES: dict[int, tuple[int, ...]] = {
    64: (8, 8),
    256: (16, 16),
    1024: (32, 32),
    4096: (16, 16, 16),
    16384: (32, 32, 16),
}
"""Children per switch, from the leaf tier up, by number of hosts."""

PATTERNS = ("ring", "permutation", "permutation-sizes")

CONFIG = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "surf/precision:1e-12",
)
"""Settings of SimGrid; the default precision of 1e-9 s would merge close events."""

VECTOR_FORMAT = "simgrid-vector/1"

LinkName = tuple[str | int, ...]
"""Name of a directed link by the rule in the docstring of the module."""


def load_simgrid() -> Any:
    """Import SimGrid where it is used, so that the rest works without it."""
    try:
        return importlib.import_module("simgrid")
    except ModuleNotFoundError:
        sys.exit(
            f"SimGrid's Python bindings are not installed for {sys.executable}. "
            "On Debian: apt-get install python3-simgrid, and run this script with /usr/bin/python3."
        )


class SplitMix64:
    """Pseudo-random 64-bit numbers that any language reproduces exactly.

    Parameters
    ----------
    seed : int
        Initial state, taken modulo 2**64.

    References
    ----------
    G. L. Steele Jr., D. Lea and C. H. Flood, "Fast splittable pseudorandom
    number generators", OOPSLA 2014, https://doi.org/10.1145/2660193.2660195.
    """

    MASK = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        self._state = seed & self.MASK

    def next(self) -> int:
        """Advance the state and return the next number, 0 to 2**64 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & self.MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        """Return the next number scaled to a float, 0 <= u < 1."""
        return (self.next() >> 11) / (1 << 53)


def derangement(n: int, random: SplitMix64) -> list[int]:
    """Draw a permutation without fixed points.

    Parameters
    ----------
    n : int
        Number of elements, at least 2.
    random : SplitMix64
        Source of random numbers, advanced by ``n - 1`` numbers.

    Returns
    -------
    list of int
        The image of each element, by the procedure in the docstring of the
        module.
    """
    image = list(range(n))
    for i in range(n - 1, 0, -1):
        j = random.next() % (i + 1)
        image[i], image[j] = image[j], image[i]
    for i in range(n):
        if image[i] == i:
            j = (i + 1) % n
            image[i], image[j] = image[j], image[i]
    return image


def traffic(pattern: str, n: int, size: int, seed: int) -> tuple[list[int], list[int]]:
    """Return the destination and the bytes of the message of each host.

    Parameters
    ----------
    pattern : str
        One of `PATTERNS`.
    n : int
        Number of hosts.
    size : int
        Bytes of a message, or their mean for ``permutation-sizes``.
    seed : int
        Seed of the permutation and the sizes; ``ring`` ignores it.

    Returns
    -------
    destinations : list of int
    sizes : list of int
    """
    if pattern == "ring":
        return [(i + 1) % n for i in range(n)], [size] * n
    random = SplitMix64(seed)
    destinations = derangement(n, random)
    if pattern == "permutation":
        return destinations, [size] * n
    return destinations, [math.floor(size * (0.5 + random.uniform())) for _ in range(n)]


def rule_links(shape: tuple[int, ...], source: int, destination: int) -> list[LinkName]:
    """Return the directed links of a path by the rule of this module.

    Parameters
    ----------
    shape : tuple of int
        Children per switch, from the leaf tier up.
    source, destination : int
        Two different hosts.

    Returns
    -------
    list of tuple
        Names of the links in the order of the path.
    """
    up: list[LinkName] = []
    down: list[LinkName] = []
    below = 1
    choices: tuple[int, ...] = ()
    for tier, children in enumerate(shape):
        # One round per tier that the flow leaves upwards, from the host on.
        up.append(("up", tier, source // below, *choices))
        down.append(("down", tier, destination // below, *choices))
        choices += (destination // below % children,)
        below *= children
        if source // below == destination // below:
            break
    return up + down[::-1]


@dataclass
class Fabric:
    """A sealed fat-tree zone of SimGrid.

    Attributes
    ----------
    engine : simgrid.Engine
    hosts : list of simgrid.Host
        In the order of the numbers used in the docstring of the module.
    """

    engine: Any
    hosts: list[Any] = field(default_factory=list)


def build(shape: tuple[int, ...], bandwidth: float, latency: float) -> Fabric:
    """Create the fabric; possible once per process.

    Parameters
    ----------
    shape : tuple of int
        Children per switch, from the leaf tier up.
    bandwidth : float
        Bytes per second of each directed link.
    latency : float
        Seconds of each directed link.

    Returns
    -------
    Fabric
    """
    simgrid = load_simgrid()
    engine = simgrid.Engine(
        ["simgrid_peer", "--log=root.thres:warning", *(f"--cfg={item}" for item in CONFIG)]
    )
    fabric = Fabric(engine)

    def create_host(zone: Any, _coordinates: list[int], number: int) -> tuple[Any, None]:
        host = zone.create_host(f"host-{number}", 1e9).seal()
        fabric.hosts.append(host)
        return host.netpoint, None

    tiers = len(shape)
    zone = simgrid.NetZone.create_fatTree_zone(
        "fabric",
        None,
        simgrid.FatTreeParams(tiers, list(shape), [1, *shape[:-1]], [1] * tiers),
        simgrid.ClusterCallbacks(create_host, None, None),
        bandwidth,
        latency,
        simgrid.Link.SharingPolicy.SPLITDUPLEX,
    )
    zone.seal()
    return fabric


def simulate(fabric: Fabric, destinations: list[int], sizes: list[int]) -> tuple[list[float], float]:
    """Start one message per host at time 0 and run until all have arrived.

    Parameters
    ----------
    fabric : Fabric
    destinations, sizes : list of int
        Destination and bytes of the message of each host.

    Returns
    -------
    finish : list of float
        Seconds of simulated time at which each message has arrived.
    start_cpu : float
        CPU seconds of the calls that start the messages.
    """
    simgrid = load_simgrid()
    finish: list[float] = []
    start_cpu = 0.0

    def send_all() -> None:
        nonlocal start_cpu
        begin = time.process_time()
        messages = [
            simgrid.Comm.sendto_async(fabric.hosts[source], fabric.hosts[destination], size)
            for source, (destination, size) in enumerate(zip(destinations, sizes, strict=True))
        ]
        start_cpu = time.process_time() - begin
        for message in messages:
            # SimGrid keeps the time of arrival, whenever the actor asks for it.
            message.wait()
            finish.append(message.finish_time)

    simgrid.Actor.create("sender", fabric.hosts[0], send_all)
    fabric.engine.run()
    return finish, start_cpu


def check_routes(fabric: Fabric, shape: tuple[int, ...], count: int, seed: int) -> dict[str, Any]:
    """Compare the links of SimGrid's routes with `rule_links`.

    Two flows share a link in SimGrid if and only if they share one by the
    rule, for all pairs of the flows looked at, exactly when names of SimGrid
    and names of the rule correspond one to one.

    Parameters
    ----------
    fabric : Fabric
    shape : tuple of int
    count : int
        Number of random source-destination pairs; all pairs are taken instead
        when there are no more of them than that.
    seed : int

    Returns
    -------
    dict
        Pairs and links looked at, and the number of contradictions.
    """
    n = len(fabric.hosts)
    if n * (n - 1) <= count:
        pairs = [(s, d) for s in range(n) for d in range(n) if s != d]
    else:
        random = SplitMix64(seed)
        pairs = []
        for _ in range(count):
            source = random.next() % n
            pairs.append((source, (source + 1 + random.next() % (n - 1)) % n))
    to_rule: dict[str, LinkName] = {}
    to_simgrid: dict[LinkName, str] = {}
    contradictions = 0
    for source, destination in pairs:
        names = [link.name for link in fabric.hosts[source].route_to(fabric.hosts[destination])[0]]
        expected = rule_links(shape, source, destination)
        contradictions += len(names) != len(expected)
        for name, rule in zip(names, expected, strict=False):
            contradictions += to_rule.setdefault(name, rule) != rule
            contradictions += to_simgrid.setdefault(rule, name) != name
    return {"pairs": len(pairs), "links": len(to_rule), "contradictions": contradictions}


def deciles(values: list[float]) -> list[float]:
    """Return the 0 %, 10 %, ..., 100 % quantiles, linearly interpolated."""
    ordered = sorted(values)
    result = []
    for tenth in range(11):
        below, rest = divmod(tenth * (len(ordered) - 1), 10)
        above = min(below + 1, len(ordered) - 1)
        result.append(ordered[below] + (ordered[above] - ordered[below]) * rest / 10)
    return result


def rounded(value: float) -> float:
    """Return a number with 9 significant digits."""
    return float(f"{value:.9g}")


def write_vector(
    path: Path, header: dict[str, Any], finish: list[float], lists: dict[str, list[Any]]
) -> None:
    """Write a test vector, one member of the JSON object per line.

    Parameters
    ----------
    path : Path
    header : dict
        What was simulated.
    finish : list of float
        Seconds at which each message has arrived, for the statistics.
    lists : dict of list
        Members with one value per host.
    """
    vector = {
        "format": VECTOR_FORMAT,
        **header,
        "makespan_s": rounded(max(finish)),
        "mean_finish_s": rounded(math.fsum(finish) / len(finish)),
        "deciles_finish_s": [rounded(value) for value in deciles(finish)],
        **lists,
    }
    lines = (f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in vector.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the children per switch, from the leaf tier up.

    Parameters
    ----------
    text : str
        A number of hosts listed in `SHAPES`, or ``L;m1,...,mL``.
    """
    tiers, separator, children = text.partition(";")
    try:
        if not separator:
            return SHAPES[int(text)]
        shape = tuple(int(item) for item in children.split(","))
        valid = len(shape) == int(tiers) and min(shape) > 0 and math.prod(shape) > 1
    except (KeyError, ValueError):
        valid = False
    if not valid:
        known = ", ".join(map(str, SHAPES))
        raise argparse.ArgumentTypeError(f"neither L;m1,...,mL nor one of {known}: {text!r}")
    return shape


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="Run one traffic pattern through SimGrid's fat tree.")
    shape = parser.add_mutually_exclusive_group(required=True)
    shape.add_argument(
        "hosts", nargs="?", type=parse_shape, help=f"number of hosts: {', '.join(map(str, SHAPES))}"
    )
    shape.add_argument(
        "--shape", type=parse_shape, help="tiers and children per switch, for example '2;16,16'"
    )
    parser.add_argument("--pattern", choices=PATTERNS, default="permutation")
    parser.add_argument("--bytes", type=int, default=16 << 20, help="bytes per message (default: 16 MiB)")
    parser.add_argument(
        "--bandwidth", type=float, default=50e9, help="bytes/s of a directed link (default: 50e9)"
    )
    parser.add_argument(
        "--latency", type=float, default=1e-6, help="seconds of a directed link (default: 1e-6)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the permutation and the sizes (default: 1)"
    )
    parser.add_argument("--times", action="store_true", help="print the time at which each message arrives")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write a test vector")
    parser.add_argument("--summary", action="store_true", help="leave the lists out of the test vector")
    parser.add_argument(
        "--check-routes",
        type=int,
        metavar="PAIRS",
        help="instead of simulating, compare this many random routes (or all) with the rule",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = parse_arguments(arguments)
    shape: tuple[int, ...] = options.shape or options.hosts
    n = math.prod(shape)
    # See "Time" in the docstring of the module.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    header: dict[str, Any] = {
        "simulator": "SimGrid",
        "version": load_simgrid().simgrid_version,
        "model": list(CONFIG),
        "shape": f"{len(shape)};{','.join(map(str, shape))}",
        "n": n,
    }
    begin = time.process_time()
    fabric = build(shape, options.bandwidth, options.latency)
    build_cpu = time.process_time() - begin

    if options.check_routes is not None:
        result = header | check_routes(fabric, shape, options.check_routes, options.seed)
        print(json.dumps(result))
        return 1 if result["contradictions"] else 0

    destinations, sizes = traffic(options.pattern, n, options.bytes, options.seed)
    header |= {
        "pattern": options.pattern,
        "seed": None if options.pattern == "ring" else options.seed,
        "bytes": options.bytes,
        "bandwidth_Bps": options.bandwidth,
        "latency_s": options.latency,
    }
    begin = time.process_time()
    finish, start_cpu = simulate(fabric, destinations, sizes)
    solve_cpu = time.process_time() - begin

    result = header | {
        "makespan_s": max(finish),
        "mean_finish_s": math.fsum(finish) / n,
        "build_cpu_s": build_cpu,
        "solve_cpu_s": solve_cpu,
        "start_cpu_s": start_cpu,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if options.times:
        result["finish_s"] = finish
    print(json.dumps(result))
    if options.write is not None:
        lists: dict[str, list[Any]] = {}
        if not options.summary:
            lists["destinations"] = destinations
            if options.pattern == "permutation-sizes":
                lists["sizes"] = sizes
            lists["finish_s"] = [rounded(value) for value in finish]
        write_vector(options.write, header, finish, lists)
    return 0


if __name__ == "__main__":
    sys.exit(main())
