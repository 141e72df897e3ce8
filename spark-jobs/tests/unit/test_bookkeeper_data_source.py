"""`spark.read.format("bookkeeper")` and `spark.readStream` against played bookies, on a real Spark."""

from __future__ import annotations

import itertools
import pickle
import runpy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from played_bookie import PlayedBookie, ledger, packed, served
from played_log import NAMES, PlayedLog, PlayedSource, sessions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from spark_of_tests import STARTS, has_not_begun
from test_wal_fold import COLUMNS, Log, Tables, create, dice, entry, folded, in_one_ledger, insert, logs, table

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType, encode_log_entry
from herdkeeper.codecs.herddb.table import Column, ColumnType, decode_table, encode_table
from herdkeeper_jobs.bookkeeper.reader import EntryUnreadableError
from herdkeeper_jobs.datasource.changes import CommittedChanges, TransactionBeganEarlierError
from herdkeeper_jobs.datasource.data_source import knowing, most_tasks_at_once
from herdkeeper_jobs.datasource.options import OptionError, parse_options
from herdkeeper_jobs.datasource.schema import CHANGES, CHANGES_ARROW, ENTRIES
from herdkeeper_jobs.datasource.stream import ChangeStreamReader, StreamOffset
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, LogTruncatedError, NotConfirmedYet
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.lsn import Lsn

ROOT = Path(__file__).parents[3]
NOOP = entry(LogEntryType.NOOP, -1)
OPENED = [NOOP, insert("t", b"a", b"1"), entry(LogEntryType.BEGIN, 7), insert("t", b"b", b"2", 7), insert("t", b"c", b"3"), NOOP]
"""With a transaction that stays open."""
FOLLOWED = [NOOP, entry(LogEntryType.COMMIT, 7), insert("t", b"d", b"4"), NOOP]
WIDER = Column("w", ColumnType.STRING, 2)
URI = "zk+hierarchical://z0:2181;z1:2181/bk/ledgers"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PlayedLog]:
    bookies = [PlayedBookie(most_in_batch=50) for _ in NAMES]
    with served(*bookies) as addresses:
        yield PlayedLog(bookies, addresses, tmp_path)


