"""Archives the Java classes that Spark needs to start and to run tasks, parsed and verified: a JVM maps them into its memory, instead of
reading and checking ten thousand of them each time.

Usage: archive_classes.py FILE

A JVM takes the archive only with the Java that made it and a class path that begins with the same jars in the same order, unchanged since
(spark_session.py sees to that for drivers, entrypoint.sh for executors); else it starts as it would without one, and -Xshare:on tells why.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession, functions

JARS = Path(pyspark.__file__).parent / "jars"
CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def name_classes(found: Path) -> None:
    """Writes the names of all classes that a session loads which does what the jobs do, in the form in which Java reads them."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraJavaOptions", f"-XX:DumpLoadedClassList={found}")
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    shared = session.sparkContext.broadcast(1)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = pa.array(range(batch.num_rows), pa.int32())
            yield pa.RecordBatch.from_arrays([numbers, pa.array([bytes([shared.value])] * batch.num_rows)], ["number", "block"])

    def made(tasks: int) -> DataFrame:
        return session.range(0, tasks, 1, tasks).mapInArrow(work, "number int, block binary")

    made(4).collect()
    made(4).toArrow()
    made(2).repartitionById(4, functions.col("number")).mapInArrow(work, "number int, block binary").collect()
    made(2).unionByName(made(2).persist()).groupBy("number").agg(functions.max("block")).collect()
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def archive(names: Path, file: Path) -> None:
    """Loads the classes once more, and writes what became of them. Ends the process with Java's words when that fails."""
    class_path = ":".join(map(str, sorted(JARS.glob("*.jar"))))
    # Of the collectors only this one can write the archive's objects; any of them reads them.
    files = [f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={file}"]
    command = ["java", "-Xshare:dump", "-XX:+UseG1GC", *files, "-Xlog:disable", "-Xlog:all=error", "-cp", class_path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode or not file.exists():
        raise SystemExit(f"{file} could not be made:\n{done.stdout}")


def main() -> None:
    """Makes the archive."""
    file = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names"
        name_classes(names)
        archive(names, file)


if __name__ == "__main__":
    main()
