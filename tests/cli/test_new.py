"""``netplan new``: what it writes loads, validates and builds, whichever optional key is taken in."""

import re

import pytest
from click.testing import CliRunner

from netplan.cli.main import cli
from netplan.cli.new import OPTIONS, template
from netplan.spec.fabric import FABRIC_SPEC
from netplan.spec.template import spec_fields, spec_kinds
from netplan.spec.text import parse_yaml
from netplan.spec.validate import validate
from netplan.topology import FAMILIES, build_fabric

OPTION_LINE = re.compile(r"^ *(?:- )?#(?=[^ \n#])", re.MULTILINE)

#: Every family, and what else `new` can be asked for.
CASES = [
    *((kind, {}) for kind in OPTIONS),
    ("rail-optimized", {"tiers": "3"}),
    ("rail-only", {"tiers": "2"}),
    ("rail-only", {"hosts": 100, "gpus": 4}),
    ("multi-plane", {"tiers": "3", "radix": 16, "planes": 4}),
    ("multi-plane", {"planes": 8, "gpus": 4, "hosts": 20}),
    ("dual-tor", {"tiers": "3", "radix": 16}),
    ("dual-tor", {"hosts": 40, "nic": "200G"}),
    ("leaf-spine", {"hosts": 3, "gpus": 4, "nic": "200G", "radix": 32}),
    ("leaf-spine", {"hosts": 1}),
    ("clos", {"gpus": 4, "radix": 16}),
    ("fat-tree", {"gpus": 2, "radix": 8}),
    ("metro", {"hosts": 64, "nic": "800G"}),
    ("metro", {"hosts": 3, "gpus": 2}),
    ("dragonfly", {"hosts": 20, "gpus": 4, "nic": "200G", "radix": 16}),
    ("dragonfly-plus", {"hosts": 9, "gpus": 1, "radix": 8}),
    ("slim-fly", {"hosts": 40, "gpus": 4, "radix": 32}),
    ("torus", {"hosts": 30, "gpus": 4, "radix": 16}),
    ("torus", {"dims": [4, 2]}),
    ("hyperx", {"hosts": 10, "gpus": 2}),
    ("hyperx", {"dims": [6], "gpus": 1}),
    ("custom", {"hosts": 5, "gpus": 2, "radix": 48}),
    ("custom", {"hosts": 1}),
]


def build(text):
    return build_fabric(validate(FABRIC_SPEC, parse_yaml(text.encode(), "new.yaml")))


def columns(fabric):
    return (
        fabric.n_hosts,
        fabric.n_endpoints,
        sorted(fabric.nodes.tier.tolist()),
        sorted(fabric.links.capacity.tolist()),
        fabric.links.src.tolist(),
        fabric.links.dst.tolist(),
    )


def run(*arguments):
    return CliRunner().invoke(cli, ["new", *arguments])


def test_every_family_has_a_template_and_nothing_else_has():
    assert set(OPTIONS) == set(FAMILIES.names()) == set(spec_kinds("fabric"))


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_what_is_written_builds(kind, given):
    fabric = build(template(kind, "x", given))
    assert fabric.kind == kind
    assert fabric.name == "x"
    if "hosts" in given:
        assert fabric.n_hosts == given["hosts"] * (2 if kind == "metro" else 1)
    if "gpus" in given:
        assert set(fabric.gpus_per_host.tolist()) == {given["gpus"]}


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_each_optional_line_can_be_taken_in_and_is_what_holds_without_it(kind, given):
    # A value that is shown for an option is its default or what follows: the fabric stays the same.
    text = template(kind, "x", given)
    expected = columns(build(text))
    places = list(OPTION_LINE.finditer(text))
    assert len(places) > 5
    for place in places:
        changed = text[: place.end() - 1] + text[place.end() :]
        line = changed[place.start() :].partition("\n")[0]
        assert columns(build(changed)) == expected, line


def paths(data, prefix=""):
    """Dotted paths of all keys, as `spec_fields` has them."""
    for key, value in data.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{key}.")
        elif isinstance(value, list) and isinstance(value[0], dict):
            yield from paths(value[0], f"{prefix}{key}[].")


