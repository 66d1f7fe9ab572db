"""What each single failure costs, and what so many at random cost.

Every element that can fail alone (NIC, cable, switch, span, site) is put into a class with those
that have the same surroundings; one of each class, or all of them, is failed, the fabric is
rerouted, and a collective runs on what is left. Rates of failure and a time to repair turn that
into minutes per month.

Classes are those of `netplan.planning.failure_classes`, rates those of
`netplan.planning.failure_rates`. The traffic need not be symmetric (a packed ring crosses some
leaves and not others), so one representative stands for its class only as far as the traffic
does; ``exhaustive`` runs all.

*Bandwidth left* is that of large messages per GPU that still takes part, latency aside, over the
undamaged fabric's: bytes over network time for a collective, all rates over the ranks otherwise.

*Minutes per month*: elements x rate x time to repair. *Degraded* counts the whole time in which
anything is lost; *lost* counts of it, per workload, the share of all GPUs' bandwidth that is gone
(that of GPUs cut off included). A *stop* is a failure that leaves a NIC without any port: a job
that uses the NIC ends and starts again without it; with dual ToRs or planes a NIC keeps a port.
Failures are taken as rare and apart: for several at once there are random draws (`Draws`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from netplan.errors import FabricError, ModelRangeError, RoutingError, TrafficError
from netplan.fabric.checks import components
from netplan.fabric.failures import Failures, apply_failures, gone_cables, list_losses
from netplan.planning.failure_classes import ElementClass, element_classes
from netplan.planning.failure_rates import RATES, FailureRate, check_kind
from netplan.routing import SCHEMES, RoutingOptions
from netplan.routing.walked import has_structure, without_structure
from netplan.simulate.run import simulate
from netplan.simulate.scenario import Scenario
from netplan.spec.traffic import CollectiveSpec, PermutationSpec
from netplan.traffic import build_demand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netplan.fabric import Fabric
    from netplan.simulate.result import Result
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead

    Progress = Callable[[str, int, int], None]

__all__ = [
    "MOST_RUNS",
    "RATES",
    "ClassRow",
    "Draws",
    "ElementClass",
    "FailureRate",
    "FailureStudy",
    "Outcome",
    "SampleRow",
    "check_kind",
    "default_traffic",
    "element_classes",
    "large_message_bandwidth",
    "study_failures",
]

#: Version of the JSON that `FailureStudy.to_dict` makes.
SCHEMA = "netplan/failures/1"

#: More runs than this are refused.
MOST_RUNS = 100_000

_COUNTS = ("hosts_cut_off", "gpus_cut_off", "nics_cut_off", "nic_ports_lost")

#: Relative difference of bandwidth below which nothing was lost.
_SAME = 1e-6

_MINUTES_PER_HOUR = 60


def default_traffic() -> tuple[TrafficSpec, ...]:
    """Return what is run when no workload is given: a ring all-reduce and a permutation."""
    return (
        CollectiveSpec.model_validate(
            {"name": "all-reduce", "kind": "all-reduce", "size": "16 GiB", "window": None}
        ),
        PermutationSpec.model_validate({"name": "permutation", "kind": "permutation", "size": "64 MiB"}),
    )


def large_message_bandwidth(result: Result) -> float:
    """Return bandwidth per GPU, latency aside [bytes/s]: see the module."""
    demand = result.scenario.demand
    if demand.busbw_factor is None:
        return float(result.rate.sum()) / demand.n_ranks
    busy = sum(max(phase.network_s, phase.scale_up_s) for phase in result.phases)
    return demand.size_bytes * demand.busbw_factor / busy if busy else 0.0


@dataclass(frozen=True)
class Outcome:
    """What one run with failures found."""

    hosts_cut_off: int
    gpus_cut_off: int
    nics_cut_off: int
    nic_ports_lost: int
    left: dict[str, float]
    """Workload to bandwidth left, 1 being the undamaged fabric's; 0 where it cannot run."""
    unused: bool
    """Nothing that failed carried any workload."""
    note: str | None = None
    """Why a workload cannot run."""

    @property
    def is_degraded(self) -> bool:
        """Whether anything is lost."""
        return bool(self.nic_ports_lost) or any(left < 1 - _SAME for left in self.left.values())


