"""The short road: load, offer, simulate, compare; each returns a new value.

>>> from netplan import api
>>> fabric = api.load_fabric("lab-2-leaf")
>>> result = api.simulate(fabric, api.load_traffic("all-reduce-1gib"), routing="spray")
>>> round(result.efficiency.collective, 2)
1.0
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from netplan.catalog.shipped import read_document, read_source
from netplan.errors import (
    CatalogError,
    FabricError,
    ModelRangeError,
    OutputError,
    SpecError,
    TrafficError,
    did_you_mean,
)
from netplan.fabric.convert import load_fabric as load_saved_fabric
from netplan.fabric.failures import apply_failures
from netplan.interop.opensm import offer_engines
from netplan.routing import RoutingOptions
from netplan.simulate.compare import Comparison, NotRun, compare_results
from netplan.simulate.damage import Aftermath, whole_fabric
from netplan.simulate.run import simulate as run_scenario
from netplan.simulate.scenario import MAX_MIN, Scenario
from netplan.simulate.sizes import Sweep, sweep_sizes
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from netplan.traffic import build_demand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from netplan.congestion.switch import SwitchProfile
    from netplan.fabric import Fabric
    from netplan.fabric.checks import FabricFault
    from netplan.planning.bom import Bill
    from netplan.planning.goodput import Goodput, Recovery
    from netplan.planning.plan import Plan
    from netplan.planning.search import Search
    from netplan.planning.tune import Tuning
    from netplan.simulate.result import Result
    from netplan.spec.jobs import JobsSpec
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead
    from netplan.training.job import JobReport, TrainingJob
    from netplan.training.jobs import JobOutcome
    from netplan.training.layouts import Layout
    from netplan.training.scaling import ScalingPoint

    Progress = Callable[[str, int, int], None]

__all__ = [
    "BASELINES",
    "aftermath",
    "bill_of_materials",
    "check_target",
    "compare",
    "export",
    "fabric_of",
    "fail",
    "goodput",
    "import_fabric",
    "load_fabric",
    "load_jobs",
    "load_traffic",
    "plan_designs",
    "run_jobs",
    "save_imported",
    "scale_jobs",
    "scale_training",
    "search_parameters",
    "simulate",
    "sweep",
    "traffic_of",
    "train",
    "training_job",
    "tune",
    "tuned_switches",
]

offer_engines()  # routing names that begin with opensm:

#: What `simulate` hands on to the scenario.
_SCENARIO_OPTIONS = ("engine", "packet", "mtu", "cc_params", "switch", "exact", "step", "record", "unread")

#: Those of them that concern the engine only.
_ENGINE_OPTIONS = ("switch", "exact", "step")

#: Named baselines: routing schemes with their transport, on the same hosts and demand.
BASELINES = ("ib-static", "ib-adaptive", "ideal")


def load_fabric(source: str, *, overrides: Mapping[str, str] | None = None, check: bool = True) -> Fabric:
    """Load a fabric.

    Parameters
    ----------
    source
        Shipped name, path of a YAML spec or of a saved ``.json`` fabric, or ``-``.
    overrides
        ``dotted.key`` to value text, replacing what the spec says.
    check
        Whether to refuse a saved fabric with faults.

    Returns
    -------
    Fabric
        Built and checked.

    Raises
    ------
    CatalogError
        It cannot be found or read.
    SpecError
        The spec has faults; all are listed.
    FabricError
        The spec asks for something infeasible.
    """
    return fabric_of(*read_source(source, "topologies"), overrides=overrides, check=check)


def fabric_of(
    text: bytes, label: str, *, overrides: Mapping[str, str] | None = None, check: bool = True
) -> Fabric:
    """Build a fabric from the text of a file, as `load_fabric` does from its name.

    Parameters
    ----------
    text, label
        The file's text, and what to call it in messages: a saved fabric's ends in ``.json``.
    overrides, check
        As in `load_fabric`.

    Returns
    -------
    Fabric
        Built and checked.

    Raises
    ------
    SpecError
        The spec has faults; all are listed.
    FabricError
        The spec asks for something infeasible.
    """
    if Path(label).suffix == ".json":
        if overrides:
            raise SpecError(
                f"{label} is a saved fabric: --set applies to YAML specs",
                hint="change the spec it was made from, and save it again",
            )
        return load_saved_fabric(text.decode("utf-8", "replace"), source=label, check=check)
    document = parse_yaml(text, label)
    spec = validate(FABRIC_SPEC, document, overrides=overrides)
    try:
        return build_fabric(spec)
    except FabricError as error:
        raise FabricError(f"{document.source}: {error.message}", hint=error.hint) from None


def load_traffic(source: str, *, overrides: Mapping[str, str] | None = None) -> TrafficSpec:
    """Load a workload.

    Parameters
    ----------
    source
        Shipped name, path of a YAML spec, or ``-``.
    overrides
        ``dotted.key`` to value text, replacing what the spec says.

    Returns
    -------
    TrafficSpec
        Validated.

    Raises
    ------
    CatalogError
        It cannot be found or read.
    SpecError
        The spec has faults; all are listed.
    """
    return traffic_of(*read_source(source, "traffic"), overrides=overrides)


def traffic_of(text: bytes, label: str, *, overrides: Mapping[str, str] | None = None) -> TrafficSpec:
    """Read a workload from the text of a file, as `load_traffic` does from its name.

    Parameters
    ----------
    text, label
        The file's text, and what to call it in messages.
    overrides
        As in `load_traffic`.

    Returns
    -------
    TrafficSpec
        Validated.

    Raises
    ------
    SpecError
        The spec has faults; all are listed.
    """
    return validate(TRAFFIC_SPEC, parse_yaml(text, label), overrides=overrides)


def fail(fabric: Fabric, failures: Sequence[str], *, seed: int = 0) -> Fabric:
    """Return a fabric with failures, as a new value.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    failures
        What fails, such as ``switch:leaf-0-3`` or ``random:cable:1%`` (`netplan.fabric.failures`).
    seed
        Decides what random failures draw.

    Returns
    -------
    Fabric
        Same nodes; without the cables and endpoints that are of no use any more.

    Raises
    ------
    FabricError
        Something that does not exist, or nothing is left.

    Examples
    --------
    >>> from netplan import api
    >>> api.fail(api.load_fabric("lab-2-leaf"), ["random:leaf_spine:1"]).links.n_cables
    31
    """
    return apply_failures(fabric, failures, seed)


def simulate(
    fabric: Fabric,
    traffic: TrafficSpec,
    *,
    routing: str = "ecmp",
    cc: str = MAX_MIN,
    seed: int = 0,
    on_dead: OnDead = "shrink",
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 -- RoutingOptions' fields, and Scenario's
) -> Result:
    """Run a workload on a fabric.

    Parameters
    ----------
    fabric, traffic
        As `load_fabric` and `load_traffic` return them.
    routing
        Name of a routing scheme.
    cc
        Congestion control: ``max-min``, or a protocol of `netplan.congestion.cc`.
    seed
        Seed of hashes, random tables, placements and patterns.
    on_dead
        On a damaged fabric: what happens to hosts that lost NICs or ports: ``shrink``,
        ``evict`` or ``refuse`` (`netplan.traffic.damaged`).
    progress
        Called now and then with (phase, finished messages, all messages).
    **options
        ``polarized``, ``flowlets``, ``reevaluations`` (see `RoutingOptions`), ``mtu``; under a protocol
        ``cc_params``, ``switch``, ``exact``, ``step``, ``record`` (see `Scenario`).

    Returns
    -------
    Result
        The same for the same arguments.

    Raises
    ------
    NetplanError
        The workload does not fit the fabric, or a name is not known.

    Examples
    --------
    >>> from netplan import api
    >>> fabric = api.load_fabric("lab-2-leaf")
    >>> api.simulate(fabric, api.load_traffic("incast-8"), routing="ecmp").efficiency.worst_flow
    0.125
    """
    check_cc(cc)
    own = {name: options.pop(name) for name in _SCENARIO_OPTIONS if name in options}
    demand = build_demand(fabric, traffic, seed=seed, on_dead=on_dead)
    scenario = Scenario(fabric, demand, routing, RoutingOptions(seed=seed, **options), cc=cc, **own)
    return run_scenario(scenario, progress=progress)


def sweep(
    fabric: Fabric,
    traffic: TrafficSpec,
    sizes: Sequence[int],
    *,
    routing: str = "ecmp",
    cc: str = MAX_MIN,
    seed: int = 0,
    on_dead: OnDead = "shrink",
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 -- as in simulate
) -> Sweep:
    """Run a workload at many sizes, as nccl-tests does.

    Parameters
    ----------
    fabric, traffic
        As `load_fabric` and `load_traffic` return them; the workload's own size is not used. NCCL's model
        chooses algorithm and protocol for each size where ``algorithm`` or ``protocol`` is ``auto``.
    sizes
        Bytes; `netplan.simulate.sizes.size_range` reads ``8:16G``.
    routing, cc, seed, on_dead, progress, **options
        As in `simulate`.

    Returns
    -------
    Sweep
        A row for each size: time, algorithm and bus bandwidth, algorithm and protocol.

    Raises
    ------
    NetplanError
        The workload does not fit the fabric, or a name is not known.

    Examples
    --------
    >>> from netplan import api
    >>> spec = api.load_traffic("all-reduce-1gib", overrides={"algorithm": "auto"})
    >>> rows = api.sweep(api.load_fabric("lab-2-leaf"), spec, [2**10, 2**30], routing="spray").rows
    >>> [(row.algorithm, row.protocol) for row in rows]
    [('tree', 'll'), ('nvls-tree', 'simple')]
    """
    check_cc(cc)
    own = {name: options.pop(name) for name in _SCENARIO_OPTIONS if name in options}
    return sweep_sizes(
        fabric,
        traffic,
        sizes,
        routing=routing,
        cc=cc,
        seed=seed,
        on_dead=on_dead,
        options=RoutingOptions(seed=seed, **options),
        progress=progress,
        **own,
    )


def aftermath(
    fabric: Fabric,
    damaged: Fabric,
    traffic: TrafficSpec,
    *,
    routing: str = "ecmp",
    on_dead: OnDead = "shrink",
    **options: Any,  # noqa: ANN401 -- as in simulate
) -> Aftermath:
    """Run a workload on a damaged fabric, and on the undamaged one it was made from.

    Parameters
    ----------
    fabric, damaged
        As `load_fabric` and `fail` return them.
    traffic, routing, on_dead, **options
        As in `simulate`.

    Returns
    -------
    Aftermath
        Both results, what was lost and what is left.

    Raises
    ------
    NetplanError
        The workload does not fit one of the fabrics, or a name is not known.
    """
    before = simulate(whole_fabric(fabric, damaged, routing), traffic, routing=routing, **options)
    return Aftermath.of(before, simulate(damaged, traffic, routing=routing, on_dead=on_dead, **options))


def compare(
    fabric: Fabric,
    traffic: TrafficSpec,
    *,
    routing: Sequence[str] = ("ecmp", "spray"),
    cc: Sequence[str] = (MAX_MIN,),
    qps: Sequence[int] = (),
    params: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    unread: Sequence[str] = (),
    baseline: str = "ib-static",
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 -- as in simulate
) -> Comparison:
    """Run a workload under a grid of settings and hold it against a baseline.

    Parameters
    ----------
    fabric, traffic
        As `load_fabric` and `load_traffic` return them.
    routing, cc, qps
        The grid; ``qps`` empty: what the workload says.
    params
        The grid of each protocol: parameter to its values in SI units.
    unread
        Settings that none of the protocols reads; the comparison says so.
    baseline
        One of `BASELINES`, or any routing scheme; on the same fabric, damaged or not, and demand.
    seed, progress, on_dead, **options
        As in `simulate`; and ``baseline_cc``, the baseline's congestion control, such as ``ib-credits``.

    Returns
    -------
    Comparison
        One row per setting, in the order routing, cc, qps, parameters. A setting that the model refuses
        (a protocol that reads telemetry on packets that are sprayed) is among its ``not_run``.

    Raises
    ------
    NetplanError
        The workload does not fit the fabric, a name is not known, or no setting can be run.
    """
    engine = {name: options.pop(name) for name in _ENGINE_OPTIONS if name in options}
    baseline_cc = options.pop("baseline_cc", MAX_MIN)
    _check_grid(cc, params, engine)
    base_options = options if baseline_cc == MAX_MIN else {**options, **engine}
    base = simulate(
        fabric, traffic, routing=baseline, cc=baseline_cc, seed=seed, progress=progress, **base_options
    )
    settings: list[tuple[str, str, dict[str, Any], Result]] = []
    refused: list[tuple[NotRun, ModelRangeError]] = []
    for name, control, n_qps in itertools.product(routing, cc, qps or (None,)):
        spec = traffic if n_qps is None else traffic.model_copy(update={"qps": n_qps})
        grid = (params or {}).get(control, {})
        for values in itertools.product(*grid.values()):
            own = dict(zip(grid, values, strict=True))
            row: dict[str, Any] = {} if n_qps is None else {"qps": n_qps}
            row |= {f"{control}.{each}": value for each, value in own.items() if len(grid[each]) > 1}
            more = {} if control == MAX_MIN else {**engine, "cc_params": own}
            try:
                result = simulate(
                    fabric, spec, routing=name, cc=control, seed=seed, progress=progress, **options, **more
                )
            except ModelRangeError as error:
                refused.append(
                    (NotRun(name, control, row, error.message, len(settings) + len(refused)), error)
                )
            else:
                settings.append((name, control, row, result))
    if refused and not settings:
        raise refused[0][1]
    return compare_results(base, settings, unread=unread, not_run=[one for one, _ in refused])


def _check_grid(
    cc: Sequence[str], params: Mapping[str, Mapping[str, Sequence[float]]] | None, engine: Mapping[str, Any]
) -> None:
    """Refuse, before anything runs, what is wrong whatever the routing.

    Raises
    ------
    ModelRangeError
        A congestion control, parameter, value or switch profile that there is not.
    """
    from netplan.congestion.cc.registry import PROTOCOLS
    from netplan.simulate.switches import AUTO, find_switches

    for control in cc:
        if control != MAX_MIN:
            found = PROTOCOLS.find(control)
            for name, values in (params or {}).get(control, {}).items():
                for value in values:
                    found.values({name: value})
    switch = engine.get("switch", AUTO)
    if isinstance(switch, str) and switch != AUTO:
        find_switches(switch)


def load_jobs(source: str, *, placement: str | None = None) -> JobsSpec:
    """Load a file of jobs that share a fabric.

    Parameters
    ----------
    source
        Shipped name, path of a YAML file, or ``-``.
    placement
        Kind of placement of every job, instead of its own.

    Returns
    -------
    JobsSpec
        Validated.

    Raises
    ------
    CatalogError
        It cannot be found or read.
    SpecError
        It has faults; all are listed.
    """
    from netplan.catalog.paths import shipped_folder
    from netplan.spec.jobs import JobsSpec
    from netplan.spec.text import parse_yaml

    shipped = {path.stem: path for path in (shipped_folder("traffic") / "jobs").glob("*.yaml")}
    if Path(source).suffix == "" and source != "-" and not Path(source).exists():
        if source not in shipped:
            raise CatalogError(
                f"jobs {source!r} is neither a shipped name nor a file",
                hint=did_you_mean(source, shipped) or f"shipped: {', '.join(sorted(shipped))}",
            )
        document = parse_yaml(shipped[source].read_bytes(), f"traffic/jobs/{source}.yaml")
    else:
        document = read_document(source, "traffic")
    listed = document.data.get("jobs") if placement is not None else None
    count = len(listed) if isinstance(listed, list) else 0
    sets = {f"jobs[{number}].placement.kind": str(placement) for number in range(count)}
    return validate(JobsSpec, document, overrides=sets)


def run_jobs(
    fabric: Fabric,
    source: str | JobsSpec,
    *,
    seed: int = 0,
    on_dead: OnDead = "shrink",
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 -- NetworkOptions' fields
) -> list[JobOutcome]:
    """Place several jobs on one fabric, and find how they slow each other.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    source
        Path of a YAML file of jobs, ``-``, or a `netplan.spec.jobs.JobsSpec`.
    seed
        Seed of hashes and placements.
    on_dead
        On a damaged fabric: what happens to hosts that lost NICs or ports.
    progress
        Called now and then with (what, done, all).
    **options
        ``routing``, ``qps``, ``channels``, ``algorithm``: `netplan.training.network.NetworkOptions`.

    Returns
    -------
    list of JobOutcome
        Steps alone, expected together, and at worst; in the order of the jobs.

    Raises
    ------
    NetplanError
        The file has faults, or a job does not fit into what the others leave.
    """
    from netplan.training import jobs
    from netplan.training.network import NetworkOptions

    spec = load_jobs(source) if isinstance(source, str) else source
    laid = NetworkOptions(seed=seed, **options)
    return jobs.run_jobs(jobs.make_jobs(fabric, spec, laid, seed=seed, on_dead=on_dead), progress)


def scale_jobs(
    fabric: Fabric,
    spec: JobsSpec,
    sizes: Sequence[int],
    *,
    placements: Sequence[str] = ("packed", "fragmented"),
    seed: int = 0,
    on_dead: OnDead = "shrink",
    progress: Progress | None = None,
    **options: Any,  # noqa: ANN401 -- NetworkOptions' fields
) -> dict[str, list[ScalingPoint]]:
    """Run each job alone at several sizes: the linear-speed-up figure.

    Parameters
    ----------
    fabric, spec
        As `load_fabric` and `load_jobs` return them.
    sizes
        GPUs; the smallest is what the others are held against.
    placements
        Kinds of placement.
    seed, on_dead, progress, **options
        As in `run_jobs`.

    Returns
    -------
    dict
        Job to its points.

    Raises
    ------
    NetplanError
        A size that the job's parallel sizes do not make, or that does not fit.
    """
    from netplan.training import jobs
    from netplan.training.network import NetworkOptions

    laid = NetworkOptions(seed=seed, **options)
    return {
        job.name: jobs.scale_job(
            fabric, job, sizes, placements, laid, seed=seed, on_dead=on_dead, progress=progress
        )
        for job in spec.jobs
    }


def bill_of_materials(
    fabric: Fabric,
    *,
    parts: str | None = None,
    floor: str | None = None,
    **wishes: Any,  # noqa: ANN401 -- Wishes' fields
) -> Bill:
    """Return what a fabric takes to build.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    parts
        Path of a YAML file of parts beside the shipped ones.
    floor
        ``default`` or the path of a YAML file: lengths from where racks stand; by default the fabric's own.
    **wishes
        ``switches``, ``nic``, ``host``, ``optics``, ``protocol``, ``spares``: `netplan.planning.bom.Wishes`.

    Returns
    -------
    Bill
        The same for the same arguments.

    Raises
    ------
    NetplanError
        A file has faults, a part is not known, or a medium that is wished for breaks a plug rule.

    Examples
    --------
    >>> from netplan import api
    >>> bill = api.bill_of_materials(api.load_fabric("superpod-b200-4su"), floor="default")
    >>> bill.totals.transceivers, bill.totals.unknown["cost"]
    (2560, ('connectx-7',))
    """
    from netplan.catalog.parts import load_catalogue
    from netplan.planning import bom
    from netplan.planning.floor import floor_lengths, load_floor

    catalogue = load_catalogue(parts)
    length = floor_lengths(fabric, load_floor(floor)) if floor is not None else None
    return bom.bill(fabric, catalogue, bom.Wishes(**wishes), length=length)


def plan_designs(
    gpus: int,
    *,
    nic: str = "400G",
    span: str | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    **wishes: Any,  # noqa: ANN401 -- Request's fields
) -> Plan:
    """Find, price and simulate the designs for a number of GPUs, and rank them.

    Parameters
    ----------
    gpus
        GPUs in all; whole hosts.
    nic
        Line rate of each NIC, such as ``400G``.
    span
        Fibre between any two sites, such as ``30km``, where ``sites`` is more than 1.
    workers
        Processes for large requests.
    progress
        Called with (what, done, all).
    **wishes
        ``families``, ``switches``, ``limits`` and what else `netplan.planning.plan.Request` has.

    Returns
    -------
    Plan
        The same for the same arguments.

    Raises
    ------
    NetplanError
        A wish is out of range or not known, or no design keeps to the limits.

    Examples
    --------
    >>> from netplan import api
    >>> plan = api.plan_designs(256, families=("leaf-spine",), switches=("qm9700",))
    >>> [(design.name, design.pareto) for design in plan.designs]
    [('leaf-spine-r64', True), ('leaf-spine-r64-2to1', True)]
    """
    from netplan.planning import plan
    from netplan.units import parse_length, parse_rate

    request = plan.Request(
        gpus=gpus, nic_rate=parse_rate(nic), span=None if span is None else parse_length(span), **wishes
    )
    return plan.plan_designs(request, workers=workers, progress=progress)


def scale_training(
    job: TrainingJob,
    layout: Layout,
    sizes: Sequence[int],
    placements: Sequence[str] = ("packed", "fragmented"),
    *,
    progress: Progress | None = None,
) -> list[ScalingPoint]:
    """Return the throughput of a training job at several sizes: the linear-speed-up figure.

    Parameters
    ----------
    job
        As `training_job` returns it.
    layout
        As a `train` report has it: all but the number of replicas and the global batch stays.
    sizes
        GPUs; the smallest is what the others are held against.
    placements
        Kinds of placement.
    progress
        Called with (what, done, all).

    Raises
    ------
    NetplanError
        A size that the layout does not make, or that does not fit.
    """
    from netplan.training import scaling

    return scaling.scale_training(job, layout, sizes, placements, progress=progress)


def training_job(
    fabric: Fabric,
    model: str,
    *,
    gpus: int | None = None,
    accelerator: str | None = None,
    global_batch: int | None = None,
    seed: int = 0,
    routing: str = "ecmp",
    qps: int = 1,
    algorithm: str = "auto",
    **training: Any,  # noqa: ANN401 -- TrainingSpec's fields
) -> TrainingJob:
    """Return a training job on a fabric, for `train`.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    model
        Shipped name (``netplan list models``) or path of a YAML file.
    gpus
        GPUs of the job; by default all that failures have left.
    accelerator
        Name of an accelerator; by default the one that the fabric's scale-up bandwidth stands for.
    global_batch
        Sequences of a step; by default 4 Mi tokens or more.
    seed, routing, qps
        As in `simulate`.
    algorithm
        ``auto``: NCCL's choice and times; else an algorithm of all-reduce on the bare network.
    **training
        ``sequence``, ``precision``, ``flash`` and what else `netplan.spec.training.TrainingSpec` has.

    Raises
    ------
    NetplanError
        A name that is not known, or more GPUs than there are.

    Examples
    --------
    >>> from netplan import api
    >>> job = api.training_job(api.load_fabric("superpod-b200-4su"), "llama3-8b", gpus=64, global_batch=512)
    >>> 0.3 < api.train(job, {}).step.mfu < 0.7
    True
    """
    from netplan.catalog.accelerators import find_accelerator
    from netplan.catalog.models import load_model
    from netplan.spec.traffic import ALGORITHMS
    from netplan.spec.training import TrainingSpec
    from netplan.training.job import TrainingJob, accelerator_of, default_batch
    from netplan.training.network import Experts, NetworkOptions
    from netplan.training.planner import NetworkMaker
    from netplan.training.step import StepTimer

    if algorithm not in ALGORITHMS["all-reduce"]:
        raise TrafficError(
            f"algorithm {algorithm!r} is not one of {', '.join(ALGORITHMS['all-reduce'])}",
            hint=did_you_mean(algorithm, ALGORITHMS["all-reduce"]),
        )
    spec = load_model(model)
    chip = find_accelerator(accelerator or accelerator_of(fabric))
    there = int(fabric.gpus_per_host.sum())
    wanted = gpus or (there if fabric.damage is None else NetworkMaker(fabric).free_gpus())
    if wanted > there:
        raise TrafficError(
            f"{wanted:,} GPUs are wanted, {fabric.name} has {there:,}", hint=f"--gpus {there} at most"
        )
    if "precision" not in training:
        training["precision"] = "bf16" if "bf16" in chip.matrix else "fp16"
    chip.peak(training["precision"])
    batch = global_batch or default_batch(wanted, training.get("sequence") or spec.sequence)
    experts = None
    if spec.experts is not None and spec.experts.most_hosts:
        experts = Experts(spec.experts.top_k, spec.experts.most_hosts)
    network = NetworkOptions(
        routing=routing,
        seed=seed,
        qps=qps,
        algorithm=algorithm,
        protocol="auto" if algorithm == "auto" else "none",
        experts=experts,
    )
    timer = StepTimer(spec, TrainingSpec(global_batch=batch, **training), chip)
    return TrainingJob(timer, NetworkMaker(fabric, network, seed=seed), wanted)


def train(
    job: TrainingJob,
    layout: Mapping[str, Any],
    *,
    search: bool = False,
    progress: Progress | None = None,
) -> JobReport:
    """Return the step of a training job, and how well it scales.

    Parameters
    ----------
    job
        As `training_job` returns it.
    layout
        Sizes by name: ``tp``, ``cp``, ``pp``, ``dp``, ``ep``, ``virtual_stages``, ``micro_batch``,
        ``zero_stage``,
        ``recompute``, ``placement``. What is not given is as in a plain layout.
    search
        Find the layout with the shortest step among those of the given sizes.
    progress
        Called with (what, done, all).

    Raises
    ------
    NetplanError
        Sizes that do not go together, or a model that does not fit.
    """
    from netplan.training.job import fits_in

    given = dict(layout)
    if search:
        return job.search(given, progress=progress)
    chosen = job.layout(given)
    fits_in(job, chosen)
    return job.report(chosen)


def goodput(
    fabric: Fabric | None = None,
    *,
    gpus: int | None = None,
    recovery: Recovery | None = None,
    rates: Mapping[str, float] | None = None,
    network: Literal["fabric", "published"] = "fabric",
    communication_share: float = 0.2,
    routing: str = "spray",
    seed: int = 0,
    progress: Progress | None = None,
) -> Goodput:
    """Return how much of its time a job trains, and what takes the rest.

    Parameters
    ----------
    fabric
        Where it runs; None: nowhere in particular, with `gpus` in hosts of eight.
    gpus
        GPUs of the job; all of the fabric by default.
    recovery
        What failures and checkpoints cost (`netplan.planning.goodput.Recovery`).
    rates
        Cause to interruptions per part in a million hours, over the published ones.
    network
        Network failures: the fabric's own, which may degrade a job instead of stopping it, or as published.
    communication_share
        Share of the step that is communication nothing hides: what a degraded network slows.
    routing, seed
        Of the study of the fabric's failures.
    progress
        Called with (what, done, all).

    Raises
    ------
    NetplanError
        Neither fabric nor GPUs, more GPUs than there are, or a value out of range.

    Examples
    --------
    >>> from netplan import api
    >>> round(api.goodput(gpus=16_384).interruptions(days=54))
    419
    """
    from netplan.planning.failures import study_failures
    from netplan.planning.goodput import network_effect, training_goodput
    from netplan.planning.part_failures import JobParts, part_failures_with

    failures = part_failures_with(rates or {})
    if fabric is None:
        if gpus is None:
            raise ModelRangeError("neither a fabric nor a number of GPUs is given", hint="gpus=16384")
        return training_goodput(JobParts(gpus), recovery, failures=failures)
    size = fabric.n_gpus if gpus is None else gpus
    if size > fabric.n_gpus:
        raise ModelRangeError(
            f"{size:,} GPUs are more than the {fabric.n_gpus:,} of fabric {fabric.name!r}",
            hint=f"--gpus {fabric.n_gpus} or fewer",
        )
    each = max(int(fabric.gpus_per_host.max()), 1)
    nics = max(round((len(fabric.nic_ptr) - 1) / fabric.n_hosts), 1)
    parts = JobParts(size, each, nics)
    if network == "published":
        return training_goodput(parts, recovery, failures=failures)
    study = study_failures(fabric, routing=routing, seed=seed, progress=progress)
    effect = network_effect(study, communication_share).of_job(size / fabric.n_gpus)
    return training_goodput(parts, recovery, failures=failures, network=effect)


def tune(
    fabric: Fabric,
    *,
    parts: str | None = None,
    unread: Sequence[FabricFault] = (),
    **asked: Any,  # noqa: ANN401 -- Asked's fields
) -> Tuning:
    """Return ECN, PFC and protocol settings by class of switch ports, and whether the buffers hold them.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    parts
        Path of a YAML file of parts beside the shipped ones.
    unread
        Warnings of settings that nothing reads, to be reported with the others.
    **asked
        ``cc``, ``switches``, ``pool_bytes``, ``alpha``, ...: `netplan.planning.tune.Asked`.

    Returns
    -------
    Tuning
        The same for the same arguments.

    Raises
    ------
    NetplanError
        A name is not known, or a setting is one that no switch can have.

    Examples
    --------
    >>> from netplan import api
    >>> api.tune(api.load_fabric("metro-30km-2site")).fits
    False
    """
    from dataclasses import replace

    from netplan.catalog.parts import load_catalogue
    from netplan.planning import tune as tuning

    made = tuning.tune(fabric, load_catalogue(parts), tuning.Asked(**asked))
    return replace(made, faults=(*made.faults, *unread))


def search_parameters(
    fabric: Fabric,
    traffic: TrafficSpec,
    tuning: Tuning,
    *,
    parameters: Mapping[str, float] | None = None,
    routing: str = "ecmp",
    over: Sequence[str] = (),
    trials: int = 40,
    grid: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Search for the parameters of a congestion control with which a workload ends first.

    Parameters
    ----------
    fabric, traffic
        As `load_fabric` and `load_traffic` return them.
    tuning
        As `tune` returns it: the protocol, ECN, PFC and buffers of the trials.
    parameters
        Values to start from, in SI units, where they are not the protocol's defaults.
    routing
        A scheme whose flows keep to single paths.
    over
        Parameters to vary, and ``ecn`` for Kmin and Kmax; the usual ones of the protocol without any.
    trials, grid
        Runs to make, and points of the landscape along each of the first two.
    seed
        Of placement, hashes and marks.
    progress
        Called with (phase, trials done, all trials).

    Returns
    -------
    Search
        Start, best and landscape; the same for the same arguments.

    Raises
    ------
    NetplanError
        The workload does not fit the fabric or the engine, or a name is not known.
    """
    from netplan.planning import search as searching

    demand = build_demand(fabric, traffic, seed=seed)
    scene = searching.make_scene(fabric, demand, tuning, routing=routing, seed=seed)
    return searching.search(
        scene,
        tuning.cc,
        over=over,
        parameters=parameters,
        ruled={row.name: row.value for row in tuning.parameters},
        grid=grid,
        most_trials=trials,
        progress=progress,
    )


