"""Fragments of the changelog: their names and that they say something."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "changelog.d"
KINDS = ("feature", "fix", "model", "docs", "misc")
NAME = re.compile(rf"[1-9][0-9]*\.({'|'.join(KINDS)})(\.[1-9][0-9]*)?\.md")


def fragments() -> list[Path]:
    """All files of the folder that are not about the folder."""
    return sorted(path for path in FOLDER.iterdir() if path.name != "README.md")


@pytest.mark.parametrize("name", ["12.feature.md", "7.model.md", "7.model.2.md"])
def test_good_names(name):
    assert NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["feature.md", "12.md", "12.bug.md", "12.fix.txt", "012.fix.md", "12.fix.md~"]
)
def test_bad_names(name):
    assert not NAME.fullmatch(name)


def test_every_fragment_has_a_valid_name_and_says_something():
    for path in fragments():
        assert NAME.fullmatch(path.name), f"{path.name}: not <issue>.<{'|'.join(KINDS)}>.md"
        assert path.read_text(encoding="utf-8").strip(), f"{path.name}: is empty"


def test_kinds_are_those_that_towncrier_collects_and_the_readme_explains():
    with (ROOT / "pyproject.toml").open("rb") as file:
        configured = [kind["directory"] for kind in tomllib.load(file)["tool"]["towncrier"]["type"]]
    assert sorted(configured) == sorted(KINDS)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in readme for kind in KINDS)


def test_the_changelog_has_the_line_below_which_releases_are_put():
    with (ROOT / "pyproject.toml").open("rb") as file:
        line = tomllib.load(file)["tool"]["towncrier"]["start_string"]
    assert (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").count(line) == 1
