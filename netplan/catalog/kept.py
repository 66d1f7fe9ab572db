"""Files of smaller kinds that are shipped in folders of ``traffic/``: days, mixed jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from netplan.catalog.paths import shipped_folder
from netplan.catalog.shipped import read_document
from netplan.errors import CatalogError, did_you_mean
from netplan.spec.text import parse_yaml

if TYPE_CHECKING:
    from netplan.spec.text import Document

__all__ = ["read_kept"]


def read_kept(source: str, folder: Literal["days", "mixed"]) -> Document:
    """Return the parsed YAML that a shipped name, a path or ``-`` stands for.

    Raises
    ------
    CatalogError
        It cannot be found or read.
    SpecError
        It is not a YAML map.
    """
    path = Path(source)
    if source == "-" or path.suffix or path.exists():
        return read_document(source, "traffic")
    shipped = {each.stem: each for each in (shipped_folder("traffic") / folder).glob("*.yaml")}
    if source not in shipped:
        near = did_you_mean(source, shipped)
        word = {"days": "day", "mixed": "mixed job"}[folder]
        raise CatalogError(
            f"{word} {source!r} is neither a shipped name nor a file",
            hint=f"did you mean {near}?" if near else f"shipped: {', '.join(sorted(shipped))}",
        )
    return parse_yaml(shipped[source].read_bytes(), f"traffic/{folder}/{source}.yaml")
