#!/usr/bin/env bash
# Strikes two SQL nodes at each of their steps, and at each two of them, in the builder (images/herddb, NemesisTest).
# Usage: nemesis.sh [CASE], a case as an earlier run has printed it. Environment: TURN chooses the faults of the pairs, MINUTES bounds each of the parts.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
"$here/../bootstrap/engine.sh"
mkdir -p "$cache/test-java"
# shellcheck disable=SC2016 # expanded in the builder
"$here/builder.sh" "$cache/test-java" bash -ec '
  cp -r /src/images/herddb /tmp/module; cd /tmp/module; rm -rf lib target
  mvn -B -C -ntp test -Dtest=NemesisTest -Dtest.compiler= -Dnemesis.whole=true "-Dnemesis.case=$1" "-Dnemesis.turn=$2" ${3:+"-Dnemesis.minutes=$3"}' \
  nemesis "${1:-}" "${TURN:-0}" "${MINUTES:-}" | grep -vE '^\[INFO\] *$|^\[INFO\] -{5}|Downloading|Downloaded'
