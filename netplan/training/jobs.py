"""Several jobs on one fabric: where they are placed, and how they slow each other.

*Placement.* One job after another; the hosts of those before are taken.

*Alone.* Each job's step as if it were the only one: its own groups contend with each other.

*Together.* A kind of communication of a job (say its gradients) is slowed by a kind of another job by ``s -
1``, where s is the ratio of its time with the flows of both on the links to that with its own, at max-min
fair rates. The other kind is under way during a part p of its job's step: how often it comes times how long
it takes, over the step. Jobs are not in step with each other, so the expected time of the kind is

    T = T_alone (1 + sum over kinds of other jobs of p (s - 1)),

and, as longer steps change p, this is repeated until the steps stay (`ROUNDS` at most). The worst case has
the slowest kind of every other job under way all the time, together. The truth lies between: two jobs with
equal steps may fall into a rhythm in which they never meet, or always (Rajasekaran et al., CASSINI, NSDI
2024).

What it leaves out: three kinds at once in the expected time (pairs are added up), and queues between jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from netplan.errors import NetplanError, TrafficError
from netplan.traffic.placement import Placement, place_ranks
from netplan.training.exchanges import Exchange, StepNetwork
from netplan.training.groups import RankGrid
from netplan.training.laying import Laid, NetworkOptions
from netplan.training.network import FabricNetwork
from netplan.training.scaling import ScalingPoint, scaling_curve
from netplan.training.together import slowdown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from netplan.fabric import Fabric
    from netplan.spec.jobs import JobsSpec, SharedJobSpec
    from netplan.spec.traffic import PlacementSpec
    from netplan.traffic.damaged import OnDead

__all__ = [
    "Job",
    "JobOutcome",
    "SharedNetwork",
    "make_jobs",
    "overlapping",
    "place_jobs",
    "run_jobs",
]

#: Most repetitions until the steps of jobs that slow each other stay.
ROUNDS = 20

#: Relative change of a step that counts as none.
_STAYS = 1e-6


@dataclass(frozen=True, eq=False)
class Job:
    """A job on the fabric."""

    name: str
    network: FabricNetwork
    exchanges: tuple[Exchange, ...]
    """What its step communicates."""
    step: Callable[[StepNetwork], float]
    """Time of a step [s] on a network."""


@dataclass(frozen=True)
class JobOutcome:
    """What sharing the fabric does to a job."""

    name: str
    gpus: int
    hosts: int
    alone_s: float
    """Step with the fabric to itself [s]."""
    step_s: float
    """Expected step with the other jobs [s]."""
    worst_s: float
    """Step if the other jobs' slowest kinds are always under way [s]."""
    slowed: dict[str, float] = field(default_factory=dict)
    """Axis and collective to how much longer they take on the network, expected."""

    @property
    def slowdown(self) -> float:
        """Expected step over that alone."""
        return self.step_s / self.alone_s

    @property
    def worst_slowdown(self) -> float:
        """Worst step over that alone."""
        return self.worst_s / self.alone_s


class SharedNetwork:
    """A job's network with kinds of communication slowed by others."""

    def __init__(self, network: FabricNetwork, slowdowns: dict[tuple[str, str], float]) -> None:
        self.network = network
        self.slowdowns = slowdowns

    def time(self, axis: str, collective: str, bytes: float) -> float:  # noqa: A002
        """Return how long a collective takes [s]."""
        slow = self.slowdowns.get((axis, collective), 1.0)
        return self.network.times(axis, collective, bytes, slowdown=slow).total_s


def place_jobs(
    fabric: Fabric,
    wanted: Sequence[tuple[str, PlacementSpec, int]],
    *,
    seed: int = 0,
    on_dead: OnDead = "shrink",
) -> list[Placement]:
    """Place jobs one after another, each around those before.

    Parameters
    ----------
    fabric
        The fabric.
    wanted
        Name, kind of placement and GPUs of each job. Jobs get whole hosts: what a job leaves of its last one
        stays free.
    seed
        Decides what random placements draw.
    on_dead
        What happens to hosts that lost NIC ports.

    Returns
    -------
    list of Placement
        No two of them on one host.

    Raises
    ------
    TrafficError
        A job does not fit into what the others leave, or lists one of their hosts.
    """
    held = np.zeros(0, np.int64)
    found = []
    for place, (name, spec, ranks) in enumerate(wanted):
        names = tuple(fabric.node_name(int(fabric.host_ids[host])) for host in held)
        both = spec.model_copy(update={"taken": tuple(dict.fromkeys((*spec.taken, *names)))})
        try:
            placement = place_ranks(fabric, both, ranks, np.random.default_rng([seed, place]), on_dead)
        except TrafficError as error:
            raise TrafficError(f"job {name!r}: {error.message}", hint=error.hint) from None
        held = np.concatenate([held, placement.hosts])
        found.append(placement)
    return found


