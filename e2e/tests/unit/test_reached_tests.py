"""A change reaches the tests that import it, however indirectly, and those that name it."""

from __future__ import annotations

import subprocess

import pytest

from herdkeeper_e2e.reached_tests import REPOSITORY, UNIT_TESTS, changes, import_graph, imported_names, reached

GRAPH = {
    "src/low.py": (),
    "src/high.py": ("src/low.py",),
    "tests/conftest.py": (),
    "tests/helper.py": ("src/high.py",),
    "tests/test_high.py": ("tests/helper.py", "tests/conftest.py"),
    "tests/test_low.py": ("src/low.py", "tests/conftest.py"),
    "tests/test_files.py": ("tests/conftest.py",),
}
TEXTS = {"tests/test_high.py": "", "tests/test_low.py": "", "tests/test_files.py": 'ROOT / "images/herddb" / "start.sh", ROOT / "crds"'}
ALL = sorted(TEXTS)


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["src/low.py"], ["tests/test_low.py", "tests/test_high.py"]),
        (["src/low.py", "tests/helper.py"], ["tests/test_high.py", "tests/test_low.py"]),
        (["src/high.py"], ["tests/test_high.py"]),
        (["tests/helper.py"], ["tests/test_high.py"]),
        (["tests/test_low.py"], ["tests/test_low.py"]),
        (["tests/conftest.py"], ALL),
        (["crds/new.yaml"], ["tests/test_files.py"]),
        (["images/herddb/bin/other.sh"], ["tests/test_files.py"]),
        (["elsewhere/start.sh"], ["tests/test_files.py"]),
        (["docs/limits.md"], []),
        (["pyproject.toml"], ALL),
        ([], []),
    ],
)
def test_a_change_reaches_who_imports_or_names_it_the_nearest_first(changed, tests):
    assert reached(GRAPH, changed, TEXTS) == tests


def test_imports_are_found_wherever_they_stand():
    source = "import a.b\nfrom c import d\ndef f():\n    from e.f import g\n"
    assert set(imported_names(source)) == {"a.b", "c", "c.d", "e.f", "e.f.g"}


def test_this_project_s_tests_reach_what_they_import():
    graph = import_graph(REPOSITORY)
    assert "e2e/src/herdkeeper_e2e/reached_tests.py" in graph["e2e/tests/unit/test_reached_tests.py"]
    assert "spark-jobs/tests/unit/conftest.py" in graph["spark-jobs/tests/unit/test_wal_fold.py"]
    assert "operator/src/herdkeeper/shared/names.py" in {file for files in graph.values() for file in files}
    assert all(any(file.startswith(folder) for file in graph) for folder in UNIT_TESTS)


def test_changes_are_those_since_main_committed_or_not(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)

    git("init", "-q", "-b", "main")
    for name in ("kept", "edited", "deleted"):
        (tmp_path / name).touch()
    git("add", ".")
    git("commit", "-qm", "1")
    git("checkout", "-qb", "branch")
    (tmp_path / "committed").touch()
    git("add", ".")
    git("commit", "-qm", "2")
    (tmp_path / "edited").write_text("x")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").touch()
    assert changes(tmp_path) == {"committed", "edited", "deleted", "new"}
