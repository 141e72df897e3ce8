"""A checkpoint from a follower's tables, for a log without its beginning, a base or an archive."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import all_files
from played_bookie import PlayedBookie, served
from played_follower import TOKEN, PlayedFollower, PlayedTable, following, stream
from played_log import PlayedLog
from pyspark.sql import SparkSession
from secret_keys import MountedSecret
from test_checkpoint_base import AFTER, FIRST, OLD_ROW, SECOND, THIRD, delete, mark, put
from test_checkpoint_manifest import manifest
from test_wal_fold import Log, folded, timeline_of
from test_wal_increment import folded_on, logs_with_indexes

from herdkeeper.codecs.herddb.index import IndexDefinition
from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper.protocol.verification import is_proof
from herdkeeper_jobs.checkpoint import follower_base
from herdkeeper_jobs.checkpoint.follower_base import FollowerSource, load_tables, take_tables
from herdkeeper_jobs.checkpoint.follower_stream import read_stream
from herdkeeper_jobs.checkpoint.origin import Mode
from herdkeeper_jobs.checkpoint.reading import open_manifest
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, FollowerDiffers, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Encryption, Manifest, commit_manifest, manifests
from herdkeeper_jobs.wal.log_state import NOBODY, LogState
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import parse_moment
from herdkeeper_jobs.wal.timeline import Timeline

INDEX = IndexDefinition("demo", "by_w", "i1", "an older name", "hash", (("w", 2, 2),))
HELD = PlayedTable(AFTER, [OLD_ROW, encode_row(AFTER, {"k": 2, "w": 20})], 10, ((INDEX, True),))
"""What FIRST leaves."""
ROWS = [OLD_ROW, encode_row(AFTER, {"k": 3, "w": 30}), encode_row(AFTER, {"k": 4, "w": 40})]
"""What SECOND and THIRD leave of it."""


@dataclass
class Job:
    """A log without its first ledger, and two followers that are always available."""

    spark: SparkSession
    log: PlayedLog
    destination: Path
    source: PlayedFollower
    addresses: tuple[str, str]
    witness: PlayedFollower = field(default_factory=PlayedFollower)
    key: Key | None = None

    @property
    def folder(self) -> Path:
        return self.destination / "cluster-1" / "0ab"

    def run(self, run_id: str = "run-1", **changes: Any) -> CheckpointSummary:
        catalog: Any = self.log.metadata
        source = FollowerSource(self.addresses[0], TOKEN, self.addresses[1])
        asked = CheckpointRequest("/db/herd", "demo", TargetRequest(), self.destination, run_id, key=self.key, follower=source)
        return run_checkpoint(lambda: self.spark, catalog, replace(asked, **changes))

    def opened(self, summary: CheckpointSummary) -> Manifest:
        return open_manifest(self.destination / summary.manifest).manifest


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[Job]:
    bookies = [PlayedBookie() for _ in range(3)]
    destination = tmp_path / "checkpoints"
    destination.mkdir()
    source = PlayedFollower(stream(Lsn(5, 0), "0ab", [HELD]))
    witness = PlayedFollower(digests={"t": digest_of_rows(ROWS)})
    with served(*bookies) as addresses, following(source) as first, following(witness) as second:
        log = PlayedLog(bookies, addresses, tmp_path)
        for ledger, entries, closed in ((3, FIRST, True), (5, SECOND, True), (7, THIRD, False)):
            log.write(ledger, entries, closed=closed)
        log.drop(3)
        yield Job(spark, log, destination, source, (first, second), witness)


def has_clock(monkeypatch: pytest.MonkeyPatch, millis: int) -> None:
    """Sets the job's clock to this time for the holding of a follower."""
    monkeypatch.setattr(follower_base, "time", SimpleNamespace(time_ns=lambda: millis * 1_000_000))


def test_a_checkpoint_begins_with_a_followers_tables_and_is_compared_with_another_follower(job: Job) -> None:
    summary = job.run()
    assert f"made from the tables of the follower {job.addresses[0]} at 5,0 and the log behind it" in summary.message
    assert (summary.base_ledger_id, summary.base_entry_id, summary.base_follower) == (5, 0, job.addresses[0])
    assert summary.entries_read == 7, "from where the follower was held: 5,0 to 7,2"
    assert summary.comparison is None, "followers that agree are no finding on what the log says"
    made = job.opened(summary)
    (table,) = made.tables
    assert (table.rows, table.digest) == (3, digest_of_rows(ROWS).hex)
    assert table.highest_auto_increment == 9
    assert [(index.name, index.table) for index in made.indexes] == [("by_w", "t")]
    assert (made.verified.how, made.verified.by) == ("Follower", job.addresses[1])
    assert made.base is not None
    assert (made.base.follower, made.base.lsn.lsn, made.base.manifest) == (job.addresses[0], Lsn(5, 0), "")
    assert job.witness.asked == ["/tablespaces/demo/digest"]
    assert not list(job.folder.glob("data/*/follower-*")), "what came of the follower goes when it is used"


