"""A moment restored from files alone: exactly what a Checkpoint of it held in the cluster, or a refusal that names what exists. Neither
ZooKeeper nor a bookie is available."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from places import all_files, write
from played_bookie import PlayedBookie, served
from played_log import PlayedLog
from played_table import FIRST, SECOND, THIRD
from pyspark.sql import SparkSession
from secret_keys import MountedSecret
from test_checkpoint_manifest import IDENTITY, manifest
from test_wal_fold import COLUMNS, Log, Tables, folded, logs, timeline_of
from test_wal_increment import folded_on, starting_point

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntry, LogEntryType, decode_log_entry, encode_log_entry
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.codecs.herddb.table import TableDefinition
from herdkeeper_jobs.archive.archive_only_log import identity_of_archive
from herdkeeper_jobs.archive.copying import copy_log
from herdkeeper_jobs.archive.parts import WholeLog, read_archived
from herdkeeper_jobs.archive.segment import SEGMENT_SCHEMA, Link, Place, SegmentManifest, commit_segment, segments
from herdkeeper_jobs.bookkeeper.reader import ReadSettings
from herdkeeper_jobs.checkpoint import origin, run
from herdkeeper_jobs.checkpoint.base import BaseRows
from herdkeeper_jobs.checkpoint.origin import Search, choose_origin
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import Target, TargetRequest
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.errors import InvariantViolated, KeyUnusable, RestoreRefused
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import (
    ENCRYPTED_VERSION,
    CommittedManifest,
    Manifest,
    Position,
    commit_manifest,
    manifest_path,
    manifests,
    read_manifest,
)
from herdkeeper_jobs.restore.checkpoint_of_moment import Moment, MomentSource, checkpoint_of_moment, left_out_of, parse_restored_moment
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, parse_moment

STATES: dict[str, dict[int, str]] = {
    "3,1": {1: "a"},
    "3,4": {1: "a", 3: "c"},  # transaction 7 spans it
    "5,0": {1: "a", 3: "c"},
    "5,1": {1: "a", 2: "late", 3: "c"},
    "5,2": {1: "b", 2: "late", 3: "c"},
    "8,0": {},  # truncated
    "8,1": {9: "after the mistake"},
    "1970-01-01T00:00:02.000Z": {1: "a"},
    "1970-01-01T00:00:08.599Z": {1: "a"},  # cut at the entry of 9 s, whatever the next leader's clock says
    "1970-01-01T00:00:09.000Z": {},
    "1970-01-01T00:00:09.600Z": {9: "after the mistake"},
    "latest": {9: "after the mistake"},
}


@dataclass(frozen=True)
class Files:
    """What is left: the places of the checkpoints and of the archive. `in_cluster` makes a checkpoint while the log exists."""

    spark: SparkSession
    log: PlayedLog
    checkpoints: StoredPath
    archived_at: Path
    key: Key | None = None

    def in_cluster(self, text: str, destination: StoredPath | None = None) -> Manifest:
        at = None if text == "latest" else parse_moment(text)
        catalog: Any = self.log.metadata
        request = CheckpointRequest("/db/herd", "demo", TargetRequest(at), destination or self.checkpoints, "of-the-cluster", key=self.key)
        summary = run_checkpoint(lambda: self.spark, catalog, request)
        return read_manifest((destination or self.checkpoints) / summary.manifest)

    def archive(self, segment_bytes: int = 1, batch_entries: int = 2) -> None:
        catalog: Any = self.log.metadata
        log = open_log(catalog, "/db/herd", "demo")
        place = Place(self.archived_at / log.identity.instance_id / log.identity.tablespace_uuid, log.identity, "archiver", key=self.key)
        copy_log(log, place, ReadSettings(batch_entries=batch_entries), segment_bytes)

    def source(self, text: str, run_id: str = "restore-1") -> MomentSource:
        folder = self.checkpoints / "cluster-1" / "0ab"
        return MomentSource(folder, self.archived_at, parse_restored_moment(text), run_id, key=self.key)

    def made(self, text: str, run_id: str = "restore-1") -> StoredPath:
        return checkpoint_of_moment(lambda: self.spark, self.source(text, run_id))


def rows_of(path: StoredPath) -> dict[int, str]:
    loaded = open_manifest(path).load("t").to_pydict()
    return dict(zip(loaded["k"], loaded["v"], strict=True))


def test_what_a_clock_that_was_ahead_leaves_out_of_a_restore_to_a_time_is_counted(archived: Files) -> None:
    """The entry of 9 s cuts the log at 8.599 s; three earlier-stamped entries are behind it."""
    text = "1970-01-01T00:00:08.599Z"
    assert rows_of(archived.made(text)) == {1: "a"}
    assert left_out_of(archived.source(text)) == 3
    archived.made("1970-01-01T00:00:09.600Z", "restore-2")
    assert left_out_of(archived.source("1970-01-01T00:00:09.600Z", "restore-2")) == 0


def test_a_time_before_a_hole_can_be_restored_and_the_number_of_left_out_entries_is_unknown(files: Files) -> None:
    files.archive(batch_entries=1)
    (files.archived_at / "cluster-1" / "0ab" / "log" / "segments" / f"{5:020d}-{2:020d}.json").unlink()
    text = "1970-01-01T00:00:08.599Z"
    assert rows_of(files.made(text)) == {1: "a"}
    assert left_out_of(files.source(text)) is None


class Killed(BaseException):
    """Stands for a kill of the process."""


@pytest.fixture
def files(spark: SparkSession, place: StoredPath, tmp_path: Path) -> Iterator[Files]:
    """The log is archived whole, and closed; nothing may be read from it."""
    bookies = [PlayedBookie() for _ in range(3)]
    (tmp_path / "archives").mkdir()
    with served(*bookies) as addresses:
        log = PlayedLog(bookies, addresses, tmp_path)
        for ledger, entries in ((3, FIRST), (5, SECOND), (8, THIRD)):
            log.write(ledger, entries, closed=True)
        yield Files(spark, log, place, tmp_path / "archives")


@pytest.fixture
def archived(files: Files) -> Files:
    """With the archive, without the cluster."""
    files.archive()
    files.log.metadata.ledgers.clear()
    files.log.metadata.active.clear()
    return files


@pytest.mark.parametrize(("text", "rows"), STATES.items())
def test_a_moment_of_the_archive_alone_has_what_the_log_says_and_is_named_as_a_checkpoint_of_it_is(
    archived: Files, text: str, rows: dict[int, str]
) -> None:
    path = archived.made(text)
    found = read_manifest(path)
    assert rows_of(path) == rows
    assert path == manifest_path(archived.checkpoints / "cluster-1" / "0ab", found.lsn.lsn)
    assert (found.run_id, found.verified.how, found.base) == ("restore-1", "Reread", None)
    assert [transaction.transaction_id for transaction in found.open_transactions] == (
        [7] if Lsn(3, 2) <= found.lsn.lsn < Lsn(5, 1) else []
    )


def test_what_is_made_of_an_encrypted_archive_is_encrypted_where_its_place_says_so_and_its_key_is_asked_for(
    files: Files, keys: MountedSecret
) -> None:
    encrypted = replace(files, key=keys.add("2026-11"))
    encrypted.archive()
    made = encrypted.made("latest")
    assert rows_of(made) == STATES["latest"]
    document = json.loads(made.read_bytes())
    assert (document["schemaVersion"], document["encryption"]["keyName"]) == (ENCRYPTED_VERSION, "2026-11")
    keys.remove("2026-11")
    with pytest.raises(KeyUnusable, match=r"is encrypted with the key '2026-11'.*put that key back"):
        encrypted.made("3,1", "restore-2")


def test_files_give_what_the_living_cluster_gave_also_from_a_checkpoint_in_an_archive_without_its_beginning(
    files: Files, tmp_path: Path
) -> None:
    (tmp_path / "before").mkdir()
    targets = [text for text in STATES if text not in ("3,1", "latest", "1970-01-01T00:00:02.000Z", "1970-01-01T00:00:09.600Z")]
    expected = {text: files.in_cluster(text, tmp_path / "before") for text in targets}
    base = files.in_cluster("3,1")
    files.archive(batch_entries=1)
    folder = files.archived_at / "cluster-1" / "0ab"
    next(iter(sorted((folder / "log" / "segments").iterdir()))).unlink()  # it has expired
    for text, wanted in expected.items():
        path = files.made(text, f"restore-{text.replace(',', '-').replace(':', '.')}")
        found = read_manifest(path)
        assert (found.lsn, found.tables, found.open_transactions, found.restart_lsn) == (
            wanted.lsn,
            tuple(replaced_files(there, made) for there, made in zip(wanted.tables, found.tables, strict=True)),
            wanted.open_transactions,
            wanted.restart_lsn,
        )
        assert found.base is not None
        assert (found.base.lsn, found.latest_timestamp_millis) == (base.lsn, wanted.latest_timestamp_millis)
        path.unlink()


def replaced_files(table: Any, other: Any) -> Any:
    """A manifest's table, with the file names of another one."""
    return table.model_copy(update={"files": other.files})


