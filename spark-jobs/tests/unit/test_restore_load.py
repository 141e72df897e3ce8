"""Each chunk of a checkpoint is loaded exactly once, whatever is lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, cast

import object_store_server
import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_bookie import PATIENCE_SECONDS
from restore_situations import CHILD, CHILD_ROWS, PARENT, PARENT_ROWS, write_checkpoint

from herdkeeper.sql.errors import ConnectionLost, DuplicateKey, NotLeader, OutcomeUnknown, ServerError
from herdkeeper_jobs.errors import InvariantViolated, RestoreRetryable
from herdkeeper_jobs.restore.chunks import Chunk, RowGroup, row_groups, rows_per_chunk
from herdkeeper_jobs.restore.load import Batch, ChunkLoader, load_group
from herdkeeper_jobs.restore.session import Session
from herdkeeper_jobs.restore.source import open_source
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath

STATEMENT = "INSERT INTO `t` (`k`) VALUES (?)"
CHUNKS = [Chunk(f"file#0+{first}", 3) for first in (0, 3, 6)]


class Fault(Enum):
    """What happens to one attempt to commit a chunk."""

    NONE = "nothing"
    BEFORE_BEGIN = "the node does not lead any more"
    IN_THE_MIDDLE = "the connection breaks before COMMIT is sent: the transaction stays open"
    COMMIT_LOST = "COMMIT did not reach the log"
    ANSWER_LOST = "COMMIT is in the log, its answer is lost"
    ROLLBACK_LOST = "the ROLLBACK of what an earlier attempt left open does not arrive"


class PlayedTablespace:
    """Tables with HerdDB's transactions: they outlive connections, and lock their rows until they end."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.rows: list[object] = []
        self.marks: dict[str, int] = {}
        self.faults = list(faults)
        self.open: dict[int, tuple[dict[str, int], list[object]]] = {}
        self.begun = 0

    def session(self) -> Session:
        return cast(Session, PlayedSession(self))


class PlayedSession:
    """One connection after the other."""

    def __init__(self, tablespace: PlayedTablespace) -> None:
        self._tablespace = tablespace

    def connection(self) -> PlayedConnection:
        return PlayedConnection(self._tablespace, self._tablespace.faults.pop(0) if self._tablespace.faults else Fault.NONE)

    def close(self) -> None:
        return


class PlayedConnection:
    def __init__(self, tablespace: PlayedTablespace, fault: Fault) -> None:
        self._tablespace = tablespace
        self._fault = fault

    def rollback(self, transaction_id: int) -> None:
        if self._fault is Fault.ROLLBACK_LOST:
            raise ConnectionLost("reset by peer")
        if self._tablespace.open.pop(transaction_id, None) is None:
            raise ServerError("no such transaction")

    @contextmanager
    def transaction(self) -> Iterator[PlayedTransaction]:
        tablespace = self._tablespace
        if self._fault is Fault.BEFORE_BEGIN:
            raise NotLeader("not me")
        tablespace.begun += 1
        number = tablespace.begun
        staged: tuple[dict[str, int], list[object]] = ({}, [])
        tablespace.open[number] = staged
        try:
            yield PlayedTransaction(tablespace, number, staged, self._fault)
        except ConnectionLost:
            raise
        except BaseException:
            del tablespace.open[number]
            raise
        if self._fault is not Fault.COMMIT_LOST:
            del tablespace.open[number]
            tablespace.marks |= staged[0]
            tablespace.rows += staged[1]
        if self._fault in (Fault.COMMIT_LOST, Fault.ANSWER_LOST):
            raise OutcomeUnknown("no answer in time")