def test_the_next_checkpoint_goes_on_from_it_and_asks_no_follower_for_tables(job: Job) -> None:
    first = job.run()
    job.log.write(7, [*THIRD, put(5), mark(LogEntryType.NOOP)], closed=False)
    asked = len(job.source.asked)
    second = job.run("run-2")
    assert (second.base_ledger_id, second.base_entry_id, second.base_follower) == (first.ledger_id, first.entry_id, "")
    assert job.opened(second).tables[0].rows == 4
    assert second.latest_timestamp == first.latest_timestamp, "what came later is stamped before that"
    assert len(job.source.asked) == asked


def test_what_a_followers_tables_hold_was_stamped_ten_minutes_after_it_was_held_at_the_latest(job: Job) -> None:
    began = datetime.now(UTC)
    latest = datetime.fromisoformat(job.run().latest_timestamp)
    assert began - timedelta(milliseconds=1) <= latest - timedelta(minutes=10) <= datetime.now(UTC)


def test_where_the_jobs_clock_is_behind_the_stamp_of_the_entry_counts_at_which_the_follower_was_held(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_clock(monkeypatch, 10)
    assert job.run().latest_timestamp == "1970-01-01T00:10:01.000Z"


def test_a_later_moment_is_made_from_it_and_an_earlier_one_is_refused(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    has_clock(monkeypatch, 5_000)
    first = job.run()
    assert first.latest_timestamp == "1970-01-01T00:10:05.000Z"
    later = [replace(put(key), timestamp_millis=millis) for key, millis in ((5, 606_000), (6, 607_000))]
    job.log.write(7, [*THIRD, *later, mark(LogEntryType.NOOP)], closed=False)

    with pytest.raises(CheckpointRefused, match=r"remove spec\.target"):
        job.run("before", target=TargetRequest(at=parse_moment("1970-01-01T00:10:04.999Z")))
    made_from = first
    for moment, rows in (("1970-01-01T00:10:05Z", 3), ("1970-01-01T00:10:06Z", 4)):
        summary = job.run(moment.replace(":", "."), target=TargetRequest(at=parse_moment(moment)))
        assert (summary.base_ledger_id, summary.base_entry_id, summary.base_follower) == (made_from.ledger_id, made_from.entry_id, "")
        assert job.opened(summary).tables[0].rows == rows
        made_from = summary


def test_what_an_earlier_version_has_made_without_a_time_has_none_later_either(job: Job) -> None:
    first = job.run()
    made = job.opened(first)
    (job.destination / first.manifest).unlink()
    commit_manifest(made.model_copy(update={"latest_timestamp_millis": None}), job.folder, None)
    job.log.write(7, [*THIRD, put(5), mark(LogEntryType.NOOP)], closed=False)
    assert job.run("run-2").latest_timestamp == ""


def test_a_base_whose_key_is_gone_waits_for_it_and_no_followers_tables_take_its_place(job: Job, keys: MountedSecret) -> None:
    key = keys.add("2026-11")
    there = manifest().model_copy(update={"encryption": Encryption.with_file_key(FileKey.new(key))})
    commit_manifest(there, job.folder, key)
    keys.remove("2026-11")
    with pytest.raises(CheckpointRefused, match=r"no checkpoint at the destination is a base .*'2026-11'.*put that key back"):
        job.run()
    assert job.source.asked == []
    assert len(manifests(job.destination)) == 1


@pytest.mark.parametrize(
    ("error", "takes_follower"), [(TimeoutError("the store is slow"), False), (FileNotFoundError("removed meanwhile"), True)]
)
def test_a_base_that_cant_be_read_now_is_tried_again_and_one_that_has_gone_is_none(
    error: OSError, takes_follower: bool, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(path: object) -> Manifest:
        raise error

    commit_manifest(manifest(), job.folder)
    monkeypatch.setattr("herdkeeper_jobs.checkpoint.base.read_manifest", unread)
    job.source.tables = (409, "this node leads the tablespace")
    words = "answered 409" if takes_follower else r"begins with ledger 5.*whether .* is a base is not known .*the store is slow"
    with pytest.raises(CheckpointRetryable, match=words):
        job.run()
    assert bool(job.source.asked) is takes_follower


def test_a_follower_that_is_alone_is_compared_with_itself(job: Job) -> None:
    job.source.digests["t"] = digest_of_rows(ROWS)
    summary = job.run(follower=FollowerSource(job.addresses[0], TOKEN))
    verified = job.opened(summary).verified
    assert (verified.how, verified.by) == ("Self", job.addresses[0])
    assert summary.verified == f"compared with the follower {job.addresses[0]} alone, whose tables it begins with"
    assert summary.comparison is None, "its own tables prove nothing of it"


def test_a_later_checkpoint_proves_nothing_by_the_follower_whose_tables_its_chain_alone_begins_with(job: Job) -> None:
    job.source.digests["t"] = digest_of_rows(ROWS)
    job.run(follower=FollowerSource(job.addresses[0], TOKEN))
    job.log.write(7, [*THIRD, put(5), mark(LogEntryType.NOOP)], closed=False)
    assert job.run("reread").verified == "files re-read", "this one asks nobody, and forgets nothing"
    job.log.write(7, [*THIRD, put(5), put(6), mark(LogEntryType.NOOP)], closed=False)
    rows = [*ROWS, *(encode_row(AFTER, {"k": key, "w": 10 * key}) for key in (5, 6))]
    job.source.digests["t"] = job.witness.digests["t"] = digest_of_rows(rows)

    again = job.run("again", target=TargetRequest(verify_against=job.addresses[0], token=TOKEN))
    assert (again.base_ledger_id, again.base_entry_id) == (7, 4)
    assert again.verified == f"compared with the follower {job.addresses[0]} alone, whose tables it begins with"
    assert again.comparison is None, "its own tables came back to it"

    job.log.write(7, [*THIRD, put(5), put(6), mark(LogEntryType.NOOP), mark(LogEntryType.NOOP)], closed=False)
    by_another = job.run("another", target=TargetRequest(verify_against=job.addresses[1], token=TOKEN))
    assert by_another.verified == f"compared with follower {job.addresses[1]}"
    job.log.write(7, [*THIRD, put(5), put(6), *[mark(LogEntryType.NOOP)] * 3], closed=False)
    assert job.run("proven", target=TargetRequest(verify_against=job.addresses[0], token=TOKEN)).comparison is not None


def test_a_follower_at_a_later_position_proves_no_rows_of_another_one_that_were_overwritten_until_then(job: Job) -> None:
    kept = encode_row(AFTER, {"k": 9, "w": 90})  # its copy missed a DELETE
    job.source.tables = stream(Lsn(5, 0), "0ab", [replace(HELD, rows=[*HELD.rows, kept])])
    job.source.digests["t"] = digest_of_rows([*ROWS, kept])
    job.run(follower=FollowerSource(job.addresses[0], TOKEN))
    job.log.write(7, [*THIRD, mark(LogEntryType.NOOP), delete(9), mark(LogEntryType.NOOP)], closed=False)
    before = job.run("before", target=TargetRequest(Lsn(7, 4), verify_against=job.addresses[1], token=TOKEN))
    assert job.opened(before).tables[0].rows == 4
    assert not is_proof(before.verified), before.verified
    assert job.opened(before).unproven_follower == job.addresses[0]


def test_a_follower_is_not_blamed_for_other_rows_than_those_of_one_that_nobody_has_proven(job: Job) -> None:
    job.source.digests["t"] = digest_of_rows(ROWS)
    first = job.run(follower=FollowerSource(job.addresses[0], TOKEN))
    job.log.write(7, [*THIRD, mark(LogEntryType.NOOP)], closed=False)
    job.witness.digests["t"] = digest_of_rows(ROWS[:2])
    with pytest.raises(InvariantViolated, match=r"the follower .* has 2 rows.*it is unknown which of the two is wrong"):
        job.run("another", target=TargetRequest(verify_against=job.addresses[1], token=TOKEN))
    assert [path.name for path in manifests(job.destination)] == [Path(first.manifest).name]
    assert len(list(job.folder.glob("data/*"))) == 1, "a run that commits nothing leaves no files"


def test_a_follower_that_was_made_anew_is_not_blamed_for_other_rows_than_those_of_its_former_copy(job: Job) -> None:
    job.source.digests["t"] = digest_of_rows(ROWS)
    first = job.run(follower=FollowerSource(job.addresses[0], TOKEN))
    job.log.write(7, [*THIRD, mark(LogEntryType.NOOP)], closed=False)
    job.source.digests["t"] = digest_of_rows([*ROWS, encode_row(AFTER, {"k": 9, "w": 90})])  # its former copy lacked a row
    with pytest.raises(InvariantViolated, match=r"has 4 rows.*it is unknown which of the two is wrong") as error:
        job.run("again", target=TargetRequest(verify_against=job.addresses[0], token=TOKEN))
    assert not isinstance(error.value, FollowerDiffers), "a verdict on it would set a right copy aside"
    assert [path.name for path in manifests(job.destination)] == [Path(first.manifest).name]


def test_followers_that_contradict_each_other_make_no_checkpoint_and_no_verdict(job: Job) -> None:
    job.witness.digests["t"] = digest_of_rows(ROWS[:2])
    with pytest.raises(InvariantViolated, match=r"the follower .* has 2 rows.*it is unknown which of the two is wrong") as error:
        job.run()
    assert not hasattr(error.value, "comparison")
    assert manifests(job.destination) == []
    assert not list(job.folder.glob("data/*/follower-*"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"follower": None}, "no other follower, and no earlier Checkpoint, proves one right .* Raise spec.replicas .* to 3"),
        ({"target": TargetRequest(Lsn(7, 1))}, "for the current state: remove spec.target .* begins with ledger 5, its first one was 3"),
    ],
    ids=["no follower", "not now"],
)
def test_without_a_follower_that_could_be_begun_with_the_refusal_says_why(job: Job, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckpointRefused, match=words):
        job.run(**changes)
    assert job.source.asked == []


def test_mode_full_takes_no_followers_tables(job: Job) -> None:
    with pytest.raises(CheckpointRefused, match="Full: set Auto"):
        job.run(mode=Mode.FULL)
    assert job.source.asked == []


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((409, "this node leads the tablespace, and a leader is never held"), CheckpointRetryable, "answered 409.*never held"),
        ((504, "transactions were open at each position"), CheckpointRetryable, "answered 504.*transactions were open"),
        (stream(Lsn(5, 0), "0ab", [HELD])[:-9], CheckpointRetryable, "ends in its middle"),
        (stream(Lsn(5, 0), "another", [HELD]), InvariantViolated, "and not of the tablespace 0ab"),
    ],
    ids=["it leads", "it is never at rest", "it breaks off", "of another tablespace"],
)
def test_an_incomplete_stream_leaves_no_files(job: Job, answer: bytes | tuple[int, str], error: type[Exception], words: str) -> None:
    job.source.tables = answer
    with pytest.raises(error, match=words):
        job.run()
    assert [path for path in all_files(job.destination) if ".parquet" in str(path)] == []


