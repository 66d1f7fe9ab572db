"""Where compiled code is kept between processes.

numba keeps machine code beside the source and trusts it as long as that *one* file is unchanged.
Our compiled functions call each other across files, so a change in ``max_min`` would leave
``completion`` running the old ``fill``. The cache is therefore in a folder named after the
contents of all kernels: any change starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numba

_PREFIX = "numba-"


def use_cache() -> None:
    """Point numba at the cache of these sources, unless the user chose a place (NUMBA_CACHE_DIR)."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    sources = Path(__file__).parent
    base = sources / "__pycache__"
    if not os.access(base if base.is_dir() else sources, os.W_OK):  # installed for all, run by one
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netplan"
    folder = cache_folder(sources, base)
    for old in base.glob(f"{_PREFIX}*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


def cache_folder(sources: Path, base: Path) -> Path:
    """Return the folder under ``base`` for compiled code of the Python files in ``sources``."""
    digest = hashlib.sha256()
    for path in sorted(sources.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return base / f"{_PREFIX}{digest.hexdigest()[:16]}"