def test_the_newest_checkpoint_that_holds_nothing_later_is_gone_on_from_by_itself(files: Files) -> None:
    files.in_cluster("3,1")
    newest = files.in_cluster("5,1")
    files.in_cluster("8,1")
    files.archive()
    found = read_manifest(files.made("5,2"))
    assert found.base is not None
    assert (found.base.lsn, found.entries_read) == (newest.lsn, 2)
    of_time = read_manifest(files.made("1970-01-01T00:00:08.599Z", "restore-2"))
    assert of_time.base is not None
    assert of_time.base.lsn.lsn == Lsn(3, 1)


def test_a_checkpoint_that_is_there_is_taken_as_it_is_without_spark_and_without_an_archive(files: Files) -> None:
    made = files.in_cluster("5,1")
    named = manifest_path(files.checkpoints / "cluster-1" / "0ab", made.lsn.lsn)

    def never() -> SparkSession:
        raise AssertionError("there is nothing to fold")

    for text in ("5,1", "latest"):
        assert checkpoint_of_moment(never, replace(files.source(text), named=named)) == named


def test_latest_is_the_newest_checkpoint_where_that_lies_behind_the_archive(files: Files) -> None:
    files.log.metadata.active = [3]
    files.archive()
    files.log.metadata.active = [3, 5, 8]
    newest = files.in_cluster("8,1")
    assert read_manifest(files.made("latest")).lsn == newest.lsn


