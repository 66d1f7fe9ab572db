"""``netplan sweep``: how it scales over processes, and what it adds to each scenario.

    python benchmarks/sweeps.py

1,000 and 4,000 scenarios of a 1,024-GPU fabric, with one worker process and with two; every case builds its
own demand, and the fabric is shared. *Scaling efficiency* is the time of one worker over twice that of two;
*overhead* is the workers' time that no case takes, over the cases: start of processes, pipes, the journal and
the results. The same cases in one process without `netplan.sweep` (a loop over `Runner.run`) are the peer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from netplan.sweep import load_sweep, run_sweep
from netplan.sweep.pool import LocalPool
from netplan.sweep.row import Runner

SWEEP = """\
name: benchmark
fabric: superpod-b200-4su
traffic: all-reduce-1gib
set: {traffic.placement.kind: random}
vary:
  routing: [ecmp, adaptive]
  traffic.qps: [1, 2, 4, 8]
replicas: %d
"""


def measure(folder: Path, replicas: int) -> None:
    """Print times, efficiency and overhead of one sweep."""
    path = folder / "s.yaml"
    path.write_text(SWEEP % replicas)
    plan = load_sweep(str(path))
    runner = Runner(plan.texts)
    runner.run(plan.cases[0])  # compiles what is not cached
    begun = time.perf_counter()
    for case in plan.cases:
        runner.run(case)
    loop = time.perf_counter() - begun
    count = len(plan.cases)
    print(f"{count:,} scenarios in a loop: {loop:.1f} s, {1e3 * loop / count:.2f} ms each")
    wall = {}
    for workers in (1, 2):
        begun = time.perf_counter()
        outcome = run_sweep(plan, str(folder / f"{count}-{workers}.csv"), pool=LocalPool(workers, plan.texts))
        wall[workers] = time.perf_counter() - begun
        busy = outcome.manifest["busy_s"]
        each = 1e3 * (wall[workers] * workers - busy) / outcome.ran
        print(f"  {workers} workers: {wall[workers]:.1f} s, cases {busy:.1f} s, overhead {each:.2f} ms each")
    first, second = ((folder / f"{count}-{workers}.csv").read_bytes() for workers in (1, 2))
    print(f"  scaling efficiency {wall[1] / (2 * wall[2]):.2f}, same bytes: {first == second}")


def main() -> None:
    """Measure both sizes."""
    with tempfile.TemporaryDirectory() as folder:
        for replicas in (125, 500):
            measure(Path(folder), replicas)


if __name__ == "__main__":
    main()
