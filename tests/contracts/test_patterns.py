"""Every registered traffic pattern on every family and placement: adding one adds its tests here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netplan.errors import TrafficError
from netplan.spec.text import parse_yaml
from netplan.spec.traffic import TRAFFIC_SPEC
from netplan.spec.validate import validate
from netplan.traffic import PATTERNS, build_demand, place_ranks
from tests.contracts.making import make_fabric, run
from tests.contracts.patterns import check_pattern
from tests.fabrics import NAMED
from tests.strategies import fabrics

#: YAML of each kind, with what varies.
SAMPLES = {
    "all-reduce": (
        "size: 1 GiB",
        "size: 12345 B\nchannels: 3\nqps: 2",
        *(
            f"size: 1 MiB\nalgorithm: {name}"
            for name in (
                "tree",
                "halving-doubling",
                "recursive-doubling",
                "hierarchical",
                "in-network",
                "nvls",
                "nvls-tree",
            )
        ),
    ),
    "reduce-scatter": (
        "size: 1 GiB",
        *(f"size: 1 MiB\nalgorithm: {name}" for name in ("pat", "recursive-halving", "hierarchical", "nvls")),
    ),
    "all-gather": (
        "size: 1 GiB\nchannels: 1\nwindow: null",
        *(
            f"size: 1 MiB\nalgorithm: {name}"
            for name in ("pat", "recursive-doubling", "hierarchical", "nvls")
        ),
    ),
    "all-to-all": (
        "size: 64 MiB",
        "size: 64 MiB\npxn: false\nqps: 2\nwork_conserving: true",
        "size: 64 MiB\nalgorithm: pairwise",
        "size: 64 MiB\nalgorithm: hierarchical",
    ),
    "broadcast": ("size: 1 MiB",),
    "reduce": ("size: 1 MiB\nchannels: 1",),
    "gather": ("size: 1 MiB",),
    "scatter": ("size: 1 MiB",),
    "send-recv": ("size: 1 MiB",),
    "permutation": ("size: 1 MiB",),
    "incast": ("size: 1 MiB\nsenders: 3",),
    "point-to-point": ("size: 1 MiB\nsrc: 0\ndst: {last}",),
    "flows": (
        "flows: [{{src: 0, dst: {last}, size: 5 B}}, {{src: {last}, dst: 0, size: 7 B, start: 1 ms}}]",
    ),
}
PLACEMENTS = ("packed", "random", "fragmented")


def check(fabric, sample, placement, *, ranks=None, seed=0):
    """Build a demand and hold it against the contract; infeasible ones have to be refused with a hint."""
    kind, text = sample
    last = (ranks or fabric.n_gpus) - 1
    head = f"name: offered\nkind: {kind}\nplacement: {{kind: {placement}}}\n" + (
        f"ranks: {ranks}\n" if ranks else ""
    )
    spec = validate(TRAFFIC_SPEC, parse_yaml(head + text.format(last=last), "traffic.yaml"))
    try:
        demand = build_demand(fabric, spec, seed=seed)
    except TrafficError as error:
        if not error.hint:
            raise
        return
    rng = np.random.default_rng([0xDE3A, seed])  # as build_demand draws placements
    check_pattern(fabric, spec, place_ranks(fabric, spec.placement, spec.ranks, rng), demand)


def test_every_pattern_has_a_sample():
    """A pattern without a sample would escape the tests below."""
    assert set(SAMPLES) == set(PATTERNS.names())


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SAMPLES.items() for text in texts]
)
@pytest.mark.parametrize("name", NAMED)
def test_named_fabrics(name, kind, text, placement):
    """The contract on all GPUs, and on all but one (so that a host is used in part)."""
    fabric = NAMED[name]()
    check(fabric, (kind, text), placement)
    if fabric.n_gpus > 2:
        check(fabric, (kind, text), placement, ranks=fabric.n_gpus - 1, seed=3)


@given(
    fabric=fabrics(),
    sample=st.sampled_from([(kind, text) for kind, texts in SAMPLES.items() for text in texts]),
    placement=st.sampled_from(PLACEMENTS),
    seed=st.integers(0, 99),
    data=st.data(),
)
@settings(max_examples=150)
def test_any_fabric(fabric, sample, placement, seed, data):
    """The contract for any number of ranks on any small fabric."""
    ranks = data.draw(st.integers(2, max(fabric.n_gpus, 2)))
    check(fabric, sample, placement, ranks=ranks, seed=seed)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("scheme", ["ecmp", "spray", "ib-static"])
def test_every_pattern_runs(kind, scheme):
    """Simulated to the end: not faster than ideal, all efficiencies in (0, 1], all flows done by then."""
    fabric = make_fabric("kind: clos\nradix: 8\nhosts: {count: 20, gpus: 2}\npod: {leaves: 3}")
    for text in SAMPLES[kind]:
        needs = {"algorithm: nvls\n": "ranks: 2", "recursive-halving": "ranks: 32"}
        extra = next((value for key, value in needs.items() if key in text + "\n"), "")
        if kind == "all-gather" and "recursive-doubling" in text:
            extra = "ranks: 32"
        result = run(fabric, f"kind: {kind}\n{text.format(last=39)}\n{extra}", scheme, seed=1)
        for figure in result.efficiency.to_dict().values():
            assert 0 < figure <= 1 + 1e-9
        assert result.ideal_s <= result.completion_s * (1 + 1e-9)
        assert (result.finish <= result.completion_s * (1 + 1e-9)).all()
        assert (result.link_load <= 1 + 1e-9).all()
        assert PATTERNS.find(kind).summary
        assert PATTERNS.find(kind).leaves_out
