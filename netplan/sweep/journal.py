"""What is done of a sweep, on disk: a row of a killed run is either there whole, or not there.

A sqlite file beside the results, ``<results>.journal``, with one row for every finished case under its key.
A commit (``synchronous = FULL``) is on disk when it returns; rows that finish within `_GROUP_S` are committed
together. Who writes holds the file locked, so that two runs cannot mix.
"""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netplan.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Rows that finish within this time are committed together [s].
_GROUP_S = 0.25

_TABLES = """
create table if not exists about (name text primary key, value text not null);
create table if not exists done (key text primary key, row text not null, wall_s real not null);
"""


class Journal:
    """The rows of a sweep that have been finished.

    Parameters
    ----------
    path
        The file; made when it is not there.
    sweep
        Hash of all that decides the results.

    Raises
    ------
    OutputError
        It cannot be written, is of another sweep, or another run writes it.
    """

    def __init__(self, path: Path, sweep: str) -> None:
        self.path = path
        self._last = time.monotonic()
        try:
            self._file = sqlite3.connect(path, isolation_level=None, timeout=1.0)
            self._file.execute("pragma locking_mode = exclusive")
            self._file.execute("pragma synchronous = full")
            self._file.execute("begin exclusive")
            for statement in filter(str.strip, _TABLES.split(";")):
                self._file.execute(statement)
            self._file.execute("insert or ignore into about values ('sweep', ?)", (sweep,))
            (found,) = self._file.execute("select value from about where name = 'sweep'").fetchone()
            self._file.execute("commit")
            self._file.execute("begin")
        except sqlite3.Error as error:
            raise self._fault(error) from None
        if found != sweep:
            self._file.close()
            raise OutputError(
                f"{str(path)!r} is of another sweep, or of another version of netplan: rows are not mixed",
                hint="write to another -o, or remove that file to begin anew",
            )

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the finished rows by key."""
        return {key: json.loads(row) for key, row in self._file.execute("select key, row from done")}

    def wall_s(self) -> float:
        """Return the time that all finished cases took together [s]."""
        (total,) = self._file.execute("select coalesce(sum(wall_s), 0) from done").fetchone()
        return float(total)

    def add(self, key: str, row: Mapping[str, Any], wall_s: float) -> None:
        """Keep a finished row; of two for one case the first stays.

        Raises
        ------
        OutputError
            The disk is full.
        """
        text = json.dumps(row, sort_keys=True)
        try:
            self._file.execute("insert or ignore into done values (?, ?, ?)", (key, text, wall_s))
            if time.monotonic() - self._last > _GROUP_S:
                self.commit()
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def commit(self) -> None:
        """Put everything on disk.

        Raises
        ------
        OutputError
            The disk is full.
        """
        try:
            self._file.execute("commit")
            self._file.execute("begin")
        except sqlite3.Error as error:
            raise self._fault(error) from None
        self._last = time.monotonic()

    def close(self, *, remove: bool = False) -> None:
        """Put everything on disk and let go of the file.

        Parameters
        ----------
        remove
            Remove it as well: the results have been written. One without rows goes in any case.
        """
        try:
            if self._file.in_transaction:
                self._file.execute("commit")
            is_empty = not self._file.execute("select count(*) from done").fetchone()[0]
        except sqlite3.Error as error:
            raise self._fault(error) from None
        finally:
            self._file.close()
        if remove or is_empty:
            self.path.unlink(missing_ok=True)

    def _fault(self, error: sqlite3.Error) -> OutputError:
        """Say what sqlite says, in a user's words."""
        text = str(error)
        name = repr(str(self.path))
        if "locked" in text:
            return OutputError(f"another run writes {name}", hint="wait for it, or write to another -o")
        if "full" in text:
            return OutputError(
                f"cannot write {name}: the disk is full",
                hint="free some room and run the same command again: what is finished is kept",
            )
        if "not a database" in text or "malformed" in text:
            return OutputError(f"{name} is not a journal of netplan", hint="remove it to begin anew")
        return OutputError(f"cannot write {name}: {text}", hint="check the folder and its permissions")
