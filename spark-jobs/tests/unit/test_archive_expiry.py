"""Expiry of an archive: only the oldest, provably useless segments go, and a kill leaves it whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from emptied_place import remove_below
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kazoo.exceptions import ConnectionLoss
from places import all_files, write
from played_bookie import PlayedBookie, served
from played_log import PlayedLog
from test_checkpoint_manifest import manifest, table
from test_log_archive import IDENTITY, Archive, FullVolume, Killed, Looks, in_a_folder, killing, manifests

from herdkeeper.protocol.log_archive import ArchiveProgress, ExpiryOrder, decode_archive_progress, encode_expiry_order
from herdkeeper_jobs.archive import cli, expiry
from herdkeeper_jobs.archive import segment as archived_segment
from herdkeeper_jobs.archive.expiry import delete_segments, due, expired, sweep
from herdkeeper_jobs.archive.segment import Place, SegmentManifest, newest_segment, oldest_segment, segments
from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import ManifestFile, Position, commit_manifest
from herdkeeper_jobs.storage.stored_path import StoredPath, new_file, remove_file
from herdkeeper_jobs.wal.lsn import Lsn

ORDER_PATH = "/db/herd/logArchive/0ab/expiry"
PROGRESS_PATH = "/db/herd/logArchive/0ab"


@pytest.fixture
def archive(place: StoredPath, tmp_path: Path) -> Iterator[Archive]:
    """Nine segments of one entry each, in ledger 3, and three in ledger 5."""
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        made = Archive(PlayedLog(bookies, addresses, tmp_path), place / "c" / "0ab")
        made.log.metadata.instance_id = "c"
        made.write(3, 9, closed=True)
        made.write(5, 3, closed=True)
        made.copy(batch_entries=1, segment_bytes=1)
        yield made


def place_of(archive: Archive) -> Place:
    return Place(archive.folder, IDENTITY, "run-1")


def order(ledger: int, entry: int, checkpoint: str = "") -> ExpiryOrder:
    return ExpiryOrder("archives", (ledger, entry), checkpoint)


def firsts(found: tuple[SegmentManifest, ...]) -> list[tuple[int, int]]:
    return [(segment.first.ledger_id, segment.first.entry_id) for segment in found]


def files(archive: Archive) -> set[str]:
    """All files of the archive."""
    return all_files(archive.folder)


@pytest.mark.parametrize(
    ("keep_from", "left"),
    [
        ((3, 0), (3, 0)),
        ((3, 4), (3, 4)),
        ((5, 0), (5, 0)),
        ((5, 2), (5, 2)),
        ((2, 7), (3, 0)),
    ],
    ids=["all is needed", "in the middle of a ledger", "a ledger has gone", "only the newest is needed", "from before the archive on"],
)
def test_segments_that_end_before_what_is_needed_may_go(archive: Archive, keep_from: tuple[int, int], left: tuple[int, int]) -> None:
    found = due(place_of(archive), order(*keep_from))
    everything = firsts(segments(archive.folder, IDENTITY))
    expected = everything[: everything.index(left)]
    assert (firsts(found.going) if found else []) == expected
    if found:
        assert firsts((found.oldest_left,)) == [left]
        delete_segments(archive.folder, found.going)
    assert firsts(segments(archive.folder, IDENTITY))[0] == left
    assert len([name for name in files(archive) if name.startswith("log/data/")]) == len(everything) - len(expected)
    assert [lsn for lsn, _ in archive.archived()] == sorted(lsn for lsn in archive.written if lsn >= Lsn(*left))


def test_a_partly_old_segment_stays(archive: Archive) -> None:
    remove_below(archive.folder)
    archive.copy(batch_entries=4, segment_bytes=60)
    chain = segments(archive.folder, IDENTITY)
    wide = next(segment for segment in chain[1:] if segment.entries > 1)
    found = due(place_of(archive), order(wide.last.ledger_id, wide.last.entry_id))
    assert found is not None
    assert found.oldest_left == wide


def test_an_archive_never_loses_all_its_segments(archive: Archive) -> None:
    chain = segments(archive.folder, IDENTITY)
    with pytest.raises(CheckpointRefused, match="must be kept from 5,3 on, but it ends with 5,2: nothing is deleted"):
        due(place_of(archive), order(5, 3))
    with pytest.raises(CheckpointRefused, match="must be kept from 3,0 on, but it is empty"):
        expired((), Lsn(3, 0))
    assert segments(archive.folder, IDENTITY) == chain


def test_an_archive_with_a_gap_loses_nothing(archive: Archive) -> None:
    remove_file(manifests(archive)[10])
    before = files(archive)
    with pytest.raises(InvariantViolated, match="follows"):
        due(place_of(archive), order(3, 4))
    assert files(archive) == before


def test_nothing_is_deleted_while_a_segment_is_unreadable(archive: Archive) -> None:
    write(manifests(archive)[7], b"?")
    with pytest.raises(InvariantViolated, match="is not a manifest of a segment"):
        due(place_of(archive), order(3, 4))


def test_many_segments_expire_in_parts(archive: Archive) -> None:
    taken = []
    while (found := due(place_of(archive), order(5, 1), most=4)) is not None:
        taken.append(len(found.going))
        delete_segments(archive.folder, found.going)
    assert taken == [4, 4, 2]


def base(archive: Archive, restart: tuple[int, int] = (3, 4), **more: Any) -> str:
    """Makes a checkpoint at 3,6 at the archive's destination; returns its manifest's path."""
    write(archive.folder / "data" / "run" / "t.parquet", b"rows")
    made = manifest(entry_id=6).model_copy(
        update={
            "identity": IDENTITY,
            "lsn": Position(ledger_id=3, entry_id=6),
            "restart_lsn": Position(ledger_id=restart[0], entry_id=restart[1]),
            "tables": (table(files=(ManifestFile(path="data/run/t.parquet", rows=1, size=4, hash="x"),)),),
            **more,
        }
    )
    return "/".join(commit_manifest(made, archive.folder).path.parts[-4:])


def test_segments_expire_only_while_the_base_is_whole(archive: Archive) -> None:
    named = order(3, 4, base(archive))
    assert due(place_of(archive), named) is not None
    write(archive.folder / "data" / "run" / "t.parquet", b"row")
    with pytest.raises(CheckpointRefused, match=r"lacks data/run/t\.parquet, or it has another size: nothing"):
        due(place_of(archive), named)
    remove_file(archive.folder / "data" / "run" / "t.parquet")
    with pytest.raises(CheckpointRefused, match=r"lacks data/run/t\.parquet"):
        due(place_of(archive), named)
    remove_file(archive.folder.parent.parent / named.manifest)
    with pytest.raises(CheckpointRefused, match="for which the archive is kept, does not exist"):
        due(place_of(archive), named)


def test_a_base_that_needs_more_than_is_kept_or_belongs_to_another_log_blocks_expiry(archive: Archive) -> None:
    with pytest.raises(CheckpointRefused, match="does not continue from 3,5: nothing is deleted"):
        due(place_of(archive), order(3, 5, base(archive)))
    remove_below(archive.folder / "manifests")
    foreign = base(archive, identity=IDENTITY.model_copy(update={"tablespace_uuid": "another"}))
    with pytest.raises(CheckpointRefused, match="belongs to c/another: nothing is deleted"):
        due(place_of(archive), order(3, 4, foreign))


STEPS = ("rename", "unlink", "fsync", "rmdir")


@in_a_folder
def test_a_kill_at_any_step_leaves_a_readable_archive_and_the_next_run_completes_it(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archive.archived()
    saved = archive.folder.with_name("saved")
    shutil.copytree(archive.folder, saved)
    killed, beginnings = 0, set()
    for step in range(200):
        with monkeypatch.context() as patched:
            steps = iter(range(step))
            for name in STEPS:
                patched.setattr(os, name, killing(getattr(os, name), steps))
            try:
                _expire(archive, order(3, 5))
            except Killed:
                killed += 1
            else:
                break
        during = archive.archived()
        beginnings.add(during[0][0])
        assert during == whole[len(whole) - len(during) :], "what is left is the end of it, without a gap"
        assert [lsn for lsn, _ in during][-1] == Lsn(5, 2)
        assert during[0][0] <= Lsn(3, 5)
        _expire(archive, order(3, 5))
        assert firsts(segments(archive.folder, IDENTITY)) == [(3, 5), (3, 6), (3, 7), (3, 8), (5, 0), (5, 1), (5, 2)]
        assert len(files(archive)) == 14, "nothing is left of what has expired"
        shutil.rmtree(archive.folder)
        shutil.copytree(saved, archive.folder)
    assert killed > 15
    assert beginnings == {Lsn(3, entry) for entry in range(6)}


def _expire(archive: Archive, wanted: ExpiryOrder) -> None:
    found = due(place_of(archive), wanted)
    if found is None:
        sweep(archive.folder)
    else:
        delete_segments(archive.folder, found.going)


def test_two_overlapping_expiries_delete_no_more_than_the_larger(archive: Archive) -> None:
    first = due(place_of(archive), order(3, 5))
    second = due(place_of(archive), order(3, 7))
    assert first
    assert second
    delete_segments(archive.folder, second.going)
    delete_segments(archive.folder, first.going)
    assert firsts(segments(archive.folder, IDENTITY))[0] == (3, 7)


@pytest.mark.parametrize("path", ["data/run/t.parquet", "log/data/../../data/run/t.parquet", "log/data/t.parquet", "/etc/passwd"])
def test_a_segment_that_names_a_foreign_file_deletes_nothing(archive: Archive, path: str) -> None:
    base(archive)
    oldest = oldest_segment(archive.folder, IDENTITY)
    assert oldest is not None
    name = archive.folder / "log" / "segments" / ".00.json.expired"
    write(name, oldest.model_copy(update={"path": path}).model_dump_json(by_alias=True).encode())
    before = files(archive)
    with pytest.raises(CheckpointRefused, match="is not a file of its archive: the file is kept"):
        sweep(archive.folder)
    assert files(archive) == before


@in_a_folder
def test_a_link_is_not_followed(archive: Archive) -> None:
    oldest = oldest_segment(archive.folder, IDENTITY)
    assert oldest is not None
    assert isinstance(archive.folder, Path)
    (archive.folder / "log" / "data" / "elsewhere").symlink_to(archive.folder / "log" / "data" / "run-1")
    name = archive.folder / "log" / "segments" / ".00.json.expired"
    linked = oldest.path.replace("run-1", "elsewhere")
    name.write_text(oldest.model_copy(update={"path": linked}).model_dump_json(by_alias=True))
    with pytest.raises(CheckpointRefused, match="is not a file of its archive"):
        sweep(archive.folder)
    assert (archive.folder / oldest.path).is_file()


def test_an_archiver_continues_where_it_ended_whatever_has_expired(archive: Archive) -> None:
    _expire(archive, order(5, 2))
    assert firsts(segments(archive.folder, IDENTITY)) == [(5, 2)]
    archive.write(7, 2, closed=True)
    assert archive.copy().entries == 2
    chain = segments(archive.folder, IDENTITY)
    assert [segment.begins_log for segment in chain] == [False] * len(chain)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_needed_segments_survive_any_sequence_of_expiries(archive: Archive, data: st.DataObject) -> None:
    """Any sequence of orders leaves everything from the latest kept LSN on, without gaps."""
    remove_below(archive.folder)
    archive.copy(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 200)))
    highest = Lsn(0, 0)
    for lsn in data.draw(st.lists(st.sampled_from(sorted(archive.written)), max_size=4)):
        highest = max(highest, lsn)
        _expire(archive, order(lsn.ledger_id, lsn.entry_id))
        left = [found for found, _ in archive.archived()]
        assert [found for found in left if found >= highest] == sorted(found for found in archive.written if found >= highest)
        assert left == sorted(archive.written)[-len(left) :]


def archiver(archive: Archive, monkeypatch: pytest.MonkeyPatch, *between: Callable[[], None]) -> None:
    """Runs the program, with something between two looks."""
    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    where = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo", "--run-id", "r"]
    looks = Looks(*between)
    assert cli.main([*where, "--destination", str(archive.folder.parent.parent), "--place", "archives", "--every", "60"], looks) == 0


def test_the_program_reports_a_later_beginning_before_it_deletes_anything(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[tuple[int, int], bool, tuple[int, int]]] = []
    metadata = archive.log.metadata
    write = metadata.set

    def note(path: str, data: bytes) -> None:
        write(path, data)
        held = decode_archive_progress(data).held
        (oldest,) = firsts((oldest_segment(archive.folder, IDENTITY),))  # type: ignore[arg-type]
        assert held is not None
        told.append((held.first, held.begins_log, oldest))

    monkeypatch.setattr(metadata, "set", note)
    archiver(archive, monkeypatch, lambda: metadata.told.update({ORDER_PATH: encode_expiry_order(order(3, 4))}))
    assert told == [((3, 4), False, (3, 0)), ((3, 4), False, (3, 4))]


@pytest.mark.parametrize(
    ("written", "trouble"),
    [
        (encode_expiry_order(ExpiryOrder("another", (3, 4))), ""),
        (b"?", "the order to expire parts of an archive"),
        (encode_expiry_order(ExpiryOrder("archives", (9, 0))), "but it ends with 5,2: nothing is deleted"),
        (encode_expiry_order(ExpiryOrder("archives", (3, 4), "c/0ab/manifests/x.json")), "does not exist: nothing is deleted"),
    ],
    ids=["another claim is meant", "it can't be read", "the archive does not hold it", "the base is not there"],
)
def test_the_program_goes_on_archiving_when_nothing_can_expire_and_reports_why(
    written: bytes, trouble: str, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, told = archive.log.metadata, list[ArchiveProgress]()
    metadata.told[ORDER_PATH] = written
    before = files(archive)

    def more() -> None:
        told.append(decode_archive_progress(metadata.told[PROGRESS_PATH]))
        metadata.told.pop(ORDER_PATH)
        archive.write(7, 2, closed=True)

    archiver(archive, monkeypatch, more)
    (first,) = told
    assert (trouble in first.expiry_trouble, bool(first.expiry_trouble), first.trouble) == (True, bool(trouble), "")
    assert before <= files(archive)
    last = decode_archive_progress(metadata.told[PROGRESS_PATH])
    assert last.held is not None
    assert (last.held.last, last.expiry_trouble, last.held.first) == ((7, 1), "", (3, 0))


def test_the_program_goes_on_archiving_and_deletes_nothing_while_the_oldest_manifest_can_not_be_read(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = archive.log.metadata

    def damage() -> None:
        write(manifests(archive)[0], b"{")
        metadata.told[ORDER_PATH] = encode_expiry_order(order(3, 4))
        archive.write(7, 2, closed=True)
        before.update(files(archive))

    before = set[str]()
    archiver(archive, monkeypatch, damage)
    last = decode_archive_progress(metadata.told[PROGRESS_PATH])
    assert last.held is not None
    assert (last.held.first, last.held.last) == ((3, 0), (7, 1))
    assert ("is not a manifest" in last.trouble, "is not a manifest" in last.expiry_trouble) == (True, True)
    assert before < files(archive)


def no_room_for_a_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived_segment, "new_file", lambda path: FullVolume(new_file(path)))


def no_room_for_any_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def open_old(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if "x" in mode or "w" in mode:
            raise OSError(28, "No space left on device")
        return opened(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", open_old)


@in_a_folder
@pytest.mark.parametrize("fill", [no_room_for_a_segment, no_room_for_any_file])
def test_what_has_expired_makes_room_on_a_full_volume(
    fill: Callable[[pytest.MonkeyPatch], None], archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archiver that has just been started tests the volume first."""
    metadata = archive.log.metadata
    archive.write(7, 2, closed=True)
    fill(monkeypatch)
    metadata.told[ORDER_PATH] = encode_expiry_order(order(3, 4))
    archiver(archive, monkeypatch)
    told = decode_archive_progress(metadata.told[PROGRESS_PATH])
    assert told.held is not None
    assert ("No space left on device" in told.trouble, told.expiry_trouble) == (True, "")
    assert (told.held.first, told.held.last, len(files(archive))) == ((3, 4), (5, 2), 16)