def run_jobs(
    jobs: Sequence[Job], progress: Callable[[str, int, int], None] | None = None
) -> list[JobOutcome]:
    """Find how jobs on one fabric slow each other.

    Parameters
    ----------
    jobs
        The jobs, all on one fabric with the same routing.
    progress
        Called with (what, done, all).

    Returns
    -------
    list of JobOutcome
        In the order of the jobs.
    """
    kinds = [_kinds(job) for job in jobs]
    alone = [job.step(job.network) for job in jobs]
    pairs = _pair_slowdowns(jobs, kinds, progress)
    worst_factors = [_worst(jobs, kinds, pairs, number) for number in range(len(jobs))]
    worst = [
        job.step(SharedNetwork(job.network, factors))
        for job, factors in zip(jobs, worst_factors, strict=True)
    ]
    factors: list[dict[tuple[str, str], float]] = [{} for _ in jobs]
    step = list(alone)
    for _ in range(ROUNDS):
        shares = [
            _shares(job, each, factor, took)
            for job, each, factor, took in zip(jobs, kinds, factors, step, strict=True)
        ]
        factors = [
            {
                key: 1.0
                + sum(
                    share * (pairs[number, key, other, theirs] - 1.0)
                    for other, each in enumerate(shares)
                    if other != number
                    for theirs, share in each.items()
                )
                for key in kinds[number]
            }
            for number in range(len(jobs))
        ]
        news = [
            job.step(SharedNetwork(job.network, factor)) for job, factor in zip(jobs, factors, strict=True)
        ]
        change = max((abs(new / old - 1.0) for new, old in zip(news, step, strict=True)), default=0.0)
        step = news
        if change < _STAYS:
            break
    return [
        JobOutcome(
            name=job.name,
            gpus=len(job.network.placement),
            hosts=len(job.network.placement.hosts),
            alone_s=alone[number],
            step_s=step[number],
            worst_s=max(worst[number], step[number]),
            slowed={f"{axis} {collective}": value for (axis, collective), value in factors[number].items()},
        )
        for number, job in enumerate(jobs)
    ]


def overlapping(job: Job, axes: Sequence[str]) -> SharedNetwork:
    """Return a job's network on which its own axes slow each other where they overlap in time.

    Parameters
    ----------
    job
        The job.
    axes
        Axes whose communication is under way at the same time, such as ``dp-cp`` (gradients behind the
        backward pass) and ``pp`` (activations between stages).

    Returns
    -------
    SharedNetwork
        A kind of one axis is slowed by the kinds of the others as often as they are under way, as kinds of
        two jobs are.
    """
    kinds = {key: laid for key, laid in _kinds(job).items() if key[0] in axes}
    network = job.network
    pairs = {
        (mine, theirs): slowdown(network.fabric, kinds[mine], [kinds[theirs]], network.options)
        for mine in kinds
        for theirs in kinds
        if mine[0] != theirs[0]
    }
    factors: dict[tuple[str, str], float] = {}
    step = job.step(network)
    for _ in range(ROUNDS):
        shares = _shares(job, kinds, factors, step)
        factors = {
            mine: 1.0
            + sum(shares[other] * (slow - 1.0) for (key, other), slow in pairs.items() if key == mine)
            for mine in kinds
        }
        before, step = step, job.step(SharedNetwork(network, factors))
        if abs(step / before - 1.0) < _STAYS:
            break
    return SharedNetwork(network, factors)


def _kinds(job: Job) -> dict[tuple[str, str], Laid]:
    """Return the kinds of communication that a job sends through the network, laid."""
    found: dict[tuple[str, str], Laid] = {}
    for each in job.exchanges:
        key = (each.axis, each.collective)
        if key in found or each.bytes <= 0 or each.count <= 0 or job.network.grid.size(each.axis) == 1:
            continue
        laid = job.network.lay(each.axis, each.collective, each.bytes)
        if laid.flows:
            found[key] = laid
    return found


