#!/usr/bin/env bash
# Loads images into the nodes of the test cluster that don't have them yet: what changed since it was made. Usage: load.sh [NAME…]
# Servers and jobs run on workers only, so the control plane gets none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"

tag=${HERDKEEPER_IMAGE_TAG:-$project_version}
cluster=${HERDKEEPER_KIND_CLUSTER:-herdkeeper}
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(zookeeper bookkeeper herddb operator spark)
nodes=$(docker ps --filter "label=io.x-k8s.kind.cluster=$cluster" --filter label=io.x-k8s.kind.role=worker --format '{{.Names}}')
[ -n "$nodes" ] || fail "cluster $cluster has no running workers: run e2e/kind/cluster.sh up"

# What a node has is remembered on the node itself, by the engine's id of each image, so that it is forgotten with the node.
memory=/var/lib/herdkeeper-images

# missing_on NODE: a line `IMAGE ID` for each image that the node doesn't have as the engine has it.
missing_on() {
  local present name line
  present=$(docker exec "$1" sh -c "cat $memory 2>/dev/null" || true)
  for name in "${names[@]}"; do
    line="herdkeeper/$name:$tag $(docker image inspect -f '{{.Id}}' "herdkeeper/$name:$tag")" || fail "herdkeeper/$name:$tag is not built: run e2e/images/build.sh $name"
    # the last line of a name tells what its tag is now
    [ "$(grep "^herdkeeper/$name:$tag " <<<"$present" | tail -1)" = "$line" ] || echo "$line"
  done
}

begun=$SECONDS
folder=$(mktemp -d "$cache/load.XXXXXX")
trap 'rm -rf "$folder"' EXIT
waiting=()
for node in $nodes; do
  missing_on "$node" > "$folder/$node"
  if [ -s "$folder/$node" ]; then waiting+=("$node"); else say "$node has them all"; fi
done
if [ ${#waiting[@]} -eq 0 ]; then exit 0; fi

# one archive for all nodes, of the layers that not all of them have: most of what Spark's image is changes seldom
images=$(cd "$folder" && cat "${waiting[@]}" | cut -d' ' -f1 | sort -u)
say "loading $(tr '\n' ' ' <<<"$images")into ${#waiting[@]} nodes"
docker save -o "$folder/saved.tar" $images
for node in "${waiting[@]}"; do docker exec "$node" ctr -n k8s.io snapshots list | awk '/ Committed *$/ {print $1}' | sort -u; done |
  sort | uniq -c | awk -v nodes=${#waiting[@]} '$1 == nodes {print $2}' > "$folder/known"
"$("$here/../bootstrap/python.sh")/python" "$here/changed_layers.py" "$folder/saved.tar" "$folder/images.tar" < "$folder/known"
import() {
  docker exec -i "$1" ctr -n k8s.io images import --digests - < "$folder/images.tar" >"$folder/$1.log" 2>&1 || { tail -3 "$folder/$1.log" >&2; fail "$1: import failed"; }
  docker exec -i "$1" sh -c "cat >> $memory" < "$folder/$1"
}
imports=()
for node in "${waiting[@]}"; do
  import "$node" &
  imports+=($!)
done
for pid in "${imports[@]}"; do wait "$pid"; done
say "images are on all workers after $((SECONDS - begun)) s"
