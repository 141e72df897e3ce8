"""The archive of a log: whole after any kill, and with the rest of the log equal to the undropped log."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from emptied_place import remove_below
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import write
from played_bookie import PlayedBookie, served
from played_log import TABLESPACE, PlayedLog

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, decode_archive_progress
from herdkeeper_jobs.archive import cli, copying
from herdkeeper_jobs.archive import parts as parts_of_archive
from herdkeeper_jobs.archive import segment as archived_segment
from herdkeeper_jobs.archive.copying import Copied, copy_log
from herdkeeper_jobs.archive.parts import LogParts, WholeLog, archive_partitions, live_partitions, log_parts, read_archived
from herdkeeper_jobs.archive.segment import Place, newest_segment, oldest_segment, read_segment, segments
from herdkeeper_jobs.bookkeeper.reader import ReadSettings, read_partition
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated, LogDropped, NotConfirmedYet
from herdkeeper_jobs.log_source import LogSource
from herdkeeper_jobs.manifests.manifest import Identity
from herdkeeper_jobs.storage.stored_path import NewFile, StoredPath, found_below, new_file, remove_file
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.lsn import Lsn

IDENTITY = Identity(instance_id="c", tablespace_uuid="0ab", tablespace="demo", ledgers_root="/l", herd_root="/h")
Entries = list[tuple[Lsn, bytes]]


@dataclass
class Archive:
    """A log, its archive's folder, and all that was ever written to the log."""

    log: PlayedLog
    folder: StoredPath
    written: dict[Lsn, bytes] = field(default_factory=dict)

    @property
    def source(self) -> LogSource:
        catalog: Any = self.log.metadata
        return LogSource(catalog, "/db/herd", TABLESPACE)

    def write(self, ledger_id: int, count: int, *, closed: bool) -> None:
        entries = [LogEntry(ledger_id * 1000 + number, LogEntryType.DELETE, 0, "t", bytes([number])) for number in range(count)]
        self.log.write(ledger_id, entries, closed=closed)
        for (ledger, entry), data in self.log.bookies[0].entries.items():
            self.written[Lsn(ledger, entry)] = data

    def copy(self, batch_entries: int = 3, segment_bytes: int = 60) -> Copied:
        place = Place(self.folder, IDENTITY, "run-1")
        return copy_log(self.source, place, ReadSettings(batch_entries=batch_entries), segment_bytes)

    def archived(self) -> Entries:
        """All entries of the archive, each file verified."""
        return [entry for segment in segments(self.folder, IDENTITY) for entry in _entries(read_segment(segment, self.folder).to_batches())]

    def up_to(self, target: Lsn, begin: Lsn | None = None) -> tuple[LogParts, Entries]:
        """The parts of the log up to an LSN, and their entries up to there."""
        parts = log_parts(WholeLog(self.source, self.folder, IDENTITY), target, begin)
        found = [entry for part in archive_partitions(parts, self.folder, 2) for entry in _entries(read_archived(part))]
        found += [entry for spec in live_partitions(parts, self.source, 2) for entry in _entries(read_partition(spec))]
        assert len(found) == parts.entries
        return parts, [(lsn, payload) for lsn, payload in found if (begin or lsn) <= lsn <= target]

    def expected(self, target: Lsn) -> list[Lsn]:
        return sorted(lsn for lsn in self.written if lsn <= target)


def _entries(batches: Any) -> Entries:
    return [
        (Lsn(row["ledger_id"], row["entry_id"]), row["payload"])
        for batch in batches
        for row in batch.select(["ledger_id", "entry_id", "payload"]).to_pylist()
    ]


@pytest.fixture
def archive(place: StoredPath, tmp_path: Path) -> Iterator[Archive]:
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        yield Archive(PlayedLog(bookies, addresses, tmp_path), place / "c" / "0ab")


in_a_folder = pytest.mark.parametrize("place", ["folder"], indirect=True)
"""For tests that read the folder itself; test_archive_in_an_object_store.py does so in a store."""


