"""netplan's models against runs of packet-level simulators, stored ones or one's own.

    ./run python benchmarks/packet_comparison.py --model engine-packets [--data DIR] [--only a_dcqcn ...]
    ./run python benchmarks/packet_comparison.py --model engine-packets --json out.jsonl
    ./run python benchmarks/packet_comparison.py --claims claims.json
    ./run python benchmarks/packet_comparison.py --page PAGE.md max-min.jsonl engine.jsonl ... claims.json

Runs every record (of tests/data/packet, or of the folder --data: records as the simulators' users keep them,
or netplan's own form) through a model and prints the table per simulator, scenario and protocol, and which
records were left out and why; `--json` keeps the figures of each run, and runs that it has already are not
run again. `--claims` runs those that bear on what no fixed rule gives, over three seeds. `--page` puts the
tables of such files into a page of the documentation; more than one of the engine: by several seeds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netplan.errors import NetplanError
from netplan.report.packet_comparison import (
    claims_table,
    comparison_from_dict,
    comparison_table,
    comparison_to_dict,
    left_out_table,
)
from netplan.report.tables import render_tables
from netplan.simulate.reference.claims import Claim, claims
from netplan.simulate.reference.comparison import (
    RunComparison,
    by_kind,
    by_protocol,
    by_simulator,
    summarise,
)
from netplan.simulate.reference.models import MODELS, compare_records, load_records

if TYPE_CHECKING:
    from netplan.simulate.reference.runs import ReferenceRun

STORED = Path(__file__).parents[1] / "tests" / "data" / "packet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="with --page: files of --json and of --claims")
    parser.add_argument("--data", type=Path, default=STORED, help="folder of records")
    parser.add_argument("--model", choices=sorted(MODELS), default="max-min")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of runs")
    parser.add_argument("--simulator", nargs="*", default=[])
    parser.add_argument("--protocol", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="keep the figures of each run here")
    parser.add_argument("--kinds", action="store_true", help="a row for each kind of run, not a scenario")
    parser.add_argument("--most", type=float, default=1e9, help="not what took the simulator more seconds")
    parser.add_argument("--page", type=Path, help="put the tables of two --json files into this page")
    parser.add_argument("--claims", type=Path, help="keep what no fixed rule gives here")
    args = parser.parse_args()
    try:
        if args.page:
            first, *engine, last = (Path(name) for name in args.files)
            seeds = [one for file in engine for one in comparisons_of(file)]
            update_page(args.page, comparisons_of(first), seeds, claims_of(last))
            return
        if args.claims:
            records = load_records(args.data)
            model = MODELS["engine-packets"]
            found = claims((run for run in records.runs if model.fits(run)), model.answer)
            args.claims.write_text(json.dumps([asdict(one) for one in found]))
            print(render_tables([claims_table(found)], "table"))
            return
        comparisons, left_out = run_all(args)
    except NetplanError as error:
        parser.exit(2, f"{error}\n")
    rows = summarise(comparisons, by_kind if args.kinds else by_protocol)
    tables = [comparison_table(rows, f"{args.model} against packet simulators")]
    if left_out:
        tables.append(left_out_table(left_out))
    print(render_tables(tables, "table"))


def run_all(args: argparse.Namespace) -> tuple[list[RunComparison], list[tuple[str, str]]]:
    """Run what was asked for and is not known yet; return all of it, and what was left out and why."""
    known: dict[tuple[str, str], Any] = {}
    if args.json and args.json.exists():
        rows = map(json.loads, args.json.read_text().splitlines())
        known = {(row["simulator"], row["name"]): row for row in rows}
    records = load_records(args.data)
    cost = {(run.simulator, run.name): run.measured.cpu for run in records.runs}
    asked: list[tuple[str, str]] = []

    def wanted(run: ReferenceRun) -> bool:
        fits = (
            (not args.only or any(part in run.name for part in args.only))
            and (not args.simulator or run.simulator in args.simulator)
            and (not args.protocol or run.protocol in args.protocol)
            and (run.measured.cpu or 0) <= args.most
        )
        if fits:
            asked.append((run.simulator, run.name))
        return fits and (run.simulator, run.name) not in known

    begun = time.perf_counter()

    def keep(one: RunComparison) -> None:
        nonlocal begun
        row = comparison_to_dict(one)
        row["seconds"] = round(time.perf_counter() - begun, 3)
        row["simulator_seconds"] = cost[one.simulator, one.name]
        known[one.simulator, one.name] = row
        if args.json:
            with args.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
        sys.stderr.write(f"{one.name}: {row['seconds']} s\n")
        begun = time.perf_counter()

    found = compare_records(records, args.model, seed=args.seed, wanted=wanted, progress=keep)
    return [comparison_from_dict(known[name]) for name in asked if name in known], list(found.left_out)


def comparisons_of(file: Path) -> list[RunComparison]:
    """Read the figures that --json kept."""
    return [comparison_from_dict(json.loads(line)) for line in file.read_text().splitlines()]


def claims_of(file: Path) -> list[Claim]:
    """Read what --claims kept."""
    return [Claim(**row) for row in json.loads(file.read_text())]


def update_page(
    page: Path, max_min: list[RunComparison], engine: list[RunComparison], found: list[Claim]
) -> None:
    """Replace the tables between the page's markers."""
    tables = {
        "max-min": comparison_table(summarise(max_min, by_simulator)),
        "engine": comparison_table(summarise(engine, by_simulator)),
        "scenarios": comparison_table(summarise(engine, by_protocol)),
        "claims": claims_table(found),
    }
    text = page.read_text()
    for name, table in tables.items():
        made = render_tables([table], "md").strip()
        before, _, rest = text.partition(f"<!-- table {name} -->\n")
        _, mark, after = rest.partition("<!-- end -->")
        text = f"{before}<!-- table {name} -->\n\n{made}\n\n{mark}{after}"
    page.write_text(re.sub(r"\n{3,}", "\n\n", text))


if __name__ == "__main__":
    main()
