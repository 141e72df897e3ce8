#!/usr/bin/env bash
# Makes the test cluster with the five images in it, or finds them: what `make demo` and the scenarios stand on.
# Cluster and images are made side by side: the one mostly computes (Kubernetes from source), the other mostly waits for the network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

"$here/engine.sh"
"$here/../images/base.sh"   # what both begin with
"$here/../images/build.sh" &
building=$!
trap 'kill "$building" 2>/dev/null || true' EXIT
"$here/../kind/cluster.sh" up >/dev/null
wait "$building" || fail "the images could not be built; the lines above tell why"
trap - EXIT
"$here/../images/load.sh"
