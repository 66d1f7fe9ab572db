"""Each fault of the input: a clear message, exit status 1 or 2, no traceback, no file."""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from netplan.cli.main import cli

LEAF_SPINE = """\
name: f
kind: leaf-spine
radix: 8
hosts: {count: 8, gpus: 1}
"""

ALL_REDUCE = """\
name: t
kind: all-reduce
size: 1 MiB
"""


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    """Run netplan; an exception that is not an exit is a failure of the test."""
    result = CliRunner().invoke(cli, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a good fabric (f.yaml) and a good workload (t.yaml)."""
    (tmp_path / "f.yaml").write_text(LEAF_SPINE)
    (tmp_path / "t.yaml").write_text(ALL_REDUCE)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("name: [", "f.yaml:"),
        ("- a\n- b\n", "map"),
        ("just words", "map"),
        (LEAF_SPINE.replace("leaf-spine", "leafspine"), "leaf-spine"),
        (LEAF_SPINE.replace("count: 8", "count: 0"), "hosts.count = 0"),
        (LEAF_SPINE.replace("count: 8", "count: -4"), "hosts.count = -4"),
        (LEAF_SPINE.replace("count: 8", "count: 1000000000"), "10,000,000"),
        (LEAF_SPINE.replace("count: 8", "count: 9000000"), "netplan builds up to"),
        (LEAF_SPINE.replace("count: 8", "count: 8.5"), "hosts.count = 8.5"),
        (LEAF_SPINE.replace("radix: 8", "radix: 1"), "radix"),
        (LEAF_SPINE + "leaf: {downlinks: 6, uplinks: 6}\n", "leaf.radix = 8"),
        (LEAF_SPINE.replace("gpus: 1", "nic_speed: 400"), "400"),
        (LEAF_SPINE.replace("gpus: 1", "nic_speed: .nan"), "nic_speed"),
        (LEAF_SPINE.replace("gpus: 1", "nic_speed: 0G"), "nic_speed"),
        (LEAF_SPINE + "leaf: {oversubscription: .nan}\n", "oversubscription"),
        (LEAF_SPINE + "leaf: {oversubscription: 0}\n", "oversubscription"),
        (LEAF_SPINE + "radix: 16\n", "radix"),
        (LEAF_SPINE + "raddix: 16\n", "radix"),
        (LEAF_SPINE.replace("name: f", "name: 'a b'"), "a-b"),
    ],
)
def test_a_bad_fabric_is_refused(files: Path, text: str, says: str) -> None:
    """System: one fault in an otherwise good file.

    Expected: exit status 1, a message that names the value or what is accepted, and no output file.
    """
    (files / "f.yaml").write_text(text)
    out = files / "out.json"
    result = run("simulate", str(files / "f.yaml"), str(files / "t.yaml"), "--format", "json", "-o", str(out))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert says in result.stderr
    assert result.stdout == ""
    assert not out.exists()


CUSTOM = """\
name: c
kind: custom
hosts: [{name: a}, {name: b}]
switches: [{name: s, tier: 1, radix: 4}]
links:
- {a: a, b: s, speed: 400G}
- {a: b, b: s, speed: 400G}
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{name: b}", "{name: a}", "is used twice"),
        ("{a: b, b: s,", "{a: b, b: t,", "is neither a host nor a switch"),
        ("radix: 4", "radix: 1", "2 ports in use, the switch has 1"),
        ("b: s, speed: 400G}\n- {a: b", "b: b, speed: 400G}\n- {a: b", "joins two hosts"),
    ],
)
def test_a_bad_custom_fabric_is_refused(files: Path, old: str, new: str, says: str) -> None:
    """Duplicate names, a link to a switch that is not there, too few ports: exit status 1 and the place."""
    assert old in CUSTOM
    (files / "f.yaml").write_text(CUSTOM.replace(old, new, 1))
    result = run("show", str(files / "f.yaml"))
    assert result.exit_code == 1
    assert says in result.stderr
    assert "f.yaml" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("size: 1 MiB", "size: 1 MiB\nranks: 9", "has 8 GPUs"),
        ("size: 1 MiB", "size: 1 MiB\nranks: 1", "at least 2 ranks"),
        ("size: 1 MiB", "size: 0 B", "size"),
        ("size: 1 MiB", "size: 1048576", "size"),
        ("size: 1 MiB", "size: -1 MiB", "size"),
        ("all-reduce", "allreduce", "all-reduce"),
        ("size: 1 MiB", "size: 1 MiB\nchanels: 2", "channels"),
        ("size: 1 MiB", "size: 1 MiB\nplacement: {kind: explicit}", "list of hosts"),
        (
            "size: 1 MiB",
            "size: 1 MiB\nplacement: {kind: explicit, hosts: [nobody]}",
            "'nobody' is not a host",
        ),
    ],
)
def test_bad_traffic_is_refused(files: Path, old: str, new: str, says: str) -> None:
    """More ranks than GPUs, one rank, zero bytes, no unit, unknown kind or key: exit status 1."""
    (files / "t.yaml").write_text(ALL_REDUCE.replace(old, new))
    result = run("compare", str(files / "f.yaml"), str(files / "t.yaml"))
    assert result.exit_code == 1
    assert says in result.stderr
    assert result.stdout == ""


