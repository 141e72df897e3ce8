"""Follows a tablespace's log and prints each committed change as a row of its table. Runs in a pod of the image herdkeeper/spark:0.1.0:

python3 change_data_capture.py 'zk+hierarchical://quickstart-zookeeper:2181/demo/bk/ledgers' /demo/db/herd flights /data/progress

The last argument is Spark's own checkpoint: keep it on a volume, and a program that starts again goes on where it stopped. Columns are
those of a table's last definition before the change, which may lie far behind: so each start goes over the log for definitions, once.
"""

import sys
from bisect import bisect_right

from pyspark.sql import DataFrame, Row, SparkSession

from herdkeeper.formats.herddb_record import RowDecoder
from herdkeeper.formats.herddb_table import decode_table
from herdkeeper_jobs.datasource import register

ROWS = ("INSERT", "UPDATE", "DELETE")
DEFINITIONS = ("CREATE_TABLE", "ALTER_TABLE")
ORDER = ("commit_ledger_id", "commit_entry_id", "ledger_id", "entry_id")
Place = tuple[int, ...]
decoders: dict[str, list[tuple[Place, RowDecoder]]] = {}


def place(change: Row) -> Place:
    """Where it stands among all changes."""
    return tuple(change[name] for name in ORDER)


def learn(changes: DataFrame) -> None:
    """Takes the definitions of tables among some changes. What was learned before, in a batch that is repeated too, stays as it is."""
    for change in changes.where(changes.operation.isin(*DEFINITIONS)).orderBy(*ORDER).collect():
        table = decode_table(bytes(change.row_value))
        known = decoders.setdefault(table.name, [])
        if not known or known[-1][0] < place(change):
            known.append((place(change), RowDecoder(table)))


def show(batch: DataFrame, _: int) -> None:
    """One line per change."""
    learn(batch)
    for change in batch.orderBy(*ORDER).collect():
        name, at = change.table_name, f"{change.commit_ledger_id},{change.commit_entry_id}"
        if change.operation not in ROWS:
            print(at, change.operation, name)
            continue
        known = decoders[name]
        _, decoder = known[bisect_right(known, place(change), key=lambda definition: definition[0]) - 1]
        columns = [column.name for column in decoder.table.columns]
        row = dict(zip(columns, decoder.decode(bytes(change.row_key), bytes(change.row_value)), strict=True))
        print(at, change.operation, name, row)


def main(metadata_service_uri: str, herd_root: str, tablespace: str, progress: str) -> None:
    """Runs until it is stopped."""
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    register(spark)
    log = {"metadataServiceUri": metadata_service_uri, "herdRoot": herd_root, "tablespace": tablespace}
    learn(spark.read.format("bookkeeper").options(**log).load())
    changes = spark.readStream.format("bookkeeper").options(**log).load()
    changes.writeStream.foreachBatch(show).option("checkpointLocation", progress).trigger(
        processingTime="2 seconds"
    ).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:5])
