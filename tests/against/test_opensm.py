"""netplan's static InfiniBand routing against OpenSM, the subnet manager that it claims to follow.

``tests/data/opensm`` holds the forwarding tables that OpenSM 3.3.23 laid for small fabrics on a
simulated subnet. Most comparisons are exact, entry by entry, over all entries that a packet can
meet. Where they cannot be, figures stand side by side: largest number of flows on a link over every
shift permutation, effective bisection (mean over pairs of 1 / largest number of flows on the path)
and mean max-min rate of random permutations, on the same draws for both.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from netplan.catalog.shipped import read_document
from netplan.errors import BackendError, RoutingError
from netplan.routing import RoutingOptions, route_flows
from netplan.routing.ib_static import balanced_up_down_paths
from netplan.routing.walked import without_structure
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.validate import validate
from netplan.topology import build_fabric
from tests.against.opensm import MAX_HOPS, Subnet, Tables, lay_tables, missing_programs
from tests.against.opensm_vectors import DIRECT, Router, cases, figures, followed, load, stored, subnet_of
from tests.contracts.making import make_fabric, make_flows, standard_error

if TYPE_CHECKING:
    from netplan.fabric import Fabric

#: Trees of the generator with one cable between any two switches.
SINGLE = ["leaf-spine-16", "leaf-spine-256", "leaf-spine-2to1", "fat-tree-k4", "fat-tree-k8"]
#: Trees with as many uplinks as downlinks: no shift has to share a link.
FULL = ["leaf-spine-16", "leaf-spine-256", "fat-tree-k4", "fat-tree-k8", "rail-64"]
#: Fabrics whose ports follow the plan, but for the ring of sites.
PLANNED = [
    name
    for name, case in cases().items()
    if case.seed is None and "updn" in case.engines and name != "metro-ring"
]
ANY_PORTS = [name for name, case in cases().items() if case.seed is not None]


def ours(fabric: Fabric, scheme: str = "ib-static", seed: int = 0) -> Router:
    """Return the router of a scheme."""

    def paths(src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        routes = route_flows(fabric, make_flows(src, dst), scheme, RoutingOptions(seed=seed))
        return routes.path_ptr, routes.resource

    return paths


def up_down(fabric: Fabric) -> Router:
    """Return balanced up/down, also where ``ib-static`` takes d-mod-k."""
    return lambda src, dst: balanced_up_down_paths(fabric, src, dst)


def differing(fabric: Fabric, one: Router, other: Router) -> np.ndarray:
    """Return (switch, endpoint) of the entries that differ."""
    return np.argwhere(followed(fabric, one) != followed(fabric, other))


@pytest.mark.parametrize("name", SINGLE)
def test_d_mod_k_is_ftree(name):
    """One cable between any two switches: d-mod-k is what ``ftree`` lays, every entry of every switch."""
    fabric = subnet_of(name).fabric
    assert fabric.structure is not None
    assert len(differing(fabric, ours(fabric), stored(name, "ftree").paths)) == 0


@pytest.mark.parametrize("name", FULL)
def test_shifts_run_without_contention(name):
    """OpenSM's manual claims it of ``ftree``: every shift permutation, one flow on each link. Both do it."""
    fabric, laid = subnet_of(name).fabric, stored(name, "ftree")
    assert figures(fabric, laid.paths, laid.order, samples=4).shift.max() == 1
    assert figures(fabric, ours(fabric), samples=4).shift.max() == 1


def test_bundles_are_used_alike():
    """With parallel cables ``ftree`` takes another cable of the same bundle; no figure tells them apart.

    d-mod-k keeps the destinations of a bundle's cables apart as ftree does, so the two differ by
    names of parallel cables only: figures on the same draws are equal, to rounding.
    """
    fabric, laid = subnet_of("rail-64").fabric, stored("rail-64", "ftree")
    assert len(differing(fabric, ours(fabric), laid.paths)) > 0
    theirs, mine = figures(fabric, laid.paths), figures(fabric, ours(fabric))
    np.testing.assert_array_equal(theirs.shift, mine.shift)
    np.testing.assert_allclose(theirs.bisection, mine.bisection, rtol=1e-12)
    np.testing.assert_allclose(theirs.max_min, mine.max_min, rtol=1e-9)


@pytest.mark.parametrize("name", PLANNED)
def test_balanced_up_down_is_updn(name):
    """Trees, damaged trees, two sites: every entry that a packet meets is the one that ``updn`` laid."""
    fabric = subnet_of(name).fabric
    assert len(differing(fabric, up_down(fabric), stored(name, "updn").paths)) == 0


@pytest.mark.parametrize("name", sorted(DIRECT))
def test_direct_networks_are_minhop(name):
    """Dragonflies, a torus, a hyperx, a slim fly: every entry is the one that OpenSM's default laid.

    The same tables when the fabric has lost its structure: damage changes paths, not the rule.
    """
    fabric = subnet_of(name).fabric
    laid = stored(name, "minhop")
    assert len(differing(fabric, ours(fabric), laid.paths)) == 0
    assert len(differing(fabric, ours(without_structure(fabric)), laid.paths)) == 0


