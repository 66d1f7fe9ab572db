"""Write what a format made: a file, or a folder of files, whole or not at all."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from netplan.errors import OutputError
from netplan.files import write_file

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def safe_file_name(name: str) -> str:
    """Return a name that is a file's name everywhere: letters, digits, ``.``, ``_``, ``-``; never hidden.

    >>> safe_file_name("../etc/passwd"), safe_file_name("leaf-0"), safe_file_name("..")
    ('etc-passwd', 'leaf-0', 'node')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-")[:100] or "node"


def check_names(files: Mapping[str, bytes]) -> None:
    """Refuse paths that could leave the folder.

    Raises
    ------
    OutputError
        A part of a path that is not a plain name.
    """
    for path in files:
        if not all(_SAFE.fullmatch(part) for part in path.split("/")):
            raise OutputError(f"cannot write {path!r}: it is no plain name of a file")


def write_files(path: str, files: Mapping[str, bytes], *, is_folder: bool) -> None:
    """Write files into a folder that is not there yet or empty, or the only file to a path.

    Parameters
    ----------
    path
        Folder, or file; ``-`` is standard output.
    files
        Path below the folder -> content.
    is_folder
        Whether ``path`` is a folder.

    Raises
    ------
    OutputError
        Something is there already (a folder that is not empty), or it cannot be written; then nothing is.
    """
    check_names(files)
    if not is_folder:
        (content,) = files.values()
        if path == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
        else:
            write_file(path, content)
        return
    target = Path(path)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "a folder that is not empty" if target.is_dir() else "a file"
            raise OutputError(f"cannot write {path!r}: it is {what}", hint="name a new folder")
        if not target.absolute().parent.is_dir():
            raise OutputError(
                f"cannot write {path!r}: there is no folder {str(target.parent)!r}",
                hint="make the folder first",
            )
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
        try:
            temporary.chmod(0o755)
            for name, content in files.items():
                (temporary / name).parent.mkdir(parents=True, exist_ok=True)
                (temporary / name).write_bytes(content)
            if target.is_dir():
                target.rmdir()
            temporary.rename(target)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"cannot write {path!r}: {reason}", hint="check the folder and its permissions"
        ) from None
