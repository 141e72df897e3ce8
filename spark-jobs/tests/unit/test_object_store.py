"""What an object store has to promise before checkpoints are put into it, and what is told when it does not."""

from __future__ import annotations

import contextlib
import pickle
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import object_store_server
import obstore
import pytest
from obstore.store import S3Store
from own_certificate import own_certificate
from places import all_files
from refusing_store import RefusingStore
from restore_situations import PARENT, PARENT_ROWS, write_checkpoint

from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.shared.names import ARCHIVE_VARIABLES
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.object_store import ENDPOINT, SECRET_ACCESS_KEY
from herdkeeper_jobs.checkpoint import cli, removal_cli
from herdkeeper_jobs.checkpoint.base import BaseUnusable, stored_rows
from herdkeeper_jobs.restore.source import open_source
from herdkeeper_jobs.storage import object_path, object_store
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.object_store import why_unreachable
from herdkeeper_jobs.storage.stored_path import create_if_absent, new_file, stored_path, why_unusable


@pytest.fixture
def bucket() -> ObjectPath:
    return object_store_server.new_bucket()


def test_an_address_is_a_bucket_and_perhaps_a_prefix() -> None:
    assert stored_path("s3://bucket") == ObjectPath("s3", "bucket")
    for address in ("s3://bucket/a/b", "gs://bucket/a/b", "az://container/a/b"):
        assert str(stored_path(f"{address}/")) == address
    assert stored_path("/checkpoints") == Path("/checkpoints")


@pytest.mark.parametrize(
    "wrong", ["s3://", "s3:///key", "s3://bucket//a", "s3://bucket/../other", "hdfs://namenode/a", "file:///a", "webhdfs://n:9870/a"]
)
def test_an_address_of_something_else_is_refused_with_what_there_is(wrong: str) -> None:
    fix = "give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, or the path of a folder"
    with pytest.raises(ValueError, match=f"^'{wrong}' names no object store: {fix}$"):
        stored_path(wrong)


def test_a_destination_is_usable_once_the_store_has_shown_that_it_creates_only_once(bucket: ObjectPath) -> None:
    assert why_unusable(bucket / "a", writes=True) is None
    assert why_unusable(bucket / "a", writes=True) is None
    assert why_unusable(bucket / "b", writes=False) is None
    assert all_files(bucket) == {"a/.herdkeeper-creates-once"}


def test_a_store_that_ignores_the_condition_is_refused(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda store, key, content, **_: real(store, key, content))
    assert "ignores `If-None-Match: *`" in (why_unusable(bucket, writes=True) or "")