class _Bench:
    """Runs workloads on damaged fabrics against the undamaged one, which is run once."""

    def __init__(
        self,
        fabric: Fabric,
        traffic: Sequence[TrafficSpec],
        *,
        routing: str,
        seed: int,
        on_dead: OnDead,
    ) -> None:
        self._fabric, self._traffic = fabric, traffic
        self._routing, self._seed, self._on_dead = routing, seed, on_dead
        self._whole: dict[tuple[str, bool], Result] = {}

    def whole(self, spec: TrafficSpec, *, walked: bool = False) -> Result:
        """Return a workload's run on the undamaged fabric, once."""
        walked = walked and SCHEMES.find(self._routing).differs_by_structure
        key = spec.name, walked
        if key not in self._whole:
            fabric = without_structure(self._fabric) if walked else self._fabric
            self._whole[key] = self._run(fabric, spec)
        return self._whole[key]

    def _run(self, fabric: Fabric, spec: TrafficSpec) -> Result:
        demand = build_demand(fabric, spec, seed=self._seed, on_dead=self._on_dead)
        return simulate(Scenario(fabric, demand, self._routing, RoutingOptions(seed=self._seed)))

    def outcome(self, failure: str, seed: int) -> Outcome:
        """Fail something and run every workload on what is left."""
        fabric = self._fabric
        parsed = Failures.parse([failure])
        try:
            damaged = apply_failures(fabric, parsed, seed)
        except FabricError as error:
            if "no host of fabric" not in error.message:
                raise
            nothing = {spec.name: 0.0 for spec in self._traffic}
            return Outcome(
                hosts_cut_off=fabric.n_hosts,
                gpus_cut_off=fabric.n_gpus,
                nics_cut_off=len(fabric.nic_ptr) - 1,
                nic_ports_lost=fabric.n_endpoints,
                left=nothing,
                unused=False,
                note=error.message,
            )
        losses = list_losses(fabric, damaged)
        cables = gone_cables(fabric, damaged)
        left, unused, note = {}, True, None
        for spec in self._traffic:
            whole = self.whole(spec, walked=not has_structure(damaged))
            load = whole.link_load
            unused &= not (load[2 * cables].any() or load[2 * cables + 1].any())
            try:
                run = self._run(damaged, _fitting(spec, damaged))
            except (RoutingError, TrafficError) as error:
                left[spec.name], note = 0.0, f"{spec.name}: {error.message}"
                continue
            before = large_message_bandwidth(whole)
            left[spec.name] = _rounded(large_message_bandwidth(run) / before) if before else 1.0
        return Outcome(
            hosts_cut_off=len(losses.hosts),
            gpus_cut_off=losses.gpus,
            nics_cut_off=losses.nics,
            nic_ports_lost=losses.endpoints,
            left=left,
            unused=unused,
            note=note,
        )


def _fitting(spec: TrafficSpec, damaged: Fabric) -> TrafficSpec:
    """Return a workload with as many ranks as there are GPUs left, if it asked for more."""
    gpus = int(damaged.gpus_per_host[np.diff(damaged.endpoint_ptr) > 0].sum())
    if spec.ranks is None or spec.ranks <= gpus:
        return spec
    return spec.model_copy(update={"ranks": gpus})


