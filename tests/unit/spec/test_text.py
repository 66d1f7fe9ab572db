"""YAML text: how scalars are read, where values stand, and what each refusal says."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netplan.errors import SpecError
from netplan.spec import text as text_module
from netplan.spec.text import Data, parse_value, parse_yaml

CORE_SCALARS: list[tuple[str, Data]] = [
    ("1e9", 1e9),
    ("1.5", 1.5),
    (".5", 0.5),
    ("5.", 5.0),
    ("-12", -12),
    ("+12", 12),
    ("010", 10),
    ("0o17", 15),
    ("0x1F", 31),
    (".inf", math.inf),
    ("-.INF", -math.inf),
    ("null", None),
    ("~", None),
    ("", None),
    ("true", True),
    ("FALSE", False),
    # Words and shapes that YAML 1.1 reads as something else.
    ("on", "on"),
    ("yes", "yes"),
    ("No", "No"),
    ("1:30", "1:30"),
    ("1_000", "1_000"),
    ("0b11", "0b11"),
    ("2026-11-30", "2026-11-30"),
    ("400G", "400G"),
    ("=", "="),
    ("'15'", "15"),
    ('"true"', "true"),
    ("!!str 15", "15"),
    ("!!int 15", 15),
    ("!!float 15", 15.0),
    ("!!bool true", True),
    ("!!null ~", None),
    ("!!seq [1]", [1]),
    ("!!map {a: 1}", {"a": 1}),
]


@pytest.fixture(params=["C", "Python"])
def _either_scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML may be built without its C scanner; both must read alike."""
    loader = yaml.CSafeLoader if request.param == "C" else yaml.SafeLoader
    monkeypatch.setattr(text_module, "_LOADER", loader)


def faults(text: str | bytes) -> list[tuple[str, str, str | None]]:
    with pytest.raises(SpecError) as caught:
        parse_yaml(text, "x.yaml")
    return [(fault.where, fault.message, fault.hint) for fault in caught.value.faults]


@pytest.mark.usefixtures("_either_scanner")
@pytest.mark.parametrize(("text", "value"), CORE_SCALARS)
def test_scalars_follow_yaml_1_2(text: str, value: Data) -> None:
    data = parse_yaml(f"key: {text}\n", "x.yaml").data
    assert data == {"key": value}
    assert type(data["key"]) is type(value)


def test_nan_is_a_number() -> None:
    value = parse_yaml("key: .nan", "x.yaml").data["key"]
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.usefixtures("_either_scanner")
def test_every_value_and_key_has_its_line() -> None:
    text = """\
# A comment.
leaf:
  speed: 400G

  # A value that is left out stands at its key.
  parts:
sites:
  - name: north
  -
    name: south
    racks: [1,
      2]
"""
    document = parse_yaml(text, "x.yaml")
    assert document.source == "x.yaml"
    assert document.data == {
        "leaf": {"speed": "400G", "parts": None},
        "sites": [{"name": "north"}, {"name": "south", "racks": [1, 2]}],
    }
    assert document.marks == {
        (): 2,
        ("leaf",): 3,
        ("leaf", "speed"): 3,
        ("leaf", "parts"): 6,
        ("sites",): 8,
        ("sites", 0): 8,
        ("sites", 0, "name"): 8,
        ("sites", 1): 10,
        ("sites", 1, "name"): 10,
        ("sites", 1, "racks"): 11,
        ("sites", 1, "racks", 0): 11,
        ("sites", 1, "racks", 1): 12,
    }
    assert document.key_marks == {
        ("leaf",): 2,
        ("leaf", "speed"): 3,
        ("leaf", "parts"): 6,
        ("sites",): 7,
        ("sites", 0, "name"): 8,
        ("sites", 1, "name"): 10,
        ("sites", 1, "racks"): 11,
    }


def test_an_alias_is_a_copy_that_begins_at_the_alias() -> None:
    document = parse_yaml("a: &x\n  speed: 400G\nb: *x\n", "x.yaml")
    assert document.data == {"a": {"speed": "400G"}, "b": {"speed": "400G"}}
    assert document.data["a"] is not document.data["b"]
    assert document.marks["b",] == 3
    assert document.marks["b", "speed"] == 2


