#!/usr/bin/env bash
# Runs the Java tests in the builder: of the node program, of the bookies' admin port, of ZooKeeper's access lists and start, of the SQL checker's JDBC clients, and of the bookies' other clients.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
"$here/../bootstrap/engine.sh"
mkdir -p "$cache/test-java"
turn=$(git -C "$repo" rev-list --count HEAD 2>/dev/null || echo 0)   # which part of the nemesis's cases this commit has
"$here/builder.sh" "$cache/test-java" bash -ec 'for module in images/herddb images/bookkeeper images/zookeeper e2e/jdbc e2e/clients; do cp -r "/src/$module" /tmp/module; cd /tmp/module; rm -rf lib target; mvn -B -C -ntp test -DforkCount=1C "-Dnemesis.turn=$1"; cd /tmp; rm -rf module; done' test-java "$turn" | grep -vE '^\[INFO\] *$|^\[INFO\] -{5}|Downloading|Downloaded'
