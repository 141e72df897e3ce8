"""Follows a tablespace's log and prints each committed change as a row of its table. Runs in a pod of the image herdkeeper/spark:0.1.0:

python3 change_data_capture.py 'zk+hierarchical://quickstart-zookeeper:2181/demo/bk/ledgers' /demo/db/herd flights /data/progress

The last argument is Spark's own checkpoint: keep it on a volume, and a program that starts again goes on where it stopped.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

from herdkeeper.formats.herddb_record import RowDecoder
from herdkeeper.formats.herddb_table import decode_table
from herdkeeper_jobs.datasource import BookKeeperDataSource

ROWS = ("INSERT", "UPDATE", "DELETE")
decoders: dict[str, RowDecoder] = {}


def show(batch: DataFrame, _: int) -> None:
    """One line per change. Definitions come in the same stream: a table's columns are those of its last CREATE or ALTER."""
    for change in batch.orderBy("commit_ledger_id", "commit_entry_id", "ledger_id", "entry_id").collect():
        name, at = change.table_name, f"{change.commit_ledger_id},{change.commit_entry_id}"
        if change.operation in ("CREATE_TABLE", "ALTER_TABLE"):
            table = decode_table(bytes(change.row_value))
            decoders[table.name] = RowDecoder(table)
        if change.operation not in ROWS:
            print(at, change.operation, name)
            continue
        columns = [column.name for column in decoders[name].table.columns]
        row = dict(zip(columns, decoders[name].decode(bytes(change.row_key), bytes(change.row_value)), strict=True))
        print(at, change.operation, name, row)


def main(metadata_service_uri: str, herd_root: str, tablespace: str, progress: str) -> None:
    """Runs until it is stopped."""
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    spark.dataSource.register(BookKeeperDataSource)
    changes = (
        spark.readStream.format("bookkeeper")
        .option("metadataServiceUri", metadata_service_uri)
        .option("herdRoot", herd_root)
        .option("tablespace", tablespace)
        .load()
    )
    changes.writeStream.foreachBatch(show).option("checkpointLocation", progress).trigger(
        processingTime="2 seconds"
    ).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:5])
