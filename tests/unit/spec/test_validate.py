"""Documents against models: each kind of fault has its place, its words and its hint."""

import enum
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Discriminator, Field, TypeAdapter, create_model, field_validator, model_validator

from netplan.errors import SpecError
from netplan.spec.base import Refusal, Refusals, SpecModel
from netplan.spec.quantity import Count, Length, Name, Rate, Ratio
from netplan.spec.text import Document, parse_yaml
from netplan.spec.validate import _split_path, dotted, split_overrides, validate


class Medium(enum.Enum):
    COPPER = "copper"
    FIBRE = "fibre"


class Leaf(SpecModel):
    """A leaf switch."""

    uplinks: Count
    """Uplinks of each leaf.

    The rest of the text is for ``netplan explain``.
    """
    planes: Count = 2
    speed: Rate = 5e10
    medium: Medium = Medium.COPPER
    is_lossless: bool = False

    @model_validator(mode="after")
    def _planes_are_equal(self) -> Self:
        if self.uplinks % self.planes:
            message = f"is not a multiple of planes ({self.planes})"
            raise Refusal(message, hint="14 or 16", path="uplinks")
        return self


class Site(SpecModel):
    name: Name
    racks: Count | Literal["auto"] = "auto"
    span: Annotated[Length, Field(le=100e3)] = 0.0
    links: tuple[Rate, ...] = ()


class LeafSpine(SpecModel):
    # The kind is also the name of a field: the location of an error must not mix them up.
    kind: Literal["leaf"]
    leaf: Leaf
    sites: Annotated[tuple[Site, ...], Field(min_length=1, max_length=3)] = (Site(name="here"),)
    spans: dict[Name, Length] = Field(default_factory=dict)
    loads: Annotated[tuple[Ratio, Ratio] | None, Field(description="two")] = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [site.name for site in self.sites]
        refusals = [
            Refusal("is used before", path=f"sites[{i}].name")
            for i, name in enumerate(names)
            if name in names[:i]
        ]
        if refusals:
            raise Refusals(refusals)
        return self


class Custom(SpecModel):
    kind: Literal["custom"]
    part: Leaf | Site | None = None
    note: str = ""

    @field_validator("note")
    @classmethod
    def _note_is_short(cls, note: str) -> str:
        if len(note) > 5:
            message = "notes are short"
            raise ValueError(message)
        return note

    @model_validator(mode="after")
    def _note_fits(self) -> Self:
        if self.note == "no":
            message = "a note that says nothing"
            raise Refusal(message)
        if self.note == "part":
            message = "is not what the note says"
            raise Refusal(message, path=("part", "planes"))
        return self


Fabric = LeafSpine | Custom
FABRIC = TypeAdapter[Fabric](Annotated[Fabric, Discriminator("kind")])

GOOD = """\
kind: leaf
leaf:
  uplinks: 16
sites:
  - name: north
  - name: south
"""


def document(text: str) -> Document:
    return parse_yaml(text, "x.yaml")


