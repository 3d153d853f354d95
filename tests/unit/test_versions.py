"""The version of the package, of its changelog and of its promises to old names are one."""

from __future__ import annotations

import re
from datetime import date
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d\d-\d\d)")
DECLARED = re.compile(r'^version = "(\d+)\.(\d+)\.(\d+)"$', re.MULTILINE)
GOES = re.compile(r'removed_in="(\d+)\.(\d+)\.(\d+)"')

Version = tuple[int, ...]


def read_declared() -> Version:
    [found] = DECLARED.findall((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return tuple(map(int, found))


def read_releases() -> list[tuple[Version, date]]:
    """The newest first; whatever is no release stands above them."""
    headings = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert headings[0] == "Unreleased"
    found = [RELEASE.fullmatch(heading) for heading in headings[1:]]
    assert all(found), headings
    return [(tuple(map(int, one.groups()[:3])), date.fromisoformat(one[4])) for one in found if one]


def test_the_changelog_tells_of_the_package_s_version() -> None:
    newest, _ = read_releases()[0]
    assert newest == read_declared()
    assert version("hudi-locks") == ".".join(map(str, newest))


def test_releases_stand_in_order() -> None:
    releases = read_releases()
    assert all(newer > older for newer, older in pairwise(releases))
    assert all(newer[1] >= older[1] for newer, older in pairwise(releases))


def test_no_old_name_outlives_the_version_in_which_it_goes() -> None:
    major, minor, _ = read_declared()
    packages = ("hudi_locks", "providers", "conformance")
    sources = [file.read_text(encoding="utf-8") for name in packages for file in (ROOT / name).rglob("*.py")]
    goes = {tuple(map(int, found)) for text in sources for found in GOES.findall(text)}
    assert goes
    assert all((major, minor, 0) < gone <= (major, minor + 2, 0) for gone in goes)
