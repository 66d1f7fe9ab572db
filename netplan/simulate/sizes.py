"""One workload at many sizes, as nccl-tests sweeps them.

Under max-min all flows of a collective start together, so that the time until a flow's last byte is
in proportion to the bytes: rates are solved once for every algorithm, protocol and number of QPs that
occur, and only latencies and NCCL's own times are taken anew for each size. Two runs, of one size and
of twice that, tell the part of each flow's time that grows from the part that does not. Under a
protocol of congestion control every size is run.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import TrafficError, UnitError
from netplan.routing import RoutingOptions
from netplan.simulate.run import phase_time, simulate
from netplan.simulate.scenario import MAX_MIN, Scenario
from netplan.traffic import build_demand, place_ranks
from netplan.traffic.demand import resolve_software, with_software
from netplan.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.simulate.result import Result
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead
    from netplan.traffic.demand import Demand, Software

#: Version of the JSON of a sweep.
SCHEMA = "netplan/sizes/1"

#: Size at which a pattern is solved [bytes].
_REFERENCE = 2**30

#: Bytes of an element: nccl-tests counts floats.
_ELEMENT = 4

#: Most sizes of a sweep.
_MOST_SIZES = 200

#: Letters of nccl-tests: powers of 1024.
_LETTERS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def size_range(text: str) -> tuple[int, ...]:
    """Read sizes as nccl-tests has them.

    Parameters
    ----------
    text
        ``8:16G`` (doubling), ``1M:1G:4`` (a factor), or sizes with commas between. A number alone is bytes;
        K, M, G, T are powers of 1024, as nccl-tests' ``-b 8 -e 16G -f 2`` reads them; ``1 MiB`` and ``1 MB``
        are read as everywhere.

    Returns
    -------
    tuple of int
        Ascending sizes [bytes], from 1 up; the last of a range is not passed.

    Raises
    ------
    UnitError
        No such text, a size of no bytes, a range that ends before it begins, or a factor of 1 and less.

    Examples
    --------
    >>> size_range("8:64")
    (8, 16, 32, 64)
    >>> size_range("1M:1G:32")
    (1048576, 33554432, 1073741824)
    """
    hint = "BEGIN:END or BEGIN:END:FACTOR, such as 8:16G or 1M:4G:4; or sizes with commas between"
    if ":" not in text:
        return tuple(sorted({_one_size(part, hint) for part in text.split(",")}))
    parts = text.split(":")
    if len(parts) > 3:  # noqa: PLR2004 -- begin, end, factor
        raise UnitError(f"{text!r} is no range of sizes", hint=hint)
    begin, end = _one_size(parts[0], hint), _one_size(parts[1], hint)
    try:
        factor = float(parts[2]) if len(parts) > 2 else 2.0  # noqa: PLR2004
    except ValueError:
        factor = 0.0
    if not 1.0 < factor < math.inf:
        raise UnitError(f"{text!r}: the factor {parts[2]!r} is not a number above 1", hint=hint)
    if end < begin:
        raise UnitError(f"{text!r} ends before it begins", hint=f"{parts[1]}:{parts[0]}")
    sizes, size = [], float(begin)
    while size <= end:
        sizes.append(int(size))
        size *= factor
        if len(sizes) > _MOST_SIZES:
            raise UnitError(f"{text!r} is more than {_MOST_SIZES} sizes", hint="a larger factor")
    return tuple(dict.fromkeys(sizes))


def _one_size(text: str, hint: str) -> int:
    """Read one size."""
    text = text.strip()
    found = re.fullmatch(r"(\d+)([KMGT]?)", text, re.IGNORECASE)
    size = int(found[1]) * _LETTERS[found[2].upper()] if found else parse_size(text)
    if size < 1:
        raise UnitError(f"{text!r} is no bytes: a message has at least one", hint=hint)
    return size


@dataclass(frozen=True)
class SizeRow:
    """One size of a sweep."""

    size: int
    """Bytes, as nccl-tests counts them."""
    count: int
    """Elements of 4 bytes of a rank."""
    time_s: float
    algorithm: str | None
    """Schedule, as asked for or chosen."""
    protocol: str | None
    """NCCL's protocol; ``none``: the bare network."""
    algbw: float
    """Size over time [bytes/s]."""
    busbw: float | None
    """As nccl-tests defines it [bytes/s]; None when it is no collective."""
    latency_s: float
    """Part of the time that does not depend on the bytes."""
    ideal_s: float
    """Time without contention."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, with units in the keys."""
        return {
            "size_bytes": self.size,
            "count": self.count,
            "type": "float",
            "time_us": self.time_s * 1e6,
            "algorithm": self.algorithm,
            "protocol": self.protocol,
            "algbw_gb_per_s": self.algbw / 1e9,
            "busbw_gb_per_s": None if self.busbw is None else self.busbw / 1e9,
            "latency_us": self.latency_s * 1e6,
            "efficiency": min(self.ideal_s / self.time_s, 1.0),
        }