@pytest.fixture
def played(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(PlayedSource)
    return spark


def read(spark: SparkSession, log: PlayedLog, **options: str) -> DataFrame:
    return spark.read.format("played").options(**log.options, **options).load()


def with_plain_ledgers(log: PlayedLog, *lasts: int) -> None:
    for number, last in enumerate(lasts, start=1):
        for bookie in log.bookies:
            bookie.entries.update({(number, entry_id): packed(number, entry_id) for entry_id in range(last + 1)})
        log.metadata.ledgers[number] = ledger(number, last, NAMES)
    log.save()


def lsns(rows: list[Row]) -> list[tuple[int, int]]:
    return sorted((row["ledger_id"], row["entry_id"]) for row in rows)


def test_ledgers_are_read_whole_in_as_many_partitions_as_asked_and_never_fenced(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 99, 30, 4)
    frame = read(played, log, ledgers="1,2-3", partitions="4")
    assert frame.schema == ENTRIES
    assert frame.rdd.getNumPartitions() == 4
    rows = frame.collect()
    assert lsns(rows) == [(number, entry_id) for number, last in ((1, 99), (2, 30), (3, 4)) for entry_id in range(last + 1)]
    assert bytes(rows[0]["payload"]).decode() == f"{rows[0]['ledger_id']}/{rows[0]['entry_id']}"
    assert {request[0] & 0xFFFF for bookie in log.bookies for request in bookie.requests} == {0}


def test_a_part_of_ledgers_is_named_by_lsns(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 9, 9, 9)
    rows = read(played, log, ledgers="1-3", afterLsn="1,7", upToLsn="3,0").collect()
    assert lsns(rows) == [(1, 8), (1, 9), *((2, entry_id) for entry_id in range(10)), (3, 0)]


def test_the_replica_that_gave_an_entry_is_named_and_a_damaged_one_is_not_used(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 20)
    for number in (0, 1):
        log.bookies[number].entries[1, 7] = log.bookies[number].entries[1, 7][:-1] + b"?"
    rows = read(played, log, ledgers="1", partitions="1").collect()
    assert [row["bookie"] for row in rows if row["entry_id"] == 7] == ["b2"]
    assert lsns(rows) == [(1, entry_id) for entry_id in range(21)]


def test_without_verification_bytes_come_as_they_are(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 3)
    for bookie in log.bookies:
        bookie.entries[1, 2] = bookie.entries[1, 2][:-1] + b"?"
    rows = read(played, log, ledgers="1", verify="false").collect()
    assert [bytes(row["payload"]) for row in rows if row["entry_id"] == 2] == [b"1/?"]


def test_an_entry_that_no_replica_has_fails_and_names_ledger_entry_and_each_replica(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 9)
    for bookie in log.bookies:
        del bookie.entries[1, 5]
    with pytest.raises(PySparkException) as caught:
        read(played, log, ledgers="1").collect()
    for words in ("entry 5 of ledger 1 cannot be read", "bookie b0 answered NO_ENTRY", "bookie b1", "bookie b2"):
        assert words in str(caught.value)


def test_a_ledger_that_does_not_exist_is_named(played: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 9)
    with pytest.raises(PySparkException, match="ledger 8 does not exist below /bk/ledgers; leave it out"):
        read(played, log, ledgers="1,8").collect()


def test_a_log_is_read_as_committed_changes_in_the_order_of_their_commits(played: SparkSession, log: PlayedLog) -> None:
    log.write(3, [NOOP, create("t", "u"), entry(LogEntryType.BEGIN, 1), insert("t", b"a", b"early", 1)], closed=True)
    rest = [NOOP, insert("t", b"b", b"alone"), entry(LogEntryType.BEGIN, 2), insert("t", b"c", b"never", 2)]
    ends = [entry(LogEntryType.COMMIT, 1), entry(LogEntryType.ROLLBACK, 2), insert("t", b"z", b"not confirmed")]
    log.write(5, rest + ends, closed=False)
    frame = read(played, log, tablespace="demo", herdRoot="/db/herd")
    assert frame.schema == CHANGES
    assert [(row["operation"], bytes(row["row_key"]), row["commit_ledger_id"], row["commit_entry_id"]) for row in frame.collect()] == [
        ("CREATE_TABLE", b"", 3, 1),
        ("INSERT", b"b", 5, 1),
        ("INSERT", b"a", 5, 4),
    ]
    assert {request[0] & 0xFFFF for bookie in log.bookies for request in bookie.requests} == {0}


def run_query(spark: SparkSession, log: PlayedLog, folder: Path) -> list[tuple[str, int]]:
    """Runs a query until what is confirmed now; returns all that is in its sink: (key, commit's entry).

    Restarts a query that Spark gave up before it began.
    """
    frame = spark.readStream.format("played").options(**log.options, tablespace="demo", herdRoot="/db/herd", maxEntriesPerBatch="2").load()
    for attempt in range(STARTS):
        writer = frame.writeStream.format("parquet").option("path", str(folder / "sink"))
        query = writer.option("checkpointLocation", str(folder / "progress")).trigger(availableNow=True).start()
        try:
            query.awaitTermination(300)
            break
        except PySparkException as error:
            if not has_not_begun(error) or attempt + 1 == STARTS:
                raise
    rows = spark.read.schema(CHANGES).parquet(str(folder / "sink")).orderBy("commit_ledger_id", "commit_entry_id", "ledger_id", "entry_id")
    return [(bytes(row["row_key"]).decode(), row["commit_entry_id"]) for row in rows.collect()]


def test_a_query_goes_on_where_it_stopped_over_ledgers_and_open_transactions(played: SparkSession, log: PlayedLog, tmp_path: Path) -> None:
    log.write(3, OPENED, closed=False)
    assert run_query(played, log, tmp_path) == [("a", 1), ("c", 4)]
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    assert run_query(played, log, tmp_path) == [("a", 1), ("c", 4), ("b", 1), ("d", 2)]


def reader(log: PlayedLog, **options: str) -> ChangeStreamReader:
    found = PlayedSource({**log.options, "tablespace": "demo", "herdRoot": "/db/herd", **options}).simpleStreamReader(CHANGES)
    assert isinstance(found, ChangeStreamReader)
    return found


def drained(stream: ChangeStreamReader, offset: dict[str, str]) -> tuple[list[str], list[dict[str, str]]]:
    """The keys of all changes, and the offsets of the batches."""
    keys: list[str] = []
    offsets = [offset]
    while True:
        changes, end = stream.read(offsets[-1])
        if end == offsets[-1]:
            return keys, offsets
        keys.extend(keys_of(changes))
        offsets.append(end)


def keys_of(read: Iterable[pa.RecordBatch]) -> list[str]:
    return [key.decode() for batch in read for key in batch.column("row_key").to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_batches_of_any_size_give_the_same_changes_to_one_process_and_to_one_after_the_other(log: PlayedLog, size: int) -> None:
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    stream = reader(log, maxEntriesPerBatch=str(size))
    keys, offsets = drained(stream, stream.initialOffset())
    assert keys == ["a", "c", "b", "d"]
    # each batch, read by a process that only knows its offsets, as after a restart
    again = [key for start, end in itertools.pairwise(offsets) for key in keys_of(reader(log).readBetweenOffsets(start, end))]
    restarted = [drained(reader(log, maxEntriesPerBatch=str(size)), start)[0] for start in offsets]
    assert again == keys
    assert restarted[0] == keys
    assert all(keys[len(keys) - len(rest) :] == rest for rest in restarted)


def test_a_reader_that_is_asked_from_an_earlier_offset_gives_what_it_gave(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    stream = reader(log, maxEntriesPerBatch="3")
    keys, offsets = drained(stream, stream.initialOffset())
    assert [drained(stream, offsets[number])[0] for number in (1, 0)] == [drained(reader(log), offsets[1])[0], keys]


LARGE = 10_000


def with_large_rows(log: PlayedLog, rows: int) -> None:
    log.write(3, [NOOP, *(insert("t", b"%d" % number, bytes(LARGE)) for number in range(rows)), NOOP], closed=True)


@pytest.mark.parametrize(("option", "rows"), [(str(3 * LARGE), 3), (str(LARGE // 2), 1), (str(30 * LARGE), 10)])
def test_a_batch_ends_with_the_row_that_gives_it_the_bytes_that_an_option_says(log: PlayedLog, option: str, rows: int) -> None:
    with_large_rows(log, 10)
    stream = reader(log, maxBytesPerBatch=option)
    offsets = [stream.initialOffset()]
    sizes = []
    while (read := stream.read(offsets[-1]))[1] != offsets[-1]:
        sizes.append(len(keys_of(read[0])))
        offsets.append(read[1])
    assert max(sizes) == rows
    assert sum(sizes) == 10
    # another process reads the same batches again by their offsets
    again = [key for start, end in itertools.pairwise(offsets) for key in keys_of(reader(log).readBetweenOffsets(start, end))]
    assert again == [str(number) for number in range(10)]


def test_entries_read_again_for_an_open_transaction_count_for_no_batch(log: PlayedLog) -> None:
    large = [insert("t", b"%d" % number, bytes(LARGE), 7) for number in range(10)]
    log.write(3, [entry(LogEntryType.BEGIN, 7), *large, insert("t", b"x", b""), entry(LogEntryType.COMMIT, 7), NOOP], closed=True)
    stream = reader(log, maxBytesPerBatch=str(3 * LARGE), afterLsn="3,10", restartLsn="3,0")
    changes, end = stream.read(stream.initialOffset())
    assert keys_of(changes) == ["x", *(str(number) for number in range(10))]
    assert end == {"position": "3,13", "log": "cluster-1/0ab", "millis": "1000"}


def test_a_batch_has_32_mib_by_default() -> None:
    parsed = [parse_options({"metadataServiceUri": URI, "ledgers": "1", **given}) for given in ({}, {"maxBytesPerBatch": "1000"})]
    assert [options.max_bytes_per_batch for options in parsed] == [32 * 1024 * 1024, 1000]


def test_a_stream_keeps_its_session_while_it_waits_and_makes_a_new_one_once_it_is_lost(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    stream = reader(log)
    _, offset = stream.read(stream.initialOffset())
    for _ in range(3):
        assert stream.read(offset)[1] == offset
    assert sessions(log) == 1
    with stream._catalog.use() as catalog:
        catalog.connected = False  # type: ignore[misc]
    stream.read(offset)
    assert sessions(log) == 2


def test_a_stream_whose_read_failed_makes_a_new_session(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    stream = reader(log)
    _, offset = stream.read(stream.initialOffset())
    content = pickle.loads(log.file.read_bytes())
    content.addresses, content.active, content.ledgers[4] = {}, [3, 4], ledger(4, None, NAMES)
    log.file.write_bytes(pickle.dumps(content))
    stream.read(offset)
    stream.read(offset)
    assert sessions(log) == 2, "the first look that failed ended the session, and the second one made its own"


def test_a_repeated_batch_leaves_no_session_behind(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    again = reader(log)
    list(again.readBetweenOffsets({}, {"position": "3,4"}))
    list(again.readBetweenOffsets({}, {"position": "3,4"}))
    assert sessions(log) == 2


def test_an_offset_keeps_where_the_oldest_open_transaction_began(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    stream = reader(log)
    last = {"position": "3,4", "restart": "3,2", "log": "cluster-1/0ab", "millis": "1000"}
    assert drained(stream, stream.initialOffset())[1][-1] == last


def test_a_query_does_not_go_on_in_the_log_of_a_cluster_that_was_made_again(log: PlayedLog) -> None:
    """Its ledgers have the numbers of the former one's. An offset of an earlier version does not say of which log it is."""
    log.write(3, OPENED, closed=False)
    first = reader(log)
    start = first.initialOffset()
    _, offset = first.read(start)
    log.metadata.instance_id = "cluster-2"
    log.write(3, [*OPENED, insert("t", b"x", b"9"), NOOP], closed=False)
    with pytest.raises(
        CheckpointRefused, match=r"has read the log cluster-1/0ab up to 3,4, and .* has the log cluster-2/0ab: .*checkpointLocation"
    ):
        reader(log).read(offset)
    with pytest.raises(CheckpointRefused, match="has the log cluster-2/0ab"):
        reader(log).readBetweenOffsets(start, offset)
    assert drained(reader(log), {name: offset[name] for name in ("position", "restart")})[0] == ["x"]


def test_a_query_does_not_go_on_in_a_log_that_was_put_back_and_has_another_entry_where_it_stopped(log: PlayedLog) -> None:
    """Volumes were put back to older copies: the log has its identity still, and its lost LSNs anew. What it wrote there was left out."""
    written_anew = [replace(item, timestamp_millis=2000) for item in (insert("t", b"x", b"9"), NOOP, NOOP)]
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED[:2], closed=True)
    running = reader(log)
    start = running.initialOffset()
    _, offset = running.read(start)
    message = "has read up to 9,1, and the log has another entry there now: the cluster was put back"
    log.write(9, [FOLLOWED[0], *written_anew], closed=False)
    for query in (running, reader(log)):
        with pytest.raises(CheckpointRefused, match=message):
            query.read(offset)
    with pytest.raises(CheckpointRefused, match=message):
        reader(log).readBetweenOffsets(start, offset)
    assert drained(reader(log), {name: offset[name] for name in ("position", "log")})[0] == [], "an earlier version stored no time"
    log.write(9, FOLLOWED[:1], closed=True)
    with pytest.raises(CheckpointRefused, match="has read up to 9,1, and the log has no entry there now"):
        reader(log).readBetweenOffsets(start, offset)


def test_a_query_that_goes_on_gives_no_change_of_an_open_transaction_twice(log: PlayedLog) -> None:
    """It reads the entry where it stopped again, to see whether the log is the same one."""
    begun = [entry(LogEntryType.BEGIN, 7), insert("t", b"a", b"1", 7)]
    log.write(3, [*begun, NOOP], closed=False)
    stream = reader(log)
    _, offset = stream.read(stream.initialOffset())
    assert offset["position"] == "3,1"
    log.write(3, [*begun, entry(LogEntryType.COMMIT, 7), NOOP], closed=False)
    assert keys_of(stream.read(offset)[0]) == ["a"]


def test_a_reader_that_repeats_a_batch_needs_nothing_of_the_one_that_read_it_first(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    stream = reader(log)
    _, end = stream.read(stream.initialOffset())
    assert keys_of(pickle.loads(pickle.dumps(stream)).readBetweenOffsets(stream.initialOffset(), end)) == ["a", "c"]


def without_the_bookie_that_alone_has(log: PlayedLog, lsn: tuple[int, int]) -> None:
    """Only the first bookie has this entry, and it is down: the others report an older LAC."""
    for bookie in log.bookies[1:]:
        del bookie.entries[lsn]
    del log.metadata.addresses[NAMES[0]]
    log.save()


def test_a_batch_is_not_repeated_without_its_end_while_the_bookie_is_silent_that_confirmed_it(log: PlayedLog) -> None:
    """The query would go on behind that end: the changes before it were lost."""
    log.write(3, OPENED, closed=False)
    start = reader(log).initialOffset()
    changes, end = reader(log).read(start)
    addresses = dict(log.metadata.addresses)
    without_the_bookie_that_alone_has(log, (3, 5))
    with pytest.raises(NotConfirmedYet, match="LSN 3,4 is not confirmed: the log of 'demo' can be read up to 3,3 now; try again later"):
        reader(log).readBetweenOffsets(start, end)
    log.metadata.addresses = addresses
    log.save()
    assert keys_of(reader(log).readBetweenOffsets(start, end)) == keys_of(changes) == ["a", "c"]


@pytest.mark.parametrize(
    ("up_to", "found"),
    [
        ("3,4", ["a", "c"]),
        ("3,99", ["a", "c"]),
        ("9,2", ["a", "c", "b", "d"]),
        ("9,3", "can be read up to 9,2"),
        ("10,0", "can be read up to 9,2"),
    ],
)
def test_changes_up_to_an_lsn_that_is_not_confirmed_are_refused_and_not_given_in_part(
    log: PlayedLog, up_to: str, found: list[str] | str
) -> None:
    """The next batch would begin behind it."""
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    batch = PlayedSource({**log.options, "tablespace": "demo", "herdRoot": "/db/herd", "upToLsn": up_to}).reader(CHANGES)
    if isinstance(found, str):
        with pytest.raises(NotConfirmedYet, match=found):
            batch.partitions()
        return
    (partition,) = batch.partitions()
    assert keys_of(batch.read(partition)) == found


def test_entries_up_to_one_that_is_not_confirmed_are_refused_and_not_given_in_part(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    batches = {lsn: PlayedSource({**log.options, "ledgers": "3", "upToLsn": lsn}).reader(ENTRIES) for lsn in ("3,4", "3,5")}
    assert sum(batch.num_rows for part in batches["3,4"].partitions() for batch in batches["3,4"].read(part)) == 5
    with pytest.raises(NotConfirmedYet, match="upToLsn is 3,5: ledger 3 can be read up to entry 4 now"):
        batches["3,5"].partitions()


def test_a_batch_that_could_not_be_read_is_read_whole_the_next_time(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=False)
    stream = reader(log, maxEntriesPerBatch="3")
    _, first = stream.read(stream.initialOffset())
    lost = [bookie.entries.pop((3, 4)) for bookie in log.bookies]
    with pytest.raises(EntryUnreadableError, match="entry 4 of ledger 3"):
        stream.read(first)
    for bookie, entry_4 in zip(log.bookies, lost, strict=True):
        bookie.entries[3, 4] = entry_4
    assert drained(stream, first)[0] == ["c"]


def test_a_stream_waits_while_nothing_can_be_read(log: PlayedLog) -> None:
    log.metadata.active = [3]
    log.metadata.ledgers[3] = ledger(3, None, NAMES)
    log.metadata.addresses = {}
    log.save()
    stream = reader(log)
    assert drained(stream, stream.initialOffset()) == ([], [{}])


def ending(log: PlayedLog, **options: str) -> ChangeStreamReader:
    """The reader of a query that ends with what is confirmed now."""
    stream = reader(log, **options)
    stream.prepareForTriggerAvailableNow()
    return stream


def test_a_query_that_ends_by_itself_waits_for_what_was_confirmed_when_it_began(log: PlayedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes nothing new for the end: with bookies or ZooKeeper silent it would call a part of the log all of it."""
    log.write(3, OPENED, closed=False)
    addresses = dict(log.metadata.addresses)
    stream = ending(log)
    without_the_bookie_that_alone_has(log, (3, 5))
    changes, offset = stream.read(stream.initialOffset())
    assert (keys_of(changes), offset["position"]) == (["a"], "3,3")
    slept: list[float] = []

    def while_it_waits(seconds: float) -> None:
        slept.append(seconds)
        log.metadata.addresses = {} if len(slept) == 1 else addresses
        log.save()

    # of the stream alone: other threads sleep, too
    monkeypatch.setattr("herdkeeper_jobs.datasource.stream.time", SimpleNamespace(sleep=while_it_waits, monotonic=time.monotonic))
    changes, offset = stream.read(offset)
    assert (keys_of(changes), offset["position"], len(slept)) == (["c"], "3,4", 2)
    assert stream.read(offset)[1] == offset


def test_a_query_that_ends_by_itself_fails_if_it_can_not_read_to_its_end(log: PlayedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(3, OPENED, closed=False)
    stream = ending(log)
    log.metadata.addresses = {}
    log.save()
    monkeypatch.setattr("herdkeeper_jobs.datasource.stream._PATIENCE_SECONDS", 0.0)
    with pytest.raises(CheckpointRetryable, match=r"'demo' was confirmed up to 3,4 when .* be read behind its beginning now: .*again"):
        stream.read(stream.initialOffset())


@pytest.mark.parametrize(
    ("up_to", "end", "keys"), [("3,1", "3,1", ["a"]), ("3,99", "3,5", ["a", "c"]), ("9,99", "9,2", ["a", "c", "b", "d"])]
)
def test_a_query_that_ends_by_itself_ends_with_an_lsn_that_an_option_says(log: PlayedLog, up_to: str, end: str, keys: list[str]) -> None:
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    stream = ending(log, upToLsn=up_to)
    found, offsets = drained(stream, stream.initialOffset())
    assert (found, offsets[-1]["position"]) == (keys, end)


def test_a_query_that_would_end_with_an_lsn_before_all_that_is_left_of_the_log_says_so(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    log.write(9, FOLLOWED, closed=False)
    log.drop(3)
    with pytest.raises(CheckpointRetryable, match="'demo' has no confirmed entry up to LSN 3,1, but ledger 9"):
        ending(log, upToLsn="3,1")


def test_a_stream_that_comes_too_late_says_so(log: PlayedLog) -> None:
    log.write(3, [NOOP, insert("t", b"a", b"1"), NOOP], closed=False)
    stream = reader(log)
    _, offset = stream.read(stream.initialOffset())
    log.write(3, [NOOP, insert("t", b"a", b"1"), NOOP, insert("t", b"lost", b"1")], closed=True)
    log.write(4, [NOOP, insert("t", b"b", b"1"), NOOP], closed=False)
    log.drop(3)
    for late in (stream, reader(log)):
        with pytest.raises(LogTruncatedError, match="'demo' was read from LSN 3,1 on, but it begins with ledger 4 now"):
            late.read(offset)


def drop_when_it_is_read(log: PlayedLog, ledger_id: int) -> None:
    """The log drops the ledger, and bookies its entries, between the planning and the first read."""

    def drop() -> None:
        if ledger_id in log.metadata.active:
            log.drop(ledger_id)
        for bookie in log.bookies:
            bookie.entries = {lsn: kept for lsn, kept in bookie.entries.items() if lsn[0] != ledger_id}

    for bookie in log.bookies:
        bookie.on_request = drop


def test_a_stream_whose_ledger_is_dropped_while_it_is_read_says_so(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    log.write(4, [NOOP, insert("t", b"b", b"1")], closed=True)
    start, end = StreamOffset(Lsn(3, 1), None).to_document(), StreamOffset(Lsn(3, 4), None).to_document()
    message = "'demo' was read from LSN 3,1 on, but it begins with ledger 4 now"
    drop_when_it_is_read(log, 3)
    with pytest.raises(LogTruncatedError, match=message):
        reader(log).read(start)
    log.write(3, OPENED, closed=True)
    with pytest.raises(LogTruncatedError, match=message):
        reader(log).readBetweenOffsets(start, end)


def test_a_stream_from_the_beginning_of_a_log_that_has_lost_it_is_refused(log: PlayedLog) -> None:
    log.write(3, [NOOP], closed=True)
    log.write(4, [NOOP, insert("t", b"b", b"1"), NOOP], closed=False)
    log.drop(3)
    with pytest.raises(LogTruncatedError):
        reader(log).read({})
    behind = reader(log, afterLsn="4,0")
    assert drained(behind, behind.initialOffset())[0] == ["b"]


def test_ledgers_can_not_be_streamed(log: PlayedLog) -> None:
    with pytest.raises(OptionError, match="ledgers can't be streamed"):
        PlayedSource({**log.options, "ledgers": "1"}).simpleStreamReader(ENTRIES)


def run_example(spark: SparkSession, log: PlayedLog, progress: Path) -> None:
    """Runs the example as a new process would: only the folder is left of the previous one."""
    frame = spark.readStream.format("played").options(**log.options, tablespace="demo", herdRoot="/db/herd").load()
    for attempt in range(STARTS):
        follow = runpy.run_path(str(ROOT / "examples/change_data_capture.py"))["follow"]
        try:
            follow(frame, str(progress)).trigger(availableNow=True).start().awaitTermination(300)
            return
        except PySparkException as error:
            if not has_not_begun(error) or attempt + 1 == STARTS:
                raise


def test_the_example_decodes_rows_by_the_definitions_that_came_before_them_also_before_it_was_started_again(
    played: SparkSession, log: PlayedLog, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, value = (5).to_bytes(8, "big"), bytes([1, 0, 2]) + b"hi"
    wider = value + bytes([2, 0, 2]) + b"ho"
    altered = entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("t", "u", columns=(*COLUMNS, WIDER))))
    log.write(3, [NOOP, create("t", "u"), insert("t", key, value), NOOP], closed=True)
    run_example(played, log, tmp_path / "progress")
    log.write(9, [NOOP, entry(LogEntryType.DELETE, 0, "t", key), altered, NOOP], closed=True)
    run_example(played, log, tmp_path / "progress")
    log.write(10, [NOOP, insert("t", key, wider), NOOP], closed=False)
    run_example(played, log, tmp_path / "progress")
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("3,", "9,", "10,"))] == [
        "3,1 CREATE_TABLE t",
        "3,2 INSERT t {'k': 5, 'v': 'hi'}",
        "9,1 DELETE t {'k': 5, 'v': None}",
        "9,2 ALTER_TABLE t",
        "10,1 INSERT t {'k': 5, 'v': 'hi', 'w': 'ho'}",
    ]


@dataclass(frozen=True)
class Change:
    """A row of a stream."""

    committed: Lsn
    lsn: Lsn
    entry: LogEntry


def batches(log: Log, sizes: Sequence[int] = ()) -> list[pa.RecordBatch]:
    """A log as read from bookies and decoded by tasks, in batches of these sizes; the last one has the rest."""
    cuts = [0, *itertools.accumulate(sizes), len(log)]
    parts = [log[first:last] for first, last in itertools.pairwise(cuts) if log[first:last]]
    return list(decode_batches(_as_read(part) for part in parts))


def _as_read(log: Log) -> pa.RecordBatch:
    columns = {
        "ledger_id": [lsn.ledger_id for lsn, _ in log],
        "entry_id": [lsn.entry_id for lsn, _ in log],
        "payload": pa.array([encode_log_entry(item) for _, item in log], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def changes_in(batch: pa.RecordBatch) -> list[Change]:
    assert batch.schema == CHANGES_ARROW
    found = []
    for row in batch.to_pylist():
        kind, millis = LogEntryType[row["operation"]], round(row["timestamp"].timestamp() * 1000)
        item = LogEntry(millis, kind, row["transaction_id"], row["table_name"], row["row_key"], row["row_value"])
        committed_at = Lsn(row["commit_ledger_id"], row["commit_entry_id"])
        found.append(Change(committed_at, Lsn(row["ledger_id"], row["entry_id"]), item))
    return found


def taken(changes: CommittedChanges, log: Log, sizes: Sequence[int] = ()) -> list[Change]:
    return [change for entries in batches(log, sizes) for batch in changes.take(entries) for change in changes_in(batch)]


def committed(log: Log, after: Lsn | None = None, sizes: Sequence[int] = ()) -> list[Change]:
    return taken(CommittedChanges(after), log, sizes)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.data())
def test_a_log_that_is_read_in_two_parts_gives_the_same_changes_as_in_one(log: Log, data: st.DataObject) -> None:
    if not log:
        return
    cut = data.draw(st.integers(0, len(log) - 1))
    first = CommittedChanges(None)
    before = taken(first, log[: cut + 1])
    restart = first.restart or log[cut][0]
    again = [(lsn, item) for lsn, item in log if lsn >= restart]
    assert before + committed(again, after=log[cut][0]) == committed(log)


def test_a_transaction_that_had_committed_beside_an_open_one_is_not_given_again() -> None:
    """A reader that restarts reads both again, from the beginning of the open one on."""
    begun = [entry(LogEntryType.BEGIN, 1), insert("t", b"a", b"1", 1), entry(LogEntryType.BEGIN, 2), insert("t", b"b", b"2", 2)]
    log = in_one_ledger(*begun, entry(LogEntryType.COMMIT, 2), entry(LogEntryType.COMMIT, 1))
    first = CommittedChanges(None)
    assert [change.entry.key for change in taken(first, log[:5])] == [b"b"]
    assert first.restart == log[0][0]
    assert [change.entry.key for change in committed(log, after=log[4][0])] == [b"a"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.lists(st.integers(1, 5), max_size=20))
def test_the_division_of_entries_into_batches_changes_nothing(log: Log, sizes: list[int]) -> None:
    assert committed(log, sizes=sizes) == committed(log)


def test_a_transaction_gives_its_changes_in_their_order_at_its_commit_however_many_batches_lie_between() -> None:
    begun = [entry(LogEntryType.BEGIN, 1), insert("t", b"a", b"1", 1), insert("t", b"b", b"2"), insert("t", b"c", b"3", 1)]
    log = in_one_ledger(*begun, insert("t", b"d", b"4"), insert("t", b"e", b"5", 1), entry(LogEntryType.COMMIT, 1))
    for sizes in ([], [1] * 7, [2, 2, 2], [5]):
        assert [(change.committed.entry_id, change.lsn.entry_id) for change in committed(log, sizes=sizes)] == [
            *((2, 2), (4, 4)),
            *((6, 1), (6, 3), (6, 5)),
        ]


def test_a_transaction_that_began_before_the_part_that_is_read_is_an_error_only_when_it_commits() -> None:
    tail: list[LogEntry] = [insert("t", b"a", b"1", 5), entry(LogEntryType.ROLLBACK, 5), entry(LogEntryType.COMMIT, 6)]
    changes = CommittedChanges(Lsn(1, 0))
    assert taken(changes, [(Lsn(1, number), item) for number, item in enumerate(tail[:2], 1)]) == []
    with pytest.raises(TransactionBeganEarlierError, match=r"transaction 6 commits at 1,3.* give restartLsn"):
        taken(changes, [(Lsn(1, 3), tail[2])])


def test_a_truncate_is_a_change_at_its_own_entry_whatever_is_open() -> None:
    begun = in_one_ledger(entry(LogEntryType.BEGIN, 1), insert("t", b"a", b"1", 1), entry(LogEntryType.TRUNCATE, 0, "t"))
    log = [*begun, (Lsn(1, 3), entry(LogEntryType.COMMIT, 1))]
    for sizes in ([], [2]):
        assert [change.lsn.entry_id for change in committed(log, sizes=sizes)] == [2, 1]


def applied(changes: Iterable[Change]) -> Tables:
    """The tables of a reader that applies the stream's changes by table name."""
    names: dict[str, str] = {}
    tables: Tables = {}
    for change in changes:
        item = change.entry
        match item.type:
            case LogEntryType.CREATE_TABLE:
                names[item.table] = decode_table(item.value).uuid
                tables[names[item.table]] = {}
            case LogEntryType.ALTER_TABLE:
                names[decode_table(item.value).name] = names.pop(item.table)
            case LogEntryType.DROP_TABLE:
                del tables[names.pop(item.table)]
            case LogEntryType.TRUNCATE:
                tables[names[item.table]].clear()
            case LogEntryType.DELETE:
                tables[names[item.table]].pop(item.key, None)
            case LogEntryType.INSERT | LogEntryType.UPDATE:
                tables[names[item.table]][item.key] = item.value
            case _:
                pass
    return tables


@st.composite
def logs_with_truncates(draw: st.DrawFn) -> Log:
    """Logs in which TRUNCATEs meet open transactions.

    A table is only renamed or dropped without open transactions. A stream names the table of a change, and doesn't follow a rename before
    its COMMIT. No id begins while it is open, since no leader writes that.
    """
    names = {"a": "u0", "b": "u1"}
    items = [create(name, uuid) for name, uuid in names.items()]
    making: dict[int, list[str]] = {}
    for step, thrown in enumerate(dice(draw, draw(st.integers(1, 40)))):
        transaction = thrown.one_of([0, *sorted(making)])
        visible = sorted(names) + (making[transaction] if transaction else [])
        name = thrown.one_of(visible)
        match thrown.one_of(["begin", "insert", "truncate", "truncate", "end", "make", "rename", "drop"]):
            case "begin" if free := [number for number in (1, 2, 3) if number not in making]:
                making[free[0]] = []
                items.append(entry(LogEntryType.BEGIN, free[0]))
            case "insert":
                items.append(insert(name, bytes([thrown.one_of(range(3))]), bytes([step]), transaction))
            case "truncate":
                items.append(entry(LogEntryType.TRUNCATE, 0, thrown.one_of(sorted(names))))
            case "end" if transaction:
                ended = thrown.one_of([LogEntryType.COMMIT, LogEntryType.ROLLBACK])
                made_tables = making.pop(transaction)
                names |= {name: f"u-{name}" for name in made_tables if ended is LogEntryType.COMMIT}
                items.append(entry(ended, transaction))
            case "make" if transaction:
                making[transaction].append(f"m{step}")
                items.append(create(f"m{step}", f"u-m{step}", transaction))
            case "rename" if not making:
                names[f"r{step}"] = names.pop(name)
                items.append(entry(LogEntryType.ALTER_TABLE, 0, name, value=encode_table(table(f"r{step}", names[f"r{step}"]))))
            case "drop" if not making and len(names) > 1:
                del names[name]
                items.append(entry(LogEntryType.DROP_TABLE, 0, name))
            case _:
                pass
    return in_one_ledger(*items)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs_with_truncates(), st.lists(st.integers(1, 5), max_size=10))
def test_applying_a_streams_changes_gives_a_checkpoints_tables(log: Log, sizes: list[int]) -> None:
    assert applied(committed(log, sizes=sizes)) == folded(log)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "metadataServiceUri is '': give zk\\+hierarchical://"),
        ({"metadataServiceUri": URI}, "neither ledgers nor tablespace is set: give exactly one of ledgers .* and tablespace"),
        (
            {"metadataServiceUri": URI, "ledgers": "1", "tablespace": "t"},
            "ledgers and tablespace are both set: give exactly one of ledgers",
        ),
        ({"metadataServiceUri": URI, "ledgers": "9-5"}, "ledgers: '9-5' is not a ledger id or a range"),
        ({"metadataServiceUri": URI, "ledgers": "1" * 5000}, "ledgers: '1+' is not a ledger id or a range"),
        ({"metadataServiceUri": URI, "ledgers": "7,1-99999999999"}, "ledgers: up to '1-99999999999' these are more than 1000000 ledgers"),
        ({"metadataServiceUri": URI, "ledgers": "1-999999,1,2"}, "ledgers: up to '2' these are more than 1000000 ledgers; read them in"),
        ({"metadataServiceUri": URI, "tablespace": "t"}, "herdRoot is ''"),
        ({"metadataServiceUri": URI, "ledgers": "1", "afterLsn": "yesterday"}, "afterLsn: 'yesterday' is not an LSN"),
        ({"metadataServiceUri": URI, "ledgers": "1", "restartLsn": "1,1"}, "restartLsn is 1,1, and afterLsn is not set: give both"),
        ({"metadataServiceUri": URI, "ledgers": "1", "afterLsn": "1,1", "restartLsn": "1,2"}, "restartLsn is 1,2: .*; give at most .* 1,1"),
        ({"metadataServiceUri": URI, "ledgers": "1", "afterLsn": "2,1", "upToLsn": "1,1"}, "upToLsn is 1,1, which comes before"),
        ({"metadataServiceUri": URI, "ledgers": "1", "partitions": "0"}, "partitions is '0': give a number above 0"),
        ({"metadataServiceUri": URI, "ledgers": "1", "tasksAtOnce": "0"}, "tasksAtOnce is '0': give a number above 0"),
        ({"metadataServiceUri": URI, "ledgers": "1", "bytesPerSecondPerBookie": "fast"}, "bytesPerSecondPerBookie is 'fast'"),
        ({"metadataServiceUri": URI, "ledgers": "1", "verify": "maybe"}, "verify is 'maybe': give true or false"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_its_value_and_the_fix(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(options)


def test_another_bookie_is_asked_after_the_seconds_that_an_option_says() -> None:
    read = [parse_options({"metadataServiceUri": URI, "ledgers": "1", **given}).read for given in ({}, {"speculativeReadSeconds": "2"})]
    assert [settings.speculative_read_seconds for settings in read] == [0.5, 2.0]


@pytest.mark.parametrize(
    ("given", "tasks_at_once", "partitions", "rate"),
    [
        ({}, 2, 6, 500.0),
        ({}, None, 8, 125.0),
        ({"partitions": "4"}, 2, 4, 500.0),
        ({"partitions": "4"}, 100, 4, 250.0),
        ({"partitions": "4"}, None, 4, 250.0),
        ({"tasksAtOnce": "5"}, 2, 15, 200.0),
    ],
)
def test_a_bookies_budget_is_divided_among_the_tasks_that_read_from_it_at_once(
    given: dict[str, str], tasks_at_once: int | None, partitions: int, rate: float
) -> None:
    options = parse_options({"metadataServiceUri": URI, "ledgers": "1", "bytesPerSecondPerBookie": "1000", **given}, tasks_at_once)
    assert (options.zookeeper, options.ledgers_root) == ("z0:2181,z1:2181", "/bk/ledgers")
    assert (options.partitions, options.read.bytes_per_second_per_bookie) == (partitions, rate)


def test_there_are_three_partitions_for_each_task_that_the_session_runs_at_once(spark: SparkSession, log: PlayedLog) -> None:
    with_plain_ledgers(log, 99)
    spark.dataSource.register(knowing(PlayedSource, most_tasks_at_once(spark)))
    frame = read(spark, log, ledgers="1")
    assert frame.rdd.getNumPartitions() == 3 * spark.sparkContext.defaultParallelism
    assert lsns(frame.collect()) == [(1, entry_id) for entry_id in range(100)]
