"""Who fetches from the scenarios' git server gets what was committed."""

from __future__ import annotations

import subprocess

from herdkeeper_e2e.git_server import serving


def test_a_clone_has_what_the_last_commit_left(tmp_path):
    with serving(tmp_path / "shop") as repository:
        first = repository.commit({"database/a.yaml": "a: 1\n", "database/b.yaml": "b: 1\n"})
        second = repository.commit({"database/a.yaml": "a: 2\n", "database/b.yaml": None})
        subprocess.run(["git", "clone", "-q", "--depth", "1", repository.url, str(tmp_path / "clone")], check=True)
    there = {str(path.relative_to(tmp_path / "clone")) for path in (tmp_path / "clone").glob("*/*") if ".git" not in path.parts}
    assert there == {"database/a.yaml"}
    assert (tmp_path / "clone/database/a.yaml").read_text() == "a: 2\n"
    head = subprocess.run(["git", "-C", str(tmp_path / "clone"), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert head.stdout.strip() == second != first