def test_an_anchor_may_be_defined_again() -> None:
    assert parse_yaml("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", "x.yaml").data == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_bytes_are_utf_8_with_or_without_a_mark() -> None:
    assert parse_yaml("\ufeffsite: Zürich".encode(), "x.yaml").data == {"site": "Zürich"}
    assert parse_yaml("\ufeffsite: Zürich", "x.yaml").data == {"site": "Zürich"}


BEGIN = "begin with a line such as `name: my-fabric`"
KEEP = "keep one of them"
TAG = "remove it: a specification is made of maps, lists, texts and numbers"


@pytest.mark.usefixtures("_either_scanner")
@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("", "x.yaml", "the document is empty: it must be a map", BEGIN),
        ("# only a comment\n", "x.yaml", "the document is empty: it must be a map", BEGIN),
        ("---\n", "x.yaml", "the document is empty: it must be a map", BEGIN),
        ("\n- a\n", "x.yaml:2", "the document is a list: it must be a map", BEGIN),
        ("400", "x.yaml:1", "the document is a number: it must be a map", BEGIN),
        ("true", "x.yaml:1", "the document is a truth value: it must be a map", BEGIN),
        ("400G", "x.yaml:1", "the document is text: it must be a map", BEGIN),
        (
            "a: 1\n---\nb: 2\n",
            "x.yaml:2",
            "a second document begins here",
            "keep one document in each file",
        ),
        (b"a: 1\nb: \xff\n", "x.yaml:2", "byte 0xff is not UTF-8", "save the file as UTF-8"),
        (
            "a: 1\nb: \x00",
            "x.yaml:2",
            "character U+0000 is not allowed in YAML",
            "remove it, or write it as an escape in double quotes",
        ),
        (
            "a: \udcff",
            "x.yaml:1",
            "character U+DCFF is not allowed in YAML",
            "remove it, or write it as an escape in double quotes",
        ),
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3", "key `a` is given twice, first on line 1", KEEP),
        ("a: {b: 1, b: 2}", "x.yaml:1", "key `b` is given twice, first on line 1", KEEP),
        ("8: 1", "x.yaml:1", "key `8` is a number: it must be text", 'write "8":'),
        ("0x8: 1", "x.yaml:1", "key `0x8` is a number: it must be text", 'write "0x8":'),
        ("true: 1", "x.yaml:1", "key `true` is a truth value: it must be text", 'write "true":'),
        ("null: 1", "x.yaml:1", "key `null` is null: it must be text", 'write "null":'),
        ("? [a]\n: 1", "x.yaml:1", "a key is a list: it must be text", "check the brackets"),
        ("? {a: 1}\n: 1", "x.yaml:1", "a key is a map: it must be text", "check the brackets"),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n",
            "x.yaml:3",
            "merge key `<<` is not part of YAML 1.2",
            "write the keys out, or use an alias for a whole value",
        ),
        (
            "a: *x\nb: &x 1",
            "x.yaml:1",
            "alias `*x` has no anchor",
            "define it with `&x` before it is used",
        ),
        ("a: &x\n  - *x\n", "x.yaml:2", "alias `*x` stands inside its own value", "write the value out"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "x.yaml:1",
            "tag `!!python/object/apply:os.system` is not accepted here",
            TAG,
        ),
        ("a: !mine 1", "x.yaml:1", "tag `!mine` is not accepted here", TAG),
        ("a: !!binary aGk=", "x.yaml:1", "tag `!!binary` is not accepted here", TAG),
        ("a: !!set {b}", "x.yaml:1", "tag `!!set` is not accepted here", TAG),
        ("a: !!int abc", "x.yaml:1", "tag `!!int` is not accepted here", TAG),
        (
            f"a: {'1' * 41}",
            "x.yaml:1",
            f"integer {'1' * 41} has more than 40 digits",
            "quote it if it is text",
        ),
        (
            "a: " + "[" * 60 + "]" * 60,
            "x.yaml:1",
            "maps and lists stand more than 50 deep in one another",
            "check the brackets and the aliases",
        ),
    ],
)
def test_refusals_say_line_and_way_out(text: str | bytes, where: str, message: str, hint: str) -> None:
    assert faults(text) == [(where, message, hint)]