def test_a_store_that_looks_first_and_writes_then_is_refused(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other it refuses the second; of several at once all have looked before the first has written."""
    real, all_looked, raced_for = obstore.put, threading.Barrier(object_path._RACERS), set[str]()

    def look_first(store: S3Store, key: str, content: bytes, **_: Any) -> None:
        with contextlib.suppress(FileNotFoundError):
            obstore.head(store, key)
            raise obstore.exceptions.AlreadyExistsError(key)
        if re.search(r"creates-once-[0-9a-f]+$", key):
            raced_for.add(key)
            all_looked.wait(60)
        real(store, key, content)

    monkeypatch.setattr(obstore, "put", look_first)
    told = why_unusable(bucket, writes=True) or ""
    assert "does not decide about `If-None-Match: *` in one step (of 4 concurrent creates 4 succeeded), so two jobs" in told
    assert len(raced_for) == 1, "one is enough"
    assert all_files(bucket) == {".herdkeeper-creates-once"}


def test_a_bucket_that_is_not_there_and_keys_that_are_not_given_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    object_store_server.new_bucket()
    assert why_unusable(ObjectPath("s3", "none"), writes=True) == "the object store has no bucket none; create it, or correct the endpoint"
    monkeypatch.delenv(SECRET_ACCESS_KEY)
    object_store.opened.cache_clear()
    said = why_unusable(ObjectPath("s3", "none"), writes=True) or ""
    assert said.startswith("s3://none can't be opened: ")
    assert said.endswith("Missing SecretAccessKey; correct its Secret or fields")


def test_of_a_store_s_answer_its_code_and_message_are_told_and_not_the_keys_that_it_repeats() -> None:
    answer = (
        "Server returned non-2xx status code: 403 Forbidden: <?xml version='1.0'?><Error><Code>SignatureDoesNotMatch</Code>"
        "<Message>The signature differs</Message><AWSAccessKeyId>an id</AWSAccessKeyId><StringToSign>x</StringToSign></Error>"
        "\n\nDebug source:\nan id"
    )
    told = "Server returned non-2xx status code: 403 Forbidden: SignatureDoesNotMatch: The signature differs"
    with (
        pytest.raises(PermissionError, match=f"the object store refuses these credentials: {told}$"),
        object_path._as_os_errors(ObjectPath("s3", "b")),
    ):
        raise obstore.exceptions.PermissionDeniedError(answer)


def test_a_request_whose_answer_was_lost_is_known_again_by_its_bytes(bucket: ObjectPath) -> None:
    (bucket / "a").create(b"mine")
    assert create_if_absent(bucket / "a", b"mine")
    assert not create_if_absent(bucket / "a", b"another's")
    assert (bucket / "a").read_bytes() == b"mine"


def test_a_store_that_acknowledged_other_bytes_than_it_has_is_told(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda store, key, content, **how: real(store, key, content[:-1], **how))
    with pytest.raises(OSError, match="/a has other bytes than were acknowledged"):
        create_if_absent(bucket / "a", b"mine")


def test_an_object_that_is_shorter_than_it_was_when_it_was_opened_is_told(bucket: ObjectPath) -> None:
    path = bucket / "a"
    path.create(b"0123456789")
    stream = path.open("rb")
    path.unlink()
    path.create(b"0123")
    with pytest.raises(OSError, match="4 bytes came instead of 10 from byte 0 on"):
        stream.read()


@contextlib.contextmanager
def refusing(monkeypatch: pytest.MonkeyPatch, *refusals: tuple[int, str]) -> Iterator[RefusingStore]:
    """The store, before which something refuses the next requests that write."""
    store = RefusingStore(object_store_server.ADDRESS, refusals=list(refusals))
    with store.serving() as address, monkeypatch.context() as patched:
        patched.setenv(ENDPOINT, address)
        object_store.opened.cache_clear()
        yield store
    object_store.opened.cache_clear()


def test_of_many_that_create_the_same_object_one_is_told_that_it_did_and_its_bytes_are_there(bucket: ObjectPath) -> None:
    """Each with a connection of its own, to two servers of the same buckets."""
    elsewhere = replace(bucket, variables=ARCHIVE_VARIABLES)
    with ThreadPoolExecutor(8) as racing:
        for number in range(25):
            paths = [(bucket, elsewhere)[writer % 2] / f"{number}" for writer in range(8)]
            told = list(racing.map(lambda path, writer: path.create(b"%d" % writer), paths, range(8)))
            assert told.count(True) == 1
            assert (bucket / f"{number}").read_bytes() == b"%d" % told.index(True)


def test_a_secret_that_is_wrong_is_told_and_neither_it_nor_the_right_one(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv(SECRET_ACCESS_KEY, "mistyped")
        object_store.opened.cache_clear()
        told = why_unusable(bucket, writes=True) or ""
    object_store.opened.cache_clear()
    assert "the object store refuses these credentials: " in told
    assert "403 Forbidden: SignatureDoesNotMatch: " in told
    assert "correct the keys in the Secret" in told
    assert "mistyped" not in told
    assert "a secret" not in told
    assert all_files(bucket) == set()


def test_a_store_that_is_busy_is_asked_again(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    with refusing(monkeypatch, (503, "SlowDown"), (503, "SlowDown")) as store:
        assert create_if_absent(bucket / "a", b"mine")
        assert store.refused == 2
    assert (bucket / "a").read_bytes() == b"mine"


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "OperationAborted"])
def test_a_store_that_has_not_decided_who_created_an_object_is_asked_again(
    bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    undecided = (409, code)
    monkeypatch.setattr(object_path, "_UNDECIDED_PAUSES_SECONDS", (0.0, 0.0))
    with refusing(monkeypatch, undecided, undecided) as store:
        assert create_if_absent(bucket / "a", b"mine")
        assert not create_if_absent(bucket / "a", b"another's")
        assert store.refused == 2
    told = pytest.raises(OSError, match=rf"the store did not decide whether it is created: .* {code}: later")
    with refusing(monkeypatch, undecided, undecided, undecided), told:
        create_if_absent(bucket / "b", b"mine")
    assert all_files(bucket) == {"a"}


def test_what_an_upload_of_parts_leaves_that_is_never_closed_is_no_object(bucket: ObjectPath) -> None:
    file, block = new_file(bucket / "folder" / "large"), bytes(9 << 20)
    for _ in range(4):
        file.write(block)
    del file
    assert all_files(bucket) == set()
    assert bucket.children() == []


def test_a_large_file_is_there_when_it_is_closed_and_not_before(bucket: ObjectPath) -> None:
    path, block = bucket / "large", bytes(range(256)) * 4096
    file = new_file(path)
    for _ in range(12):
        file.write(block)
    assert not path.is_file()
    file.close()
    assert path.size() == 12 << 20
    with path.open("rb") as stream:
        stream.seek(-5, 2)
        assert stream.read() == block[-5:]
        stream.seek((3 << 20) + 7)
        assert stream.read(1 << 20) == block[7:] + block[:7]


def test_the_rows_of_a_base_are_read_from_the_store_as_they_were_stored(bucket: ObjectPath) -> None:
    source = open_source(write_checkpoint(bucket, {PARENT: PARENT_ROWS}))
    (table,) = source.tables
    found = [row for file in table.files for rows in stored_rows(source.folder, file, table.definition) for row in rows]
    assert digest_of_rows(found) == RowDigest.parse(table.manifest.rows, table.manifest.digest)
    (source.folder / table.files[1].path).unlink()
    with pytest.raises(BaseUnusable, match=r"p-1\.parquet can't be read: s3://.* is not there"):
        list(stored_rows(source.folder, table.files[1], table.definition))


def test_no_task_carries_what_opens_the_store(bucket: ObjectPath) -> None:
    assert all_files(bucket) == set()  # it is open
    assert b"secret" not in pickle.dumps(bucket / "a")
    assert "secret" not in repr(object_store_server.SETTINGS)


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("s3://no-such-bucket/a", "--destination is 's3://no-such-bucket/a': the object store has no bucket no-such-bucket"),
        ("s3://", "--destination: 's3://' names no object store"),
    ],
)
def test_a_job_that_can_not_use_its_destination_says_so_before_it_starts(
    destination: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    object_store_server.new_bucket()
    given = ["--zookeeper", "z:1", "--ledgers-root", "/l", "--herd-root", "/h", "--tablespace", "t", "--run-id", "r"]
    assert cli.main([*given, "--destination", destination]) == 2
    assert words in capsys.readouterr().out
    assert removal_cli.main(["--destination", destination, "--run-id", "r"]) == 2


def test_a_store_with_a_certificate_of_one_s_own_is_trusted_by_it_only(tmp_path: Path) -> None:
    authority, certificate, key = own_certificate()
    (tmp_path / "store.pem").write_bytes(certificate)
    (tmp_path / "key.pem").write_bytes(key)
    name, port = object_store_server.new_bucket().bucket, free_port()
    server = object_store_server.start_another(port, (tmp_path / "store.pem", tmp_path / "key.pem"))
    secure = object_store_server.OF_CHECKPOINTS | {ENDPOINT: f"https://127.0.0.1:{port}"}
    known = replace(object_store_server.SETTINGS, config=secure)
    obstore.put(replace(known, authorities=authority).open(name), "a", b"content")
    with pytest.raises(obstore.exceptions.BaseError) as refused:
        obstore.get(known.open(name), "a")
    assert "its certificate is not trusted (endpoint, caSecretRef)" in why_unreachable(refused.value)
    server.stop()