@dataclass(frozen=True)
class ClassRow:
    """What the failure of one element of a class does."""

    kind: str
    failure: str
    """The representative, or with all simulated the worst one, as ``--fail`` takes it."""
    elements: int
    simulated: int
    hosts_cut_off: int
    """The most of those simulated; likewise the three below."""
    gpus_cut_off: int
    nics_cut_off: int
    """NICs without any port left: a job that uses one stops and starts again without it."""
    nic_ports_lost: int
    left: dict[str, float]
    """Workload to bandwidth left, the mean of those simulated."""
    worst: dict[str, float]
    """The least."""
    unused: bool
    note: str | None
    rate: FailureRate
    length_km: float | None
    failures_per_month: float | None
    stops_per_month: float | None
    """Failures that leave a NIC without any port."""
    degraded_minutes_per_month: float | None
    lost_minutes_per_month: dict[str, float] | None
    """Per workload."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class SampleRow:
    """What so many failures at random do."""

    failure: str
    samples: int
    hosts_cut_off: dict[str, float]
    """``mean`` and ``worst``; likewise the three below."""
    gpus_cut_off: dict[str, float]
    nics_cut_off: dict[str, float]
    nic_ports_lost: dict[str, float]
    left: dict[str, dict[str, float]]
    """Workload to ``mean``, ``worst`` and ``worst_seed``."""


@dataclass(frozen=True)
class FailureStudy:
    """What failures of a fabric cost."""

    fabric: dict[str, Any]
    routing: str
    seed: int
    on_dead: str
    workloads: dict[str, dict[str, Any]]
    """Workload to kind, ranks and bandwidth on the undamaged fabric."""
    gpus: int
    classes: tuple[ClassRow, ...]
    random: tuple[SampleRow, ...] = ()
    exhaustive: bool = False
    notes: tuple[str, ...] = field(default=())

    def totals(self) -> dict[str, Any]:
        """Return the sums over all classes; ``unknown_rates`` names kinds that are missing in them."""
        sums: dict[str, Any] = {
            key: sum(getattr(row, key) or 0.0 for row in self.classes)
            for key in ("failures_per_month", "stops_per_month", "degraded_minutes_per_month")
        }
        sums["lost_minutes_per_month"] = {
            name: sum((row.lost_minutes_per_month or {}).get(name, 0.0) for row in self.classes)
            for name in self.workloads
        }
        unknown = [row.kind for row in self.classes if row.failures_per_month is None]
        return {**sums, "unknown_rates": list(dict.fromkeys(unknown))}

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data."""
        import netplan

        return {
            "schema": SCHEMA,
            "fabric": self.fabric,
            "workloads": self.workloads,
            "exhaustive": self.exhaustive,
            "classes": [row.to_dict() for row in self.classes],
            "totals": self.totals(),
            "random": [asdict(row) for row in self.random],
            "notes": list(self.notes),
            "manifest": {
                "netplan": netplan.__version__,
                "routing": self.routing,
                "seed": self.seed,
                "on_dead": self.on_dead,
            },
        }


@dataclass(frozen=True)
class Draws:
    """Failures to draw at random, several at once."""

    what: tuple[str, ...]
    """Such as ``cable:1%`` or ``spine:2``: what follows ``random:`` in a failure."""
    samples: int = 50
    """How often to draw each."""

    def texts(self) -> tuple[str, ...]:
        """Return the failures, refusing what cannot be read.

        Raises
        ------
        FabricError
            A text that is no random failure, or less than one sample.
        """
        if self.samples < 1:
            raise FabricError(f"samples = {self.samples} is too few", hint="at least 1, such as 50")
        return Failures.parse(f"random:{text}" for text in self.what).texts


