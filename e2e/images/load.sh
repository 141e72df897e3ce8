#!/usr/bin/env bash
# Loads images into the nodes of the test cluster that don't have them yet. Usage: load.sh [NAME…]
# Servers and jobs run on workers only, so the control plane gets none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"

tag=${HERDKEEPER_IMAGE_TAG:-0.1.0}
cluster=${HERDKEEPER_KIND_CLUSTER:-herdkeeper}
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(zookeeper bookkeeper herddb operator spark)
nodes=$(docker ps --filter "label=io.x-k8s.kind.cluster=$cluster" --filter label=io.x-k8s.kind.role=worker --format '{{.Names}}')
[ -n "$nodes" ] || fail "cluster $cluster has no running workers: run e2e/kind/cluster.sh up"

# What a node has is remembered on the node itself, by the engine's id of each image, so that it is forgotten with the node.
memory=/var/lib/herdkeeper-images

load_into() {
  local node=$1 missing=() lines=() name line present
  present=$(docker exec "$node" sh -c "cat $memory 2>/dev/null" || true)
  for name in "${names[@]}"; do
    line="herdkeeper/$name:$tag $(docker image inspect -f '{{.Id}}' "herdkeeper/$name:$tag")"
    # the last line of a name tells what its tag is now
    [ "$(grep "^herdkeeper/$name:$tag " <<<"$present" | tail -1)" = "$line" ] || { missing+=("herdkeeper/$name:$tag"); lines+=("$line"); }
  done
  [ ${#missing[@]} -gt 0 ] || { say "$node has them all"; return; }
  # one archive for all of them, since they share layers
  docker save "${missing[@]}" | docker exec -i "$node" ctr -n k8s.io images import --digests - >/dev/null || fail "$node: import failed"
  printf '%s\n' "${lines[@]}" | docker exec -i "$node" sh -c "cat >> $memory"
  say "$node: loaded ${missing[*]}"
}

begun=$SECONDS
pids=()
for node in $nodes; do
  load_into "$node" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
say "images are on all workers after $((SECONDS - begun)) s"