def _pair_slowdowns(
    jobs: Sequence[Job],
    kinds: Sequence[dict[tuple[str, str], Laid]],
    progress: Callable[[str, int, int], None] | None,
) -> dict[tuple[int, tuple[str, str], int, tuple[str, str]], float]:
    """Return how much each kind of each job is slowed by each kind of each other job."""
    asked = [
        (number, key, other, theirs)
        for number, mine in enumerate(kinds)
        for key in mine
        for other, each in enumerate(kinds)
        if other != number
        for theirs in each
    ]
    links = [
        {key: _links(job, laid) for key, laid in mine.items()} for job, mine in zip(jobs, kinds, strict=True)
    ]
    found = {}
    for done, (number, key, other, theirs) in enumerate(asked):
        if progress is not None:
            progress("pairs of jobs", done, len(asked))
        network = jobs[number].network
        shares = bool((links[number][key] & links[other][theirs]).any())
        found[number, key, other, theirs] = (
            slowdown(network.fabric, kinds[number][key], [kinds[other][theirs]], network.options)
            if shares
            else 1.0
        )
    return found


def _links(job: Job, laid: Laid) -> NDArray[np.bool_]:
    """Return which links a kind of communication uses."""
    return job.network.links_of(laid)


def _worst(
    jobs: Sequence[Job],
    kinds: Sequence[dict[tuple[str, str], Laid]],
    pairs: dict[tuple[int, tuple[str, str], int, tuple[str, str]], float],
    number: int,
) -> dict[tuple[str, str], float]:
    """Return how much each kind of a job is slowed if of every other job the worst kind is under way."""
    network = jobs[number].network
    found = {}
    for key, laid in kinds[number].items():
        others = []
        for other, each in enumerate(kinds):
            if other != number and each:
                worst = max(each, key=lambda theirs: pairs[number, key, other, theirs])
                if pairs[number, key, other, worst] > 1.0:
                    others.append(each[worst])
        together = slowdown(network.fabric, laid, others, network.options) if others else 1.0
        alone = [
            pairs[number, key, other, theirs]
            for other, each in enumerate(kinds)
            if other != number
            for theirs in each
        ]
        found[key] = max([together, *alone])
    return found


def _shares(
    job: Job,
    kinds: dict[tuple[str, str], Laid],
    factors: dict[tuple[str, str], float],
    step: float,
) -> dict[tuple[str, str], float]:
    """Return the part of a job's step during which each kind of communication is under way."""
    network = SharedNetwork(job.network, factors)
    busy = dict.fromkeys(kinds, 0.0)
    for each in job.exchanges:
        key = (each.axis, each.collective)
        if key in busy:
            busy[key] += each.on(network)
    return {key: min(time / step, 1.0) for key, time in busy.items()}


def make_jobs(
    fabric: Fabric, spec: JobsSpec, options: NetworkOptions, *, seed: int = 0, on_dead: OnDead = "shrink"
) -> list[Job]:
    """Place the jobs of a spec, and make them ready to run.

    Parameters
    ----------
    fabric
        The fabric.
    spec
        The jobs.
    options
        How communicators are laid and run.
    seed
        Decides what random placements draw.
    on_dead
        What happens to hosts that lost NIC ports.

    Raises
    ------
    TrafficError
        A job does not fit into what the others leave.
    """
    wanted = [(job.name, job.placement, job.gpus) for job in spec.jobs]
    placed = place_jobs(fabric, wanted, seed=seed, on_dead=on_dead)
    cache: dict[object, object] = {}
    return [
        _make_job(fabric, job, placement, options, cache)
        for job, placement in zip(spec.jobs, placed, strict=True)
    ]


def _make_job(
    fabric: Fabric,
    spec: SharedJobSpec,
    placement: Placement,
    options: NetworkOptions,
    cache: dict[object, object],
) -> Job:
    """Return one job of a spec."""
    sizes = spec.parallelism
    dp = sizes.dp or spec.gpus // (sizes.tp * sizes.cp * sizes.pp)
    grid = RankGrid(tp=sizes.tp, cp=sizes.cp, dp=dp, pp=sizes.pp, ep=sizes.ep, order=sizes.order)
    network = FabricNetwork(fabric, placement, grid, options, cache=cache)

    if spec.model is not None:
        return _model_job(spec, network)
    compute, kinds = spec.compute, spec.exchanges
    assert compute is not None
    assert kinds is not None

    def step(net: StepNetwork) -> float:
        exposed = 0.0
        for each in kinds:
            took = each.count * net.time(each.axis, each.collective, each.size)
            exposed += max(took - each.hidden, 0.0)
        return compute + exposed

    exchanges = tuple(Exchange(e.axis, e.collective, float(e.size), e.count) for e in kinds)
    return Job(spec.name, network, exchanges, step)


