"""The benchmarks run, and what they compare is equal (they assert it); times are not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SYSTEM_PYTHON = "/usr/bin/python3"

pytestmark = pytest.mark.slow


def run(script: str, *arguments: str) -> str:
    """Run a benchmark and return what it printed."""
    command = [sys.executable, str(FOLDER / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_alternatives():
    """Five comparisons, each with its ratio."""
    lines = run("alternatives.py").splitlines()
    assert len(lines) == 5
    assert all("ratio" in line for line in lines)


@pytest.mark.programs
def test_against_simgrid():
    """Three patterns on 256 hosts: finish times within 1 %."""
    try:
        there = subprocess.run([SYSTEM_PYTHON, "-c", "import simgrid"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no system interpreter")
    if there.returncode:
        pytest.skip("no SimGrid: apt-get install python3-simgrid")
    rows = [
        line.split() for line in run("against_simgrid.py", "--sizes", "256", "--no-growth").splitlines()[2:]
    ]
    assert [row[1] for row in rows] == ["ring", "permutation", "permutation-sizes"]
    assert all(float(row[-1]) < 0.01 for row in rows)
