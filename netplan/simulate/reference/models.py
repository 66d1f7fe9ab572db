"""The models that can be set against reference runs, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from netplan.simulate.reference.comparison import ModelRun, RunComparison, compare_run
from netplan.simulate.reference.engine import can_run, run_engine
from netplan.simulate.reference.max_min import max_min_goodput, max_min_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from netplan.simulate.reference.runs import ReferenceRun

__all__ = ["MODELS", "Model"]


@dataclass(frozen=True)
class Model:
    """A way to foretell a run."""

    name: str
    summary: str
    fits: Callable[[ReferenceRun], bool]
    """Whether it can be asked about a run."""
    answer: Callable[[ReferenceRun], ModelRun]
    """What it says of a run."""

    def compare(self, run: ReferenceRun) -> RunComparison:
        """Return its answer against what the simulator measured."""
        return compare_run(run, self.answer(run))


def _has_figures(run: ReferenceRun) -> bool:
    """Whether the simulator ended any flow, or the run is an endless one."""
    return run.measured.goodput is not None or run.measured.done > 0


def _max_min(run: ReferenceRun) -> ModelRun:
    if run.measured.goodput is not None:
        return ModelRun(goodput=max_min_goodput(run))
    return ModelRun(times=max_min_times(run))


def _max_min_with_acks(run: ReferenceRun) -> ModelRun:
    if run.measured.goodput is not None:
        return ModelRun(goodput=max_min_goodput(run, acknowledgements=True))
    return ModelRun(times=max_min_times(run, acknowledgements=True))


def _packet_by_packet(run: ReferenceRun) -> ModelRun:
    return run_engine(run, step=0.0)


#: Every model by name.
MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "max-min",
            "max-min fair rates on the recorded paths, whatever the protocol",
            _has_figures,
            _max_min,
        ),
        Model("max-min-acks", "the same, acknowledgements counted", _has_figures, _max_min_with_acks),
        Model("engine", "the time-domain engine under the run's protocol and settings", can_run, run_engine),
        Model("engine-packets", "the same with trains of one packet", can_run, _packet_by_packet),
    )
}
