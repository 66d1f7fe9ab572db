"""Find shipped files by name, and tell what each is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netplan.catalog.paths import Kind, shipped_folder
from netplan.errors import CatalogError, did_you_mean
from netplan.spec.text import parse_yaml

if TYPE_CHECKING:
    from netplan.spec.text import Document

#: The largest spec that is read [bytes].
MOST_BYTES = 256 * 2**20

#: Word for one file of each kind, for messages.
_WORD = {"topologies": "fabric", "traffic": "traffic", "sweeps": "sweep"}


@dataclass(frozen=True)
class Item:
    """One shipped file."""

    name: str
    kind: str
    summary: str
    source: str


def list_shipped(kind: Kind) -> list[Item]:
    """Return what is shipped of a kind, by name."""
    items = []
    for path in sorted(shipped_folder(kind).glob("*.yaml")):
        data = parse_yaml(path.read_bytes(), str(path)).data
        assert isinstance(data, dict)
        items.append(
            Item(
                path.stem,
                str(data.get("kind", "")),
                str(data.get("description", "")),
                str(data.get("source", "")),
            )
        )
    return items


def read_source(source: str, kind: Kind) -> tuple[bytes, str]:
    """Return the text that a name, a path or ``-`` (standard input) stands for, and its label.

    Parameters
    ----------
    source
        Name of a shipped file, path of a file, or ``-``.
    kind
        Which shipped files names are looked for in.

    Returns
    -------
    text, label
        The bytes, and what to call them in messages.

    Raises
    ------
    CatalogError
        There is no such name or file, or the file cannot be read.
    """
    word = _WORD[kind]
    if source == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1), "<stdin>"
    path = Path(source)
    if not path.exists() and path.suffix == "" and len(path.parts) <= 1:
        names = [file.stem for file in shipped_folder(kind).glob("*.yaml")]
        if source not in names:
            raise CatalogError(
                f"{word} {source!r} is neither a shipped name nor a file",
                hint=_suggest(source, names, word),
            )
        path = shipped_folder(kind) / f"{source}.yaml"
        return path.read_bytes(), f"{kind}/{source}.yaml"
    if path.is_dir():
        raise CatalogError(
            f"{word} {source!r} is a folder, not a file", hint="name a YAML or JSON file in it"
        )
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CatalogError(
            f"{word} file {source!r} cannot be read: {error.strerror or error}",
            hint="check the path and its permissions",
        ) from None
    if len(text) > MOST_BYTES:
        raise CatalogError(
            f"{word} file {source!r} is larger than {MOST_BYTES // 2**20} MiB", hint="is it a spec?"
        )
    return text, source


def read_document(source: str, kind: Kind) -> Document:
    """Return the parsed YAML that a name, a path or ``-`` stands for.

    Raises
    ------
    CatalogError
        It cannot be found or read.
    SpecError
        It is not a YAML map.
    """
    return parse_yaml(*read_source(source, kind))


def _suggest(name: str, names: list[str], word: str) -> str:
    """Suggest the nearest shipped name, or how to see all."""
    near = did_you_mean(name, names)
    listing = "fabrics" if word == "fabric" else word
    return (
        f"did you mean {near}? (netplan list {listing})"
        if near
        else f"netplan list {listing} shows the shipped ones"
    )