def test_all_faults_of_a_file_come_at_once(files: Path) -> None:
    """System: three faults on three lines. Expected: three messages, each with its line."""
    (files / "f.yaml").write_text(
        dedent("""\
        name: f
        kind: leaf-spine
        radix: 0
        hosts: {count: 8, gpu: 1}
        leaf:
          uplinks: many
        """)
    )
    result = run("show", str(files / "f.yaml"))
    assert result.exit_code == 1
    for line, word in ((3, "radix"), (4, "gpus"), (6, "uplinks")):
        assert any(f"f.yaml:{line}:" in text and word in result.stderr for text in result.stderr.splitlines())


def test_paths_that_cannot_be_used(files: Path) -> None:
    """No such file, a folder, not UTF-8, a missing output folder: exit status 1, nothing written."""
    fabric, traffic = str(files / "f.yaml"), str(files / "t.yaml")
    assert "neither a shipped name nor a file" in run("show", "nothing-like-this").stderr
    missing = run("show", str(files / "none.yaml"))
    assert missing.exit_code == 1
    assert "cannot be read" in missing.stderr
    assert "is a folder" in run("show", str(files)).stderr
    (files / "latin.yaml").write_bytes(b"name: \xff\xfe")
    assert run("show", str(files / "latin.yaml")).exit_code == 1
    for command in (
        ["simulate", fabric, traffic, "-o", str(files / "no" / "x.txt")],
        ["diagram", fabric, "-o", str(files / "no" / "x.svg")],
        ["show", fabric, "--save", str(files / "no" / "x.json")],
    ):
        result = run(*command)
        assert result.exit_code == 1
        assert "no folder" in result.stderr
    assert not (files / "no").exists()


def test_a_fabric_on_standard_input() -> None:
    """``-`` reads standard input; an empty one is a clear fault."""
    assert run("show", "-", stdin=LEAF_SPINE.encode()).exit_code == 0
    empty = run("show", "-", stdin=b"")
    assert empty.exit_code == 1
    assert "<stdin>" in empty.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulat"], "simulate"),
        (["simulate", "f.yaml"], "Missing argument"),
        (["simulate", "f.yaml", "t.yaml", "--seed", "x"], "not a valid integer"),
        (["simulate", "f.yaml", "t.yaml", "--format", "xml"], "xml"),
        (["compare", "f.yaml", "t.yaml", "--qps", "0"], "from 1 to 1024"),
        (["compare", "f.yaml", "t.yaml", "--routing", "ecmp,,spray"], "empty entry"),
        (["compare", "f.yaml", "t.yaml", "--routing", "ecmp,ecmp"], "twice"),
        (["diagram", "f.yaml"], "Missing option"),
    ],
)
def test_wrong_usage_has_status_2(files: Path, arguments: list[str], says: str) -> None:
    """What click refuses, and what our own option checks refuse, ends with status 2."""
    paths = [str(files / word) if word.endswith(".yaml") else word for word in arguments]
    result = run(*paths)
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--routing", "ecpm"], "ecmp"),
        (["--cc", "dcqnc"], "dcqcn"),
        (["--mtu", "9000"], "4096"),
        (["--set", "leaf.uplinks"], "--set"),
        (["--set", "leaf.uplinx=3"], "uplinks"),
        (["--set", "traffic.size=3"], "size"),
        (["--placement", "fragmentd"], "fragmented"),
        (["--size", "1 G"], "GiB"),
    ],
)
def test_bad_settings_are_refused(files: Path, arguments: list[str], says: str) -> None:
    """A setting that no model knows, or that the spec does not take: exit status 1 and what is accepted."""
    result = run("simulate", str(files / "f.yaml"), str(files / "t.yaml"), *arguments)
    assert result.exit_code == 1
    assert says in result.stderr


def test_absurd_sizes_are_refused_before_memory_is_taken(files: Path) -> None:
    """System: nine million hosts (72 million NICs), and a k = 512 fat-tree of 33 million NIC ports.

    Expected: refused in well under the seconds that building them would take.
    """
    begun = time.perf_counter()
    (files / "f.yaml").write_text(LEAF_SPINE.replace("count: 8", "count: 9000000"))
    assert run("show", str(files / "f.yaml")).exit_code == 1
    (files / "f.yaml").write_text("name: f\nkind: fat-tree\nk: 512\n")
    assert run("show", str(files / "f.yaml")).exit_code == 1
    assert time.perf_counter() - begun < 2.0


def test_polarized_without_ecmp_is_refused(files: Path) -> None:
    """An option that would change nothing is wrong usage."""
    arguments = [str(files / "f.yaml"), str(files / "t.yaml"), "--polarized", "--routing", "spray"]
    result = run("simulate", *arguments)
    assert result.exit_code == 2
    assert "concerns ecmp only" in result.stderr
