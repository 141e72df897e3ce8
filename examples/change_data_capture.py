"""Follows a tablespace's log and prints each committed change as a row of its table. Runs in a pod of the image herdkeeper/spark:0.2.0:

python3 change_data_capture.py 'zk+hierarchical://zk-zookeeper.demo.svc:2281/demo/bk/ledgers' /demo/db/herd flights /data/progress

IDENTITY_FOLDER names the folder of the certificate that it shows, as change-data-capture.yaml mounts it; in plain text the port is 2181.
The last argument is Spark's own checkpoint: keep it on a volume, and a program that starts again goes on where it stopped. The tables'
definitions, which the stream gives only once, are kept in the same folder, as they are behind each batch.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.table import decode_table
from herdkeeper_jobs.datasource import register

ROWS = ("INSERT", "UPDATE", "DELETE")


def show(batch: DataFrame, number: int, folder: Path) -> None:
    """One line per change: a table's columns are those of its last CREATE or ALTER. A batch that is repeated begins as it did."""
    before, behind = (folder / f"definitions-{one}.json" for one in (number - 1, number))
    definitions: dict[str, str] = json.loads(before.read_text()) if before.exists() else {}
    decoders = {name: RowDecoder(decode_table(bytes.fromhex(definition))) for name, definition in definitions.items()}
    for change in batch.orderBy("commit_ledger_id", "commit_entry_id", "ledger_id", "entry_id").collect():
        name, at = change.table_name, f"{change.commit_ledger_id},{change.commit_entry_id}"
        if change.operation in ("CREATE_TABLE", "ALTER_TABLE"):
            table = decode_table(bytes(change.row_value))
            decoders[table.name] = RowDecoder(table)
            definitions[table.name] = bytes(change.row_value).hex()
        if change.operation not in ROWS:
            print(at, change.operation, name)
            continue
        columns = [column.name for column in decoders[name].table.columns]
        row = dict(zip(columns, decoders[name].decode(bytes(change.row_key), bytes(change.row_value)), strict=True))
        print(at, change.operation, name, row)
    # whole or not at all, and before Spark has the batch committed: behind that nobody gives these definitions again
    written = behind.with_suffix(".new")
    written.write_text(json.dumps(definitions))
    written.replace(behind)
    (folder / f"definitions-{number - 2}.json").unlink(missing_ok=True)


def follow(changes: DataFrame, progress: str) -> DataStreamWriter:
    """The query, ready to start."""
    folder = Path(progress)
    return changes.writeStream.foreachBatch(lambda batch, number: show(batch, number, folder)).option("checkpointLocation", progress)


def main(metadata_service_uri: str, herd_root: str, tablespace: str, progress: str) -> None:
    """Runs until it is stopped."""
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    register(spark)
    log = {"metadataServiceUri": metadata_service_uri, "herdRoot": herd_root, "tablespace": tablespace}
    changes = spark.readStream.format("bookkeeper").options(**log).load()
    follow(changes, progress).trigger(processingTime="2 seconds").start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:5])