@dataclass(frozen=True, eq=False)
class Sweep:
    """A workload at many sizes."""

    rows: tuple[SizeRow, ...]
    fabric: str
    traffic: str
    kind: str
    n_ranks: int
    manifest: dict[str, Any]
    """Of the scenario at the last size."""

    @property
    def mean_busbw(self) -> float | None:
        """Mean of the bus bandwidths [bytes/s], which nccl-tests prints below its table."""
        found = [row.busbw for row in self.rows if row.busbw is not None]
        return sum(found) / len(found) if found else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        mean = self.mean_busbw
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "ranks": self.n_ranks,
            "sizes": [row.to_dict() for row in self.rows],
            "mean_busbw_gb_per_s": None if mean is None else mean / 1e9,
            "manifest": self.manifest,
        }


@dataclass(frozen=True, eq=False)
class _Solved:
    """A pattern at the reference size: what grows with the bytes, and what does not."""

    result: Result
    grows: NDArray[np.float64]
    """(n_flows,) time at the reference size, latency aside [s]; flows of phases that are not lockstep."""
    fixed: NDArray[np.float64]
    """(n_flows,) the rest [s]."""
    cables: tuple[float, ...]
    """Propagation of each phase [s], for NCCL's times."""


def sweep_sizes(
    fabric: Fabric,
    spec: TrafficSpec,
    sizes: Sequence[int],
    *,
    routing: str = "ecmp",
    cc: str = MAX_MIN,
    seed: int = 0,
    on_dead: OnDead = "shrink",
    options: RoutingOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **scenario: Any,  # noqa: ANN401 -- fields of Scenario
) -> Sweep:
    """Run a workload at several sizes.

    Parameters
    ----------
    fabric, spec
        As for `netplan.traffic.build_demand`; the spec's own size is not used.
    sizes
        Bytes, each above 0.
    routing, cc, seed, on_dead, options, **scenario
        As for `Scenario`.
    progress
        Called with ("sizes", done, all).

    Returns
    -------
    Sweep
        A row for each size, in order.

    Raises
    ------
    TrafficError
        A workload without a size, a size of no bytes, or one that does not fit the fabric.
    """
    if not hasattr(spec, "size"):
        raise TrafficError(f"traffic {spec.name!r} of kind {spec.kind} has no one size", hint="netplan list")
    if not sizes or min(sizes) < 1:
        raise TrafficError("a sweep needs sizes of 1 byte and more", hint="8:16G")
    options = options or RoutingOptions(seed=seed)
    solved: dict[tuple[Any, ...], _Solved] = {}
    rows = []
    demand: Demand | None = None

    def run(found: Demand) -> Result:
        return simulate(Scenario(fabric, found, routing, options, cc=cc, **scenario))

    rng = np.random.default_rng([0xDE3A, seed])  # as build_demand draws placements
    placement = place_ranks(fabric, spec.placement, spec.ranks, rng, on_dead)
    for done, size in enumerate(sizes):
        own = spec.model_copy(update={"size": int(size)})
        resolved, software, wire = resolve_software(fabric, own, placement)
        if cc != MAX_MIN or not getattr(spec, "split_data_on_qps", True):
            demand = build_demand(fabric, own, seed=seed, on_dead=on_dead)
            result = run(demand)
            times = [(p.completion_s, p.ideal_s, p.latency_s) for p in result.phases]
        else:
            key = (getattr(resolved, "algorithm", None),)
            if key not in solved:
                bare = {"protocol": "none"} if hasattr(resolved, "protocol") else {}
                pair = [
                    run(
                        build_demand(
                            fabric,
                            resolved.model_copy(update={"size": factor * _REFERENCE, **bare}),
                            seed=seed,
                            on_dead=on_dead,
                        )
                    )
                    for factor in (1, 2)
                ]
                solved[key] = _solved(pair)
            found = solved[key]
            demand = found.result.scenario.demand
            times = _times(found, size / _REFERENCE, software, wire)
        time = sum(each[0] for each in times)
        algbw = size / time
        factor = demand.busbw_factor
        rows.append(
            SizeRow(
                size=int(size),
                count=_count(spec.kind, int(size), demand.n_ranks),
                time_s=time,
                algorithm=getattr(resolved, "algorithm", None),
                protocol=getattr(resolved, "protocol", None),
                algbw=algbw,
                busbw=None if factor is None else algbw * factor,
                latency_s=sum(each[2] for each in times),
                ideal_s=sum(each[1] for each in times),
            )
        )
        if progress is not None:
            progress("sizes", done + 1, len(sizes))
    assert demand is not None
    last = replace(demand, spec=spec.model_dump(mode="json"))
    manifest = Scenario(fabric, last, routing, options, cc=cc, **scenario).manifest()
    return Sweep(tuple(rows), fabric.name, spec.name, spec.kind, demand.n_ranks, manifest)