@pytest.mark.parametrize("kind", list(OPTIONS))
def test_every_field_of_the_family_is_there(kind):
    # In two tiers those of three tiers are left out, and the file says so.
    most = {"rail-optimized": "3", "multi-plane": "3", "dual-tor": "3", "rail-only": "2"}
    text = template(kind, "x", {"tiers": most[kind]} if kind in most else {})
    there = set(paths(parse_yaml(OPTION_LINE.sub(lambda found: found[0][:-1], text).encode(), "").data))
    wanted = {field.path for field in spec_fields("fabric") if kind in field.kinds}
    assert {path for path in there if not path.startswith("sites[].fabric.")} == wanted
    assert ("are not listed here" in text) == (kind == "metro")


def test_it_writes_a_file_and_says_what_is_next(tmp_path):
    path = tmp_path / "f.yaml"
    result = run("rail-optimized", "--name", "rails", "--hosts", "128", "-o", str(path))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "netplan show" in result.stderr
    assert build(path.read_text(encoding="utf-8")).n_endpoints == 1024


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("mine", encoding="utf-8")
    result = run("clos", "-o", str(path))
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert "--force" in result.stderr
    assert path.read_text(encoding="utf-8") == "mine"
    assert run("clos", "-o", str(path), "--force").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("# A clos fabric.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rail-optimised"], ["Did you mean 'rail-optimized'?"]),
        (["torrus"], ["'torrus' is not one of leaf-spine", "Did you mean 'torus'?"]),
        (["dragonfly", "--tiers", "2"], ["dragonfly has no --tiers", "direct network"]),
        (["dragonfly", "--dims", "4x4"], ["dragonfly has no --dims", "torus and hyperx"]),
        (["torus", "--dims", "4x1"], ["'4x1'", "8x8x4"]),
        (["hyperx", "--dims", "a"], ["'a'", "8x8x4"]),
        (["fat-tree", "--hosts", "4"], ["fat-tree has no --hosts", "--radix"]),
        (["leaf-spine", "--tiers", "3"], ["leaf-spine has no --tiers", "clos"]),
        (["metro", "--tiers", "3"], ["metro has no --tiers"]),
        (["rail-only", "--tiers", "3"], ["rail-only has 1 or 2 tiers, not 3"]),
        (["rail-optimized", "--tiers", "1"], ["rail-optimized has 2 or 3 tiers, not 1"]),
        (["clos", "--planes", "2"], ["clos has no --planes", "multi-plane"]),
        (["dual-tor", "--planes", "2"], ["dual-tor has no --planes", "it has two"]),
        (["clos", "--nic", "400"], ["400", "400G"]),
        (["clos", "--nic", "0G"], ["more than 0"]),
        (["clos", "--name", "a b"], ["'a b' is not a name"]),
        (["clos", "--hosts", "0"], ["0"]),
        (["fat-tree", "--radix", "7"], ["even"]),
        ([], ["KIND"]),
    ],
)
def test_a_wrong_call_is_a_usage_error(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert all(word in result.stderr for word in words), result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leaf-spine", "--hosts", "100000"], ["leaves", "feasible"]),
        (["leaf-spine", "--radix", "4"], ["no host fits"]),
        (["clos", "--hosts", "4"], ["one pod"]),
        (["metro", "--hosts", "20000"], ["leaves"]),
        (["dragonfly", "--radix", "8"], ["no host fits", "spread"]),
        (["torus", "--radix", "8"], ["8 endpoints + 6", "radix is 8"]),
        (["torus", "--dims", "2x2", "--hosts", "5"], ["the routers hold 4"]),
    ],
)
def test_an_infeasible_fabric_is_refused_and_nothing_is_written(tmp_path, arguments, words):
    path = tmp_path / "f.yaml"
    result = run(*arguments, "-o", str(path))
    assert result.exit_code == 1
    assert all(word in result.stderr for word in words), result.stderr
    assert not path.exists()


def test_a_name_that_yaml_would_read_as_something_else_is_quoted():
    for name in ("123", "1e9", "true", "null"):
        assert build(template("fat-tree", name, {"radix": 4})).name == name
