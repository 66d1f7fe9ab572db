"""The parts catalogue: shipped files of `data/` and the user's own, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from netplan.catalog.shipped import MOST_BYTES, Item
from netplan.errors import CatalogError, did_you_mean
from netplan.spec.parts import (
    CableSpec,
    FibreSpec,
    HostSpec,
    LineTerminalSpec,
    NicSpec,
    OpticSpec,
    PartsFileSpec,
    PartSpec,
    SwitchSpec,
)
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TABLES", "Catalogue", "list_parts", "load_catalogue", "shipped_catalogue"]

P = TypeVar("P", bound=PartSpec)

#: Tables of a parts file, and the word for one of each.
TABLES = {
    "switches": "switch",
    "nics": "nic",
    "optics": "optic",
    "cables": "cable",
    "fibres": "fibre",
    "line_terminals": "line terminal",
    "hosts": "host",
}

_DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Catalogue:
    """Parts by name, in the order of the files."""

    switches: Mapping[str, SwitchSpec]
    nics: Mapping[str, NicSpec]
    optics: Mapping[str, OpticSpec]
    cables: Mapping[str, CableSpec]
    fibres: Mapping[str, FibreSpec]
    line_terminals: Mapping[str, LineTerminalSpec]
    hosts: Mapping[str, HostSpec]

    def switch(self, name: str) -> SwitchSpec:
        """Return a switch by name, or refuse it."""
        return _find(self.switches, name, "switch")

    def nic(self, name: str) -> NicSpec:
        """Return a NIC by name, or refuse it."""
        return _find(self.nics, name, "NIC")

    def host(self, name: str) -> HostSpec:
        """Return a host by name, or refuse it."""
        return _find(self.hosts, name, "host")

    def medium(self, name: str) -> OpticSpec | CableSpec:
        """Return a transceiver or a cable by name, or refuse it."""
        media: dict[str, OpticSpec | CableSpec] = {**self.optics, **self.cables}
        return _find(media, name, "transceiver or cable")

    def parts(self) -> Iterator[tuple[str, PartSpec]]:
        """Yield the kind and the part of all parts."""
        for table, word in TABLES.items():
            for part in getattr(self, table).values():
                yield word, part

    def with_only(self, switch: SwitchSpec) -> Catalogue:
        """Return a catalogue of the same parts whose only switch is this one."""
        return replace(self, switches={switch.name: switch})

    def extended(self, spec: PartsFileSpec) -> Catalogue:
        """Return a catalogue with the parts of a file added; those of the same name are replaced."""
        tables: dict[str, Any] = {}
        for table in TABLES:
            added = {part.name: part for part in getattr(spec, table)}
            tables[table] = {**getattr(self, table), **added}
        return Catalogue(**tables)


_EMPTY = Catalogue({}, {}, {}, {}, {}, {}, {})


@cache
def shipped_catalogue() -> Catalogue:
    """Return the parts that netplan ships."""
    catalogue = _EMPTY
    for path in sorted(_DATA.glob("*.yaml")):
        catalogue = catalogue.extended(_read(path.read_bytes(), path.name))
    return catalogue


def load_catalogue(file: str | None = None) -> Catalogue:
    """Return the shipped parts, with those of a file added.

    Parameters
    ----------
    file
        Path of a YAML file with tables as in the shipped ones; a part with the name of a shipped one
        replaces it.

    Raises
    ------
    CatalogError
        The file cannot be read.
    SpecError
        It has faults; all are listed.
    """
    shipped = shipped_catalogue()
    if file is None:
        return shipped
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(MOST_BYTES)
    except OSError as error:
        raise CatalogError(
            f"parts file {file!r} cannot be read: {error.strerror or error}",
            hint="check the path and its permissions",
        ) from None
    return shipped.extended(_read(text, file))


def list_parts() -> list[Item]:
    """Return the shipped parts with a sentence and the source of their first figure."""
    return [
        Item(part.name, kind, part.description, _source(part)) for kind, part in shipped_catalogue().parts()
    ]


def _read(text: bytes, label: str) -> PartsFileSpec:
    """Read a file of parts."""
    return validate(PartsFileSpec, parse_yaml(text, label))


def _source(part: PartSpec) -> str:
    """Return where the first sourced figure of a part comes from."""
    for name in ("ports", "channels", "reach", "power_max", "price"):
        figure = getattr(part, name, None)
        source = getattr(figure, "source", None)
        if source is not None:
            return str(source)
    return ""


def _find(table: Mapping[str, P], name: str, word: str) -> P:
    """Return a part of a table, or refuse its name."""
    if name in table:
        return table[name]
    near = did_you_mean(name, table)
    hint = (
        f"did you mean {near}? (netplan list parts)"
        if near
        else "netplan list parts shows all; --parts FILE adds"
    )
    raise CatalogError(f"{word} {name!r} is not in the parts catalogue", hint=hint)
