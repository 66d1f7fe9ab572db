"""netplan's models against stored runs of packet-level simulators.

    ./run python benchmarks/packet_comparison.py --model engine --json out.jsonl [--only a_dcqcn ...]
    ./run python benchmarks/packet_comparison.py --page PAGE.md max-min.jsonl engine.jsonl

Runs every stored run (tests/data/packet, or folders of files of that form) through a model and prints the
table per simulator, scenario and protocol; `--json` keeps the figures of each run, and runs that it has
already are not run again. `--page` puts the tables of two such files, of max-min and of the engine, into
a page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from netplan.report.packet_comparison import comparison_from_dict, comparison_table, comparison_to_dict
from netplan.report.tables import render_tables
from netplan.simulate.reference.comparison import (
    RunComparison,
    by_kind,
    by_protocol,
    by_simulator,
    summarise,
)
from netplan.simulate.reference.models import MODELS
from netplan.simulate.reference.runs import read_runs

STORED = Path(__file__).parents[1] / "tests" / "data" / "packet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="folders of reference runs; with --page, files of --json")
    parser.add_argument("--model", choices=sorted(MODELS), default="max-min")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of runs")
    parser.add_argument("--simulator", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="keep the figures of each run here")
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of run, not a scenario")
    parser.add_argument("--most", type=float, default=1e9, help="not what took the simulator more seconds")
    parser.add_argument("--page", type=Path, help="put the tables of two --json files into this page")
    args = parser.parse_args()
    if args.page:
        update_page(args.page, *(comparisons_of(Path(name)) for name in args.files))
        return
    comparisons = run_all(args)
    rows = summarise(comparisons, by_kind if args.kinds else by_protocol)
    print(render_tables([comparison_table(rows, f"{args.model} against packet simulators")], "table"))


def run_all(args: argparse.Namespace) -> list[RunComparison]:
    """Run what was asked for and is not known yet."""
    model = MODELS[args.model]
    known: dict[str, Any] = {}
    if args.json and args.json.exists():
        known = {row["name"]: row for row in map(json.loads, args.json.read_text().splitlines())}
    comparisons = []
    for run in (run for folder in args.files or [STORED] for run in read_runs(folder)):
        if args.only and not any(part in run.name for part in args.only):
            continue
        if args.simulator and run.simulator not in args.simulator:
            continue
        if not model.fits(run) or (run.measured.cpu or 0) > args.most:
            continue
        if run.name not in known:
            begun = time.perf_counter()
            row = comparison_to_dict(model.compare(run))
            row["seconds"] = round(time.perf_counter() - begun, 3)
            row["simulator_seconds"] = run.measured.cpu
            known[run.name] = row
            if args.json:
                with args.json.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            sys.stderr.write(f"{run.name}: {row['seconds']} s\n")
        comparisons.append(comparison_from_dict(known[run.name]))
    return comparisons


def comparisons_of(file: Path) -> list[RunComparison]:
    """Read the figures that --json kept."""
    return [comparison_from_dict(json.loads(line)) for line in file.read_text().splitlines()]


def update_page(page: Path, max_min: list[RunComparison], engine: list[RunComparison]) -> None:
    """Replace the tables between the page's markers."""
    tables = {
        "max-min": summarise(max_min, by_simulator),
        "engine": summarise(engine, by_simulator),
        "scenarios": summarise(engine, by_protocol),
    }
    text = page.read_text()
    for name, rows in tables.items():
        made = render_tables([comparison_table(rows)], "md").strip()
        before, _, rest = text.partition(f"<!-- table {name} -->\n")
        _, mark, after = rest.partition("<!-- end -->")
        text = f"{before}<!-- table {name} -->\n\n{made}\n\n{mark}{after}"
    page.write_text(re.sub(r"\n{3,}", "\n\n", text))


if __name__ == "__main__":
    main()
