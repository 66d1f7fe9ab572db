"""Topologies as fnss 0.9.1 makes them, stored.

``python -m tests.against.fnss_vectors`` writes them to ``tests/data/fnss`` where fnss is installed; the
README there has the format. With the files stored the comparison needs no fnss.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "data" / "fnss"
FORMAT = "fnss-vector/1"

#: File to fnss's function, its arguments, and the same fabric as a spec of netplan's.
CASES: dict[str, tuple[str, tuple[int, ...], str]] = {
    **{
        f"fat-tree-k{k}": ("fat_tree_topology", (k,), f"{{name: x, kind: fat-tree, k: {k}}}")
        for k in (4, 8, 16)
    },
    # n_core switches, n_edge switches on each of them, n_hosts on each of those: K(n_core, n_edge) and hosts.
    **{
        f"two-tier-{core}-{edge}-{hosts}": (
            "two_tier_topology",
            (core, edge, hosts),
            (
                f"{{name: x, kind: leaf-spine, radix: 64, hosts: {{count: {edge * hosts}, gpus: 1}},"
                f" leaf: {{downlinks: {hosts}, uplinks: {core}}}, spine: {{count: {core}}}}}"
            ),
        )
        for core, edge, hosts in ((2, 4, 5), (3, 5, 2), (8, 32, 16))
    },
    # Every aggregation switch on every core; n_edge edge switches on each aggregation switch alone.
    **{
        f"three-tier-{core}-{agg}-{edge}-{hosts}": (
            "three_tier_topology",
            (core, agg, edge, hosts),
            (
                f"{{name: x, kind: clos, radix: 64, hosts: {{count: {agg * edge * hosts}, gpus: 1}},"
                f" leaf: {{downlinks: {hosts}, uplinks: 1}}, pod: {{leaves: {edge}}},"
                f" spine: {{count: 1, downlinks: {edge}, uplinks: {core}}}, core: {{count: {core}}}}}"
            ),
        )
        for core, agg, edge, hosts in ((2, 3, 2, 4), (4, 8, 6, 5))
    },
}

#: Layers of fnss (``layer`` of a fat tree, ``tier`` of the others) as netplan's tiers; hosts have neither.
TIERS = {"host": 0, "leaf": 0, "edge": 1, "aggregation": 2, "core": 3}


def make_vector(name: str) -> dict[str, Any]:
    """Run fnss: nodes by tier, and edges."""
    fnss = importlib.import_module("fnss")  # not needed to test
    function, arguments, _ = CASES[name]
    graph = getattr(fnss, function)(*arguments)
    two = function == "two_tier_topology"
    tiers = []
    for node in sorted(graph):
        data = graph.nodes[node]
        tier = 0 if data["type"] == "host" else TIERS[data.get("layer", data.get("tier"))]
        tiers.append(2 if two and tier == 3 else tier)
    edges = sorted([min(edge), max(edge)] for edge in graph.edges)
    return {
        "format": FORMAT,
        "fnss": fnss.__version__,
        "function": function,
        "arguments": list(arguments),
        "tiers": tiers,
        "edges": edges,
    }


def read_vector(name: str) -> dict[str, Any]:
    """Read a stored one."""
    data: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))
    return data


def main() -> None:
    """Write all."""
    VECTORS.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        text = json.dumps(make_vector(name), separators=(",", ":")) + "\n"
        (VECTORS / f"{name}.json").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