def study_failures(
    fabric: Fabric,
    traffic: Sequence[TrafficSpec] = (),
    *,
    routing: str = "spray",
    seed: int = 0,
    on_dead: OnDead = "shrink",
    exhaustive: bool = False,
    kinds: Sequence[str] = (),
    draws: Draws | None = None,
    rates: Mapping[str, FailureRate] | None = None,
    progress: Progress | None = None,
) -> FailureStudy:
    """Fail one element of each class, or all, and draw failures at random.

    Parameters
    ----------
    fabric
        Any fabric.
    traffic
        Workloads, of different names; `default_traffic` when empty.
    routing, seed, on_dead
        As for `netplan.simulate`.
    exhaustive
        Simulate every element, not one of each class.
    kinds
        Only elements of these kinds (`RATES`); all when empty.
    draws
        What to fail at random, several at once; nothing when None.
    rates
        Rates as `rates_with` returns them.
    progress
        Called with (what, done, all).

    Returns
    -------
    FailureStudy
        The same for the same arguments.

    Raises
    ------
    NetplanError
        A kind or text that is not known, a workload that does not fit the undamaged fabric, or
        more runs than `MOST_RUNS`.
    """
    specs = tuple(traffic) or _fitting_defaults(fabric)
    rates = RATES if rates is None else rates
    for kind in kinds:
        check_kind(kind)
    random = () if draws is None else draws.texts()
    samples = 0 if draws is None else draws.samples
    classes = [entry for entry in element_classes(fabric) if not kinds or entry.kind in kinds]
    if not classes:
        there = dict.fromkeys(entry.kind for entry in element_classes(fabric))
        raise FabricError(
            f"fabric {fabric.name!r} has no element of kind {', '.join(kinds)}",
            hint=f"it has {', '.join(there)}",
        )
    runs = sum(len(entry.failures) if exhaustive else 1 for entry in classes) + samples * len(random)
    if runs * len(specs) > MOST_RUNS:
        raise ModelRangeError(
            f"this takes {runs * len(specs):,} simulations; at most {MOST_RUNS:,}",
            hint="without --exhaustive one element of each class is run; --only leaf,spine chooses kinds",
        )
    bench = _Bench(fabric, specs, routing=routing, seed=seed, on_dead=on_dead)
    whole = {spec.name: bench.whole(spec) for spec in specs}
    done = 0

    def outcome(failure: str, failure_seed: int) -> Outcome:
        nonlocal done
        found = bench.outcome(failure, failure_seed)
        done += 1
        if progress is not None:
            progress("failures", done, runs)
        return found

    rows = []
    for entry in classes:
        chosen = entry.failures if exhaustive else entry.failures[:1]
        rows.append(_class_row(entry, [outcome(text, seed) for text in chosen], fabric, rates[entry.kind]))
    drawn = [_sample_row(text, seed, [outcome(text, seed + i) for i in range(samples)]) for text in random]
    return FailureStudy(
        fabric={"name": fabric.name, "kind": fabric.kind, "hosts": fabric.n_hosts, "gpus": fabric.n_gpus},
        routing=routing,
        seed=seed,
        on_dead=on_dead,
        workloads={
            name: {
                "kind": result.scenario.demand.kind,
                "ranks": result.scenario.demand.n_ranks,
                "bandwidth_gb_per_s": large_message_bandwidth(result) / 1e9,
            }
            for name, result in whole.items()
        },
        gpus=fabric.n_gpus,
        classes=tuple(rows),
        random=tuple(drawn),
        exhaustive=exhaustive,
        notes=tuple(_notes(rows, routing, fabric, exhaustive=exhaustive)),
    )


def _fitting_defaults(fabric: Fabric) -> tuple[TrafficSpec, ...]:
    """Return the default workloads; where rails meet only in hosts the permutation stays in its rail."""
    ring, permutation = default_traffic()
    group = components(fabric, through_hosts=False)[fabric.endpoints.leaf[fabric.nic_ptr[:-1]]]
    if len(np.unique(group)) > 1:
        permutation = permutation.model_copy(update={"same_rail": True})
    return ring, permutation


