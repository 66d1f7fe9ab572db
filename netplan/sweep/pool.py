"""Worker processes on this machine.

Each worker is a fresh interpreter (``spawn``) with a pipe of its own. It builds a `Runner` once; from then on
it takes cases and gives rows. A worker that dies is replaced, and the case that it had is tried again; one
that has killed `TRIES` workers becomes a row with an error. Two cases are in a worker's pipe at a time, so
that it need not wait for the next one.

Workers leave when their parent is gone: the pipe ends; and for one in the middle of a case a thread looks at
the parent's number every `_LOOK_S`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from netplan.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from netplan.sweep.row import Texts
    from netplan.sweep.settings import Case

#: Workers that one case may kill before it counts as failed.
TRIES = 3

#: Cases in the pipe of a worker.
_AHEAD = 2

#: How often a busy worker looks whether its parent is there [s].
_LOOK_S = 0.5

#: Workers that may die before they have said that they are up.
_STILLBORN = 3

_READY = "ready"


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    cases: deque[Case] = field(default_factory=deque)
    is_up: bool = False


class LocalPool:
    """Runs cases in processes of this machine.

    Parameters
    ----------
    workers
        How many.
    texts
        Spec files, sent to each worker once.
    """

    def __init__(self, workers: int, texts: Texts) -> None:
        self._texts = texts
        self._size = workers
        self._workers: list[_Worker] = []
        self._tries: dict[str, int] = {}
        self._stillborn = 0

    @property
    def pids(self) -> list[int]:
        """Numbers of the worker processes."""
        return [worker.process.pid or 0 for worker in self._workers]

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any], float]]:
        """Yield each case with its row and its time [s], in the order in which they finish.

        Raises
        ------
        BackendError
            No worker comes up.
        """
        waiting = deque(cases)
        try:
            self._workers = [self._start() for _ in range(min(self._size, len(cases)))]
            while waiting or any(worker.cases for worker in self._workers):
                for worker in self._workers:
                    self._feed(worker, waiting)
                pipes = {worker.pipe: worker for worker in self._workers}
                for pipe in wait(list(pipes)):
                    worker = pipes[pipe]  # type: ignore[index]
                    try:
                        message = worker.pipe.recv()
                    except (EOFError, OSError):
                        yield from self._bury(worker, waiting)
                        continue
                    if message == _READY:
                        worker.is_up = True
                        continue
                    row, wall_s = message
                    yield worker.cases.popleft(), row, wall_s
        finally:
            self.close()

    def close(self) -> None:
        """End all workers, in the middle of a case too."""
        for worker in self._workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._texts, os.getpid()), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _feed(self, worker: _Worker, waiting: deque[Case]) -> None:
        """Fill a worker's pipe."""
        while waiting and len(worker.cases) < _AHEAD:
            case = waiting[0]
            try:
                worker.pipe.send(case)
            except OSError:  # dead: `wait` will say so as well
                return
            worker.cases.append(waiting.popleft())

    def _bury(self, worker: _Worker, waiting: deque[Case]) -> Iterator[tuple[Case, dict[str, Any], float]]:
        """Replace a dead worker; its cases are tried again, but for one that has killed too many."""
        worker.process.join()
        code = worker.process.exitcode or 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        worker.pipe.close()
        if not worker.is_up:
            self._stillborn += 1
            if self._stillborn >= _STILLBORN:
                raise BackendError(
                    f"worker processes do not come up ({how})", hint="--workers 1 runs in this process"
                )
        cases = list(worker.cases)
        if cases and worker.is_up:
            key = cases[0].key
            self._tries[key] = self._tries.get(key, 0) + 1
            if self._tries[key] >= TRIES:
                message = f"its worker died {TRIES} times ({how}): out of memory?"
                yield cases.pop(0), {"error": message}, 0.0
        waiting.extendleft(reversed(cases))
        self._workers[self._workers.index(worker)] = self._start()


def _serve(pipe: Connection, texts: Texts, parent: int) -> None:
    """Run cases until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent ends us
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    from netplan.sweep.row import Runner

    runner = Runner(texts)
    with contextlib.suppress(EOFError, OSError):
        pipe.send(_READY)
        while True:
            case = pipe.recv()
            begun = time.perf_counter()
            row = runner.run(case)
            pipe.send((row, time.perf_counter() - begun))


def _leave_with(parent: int) -> None:
    """End this process once its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)