WINDOW = (
    "the LSNs from 3,0 to 8,2, and times from 1970-01-01T00:00:01.000Z to before 1970-01-01T00:00:09.900Z, can be had: take one of these"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("8,3", r"spec.bootstrap.target.lsn \(--to\) is 8,3: the archive ends with 8,2. From the archive, " + WINDOW),
        ("3,5", r"target.lsn \(--to\) is 3,5: the archive has no such entry, neither in its segment from 3,4 to .*" + WINDOW),
        ("4,0", r"target.lsn \(--to\) is 4,0: the archive has no such entry.*" + WINDOW),
        ("2,0", r"target.lsn \(--to\) is 2,0: the archive begins with 3,0, and no checkpoint exists at that LSN.*" + WINDOW),
        (
            "1970-01-01T00:00:09.900Z",
            r"target.timestamp \(--to\) is 1970-01-01T00:00:09.900Z: the archive has no later entry.*: the archive ends with "
            r"8,2, stamped 1970-01-01T00:00:09.900Z; take an earlier time, or latest.*" + WINDOW,
        ),
        ("1970-01-01T00:00:00.999Z", r"target.timestamp \(--to\) is 1970.*: the log begins after it, with 3,0.*" + WINDOW),
    ],
    ids=[
        "behind the end",
        "behind a ledger's end",
        "between two ledgers",
        "before the beginning",
        "the end's own time",
        "before all times",
    ],
)
def test_what_the_archive_does_not_have_is_refused_with_field_value_and_window(archived: Files, text: str, why: str) -> None:
    with pytest.raises(RestoreRefused, match=why):
        archived.made(text)
    assert all_files(archived.checkpoints) <= {".herdkeeper-creates-once"}