def test_a_log_is_archived_up_to_what_is_confirmed_and_the_next_run_goes_on_from_there(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=False)
    first = archive.copy()
    assert (first.entries, first.end and first.end.last.lsn) == (8, Lsn(5, 2))  # the last entry is not confirmed yet
    assert archive.copy().segments == 0
    archive.write(5, 6, closed=True)
    assert archive.copy().entries == 3
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)
    chain = segments(archive.folder, IDENTITY)
    assert [segment.follows for segment in chain] == [None, *(segment.last for segment in chain[:-1])]


def test_an_idle_log_has_its_newest_segment_read_once(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(segment: archived_segment.SegmentManifest, folder: StoredPath) -> Any:
        read.append(segment.path)
        return read_segment(segment, folder)

    monkeypatch.setattr(parts_of_archive, "read_segment", counted)
    archive.write(3, 5, closed=True)
    assert [archive.copy().segments > 0 for _ in range(3)] == [True, False, False]
    assert len(read) == 1


def test_archived_bytes_are_those_of_the_ledger_with_the_stamp_of_the_leader(archive: Archive) -> None:
    archive.write(3, 4, closed=True)
    archive.copy()
    parts, entries = archive.up_to(Lsn(3, 3))
    assert [entry in archive.written[lsn] for lsn, entry in entries] == [True] * 4
    stamps = [row["timestamp"] for segment in parts.archived for row in read_segment(segment, archive.folder).to_pylist()]
    assert stamps == [3000, 3001, 3002, 3003]


def test_archived_entries_are_decoded_as_those_of_the_log(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.copy()
    parts = WholeLog(archive.source, archive.folder, IDENTITY).live_up_to(Lsn(3, 4))
    live = [
        row
        for spec in live_partitions(parts, archive.source, 2)
        for batch in decode_batches(read_partition(spec))
        for row in batch.to_pylist()
    ]
    archived, _ = archive.up_to(Lsn(3, 4))
    held = [
        row
        for part in archive_partitions(archived, archive.folder, 2)
        for batch in decode_batches(read_archived(part))
        for row in batch.to_pylist()
    ]
    assert len(live) == 5
    assert held == live


def test_what_retention_drops_is_read_from_the_archive_and_the_rest_from_bookies(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 5, closed=True)
    archive.write(9, 2, closed=False)
    archive.copy()
    archive.log.drop(3)
    archive.log.drop(5)
    archive.write(9, 5, closed=False)
    for target in (Lsn(3, 2), Lsn(5, 4), Lsn(9, 0), Lsn(9, 3)):
        parts, entries = archive.up_to(target)
        assert [lsn for lsn, _ in entries] == archive.expected(target)
        assert bool(parts.live) is (target == Lsn(9, 3))


def test_an_archive_that_ends_with_a_ledger_knows_the_one_that_goes_on(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 1, closed=False)  # none of it is confirmed
    archive.copy()
    archive.log.drop(3)
    archive.write(5, 4, closed=True)
    assert [lsn for lsn, _ in archive.up_to(Lsn(5, 2))[1]] == archive.expected(Lsn(5, 2))
    assert archive.copy().entries == 4


def test_a_log_that_may_lack_ledgers_behind_the_archive_is_not_taken_for_its_continuation(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.copy()
    archive.write(9, 4, closed=True)  # a ledger may be missing in between
    archive.log.drop(3)
    with pytest.raises(LogDropped, match="but it begins with ledger 9 now, and its archive ends with 3,4: choose a moment in it"):
        archive.up_to(Lsn(9, 0))
    assert len(archive.up_to(Lsn(3, 4))[1]) == 5


def test_an_lsn_that_neither_archive_nor_log_has_is_refused_with_what_they_have(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=False)
    archive.copy(batch_entries=5, segment_bytes=1)
    with pytest.raises(NotConfirmedYet, match=r"spec.target.lsn .--to. is 5,3: the log is confirmed up to 5,2 only"):
        archive.up_to(Lsn(5, 3))
    with pytest.raises(CheckpointRefused, match="is 3,9: the archived log has no such entry; it continues from 3,4 to 5,0"):
        archive.up_to(Lsn(3, 9))


def test_an_archiver_that_comes_too_late_refuses_to_leave_a_gap(archive: Archive) -> None:
    archive.write(3, 5, closed=False)
    archive.copy()
    archive.write(3, 7, closed=True)
    archive.write(5, 4, closed=True)
    archive.log.drop(3)
    with pytest.raises(
        CheckpointRefused,
        match=r"the archive ends with 3,3, and the log .* begins with ledger 5 now: the entries between them are lost to the archive",
    ):
        archive.copy()
    assert len(archive.archived()) == 4


def test_the_archive_of_a_log_without_its_beginning_begins_with_what_is_left_and_serves_checkpoints_that_go_on_from_there(
    archive: Archive,
) -> None:
    archive.write(3, 2, closed=True)
    archive.write(5, 4, closed=True)
    archive.write(7, 4, closed=True)
    archive.log.drop(3)
    archive.copy()
    archive.log.drop(5)
    oldest = oldest_segment(archive.folder, IDENTITY)
    assert oldest is not None
    assert (oldest.begins_log, oldest.first.lsn) == (False, Lsn(5, 0))
    with pytest.raises(LogDropped, match="begins with 5,0, and not with the log's beginning"):
        archive.up_to(Lsn(7, 1))
    with pytest.raises(LogDropped, match="would be read from 3,1, and its archive begins with 5,0"):
        archive.up_to(Lsn(7, 1), Lsn(3, 1))
    assert [lsn for lsn, _ in archive.up_to(Lsn(7, 1), Lsn(5, 2))[1]] == [Lsn(5, 2), Lsn(5, 3), Lsn(7, 0), Lsn(7, 1)]
    with pytest.raises(CheckpointRefused, match="archived log begins with 5,0; take an LSN from there on"):
        archive.up_to(Lsn(3, 1), Lsn(5, 0))


def test_the_oldest_segments_may_be_taken_away_and_only_what_is_needed_is_read(archive: Archive) -> None:
    archive.write(3, 9, closed=True)
    archive.copy(batch_entries=1, segment_bytes=1)
    everything = segments(archive.folder, IDENTITY)
    assert (everything[0].begins_log, everything[1].begins_log, len(everything)) == (True, False, 9)
    assert segments(archive.folder, IDENTITY, Lsn(3, 4), Lsn(3, 6)) == everything[4:7]
    for path in manifests(archive)[:3]:
        remove_file(path)
    left = segments(archive.folder, IDENTITY)
    assert left == everything[3:]
    assert (oldest_segment(archive.folder, IDENTITY), newest_segment(archive.folder, IDENTITY)) == (left[0], left[-1])
    assert [lsn.entry_id for lsn, _ in archive.up_to(Lsn(3, 6), Lsn(3, 4))[1]] == [4, 5, 6]


def manifests(archive: Archive) -> list[StoredPath]:
    return found_below(archive.folder / "log" / "segments", "*")


class Killed(BaseException):
    """Stands for a kill of the process."""


STEPS = ("open", "fsync", "link", "unlink")


@in_a_folder
def test_a_kill_at_any_step_leaves_a_readable_archive_and_the_next_run_completes_it(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write(3, 5, closed=True)
    archive.copy()
    before = archive.archived()
    archive.write(5, 5, closed=True)
    saved = archive.folder.with_name("saved")
    shutil.copytree(archive.folder, saved)
    killed = 0
    for step in range(200):
        with monkeypatch.context() as patched:
            steps = iter(range(step + 1))
            for name in STEPS:
                patched.setattr(os, name, killing(getattr(os, name), steps))
            try:
                archive.copy()
            except Killed:
                killed += 1
            else:
                break
        during = archive.archived()
        assert during[: len(before)] == before
        assert [lsn for lsn, _ in during] == sorted(archive.written)[: len(during)]
        archive.copy()
        assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)
        shutil.rmtree(archive.folder)
        shutil.copytree(saved, archive.folder)
    assert killed > 10
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)


def killing(call: Any, steps: Iterator[int]) -> Any:
    def step(*arguments: Any, **options: Any) -> Any:
        if next(steps, None) is None:
            raise Killed
        return call(*arguments, **options)

    return step


@pytest.mark.parametrize(("archived", "end"), [(0, "nothing"), (2, "1,1")])
def test_of_two_archivers_one_goes_on_and_the_other_stops(
    archive: Archive, archived: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if archived:
        archive.write(1, archived, closed=True)
        archive.copy()
    archive.write(3, 5, closed=True)
    create, others = archived_segment.create_if_absent, [archive.copy]

    def meanwhile(path: StoredPath, content: bytes) -> bool:
        if others:
            others.pop()()
        return create(path, content)

    monkeypatch.setattr(archived_segment, "create_if_absent", meanwhile)
    with pytest.raises(CheckpointRetryable, match=f"another run archived the log after {end}"):
        archive.copy()
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)


@pytest.mark.parametrize(("there", "closed"), [(8, False), (8, True), (2, True)], ids=["goes on", "ended", "ended before"])
def test_a_copied_cluster_does_not_continue_the_archive_of_the_original(archive: Archive, there: int, closed: bool) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=False)
    archive.copy()
    before = archive.archived()
    others = [LogEntry(9_000 + number, LogEntryType.DELETE, 0, "t", b"of the copy") for number in range(there)]
    archive.log.write(5, others, closed=closed)
    archive.log.write(6, others, closed=False)
    with pytest.raises(InvariantViolated, match="writes to the same destination"):
        archive.copy()
    assert archive.archived() == before


@pytest.mark.parametrize("there", ["another", "no such"])
@pytest.mark.parametrize("target", [Lsn(5, 1), Lsn(6, 0)], ids=["in the archive", "behind it"])
def test_an_archive_of_a_time_that_the_log_lost_does_not_stand_for_the_log(archive: Archive, there: str, target: Lsn) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=False)
    archive.copy()
    anew = [LogEntry(9_000 + number, LogEntryType.DELETE, 0, "t", b"anew") for number in range(8)]
    archive.log.write(5, anew[:1] if there == "no such" else anew, closed=True)
    archive.log.write(6, anew, closed=False)
    archive.log.drop(3)
    end = Lsn(5, 2) if target > Lsn(5, 2) else target
    with pytest.raises(LogDropped, match=f"the archive has the entry {end}, and the log has {there} entry there: the cluster was put back"):
        archive.up_to(target, Lsn(3, 1))
    assert len(archive.up_to(Lsn(3, 4), Lsn(3, 1))[1]) == 4, "the log no longer has this ledger"


