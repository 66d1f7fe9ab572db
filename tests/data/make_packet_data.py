"""Make `tests/data/packet/*.json.gz` from a folder of packet-simulator records.

    ./run python tests/data/make_packet_data.py FOLDER [tests/data/packet]

FOLDER holds the records as their authors keep them; `netplan.simulate.reference.records` reads them, and
`tests/data/packet/README.md` describes what is written.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from netplan.simulate.reference.records import convert

__all__ = ["convert", "write"]


def write(made: dict[str, dict[str, Any]], out: Path) -> None:
    """Write one file per simulator: the same bytes for the same records."""
    for key, content in made.items():
        text = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
        (out / f"{key}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def main() -> None:
    """Convert the folder named on the command line."""
    here = Path(__file__).parent / "packet"
    left_out: list[tuple[str, str]] = []
    made = convert(Path(sys.argv[1]), left_out=left_out)
    write(made, Path(sys.argv[2]) if len(sys.argv) > 2 else here)
    for key, content in made.items():
        sys.stderr.write(f"{key}: {len(content['runs'])} runs, {len(content['demands'])} demands\n")
    sys.stderr.writelines(f"left out: {name}: {reason}\n" for name, reason in left_out)


if __name__ == "__main__":
    main()
