#!/usr/bin/env bash
# Stages what a Python image copies. Runs in the builder.
# Usage: stage-python.sh dependencies EXTRA   /out/site: what images/EXTRA/requirements.lock names, each file checked against its hash, less what nobody uses
#        stage-python.sh project              /out/app: the project's own packages and the console scripts' entry points
set -euo pipefail

checkout() {   # only what the wheels are made of; the checkout itself is read-only
  mkdir /tmp/checkout
  cd /src
  cp -r --parents pyproject.toml README.md LICENSE NOTICE sql operator/src spark-jobs/src /tmp/checkout/
  cd /tmp/checkout
}

# What builds a package is checked as well, so nothing is fetched for a build.
tools() {
  pip3 install -q --no-compile --require-hashes --target /tmp/tools -r /src/e2e/bootstrap/build.lock
  export PYTHONPATH=/tmp/tools
}
pip_install() { python3 -m pip install -q --no-compile --no-build-isolation "$@"; }

# Compiled once here, since the images' file systems are read-only; by hash, so that the same sources give the same layer.
compile() { python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash "$1" || true; }

dependencies() {
  local site=/tmp/site
  tools
  pip_install --require-hashes --target "$site" -r "/src/images/$1/requirements.lock"
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
  tools
  rm -rf /out/app
  pip_install --no-deps --target /tmp/app . ./sql
  compile /tmp/app
  cp -r /tmp/app /out/app
}

"$@"