def faults(text: str, overrides: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(SpecError) as caught:
        validate(FABRIC, document(text), overrides=overrides)
    return [str(fault) for fault in caught.value.faults]


def test_a_good_document_becomes_its_model() -> None:
    fabric = validate(FABRIC, document(GOOD))
    assert fabric == LeafSpine(
        kind="leaf", leaf=Leaf(uplinks=16), sites=(Site(name="north"), Site(name="south"))
    )


def test_a_model_works_as_well_as_an_adapter() -> None:
    assert validate(Leaf, document("uplinks: 4")) == Leaf(uplinks=4)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        # Keys.
        ("kind: leaf\n", "x.yaml:1: leaf is missing\n  hint: add `leaf:` at the top level"),
        (
            "kind: leaf\nleaf: {planes: 2}\n",
            "x.yaml:2: leaf.uplinks is missing\n  hint: add `uplinks:` to `leaf`: Uplinks of each leaf.",
        ),
        (
            GOOD + "  -\n    racks: 3\n",
            "x.yaml:8: sites[2].name is missing\n  hint: add `name:` to `sites[2]`",
        ),
        (
            "kind: leaf\nleaf:\n  uplinks: 16\n  plane:\n    - 2\n",
            (
                "x.yaml:4: leaf.plane: unknown key; accepted: uplinks, planes, speed, medium, is_lossless\n"
                "  hint: did you mean `planes`?"
            ),
        ),
        (
            "kind: custom\nzebra: 1\n",
            "x.yaml:2: zebra: unknown key; accepted: kind, part, note",
        ),
        # The key that tells the members of a union apart.
        (
            "kind: leef\nleaf: {}\n",
            "x.yaml:1: kind = 'leef': must be one of leaf, custom\n  hint: did you mean `leaf`?",
        ),
        ("leaf: {}\nkind: zebra\n", "x.yaml:2: kind = 'zebra': must be one of leaf, custom"),
        (
            "kind: [leaf]\n",
            "x.yaml:1: kind: must be one of leaf, custom",
        ),
        ("\nleaf: {}\n", "x.yaml:2: kind is missing: must be one of leaf, custom\n  hint: add `kind: leaf`"),
        # Types.
        (
            "kind: leaf\nleaf: {uplinks: 16}\nsites: {a: b}\n",
            "x.yaml:3: sites: must be a list",
        ),
        ("kind: leaf\nleaf:\n  - 1\n", "x.yaml:2: leaf: must be a map"),
        ("kind: leaf\nleaf: 3\n", "x.yaml:2: leaf = 3: must be a map"),
        (
            "kind: leaf\nleaf:\n# nothing\n",
            "x.yaml:2: leaf = null: must be a map\n  hint: give it a value, or leave the key out",
        ),
        (
            "kind: leaf\nleaf: {uplinks: 16, is_lossless: yes}\n",
            "x.yaml:2: leaf.is_lossless = 'yes': must be true or false\n  hint: write true",
        ),
        (
            "kind: leaf\nleaf: {uplinks: 16, is_lossless: 1}\n",
            "x.yaml:2: leaf.is_lossless = 1: must be true or false",
        ),
        ("kind: custom\nnote: 3\n", 'x.yaml:2: note = 3: must be text\n  hint: write "3", in quotes'),
        (
            "kind: custom\nnote: false\n",
            'x.yaml:2: note = false: must be text\n  hint: write "false", in quotes',
        ),
        (
            "kind: leaf\nleaf: {uplinks: 1e1}\n",
            "x.yaml:2: leaf.uplinks = 10.0: must be a whole number\n  hint: write 10",
        ),
        # Values.
        (
            "kind: leaf\nleaf: {uplinks: 16, medium: fiber}\n",
            "x.yaml:2: leaf.medium = 'fiber': must be one of copper, fibre\n  hint: did you mean `fibre`?",
        ),
        (
            "kind: leaf\nleaf: {uplinks: 16, medium: [fibre]}\n",
            "x.yaml:2: leaf.medium: must be one of copper, fibre",
        ),
        (
            "kind: leaf\nleaf:\n  uplinks:\n    0\n",
            "x.yaml:4: leaf.uplinks = 0: must be at least 1",
        ),
        (
            GOOD + "    span: 101 km\n",
            "x.yaml:7: sites[1].span = '101 km': must be at most 100 km",
        ),
        (
            GOOD + "    links:\n      - 400G\n      - 400g\n",
            (
                "x.yaml:9: sites[1].links[1] = '400g' is not a rate: it has the unit 'g'; accepted: bits per"
                " second as 400G or 400 Gb/s, bytes per second as 50 GB/s or 50 GiB/s (k, M, G, T, P)\n"
                "  hint: write 400G"
            ),
        ),
        (
            "kind: leaf\nleaf: {uplinks: 16}\nsites: []\n",
            "x.yaml:3: sites has 0 entries: it must have at least 1",
        ),
        (
            GOOD + "  - name: a\n  - name: b\n",
            "x.yaml:4: sites has 4 entries: it must have at most 3",
        ),
        (GOOD + "loads: [1, -1]\n", "x.yaml:7: loads[1] = -1: must be at least 0"),
        (
            GOOD + "spans:\n  a: 0.5 km\n  b: -1 m\n",
            (
                "x.yaml:9: spans.b = '-1 m' is negative: a length must be 0 or more; accepted: mm, cm, m, km,"
                " as 30 km\n  hint: write 1 m"
            ),
        ),
        (
            GOOD + "spans:\n  a b: 1 m\n",
            (
                "x.yaml:8: spans.a b is not a name: it must begin with a letter or a digit,"
                " and go on with these or . _ -\n  hint: write a-b"
            ),
        ),
        # Members of a union without a discriminator.
        (
            GOOD + "    racks: no\n",
            "x.yaml:7: sites[1].racks = 'no': must be a whole number, or must be auto",
        ),
        (GOOD + "    racks: 0\n", "x.yaml:7: sites[1].racks = 0: must be at least 1, or must be auto"),
        (
            GOOD + "    racks: atuo\n",
            (
                "x.yaml:7: sites[1].racks = 'atuo': must be a whole number, or must be auto\n"
                "  hint: did you mean `auto`?"
            ),
        ),
        ("kind: custom\npart: 3\n", "x.yaml:2: part = 3: must be a map"),
        (
            "kind: custom\npart: {name: a b}\n",
            (
                "x.yaml:2: part.name = 'a b' is not a name: it must begin with a letter or a digit,"
                " and go on with these or . _ -\n  hint: write a-b"
            ),
        ),
        (
            "kind: custom\npart: {uplinks: 15}\n",
            "x.yaml:2: part.uplinks = 15 is not a multiple of planes (2)\n  hint: 14 or 16",
        ),
        # Rules of models.
        (
            "kind: leaf\nleaf:\n  uplinks: 15\n",
            "x.yaml:3: leaf.uplinks = 15 is not a multiple of planes (2)\n  hint: 14 or 16",
        ),
        ("kind: custom\nnote: too long\n", "x.yaml:2: note = 'too long': notes are short"),
        ("kind: custom\nnote: no\n", "x.yaml:1: a note that says nothing"),
        ("kind: custom\nnote: part\n", "x.yaml:1: part.planes is not what the note says"),
        (
            "kind: custom\nnote: part\npart:\n  uplinks: 4\n",
            "x.yaml:3: part.planes is not what the note says",
        ),
    ],
)
def test_one_fault_is_reported_once(text: str, fault: str) -> None:
    assert faults(text) == [fault]