def _model_job(spec: SharedJobSpec, network: FabricNetwork) -> Job:
    """Return a job that trains a model.

    Raises
    ------
    NetplanError
        A name that is not known, sizes that do not go with the model, or a model that does not fit.
    """
    from netplan.catalog.accelerators import find_accelerator
    from netplan.catalog.models import load_model
    from netplan.spec.training import TrainingSpec
    from netplan.training.job import accelerator_of, default_batch
    from netplan.training.layouts import Layout
    from netplan.training.step import StepTimer, check_layout

    model = load_model(str(spec.model))
    chip = find_accelerator(spec.accelerator or accelerator_of(network.fabric))
    batch = spec.global_batch or default_batch(spec.gpus, model.sequence)
    precision: Literal["bf16", "fp16"] = "bf16" if "bf16" in chip.matrix else "fp16"
    timer = StepTimer(model, TrainingSpec(global_batch=batch, precision=precision), chip)
    grid = network.grid
    layout = Layout(
        grid.tp, grid.cp, grid.dp, grid.pp, grid.ep, micro_batch=spec.micro_batch, order=grid.order
    )
    scale_up = int(network.fabric.gpus_per_host[network.placement.hosts].min())
    try:
        check_layout(model, timer.training, layout, scale_up)
    except NetplanError as error:
        raise TrafficError(f"job {spec.name!r}: {error}") from None
    kept = next(
        (
            each
            for each in (replace(layout, recompute=kind) for kind in ("none", "selective", "full"))
            if timer.missing_bytes(each) <= 0
        ),
        None,
    )
    if kept is None:
        short = timer.missing_bytes(replace(layout, recompute="full")) / 2**30
        raise TrafficError(
            f"job {spec.name!r}: {model.name} is {short:,.1f} GiB a GPU short with full recomputation",
            hint="more tp or pp, or more GPUs",
        )
    return Job(spec.name, network, timer.exchanges(kept), lambda net: timer.step_s(kept, net))


def _grown_batch(spec: SharedJobSpec, gpus: int) -> int | None:
    """Return the global batch of a model's job on another number of GPUs: that of a replica stays."""
    if spec.model is None:
        return None
    from netplan.catalog.models import load_model
    from netplan.training.job import default_batch

    batch = spec.global_batch or default_batch(spec.gpus, load_model(spec.model).sequence)
    return max(batch * gpus // spec.gpus, 1)


def scale_job(
    fabric: Fabric,
    spec: SharedJobSpec,
    sizes: Sequence[int],
    placements: Sequence[str],
    options: NetworkOptions,
    *,
    seed: int = 0,
    on_dead: OnDead = "shrink",
    progress: Callable[[str, int, int], None] | None = None,
) -> list[ScalingPoint]:
    """Return the throughput of a job alone on the fabric, at several sizes.

    Parameters
    ----------
    fabric
        The fabric.
    spec
        The job. More GPUs are more data parallel ranks; compute and exchanges stay (weak scaling).
    sizes
        GPUs.
    placements
        Kinds of placement.
    options
        How communicators are laid and run.
    seed
        Decides what random placements draw.
    on_dead
        What happens to hosts that lost NIC ports.
    progress
        Called with (what, done, all).

    Returns
    -------
    list of ScalingPoint
        ``throughput`` is GPUs times steps a second.

    Raises
    ------
    TrafficError
        A size that is no multiple of ``tp x cp x pp``, or does not fit.
    """
    grid = spec.parallelism
    model = grid.tp * grid.cp * grid.pp
    for size in sizes:
        if size % model or grid.cp * (size // model) % grid.ep:
            what = f"tp x cp x pp = {model}" if size % model else f"ep = {grid.ep} ranks of cp x dp"
            raise TrafficError(
                f"job {spec.name!r} does not make {size:,} GPUs out of {what}",
                hint=f"multiples of {math.lcm(model, model // grid.cp * grid.ep)}",
            )

    def step(gpus: int, kind: str) -> tuple[float, float]:
        update = {"kind": kind, "hosts": None}
        grown = spec.model_copy(
            update={
                "gpus": gpus,
                "global_batch": _grown_batch(spec, gpus),
                "parallelism": grid.model_copy(update={"dp": gpus // model}),
                "placement": spec.placement.model_copy(update=update),
            }
        )
        placed = place_jobs(fabric, [(spec.name, grown.placement, gpus)], seed=seed, on_dead=on_dead)[0]
        job = _make_job(fabric, grown, placed, options, {})
        return job.step(job.network), float(gpus)

    return scaling_curve(step, sizes, placements, progress=progress)
