"""The stored runs of packet simulators, for tests."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from netplan.simulate.reference.runs import ReferenceRun, parse_runs, read_runs
from tests.data.make_packet_data import convert

STORED = Path(__file__).parents[1] / "data" / "packet"

#: A folder of the simulators' own records, from which the stored runs were made or more of their kind:
#: named by whoever has one. Without it only the stored runs are tested.
RECORDS = os.environ.get("NETPLAN_PACKET_RECORDS")


@lru_cache(maxsize=1)
def all_runs() -> tuple[ReferenceRun, ...]:
    """Return the stored runs, or those of the folder that NETPLAN_PACKET_RECORDS names."""
    if RECORDS is None:
        return read_runs(STORED)
    made = convert(Path(RECORDS))
    return tuple(run for key, content in made.items() for run in parse_runs(content, f"{RECORDS}: {key}"))


def select(**wanted: object) -> list[ReferenceRun]:
    """Return the runs whose attributes have the given values, or one of several given as a tuple."""

    def fits(run: ReferenceRun) -> bool:
        return all(
            getattr(run, name) in (value if isinstance(value, tuple) else (value,))
            for name, value in wanted.items()
        )

    return [run for run in all_runs() if fits(run)]


def measured_times(run: ReferenceRun) -> np.ndarray:
    """Return what the simulator measured for each flow it lists [s]."""
    seen = run.measured
    times = seen.received if seen.received is not None else seen.acknowledged
    assert times is not None
    return times
