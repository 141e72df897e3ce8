#!/usr/bin/env bash
# Prints a folder with the jars of a server's image, for benchmarks and tests that run servers without containers, or of HerdDB's JDBC clients:
# those of the checker, or of examples/java, as its own build leaves them in client/ and rest/.
# Usage: server-jars.sh zookeeper | bookkeeper | herddb | jdbc | example
# They are kept by content: what build.sh has staged for an image of the same inputs is taken, else the builder makes it. Beside the jars of a
# server lies its archive of classes (layers/archive-classes), by this machine's Java.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
name=$1
inputs=("$repo/images/$name" "$here/stage-jars.sh")
command=(/src/e2e/images/stage-jars.sh "$name")
classes=$repo/images/$name/classes.lst
if [ "$name" = jdbc ]; then
  inputs=("$repo/e2e/jdbc")
  command=(bash -ec 'cp -r /src/e2e/jdbc /tmp/module && cd /tmp/module && rm -rf target && mvn -B -C -q -DskipTests package && mkdir /out/lib && cp target/*.jar /out/lib/')
fi
if [ "$name" = example ]; then
  inputs=("$repo/examples/java/pom.xml" "$repo"/examples/java/*.java)
  command=(bash -ec 'cp -r /src/examples/java /tmp/module && cd /tmp/module && rm -rf target && mvn -B -C -q package && mkdir /out/lib && cp -r target/client target/rest /out/lib/')
fi
key=$(content_key "${inputs[@]}")
folder=$cache/jars/$name-image-$key
if [ -e "$classes" ]; then
  JAVA_HOME=$("$here/../bootstrap/java.sh")
  export JAVA_HOME
  folder=$folder-$({ cat "$here/layers/archive-classes" && "$JAVA_HOME/bin/java" -version 2>&1; } | sha256sum | cut -c1-6)
fi
if [ ! -e "$folder" ]; then
  making=$folder.making.$$
  mkdir -p "$making"
  if [ "$(cat "$cache/stage/$name/key" 2>/dev/null)" = "$key" ]; then
    cp -r "$cache/stage/$name/lib" "$making/lib"
  else
    say "making the jars of $name"
    "$here/../bootstrap/engine.sh" >&2
    "$here/builder.sh" "$making" "${command[@]}" >"$making/log" 2>&1 || { tail -20 "$making/log" >&2; fail "the builder could not make them; see $making/log"; }
  fi
  mv -T "$making" "$folder" 2>/dev/null || rm -rf "$making"   # another run was quicker
fi
# behind the move: a JVM compares the paths of the jars, too
if [ -e "$classes" ] && [ ! -e "$folder/classes.jsa" ]; then
  cp "$classes" "$folder/"
  first=()
  [ "$name" != herddb ] || first=("$folder/lib/herddb-node.jar")
  LC_ALL=C
  "$here/layers/archive-classes" "$folder" "${first[@]}" "$folder"/lib/*.jar
fi
echo "$folder/lib"