@pytest.mark.parametrize(
    ("there", "dropped", "words"),
    [
        (((5, 4, True), (6, 8, True), (7, 8, False)), (3,), "continues ledger 5 with 7, and the log has ledger 6 before it"),
        (((5, 4, True), (6, 8, True), (7, 8, False)), (3, 5), "continues ledger 5 with 7, and the log has ledger 6 before it"),
        (((5, 4, True), (9, 8, False)), (3,), "ledger 7 is not in the log"),
        (((5, 6, True), (7, 8, False)), (3,), "ends ledger 5 with the entry 5,3, and the log has later ones in it"),
    ],
    ids=["another ledger", "another one behind a dropped one", "a later ledger", "more entries"],
)
def test_an_archive_whose_last_ledger_is_continued_otherwise_does_not_stand_for_the_log(
    archive: Archive, there: tuple[tuple[int, int, bool], ...], dropped: tuple[int, ...], words: str
) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=True)
    archive.write(7, 1, closed=False)  # none of it is confirmed
    archive.copy()
    before = archive.archived()
    archive.log.drop(7)
    for ledger, count, closed in there:
        archive.write(ledger, count, closed=closed)
    for ledger in dropped:
        archive.log.drop(ledger)
    with pytest.raises(LogDropped, match=words):
        archive.up_to(Lsn(there[-1][0], 1), Lsn(3, 1))
    with pytest.raises((InvariantViolated, CheckpointRefused), match=words):
        archive.copy()
    assert archive.archived() == before