def test_the_program_deletes_nothing_while_zookeeper_takes_no_report(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = archive.log.metadata
    before, write = files(archive), metadata.set
    metadata.told |= {ORDER_PATH: encode_expiry_order(order(3, 4)), PROGRESS_PATH: b"{}"}

    def silent_once(path: str, data: bytes) -> None:
        monkeypatch.setattr(metadata, "set", write)
        raise ConnectionLoss

    monkeypatch.setattr(metadata, "set", silent_once)
    archiver(archive, monkeypatch)
    assert before <= files(archive)
    told = decode_archive_progress(metadata.told[PROGRESS_PATH])
    assert told.held is not None
    assert (told.held.first, "ZooKeeper did not take" in told.expiry_trouble) == ((3, 4), True), "the next look tells what there is"


def test_the_program_reports_a_destination_that_can_not_be_listed(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.log.metadata.told[ORDER_PATH] = encode_expiry_order(order(3, 4))
    before = files(archive)

    def unreadable(*_: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(expiry, "segments", unreadable)
    archiver(archive, monkeypatch)
    assert before <= files(archive)
    told = decode_archive_progress(archive.log.metadata.told[PROGRESS_PATH])
    assert (told.expiry_trouble, told.trouble) == ("OSError: [Errno 5] Input/output error", "")


@in_a_folder
@pytest.mark.parametrize("call", ["rename", "unlink"])
def test_a_destination_that_fails_during_expiry_is_reported_and_never_more_than_what_exists(
    call: str, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.log.metadata.told[ORDER_PATH] = encode_expiry_order(order(3, 4))
    done = getattr(os, call)
    left = iter(range(2))

    def broken(*arguments: Any, **options: Any) -> Any:
        # the test of hard links before any work does not count
        if ".herdkeeper-links-" not in str(arguments[0]) and next(left, None) is None:
            raise OSError(5, "Input/output error")
        return done(*arguments, **options)

    monkeypatch.setattr(os, call, broken)
    archiver(archive, monkeypatch)
    monkeypatch.setattr(os, call, done)
    told = decode_archive_progress(archive.log.metadata.told[PROGRESS_PATH])
    assert told.held is not None
    assert (told.held.begins_log, told.held.first, "Input/output error" in told.expiry_trouble) == (False, (3, 4), True)
    assert archive.archived()[0][0] <= Lsn(3, 4)
    archiver(archive, monkeypatch)
    told = decode_archive_progress(archive.log.metadata.told[PROGRESS_PATH])
    assert (firsts(segments(archive.folder, IDENTITY))[0], len(files(archive)), told.expiry_trouble) == ((3, 4), 16, "")


def test_a_killed_runs_leftovers_are_deleted_by_the_next_look_even_without_further_expiry(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = due(place_of(archive), order(3, 4))
    assert found is not None
    monkeypatch.setattr(expiry, "sweep", lambda folder: None)
    delete_segments(archive.folder, found.going)
    assert len(files(archive)) == 24
    monkeypatch.undo()
    archiver(archive, monkeypatch)
    assert len(files(archive)) == 16
    newest = newest_segment(archive.folder, IDENTITY)
    assert newest is not None
    assert newest.last.lsn == Lsn(5, 2)
