"""The same work on many items, in processes or not, with the results in the order of the items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

from netplan.catalog.parts import load_catalogue

if TYPE_CHECKING:
    from netplan.catalog.parts import Catalogue
    from netplan.planning.plan.request import Request

    Progress = Callable[[str, int, int], None]

T = TypeVar("T")
R = TypeVar("R")

__all__ = ["Crew", "crew"]


class Crew:
    """Does ``work(item, request, catalogue)`` for many items.

    Parameters
    ----------
    request, catalogue
        Given to every piece of work.
    progress
        Called with (what, done, all).
    pool
        Processes; none when None.
    """

    def __init__(
        self,
        request: Request,
        catalogue: Catalogue,
        progress: Progress | None,
        pool: ProcessPoolExecutor | None,
    ) -> None:
        self._request, self._catalogue = request, catalogue
        self._progress, self._pool = progress, pool

    def each(self, name: str, work: Callable[[T, Request, Catalogue], R], items: Sequence[T]) -> Iterator[R]:
        """Yield the results in the order of the items.

        Parameters
        ----------
        name
            What is being done, for the progress.
        work
            A function of a module, so that processes find it.
        items
            What it is done for.
        """
        results: Iterator[R]
        if self._pool is None:
            results = (work(item, self._request, self._catalogue) for item in items)
        else:
            results = self._pool.map(partial(_there, work), items)
        for done, result in enumerate(results, start=1):
            if self._progress is not None:
                self._progress(name, done, len(items))
            yield result


@contextmanager
def crew(workers: int, request: Request, catalogue: Catalogue, progress: Progress | None) -> Iterator[Crew]:
    """Yield a crew of so many processes; of none for 1."""
    if workers <= 1:
        yield Crew(request, catalogue, progress, None)
        return
    # Not forked: a child of a process with threads (a progress bar) may hang. A catalogue cannot be sent.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(request,)) as pool:
        yield Crew(request, catalogue, progress, pool)


_here: dict[str, Any] = {}


def _begin(request: Request) -> None:
    """Prepare a process."""
    _here.update(request=request, catalogue=load_catalogue(request.parts))


def _there(work: Callable[[T, Request, Catalogue], R], item: T) -> R:
    """Do a piece of work in a process."""
    return work(item, _here["request"], _here["catalogue"])