def tuned_switches(fabric: Fabric, cc: Sequence[str]) -> dict[str, SwitchProfile]:
    """Return the rules of each tier's switches as `tune` sets them, for `simulate`'s ``switch``.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    cc
        Protocols; the first that runs decides what is tuned.

    Raises
    ------
    NetplanError
        The switches' buffers are not known, or too small for what is asked of them.
    """
    from netplan.planning.search import tuned_profiles

    protocols = [name for name in cc if name != MAX_MIN]
    return tuned_profiles(tune(fabric, cc=protocols[0] if protocols else "dcqcn"))


def check_cc(cc: str) -> None:
    """Refuse a congestion control that is not known.

    Raises
    ------
    ModelRangeError
        It is neither ``max-min`` nor a protocol of `netplan.congestion.cc`.
    """
    from netplan.congestion.cc.registry import PROTOCOLS

    names = (MAX_MIN, *PROTOCOLS.names())
    if cc not in names:
        raise ModelRangeError(
            f"congestion control {cc!r} is not one of {', '.join(names)}", hint=did_you_mean(cc, names)
        )


def export(
    fabric: Fabric,
    format_name: str,
    path: str,
    *,
    traffic: TrafficSpec | None = None,
    settings: Mapping[str, str] | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Write a fabric in the format of another program.

    Parameters
    ----------
    fabric
        As `load_fabric` returns it.
    format_name
        Name of a format (``netplan list formats``).
    path
        File to write, or a folder that is not there yet for formats of several files.
    traffic
        The workload, for formats of traffic.
    settings
        Options of the format.
    seed
        Of placements, for formats of traffic.

    Returns
    -------
    tuple of str
        Paths of the files, below the folder; nothing is written outside of it.

    Raises
    ------
    OutputError
        No such format, an option that it does not have, or it cannot be written.
    NetplanError
        The format cannot say what the fabric is.
    """
    from netplan.interop.files import write_files
    from netplan.interop.registry import WriteOptions, find_format

    chosen = find_format(format_name, "write")
    settings = dict(settings or {})
    for name in settings:
        if name not in chosen.settings:
            known = ", ".join(chosen.settings) or "none"
            raise OutputError(f"format {format_name!r} has no option {name!r}; it has: {known}")
    if chosen.kind == "traffic" and traffic is None:
        raise OutputError(f"format {format_name!r} is one of traffic", hint="name a workload: --traffic")
    demand = None if traffic is None else build_demand(fabric, traffic, seed=seed)
    assert chosen.write is not None
    files = chosen.write(fabric, WriteOptions(demand=demand, settings=settings))
    write_files(path, files, is_folder=chosen.is_folder)
    return tuple(files)


def import_fabric(
    path: str,
    format_name: str,
    *,
    name: str | None = None,
    speed: float | None = None,
    gpus_per_host: int | None = None,
    tables: str | None = None,
) -> tuple[Fabric, tuple[str, ...]]:
    """Read a fabric from a file of another program.

    Parameters
    ----------
    path
        The file, or ``-``.
    format_name
        Name of a format (``netplan list formats``).
    name
        Name of the fabric; from the file's when None.
    speed
        Line rate of cables that the file gives none [bytes/s]; 400G when None.
    gpus_per_host
        GPUs of each host; what the file says, else one per NIC port, when None.
    tables
        File of forwarding tables that OpenSM dumped, for InfiniBand formats: `ib-static` follows them.

    Returns
    -------
    fabric, remarks
        The fabric, and what was assumed, merged or left out, in sentences.

    Raises
    ------
    NetplanError
        The file cannot be read, is not of the format (all faults, with lines), or describes no fabric.
    """
    from netplan.interop.graph import build_read_graph, clean_name
    from netplan.interop.registry import ReadOptions, find_format
    from netplan.interop.source import read_source
    from netplan.interop.tables import with_tables

    chosen = find_format(format_name, "read")
    source = read_source(path)
    name = clean_name(name or ("imported" if path == "-" else Path(path).stem))
    options = ReadOptions(
        gpus_per_host=gpus_per_host, name=name, **({} if speed is None else {"speed": speed})
    )
    assert chosen.read is not None
    graph = chosen.read(source, options)
    imported = build_read_graph(graph, name=name, gpus_per_host=gpus_per_host)
    remarks = imported.remarks
    if tables is None:
        return imported.fabric, remarks
    fabric, more = with_tables(imported, graph, read_source(tables))
    return fabric, (*remarks, *more)


def check_target(path: str, *, has_tables: bool = False) -> None:
    """Refuse a file that an imported fabric cannot be written to.

    Raises
    ------
    OutputError
        The suffix is neither ``.yaml`` nor ``.json``, or a spec is asked for that cannot hold tables.
    """
    suffix = Path(path).suffix
    if suffix not in (".yaml", ".yml", ".json"):
        raise OutputError(f"cannot write {path!r}: a fabric is written as .yaml or .json")
    if has_tables and suffix != ".json":
        raise OutputError(
            f"cannot write {path!r}: a spec holds no forwarding tables", hint="write a .json file"
        )


def save_imported(fabric: Fabric, path: str) -> None:
    """Write an imported fabric as a spec (``.yaml``) or as a saved fabric (``.json``).

    Raises
    ------
    OutputError
        It cannot be written.
    """
    from netplan.fabric.convert import save_fabric
    from netplan.files import write_file
    from netplan.interop.spec_text import spec_text

    check_target(path, has_tables=fabric.forwarding is not None)
    if Path(path).suffix == ".json":
        save_fabric(fabric, path)
    else:
        write_file(path, spec_text(fabric).encode())