def test_round_a_ring_of_sites():
    """Opposite sites of a ring have two ways round. OpenSM, with all metro switches as roots, goes both.

    It knows no order among roots, so that traffic round the ring can deadlock; netplan's order of
    nodes forbids one of the ways to half of the sites. Only entries of metro switches for endpoints
    of the opposite site may differ. Tolerance: 1/4 of the pairs are opposite, 1/4 of these go the
    other way, 1/16; if each changed the rates of three pairs by 0.1 (their size is 0.05 to 0.2) in
    one direction, the mean would move by 0.02.
    """
    fabric, laid = subnet_of("metro-ring").fabric, stored("metro-ring", "updn")
    entries = differing(fabric, up_down(fabric), laid.paths)
    assert 0 < len(entries) < 0.02 * (followed(fabric, laid.paths) >= 0).sum()
    switch, endpoint = entries.T
    assert (fabric.nodes.tier[switch] == 4).all()
    far = fabric.nodes.site[fabric.endpoints.leaf[endpoint]].astype(int) - fabric.nodes.site[switch]
    assert (far % 4 == 2).all()
    theirs, mine = figures(fabric, laid.paths), figures(fabric, up_down(fabric))
    assert mine.bisection.mean() == pytest.approx(theirs.bisection.mean(), abs=0.02)
    assert mine.max_min.mean() == pytest.approx(theirs.max_min.mean(), abs=0.02)


@pytest.mark.parametrize("name", [name for name in PLANNED if "minhop" in cases()[name].engines])
def test_minhop_lays_the_tables_of_updn(name):
    """On these fabrics shortest paths are legal: OpenSM's default is the same, entry by entry."""
    fabric = subnet_of(name).fabric
    assert len(differing(fabric, stored(name, "minhop").paths, stored(name, "updn").paths)) == 0


@pytest.mark.parametrize("name", ANY_PORTS)
def test_random_tables_stand_for_ports_without_a_plan(name):
    """Cables on any ports, GUIDs in any order: ``updn`` is near ``ib-random``, ``ftree`` as good as ever.

    Tolerance of "near": 0.04, a third of the 0.12 and more between random tables and d-mod-k, with
    three standard errors of the difference below 0.02. ``ftree`` differs by the draw of its tables
    only: three standard errors of the paired difference, and one more per cent for that draw.
    """
    fabric = subnet_of(name).fabric
    theirs = figures(fabric, stored(name, "updn").paths)
    random = [figures(fabric, ours(fabric, "ib-random", seed)) for seed in range(4)]
    sample = np.mean([run.bisection for run in random], axis=0)
    assert 3 * standard_error(sample - theirs.bisection) < 0.02
    assert theirs.bisection.mean() == pytest.approx(sample.mean(), abs=0.04)
    d_mod_k = figures(fabric, ours(fabric))
    assert d_mod_k.bisection.mean() - sample.mean() > 0.1
    laid = stored(name, "ftree")
    ftree = figures(fabric, laid.paths, laid.order)
    error = 3 * standard_error(ftree.bisection - d_mod_k.bisection) + 0.01
    assert ftree.bisection.mean() == pytest.approx(d_mod_k.bisection.mean(), abs=error)


def test_what_updn_costs_on_three_tiers():
    """A fact about OpenSM that users should know: ``updn`` on a three-tier tree is far below ``ftree``.

    Leaves spread destinations over spines in the order in which spines spread them over cores, so
    that a spine sees every k/2-th destination only, and its counters fall into step. A lost cable
    hardly hurts ``ftree``, and by breaking the step even helps ``updn``.
    """
    bisection = {
        (name, engine): load(name)["engines"][engine]["figures"]["effective_bisection"]
        for name in ("fat-tree-k8", "fat-tree-k8-lost-1")
        for engine in ("ftree", "updn")
    }
    for name in ("fat-tree-k8", "fat-tree-k8-lost-1"):
        assert bisection[name, "ftree"] - bisection[name, "updn"] > 0.25
    assert abs(bisection["fat-tree-k8-lost-1", "ftree"] - bisection["fat-tree-k8", "ftree"]) < 0.02


@pytest.mark.parametrize("name", sorted(cases()))
def test_stored_figures(name):
    """The figures in the files follow from the tables in the files: rounded there to four digits."""
    for engine, found in load(name)["engines"].items():
        laid = stored(name, engine)
        computed = figures(laid.fabric, laid.paths, laid.order).summary()
        assert computed == pytest.approx(found["figures"], abs=1.01e-4)