@pytest.mark.parametrize("batch_entries", [2, 100], ids=["a segment for each ledger's pieces", "segments over the ends of ledgers"])
def test_an_lsn_behind_the_end_of_a_ledger_is_refused_wherever_segments_end(files: Files, batch_entries: int) -> None:
    files.archive(segment_bytes=1_000_000, batch_entries=batch_entries)
    with pytest.raises(RestoreRefused, match="is 3,5: the archive has no such entry"):
        files.made("3,5")


def test_every_moment_before_a_hole_can_be_restored_and_behind_it_from_the_next_checkpoint_on(files: Files) -> None:
    files.in_cluster("8,0")
    files.archive(batch_entries=1)
    folder = files.archived_at / "cluster-1" / "0ab"
    gone = next(segment for segment in segments(folder, read_identity(folder)) if segment.first.lsn == Lsn(5, 1))
    (folder / "log" / "segments" / f"{5:020d}-{1:020d}.json").unlink()
    assert gone.last.lsn == Lsn(5, 1)
    assert rows_of(files.made("5,0")) == STATES["5,0"]
    assert rows_of(files.made("8,1", "restore-2")) == STATES["8,1"]
    windows = (
        "the LSNs from 3,0 to 5,0, and times from 1970-01-01T00:00:01.000Z to before 1970-01-01T00:00:09.000Z, can be had; "
        "the LSNs from 8,0 to 8,2, and times from 1970-01-01T00:00:09.000Z to before .*, can be had: take one of these"
    )
    for text, why in (("5,1", "the archive has no such entry"), ("5,2", "follows 5,1, but the segment before it ends with 5,0")):
        with pytest.raises(RestoreRefused, match=f"is {text}: .*{why}.*{windows}"):
            files.made(text, "restore-3")


def read_identity(folder: Path) -> Any:
    found = identity_of_archive(folder)
    assert found is not None
    return found


def test_a_time_for_which_an_entry_that_is_not_archived_may_be_later_is_refused(files: Files) -> None:
    """What was before the archive's beginning is unknown, except that the checkpoint holds nothing later than 9 s."""
    files.in_cluster("3,4")
    files.archive()
    folder = files.archived_at / "cluster-1" / "0ab"
    (folder / "log" / "segments" / f"{3:020d}-{0:020d}.json").unlink()
    why = (
        "the archive begins with 3,2, and no checkpoint exists that holds nothing later.*"
        r"No checkpoint at the place is a base \(this tablespace has none up to the target\)"
    )
    with pytest.raises(RestoreRefused, match=why):
        files.made("1970-01-01T00:00:08.500Z")
    assert rows_of(files.made("1970-01-01T00:00:09.000Z")) == STATES["1970-01-01T00:00:09.000Z"]


@pytest.mark.parametrize("lsn", ["8,1", "5,9"], ids=["another entry", "no entry"])
def test_a_checkpoint_of_a_time_that_the_cluster_lost_does_not_move_the_cut_for_a_time(files: Files, lsn: str) -> None:
    """It says that nothing up to its LSN is later. What was written anew there is."""
    made = files.in_cluster("8,1")
    files.archive(batch_entries=1)
    before = manifest_path(files.checkpoints / "cluster-1" / "0ab", made.lsn.lsn)
    at = Lsn.parse(lsn)
    changed = {"lsn": Position.of(at), "restart_lsn": Position.of(at), "lsn_timestamp_millis": 8_000, "latest_timestamp_millis": 8_000}
    before.unlink()
    write(
        manifest_path(files.checkpoints / "cluster-1" / "0ab", at), made.model_copy(update=changed).model_dump_json(by_alias=True).encode()
    )
    path = files.made("1970-01-01T00:00:08.599Z")
    assert rows_of(path) == STATES["1970-01-01T00:00:08.599Z"]
    assert read_manifest(path).base is None


@pytest.mark.parametrize(("lsn", "there"), [("5,1", "another"), ("5,9", "no")], ids=["another entry", "no entry"])
def test_a_checkpoint_of_a_time_that_the_cluster_lost_is_not_taken_for_the_moment_of_its_lsn(
    place: StoredPath, tmp_path: Path, lsn: str, there: str
) -> None:
    at = Lsn.parse(lsn)
    files = files_of(place, tmp_path)
    identity = IDENTITY.model_copy(update={"tablespace_uuid": "0ab"})
    lost = manifest(identity=identity).model_copy(update={"lsn": Position.of(at), "lsn_timestamp_millis": 8_000})
    commit_manifest(lost, files.checkpoints / "cluster-1" / "0ab")
    with pytest.raises(RestoreRefused, match=f"the archive has {there} entry at its LSN: one of the two is of a time that the cluster"):
        files.made(lsn)


