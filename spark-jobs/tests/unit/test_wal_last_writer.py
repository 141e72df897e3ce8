"""The fold of whole batches, against a replay of single entries, and its behaviour without memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_placing import place
from test_wal_fold import Log, Tables, create, entry, folded, in_one_ledger, insert, logs, replayed, timeline_of
from test_wal_increment import starting_point

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntryType, encode_log_entry
from herdkeeper_jobs.wal import batch_place, last_writer
from herdkeeper_jobs.wal.batch_place import PLACED_SCHEMA, BatchPlacing
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.decode import LOG_SCHEMA, decode_batches
from herdkeeper_jobs.wal.last_writer import LastChanges, fold, from_blocks, to_blocks
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.spans import LogInconsistentError
from herdkeeper_jobs.wal.timeline import Timeline

_NAMES = ("table_index", "row_key", "row_value")


def row_changes(log: Log) -> pa.Table:
    """The row changes of a log, decoded."""
    payloads = {
        "ledger_id": [lsn.ledger_id for lsn, _ in log],
        "entry_id": [lsn.entry_id for lsn, _ in log],
        "payload": pa.array([encode_log_entry(item) for _, item in log], pa.binary()),
    }
    decoded = pa.Table.from_batches(decode_batches([pa.RecordBatch.from_pydict(payloads)]), schema=LOG_SCHEMA)
    return decoded.filter(pa.array([item.type in ROW_CHANGES for _, item in log], pa.bool_()))


def placed_one_by_one(changes: pa.Table, timeline: Timeline) -> list[dict[str, object]]:
    """The oracle: each change is placed alone."""
    found = []
    for row in changes.to_pylist():
        placement = place(timeline, _lsn(row), row["transaction_id"], row["table_name"])
        if placement is not None:
            found.append(
                {
                    "table_index": placement.table,
                    "row_key": row["row_key"],
                    "row_value": row["row_value"],
                    "deleted": row["type"] == LogEntryType.DELETE,
                    "applied_ledger": placement.applied.ledger_id,
                    "applied_entry": placement.applied.entry_id,
                    "ledger_id": row["ledger_id"],
                    "entry_id": row["entry_id"],
                }
            )
    return found


def _lsn(row: dict[str, int]) -> Lsn:
    return Lsn(row["ledger_id"], row["entry_id"])


def in_batches(changes: pa.Table, rows: int) -> list[pa.RecordBatch]:
    return changes.combine_chunks().to_batches(max_chunksize=rows)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.data())
def test_a_batch_is_placed_as_each_of_its_changes_is(log: Log, data: st.DataObject) -> None:
    start: StartingPoint | None = None
    if data.draw(st.booleans()):
        start = starting_point(log[: data.draw(st.integers(0, len(log)))])
    timeline = timeline_of(log, start)
    changes = row_changes(log)
    placing = BatchPlacing(timeline)
    placed = [row for batch in in_batches(changes, data.draw(st.integers(1, 60))) for row in placing.place(batch).to_pylist()]
    assert placed == placed_one_by_one(changes, timeline)


@pytest.mark.parametrize(
    ("log", "left"),
    [
        (
            in_one_ledger(
                create("t", "u"),
                *(entry(LogEntryType.BEGIN, number) for number in (1, 2)),
                insert("t", b"k", b"of the table that was dropped", 1),
                entry(LogEntryType.DROP_TABLE, 0, "t"),
                create("t", "v", 2),
                insert("t", b"l", b"of its maker", 2),
                *(entry(LogEntryType.COMMIT, number) for number in (1, 2)),
            ),
            {"v": {b"l": b"of its maker"}},
        ),
        (
            in_one_ledger(
                *(entry(LogEntryType.BEGIN, number) for number in (1, 2)),
                create("t", "u", 1),
                entry(LogEntryType.DROP_TABLE, 0, "t"),
                create("t", "v", 2),
                insert("t", b"l", b"of its maker", 2),
                entry(LogEntryType.ROLLBACK, 1),
                entry(LogEntryType.COMMIT, 2),
            ),
            {"v": {b"l": b"of its maker"}},
        ),
    ],
    ids=["a COMMIT before that of another one's table", "a ROLLBACK beside another one's table"],
)
def test_a_table_of_the_same_name_is_its_makers_alone(log: Log, left: Tables) -> None:
    """Random logs hardly have such transactions."""
    timeline, changes = timeline_of(log), row_changes(log)
    placed = [row for batch in in_batches(changes, 10) for row in BatchPlacing(timeline).place(batch).to_pylist()]
    assert placed == placed_one_by_one(changes, timeline)
    assert folded(log) == replayed(log) == left


@pytest.fixture(params=["passed on by Spark", "in files"])
def blocks(request: pytest.FixtureRequest, tmp_path: Path) -> Blocks:
    return Blocks(tmp_path if request.param == "in files" else None)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(log=logs(), data=st.data())
def test_folding_in_tasks_and_again_in_buckets_gives_what_a_replay_in_order_gives(blocks: Blocks, log: Log, data: st.DataObject) -> None:
    timeline = timeline_of(log)
    placing = BatchPlacing(timeline)
    batches = [placing.place(batch) for batch in in_batches(row_changes(log), data.draw(st.integers(1, 20)))]
    tasks: list[list[pa.RecordBatch]] = [[], [], []]
    for batch in batches:
        tasks[data.draw(st.integers(0, 2))].append(batch)
    buckets, held = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([1, 300, 1000, 1 << 20]))
    sent = [block for task in data.draw(st.permutations(tasks)) for block in to_blocks(task, buckets, blocks, held)]
    tables: Tables = {live.uuid: {} for live in timeline.tables}
    for bucket in range(buckets):
        mine = [block for block in sent if block.column("bucket")[0].as_py() == bucket]
        for batch in from_blocks(mine, blocks, held):
            for position, key, value in zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True):
                rows = tables[timeline.tables[position].uuid]
                assert key not in rows, "a key is in one bucket, and once"
                rows[key] = value
    assert tables == replayed(log) == folded(log)


@pytest.mark.parametrize(
    "log",
    [
        in_one_ledger(insert("t", b"k", b"v")),
        in_one_ledger(create("t", "u"), insert("t", b"a", b"v"), insert("t", b"k", b"v", 3)),
        in_one_ledger(
            create("t", "u"), entry(LogEntryType.BEGIN, 3), entry(LogEntryType.COMMIT, 3), insert("t", b"a", b""), insert("t", b"k", b"", 3)
        ),
    ],
)
def test_inconsistencies_are_named_as_one_by_one(log: Log) -> None:
    timeline, changes = timeline_of(log), row_changes(log)
    with pytest.raises(LogInconsistentError) as one_by_one:
        placed_one_by_one(changes, timeline)
    with pytest.raises(LogInconsistentError) as at_once:
        BatchPlacing(timeline).place(in_batches(changes, 10)[0])
    assert str(at_once.value) == str(one_by_one.value)


def as_text(key: int) -> bytes:
    return b"key %d" % key


def changes_of(keys: np.ndarray, first: int, form: Callable[[int], bytes] = as_text) -> pa.RecordBatch:
    """A change of each key, in the order of application."""
    rows = len(keys)
    own = np.arange(first, first + rows)
    columns = [
        pa.array(np.zeros(rows, np.int32)),
        pa.array([form(int(key)) for key in keys], pa.binary()),
        pa.array([b"value %d" % number for number in own], pa.binary()),
        pa.array(np.zeros(rows, np.bool_)),
        pa.array(np.ones(rows, np.int64)),
        pa.array(own),
        pa.array(np.ones(rows, np.int64)),
        pa.array(own),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED_SCHEMA)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_keys_that_do_not_fit_into_memory_go_to_files_which_are_gone_afterwards(scratch: Path) -> None:
    chance = np.random.default_rng(1)
    changes, last = LastChanges(held_bytes=20_000), {}
    for first in range(0, 20_000, 500):
        keys = chance.integers(0, 5_000, 500)
        last.update({b"key %d" % key: b"value %d" % number for number, key in enumerate(keys, start=first)})
        changes.add(changes_of(keys, first))
    assert list(scratch.glob("*/*.arrow"))
    parts = list(changes.take())
    assert len(parts) > 100, "files that don't fit either are parted again"
    assert max(part.nbytes for part in parts) <= 20_000
    found = [pair for part in parts for pair in zip(part["row_key"].to_pylist(), part["row_value"].to_pylist(), strict=True)]
    assert len(found) == len(last)
    assert dict(found) == last
    assert list(scratch.iterdir()) == []


def test_keys_that_repeat_stay_in_memory(scratch: Path) -> None:
    changes = LastChanges(held_bytes=50_000)
    for first in range(0, 50_000, 500):
        changes.add(changes_of(np.arange(first, first + 500) % 100, first))
    assert list(scratch.iterdir()) == []
    (part,) = changes.take()
    assert part.num_rows == 100


@pytest.mark.parametrize("form", [as_text, lambda key: key.to_bytes(4, "big"), lambda key: key.to_bytes(8, "big"), bytes])
def test_a_fold_keeps_the_last_one_of_each_key_in_the_order_of_application(form: Callable[[int], bytes]) -> None:
    later, earlier = changes_of(np.array([9, 1, 2, 1]), 9, form).slice(1), changes_of(np.array([2, 3]), 5, form)
    expected = [b"value 6", b"value 11", b"value 12"]
    assert fold(pa.Table.from_batches([later, earlier]))["row_value"].to_pylist() == expected
    assert fold(pa.Table.from_batches([later]))["row_value"].to_pylist() == expected[1:]


@pytest.mark.parametrize("size", [4, 8])
def test_keys_whose_lowest_bits_are_alike_are_folded_as_fast_as_others(size: int) -> None:
    keys = pa.array([number.to_bytes(size, "big") for number in range(100_000)], pa.binary())
    for seed in (last_writer._OWN_SEED, 0x3EFE0CC99EE6C41B, 0x4B984F4A51071AE6, 0, 1 << 63):
        hashes = last_writer._hashes_of(keys, seed)
        assert len(np.unique(hashes)) == 100_000
        assert len(np.unique(hashes & np.uint64(0xFFFF))) > 50_000, "Arrow groups numbers by their lowest bits"


def test_keys_of_two_lengths_with_one_hash_are_two_keys() -> None:
    seven = b"seven b"
    step = last_writer._OWN_SEED | 1
    eight = (int.from_bytes(seven, "little") ^ (7 * step ^ 8 * step) % (1 << 64)).to_bytes(8, "little")
    rows = pa.Table.from_batches([changes_of(np.arange(3), 0, [seven, eight, seven].__getitem__)])
    assert len(set(last_writer._hashes(rows).tolist())) == 1
    assert fold(rows).column("row_key").to_pylist() == [eight, seven]


def test_nobody_can_choose_keys_that_all_come_to_one_task(blocks: Blocks) -> None:
    """Without a secret each step of a hash can be undone, and its result be chosen. A difference of the highest bits needs no secret."""
    multiplier, step, word = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 1 << 64  # those of a hash that had no secret

    def mixed(number: int) -> int:
        product = number * multiplier % word
        return product ^ product >> 32

    words = [(first, mixed(16 * step % word ^ first)) for first in range(2_000)]
    words += [(first ^ 1 << 63, second ^ (1 << 63 | 1 << 31)) for first, second in words]
    words += [(first ^ (1 << 63 | 1 << 31), second ^ (1 << 63 | 1 << 31)) for first, second in words[:2_000]]
    chosen = [b"".join(part.to_bytes(8, "little") for part in parts) for parts in words]
    assert len(np.unique(last_writer._hashes(pa.table({"row_key": pa.array(chosen, pa.binary())})))) == len(chosen)
    sent = list(to_blocks([changes_of(np.arange(len(chosen)), 0, chosen.__getitem__)], 8, blocks))
    assert sorted(batch.column("bucket")[0].as_py() for batch in sent) == list(range(8))


def test_the_same_key_of_two_tables_is_two_keys() -> None:
    rows = changes_of(np.array([1, 1, 1]), 0)
    of_two = rows.set_column(0, "table_index", pa.array([0, 1, 0], pa.int32()))
    assert fold(pa.Table.from_batches([of_two]))["row_value"].to_pylist() == [b"value 1", b"value 2"]


@pytest.mark.parametrize("arrival", ["in order", "the last one first", "in any order"])
def test_keys_that_change_all_the_time_are_folded_however_their_changes_arrive(arrival: str) -> None:
    chance = np.random.default_rng(2)
    keys = np.where(chance.random(20_000) < 0.5, 7, chance.integers(0, 5_000, 20_000))
    placed = changes_of(keys, 0, lambda key: key.to_bytes(8, "big"))
    order = {"in order": np.arange(20_000), "the last one first": np.arange(20_000)[::-1], "in any order": chance.permutation(20_000)}
    arrived = placed.take(pa.array(order[arrival]))
    changes = LastChanges()
    for first in range(0, 20_000, 3_000):
        changes.add(arrived.slice(first, 3_000))
    (left,) = changes.take()
    found = dict(zip(left["row_key"].to_pylist(), left["row_value"].to_pylist(), strict=True))
    assert found == {key.to_bytes(8, "big"): b"value %d" % number for number, key in enumerate(keys.tolist())}
    assert left.num_rows == len(found)


def test_a_key_whose_last_change_is_a_delete_is_not_left() -> None:
    rows = changes_of(np.array([1, 2, 1, 2, 3]), 0)
    changes = LastChanges()
    changes.add(rows.set_column(3, "deleted", pa.array([True, False, False, True, True])))
    (left,) = changes.take()
    assert left["row_value"].to_pylist() == [b"value 2"]


@pytest.mark.parametrize("ids", [[5], [1, 2, 4, 5], [-3, 0, 2], [1, 2**40, 2**63 - 1]])
def test_an_id_has_the_line_of_its_rank_among_the_known_ids(ids: list[int]) -> None:
    asked = [*ids, 0, -1, 3, 6, 2**63 - 1, -(2**63)]
    lines = batch_place._Ids(reversed(ids)).lines(np.array(asked, np.int64))
    assert lines.tolist() == [ids.index(identity) if identity in ids else -1 for identity in asked]


def test_a_task_that_repeats_keys_sends_each_of_them_once(blocks: Blocks) -> None:
    repeated = [changes_of(np.arange(1000) % 10, first) for first in range(0, 5_000, 1000)]
    sent = list(to_blocks(repeated, 3, blocks))
    assert sum(rows.num_rows for rows in blocks.rows(sent)) == 10
    assert pa.Table.from_batches(from_blocks(sent, blocks)).num_rows == 10
