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
from typing import TYPE_CHECKING, Any

from netplan.catalog.shipped import read_source
from netplan.errors import FabricError, ModelRangeError, SpecError, did_you_mean
from netplan.fabric.convert import load_fabric as load_saved_fabric
from netplan.fabric.failures import apply_failures
from netplan.routing import RoutingOptions
from netplan.simulate.compare import Comparison, compare_results
from netplan.simulate.damage import Aftermath, whole_fabric
from netplan.simulate.run import simulate as run_scenario
from netplan.simulate.scenario import MAX_MIN, Scenario
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
    from netplan.planning.plan import Plan
    from netplan.planning.search import Search
    from netplan.planning.tune import Tuning
    from netplan.simulate.result import Result
    from netplan.spec.traffic import TrafficSpec
    from netplan.traffic.damaged import OnDead

    Progress = Callable[[str, int, int], None]

__all__ = [
    "BASELINES",
    "aftermath",
    "bill_of_materials",
    "compare",
    "fabric_of",
    "fail",
    "load_fabric",
    "load_traffic",
    "plan_designs",
    "search_parameters",
    "simulate",
    "traffic_of",
    "tune",
    "tuned_switches",
]

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
        One row per setting, in the order routing, cc, qps, parameters.

    Raises
    ------
    NetplanError
        The workload does not fit the fabric, or a name is not known.
    """
    engine = {name: options.pop(name) for name in _ENGINE_OPTIONS if name in options}
    baseline_cc = options.pop("baseline_cc", MAX_MIN)
    base_options = options if baseline_cc == MAX_MIN else {**options, **engine}
    base = simulate(
        fabric, traffic, routing=baseline, cc=baseline_cc, seed=seed, progress=progress, **base_options
    )
    settings = []
    for name, control, n_qps in itertools.product(routing, cc, qps or (None,)):
        spec = traffic if n_qps is None else traffic.model_copy(update={"qps": n_qps})
        grid = (params or {}).get(control, {})
        for values in itertools.product(*grid.values()):
            own = dict(zip(grid, values, strict=True))
            row: dict[str, Any] = {} if n_qps is None else {"qps": n_qps}
            row |= {f"{control}.{each}": value for each, value in own.items() if len(grid[each]) > 1}
            if control != MAX_MIN:
                options |= {**engine, "cc_params": own}
            result = simulate(fabric, spec, routing=name, cc=control, seed=seed, progress=progress, **options)
            settings.append((name, control, row, result))
            for key in (*engine, "cc_params"):
                options.pop(key, None)
    return compare_results(base, settings, unread=unread)


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