def files_of(place: StoredPath, tmp_path: Path) -> Files:
    """An archive of the whole log in one segment, without Spark."""
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        log = PlayedLog(bookies, addresses, tmp_path)
        for ledger, entries in ((3, FIRST), (5, SECOND), (8, THIRD)):
            log.write(ledger, entries, closed=True)
        spark: Any = None
        files = Files(spark, log, place, tmp_path / "archives")
        files.archive(segment_bytes=10_000)
        return files


def test_why_a_checkpoint_is_not_gone_on_from_to_a_time_is_said(files: Files, keys: MountedSecret) -> None:
    """The older one ends before the archive begins; the newer one's key is missing."""
    files.in_cluster("3,1")
    encrypted = replace(files, key=keys.add("2026-11"))
    encrypted.in_cluster("3,4")
    files.archive(batch_entries=1)
    keys.remove("2026-11")
    folder = files.archived_at / "cluster-1" / "0ab"
    for entry in range(4):
        (folder / "log" / "segments" / f"{3:020d}-{entry:020d}.json").unlink()
    newer = r"0*3-0*4: .*is encrypted with the key '2026-11' .*: the Secret backup-keys has no key; put that key back"
    older = "0*3-0*1: the entries between it and the archive are unknown"
    with pytest.raises(
        RestoreRefused, match=rf"the archive begins with 3,4, .*No checkpoint at the place is a base \({newer}.*; {older}\)"
    ):
        files.made("1970-01-01T00:00:09.000Z")


def test_a_checkpoint_whose_open_transaction_began_before_the_archive_is_no_base(files: Files) -> None:
    files.in_cluster("3,4")
    files.archive(batch_entries=100)
    folder = files.archived_at / "cluster-1" / "0ab"
    (folder / "log" / "segments" / f"{3:020d}-{0:020d}.json").unlink()
    why = r"is 8,0: the archive of the log begins with 5,0.*\(.*: the log would be read from 3,2, and its archive begins with 5,0\)"
    with pytest.raises(RestoreRefused, match=why):
        files.made("8,0")


def test_neither_archive_nor_checkpoint_at_the_place_is_said_with_the_place(files: Files) -> None:
    with pytest.raises(
        RestoreRefused, match=r"spec.bootstrap.archive \(--archive\) leads to .*cluster-1/0ab, which has no archive of a log"
    ):
        files.made("latest")


@pytest.mark.parametrize(("instance_id", "uuid"), [("cluster-1", "0cd"), ("cluster-2", "0ab")], ids=["tablespace", "cluster"])
def test_a_log_in_the_folder_of_another_tablespace_or_cluster_is_not_taken_for_that_one_s(
    archived: Files, instance_id: str, uuid: str
) -> None:
    (archived.archived_at / instance_id).mkdir(exist_ok=True)
    shutil.move(archived.archived_at / "cluster-1" / "0ab", archived.archived_at / instance_id / uuid)
    source = replace(archived.source("3,1"), folder=archived.checkpoints / instance_id / uuid)
    with pytest.raises(InvariantViolated, match="says that it belongs to cluster-1/0ab"):
        checkpoint_of_moment(lambda: archived.spark, source)


