"""netplan and SimGrid side by side: the same flows, the same links, CPU time and finish times.

    python benchmarks/against_simgrid.py [--sizes 256,1024,4096,16384] [--peer-python /usr/bin/python3]

SimGrid (Debian's python3-simgrid) runs in its own interpreter, pinned to one core, in plain max-min mode with
latency 0, since CM02 weights flows by 1/latency otherwise (see `simgrid_peer`). Both sides count building the
fabric, and routing plus running the flows; interpreter start and imports are in neither, netplan's compiled
code comes from its cache. Then netplan alone from 1,024 to 131,072 hosts, with the exponent of growth.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import simgrid_peer
from shapes import SHAPES, Run, run_flows

PATTERNS = ("ring", "permutation", "permutation-sizes")
SIZE = 16 * 2**20
#: Best of so many runs: the machine may be busy.
REPEATS = 5


def best(shape: tuple[int, ...], dst: np.ndarray, size: np.ndarray) -> Run:
    """Return the run with the least CPU time."""
    return min(
        (run_flows(shape, dst, size) for _ in range(REPEATS)), key=lambda run: run.build_s + run.solve_s
    )


def peer(python: str, n: int, pattern: str) -> dict[str, Any]:
    """Run SimGrid once."""
    script = Path(__file__).with_name("simgrid_peer.py")
    command = [python, str(script), str(n), "--pattern", pattern, "--latency", "0", "--seed", "1", "--times"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"SimGrid failed ({done.returncode}):\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="256,1024,4096,16384")
    parser.add_argument("--peer-python", default="/usr/bin/python3")
    parser.add_argument("--no-growth", action="store_true", help="leave out the second table")
    arguments = parser.parse_args()
    run_flows(SHAPES[64], np.roll(np.arange(64), -1), np.full(64, 1e6))  # compile, or load from the cache

    titles = f"{'SimGrid CPU s':>14} {'netplan CPU s':>14} {'ratio':>7} {'worst difference':>17}"
    header = f"{'hosts':>7} {'pattern':<18} {titles}"
    print(header + "\n" + "-" * len(header))
    for n in (int(text) for text in arguments.sizes.split(",")):
        for pattern in PATTERNS:
            dst, size = simgrid_peer.traffic(pattern, n, SIZE, 1)
            theirs = peer(arguments.peer_python, n, pattern)
            ours = best(SHAPES[n], np.array(dst), np.array(size, float))
            difference = np.max(np.abs(ours.finish / np.array(theirs["finish_s"]) - 1))
            a, b = theirs["build_cpu_s"] + theirs["solve_cpu_s"], ours.build_s + ours.solve_s
            print(f"{n:>7,} {pattern:<18} {a:>14.4f} {b:>14.4f} {a / b:>7.1f} {difference:>17.1e}")

    if arguments.no_growth:
        return
    print(f"\n{'hosts':>7} {'pattern':<18} {'build CPU s':>12} {'route + run CPU s':>18}")
    total: dict[tuple[str, int], float] = {}
    for n in (1024, 4096, 16384, 65536, 131072):
        for pattern in PATTERNS:
            dst, size = simgrid_peer.traffic(pattern, n, SIZE, 1)
            run = best(SHAPES[n], np.array(dst), np.array(size, float))
            total[pattern, n] = run.build_s + run.solve_s
            print(f"{n:>7,} {pattern:<18} {run.build_s:>12.4f} {run.solve_s:>18.4f}")
    for pattern in PATTERNS:
        exponent = math.log(total[pattern, 131072] / total[pattern, 1024]) / math.log(128)
        print(f"growth from 1,024 to 131,072 hosts, {pattern}: time ~ hosts^{exponent:.2f}")


if __name__ == "__main__":
    main()
