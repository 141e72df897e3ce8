"""An archive with encrypted segments: the same entries, also after a key rotation, and nothing without the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from places import all_files, write
from played_bookie import PlayedBookie, served
from played_log import PlayedLog
from secret_keys import MountedSecret
from test_log_archive import IDENTITY, Archive, reported

from herdkeeper.protocol.log_archive import ArchivedRange
from herdkeeper_jobs.archive import cli
from herdkeeper_jobs.archive.copying import Copied, copy_log
from herdkeeper_jobs.archive.expiry import delete_segments
from herdkeeper_jobs.archive.segment import Place, oldest_segment, segments
from herdkeeper_jobs.bookkeeper.reader import ReadSettings
from herdkeeper_jobs.encryption.keys import FOLDERS, Key
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable
from herdkeeper_jobs.storage.stored_path import StoredPath, found_below
from herdkeeper_jobs.termination_message import VARIABLE
from herdkeeper_jobs.wal.lsn import Lsn


@pytest.fixture
def archive(tmp_path: Path, place: StoredPath) -> Iterator[Archive]:
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        yield Archive(PlayedLog(bookies, addresses, tmp_path), place / "c" / "0ab")


def data_files(archive: Archive) -> list[str]:
    return [name for name in all_files(archive.folder) if name.endswith(".parquet")]


def copied(archive: Archive, key: Key, segment_bytes: int = 60) -> Copied:
    return copy_log(archive.source, Place(archive.folder, IDENTITY, "run-1", key=key), ReadSettings(batch_entries=3), segment_bytes)


def rotated(archive: Archive, keys: MountedSecret) -> tuple[Key, Key]:
    """Archives ledgers 3 and 5, each with a key of its own, which are returned."""
    old = keys.add("2026-11")
    archive.write(3, 5, closed=True)
    copied(archive, old)
    new = keys.add("2027-05")
    archive.write(5, 4, closed=True)
    copied(archive, new)
    return old, new


def test_an_encrypted_archive_has_the_same_entries_and_goes_on_with_the_next_key(archive: Archive, keys: MountedSecret) -> None:
    rotated(archive, keys)
    assert archive.up_to(Lsn(5, 3))[1] == archive.archived()
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)
    names = [segment.encryption.key_name for segment in segments(archive.folder, IDENTITY) if segment.encryption is not None]
    assert (names[0], names[-1], len(names)) == ("2026-11", "2027-05", len(segments(archive.folder, IDENTITY)))
    assert len({segment.encryption and segment.encryption.file_key for segment in segments(archive.folder, IDENTITY)}) == len(names)
    stored = [(archive.folder / name).read_bytes() for name in data_files(archive)]
    assert len(stored) == len(names)
    assert not any(b"payload" in content or payload in content for content in stored for payload in archive.written.values())


def test_without_the_old_key_the_archive_goes_on_and_what_needs_that_key_says_so(archive: Archive, keys: MountedSecret) -> None:
    _, new = rotated(archive, keys)
    keys.remove("2026-11")
    archive.write(7, 2, closed=True)
    assert copied(archive, new).entries == 2
    assert archive.up_to(Lsn(7, 1), Lsn(5, 0))[1] != []
    with pytest.raises(KeyUnusable, match=r"log/segments/.*json is encrypted with the key '2026-11'.*has '2027-05'; put that key back"):
        archive.up_to(Lsn(7, 1))


def test_an_archive_whose_beginning_nobody_can_read_any_more_is_reported(
    archive: Archive, place: StoredPath, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.log.metadata.instance_id = "c"
    old, _ = rotated(archive, keys)
    there, gone, back = reported(
        archive, place, monkeypatch, lambda: keys.remove("2026-11"), lambda: keys.put(old, "old"), encrypt_with=keys.folder / "2027-05"
    )
    assert "is encrypted with the key '2026-11'" in gone.locked
    assert (there.locked, gone.trouble, back.locked) == ("", "", "")
    assert gone.current_at_millis != there.current_at_millis, "the archive goes on with the new key"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            lambda content: json.dumps(json.loads(content) | {"runId": "another"}).encode(),
            "differs from what the key '2026-11'",
        ),
        (lambda content: content[:-20], "is not a manifest of a segment: "),
    ],
    ids=["another run", "no JSON"],
)
def test_what_is_archived_behind_a_changed_beginning_counts_all_the_same(
    archive: Archive, place: StoredPath, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch, changed: Callable[[bytes], bytes], told: str
) -> None:
    archive.log.metadata.instance_id = "c"
    rotated(archive, keys)

    def change() -> None:
        first = archive.folder / min(name for name in all_files(archive.folder) if name.endswith(".json"))
        write(first, changed(first.read_bytes()))
        archive.write(7, 2, closed=True)

    there, report = reported(archive, place, monkeypatch, change, encrypt_with=keys.folder / "2027-05")
    assert (there.trouble, there.held and there.held.first) == ("", (3, 0))
    assert report.held == ArchivedRange((3, 0), 3000, True, (7, 1), 7001, (7, 2))
    assert (told in report.trouble, report.locked) == (True, "")
    assert report.current_at_millis != there.current_at_millis


def test_a_changed_manifest_of_a_segment_is_neither_read_nor_continued_from(archive: Archive, keys: MountedSecret) -> None:
    old = keys.add("2026-11")
    archive.write(3, 5, closed=True)
    copied(archive, old, 10_000)
    (path,) = found_below(archive.folder / "log" / "segments", "*.json")
    document = json.loads(path.read_bytes())
    write(path, json.dumps(document | {"last": {"ledgerId": 3, "entryId": 3}, "nextLedger": None}).encode())
    with pytest.raises(InvariantViolated, match="was changed: its content differs from what the key '2026-11' sealed"):
        copied(archive, old)
    with pytest.raises(InvariantViolated, match="was changed"):
        archive.up_to(Lsn(3, 3))
    write(path, json.dumps(document | {"encryption": None}).encode())
    with pytest.raises(InvariantViolated, match="schemaVersion 2 and its encryption contradict each other"):
        copied(archive, old)


def test_segments_expire_even_if_their_key_is_lost(archive: Archive, keys: MountedSecret) -> None:
    old = keys.add("2026-11")
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=True)
    copied(archive, old)
    keys.remove("2026-11")
    chain = segments(archive.folder, IDENTITY)
    delete_segments(archive.folder, chain[:2])
    assert oldest_segment(archive.folder, IDENTITY) == chain[2]
    assert len(data_files(archive)) == len(chain) - 2


def test_the_archiver_refuses_a_key_that_it_could_not_read_with(
    archive: Archive, keys: MountedSecret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.add("2026-11")
    archive.log.metadata.instance_id = "c"
    archive.write(3, 5, closed=True)
    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "said"))
    where = {"--zookeeper": "z:1", "--ledgers-root": "/l", "--herd-root": "/db/herd", "--tablespace": "demo", "--run-id": "r"}
    named = {"--destination": str(archive.folder.parent.parent), "--encrypt-with": str(keys.folder / "2026-11")}
    arguments = [part for pair in (where | named).items() for part in pair]
    with monkeypatch.context() as patched:
        patched.delenv(FOLDERS)
        assert cli.main(arguments) == 2
    assert "list its folder in the variable ENCRYPTION_KEYS, too, to read what is written" in (tmp_path / "said").read_text()
    assert data_files(archive) == []
    assert cli.main(arguments) == 0
    assert len(data_files(archive)) == 1