SYNTAX = "check the indentation, the colons and the quotes near this line"


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        (
            "a: 1\nb: c: d\n",
            "x.yaml:2",
            "not YAML: mapping values are not allowed in this context",
            SYNTAX,
        ),
        (
            "a:\n  b: [1,\n",
            "x.yaml:2",
            "not YAML: did not find expected node content (while parsing a flow node)",
            SYNTAX,
        ),
        (
            "a:\n\t- b\n",
            "x.yaml:2",
            "not YAML: found character that cannot start any token (while scanning for the next token)",
            "indent with spaces, not with tabs",
        ),
        ("%YAML 3.0\n---\na: 1", "x.yaml:1", "not YAML: found incompatible YAML document", SYNTAX),
    ],
)
def test_syntax_errors_say_line_and_way_out(text: str, where: str, message: str, hint: str) -> None:
    assert faults(text) == [(where, message, hint)]


def test_half_a_surrogate_pair_is_refused_by_both_scanners(monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, message, _),) = faults('a: "\\ud800"')
    assert message.startswith("not YAML: found invalid Unicode character escape code")
    monkeypatch.setattr(text_module, "_LOADER", yaml.SafeLoader)
    assert faults('a: "\\ud800"') == [
        ("x.yaml:1", "half of a surrogate pair is not text", "write the character itself")
    ]


def test_impossible_escape_of_the_python_scanner_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_LOADER", yaml.SafeLoader)
    ((where, message, hint),) = faults('a: "\\UFFFFFFFF"')
    assert where == "x.yaml:1"
    assert message.startswith("not YAML: ")
    assert hint == "check the escapes in double quotes"


def test_all_faults_are_reported_together() -> None:
    text = "a: 1\na: 2\nb: !x 1\n3: 4\nb: 5\nc: [\n"
    assert [(where, message.partition(":")[0]) for where, message, _ in faults(text)] == [
        ("x.yaml:2", "key `a` is given twice, first on line 1"),
        ("x.yaml:3", "tag `!x` is not accepted here"),
        ("x.yaml:4", "key `3` is a number"),
        ("x.yaml:5", "key `b` is given twice, first on line 3"),
        ("x.yaml:6", "not YAML"),
    ]


def test_billion_laughs_are_refused_before_they_are_told() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    ((where, message, hint),) = faults("\n".join(lines))
    # By hand: a line of level i adds 10 (10^(i+1) + ...) values: 100,000 is passed on the fifth line.
    assert where == "x.yaml:5"
    assert message == "aliases expand to more than 100,000 values"
    assert hint == "write the values out"


def test_aliases_cannot_nest_deeper_than_the_text_may() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 200)]
    ((where, message, _),) = faults("\n".join(lines))
    assert (where, message) == ("x.yaml:50", "maps and lists stand more than 50 deep in one another")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_nesting_without_end_is_refused(opening: str) -> None:
    assert faults("a:\n  " + opening * 20_000)


@pytest.mark.parametrize(
    ("text", "value"), [("15", 15), ("400G", "400G"), ("", None), ("[1, a]", [1, "a"]), ("{n: 2}", {"n": 2})]
)
def test_parse_value_reads_what_may_stand_behind_a_key(text: str, value: Data) -> None:
    assert parse_value(text, "--set x") == value


def test_parse_value_names_the_option_and_not_a_line() -> None:
    with pytest.raises(SpecError) as caught:
        parse_value("{a: 1, a: 2}", "--set x={a: 1, a: 2}")
    assert str(caught.value) == (
        "--set x={a: 1, a: 2}: key `a` is given twice, first before\n  hint: keep one of them"
    )


YAML_ALPHABET = st.text(alphabet="ab1.:-?[]{},&*!|>'\"%@`#~<= \n\t\\0xuU\x00é", max_size=40)


@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader])
@given(text=st.text(max_size=40) | YAML_ALPHABET | st.binary(max_size=20))
def test_any_text_is_read_or_refused_with_a_place(loader: type[yaml.SafeLoader], text: str | bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "_LOADER", loader)
        try:
            document = parse_yaml(text, "x.yaml")
        except SpecError as error:
            refused = error
        else:
            assert isinstance(document.data, dict)
            assert set(document.key_marks) <= set(document.marks)
            return
    assert refused.faults
    assert all(fault.where.startswith("x.yaml") for fault in refused.faults)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(data=st.dictionaries(st.text(), PLAIN, max_size=4))
def test_what_yaml_writes_with_quotes_is_read_back(data: dict[str, Data]) -> None:
    text = yaml.safe_dump(data, default_style='"', sort_keys=False)
    assert repr(parse_yaml(text, "x.yaml").data) == repr(data)