def _class_row(
    entry: ElementClass, outcomes: Sequence[Outcome], fabric: Fabric, rate: FailureRate
) -> ClassRow:
    """Put the outcomes of a class together with its rate."""
    names = list(outcomes[0].left)
    left = {name: float(np.mean([found.left[name] for found in outcomes])) for name in names}
    worst_of = {name: int(np.argmin([found.left[name] for found in outcomes])) for name in names}
    monthly = stops = degraded = None
    lost: dict[str, float] | None = None
    if rate.percent_per_month is not None:
        each = rate.percent_per_month / 100 * ((entry.length_km or 0.0) if rate.per_km else 1.0)
        monthly = len(entry.failures) * each
        stops = monthly * float(np.mean([found.nics_cut_off > 0 for found in outcomes]))
        minutes = monthly * rate.repair_h * _MINUTES_PER_HOUR
        degraded = minutes * float(np.mean([found.is_degraded for found in outcomes]))
        gpus_left = [1 - found.gpus_cut_off / fabric.n_gpus for found in outcomes]
        lost = {
            name: minutes * max(0.0, _rounded(1 - float(np.mean([f.left[name] * g for f, g in pairs]))))
            for pairs in [list(zip(outcomes, gpus_left, strict=True))]
            for name in names
        }
    return ClassRow(
        kind=entry.kind,
        failure=entry.failures[worst_of[names[0]]],
        elements=len(entry.failures),
        simulated=len(outcomes),
        hosts_cut_off=max(found.hosts_cut_off for found in outcomes),
        gpus_cut_off=max(found.gpus_cut_off for found in outcomes),
        nics_cut_off=max(found.nics_cut_off for found in outcomes),
        nic_ports_lost=max(found.nic_ports_lost for found in outcomes),
        left=left,
        worst={name: outcomes[place].left[name] for name, place in worst_of.items()},
        unused=all(found.unused for found in outcomes),
        note=next((found.note for found in outcomes if found.note), None),
        rate=rate,
        length_km=entry.length_km,
        failures_per_month=monthly,
        stops_per_month=stops,
        degraded_minutes_per_month=degraded,
        lost_minutes_per_month=lost,
    )


def _rounded(share: float) -> float:
    """Return a share without the rounding of sums."""
    return round(share, 12)


def _sample_row(text: str, seed: int, outcomes: Sequence[Outcome]) -> SampleRow:
    """Return the mean and the worst of random draws."""

    def spread(name: str) -> dict[str, float]:
        values = [getattr(found, name) for found in outcomes]
        return {"mean": float(np.mean(values)), "worst": float(max(values))}

    left = {}
    for name in outcomes[0].left:
        values = [found.left[name] for found in outcomes]
        worst = int(np.argmin(values))
        left[name] = {"mean": float(np.mean(values)), "worst": values[worst], "worst_seed": seed + worst}
    losses = {name: spread(name) for name in _COUNTS}
    return SampleRow(failure=text, samples=len(outcomes), left=left, **losses)


def _notes(rows: Sequence[ClassRow], routing: str, fabric: Fabric, *, exhaustive: bool) -> list[str]:
    """Say what the figures rest on."""
    notes = [
        "Every element was simulated."
        if exhaustive
        else "One element of each class was simulated (classes: equal surroundings, by colour refinement); "
        "--exhaustive simulates all.",
        "Left: bandwidth of large messages per GPU that still takes part, after rerouting, over undamaged.",
    ]
    unused = [row for row in rows if row.unused]
    same = [row.failure for row in unused if not any(abs(left - 1) > _SAME for left in row.left.values())]
    if same:
        notes.append(f"Not used by the workloads, so its failure changes nothing: {', '.join(same)}.")
    moved = [row.failure for row in unused if row.failure not in same]
    if moved:
        notes.append(
            f"Carried nothing of the workloads, yet paths are chosen anew without it: {', '.join(moved)}."
        )
    if any(left > 1 + _SAME for row in rows for left in row.left.values()):
        notes.append(
            "Above 1: on other NICs or hosts a random permutation has other pairs, what is left of a job may "
            "cross fewer narrow links, and hashes and tables choose other paths."
        )
    hours = sorted({row.rate.repair_h for row in rows})
    notes.append(
        f"Time to repair {', '.join(f'{h:g}' for h in hours)} h: an assumption unless given by --repair. "
        "Rates of confidence assumed have no published figure of their own; --rate gives others."
    )
    unknown = list(dict.fromkeys(row.kind for row in rows if row.failures_per_month is None))
    if unknown:
        notes.append(f"Rate of {', '.join(unknown)} is not known: the totals are at least that much.")
    if has_structure(fabric) and SCHEMES.find(routing).differs_by_structure:
        notes.append(
            f"{routing} lays paths on an irregular fabric by another rule than on a regular one; failures "
            "inside the network are held against the undamaged fabric under that rule."
        )
    notes.append(
        "A stop: a failure that leaves a NIC without any port; a job that uses it starts again without."
    )
    notes += [f"{row.failure}: {row.note}" for row in rows if row.note]
    return notes
