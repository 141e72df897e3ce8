"""What a release is made of, and what is refused before anything is made."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from herdkeeper_e2e.release.build import Release, checksums, release_notes, stamp, write_package
from herdkeeper_e2e.release.source import REPOSITORY, ReleaseError, commit_epoch

CHANGELOG = """\
# Changes

## Unreleased

## 0.2.0 (2026-12-01)

**New**
- One thing.

## 0.1.0

The first.
"""
FILES = {
    "pyproject.toml": '[project]\nversion = "0.1.0"\ndependencies = ["herdkeeper-sql==0.1.0"]\n[tool.x]\nversion = "7"\n',
    "sql/pyproject.toml": '[project]\nversion = "0.1.0"\n',
    "charts/herdkeeper/Chart.yaml": "apiVersion: v2\nversion: 0.1.0\nappVersion: 0.1.0\n",
    "charts/herdkeeper/values.yaml": 'images:\n  registry: ""\n  tag: ""\n',
    "examples/client.yaml": "      image: herdkeeper/operator:0.1.0\n      image: example.org/application:1\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_release_notes_are_the_versions_section():
    assert release_notes(CHANGELOG, "0.2.0") == "# herdkeeper 0.2.0\n\n**New**\n- One thing.\n"
    assert release_notes(CHANGELOG, "0.1.0").endswith("The first.\n")


@pytest.mark.parametrize("version", ["0.3.0", "0.2", "Unreleased"])
def test_a_version_of_which_the_changelog_says_nothing_is_refused(version):
    with pytest.raises(ReleaseError, match=f"write a section `## {version}`"):
        release_notes(CHANGELOG, version)


@pytest.mark.parametrize("version", ["", "v0.2.0", "0.2", "0.2.0 "])
def test_a_version_that_is_none_is_refused(version):
    with pytest.raises(ReleaseError, match="VERSION is"):
        Release(version, "", 0)


@pytest.mark.parametrize("registry", ["example.com/", "https://example.com"])
def test_a_registry_that_no_image_can_have_is_refused(registry):
    with pytest.raises(ReleaseError, match="REGISTRY is"):
        Release("0.2.0", registry, 0)


def test_version_and_registry_are_written_where_they_belong(checkout):
    stamp(checkout, Release("0.2.0", "example.com/team", 0))
    project = '[project]\nversion = "0.2.0"\ndependencies = ["herdkeeper-sql==0.2.0"]\n[tool.x]\nversion = "7"\n'
    assert (checkout / "pyproject.toml").read_text() == project
    assert (checkout / "sql/pyproject.toml").read_text() == '[project]\nversion = "0.2.0"\n'
    assert (checkout / "charts/herdkeeper/Chart.yaml").read_text() == "apiVersion: v2\nversion: 0.2.0\nappVersion: 0.2.0\n"
    assert (checkout / "charts/herdkeeper/values.yaml").read_text() == 'images:\n  registry: "example.com/team"\n  tag: ""\n'


@pytest.mark.parametrize(("registry", "image"), [("", "herdkeeper"), ("example.com/team", "example.com/team/herdkeeper")])
def test_the_pods_of_examples_have_the_images_of_the_release(checkout, registry, image):
    stamp(checkout, Release("0.2.0-rc.1", registry, 0))
    text = f"      image: {image}/operator:0.2.0-rc.1\n      image: example.org/application:1\n"
    assert (checkout / "examples/client.yaml").read_text() == text


def test_a_file_without_the_line_is_refused(checkout):
    (checkout / "charts/herdkeeper/values.yaml").write_text("images: {}\n")
    with pytest.raises(ReleaseError, match=r"values\.yaml has no line"):
        stamp(checkout, Release("0.2.0", "", 0))


def test_a_chart_package_has_the_same_bytes_whenever_it_is_made(checkout):
    chart, files = checkout / "charts/herdkeeper", (checkout / "a.tgz", checkout / "b.tgz")
    write_package(chart, files[0], 1_000_000_000)
    for file in chart.iterdir():
        file.touch()
        file.chmod(0o600)
    write_package(chart, files[1], 1_000_000_000)
    assert files[0].read_bytes() == files[1].read_bytes()
    with tarfile.open(files[0]) as archive:
        assert archive.getnames() == ["herdkeeper/Chart.yaml", "herdkeeper/values.yaml"]


def test_sha256sum_reads_the_checksums(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    (tmp_path / "SUMS").write_text(checksums([tmp_path / "b", tmp_path / "a"]))
    checked = subprocess.run(["sha256sum", "--check", "SUMS"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert checked.stdout == "a: OK\nb: OK\n"


def test_the_time_of_a_release_is_its_commits_unless_it_is_given(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert commit_epoch(REPOSITORY) == int(told.stdout)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "7")
    assert commit_epoch(REPOSITORY) == 7
