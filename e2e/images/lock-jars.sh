#!/usr/bin/env bash
# Writes down which jars the images hold, as images/NAME/jars.sha256, from what Maven now brings. Usage: lock-jars.sh [NAME…]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
"$here/../bootstrap/engine.sh"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(zookeeper bookkeeper herddb)
for name in "${names[@]}"; do
  folder=$cache/lock-jars/$name
  rm -rf "$folder" && mkdir -p "$folder"
  # it fails where jars have changed, having written down which came
  "$here/builder.sh" "$folder" /src/e2e/images/stage-jars.sh "$name" >"$folder/log" 2>&1 || [ -s "$folder/jars.sha256" ] ||
    { tail -30 "$folder/log" >&2; fail "Maven could not bring the jars of $name; see $folder/log"; }
  cp "$folder/jars.sha256" "$repo/images/$name/"
  say "images/$name/jars.sha256: $(wc -l < "$repo/images/$name/jars.sha256") jars"
done
