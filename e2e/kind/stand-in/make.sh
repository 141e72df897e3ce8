#!/usr/bin/env bash
# Makes a node image that holds what kind's own holds, from the one that is built here: Kubernetes' images, a pod network, volumes. With it the
# way of machines that pull is taken to its end where nothing can be pulled. Usage: make.sh IMAGE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../bootstrap/paths.sh"
. "$here/../versions.sh"

image=$1
read -r _ built <<<"$(HERDKEEPER_NODE_IMAGE=build "$here/../node-image.sh")"
read -ra components <<<"$(docker image inspect -f '{{index .Config.Labels "io.herdkeeper.images"}}' "$built")"
begun=$SECONDS
container=$(docker run -d --entrypoint sleep --security-opt seccomp=unconfined "$built" infinity)
trap 'docker rm -f "$container" >/dev/null' EXIT
write() { docker exec -i "$container" sh -c "mkdir -p /kind/manifests && cat > /kind/manifests/$1"; }

named() { printf '%s\n' "${components[@]}" | grep "/$1:"; }

sed "s#COMPONENTS_IMAGE#$(named kube-proxy)#" "$here/pod-network.yaml" | write default-cni.yaml
sed "s#LOCAL_PATH_IMAGE#$(named local-path-provisioner)#" "$here/../volumes.yaml" | write default-storage.yaml
# not unpacked, as kind has them: the file system of a container can't carry another one's layers
docker save "${components[@]}" | docker exec -i "$container" bash -euc '
  containerd >/tmp/containerd.log 2>&1 &
  until ctr version >/dev/null 2>&1; do sleep 0.1; kill -0 $! || { cat /tmp/containerd.log >&2; exit 1; }; done
  ctr -n k8s.io images import --all-platforms --no-unpack --digests - >/dev/null
  kill $! && wait $! || true
  rm -rf /tmp/containerd.log /run/containerd'
docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' --change 'LABEL io.herdkeeper.images=' "$container" "$image" >/dev/null
say "$image: made in $((SECONDS - begun)) s, $(docker image inspect -f '{{.Size}}' "$image" | awk '{printf "%.0f MB", $1/1e6}')"
