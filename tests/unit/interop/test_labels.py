"""Cable lists as CSV: round trips, lists of other people, spreadsheets, faults."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings

from netplan.errors import SpecError
from netplan.fabric.convert import node_names
from netplan.interop.labels import cell
from tests.strategies import fabrics
from tests.unit.interop.samples import cables, node_number, read_back, with_nasty_names, written


@given(fabric=fabrics())
@settings(max_examples=25)
def test_round_trip(fabric):
    """Cables, speeds, lengths and hosts; each end of each cable has its own label and port."""
    nasty = with_nasty_names(fabric)
    content = written(nasty, "cables-csv")
    back = read_back(content, "cables-csv").fabric
    assert cables(back, by_number=True) == cables(nasty, by_number=True)
    assert sorted(back.links.length.tolist()) == pytest.approx(sorted(fabric.links.length.tolist()))
    assert {node_number(node_names(back)[i]) for i in back.host_ids.tolist()} == set(fabric.host_ids.tolist())
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    ends = [(row[end], row[f"{end}_port"]) for row in rows for end in ("a", "b")]
    assert len(set(ends)) == len(ends) == 2 * len(rows)
    assert len({row[key] for row in rows for key in ("label_a", "label_b")}) == 2 * len(rows)
    assert not any(value[:1] in "=+-@" for row in rows for value in row.values() if value)


def test_formulas():
    """What a spreadsheet would run is text."""
    assert [cell(text) for text in ("=1", "+1", "-a", "@x", "a", "")] == ["'=1", "'+1", "'-a", "'@x", "a", ""]


@pytest.mark.parametrize(
    "text",
    [
        (
            "Source;Source Port;Destination;Destination Port;Speed\n"
            "leaf1;1;server-1;eth0;400G\nleaf1;2;server-2;eth0;400G\n"
        ),
        "from\tfrom port\tto\tto port\tGbps\nserver-1\teth0\tleaf1\t1\t400\nserver-2\teth0\tleaf1\t2\t400",
        'A,B,speed\nserver-1,"leaf1",50 GB/s\n\n#comment,x\nserver-2,leaf1,400 Gb/s\n',
    ],
)
def test_other_lists(text):
    """Separators and heads as people have them."""
    back = read_back(text.encode(), "cables-csv").fabric
    assert cables(back) == {("leaf1", "server-1", 400_000): 1, ("leaf1", "server-2", 400_000): 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n", "file:1: has no columns for both ends of a cable"),
        ("a,b\nh1,leaf1\n,leaf1\n", "file:3: a cable lacks an end"),
        ("a,b\nh1,leaf1\nleaf1\n", "file:3: a cable lacks an end"),
        ("a,b,speed\nh1,leaf1,fast\n", "file:2: the speed 'fast' is none"),
        ("a,b,speed\nh1,leaf1,0\n", "file:2: the speed '0' is none"),
        ("a,b,length\nh1,leaf1,far\n", "file:2: the length 'far' is none"),
        (
            "a,a_port,b,b_port\nh1,1,leaf1,1\nh2,1,leaf1,1\n",
            "file:3: port '1' of 'leaf1' has a cable already, in line 2",
        ),
        ("a,b\nh1,leaf1\nh2,h2\n", "file:3: a cable joins 'h2' with itself"),
    ],
)
def test_faults(text, message):
    """What is wrong, and where."""
    with pytest.raises(SpecError) as caught:
        read_back(text.encode(), "cables-csv")
    assert message in str(caught.value)
