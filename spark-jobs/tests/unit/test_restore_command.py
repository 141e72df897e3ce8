"""`herdkeeper-restore`: what it refuses before it starts Spark or connects anywhere, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import write
from restore_situations import PARENT, PARENT_ROWS, write_checkpoint

from herdkeeper.sql.connection import Address
from herdkeeper_jobs.restore import cli
from herdkeeper_jobs.restore.errors import RestoreRefused
from herdkeeper_jobs.restore.run import RestoreRequest
from herdkeeper_jobs.restore.session import Cluster
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.task_error import essence
from herdkeeper_jobs.termination_message import VARIABLE


def run(arguments: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[int, dict[str, object]]:
    message = tmp_path / "said"
    monkeypatch.setenv(VARIABLE, str(message))
    where = {} if "--server" in arguments else {"--zookeeper": "nowhere:1", "--herd-root": "/h"}
    given = {**where, "--tablespace": "t", "--run-id": "r", **arguments}
    code = cli.main([part for pair in given.items() for part in pair])
    return code, json.loads(message.read_text())


@pytest.mark.parametrize(
    ("password", "damage", "code", "words"),
    [
        ("", False, 2, "the variable HERDDB_PASSWORD is not set"),
        ("secret", False, 2, "no such file; give <INSTANCEID>"),
        ("secret", True, 42, "is no manifest"),
    ],
    ids=["no password", "no manifest", "a damaged manifest"],
)
def test_what_can_not_succeed_ends_with_its_code_and_a_sentence(
    password: str, damage: bool, code: int, words: str, monkeypatch: pytest.MonkeyPatch, place: StoredPath, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERDDB_USERNAME", "admin")
    monkeypatch.setenv("HERDDB_PASSWORD", password)
    path = write_checkpoint(place, {PARENT: PARENT_ROWS})
    if damage:
        write(path, b"{")
    manifest = path if damage else path.with_name("another.json")
    ended, said = run({"--manifest": str(manifest)}, monkeypatch, tmp_path)
    assert ended == code
    assert words in str(said["message"])
    assert "secret" not in str(said)


@pytest.mark.parametrize(("given", "authorities"), [("certificates", "certificates"), ("", None), (None, None)])
def test_nodes_are_verified_by_the_authorities_that_the_pod_was_given(
    given: str | None, authorities: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests = []

    def restore(request: RestoreRequest, settings: object) -> None:
        requests.append(request)
        raise RestoreRefused("far enough")

    monkeypatch.setattr(cli, "_restore", restore)
    environment = {"HERDDB_USERNAME": "admin", "HERDDB_PASSWORD": "secret", "HERDDB_AUTHORITIES": given}
    for name, value in environment.items():
        if value is not None:
            monkeypatch.setenv(name, value)
    run({"--manifest": "m"}, monkeypatch, tmp_path)
    assert [request.target.authorities for request in requests] == [authorities]


@pytest.mark.parametrize(
    ("given", "database"),
    [
        ({}, Cluster("nowhere:1", "/h")),
        ({"--server": "127.0.0.1:7000"}, Address("127.0.0.1", 7000)),
        ({"--server": "7000"}, "--server is '7000': give host:port, for example 127.0.0.1:7000"),
        ({"--herd-root": ""}, "--herd-root is missing: with --zookeeper, give HerdDB's root there, for example /ns/db/herd"),
    ],
)
def test_the_tablespace_is_a_clusters_or_that_of_a_server_which_is_alone(
    given: dict[str, str], database: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests = []

    def restore(request: RestoreRequest, settings: object) -> None:
        requests.append(request)
        raise RestoreRefused("far enough")

    monkeypatch.setattr(cli, "_restore", restore)
    monkeypatch.setenv("HERDDB_USERNAME", "admin")
    monkeypatch.setenv("HERDDB_PASSWORD", "secret")
    ended, said = run({"--manifest": "m", **given}, monkeypatch, tmp_path)
    assert ended == 2
    assert [request.target.database for request in requests] == ([] if isinstance(database, str) else [database])
    assert said["message"] == (database if isinstance(database, str) else "far enough")


def test_of_an_error_in_a_task_the_line_that_names_it_is_told() -> None:
    text = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "load.py", line 92, in load
herdkeeper_jobs.restore.errors.RestoreRetryable: no leader of the tablespace 'a' within 120 s
"""
    assert essence(text) == "herdkeeper_jobs.restore.errors.RestoreRetryable: no leader of the tablespace 'a' within 120 s"