class PlayedTransaction:
    def __init__(self, tablespace: PlayedTablespace, number: int, staged: tuple[dict[str, int], list[object]], fault: Fault) -> None:
        self._tablespace = tablespace
        self._staged = staged
        self._fault = fault
        self.id = number

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        step, loaded, _ = parameters
        held = [marks for number, (marks, _) in self._tablespace.open.items() if number != self.id]
        assert not any(step in marks for marks in held), "this insert would wait for a lock for a quarter of an hour"
        if step in self._tablespace.marks:
            raise DuplicateKey("the mark is there")
        self._staged[0][step] = loaded
        return 1

    def execute_batch(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        assert sql == STATEMENT
        if any(row[0] in self._tablespace.rows for row in rows):
            raise DuplicateKey("a row is there")
        if self._fault is Fault.IN_THE_MIDDLE:
            self._staged[1].extend(row[0] for row in rows[:1])
            raise ConnectionLost("reset by peer")
        self._staged[1].extend(row[0] for row in rows)
        return [1] * len(rows)


def numbers_of(chunk: Chunk) -> range:
    """The numbers of its rows, by its name."""
    first = int(chunk.step.rpartition("+")[2])
    return range(first, first + chunk.rows)


def batches_of(chunk: Chunk) -> list[Batch]:
    return [Batch(STATEMENT, [[number] for number in numbers_of(chunk)])]


@given(st.lists(st.sampled_from(Fault), max_size=8), st.lists(st.sampled_from(Fault), max_size=8))
def test_every_chunk_is_there_exactly_once_whatever_is_lost_in_a_run_and_in_the_next_one(first: list[Fault], second: list[Fault]) -> None:
    tablespace = PlayedTablespace()
    committed = 0
    for faults in (first, second):
        tablespace.faults = list(faults)
        loader = ChunkLoader(tablespace.session())
        committed += sum(loader.load(chunk, batches_of(chunk)) for chunk in CHUNKS)
    assert sorted(cast(list[int], tablespace.rows)) == list(range(9))
    assert tablespace.marks == {chunk.step: chunk.rows for chunk in CHUNKS}
    assert tablespace.open == {}
    lost_answers = (first + second).count(Fault.ANSWER_LOST)
    assert committed >= 9 - 3 * lost_answers


def test_rows_that_somebody_else_wrote_are_not_taken_for_loaded_ones() -> None:
    tablespace = PlayedTablespace()
    tablespace.rows.append(1)
    with pytest.raises(InvariantViolated, match=r"file#0\+0 is not loaded, but its rows exist"):
        ChunkLoader(tablespace.session()).load(CHUNKS[0], batches_of(CHUNKS[0]))
    assert tablespace.marks == {}


def test_rows_that_violate_a_unique_index_are_reported_with_what_to_do() -> None:
    class Refusing(PlayedTransaction):
        def execute_batch(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[int]:
            raise DuplicateKey("herddb.model.UniqueIndexContraintViolationException: key 08, already exists in table t on UNIQUE index i")

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "PlayedTransaction", Refusing)
        with pytest.raises(InvariantViolated, match=r"file#0\+0 is not loaded, since a unique index .*another Checkpoint.*UNIQUE index i"):
            ChunkLoader(PlayedTablespace().session()).load(CHUNKS[0], batches_of(CHUNKS[0]))


def test_a_row_that_a_statement_did_not_change_is_not_taken_for_loaded() -> None:
    class Missing(PlayedTransaction):
        def execute_batch(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[int]:
            return [0, *super().execute_batch(sql, rows)[1:]]

    tablespace = PlayedTablespace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "PlayedTransaction", Missing)
        with pytest.raises(InvariantViolated, match=r"file#0\+0: 1 of 3 rows were not changed by INSERT INTO"):
            ChunkLoader(tablespace.session()).load(CHUNKS[0], batches_of(CHUNKS[0]))
    assert (tablespace.marks, tablespace.rows) == ({}, [])


def test_a_tablespace_that_nobody_leads_ends_the_run_and_names_the_chunk() -> None:
    tablespace = PlayedTablespace([Fault.BEFORE_BEGIN] * 100)
    with pytest.raises(RestoreRetryable, match=r"file#0\+0 could not be loaded in 10 attempts.*not me"):
        ChunkLoader(tablespace.session()).load(CHUNKS[0], batches_of(CHUNKS[0]))


@given(rows=st.integers(1, 5000), size=st.integers(1, 2000))
def test_the_chunks_of_a_row_group_are_all_of_its_rows_in_order(rows: int, size: int) -> None:
    chunks = list(RowGroup(0, "f", 2, rows, size).chunks())
    assert [row for chunk in chunks for row in numbers_of(chunk)] == list(range(rows))
    assert len({chunk.step for chunk in chunks}) == len(chunks)
    assert max(chunk.rows for chunk in chunks) <= size


@pytest.mark.parametrize(("rows", "size", "expected"), [(100, 100, 20), (100, 10_000, 10), (3, 10_000_000, 1)])
def test_large_rows_go_in_smaller_transactions(rows: int, size: int, expected: int) -> None:
    from herdkeeper_jobs.manifests.manifest import ManifestFile

    assert rows_per_chunk(ManifestFile(path="f", rows=rows, size=size, hash=""), 20, 1000) == expected


def test_the_footers_of_several_files_are_read_at_once_from_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(write_checkpoint(object_store_server.new_bucket(), {PARENT: PARENT_ROWS, CHILD: CHILD_ROWS}))
    expected = row_groups(enumerate(source.tables), source.folder, 20, 1 << 30)
    all_at_once, size = threading.Barrier(4), ObjectPath.size

    def together(path: ObjectPath) -> int:
        all_at_once.wait(PATIENCE_SECONDS)
        return size(path)

    monkeypatch.setattr(ObjectPath, "size", together)
    assert row_groups(enumerate(source.tables), source.folder, 20, 1 << 30) == expected
    assert [group.table for group in expected] == sorted(group.table for group in expected)


def test_a_row_group_is_loaded_in_chunks_without_those_that_are_done(place: StoredPath) -> None:
    source = open_source(write_checkpoint(place, {PARENT: PARENT_ROWS}))
    groups = row_groups(enumerate(source.tables), source.folder, 20, 1 << 30)
    assert sum(group.rows for group in groups) == len(PARENT_ROWS)
    done = frozenset(chunk.step for group in groups for chunk in list(group.chunks())[:1])
    tablespace = PlayedTablespace()
    loaded = sum(load_group(tablespace.session(), group, source.folder, STATEMENT, done) for group in groups)
    assert loaded == len(tablespace.rows) == len(PARENT_ROWS) - sum(min(20, group.rows) for group in groups)
