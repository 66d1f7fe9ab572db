"""The cache of compiled code follows all kernels, not one file each."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import netplan.kernels.compiled
from netplan.kernels.compiled import cache_folder

SOURCES = Path(netplan.kernels.compiled.__file__).parent


def test_any_change_names_another_folder(tmp_path):
    """System: two files. Expected: the folder follows names and contents of both, and nothing else."""
    sources, base = tmp_path / "kernels", tmp_path / "cache"
    sources.mkdir()
    (sources / "a.py").write_text("x = 1\n")
    (sources / "b.py").write_text("y = 1\n")
    first = cache_folder(sources, base)
    (sources / "notes.txt").write_text("not code")
    assert cache_folder(sources, base) == first
    (sources / "b.py").write_text("y = 2\n")
    second = cache_folder(sources, base)
    (sources / "b.py").rename(sources / "c.py")
    assert len({first, second, cache_folder(sources, base)}) == 3


def test_a_change_in_one_kernel_reaches_its_callers(tmp_path):
    """System: a copy of the package, run once; then `fill`, which `completion` calls, doubles rates.

    By hand: 10 bytes at 5 bytes/s take 2 s; with doubled rates 1 s. With numba's own cache the second run
    would still say 2.
    """
    package = tmp_path / "netplan"
    shutil.copytree(SOURCES.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy as np; from netplan.kernels.completion import complete\n"
        "ones = np.ones(1); ids = np.array([0, 1])\n"
        "print(complete(5 * ones, ids, np.zeros(1, np.int64), ones, ids, 10 * ones, 0 * ones).finish[0])"
    )
    env = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}

    def finish() -> float:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**env, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    assert finish() == 2.0
    source = package / "kernels" / "max_min.py"
    text = source.read_text()
    assert "            rate[f] = tightest\n" in text
    source.write_text(
        text.replace("            rate[f] = tightest\n", "            rate[f] = 2 * tightest\n")
    )
    assert finish() == 1.0