@pytest.mark.parametrize("owner", ["cluster-1", "cluster-2"])
def test_a_moment_is_made_from_a_checkpoint_of_its_own_cluster_only(files: Files, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's first entry is not archived, so there is no other origin."""

    def commit(made: Manifest, folder: StoredPath, key: Key | None) -> CommittedManifest:
        return commit_manifest(made.model_copy(update={"identity": made.identity.model_copy(update={"instance_id": owner})}), folder, key)

    with monkeypatch.context() as patch:
        patch.setattr(run, "commit_manifest", commit)
        files.in_cluster("3,4")
    files.archive(batch_entries=1)
    (files.archived_at / "cluster-1" / "0ab" / "log" / "segments" / f"{3:020d}-{0:020d}.json").unlink()
    if owner == "cluster-1":
        assert rows_of(files.made("5,0")) == STATES["5,0"]
        return
    with pytest.raises(RestoreRefused, match=r"No checkpoint at the place is a base \(.*it belongs to cluster-2/0ab\)"):
        files.made("5,0")


def test_a_damaged_segment_is_never_folded(archived: Files) -> None:
    folder = archived.archived_at / "cluster-1" / "0ab"
    file = folder / segments(folder, read_identity(folder))[0].path
    content = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(Exception, match="other bytes than were committed"):
        archived.made("8,1")
    assert manifests(archived.checkpoints) == []


@pytest.mark.parametrize("step", ["before the manifest", "after the manifest"])
def test_a_run_that_is_killed_leaves_a_whole_checkpoint_or_none_and_its_retry_goes_on(
    archived: Files, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def killed(made: Manifest, folder: StoredPath, key: Key | None) -> CommittedManifest:
            if step == "after the manifest":
                commit_manifest(made, folder, key)
            raise Killed

        patch.setattr(run, "commit_manifest", killed)
        with pytest.raises(Killed):
            archived.made("5,2")
    assert len(manifests(archived.checkpoints)) == (0 if step == "before the manifest" else 1)
    assert rows_of(archived.made("5,2")) == STATES["5,2"]
    assert len(manifests(archived.checkpoints)) == 1


def test_a_retry_goes_on_with_what_it_chose_though_the_archive_has_grown_and_another_restore_takes_what_is_there(files: Files) -> None:
    files.log.metadata.active = [3, 5]
    files.archive()
    first = files.made("latest")
    files.log.metadata.active = [3, 5, 8]
    files.archive()
    assert (files.made("latest"), rows_of(first)) == (first, STATES["5,2"])
    later = files.made("latest", "restore-2")
    assert rows_of(later) == STATES["latest"]
    before = all_files(files.checkpoints)
    assert files.made("5,2", "restore-3") == first
    assert all_files(files.checkpoints) - before == {"cluster-1/0ab/restores/restore-3.json"}


def test_a_driver_takes_the_choice_that_another_one_of_its_run_has_noted_meanwhile(files: Files) -> None:
    """One of them was on a node that was taken for lost. What one has begun to load, a retry by the other's choice would be refused."""
    files.log.metadata.active = [3, 5]
    files.archive()
    others: list[StoredPath] = []

    def start_slowly() -> SparkSession:
        if not others:
            files.log.metadata.active = [3, 5, 8]
            files.archive()
            others.append(files.made("latest"))
        return files.spark

    first = checkpoint_of_moment(start_slowly, files.source("latest"))
    assert [first] == others
    assert rows_of(first) == STATES["latest"]
    assert files.made("latest") == first


def test_a_choice_whose_checkpoint_has_gone_since_is_made_anew(archived: Files) -> None:
    first = archived.made("5,1")
    first.unlink()
    assert rows_of(archived.made("5,1")) == STATES["5,1"]
    note = archived.checkpoints / "cluster-1" / "0ab" / "restores" / "restore-1.json"
    assert json.loads(note.read_bytes())["manifest"] == first.name


def test_a_choice_is_a_checkpoint_of_its_own_tablespace_wherever_the_note_leads(place: StoredPath, tmp_path: Path) -> None:
    """Who may write below one prefix of a bucket may not be allowed to read the others, as the restore is."""
    name = "00000000000000000003-00000000000000000001.json"
    theirs, ours = (place / owner / "cluster-1" / "0ab" for owner in ("theirs", "ours"))
    for folder in (theirs, ours):
        write(folder / "manifests" / name, b"{}")
    elsewhere = "/".join(("", *theirs.parts[1:], "manifests", name))
    write(ours / "restores/restore-1.json", json.dumps({"manifest": elsewhere}).encode())
    source = MomentSource(ours, tmp_path, Lsn(3, 1), "restore-1")
    assert checkpoint_of_moment(lambda: SPARK, source) == ours / "manifests" / name


@pytest.mark.parametrize("text", ["now", "yesterday", "3", "2026-01-01T00:00:00"])
def test_what_is_no_moment_of_an_archive_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a moment"):
        parse_restored_moment(text)


# random logs, with every cut and every time


SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


@st.composite
def stamped_logs(draw: st.DrawFn) -> Log:
    """Logs of the fold's own test with clocks that go back, and with distinguishable rows."""
    found: Log = []
    log = draw(logs())
    clocks = draw(st.lists(st.integers(1, 40), min_size=len(log), max_size=len(log)))
    for (lsn, item), millis in zip(log, clocks, strict=True):
        rows = encoded(item) if item.type in ROW_CHANGES else (item.key, item.value)
        found.append((lsn, replace(item, timestamp_millis=millis, key=rows[0], value=rows[1])))
    return found


def encoded(item: LogEntry) -> tuple[bytes, bytes]:
    definition = TableDefinition("demo", "x", "x", COLUMNS, ("k",))
    key, value = encode_row(definition, {"k": item.key[0], "v": item.value.hex()})
    return key, b"" if item.type is LogEntryType.DELETE else value


def archive_of(log: Log, folder: Path, sizes: Sequence[int]) -> tuple[SegmentManifest, ...]:
    """Archives a log in segments of these sizes, cyclically."""
    place = Place(folder, IDENTITY, "archiver")
    before, position, number = None, 0, 0
    while position < len(log):
        part = log[position : position + sizes[number % len(sizes)]]
        columns = [
            pa.array([lsn.ledger_id for lsn, _ in part], pa.int64()),
            pa.array([lsn.entry_id for lsn, _ in part], pa.int64()),
            pa.array([item.timestamp_millis for _, item in part], pa.int64()),
            pa.array([encode_log_entry(item) for _, item in part], pa.binary()),
        ]
        position, number = position + len(part), number + 1
        following = log[position][0].ledger_id if position < len(log) else None
        goes_on = following if following != part[-1][0].ledger_id else None
        before = commit_segment(pa.Table.from_arrays(columns, schema=SEGMENT_SCHEMA), place, Link(before, before is None, goes_on))
        assert before is not None
    return segments(folder, IDENTITY)


def base_at(log: Log, folder: Path) -> Manifest:
    """The checkpoint at the end of a log, as far as a continuation needs it."""
    start = starting_point(log)
    made = manifest().model_copy(
        update={
            "lsn": Position.of(start.at),
            "restart_lsn": Position.of(start.restart),
            "lsn_timestamp_millis": log[-1][1].timestamp_millis,
            "latest_timestamp_millis": max(item.timestamp_millis for _, item in log),
            "continuation": Continuation.of(start.state),
        }
    )
    return commit_manifest(made, folder).manifest


@dataclass
class Folding:
    """Replaces Spark's fold: the same choice of what to read, from the same files, folded in plain Python."""

    log: Log
    tables: Tables | None = None

    def make(self, start: Callable[[], SparkSession], whole: WholeLog, target: Target, request: CheckpointRequest) -> Any:
        folder = request.destination / IDENTITY.instance_id / IDENTITY.tablespace_uuid
        assert isinstance(target.at, Lsn)
        found = choose_origin(SPARK, whole, Search(folder, whole.identity, request.mode, target.at), target.read_to)
        read = [
            (Lsn(row["ledger_id"], row["entry_id"]), decode_log_entry(row["payload"]))
            for part in found.archived
            for batch in read_archived(part)
            for row in batch.to_pylist()
        ]
        assert len(read) == found.entries
        within = [(lsn, item) for lsn, item in read if lsn <= target.at]
        if found.start is None:
            self.tables = folded(within)
        else:
            base = folded([(lsn, item) for lsn, item in self.log if lsn <= found.start.at])
            self.tables = folded_on(base, found.start, within)[0]
        return SimpleNamespace(committed=SimpleNamespace(path=manifest_path(folder, target.at)))


@dataclass(frozen=True)
class Situation:
    """A log, its archive without its oldest segments, and checkpoints at some of its entries."""

    log: Log
    kept: tuple[SegmentManifest, ...]
    bases: tuple[Manifest, ...]

    def reachable(self, lsn: Lsn) -> bool:
        """Whether the files suffice for a moment."""
        if any(base.lsn.lsn == lsn for base in self.bases):
            return True
        begin = self.kept[0]
        from_base = any(base.lsn.lsn <= lsn and base.restart_lsn.lsn >= begin.first.lsn for base in self.bases)
        return begin.first.lsn <= lsn and (begin.begins_log or from_base)

    def cut_at(self, millis: int) -> Lsn | None:
        """The last entry before the first later one; None if unknown, or if there is none."""
        later = next((position for position, (_, item) in enumerate(self.log) if item.timestamp_millis > millis), None)
        return self.log[later - 1][0] if later else None


@pytest.fixture
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[st.DataObject], tuple[Situation, Path, Folding]]:
    monkeypatch.setattr(origin, "load_rows", lambda spark, base: BaseRows(base, spark))

    def situation(data: st.DataObject) -> tuple[Situation, Path, Folding]:
        shutil.rmtree(tmp_path / "files", ignore_errors=True)
        log = data.draw(stamped_logs())
        folder = tmp_path / "files" / IDENTITY.instance_id / IDENTITY.tablespace_uuid
        all_of_it = archive_of(log, folder, data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
        bases = [base_at(log[:cut], folder) for cut in sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=3)))]
        gone = data.draw(st.integers(0, len(all_of_it) - 1))
        for segment in all_of_it[:gone]:
            (folder / "log" / "segments" / f"{segment.first.ledger_id:020d}-{segment.first.entry_id:020d}.json").unlink()
        folding = Folding(log)
        monkeypatch.setattr("herdkeeper_jobs.restore.checkpoint_of_moment.make_checkpoint", folding.make)
        return Situation(log, all_of_it[gone:], tuple(bases)), folder, folding

    return situation


