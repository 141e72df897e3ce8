"""Decodes a log into Arrow, a batch at once and one by one. Prints entries per second of both.

The log is a loader's: nine of ten entries are rows of 40 to 200 bytes, the others begin and end transactions.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType, encode_log_entry
from herdkeeper_jobs.wal.decode import LOG_SCHEMA, decode_batches, decode_one_by_one

ENTRIES, BATCH, ROUNDS = 200_000, 10_000, 5


def log() -> list[pa.RecordBatch]:
    """Batches like those of a reader of bookies."""
    chance = random.Random(7)  # noqa: S311 - the same log each time
    payloads = []
    for number in range(ENTRIES):
        kind = LogEntryType.INSERT if number % 10 else chance.choice([LogEntryType.BEGIN, LogEntryType.COMMIT])
        row = ("flights", number.to_bytes(8, "big"), chance.randbytes(chance.randint(40, 200))) if number % 10 else ("", b"", b"")
        payloads.append(encode_log_entry(LogEntry(1_700_000_000_000 + number, kind, 7, *row)))
    numbers = list(range(ENTRIES))
    table = pa.table({"ledger_id": pa.array([3] * ENTRIES), "entry_id": pa.array(numbers), "payload": pa.array(payloads, pa.binary())})
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=BATCH)
    return batches


def one_by_one(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The peer."""
    for batch in batches:
        columns = [batch.column("ledger_id"), batch.column("entry_id"), *decode_one_by_one(batch)]
        yield pa.RecordBatch.from_arrays(columns, schema=LOG_SCHEMA)


def seconds(decode: Callable[[list[pa.RecordBatch]], Iterator[pa.RecordBatch]], batches: list[pa.RecordBatch]) -> float:
    """CPU seconds of this process, the median of some rounds, so that other work on the machine matters little."""
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in decode(batches):
            pass
        spent.append(time.process_time() - begun)
    return statistics.median(spent)


def main() -> None:
    """Compares the results, then the times."""
    batches = log()
    if pa.Table.from_batches(decode_batches(batches)) != pa.Table.from_batches(one_by_one(batches)):
        raise SystemExit("both decoders must give the same")
    slow, fast = seconds(one_by_one, batches), seconds(decode_batches, batches)
    print(f"one by one      {ENTRIES / slow:12,.0f} entries/s of CPU time")
    print(f"batch at once   {ENTRIES / fast:12,.0f} entries/s of CPU time, {slow / fast:.1f} times as many (target: 5)")


if __name__ == "__main__":
    main()