def test_several_refusals_of_one_rule() -> None:
    text = "kind: leaf\nleaf: {uplinks: 2}\nsites:\n- name: a\n- name: a\n- name: a\n"
    assert faults(text) == [
        "x.yaml:5: sites[1].name = 'a' is used before",
        "x.yaml:6: sites[2].name = 'a' is used before",
    ]


def test_all_faults_come_in_the_order_of_the_text() -> None:
    text = "sites:\n  - nam: a\nkind: leaf\nfoo: 1\nleaf:\n  planes: 0\n"
    assert [fault.partition("\n")[0] for fault in faults(text)] == [
        "x.yaml:2: sites[0].name is missing",
        "x.yaml:2: sites[0].nam: unknown key; accepted: name, racks, span, links",
        "x.yaml:4: foo: unknown key; accepted: kind, leaf, sites, spans, loads",
        "x.yaml:5: leaf.uplinks is missing",
        "x.yaml:6: leaf.planes = 0: must be at least 1",
    ]


def test_long_lists_of_keys_are_not_printed() -> None:
    fields: Any = {f"key_{i}": (int, 0) for i in range(30)}
    model = create_model("Wide", __base__=SpecModel, **fields)
    with pytest.raises(SpecError, match=r"^x.yaml:1: kye_7: unknown key\n  hint: did you mean `key_7`\?$"):
        validate(model, document("kye_7: 1"))


def test_long_values_are_cut() -> None:
    (fault,) = faults(f"kind: {'x' * 100}")
    assert fault == f"x.yaml:1: kind = '{'x' * 56}...: must be one of leaf, custom"


