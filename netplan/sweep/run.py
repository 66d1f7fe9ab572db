"""Run a sweep: plan its cases, run those that are not done, write the results.

Results are a function of the sweep file, of the spec files that it names, and of the version of netplan:
their hash tells sweeps apart. Points whose settings come to the same case (parameters that its protocol does
not read) are run once. Rows go to the journal as they finish, and are sorted at the end, so that the results
have the same bytes however often the run was stopped, and wherever it ran.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import netplan
from netplan.catalog.paths import shipped_folder
from netplan.catalog.shipped import read_source
from netplan.errors import Fault, NetplanError, OutputError, SpecError
from netplan.files import write_file
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.sweep import SWEEP_SPEC
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.sweep.journal import Journal
from netplan.sweep.points import count_points, make_points
from netplan.sweep.pool import LocalPool
from netplan.sweep.row import METRICS, Runner, Texts
from netplan.sweep.settings import Case, read_case
from netplan.sweep.table import (
    FIRST,
    LAST,
    Column,
    Results,
    check_output,
    read_results,
    setting_column,
    write_results,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from netplan.catalog.paths import Kind
    from netplan.spec.sweep import Settings, SweepSpec

    Report = Callable[["Progress"], None]

#: Version of the JSON of a manifest.
SCHEMA = "netplan/sweep/1"

#: Scenarios that need an explicit yes.
MANY = 100_000

#: Faults of one sweep that are listed.
_MOST_FAULTS = 20


class Pool(Protocol):
    """What runs cases."""

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any], float]]:
        """Yield each case with its row and its time [s], in the order in which they finish."""
        ...


@dataclass(frozen=True)
class Plan:
    """All cases of a sweep."""

    spec: SweepSpec
    points: tuple[Settings, ...]
    cases: tuple[Case, ...]
    """(points x replicas) the replicas of a point one after another."""
    texts: Texts
    digest: str
    """Hash of all that decides the results."""

    def distinct(self) -> list[Case]:
        """Return the cases that differ, those on one fabric one after another."""
        by_key = {case.key: case for case in self.cases}
        order: dict[str, list[Case]] = {}
        for case in by_key.values():
            order.setdefault(case.fabric_key, []).append(case)
        return [case for group in order.values() for case in group]


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    """Cases finished, those of earlier runs included."""
    total: int
    failed: int
    ran: int
    """Cases that this run finished."""
    wall_s: float
    """Since the run began [s]."""
    best: tuple[float, Settings] | None
    """Best figure so far, of one replica, and the settings of its point."""


@dataclass(frozen=True)
class Outcome:
    """What a run of a sweep has come to."""

    plan: Plan
    results: Results
    manifest: Mapping[str, Any]
    ran: int
    """Cases that this run finished; the others were there."""
    wall_s: float


def load_sweep(source: str, *, overrides: Mapping[str, str] | None = None) -> Plan:
    """Read a sweep file and plan its cases.

    Parameters
    ----------
    source
        A YAML file, the name of a shipped sweep, or ``-``.
    overrides
        ``dotted.key`` to value text, replacing what the file says.

    Returns
    -------
    Plan
        Every setting checked.

    Raises
    ------
    SpecError
        The file has faults, or settings that no scenario has; all are listed.
    CatalogError
        A fabric or workload that cannot be found.
    """
    document = parse_yaml(*read_source(source, "sweeps"))
    spec = validate(SWEEP_SPEC, document, overrides=overrides)
    shipped = shipped_folder("sweeps") / f"{source}.yaml"
    folder = (
        Path(source).parent
        if source != "-" and not (Path(source).suffix == "" and shipped.exists())
        else Path()
    )
    return plan_sweep(spec, folder=folder)


def count_scenarios(source: str, *, overrides: Mapping[str, str] | None = None) -> int:
    """Return how many scenarios a sweep file asks for, without making them."""
    spec = validate(SWEEP_SPEC, parse_yaml(*read_source(source, "sweeps")), overrides=overrides)
    return count_points(spec) * spec.replicas


def plan_sweep(spec: SweepSpec, *, folder: Path = Path()) -> Plan:
    """Plan the cases of a sweep.

    Parameters
    ----------
    spec
        The sweep.
    folder
        Where files that it names are.

    Raises
    ------
    SpecError
        Settings that no scenario has; all are listed.
    """
    if spec.goal.metric not in METRICS:
        from netplan.errors import did_you_mean

        near = did_you_mean(spec.goal.metric, METRICS)
        raise SpecError(
            f"goal.metric = {spec.goal.metric!r}: must be one of {', '.join(METRICS)}",
            hint=f"did you mean {near}?" if near else None,
        )
    points = tuple(make_points(spec))
    cases, faults = [], {}
    for point in points:
        try:
            first = read_case(point)
        except SpecError as error:
            faults.update(dict.fromkeys(error.faults))
            continue
        cases += [dataclasses.replace(first, seed=first.seed + replica) for replica in range(spec.replicas)]
    if faults:
        raise SpecError(faults=list(faults)[:_MOST_FAULTS])
    texts = _read_texts(cases, folder)
    _check_specs(points, texts)
    plain = {
        "spec": spec.model_dump(mode="json"),
        "texts": texts.digest,
        "netplan": netplan.__version__,
    }
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    return Plan(spec, points, tuple(cases), texts, digest)


def run_sweep(
    plan: Plan, output: str, *, pool: Pool | None = None, workers: int = 1, progress: Report | None = None
) -> Outcome:
    """Run what is not done of a sweep, and write its results.

    Parameters
    ----------
    plan
        As `load_sweep` returns it.
    output
        File of the results, ``.parquet`` or ``.csv``. Beside it stand ``OUTPUT.manifest.json`` and, until the
        sweep is done, ``OUTPUT.journal``.
    pool
        Where cases run; by default processes of this machine.
    workers
        How many of them; with 1 cases run in this process.
    progress
        Called after every case.

    Returns
    -------
    Outcome
        The same results for the same sweep, however it ran.

    Raises
    ------
    OutputError
        The file cannot be written, or is of another sweep.
    BackendError
        The pool cannot run, or polars is missing.
    """
    begun = time.perf_counter()
    check_output(output)
    journal_path = Path(f"{output}.journal")
    manifest_path = Path(f"{output}.manifest.json")
    if not journal_path.exists() and Path(output).exists():
        manifest = _finished_manifest(output, manifest_path, plan)
        return Outcome(plan, read_results(output, manifest["units"]), manifest, 0, 0.0)
    if not Path(output).parent.is_dir():
        raise OutputError(f"cannot write {output!r}: there is no folder {str(Path(output).parent)!r}")
    journal = Journal(journal_path, plan.digest)
    try:
        ran = _run_missing(plan, journal, pool or _pool(workers, plan), progress, begun)
        rows, busy = journal.rows(), journal.wall_s()
    except BaseException:
        journal.close()
        raise
    results = _results(plan, rows)
    wall_s = time.perf_counter() - begun
    manifest = _manifest(plan, results, busy)
    try:
        write_results(output, results)
        write_file(str(manifest_path), (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())
    except BaseException:
        journal.close()
        raise
    journal.close(remove=True)
    return Outcome(plan, results, manifest, ran, wall_s)


class _InProcess:
    """Runs cases in this process."""

    def __init__(self, texts: Texts) -> None:
        self._runner = Runner(texts)

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any], float]]:
        for case in cases:
            begun = time.perf_counter()
            row = self._runner.run(case)
            yield case, row, time.perf_counter() - begun


def _pool(workers: int, plan: Plan) -> Pool:
    return LocalPool(workers, plan.texts) if workers > 1 else _InProcess(plan.texts)


def _run_missing(plan: Plan, journal: Journal, pool: Pool, progress: Report | None, begun: float) -> int:
    """Run the cases that the journal does not have; return how many."""
    done = journal.rows()
    distinct = plan.distinct()
    missing = [case for case in distinct if case.key not in done]
    goal = plan.spec.goal
    sign = 1.0 if goal.direction == "min" else -1.0
    settings = {case.key: plan.points[place // plan.spec.replicas] for place, case in enumerate(plan.cases)}
    best: tuple[float, Settings] | None = None
    failed = 0
    for key, row in done.items():
        best = _better(best, row, goal.metric, sign, settings.get(key, {}))
        failed += "error" in row
    ran = 0
    for case, row, wall_s in pool.run(missing) if missing else ():
        journal.add(case.key, row, wall_s)
        ran += 1
        failed += "error" in row
        best = _better(best, row, goal.metric, sign, settings[case.key])
        if progress is not None:
            progress(
                Progress(
                    len(distinct) - len(missing) + ran,
                    len(distinct),
                    failed,
                    ran,
                    time.perf_counter() - begun,
                    best,
                )
            )
    journal.commit()
    return ran


def _better(
    best: tuple[float, Settings] | None, row: Mapping[str, Any], metric: str, sign: float, point: Settings
) -> tuple[float, Settings] | None:
    value = row.get(metric)
    if value is None or (best is not None and sign * best[0] <= sign * value):
        return best
    return float(value), point


def _results(plan: Plan, rows: Mapping[str, Mapping[str, Any]]) -> Results:
    """Return the rows of all points, in their order."""
    n = plan.spec.replicas
    found = [rows[case.key] for case in plan.cases]
    first = {
        "point": tuple(place // n for place in range(len(plan.cases))),
        "replica": tuple(place % n for place in range(len(plan.cases))),
        "seed": tuple(case.seed for case in plan.cases),
    }
    varied = [
        path
        for path in dict.fromkeys([*plan.spec.vary, *(path for point in plan.spec.points for path in point)])
        if path != "seed"
    ]
    columns = [Column(name, kind, first[name]) for name, kind in FIRST.items()]
    columns += [
        setting_column(path, [point.get(path) for point in plan.points for _ in range(n)]) for path in varied
    ]
    for name, kind in METRICS.items():
        values = [row.get(name) for row in found]
        columns.append(Column(name, kind, tuple(None if value is None else kind(value) for value in values)))
    last: dict[str, list[Any]] = {
        "remarks": [row.get("remarks") or None for row in found],
        "unread": [", ".join(case.unread) or None for case in plan.cases],
        "error": [row.get("error") for row in found],
    }
    columns += [Column(name, kind, tuple(last[name])) for name, kind in LAST.items()]
    return Results(tuple(columns))


def _manifest(plan: Plan, results: Results, busy_s: float) -> dict[str, Any]:
    """Return what the results are of."""
    return {
        "schema": SCHEMA,
        "netplan": netplan.__version__,
        "sweep_sha256": plan.digest,
        "spec": plan.spec.model_dump(mode="json"),
        "files": {
            kind: {name: hashlib.sha256(text).hexdigest() for name, (text, _) in sorted(files.items())}
            for kind, files in (("fabrics", plan.texts.fabrics), ("traffic", plan.texts.traffic))
        },
        "points": len(plan.points),
        "replicas": plan.spec.replicas,
        "scenarios": len(plan.cases),
        "distinct": len({case.key for case in plan.cases}),
        "failed": sum(error is not None for error in results["error"].values),
        "busy_s": round(busy_s, 3),
        "units": {column.name: column.unit for column in results.columns if column.unit},
    }


def read_manifest(output: str) -> dict[str, Any] | None:
    """Return the manifest beside results; None when there is none that can be read."""
    try:
        manifest = json.loads(Path(f"{output}.manifest.json").read_bytes())
    except (OSError, ValueError):
        return None
    is_ours = isinstance(manifest, dict) and manifest.get("schema") == SCHEMA
    return manifest if is_ours and isinstance(manifest.get("units"), dict) else None


def _finished_manifest(output: str, path: Path, plan: Plan) -> dict[str, Any]:
    """Return the manifest of results that are there, if they are of this sweep."""
    manifest = read_manifest(output)
    if manifest is None or manifest.get("sweep_sha256") != plan.digest:
        of = "of another sweep" if manifest else f"not known to be of this sweep (no {path.name} beside it)"
        raise OutputError(
            f"{output!r} is there and {of}: results are not mixed",
            hint="write to another -o, or remove the file",
        )
    return manifest


# ---- Checks before anything runs ------------------------------------------------------------------------


def _read_texts(cases: Sequence[Case], folder: Path) -> Texts:
    """Read the spec files that cases name."""

    def read(names: dict[str, None], kind: Kind) -> dict[str, tuple[bytes, str]]:
        return {name: read_source(_beside(name, folder), kind) for name in names}

    fabrics = read(dict.fromkeys(case.fabric for case in cases), "topologies")
    traffic = read(dict.fromkeys(case.traffic for case in cases), "traffic")
    whole = hashlib.sha256()
    for name, (text, _) in (*fabrics.items(), *traffic.items()):
        whole.update(f"{name}\0{len(text)}\0".encode() + text)
    return Texts(fabrics, traffic, whole.hexdigest())


def _beside(name: str, folder: Path) -> str:
    """Return the path of a file that a sweep names; of a shipped one its name."""
    path = folder / name
    return str(path) if path.is_file() else name


def _check_specs(points: Sequence[Settings], texts: Texts) -> None:
    """Refuse keys that no spec has: those of which every value is refused, each by itself.

    A combination that a spec refuses is a row with its error.
    """
    values: dict[str, dict[str, tuple[Settings, str]]] = {}
    for point in points:
        for path, value in point.items():
            if path.startswith(("fabric.", "traffic.")):
                values.setdefault(path, {}).setdefault(repr(value), (point, path))
    faults: list[Fault] = []
    for path, each in values.items():
        refused = []
        for point, _ in each.values():
            head, _, _ = path.partition(".")
            case = read_case({"fabric": point["fabric"], "traffic": point["traffic"], path: point[path]})
            try:
                if head == "fabric":
                    _validate(FABRIC_SPEC, texts.fabrics[case.fabric], case.fabric_sets)
                else:
                    _validate(TRAFFIC_SPEC, texts.traffic[case.traffic], case.traffic_sets)
                break
            except NetplanError as error:
                found = (
                    error.faults if isinstance(error, SpecError) else (Fault("", error.message, error.hint),)
                )
                own = [fault for fault in found if fault.where.startswith("--set")]
                refused.append(
                    [
                        Fault(fault.where.replace("--set ", f"{head}.", 1), fault.message, fault.hint)
                        for fault in own
                    ]
                )
        else:
            if all(refused):
                faults += refused[0]
    if faults:
        raise SpecError(faults=faults[:_MOST_FAULTS])


def _validate(adapter: Any, text: tuple[bytes, str], sets: Mapping[str, str]) -> None:  # noqa: ANN401
    if text[1].endswith(".json"):
        raise SpecError(f"{text[1]} is a saved fabric: its fields cannot vary")
    validate(adapter, parse_yaml(*text), overrides=sets)
