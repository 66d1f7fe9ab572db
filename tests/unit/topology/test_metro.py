"""Metro domains: layouts, hubs, fibre paths, wavelengths, sites of direct families, refusals."""

from __future__ import annotations

from collections import Counter
from math import ceil

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from netplan import api
from netplan.errors import FabricError, SpecError
from netplan.fabric.checks import check_fabric
from netplan.fabric.convert import fabric_to_dict, load_fabric, save_fabric
from netplan.fabric.measures import measure
from netplan.spec.fabric import FABRIC_SPEC
from netplan.topology import build_fabric
from netplan.topology.metro import deal_links
from tests import strategies
from tests.fabrics import metro_diverse, metro_star, yaml_fabric

SITE = "kind: leaf-spine, radix: 8, hosts: {count: 8, gpus: 1}, spine: {radix: 32, count: 4}"


def metro(spans: str = "", tier: str = "radix: 64, switches: 2", sites: str = "a b c") -> str:
    """Return a spec of sites of 8 NICs of 400G, 10 km apart on a line; capital letters are hubs."""
    places = "".join(
        f"- {{name: {name.lower()}, position: [{10 * i} km, 0 km]"
        + ("" if name.isupper() else f", fabric: {{name: {name}, {SITE}}}")
        + "}\n"
        for i, name in enumerate(sites.split())
    )
    return f"name: m\nkind: metro\nsites:\n{places}metro: {{{tier}}}\n{spans}"


def spans_of(fabric) -> dict[tuple[str, str], int]:
    """Return how many links join each two sites."""
    links = fabric.links
    rows = 2 * np.flatnonzero(links.path[0::2] >= 0)
    site = fabric.nodes.site
    ends = zip(site[links.src[rows]].tolist(), site[links.dst[rows]].tolist(), strict=True)
    return dict(Counter((fabric.site_names[a], fabric.site_names[b]) for a, b in ends))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("star", [("a", "b"), ("a", "c"), ("a", "d")]),
        ("ring", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]),
        ("mesh", [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]),
    ],
)
def test_layouts_join_the_sites_that_they_say(layout, expected):
    """n - 1, n and n(n-1)/2 spans for four sites."""
    fabric = yaml_fabric(metro(tier=f"radix: 64, switches: 2, layout: {layout}", sites="a b c d"))
    assert sorted(spans_of(fabric)) == sorted(expected)
    assert not check_fabric(fabric)


def test_a_hub_may_be_named_and_gets_the_links_that_the_others_ask_for():
    """8 NICs of 400G at 1:1 are 8 links a site; hub b has two spans of 8, not of 4."""
    fabric = yaml_fabric(metro(tier="radix: 64, switches: 2, layout: star, hub: b"))
    assert spans_of(fabric) == {("b", "a"): 8, ("b", "c"): 8}


def test_a_hub_of_switches_only_has_metro_switches_and_nothing_else():
    """Drawn in tests.fabrics.metro_star: 2 metro switches a site, no hosts at the hub."""
    fabric = metro_star()
    assert spans_of(fabric) == {("hub", "east"): 8, ("hub", "west"): 8}
    hub = fabric.nodes.site == fabric.site_names.index("hub")
    assert fabric.nodes.tier[hub].tolist() == [4, 4]
    assert not check_fabric(fabric)
    assert measure(fabric).max_hops == 7  # leaf, spine, metro, hub, metro, spine, leaf
    assert measure(fabric).bisection_fraction == pytest.approx(1.0)


