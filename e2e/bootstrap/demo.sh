#!/usr/bin/env bash
# From nothing to a replicated SQL database with data. The cluster and Python's environment are made side by side; the rest is
# e2e/src/herdkeeper_e2e/demo.py.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
begun=$(date +%s)

tell() { while IFS= read -r line; do printf '[%2d:%02d]   1/5 cluster   %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$line"; done; }
{
  say "a container engine, a kind cluster of four nodes in three zones, five images in it"
  "$here/python.sh" &
  "$here/prepare.sh" && wait $!
} 2>&1 >/dev/null | tell || fail "the cluster could not be made; the lines above tell why"
exec "$here/run.sh" python -m herdkeeper_e2e.demo --begun "$begun"
