#!/usr/bin/env bash
# Runs the node program's tests in the builder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
"$here/../bootstrap/engine.sh"
mkdir -p "$cache/test-java"
"$here/builder.sh" "$cache/test-java" bash -ec 'cp -r /src/images/herddb /tmp/module && cd /tmp/module && rm -rf lib target && mvn -B -ntp test' | grep -vE '^\[INFO\] *$|^\[INFO\] -{5}|Downloading|Downloaded'
