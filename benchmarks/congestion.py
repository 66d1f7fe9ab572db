"""Time-domain congestion: what the short cuts cost in exactness, and how fast it is.

``./run python benchmarks/congestion.py errors`` runs medium demands whole and by the short cuts of
`netplan.simulate.dynamics` and prints completion and mean-flow efficiency of each over the whole run's.
``... scale`` compares six protocols on 131,072 GPUs. ``... permutation`` runs 1,024 hosts, 2 MB each.
``... steps`` halves the engine's step. ``-o FILE`` writes the Markdown tables of `docs`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from netplan import api
from netplan.simulate import congested
from netplan.simulate.reference.engine import run_engine
from netplan.simulate.reference.runs import read_runs

PROTOCOLS = ("none", "dcqcn", "dctcp", "hpcc", "timely")

#: Fabric, workload, changes to it.
CASES = (
    ("hpcc-320", "permutation-64mib", {"size": "16MiB"}),
    ("superpod-b200-4su", "all-reduce-1gib", {"size": "128MiB", "placement.kind": "random"}),
    ("superpod-b200-4su", "all-to-all-moe", {}),
    ("lab-2-leaf", "incast-8", {"size": "64MiB"}),
)

#: CPU seconds that runs of HPCC's ns-3 state, by name (``tests/data/packet``).
PACKET_CPU_S = {"c_k8_s1_dcqcn": 21.939, "c_k4_s1_dcqcn": 3.525, "c_ls4x8x8_s1_dcqcn": 5.313}
PACKET_RUNS = Path(__file__).parent.parent / "tests" / "data" / "packet" / "hpcc.json.gz"

#: Links between two hosts of a fat tree with k = 16, in the mean: 960 of 1,023 others are in other pods.
LINKS_K16 = (960 * 6 + 56 * 4 + 7 * 2) / 1023

#: Runs of which the fastest counts.
BEST_OF = 5

#: Short cuts: events that are run over those of the whole, senders of a component.
SHORT = ((0.2, 2048), (0.2, 1))


@contextmanager
def short_cuts(most_events: float, most_senders: int) -> Iterator[None]:
    """Let the short cuts begin earlier."""
    before = congested.MOST_EVENTS, congested.MOST_SENDERS
    congested.MOST_EVENTS, congested.MOST_SENDERS = most_events, most_senders
    try:
        yield
    finally:
        congested.MOST_EVENTS, congested.MOST_SENDERS = before


def errors() -> list[str]:
    """Compare short cuts with whole runs."""
    lines = [
        "| demand | protocol | whole | a fifth | bottlenecks | mean_flow, whole | a fifth | bottlenecks |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, work, changes in CASES:
        fabric, traffic = api.load_fabric(name), api.load_traffic(work, overrides=changes)
        for cc in PROTOCOLS:
            whole = api.simulate(fabric, traffic, cc=cc, exact=True)
            assert whole.congestion is not None
            times, rates = [], []
            for part, most in SHORT:
                with short_cuts(part * whole.congestion.events, most):
                    short = api.simulate(fabric, traffic, cc=cc)
                times.append(f"{short.completion_s / whole.completion_s - 1:+.1%}")
                rates.append(f"{short.efficiency.mean_flow / whole.efficiency.mean_flow - 1:+.1%}")
            lines.append(
                f"| {work} on {name} | {cc} | {whole.completion_s * 1e3:.3f} ms | {' | '.join(times)} |"
                f" {whole.efficiency.mean_flow:.3f} | {' | '.join(rates)} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def steps() -> list[str]:
    """Halve the step."""
    lines = ["| demand | protocol | step | completion, step halved |", "| --- | --- | ---: | ---: |"]
    for name, work, changes in CASES:
        fabric, traffic = api.load_fabric(name), api.load_traffic(work, overrides=changes)
        for cc in PROTOCOLS:
            first = api.simulate(fabric, traffic, cc=cc, exact=True)
            assert first.congestion is not None
            step = first.congestion.step_s
            half = api.simulate(fabric, traffic, cc=cc, exact=True, step=step / 2)
            change = half.completion_s / first.completion_s - 1
            lines.append(f"| {work} on {name} | {cc} | {step * 1e9:.0f} ns | {change:+.2%} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def scale() -> list[str]:
    """Compare six protocols on 131,072 GPUs, hosts in random order."""
    six = ("max-min", *PROTOCOLS)
    begun = time.perf_counter()
    fabric = api.load_fabric("rail-131k")
    traffic = api.load_traffic("all-reduce-16gib-random")
    table = api.compare(fabric, traffic, routing=("ecmp",), cc=six, baseline="spray")
    took = time.perf_counter() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    lines = ["| protocol | completion | collective | mean_flow | seconds |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for row in table.rows:
        e = row.result.efficiency
        lines.append(
            f"| {row.cc} | {row.result.completion_s:.3f} s | {e.collective:.3f} | {e.mean_flow:.3f} |"
            f" {row.result.wall_s:.1f} |"
        )
    return [*lines, "", f"All in {took:.0f} s, at most {most:.2f} GB of memory."]


def cluster() -> list[str]:
    """Which part each step brings on the fabric of Baidu's cluster."""
    fabric, traffic = api.load_fabric("baidu-10k"), api.load_traffic("all-reduce-16gib-random")
    steps_ = (
        ("InfiniBand, static routing, ideal credits", "ib-static", "max-min", 1),
        ("InfiniBand, static routing, credits over time", "ib-static", "ib-credits", 1),
        ("one path, DCQCN with NIC defaults", "ecmp", "dcqcn-connectx", 1),
        ("one path, DCQCN of HPCC's ns-3", "ecmp", "dcqcn", 1),
        ("16 QPs, the same", "ecmp", "dcqcn", 16),
        ("sprayed, the same", "spray", "dcqcn", 1),
    )
    lines = ["| step | mean_flow | collective | completion | busbw |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name, routing, cc, qps in steps_:
        work = traffic.model_copy(update={"qps": qps})
        result = api.simulate(fabric, work, routing=routing, cc=cc)
        e = result.efficiency
        lines.append(
            f"| {name} | {e.mean_flow:.3f} | {e.collective:.3f} | {result.completion_s * 1e3:.0f} ms |"
            f" {(result.busbw or 0) / 1e9:.0f} GB/s |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def permutation() -> list[str]:
    """Run 1,024 hosts with 2 MB each under DCQCN, in CPU seconds, against a packet simulator.

    The packet simulator's CPU seconds are those that the stored runs state (one core, HPCC's ns-3, 100G,
    1 kB packets). Same case: its permutation on a fat tree with k = 8 through this engine. Scaled: its
    CPU seconds grow with packets times links, which is what it does for each.
    """
    stored = {run.name: run for run in read_runs(PACKET_RUNS)}
    lines = ["| case | packet simulator | here | times faster |", "| --- | ---: | ---: | ---: |"]
    hops = 0.0
    for name, seconds in PACKET_CPU_S.items():
        run = stored[name]
        ours = _best_cpu(lambda run=run: run_engine(run))  # type: ignore[misc]
        n = len(run.demand.size)
        label = f"{name}: {n} flows of {run.demand.size.mean() / 1e6:.0f} MB, 1 kB packets"
        lines.append(f"| {label} | {seconds:.1f} s | {ours:.3f} s | {seconds / ours:.0f} |")
        if name == "c_k8_s1_dcqcn":
            hops = float(run.demand.size @ np.diff(run.paths.ptr)) / seconds  # bytes x links a second
    fabric = api.load_fabric("fat-tree-k8", overrides={"k": "16", "hosts.nic_speed": "100G"})
    traffic = api.load_traffic("permutation-64mib", overrides={"size": "2MB"})
    for mtu in (1024, 4096):
        result = api.simulate(fabric, traffic, cc="dcqcn", mtu=mtu)
        ours = _best_cpu(lambda mtu=mtu: api.simulate(fabric, traffic, cc="dcqcn", mtu=mtu))  # type: ignore[misc]
        load = float(result.scenario.demand.size.sum()) * LINKS_K16
        theirs = load / hops * 1024 / mtu
        assert result.congestion is not None
        events = f"{result.congestion.events:,} events"
        label = f"{len(result.rate):,} flows of 2 MB, k = 16, {mtu} B packets, {events}"
        lines.append(f"| {label} | {theirs:.1f} s (scaled) | {ours:.3f} s | {theirs / ours:.0f} |")
    return lines


def _best_cpu(run: Callable[[], object]) -> float:
    """Return the least CPU seconds of some runs, the first left out: it compiles."""
    run()
    best = np.inf
    for _ in range(BEST_OF):
        begun = time.process_time()
        run()
        best = min(best, time.process_time() - begun)
    return float(best)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("errors", "steps", "scale", "cluster", "permutation"))
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    made = {"errors": errors, "steps": steps, "scale": scale, "cluster": cluster, "permutation": permutation}[
        asked.what
    ]
    text = "\n".join(made()) + "\n"
    if asked.output is None:
        print(text, end="")
    else:
        asked.output.write_text(text)


if __name__ == "__main__":
    main()
