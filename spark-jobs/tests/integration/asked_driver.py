"""A driver with the settings of a job with executors, asked at its port for an endpoint as executors ask. A separate program, since a
process has only one Spark.

Prints as JSON, by who asks, the address that the endpoint told, or why there is none. Its log is that of the image.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import AUTHENTICATED, SparkSettings, spark_configuration

ENDPOINT = "BlockManagerMaster"
LOGGING = Path(__file__).resolve().parents[3] / "images/spark/log4j2.properties"


def ask(jvm: Any, port: int, settings: dict[str, str]) -> str:
    """Looks the endpoint up over TCP, with these settings."""
    conf = jvm.org.apache.spark.SparkConf(False)
    for key, value in {"spark.rpc.lookupTimeout": "20s", "spark.rpc.askTimeout": "20s", **settings}.items():
        conf.set(key, value)
    options = jvm.java.lang.Class.forName("org.apache.spark.internal.config.package$").getField("MODULE$").get(None)
    secret_file = options.AUTH_SECRET_FILE()
    manager = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), secret_file)
    client = jvm.org.apache.spark.rpc.RpcEnv.create("stranger", "127.0.0.1", -1, conf, manager, True)
    try:
        found = client.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port), ENDPOINT)
        return str(found.address().toString())
    except Py4JJavaError as error:
        words, cause = [], error.java_exception
        while cause is not None:
            words.append(str(cause.toString())[:200])
            cause = cause.getCause()
        return f"refused: {' / '.join(words)}"
    finally:
        client.shutdown()


def strangers(port: int, secret: str) -> dict[str, str]:
    """Asks from this process, whose JVM does not know the driver's secret by itself."""
    own = {**AUTHENTICATED, "spark.authenticate.secret": secret}
    asked = {
        "an executor of the job": own,
        "somebody without a secret": {},
        "somebody with the secret of another job": {**own, "spark.authenticate.secret": secrets.token_hex(32)},
        "somebody with the older handshake": {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(32)},
    }
    jvm = launch_gateway().jvm  # type: ignore[no-untyped-call]  # PySpark has no types for it
    return {who: ask(jvm, port, settings) for who, settings in asked.items()}


def main() -> None:
    """Starts a driver, and asks it from another process."""
    if len(sys.argv) > 1:
        json.dump(strangers(int(sys.argv[1]), sys.argv[2]), sys.stdout)
        return
    builder = SparkSession.builder.master("local[1]")
    configuration = spark_configuration(SparkSettings(), {}) | AUTHENTICATED
    configuration["spark.driver.extraJavaOptions"] += f" -Dlog4j2.configurationFile={LOGGING}"
    for key, value in configuration.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    port = spark.sparkContext.getConf().get("spark.driver.port") or ""
    jvm: Any = spark.sparkContext._jvm
    known = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getCredentials()
    secret = bytes(known.getSecretKey(jvm.org.apache.hadoop.io.Text("sparkCookie"))).decode()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")}
    subprocess.run([sys.executable, __file__, port, secret], env=environment, check=True, timeout=240)
    spark.stop()


if __name__ == "__main__":
    main()