def test_a_token_that_is_not_the_clusters_is_refused_with_where_it_is(job: Job) -> None:
    with pytest.raises(CheckpointRefused, match=r"answered 401.*HERDDB_TOKEN must be the key `token`"):
        job.run(follower=FollowerSource(job.addresses[0], "another"))


def test_a_log_that_has_lost_what_lies_behind_the_follower_is_refused(job: Job) -> None:
    job.source.tables = stream(Lsn(3, 1), "0ab", [HELD])
    with pytest.raises(CheckpointRefused, match="begins with ledger 5, it would be read from 3"):
        job.run()
    assert not list(job.folder.glob("data/*/follower-*"))


def test_a_followers_tables_are_stored_encrypted_like_the_checkpoint(
    job: Job, keys: MountedSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.key = keys.add("2026-11")
    seen: list[bytes] = []

    def looked_at(spark: SparkSession, base: follower_base.FollowerBase) -> Any:
        seen.extend((base.folder / file.path).read_bytes() for file in base.files)
        return load_tables(spark, base)

    monkeypatch.setattr("herdkeeper_jobs.checkpoint.run.load_tables", looked_at)
    assert job.opened(job.run()).tables[0].rows == 3
    assert seen
    assert all(content.startswith(b"PARE") for content in seen)


def test_a_table_is_named_like_the_files_of_a_followers_tables(tmp_path: Path) -> None:
    """An attempt that was killed has left its folder."""
    folder = tmp_path / "data" / "run" / "follower-x.parquet"
    folder.mkdir(parents=True)
    sent = io.BytesIO(stream(Lsn(5, 0), "0ab", [PlayedTable(replace(AFTER, name="follower-x.parquet"))]))
    base = take_tables(read_stream(sent), "n1:9845", "0ab", ParquetFolder(tmp_path), "run")
    assert [table.name for table in base.tables] == ["follower-x.parquet"]
    assert folder.is_dir()


def test_rows_are_shared_out_among_files_and_come_back_as_they_were(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_base, "_GROUP_BYTES", 100)
    monkeypatch.setattr(follower_base, "_FILE_BYTES", 1_000)
    many = [encode_row(AFTER, {"k": key, "w": key}) for key in range(200)]
    other = replace(AFTER, name="other", uuid="u2", auto_increment=False)
    tables = [PlayedTable(AFTER, many, 200), PlayedTable(replace(AFTER, name="blank", uuid="u3")), PlayedTable(other, many[:3])]
    (tmp_path / "data" / "run").mkdir(parents=True)
    (tmp_path / "data" / "run" / "follower-ab-00000.parquet").write_bytes(b"of an attempt that was killed")
    base = take_tables(read_stream(io.BytesIO(stream(Lsn(5, 0), "0ab", tables))), "n1:9845", "0ab", ParquetFolder(tmp_path), "run")
    assert len(base.files) > 3
    assert [(table.highest_auto_increment, table.digest.rows) for table in base.tables] == [(199, 200), (None, 0), (None, 3)]
    rows = load_tables(spark, base)
    found = sorted((row["base_table"], bytes(row["row_key"]), bytes(row["row_value"])) for row in rows.rows.collect())
    assert found == sorted([*((0, *row) for row in many), *((2, *row) for row in many[:3])])
    path = tmp_path / base.files[1].path
    content = path.read_bytes()
    rows.rows.unpersist()
    path.write_bytes(content.replace(b"PAR1", b"PAR2", 1))
    with pytest.raises(InvariantViolated, match=r"the tables of the follower n1:9845, as they were written to .*other bytes"):
        load_tables(spark, base)
    path.write_bytes(content)
    rows.release()
    assert [path for path in all_files(tmp_path) if ".parquet" in str(path)] == []


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(logs_with_indexes(), st.data())
def test_a_fold_that_begins_with_a_followers_tables_gives_what_the_whole_log_gives(
    tmp_path_factory: pytest.TempPathFactory, log: Log, data: st.DataObject
) -> None:
    """The follower has what the log gives up to an LSN without open transactions."""
    rests = [cut for cut in range(1, len(log) + 1) if _is_at_rest(timeline_of(log[:cut]), log[cut:])]
    if not rests:
        return
    cut = data.draw(st.sampled_from(rests))
    before, rows = timeline_of(log[:cut]), folded(log[:cut])
    played = [
        PlayedTable(
            table,
            sorted(rows[table.uuid].items()),
            indexes=tuple((index.definition, index.maker is None) for index in before.state.indexes if index.table_uuid == table.uuid),
        )
        for table in before.tables
    ]
    sent = stream(log[cut - 1][0], "0ab", played)
    folder = ParquetFolder(tmp_path_factory.mktemp("base"))
    base = take_tables(read_stream(io.BytesIO(sent)), "n1", "0ab", folder, "run")
    assert base.start.restart == log[cut - 1][0], "nothing before it is read"
    on_tables, on = folded_on(rows, base.start, log)
    whole = timeline_of(log)
    assert on_tables == folded(log)
    assert (on.tables, on.indexes, on.open_transactions) == (whole.tables, whole.indexes, whole.open_transactions)
    assert _as_a_follower_tells(on.state) == _as_a_follower_tells(whole.state)
    assert [table.digest for table in base.tables] == [digest_of_rows(list(item.rows)) for item in played]
    assert sum((table.digest for table in base.tables), RowDigest()).rows == sum(map(len, rows.values()))


def _is_at_rest(timeline: Timeline, later: Log) -> bool:
    """Excludes states that no leader continues: a table of an id's former life, or an index that the next life would own."""
    begun = {item.transaction_id for _, item in later if item.type is LogEntryType.BEGIN}
    state = timeline.state
    makers = {index.maker for index in state.indexes}
    return not timeline.open_transactions and all(table.maker is None for table in state.tables) and not makers & begun


def _as_a_follower_tells(state: LogState) -> LogState:
    """The state as a follower reports it: without whether columns changed, nor who made an unusable index."""
    indexes = tuple(replace(index, maker=None if index.maker is None else NOBODY) for index in state.indexes)
    return replace(state, tables=tuple(replace(table, altered=False) for table in state.tables), indexes=indexes)
