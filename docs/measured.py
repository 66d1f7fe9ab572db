"""Published measurements of collectives against what netplan makes of the same hosts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from netplan import api
from netplan.spec.text import parse_yaml
from netplan.traffic.nccl import model
from netplan.units import format_size

#: The tables, in netplan's own form.
DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "measurements" / "tables.yaml"

#: Rows from here on are held to 5 % [bytes].
LARGE = 2**30

#: Rows from here on count in the mean of 10 % [bytes].
MEDIUM = 2**23

#: Routing without contention, by fabric: one switch, so that nothing is chosen.
ROUTING = {"roce": "spray", "infiniband": "ib-adaptive", "scale-up": "spray"}


@dataclass(frozen=True)
class Row:
    """A measured size beside the computed one."""

    size: int
    measured: float
    """Bus bandwidth [GB/s]."""
    computed: float
    algorithm: str
    protocol: str

    @property
    def error(self) -> float:
        """Relative error of the computed one."""
        return self.computed / self.measured - 1


@dataclass(frozen=True)
class Compared:
    """A published table beside the computed one."""

    entry: dict[str, Any]
    rows: tuple[Row, ...]

    @property
    def is_sound(self) -> bool:
        """Whether the source reports no fault."""
        return str(self.entry["state"]) == "sound"

    @property
    def mean_error(self) -> float:
        """Mean of the errors' sizes."""
        return float(np.mean([abs(row.error) for row in self.rows]))


@cache
def data() -> dict[str, Any]:
    """Return the file of measurements."""
    return dict(parse_yaml(DATA.read_text(encoding="utf-8"), str(DATA)).data)


@cache
def compared() -> tuple[Compared, ...]:
    """Run every table on an ideal fabric of its hosts, as `netplan simulate cluster … --sizes` does."""
    return tuple(_compare(entry) for entry in data()["tables"])


def _compare(entry: dict[str, Any]) -> Compared:
    """Run one table."""
    sets = {f"hosts.{key}": str(value) for key, value in entry["hosts"].items()}
    fabric = api.load_fabric("cluster", overrides=sets)
    spec = api.load_traffic(
        "all-reduce-1gib",
        overrides={"algorithm": entry["algorithm"], "protocol": "auto", "gpu": entry["gpu"]},
    )
    points = entry["points"]
    sweep = api.sweep(fabric, spec, [point[0] for point in points], routing=ROUTING[entry["fabric"]])
    rows = [
        Row(size, float(busbw), (row.busbw or 0.0) / 1e9, row.algorithm or "", row.protocol or "")
        for (size, busbw), row in zip(points, sweep.rows, strict=True)
    ]
    return Compared(entry, tuple(rows))


def ratios() -> tuple[list[int], list[int], np.ndarray, np.ndarray]:
    """Return (sizes, hosts, published, computed) efficiencies of ring all-reduces of Alibaba's hosts.

    Computed is NCCL's model for rings, Simple: latency + bytes over NICs at 48 GB/s; over 48.5 GB/s.
    """
    found = data()["ratios"]
    hosts = found["hosts"]
    sizes = [row[0] for row in found["rows"]]
    published = np.array([row[1:] for row in found["rows"]], float)
    computed = np.empty_like(published)
    for j, k in enumerate(hosts):
        cluster = model.Cluster(k, 8 * k, 8, 50.0, 370.8, "hopper")
        fixed = model.latency(cluster, "all-reduce", "ring", "simple") * 1e-6
        for i, size in enumerate(sizes):
            sent = 2 * (8 * k - 1) / (8 * k) * size
            computed[i, j] = sent / (fixed + sent / (8 * 48e9)) / (8 * 48.5e9)
    return sizes, hosts, published, computed


_HEAD = """\
# Measured collectives

Published tables of nccl-tests beside what netplan computes for the same hosts under one switch without
contention (`cluster`), with NCCL's choice of algorithm and protocol (`--algo auto`) unless the run states
one. Bus bandwidth in GB/s out of place; errors are computed over measured, less 1. The data, with the source
of every entry, are in `tests/data/measurements/tables.yaml`; a test holds the summary below.

A measured cluster of your own, in one line:

```sh
netplan simulate cluster all-reduce-1gib --set hosts.count=12 --set hosts.nics=8 --set hosts.nic_speed=400G \\
  --set hosts.scale_up=450GB/s --set traffic.gpu=h100 --algo auto --sizes 512M:8G --routing ib-adaptive
```

NCCL's version, PCIe, BIOS and cables of a run are not modelled. A run that is far below its row here has
something in its way that this page does not know; `netplan simulate` on the real fabric says what of it the
network could be.
"""