def test_a_model_may_contain_itself() -> None:
    class Tree(SpecModel):
        kind: Literal["tree"] = "tree"
        branches: "tuple[Tree, ...]" = ()

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    with pytest.raises(
        SpecError, match=r"^x.yaml:1: branches\[0\].branches\[0\].branches = 3: must be a list$"
    ):
        validate(Tree, document("branches: [{branches: [{branches: 3}]}]"))


def test_fields_may_have_another_name_in_the_text() -> None:
    class Span(SpecModel):
        from_: Name = Field(alias="from")
        to: Name

    with pytest.raises(SpecError) as caught:
        validate(Span, document("form: a\nto: 3\n"))
    assert [str(fault).partition("\n")[0] for fault in caught.value.faults] == [
        "x.yaml:1: from is missing",
        "x.yaml:1: form: unknown key; accepted: from, to",
        "x.yaml:2: to = 3: must be text",
    ]


# ---- Overrides ---------------------------------------------------------------------------------------------


def test_overrides_replace_and_add() -> None:
    overrides = {
        "leaf.uplinks": "8",
        "leaf.medium": "fibre",
        "sites[0].racks": "3",
        "sites.1.span": "5 km",
        "spans.x": "1 m",
        "loads": "[0.5, 1]",
    }
    text = document(GOOD)
    fabric = validate(FABRIC, text, overrides=overrides)
    assert fabric == LeafSpine(
        kind="leaf",
        leaf=Leaf(uplinks=8, medium=Medium.FIBRE),
        sites=(Site(name="north", racks=3), Site(name="south", span=5e3)),
        spans={"x": 1.0},
        loads=(0.5, 1.0),
    )
    assert text.data == document(GOOD).data


def test_a_fault_in_an_override_is_placed_there() -> None:
    assert faults(GOOD, {"leaf.uplinks": "15"}) == [
        "--set leaf.uplinks=15: leaf.uplinks = 15 is not a multiple of planes (2)\n  hint: 14 or 16"
    ]


def test_a_fault_inside_an_overriding_map_is_placed_there() -> None:
    assert faults(GOOD, {"leaf": "{uplinks: 0}"}) == [
        "--set leaf={uplinks: 0}: leaf.uplinks = 0: must be at least 1"
    ]


def test_a_later_override_hides_an_earlier_one_inside_it() -> None:
    assert faults(GOOD, {"leaf.uplinks": "15", "leaf": "{uplinks: 13}"}) == [
        "--set leaf={uplinks: 13}: leaf.uplinks = 13 is not a multiple of planes (2)\n  hint: 14 or 16"
    ]


def test_a_fault_of_a_map_that_an_override_made_is_placed_there() -> None:
    assert faults("kind: leaf\n", {"leaf.planes": "2"}) == [
        (
            "--set leaf.planes=2: leaf.uplinks is missing\n"
            "  hint: add `uplinks:` to `leaf`: Uplinks of each leaf."
        )
    ]


def test_a_fault_beside_an_override_keeps_its_line() -> None:
    assert faults("kind: leaf\nleaf:\n  uplinks: 15\n  speed: 1G\n", {"leaf.speed": "2G"}) == [
        "x.yaml:3: leaf.uplinks = 15 is not a multiple of planes (2)\n  hint: 14 or 16"
    ]


def test_faults_of_overrides_come_last() -> None:
    assert [fault.partition(":")[0] for fault in faults("kind: leaf\n", {"sites": "3"})] == [
        "x.yaml",
        "--set sites=3",
    ]


