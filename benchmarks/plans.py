"""``netplan plan`` by size: wall time, CPU time and memory of whole processes, and how they grow.

    python benchmarks/plans.py

Each line is one new process, at the default number of workers. Compiled code is cached beforehand.
"""

from __future__ import annotations

import math
import tempfile

from large_fabric import measure

#: GPUs, and what else is asked.
REQUESTS = (
    (1024, ()),
    (4096, ()),
    (16384, ()),
    (16384, ("--non-blocking",)),
    (65536, ("--non-blocking",)),
    (131072, ("--non-blocking",)),
)


def main() -> None:
    """Print the table and the growth of the non-blocking requests."""
    header = f"{'process':<45} {'wall s':>7} {'CPU s':>7} {'peak MiB':>9}"
    print(header + "\n" + "-" * len(header))
    walls: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as cache:
        measure(["plan", "--gpus", "256", "--format", "json"], cache)
        for gpus, more in REQUESTS:
            arguments = ["plan", "--gpus", str(gpus), "--nic", "400G", *more]
            wall, cpu, peak = measure([*arguments, "--format", "json"], cache)
            print(f"{' '.join(arguments):<45} {wall:>7.1f} {cpu:>7.1f} {peak:>9.0f}", flush=True)
            if more:
                walls[gpus] = wall
    least, most = min(walls), max(walls)
    slope = math.log(walls[most] / walls[least]) / math.log(most / least)
    print(f"growth from {least:,} to {most:,} GPUs, non-blocking: time ~ GPUs^{slope:.2f}")


if __name__ == "__main__":
    main()
