#!/usr/bin/env bash
# Prints the archive of Java classes with which benchmarks start Spark as its image does (images/spark/archive_classes.py); makes it once for
# each Java and Spark.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
maker=$repo/images/spark/archive_classes.py
bin=$("$here/python.sh")
JAVA_HOME=$("$here/java.sh")
java=$("$JAVA_HOME/bin/java" -version 2>&1 | sha256sum | cut -c1-12)
archive=$cache/spark-classes-$(basename "$(dirname "$bin")")-$java-$(content_key "$maker").jsa
if [ ! -f "$archive" ]; then
  begun=$SECONDS
  say "archiving the Java classes of Spark"
  PYSPARK_PYTHON=$bin/python "$here/run.sh" python "$maker" "$archive.making.$$" >"$cache/spark-classes.log" 2>&1 ||
    { tail -20 "$cache/spark-classes.log" >&2; fail "it could not be made; see $cache/spark-classes.log"; }
  mv "$archive.making.$$" "$archive"
  say "made in $((SECONDS - begun)) s"
fi
echo "$archive"
