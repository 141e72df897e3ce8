#!/usr/bin/env bash
# Prints a folder with the jars of the ZooKeeper image, for tests that run members without containers.
# This machine's Maven resolves them where there is one, else the builder does; they are kept until the pom changes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
pom=$repo/images/zookeeper/pom.xml
folder=$cache/jars/zookeeper-$(content_key "$pom")
if [ ! -e "$folder/lib" ]; then
  rm -rf "$folder.making" && mkdir -p "$folder.making"
  say "resolving the jars of ZooKeeper"
  if command -v mvn >/dev/null; then
    mvn -B -C -q -f "$pom" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$folder.making/lib" >"$folder.making/log" 2>&1 \
      || { tail -20 "$folder.making/log" >&2; fail "Maven could not resolve them; see $folder.making/log"; }
  else
    "$here/../bootstrap/engine.sh" >&2
    "$here/builder.sh" "$folder.making" /src/e2e/images/stage-jars.sh zookeeper >"$folder.making/log" 2>&1 \
      || { tail -20 "$folder.making/log" >&2; fail "the builder could not resolve them; see $folder.making/log"; }
  fi
  rm -rf "$folder" && mv "$folder.making" "$folder"
fi
echo "$folder/lib"
