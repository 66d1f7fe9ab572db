"""What specs of direct networks refuse, with the line, and what they say of themselves."""

import pytest

from netplan.errors import SpecError
from netplan.spec.direct import GroupCablesSpec, is_prime_power
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.template import spec_fields
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate

REFUSED: list[tuple[str, list[str]]] = [
    ("kind: dragonfly", ["nothing says how large the fabric is", "give radix, hosts.count"]),
    ("kind: dragonfly\nhosts: {gpus: 4}", ["nothing says how large"]),
    ("kind: dragonfly-plus", ["nothing says how large", "group.leaves or group.spines"]),
    ("kind: slim-fly", ["nothing says how large", "q, radix or hosts.count"]),
    ("kind: slim-fly\nq: 28", ["f.yaml:3: q = 28 is not a power of a prime", "feasible: 25, 27, 29, 31"]),
    ("kind: slim-fly\nq: 6", ["q = 6 is not a power of a prime", "4, 5, 7, 8"]),
    ("kind: slim-fly\nq: 2", ["q = 2"]),
    ("kind: slim-fly\nq: 200", ["q = 200"]),
    ("kind: torus", ["dims"]),
    ("kind: torus\ndims: [4, 1]", ["f.yaml:3: dims[1] = 1"]),
    ("kind: torus\ndims: []", ["dims"]),
    ("kind: torus\ndims: [2, 2, 2, 2, 2, 2, 2]", ["dims"]),
    ("kind: torus\ndims: 4x4", ["dims"]),
    (
        "kind: torus\ndims: [4, 4]\nbundles: [1]\ncables: {dimensions: [3 m, 4 m, 5 m]}",
        ["f.yaml:4: bundles", "has 1 values for 2 dimensions", "f.yaml:5: cables.dimensions", "has 3 values"],
    ),
    (
        "kind: hyperx\ndims: [4, 4]\ncables: {local: 3 m, dimensions: [3 m, 4 m]}",
        ["cables.local", "is not used: cables.dimensions has all lengths"],
    ),
    (
        "kind: torus\ndims: [2, 4]\nwrap: false\npair_cables: 2",
        ["pair_cables = 2 is not used: wrap = false"],
    ),
    ("kind: hyperx\ndims: [4]\nwrap: true", ["wrap: unknown key"]),
    ("kind: dragonfly\nradix: 8\ncables: {globl: 4 m}", ["cables.globl: unknown key", "global"]),
    ("kind: dragonfly\nradix: 8\ncables: {global: 4}", ["cables.global = 4", "unit"]),
    ("kind: dragonfly\nradix: 8\narrangement: palm", ["arrangement", "palmtree"]),
    ("kind: dragonfly\nradix: 8\nhosts: {attach: rail}", ["hosts.attach", "one-router", "spread"]),
    ("kind: dragonfly\nradix: 8\ngroups: 1", ["groups = 1"]),
    ("kind: dragonfly-pus\nradix: 8", ["dragonfly-plus"]),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_is_wrong_is_said_with_its_place(text: str, words: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        validate(FABRIC_SPEC, parse_yaml(f"name: x\n{text}\n".encode(), "f.yaml"))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_cable_lengths_have_the_names_of_their_kinds() -> None:
    spec = validate(
        FABRIC_SPEC,
        parse_yaml(b"name: x\nkind: dragonfly\nradix: 8\ncables: {global: 40 m, local: 4 m}\n", "f.yaml"),
    )
    assert isinstance(spec.cables, GroupCablesSpec)  # type: ignore[union-attr]
    assert spec.model_dump(mode="json", exclude_unset=True)["cables"] == {"global": "40 m", "local": "4 m"}
    again = FABRIC_SPEC.validate_python(spec.model_dump(mode="json", exclude_unset=True))
    assert again == spec


def test_every_field_is_explained() -> None:
    direct = {"dragonfly", "dragonfly-plus", "slim-fly", "torus", "hyperx"}
    fields = [field for field in spec_fields("fabric") if set(field.kinds) & direct]
    assert {kind for field in fields for kind in field.kinds} >= direct
    assert all(field.description.endswith(".") for field in fields)
    assert {"cables.global", "router.global_links", "spine.global_links", "dims", "q"} <= {
        field.path for field in fields
    }


def test_prime_powers() -> None:
    # OEIS A246655 up to 64.
    listed = [
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        11,
        13,
        16,
        17,
        19,
        23,
        25,
        27,
        29,
        31,
        32,
        37,
        41,
        43,
        47,
        49,
        53,
        59,
        61,
        64,
    ]
    assert [n for n in range(2, 65) if is_prime_power(n)] == listed