def test_links_are_dealt_to_paths_and_each_path_has_its_own_delay():
    """32 links over three paths of 10, 20 and 30 km and 4 metro switches: 12, 12 and 8; 5.05 us a km."""
    fabric = metro_diverse()
    rows = 2 * np.flatnonzero(fabric.links.path[0::2] >= 0)
    assert Counter(fabric.links.path[rows].tolist()) == {0: 12, 1: 12, 2: 8}
    for path, km in enumerate((10, 20, 30)):
        on = rows[fabric.links.path[rows] == path]
        assert fabric.links.delay[on] == pytest.approx(km * 5.05e-6)
        # As many from every metro switch: a cut takes as much from each.
        assert set(Counter(fabric.links.src[on].tolist()).values()) == {len(on) // 4}
    assert [path.name for path in fabric.fibre_paths] == ["path-1", "path-2", "path-3"]


def test_show_tells_paths_with_their_fibre_pairs_and_wavelengths():
    """16 wavelengths a pair: 12 links need one pair."""
    spans = measure(metro_diverse()).sites.spans
    assert [(s.path, s.length_km, s.links, s.wavelengths, s.fibre_pairs) for s in spans] == [
        (1, 10.0, 12, 16, 1),
        (2, 20.0, 12, 16, 1),
        (3, 30.0, 8, 16, 1),
    ]


@pytest.mark.parametrize(
    ("said", "links", "n_metro", "expected"),
    [
        ([None, None, None], 32, 4, [12, 12, 8]),
        ([None, None], 6, 4, [3, 3]),
        ([None, None], 7, 2, [4, 3]),
        ([5, None], 9, 4, [5, 4]),
        ([5, 7], 99, 4, [5, 7]),
        ([None], 5, 2, [5]),
    ],
)
def test_deal_links_by_hand(said, links, n_metro, expected):
    assert deal_links(said, links, n_metro) == expected


@given(
    said=st.lists(st.none() | st.integers(1, 40), min_size=1, max_size=6),
    more=st.integers(0, 100),
    n_metro=st.integers(1, 8),
)
def test_dealt_links_add_up_and_are_as_equal_as_they_can_be(said, more, n_metro):
    """Property: sums to the total; silent paths differ by one unit at most; every path has a link."""
    silent = said.count(None)
    links = sum(count for count in said if count is not None) + silent + (more if silent else 0)
    dealt = deal_links(said, links, n_metro)
    assert sum(dealt) == links
    assert min(dealt) >= 1
    assert all(part == count for part, count in zip(dealt, said, strict=True) if count is not None)
    open_parts = [part for part, count in zip(dealt, said, strict=True) if count is None]
    if open_parts:
        assert max(open_parts) - min(open_parts) in (0, 1, n_metro)


@given(links=st.integers(1, 60), wavelengths=st.integers(1, 64))
def test_fibre_pairs_are_the_least_that_carry_the_links(links, wavelengths):
    """ceil(links / wavelengths), by counting up."""
    pairs = next(n for n in range(1, 61) if n * wavelengths >= links)
    spans = f"spans: [{{a: a, b: b, links: {links}, wavelengths: {wavelengths}}}]"
    fabric = yaml_fabric(metro(spans, "radix: 200, switches: 1, oversubscription: 8", "a b"))
    assert [path.fibre_pairs for path in fabric.fibre_paths] == [pairs]


@given(spec=strategies.metro_star_specs())
@settings(max_examples=40, deadline=None)
def test_counts_of_stars(spec):
    """Property: n - 1 spans; each carries what the larger end asks for, in multiples of the metro switches.

    A leaf of the star asks for all its links on its one span, the middle for an equal part on each.
    """
    try:
        fabric = build_fabric(FABRIC_SPEC.validate_python(spec))
    except FabricError as error:
        assert "ports for the metro tier" in error.message  # noqa: PT017 -- one small leaf as the top tier
        reject()
    assert not [fault for fault in check_fabric(fabric) if fault.severity == "error"]
    metro, names = spec["metro"], [site["name"] for site in spec["sites"]]
    m, n_spans = metro["switches"], len(names) - 1
    assert fabric.count_tier("metro") == len(names) * m
    rates = np.bincount(fabric.nodes.site[fabric.endpoints.host], fabric.endpoint_rate, minlength=len(names))
    asked = [ceil(rate / metro["oversubscription"] / 50e9) for rate in rates]
    paths = [len(span["paths"]) for span in spec.get("spans", ())] or [1] * n_spans
    links = [ceil(max(ceil(asked[0] / n_spans), asked[1 + i], paths[i]) / m) * m for i in range(n_spans)]
    assert list(spans_of(fabric).values()) == links
    assert len(fabric.fibre_paths) == sum(paths)
    on = Counter(fabric.links.path[0::2].tolist())
    for place, path in enumerate(fabric.fibre_paths):
        assert path.fibre_pairs == ceil(on[place] / metro["wavelengths"])


def test_paths_between_the_same_sites_are_numbered_on():
    spans = "spans: [{a: a, b: b, links: 2}, {a: b, b: a, length: 20 km, links: 2}]"
    fabric = yaml_fabric(metro(spans, sites="a b"))
    assert [(path.number, path.length) for path in fabric.fibre_paths] == [(1, 10e3), (2, 20e3)]


def test_a_saved_fabric_keeps_its_paths(tmp_path):
    fabric = metro_diverse()
    save_fabric(fabric, tmp_path / "f.json")
    again = load_fabric(tmp_path / "f.json")
    assert again.fibre_paths == fabric.fibre_paths
    assert (again.links.path == fabric.links.path).all()
    assert fabric_to_dict(again) == fabric_to_dict(fabric)


def test_a_fabric_without_sites_is_saved_as_before():
    data = fabric_to_dict(yaml_fabric(f"{{name: f, {SITE}}}"))
    assert "fibre_paths" not in data
    assert "path" not in data["cables"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"number": 0}, r"fibre_paths\[0\]\.number is 0, not a whole number in range"),
        ({"a": 7}, r"fibre_paths\[0\]\.a is 7, not a whole number in range"),
        ({"length_m": -1}, r"fibre_paths\[0\]\.length_m is -1, not a length of 0 m or more"),
        ({"length_m": None}, r"fibre_paths\[0\]\.length_m is null"),
        ({"b": 0}, r"cables\.path\[\d+\] = 0: that path joins other sites than the cable does"),
    ],
)
def test_saved_paths_that_cannot_be_are_refused(tmp_path, change, message):
    import json

    data = fabric_to_dict(metro_diverse())
    data["fibre_paths"][0] |= change
    with pytest.raises(FabricError, match=message):
        load_fabric(json.dumps(data))


