"""Finish times of netplan's engine against those that SimGrid computed.

The stored vectors (``tests/data/simgrid``) name shape, flows, model and routing rule; here the same
trees are built from specs, the flows take ``ib-static`` (d-mod-k, the same rule), and the completion
engine runs them. SimGrid lets a flow wait for its path's latency before it uses bandwidth, so flows
start then. Numbers in the files have 9 digits: 1e-8 is what agreement means for full files, which
is far finer than the 1 % that would do.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.simgrid_peer import rule_links, traffic
from netplan.kernels.completion import complete
from netplan.routing import route_flows
from tests.contracts.making import INFINIBAND, make_fabric, make_flows, run

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "data" / "simgrid"
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))
FULL = [name for name in NAMES if not name.startswith(("4096", "16384"))]
SUMMARIES = [name for name in NAMES if name.startswith(("4096", "16384"))]
SYSTEM_PYTHON = "/usr/bin/python3"

#: Relative: the files have 9 significant digits.
DIGITS = 1e-8


def is_plain(name: str) -> bool:
    """Whether SimGrid's weights cancel, so that its shares are max-min fair: two tiers, or no latency."""
    return name.startswith(("64", "256", "1024")) or name.endswith("no-latency")


@cache
def tree_text(shape: str) -> str:
    """Return the spec of an XGFT with one cable between any two nodes: as many uplinks as downlinks."""
    m = [int(item) for item in shape.split(";")[1].split(",")]
    if len(m) == 2:
        return (
            f"kind: leaf-spine\nradix: {2 * max(m)}\nhosts: {{count: {m[0] * m[1]}, gpus: 1}}\n"
            f"leaf: {{downlinks: {m[0]}, uplinks: {m[0]}}}\nspine: {{count: {m[0]}}}\n"
        )
    return (
        f"kind: clos\nradix: {2 * max(m)}\nhosts: {{count: {m[0] * m[1] * m[2]}, gpus: 1}}\n"
        f"leaf: {{downlinks: {m[0]}, uplinks: {m[0]}}}\npod: {{leaves: {m[1]}}}\n"
        f"spine: {{count: {m[0]}, downlinks: {m[1]}, uplinks: {m[1]}}}\ncore: {{count: {m[0] * m[1]}}}\n"
    )


@dataclass(frozen=True)
class Case:
    """A vector with the flows that belong to it."""

    vector: dict[str, Any]
    destinations: list[int]
    sizes: list[int]


def load(name: str) -> Case:
    """Read a vector; the flows of a summary are drawn anew by the peer's own generator."""
    vector = json.loads((VECTORS / f"{name}.json").read_text(encoding="ascii"))
    destinations, sizes = traffic(vector["pattern"], vector["n"], vector["bytes"], vector["seed"] or 0)
    assert vector.get("destinations", destinations) == destinations
    assert vector.get("sizes", sizes) == sizes
    return Case(vector, destinations, sizes)


def finish_times(case: Case, *, is_weighted: bool = False) -> np.ndarray:
    """Run a case: routes by ``ib-static``, a latency per link before the start, all links of one speed.

    Weighted: the rate of a flow is w = 1 / (links of its path) times a level, and the levels are max-min
    fair. So a flow counts w times on each of its links (coefficient) and moves w times its level
    (multiplicity).
    """
    v = case.vector
    fabric = make_fabric(tree_text(v["shape"]))
    routes = route_flows(fabric, make_flows(np.arange(v["n"]), case.destinations), "ib-static")
    hops = np.diff(routes.path_ptr)
    weight = 1 / hops if is_weighted else np.ones(v["n"])
    return complete(
        np.full(len(fabric.links), v["bandwidth_Bps"]),
        routes.path_ptr,
        routes.resource,
        np.repeat(weight, hops),
        np.arange(v["n"] + 1),
        np.array(case.sizes, float),
        hops * v["latency_s"],
        multiplicity=weight,
    ).finish


def check_summary(case: Case, finish: np.ndarray, tolerance: float) -> None:
    """Hold finish times against a vector's statistics."""
    v = case.vector
    assert finish.max() == pytest.approx(v["makespan_s"], rel=tolerance)
    assert finish.mean() == pytest.approx(v["mean_finish_s"], rel=tolerance)
    assert np.quantile(finish, np.arange(11) / 10) == pytest.approx(v["deciles_finish_s"], rel=tolerance)


