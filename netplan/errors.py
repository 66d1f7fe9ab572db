"""Every error a user can cause, and the exit status each one ends the program with.

::

    NetplanError            message, hint
    ├── SpecError           a topology or traffic file, or ``--set``, with all its faults at once
    ├── UnitError           a quantity without a unit, with a wrong one, or out of range
    ├── CatalogError        a part, topology or workload that is not in the catalogue, or is broken there
    ├── FabricError         a fabric that breaks a rule of fabrics (ports, cables, tiers)
    ├── RoutingError        no route, or a routing scheme that does not fit the fabric
    ├── TrafficError        a demand that does not fit the hosts it is placed on
    ├── ModelRangeError     a model asked for an answer outside the range in which it holds
    ├── BackendError        a foreign program that is missing or has failed
    └── OutputError         a file that cannot be written

Bugs in netplan stay ordinary exceptions: whoever catches `NetplanError` hides none of them.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "BackendError",
    "CatalogError",
    "ExitStatus",
    "FabricError",
    "Fault",
    "ModelRangeError",
    "NetplanError",
    "OutputError",
    "RoutingError",
    "SpecError",
    "TrafficError",
    "UnitError",
    "did_you_mean",
]


class ExitStatus(IntEnum):
    """What the program tells the shell."""

    OK = 0
    """Everything asked for was done."""
    FAULT = 1
    """The input is at fault, or the output cannot be written."""
    USAGE = 2
    """The command line is not one that netplan knows (click's own number)."""
    TARGET_NOT_MET = 3
    """The work was done, and a check or a target that the user set is not met."""
    BACKEND = 4
    """A foreign program (a packet-level simulator) is missing or has failed."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT, as shells count."""


class NetplanError(Exception):
    """Say what is wrong, and where there is one, the way out.

    Parameters
    ----------
    message : str
        What is wrong: the place, the value, what is accepted.
    hint : str, optional
        What to do about it; printed on a line of its own.
    """

    exit_status: ClassVar[ExitStatus] = ExitStatus.FAULT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return the message with its hint below."""
        return _with_hint(self.message, self.hint)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong at one place of a specification."""

    where: str
    """Place: ``topologies/x.yaml:14`` or ``--set leaf.uplinks=15``; empty if the spec came from no text."""
    message: str
    """What is wrong there: the field, its value, what is accepted."""
    hint: str | None = None
    """What to do about it."""

    def __str__(self) -> str:
        """Return ``where: message`` with the hint below."""
        return _with_hint(f"{self.where}: {self.message}" if self.where else self.message, self.hint)


class SpecError(NetplanError):
    """A specification that cannot be used, with all its faults.

    Parameters
    ----------
    message : str, optional
        The only fault, of a specification that came from no text (built in Python).
    hint : str, optional
        The way out of that one fault.
    faults : iterable of Fault, optional
        The faults in the order of the text; given instead of `message`.
    """

    faults: tuple[Fault, ...]

    @overload
    def __init__(self, message: str, *, hint: str | None = None) -> None: ...
    @overload
    def __init__(self, *, faults: Iterable[Fault]) -> None: ...
    def __init__(self, message: str = "", *, hint: str | None = None, faults: Iterable[Fault] = ()) -> None:
        self.faults = tuple(faults) or (Fault("", message, hint),)
        super().__init__("\n".join(fault.message for fault in self.faults), hint=self.faults[0].hint)

    def __str__(self) -> str:
        """Return all faults, one after another."""
        return "\n".join(map(str, self.faults))


class UnitError(NetplanError):
    """A quantity without a unit, with a unit of another kind, or out of range.

    Parameters
    ----------
    reason : str
        What is wrong with the value, as the rest of a sentence that begins with it: ``is not a rate: ...``.
    value : str, optional
        The value as the user wrote it; begins the message.
    hint : str, optional
        What to write instead.
    """

    def __init__(self, reason: str, *, value: str = "", hint: str | None = None) -> None:
        super().__init__(f"{value} {reason}" if value else reason, hint=hint)
        self.reason = reason


class CatalogError(NetplanError):
    """A name that the catalogue does not have, or an entry of it that is broken."""


class FabricError(NetplanError):
    """A fabric that breaks a rule of fabrics, or cannot be built."""


class RoutingError(NetplanError):
    """A pair of endpoints without a route, or a routing scheme that does not fit the fabric."""


class TrafficError(NetplanError):
    """A demand that does not fit the hosts it is placed on."""


class ModelRangeError(NetplanError):
    """A model asked for an answer outside the range in which it holds."""


class BackendError(NetplanError):
    """A foreign program that is missing or has failed."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.BACKEND


class OutputError(NetplanError):
    """A file that cannot be written."""


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` was probably meant to be.

    Parameters
    ----------
    word : str
        What the user wrote.
    candidates : iterable of str
        The words that are accepted.

    Returns
    -------
    str or None
        The closest candidate, whatever its case; None when nothing is close.

    Examples
    --------
    >>> did_you_mean("nic_per_host", ["hosts", "nics_per_host"])
    'nics_per_host'
    >>> did_you_mean("zebra", ["hosts", "nics_per_host"]) is None
    True
    """
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    closest = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[closest[0]] if closest else None


def _with_hint(text: str, hint: str | None) -> str:
    return f"{text}\n  hint: {hint}" if hint else text