def test_a_saved_cable_on_no_path_is_refused():
    import json

    data = fabric_to_dict(metro_diverse())
    data["fibre_paths"] = data["fibre_paths"][:1]
    with pytest.raises(FabricError, match=r"cables\.path\[\d+\] = 1 is not one of the 1 fibre paths"):
        load_fabric(json.dumps(data))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            metro("spans: [{a: a, b: b, links: 32, wavelengths: 16, fibre_pairs: 1}]", sites="a b"),
            "m: span a/b: 32 links do not fit 1 fibre pair(s) of 16 wavelength(s), which carry 16",
        ),
        (
            metro(
                "spans: [{a: a, b: b, links: 32, wavelengths: 8, paths: [{}, {fibre_pairs: 1}]}]", sites="a b"
            ),
            "m: span a/b path-2: 16 links do not fit 1 fibre pair(s) of 8 wavelength(s), which carry 8",
        ),
        (
            metro(tier="radix: 19, switches: 2, layout: star", sites="A b c d e f"),
            "m: site 'a': a metro switch needs 20 ports of 400G; metro.radix = 19",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(text, message):
    with pytest.raises(FabricError) as caught:
        yaml_fabric(text)
    assert caught.value.message == message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("feasible: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (metro(tier="radix: 64, hub: a"), "is not used: layout = mesh"),
        (metro(tier="radix: 64, layout: star, hub: aa"), "metro.hub = 'aa' is not a site"),
        (
            metro("spans: [{a: a, b: b}, {a: b, b: c}]", "radix: 64, layout: ring"),
            "is not used: the spans are listed",
        ),
        (metro(sites="a B"), "have fewer than two fabrics: there is nothing to join"),
        (
            metro("spans: [{a: a, b: b, length: 3 km, paths: [{}]}]", sites="a b"),
            "is not used: each of the paths has its own",
        ),
        (
            metro("spans: [{a: a, b: b, paths: [{links: 2}, {}]}]", sites="a b"),
            "are given to some paths only",
        ),
        (
            metro("spans: [{a: a, b: b, links: 5, paths: [{links: 2}, {links: 2}]}]", sites="a b"),
            "is not the sum of the links of its paths (4)",
        ),
        (
            metro("spans: [{a: a, b: b, links: 5, paths: [{links: 5}, {}]}]", sites="a b"),
            "leaves none for some of its 2 paths",
        ),
        (metro(tier="radix: 64, wavelengths: 0"), "metro.wavelengths"),
        (metro("spans: [{a: a, b: b, paths: []}]", sites="a b"), "spans[0].paths"),
        (metro("spans: [{a: a, b: b, paths: [{length: 0 km}]}]", sites="a b"), "spans[0].paths[0].length"),
        (
            metro("spans: [{a: a, b: b, paths: [{length: 3 km}, {}]}]", sites="a b").replace(
                "position: [0 km, 0 km], ", ""
            ),
            "the distance between a and b is not known",
        ),
    ],
)
def test_specs_that_contradict_themselves_are_refused(text, message):
    with pytest.raises(SpecError) as caught:
        yaml_fabric(text)
    assert message in str(caught.value)


def test_a_torus_joins_over_its_free_ports():
    """By hand: 16 routers of 8 ports, 2 hosts and 4 neighbours on each: 2 free. 32 NICs at 4:1 are 8 links.

    One uplink on each of the 16 carries 8 and more: 16 uplinks, 8 on each of two metro switches.
    """
    site = "kind: torus, dims: [4, 4], router: {endpoints: 2}, radix: 8, hosts: {count: 32, gpus: 1}"
    text = metro(tier="radix: 64, switches: 2, oversubscription: 4", sites="a b").replace(SITE, site)
    fabric = yaml_fabric(text)
    assert fabric.count_cables("site_metro") == 2 * 16
    assert fabric.count_cables("inter_site") == 8
    assert not check_fabric(fabric)


def test_a_direct_network_without_free_ports_says_so():
    site = "kind: torus, dims: [4, 4], router: {endpoints: 2}, radix: 6, hosts: {count: 32, gpus: 1}"
    text = metro(tier="radix: 64, switches: 2, oversubscription: 4", sites="a b").replace(SITE, site)
    with pytest.raises(FabricError, match="its 16 torus switches have 0 free ports; equal bundles to 2"):
        yaml_fabric(text)


def test_the_shipped_star_is_what_its_comment_says():
    fabric = api.load_fabric("metro-star-3site")
    assert spans_of(fabric) == {("hub", "east"): 64, ("hub", "west"): 64}
    assert [path.fibre_pairs for path in fabric.fibre_paths] == [1, 1, 1, 1]
