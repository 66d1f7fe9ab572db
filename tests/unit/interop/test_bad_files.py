"""Files that are cut off, mangled or malicious: an error with its place, never a traceback or a hang."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netplan.errors import CatalogError, NetplanError, OutputError, SpecError
from netplan.fabric.classify import classify
from netplan.interop.files import safe_file_name, write_files
from netplan.interop.registry import FORMATS, find_format
from netplan.interop.source import MOST_LINE, source_of
from tests.contracts.making import make_fabric
from tests.unit.interop.samples import READABLE, read_back, written

TREE = "kind: leaf-spine\nradix: 8\nhosts: {count: 8, gpus: 2, nics: 2}\nspine: {count: 4}"
SAMPLES = {name: written(make_fabric(TREE), name) for name in READABLE}


def attempt(content: bytes, name: str) -> str:
    """Read; return the error's text, or nothing."""
    start = time.monotonic()
    try:
        classify(read_back(content, name).fabric)
    except NetplanError as error:
        return str(error)
    finally:
        assert time.monotonic() - start < 20
    return ""


@pytest.mark.parametrize("name", READABLE)
@given(data=st.data())
@settings(max_examples=60)
def test_cut_off(name, data):
    """The first part of a file reads, or is refused."""
    content = SAMPLES[name]
    attempt(content[: data.draw(st.integers(0, len(content)))], name)


@pytest.mark.parametrize("name", READABLE)
@given(data=st.data())
@settings(max_examples=80)
def test_mangled(name, data):
    """Bytes put in, taken out and exchanged; lines repeated and lost; numbers grown."""
    content = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        how = data.draw(st.sampled_from(["insert", "remove", "line", "lose", "grow"]))
        if how == "insert":
            piece = st.one_of(
                st.binary(max_size=8),
                st.sampled_from([b"\x00", b'"', b"[", b"{", b"<", b"\n", b"-1", b"nan"]),
            )
            content[at:at] = data.draw(piece)
        elif how == "remove":
            del content[at : at + data.draw(st.integers(1, 30))]
        elif how == "grow":
            content[at:at] = b"9" * data.draw(st.integers(1, 30))
        else:
            lines = content.split(b"\n")
            row = data.draw(st.integers(0, len(lines) - 1))
            if how == "line":
                lines.insert(data.draw(st.integers(0, len(lines))), lines[row])
            else:
                del lines[row]
            content = bytearray(b"\n".join(lines))
    attempt(bytes(content), name)


@pytest.mark.parametrize("name", READABLE)
@given(
    content=st.one_of(
        st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
    )
)
@example(content=b"\xff\xfe\x00")
@example(content=b"{" * 2000)
@example(content=b"[" * 2000)
@example(content=b"graph { " + b"subgraph { " * 2000)
@settings(max_examples=40)
def test_something_else(name, content):
    """Any bytes are refused, or read."""
    attempt(content, name)


@pytest.mark.parametrize("name", READABLE)
def test_other_formats(name):
    """A file of another format is refused with a place or a reason."""
    family = {
        "ibnetdiscover": "ib",
        "ibsim": "ib",
        "dot": "dot",
        "ptm": "dot",
        "slurm": "slurm",
        "slurm-block": "slurm",
    }
    for other, content in SAMPLES.items():
        if family.get(other, other) != family.get(name, name):
            said = attempt(content, name)
            assert said, f"{other} was read as {name}"
            assert said.startswith("file")


@pytest.mark.parametrize("name", READABLE)
def test_limits(name):
    """Nothing, a line of 10 MB, compressed files."""
    for content, words in ((b"", "is empty"), (b" \n", "is empty"), (b"\x1f\x8b\x08", "is compressed")):
        with pytest.raises(CatalogError, match=words):
            read_back(content, name)
    start = time.monotonic()
    with pytest.raises(CatalogError, match="characters in one line"):
        read_back(b"x" * (10 * MOST_LINE), name)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("name", ["graphml", "nccl"])
def test_entity_bombs(name):
    """Document types are refused before anything is expanded."""
    bomb = (
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><graphml>&b;</graphml>'
    )
    with pytest.raises(SpecError, match="document type"):
        read_back(bomb, name)
    with pytest.raises(SpecError, match="deep"):
        read_back(b"<a>" * 5000, name)