def page() -> str:
    """Return the page."""
    lines = [_HEAD, "## Summary", ""]
    sound = [each for each in compared() if each.is_sound]
    network = [each for each in sound if each.entry["fabric"] != "scale-up"]
    large = [row for each in network for row in each.rows if row.size >= LARGE]
    within = sum(abs(row.error) <= 0.05 for row in large)  # noqa: PLR2004 -- percent
    stated = [each for each in sound if each.entry["stated"]]
    medium = [abs(row.error) for each in stated for row in each.rows if row.size >= MEDIUM]
    sizes, hosts, published, computed = ratios()
    ratio = np.abs(computed / published - 1)
    is_large = np.array(sizes) >= LARGE
    lines += [
        f"* RoCE and InfiniBand, sound runs, 1 GiB and more: {within} of {len(large)} rows within 5 %.",
        (
            f"* Runs whose algorithm is stated, 8 MiB and more: mean error {np.mean(medium):.1%} over "
            f"{len(medium)} rows."
        ),
        (
            f"* Alibaba's ring efficiencies, 2 to 128 hosts: mean error {ratio[is_large].mean():.1%} from "
            f"1 GiB up, {ratio.mean():.1%} from 16 MiB up."
        ),
        "",
        "Rows beyond 5 %, and why:",
        "",
    ]
    for each in network:
        beyond = [row for row in each.rows if row.size >= LARGE and abs(row.error) > 0.05]  # noqa: PLR2004
        if beyond:
            worst = max(beyond, key=lambda row: abs(row.error))
            reason = _REASONS.get(each.entry["id"], "not explained")
            count = f"{len(beyond)} row{'s' if len(beyond) > 1 else ''}"
            lines.append(f"* `{each.entry['id']}`: {count}, up to {worst.error:+.1%}: {reason}")
    for title, part in (
        ("RoCE and InfiniBand", network),
        ("One scale-up domain", [each for each in sound if each.entry["fabric"] == "scale-up"]),
    ):
        lines += ["", f"## {title}", "", *_table(part)]
    lines += [
        "",
        "## Runs in trouble",
        "",
        "Their sources report a fault, or they have 0.4 to 0.9 of what their kind has elsewhere. *Over*",
        "*computed* is what is left of the bandwidth that the hosts could have.",
        "",
        "| run | hosts | size | algorithm | measured | computed | over computed | note |",
        "|---|---|---:|---|---:|---:|---:|---|",
    ]
    for each in compared():
        if not each.is_sound:
            row = max(each.rows, key=lambda row: (row.measured, row.size))
            lines.append(
                f"| [{each.entry['id']}]({_address(each)}) | {_hosts(each)} | {format_size(row.size)} "
                f"| {row.algorithm} {row.protocol} | {row.measured:.1f} | {row.computed:.1f} "
                f"| {row.measured / row.computed:.2f} | {each.entry.get('note', '')} |"
            )
    lines += [
        "",
        "## Ring efficiency over hosts and sizes",
        "",
        (
            "Bus bandwidth over 48.5 GB/s a NIC, computed / published. Source: "
            f"{data()['ratios']['source']}; {data()['ratios']['note']}."
        ),
        "",
        "| size | " + " | ".join(f"{k} hosts" for k in hosts) + " |",
        "|---:|" + "---:|" * len(hosts),
    ]
    for size, one, two in zip(sizes, computed, published, strict=True):
        cells = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in zip(one, two, strict=True))
        lines.append(f"| {format_size(size)} | {cells} |")
    return "\n".join(lines) + "\n"


_REASONS = {
    "h100-roce-5-tree-thread": "one figure whose size is not said.",
    "a100-hdr-2-thread": "one figure whose size is not said.",
    "v100-edr-8-thread": "one figure whose size is not said; EDR in PCIe 3.0 hosts, 10.9 of 12.5 GB/s a NIC.",
}


def _table(part: list[Compared]) -> list[str]:
    """Return rows of a table for some runs."""
    lines = [
        "| run | hosts | size | algorithm | measured | computed | error |",
        "|---|---|---:|---|---:|---:|---:|",
    ]
    for each in part:
        mark = "" if each.entry["stated"] else "*"
        for place, row in enumerate(each.rows):
            name = f"[{each.entry['id']}]({_address(each)})" if not place else ""
            lines.append(
                f"| {name} | {_hosts(each) if not place else ''} | {format_size(row.size)} "
                f"| {row.algorithm} {row.protocol}{mark} | {row.measured:.1f} | {row.computed:.1f} "
                f"| {row.error:+.1%} |"
            )
    return [*lines, "", "\\* not stated by the source: NCCL's choice by its model, or taken to be so."]


def _hosts(each: Compared) -> str:
    hosts = each.entry["hosts"]
    return f"{hosts['count']} x {hosts['gpus']} {each.entry['gpu']}, {hosts['nics']} x {hosts['nic_speed']}"


def _address(each: Compared) -> str:
    """Return where the source is on the web: a repository at its commit, or a thread."""
    first = str(each.entry["source"]).replace("NVIDIA GTC24 S62129, slide, image in ", "").split()[0]
    return first.replace("@", "/tree/") if "/issues/" not in first else first
