"""The documentation says what the program does: pages are current, examples run, words have sections."""

import doctest
import re
import tomllib
from collections import Counter
from pathlib import Path

import click
import pytest
import yaml

from docs import generate
from netplan.catalog import glossary
from netplan.cli.explain import all_entries, find_entries
from netplan.cli.main import COMMANDS, cli
from netplan.fabric.checks import CHECKS
from netplan.routing import SCHEMES
from netplan.topology import FAMILIES
from netplan.traffic import PATTERNS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ALL_PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
REFRESH = "refresh it: ./run python docs/generate.py"


def name_of(path):
    return str(path.relative_to(ROOT))


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


# ---- What comes from the program -----------------------------------------------------------------------


@pytest.mark.parametrize("name", generate.PAGES)
def test_made_pages_are_current(name):
    assert generate.made_page(name) == read(name), REFRESH


@pytest.mark.parametrize("name", generate.IMAGES)
def test_pictures_are_current_and_small(name):
    content = (DOCS / name).read_bytes()
    assert generate.picture(name) == content, REFRESH
    assert len(content) < 100_000


@pytest.mark.parametrize("path", generate.written_pages(), ids=name_of)
def test_commands_run_and_print_what_the_page_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert generate.with_outputs(text) == text, REFRESH


def test_the_script_finds_what_is_stale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "# P\n\n```console\n$ netplan --version\nnetplan 0\n$ pip install .\nkept\n```\n"
    fresh = generate.with_outputs(page)
    assert fresh != page
    assert "$ pip install .\nkept\n" in fresh
    assert generate.with_outputs(fresh) == fresh
    with pytest.raises(ValueError, match="exit status 1"):
        generate.with_outputs("```sh\nnetplan show nothing-of-that-name\n```\n")


def test_a_page_shows_how_a_command_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = '```yaml title="a.yaml"\nkind: ring\n```\n\n```console\n$ netplan show a.yaml | head -n 3\n```\n'
    assert "a.yaml:1: kind = 'ring'" in generate.with_outputs(page)


def test_examples_in_python_run():
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    blocks = re.findall(r"^```pycon\n(.*?)^```$", read("reference/api.md"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "api.md", "api.md", 0)
    output: list[str] = []
    assert runner.run(test, out=output.append).failed == 0, "".join(output)


# ---- Commands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_help_and_examples(name):
    group = click.Context(cli, info_name="netplan")
    command = cli.get_command(group, name)
    assert command is not None
    assert command.short_help == COMMANDS[name][1]
    text = command.get_help(click.Context(command, info_name=f"netplan {name}"))
    examples = re.findall(rf"^ +netplan {name}\b.*$", text, re.MULTILINE)
    assert len(examples) >= 2, "two examples, each on a line of its own"
    for param in command.params:
        assert isinstance(param, click.Argument) or param.help, f"{param.name}: no help"
    section = read("reference/cli.md").partition(f"## netplan {name}\n")[2].partition("\n## ")[0]
    assert all(example.strip() in section for example in examples)
    for param in command.params:
        if isinstance(param, click.Option):
            assert all(f"`{option}`" in section for option in param.opts)


def test_commands_that_pages_name_exist():
    for path in ALL_PAGES:
        for word in re.findall(r"`netplan ([a-z]+)\b", path.read_text(encoding="utf-8")):
            assert word in COMMANDS, f"{name_of(path)}: netplan {word}"


def test_words_that_pages_tell_to_explain_can_be():
    entries = list(all_entries())
    for path in ALL_PAGES:
        for word in re.findall(r"`netplan explain ([^`]+)`", path.read_text(encoding="utf-8")):
            if word != "WORD":
                assert find_entries(word.partition(" --")[0], entries), f"{name_of(path)}: {word}"


# ---- Words ---------------------------------------------------------------------------------------------


def test_glossary_terms_are_unique():
    terms = glossary.load_glossary()
    words = Counter(word.casefold() for term in terms for word in (term.term, *term.also))
    assert [word for word, count in words.items() if count > 1] == []
    assert len(terms) > 60
    for term in terms:
        assert len(term.text) > 20, term.term
        assert "](" not in term.text.replace("](#", "").replace("](limitations.md)", ""), term.term


def test_the_glossary_travels_in_the_wheel():
    with (ROOT / "pyproject.toml").open("rb") as file:
        included = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["docs/concepts/glossary.md"] == "netplan/_shipped/glossary.md"
    places = [path.relative_to(ROOT).as_posix() for path in glossary._PLACES]
    assert places == ["netplan/_shipped/glossary.md", "docs/concepts/glossary.md"]


def test_every_model_has_its_section():
    models, checks = read("concepts/models.md"), read("reference/checks.md")
    for scheme in SCHEMES:
        assert f"\n### `{scheme.name}`\n" in models
    for pattern in PATTERNS:
        assert f"`{pattern.kind}`" in models
    for family in FAMILIES:
        assert f"| `{family.kind}` |" in models
    for check in CHECKS.values():
        assert f"\n## {check.code}\n" in checks
        assert check.remedy in checks


# ---- Pages ---------------------------------------------------------------------------------------------


def test_navigation_has_every_page():
    # mkdocs' own tags (!!python/name) are of no concern here.
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed: list[str] = []
    for item in yaml.safe_load(f"nav:{nav}")["nav"]:
        listed += [item] if isinstance(item, str) else next(iter(item.values()))
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("path", ALL_PAGES, ids=name_of)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        target = link.partition("#")[0]
        if target and "://" not in link:
            assert (path.parent / target).exists(), link


@pytest.mark.parametrize("path", ALL_PAGES, ids=name_of)
def test_pages_name_no_machine(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(?:tmp|work|root|home)/", text)


def test_readme_shows_the_two_commands_and_a_picture_of_ours():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n./run netplan demo\n" in text
    assert "\n./run pytest\n" in text
    assert any(f"](docs/{name})" in text for name in generate.IMAGES)
    assert "Apache-2.0" in text
