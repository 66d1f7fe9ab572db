"""Fabrics on which netplan's InfiniBand routing is held against OpenSM's tables, and stored tables.

``python -m tests.against.opensm_vectors`` runs OpenSM on each and writes its tables to
``tests/data/opensm``; the README there has the format. With the tables stored, the comparison
needs no program: figures of both sides are computed from paths.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from netplan.kernels.max_min import solve_max_min
from tests.against.opensm import Engine, Subnet, Tables, lay_tables
from tests.contracts.making import make_fabric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from netplan.fabric import Fabric

VECTORS = Path(__file__).parents[1] / "data" / "opensm"
FORMAT = "opensm-vector/1"
ENGINES: tuple[Engine, ...] = get_args(Engine)

#: Gives the paths between endpoints (sources, destinations) as CSR: row pointer, links in path order.
Router = Callable[["NDArray[np.int64]", "NDArray[np.int64]"], "tuple[NDArray[np.int64], NDArray[np.int64]]"]

_SITE = (
    "{{name: {0}, position: [{1} km, 0 km], fabric: {{name: {0}, kind: rail-optimized, "
    "hosts: {{count: 8, gpus: 4, nic_speed: 400G}}, radix: 16, spine: {{count: 4}}}}}}"
)
_RING = ("a", "b", "c", "d")


def _tree_without(k: int, lost: tuple[int, ...]) -> str:
    """Return a fat-tree as a custom fabric without some cables between switches, by their place."""
    tree = make_fabric(f"kind: fat-tree\nk: {k}")
    name = [tree.node_name(i) for i in range(tree.n_nodes)]
    switches = range(tree.n_hosts, tree.n_nodes)
    cables = [c for c in range(tree.links.n_cables) if c - tree.n_endpoints not in lost]
    ends = [(name[tree.links.src[2 * c]], name[tree.links.dst[2 * c]]) for c in cables]
    return "\n".join(
        [
            "kind: custom",
            "hosts:",
            *(f"  - {{name: {host}, gpus: 1}}" for host in name[: tree.n_hosts]),
            "switches:",
            *(f"  - {{name: {name[i]}, tier: {tree.nodes.tier[i]}, radix: {k}}}" for i in switches),
            "links:",
            *(f"  - {{a: {a}, b: {b}, speed: 400G, length: 2 m}}" for a, b in ends),
        ]
    )


def _metro_ring() -> str:
    """Return four sites on a ring."""
    spans = [
        f"  - {{a: {a}, b: {b}, length: 20 km}}" for a, b in zip(_RING, _RING[1:] + _RING[:1], strict=True)
    ]
    sites = [f"  - {_SITE.format(name, 0).replace('position: [0 km, 0 km], ', '')}" for name in _RING]
    metro = "metro: {radix: 16, switches: 2, link_speed: 400G, oversubscription: 4}"
    return "\n".join(["kind: metro", "sites:", *sites, "spans:", *spans, metro])


#: Direct networks, one of each family and one with parallel cables.
DIRECT = {
    "dragonfly-72": (
        "kind: dragonfly\nrouter: {endpoints: 2, global_links: 2}\ngroup: {routers: 4}\nhosts: {gpus: 1}"
    ),
    "dragonfly-plus-48": (
        "kind: dragonfly-plus\nleaf: {endpoints: 4}\nspine: {global_links: 2}\n"
        "group: {leaves: 3, spines: 3}\ngroups: 4\nhosts: {gpus: 1}"
    ),
    "slim-fly-50": "kind: slim-fly\nq: 5\nrouter: {endpoints: 2}\nhosts: {gpus: 1}",
    "torus-48": "kind: torus\ndims: [4, 4, 3]\nrouter: {endpoints: 1}\nhosts: {gpus: 1}",
    "hyperx-48": "kind: hyperx\ndims: [4, 4]\nbundles: [1, 2]\nrouter: {endpoints: 3}\nhosts: {gpus: 1}",
}


class Case(NamedTuple):
    """A fabric, and how its subnet is numbered."""

    spec: str
    """YAML."""
    engines: tuple[Engine, ...] = ENGINES
    seed: int | None = None
    """Deals out port numbers and GUIDs at random; None for those that follow the plan."""


@cache
def cases() -> dict[str, Case]:
    """Return the fabrics by name. ``-any-ports``: cabled to ports that follow no plan."""
    full = {
        "leaf-spine-16": "kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {count: 4}",
        "leaf-spine-256": "kind: leaf-spine\nradix: 32\nhosts: {count: 256, gpus: 1}\nspine: {count: 16}",
        "leaf-spine-2to1": (
            "kind: leaf-spine\nradix: 24\nhosts: {count: 128, gpus: 1}\n"
            "leaf: {downlinks: 16, uplinks: 8}\nspine: {count: 8}"
        ),
        "fat-tree-k4": "kind: fat-tree\nk: 4",
        "fat-tree-k8": "kind: fat-tree\nk: 8",
        "rail-64": "kind: rail-optimized\nradix: 16\nhosts: {count: 16, gpus: 4}\nspine: {count: 4}",
        # 128 cables between leaves and spines come first, then 128 between spines and cores.
        "fat-tree-k8-lost-1": _tree_without(8, (181,)),
        "fat-tree-k8-lost-8": _tree_without(8, (5, 38, 77, 110, 149, 181, 202, 255)),
        "metro-2-sites": (
            f"kind: metro\nsites:\n  - {_SITE.format('east', 0)}\n  - {_SITE.format('west', 30)}\n"
            "metro: {radix: 16, switches: 2, link_speed: 400G, oversubscription: 2}"
        ),
        "metro-ring": _metro_ring(),
    }
    found = {name: Case(spec) for name, spec in full.items()}
    for name in ("fat-tree-k8-lost-1", "fat-tree-k8-lost-8"):
        found[name] = Case(full[name], ("ftree", "updn"))
    # Not trees: no engine for trees takes them, and OpenSM's default is the one to compare with.
    found |= {name: Case(spec, ("minhop",)) for name, spec in DIRECT.items()}
    for name in ("leaf-spine-256", "fat-tree-k8", "rail-64"):
        found[f"{name}-any-ports"] = Case(full[name], ("ftree", "updn"), seed=1)
    return found


@cache
def subnet_of(name: str) -> Subnet:
    """Build the fabric of a case and number it."""
    case = cases()[name]
    return Subnet.of(make_fabric(case.spec), guid_seed=case.seed, port_seed=case.seed)


class Figures(NamedTuple):
    """What static paths are worth."""

    shift: NDArray[np.int64]
    """(n - 1,) for each shift permutation, most flows on a link."""
    bisection: NDArray[np.float64]
    """(samples,) mean over pairs of 1 / (most flows on a link of the path), random bisections."""
    max_min: NDArray[np.float64]
    """(samples / 4,) mean max-min rate over line rate, random permutations."""

    def summary(self) -> dict[str, float]:
        """Return the figures that a table shows."""
        return {
            "shifts_without_contention": round(float((self.shift == 1).mean()), 4),
            "mean_shift_congestion": round(float(self.shift.mean()), 4),
            "worst_shift_congestion": int(self.shift.max()),
            "effective_bisection": round(float(self.bisection.mean()), 4),
            "permutation_max_min": round(float(self.max_min.mean()), 4),
        }


def figures(fabric: Fabric, paths: Router, order: ArrayLike | None = None, *, samples: int = 100) -> Figures:
    """Compute the figures of a routing: the same shifts, bisections and permutations for all."""
    n, n_links = fabric.n_endpoints, len(fabric.links)
    ranks = np.arange(n) if order is None else np.asarray(order)

    def busiest(src: NDArray[np.int64], dst: NDArray[np.int64]) -> NDArray[np.int64]:
        ptr, link = paths(src, dst)
        used = np.bincount(link, minlength=n_links)
        return np.maximum.reduceat(used[link], ptr[:-1])

    def rates(src: NDArray[np.int64], dst: NDArray[np.int64]) -> NDArray[np.float64]:
        ptr, link = paths(src, dst)
        rate = solve_max_min(fabric.links.capacity, ptr, link, np.ones(len(link))).rate
        return np.asarray(rate / np.minimum(fabric.endpoint_rate[src], fabric.endpoint_rate[dst]))

    bisection, max_min = [], []
    for seed in range(samples):
        drawn = np.random.default_rng(seed).permutation(n)
        half, other = np.split(drawn[: n // 2 * 2], 2)
        bisection.append((1 / busiest(half, other)).mean())
        if seed % 4 == 0:
            src = np.flatnonzero(drawn != np.arange(n))
            max_min.append(rates(src, drawn[src]).mean())
    shift = [busiest(ranks, np.roll(ranks, -by)).max() for by in range(1, n)]
    return Figures(np.array(shift), np.array(bisection), np.array(max_min))


def followed(fabric: Fabric, paths: Router) -> NDArray[np.int64]:
    """Return the table entries that packets meet: (n_nodes, n_endpoints) links, -1 where none comes by.

    All pairs of endpoints are followed. Two routings with equal entries send every packet alike.
    """
    n = fabric.n_endpoints
    src, dst = np.divmod(np.arange(n * n), n)
    src, dst = src[src != dst], dst[src != dst]
    ptr, link = paths(src, dst)
    entry = np.full((fabric.n_nodes, n), -1, np.int64)
    entry[fabric.links.src[link], np.repeat(dst, np.diff(ptr))] = link
    entry[fabric.nodes.tier == 0] = -1  # a host has one way out
    return entry


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def pack(subnet: Subnet, tables: Tables) -> list[str]:
    """Write a table per switch: for each endpoint its port in base 36, 0 for none."""
    port = np.where(tables.forward >= 0, subnet.port[tables.forward], 0)
    return ["".join(_DIGITS[p] for p in port[node].tolist()) for node in subnet.switch_guid]


def unpack(subnet: Subnet, engine: str, rows: list[str], order: list[int] | None) -> Tables:
    """Read tables that `pack` wrote."""
    fabric = subnet.fabric
    forward = np.full((fabric.n_nodes, fabric.n_endpoints), -1, np.int64)
    for node, row in zip(subnet.switch_guid, rows, strict=True):
        port = np.array([_DIGITS.index(digit) for digit in row])
        forward[node, port > 0] = subnet.ports_in_order(node)[port[port > 0] - 1]
    return Tables(
        fabric, engine, forward, np.arange(fabric.n_endpoints) if order is None else np.array(order)
    )


@cache
def load(name: str) -> dict[str, Any]:
    """Read the vector of a case."""
    vector: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))
    assert vector["format"] == FORMAT
    return vector


@cache
def stored(name: str, engine: Engine) -> Tables:
    """Return the tables that OpenSM laid for a case when its vector was written."""
    found = load(name)["engines"][engine]
    if "as" in found:
        return stored(name, found["as"])
    return unpack(subnet_of(name), engine, found["tables"], found.get("order"))


def write(name: str, version: str) -> None:
    """Run OpenSM on a case and write its vector; tables equal to another engine's are not repeated."""
    subnet = subnet_of(name)
    engines: dict[str, Any] = {}
    for engine in cases()[name].engines:
        with tempfile.TemporaryDirectory() as folder:
            laid = lay_tables(subnet, engine, Path(folder))
        assert laid.engine == engine, f"{name}: {engine} gave up, {laid.engine} took its place"
        rows = pack(subnet, laid)
        engines[engine] = {"figures": figures(subnet.fabric, laid.paths, laid.order).summary()}
        same = [other for other, found in engines.items() if found.get("tables") == rows]
        if same and engine != "ftree":
            engines[engine]["as"] = same[-1]
            continue
        if (laid.order != np.arange(len(laid.order))).any():
            engines[engine]["order"] = laid.order.tolist()
        engines[engine]["tables"] = rows
    head = {"format": FORMAT, "opensm": version, "endpoints": subnet.fabric.n_endpoints}
    text = json.dumps({**head, "seed": cases()[name].seed, "engines": engines}, indent=0)
    (VECTORS / f"{name}.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    VECTORS.mkdir(exist_ok=True)
    for case_name in cases():
        write(case_name, sys.argv[1])