def test_an_archive_goes_on_though_its_last_entry_is_on_no_bookie_any_more(archive: Archive) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 1, closed=False)
    archive.copy()
    for bookie in archive.log.bookies:
        del bookie.entries[3, 4]
    archive.write(5, 4, closed=False)
    assert archive.copy().end.last.lsn == Lsn(5, 2)
    archive.log.drop(3)
    archive.write(5, 8, closed=False)
    assert archive.copy().end.last.lsn == Lsn(5, 6)


def test_a_changed_byte_a_missing_segment_and_another_log_are_found(archive: Archive) -> None:
    archive.write(3, 9, closed=True)
    archive.copy()
    chain = segments(archive.folder, IDENTITY)
    with pytest.raises(InvariantViolated, match="belongs to"):
        segments(archive.folder, IDENTITY.model_copy(update={"instance_id": "other"}))
    file = archive.folder / chain[0].path
    content = file.read_bytes()
    write(file, content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(InvariantViolated, match="other bytes than were committed"):
        archive.archived()
    write(file, content)
    remove_file(manifests(archive)[1])
    with pytest.raises(InvariantViolated, match="follows 3,5, but the segment before it ends with 3,2"):
        segments(archive.folder, IDENTITY)


@pytest.mark.parametrize("name", ["{} copy.json", "{}-copy.json", "{}_copy.json", "{} (1).json", "1.json"])
def test_a_copy_of_a_segments_manifest_under_another_name_is_no_segment(archive: Archive, name: str) -> None:
    archive.write(3, 9, closed=True)
    archive.copy()
    for path in manifests(archive):
        write(path.with_name(name.format(path.stem)), path.read_bytes())
    archive.write(4, 3, closed=True)
    archive.copy()
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_archive_and_the_rest_of_the_log_are_the_log(archive: Archive, data: st.DataObject) -> None:
    """Ledgers of any length, archived at any time, even while open, and then dropped: no entry is missing, doubled, or changed."""
    remove_below(archive.folder)
    archive.written.clear()
    for bookie in archive.log.bookies:
        bookie.entries.clear()
    archive.log.metadata.ledgers.clear()
    archive.log.metadata.active, archive.log.metadata.first, archive.log.metadata.dropped = [], -1, 0
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    for number, size in enumerate(sizes):
        ledger_id = number * 2 + 1
        archive.write(ledger_id, data.draw(st.integers(1, size)), closed=False)
        if data.draw(st.booleans()):
            end = archive.copy(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 200))).end
            droppable = [ledger for ledger in archive.log.metadata.active if end is not None and ledger < end.resume.ledger_id]
            for dropped in droppable[: data.draw(st.integers(0, 5))]:
                archive.log.drop(dropped)
        archive.write(ledger_id, size, closed=True)
    target = data.draw(st.sampled_from(sorted(archive.written)))
    _, entries = archive.up_to(target)
    assert [lsn for lsn, _ in entries] == archive.expected(target)
    assert all(payload in archive.written[lsn] for lsn, payload in entries)


