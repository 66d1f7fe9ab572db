"""``netplan explain``: every word is found, and says what the documentation says."""

import json

import pytest
from click.testing import CliRunner

from netplan.catalog.glossary import load_glossary
from netplan.cli.explain import KINDS, all_entries, find_entries
from netplan.cli.main import cli
from netplan.congestion.line_rate import TRANSPORTS
from netplan.fabric.checks import CHECKS
from netplan.routing import SCHEMES
from netplan.spec.template import spec_fields
from netplan.topology import FAMILIES
from netplan.traffic import PATTERNS


def run(*arguments):
    return CliRunner().invoke(cli, ["explain", *arguments])


def found(word):
    return {(entry.kind, entry.name) for entry in find_entries(word, all_entries())}


def test_every_registered_thing_can_be_explained():
    for family in FAMILIES:
        assert ("family", family.kind) in found(family.kind)
    for pattern in PATTERNS:
        assert ("pattern", pattern.kind) in found(pattern.kind)
    for scheme in SCHEMES:
        assert ("routing", scheme.name) in found(scheme.name)
    for check in CHECKS.values():
        assert found(check.code) == found(check.title) == {("check", check.code)}
    for term in load_glossary():
        assert ("term", term.term) in found(term.term)
        assert all(("term", term.term) in found(word) for word in term.also)
    for what in ("fabric", "traffic"):
        for field in spec_fields(what):
            assert ("field", field.name) in found(field.path)
            assert ("field", field.name) in found(f"{what}.{field.path}")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("np104", "NP104"),
        ("bus_bandwidth", "bus bandwidth"),
        ("efficiency", "bandwidth efficiency"),
        ("sites[1].fabric", "sites[].fabric"),
        ("sites[0].fabric.leaf.uplinks", "leaf.uplinks"),
        ("fabric.hosts.nic_speed", "hosts.nic_speed"),
        ("window", "traffic.window"),
    ],
)
def test_spellings(word, name):
    assert name in {name for _, name in found(word)}


def test_fields_that_differ_between_families_are_told_apart():
    gpus = [entry for entry in find_entries("hosts.gpus", all_entries()) if entry.name == "hosts.gpus"]
    assert sorted(dict(entry.facts)["default"] for entry in gpus) == ["1", "8"]


def test_a_scheme_tells_what_it_leaves_out_and_its_transport():
    output = run("ib-static").stdout
    assert SCHEMES.find("ib-static").summary[1:] in " ".join(output.split())
    assert "leaves out:" in output
    assert f"infiniband: {TRANSPORTS['infiniband'].header_bytes} bytes" in output


def test_latency_is_told_with_the_values_in_use():
    output = " ".join(run("latency").stdout.split())
    for transport in TRANSPORTS.values():
        assert f"{transport.switch_latency_s * 1e6:g} us a switch" in output


def test_several_words_are_one():
    assert run("bus", "bandwidth").stdout == run("bus bandwidth").stdout


def test_an_unknown_word_is_refused_with_the_nearest():
    result = run("leaf.uplink")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "did you mean leaf.uplinks?" in result.stderr
    result = run("zzzzzz")
    assert result.exit_code == 1
    assert "netplan explain lists the words" in result.stderr


def test_without_a_word_the_kinds_are_listed():
    result = run()
    assert result.exit_code == 0
    assert all(kind in result.stdout for kind in KINDS)
    data = json.loads(run("--format", "json").stdout)
    assert [kind["kind"] for kind in data["kinds"]] == list(KINDS)
    assert "rail" in data["kinds"][0]["words"]


def test_json_and_markdown():
    data = json.loads(run("ecmp", "--format", "json").stdout)
    assert data["schema"] == "netplan/explain/1"
    assert data["entries"][0]["kind"] == "routing"
    assert data["entries"][0]["facts"]["leaves out"] == SCHEMES.find("ecmp").leaves_out
    text = run("ecmp", "--format", "md").stdout
    assert text.startswith("### ecmp\n")
    assert "- **leaves out**: " in text


def test_into_a_file(tmp_path):
    path = tmp_path / "rail.md"
    assert run("rail", "--format", "md", "-o", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("### rail\n")


def test_text_is_not_wide():
    for entry in all_entries():
        output = run(entry.name).stdout
        assert max(map(len, output.splitlines())) <= 125, entry.name
