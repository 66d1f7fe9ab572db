"""One scenario in, one row of the results out; what scenarios share is built once in each process."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from netplan import api
from netplan.errors import NetplanError
from netplan.routing import remembered_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from netplan.simulate.result import Result
    from netplan.sweep.settings import Case

T = TypeVar("T")

#: Fabrics, and specs of workloads, that a process keeps.
_KEPT = 4

#: Columns of figures and their types, in the order of the results.
METRICS: dict[str, type] = {
    "completion_s": float,
    "ideal_s": float,
    "latency_s": float,
    "algbw_gb_per_s": float,
    "busbw_gb_per_s": float,
    "mean_flow": float,
    "collective": float,
    "worst_flow": float,
    "flows": int,
    "contended": bool,
    "pause_time_s": float,
    "pause_events": float,
    "loss_fraction": float,
    "peak_queue_bytes": float,
    "mean_queue_bytes": float,
    "marked_packets": float,
    "resent_bytes": float,
}


@dataclass(frozen=True)
class Texts:
    """The spec files of a sweep, by the name that cases use: what a process needs to run any of them."""

    fabrics: Mapping[str, tuple[bytes, str]]
    """Text and label of each."""
    traffic: Mapping[str, tuple[bytes, str]]
    digest: str
    """Tells sets of files apart."""


class Runner:
    """Runs cases, keeping the fabrics, workloads and routes that the last ones had.

    Parameters
    ----------
    texts
        The spec files.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._fabrics: OrderedDict[object, Any] = OrderedDict()
        self._traffic: OrderedDict[object, Any] = OrderedDict()

    def run(self, case: Case) -> dict[str, Any]:
        """Return the row of a case: figures, or ``error``; the same for the same case on any machine."""
        try:
            result = self._simulate(case)
        except NetplanError as error:
            return {"error": str(error)}
        return _figures(result)

    def _simulate(self, case: Case) -> Result:
        fabric = _kept(self._fabrics, case.fabric_key, lambda: self._fabric(case))
        key = (case.traffic, tuple(sorted(case.traffic_sets.items())))
        traffic = _kept(self._traffic, key, lambda: self._workload(case))
        options: dict[str, Any] = dict(case.options)
        if case.cc_params or case.switch_fields or case.switch != "auto":
            options |= {"cc_params": dict(case.cc_params), "switch": case.switches()}
        with remembered_routes():
            return api.simulate(fabric, traffic, routing=case.routing, cc=case.cc, seed=case.seed, **options)

    def _fabric(self, case: Case) -> Any:  # noqa: ANN401 -- a Fabric, which stays out of this module's imports
        text, label = self._texts.fabrics[case.fabric]
        fabric = api.fabric_of(text, label, overrides=case.fabric_sets)
        return api.fail(fabric, case.failures, seed=case.seed) if case.failures else fabric

    def _workload(self, case: Case) -> Any:  # noqa: ANN401 -- a TrafficSpec
        text, label = self._texts.traffic[case.traffic]
        return api.traffic_of(text, label, overrides=case.traffic_sets)


def _kept(store: OrderedDict[object, T], key: object, make: Callable[[], T]) -> T:
    """Return what is kept under a key, made if it is not; the least used goes."""
    if key not in store:
        store[key] = make()
    store.move_to_end(key)
    while len(store) > _KEPT:
        store.popitem(last=False)
    return store[key]


def _figures(result: Result) -> dict[str, Any]:
    """Return the columns of a result."""
    plain = result.to_dict()["result"]
    pfc, queues = plain["pfc"] or {}, plain["queues"] or {}
    row = {name: plain[name] for name in METRICS if name in plain}
    row |= plain["efficiency"]
    row |= {name: pfc.get(name) for name in ("pause_time_s", "pause_events")}
    row["peak_queue_bytes"] = queues.get("peak_bytes")
    row["mean_queue_bytes"] = queues.get("mean_bytes")
    row["resent_bytes"] = None if result.congestion is None else result.congestion.resent_bytes
    row["remarks"] = "; ".join(plain["remarks"])
    return {name: row.get(name) for name in (*METRICS, "remarks")}