def test_the_program_archives_and_says_up_to_which_moment(
    archive: Archive, place: StoredPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 3, closed=False)
    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(tmp_path / "message"))
    where = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo"]
    arguments = [*where, "--destination", str(place), "--run-id", "r"]
    said = []
    for _ in range(2):
        assert cli.main(arguments) == 0
        said.append((tmp_path / "message").read_text())
    end = "the archive ends with 5,1, and holds moments up to 1970-01-01T00:00:05.001Z"
    assert said == [f"7 entries in 1 segments were archived; {end}", f"nothing was new; {end}"]
    assert cli.main([*arguments, "--tablespace", "other"]) == 2
    assert cli.main([*arguments, "--bytes-per-second-per-bookie", "0"]) == 2


class Looks(threading.Event):
    """Actions between two looks at the log; the program ends after the last one."""

    def __init__(self, *between: Callable[[], None]) -> None:
        super().__init__()
        self.between = list(between)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout == 60
        if not self.between:
            self.set()
            return True
        self.between.pop(0)()
        return False


def reported(
    archive: Archive, place: StoredPath, monkeypatch: pytest.MonkeyPatch, *between: Callable[[], None], encrypt_with: Path | None = None
) -> list[ArchiveProgress]:
    """What the program reports after each of its looks at the log, between which this happens."""
    told: list[ArchiveProgress] = []

    def noted(step: Callable[[], None]) -> Callable[[], None]:
        def note() -> None:
            told.append(decode_archive_progress(archive.log.metadata.told["/db/herd/logArchive/0ab"]))
            step()

        return note

    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    where = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo", "--run-id", "r"]
    looks = Looks(*map(noted, (*between, lambda: None)))
    keys = [] if encrypt_with is None else ["--encrypt-with", str(encrypt_with)]
    assert cli.main([*where, *keys, "--destination", str(place), "--place", "archives", "--every", "60"], looks) == 0
    return told