def _solved(pair: Sequence[Result]) -> _Solved:
    """Tell what grows from what does not, by a run of the reference size and one of twice that."""
    one, two = pair
    grows = two.finish - one.finish
    return _Solved(one, grows, one.finish - grows, tuple(phase.cables_s for phase in one.phases))


def _times(
    found: _Solved, scale: float, software: Software | None, wire: float
) -> list[tuple[float, float, float]]:
    """Return completion, ideal and latency of each phase at a size [s]."""
    demand, result = found.result.scenario.demand, found.result
    fraction = result.scenario.transport.payload_fraction(result.scenario.mtu)
    times = []
    for number, (phase, at) in enumerate(zip(demand.phases, result.phases, strict=True)):
        scale_up = at.scale_up_s * scale
        if software is not None:
            own = with_software(phase, software, first=number == 0)
            sent = scale / wire
            network = at.network_s * sent
            alone = at.ideal_network_s * sent
            times.append(
                phase_time(own, network, alone, at.scale_up_s * sent, found.cables[number], fraction)
            )
        elif phase.lockstep:
            network, alone = at.network_s * scale, at.ideal_network_s * scale
            times.append(phase_time(phase, network, alone, scale_up, at.latency_s, fraction))
        else:
            rows = demand.phase == number
            end = found.grows[rows] * scale + found.fixed[rows]
            latency = float(found.fixed[rows][np.argmax(end)]) if rows.any() else at.inside_s
            floor = scale_up + at.inside_s
            completion = max(float(end.max(initial=0.0)), floor)
            ideal = max(at.ideal_network_s * scale + latency, floor) if rows.any() else floor
            times.append((completion, min(ideal, completion), latency))
    return times


def _count(kind: str, size: int, ranks: int) -> int:
    """Return the elements that nccl-tests prints: of a rank, where the size is that of all."""
    if kind in ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter"):
        return size // (_ELEMENT * ranks)
    return size // _ELEMENT