def test_tables_that_lead_nowhere():
    """Following tables with a hole, or round in a circle, says so."""
    fabric = make_fabric("kind: leaf-spine\nradix: 8\nhosts: {count: 16, gpus: 1}\nspine: {count: 4}")
    empty = np.full((fabric.n_nodes, fabric.n_endpoints), -1, np.int64)
    src, dst = np.array([0]), np.array([15])
    with pytest.raises(RoutingError, match="leaf-0-0 has no entry for host-00015 NIC 0"):
        Tables(fabric, "none", empty, dst).paths(src, dst)
    up = 2 * fabric.n_endpoints
    circle = empty.copy()
    circle[fabric.links.src[up], 15], circle[fabric.links.dst[up], 15] = up, up + 1
    with pytest.raises(RoutingError, match="go round"):
        Tables(fabric, "none", circle, dst).paths(src, dst)
    assert MAX_HOPS > 2


def test_net_files_join_both_ends():
    """Every connection is written twice, from both ends, with the same two ports; no port twice."""
    for seed in (None, 5):
        subnet = Subnet.of(subnet_of("rail-64").fabric, guid_seed=seed, port_seed=seed)
        ends = set()
        for record in subnet.net_file().split("\n\n"):
            name = re.search(r'^(?:Switch|Hca)\t\d+ "(.+)"', record, re.MULTILINE)
            for port, far, far_port in re.findall(
                r'^\[(\d+)\](?:\(\w+\))?\t"(.+)"\[(\d+)\]', record, re.MULTILINE
            ):
                assert name is not None
                ends.add(((name[1], port), (far, far_port)))
        assert len(ends) == len(subnet.fabric.links)
        assert {(far, near) for near, far in ends} == ends
        assert len({near for near, _ in ends}) == len(ends)


@pytest.fixture
def opensm() -> None:
    """Skip where OpenSM cannot run on a simulated subnet."""
    if (missing := missing_programs()) is not None:
        pytest.skip(missing)


@pytest.mark.programs
@pytest.mark.usefixtures("opensm")
@pytest.mark.parametrize("name", sorted(cases()))
def test_live_tables_are_the_stored_ones(name, tmp_path):
    """OpenSM itself, where it is installed: the tables in the files are the ones that it lays."""
    for engine in cases()[name].engines:
        folder = tmp_path / engine
        folder.mkdir()
        laid = lay_tables(subnet_of(name), engine, folder)
        assert laid.engine == engine
        np.testing.assert_array_equal(laid.forward, stored(name, engine).forward)
        np.testing.assert_array_equal(laid.order, stored(name, engine).order)


@pytest.mark.programs
@pytest.mark.usefixtures("opensm")
@pytest.mark.parametrize("engine", ["ftree", "updn"])
def test_live_on_a_fabric_that_no_file_has(engine, tmp_path):
    """Three tiers with bundles on both levels, 256 hosts.

    ``updn``: entry by entry. ``ftree``: shifts without contention on both sides, and the same mean
    over random bisections within three standard errors of the paired difference.
    """
    fabric = make_fabric("kind: clos\nradix: 16\nhosts: {count: 256, gpus: 1}\npod: {leaves: 4}\n")
    laid = lay_tables(Subnet.of(fabric), engine, tmp_path)
    assert laid.engine == engine
    if engine == "updn":
        assert len(differing(fabric, up_down(fabric), laid.paths)) == 0
    else:
        theirs, mine = figures(fabric, laid.paths, laid.order), figures(fabric, ours(fabric))
        assert theirs.shift.max() == mine.shift.max() == 1
        paired = theirs.bisection - mine.bisection
        assert abs(paired.mean()) < 3 * standard_error(paired) + 1e-9


@pytest.mark.programs
@pytest.mark.usefixtures("opensm")
def test_live_on_a_shipped_fabric(tmp_path):
    """Two sites of 512 endpoints as users have them: 72 tables of 1,024 entries, those met all equal."""
    fabric = build_fabric(validate(FABRIC_SPEC, read_document("metro-30km-2site", "topologies")))
    laid = lay_tables(Subnet.of(fabric), "updn", tmp_path)
    assert len(differing(fabric, up_down(fabric), laid.paths)) == 0


@pytest.mark.programs
@pytest.mark.usefixtures("opensm")
def test_live_guids_hardly_matter(tmp_path):
    """``updn`` takes destinations leaf by leaf and port by port; GUIDs decide which leaf comes first.

    On a full tree every leaf moves each counter by the same amount, so the order cannot be seen.
    """
    laid: list[Any] = []
    for seed in (None, 1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        laid.append(lay_tables(Subnet.of(subnet_of("fat-tree-k8").fabric, guid_seed=seed), "updn", folder))
    for other in laid[1:]:
        assert len(differing(other.fabric, laid[0].paths, other.paths)) == 0


@pytest.mark.programs
@pytest.mark.usefixtures("opensm")
def test_live_failures_are_told(tmp_path):
    """A program that stops with an error ends the run with what it said, and leaves nothing behind."""
    with pytest.raises(BackendError, match="opensm ended with status"):
        lay_tables(subnet_of("leaf-spine-16"), "updn", tmp_path, options=["--no-such-option"])
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            assert str(tmp_path).encode() not in command.read_bytes()
