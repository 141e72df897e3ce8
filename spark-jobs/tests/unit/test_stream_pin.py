"""A stream's pin keeps unread log: set before the first read, moved with Spark's commits, for its maximum age."""

from __future__ import annotations

import itertools
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import BadVersionError, ConnectionLoss, NoAuthError, NoNodeError
from played_bookie import PlayedBookie, served
from played_log import NAMES, TABLESPACE, PlayedLog, PlayedSource, found
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from test_wal_fold import entry, insert

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.log_pin import LONGEST_AGE_SECONDS, StreamPin, decode_stream_pin, encode_stream_pin, stream_of, stream_pin
from herdkeeper_jobs.datasource.options import OptionError, PinOptions, parse_options
from herdkeeper_jobs.datasource.pin import HeldLog, remove_from
from herdkeeper_jobs.datasource.renewal import Renewal, RenewingReader, renewed_each
from herdkeeper_jobs.datasource.schema import CHANGES
from herdkeeper_jobs.datasource.stream import ChangeStreamReader
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, LogTruncatedError
from herdkeeper_jobs.log_source import LogSource
from herdkeeper_jobs.wal.lsn import Lsn

PATH = "/db/herd/logPins/0ab/stream-audit"
NOOP = entry(LogEntryType.NOOP, -1)
OPENED = [NOOP, insert("t", b"a", b"1"), entry(LogEntryType.BEGIN, 7), insert("t", b"b", b"2", 7), NOOP]
"""With an open transaction: it began at entry 2, and entry 3 is the last confirmed one."""
PINNED = {"tablespace": "demo", "herdRoot": "/db/herd", "pin": "audit"}
URI = "zk+hierarchical://z0:2181/bk/ledgers"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PlayedLog]:
    bookies = [PlayedBookie(most_in_batch=50) for _ in NAMES]
    with served(*bookies) as addresses:
        yield PlayedLog(bookies, addresses, tmp_path)


def stream(log: PlayedLog, **options: str) -> ChangeStreamReader:
    made = PlayedSource({**log.options, **PINNED, **options}).simpleStreamReader(CHANGES)
    assert isinstance(made, ChangeStreamReader)
    return made


def kept(log: PlayedLog) -> tuple[int, int] | None:
    """Where the kept log begins."""
    with found(log.file) as metadata:
        pin = metadata.told.get(PATH)
    return None if pin is None else decode_stream_pin(pin).lsn


