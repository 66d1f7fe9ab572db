"""Workers on other machines, by Dask: a scheduler that runs already, or one that Slurm starts workers for.

The spec files go to every worker once (``scatter`` with ``broadcast``); a task is a case of some hundred
bytes. A worker's thread keeps its `Runner`, so that fabrics and routes are built once on each. Dask runs a
task again whose worker was lost; one that loses more than ``distributed.scheduler.allowed-failures`` (3)
becomes a row with an error.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import netplan
from netplan.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from netplan.sweep.row import Runner, Texts
    from netplan.sweep.settings import Case

#: How long a scheduler has to answer [s].
_PATIENCE_S = 10

#: Tasks that are handed to the scheduler ahead, for each thread of the workers.
_AHEAD = 20

_INSTALL = "pip install 'netplan-rdma[cluster]'"


class ClusterPool:
    """Runs cases on a Dask cluster.

    Parameters
    ----------
    address
        ``tcp://host:port`` of a scheduler, or ``slurm``.
    workers
        Slurm: how many workers are asked for.
    texts
        Spec files.
    slurm
        What `dask_jobqueue.SLURMCluster` takes: ``cores``, ``memory``, ``queue``, ``account``, ``walltime`` …
    """

    def __init__(
        self, address: str, workers: int, texts: Texts, slurm: Mapping[str, Any] | None = None
    ) -> None:
        self._address = address
        self._workers = workers
        self._texts = texts
        self._slurm = dict(slurm or {})

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any], float]]:
        """Yield each case with its row and its time [s], in the order in which they finish.

        Raises
        ------
        BackendError
            Dask is not installed, the scheduler does not answer or is lost, or its workers differ.
        """
        try:
            import distributed
        except ImportError:
            message = "--cluster needs Dask, which is not installed"
            raise BackendError(message, hint=_INSTALL) from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters becomes a `BackendError`
        with contextlib.ExitStack() as stack:
            client = self._connect(stack)
            try:
                yield from _run(client, cases, self._texts)
            except (OSError, TimeoutError, distributed.CancelledError) as error:
                raise BackendError(
                    f"the scheduler of cluster {self._address} was lost ({type(error).__name__})",
                    hint="run the same command again: what is finished is kept",
                ) from None

    def _connect(self, stack: contextlib.ExitStack) -> Any:  # noqa: ANN401 -- a Client, which is optional
        """Return a client of the cluster whose workers have this version of netplan."""
        from distributed import Client

        target: Any = self._address
        if self._address == "slurm":
            target = stack.enter_context(self._start_slurm())
            target.scale(self._workers)
        try:
            client = stack.enter_context(Client(target, timeout=_PATIENCE_S))
        except (OSError, TimeoutError, ValueError) as error:
            raise BackendError(
                f"no scheduler answers at {self._address}: {_first_line(error)}",
                hint="start one with `dask scheduler`, or leave --cluster out to run on this machine",
            ) from None
        if self._address == "slurm":
            client.wait_for_workers(1)
        try:
            versions = client.run(_version)
        except Exception as error:  # noqa: BLE001 -- whatever their import raised
            raise BackendError(
                f"the workers of {self._address} cannot import netplan: {_first_line(error)}",
                hint="install the same netplan on every worker",
            ) from None
        if not versions:
            raise BackendError(
                f"the scheduler at {self._address} has no workers", hint=f"dask worker {self._address}"
            )
        others = {name: version for name, version in versions.items() if version != netplan.__version__}
        if others:
            name, version = next(iter(others.items()))
            raise BackendError(
                f"worker {name} has netplan {version}, this is {netplan.__version__}: results could differ",
                hint="install the same netplan on every worker",
            )
        return client

    def _start_slurm(self) -> Any:  # noqa: ANN401 -- an SLURMCluster, which is optional
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError:
            message = "--cluster slurm needs dask-jobqueue, which is not installed"
            raise BackendError(message, hint=_INSTALL) from None
        settings = {"cores": 1, "processes": 1, "memory": "4GiB", **self._slurm}
        try:
            return SLURMCluster(**settings)
        except Exception as error:  # noqa: BLE001 -- whatever a wrong setting raises there
            raise BackendError(
                f"Slurm cannot be used: {_first_line(error)}",
                hint="--cluster-set takes what dask_jobqueue.SLURMCluster takes, such as queue=batch",
            ) from None


def _run(client: Any, cases: Sequence[Case], texts: Texts) -> Iterator[tuple[Case, dict[str, Any], float]]:  # noqa: ANN401
    from distributed import KilledWorker, as_completed

    shared = client.scatter(texts, broadcast=True, hash=True)
    threads = sum(client.nthreads().values())
    waiting = iter(cases)
    by_key: dict[str, Case] = {}

    def submit(case: Case) -> Any:  # noqa: ANN401 -- a Future
        future = client.submit(_run_case, case, shared, key=f"netplan-{case.key}", pure=False)
        by_key[future.key] = case
        return future

    first = [submit(case) for _, case in zip(range(_AHEAD * threads), waiting, strict=False)]
    finished = as_completed(first)
    for future in finished:
        case = by_key.pop(future.key)
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise error
            row: dict[str, Any] = {"error": "its workers died, one after another: out of memory?"}
            wall_s = 0.0
        else:
            row, wall_s = future.result()
        future.release()
        following = next(waiting, None)
        if following is not None:
            finished.add(submit(following))
        yield case, row, wall_s


class _Kept(threading.local):
    """What each thread of a worker keeps."""

    runner: Runner | None = None
    digest: str = ""


_KEPT = _Kept()


def _run_case(case: Case, texts: Texts) -> tuple[dict[str, Any], float]:
    """Run a case on a worker."""
    from netplan.sweep.row import Runner

    begun = time.perf_counter()
    if _KEPT.runner is None or _KEPT.digest != texts.digest:
        _KEPT.runner, _KEPT.digest = Runner(texts), texts.digest
    return _KEPT.runner.run(case), time.perf_counter() - begun


def _version() -> str:
    """Return the version of netplan on a worker."""
    import netplan as installed

    return installed.__version__


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