@pytest.mark.parametrize("shape", ["2;8,8", "2;16,16", "3;8,8,8"])
def test_same_links_are_shared(shape):
    """Two paths share a link here exactly when they share one by the peer's rule: all pairs of hosts.

    The rule's names and netplan's link ids correspond one to one.
    """
    fabric = make_fabric(tree_text(shape))
    n = fabric.n_endpoints
    src, dst = np.divmod(np.arange(n * n), n)
    src, dst = src[src != dst], dst[src != dst]
    if n > 256:  # a sample of pairs of the larger shape
        some = np.random.default_rng(0).choice(len(src), 20_000, replace=False)
        src, dst = src[some], dst[some]
    routes = route_flows(fabric, make_flows(src, dst), "ib-static")
    children = tuple(int(item) for item in shape.split(";")[1].split(","))
    name_of: dict[int, tuple[str | int, ...]] = {}
    link_of: dict[tuple[str | int, ...], int] = {}
    for row, (s, d) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        links = routes.resource[routes.path_ptr[row] : routes.path_ptr[row + 1]].tolist()
        for link, name in zip(links, rule_links(children, s, d), strict=True):
            assert name_of.setdefault(link, name) == name
            assert link_of.setdefault(name, link) == link


@pytest.mark.parametrize("name", [name for name in FULL if is_plain(name)])
def test_every_finish_time(name):
    """Where SimGrid is plain max-min: each flow's finish time, to all digits of the file."""
    case = load(name)
    np.testing.assert_allclose(finish_times(case), case.vector["finish_s"], rtol=DIGITS)
    check_summary(case, finish_times(case), DIGITS)


@pytest.mark.parametrize("name", [name for name in SUMMARIES if is_plain(name)])
def test_summaries_of_large_trees(name):
    """4,096 and 16,384 hosts on three tiers: makespan, mean and deciles, to all digits of the file."""
    case = load(name)
    check_summary(case, finish_times(case), DIGITS)


@pytest.mark.parametrize("name", [name for name in NAMES if not is_plain(name)])
def test_latency_on_three_tiers_is_a_weight_in_simgrid(name, record_property):
    """With latency, CM02 gives a flow a share in inverse proportion to the latency of its path.

    So on three tiers SimGrid is not max-min fair, and plain max-min must differ from it. Weighted by
    1 / links the engine meets the files to all digits: the weights are the whole difference.
    How much the plain rates are off is recorded: it is what a user of SimGrid's default sees.
    """
    case = load(name)
    weighted, plain = finish_times(case, is_weighted=True), finish_times(case)
    check_summary(case, weighted, DIGITS)
    if "finish_s" in case.vector:
        np.testing.assert_allclose(weighted, case.vector["finish_s"], rtol=DIGITS)
    off = np.abs(plain / weighted - 1)
    record_property("largest relative difference to plain max-min", float(off.max()))
    record_property("relative difference of the means", float(abs(plain.mean() / weighted.mean() - 1)))
    assert off.max() > 0.01
    if case.vector["pattern"] == "permutation" and "finish_s" in case.vector:
        assert abs(plain.mean() / weighted.mean() - 1) < 0.05


@pytest.mark.parametrize(
    "name", ["64-permutation-1", "1024-permutation-sizes-2", "1024-ring", "512-permutation-1-no-latency"]
)
def test_the_whole_of_simulate(name):
    """The same through specs and `simulate`, which adds latency at the end instead of the start: within 1 %.

    Cables of 1 us, switches and hosts of none, links faster by headers, so that payload has the vector's
    speed.
    """
    case = load(name)
    v = case.vector
    metres = v["latency_s"] / 5.05e-9
    speed = v["bandwidth_Bps"] * 8 / INFINIBAND
    text = tree_text(v["shape"]).replace("gpus: 1", f"gpus: 1, nic_speed: {speed / 1e9!r}G")
    kinds = ("host_leaf", "leaf_spine", "spine_core")[: int(v["shape"][0])]
    lengths = ", ".join(f"{kind}: {metres!r} m" for kind in kinds)
    fabric = make_fabric(f"{text}cables: {{{lengths}}}\nlatency: {{switch: 0 s, endpoint: 0 s}}\n")
    flows = ", ".join(
        f"{{src: {s}, dst: {d}, size: {size} B}}"
        for s, (d, size) in enumerate(zip(case.destinations, case.sizes, strict=True))
    )
    result = run(fabric, f"kind: flows\nflows: [{flows}]", "ib-static")
    np.testing.assert_allclose(result.finish, v["finish_s"], rtol=0.01)


@pytest.mark.programs
def test_live_against_simgrid(tmp_path):
    """SimGrid itself, where it is installed: 1,024 hosts, a permutation of a seed that no file has, distinct
    sizes.
    """
    try:
        found = subprocess.run([SYSTEM_PYTHON, "-c", "import simgrid"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"no {SYSTEM_PYTHON}, which would have SimGrid's bindings")
    if found.returncode:
        pytest.skip("SimGrid's Python bindings are not installed (Debian: python3-simgrid)")
    peer = [SYSTEM_PYTHON, str(ROOT / "benchmarks" / "simgrid_peer.py"), "1024", "--times"]
    done = subprocess.run(
        [*peer, "--pattern", "permutation-sizes", "--seed", "77"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    vector = json.loads(done.stdout)
    destinations, sizes = traffic(vector["pattern"], vector["n"], vector["bytes"], vector["seed"])
    ours = finish_times(Case(vector, destinations, sizes))
    np.testing.assert_allclose(ours, vector["finish_s"], rtol=1e-8)
