#!/usr/bin/env bash
# Prints the folder of the engine's machine from which the nodes of a new cluster take over their images: those of Kubernetes that were built
# here, and the project's own as the engine has them now.
# Usage: image-store.sh NODE_IMAGE
#
# The store is a volume of the engine. Each generation in it is a containerd's folder with every image unpacked, and is never written again: all
# nodes read the same files, and a new cluster has its images at once. A new generation shares with the one before what did not change.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
node=$1
tag=${HERDKEEPER_IMAGE_TAG:-$project_version}
volume=herdkeeper-images

label() { docker image inspect -f "{{index .Config.Labels \"io.herdkeeper.$1\"}}" "$node"; }

# wanted: a line `IMAGE ID` for each image that the engine has.
wanted() {
  local image id
  for image in $(label images) herdkeeper/{zookeeper,bookkeeper,herddb,operator,spark}:"$tag"; do
    id=$(docker image inspect -f '{{.Id}}' "$image" 2>/dev/null) && echo "$image $id"
  done
  return 0
}

in_store() { docker run --rm --privileged -i -v "$volume:/store" --entrypoint /bin/bash "$node" -euc "$@"; }

# what is being built just now belongs to it
exec 8>"$cache/images.lock"
if command -v flock >/dev/null; then flock 8; fi
images=$(wanted)
family=$(label containerd | cut -c8-19)
earlier=$(in_store 'cd /store; ls -td "$1"-*[0-9] 2>/dev/null | head -1' - "$family")
has=$([ -z "$earlier" ] || in_store 'cat "/store/$1/herdkeeper-images"' - "$earlier")
missing=$(grep -vxF -f <(echo "$has") <<<"$images" | cut -d' ' -f1) || true
generation=$earlier
if [ -n "$missing" ]; then
  begun=$SECONDS
  generation=$family-$(date +%s)
  say "image store: adding $(tr '\n' ' ' <<<"$missing")"
  docker save $missing | in_store '/kind/bin/fill-store.sh "/store/$1" "${2:+/store/$2}" "$3"' - "$generation" "$earlier" "$images" 2>"$cache/image-store.log" ||
    { tail -20 "$cache/image-store.log" >&2; fail "the image store could not be filled; see $cache/image-store.log"; }
  # those from which nodes took over their images stay as long as the nodes
  used=$(docker ps -aq --filter label=io.x-k8s.kind.cluster | xargs -r docker inspect -f '{{range .Mounts}}{{.Source}} {{end}}' | tr ' ' '\n' | sed -n "s#.*/$volume/_data/##p")
  in_store 'cd /store; for folder in *; do [[ " $1 " == *" $folder "* ]] || rm -rf "$folder"; done' - "$(tr '\n' ' ' <<<"$used") $generation"
  say "image store: ready after $((SECONDS - begun)) s"
fi
echo "$(docker volume inspect -f '{{.Mountpoint}}' "$volume")/$generation"
