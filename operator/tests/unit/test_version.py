"""One version: whatever names it names that of the operator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from herdkeeper.api.default_images import VERSION

REPOSITORY = Path(__file__).resolve().parents[3]
DECLARED = {
    "pyproject.toml": r'^version = "(.*)"$',
    "sql/pyproject.toml": r'^version = "(.*)"$',
    "charts/herdkeeper/Chart.yaml": r"^(?:v|appV)ersion: (.*)$",
    **{f"images/{server}/pom.xml": r"^  <version>(.*)</version>$" for server in ("bookkeeper", "herddb", "zookeeper")},
}
ADVISED = re.compile(r"(?:herdkeeper/[a-z]+:|herdkeeper(?:_sql|-examples)?-|herdkeeper-sql==|VERSION=|`## )(\d+\.\d+\.\d+)")
"""An image, a file, a requirement or an argument, as a user is to write it."""


def read_by_users() -> list[Path]:
    folders = [
        path for folder in ("docs", "examples") for path in (REPOSITORY / folder).rglob("*") if path.suffix in {".md", ".yaml", ".py"}
    ]
    return [REPOSITORY / name for name in ("README.md", "Makefile", "pyproject.toml")] + folders


@pytest.mark.parametrize("name", DECLARED)
def test_what_declares_a_version_declares_the_operators(name):
    declared = re.findall(DECLARED[name], (REPOSITORY / name).read_text(), re.MULTILINE)
    assert set(declared) == {VERSION}, f"{name}: write {VERSION}"


def test_the_newest_changes_are_those_of_this_version():
    newest = re.search(r"^## (\S+)", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION


def test_what_users_are_told_to_write_names_this_version():
    other = [
        f"{path.relative_to(REPOSITORY)}:{number}: {match[0]}"
        for path in read_by_users()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in ADVISED.finditer(line)
        if match[1] != VERSION
    ]
    assert not other, f"write {VERSION}"