def test_the_program_goes_on_and_reports_what_is_archived_and_what_prevents_more(
    archive: Archive, place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> None:
        archive.log.metadata.addresses.clear()

    def readable() -> None:
        archive.log.metadata.addresses.update(addresses)
        archive.write(5, 3, closed=True)

    addresses = dict(archive.log.metadata.addresses)
    archive.write(3, 5, closed=True)
    archive.write(5, 2, closed=False)
    first, stuck, again = reported(archive, place, monkeypatch, unreadable, readable)
    assert first.held == ArchivedRange((3, 0), 3000, True, (5, 0), 5000, (5, 1))
    assert (first.destination, first.trouble, stuck.held) == ("archives", "", first.held)
    assert (stuck.current_at_millis, "no bookie reported its LAC" in stuck.trouble) == (first.current_at_millis, True)
    assert again.held is not None
    assert (again.held.last, again.trouble) == ((5, 2), "")
    assert first.current_at_millis is not None
    assert again.current_at_millis is not None
    assert again.lag_seconds is not None
    assert again.current_at_millis >= first.current_at_millis
    assert again.lag_seconds >= (again.current_at_millis - first.current_at_millis) / 1000


def test_an_archive_is_not_called_current_while_too_few_bookies_tell_what_is_confirmed(
    archive: Archive, place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_a_bookie_that_lags() -> None:
        for name in ("b1", "b2"):
            del archive.log.metadata.addresses[name]
        archive.write(5, 6, closed=False)
        for entry in range(2, 6):
            lagging.pop((5, entry))

    addresses, lagging = dict(archive.log.metadata.addresses), archive.log.bookies[0].entries
    archive.write(5, 2, closed=False)
    first, alone, all_again = reported(
        archive, place, monkeypatch, only_a_bookie_that_lags, lambda: archive.log.metadata.addresses.update(addresses)
    )
    assert first.trouble == ""
    assert alone.current_at_millis == first.current_at_millis, "the other two may have confirmed entries"
    assert alone.trouble == "2 of 3 bookies of the open ledger 5 don't tell what is confirmed: b1, b2"
    assert (all_again.held and all_again.held.last, all_again.trouble) == ((5, 4), "")
    assert all_again.current_at_millis != first.current_at_millis


def test_an_archive_is_not_called_current_while_a_ledger_before_the_last_one_is_not_closed(
    archive: Archive, place: StoredPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write(5, 3, closed=False)
    archive.write(7, 4, closed=False)
    before, after = reported(archive, place, monkeypatch, lambda: archive.write(5, 3, closed=True))
    assert (before.held and before.held.last, before.current_at_millis) == ((5, 1), None)
    assert before.trouble == "ledger 5 is followed by ledger 7 but not closed, so its end is unknown"
    assert (after.held and after.held.last, after.trouble, after.current_at_millis is None) == ((7, 2), "", False)


@pytest.mark.parametrize("there", [(8, False), (2, True)], ids=["another entry", "no such entry"])
def test_an_archiver_that_lives_while_the_cluster_is_put_back_mixes_no_two_histories(
    archive: Archive, place: StoredPath, monkeypatch: pytest.MonkeyPatch, there: tuple[int, bool]
) -> None:
    def put_back() -> None:
        count, closed = there
        anew = [LogEntry(9_000 + number, LogEntryType.DELETE, 0, "t", b"anew") for number in range(8)]
        archive.log.write(5, anew[:count], closed=closed)
        archive.log.write(6, anew, closed=False)

    archive.write(3, 5, closed=True)
    archive.write(5, 4, closed=False)
    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    where = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo", "--run-id", "r"]
    assert (
        cli.main([*where, "--destination", str(place), "--place", "archives", "--every", "60"], Looks(lambda: None, put_back, lambda: None))
        == 0
    )
    told = decode_archive_progress(archive.log.metadata.told["/db/herd/logArchive/0ab"])
    assert "the cluster was put back to an earlier state" in told.trouble
    assert told.held is not None
    assert told.held.last == (5, 2)


def test_an_archive_whose_files_are_gone_is_not_begun_anew_while_the_log_could_continue_it(
    archive: Archive, place: StoredPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.write(3, 5, closed=True)
    archive.write(5, 2, closed=False)
    monkeypatch.setattr(cli, "open_catalog", lambda zookeeper, root: nullcontext(archive.log.metadata))
    monkeypatch.setenv("HERDKEEPER_TERMINATION_MESSAGE", str(tmp_path / "message"))
    where = ["--zookeeper", "z:2181", "--ledgers-root", "/l", "--herd-root", "/db/herd", "--tablespace", "demo", "--run-id", "r"]
    arguments = [*where, "--destination", str(place), "--place", "archives"]
    assert cli.main(arguments) == 0
    remove_below(place)
    if isinstance(place, Path):
        place.mkdir()
    assert cli.main(arguments) == 2
    told = decode_archive_progress(archive.log.metadata.told["/db/herd/logArchive/0ab"])
    assert told.held == ArchivedRange((3, 0), 3000, True, (5, 0), 5000, (5, 1)), "so the log from there on is kept"
    assert "the archive had everything up to 5,0, and is empty now: its files are gone" in told.trouble
    assert found_below(place, "*/*/log/segments/*.json") == []

    archive.write(5, 2, closed=True)
    archive.write(7, 3, closed=False)
    archive.log.drop(3)
    archive.log.drop(5)
    assert cli.main(arguments) == 0, "nothing can continue the lost one any more"


@pytest.mark.parametrize(
    ("came", "words"),
    [
        ([0, 1, 2, 3], "ends with entry 4, entries up to 3 came"),
        ([0, 2, 1, 3, 4], "came in the wrong order"),
        ([0, 1, 3, 4], "wrong order"),
    ],
    ids=["the last one is missing", "two are exchanged", "one in the middle is missing"],
)
def test_an_archive_has_no_gap_though_entries_did_not_all_come_in_their_order(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, came: list[int], words: str
) -> None:
    archive.write(3, 5, closed=True)
    monkeypatch.setattr(copying, "read_partition", lambda spec: (batch.take(came) for batch in read_partition(spec)))
    with pytest.raises(InvariantViolated, match=words):
        archive.copy(batch_entries=5)
    found = [lsn for lsn, _ in archive.archived()]
    assert found == sorted(archive.written)[: len(found)], "what is archived has no gap"
    monkeypatch.undo()
    assert archive.copy().entries == 5 - len(found)


class FullVolume:
    """A file for which there is no room behind its first bytes."""

    def __init__(self, file: NewFile) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        self._file.write(data[:10])
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        self._file.close()


class DamagingVolume(FullVolume):
    """A file that does not keep its last byte."""

    def write(self, data: bytes) -> int:
        return self._file.write(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    ("volume", "error", "words"),
    [(FullVolume, OSError, "No space left on device"), (DamagingVolume, InvariantViolated, "has other bytes than were committed")],
)
def test_a_segment_that_could_not_be_written_leaves_nothing(
    volume: type[FullVolume], error: type[Exception], words: str, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look would take more of the volume otherwise, and what expires would make no room."""
    archive.write(3, 5, closed=True)
    with monkeypatch.context() as faulty:
        faulty.setattr(archived_segment, "new_file", lambda path: volume(new_file(path)))
        with pytest.raises(error, match=words):
            archive.copy()
    assert manifests(archive) == [] == found_below(archive.folder, "log/data/run-1/*")
    assert archive.copy().entries == 5


def test_a_long_backlog_is_reported_in_parts(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "MOST_SEGMENTS", 2)
    archive.write(3, 5, closed=True)
    done = [archive.copy(batch_entries=1, segment_bytes=1) for _ in range(3)]
    assert [(run.entries, run.complete) for run in done] == [(2, False), (2, False), (1, True)]


def test_a_backlog_that_ends_within_a_ledger_with_a_successor_is_continued_in_that_ledger(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "MOST_SEGMENTS", 2)
    archive.write(3, 5, closed=True)
    archive.write(5, 3, closed=True)
    while not archive.copy(batch_entries=1, segment_bytes=1).complete:
        pass
    assert [lsn for lsn, _ in archive.archived()] == sorted(archive.written)
