"""The archive of a log in an object store: it is whole even if any request is the last one, or its answer is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import object_store_server
import obstore
import pytest
from places import all_files, write
from played_bookie import PATIENCE_SECONDS, PlayedBookie, served
from played_log import PlayedLog
from test_archive_expiry import ORDER_PATH, archiver, base, firsts, order, place_of
from test_checkpoint_manifest import table
from test_log_archive import IDENTITY, Archive, Entries, Killed

from herdkeeper.protocol.log_archive import ArchiveProgress, decode_archive_progress, encode_expiry_order
from herdkeeper.shared.names import ACCESS_KEY_ID_KEY, ARCHIVE_VARIABLES, DESTINATION_VARIABLES, SECRET_ACCESS_KEY_KEY
from herdkeeper_jobs.archive.archive_only_log import identity_of_archive
from herdkeeper_jobs.archive.expiry import delete_segments, due, sweep
from herdkeeper_jobs.archive.parts import WholeLog, log_parts
from herdkeeper_jobs.archive.segment import manifest_path, newest_segment, oldest_segment, segments
from herdkeeper_jobs.archive.window import windows_of_files
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.storage import object_store
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import names_from, stored_path, take_name
from herdkeeper_jobs.wal.lsn import Lsn

REQUESTS = ("put", "get", "get_range", "head", "delete", "list", "list_with_delimiter")
PROGRESS_PATH = "/db/herd/logArchive/0ab"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Four segments of one entry each in ledger 3, and two in ledger 5."""
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        made = Archive(PlayedLog(bookies, addresses, tmp_path), object_store_server.new_bucket() / "archives" / "c" / "0ab")
        made.log.metadata.instance_id = "c"
        made.write(3, 4, closed=True)
        made.write(5, 2, closed=True)
        made.copy(batch_entries=1, segment_bytes=1)
        yield made


class _Writer:
    """An upload that ends with a request like others."""

    def __init__(self, writer: Any, counted: Callable[[Any], Any]) -> None:
        self._writer, self.write, self.close = writer, writer.write, counted(writer.close)


