"""The models that can be set against reference runs, by name, and the comparison of a folder of records.

`compare_records` is the one way in: records in, summaries out, with the runs that a model cannot represent
named beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netplan.errors import ModelRangeError, NetplanError, did_you_mean
from netplan.simulate.reference.comparison import (
    ModelRun,
    RunComparison,
    Summary,
    by_protocol,
    compare_run,
    summarise,
)
from netplan.simulate.reference.engine import cannot_run, run_engine
from netplan.simulate.reference.max_min import max_min_goodput, max_min_times
from netplan.simulate.reference.records import Records, read_records
from netplan.simulate.reference.runs import read_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["MODELS", "Model", "RecordComparison", "compare_records", "find_model", "load_records"]


@dataclass(frozen=True)
class Model:
    """A way to foretell a run."""

    name: str
    summary: str
    why_not: Callable[[ReferenceRun], str | None]
    """Why it cannot be asked about a run; None: it can."""
    answer: Callable[[ReferenceRun, int], ModelRun]
    """What it says of a run, with a seed for what is random."""

    def fits(self, run: ReferenceRun) -> bool:
        """Return whether it can be asked about a run."""
        return self.why_not(run) is None

    def compare(self, run: ReferenceRun, *, seed: int = 0) -> RunComparison:
        """Return its answer against what the simulator measured."""
        return compare_run(run, self.answer(run, seed))


def _no_figures(run: ReferenceRun) -> str | None:
    """Return whether there is nothing to compare: no flow ended, and it is no endless run."""
    if run.measured.goodput is None and run.measured.done == 0:
        return "the simulator itself ended no flow"
    return None


def _max_min(run: ReferenceRun, _seed: int) -> ModelRun:
    if run.measured.goodput is not None:
        return ModelRun(goodput=max_min_goodput(run))
    return ModelRun(times=max_min_times(run))


def _max_min_with_acks(run: ReferenceRun, _seed: int) -> ModelRun:
    if run.measured.goodput is not None:
        return ModelRun(goodput=max_min_goodput(run, acknowledgements=True))
    return ModelRun(times=max_min_times(run, acknowledgements=True))


def _engine(run: ReferenceRun, seed: int) -> ModelRun:
    return run_engine(run, seed=seed)


def _packet_by_packet(run: ReferenceRun, seed: int) -> ModelRun:
    return run_engine(run, seed=seed, step=0.0)


#: Every model by name.
MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "max-min",
            "max-min fair rates on the recorded paths, whatever the protocol",
            _no_figures,
            _max_min,
        ),
        Model("max-min-acks", "the same, acknowledgements counted", _no_figures, _max_min_with_acks),
        Model("engine", "the time-domain engine under the run's protocol and settings", cannot_run, _engine),
        Model("engine-packets", "the same with trains of one packet", cannot_run, _packet_by_packet),
    )
}


@dataclass(frozen=True)
class RecordComparison:
    """A model against records."""

    model: str
    runs: tuple[RunComparison, ...]
    """Run by run, in the order of the records."""
    left_out: tuple[tuple[str, str], ...]
    """(name, reason) of the records that the model was not set against."""

    def summaries(self, key: Callable[[RunComparison], tuple[str, ...]] = by_protocol) -> tuple[Summary, ...]:
        """Return the table: a row for each simulator, scenario and protocol, or by another key.

        The keys are `by_protocol`, `by_simulator` and `by_kind` of `comparison`.
        """
        return summarise(self.runs, key)


def find_model(name: str) -> Model:
    """Return a model by name.

    Raises
    ------
    ModelRangeError
        There is none of that name.
    """
    if name not in MODELS:
        message = f"no model {name!r}: {', '.join(MODELS)} are known"
        raise ModelRangeError(message, hint=did_you_mean(name, MODELS))
    return MODELS[name]


def load_records(path: str | Path) -> Records:
    """Read records, in their authors' form or in netplan's.

    Parameters
    ----------
    path
        A folder with ``topologies.json`` and the simulators' files, or a file or a folder of netplan's own
        reference runs (`runs.read_runs`).

    Returns
    -------
    Records
        Reference runs, and what had to be left out.

    Raises
    ------
    SpecError
        Nothing of either form is there, or a file cannot be read.
    """
    where = Path(path)
    if (where / "topologies.json").exists():
        return read_records(where)
    return Records(read_runs(where), ())


def compare_records(
    records: str | Path | Records,
    model: str = "engine-packets",
    *,
    seed: int = 0,
    wanted: Callable[[ReferenceRun], bool] | None = None,
    progress: Callable[[RunComparison], None] | None = None,
) -> RecordComparison:
    """Set a model against records of packet simulators.

    Parameters
    ----------
    records
        A folder (`load_records`), or what was read from one.
    model
        Name of the model, see `MODELS`.
    seed
        Of what is random in the model.
    wanted
        Which of the runs; None: all.
    progress
        Told of each run once it is compared.

    Returns
    -------
    RecordComparison
        Runs and their summaries. A record that is not as the others are, or that the model cannot
        represent, is left out by name and with the reason; it does not stop the others.

    Raises
    ------
    SpecError
        The folder holds no records.
    ModelRangeError
        No such model.
    """
    chosen = find_model(model)
    found = records if isinstance(records, Records) else load_records(records)
    left_out = list(found.left_out)
    done: list[RunComparison] = []
    for run in found.runs:
        if wanted is not None and not wanted(run):
            continue
        reason = chosen.why_not(run)
        if reason is not None:
            left_out.append((run.name, reason))
            continue
        try:
            one = chosen.compare(run, seed=seed)
        except (NetplanError, LookupError, ValueError, TypeError) as error:
            left_out.append((run.name, f"{type(error).__name__}: {error}"))
            continue
        done.append(one)
        if progress is not None:
            progress(one)
    return RecordComparison(model, tuple(done), tuple(left_out))
