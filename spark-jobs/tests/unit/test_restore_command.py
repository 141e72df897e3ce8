"""`herdkeeper-restore`: its refusals before it starts Spark or connects, and their messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from places import write
from restore_situations import IDENTITY, PARENT, PARENT_ROWS, write_checkpoint
from secret_keys import MountedSecret

from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.sql.connection import Address
from herdkeeper_jobs import spark_session
from herdkeeper_jobs.archive.segment import SEGMENT_SCHEMA, Link, Place, commit_segment
from herdkeeper_jobs.errors import RestoreRefused
from herdkeeper_jobs.restore import cli
from herdkeeper_jobs.restore.checkpoint_of_moment import Latest, MomentSource
from herdkeeper_jobs.restore.run import RestoreRequest
from herdkeeper_jobs.restore.session import Cluster
from herdkeeper_jobs.restore.source import Source
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.task_error import essence
from herdkeeper_jobs.termination_message import VARIABLE
from herdkeeper_jobs.wal.lsn import Lsn


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDDB_USERNAME", "admin")
    monkeypatch.setenv("HERDDB_PASSWORD", "secret")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[RestoreRequest]:
    """What the command understood; it goes no further."""
    understood: list[RestoreRequest] = []

    def restore(request: RestoreRequest, settings: object) -> None:
        understood.append(request)
        raise RestoreRefused("far enough")

    monkeypatch.setattr(cli, "_restore", restore)
    return understood


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
        ("secret", True, 42, "is not a manifest"),
    ],
    ids=["no password", "no manifest", "a damaged manifest"],
)
def test_what_can_not_succeed_ends_with_its_code_and_a_sentence(
    password: str, damage: bool, code: int, words: str, monkeypatch: pytest.MonkeyPatch, place: StoredPath, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERDDB_PASSWORD", password)
    path = write_checkpoint(place, {PARENT: PARENT_ROWS})
    if damage:
        write(path, b"{")
    manifest = path if damage else path.with_name("another.json")
    ended, said = run({"--manifest": str(manifest)}, monkeypatch, tmp_path)
    assert ended == code
    assert words in str(said["message"])
    assert "secret" not in str(said)


@pytest.mark.parametrize(("given", "authorities"), [("certificates", "certificates"), (None, None)])
def test_nodes_are_verified_by_the_authorities_that_the_pod_was_given(
    given: str | None, authorities: str | None, requests: list[RestoreRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if given is not None:
        monkeypatch.setenv("HERDDB_AUTHORITIES", given)
    run({"--manifest": "m"}, monkeypatch, tmp_path)
    assert [request.target.authorities for request in requests] == [authorities]


def test_no_password_is_sent_while_the_secret_of_the_authorities_is_half_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "_restore", lambda *_: pytest.fail("it connects to nodes that it can't verify"))
    monkeypatch.setenv("HERDDB_AUTHORITIES", "")
    ended, said = run({"--manifest": "m"}, monkeypatch, tmp_path)
    assert ended == 3
    assert "HERDDB_AUTHORITIES has no certificates" in str(said["message"])


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
    given: dict[str, str], database: object, requests: list[RestoreRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended, said = run({"--manifest": "m", **given}, monkeypatch, tmp_path)
    assert ended == 2
    assert [request.target.database for request in requests] == ([] if isinstance(database, str) else [database])
    assert said["message"] == (database if isinstance(database, str) else "far enough")


def archived(place: Path, instance: str = "i-1", uuid: str = "ts-1") -> Path:
    """Archives a log of one entry; returns the tablespace's folder."""
    identity = IDENTITY.model_copy(update={"instance_id": instance, "tablespace_uuid": uuid})
    rows = pa.table({"ledger_id": [3], "entry_id": [0], "timestamp": [1_000], "payload": [b"x"]}, schema=SEGMENT_SCHEMA)
    commit_segment(rows, Place(place / instance / uuid, identity, "archiver"), Link(None, True, None))
    return place / instance / uuid


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"--to": "now"}, 2, "spec.bootstrap.target (--to): 'now' is not a moment of an archive: expected latest, LEDGER,ENTRY, or a time"),
        ({"--to": "yesterday"}, 2, "spec.bootstrap.target (--to): 'yesterday' is not a moment"),
        ({"--to": "3,9", "--run-id": "../r"}, 2, "--run-id is '../r': it names a folder, take at most 100 letters"),
        ({"--to": "3,9"}, 2, "spec.bootstrap.target.lsn (--to) is 3,9: the archive ends with 3,0. From the archive, the LSNs from 3,0 "),
        ({"--to": "3,9", "--archive": "/nowhere"}, 2, "--archive leads to /nowhere: no such folder; mount the volume there"),
        ({}, 2, "--folder names no checkpoint: give --to with it, or --manifest"),
    ],
    ids=["now", "no moment", "a run's name", "behind the archive", "no volume", "no moment asked for"],
)
def test_a_moment_that_can_not_be_had_ends_with_its_code_and_a_sentence_before_spark_is_started(
    given: dict[str, str], code: int, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ended, said = run({"--folder": str(archived(tmp_path)), **given}, monkeypatch, tmp_path)
    assert ended == code
    assert words in str(said["message"])


@pytest.mark.parametrize("by", ["manifest", "folder"])
def test_a_moment_is_asked_for_by_a_checkpoint_or_a_folder_and_its_archive_may_be_elsewhere(
    by: str, requests: list[RestoreRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, elsewhere = tmp_path / "below" / "i-1" / "ts-1", tmp_path / "archives"
    (folder / "manifests").mkdir(parents=True)
    elsewhere.mkdir()
    named = folder / "manifests" / "m.json" if by == "manifest" else None
    given = {"--manifest": str(named)} if named else {"--folder": str(folder)}
    run({**given, "--to": "latest"}, monkeypatch, tmp_path)
    run({**given, "--to": "3,9", "--archive": str(elsewhere)}, monkeypatch, tmp_path)
    assert [request.source for request in requests] == [
        MomentSource(folder, tmp_path / "below", Latest.LATEST, "r", named),
        MomentSource(folder, elsewhere, Lsn(3, 9), "r", named),
    ]


def test_a_moments_checkpoint_is_encrypted_with_the_named_key(
    keys: MountedSecret, requests: list[RestoreRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = keys.add("2026-11")
    folder = tmp_path / "below" / "i-1" / "ts-1"
    folder.mkdir(parents=True)
    named = {"--folder": str(folder), "--to": "latest"}
    run({**named, "--encrypt-with": str(keys.folder / "2026-11")}, monkeypatch, tmp_path)
    assert [request.source.key for request in requests if isinstance(request.source, MomentSource)] == [key]
    code, said = run({**named, "--encrypt-with": str(keys.folder / "2027-05")}, monkeypatch, tmp_path)
    assert (code, len(requests)) == (2, 1)
    assert "has no key '2027-05'" in str(said["message"])


def test_keys_and_archives_of_a_moment_are_not_taken_silently_where_none_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, said = run({"--manifest": "m", "--archive": str(tmp_path)}, monkeypatch, tmp_path)
    assert code == 2
    assert "--archive and --encrypt-with belong to --to" in str(said["message"])


@pytest.mark.parametrize("folds", [True, False], ids=["its checkpoint is made", "its checkpoint is there"])
def test_the_checkpoint_of_a_moment_is_restored_as_any_other_in_one_session(
    folds: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write_checkpoint(tmp_path, {PARENT: PARENT_ROWS})
    sessions: list[str] = []
    restored: list[tuple[Source, object]] = []

    def start(name: str, settings: object) -> SimpleNamespace:
        sessions.append("started")
        return SimpleNamespace(stop=lambda: sessions.append("stopped"))

    def found_or_made(start: Callable[[], object], source: MomentSource) -> Path:
        if folds:
            start()
        return path

    def restore(spark: object, source: Source, request: RestoreRequest) -> RestoreSummary:
        restored.append((source, request.source))
        return RestoreSummary("r", JobOutcome.SUCCEEDED, manifest=str(source.path))

    monkeypatch.setattr(spark_session, "start_spark", start)
    for name, step in (("checkpoint_of_moment", found_or_made), ("run_restore", restore)):
        monkeypatch.setattr(cli, name, step)
    ended, said = run({"--folder": str(path.parent.parent), "--to": "3,9"}, monkeypatch, tmp_path)
    assert (ended, said["manifest"], sessions) == (0, str(path), ["started", "stopped"])
    ((source, asked),) = restored
    assert (source.path, asked) == (path, MomentSource(path.parent.parent, tmp_path, Lsn(3, 9), "r"))


def test_the_line_that_names_a_tasks_error_is_reported() -> None:
    text = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "load.py", line 92, in load
herdkeeper_jobs.errors.RestoreRetryable: no leader of the tablespace 'a' within 120 s
"""
    assert essence(text) == "herdkeeper_jobs.errors.RestoreRetryable: no leader of the tablespace 'a' within 120 s"