@contextmanager
def failing_at(number: int, failure: BaseException, *, is_sent: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the request with this number fail: it is not sent, or it is done and its answer is lost."""
    numbers = iter(range(number + 1))

    def counted(call: Any) -> Any:
        def request(*arguments: Any, **options: Any) -> Any:
            if next(numbers, None) != number:
                return call(*arguments, **options)
            if is_sent:
                call(*arguments, **options)
            raise failure

        return request

    opened = obstore.open_writer
    with monkeypatch.context() as patched:
        for name in REQUESTS:
            patched.setattr(obstore, name, counted(getattr(obstore, name)))
        patched.setattr(obstore, "open_writer", lambda *arguments, **options: _Writer(opened(*arguments, **options), counted))
        yield


def copy_of(archive: Archive) -> Archive:
    """The same log, with a copy of the archive in another bucket."""
    made = replace(archive, folder=object_store_server.new_bucket() / "archives" / "c" / "0ab")
    for name in all_files(archive.folder):
        write(made.folder / name, (archive.folder / name).read_bytes())
    return made


@pytest.mark.parametrize("is_sent", [False, True], ids=["before the request", "before its answer"])
def test_a_kill_at_any_request_leaves_a_readable_archive_and_the_next_run_completes_it(
    archive: Archive, is_sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = archive.archived()
    archive.write(7, 5, closed=True)
    killed, lengths = 0, set()
    for number in range(200):
        tried = copy_of(archive)
        try:
            with failing_at(number, Killed(), is_sent=is_sent, monkeypatch=monkeypatch):
                tried.copy()
        except Killed:
            killed += 1
        else:
            break
        during = tried.archived()
        assert during[: len(before)] == before
        assert [lsn for lsn, _ in during] == sorted(tried.written)[: len(during)]
        lengths.add(len(during))
        tried.copy()
        assert [lsn for lsn, _ in tried.archived()] == sorted(tried.written)
    assert killed > 8
    assert len(lengths) == len(segments(tried.folder, IDENTITY)) - 6 + 1, "it ended with each of the segments, and before them"


@pytest.mark.parametrize("is_sent", [False, True], ids=["before the request", "before its answer"])
def test_a_failed_request_is_reported_and_the_next_look_continues(archive: Archive, is_sent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.write(7, 3, closed=True)
    failed = 0
    for number in range(200):
        tried = copy_of(archive)
        try:
            with failing_at(number, OSError("no answer"), is_sent=is_sent, monkeypatch=monkeypatch):
                tried.copy()
        except OSError:
            failed += 1
        else:
            break
        tried.copy()
        assert [lsn for lsn, _ in tried.archived()] == sorted(tried.written)
    assert failed > 5


def expire(archive: Archive) -> None:
    found = due(place_of(archive), order(3, 2))
    if found is None:
        sweep(archive.folder)
    else:
        delete_segments(archive.folder, found.going)


@pytest.mark.parametrize("is_sent", [False, True], ids=["before the request", "before its answer"])
@pytest.mark.parametrize("withdrawn", [False, True], ids=["goes on", "nothing may go any more"])
def test_a_kill_during_expiry_leaves_an_archive_without_a_gap(
    archive: Archive, is_sent: bool, withdrawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archive.archived()
    killed, beginnings = 0, set()
    for number in range(200):
        tried = copy_of(archive)
        try:
            with failing_at(number, Killed(), is_sent=is_sent, monkeypatch=monkeypatch):
                expire(tried)
        except Killed:
            killed += 1
        else:
            break
        _assert_end_of(whole, tried.archived())
        beginnings.add(tried.archived()[0][0])
        if withdrawn:
            sweep(tried.folder)
            _assert_end_of(whole, tried.archived())
        expire(tried)
        assert firsts(segments(tried.folder, IDENTITY)) == [(3, 2), (3, 3), (5, 0), (5, 1)]
        assert len(all_files(tried.folder)) == 8, "nothing is left of what has expired"
    assert killed > 15
    assert beginnings == {Lsn(3, 0), Lsn(3, 1), Lsn(3, 2)}


def _assert_end_of(whole: Entries, left: Entries) -> None:
    assert left == whole[len(whole) - len(left) :], "what is left is the end of it, without a gap"
    assert left[0][0] <= Lsn(3, 2)
    assert left[-1][0] == Lsn(5, 1)


def test_a_segment_whose_manifest_is_copied_and_not_deleted_yet_keeps_its_file(archive: Archive) -> None:
    manifest = manifest_path(archive.folder, Lsn(3, 0))
    copy = manifest.with_name(f".{manifest.name}.expired")
    write(copy, manifest.read_bytes())
    sweep(archive.folder)
    assert archive.archived()[0][0] == Lsn(3, 0)
    expire(archive)
    assert not copy.is_file()
    assert firsts(segments(archive.folder, IDENTITY))[0] == (3, 2)


def test_two_archivers_that_expire_the_same_segments_neither_delete_more_nor_fail(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, others = due(place_of(archive), order(3, 2)), [lambda: expire(archive)]
    assert going is not None

    def meanwhile(path: Any, other: Any) -> None:
        if others:
            others.pop()()
        take_name(path, other)

    monkeypatch.setattr("herdkeeper_jobs.archive.expiry.take_name", meanwhile)
    delete_segments(archive.folder, going.going)
    assert firsts(segments(archive.folder, IDENTITY)) == [(3, 2), (3, 3), (5, 0), (5, 1)]
    assert len(all_files(archive.folder)) == 8


def told(archive: Archive) -> ArchiveProgress:
    return decode_archive_progress(archive.log.metadata.told[PROGRESS_PATH])


DESTINATION = "spec.log.archive.destination (--destination) is"


def test_a_missing_bucket_is_named_with_the_field_until_it_exists(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    lost = replace(archive, folder=ObjectPath("s3", "missing-bucket") / "archives" / "c" / "0ab")

    def create() -> None:
        said.append(told(lost).trouble)
        object_store_server.new_bucket("missing-bucket")

    archiver(lost, monkeypatch, create)
    assert said == [
        f"{DESTINATION} 's3://missing-bucket/archives': the object store has no bucket missing-bucket; create it, or correct the endpoint"
    ]
    assert told(lost).trouble == ""
    assert [lsn for lsn, _ in lost.archived()] == sorted(lost.written)


def test_keys_that_the_store_refuses_are_reported_with_the_field_and_without_secrets(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in object_store_server.OF_ARCHIVES.items():
        monkeypatch.setenv(f"{DESTINATION_VARIABLES}{name}", value)
    monkeypatch.setenv(f"{DESTINATION_VARIABLES}{ACCESS_KEY_ID_KEY}", "a-wrong-id")
    object_store.opened.cache_clear()
    before = len(archive.log.metadata.told)
    archiver(archive, monkeypatch)
    said = told(archive)
    assert before == 0
    assert said.trouble.startswith(f"{DESTINATION} 's3://{archive.folder.parts[0]}/archives': s3://")
    assert "the object store refuses these credentials: " in said.trouble
    assert "403 Forbidden: InvalidAccessKeyId: " in said.trouble
    assert "; correct the keys in the Secret" in said.trouble
    assert said.held is None
    assert "another secret" not in said.trouble
    monkeypatch.undo()
    object_store.opened.cache_clear()


def test_a_missing_variable_is_reported(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.delenv(f"{DESTINATION_VARIABLES}{SECRET_ACCESS_KEY_KEY}")
        # What has no prefix is a user's own, and is not taken for what is missing.
        patched.delenv(SECRET_ACCESS_KEY_KEY)
        object_store.opened.cache_clear()
        archiver(archive, patched)
    object_store.opened.cache_clear()
    assert "can't be opened: " in told(archive).trouble
    assert "Missing SecretAccessKey" in told(archive).trouble
    assert told(archive).trouble.endswith("correct its Secret or fields")


def test_a_store_that_would_overwrite_an_archive_is_refused(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    real, before = obstore.put, all_files(archive.folder)
    archive.write(7, 3, closed=True)
    with monkeypatch.context() as patched:
        patched.setattr(obstore, "put", lambda store, key, content, **_: real(store, key, content))
        archiver(archive, patched)
    assert "ignores `If-None-Match: *`" in told(archive).trouble
    assert all_files(archive.folder) == before


def test_the_program_expires_what_is_ordered_and_reports_what_is_left(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.log.metadata.told[ORDER_PATH] = encode_expiry_order(order(3, 2))
    archiver(archive, monkeypatch)
    held = told(archive).held
    assert held is not None
    assert (held.first, held.last, held.begins_log, told(archive).expiry_trouble) == ((3, 2), (5, 1), False, "")
    oldest = oldest_segment(archive.folder, IDENTITY)
    assert oldest is not None
    assert oldest.first.lsn == Lsn(3, 2)


def test_an_archive_in_another_store_is_opened_with_keys_of_its_own(archive: Archive) -> None:
    """Each of the two servers refuses the other's keys."""
    elsewhere = stored_path(f"s3://{archive.folder.parts[0]}/archives/c/0ab", ARCHIVE_VARIABLES)
    assert segments(elsewhere, IDENTITY) == segments(archive.folder, IDENTITY)
    assert replace(archive, folder=elsewhere).archived() == archive.archived()
    assert elsewhere != archive.folder
    with pytest.raises(ValueError, match="is not below"):
        (elsewhere / "log").relative_to(archive.folder)  # type: ignore[arg-type, union-attr]
    assert {getattr(path, "variables", "") for path in elsewhere.glob("log/*/*")} == {ARCHIVE_VARIABLES}


def test_names_are_listed_in_order_from_one_on_that_needs_not_be_there(archive: Archive) -> None:
    place = archive.folder / "log" / "segments"
    names = sorted(path.name for path in place.glob("*"))
    assert list(names_from(place)) == names
    for first in (*names, f"{names[2]}x", "", "."):
        assert list(names_from(place, first)) == [name for name in names if name >= first]
    assert list(names_from(place, "9")) == list(names_from(archive.folder / "nothing")) == []
    assert list(names_from(archive.folder, "a")) == [], "what lies deeper is not in the folder"


@pytest.fixture
def listed(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names requested from the store from now on, one per page."""
    names: list[str] = []
    real = obstore.list

    def noted(store: Any, prefix: Any, *, offset: str | None = None) -> Iterator[Any]:
        for chunk in real(store, prefix, offset=offset, chunk_size=1):
            names.extend(item["path"].split("/")[-1] for item in chunk)
            yield chunk

    monkeypatch.setattr(obstore, "list", noted)
    return names


def test_the_first_page_shows_whose_archive_it_is_and_where_it_begins(archive: Archive, listed: list[str]) -> None:
    first, *others = segments(archive.folder, IDENTITY)
    assert others
    for look in (lambda: identity_of_archive(archive.folder) == first.identity, lambda: oldest_segment(archive.folder, IDENTITY) == first):
        listed.clear()
        assert look()
        assert listed == [manifest_path(archive.folder, first.first.lsn).name]


def test_a_look_lists_only_the_newest_segments_once_one_is_known(
    archive: Archive, listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_more() -> None:
        listed.clear()
        archive.write(7, 3, closed=True)

    def look_again() -> None:
        assert archive.archived()[-1][0] == Lsn(7, 2)
        listed.clear()

    archiver(archive, monkeypatch, write_more, look_again)
    names = [path.name for path in archive.folder.glob("log/segments/*")]
    assert set(listed) == {names[0], names[-1]}
    assert told(archive).held is not None


def manifests_are_read(monkeypatch: pytest.MonkeyPatch, read: Callable[[ObjectPath], None]) -> None:
    """Calls `read` before each read of a manifest."""
    own = ObjectPath.read_bytes

    def before(path: ObjectPath) -> bytes:
        if path.parent.name == "segments":
            read(path)
        return own(path)

    monkeypatch.setattr(ObjectPath, "read_bytes", before)


def test_the_manifests_of_several_segments_are_asked_for_at_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = archive.archived()
    all_at_once = threading.Barrier(6)
    manifests_are_read(monkeypatch, lambda _: all_at_once.wait(PATIENCE_SECONDS) and None)
    parts = log_parts(WholeLog(archive.source, archive.folder, IDENTITY), Lsn(5, 1))
    assert firsts(parts.archived) == [(lsn.ledger_id, lsn.entry_id) for lsn, _ in expected]


def test_the_files_of_the_base_are_looked_for_at_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"data/run/{number}.parquet" for number in range(6)]
    for name in names:
        write(archive.folder / name, b"rows")
    files = tuple(ManifestFile(path=name, rows=1, size=4, hash="x") for name in names)
    named = order(3, 2, base(archive, (3, 2), tables=(table(files=files),)))
    all_at_once, size = threading.Barrier(6), ObjectPath.size

    def together(path: ObjectPath) -> int:
        if path.name.endswith(".parquet"):
            all_at_once.wait(PATIENCE_SECONDS)
        return size(path)

    monkeypatch.setattr(ObjectPath, "size", together)
    assert due(place_of(archive), named) is not None


def test_the_files_of_several_expired_segments_are_deleted_at_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    going = segments(archive.folder, IDENTITY)[:-1]
    all_at_once, unlink = threading.Barrier(len(going)), ObjectPath.unlink

    def together(path: ObjectPath) -> None:
        if path.name.endswith((".parquet", ".expired")):
            all_at_once.wait(PATIENCE_SECONDS)
        unlink(path)

    monkeypatch.setattr(ObjectPath, "unlink", together)
    delete_segments(archive.folder, going)
    assert len(all_files(archive.folder)) == 2


def test_the_moments_that_a_refusal_names_are_found_by_several_requests_at_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WholeLog(archive.source, archive.folder, IDENTITY)
    (window,) = windows_of_files(whole, archive.folder, None)
    all_at_once = threading.Barrier(6)
    manifests_are_read(monkeypatch, lambda _: all_at_once.wait(PATIENCE_SECONDS) and None)
    assert windows_of_files(whole, archive.folder, None) == (window,)


def test_an_unreadable_manifest_behind_the_moment_does_not_matter(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    last = manifest_path(archive.folder, Lsn(5, 1))

    def read(path: ObjectPath) -> None:
        if path == last:
            raise OSError("no answer")

    manifests_are_read(monkeypatch, read)
    whole = WholeLog(archive.source, archive.folder, IDENTITY)
    assert firsts(log_parts(whole, Lsn(5, 0)).archived)[-1] == (5, 0)
    with pytest.raises(OSError, match="no answer"):
        log_parts(whole, Lsn(5, 1))


def test_knowledge_of_another_archive_does_no_harm(archive: Archive) -> None:
    newest = segments(archive.folder, IDENTITY)[-1]
    for known in (None, Lsn(0, 0), Lsn(3, 2), newest.first.lsn, Lsn(99, 0)):
        assert newest_segment(archive.folder, IDENTITY, known) == newest
    assert newest_segment(archive.folder / "nothing", IDENTITY, Lsn(3, 2)) is None