def test_an_override_fills_a_value_that_is_left_out() -> None:
    fabric = validate(FABRIC, document("kind: leaf\nleaf:\n"), overrides={"leaf.uplinks": "4"})
    assert fabric == LeafSpine(kind="leaf", leaf=Leaf(uplinks=4))


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        (
            "kind.x",
            "1",
            "--set kind.x=1: `kind` is 'leaf': there is nothing in it to set\n  hint: set `kind` itself",
        ),
        (
            "leaf..x",
            "1",
            (
                "--set leaf..x=1: `leaf..x` is not the path of a field\n"
                "  hint: write names with dots and indices in brackets, as sites[0].hosts.count"
            ),
        ),
        (
            "sites[x]",
            "1",
            (
                "--set sites[x]=1: `sites[x]` is not the path of a field\n"
                "  hint: write names with dots and indices in brackets, as sites[0].hosts.count"
            ),
        ),
        (
            "sites[2].name",
            "a",
            (
                "--set sites[2].name=a: `sites` is a list of 2: it has no [2]\n"
                "  hint: write sites[0] to sites[1]"
            ),
        ),
        (
            "sites.name",
            "a",
            (
                "--set sites.name=a: `sites` is a list of 2: it has no [name]\n"
                "  hint: write sites[0] to sites[1]"
            ),
        ),
        (
            f"sites[{'9' * 9}]",
            "1",
            (
                "--set sites[999999999]=1: `sites` is a list of 2: it has no [999999999]\n"
                "  hint: write sites[0] to sites[1]"
            ),
        ),
        ("leaf[0]", "1", "--set leaf[0]=1: `leaf` is a map: it has no [0]\n  hint: its keys: uplinks"),
        (
            "spam[0]",
            "1",
            (
                "--set spam[0]=1: there is no list `spam` that could have a [0]\n"
                "  hint: set the whole list, as spam=[...]"
            ),
        ),
        (
            "leaf.speed",
            "[",
            (
                "--set leaf.speed=[: not YAML: did not find expected node content"
                " (while parsing a flow node)\n"
                "  hint: check the indentation, the colons and the quotes near this line"
            ),
        ),
    ],
)
def test_an_override_that_cannot_be_applied(key: str, value: str, fault: str) -> None:
    assert faults(GOOD, {key: value}) == [fault]


def test_all_overrides_that_cannot_be_applied_are_reported() -> None:
    assert len(faults(GOOD, {"kind.x": "1", "leaf[0]": "1", "leaf.uplinks": "8"})) == 2


def test_split_overrides() -> None:
    assert split_overrides(["a.b=1", " c = x=y ", "d=", "a.b=2"]) == {"a.b": "2", "c": "x=y", "d": ""}


def test_malformed_overrides_are_refused_together() -> None:
    with pytest.raises(SpecError) as caught:
        split_overrides(["uplinks", "=3", "a=1"])
    assert str(caught.value) == (
        "--set uplinks: no `=`\n  hint: write --set key=value, as --set leaf.uplinks=16\n"
        "--set =3: no key before `=`\n  hint: write --set key=value, as --set leaf.uplinks=16"
    )


# ---- Laws --------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["kind", "leaf", "uplinks", "sites", "name", "racks", "part", "note", "spans", "x"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 20)
    | st.floats()
    | st.sampled_from(["leaf", "custom", "auto", "400G", "30 km", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(
    data=st.dictionaries(KEYS, VALUES, max_size=5).map(lambda data: {"kind": "leaf"} | data),
    overrides=st.dictionaries(
        st.lists(KEYS | st.sampled_from(["[0]", "1"]), min_size=1, max_size=3).map(".".join),
        st.sampled_from(["1", "x", "[a]", "{name: a}", "{", ""]),
        max_size=2,
    ),
)
def test_any_data_is_a_model_or_has_faults_with_places(data: Any, overrides: dict[str, str]) -> None:
    text = Document("x.yaml", data, {(): 1}, {})
    try:
        fabric = validate(FABRIC, text, overrides=overrides)
    except SpecError as error:
        refused = error
    else:
        assert isinstance(fabric, (LeafSpine, Custom))
        return
    assert refused.faults
    assert len(set(refused.faults)) == len(refused.faults)
    for fault in refused.faults:
        assert fault.where.startswith(("x.yaml:", "--set "))
        assert "union" not in fault.message
        assert "function-" not in fault.message


@given(path=st.lists(st.sampled_from(["a", "b_c", "d-e"]) | st.integers(0, 99), min_size=1).map(tuple))
def test_paths_are_written_as_they_are_read(path: tuple[str | int, ...]) -> None:
    if isinstance(path[0], str):
        assert _split_path(dotted(path)) == list(path)
