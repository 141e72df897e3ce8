#!/usr/bin/env bash
# Runs a command in the project's environment: its Python first on PATH, the packages of this checkout importable, Java for Spark.
# Usage: run.sh COMMAND…
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
bin=$("$here/python.sh")
JAVA_HOME=$("$here/java.sh")
export JAVA_HOME HERDKEEPER_CACHE=$cache
export PATH=$bin:$JAVA_HOME/bin:$PATH PYTHONPATH=$repo/operator/src:$repo/spark-jobs/src:$repo/e2e/src PYSPARK_PYTHON=$bin/python
cd "$repo"
exec "$@"
