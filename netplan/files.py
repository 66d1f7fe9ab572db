"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from netplan.errors import OutputError


def write_file(path: str, content: bytes) -> None:
    """Write a file whole or not at all: to a temporary file beside it, then renamed.

    Raises
    ------
    OutputError
        The folder is not there, or cannot be written to.
    """
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"cannot write {path!r}: it is a folder", hint="name a file in it")
    if not target.parent.is_dir():
        raise OutputError(
            f"cannot write {path!r}: there is no folder {str(target.parent)!r}", hint="make the folder first"
        )
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise OutputError(
            f"cannot write {path!r}: {error.strerror or error}", hint="check the folder and its permissions"
        ) from None


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