def test_a_new_stream_keeps_the_log_before_it_reads_and_lets_go_only_what_spark_has_committed(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    log.write(9, [NOOP, entry(LogEntryType.COMMIT, 7), NOOP], closed=False)
    reader = stream(log, maxEntriesPerBatch="5")
    _, first = reader.read(reader.initialOffset())
    assert kept(log) == (-1, -1), "the whole log: nothing is committed yet"
    _, second = reader.read(first)
    reader.commit(first)
    assert kept(log) == (3, 2), "the transaction that is open there began before"
    reader.commit(second)
    assert kept(log) == (9, 1)


def test_a_stream_that_begins_behind_a_checkpoint_keeps_the_log_from_its_open_transactions_on(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    reader = stream(log, afterLsn="3,3", restartLsn="3,2")
    reader.read(reader.initialOffset())
    assert kept(log) == (3, 2)


@pytest.mark.parametrize(
    ("situation", "before", "start", "after"),
    [
        ("there is no pin yet", None, {"position": "3,1"}, (3, 1)),
        ("what Spark committed last was not told any more", (3, 0), {"position": "3,1"}, (3, 0)),
        ("the query goes back to an older place", (3, 3), {"position": "3,1"}, (3, 1)),
        ("it begins anew, from the beginning", (3, 3), {}, (-1, -1)),
        ("nobody can read the pin", b"?", {"position": "3,1"}, (3, 1)),
    ],
)
def test_a_query_that_starts_again_keeps_what_it_needs_and_what_was_kept(
    log: PlayedLog, situation: str, before: Any, start: dict[str, str], after: tuple[int, int]
) -> None:
    log.metadata.told = {} if before is None else {PATH: before if isinstance(before, bytes) else encode_stream_pin(StreamPin(before, 9))}
    log.write(3, OPENED, closed=True)
    stream(log).read(start)
    assert kept(log) == after, situation


def test_a_stream_without_a_pin_writes_nothing(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    reader = PlayedSource({**log.options, "tablespace": "demo", "herdRoot": "/db/herd"}).simpleStreamReader(CHANGES)
    _, end = reader.read(reader.initialOffset())
    reader.commit(end)
    with found(log.file) as metadata:
        assert metadata.told == {}


def test_a_batch_repeated_elsewhere_moves_no_pin(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    reader = pickle.loads(pickle.dumps(stream(log)))
    list(reader.readBetweenOffsets({}, {"position": "3,2"}))
    assert kept(log) is None


def source(client: Any) -> LogSource:
    catalog: Any = type("Catalog", (), {"client": client})
    return LogSource(catalog, "/db/herd", TABLESPACE)


class Znodes:
    """ZooKeeper with a count of writes, which may fail."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.writes = 0
        self.failure: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        """Runs between an answer and the next request, as other clients would."""

    def get(self, path: str) -> tuple[bytes, SimpleNamespace]:
        if path not in self._asked().data:
            raise NoNodeError
        found = self.data[path], SimpleNamespace(version=self.writes)
        self.meanwhile()
        return found

    def set(self, path: str, data: bytes, version: int = -1) -> None:
        if path not in self._asked().data:
            raise NoNodeError
        if version not in (-1, self.writes):
            raise BadVersionError
        self.data[path] = data
        self.writes += 1

    def delete(self, path: str) -> None:
        del self._asked().data[path]

    def _asked(self) -> Znodes:
        if self.failure is not None:
            raise self.failure
        return self


def test_a_pin_moves_at_once_to_another_ledger_and_seldom_within_one() -> None:
    seconds, znodes = [100.0], Znodes()
    znodes.data[PATH] = encode_stream_pin(StreamPin((3, 1), 60))
    held = HeldLog(PinOptions("audit", 60), lambda: seconds[0])
    held.begin(source(znodes), Lsn(3, 1))
    held.begin(source(znodes), Lsn(3, 1))
    assert znodes.writes == 1
    assert (held.is_due(Lsn(3, 9)), held.is_due(Lsn(4, 0))) == (False, True)
    seconds[0] += 30
    assert held.is_due(Lsn(3, 9))
    held.keep(source(znodes), Lsn(3, 9))
    assert json.loads(znodes.data[PATH]) == {"ledgerId": 3, "entryId": 9, "maxAgeSeconds": 60}
    assert not held.is_due(Lsn(3, 10))


@pytest.mark.parametrize(("max_age_seconds", "each"), [(72 * 3600, 30.0), (120, 30.0), (60, 15.0), (1, 0.25)])
def test_a_pin_is_renewed_each_half_minute_or_four_times_in_an_age_that_is_short(max_age_seconds: int, each: float) -> None:
    assert renewed_each(max_age_seconds) == each


def test_a_pin_is_renewed_as_it_is_and_not_as_this_process_knows_it() -> None:
    znodes = Znodes()
    znodes.data[PATH] = encode_stream_pin(StreamPin((3, 1), 60))
    held = HeldLog(PinOptions("audit", 60))
    held.begin(source(znodes), Lsn(3, 1))
    held.keep(source(znodes), Lsn(9, 4))
    begun_anew = znodes.data[PATH] = encode_stream_pin(StreamPin((5, 0), 99))
    before = znodes.writes
    held.renew(source(znodes))
    assert (znodes.data[PATH], znodes.writes) == (begun_anew, before + 1)


def test_a_renewal_undoes_no_move_that_comes_in_between_and_makes_no_pin() -> None:
    znodes = Znodes()
    znodes.data[PATH] = encode_stream_pin(StreamPin((3, 1), 60))
    moved = encode_stream_pin(StreamPin((9, 4), 60))
    held = HeldLog(PinOptions("audit", 60))
    znodes.meanwhile = lambda: znodes.set(PATH, moved)
    held.renew(source(znodes))
    assert (znodes.data[PATH], znodes.writes) == (moved, 1)
    znodes.meanwhile = znodes.data.clear
    held.renew(source(znodes))
    held.renew(source(znodes))
    assert znodes.data == {}, "it was removed: whoever does that need not stop the query first"


@pytest.mark.parametrize(("failure", "raised"), [(ConnectionLoss(), CheckpointRetryable), (NoAuthError(), CheckpointRefused)])
def test_a_renewal_that_fails_says_so(failure: Exception, raised: type[Exception]) -> None:
    znodes = Znodes()
    znodes.failure = failure
    with pytest.raises(raised, match=PATH):
        HeldLog(PinOptions("audit", 60)).renew(source(znodes))


def test_renewals_go_on_after_one_that_failed_until_they_are_ended() -> None:
    begun: Queue[int] = Queue()
    numbers = itertools.count()

    def renew() -> None:
        begun.put(number := next(numbers))
        if number == 1:
            raise CheckpointRetryable("ZooKeeper did not answer")

    renewal = Renewal(renew, 0.01)
    renewal.start()
    renewal.start()
    assert [begun.get(timeout=60) for _ in range(4)] == [0, 1, 2, 3]
    assert renewal.end()
    renewal.start()
    assert renewal.end(), "what has ended does not begin again"


def test_a_renewal_that_never_started_can_be_ended() -> None:
    assert Renewal(lambda: None, 0.01).end()


def test_an_end_does_not_wait_for_a_silent_zookeeper() -> None:
    asked, answers = threading.Event(), threading.Event()

    def renew() -> None:
        asked.set()
        answers.wait()

    renewal = Renewal(renew, 0.01, patience_seconds=0.01)
    renewal.start()
    assert asked.wait(60)
    assert not renewal.end()
    answers.set()


def test_a_batch_that_is_repeated_after_a_restart_keeps_the_log_before_it_is_read(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    reader = PlayedSource({**log.options, **PINNED}).streamReader(CHANGES)
    assert kept(log) is None
    reader.partitions({"position": "3,1"}, {"position": "3,3", "restart": "3,2"})
    assert kept(log) == (3, 1)
    reader.stop()


def refused_calls(log: PlayedLog, offset: dict[str, str]) -> list[Callable[[], object]]:
    """What Spark calls on a query that was started again, or runs on, with the offset of its last batch."""
    made = PlayedSource({**log.options, **PINNED}).streamReader(CHANGES)
    return [
        lambda: made.latestOffset(offset, made.getDefaultReadLimit()),
        lambda: made.partitions({}, offset),
        lambda: made.partitions(offset, offset),
        lambda: made.commit(offset),
    ]


def test_a_query_sets_no_pin_in_another_log_of_the_same_name(log: PlayedLog) -> None:
    """It is refused there. Its pin would keep a log that it never reads, and the tablespace's status would tell of it."""
    log.write(3, OPENED, closed=True)
    _, offset = PlayedSource({**log.options, "tablespace": "demo", "herdRoot": "/db/herd"}).simpleStreamReader(CHANGES).read({})
    log.metadata.instance_id = "cluster-2"
    log.save()
    for call in refused_calls(log, offset):
        with pytest.raises(CheckpointRefused, match="has the log cluster-2/0ab"):
            call()
        assert kept(log) is None


def test_a_query_that_comes_too_late_sets_no_pin(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    log.write(4, OPENED, closed=True)
    log.drop(3)
    for call in refused_calls(log, {"position": "3,1"})[:3]:
        with pytest.raises(LogTruncatedError, match="it begins with ledger 4 now"):
            call()
        assert kept(log) is None


def test_tasks_read_and_renew_nothing(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    reader = pickle.loads(pickle.dumps(PlayedSource({**log.options, **PINNED}).streamReader(CHANGES)))
    assert isinstance(reader, RenewingReader)
    (partition,) = reader.partitions({}, {"position": "3,3"})
    assert sum(batch.num_rows for batch in reader.read(partition)) == 1
    assert (kept(log), reader.renews) == (None, False)
    reader.stop()


def test_a_reader_renews_from_its_first_batch_until_the_query_ends(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    made = PlayedSource({**log.options, **PINNED}).streamReader(CHANGES)
    assert isinstance(made, RenewingReader)
    assert not made.renews
    made.latestOffset({}, made.getDefaultReadLimit())
    assert made.renews
    made.stop()
    assert not made.renews


def test_a_zookeeper_that_is_silent_stops_no_query_and_one_that_refuses_does(log: PlayedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(3, OPENED, closed=True)
    znodes = Znodes()
    monkeypatch.setattr("played_log.PlayedSession.client", property(lambda opened: _Either(opened, znodes)))
    reader = stream(log)
    znodes.failure = ConnectionLoss()
    assert reader.read({})[1] == {}, "nothing is read that could be released meanwhile"
    znodes.failure = NoAuthError()
    with pytest.raises(CheckpointRefused, match="ZooKeeper refuses /db/herd/logPins/0ab/stream-audit: a stream with a pin needs the right"):
        reader.read({})
    znodes.failure = None
    znodes.data[PATH] = b"?"
    _, end = reader.read({})
    znodes.failure = ConnectionLoss()
    reader.commit(end)
    assert decode_stream_pin(znodes.data[PATH]).lsn == (-1, -1), "more is kept than is needed, until the next time"


class _Either:
    """Pins are in one ZooKeeper, everything else in another."""

    def __init__(self, metadata: Any, pins: Znodes) -> None:
        self._metadata, self._pins = metadata, pins
        self.connected = True

    def get(self, path: str) -> Any:
        return self._pins.get(path) if "/logPins/" in path else self._metadata.get(path)

    def set(self, path: str, data: bytes) -> None:
        self._pins.set(path, data)


def test_a_pin_of_a_stream_that_is_over_is_removed_once(log: PlayedLog) -> None:
    log.write(3, OPENED, closed=True)
    stream(log).read({})
    with found(log.file) as metadata:
        made: Any = metadata
        assert remove_from(LogSource(made, "/db/herd", TABLESPACE), "audit")
        assert not remove_from(LogSource(made, "/db/herd", TABLESPACE), "audit")
    assert kept(log) is None


def test_spark_itself_keeps_the_log_from_what_it_has_committed_last(spark: SparkSession, log: PlayedLog, tmp_path: Path) -> None:
    spark.dataSource.register(PlayedSource)
    log.write(3, OPENED, closed=True)
    log.write(9, [NOOP, entry(LogEntryType.COMMIT, 7), NOOP], closed=False)

    def run() -> list[str]:
        changes = spark.readStream.format("played").options(**log.options, **PINNED, maxEntriesPerBatch="3").load()
        rows: list[str] = []

        def take(batch: Any, _: int) -> None:
            rows.extend(bytes(row["row_key"]).decode() for row in batch.collect())

        query = changes.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "progress"))
        query.trigger(availableNow=True).start().awaitTermination()
        return rows

    assert run() == ["a", "b"]
    trails = kept(log)
    assert trails is not None
    assert trails <= (9, 1), "never ahead of what Spark has committed"
    assert trails > (-1, -1)
    log.metadata.told[PATH] = encode_stream_pin(StreamPin(trails, 9))
    log.write(9, [NOOP, entry(LogEntryType.COMMIT, 7), NOOP, insert("t", b"c", b"3"), NOOP], closed=False)
    assert run() == ["c"]


def test_spark_itself_keeps_the_log_for_a_batch_that_it_repeats(spark: SparkSession, log: PlayedLog, tmp_path: Path) -> None:
    spark.dataSource.register(PlayedSource)
    log.write(3, OPENED, closed=True)
    seen: list[tuple[int, int] | None] = []

    def run(take: Callable[[Any, int], None]) -> None:
        changes = spark.readStream.format("played").options(**log.options, **PINNED).load()
        query = changes.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "progress"))
        query.trigger(availableNow=True).start().awaitTermination()

    def fail(batch: Any, _: int) -> None:
        batch.collect()
        raise RuntimeError("the sink is full")

    with pytest.raises(StreamingQueryException, match="the sink is full"):
        run(fail)
    log.save()
    assert kept(log) is None, "as if the pin had been added to the query only now"
    run(lambda batch, _: seen.append(kept(log)))
    assert seen == [(-1, -1)], "the batch is repeated, and the log is kept for it from its begin on"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ledgers": "1", "pin": "audit"}, "pin is 'audit': it keeps a tablespace's log"),
        ({**PINNED, "pin": "-a"}, "pin: '-a' can't name a pin: give letters"),
        ({**PINNED, "pin": "a/b"}, "pin: 'a/b' can't name a pin"),
        ({**PINNED, "pin": ""}, "pin: '' can't name a pin"),
        ({**PINNED, "pinMaxAgeHours": "0"}, "pinMaxAgeHours is '0': give a number above 0"),
        ({**PINNED, "pinMaxAgeHours": "721"}, "pinMaxAgeHours is '721': give 720 at most"),
        ({"tablespace": "demo", "herdRoot": "/h", "pinMaxAgeHours": "3"}, "pinMaxAgeHours is '3', but there is no pin"),
    ],
)
def test_an_invalid_pin_is_named_with_the_fix(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options({"metadataServiceUri": URI, **options})


def test_a_pin_counts_for_three_days_by_default() -> None:
    ages = [parse_options({"metadataServiceUri": URI, **PINNED, **more}).pin for more in ({}, {"pinMaxAgeHours": "0.5"})]
    assert ages == [PinOptions("audit", 72 * 3600), PinOptions("audit", 1800)]


def test_a_batch_that_is_read_at_once_has_no_pin(log: PlayedLog) -> None:
    with pytest.raises(OptionError, match="pin is 'audit': a batch is read at once"):
        PlayedSource({**log.options, **PINNED}).reader(CHANGES)


def test_a_stream_s_pin_is_read_as_it_was_written() -> None:
    for age in (3600, LONGEST_AGE_SECONDS):
        pin = StreamPin((5, 90), age)
        assert decode_stream_pin(encode_stream_pin(pin)) == pin
    assert (stream_pin("audit"), stream_of("stream-audit"), stream_of("checkpoint")) == ("stream-audit", "audit", None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"?",
        b"[]",
        b'{"ledgerId":1,"entryId":2}',
        b'{"ledgerId":1,"entryId":2,"maxAgeSeconds":0}',
        b'{"ledgerId":1,"entryId":2,"maxAgeSeconds":315360001}',
        b'{"ledgerId":1,"entryId":2,"maxAgeSeconds":1000000000000}',
        b'{"ledgerId":1,"entryId":2,"maxAgeSeconds":9223372036854775807}',
        b'{"ledgerId":1,"entryId":"2","maxAgeSeconds":3}',
    ],
)
def test_an_invalid_stream_pin_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedDataError, match="log pin"):
        decode_stream_pin(data)