def test_alias_bombs():
    """Aliases that multiply are refused."""
    lines = ["- topology: t", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(SpecError, match="alias"):
        read_back("\n".join(lines).encode(), "slurm-yaml")


IB = 'Switch\t8 "leaf0"\n[1]\t"h0"[1]\n\nHca\t1 "h0"\n[1]\t"leaf0"[1]\n'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "ibsim",
            'Switch 8 "a"\n[1] "b"[1]\n',
            r"file:2: port 1 leads to .b., which the file does not describe",
        ),
        ("ibsim", IB + 'Switch 8 "leaf0"\n', "file:6: 'leaf0' is described twice, first in line 1"),
        (
            "ibsim",
            IB.replace('[1]\t"leaf0"[1]', ""),
            "file:2: port 1 leads to 'h0'.1., which has no line for it",
        ),
        ("ibsim", IB.replace('[1]\t"h0"', '[9]\t"h0"'), "file:2: port 9 of 'leaf0', which has ports 1 to 8"),
        ("ibsim", IB + '[1]\t"leaf0"[2]\n', "file:6: port 1 of 'h0' is cabled twice"),
        ("ibsim", '[1]\t"leaf0"[2]\n', "file:1: is a port of no record"),
        ("ibsim", 'Switch 8 "a"\n[1] "a"[1]\n', "file:2: port 1 leads to itself"),
        ("ibsim", IB + "what is this\n", "file:6: is no line of an ibnetdiscover dump"),
        ("ibsim", IB.replace('"h0"[1]', '"h0"[1] # lid 3 4xABC'), "file:2: speed 4xABC is not known"),
        ("slurm", "SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "file:1: switch 'a' is under itself"),
        ("slurm", "SwitchName=a Nodes=h[0-1\n", "file:1: has brackets that do not match"),
        ("slurm", "SwitchName=a\n", "file:1: 'a' has neither Nodes nor Switches: an empty tree is none"),
        ("slurm", "SwitchName=a Switches=b\n", "file:1: has the child 'b', which is no switch of the file"),
        (
            "slurm",
            "SwitchName=a Nodes=h\nSwitchName=b Nodes=h\n",
            "file:2: has the node 'h', which is on 'a' already",
        ),
        ("slurm", "NodeName=a\n", "file:1: begins with nodename"),
        (
            "slurm-yaml",
            "- topology: t\n  tree:\n    switches: []\n",
            "file:3: switches is no list with anything in it",
        ),
        ("slurm-yaml", "a: b\n", "file:1: is no list of topologies"),
        ("dot", "digraph {\n a -> b [label=<x", "file:2: an HTML label does not end"),
        ("dot", "graph { a -- a }", "file:1: a cable joins 'a' with itself"),
        ("dot", "graph { host1 -- host2 }", "file:1: a cable joins two hosts, 'host1' and 'host2'"),
        (
            "graphml",
            "<graphml><graph><edge source='a'/></graph></graphml>",
            "file:1: an edge has one end only",
        ),
        ("graphml", "<graphml>", "file:1: is not XML: no element found"),
        ("hpcc", "3 1 2\n0\n1 0 400Gbps 1us 0\n", "has 1 links, but its first line says 2"),
        ("hpcc", "3 1 1\n7\n1 0 400Gbps 1us 0\n", "file:2: has the switch '7': ids are 0 to 2"),
        ("hpcc", "3 1 1\n0\n1 9 400Gbps 1us 0\n", "file:3: has the node 9: ids are 0 to 2"),
        ("hpcc", "3 1 1\n0\n1 0 fast 1us 0\n", "file:3: 'fast' is not a rate"),
        ("simai", "4 3 1 0 0 H100\n3\n", "describes no switch with a cable"),
        ("nccl", "<system><cpu/></system>", "file: has no NIC"),
    ],
)
def test_faults_have_places(name, content, said):
    """Each fault names its line, and what is accepted."""
    with pytest.raises(NetplanError, match=said):
        read_back(content.encode(), name)


def test_all_faults_at_once():
    """Several faults of a file are told together; beyond twenty they are counted."""
    with pytest.raises(SpecError) as caught:
        read_back(b"\n".join(b"line %d is wrong" % i for i in range(50)), "slurm")
    assert len(caught.value.faults) == 21
    assert "and 30 more faults" in str(caught.value)


def test_names_of_formats():
    """Unknown formats, and those that go the other way only."""
    with pytest.raises(OutputError, match="format 'ibsimm' is not one of") as caught:
        find_format("ibsimm", "read")
    assert caught.value.hint == "ibsim"
    with pytest.raises(OutputError, match="'htsim' is written, not read"):
        find_format("htsim", "read")


def test_files_stay_in_their_folder(tmp_path):
    """No path leaves the folder; a folder with something in it is not touched; nothing is half written."""
    with pytest.raises(OutputError, match="no plain name"):
        write_files(str(tmp_path / "out"), {"../x": b""}, is_folder=True)
    with pytest.raises(OutputError, match="no plain name"):
        write_files(str(tmp_path / "out"), {"/etc/x": b""}, is_folder=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(OutputError, match="a folder that is not empty"):
        write_files(str(tmp_path / "full"), {"x": b""}, is_folder=True)
    with pytest.raises(OutputError, match="there is no folder"):
        write_files(str(tmp_path / "no" / "out"), {"x": b""}, is_folder=True)
    write_files(str(tmp_path / "new"), {"a": b"1", "b/c": b"2"}, is_folder=True)
    assert (tmp_path / "new" / "b" / "c").read_bytes() == b"2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "new"]
    for name in ("../../x", "..", ".hidden", "a/b", "\x00", "<script>", "é", ""):
        assert "/" not in safe_file_name(name)
        assert not safe_file_name(name).startswith(".")


def test_every_format_says_what_it_is():
    """Each has a sentence, who checks it and what it leaves out."""
    for each in FORMATS:
        assert each.summary
        assert each.checked_by
        assert each.leaves_out
        assert each.read or each.write


def test_sources_are_decoded():
    """A byte order mark is dropped, other bytes become a mark of their own."""
    assert source_of(b"\xef\xbb\xbfab\r\nc\xff", "x").lines == ["ab", "c\ufffd"]
