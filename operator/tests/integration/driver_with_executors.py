"""A Spark driver that makes its executors as a job's does. A separate program, since a process has only one Spark.

Arguments: the API server's address, its certificate, the driver's token. It prints a line when it runs, and ends with its input.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, spark_configuration


def main() -> None:
    """Starts the driver, and stops it in the end."""
    address, certificate, token = sys.argv[1:]
    settings = SparkSettings(master=f"k8s://{address}", executors=2, executor_image="no-image")
    configuration = spark_configuration(settings, os.environ) | {
        "spark.kubernetes.authenticate.caCertFile": certificate,
        "spark.kubernetes.authenticate.oauthToken": token,
    }
    builder = SparkSession.builder.appName("driver").master(settings.master)
    for key, value in configuration.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print("it runs", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
