#!/usr/bin/env bash
# Builds the servers' images with earlier versions of BookKeeper and ZooKeeper, and loads them into the test cluster, for the scenario that
# upgrades them. Libraries are those that each version was released with.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

earlier() {
  HERDKEEPER_IMAGE_TAG=$2 HERDKEEPER_MAVEN_OPTIONS="${*:3}" "$here/build.sh" "$1"
  HERDKEEPER_IMAGE_TAG=$2 "$here/load.sh" "$1"
}

earlier bookkeeper 4.17.3 -Dbookkeeper.version=4.17.3 -Dnetty.version=4.1.130.Final -Djetty.version=9.4.57.v20241219 -Djackson.version=2.17.1 -Dlog4j.version=2.18.0 \
  -Dguava.version=32.0.1-jre
earlier zookeeper 3.8.4 -Dzookeeper.version=3.8.4 -Djetty.version=9.4.53.v20231009 -Dlogback.version=1.2.13 -Dnetty.version=4.1.105.Final -Djackson.version=2.15.2 \
  -Dcommons-io.version=2.11.0