def made_of(folder: Path, at: Moment) -> StoredPath | None:
    """Returns None if it is refused."""
    shutil.rmtree(folder / "restores", ignore_errors=True)
    try:
        return checkpoint_of_moment(lambda: SPARK, MomentSource(folder, folder.parent.parent, at, "r"))
    except RestoreRefused:
        return None


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_at_every_entry_files_give_the_fold_of_the_log_up_to_there_or_lack_what_it_takes(
    anew: Callable[[st.DataObject], tuple[Situation, Path, Folding]], data: st.DataObject
) -> None:
    situation, folder, folding = anew(data)
    for cut, (lsn, _) in enumerate(situation.log, start=1):
        folding.tables = None
        path = made_of(folder, lsn)
        assert (path is not None) == situation.reachable(lsn)
        if folding.tables is not None:
            assert folding.tables == folded(situation.log[:cut])
            assert path == manifest_path(folder, lsn)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_at_every_time_files_are_cut_where_the_log_is_or_refused(
    anew: Callable[[st.DataObject], tuple[Situation, Path, Folding]], data: st.DataObject
) -> None:
    situation, folder, folding = anew(data)
    for millis in range(42):
        folding.tables = None
        cut = situation.cut_at(millis)
        path = made_of(folder, Time(millis, f"{millis} ms"))
        if path is not None:
            assert cut is not None
            assert path == manifest_path(folder, cut)
            assert folding.tables in (None, folded([(lsn, item) for lsn, item in situation.log if lsn <= cut]))
        elif situation.kept[0].begins_log:
            assert cut is None


@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(log=stamped_logs(), data=st.data())
def test_spark_folds_files_alone_to_the_same_rows(spark: SparkSession, tmp_path: Path, log: Log, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path / "files", ignore_errors=True)
    folder = tmp_path / "files" / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    archive_of(log, folder, (3, 5))
    for cut in sorted({len(log) // 2, len(log)}):
        path = checkpoint_of_moment(lambda: spark, MomentSource(folder, tmp_path / "files", log[cut - 1][0], f"r-{cut}"))
        found = {table.uuid: (table.rows, table.digest) for table in read_manifest(path).tables}
        expected = {uuid: digest_of_rows(list(rows.items())) for uuid, rows in folded(log[:cut]).items()}
        assert found == {uuid: (digest.rows, digest.hex) for uuid, digest in expected.items()}
        assert {table.definition.uuid for table in timeline_of(log[:cut]).state.tables} >= set(found)
