#!/usr/bin/env bash
# Makes the test cluster with the five images in it, or finds them: what `make demo` and the scenarios stand on.
# Kubernetes' programs and the images are made side by side: the ones mostly compute, the others mostly wait for the network. A new cluster waits
# for the images and has them from the start; one that is there is loaded with what changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

"$here/engine.sh"
"$here/../images/build.sh" &
building=$!
trap 'kill "$building" 2>/dev/null || true' EXIT
"$here/../kind/cluster.sh" up >/dev/null
wait "$building" || fail "the images could not be built; the lines above tell why"
trap - EXIT
"$here/../images/load.sh"
