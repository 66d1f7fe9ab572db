"""Whole cold processes on the largest shipped fabric: wall time, CPU time, memory.

    python benchmarks/large_fabric.py

Each line is one new process: ``netplan --help``; the very first ``simulate`` with an empty cache of compiled
code; then the same with the cache warm, for every routing scheme.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

SIMULATE = ["simulate", "rail-131k", "all-reduce-1gib", "--format", "json"]
ROUTINGS = ("ecmp", "rail-pinned", "spray", "adaptive", "ib-static", "ib-random", "ideal")


def measure(arguments: list[str], cache: str) -> tuple[float, float, float]:
    """Return (wall s, CPU s, peak MiB) of one ``netplan`` process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "netplan", *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    if status:
        sys.exit(f"netplan {' '.join(arguments)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    header = f"{'process':<58} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}"
    print(header + "\n" + "-" * len(header))
    with tempfile.TemporaryDirectory() as cache:

        def line(name: str, arguments: list[str]) -> None:
            wall, cpu, peak = measure(arguments, cache)
            print(f"{name:<58} {wall:>7.2f} {cpu:>7.2f} {peak:>9.0f}", flush=True)

        line("--help", ["--help"])
        line("simulate rail-131k all-reduce-1gib, nothing compiled", SIMULATE)
        for routing in ROUTINGS:
            line(f"simulate rail-131k all-reduce-1gib --routing {routing}", [*SIMULATE, "--routing", routing])


if __name__ == "__main__":
    main()
