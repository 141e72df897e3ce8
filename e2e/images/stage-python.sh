#!/usr/bin/env bash
# Stages what a Python image copies. Runs in the builder.
# Usage: stage-python.sh dependencies EXTRA   /out/site: what the extra needs, in the versions of requirements.lock, less what nobody uses
#        stage-python.sh project              /out/app: the project's own packages and the console scripts' entry points
set -euo pipefail

checkout() {   # only what the wheel is made of; the checkout itself is read-only
  mkdir /tmp/checkout
  cd /src
  cp -r --parents pyproject.toml README.md operator/src spark-jobs/src /tmp/checkout/
  cd /tmp/checkout
}

# Compiled once here, since the images' file systems are read-only; by hash, so that the same sources give the same layer.
compile() { python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "$1" || true; }

dependencies() {
  local site=/tmp/site
  checkout
  python3 - "$1" > /tmp/requirements.txt <<'END'
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print("\n".join(project["dependencies"] + project["optional-dependencies"][sys.argv[1]]))
END
  pip3 install -q --no-compile --target "$site" -c /src/requirements.lock -r /tmp/requirements.txt
  if [ "$1" = spark ]; then prune_spark "$site"; fi
  find "$site" -type d \( -name tests -o -name test \) -prune -exec rm -rf {} +
  compile "$site"
  rm -rf /out/site
  cp -r "$site" /out/site
}

# The jobs use SQL, Python workers and the Kubernetes scheduler. What is only for Hive, Kafka, YARN, R, machine learning and examples goes.
prune_spark() {
  local spark=$1/pyspark jars=$1/pyspark/jars
  rm -rf "$spark/examples" "$spark/R" "$spark/data" "$spark/sbin" "$spark/pandas/tests" "$spark/tests"
  rm -rf "$1/pyarrow/include"
  . /src/e2e/images/spark-jars.sh
  for pattern in $unused_jars; do rm -f "$jars"/$pattern; done
}

project() {
  checkout
  rm -rf /out/app
  pip3 install -q --no-compile --no-deps --target /tmp/app .
  compile /tmp/app
  cp -r /tmp/app /out/app
}

"$@"
