"""The formats, by name: what each is for, who checks it, what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from netplan.errors import OutputError
from netplan.registry import Registry

if TYPE_CHECKING:
    from netplan.fabric import Fabric
    from netplan.interop.graph import ReadGraph
    from netplan.interop.source import Source
    from netplan.traffic import Demand

Kind = Literal["fabric", "traffic", "routes", "config"]


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may be told where its format is silent."""

    speed: float = 50e9
    """Line rate of cables whose speed the file does not say [bytes/s]."""
    gpus_per_host: int | None = None
    """GPUs of each host; None: one per NIC port, or what the file says."""
    name: str = "imported"
    """Name of the fabric."""


@dataclass(frozen=True)
class WriteOptions:
    """What a writer may be told."""

    demand: Demand | None = None
    """Traffic, for formats of kind ``traffic``."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Options of the format itself, such as ``form: block``; each writer says which it knows."""


#: Turns a text into nodes and cables.
Read = Callable[["Source", ReadOptions], "ReadGraph"]

#: Turns a fabric into files: path below the folder -> content. A format of one file has one entry.
Write = Callable[["Fabric", WriteOptions], Mapping[str, bytes]]


@dataclass(frozen=True)
class Format:
    """One file format of another program."""

    name: str
    summary: str
    """What it is, in a sentence."""
    checked_by: str
    """The real program that reads it in our tests."""
    leaves_out: str
    """What of a fabric it cannot say, or what of it is not read."""
    kind: Kind
    suffix: str
    """Usual suffix of its files, with the dot."""
    is_folder: bool
    """Whether it is written as several files in a folder."""
    read: Read | None
    write: Write | None
    settings: Mapping[str, str]
    """Options that the writer knows, with a sentence each."""

    @property
    def ways(self) -> str:
        """``read, write`` or one of them."""
        return ", ".join(word for word in ("read", "write") if getattr(self, word) is not None)


#: Every format by name; adding a format adds its file here.
FORMATS: Registry[Format] = Registry(
    "format",
    "netplan.interop",
    (
        "ibnetdiscover",
        "opensm_files",
        "slurm",
        "slurm_yaml",
        "graphml",
        "dot",
        "nccl",
        "simai",
        "hpcc",
        "astra_sim",
        "htsim",
        "simgrid",
        "sonic",
        "containerlab",
        "labels",
        "lldp",
        "rank_file",
    ),
    OutputError,
)


def add_format(  # noqa: PLR0913 -- all that a format says of itself
    name: str,
    module: str,
    *,
    summary: str,
    checked_by: str,
    leaves_out: str,
    suffix: str,
    kind: Kind = "fabric",
    is_folder: bool = False,
    read: Read | None = None,
    write: Write | None = None,
    settings: Mapping[str, str] | None = None,
) -> Format:
    """Register a format.

    Parameters
    ----------
    name
        Name, as after ``--to`` and ``--from``.
    module
        ``__name__`` of the module that calls.
    summary, checked_by, leaves_out, suffix, kind, is_folder, read, write, settings
        As in `Format`.
    """
    made = Format(
        name, summary, checked_by, leaves_out, kind, suffix, is_folder, read, write, dict(settings or {})
    )
    FORMATS.add(name, module, made)
    return made


def find_format(name: str, way: Literal["read", "write"]) -> Format:
    """Return a format that can be read, or written.

    Raises
    ------
    OutputError
        There is no such format, or it goes the other way only; the message lists those that do.
    """
    found = FORMATS.find(name)
    if getattr(found, way) is None:
        able = ", ".join(each.name for each in FORMATS if getattr(each, way) is not None)
        done = "written, not read" if way == "read" else "read, not written"
        raise OutputError(f"format {name!r} is {done}", hint=f"formats to {way}: {able}")
    return found


def speed_remark(options: ReadOptions, count: int, what: str = "cable") -> str:
    """Say that a file gave no speed for so many things, and what was taken."""
    taken = f"{options.speed * 8 / 1e9:g}G (--speed to say)"
    return f"the file gives no speed for {count:,} {what}(s); taken: {taken}"


def setting(options: WriteOptions, name: str, accepted: tuple[str, ...]) -> str:
    """Return the value of a writer's option; the first of those accepted when it is not given.

    Raises
    ------
    OutputError
        Another value.
    """
    value: Any = options.settings.get(name, accepted[0])
    if value not in accepted:
        raise OutputError(f"{name} = {value!r} is not one of {', '.join(accepted)}")
    return str(value)
