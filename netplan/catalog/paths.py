"""Where the shipped files are: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from netplan.errors import CatalogError

Kind = Literal["topologies", "traffic", "sweeps"]

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(kind: Kind) -> Path:
    """Return the folder of shipped files of a kind.

    Raises
    ------
    CatalogError
        The installation has none.
    """
    for folder in (_PACKAGE / "_shipped" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise CatalogError(
        f"this installation of netplan has no folder {kind}", hint="install netplan-rdma again"
    )
