"""A program of Spark that writes a DataFrame to a table and reads it back, by HerdDB's JDBC driver:

mvn -f java package
spark-submit --packages org.herddb:herddb-jdbc:0.29.0 --jars java/target/client/client.jar spark_jdbc.py
"""

import os

from pyspark.sql import SparkSession


def main() -> None:
    """Makes a table with a key, appends to it, and reads it in two parts."""
    spark = SparkSession.builder.getOrCreate()
    jvm = spark._jvm
    jvm.org.apache.spark.sql.jdbc.JdbcDialects.registerDialect(jvm.HerdDBDialect())  # of client.jar
    found = {name: os.environ[f"HERDDB_{name}"] for name in ("url", "user", "password", "database")}
    table = f"{found.pop('database')}.landings"

    properties = jvm.java.util.Properties()
    properties.put("user", found["user"])
    properties.put("password", found["password"])
    connection = jvm.herddb.jdbc.Driver().connect(found["url"], properties)
    columns = "id long PRIMARY KEY, flight string, hours double, landed timestamp"  # a table that Spark makes has no key
    connection.createStatement().executeUpdate(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
    connection.close()

    jdbc = {
        **found,
        "driver": "herddb.jdbc.Driver",
        "dbtable": table,
        "batchsize": "50",
        "fetchsize": "1000",
        "isolationLevel": "READ_COMMITTED",
    }
    landed = "timestamp'2026-01-02 08:30:00Z' + make_interval(0, 0, 0, 0, cast(id AS int)) AS landed"
    rows = spark.range(0, 1000, 1, 2).selectExpr("id", "concat('UA', id) AS flight", "id * 0.5D AS hours", landed)
    rows.write.format("jdbc").options(**jdbc).mode("append").save()

    parts = {"partitionColumn": "id", "lowerBound": "0", "upperBound": "1000", "numPartitions": "2"}
    types = {"customSchema": "id bigint, hours double, landed timestamp"}  # every other column is text
    read = spark.read.format("jdbc").options(**jdbc, **parts, **types).load()
    print(read.count(), read.agg({"hours": "sum"}).first()[0])
    late = read.where("landed >= timestamp'2026-01-02 08:30:00Z' + interval 997 hours AND flight NOT IN ('UA998')")
    print(sorted(row.flight for row in late.collect()))


if __name__ == "__main__":
    main()
